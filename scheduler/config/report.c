/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/report.c - what was found in a file, and where
 */
#include <ctype.h>
#include <errno.h>

#include "common/base/log.h"
#include "scheduler/config/config_int.h"

static uint32_t line_of(const struct bh_json *root, const char *path);

static void add(struct bh_arena *a, struct bh_config_findings *f, uint32_t line, const char *text)
{
    BH_ARENA_GROW(a, f->v, f->n, f->cap);
    f->v[f->n++] = (struct bh_config_finding){.line = line, .text = text};
}

void bh_config_report_init(struct bh_config_report *r)
{
    *r = (struct bh_config_report){.summary = ""};
    bh_arena_init(&r->arena, 0);
}

void bh_config_report_fini(struct bh_config_report *r)
{
    bh_arena_fini(&r->arena);
}

int bh_config_fail(struct bh_config_ctx *x, const struct bh_json *at, const char *fmt, ...)
{
    struct bh_config_report *r = x->report;
    va_list ap;

    va_start(ap, fmt);
    r->summary = bh_arena_vprintf(&r->arena, fmt, ap);
    va_end(ap);
    add(&r->arena, &r->errors, at ? at->line : 0, r->summary);
    return -EINVAL;
}

void bh_config_remark(struct bh_config_ctx *x, const struct bh_json *at, bool note, const char *fmt,
                      ...)
{
    struct bh_config_report *r = x->report;
    va_list ap;

    if (r->warnings.n >= BH_FIELD_ERRORS_MAX)
        return;
    va_start(ap, fmt);
    add(&r->arena, &r->warnings, at ? at->line : 0, bh_arena_vprintf(&r->arena, fmt, ap));
    va_end(ap);
    r->warnings.v[r->warnings.n - 1].note = note;
}

int bh_config_fail_all(struct bh_config_ctx *x, const struct bh_json *root, const char *prefix,
                       const struct bh_field_errors *e, bool bare)
{
    struct bh_arena *a = &x->report->arena;

    for (uint32_t i = 0; i < e->n; i++)
        add(a, &x->report->errors, e->lines[i] ? e->lines[i] : line_of(root, e->v[i]),
            bh_arena_printf(a, "%s%s", prefix, e->v[i]));
    if (e->dropped)
        add(a, &x->report->errors, 0, bh_arena_printf(a, "%s... and %u more", prefix, e->dropped));
    x->report->summary = bh_arena_printf(a, "%s%s", prefix,
                                         bare ? bh_field_errors_list(e) : bh_field_errors_text(e));
    return -EINVAL;
}

/* ---- where a path ends up -------------------------------------------------------------------- */

static const struct bh_json *step(const struct bh_json *v, const char **path)
{
    const char *p = *path;

    if (*p == '[') {
        char *end;
        unsigned long i = isdigit((unsigned char)p[1]) ? strtoul(p + 1, &end, 10) : 0;
        if (!isdigit((unsigned char)p[1]) || *end != ']' || v->type != BH_JSON_ARRAY)
            return NULL;
        *path = end + 1;
        return bh_json_at(v, i);
    }
    p += *p == '.';
    size_t n = strcspn(p, ".[: ");
    *path = p + n;
    if (v->type == BH_JSON_OBJECT)
        bh_json_each(m, v)
            if (bh_str_eq(m->key, (struct bh_str){p, n}))
                return m;
    return NULL;
}

/* Line of the deepest node below root that exists of a path like "profiles[0].plugins"; where it
 * ends (": ", a blank) is found out here. 0 when it is not known. */
static uint32_t line_of(const struct bh_json *root, const char *path)
{
    uint32_t line = root ? root->line : 0;

    for (const struct bh_json *v = root; v;) {
        if (v->line)
            line = v->line;
        if (!*path || *path == ':' || *path == ' ')
            break;
        v = step(v, &path);
    }
    return line;
}

const char *bh_config_report_line(struct bh_config_report *r, const char *file)
{
    struct bh_arena *a = &r->arena;
    const char *lines = "";
    unsigned n = 0;

    for (uint32_t i = 0; i < r->errors.n && n < 10; i++) {
        uint32_t line = r->errors.v[i].line;
        if (line)
            lines = bh_arena_printf(a, "%s%s%u", lines, n++ ? ", " : "", line);
    }
    if (!n || !file)
        return r->summary;
    return bh_arena_printf(a, "%s (%s: line%s %s)", r->summary, file, n > 1 ? "s" : "", lines);
}

#define LOG_VALUE_MAX 3000 /* bytes that surely fit into a line of the log, quoted */

int bh_sched_config_load_logged(const char *path, struct bh_sched_config **ret)
{
    struct bh_config_report r;

    bh_config_report_init(&r);
    int rc = bh_sched_config_load_report(path, ret, &r);
    for (uint32_t i = 0; i < r.warnings.n; i++) {
        const struct bh_config_finding *f = &r.warnings.v[i];
        if (f->note)
            bh_log_info("Configuration", bh_kv_s("note", f->text), bh_kv_s("file", path),
                        bh_kv_u("line", f->line));
        else
            bh_log_warn("Configuration", bh_kv_s("warning", f->text), bh_kv_s("file", path),
                        bh_kv_u("line", f->line));
    }
    const char *text = rc < 0 ? bh_config_report_line(&r, path) : "";
    for (uint32_t i = 0; strlen(text) > LOG_VALUE_MAX && i < r.errors.n; i++)
        bh_log_error("Configuration", bh_kv_s("err", r.errors.v[i].text), bh_kv_s("file", path),
                     bh_kv_u("line", r.errors.v[i].line));
    if (rc < 0)
        bh_log_error("command failed", bh_kv_s("err", text));
    bh_config_report_fini(&r);
    return rc;
}
