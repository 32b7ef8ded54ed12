/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/bootstrap.c - the objects a fresh cluster has
 *
 * Upstream: pkg/controlplane/controller, pkg/registry/scheduling/rest/storage_scheduling.go;
 * differences: no RBAC and flow-control objects, and no service accounts beyond `default`.
 */
#include "simulator/server/bootstrap.h"

#include "common/k8s/kinds.h"
#include <stdio.h>

static int make(struct bh_sim *s, const char *api_version, const char *kind, const char *ns,
                const char *text, struct bh_err *err)
{
    struct bh_arena a;
    struct bh_json *v;
    struct bh_sim_error e = {0};
    bh_arena_init(&a, 0);
    int rc = bh_json_parse(&a, text, strlen(text), BH_JSON_STRICT, &v, err);
    if (!rc && bh_sim_create(s, bh_sim_type_of_kind(api_version, kind), ns, &a, v, NULL, &e))
        rc = bh_err_set(err, -1, "cannot create the %s of a fresh cluster: %s", kind, e.message);
    bh_arena_fini(&a);
    return rc;
}

static int make_namespaces(struct bh_sim *s, struct bh_err *err)
{
    static const char *const names[] = {"default", "kube-system", "kube-public", "kube-node-lease"};
    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        char text[160];
        snprintf(
            text, sizeof(text),
            "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/metadata.name\":\"%s\"}}}",
            names[i], names[i]);
        int rc = make(s, "v1", "Namespace", "", text, err);
        if (!rc &&
            !bh_sim_get(s, bh_sim_type_find("", "v1", "serviceaccounts"), names[i], "default"))
            rc = make(s, "v1", "ServiceAccount", names[i], "{\"metadata\":{\"name\":\"default\"}}",
                      err);
        if (rc)
            return rc;
    }
    return 0;
}

int bh_sim_bootstrap(struct bh_sim *s, struct bh_err *err)
{
    static const struct {
        const char *api_version, *kind, *ns, *text;
    } others[] = {
        {"scheduling.k8s.io/v1", "PriorityClass", "",
         "{\"metadata\":{\"name\":\"system-cluster-critical\"},\"value\":2000000000,"
         "\"description\":\"Used for system critical pods that must run in the cluster, but can be "
         "moved to another node if necessary.\",\"preemptionPolicy\":\"PreemptLowerPriority\"}"},
        {"scheduling.k8s.io/v1", "PriorityClass", "",
         "{\"metadata\":{\"name\":\"system-node-critical\"},\"value\":2000001000,"
         "\"description\":\"Used for system critical pods that must not be moved from their "
         "current "
         "node.\",\"preemptionPolicy\":\"PreemptLowerPriority\"}"},
        {"v1", "Service", "default",
         "{\"metadata\":{\"name\":\"kubernetes\",\"labels\":{\"component\":\"apiserver\","
         "\"provider\":\"kubernetes\"}},\"spec\":{\"clusterIP\":\"10.96.0.1\","
         "\"clusterIPs\":[\"10.96.0.1\"],\"ports\":[{\"name\":\"https\",\"port\":443,"
         "\"protocol\":\"TCP\",\"targetPort\":6443}],\"sessionAffinity\":\"None\","
         "\"type\":\"ClusterIP\"}}"},
    };
    int rc = make_namespaces(s, err);

    for (size_t i = 0; i < BH_ARRAY_LEN(others) && !rc; i++)
        rc = make(s, others[i].api_version, others[i].kind, others[i].ns, others[i].text, err);
    return rc;
}
