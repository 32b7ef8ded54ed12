/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/config.c - reads performance-config.yaml files and plans workloads
 *
 * Names are taken in any case, unknown ones are errors, numbers are cut to whole ones: as
 * encoding/json and upstream's strict decoding do.
 * Upstream: test/integration/scheduler_perf/{scheduler_perf,operations,label_selector}.go.
 */
#include "bench/perf/perf.h"

#include <errno.h>
#include <math.h>
#include <strings.h>

#include "common/data/yaml.h"

#define FILE_MAX_BYTES ((size_t)16 << 20)
#define COUNT_MAX      100000000.0
#define SETS_MAX       100000

/* ---- the table of operations ----------------------------------------------------------------- */

enum field_kind {
    TEXT,
    COUNT,
    WHOLE,
    REAL,
    YES,
    DURATION,
    MAP,
    GATES,
    LIST,
    TEXTS,
    OPERATION,
    ANY
};
static const struct {
    enum bh_json_type type;
    const char *name;
} kinds[] = {[TEXT] = {BH_JSON_STRING, "a string"},
             [COUNT] = {BH_JSON_NUMBER, "a number"},
             [WHOLE] = {BH_JSON_NUMBER, "a number"},
             [REAL] = {BH_JSON_NUMBER, "a number"},
             [YES] = {BH_JSON_BOOL, "a bool"},
             [DURATION] = {BH_JSON_STRING, "a duration as a string"},
             [MAP] = {BH_JSON_OBJECT, "an object"},
             [GATES] = {BH_JSON_OBJECT, "an object"},
             [LIST] = {BH_JSON_ARRAY, "a list"},
             [TEXTS] = {BH_JSON_ARRAY, "a list"},
             [OPERATION] = {BH_JSON_OBJECT, "an operation"}};
struct bh_bench_field {
    const char *name;
    enum field_kind kind;
    size_t at;  /* in the struct that is read; NOWHERE: its own code reads it */
    bool param; /* NAMEParam: "$parameter" may stand in its place */
};
#define NOWHERE SIZE_MAX
#define F(member, name, kind)                                                                      \
    {                                                                                              \
        name, kind, offsetof(struct bh_bench_step, member), false                                  \
    }
#define FP(member, name, kind)                                                                     \
    {                                                                                              \
        name, kind, offsetof(struct bh_bench_step, member), true                                   \
    }
#define FIELDS(...)                                                                                \
    (const struct bh_bench_field[])                                                                \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* ends with name NULL */
static const struct bh_bench_opcode opcodes[] = {
    {"createNodes",
     FIELDS(FP(count, "count", COUNT), F(node_template, "nodeTemplatePath", TEXT),
            F(allocatable_strategy, "nodeAllocatableStrategy", MAP),
            F(label_strategy, "labelNodePrepareStrategy", MAP),
            F(unique_label_strategy, "uniqueNodeLabelStrategy", MAP)),
     bh_bench_create_nodes},
    {"createNamespaces",
     FIELDS(F(prefix, "prefix", TEXT), FP(count, "count", COUNT),
            F(namespace_template, "namespaceTemplatePath", TEXT)),
     bh_bench_create_namespaces},
    {"createPods",
     FIELDS(FP(count, "count", COUNT), F(namespace_, "namespace", TEXT),
            F(pod_template, "podTemplatePath", TEXT), F(collect, "collectMetrics", YES),
            F(skip_wait, "skipWaitToCompletion", YES), FP(steady, "steadyState", YES),
            FP(duration_ns, "duration", DURATION),
            F(pv_template, "persistentVolumeTemplatePath", TEXT),
            F(pvc_template, "persistentVolumeClaimTemplatePath", TEXT)),
     bh_bench_create_pods},
    {"createPodSets",
     FIELDS(FP(count, "count", COUNT), F(prefix, "namespacePrefix", TEXT),
            F(pods_op, "createPodsOp", OPERATION)),
     NULL},
    {"deletePods",
     FIELDS(F(namespace_, "namespace", TEXT), F(selector, "labelSelector", MAP),
            F(per_second, "deletePodsPerSecond", REAL), F(skip_wait, "skipWaitToCompletion", YES)),
     bh_bench_delete_pods},
    {"churn",
     FIELDS(F(mode, "mode", TEXT), F(number, "number", WHOLE),
            F(interval_ms, "intervalMilliseconds", WHOLE), F(namespace_, "namespace", TEXT),
            F(template_paths, "templatePaths", TEXTS)),
     bh_bench_churn},
    {"barrier",
     FIELDS(F(namespaces, "namespaces", TEXTS), F(selector, "labelSelector", MAP),
            F(stage, "stageRequirement", TEXT)),
     bh_bench_barrier},
    {"sleep", FIELDS(FP(duration_ns, "duration", DURATION)), bh_bench_sleep},
    {"startCollectingMetrics",
     FIELDS(F(name, "name", TEXT), F(namespaces, "namespaces", TEXTS),
            F(selector, "labelSelector", MAP)),
     bh_bench_start_collecting},
    {"stopCollectingMetrics", FIELDS({0}), bh_bench_stop_collecting},
    {"createAny",
     FIELDS(F(namespace_, "namespace", TEXT), F(template_, "templatePath", TEXT),
            FP(count, "count", COUNT)),
     bh_bench_create_any},
    {"updateAny",
     FIELDS(F(namespace_, "namespace", TEXT), F(template_, "templatePath", TEXT),
            FP(count, "count", COUNT), F(per_second, "updatePerSecond", REAL),
            F(subresources, "subresources", TEXTS)),
     bh_bench_update_any},
    {"createResourceClaims",
     FIELDS(F(namespace_, "namespace", TEXT), F(template_, "templatePath", TEXT),
            FP(count, "count", COUNT)),
     bh_bench_create_any},
    {"allocResourceClaims", FIELDS(F(namespace_, "namespace", TEXT)), bh_bench_allocate_claims},
    {"createResourceDriver",
     FIELDS(F(driver, "driverName", TEXT), F(nodes, "nodes", TEXT),
            FP(max_claims, "maxClaimsPerNode", COUNT)),
     bh_bench_create_driver},
    {0}};

static const struct bh_bench_opcode *opcode_of(const char *name)
{
    for (const struct bh_bench_opcode *o = opcodes; o->name; o++)
        if (bh_streq(o->name, name))
            return o;
    return NULL;
}

/* ---- members ----------------------------------------------------------------------------------- */

static const char opcode_key[] = "opcode";

static int take_number(const struct bh_json *v, bool negative, int64_t *ret, struct bh_err *err)
{
    double d = strtod(v->s.p, NULL);

    if (!isfinite(d) || fabs(d) > COUNT_MAX || (!negative && d <= -1))
        return bh_err_set(err, -EINVAL, "%s: must be a number from 0 to %.0f", v->s.p, COUNT_MAX);
    *ret = (int64_t)d;
    return 0;
}

static bool has_type(const struct bh_json *v, enum field_kind k)
{
    return k == ANY || v->type == kinds[k].type;
}

/* A value of the right type. */
static int take(const struct bh_bench_field *f, const struct bh_json *v, void *into,
                struct bh_err *err)
{
    void *at = (char *)into + f->at;

    switch (f->kind) {
    case TEXT:
        *(const char **)at = v->s.p;
        return 0;
    case COUNT:
    case WHOLE:
        return take_number(v, f->kind == WHOLE, at, err);
    case REAL:
        *(double *)at = strtod(v->s.p, NULL);
        return 0;
    case YES:
        *(bool *)at = v->b;
        return 0;
    case DURATION:
        return bh_parse_duration_ns(v->s.p, at) < 0
                   ? bh_err_set(err, -EINVAL, "\"%s\" is no duration", v->s.p)
                   : 0;
    default:
        *(const struct bh_json **)at = v;
        return 0;
    }
}

static const struct bh_bench_field *field_of(const struct bh_bench_field *fields, const char *key,
                                             bool *ret_param)
{
    for (const struct bh_bench_field *f = fields; f->name; f++) {
        size_t n = strlen(f->name);
        *ret_param =
            f->param && strncasecmp(f->name, key, n) == 0 && strcasecmp(key + n, "Param") == 0;
        if (*ret_param || strcasecmp(f->name, key) == 0)
            return f;
    }
    return NULL;
}

static int check_op(struct bh_arena *a, const struct bh_json *op, struct bh_err *err);

static int check_items(struct bh_arena *a, const struct bh_bench_field *f, const struct bh_json *v,
                       struct bh_err *err)
{
    bh_json_each(e, v) {
        if (f->kind == TEXTS && e->type != BH_JSON_STRING)
            return bh_err_set(err, -EINVAL, "%s: must be a list of strings", v->key.p);
        if (f->kind == GATES && e->type != BH_JSON_BOOL)
            return bh_err_set(err, -EINVAL, "%s: %s: must be true or false", v->key.p, e->key.p);
    }
    if (f->kind != OPERATION)
        return 0;
    int rc = check_op(a, v, err);
    if (rc >= 0 && !bh_streq(bh_json_get_text(v, "opcode"), "createPods"))
        rc = bh_err_set(err, -EINVAL, "opcode: must be createPods");
    return rc < 0 ? bh_err_prefix(err, rc, "%s", v->key.p) : 0;
}

/* into NULL: nothing is taken, parameters may have to come first. */
static int read_member(struct bh_arena *a, const struct bh_bench_field *fields, struct bh_json *m,
                       void *into, struct bh_err *err)
{
    bool param = false;
    const struct bh_bench_field *f = field_of(fields, m->key.p, &param);
    const char *text = bh_json_cstr(m);

    if (!f)
        return bh_err_set(err, -EINVAL, "unknown field \"%s\" (line %u)", m->key.p, m->line);
    m->key = bh_str_c(param ? bh_arena_printf(a, "%sParam", f->name) : f->name);
    if (m->type == BH_JSON_NULL)
        return 0;
    if (param && (!text || text[0] != '$' || !text[1]))
        return bh_err_set(err, -EINVAL, "%s: must be the name of a parameter: \"$name\"", m->key.p);
    if (param)
        return 0;
    if (!has_type(m, f->kind))
        return bh_err_set(err, -EINVAL, "%s: must be %s (line %u)", m->key.p, kinds[f->kind].name,
                          m->line);
    int rc = check_items(a, f, m, err);
    return rc < 0 || !into || f->at == NOWHERE ? rc : take(f, m, into, err);
}

/* Afterwards members are spelled as in the table. */
static int read_members(struct bh_arena *a, const struct bh_json *obj,
                        const struct bh_bench_field *fields, void *into, struct bh_err *err)
{
    if (!obj || obj->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "must be an object");
    bh_json_each(m, obj) {
        int rc = m->key.p == opcode_key ? 0 : read_member(a, fields, m, into, err);
        for (const struct bh_json *o = obj->c.first; rc >= 0 && o != m; o = o->next)
            if (bh_streq(o->key.p, m->key.p))
                rc = bh_err_set(err, -EINVAL, "\"%s\" stands there twice (line %u)", m->key.p,
                                m->line);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_op(struct bh_arena *a, const struct bh_json *op, struct bh_err *err)
{
    const struct bh_bench_opcode *o = NULL;

    bh_json_each(m, op && op->type == BH_JSON_OBJECT ? op : NULL) {
        if (strcasecmp(m->key.p, "opcode") == 0 && m->type == BH_JSON_STRING) {
            m->key = bh_str_c(opcode_key);
            o = opcode_of(m->s.p);
            if (!o)
                return bh_err_set(err, -EINVAL, "opcode: unknown opcode \"%s\"", m->s.p);
        }
    }
    if (!o)
        return bh_err_set(err, -EINVAL, "opcode: missing");
    int rc = read_members(a, op, o->fields, NULL, err);
    return rc < 0 ? bh_err_prefix(err, rc, "(%s)", o->name) : 0;
}

/* ---- test cases -------------------------------------------------------------------------------- */

static const struct bh_json *unless_null(const struct bh_json *obj, const char *key)
{
    const struct bh_json *v = bh_json_get(obj, key);

    return v && v->type != BH_JSON_NULL ? v : NULL;
}

#define IN(type, member) offsetof(struct bh_bench_##type, member)

/* A selector that is not there leaves *ret as it is. */
static int read_selector(struct bh_arena *a, const struct bh_json *of, const char *key,
                         struct bh_bench_selector *ret, struct bh_err *err)
{
    static const struct bh_bench_field fields[] = {
        {"name", TEXT, IN(selector, name), false},
        {"labels", ANY, IN(selector, labels), false},
        {"dataBucket", TEXT, IN(selector, bucket), false},
        {"expectLower", YES, IN(selector, expect_lower), false},
        {0}};
    const struct bh_json *v = unless_null(of, key);
    struct bh_bench_selector s = {0};

    if (!v)
        return 0;
    int rc = read_members(a, v, fields, &s, err);
    if (rc >= 0 && (!s.bucket || !s.name))
        rc = bh_err_set(err, -EINVAL, "%s: missing", s.bucket ? "name" : "dataBucket");
    if (rc < 0)
        return bh_err_prefix(err, rc, "%s", key);
    *ret = s;
    return 0;
}

static int check_threshold(const struct bh_json *v, struct bh_err *err)
{
    bh_json_each(m, v && v->type == BH_JSON_OBJECT ? v : NULL) {
        if (m->type != BH_JSON_NUMBER || m->s.p[0] == '-')
            return bh_err_set(err, -EINVAL, "threshold: %s: must be a number >= 0", m->key.p);
    }
    if (v && v->type != BH_JSON_OBJECT && (v->type != BH_JSON_NUMBER || v->s.p[0] == '-'))
        return bh_err_set(err, -EINVAL, "threshold: must be a number >= 0, or one for each topic");
    return 0;
}

static int read_workloads(struct bh_arena *a, const struct bh_json *v, struct bh_bench_case *c,
                          struct bh_err *err)
{
    const struct bh_json *list = bh_json_get_list(v, "workloads");
    struct bh_bench_selector dflt = {0};
    int rc = read_selector(a, v, "defaultThresholdMetricSelector", &dflt, err);

    if (rc < 0)
        return rc;
    if (!list || !list->c.n)
        return bh_err_set(err, -EINVAL, "workloads: missing");
    c->workloads = bh_arena_new_array(a, struct bh_bench_workload, list->c.n);
    bh_json_each(m, list) {
        static const struct bh_bench_field fields[] = {
            {"name", TEXT, IN(workload, name), false},
            {"params", MAP, IN(workload, params), false},
            {"labels", TEXTS, IN(workload, labels), false},
            {"threshold", ANY, IN(workload, threshold), false},
            {"thresholdMetricSelector", ANY, NOWHERE, false},
            {"featureGates", GATES, IN(workload, gates), false},
            {0}};
        struct bh_bench_workload *w = &c->workloads[c->n_workloads];
        *w = (struct bh_bench_workload){.selector = dflt};
        rc = read_members(a, m, fields, w, err);
        if (rc >= 0 && (!w->name || !*w->name))
            rc = bh_err_set(err, -EINVAL, "name: missing");
        if (rc >= 0)
            rc = check_threshold(w->threshold, err);
        if (rc >= 0)
            rc = read_selector(a, m, "thresholdMetricSelector", &w->selector, err);
        rc = rc < 0 && w->name ? bh_err_prefix(err, rc, "workload %s", w->name) : rc;
        for (uint32_t i = 0; rc >= 0 && i < c->n_workloads; i++)
            if (bh_streq(c->workloads[i].name, w->name))
                rc = bh_err_set(err, -EINVAL, "workload %s: Duplicate value", w->name);
        if (rc < 0)
            return rc;
        c->n_workloads++;
    }
    return 0;
}

static int read_ops(struct bh_arena *a, const struct bh_bench_case *c, struct bh_err *err)
{
    bool measured = false;
    uint32_t i = 0;

    if (!c->ops || !c->ops->c.n)
        return bh_err_set(err, -EINVAL, "workloadTemplate: missing");
    bh_json_each(op, c->ops) {
        int rc = check_op(a, op, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "op %u", i);
        measured |= bh_json_get_bool(op, "collectMetrics", false) ||
                    bh_json_get_bool(bh_json_get(op, "createPodsOp"), "collectMetrics", false) ||
                    bh_streq(bh_json_get_text(op, "opcode"), "stopCollectingMetrics");
        i++;
    }
    return measured ? 0
                    : bh_err_set(err, -EINVAL,
                                 "workloadTemplate: no operation collects metrics, so there is "
                                 "nothing to report");
}

static int read_case(struct bh_arena *a, const struct bh_json *v, struct bh_bench_case *c,
                     struct bh_err *err)
{
    static const struct bh_bench_field fields[] = {
        {"name", TEXT, IN(case, name), false},
        {"featureGates", GATES, IN(case, gates), false},
        {"metricsCollectorConfig", ANY, IN(case, collectors), false},
        {"workloadTemplate", LIST, IN(case, ops), false},
        {"workloads", LIST, NOWHERE, false},
        {"schedulerConfigPath", TEXT, IN(case, scheduler_config), false},
        {"defaultPodTemplatePath", TEXT, IN(case, default_pod), false},
        {"labels", TEXTS, IN(case, labels), false},
        {"defaultThresholdMetricSelector", ANY, NOWHERE, false},
        {0}};
    int rc = read_members(a, v, fields, c, err);

    if (rc >= 0 && (!c->name || !*c->name))
        rc = bh_err_set(err, -EINVAL, "name: missing");
    if (rc >= 0)
        rc = read_ops(a, c, err);
    if (rc >= 0)
        rc = read_workloads(a, v, c, err);
    return rc < 0 && c->name ? bh_err_prefix(err, rc, "test case %s", c->name) : rc;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_cases(struct bh_bench_file *f, const struct bh_json *v, struct bh_err *err)
{
    if (!v || v->type != BH_JSON_ARRAY || !v->c.n)
        return bh_err_set(err, -EINVAL, "a list of test cases is expected");
    f->cases = bh_arena_new_array(&f->arena, struct bh_bench_case, v->c.n);
    bh_json_each(m, v) {
        struct bh_bench_case *c = &f->cases[f->n_cases];
        int rc = read_case(&f->arena, m, c, err);
        for (uint32_t i = 0; rc >= 0 && i < f->n_cases; i++)
            if (bh_streq(f->cases[i].name, c->name))
                rc = bh_err_set(err, -EINVAL, "test case %s: Duplicate value", c->name);
        if (rc < 0)
            return rc;
        f->n_cases++;
    }
    return 0;
}

int bh_bench_load(const char *path, struct bh_bench_file **ret, struct bh_err *err)
{
    struct bh_bench_file *f = bh_calloc(1, sizeof *f);
    BH_CLEANUP(bh_freep) char *text = NULL;
    const char *slash = strrchr(path, '/');
    struct bh_json *v = NULL;
    size_t n = 0;

    f->path = bh_arena_strdup(&f->arena, path);
    f->dir = slash ? bh_arena_strndup(&f->arena, path, (size_t)BH_MAX(slash - path, 1)) : ".";
    /* Upstream has a benchmark function for each folder: below dra the whole path, else the last
     * part without '_'. */
    BH_CLEANUP(bh_freep) char *full = realpath(f->dir, NULL);
    const char *dra = full ? strstr(full, "/dra") : NULL;
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    if (dra && dra[4] != '\0' && dra[4] != '/')
        dra = NULL;
    const char *p = dra ? dra + 1 : full && strrchr(full, '/') ? strrchr(full, '/') + 1 : "";
    for (; *p; p++) {
        if (*p == '/')
            bh_buf_addc(&b, '_');
        else if (*p != '_')
            bh_buf_addc(&b, *p);
    }
    f->topic = bh_arena_strdup(&f->arena, bh_buf_str(&b));
    int rc = bh_read_file(path, FILE_MAX_BYTES, &text, &n);
    if (rc < 0)
        bh_err_set(err, rc, "%s", strerror(-rc));
    if (rc >= 0)
        rc = bh_yaml_parse(&f->arena, text, n, BH_JSON_STRICT, &v, err);
    if (rc >= 0)
        rc = read_cases(f, v, err);
    if (rc < 0) {
        bh_bench_file_free(f);
        return bh_err_prefix(err, rc, "%s", path);
    }
    *ret = f;
    return 0;
}

void bh_bench_file_free(struct bh_bench_file *f)
{
    if (!f)
        return;
    bh_arena_fini(&f->arena);
    free(f);
}

/* ---- filters, thresholds --------------------------------------------------------------------- */

static bool listed(const struct bh_json *list, const char *label, size_t n)
{
    bh_json_each(m, list) {
        if (m->s.n == n && memcmp(m->s.p, label, n) == 0)
            return true;
    }
    return false;
}

bool bh_bench_labels_match(const char *filter, const struct bh_bench_case *c,
                           const struct bh_bench_workload *w)
{
    for (const char *p = filter, *end; *p; p = *end ? end + 1 : end) {
        end = p + strcspn(p, ",");
        bool wanted = *p != '-';
        const char *label = *p == '+' || *p == '-' ? p + 1 : p;
        size_t n = (size_t)(end - label);
        if (end == p)
            continue;
        if ((listed(c->labels, label, n) || listed(w->labels, label, n)) != wanted)
            return false;
    }
    return true;
}

double bh_bench_threshold(const struct bh_bench_workload *w, const char *topic)
{
    const struct bh_json *v = w->threshold;

    if (v && v->type == BH_JSON_OBJECT)
        v = bh_json_get(v, topic);
    return v ? strtod(v->s.p, NULL) : 0;
}

/* ---- plans ----------------------------------------------------------------------------------- */

struct plan {
    struct bh_arena *a;
    const struct bh_bench_workload *w;
    bool *used; /* by parameter, in order */
    struct bh_bench_step *steps;
    uint32_t n, cap;
};

static const struct bh_json *param(struct plan *p, const char *dollar, struct bh_err *err)
{
    size_t i = 0;

    bh_json_each(m, p->w->params) {
        if (bh_streq(m->key.p, dollar + 1)) {
            p->used[i] = true;
            return m;
        }
        i++;
    }
    bh_err_set(err, -EINVAL, "parameter %s is not defined", dollar);
    return NULL;
}

int64_t bh_bench_param(const struct bh_bench_workload *w, const char *name, int64_t dflt)
{
    const struct bh_json *v = bh_json_get(w->params, name);

    return v && v->type == BH_JSON_NUMBER ? (int64_t)strtod(v->s.p, NULL) : dflt;
}

static int fill(struct plan *p, const struct bh_json *op, struct bh_bench_step *s,
                struct bh_err *err)
{
    for (const struct bh_bench_field *f = s->op->fields; f->name; f++) {
        const struct bh_json *v = unless_null(op, f->name), *given = NULL;
        char name[64];
        snprintf(name, sizeof name, "%sParam", f->name);
        const char *dollar = f->param ? bh_json_get_str(op, name) : NULL;
        if (dollar && !(given = param(p, dollar, err)))
            return bh_err_prefix(err, -EINVAL, "%s", name);
        v = v ? v : given;
        if (!v)
            continue;
        int rc = has_type(v, f->kind) ? take(f, v, s, err)
                                      : bh_err_set(err, -EINVAL, "must be %s", kinds[f->kind].name);
        if (rc < 0)
            return bh_err_prefix(err, rc, "%s", v == given ? name : f->name);
    }
    return 0;
}

static int check_step(const struct bh_bench_step *s, struct bh_err *err)
{
    const char *op = s->op->name;
    unsigned strategies =
        !!s->allocatable_strategy + !!s->label_strategy + !!s->unique_label_strategy;

    if (strategies > 1)
        return bh_err_set(err, -EINVAL, "at most one strategy can be given");
    if (bh_streq(op, "createPods")) {
        if (s->skip_wait && (s->collect || s->steady))
            return bh_err_set(err, -EINVAL,
                              "skipWaitToCompletion: excludes collectMetrics and steadyState");
        if (s->steady && s->duration_ns <= 0)
            return bh_err_set(err, -EINVAL, "duration: must be > 0 with steadyState");
        if (!s->pv_template != !s->pvc_template)
            return bh_err_set(err, -EINVAL,
                              "persistentVolumeTemplatePath and "
                              "persistentVolumeClaimTemplatePath go together");
    }
    if (bh_streq(op, "churn")) {
        if (!s->mode || (!bh_streq(s->mode, "create") && !bh_streq(s->mode, "recreate")))
            return bh_err_set(err, -EINVAL, "mode: must be create or recreate");
        if (bh_streq(s->mode, "recreate") && s->number <= 0)
            return bh_err_set(err, -EINVAL, "number: must be > 0 with mode recreate");
        if (s->number < 0 || s->interval_ms < 0)
            return bh_err_set(err, -EINVAL, "number, intervalMilliseconds: must be >= 0");
        if (!s->template_paths || !s->template_paths->c.n)
            return bh_err_set(err, -EINVAL, "templatePaths: missing");
    }
    if (s->stage && *s->stage && !bh_streq(s->stage, "Scheduled") &&
        !bh_streq(s->stage, "Attempted"))
        return bh_err_set(err, -EINVAL, "stageRequirement: must be Scheduled or Attempted");
    if (bh_streq(op, "startCollectingMetrics") && (!s->namespaces || !s->namespaces->c.n))
        return bh_err_set(err, -EINVAL, "namespaces: missing");
    if (!s->template_ && (bh_streq(op, "createAny") || bh_streq(op, "updateAny") ||
                          bh_streq(op, "createResourceClaims")))
        return bh_err_set(err, -EINVAL, "templatePath: missing");
    if (bh_streq(op, "createResourceDriver") && !s->driver)
        return bh_err_set(err, -EINVAL, "driverName: missing");
    return 0;
}

static int add_step(struct plan *p, const struct bh_json *op, const char *ns, struct bh_err *err)
{
    const struct bh_bench_opcode *o = opcode_of(bh_json_get_text(op, "opcode"));
    struct bh_bench_step s = {.op = o};

    if (bh_streq(o->name, "createAny") || bh_streq(o->name, "updateAny"))
        s.count = 1;
    int rc = fill(p, op, &s, err);
    if (rc >= 0)
        rc = check_step(&s, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "(%s)", o->name);
    if (ns)
        s.namespace_ = ns;
    if (!o->run) { /* createPodSets */
        for (int64_t i = 0; rc >= 0 && i < s.count && s.pods_op; i++)
            rc = i < SETS_MAX ? add_step(p, s.pods_op,
                                         bh_arena_printf(p->a, "%s-%lld", s.prefix ? s.prefix : "",
                                                         (long long)i),
                                         err)
                              : bh_err_set(err, -EINVAL, "count: more than %d sets", SETS_MAX);
        return rc;
    }
    BH_ARENA_GROW(p->a, p->steps, p->n, p->cap);
    s.index = p->n;
    if (!s.namespace_ && (bh_streq(o->name, "createPods") || bh_streq(o->name, "churn")))
        s.namespace_ = bh_arena_printf(p->a, "namespace-%u", s.index);
    p->steps[p->n++] = s;
    return 0;
}

int bh_bench_plan(struct bh_arena *a, const struct bh_bench_file *f, const struct bh_bench_case *c,
                  const struct bh_bench_workload *w, struct bh_bench_step **ret, uint32_t *ret_n,
                  struct bh_err *err)
{
    struct plan p = {.a = a, .w = w};
    struct bh_buf unused BH_CLEANUP(bh_buf_fini) = {0};
    uint32_t i = 0;

    p.used = bh_arena_new_array(a, bool, w->params ? w->params->c.n + 1 : 1);
    bh_json_each(op, c->ops) {
        int rc = add_step(&p, op, NULL, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "%s: %s/%s: op %u", f->path, c->name, w->name, i);
        i++;
    }
    i = 0;
    bh_json_each(m, w->params) {
        /* of upstream's hook for this folder */
        bool hook = bh_streq(f->topic, "nodedeclaredfeatures") &&
                    bh_streq(m->key.p, "numNodeDeclaredFeatures");
        if (!p.used[i++] && !hook)
            bh_buf_addf(&unused, "%s%s", unused.n ? " " : "", m->key.p);
    }
    *ret = p.steps;
    *ret_n = p.n;
    return unused.n
               ? bh_err_set(err, -EINVAL, "%s: %s/%s: the parameters [%s] are defined, but unused",
                            f->path, c->name, w->name, unused.p)
               : 0;
}
