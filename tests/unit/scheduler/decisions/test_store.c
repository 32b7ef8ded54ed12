/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/decisions/test_store.c - the file: written by one, read by others, bounded,
 * and what happens to it
 */
#include "tests/unit/scheduler/decisions/world.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "scheduler/decisions/writer.h"

static const struct bh_json *at(const struct bh_json *v, const char *path)
{
    return bh_json_path(v, path);
}

static int64_t num(const struct bh_json *v, const char *path)
{
    int64_t n = -1;

    (void)bh_json_i64(at(v, path), &n);
    return n;
}

static const char *str(const struct bh_json *v, const char *path)
{
    const char *s = bh_json_cstr(at(v, path));

    return s ? s : "(none)";
}

static struct bh_json *list(struct world *w, const struct bh_decision_filter *f)
{
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};

    FX_INT(bh_decisions_list(w->d, &w->a, f, &v, &err), 0);
    CU_ASSERT_FATAL(v != NULL);
    return v;
}

/* ---- what is written is what was said -------------------------------------------------------- */

static const char *const shapes[][2] = {
    {"'cpu':'1'", ""},
    {"'cpu':'3500m'", "'tolerations':[{'operator':'Exists'}]"},
    {"'cpu':'100'", ""},
    {"'cpu':'1900m'", "'priority':100"},
    {"'cpu':'1'", "'nodeSelector':{'topology.kubernetes.io/zone':'z1'}"},
};

static void test_equals_explain(void)
{
    struct world w;

    world_init(&w, 300, BH_RECORD_FULL, 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(shapes); i++) {
        struct fx_pod p =
            fx_pod(&w.f, bh_arena_printf(&w.f.arena, "p%u", i), shapes[i][0], shapes[i][1]);
        const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
        struct bh_explain_subject s = bh_explain_subject_of(w.f.e, &pending);
        struct bh_json *have = NULL;
        const char *want;
        uint64_t n = world_attempt(&w, p, 1, NULL);
        want =
            world_text(&w, bh_explain_decision(&w.a, &s, bh_engine_symtab(w.f.e),
                                               bh_engine_schedule(w.f.e, &pending, BH_EXPLAIN, 0)));
        world_settle(&w, n);
        FX_INT(bh_decisions_explanation(w.d, &w.a, (int64_t)n, &have, NULL), 0);
        FX_STR(world_text(&w, have), want);
    }
    world_fini(&w);
}

static void test_summary_and_detail(void)
{
    struct world w;
    struct bh_json *v = NULL;
    uint64_t n;

    world_init(&w, 12, BH_RECORD_FULL, 0);
    n = world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 2, NULL);
    world_settle(&w, 1);
    bh_recorder_outcome(w.r, n, BH_OUTCOME_BOUND, "");
    (void)world_attempt(&w, fx_pod(&w.f, "big", "'cpu':'100'", ""), 1, NULL);
    world_settle(&w, 2);
    FX_INT(bh_decisions_get(w.d, &w.a, (int64_t)n, &v, NULL), 0);
    FX_STR(str(v, "pod.name"), "web");
    FX_STR(str(v, "time"), "2030-01-01T00:00:00.123456Z");
    FX_STR(str(v, "result"), "Scheduled");
    FX_STR(str(v, "outcome"), "Bound");
    FX_STR(str(v, "trigger"), "UnschedulablePodAdd");
    FX_STR(str(v, "mode"), "full");
    FX_INT(num(v, "attempt"), 2);
    FX_INT(num(v, "duration_ns"), 1234);
    FX_INT(num(v, "timings_ns.Filter"), 1000);
    FX_INT(num(v, "nodes.total"), 12);
    FX_INT(num(bh_json_at(at(v, "funnel"), 0), "count"), 12);
    FX_INT(num(bh_json_at(at(v, "top"), 0), "total") > 0, 1);
    FX_STR(str(bh_json_at(at(v, "reserve"), 0), "status"), "success");
    FX_INT(bh_decisions_get(w.d, &w.a, (int64_t)n + 1, &v, NULL), 0);
    FX_STR(str(v, "result"), "Unschedulable");
    FX_STR(str(v, "outcome"), "");
    FX_INT(num(bh_json_at(at(v, "rejectedGroups"), 0), "count"), 9);
    FX_STR(str(bh_json_at(at(bh_json_at(at(v, "rejectedGroups"), 0), "reasons"), 0), ""), "(none)");
    FX_INT(bh_decisions_get(w.d, &w.a, 99, &v, NULL), -ENOENT);
    CU_ASSERT(v == NULL);
    world_fini(&w);
}

static void test_nodes(void)
{
    struct bh_decision_nodes_query q = {.limit = 5};
    struct bh_err err = {{0}};
    struct bh_json *v = NULL;
    struct world w;
    int64_t n;

    world_init(&w, 40, BH_RECORD_FULL, 0);
    n = (int64_t)world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 1, NULL);
    world_settle(&w, 1);
    FX_INT(bh_decisions_nodes(w.d, &w.a, n, &q, &v, &err), 0);
    FX_INT(num(v, "total"), 40);
    FX_INT((long)at(v, "items")->c.n, 5);
    FX_STR(str(bh_json_at(at(v, "items"), 0), "status"), "feasible");
    CU_ASSERT(num(bh_json_at(at(v, "items"), 0), "total") >=
              num(bh_json_at(at(v, "items"), 1), "total"));
    q = (struct bh_decision_nodes_query){.status = "rejected", .q = "UNTOLERATED", .sort = "name"};
    FX_INT(bh_decisions_nodes(w.d, &w.a, n, &q, &v, &err), 0);
    FX_INT(num(v, "total"), 10);
    FX_STR(str(bh_json_at(at(v, "items"), 0), "plugin"), "TaintToleration");
    q = (struct bh_decision_nodes_query){.sort = "NodeResourcesFit"};
    FX_INT(bh_decisions_nodes(w.d, &w.a, n, &q, &v, &err), 0);
    q.sort = "Nonsense";
    FX_INT(bh_decisions_nodes(w.d, &w.a, n, &q, &v, &err), -EINVAL);
    q = (struct bh_decision_nodes_query){.status = "nonsense"};
    FX_INT(bh_decisions_nodes(w.d, &w.a, n, &q, &v, &err), -EINVAL);
    q = (struct bh_decision_nodes_query){.offset = 4000000000u};
    FX_INT(bh_decisions_nodes(w.d, &w.a, n, &q, &v, &err), 0);
    FX_INT((long)at(v, "items")->c.n, 0);
    FX_INT(bh_decisions_node(w.d, &w.a, n, "node-0", &v, &err), 0);
    FX_STR(str(v, "status"), "rejected");
    FX_STR(str(bh_json_at(at(v, "passed"), 0), ""), "(none)");
    CU_ASSERT(at(v, "passed")->c.n >= 2);
    CU_ASSERT(num(v, "winner.total") > 0);
    FX_INT(bh_decisions_node(w.d, &w.a, n, "no/such'node", &v, &err), -ENOENT);
    world_fini(&w);
}

static void test_summary_mode(void)
{
    struct bh_decision_nodes_query q = {0};
    struct bh_err err = {{0}};
    struct bh_json *v = NULL;
    struct world w;

    world_init(&w, 12, BH_RECORD_SUMMARY, 0);
    (void)world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 1, NULL);
    (void)world_attempt(&w, fx_pod(&w.f, "big", "'cpu':'100'", ""), 1, NULL);
    world_settle(&w, 2);
    FX_INT(bh_decisions_get(w.d, &w.a, 1, &v, NULL), 0);
    FX_STR(str(v, "mode"), "summary");
    CU_ASSERT(at(v, "funnel") == NULL);
    FX_INT(bh_decisions_nodes(w.d, &w.a, 1, &q, &v, &err), -ENOENT);
    CU_ASSERT(strstr(err.msg, "mode summary") != NULL);
    FX_INT(bh_decisions_explanation(w.d, &w.a, 1, &v, &err), 0);
    FX_STR(str(v, "result"), "Scheduled");
    CU_ASSERT(strncmp(str(v, "nodeName"), "node-", 5) == 0);
    FX_INT(bh_decisions_explanation(w.d, &w.a, 2, &v, &err), 0);
    CU_ASSERT(strncmp(str(v, "message"), "0/12 nodes are available", 24) == 0);
    FX_INT(bh_decisions_annotations(w.d, &w.a, 2, NULL, &v, &err), 0);
    world_fini(&w);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void test_filters(void)
{
    struct bh_json *v = NULL;
    struct bh_err err;
    struct world w;

    world_init(&w, 12, BH_RECORD_SUMMARY, 0);
    for (unsigned i = 0; i < 30; i++)
        (void)world_attempt(&w,
                            fx_pod(&w.f, bh_arena_printf(&w.f.arena, "p%u", i % 3),
                                   i % 2 ? "'cpu':'100'" : "'cpu':'1'", ""),
                            i, NULL);
    world_settle(&w, 30);
    v = list(&w, &(struct bh_decision_filter){0});
    FX_INT((long)at(v, "items")->c.n, 30);
    FX_INT(num(bh_json_at(at(v, "items"), 0), "id"), 30);
    FX_STR(str(v, "recording.mode"), "summary");
    FX_STR(str(v, "recording.keeps"), "summary");
    FX_INT(num(v, "recording.records"), 30);
    FX_INT(num(v, "oldest"), 1);
    v = list(&w, &(struct bh_decision_filter){.limit = 7});
    CU_ASSERT(bh_json_get_bool(v, "more", false));
    FX_INT((long)at(v, "items")->c.n, 7);
    v = list(&w, &(struct bh_decision_filter){.limit = 7, .before = 8});
    CU_ASSERT(!bh_json_get_bool(v, "more", true));
    v = list(&w, &(struct bh_decision_filter){.namespace_ = "default", .pod = "p1"});
    FX_INT((long)at(v, "items")->c.n, 10);
    v = list(&w, &(struct bh_decision_filter){.uid = "uid-p1", .result = "Unschedulable"});
    FX_INT((long)at(v, "items")->c.n, 5);
    v = list(&w, &(struct bh_decision_filter){.node = "' OR 1 --"});
    FX_INT((long)at(v, "items")->c.n, 0);
    FX_INT(bh_decisions_list(w.d, &w.a, &(struct bh_decision_filter){.result = "Good"}, &v, &err),
           -EINVAL);
    world_fini(&w);
}

static const struct bh_json *changes(struct world *w, struct bh_decisions_cursor *c)
{
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};

    FX_INT(bh_decisions_changes(w->d, &w->a, c, 0, &v, &err), 0);
    CU_ASSERT_FATAL(v != NULL);
    return v;
}

static void test_changes(void)
{
    struct bh_decisions_cursor c = {0};
    const struct bh_json *v;
    struct world w;
    uint64_t n;

    world_init(&w, 12, BH_RECORD_SUMMARY, 0);
    n = world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 1, NULL);
    world_settle(&w, 1);
    v = changes(&w, &c);
    FX_INT((long)v->c.n, 1);
    FX_STR(str(bh_json_at(v, 0), "type"), "ADDED");
    FX_STR(str(bh_json_at(v, 0), "row.outcome"), "Binding");
    FX_INT((long)changes(&w, &c)->c.n, 0);
    bh_recorder_outcome(w.r, n, BH_OUTCOME_FAILED, "running Bind plugin \"DefaultBinder\": no");
    (void)world_attempt(&w, fx_pod(&w.f, "two", "'cpu':'1'", ""), 1, NULL);
    world_settle(&w, 2);
    v = changes(&w, &c);
    FX_INT((long)v->c.n, 2);
    FX_STR(str(bh_json_at(v, 0), "type"), "MODIFIED");
    FX_STR(str(bh_json_at(v, 0), "row.outcome"), "Failed");
    FX_STR(str(bh_json_at(v, 1), "row.pod.name"), "two");
    FX_INT((long)changes(&w, &c)->c.n, 0);
    bh_decisions_now(w.d, &c);
    FX_INT((long)changes(&w, &c)->c.n, 0);
    /* Known before the attempt is written: one row, no change. Bound stays bound. */
    n = world_attempt(&w, fx_pod(&w.f, "three", "'cpu':'1'", ""), 1, NULL);
    bh_recorder_outcome(w.r, n, BH_OUTCOME_FAILED, "no");
    uint64_t last = world_attempt(&w, fx_pod(&w.f, "four", "'cpu':'1'", ""), 1, NULL);
    bh_recorder_outcome(w.r, last, BH_OUTCOME_BOUND, "");
    bh_recorder_outcome(w.r, last, BH_OUTCOME_FAILED, "the pod is gone");
    world_settle(&w, last);
    v = changes(&w, &c);
    FX_INT((long)v->c.n, 2);
    FX_STR(str(bh_json_at(v, 0), "type"), "ADDED");
    FX_STR(str(bh_json_at(v, 0), "row.outcome"), "Failed");
    FX_STR(str(bh_json_at(v, 0), "row.outcomeMessage"), "no");
    FX_STR(str(bh_json_at(v, 1), "row.outcome"), "Bound");
    world_fini(&w);
}

/* ---- bounds and accidents -------------------------------------------------------------------- */

static void test_bounded(void)
{
    struct stat st;
    struct bh_json *v;
    struct world w;
    uint64_t n = 0;

    world_init(&w, 300, BH_RECORD_FULL, BH_DECISIONS_MIN_BYTES);
    for (unsigned round = 0; round < 75; round++) { /* few at a time: then they are not gathered */
        for (unsigned i = 0; i < 60; i++)
            n = world_attempt(
                &w, fx_pod(&w.f, bh_arena_printf(&w.f.arena, "p%u", i), shapes[i % 5][0], ""),
                round, NULL);
        world_settle(&w, n);
    }
    v = list(&w, &(struct bh_decision_filter){.limit = 1});
    CU_ASSERT(num(v, "oldest") > 1);
    FX_INT(num(bh_json_at(at(v, "items"), 0), "id"), (int64_t)n);
    CU_ASSERT(num(v, "recording.records") > 50);
    FX_INT(stat(w.path, &st), 0);
    CU_ASSERT(st.st_size <= BH_DECISIONS_MIN_BYTES);
    FX_INT(bh_decisions_get(w.d, &w.a, num(v, "oldest"), &v, NULL), 0);
    CU_ASSERT(at(v, "funnel") != NULL);
    world_fini(&w);
}

/* Nobody takes what is packed: it is dropped and counted, and later attempts are whole. */
static void test_overflow(void)
{
    struct bh_recorder_stats s = {0};
    struct bh_json *v = NULL;
    struct world w;
    struct fx_pod p;
    uint64_t n = 0;

    world_init(&w, 3000, BH_RECORD_FULL, 0);
    p = fx_pod(&w.f, "web", "'cpu':'1'", "");
    (void)world_attempt(&w, p, 1, NULL);
    world_settle(&w, 1);
    while (!s.dropped && n < 20000) {
        n = world_attempt(&w, p, 2, NULL);
        bh_recorder_stats(w.r, &s);
    }
    CU_ASSERT(s.dropped == 1);
    fx_node(&w.f, "late", "'cpu':'4','memory':'8Gi','pods':'10'", "", "", "");
    (void)world_attempt(&w, p, 3, NULL); /* with a new name: dropped, too */
    world_settle(&w, n - 1);
    n = world_attempt(&w, p, 4, NULL);
    world_settle(&w, n - 2);
    FX_INT(bh_decisions_get(w.d, &w.a, (int64_t)n, &v, NULL), 0);
    FX_INT(num(bh_json_at(at(v, "funnel"), 0), "count"), 3001);
    FX_INT(bh_decisions_node(w.d, &w.a, (int64_t)n, "late", &v, NULL), 0);
    FX_INT(num(list(&w, &(struct bh_decision_filter){0}), "recording.dropped"), 2);
    world_fini(&w);
}

static void reopen(struct world *w)
{
    const struct bh_recorder_options o = {.mode = BH_RECORD_FULL, .path = w->path};

    bh_recorder_free(w->r);
    w->r = bh_recorder_new(&o);
}

static void test_ids_rise(void)
{
    struct bh_json *v = NULL;
    struct world w;

    world_init(&w, 12, BH_RECORD_FULL, 0);
    for (unsigned i = 0; i < 3; i++) {
        (void)world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), i, NULL);
        world_settle(&w, 1);
        reopen(&w);
    }
    v = list(&w, &(struct bh_decision_filter){0});
    FX_INT(num(bh_json_at(at(v, "items"), 0), "id"), 3);
    for (int64_t id = 1; id <= 3; id++) {
        FX_INT(bh_decisions_get(w.d, &w.a, id, &v, NULL), 0);
        FX_INT(num(bh_json_at(at(v, "funnel"), 0), "count"), 12);
    }
    bh_recorder_free(w.r);
    w.r = NULL;
    FX_STR(str(list(&w, &(struct bh_decision_filter){0}), "recording.mode"), "off");
    world_fini(&w);
}

static void test_file_made_anew(void)
{
    struct bh_decisions_cursor c = {0};
    struct bh_json *v = NULL;
    struct world w;
    struct bh_recorder_stats s;

    world_init(&w, 12, BH_RECORD_FULL, 0);
    (void)world_attempt(&w, fx_pod(&w.f, "one", "'cpu':'1'", ""), 1, NULL);
    world_settle(&w, 1);
    FX_INT((long)changes(&w, &c)->c.n, 1);
    FX_INT(unlink(w.path), 0);
    FX_INT((long)at(list(&w, &(struct bh_decision_filter){0}), "items")->c.n, 0);
    sleep(1); /* the writer looks once a second */
    (void)world_attempt(&w, fx_pod(&w.f, "two", "'cpu':'1'", ""), 1, NULL);
    world_settle(&w, 2);
    v = list(&w, &(struct bh_decision_filter){0});
    FX_INT((long)at(v, "items")->c.n, 1);
    FX_INT(num(bh_json_at(at(v, "items"), 0), "id"), 2);
    FX_INT(bh_decisions_get(w.d, &w.a, 2, &v, NULL), 0);
    FX_INT(num(bh_json_at(at(v, "funnel"), 0), "count"), 12);
    FX_STR(str(bh_json_at(changes(&w, &c), 0), "row.pod.name"), "two");
    bh_recorder_stats(w.r, &s);
    FX_INT(s.dropped, 0);
    world_fini(&w);
}

/* Messages of one attempt, as the scheduler's thread hands them over. */
static void one_message(struct bh_buf *b, uint64_t number)
{
    struct bh_record_head h = {.mode = BH_RECORD_SUMMARY,
                               .profile = "",
                               .trigger = "",
                               .reason = "",
                               .message = "",
                               .nominated = ""};
    struct bh_message m = {.kind = BH_MESSAGE_ATTEMPT, .number = number, .n_name = 1};
    struct bh_buf head = {0};

    bh_record_pack_head(&head, &h);
    bh_record_pack_points(&head, &h);
    m.n_head = (uint32_t)head.n;
    m.size = (uint32_t)(sizeof(m) + 1 + head.n);
    bh_buf_reset(b);
    bh_buf_add(b, &m, sizeof(m));
    bh_buf_addc(b, 'p');
    bh_buf_add(b, head.p, head.n);
    bh_buf_fini(&head);
}

static void test_two_writers(void)
{
    struct bh_writer a, b;
    struct bh_buf m = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/two.db", bh_test_tmpdir());
    const struct bh_recorder_options o = {.mode = BH_RECORD_SUMMARY, .path = path};
    bh_writer_init(&a, &o);
    bh_writer_init(&b, &o);
    one_message(&m, 1);
    bh_writer_write(&a, &m, 0);
    bh_writer_write(&b, &m, 0);
    FX_INT(a.recorded, 1);
    FX_INT(b.recorded, 0);
    FX_INT(b.dropped, 1);
    bh_writer_fini(&a);
    b.tried_ns = 0; /* some seconds later */
    one_message(&m, 2);
    bh_writer_write(&b, &m, 0);
    FX_INT(b.recorded, 1);
    FX_INT(b.base + 2, 2);
    bh_writer_fini(&b);
    bh_buf_fini(&m);
}

static void limit_files(rlim_t n)
{
    struct rlimit l;

    CU_ASSERT_FATAL(getrlimit(RLIMIT_FSIZE, &l) == 0);
    l.rlim_cur = BH_MIN(n, l.rlim_max);
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &l) == 0);
}

/* What does not get into the file is counted; what was in it stays, and what comes later gets in. */
static void test_full_disk(void)
{
    struct bh_writer w;
    struct bh_buf m = {0};
    struct bh_decisions *d;
    struct bh_json *v = NULL;
    struct bh_arena a;
    uint64_t n = 1, recorded;
    char path[256];

    bh_arena_init(&a, 0);
    snprintf(path, sizeof(path), "%s/full.db", bh_test_tmpdir());
    const struct bh_recorder_options o = {.mode = BH_RECORD_SUMMARY, .path = path};
    signal(SIGXFSZ, SIG_IGN);
    bh_writer_init(&w, &o);
    one_message(&m, n++);
    bh_writer_write(&w, &m, 0);
    FX_INT(w.recorded, 1);
    limit_files(256 << 10);
    while (!w.dropped && n < 100000) {
        one_message(&m, n++);
        bh_writer_write(&w, &m, 0);
    }
    CU_ASSERT(w.complained);
    limit_files(RLIM_INFINITY);
    recorded = w.recorded;
    FX_INT(recorded + w.dropped, n - 1);
    w.tried_ns = 0; /* some seconds later */
    one_message(&m, n++);
    bh_writer_write(&w, &m, 0);
    FX_INT(w.recorded, recorded + 1);
    bh_writer_fini(&w);
    d = bh_decisions_new(path);
    FX_INT(bh_decisions_get(d, &a, 1, &v, NULL), 0);
    FX_INT(bh_decisions_get(d, &a, (int64_t)n - 1, &v, NULL), 0);
    bh_decisions_free(d);
    bh_buf_fini(&m);
    bh_arena_fini(&a);
}

/* Stacks larger than the address space: no thread can be made, and decisions go on unrecorded. */
static void test_no_thread(void)
{
    struct bh_recorder_stats s = {0};
    pthread_attr_t huge, former;
    struct world w;

    CU_ASSERT_FATAL(pthread_getattr_default_np(&former) == 0);
    CU_ASSERT_FATAL(pthread_attr_init(&huge) == 0);
    CU_ASSERT_FATAL(pthread_attr_setstacksize(&huge, (size_t)1 << 50) == 0);
    CU_ASSERT_FATAL(pthread_setattr_default_np(&huge) == 0);
    world_init(&w, 3, BH_RECORD_FULL, 0);
    CU_ASSERT_FATAL(pthread_setattr_default_np(&former) == 0);
    FX_INT(world_attempt(&w, fx_pod(&w.f, "one", "'cpu':'1'", ""), 1, NULL), 1);
    bh_recorder_stats(w.r, &s);
    FX_INT(s.dropped, 1);
    world_fini(&w);
}

static void write_text(const char *path, const char *text, size_t n, off_t at)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    CU_ASSERT_FATAL(fd >= 0);
    FX_INT(pwrite(fd, text, n, at), (long)n);
    close(fd);
}

static void test_foreign_file(void)
{
    static const char text[] = "this is no database, and somebody may want to keep it: "
                               "0123456789012345678901234567890123456789";
    struct bh_writer w;
    struct bh_buf m = {0};
    struct bh_decisions *d;
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};
    struct bh_arena a;
    char path[256], *now = NULL;
    size_t n;

    bh_arena_init(&a, 0);
    snprintf(path, sizeof(path), "%s/foreign.db", bh_test_tmpdir());
    write_text(path, text, sizeof(text), 0);
    const struct bh_recorder_options o = {.mode = BH_RECORD_SUMMARY, .path = path};
    bh_writer_init(&w, &o);
    one_message(&m, 1);
    bh_writer_write(&w, &m, 0);
    FX_INT(w.dropped, 1);
    bh_writer_fini(&w);
    FX_INT(bh_read_file(path, 4096, &now, &n), 0);
    CU_ASSERT(n == sizeof(text) && memcmp(now, text, n) == 0);
    d = bh_decisions_new(path);
    FX_INT(bh_decisions_list(d, &a, &(struct bh_decision_filter){0}, &v, &err), -EINVAL);
    CU_ASSERT(strstr(err.msg, "not a file of recorded decisions") != NULL);
    FX_STR(str(bh_decisions_recording(d, &a), "mode"), "off");
    bh_decisions_free(d);
    bh_buf_fini(&m);
    free(now);
    bh_arena_fini(&a);
}

static void test_damaged_file(void)
{
    struct bh_writer w;
    struct bh_buf m = {0};
    char path[256], bad[280], junk[8192];
    struct stat st;

    memset(junk, 0xa5, sizeof(junk));
    snprintf(path, sizeof(path), "%s/damaged.db", bh_test_tmpdir());
    snprintf(bad, sizeof(bad), "%s.bad", path);
    const struct bh_recorder_options o = {.mode = BH_RECORD_SUMMARY, .path = path};
    bh_writer_init(&w, &o);
    one_message(&m, 1);
    bh_writer_write(&w, &m, 0);
    FX_INT(w.recorded, 1);
    bh_writer_fini(&w);
    write_text(path, junk, sizeof(junk), 100); /* behind the header that says it is ours */
    bh_writer_init(&w, &o);
    bh_writer_write(&w, &m, 0);
    w.tried_ns = 0;
    bh_writer_write(&w, &m, 0);
    FX_INT(w.recorded, 1);
    FX_INT(stat(bad, &st), 0);
    bh_writer_fini(&w);
    bh_buf_fini(&m);
}

static void test_no_folder(void)
{
    struct bh_writer w;
    struct bh_buf m = {0};
    char path[300], dir[256];

    snprintf(dir, sizeof(dir), "%s/later", bh_test_tmpdir());
    snprintf(path, sizeof(path), "%s/decisions.db", dir);
    const struct bh_recorder_options o = {.mode = BH_RECORD_SUMMARY, .path = path};
    bh_writer_init(&w, &o);
    one_message(&m, 1);
    bh_writer_write(&w, &m, 5);
    FX_INT(w.dropped, 1);
    FX_INT(mkdir(dir, 0700), 0);
    w.tried_ns = 0;
    one_message(&m, 2);
    bh_writer_write(&w, &m, 5);
    FX_INT(w.recorded, 1);
    FX_INT(w.told_dropped, 6);
    bh_writer_fini(&w);
    bh_buf_fini(&m);
}

static void test_age(void)
{
    struct bh_writer w;
    struct bh_buf m = {0};
    char path[256];

    snprintf(path, sizeof(path), "%s/age.db", bh_test_tmpdir());
    const struct bh_recorder_options o = {
        .mode = BH_RECORD_SUMMARY, .path = path, .max_age_ns = 3600 * INT64_C(1000000000)};
    bh_writer_init(&w, &o);
    one_message(&m, 1); /* of 1970 */
    bh_writer_write(&w, &m, 0);
    FX_INT(w.rows, 1);
    w.aged_ns = 0;
    bh_writer_tick(&w, 0);
    FX_INT(w.rows, 0);
    bh_writer_fini(&w);
    bh_buf_fini(&m);
}

/* Full while it costs little; then summaries, and what is left is for pods that failed before. */
static void test_auto_mode(void)
{
    struct world w;
    unsigned n = 0;

    world_init(&w, 1000, BH_RECORD_AUTO, 0);
    do
        (void)world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 1, NULL);
    while (++n < 100000 && bh_recorder_mode(w.r) == BH_RECORD_FULL);
    CU_ASSERT_TRUE(n > 1); /* the first was kept in full */
    CU_ASSERT_EQUAL(bh_recorder_mode(w.r), BH_RECORD_SUMMARY);
    (void)world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 2, NULL);
    CU_ASSERT_EQUAL(bh_recorder_mode(w.r), BH_RECORD_FULL);
    world_settle(&w, n + 1);
    struct bh_json *l = list(&w, &(struct bh_decision_filter){0});
    CU_ASSERT_STRING_EQUAL(str(l, "recording.mode"), "auto");
    CU_ASSERT_STRING_EQUAL(str(l, "recording.keeps"), "sample");
    const struct bh_json *newest = bh_json_at(bh_json_get_list(l, "items"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(newest, "mode"), "full");
    world_fini(&w);
}

BH_TESTS("scheduler/decisions/store",
         {"a recorded decision is what explain says", test_equals_explain},
         {"summary and detail", test_summary_and_detail}, {"nodes of an attempt", test_nodes},
         {"mode summary", test_summary_mode}, {"filters and pages", test_filters},
         {"what is new", test_changes}, {"the file keeps its size", test_bounded},
         {"more than the writer takes", test_overflow}, {"ids rise over restarts", test_ids_rise},
         {"a file that was deleted is made anew", test_file_made_anew},
         {"two writers", test_two_writers}, {"a full disk", test_full_disk},
         {"no thread to write with", test_no_thread},
         {"a file of somebody else", test_foreign_file}, {"a damaged file", test_damaged_file},
         {"no folder yet", test_no_folder}, {"old attempts go", test_age},
         {"mode auto", test_auto_mode})
