/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/store.c - the file of recorded decisions, opened for reading
 *
 * Every question looks whether the file is still the one that is open: it may have been deleted and
 * made anew.
 */
#include "scheduler/decisions/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "scheduler/decisions/writer.h"

#define BUSY_MS 20

struct bh_decisions *bh_decisions_new(const char *path)
{
    struct bh_decisions *d = bh_calloc(1, sizeof(*d));

    d->path = bh_strdup(path);
    d->lock_path = bh_asprintf("%s-lock", path);
    bh_arena_init(&d->arena, 0);
    return d;
}

static void forget_names(struct bh_decision_names *n)
{
    bh_symtab_free(n->tab);
    free(n->name);
    free(n->by_name);
    *n = (struct bh_decision_names){0};
}

static void forget_attempt(struct bh_decisions *d)
{
    bh_arena_reset(&d->arena);
    d->row = (struct bh_decision_row){0};
    d->has_body = false;
}

static void close_file(struct bh_decisions *d)
{
    sqlite3_close(d->db);
    d->db = NULL;
    forget_attempt(d);
    forget_names(&d->names);
}

void bh_decisions_free(struct bh_decisions *d)
{
    if (!d)
        return;
    close_file(d);
    bh_arena_fini(&d->arena);
    free(d->path);
    free(d->lock_path);
    free(d);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int fail(struct bh_decisions *d, int rc, struct bh_err *err)
{
    const char *why = d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(rc);

    switch (rc & 0xff) {
    case SQLITE_OK:
        return bh_err_set(err, 0, "%s: %s", d->path, why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_SCHEMA:
        return bh_err_set(err, -EAGAIN, "%s: %s", d->path, why);
    case SQLITE_NOTADB:
        return bh_err_set(err, -EINVAL, "%s is not a file of recorded decisions", d->path);
    default:
        return bh_err_set(err, -EIO, "%s: %s", d->path, why);
    }
}

sqlite3_stmt *bh_decisions_ask(struct bh_decisions *d, const char *sql)
{
    sqlite3_stmt *s = NULL;

    (void)sqlite3_prepare_v2(d->db, sql, -1, &s, NULL); /* NULL when it fails */
    return s;
}

static int ask_one(struct bh_decisions *d, const char *sql, int64_t *ret)
{
    sqlite3_stmt *s = bh_decisions_ask(d, sql);
    int rc = s ? sqlite3_step(s) : sqlite3_errcode(d->db);

    *ret = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool somebody_writes(const struct bh_decisions *d)
{
    struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = open(d->lock_path, O_RDONLY | O_CLOEXEC);
    bool yes = fd >= 0 && fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;

    if (fd >= 0)
        close(fd);
    return yes;
}

/* Where we may not write, a log that no process has open cannot be read; then the file is whole. */
static int connect_file(struct bh_decisions *d)
{
    BH_CLEANUP(bh_freep) char *uri = NULL;
    struct bh_buf b = {0};
    int64_t app;
    int rc = sqlite3_open_v2(d->path, &d->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(d->db, BUSY_MS);
        rc = ask_one(d, "PRAGMA application_id", &app);
    }
    if (rc == SQLITE_OK)
        rc = ask_one(d, "SELECT file FROM state", &d->file);
    if ((rc & 0xff) != SQLITE_CANTOPEN || somebody_writes(d))
        return rc;
    sqlite3_close(d->db);
    bh_buf_adds(&b, "file:");
    for (const char *p = d->path; *p; p++)
        bh_buf_addf(&b, strchr("?#%", *p) ? "%%%02x" : "%c", *p);
    bh_buf_adds(&b, "?immutable=1");
    uri = bh_buf_take(&b);
    rc = sqlite3_open_v2(uri, &d->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI,
                         NULL);
    return rc == SQLITE_OK ? ask_one(d, "SELECT file FROM state", &d->file) : rc;
}

static int check_file(struct bh_decisions *d, struct bh_err *err)
{
    int64_t app = 0, version = 0;
    int rc = ask_one(d, "PRAGMA application_id", &app);

    if (rc == SQLITE_OK)
        rc = ask_one(d, "PRAGMA user_version", &version);
    if (rc != SQLITE_OK)
        return fail(d, rc, err);
    if (app != BH_DECISIONS_APPLICATION)
        return fail(d, SQLITE_NOTADB, err);
    if (version != BH_DECISIONS_SCHEMA)
        return bh_err_set(err, -EINVAL, "%s was made by another version of Berth", d->path);
    return 0;
}

static int open_file(struct bh_decisions *d, struct bh_err *err)
{
    struct stat st;
    int rc;

    if (stat(d->path, &st) < 0) {
        rc = -errno;
        close_file(d);
        return bh_err_set(err,
                          rc == -ENOTDIR  ? -ENOENT
                          : rc == -ENOENT ? rc
                                          : -EIO,
                          "%s: %s", d->path, strerror(-rc));
    }
    if (d->db && st.st_dev == d->device && st.st_ino == d->inode)
        return 0;
    close_file(d);
    if (!S_ISREG(st.st_mode))
        return fail(d, SQLITE_NOTADB, err);
    if (!st.st_size) /* being made just now */
        return bh_err_set(err, -ENOENT, "%s: empty", d->path);
    d->device = st.st_dev;
    d->inode = st.st_ino;
    rc = connect_file(d);
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_ERROR)
        rc = fail(d, rc, err);
    else
        rc = check_file(d, err);
    if (rc < 0)
        close_file(d);
    return rc;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *text_at(sqlite3_stmt *s, int i, struct bh_arena *a)
{
    const unsigned char *t = sqlite3_column_text(s, i);

    return t ? bh_arena_strdup(a, (const char *)t) : "";
}

static int read_row(sqlite3_stmt *s, struct bh_arena *a, struct bh_decision_row *ret)
{
    int64_t result = sqlite3_column_int64(s, 3), outcome = sqlite3_column_int64(s, 4);
    const void *head = sqlite3_column_blob(s, 10);
    int n = sqlite3_column_bytes(s, 10);

    if (result < 0 || result > BH_DECISION_ERROR || outcome < 0 || outcome >= BH_N_OUTCOMES ||
        !head)
        return -EIO;
    *ret = (struct bh_decision_row){
        .id = sqlite3_column_int64(s, 0),
        .time_ns = sqlite3_column_int64(s, 1),
        .list = sqlite3_column_int64(s, 2),
        .result = (enum bh_decision_kind)result,
        .outcome = (uint32_t)outcome,
        .namespace_ = text_at(s, 5, a),
        .name = text_at(s, 6, a),
        .uid = text_at(s, 7, a),
        .node = text_at(s, 8, a),
        .outcome_message = text_at(s, 9, a),
    };
    return bh_record_unpack_head(a, head, (size_t)n, &ret->h);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b, void *arg)
{
    const struct bh_decision_names *n = arg;

    return strcmp(bh_sym_text(n->tab, n->name[*(const uint32_t *)a]),
                  bh_sym_text(n->tab, n->name[*(const uint32_t *)b]));
}

static int load_names(struct bh_decisions *d, int64_t list)
{
    struct bh_decision_names *n = &d->names;
    int rc;

    forget_names(n);
    n->tab = bh_symtab_new();
    sqlite3_stmt *s = bh_decisions_ask(d, "SELECT at, name FROM names WHERE list = ?1 ORDER BY at");
    if (!s)
        return sqlite3_errcode(d->db);
    sqlite3_bind_int64(s, 1, list);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && sqlite3_column_int64(s, 0) == n->n) {
        BH_GROW(n->name, n->n, n->cap);
        n->name[n->n++] = bh_sym_internc(n->tab, (const char *)sqlite3_column_text(s, 1));
    }
    sqlite3_finalize(s);
    n->by_name = bh_calloc(n->n + 1, sizeof(*n->by_name));
    for (uint32_t i = 0; i < n->n; i++)
        n->by_name[i] = i;
    if (n->n > 1)
        qsort_r(n->by_name, n->n, sizeof(*n->by_name), by_text, n);
    n->list = list;
    return rc == SQLITE_DONE ? SQLITE_OK : rc == SQLITE_ROW ? SQLITE_CORRUPT : rc;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static int unpack(struct bh_decisions *d, const void *p, size_t n)
{
    struct bh_decision_names *l = &d->names;
    int rc = -EIO;

    for (unsigned tries = 0; tries < 2 && rc < 0; tries++) {
        if ((tries || l->list != d->row.list) && load_names(d, d->row.list) != SQLITE_OK)
            return -EAGAIN;
        struct bh_record_names names = (struct bh_record_names){l->tab, l->name, l->by_name, l->n};
        rc = bh_record_unpack(&d->arena, &names, &d->row.h, p, n, &d->got);
    }
    return rc;
}

static int take_row(struct bh_decisions *d, sqlite3_stmt *s)
{
    return read_row(s, &d->arena, &d->row);
}

static int take_body(struct bh_decisions *d, sqlite3_stmt *s)
{
    BH_CLEANUP(bh_freep) Bytef *plain = NULL;
    const void *p = sqlite3_column_blob(s, 1);
    size_t n = (size_t)sqlite3_column_bytes(s, 1);
    uLongf whole = (uLongf)sqlite3_column_int64(s, 0), len = whole;

    if (!p || whole > BH_RECORD_BODY_MAX) /* p: of no bytes, or no blob */
        return -EIO;
    if (n == whole)
        return unpack(d, p, n);
    plain = bh_malloc(whole + 1);
    if (uncompress(plain, &len, p, n) != Z_OK || len != whole)
        return -EIO;
    return unpack(d, plain, whole);
}

/* none: what to say when there is no such row. */
static int load(struct bh_decisions *d, const char *sql, int64_t id,
                int (*take)(struct bh_decisions *d, sqlite3_stmt *s), const char *none,
                struct bh_err *err)
{
    sqlite3_stmt *s = bh_decisions_ask(d, sql);

    if (!s)
        return fail(d, sqlite3_errcode(d->db), err);
    sqlite3_bind_int64(s, 1, id);
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        rc = take(d, s);
        if (rc < 0)
            bh_err_set(err, rc, "%s: attempt %lld cannot be read", d->path, (long long)id);
    } else {
        rc = rc == SQLITE_DONE ? bh_err_set(err, -ENOENT, none, (long long)id) : fail(d, rc, err);
    }
    sqlite3_finalize(s);
    return rc;
}

int bh_decisions_load(struct bh_decisions *d, int64_t id, struct bh_err *err)
{
    int64_t version = 0;

    if (!d)
        return bh_err_set(err, -ENOENT, "no decisions are recorded");
    int rc = open_file(d, err);
    if (rc < 0)
        return rc;
    (void)ask_one(d, "PRAGMA data_version", &version);
    if (d->row.id == id && d->version == version)
        return 0;
    forget_attempt(d);
    d->version = version;
    rc = load(d, "SELECT " BH_DECISION_COLUMNS " FROM attempts WHERE id = ?1", id, take_row,
              "there is no attempt %lld (any more)", err);
    if (rc == 0 && d->row.list) {
        rc = load(d, "SELECT n, data FROM bodies WHERE id = ?1", id, take_body,
                  "attempt %lld is gone", err);
        d->has_body = rc == 0;
    }
    if (rc < 0)
        forget_attempt(d);
    return rc;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* How many of those that were decided last are so. */
#define NEWEST(what)                                                                               \
    "SELECT count(*) FROM (SELECT list FROM attempts ORDER BY id DESC LIMIT 200) WHERE " what

struct bh_json *bh_decisions_recording(struct bh_decisions *d, struct bh_arena *a)
{
    int64_t dropped = 0, pages = 0, size = 0, newest = 0, oldest = 0, records = 0;
    int64_t full = 0, rest = 0;
    const char *mode = "off";
    sqlite3_stmt *s = d && open_file(d, NULL) == 0
                          ? bh_decisions_ask(d, "SELECT mode, dropped, records FROM state")
                          : NULL;

    if (s && sqlite3_step(s) == SQLITE_ROW) {
        if (somebody_writes(d))
            mode = bh_arena_strdup(a, (const char *)sqlite3_column_text(s, 0));
        dropped = sqlite3_column_int64(s, 1);
        records = sqlite3_column_int64(s, 2);
        (void)ask_one(d, "PRAGMA page_count", &pages);
        (void)ask_one(d, "PRAGMA page_size", &size);
        (void)ask_one(d, "SELECT min(id) FROM attempts", &oldest);
        (void)ask_one(d, "SELECT max(id) FROM attempts", &newest);
        (void)ask_one(d, NEWEST("list > 0"), &full);
        (void)ask_one(d, NEWEST("list = 0"), &rest);
    }
    sqlite3_finalize(s);
    return bh_json_make(
        a,
        "mode: %s, keeps?: %s, records: %ld, bytes: %ld, dropped: %ld, oldest: %ld, "
        "newest: %ld",
        mode,
        !full && !rest ? NULL
        : !rest        ? "full"
        : !full        ? "summary"
                       : "sample",
        records, pages * size, dropped, oldest, newest);
}

static void bind_filter(sqlite3_stmt *s, const struct bh_decision_filter *f, int result,
                        unsigned limit)
{
    const char *const texts[] = {f->namespace_, f->pod, f->uid, f->node};

    sqlite3_bind_int64(s, 1, f->before > 0 ? f->before : INT64_MAX);
    sqlite3_bind_int64(s, 2, limit);
    if (f->namespace_ && f->pod)
        sqlite3_bind_int64(s, 3, bh_decisions_pod_hash(bh_str_c(f->namespace_), bh_str_c(f->pod)));
    for (int i = 0; i < (int)BH_ARRAY_LEN(texts); i++)
        if (texts[i])
            sqlite3_bind_text(s, 4 + i, texts[i], -1, SQLITE_STATIC);
    if (result >= 0)
        sqlite3_bind_int64(s, 8, result);
}

static int list_rows(struct bh_decisions *d, struct bh_arena *a, const struct bh_decision_filter *f,
                     int result, struct bh_json *list, struct bh_err *err)
{
    unsigned limit = BH_MIN(f->limit ? f->limit : BH_DECISIONS_PAGE, BH_DECISIONS_PAGE_MAX);
    sqlite3_stmt *s = bh_decisions_ask(
        d, bh_arena_printf(a,
                           "SELECT " BH_DECISION_COLUMNS
                           " FROM attempts WHERE id < ?1%s%s%s%s%s%s ORDER BY id DESC LIMIT ?2",
                           f->namespace_ && f->pod ? " AND pod = ?3" : "",
                           f->namespace_ ? " AND namespace = ?4" : "",
                           f->pod ? " AND name = ?5" : "", f->uid ? " AND uid = ?6" : "",
                           f->node ? " AND node = ?7 AND node <> ''" : "",
                           result >= 0 ? " AND result = ?8" : ""));
    struct bh_json *items = bh_json_new(a, BH_JSON_ARRAY);
    unsigned n = 0;
    int rc;

    if (!s)
        return fail(d, sqlite3_errcode(d->db), err);
    bind_filter(s, f, result, limit + 1);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW && n < limit) {
        struct bh_decision_row row;
        n++;
        if (read_row(s, a, &row) == 0)
            bh_json_push(items, bh_decisions_summary(a, &row));
    }
    sqlite3_finalize(s);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return fail(d, rc, err);
    bh_json_add(a, list, "items: %p, more: %i", items, rc == SQLITE_ROW);
    return 0;
}

int bh_decisions_list(struct bh_decisions *d, struct bh_arena *a,
                      const struct bh_decision_filter *f, struct bh_json **ret, struct bh_err *err)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_OBJECT);
    int result = f->result ? BH_DECISION_ERROR : -1;
    int rc = d ? open_file(d, err) : -ENOENT;

    *ret = NULL;
    while (result >= 0 && !bh_streq(f->result, bh_record_results[result]))
        result--;
    if (f->result && result < 0)
        return bh_err_set(err, -EINVAL, "result \"%s\": Scheduled, Unschedulable or Error",
                          f->result);
    if (rc == 0)
        rc = list_rows(d, a, f, result, list, err);
    if (rc == -ENOENT) {
        bh_json_add(a, list, "items: [], more: false");
        rc = 0;
    }
    if (rc < 0)
        return rc;
    struct bh_json *recording = bh_decisions_recording(d, a);
    *ret = bh_json_add(a, list, "oldest: %ld, recording: %p",
                       bh_json_get_i64(recording, "oldest", 0), recording);
    return 0;
}

/* ---- what is new ----------------------------------------------------------------------------- */

void bh_decisions_now(struct bh_decisions *d, struct bh_decisions_cursor *c)
{
    *c = (struct bh_decisions_cursor){0};
    if (!d || open_file(d, NULL) < 0)
        return;
    c->file = d->file;
    (void)ask_one(d, "SELECT max(id) FROM attempts", &c->id);
    (void)ask_one(d, "SELECT max(change) FROM changes", &c->change);
}

static int add_changes(struct bh_decisions *d, struct bh_arena *a, const char *sql, int64_t from,
                       int64_t through, unsigned limit, const char *type, struct bh_json *list,
                       int64_t *cursor)
{
    sqlite3_stmt *s = bh_decisions_ask(d, sql);
    int rc;

    if (!s)
        return sqlite3_errcode(d->db);
    sqlite3_bind_int64(s, 1, from);
    sqlite3_bind_int64(s, 2, through);
    sqlite3_bind_int64(s, 3, limit);
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        struct bh_decision_row row;
        *cursor = sqlite3_column_int64(s, 11);
        if (read_row(s, a, &row) < 0)
            continue;
        bh_json_append(a, list, "type: %s, row: %p", type, bh_decisions_summary(a, &row));
    }
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Outcomes first, of attempts that were told before: a new attempt is told as it is now. */
static int changes_of(struct bh_decisions *d, struct bh_arena *a, struct bh_decisions_cursor *c,
                      unsigned limit, struct bh_json *list)
{
    int64_t first = 0, last = 0, of_changes = 0;
    int rc = ask_one(d, "SELECT max(change) FROM changes", &last);

    if (rc == SQLITE_OK)
        rc = ask_one(d, "SELECT min(change) FROM changes", &first);
    if (rc == SQLITE_OK && last != c->change) {
        c->change = c->id ? BH_MAX(c->change, first - 1) : last;
        rc = add_changes(d, a,
                         "SELECT " BH_DECISION_COLUMNS ", change FROM"
                         " (SELECT change, id AS of FROM changes WHERE change > ?1 ORDER BY change"
                         " LIMIT ?3) JOIN attempts ON id = of WHERE id <= ?2 ORDER BY change",
                         c->change, c->id, limit, "MODIFIED", list, &of_changes);
        /* Those of attempts that are gone, or still to be told, count as told. */
        c->change = BH_MIN(last, c->change + limit);
    }
    unsigned left = limit - (unsigned)list->c.n;
    if (rc == SQLITE_OK && left)
        rc = add_changes(d, a,
                         "SELECT " BH_DECISION_COLUMNS
                         ", id FROM attempts WHERE id > ?1 ORDER BY id LIMIT ?3",
                         c->id, 0, left, "ADDED", list, &c->id);
    return rc;
}

int bh_decisions_changes(struct bh_decisions *d, struct bh_arena *a, struct bh_decisions_cursor *c,
                         unsigned limit, struct bh_json **ret, struct bh_err *err)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    struct bh_decisions_cursor next = *c;
    int rc = d ? open_file(d, err) : -ENOENT;

    *ret = NULL;
    if (rc == 0) {
        if (next.file != d->file)
            next = (struct bh_decisions_cursor){.file = d->file};
        rc = sqlite3_exec(d->db, "BEGIN", NULL, NULL, NULL); /* one moment for both */
        if (rc == SQLITE_OK)
            rc = changes_of(d, a, &next, limit ? limit : 500, list);
        (void)sqlite3_exec(d->db, "COMMIT", NULL, NULL, NULL);
        rc = rc == SQLITE_OK ? 0 : fail(d, rc, err);
    }
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc == 0)
        *c = next;
    *ret = list;
    return 0;
}
