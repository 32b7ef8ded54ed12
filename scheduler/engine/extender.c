/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/extender.c - what HTTP extenders change in a cycle: the feasible nodes and their
 * totals
 *
 * Filter: one after the other, each sees what the former left, as upstream; asking them at the same
 * time would show them nodes that upstream does not. Prioritize: all at the same time. Preemption:
 * preemption/extend.c. The fast path knows nothing of extenders: pods that one of them filters or
 * prioritises for take the reference path, all others do not notice.
 *
 * Memory: what an extender said that the decision needs is copied into the cycle's arena.
 * Upstream: pkg/scheduler/schedule_one.go (findNodesThatPassExtenders, prioritizeNodes);
 *           differences: scheduler/extender/README.md.
 */
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cache/pod_facts.h"
#include "scheduler/engine/state.h"

#define DECODE_MAX_BYTES ((size_t)64 << 20)

#define SCALE           10     /* upstream's MaxNodeScore / MaxExtenderPriority */
#define NEW_SYMBOLS_MAX 65536u /* texts that extenders may add to the symbol table */
#define STRANGERS_MAX   1024u  /* failed "nodes" that are none */

int bh_extenders_start(struct bh_engine *e, struct bh_err *err)
{
    int rc = bh_ext_new(e->opt.config, e->opt.waiting, e->opt.waiting_arg, &e->ext, err);

    e->ext_deciding = bh_ext_with(e->ext, 1u << BH_EXT_FILTER | 1u << BH_EXT_PRIORITIZE);
    e->raw_changed = true;
    for (uint32_t i = 0; i < e->n_profiles; i++)
        e->profile[i].fw->extended = e->ext_deciding != 0;
    return rc;
}

/* Every change of what upstream watches for plugins (UnrollWildCardResource). */
bool bh_extenders_wake(const struct bh_cluster_event *ev)
{
    switch (ev->resource == BH_EV_OBJECT ? ev->kind : BH_KIND_POD) {
    case BH_KIND_POD:
    case BH_KIND_PERSISTENTVOLUME:
    case BH_KIND_PERSISTENTVOLUMECLAIM:
    case BH_KIND_CSINODE:
    case BH_KIND_CSIDRIVER:
    case BH_KIND_CSISTORAGECAPACITY:
    case BH_KIND_STORAGECLASS:
    case BH_KIND_RESOURCECLAIM:
    case BH_KIND_DEVICECLASS:
        return true;
    default:
        return false;
    }
}

static uint64_t interest(const struct bh_engine *e, const struct bh_pod_info *pod)
{
    return bh_ext_interest(e->ext, bh_rec_text(pod->rec, pod->rec->uid), pod->shape, e->tab);
}

bool bh_extended(const struct bh_engine *e, const struct bh_pod_info *pod)
{
    return e->ext_deciding && (interest(e, pod) & e->ext_deciding);
}

void bh_extend_begin(struct bh_engine *e, const struct bh_pod_info *pod, struct bh_reference *r)
{
    bh_map_clear(&e->ext_strangers);
    bh_ext_begin(e->ext);
    r->cy.ext = e->ext;
    r->cy.ext_interested = interest(e, pod);
    r->extended = (r->cy.ext_interested & e->ext_deciding) != 0;
}

static struct bh_ext_pod pod_of(const struct bh_pod_rec *rec)
{
    return (struct bh_ext_pod){.namespace_ = bh_rec_text(rec, rec->namespace_),
                               .name = bh_rec_text(rec, rec->name),
                               .uid = bh_rec_text(rec, rec->uid)};
}

static uint32_t row_of(const struct bh_engine *e, const char *name)
{
    bh_sym sym = bh_sym_find(e->tab, name, strlen(name));
    const struct bh_node_info *ni = sym != BH_SYM_NONE ? bh_cache_node(&e->cache, sym) : NULL;

    return ni ? ni->row : BH_ROW_NONE;
}

static struct bh_ext_node *nodes_of(struct bh_engine *e, const struct bh_reference *r)
{
    struct bh_ext_node *v = bh_arena_new_array(&e->arena, struct bh_ext_node, r->n_feasible + 1);

    for (uint32_t i = 0; i < r->n_feasible; i++) {
        uint32_t row = r->feasible[i];
        v[i].name = bh_sym_text(e->tab, e->cache.rows[row]->name);
        v[i].object = r->ext_object ? r->ext_object[row] : NULL;
    }
    return v;
}

/* ---- filter ---------------------------------------------------------------------------------- */

/* Foreign text must not fill the symbol table: beyond a bound all new texts are one, which equals
 * nothing that a pod asks for. */
static bh_sym intern_some(void *arg, const char *s, size_t n)
{
    struct bh_engine *e = arg;
    bh_sym sym = bh_sym_find(e->tab, s, n);

    if (sym != BH_SYM_NONE || n == 0)
        return sym;
    if (e->ext_symbols >= NEW_SYMBOLS_MAX)
        return bh_sym_internc(e->tab, "\x01");
    e->ext_symbols++;
    return bh_sym_intern(e->tab, s, n);
}

/* The extender's own copy of a node stands for it from here on: without pods, as upstream. */
static const struct bh_node_info *copy_of(struct bh_engine *e, uint32_t row,
                                          const struct bh_json *object, struct bh_err *err)
{
    const struct bh_interner in = {.intern = intern_some, .arg = e};
    struct bh_node_info *ni = bh_arena_new(&e->arena, struct bh_node_info);
    struct bh_node_rec *rec = NULL;
    ProtobufCMessage *m = NULL;

    int rc = bh_json_to_pb(&e->arena, &k8s__node__descriptor, object, &m, NULL, err);
    if (rc == 0)
        rc = bh_compile_node(&e->arena, (const K8s__Node *)m, &in, &rec, err);
    if (rc < 0)
        return NULL;
    ni->rec = rec;
    ni->name = e->cache.rows[row]->name;
    ni->row = row;
    ni->arena = &e->arena;
    return ni;
}

/* An answer that makes no sense leaves everything as it was: if the extender is ignorable, the cycle
 * goes on. */
static const char *take_nodes(struct bh_engine *e, struct bh_reference *r, uint32_t i,
                              const struct bh_ext_filtered *f)
{
    enum { ASKED = 1, TAKEN = 2 };
    uint8_t *state = bh_arena_new_array(&e->arena, uint8_t, r->n_rows + 1);
    uint32_t *rows = bh_arena_new_array(&e->arena, uint32_t, e->cache.n_nodes + 1), n = 0;
    const struct bh_node_info **copy = NULL;
    const struct bh_json **object = NULL;
    struct bh_err err = {{0}};

    if (f->copies) {
        copy = bh_arena_new_array(&e->arena, const struct bh_node_info *, r->n_rows + 1);
        object = bh_arena_new_array(&e->arena, const struct bh_json *, r->n_rows + 1);
    }
    for (uint32_t k = 0; k < r->n_feasible; k++)
        state[r->feasible[k]] = ASKED;
    for (uint32_t k = 0; k < f->n; k++) {
        uint32_t row = row_of(e, f->nodes[k].name);
        if (row == BH_ROW_NONE || (!f->copies && !state[row]))
            return bh_arena_printf(
                &e->arena,
                "extender \"%s\" claims a filtered node \"%.*s\" which is not found in the input "
                "node list",
                bh_ext_name(e->ext, i), (int)BH_EXT_TEXT_MAX, f->nodes[k].name);
        if (state[row] & TAKEN) /* named more than once */
            continue;
        if (f->copies) {
            object[row] = f->nodes[k].object;
            copy[row] = copy_of(e, row, object[row], &err);
            if (!copy[row])
                return bh_arena_strdup(&e->arena, err.msg);
        }
        state[row] |= TAKEN;
        rows[n++] = row;
    }
    if (f->copies) { /* of all that are left */
        r->cy.replaced = copy;
        r->ext_object = object;
    }
    r->feasible = rows;
    r->n_feasible = n;
    return NULL;
}

/* One extender; NULL, or why the cycle fails. */
static const char *filter_by(struct bh_engine *e, struct bh_reference *r, uint32_t i,
                             const struct bh_ext_pod *pod)
{
    const struct bh_ext_node *nodes = nodes_of(e, r);
    struct bh_ext_filtered f;
    const char *error = bh_ext_filter(e->ext, i, pod, nodes, r->n_feasible, &f);

    if (!error) {
        error = take_nodes(e, r, i, &f);
        if (error)
            bh_ext_complain(e->ext, i, BH_EXT_FILTER, error);
    }
    for (uint32_t k = 0; !error && k < f.n_failed; k++) {
        const struct bh_ext_failed *x = &f.failed[k];
        const struct bh_status *s = bh_status_new(
            &e->arena, x->unresolvable ? BH_UNSCHEDULABLE_AND_UNRESOLVABLE : BH_UNSCHEDULABLE,
            BH_EXTENDER_PLUGIN, "%s", x->reason);
        uint32_t row = row_of(e, x->node);
        if (row != BH_ROW_NONE)
            r->by_row[row] = s;
        else if (*x->node && e->ext_strangers.len < STRANGERS_MAX) /* counts in the text */
            (void)bh_map_put(&e->ext_strangers, x->node, strlen(x->node), (void *)(uintptr_t)s);
    }
    return bh_ext_ignorable(e->ext, i) ? NULL : error;
}

void bh_extend_filter(struct bh_engine *e, struct bh_reference *r)
{
    const struct bh_ext_pod pod = pod_of(r->cy.calls[0].pod->rec);

    for (uint32_t i = 0; i < bh_ext_count(e->ext) && r->n_feasible && !r->error; i++) {
        const char *error = NULL;
        if (r->cy.ext_interested >> i & 1 && bh_ext_has(e->ext, i, BH_EXT_FILTER))
            error = filter_by(e, r, i, &pod);
        if (error)
            r->error = bh_status_new(&e->arena, BH_ERROR, NULL, "%s", error);
    }
    if (r->error)
        r->n_feasible = 0;
}

/* An error here is not the cycle's: every node gets its chance, and the error with it. */
bool bh_extend_nominated(struct bh_engine *e, struct bh_reference *r)
{
    uint32_t *feasible = r->feasible;

    bh_extend_filter(e, r);
    r->error = NULL;
    if (r->n_feasible)
        return true;
    r->feasible = feasible;
    r->cy.replaced = NULL;
    r->ext_object = NULL;
    return false;
}

const struct bh_status *const *bh_extend_statuses(struct bh_engine *e, const struct bh_reference *r,
                                                  uint32_t *ret_n)
{
    struct bh_map_entry *m;

    *ret_n = r->n_rows;
    if (!r->cy.ext || !e->ext_strangers.len)
        return r->by_row;
    const struct bh_status **v =
        bh_arena_new_array(&e->arena, const struct bh_status *, r->n_rows + e->ext_strangers.len);
    memcpy(v, r->by_row, r->n_rows * sizeof *v);
    for (size_t it = 0; (m = bh_map_next(&e->ext_strangers, &it));)
        v[(*ret_n)++] = m->value;
    return v;
}

const char *bh_extend_rejector(const struct bh_reference *r)
{
    return r->ext_removed ? BH_EXTENDER_PLUGIN : NULL;
}

/* ---- prioritize ------------------------------------------------------------------------------ */

/* Saturates; upstream wraps. */
static int64_t scaled(int64_t score, int64_t weight)
{
    __int128 v = (__int128)score * weight;

    v = v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : v;
    return bh_sum_i64(v * SCALE);
}

void bh_extend_scores(struct bh_engine *e, struct bh_reference *r, unsigned flags)
{
    struct bh_ext_scores got[BH_EXT_MAX];
    const struct bh_ext_pod pod = pod_of(r->cy.calls[0].pod->rec);
    uint64_t asked = r->cy.ext_interested & bh_ext_with(e->ext, 1u << BH_EXT_PRIORITIZE);
    bool *listed = bh_arena_new_array(&e->arena, bool, r->n_rows + 1);

    if (asked)
        bh_ext_prioritize(e->ext, asked, &pod, nodes_of(e, r), r->n_feasible, got);
    r->ext_scores = bh_arena_new_array(&e->arena, struct bh_extender_score, BH_EXT_MAX);
    int64_t *by_row = bh_arena_new_array(&e->arena, int64_t, r->n_rows + 1);
    for (uint32_t i = 0; i < bh_ext_count(e->ext); i++) {
        if (!(asked >> i & 1) || got[i].error)
            continue;
        memset(by_row, 0, r->n_rows * sizeof *by_row);
        const struct bh_ext_scores *s = &got[i];
        int64_t weight = bh_ext_weight(e->ext, i);
        for (uint32_t k = 0; k < s->n; k++) {
            uint32_t row = row_of(e, s->hosts[k].host);
            if (row == BH_ROW_NONE)
                continue;
            by_row[row] = bh_add_sat(by_row[row], scaled(s->hosts[k].score, weight));
            listed[row] = true;
        }
        for (uint32_t k = 0; k < r->n_feasible; k++)
            r->total[k] = bh_add_sat(r->total[k], by_row[r->feasible[k]]);
        if (flags & BH_EXPLAIN) {
            struct bh_extender_score *x = &r->ext_scores[r->n_ext_scores++];
            x->name = bh_ext_name(e->ext, i);
            x->weight = bh_ext_weight(e->ext, i);
            x->weighted = bh_arena_new_array(&e->arena, int64_t, r->n_feasible);
            for (uint32_t k = 0; k < r->n_feasible; k++)
                x->weighted[k] = by_row[r->feasible[k]];
        }
    }
    if (!(r->cy.ext_interested & ~asked)) /* one without the verb lists every node with score 0 */
        r->ext_listed = listed;
}

void bh_extend_best(struct bh_reference *r)
{
    uint32_t n = 0;

    /* Upstream draws a number for each node that an extender listed; the others have 0. */
    for (uint32_t i = 0; r->ext_listed && i < r->n_best; i++)
        if (r->ext_listed[r->best[i]])
            r->best[n++] = r->best[i];
    r->n_best = n ? n : r->n_best;
}

uint32_t bh_extend_explain(const struct bh_reference *r, uint32_t at, struct bh_plugin_score *ret)
{
    for (uint32_t i = 0; i < r->n_ext_scores; i++) {
        const struct bh_extender_score *x = &r->ext_scores[i];
        int64_t factor = scaled(1, x->weight);
        ret[i] = (struct bh_plugin_score){.plugin = x->name,
                                          .raw = x->weighted[at] / factor,
                                          .normalized = x->weighted[at] / factor,
                                          .weighted = x->weighted[at],
                                          .weight = (int32_t)BH_MIN(factor, INT32_MAX)};
    }
    return r->n_ext_scores;
}

/* ---- engine.h -------------------------------------------------------------------------------- */

unsigned bh_engine_raw_needs(const struct bh_engine *e)
{
    unsigned wanted = e->cache.annotations.wanted;

    return bh_ext_needs(e->ext) | (wanted & BH_ANNOTATIONS_NODES ? BH_EXT_NEED_NODES : 0) |
           (wanted & BH_ANNOTATIONS_PODS ? BH_EXT_NEED_PENDING | BH_EXT_NEED_ASSIGNED : 0);
}

/* And of pods what else is kept with them. m NULL: it is gone. */
static bool put_annotations(struct bh_engine *e, enum bh_kind kind, const char *key,
                            const ProtobufCMessage *m)
{
    const enum bh_annotations_of of =
        kind == BH_KIND_NODE ? BH_ANNOTATIONS_NODES : BH_ANNOTATIONS_PODS;
    bool changed =
        bh_cache_put_annotations(&e->cache, of, bh_str_c(key), m ? bh_object_meta(m) : NULL);

    e->raw_changed |= kind == BH_KIND_NODE;
    if (m && kind == BH_KIND_POD)
        bh_pod_facts_put(&e->cache.annotations, bh_str_c(key), (const K8s__Pod *)(const void *)m);
    return changed;
}

/* Of a whole object that came as bytes. */
static bool read_annotations(struct bh_engine *e, enum bh_kind kind, const char *key,
                             const void *object, size_t n)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    ProtobufCMessage *m = NULL;
    unsigned of = kind == BH_KIND_NODE ? BH_ANNOTATIONS_NODES : BH_ANNOTATIONS_PODS;

    bh_arena_init(&a, DECODE_MAX_BYTES);
    if (!(e->cache.annotations.wanted & of) ||
        (object && bh_pb_unpack(&a, bh_kinds[kind].desc, object, n, &m, NULL) < 0))
        return false;
    return put_annotations(e, kind, key, m);
}

static void put_whole(struct bh_engine *e, enum bh_kind kind, const char *key, const void *object,
                      size_t n)
{
    if (!e->ext)
        return;
    if (kind == BH_KIND_NODE) {
        bh_ext_put_node(e->ext, key, object, n);
        e->raw_changed = true;
        bh_sym node = bh_sym_find(e->tab, key, strlen(key));
        if (node) /* a guest whose answers are kept may have read it */
            bh_cache_node_differs(&e->cache, node);
    } else if (kind == BH_KIND_POD) {
        bh_ext_put_pod(e->ext, bh_str_c(key), object, n);
    }
}

bool bh_engine_put_raw(struct bh_engine *e, enum bh_kind kind, const char *key, const void *object,
                       size_t n)
{
    put_whole(e, kind, key, object, n);
    return (kind == BH_KIND_NODE || kind == BH_KIND_POD) &&
           read_annotations(e, kind, key, object, n);
}

bool bh_engine_put_raw_message(struct bh_engine *e, enum bh_kind kind, const ProtobufCMessage *m)
{
    const K8s__ObjectMeta *meta = m ? bh_object_meta(m) : NULL;
    struct bh_buf bytes BH_CLEANUP(bh_buf_fini) = {0};

    if (!meta)
        return false;
    const char *key = kind == BH_KIND_NODE ? meta->name : meta->uid;
    if (e->ext) {
        bh_pb_pack(&bytes, m);
        put_whole(e, kind, key, bh_buf_str(&bytes), bytes.n);
    }
    return put_annotations(e, kind, key, m);
}

/* What is needed of the node's object is there. */
static bool knows_node(const struct bh_engine *e, bh_sym name)
{
    const char *text = bh_sym_text(e->tab, name);

    return (!(bh_ext_needs(e->ext) & BH_EXT_NEED_NODES) || bh_ext_knows_node(e->ext, text)) &&
           (!(e->cache.annotations.wanted & BH_ANNOTATIONS_NODES) ||
            bh_annotations_known(&e->cache.annotations, BH_ANNOTATIONS_NODES, bh_str_c(text)));
}

bool bh_engine_raw_complete(struct bh_engine *e)
{
    if (!(bh_engine_raw_needs(e) & BH_EXT_NEED_NODES))
        return true;
    if (!e->raw_changed && e->raw_membership == e->cache.membership)
        return e->raw_complete;
    e->raw_changed = false;
    e->raw_membership = e->cache.membership;
    e->raw_complete = true;
    for (uint32_t row = 0; row < e->cache.cap_rows && e->raw_complete; row++)
        if (e->cache.rows[row])
            e->raw_complete = knows_node(e, e->cache.rows[row]->name);
    return e->raw_complete;
}

bool bh_engine_extender_binds(const struct bh_engine *e, const struct bh_pending *p)
{
    const struct bh_shape_rec *s = bh_shapes_rec(&e->cache.shapes, p->shape);

    return e->ext && bh_ext_binds(e->ext, bh_ext_interest(e->ext, bh_rec_text(p->pod, p->pod->uid),
                                                          s, e->tab));
}

void bh_engine_extender_bind(struct bh_engine *e, const struct bh_pending *p, bh_sym node,
                             bh_ext_done_fn *done, void *arg, uint64_t id)
{
    const struct bh_shape_rec *s = bh_shapes_rec(&e->cache.shapes, p->shape);
    const struct bh_ext_pod pod = pod_of(p->pod);

    bh_ext_bind(e->ext, bh_ext_interest(e->ext, pod.uid, s, e->tab), &pod,
                bh_sym_text(e->tab, node), done, arg, id);
}

void bh_engine_extenders_serve(struct bh_engine *e)
{
    if (e->ext)
        bh_ext_serve(e->ext);
}

int bh_engine_extenders_fd(const struct bh_engine *e)
{
    return e->ext ? bh_ext_fd(e->ext) : -1;
}

void bh_engine_extenders_metrics(struct bh_engine *e, struct bh_metrics *m)
{
    if (e->ext)
        bh_ext_set_metrics(e->ext, m);
}
