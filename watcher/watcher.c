/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/watcher.c - life of the watcher: what is opened, the loop's hooks, readiness
 *
 * Owns:       everything in struct bh_watcher.
 * Invariants: `synced` only when every watched kind has been listed once; the feed is flushed after
 *             each turn of the loop, before it sleeps.
 * Runs in:    the loop.
 * Fails with: negative errno at start; later bh_watcher_fail(), after which the process should end
 *             and be restarted.
 */
#include "watcher/watcher_int.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/base/notify.h"

#define TICK_MS        250
#define TROUBLE_LOG_NS (UINT64_C(60) * 1000000000)
#define ALIVE_NS       (UINT64_C(10) * 1000000000)

void bh_watcher_fail(struct bh_watcher *w, const char *what, const char *why)
{
    if (w->failed)
        return;
    w->failed = true;
    bh_log_error(what, bh_kv_s("err", why));
    bh_snap_set_synced(w->snapshot, false);
    w->cb.on_failed(w->cb.arg);
}

/* ---- reflectors ------------------------------------------------------------------------------ */

static uint32_t raw_bit(enum bh_kind k)
{
    return k == BH_KIND_NODE  ? 1u << BERTH__RAW_KIND__RAW_NODES
           : k == BH_KIND_POD ? 1u << BERTH__RAW_KIND__RAW_ASSIGNED_PODS
                              : 0;
}

/* Schedulers want whole objects that were only compiled until now: list them once more. */
static void on_raw(void *arg, uint32_t wanted)
{
    static const enum bh_kind kinds[] = {BH_KIND_NODE, BH_KIND_POD};
    struct bh_watcher *w = arg;

    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++)
        if (w->feed.raw_missing & raw_bit(kinds[i]) && w->kinds[kinds[i]].reflector)
            bh_reflector_again(w->kinds[kinds[i]].reflector);
    bh_log_info("Whole objects for extenders", bh_kv_s("nodes", wanted & 1 ? "yes" : "no"),
                bh_kv_s("assigned_pods", wanted & 2 ? "yes" : "no"));
}

/* What schedulers are to know of a kind that plugins read. */
static void tell_state(struct bh_watcher *w, const struct bh_kind_info *k)
{
    const struct bh_watch_kind *wk = &w->kinds[k->kind];
    char trouble[256] = "";

    if (!bh_kind_is_plugins(k->kind) || !wk->reflector)
        return;
    const char *verb = bh_reflector_forbidden(wk->reflector);
    if (verb)
        snprintf(trouble, sizeof(trouble), "the watcher may not %s %s", verb, k->kind_name);
    else if (!wk->synced && wk->troubled)
        snprintf(trouble, sizeof(trouble), "%s could not be listed yet", k->kind_name);
    bh_feed_kind_state(&w->feed, bh_plugin_kind_index(k->kind), wk->synced && !verb, trouble);
}

/* What a scheduler before may have given to pods: the API server lets a device be given twice. */
static void note_stale(struct bh_watcher *w, const struct bh_kind_info *k, bool stale)
{
    if (k->kind == BH_KIND_RESOURCECLAIM || k->kind == BH_KIND_PERSISTENTVOLUME ||
        k->kind == BH_KIND_PERSISTENTVOLUMECLAIM)
        bh_feed_kind_stale(&w->feed, k->kind, stale);
}

static void on_synced(void *arg, const struct bh_kind_info *k, bool relist)
{
    struct bh_watcher *w = arg;
    struct bh_watch_kind *wk = &w->kinds[k->kind];
    struct bh_reflector_stats s;

    note_stale(w, k, false);
    bh_reflector_stats(wk->reflector, &s);
    if (!bh_reflector_repeats(wk->reflector))
        w->feed.raw_missing &= ~raw_bit(k->kind);
    bh_log_debug("Listed", bh_kv_s("kind", k->kind_name), bh_kv_u("objects", s.objects));
    if (relist)
        bh_log_info("Listed again", bh_kv_s("kind", k->kind_name), bh_kv_u("objects", s.objects));
    if (bh_kind_is_plugins(k->kind)) {
        wk->synced = true;
        tell_state(w, k);
        return;
    }
    if (wk->synced || w->failed)
        return;
    wk->synced = true;
    if (++w->kinds_synced == w->watched) {
        char line[128];
        w->synced = true;
        bh_snap_set_synced(w->snapshot, true);
        w->feed.synced = true;
        bh_watcher_heartbeat(w);
        bh_watcher_status(w, line);
        bh_log_info("Everything is listed", bh_kv_s("status", line));
        w->cb.on_synced(w->cb.arg);
    }
}

static void on_trouble(void *arg, const struct bh_kind_info *k, const char *text)
{
    struct bh_watcher *w = arg;
    struct bh_watch_kind *wk = &w->kinds[k->kind];
    const uint64_t now = bh_mono_ns();

    note_stale(w, k, text != NULL);
    if (!text) {
        bh_log_info("Watching again", bh_kv_s("kind", k->kind_name));
        wk->troubled = false;
        tell_state(w, k);
        return;
    }
    bool before = wk->troubled;
    wk->troubled = true;
    tell_state(w, k);
    /* One line when it starts, then one a minute. */
    if (before && now - wk->trouble_logged_ns < TROUBLE_LOG_NS)
        return;
    wk->trouble_logged_ns = now;
    bh_log_warn("Could not list or watch", bh_kv_s("kind", k->kind_name), bh_kv_s("err", text));
}

static struct bh_reflector *follow(struct bh_watcher *w, const struct bh_kind_info *k)
{
    const struct bh_reflector_callbacks cb = {.on_event = bh_watcher_on_event,
                                              .on_synced = on_synced,
                                              .on_bad = bh_watcher_on_bad,
                                              .on_trouble = on_trouble,
                                              .arg = w};

    return bh_reflector_new(w->loop, w->client, k, &cb);
}

/* A plugin somewhere reads the kind, or none does any more. */
static void on_watch(void *arg, unsigned i, bool wanted)
{
    struct bh_watcher *w = arg;
    const struct bh_kind_info *k = &w->feed.kinds[i].info;
    struct bh_watch_kind *wk = &w->kinds[k->kind];

    if (w->closing)
        return;
    bh_watcher_stats_kind(w, k);
    bh_reflector_free(wk->reflector);
    *wk = (struct bh_watch_kind){.reflector = wanted ? follow(w, k) : NULL, .before = wk->before};
    bh_log_info(wanted ? "Watching a kind for plugins" : "No plugin reads a kind any more",
                bh_kv_s("kind", k->kind_name), bh_kv_s("version", k->version));
}

static void start_reflectors(struct bh_watcher *w)
{
    for (size_t i = 0; i < BH_KIND_COUNT; i++) {
        if (!bh_watcher_watches(w, (enum bh_kind)i))
            continue;
        w->watched += !bh_kind_is_plugins((enum bh_kind)i);
        w->kinds[i].reflector = follow(w, &bh_kinds[i]);
    }
}

/* ---- the loop's hooks ------------------------------------------------------------------------ */

void bh_watcher_heartbeat(struct bh_watcher *w)
{
    w->last_tick_ns = bh_mono_ns();
    w->events_since_tick = 0;
    bh_snap_writer_tick(w->snapshot);
}

static void on_later(uv_timer_t *h)
{
    (void)h; /* wakes the loop: it flushes before it sleeps */
}

static void on_flush(uv_prepare_t *h)
{
    struct bh_watcher *w = bh_container_of(h, struct bh_watcher, flush);
    const uint64_t wait_ns = bh_feed_wait(&w->feed);

    if (w->leader) /* what a scheduler just said may be what the elector waits for */
        bh_leader_poke(w->leader);
    if (wait_ns == 0)
        bh_feed_flush(&w->feed);
    else if (wait_ns < UINT64_MAX && !uv_is_active((uv_handle_t *)&w->later))
        uv_timer_start(&w->later, on_later, wait_ns / 1000000 + 1, 0);
}

static void on_tick(uv_timer_t *h)
{
    struct bh_watcher *w = bh_container_of(h, struct bh_watcher, tick);
    char line[128], state[160];

    bh_watcher_heartbeat(w);
    bh_feed_tick(&w->feed, w->last_tick_ns);
    if (w->leader)
        bh_leader_poke(w->leader);
    bh_watcher_status(w, line);
    snprintf(state, sizeof(state), "STATUS=%s", line);
    if (getenv("NOTIFY_SOCKET"))
        bh_notify(state);
}

static void on_note(void *arg, const char *what, const struct bh_feed_peer *p)
{
    char id[sizeof(p->id.id) + 1];
    (void)arg;
    snprintf(id, sizeof(id), "%.*s", (int)p->id.n, (const char *)p->id.id);
    if (p->observer) {
        bh_log_debug(what, bh_kv_s("observer", id), bh_kv_u("batches", p->seq));
        return;
    }
    bh_log_info(what, bh_kv_s("scheduler", id), bh_kv_u("epoch", p->epoch),
                bh_kv_u("batches", p->seq));
}

/* ---- readiness ------------------------------------------------------------------------------- */

bool bh_watcher_synced(const struct bh_watcher *w)
{
    return w->synced && !w->failed;
}

bool bh_watcher_healthy(void *arg)
{
    const struct bh_watcher *w = arg;
    return !w->failed && bh_mono_ns() - w->last_tick_ns < ALIVE_NS;
}

static bool is_ready(void *arg)
{
    return bh_watcher_synced(arg);
}

/* What plugins read and the watcher may not: pods that need it wait. */
static const char *forbidden(void *arg)
{
    const struct bh_watcher *w = arg;

    for (unsigned i = 0; i < BH_PLUGIN_KINDS; i++)
        if (w->feed.kinds[i].wanted && *w->feed.kinds[i].trouble)
            return w->feed.kinds[i].trouble;
    return NULL;
}

static bool plugins_see(void *arg)
{
    return !forbidden(arg);
}

/* Without room in /dev/shm no scheduler sees what is known here. */
static bool is_shown(void *arg)
{
    const struct bh_watcher *w = arg;
    struct bh_snap_stats s;
    bh_snap_writer_stats(w->snapshot, &s);
    return !s.hidden;
}

void bh_watcher_status(const struct bh_watcher *w, char out[static 128])
{
    struct bh_snap_stats s;
    if (!w->synced) {
        snprintf(out, 128, "listing: %u of %u kinds", w->kinds_synced, w->watched);
        return;
    }
    bh_snap_writer_stats(w->snapshot, &s);
    snprintf(out, 128, "watching: %llu nodes, %llu assigned pods, %zu pending, %u schedulers%s",
             (unsigned long long)s.nodes, (unsigned long long)s.pods, w->objects.live[BH_KIND_POD],
             bh_feed_peers(&w->feed),
             !w->leader                   ? ""
             : bh_leader_leads(w->leader) ? ", leading"
                                          : ", standing by");
}

uint16_t bh_watcher_metrics_port(const struct bh_watcher *w)
{
    return w->probes ? bh_probes_port(w->probes) : 0;
}

/* ---- the lease ------------------------------------------------------------------------------- */

/* Taking a lease over while cut off would mean to decide on what the last leader's cluster looked
 * like some seconds ago: without its last bindings. A leader goes on with what it has; its own
 * bindings it knows. */
static bool sees(const struct bh_watcher *w)
{
    return !w->leader || bh_leader_leads(w->leader) ||
           (!w->feed.stale && bh_reflector_follows(w->kinds[BH_KIND_NODE].reflector) &&
            bh_reflector_follows(w->kinds[BH_KIND_POD].reflector));
}

/* What the scheduler and the binders have done since the last yes. */
static bool advanced(void *arg, const char **ret_why)
{
    struct bh_watcher *w = arg;
    const struct bh_feed *f = &w->feed;

    *ret_why = !w->synced                  ? "not everything is listed"
               : !sees(w)                  ? "nodes, pods, claims and volumes are not followed"
               : !is_shown(w)              ? "there is no room for the snapshot"
               : f->turns == w->turns_used ? "the scheduler does not advance"
               : f->binder_turns == w->binder_turns_used ? "no binder advances"
                                                         : NULL;
    if (*ret_why)
        return false;
    w->turns_used = f->turns;
    w->binder_turns_used = f->binder_turns;
    return true;
}

static bool quiet(void *arg, uint64_t term)
{
    const struct bh_watcher *w = arg;
    return w->feed.quiet_term >= term;
}

static void on_lease(void *arg, uint64_t term, uint64_t until_boot_ns)
{
    struct bh_watcher *w = arg;

    /* A host may take the lease back under the term that it had: that nothing of it was on the wire was
     * said of the time before. */
    if (until_boot_ns && !w->feed.leads)
        w->feed.quiet_term = 0;
    w->feed.leads = until_boot_ns != 0;
    bh_snap_set_lease(w->snapshot, term, until_boot_ns);
}

static int open_leader(struct bh_watcher *w, const struct bh_watcher_options *o, struct bh_err *err)
{
    const struct bh_leader_callbacks cb = {
        .advanced = advanced, .quiet = quiet, .lease = on_lease, .arg = w};
    const struct bh_leader_options lo = {.config = o->leader,
                                         .api = o->api,
                                         .user_agent = o->user_agent,
                                         .runtime_dir = o->runtime_dir,
                                         .component = o->event_source,
                                         .metrics = w->metrics};
    if (o->leader && o->leader->leader_elect)
        return bh_leader_new(w->loop, &lo, &cb, &w->leader, err);
    bh_snap_set_lease(w->snapshot, 0, BH_SNAP_NO_ELECTION);
    return 0;
}

static bool leader_healthy(void *arg)
{
    const struct bh_watcher *w = arg;
    return !w->leader || bh_leader_healthy(w->leader);
}

void bh_watcher_stop(struct bh_watcher *w, void (*stopped)(void *arg), void *arg)
{
    if (w->leader)
        bh_leader_stop(w->leader, stopped, arg);
    else
        stopped(arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_feed(struct bh_watcher *w, const struct bh_watcher_options *o, struct bh_err *err)
{
    struct bh_snap_stats s;
    struct bh_bus *bus = NULL;
    char endpoint[128];
    int rc = bh_bus_endpoint(o->runtime_dir, "watcher", endpoint, err);
    if (rc == 0)
        rc = bh_bus_open_among(BH_BUS_ROUTER_BIND, endpoint, NULL, o->users,
                               BH_BUS_SCHEDULER | BH_BUS_FRONT | BH_BUS_OPERATOR, &bus, err);
    if (rc < 0)
        return rc;
    bh_snap_writer_stats(w->snapshot, &s);
    bh_feed_init(&w->feed, bus, &w->objects);
    w->feed.incarnation = s.incarnation;
    w->feed.on_note = on_note;
    w->feed.on_raw = on_raw;
    w->feed.on_watch = on_watch;
    w->feed.arg = w;
    return 0;
}

static void start_hooks(struct bh_watcher *w)
{
    /* Prepare hooks run last started, first called: the feed sends, then the bus looks whether
     * there is something to receive. */
    w->bus_poll = bh_bus_poll_new(w->loop, w->feed.bus, bh_feed_receive, &w->feed);
    uv_prepare_init(w->loop, &w->flush);
    uv_prepare_start(&w->flush, on_flush);
    uv_timer_init(w->loop, &w->later);
    uv_timer_init(w->loop, &w->tick);
    uv_timer_start(&w->tick, on_tick, TICK_MS, TICK_MS);
    w->flush.data = w->later.data = w->tick.data = w;
    w->open_handles = 3;
}

static void free_memory(struct bh_watcher *w)
{
    bh_snap_writer_free(w->snapshot);
    bh_objects_fini(&w->objects);
    bh_arena_fini(&w->arena);
    bh_buf_fini(&w->bytes);
    bh_metrics_free(w->metrics);
    bh_watcher_stats_fini(w);
    free(w);
}

int bh_watcher_new(uv_loop_t *loop, const struct bh_watcher_options *o,
                   const struct bh_watcher_callbacks *cb, struct bh_watcher **ret,
                   struct bh_err *err)
{
    struct bh_watcher *w = bh_calloc(1, sizeof(*w));
    w->loop = loop;
    w->cb = *cb;
    w->pod_groups = o->pod_groups;
    w->coscheduling = o->coscheduling;
    w->last_tick_ns = bh_mono_ns();
    w->metrics = bh_metrics_new();
    bh_objects_init(&w->objects);
    bh_metrics_add_process(w->metrics, "berth-watcher");
    bh_metrics_add_network(w->metrics);
    bh_watcher_stats_init(w);
    struct bh_api_options api = o->limits;
    api.user_agent = o->user_agent;
    api.metrics = w->metrics;
    int rc = bh_snap_writer_new(o->runtime_dir, NULL, &w->snapshot, err);
    if (rc == 0) {
        w->interner = bh_snap_interner(w->snapshot);
        bh_snap_open(w->snapshot); /* schedulers build theirs while this is listing */
        rc = open_feed(w, o, err);
    }
    if (rc == 0)
        rc = bh_api_client_new(loop, o->api, &api, &w->client, err);
    if (rc == 0) {
        const struct bh_probe_check checks[] = {
            {.name = "loop", .ok = bh_watcher_healthy, .arg = w, .live = true, .ready = true},
            {.name = "leaderElection", .ok = leader_healthy, .arg = w, .live = true, .ready = true},
            {.name = "synced", .ok = is_ready, .arg = w, .ready = true},
            {.name = "snapshot", .ok = is_shown, .arg = w, .ready = true},
            {.name = "plugin-kinds", .ok = plugins_see, .arg = w, .ready = true, .why = forbidden},
            {.name = NULL},
        };
        rc = bh_probes_start(w->loop, o->metrics_address, o->runtime_dir, "watcher", w->metrics,
                             checks, &w->probes, err);
    }
    if (rc == 0)
        rc = open_leader(w, o, err);
    if (rc < 0) {
        bh_probes_free(w->probes);
        bh_api_client_free(w->client);
        if (w->feed.bus)
            bh_feed_fini(&w->feed);
        free_memory(w);
        return rc;
    }
    w->feed.kinds[bh_plugin_kind_index(BH_KIND_COSCHEDULING_PODGROUP)].wanted = w->coscheduling;
    start_hooks(w);
    start_reflectors(w);
    *ret = w;
    return 0;
}

void bh_watcher_reload(struct bh_watcher *w)
{
    bh_api_client_reload(w->client);
    if (w->leader)
        bh_leader_reload(w->leader);
}

static void on_closed(uv_handle_t *h)
{
    struct bh_watcher *w = h->data;

    if (--w->open_handles == 0)
        free_memory(w);
}

void bh_watcher_free(struct bh_watcher *w)
{
    if (!w)
        return;
    w->closing = true;
    for (size_t i = 0; i < BH_KIND_ALL; i++)
        bh_reflector_free(w->kinds[i].reflector);
    bh_leader_free(w->leader);
    bh_api_client_free(w->client);
    bh_probes_free(w->probes);
    bh_bus_poll_close(w->bus_poll);
    bh_feed_fini(&w->feed);
    uv_close((uv_handle_t *)&w->flush, on_closed);
    uv_close((uv_handle_t *)&w->later, on_closed);
    uv_close((uv_handle_t *)&w->tick, on_closed);
}
