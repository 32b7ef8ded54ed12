/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/faults.c - misbehaving on purpose, for tests of clients
 */
#include "simulator/faults.h"

#include <errno.h>

enum fault { F_429, F_500, F_503, F_410, F_CUT, F_DROP, F_TRUNCATE, F_LOSE, F_DELAY, N_FAULTS };
static const char *const names[N_FAULTS] = {"429-every",      "500-every",  "503-every",
                                            "410-every",      "drop-every", "drop-watch-every",
                                            "truncate-every", "lose-every", "delay-ms"};
struct bh_sim_faults {
    uint64_t every[N_FAULTS], count[N_FAULTS];
};

static int parse_one(struct bh_sim_faults *f, const char *p, size_t n, struct bh_err *err)
{
    const char *eq = memchr(p, '=', n);
    size_t key = eq ? (size_t)(eq - p) : n;
    uint64_t v = 0;
    for (const char *d = eq ? eq + 1 : p + n; d < p + n; d++) {
        if (*d < '0' || *d > '9' || v > 1000000000)
            return bh_err_set(err, -EINVAL, "faults: \"%.*s\": not a number", (int)n, p);
        v = v * 10 + (uint64_t)(*d - '0');
    }
    for (int i = 0; i < N_FAULTS; i++) {
        if (strlen(names[i]) == key && memcmp(names[i], p, key) == 0 && v > 0) {
            f->every[i] = v;
            return 0;
        }
    }
    return bh_err_set(err, -EINVAL,
                      "faults: \"%.*s\": want 429-every, 500-every, 503-every, 410-every, "
                      "drop-every, drop-watch-every, truncate-every, lose-every or delay-ms, =N",
                      (int)n, p);
}

int bh_sim_faults_parse(const char *spec, struct bh_sim_faults **ret_f, struct bh_err *err)
{
    struct bh_sim_faults f = {0};
    for (const char *p = spec; p && *p;) {
        size_t n = strcspn(p, ",");
        int rc = parse_one(&f, p, n, err);
        if (rc < 0)
            return rc;
        p += n + (p[n] == ',');
    }
    *ret_f = spec && *spec ? bh_memdup(&f, sizeof(f)) : NULL;
    return 0;
}

void bh_sim_faults_free(struct bh_sim_faults *f)
{
    free(f);
}

static bool hit(struct bh_sim *s, enum fault i)
{
    struct bh_sim_faults *f = s->faults;
    return f->every[i] && ++f->count[i] % f->every[i] == 0;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void cut_off(struct bh_sim_req *r)
{
    bh_http_stream_abort(bh_http_stream_start(r->http, "application/json", nothing, NULL));
    r->done = true;
}

bool bh_sim_fault_before(struct bh_sim_req *r)
{
    struct bh_sim *s = r->sim;
    if (s->faults->every[F_DELAY] && !r->waited) {
        bh_sim_wait(r, (int64_t)s->faults->every[F_DELAY] * 1000000);
        return true;
    }
    if (hit(s, F_429)) {
        r->e.retry_after_s = 1;
        bh_sim_fail(
            &r->e, 429, "TooManyRequests",
            "the server has received too many requests and has asked us to try again later");
    } else if (hit(s, F_500)) {
        bh_sim_fail(&r->e, 500, "InternalError", "Internal error occurred: injected fault");
    } else if (hit(s, F_503)) {
        bh_sim_fail(&r->e, 503, "ServiceUnavailable",
                    "the server is currently unable to handle the request");
    } else if (hit(s, F_CUT)) {
        cut_off(r);
        return true;
    } else {
        return false;
    }
    bh_sim_reply_error(r);
    return true;
}

/* ---- cut replies
 * ---------------------------------------------------------------------------------- */

struct cut {
    struct bh_http_stream *stream;
    struct bh_sim_timer *timer;
};
#define CUT_AFTER_NS ((int64_t)30 * 1000000) /* lets the first half reach the client */

static void cut_closed(void *arg)
{
    struct cut *c = arg;
    bh_sim_cancel(c->timer);
    free(c);
}

static void cut_now(void *arg)
{
    struct cut *c = arg;
    c->timer = NULL;
    bh_http_stream_abort(c->stream);
}

bool bh_sim_fault_truncate(struct bh_sim_req *r, const char *content_type, const void *p, size_t n)
{
    bool writes = !bh_streq(r->method, "GET") && !bh_streq(r->method, "HEAD");
    bool lose = writes && r->type && hit(r->sim, F_LOSE);
    bool half = !lose && r->type && n > 1 && hit(r->sim, F_TRUNCATE);
    if (lose)
        cut_off(r);
    if (!half)
        return lose;
    struct cut *c = bh_calloc(1, sizeof(*c));
    c->stream = bh_http_stream_start(r->http, content_type, cut_closed, c);
    struct bh_http_chunk *chunk = bh_http_chunk_new(p, n / 2);
    bh_http_stream_add(c->stream, chunk);
    bh_http_chunk_unref(chunk);
    c->timer = bh_sim_after_real(r->sim, CUT_AFTER_NS, cut_now, c);
    return true;
}

bool bh_sim_fault_drop_watch(struct bh_sim *s)
{
    return hit(s, F_DROP);
}

bool bh_sim_fault_expire(struct bh_sim *s)
{
    return hit(s, F_410);
}
