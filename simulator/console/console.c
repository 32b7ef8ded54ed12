/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/console.c - from a path to the function that answers it
 */
#include "simulator/console/console.h"

#include <stdarg.h>
#include <stdio.h>

#define BERTH_PREFIX "/berth/v1/"

static const struct route {
    const char *prefix, *method, *name; /* the first segment after the prefix */
    unsigned n_min, n_max;              /* segments in all */
    bh_console_fn *fn;
} routes[] = {
    {NULL, NULL, NULL, 0, 0, NULL}, /* the end */
};

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

void bh_console_fail(struct bh_sim_req *r, int code, const char *field, unsigned line,
                     const char *fmt, ...)
{
    struct bh_json *v = bh_json_new(r->a, BH_JSON_OBJECT);
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    bh_json_set_str(r->a, v, "message", text);
    if (field)
        bh_json_set_str(r->a, v, "field", field);
    if (line)
        bh_json_set_i64(r->a, v, "line", line);
    bh_console_reply(r, code, v);
}

/* Segments of path behind prefix; 0 when it is not below the prefix, or too deep. */
static unsigned split(struct bh_sim_req *r, const char *prefix, const char *seg[])
{
    size_t np = strlen(prefix);
    unsigned n = 0;

    if (strncmp(r->path, prefix, np) != 0)
        return 0;
    for (char *p = bh_arena_strdup(r->a, r->path + np); p && *p;) {
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
    bool known = false;

    if (bh_console_web(r))
        return true;
    for (const struct route *t = routes; t->fn; t++) {
        struct bh_console_req c = {.r = r};
        c.n = split(r, t->prefix, c.seg);
        if (c.n < t->n_min || c.n > t->n_max || !bh_streq(c.seg[0], t->name))
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
