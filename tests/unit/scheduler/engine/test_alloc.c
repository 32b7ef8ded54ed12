/* SPDX-License-Identifier: Apache-2.0
 *
 * A steady cycle (known shape; schedule, assume, forget) never calls malloc.
 */
#include "tests/unit/scheduler/engine/fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTING 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTING 0
#endif
#endif
#ifndef COUNTING
#define COUNTING 1
#endif

#if COUNTING
static unsigned long calls; /* of the allocator, by this process */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

void *malloc(size_t n)
{
    calls++;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    calls++;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    calls++;
    return __libc_realloc(p, n);
}
void free(void *p)
{
    __libc_free(p);
}
#else
static const unsigned long calls;
#endif

static void fill(struct fx *f, unsigned n)
{
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "n%03u", i);
        fx_node(f, name, "'cpu':'8','memory':'16Gi','pods':'20','example.com/gpu':'2'",
                i % 2 ? "'disk':'ssd','zone':'a'" : "'zone':'b'", "", "");
    }
}

/* More pods than one node takes, so nodes fill up; then all are forgotten again. */
static void round_trip(struct fx *f, const struct fx_pod *p, unsigned n, unsigned shapes)
{
    for (unsigned i = 0; i < n; i++) {
        const struct bh_pending pending = {.pod = p[i].rec, .shape = p[i % shapes].shape};
        const struct bh_decision *d = bh_engine_schedule(f->e, &pending, 0, 0);
        CU_ASSERT_FATAL(d->kind == BH_DECIDED);
        CU_ASSERT(bh_engine_assume(f->e, &pending, d->node) == 0);
    }
    for (unsigned i = 0; i < n; i++)
        CU_ASSERT(bh_engine_forget(f->e, bh_rec_text(p[i].rec, p[i].rec->uid)) == 0);
}

static void test_steady_cycle(void)
{
    struct fx f;
    struct fx_pod p[200];
    const char *more[] = {
        "", "'nodeSelector':{'disk':'ssd'}", "'tolerations':[{'operator':'Exists'}]",
        ("'topologySpreadConstraints':[{'maxSkew':9,'topologyKey':'zone','whenUnsatisfiable':"
         "'DoNotSchedule','labelSelector':{}},{'maxSkew':1,'topologyKey':'zone',"
         "'whenUnsatisfiable':'ScheduleAnyway','labelSelector':{}}]"),
        ("'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
         "'topologyKey':'zone','labelSelector':{}}]}}")};
    const unsigned shapes = BH_ARRAY_LEN(more);
    struct bh_engine_stats st;

    if (!COUNTING) {
        bh_test_skip("the allocator belongs to the sanitizer");
        return;
    }
    fx_init_with(&f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    fill(&f, 50);
    for (unsigned i = 0; i < BH_ARRAY_LEN(p); i++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", i);
        p[i] =
            fx_pod(&f, name, "'cpu':'700m','memory':'1Gi','example.com/gpu':'0'", more[i % shapes]);
    }
    for (unsigned i = 0; i < 3; i++) /* everything that grows has grown after this */
        round_trip(&f, p, BH_ARRAY_LEN(p), shapes);
    unsigned long before = calls;
    round_trip(&f, p, BH_ARRAY_LEN(p), shapes);
    FX_INT(calls - before, 0);
    bh_engine_stats(f.e, &st);
    FX_INT(st.reference_cycles, 0);
    FX_INT(st.fast_cycles, 800);
    fx_fini(&f);
}

static struct fx_pod labelled(struct fx *f, const char *name, const char *more)
{
    return fx_pod_full(f, name, "'labels':{'app':'web'}",
                       bh_arena_printf(&f->arena, "'containers':[{'name':'c'}]%s", more), "");
}

/* One that stays away from zones with such pods, which are in all of them, come and go. */
static void refused(struct fx *f, const struct fx_pod *p, const struct fx_pod *web, unsigned n)
{
    const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        const struct bh_pending w = {.pod = web[i].rec, .shape = web[i].shape};
        CU_ASSERT(bh_engine_schedule(f->e, &pending, 0, 0)->kind == BH_NO_FIT);
        snprintf(name, sizeof name, "n%03u", i);
        bh_sym node = bh_sym_internc(bh_engine_symtab(f->e), name);
        CU_ASSERT(bh_engine_assume(f->e, &w, node) == 0);
        CU_ASSERT(bh_engine_schedule(f->e, &pending, 0, 0)->kind == BH_NO_FIT);
        if (i >= 2)
            CU_ASSERT(bh_engine_forget(f->e, bh_rec_text(web[i].rec, web[i].rec->uid)) == 0);
    }
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT(bh_engine_forget(f->e, bh_rec_text(web[i].rec, web[i].rec->uid)) == 0);
}

static void test_steady_refusals(void)
{
    struct bh_engine_stats st;
    struct fx_pod p, web[20];
    struct fx f;
    char name[16];

    if (!COUNTING) {
        bh_test_skip("the allocator belongs to the sanitizer");
        return;
    }
    fx_init_with(&f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    fill(&f, 50);
    for (unsigned i = 0; i < BH_ARRAY_LEN(web); i++) {
        snprintf(name, sizeof name, "web%u", i);
        web[i] = labelled(&f, name, "");
    }
    p = labelled(&f, "p",
                 ",'nodeSelector':{'zone':'a'},'affinity':{'podAntiAffinity':{"
                 "'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'zone',"
                 "'labelSelector':{'matchLabels':{'app':'web'}}}]}}");
    fx_place(&f, labelled(&f, "stays", ""), "n001");
    for (unsigned i = 0; i < 3; i++)
        refused(&f, &p, web, BH_ARRAY_LEN(web));
    unsigned long before = calls;
    refused(&f, &p, web, BH_ARRAY_LEN(web));
    FX_INT(calls - before, 0);
    bh_engine_stats(f.e, &st);
    FX_INT(st.reference_cycles, 0);
    fx_fini(&f);
}

static void put(struct fx *f, enum bh_kind kind, const char *ns, const char *name, const char *text)
{
    struct bh_buf b = {0};
    struct bh_err err;

    bh_pb_pack(&b, fx_message(f, bh_kinds[kind].desc, fx_json(f, text)));
    CU_ASSERT_FATAL(bh_engine_put_object(f->e, kind, ns, name, bh_buf_str(&b), b.n, &err) == 0);
    bh_buf_fini(&b);
}

/* The volume and the claim of pod i; every third is for half of the nodes only. */
static void add_claim(struct fx *f, unsigned i)
{
    const char *v = bh_arena_printf(&f->arena, "v%u", i), *c = bh_arena_printf(&f->arena, "c%u", i);

    put(f, BH_KIND_PERSISTENTVOLUME, "", v,
        bh_arena_printf(&f->arena,
                        "{'metadata':{'name':'%s','labels':{%s}},'spec':{'csi':{'driver':'d',"
                        "'volumeHandle':'h%u'}%s}}",
                        v, i % 6 == 0 ? "'topology.kubernetes.io/zone':'a'" : "", i,
                        i % 6 == 3 ? ",'nodeAffinity':{'required':{'nodeSelectorTerms':[{"
                                     "'matchExpressions':[{'key':'disk','operator':'Exists'}]}]}}"
                                   : ""));
    put(f, BH_KIND_PERSISTENTVOLUMECLAIM, "default", c,
        bh_arena_printf(&f->arena,
                        "{'metadata':{'name':'%s','namespace':'default','annotations':{"
                        "'pv.kubernetes.io/bind-completed':'y'}},'spec':{'volumeName':'%s'}}",
                        c, v));
}

/* Every pod has a claim of its own; nodes fill up with volumes. */
static void test_steady_volumes(void)
{
    struct bh_engine_stats st;
    struct fx f;
    struct fx_pod p[200];

    if (!COUNTING) {
        bh_test_skip("the allocator belongs to the sanitizer");
        return;
    }
    fx_init_with(&f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    fill(&f, 50);
    for (unsigned i = 0; i < 50; i++)
        put(&f, BH_KIND_CSINODE, "", bh_arena_printf(&f.arena, "n%03u", i),
            bh_arena_printf(&f.arena,
                            "{'metadata':{'name':'n%03u'},'spec':{'drivers':[{'name':'d',"
                            "'allocatable':{'count':%u}}]}}",
                            i, 4 + i % 2));
    for (unsigned i = 0; i < BH_ARRAY_LEN(p); i++) {
        add_claim(&f, i);
        p[i] = fx_pod(&f, bh_arena_printf(&f.arena, "p%u", i), "'cpu':'700m'",
                      bh_arena_printf(&f.arena,
                                      "'volumes':[{'name':'v','persistentVolumeClaim':{"
                                      "'claimName':'c%u'}}]",
                                      i));
    }
    for (unsigned i = 0; i < 3; i++)
        round_trip(&f, p, BH_ARRAY_LEN(p), BH_ARRAY_LEN(p));
    unsigned long before = calls;
    round_trip(&f, p, BH_ARRAY_LEN(p), BH_ARRAY_LEN(p));
    FX_INT(calls - before, 0);
    bh_engine_stats(f.e, &st);
    FX_INT(st.reference_cycles, 0);
    FX_INT(st.shape_hits, 798);
    fx_fini(&f);
}

/* Pods of every shape fail, others come and go on the nodes; nobody can be evicted. */
static void fail_all(struct fx *f, const struct fx_pod *p, unsigned n, const struct fx_pod *small)
{
    const struct bh_pending guest = {.pod = small->rec, .shape = small->shape};

    for (unsigned i = 0; i < n; i++) {
        const struct bh_pending pending = {.pod = p[i].rec, .shape = p[i].shape};
        const struct bh_decision *d = bh_engine_schedule(f->e, &pending, 0, 0);
        CU_ASSERT_FATAL(d->kind == BH_NO_FIT && d->n_victims == 0);
        d = bh_engine_schedule(f->e, &guest, 0, 0);
        CU_ASSERT_FATAL(d->kind == BH_DECIDED);
        CU_ASSERT(bh_engine_assume(f->e, &guest, d->node) == 0);
        d = bh_engine_schedule(f->e, &pending, 0, 0);
        CU_ASSERT_FATAL(d->kind == BH_NO_FIT && d->n_victims == 0);
        CU_ASSERT(bh_engine_forget(f->e, bh_rec_text(small->rec, small->rec->uid)) == 0);
    }
}

static void test_steady_failure(void)
{
    struct fx f;
    struct fx_pod p[3], small;
    struct bh_engine_stats st;

    if (!COUNTING) {
        bh_test_skip("the allocator belongs to the sanitizer");
        return;
    }
    fx_init_with(&f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    fill(&f, 50);
    p[0] = fx_pod(&f, "big", "'cpu':'12'", "'priority':9");
    p[1] = fx_pod(&f, "gpus", "'example.com/gpu':'2'", "'priority':9");
    p[2] = fx_pod(&f, "nowhere", "", "'nodeSelector':{'disk':'tape'}");
    small = fx_pod(&f, "small", "'cpu':'100m'", "'priority':5");
    for (unsigned i = 0; i < 50; i++) { /* gpus: no victims of lower priority, so no way out */
        char name[16], where[16];
        snprintf(name, sizeof name, "guest%u", i);
        snprintf(where, sizeof where, "n%03u", i);
        fx_place(&f, fx_pod(&f, name, "'cpu':'1','example.com/gpu':'1'", "'priority':9"), where);
    }
    for (unsigned i = 0; i < 3; i++)
        fail_all(&f, p, BH_ARRAY_LEN(p), &small);
    unsigned long before = calls;
    fail_all(&f, p, BH_ARRAY_LEN(p), &small);
    FX_INT(calls - before, 0);
    bh_engine_stats(f.e, &st);
    FX_INT(st.reference_cycles, 3); /* each shape's first pod */
    fx_fini(&f);
}

BH_TESTS("scheduler/engine/alloc", {"a steady cycle calls malloc zero times", test_steady_cycle},
         {"neither does one that fits nowhere for its anti-affinity", test_steady_refusals},
         {"so does one in which nothing fits", test_steady_failure},
         {"neither does one with volumes", test_steady_volumes})
