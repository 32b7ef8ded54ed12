/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/elasticquota.c - status.used of ElasticQuotas (plugin CapacityScheduling)
 *
 * The kind is there once its CustomResourceDefinition is (config/plugins/capacityscheduling-crd.yaml).
 *
 * Upstream: scheduler-plugins, pkg/controllers/elasticquota_controller.go. Running pods count, overhead does
 *           not, and of several quotas in a namespace the first is kept. Differences: the event names the
 *           quota (upstream: the pod that changed).
 */
#include "simulator/admission/admission.h"
#include "simulator/controllers/controllers.h"

#define GROUP  "scheduling.x-k8s.io"
#define PLURAL "elasticquotas"

struct amounts { /* by resource, in the order of their coming */
    struct bh_arena *a;
    struct {
        const char *name;
        __int128 nano;
    } v[64];
    uint32_t n; /* of further ones nothing is said */
};

static const struct bh_sim_type *quotas(const struct bh_sim_controllers *c)
{
    return bh_sim_find_type(c->sim, GROUP, "v1alpha1", PLURAL);
}

void bh_ctl_elasticquota_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                                const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    if (obj->type == c->t.pods) {
        const struct bh_sim_type *t = quotas(c);
        bool was = old && bh_streq(old->phase, "Running");
        bool is = change != BH_SIM_DELETED && bh_streq(obj->phase, "Running");
        if (t && was != is && bh_sim_count(c->sim, t))
            bh_ctl_enqueue(c, BH_CTL_ELASTICQUOTA, obj->ns, "");
    } else if (bh_streq(obj->type->plural, PLURAL) && bh_streq(obj->type->group, GROUP)) {
        bh_ctl_enqueue(c, BH_CTL_ELASTICQUOTA, obj->ns, "");
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

static __int128 *amount(struct amounts *m, const char *name)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (bh_streq(m->v[i].name, name))
            return &m->v[i].nano;
    if (m->n == BH_ARRAY_LEN(m->v))
        return NULL;
    m->v[m->n].name = bh_arena_strdup(m->a, name);
    m->v[m->n].nano = 0;
    return &m->v[m->n++].nano;
}

/* Adds a container's requests, or takes those that are larger. */
static void take(struct amounts *m, const struct bh_json *container, bool largest)
{
    bh_json_each(r, bh_tree_obj(container, "resources.requests")) {
        __int128 v = 0, *to = amount(m, r->key.p);
        if (!to || !bh_adm_parse_quantity(r, &v))
            continue;
        *to = largest ? BH_MAX(*to, v) : *to + v;
    }
}

static void count_pod(struct amounts *used, const struct bh_sim_obj *obj)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const struct bh_json *pod = bh_sim_obj_tree(&a, obj);
    struct amounts own = {.a = &a};

    bh_json_each(c, bh_tree_arr(pod, "spec.containers")) {
        take(&own, c, false);
    }
    bh_json_each(c, bh_tree_arr(pod, "spec.initContainers")) {
        take(&own, c, true);
    }
    for (uint32_t i = 0; i < own.n; i++) {
        __int128 *to = amount(used, own.v[i].name);
        if (to)
            *to += own.v[i].nano;
    }
}

static bool is_binary(const char *resource)
{
    return strstr(resource, "memory") || strstr(resource, "storage") ||
           strstr(resource, "hugepages-");
}

/* What the quota names is there, if only as 0. */
static struct bh_json *used_of(struct bh_sim_controllers *c, const struct bh_sim_obj *quota)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_listed(c->sim, c->t.pods, quota->ns);
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, quota);
    struct bh_json *used = bh_json_new(&c->arena, BH_JSON_OBJECT);
    struct amounts m = {.a = &c->arena};

    bh_json_each(r, bh_tree_obj(tree, "spec.min")) {
        (void)amount(&m, r->key.p);
    }
    bh_json_each(r, bh_tree_obj(tree, "spec.max")) {
        (void)amount(&m, r->key.p);
    }
    for (size_t i = 0; i < pods.n; i++)
        if (bh_streq(pods.v[i]->phase, "Running"))
            count_pod(&m, pods.v[i]);
    for (uint32_t i = 0; i < m.n; i++)
        bh_tree_set_quantity(&c->arena, used, m.v[i].name, m.v[i].nano, is_binary(m.v[i].name));
    return used;
}

static bool write_used(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct bh_json *used = arg;
    struct bh_json *s = bh_tree_dflt_obj(a, o, "status");

    if (!s)
        return false;
    bh_json_set(a, s, "used", bh_json_clone(a, used));
    return true;
}

void bh_ctl_sync_elasticquota(struct bh_sim_controllers *c, const char *ns,
                              const char *name BH_UNUSED)
{
    const struct bh_sim_type *t = quotas(c);

    if (!t)
        return;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, t, ns);
    if (!l.n || l.v[0]->deleting)
        return;
    struct bh_sim_obj *quota = l.v[0];
    const struct bh_json *used = used_of(c, quota);
    const struct bh_json *is = bh_tree_obj(bh_sim_obj_tree(&c->arena, quota), "status.used");
    if (is && bh_json_equal(is, used))
        return;
    if (bh_ctl_edit(c, quota, BH_SIM_STATUS, write_used, used) == 0)
        bh_sim_event(c->sim, quota, "Normal", "Synced", "ElasticQuotaController",
                     "Elastic Quota %s/%s synced successfully", quota->ns, quota->name);
}
