/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_decisions.c - a file of recorded decisions in which anything may stand
 *
 * Input: {u8 flags, u16 size of the head, u16 size of the names}, the head, the names (a line
 * each), the body: an attempt's row (scheduler/decisions/record.h). Flags: bits 0-1 result, 2-3
 * outcome, 4 a name that is none, 5 texts that are none, 6 the body is packed. Every question about
 * it is answered, or refused with a text.
 */
#include "common/data/json.h"
#include "scheduler/decisions/decisions.h"
#include "scheduler/decisions/recorder.h"

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char dir[] = "/tmp/berth-fuzz-decisions-XXXXXX";
static sqlite3 *db;
static struct bh_decisions *reader;
static int64_t id;

static void leave(void)
{
    static const char *const names[] = {"d.db", "d.db-lock", "d.db-wal", "d.db-shm", ""};

    bh_decisions_free(reader);
    sqlite3_close(db);
    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", dir, names[i]);
        if (unlink(path) < 0)
            (void)rmdir(path);
    }
}

/* The tables are the recorder's own. */
static void ensure_file(void)
{
    if (db)
        return;
    bh_assert(mkdtemp(dir));
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/d.db", dir);
    const struct bh_recorder_options o = {.mode = BH_RECORD_SUMMARY, .path = path};
    struct bh_recorder *r = bh_recorder_new(&o);
    while (access(path, F_OK) < 0)
        usleep(1000); /* its thread makes it */
    bh_recorder_free(r);
    bh_assert(sqlite3_open(path, &db) == SQLITE_OK);
    bh_assert(sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL) == SQLITE_OK);
    reader = bh_decisions_new(path);
    atexit(leave);
}

static void write_row(const char *sql, const char *form, ...)
{
    sqlite3_stmt *s = NULL;
    va_list ap;

    bh_assert(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK);
    va_start(ap, form);
    for (int i = 1; form[i - 1]; i++) {
        if (form[i - 1] == 'i') {
            sqlite3_bind_int64(s, i, va_arg(ap, int64_t));
        } else if (form[i - 1] == 's') {
            sqlite3_bind_text(s, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
        } else {
            const void *p = va_arg(ap, const void *);
            sqlite3_bind_blob(s, i, p, va_arg(ap, int), SQLITE_TRANSIENT);
        }
    }
    va_end(ap);
    bh_assert(sqlite3_step(s) == SQLITE_DONE);
    sqlite3_finalize(s);
}

static void write_names(char *text, bool none)
{
    int64_t at = 0;

    for (char *line, *rest = text; (line = strsep(&rest, "\n")); at++)
        write_row("INSERT INTO names VALUES(?1,?2,?3)", "iis", id, at,
                  none && at == 1 ? NULL : line);
}

static void write_body(const uint8_t *p, size_t n, bool packed)
{
    uLongf len = compressBound(n);
    BH_CLEANUP(bh_freep) Bytef *small = bh_malloc(len);

    if (packed)
        bh_assert(compress(small, &len, p, n) == Z_OK);
    write_row("INSERT INTO bodies VALUES(?1,?2,?3)", "iib", id, (int64_t)n,
              packed ? (const void *)small : p, packed ? (int)len : (int)n);
}

static void judge(int rc, struct bh_json **v, struct bh_err *err)
{
    struct bh_buf b = {0};

    bh_assert(rc == 0 ? *v != NULL : *err->msg);
    if (rc == 0)
        bh_json_write(&b, *v);
    bh_buf_fini(&b);
    err->msg[0] = '\0';
}

static void ask_about_nodes(struct bh_arena *a)
{
    static const struct bh_decision_nodes_query q[] = {{.sort = "total"},
                                                       {.sort = "name", .q = "n"},
                                                       {.sort = "NodeResourcesFit", .offset = 1},
                                                       {.status = "rejected"},
                                                       {.status = "excluded"},
                                                       {.status = "not-evaluated", .limit = 2}};
    struct bh_err err = {""};
    struct bh_json *v = NULL;

    for (size_t i = 0; i < BH_ARRAY_LEN(q); i++)
        judge(bh_decisions_nodes(reader, a, id, &q[i], &v, &err), &v, &err);
    judge(bh_decisions_node(reader, a, id, "node-0", &v, &err), &v, &err);
}

static void ask(void)
{
    static const struct bh_decision_filter f = {.limit = 3};
    static const struct bh_annotations_query q = {.max_bytes = 4096};
    struct bh_decisions_cursor c = {0};
    struct bh_err err = {""};
    struct bh_json *v = NULL;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    judge(bh_decisions_list(reader, &a, &f, &v, &err), &v, &err);
    judge(bh_decisions_changes(reader, &a, &c, 10, &v, &err), &v, &err);
    judge(bh_decisions_get(reader, &a, id, &v, &err), &v, &err);
    ask_about_nodes(&a);
    judge(bh_decisions_explanation(reader, &a, id, &v, &err), &v, &err);
    judge(bh_decisions_annotations(reader, &a, id, &q, &v, &err), &v, &err);
    bh_arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "default";

    if (n < 5)
        return 0;
    ensure_file();
    size_t head_n = BH_MIN((size_t)(data[1] | data[2] << 8), n - 5);
    size_t names_n = BH_MIN((size_t)(data[3] | data[4] << 8), n - 5 - head_n);
    const uint8_t *p = data + 5;
    const char *t = data[0] & 32 ? NULL : text;
    BH_CLEANUP(bh_freep) char *names = bh_strndup((const char *)p + head_n, names_n);

    id++; /* the attempt's, and its list of names */
    bh_assert(!sqlite3_exec(db,
                            "BEGIN; DELETE FROM attempts; DELETE FROM bodies; DELETE FROM names",
                            NULL, NULL, NULL));
    write_row("INSERT INTO attempts VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)", "iiiiiisssssb",
              id, INT64_C(1), INT64_C(1), (int64_t)(data[0] & 3), (int64_t)(data[0] >> 2 & 3), id,
              t, t, t, t, t, p, (int)head_n);
    write_names(names, data[0] & 16);
    write_body(p + head_n + names_n, n - 5 - head_n - names_n, data[0] & 64);
    bh_assert(!sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
    ask();
    return 0;
}
