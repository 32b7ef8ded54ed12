/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/podtopologyspread/default_selector.c - the pods that belong together by default
 *
 * Pods that the same services and the same controller select. Which ones these are depends on the
 * shape (namespace, labels, owner) and on objects of four kinds, so the answer is kept per shape
 * until one of these kinds changes.
 *
 * Owns:     the memo: a copy of each selector.
 * Upstream: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
 */
#include "common/base/map.h"
#include "common/k8s/compile.h"
#include "common/k8s/syntax.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/plugins/podtopologyspread/spread.h"

/* ---- collecting ---- */

struct set { /* equalities; a later one of the same key replaces the earlier */
    struct bh_arena *a;
    struct bh_kv *v;
    uint32_t n, cap;
};

static void set_put(struct set *s, bh_sym key, bh_sym value)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->v[i].key == key) {
            s->v[i].value = value;
            return;
        }
    }
    BH_ARENA_GROW(s->a, s->v, s->n, s->cap);
    s->v[s->n++] = (struct bh_kv){key, value};
}

static void set_merge(struct set *s, struct bh_symtab *tab, K8s__StringEntry *const *map, size_t n)
{
    for (size_t i = 0; i < n; i++)
        set_put(s, bh_sym_internc(tab, map[i]->key), bh_sym_internc(tab, map[i]->value));
}

static bool selects(const struct bh_symtab *tab, K8s__StringEntry *const *map, size_t n,
                    const struct bh_shape_rec *pod)
{
    const struct bh_kv *labels = bh_rec_at(pod, pod->labels, struct bh_kv);

    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < pod->labels.n && !found; k++)
            found = bh_streq(bh_sym_text(tab, labels[k].key), map[i]->key) &&
                    bh_streq(bh_sym_text(tab, labels[k].value), map[i]->value);
        if (!found)
            return false;
    }
    /* Without a selector a service selects nothing, with an empty one it adds nothing. */
    return n > 0;
}

/* ---- building ---- */

struct build {
    struct bh_label_selector *sel;
    struct bh_requirement *req;
    bh_sym *values;
    uint32_t n_req, n_values;
};

static bh_sym *add(struct build *b, bh_sym key, int op, size_t n)
{
    bh_sym *v = b->values + b->n_values;

    b->req[b->n_req++] = (struct bh_requirement){
        .key = key,
        .op = (uint32_t)op,
        .values = {n ? (uint32_t)((char *)v - (char *)b->sel) : 0, (uint32_t)n}};
    b->n_values += (uint32_t)n;
    return v;
}

/* A replication controller's equalities join the set; the others' requirements come on top. */
static const K8s__LabelSelector *merge_owner(struct set *set, struct bh_symtab *tab,
                                             const struct bh_objects *objects,
                                             const struct bh_shape_rec *pod)
{
    static const K8s__LabelSelector none = K8S__LABEL_SELECTOR__INIT;
    static const enum bh_kind kinds[] = {
        [BH_OWNER_REPLICATIONCONTROLLER] = BH_KIND_REPLICATIONCONTROLLER,
        [BH_OWNER_REPLICASET] = BH_KIND_REPLICASET,
        [BH_OWNER_STATEFULSET] = BH_KIND_STATEFULSET,
    };
    const void *owner =
        pod->owner_kind == BH_OWNER_OTHER || pod->owner_kind > BH_OWNER_STATEFULSET
            ? NULL
            : bh_objects_get(objects, kinds[pod->owner_kind], bh_sym_text(tab, pod->namespace_),
                             bh_sym_text(tab, pod->owner));
    const K8s__LabelSelector *more = NULL;

    if (!owner)
        return &none;
    if (pod->owner_kind == BH_OWNER_REPLICATIONCONTROLLER) {
        const K8s__ReplicationController *rc = owner;
        if (rc->spec)
            set_merge(set, tab, rc->spec->selector, rc->spec->n_selector);
    } else if (pod->owner_kind == BH_OWNER_REPLICASET) {
        const K8s__ReplicaSet *rs = owner;
        more = rs->spec ? rs->spec->selector : NULL;
    } else {
        const K8s__StatefulSet *ss = owner;
        more = ss->spec ? ss->spec->selector : NULL;
    }
    return more && bh_label_selector_parses(more) ? more : &none; /* else it adds nothing */
}

const struct bh_label_selector *bh_default_selector(struct bh_symtab *tab,
                                                    const struct bh_objects *objects,
                                                    const struct bh_shape_rec *pod,
                                                    struct bh_arena *a, size_t *ret_size)
{
    struct set set = {.a = a};

    const char *ns = bh_sym_text(tab, pod->namespace_);
    bh_objects_each(ob, objects, BH_KIND_SERVICE) {
        const K8s__Service *svc = (const K8s__Service *)(const void *)ob->msg;
        if (bh_streq(ob->ns, ns) && svc->spec &&
            selects(tab, svc->spec->selector, svc->spec->n_selector, pod))
            set_merge(&set, tab, svc->spec->selector, svc->spec->n_selector);
    }
    const K8s__LabelSelector *more = merge_owner(&set, tab, objects, pod);
    size_t n_req = set.n + more->n_matchlabels + more->n_matchexpressions;
    size_t n_values = set.n + more->n_matchlabels;
    for (size_t i = 0; i < more->n_matchexpressions; i++)
        n_values += more->matchexpressions[i]->n_values;
    *ret_size = sizeof(struct bh_label_selector) + n_req * sizeof(struct bh_requirement) +
                n_values * sizeof(bh_sym);
    struct build b = {.sel = bh_arena_zalloc(a, *ret_size)};
    b.req = (struct bh_requirement *)(b.sel + 1);
    b.values = (bh_sym *)(b.req + n_req);
    for (uint32_t i = 0; i < set.n; i++)
        *add(&b, set.v[i].key, BH_REQ_IN, 1) = set.v[i].value;
    for (size_t i = 0; i < more->n_matchlabels; i++)
        *add(&b, bh_sym_internc(tab, more->matchlabels[i]->key), BH_REQ_IN, 1) =
            bh_sym_internc(tab, more->matchlabels[i]->value);
    for (size_t i = 0; i < more->n_matchexpressions; i++) {
        const K8s__LabelSelectorRequirement *r = more->matchexpressions[i];
        bh_sym *v = add(&b, bh_sym_internc(tab, r->key),
                        bh_req_op_of(r->operator_, BH_REQ_NOT_EXISTS + 1), r->n_values);
        for (size_t k = 0; k < r->n_values; k++)
            v[k] = bh_sym_internc(tab, r->values[k]);
    }
    if (b.n_req)
        b.sel->requirements = (struct bh_slice){(uint32_t)((char *)b.req - (char *)b.sel), b.n_req};
    return b.sel;
}

/* ---- memo ---- */

#define MEMO_MAX 16384u /* shapes; then everything is forgotten */

static const enum bh_kind watched[] = {BH_KIND_SERVICE, BH_KIND_REPLICATIONCONTROLLER,
                                       BH_KIND_REPLICASET, BH_KIND_STATEFULSET};
struct memo_entry {
    uint64_t born; /* of the shape id */
    struct bh_label_selector *sel;
    size_t size;
};
struct bh_selector_memo {
    struct bh_umap by_shape; /* shape id -> struct memo_entry * */
    uint64_t version[BH_ARRAY_LEN(watched)];
};

struct bh_selector_memo *bh_selector_memo_new(void)
{
    return bh_calloc(1, sizeof(struct bh_selector_memo));
}

static struct memo_entry *entry_of(uint64_t v)
{
    return (struct memo_entry *)(uintptr_t)v;
}

static void forget_all(struct bh_selector_memo *m)
{
    size_t it = 0;
    uint64_t k, v;

    while (bh_umap_next(&m->by_shape, &it, &k, &v)) {
        free(entry_of(v)->sel);
        free(entry_of(v));
    }
    bh_umap_clear(&m->by_shape);
}

void bh_selector_memo_free(struct bh_selector_memo *m)
{
    if (!m)
        return;
    forget_all(m);
    bh_umap_fini(&m->by_shape);
    free(m);
}

const struct bh_label_selector *bh_selector_memo_get(struct bh_selector_memo *m, struct bh_call *c,
                                                     size_t *ret_size)
{
    uint64_t born = c->cache->shapes.e[c->pod->shape_id].born, v;

    const struct bh_objects *objects = c->objects;
    bool changed = m->by_shape.len >= MEMO_MAX;
    for (unsigned i = 0; i < BH_ARRAY_LEN(watched); i++) {
        changed |= m->version[i] != objects->version[watched[i]];
        m->version[i] = objects->version[watched[i]];
    }
    if (changed && m->by_shape.len)
        forget_all(m);
    bool known = bh_umap_get(&m->by_shape, c->pod->shape_id, &v);
    if (known && entry_of(v)->born == born) {
        *ret_size = entry_of(v)->size;
        return entry_of(v)->sel;
    }
    struct memo_entry *e = known ? entry_of(v) : bh_calloc(1, sizeof *e);
    const struct bh_label_selector *sel =
        bh_default_selector(c->tab, c->objects, c->pod->shape, c->arena, ret_size);
    struct bh_label_selector *copy = bh_memdup(sel, *ret_size);
    free(e->sel);
    *e = (struct memo_entry){.born = born, .sel = copy, .size = *ret_size};
    if (!known)
        bh_umap_put(&m->by_shape, c->pod->shape_id, (uint64_t)(uintptr_t)e);
    return copy;
}
