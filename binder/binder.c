/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/binder.c - the owner object: bus, answers, heartbeat, start and stop
 */
#include "binder/binder.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/bus/curve.h"
#include <unistd.h>

#define GOODBYE_MS 100 /* for the last hello to leave */

/* ---- answers --------------------------------------------------------------------------------- */

/* Items we are willing to hold for the scheduler of today. */
static uint32_t window(const struct bh_binder *b)
{
    return b->stopping ? 0 : BH_BINDER_WINDOW - BH_MIN(b->n_old_jobs, BH_BINDER_WINDOW);
}

static enum bh_bus_outcome send_results(struct bh_binder *b, uint32_t from, uint32_t n)
{
    Berth__WorkResult *list[BH_BUS_BATCH_ITEMS];
    Berth__ResultBatch batch = BERTH__RESULT_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    for (uint32_t i = 0; i < n; i++)
        list[i] = &b->results[from + i];
    batch.n_result = n;
    batch.result = list;
    batch.has_window = true;
    batch.window = window(b);
    e.results = &batch;
    return bh_bus_send(b->bus, NULL, &e);
}

static void flush_all(struct bh_binder *b)
{
    uint32_t sent = 0;

    while (sent < b->n_results) {
        uint32_t n = BH_MIN(b->n_results - sent, BH_BUS_BATCH_ITEMS);
        enum bh_bus_outcome o;
        while ((o = send_results(b, sent, n)) == BH_BUS_BAD && n > 1) /* objects may be large */
            n /= 2;
        if (o == BH_BUS_FULL)
            break; /* the next turn goes on; bounded by the items we hold */
        sent += n;
    }
    if (!sent)
        return;
    b->n_results -= sent;
    b->answer_now = b->n_results > 0;
    memmove(b->results, b->results + sent, b->n_results * sizeof(*b->results));
    if (!b->n_results)
        bh_arena_reset(&b->result_arena);
}

/* The scheduler does not wait to hear that a bind is done: the watcher tells of the pod itself.
 * Such answers leave in company. */
static bool may_wait(const struct bh_binder *b, const Berth__WorkItem *item, Berth__Outcome o)
{
    return o == BERTH__OUTCOME__OUTCOME_DONE && !item->write && !b->stopping &&
           (item->kind == BERTH__WORK_KIND__WORK_BIND ||
            item->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS ||
            item->kind == BERTH__WORK_KIND__WORK_EVENT);
}

static void count_item(struct bh_binder *b, Berth__WorkKind kind, Berth__Outcome o)
{
    static const char *const kinds[] = {
        "bind",          "patch_status",  "delete",      "event",       "volume_claim",
        "selected_node", "allocation",    "reservation", "new_claim",   "deallocation",
        "delete_claim",  "unreservation", "patch",       "group_status"};
    static const char *const outcomes[] = {"done",  "rejected", "gone", "bound_elsewhere",
                                           "stale", "unknown"};
    struct bh_cell **c = &b->items[kind][o];

    _Static_assert(BH_ARRAY_LEN(kinds) == BH_ARRAY_LEN(b->items), "each kind has a name");
    _Static_assert(BH_ARRAY_LEN(outcomes) == BH_ARRAY_LEN(b->items[0]), "each outcome has a name");
    if (!*c)
        *c = bh_metric_cell(b->m_items, kinds[kind], outcomes[o]);
    bh_cell_add(*c, 1);
}

void bh_binder_answer(struct bh_binder *b, uint64_t epoch, const Berth__WorkItem *item,
                      Berth__Outcome o, int code, const char *reason, const char *message,
                      uint64_t latency_ns)
{
    BH_GROW(b->results, b->n_results, b->cap_results);
    Berth__WorkResult *r = &b->results[b->n_results++];
    b->answer_now |= !may_wait(b, item, o);
    berth__work_result__init(r);
    r->has_id = r->has_epoch = r->has_outcome = r->has_code = r->has_latency_ns = true;
    r->id = item->id;
    r->epoch = epoch;
    r->outcome = o;
    r->code = code;
    r->latency_ns = latency_ns;
    r->uid = bh_arena_strdup(&b->result_arena, item->uid ? item->uid : "");
    if (reason && *reason)
        r->reason = bh_arena_strdup(&b->result_arena, reason);
    if (message && *message)
        r->message = bh_arena_strndup(&b->result_arena, message, BH_MIN(strlen(message), 1024u));
    count_item(b, item->kind, o);
}

void bh_binder_answer_object(struct bh_binder *b, const struct bh_buf *object)
{
    Berth__WorkResult *r = &b->results[b->n_results - 1];

    if (object->n > BH_BUS_MAX_BYTES / 2) /* no server's: the scheduler would never hear of it */
        return;
    r->has_object = true;
    r->object.len = object->n;
    r->object.data = bh_arena_alloc(&b->result_arena, object->n + 1);
    memcpy(r->object.data, bh_buf_str(object), object->n);
}

/* ---- bus ------------------------------------------------------------------------------------- */

static bool say_hello(struct bh_binder *b, Berth__WorkItem **items, size_t n)
{
    Berth__BinderHello h = BERTH__BINDER_HELLO__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    h.binder = b->name;
    h.has_epoch_seen = h.has_window = true;
    h.epoch_seen = b->epoch;
    h.window = window(b);
    h.n_in_flight = n;
    h.in_flight = items;
    h.has_stamp_boot_ns = h.has_grant_seen = h.has_on_wire = h.has_leaving = true;
    h.stamp_boot_ns = bh_boot_ns();
    h.grant_seen = b->grant.serial;
    h.on_wire = b->n_writing + (bh_boot_ns() < b->unanswered_until_ns);
    h.leaving = b->closing && !h.on_wire;
    h.has_age_ns = true;
    h.age_ns = h.stamp_boot_ns - b->opened_boot_ns;
    e.binder_hello = &h;
    return bh_bus_send(b->bus, NULL, &e) == BH_BUS_OK;
}

/* What is on the wire for earlier schedulers, under their epoch. */
static bool report(struct bh_binder *b)
{
    static Berth__WorkItem items[BH_BUS_BATCH_ITEMS]; /* one thread; too large for the stack */
    Berth__WorkItem *list[BH_BUS_BATCH_ITEMS];
    struct bh_job *cursor = NULL;

    do {
        size_t n = bh_binder_in_flight(b, &cursor, items, BH_ARRAY_LEN(items));
        for (size_t i = 0; i < n; i++)
            list[i] = &items[i];
        if (!say_hello(b, list, n))
            return false;
    } while (cursor);
    return true;
}

bool bh_binder_raise_epoch(struct bh_binder *b, uint64_t epoch)
{
    flush_all(b); /* what has ended is told before what runs */
    if (b->n_jobs && !report(b))
        return false;
    bh_log_info("Scheduler is here", bh_kv_u("epoch", epoch), bh_kv_u("held", b->n_jobs));
    b->epoch = epoch;
    b->epoch_heard_ns = bh_mono_ns();
    b->n_old_jobs = b->n_jobs;
    b->grant = (struct bh_binder_grant){0};
    return true;
}

bool bh_binder_may_write(const struct bh_binder *b, uint64_t term)
{
    return !term || (term == b->grant.term && bh_boot_ns() < b->grant.until_boot_ns);
}

uint64_t bh_binder_kept_until(const struct bh_binder *b)
{
    return b->grant.stamp_boot_ns + BH_BUS_SILENCE_NS;
}

static void on_grant(struct bh_binder *b, const Berth__Grant *g)
{
    bool news = g->serial != b->grant.serial;

    if (g->epoch != b->epoch)
        return;
    const uint64_t now = bh_boot_ns();
    const bool ours = g->stamp_boot_ns <= now;
    b->grant.lapses += now >= bh_binder_kept_until(b);
    b->grant.stamp_boot_ns = ours ? g->stamp_boot_ns : 0;
    b->grant.term = g->lease_term;
    b->grant.serial = g->serial;
    b->grant.until_boot_ns = g->valid_ns && ours ? g->stamp_boot_ns + g->valid_ns : 0;
    if (news)
        (void)say_hello(b, NULL, 0); /* the scheduler waits for it */
}

void bh_binder_write_ended(struct bh_binder *b)
{
    if (b->n_writing == 0 && b->grant.serial && !bh_binder_may_write(b, b->grant.term))
        (void)say_hello(b, NULL, 0); /* so does it for this, when it gave the lease up */
}

/* It says so in every message. */
static uint64_t epoch_of(const Berth__Envelope *e)
{
    return e->work              ? e->work->epoch
           : e->scheduler_hello ? e->scheduler_hello->epoch
           : e->grant           ? e->grant->epoch
                                : 0;
}

static bool is_newer(const struct bh_binder *b, uint64_t epoch)
{
    return epoch > b->epoch ||
           (epoch < b->epoch && b->heard_ns - b->epoch_heard_ns >= BH_BINDER_DEAF_NS);
}

static void on_message(struct bh_binder *b, struct bh_batch *batch, const Berth__Envelope *e)
{
    b->heard_ns = bh_mono_ns();
    if (epoch_of(e) == b->epoch)
        b->epoch_heard_ns = b->heard_ns;
    if (e->work) {
        bh_binder_take(b, batch, e->work);
    } else if (e->scheduler_hello) {
        if (e->scheduler_hello->epoch == b->epoch) { /* a sign of life, to one that is new to it */
            b->grant.lapses++;
            return;
        }
        if (is_newer(b, e->scheduler_hello->epoch) &&
            !bh_binder_raise_epoch(b, e->scheduler_hello->epoch))
            return; /* it asks again at our next heartbeat */
        (void)say_hello(b, NULL, 0);
    } else if (e->grant) {
        on_grant(b, e->grant);
    }
}

static bool on_readable(void *arg)
{
    struct bh_binder *b = arg;

    for (unsigned i = 0; i < BH_BUS_BURST; i++) {
        struct bh_batch *batch = bh_batch_new();
        Berth__Envelope *e;
        enum bh_bus_outcome o = bh_bus_recv(b->bus, bh_batch_arena(batch), NULL, &e);
        if (o == BH_BUS_OK)
            on_message(b, batch, e);
        bh_batch_unref(batch);
        if (o == BH_BUS_EMPTY)
            return false;
    }
    return true;
}

static void on_heartbeat(uv_timer_t *t)
{
    struct bh_binder *b = t->data;
    bool hears = bh_binder_has_scheduler(b);

    if (b->epoch && hears == b->deaf) { /* its start is told with its epoch */
        b->deaf = !hears;
        if (hears)
            bh_log_info("The scheduler is heard again");
        else
            bh_log_warn("The scheduler is not heard any more: is it running, is our key allowed?",
                        bh_kv_s("endpoint", b->o.scheduler_endpoint ? b->o.scheduler_endpoint
                                                                    : "in the runtime directory"));
    }
    b->progress++;
    (void)say_hello(b, NULL, 0);
}

static void on_answers_due(uv_timer_t *t)
{
    flush_all(t->data);
}

static void on_prepare(uv_prepare_t *p)
{
    struct bh_binder *b = p->data;

    if (b->answer_now || b->n_results >= BH_BINDER_ANSWERS)
        flush_all(b);
    else if (b->n_results && !uv_is_active((uv_handle_t *)&b->answers))
        uv_timer_start(&b->answers, on_answers_due, BH_BINDER_ANSWER_MS, 0);
}

/* ---- stop ------------------------------------------------------------------------------------ */

static void on_stop_timer(uv_timer_t *t)
{
    uv_stop(t->loop);
}

void bh_binder_ended(struct bh_binder *b)
{
    if (b->stopping && !b->n_jobs && !b->n_events && !b->n_events_running)
        uv_stop(b->loop);
}

void bh_binder_wind_down(struct bh_binder *b)
{
    b->stopping = true;
    (void)say_hello(b, NULL, 0); /* window 0: no more work for us */
    bh_binder_drop_jobs(b);
    uv_timer_start(&b->stop_timer, on_stop_timer, b->o.stop_ns / 1000000, 0);
    bh_binder_ended(b);
}

static void on_stop(void *arg)
{
    bh_binder_wind_down(arg);
}

static void on_hup(void *arg)
{
    struct bh_binder *b = arg;

    bh_log_info("Reading credentials again");
    bh_api_client_reload(b->client);
}

/* ---- start and stop -------------------------------------------------------------------------- */

static void fill(void *arg)
{
    struct bh_binder *b = arg;

    bh_cell_set(bh_metric_cell(b->m_depth, "binder_items"), b->n_jobs);
    bh_cell_set(bh_metric_cell(b->m_limit, "binder_items"), BH_BINDER_WINDOW);
    bh_cell_set(bh_metric_cell(b->m_depth, "binder_events"), b->n_events);
    bh_cell_set(bh_metric_cell(b->m_limit, "binder_events"), BH_BINDER_EVENTS_MAX);
    bh_cell_set(bh_metric_cell(b->m_held, "items"), b->n_jobs);
    bh_cell_set(bh_metric_cell(b->m_held, "events_waiting"), b->n_events);
    bh_cell_set(bh_metric_cell(b->m_held, "events_running"), b->n_events_running);
    bh_cell_set(bh_metric_cell(b->m_held, "events_remembered"),
                (uint64_t)bh_series_count(&b->series));
}

static void make_metrics(struct bh_binder *b)
{
    double bounds[15];

    bh_buckets_exponential(0.001, 2, 15, bounds);
    b->metrics = bh_metrics_new();
    b->m_items =
        bh_metric_new(b->metrics, BH_COUNTER, "berth_binder_items_total",
                      "Work items answered, by kind and outcome.", "kind,outcome", NULL, 0);
    b->m_held = bh_metric_new(b->metrics, BH_GAUGE, "berth_binder_held",
                              "Work items and events held by this binder.", "what", NULL, 0);
    b->m_depth = bh_metric_new(b->metrics, BH_GAUGE, "berth_queue_depth",
                               "Entries in a bounded queue between processes.", "queue", NULL, 0);
    b->m_limit = bh_metric_new(b->metrics, BH_GAUGE, "berth_queue_limit",
                               "Bound of a queue between processes: at it, its source waits or the "
                               "oldest are given up.",
                               "queue", NULL, 0);
    b->m_events = bh_metric_new(b->metrics, BH_COUNTER, "berth_binder_events_total",
                                "Kubernetes events, by what became of them.", "result", NULL, 0);
    b->m_bind_s =
        bh_metric_new(b->metrics, BH_HISTOGRAM, "berth_binder_bind_duration_seconds",
                      "From taking a bind to the API server's definite answer.", "", bounds, 15);
    bh_metrics_on_scrape(b->metrics, fill, b);
    bh_metrics_add_process(b->metrics, "berth-binder");
}

static bool live(void *arg)
{
    (void)arg;
    return true;
}

bool bh_binder_has_scheduler(const struct bh_binder *b)
{
    return b->epoch && bh_mono_ns() - b->heard_ns < BH_BINDER_DEAF_NS;
}

static bool has_scheduler(void *arg)
{
    return bh_binder_has_scheduler(arg);
}

static void on_series_timer(uv_timer_t *t)
{
    bh_binder_write_series(t->data, bh_wall_ns());
}

static int open_client(struct bh_binder *b, struct bh_api_options *o, struct bh_api_client **ret,
                       struct bh_err *err)
{
    o->user_agent = "berth-binder/" BH_VERSION " (linux/" BH_ARCH ")";
    o->field_manager = BH_API_FIELD_MANAGER;
    o->lean = true;
    o->metrics = b->metrics; /* counted together, as upstream's clients */
    return bh_api_client_new(b->loop, b->o.api, o, ret, err);
}

static int open_bus(struct bh_binder *b, struct bh_err *err)
{
    const char *to = b->o.scheduler_endpoint;
    char endpoint[128], identity[32];
    int rc = to ? 0 : bh_bus_endpoint(b->o.runtime_dir, "scheduler", endpoint, err);

    if (rc < 0)
        return rc;
    snprintf(identity, sizeof(identity), "b-%016llx", (unsigned long long)bh_rand_entropy());
    if (to && bh_bus_is_tcp(to)) {
        const struct bh_bus_dial d = {to, b->o.key_file, b->o.scheduler_key};
        rc = bh_bus_dial(&d, identity, &b->bus, err);
    } else {
        rc = bh_bus_open_among(BH_BUS_DEALER_CONNECT, to ? to : endpoint, identity, b->o.users,
                               BH_BUS_SCHEDULER, &b->bus, err);
    }
    if (rc == 0)
        b->bus_poll = bh_bus_poll_new(b->loop, b->bus, on_readable, b);
    return rc;
}

int bh_binder_open(struct bh_binder *b, const struct bh_binder_options *o, uv_loop_t *loop,
                   struct bh_err *err)
{
    const struct bh_probe_check checks[] = {{"ping", live, b, true, true, NULL},
                                            {"scheduler", has_scheduler, b, false, true, NULL},
                                            {0}};
    char probes_name[64];

    *b = (struct bh_binder){.o = *o, .loop = loop, .opened_boot_ns = bh_boot_ns()};
    TAILQ_INIT(&b->events);
    TAILQ_INIT(&b->events_running);
    TAILQ_INIT(&b->series.list);
    b->o.deadline_ns = o->deadline_ns ? o->deadline_ns : BH_BINDER_DEADLINE_NS;
    b->o.request_ns = o->request_ns ? o->request_ns : BH_BINDER_REQUEST_NS;
    b->o.stop_ns = o->stop_ns ? o->stop_ns : BH_BINDER_STOP_NS;
    bh_rand_seed(&b->rand, bh_rand_entropy());
    if (gethostname(b->hostname, sizeof(b->hostname) - 1) < 0)
        snprintf(b->hostname, sizeof(b->hostname), "localhost");
    snprintf(b->name, sizeof(b->name), "%s/%s", b->hostname, b->o.instance);
    snprintf(probes_name, sizeof(probes_name), "binder-%s", o->instance);
    make_metrics(b);
    uv_timer_init(loop, &b->heartbeat);
    uv_timer_init(loop, &b->stop_timer);
    uv_timer_init(loop, &b->series_timer);
    uv_timer_init(loop, &b->answers);
    uv_prepare_init(loop, &b->flush);
    b->heartbeat.data = b->flush.data = b->series_timer.data = b->answers.data = b;
    b->o.limits.max_connections = 8;
    int rc = open_client(b, &b->o.limits, &b->client, err);
    b->o.event_limits.max_connections = 4;
    b->o.event_limits.linger_ms = BH_BINDER_LINGER_MS;
    rc = rc < 0 ? rc : open_client(b, &b->o.event_limits, &b->event_client, err);
    if (rc == 0)
        rc = open_bus(b, err);
    if (rc == 0)
        rc = bh_probes_start(loop, b->o.metrics_address, b->o.runtime_dir, probes_name, b->metrics,
                             checks, &b->probes, err);
    if (rc < 0)
        return rc;
    uv_timer_start(&b->heartbeat, on_heartbeat, 0, BH_BINDER_HEARTBEAT_MS);
    uv_timer_start(&b->series_timer, on_series_timer, BH_BINDER_SERIES_MS, BH_BINDER_SERIES_MS);
    uv_prepare_start(&b->flush, on_prepare);
    return 0;
}

void bh_binder_close(struct bh_binder *b)
{
    b->stopping = b->closing = true;
    bh_binder_drop_jobs(b);
    bh_binder_drop_events(b);
    bh_api_client_free(b->client); /* cancels: every request gets its callback from the loop */
    bh_api_client_free(b->event_client);
    while (b->n_requests)
        uv_run(b->loop, UV_RUN_ONCE);
    if (b->bus) {
        flush_all(b);
        (void)say_hello(b, NULL, 0);
        bh_bus_linger(b->bus, b->epoch ? GOODBYE_MS : 0);
    }
    bh_probes_free(b->probes);
    bh_bus_poll_close(b->bus_poll);
    bh_bus_close(b->bus);
    uv_close((uv_handle_t *)&b->heartbeat, NULL);
    uv_close((uv_handle_t *)&b->stop_timer, NULL);
    uv_close((uv_handle_t *)&b->series_timer, NULL);
    uv_close((uv_handle_t *)&b->answers, NULL);
    bh_series_fini(&b->series);
    uv_close((uv_handle_t *)&b->flush, NULL);
    bh_metrics_free(b->metrics);
    bh_arena_fini(&b->result_arena);
    free(b->results);
}

int bh_binder_run(const struct bh_binder_options *o, struct bh_err *err)
{
    uv_loop_t loop;
    struct bh_binder b;

    uv_loop_init(&loop);
    struct bh_signals *signals = bh_signals_new(&loop, on_stop, on_hup, &b);
    int rc = bh_binder_open(&b, o, &loop, err);
    if (rc == 0) {
        b.keepalive = bh_keepalive_new(&loop, live, &b);
        bh_log_info("Binder started", bh_kv_s("name", b.name), bh_kv_s("server", o->api->server),
                    bh_kv_s("version", BH_VERSION),
                    bh_kv_i("metrics_port", bh_probes_port(b.probes)));
        uv_run(&loop, UV_RUN_DEFAULT);
        bh_log_info("Binder stops", bh_kv_u("held", b.n_jobs));
        bh_keepalive_close(b.keepalive, true);
    }
    bh_signals_close(signals);
    bh_binder_close(&b);
    bh_loop_drain_close(&loop);
    return rc;
}
