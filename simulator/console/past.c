/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/past.c - GET /berth/v1/timeline and /berth/v1/utilisation
 *
 * A log of what people look for later: pods and nodes that came, went, were bound or changed by
 * hand; not every heartbeat and status. It keeps the last LOG_MAX entries, asked for or not.
 * Numbers are kept once a second for an hour, from the first second on: who opens the page later
 * finds a curve there.
 */
#include "simulator/console/parts.h"

#include "common/k8s/quantity.h"
#include "simulator/console/totals.h"

#define LOG_MAX     20000u
#define POINTS_MAX  3600u
#define EVERY_NS    ((int64_t)1000000000)
#define LIMIT_MAX   5000
#define LIMIT_USUAL 500

struct entry {
    int64_t time_ns;
    uint64_t rv;
    const char *what, *kind; /* literals */
    char *text;              /* "ns\0name\0by\0detail\0" */
};
struct point {
    int64_t time_ns, pods, pending, nodes, bound;
    double cpu, memory;
};
struct bh_console_past {
    struct bh_console *c;
    const struct bh_sim_type *pods, *nodes;
    struct entry log[LOG_MAX];
    size_t first, n;
    struct point point[POINTS_MAX];
    size_t point_first, n_points;
    int64_t bound; /* since the last point */
    struct bh_sim_timer *timer;
};

/* ---- the log --------------------------------------------------------------------------------- */

static void note(struct bh_console_past *p, const char *what, const char *kind, uint64_t rv,
                 const char *ns, const char *name, const char *by, const char *detail)
{
    const char *const parts[] = {ns, name, by, detail};
    struct entry *e = &p->log[(p->first + p->n) % LOG_MAX];
    struct bh_buf b = {0};

    if (p->n == LOG_MAX) {
        e = &p->log[p->first];
        free(e->text);
        p->first = (p->first + 1) % LOG_MAX;
    } else {
        p->n++;
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++)
        bh_buf_add(&b, parts[i], strlen(parts[i]) + 1);
    *e = (struct entry){bh_sim_now_ns(p->c->sim), rv, what, kind, bh_buf_take(&b)};
}

void bh_console_past_note(struct bh_console *c, const char *what, const char *detail)
{
    note(c->past, what, "", c->sim->rv, "", "", "", detail);
}

static void on_pod(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                   struct bh_sim_obj *o)
{
    struct bh_console_past *p = arg;

    if (change == BH_SIM_ADDED)
        note(p, "created", "Pod", o->rv, o->ns, o->name, o->owner_kind, o->node_name);
    if (change != BH_SIM_DELETED && *o->node_name && (!old || !*old->node_name)) {
        p->bound++;
        note(p, "bound", "Pod", o->rv, o->ns, o->name, "", o->node_name);
    }
    if (old && change == BH_SIM_MODIFIED && o->deleting && !old->deleting && o->status_n &&
        memmem(o->json + o->status_at, o->status_n, "\"DisruptionTarget\"", 18))
        note(p, "evicted", "Pod", o->rv, o->ns, o->name, "", o->node_name);
    if (change == BH_SIM_DELETED)
        note(p, "deleted", "Pod", o->rv, o->ns, o->name, "", o->node_name);
}

static void on_node(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                    struct bh_sim_obj *o)
{
    static const char *const what[] = {"created", "updated", "deleted"};
    struct bh_console_past *p = arg;

    if (change == BH_SIM_MODIFIED && old->spec_n == o->spec_n &&
        memcmp(old->json + old->spec_at, o->json + o->spec_at, o->spec_n) == 0)
        return; /* a heartbeat */
    note(p, what[change], "Node", o->rv, "", o->name, "", "");
}

/* ---- GET timeline ---------------------------------------------------------------------------- */

static struct bh_json *entry_json(struct bh_arena *a, const struct entry *e)
{
    static const char *const members[] = {"namespace", "name", "by", "detail"};
    const char *p = e->text;
    char time[40];

    bh_time_format_micro_ns(time, e->time_ns);
    struct bh_json *v = bh_json_make(a, "time: %s, revision: %lu, what: %s, kind: %s", time, e->rv,
                                     e->what, e->kind);
    for (size_t i = 0; i < BH_ARRAY_LEN(members); i++) {
        bh_json_set_str(a, v, members[i], p);
        p += strlen(p) + 1;
    }
    return v;
}

/* false: answered. */
static bool read_time(struct bh_sim_req *r, const char *name, int64_t absent, int64_t *ret)
{
    const char *text = bh_http_query(r->http, name);

    *ret = absent;
    if (!text || !*text || bh_time_parse_ns(text, ret) != -EINVAL)
        return true;
    return bh_console_fail(r, 400, name, 0, "\"%.60s\" is no time like 2026-01-02T03:04:05Z", text);
}

void bh_console_timeline(struct bh_console_req *c)
{
    struct bh_sim_req *r = c->r;
    struct bh_console_past *p = r->sim->console->past;
    const char *limit_text = bh_http_query(r->http, "limit");
    char *limit_end = NULL;
    long limit = limit_text ? strtol(limit_text, &limit_end, 10) : LIMIT_USUAL;
    int64_t from, to;
    size_t at = 0, end = p->n;

    if (!read_time(r, "from", 1, &from) || !read_time(r, "to", INT64_MAX, &to))
        return;
    if (limit < 1 || limit > LIMIT_MAX || (limit_end && *limit_end)) {
        bh_console_fail(r, 400, "limit", 0, "a number from 1 to %d", LIMIT_MAX);
        return;
    }
    while (at < end && p->log[(p->first + at) % LOG_MAX].time_ns < from)
        at++;
    while (end > at && p->log[(p->first + end - 1) % LOG_MAX].time_ns > to)
        end--;
    if (end - at > (size_t)limit)
        at = end - (size_t)limit; /* the newest */
    struct bh_json *list = bh_json_new(r->a, BH_JSON_ARRAY);
    for (; at < end; at++)
        bh_json_push(list, entry_json(r->a, &p->log[(p->first + at) % LOG_MAX]));
    uint64_t oldest = BH_MAX(bh_sim_bucket(r->sim, p->pods)->evicted_rv,
                             bh_sim_bucket(r->sim, p->nodes)->evicted_rv);
    bh_console_reply(r, 200, bh_json_make(r->a, "items: %p, oldest: %lu", list, oldest));
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void on_second(void *arg)
{
    struct bh_console_past *p = arg;
    const struct bh_console_counts *t = bh_console_totals(p->c);

    if (t) {
        if (p->n_points == POINTS_MAX) {
            p->point_first = (p->point_first + 1) % POINTS_MAX;
            p->n_points--;
        }
        struct point *x = &p->point[(p->point_first + p->n_points++) % POINTS_MAX];
        *x =
            (struct point){.time_ns = bh_sim_now_ns(p->c->sim),
                           .pods = t->pods.total,
                           .pending = t->pods.pending,
                           .nodes = t->nodes.total,
                           .bound = p->bound,
                           .cpu = share(t->requested.cpu_milli, t->allocatable.cpu_milli),
                           .memory = share(t->requested.memory_bytes, t->allocatable.memory_bytes)};
        p->bound = 0;
    }
    p->timer = bh_sim_after(p->c->sim, EVERY_NS, on_second, p);
}

void bh_console_utilisation(struct bh_console_req *c)
{
    struct bh_sim_req *r = c->r;
    struct bh_console_past *p = r->sim->console->past;
    struct bh_buf *b = &r->sim->reply;
    int64_t since;

    if (!read_time(r, "since", 1, &since))
        return;
    bh_buf_reset(b);
    bh_buf_adds(b, "{\"interval_s\":1,\"points\":[");
    for (size_t i = 0; i < p->n_points; i++) {
        const struct point *x = &p->point[(p->point_first + i) % POINTS_MAX];
        if (x->time_ns > since) {
            char time[40];
            bh_time_format_micro_ns(time, x->time_ns);
            bh_buf_addf(
                b,
                "%s{\"time\":\"%s\",\"pods\":%lld,\"pending\":%lld,\"nodes\":%lld,\"cpu\":%.4f,"
                "\"memory\":%.4f,\"decisions\":%lld}",
                b->p[b->n - 1] == '[' ? "" : ",", time, (long long)x->pods, (long long)x->pending,
                (long long)x->nodes, x->cpu, x->memory, (long long)x->bound);
        }
    }
    bh_buf_adds(b, "]}\n");
    bh_sim_reply_raw(r, 200, "application/json", b->p, b->n);
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_console_past_start(struct bh_console *c)
{
    struct bh_console_past *p = bh_calloc(1, sizeof(*p));

    p->c = c;
    p->pods = bh_sim_type_find("", "v1", "pods");
    p->nodes = bh_sim_type_find("", "v1", "nodes");
    c->past = p;
    bh_sim_listen(c->sim, p->pods, on_pod, p);
    bh_sim_listen(c->sim, p->nodes, on_node, p);
    p->timer = bh_sim_after(c->sim, EVERY_NS, on_second, p);
    if (c->sim->opt.lost && *c->sim->opt.lost)
        bh_console_past_note(c, "lost", c->sim->opt.lost);
}

void bh_console_past_stop(struct bh_console *c)
{
    struct bh_console_past *p = c->past;

    bh_sim_cancel(p->timer);
    for (size_t i = 0; i < p->n; i++)
        free(p->log[(p->first + i) % LOG_MAX].text);
    free(p);
    c->past = NULL;
}
