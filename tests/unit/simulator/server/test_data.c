/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_data.c - --data: what is in the file, and what files are refused
 */
#include "simulator/server/data.h"
#include "simulator/server/data_file.h"
#include "tests/unit/simulator/sim_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct box {
    char path[200];
    struct bh_sim_options o;
};

static void box_init(struct box *b, const char *name)
{
    snprintf(b->path, sizeof(b->path), "%s/%s.db", bh_test_tmpdir(), name);
    b->o = (struct bh_sim_options){
        .no_controllers = true, .first_revision = 100, .data_file = b->path};
}

/* Turns the loop until everything is written. */
static void settle(struct fixture *f)
{
    char text[64];
    uint64_t end = bh_mono_ns() + 120000000000u;
    struct bh_buf b = {0};
    for (;;) {
        bh_buf_reset(&b);
        bh_metrics_render(f->s->metrics.m, &b);
        const char *at = strstr(bh_buf_str(&b), "\nberth_simulator_data_waiting ");
        snprintf(text, sizeof(text), "%.30s", at ? at + 30 : "?");
        if (strtod(text, NULL) == 0 || bh_mono_ns() > end)
            break;
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    CU_ASSERT_EQUAL(strtod(text, NULL), 0);
    bh_buf_fini(&b);
}

static double metric(struct fixture *f, const char *name)
{
    struct bh_buf b = {0};
    char line[100];
    bh_metrics_render(f->s->metrics.m, &b);
    snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(bh_buf_str(&b), line);
    double v = at ? strtod(at + strlen(line), NULL) : -1;
    bh_buf_fini(&b);
    return v;
}

static int64_t ask(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    CU_ASSERT_FATAL(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    CU_ASSERT_FATAL(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK);
    int rc = sqlite3_step(st);
    int64_t v = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : -1;
    sqlite3_finalize(st);
    sqlite3_close(db);
    return v;
}

/* ---- what comes back ------------------------------------------------------------------------- */

static void test_a_start_finds_everything(void)
{
    struct box b;
    struct fixture f;
    char uid[40], json[2000];

    box_init(&b, "again");
    fixture_init(&f, &b.o, false);
    CU_ASSERT_EQUAL(create_pod(&f, "stays"), 0);
    CU_ASSERT_EQUAL(create_pod(&f, "goes"), 0);
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "stays", NULL, "n1", NULL, NULL, &f.e), 0);
    settle(&f);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("pods"), "default", "goes",
                                  &(struct bh_sim_delete_options){.grace_s = 0}, &f.e),
                    0);
    const struct bh_sim_obj *o = get(&f, "pods", "default", "stays");
    uint64_t last = bh_sim_revision(f.s);
    size_t services = bh_sim_count(f.s, type_of("services"));
    snprintf(uid, sizeof(uid), "%s", o->uid);
    snprintf(json, sizeof(json), "%s", o->json);
    fixture_fini(&f); /* writes the deletion */

    struct stat st;
    CU_ASSERT(stat(b.path, &st) == 0 && (st.st_mode & 0777) == 0600);
    fixture_init(&f, &b.o, false);
    o = get(&f, "pods", "default", "stays");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT_STRING_EQUAL(o->uid, uid);
    CU_ASSERT_STRING_EQUAL(o->json, json);
    CU_ASSERT_PTR_NULL(get(&f, "pods", "default", "goes"));
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("services")), services);
    /* an orderly end gives nothing away; a watch from before has to list again */
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), last);
    CU_ASSERT_EQUAL(bh_sim_bucket(f.s, type_of("pods"))->evicted_rv, last);
    CU_ASSERT_EQUAL(create_pod(&f, "new"), 0);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), last + 1);
    fixture_fini(&f);
}

/* What a killed process leaves: the file as it is while the server still runs. */
static void copy(const char *from, const char *to)
{
    static const char *const parts[] = {"", "-wal"};
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++) {
        char a[240], c[240], *text = NULL;
        size_t n;
        snprintf(a, sizeof(a), "%s%s", from, parts[i]);
        snprintf(c, sizeof(c), "%s%s", to, parts[i]);
        CU_ASSERT_FATAL(bh_read_file(a, (size_t)1 << 30, &text, &n) == 0);
        CU_ASSERT_FATAL(bh_write_file(c, text, n, 0600) == 0);
        free(text);
    }
}

static void test_no_version_is_used_twice(void)
{
    struct box b, dead;
    struct fixture f;

    box_init(&b, "alive");
    box_init(&dead, "dead");
    fixture_init(&f, &b.o, false);
    CU_ASSERT_EQUAL(create_pod(&f, "written"), 0);
    settle(&f);
    uint64_t written = bh_sim_revision(f.s);
    CU_ASSERT_EQUAL(create_pod(&f, "lost"), 0); /* the loop does not turn any more */
    uint64_t lost = bh_sim_revision(f.s);
    copy(b.path, dead.path);
    fixture_fini(&f);

    fixture_init(&f, &dead.o, false);
    CU_ASSERT_PTR_NOT_NULL(get(&f, "pods", "default", "written"));
    CU_ASSERT_PTR_NULL(get(&f, "pods", "default", "lost"));
    CU_ASSERT(get(&f, "pods", "default", "written")->rv <= written);
    CU_ASSERT(bh_sim_revision(f.s) > lost);
    fixture_fini(&f);
}

static void test_many_changes_of_one_object(void)
{
    struct box b;
    struct fixture f;

    box_init(&b, "many");
    fixture_init(&f, &b.o, false);
    for (int i = 0; i < 300; i++) {
        char text[100];
        snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"c\"},\"data\":{\"i\":\"%d\"}}", i);
        CU_ASSERT_EQUAL(create(&f, "configmaps", "default", text, NULL), 0);
        if (i < 299)
            CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("configmaps"), "default", "c", NULL, &f.e),
                            0);
        if (i % 50 == 0)
            settle(&f);
    }
    settle(&f);
    CU_ASSERT(metric(&f, "berth_simulator_data_batches_total") >= 6);
    fixture_fini(&f);
    CU_ASSERT_EQUAL(ask(b.path, "SELECT count(*) FROM object WHERE resource='configmaps'"), 1);
    CU_ASSERT_EQUAL(ask(b.path, "SELECT json_extract(json,'$.data.i') FROM object "
                                "WHERE resource='configmaps'"),
                    299);
    CU_ASSERT_EQUAL(ask(b.path, "SELECT count(*) FROM object WHERE resource='priorityclasses."
                                "scheduling.k8s.io'"),
                    2);
}

/* ---- files that are refused ------------------------------------------------------------------ */

static void refused(struct box *b, const char *why)
{
    struct bh_sim *s = NULL;
    struct bh_err err = {""};
    uv_loop_t loop;

    uv_loop_init(&loop);
    CU_ASSERT(bh_sim_new_bare(&loop, &b->o, &s, &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, b->path));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, why));
    if (!strstr(err.msg, why))
        fprintf(stderr, "got: %s\n", err.msg);
    bh_loop_drain_close(&loop);
}

static void test_foreign_files(void)
{
    struct box b;
    static char junk[8192];

    box_init(&b, "junk");
    memset(junk, 'x', sizeof(junk));
    CU_ASSERT_FATAL(bh_write_file(b.path, junk, sizeof(junk), 0600) == 0);
    refused(&b, "not a data file of Berth, or damaged");
    box_init(&b, "other");
    CU_ASSERT_EQUAL(bh_write_file(b.path, "", 0, 0600), 0);
    ask(b.path, "CREATE TABLE t(x)");
    refused(&b, "an SQLite file of another program");
    snprintf(b.path, sizeof(b.path), "%s/none/x.db", bh_test_tmpdir());
    refused(&b, "No such file or directory");
}

static void make_file(struct box *b, const char *name)
{
    struct fixture f;
    box_init(b, name);
    fixture_init(&f, &b->o, false);
    for (int i = 0; i < 200; i++) {
        char pod[20];
        snprintf(pod, sizeof(pod), "p%d", i);
        CU_ASSERT_EQUAL(create_pod(&f, pod), 0);
        bh_arena_reset(&f.a);
    }
    fixture_fini(&f);
}

static void test_damaged_files(void)
{
    struct box b;
    struct stat st;
    char noise[4096];

    make_file(&b, "newer");
    ask(b.path, "PRAGMA user_version = 7");
    refused(&b, "schema 7, this one reads 1");
    make_file(&b, "kind");
    ask(b.path, "UPDATE object SET json = replace(json, '\"Pod\"', '\"Pot\"') WHERE name = 'p7'");
    refused(&b, "want an object of a kind that is stored, got v1 Pot");
    make_file(&b, "text");
    ask(b.path, "UPDATE object SET json = substr(json, 1, 50) WHERE name = 'p7'");
    refused(&b, "pods default/p7");
    make_file(&b, "short");
    CU_ASSERT_FATAL(stat(b.path, &st) == 0 && truncate(b.path, st.st_size / 2 & ~4095) == 0);
    refused(&b, "damaged");
    make_file(&b, "page");
    int fd = open(b.path, O_RDWR);
    memset(noise, 0x5a, sizeof(noise));
    CU_ASSERT_EQUAL(pwrite(fd, noise, sizeof(noise), 4096 * 3), sizeof(noise));
    close(fd);
    refused(&b, "damaged");
}

static void test_one_server_a_file(void)
{
    struct box b;
    struct fixture f;

    box_init(&b, "busy");
    fixture_init(&f, &b.o, false);
    refused(&b, "another process has it open");
    fixture_fini(&f);
    fixture_init(&f, &b.o, false); /* free again */
    fixture_fini(&f);
    b.o.history_file = "/nonexistent/x";
    struct bh_sim *s = NULL;
    uv_loop_t loop;
    uv_loop_init(&loop);
    CU_ASSERT(bh_sim_new_bare(&loop, &b.o, &s, NULL) < 0);
    bh_loop_drain_close(&loop);
}

/* Stacks larger than the address space: no thread can be made. */
static void test_no_thread(void)
{
    struct box b;
    struct rlimit former, huge;

    box_init(&b, "thread");
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_STACK, &former), 0);
    huge = (struct rlimit){(rlim_t)1 << 50, former.rlim_max};
    if (setrlimit(RLIMIT_STACK, &huge) < 0)
        return; /* the hard limit is a small one */
    refused(&b, "thread.db: no thread to write it: Resource temporarily unavailable");
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_STACK, &former), 0);
}

/* ---- a full disk ----------------------------------------------------------------------------- */

static void limit_files(rlim_t n)
{
    struct rlimit l;
    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = n;
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_a_full_disk(void)
{
    struct box b;
    struct fixture f;
    uint64_t end = bh_mono_ns() + 120000000000u;
    char big[20000];

    box_init(&b, "full");
    fixture_init(&f, &b.o, false);
    settle(&f);
    signal(SIGXFSZ, SIG_IGN);
    limit_files(4096);
    int n = snprintf(big, sizeof(big), "{\"metadata\":{\"name\":\"big\"},\"data\":{\"x\":\"");
    memset(big + n, 'x', 15000);
    snprintf(big + n + 15000, 10, "\"}}");
    CU_ASSERT_EQUAL(create(&f, "configmaps", "default", big, NULL), 0);
    while (metric(&f, "berth_simulator_data_errors_total") < 1 && bh_mono_ns() < end)
        uv_run(&f.loop, UV_RUN_ONCE);
    CU_ASSERT(metric(&f, "berth_simulator_data_errors_total") >= 1);
    CU_ASSERT_EQUAL(create_pod(&f, "meanwhile"), 0); /* goes on in memory */
    CU_ASSERT_PTR_NOT_NULL(get(&f, "pods", "default", "meanwhile"));
    limit_files(RLIM_INFINITY);
    settle(&f);
    fixture_fini(&f);
    fixture_init(&f, &b.o, false);
    CU_ASSERT_PTR_NOT_NULL(get(&f, "configmaps", "default", "big"));
    CU_ASSERT_PTR_NOT_NULL(get(&f, "pods", "default", "meanwhile"));
    fixture_fini(&f);
}

BH_TESTS("simulator/data", {"a start finds everything", test_a_start_finds_everything},
         {"no version is used twice", test_no_version_is_used_twice},
         {"many changes of one object", test_many_changes_of_one_object},
         {"foreign files are refused", test_foreign_files},
         {"damaged files are refused", test_damaged_files},
         {"one server a file", test_one_server_a_file}, {"a full disk", test_a_full_disk},
         {"no thread to write with", test_no_thread})
