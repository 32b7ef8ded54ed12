/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/engine.c - the engine's API: state in, decisions out
 *
 * Upstream: pkg/scheduler/scheduler.go, schedule_one.go, backend/cache; differences: see
 *           scheduler/engine/README.md.
 */
#include <errno.h>

#include "common/base/pages.h"
#include "common/k8s/compile.h"
#include "scheduler/engine/fast/fast.h"

/* Results kept per shape: at 5,000 nodes a shape takes about 250 KB. */
#define SHAPE_CACHE_BYTES_MAX ((size_t)512 << 20)

static int add_profiles(struct bh_engine *e, struct bh_err *err)
{
    const struct bh_sched_config *c = e->opt.config;
    const struct bh_plugin_env env = {.tab = e->tab,
                                      .ext = &e->ext,
                                      .cache = &e->cache,
                                      .objects = &e->objects,
                                      .reserved = &e->reserved,
                                      .waiting = &e->waiting,
                                      .config = c,
                                      .verify = e->opt.verify,
                                      .asks = &e->asks};

    e->profile = bh_calloc(c->n_profiles, sizeof *e->profile);
    for (uint32_t i = 0; i < c->n_profiles; i++) {
        struct bh_profile *p = &e->profile[i];
        int rc =
            bh_framework_new(&c->profiles[i], c->percentage_of_nodes_to_score, &env, &p->fw, err);
        if (rc < 0)
            return bh_err_prefix(err, rc,
                                 "initializing profiles: creating profile for scheduler name %s",
                                 c->profiles[i].scheduler_name);
        p->name = bh_sym_internc(e->tab, c->profiles[i].scheduler_name);
        p->fast = bh_fast_eligible(p->fw);
        for (uint32_t k = 0; k < p->fw->n_plugins; k++)
            p->tracked |= (uint64_t)(p->fw->plugins[k].plugin->track != NULL) << k;
        for (uint32_t k = 0; k < p->fw->n_plugins; k++)
            if (p->fw->plugins[k].plugin->flags & BH_PLUGIN_OVERLAY)
                p->overlay |= (uint64_t)1 << k;
        for (uint32_t k = 0; k < p->fw->n_plugins; k++)
            e->cache.annotations.wanted |= p->fw->plugins[k].plugin->annotations;
        p->fw->profile = i;
        p->fw->observer = e->opt.observer;
        e->n_profiles++;
        e->cache.keep_order |= p->fw->sampling;
    }
    return 0;
}

int bh_engine_new(const struct bh_engine_options *o, struct bh_engine **ret_e, struct bh_err *err)
{
    struct bh_engine *e = bh_calloc(1, sizeof *e);
    int rc = 0;

    e->opt = *o;
    if (!o->config)
        rc = bh_sched_config_new(NULL, &e->own_config, err);
    if (rc < 0) {
        free(e);
        return rc;
    }
    if (!o->config)
        e->opt.config = e->own_config;
    e->tab = bh_symtab_new();
    bh_cache_init(&e->cache, e->tab, false);
    e->cache.rebuilt = o->rebuilt_snapshot;
    e->cache.groups.on = bh_sched_config_gate(e->opt.config, "GenericWorkload");
    e->cache.keep_order |= bh_sched_config_gate(e->opt.config, "WorkloadAwarePreemption");
    e->placements = bh_sched_config_gate(e->opt.config, "TopologyAwareWorkloadScheduling");
    bh_arena_init(&e->arena, 0);
    bh_arena_init(&e->scratch, 0);
    bh_arena_init(&e->aside, 0);
    bh_arena_init(&e->group_arena, 0);
    bh_asks_init(&e->asks);
    bh_rand_seed(&e->rand, o->seed);
    e->cache_bytes_max = SHAPE_CACHE_BYTES_MAX;
    rc = add_profiles(e, err);
    if (rc == 0)
        rc = bh_extenders_start(e, err);
    if (rc < 0) {
        bh_engine_free(e);
        return rc;
    }
    *ret_e = e;
    return 0;
}

void bh_engine_free(struct bh_engine *e)
{
    if (!e)
        return;
    bh_fast_drop_all(e);
    bh_ext_free(e->ext);
    bh_map_fini(&e->ext_strangers);
    for (uint32_t i = 0; i < e->n_profiles; i++) {
        bh_framework_free(e->profile[i].fw);
        free(e->profile[i].slot);
    }
    free(e->profile);
    free(e->rows);
    free(e->rows2);
    free(e->rows3);
    bh_pages_free(e->stamp, e->n_scratch_rows * sizeof *e->stamp);
    free(e->values);
    free(e->values2);
    free(e->values3);
    free(e->by_name);
    bh_reservations_fini(&e->reserved);
    bh_waiting_fini(&e->waiting);
    bh_asks_fini(&e->asks);
    bh_objects_fini(&e->objects);
    bh_cache_fini(&e->cache);
    bh_symtab_free(e->tab);
    bh_arena_fini(&e->arena);
    bh_arena_fini(&e->scratch);
    bh_arena_fini(&e->aside);
    bh_arena_fini(&e->group_arena);
    bh_sched_config_free(e->own_config);
    free(e);
}

struct bh_symtab *bh_engine_symtab(struct bh_engine *e)
{
    return e->tab;
}

bool bh_engine_responsible(const struct bh_engine *e, const char *scheduler_name)
{
    for (uint32_t i = 0; i < e->n_profiles; i++)
        if (bh_streq(bh_sym_text(e->tab, e->profile[i].name), scheduler_name))
            return true;
    return false;
}

static struct bh_profile *profile_of(struct bh_engine *e, const struct bh_shape_rec *s)
{
    for (uint32_t i = 0; i < e->n_profiles; i++)
        if (e->profile[i].name == s->scheduler_name)
            return &e->profile[i];
    return NULL;
}

/* ---- state ----------------------------------------------------------------------------------- */

bh_shape_id bh_engine_shape(struct bh_engine *e, const struct bh_shape_rec *s)
{
    return bh_shapes_intern(&e->cache.shapes, s);
}

void bh_engine_shape_unref(struct bh_engine *e, bh_shape_id id)
{
    bh_shapes_unref(&e->cache.shapes, id);
}

const struct bh_shape_rec *bh_engine_shape_rec(const struct bh_engine *e, bh_shape_id id)
{
    return bh_shapes_rec(&e->cache.shapes, id);
}

void bh_engine_put_node(struct bh_engine *e, const struct bh_node_rec *n)
{
    bh_cache_put_node(&e->cache, n);
}

void bh_engine_del_node(struct bh_engine *e, bh_sym name)
{
    bh_cache_del_node(&e->cache, name);
}

/* A claim of its may be written in this moment: another client bound the pod. */
static bool is_being_written(const struct bh_engine *e, struct bh_str uid)
{
    const struct bh_reservation *r = bh_reservation_of(&e->reserved, uid);

    for (uint32_t i = 0; r && i < r->n; i++)
        if (r->state[i].in_flight)
            return true;
    return false;
}

void bh_engine_put_pod(struct bh_engine *e, const struct bh_pod_rec *pod, bh_shape_id shape)
{
    struct bh_str uid = bh_rec_text(pod, pod->uid);

    if (pod->node == BH_SYM_NONE) { /* not assigned: nothing of it belongs on a node */
        bh_cache_del_pod(&e->cache, uid);
        return;
    }
    if (!is_being_written(e, uid))              /* else Unreserve follows the answer */
        bh_reservation_drop(&e->reserved, uid); /* it is bound: nothing is left to write */
    bh_cache_put_pod(&e->cache, pod, shape);
}

void bh_engine_del_pod(struct bh_engine *e, struct bh_str uid)
{
    bh_cache_del_pod(&e->cache, uid);
}

void bh_engine_rebuild_begin(struct bh_engine *e)
{
    bh_cache_rebuild_begin(&e->cache);
}

void bh_engine_rebuild_end(struct bh_engine *e)
{
    bh_cache_rebuild_end(&e->cache);
}

uint32_t bh_engine_node_count(const struct bh_engine *e)
{
    return e->cache.n_nodes;
}

uint32_t bh_engine_pod_count(const struct bh_engine *e)
{
    return e->cache.n_pods;
}

uint32_t bh_engine_assumed_count(const struct bh_engine *e)
{
    return e->cache.n_assumed;
}

int bh_engine_put_object(struct bh_engine *e, enum bh_kind kind, const char *ns, const char *name,
                         const void *object, size_t n, struct bh_err *err)
{
    return bh_objects_put(&e->objects, kind, ns, name, object, n, err);
}

/* ---- a pending pod --------------------------------------------------------------------------- */

static struct bh_pod_info info_of(const struct bh_engine *e, const struct bh_pending *p)
{
    const struct bh_shape_rec *shape = bh_shapes_rec(&e->cache.shapes, p->shape);

    bh_assert(shape); /* who has a pod holds its shape */
    return (struct bh_pod_info){.rec = p->pod, .shape = shape, .shape_id = p->shape};
}

/* Its statuses live until the next of them. */
bool bh_aside_cycle(struct bh_engine *e, const struct bh_pending *p, struct bh_pod_info *pod,
                    struct bh_cycle *cy)
{
    *pod = info_of(e, p);
    const struct bh_profile *prof = profile_of(e, pod->shape);
    bh_arena_reset(&e->aside);
    if (prof)
        bh_cycle_init(cy, prof->fw, &e->cache, &e->objects, pod, &e->aside, e->now_ns);
    return prof != NULL;
}

/* For points that need no cycle: its making costs as much as all else that comes after a decision. */
static struct bh_call lone_call(struct bh_engine *e, const struct bh_pod_info *pod)
{
    return (struct bh_call){.cache = &e->cache,
                            .tab = e->tab,
                            .objects = &e->objects,
                            .pod = pod,
                            .arena = &e->aside,
                            .now_ns = e->now_ns};
}

const struct bh_status *bh_engine_pre_enqueue(struct bh_engine *e, const struct bh_pending *p)
{
    const struct bh_pod_info pod = info_of(e, p);
    const struct bh_profile *prof = profile_of(e, pod.shape);
    const struct bh_call call = lone_call(e, &pod);

    if (!prof)
        return NULL;
    bh_arena_reset(&e->aside);
    uint64_t t = bh_aside_watch(e, prof->fw, BH_POINT_PRE_ENQUEUE);
    const struct bh_status *s = bh_run_pre_enqueue(prof->fw, &call);
    bh_aside_point(e, prof->fw, BH_SEEN_PRE_ENQUEUE, bh_status_code(s), t);
    return s;
}

static const struct bh_decision *refuse(struct bh_engine *e, const char *reason,
                                        const char *message)
{
    e->decision = (struct bh_decision){
        .kind = BH_DECISION_ERROR, .reason = reason, .message = message, .clear_nomination = true};
    return &e->decision;
}

/* What a plugin reads is not known: no answer of its would be worth anything. */
static const struct bh_decision *refuse_blind(struct bh_engine *e, const struct bh_framework *fw)
{
    const uint64_t unknown = e->objects.unknown;
    uint32_t i = 0;

    while (!(fw->plugins[i].plugin->kinds & unknown))
        i++;
    const struct bh_plugin *p = fw->plugins[i].plugin;
    unsigned kind = (unsigned)__builtin_ctzll(p->kinds & unknown);
    return refuse(e, "SchedulerError",
                  bh_arena_printf(&e->arena, "plugin \"%s\" reads what is not known: %s", p->name,
                                  e->objects.why_unknown[bh_plugin_kind_index(kind)]));
}

/* Draws once per cycle with more than one best. */
static uint32_t draw(struct bh_engine *e, uint32_t n_best)
{
    return e->opt.tie_break == BH_TIE_RANDOM && n_best > 1
               ? (uint32_t)bh_rand_below(&e->rand, n_best)
               : 0;
}

/* Among equals: the k-th in order of visit, or the smallest name. */
static uint32_t pick(struct bh_engine *e, const struct bh_reference *r, uint32_t k)
{
    uint32_t row = r->best[k];

    if (e->opt.tie_break == BH_TIE_RANDOM)
        return row;
    for (uint32_t i = 0; i < r->n_best; i++)
        if (bh_row_name_cmp(&e->cache, r->best[i], row) < 0)
            row = r->best[i];
    return row;
}

static const struct bh_decision *decide_slowly(struct bh_engine *e, struct bh_profile *p,
                                               const struct bh_pod_info *pod, unsigned flags,
                                               int64_t now_ns)
{
    struct bh_reference r;
    struct bh_fast f;
    uint32_t row = BH_ROW_NONE;

    if (e->opt.verify && bh_extended(e, pod)) { /* the paths can be compared up to there only */
        uint32_t next_start = e->next_start;
        struct bh_watch watch = e->watch;
        e->watch.on = false;
        bh_reference_run(e, p, pod, BH_WITHOUT_EXTENDERS, now_ns, &r);
        bh_verify(e, p, pod, &r, now_ns);
        e->next_start = next_start;
        e->watch = watch;
    }
    bh_reference_run(e, p, pod, flags, now_ns, &r);
    if (e->opt.verify && !r.extended)
        bh_verify(e, p, pod, &r, now_ns);
    if (!r.error && r.n_best) {
        uint32_t k = draw(e, r.n_best);
        row = pick(e, &r, k);
        if (e->opt.verify && !r.extended && bh_fast_run(e, p, pod, BH_FAST_KEEP, now_ns, &f))
            bh_assert(bh_fast_pick(e, &f, k) == row);
    }
    return e->opt.verify ? bh_verify_decide(e, p, pod, &r, row, flags, now_ns)
                         : bh_decide(e, &r, row, flags);
}

static const struct bh_decision *decide(struct bh_engine *e, const struct bh_pending *p,
                                        unsigned flags, int64_t now_ns)
{
    static const struct bh_decision waits = {.kind = BH_DECISION_ERROR,
                                             .reason = "SchedulerError",
                                             .message = "another decision waits for an extender"};
    struct bh_pod_info pod = info_of(e, p);
    struct bh_profile *prof = profile_of(e, pod.shape);
    struct bh_fast f;

    if (bh_ext_busy(e->ext)) /* asked from inside of options.waiting */
        return &waits;
    uint64_t hits = e->stats.shape_hits;
    if (bh_likely(!e->in_group))
        bh_arena_reset(&e->arena);
    bh_cache_sync(&e->cache);
    bh_watch_begin(e, flags);
    e->stats.cycles++;
    if (!prof)
        return refuse(e, "SchedulerError", "no profile of the pod's scheduler name");
    if (bh_unlikely(prof->fw->kinds & e->objects.unknown))
        return refuse_blind(e, prof->fw);
    if (!e->cache.n_nodes)
        return refuse(e, "Unschedulable", "no nodes available to schedule pods");
    prof->cycles += bh_counts(flags);
    if (flags & BH_EXPLAIN || e->opt.reference || e->opt.verify || bh_extended(e, &pod))
        return decide_slowly(e, prof, &pod, flags, now_ns);
    const struct bh_decision *d = NULL;
    bool fits = bh_fast_run(e, prof, &pod, BH_FAST_AUTO, now_ns, &f);
    if (!fits && f.kept)
        d = bh_fail_decide(e, prof, &pod, f.kept, flags, now_ns);
    if (!fits && !d)
        return decide_slowly(e, prof, &pod, flags, now_ns);
    e->stats.fast_cycles++;
    prof->hinted += e->stats.shape_hits - hits;
    if (d)
        return d;
    uint32_t row = bh_fast_pick(e, &f, draw(e, f.n_best));
    bh_watch_fast(e, prof->fw);
    e->decision = (struct bh_decision){.kind = BH_DECIDED,
                                       .node = e->cache.rows[row]->name,
                                       .feasible = f.n_feasible,
                                       .evaluated = f.evaluated};
    return &e->decision;
}

const struct bh_decision *bh_engine_schedule(struct bh_engine *e, const struct bh_pending *p,
                                             unsigned flags, int64_t now_ns)
{
    e->now_ns = now_ns;
    const struct bh_decision *d = decide(e, p, flags, now_ns);

    bh_watch_end(e);
    return d;
}

int bh_engine_assume(struct bh_engine *e, const struct bh_pending *p, bh_sym node)
{
    int rc = bh_cache_assume(&e->cache, p->pod, p->shape, node);

    if (rc == 0)
        bh_engine_nominate(e, p, BH_SYM_NONE);
    return rc;
}

int bh_engine_forget(struct bh_engine *e, struct bh_str uid)
{
    return bh_cache_forget(&e->cache, uid);
}

bool bh_engine_is_assumed(const struct bh_engine *e, struct bh_str uid)
{
    const struct bh_cache_pod *p = bh_cache_pod(&e->cache, uid);
    return p && p->assumed;
}

/* Most pods: no volumes, no claims. None has to be called then, unless calls are to be timed. */
static bool nothing_to_reserve(struct bh_engine *e, const struct bh_framework *fw,
                               const struct bh_pod_info *pod)
{
    struct bh_call call = lone_call(e, pod);

    if (e->watch.samples || pod->shape->flags & BH_SHAPE_USES_VOLUMES)
        return false;
    bh_each_plugin(i, fw, BH_POINT_RESERVE) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        call.args = fw->plugins[i].args;
        if (!(p->flags & BH_PLUGIN_RESERVES_CLAIMS) || (p->idle && !p->idle(&call)))
            return false;
    }
    return true;
}

const struct bh_status *bh_engine_reserve(struct bh_engine *e, const struct bh_pending *p,
                                          bh_sym node)
{
    struct bh_pod_info pod = info_of(e, p);
    struct bh_profile *prof = profile_of(e, pod.shape);
    struct bh_cycle cy;

    if (prof && nothing_to_reserve(e, prof->fw, &pod)) {
        prof->quiet_reserve++;
        return NULL;
    }
    if (!bh_aside_cycle(e, p, &pod, &cy))
        return NULL;
    cy.samples = e->watch.samples;
    uint64_t t = bh_aside_watch(e, cy.fw, BH_POINT_RESERVE);
    const struct bh_status *s = bh_run_reserve(&cy, node);
    bh_aside_point(e, cy.fw, BH_SEEN_RESERVE, bh_status_code(s), t);
    return s;
}

void bh_engine_unreserve(struct bh_engine *e, const struct bh_pending *p, bh_sym node)
{
    const struct bh_str uid = bh_rec_text(p->pod, p->pod->uid);
    struct bh_pod_info pod = info_of(e, p);
    const struct bh_profile *prof = profile_of(e, pod.shape);
    struct bh_cycle cy;

    if (prof) {
        uint64_t t = bh_aside_watch(e, prof->fw, BH_POINT_RESERVE);
        if ((bh_reservation_of(&e->reserved, uid) || !nothing_to_reserve(e, prof->fw, &pod)) &&
            bh_aside_cycle(e, p, &pod, &cy))
            bh_run_unreserve(&cy, node);
        bh_aside_point(e, prof->fw, BH_SEEN_UNRESERVE, BH_SUCCESS, t);
    }
    bh_reservation_drop(&e->reserved, uid);
}

const struct bh_status *bh_engine_permit(struct bh_engine *e, const struct bh_pending *p,
                                         bh_sym node, int64_t *ret_timeout_ns)
{
    struct bh_pod_info pod = info_of(e, p);
    struct bh_profile *prof = profile_of(e, pod.shape);
    struct bh_cycle cy;

    *ret_timeout_ns = 0;
    if (prof && !prof->fw->n_point[BH_POINT_PERMIT]) {
        prof->quiet_permit++;
        bh_engine_permit_over(e, bh_engine_waiting(e, bh_rec_text(p->pod, p->pod->uid)));
        return NULL;
    }
    if (!bh_aside_cycle(e, p, &pod, &cy))
        return NULL;
    cy.samples = e->watch.samples;
    uint64_t t = bh_aside_watch(e, cy.fw, BH_POINT_PERMIT);
    const struct bh_status *s = bh_run_permit(&cy, node, ret_timeout_ns);
    bh_aside_point(e, cy.fw, BH_SEEN_PERMIT, bh_status_code(s), t);
    if (bh_status_code(s) != BH_WAIT) /* one that said Wait was overruled */
        bh_engine_permit_over(e, bh_engine_waiting(e, bh_rec_text(p->pod, p->pod->uid)));
    return s;
}

struct bh_waiting_pod *bh_engine_waiting(const struct bh_engine *e, struct bh_str uid)
{
    return bh_waiting_find(&e->waiting, uid);
}

enum bh_permit_verdict bh_engine_permit_verdict(struct bh_engine *e, struct bh_waiting_pod *p,
                                                int64_t now_ns, const char **ret_plugin,
                                                const char **ret_message)
{
    e->now_ns = now_ns;
    return bh_waiting_verdict(p, now_ns, ret_plugin, ret_message);
}

void bh_engine_permit_over(struct bh_engine *e, struct bh_waiting_pod *p)
{
    bh_waiting_drop(&e->waiting, p);
}

unsigned bh_engine_activations(struct bh_engine *e, void (*fn)(void *arg, struct bh_str uid),
                               void *arg)
{
    struct bh_map all = e->waiting.activate;
    const unsigned n = (unsigned)all.len;
    struct bh_map_entry *m;

    if (bh_likely(!n))
        return 0;
    /* PreEnqueue is asked on the way, and may want others tried: they are told the next time. */
    e->waiting.activate = (struct bh_map){0};
    for (size_t it = 0; (m = bh_map_next(&all, &it));)
        fn(arg, (struct bh_str){m->key, m->key_len});
    bh_map_fini(&all);
    return n;
}

void bh_engine_moment(struct bh_engine *e, int64_t now_ns)
{
    e->now_ns = now_ns;
}

unsigned bh_engine_asked(struct bh_engine *e, const struct bh_asked *fn, void *arg)
{
    return bh_asks_take(&e->asks, fn, arg);
}

static bool was_tended(const struct bh_engine *e, uint32_t profile, const struct bh_plugin *p)
{
    for (uint32_t k = 0; k < profile; k++)
        for (uint32_t i = 0; i < e->profile[k].fw->n_plugins; i++)
            if (e->profile[k].fw->plugins[i].plugin == p)
                return true;
    return false;
}

void bh_engine_tend(struct bh_engine *e, int64_t now_ns)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (bh_ext_busy(e->ext) ||
        !e->cache.n_nodes) /* as decisions: without nodes there are no rows */
        return;
    bh_cache_sync(&e->cache);
    e->asks.writes_taken = true;
    for (uint32_t k = 0; k < e->n_profiles; k++)
        for (uint32_t i = 0; i < e->profile[k].fw->n_plugins; i++) {
            const struct bh_plugin_instance *in = &e->profile[k].fw->plugins[i];
            struct bh_call call = {.cache = &e->cache,
                                   .tab = e->tab,
                                   .objects = &e->objects,
                                   .args = in->args,
                                   .arena = &a,
                                   .now_ns = now_ns};
            if (in->plugin->tend && !(in->plugin->kinds & e->objects.unknown) &&
                !was_tended(e, k, in->plugin))
                in->plugin->tend(&call);
        }
    e->asks.writes_taken = false;
}

unsigned bh_engine_wakes(struct bh_engine *e, int64_t now_ns,
                         void (*wake)(void *arg, const char *plugin), void *arg)
{
    return bh_asks_take_due(&e->asks, now_ns, wake, arg);
}

int64_t bh_engine_wakes_next(const struct bh_engine *e)
{
    return bh_asks_next_ns(&e->asks);
}

const struct bh_status *bh_engine_bind(struct bh_engine *e, const struct bh_pending *p, bh_sym node,
                                       struct bh_bind_order *ret)
{
    const struct bh_pod_info pod = info_of(e, p);
    const struct bh_profile *prof = profile_of(e, pod.shape);
    struct bh_call call = lone_call(e, &pod);

    *ret = (struct bh_bind_order){.plugin = ""};
    bh_arena_reset(&e->aside);
    return prof ? bh_run_bind(prof->fw, &call, node, ret) : &bh_status_skip;
}

bool bh_engine_prebind_due(struct bh_engine *e, const struct bh_pending *p)
{
    const struct bh_pod_info pod = info_of(e, p);
    const struct bh_profile *prof = profile_of(e, pod.shape);

    return pod.shape->claims.n || (prof && prof->fw->pre_binds);
}

bool bh_engine_post_bind(struct bh_engine *e, const struct bh_pending *p, const char *node)
{
    const struct bh_pod_info pod = info_of(e, p);
    const struct bh_profile *prof = profile_of(e, pod.shape);
    struct bh_call call = lone_call(e, &pod);

    if (!prof || !prof->fw->n_point[BH_POINT_POST_BIND])
        return false;
    bh_arena_reset(&e->aside);
    uint64_t t = bh_aside_watch(e, prof->fw, BH_POINT_POST_BIND);
    bh_run_post_bind(prof->fw, &call, bh_sym_internc(e->tab, node));
    bh_aside_point(e, prof->fw, BH_SEEN_POST_BIND, BH_SUCCESS, t);
    return true;
}

void bh_engine_nominate(struct bh_engine *e, const struct bh_pending *p, bh_sym node)
{
    if (node != BH_SYM_NONE)
        bh_cache_nominate(&e->cache, p->pod, p->shape, node, p->nomination);
    else if (!p->nomination || *p->nomination)
        bh_cache_unnominate(&e->cache, bh_rec_text(p->pod, p->pod->uid));
}

void bh_engine_keep_node(struct bh_engine *e, const struct bh_pending *p, bh_sym node)
{
    bh_engine_nominate(e, p, node);
    bh_cache_keep_nomination(&e->cache, bh_rec_text(p->pod, p->pod->uid));
}

void bh_engine_nomination_stays(struct bh_nomination **at)
{
    if (*at)
        (*at)->at = NULL;
    *at = NULL;
}

void bh_engine_unnominate(struct bh_engine *e, struct bh_str uid)
{
    bh_cache_unnominate(&e->cache, uid);
}

bool bh_engine_pod_stays(const struct bh_engine *e, struct bh_str uid)
{
    const struct bh_cache_pod *p = bh_cache_pod(&e->cache, uid);

    return p && !(p->info.rec->flags & BH_POD_TERMINATING);
}

bh_sym bh_engine_nominated_node(const struct bh_engine *e, struct bh_str uid)
{
    return bh_cache_nominated_node(&e->cache, uid);
}

void bh_engine_each_nominated(const struct bh_engine *e, bh_sym node,
                              void (*fn)(void *arg, const struct bh_nominated *n), void *arg)
{
    const struct bh_nomination *n = bh_cache_nominations(&e->cache, node);

    for (; n; n = n->next_on_node)
        fn(arg, &(struct bh_nominated){.uid = bh_rec_text(n->info.rec, n->info.rec->uid),
                                       .priority = n->info.shape->priority,
                                       .at = n->at});
}

/* ---- the queue's order ----------------------------------------------------------------------- */

/* One queue serves all profiles, which have the same: the configuration is checked for it. */
static const struct bh_plugin_instance *queue_sort(const struct bh_engine *e)
{
    const struct bh_framework *fw = e->profile[0].fw;

    return &fw->plugins[fw->point[BH_POINT_QUEUE_SORT][0]];
}

bool bh_engine_sorts(const struct bh_engine *e)
{
    return !bh_streq(queue_sort(e)->plugin->name, "PrioritySort");
}

bool bh_engine_less(struct bh_engine *e, const struct bh_queue_key *a, const struct bh_queue_key *b)
{
    const struct bh_plugin_instance *in = queue_sort(e);
    struct bh_call call = {
        .cache = &e->cache, .tab = e->tab, .objects = &e->objects, .args = in->args};

    return in->plugin->less(&call, a, b);
}

/* ---- events ---------------------------------------------------------------------------------- */

enum bh_hint bh_engine_hint(struct bh_engine *e, const char *plugin, const struct bh_pending *p,
                            const struct bh_cluster_event *ev, bool *ret_by_pod)
{
    const struct bh_shape_rec *s = bh_shapes_rec(&e->cache.shapes, p->shape);
    struct bh_profile *prof = profile_of(e, s);
    const struct bh_plugin *pl = bh_plugin_find(plugin);
    struct bh_hint_call call = {.tab = e->tab,
                                .sym = &e->cache.sym,
                                .objects = &e->objects,
                                .cache = &e->cache,
                                .waiting = p,
                                .by_pod = ret_by_pod,
                                .shape = s,
                                .ev = ev};

    if (!prof || !pl)
        return BH_QUEUE;
    for (uint32_t i = 0; i < prof->fw->n_plugins && !call.args; i++)
        if (prof->fw->plugins[i].plugin == pl)
            call.args = prof->fw->plugins[i].args;
    if (ev->resource == BH_EV_PLUGIN)
        return bh_hint_if(bh_streq(plugin, ev->plugin));
    return bh_plugin_hint(pl, &call);
}

bool bh_engine_hints_by_essence(const char *plugin)
{
    const struct bh_plugin *pl = bh_plugin_find(plugin);

    return pl && pl->flags & BH_PLUGIN_HINTS_BY_ESSENCE;
}

bool bh_engine_interested(struct bh_engine *e, const struct bh_cluster_event *ev)
{
    /* Only plugins at these points can have rejected a pod. */
    const uint32_t rejecting = BH_POINT_BIT(BH_POINT_PRE_ENQUEUE) |
                               BH_POINT_BIT(BH_POINT_PRE_FILTER) | BH_POINT_BIT(BH_POINT_FILTER) |
                               BH_POINT_BIT(BH_POINT_RESERVE) | BH_POINT_BIT(BH_POINT_PERMIT);

    if (ev->resource == BH_EV_PLUGIN)
        return true;
    for (uint32_t i = 0; i < e->n_profiles; i++) {
        const struct bh_framework *fw = e->profile[i].fw;
        for (uint32_t k = 0; k < fw->n_plugins; k++)
            if (fw->plugins[k].points & rejecting &&
                bh_plugin_interested(fw->plugins[k].plugin, ev))
                return true;
    }
    return e->ext && bh_extenders_wake(ev);
}

void bh_engine_stats(const struct bh_engine *e, struct bh_engine_stats *ret)
{
    *ret = e->stats;
}
