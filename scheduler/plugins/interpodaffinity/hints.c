/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/hints.c - which events may help a pod that this plugin
 * rejected
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go; differences: Berth wakes
 * the pod in five cases more, all of which can let it in: a pod that one of several anti-affinity
 *           terms matched goes or changes; namespace selectors are resolved; the last pod of the
 * group that the pod itself would begin goes; nodes change for a pod that has no terms and was
 *           rejected by those of others; a pod goes whose terms select the namespace of this one.
 */
#include "scheduler/plugins/interpodaffinity/affinity.h"

static bool any_own(struct bh_terms *m, const struct bh_shape_rec *own, struct bh_slice list,
                    const struct bh_shape_rec *pod)
{
    const struct bh_pod_term *t = bh_rec_at(own, list, struct bh_pod_term);

    for (uint32_t i = 0; i < list.n; i++)
        if (bh_own_term_matches(m, own, &t[i], pod))
            return true;
    return false;
}

static bool any_other(struct bh_terms *m, const struct bh_shape_rec *other,
                      const struct bh_shape_rec *incoming)
{
    const struct bh_pod_term *t = bh_rec_at(other, other->anti_affinity, struct bh_pod_term);

    for (uint32_t i = 0; i < other->anti_affinity.n; i++)
        if (bh_other_term_matches(m, other, &t[i], incoming))
            return true;
    return false;
}

/* An anti-affinity term that meant the pod before and does not any more. */
static bool some_released(struct bh_terms *m, const struct bh_shape_rec *own,
                          const struct bh_shape_rec *before, const struct bh_shape_rec *after)
{
    const struct bh_pod_term *t = bh_rec_at(own, own->anti_affinity, struct bh_pod_term);

    for (uint32_t i = 0; i < own->anti_affinity.n; i++)
        if (bh_own_term_matches(m, own, &t[i], before) &&
            !bh_own_term_matches(m, own, &t[i], after))
            return true;
    return false;
}

/* The group that the pod waits for may be gone, and then it may begin a new one. */
static bool may_begin_group(struct bh_terms *m, const struct bh_shape_rec *own,
                            const struct bh_shape_rec *gone)
{
    return bh_own_terms_match(m, own, own->affinity, gone) &&
           bh_own_terms_match(m, own, own->affinity, own);
}

static bool pod_helps(struct bh_terms *m, const struct bh_shape_rec *own,
                      const struct bh_shape_rec *before, const struct bh_shape_rec *after)
{
    if (before && after)
        return (!bh_own_terms_match(m, own, own->affinity, before) &&
                bh_own_terms_match(m, own, own->affinity, after)) ||
               some_released(m, own, before, after) ||
               (!bh_own_terms_match(m, own, own->affinity, after) &&
                may_begin_group(m, own, before));
    if (after)
        return bh_own_terms_match(m, own, own->affinity, after);
    return before && (any_own(m, own, own->anti_affinity, before) || any_other(m, before, own) ||
                      may_begin_group(m, own, before));
}

static enum bh_hint on_pod(const struct bh_hint_call *c)
{
    const struct bh_cluster_event *ev = c->ev;
    struct bh_terms m;
    struct bh_arena a;

    if (bh_same_pod(ev->new_pod, c->pod->pod) && ev->old_pod)
        return BH_QUEUE;
    if (!bh_had_node(ev->new_pod) && !bh_had_node(ev->old_pod))
        return BH_QUEUE_SKIP;
    bh_arena_init(&a, 0);
    bh_terms_init(&m, c->tab, c->objects, &a);
    bool helps = pod_helps(&m, c->shape, ev->old_pod ? ev->old_shape : NULL,
                           ev->new_pod ? ev->new_shape : NULL);
    bh_arena_fini(&a);
    return helps ? BH_QUEUE : BH_QUEUE_SKIP;
}

static bool value_of(const struct bh_node_rec *n, bh_sym key, bh_sym *ret)
{
    return n && bh_labels_get(bh_rec_at(n, n->labels, struct bh_kv), n->labels.n, key, ret);
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    const struct bh_shape_rec *s = c->shape;
    const struct bh_pod_term *t = bh_rec_at(s, s->affinity, struct bh_pod_term);
    const struct bh_node_rec *old = c->ev->old_node, *neu = c->ev->new_node;

    if (!neu)
        return BH_QUEUE_SKIP;
    if (!s->affinity.n && !s->anti_affinity.n)
        return BH_QUEUE;
    for (uint32_t i = 0; i < s->affinity.n; i++) {
        bh_sym before = BH_SYM_NONE, after = BH_SYM_NONE;
        bool had = value_of(old, t[i].topology_key, &before);
        if (value_of(neu, t[i].topology_key, &after) && (!had || before != after))
            return BH_QUEUE;
    }
    t = bh_rec_at(s, s->anti_affinity, struct bh_pod_term);
    for (uint32_t i = 0; i < s->anti_affinity.n; i++) {
        bh_sym before = BH_SYM_NONE, after = BH_SYM_NONE;
        bool had = value_of(old, t[i].topology_key, &before);
        bool has = value_of(neu, t[i].topology_key, &after);
        if (!old || (had && (!has || before != after)))
            return BH_QUEUE;
    }
    return BH_QUEUE_SKIP;
}

const struct bh_event_reg bh_ipa_events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_ADD | BH_EV_POD_LABEL | BH_EV_DELETE, .hint = on_pod},
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_LABEL, .hint = on_node},
    {.actions = 0},
};
