/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/schema.c - which fields a scenario has, and the check of a document
 *
 * The first thing that is wrong ends the check. Afterwards the rest of the folder reads the trees
 * without looking twice.
 */
#include "simulator/scenario/scenario_int.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "common/data/yaml.h"
#include "common/k8s/kinds.h"
#include "common/k8s/quantity.h"
#include "scheduler/framework/plugin.h"
#include "simulator/schema/schema.h"
#include "simulator/server/sim.h"

static const char schema[] =
#include "simulator/scenario/schema.data.h"
    ;

/* What the text says, line by line; type "": the name of the object whose fields follow. */
struct field {
    char name[24], type[12], arg[24];
    int64_t min, most;
    bool required;
};
static struct field fields[160];

static void read_schema(void)
{
    struct field *f = fields;

    for (const char *p = schema; *p; p += strcspn(p, "\n") + 1, f++) {
        char line[80];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
        bh_assert(f + 1 < fields + BH_ARRAY_LEN(fields));
        f->required = *line == '!';
        f->most = INT64_MAX;
        sscanf(line + strspn(line, "!@"), "%23s %11s %23s", f->name, f->type, f->arg);
        sscanf(f->arg, "%" SCNd64 "..%" SCNd64, &f->min, &f->most);
    }
}

static const struct field *fields_of(const char *object)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct field *f = fields;

    (void)pthread_once(&once, read_schema);
    for (; *f->type || !bh_streq(f->name, object); f++)
        bh_assert(f + 1 < fields + BH_ARRAY_LEN(fields));
    return f + 1;
}

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

static int check_int(struct bh_check *c, const struct field *f, const struct bh_json *v)
{
    char text[80];
    int64_t n;

    if (v->type == BH_JSON_NUMBER && bh_json_i64(v, &n) && n >= f->min && n <= f->most)
        return 0;
    if (f->most == INT64_MAX)
        snprintf(text, sizeof text, "a whole number from %lld on", (long long)f->min);
    else
        snprintf(text, sizeof text, "a whole number from %lld to %lld", (long long)f->min,
                 (long long)f->most);
    return wants(c, v, text);
}

/* One of "a|b". */
static int check_enum(struct bh_check *c, const struct field *f, const struct bh_json *v)
{
    const char *p = f->arg, *end;
    size_t n = v->type == BH_JSON_STRING ? v->s.n : 0;
    char text[sizeof f->arg];

    for (; n && p; p = end ? end + 1 : NULL) {
        end = strchr(p, '|');
        if ((end ? (size_t)(end - p) : strlen(p)) == n && memcmp(p, v->s.p, n) == 0)
            return 0;
    }
    memcpy(text, f->arg, sizeof text);
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

/* ---- objects --------------------------------------------------------------------------------- */

int bh_manifests_parse(struct bh_arena *a, const char *text, size_t n, struct bh_json **ret_list,
                       struct bh_err *err)
{
    struct bh_json *docs, *list = bh_json_new(a, BH_JSON_ARRAY), *next;
    int rc = bh_yaml_parse_all(a, text, n, BH_JSON_STRICT | BH_JSON_NUL, &docs, err);

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
        bh_json_each(i, items)
            bh_json_push(list, bh_json_clone(a, i));
    }
    *ret_list = list;
    return 0;
}

/* The first member that v's kind does not have. */
static int check_known(struct bh_check *c, const struct bh_json *v)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_oas_report rep = {0};

    bh_oas_check_whole(bh_json_clone(&a, v), &rep);
    if (rep.n)
        bh_oas_sentence(&rep, 0, &b);
    bh_buf_fini(&rep.unknown);
    const struct bh_json at = {.line = rep.at[0].line};
    return rep.n ? bh_check_fail(c, &at, NULL, "%s", bh_buf_str(&b)) : 0;
}

int bh_check_kind(struct bh_check *c, const struct bh_json *at, const char *key,
                  const char *api_version, const char *kind)
{
    const struct bh_scenario_error before = *c->e;

    if (bh_sim_type_of_kind(api_version, kind))
        return 0;
    for (size_t i = 0; i < c->n_unserved; i++)
        if (bh_streq(c->unserved[i].kind, kind) &&
            bh_streq(c->unserved[i].api_version, api_version))
            return 0;
    (void)bh_check_fail(c, at, key,
                        "%.80s of %.80s is not served by the simulator, and no plugin of the "
                        "schedulers reads it",
                        kind, api_version);
    c->e->line += c->text_line;
    BH_GROW(c->unserved, c->n_unserved, c->cap_unserved);
    c->unserved[c->n_unserved++] =
        (struct bh_unserved){bh_strdup(api_version), bh_strdup(kind), *c->e};
    *c->e = before;
    return 0;
}

/* Does a plugin of any scheduler read objects of that kind? */
static bool is_read(const struct bh_scenario *s, enum bh_kind kind)
{
    for (uint32_t i = 0; i < s->n_schedulers; i++) {
        const struct bh_sched_config *config = s->schedulers[i].config;
        for (uint32_t k = 0; k < config->n_profiles; k++) {
            const struct bh_profile_config *p = &config->profiles[k];
            for (unsigned at = 0; at < BH_POINT_COUNT; at++)
                for (uint32_t x = 0; x < p->n_points[at]; x++) {
                    const struct bh_plugin *plugin = bh_plugin_find(p->points[at][x].name);
                    if (plugin && plugin->kinds >> kind & 1)
                        return true;
                }
        }
    }
    return false;
}

int bh_check_unserved(struct bh_check *c, int rc)
{
    for (size_t i = 0; i < c->n_unserved; i++) {
        struct bh_unserved *u = &c->unserved[i];
        const struct bh_kind_info *k = bh_kind_find_any(u->api_version, u->kind);
        if (rc >= 0 && !(k && (k->kind < BH_KIND_CUSTOM || is_read(c->s, k->kind)))) {
            *c->e = u->e;
            rc = -EINVAL;
        }
        free(u->api_version);
        free(u->kind);
    }
    free(c->unserved);
    return rc;
}

int bh_check_manifest(struct bh_check *c, const struct bh_json *v)
{
    const char *kind = bh_json_get_str(v, "kind"), *api = bh_json_get_str(v, "apiVersion");

    if (v->type != BH_JSON_OBJECT)
        return wants(c, v, "an object with apiVersion, kind and metadata");
    if (!kind || !api)
        return bh_check_fail(c, v, kind ? "apiVersion" : "kind", "is missing");
    (void)bh_check_kind(c, bh_json_get(v, "kind"), "kind", api, kind);
    const struct bh_json *meta = bh_json_get(v, "metadata");
    if (!bh_json_get_str(meta, "name") && !bh_json_get_str(meta, "generateName"))
        return bh_check_fail(c, meta ? meta : v, "metadata.name", "is missing");
    return check_known(c, v);
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
    c->text_line = list ? v->line : 0;
    bh_json_each(o, rc < 0 ? NULL : list ? list : v) {
        size_t mark = bh_check_push(c, "[%zu]", i++);
        rc = rc < 0 ? rc : bh_check_manifest(c, o);
        bh_check_pop(c, mark);
        if (rc < 0 && list)
            c->e->line += v->line; /* about where it is: lines of the text count from 1 */
        if (rc < 0)
            break;
    }
    c->text_line = 0;
    return rc;
}

/* list: may be one, too. */
static int check_text_or_object(struct bh_check *c, const struct bh_json *v, bool list)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = (size_t)64 << 20};
    struct bh_json *tree = NULL;
    struct bh_err err = {0};

    if (v->type == BH_JSON_STRING &&
        bh_yaml_parse(&a, v->s.p, v->s.n, BH_JSON_STRICT, &tree, &err) < 0)
        return bh_check_fail(c, v, NULL, "%s", err.msg);
    enum bh_json_type type = tree ? tree->type : v->type;
    return type == BH_JSON_OBJECT || (list && type == BH_JSON_ARRAY)
               ? 0
               : wants(c, v, "an object, or YAML text of one");
}

/* in: where it stands; with an apiVersion there, both are looked at together (bh_check_kind). */
static int check_kind(struct bh_check *c, const struct bh_json *in, const struct bh_json *v)
{
    const struct bh_sim_type *t =
        v->type == BH_JSON_STRING ? bh_sim_type_of_kind(NULL, v->s.p) : NULL;

    if (t ? !(t->flags & BH_SIM_REVIEW) : bh_json_cstr(v) && bh_json_get_str(in, "apiVersion"))
        return 0;
    return wants(c, v,
                 "a kind that the simulator serves, such as Pod or Deployment (others need "
                 "apiVersion, too)");
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int check_structs(struct bh_check *c, const char *object, const struct bh_json *v)
{
    size_t i = 0;

    if (v->type != BH_JSON_ARRAY)
        return wants(c, v, "a list");
    bh_json_each(e, v) {
        size_t mark = bh_check_push(c, "[%zu]", i++);
        int rc = bh_check_fields(c, object, e);
        if (rc < 0)
            return rc;
        bh_check_pop(c, mark);
    }
    return 0;
}

/* objects: it is a file of manifests. */
static int check_path(struct bh_check *c, const struct bh_json *v, bool objects)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_err err = {0};
    struct bh_json *list = NULL;
    const char *text;
    size_t n;

    if (v->type != BH_JSON_STRING || !v->s.n)
        return wants(c, v, "the name of a file");
    if (!c->s->files_allowed)
        return bh_check_fail(c, v, NULL,
                             "files cannot be read here: put the objects into the scenario");
    int rc = bh_scenario_file(c->s, &a, v->s.p, &text, &n, &err);
    if (rc >= 0 && objects)
        rc = bh_manifests_parse(&a, text, n, &list, &err);
    bh_json_each(o, rc < 0 ? NULL : list)
        rc = rc < 0 ? rc : bh_oas_refuse_unknown(o, o->line, &err);
    return rc < 0 ? bh_check_fail(c, v, NULL, "%s", err.msg) : 0;
}

static int check_paths(struct bh_check *c, const struct bh_json *v)
{
    if (v->type != BH_JSON_ARRAY)
        return check_path(c, v, true);
    bh_json_each(e, v) {
        int rc = check_path(c, e, true);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The types that need no more than a look. */
static int check_plain(struct bh_check *c, const char *type, const struct bh_json *v)
{
    bool text = v->type == BH_JSON_STRING && v->s.n, number = v->type == BH_JSON_NUMBER;
    int64_t ns = -1;
    double x;
    bool spans = duration_of(v, &ns);

    if (bh_streq(type, "text"))
        return text ? 0 : wants(c, v, "a text");
    if (bh_streq(type, "number"))
        return number && strtod(v->s.p, NULL) >= 0 ? 0
                                                   : wants(c, v, "a number that is not negative");
    if (bh_streq(type, "bool"))
        return v->type == BH_JSON_BOOL ? 0 : wants(c, v, "true or false");
    if (bh_streq(type, "duration"))
        return spans ? 0 : wants(c, v, "a duration such as 30s or 5m");
    if (bh_streq(type, "period"))
        return spans && ns > 0 ? 0 : wants(c, v, "a duration > 0 such as 30s or 5m");
    if (bh_streq(type, "until"))
        return (text && bh_streq(v->s.p, "quiescent")) || (spans && ns > 0)
                   ? 0
                   : wants(c, v, "\"quiescent\", or a duration > 0");
    if (bh_streq(type, "time"))
        return text && bh_time_parse_ns(v->s.p, &ns) == 0 && ns >= 0
                   ? 0
                   : wants(c, v, "a time such as 2026-01-01T00:00:00Z");
    if (bh_streq(type, "amount"))
        return (number && bh_json_i64(v, &ns) && ns >= 0) || percent_of(v, &x)
                   ? 0
                   : wants(c, v, "a whole number, or a share such as 5%");
    if (bh_streq(type, "object"))
        return v->type == BH_JSON_OBJECT ? 0 : wants(c, v, "an object");
    bh_assert(bh_streq(type, "config"));
    return text || v->type == BH_JSON_OBJECT
               ? 0
               : wants(c, v, "a KubeSchedulerConfiguration, as an object, text or file");
}

static int check_value(struct bh_check *c, const struct field *f, const struct bh_json *in,
                       const struct bh_json *v)
{
    bool patch = bh_streq(f->type, "patch");

    if (bh_streq(f->type, "struct"))
        return bh_check_fields(c, f->arg, v);
    if (bh_streq(f->type, "structs"))
        return check_structs(c, f->arg, v);
    if (bh_streq(f->type, "int"))
        return check_int(c, f, v);
    if (bh_streq(f->type, "enum"))
        return check_enum(c, f, v);
    if (bh_streq(f->type, "selector"))
        return check_selector(c, v);
    if (bh_streq(f->type, "manifests"))
        return check_manifests(c, v);
    if (patch || bh_streq(f->type, "template"))
        return check_text_or_object(c, v, patch);
    if (bh_streq(f->type, "paths"))
        return check_paths(c, v);
    if (bh_streq(f->type, "path"))
        return check_path(c, v, false);
    return bh_streq(f->type, "kind") ? check_kind(c, in, v) : check_plain(c, f->type, v);
}

/* Words of a strategic patch: $patch, $retainKeys ... */
static void drop_directives(struct bh_json *v)
{
    struct bh_json *next;

    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_ARRAY)
        return;
    for (struct bh_json *m = v->c.first; m; m = next) {
        next = m->next;
        if (v->type == BH_JSON_OBJECT && m->key.p[0] == '$')
            (void)bh_json_remove(v, m);
        else
            drop_directives(m);
    }
}

/* What a template or a patch sets has to be a field of the kind. */
static int check_part(struct bh_check *c, const struct bh_json *what, const char *part)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {.limit_bytes = (size_t)64 << 20};
    const struct bh_sim_type *t =
        bh_sim_type_of_kind(bh_json_get_str(what, "apiVersion"), bh_json_get_text(what, "kind"));
    const struct bh_json *v = bh_json_get(what, part);
    struct bh_json *tree = NULL;
    struct bh_err err = {0};
    char version[80];

    if (v && v->type == BH_JSON_STRING)
        (void)bh_yaml_parse(&a, v->s.p, v->s.n, BH_JSON_STRICT, &tree, NULL); /* was checked */
    else if (v)
        tree = bh_json_clone(&a, v);
    if (!t || !tree || tree->type != BH_JSON_OBJECT)
        return 0;
    drop_directives(tree);
    bh_sim_type_api_version(t, version);
    bh_json_set_str(&a, tree, "apiVersion", version);
    bh_json_set_str(&a, tree, "kind", t->kind);
    if (bh_oas_refuse_unknown(tree, 0, &err) == 0)
        return 0;
    return bh_check_fail(c, v, part, "%s", err.msg);
}

static int check_parts(struct bh_check *c, const struct bh_json *what)
{
    static const char *const parts[] = {"template", "merge", "strategic"};
    int rc = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(parts) && rc == 0; i++)
        rc = check_part(c, what, parts[i]);
    return rc;
}

static int unknown_field(struct bh_check *c, const struct field *first, const struct bh_json *m)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf known = {0};
    unsigned best = 3; /* letters off: no slip of the finger any more */
    const char *near = NULL;

    for (const struct field *f = first; *f->type; f++) {
        unsigned away = bh_edits(m->key.p, f->name);
        bh_buf_addf(&known, "%s%s", known.n ? ", " : "", f->name);
        if (away < best && away < strlen(f->name)) {
            best = away;
            near = f->name;
        }
    }
    return bh_check_fail(c, m, m->key.p, "unknown field%s%s%s%s%s", near ? " (did you mean " : "",
                         near ? near : "", near ? "?)" : "", known.n ? "; known are: " : "",
                         bh_buf_str(&known));
}

int bh_check_fields(struct bh_check *c, const char *object, const struct bh_json *v)
{
    const struct field *first = fields_of(object);

    if (v->type != BH_JSON_OBJECT)
        return wants(c, v, "an object");
    bh_json_each(m, v) {
        const struct field *f = first;
        while (*f->type && !bh_streq(f->name, m->key.p))
            f++;
        if (!*f->type)
            return unknown_field(c, first, m);
        size_t mark = bh_check_push(c, "%s%s", c->path.n ? "." : "", m->key.p);
        int rc = check_value(c, f, v, m);
        if (rc < 0)
            return rc;
        bh_check_pop(c, mark);
    }
    for (const struct field *f = first; *f->type; f++)
        if (f->required && !bh_json_get(v, f->name))
            return bh_check_fail(c, v, f->name, "is missing");
    return check_parts(c, v);
}
