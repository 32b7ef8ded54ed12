/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/pod_group.c - a PodGroup as scheduling sees it, whichever version the API server has
 *
 * Upstream: k8s.io/api/scheduling/{v1alpha2,v1alpha3,v1beta1}; the names of the conditions: 1.36 says
 * PodGroupScheduled, later versions PodGroupInitiallyScheduled.
 */
#include "common/k8s/pod_group.h"

#include <errno.h>

#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

static bool is_true(const K8s__PodGroupStatus *s, const char *type)
{
    for (size_t i = 0; s && i < s->n_conditions; i++)
        if (bh_streq(s->conditions[i]->type, type))
            return bh_streq(s->conditions[i]->status, "True");
    return false;
}

static int read_policy(const K8s__PodGroupSchedulingPolicy *p, struct bh_pod_group *ret,
                       struct bh_err *err)
{
    if (!p || !p->basic == !p->gang)
        return bh_err_set(err, -EINVAL, "spec.schedulingPolicy: must be either basic or gang");
    if (p->gang && p->gang->mincount < 1)
        return bh_err_set(err, -EINVAL,
                          "spec.schedulingPolicy.gang.minCount: must be at least 1, is %d",
                          (int)p->gang->mincount);
    ret->min_count = p->gang ? p->gang->mincount : BH_GROUP_NOT_A_GANG;
    return 0;
}

int bh_pod_group_read(const struct K8s__PodGroup *m, struct bh_pod_group *ret, struct bh_err *err)
{
    const K8s__ObjectMeta *meta = m->metadata;
    const K8s__PodGroupSpec *s = m->spec;

    if (!meta || !*meta->name || !*meta->namespace_ || !*meta->uid)
        return bh_err_set(err, -EINVAL, "metadata: name, namespace or uid is missing");
    *ret = (struct bh_pod_group){.ns = meta->namespace_,
                                 .name = meta->name,
                                 .uid = meta->uid,
                                 .generation = meta->generation};
    ret->version = m->served ? m->served : bh_kinds[BH_KIND_PODGROUP].version;
    ret->condition = bh_streq(ret->version, bh_kinds[BH_KIND_PODGROUP].version)
                         ? "PodGroupScheduled"
                         : "PodGroupInitiallyScheduled";
    ret->scheduled = is_true(m->status, ret->condition);
    if (s && s->schedulingconstraints && s->schedulingconstraints->n_topology)
        ret->topology_key = s->schedulingconstraints->topology[0]->key;
    ret->priority = s ? s->priority : 0;
    ret->whole = s && s->disruptionmode && bh_streq(s->disruptionmode, "PodGroup");
    return read_policy(s ? s->schedulingpolicy : NULL, ret, err);
}

/* Who made it is not kept: nothing here asks for the workload of a group. */
static K8s__PodGroupSpec *old_spec(struct bh_arena *a, const K8s__PodGroupSpecV1beta1 *from)
{
    static char single[] = "Pod", all[] = "PodGroup";
    K8s__PodGroupSpec *s = bh_pb_new(a, &k8s__pod_group_spec__descriptor);

    if (!s)
        return NULL;
    s->schedulingpolicy = from->schedulingpolicy;
    s->schedulingconstraints = from->schedulingconstraints;
    s->n_resourceclaims = from->n_resourceclaims;
    s->resourceclaims = from->resourceclaims;
    s->disruptionmode = from->disruptionmode && from->disruptionmode->all ? all : single;
    s->priorityclassname = from->priorityclassname;
    s->has_priority = from->has_priority;
    s->priority = from->priority;
    return s;
}

struct K8s__PodGroup *bh_pod_group_of(struct bh_arena *a, const struct bh_kind_info *k,
                                      const ProtobufCMessage *m)
{
    const K8s__PodGroupV1beta1 *from = (const K8s__PodGroupV1beta1 *)m;
    K8s__PodGroup *g = bh_pb_new(a, &k8s__pod_group__descriptor);

    if (!g)
        return NULL;
    if (m->descriptor == &k8s__pod_group__descriptor) {
        const K8s__PodGroup *same = (const K8s__PodGroup *)m;
        g->metadata = same->metadata;
        g->spec = same->spec;
        g->status = same->status;
    } else {
        g->metadata = from->metadata;
        g->status = from->status;
        if (from->spec && !(g->spec = old_spec(a, from->spec)))
            return NULL;
    }
    g->served = bh_arena_strdup(a, k->version);
    return g->served ? g : NULL;
}
