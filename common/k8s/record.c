/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/record.c - checking a record and moving it from one symbol table to another
 *
 * Input is a private copy of shared memory: any bytes at all. The canonical layout
 * (record_layout.h) is checked by a cursor that has to meet every array exactly where the previous
 * one ended; so no two slices overlap, every symbol is mapped once, and the time is linear whatever
 * the bytes are. What a record consists of stands in tables, which one walk follows.
 */
#include "common/k8s/record.h"

#include <errno.h>

#include "common/k8s/record_layout.h"

struct walk {
    char *rec;
    size_t size, cursor;
    bh_sym (*map)(void *arg, bh_sym s);
    void *arg;
    bool bad;
};

/* ---- what records consist of ---- */

enum what { END, SYM, BITS, AT_MOST, AT_LEAST, TEXT, LIST, PART };
struct field {
    uint32_t offset;
    enum what what;
    int64_t limit;         /* BITS: the known ones; AT_MOST, AT_LEAST */
    const struct type *of; /* LIST, PART: struct bh_slice of such, one such in place */
};
struct type {
    size_t size;
    int (*order)(const void *, const void *);
    bool (*wrong)(const void *); /* what a field alone does not tell */
    const struct field *field;   /* slices in the order in which they lie */
};
#define FIELD(type, member, what, limit, of)                                                       \
    {                                                                                              \
        offsetof(struct type, member), what, limit, of                                             \
    }
#define SYM(type, member)             FIELD(type, member, SYM, 0, NULL)
#define BITS(type, member, known)     FIELD(type, member, BITS, known, NULL)
#define AT_MOST(type, member, most)   FIELD(type, member, AT_MOST, most, NULL)
#define AT_LEAST(type, member, least) FIELD(type, member, AT_LEAST, least, NULL)
#define PAD(type)                     BITS(type, pad, 0)
#define TEXT(type, member)            FIELD(type, member, TEXT, 0, NULL)
#define LIST(type, member, of)        FIELD(type, member, LIST, 0, &(of))
#define PART(type, member, of)        FIELD(type, member, PART, 0, &(of))
#define TYPE(name, element, order, wrong, ...)                                                     \
    static const struct type name = {sizeof(struct element), order, wrong,                         \
                                     (const struct field[]){__VA_ARGS__, {0, END, 0, NULL}}}

static int by_kv(const void *pa, const void *pb)
{
    const struct bh_kv *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static bool has_stray_monitors(const void *volume)
{
    const struct bh_volume *v = volume;

    return v->monitors.n && v->type != BH_VOL_RBD;
}

static bool has_stray_requirements(const void *selector)
{
    const struct bh_label_selector *s = selector;

    return s->flags && s->requirements.n;
}

/* A symbol alone. */
static const struct type a_sym = {sizeof(bh_sym), NULL, NULL,
                                  (const struct field[]){{0, SYM, 0, NULL}, {0, END, 0, NULL}}};
TYPE(a_kv, bh_kv, by_kv, NULL, SYM(bh_kv, key), SYM(bh_kv, value));
TYPE(a_res, bh_res, bh_rec_by_name, NULL, SYM(bh_res, name), PAD(bh_res));
TYPE(an_image, bh_image, NULL, NULL, SYM(bh_image, name), PAD(bh_image));
TYPE(a_taint, bh_taint, NULL, NULL, SYM(bh_taint, key), SYM(bh_taint, value),
     AT_MOST(bh_taint, effect, BH_EFFECT_OTHER), PAD(bh_taint));
TYPE(a_toleration, bh_toleration, NULL, NULL, SYM(bh_toleration, key), SYM(bh_toleration, value),
     AT_MOST(bh_toleration, op, BH_TOL_OTHER), AT_MOST(bh_toleration, effect, BH_EFFECT_OTHER));
TYPE(a_host_port, bh_host_port, NULL, NULL, SYM(bh_host_port, ip), SYM(bh_host_port, protocol),
     AT_LEAST(bh_host_port, port, 1), PAD(bh_host_port));
TYPE(a_requirement, bh_requirement, NULL, NULL, SYM(bh_requirement, key),
     AT_MOST(bh_requirement, op, BH_REQ_LT), LIST(bh_requirement, values, a_sym));
TYPE(a_term, bh_node_term, NULL, NULL, SYM(bh_node_term, error),
     BITS(bh_node_term, flags, BH_TERM_EMPTY | BH_TERM_INVALID), PAD(bh_node_term),
     LIST(bh_node_term, expressions, a_requirement), LIST(bh_node_term, fields, a_requirement));
TYPE(a_volume, bh_volume, NULL, has_stray_monitors, SYM(bh_volume, name), SYM(bh_volume, source),
     SYM(bh_volume, extra), SYM(bh_volume, disk_name), AT_MOST(bh_volume, type, BH_VOL_TYPES - 1),
     BITS(bh_volume, flags, BH_VOL_READ_ONLY), LIST(bh_volume, monitors, a_sym));
TYPE(a_selector, bh_label_selector, NULL, has_stray_requirements, SYM(bh_label_selector, error),
     BITS(bh_label_selector, flags, BH_SELECTOR_NIL | BH_SELECTOR_INVALID),
     LIST(bh_label_selector, requirements, a_requirement));
TYPE(a_pod_term, bh_pod_term, NULL, NULL, SYM(bh_pod_term, topology_key),
     PART(bh_pod_term, selector, a_selector), PART(bh_pod_term, namespace_selector, a_selector),
     LIST(bh_pod_term, namespaces, a_sym));
TYPE(a_spread, bh_spread, NULL, NULL, SYM(bh_spread, topology_key),
     BITS(bh_spread, flags, BH_SPREAD_HONOR_TAINTS * 2 - 1), PART(bh_spread, selector, a_selector));
TYPE(a_claim, bh_pod_claim, NULL, NULL, SYM(bh_pod_claim, name), SYM(bh_pod_claim, claim),
     SYM(bh_pod_claim, template_), PAD(bh_pod_claim));
TYPE(an_extended, bh_extended_request, NULL, NULL, SYM(bh_extended_request, resource),
     SYM(bh_extended_request, container_name),
     BITS(bh_extended_request, flags, BH_CONTAINER_INIT | BH_CONTAINER_SIDECAR),
     PAD(bh_extended_request));
TYPE(a_container, bh_container, NULL, NULL,
     BITS(bh_container, flags, BH_CONTAINER_INIT | BH_CONTAINER_SIDECAR), SYM(bh_container, name),
     LIST(bh_container, requests, a_res), LIST(bh_container, limits, a_res));
TYPE(a_claim_status, bh_claim_status, NULL, NULL, SYM(bh_claim_status, name),
     SYM(bh_claim_status, claim));
TYPE(a_node, bh_node_rec, NULL, NULL, SYM(bh_node_rec, name), SYM(bh_node_rec, uid),
     BITS(bh_node_rec, flags, BH_NODE_UNSCHEDULABLE), PAD(bh_node_rec),
     LIST(bh_node_rec, labels, a_kv), LIST(bh_node_rec, taints, a_taint),
     LIST(bh_node_rec, scalars, a_res), LIST(bh_node_rec, images, an_image),
     LIST(bh_node_rec, features, a_sym), LIST(bh_node_rec, capacity, a_res));
/* Labels and images are last: see bh_shape_essence(). */
TYPE(a_shape, bh_shape_rec, NULL, NULL, SYM(bh_shape_rec, namespace_),
     SYM(bh_shape_rec, scheduler_name), SYM(bh_shape_rec, owner),
     BITS(bh_shape_rec, flags, BH_SHAPE_HAS_POD_AFFINITY_OBJECT * 2 - 1), PAD(bh_shape_rec),
     AT_LEAST(bh_shape_rec, image_containers, 0), AT_MOST(bh_shape_rec, owner_kind, BH_OWNER_NONE),
     LIST(bh_shape_rec, fit.scalars, a_res), LIST(bh_shape_rec, used.scalars, a_res),
     LIST(bh_shape_rec, score.scalars, a_res), LIST(bh_shape_rec, tolerations, a_toleration),
     LIST(bh_shape_rec, node_selector, a_kv), LIST(bh_shape_rec, required_terms, a_term),
     LIST(bh_shape_rec, preferred_terms, a_term), LIST(bh_shape_rec, host_ports, a_host_port),
     LIST(bh_shape_rec, gates, a_sym), LIST(bh_shape_rec, affinity, a_pod_term),
     LIST(bh_shape_rec, anti_affinity, a_pod_term),
     LIST(bh_shape_rec, preferred_affinity, a_pod_term),
     LIST(bh_shape_rec, preferred_anti_affinity, a_pod_term), LIST(bh_shape_rec, spread, a_spread),
     LIST(bh_shape_rec, volumes, a_volume), LIST(bh_shape_rec, claims, a_claim),
     LIST(bh_shape_rec, extended, an_extended), LIST(bh_shape_rec, containers, a_container),
     LIST(bh_shape_rec, overhead, a_res), LIST(bh_shape_rec, labels, a_kv),
     LIST(bh_shape_rec, images, a_sym));
TYPE(a_pod, bh_pod_rec, NULL, NULL,
     BITS(bh_pod_rec, flags, BH_POD_TERMINATING | BH_POD_PREEMPTED_BY_SCHEDULER),
     SYM(bh_pod_rec, node), SYM(bh_pod_rec, nominated_node), SYM(bh_pod_rec, group),
     TEXT(bh_pod_rec, name), TEXT(bh_pod_rec, namespace_), TEXT(bh_pod_rec, uid),
     LIST(bh_pod_rec, claim_statuses, a_claim_status));
static const struct type *const records[] = {
    [BH_REC_NODE] = &a_node, [BH_REC_SHAPE] = &a_shape, [BH_REC_POD] = &a_pod};

/* ---- the walk ---- */

/* The slice's array when it lies exactly at the cursor; NULL when empty or bad. */
static void *take_slice(struct walk *w, const struct bh_slice *s, size_t size)
{
    if (s->n == 0 || w->bad) {
        w->bad |= s->off != 0;
        return NULL;
    }
    uint64_t bytes = (uint64_t)s->n * size;
    if (s->off != w->cursor || bytes > w->size - w->cursor) {
        w->bad = true;
        return NULL;
    }
    char *p = w->rec + w->cursor;
    size_t end = BH_REC_ALIGN((size_t)bytes); /* size is a multiple of 8, so this fits as well */
    for (size_t i = (size_t)bytes; i < end; i++)
        w->bad |= p[i] != 0;
    w->cursor += end;
    return p;
}

static void text(struct walk *w, const struct bh_slice *s)
{
    /* n excludes the NUL, which has to be there. */
    if (w->bad || s->n == UINT32_MAX) {
        w->bad = true;
        return;
    }
    const struct bh_slice with_nul = {s->off, s->n + 1};
    const char *p = take_slice(w, &with_nul, 1);
    w->bad |= !p || memchr(p, 0, s->n + (size_t)1) != p + s->n;
}

static void list(struct walk *w, const struct bh_slice *s, const struct type *t);

static void one(struct walk *w, char *p, const struct type *t)
{
    for (const struct field *f = t->field; f->what != END; f++) {
        void *at = p + f->offset;
        switch (f->what) {
        case SYM:
            if (w->map && *(bh_sym *)at != BH_SYM_NONE)
                *(bh_sym *)at = w->map(w->arg, *(bh_sym *)at);
            break;
        case BITS:
            w->bad |= (*(uint32_t *)at & ~(uint32_t)f->limit) != 0;
            break;
        case AT_MOST:
            w->bad |= *(uint32_t *)at > f->limit;
            break;
        case AT_LEAST:
            w->bad |= *(int32_t *)at < f->limit;
            break;
        case TEXT:
            text(w, at);
            break;
        case LIST:
            list(w, at, f->of);
            break;
        case PART:
            one(w, at, f->of);
            break;
        case END:
            break;
        }
    }
    w->bad |= t->wrong && t->wrong(p);
}

static void list(struct walk *w, const struct bh_slice *s, const struct type *t)
{
    char *v = take_slice(w, s, t->size);

    for (uint32_t i = 0; v && !w->bad && i < s->n; i++)
        one(w, v + i * t->size, t);
    if (v && w->map && t->order && !w->bad)
        bh_rec_sort(v, s->n, t->size, t->order);
}

int bh_rec_remap(void *rec, size_t n, bh_sym (*map)(void *arg, bh_sym s), void *arg)
{
    const struct bh_rec_head *h = rec;

    if (n < sizeof(*h) || n > BH_REC_MAX_BYTES || n % 8 != 0 || h->size != n ||
        h->layout != BH_REC_LAYOUT || h->type < BH_REC_NODE || h->type > BH_REC_POD ||
        n < records[h->type]->size)
        return -EBADMSG;
    const struct type *t = records[h->type];
    struct walk w = {.rec = rec, .size = n, .cursor = t->size, .map = map, .arg = arg};
    one(&w, rec, t);
    return w.bad || w.cursor != n ? -EBADMSG : 0;
}

uint64_t bh_rec_hash(const void *rec)
{
    return bh_hash(rec, ((const struct bh_rec_head *)rec)->size, 0);
}
