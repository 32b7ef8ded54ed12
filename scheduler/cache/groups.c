/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/groups.c - pods that go together
 */
#include "scheduler/cache/groups.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

static uint64_t key_of(bh_sym namespace_, bh_sym name)
{
    return (uint64_t)namespace_ << 32 | name;
}

static struct bh_group *group_at(uint64_t v)
{
    return (struct bh_group *)(uintptr_t)v;
}

struct bh_group *bh_groups_find(const struct bh_groups *g, bh_sym namespace_, bh_sym name)
{
    uint64_t v;

    return bh_umap_get(&g->by_name, key_of(namespace_, name), &v) ? group_at(v) : NULL;
}

void bh_groups_fini(struct bh_groups *g)
{
    uint64_t k, v;

    bh_map_fini_values(&g->by_uid);
    for (size_t it = 0; bh_umap_next(&g->by_name, &it, &k, &v);)
        free(group_at(v));
    bh_umap_fini(&g->by_name);
}

bh_sym bh_groups_name(const struct bh_groups *g, const struct bh_pod_rec *pod,
                      const struct bh_shape_rec *shape)
{
    bh_sym name;

    if (g->label == BH_SYM_NONE)
        return pod->group;
    return bh_labels_get(bh_rec_at(shape, shape->labels, struct bh_kv), shape->labels.n, g->label,
                         &name)
               ? name
               : BH_SYM_NONE;
}

static struct bh_member *join(struct bh_groups *g, struct bh_str uid, bh_sym namespace_,
                              bh_sym name)
{
    struct bh_group *in = bh_groups_find(g, namespace_, name);
    struct bh_member *m = bh_calloc(1, sizeof(*m) + uid.n + 1);

    if (!in) {
        in = bh_calloc(1, sizeof(*in));
        in->namespace_ = namespace_;
        in->name = name;
        for (unsigned i = 0; i < BH_MEMBER_PLACES; i++)
            TAILQ_INIT(&in->at[i]);
        bh_umap_put(&g->by_name, key_of(namespace_, name), (uint64_t)(uintptr_t)in);
    }
    m->group = in;
    m->n_uid = uid.n;
    memcpy(m->uid, uid.p, uid.n);
    TAILQ_INSERT_TAIL(&in->at[BH_MEMBER_NOWHERE], m, link);
    in->n[BH_MEMBER_NOWHERE]++;
    (void)bh_map_put(&g->by_uid, uid.p, uid.n, m);
    return m;
}

/* To the list of the place that both sides make; one that is nowhere leaves. */
static void settle(struct bh_groups *g, struct bh_member *m)
{
    struct bh_group *in = m->group;
    const enum bh_member_place to = m->placed  ? m->placed
                                    : m->waits ? BH_MEMBER_UNSCHEDULED
                                               : BH_MEMBER_NOWHERE;

    if (to == m->at && to)
        return;
    TAILQ_REMOVE(&in->at[m->at], m, link);
    in->n[m->at]--;
    m->at = to;
    if (to) {
        TAILQ_INSERT_TAIL(&in->at[to], m, link);
        in->n[to]++;
        return;
    }
    in->n_gated -= m->gated;
    (void)bh_map_del(&g->by_uid, m->uid, m->n_uid);
    free(m);
    if (!bh_group_all(in)) {
        (void)bh_umap_del(&g->by_name, key_of(in->namespace_, in->name));
        free(in);
    }
}

/* Found, or made if it is to join. A label may change: then the pod leaves one group for another. NULL:
 * the pod is no member. */
static struct bh_member *member(struct bh_groups *g, const struct bh_pod_rec *pod,
                                const struct bh_shape_rec *shape, bool join_it)
{
    const struct bh_str uid = bh_rec_text(pod, pod->uid);
    const bh_sym name = bh_groups_name(g, pod, shape);
    struct bh_member *m = g->by_uid.len ? bh_map_get(&g->by_uid, uid.p, uid.n) : NULL;

    if (m && join_it && m->group->name != name) {
        const struct bh_member was = *m;
        m->waits = false;
        m->placed = BH_MEMBER_NOWHERE;
        settle(g, m);
        m = NULL;
        if (name != BH_SYM_NONE) {
            m = join(g, uid, shape->namespace_, name);
            m->waits = was.waits;
            m->placed = was.placed;
        }
    }
    return m || !join_it || name == BH_SYM_NONE ? m : join(g, uid, shape->namespace_, name);
}

void bh_groups_wait(struct bh_groups *g, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape, bool waits)
{
    struct bh_member *m = g->on ? member(g, pod, shape, waits) : NULL;

    if (!m)
        return;
    const bool gated = waits && shape->gates.n;
    m->group->n_gated += gated;
    m->group->n_gated -= m->gated;
    m->gated = gated;
    m->waits = waits;
    settle(g, m);
}

void bh_groups_place(struct bh_groups *g, const struct bh_pod_rec *pod,
                     const struct bh_shape_rec *shape, enum bh_member_place placed)
{
    struct bh_member *m = g->on ? member(g, pod, shape, placed) : NULL;

    if (!m)
        return;
    m->placed = placed;
    settle(g, m);
}

bool bh_group_policy(const struct bh_objects *o, const char *ns, const char *name,
                     struct bh_group_policy *ret)
{
    const K8s__PodGroup *m = (const void *)bh_objects_get(o, BH_KIND_PODGROUP, ns, name);
    struct bh_pod_group g;
    struct bh_err err;

    /* One that says nothing that could be acted on does not come from the watcher. */
    if (!m || bh_pod_group_read(m, &g, &err) < 0)
        return false;
    *ret = (struct bh_group_policy){.gang = g.min_count != BH_GROUP_NOT_A_GANG,
                                    .min_count = (uint32_t)g.min_count,
                                    .whole = g.whole,
                                    .priority = g.priority,
                                    .topology_key = g.topology_key};
    return true;
}
