/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/watcher/test_leader.c - the elector against a made-up API server, with a clock that
 * the test can put forward
 *
 * The server keeps one Lease as kube-apiserver does: versions, conflicts. Its time is real, so
 * tries follow each other within milliseconds; leases of 15 s and more only end when the test says
 * so.
 */
#include "watcher/leader.h"

#include "common/base/loop.h"
#include "common/data/json.h"
#include "common/k8s/quantity.h"
#include "tests/unit/common/api/raw_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define S  (UINT64_C(1000) * MS)

static uint64_t skew_ns; /* how far the clock was put forward */
static uint64_t at_ns;   /* where it stands, 0 = it goes on */

static uint64_t test_clock(void)
{
    return at_ns ? at_ns : bh_boot_ns() + skew_ns;
}

struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_api_config api;
    struct bh_metrics *metrics;
    struct bh_leader_config cfg;
    struct bh_leader *leader;
    char url[64], *dir, *want_text;

    /* the lease */
    bool exists;
    unsigned version;
    char holder[64], acquire[64], renew[64], label[32];
    int64_t duration, transitions;
    /* what it is asked */
    unsigned gets, posts, puts, events, conflicts, refusals;
    char last_event[1024];
    int say;             /* this code to everything about the lease; 0 = as it should be */
    int say_writes;      /* ... to writes only */
    const char *rubbish; /* the body of a 200 to the next get */
    void (*refused)(struct env *e); /* called while a PUT is refused by say or say_writes */
    bool too_late;                  /* no get is due before the end of the lease was told */
    int say_events;                 /* this code to events; 0 = as it should be */
    void (*writing)(struct env *e); /* called once, when a write has come */

    /* what the elector says and is told */
    bool advancing, is_quiet;
    uint64_t term, until;
    unsigned told, stops;
    unsigned base; /* for conditions */
};

/* ---- API server ------------------------------------------------------------------------------ */

static void reply_lease(struct env *e, struct raw_conn *c, int code)
{
    struct bh_buf b = {0};
    bh_buf_addf(&b,
                "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{"
                "\"name\":\"kube-scheduler\",\"namespace\":\"kube-system\",\"uid\":\"u1\","
                "\"resourceVersion\":\"%u\",\"labels\":{\"k\":\"%s\"}},\"spec\":{"
                "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":%lld,\"acquireTime\":\"%s\","
                "\"renewTime\":\"%s\",\"leaseTransitions\":%lld}}",
                e->version, e->label, e->holder, (long long)e->duration, e->acquire, e->renew,
                (long long)e->transitions);
    raw_json(c, code, b.p);
    bh_buf_fini(&b);
}

static void take(char *out, size_t size, const struct bh_json *spec, const char *key)
{
    const char *s = bh_json_get_str(spec, key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    snprintf(out, size, "%s", s);
}

/* As kube-apiserver has it: what it does not take is not written. */
static bool is_lease_spec(const struct bh_json *spec)
{
    int64_t duration = bh_json_get_i64(spec, "leaseDurationSeconds", -1), ns;
    int64_t transitions = bh_json_get_i64(spec, "leaseTransitions", -1);

    return duration > 0 && duration <= INT32_MAX && transitions >= 0 && transitions <= INT32_MAX &&
           bh_time_parse_ns(bh_json_get_text(spec, "acquireTime"), &ns) == 0 &&
           bh_time_parse_ns(bh_json_get_text(spec, "renewTime"), &ns) == 0;
}

static void write_lease(struct env *e, const struct raw_request *r)
{
    struct bh_arena a;
    struct bh_json *o = NULL;
    bool post = bh_streq(r->method, "POST");
    char version[16];

    *(post ? &e->posts : &e->puts) += 1;
    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(
        bh_json_parse(&a, r->body, r->body_n, BH_JSON_STRICT | BH_JSON_NUL, &o, NULL), 0);
    const struct bh_json *spec = bh_json_get(o, "spec"), *meta = bh_json_get(o, "metadata");
    const char *rv = bh_json_get_str(meta, "resourceVersion");
    snprintf(version, sizeof(version), "%u", e->version);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(o, "kind"), "Lease");
    CU_ASSERT_EQUAL(spec->c.n, 5);
    if (post ? e->exists : !e->exists || !rv || !bh_streq(rv, version)) {
        e->conflicts++;
        raw_json(r->conn, e->exists ? 409 : 404, "{\"kind\":\"Status\",\"message\":\"no\"}");
    } else if (!is_lease_spec(spec)) {
        e->refusals++;
        raw_json(r->conn, 422, "{\"kind\":\"Status\",\"message\":\"spec is invalid\"}");
    } else {
        const char *label = bh_json_get_str(bh_json_get(meta, "labels"), "k");
        if (!label || !bh_streq(label, BH_NUL_TEXT)) /* stands there as it was written */
            snprintf(e->label, sizeof(e->label), "%s", label ? label : "");
        take(e->holder, sizeof(e->holder), spec, "holderIdentity");
        take(e->acquire, sizeof(e->acquire), spec, "acquireTime");
        take(e->renew, sizeof(e->renew), spec, "renewTime");
        e->duration = bh_json_get_i64(spec, "leaseDurationSeconds", -1);
        e->transitions = bh_json_get_i64(spec, "leaseTransitions", -1);
        e->exists = true;
        e->version++;
        reply_lease(e, r->conn, post ? 201 : 200);
    }
    bh_arena_fini(&a);
}

static void handle(struct raw_server *s, const struct raw_request *r)
{
    static const char path[] = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    struct env *e = s->arg;
    bool get = bh_streq(r->method, "GET");

    CU_ASSERT_PTR_NOT_NULL(strstr(r->head, "User-Agent: berth-test/leader-election"));
    if (strstr(r->target, "/events")) {
        CU_ASSERT_STRING_EQUAL(r->target,
                               "/api/v1/namespaces/kube-system/events?fieldManager=kube-scheduler");
        snprintf(e->last_event, sizeof(e->last_event), "%.*s", (int)r->body_n, r->body);
        e->events++;
        raw_json(r->conn, e->say_events ? e->say_events : 201, "{}");
        return;
    }
    CU_ASSERT(strncmp(r->target, path, sizeof(path) - 1) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(r->target, "?timeout=5s"));
    e->gets += get;
    CU_ASSERT(!get || !e->too_late || e->until == 0);
    void (*writing)(struct env *) = e->writing;
    if (writing && !get) {
        e->writing = NULL;
        writing(e);
    }
    if (e->say || (e->say_writes && !get)) {
        *(bh_streq(r->method, "PUT") ? &e->puts : &e->posts) += !get;
        if (e->refused && bh_streq(r->method, "PUT"))
            e->refused(e);
        raw_json(r->conn, e->say ? e->say : e->say_writes, "{\"kind\":\"Status\"}");
    } else if (!get) {
        write_lease(e, r);
    } else if (e->rubbish) {
        raw_json(r->conn, 200, e->rubbish);
        e->rubbish = NULL;
    } else if (e->exists) {
        reply_lease(e, r->conn, 200);
    } else {
        raw_json(r->conn, 404, "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}");
    }
}

/* Somebody else's lease. */
static void other_holds(struct env *e, const char *who, int64_t duration)
{
    e->exists = true;
    e->version++;
    e->duration = duration;
    e->transitions++;
    snprintf(e->holder, sizeof(e->holder), "%s", who);
    snprintf(e->acquire, sizeof(e->acquire), "2026-01-02T03:04:05.%06uZ", e->version);
    memcpy(e->renew, e->acquire, sizeof(e->renew));
}

/* ---- the elector's callbacks ----------------------------------------------------------------- */

static bool advanced(void *arg, const char **ret_why)
{
    *ret_why = "the test says so";
    return ((struct env *)arg)->advancing;
}

static bool quiet(void *arg, uint64_t term)
{
    struct env *e = arg;
    CU_ASSERT_EQUAL(term, e->term);
    return e->is_quiet;
}

static void on_lease(void *arg, uint64_t term, uint64_t until)
{
    struct env *e = arg;
    e->term = term;
    e->until = until;
    e->told++;
}

static void on_stopped(void *arg)
{
    ((struct env *)arg)->stops++;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int open_leader(struct env *e, const char *identity, struct bh_leader **ret)
{
    struct bh_err err = {""};
    const struct bh_leader_callbacks cb = {advanced, quiet, on_lease, e};
    const struct bh_leader_options o = {.config = &e->cfg,
                                        .api = &e->api,
                                        .user_agent = "berth-test",
                                        .runtime_dir = e->dir,
                                        .component = "my-scheduler",
                                        .identity = identity,
                                        .metrics = e->metrics,
                                        .boot_ns = test_clock,
                                        .stop_ns = 300 * MS};
    bh_metrics_free(e->metrics);
    e->metrics = bh_metrics_new();
    struct bh_leader_options with = o;
    with.metrics = e->metrics;
    return bh_leader_new(&e->loop, &with, &cb, ret, &err);
}

static void setup(struct env *e)
{
    static unsigned n;
    struct bh_component_config c;

    *e = (struct env){.advancing = true, .is_quiet = true};
    CU_ASSERT_EQUAL_FATAL(bh_component_config_of(NULL, &c, NULL), 0);
    e->cfg = c.leader;
    e->cfg.retry_period_ns = 10 * MS;
    e->dir = bh_asprintf("%s/l%u", bh_test_tmpdir(), n++);
    CU_ASSERT_EQUAL_FATAL(mkdir(e->dir, 0750), 0);
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handle, e);
    snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%u", e->server.port);
    e->api.server = e->url;
    skew_ns = at_ns = 0;
}

static void start(struct env *e)
{
    CU_ASSERT_EQUAL_FATAL(open_leader(e, "me", &e->leader), 0);
}

static void teardown(struct env *e)
{
    bh_leader_free(e->leader);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
    bh_metrics_free(e->metrics);
    free(e->dir);
}

static bool leads(void *arg)
{
    struct env *e = arg;
    return bh_leader_leads(e->leader) && e->until > test_clock();
}

static bool told_no(void *arg)
{
    struct env *e = arg;
    return e->told && e->until == 0;
}

static bool gets_more(void *arg)
{
    struct env *e = arg;
    return e->gets >= e->base;
}

static bool puts_more(void *arg)
{
    struct env *e = arg;
    return e->puts >= e->base;
}

static bool has_stopped(void *arg)
{
    return ((struct env *)arg)->stops > 0;
}

static bool released(void *arg)
{
    return ((struct env *)arg)->holder[0] == 0;
}

static bool event_says(void *arg)
{
    struct env *e = arg;
    return strstr(e->last_event, e->want_text) != NULL;
}

static void run_gets(struct env *e, unsigned more)
{
    e->base = e->gets + more;
    CU_ASSERT(run_until(&e->loop, gets_more, e));
}

static void run_puts(struct env *e, unsigned more)
{
    e->base = e->puts + more;
    CU_ASSERT(run_until(&e->loop, puts_more, e));
}

static void expect_event(struct env *e, const char *text)
{
    e->want_text = (char *)(uintptr_t)text;
    CU_ASSERT(run_until(&e->loop, event_says, e));
}

static double metric(struct env *e, const char *line_start)
{
    struct bh_buf b = {0};
    double v = -1;
    bh_metrics_render(e->metrics, &b);
    const char *p = strstr(bh_buf_str(&b), line_start);
    if (p)
        v = strtod(p + strlen(line_start), NULL);
    bh_buf_fini(&b);
    return v;
}
#define MASTER "leader_election_master_status{name=\"kube-scheduler\"} "

/* ---- acquiring and renewing ------------------------------------------------------------------ */

static void test_a_missing_lease_is_made_and_renewed(void)
{
    struct env e;
    setup(&e);
    uint64_t before = test_clock();
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT(e.posts == 1 && e.puts == 0 && e.told == 1);
    CU_ASSERT_STRING_EQUAL(e.holder, "me");
    CU_ASSERT(e.duration == 15 && e.transitions == 0);
    CU_ASSERT_STRING_EQUAL(e.acquire, e.renew);
    CU_ASSERT_EQUAL(strlen(e.acquire), strlen("2026-11-21T04:51:40.838984Z"));
    CU_ASSERT_EQUAL(e.term, 1);
    CU_ASSERT(e.until >= before + 10 * S && e.until <= test_clock() + 10 * S);
    CU_ASSERT_EQUAL(metric(&e, MASTER), 1);
    expect_event(&e, "me became leader");
    static const char *const wanted[] = {
        ("\"involvedObject\":{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
         "\"namespace\":\"kube-system\",\"name\":\"kube-scheduler\",\"uid\":\"u1\""),
        "\"reason\":\"LeaderElection\"", "\"source\":{\"component\":\"my-scheduler\"}",
        "\"type\":\"Normal\""};
    for (size_t i = 0; i < BH_ARRAY_LEN(wanted); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(e.last_event, wanted[i]));

    char acquired[64];
    memcpy(acquired, e.acquire, sizeof(acquired));
    snprintf(e.label, sizeof(e.label), "kept");
    uint64_t until = e.until;
    unsigned gets = e.gets;
    run_puts(&e, 3);
    CU_ASSERT_EQUAL(e.gets, gets); /* the fast path */
    CU_ASSERT(e.until > until && e.term == 1);
    CU_ASSERT_STRING_EQUAL(e.acquire, acquired);
    CU_ASSERT(strcmp(e.renew, acquired) > 0);
    CU_ASSERT_EQUAL(e.transitions, 0);
    CU_ASSERT_EQUAL(e.conflicts, 0);
    teardown(&e);
}

static void test_a_held_lease_is_taken_only_when_it_ends_by_our_clock(void)
{
    struct env e;
    setup(&e);
    other_holds(&e, "them", 20); /* their duration counts, not ours; their times do not */
    start(&e);
    run_gets(&e, 4);
    skew_ns = 19 * S;
    run_gets(&e, 2);
    CU_ASSERT_EQUAL(e.puts, 0);
    other_holds(&e, "them", 20); /* renewed */
    run_gets(&e, 2);
    skew_ns += 19 * S;
    run_gets(&e, 2);
    CU_ASSERT(e.puts == 0 && e.told == 0);
    int64_t transitions = e.transitions;
    skew_ns += 2 * S;
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT_STRING_EQUAL(e.holder, "me");
    CU_ASSERT_EQUAL(e.transitions, transitions + 1);
    CU_ASSERT_EQUAL(e.term, (uint64_t)transitions + 2);
    teardown(&e);
}

static void test_a_released_lease_is_taken_at_once(void)
{
    struct env e;
    setup(&e);
    other_holds(&e, "", 1);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT(e.transitions == 2 && e.gets == 1);
    teardown(&e);
}

static void test_a_conflict_is_looked_at(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    char acquired[64];
    memcpy(acquired, e.acquire, sizeof(acquired));
    e.version++; /* somebody labelled it */
    run_gets(&e, 1);
    run_puts(&e, 2);
    CU_ASSERT(e.conflicts == 1 && e.transitions == 0 && e.term == 1);
    CU_ASSERT_STRING_EQUAL(e.acquire, acquired);
    CU_ASSERT_EQUAL(metric(&e, "leader_election_slowpath_total{name=\"kube-scheduler\"} "), 1);

    other_holds(&e, "thief", 15); /* ours no more, whatever our deadline says */
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    CU_ASSERT(!bh_leader_leads(e.leader) && e.term == 1);
    run_gets(&e, 3);
    CU_ASSERT_STRING_EQUAL(e.holder, "thief");
    teardown(&e);
}

static void test_a_deleted_lease_is_made_again(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.exists = false;
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT(e.posts == 2 && e.transitions == 0);
    CU_ASSERT_EQUAL(e.term, 2); /* the number does not start over */
    teardown(&e);
}

static void test_rubbish_is_no_lease(void)
{
    static const char *const bodies[] = {
        "",
        "[]",
        "{}",
        "{\"metadata\":7",
        "null",
        "{\"kind\":\"Lease\",\"spec\":{\"holderIdentity\":\"\"}}",
        "{\"metadata\":{},\"spec\":{\"holderIdentity\":\"\"}}",
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\"}"};
    struct env e;
    setup(&e);
    other_holds(&e, "them", 15);
    start(&e);
    for (size_t i = 0; i < BH_ARRAY_LEN(bodies); i++) {
        e.rubbish = bodies[i];
        run_gets(&e, 2);
    }
    CU_ASSERT(e.puts == 0 && e.posts == 0);
    /* an object without spec: nobody holds it */
    e.rubbish =
        "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"kube-scheduler\",\"resourceVersion\":\"1\"}}";
    CU_ASSERT(run_until(&e.loop, leads, &e));
    teardown(&e);
}

static void test_extreme_transitions_do_not_end_leadership(void)
{
    static const struct {
        int64_t has, written;
    } cases[] = {{INT32_MAX, INT32_MAX},
                 {INT32_MAX - 1, INT32_MAX},
                 {INT64_MAX, INT32_MAX},
                 {-5, 1},
                 {INT64_MIN, 1}};

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct env e;
        setup(&e);
        other_holds(&e, "", 1);
        e.transitions = cases[i].has;
        start(&e);
        CU_ASSERT(run_until(&e.loop, leads, &e));
        CU_ASSERT_EQUAL(e.transitions, cases[i].written);
        run_puts(&e, 2);
        CU_ASSERT(bh_leader_leads(e.leader) && e.refusals == 0);
        const uint64_t term = e.term;
        other_holds(&e, "thief", 1);
        e.transitions = cases[i].written;
        CU_ASSERT(run_until(&e.loop, told_no, &e));
        other_holds(&e, "", 1);
        e.transitions = cases[i].has;
        CU_ASSERT(run_until(&e.loop, leads, &e));
        CU_ASSERT_EQUAL(e.term, term + 1); /* rises on, whatever the lease holds */
        CU_ASSERT_EQUAL(e.refusals, 0);
        teardown(&e);
    }
}

/* What was taken out of a lease that is ours, or made something else. */
static void test_own_lease_is_renewed_whatever_its_times_are(void)
{
    static const char *const times[] = {"", "yesterday", "2026-01-02T03:04:05.000000Z\\u0000"};

    for (size_t i = 0; i < BH_ARRAY_LEN(times); i++) {
        struct env e;
        setup(&e);
        start(&e);
        CU_ASSERT(run_until(&e.loop, leads, &e));
        e.version++; /* edited: the next renewal is a conflict */
        snprintf(e.acquire, sizeof(e.acquire), "%s", times[i]);
        snprintf(e.renew, sizeof(e.renew), "%s", times[i]);
        e.duration = e.transitions = INT64_MIN;
        run_puts(&e, 3);
        CU_ASSERT(e.refusals == 0 && e.conflicts == 1 && e.term == 1);
        CU_ASSERT(bh_leader_leads(e.leader));
        CU_ASSERT_EQUAL(strlen(e.acquire), strlen("2026-11-21T04:51:40.838984Z"));
        teardown(&e);
    }
}

/* "me\0" is another holder, and so is "\0": neither ours nor free. A label with NUL is kept. */
static void test_holder_with_nul_is_another_holder(void)
{
    static const char *const holders[] = {"me\\u0000", "me\\u0000x", "\\u0000"};

    for (size_t i = 0; i < BH_ARRAY_LEN(holders); i++) {
        struct env e;
        setup(&e);
        other_holds(&e, holders[i], 15);
        snprintf(e.label, sizeof(e.label), "\\u0000");
        start(&e);
        run_gets(&e, 3);
        CU_ASSERT(e.puts == 0 && e.told == 0);
        skew_ns = 16 * S;
        CU_ASSERT(run_until(&e.loop, leads, &e));
        CU_ASSERT_STRING_EQUAL(e.holder, "me");
        CU_ASSERT_EQUAL(e.refusals, 0);
        teardown(&e);
    }
}

/* ---- losing ---------------------------------------------------------------------------------- */

static void test_a_lease_that_cannot_be_renewed_is_lost_at_the_deadline(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.say = 500;
    run_puts(&e, 2);
    CU_ASSERT(leads(&e)); /* still: the deadline is what counts */
    skew_ns += 10 * S;
    CU_ASSERT(!bh_leader_leads(e.leader)); /* nothing had to run for it */
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    CU_ASSERT_EQUAL(metric(&e, MASTER), 0);
    expect_event(&e, "me stopped leading");
    e.say = 0;
    CU_ASSERT(run_until(&e.loop, leads, &e)); /* nobody took it: it is ours again, in a new term */
    CU_ASSERT(e.term == 2 || e.term == 3);    /* 3: it was released in between */
    CU_ASSERT_EQUAL(metric(&e, "\nberth_watcher_lease_term "), (double)e.term);
    teardown(&e);
}

/* A renewal that fails is looked at, and tried again in the same try, as long as the lease holds. */
static void test_a_failed_renewal_is_looked_at_while_there_is_time(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.say_writes = 500;
    const unsigned puts = e.puts;
    run_gets(&e, 1);
    CU_ASSERT_EQUAL(e.puts, puts + 1);
    CU_ASSERT(leads(&e));
    teardown(&e);
}

static void time_goes_by(struct env *e)
{
    at_ns = e->until; /* to the very end: that is too late */
    e->too_late = true;
    e->refused = NULL;
}

static void test_a_renewal_that_fails_after_the_deadline_is_the_end(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.say_writes = 500;
    e.refused = time_goes_by;
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    CU_ASSERT(e.too_late);
    teardown(&e);
}

static void stops(struct env *e)
{
    bh_leader_stop(e->leader, on_stopped, e);
    e->base = e->gets;
    e->refused = NULL;
}

/* What was under way when the process was told to stop ends; only what can be released is asked. */
static void test_a_renewal_that_fails_in_a_stop_is_the_end(void)
{
    struct env e;
    setup(&e);
    e.is_quiet = false;
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.say_writes = 500;
    e.refused = stops;
    CU_ASSERT(run_until(&e.loop, has_stopped, &e));
    CU_ASSERT_EQUAL(e.gets, e.base);
    teardown(&e);
}

/* Stopped for longer than the lease: another host has it when we wake. */
static void test_who_was_stopped_writes_nothing_and_waits(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    run_puts(&e, 2);
    skew_ns += 20 * S;
    other_holds(&e, "them", 15);
    unsigned writes = e.puts + e.posts;
    CU_ASSERT(!bh_leader_leads(e.leader));
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    run_gets(&e, 6);
    CU_ASSERT_EQUAL(e.puts + e.posts, writes);
    CU_ASSERT_STRING_EQUAL(e.holder, "them");
    skew_ns += 16 * S;
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT_EQUAL(e.term, 3);
    teardown(&e);
}

static void test_a_renewal_that_took_too_long_counts_from_its_start(void)
{
    struct env e;
    setup(&e);
    e.exists = true;
    other_holds(&e, "", 1);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    /* the clock goes on while the request is out: see that the deadline does not */
    uint64_t until = e.until;
    unsigned told = e.told;
    skew_ns += 9 * S;
    run_puts(&e, 1);
    CU_ASSERT(e.told > told && e.until >= until && e.until <= test_clock() + 10 * S);
    CU_ASSERT(bh_leader_healthy(e.leader));
    skew_ns += 36 * S; /* leaseDuration + 20 s: a loop that hangs is not healthy */
    CU_ASSERT(!bh_leader_healthy(e.leader));
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    CU_ASSERT(bh_leader_healthy(e.leader));
    teardown(&e);
}

/* ---- only while somebody works --------------------------------------------------------------- */

static void test_who_cannot_schedule_does_not_take_the_lease(void)
{
    struct env e;
    setup(&e);
    e.advancing = false;
    e.cfg.retry_period_ns = 8 * (int64_t)S; /* a poke does not wait for it */
    start(&e);
    run_gets(&e, 1);
    bh_leader_poke(e.leader);
    CU_ASSERT(e.posts == 0 && e.told == 0);
    e.advancing = true;
    uint64_t until = bh_mono_ns() + 120 * S;
    while (!leads(&e) && bh_mono_ns() < until) {
        bh_leader_poke(e.leader);
        uv_run(&e.loop, UV_RUN_NOWAIT);
    }
    CU_ASSERT(leads(&e));
    CU_ASSERT_EQUAL(e.gets, 2);
    teardown(&e);
}

static void test_who_stops_advancing_gives_it_up(void)
{
    struct env e;
    setup(&e);
    e.is_quiet = false;
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.advancing = false;
    run_puts(&e, 0);
    unsigned puts = e.puts;
    skew_ns += 10 * S;
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    CU_ASSERT(e.puts <= puts + 1);          /* one may have been out */
    CU_ASSERT_STRING_EQUAL(e.holder, "me"); /* not before it is quiet here */
    e.is_quiet = true;
    CU_ASSERT(run_until(&e.loop, released, &e));
    CU_ASSERT(e.duration == 1 && e.transitions == 0);
    run_gets(&e, 3);
    CU_ASSERT_STRING_EQUAL(e.holder, ""); /* others may have it, we do not want it */
    teardown(&e);
}

static void test_after_the_deadline_it_is_quiet_by_itself(void)
{
    struct env e;
    setup(&e);
    e.is_quiet = false;
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.advancing = false;
    skew_ns += 10 * S;
    CU_ASSERT(run_until(&e.loop, told_no, &e));
    skew_ns += BH_LEADER_SETTLE_NS;
    CU_ASSERT(run_until(&e.loop, released, &e));
    teardown(&e);
}

/* The clock stands between two turns of the loop: what the machine takes for them does not count. */
static void turns(struct env *e, unsigned n, unsigned until_puts)
{
    while (n-- && e->puts < until_puts) {
        at_ns += 10 * MS;
        uv_run(&e->loop, UV_RUN_ONCE);
    }
}

/* A pause that is shorter than the deadline costs nothing. */
static void test_who_pauses_keeps_it(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    at_ns = test_clock();
    turns(&e, 100, e.puts + 1);
    e.advancing = false;
    unsigned puts = e.puts;
    at_ns += 6 * S;
    turns(&e, 50, UINT_MAX);
    CU_ASSERT(e.puts <= puts + 1 && leads(&e)); /* one may have been out */
    e.advancing = true;
    uint64_t until = e.until;
    turns(&e, 200, e.puts + 2);
    CU_ASSERT(leads(&e) && e.until > until && e.term == 1 && e.gets == 1);
    teardown(&e);
}

static void test_an_event_that_is_refused_does_no_harm(void)
{
    struct env e;
    setup(&e);
    e.say_events = 403;
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    expect_event(&e, "me became leader");
    run_puts(&e, 3);
    CU_ASSERT(leads(&e) && e.term == 1 && e.events == 1);
    teardown(&e);
}

static void test_a_name_of_its_own(void)
{
    struct env e;
    char host[96] = "";
    setup(&e);
    (void)gethostname(host, sizeof(host) - 1);
    CU_ASSERT_EQUAL_FATAL(open_leader(&e, NULL, &e.leader), 0);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT(strncmp(e.holder, host, strlen(host)) == 0);
    CU_ASSERT_EQUAL(strlen(e.holder),
                    strlen(host) + strlen("_00000000-0000-0000-0000-000000000000"));
    teardown(&e);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void stop_now(struct env *e)
{
    at_ns = test_clock(); /* nothing runs out */
    bh_leader_stop(e->leader, on_stopped, e);
    bh_leader_stop(e->leader, on_stopped, e); /* told twice */
}

/* The answer comes when nobody wants it any more: others must not wait for its end. */
static void test_a_lease_that_comes_during_the_stop_is_given_back(void)
{
    struct env e;
    setup(&e);
    e.writing = stop_now;
    start(&e);
    CU_ASSERT(run_until(&e.loop, has_stopped, &e));
    CU_ASSERT(e.posts == 1 && e.puts == 1 && e.told == 0 && e.stops == 1);
    CU_ASSERT_STRING_EQUAL(e.holder, "");
    CU_ASSERT_EQUAL(e.duration, 1);
    teardown(&e);
}

static void test_a_release_that_is_refused_does_not_hold_up_the_stop(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.say_writes = 403;
    stop_now(&e);
    CU_ASSERT(run_until(&e.loop, has_stopped, &e));
    CU_ASSERT_STRING_EQUAL(e.holder, "me"); /* it runs out */
    CU_ASSERT_EQUAL(e.stops, 1);
    teardown(&e);
}

/* Somebody took it after we lost it: there is nothing to release. */
static void thief_comes(struct env *e)
{
    other_holds(e, "thief", 15);
    stop_now(e);
}

static void test_what_somebody_else_holds_is_not_released(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    e.writing = thief_comes;
    CU_ASSERT(run_until(&e.loop, has_stopped, &e));
    CU_ASSERT_STRING_EQUAL(e.holder, "thief");
    CU_ASSERT_EQUAL(e.duration, 15);
    teardown(&e);
}

static void test_a_stop_releases(void)
{
    struct env e;
    setup(&e);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    stop_now(&e);
    CU_ASSERT(told_no(&e)); /* at once */
    CU_ASSERT(run_until(&e.loop, has_stopped, &e));
    CU_ASSERT(e.holder[0] == 0 && e.duration == 1 && e.transitions == 0 && e.stops == 1);
    CU_ASSERT_STRING_EQUAL(e.acquire, e.renew);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.last_event, "me stopped leading"));
    teardown(&e);
}

static void test_a_stop_leaves_what_is_not_quiet(void)
{
    struct env e;
    setup(&e);
    e.is_quiet = false;
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    bh_leader_stop(e.leader, on_stopped, &e);
    CU_ASSERT(run_until(&e.loop, has_stopped, &e));
    CU_ASSERT_STRING_EQUAL(e.holder, "me");
    teardown(&e);
}

static void test_a_stop_of_a_stand_by_host(void)
{
    struct env e;
    setup(&e);
    other_holds(&e, "them", 15);
    start(&e);
    run_gets(&e, 1);
    bh_leader_stop(e.leader, on_stopped, &e);
    CU_ASSERT(run_until(&e.loop, has_stopped, &e));
    CU_ASSERT(e.puts == 0 && e.told == 0);
    teardown(&e);
}

static void test_freeing_at_any_moment(void)
{
    for (unsigned i = 0; i < 12; i++) {
        struct env e;
        setup(&e);
        start(&e);
        for (unsigned k = 0; k < i; k++)
            uv_run(&e.loop, UV_RUN_NOWAIT);
        if (i % 3 == 2)
            bh_leader_stop(e.leader, on_stopped, &e);
        teardown(&e);
    }
}

/* ---- successors ------------------------------------------------------------------------------ */

static void test_a_successor_goes_on_in_the_same_term(void)
{
    struct env e;
    struct bh_leader *second = NULL;
    setup(&e);
    e.transitions = 6;
    other_holds(&e, "", 1);
    start(&e);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT_EQUAL(e.term, 9);
    CU_ASSERT_EQUAL(open_leader(&e, "next", &second), -EBUSY);

    bh_leader_free(e.leader); /* as if killed: nothing is released */
    uv_run(&e.loop, UV_RUN_NOWAIT);
    e.until = 0;
    CU_ASSERT_EQUAL_FATAL(open_leader(&e, "next", &e.leader), 0);
    CU_ASSERT(run_until(&e.loop, leads, &e)); /* without waiting for the lease to end */
    CU_ASSERT_STRING_EQUAL(e.holder, "next");
    CU_ASSERT(e.transitions == 9 && e.term == 9);

    bh_leader_free(e.leader); /* the next one finds that somebody else was faster */
    uv_run(&e.loop, UV_RUN_NOWAIT);
    other_holds(&e, "them", 15);
    e.until = 0;
    CU_ASSERT_EQUAL_FATAL(open_leader(&e, "third", &e.leader), 0);
    run_gets(&e, 3);
    CU_ASSERT_STRING_EQUAL(e.holder, "them");
    skew_ns += 16 * S;
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT_EQUAL(e.term, 12);
    teardown(&e);
}

static void test_a_successor_of_one_that_died_while_acquiring(void)
{
    struct env e;
    setup(&e);
    e.say_writes = 503;
    start(&e);
    e.base = 2;
    while (e.posts < 2)
        uv_run(&e.loop, UV_RUN_ONCE);
    bh_leader_free(e.leader);
    uv_run(&e.loop, UV_RUN_NOWAIT);
    e.say_writes = 0;
    other_holds(&e, "me", 15); /* its write arrived after all */
    CU_ASSERT_EQUAL_FATAL(open_leader(&e, "next", &e.leader), 0);
    CU_ASSERT(run_until(&e.loop, leads, &e));
    CU_ASSERT_STRING_EQUAL(e.holder, "next");
    teardown(&e);
}

static void test_one_that_cannot_be_made_leaves_the_file(void)
{
    static char nowhere[] = "/nonexistent/token";
    struct bh_leader *none = NULL;
    struct env e;

    setup(&e);
    e.api.token_file = nowhere;
    CU_ASSERT_EQUAL(open_leader(&e, "me", &none), -ENOENT);
    e.api.token_file = NULL;
    start(&e); /* nobody holds it */
    teardown(&e);
}

/* ---- the file ------------------------------------------------------------------------------- */

#define LEASE_BYTES 1024 /* of a record, with its head */
#define LEASE_HEAD  48

static const char *lease_path(const struct env *e)
{
    static char path[200];

    snprintf(path, sizeof(path), "%s/watcher/lease", e->dir);
    return path;
}

static struct bh_leader_file open_file(const struct env *e)
{
    struct bh_leader_file f;
    struct bh_err err;

    CU_ASSERT_EQUAL_FATAL(bh_leader_file_open(&f, e->dir, &err), 0);
    return f;
}

static void write_at(const struct env *e, off_t at, const void *p, size_t n)
{
    int fd = open(lease_path(e), O_WRONLY | O_CLOEXEC);

    CU_ASSERT_FATAL(fd >= 0 && pwrite(fd, p, n, at) == (ssize_t)n);
    close(fd);
}

/* A record of these lines, whole and of this file. */
static void put_lines(const struct env *e, const char *lines)
{
    struct bh_leader_file f = open_file(e);
    char block[LEASE_BYTES], head[LEASE_HEAD + 1];

    memset(block, '\n', sizeof(block));
    memcpy(block + LEASE_HEAD, lines, strlen(lines));
    snprintf(
        head, sizeof(head), "berth lease 2 %016llx %016llx\n", (unsigned long long)f.belongs_to,
        (unsigned long long)bh_hash(block + LEASE_HEAD, LEASE_BYTES - LEASE_HEAD, f.belongs_to));
    memcpy(block, head, LEASE_HEAD);
    bh_leader_file_close(&f);
    write_at(e, 0, block, sizeof(block));
}

static void expect_entries(const struct env *e, unsigned n)
{
    struct bh_leader_file f = open_file(e);

    CU_ASSERT_EQUAL(f.n, n);
    bh_leader_file_close(&f);
}

static void test_lines_that_make_no_sense_are_skipped(void)
{
    static const char *const texts[] = {"",
                                        "\n\n\n",
                                        "me",
                                        " me\n",
                                        "0 me\n",
                                        "-\n",
                                        "99999999999999999999999 me\n",
                                        "18446744073709551615 me\n",
                                        "7\n",
                                        "7 \n"};
    struct bh_leader_file f;
    struct bh_err err;
    struct env e;
    setup(&e);
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        put_lines(&e, texts[i]);
        expect_entries(&e, 0);
    }
    put_lines(&e, "rest\n3 me\n9 you and me\n5 too many\n");
    f = open_file(&e);
    CU_ASSERT_EQUAL(f.n, 2);
    CU_ASSERT_PTR_NOT_NULL(bh_leader_file_find(&f, "me"));
    CU_ASSERT_PTR_NOT_NULL(bh_leader_file_find(&f, "you and me"));
    CU_ASSERT_EQUAL(bh_leader_file_last_term(&f), 9);
    bh_leader_file_write(&f, "new", 4, bh_leader_file_find(&f, "me"));
    bh_leader_file_close(&f);
    f = open_file(&e);
    CU_ASSERT(f.n == 2 && f.past[0].term == 4 && f.past[1].term == 3);
    bh_leader_file_close(&f);
    CU_ASSERT_EQUAL(bh_leader_file_open(&f, "/nonexistent", &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "/nonexistent/watcher"));
    start(&e);
    teardown(&e);
}

static void leave_lease(const struct env *e, const char *identity, uint64_t term)
{
    struct bh_leader_file f = open_file(e);

    bh_leader_file_write(&f, identity, term, NULL);
    bh_leader_file_close(&f);
    expect_entries(e, 1);
}

static void test_a_damaged_file_is_an_empty_one(void)
{
    static const off_t sizes[] = {0, 1, LEASE_HEAD, LEASE_HEAD + 10, LEASE_BYTES - 1};
    char block[LEASE_BYTES];
    struct env e;

    setup(&e);
    leave_lease(&e, "the-holder", 7);
    int fd = open(lease_path(&e), O_RDONLY | O_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0 && pread(fd, block, sizeof(block), 0) == LEASE_BYTES);
    close(fd);
    for (off_t at = 0; at < LEASE_BYTES; at++) {
        const char flipped = (char)(block[at] ^ (1 << at % 8));
        write_at(&e, at, &flipped, 1);
        expect_entries(&e, 0);
        write_at(&e, at, &block[at], 1);
    }
    expect_entries(&e, 1);
    for (size_t i = 0; i < BH_ARRAY_LEN(sizes); i++) {
        leave_lease(&e, "the-holder", 7);
        CU_ASSERT_EQUAL(truncate(lease_path(&e), sizes[i]), 0);
        expect_entries(&e, 0);
    }
    leave_lease(&e, "the-holder", 7);
    write_at(&e, 0, "7 the-holder\n", 13); /* as the version before wrote it */
    expect_entries(&e, 0);
    teardown(&e);
}

static void copy_file(const char *from, const char *to)
{
    BH_CLEANUP(bh_freep) char *bytes = NULL;
    size_t n = 0;

    CU_ASSERT_EQUAL_FATAL(bh_read_file(from, 4096, &bytes, &n), 0);
    CU_ASSERT_EQUAL_FATAL(bh_write_file(to, bytes, n, 0600), 0);
}

/* Another host may have it from a backup, an image or a shared folder. */
static void test_a_copied_file_is_an_empty_one(void)
{
    char copy[220];
    struct env e;

    setup(&e);
    leave_lease(&e, "the-holder", 7);
    snprintf(copy, sizeof(copy), "%s.copy", lease_path(&e));
    copy_file(lease_path(&e), copy);
    CU_ASSERT_EQUAL_FATAL(rename(copy, lease_path(&e)), 0);
    expect_entries(&e, 0);
    teardown(&e);
}

static void test_a_host_with_a_copied_file_does_not_lead_early(void)
{
    char copy[220];
    struct env e;

    setup(&e);
    leave_lease(&e, "other", 7);
    snprintf(copy, sizeof(copy), "%s.copy", lease_path(&e));
    copy_file(lease_path(&e), copy);
    CU_ASSERT_EQUAL_FATAL(rename(copy, lease_path(&e)), 0);
    other_holds(&e, "other", 20);
    start(&e);
    run_gets(&e, 4);
    CU_ASSERT(e.puts == 0 && e.told == 0);
    teardown(&e);
}

static void test_a_file_that_is_not_the_watchers_own_is_an_empty_one(void)
{
    char other[220];
    struct bh_leader_file f;
    struct bh_err err = {0};
    struct stat st;
    struct env e;

    setup(&e);
    leave_lease(&e, "the-holder", 7);
    CU_ASSERT_EQUAL_FATAL(chmod(lease_path(&e), 0660), 0);
    expect_entries(&e, 0);
    CU_ASSERT(lstat(lease_path(&e), &st) == 0 && (st.st_mode & 077) == 0);
    leave_lease(&e, "the-holder", 7);
    snprintf(other, sizeof(other), "%s.other", lease_path(&e));
    CU_ASSERT_EQUAL_FATAL(rename(lease_path(&e), other), 0);
    CU_ASSERT_EQUAL_FATAL(symlink(other, lease_path(&e)), 0);
    expect_entries(&e, 0);
    if (geteuid() == 0) {
        leave_lease(&e, "the-holder", 7);
        CU_ASSERT_EQUAL_FATAL(chown(lease_path(&e), 1, 1), 0);
        expect_entries(&e, 0);
    }
    snprintf(other, sizeof(other), "%s/watcher", e.dir);
    CU_ASSERT_EQUAL_FATAL(chmod(other, 0777), 0);
    CU_ASSERT_EQUAL(bh_leader_file_open(&f, e.dir, &err), -EPERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "/watcher\" has mode 0777"));
    teardown(&e);
}

static void test_a_file_of_an_earlier_version_is_removed(void)
{
    BH_CLEANUP(bh_freep) char *old = NULL;
    struct env e;

    setup(&e);
    old = bh_asprintf("%s/lease", e.dir);
    CU_ASSERT_EQUAL_FATAL(bh_write_file(old, "7 the-holder\n", 13, 0640), 0);
    expect_entries(&e, 0);
    CU_ASSERT(access(old, F_OK) < 0);
    teardown(&e);
}

BH_TESTS(
    "watcher/leader",
    {"one that cannot be made leaves the file", test_one_that_cannot_be_made_leaves_the_file},
    {"a missing lease is made and renewed", test_a_missing_lease_is_made_and_renewed},
    {"a held lease is taken only when it ends by our clock",
     test_a_held_lease_is_taken_only_when_it_ends_by_our_clock},
    {"a released lease is taken at once", test_a_released_lease_is_taken_at_once},
    {"a conflict is looked at: a label, a thief", test_a_conflict_is_looked_at},
    {"a deleted lease is made again", test_a_deleted_lease_is_made_again},
    {"rubbish is no lease", test_rubbish_is_no_lease},
    {"extreme transitions do not end leadership", test_extreme_transitions_do_not_end_leadership},
    {"an own lease is renewed whatever its times are",
     test_own_lease_is_renewed_whatever_its_times_are},
    {"a holder with NUL is another holder", test_holder_with_nul_is_another_holder},
    {"a lease that cannot be renewed is lost at the deadline",
     test_a_lease_that_cannot_be_renewed_is_lost_at_the_deadline},
    {"a failed renewal is looked at while there is time",
     test_a_failed_renewal_is_looked_at_while_there_is_time},
    {"a renewal that fails after the deadline is the end",
     test_a_renewal_that_fails_after_the_deadline_is_the_end},
    {"a renewal that fails in a stop is the end", test_a_renewal_that_fails_in_a_stop_is_the_end},
    {"who was stopped writes nothing and waits", test_who_was_stopped_writes_nothing_and_waits},
    {"a deadline counts from the start of a renewal; health",
     test_a_renewal_that_took_too_long_counts_from_its_start},
    {"who cannot schedule does not take the lease",
     test_who_cannot_schedule_does_not_take_the_lease},
    {"who stops advancing gives it up when it is quiet", test_who_stops_advancing_gives_it_up},
    {"after the deadline it is quiet by itself", test_after_the_deadline_it_is_quiet_by_itself},
    {"who pauses keeps it", test_who_pauses_keeps_it},
    {"an event that is refused does no harm", test_an_event_that_is_refused_does_no_harm},
    {"a name of its own", test_a_name_of_its_own}, {"a stop releases", test_a_stop_releases},
    {"a lease that comes during the stop is given back",
     test_a_lease_that_comes_during_the_stop_is_given_back},
    {"a release that is refused does not hold up the stop",
     test_a_release_that_is_refused_does_not_hold_up_the_stop},
    {"what somebody else holds is not released", test_what_somebody_else_holds_is_not_released},
    {"a stop leaves what is not quiet", test_a_stop_leaves_what_is_not_quiet},
    {"a stop of a stand-by host", test_a_stop_of_a_stand_by_host},
    {"freeing at any moment", test_freeing_at_any_moment},
    {"a successor goes on in the same term", test_a_successor_goes_on_in_the_same_term},
    {"a successor of one that died while acquiring",
     test_a_successor_of_one_that_died_while_acquiring},
    {"lines that make no sense are skipped", test_lines_that_make_no_sense_are_skipped},
    {"a damaged file is an empty one", test_a_damaged_file_is_an_empty_one},
    {"a copied file is an empty one", test_a_copied_file_is_an_empty_one},
    {"a host with a copied file does not lead early",
     test_a_host_with_a_copied_file_does_not_lead_early},
    {"a file that is not the watcher's own is an empty one",
     test_a_file_that_is_not_the_watchers_own_is_an_empty_one},
    {"a file of an earlier version is removed", test_a_file_of_an_earlier_version_is_removed})
