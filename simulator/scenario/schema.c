/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/schema.c - which fields a scenario has, and the check of a document
 *
 * The first thing that is wrong ends the check. Afterwards the rest of the folder reads the trees
 * without looking twice.
 */
#include "simulator/scenario/scenario_int.h"

#include <errno.h>
#include <stdio.h>

#include "common/data/yaml.h"
#include "common/k8s/quantity.h"
#include "simulator/server/sim.h"

static const struct bh_field generate[] = {{"apiVersion", BH_FIELD_TEXT, NULL, 0, false},
                                           {"kind", BH_FIELD_KIND, NULL, 0, true},
                                           {"count", BH_FIELD_INT, "1000000", 1, false},
                                           {"name", BH_FIELD_TEXT, NULL, 0, false},
                                           {"namespace", BH_FIELD_TEXT, NULL, 0, false},
                                           {"template", BH_FIELD_TEMPLATE, NULL, 0, false},
                                           {"labels", BH_FIELD_OBJECT, NULL, 0, false},
                                           {"resources", BH_FIELD_OBJECT, NULL, 0, false},
                                           {"replicas", BH_FIELD_INT, "1000000", 0, false},
                                           {"every", BH_FIELD_DURATION, NULL, 0, false},
                                           {"runTime", BH_FIELD_DURATION, NULL, 1, false},
                                           {0}};
static const struct bh_field scale[] = {
    {"apiVersion", BH_FIELD_TEXT, NULL, 0, false},  {"kind", BH_FIELD_KIND, NULL, 0, true},
    {"name", BH_FIELD_TEXT, NULL, 0, true},         {"namespace", BH_FIELD_TEXT, NULL, 0, false},
    {"replicas", BH_FIELD_INT, "1000000", 0, true}, {0}};
static const struct bh_field patch[] = {
    {"apiVersion", BH_FIELD_TEXT, NULL, 0, false},   {"kind", BH_FIELD_KIND, NULL, 0, true},
    {"name", BH_FIELD_TEXT, NULL, 0, false},         {"namespace", BH_FIELD_TEXT, NULL, 0, false},
    {"selector", BH_FIELD_SELECTOR, NULL, 0, false}, {"count", BH_FIELD_AMOUNT, NULL, 0, false},
    {"merge", BH_FIELD_PATCH, NULL, 0, false},       {"strategic", BH_FIELD_PATCH, NULL, 0, false},
    {"json", BH_FIELD_PATCH, NULL, 0, false},        {0}};
static const struct bh_field delete_[] = {
    {"apiVersion", BH_FIELD_TEXT, NULL, 0, false},   {"kind", BH_FIELD_KIND, NULL, 0, true},
    {"name", BH_FIELD_TEXT, NULL, 0, false},         {"namespace", BH_FIELD_TEXT, NULL, 0, false},
    {"selector", BH_FIELD_SELECTOR, NULL, 0, false}, {"count", BH_FIELD_AMOUNT, NULL, 0, false},
    {"grace", BH_FIELD_DURATION, NULL, 0, false},    {0}};
static const struct bh_field nodes[] = {{"name", BH_FIELD_TEXT, NULL, 0, false},
                                        {"selector", BH_FIELD_SELECTOR, NULL, 0, false},
                                        {"count", BH_FIELD_AMOUNT, NULL, 0, false},
                                        {0}};
static const struct bh_field node_failure[] = {{"name", BH_FIELD_TEXT, NULL, 0, false},
                                               {"selector", BH_FIELD_SELECTOR, NULL, 0, false},
                                               {"count", BH_FIELD_AMOUNT, NULL, 0, false},
                                               {"for", BH_FIELD_DURATION, NULL, 1, false},
                                               {0}};
static const struct bh_field churn[] = {
    {"delete", BH_FIELD_AMOUNT, NULL, 0, true},   {"of", BH_FIELD_SELECTOR, NULL, 0, false},
    {"namespace", BH_FIELD_TEXT, NULL, 0, false}, {"every", BH_FIELD_DURATION, NULL, 1, true},
    {"for", BH_FIELD_DURATION, NULL, 1, true},    {0}};
static const struct bh_field load[] = {{"format", BH_FIELD_ENUM, "openb|record", 0, true},
                                       {"nodes", BH_FIELD_PATH, NULL, 0, false},
                                       {"pods", BH_FIELD_PATH, NULL, 0, false},
                                       {"file", BH_FIELD_PATH, NULL, 0, false},
                                       {"speed", BH_FIELD_NUMBER, NULL, 0, false},
                                       {"limit", BH_FIELD_INT, "10000000", 1, false},
                                       {"from", BH_FIELD_DURATION, NULL, 0, false},
                                       {"every", BH_FIELD_DURATION, NULL, 1, false},
                                       {"stay", BH_FIELD_BOOL, NULL, 0, false},
                                       {0}};
static const struct bh_field done[] = {{0}};
static const struct bh_field expect[] = {{"name", BH_FIELD_TEXT, NULL, 0, false},
                                         {"at", BH_FIELD_DURATION, NULL, 0, false},
                                         {"scheduler", BH_FIELD_TEXT, NULL, 0, false},
                                         {"pods", BH_FIELD_SELECTOR, NULL, 0, false},
                                         {"namespace", BH_FIELD_TEXT, NULL, 0, false},
                                         {"count", BH_FIELD_INT, NULL, 0, false},
                                         {"scheduled", BH_FIELD_AMOUNT, NULL, 0, false},
                                         {"pending", BH_FIELD_AMOUNT, NULL, 0, false},
                                         {"reason", BH_FIELD_TEXT, NULL, 0, false},
                                         {"node", BH_FIELD_TEXT, NULL, 0, false},
                                         {"topologyKey", BH_FIELD_TEXT, NULL, 0, false},
                                         {"maxSkew", BH_FIELD_INT, NULL, 0, false},
                                         {"utilisation", BH_FIELD_TEXT, NULL, 0, false},
                                         {"metric", BH_FIELD_TEXT, NULL, 0, false},
                                         {"atLeast", BH_FIELD_NUMBER, NULL, 0, false},
                                         {"atMost", BH_FIELD_NUMBER, NULL, 0, false},
                                         {0}};
static const struct bh_field scheduler[] = {
    {"name", BH_FIELD_TEXT, NULL, 0, true}, {"config", BH_FIELD_CONFIG, NULL, 0, false}, {0}};
static const struct bh_field step_fields[] = {
    {"at", BH_FIELD_DURATION, NULL, 0, false},
    {"step", BH_FIELD_INT, NULL, 0, false},
    {"until", BH_FIELD_UNTIL, NULL, 0, false},
    {"create", BH_FIELD_MANIFESTS, NULL, 0, false},
    {"files", BH_FIELD_PATHS, NULL, 0, false},
    {"generate", BH_FIELD_STRUCT, generate, 0, false},
    {"scale", BH_FIELD_STRUCT, scale, 0, false},
    {"patch", BH_FIELD_STRUCT, patch, 0, false},
    {"delete", BH_FIELD_STRUCT, delete_, 0, false},
    {"cordon", BH_FIELD_STRUCT, nodes, 0, false},
    {"uncordon", BH_FIELD_STRUCT, nodes, 0, false},
    {"drain", BH_FIELD_STRUCT, nodes, 0, false},
    {"nodeFailure", BH_FIELD_STRUCT, node_failure, 0, false},
    {"churn", BH_FIELD_STRUCT, churn, 0, false},
    {"load", BH_FIELD_STRUCT, load, 0, false},
    {"done", BH_FIELD_STRUCT, done, 0, false},
    {0}};
const struct bh_field bh_scenario_spec[] = {{"seed", BH_FIELD_INT, NULL, 0, false},
                                            {"tieBreak", BH_FIELD_ENUM, "random|first", 0, false},
                                            {"start", BH_FIELD_ENUM, "empty|cluster", 0, false},
                                            {"begin", BH_FIELD_TIME, NULL, 0, false},
                                            {"clock", BH_FIELD_ENUM, "virtual", 0, false},
                                            {"decisionTime", BH_FIELD_DURATION, NULL, 1, false},
                                            {"kubeletDelay", BH_FIELD_DURATION, NULL, 0, false},
                                            {"sample", BH_FIELD_DURATION, NULL, 1, false},
                                            {"setup", BH_FIELD_STRUCTS, step_fields, 0, false},
                                            {"schedulers", BH_FIELD_STRUCTS, scheduler, 0, false},
                                            {"timeline", BH_FIELD_STRUCTS, step_fields, 0, false},
                                            {"until", BH_FIELD_UNTIL, NULL, 0, false},
                                            {"atMost", BH_FIELD_DURATION, NULL, 1, false},
                                            {"expect", BH_FIELD_STRUCTS, expect, 0, false},
                                            {0}};

/* ---- saying what is wrong -------------------------------------------------------------------- */

int bh_check_fail(struct bh_check *c, const struct bh_json *at, const char *key, const char *fmt,
                  ...)
{
    const char *path = bh_buf_str(&c->path);
    va_list ap;

    snprintf(c->e->field, sizeof c->e->field, "%s%s%s", path, key && *path ? "." : "",
             key ? key : "");
    c->e->line = at ? at->line : 0;
    va_start(ap, fmt);
    vsnprintf(c->e->message, sizeof c->e->message, fmt, ap);
    va_end(ap);
    return -EINVAL;
}

size_t bh_check_push(struct bh_check *c, const char *fmt, ...)
{
    size_t mark = c->path.n;
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&c->path, fmt, ap);
    va_end(ap);
    return mark;
}

void bh_check_pop(struct bh_check *c, size_t mark)
{
    c->path.n = mark;
    if (c->path.p)
        c->path.p[mark] = '\0';
}

/* What stands there, for a message. */
static const char *shown(const struct bh_json *v, char out[static 80])
{
    static const char *const names[] = {"null", "a boolean", "", "", "a list", "an object"};

    if (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER)
        snprintf(out, 80, "\"%.60s\"", v->s.p);
    else
        snprintf(out, 80, "%s", names[v->type]);
    return out;
}

static int wants(struct bh_check *c, const struct bh_json *v, const char *what)
{
    char found[80];

    return bh_check_fail(c, v, NULL, "expected %s, found %s", what, shown(v, found));
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool duration_of(const struct bh_json *v, int64_t *ret)
{
    int64_t zero;

    if (v->type == BH_JSON_NUMBER && bh_json_i64(v, &zero) && zero == 0) {
        *ret = 0;
        return true;
    }
    return v->type == BH_JSON_STRING && bh_parse_duration_ns(v->s.p, ret) == 0 && *ret >= 0;
}

int64_t bh_field_duration(const struct bh_json *obj, const char *key, int64_t dflt)
{
    const struct bh_json *v = bh_json_get(obj, key);
    int64_t ns;

    return v && duration_of(v, &ns) ? ns : dflt;
}

/* "N%" */
static bool percent_of(const struct bh_json *v, double *ret)
{
    char *end;

    if (v->type != BH_JSON_STRING)
        return false;
    *ret = strtod(v->s.p, &end);
    return end > v->s.p && bh_streq(end, "%") && *ret >= 0 && *ret <= 100;
}

int64_t bh_field_amount(const struct bh_json *v, int64_t total)
{
    double percent;
    int64_t n = 0;

    if (v && percent_of(v, &percent))
        return (int64_t)((percent * (double)total + 99.999999) / 100);
    (void)(v && bh_json_i64(v, &n));
    return n;
}

static int check_int(struct bh_check *c, const struct bh_field *f, const struct bh_json *v)
{
    int64_t n, most = f->arg ? strtoll(f->arg, NULL, 10) : INT64_MAX;
    char text[80];

    if (v->type == BH_JSON_NUMBER && bh_json_i64(v, &n) && n >= f->min && n <= most)
        return 0;
    if (most == INT64_MAX)
        snprintf(text, sizeof text, "a whole number from %lld on", (long long)f->min);
    else
        snprintf(text, sizeof text, "a whole number from %lld to %lld", (long long)f->min,
                 (long long)most);
    return wants(c, v, text);
}

static int check_enum(struct bh_check *c, const struct bh_field *f, const struct bh_json *v)
{
    const char *p = f->arg, *end;
    size_t n = v->type == BH_JSON_STRING ? v->s.n : 0;
    char text[80];

    for (; n && p; p = end ? end + 1 : NULL) {
        end = strchr(p, '|');
        if ((end ? (size_t)(end - p) : strlen(p)) == n && memcmp(p, v->s.p, n) == 0)
            return 0;
    }
    snprintf(text, sizeof text, "%s", (const char *)f->arg);
    for (char *bar; (bar = strchr(text, '|'));)
        *bar = '/';
    return wants(c, v, text);
}

static int check_selector(struct bh_check *c, const struct bh_json *v)
{
    struct bh_selector *sel = NULL;
    struct bh_err err = {0};

    if (v->type != BH_JSON_STRING)
        return wants(c, v, "a label selector such as \"app=web,tier!=db\"");
    int rc = bh_selector_parse(v->s.p, &sel, &err);
    bh_selector_free(sel);
    return rc < 0 ? bh_check_fail(c, v, NULL, "%s", err.msg) : 0;
}

static int check_path(struct bh_check *c, const struct bh_json *v)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_err err = {0};
    const char *text;
    size_t n;

    if (v->type != BH_JSON_STRING || !v->s.n)
        return wants(c, v, "the name of a file");
    if (!c->s->files_allowed)
        return bh_check_fail(c, v, NULL,
                             "files cannot be read here: put the objects into the scenario");
    int rc = bh_scenario_file(c->s, &a, v->s.p, &text, &n, &err);
    return rc < 0 ? bh_check_fail(c, v, NULL, "%s", err.msg) : 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

int bh_manifests_parse(struct bh_arena *a, const char *text, size_t n, struct bh_json **ret_list,
                       struct bh_err *err)
{
    struct bh_json *docs, *list = bh_json_new(a, BH_JSON_ARRAY), *next;
    int rc = bh_yaml_parse_all(a, text, n, BH_JSON_STRICT, &docs, err);

    if (rc < 0)
        return rc;
    for (struct bh_json *d = docs->c.first; d; d = next) {
        next = d->next;
        struct bh_json *items = bh_json_get_list(d, "items");
        const char *kind = bh_json_get_str(d, "kind");
        size_t len = kind ? strlen(kind) : 0;
        if (!items || len < 4 || !bh_streq(kind + len - 4, "List")) {
            bh_json_push(list, bh_json_clone(a, d));
            continue;
        }
        bh_json_each(i, items) {
            bh_json_push(list, bh_json_clone(a, i));
        }
    }
    *ret_list = list;
    return 0;
}

int bh_check_manifest(struct bh_check *c, const struct bh_json *v)
{
    const char *kind = bh_json_get_str(v, "kind"), *api = bh_json_get_str(v, "apiVersion");

    if (v->type != BH_JSON_OBJECT)
        return wants(c, v, "an object with apiVersion, kind and metadata");
    if (!kind || !api)
        return bh_check_fail(c, v, kind ? "apiVersion" : "kind", "is missing");
    if (!bh_sim_type_of_kind(api, kind))
        return bh_check_fail(c, bh_json_get(v, "kind"), "kind",
                             "%.80s of %.80s is not served by the simulator", kind, api);
    const struct bh_json *meta = bh_json_get(v, "metadata");
    if (!bh_json_get_str(meta, "name") && !bh_json_get_str(meta, "generateName"))
        return bh_check_fail(c, meta ? meta : v, "metadata.name", "is missing");
    return 0;
}

static int check_manifests(struct bh_check *c, const struct bh_json *v)
{
    struct bh_json *list = NULL;
    struct bh_err err = {0};
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = (size_t)1 << 30};
    size_t i = 0;
    int rc = 0;

    if (v->type == BH_JSON_OBJECT)
        return bh_check_manifest(c, v);
    if (v->type == BH_JSON_STRING) {
        rc = bh_manifests_parse(&a, v->s.p, v->s.n, &list, &err);
        if (rc < 0)
            rc = bh_check_fail(c, v, NULL, "%s", err.msg);
    } else if (v->type != BH_JSON_ARRAY) {
        rc = wants(c, v, "an object, a list of objects, or YAML text");
    }
    bh_json_each(o, rc < 0 ? NULL : list ? list : v) {
        size_t mark = bh_check_push(c, "[%zu]", i++);
        if (rc >= 0)
            rc = bh_check_manifest(c, o);
        bh_check_pop(c, mark);
        if (rc < 0 && list)
            c->e->line += v->line; /* about where it is: lines of the text count from 1 */
        if (rc < 0)
            break;
    }
    return rc;
}

static int check_text_or_object(struct bh_check *c, const struct bh_field *f,
                                const struct bh_json *v)
{
    struct bh_json *tree;
    struct bh_err err = {0};
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = (size_t)64 << 20};

    if (v->type == BH_JSON_OBJECT || (v->type == BH_JSON_ARRAY && f->type == BH_FIELD_PATCH))
        return 0;
    if (v->type != BH_JSON_STRING)
        return wants(c, v, "an object, or YAML text of one");
    int rc = bh_yaml_parse(&a, v->s.p, v->s.n, BH_JSON_STRICT, &tree, &err);
    if (rc < 0)
        rc = bh_check_fail(c, v, NULL, "%s", err.msg);
    else if (tree->type != BH_JSON_OBJECT &&
             !(tree->type == BH_JSON_ARRAY && f->type == BH_FIELD_PATCH))
        rc = wants(c, v, "an object, or YAML text of one");
    return rc;
}

static int check_kind(struct bh_check *c, const struct bh_json *v)
{
    const struct bh_sim_type *t =
        v->type == BH_JSON_STRING ? bh_sim_type_of_kind(NULL, v->s.p) : NULL;

    if (t && !(t->flags & BH_SIM_REVIEW))
        return 0;
    return wants(c, v, "a kind that the simulator serves, such as Pod or Deployment");
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int check_structs(struct bh_check *c, const struct bh_field *f, const struct bh_json *v)
{
    size_t i = 0;

    if (v->type != BH_JSON_ARRAY)
        return wants(c, v, "a list");
    bh_json_each(e, v) {
        size_t mark = bh_check_push(c, "[%zu]", i++);
        int rc = bh_check_fields(c, f->arg, e);
        if (rc < 0)
            return rc;
        bh_check_pop(c, mark);
    }
    return 0;
}

static int check_paths(struct bh_check *c, const struct bh_json *v)
{
    if (v->type != BH_JSON_ARRAY)
        return check_path(c, v);
    bh_json_each(e, v) {
        int rc = check_path(c, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_value(struct bh_check *c, const struct bh_field *f, const struct bh_json *v)
{
    int64_t ns;
    double x;

    switch (f->type) {
    case BH_FIELD_TEXT:
        return v->type == BH_JSON_STRING && v->s.n ? 0 : wants(c, v, "a text");
    case BH_FIELD_INT:
        return check_int(c, f, v);
    case BH_FIELD_NUMBER:
        return v->type == BH_JSON_NUMBER && strtod(v->s.p, NULL) >= 0
                   ? 0
                   : wants(c, v, "a number that is not negative");
    case BH_FIELD_BOOL:
        return v->type == BH_JSON_BOOL ? 0 : wants(c, v, "true or false");
    case BH_FIELD_DURATION:
        return duration_of(v, &ns) && ns >= f->min
                   ? 0
                   : wants(c, v,
                           f->min ? "a duration > 0 such as 30s or 5m"
                                  : "a duration such as 30s or 5m");
    case BH_FIELD_TIME:
        return v->type == BH_JSON_STRING && bh_time_parse_ns(v->s.p, &ns) == 0 && ns >= 0
                   ? 0
                   : wants(c, v, "a time such as 2026-01-01T00:00:00Z");
    case BH_FIELD_ENUM:
        return check_enum(c, f, v);
    case BH_FIELD_AMOUNT:
        return (v->type == BH_JSON_NUMBER && bh_json_i64(v, &ns) && ns >= 0) || percent_of(v, &x)
                   ? 0
                   : wants(c, v, "a whole number, or a share such as 5%");
    case BH_FIELD_SELECTOR:
        return check_selector(c, v);
    case BH_FIELD_OBJECT:
        return v->type == BH_JSON_OBJECT ? 0 : wants(c, v, "an object");
    case BH_FIELD_MANIFESTS:
        return check_manifests(c, v);
    case BH_FIELD_TEMPLATE:
    case BH_FIELD_PATCH:
        return check_text_or_object(c, f, v);
    case BH_FIELD_PATHS:
        return check_paths(c, v);
    case BH_FIELD_PATH:
        return check_path(c, v);
    case BH_FIELD_KIND:
        return check_kind(c, v);
    case BH_FIELD_UNTIL:
        return (v->type == BH_JSON_STRING && bh_streq(v->s.p, "quiescent")) ||
                       (duration_of(v, &ns) && ns > 0)
                   ? 0
                   : wants(c, v, "\"quiescent\", or a duration > 0");
    case BH_FIELD_STRUCT:
        return bh_check_fields(c, f->arg, v);
    case BH_FIELD_STRUCTS:
        return check_structs(c, f, v);
    case BH_FIELD_CONFIG:
        return v->type == BH_JSON_OBJECT || (v->type == BH_JSON_STRING && v->s.n)
                   ? 0
                   : wants(c, v, "a KubeSchedulerConfiguration, as an object, text or file");
    }
    return 0;
}

static int unknown_field(struct bh_check *c, const struct bh_field *table, const struct bh_json *m)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf known = {0};

    for (const struct bh_field *f = table; f->name; f++)
        bh_buf_addf(&known, "%s%s", known.n ? ", " : "", f->name);
    int rc =
        bh_check_fail(c, m, m->key.p, known.n ? "unknown field; known are: %s" : "unknown field",
                      bh_buf_str(&known));
    return rc;
}

int bh_check_fields(struct bh_check *c, const struct bh_field *table, const struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT)
        return wants(c, v, "an object");
    bh_json_each(m, v) {
        const struct bh_field *f = table;
        while (f->name && !bh_streq(f->name, m->key.p))
            f++;
        if (!f->name)
            return unknown_field(c, table, m);
        size_t mark = bh_check_push(c, "%s%s", c->path.n ? "." : "", m->key.p);
        int rc = check_value(c, f, m);
        if (rc < 0)
            return rc;
        bh_check_pop(c, mark);
    }
    for (const struct bh_field *f = table; f->name; f++)
        if (f->required && !bh_json_get(v, f->name))
            return bh_check_fail(c, v, f->name, "is missing");
    return 0;
}
