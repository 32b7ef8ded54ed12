/* SPDX-License-Identifier: Apache-2.0
 *
 * Random clusters with spreading, affinity, services and plain pods: the two paths of the engine
 * agree although pods come and go whose terms close the fast path to others; and putting a pod on a
 * node or taking it off within a cycle gives the verdict of a cycle that began with the pod there.
 */
#include "scheduler/engine/fast/fast.h"
#include "tests/unit/scheduler/plugins/podtopologyspread/world.h"

#define NODES 12u
#define APPS  4u

static struct bh_rand rnd;

static uint32_t below(uint32_t n)
{
    return (uint32_t)bh_rand_below(&rnd, n);
}

static const char *topology(void)
{
    static const char *const keys[] = {"topology.kubernetes.io/zone", "kubernetes.io/hostname",
                                       "rack"};
    return keys[below(3)];
}

static void put_node(struct fx *f, uint32_t i)
{
    const char *zone = (const char *[]){"", "z1", "z2", "z3"}[below(4)];
    const char *more =
        bh_arena_printf(&f->arena, "'rack':'r%u','disk':'%s'", below(3), below(2) ? "ssd" : "hdd");
    bh_engine_put_node(
        f->e, w_node_rec(f, bh_arena_printf(&f->arena, "n%02u", i), zone, below(4) ? more : "",
                         below(8) ? "" : "'taints':[{'key':'k','effect':'NoSchedule'}]"));
}

static const char *selector(struct fx *f)
{
    switch (below(4)) {
    case 0:
        return bh_arena_printf(
            &f->arena, "{'matchExpressions':[{'key':'app','operator':'NotIn','values':['%u']}]}",
            below(APPS));
    case 1:
        return "{'matchExpressions':[{'key':'app','operator':'Exists'}]}";
    default:
        return bh_arena_printf(&f->arena, "{'matchLabels':{'app':'%u'}}", below(APPS));
    }
}

static const char *term(struct fx *f)
{
    static const char *const where[] = {"",
                                        "",
                                        "",
                                        ",'namespaceSelector':{}",
                                        ",'namespaceSelector':{'matchLabels':{'team':'a'}}",
                                        ",'namespaces':['ns1']"};
    return bh_arena_printf(&f->arena, "'topologyKey':'%s','labelSelector':%s%s", topology(),
                           selector(f), where[below(6)]);
}

static const char *half(struct fx *f, const char *name)
{
    const char *required = below(2) ? bh_arena_printf(&f->arena, "{%s}", term(f)) : "";
    const char *preferred = below(2)
                                ? bh_arena_printf(&f->arena, "{'weight':%u,'podAffinityTerm':{%s}}",
                                                  1 + below(100), term(f))
                                : "";
    return bh_arena_printf(&f->arena,
                           "'%s':{'requiredDuringSchedulingIgnoredDuringExecution':[%s],"
                           "'preferredDuringSchedulingIgnoredDuringExecution':[%s]}",
                           name, required, preferred);
}

static const char *spread(struct fx *f)
{
    static const char *const policy[] = {"", "", ",'nodeTaintsPolicy':'Honor'",
                                         ",'nodeAffinityPolicy':'Ignore'"};
    bool hard = below(2);
    return bh_arena_printf(&f->arena,
                           "{'maxSkew':%u,'topologyKey':'%s','whenUnsatisfiable':'%s',"
                           "'labelSelector':%s%s%s}",
                           1 + below(3), topology(), hard ? "DoNotSchedule" : "ScheduleAnyway",
                           selector(f), hard && below(4) == 0 ? ",'minDomains':3" : "",
                           policy[below(4)]);
}

/* plain: 0 to 8 of 8 pods have neither terms nor constraints. */
static struct fx_pod random_pod(struct fx *f, uint32_t i, uint32_t plain)
{
    const char *spec = bh_arena_printf(&f->arena, "'priority':%u", below(3));

    if (below(8) >= plain) {
        if (below(2))
            spec = bh_arena_printf(&f->arena, "%s,'affinity':{%s,%s}", spec, half(f, "podAffinity"),
                                   half(f, "podAntiAffinity"));
        if (below(2))
            spec = bh_arena_printf(&f->arena, "%s,'topologySpreadConstraints':[%s,%s]", spec,
                                   spread(f), spread(f));
        if (below(4) == 0)
            spec = bh_arena_printf(&f->arena, "%s,'nodeSelector':{'disk':'ssd'}", spec);
    }
    return w_pod(f, below(3) ? "ns0" : "ns1", bh_arena_printf(&f->arena, "p%u", i),
                 bh_arena_printf(&f->arena, "'app':'%u'", below(APPS)), "", spec);
}

static struct bh_str uid_of(const struct fx_pod *p)
{
    return bh_rec_text(p->rec, p->rec->uid);
}

static void change_services(struct fx *f)
{
    const char *ns = below(2) ? "ns0" : "ns1", *name = below(2) ? "s0" : "s1";

    if (below(2)) {
        CU_ASSERT(bh_engine_put_object(f->e, BH_KIND_SERVICE, ns, name, NULL, 0, NULL) == 0);
    } else {
        w_object(f, BH_KIND_SERVICE, ns, name, "",
                 bh_arena_printf(&f->arena, ",'spec':{'selector':{'app':'%u'}}", below(APPS)));
    }
}

/* verify compares the paths inside and aborts on a difference. */
static void test_paths_agree(void)
{
    uint64_t verified = 0, fast = 0, slow = 0;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct fx_pod pods[64];
        struct fx f;
        uint32_t n = 0;
        bh_rand_seed(&rnd, seed);
        fx_init_with(&f, NULL,
                     (struct bh_engine_options){.tie_break = BH_TIE_FIRST, .verify = seed % 2});
        for (uint32_t i = 0; i < NODES; i++)
            put_node(&f, i);
        for (uint32_t step = 0; step < 400; step++) {
            uint32_t what = below(20);
            if (what == 0)
                put_node(&f, below(NODES));
            if (what == 1)
                change_services(&f);
            if (what == 2)
                w_namespace(&f, below(2) ? "ns0" : "ns1", below(2) ? "'team':'a'" : "");
            if ((what < 6 && n) || n == BH_ARRAY_LEN(pods)) {
                uint32_t k = below(n);
                bh_engine_del_pod(f.e, uid_of(&pods[k]));
                pods[k] = pods[--n];
            }
            struct fx_pod p = random_pod(&f, step, 7);
            const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
            const struct bh_decision *d = bh_engine_schedule(f.e, &pending, BH_NO_PREEMPTION, 0);
            CU_ASSERT(d->kind != BH_DECISION_ERROR);
            if (d->kind != BH_DECIDED)
                continue;
            fx_place(&f, p, fx_text(&f, d->node));
            pods[n++] = p;
        }
        struct bh_engine_stats st;
        bh_engine_stats(f.e, &st);
        verified += st.verified;
        fast += st.fast_cycles;
        slow += st.reference_cycles;
        fx_fini(&f);
    }
    CU_ASSERT(verified > 0 && fast > 100 && slow > 100);
}

/* The verdict of the two plugins on one node; "" = passes. */
static const char *verdict(struct fx *f, struct bh_cycle *cy, const struct bh_node_info *ni)
{
    int by;
    const struct bh_status *s = bh_run_filter(cy, ni, &by);
    return s ? bh_arena_strdup(&f->arena, bh_status_message(&f->arena, s)) : "";
}

static void begin_cycle(struct fx *f, const struct fx_pod *p, struct bh_pod_info *pod,
                        struct bh_cycle *cy)
{
    struct bh_pre_filter_result pf;

    bh_cache_sync(&f->e->cache);
    *pod = (struct bh_pod_info){
        .rec = p->rec, .shape = bh_engine_shape_rec(f->e, p->shape), .shape_id = p->shape};
    bh_cycle_init(cy, f->e->profile[0].fw, &f->e->cache, &f->e->objects, pod, &f->arena, 0);
    bh_run_pre_filter(cy, &pf);
    CU_ASSERT_FATAL(pf.status == NULL);
}

#define ONLY_OURS                                                                                  \
    "{'schedulerName':'default-scheduler','plugins':{'multiPoint':{'disabled':[{'name':'*'}],"     \
    "'enabled':[{'name':'PrioritySort'},{'name':'PodTopologySpread'},{'name':'InterPodAffinity'}," \
    "{'name':'DefaultBinder'}]}}}"

static void one_dry_run(struct fx *f, uint32_t round)
{
    struct fx_pod on[8], incoming = random_pod(f, 1000 + round, 0);
    const char *node = bh_arena_printf(&f->arena, "n%02u", below(NODES));
    struct bh_pod_info pod, again;
    struct bh_cycle with, without, dry;
    uint32_t n = 1 + below(8);

    for (uint32_t i = 0; i < n; i++) {
        on[i] = random_pod(f, 100 * round + 5000 + i, 4);
        fx_place(f, on[i], node);
    }
    begin_cycle(f, &incoming, &pod, &with);
    bh_cycle_clone(&dry, &with, &f->arena);
    const struct bh_node_info *ni =
        bh_cache_node(&f->e->cache, bh_sym_internc(bh_engine_symtab(f->e), node));
    struct bh_node_info *fork = bh_node_info_fork(ni, &f->arena);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_pod_info *info = &bh_cache_pod(&f->e->cache, uid_of(&on[i]))->info;
        bh_node_info_remove_pod(fork, info);
        CU_ASSERT(bh_run_change_pod(&dry, info, fork, -1) == NULL);
    }
    const char *dry_verdict = verdict(f, &dry, fork), *full_verdict = verdict(f, &with, ni);
    /* and back on, in another order */
    for (uint32_t i = n; i-- > 0;) {
        struct bh_pod_info *info = &bh_cache_pod(&f->e->cache, uid_of(&on[i]))->info;
        bh_node_info_add_pod(fork, info);
        CU_ASSERT(bh_run_change_pod(&dry, info, fork, 1) == NULL);
    }
    FX_STR(verdict(f, &dry, fork), full_verdict);
    FX_STR(verdict(f, &with, ni), full_verdict); /* the original has not changed */
    for (uint32_t i = 0; i < n; i++)
        bh_engine_del_pod(f->e, uid_of(&on[i]));
    begin_cycle(f, &incoming, &again, &without);
    FX_STR(dry_verdict, verdict(f, &without, ni));
    /* A plugin that skipped does not hear of pods put on a node, as upstream. */
    if (without.skip_filter != with.skip_filter)
        return;
    bh_cycle_clone(&dry, &without, &f->arena);
    fork = bh_node_info_fork(ni, &f->arena);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_pod_info info = {.rec = on[i].rec,
                                   .shape = bh_engine_shape_rec(f->e, on[i].shape),
                                   .shape_id = on[i].shape};
        CU_ASSERT(bh_run_change_pod(&dry, &info, fork, 1) == NULL);
    }
    FX_STR(verdict(f, &dry, fork), full_verdict);
}

static void test_dry_runs(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct fx f;
        bh_rand_seed(&rnd, seed);
        fx_init(&f, ONLY_OURS);
        for (uint32_t i = 0; i < NODES; i++)
            put_node(&f, i);
        for (uint32_t i = 0; i < (seed % 2 ? 40 : 3); i++)
            fx_place(&f, random_pod(&f, i, 6), bh_arena_printf(&f.arena, "n%02u", below(NODES)));
        for (uint32_t round = 0; round < 200; round++)
            one_dry_run(&f, round);
        fx_fini(&f);
    }
}

BH_TESTS("scheduler/plugins/interpodaffinity/random",
         {"fast path and reference path agree while terms come and go", test_paths_agree},
         {"a dry run equals a cycle that began there", test_dry_runs}, )
