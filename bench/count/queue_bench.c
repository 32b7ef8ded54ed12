/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/count/queue_bench.c - what a cluster event costs while many pods wait that fit nowhere
 *
 * All pods wait in the unschedulable set, rejected by NodeResourcesFit; the events are nodes that
 * are too small for every one of them, so nothing moves: this is the price of looking. Pods of 10
 * templates, pods that all have other labels (Jobs), and pods that all ask for another amount,
 * which is the worst case: nothing is the same for two of them. Prints hints asked and time an
 * event. Argument: the largest number of waiting pods (100000).
 */
#include "simulator/offline/offline.h"

#define S      INT64_C(1000000000)
#define EVENTS 200u

struct bench {
    struct bh_sched_config *config;
    struct bh_offline w;
    struct bh_arena a;
};

static struct bh_offline_object read_object(struct bench *b, enum bh_kind kind, const char *json)
{
    struct bh_offline_object x;
    struct bh_json *tree;

    bh_arena_reset(&b->a);
    if (bh_json_parse(&b->a, json, strlen(json), 0, &tree, NULL) < 0 ||
        bh_offline_read(b->w.engine, &b->a, &bh_kinds[kind], tree, &x, NULL) < 0)
        abort();
    return x;
}

static void add_pod(struct bench *b, unsigned i, unsigned template, bool amounts)
{
    char json[512];

    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ns\",\"uid\":\"uid-%u\",\"labels\":{"
             "\"app\":\"a%u\"}},\"spec\":{\"schedulerName\":\"default-scheduler\",\"containers\":[{"
             "\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%um\",\"memory\":\"1Gi\"}}}]}}",
             i, i, template, 64000 + (amounts ? i : 0));
    const struct bh_offline_object x = read_object(b, BH_KIND_POD, json);
    (void)bh_offline_put(&b->w, &x, NULL);
}

static void measure(unsigned pods, unsigned templates, bool amounts)
{
    struct bench b = {0};
    struct bh_queue_stats before, after;

    struct bh_offline_options o = {.tie_break = BH_TIE_FIRST, .now_ns = S};
    struct bh_err err = {0};
    if (bh_sched_config_load(NULL, &b.config, &err) < 0)
        abort();
    o.config = b.config;
    if (bh_offline_init(&b.w, &o, &err) < 0)
        abort();
    for (unsigned i = 0; i < pods; i++)
        add_pod(&b, i, i % templates, amounts);
    const char *const by = "NodeResourcesFit";
    struct bh_queued_pod *p;
    while ((p = bh_queue_pop(b.w.queue, 2 * S)))
        bh_queue_return(b.w.queue, p->pod, &by, 1, NULL, 0, 2 * S);
    const struct bh_offline_object x =
        read_object(&b, BH_KIND_NODE,
                    "{\"metadata\":{\"name\":\"small\"},\"status\":{\"allocatable\":{\"cpu\":\"8\","
                    "\"memory\":\"32Gi\",\"pods\":\"110\"}}}");
    bh_engine_put_node(b.w.engine, x.node);
    const struct bh_cluster_event ev = {
        .resource = BH_EV_NODE, .action = BH_EV_ADD, .new_node = x.node};
    bh_queue_stats(b.w.queue, &before);
    uint64_t t = bh_mono_ns(), allocated = bh_allocations;
    for (unsigned i = 0; i < EVENTS; i++)
        bh_queue_event(b.w.queue, &ev, 3 * S);
    t = bh_mono_ns() - t;
    allocated = bh_allocations - allocated;
    bh_queue_stats(b.w.queue, &after);
    if (after.unschedulable != pods)
        abort(); /* the measure is of something else */
    printf("%8u pods wait, %6u templates%s %10.1f hints an event %12.2f us an event %.3f "
           "allocations each\n",
           pods, templates, amounts ? ", other amounts" : "",
           (double)(after.hints - before.hints) / EVENTS, (double)t / EVENTS / 1e3,
           (double)allocated / EVENTS);
    bh_offline_fini(&b.w);
    bh_sched_config_free(b.config);
    bh_arena_fini(&b.a);
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
