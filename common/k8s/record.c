/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/record.c - checking a record and moving it from one symbol table to another
 *
 * Input is a private copy of shared memory: any bytes at all. The canonical layout
 * (record_layout.h) is checked by a cursor that has to meet every array exactly where the previous
 * one ended; so no two slices overlap, every symbol is mapped once, and the time is linear whatever
 * the bytes are.
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

static void reject_if(struct walk *w, bool condition)
{
    w->bad |= condition;
}

static void sym(struct walk *w, bh_sym *s)
{
    if (w->map && *s != BH_SYM_NONE)
        *s = w->map(w->arg, *s);
}

/* The slice's array when it lies exactly at the cursor; NULL when empty or bad. */
static void *take_slice(struct walk *w, const struct bh_slice *s, size_t size)
{
    if (s->n == 0 || w->bad) {
        reject_if(w, s->off != 0);
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
        reject_if(w, p[i] != 0);
    w->cursor += end;
    return p;
}

static void texts(struct walk *w, const struct bh_slice *s)
{
    /* n excludes the NUL, which has to be there. */
    if (w->bad || s->n == UINT32_MAX) {
        w->bad = true;
        return;
    }
    const struct bh_slice with_nul = {s->off, s->n + 1};
    const char *p = take_slice(w, &with_nul, 1);
    reject_if(w, !p || memchr(p, 0, s->n + (size_t)1) != p + s->n);
}

static void syms(struct walk *w, const struct bh_slice *s)
{
    bh_sym *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++)
        sym(w, &v[i]);
}

static int by_kv(const void *pa, const void *pb)
{
    const struct bh_kv *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static void kvs(struct walk *w, const struct bh_slice *s)
{
    struct bh_kv *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].key);
        sym(w, &v[i].value);
    }
    if (v && w->map)
        qsort(v, s->n, sizeof(*v), by_kv);
}

static int by_name(const void *pa, const void *pb)
{
    const struct bh_res *a = pa, *b = pb;

    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return a->value < b->value ? -1 : a->value > b->value;
}

static void resources(struct walk *w, const struct bh_slice *s)
{
    struct bh_res *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].name);
        reject_if(w, v[i].pad != 0);
    }
    if (v && w->map)
        qsort(v, s->n, sizeof(*v), by_name);
}

static void images(struct walk *w, const struct bh_slice *s)
{
    struct bh_image *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].name);
        reject_if(w, v[i].pad != 0);
    }
}

static void taints(struct walk *w, const struct bh_slice *s)
{
    struct bh_taint *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].key);
        sym(w, &v[i].value);
        reject_if(w, v[i].effect > BH_EFFECT_OTHER || v[i].pad != 0);
    }
}

static void tolerations(struct walk *w, const struct bh_slice *s)
{
    struct bh_toleration *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].key);
        sym(w, &v[i].value);
        reject_if(w, v[i].op > BH_TOL_OTHER || v[i].effect > BH_EFFECT_OTHER);
    }
}

static void host_ports(struct walk *w, const struct bh_slice *s)
{
    struct bh_host_port *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].ip);
        sym(w, &v[i].protocol);
        reject_if(w, v[i].port <= 0 || v[i].pad != 0);
    }
}

static void requirements(struct walk *w, const struct bh_slice *s)
{
    struct bh_requirement *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && !w->bad && i < s->n; i++) {
        sym(w, &v[i].key);
        reject_if(w, v[i].op > BH_REQ_LT);
        syms(w, &v[i].values);
    }
}

static void terms(struct walk *w, const struct bh_slice *s)
{
    struct bh_node_term *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && !w->bad && i < s->n; i++) {
        sym(w, &v[i].error);
        reject_if(w, (v[i].flags & ~(uint32_t)(BH_TERM_EMPTY | BH_TERM_INVALID)) || v[i].pad);
        requirements(w, &v[i].expressions);
        requirements(w, &v[i].fields);
    }
}

static void volumes(struct walk *w, const struct bh_slice *s)
{
    struct bh_volume *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && !w->bad && i < s->n; i++) {
        sym(w, &v[i].name);
        sym(w, &v[i].source);
        sym(w, &v[i].extra);
        sym(w, &v[i].disk_name);
        reject_if(w, v[i].type >= BH_VOL_TYPES || (v[i].flags & ~(uint32_t)BH_VOL_READ_ONLY) ||
                         (v[i].monitors.n && v[i].type != BH_VOL_RBD));
        syms(w, &v[i].monitors);
    }
}

static void selector(struct walk *w, struct bh_label_selector *s)
{
    sym(w, &s->error);
    reject_if(w, (s->flags & ~(uint32_t)(BH_SELECTOR_NIL | BH_SELECTOR_INVALID)) ||
                     (s->flags && s->requirements.n));
    requirements(w, &s->requirements);
}

static void pod_terms(struct walk *w, const struct bh_slice *s)
{
    struct bh_pod_term *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && !w->bad && i < s->n; i++) {
        sym(w, &v[i].topology_key);
        selector(w, &v[i].selector);
        selector(w, &v[i].namespace_selector);
        syms(w, &v[i].namespaces);
    }
}

static void spreads(struct walk *w, const struct bh_slice *s)
{
    const uint32_t known = BH_SPREAD_HONOR_TAINTS * 2 - 1;
    struct bh_spread *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && !w->bad && i < s->n; i++) {
        sym(w, &v[i].topology_key);
        reject_if(w, v[i].flags & ~known);
        selector(w, &v[i].selector);
    }
}

static void claims(struct walk *w, const struct bh_slice *s)
{
    struct bh_pod_claim *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].name);
        sym(w, &v[i].claim);
        sym(w, &v[i].template_);
        reject_if(w, v[i].pad != 0);
    }
}

static void extended(struct walk *w, const struct bh_slice *s)
{
    const uint32_t known = BH_CONTAINER_INIT | BH_CONTAINER_SIDECAR;
    struct bh_extended_request *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].resource);
        sym(w, &v[i].container_name);
        reject_if(w, (v[i].flags & ~known) || v[i].pad);
    }
}

static void claim_statuses(struct walk *w, const struct bh_slice *s)
{
    struct bh_claim_status *v = take_slice(w, s, sizeof(*v));

    for (uint32_t i = 0; v && i < s->n; i++) {
        sym(w, &v[i].name);
        sym(w, &v[i].claim);
    }
}

static void node(struct walk *w, struct bh_node_rec *r)
{
    sym(w, &r->name);
    sym(w, &r->uid);
    reject_if(w, (r->flags & ~(uint32_t)BH_NODE_UNSCHEDULABLE) || r->pad);
    kvs(w, &r->labels);
    taints(w, &r->taints);
    resources(w, &r->scalars);
    images(w, &r->images);
    syms(w, &r->features);
}

static void shape(struct walk *w, struct bh_shape_rec *r)
{
    const uint32_t known = BH_SHAPE_HAS_POD_AFFINITY_OBJECT * 2 - 1;

    sym(w, &r->namespace_);
    sym(w, &r->scheduler_name);
    sym(w, &r->owner);
    reject_if(w, (r->flags & ~known) || r->pad || r->image_containers < 0 ||
                     r->owner_kind > BH_OWNER_STATEFULSET);
    resources(w, &r->fit.scalars);
    resources(w, &r->used.scalars);
    resources(w, &r->score.scalars);
    tolerations(w, &r->tolerations);
    kvs(w, &r->node_selector);
    terms(w, &r->required_terms);
    terms(w, &r->preferred_terms);
    host_ports(w, &r->host_ports);
    syms(w, &r->gates);
    pod_terms(w, &r->affinity);
    pod_terms(w, &r->anti_affinity);
    pod_terms(w, &r->preferred_affinity);
    pod_terms(w, &r->preferred_anti_affinity);
    spreads(w, &r->spread);
    volumes(w, &r->volumes);
    claims(w, &r->claims);
    extended(w, &r->extended);
    kvs(w, &r->labels); /* last: see bh_shape_essence() */
    syms(w, &r->images);
}

static void pod(struct walk *w, struct bh_pod_rec *r)
{
    reject_if(w, (r->flags & ~(uint32_t)(BH_POD_TERMINATING | BH_POD_PREEMPTED_BY_SCHEDULER)) ||
                     r->pad);
    sym(w, &r->node);
    sym(w, &r->nominated_node);
    texts(w, &r->name);
    texts(w, &r->namespace_);
    texts(w, &r->uid);
    claim_statuses(w, &r->claim_statuses);
}

int bh_rec_remap(void *rec, size_t n, bh_sym (*map)(void *arg, bh_sym s), void *arg)
{
    static const size_t heads[] = {[BH_REC_NODE] = sizeof(struct bh_node_rec),
                                   [BH_REC_SHAPE] = sizeof(struct bh_shape_rec),
                                   [BH_REC_POD] = sizeof(struct bh_pod_rec)};
    const struct bh_rec_head *h = rec;

    if (n < sizeof(*h) || n > BH_REC_MAX_BYTES || n % 8 != 0 || h->size != n ||
        h->layout != BH_REC_LAYOUT || h->type < BH_REC_NODE || h->type > BH_REC_POD ||
        n < heads[h->type])
        return -EBADMSG;
    struct walk w = {.rec = rec, .size = n, .cursor = heads[h->type], .map = map, .arg = arg};
    switch (h->type) {
    case BH_REC_NODE:
        node(&w, rec);
        break;
    case BH_REC_SHAPE:
        shape(&w, rec);
        break;
    case BH_REC_POD:
        pod(&w, rec);
        break;
    }
    return w.bad || w.cursor != n ? -EBADMSG : 0;
}

uint64_t bh_rec_hash(const void *rec)
{
    return bh_hash(rec, ((const struct bh_rec_head *)rec)->size, 0);
}
