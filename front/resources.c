/* SPDX-License-Identifier: Apache-2.0
 *
 * front/resources.c - what every pod asks for
 *
 * Invariants: `feed` is open only while a caller asked within BH_RESOURCES_IDLE_NS; the table is
 * complete when it is synced. Resource names are interned: there are few of them.
 */
#include "front/resources.h"

#include <stdio.h>
#include <sys/queue.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/feed/feed.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define TICK_MS      200
#define OBJECT_BYTES ((size_t)64 << 20)

struct amount {
    const char *name; /* of the symbol table */
    double v;
};
struct pod {
    uint32_t n_requests, n_limits; /* of amounts: requests, then limits */
    struct amount *amounts;
    const char *ns, *name, *node, *scheduler, *priority; /* into text */
    char text[];
};
struct waiter {
    TAILQ_ENTRY(waiter) link;
    uint64_t until_ns;
    void (*done)(void *arg, bool complete);
    void *arg;
};
TAILQ_HEAD(waiters, waiter);
struct bh_resources {
    uv_loop_t *loop;
    char *runtime_dir;
    struct bh_map pods;      /* uid -> pod */
    struct bh_symtab *names; /* of resources */
    struct bh_feed feed;
    struct bh_bus_poll *poll;
    uv_timer_t tick;
    struct bh_arena object_arena;
    uint64_t asked_ns;
    struct waiters waiters;
};

/* ---- the table ------------------------------------------------------------------------------- */

static void pod_free(struct pod *p)
{
    if (!p)
        return;
    free(p->amounts);
    free(p);
}

static void clear(struct bh_resources *r)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(&r->pods, &it));)
        pod_free(e->value);
    bh_map_clear(&r->pods);
}

struct gathered {
    struct bh_resources *r;
    struct pod *p;
};

static void on_amount(void *arg, bh_sym name, double v)
{
    struct gathered *g = arg;
    uint32_t n = g->p->n_requests + g->p->n_limits;

    if (v == 0) /* upstream leaves it out */
        return;
    g->p->amounts = bh_reallocarray(g->p->amounts, n + 1, sizeof(*g->p->amounts));
    g->p->amounts[n] = (struct amount){bh_sym_text(g->r->names, name), v};
    g->p->n_limits++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct amount *)a)->name, ((const struct amount *)b)->name);
}

static const char *put_text(char **at, const char *s)
{
    const char *here = *at;
    size_t n = strlen(s) + 1;

    memcpy(*at, s, n);
    *at += n;
    return here;
}

static struct pod *pod_new(const K8s__Pod *o)
{
    char priority[16] = "";
    const K8s__PodSpec *s = o->spec;
    const char *node = s->nodename ? s->nodename : "";
    const char *scheduler = s->schedulername ? s->schedulername : "";

    if (s->has_priority)
        snprintf(priority, sizeof(priority), "%d", (int)s->priority);
    struct pod *p =
        bh_calloc(1, sizeof(*p) + strlen(o->metadata->namespace_) + strlen(o->metadata->name) +
                         strlen(node) + strlen(scheduler) + strlen(priority) + 5);
    char *at = p->text;
    p->ns = put_text(&at, o->metadata->namespace_);
    p->name = put_text(&at, o->metadata->name);
    p->node = put_text(&at, node);
    p->scheduler = put_text(&at, scheduler);
    p->priority = put_text(&at, priority);
    return p;
}

static void put(struct bh_resources *r, const Berth__ObjectChange *c)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {""};
    struct pod *p = NULL;

    bh_arena_reset(&r->object_arena);
    int rc = bh_pb_unpack(&r->object_arena, &k8s__pod__descriptor, c->object.data, c->object.len,
                          &m, &err);
    const K8s__Pod *o = (const K8s__Pod *)m;
    const char *phase = rc == 0 && o->status && o->status->phase ? o->status->phase : "";
    bool ended = bh_streq(phase, "Succeeded") || bh_streq(phase, "Failed");
    if (rc == 0 && o->metadata && o->spec && !(ended && o->spec->nodename && *o->spec->nodename)) {
        p = pod_new(o);
        struct gathered g = {r, p};
        rc = bh_pod_amounts(&r->object_arena, o, false, r->names, on_amount, &g, &err);
        p->n_requests = p->n_limits;
        p->n_limits = 0;
        if (rc == 0)
            rc = bh_pod_amounts(&r->object_arena, o, true, r->names, on_amount, &g, &err);
        if (p->n_requests)
            qsort(p->amounts, p->n_requests, sizeof(*p->amounts), by_name);
        if (p->n_limits)
            qsort(p->amounts + p->n_requests, p->n_limits, sizeof(*p->amounts), by_name);
    }
    if (rc < 0) {
        bh_log_v(2, "Skipping a pod that cannot be read", bh_kv_s("pod", c->name ? c->name : ""),
                 bh_kv_s("err", err.msg));
        pod_free(bh_take_ptr(p));
    }
    pod_free(p ? bh_map_put(&r->pods, c->uid, strlen(c->uid), p)
               : bh_map_del(&r->pods, c->uid, strlen(c->uid)));
}

/* A pod that got its node stays as it was until its new object comes; a pending one that was
 * deleted is gone; one that left the pending ones for a node is not. */
void bh_resources_change(struct bh_resources *r, const Berth__ObjectChange *c)
{
    if (c->kind != BH_KIND_POD || !c->uid || !*c->uid)
        return;
    if (c->op == BERTH__CHANGE_OP__CHANGE_DELETED)
        pod_free(bh_map_del(&r->pods, c->uid, strlen(c->uid)));
    else if (c->op == BERTH__CHANGE_OP__CHANGE_ADDED || c->op == BERTH__CHANGE_OP__CHANGE_MODIFIED)
        put(r, c);
}

/* ---- the feed -------------------------------------------------------------------------------- */

static void tell(struct bh_resources *r, bool complete)
{
    struct waiter *w;

    while ((w = TAILQ_FIRST(&r->waiters))) {
        TAILQ_REMOVE(&r->waiters, w, link);
        w->done(w->arg, complete);
        free(w);
    }
}

static void on_begin(void *arg)
{
    clear(arg);
}

static void on_change(void *arg, const Berth__ObjectChange *c)
{
    bh_resources_change(arg, c);
}

static void on_complete(void *arg)
{
    tell(arg, true);
}

static bool on_readable(void *arg)
{
    struct bh_resources *r = arg;

    return bh_feed_drain(&r->feed, BH_BUS_BURST / 4) == BH_BUS_BURST / 4;
}

static void close_feed(struct bh_resources *r)
{
    bh_bus_poll_close(bh_take_ptr(r->poll));
    bh_feed_close(&r->feed);
    clear(r);
    bh_map_fini(&r->pods);
    bh_arena_fini(&r->object_arena);
}

static void open_feed(struct bh_resources *r)
{
    const struct bh_feed_options o = {.runtime_dir = r->runtime_dir,
                                      .epoch = bh_boot_ns(),
                                      .observer = true,
                                      .name = 'r',
                                      .raw = 1u << BERTH__RAW_KIND__RAW_ASSIGNED_PODS,
                                      .begin = on_begin,
                                      .change = on_change,
                                      .complete = on_complete,
                                      .arg = r};

    if (bh_feed_open(&r->feed, &o, NULL) < 0)
        return; /* the next tick tries again */
    r->poll = bh_bus_poll_new(r->loop, r->feed.bus, on_readable, r);
    bh_feed_tick(&r->feed);
}

static void on_tick(uv_timer_t *t)
{
    struct bh_resources *r = bh_container_of(t, struct bh_resources, tick);
    uint64_t now = bh_mono_ns();
    struct waiter *w;

    while ((w = TAILQ_FIRST(&r->waiters)) && w->until_ns <= now) {
        TAILQ_REMOVE(&r->waiters, w, link);
        w->done(w->arg, false);
        free(w);
    }
    if (now - r->asked_ns > BH_RESOURCES_IDLE_NS) {
        uv_timer_stop(t);
        close_feed(r);
        return;
    }
    if (r->feed.bus)
        bh_feed_tick(&r->feed);
    else
        open_feed(r);
}

void bh_resources_ask(struct bh_resources *r, void (*done)(void *arg, bool complete), void *arg)
{
    r->asked_ns = bh_mono_ns();
    if (r->feed.synced) {
        done(arg, true);
        return;
    }
    struct waiter *w = bh_calloc(1, sizeof(*w));
    *w = (struct waiter){.until_ns = r->asked_ns + BH_RESOURCES_WAIT_NS, .done = done, .arg = arg};
    TAILQ_INSERT_TAIL(&r->waiters, w, link);
    if (!uv_is_active((uv_handle_t *)&r->tick))
        uv_timer_start(&r->tick, on_tick, 0, TICK_MS);
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *unit_of(const char *resource)
{
    if (bh_streq(resource, "cpu"))
        return "cores";
    if (bh_word_at("memory storage ephemeral-storage", resource) >= 0 ||
        strncmp(resource, "hugepages-", 10) == 0)
        return "bytes";
    return strncmp(resource, "attachable-volumes-", 19) == 0 ? "integer" : "";
}

static void add_label(struct bh_buf *out, const char *name, const char *value)
{
    bh_buf_adds(out, name);
    bh_buf_adds(out, "=\"");
    for (; *value; value++) {
        if (*value == '\n')
            bh_buf_adds(out, "\\n");
        else if (*value == '"' || *value == '\\')
            bh_buf_addf(out, "\\%c", *value);
        else
            bh_buf_addc(out, *value);
    }
    bh_buf_addc(out, '"');
}

static int by_pod(const void *a, const void *b)
{
    const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;
    int cmp = strcmp(x->ns, y->ns);

    return cmp ? cmp : strcmp(x->name, y->name);
}

static void write_family(const struct pod *const *list, size_t n, bool limits, struct bh_buf *out)
{
    const char *name = limits ? "kube_pod_resource_limit" : "kube_pod_resource_request";
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        const struct pod *p = list[i];
        uint32_t k = limits ? p->n_limits : p->n_requests;
        if (k && !any)
            bh_buf_addf(out,
                        "# HELP %s [STABLE] Resources %s for workloads on the cluster, broken down "
                        "by pod. This shows the resource usage the scheduler and kubelet expect "
                        "per pod for resources along with the unit for the resource if any.\n"
                        "# TYPE %s gauge\n",
                        name, limits ? "limit" : "requested", name);
        any = any || k;
        for (const struct amount *a = p->amounts + (limits ? p->n_requests : 0); k; k--, a++) {
            bh_buf_addf(out, "%s{", name);
            add_label(out, "namespace", p->ns);
            add_label(out, ",node", p->node);
            add_label(out, ",pod", p->name);
            add_label(out, ",priority", p->priority);
            add_label(out, ",resource", a->name);
            add_label(out, ",scheduler", p->scheduler);
            add_label(out, ",unit", unit_of(a->name));
            bh_buf_adds(out, "} ");
            bh_buf_addf64(out, a->v);
            bh_buf_addc(out, '\n');
        }
    }
}

void bh_resources_write(const struct bh_resources *r, struct bh_buf *out)
{
    const struct pod **list = bh_calloc(r->pods.len + 1, sizeof(const struct pod *));
    struct bh_map_entry *e;
    size_t n = 0;

    for (size_t it = 0; (e = bh_map_next(&r->pods, &it));)
        list[n++] = e->value;
    qsort(list, n, sizeof(const struct pod *), by_pod);
    write_family(list, n, true, out);
    write_family(list, n, false, out);
    free(list);
}

size_t bh_resources_count(const struct bh_resources *r)
{
    return r->pods.len;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct bh_resources *bh_resources_new(uv_loop_t *loop, const char *runtime_dir)
{
    struct bh_resources *r = bh_calloc(1, sizeof(*r));

    r->loop = loop;
    r->runtime_dir = bh_strdup(runtime_dir);
    r->names = bh_symtab_new();
    TAILQ_INIT(&r->waiters);
    bh_arena_init(&r->object_arena, OBJECT_BYTES);
    uv_timer_init(loop, &r->tick);
    return r;
}

static void on_closed(uv_handle_t *h)
{
    free(bh_container_of((uv_timer_t *)h, struct bh_resources, tick));
}

void bh_resources_free(struct bh_resources *r)
{
    if (!r)
        return;
    tell(r, false);
    close_feed(r);
    bh_symtab_free(r->names);
    free(r->runtime_dir);
    uv_close((uv_handle_t *)&r->tick, on_closed);
}
