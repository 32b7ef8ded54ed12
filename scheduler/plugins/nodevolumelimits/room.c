/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/room.c - the rows: limits, what is attached, what is left
 */
#include "scheduler/plugins/nodevolumelimits/room_int.h"

void bh_room_init(struct bh_room *r)
{
    *r = (struct bh_room){.free_source = BH_NO_SOURCE};
}

void bh_room_fini(struct bh_room *r)
{
    for (uint32_t i = 0; i < r->cap_rows; i++) {
        free(r->row[i].limit);
        free(r->row[i].used.list);
        free(r->row[i].claim);
    }
    for (uint32_t i = 0; i < r->n_columns; i++)
        free(r->column[i].room);
    free(r->row);
    free(r->dirty);
    free(r->column);
    bh_umap_fini(&r->by_node);
    bh_room_sources_fini(r);
    bh_room_init(r);
}

const struct bh_room_column *bh_room_column(const struct bh_room *r, bh_sym driver)
{
    for (uint32_t i = 0; i < r->n_columns; i++)
        if (r->column[i].driver == driver)
            return &r->column[i];
    return NULL;
}

bool bh_room_holds(const struct bh_room *r, uint32_t row, bh_sym volume)
{
    return bh_attachables_contain(&r->row[row].used, volume);
}

/* ---- columns ---- */

static int32_t *new_room(uint32_t rows)
{
    int32_t *room = bh_reallocarray(NULL, rows ? rows : 1, sizeof *room);

    for (uint32_t i = 0; i < rows; i++)
        room[i] = BH_ROOM_MUCH;
    return room;
}

static uint32_t column_of(struct bh_room *r, bh_sym driver)
{
    for (uint32_t i = 0; i < r->n_columns; i++)
        if (r->column[i].driver == driver)
            return i;
    r->column = bh_reallocarray(r->column, r->n_columns + 1, sizeof *r->column);
    r->column[r->n_columns] =
        (struct bh_room_column){.driver = driver, .room = new_room(r->cap_rows)};
    return r->n_columns++;
}

static void set_room(struct bh_room *r, uint32_t column, uint32_t row, int64_t room)
{
    struct bh_room_column *c = &r->column[column];
    int32_t was = c->room[row];

    if (was < (int32_t)BH_ROOM_BINS)
        c->rows_with[BH_MAX(was, 0)]--;
    c->room[row] = room < -1 ? -1 : room > BH_ROOM_MUCH ? BH_ROOM_MUCH : (int32_t)room;
    if (c->room[row] < (int32_t)BH_ROOM_BINS)
        c->rows_with[BH_MAX(c->room[row], 0)]++;
}

static void reserve(struct bh_room *r, uint32_t rows)
{
    uint32_t old = r->cap_rows;

    if (rows <= old)
        return;
    r->row = bh_regrown(r->row, old, rows, sizeof *r->row);
    r->dirty = bh_reallocarray(r->dirty, rows, sizeof *r->dirty);
    for (uint32_t i = 0; i < r->n_columns; i++) {
        int32_t *room = new_room(rows);
        memcpy(room, r->column[i].room, old * sizeof *room);
        free(r->column[i].room);
        r->column[i].room = room;
    }
    r->cap_rows = rows;
}

/* ---- a row ---- */

void bh_room_touch(struct bh_room *r, uint32_t row)
{
    if (r->row[row].dirty)
        return;
    r->row[row].dirty = true;
    r->dirty[r->n_dirty++] = row;
}

/* false: it cannot be told, Filter fails. */
static bool add_volume(struct bh_call *c, struct bh_room *r, uint32_t row,
                       const struct bh_pod_info *pod, const struct bh_volume *v)
{
    struct bh_room_row *w = &r->row[row];
    struct bh_attachable a = {0};

    if (bh_uses_claim(v)) {
        bool owned = v->type == BH_VOL_EPHEMERAL;
        bh_sym name = owned ? bh_sym_internc(c->tab, bh_claim_name(c->arena, c->tab, pod->rec, v))
                            : v->source;
        if (name == BH_SYM_NONE)
            return false;
        uint32_t s = bh_room_use(c, r, row, pod->shape->namespace_, name, owned);
        w->claim[w->n_claims++] = s;
        const K8s__PersistentVolumeClaim *claim =
            owned ? bh_find_claim(c->objects, bh_sym_text(c->tab, pod->shape->namespace_),
                                  bh_sym_text(c->tab, name))
                  : NULL;
        if (claim && !bh_is_controlled_by(claim->metadata, pod->rec))
            return false;
        a = r->source[s].what;
    } else if (bh_in_tree_info[bh_in_tree_inline(v)].migrates && bh_attachable_inline(c, v, &a)) {
        return false;
    }
    if (a.volume != BH_SYM_NONE)
        w->used.list[w->used.n++] = a;
    return true;
}

static bool add_pods(struct bh_call *c, struct bh_room *r, uint32_t row,
                     const struct bh_node_info *ni)
{
    struct bh_room_row *w = &r->row[row];
    uint32_t n = 0;

    for (uint32_t i = 0; i < ni->n_pods; i++)
        n += ni->pods[i]->shape->volumes.n;
    if (n > w->cap_used) {
        w->cap_used = BH_MAX(n, 2 * w->cap_used);
        w->used.list = bh_reallocarray(w->used.list, w->cap_used, sizeof *w->used.list);
        w->claim = bh_reallocarray(w->claim, w->cap_used, sizeof *w->claim);
    }
    for (uint32_t i = 0; i < ni->n_pods && n; i++) {
        const struct bh_volume *v = bh_shape_volumes(ni->pods[i]->shape);
        for (uint32_t k = 0; k < ni->pods[i]->shape->volumes.n; k++)
            if (!add_volume(c, r, row, ni->pods[i], &v[k]))
                return false;
    }
    bh_attachables_make_set(&w->used);
    return true;
}

/* Another attachment of the node, before this one, is of the same volume. */
static bool is_repeated(const struct bh_room *r, uint32_t first, uint32_t attachment)
{
    for (uint32_t k = first; k != attachment; k = r->source[k].next_node)
        if (r->source[k].what.volume == r->source[attachment].what.volume)
            return true;
    return false;
}

/* What is left of each limit: used volumes count, and attached ones that no pod there uses. */
static void set_rooms(struct bh_room *r, struct bh_room_row *w, uint32_t row)
{
    uint64_t first;
    uint32_t attached = bh_umap_get(&r->attached, w->node, &first) ? (uint32_t)first : BH_NO_SOURCE;

    for (uint32_t i = 0; i < w->n_limits; i++) {
        bh_sym driver = r->column[w->limit[i].column].driver;
        int64_t n = bh_attachables_by(&w->used, driver);
        for (uint32_t k = attached; k != BH_NO_SOURCE; k = r->source[k].next_node) {
            const struct bh_attachable *a = &r->source[k].what;
            if (a->driver == driver && a->volume != BH_SYM_NONE &&
                !bh_attachables_contain(&w->used, a->volume) && !is_repeated(r, attached, k))
                n++;
        }
        set_room(r, w->limit[i].column, row, w->limit[i].limit - n);
    }
}

static void name_row(struct bh_call *c, struct bh_room *r, uint32_t row, bh_sym node)
{
    struct bh_room_row *w = &r->row[row];
    uint64_t key, at;

    if (w->node == node)
        return;
    if (w->node != BH_SYM_NONE) {
        key = bh_object_key("", bh_sym_text(c->tab, w->node));
        if (bh_umap_get(&r->by_node, key, &at) && at == row)
            (void)bh_umap_del(&r->by_node, key);
    }
    w->node = node;
    if (node != BH_SYM_NONE)
        bh_umap_put(&r->by_node, bh_object_key("", bh_sym_text(c->tab, node)), row);
}

static void work_out(struct bh_call *c, struct bh_room *r, uint32_t row)
{
    const struct bh_node_info *ni = c->cache->rows[row];
    struct bh_room_row *w = &r->row[row];

    w->dirty = false;
    for (uint32_t i = 0; i < w->n_claims; i++)
        bh_room_unuse(r, w->claim[i]);
    w->n_claims = 0;
    w->used.n = 0;
    r->n_errors -= w->error;
    w->error = false;
    if (!ni || ni->name != w->node || !w->limits_known) {
        for (uint32_t i = 0; i < w->n_limits; i++)
            set_room(r, w->limit[i].column, row, BH_ROOM_MUCH);
        w->n_limits = 0;
        w->limits_known = false;
    }
    name_row(c, r, row, ni ? ni->name : BH_SYM_NONE);
    if (!ni)
        return;
    if (!w->limits_known) {
        /* Of several entries of a driver the last with a limit counts. */
        const K8s__CSINode *csi = bh_find_csi_node(c->objects, bh_sym_text(c->tab, w->node));
        size_t n = csi && csi->spec ? csi->spec->n_drivers : 0;
        w->limits_known = true;
        if (n)
            w->limit = bh_reallocarray(w->limit, n, sizeof *w->limit);
        for (size_t i = n; i > 0; i--) {
            const K8s__CSINodeDriver *d = csi->spec->drivers[i - 1];
            uint32_t k = 0;
            if (!d->allocatable || !d->allocatable->has_count)
                continue;
            uint32_t column = column_of(r, bh_sym_internc(c->tab, d->name));
            while (k < w->n_limits && w->limit[k].column != column)
                k++;
            if (k == w->n_limits)
                w->limit[w->n_limits++] = (struct bh_room_limit){column, d->allocatable->count};
        }
    }
    if (!w->n_limits)
        return;
    w->error = !add_pods(c, r, row, ni);
    r->n_errors += w->error;
    if (!w->error)
        set_rooms(r, w, row);
}

/* ---- following the logs ---- */

static void touch_all(struct bh_room *r, uint32_t rows)
{
    for (uint32_t row = 0; row < rows; row++) {
        r->row[row].limits_known = false;
        bh_room_touch(r, row);
    }
}

static void follow_objects(struct bh_call *c, struct bh_room *r)
{
    const struct bh_objects *o = c->objects;
    uint64_t since = r->objects_pos;
    bool attachments = false;

    for (uint64_t pos = since; pos < o->log_end; pos++) {
        const struct bh_object_entry *change = bh_objects_change(o, pos);
        if (change->kind == BH_KIND_CSINODE) {
            uint64_t row;
            if (bh_umap_get(&r->by_node, change->key, &row)) {
                r->row[row].limits_known = false;
                bh_room_touch(r, (uint32_t)row);
            }
        } else
            bh_room_follow(c, r, change);
        attachments |= change->kind == BH_KIND_VOLUMEATTACHMENT;
    }
    if (attachments)
        bh_room_read_attachments(c, r, since);
    if (r->class_version != o->version[BH_KIND_STORAGECLASS])
        bh_room_refresh_all(c, r);
}

void bh_room_sync(struct bh_call *c, struct bh_room *r)
{
    const struct bh_cache *cache = c->cache;
    const struct bh_objects *o = c->objects;

    if (!r->started || r->objects_pos < o->log_begin) {
        bh_room_fini(r);
        reserve(r, c->cache->cols.cap_rows);
        bh_room_read_attachments(c, r, 0);
        touch_all(r, c->cache->cols.n_rows);
        r->started = true;
    } else {
        reserve(r, cache->cols.cap_rows);
        if (r->objects_pos < o->log_end)
            follow_objects(c, r);
        if (r->log_pos < cache->log_begin)
            touch_all(r, cache->cols.n_rows);
        for (uint64_t pos = BH_MAX(r->log_pos, cache->log_begin); pos < cache->log_end; pos++) {
            uint32_t i = pos & (cache->log_cap - 1);
            if (cache->log_what[i] != BH_ROW_SAME_PODS)
                bh_room_touch(r, cache->log[i]);
        }
    }
    r->log_pos = cache->log_end;
    r->objects_pos = o->log_end;
    r->class_version = o->version[BH_KIND_STORAGECLASS];
    while (r->n_dirty)
        work_out(c, r, r->dirty[--r->n_dirty]);
}
