/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/control.c - the running scheduler answers questions
 *
 * Invariants: an answer is built in one arena with a limit and forgotten when it is sent; nothing
 *             is remembered about the asker.
 */
#include "scheduler/daemon/control.h"

#include "common/k8s/coscheduling.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/wasm/guest.h"

#define ARENA_MAX_BYTES ((size_t)64 << 20)
#define PAGE_TEXT_MAX   1024u
#define POD_TEXT_MAX    (32u << 10)
#define NAME_MAX_BYTES  253u
#define GOODBYE_MS      200

struct bh_control {
    struct bh_sched_daemon *d;
    struct bh_bus *bus;
    struct bh_bus_poll *poll;
    bool news;                       /* the socket has something */
    struct bh_arena arena;           /* question and answer */
    uint64_t not_before_ns;          /* the share of time is used up until then */
    char *config_text, *config_json; /* NULL: nobody has asked yet */
    struct bh_control_stats stats;
};
struct page {
    struct bh_control *c;
    const Berth__ControlRequest *q;
    Berth__ControlReply *r;
};

/* ---- STATUS ---------------------------------------------------------------------------------- */

static void fill_intake(const struct bh_sched_daemon *d, Berth__ControlStatus *s)
{
    struct bh_snap_stats snap;
    uint64_t now = bh_boot_ns();

    s->has_snapshot_ready = s->has_feed_synced = s->has_leading = s->has_lease_term = true;
    s->snapshot_ready = d->in.snapshot_ready;
    s->feed_synced = d->in.feed.synced;
    s->leading = d->in.leading;
    s->lease_term = d->in.lease_term;
    s->trouble = (char *)(uintptr_t)d->in.snapshot_trouble;
    if (d->o.observe && !*s->trouble)
        s->trouble = (char *)(uintptr_t) "looks on only (--observe): another scheduler decides";
    if (!bh_snap_reader_info(d->in.reader, &snap))
        return;
    s->has_incarnation = s->has_position = s->has_head = s->has_heartbeat_age_ns = true;
    s->incarnation = snap.incarnation;
    s->position = bh_snap_reader_pos(d->in.reader);
    s->head = snap.head;
    s->heartbeat_age_ns = now - BH_MIN(now, snap.heartbeat_boot_ns);
}

static void answer_status(struct bh_control *c, Berth__ControlReply *r)
{
    static char version[] = BH_VERSION;
    const struct bh_sched_daemon *d = c->d;
    Berth__ControlStatus *s = bh_arena_new(&c->arena, Berth__ControlStatus);

    berth__control_status__init(s);
    s->version = version;
    s->has_epoch = s->has_deciding = s->has_now_ns = s->has_started_ns = true;
    s->epoch = d->epoch;
    s->deciding = bh_sched_may_decide(d);
    s->now_ns = bh_sched_now(d);
    s->started_ns = d->wall_base_ns;
    fill_intake(d, s);
    struct bh_queue_stats q;
    struct bh_ledger_stats l;
    bh_queue_stats(d->queue, &q);
    bh_ledger_stats(d->ledger, &l);
    s->has_nodes = s->has_pods = s->has_assumed = s->has_active = s->has_backoff = true;
    s->has_unschedulable = s->has_gated = s->has_in_flight = s->has_binding = true;
    s->has_binders = true;
    s->nodes = bh_engine_node_count(d->engine);
    s->pods = bh_engine_pod_count(d->engine);
    s->assumed = bh_engine_assumed_count(d->engine);
    s->active = q.active;
    s->backoff = q.backoff;
    s->unschedulable = q.unschedulable;
    s->gated = q.gated;
    s->in_flight = q.in_flight;
    s->binding = l.binds;
    s->binders = l.binders;
    const struct bh_sched_config *cfg = c->d->o.config;
    static char standard[] = "default-scheduler";
    s->n_profile = cfg ? cfg->n_profiles : 1;
    s->profile = bh_arena_new_array(&c->arena, char *, s->n_profile);
    for (size_t i = 0; i < s->n_profile; i++)
        s->profile[i] = cfg ? (char *)(uintptr_t)cfg->profiles[i].scheduler_name : standard;
    r->status = s;
}

/* ---- QUEUE, POD ------------------------------------------------------------------------------ */

static char *text_of(struct bh_arena *a, const char *s, size_t max)
{
    return !s ? NULL : strlen(s) <= max ? bh_arena_strdup(a, s) : bh_arena_strndup(a, s, max);
}

static char *sym_of(struct bh_control *c, bh_sym sym)
{
    return sym == BH_SYM_NONE ? NULL
                              : text_of(&c->arena, bh_sym_text(c->d->symtab, sym), NAME_MAX_BYTES);
}

static void fill_bind(struct bh_control *c, const struct bh_pod_state *s, Berth__QueuePod *m)
{
    const struct bh_work *w = s->bind;

    if (!w) {
        m->node = sym_of(c, bh_sched_prebind_node(s));
        return;
    }
    m->node = text_of(&c->arena, w->item.node, NAME_MAX_BYTES);
    m->binder = w->binder ? bh_arena_strdup(&c->arena, w->binder->name) : NULL;
    m->has_bind_attempt = m->has_bind_ns = true;
    m->bind_attempt = w->item.attempt;
    m->bind_ns = bh_sched_now(c->d) - (int64_t)(bh_mono_ns() - w->queued_ns);
}

static Berth__QueueGroup *group_message(struct bh_control *c, const struct bh_group *g)
{
    Berth__QueueGroup *m = bh_arena_new(&c->arena, Berth__QueueGroup);

    berth__queue_group__init(m);
    m->name = sym_of(c, g->name);
    m->has_found = m->has_min_count = m->has_members = m->has_scheduled = true;
    m->members = bh_group_all(g);
    m->scheduled = bh_group_scheduled(g);
    return m;
}

static const void *group_object(const struct bh_control *c, enum bh_kind kind,
                                const struct bh_group *g)
{
    return bh_engine_get_object(c->d->engine, kind, bh_sym_text(c->d->symtab, g->namespace_),
                                bh_sym_text(c->d->symtab, g->name));
}

static Berth__QueueGroup *queue_group(struct bh_control *c, const struct bh_queued_pod *p)
{
    const struct bh_group *g = bh_engine_group_of(c->d->engine, &p->pending);
    Berth__QueueGroup *m;
    struct bh_pod_group spec;
    struct bh_coscheduling_group other;
    struct bh_err err;

    if (g) {
        const K8s__PodGroup *o = group_object(c, BH_KIND_PODGROUP, g);
        m = group_message(c, g);
        m->found = o && bh_pod_group_read(o, &spec, &err) == 0;
        m->min_count = m->found ? (uint32_t)spec.min_count : 0;
        return m;
    }
    g = bh_engine_labelled_group_of(c->d->engine, &p->pending);
    if (!g)
        return NULL;
    const K8s__CoschedulingPodGroup *o = group_object(c, BH_KIND_COSCHEDULING_PODGROUP, g);
    m = group_message(c, g);
    m->found = o != NULL;
    if (o)
        bh_coscheduling_read(o, &other);
    m->min_count = o ? (uint32_t)BH_MAX(other.min_member, 0) : 0;
    return m;
}

_Static_assert((int)BH_Q_ACTIVE == BERTH__QUEUE_PLACE__QUEUE_ACTIVE &&
                   (int)BH_Q_BINDING == BERTH__QUEUE_PLACE__QUEUE_BINDING &&
                   (int)BH_Q_WAITING == BERTH__QUEUE_PLACE__QUEUE_WAITING,
               "places have the same numbers on the bus");

/* Whom a pod at Permit waits for, in place of whom it was rejected by earlier. */
static void fill_permit(const struct bh_pod_state *s, struct bh_queue_view *v, Berth__QueuePod *m)
{
    if (v->place != BH_Q_WAITING)
        return;
    v->n_plugins = bh_waiting_for(s->waiting, v->plugins, BH_ARRAY_LEN(v->plugins), &m->permit_ns);
    m->has_permit_ns = m->permit_ns != 0;
}

/* An observer decides nothing: where the pod stands is what the other scheduler reported of it. */
static enum bh_queue_place reported_place(const struct bh_control *c, const struct bh_queued_pod *p,
                                          enum bh_queue_place place)
{
    return c->d->o.observe && place == BH_Q_ACTIVE && p->last_reason &&
                   bh_streq(p->last_reason, "Unschedulable")
               ? BH_Q_UNSCHEDULABLE
               : place;
}

static Berth__QueuePod *queue_pod(struct bh_control *c, const struct bh_queued_pod *p,
                                  size_t text_max)
{
    const struct bh_pod_rec *rec = p->pending.pod;
    const struct bh_shape_rec *shape = bh_engine_shape_rec(c->d->engine, p->pending.shape);
    Berth__QueuePod *m = bh_arena_new(&c->arena, Berth__QueuePod);
    struct bh_queue_view v;

    berth__queue_pod__init(m);
    bh_queue_view(c->d->queue, p, &v);
    fill_permit(p->pod, &v, m);
    m->namespace_ = bh_arena_strdup(&c->arena, bh_rec_text(rec, rec->namespace_).p);
    m->name = bh_arena_strdup(&c->arena, bh_rec_text(rec, rec->name).p);
    m->uid = bh_arena_strdup(&c->arena, bh_rec_text(rec, rec->uid).p);
    m->profile = sym_of(c, shape->scheduler_name);
    m->has_place = m->has_priority = m->has_attempts = m->has_added_ns = true;
    m->place = (Berth__QueuePlace)reported_place(c, p, v.place);
    m->priority = shape->priority;
    m->attempts = p->attempts;
    m->added_ns = p->timestamp_ns;
    m->has_first_attempt_ns = p->initial_attempt_ns != 0;
    m->first_attempt_ns = p->initial_attempt_ns;
    m->has_created_ns = rec->creation_ns != 0;
    m->created_ns = rec->creation_ns;
    m->has_backoff_ns = v.backoff_until_ns != 0;
    m->backoff_ns = v.backoff_until_ns;
    m->n_plugin = v.n_plugins;
    m->plugin = bh_arena_new_array(&c->arena, char *, v.n_plugins + 1);
    for (uint32_t i = 0; i < v.n_plugins; i++)
        m->plugin[i] = text_of(&c->arena, v.plugins[i], NAME_MAX_BYTES);
    m->nominated_node = sym_of(c, p->told_nomination);
    /* What the last attempt said; of a gated pod, what its gate says now. */
    const struct bh_status *s = m->place == BERTH__QUEUE_PLACE__QUEUE_GATED
                                    ? bh_engine_pre_enqueue(c->d->engine, &p->pending)
                                    : NULL;
    static char gated[] = "SchedulingGated", waits[] = "waiting on permit";
    if (v.place == BH_Q_WAITING) {
        m->message = waits;
    } else if (s) {
        m->reason = gated;
        m->message = text_of(&c->arena, bh_status_message(&c->arena, s), text_max);
    } else if (p->attempts || c->d->o.observe) {
        m->reason = text_of(&c->arena, p->last_reason, 64);
        m->message = text_of(&c->arena, p->last_message, text_max);
    }
    fill_bind(c, p->pod, m);
    m->group = queue_group(c, p);
    return m;
}

static bool on_pod(void *arg, const struct bh_queued_pod *p, enum bh_queue_place place)
{
    struct page *g = arg;
    const struct bh_pod_rec *rec = p->pending.pod;

    if ((g->q->places && !(g->q->places >> reported_place(g->c, p, place) & 1)) ||
        (g->q->namespace_ && !bh_str_eqc(bh_rec_text(rec, rec->namespace_), g->q->namespace_)))
        return true;
    if (g->r->n_pod == g->q->limit)
        return false;
    g->r->pod[g->r->n_pod++] = queue_pod(g->c, p, PAGE_TEXT_MAX);
    return true;
}

/* ---- the socket ------------------------------------------------------------------------------ */

static void add_gate(void *arg, const struct bh_feature_state *g)
{
    struct bh_buf *b = arg;

    if (g->differs)
        bh_buf_addf(b, "%s%s=%s", b->n ? "," : "", g->name, g->enabled ? "true" : "false");
}

static char *feature_gates(struct bh_control *c)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    if (c->d->o.config->gates)
        bh_feature_gates_each(c->d->o.config->gates, add_gate, &b);
    return bh_arena_strdup(&c->arena, bh_buf_str(&b));
}

static char *guests(struct bh_control *c)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_json_write(&b, bh_guests_json(&c->arena));
    return bh_arena_strdup(&c->arena, bh_buf_str(&b));
}

/* It stays the same while we run: written when somebody asks first. */
static void write_config(struct bh_control *c)
{
    const struct bh_sched_config *config = c->d->o.config;
    struct bh_buf text = {0};

    if (!config || c->config_text)
        return;
    bh_sched_config_write(config, BH_SCHED_CONFIG_YAML, false, &text);
    c->config_text = bh_buf_take(&text);
    bh_sched_config_write(config, BH_SCHED_CONFIG_JSON, false, &text);
    c->config_json = bh_buf_take(&text);
}

static void answer(struct bh_control *c, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    r->id = q->id;
    switch (q->what) {
    case BERTH__CONTROL_WHAT__CONTROL_STATUS:
        answer_status(c, r);
        break;
    case BERTH__CONTROL_WHAT__CONTROL_CONFIG: {
        Berth__ControlConfig *m = bh_arena_new(&c->arena, Berth__ControlConfig);
        berth__control_config__init(m);
        m->path = bh_arena_strdup(&c->arena, c->d->o.config_path ? c->d->o.config_path : "");
        write_config(c);
        m->in_force = c->config_text;
        m->in_force_json = c->config_json;
        m->feature_gates = feature_gates(c);
        m->guests_json = guests(c);
        m->has_tie_break_first = true;
        m->tie_break_first = c->d->o.tie_break == BH_TIE_FIRST;
        r->config = m;
    } break;
    case BERTH__CONTROL_WHAT__CONTROL_QUEUE: {
        struct page g = {.c = c, .q = q, .r = r};
        uint64_t cursor = q->cursor;
        r->pod = bh_arena_new_array(&c->arena, Berth__QueuePod *, q->limit);
        r->has_restart = bh_queue_walk(c->d->queue, &cursor, BH_CONTROL_SLOTS, on_pod, &g) ==
                         BH_QUEUE_WALK_MOVED;
        r->restart = r->has_restart;
        r->has_cursor = true;
        r->cursor = cursor;
    } break;
    case BERTH__CONTROL_WHAT__CONTROL_POD: {
        const struct bh_pod_state *s = bh_pods_find(c->d->pods, bh_str_c(q->uid));
        if (!s || !s->queued)
            break;
        r->pod = bh_arena_new_array(&c->arena, Berth__QueuePod *, 1);
        r->pod[r->n_pod++] = queue_pod(c, s->queued, POD_TEXT_MAX);
    } break;
    case BERTH__CONTROL_WHAT__CONTROL_RELOAD: {
        struct bh_err err = {0};
        int rc = bh_sched_reload(c->d, &err);
        if (rc < 0) {
            r->error = bh_arena_strdup(&c->arena, err.msg);
            break;
        }
        r->has_restart = true;
        r->restart = rc == BH_SCHED_RELOAD;
        bh_bus_linger(c->bus, GOODBYE_MS); /* the answer leaves before we do */
    } break;
    default: /* refused by the bus */
        break;
    }
}

unsigned bh_control_serve(struct bh_control *c)
{
    static char malformed[] = "not a question of this version (control.h)";
    Berth__ControlReply r = BERTH__CONTROL_REPLY__INIT;
    Berth__Envelope *e = NULL;
    struct bh_peer peer = {.n = 0};
    uint64_t t0 = bh_mono_ns();

    if (!c->news || t0 < c->not_before_ns)
        return 0;
    bh_arena_reset(&c->arena);
    enum bh_bus_outcome o = bh_bus_recv(c->bus, &c->arena, &peer, &e);
    if (o == BH_BUS_EMPTY) {
        c->news = false;
        return 0;
    }
    if (o == BH_BUS_OK && e->control) {
        answer(c, e->control, &r);
    } else {
        c->stats.malformed++;
        r.error = malformed;
    }
    if (peer.n) {
        Berth__Envelope out = BERTH__ENVELOPE__INIT;
        out.control_reply = &r;
        r.has_id = true;
        if (bh_bus_send(c->bus, &peer, &out) != BH_BUS_OK)
            c->stats.dropped++; /* it does not read, or is gone: it has to ask again */
        else if (!r.error)
            c->stats.answered++;
    }
    t0 = bh_mono_ns() - t0;
    c->stats.busy_ns += t0;
    c->not_before_ns = bh_mono_ns() + t0 * (BH_CONTROL_SHARE - 1);
    return 1;
}

void bh_control_stats(const struct bh_control *c, struct bh_control_stats *ret)
{
    struct bh_bus_stats bus;

    bh_bus_stats(c->bus, &bus);
    *ret = c->stats;
    ret->strangers = bus.strangers;
}

/* Only wakes the loop: questions are answered in the turn. */
static bool on_readable(void *arg)
{
    ((struct bh_control *)arg)->news = true;
    return false;
}

int bh_control_open(struct bh_sched_daemon *d, struct bh_control **ret, struct bh_err *err)
{
    struct bh_control *c = bh_calloc(1, sizeof(*c));
    char endpoint[128];
    int rc = bh_bus_endpoint(d->o.runtime_dir, "control", endpoint, err);

    c->d = d;
    bh_arena_init(&c->arena, ARENA_MAX_BYTES);
    if (rc == 0)
        rc = bh_bus_open_among(BH_BUS_SERVICE_BIND, endpoint, NULL, d->o.users,
                               BH_BUS_FRONT | BH_BUS_OPERATOR, &c->bus, err);
    if (rc < 0) {
        bh_control_close(c);
        return rc;
    }
    c->poll = bh_bus_poll_new(d->loop, c->bus, on_readable, c);
    *ret = c;
    return 0;
}

void bh_control_close(struct bh_control *c)
{
    if (!c)
        return;
    bh_bus_poll_close(c->poll);
    bh_bus_close(c->bus);
    bh_arena_fini(&c->arena);
    free(c->config_text);
    free(c->config_json);
    free(c);
}
