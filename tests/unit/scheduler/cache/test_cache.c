/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/cache/cache.h"
#include "tests/unit/scheduler/engine/fixture.h"

/* The fixture's engine only compiles the records; the cache under test is another one. */
struct world {
    struct fx f;
    struct bh_cache c;
};

static void setup(struct world *w, bool keep_order)
{
    fx_init(&w->f, NULL);
    bh_cache_init(&w->c, bh_engine_symtab(w->f.e), keep_order);
}

static void teardown(struct world *w)
{
    bh_cache_fini(&w->c);
    fx_fini(&w->f);
}

static void node(struct world *w, const char *name, const char *labels, const char *status)
{
    bh_cache_put_node(&w->c,
                      fx_node_rec(&w->f, name, "'cpu':'4','memory':'8Gi','pods':'10','e.com/x':'3'",
                                  labels, "", status));
}

static bh_sym sym(struct world *w, const char *s)
{
    return bh_sym_internc(bh_engine_symtab(w->f.e), s);
}

static struct fx_pod place(struct world *w, const char *name, const char *requests, const char *on)
{
    struct fx_pod p = fx_pod(&w->f, name, requests, "");

    p.rec->node = sym(w, on);
    p.shape = bh_shapes_intern(&w->c.shapes, bh_engine_shape_rec(w->f.e, p.shape));
    bh_cache_put_pod(&w->c, p.rec, p.shape);
    bh_shapes_unref(&w->c.shapes, p.shape);
    return p;
}

static void drop(struct world *w, struct fx_pod p)
{
    bh_cache_del_pod(&w->c, bh_rec_text(p.rec, p.rec->uid));
}

static void test_sums_and_columns(void)
{
    struct world w;

    setup(&w, false);
    node(&w, "a", "", "");
    struct fx_pod p = place(&w, "p", "'cpu':'500m','memory':'1Gi','e.com/x':'2'", "a");
    struct fx_pod q = place(&w, "q", "", "a");
    const struct bh_node_info *ni = bh_cache_node(&w.c, sym(&w, "a"));
    FX_INT(ni->used_cpu_milli, 500);
    FX_INT(ni->nonzero_cpu_milli, 600);
    FX_INT(ni->nonzero_memory_bytes, (1 << 30) + 200 * (1 << 20));
    FX_INT(bh_node_info_used_scalar(ni, sym(&w, "e.com/x")), 2);
    bh_cache_sync(&w.c);
    const struct bh_scalar_column *x = bh_columns_scalar(&w.c.cols, sym(&w, "e.com/x"));
    CU_ASSERT_FATAL(x != NULL);
    FX_INT(x->alloc[ni->row], 3);
    FX_INT(x->used[ni->row], 2);
    FX_INT(w.c.cols.pods_free[ni->row], 8);
    FX_INT(w.c.cols.used_cpu_milli[ni->row], 500);
    drop(&w, p);
    drop(&w, q);
    bh_cache_sync(&w.c);
    FX_INT(ni->used_cpu_milli, 0);
    FX_INT(x->used[ni->row], 0);
    FX_INT(ni->n_pods, 0);
    teardown(&w);
}

static void test_pod_list_swaps(void)
{
    struct world w;

    setup(&w, false);
    node(&w, "a", "", "");
    struct fx_pod p[4];
    for (unsigned i = 0; i < 4; i++)
        p[i] = place(&w, (const char *[]){"p0", "p1", "p2", "p3"}[i], "", "a");
    drop(&w, p[1]);
    const struct bh_node_info *ni = bh_cache_node(&w.c, sym(&w, "a"));
    FX_INT(ni->n_pods, 3);
    FX_STR(bh_rec_text(ni->pods[1]->rec, ni->pods[1]->rec->name).p, "p3");
    drop(&w, p[3]);
    drop(&w, p[0]);
    FX_STR(bh_rec_text(ni->pods[0]->rec, ni->pods[0]->rec->name).p, "p2");
    teardown(&w);
}

static void test_change_log(void)
{
    struct world w;

    setup(&w, false);
    node(&w, "a", "", "");
    node(&w, "b", "", "");
    bh_cache_sync(&w.c);
    uint64_t pos = w.c.log_end;
    bh_cache_sync(&w.c);
    FX_INT(w.c.log_end - pos, 0);
    struct fx_pod p = place(&w, "p", "", "b");
    place(&w, "q", "", "b"); /* two changes of a row are one entry */
    bh_cache_sync(&w.c);
    FX_INT(w.c.log_end - pos, 1);
    uint32_t row = bh_cache_node(&w.c, sym(&w, "b"))->row;
    FX_INT(w.c.log[pos & (w.c.log_cap - 1)], row);
    for (unsigned i = 0; i < 5000; i++) { /* many times around the ring */
        drop(&w, p);
        p = place(&w, "p", "", "b");
        bh_cache_sync(&w.c);
    }
    FX_INT(w.c.log_end - pos, 5001);
    CU_ASSERT(w.c.log_end - w.c.log_begin <= w.c.log_cap && w.c.log_begin > pos);
    bh_cache_del_node(&w.c, sym(&w, "b"));
    bh_cache_sync(&w.c);
    CU_ASSERT(!bh_row_bit(&w.c.cols, BH_ROW_LIVE, row));
    node(&w, "c", "", ""); /* takes the freed row */
    FX_INT(bh_cache_node(&w.c, sym(&w, "c"))->row, row);
    teardown(&w);
}

static void test_many_rows(void)
{
    struct world w;
    char name[16];

    setup(&w, false);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        node(&w, name, "", "");
        if (i % 100 == 0)
            bh_cache_sync(&w.c);
    }
    bh_cache_sync(&w.c);
    FX_INT(w.c.n_nodes, 1000);
    for (unsigned i = 0; i < 1000; i += 2) {
        snprintf(name, sizeof name, "n%u", i);
        bh_cache_del_node(&w.c, sym(&w, name));
    }
    bh_cache_sync(&w.c);
    FX_INT(w.c.n_nodes, 500);
    FX_INT(w.c.n_free, 500);
    unsigned live = 0;
    for (uint32_t r = 0; r < w.c.cols.n_rows; r++)
        live += bh_row_bit(&w.c.cols, BH_ROW_LIVE, r);
    FX_INT(live, 500);
    teardown(&w);
}

#define IMAGE(name, size) "'images':[{'names':['" name "'],'sizeBytes':" size "}]"

static const struct bh_image_state *image(struct world *w, const char *n, const char *im)
{
    return bh_node_info_image(bh_cache_node(&w->c, sym(w, n)), sym(w, im));
}

static void test_images(void)
{
    struct world w;

    setup(&w, false);
    node(&w, "a", "", IMAGE("x", "100"));
    node(&w, "b", "", IMAGE("x", "999"));
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "a", "x")->node_count, 2);
    FX_INT(image(&w, "b", "x")->size_bytes, 100); /* the first reporter's */
    bh_cache_del_node(&w.c, sym(&w, "a"));
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "b", "x")->node_count, 2); /* not refreshed */
    place(&w, "p", "", "b");
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "b", "x")->node_count, 1);
    FX_INT(image(&w, "b", "x")->size_bytes, 100); /* kept while any node has it */
    node(&w, "b", "", IMAGE("y", "5"));
    node(&w, "b", "", IMAGE("x", "7")); /* nobody had x in between */
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "b", "x")->size_bytes, 7);
    CU_ASSERT(image(&w, "b", "y") == NULL);
    node(&w, "b", "",
         "'images':[{'names':['x','x','z'],'sizeBytes':1},{'names':['x'],'sizeBytes':2}]");
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "b", "x")->node_count, 1); /* listed three times, one node */
    FX_INT(bh_cache_node(&w.c, sym(&w, "b"))->n_images, 2);
    teardown(&w);
}

/* What a snapshot made of the objects would say: own sizes, current counts. */
static void test_rebuilt_images(void)
{
    struct world w;

    setup(&w, false);
    w.c.rebuilt = true;
    node(&w, "a", "", IMAGE("x", "100"));
    node(&w, "b", "", IMAGE("x", "999"));
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "a", "x")->size_bytes, 100);
    FX_INT(image(&w, "b", "x")->size_bytes, 999);
    uint64_t pos = w.c.log_end;
    bh_cache_del_node(&w.c, sym(&w, "a"));
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "b", "x")->node_count, 1);
    FX_INT(w.c.log_end - pos, 2); /* the row that went and the node whose count changed */
    pos = w.c.log_end;
    node(&w, "c", "", "");
    bh_cache_sync(&w.c);
    FX_INT(w.c.log_end - pos, 1); /* no images, nobody else is concerned */
    node(&w, "b", "", "'images':[{'names':['x'],'sizeBytes':1},{'names':['x'],'sizeBytes':2}]");
    bh_cache_sync(&w.c);
    FX_INT(image(&w, "b", "x")->size_bytes, 2);
    teardown(&w);
}

static struct fx_pod place_port(struct world *w, const char *name)
{
    struct fx_pod p =
        fx_pod_full(&w->f, name, "",
                    "'containers':[{'name':'c','ports':[{'containerPort':1,'hostPort':80}]}]", "");

    p.rec->node = sym(w, "a");
    p.shape = bh_shapes_intern(&w->c.shapes, bh_engine_shape_rec(w->f.e, p.shape));
    bh_cache_put_pod(&w->c, p.rec, p.shape);
    bh_shapes_unref(&w->c.shapes, p.shape);
    return p;
}

static void test_rebuilt_pods(void)
{
    struct world w;

    for (unsigned rebuilt = 0; rebuilt < 2; rebuilt++) {
        setup(&w, false);
        w.c.rebuilt = rebuilt;
        node(&w, "a", "", "");
        struct fx_pod p = place_port(&w, "p");
        place_port(&w, "q");
        place(&w, "r", "", "a");
        drop(&w, p);
        const struct bh_node_info *ni = bh_cache_node(&w.c, sym(&w, "a"));
        FX_INT(ni->n_ports, rebuilt);
        FX_STR(bh_rec_text(ni->pods[0]->rec, ni->pods[0]->rec->name).p, rebuilt ? "q" : "r");
        FX_INT(ni->n_pods, 2);
        FX_INT(ni->pods[1]->slot, 1);
        teardown(&w);
    }
}

static const char *order(struct world *w)
{
    uint32_t n;
    const uint32_t *rows = bh_cache_order(&w->c, &n);
    const char *text = "";

    for (uint32_t i = 0; i < n; i++)
        text = bh_arena_printf(&w->f.arena, "%s%s%s", text, i ? " " : "",
                               bh_sym_text(w->c.tab, w->c.rows[rows[i]]->name));
    return text;
}

#define ZONE(z) "'topology.kubernetes.io/zone':'" z "'"

static void test_order(void)
{
    struct world w;

    setup(&w, true);
    node(&w, "a1", ZONE("a"), "");
    node(&w, "b1", ZONE("b"), "");
    node(&w, "a2", ZONE("a"), "");
    node(&w, "c1", ZONE("c"), "");
    node(&w, "a3", ZONE("a"), "");
    node(&w, "c2", ZONE("c"), "");
    FX_STR(order(&w), "a1 b1 c1 a2 c2 a3");
    bh_cache_del_node(&w.c, sym(&w, "b1")); /* the last of its zone */
    node(&w, "b2", ZONE("b"), "");
    FX_STR(order(&w), "a1 c1 b2 a2 c2 a3");
    node(&w, "a1", ZONE("b"), ""); /* moves, but the list waits for the next node to come or go */
    FX_STR(order(&w), "a1 c1 b2 a2 c2 a3");
    node(&w, "d", "", "");
    FX_STR(order(&w), "a2 c1 b2 d a3 c2 a1");
    node(&w, "e", "'failure-domain.beta.kubernetes.io/zone':'c'," ZONE("a"),
         ""); /* the old label wins */
    FX_STR(order(&w), "a2 c1 b2 d a3 c2 a1 e");
    teardown(&w);
}

static void test_nominations(void)
{
    struct bh_nomination *at = NULL;
    struct world w;

    setup(&w, false);
    node(&w, "a", "", "");
    bh_cache_sync(&w.c);
    struct fx_pod p = fx_pod(&w.f, "p", "", ""), q = fx_pod(&w.f, "q", "", "");
    uint32_t shape = bh_shapes_intern(&w.c.shapes, bh_engine_shape_rec(w.f.e, p.shape));
    uint64_t pos = w.c.log_end;
    bh_cache_nominate(&w.c, p.rec, shape, sym(&w, "a"), &at);
    bh_cache_nominate(&w.c, q.rec, shape, sym(&w, "a"), NULL);
    bh_cache_sync(&w.c);
    FX_INT(w.c.log_end - pos, 1); /* its filters say something else now */
    CU_ASSERT(bh_row_bit(&w.c.cols, BH_ROW_NOMINATED, 0));
    FX_INT(w.c.rows[0]->n_nominated, 2);
    const struct bh_nomination *n = bh_cache_nominations(&w.c, sym(&w, "a"));
    CU_ASSERT(n && n->next_on_node && !n->next_on_node->next_on_node);
    FX_STR(bh_rec_text(n->info.rec, n->info.rec->name).p, "p"); /* in order of nomination */
    CU_ASSERT_PTR_EQUAL(at, n);
    bh_cache_nominate(&w.c, p.rec, shape, sym(&w, "elsewhere"), NULL);
    CU_ASSERT_PTR_NULL(at);
    FX_INT(bh_cache_nominated_node(&w.c, bh_rec_text(p.rec, p.rec->uid)), sym(&w, "elsewhere"));
    bh_cache_unnominate(&w.c, bh_rec_text(q.rec, q.rec->uid));
    CU_ASSERT(bh_cache_nominations(&w.c, sym(&w, "a")) == NULL);
    CU_ASSERT(!bh_row_bit(&w.c.cols, BH_ROW_NOMINATED, 0));
    FX_INT(w.c.rows[0]->n_nominated, 0);
    node(&w, "elsewhere", "", ""); /* promised before it was known */
    CU_ASSERT(bh_row_bit(&w.c.cols, BH_ROW_NOMINATED, 1));
    FX_INT(w.c.rows[1]->n_nominated, 1);
    teardown(&w);
}

static void test_shapes(void)
{
    struct world w;
    uint32_t ids[BH_SHAPES_IDLE + 2];

    setup(&w, false);
    struct bh_shape_rec s = {
        .h = {.size = sizeof s, .type = BH_REC_SHAPE, .layout = BH_REC_LAYOUT}};
    uint32_t a = bh_shapes_intern(&w.c.shapes, &s);
    FX_INT(bh_shapes_intern(&w.c.shapes, &s), a);
    bh_shapes_unref(&w.c.shapes, a);
    bh_shapes_unref(&w.c.shapes, a);
    CU_ASSERT(bh_shapes_rec(&w.c.shapes, a) != NULL); /* idle, not forgotten */
    uint64_t born = w.c.shapes.e[a].born;
    FX_INT(bh_shapes_intern(&w.c.shapes, &s), a);
    FX_INT(w.c.shapes.e[a].born, born);
    bh_shapes_unref(&w.c.shapes, a);
    for (unsigned i = 0; i < BH_ARRAY_LEN(ids); i++) {
        s.priority = (int32_t)i + 1;
        ids[i] = bh_shapes_intern(&w.c.shapes, &s);
        bh_shapes_unref(&w.c.shapes, ids[i]);
    }
    s.priority = 0;
    uint32_t again = bh_shapes_intern(&w.c.shapes, &s);
    CU_ASSERT(w.c.shapes.e[again].born > born); /* it was dropped in between */
    CU_ASSERT(w.c.shapes.used <= BH_SHAPES_IDLE + 1);
    teardown(&w);
}

/* Shapes that differ in nothing but volumes and claims are one without them. */
static void test_shapes_kept(void)
{
    struct world w;
    uint32_t id[4];
    struct {
        struct bh_shape_rec s;
        struct bh_volume v[2];
        bh_sym monitor[2];
        struct bh_pod_claim claim;
    } r = {.s = {.h = {.size = sizeof r, .type = BH_REC_SHAPE, .layout = BH_REC_LAYOUT},
                 .flags = BH_SHAPE_USES_VOLUMES | BH_SHAPE_HOST_NETWORK,
                 .volumes = {offsetof(__typeof__(r), v), 2},
                 .claims = {offsetof(__typeof__(r), claim), 1}}};

    setup(&w, false);
    for (unsigned i = 0; i < 4; i++) {
        r.v[0].source = i;
        r.v[1].monitors = (struct bh_slice){offsetof(__typeof__(r), monitor), 2};
        r.monitor[1] = 2 * i;
        r.claim.claim = 3 * i;
        r.s.priority = i == 3;
        id[i] = bh_shapes_intern(&w.c.shapes, &r.s);
    }
    const struct bh_shape_table *t = &w.c.shapes;
    uint32_t kept = bh_shapes_kept(t, id[0]);
    CU_ASSERT(id[0] != id[1] && id[1] != id[2]);
    CU_ASSERT(kept != id[0] && kept == bh_shapes_kept(t, id[1]) &&
              kept == bh_shapes_kept(t, id[2]));
    CU_ASSERT(kept != bh_shapes_kept(t, id[3])); /* another priority */
    FX_INT(bh_shapes_kept(t, kept), kept);
    FX_INT(bh_shapes_rec(t, kept)->volumes.n + bh_shapes_rec(t, kept)->claims.n, 0);
    FX_INT(bh_shapes_rec(t, kept)->flags, BH_SHAPE_HOST_NETWORK);
    FX_INT(t->e[kept].refs, 3);
    for (unsigned i = 0; i < 4; i++)
        bh_shapes_unref(&w.c.shapes, id[i]);
    FX_INT(t->e[kept].refs, 3); /* the idle ones still know it */
    r.s.volumes.n = r.s.claims.n = 0;
    for (unsigned i = 0; i < BH_SHAPES_IDLE + 8; i++) {
        r.s.priority = (int32_t)i + 2;
        bh_shapes_unref(&w.c.shapes, bh_shapes_intern(&w.c.shapes, &r.s));
    }
    CU_ASSERT(t->used <= BH_SHAPES_IDLE + 8); /* all of the first have gone, with what they were */
    teardown(&w);
}

static void test_fork(void)
{
    struct world w;

    setup(&w, false);
    node(&w, "a", "", "");
    place(&w, "p", "'cpu':'1','e.com/x':'1'", "a");
    struct fx_pod q = place(&w, "q", "'cpu':'2'", "a");
    const struct bh_node_info *ni = bh_cache_node(&w.c, sym(&w, "a"));
    struct bh_node_info *f = bh_node_info_fork(ni, &w.f.arena);
    bh_node_info_remove_pod(f, f->pods[0]);
    for (unsigned i = 0; i < 20; i++)
        bh_node_info_add_pod(f, ni->pods[1]);
    FX_INT(f->used_cpu_milli, 42000);
    FX_INT(bh_node_info_used_scalar(f, sym(&w, "e.com/x")), 0);
    FX_INT(ni->used_cpu_milli, 3000); /* the original knows nothing of it */
    FX_INT(ni->n_pods, 2);
    FX_INT(bh_node_info_used_scalar(ni, sym(&w, "e.com/x")), 1);
    drop(&w, q);
    teardown(&w);
}

static void test_scalars_beyond_the_columns(void)
{
    struct world w;
    struct bh_buf alloc = {0};

    setup(&w, false);
    bh_buf_adds(&alloc, "'pods':'10'");
    for (unsigned i = 0; i < BH_COLUMNS_SCALARS + 10; i++)
        bh_buf_addf(&alloc, ",'e.com/r%u':'%u'", i, i + 1);
    bh_cache_put_node(&w.c, fx_node_rec(&w.f, "a", bh_buf_str(&alloc), "", "", ""));
    fx_node(&w.f, "a", bh_buf_str(&alloc), "", "", "");
    bh_cache_sync(&w.c);
    FX_INT(w.c.cols.n_scalars, BH_COLUMNS_SCALARS);
    for (unsigned i = 0; i < BH_COLUMNS_SCALARS + 10; i++) { /* with or without column, verified */
        char req[64];
        snprintf(req, sizeof req, "'e.com/r%u':'%u'", i, i + 1);
        CU_ASSERT(fx_schedule(&w.f, fx_pod(&w.f, "p", req, ""))->kind == BH_DECIDED);
        snprintf(req, sizeof req, "'e.com/r%u':'%u'", i, i + 2);
        CU_ASSERT(fx_schedule(&w.f, fx_pod(&w.f, "p", req, ""))->kind == BH_NO_FIT);
    }
    bh_buf_fini(&alloc);
    teardown(&w);
}

BH_TESTS("scheduler/cache", {"sums reach the columns", test_sums_and_columns},
         {"a removed pod is replaced by the last one", test_pod_list_swaps},
         {"the change log names each changed row once a sync", test_change_log},
         {"rows are reused", test_many_rows},
         {"image sizes and counts are as stale as upstream's", test_images},
         {"a rebuilt snapshot has current image states", test_rebuilt_images},
         {"a rebuilt snapshot keeps ports in use and pods in order", test_rebuilt_pods},
         {"node order takes zones in turn", test_order},
         {"nominations change their node's row", test_nominations},
         {"shapes are interned and kept for a while", test_shapes},
         {"shapes know what they are without volumes and claims", test_shapes_kept},
         {"a fork changes nothing of its original", test_fork},
         {"more scalar resources than columns", test_scalars_beyond_the_columns})
