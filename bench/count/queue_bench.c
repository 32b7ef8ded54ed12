/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/queue_bench.c - what a cluster event costs while many pods wait that fit nowhere
 *
 * All pods wait in the unschedulable set, rejected by NodeResourcesFit; the events are nodes that
 * are too small for every one of them, so nothing moves: this is the price of looking. Pods of 10
 * templates, pods that all have other labels (Jobs), and pods that all ask for another amount,
 * which is the worst case: nothing is the same for two of them. Prints hints asked and time an
 * event. Argument: the largest number of waiting pods (100000).
 */
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/queue/queue.h"

#define S      INT64_C(1000000000)
#define EVENTS 200u

struct bench {
    struct bh_engine *e;
    struct bh_queue *q;
    struct bh_arena a;
    struct bh_interner in;
};

static void open_bench(struct bench *b)
{
    const struct bh_engine_options eo = {.tie_break = BH_TIE_FIRST};
    const struct bh_queue_options qo = {
        .initial_backoff_ns = S, .max_backoff_ns = 10 * S, .max_in_unschedulable_ns = 300 * S};
    struct bh_err err = {0};

    if (bh_engine_new(&eo, &b->e, &err) < 0) {
        fprintf(stderr, "queue_bench: %s\n", err.msg);
        exit(1);
    }
    b->q = bh_queue_new(b->e, &qo);
    bh_arena_init(&b->a, 0);
    b->in = bh_symtab_interner(bh_engine_symtab(b->e));
}

static void close_bench(struct bench *b)
{
    bh_queue_free(b->q);
    bh_engine_free(b->e);
    bh_arena_fini(&b->a);
}

static void *decode(struct bench *b, const ProtobufCMessageDescriptor *type, const char *json)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};

    if (bh_decode_object(&b->a, type, json, strlen(json), &m, &err) < 0)
        abort();
    return m;
}

static void add_pod(struct bench *b, unsigned i, unsigned template, bool amounts)
{
    char json[512];
    struct bh_shape_rec *shape;
    struct bh_pod_rec *pod;
    struct bh_err err = {0};

    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ns\",\"uid\":\"uid-%u\",\"labels\":{"
             "\"app\":\"a%u\"}},\"spec\":{\"schedulerName\":\"default-scheduler\",\"containers\":[{"
             "\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%um\",\"memory\":\"1Gi\"}}}]}}",
             i, i, template, 64000 + (amounts ? i : 0));
    bh_arena_reset(&b->a);
    K8s__Pod *p = decode(b, &k8s__pod__descriptor, json);
    if (bh_compile_shape(&b->a, p, &b->in, &shape, &err) < 0 ||
        bh_compile_pod(&b->a, p, &b->in, &pod, &err) < 0)
        abort();
    pod->resource_version = i + 1;
    bh_queue_add(b->q, pod, bh_engine_shape(b->e, shape), "1", S);
}

static void reject_all(struct bench *b)
{
    const char *const by = "NodeResourcesFit";
    struct bh_queued_pod *p;

    while ((p = bh_queue_pop(b->q, S)))
        bh_queue_return(b->q, bh_rec_text(p->pending.pod, p->pending.pod->uid), &by, 1, NULL, 0, S);
}

static void measure(unsigned pods, unsigned templates, bool amounts)
{
    struct bench b;
    struct bh_queue_stats before, after;
    struct bh_node_rec *node;
    struct bh_err err = {0};

    open_bench(&b);
    for (unsigned i = 0; i < pods; i++)
        add_pod(&b, i, i % templates, amounts);
    reject_all(&b);
    bh_arena_reset(&b.a);
    K8s__Node *n = decode(&b, &k8s__node__descriptor,
                          "{\"metadata\":{\"name\":\"small\"},\"status\":{\"allocatable\":{\"cpu\":"
                          "\"8\",\"memory\":\"32Gi\",\"pods\":\"110\"}}}");
    if (bh_compile_node(&b.a, n, &b.in, &node, &err) < 0)
        abort();
    bh_engine_put_node(b.e, node);
    const struct bh_cluster_event ev = {
        .resource = BH_EV_NODE, .action = BH_EV_ADD, .new_node = node};
    bh_queue_stats(b.q, &before);
    uint64_t t = bh_mono_ns(), allocated = bh_allocations;
    for (unsigned i = 0; i < EVENTS; i++)
        bh_queue_event(b.q, &ev, 2 * S);
    t = bh_mono_ns() - t;
    allocated = bh_allocations - allocated;
    bh_queue_stats(b.q, &after);
    if (after.unschedulable != pods)
        abort(); /* the measure is of something else */
    printf("%8u pods wait, %6u templates%s %10.1f hints an event %12.2f us an event %.3f "
           "allocations each\n",
           pods, templates, amounts ? ", other amounts" : "",
           (double)(after.hints - before.hints) / EVENTS, (double)t / EVENTS / 1e3,
           (double)allocated / EVENTS);
    close_bench(&b);
}

int main(int argc, char **argv)
{
    unsigned max = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;

    for (unsigned pods = 1000; pods <= max; pods *= 10)
        measure(pods, 10, false);
    for (unsigned pods = 1000; pods <= max; pods *= 10)
        measure(pods, pods, false);
    for (unsigned pods = 1000; pods <= max; pods *= 10)
        measure(pods, pods, true);
    return 0;
}
