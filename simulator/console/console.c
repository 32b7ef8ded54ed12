/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/console.c - from a path to the function that answers it
 */

#include <stdarg.h>
#include <stdio.h>

#include "simulator/console/parts.h"
#include "simulator/console/totals.h"

#define BERTH_PREFIX "/berth/v1/"
#define KSS_PREFIX   "/api/v1/" /* kube-scheduler-simulator's */

static const struct route {
    const char *prefix, *method, *name; /* the first segment after the prefix */
    unsigned n_min, n_max;              /* segments in all */
    bh_console_fn *fn;
} routes[] = {
    {KSS_PREFIX, "GET", "schedulerconfiguration", 1, 1, bh_console_config_get},
    {KSS_PREFIX, "POST", "schedulerconfiguration", 1, 1, bh_console_config_post},
    {KSS_PREFIX, "PUT", "reset", 1, 1, bh_console_reset},
    {KSS_PREFIX, "GET", "export", 1, 1, bh_console_export},
    {KSS_PREFIX, "POST", "import", 1, 1, bh_console_import},
    {KSS_PREFIX, "GET", "listwatchresources", 1, 1, bh_console_list_watch},
    {BERTH_PREFIX, "GET", "overview", 1, 1, bh_console_overview},
    {BERTH_PREFIX, "GET", "decisions", 1, 4, bh_console_decisions},
    {BERTH_PREFIX, "GET", "pods", 4, 4, bh_console_pod_decisions},
    {BERTH_PREFIX, "GET", "watch", 1, 1, bh_console_watch},
    {BERTH_PREFIX, "POST", "whatif", 1, 1, bh_console_whatif},
    {BERTH_PREFIX, "POST", "capacity", 1, 1, bh_console_capacity},
    {BERTH_PREFIX, "POST", "drain", 1, 1, bh_console_drain},
    {BERTH_PREFIX, "POST", "rebalance", 1, 1, bh_console_rebalance},
    {BERTH_PREFIX, "POST", "configs", 2, 2, bh_console_configs},
    {BERTH_PREFIX, "GET", "queue", 1, 1, bh_console_queue},
    {BERTH_PREFIX, "GET", "timeline", 1, 1, bh_console_timeline},
    {BERTH_PREFIX, "GET", "asof", 1, 1, bh_console_asof},
    {BERTH_PREFIX, "GET", "utilisation", 1, 1, bh_console_utilisation},
    {BERTH_PREFIX, "POST", "manifest", 1, 1, bh_console_manifest},
    {BERTH_PREFIX, "GET", "replay", 1, 1, bh_console_replay_get},
    {BERTH_PREFIX, "POST", "replay", 1, 1, bh_console_replay_post},
    {BERTH_PREFIX, "PATCH", "replay", 1, 1, bh_console_replay_patch},
    {BERTH_PREFIX, "DELETE", "replay", 1, 1, bh_console_replay_delete},
    {BERTH_PREFIX, "GET", "scenarios", 1, 3, bh_console_scenarios_get},
    {BERTH_PREFIX, "POST", "scenarios", 1, 1, bh_console_scenarios_post},
    {BERTH_PREFIX, "DELETE", "scenarios", 2, 2, bh_console_scenarios_delete},
    {BERTH_PREFIX, "GET", "comparison", 1, 1, bh_console_comparison},
    {BERTH_PREFIX, "POST", "podgroup", 1, 1, bh_console_podgroup},
    {BERTH_PREFIX, "GET", "guests", 1, 1, bh_console_guests},
    {NULL, NULL, NULL, 0, 0, NULL}, /* the end */
};

/* What has state: in this order, and back in the opposite one. */
static const struct part {
    bh_console_part_fn *start, *stop; /* NULL: nothing to do */
} parts[] = {
    {bh_console_decisions_start, bh_console_decisions_stop},
    {bh_console_jobs_start, bh_console_jobs_stop},
    {bh_console_totals_start, bh_console_totals_stop},
    {bh_console_streams_start, bh_console_streams_stop},
    {bh_console_scheduler_start, bh_console_scheduler_stop},
    {bh_console_decision_rows_start, NULL}, /* what was published goes with the streams */
    {bh_console_annotator_start, bh_console_annotator_stop},
    {bh_console_baseline_start, bh_console_baseline_stop},
    {bh_console_past_start, bh_console_past_stop},
    {NULL, bh_console_import_stop},
    {bh_console_replay_start, bh_console_replay_stop},
    {bh_console_scenarios_start, bh_console_scenarios_stop},
    {NULL, bh_console_observe_stop},
};

void bh_console_start(struct bh_sim *s)
{
    s->console = bh_calloc(1, sizeof(*s->console));
    s->console->sim = s;
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++)
        if (parts[i].start)
            parts[i].start(s->console);
}

void bh_console_stop(struct bh_sim *s)
{
    if (!s->console)
        return;
    for (size_t i = BH_ARRAY_LEN(parts); i--;)
        if (parts[i].stop)
            parts[i].stop(s->console);
    free(s->console);
    s->console = NULL;
}

void bh_console_list_more(struct bh_sim *s, const struct bh_sim_type *t, struct bh_sim_objs *to)
{
    struct bh_sim_objs l = bh_sim_listed(s, t, NULL);

    to->v = bh_reallocarray(to->v, to->n + l.n + 1, sizeof(*l.v));
    for (size_t i = 0; i < l.n; i++)
        to->v[to->n++] = l.v[i];
    free(l.v);
}

char *bh_console_body(struct bh_sim_req *r, size_t *ret_n)
{
    struct bh_str body = bh_http_body(r->http);
    struct bh_buf b = {0};

    bh_buf_add(&b, body.p, body.n); /* it may hold NULs */
    *ret_n = body.n;
    return bh_buf_take(&b);
}

unsigned bh_console_line_of(const struct bh_err *err)
{
    const char *p = strstr(err->msg, "line ");

    return p ? (unsigned)strtoul(p + 5, NULL, 10) : 0;
}

void bh_console_reply(struct bh_sim_req *r, int code, const struct bh_json *v)
{
    struct bh_buf *b = &r->sim->reply;

    bh_buf_reset(b);
    if (v) {
        bh_json_write(b, v);
        bh_buf_addc(b, '\n');
    }
    bh_sim_reply_raw(r, code, "application/json", b->p, b->n);
}

void bh_console_error_text(struct bh_buf *out, const char *field, unsigned line, const char *fmt,
                           va_list ap)
{
    char text[2048];
    int n = vsnprintf(text, sizeof(text), fmt, ap);

    bh_buf_adds(out, "{\"message\":");
    bh_buf_add_json_str(out, text, n < 0 ? 0 : BH_MIN((size_t)n, sizeof(text) - 1));
    if (field) {
        bh_buf_adds(out, ",\"field\":");
        bh_buf_add_json_str(out, field, strlen(field));
    }
    if (line)
        bh_buf_addf(out, ",\"line\":%u", line);
    bh_buf_adds(out, "}\n");
}

bool bh_console_fail(struct bh_sim_req *r, int code, const char *field, unsigned line,
                     const char *fmt, ...)
{
    struct bh_buf *b = &r->sim->reply;
    va_list ap;

    bh_buf_reset(b);
    va_start(ap, fmt);
    bh_console_error_text(b, field, line, fmt, ap);
    va_end(ap);
    bh_sim_reply_raw(r, code, "application/json", b->p, b->n);
    return false;
}

/* Segments of path; 0 when there are too many. */
static unsigned split(struct bh_sim_req *r, const char *path, const char *seg[])
{
    unsigned n = 0;

    for (char *p = bh_arena_strdup(r->a, path); p && *p;) {
        char *slash = strchr(p, '/');
        if (n == BH_CONSOLE_SEGMENTS)
            return 0;
        seg[n++] = p;
        if (slash)
            *slash = '\0';
        p = slash ? slash + 1 : NULL;
    }
    return n;
}

bool bh_console_route(struct bh_sim_req *r)
{
    const char *prefix = NULL, *rest = NULL; /* of the routes at hand; the path behind it */
    bool known = false;

    if (bh_console_web(r))
        return true;
    for (const struct route *t = routes; t->fn; t++) {
        struct bh_console_req c = {.r = r};
        if (t->prefix != prefix) {
            const size_t n = strlen(prefix = t->prefix);
            rest = strncmp(r->path, prefix, n) == 0 ? r->path + n : NULL;
        }
        /* The name, and nothing or a slash: most requests are for the API and are not split. */
        const size_t n = rest && *rest == *t->name ? strlen(t->name) : 0;
        if (!n || strncmp(rest, t->name, n) != 0 || (rest[n] && rest[n] != '/'))
            continue;
        c.n = split(r, rest, c.seg);
        if (c.n < t->n_min || c.n > t->n_max)
            continue;
        known = true;
        if (!bh_streq(r->method, t->method))
            continue;
        r->verb = "console";
        t->fn(&c);
        return true;
    }
    if (known)
        bh_console_fail(r, 405, NULL, 0, "%s is not served at %s", r->method, r->path);
    else if (strncmp(r->path, BERTH_PREFIX, strlen(BERTH_PREFIX)) == 0)
        bh_console_fail(r, 404, NULL, 0, "nothing is served at %s", r->path);
    else
        return false;
    return true;
}
