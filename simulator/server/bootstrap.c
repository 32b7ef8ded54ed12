/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/bootstrap.c - the objects a fresh cluster has: those of bootstrap.data
 *
 * Upstream: pkg/controlplane/controller, pkg/registry/scheduling/rest/storage_scheduling.go,
 * cmd/kube-apiserver/app/aggregator.go (priorities of API services);
 * plugin/pkg/auth/authorizer/rbac/bootstrappolicy;
 * differences: no roles of controllers and nodes, no flow-control objects, and no service accounts
 * beyond `default`.
 */
#include "simulator/server/bootstrap.h"

#include "common/data/yaml.h"
#include "simulator/server/tree.h"

static const char objects[] =
#include "simulator/server/bootstrap.data.h"
    ;

int bh_sim_bootstrap(struct bh_sim *s, bool fresh, struct bh_err *err)
{
    struct bh_arena a;
    struct bh_json *docs = NULL;
    struct bh_sim_error e;

    bh_arena_init(&a, 0);
    bh_sim_error_init(&e);
    int rc = bh_yaml_parse_all(&a, objects, sizeof(objects) - 1, BH_JSON_STRICT, &docs, err);
    bh_json_each(v, docs) {
        const char *kind = bh_tree_str(v, "kind"), *ns = bh_tree_str(v, "metadata.namespace");
        const struct bh_sim_type *t = bh_sim_type_of_kind(bh_tree_str(v, "apiVersion"), kind);
        if (!fresh && (!bh_streq(t->group, "rbac.authorization.k8s.io") ||
                       bh_sim_get(s, t, ns ? ns : "", bh_tree_str(v, "metadata.name"))))
            continue;
        if (bh_sim_create(s, t, ns ? ns : "", &a, v, NULL, &e)) {
            rc = bh_err_set(err, -1, "cannot create the %s of a fresh cluster: %s", t->kind,
                            e.message);
            break;
        }
    }
    bh_arena_fini(&a);
    return rc;
}
