/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumerestrictions/volume_restrictions.c - volumes that only one pod at a time
 * may use
 *
 * Upstream: pkg/scheduler/framework/plugins/volumerestrictions.
 */
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/volumebinding/hints.h"

BH_STATUS_CONST(disk_conflict, BH_UNSCHEDULABLE, "VolumeRestrictions",
                "node(s) had no available disk");
BH_STATUS_CONST(
    claim_in_use, BH_UNSCHEDULABLE, "VolumeRestrictions",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod");
BH_STATUS_CONST(no_state, BH_ERROR, "VolumeRestrictions",
                "cannot read \"PreFilterVolumeRestrictions\" from cycleState");

struct state {
    int64_t conflicts;    /* uses of the claims below, by pods on any node */
    const bh_sym *claims; /* ReadWriteOncePod, each name once */
    uint32_t n_claims;
};

/* ---- disks ---- */

static bool is_restricted(const struct bh_volume *v)
{
    return v->type == BH_VOL_GCE_PD || v->type == BH_VOL_EBS || v->type == BH_VOL_RBD ||
           v->type == BH_VOL_ISCSI;
}

static bool share_monitor(const struct bh_shape_rec *sa, const struct bh_volume *a,
                          const struct bh_shape_rec *sb, const struct bh_volume *b)
{
    const bh_sym *ma = bh_rec_at(sa, a->monitors, bh_sym), *mb = bh_rec_at(sb, b->monitors, bh_sym);

    for (uint32_t i = 0; i < a->monitors.n; i++)
        for (uint32_t k = 0; k < b->monitors.n; k++)
            if (ma[i] == mb[k])
                return true;
    return false;
}

static bool clash(const struct bh_shape_rec *sa, const struct bh_volume *a,
                  const struct bh_shape_rec *sb, const struct bh_volume *b)
{
    if (a->type != b->type || a->source != b->source)
        return false;
    if (a->type == BH_VOL_EBS)
        return true; /* even when both only read */
    if (a->type == BH_VOL_RBD && (a->extra != b->extra || !share_monitor(sa, a, sb, b)))
        return false;
    return !(a->flags & b->flags & BH_VOL_READ_ONLY);
}

/* Some restricted volume of sa clashes with a volume of sb. */
static bool shapes_clash(const struct bh_shape_rec *sa, const struct bh_shape_rec *sb)
{
    const struct bh_volume *a = bh_shape_volumes(sa), *b = bh_shape_volumes(sb);

    for (uint32_t i = 0; i < sa->volumes.n; i++)
        for (uint32_t k = 0; is_restricted(&a[i]) && k < sb->volumes.n; k++)
            if (clash(sa, &a[i], sb, &b[k]))
                return true;
    return false;
}

/* ---- claims for one pod ---- */

static bool has(const struct state *st, bh_sym claim)
{
    for (uint32_t i = 0; i < st->n_claims; i++)
        if (st->claims[i] == claim)
            return true;
    return false;
}

/* ---- extension points ---- */

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_volume *v = bh_shape_volumes(s);
    bool restricted = false;

    if (!s->volumes.n)
        return &bh_status_skip;
    struct state *st = bh_arena_new(c->arena, struct state);
    bh_sym *claims = bh_arena_new_array(c->arena, bh_sym, s->volumes.n + 1);
    c->pre_filter_state = st;
    st->claims = claims;
    for (uint32_t i = 0; i < s->volumes.n; i++) {
        restricted |= is_restricted(&v[i]);
        if (v[i].type != BH_VOL_CLAIM)
            continue;
        const char *name = bh_sym_text(c->tab, v[i].source);
        const K8s__PersistentVolumeClaim *claim =
            bh_find_claim(c->objects, bh_sym_text(c->tab, s->namespace_), name);
        if (!claim)
            return bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "VolumeRestrictions",
                                 "%s", bh_not_found(c->arena, "persistentvolumeclaim", name));
        for (size_t k = 0; claim->spec && k < claim->spec->n_accessmodes; k++)
            if (bh_streq(claim->spec->accessmodes[k], "ReadWriteOncePod") && !has(st, v[i].source))
                claims[st->n_claims++] = v[i].source;
    }
    for (uint32_t i = 0; i < st->n_claims; i++)
        st->conflicts += bh_cache_claim_in_use(c->cache, s->namespace_, claims[i]);
    return restricted || st->conflicts ? NULL : &bh_status_skip;
}

/* Namespaces are not compared and every volume counts: upstream's arithmetic. */
static const struct bh_status *change_pod(struct bh_call *c, const struct bh_pod_info *pod,
                                          const struct bh_node_info *node BH_UNUSED, int by)
{
    const struct bh_volume *v = bh_shape_volumes(pod->shape);
    struct state *st = c->pre_filter_state;

    for (uint32_t i = 0; i < pod->shape->volumes.n; i++)
        if (v[i].type == BH_VOL_CLAIM && has(st, v[i].source))
            st->conflicts += by;
    return NULL;
}

static void *clone_state(struct bh_call *c)
{
    return bh_arena_memdup(c->arena, c->pre_filter_state, sizeof(struct state));
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    const struct state *st = c->pre_filter_state;

    for (uint32_t i = 0; i < node->n_pods; i++)
        if (node->pods[i]->shape->volumes.n && shapes_clash(c->pod->shape, node->pods[i]->shape))
            return &disk_conflict;
    if (!st) /* the profile leaves PreFilter out */
        return &no_state;
    return st->conflicts > 0 ? &claim_in_use : NULL;
}

/* ---- events ---- */

static bool share_claim(const struct bh_shape_rec *sa, const struct bh_shape_rec *sb)
{
    const struct bh_volume *a = bh_shape_volumes(sa), *b = bh_shape_volumes(sb);

    for (uint32_t i = 0; i < sa->volumes.n; i++)
        for (uint32_t k = 0; a[i].type == BH_VOL_CLAIM && k < sb->volumes.n; k++)
            if (b[k].type == BH_VOL_CLAIM && a[i].source == b[k].source)
                return true;
    return false;
}

static enum bh_hint pod_gone(const struct bh_hint_call *c)
{
    const struct bh_shape_rec *gone = c->ev->old_shape;

    if (!gone)
        return BH_QUEUE;
    /* Disks know no namespaces; upstream skips pods of others all the same. */
    return bh_hint_if(shapes_clash(c->shape, gone) ||
                      (gone->namespace_ == c->shape->namespace_ && share_claim(c->shape, gone)));
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_POD, .actions = BH_EV_DELETE, .hint = pod_gone},
    /* Upstream leaves deletions out: with a node go the users of a ReadWriteOncePod claim on it. */
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_DELETE},
    {BH_ON_OBJECT, BH_KIND_PERSISTENTVOLUMECLAIM, BH_EV_ADD, bh_hint_named_claim},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_volume_restrictions = {
    BH_PLUGIN_HEAD("VolumeRestrictions"),
    .flags = BH_PLUGIN_OVERLAY | BH_PLUGIN_HINTS_BY_ESSENCE,
    .events = events,
    .pre_filter = pre_filter,
    .change_pod = change_pod,
    .clone_state = clone_state,
    .filter = filter,
    .idle = bh_volumes_idle,
};
