/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/history.c - every committed change as a line of a file, and the way back
 */
#include "simulator/server/history.h"

#include "common/base/log.h"
#include "simulator/server/audit.h"
#include "simulator/server/req.h"
#include "simulator/server/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1 << 30)

/* ---- writing --------------------------------------------------------------------------------- */

void bh_sim_history_add(struct bh_sim *s, enum bh_sim_change c, const struct bh_sim_obj *obj)
{
    static const char *const changes[] = {"ADDED", "MODIFIED", "DELETED"};
    const struct bh_sim_req *r = s->request;
    const char *agent = r ? bh_http_header(r->http, "User-Agent") : NULL;
    uint64_t now = bh_boot_ns(), received = r ? now - (bh_mono_ns() - r->start_ns) : 0;
    char user[128] = "";
    struct bh_buf *b = &s->line;

    if (s->history_fd < 0)
        return;
    if (r)
        bh_sim_user_name(r, user);
    bh_buf_reset(b);
    bh_buf_addf(b, "{\"rv\":%llu,\"change\":\"%s\",\"boot_ns\":%llu,\"received_ns\":%llu",
                (unsigned long long)obj->rv, changes[c], (unsigned long long)now,
                (unsigned long long)received);
    bh_tree_add_str(b, "verb", r ? bh_sim_verb_of(r) : "");
    bh_tree_add_str(b, "subresource", r ? r->sub : "");
    bh_tree_add_str(b, "user", user);
    bh_tree_add_str(b, "agent", agent ? agent : "");
    bh_buf_adds(b, ",\"object\":");
    bh_buf_add(b, obj->json, obj->json_n);
    bh_buf_adds(b, "}\n");
    if (write(s->history_fd, b->p, b->n) != (ssize_t)b->n) {
        /* a history with a hole would tell lies: rather none from here on */
        bh_log_error("The history file cannot be written; no more of it",
                     bh_kv_s("err", strerror(errno)));
        close(s->history_fd);
        s->history_fd = -1;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

static int restore_line(struct bh_sim *s, const char *p, size_t n, struct bh_err *err)
{
    struct bh_json *line = NULL;
    int rc = bh_json_parse(&s->arena, p, n, BH_JSON_NUL, &line, err);

    if (rc < 0)
        return rc;
    int64_t rv = bh_json_get_i64(line, "rv", 0);
    const char *change = bh_json_get_str(line, "change");
    if (!change)
        return bh_err_set(err, -EINVAL, "want change and object");
    if (rv <= 0 || (uint64_t)rv <= s->restored_rv)
        return bh_err_set(err, -EINVAL, "want versions that rise from line to line");
    s->restored_rv = (uint64_t)rv;
    return bh_sim_store_restore_tree(s, bh_json_get(line, "object"), (uint64_t)rv,
                                     bh_streq(change, "DELETED"), err);
}

/* *ret_whole: bytes of the whole lines. */
static int restore(struct bh_sim *s, const char *text, size_t n, size_t *ret_whole, uint64_t *ret_n,
                   struct bh_err *err)
{
    const char *end;
    size_t at = 0;

    for (; at < n && (end = memchr(text + at, '\n', n - at)); at = (size_t)(end + 1 - text)) {
        int rc = restore_line(s, text + at, (size_t)(end - text) - at, err);
        bh_arena_reset(&s->arena);
        if (rc < 0)
            return bh_err_prefix(err, rc, "line %llu", (unsigned long long)*ret_n + 1);
        (*ret_n)++;
    }
    *ret_whole = at;
    return 0;
}

int bh_sim_history_open(struct bh_sim *s, const char *path, uint64_t *ret_n, struct bh_err *err)
{
    char *text = NULL;
    size_t n = 0, whole = 0;

    *ret_n = 0;
    s->history_fd = -1;
    if (!path)
        return 0;
    int rc = bh_read_file(path, FILE_MAX, &text, &n);
    if (rc < 0 && rc != -ENOENT)
        return bh_err_set(err, rc, "history file %s: %s", path, strerror(-rc));
    if (rc == 0)
        rc = restore(s, text, n, &whole, ret_n, err);
    else
        rc = 0;
    free(text);
    if (rc < 0)
        return bh_err_prefix(err, rc, "history file %s", path);
    s->history_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (s->history_fd < 0 || (whole < n && ftruncate(s->history_fd, (off_t)whole) < 0))
        return bh_err_set(err, -errno, "history file %s: %s", path, strerror(errno));
    if (s->restored_rv)
        bh_sim_store_restored(s, BH_MAX(s->rv, s->restored_rv));
    return 0;
}
