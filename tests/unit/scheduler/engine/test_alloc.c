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
    const unsigned shapes = BH_ARRAY_LEN(more), tracked = 2;
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
        p[i] = fx_pod(&f, name, "'cpu':'700m','memory':'1Gi','example.com/gpu':'0'", more[i % shapes]);
    }
    for (unsigned i = 0; i < 3; i++) /* everything that grows has grown after this */
        round_trip(&f, p, BH_ARRAY_LEN(p), shapes);
    unsigned long before = calls;
    round_trip(&f, p, BH_ARRAY_LEN(p), shapes);
    FX_INT(calls - before, 0);
    bh_engine_stats(f.e, &st);
    FX_INT(st.reference_cycles, tracked); /* once each, then they are worth counts of their own */
    FX_INT(st.fast_cycles, 800 - tracked);
    fx_fini(&f);
}

BH_TESTS("scheduler/engine/alloc", {"a steady cycle calls malloc zero times", test_steady_cycle})
