/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/count/snapshot_bench.c - what a publication, a followed change, a rebuild and a record cost
 *
 * One process, one named snapshot, writer and reader in turns, so that each is timed alone.
 * Prints one line a measure: name, value, unit. Arguments: the largest number of nodes (1000000).
 * Records look like a real cluster's: nodes with 12 labels, 8 images and an extended resource, pods
 * with usual name lengths, 50 pods a shape.
 */
#include <unistd.h>

#include "common/base/trusted_file.h"
#include "common/snapshot/snapshot.h"

#define CHANGES 50000u /* per follow measure; less than half a ring */

struct bench {
    char dir[64]; /* runtime directory */
    struct bh_snap_writer *w;
    struct bh_interner in;
    bh_sym *node_name;
    uint64_t nodes, pods, tick;
    uint64_t events; /* delivered */
    char node[1024], pod[512], shape[1024];
};

static void say(const char *what, double value, const char *unit)
{
    printf("%-46s %14.1f %s\n", what, value, unit);
    fflush(stdout);
}

static double seconds(uint64_t since_ns)
{
    return (double)(bh_mono_ns() - since_ns) / 1e9;
}

static bh_sym sym(struct bench *b, const char *fmt, uint64_t x)
{
    char text[128];
    int n = snprintf(text, sizeof(text), fmt, (unsigned long long)x);
    return b->in.intern(b->in.arg, text, (size_t)n);
}

static size_t put(char *rec, size_t at, struct bh_slice *s, const void *p, size_t n, uint32_t count)
{
    *s = (struct bh_slice){(uint32_t)at, count};
    memcpy(rec + at, p, n);
    return (at + n + 7) & ~(size_t)7;
}

static void build_node(struct bench *b)
{
    struct bh_node_rec *r = (void *)b->node;
    struct bh_kv kv[12];
    struct bh_image images[8];
    struct bh_res gpu = {.name = sym(b, "example.com/gpu", 0), .value = 8};
    size_t n = sizeof(*r);
    memset(b->node, 0, sizeof(b->node));
    memset(images, 0, sizeof(images));
    for (uint64_t i = 0; i < 12; i++)
        kv[i] = (struct bh_kv){sym(b, "topology.kubernetes.io/label-%llu", i), sym(b, "v%llu", i)};
    for (uint64_t i = 0; i < 8; i++)
        images[i].name = sym(b, "registry.example.com/image-%llu:v1", i);
    n = put(b->node, n, &r->labels, kv, sizeof(kv), 12);
    n = put(b->node, n, &r->scalars, &gpu, sizeof(gpu), 1);
    n = put(b->node, n, &r->images, images, sizeof(images), 8);
    r->h = (struct bh_rec_head){(uint32_t)n, BH_REC_NODE, BH_REC_LAYOUT};
}

static int put_node(struct bench *b, uint64_t idx)
{
    struct bh_node_rec *r = (void *)b->node;
    r->name = b->node_name[idx];
    r->alloc_cpu_milli = (int64_t)++b->tick;
    return bh_snap_put_node(b->w, r);
}

static int put_pod(struct bench *b, uint64_t idx)
{
    struct bh_pod_rec *r = (void *)b->pod;
    struct bh_shape_rec *shape = (void *)b->shape;
    char name[] = "frontend-7d4b9c6f5-00000000", uid[] = "6f1d2c3b-0000-4000-8000-000000000000";
    size_t n = sizeof(*r);
    for (uint64_t i = idx, at = 0; i; i /= 10, at++) {
        name[sizeof(name) - 2 - at] = (char)('0' + i % 10);
        uid[sizeof(uid) - 2 - at] = (char)('0' + i % 10);
    }
    memset(b->pod, 0, sizeof(b->pod));
    r->node = b->node_name[idx % b->nodes];
    r->generation = (int64_t)++b->tick;
    n = put(b->pod, n, &r->name, name, sizeof(name), sizeof(name) - 1);
    n = put(b->pod, n, &r->namespace_, "production", 11, 10);
    n = put(b->pod, n, &r->uid, uid, sizeof(uid), sizeof(uid) - 1);
    r->h = (struct bh_rec_head){(uint32_t)n, BH_REC_POD, BH_REC_LAYOUT};
    shape->priority = (int32_t)(idx / 50);
    return bh_snap_put_pod(b->w, r, shape);
}

static void count(void *arg, const struct bh_snap_event *ev)
{
    struct bench *b = arg;
    b->events += ev->op != BH_SNAP_SHAPE_PUT && ev->op != BH_SNAP_SHAPE_DEL;
}

static void follow(struct bench *b, struct bh_snap_reader *r)
{
    while (bh_snap_follow(r, 0, count, b) != BH_SNAP_OK)
        ;
}

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "snapshot_bench: %s failed\n", what);
    exit(1);
}

static void open_snapshot(struct bench *b, uint64_t nodes)
{
    struct bh_err err;
    snprintf(b->dir, sizeof(b->dir), "/tmp/berth-bench.XXXXXX");
    must(mkdtemp(b->dir) != NULL, "runtime directory");
    must(bh_snap_writer_new(b->dir, NULL, &b->w, &err) == 0, "writer");
    b->in = bh_snap_interner(b->w);
    b->nodes = nodes;
    b->events = 0;
    b->node_name = bh_calloc(nodes, sizeof(*b->node_name));
    build_node(b);
    struct bh_shape_rec *r = (void *)b->shape;
    struct bh_kv kv[4];
    struct bh_toleration tol[2];
    size_t n = sizeof(*r);
    memset(b->shape, 0, sizeof(b->shape));
    memset(tol, 0, sizeof(tol));
    for (uint64_t i = 0; i < 4; i++)
        kv[i] = (struct bh_kv){sym(b, "app.kubernetes.io/l%llu", i), sym(b, "v%llu", i)};
    tol[0].key = sym(b, "node.kubernetes.io/not-ready", 0);
    tol[1].key = sym(b, "node.kubernetes.io/unreachable", 0);
    r->namespace_ = sym(b, "production", 0);
    n = put(b->shape, n, &r->labels, kv, sizeof(kv), 4);
    n = put(b->shape, n, &r->tolerations, tol, sizeof(tol), 2);
    r->h = (struct bh_rec_head){(uint32_t)n, BH_REC_SHAPE, BH_REC_LAYOUT};
    for (uint64_t i = 0; i < nodes; i++)
        b->node_name[i] = sym(b, "ip-10-0-%llu.eu-central-1.compute.internal", i);
}

static void close_snapshot(struct bench *b)
{
    bh_snap_writer_free(b->w);
    bh_remove_tree(b->dir);
    free(b->node_name);
}

static void throughput(struct bench *b, uint64_t nodes, uint64_t pods)
{
    struct bh_symtab *tab = bh_symtab_new();
    open_snapshot(b, nodes);
    struct bh_snap_reader *r = bh_snap_reader_new(b->dir, tab);
    uint64_t t = bh_mono_ns();
    for (uint64_t i = 0; i < nodes; i++)
        must(put_node(b, i) == 0, "new node");
    say("writer: new nodes", (double)nodes / seconds(t), "records/s");
    t = bh_mono_ns();
    for (uint64_t i = 0; i < pods; i++)
        must(put_pod(b, i) == 0, "new pod");
    say("writer: new pods (growth included)", (double)pods / seconds(t), "records/s");
    bh_snap_set_synced(b->w, true);
    follow(b, r); /* registered from here on */
    double node_s = 0, pod_s = 0;
    enum { ROUNDS = 40, BURST = 25000 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        t = bh_mono_ns();
        for (uint64_t i = 0; i < BURST; i++)
            must(put_node(b, (round * BURST + i) * 7919 % nodes) == 0, "node");
        node_s += seconds(t);
        follow(b, r);
        t = bh_mono_ns();
        for (uint64_t i = 0; i < BURST; i++)
            must(put_pod(b, (round * BURST + i) * 7919 % pods) == 0, "pod");
        pod_s += seconds(t);
        follow(b, r);
        bh_snap_writer_tick(b->w);
    }
    say("writer: node updates, reader attached", ROUNDS * BURST / node_s, "records/s");
    say("writer: pod updates, reader attached", ROUNDS * BURST / pod_s, "records/s");
    t = bh_mono_ns();
    for (uint64_t i = 0; i < 1000000; i++)
        bh_snap_writer_tick(b->w);
    say("writer: tick", seconds(t) * 1000, "ns");
    bh_snap_reader_free(r);
    bh_symtab_free(tab);
    close_snapshot(b);
}

static void scale(struct bench *b, uint64_t nodes)
{
    char what[64];
    struct bh_snap_stats empty, full;
    struct bh_symtab *tab = bh_symtab_new();
    uint64_t longest = 0;
    open_snapshot(b, nodes);
    bh_snap_writer_stats(b->w, &empty);
    for (uint64_t i = 0; i < nodes; i++) {
        uint64_t start = bh_mono_ns();
        must(put_node(b, i) == 0, "new node");
        uint64_t took = bh_mono_ns() - start;
        longest = BH_MAX(longest, took);
    }
    bh_snap_writer_stats(b->w, &full);
    snprintf(what, sizeof(what), "writer: longest put (a move), %llu nodes",
             (unsigned long long)nodes);
    say(what, (double)longest / 1e6, "ms");
    struct bh_snap_reader *r = bh_snap_reader_new(b->dir, tab);
    bh_snap_set_synced(b->w, true);
    uint64_t t = bh_mono_ns();
    follow(b, r);
    snprintf(what, sizeof(what), "reader: attach and rebuild, %llu nodes",
             (unsigned long long)nodes);
    say(what, seconds(t) * 1e3, "ms");
    /* Two ways to touch: a fixed set (the cost of the protocol), any node (plus cache misses). */
    for (int spread = 0; spread < 2; spread++) {
        uint64_t among = spread ? nodes : 1000, before = b->events;
        double best = 1e9;
        for (int round = 0; round < 5; round++) {
            for (uint64_t i = 0; i < CHANGES; i++)
                must(put_node(b, i * 7919 % among) == 0, "node");
            t = bh_mono_ns();
            follow(b, r);
            double took = seconds(t);
            best = BH_MIN(best, took);
            bh_snap_writer_tick(b->w);
        }
        must(b->events - before == 5 * CHANGES, "follow");
        snprintf(what, sizeof(what), "reader: follow, %llu nodes, changes in %s",
                 (unsigned long long)nodes, spread ? "all" : "1000");
        say(what, best * 1e9 / CHANGES, "ns/change");
    }
    t = bh_mono_ns();
    for (int i = 0; i < 100000; i++)
        follow(b, r);
    snprintf(what, sizeof(what), "reader: follow, nothing new, %llu nodes",
             (unsigned long long)nodes);
    say(what, seconds(t) * 1e9 / 100000, "ns");
    snprintf(what, sizeof(what), "memory: record bytes a node, %llu nodes",
             (unsigned long long)nodes);
    say(what, (double)(full.bytes_used - empty.bytes_used) / (double)nodes, "bytes");
    snprintf(what, sizeof(what), "memory: whole segment, %llu nodes", (unsigned long long)nodes);
    say(what, (double)full.bytes_size / (1 << 20), "MiB");
    bh_snap_reader_free(r);
    bh_symtab_free(tab);
    close_snapshot(b);
}

static void pod_memory(struct bench *b, uint64_t nodes, uint64_t pods)
{
    struct bh_snap_stats empty, full;
    open_snapshot(b, nodes);
    for (uint64_t i = 0; i < nodes; i++)
        must(put_node(b, i) == 0, "new node");
    bh_snap_writer_stats(b->w, &empty);
    for (uint64_t i = 0; i < pods; i++)
        must(put_pod(b, i) == 0, "new pod");
    bh_snap_writer_stats(b->w, &full);
    say("memory: record bytes a pod, shapes included",
        (double)(full.bytes_used - empty.bytes_used) / (double)pods, "bytes");
    uint64_t t = bh_mono_ns();
    close_snapshot(b);
    say("writer: clean stop", seconds(t) * 1e3, "ms");
}

int main(int argc, char **argv)
{
    uint64_t max = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    struct bench *b = bh_calloc(1, sizeof(*b));
    throughput(b, 5000, 100000);
    for (uint64_t nodes = 1000; nodes <= max; nodes *= 10)
        scale(b, nodes);
    pod_memory(b, 1000, 200000);
    free(b);
    return 0;
}
