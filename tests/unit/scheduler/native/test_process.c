/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plugin's process is told of the cluster: the scheduler's feed into the process's world, without
 * the process.
 */
#include <errno.h>
#include <pthread.h>

#include "scheduler/native/process.h"
#include "tests/unit/scheduler/engine/fixture.h"

#define MESSAGES_MAX 16u

/* The fixture's engine only compiles the records; the cache that is told of is another one. */
struct told {
    struct fx f;
    struct bh_cache c;
    struct bh_native_plugin plugin;
    struct bh_native in, there; /* the instance, on both sides */
    struct bh_call call;
    struct bh_px_fed fed;
    struct bh_px_world *w;
    char *message;
};

static void setup(struct told *t)
{
    memset(t, 0, sizeof *t);
    fx_init(&t->f, NULL);
    bh_cache_init(&t->c, bh_engine_symtab(t->f.e), false);
    t->call = (struct bh_call){.cache = &t->c};
    t->in = (struct bh_native){.of = &t->plugin, .tab = bh_engine_symtab(t->f.e), .call = &t->call};
    t->there = (struct bh_native){.of = &t->plugin};
    t->w = bh_px_world_new(&t->there);
    t->message = bh_calloc(1, BH_PX_MAIN_BYTES);
}

static void teardown(struct told *t)
{
    bh_px_world_free(t->w);
    bh_cache_fini(&t->c);
    fx_fini(&t->f);
    free(t->message);
}

/* Messages that it took; 0: more than any feed may take. */
static unsigned tell(struct told *t)
{
    for (unsigned n = 1; n <= MESSAGES_MAX; n++) {
        struct bh_px_out o = {.p = t->message, .cap = BH_PX_MAIN_BYTES};
        const bool all = bh_px_feed(&t->fed, &t->in, &o);
        struct bh_px_in m = {.p = o.p, .end = o.p + o.n};
        CU_ASSERT_FATAL(!o.full);
        bh_px_world_take(t->w, &m);
        CU_ASSERT_FATAL(!m.bad && m.p == m.end);
        if (all)
            return n;
    }
    return 0;
}

static void same(struct told *t)
{
    const struct bh_cache *w = bh_px_world_cache(t->w);

    CU_ASSERT_EQUAL(w->cols.n_rows, t->c.cols.n_rows);
    CU_ASSERT_EQUAL(w->n_nodes, t->c.n_nodes);
    CU_ASSERT_EQUAL(bh_symtab_count(bh_px_world_symbols(t->w)), bh_symtab_count(t->in.tab));
    for (uint32_t row = 0; row < t->c.cols.n_rows; row++) {
        const struct bh_node_info *a = t->c.rows[row], *b = w->rows[row];
        CU_ASSERT_FATAL(!a == !b);
        if (!a)
            continue;
        CU_ASSERT_EQUAL(a->name, b->name);
        CU_ASSERT_EQUAL(a->used_cpu_milli, b->used_cpu_milli);
        CU_ASSERT_EQUAL(a->n_pods, b->n_pods);
        CU_ASSERT_FATAL(a->rec->h.size == b->rec->h.size);
        CU_ASSERT(memcmp(a->rec, b->rec, a->rec->h.size) == 0);
    }
}

static void node(struct told *t, const char *name, const char *labels)
{
    bh_cache_put_node(
        &t->c, fx_node_rec(&t->f, name, "'cpu':'4','memory':'8Gi','pods':'10'", labels, "", ""));
}

static void place(struct told *t, const char *name, const char *on)
{
    struct fx_pod p = fx_pod(&t->f, name, "'cpu':'500m'", "");

    p.rec->node = bh_sym_internc(t->in.tab, on);
    p.shape = bh_shapes_intern(&t->c.shapes, bh_engine_shape_rec(t->f.e, p.shape));
    bh_cache_put_pod(&t->c, p.rec, p.shape);
    bh_shapes_unref(&t->c.shapes, p.shape);
}

static void test_changes(void)
{
    struct told t;

    setup(&t);
    node(&t, "a", "'rank':'1'");
    node(&t, "b", "");
    CU_ASSERT_EQUAL(tell(&t), 1);
    same(&t);
    bh_cache_sync(&t.c);
    place(&t, "p", "a");
    CU_ASSERT_EQUAL(tell(&t), 1); /* before the columns know it */
    same(&t);
    bh_cache_sync(&t.c);
    node(&t, "a", "'rank':'2'");
    bh_cache_del_node(&t.c, bh_sym_internc(t.in.tab, "b"));
    bh_cache_sync(&t.c);
    CU_ASSERT_EQUAL(tell(&t), 1);
    same(&t);
    node(&t, "c", "'rank':'3'"); /* in b's row */
    bh_cache_sync(&t.c);
    CU_ASSERT_EQUAL(tell(&t), 1);
    same(&t);
    teardown(&t);
}

/* What the plugin there hears of rows that changed: how many, each at least once; UINT32_MAX: all. */
static uint32_t hears(struct told *t, struct bh_call *c, uint64_t *at, bool *row)
{
    uint32_t rows[2], n;

    memset(row, 0, 8 * sizeof *row);
    *c = (struct bh_call){.cache = bh_px_world_cache(t->w)};
    t->there.call = c;
    t->there.may = BERTH_READS_OTHERS;
    bh_native_inside = &t->there;
    while ((n = bh_native_host.columns->changed((struct berth_call *)(void *)c, at, rows, 2)) > 0 &&
           n != UINT32_MAX)
        for (uint32_t i = 0; i < n; i++)
            row[rows[i]] = true;
    bh_native_inside = NULL;
    CU_ASSERT_PTR_NULL(t->there.broke);
    for (uint32_t i = 0; i < 8 && n != UINT32_MAX; i++)
        n += row[i];
    return n;
}

static void test_changed_rows(void)
{
    struct bh_call c;
    struct told t;
    uint64_t at = 0;
    bool row[8];
    char name[16];

    setup(&t);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "n%u", i);
        node(&t, name, "");
    }
    bh_cache_sync(&t.c);
    CU_ASSERT_EQUAL(tell(&t), 1);
    CU_ASSERT_EQUAL(hears(&t, &c, &at, row), UINT32_MAX); /* the beginning */
    CU_ASSERT_EQUAL(hears(&t, &c, &at, row), 0);
    place(&t, "p", "n2");
    CU_ASSERT_EQUAL(tell(&t), 1); /* and again with the columns */
    CU_ASSERT(hears(&t, &c, &at, row) == 1 && row[2]);
    bh_cache_sync(&t.c);
    CU_ASSERT_EQUAL(tell(&t), 1);
    CU_ASSERT(hears(&t, &c, &at, row) == 1 && row[2]);
    node(&t, "n0", "'rank':'2'");
    bh_cache_del_node(&t.c, bh_sym_internc(t.in.tab, "n3"));
    bh_cache_sync(&t.c);
    CU_ASSERT_EQUAL(tell(&t), 1);
    CU_ASSERT(hears(&t, &c, &at, row) == 2 && row[0] && row[3]);
    CU_ASSERT_EQUAL(hears(&t, &c, &at, row), 0);
    /* More changes than are kept: all rows are to be looked at. */
    for (unsigned i = 0; i < 200; i++) {
        node(&t, "n1", i % 2 ? "'rank':'2'" : "'rank':'3'");
        bh_cache_sync(&t.c);
        CU_ASSERT_EQUAL(tell(&t), 1);
    }
    CU_ASSERT_EQUAL(hears(&t, &c, &at, row), UINT32_MAX);
    CU_ASSERT_EQUAL(hears(&t, &c, &at, row), 0);
    for (unsigned i = 0; i < 100; i++) { /* and when there is room for more rows */
        snprintf(name, sizeof name, "m%u", i);
        node(&t, name, "");
    }
    bh_cache_sync(&t.c);
    CU_ASSERT_EQUAL(tell(&t), 1);
    CU_ASSERT_EQUAL(hears(&t, &c, &at, row), UINT32_MAX);
    teardown(&t);
}

/* As when a scheduler starts: PreEnqueue is asked before anything was decided. */
static void test_many_changed(void)
{
    struct bh_buf labels BH_CLEANUP(bh_buf_fini) = {0};
    struct told t;
    char name[16];

    setup(&t);
    for (unsigned i = 0; i < 1000; i++)
        bh_buf_addf(&labels, "%s'l%u':'v'", i ? "," : "", i);
    node(&t, "first", bh_buf_str(&labels));
    const size_t bytes = t.c.rows[0]->rec->h.size;
    const unsigned n = (unsigned)(2 * BH_PX_FEED_BYTES / bytes);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "n%u", i);
        node(&t, name, bh_buf_str(&labels));
    }
    const unsigned changed = tell(&t);
    CU_ASSERT(changed > 1);
    same(&t);
    bh_cache_sync(&t.c);
    CU_ASSERT(tell(&t) > 0);
    same(&t);
    teardown(&t);
}

/* A message that is not sent told nobody: symbols would have other numbers there for ever. */
static void test_full(void)
{
    struct told t;

    setup(&t);
    node(&t, "a", "");
    CU_ASSERT_EQUAL(tell(&t), 1);
    node(&t, "b", "'rank':'1'");
    bh_cache_sync(&t.c);
    for (size_t cap = 0; cap <= 512; cap += 8) {
        struct bh_px_out o = {.p = t.message, .cap = cap};
        CU_ASSERT(!bh_px_feed(&t.fed, &t.in, &o) && o.full);
    }
    CU_ASSERT_EQUAL(tell(&t), 1);
    same(&t);
    teardown(&t);
}

/* One that says nothing is not looked for again and again: half of the times that were in vain. */
static void test_patience(void)
{
    struct bh_px_area *mine = bh_calloc(1, sizeof *mine), *other = bh_calloc(1, sizeof *other);

    for (uint32_t blind = 1; blind < 2 * BH_PX_BLIND_MAX; blind = 2 * blind + 1) {
        CU_ASSERT_EQUAL(mine->blind, 0);
        CU_ASSERT_EQUAL(bh_px_listen(mine, other, 0, 1, NULL, NULL), -ETIMEDOUT);
        CU_ASSERT_EQUAL(mine->blind_next, BH_MIN(blind, BH_PX_BLIND_MAX));
        for (uint32_t i = mine->blind; i > 0; i--) {
            CU_ASSERT_EQUAL(mine->blind, i);
            CU_ASSERT_EQUAL(bh_px_listen(mine, other, 0, 1, NULL, NULL), -ETIMEDOUT);
        }
    }
    CU_ASSERT_EQUAL(atomic_load(&mine->sleeps), 0);
    free(mine);
    free(other);
}

static void *speak(void *area)
{
    struct bh_px_area *to = area;

    for (uint32_t i = 1; i <= 1000; i++) {
        if (bh_px_listen(to, to + 1, i - 1, 0, NULL, NULL) != 0)
            break;
        bh_px_say(to, to + 1, i, false);
    }
    return NULL;
}

/* Each word arrives, whether its listener looks or sleeps. */
static void test_words(void)
{
    struct bh_px_area *area = bh_calloc(2, sizeof *area);
    pthread_t t;

    CU_ASSERT_FATAL(pthread_create(&t, NULL, speak, area) == 0);
    for (uint32_t i = 1; i <= 1000; i++) {
        if (i % 3 == 0)
            area[1].blind = 1;
        bh_px_say(&area[1], &area[0], i, false);
        CU_ASSERT_FATAL(bh_px_listen(&area[1], &area[0], i - 1, 0, NULL, NULL) == 0);
        CU_ASSERT_EQUAL(area[0].bytes, i);
    }
    pthread_join(t, NULL);
    CU_ASSERT_EQUAL(atomic_load(&area[0].seq), 1000);
    free(area);
}

BH_TESTS("scheduler/native/process", {"changes reach the process's picture", test_changes},
         {"a plugin there hears of rows that changed", test_changed_rows},
         {"more changed nodes than go into a message", test_many_changed},
         {"what was not sent is told again", test_full},
         {"who looks in vain sleeps the next times", test_patience},
         {"each word arrives", test_words})
