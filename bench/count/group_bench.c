/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/count/group_bench.c - what it costs to decide about a group as a whole
 *
 *   group_bench [TEXT]     all cases, or those with the text in their name
 *
 * Gangs on 5,000 nodes, each of which stays; gangs that go into one of 50 racks, after they were tried
 * in all; then gangs for which nodes that are full with pods of
 * lower priority, ten each, have to be cleared: as v1.36 (anew) and as 1.37 (in place). CPU time.
 */
#include "common/flags/kube_flags.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/engine/engine.h"
#include <time.h>

#define GATES                                                                                      \
    "--feature-gates=GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
#define VICTIMS_A_NODE 10u
#define RACKS          50u

static const char *only = "";

struct bench {
    struct bh_engine *e;
    struct bh_sched_config *config;
    struct bh_kube_flags flags;
    struct bh_arena a;
    struct bh_interner in;
    unsigned n_pods;
    bool racks;
};

static void *decode(struct bench *b, const ProtobufCMessageDescriptor *type, const char *json)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};

    if (bh_decode_object(&b->a, type, json, strlen(json), &m, &err) < 0)
        abort();
    return m;
}

static void open_bench(struct bench *b, bool stays, bool racks, unsigned nodes)
{
    static const struct bh_opt_usage usage = {.program = "group_bench"};
    char *argv[] = {
        (char[]){"group_bench"},
        racks ? (char[]){GATES ",TopologyAwareWorkloadScheduling=true"} : (char[]){GATES}, NULL};
    struct bh_engine_options o = {.tie_break = BH_TIE_FIRST, .group_stays = stays};
    struct bh_err err = {0};

    *b = (struct bench){.racks = racks};
    if (bh_kube_flags_parse(&b->flags, NULL, &usage, 2, argv, &err) ||
        bh_sched_config_new(NULL, &b->config, &err) < 0)
        abort();
    bh_sched_config_apply_flags(b->config, &b->flags);
    o.config = b->config;
    if (bh_engine_new(&o, &b->e, &err) < 0)
        abort();
    b->in = bh_symtab_interner(bh_engine_symtab(b->e));
    for (unsigned i = 0; i < nodes; i++) {
        struct bh_node_rec *rec;
        const char *json = bh_arena_printf(
            &b->a,
            "{\"metadata\":{\"name\":\"n%05u\",\"labels\":{\"rack\":\"r%u\"}},\"status\":{"
            "\"allocatable\":{\"cpu\":\"%u\",\"memory\":\"64Gi\",\"pods\":\"110\"}}}",
            i, i * RACKS / nodes, VICTIMS_A_NODE);
        if (bh_compile_node(&b->a, decode(b, &k8s__node__descriptor, json), &b->in, &rec, &err) < 0)
            abort();
        bh_engine_put_node(b->e, rec);
    }
}

static void close_bench(struct bench *b)
{
    bh_engine_free(b->e);
    bh_sched_config_free(b->config);
    bh_kube_flags_free(&b->flags);
    bh_arena_fini(&b->a);
}

/* group: "" = of none. */
static struct bh_pending make_pod(struct bench *b, const char *group, const char *cpu)
{
    const unsigned i = b->n_pods++;
    struct bh_err err = {0};
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    const char *json = bh_arena_printf(
        &b->a,
        "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ns\",\"uid\":\"uid-%u\"},\"spec\":{%s"
        "\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":\"c\",\"image\":\"i\","
        "\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]}}",
        i, i,
        *group ? bh_arena_printf(&b->a, "\"schedulingGroup\":{\"podGroupName\":\"%s\"},", group)
               : "",
        cpu);
    K8s__Pod *v = decode(b, &k8s__pod__descriptor, json);

    if (bh_compile_shape(&b->a, v, &b->in, &shape, &err) < 0 ||
        bh_compile_pod(&b->a, v, &b->in, &rec, &err) < 0)
        abort();
    return (struct bh_pending){.pod = rec, .shape = bh_engine_shape(b->e, shape)};
}

static void fill(struct bench *b, unsigned nodes)
{
    for (unsigned i = 0; i < nodes * VICTIMS_A_NODE; i++) {
        struct bh_pending p = make_pod(b, "", "1");
        struct bh_pod_rec *rec = bh_arena_memdup(&b->a, p.pod, p.pod->h.size);
        char name[16];
        snprintf(name, sizeof name, "n%05u", i / VICTIMS_A_NODE);
        rec->node = bh_sym_internc(bh_engine_symtab(b->e), name);
        bh_engine_put_pod(b->e, rec, p.shape);
    }
}

static struct bh_group_try *make_gang(struct bench *b, unsigned number, unsigned size,
                                      const char *cpu)
{
    struct bh_group_try *v = bh_arena_new_array(&b->a, struct bh_group_try, size);
    const char *name = bh_arena_printf(&b->a, "g%u", number);
    struct bh_buf bytes = {0};
    struct bh_err err = {0};

    bh_pb_pack(&bytes, decode(b, &k8s__pod_group__descriptor,
                              bh_arena_printf(&b->a,
                                              "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\","
                                              "\"uid\":\"%s\"},\"spec\":{\"schedulingPolicy\":{"
                                              "\"gang\":{\"minCount\":%u}},\"priority\":10%s}}",
                                              name, name, size,
                                              b->racks ? ",\"schedulingConstraints\":{"
                                                         "\"topology\":[{\"key\":\"rack\"}]}"
                                                       : "")));
    if (bh_engine_put_object(b->e, BH_KIND_PODGROUP, "ns", name, bh_buf_str(&bytes), bytes.n, &err))
        abort();
    bh_buf_fini(&bytes);
    for (unsigned i = 0; i < size; i++) {
        v[i] = (struct bh_group_try){.pod = make_pod(b, name, cpu)};
        bh_engine_waits(b->e, &v[i].pod, true);
    }
    return v;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* full: nodes have to be cleared, and are not: each gang finds them as they were. */
static void measure(const char *what, unsigned nodes, unsigned size, unsigned n, bool full,
                    bool stays)
{
    const bool racks = strstr(what, "rack") != NULL;
    uint64_t *took = bh_calloc(n, sizeof *took);
    struct bh_group_result r = {0};
    struct bench b;

    if (!strstr(what, only)) {
        free(took);
        return;
    }
    open_bench(&b, stays, racks, nodes);
    if (full)
        fill(&b, nodes);
    for (unsigned i = 0; i < n; i++) {
        struct bh_group_try *v = make_gang(&b, i, size, full ? "1" : "100m");
        const uint64_t began = cpu_ns();
        bh_engine_schedule_group(b.e, v, size, 0, INT64_C(1893456000) * 1000000000, &r);
        took[i] = cpu_ns() - began;
        if (full ? !r.n_victims : r.code != BH_SUCCESS)
            abort();
    }
    qsort(took, n, sizeof *took, by_size);
    printf("%-28s %6u nodes %5u gangs of %4u   p50 %9.1f us   p99 %9.1f us   victims %u\n", what,
           nodes, n, size, (double)took[n / 2] / 1e3, (double)took[n - 1 - n / 100] / 1e3,
           r.n_victims);
    free(took);
    close_bench(&b);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        only = argv[1];
    measure("room for all", 5000, 3, 3000, false, false);
    measure("room for all", 5000, 1000, 9, false, false);
    measure("room for all", 100000, 3, 3000, false, false);
    measure("room for all", 100000, 1000, 9, false, false);
    measure("one of 50 racks", 5000, 4, 750, false, false);
    measure("one of 50 racks", 5000, 1000, 3, false, false);
    measure("10,000 candidates, anew", 1000, 3, 20, true, false);
    measure("10,000 candidates, in place", 1000, 3, 20, true, true);
    measure("10,000 candidates, in place", 1000, 1000, 2, true, true);
    return 0;
}
