/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/store.c - all objects, found by name, node and owner, and the history of commits
 *
 * Owns:       buckets (one per stored type), slots, the rings of history, frozen pages.
 * Invariants: revisions rise by one with every commit of any type; a slot is in its bucket's map
 *             exactly while cur is set; order[] names every live slot once. history holds every
 *             commit of the bucket newer than evicted_rv. Cost: a commit is O(1); a list is O(n),
 *             and O(t log t) for t names added since the last one.
 */
#include "simulator/server/data.h"
#include "simulator/server/custom.h"
#include "simulator/server/history.h"
#include "simulator/server/watch.h"

#include <errno.h>

#define HISTORY_BYTES_MAX ((size_t)128 << 20)
#define UNSORTED_MAX      8192

struct bh_sim_bucket *bh_sim_bucket(struct bh_sim *s, const struct bh_sim_type *t)
{
    return t->custom ? t->custom->bucket : &s->buckets[bh_sim_type_stored(t) - bh_sim_types];
}

/* ---- indexes --------------------------------------------------------------------------------- */

static void node_unlink(struct bh_sim *s, struct bh_sim_slot *slot)
{
    struct bh_sim_node_list *l = slot->node;
    if (!l)
        return;
    LIST_REMOVE(slot, same_node);
    slot->node = NULL;
    if (LIST_EMPTY(&l->all)) {
        bh_map_del(&s->nodes, l->node, strlen(l->node));
        free(l);
    }
}

static void owner_link(struct bh_sim *s, struct bh_sim_slot *slot, const char *uid)
{
    size_t n = strlen(uid);
    struct bh_sim_own_list *l = bh_map_get(&s->owners, uid, n);
    if (!l) {
        l = bh_malloc(sizeof(*l) + n + 1);
        LIST_INIT(&l->all);
        memcpy(l->uid, uid, n + 1);
        bh_map_put(&s->owners, uid, n, l);
    }
    struct bh_sim_own *o = bh_malloc(sizeof(*o));
    *o = (struct bh_sim_own){.slot = slot, .list = l};
    LIST_INSERT_HEAD(&l->all, o, same);
    SLIST_INSERT_HEAD(&slot->owners, o, more);
}

static bool same_owners(const struct bh_sim_obj *a, const struct bh_sim_obj *b)
{
    if (a->n_owners != b->n_owners)
        return false;
    for (uint32_t i = 0; i < a->n_owners; i++) {
        if (!bh_streq(a->owner_uids[i], b->owner_uids[i]))
            return false;
    }
    return true;
}

/* now NULL: the object is gone. */
static void reindex(struct bh_sim *s, struct bh_sim_slot *slot, const struct bh_sim_obj *old,
                    const struct bh_sim_obj *now)
{
    const struct bh_sim_obj *any = now ? now : old;
    if ((any->type->flags & BH_SIM_GRACEFUL) &&
        (!old || !now || !bh_streq(old->node_name, now->node_name))) {
        node_unlink(s, slot);
        if (now) {
            const char *node = now->node_name;
            size_t n = strlen(node);
            struct bh_sim_node_list *l = bh_map_get(&s->nodes, node, n);
            if (!l) {
                l = bh_malloc(sizeof(*l) + n + 1);
                LIST_INIT(&l->all);
                memcpy(l->node, node, n + 1);
                bh_map_put(&s->nodes, node, n, l);
            }
            slot->node = l;
            LIST_INSERT_HEAD(&l->all, slot, same_node);
        }
    }
    if (old && now && same_owners(old, now))
        return;
    for (struct bh_sim_own *o; (o = SLIST_FIRST(&slot->owners));) {
        SLIST_REMOVE_HEAD(&slot->owners, more);
        LIST_REMOVE(o, same);
        if (LIST_EMPTY(&o->list->all)) {
            bh_map_del(&s->owners, o->list->uid, strlen(o->list->uid));
            free(o->list);
        }
        free(o);
    }
    for (uint32_t i = 0; now && i < now->n_owners; i++)
        owner_link(s, slot, now->owner_uids[i]);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static size_t make_key(char *out, size_t cap, const char *ns, const char *name)
{
    size_t a = strlen(ns), b = strlen(name);
    if (a + b + 2 > cap)
        return 0;
    memcpy(out, ns, a);
    out[a] = '/';
    memcpy(out + a + 1, name, b + 1);
    return a + 1 + b;
}

struct bh_sim_slot *bh_sim_slot_get(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                                    const char *name)
{
    char key[600];
    size_t n = make_key(key, sizeof(key), ns, name);
    return n ? bh_map_get(&bh_sim_bucket(s, t)->slots, key, n) : NULL;
}

static struct bh_sim_slot *slot_add(struct bh_sim_bucket *b, const struct bh_sim_obj *o)
{
    char key[600];
    size_t n = make_key(key, sizeof(key), o->ns, o->name);
    bh_assert(n > 0);
    if (b->n_order - b->n_sorted >= UNSORTED_MAX)
        bh_sim_sort(b); /* a little each time, rather than all of it when a list asks */
    struct bh_sim_slot *slot = bh_calloc(1, sizeof(*slot));
    bh_map_put(&b->slots, key, n, slot);
    BH_GROW(b->order, b->n_order, b->cap_order);
    b->order[b->n_order++] = slot;
    return slot;
}

/* ---- history --------------------------------------------------------------------------------- */

struct bh_sim_event *bh_sim_ring_push(struct bh_sim_ring *r, enum bh_sim_change c,
                                      struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 64;
        struct bh_sim_event *v = bh_reallocarray(NULL, cap, sizeof(*v));
        for (size_t i = 0; i < r->n; i++)
            v[i] = *bh_sim_ring_at(r, i);
        free(r->v);
        *r = (struct bh_sim_ring){.v = v, .cap = cap, .n = r->n};
    }
    struct bh_sim_event *e = bh_sim_ring_at(r, r->n++);
    *e = (struct bh_sim_event){.change = c,
                               .rv = obj->rv,
                               .old = old ? bh_sim_obj_ref(old) : NULL,
                               .obj = bh_sim_obj_ref(obj)};
    return e;
}

struct bh_sim_event bh_sim_ring_take(struct bh_sim_ring *r)
{
    struct bh_sim_event e = r->v[r->first];
    r->first = (r->first + 1) & (r->cap - 1);
    r->n--;
    return e;
}

void bh_sim_event_fini(struct bh_sim_event *e)
{
    bh_sim_obj_unref(e->old);
    bh_sim_obj_unref(e->obj);
}

size_t bh_sim_history_after(const struct bh_sim_bucket *b, uint64_t rv)
{
    size_t lo = 0, hi = b->ring.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (bh_sim_history_at(b, mid)->rv <= rv)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void history_pop(struct bh_sim_bucket *b)
{
    struct bh_sim_event e = bh_sim_ring_take(&b->ring);
    b->evicted_rv = e.rv;
    b->ring_bytes -= e.obj->json_n;
    bh_sim_event_fini(&e);
}

/* ---- commits --------------------------------------------------------------------------------- */

static void publish(struct bh_sim *s, struct bh_sim_bucket *b, enum bh_sim_change c,
                    struct bh_sim_obj *old, struct bh_sim_obj *obj, const struct bh_json *tree)
{
    bh_assert(obj->rv == s->rv + 1);
    s->rv = obj->rv;
    bh_cell_add(s->metrics.commits, 1);
    bh_sim_history_add(s, c, obj);
    bh_sim_data_add(s, c, obj);
    while (b->ring.n && (b->ring.n >= (size_t)s->opt.history_events ||
                         b->ring_bytes + obj->json_n > HISTORY_BYTES_MAX))
        history_pop(b);
    b->ring_bytes += obj->json_n;
    b->last_rv = obj->rv;
    const struct bh_sim_event *e = bh_sim_ring_push(&b->ring, c, old, obj);
    if (b->n_watches)
        bh_sim_watch_dispatch(s, b, e, tree);
    bh_sim_listen_queue(s, c, old, obj);
    if (obj->type->flags & BH_SIM_DEFINES)
        bh_sim_custom_commit(s, obj, c == BH_SIM_DELETED);
}

void bh_sim_commit(struct bh_sim *s, struct bh_sim_slot *slot, struct bh_sim_obj *obj,
                   const struct bh_json *tree)
{
    struct bh_sim_bucket *b = bh_sim_bucket(s, obj->type);
    if (!slot)
        slot = slot_add(b, obj);
    struct bh_sim_obj *old = slot->cur;
    slot->cur = obj;
    reindex(s, slot, old, obj);
    publish(s, b, old ? BH_SIM_MODIFIED : BH_SIM_ADDED, old, obj, tree);
    bh_sim_obj_unref(old);
}

static void unlink_slot(struct bh_sim *s, struct bh_sim_bucket *b, struct bh_sim_slot *slot)
{
    const struct bh_sim_obj *old = slot->cur;
    char key[600];
    size_t n = make_key(key, sizeof(key), old->ns, old->name);
    bh_map_del(&b->slots, key, n);
    reindex(s, slot, old, NULL);
    slot->cur = NULL;
    b->n_dead++;
}

void bh_sim_commit_delete(struct bh_sim *s, struct bh_sim_slot *slot)
{
    struct bh_sim_obj *old = slot->cur;
    if (old->type->flags & BH_SIM_DEFINES)
        bh_sim_custom_empty(s, old);
    struct bh_sim_bucket *b = bh_sim_bucket(s, old->type);
    struct bh_sim_obj *last = bh_sim_obj_with_rv(old, s->rv + 1);
    unlink_slot(s, b, slot);
    if (b->n_dead > 1024 && b->n_dead > b->n_order / 2)
        bh_sim_sort(b);
    publish(s, b, BH_SIM_DELETED, old, last, NULL);
    bh_sim_obj_unref(old);
    bh_sim_obj_unref(last);
}

/* ---- from a file ----------------------------------------------------------------------------- */

int bh_sim_store_restore_tree(struct bh_sim *s, const struct bh_json *obj, uint64_t rv, bool gone,
                              struct bh_err *err)
{
    const char *version = bh_json_get_str(obj, "apiVersion"), *kind = bh_json_get_str(obj, "kind");
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    const char *name = bh_json_get_str(meta, "name");
    const struct bh_sim_type *t = NULL;
    if (version && kind)
        t = bh_sim_find_kind(s, version, kind);
    if (version && kind && (!t || t->stored_as))
        obj = bh_sim_custom_adopt(s, obj, &t);
    if (!t || t->stored_as)
        return bh_err_set(err, -EINVAL, "want an object of a kind that is stored, got %s %s",
                          version ? version : "none", kind ? kind : "");
    if (!name || !*name || !bh_json_get_str(meta, "resourceVersion"))
        return bh_err_set(err, -EINVAL, "want metadata with name and resourceVersion");
    struct bh_sim_obj *o = bh_sim_obj_new(s, t, obj, rv);
    struct bh_sim_bucket *b = bh_sim_bucket(s, t);
    struct bh_sim_slot *slot = bh_sim_slot_get(s, t, o->ns, o->name);
    struct bh_sim_obj *old = slot ? slot->cur : NULL;
    if (t->flags & BH_SIM_DEFINES)
        bh_sim_custom_commit(s, o, gone);
    if (gone) {
        if (slot)
            unlink_slot(s, b, slot);
        bh_sim_obj_unref(o);
    } else {
        if (!slot)
            slot = slot_add(b, o);
        slot->cur = o;
        reindex(s, slot, old, o);
    }
    bh_sim_obj_unref(old);
    return 0;
}

void bh_sim_store_restored(struct bh_sim *s, uint64_t rv)
{
    s->rv = rv;
    for (size_t i = 0; i < bh_sim_bucket_count(s); i++) {
        struct bh_sim_bucket *b = bh_sim_bucket_at(s, i);
        b->evicted_rv = b->last_rv = rv;
    }
}

/* ---- order, lists ---------------------------------------------------------------------------- */

int bh_sim_key_cmp(const char *ns_a, const char *name_a, const char *ns_b, const char *name_b)
{
    int c = strcmp(ns_a, ns_b);
    return c ? c : strcmp(name_a, name_b);
}

size_t bh_sim_seek(const struct bh_sim_bucket *b, const struct bh_sim_objs *frozen, const char *ns,
                   const char *name)
{
    size_t lo = 0, hi = frozen ? frozen->n : b->n_order;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct bh_sim_obj *o = frozen ? frozen->v[mid] : b->order[mid]->cur;
        if (bh_sim_key_cmp(o->ns, o->name, ns, name) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int slot_cmp(const void *x, const void *y)
{
    const struct bh_sim_obj *a = (*(struct bh_sim_slot *const *)x)->cur;
    const struct bh_sim_obj *b = (*(struct bh_sim_slot *const *)y)->cur;
    return bh_sim_key_cmp(a->ns, a->name, b->ns, b->name);
}

static size_t drop_dead(struct bh_sim_slot **v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i]->cur)
            v[k++] = v[i];
        else
            free(v[i]);
    }
    return k;
}

/* The first of v[lo..hi) that comes after slot: strides that double, then halves, because what is
 * new mostly lies close together, and comparing costs cache misses. */
static size_t behind(struct bh_sim_slot *const *v, size_t lo, size_t hi,
                     struct bh_sim_slot *const slot)
{
    size_t step = 1;
    while (lo + step < hi && slot_cmp(&v[lo + step - 1], &slot) < 0) {
        lo += step;
        step *= 2;
    }
    hi = BH_MIN(hi, lo + step);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (slot_cmp(&v[mid], &slot) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void bh_sim_sort(struct bh_sim_bucket *b)
{
    if (!b->n_dead && b->n_sorted == b->n_order)
        return;
    struct bh_sim_slot **tail = b->order + b->n_sorted;
    size_t n_tail = drop_dead(tail, b->n_order - b->n_sorted);
    size_t n_head = drop_dead(b->order, b->n_sorted);
    if (n_tail)
        qsort(tail, n_tail, sizeof(*tail), slot_cmp);
    struct bh_sim_slot **out = bh_reallocarray(NULL, b->cap_order ? b->cap_order : 1, sizeof(*out));
    size_t i = 0, n = 0;
    for (size_t j = 0; j < n_tail; j++) {
        size_t upto = behind(b->order, i, n_head, tail[j]);
        memcpy(out + n, b->order + i, (upto - i) * sizeof(*out));
        n += upto - i;
        i = upto;
        out[n++] = tail[j];
    }
    if (n_head > i)
        memcpy(out + n, b->order + i, (n_head - i) * sizeof(*out));
    n += n_head - i;
    free(b->order);
    b->order = out;
    b->n_order = b->n_sorted = n;
    b->n_dead = 0;
}

struct bh_sim_obj *bh_sim_get(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                              const char *name)
{
    struct bh_sim_slot *slot = bh_sim_slot_get(s, t, ns, name);
    return slot ? slot->cur : NULL;
}

static void objs_add(struct bh_sim_objs *l, size_t *cap, struct bh_sim_obj *o)
{
    BH_GROW(l->v, l->n, *cap);
    l->v[l->n++] = bh_sim_obj_ref(o);
}

void bh_sim_objs_fini(struct bh_sim_objs *l)
{
    for (size_t i = 0; i < l->n; i++)
        bh_sim_obj_unref(l->v[i]);
    free(l->v);
    *l = (struct bh_sim_objs){0};
}

void bh_sim_list(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                 struct bh_sim_objs *ret)
{
    struct bh_sim_bucket *b = bh_sim_bucket(s, t);
    bool all = !ns || !*ns;
    size_t cap = 0;
    *ret = (struct bh_sim_objs){0};
    bh_sim_sort(b);
    for (size_t i = all ? 0 : bh_sim_seek(b, NULL, ns, ""); i < b->n_order; i++) {
        struct bh_sim_obj *o = b->order[i]->cur;
        if (!all && !bh_streq(o->ns, ns))
            break;
        objs_add(ret, &cap, o);
    }
}

void bh_sim_pods_on_node(struct bh_sim *s, const char *node, struct bh_sim_objs *ret)
{
    size_t cap = 0;
    *ret = (struct bh_sim_objs){0};
    const struct bh_sim_node_list *l = bh_map_get(&s->nodes, node, strlen(node));
    for (struct bh_sim_slot *p = l ? LIST_FIRST(&l->all) : NULL; p; p = LIST_NEXT(p, same_node))
        objs_add(ret, &cap, p->cur);
}

void bh_sim_owned_by(struct bh_sim *s, const char *owner_uid, const struct bh_sim_type *t,
                     struct bh_sim_objs *ret)
{
    size_t cap = 0;
    *ret = (struct bh_sim_objs){0};
    const struct bh_sim_own_list *l = bh_map_get(&s->owners, owner_uid, strlen(owner_uid));
    for (struct bh_sim_own *o = l ? LIST_FIRST(&l->all) : NULL; o; o = LIST_NEXT(o, same)) {
        if (!t || o->slot->cur->type == t)
            objs_add(ret, &cap, o->slot->cur);
    }
}

size_t bh_sim_count(struct bh_sim *s, const struct bh_sim_type *t)
{
    return bh_sim_bucket(s, t)->slots.len;
}

uint64_t bh_sim_revision(const struct bh_sim *s)
{
    return s->rv;
}

/* ---- frozen pages ---------------------------------------------------------------------------- */

const struct bh_sim_objs *bh_sim_page_get(struct bh_sim *s, struct bh_sim_bucket *b, uint64_t rv)
{
    struct bh_sim_page_set *oldest = &b->pages[0];
    for (size_t i = 0; i < BH_SIM_PAGE_SETS; i++) {
        struct bh_sim_page_set *p = &b->pages[i];
        if (p->used && p->rv == rv) {
            p->used = bh_mono_ns();
            return &p->objs;
        }
        if (p->used < oldest->used)
            oldest = p;
    }
    if (rv < b->last_rv || rv < b->evicted_rv || rv > s->rv)
        return NULL;
    bh_sim_objs_fini(&oldest->objs);
    bh_sim_list(s, b->type, NULL, &oldest->objs);
    oldest->rv = rv;
    oldest->used = bh_mono_ns();
    return &oldest->objs;
}

void bh_sim_pages_expire(struct bh_sim *s, uint64_t older_than_ns)
{
    uint64_t now = bh_mono_ns();
    for (size_t i = 0; i < bh_sim_bucket_count(s); i++) {
        for (size_t k = 0; k < BH_SIM_PAGE_SETS; k++) {
            struct bh_sim_page_set *p = &bh_sim_bucket_at(s, i)->pages[k];
            if (p->used && now - p->used >= older_than_ns) {
                bh_sim_objs_fini(&p->objs);
                *p = (struct bh_sim_page_set){0};
            }
        }
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_sim_store_init(struct bh_sim *s)
{
    s->buckets = bh_calloc(bh_sim_n_types, sizeof(*s->buckets));
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        s->buckets[i].type = &bh_sim_types[i];
        s->buckets[i].evicted_rv = s->buckets[i].last_rv = s->rv;
    }
}

void bh_sim_bucket_clear(struct bh_sim *s, struct bh_sim_bucket *b)
{
    for (size_t i = 0; i < b->n_order; i++) {
        struct bh_sim_slot *slot = b->order[i];
        if (slot->cur) {
            reindex(s, slot, slot->cur, NULL);
            bh_sim_obj_unref(slot->cur);
        }
        free(slot);
    }
    while (b->ring.n)
        history_pop(b);
    for (size_t k = 0; k < BH_SIM_PAGE_SETS; k++) {
        bh_sim_objs_fini(&b->pages[k].objs);
        b->pages[k] = (struct bh_sim_page_set){0};
    }
    free(b->order);
    free(b->ring.v);
    b->order = NULL;
    b->ring = (struct bh_sim_ring){0};
    b->n_order = b->cap_order = b->n_sorted = b->n_dead = 0;
    bh_map_fini(&b->slots);
}

void bh_sim_store_fini(struct bh_sim *s)
{
    for (size_t i = 0; s->buckets && i < bh_sim_bucket_count(s); i++) {
        bh_sim_bucket_clear(s, bh_sim_bucket_at(s, i));
        bh_map_fini(&bh_sim_bucket_at(s, i)->watches);
    }
    bh_sim_customs_fini(s);
    free(s->buckets);
    s->buckets = NULL;
    bh_map_fini(&s->nodes);
    bh_map_fini(&s->owners);
}
