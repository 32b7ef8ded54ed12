/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/interpodaffinity/hints.c - which events may help a pod that this plugin
 * rejected
 *
 * Upstream:   pkg/scheduler/framework/plugins/interpodaffinity/plugin.go; differences: Berth wakes
 *             the pod in more cases, all of which can let it in: a pod that one of several
 *             anti-affinity terms matched goes or changes; namespace selectors are resolved; the
 *             last pod of the group that the pod itself would begin goes, or its node goes or
 *             leaves the domain; a node goes or leaves a domain that the terms of others keep this
 *             pod out of; a pod goes whose terms select the namespace of this one; a namespace gets
 *             other labels while terms select namespaces.
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
    return before && (any_own(m, own, own->anti_affinity, before) ||
                      bh_any_other_term_matches(m, before, before->anti_affinity, own) ||
                      may_begin_group(m, own, before));
}

/* A required list does not parse: an error upstream, and errors wake. */
static bool is_broken(const struct bh_hint_call *c)
{
    return bh_ipa_list_error(c->tab, c->shape, c->shape->affinity) ||
           bh_ipa_list_error(c->tab, c->shape, c->shape->anti_affinity);
}

static enum bh_hint on_pod(const struct bh_hint_call *c)
{
    const struct bh_cluster_event *ev = c->ev;
    struct bh_terms m;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    if (bh_hint_is_self(c, ev->new_pod) && ev->old_pod)
        return BH_QUEUE;
    if (!bh_had_node(ev->new_pod) && !bh_had_node(ev->old_pod))
        return BH_QUEUE_SKIP;
    if (is_broken(c))
        return BH_QUEUE;
    bh_arena_init(&a, 0);
    bh_terms_init(&m, c->tab, c->objects, &a);
    return bh_hint_if(pod_helps(&m, c->shape, ev->old_pod ? ev->old_shape : NULL,
                                ev->new_pod ? ev->new_shape : NULL));
}

static bool value_of(const struct bh_node_rec *n, bh_sym key, bh_sym *ret)
{
    return n && bh_labels_get(bh_rec_at(n, n->labels, struct bh_kv), n->labels.n, key, ret);
}

/* The node left the domain it was in, or came into another. */
static bool moved(const struct bh_node_rec *old, const struct bh_node_rec *neu, bh_sym key)
{
    bh_sym before = BH_SYM_NONE, after = BH_SYM_NONE;
    bool had = value_of(old, key, &before), has = value_of(neu, key, &after);

    return had != has || (has && before != after);
}

/* Pods on the node count in other domains now, or not at all. */
static bool own_domains_moved(struct bh_terms *m, const struct bh_hint_call *c)
{
    const struct bh_shape_rec *s = c->shape;
    const struct bh_pod_term *t = bh_rec_at(s, s->affinity, struct bh_pod_term);
    const struct bh_node_rec *old = c->ev->old_node, *neu = c->ev->new_node;
    bool begins = bh_own_terms_match(m, s, s->affinity, s);
    bh_sym value;

    for (uint32_t i = 0; i < s->affinity.n; i++)
        if (moved(old, neu, t[i].topology_key) &&
            (begins || value_of(neu, t[i].topology_key, &value)))
            return true;
    t = bh_rec_at(s, s->anti_affinity, struct bh_pod_term);
    for (uint32_t i = 0; i < s->anti_affinity.n; i++)
        if (moved(old, neu, t[i].topology_key) && value_of(old, t[i].topology_key, &value))
            return true;
    return false;
}

static bool domain_moved(struct bh_terms *m, const struct bh_hint_call *c,
                         const struct bh_shape_rec *other)
{
    const struct bh_pod_term *t = bh_rec_at(other, other->anti_affinity, struct bh_pod_term);

    for (uint32_t k = 0; k < other->anti_affinity.n; k++)
        if (moved(c->ev->old_node, c->ev->new_node, t[k].topology_key) &&
            bh_other_term_matches(m, other, &t[k], c->shape))
            return true;
    return false;
}

/* The same for the terms of pods on nodes, or nominated to this one, that keep this pod away. */
static bool others_domains_moved(struct bh_terms *m, const struct bh_hint_call *c)
{
    for (uint32_t i = 0; i < c->cache->n_affinity_shapes; i++)
        if (domain_moved(m, c, bh_shapes_rec(&c->cache->shapes, c->cache->affinity_shapes[i])))
            return true;
    for (const struct bh_nomination *n = bh_cache_nominations(c->cache, c->ev->old_node->name); n;
         n = n->next_on_node)
        if (domain_moved(m, c, n->info.shape))
            return true;
    return false;
}

/* A new node helps unless the pod wants company that no node without its keys has. */
static bool new_node_helps(const struct bh_shape_rec *s, const struct bh_node_rec *neu)
{
    const struct bh_pod_term *t = bh_rec_at(s, s->affinity, struct bh_pod_term);
    bh_sym value;

    for (uint32_t i = 0; i < s->affinity.n; i++)
        if (value_of(neu, t[i].topology_key, &value))
            return true;
    return !s->affinity.n || s->anti_affinity.n;
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    struct bh_terms m;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    if (is_broken(c))
        return BH_QUEUE;
    if (!c->ev->old_node)
        return bh_hint_if(!c->ev->new_node || new_node_helps(c->shape, c->ev->new_node));
    bh_arena_init(&a, 0);
    bh_terms_init(&m, c->tab, c->objects, &a);
    return bh_hint_if(own_domains_moved(&m, c) || others_domains_moved(&m, c));
}

static bool selects_namespaces(const struct bh_shape_rec *s, struct bh_slice list)
{
    const struct bh_pod_term *t = bh_rec_at(s, list, struct bh_pod_term);

    for (uint32_t i = 0; i < list.n; i++)
        if (!(t[i].namespace_selector.flags & BH_SELECTOR_NIL))
            return true;
    return false;
}

static enum bh_hint on_namespace(const struct bh_hint_call *c)
{
    if (!(c->ev->object_changes & BH_NAMESPACE_LABELS))
        return BH_QUEUE_SKIP;
    if (selects_namespaces(c->shape, c->shape->affinity) ||
        selects_namespaces(c->shape, c->shape->anti_affinity))
        return BH_QUEUE;
    for (uint32_t i = 0; i < c->cache->n_affinity_shapes; i++) {
        const struct bh_shape_rec *other =
            bh_shapes_rec(&c->cache->shapes, c->cache->affinity_shapes[i]);
        if (selects_namespaces(other, other->anti_affinity))
            return BH_QUEUE;
    }
    return BH_QUEUE_SKIP;
}

const struct bh_event_reg bh_ipa_events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_ADD | BH_EV_POD_LABEL | BH_EV_DELETE, .hint = on_pod},
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_DELETE | BH_EV_NODE_LABEL, .hint = on_node},
    {.on = BH_ON_OBJECT, .kind = BH_KIND_NAMESPACE, .actions = BH_EV_UPDATE, .hint = on_namespace},
    {.actions = 0},
};
