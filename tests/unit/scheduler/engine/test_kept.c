/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fast path keeps for a shape: packed arrays, the index of the best, and what of it a
 * change of a row makes anew. Clusters here have more rows than one block of the index. The seed of
 * a run is printed; BERTH_TEST_SEED repeats it.
 */
#include <inttypes.h>

#include "scheduler/engine/fast/fast.h"
#include "tests/unit/scheduler/engine/fixture.h"

static uint64_t seed_of_run(void)
{
    const char *s = getenv("BERTH_TEST_SEED");
    uint64_t seed = s ? strtoull(s, NULL, 10) : bh_rand_entropy() % 1000000;

    printf("# BERTH_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

/* ---- packed arrays --------------------------------------------------------------------------- */

static void test_packed(void)
{
    static const int64_t most[] = {1, 255, 256, 65535, 65536, UINT32_MAX, (int64_t)1 << 40};
    static const unsigned width[] = {1, 1, 2, 2, 4, 4, 8};
    int64_t model[300] = {0};
    struct bh_packed a;
    struct bh_rand r;

    bh_rand_seed(&r, seed_of_run());
    bh_packed_init(&a, BH_ARRAY_LEN(model), 0);
    CU_ASSERT(bh_packed_bytes(&a) == 0 && bh_packed_get(&a, 299) == 0 && !bh_packed_any(&a, 256));
    bh_packed_set(&a, 5, 0);
    FX_INT(a.width, 0);
    for (unsigned k = 0; k < BH_ARRAY_LEN(most); k++) {
        for (unsigned n = 0; n < 200; n++) {
            uint32_t i = (uint32_t)bh_rand_below(&r, BH_ARRAY_LEN(model));
            model[i] = n ? (int64_t)bh_rand_below(&r, (uint64_t)most[k] + 1) : most[k];
            bh_packed_set(&a, i, model[i]);
        }
        FX_INT(a.width, width[k]);
        for (uint32_t i = 0; i < BH_ARRAY_LEN(model); i++)
            CU_ASSERT_FATAL(bh_packed_get(&a, i) == model[i]);
    }
    for (uint32_t i = 64; i < 128; i++)
        bh_packed_set(&a, i, 0);
    CU_ASSERT(!bh_packed_any(&a, 64));
    bh_packed_set(&a, 127, 1);
    CU_ASSERT(bh_packed_any(&a, 64));
    bh_packed_set(&a, 3, -7);
    FX_INT(bh_packed_get(&a, 3), -7);
    bh_packed_fini(&a);
}

/* ---- index ----------------------------------------------------------------------------------- */

#define ROWS_MAX 65536u /* from there on blocks are larger */

static void check_index(const struct bh_index *x, const int64_t *model, uint32_t rows, uint32_t all)
{
    int64_t best = -1;
    uint32_t n = 0, row = 0;

    for (uint32_t i = 0; i < rows; i++) {
        CU_ASSERT_FATAL(bh_index_total(x, i) == model[i]);
        n = model[i] > best ? 1 : n + (model[i] == best);
        best = BH_MAX(best, model[i]);
    }
    FX_INT(bh_index_count(x), best < 0 ? 0 : n);
    for (uint32_t k = 0; best >= 0 && k < n; k++, row++) {
        while (model[row] != best)
            row++;
        if (k < all || k + 1 == n)
            CU_ASSERT_FATAL(bh_index_pick(x, k) == row);
    }
}

/* Few values, so that there are many equals; later large ones, which make the array wider. */
static void run_index(uint32_t rows, unsigned steps, uint32_t all)
{
    int64_t *model = bh_calloc(rows, sizeof *model);
    struct bh_index x;
    struct bh_rand r;

    bh_rand_seed(&r, seed_of_run());
    bh_index_init(&x, rows, false);
    for (uint32_t i = 0; i < rows; i++)
        model[i] = -1;
    check_index(&x, model, rows, all);
    for (unsigned step = 0; step < steps; step++) {
        int64_t range = step < steps / 2 ? 4 : step < steps / 4 * 3 ? 100000 : (int64_t)1 << 36;
        uint32_t n = 1 + (uint32_t)bh_rand_below(&r, 40);
        for (; n > 0; n--) {
            uint32_t row = (uint32_t)bh_rand_below(&r, rows);
            model[row] = (int64_t)bh_rand_below(&r, (uint64_t)range) - (step % 7 == 0 ? 0 : 1);
            if (step % 10)
                bh_index_move(&x, NULL, row, model[row]);
            else
                bh_index_set_leaf(&x, row, model[row]);
        }
        if (step % 10 == 0)
            bh_index_rebuild(&x, NULL);
        check_index(&x, model, rows, all);
    }
    for (uint32_t i = 0; i < rows; i++)
        bh_index_move(&x, NULL, i, model[i] = -1);
    check_index(&x, model, rows, all);
    bh_index_fini(&x);
    free(model);
}

static void test_index(void)
{
    run_index(1000, 600, UINT32_MAX);
    run_index(ROWS_MAX, 100, 20);
}

/* ---- an engine that compares with the reference path ----------------------------------------- */

#define NODES 200u
#define PODS  240u

static void put_node(struct fx *f, struct bh_rand *r, unsigned i)
{
    static const char *const specs[] = {"",
                                        "",
                                        "",
                                        "'taints':[{'key':'a','effect':'PreferNoSchedule'}]",
                                        ("'taints':[{'key':'a','effect':'PreferNoSchedule'},"
                                         "{'key':'b','effect':'PreferNoSchedule'}]"),
                                        "'taints':[{'key':'c','effect':'NoSchedule'}]"};
    static const char *const images[] = {"",
                                         "'images':[{'names':['img:1'],'sizeBytes':900000000}]"};
    const char *name = bh_arena_printf(&f->arena, "n%03u", i);
    const char *labels = bh_arena_printf(&f->arena, "'zone':'z%u','rank':'r%u'", i % 3,
                                         (unsigned)bh_rand_below(r, 60));

    fx_node(f, name,
            i % 2 ? "'cpu':'4','memory':'8Gi','pods':'9'" : "'cpu':'3','memory':'9Gi','pods':'9'",
            labels, specs[bh_rand_below(r, BH_ARRAY_LEN(specs))],
            images[bh_rand_below(r, BH_ARRAY_LEN(images))]);
}

static struct fx_pod make_pod(struct fx *f, unsigned i)
{
    static const char *const more[] = {
        "", "'nodeSelector':{'zone':'z1'}", "'tolerations':[{'operator':'Exists','key':'c'}]",
        ("'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':"
         "50,'preference':{'matchExpressions':[{'key':'zone','operator':'In','values':['z2']}]}},{"
         "'weight':70,'preference':{'matchExpressions':[{'key':'rank','operator':'In','values':["
         "'r7']}]}}]}}")};
    const char *spec = bh_arena_printf(
        &f->arena,
        "'containers':[{'name':'c','image':'img:1','resources':{'requests':{'cpu':'%um'}}}],%s",
        300 + i % 3 * 250, *more[i % 4] ? more[i % 4] : "'priority':0");

    return fx_pod_full(f, bh_arena_printf(&f->arena, "p%u", i), "", spec, "");
}

/* Rare preferences, soft taints that come and go: maxima of normalised scores move up and down. */
static void test_verified(void)
{
    struct fx_pod pods[PODS];
    bool on[PODS] = {false};
    struct bh_engine_stats st;
    struct bh_rand r;
    struct fx f;

    bh_rand_seed(&r, seed_of_run());
    fx_init_with(&f, NULL,
                 (struct bh_engine_options){.tie_break = BH_TIE_RANDOM, .verify = true, .seed = 5});
    for (unsigned i = 0; i < NODES; i++)
        put_node(&f, &r, i);
    for (unsigned i = 0; i < PODS; i++)
        pods[i] = make_pod(&f, i);
    for (unsigned step = 0; step < 500; step++) {
        unsigned i = (unsigned)bh_rand_below(&r, PODS);
        struct bh_pending p = {.pod = pods[i].rec, .shape = pods[i].shape};
        if (step % 5 == 0)
            put_node(&f, &r, (unsigned)bh_rand_below(&r, NODES));
        if (step % 11 == 0) {
            unsigned gone = (unsigned)bh_rand_below(&r, NODES);
            bh_engine_del_node(f.e, bh_sym_internc(bh_engine_symtab(f.e),
                                                   bh_arena_printf(&f.arena, "n%03u", gone)));
        }
        if (on[i]) {
            bh_engine_del_pod(f.e, bh_rec_text(p.pod, p.pod->uid));
            on[i] = false;
            continue;
        }
        pods[i].rec->node = BH_SYM_NONE;
        const struct bh_decision *d = bh_engine_schedule(f.e, &p, BH_NO_PREEMPTION, 0);
        CU_ASSERT_FATAL(d->kind == BH_DECIDED);
        bh_sym node = d->node;
        CU_ASSERT(bh_engine_assume(f.e, &p, node) == 0);
        on[i] = true;
        if (step % 3)
            fx_place(&f, pods[i], bh_sym_text(bh_engine_symtab(f.e), node));
    }
    bh_engine_stats(f.e, &st);
    CU_ASSERT(st.verified > 200);
    fx_fini(&f);
}

/* ---- what makes rows be looked at again ------------------------------------------------------ */

static uint64_t rescored_by(struct fx *f, const struct fx_pod *next)
{
    const struct bh_pending p = {.pod = next->rec, .shape = next->shape};
    struct bh_engine_stats before, after;

    bh_engine_stats(f->e, &before);
    CU_ASSERT(bh_engine_schedule(f->e, &p, 0, 0)->kind == BH_DECIDED);
    bh_engine_stats(f->e, &after);
    return after.nodes_rescored - before.nodes_rescored;
}

static void test_changes(void)
{
    struct fx f;
    struct bh_rand r;

    bh_rand_seed(&r, 1);
    fx_init_with(&f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    for (unsigned i = 0; i < NODES; i++)
        put_node(&f, &r, i);
    struct fx_pod a = make_pod(&f, 0), next = make_pod(&f, 12);
    rescored_by(&f, &next);
    FX_INT(rescored_by(&f, &next), NODES);
    FX_INT(rescored_by(&f, &next), 0);
    const struct bh_pending p = {.pod = a.rec, .shape = a.shape};
    bh_sym node = bh_engine_schedule(f.e, &p, 0, 0)->node;
    CU_ASSERT(bh_engine_assume(f.e, &p, node) == 0);
    FX_INT(rescored_by(&f, &next), 1);
    a.rec->start_ns = 77; /* bound and running: as good as the assumed one */
    fx_place(&f, a, bh_sym_text(bh_engine_symtab(f.e), node));
    FX_INT(rescored_by(&f, &next), 0);
    a.rec->flags |= BH_POD_TERMINATING; /* plugins look at that */
    fx_place(&f, a, bh_sym_text(bh_engine_symtab(f.e), node));
    FX_INT(rescored_by(&f, &next), 1);
    struct fx_pod larger = make_pod(&f, 1); /* the same pod, resized */
    larger.rec = a.rec;
    fx_place(&f, larger, bh_sym_text(bh_engine_symtab(f.e), node));
    FX_INT(rescored_by(&f, &next), 1);
    bh_engine_del_pod(f.e, bh_rec_text(a.rec, a.rec->uid));
    put_node(&f, &r, 199);
    FX_INT(rescored_by(&f, &next), 2);
    fx_fini(&f);
}

BH_TESTS("scheduler/engine/kept", {"packed arrays hold what fits and widen", test_packed},
         {"the index has the best, all equals and each of them", test_index},
         {"kept results agree with the reference path", test_verified},
         {"only rows that changed are looked at again", test_changes})
