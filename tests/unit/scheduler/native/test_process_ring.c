/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hostile process of a plugin can write: lengths, offsets, states, questions and descriptions that make
 * no sense. The areas are the test's own memory, so that it writes there what such a process would.
 */
#include <errno.h>
#include <unistd.h>

#include "scheduler/native/process_int.h"
#include "tests/unit/scheduler/engine/fixture.h"

/* A connection whose process is the test. Nothing is waited for: without a process, what is not there yet
 * never comes. */
struct wire {
    struct fx f;
    struct bh_px x;
    struct bh_px_instance i;
    struct bh_native_plugin of;
    struct bh_native in;
};

static void setup(struct wire *w)
{
    memset(w, 0, sizeof *w);
    fx_init(&w->f, NULL);
    w->of.d.name = "Hostile";
    w->in = (struct bh_native){.of = &w->of,
                               .tab = bh_engine_symtab(w->f.e),
                               .arena = &w->f.arena,
                               .waker = {.plugin = "Hostile"}};
    w->x = (struct bh_px){.down = bh_calloc(1, BH_PX_AREA_BYTES),
                          .up = bh_calloc(1, BH_PX_AREA_BYTES),
                          .parent = getpid(),
                          .first = &w->i};
    pthread_mutex_init(&w->x.list, NULL);
    w->i = (struct bh_px_instance){.x = &w->x, .in = &w->in, .id = 7};
    bh_native_inside = &w->in;
}

static void teardown(struct wire *w)
{
    bh_native_inside = NULL;
    free(w->x.down);
    free(w->x.up);
    bh_buf_fini(&w->x.heard);
    fx_fini(&w->f);
}

/* What the process says has been said when the scheduler begins to listen. */
static int transact(struct wire *w, struct bh_px_instance *i, uint64_t bytes, uint32_t aside,
                    struct bh_px_reply *r, struct bh_px_in *ret)
{
    const struct bh_px_out nothing = {0};

    w->x.up->bytes = bytes;
    w->x.up->aside = aside;
    atomic_store(&w->x.up->seq, w->x.seen + 1);
    return bh_px_transact(&w->x, i, &nothing, UINT64_MAX, r, ret);
}

static void is(const char *what, int rc, int want)
{
    if (rc != want)
        fprintf(stderr, "%s: %d, not %d\n", what, rc, want);
    CU_ASSERT_EQUAL(rc, want);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void test_bounds(void)
{
    static const struct {
        const char *what;
        size_t take;
        bool good;
    } cases[] = {{"nothing", 0, true},
                 {"all of it", 16, true},
                 {"padded to all of it", 9, true},
                 {"one more", 17, false},
                 {"far more", SIZE_MAX / 2, false},
                 {"so much that padding makes it nothing", SIZE_MAX, false},
                 {"and a little less", SIZE_MAX - 7, false}};
    _Alignas(8) char text[16] = "0123456789abcde";

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_px_in in = {.p = text, .end = text + sizeof text};
        struct bh_px_out o = {.p = text, .cap = sizeof text};
        is(cases[i].what, bh_px_get(&in, cases[i].take) != NULL, cases[i].good);
        is(cases[i].what, in.bad, !cases[i].good);
        is(cases[i].what, bh_px_room(&o, cases[i].take) != NULL, cases[i].good);
        is(cases[i].what, o.full, !cases[i].good);
        if (!cases[i].good) /* and so is everything behind it */
            CU_ASSERT(!bh_px_get_u64(&in) && !bh_px_get_str(&in).n && !bh_px_room(&o, 0));
    }
    const uint64_t lengths[] = {9, UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 63};
    for (size_t i = 0; i < BH_ARRAY_LEN(lengths); i++) {
        struct bh_px_in in = {.p = text, .end = text + sizeof text};
        memcpy(text, &lengths[i], sizeof lengths[i]);
        const struct berth_str s = bh_px_get_str(&in);
        CU_ASSERT(in.bad && s.n == 0 && s.p && !*s.p);
    }
}

/* ---- rows and scores ------------------------------------------------------------------------- */

static void test_rows(void)
{
    static const struct {
        const char *what;
        uint32_t rows[8];
        uint64_t n, bytes; /* of the message */
    } cases[] = {{"none", {0}, 0, 8},
                 {"one", {7}, 1, 16},
                 {"all in a row", {4, 5, 6, 7, 8, 9, 10, 11}, 8, 16},
                 {"two runs", {1, 2, 3, 5, 6, 7, 8, 9}, 8, 24},
                 {"none beside another, nor in order", {9, 7, 5, 0, 2}, 5, 48},
                 {"the same again", {3, 3, 3}, 3, 32},
                 {"beyond the last number", {UINT32_MAX - 1, UINT32_MAX, 0, 1}, 4, 16}};
    static _Alignas(8) char text[128];
    struct bh_arena a = {0};
    uint64_t n;

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_px_out o = {.p = text, .cap = sizeof text};
        bh_px_put_rows(&o, cases[i].rows, cases[i].n);
        is(cases[i].what, !o.full && o.n == cases[i].bytes, true);
        struct bh_px_in in = {.p = text, .end = text + o.n}, again = in;
        const uint32_t *rows = bh_px_get_rows(&in, &a, &n);
        is(cases[i].what, rows && !in.bad && in.p == in.end && n == cases[i].n, true);
        is(cases[i].what, rows && memcmp(rows, cases[i].rows, n * sizeof *rows) == 0, true);
        is(cases[i].what, bh_px_same_rows(again, cases[i].rows, n), true);
        is(cases[i].what, bh_px_same_rows(again, cases[i].rows, n + 1), false);
        for (uint64_t k = 0; k < n; k++) { /* whichever is another one */
            uint32_t other[8];
            memcpy(other, cases[i].rows, sizeof other);
            other[k] += 100;
            is(cases[i].what, bh_px_same_rows(again, other, n), false);
        }
    }
    static const uint64_t bad[][3] = {{UINT64_MAX, 0, 0},                  /* far too many */
                                      {3, UINT64_C(4) << 32, 0},           /* a run of more */
                                      {3, UINT64_C(0) << 32 | 5, 0},       /* of none */
                                      {3, UINT64_C(2) << 32, UINT64_MAX}}; /* and more again */
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_px_in in = {.p = (const char *)bad[i], .end = (const char *)(bad[i] + 3)};
        is("runs that make no sense", bh_px_get_rows(&in, &a, &n) != NULL, false);
    }
    bh_arena_fini(&a);
}

static void test_scores(void)
{
    static const struct {
        const char *what;
        int64_t scores[4];
        uint64_t bytes;
    } cases[] = {{"small", {0, 100, 255, 1}, 16},
                 {"one that is larger", {0, 256, 255, 1}, 40},
                 {"one below 0", {0, -1, 255, 1}, 40},
                 {"as large and small as can be", {INT64_MAX, INT64_MIN, 0, 1}, 40}};
    static _Alignas(8) char text[64];
    int64_t got[4];

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_px_out o = {.p = text, .cap = sizeof text};
        bh_px_put_scores(&o, cases[i].scores, 4);
        is(cases[i].what, !o.full && o.n == cases[i].bytes, true);
        struct bh_px_in in = {.p = text, .end = text + o.n}, cut = {.p = text, .end = in.end - 8};
        is(cases[i].what, bh_px_get_scores(&in, got, 4) && in.p == in.end, true);
        is(cases[i].what, memcmp(got, cases[i].scores, sizeof got) == 0, true);
        is("one that ends early", bh_px_get_scores(&cut, got, 4), false);
    }
    static const uint64_t widths[] = {0, 2, 4, 16, UINT64_MAX};
    for (size_t i = 0; i < BH_ARRAY_LEN(widths); i++) {
        struct bh_px_in in = {.p = text, .end = text + sizeof text};
        memcpy(text, &widths[i], sizeof widths[i]);
        is("a width that is none", bh_px_get_scores(&in, got, 4), false);
    }
    const uint64_t one = 1;
    struct bh_px_in in = {.p = text, .end = text + sizeof text};
    memcpy(text, &one, sizeof one);
    is("more scores than there may be", bh_px_get_scores(&in, got, UINT64_MAX), false);
}

/* ---- what an area says of itself ------------------------------------------------------------- */

static void test_areas(void)
{
    static const struct {
        const char *what;
        uint64_t bytes;
        uint32_t aside;
    } cases[] = {{"an answer of more than there is room for", BH_PX_MAIN_BYTES + 1, 0},
                 {"of more than the area", BH_PX_AREA_BYTES, 0},
                 {"of more than there are addresses", UINT64_MAX, 0},
                 {"a question of more than there is room for", BH_PX_SIDE_BYTES + 1, 1},
                 {"of more than there are addresses", UINT64_MAX, 1},
                 {"a question in a state that is none", UINT64_MAX, UINT32_MAX},
                 {"an empty answer", 0, 0},
                 {"less than how an answer begins", sizeof(struct bh_px_reply) - 8, 0}};
    struct bh_px_reply r;
    struct bh_px_in m;
    struct wire w;

    setup(&w);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++)
        is(cases[i].what, transact(&w, &w.i, cases[i].bytes, cases[i].aside, &r, &m), -EBADMSG);
    is("a question where none may be asked", transact(&w, NULL, 8, 1, &r, &m), -EBADMSG);

    const struct bh_px_out nothing = {0};
    is("a process that says nothing and is gone",
       bh_px_transact(&w.x, &w.i, &nothing, UINT64_MAX, &r, &m), -EPIPE);
    w.x.pid = getppid();
    w.x.parent = 0; /* another one's child, which is there */
    is("one that says nothing and is there", bh_px_transact(&w.x, &w.i, &nothing, 1, &r, &m),
       -ETIMEDOUT);
    atomic_store(&w.x.up->seq, w.x.seen + 1);
    is("one that says something too late", bh_px_transact(&w.x, &w.i, &nothing, 1, &r, &m),
       -ETIMEDOUT);
    teardown(&w);
}

/* ---- how an answer begins -------------------------------------------------------------------- */

static void test_replies(void)
{
    enum { BEHIND = 64 }; /* bytes of what is returned, and of the texts */
    static const struct {
        const char *what;
        uint64_t payload;
        uint32_t n_reason, n_broke;
        int rc;
    } cases[] = {{"all of it returned", BEHIND, 0, 0, 0},
                 {"some returned, two texts", 32, 16, 9, 0},
                 {"returned, not in eights", 12, 0, 0, -EBADMSG},
                 {"more returned than there is", BEHIND + 8, 0, 0, -EBADMSG},
                 {"as much as an offset can be", UINT64_MAX - 7, 0, 0, -EBADMSG},
                 {"a reason behind the end", BEHIND, 1, 0, -EBADMSG},
                 {"a reason that ends behind it", 32, 33, 0, -EBADMSG},
                 {"a text behind the reason that ends there", 32, 16, 17, -EBADMSG},
                 {"a reason that padding ends behind it", 56, 8, 1, -EBADMSG},
                 {"a reason of 4 GiB", 0, UINT32_MAX, 0, -EBADMSG},
                 {"two texts that are 0 together", 0, UINT32_MAX - 7, UINT32_MAX - 7, -EBADMSG},
                 {"and that are little", 0, UINT32_MAX, 2, -EBADMSG}};
    struct bh_px_reply r;
    struct bh_px_in m;
    struct wire w;

    setup(&w);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const struct bh_px_reply says = {.code = 3,
                                         .payload = cases[i].payload,
                                         .n_reason = cases[i].n_reason,
                                         .n_broke = cases[i].n_broke};
        memcpy(w.x.up->data, &says, sizeof says);
        is(cases[i].what, transact(&w, &w.i, sizeof says + BEHIND, 0, &r, &m), cases[i].rc);
        if (cases[i].rc == 0) { /* a copy: the process may write on */
            CU_ASSERT(r.code == 3 && m.end - m.p == BEHIND);
            CU_ASSERT(m.p < w.x.up->data || m.p >= w.x.up->data + BH_PX_MAIN_BYTES);
        }
    }
    teardown(&w);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void test_questions(void)
{
    /* The question's number, and what follows it; -EPIPE: it was answered, and nothing comes after it. */
    static const struct {
        const char *what;
        uint64_t up, more[3];
        uint32_t n_more;
        int rc;
    } cases[] = {
        {"no number", 0, {0}, UINT32_MAX, -EBADMSG},
        {"a number that is none", BH_PX_UPS, {0}, 0, -EBADMSG},
        {"the largest", UINT64_MAX, {0}, 0, -EBADMSG},
        {"a text without its length", BH_PX_UP_INTERN, {0}, 0, -EBADMSG},
        {"a text that is longer", BH_PX_UP_INTERN, {9, 0}, 2, -EBADMSG},
        {"a text as long as can be said", BH_PX_UP_INTERN, {UINT64_MAX}, 1, -EBADMSG},
        {"a short text", BH_PX_UP_INTERN, {2, 0x4142}, 2, -EPIPE},
        {"pods of a row that is none", BH_PX_UP_PODS, {UINT64_MAX - 1}, 1, -EPIPE},
        {"pods of the node that came with no call", BH_PX_UP_PODS, {BH_ROW_NONE}, 1, -EPIPE},
        {"annotations of what has none", BH_PX_UP_ANNOTATION, {99, 0, 0}, 3, -EPIPE},
        {"annotations without a key", BH_PX_UP_ANNOTATION, {0, 0}, 2, -EBADMSG},
        {"a pod that does not wait", BH_PX_UP_GET, {0}, 1, -EPIPE},
        {"an event of nobody", BH_PX_UP_EMIT, {0, 1}, 2, -EBADMSG},
        {"a patch without texts", BH_PX_UP_PATCH, {1, 8, 0}, 3, -EBADMSG},
        {"a metric with more bounds than follow", BH_PX_UP_DEFINE, {2, 0, 0}, 3, -EBADMSG},
        {"a time without one", BH_PX_UP_WAKE_AT, {0}, 0, -EBADMSG},
        {"a time before all times", BH_PX_UP_WAKE_AT, {UINT64_C(1) << 63}, 1, -EPIPE},
        {"what is kept of a pod that is none", BH_PX_UP_FACTS, {0}, 1, -EPIPE},
        {"... whose uid is longer", BH_PX_UP_FACTS, {9, 0}, 2, -EBADMSG},
        {"nominations in no call", BH_PX_UP_NOMINATED, {UINT64_MAX}, 1, -EPIPE},
        {"room in no call", BH_PX_UP_RUN, {0, 0, 0}, 3, -EBADMSG},
        {"an answer to no question", BH_PX_UP_RULED, {1, 0}, 2, -EBADMSG}};
    struct bh_px_reply r;
    struct bh_px_in m;
    struct wire w;

    setup(&w);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_px_out o = bh_px_side(w.x.up);
        if (cases[i].n_more != UINT32_MAX)
            bh_px_put_u64(&o, cases[i].up);
        for (uint32_t k = 0; cases[i].n_more != UINT32_MAX && k < cases[i].n_more; k++)
            bh_px_put_u64(&o, cases[i].more[k]);
        is(cases[i].what, transact(&w, &w.i, o.n, 1, &r, &m), cases[i].rc);
    }
    teardown(&w);
}

static int intern(struct wire *w, const char *text, size_t n)
{
    struct bh_px_out o = bh_px_side(w->x.up);
    struct bh_px_reply r;
    struct bh_px_in m;

    bh_px_put_u64(&o, BH_PX_UP_INTERN);
    bh_px_put_str(&o, text, n);
    return transact(w, &w->i, o.n, 1, &r, &m);
}

/* Symbols are never freed: an instance has a budget, and its process is ended when it wants more. The text that was there
 * before costs nothing, so that its next process works. */
static void test_symbols_have_a_budget(void)
{
    static const size_t lengths[] = {UINT16_MAX, 1000, 8};
    char *text = bh_calloc(UINT16_MAX + 1, 1);

    for (size_t k = 0; k < BH_ARRAY_LEN(lengths); k++) {
        const size_t each = lengths[k] + BH_PX_SYMBOL_BYTES, most = BH_PX_INTERN_BYTES / each;
        struct wire w;
        setup(&w);
        memset(text, 'x', lengths[k]);
        const uint32_t before = bh_symtab_count(w.in.tab);
        size_t n = 0;
        for (int rc = -EPIPE; rc == -EPIPE && n <= most + 1; n += rc == -EPIPE) {
            memcpy(text, &n, sizeof n);
            rc = intern(&w, text, lengths[k]);
            CU_ASSERT(rc == -EPIPE || rc == -EDQUOT);
        }
        CU_ASSERT_EQUAL(n, most);
        CU_ASSERT_EQUAL(bh_symtab_count(w.in.tab), before + most);
        is("once more", intern(&w, text, lengths[k]), -EDQUOT);
        memset(text, 0, sizeof n);
        is("one that was there", intern(&w, text, lengths[k]), -EPIPE);
        is("one that no symbol can be", intern(&w, text, UINT16_MAX + 1), -EPIPE);
        CU_ASSERT_EQUAL(bh_symtab_count(w.in.tab), before + most);
        teardown(&w);
    }
    free(text);
}

static void activate(struct wire *w, const char *uid, size_t n)
{
    struct bh_px_out o = bh_px_side(w->x.up);
    struct bh_px_reply r;
    struct bh_px_in m;

    bh_px_put_u64(&o, BH_PX_UP_ACTIVATE);
    bh_px_put_str(&o, uid, n);
    is("activate", transact(w, &w->i, o.n, 1, &r, &m), -EPIPE);
}

static void test_activations_are_bounded(void)
{
    struct bh_waiting_pods waiting = {0};
    char *uid = bh_calloc(1 << 20, 1);
    struct wire w;

    setup(&w);
    w.in.waiting = &waiting;
    activate(&w, uid, BH_ACTIVATE_UID);
    CU_ASSERT_PTR_NULL(w.in.broke);
    activate(&w, uid, BH_ACTIVATE_UID + 1);
    CU_ASSERT_PTR_NOT_NULL(w.in.broke);
    w.in.broke = NULL;
    activate(&w, uid, 1 << 20);
    CU_ASSERT_PTR_NOT_NULL(w.in.broke);
    w.in.broke = NULL;
    for (uint32_t i = 1; i < BH_ACTIVATE_MAX; i++) {
        memcpy(uid, &i, sizeof i);
        activate(&w, uid, 36);
    }
    CU_ASSERT_PTR_NULL(w.in.broke);
    CU_ASSERT_EQUAL(waiting.activate.len, BH_ACTIVATE_MAX);
    activate(&w, uid, 36); /* again */
    CU_ASSERT_PTR_NULL(w.in.broke);
    activate(&w, uid, 35);
    CU_ASSERT_PTR_NOT_NULL(strstr(w.in.broke, "65536"));
    CU_ASSERT_EQUAL(waiting.activate.len, BH_ACTIVATE_MAX);
    bh_map_fini(&waiting.activate);
    free(uid);
    teardown(&w);
}

static void patch(struct wire *w, const char *body)
{
    static const char *const texts[] = {"v1", "pods", "", "ns", "name", "uid", ""};
    struct bh_px_out o = bh_px_side(w->x.up);
    struct bh_px_reply r;
    struct bh_px_in m;

    bh_px_put_u64(&o, BH_PX_UP_PATCH);
    bh_px_put_u64(&o, 1);
    bh_px_put_u64(&o, sizeof(struct berth_patch));
    bh_px_put_u64(&o, BERTH_PATCH_MERGE);
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++)
        bh_px_put_str(&o, texts[i], strlen(texts[i]));
    bh_px_put_str(&o, body, strlen(body));
    is("patch", transact(w, &w->i, o.n, 1, &r, &m), -EPIPE);
}

/* However often one call wants it: what is not taken costs nothing. */
static void test_patches_are_bounded(void)
{
    static const uint32_t hooks[] = {BH_HOOK_TEND, BH_HOOK_BIND};
    struct bh_buf body = {0};

    bh_buf_adds(&body, "{\"a\":[0");
    while (body.n < 60000)
        bh_buf_adds(&body, ",0");
    bh_buf_adds(&body, "]}");
    for (size_t k = 0; k < BH_ARRAY_LEN(hooks); k++) {
        struct bh_plugin_asks asks = {.writes_taken = true};
        struct bh_bind_order order = {0};
        struct bh_arena arena = {0};
        struct bh_call c = {.arena = &arena};
        struct wire w;
        setup(&w);
        bh_asks_init(&asks);
        w.in.asks = &asks;
        w.in.order = &order;
        w.in.call = &c;
        w.in.hook = hooks[k];
        for (unsigned i = 0; i < 200; i++)
            patch(&w, bh_buf_str(&body));
        CU_ASSERT(hooks[k] == BH_HOOK_BIND ? order.write && w.in.broke && !asks.n_writes
                                           : asks.n_writes == BH_ASKS_WRITES && !w.in.broke);
        CU_ASSERT(arena.used_bytes < 2 * body.n);
        bh_asks_fini(&asks);
        bh_arena_fini(&arena);
        teardown(&w);
    }
    bh_buf_fini(&body);
}

/* ---- what threads say ------------------------------------------------------------------------ */

static void test_frames(void)
{
    struct wire w;

    setup(&w);
    bh_px_told(&w.x, &(struct bh_px_frame){.told = BH_PX_WAKE, .instance = 8}, "");
    bh_px_told(&w.x, &(struct bh_px_frame){.told = 99, .instance = 7}, "");
    bh_px_told(&w.x, &(struct bh_px_frame){.told = BH_PX_LOG, .instance = 7, .number = 99, .n = 2},
               "\xff\xfe");
    CU_ASSERT(!atomic_load(&w.in.waker.rings));
    bh_px_told(&w.x, &(struct bh_px_frame){.told = BH_PX_WAKE, .instance = 7}, "");
    CU_ASSERT(atomic_load(&w.in.waker.rings));
    for (unsigned i = 0; i < 3 * BH_PX_LOGS_A_SECOND; i++)
        bh_px_told(&w.x, &(struct bh_px_frame){.told = BH_PX_LOG, .instance = 7, .n = 1}, "x");
    CU_ASSERT(w.i.n_logs <= BH_PX_LOGS_A_SECOND + 1);
    teardown(&w);
}

/* ---- descriptions ---------------------------------------------------------------------------- */

struct description {
    const char *what, *error;
    const char *name;
    uint64_t flags, reads, normal, has, any, n_events, events_there, n_kinds, kinds_there;
};

static size_t describe(const struct description *d, char *to, size_t cap)
{
    const uint64_t numbers[] = {d->flags, d->reads, d->normal, d->has, d->any, d->n_events};
    const struct berth_event none = {0};
    struct bh_px_out o = {.p = to, .cap = cap};

    bh_px_put_str(&o, d->name, strlen(d->name));
    for (size_t i = 0; i < BH_ARRAY_LEN(numbers); i++)
        bh_px_put_u64(&o, numbers[i]);
    for (uint64_t i = 0; i < d->events_there; i++)
        bh_px_put(&o, &none, sizeof none);
    bh_px_put_u64(&o, d->n_kinds);
    for (uint64_t i = 0; i < d->kinds_there; i++) {
        bh_px_put_str(&o, "x.io", 4);
        bh_px_put_str(&o, "v1", 2);
        bh_px_put_str(&o, "Not A Plural", 12);
        bh_px_put_u64(&o, 0);
    }
    CU_ASSERT_FATAL(!o.full);
    return o.n;
}

#define SENSELESS "its process describes it in a way that makes no sense"
static void test_descriptions(void)
{
    static const struct description cases[] = {
        {.what = "no name", .error = "has no name", .name = ""},
        {.what = "flags of tomorrow", .error = "(flags)", .name = "Hostile", .flags = 1u << 31},
        {.what = "reads of tomorrow",
         .error = "(bits of reads)",
         .name = "Hostile",
         .reads = 1u << 31},
        {.what = "another way to normalize",
         .error = "way of normalizing",
         .name = "Hostile",
         .normal = 99},
        {.what = "one half of two",
         .error = "one of change_pod() and clone_state()",
         .name = "Hostile",
         .has = 1u << BH_PX_CHANGE_POD},
        {.what = "events that do not follow",
         .error = SENSELESS,
         .name = "Hostile",
         .any = 1,
         .n_events = 3},
        {.what = "more events than there may be",
         .error = SENSELESS,
         .name = "Hostile",
         .any = 1,
         .n_events = 65,
         .events_there = 65},
        {.what = "as many as can be said",
         .error = SENSELESS,
         .name = "Hostile",
         .any = 1,
         .n_events = UINT64_MAX},
        {.what = "events, of which it says that there are none",
         .error = "none at their address",
         .name = "Hostile",
         .n_events = 1,
         .events_there = 1},
        {.what = "an event on nothing that there is",
         .error = "an event on something",
         .name = "Hostile",
         .any = 1,
         .n_events = 1,
         .events_there = 1},
        {.what = "kinds that do not follow", .error = SENSELESS, .name = "Hostile", .n_kinds = 2},
        {.what = "more kinds than there may be",
         .error = "more than 16 kinds",
         .name = "Hostile",
         .n_kinds = UINT64_MAX},
        {.what = "a kind that is none",
         .error = "kinds[0]: resource",
         .name = "Hostile",
         .n_kinds = 1,
         .kinds_there = 1}};
    static char text[8192];

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_px_in m = {.p = text, .end = text + describe(&cases[i], text, sizeof text)};
        struct bh_native_plugin *p = NULL;
        struct bh_px x = {0};
        struct bh_err err = {0};
        is(cases[i].what, bh_px_adopt(&x, &m, &p, &err), -EINVAL);
        if (!strstr(err.msg, cases[i].error))
            fprintf(stderr, "%s: %s\n", cases[i].what, err.msg);
        CU_ASSERT(strstr(err.msg, cases[i].error) != NULL);
    }
    /* Wherever the message ends. */
    const struct description good = {.name = "Hostile", .any = 1, .n_events = 1, .events_there = 1};
    const size_t n = describe(&good, text, sizeof text);
    for (size_t cut = 0; cut < n; cut += 8) {
        struct bh_px_in m = {.p = text, .end = text + cut};
        struct bh_native_plugin *p = NULL;
        struct bh_px x = {0};
        struct bh_err err = {0};
        is("one that ends early", bh_px_adopt(&x, &m, &p, &err), -EINVAL);
        CU_ASSERT_STRING_EQUAL(err.msg, SENSELESS);
    }
}

BH_TESTS("scheduler/native/process_ring", {"lengths in messages", test_bounds},
         {"rows go as runs", test_rows}, {"scores go as bytes where they can", test_scores},
         {"lengths and states of an area", test_areas}, {"how an answer begins", test_replies},
         {"questions", test_questions}, {"symbols have a budget", test_symbols_have_a_budget},
         {"activations are bounded", test_activations_are_bounded},
         {"patches are bounded", test_patches_are_bounded}, {"what threads say", test_frames},
         {"what a file's plugins are said to be", test_descriptions})
