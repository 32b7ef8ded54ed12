/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_requests.c - the defaults that decisions depend on
 *
 * Requests from limits, pod-level requests, host ports. The server gives them to every pod; objects
 * that no server has seen (conformance cases, files of what-if) get them, and little else, by
 * bh_api_defaults().
 * Upstream: pkg/apis/core/v1/defaults.go SetDefaults_Pod, defaultPodRequests,
 * defaultHostNetworkPorts, SetDefaults_NodeStatus (v1.36).
 */
#include "simulator/admission/admission.h"

#include "common/k8s/quantity.h"

/* ---- pod-level requests ---------------------------------------------------------------------- */

__int128 bh_adm_container_amount(const struct bh_json *container, const char *map,
                                 const char *resource, __int128 dflt)
{
    const struct bh_json *m = bh_json_get(bh_tree_obj(container, "resources"), map);
    bh_nano q;

    return bh_adm_parse_quantity(bh_json_get(m, resource), &q) ? q : dflt;
}

__int128 bh_adm_containers_sum(const struct bh_json *spec, const char *map, const char *resource)
{
    bh_nano sum = 0, sidecars = 0, init_max = 0;

    bh_json_each(c, bh_tree_arr(spec, "containers"))
        sum += bh_adm_container_amount(c, map, resource, 0);
    bh_json_each(c, bh_tree_arr(spec, "initContainers")) {
        bh_nano q = bh_adm_container_amount(c, map, resource, 0);
        if (bh_tree_is(c, "restartPolicy", "Always")) {
            sum += q;
            sidecars += q;
            q = 0;
        }
        init_max = BH_MAX(init_max, q + sidecars);
    }
    return BH_MAX(sum, init_max);
}

static bool any_requests(const struct bh_json *spec, const char *list, const char *resource)
{
    bh_json_each(c, bh_tree_arr(spec, list)) {
        if (bh_json_get(bh_tree_obj(c, "resources.requests"), resource))
            return true;
    }
    return false;
}

/* Filled only when pod-level limits are there. */
static void pod_level_requests(struct bh_arena *a, struct bh_json *spec)
{
    static const char *const summed[] = {"cpu", "memory"};
    struct bh_json *res = bh_tree_obj(spec, "resources");
    const struct bh_json *limits = bh_tree_obj(res, "limits");
    struct bh_json *req = bh_tree_len(limits) ? bh_tree_dflt_obj(a, res, "requests") : NULL;

    if (!req)
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(summed); i++) {
        if (bh_json_get(req, summed[i]) || (!any_requests(spec, "containers", summed[i]) &&
                                            !any_requests(spec, "initContainers", summed[i])))
            continue;
        bh_tree_set_quantity(a, req, summed[i], bh_adm_containers_sum(spec, "requests", summed[i]),
                             i == 1);
    }
    bh_json_each(l, limits) {
        if ((bh_word_at("cpu memory", l->key.p) >= 0 ||
             strncmp(l->key.p, "hugepages-", strlen("hugepages-")) == 0) &&
            !bh_json_get(req, l->key.p))
            bh_json_set(a, req, l->key.p, bh_json_clone(a, l));
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

void bh_adm_default_requests(struct bh_arena *a, struct bh_json *spec)
{
    static const char *const lists[] = {"containers", "initContainers"};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(c, bh_tree_arr(spec, lists[i])) {
            struct bh_json *res = bh_tree_obj(c, "resources");
            bh_tree_fill(a, res, "requests", bh_tree_obj(res, "limits"));
        }
        if (bh_tree_bool(spec, "hostNetwork", false)) {
            bh_json_each(c, bh_tree_arr(spec, lists[i])) {
                bh_json_each(p, bh_tree_arr(c, "ports")) {
                    if (!bh_tree_i64(p, "hostPort", 0) && bh_tree_has(p, "containerPort"))
                        bh_json_set(a, p, "hostPort",
                                    bh_json_clone(a, bh_json_get(p, "containerPort")));
                }
            }
        }
    }
    pod_level_requests(a, spec);
}

void bh_adm_default_allocatable(struct bh_arena *a, struct bh_json *node)
{
    struct bh_json *status = bh_tree_obj(node, "status");
    const struct bh_json *capacity = bh_tree_obj(status, "capacity");

    if (capacity && !bh_tree_has(status, "allocatable"))
        bh_json_set(a, status, "allocatable", bh_json_clone(a, capacity));
}

void bh_api_defaults(struct bh_arena *a, struct bh_json *obj)
{
    struct bh_json *spec = bh_tree_obj(obj, "spec");

    if (bh_tree_is(obj, "kind", "Node"))
        bh_adm_default_allocatable(a, obj);
    if (!bh_tree_is(obj, "kind", "Pod") || !spec)
        return;
    bh_adm_default_requests(a, spec);
    bh_tree_dflt_str(a, spec, "schedulerName", "default-scheduler");
}
