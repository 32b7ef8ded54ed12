/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/count/intake_bench.c - what a pod or node costs on its way from the API server's bytes to a
 * reader
 *
 *   intake_bench [pod-json|pod-protobuf|node-json|node-protobuf] [OBJECTS]
 *
 * The way is the watcher's: decode, compile into records, put them into the snapshot; and a
 * scheduler's reader follows. One process, one thread, no sockets. The objects look like those of a
 * real cluster. Without arguments every kind is run once. Instructions: see bench/count.sh.
 */
#include "common/base/trusted_file.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "common/snapshot/snapshot.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include <unistd.h>

static const char pod_text[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"frontend-7d4b9c6f5-"
    "00000000\","
    "\"generateName\":\"frontend-7d4b9c6f5-\",\"namespace\":\"production\",\"uid\":"
    "\"6f1d2c3b-0000-4000-8000-000000000000\",\"resourceVersion\":\"4711\",\"creationTimestamp\":"
    "\"2026-01-01T00:00:00Z\",\"labels\":{\"app\":\"frontend\",\"tier\":\"web\","
    "\"pod-template-hash\":\"7d4b9c6f5\"},\"ownerReferences\":[{\"apiVersion\":\"apps/"
    "v1\",\"kind\":"
    "\"ReplicaSet\",\"name\":\"frontend-7d4b9c6f5\",\"uid\":\"0a1b2c3d-0000-4000-8000-"
    "000000000000\","
    "\"controller\":true}]},\"spec\":{\"schedulerName\":\"default-scheduler\",\"restartPolicy\":"
    "\"Always\",\"containers\":[{\"name\":\"web\",\"image\":\"registry.example.com/"
    "web:v1\",\"ports\":"
    "[{\"containerPort\":8080}],\"env\":[{\"name\":\"MODE\",\"value\":\"production\"}],"
    "\"resources\":"
    "{\"requests\":{\"cpu\":\"100m\",\"memory\":\"200Mi\"},\"limits\":{\"memory\":\"200Mi\"}}}],"
    "\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
    "\"NoExecute\",\"tolerationSeconds\":300}]},\"status\":{\"phase\":\"Pending\",\"qosClass\":"
    "\"Burstable\"}}";
static const char node_text[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"node-00000000\",\"uid\":"
    "\"7f1d2c3b-0000-4000-8000-000000000000\",\"resourceVersion\":\"42\",\"labels\":{"
    "\"kubernetes.io/hostname\":\"node-00000000\",\"kubernetes.io/arch\":\"amd64\","
    "\"topology.kubernetes.io/zone\":\"a\",\"topology.kubernetes.io/region\":\"r\"}},\"spec\":{"
    "\"podCIDR\":\"10.0.0.0/24\"},\"status\":{\"capacity\":{\"cpu\":\"16\",\"memory\":\"64Gi\","
    "\"pods\":\"110\"},\"allocatable\":{\"cpu\":\"15\",\"memory\":\"60Gi\",\"pods\":\"110\"},"
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastHeartbeatTime\":"
    "\"2026-01-01T00:00:00Z\",\"reason\":\"KubeletReady\"}],\"images\":[{\"names\":["
    "\"registry.example.com/web:v1\"],\"sizeBytes\":52428800}]}}";

struct kind {
    const char *name;
    bool node, protobuf;
};
static const struct kind kinds[] = {{"pod-json", false, false},
                                    {"pod-protobuf", false, true},
                                    {"node-json", true, false},
                                    {"node-protobuf", true, true}};
#define COUNTER_AT 8 /* digits that make the names and uids differ */

struct bench {
    char dir[64]; /* runtime directory */
    struct bh_snap_writer *w;
    struct bh_snap_reader *r;
    struct bh_symtab *tab;
    struct bh_interner in;
    struct bh_arena a;
    struct bh_buf text;
    size_t spot[4], n_spots; /* where the digits are */
    uint64_t events;
};

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "intake_bench: %s failed\n", what);
    exit(1);
}

static void count(void *arg, const struct bh_snap_event *ev)
{
    struct bench *b = arg;

    b->events += ev->op == BH_SNAP_POD_PUT || ev->op == BH_SNAP_NODE_PUT;
}

static void open_bench(struct bench *b, const struct kind *k)
{
    const ProtobufCMessageDescriptor *d = k->node ? &k8s__node__descriptor : &k8s__pod__descriptor;
    const char *text = k->node ? node_text : pod_text;
    struct bh_err err = {0};
    ProtobufCMessage *m;
    struct bh_buf raw = {0};

    *b = (struct bench){.tab = bh_symtab_new()};
    snprintf(b->dir, sizeof(b->dir), "/tmp/berth-bench.XXXXXX");
    must(mkdtemp(b->dir) != NULL, "runtime directory");
    must(bh_snap_writer_new(b->dir, NULL, &b->w, &err) == 0, "writer");
    b->in = bh_snap_interner(b->w);
    b->r = bh_snap_reader_new(b->dir, b->tab);
    bh_snap_set_synced(b->w, true);
    if (k->protobuf) {
        must(bh_decode_object(&b->a, d, text, strlen(text), &m, &err) == 0, "decoding");
        bh_pb_pack(&raw, m);
        bh_envelope_write(&b->text, "v1", k->node ? "Node" : "Pod", raw.p, raw.n);
        bh_buf_fini(&raw);
    } else {
        bh_buf_add(&b->text, text, strlen(text));
    }
    for (size_t i = 0; i + COUNTER_AT <= b->text.n; i++) {
        const char *before = b->text.p + i - 1;
        if (i && memcmp(b->text.p + i, "00000000", COUNTER_AT) == 0 && *before == '-' &&
            b->n_spots < BH_ARRAY_LEN(b->spot)) {
            b->spot[b->n_spots++] = i;
            i += COUNTER_AT;
        }
    }
    must(b->n_spots, "finding the name");
}

/* Not inlined: bench/count.sh counts what happens in here. */
__attribute__((noinline)) void take_in(struct bench *b, bool node);
void take_in(struct bench *b, bool node)
{
    struct bh_err err = {0};
    ProtobufCMessage *m;
    int rc;

    bh_arena_reset(&b->a);
    must(bh_decode_object(&b->a, node ? &k8s__node__descriptor : &k8s__pod__descriptor, b->text.p,
                          b->text.n, &m, &err) == 0,
         "decoding");
    if (node) {
        struct bh_node_rec *rec;
        rc = bh_compile_node(&b->a, (K8s__Node *)m, &b->in, &rec, &err);
        must(rc == 0 && bh_snap_put_node(b->w, rec) == 0, "a node");
    } else {
        struct bh_shape_rec *shape;
        struct bh_pod_rec *rec;
        rc = bh_compile_shape(&b->a, (K8s__Pod *)m, &b->in, &shape, &err);
        if (rc == 0)
            rc = bh_compile_pod(&b->a, (K8s__Pod *)m, &b->in, &rec, &err);
        must(rc == 0 && bh_snap_put_pod(b->w, rec, shape) == 0, "a pod");
    }
    while (bh_snap_follow(b->r, 0, count, b) != BH_SNAP_OK)
        ;
}

static void measure(const struct kind *k, unsigned n)
{
    struct bench b;
    char digits[COUNTER_AT + 1];

    open_bench(&b, k);
    uint64_t took = 0, allocated = bh_allocations;
    for (unsigned i = 0; i < n; i++) {
        snprintf(digits, sizeof(digits), "%08u", i % 1000000);
        for (size_t s = 0; s < b.n_spots; s++)
            memcpy(b.text.p + b.spot[s], digits, COUNTER_AT);
        uint64_t t = bh_mono_ns();
        take_in(&b, k->node);
        took += bh_mono_ns() - t;
        bh_snap_writer_tick(b.w);
    }
    must(b.events >= n, "following");
    printf("%-14s %8u objects of %4zu bytes %8.2f us each %.3f allocations each\n", k->name, n,
           b.text.n, (double)took / n / 1e3, (double)(bh_allocations - allocated) / n);
    bh_snap_reader_free(b.r);
    bh_snap_writer_free(b.w);
    bh_remove_tree(b.dir);
    bh_symtab_free(b.tab);
    bh_arena_fini(&b.a);
    bh_buf_fini(&b.text);
}

int main(int argc, char **argv)
{
    unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 100000;
    bool found = false;

    for (size_t i = 0; i < BH_ARRAY_LEN(kinds) && n; i++) {
        if (argc > 1 && strcmp(argv[1], kinds[i].name) != 0)
            continue;
        measure(&kinds[i], n);
        found = true;
    }
    if (!found)
        fputs("usage: intake_bench [pod-json|pod-protobuf|node-json|node-protobuf [OBJECTS]]\n",
              stderr);
    return found ? 0 : 2;
}
