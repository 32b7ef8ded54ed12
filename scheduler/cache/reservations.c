/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/reservations.c - what Reserve took for pods that are not bound yet
 */
#include "common/k8s/codec.h"
#include "scheduler/cache/reservations.h"

static void free_reservation(struct bh_reservation *v)
{
    bh_arena_fini(&v->arena);
    free(v->v);
    free(v->state);
    free(v);
}

static void free_flight(struct bh_in_flight *f)
{
    bh_arena_fini(&f->arena);
    free(f);
}

void bh_reservations_fini(struct bh_reservations *r)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(&r->by_pod, &it));)
        free_reservation(e->value);
    for (size_t it = 0; (e = bh_map_next(&r->in_flight, &it));)
        free_flight(e->value);
    bh_map_fini(&r->by_pod);
    bh_map_fini(&r->in_flight);
}

struct bh_reservation *bh_reservation_of(const struct bh_reservations *r, struct bh_str uid)
{
    return r->by_pod.len ? bh_map_get(&r->by_pod, uid.p, uid.n) : NULL;
}

struct bh_reservation *bh_reservation_for(struct bh_reservations *r, struct bh_str uid, bh_sym node)
{
    struct bh_reservation *v = bh_reservation_of(r, uid);

    if (v)
        return v;
    v = bh_calloc(1, sizeof *v);
    bh_arena_init(&v->arena, 0);
    v->uid = (struct bh_str){bh_arena_strndup(&v->arena, uid.p, uid.n), uid.n};
    v->node = node;
    (void)bh_map_put(&r->by_pod, uid.p, uid.n, v);
    return v;
}

struct bh_write bh_write_of(enum bh_write_what what, enum bh_kind kind, const ProtobufCMessage *m)
{
    const K8s__ObjectMeta *meta = bh_object_meta(m);

    return (struct bh_write){.what = what,
                             .kind = kind,
                             .namespace_ = meta->namespace_,
                             .name = meta->name,
                             .uid = meta->uid,
                             .resource_version = meta->resourceversion,
                             .object = m};
}

void bh_reservation_add(struct bh_reservation *v, const struct bh_write *w)
{
    if (v->n == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 4;
        v->v = bh_reallocarray(v->v, v->cap, sizeof *v->v);
        v->state = bh_reallocarray(v->state, v->cap, sizeof *v->state);
    }
    v->v[v->n] = *w;
    v->state[v->n++] = (struct bh_reserved){0};
}

/* ---- claims in flight ------------------------------------------------------------------------ */

/* The reservation that put it in flight may go before the others. */
static void share_flight(struct bh_reservations *r, struct bh_in_flight *f)
{
    if (f->sharers++ > 1)
        return;
    bh_arena_init(&f->arena, 0);
    f->claim = (const void *)bh_pb_copy(&f->arena, &f->claim->base);
    f->serial = ++r->serial;
    r->version++;
}

void bh_reservation_fly(struct bh_reservations *r, struct bh_reservation *v, const char *key,
                        const K8s__ResourceClaim *claim)
{
    struct bh_in_flight *f = r->in_flight.len ? bh_map_get(&r->in_flight, key, strlen(key)) : NULL;

    if (f) {
        share_flight(r, f);
    } else {
        f = bh_malloc(sizeof *f);
        *f = (struct bh_in_flight){.claim = claim, .sharers = 1};
        f->id = f->serial = ++r->serial;
        (void)bh_map_put(&r->in_flight, key, strlen(key), f);
        r->version++;
    }
    v->state[v->n - 1].in_flight = key;
    v->state[v->n - 1].flight = f->id;
}

/* The reservation's part in it. The claim may be in another flight by now. */
static void leave_flight(struct bh_reservations *r, struct bh_reserved *s, bool done)
{
    const char *key = bh_take_ptr(s->in_flight);
    struct bh_in_flight *f = key ? bh_map_get(&r->in_flight, key, strlen(key)) : NULL;

    if (!f || f->id != s->flight || (--f->sharers && !done))
        return;
    (void)bh_map_del(&r->in_flight, key, strlen(key));
    free_flight(f);
    r->version++;
}

void bh_reservation_land(struct bh_reservations *r, struct bh_reservation *v, uint32_t i)
{
    leave_flight(r, &v->state[i], true);
}

void bh_reservation_drop(struct bh_reservations *r, struct bh_str uid)
{
    struct bh_reservation *v = bh_reservation_of(r, uid);

    if (!v)
        return;
    for (uint32_t i = 0; i < v->n; i++)
        leave_flight(r, &v->state[i], false);
    (void)bh_map_del(&r->by_pod, uid.p, uid.n);
    free_reservation(v);
}
