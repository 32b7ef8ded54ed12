/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/count/engine_bench.c - what a decision of the engine costs, and what watching it costs
 *
 *   engine_bench [one|different|nowhere] [DECISIONS] [fast|reference] [observer|alone] [NODES]
 *                [off|summary|full]
 *
 * Without arguments every combination is run once. Each pod that gets a node stays there, so one
 * node has changed before the next decision; now and then the oldest ones go.
 *   one        all pods are of one shape
 *   different  no two pods ask for the same
 *   nowhere    pods of ten shapes that fit on no node
 * observer: durations go into histograms as in berth-scheduler's /metrics; alone: no observer.
 * off, summary, full: decisions are recorded as by berth-scheduler --record-decisions, into a file
 * in $TMPDIR; what the writing thread does is not in the time, but competes for the processors.
 * Prints decisions a second. Instructions, where callgrind is installed:
 *   valgrind --tool=callgrind --toggle-collect=measured --callgrind-out-file=/dev/null \
 *       build/bench/engine_bench one 2000 fast observer
 */
#include "common/base/metrics.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/decisions/recorder.h"
#include "scheduler/engine/engine.h"
#include <time.h>
#include <unistd.h>

enum load { ONE, DIFFERENT, NOWHERE };
static const char *const loads[] = {"one", "different", "nowhere"};

#define KEPT 256u

struct plugin_cell {
    const char *plugin;
    enum bh_seen_point at;
    struct bh_cell *cell;
};
struct bench {
    struct bh_engine *e;
    struct bh_arena a;
    struct bh_interner in;
    struct bh_metrics *m;
    struct bh_metric *point_s, *plugin_s;
    struct bh_cell *point[BH_SEEN_COUNT][16];
    struct plugin_cell plugin[KEPT]; /* by hash */
    struct bh_engine_observer observer;
    uint64_t samples;
    double wanted, more; /* samples, and how many more a sampled cycle brings */
    struct bh_recorder *recorder;
    char file[256];
};
struct one_pod {
    struct bh_pod_rec *rec;
    struct bh_pending pending;
};

/* ---- an observer as berth-scheduler's -------------------------------------------------------- */

static struct bh_cell *point_cell(struct bench *b, enum bh_seen_point at, enum bh_code code)
{
    struct bh_cell **c = &b->point[at][code];

    if (!*c)
        *c = bh_metric_cell(b->point_s, bh_seen_point_name(at), bh_code_name(code));
    return *c;
}

static void on_point(void *arg, uint32_t profile, enum bh_seen_point at, enum bh_code code,
                     uint64_t ns)
{
    (void)profile;
    bh_cell_observe(point_cell(arg, at, code), (double)ns * 1e-9);
}

static void on_fast(void *arg, uint32_t profile, const uint64_t ns[static 3])
{
    (void)profile;
    bh_cell_observe(point_cell(arg, BH_SEEN_PRE_FILTER, BH_SUCCESS), (double)(int64_t)ns[0] * 1e-9);
    bh_cell_observe(point_cell(arg, BH_SEEN_FILTER, BH_SUCCESS), (double)(int64_t)ns[1] * 1e-9);
    bh_cell_observe(point_cell(arg, BH_SEEN_SCORE, BH_SUCCESS), (double)(int64_t)ns[2] * 1e-9);
}

/* BH_SAMPLES_MAX a second, spread over as many decisions as a second has at full speed: so a run
 * under callgrind counts the same. */
static uint32_t wanted_samples(void *arg, uint64_t now_ns)
{
    struct bench *b = arg;

    (void)now_ns;
    b->wanted += b->more;
    return (uint32_t)b->wanted;
}

static void on_plugin(void *arg, const char *plugin, enum bh_seen_point at, enum bh_code code,
                      uint64_t ns)
{
    struct bench *b = arg;

    struct plugin_cell *c = &b->plugin[((uintptr_t)plugin / 8 * 31 + at * 7u + code) % KEPT];

    if (c->plugin != plugin || c->at != at)
        *c = (struct plugin_cell){
            plugin, at,
            bh_metric_cell(b->plugin_s, bh_seen_point_name(at), plugin, bh_code_name(code))};
    bh_cell_observe(c->cell, (double)(int64_t)ns * 1e-9);
    b->samples++;
    b->wanted--;
}

/* ---- a cluster and its pods ------------------------------------------------------------------ */

static void open_bench(struct bench *b, bool reference, bool observed)
{
    static double buckets[20];
    struct bh_err err = {0};

    *b = (struct bench){.m = bh_metrics_new()};
    bh_buckets_exponential(0.0001, 2, BH_ARRAY_LEN(buckets), buckets);
    b->point_s = bh_metric_new(b->m, BH_HISTOGRAM, "point_seconds", "", "extension_point,status",
                               buckets, 12);
    b->plugin_s = bh_metric_new(b->m, BH_HISTOGRAM, "plugin_seconds", "",
                                "extension_point,plugin,status", buckets, BH_ARRAY_LEN(buckets));
    b->observer = (struct bh_engine_observer){.now_ns = bh_mono_ns,
                                              .point = on_point,
                                              .fast = on_fast,
                                              .samples = wanted_samples,
                                              .plugin = on_plugin,
                                              .arg = b};
    const struct bh_engine_options eo = {.tie_break = BH_TIE_FIRST,
                                         .reference = reference,
                                         .observer = observed ? &b->observer : NULL};
    if (bh_engine_new(&eo, &b->e, &err) < 0) {
        fprintf(stderr, "engine_bench: %s\n", err.msg);
        exit(1);
    }
    b->in = bh_symtab_interner(bh_engine_symtab(b->e));
}

static void *decode(struct bench *b, const ProtobufCMessageDescriptor *type, const char *json)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};

    if (bh_decode_object(&b->a, type, json, strlen(json), &m, &err) < 0)
        abort();
    return m;
}

static void add_nodes(struct bench *b, unsigned n)
{
    char json[512];
    struct bh_node_rec *rec;
    struct bh_err err = {0};

    for (unsigned i = 0; i < n; i++) {
        bh_arena_reset(&b->a);
        snprintf(
            json, sizeof(json),
            "{\"metadata\":{\"name\":\"n%05u\",\"labels\":{\"kubernetes.io/hostname\":\"n%05u\","
            "\"topology.kubernetes.io/zone\":\"z%u\"}},\"status\":{\"allocatable\":{\"cpu\":"
            "\"%u\",\"memory\":\"64Gi\",\"pods\":\"110\"}}}",
            i, i, i % 3, 16 + i % 3 * 16);
        if (bh_compile_node(&b->a, decode(b, &k8s__node__descriptor, json), &b->in, &rec, &err) < 0)
            abort();
        bh_engine_put_node(b->e, rec);
    }
}

/* Records live in the arena until the end. */
static struct one_pod make_pod(struct bench *b, unsigned i, enum load load)
{
    static const unsigned cpu[] = {100, 100, 640000};
    unsigned more = load == DIFFERENT ? i : load == NOWHERE ? i % 10 : 0;
    char json[512];
    struct bh_shape_rec *shape;
    struct one_pod p;
    struct bh_err err = {0};

    snprintf(
        json, sizeof(json),
        "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ns\",\"uid\":\"uid-%u\",\"labels\":{"
        "\"app\":\"a\"}},\"spec\":{\"schedulerName\":\"default-scheduler\",\"containers\":[{"
        "\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"%um\",\"memory\":"
        "\"%uKi\"}}}]}}",
        i, i, cpu[load], 65536 + more);
    K8s__Pod *v = decode(b, &k8s__pod__descriptor, json);
    if (bh_compile_shape(&b->a, v, &b->in, &shape, &err) < 0 ||
        bh_compile_pod(&b->a, v, &b->in, &p.rec, &err) < 0)
        abort();
    p.pending = (struct bh_pending){.pod = p.rec, .shape = bh_engine_shape(b->e, shape)};
    return p;
}

/* On a busy machine the only time that means something. */
static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void start_recorder(struct bench *b, enum bh_record_mode mode)
{
    const char *dir = getenv("TMPDIR");
    const struct bh_recorder_options o = {.mode = mode, .path = b->file};

    if (mode == BH_RECORD_OFF)
        return;
    snprintf(b->file, sizeof(b->file), "%s/engine_bench.%d.db", dir ? dir : "/tmp", getpid());
    b->recorder = bh_recorder_new(&o);
}

static void record(struct bench *b, const struct one_pod *p, const struct bh_decision *d)
{
    static const struct bh_record_after after = {.n_reserve = 1,
                                                 .reserve = {{"VolumeBinding", "success", 0}},
                                                 .n_bind = 1,
                                                 .bind = {"DefaultBinder"}};
    const struct bh_recorder_pod pod = {.namespace_ = bh_rec_text(p->rec, p->rec->namespace_),
                                        .name = bh_rec_text(p->rec, p->rec->name),
                                        .uid = bh_rec_text(p->rec, p->rec->uid),
                                        .profile = "default-scheduler",
                                        .trigger = "UnschedulablePodAdd",
                                        .attempt = 1};
    uint64_t n = bh_recorder_begin(b->recorder, b->e, &pod, d, 1000);

    bh_recorder_end(b->recorder, &after, NULL);
    if (d->kind == BH_DECIDED)
        bh_recorder_outcome(b->recorder, n, BH_OUTCOME_BOUND, "");
    if (n % 64 == 0)
        bh_recorder_turn(b->recorder);
}

/* What was written, and what the thread could not keep up with. */
static void report_recorder(struct bench *b, unsigned n)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    static const struct timespec pause = {.tv_nsec = 10000000};
    uint64_t until = bh_mono_ns() + UINT64_C(60000000000);
    struct bh_recorder_stats s = {0};
    char path[280];

    while (b->recorder && s.recorded + s.dropped < n && bh_mono_ns() < until) {
        bh_recorder_turn(b->recorder);
        nanosleep(&pause, NULL);
        bh_recorder_stats(b->recorder, &s);
    }
    if (b->recorder)
        printf("          recorded %llu, dropped %llu, in the file %llu, %.0f bytes each\n",
               (unsigned long long)s.recorded, (unsigned long long)s.dropped,
               (unsigned long long)s.attempts,
               s.attempts ? (double)s.bytes / (double)s.attempts : 0);
    bh_recorder_free(b->recorder);
    for (size_t i = 0; *b->file && i < BH_ARRAY_LEN(ends); i++) {
        snprintf(path, sizeof(path), "%s%s", b->file, ends[i]);
        (void)unlink(path);
    }
}

/* Not inlined: callgrind collects while this is running. */
__attribute__((noinline)) void measured(struct bench *b, struct one_pod *p, unsigned n,
                                        unsigned stay);
void measured(struct bench *b, struct one_pod *p, unsigned n, unsigned stay)
{
    bool full = b->recorder && bh_recorder_mode(b->recorder) == BH_RECORD_FULL;
    unsigned flags = full ? BH_EXPLAIN | BH_RECORD : 0;
    int64_t timeout;

    for (unsigned i = 0; i < n; i++) {
        const struct bh_decision *d = bh_engine_schedule(b->e, &p[i].pending, flags, 0);
        if (bh_unlikely(b->recorder))
            record(b, &p[i], d);
        if (d->kind == BH_DECIDED && (bh_engine_assume(b->e, &p[i].pending, d->node) < 0 ||
                                      bh_engine_reserve(b->e, &p[i].pending, d->node) ||
                                      bh_engine_permit(b->e, &p[i].pending, d->node, &timeout)))
            abort();
        if (d->kind == BH_DECIDED && i >= stay)
            (void)bh_engine_forget(b->e, bh_rec_text(p[i - stay].rec, p[i - stay].rec->uid));
    }
}

static void measure(enum load load, unsigned n, bool reference, bool observed, unsigned nodes,
                    enum bh_record_mode mode)
{
    static const double a_second[] = {200000, 2500, 2000};
    struct bench b;
    struct bh_engine_stats st;

    open_bench(&b, reference, observed);
    b.more = BH_SAMPLES_MAX * BH_SAMPLE_EVERY / (reference ? 1000.0 : a_second[load]);
    add_nodes(&b, nodes);
    bh_arena_reset(&b.a);
    struct one_pod *p = bh_calloc(n + 1, sizeof(*p));
    for (unsigned i = 0; i < n + 1; i++)
        p[i] = make_pod(&b, i, load);
    (void)bh_engine_schedule(b.e, &p[n].pending, 0, 0); /* what grows once has grown */
    b.samples = 0;
    start_recorder(&b, mode);
    uint64_t t = bh_mono_ns(), cpu = cpu_ns(), allocated = bh_allocations;
    measured(&b, p, n, 20000);
    t = bh_mono_ns() - t;
    cpu = cpu_ns() - cpu;
    allocated = bh_allocations - allocated;
    bh_engine_stats(b.e, &st);
    if (mode != BH_RECORD_FULL &&
        (reference ? st.fast_cycles : load != NOWHERE && st.reference_cycles))
        abort(); /* the measure is of something else */
    printf("%-9s %-9s %-8s %u nodes %9u decisions %11.0f a second %9.3f us each (CPU %.3f) %5.2f "
           "samples each %.3f allocations each\n",
           loads[load], reference ? "reference" : "fast", observed ? "observer" : "alone", nodes, n,
           n * 1e9 / (double)t, (double)t / n / 1e3, (double)cpu / n / 1e3, (double)b.samples / n,
           (double)allocated / n);
    report_recorder(&b, n);
    free(p);
    bh_engine_free(b.e);
    bh_arena_fini(&b.a);
    bh_metrics_free(b.m);
}

static int usage(void)
{
    fputs("usage: engine_bench [one|different|nowhere [DECISIONS [fast|reference "
          "[observer|alone [NODES [off|summary|full]]]]]]\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const unsigned usual[] = {100000, 2000, 2000};
    int mode = bh_word_at("off summary full", argc > 6 ? argv[6] : "off");
    unsigned load = 0;

    for (unsigned i = 0; argc == 1 && i < 12; i++)
        measure(i / 4, i & 2 ? 100 : usual[i / 4], i & 2, i & 1, 5000, BH_RECORD_OFF);
    if (argc == 1)
        return 0;
    while (load < BH_ARRAY_LEN(loads) && strcmp(loads[load], argv[1]) != 0)
        load++;
    if (load == BH_ARRAY_LEN(loads) || argc > 7)
        return usage();
    unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : usual[load];
    unsigned nodes = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 5000;
    if (!n || !nodes || (argc > 3 && strcmp(argv[3], "fast") && strcmp(argv[3], "reference")) ||
        (argc > 4 && strcmp(argv[4], "observer") && strcmp(argv[4], "alone")) || mode < 0)
        return usage();
    measure(load, n, argc > 3 && !strcmp(argv[3], "reference"),
            argc <= 4 || !strcmp(argv[4], "observer"), nodes, (enum bh_record_mode)mode);
    return 0;
}
