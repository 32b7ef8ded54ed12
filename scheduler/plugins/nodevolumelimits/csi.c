/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/csi.c - how many volumes of a driver a node can attach
 *
 * Upstream: pkg/scheduler/framework/plugins/nodevolumelimits; differences: none. The gate
 *           VolumeLimitScaling is off.
 */
#include "scheduler/plugins/nodevolumelimits/room.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/volumebinding/hints.h"

BH_STATUS_CONST(too_many, BH_UNSCHEDULABLE, "NodeVolumeLimits", "node(s) exceed max volume count");

struct args {
    struct bh_claim_memory *memory;
    struct bh_room *room;
};
/* The new pod's volumes, on nodes without [0] and with [1] a CSINode. */
struct state {
    struct bh_attachables wanted[2];
    const struct bh_status *error[2];
};

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct args *a = bh_arena_new(env->arena, struct args);

    (void)args;
    a->memory = bh_calloc(1, sizeof *a->memory);
    a->room = bh_calloc(1, sizeof *a->room);
    bh_room_init(a->room);
    *ret = a;
    return 0;
}

static void args_free(void *args)
{
    struct args *a = args;

    bh_claim_memory_fini(a->memory);
    free(a->memory);
    bh_room_fini(a->room);
    free(a->room);
}

static struct bh_claim_memory *memory(const struct bh_call *c)
{
    return ((const struct args *)c->args)->memory;
}

static bool any_relevant(const struct bh_shape_rec *s)
{
    const struct bh_volume *v = bh_shape_volumes(s);

    for (uint32_t i = 0; i < s->volumes.n; i++)
        if (bh_uses_claim(&v[i]) || bh_in_tree_inline(&v[i]) != BH_IN_TREE_NONE)
            return true;
    return false;
}

static void read_wanted(struct bh_call *c, struct state *st, bool has_csi)
{
    st->error[has_csi] =
        bh_attachables_of(c, memory(c), c->pod, has_csi, true, &st->wanted[has_csi]);
    bh_attachables_make_set(&st->wanted[has_csi]);
}

static struct state *new_state(struct bh_call *c)
{
    const struct bh_volume *v = bh_shape_volumes(c->pod->shape);
    struct state *st = bh_arena_new(c->arena, struct state);
    bool in_line = false;

    for (unsigned has_csi = 0; has_csi < 2; has_csi++)
        st->wanted[has_csi].list =
            bh_arena_new_array(c->arena, struct bh_attachable, c->pod->shape->volumes.n + 1);
    read_wanted(c, st, true);
    for (uint32_t i = 0; i < c->pod->shape->volumes.n; i++)
        in_line |= !bh_uses_claim(&v[i]);
    if (in_line) {
        read_wanted(c, st, false);
        return st;
    }
    st->error[0] = st->error[1];
    for (uint32_t i = 0; i < st->wanted[1].n; i++)
        if (!st->wanted[1].list[i].migrated)
            st->wanted[0].list[st->wanted[0].n++] = st->wanted[1].list[i];
    return st;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    if (!any_relevant(c->pod->shape))
        return &bh_status_skip;
    c->pre_filter_state = new_state(c);
    return NULL;
}

/* ---- a node ---- */

static bool has_limits(const K8s__CSINode *n)
{
    for (size_t i = 0; n && n->spec && i < n->spec->n_drivers; i++)
        if (n->spec->drivers[i]->allocatable && n->spec->drivers[i]->allocatable->has_count)
            return true;
    return false;
}

static bool exceeds(struct bh_call *c, const K8s__CSINode *csi, const struct bh_attachables *wanted,
                    const struct bh_attachables *used, bh_sym node)
{
    for (uint32_t i = 0; i < wanted->n; i++) {
        bh_sym driver = wanted->list[i].driver;
        int64_t more = 0;
        int32_t limit;
        if (bh_attachables_contain(used, wanted->list[i].volume) ||
            !bh_attach_limit(csi, bh_sym_text(c->tab, driver), &limit))
            continue;
        for (uint32_t k = 0; k < wanted->n; k++)
            more += wanted->list[k].driver == driver &&
                    !bh_attachables_contain(used, wanted->list[k].volume);
        /* On the node: those of its pods, and attached ones that none uses. */
        uint32_t n_attached;
        const struct bh_attachment *attached = bh_attached_to(c, memory(c), node, &n_attached);
        int64_t n = bh_attachables_by(used, driver);
        for (uint32_t j = 0; j < n_attached; j++)
            n += attached[j].driver == driver && !bh_attachables_contain(used, attached[j].volume);
        if (n + more > limit)
            return true;
    }
    return false;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    /* The profile may leave PreFilter out. */
    const struct state *st = c->pre_filter_state ? c->pre_filter_state : new_state(c);
    const K8s__CSINode *csi = bh_find_csi_node(c->objects, bh_sym_text(c->tab, node->name));
    struct bh_attachables used;

    if (st->error[csi != NULL])
        return st->error[csi != NULL];
    if (!st->wanted[csi != NULL].n || !has_limits(csi))
        return NULL;
    struct bh_arena_mark mark = bh_arena_mark(c->arena);
    size_t room = 0;
    for (uint32_t i = 0; i < node->n_pods; i++)
        room += node->pods[i]->shape->volumes.n;
    used = (struct bh_attachables){
        .list = room ? bh_arena_new_array(c->arena, struct bh_attachable, room) : NULL};
    for (uint32_t i = 0; i < node->n_pods; i++) {
        if (!node->pods[i]->shape->volumes.n)
            continue;
        const struct bh_status *s =
            bh_attachables_of(c, memory(c), node->pods[i], true, false, &used);
        if (s)
            return s;
    }
    bh_attachables_make_set(&used);
    bool full = exceeds(c, csi, &st->wanted[1], &used, node->name);
    bh_arena_rewind(c->arena, mark);
    return full ? &too_many : NULL;
}

/* ---- all nodes ---- */

/* No row has room for less than that many. */
static bool fits_everywhere(const struct bh_room_column *column, int64_t n)
{
    bool fits = n < (int64_t)BH_ROOM_BINS;

    for (int64_t i = 0; fits && i < n; i++)
        fits = !column->rows_with[i];
    return fits;
}

/* Limits, and what stands for every node's pods, are current after this. false: some node cannot be
 * told, or the pod's own volumes. */
static bool can_tell(struct bh_call *c)
{
    const struct state *st = c->pre_filter_state;
    struct bh_room *room = ((const struct args *)c->args)->room;

    if (st->error[0] || st->error[1])
        return false;
    bh_room_sync(c, room);
    return !st->wanted[1].n || !room->n_errors;
}

static enum bh_overlay_answer ask(struct bh_call *c, uint32_t *rows BH_UNUSED,
                                  uint32_t *n BH_UNUSED)
{
    const struct state *st = c->pre_filter_state;
    const struct bh_room *room = ((const struct args *)c->args)->room;
    enum bh_overlay_answer answer = BH_OVERLAY_ALWAYS; /* no node limits any of the drivers */

    if (!can_tell(c))
        return BH_OVERLAY_FAILS;
    for (uint32_t i = 0; i < st->wanted[1].n; i++) {
        bh_sym driver = st->wanted[1].list[i].driver;
        const struct bh_room_column *column = bh_room_column(room, driver);
        if (column && !fits_everywhere(column, bh_attachables_by(&st->wanted[1], driver)))
            return BH_OVERLAY_SOME;
        if (column)
            answer = BH_OVERLAY_ALL;
    }
    return answer;
}

/* Of the driver's volumes that the pod wants, those that the node holds already need no room. */
static bool has_room(struct bh_call *c, const struct bh_room_column *column, uint32_t row)
{
    const struct bh_attachables *wanted = &((const struct state *)c->pre_filter_state)->wanted[1];
    const struct bh_room *room = ((const struct args *)c->args)->room;
    int64_t more = 0;

    for (uint32_t i = 0; i < wanted->n; i++)
        more += wanted->list[i].driver == column->driver &&
                !bh_room_holds(room, row, wanted->list[i].volume);
    return !more || more <= column->room[row];
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    const struct state *st = c->pre_filter_state;
    const struct bh_room *room = ((const struct args *)c->args)->room;

    if (!can_tell(c))
        return bh_filter_one_by_one(c, &bh_plugin_node_volume_limits, rows, n);
    for (uint32_t i = 0; i < st->wanted[1].n; i++) {
        bh_sym driver = st->wanted[1].list[i].driver;
        const struct bh_room_column *column = bh_room_column(room, driver);
        int64_t more = bh_attachables_by(&st->wanted[1], driver);
        uint32_t m = 0;
        for (uint32_t k = 0; column && k < n; k++)
            if (column->room[rows[k]] >= more || has_room(c, column, rows[k]))
                rows[m++] = rows[k];
        n = column ? m : n;
    }
    return n;
}

static const struct bh_overlay_ops overlay = {.ask = ask};

/* ---- events ---- */

static enum bh_hint pod_gone(const struct bh_hint_call *c)
{
    if (!c->ev->old_pod || !c->ev->old_shape)
        return BH_QUEUE;
    return bh_hint_if(bh_had_node(c->ev->old_pod) && any_relevant(c->ev->old_shape));
}

/* A volume that the node holds already needs no place of its own. */
static enum bh_hint pod_came(const struct bh_hint_call *c)
{
    const struct bh_shape_rec *other = c->ev->new_shape;
    const struct bh_volume *mine = bh_shape_volumes(c->shape);

    if (!c->ev->new_pod || !other)
        return BH_QUEUE;
    const struct bh_volume *v = bh_shape_volumes(other);
    for (uint32_t i = 0; i < c->shape->volumes.n; i++) {
        bool claim = mine[i].type == BH_VOL_CLAIM;
        for (uint32_t k = 0; k < other->volumes.n; k++)
            if (mine[i].type == v[k].type && mine[i].source == v[k].source &&
                (!claim || c->shape->namespace_ == other->namespace_))
                return BH_QUEUE;
    }
    return BH_QUEUE_SKIP;
}

static enum bh_hint csi_node_changed(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_always(c->ev) || c->ev->object_changes & BH_CSI_NODE_LIMIT_GREW);
}

/* A pod that only has ephemeral volumes is not woken, as upstream. */
static enum bh_hint detached(const struct bh_hint_call *c)
{
    const struct bh_volume *v = bh_shape_volumes(c->shape);

    if (c->ev->object_driver == BH_SYM_NONE)
        return BH_QUEUE;
    for (uint32_t i = 0; i < c->shape->volumes.n; i++) {
        enum bh_in_tree p = bh_in_tree_inline(&v[i]);
        if (v[i].type == BH_VOL_CLAIM ||
            (p != BH_IN_TREE_NONE &&
             bh_streq(bh_in_tree_info[p].driver, bh_sym_text(c->tab, c->ev->object_driver))))
            return BH_QUEUE;
    }
    return BH_QUEUE_SKIP;
}

static const struct bh_event_reg events[] = {
    {BH_ON_OBJECT, BH_KIND_CSINODE, BH_EV_ADD | BH_EV_UPDATE, csi_node_changed},
    {BH_ON_OBJECT, BH_KIND_CSINODE, BH_EV_DELETE, NULL}, /* not upstream: and its limits with it */
    {.on = BH_ON_NODE, .actions = BH_EV_ADD}, /* not upstream: without CSINode it has no limits */
    {.on = BH_ON_POD, .actions = BH_EV_ADD, .hint = pod_came}, /* not upstream */
    {.on = BH_ON_POD, .actions = BH_EV_DELETE, .hint = pod_gone},
    {BH_ON_OBJECT, BH_KIND_PERSISTENTVOLUMECLAIM, BH_EV_ADD, bh_hint_own_claim},
    {BH_ON_OBJECT, BH_KIND_VOLUMEATTACHMENT, BH_EV_DELETE, detached},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_node_volume_limits = {
    BH_PLUGIN_HEAD("NodeVolumeLimits"),
    .flags = BH_PLUGIN_OVERLAY | BH_PLUGIN_HINTS_BY_ESSENCE,
    .args_new = args_new,
    .args_free = args_free,
    .events = events,
    .pre_filter = pre_filter,
    .filter = filter,
    .filter_rows = filter_rows,
    .overlay = &overlay,
    .idle = bh_volumes_idle,
};
