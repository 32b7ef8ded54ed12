/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/leader.c - the elector: one lease, one timer, at most one request about the lease
 *
 * Owns:       client, lock, file, timer.
 * Invariants: cb.lease(term, t) with t in the future only while phase is LEADING; a request is
 *             running exactly while `busy`.
 * Runs in:    the loop.
 */
#include "watcher/leader.h"

#include <unistd.h>

#include "common/base/log.h"
#include "common/k8s/codec.h"
#include "common/k8s/quantity.h"

#define NS_PER_S      UINT64_C(1000000000)
#define NS_PER_MS     UINT64_C(1000000)
#define JITTER_FACTOR 1.2
#define METRICS_NAME  "kube-scheduler" /* as upstream, whatever the lease is called */
#define POLL_NS       (20 * NS_PER_MS) /* while giving up: how often `quiet` is asked */

enum phase {
    STANDBY,
    LEADING,
    GIVING_UP /* not leading any more, the lease is still in our name */
};
struct bh_leader {
    uv_loop_t *loop;
    struct bh_leader_config cfg;
    struct bh_leader_callbacks cb;
    uint64_t (*clock)(void);
    uint64_t settle_ns, stop_ns;
    char *identity, *component, *name, *namespace_, *lock_text; /* "kube-system/kube-scheduler" */
    struct bh_api_client *client;
    struct bh_lease *lock;
    struct bh_leader_file file;
    struct bh_rand rand;
    uv_timer_t timer;

    enum phase phase;
    bool busy;
    uint64_t due_ns; /* of the next try; boot clock, as all times here */
    struct bh_lease_record seen;
    uint64_t seen_ns; /* when we saw it change */
    char told_holder[BH_LEASE_HOLDER_MAX];

    /* the try that runs */
    uint64_t try_ns, write_ns; /* when it, and its write, began */
    bool may_write;
    bool progress; /* `advanced` said yes, and no try has used that yet */
    bool starved;  /* the last try could not write because of it */
    uint64_t next_term;

    uint64_t term, until_ns, last_term;
    bool unused;    /* the lease came when it was not wanted any more: `lease` was not called */
    bool inherited; /* it was this host's before: what was decided then may be on the wire */

    void (*stopped)(void *arg);
    void *stopped_arg;
    bool stopping, closing;
    uint64_t stop_at_ns;
    unsigned refs; /* the timer, and events on their way */
    struct bh_cell *m_master, *m_slowpath, *m_renewals, *m_failures, *m_term;
};

static void try_now(struct bh_leader *l);
static void give_up_step(struct bh_leader *l);
static void maybe_stopped(struct bh_leader *l);

/* ---- small things ---------------------------------------------------------------------------- */

static uint64_t request_ns(const struct bh_leader *l)
{
    uint64_t ms = (uint64_t)l->cfg.renew_deadline_ns / 2 / NS_PER_MS;
    return BH_MAX(ms * NS_PER_MS, NS_PER_S);
}

static uint64_t seen_until(const struct bh_leader *l)
{
    return l->seen_ns + (uint64_t)l->seen.duration_s * NS_PER_S;
}

static bool mine(const struct bh_leader *l)
{
    return bh_streq(l->seen.holder, l->identity);
}

static void now_text(char out[static 40])
{
    int64_t wall = bh_wall_ns();
    bh_time_format_micro(out, wall / (int64_t)NS_PER_S, (int32_t)(wall % (int64_t)NS_PER_S));
}

static struct bh_lease_record record_of(const struct bh_leader *l)
{
    struct bh_lease_record r = {.duration_s = l->cfg.lease_duration_ns / (int64_t)NS_PER_S};
    snprintf(r.holder, sizeof(r.holder), "%s", l->identity);
    now_text(r.renew_time);
    memcpy(r.acquire_time, r.renew_time, sizeof(r.acquire_time));
    return r;
}

static void destroy(struct bh_leader *l)
{
    if (--l->refs)
        return;
    free(l->identity);
    free(l->component);
    free(l->name);
    free(l->namespace_);
    free(l->lock_text);
    free(l);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void on_event_done(void *arg, const struct bh_api_reply *r)
{
    struct bh_leader *l = arg;

    if (r->outcome != BH_API_CANCELED && (r->outcome != BH_API_OK || r->code >= 300))
        bh_log_debug("Could not write a LeaderElection event", bh_kv_i("code", r->code),
                     bh_kv_s("err", r->error));
    if (!l->closing)
        maybe_stopped(l);
    destroy(l);
}

static void write_event(struct bh_leader *l, const char *what)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, body BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_api_call call = {.method = "POST",
                               .content_type = "application/json",
                               .timeout_ns = request_ns(l),
                               .retry_429_5xx = true,
                               .on_done = on_event_done,
                               .arg = l};

    bh_url_addf(&path, "/api/v1/namespaces/%s/events", l->namespace_);
    char name[288], message[BH_LEASE_HOLDER_MAX + 32], now[40];
    snprintf(name, sizeof(name), "%.230s.%llx", l->name, (unsigned long long)bh_wall_ns());
    snprintf(message, sizeof(message), "%s %s", l->identity, what);
    bh_time_format(now, bh_wall_ns() / (int64_t)NS_PER_S);
    bh_buf_add_json(
        &body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":%s,\"namespace\":%s},"
        "\"involvedObject\":{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
        "\"namespace\":%s,\"name\":%s,\"uid\":%s,\"resourceVersion\":%s},"
        "\"reason\":\"LeaderElection\",\"type\":\"Normal\",\"count\":1,\"message\":%s,"
        "\"firstTimestamp\":%s,\"lastTimestamp\":%s,\"eventTime\":null,\"source\":{\"component\":%"
        "s},"
        "\"reportingComponent\":%s,\"reportingInstance\":\"\"}",
        name, l->namespace_, l->namespace_, l->name, bh_lease_uid(l->lock),
        bh_lease_version(l->lock), message, now, now, l->component, l->component);
    call.path = bh_buf_str(&path);
    call.body = body.p;
    call.body_n = body.n;
    if (bh_api_start(l->client, &call))
        l->refs++;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *t);

static void arm(struct bh_leader *l)
{
    uint64_t now = l->clock(), at = l->busy ? UINT64_MAX : l->due_ns;

    if (l->phase == LEADING)
        at = BH_MIN(at, l->until_ns);
    if (l->phase == GIVING_UP && !l->busy)
        at = now + POLL_NS;
    if (l->stopping) /* a stand-by host only waits for what is out */
        at = l->phase == STANDBY ? l->stop_at_ns : BH_MIN(at, l->stop_at_ns);
    if (at == UINT64_MAX) {
        uv_timer_stop(&l->timer);
        return;
    }
    uv_update_time(l->loop);
    uv_timer_start(&l->timer, on_timer, at > now ? (at - now) / NS_PER_MS + 1 : 0, 0);
}

/* As client-go: between one and 2.2 retry periods. But when the lease of another host runs out
 * before, a little after that. */
static uint64_t standby_pause(struct bh_leader *l)
{
    uint64_t retry = (uint64_t)l->cfg.retry_period_ns, now = l->clock(), end = seen_until(l);
    uint64_t pause = retry + (uint64_t)((double)retry * JITTER_FACTOR * bh_rand_unit(&l->rand));

    if (l->seen.holder[0] && !mine(l) && end > now) {
        uint64_t after = end - now + bh_rand_below(&l->rand, retry / 8 + 1);
        pause = BH_MIN(pause, after);
    }
    return BH_MAX(pause, NS_PER_MS);
}

/* ---- leading --------------------------------------------------------------------------------- */

static void lose(struct bh_leader *l, const char *why, bool give_up)
{
    l->cb.lease(l->cb.arg, l->term, 0);
    l->last_term = l->term;
    bh_cell_set(l->m_master, 0);
    bh_log_info(l->stopping ? "Giving up the lease" : "Leaderelection lost",
                bh_kv_s("lock", l->lock_text), bh_kv_u("term", l->term), bh_kv_s("why", why));
    l->phase = give_up ? GIVING_UP : STANDBY;
    l->unused = false;
    l->due_ns = l->clock();
    write_event(l, "stopped leading");
    arm(l);
}

/* ---- the end of a try ------------------------------------------------------------------------ */

static void end_try(struct bh_leader *l)
{
    bool told = bh_streq(l->told_holder, l->seen.holder);

    l->busy = false;
    snprintf(l->told_holder, sizeof(l->told_holder), "%s", l->seen.holder);
    if (!told && !mine(l) && l->seen.holder[0] && !bh_leader_file_find(&l->file, l->seen.holder))
        bh_log_info("Standing by", bh_kv_s("lock", l->lock_text),
                    bh_kv_s("holder", l->seen.holder));
    if (l->phase == GIVING_UP) {
        give_up_step(l);
        return;
    }
    l->due_ns =
        l->clock() + (l->phase == LEADING ? (uint64_t)l->cfg.retry_period_ns : standby_pause(l));
    arm(l);
    maybe_stopped(l);
}

static void failed(struct bh_leader *l, const char *what, const char *error)
{
    bh_cell_add(l->m_failures, 1);
    if (l->phase == LEADING)
        bh_log_warn(what, bh_kv_s("lock", l->lock_text), bh_kv_s("err", error));
    else
        bh_log_debug(what, bh_kv_s("lock", l->lock_text), bh_kv_s("err", error));
    end_try(l);
}

/* The lease is ours as of the write that began at write_ns. */
static void succeeded(struct bh_leader *l, const struct bh_lease_record *r)
{
    uint64_t now = l->clock();

    l->seen = *r;
    l->seen_ns = now;
    if (l->phase == STANDBY && l->stopping) { /* came too late to be used */
        l->phase = GIVING_UP;
        l->unused = !l->inherited;
        l->term = l->next_term;
        l->until_ns = l->write_ns + (uint64_t)l->cfg.renew_deadline_ns; /* no grant is younger */
        if (l->inherited)
            l->cb.lease(l->cb.arg, l->term, 0);
    } else if (l->phase != GIVING_UP) {
        uint64_t until = l->write_ns + (uint64_t)l->cfg.renew_deadline_ns;
        if (until > now && l->phase == STANDBY) {
            l->phase = LEADING;
            l->term = l->next_term;
            bh_leader_file_write(&l->file, l->identity, l->term, NULL);
            bh_cell_set(l->m_master, 1);
            bh_cell_set(l->m_term, (double)l->term);
            bh_log_info("Successfully acquired lease", bh_kv_s("lock", l->lock_text),
                        bh_kv_s("identity", l->identity), bh_kv_u("term", l->term));
            write_event(l, "became leader");
        }
        if (until > now) {
            bh_cell_add(l->m_renewals, 1);
            l->until_ns = until;
            l->cb.lease(l->cb.arg, l->term, until);
        }
    }
    end_try(l);
}

/* ---- one try (tryAcquireOrRenew) ------------------------------------------------------------- */

static void on_acquired(void *arg, const struct bh_lease_result *r)
{
    struct bh_leader *l = arg;

    if (r->outcome == BH_LEASE_OK)
        succeeded(l, r->record);
    else
        failed(l, "Failed to update lease", r->error);
}

static void write_lease(struct bh_leader *l, const struct bh_lease_record *r, bh_lease_done done)
{
    l->write_ns = l->clock();
    bh_lease_write(l->lock, r, request_ns(l), done, l);
}

/* The lease may be taken, or (after a conflict that was none) renewed. */
static void acquire(struct bh_leader *l, bool exists)
{
    struct bh_lease_record r = record_of(l);
    const struct bh_leader_past *past = bh_leader_file_find(&l->file, l->seen.holder);
    uint64_t last = BH_MAX(l->last_term, bh_leader_file_last_term(&l->file));

    if (exists && mine(l)) {
        if (l->seen.acquire_time[0])
            memcpy(r.acquire_time, l->seen.acquire_time, sizeof(r.acquire_time));
        r.transitions = l->seen.transitions;
        bh_cell_add(l->m_slowpath, 1);
    } else if (exists) { /* client-go's int32 becomes negative, which no API server takes */
        r.transitions = BH_MIN(l->seen.transitions + 1, INT32_MAX);
    }
    if (l->phase == STANDBY) {
        l->inherited = exists && (past || mine(l));
        l->next_term = BH_MAX((uint64_t)r.transitions + 1, last + 1);
        if (past && !mine(l)) /* it never left this host */
            l->next_term = past->term;
        bh_leader_file_write(&l->file, l->identity, l->next_term, mine(l) ? NULL : past);
    }
    write_lease(l, &r, on_acquired);
}

/* What a get says: time runs from the moment a change was seen, by our clock. */
static void observe(struct bh_leader *l, const struct bh_lease_result *r)
{
    if (r->outcome == BH_LEASE_NOT_FOUND) {
        l->seen = (struct bh_lease_record){.holder = ""};
    } else if (r->outcome == BH_LEASE_OK && r->changed) {
        l->seen = *r->record;
        l->seen_ns = l->clock();
    }
}

static void on_got(void *arg, const struct bh_lease_result *r)
{
    struct bh_leader *l = arg;

    if (r->outcome != BH_LEASE_OK && r->outcome != BH_LEASE_NOT_FOUND) {
        failed(l, "Error retrieving lease lock", r->error);
        return;
    }
    observe(l, r);
    if (l->phase == LEADING && !mine(l)) {
        bh_log_warn("The lease was taken away", bh_kv_s("holder", l->seen.holder));
        lose(l, "somebody else holds the lease", false);
    }
    bool held = l->seen.holder[0] && !mine(l) && !bh_leader_file_find(&l->file, l->seen.holder) &&
                seen_until(l) > l->try_ns;
    l->starved = !held && !l->may_write;
    if (held || !l->may_write || l->phase == GIVING_UP || l->stopping)
        end_try(l);
    else
        acquire(l, r->outcome == BH_LEASE_OK);
}

static void get_lease(struct bh_leader *l)
{
    bh_lease_get(l->lock, request_ns(l), on_got, l);
}

static void on_renewed(void *arg, const struct bh_lease_result *r)
{
    struct bh_leader *l = arg;

    if (r->outcome == BH_LEASE_OK) {
        succeeded(l, r->record);
    } else if (l->phase == LEADING && l->clock() < l->until_ns) {
        bh_log_debug("Failed to update lease optimistically, falling back to slow path",
                     bh_kv_s("lock", l->lock_text), bh_kv_s("err", r->error));
        get_lease(l);
    } else {
        failed(l, "Failed to update lease", r->error);
    }
}

static void try_now(struct bh_leader *l)
{
    const char *why = "";
    bool may_write = l->progress || l->cb.advanced(l->cb.arg, &why);
    l->progress = false;

    if (l->phase == LEADING && !may_write) {
        if (l->clock() > l->seen_ns + (uint64_t)l->cfg.renew_deadline_ns / 2)
            bh_log_warn("Not renewing the lease", bh_kv_s("lock", l->lock_text),
                        bh_kv_s("why", why));
        end_try(l);
        return;
    }
    l->busy = true;
    l->may_write = may_write;
    l->try_ns = l->clock();
    arm(l);
    if (l->phase == LEADING) {
        struct bh_lease_record r = record_of(l);
        memcpy(r.acquire_time, l->seen.acquire_time, sizeof(r.acquire_time));
        r.transitions = l->seen.transitions;
        write_lease(l, &r, on_renewed);
    } else {
        get_lease(l);
    }
}

/* ---- release --------------------------------------------------------------------------------- */

static void given_up(struct bh_leader *l)
{
    l->busy = false;
    l->phase = STANDBY;
    l->due_ns = l->clock() + standby_pause(l); /* the others first */
    arm(l);
    maybe_stopped(l);
}

static void on_released(void *arg, const struct bh_lease_result *r)
{
    struct bh_leader *l = arg;

    if (r->outcome == BH_LEASE_OK) {
        l->seen = *r->record;
        bh_log_info("Released the lease", bh_kv_s("lock", l->lock_text));
    } else {
        bh_log_warn("Failed to release lease", bh_kv_s("lock", l->lock_text),
                    bh_kv_s("err", r->error));
    }
    given_up(l);
}

static void on_release_got(void *arg, const struct bh_lease_result *r)
{
    struct bh_leader *l = arg;
    struct bh_lease_record out = record_of(l);

    observe(l, r);
    if (r->outcome != BH_LEASE_OK || !mine(l)) {
        given_up(l);
        return;
    }
    out.holder[0] = '\0';
    out.duration_s = 1;
    out.transitions = l->seen.transitions;
    bh_lease_write(l->lock, &out, request_ns(l), on_released, l);
}

static void give_up_step(struct bh_leader *l)
{
    bool may_release =
        l->unused || l->clock() >= l->until_ns + l->settle_ns || l->cb.quiet(l->cb.arg, l->term);

    if (l->busy || !may_release) { /* the end of what runs comes here too */
        arm(l);
        return;
    }
    l->busy = true;
    arm(l);
    bh_lease_get(l->lock, request_ns(l), on_release_got, l);
}

/* ---- the loop's calls ------------------------------------------------------------------------ */

static void maybe_stopped(struct bh_leader *l)
{
    bool idle = l->phase == STANDBY && !l->busy && l->refs == 1;

    if (!l->stopping || !l->stopped || (!idle && l->clock() < l->stop_at_ns))
        return;
    if (l->phase == GIVING_UP)
        bh_log_warn("The lease is not released: writes may still be under way here, so it expires",
                    bh_kv_s("lock", l->lock_text));
    void (*stopped)(void *) = bh_take_ptr(l->stopped);
    stopped(l->stopped_arg);
}

static void on_timer(uv_timer_t *t)
{
    struct bh_leader *l = bh_container_of(t, struct bh_leader, timer);
    uint64_t now = l->clock();

    if (l->stopping && (l->phase == STANDBY || now >= l->stop_at_ns)) {
        maybe_stopped(l);
        if (l->stopped) /* waits for what is out */
            arm(l);
        return;
    }
    if (l->phase == LEADING && now >= l->until_ns) {
        lose(l, "not renewed before the renew deadline", true);
        return;
    }
    if (l->phase == GIVING_UP)
        give_up_step(l);
    else if (!l->busy && now >= l->due_ns)
        try_now(l);
    else
        arm(l);
}

void bh_leader_poke(struct bh_leader *l)
{
    const char *why;

    if (l->phase != STANDBY || !l->starved || l->busy || l->stopping || l->progress)
        return;
    l->progress = l->cb.advanced(l->cb.arg, &why);
    if (!l->progress)
        return;
    l->due_ns = l->clock();
    arm(l);
}

void bh_leader_stop(struct bh_leader *l, void (*stopped)(void *arg), void *arg)
{
    l->stopped = stopped;
    l->stopped_arg = arg;
    if (l->stopping)
        return;
    l->stopping = true;
    l->stop_at_ns = l->clock() + l->stop_ns;
    if (l->phase == LEADING)
        lose(l, "the process stops", true);
    l->due_ns = l->clock();
    arm(l);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void make_metrics(struct bh_leader *l, struct bh_metrics *m)
{
    struct bh_metric *slow = bh_metric_new(
        m, BH_COUNTER, "leader_election_slowpath_total",
        "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the "
        "string used to identify the lease. Please make sure to group by name.",
        "name", NULL, 0);
    struct bh_metric *master = bh_metric_new(
        m, BH_GAUGE, "leader_election_master_status",
        "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates "
        "backup, 1 indicates master. 'name' is the string used to identify the lease. Please make "
        "sure to group by name.",
        "name", NULL, 0);
    struct bh_metric *tries = bh_metric_new(
        m, BH_COUNTER, "berth_watcher_lease_requests_total",
        "Writes and reads of the leader lease, by how they ended.", "result", NULL, 0);

    l->m_master = bh_metric_cell(master, METRICS_NAME);
    l->m_slowpath = bh_metric_cell(slow, METRICS_NAME);
    l->m_renewals = bh_metric_cell(tries, "renewed");
    l->m_failures = bh_metric_cell(tries, "failed");
    l->m_term = bh_metric_cell(bh_metric_new(m, BH_GAUGE, "berth_watcher_lease_term",
                                             "Last term in which this host led.", "", NULL, 0));
}

int bh_leader_new(uv_loop_t *loop, const struct bh_leader_options *o,
                  const struct bh_leader_callbacks *cb, struct bh_leader **ret, struct bh_err *err)
{
    struct bh_leader *l = bh_calloc(1, sizeof(*l));
    char agent[192], host[96] = "", uuid[37];

    if (gethostname(host, sizeof(host) - 1) < 0)
        snprintf(host, sizeof(host), "localhost");
    bh_uuid4(uuid);
    *l = (struct bh_leader){.loop = loop, .cb = *cb, .refs = 1, .starved = true};
    l->cfg = *o->config;
    l->name = bh_strdup(o->config->resource_name);
    l->namespace_ = bh_strdup(o->config->resource_namespace);
    l->cfg.resource_name = l->name;
    l->cfg.resource_namespace = l->namespace_;
    l->cfg.resource_lock = "leases";
    l->lock_text = bh_asprintf("%s/%s", l->namespace_, l->name);
    l->identity = o->identity ? bh_strdup(o->identity) : bh_asprintf("%s_%s", host, uuid);
    l->component = bh_strdup(o->component ? o->component : "default-scheduler");
    l->clock = o->boot_ns ? o->boot_ns : bh_boot_ns;
    l->settle_ns = o->settle_ns ? o->settle_ns : BH_LEADER_SETTLE_NS;
    l->stop_ns = o->stop_ns ? o->stop_ns : BH_LEADER_STOP_NS;
    snprintf(agent, sizeof(agent), "%s/leader-election", o->user_agent);
    const struct bh_api_options api = {
        .user_agent = agent, .field_manager = BH_API_FIELD_MANAGER, .metrics = o->metrics};
    int rc = bh_leader_file_open(&l->file, o->runtime_dir, err);
    if (rc == 0)
        rc = bh_api_client_new(loop, o->api, &api, &l->client, err);
    if (rc < 0) {
        bh_leader_file_close(&l->file);
        destroy(l);
        return rc;
    }
    l->lock = bh_lease_new(l->client, l->namespace_, l->name);
    l->last_term = bh_leader_file_last_term(&l->file);
    bh_rand_seed(&l->rand, bh_rand_entropy());
    make_metrics(l, o->metrics);
    uv_timer_init(loop, &l->timer);
    l->due_ns = l->clock();
    bh_log_info("Attempting to acquire leader lease...", bh_kv_s("lock", l->lock_text),
                bh_kv_s("identity", l->identity));
    arm(l);
    *ret = l;
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    destroy(bh_container_of(h, struct bh_leader, timer));
}

void bh_leader_free(struct bh_leader *l)
{
    if (!l)
        return;
    l->closing = true;
    bh_lease_free(l->lock);
    bh_api_client_free(l->client);
    bh_leader_file_close(&l->file);
    uv_close((uv_handle_t *)&l->timer, on_closed);
}

void bh_leader_reload(struct bh_leader *l)
{
    bh_api_client_reload(l->client);
}

bool bh_leader_leads(const struct bh_leader *l)
{
    return l->phase == LEADING && l->clock() < l->until_ns;
}

bool bh_leader_healthy(const struct bh_leader *l)
{
    return l->phase != LEADING ||
           l->clock() <= l->seen_ns + (uint64_t)l->cfg.lease_duration_ns + BH_LEADER_TOLERANCE_NS;
}
