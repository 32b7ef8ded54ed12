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

#include "bench/perf/ops.h"
#include "common/data/yaml.h"

#define FILE_MAX_BYTES ((size_t)16 << 20)
#define COUNT_MAX      100000000.0
#define SETS_MAX       100000

/* ---- the table of operations ----------------------------------------------------------------- */

enum field_kind { TEXT, COUNT, WHOLE, REAL, YES, DURATION, MAP, LIST, OPERATION };
struct bh_bench_field {
    const char *name;
    enum field_kind kind;
    size_t at;  /* in struct bh_bench_step */
    bool param; /* NAMEParam: "$parameter" may stand in its place */
};
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
            F(template_paths, "templatePaths", LIST)),
     bh_bench_churn},
    {"barrier",
     FIELDS(F(namespaces, "namespaces", LIST), F(selector, "labelSelector", MAP),
            F(stage, "stageRequirement", TEXT)),
     bh_bench_barrier},
    {"sleep", FIELDS(FP(duration_ns, "duration", DURATION)), bh_bench_sleep},
    {"startCollectingMetrics",
     FIELDS(F(name, "name", TEXT), F(namespaces, "namespaces", LIST),
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
            F(subresources, "subresources", LIST)),
     bh_bench_update_any},
    {"createResourceClaims",
     FIELDS(F(namespace_, "namespace", TEXT), F(template_, "templatePath", TEXT),
            FP(count, "count", COUNT)),
     bh_bench_create_claims},
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

/* ---- names of members ------------------------------------------------------------------------ */

static struct bh_str key_of(const char *name)
{
    return (struct bh_str){name, strlen(name)};
}

/* Gives obj's members the spelling of names (NULL ends); others are errors. */
static int spell(const struct bh_json *obj, const char *const *names, struct bh_err *err)
{
    if (!obj || obj->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "must be an object");
    bh_json_each(m, obj) {
        const char *const *n = names;
        while (*n && strcasecmp(*n, m->key.p) != 0)
            n++;
        if (!*n)
            return bh_err_set(err, -EINVAL, "unknown field \"%s\" (line %u)", m->key.p, m->line);
        for (const struct bh_json *o = obj->c.first; o != m; o = o->next)
            if (bh_streq(o->key.p, *n))
                return bh_err_set(err, -EINVAL, "\"%s\" stands there twice (line %u)", *n, m->line);
        m->key = key_of(*n);
    }
    return 0;
}

static bool has_type(const struct bh_json *v, enum field_kind k)
{
    switch (k) {
    case TEXT:
    case DURATION:
        return v->type == BH_JSON_STRING;
    case COUNT:
    case WHOLE:
    case REAL:
        return v->type == BH_JSON_NUMBER;
    case YES:
        return v->type == BH_JSON_BOOL;
    case MAP:
    case OPERATION:
        return v->type == BH_JSON_OBJECT;
    case LIST:
        return v->type == BH_JSON_ARRAY;
    }
    return false;
}

static const char *type_name(enum field_kind k)
{
    static const char *const names[] = {
        [TEXT] = "a string", [COUNT] = "a number", [WHOLE] = "a number",
        [REAL] = "a number", [YES] = "a bool",     [DURATION] = "a duration as a string",
        [MAP] = "an object", [LIST] = "a list",    [OPERATION] = "an operation"};

    return names[k];
}

static const struct bh_bench_field *field_of(const struct bh_bench_opcode *o, const char *key,
                                             bool *ret_param)
{
    for (const struct bh_bench_field *f = o->fields; f->name; f++) {
        size_t n = strlen(f->name);
        *ret_param =
            f->param && strncasecmp(f->name, key, n) == 0 && strcasecmp(key + n, "Param") == 0;
        if (*ret_param || strcasecmp(f->name, key) == 0)
            return f;
    }
    return NULL;
}

static int check_op(struct bh_arena *a, const struct bh_json *op, struct bh_err *err);

static int check_field(struct bh_arena *a, const struct bh_bench_opcode *o, struct bh_json *m,
                       struct bh_err *err)
{
    bool param;
    const struct bh_bench_field *f = field_of(o, m->key.p, &param);
    const char *text = bh_json_cstr(m);

    if (!f)
        return bh_err_set(err, -EINVAL, "unknown field \"%s\" (line %u)", m->key.p, m->line);
    m->key = key_of(param ? bh_arena_printf(a, "%sParam", f->name) : f->name);
    if (m->type == BH_JSON_NULL)
        return 0;
    if (param && (!text || text[0] != '$' || !text[1]))
        return bh_err_set(err, -EINVAL, "%s: must be the name of a parameter: \"$name\"", m->key.p);
    if (!param && !has_type(m, f->kind))
        return bh_err_set(err, -EINVAL, "%s: must be %s (line %u)", m->key.p, type_name(f->kind),
                          m->line);
    bh_json_each(e, !param && f->kind == LIST ? m : NULL) {
        if (e->type != BH_JSON_STRING)
            return bh_err_set(err, -EINVAL, "%s: must be a list of strings", m->key.p);
    }
    if (f->kind != OPERATION)
        return 0;
    int rc = check_op(a, m, err);
    if (rc >= 0 && !bh_streq(bh_json_get_text(m, "opcode"), "createPods"))
        rc = bh_err_set(err, -EINVAL, "opcode: must be createPods");
    return rc < 0 ? bh_err_prefix(err, rc, "%s", m->key.p) : 0;
}

/* Members known, of the right type, and spelled as in the table afterwards. */
static int check_op(struct bh_arena *a, const struct bh_json *op, struct bh_err *err)
{
    const struct bh_bench_opcode *o = NULL;

    bh_json_each(m, op && op->type == BH_JSON_OBJECT ? op : NULL) {
        if (strcasecmp(m->key.p, "opcode") == 0 && m->type == BH_JSON_STRING) {
            m->key = key_of("opcode");
            o = opcode_of(m->s.p);
            if (!o)
                return bh_err_set(err, -EINVAL, "opcode: unknown opcode \"%s\"", m->s.p);
        }
    }
    if (!o)
        return bh_err_set(err, -EINVAL, "opcode: missing");
    bh_json_each(m, op) {
        int rc = bh_streq(m->key.p, "opcode") ? 0 : check_field(a, o, m, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "(%s)", o->name);
    }
    return 0;
}

/* ---- test cases ------------------------------------------------------------------------------ */

static int check_list(const struct bh_json *v, const char *key, enum bh_json_type of,
                      struct bh_err *err)
{
    const struct bh_json *list = bh_json_get(v, key);

    if (!list || list->type == BH_JSON_NULL)
        return 0;
    if (list->type != (of == BH_JSON_BOOL ? BH_JSON_OBJECT : BH_JSON_ARRAY))
        return bh_err_set(err, -EINVAL, "%s: must be %s", key,
                          of == BH_JSON_BOOL ? "an object" : "a list");
    bh_json_each(m, list) {
        if (m->type != of)
            return bh_err_set(err, -EINVAL, "%s: %s: must be %s", key, m->key.p ? m->key.p : "item",
                              of == BH_JSON_BOOL ? "true or false" : "a string");
    }
    return 0;
}

static const struct bh_json *unless_null(const struct bh_json *obj, const char *key)
{
    const struct bh_json *v = bh_json_get(obj, key);

    return v && v->type != BH_JSON_NULL ? v : NULL;
}

static int read_selector(const struct bh_json *v, struct bh_bench_selector *ret, struct bh_err *err)
{
    static const char *const names[] = {"name", "labels", "dataBucket", "expectLower", NULL};
    int rc = v ? spell(v, names, err) : 0;

    if (!v || rc < 0)
        return rc;
    *ret = (struct bh_bench_selector){.name = bh_json_get_str(v, "name"),
                                      .labels = unless_null(v, "labels"),
                                      .bucket = bh_json_get_str(v, "dataBucket"),
                                      .expect_lower = bh_json_get_bool(v, "expectLower", false)};
    if (!ret->bucket)
        return bh_err_set(err, -EINVAL, "dataBucket: missing");
    if (!ret->name)
        return bh_err_set(err, -EINVAL, "name: missing");
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

static int read_workload(const struct bh_json *v, const struct bh_bench_selector *dflt,
                         struct bh_bench_workload *w, struct bh_err *err)
{
    static const char *const names[] = {
        "name", "params", "labels", "threshold", "thresholdMetricSelector", "featureGates", NULL};
    int rc = spell(v, names, err);

    *w = (struct bh_bench_workload){.selector = *dflt};
    if (rc < 0)
        return rc;
    w->name = bh_json_get_str(v, "name");
    if (!w->name || !*w->name)
        return bh_err_set(err, -EINVAL, "name: missing");
    w->params = unless_null(v, "params");
    w->gates = unless_null(v, "featureGates");
    w->labels = unless_null(v, "labels");
    w->threshold = unless_null(v, "threshold");
    if (w->params && w->params->type != BH_JSON_OBJECT)
        rc = bh_err_set(err, -EINVAL, "params: must be an object");
    if (rc >= 0)
        rc = check_list(v, "featureGates", BH_JSON_BOOL, err);
    if (rc >= 0)
        rc = check_list(v, "labels", BH_JSON_STRING, err);
    if (rc >= 0)
        rc = check_threshold(w->threshold, err);
    if (rc >= 0) {
        rc = read_selector(unless_null(v, "thresholdMetricSelector"), &w->selector, err);
        if (rc < 0)
            bh_err_prefix(err, rc, "thresholdMetricSelector");
    }
    return rc < 0 ? bh_err_prefix(err, rc, "workload %s", w->name) : 0;
}

static int read_workloads(struct bh_arena *a, const struct bh_json *v, struct bh_bench_case *c,
                          struct bh_err *err)
{
    const struct bh_json *list = bh_json_get_list(v, "workloads");
    struct bh_bench_selector dflt = {0};
    int rc = read_selector(unless_null(v, "defaultThresholdMetricSelector"), &dflt, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "defaultThresholdMetricSelector");
    if (!list || !list->c.n)
        return bh_err_set(err, -EINVAL, "workloads: missing");
    c->workloads = bh_arena_new_array(a, struct bh_bench_workload, list->c.n);
    bh_json_each(m, list) {
        struct bh_bench_workload *w = &c->workloads[c->n_workloads];
        rc = read_workload(m, &dflt, w, err);
        for (uint32_t i = 0; rc >= 0 && i < c->n_workloads; i++)
            if (bh_streq(c->workloads[i].name, w->name))
                rc = bh_err_set(err, -EINVAL, "workload %s: Duplicate value", w->name);
        if (rc < 0)
            return rc;
        c->n_workloads++;
    }
    return 0;
}

static bool collects(const struct bh_json *op)
{
    return bh_json_get_bool(op, "collectMetrics", false) ||
           bh_json_get_bool(bh_json_get(op, "createPodsOp"), "collectMetrics", false) ||
           bh_streq(bh_json_get_text(op, "opcode"), "stopCollectingMetrics");
}

static int read_ops(struct bh_arena *a, const struct bh_json *v, struct bh_bench_case *c,
                    struct bh_err *err)
{
    bool measured = false;
    uint32_t i = 0;

    c->ops = bh_json_get_list(v, "workloadTemplate");
    if (!c->ops || !c->ops->c.n)
        return bh_err_set(err, -EINVAL, "workloadTemplate: missing");
    bh_json_each(op, c->ops) {
        int rc = check_op(a, op, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "op %u", i);
        measured |= collects(op);
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
    static const char *const names[] = {"name",
                                        "featureGates",
                                        "metricsCollectorConfig",
                                        "workloadTemplate",
                                        "workloads",
                                        "schedulerConfigPath",
                                        "defaultPodTemplatePath",
                                        "labels",
                                        "defaultThresholdMetricSelector",
                                        NULL};
    int rc = spell(v, names, err);

    if (rc < 0)
        return rc;
    c->name = bh_json_get_str(v, "name");
    if (!c->name || !*c->name)
        return bh_err_set(err, -EINVAL, "name: missing");
    c->scheduler_config = bh_json_get_str(v, "schedulerConfigPath");
    c->default_pod = bh_json_get_str(v, "defaultPodTemplatePath");
    c->gates = unless_null(v, "featureGates");
    c->labels = unless_null(v, "labels");
    c->collectors = unless_null(v, "metricsCollectorConfig");
    rc = check_list(v, "featureGates", BH_JSON_BOOL, err);
    if (rc >= 0)
        rc = check_list(v, "labels", BH_JSON_STRING, err);
    if (rc >= 0)
        rc = read_ops(a, v, c, err);
    if (rc >= 0)
        rc = read_workloads(a, v, c, err);
    return rc < 0 ? bh_err_prefix(err, rc, "test case %s", c->name) : 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Upstream has a benchmark function for each folder: below dra the whole path, else the last part
 * without '_'. */
static const char *topic_of(struct bh_arena *a, const char *dir)
{
    BH_CLEANUP(bh_freep) char *full = realpath(dir, NULL);
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
    const char *topic = bh_arena_strdup(a, bh_buf_str(&b));
    return topic;
}

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

    bh_arena_init(&f->arena, 0);
    f->path = bh_arena_strdup(&f->arena, path);
    f->dir = slash ? bh_arena_strndup(&f->arena, path, (size_t)BH_MAX(slash - path, 1)) : ".";
    f->topic = topic_of(&f->arena, f->dir);
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
    const struct bh_bench_case *c;
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

static int take_number(const struct bh_json *v, bool negative, int64_t *ret, struct bh_err *err)
{
    double d = strtod(v->s.p, NULL);

    if (!isfinite(d) || fabs(d) > COUNT_MAX || (!negative && d <= -1))
        return bh_err_set(err, -EINVAL, "%s: must be a number from 0 to %.0f", v->s.p, COUNT_MAX);
    *ret = (int64_t)d;
    return 0;
}

static int decode_field(const struct bh_bench_field *f, const struct bh_json *v,
                        struct bh_bench_step *s, struct bh_err *err)
{
    char *at = (char *)s + f->at;

    if (!has_type(v, f->kind))
        return bh_err_set(err, -EINVAL, "must be %s", type_name(f->kind));
    switch (f->kind) {
    case TEXT:
        *(const char **)(void *)at = v->s.p;
        return 0;
    case COUNT:
    case WHOLE:
        return take_number(v, f->kind == WHOLE, (int64_t *)(void *)at, err);
    case REAL:
        *(double *)(void *)at = strtod(v->s.p, NULL);
        return 0;
    case YES:
        *(bool *)(void *)at = v->b;
        return 0;
    case DURATION:
        return bh_parse_duration_ns(v->s.p, (int64_t *)(void *)at) < 0
                   ? bh_err_set(err, -EINVAL, "\"%s\" is no duration", v->s.p)
                   : 0;
    case MAP:
    case LIST:
    case OPERATION:
        *(const struct bh_json **)(void *)at = v;
        return 0;
    }
    return 0;
}

static int fill(struct plan *p, const struct bh_json *op, struct bh_bench_step *s,
                struct bh_err *err)
{
    for (const struct bh_bench_field *f = s->op->fields; f->name; f++) {
        const struct bh_json *v = unless_null(op, f->name), *given = NULL;
        char name[64];
        snprintf(name, sizeof name, "%sParam", f->name);
        const char *dollar = f->param ? bh_json_get_str(op, name) : NULL;
        if (dollar) {
            given = param(p, dollar, err);
            if (!given)
                return bh_err_prefix(err, -EINVAL, "%s", name);
        }
        if (!v && !given)
            continue;
        int rc = decode_field(f, v ? v : given, s, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "%s", v ? f->name : name);
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
    if ((strncmp(op, "create", 6) == 0 || bh_streq(op, "updateAny")) && !s->template_ &&
        (bh_streq(op, "createAny") || bh_streq(op, "updateAny") ||
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
    if (p->n == p->cap) {
        struct bh_bench_step *v =
            bh_arena_new_array(p->a, struct bh_bench_step, p->cap ? 2 * p->cap : 16);
        if (p->n)
            memcpy(v, p->steps, p->n * sizeof *v);
        p->steps = v;
        p->cap = p->cap ? 2 * p->cap : 16;
    }
    s.index = p->n;
    p->steps[p->n++] = s;
    return 0;
}

static int check_used(const struct plan *p, const char *topic, struct bh_err *err)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    size_t i = 0;
    int rc = 0;

    bh_json_each(m, p->w->params) {
        /* of upstream's hook for this folder */
        bool hook = bh_streq(topic, "nodedeclaredfeatures") &&
                    bh_streq(m->key.p, "numNodeDeclaredFeatures");
        if (!p->used[i++] && !hook)
            bh_buf_addf(&b, "%s%s", b.n ? " " : "", m->key.p);
    }
    if (b.n)
        rc =
            bh_err_set(err, -EINVAL, "the parameters [%s] are defined, but unused", bh_buf_str(&b));
    return rc;
}

int bh_bench_plan(struct bh_arena *a, const struct bh_bench_file *f, const struct bh_bench_case *c,
                  const struct bh_bench_workload *w, struct bh_bench_step **ret, uint32_t *ret_n,
                  struct bh_err *err)
{
    struct plan p = {.a = a, .c = c, .w = w};
    uint32_t i = 0;
    int rc = 0;

    p.used = bh_arena_new_array(a, bool, w->params ? w->params->c.n + 1 : 1);
    bh_json_each(op, c->ops) {
        rc = add_step(&p, op, NULL, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "%s: %s/%s: op %u", f->path, c->name, w->name, i);
        i++;
    }
    rc = check_used(&p, f->topic, err);
    *ret = p.steps;
    *ret_n = p.n;
    return rc < 0 ? bh_err_prefix(err, rc, "%s: %s/%s", f->path, c->name, w->name) : 0;
}
