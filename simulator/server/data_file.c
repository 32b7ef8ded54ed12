/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/data_file.c - the store as an SQLite file
 */
#include "simulator/server/data_file.h"

#include "common/base/map.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

struct bh_data_file {
    sqlite3 *db;
    sqlite3_stmt *put, *del, *set_limit;
    uint64_t limit;
    char *path;
};

static int errno_of(int sqlite_rc)
{
    switch (sqlite_rc & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EINVAL;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_NOMEM:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

static int fail(struct bh_data_file *f, struct bh_err *err)
{
    int rc = errno_of(sqlite3_errcode(f->db));
    int sys = sqlite3_system_errno(f->db);
    const char *why = sqlite3_errmsg(f->db);

    if (rc == -EBUSY)
        return bh_err_set(err, rc, "data file %s: another process has it open", f->path);
    if (rc == -EINVAL)
        return bh_err_set(err, rc, "data file %s: %s: not a data file of Berth, or damaged",
                          f->path, why);
    if (rc == -EIO && sys)
        return bh_err_set(err, -sys, "data file %s: %s: %s", f->path, why, strerror(sys));
    return bh_err_set(err, rc, "data file %s: %s", f->path, why);
}

static int run(struct bh_data_file *f, const char *sql, struct bh_err *err)
{
    return sqlite3_exec(f->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(f, err);
}

/* The first column of the first row of a query. */
static int ask(struct bh_data_file *f, const char *sql, int64_t *ret, struct bh_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(f->db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail(f, err);
    sqlite3_finalize(st);
    return rc;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* quick_check says "ok", or what is wrong in its first row. */
static int check_pages(struct bh_data_file *f, struct bh_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(f->db, "PRAGMA quick_check(1)", -1, &st, NULL);

    rc = rc == SQLITE_OK ? sqlite3_step(st) : rc;
    if (rc != SQLITE_ROW)
        rc = fail(f, err);
    else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0)
        rc = bh_err_set(err, -EINVAL, "data file %s: damaged: %s", f->path,
                        (const char *)sqlite3_column_text(st, 0));
    else
        rc = 0;
    sqlite3_finalize(st);
    return rc;
}

/* *ret_new: nothing is in it yet. */
static int check_kind(struct bh_data_file *f, bool *ret_new, struct bh_err *err)
{
    int64_t app = 0, schema = 0, tables = 0;
    int rc = ask(f, "PRAGMA application_id", &app, err);

    if (rc == 0)
        rc = ask(f, "PRAGMA user_version", &schema, err);
    if (rc == 0)
        rc = ask(f, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (rc < 0)
        return rc;
    *ret_new = !app && !schema && !tables;
    if (*ret_new)
        return 0;
    if (app != BH_DATA_APP_ID)
        return bh_err_set(err, -EINVAL, "data file %s: an SQLite file of another program", f->path);
    if (schema != BH_DATA_SCHEMA)
        return bh_err_set(err, -EINVAL,
                          "data file %s: written by another version of Berth (schema %lld, this "
                          "one reads %d)",
                          f->path, (long long)schema, BH_DATA_SCHEMA);
    return check_pages(f, err);
}

static int make_tables(struct bh_data_file *f, struct bh_err *err)
{
    char sql[600];

    snprintf(sql, sizeof(sql),
             "BEGIN;"
             "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL);"
             "INSERT INTO meta VALUES('rv_limit', 0);"
             "CREATE TABLE object(resource TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,"
             " rv INTEGER NOT NULL, json TEXT NOT NULL, UNIQUE(resource, ns, name));"
             "PRAGMA application_id = %d;"
             "PRAGMA user_version = %d;"
             "COMMIT;",
             BH_DATA_APP_ID, BH_DATA_SCHEMA);
    return run(f, sql, err);
}

static int prepare(struct bh_data_file *f, struct bh_err *err)
{
    static const char put[] =
        "INSERT INTO object(resource, ns, name, rv, json) VALUES(?,?,?,?,?)"
        " ON CONFLICT(resource, ns, name) DO UPDATE SET rv = excluded.rv, json = excluded.json";
    static const char del[] = "DELETE FROM object WHERE resource = ? AND ns = ? AND name = ?";
    static const char limit[] = "UPDATE meta SET value = ? WHERE key = 'rv_limit'";

    if (sqlite3_prepare_v2(f->db, put, -1, &f->put, NULL) ||
        sqlite3_prepare_v2(f->db, del, -1, &f->del, NULL) ||
        sqlite3_prepare_v2(f->db, limit, -1, &f->set_limit, NULL))
        return fail(f, err);
    return 0;
}

/* Takes the lock: with locking_mode EXCLUSIVE the first write keeps it until the end. */
static int open_db(struct bh_data_file *f, bool full, struct bh_err *err)
{
    int64_t limit = 0;
    bool fresh = false;
    int fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return bh_err_set(err, -errno, "data file %s: %s", f->path, strerror(errno));
    close(fd);
    if (sqlite3_open_v2(f->path, &f->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL))
        return fail(f, err);
    sqlite3_extended_result_codes(f->db, 1);
    int rc = run(f, "PRAGMA locking_mode = EXCLUSIVE", err);
    if (rc == 0)
        rc = run(f, "BEGIN EXCLUSIVE; COMMIT", err);
    if (rc == 0)
        rc = check_kind(f, &fresh, err);
    if (rc == 0)
        rc = run(f, "PRAGMA journal_mode = WAL", err);
    if (rc == 0)
        rc = run(f, full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", err);
    if (rc == 0 && fresh)
        rc = make_tables(f, err);
    if (rc == 0)
        rc = ask(f, "SELECT value FROM meta WHERE key = 'rv_limit'", &limit, err);
    f->limit = (uint64_t)BH_MAX(limit, 0);
    return rc < 0 ? rc : prepare(f, err);
}

int bh_data_file_open(const char *path, bool full, struct bh_data_file **ret, struct bh_err *err)
{
    struct bh_data_file *f = bh_calloc(1, sizeof(*f));

    f->path = bh_strdup(path);
    int rc = open_db(f, full, err);
    if (rc < 0) {
        bh_data_file_close(f);
        return rc;
    }
    *ret = f;
    return 0;
}

void bh_data_file_close(struct bh_data_file *f)
{
    if (!f)
        return;
    sqlite3_finalize(f->put);
    sqlite3_finalize(f->del);
    sqlite3_finalize(f->set_limit);
    sqlite3_close(f->db); /* the WAL goes into the file */
    free(f->path);
    free(f);
}

uint64_t bh_data_file_limit(const struct bh_data_file *f)
{
    return f->limit;
}

/* ---- rows ------------------------------------------------------------------------------------ */

int bh_data_file_load(struct bh_data_file *f, bh_data_row_fn *fn, void *arg, struct bh_err *err)
{
    static const char all[] =
        "SELECT resource, ns, name, rv, json FROM object"
        " ORDER BY resource = 'customresourcedefinitions.apiextensions.k8s.io' DESC, rowid";
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(f->db, all, -1, &st, NULL), done = 0;

    while (done == 0 && (rc == SQLITE_OK || rc == SQLITE_ROW)) {
        rc = sqlite3_step(st);
        if (rc != SQLITE_ROW)
            break;
        done = fn(arg, (const char *)sqlite3_column_text(st, 4),
                  (size_t)sqlite3_column_bytes(st, 4), (uint64_t)sqlite3_column_int64(st, 3), err);
        if (done < 0)
            bh_err_prefix(err, done, "data file %s: %s %s/%s", f->path,
                          (const char *)sqlite3_column_text(st, 0),
                          (const char *)sqlite3_column_text(st, 1),
                          (const char *)sqlite3_column_text(st, 2));
    }
    if (done == 0 && rc != SQLITE_DONE)
        done = fail(f, err);
    sqlite3_finalize(st);
    return done;
}

static void bind_text(sqlite3_stmt *st, int i, const char *s, size_t n)
{
    sqlite3_bind_text(st, i, s, (int)n, SQLITE_STATIC);
}

static int change(struct bh_data_file *f, const struct bh_data_change *c)
{
    const struct bh_sim_type *t = c->obj->type;
    sqlite3_stmt *st = c->gone ? f->del : f->put;
    char resource[200];
    int n =
        snprintf(resource, sizeof(resource), "%s%s%s", t->plural, *t->group ? "." : "", t->group);

    bind_text(st, 1, resource, (size_t)n);
    bind_text(st, 2, c->obj->ns, strlen(c->obj->ns));
    bind_text(st, 3, c->obj->name, strlen(c->obj->name));
    if (!c->gone) {
        sqlite3_bind_int64(st, 4, (int64_t)c->obj->rv);
        bind_text(st, 5, c->obj->json, c->obj->json_n);
    }
    int rc = sqlite3_step(st);
    sqlite3_reset(st);
    return rc;
}

/* Of several changes of one object only the last counts: *ret_skip gets a flag for each of v. */
static void find_repeats(const struct bh_data_change *v, size_t n, bool **ret_skip)
{
    struct bh_map seen = {0};
    bool *skip = bh_calloc(n + 1, sizeof(*skip));
    char key[600];

    for (size_t i = n; i-- > 0;) {
        const struct bh_sim_obj *o = v[i].obj;
        int k = snprintf(key, sizeof(key), "%p/%s/%s", (const void *)o->type, o->ns, o->name);
        skip[i] = bh_map_get(&seen, key, (size_t)k) != NULL;
        if (!skip[i])
            bh_map_put(&seen, key, (size_t)k, skip);
    }
    bh_map_fini(&seen);
    *ret_skip = skip;
}

int bh_data_file_write(struct bh_data_file *f, const struct bh_data_change *v, size_t n,
                       uint64_t limit, struct bh_err *err)
{
    int rc = run(f, "BEGIN IMMEDIATE", err), step = SQLITE_DONE;
    bool *skip;

    if (rc < 0)
        return rc;
    find_repeats(v, n, &skip);
    for (size_t i = 0; i < n && step == SQLITE_DONE; i++) {
        if (!skip[i])
            step = change(f, &v[i]);
    }
    free(skip);
    if (step == SQLITE_DONE && limit != f->limit) {
        sqlite3_bind_int64(f->set_limit, 1, (int64_t)limit);
        step = sqlite3_step(f->set_limit);
        sqlite3_reset(f->set_limit);
    }
    rc = step == SQLITE_DONE ? run(f, "COMMIT", err) : fail(f, err);
    if (rc < 0)
        sqlite3_exec(f->db, "ROLLBACK", NULL, NULL, NULL);
    else
        f->limit = limit;
    return rc;
}
