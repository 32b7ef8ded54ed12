/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/overview.c - GET /berth/v1/overview: the cluster in one look
 */

#include "common/base/base.h"
#include "simulator/console/parts.h"
#include "simulator/console/totals.h"

#define WAIT_NS     ((int64_t)20 * 1000000)
#define REASONS_MAX 50

/* ---- why pods wait --------------------------------------------------------------------------- */

struct reasons {
    struct bh_arena *a;
    struct bh_map by_text;
    int64_t nodes; /* of the cluster */
};
struct reason {
    const char *text;
    int64_t pods, rejections; /* a fix of it removes so many rejections of a pod by a node */
};

static void count_reason(struct reasons *r, const char *p, size_t n, int64_t pods, int64_t nodes)
{
    while (n && (p[n - 1] == '.' || p[n - 1] == ' '))
        n--;
    if (!n)
        return;
    struct reason *x = bh_map_get(&r->by_text, p, n);
    if (!x) {
        x = bh_arena_zalloc(r->a, sizeof(*x));
        x->text = bh_arena_strndup(r->a, p, n);
        bh_map_put(&r->by_text, p, n, x);
    }
    x->pods += pods;
    x->rejections += pods * nodes;
}

/* The end of the reason that starts at p: before ", 2 node(s) ..." or the next sentence. */
static const char *reason_end(const char *p)
{
    for (; *p; p++) {
        if (strncmp(p, ", ", 2) == 0 && p[2] >= '0' && p[2] <= '9')
            return p;
        if (strncmp(p, ". ", 2) == 0) /* what PostFilter says */
            return p;
    }
    return p;
}

/* "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: ..." */
static void on_message(void *arg, const char *message, int64_t pods)
{
    const char *p = strstr(message, " nodes are available: ");
    const struct reasons *r = arg;

    if (!p) {
        count_reason(arg, message, strlen(message), pods, BH_MAX(r->nodes, (int64_t)1));
        return;
    }
    p += strlen(" nodes are available: ");
    while (*p) {
        const char *end = reason_end(p), *text = p + strspn(p, "0123456789");
        count_reason(arg, *text == ' ' ? text + 1 : p,
                     (size_t)(end - (*text == ' ' ? text + 1 : p)), pods,
                     *text == ' ' && text - p < 10 ? atoll(p) : 1);
        p = *end == ',' ? end + 2 : "";
    }
}

/* The one to act on first: what stands between the most pods and nodes. */
static int by_rejections(const void *pa, const void *pb)
{
    const struct reason *a = *(struct reason *const *)pa, *b = *(struct reason *const *)pb;

    if (a->rejections != b->rejections)
        return BH_CMP(b->rejections, a->rejections);
    return a->pods != b->pods ? BH_CMP(b->pods, a->pods) : strcmp(a->text, b->text);
}

static struct bh_json *pending_reasons(struct bh_console *c, struct bh_arena *a)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    const struct bh_console_counts *t = bh_console_totals(c);
    struct reasons r = {.a = a, .nodes = t ? t->nodes.total : 0};
    struct bh_map_entry *e;
    size_t n = 0;

    bh_console_totals_waiting(c, on_message, &r);
    struct reason **v = bh_arena_array(a, r.by_text.len + 1, sizeof(*v));
    for (size_t it = 0; (e = bh_map_next(&r.by_text, &it));)
        v[n++] = e->value;
    if (n > 1)
        qsort(v, n, sizeof(*v), by_rejections);
    for (size_t i = 0; i < BH_MIN(n, (size_t)REASONS_MAX); i++)
        bh_json_append(a, list, "reason: %s, count: %ld, rejections: %ld", v[i]->text, v[i]->pods,
                       v[i]->rejections);
    bh_map_fini(&r.by_text);
    return list;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void resource(struct bh_arena *a, struct bh_json *list, const char *name, const char *unit,
                     int64_t allocatable, int64_t requested)
{
    bh_json_append(a, list, "name: %s, unit: %s, allocatable: %ld, requested: %ld", name, unit,
                   allocatable, requested);
}

static int64_t find_amount(const struct bh_console_amounts *x, const char *name)
{
    for (unsigned i = 0; i < x->n; i++)
        if (bh_streq(x->more[i].name, name))
            return x->more[i].value;
    return 0;
}

static struct bh_json *resources(struct bh_arena *a, const struct bh_console_counts *t)
{
    const struct bh_console_amounts *have = &t->allocatable, *want = &t->requested;
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    resource(a, list, "cpu", "milli", have->cpu_milli, want->cpu_milli);
    resource(a, list, "memory", "bytes", have->memory_bytes, want->memory_bytes);
    resource(a, list, "pods", "count", have->pods, want->pods);
    for (unsigned i = 0; i < have->n; i++) {
        const char *name = have->more[i].name;
        bool bytes = bh_streq(name, "ephemeral-storage") || strncmp(name, "hugepages-", 10) == 0;
        resource(a, list, name, bytes ? "bytes" : "count", have->more[i].value,
                 find_amount(want, name));
    }
    return list;
}

void bh_console_overview(struct bh_console_req *c)
{
    struct bh_sim_req *r = c->r;
    struct bh_console *console = r->sim->console;
    const struct bh_console_counts *t = bh_console_totals(console);
    const struct bh_console_scheduler_view *s = bh_console_scheduler(console);
    char time[40];

    if (!t || !s->known) { /* being found out */
        bh_sim_wait(r, WAIT_NS);
        return;
    }
    bh_time_format_micro_ns(time, bh_sim_now_ns(r->sim));
    bh_console_reply(
        r, 200,
        bh_json_make(r->a,
                     "version: %s, revision: %lu, time: %s, "
                     "nodes: {total: %ld, ready: %ld, unschedulable: %ld}, "
                     "pods: {total: %ld, pending: %ld, scheduled: %ld, running: %ld, "
                     "succeeded: %ld, failed: %ld, gated: %ld, terminating: %ld}, "
                     "pendingReasons: %p, resources: %p, "
                     "scheduler: {running: %i, deciding: %i, trouble: %s, profiles?: %p}, "
                     "recording: %p, readOnly: %i, observes?: %p",
                     BH_VERSION, bh_console_totals_revision(console), time, t->nodes.total,
                     t->nodes.ready, t->nodes.unschedulable, t->pods.total, t->pods.pending,
                     t->pods.scheduled, t->pods.running, t->pods.succeeded, t->pods.failed,
                     t->pods.gated, t->pods.terminating, pending_reasons(console, r->a),
                     resources(r->a, t), s->running, s->deciding, s->trouble,
                     s->profiles ? bh_json_clone(r->a, s->profiles) : NULL,
                     bh_console_recording(console, r->a), r->sim->opt.read_only || console->observe,
                     bh_console_observed(console, r->a)));
}
