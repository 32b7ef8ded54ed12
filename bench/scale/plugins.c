/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/plugins.c - `berth bench plugins`: one score in each form that a plugin can have
 *
 * NodeNumber, built in and out of a file. What it costs a node is what the engine's observer sees of
 * the plugin's calls when a pod of a new template comes, for which all nodes are scored; decisions a
 * second are of one template, whose results are kept. Forms are measured in turns, so that other load on
 * the machine meets all of them.
 */
#include "bench/scale/plugins.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/base/symtab.h"
#include "common/wasm/store.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/native/native.h"
#include "scheduler/wasm/guest.h"

#define WHO       "berth bench plugins"
#define ROUNDS    5u
#define TEMPLATES 200u
#define DECISIONS 20000u
#define LOADS     21u
/* What answers for each pod: fewer tell as much. */
#define TEMPLATES_EACH 50u
#define DECISIONS_EACH 200u
#define ROUNDS_OF(f)   ((f)->plugin ? ROUNDS : 1u)
#define BUILT_IN       "NodeNumberBuiltIn"
#define BUILT_IN_ROWS  "NodeNumberBuiltInRows"
#define APART          "NodeNumberApart"
#define GUEST          "/wasm/nodenumber.wasm" /* in --plugin-dir */

/* The first one is what others are compared with. */
static const struct bh_bench_form forms[] = {
    {"built in", BUILT_IN, true, BH_BENCH_NO_GUEST},
    {"built in, batch", BUILT_IN_ROWS, true, BH_BENCH_NO_GUEST},
    {"native, per node", "NodeNumber", false, BH_BENCH_NO_GUEST},
    {"native, batch", "NodeNumberRows", false, BH_BENCH_NO_GUEST},
    {"native, process", APART, false, BH_BENCH_NO_GUEST},
    {"guest, interpreted", "NodeNumberGuest", false, BH_BENCH_GUEST},
    {"guest, nodeLocal", "NodeNumberLocal", false, BH_BENCH_GUEST_LOCAL},
    {"guest, compiled", "NodeNumberFast", false, BH_BENCH_GUEST_COMPILED},
    {"HTTP extender", NULL, false, BH_BENCH_NO_GUEST},
    {"none of them", "", false, BH_BENCH_NO_GUEST}};
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
    static const struct bh_plugin built_in[] = {
        {BH_PLUGIN_HEAD(BUILT_IN), .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_READS_NODE,
         .events = bh_no_events, .score = score},
        {BH_PLUGIN_HEAD(BUILT_IN_ROWS), .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_READS_NODE,
         .events = bh_no_events, .score = score, .score_rows = score_rows}};

    for (size_t i = 0; i < BH_ARRAY_LEN(built_in); i++)
        if (bh_streq(name, built_in[i].name))
            return &built_in[i];
    return find_native(name);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* false: there is none. */
static bool guest_file(char out[static PATH_MAX])
{
    const char *dir = getenv("BERTH_PLUGIN_DIR");
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s" GUEST, dir && *dir ? dir : BH_PLUGIN_DIR);

    return realpath(path, out) && access(out, R_OK) == 0;
}

/* The form's guest is to be looked up there: a name's guest is loaded once. */
static void choose_code(const struct bh_bench_form *f, const char *cache)
{
    setenv("BERTH_WASM_CACHE", f->guest == BH_BENCH_GUEST_COMPILED ? cache : "/none", 1);
}

static int compile_guest(const char *file, const char *cache, char **ret, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *bytes = NULL;
    struct bh_wasm_build how = {.cc = "cc"};
    struct bh_wasm_module *m = NULL;
    char sha256[65];
    size_t n = 0;
    int rc = bh_read_file(file, BH_WASM_BYTES_MAX, &bytes, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", file, strerror(-rc));
    bh_wasm_digest(bytes, n, sha256);
    rc = bh_wasm_load(bytes, n, &m, err);
    if (rc == 0)
        rc = bh_wasm_build(m, sha256, cache, &how, ret, err);
    bh_wasm_unload(m);
    return rc;
}

/* It says for each pod what it says. */
static bool answers_each(const struct bh_bench_form *f)
{
    return !f->plugin || f->guest == BH_BENCH_GUEST;
}

struct bh_json *bh_bench_form_config(struct bh_arena *a, const struct bh_bench_form *f,
                                     const struct bh_bench_extender *x)
{
    struct bh_json *c = bh_json_make(a, "apiVersion: kubescheduler.config.k8s.io/v1, kind: "
                                        "KubeSchedulerConfiguration");
    const bool local = f->guest != BH_BENCH_GUEST;
    char file[PATH_MAX];

    if (f->guest && guest_file(file))
        bh_json_add(a, c,
                    "profiles: [{plugins: {preFilter: {enabled: [{name: %s}]}, score: {enabled: "
                    "[{name: %s}]}}, pluginConfig: [{name: %s, args: {guestURL: %s, guestConfig: "
                    "digit, nodeLocal: %i}}]}]",
                    f->plugin, f->plugin, f->plugin, bh_arena_printf(a, "file://%s", file), local);
    else if (f->plugin && *f->plugin)
        bh_json_add(a, c, "profiles: [{plugins: {score: {enabled: [{name: %s}]}}}]", f->plugin);
    else if (!f->plugin)
        bh_json_add(a, c,
                    "extenders: [{urlPrefix: %s, prioritizeVerb: prioritize, weight: 1, "
                    "nodeCacheCapable: true, httpTimeout: 30s}]",
                    bh_arena_printf(a, "http://127.0.0.1:%u", x->port));
    return c;
}

/* The form alone: no other filters and scores, so that the calls that the observer sees of a decision
 * are the plugin's. */
static struct bh_json *config_alone(struct bh_arena *a, const struct bh_bench_form *f,
                                    const struct bh_bench_extender *x)
{
    struct bh_json *c = bh_bench_form_config(a, f, x);

    bh_json_set(a, bh_json_get(bh_json_at(bh_json_get(c, "profiles"), 0), "plugins"), "multiPoint",
                bh_json_make(a, "disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: "
                                "DefaultBinder}]"));
    return c;
}

struct measured {
    const char *plugin; /* as in the form */
    bool each;          /* it answers for each pod */
    uint64_t fast, cycles;
    double ns_a_node, per_s;
    double ns[TEMPLATES]; /* a node's, of decisions that scored all nodes */
    uint32_t n;
    double sum; /* of the decision that is being taken: its calls ... */
    uint32_t calls;
};

static uint32_t all_samples(void *arg BH_UNUSED, uint64_t now_ns BH_UNUSED)
{
    return UINT32_MAX;
}

static void on_plugin(void *arg, const char *plugin, enum bh_seen_point at,
                      enum bh_code code BH_UNUSED, uint64_t ns)
{
    struct measured *m = arg;

    if (at == BH_SEEN_SCORE && m->plugin && bh_streq(plugin, m->plugin)) {
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
    struct bh_sched_config *config;
    struct bh_scale_objects *objects;
    struct bh_interner in;
    struct bh_arena a;
    uint64_t decision_ns; /* the last one's */
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
    char uid[BH_SCALE_NAME_BYTES];

    bh_scale_uid(pod, uid);
    if (bh_engine_raw_needs(r->e)) {
        struct bh_str object = bh_scale_pod_bytes(r->objects, tmpl);
        bh_engine_put_raw(r->e, BH_KIND_POD, uid, object.p, object.n);
    }
    uint64_t t = bh_mono_ns();
    const struct bh_decision *d = bh_engine_schedule(r->e, &p, 0, 0);
    r->decision_ns = bh_mono_ns() - t;
    if (d->kind != BH_DECIDED)
        rc = bh_err_set(err, -EIO, "pod %u: %s", pod, d->message ? d->message : "it fits nowhere");
    if (bh_engine_raw_needs(r->e))
        bh_engine_put_raw(r->e, BH_KIND_POD, uid, NULL, 0);
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

/* Pods of templates that were not there before. Of the extender the whole decision counts, of which
 * the question is nearly all. */
static int new_templates(struct rig *r, uint32_t nodes, struct measured *m, struct bh_err *err)
{
    const uint32_t n = BH_MIN(bh_scale_templates(r->objects), m->each ? TEMPLATES_EACH : TEMPLATES);
    int rc = decide(r, 0, nodes, err); /* what grows once has grown */

    m->n = 0;
    for (uint32_t i = 1; i < n && rc >= 0; i++) {
        m->sum = 0;
        m->calls = 0;
        rc = decide(r, i, nodes + i, err);
        if (!m->plugin)
            m->ns[m->n++] = (double)r->decision_ns / nodes;
        else if (m->calls) /* one, for all nodes */
            m->ns[m->n++] = m->sum / nodes;
    }
    m->ns_a_node = middle(m->ns, m->n);
    return rc;
}

static int one_template(struct rig *r, uint32_t nodes, struct measured *m, struct bh_err *err)
{
    const uint32_t n = m->each ? DECISIONS_EACH : DECISIONS;
    struct bh_engine_stats before, after;
    uint64_t t = bh_mono_ns();
    int rc = 0;

    bh_engine_stats(r->e, &before);
    for (uint32_t i = 0; i < n && rc >= 0; i++)
        rc = decide(r, 0, nodes + TEMPLATES + i, err);
    m->per_s = n * 1e9 / (double)(bh_mono_ns() - t);
    bh_engine_stats(r->e, &after);
    m->fast = after.fast_cycles - before.fast_cycles;
    m->cycles = after.cycles - before.cycles;
    return rc;
}

static int begin(struct rig *r, struct bh_json *tree, uint32_t nodes,
                 const struct bh_engine_observer *o, struct bh_err *err)
{
    const struct bh_scale_options so = {
        .templates = TEMPLATES, .pods_per_node = 1, .zones = 3, .seed = 1, .only = "plain"};
    int rc = bh_sched_config_new(tree, &r->config, err);
    const struct bh_engine_options eo = {
        .config = r->config, .tie_break = BH_TIE_FIRST, .observer = o};

    if (rc >= 0)
        rc = bh_engine_new(&eo, &r->e, err);
    if (rc < 0)
        return rc;
    r->in = bh_symtab_interner(bh_engine_symtab(r->e));
    return fill(r, &so, nodes, err);
}

static void end(struct rig *r)
{
    bh_scale_objects_free(r->objects);
    bh_engine_free(r->e);
    bh_sched_config_free(r->config);
    bh_arena_fini(&r->a);
    *r = (struct rig){0};
}

static int measure(const struct bh_bench_form *f, const struct bh_bench_extender *x, uint32_t nodes,
                   struct measured *m, struct bh_err *err)
{
    const struct bh_engine_observer o = {.now_ns = bh_mono_ns,
                                         .point = on_point,
                                         .fast = on_fast,
                                         .samples = all_samples,
                                         .plugin = on_plugin,
                                         .arg = m};
    const bool alone = f->guest == BH_BENCH_GUEST;
    struct rig r = {0};

    *m = (struct measured){.plugin = f->plugin, .each = answers_each(f)};
    int rc = begin(&r, (alone ? config_alone : bh_bench_form_config)(&r.a, f, x), nodes, &o, err);
    if (rc >= 0)
        rc = new_templates(&r, nodes, m, err);
    if (rc >= 0 && alone) {
        end(&r);
        rc = begin(&r, bh_bench_form_config(&r.a, f, x), nodes, &o, err);
    }
    if (rc >= 0)
        rc = one_template(&r, nodes, m, err);
    end(&r);
    return rc < 0 ? rc : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static double median(const struct measured (*m)[FORMS], size_t f, size_t offset)
{
    const unsigned n = ROUNDS_OF(&forms[f]);
    double v[ROUNDS];

    for (unsigned i = 0; i < n; i++)
        memcpy(&v[i], (const char *)&m[i][f] + offset, sizeof v[i]);
    return middle(v, n);
}

static void print_row(const struct measured (*m)[FORMS], size_t f, uint32_t nodes, double pipeline)
{
    const double ns = median(m, f, offsetof(struct measured, ns_a_node)),
                 first = median(m, 0, offsetof(struct measured, ns_a_node));
    char cost[40] = "        -      -", pods[16] = "-";

    if (ns > 0)
        snprintf(cost, sizeof cost, "%9.2f %6.2f", ns, ns / first);
    if (pipeline > 0)
        snprintf(pods, sizeof pods, "%.0f", pipeline);
    printf("%6u  %-18s %s %12.0f %6.1f%% %8s\n", nodes, forms[f].form, cost,
           median(m, f, offsetof(struct measured, per_s)),
           100.0 * (double)m[0][f].fast / (double)BH_MAX(m[0][f].cycles, UINT64_C(1)), pods);
    fflush(stdout);
}

/* Guests by what there is: a file of one, a compiled one. */
struct guests {
    bool interpreted;
    char cache[32]; /* folder of the compiled one */
    char *compiled; /* its file; NULL: there is none */
};

static bool is_there(const struct guests *g, const struct bh_bench_form *f)
{
    return f->guest == BH_BENCH_GUEST_COMPILED ? g->compiled != NULL : g->interpreted || !f->guest;
}

static struct guests find_guests(void)
{
    struct guests g = {.cache = "/tmp/berth-guests-XXXXXX"};
    char file[PATH_MAX];
    struct bh_err err = {0};

    g.interpreted = guest_file(file);
    if (!g.interpreted)
        fprintf(stderr, WHO ": no guest is measured: there is no " GUEST " in --plugin-dir\n");
    else if (!mkdtemp(g.cache) || compile_guest(file, g.cache, &g.compiled, &err) < 0)
        fprintf(stderr, WHO ": no compiled guest is measured: %s\n", err.msg);
    return g;
}

static void forget_guests(struct guests *g)
{
    if (g->compiled)
        (void)unlink(g->compiled);
    free(g->compiled);
    if (g->interpreted)
        (void)rmdir(g->cache);
}

static int one_size(uint32_t nodes, bool pipeline, const struct bh_bench_extender *x,
                    const struct guests *g, struct bh_err *err)
{
    static struct measured m[ROUNDS][FORMS];
    int rc = 0;

    for (unsigned i = 0; i < ROUNDS; i++)
        for (size_t f = 0; f < FORMS && rc == 0; f++)
            if (i < ROUNDS_OF(&forms[f]) && is_there(g, &forms[f])) {
                choose_code(&forms[f], g->cache);
                rc = measure(&forms[f], x, nodes, &m[i][f], err);
            }
    for (size_t f = 0; f < FORMS && rc == 0; f++) {
        double per_s = 0;
        if (!is_there(g, &forms[f]))
            continue;
        choose_code(&forms[f], g->cache);
        if (pipeline && !forms[f].here)
            rc = bh_bench_form_pipeline(&forms[f], x, nodes, &per_s, err);
        if (rc == 0)
            print_row(m, f, nodes, per_s);
    }
    return rc;
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

/* A plugin configuration of ours, in which one plugin is in a process of its own; *file: what is in it. */
static int make_config(char dir[static 64], char file[static 80], struct bh_err *err)
{
    static const char text[] = "name: " APART "\nfile: nodenumber.so\nmode: process\n";

    snprintf(dir, 64, "/tmp/berth-bench-XXXXXX");
    int rc = mkdtemp(dir) ? 0 : -errno;
    snprintf(file, 80, "%s/apart.yaml", dir);
    if (rc == 0)
        rc = bh_write_file(file, text, sizeof text - 1, 0600);
    return rc < 0 ? bh_err_set(err, rc, "%s: %s", dir, strerror(-rc)) : 0;
}

/* Of a checkout: BUILD/plugins beside BUILD/bin. False: it is none, or has not been built. */
static bool find_own_plugins(char out[static PATH_MAX])
{
    char exe[PATH_MAX] = "", file[PATH_MAX + 32];

    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0 || !strrchr(exe, '/'))
        return false;
    *strrchr(exe, '/') = '\0';
    snprintf(file, sizeof file, "%s/../plugins", exe);
    if (!realpath(file, out))
        return false;
    snprintf(file, sizeof file, "%s/nodenumber.so", out);
    return access(file, R_OK) == 0;
}

int bh_bench_plugins(int argc, char **argv)
{
    char dir[64] = "", file[80] = "", own[PATH_MAX];
    struct bh_native_options plugins = {0};
    struct bh_bench_extender x = {0};
    bool pipeline = false;
    const char *guest = NULL;
    int64_t nodes = 0;
    const struct bh_opt table[] = {
        {"plugin-dir", 0, BH_OPT_STR, &plugins.dir, "DIR",
         "where nodenumber.so is (default $BERTH_PLUGIN_DIR, that of a checkout's build folder, "
         "or " BH_PLUGIN_DIR ")"},
        {"load-guest", 0, BH_OPT_STR, &guest, "FILE",
         "measure only what loading this WebAssembly guest costs"},
        {"nodes", 0, BH_OPT_INT, &nodes, "N", "one size of the cluster (default 100, 1000, 5000)"},
        {"pipeline", 0, BH_OPT_BOOL, &pipeline, NULL,
         "also pods a second of the real processes, from creation to node (two minutes)"},
        {0}};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, &err);

    if (rc == 0 && (nodes < 0 || nodes > 1000000))
        rc = bh_err_set(&err, -EINVAL, "invalid value for --nodes: 1 to 1000000");
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    if (guest)
        return load_guest(guest, &err) < 0 ? bh_cli_fail(WHO, &err) : BH_EXIT_OK;
    rc = bh_bench_extender_start(&x, &err);
    if (rc == 0)
        rc = make_config(dir, file, &err);
    if (!plugins.dir && !getenv("BERTH_PLUGIN_DIR") && find_own_plugins(own))
        plugins.dir = own;
    plugins.config = dir;
    bh_native_start(&plugins, NULL);
    bh_guest_start();
    find_native = bh_plugin_find_more;
    bh_plugin_find_more = find;
    struct guests g = find_guests();
    if (rc == 0)
        printf("%6s  %-18s %9s %6s %12s %7s %8s\n", "NODES", "FORM", "NS/NODE", "RATIO",
               "DECISIONS/S", "FAST", "PODS/S");
    for (size_t i = 0; i < (nodes ? 1 : BH_ARRAY_LEN(sizes)) && rc == 0; i++)
        rc = one_size(nodes ? (uint32_t)nodes : sizes[i], pipeline, &x, &g, &err);
    forget_guests(&g);
    bh_bench_extender_stop(&x);
    (void)unlink(file);
    (void)rmdir(dir);
    return rc < 0 ? bh_cli_fail(WHO, &err) : BH_EXIT_OK;
}
