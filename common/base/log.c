/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/log.c - one line an event, structured, to stderr or journald
 *
 * Invariants: a line is written with one call and is at most PIPE_BUF bytes: then a pipe takes it
 *             whole or poll(2) says that it is full, and lines of several processes never mix.
 *             Longer lines get their values shortened, never their structure.
 * Runs in:    any thread after bh_log_init(); the line is built on the caller's side.
 * Fails with: nothing; what cannot be written at once is dropped and counted.
 * Upstream:   k8s.io/klog/v2 textlogger, k8s.io/component-base/logs/json (line formats);
 *             differences: no multi-line values, JSON warnings carry "level":"warn".
 */
#include "common/base/log.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buf.h"

/* Set once by bh_log_init() before there are threads. */
static struct {
    const char *program;
    int verbosity;
    enum bh_log_format format;
    bool journal, socket;
} logger;
static _Atomic uint64_t dropped;

static bool stderr_is_journal(const struct stat *st)
{
    const char *stream = getenv("JOURNAL_STREAM");
    if (!stream)
        return false;
    char *end;
    unsigned long long dev = strtoull(stream, &end, 10);
    if (*end != ':')
        return false;
    return dev == st->st_dev && strtoull(end + 1, NULL, 10) == st->st_ino;
}

void bh_log_init(const char *program, int verbosity, enum bh_log_format format)
{
    struct stat st = {0};

    logger.program = program;
    logger.verbosity = verbosity;
    logger.format = format;
    logger.socket = fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode);
    logger.journal = logger.socket && stderr_is_journal(&st);
}

int bh_log_verbosity(void)
{
    return logger.verbosity;
}

uint64_t bh_log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

static void put_line(const struct bh_buf *line)
{
    ssize_t put;

    if (logger.socket) {
        put = send(STDERR_FILENO, line->p, line->n, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
        /* Not O_NONBLOCK: that would change the open file for everybody who shares it. */
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
        put = poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) && !(fd.revents & (POLLERR | POLLNVAL))
                  ? write(STDERR_FILENO, line->p, line->n)
                  : -1;
    }
    if (put != (ssize_t)line->n)
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

static void add_str(struct bh_buf *b, const char *s, size_t max_value)
{
    size_t n = strnlen(s, max_value);
    if (s[n] == '\0') {
        bh_buf_add_json_str(b, s, n);
        return;
    }
    while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--; /* not through the middle of a character */
    bh_buf_add_json_str(b, s, n);
    b->n--;
    bh_buf_adds(b, "...\"");
}

static void add_value(struct bh_buf *b, const struct bh_log_kv *kv, size_t max_value)
{
    switch (kv->kind) {
    case BH_LOG_STR:
        if (kv->s)
            add_str(b, kv->s, max_value);
        else
            bh_buf_adds(b, logger.format == BH_LOG_JSON ? "null" : "<nil>");
        break;
    case BH_LOG_I64:
        bh_buf_addi64(b, kv->i);
        break;
    case BH_LOG_U64:
        bh_buf_addf(b, "%llu", (unsigned long long)kv->u);
        break;
    case BH_LOG_F64:
        if (isfinite(kv->f) || logger.format == BH_LOG_TEXT)
            bh_buf_addf64(b, kv->f);
        else /* JSON has no such number */
            bh_buf_adds(b, isnan(kv->f) ? "\"NaN\"" : kv->f > 0 ? "\"+Inf\"" : "\"-Inf\"");
        break;
    case BH_LOG_END:
        break;
    }
}

struct event {
    enum bh_log_level level;
    const char *file;
    int line;
    const char *msg;
    const struct bh_log_kv *kv;
    int64_t wall_ns;
};

static void build_text(struct bh_buf *b, const struct event *e, size_t max_value)
{
    if (!logger.journal) {
        struct tm tm;
        time_t sec = (time_t)(e->wall_ns / 1000000000);
        localtime_r(&sec, &tm);
        bh_buf_addf(b, "%c%02d%02d %02d:%02d:%02d.%06d %7d ", "EWII"[e->level], tm.tm_mon + 1,
                    tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                    (int)(e->wall_ns % 1000000000 / 1000), (int)getpid());
    }
    bh_buf_addf(b, "%s:%d] ", base_name(e->file), e->line);
    add_str(b, e->msg, max_value);
    for (const struct bh_log_kv *kv = e->kv; kv->kind != BH_LOG_END; kv++) {
        bh_buf_addf(b, " %s=", kv->key);
        add_value(b, kv, max_value);
    }
}

static void build_json(struct bh_buf *b, const struct event *e, size_t max_value)
{
    bh_buf_addf(
        b, "{\"ts\":%lld.%03d,\"caller\":\"%s:%d\",\"msg\":", (long long)(e->wall_ns / 1000000),
        (int)(e->wall_ns % 1000000 / 1000), base_name(e->file), e->line);
    add_str(b, e->msg, max_value);
    if (e->level == BH_LOG_WARN)
        bh_buf_adds(b, ",\"level\":\"warn\"");
    if (e->level != BH_LOG_ERROR)
        bh_buf_addf(b, ",\"v\":%d", e->level == BH_LOG_DEBUG ? 2 : 0);
    for (const struct bh_log_kv *kv = e->kv; kv->kind != BH_LOG_END; kv++) {
        bh_buf_addc(b, ',');
        bh_buf_add_json_str(b, kv->key, strlen(kv->key));
        bh_buf_addc(b, ':');
        add_value(b, kv, max_value);
    }
    bh_buf_addc(b, '}');
}

static void build(struct bh_buf *b, const struct event *e, size_t max_value)
{
    static const char syslog_priority[] = {
        [BH_LOG_ERROR] = '3', [BH_LOG_WARN] = '4', [BH_LOG_INFO] = '6', [BH_LOG_DEBUG] = '7'};

    bh_buf_reset(b);
    if (logger.journal)
        bh_buf_addf(b, "<%c>", syslog_priority[e->level]);
    if (logger.format == BH_LOG_JSON)
        build_json(b, e, max_value);
    else
        build_text(b, e, max_value);
    bh_buf_addc(b, '\n');
}

void bh_log_write(enum bh_log_level level, const char *file, int line, const char *msg,
                  const struct bh_log_kv *kv)
{
    int saved_errno = errno;
    struct event e = {level, file, line, msg, kv, bh_wall_ns()};
    struct bh_buf b = {0};

    build(&b, &e, SIZE_MAX);
    for (size_t max_value = PIPE_BUF / 2; b.n > PIPE_BUF && max_value >= 8; max_value /= 2)
        build(&b, &e, max_value);
    if (b.n > PIPE_BUF) { /* hundreds of values */
        static const struct bh_log_kv none = {.kind = BH_LOG_END};
        e.kv = &none;
        build(&b, &e, PIPE_BUF / 8);
    }
    put_line(&b);
    bh_buf_fini(&b);
    errno = saved_errno;
}
