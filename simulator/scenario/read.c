/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/read.c - a scenario from text: documents, defaults, schedulers, KEP-140's form
 *
 * One document is the scenario, the others are objects that are there from the start. Fields stand
 * at the top, or under spec, as in the object that the simulator serves.
 */
#include "simulator/scenario/scenario_int.h"

#include <errno.h>
#include <libgen.h>

#include "common/data/yaml.h"
#include "common/k8s/quantity.h"

#define SECOND_NS      INT64_C(1000000000)
#define TEXT_MAX_BYTES ((size_t)256 << 20)
#define BEGIN          "2026-01-01T00:00:00Z"
#define KEP_GROUP      "simulation.kube-scheduler-simulator.x-k8s.io/"
#define MOST_NS        (INT64_C(400) * 86400 * SECOND_NS)

/* ---- files ----------------------------------------------------------------------------------- */

char *bh_scenario_path(const struct bh_scenario *s, const char *path)
{
    return *path == '/' || !s->dir ? bh_strdup(path) : bh_asprintf("%s/%s", s->dir, path);
}

int bh_scenario_file(const struct bh_scenario *s, struct bh_arena *a, const char *path,
                     const char **ret, size_t *ret_n, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *full = bh_scenario_path(s, path);
    BH_CLEANUP(bh_freep) char *text = NULL;
    int rc = bh_read_file(full, TEXT_MAX_BYTES, &text, ret_n);

    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%.200s\": %s", path, strerror(-rc));
    *ret = bh_arena_memdup(a, text, *ret_n + 1);
    return 0;
}

static const char *dot(const struct bh_check *c)
{
    return c->path.n ? "." : "";
}

/* ---- steps ----------------------------------------------------------------------------------- */

const struct bh_action *bh_action_of(const struct bh_json *step, const struct bh_json **ret_what)
{
    const struct bh_action *found = NULL;

    for (const struct bh_action *x = bh_scenario_actions; x->name; x++) {
        const struct bh_json *what = bh_json_get(step, x->name);
        if (what && found)
            return NULL;
        if (what) {
            found = x;
            *ret_what = what;
        }
    }
    return found;
}

static int check_patch(struct bh_check *c, const struct bh_json *what)
{
    unsigned n = !!bh_json_get(what, "merge") + !!bh_json_get(what, "strategic") +
                 !!bh_json_get(what, "json");

    return n == 1 ? 0
                  : bh_check_fail(c, what, NULL, "exactly one of merge, strategic, json is needed");
}

static int check_load(struct bh_check *c, const struct bh_json *what)
{
    const struct bh_json *speed = bh_json_get(what, "speed");

    if (bh_streq(bh_json_get_text(what, "format"), "record")) {
        if (!bh_json_get(what, "file"))
            return bh_check_fail(c, what, "file", "is missing");
    } else if (!bh_json_get(what, "pods") && !bh_json_get(what, "nodes")) {
        return bh_check_fail(c, what, "pods", "is missing (or nodes)");
    }
    if (bh_json_get(what, "every") && !bh_json_get_bool(what, "stay", false))
        return bh_check_fail(c, what, "every", "has a meaning with stay: true only");
    if (speed && strtod(speed->s.p, NULL) < 1e-6)
        return bh_check_fail(c, speed, "speed", "expected a number > 0, found \"%s\"", speed->s.p);
    return 0;
}

static int check_labels(struct bh_check *c, const struct bh_json *what)
{
    bh_json_each(m, bh_json_get(what, "labels")) {
        const struct bh_json *cycle = bh_json_get_list(m, "cycle");
        bool good = m->type == BH_JSON_STRING || (cycle && cycle->c.n && m->c.n == 1);
        bh_json_each(v, good ? cycle : NULL)
            good = good && v->type == BH_JSON_STRING;
        size_t mark = bh_check_push(c, ".labels");
        if (!good)
            return bh_check_fail(c, m, m->key.p, "expected a text, or {cycle: [texts]}");
        bh_check_pop(c, mark);
    }
    return 0;
}

static int check_step(struct bh_check *c, const struct bh_json *step, bool timeline)
{
    const struct bh_json *what = NULL;
    const struct bh_action *x = bh_action_of(step, &what);
    int rc = 0;

    if (bh_json_get(step, "until")) {
        if (x || !timeline || step->next)
            return bh_check_fail(c, step, "until",
                                 "stands alone, as the last step of the timeline");
        return 0;
    }
    if (!x)
        return bh_check_fail(c, step, NULL,
                             "exactly one action is needed: create, files, generate, scale, patch, "
                             "delete, cordon, uncordon, drain, nodeFailure, churn, load or done");
    if (!timeline && (bh_json_get(step, "at") || bh_json_get(step, "step")))
        return bh_check_fail(c, step, "at", "steps of the setup have no time");
    size_t mark = bh_check_push(c, ".%s", x->name);
    const char *api = bh_json_get_str(what, "apiVersion"), *kind = bh_json_get_str(what, "kind");
    if (api && kind)
        rc = bh_check_kind(c, bh_json_get(what, "apiVersion"), "apiVersion", api, kind);
    if (x->selects && !bh_json_get(what, "name") && !bh_json_get(what, "selector") &&
        !bh_json_get(what, "count"))
        rc = bh_check_fail(c, what, NULL, "one of name, selector, count is needed");
    else if (bh_streq(x->name, "patch"))
        rc = check_patch(c, what);
    else if (bh_streq(x->name, "load"))
        rc = check_load(c, what);
    else if (bh_streq(x->name, "generate"))
        rc = check_labels(c, what);
    if (rc >= 0)
        bh_check_pop(c, mark);
    return rc;
}

static int check_steps(struct bh_check *c, const struct bh_json *list, const char *name,
                       bool timeline)
{
    const struct bh_json *timed = NULL, *stepped = NULL;
    size_t i = 0;

    bh_json_each(step, list) {
        size_t mark = bh_check_push(c, "%s%s[%zu]", dot(c), name, i++);
        int rc = check_step(c, step, timeline);
        if (rc < 0)
            return rc;
        timed = bh_json_get(step, "at") ? step : timed;
        stepped = bh_json_get(step, "step") ? step : stepped;
        if (timed && stepped)
            return bh_check_fail(c, step, "step", "a timeline has either times or step numbers");
        bh_check_pop(c, mark);
    }
    return 0;
}

static int check_expect(struct bh_check *c, const struct bh_json *e)
{
    bool pods = bh_json_get(e, "pods") || bh_json_get(e, "namespace");
    bool bound = bh_json_get(e, "atLeast") || bh_json_get(e, "atMost");
    unsigned subjects = pods + !!bh_json_get(e, "utilisation") + !!bh_json_get(e, "metric");

    if (subjects != 1)
        return bh_check_fail(c, e, NULL, "exactly one of pods, utilisation, metric is needed");
    if (!pods && !bound)
        return bh_check_fail(c, e, NULL, "atLeast or atMost is needed");
    if (!bh_json_get(e, "topologyKey") != !bh_json_get(e, "maxSkew"))
        return bh_check_fail(c, e, NULL, "topologyKey and maxSkew go together");
    if (pods && !bh_json_get(e, "count") && !bh_json_get(e, "scheduled") &&
        !bh_json_get(e, "pending") && !bh_json_get(e, "reason") && !bh_json_get(e, "node") &&
        !bh_json_get(e, "maxSkew"))
        return bh_check_fail(c, e, NULL,
                             "one of count, scheduled, pending, reason, node, maxSkew is needed");
    return 0;
}

/* ---- KEP-140 --------------------------------------------------------------------------------- */

static int kep_patch(struct bh_check *c, struct bh_arena *a, const struct bh_json *o,
                     struct bh_json *step)
{
    static const char types[] = "application/json-patch+json application/merge-patch+json "
                                "application/strategic-merge-patch+json";
    static const char *const fields[] = {"json", "merge", "strategic"};
    const char *type = bh_json_get_str(o, "patchType");
    const char *text = bh_json_get_str(o, "patch");
    struct bh_json *what = bh_json_obj_at(a, step, "patch"), *v;
    struct bh_err err = {0};

    type = type ? type : bh_json_get_str(o, "PatchType");
    int at = type ? bh_word_at(types, type) : 2;
    if (!text)
        return bh_check_fail(c, o, "patch", "is missing");
    if (bh_yaml_parse(a, text, strlen(text), BH_JSON_STRICT, &v, &err) < 0)
        return bh_check_fail(c, bh_json_get(o, "patch"), "patch", "%s", err.msg);
    if (at >= 0) {
        bh_json_set(a, what, fields[at], v);
        return 0;
    }
    return bh_check_fail(c, o, "patchType",
                         "expected application/json-patch+json, application/merge-patch+json or "
                         "application/strategic-merge-patch+json, found \"%.80s\"",
                         type);
}

/* The object an operation is about, from typeMeta and objectMeta. */
static int kep_target(struct bh_check *c, struct bh_arena *a, const struct bh_json *o,
                      struct bh_json *what)
{
    static const struct {
        const char *path, *field;
        bool required;
    } parts[] = {{"typeMeta.kind", "kind", true},
                 {"typeMeta.apiVersion", "apiVersion", false},
                 {"objectMeta.name", "name", true},
                 {"objectMeta.namespace", "namespace", false}};

    what->line = o->line;
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++) {
        const struct bh_json *v = bh_json_path(o, parts[i].path);
        if (v)
            bh_json_set(a, what, parts[i].field, bh_json_clone(a, v));
        else if (parts[i].required)
            return bh_check_fail(c, o, parts[i].path, "is missing");
    }
    return 0;
}

static int kep_operation(struct bh_check *c, struct bh_arena *a, const struct bh_json *op,
                         struct bh_json *step)
{
    static const char *const names[] = {"createOperation", "patchOperation", "deleteOperation",
                                        "doneOperation"};
    const struct bh_json *o = NULL, *v;
    size_t which = 0, n = 0;
    int rc = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        v = bh_json_get(op, names[i]);
        n += v != NULL;
        o = v ? v : o;
        which = v ? i : which;
    }
    if (n != 1)
        return bh_check_fail(c, op, NULL,
                             "exactly one of createOperation, patchOperation, deleteOperation, "
                             "doneOperation is needed");
    size_t mark = bh_check_push(c, ".%s", names[which]);
    step->line = op->line;
    if (which == 0) {
        v = bh_json_get(o, "object");
        if (!v)
            return bh_check_fail(c, o, "object", "is missing");
        bh_json_set(a, step, "create", bh_json_clone(a, v));
    } else if (which == 1) {
        rc = kep_patch(c, a, o, step);
        rc = rc < 0 ? rc : kep_target(c, a, o, bh_json_get(step, "patch"));
    } else if (which == 2) {
        rc = kep_target(c, a, o, bh_json_obj_at(a, step, "delete"));
    } else {
        bh_json_obj_at(a, step, "done");
    }
    if (rc >= 0)
        bh_check_pop(c, mark);
    return rc;
}

/* Operations become steps of a timeline; the rest of such a spec has no meaning here. */
static int kep_spec(struct bh_check *c, struct bh_arena *a, const struct bh_json *spec,
                    struct bh_json **ret)
{
    const struct bh_json *list = bh_json_get(spec, "operations");
    struct bh_json *out = bh_json_new(a, BH_JSON_OBJECT);
    struct bh_json *timeline = bh_json_set(a, out, "timeline", bh_json_new(a, BH_JSON_ARRAY));
    size_t i = 0;

    out->line = spec->line;
    if (list->type != BH_JSON_ARRAY)
        return bh_check_fail(c, list, "operations", "expected a list");
    bh_json_each(m, spec)
        if (!bh_streq(m->key.p, "operations") && !bh_streq(m->key.p, "controllers"))
            bh_json_set(a, out, m->key.p, bh_json_clone(a, m));
    bh_json_each(op, list) {
        size_t mark = bh_check_push(c, "%soperations[%zu]", dot(c), i++);
        struct bh_json *step = bh_json_new(a, BH_JSON_OBJECT);
        bh_json_set_i64(a, step, "step", bh_json_get_i64(op, "step", 0));
        int rc = kep_operation(c, a, op, step);
        if (rc < 0)
            return rc;
        bh_json_push(timeline, step);
        bh_check_pop(c, mark);
    }
    *ret = out;
    return 0;
}

/* ---- schedulers ------------------------------------------------------------------------------ */

static int read_config(const char *text, size_t n, const char *file, struct bh_sched_config **ret,
                       struct bh_err *err)
{
    struct bh_config_report r;

    bh_config_report_init(&r);
    int rc = bh_sched_config_read(text, n, ret, &r);
    if (rc < 0)
        bh_err_set(err, rc, "%s", bh_config_report_line(&r, file));
    bh_config_report_fini(&r);
    return rc >= 0 && (*ret)->n_extenders
               ? bh_err_set(err, -ENOTSUP, "extenders cannot be asked in a scenario")
               : rc;
}

/* Of them the profiles' plugins and the kinds of the world follow. */
static int read_gates(struct bh_check *c, struct bh_scenario *s, const struct bh_json *gates)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};
    struct bh_err err = {0};

    bh_json_each(g, gates) {
        if (g->type != BH_JSON_BOOL)
            return bh_check_fail(c, g, "featureGates", "%.80s: expected true or false", g->key.p);
        bh_buf_addf(&text, "%s%s=%s", text.n ? "," : "", g->key.p, g->b ? "true" : "false");
    }
    return bh_feature_gates_parse(&s->gates, bh_buf_str(&text), &err) < 0
               ? bh_check_fail(c, gates, "featureGates", "%.479s", err.msg)
               : 0;
}

static int add_scheduler(struct bh_check *c, struct bh_scenario *s, const char *name,
                         const struct bh_json *config)
{
    struct bh_scenario_scheduler *x = &s->schedulers[s->n_schedulers];
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_err err = {0};
    const char *text = NULL;
    size_t n = 0;
    int rc;

    x->name = name;
    for (uint32_t i = 0; i < s->n_schedulers; i++)
        if (bh_streq(s->schedulers[i].name, name))
            return bh_check_fail(c, config, NULL, "there is a scheduler \"%.80s\" already", name);
    if (!config) {
        rc = bh_sched_config_new(NULL, &x->config, &err);
    } else if (config->type == BH_JSON_OBJECT) {
        bh_json_write(&b, config);
        rc = read_config(b.p, b.n, "configuration", &x->config, &err);
    } else if (strchr(config->s.p, '\n')) {
        rc = read_config(config->s.p, config->s.n, "configuration", &x->config, &err);
    } else if (!s->files_allowed) {
        return bh_check_fail(c, config, NULL,
                             "files cannot be read here: put the configuration into the scenario");
    } else {
        rc = bh_scenario_file(s, &s->arena, config->s.p, &text, &n, &err);
        rc = rc < 0 ? rc : read_config(text, n, config->s.p, &x->config, &err);
    }
    s->n_schedulers++;
    if (rc >= 0)
        bh_sched_config_apply_gates(x->config, &s->gates);
    return rc < 0 ? bh_check_fail(c, config, NULL, "%.479s", err.msg) : 0;
}

static const char *base_name(struct bh_arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = bh_arena_strdup(a, slash ? slash + 1 : path), *dot = strrchr(name, '.');

    if (dot && dot > name)
        *dot = '\0';
    return name;
}

/* --config A,B in place of what the scenario says. */
static int schedulers_of_files(struct bh_check *c, struct bh_scenario *s, const char *configs)
{
    char *rest = bh_arena_strdup(&s->arena, configs), *one;
    const char *dir = s->dir;
    int rc = 0;

    s->dir = NULL; /* these names come from the command line, not from the file */
    s->schedulers =
        bh_arena_new_array(&s->arena, struct bh_scenario_scheduler, strlen(configs) / 2 + 2);
    while (rc >= 0 && (one = strsep(&rest, ","))) {
        struct bh_json *v = bh_json_new_cstr(&s->arena, one);
        bool dflt = bh_streq(one, "default");
        if (*one)
            rc = add_scheduler(c, s, dflt ? one : base_name(&s->arena, one), dflt ? NULL : v);
    }
    s->dir = dir;
    return rc;
}

static int schedulers_of_spec(struct bh_check *c, struct bh_scenario *s, const struct bh_json *list)
{
    size_t n = list ? list->c.n : 0, i = 0;

    s->schedulers = bh_arena_new_array(&s->arena, struct bh_scenario_scheduler, n + 1);
    bh_json_each(e, list) {
        size_t mark = bh_check_push(c, "%sschedulers[%zu].config", dot(c), i++);
        int rc = add_scheduler(c, s, bh_json_get_text(e, "name"), bh_json_get(e, "config"));
        if (rc < 0)
            return rc;
        bh_check_pop(c, mark);
    }
    return n ? 0 : add_scheduler(c, s, "default", NULL);
}

/* ---- the document ---------------------------------------------------------------------------- */

static void fill(struct bh_scenario *s, const struct bh_json *spec)
{
    const char *begin = bh_json_get_str(spec, "begin"), *ties = bh_json_get_str(spec, "tieBreak");
    const struct bh_json *until = bh_json_get(spec, "until");

    s->seed = (uint64_t)bh_json_get_i64(spec, "seed", 0);
    s->ties_random = !ties || bh_streq(ties, "random");
    s->start_cluster = bh_streq(bh_json_get_text(spec, "start"), "cluster");
    (void)bh_time_parse_ns(begin ? begin : BEGIN, &s->begin_ns); /* the schema has looked at it */
    s->decision_ns = bh_field_duration(spec, "decisionTime", SECOND_NS / 1000);
    s->kubelet_ns = bh_field_duration(spec, "kubeletDelay", SECOND_NS);
    s->sample_ns = bh_field_duration(spec, "sample", 0);
    s->most_ns = bh_field_duration(spec, "atMost", MOST_NS);
    s->setup = bh_json_get(spec, "setup");
    s->timeline = bh_json_get(spec, "timeline");
    s->expect = bh_json_get(spec, "expect");
    bh_json_each(step, s->timeline)
        until = bh_json_get(step, "until") ? bh_json_get(step, "until") : until;
    /* 0: until all is quiet. */
    int64_t ns = 0;
    (void)(until && bh_parse_duration_ns(until->s.p, &ns)); /* "quiescent" is none */
    s->until_ns = ns;
}

static int check_all(struct bh_check *c, struct bh_scenario *s, const struct bh_json *spec,
                     const char *configs)
{
    size_t i = 0;
    int rc = bh_check_fields(c, "spec", spec);

    if (rc < 0)
        return rc;
    fill(s, spec);
    rc = read_gates(c, s, bh_json_get(spec, "featureGates"));
    if (rc < 0)
        return rc;
    rc = check_steps(c, s->setup, "setup", false);
    rc = rc < 0 ? rc : check_steps(c, s->timeline, "timeline", true);
    bh_json_each(e, rc < 0 ? NULL : s->expect) {
        size_t mark = bh_check_push(c, "%sexpect[%zu]", dot(c), i++);
        rc = check_expect(c, e);
        if (rc < 0)
            return rc;
        bh_check_pop(c, mark);
    }
    if (rc < 0)
        return rc;
    return configs ? schedulers_of_files(c, s, configs)
                   : schedulers_of_spec(c, s, bh_json_get(spec, "schedulers"));
}

/* The members of the document that are no fields of the scenario leave it. */
static int spec_of(struct bh_check *c, struct bh_scenario *s, struct bh_json *doc,
                   struct bh_json **ret)
{
    const char *name = bh_json_get_str(bh_json_get(doc, "metadata"), "name");
    struct bh_json *spec = bh_json_get(doc, "spec");

    s->name = name ? name : s->file ? base_name(&s->arena, s->file) : "scenario";
    if (!spec) {
        bh_json_drop(doc, "apiVersion kind metadata status");
        spec = doc;
    } else {
        bh_check_push(c, "spec");
    }
    *ret = spec;
    return bh_json_get(spec, "operations") ? kep_spec(c, &s->arena, spec, ret) : 0;
}

static bool is_scenario(const struct bh_json *doc)
{
    const char *api = bh_json_get_text(doc, "apiVersion"), *kind = bh_json_get_text(doc, "kind");

    return (bh_streq(kind, "Scenario") || bh_streq(kind, "Run")) &&
           (strncmp(api, "sim.berth.dev/", 14) == 0 ||
            strncmp(api, KEP_GROUP, strlen(KEP_GROUP)) == 0);
}

static int read_documents(struct bh_check *c, struct bh_scenario *s,
                          const struct bh_scenario_source *src)
{
    struct bh_json *docs, *scenario = NULL, *next, *spec;
    struct bh_err err = {0};
    unsigned at = 0;
    int rc = bh_yaml_parse_all(&s->arena, src->text, src->n, BH_JSON_STRICT, &docs, &err);

    if (rc < 0)
        return bh_check_fail(c, NULL, NULL, "%s", err.msg);
    s->objects = bh_json_new(&s->arena, BH_JSON_ARRAY);
    for (struct bh_json *d = docs->c.first; d; d = next) {
        next = d->next;
        c->e->document++;
        if (is_scenario(d) && scenario)
            return bh_check_fail(c, d, "kind", "this is the second scenario of the file");
        if (is_scenario(d)) {
            scenario = d;
            at = c->e->document;
            continue;
        }
        rc = bh_check_manifest(c, d);
        if (rc < 0)
            return rc;
        bh_json_push(s->objects, bh_json_clone(&s->arena, d));
    }
    c->e->document = at;
    if (!scenario)
        return bh_check_fail(c, NULL, NULL, "no document has apiVersion %s and kind Scenario",
                             BH_SCENARIO_API);
    rc = spec_of(c, s, scenario, &spec);
    return rc < 0 ? rc : check_all(c, s, spec, src->configs);
}

static void whole_message(const struct bh_scenario *s, const struct bh_scenario_error *e,
                          struct bh_err *err)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    if (s->file)
        bh_buf_addf(&b, "%s: ", s->file);
    if (e->document)
        bh_buf_addf(&b, "document %u", e->document);
    if (e->line)
        bh_buf_addf(&b, "%sline %u", e->document ? ", " : "", e->line);
    if (e->document || e->line)
        bh_buf_adds(&b, ": ");
    if (*e->field)
        bh_buf_addf(&b, "%s: ", e->field);
    bh_err_set(err, -EINVAL, "%s%s", bh_buf_str(&b), e->message);
}

int bh_scenario_read(const struct bh_scenario_source *src, struct bh_scenario **ret,
                     struct bh_scenario_error *e, struct bh_err *err)
{
    struct bh_scenario *s = bh_calloc(1, sizeof *s);
    struct bh_scenario_error own = {0};
    struct bh_check c = {.s = s, .e = e ? e : &own};

    *c.e = (struct bh_scenario_error){0};
    bh_arena_init(&s->arena, (size_t)4 << 30);
    s->files_allowed = src->files_allowed;
    if (src->file) {
        s->file = bh_arena_strdup(&s->arena, src->file);
        s->dir = dirname(bh_arena_strdup(&s->arena, src->file));
    }
    int rc = bh_check_unserved(&c, read_documents(&c, s, src));
    bh_buf_fini(&c.path);
    if (rc < 0) {
        whole_message(s, c.e, err);
        bh_scenario_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void bh_scenario_free(struct bh_scenario *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_schedulers; i++)
        bh_sched_config_free(s->schedulers[i].config);
    bh_arena_fini(&s->arena);
    free(s);
}
