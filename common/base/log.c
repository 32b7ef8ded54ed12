/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/log.c - one line an event, structured, to stderr or journald
 *
 * Invariants: a line is written with one call and is at most PIPE_BUF bytes: then a pipe takes it
 *             whole or poll(2) says that it is full, and lines of several processes never mix.
 *             Longer lines get their values shortened, never their structure (blocks excepted).
 * Runs in:    any thread after bh_log_init(); the line is built on the caller's side.
 * Fails with: nothing; what cannot be written at once is dropped and counted.
 * Upstream:   k8s.io/klog/v2 textlogger, k8s.io/component-base/logs/json (line formats);
 *             differences: no multi-line values, JSON warnings carry "level":"warn".
 */
#include "common/base/log.h"

#include <errno.h>
#include <fnmatch.h>
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
    const char *vmodule; /* checked; NULL = none */
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

/* The next "pattern=N" of the list; false at its end. */
static bool next_pattern(const char **list, const char **item, size_t *n)
{
    *list += strspn(*list, ",");
    *item = *list;
    *n = strcspn(*list, ",");
    *list += *n;
    return *n > 0;
}

int bh_log_check_vmodule(const char *patterns, struct bh_err *err)
{
    const char *rest = patterns, *item;
    size_t n;

    while (next_pattern(&rest, &item, &n)) {
        const char *eq = memchr(item, '=', n), *end = item + n;
        int len = (int)BH_MIN(n, 64);
        if (!eq || eq == item || eq + 1 == end || memchr(eq + 1, '=', (size_t)(end - eq - 1)))
            return bh_err_set(err, -EINVAL, "\"%.*s\" does not have the pattern=N format", len,
                              item);
        size_t digits = strspn(eq + 1, "0123456789");
        bool number = digits == (size_t)(end - eq - 1);
        if (!number || digits > 10 || strtoll(eq + 1, NULL, 10) > INT32_MAX)
            return bh_err_set(err, -EINVAL,
                              "parsing verbosity in \"%.*s\": strconv.ParseUint: parsing \"%.*s\": "
                              "%s",
                              len, item, (int)BH_MIN(end - eq - 1, 64), eq + 1,
                              number ? "value out of range" : "invalid syntax");
    }
    return 0;
}

void bh_log_set_vmodule(const char *patterns)
{
    logger.vmodule = *patterns ? patterns : NULL;
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* klog: the first pattern that matches decides. */
static bool module_on(int v, const char *file)
{
    const char *rest = logger.vmodule, *item, *base = base_name(file);
    char name[64], pattern[64];
    size_t n;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
    while (next_pattern(&rest, &item, &n)) {
        snprintf(pattern, sizeof(pattern), "%.*s", (int)strcspn(item, "="), item);
        if (fnmatch(pattern, name, 0) == 0)
            return strtoll(item + strcspn(item, "=") + 1, NULL, 10) >= v;
    }
    return false;
}

bool bh_log_v_on(int v, const char *file)
{
    return v <= logger.verbosity || (logger.vmodule && module_on(v, file));
}

void bh_log_set_verbosity(int verbosity)
{
    logger.verbosity = verbosity;
}

uint64_t bh_log_dropped(void)
{
    return atomic_load_explicit(&dropped, memory_order_relaxed);
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
    int v;
    bool plain;        /* text: the message stands without quotes */
    const char *block; /* a last value of several lines, under block_key */
    const char *block_key;
};

/* Text of ours or flags' values: nothing in it may look like another line. */
static void add_plain(struct bh_buf *b, const char *s, size_t max_value)
{
    for (size_t n = strnlen(s, max_value); n--; s++)
        bh_buf_addc(b, (unsigned char)*s < ' ' || *s == 127 ? ' ' : *s);
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
        bh_buf_addf(b, ",\"v\":%d", e->v);
    for (const struct bh_log_kv *kv = e->kv; kv->kind != BH_LOG_END; kv++) {
        bh_buf_addc(b, ',');
        bh_buf_add_json_str(b, kv->key, strlen(kv->key));
        bh_buf_addc(b, ':');
        add_value(b, kv, max_value);
    }
    if (e->block) {
        bh_buf_addf(b, ",\"%s\":", e->block_key);
        bh_buf_add_json_str(b, e->block, strlen(e->block));
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
    else {
        if (!logger.journal) {
            struct tm tm;
            time_t sec = (time_t)(e->wall_ns / 1000000000);
            localtime_r(&sec, &tm);
            bh_buf_addf(b, "%c%02d%02d %02d:%02d:%02d.%06d %7d ", "EWII"[e->level], tm.tm_mon + 1,
                        tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                        (int)(e->wall_ns % 1000000000 / 1000), (int)getpid());
        }
        bh_buf_addf(b, "%s:%d] ", base_name(e->file), e->line);
        if (e->plain)
            add_plain(b, e->msg, max_value);
        else
            add_str(b, e->msg, max_value);
        for (const struct bh_log_kv *kv = e->kv; kv->kind != BH_LOG_END; kv++) {
            bh_buf_addf(b, " %s=", kv->key);
            add_value(b, kv, max_value);
        }
        if (e->block) {
            bh_buf_addf(b, " %s=<\n", e->block_key);
            for (const char *p = e->block; *p;) {
                size_t n = strcspn(p, "\n");
                bh_buf_addc(b, '\t');
                add_plain(b, p, n);
                bh_buf_addc(b, '\n');
                p += n + (p[n] == '\n');
            }
            bh_buf_adds(b, " >");
        }
    }
    bh_buf_addc(b, '\n');
}

static const struct bh_log_kv no_values = {.kind = BH_LOG_END};

static void write_event(struct event *e)
{
    int saved_errno = errno;
    struct bh_buf b = {0};

    e->wall_ns = bh_wall_ns();
    build(&b, e, SIZE_MAX);
    for (size_t max_value = PIPE_BUF / 2; b.n > PIPE_BUF && max_value >= 8 && !e->block;
         max_value /= 2)
        build(&b, e, max_value);
    if (b.n > PIPE_BUF && !e->block) { /* hundreds of values */
        e->kv = &no_values;
        build(&b, e, PIPE_BUF / 8);
    }
    ssize_t put;
    if (logger.socket) {
        put = send(STDERR_FILENO, b.p, b.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else {
        /* Not O_NONBLOCK: that would change the open file for every process that shares it. */
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
        put = poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT) && !(fd.revents & (POLLERR | POLLNVAL))
                  ? write(STDERR_FILENO, b.p, b.n)
                  : -1;
    }
    if (put != (ssize_t)b.n)
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
    bh_buf_fini(&b);
    errno = saved_errno;
}

void bh_log_write(enum bh_log_level level, const char *file, int line, const char *msg,
                  const struct bh_log_kv *kv)
{
    struct event e = {.level = level, .file = file, .line = line, .msg = msg, .kv = kv};

    e.v = level == BH_LOG_DEBUG ? 2 : 0;
    write_event(&e);
}

/* What is said on request only has the journal's lowest priority. */
static struct event event_of(int v, const char *file, int line, const char *msg)
{
    return (struct event){.level = v >= 2 ? BH_LOG_DEBUG : BH_LOG_INFO,
                          .file = file,
                          .line = line,
                          .msg = msg,
                          .kv = &no_values,
                          .v = v};
}

void bh_log_write_v(int v, const char *file, int line, const char *msg, const struct bh_log_kv *kv)
{
    struct event e = event_of(v, file, line, msg);

    e.kv = kv;
    write_event(&e);
}

void bh_log_plain(int v, const char *file, int line, const char *text)
{
    struct event e = event_of(v, file, line, text);

    e.plain = true;
    write_event(&e);
}

void bh_log_block(int v, const char *file, int line, const char *msg, const char *key,
                  const char *text)
{
    struct event e = event_of(v, file, line, msg);

    e.block = text;
    e.block_key = key;
    write_event(&e);
}
