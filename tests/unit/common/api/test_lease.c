/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_lease.c - one Lease as a lock: requests and what replies mean
 */
#include "common/api/lease.h"
#include "common/base/loop.h"
#include "tests/unit/common/api/raw_server.h"

#define S UINT64_C(1000000000)

struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_api_client *client;
    struct bh_lease *lease;
    char url[64], method[16], target[2048], body[4096];
    int code;
    const char *reply; /* NULL = none ever */
    unsigned done;
    enum bh_lease_outcome outcome;
    bool changed;
    struct bh_lease_record record;
    char error[256];
};

static void handle(struct raw_server *s, const struct raw_request *r)
{
    struct env *e = s->arg;
    snprintf(e->method, sizeof(e->method), "%s", r->method);
    snprintf(e->target, sizeof(e->target), "%s", r->target);
    snprintf(e->body, sizeof(e->body), "%.*s", (int)r->body_n, r->body);
    if (e->reply)
        raw_json(r->conn, e->code, e->reply);
}

static void on_done(void *arg, const struct bh_lease_result *r)
{
    struct env *e = arg;
    e->done++;
    e->outcome = r->outcome;
    e->changed = r->changed;
    CU_ASSERT_EQUAL(r->record != NULL, r->outcome == BH_LEASE_OK);
    if (r->record)
        e->record = *r->record;
    snprintf(e->error, sizeof(e->error), "%s", r->error ? r->error : "");
}

static void setup(struct env *e)
{
    struct bh_err err = {""};
    *e = (struct env){.code = 200};
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handle, e);
    snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%u", e->server.port);
    const struct bh_api_config cfg = {.server = e->url};
    const struct bh_api_options o = {.user_agent = "t"};
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &cfg, &o, &e->client, &err), 0);
    e->lease = bh_lease_new(e->client, "a/b", "c d");
}

static void teardown(struct env *e)
{
    bh_lease_free(e->lease);
    bh_api_client_free(e->client);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
}

static bool is_done(void *arg)
{
    return ((struct env *)arg)->done > 0;
}

static enum bh_lease_outcome get(struct env *e, int code, const char *reply)
{
    e->code = code;
    e->reply = reply;
    e->done = 0;
    bh_lease_get(e->lease, 10 * S, on_done, e);
    CU_ASSERT(!e->done);
    CU_ASSERT(run_until(&e->loop, is_done, e));
    return e->outcome;
}

static enum bh_lease_outcome put(struct env *e, const char *holder, int code, const char *reply)
{
    struct bh_lease_record r = {.duration_s = 15, .transitions = 3};
    snprintf(r.holder, sizeof(r.holder), "%s", holder);
    snprintf(r.acquire_time, sizeof(r.acquire_time), "A");
    snprintf(r.renew_time, sizeof(r.renew_time), "R");
    e->code = code;
    e->reply = reply;
    e->done = 0;
    bh_lease_write(e->lease, &r, 10 * S, on_done, e);
    CU_ASSERT(run_until(&e->loop, is_done, e));
    return e->outcome;
}

#define OBJECT(version, holder)                                                                    \
    "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"c "                                              \
    "d\",\"uid\":\"u\",\"resourceVersion\":\"" version                                             \
    "\",\"labels\":{\"x\":\"y\"}},\"spec\":{\"holderIdentity\":\"" holder                          \
    "\",\"leaseDurationSeconds\":15,\"acquireTime\":\"A\",\"renewTime\":\"R\","                    \
    "\"leaseTransitions\":3,\"strategy\":\"OldestEmulationVersion\"}}"

static void test_requests(void)
{
    struct env e;
    setup(&e);
    CU_ASSERT_EQUAL(get(&e, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}"),
                    BH_LEASE_NOT_FOUND);
    CU_ASSERT_STRING_EQUAL(e.target,
                           "/apis/coordination.k8s.io/v1/namespaces/a%2Fb/leases/c%20d?timeout="
                           "10s");
    CU_ASSERT_EQUAL(put(&e, "me \"x\"", 201, OBJECT("1", "me")), BH_LEASE_OK);
    CU_ASSERT_STRING_EQUAL(e.method, "POST");
    CU_ASSERT_STRING_EQUAL(e.target,
                           "/apis/coordination.k8s.io/v1/namespaces/a%2Fb/leases?timeout=10s");
    CU_ASSERT_STRING_EQUAL(
        e.body, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
                "\"name\":\"c d\",\"namespace\":\"a/b\"},\"spec\":{\"holderIdentity\":\"me "
                "\\\"x\\\"\",\"leaseDurationSeconds\":15,\"acquireTime\":\"A\",\"renewTime\":"
                "\"R\",\"leaseTransitions\":3}}");
    CU_ASSERT_STRING_EQUAL(e.record.holder, "me");
    CU_ASSERT_STRING_EQUAL(bh_lease_uid(e.lease), "u");

    /* the whole metadata goes back, the spec is new */
    CU_ASSERT_EQUAL(put(&e, "me", 409, "{\"kind\":\"Status\",\"message\":\"late\"}"),
                    BH_LEASE_CONFLICT);
    CU_ASSERT_STRING_EQUAL(e.error, "late");
    CU_ASSERT_STRING_EQUAL(e.method, "PUT");
    CU_ASSERT_PTR_NOT_NULL(strstr(e.body, "\"resourceVersion\":\"1\",\"labels\":{\"x\":\"y\"}},"));
    CU_ASSERT_PTR_NULL(strstr(e.body, "strategy"));
    CU_ASSERT_EQUAL(put(&e, "me", 404, "{}"), BH_LEASE_NOT_FOUND);
    CU_ASSERT_EQUAL(put(&e, "me", 500, "{}"), BH_LEASE_FAILED); /* there is nothing to replace */
    CU_ASSERT_STRING_EQUAL(e.method, "POST");
    teardown(&e);
}

static void test_a_change_is_one_of_the_spec(void)
{
    struct env e;
    setup(&e);
    CU_ASSERT_EQUAL(get(&e, 200, OBJECT("1", "them")), BH_LEASE_OK);
    CU_ASSERT(e.changed);
    CU_ASSERT(e.record.duration_s == 15 && e.record.transitions == 3);
    CU_ASSERT_EQUAL(get(&e, 200, OBJECT("2", "them")), BH_LEASE_OK);
    CU_ASSERT(!e.changed); /* a label */
    CU_ASSERT_STRING_EQUAL(bh_lease_version(e.lease), "2");
    CU_ASSERT_EQUAL(get(&e, 503, "no json"), BH_LEASE_FAILED);
    CU_ASSERT_EQUAL(get(&e, 200, OBJECT("3", "us")), BH_LEASE_OK);
    CU_ASSERT(e.changed);
    CU_ASSERT_EQUAL(get(&e, 404, "{}"), BH_LEASE_NOT_FOUND);
    CU_ASSERT_EQUAL(get(&e, 200, OBJECT("4", "us")), BH_LEASE_OK);
    CU_ASSERT(e.changed); /* another one under the name */
    teardown(&e);
}

static void test_foreign_values(void)
{
    struct env e;
    struct bh_buf b = {0};
    setup(&e);
    bh_buf_adds(&b, "{\"kind\":\"Lease\",\"metadata\":{},\"spec\":{\"leaseDurationSeconds\":\"15\","
                    "\"leaseTransitions\":1e30,\"holderIdentity\":\"");
    for (int i = 0; i < 1000; i++)
        bh_buf_addc(&b, 'h');
    bh_buf_adds(&b, "\"}}");
    CU_ASSERT_EQUAL(get(&e, 200, bh_buf_str(&b)), BH_LEASE_OK);
    CU_ASSERT(e.record.duration_s == 0 && e.record.transitions == 0);
    CU_ASSERT_EQUAL(strlen(e.record.holder), BH_LEASE_HOLDER_MAX - 1);
    bh_buf_reset(&b);
    bh_buf_adds(&b, "{\"kind\":\"Lease\",\"metadata\":{\"annotations\":[");
    for (int i = 0; i < 400000; i++)
        bh_buf_adds(&b, "0,");
    bh_buf_adds(&b, "0]}}");
    CU_ASSERT_EQUAL(get(&e, 200, bh_buf_str(&b)), BH_LEASE_FAILED); /* larger than any Lease */
    bh_buf_fini(&b);
    CU_ASSERT_EQUAL(get(&e, 200, OBJECT("1", "x")), BH_LEASE_OK);
    teardown(&e);
}

static void test_free_while_a_request_runs(void)
{
    struct env e;
    setup(&e);
    e.reply = NULL;
    bh_lease_get(e.lease, 10 * S, on_done, &e);
    for (int i = 0; i < 5; i++)
        uv_run(&e.loop, UV_RUN_NOWAIT);
    teardown(&e);
    CU_ASSERT_EQUAL(e.done, 0);
}

BH_TESTS("common/api/lease", {"requests carry the object last seen", test_requests},
         {"a change is one of the spec", test_a_change_is_one_of_the_spec},
         {"foreign values", test_foreign_values},
         {"freed while a request runs", test_free_while_a_request_runs})
