/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/taken.c - what claims take of which device
 *
 * Every claim with an allocation has a head and behind it one entry for each device, share and
 * amount of capacity. They follow the objects' change log; claims in flight follow the
 * reservations. A device that changes hands is told in a log of its own, by node: verdicts that are
 * kept for nodes (asked.c) follow that.
 *
 * Invariants: allocated[id], shared[id] and consumed_any[id] count entries; amounts[id] lists those
 * with an amount. Names in entries are borrowed from messages: an entry goes, at the next
 * bh_dra_sync, with the message it came from, and before that it is not read.
 */
#include "scheduler/plugins/dynamicresources/devices.h"

#define NOTHING 0u /* entries and heads are numbered from 1 */

static struct bh_dra_take *at(const struct bh_dra *d, uint32_t i)
{
    return &d->take[i - 1];
}

static uint32_t new_take(struct bh_dra *d, const struct bh_dra_take *t)
{
    uint32_t i = d->free_take;

    if (i) {
        d->free_take = at(d, i)->next;
    } else {
        BH_GROW(d->take, d->n_takes, d->cap_takes);
        i = ++d->n_takes;
    }
    *at(d, i) = *t;
    return i;
}

/* ---- devices change hands ---- */

static void tell(struct bh_dra *d, bh_sym node)
{
    if (!d->moved)
        d->moved = bh_malloc(BH_DRA_MOVED * sizeof *d->moved);
    d->moved[d->moved_end++ % BH_DRA_MOVED] = node;
}

/* The device is listed by some slices; BH_SYM_NONE stands for all nodes. */
static void changed_hands(struct bh_dra *d, uint32_t id)
{
    for (uint32_t i = d->first_of_id[id]; i; i = d->devices[i - 1].same_id) {
        const struct bh_dra_slice *s = &d->slices[d->devices[i - 1].slice];
        bool own = !s->per_device && s->where.kind == BH_DRA_ON_NODE &&
                   !d->pools[s->pool].has_counters; /* counters drop for all nodes that see it */
        tell(d, own ? s->where.node : BH_SYM_NONE);
    }
}

/* Less of the device is taken: a request that was hopeless may not be any more. */
static void freed(struct bh_dra *d, uint32_t id)
{
    if (!d->freed)
        d->freed = bh_malloc(BH_DRA_MOVED * sizeof *d->freed);
    d->freed[d->freed_end++ % BH_DRA_MOVED] = id;
}

static void enter_amount(struct bh_dra *d, uint32_t i)
{
    struct bh_dra_take *t = at(d, i);

    d->consumed_any[t->id]++;
    t->next_amount = d->amounts[t->id];
    if (t->next_amount)
        at(d, t->next_amount)->prev_amount = i;
    d->amounts[t->id] = i;
}

/* ---- claims ---- */

static void add_result(struct bh_dra *d, uint32_t head, const K8s__DeviceRequestAllocationResult *r,
                       uint32_t id)
{
    struct bh_dra_take t = {.what = r->shareid ? BH_DRA_SHARE : BH_DRA_WHOLE, .id = id};

    if (id == BH_DRA_NO_DEVICE || (r->has_adminaccess && r->adminaccess))
        return;
    t.next = at(d, head)->next;
    uint32_t last = new_take(d, &t);
    if (!d->allocated[id] && !d->shared[id])
        bh_dra_tally_device(d, id, -1);
    (r->shareid ? d->shared : d->allocated)[id]++;
    for (size_t i = 0; r->shareid && i < r->n_consumedcapacity; i++) {
        last =
            new_take(d, &(struct bh_dra_take){.what = BH_DRA_AMOUNT,
                                              .id = id,
                                              .next = last,
                                              .name = r->consumedcapacity[i]->key,
                                              .v = bh_dra_quantity(r->consumedcapacity[i]->value)});
        enter_amount(d, last);
    }
    at(d, head)->next = last;
    changed_hands(d, id);
}

static uint32_t add_claim(struct bh_dra *d, const K8s__DeviceAllocationResult *al,
                          const uint32_t *ids)
{
    uint32_t head = new_take(d, &(struct bh_dra_take){.what = BH_DRA_HEAD});

    for (size_t i = 0; i < al->n_results; i++)
        add_result(d, head, al->results[i], ids[i]);
    return head;
}

static void drop_claim(struct bh_dra *d, uint32_t head)
{
    uint32_t next;

    for (uint32_t i = head; i; i = next) {
        struct bh_dra_take *t = at(d, i);
        next = t->next;
        if (t->what == BH_DRA_AMOUNT) {
            d->consumed_any[t->id]--;
            if (t->next_amount)
                at(d, t->next_amount)->prev_amount = t->prev_amount;
            *(t->prev_amount ? &at(d, t->prev_amount)->next_amount : &d->amounts[t->id]) =
                t->next_amount;
        } else if (t->what != BH_DRA_HEAD) {
            (t->what == BH_DRA_SHARE ? d->shared : d->allocated)[t->id]--;
            if (!d->allocated[t->id] && !d->shared[t->id])
                bh_dra_tally_device(d, t->id, 1);
            freed(d, t->id);
        }
        if (t->what != BH_DRA_HEAD)
            changed_hands(d, t->id);
        *t = (struct bh_dra_take){.next = d->free_take};
        d->free_take = i;
    }
}

static void add_object(struct bh_dra *d, const struct bh_object *ob)
{
    const K8s__DeviceAllocationResult *al = bh_dra_results_of(ob->msg);
    uint64_t before;

    if (!al || !al->n_results)
        return;
    uint64_t key = bh_object_key(ob->ns, ob->name);
    uint32_t head = add_claim(d, al, bh_dra_ids_of(d, ob, al));
    if (bh_umap_get(&d->by_claim, key, &before)) {
        d->same_key = true; /* two names, one key: from now on everything is read each time */
        uint32_t last = head;
        while (at(d, last)->next)
            last = at(d, last)->next;
        at(d, last)->next = (uint32_t)before;
    }
    bh_umap_put(&d->by_claim, key, head);
}

/* ---- claims in flight ---- */

static void follow_flight(struct bh_dra *d)
{
    struct bh_map_entry *e;
    uint32_t last = NOTHING, head;

    for (size_t it = 0; (e = bh_map_next(&d->reserved->in_flight, &it));) {
        const struct bh_in_flight *f = e->value;
        const K8s__DeviceAllocationResult *al = bh_dra_results_of(&f->claim->base);
        uint64_t known = NOTHING;
        if (!al)
            continue;
        if (!bh_umap_get(&d->by_serial, f->serial, &known)) {
            uint32_t *ids = bh_arena_new_array(&d->state_arena, uint32_t, al->n_results + 1);
            bh_dra_find_ids(d, al, ids);
            known = add_claim(d, al, ids);
            at(d, (uint32_t)known)->serial = f->serial;
            at(d, (uint32_t)known)->next_flight = d->flight;
            d->flight = (uint32_t)known;
            bh_umap_put(&d->by_serial, f->serial, known);
        }
        at(d, (uint32_t)known)->seen = d->reserved->version;
    }
    for (uint32_t i = d->flight; i; i = head) {
        head = at(d, i)->next_flight;
        if (at(d, i)->seen == d->reserved->version) {
            last = i;
            continue;
        }
        *(last ? &at(d, last)->next_flight : &d->flight) = head;
        (void)bh_umap_del(&d->by_serial, at(d, i)->serial);
        drop_claim(d, i);
    }
}

/* ---- all of it ---- */

static void read_anew(struct bh_dra *d, const struct bh_objects *o)
{
    size_t n = (size_t)d->n_ids + 1;

    d->allocated = bh_regrown(d->allocated, 0, n, sizeof *d->allocated);
    d->shared = bh_regrown(d->shared, 0, n, sizeof *d->shared);
    d->consumed_any = bh_regrown(d->consumed_any, 0, n, sizeof *d->consumed_any);
    d->amounts = bh_regrown(d->amounts, 0, n, sizeof *d->amounts);
    bh_dra_reset_tallies(d);
    bh_umap_clear(&d->by_claim);
    bh_umap_clear(&d->by_serial);
    d->n_takes = d->free_take = d->flight = NOTHING;
    d->same_key = false;
    bh_objects_each(ob, o, BH_KIND_RESOURCECLAIM) {
        add_object(d, ob);
    }
    d->taken_generation = d->index_generation;
    d->reserved_version = d->reserved->version - 1;
    tell(d, BH_SYM_NONE);
    d->freed_end += BH_DRA_MOVED + 1; /* more than any wish can follow */
}

void bh_dra_sync_taken(struct bh_dra *d, const struct bh_objects *o)
{
    bh_arena_reset(&d->state_arena);
    if (d->taken_generation != d->index_generation || d->claims_pos < o->log_begin || d->same_key)
        read_anew(d, o);
    else {
        for (uint64_t pos = d->claims_pos; pos < o->log_end; pos++) {
            const struct bh_object_entry *e = bh_objects_change(o, pos);
            uint64_t head;
            if (e->kind != BH_KIND_RESOURCECLAIM || !bh_umap_get(&d->by_claim, e->key, &head))
                continue;
            drop_claim(d, (uint32_t)head);
            (void)bh_umap_del(&d->by_claim, e->key);
        }
        for (const struct bh_object *ob = o->first[BH_KIND_RESOURCECLAIM];
             ob && ob->pos >= d->claims_pos; ob = ob->next)
            add_object(d, ob);
    }
    d->claims_pos = o->log_end;
    if (d->reserved_version != d->reserved->version)
        follow_flight(d);
    d->reserved_version = d->reserved->version;
}

bh_nano bh_dra_amount_taken(const struct bh_dra *d, uint32_t id, const char *name)
{
    bh_nano sum = 0;

    for (uint32_t i = d->amounts[id]; i; i = at(d, i)->next_amount)
        if (bh_streq(at(d, i)->name, name))
            sum += at(d, i)->v;
    return sum;
}

void bh_dra_taken_fini(struct bh_dra *d)
{
    free(d->take);
    free(d->moved);
    free(d->freed);
    free(d->allocated);
    free(d->shared);
    free(d->consumed_any);
    free(d->amounts);
    bh_umap_fini(&d->by_claim);
    bh_umap_fini(&d->by_serial);
}
