/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/binder.h - decisions into API writes: one process of any number
 *
 * A binder holds at most `window` work items (credit), runs all of them concurrently over few
 * connections, and answers each exactly once while it lives. Everything it does is safe to repeat,
 * so it keeps no state across restarts: the scheduler re-issues what a dead binder held.
 *
 * A new scheduler (SchedulerHello with a higher epoch) is told first what is on the wire
 * for its predecessor (BinderHello with the old epoch), then that its epoch is known (BinderHello
 * with the new one): only then it sends work. What runs for the predecessor ends with the answer to
 * the request that is out; nothing of it is written again. One with a lower epoch is new when the one
 * that is known has not been heard of for BH_BINDER_DEAF_NS: epochs are of the boot clock, and its host
 * may have been restarted while we, on another, were not.
 *
 * Meaning of the API server's answers (bind):
 *   200/201  done
 *   409      GET the pod: bound to our node = done (our own earlier write), to another = bound
 * elsewhere, not bound = rejected (being deleted, gated, other uid) 404      gone 429, 5xx, 401
 * repeat until the deadline (Retry-After honoured), then unknown other    rejected no reply
 * unknown: repeat the same write until the deadline, then tell the scheduler "unknown" Status
 * patches and deletions: 409 is a lost race (patch: repeated a few times) or another pod under the
 * same name (deletion: gone); 404 gone; other 4xx rejected.
 * Any refusal of a bind after a try whose answer was lost: GET, as after 409; on no node it holds.
 * A bind that is a look (WorkItem.look) is the GET alone.
 * Fence: with leader election an item is written only while the scheduler's last Grant is of its
 * term and not over (proto Grant; CLOCK_BOOTTIME). That is looked at before each write, and by the
 * API client right before its first byte; a write ends with its grant, but gets a second. An item
 * past that, or of an older epoch or term, is answered "stale", never sent. Events tell what was
 * done and follow it at any time; those that came as items of their own are fenced like the rest.
 * Nothing of a term is tried again that the scheduler may have given to another binder, or have taken
 * back and decided anew: when it had not heard of this one for a while (BH_BUS_SILENCE_NS), or took it
 * for gone and says hello under the same epoch. It is "stale", or "unknown" when an earlier try may
 * still come in. Status patches say what was so when they were decided, and plugins' patches; a pod that
 * is taken out of a claim's reservedFor may be in it again. These are not even sent then, and are tried
 * again only when a try that was not answered cannot come in any more (BH_BUS_GRANT_TAIL_NS): what
 * is written after them would be undone. All other writes are safe to repeat, but a refusal, and a pod that
 * is read without a node behind one, counts only then as well.
 *
 * Files: binder.c owner, bus and loop; work.c one item's life; requests.c bodies and paths;
 * objects.c volumes and claims (objects.h); patches.c what plugins ask for; events.c Kubernetes events;
 * series.c which of them are repetitions.
 * Threads: one.
 */
#ifndef BH_BINDER_H
#define BH_BINDER_H

#include "common/api/client.h"
#include "common/base/loop.h"
#include "common/bus/bus.h"
#include "common/http/probes.h"
#include "binder/series.h"

#define BH_BINDER_WINDOW       512u
#define BH_BINDER_DEADLINE_NS  UINT64_C(30000000000) /* from taking an item to giving up */
#define BH_BINDER_REQUEST_NS   UINT64_C(10000000000) /* one request */
#define BH_BINDER_HEARTBEAT_MS 500u
#define BH_BINDER_DEAF_NS      UINT64_C(5000000000) /* not ready; each heartbeat has an answer */
#define BH_BINDER_STOP_NS      UINT64_C(1000000000) /* at stop: what is out may still be answered */
#define BH_BINDER_EVENTS_MAX   10000u /* events that wait; the oldest are dropped first */
/* Event writes in flight at a time, on connections of their own. */
#define BH_BINDER_EVENTS_RUNNING 128u
/* Answers that are not waited for leave together: after this long, or so many. */
#define BH_BINDER_ANSWER_MS 100u
#define BH_BINDER_ANSWERS   64u
#define BH_BINDER_LINGER_MS 50u /* events leave, and are answered, in company */
#define BH_WORK_KINDS       (BERTH__WORK_KIND__WORK_GROUP_STATUS + 1)
#define BH_OUTCOMES         (BERTH__OUTCOME__OUTCOME_UNKNOWN + 1)

struct bh_binder_options {
    const char *runtime_dir;
    const char *scheduler_endpoint; /* NULL = ipc in runtime_dir; "tcp://..." needs the keys */
    const char *key_file;           /* tcp: our secret key, common/bus/curve.h */
    const char *scheduler_key;      /* tcp: file with the scheduler's public key */
    const char *instance;           /* part of the name: "1" of berth-binder@1 */
    const char *metrics_address;
    const struct bh_bus_users *users; /* of this host: whose work is done; NULL = our own */
    const char *plugin_writes;        /* what plugins may patch (patches.h), NULL = nothing */
    const struct bh_api_config *api;
    /* qps, burst, limit_file, json of the two clients; the rest is not looked at */
    struct bh_api_options limits, event_limits;
    uint64_t deadline_ns, request_ns, stop_ns; /* 0 = the constants above */
};
struct bh_job; /* one work item */
struct bh_event_job;
struct bh_binder {
    struct bh_binder_options o;
    uv_loop_t *loop;
    struct bh_api_client *client, *event_client;
    struct bh_bus *bus;
    struct bh_bus_poll *bus_poll;
    char name[128], hostname[96];
    uint64_t opened_boot_ns; /* boot clock */
    uint64_t epoch;          /* newest scheduler seen */
    bool deaf;               /* told so */
    uint64_t heard_ns;       /* of any, last; bh_mono_ns() */
    uint64_t epoch_heard_ns; /* of the one of that epoch */
    struct bh_binder_grant {
        uint64_t term, serial;  /* 0 = none since this scheduler is here */
        uint64_t until_boot_ns; /* nothing of this term is written after it */
        uint64_t stamp_boot_ns; /* of the newest hello of ours that the scheduler has heard */
        uint64_t lapses; /* how often that was too long ago, and our items may be another's */
    } grant;
    uint32_t n_writing;           /* writes on the wire, events excepted */
    uint64_t unanswered_until_ns; /* boot clock: a write that was not answered may come in */
    LIST_HEAD(, bh_job) jobs;     /* list of running items, newest first */
    uint32_t n_jobs, n_old_jobs;  /* old: of another epoch */
    uint32_t n_requests;          /* callbacks that the API clients owe us */
    TAILQ_HEAD(bh_event_jobs, bh_event_job) events, events_running; /* waiting; on the wire */
    uint32_t n_events, n_events_running;
    uint64_t event_serial;
    struct bh_series_set series;
    struct bh_rand rand;

    Berth__WorkResult
        *results; /* answers not sent yet; never dropped: the scheduler asks again only late */
    uint32_t n_results, cap_results;
    struct bh_arena result_arena;

    bool answer_now; /* one of results is waited for */
    uv_timer_t heartbeat, stop_timer, series_timer, answers;
    uv_prepare_t flush;
    uint64_t progress;
    bool stopping; /* no new work; what is out may end */
    bool closing;  /* nothing starts any more */
    struct bh_metrics *metrics;
    struct bh_metric *m_depth, *m_limit; /* of the queues between processes */
    struct bh_metric *m_items, *m_held, *m_bind_s, *m_events;
    struct bh_cell *items[BH_WORK_KINDS][BH_OUTCOMES]; /* of m_items; NULL: none was counted */
    struct bh_probes *probes;
    struct bh_keepalive *keepalive;
};

int bh_binder_run(const struct bh_binder_options *o, struct bh_err *err);
/* The parts of it, for tests: the caller owns and runs the loop. o and what it points to outlive b.
 * close also cleans up after an open that failed; the loop is drained afterwards
 * (bh_loop_drain_close). */
int bh_binder_open(struct bh_binder *b, const struct bh_binder_options *o, uv_loop_t *loop,
                   struct bh_err *err);
void bh_binder_wind_down(struct bh_binder *b); /* uv_stop when nothing is out, or after stop_ns */
void bh_binder_close(struct bh_binder *b);

/* work.c */
struct bh_batch; /* one message's memory, shared by its items */
struct bh_batch *bh_batch_new(void);
struct bh_arena *bh_batch_arena(struct bh_batch *b);
void bh_batch_unref(struct bh_batch *b);
void bh_binder_take(struct bh_binder *b, struct bh_batch *batch, const Berth__WorkBatch *w);
/* The binds whose outcome the API server may know better than we: up to max, from *cursor on (NULL
 * at the start; NULL again at the end), without what is not needed to adopt them. */
size_t bh_binder_in_flight(struct bh_binder *b, struct bh_job **cursor, Berth__WorkItem *out,
                           size_t max);
void bh_binder_drop_jobs(
    struct bh_binder *b); /* those that wait to be repeated are answered unknown */
/* binder.c */
bool bh_binder_has_scheduler(const struct bh_binder *b); /* part of /readyz */
void bh_binder_answer(struct bh_binder *b, uint64_t epoch, const Berth__WorkItem *item,
                      Berth__Outcome o, int code, const char *reason, const char *message,
                      uint64_t latency_ns);
/* What the API server told goes with the answer given last. */
void bh_binder_answer_object(struct bh_binder *b, const struct bh_buf *object);
/* False: the report of what is on the wire could not be sent, the old epoch stays. */
bool bh_binder_raise_epoch(struct bh_binder *b, uint64_t epoch);
void bh_binder_ended(struct bh_binder *b); /* something that was out has ended */
/* May what was decided under this term be written now? Term 0: no election. */
bool bh_binder_may_write(const struct bh_binder *b, uint64_t term);
/* Boot clock: until then the scheduler has not given our items to another binder. */
uint64_t bh_binder_kept_until(const struct bh_binder *b);
void bh_binder_write_ended(struct bh_binder *b); /* n_writing has fallen */
/* events.c */
#define BH_BINDER_SERIES_MS 60000u /* how often series are looked at */
void bh_binder_write_series(struct bh_binder *b, int64_t wall_ns); /* those that are due */
/* term: of the lease it depends on, 0 = none. */
void bh_binder_event(struct bh_binder *b, const Berth__WorkItem *item, uint64_t term);
void bh_binder_drop_events(struct bh_binder *b); /* all but those on the wire */
/* requests.c: path and body of the writes, into the buffers given (reset first) */
/* Why an item is not written, even when the scheduler, which needs no credentials, asks for it:
 * names that would lead to another path, conditions that are others'. NULL = it may be. */
const char *bh_request_refused(const Berth__WorkItem *it);
void bh_request_bind(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it,
                     unsigned timeout_s);
void bh_request_get_pod(struct bh_buf *path, const Berth__WorkItem *it);
void bh_request_patch_status(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it);
void bh_request_delete(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it);
/* metadata.name of an event about the pod */
void bh_request_event_name(char out[static 256], const char *pod, uint64_t unique_ns);
void bh_request_event(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it,
                      const char *hostname, uint64_t unique_ns);
#endif
