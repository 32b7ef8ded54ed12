/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/defaults.c - what the API server fills in and the scheduler depends on
 *
 * Upstream: pkg/apis/core/v1/defaults.go (SetDefaults_Pod, SetDefaults_PodSpec,
 * SetDefaults_NodeStatus).
 */
#include "simulator/trial/trial.h"
#include "common/k8s/quantity.h"

static bool is_object(const struct bh_json *v)
{
    return v && v->type == BH_JSON_OBJECT;
}

static void copy_missing(struct bh_arena *a, struct bh_json *into, const struct bh_json *from)
{
    bh_json_each (m, from) {
        if (!bh_json_get(into, m->key.p))
            bh_json_set(a, into, m->key.p, bh_json_clone(a, m));
    }
}

static void default_container(struct bh_arena *a, struct bh_json *c, bool host_network)
{
    struct bh_json *res = bh_json_get(c, "resources");
    struct bh_json *limits = bh_json_get(res, "limits");

    if (is_object(limits) && limits->c.n)
        copy_missing(a, bh_json_obj_at(a, res, "requests"), limits);
    for (struct bh_json *p = host_network ? bh_json_first(bh_json_get(c, "ports")) : NULL; p;
         p = p->next)
        if (bh_json_get_i64(p, "hostPort", 0) == 0)
            bh_json_set_i64(a, p, "hostPort", bh_json_get_i64(p, "containerPort", 0));
}

/* ---- pod-level requests -----------------------------------------------------------------------
 */

static bool pod_level_name(const char *name)
{
    return bh_streq(name, "cpu") || bh_streq(name, "memory") ||
           strncmp(name, "hugepages-", sizeof "hugepages-" - 1) == 0;
}

static bool request_of(const struct bh_json *container, const char *name, bh_nano *ret)
{
    const struct bh_json *v = bh_json_get(bh_json_path(container, "resources.requests"), name);

    return v && (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER) &&
           bh_quantity_parse(v->s.p, v->s.n, ret) == 0;
}

/* The pod's effective request for one resource from its containers; false: none names it. */
static bool aggregate(const struct bh_json *spec, const char *name, bh_nano *ret)
{
    bh_nano sum = 0, sidecars = 0, peak = 0, q;
    bool any = false;

    bh_json_each (c, bh_json_get(spec, "containers")) {
        if (request_of(c, name, &q)) {
            sum += q;
            any = true;
        }
    }
    bh_json_each (c, bh_json_get(spec, "initContainers")) {
        const char *policy = bh_json_get_str(c, "restartPolicy");
        q = 0;
        any |= request_of(c, name, &q);
        if (policy && bh_streq(policy, "Always")) {
            sum += q;
            sidecars += q;
            q = sidecars;
        } else {
            q += sidecars;
        }
        peak = BH_MAX(peak, q);
    }
    *ret = BH_MAX(sum, peak);
    return any;
}

static void default_pod_level(struct bh_arena *a, struct bh_json *spec)
{
    struct bh_json *res = bh_json_get(spec, "resources"), *limits = bh_json_get(res, "limits");
    static const char *const summed[] = {"cpu", "memory"};

    if (!is_object(limits) || !limits->c.n)
        return;
    struct bh_json *req = bh_json_obj_at(a, res, "requests");
    for (unsigned i = 0; i < BH_ARRAY_LEN(summed); i++) {
        bh_nano q;
        struct bh_buf b = {0};
        if (bh_json_get(req, summed[i]) || !aggregate(spec, summed[i], &q))
            continue;
        bh_quantity_format(&b, q, false);
        bh_json_set_str(a, req, summed[i], bh_buf_str(&b));
        bh_buf_fini(&b);
    }
    bh_json_each (l, limits) {
        if (pod_level_name(l->key.p) && !bh_json_get(req, l->key.p))
            bh_json_set(a, req, l->key.p, bh_json_clone(a, l));
    }
}

static void default_pod(struct bh_arena *a, struct bh_json *pod)
{
    struct bh_json *spec = bh_json_get(pod, "spec");
    bool host_network = bh_json_get_bool(spec, "hostNetwork", false);
    static const char *const lists[] = {"initContainers", "containers"};

    for (unsigned l = 0; l < BH_ARRAY_LEN(lists); l++) {
        struct bh_json *list = bh_json_get(spec, lists[l]);
        for (struct bh_json *c = list && list->type == BH_JSON_ARRAY ? list->c.first : NULL; c;
             c = c->next)
            default_container(a, c, host_network);
    }
    if (!is_object(spec))
        return;
    default_pod_level(a, spec);
    const char *scheduler = bh_json_get_str(spec, "schedulerName");
    if (!scheduler || !*scheduler)
        bh_json_set_str(a, spec, "schedulerName", "default-scheduler");
}

void bh_api_defaults(struct bh_arena *a, struct bh_json *obj)
{
    const char *kind = bh_json_get_str(obj, "kind");
    struct bh_json *status = bh_json_get(obj, "status");

    if (kind && bh_streq(kind, "Pod"))
        default_pod(a, obj);
    if (kind && bh_streq(kind, "Node") && is_object(bh_json_get(status, "capacity")) &&
        !bh_json_get(status, "allocatable"))
        bh_json_set(a, status, "allocatable", bh_json_clone(a, bh_json_get(status, "capacity")));
}
