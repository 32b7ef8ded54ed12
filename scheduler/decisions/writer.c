/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/writer.c - attempts into the file, oldest ones out of it
 *
 * Runs in: the recorder's thread. Everything that goes wrong here costs records, never more.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "common/base/log.h"
#include "scheduler/decisions/writer.h"

#define RETRY_NS      UINT64_C(5000000000)
#define LOOK_NS       UINT64_C(1000000000) /* is the file still that file? */
#define AGE_NS        UINT64_C(10000000000)
#define COMPLAIN_NS   UINT64_C(60000000000)
#define RELIEF_NS     UINT64_C(10000000000)
#define WORTH_PACKING 128u
#define PAGE_BYTES    4096

static const char schema[] =
    "CREATE TABLE state(one INTEGER PRIMARY KEY CHECK(one = 1), mode TEXT, dropped INTEGER,"
    " records INTEGER, last INTEGER, file INTEGER);"
    "CREATE TABLE attempts(id INTEGER PRIMARY KEY, time INTEGER, pod INTEGER, result INTEGER,"
    " outcome INTEGER, list INTEGER, namespace TEXT, name TEXT, uid TEXT, node TEXT,"
    " outcome_message TEXT, head BLOB);"
    "CREATE INDEX attempts_pod ON attempts(pod);"
    "CREATE TABLE bodies(id INTEGER PRIMARY KEY, n INTEGER, data BLOB);"
    "CREATE TABLE names(list INTEGER, at INTEGER, name TEXT, PRIMARY KEY(list, at)) WITHOUT ROWID;"
    "CREATE TABLE changes(change INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER);";

/* ---- trouble --------------------------------------------------------------------------------- */

/* One line when it begins, at most one in a minute, and one when it has been over for a while: a
 * full disk lets a small write through now and then. */
static void complain(struct bh_writer *w, const char *what)
{
    uint64_t now = bh_mono_ns();

    w->failed_ns = now;
    if (w->complained || (w->complained_ns && now - w->complained_ns < COMPLAIN_NS))
        return;
    bh_log_error("Decisions are not recorded", bh_kv_s("file", w->path), bh_kv_s("err", what));
    w->complained = true;
    w->complained_ns = now;
}

static void close_file(struct bh_writer *w)
{
    sqlite3_stmt **all[] = {&w->attempt, &w->body, &w->name, &w->outcome, &w->change, &w->state};

    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++) {
        sqlite3_finalize(*all[i]);
        *all[i] = NULL;
    }
    sqlite3_close(w->db);
    w->db = NULL;
    if (w->lock >= 0)
        close(w->lock);
    w->lock = -1;
}

static int64_t ask(struct bh_writer *w, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t v = -1;

    if (sqlite3_prepare_v2(w->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        v = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return v;
}

/* 0: there are none, or no answer. */
static uint64_t ask_count(struct bh_writer *w, const char *sql)
{
    return (uint64_t)BH_MAX(ask(w, sql), (int64_t)0);
}

static int do_sql(struct bh_writer *w, const char *sql)
{
    return sqlite3_exec(w->db, sql, NULL, NULL, NULL);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* -EAGAIN: another process writes it. */
static int take_lock(struct bh_writer *w)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    w->lock = open(w->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660);
    if (w->lock < 0)
        return -errno;
    return fcntl(w->lock, F_OFD_SETLK, &l) < 0 ? -EAGAIN : 0;
}

/* An empty file becomes ours; one that is not ours is left alone. */
static int make_tables(struct bh_writer *w, const char **why)
{
    int64_t app = ask(w, "PRAGMA application_id"), version = ask(w, "PRAGMA user_version");

    if (app == BH_DECISIONS_APPLICATION && version == BH_DECISIONS_SCHEMA)
        return SQLITE_OK;
    if (app < 0)
        return sqlite3_errcode(w->db);
    *why = app == BH_DECISIONS_APPLICATION
               ? "the file was made by another version of Berth: move it away"
               : "the file is not one of berth-scheduler";
    if (app || ask(w, "SELECT count(*) FROM sqlite_schema") != 0)
        return SQLITE_MISMATCH;
    *why = NULL;
    BH_CLEANUP(bh_freep)
    char *first = bh_asprintf(
        "BEGIN IMMEDIATE; %s INSERT INTO state VALUES(1, 'off', 0, 0, 0, %lld);"
        "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
        schema, (long long)(bh_rand_entropy() >> 2), BH_DECISIONS_APPLICATION, BH_DECISIONS_SCHEMA);
    return do_sql(w, first);
}

static int set_up(struct bh_writer *w, const char **why)
{
    static const char *const sql[] = {
        "INSERT INTO attempts VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
        "INSERT INTO bodies VALUES(?1,?2,?3)", "INSERT OR REPLACE INTO names VALUES(?1,?2,?3)",
        /* bound is bound: a later deletion of the pod changes nothing about the attempt */
        "UPDATE attempts SET outcome = ?2, outcome_message = ?3 WHERE id = ?1 AND outcome <> 2",
        "INSERT INTO changes(id) VALUES(?1)",
        "UPDATE state SET mode = ?1, dropped = ?2, last = max(last, ?3), records = ?4"};
    sqlite3_stmt **to[] = {&w->attempt, &w->body, &w->name, &w->outcome, &w->change, &w->state};
    BH_CLEANUP(bh_freep)
    char *limits = bh_asprintf("PRAGMA max_page_count = %lld; PRAGMA journal_size_limit = %d",
                               (long long)(w->o.max_bytes / PAGE_BYTES), 4 << 20);

    sqlite3_busy_timeout(w->db, 2000);
    int rc = do_sql(w, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL");
    if (rc == SQLITE_OK)
        rc = make_tables(w, why);
    if (rc == SQLITE_OK)
        rc = do_sql(w, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                       "PRAGMA cache_size = -8192; PRAGMA secure_delete = OFF;"
                       "PRAGMA wal_autocheckpoint = 4000");
    if (rc == SQLITE_OK) /* which older ones of ours have: it cost a third of the writing */
        rc = do_sql(w, "DROP INDEX IF EXISTS attempts_node");
    if (rc == SQLITE_OK)
        rc = do_sql(w, limits);
    for (size_t i = 0; i < BH_ARRAY_LEN(sql) && rc == SQLITE_OK; i++)
        rc = sqlite3_prepare_v3(w->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, to[i], NULL);
    return rc;
}

/* One of ours that is damaged must not stop the recording for ever. */
static void move_away(struct bh_writer *w)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < BH_ARRAY_LEN(ends); i++) {
        BH_CLEANUP(bh_freep) char *from = bh_asprintf("%s%s", w->path, ends[i]);
        BH_CLEANUP(bh_freep) char *to = bh_asprintf("%s.bad%s", w->path, ends[i]);
        if (rename(from, to) < 0)
            (void)unlink(to);
    }
    bh_log_warn("The file of recorded decisions is damaged; it was moved away and a new one is "
                "made",
                bh_kv_s("file", w->path));
}

static bool ours(const char *path)
{
    unsigned char head[72];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);

    if (fd >= 0)
        close(fd);
    return n == sizeof(head) && head[68] == (BH_DECISIONS_APPLICATION >> 24) &&
           head[69] == (BH_DECISIONS_APPLICATION >> 16 & 0xff) &&
           head[70] == (BH_DECISIONS_APPLICATION >> 8 & 0xff) &&
           head[71] == (BH_DECISIONS_APPLICATION & 0xff);
}

static bool is_damage(int rc)
{
    return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
}

static void open_file(struct bh_writer *w)
{
    const char *why = NULL;
    int rc;

    w->tried_ns = bh_mono_ns();
    rc = take_lock(w);
    if (rc < 0) {
        complain(w, rc == -EAGAIN ? "another scheduler writes to this file" : strerror(-rc));
        close_file(w);
        return;
    }
    /* It says where everything runs: not for all users. The log beside it gets the same rights. */
    int fd = open(w->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd >= 0)
        close(fd);
    rc = sqlite3_open_v2(w->path, &w->db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                             SQLITE_OPEN_NOFOLLOW,
                         NULL);
    if (rc == SQLITE_OK)
        rc = set_up(w, &why);
    if (rc == SQLITE_OK) {
        /* Where numbers begin in this file: ids and lists go on rising. */
        int64_t last = ask(w, "SELECT last FROM state"),
                max = ask(w, "SELECT max(id) FROM attempts");
        last = BH_MAX(BH_MAX(last, max), 0);
        if (w->base + w->last_number < (uint64_t)last)
            w->base = (uint64_t)last - w->last_number;
        w->list_base = (uint32_t)ask_count(w, "SELECT max(list) FROM names");
        w->names.written = 0;
        w->names.written_at = 0;
        w->told_mode = false;
        w->rows = ask_count(w, "SELECT count(*) FROM attempts");
        if (ask(w, "PRAGMA page_count") * PAGE_BYTES > w->o.max_bytes)
            (void)do_sql(w, "PRAGMA incremental_vacuum");
        struct stat st = {0};
        if (stat(w->path, &st) == 0) {
            w->device = st.st_dev;
            w->inode = st.st_ino;
        }
        return;
    }
    if (!why)
        why = w->db ? sqlite3_errmsg(w->db) : sqlite3_errstr(rc);
    complain(w, why);
    close_file(w);
    if (is_damage(rc) && ours(w->path)) {
        move_away(w);
        w->tried_ns = 0;
    }
}

static bool is_open(struct bh_writer *w)
{
    uint64_t now = bh_mono_ns();
    struct stat st;

    if (w->db && now - w->looked_ns >= LOOK_NS) {
        w->looked_ns = now;
        if (stat(w->path, &st) < 0 || st.st_dev != w->device || st.st_ino != w->inode) {
            /* Deleted or replaced: what is written into the nameless one cannot be read. */
            close_file(w);
            w->tried_ns = 0;
        }
    }
    if (!w->db && (!w->tried_ns || bh_mono_ns() - w->tried_ns >= RETRY_NS))
        open_file(w);
    return w->db != NULL;
}

/* ---- one message ----------------------------------------------------------------------------- */

static int step(sqlite3_stmt *s)
{
    int rc = sqlite3_step(s);

    sqlite3_reset(s);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_names(struct bh_writer *w)
{
    struct bh_writer_names *n = &w->names;
    int rc = SQLITE_OK;

    for (; n->written < n->n && rc == SQLITE_OK; n->written++) {
        const char *name = n->text.p + n->written_at;
        size_t len = strlen(name);
        sqlite3_bind_int64(w->name, 1, (int64_t)w->list_base + n->list);
        sqlite3_bind_int64(w->name, 2, n->written);
        sqlite3_bind_text(w->name, 3, name, (int)len, SQLITE_STATIC);
        rc = step(w->name);
        n->written_at += len + 1;
    }
    return rc;
}

/* The new names of a message, for us; they may have to be written more than once. */
static int learn_names(struct bh_writer *w, const struct bh_message *m, const char *text)
{
    int rc = SQLITE_OK;

    if (m->list != w->names.list) {
        if (w->db)
            rc = write_names(w);
        w->names.list = m->list;
        w->names.n = w->names.written = 0;
        w->names.written_at = 0;
        bh_buf_reset(&w->names.text);
    }
    w->names.n += m->n_names;
    bh_buf_add(&w->names.text, text, m->n_names_text);
    return rc;
}

static const char *deflated(struct bh_writer *w, const char *p, size_t n, size_t *ret_n)
{
    z_stream *z = w->z;

    *ret_n = n;
    if (n < WORTH_PACKING || !z || deflateReset(z) != Z_OK)
        return p;
    bh_buf_reset(&w->packed);
    bh_buf_reserve(&w->packed, n);
    z->next_in = (Bytef *)(uintptr_t)p;
    z->avail_in = (uInt)n;
    z->next_out = (Bytef *)w->packed.p;
    z->avail_out = (uInt)n;
    if (deflate(z, Z_FINISH) != Z_STREAM_END)
        return p; /* it got larger */
    *ret_n = n - z->avail_out;
    return w->packed.p;
}

static void bind_part(sqlite3_stmt *s, int i, const char **p, uint32_t n)
{
    sqlite3_bind_text(s, i, *p, (int)n, SQLITE_STATIC);
    *p += n;
}

/* What became of an attempt of the batch goes into its row at once, instead of a second walk to it. */
static int note_outcome(struct bh_writer *w, const struct bh_message *m, const char *p)
{
    struct bh_message former;
    uint64_t at;

    if (m->kind != BH_MESSAGE_OUTCOME || m->number <= w->last_number)
        return SQLITE_OK;
    if (bh_umap_get(&w->late, m->number, &at)) {
        memcpy(&former, w->batch + at, sizeof(former));
        if (former.outcome == BH_OUTCOME_BOUND)
            return SQLITE_OK;
    }
    bh_umap_put(&w->late, m->number, (uint64_t)(p - w->batch) - sizeof(*m));
    return SQLITE_OK;
}

static int write_attempt(struct bh_writer *w, const struct bh_message *m, const char *p)
{
    int64_t id = (int64_t)(w->base + m->number);
    const char *ns = p, *text = p + m->n_namespace + m->n_name + m->n_uid + m->n_node;
    struct bh_message last = *m; /* word of its outcome */
    uint64_t at;

    if (m->outcome != BH_OUTCOME_BOUND && bh_umap_get(&w->late, m->number, &at)) {
        memcpy(&last, w->batch + at, sizeof(last));
        text = w->batch + at + sizeof(last);
    }

    sqlite3_bind_int64(w->attempt, 1, id);
    sqlite3_bind_int64(w->attempt, 2, m->time_ns);
    sqlite3_bind_int64(w->attempt, 3,
                       bh_decisions_pod_hash((struct bh_str){ns, m->n_namespace},
                                             (struct bh_str){ns + m->n_namespace, m->n_name}));
    sqlite3_bind_int64(w->attempt, 4, m->result);
    sqlite3_bind_int64(w->attempt, 5, last.outcome);
    sqlite3_bind_int64(w->attempt, 6, m->n_body ? (int64_t)w->list_base + m->list : 0);
    bind_part(w->attempt, 7, &p, m->n_namespace);
    bind_part(w->attempt, 8, &p, m->n_name);
    bind_part(w->attempt, 9, &p, m->n_uid);
    bind_part(w->attempt, 10, &p, m->n_node);
    bind_part(w->attempt, 11, &text, last.n_outcome);
    p += m->n_outcome;
    sqlite3_bind_blob(w->attempt, 12, p, (int)m->n_head, SQLITE_STATIC);
    int rc = step(w->attempt);
    if (rc != SQLITE_OK || !m->n_body)
        return rc;
    size_t packed;
    const char *data = deflated(w, p + m->n_head, m->n_body, &packed);
    sqlite3_bind_int64(w->body, 1, id);
    sqlite3_bind_int64(w->body, 2, m->n_body);
    sqlite3_bind_blob(w->body, 3, data, (int)packed, SQLITE_STATIC);
    return step(w->body);
}

/* A poller that sees the attempt for the first time after this transaction needs no change. */
static int write_outcome(struct bh_writer *w, const struct bh_message *m, const char *p)
{
    int64_t id = (int64_t)(w->base + m->number);

    if (m->number >= w->batch_first)
        return SQLITE_OK;
    sqlite3_bind_int64(w->outcome, 1, id);
    sqlite3_bind_int64(w->outcome, 2, m->outcome);
    sqlite3_bind_text(w->outcome, 3, p, (int)m->n_outcome, SQLITE_STATIC);
    int rc = step(w->outcome);
    if (rc != SQLITE_OK || !sqlite3_changes(w->db))
        return rc;
    sqlite3_bind_int64(w->change, 1, id);
    return step(w->change);
}

/* ---- old attempts ---------------------------------------------------------------------------- */

static int64_t used_bytes(struct bh_writer *w)
{
    return (ask(w, "PRAGMA page_count") - ask(w, "PRAGMA freelist_count")) * PAGE_BYTES;
}

static int drop_through(struct bh_writer *w, int64_t id)
{
    BH_CLEANUP(bh_freep)
    char *sql = bh_asprintf("BEGIN; DELETE FROM attempts WHERE id <= %lld;"
                            "DELETE FROM bodies WHERE id <= %lld;"
                            "DELETE FROM names WHERE list < (SELECT list FROM attempts "
                            "WHERE list > 0 ORDER BY id LIMIT 1); COMMIT",
                            (long long)id, (long long)id);
    int rc = do_sql(w, sql);

    if (rc != SQLITE_OK)
        (void)do_sql(w, "ROLLBACK");
    return rc;
}

/* The oldest attempts, a fiftieth of all, but no fewer than 16. */
static bool drop_oldest(struct bh_writer *w)
{
    uint64_t n = BH_MAX(w->rows / 50, 16u);
    BH_CLEANUP(bh_freep)
    char *sql = bh_asprintf("SELECT max(id) FROM (SELECT id FROM attempts ORDER BY id LIMIT %llu)",
                            (unsigned long long)n);
    int64_t id = ask(w, sql);

    if (id <= 0 || drop_through(w, id) != SQLITE_OK)
        return false;
    w->rows -= BH_MIN(w->rows, n);
    return true;
}

static void keep_age(struct bh_writer *w)
{
    uint64_t now = bh_mono_ns();

    if (now - w->aged_ns < AGE_NS && w->aged_ns)
        return;
    w->aged_ns = now;
    (void)do_sql(w,
                 "DELETE FROM changes WHERE change <= (SELECT max(change) FROM changes) - 20000");
    if (w->o.max_age_ns <= 0)
        return;
    /* Times rise with ids, but for a clock that is set back: then some go later. */
    BH_CLEANUP(bh_freep)
    char *sql = bh_asprintf("SELECT min(id) FROM attempts WHERE time >= %lld",
                            (long long)(bh_wall_ns() - w->o.max_age_ns));
    int64_t id = ask(w, sql);
    if (id <= 0)
        id = ask(w, "SELECT max(id) + 1 FROM attempts");
    if (id > 1 && drop_through(w, id - 1) == SQLITE_OK)
        w->rows = ask_count(w, "SELECT count(*) FROM attempts");
}

/* ---- batches --------------------------------------------------------------------------------- */

typedef int message_fn(struct bh_writer *w, const struct bh_message *m, const char *p);

static int each_message(struct bh_writer *w, const struct bh_buf *b, message_fn *fn)
{
    int rc = SQLITE_OK;

    for (size_t at = 0; at < b->n && rc == SQLITE_OK;) {
        struct bh_message m;
        memcpy(&m, b->p + at, sizeof(m));
        rc = fn(w, &m, b->p + at + sizeof(m));
        at += m.size;
    }
    return rc;
}

static int write_message(struct bh_writer *w, const struct bh_message *m, const char *p)
{
    if (m->kind == BH_MESSAGE_OUTCOME)
        return write_outcome(w, m, p);
    if (!w->batch_n++)
        w->batch_first = m->number;
    w->batch_last = m->number;
    int rc = learn_names(w, m, p + (m->size - sizeof(*m) - m->n_names_text));
    return rc == SQLITE_OK ? write_attempt(w, m, p) : rc;
}

/* Of a batch that is lost, only the names are kept. */
static int lose_message(struct bh_writer *w, const struct bh_message *m, const char *p)
{
    if (m->kind == BH_MESSAGE_ATTEMPT && m->number > w->last_number) {
        w->last_number = m->number;
        w->dropped++;
        (void)learn_names(w, m, p + (m->size - sizeof(*m) - m->n_names_text));
    }
    return SQLITE_OK;
}

static int transact(struct bh_writer *w, const struct bh_buf *messages, uint64_t dropped)
{
    uint64_t before = w->last_number;
    int rc = do_sql(w, "BEGIN IMMEDIATE");

    w->batch_first = UINT64_MAX;
    w->batch_n = 0;
    if (rc == SQLITE_OK && messages) {
        bh_umap_clear(&w->late);
        w->batch = messages->p;
        (void)each_message(w, messages, note_outcome);
        rc = each_message(w, messages, write_message);
    }
    if (rc == SQLITE_OK)
        rc = write_names(w);
    w->rows += w->batch_n;
    if (w->batch_n)
        w->last_number = w->batch_last;
    if (rc == SQLITE_OK) {
        sqlite3_bind_text(w->state, 1, bh_record_modes[w->o.mode], -1, SQLITE_STATIC);
        sqlite3_bind_int64(w->state, 2, (int64_t)(w->dropped + dropped));
        sqlite3_bind_int64(w->state, 3, (int64_t)(w->base + w->last_number));
        sqlite3_bind_int64(w->state, 4, (int64_t)w->rows);
        w->told_dropped = w->dropped + dropped;
        rc = step(w->state);
    }
    if (rc == SQLITE_OK)
        rc = do_sql(w, "COMMIT");
    if (rc != SQLITE_OK) {
        (void)do_sql(w, "ROLLBACK");
        w->rows -= w->batch_n;
        w->last_number = before;
    }
    return rc;
}

/* A full file gets room, and the batch another try; a broken one is opened anew. */
static bool write_batch(struct bh_writer *w, const struct bh_buf *messages, uint64_t dropped)
{
    struct bh_writer_names *n = &w->names;
    uint32_t list = n->list, written = n->written;
    size_t written_at = n->written_at;
    int rc = SQLITE_ERROR;

    for (unsigned tries = 0; tries < 3 && w->db; tries++) {
        rc = transact(w, messages, dropped);
        if (rc == SQLITE_OK)
            break;
        n->written = n->list == list ? written : 0;
        n->written_at = n->list == list ? written_at : 0;
        if ((rc & 0xff) != SQLITE_FULL || !drop_oldest(w))
            break;
    }
    if (rc == SQLITE_OK) {
        if (w->complained && w->batch_n && bh_mono_ns() - w->failed_ns >= RELIEF_NS) {
            bh_log_info("Decisions are recorded again", bh_kv_s("file", w->path),
                        bh_kv_u("droppedSinceStart", w->dropped));
            w->complained = false;
        }
        return true;
    }
    complain(w, sqlite3_errstr(rc));
    if (is_damage(rc)) {
        close_file(w);
        if (ours(w->path))
            move_away(w);
        w->tried_ns = 0;
    }
    return false;
}

void bh_writer_write(struct bh_writer *w, const struct bh_buf *messages, uint64_t dropped)
{
    if (is_open(w) && write_batch(w, messages, dropped)) {
        w->recorded += w->batch_n;
        /* A sixteenth stays free, for what the next batch brings. */
        int64_t room = w->o.max_bytes - w->o.max_bytes / 16, used = used_bytes(w);
        for (unsigned i = 0; used > room && i < 60 && drop_oldest(w); i++)
            used = used_bytes(w);
        w->bytes = ask_count(w, "PRAGMA page_count") * PAGE_BYTES;
    } else {
        (void)each_message(w, messages, lose_message);
    }
}

void bh_writer_tick(struct bh_writer *w, uint64_t dropped)
{
    if (!is_open(w))
        return;
    keep_age(w);
    if (w->told_dropped != w->dropped + dropped || !w->told_mode)
        w->told_mode = write_batch(w, NULL, dropped);
}

void bh_writer_init(struct bh_writer *w, const struct bh_recorder_options *o)
{
    z_stream *z = bh_calloc(1, sizeof(*z));

    *w = (struct bh_writer){.o = *o, .lock = -1};
    if (w->o.max_bytes <= 0)
        w->o.max_bytes = BH_DECISIONS_MAX_BYTES;
    w->o.max_bytes = BH_MAX(w->o.max_bytes, BH_DECISIONS_MIN_BYTES);
    w->path = bh_strdup(o->path);
    w->lock_path = bh_asprintf("%s-lock", o->path);
    if (deflateInit(z, 1) == Z_OK)
        w->z = z;
    else
        free(z);
}

void bh_writer_fini(struct bh_writer *w)
{
    if (w->db)
        (void)do_sql(w, "UPDATE state SET mode = 'off'");
    close_file(w);
    if (w->z)
        deflateEnd(w->z);
    free(w->z);
    free(w->path);
    free(w->lock_path);
    bh_buf_fini(&w->names.text);
    bh_buf_fini(&w->packed);
    bh_umap_fini(&w->late);
}
