/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/watch.c - the watcher's part of `berth bench scale`
 *
 * What berth-watcher does with an object once it is off the wire (watcher/apply.c): unpack,
 * compile, publish. Runs in a process of its own, one thread.
 */
#include "bench/scale/scale.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS UINT64_C(200000000)

struct part {
    const struct bh_scale_options *o;
    struct bh_scale_objects *objects;
    struct bh_snap_writer *w;
    struct bh_interner in;
    struct bh_arena a;
    uint64_t ticked_ns, longest_ns;
};

/* ---- what both parts use --------------------------------------------------------------------- */

volatile sig_atomic_t bh_scale_stopped;

bool bh_scale_read(int fd, void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = read(fd, (char *)p + at, n - at);
        if (k == 0 || (k < 0 && errno != EINTR) || bh_scale_stopped)
            return false;
        at += k > 0 ? (size_t)k : 0;
    }
    return true;
}

bool bh_scale_write(int fd, const void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t k = write(fd, (const char *)p + at, n - at);
        if (k < 0 && errno != EINTR)
            return false;
        at += k > 0 ? (size_t)k : 0;
    }
    return true;
}

double bh_scale_anon_bytes(void)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n = 0;

    if (bh_read_file("/proc/self/status", 1u << 20, &text, &n) < 0)
        return 0;
    const char *at = strstr(text, "RssAnon:");
    return at ? strtod(at + strlen("RssAnon:"), NULL) * 1024 : 0;
}

double bh_scale_cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- publishing ------------------------------------------------------------------------------ */

/* The heart beats in the middle of a long list, too. */
static void published(struct part *p, uint64_t began_ns)
{
    uint64_t now = bh_mono_ns();

    p->longest_ns = BH_MAX(p->longest_ns, now - began_ns);
    if (now - p->ticked_ns > TICK_NS) {
        bh_snap_writer_tick(p->w);
        p->ticked_ns = now;
    }
}

static int put_node(struct part *p, uint32_t node, struct bh_err *err)
{
    struct bh_node_rec *rec;

    if (bh_scale_stopped)
        return bh_err_set(err, -EINTR, "stopped");
    bh_arena_reset(&p->a);
    int rc = bh_scale_node(p->objects, node, &p->a, &p->in, &rec, err);
    if (rc < 0)
        return rc;
    uint64_t began = bh_mono_ns();
    rc = bh_snap_put_node(p->w, rec);
    published(p, began);
    return rc < 0 ? bh_err_set(err, rc, "node %u: %s", node, strerror(-rc)) : 0;
}

static int put_pod(struct part *p, uint32_t pod, uint32_t tmpl, uint32_t node, struct bh_err *err)
{
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;

    if (bh_scale_stopped)
        return bh_err_set(err, -EINTR, "stopped");
    bh_arena_reset(&p->a);
    int rc = bh_scale_pod(p->objects, tmpl, pod, node, &p->a, &p->in, &shape, &rec, err);
    if (rc < 0)
        return rc;
    uint64_t began = bh_mono_ns();
    rc = bh_snap_put_pod(p->w, rec, shape);
    published(p, began);
    return rc < 0 ? bh_err_set(err, rc, "pod %u: %s", pod, strerror(-rc)) : 0;
}

static void measure(struct part *p, double *ret_private, double *ret_records)
{
    struct bh_snap_stats st;

    bh_snap_writer_stats(p->w, &st);
    *ret_private = bh_scale_anon_bytes();
    *ret_records = (double)st.bytes_used;
}

/* All nodes, then their pods, as a watcher that starts; fills r. */
static int build(struct part *p, uint32_t nodes, struct bh_scale_watcher *r, struct bh_err *err)
{
    uint32_t pods = bh_scale_initial_pods(p->o, nodes), templates = bh_scale_templates(p->objects);
    double private[3], records[3];
    struct bh_snap_stats st;
    struct bh_rand rand;
    uint64_t began = bh_mono_ns();
    double cpu = bh_scale_cpu_s();

    bh_rand_seed(&rand, p->o->seed);
    measure(p, &private[0], &records[0]);
    for (uint32_t i = 0; i < nodes; i++)
        if (put_node(p, i, err) < 0)
            return -EIO;
    measure(p, &private[1], &records[1]);
    for (uint32_t i = 0; i < pods; i++)
        if (put_pod(p, i, (uint32_t)bh_rand_below(&rand, templates), i % nodes, err) < 0)
            return -EIO;
    measure(p, &private[2], &records[2]);
    bh_snap_set_synced(p->w, true);
    bh_snap_writer_tick(p->w);
    bh_snap_writer_stats(p->w, &st);
    *r = (struct bh_scale_watcher){
        .nodes = st.nodes,
        .pods = st.pods,
        .shapes = st.shapes,
        .symbols = st.symbols,
        .build_s = (double)(bh_mono_ns() - began) / 1e9,
        .build_cpu_s = bh_scale_cpu_s() - cpu,
        .longest_ms = (double)p->longest_ns / 1e6,
        .node_bytes = (private[1] - private[0] + records[1] - records[0]) / nodes,
        .pod_bytes = pods ? (private[2] - private[1] + records[2] - records[1]) / pods : 0,
        .snapshot_mb = (double)st.bytes_size / 1e6,
        .rss_mb = private[2] / 1e6,
    };
    return 0;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Until the other side closes. */
static int serve(struct part *p, int peer, struct bh_err *err)
{
    struct bh_scale_order order;
    struct bh_scale_item item;
    char uid[BH_SCALE_NAME_BYTES];

    while (bh_scale_read(peer, &order, sizeof(order))) {
        for (uint32_t i = 0; i < order.n; i++) {
            if (!bh_scale_read(peer, &item, sizeof(item)))
                return 0;
            if (item.node != BH_SCALE_NO_NODE) {
                int rc = put_pod(p, item.pod, item.tmpl, item.node, err);
                if (rc < 0)
                    return rc;
                continue;
            }
            bh_scale_uid(item.pod, uid);
            int rc = bh_snap_del_pod(p->w, uid, strlen(uid));
            if (rc < 0)
                return bh_err_set(err, rc, "deletion of pod %u: %s", item.pod, strerror(-rc));
        }
        bh_snap_writer_tick(p->w);
        uint64_t head = bh_snap_head(p->w);
        if (!bh_scale_write(peer, &head, sizeof(head)))
            return 0;
    }
    return 0;
}

int bh_scale_watch(const struct bh_scale_options *o, uint32_t nodes, const char *runtime_dir,
                   int out, int peer)
{
    struct part p = {.o = o};
    struct bh_scale_watcher r;
    struct bh_err err = {0};

    p.objects = bh_scale_objects_new(o, nodes, &err);
    int rc = p.objects ? bh_snap_writer_new(runtime_dir, NULL, &p.w, &err) : -EINVAL;
    if (rc >= 0) {
        p.in = bh_snap_interner(p.w);
        rc = build(&p, nodes, &r, &err);
    }
    if (rc >= 0 && bh_scale_write(out, &r, sizeof(r)))
        rc = serve(&p, peer, &err);
    bh_snap_writer_free(p.w);
    if (rc < 0 && !bh_scale_stopped)
        fprintf(stderr, "berth bench scale: %u nodes: snapshot: %s\n", nodes, err.msg);
    bh_scale_objects_free(p.objects);
    bh_arena_fini(&p.a);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
