/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/plugins.c - `berth bench plugins`: one score in each form that a plugin can have
 *
 * NodeNumber, built in and out of a file. What it costs a node is what the engine's observer sees of
 * the plugin's calls when a pod of a new template comes, for which all nodes are scored; decisions a
 * second are of one template, whose results are kept. Forms are measured in turns, so that other load
 * on the machine meets all of them.
 */
#include "bench/scale/scale.h"

#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include "common/base/symtab.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/native/native.h"
#include "scheduler/wasm/guest.h"

#define WHO       "berth bench plugins"
#define ROUNDS    5u
#define TEMPLATES 200u
#define DECISIONS 20000u
#define LOADS     21u
#define LONG_NS   UINT64_C(300000000)     /* a form that has worked so long is measured */
#define GUEST     "/wasm/nodenumber.wasm" /* in the plugins' folder */
#define BUILT_IN  "NodeNumberBuiltIn"

static const struct { /* a row of the table; the first one is what others are compared with */
    const char *form, *plugin;
    bool guest; /* a WebAssembly guest */
} forms[] = {{"built in", BUILT_IN, false},
             {"native, batch", "NodeNumberRows", false},
             {"native, per node", "NodeNumber", false},
             {"guest, interpreted", "NodeNumberGuest", true}};
#define FORMS BH_ARRAY_LEN(forms)
static const uint32_t sizes[] = {100, 1000, 5000};

/* ---- the same score, built in ---------------------------------------------------------------- */

static int64_t number(const struct bh_call *c, const struct bh_node_info *node)
{
    const char *s = bh_sym_text(c->tab, node->name), last = *s ? s[strlen(s) - 1] : 0;

    return bh_is_digit(last) ? 10 * (last - '0') : 0;
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret)
{
    *ret = number(c, node);
    return NULL;
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    for (uint32_t i = 0; i < n; i++)
        ret[i] = number(c, c->cache->rows[rows[i]]);
}

static const struct bh_plugin *(*find_native)(const char *name);
static const struct bh_plugin *find(const char *name)
{
    static const struct bh_plugin built_in = {
        BH_PLUGIN_HEAD(BUILT_IN), .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_READS_NODE,
        .events = bh_no_events, .score = score, .score_rows = score_rows};

    return bh_streq(name, BUILT_IN) ? &built_in : find_native(name);
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct measured {
    const char *plugin;
    uint64_t fast, cycles;
    double ns_a_node, per_s;
    double ns[TEMPLATES]; /* a node's, of decisions that scored all nodes */
    double sum;           /* of the one that is being taken: ... */
    uint32_t n, calls;    /* ... calls that were looked at: the reference path asks node by node */
};

static uint32_t all_samples(void *arg BH_UNUSED, uint64_t now_ns BH_UNUSED)
{
    return UINT32_MAX;
}

static void on_plugin(void *arg, const char *plugin, enum bh_seen_point at,
                      enum bh_code code BH_UNUSED, uint64_t ns)
{
    struct measured *m = arg;

    if (at == BH_SEEN_SCORE && bh_streq(plugin, m->plugin)) {
        m->sum += (double)ns;
        m->calls++;
    }
}
static void on_point(void *arg BH_UNUSED, uint32_t profile BH_UNUSED,
                     enum bh_seen_point at BH_UNUSED, enum bh_code code BH_UNUSED,
                     uint64_t ns BH_UNUSED)
{
}
static void on_fast(void *arg BH_UNUSED, uint32_t profile BH_UNUSED,
                    const uint64_t ns[static 3] BH_UNUSED)
{
}

struct rig {
    struct bh_engine *e;
    struct bh_scale_objects *objects;
    struct bh_interner in;
    struct bh_arena a;
    struct bh_sched_config *config;
    uint32_t pod; /* the next one */
};

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

static double middle(double *v, uint32_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n ? v[n / 2] : 0;
}

static int decide(struct rig *r, uint32_t tmpl, uint32_t pod, struct bh_err *err)
{
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;

    bh_arena_reset(&r->a);
    int rc =
        bh_scale_pod(r->objects, tmpl, pod, BH_SCALE_NO_NODE, &r->a, &r->in, &shape, &rec, err);
    if (rc < 0)
        return rc;
    struct bh_pending p = {.pod = rec, .shape = bh_engine_shape(r->e, shape)};
    const struct bh_decision *d = bh_engine_schedule(r->e, &p, 0, 0);
    if (d->kind != BH_DECIDED)
        rc = bh_err_set(err, -EIO, "pod %u: %s", pod, d->message ? d->message : "it fits nowhere");
    bh_engine_shape_unref(r->e, p.shape);
    return rc;
}

static int fill(struct rig *r, const struct bh_scale_options *so, uint32_t nodes,
                struct bh_err *err)
{
    struct bh_node_rec *rec;
    int rc = 0;

    r->objects = bh_scale_objects_new(so, nodes, err);
    for (uint32_t i = 0; r->objects && i < nodes && rc >= 0; i++) {
        bh_arena_reset(&r->a);
        rc = bh_scale_node(r->objects, i, &r->a, &r->in, &rec, err);
        if (rc >= 0)
            bh_engine_put_node(r->e, rec);
    }
    return r->objects ? rc : -EINVAL;
}

static void guest_file(char out[static PATH_MAX])
{
    const char *dir = getenv("BERTH_PLUGIN_DIR");

    snprintf(out, PATH_MAX, "%s" GUEST, dir && *dir ? dir : BH_PLUGIN_DIR);
}

/* The default profile with the plugin; alone: no other filters and scores, so that a decision's
 * samples (observe.h) are the plugin's. */
static struct bh_json *config_with(struct bh_arena *a, size_t form, bool alone)
{
    static const char others[] = "disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: "
                                 "DefaultBinder}]";
    const char *name = forms[form].plugin;
    struct bh_json *c = bh_json_make(a,
                                     "apiVersion: kubescheduler.config.k8s.io/v1, kind: "
                                     "KubeSchedulerConfiguration, profiles: [{plugins: {score: "
                                     "{enabled: [{name: %s}]}}}]",
                                     name),
                   *profile = bh_json_at(bh_json_get(c, "profiles"), 0);
    char file[PATH_MAX];

    if (alone)
        bh_json_set(a, bh_json_get(profile, "plugins"), "multiPoint", bh_json_make(a, others));
    if (!forms[form].guest)
        return c;
    guest_file(file);
    bh_json_add(a, profile,
                "pluginConfig: [{name: %s, args: {guestURL: %s, guestConfig: digit, hookTimeout: "
                "1m}}]",
                name, bh_arena_printf(a, "file://%s", file));
    return c;
}

static int begin(struct rig *r, size_t form, bool alone, uint32_t nodes,
                 const struct bh_engine_observer *o, struct bh_err *err)
{
    const struct bh_scale_options so = {
        .templates = TEMPLATES, .pods_per_node = 1, .zones = 3, .seed = 1, .only = "plain"};

    *r = (struct rig){.pod = nodes};
    int rc = bh_sched_config_new(config_with(&r->a, form, alone), &r->config, err);
    const struct bh_engine_options eo = {
        .config = r->config, .tie_break = BH_TIE_FIRST, .observer = o};
    if (rc >= 0)
        rc = bh_engine_new(&eo, &r->e, err);
    if (rc >= 0) {
        r->in = bh_symtab_interner(bh_engine_symtab(r->e));
        rc = fill(r, &so, nodes, err);
    }
    return rc >= 0 ? decide(r, 0, r->pod++, err) : rc; /* what grows once has grown */
}

static void end(struct rig *r)
{
    bh_scale_objects_free(r->objects);
    bh_engine_free(r->e);
    bh_sched_config_free(r->config);
    bh_arena_fini(&r->a);
}

static int pods_that_differ(struct rig *r, uint32_t nodes, struct measured *m, struct bh_err *err)
{
    const uint32_t n = bh_scale_templates(r->objects);
    const uint64_t began = bh_mono_ns();
    int rc = 0;

    for (uint32_t i = 1; i < n && rc >= 0 && bh_mono_ns() - began < LONG_NS; i++) {
        m->sum = 0;
        m->calls = 0;
        rc = decide(r, i, r->pod++, err);
        if (m->calls) /* else its results were kept, or nobody looked */
            m->ns[m->n++] = m->sum / (m->calls > 1 ? m->calls : nodes);
    }
    m->ns_a_node = middle(m->ns, m->n);
    return rc;
}

static int pods_alike(struct rig *r, struct measured *m, struct bh_err *err)
{
    const uint64_t began = bh_mono_ns();
    struct bh_engine_stats before, after;
    uint32_t i = 0;
    int rc = 0;

    bh_engine_stats(r->e, &before);
    for (; i < DECISIONS && rc >= 0 && bh_mono_ns() - began < LONG_NS; i++)
        rc = decide(r, 0, r->pod++, err);
    m->per_s = i * 1e9 / (double)(bh_mono_ns() - began);
    bh_engine_stats(r->e, &after);
    m->fast = after.fast_cycles - before.fast_cycles;
    m->cycles = after.cycles - before.cycles;
    return rc;
}

static int measure(size_t form, uint32_t nodes, struct measured *m, struct bh_err *err)
{
    const struct bh_engine_observer o = {.now_ns = bh_mono_ns,
                                         .point = on_point,
                                         .fast = on_fast,
                                         .samples = all_samples,
                                         .plugin = on_plugin,
                                         .arg = m};
    const bool alone = forms[form].guest;
    struct rig r;

    *m = (struct measured){.plugin = forms[form].plugin};
    int rc = begin(&r, form, alone, nodes, &o, err);
    if (rc >= 0)
        rc = pods_that_differ(&r, nodes, m, err);
    if (rc >= 0 && alone) {
        end(&r);
        rc = begin(&r, form, false, nodes, &o, err);
    }
    if (rc >= 0)
        rc = pods_alike(&r, m, err);
    end(&r);
    return rc < 0 ? rc : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static double median(const struct measured (*m)[FORMS], size_t f, size_t offset)
{
    double v[ROUNDS];

    for (unsigned i = 0; i < ROUNDS; i++)
        memcpy(&v[i], (const char *)&m[i][f] + offset, sizeof v[i]);
    return middle(v, ROUNDS);
}

static bool no_guest(void)
{
    char file[PATH_MAX];

    guest_file(file);
    return access(file, R_OK) != 0;
}

static int one_size(uint32_t nodes, struct bh_err *err)
{
    static struct measured m[ROUNDS][FORMS];
    double first = 0;

    for (unsigned i = 0; i < ROUNDS; i++)
        for (size_t f = 0; f < FORMS; f++) {
            int rc = forms[f].guest && no_guest() ? 0 : measure(f, nodes, &m[i][f], err);
            if (rc < 0)
                return rc;
        }
    for (size_t f = 0; f < FORMS; f++) {
        double ns = median(m, f, offsetof(struct measured, ns_a_node));
        if (!m[0][f].plugin) /* there is no guest */
            continue;
        first = f ? first : ns;
        printf("%6u  %-18s %8.2f %6.2f %12.0f %6.1f%%\n", nodes, forms[f].form, ns, ns / first,
               median(m, f, offsetof(struct measured, per_s)),
               100.0 * (double)m[0][f].fast / (double)BH_MAX(m[0][f].cycles, UINT64_C(1)));
    }
    return 0;
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* What a guest costs before its first hook: decoded, validated and translated. */
static int load_guest(const char *path, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *bytes = NULL;
    double ms[LOADS];
    size_t n = 0;
    int rc = bh_read_file(path, BH_WASM_BYTES_MAX, &bytes, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    for (unsigned i = 0; i < LOADS; i++) {
        struct bh_wasm_module *m = NULL;
        double began = cpu_ms();
        if ((rc = bh_wasm_load(bytes, n, &m, err)) < 0)
            return bh_err_prefix(err, rc, "%s", path);
        ms[i] = cpu_ms() - began;
        bh_wasm_unload(m);
    }
    printf("guest %s: %zu bytes, loaded in %.2f ms of CPU\n", path, n, middle(ms, LOADS));
    return 0;
}

static int run(const char *guest, struct bh_err *err)
{
    int rc = 0;

    if (guest)
        return load_guest(guest, err);
    if (no_guest())
        fprintf(stderr, WHO ": no guest is measured: there is no " GUEST " in --plugin-dir\n");
    printf("%6s  %-18s %8s %6s %12s %7s\n", "NODES", "FORM", "NS/NODE", "RATIO", "DECISIONS/S",
           "FAST");
    for (size_t i = 0; i < BH_ARRAY_LEN(sizes) && rc == 0; i++)
        rc = one_size(sizes[i], err);
    return rc;
}

int bh_bench_plugins(int argc, char **argv)
{
    struct bh_native_options plugins = {0};
    const char *guest = NULL;
    const struct bh_opt table[] = {BH_NATIVE_OPTIONS(plugins),
                                   {"load-guest", 0, BH_OPT_STR, &guest, "FILE",
                                    "measure only what loading this WebAssembly guest costs"},
                                   {0}};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, &err);

    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    bh_native_start(&plugins, NULL);
    bh_guest_start();
    find_native = bh_plugin_find_more;
    bh_plugin_find_more = find;
    rc = run(guest, &err);
    return rc < 0 ? bh_cli_fail(WHO, &err) : BH_EXIT_OK;
}
