/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/front/test_access.c - who is calling, and may he: against an API server that is played
 * here, in the same loop
 */
#include <errno.h>

#include "front/authn.h"
#include "front/authz.h"
#include "front/tls_flags.h"
#include "common/base/loop.h"
#include "tests/unit/front/certs.h"

static struct {
    uv_loop_t loop;
    struct bh_http_server *server;
    struct bh_api_client *client;
    unsigned asked;
    int code;               /* of the answer */
    const char *status;     /* JSON, "status" of the answer */
    const char *form;       /* JSON, its kind and apiVersion; NULL: as they were asked for */
    unsigned failures_left; /* answers with 503 before that */
    char body[1024];        /* of the last question */
    uint64_t now_ns;
    enum bh_verdict_is is;
    char why[256], name[64];
    bool in_masters;
    unsigned done, busy;
    bool silent; /* nothing is answered */
    unsigned taken_back;
    uint64_t wait_ns;
} fx;

static void on_asker_left(void *arg)
{
    (void)arg;
    fx.taken_back++;
}

static const char *asked_form(void)
{
    return strstr(fx.body, "TokenReview")
               ? "\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\""
           : strstr(fx.body, "SubjectAccessReview")
               ? "\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\""
               : "\"kind\":\"X\",\"apiVersion\":\"x/v1\"";
}

static void handle(struct bh_http_req *r, void *arg)
{
    char text[5000];

    (void)arg;
    fx.asked++;
    if (fx.silent) {
        bh_http_on_abort(r, on_asker_left, NULL);
        return;
    }
    snprintf(fx.body, sizeof(fx.body), "%s", bh_http_body(r).p);
    int n = snprintf(text, sizeof(text), "{%s,\"status\":%s}", fx.form ? fx.form : asked_form(),
                     fx.status);
    if (fx.failures_left) {
        fx.failures_left--;
        bh_http_reply(r, 503, "text/plain", "", 0);
        return;
    }
    bh_http_reply(r, fx.code, "application/json", text, (size_t)n);
}

static void begin(const char *status)
{
    const struct bh_http_options o = {.address = "127.0.0.1"};
    struct bh_err err;
    char url[64];

    memset(&fx, 0, sizeof(fx));
    fx.code = 201;
    fx.status = status;
    fx.now_ns = 1;
    uv_loop_init(&fx.loop);
    CU_ASSERT_EQUAL_FATAL(bh_http_server_new(&fx.loop, &o, handle, NULL, &fx.server, &err), 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", bh_http_server_port(fx.server));
    const struct bh_api_config cfg = {.server = url};
    const struct bh_api_options ao = {.user_agent = "test", .max_connections = BH_REVIEW_ASKED};
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&fx.loop, &cfg, &ao, &fx.client, &err), 0);
}

static void end(void)
{
    bh_api_client_free(fx.client);
    bh_http_server_free(fx.server);
    bh_loop_drain_close(&fx.loop);
}

static uint64_t clock_ns(void)
{
    return fx.now_ns;
}

static void on_verdict(void *arg, const struct bh_verdict *v)
{
    (void)arg;
    fx.done++;
    fx.busy += v->is == BH_VERDICT_BUSY;
    fx.is = v->is;
    snprintf(fx.why, sizeof(fx.why), "%s", v->why);
}

static void wait_done(unsigned n)
{
    while (fx.done < n)
        uv_run(&fx.loop, UV_RUN_ONCE);
}

static struct bh_verdict *judge(const struct bh_json *status)
{
    return bh_verdict_new(bh_json_get_bool(status, "allowed", false) ? BH_VERDICT_YES
                                                                     : BH_VERDICT_NO,
                          bh_json_get_text(status, "reason"));
}

static const struct bh_review_form form_x = {"X", "x/v1", "/x", judge};

static struct bh_reviews *reviews(void)
{
    const struct bh_reviews_options o = {.client = fx.client,
                                         .form = &form_x,
                                         .yes_ttl_ns = 100,
                                         .no_ttl_ns = 10,
                                         .mono_ns = clock_ns,
                                         .retry_ns = 1000000,
                                         .wait_ns = fx.wait_ns};
    return bh_reviews_new(&fx.loop, &o);
}

static struct bh_review_wait *ask_from(struct bh_reviews *r, const char *key, const char *from)
{
    struct bh_buf body = {0};

    bh_buf_adds(&body, "{}");
    struct bh_review_wait *w = bh_reviews_ask(r, key, strlen(key), &body, from, on_verdict, NULL);
    bh_buf_fini(&body);
    return w;
}

static void ask(struct bh_reviews *r, const char *key)
{
    (void)ask_from(r, key, "192.0.2.1");
}

static void test_answers_are_remembered(void)
{
    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    ask(r, "a");
    ask(r, "a"); /* while it is under way */
    wait_done(2);
    ask(r, "a");
    CU_ASSERT_EQUAL(fx.done, 3); /* at once */
    CU_ASSERT_EQUAL(fx.asked, 1);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_YES);
    fx.now_ns += 100; /* its time is over */
    fx.status = "{\"allowed\":false,\"reason\":\"so\"}";
    ask(r, "a");
    wait_done(4);
    CU_ASSERT_EQUAL(fx.asked, 2);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_NO);
    CU_ASSERT_STRING_EQUAL(fx.why, "so");
    fx.now_ns += 10; /* a no is kept for less long */
    ask(r, "a");
    wait_done(5);
    CU_ASSERT_EQUAL(fx.asked, 3);
    bh_reviews_free(r);
    end();
}

static void on_while(uv_timer_t *t)
{
    uv_close((uv_handle_t *)t, NULL);
}

/* A question that is out is not asked a second time, however long the answer takes. */
static void test_a_slow_answer_is_waited_for(void)
{
    uv_timer_t some_while;

    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews(); /* tries again after a millisecond */
    fx.silent = true;
    ask(r, "a");
    while (!fx.asked)
        uv_run(&fx.loop, UV_RUN_ONCE);
    uv_timer_init(&fx.loop, &some_while);
    uv_timer_start(&some_while, on_while, 20, 0);
    while (!uv_is_closing((uv_handle_t *)&some_while))
        uv_run(&fx.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(fx.asked, 1);
    bh_reviews_free(r);
    end();
}

static void test_failures_are_repeated_and_not_remembered(void)
{
    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    fx.failures_left = BH_REVIEW_TRIES - 1;
    ask(r, "a");
    wait_done(1);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_YES);
    CU_ASSERT_EQUAL(fx.asked, BH_REVIEW_TRIES);
    fx.failures_left = BH_REVIEW_TRIES;
    ask(r, "b");
    wait_done(2);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
    CU_ASSERT_EQUAL(bh_reviews_count(r), 1); /* a */
    fx.code = 403;                           /* will not pass: once */
    fx.asked = 0;
    ask(r, "c");
    wait_done(3);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
    CU_ASSERT_EQUAL(fx.asked, 1);
    fx.code = 201;
    fx.status = "3,\"nonsense\":1"; /* status is no object */
    ask(r, "d");
    wait_done(4);
    CU_ASSERT_NOT_EQUAL(fx.is, BH_VERDICT_YES);
    fx.status = "{";
    ask(r, "e");
    wait_done(5);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
    bh_reviews_free(r);
    end();
}

static void test_the_end_answers_everybody(void)
{
    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    ask(r, "a");
    ask(r, "a");
    ask(r, "b");
    bh_reviews_free(r);
    CU_ASSERT_EQUAL(fx.done, 3);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
    end();
}

static void test_memory_is_bounded(void)
{
    char key[32];

    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    for (unsigned i = 0; i < BH_REVIEW_ENTRIES + 100; i++) {
        snprintf(key, sizeof(key), "%u", i);
        ask(r, key);
        wait_done(i + 1);
    }
    CU_ASSERT_EQUAL(bh_reviews_count(r), BH_REVIEW_ENTRIES);
    fx.asked = 0;
    ask(r, key); /* the newest is there, the oldest is not */
    ask(r, "0");
    wait_done(BH_REVIEW_ENTRIES + 102);
    CU_ASSERT_EQUAL(fx.asked, 1);
    bh_reviews_free(r);
    end();
}

/* Who has a turn, who waits for one, who is sent away. */
static void test_questions_are_bounded(void)
{
    char key[32], from[32];

    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    fx.silent = true;
    for (unsigned i = 0; i < 40; i++) {
        snprintf(key, sizeof(key), "one-%u", i);
        ask(r, key);
    }
    while (fx.asked < BH_REVIEW_ASKED_EACH)
        uv_run(&fx.loop, UV_RUN_ONCE);
    CU_ASSERT_PTR_NOT_NULL(ask_from(r, "other", "192.0.2.2")); /* another address has its turn */
    while (fx.asked < BH_REVIEW_ASKED_EACH + 1)
        uv_run(&fx.loop, UV_RUN_ONCE);
    for (unsigned i = 0; fx.done == 0 && i < 1000; i++) {
        snprintf(key, sizeof(key), "many-%u", i);
        snprintf(from, sizeof(from), "192.0.2.%u", 3 + i % 200);
        (void)ask_from(r, key, from);
    }
    CU_ASSERT_EQUAL(fx.busy, 1); /* at once */
    CU_ASSERT_EQUAL(bh_reviews_count(r), BH_REVIEW_ASKED + BH_REVIEW_WAITING);
    while (fx.asked < BH_REVIEW_ASKED)
        uv_run(&fx.loop, UV_RUN_ONCE);
    uv_run(&fx.loop, UV_RUN_NOWAIT);
    CU_ASSERT_EQUAL(fx.asked, BH_REVIEW_ASKED);
    CU_ASSERT_PTR_NOT_NULL(ask_from(r, "one-0", "192.0.2.9")); /* one more for the same question */
    bh_reviews_free(r);
    CU_ASSERT_EQUAL(fx.done, BH_REVIEW_ASKED + BH_REVIEW_WAITING + 2);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
    end();
}

static void test_turns_come_round(void)
{
    char key[32];

    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "%u", i);
        ask(r, key);
    }
    wait_done(100);
    CU_ASSERT_EQUAL(fx.busy, 0);
    CU_ASSERT_EQUAL(fx.asked, 100);
    bh_reviews_free(r);
    end();
}

static void test_nobody_waits_for_ever(void)
{
    char key[32];

    begin("{\"allowed\":true}");
    fx.wait_ns = 20000000;
    struct bh_reviews *r = reviews();
    fx.silent = true;
    for (unsigned i = 0; i < BH_REVIEW_ASKED_EACH + 3; i++) {
        snprintf(key, sizeof(key), "%u", i);
        ask(r, key);
    }
    wait_done(3);
    CU_ASSERT_EQUAL(fx.busy, 3);
    CU_ASSERT_EQUAL(bh_reviews_count(r), BH_REVIEW_ASKED_EACH);
    bh_reviews_free(r);
    end();
}

static void test_questions_are_taken_back(void)
{
    begin("{\"allowed\":true}");
    struct bh_metrics *m = bh_metrics_new();
    struct bh_reviews_options o = {.client = fx.client, .form = &form_x};
    bh_reviews_metrics(&o, m, "x_total", "X.");
    struct bh_reviews *r = bh_reviews_new(&fx.loop, &o);
    fx.silent = true;
    struct bh_review_wait *first = ask_from(r, "a", ""), *second = ask_from(r, "a", "");
    struct bh_review_wait *queued = NULL;
    for (unsigned i = 0; i < BH_REVIEW_ASKED_EACH; i++) {
        char key[2] = {(char)('b' + i), '\0'};
        queued = ask_from(r, key, "");
    }
    while (fx.asked < BH_REVIEW_ASKED_EACH)
        uv_run(&fx.loop, UV_RUN_ONCE);
    bh_reviews_cancel(first);
    CU_ASSERT_EQUAL(bh_reviews_count(r), BH_REVIEW_ASKED_EACH + 1);
    fx.silent = false;
    bh_reviews_cancel(second); /* the last one: whoever waits has its turn */
    CU_ASSERT_EQUAL(bh_reviews_count(r), BH_REVIEW_ASKED_EACH);
    wait_done(1);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_YES);
    CU_ASSERT_PTR_NOT_NULL(queued); /* it was the one that has been told */
    while (!fx.taken_back)
        uv_run(&fx.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(fx.taken_back, 1);
    struct bh_buf out = {0};
    bh_metrics_render(m, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "x_total{what=\"canceled\"} 1\n"));
    bh_buf_fini(&out);
    bh_reviews_free(r);
    CU_ASSERT_EQUAL(fx.done, BH_REVIEW_ASKED_EACH);
    bh_metrics_free(m);
    end();
}

static void test_a_good_answer_outlives_many_bad_ones(void)
{
    char key[32];

    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    ask(r, "good");
    wait_done(1);
    fx.status = "{\"allowed\":false}";
    fx.now_ns += 95; /* a no of now outlives it */
    for (unsigned i = 0; i < BH_REVIEW_ENTRIES + 10; i++) {
        snprintf(key, sizeof(key), "%u", i);
        ask(r, key);
        wait_done(i + 2);
    }
    CU_ASSERT_EQUAL(bh_reviews_count(r), BH_REVIEW_ENTRIES);
    fx.asked = 0;
    ask(r, "good");
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_YES);
    CU_ASSERT_EQUAL(fx.asked, 0);
    fx.now_ns += 7; /* its time is over: it goes before a no */
    ask(r, "one more");
    wait_done(BH_REVIEW_ENTRIES + 13);
    CU_ASSERT_EQUAL(bh_reviews_count(r), BH_REVIEW_ENTRIES);
    ask(r, "11"); /* the oldest no that there was room for */
    CU_ASSERT_EQUAL(fx.done, BH_REVIEW_ENTRIES + 14);
    CU_ASSERT_EQUAL(fx.asked, 1);
    bh_reviews_free(r);
    end();
}

static struct bh_review_wait *other;

static void on_first(void *arg, const struct bh_verdict *v)
{
    on_verdict(arg, v);
    bh_reviews_cancel(other);
}

static void test_whoever_is_told_may_cancel_others(void)
{
    struct bh_buf body = {0};

    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    bh_buf_adds(&body, "{}");
    (void)bh_reviews_ask(r, "a", 1, &body, "", on_first, NULL);
    other = ask_from(r, "a", "");
    wait_done(1);
    ask(r, "b");
    wait_done(2);
    CU_ASSERT_EQUAL(fx.asked, 2);
    bh_buf_fini(&body);
    bh_reviews_free(r);
    end();
}

static void test_a_client_that_ends(void)
{
    begin("{\"allowed\":true}");
    struct bh_reviews *r = reviews();
    CU_ASSERT_PTR_NOT_NULL(ask_from(r, "a", "")); /* who asks outlives no client: it is told */
    bh_api_client_free(bh_take_ptr(fx.client));
    wait_done(1);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
    bh_reviews_free(r);
    end();
}

/* ---- authorization --------------------------------------------------------------------------- */

static void test_authorization(void)
{
    const char *paths[] = {"/healthz", "/open/*"};
    const struct bh_authz_flags flags = {.always_allow_paths = {paths, 2},
                                         .authorized_ttl_ns = 1000000000,
                                         .unauthorized_ttl_ns = 1000000000};
    struct bh_err err;
    struct bh_authz *a;

    begin("{\"allowed\":false,\"reason\":\"no\"}");
    const struct bh_authz_options o = {&flags, fx.client, NULL};
    CU_ASSERT_EQUAL_FATAL(bh_authz_new(&fx.loop, &o, &a, &err), 0);
    struct bh_user *u = bh_user_new("al\"ice", "7");
    bh_user_add_group(u, "dev");
    bh_user_add_extra(u, "k", "1");
    bh_user_add_extra(u, "other", "x");
    bh_user_add_extra(u, "k", "2");
    bh_authz_ask(a, u, "get", "/open/x", "", on_verdict, NULL);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_YES);
    bh_authz_ask(a, u, "get", "/metrics", "", on_verdict, NULL);
    wait_done(2);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_NO);
    CU_ASSERT_STRING_EQUAL(fx.why, "no");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(fx.body, "\"spec\":{\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":"
                        "\"get\"},\"user\":\"al\\\"ice\",\"groups\":[\"dev\"],\"uid\":\"7\","
                        "\"extra\":{\"k\":[\"1\",\"2\"],\"other\":[\"x\"]}}"));
    bh_user_add_group(u, BH_GROUP_MASTERS);
    bh_authz_ask(a, u, "delete", "/metrics", "", on_verdict, NULL);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_YES);
    CU_ASSERT_EQUAL(fx.asked, 1);
    bh_user_unref(u);
    bh_authz_free(a);
    end();
}

/* Upstream's limit for a key: what is longer is asked each time. */
static void test_long_questions_are_not_remembered(void)
{
    static char path[20000];
    const struct bh_authz_flags flags = {.authorized_ttl_ns = 1000000000000};
    struct bh_err err;
    struct bh_authz *a;

    begin("{\"allowed\":true}");
    const struct bh_authz_options o = {&flags, fx.client, NULL};
    CU_ASSERT_EQUAL_FATAL(bh_authz_new(&fx.loop, &o, &a, &err), 0);
    struct bh_user *u = bh_user_new("u", NULL);
    /* around the path stand 164 bytes */
    static const size_t lengths[] = {9836, 9836, 9837, 9837};
    static const unsigned asked[] = {1, 1, 2, 3};
    for (size_t i = 0; i < BH_ARRAY_LEN(lengths); i++) {
        memset(path, '/', lengths[i]);
        path[lengths[i]] = '\0';
        bh_authz_ask(a, u, "get", path, "", on_verdict, NULL);
        wait_done((unsigned)i + 1);
        CU_ASSERT_EQUAL(fx.asked, asked[i]);
    }
    bh_authz_forget(a);
    bh_user_unref(u);
    bh_authz_free(a);
    end();
}

static struct bh_user *known;

static struct bh_verdict *judge_known(const struct bh_json *status)
{
    struct bh_verdict *v = judge(status);

    v->user = bh_user_ref(known);
    return v;
}

static void test_nothing_is_held_for_ever(void)
{
    begin("{\"allowed\":true}");
    const struct bh_review_form form = {"X", "x/v1", "/x", judge_known};
    const struct bh_reviews_options o = {
        .client = fx.client, .form = &form, .yes_ttl_ns = 1000000000000};
    known = bh_user_new("u", NULL);
    struct bh_reviews *r = bh_reviews_new(&fx.loop, &o);
    ask(r, "a");
    wait_done(1);
    for (unsigned i = 0; i < 3; i++)
        ask(r, "a");
    CU_ASSERT_EQUAL(fx.done, 4);
    CU_ASSERT_EQUAL(known->refs, 2);
    bh_reviews_forget(r);
    CU_ASSERT_EQUAL(known->refs, 1); /* each who was told has let go */
    bh_user_unref(known);
    bh_reviews_free(r);
    end();
}

static void test_paths(void)
{
    const char *paths[] = {"/healthz", "/a/*", "/b*", "", "/x*y"};
    const struct bh_opt_list l = {paths, 4};
    const struct bh_authz_flags bad = {.always_allow_paths = {paths, 5}};
    const struct bh_authz_options o = {.flags = &bad};
    struct bh_authz *a;
    struct bh_err err;

    CU_ASSERT(bh_authz_path_allowed(&l, "/healthz"));
    CU_ASSERT(!bh_authz_path_allowed(&l, "/healthz/"));
    CU_ASSERT(!bh_authz_path_allowed(&l, "/healthzz"));
    CU_ASSERT(bh_authz_path_allowed(&l, "/a/x/y"));
    CU_ASSERT(!bh_authz_path_allowed(&l, "/a"));
    CU_ASSERT(bh_authz_path_allowed(&l, "/bcd"));
    CU_ASSERT(!bh_authz_path_allowed(&l, "/"));
    CU_ASSERT_EQUAL(bh_authz_new(NULL, &o, &a, &err), -EINVAL);
}

/* ---- authentication -------------------------------------------------------------------------- */

static void on_user(void *arg, const struct bh_verdict *v)
{
    const struct bh_user *u = v->user;

    on_verdict(arg, v);
    snprintf(fx.name, sizeof(fx.name), "%s", u ? u->name : "");
    fx.in_masters = u && bh_user_in(u, BH_GROUP_MASTERS) && bh_user_in(u, BH_GROUP_AUTHENTICATED);
}

static void call_with(struct bh_authn *a, const char *authorization)
{
    const struct bh_front_header h[] = {{"authorization", authorization ? authorization : ""}};
    const struct bh_credentials c = {.headers = h, .n_headers = 1, .from = ""};
    unsigned before = fx.done;

    bh_authn_ask(a, &c, on_user, NULL);
    wait_done(before + 1);
}

static void test_tokens(void)
{
    const struct bh_authn_flags flags = {.skip_lookup = true, .token_cache_ttl_ns = 1000000000};
    struct bh_authn *a;
    struct bh_err err;

    begin("{\"authenticated\":true,\"user\":{\"username\":\"root\",\"uid\":\"1\",\"groups\":"
          "[\"system:masters\"],\"extra\":{\"a\":[\"b\"]}}}");
    const struct bh_authn_options o = {&flags, fx.client, NULL};
    CU_ASSERT_EQUAL_FATAL(bh_authn_new(&fx.loop, &o, &a, &err), 0);
    call_with(a, "Bearer good");
    CU_ASSERT_STRING_EQUAL(fx.name, "root");
    CU_ASSERT(fx.in_masters);
    CU_ASSERT_PTR_NOT_NULL(strstr(fx.body, "\"spec\":{\"token\":\"good\"}"));
    fx.status = "{\"authenticated\":false}";
    call_with(a, "bearer bad");
    CU_ASSERT_STRING_EQUAL(fx.name, "");
    CU_ASSERT_STRING_EQUAL(fx.why, "invalid bearer token");
    call_with(a, "Bearer good");
    CU_ASSERT_STRING_EQUAL(fx.name, "root");
    CU_ASSERT_EQUAL(fx.asked, 2);
    fx.status = "{\"authenticated\":true}"; /* as whom? */
    call_with(a, "Bearer odd");
    CU_ASSERT_STRING_EQUAL(fx.name, "");
    call_with(a, "Basic eDp5");
    CU_ASSERT_STRING_EQUAL(fx.name, BH_USER_ANONYMOUS);
    call_with(a, NULL);
    CU_ASSERT_STRING_EQUAL(fx.name, BH_USER_ANONYMOUS);
    bh_authn_free(a);
    end();
}

/* What a server of tokens may answer so that a caller would be taken for another. */
static void test_forged_token_reviews_name_no_user(void)
{
    static const char good[] =
        "\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\"";
    static const struct {
        const char *form, *status;
    } cases[] = {
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"groups\":[\"system:"
               "masters\\u0000x\"]}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"root\\u0000x\"}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"\\u0000\"}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"uid\":\"1\\u0000\"}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"extra\":{\"a\":["
               "\"b\\u0000c\"]}}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"extra\":{\"a\\u0000\":["
               "\"b\"]}}}"},
        {good,
         "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"groups\":\"system:masters\"}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"groups\":[1]}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"uid\":1}}"},
        {good, "{\"authenticated\":true,\"user\":{\"username\":\"eve\",\"extra\":{\"a\":\"b\"}}}"},
        {good, "[{\"authenticated\":true,\"user\":{\"username\":\"eve\"}}]"},
        {"\"kind\":\"Status\",\"apiVersion\":\"v1\"",
         "{\"authenticated\":true,\"user\":{\"username\":\"eve\"}}"},
        {"\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1beta1\"",
         "{\"authenticated\":true,\"user\":{\"username\":\"eve\"}}"},
        {"\"kind\":\"TokenReview\\u0000\",\"apiVersion\":\"authentication.k8s.io/v1\"",
         "{\"authenticated\":true,\"user\":{\"username\":\"eve\"}}"},
        {"\"apiVersion\":\"authentication.k8s.io/v1\"",
         "{\"authenticated\":true,\"user\":{\"username\":\"eve\"}}"},
    };
    const struct bh_authn_flags flags = {.skip_lookup = true, .token_cache_ttl_ns = 1000000000};
    struct bh_authn *a;
    struct bh_err err;
    char header[32];

    begin("");
    const struct bh_authn_options o = {&flags, fx.client, NULL};
    CU_ASSERT_EQUAL_FATAL(bh_authn_new(&fx.loop, &o, &a, &err), 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        fx.form = cases[i].form;
        fx.status = cases[i].status;
        snprintf(header, sizeof(header), "Bearer t%zu", i);
        call_with(a, header);
        CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
        CU_ASSERT_STRING_EQUAL(fx.name, "");
        CU_ASSERT_FALSE(fx.in_masters);
        if (fx.is != BH_VERDICT_ERROR)
            printf("case %zu names \"%s\"\n", i, fx.name);
    }
    bh_authn_free(a);
    end();
}

static void test_answer_of_another_kind_allows_nothing(void)
{
    static const char *const forms[] = {
        "\"kind\":\"Status\",\"apiVersion\":\"v1\"",
        "\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\"",
        "\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1beta1\"",
        "\"kind\":\"SubjectAccessReview\"",
        ("\"a\":\"\\u0000\",\"kind\":\"SubjectAccessReview\","
         "\"apiVersion\":\"authorization.k8s.io/v1\""),
    };
    const struct bh_authz_flags flags = {.authorized_ttl_ns = 1000000000};
    struct bh_authz *a;
    struct bh_err err;

    begin("{\"allowed\":true}");
    const struct bh_authz_options o = {.flags = &flags, .client = fx.client};
    CU_ASSERT_EQUAL_FATAL(bh_authz_new(&fx.loop, &o, &a, &err), 0);
    struct bh_user *u = bh_user_new("eve", NULL);
    for (unsigned i = 0; i < BH_ARRAY_LEN(forms); i++) {
        fx.form = forms[i];
        (void)bh_authz_ask(a, u, "get", "/metrics", "", on_verdict, NULL);
        wait_done(i + 1);
        CU_ASSERT_EQUAL(fx.is, BH_VERDICT_ERROR);
        CU_ASSERT_PTR_NOT_NULL(
            strstr(fx.why, "is not a SubjectAccessReview of authorization.k8s.io/v1: "));
    }
    fx.form = NULL;
    (void)bh_authz_ask(a, u, "get", "/metrics", "", on_verdict, NULL);
    wait_done(BH_ARRAY_LEN(forms) + 1);
    CU_ASSERT_EQUAL(fx.is, BH_VERDICT_YES);
    bh_user_unref(u);
    bh_authz_free(a);
    end();
}

static void escape(const char *pem, char *out, size_t size)
{
    size_t n = 0;

    for (; *pem && n + 3 < size; pem++)
        n += (size_t)snprintf(out + n, size - n, *pem == '\n' ? "\\n" : "%c", *pem);
}

static void settle(struct bh_authn *a)
{
    while (!bh_authn_settled(a))
        uv_run(&fx.loop, UV_RUN_ONCE);
}

static void call_with_cert(struct bh_authn *a, const struct cert *cert)
{
    const struct bh_credentials c = {.certs = &cert->der, .n_certs = 1, .from = ""};

    bh_authn_ask(a, &c, on_user, NULL);
}

static void test_authorities_of_the_configmap(void)
{
    const struct bh_authn_flags flags = {.tolerate_lookup_failure = true};
    struct cert ca = cert_make("ca", NULL, NULL, NULL, 3);
    struct cert next = cert_make("next", NULL, NULL, NULL, 3);
    struct cert alice = cert_make("alice", NULL, &ca, "clientAuth", 3);
    struct cert bob = cert_make("bob", NULL, &next, "clientAuth", 3);
    static char pem[2000], status[4100];
    struct bh_authn *a;
    struct bh_err err;

    escape(ca.pem, pem, sizeof(pem));
    snprintf(status, sizeof(status), "0,\"data\":{\"client-ca-file\":\"%s\"}", pem);
    begin(status);
    fx.code = 200;
    const struct bh_authn_options o = {&flags, fx.client, NULL};
    CU_ASSERT_EQUAL_FATAL(bh_authn_new(&fx.loop, &o, &a, &err), 0);
    CU_ASSERT(!bh_authn_settled(a));
    CU_ASSERT(bh_api_in_flight(fx.client) == 1); /* at once, not when the timer says so */
    settle(a);
    CU_ASSERT_EQUAL(fx.asked, 1);
    call_with_cert(a, &alice);
    CU_ASSERT_STRING_EQUAL(fx.name, "alice");
    call_with_cert(a, &bob);
    CU_ASSERT_STRING_EQUAL(fx.name, "");
    escape(next.pem, pem, sizeof(pem));
    snprintf(status, sizeof(status),
             "0,\"data\":{\"client-ca-file\":\"%s\",\"requestheader-client-ca-file\":\"%s\"}", pem,
             pem);
    bh_authn_reload(a); /* both authorities are others now */
    CU_ASSERT(bh_api_in_flight(fx.client) == 1);
    for (unsigned i = 0; !bh_streq(fx.name, "bob"); i++) {
        uv_run(&fx.loop, UV_RUN_ONCE);
        call_with_cert(a, &bob);
    }
    static const int codes[] = {500, 404, 200};
    fx.status = "0,\"data\":{\"client-ca-file\":\"junk\"}";
    for (size_t i = 0; i < BH_ARRAY_LEN(codes); i++) { /* what cannot be read stays as it was */
        fx.code = codes[i];
        unsigned before = fx.asked;
        bh_authn_reload(a);
        while (fx.asked == before)
            uv_run(&fx.loop, UV_RUN_ONCE);
        for (unsigned k = 0; k < 10; k++)
            uv_run(&fx.loop, UV_RUN_NOWAIT);
        call_with_cert(a, &bob);
        CU_ASSERT_STRING_EQUAL(fx.name, "bob");
        CU_ASSERT_PTR_NULL(bh_authn_failure(a));
    }
    bh_authn_free(a);
    end();
    cert_free(&ca), cert_free(&next), cert_free(&alice), cert_free(&bob);
}

static void test_an_authority_of_a_file(void)
{
    char path[300], wanted[400];
    const struct bh_authn_flags flags = {.client_ca_file = path};
    const struct bh_authn_options o = {&flags, NULL, NULL};
    struct cert ca = cert_make("ca", NULL, NULL, NULL, 3);
    struct cert alice = cert_make("alice", NULL, &ca, "clientAuth", 3);
    struct bh_authn *a;
    struct bh_err err;

    begin("{}");
    snprintf(path, sizeof(path), "%s/client-ca.pem", bh_test_tmpdir());
    CU_ASSERT_FATAL(bh_write_file(path, ca.pem, strlen(ca.pem), 0600) == 0);
    CU_ASSERT_EQUAL_FATAL(bh_authn_new(&fx.loop, &o, &a, &err), 0);
    call_with_cert(a, &alice);
    CU_ASSERT_STRING_EQUAL(fx.name, "alice");
    bh_authn_free(a);
    CU_ASSERT_FATAL(bh_write_file(path, "junk", 4, 0600) == 0);
    CU_ASSERT(bh_authn_new(&fx.loop, &o, &a, &err) < 0);
    snprintf(wanted, sizeof(wanted), "--client-ca-file: %s: ", path);
    CU_ASSERT(strncmp(err.msg, wanted, strlen(wanted)) == 0);
    end();
    cert_free(&ca), cert_free(&alice);
}

static void test_a_first_look_that_must_not_fail(void)
{
    const struct bh_authn_flags flags = {.tolerate_lookup_failure = false};
    struct bh_authn *a;
    struct bh_err err;

    begin("0");
    fx.code = 500;
    const struct bh_authn_options o = {&flags, fx.client, NULL};
    CU_ASSERT_EQUAL_FATAL(bh_authn_new(&fx.loop, &o, &a, &err), 0);
    settle(a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bh_authn_failure(a));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_authn_failure(a), "the API server answered with 500"));
    bh_authn_free(a);
    CU_ASSERT_EQUAL_FATAL(bh_authn_new(&fx.loop, &o, &a, &err), 0);
    bh_authn_free(a); /* while it looks */
    end();
}

static void test_without_anybody_to_ask(void)
{
    const struct bh_authn_flags flags = {0};
    const struct bh_authn_options o = {&flags, NULL, NULL};
    struct bh_authn *a;
    struct bh_err err;

    begin("{}");
    CU_ASSERT_EQUAL_FATAL(bh_authn_new(&fx.loop, &o, &a, &err), 0);
    call_with(a, "Bearer good");
    CU_ASSERT_STRING_EQUAL(fx.name, BH_USER_ANONYMOUS);
    CU_ASSERT_EQUAL(fx.asked, 0);
    bh_authn_free(a);
    end();
}

static void test_bearer(void)
{
    CU_ASSERT_STRING_EQUAL(bh_bearer_token("Bearer x"), "x");
    CU_ASSERT_STRING_EQUAL(bh_bearer_token("  bEARER x"), "x");
    CU_ASSERT_PTR_NULL(bh_bearer_token(NULL));
    CU_ASSERT_PTR_NULL(bh_bearer_token("Bearer"));
    CU_ASSERT_PTR_NULL(bh_bearer_token("Bearer "));
    CU_ASSERT_PTR_NULL(bh_bearer_token("Bearer  x"));
    CU_ASSERT_PTR_NULL(bh_bearer_token("Basic x"));
}

static int read_extension(const char *text, struct bh_front_proxy *p, struct bh_err *err)
{
    struct bh_ca *ca = NULL;
    struct bh_arena a;
    struct bh_json *v;

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, text, strlen(text), 0, &v, err), 0);
    int rc = bh_extension_read(v, &ca, p, err);
    bh_arena_fini(&a);
    bh_ca_free(ca);
    return rc;
}

static void test_front_proxy_headers(void)
{
    struct bh_front_proxy p = {0};
    struct bh_err err = {""};
    struct bh_front_header h[] = {{"x-remote-user", "bob"},     {"X-Remote-Group", "one"},
                                  {"X-REMOTE-GROUP", "two"},    {"X-Remote-Extra-A%2fB", "v"},
                                  {"X-Remote-Extra-C%zz", "w"}, {"X-Other", "n"}};
    struct bh_credentials c = {.headers = h, .n_headers = BH_ARRAY_LEN(h)};

    CU_ASSERT_EQUAL(
        read_extension("{\"data\":{\"requestheader-username-headers\":\"[\\\"X-Remote-User\\\"]\","
                       "\"requestheader-group-headers\":\"[\\\"X-Remote-Group\\\"]\","
                       "\"requestheader-extra-headers-prefix\":\"[\\\"X-Remote-Extra-\\\"]\"}}",
                       &p, &err),
        0);
    struct bh_user *u = bh_front_proxy_user(&p, &c);
    CU_ASSERT_PTR_NOT_NULL_FATAL(u);
    CU_ASSERT_STRING_EQUAL(u->name, "bob");
    CU_ASSERT_EQUAL(u->n_groups, 2);
    CU_ASSERT_EQUAL_FATAL(u->n_extra, 2);
    CU_ASSERT_STRING_EQUAL(u->extra[0].key, "a/b");
    CU_ASSERT_STRING_EQUAL(u->extra[1].key, "c%zz");
    bh_user_unref(u);
    h[0].value = "";
    CU_ASSERT_PTR_NULL(bh_front_proxy_user(&p, &c));
    bh_front_proxy_fini(&p);
}

static void test_bad_configmaps(void)
{
    static const char *const bad[] = {
        "{\"data\":{\"client-ca-file\":\"no certificate\"}}",
        "{\"data\":{\"requestheader-client-ca-file\":\"x\"}}",
        "{\"data\":{\"requestheader-allowed-names\":\"[\"}}",
        "{\"data\":{\"requestheader-group-headers\":\"{}\"}}",
    };
    struct bh_front_proxy p = {0};
    struct bh_err err;

    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(read_extension(bad[i], &p, &err), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "data["));
        CU_ASSERT_PTR_NULL(p.ca);
    }
    CU_ASSERT_EQUAL(read_extension("{}", &p, &err), 0);
}

/* ---- flags of TLS ---------------------------------------------------------------------------- */

static void priorities(const char *min, const char *suite, const char *curve, int rc,
                       const char *text)
{
    const struct bh_opt_list l = {&suite, suite != NULL};
    const struct bh_opt_list curves = {&curve, curve != NULL};
    struct bh_buf out = {0};
    struct bh_err err = {""};

    CU_ASSERT_EQUAL(bh_tls_priorities(min, &l, &curves, &out, &err), rc);
    CU_ASSERT_STRING_EQUAL(rc ? err.msg : bh_buf_str(&out), text);
    bh_buf_fini(&out);
}

static void test_tls_flags(void)
{
    priorities("", NULL, NULL, 0, "NORMAL:-RSA:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2");
    priorities("VersionTLS13", NULL, NULL, 0, "NORMAL:-RSA:-VERS-ALL:+VERS-TLS1.3");
    priorities("VersionTLS9", NULL, NULL, -EINVAL, "unknown tls version \"VersionTLS9\"");
    priorities(NULL, "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", NULL, 0,
               "NORMAL:-CIPHER-ALL:-KX-ALL:-MAC-ALL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:"
               "+AES-128-CBC:+SHA1:+ECDHE-RSA:-VERS-TLS1.3");
    priorities(NULL, NULL, "29", 0,
               "NORMAL:-RSA:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-GROUP-ALL:+GROUP-X25519");
    priorities(NULL, NULL, "4588", -ENOTSUP,
               "curve 4588 is not available in GnuTLS; 23, 24, 25 and 29 are");
    priorities(NULL, "FOO", NULL, -EINVAL, "Cipher suite FOO not supported or doesn't exist");
    priorities(NULL, "TLS_RSA_WITH_RC4_128_SHA", NULL, -ENOTSUP,
               "Cipher suite TLS_RSA_WITH_RC4_128_SHA is not available in GnuTLS");
}

BH_TESTS("front/access", {"a slow answer is waited for", test_a_slow_answer_is_waited_for},
         {"answers are remembered", test_answers_are_remembered},
         {"failures are repeated", test_failures_are_repeated_and_not_remembered},
         {"the end answers everybody", test_the_end_answers_everybody},
         {"memory is bounded", test_memory_is_bounded},
         {"questions are bounded", test_questions_are_bounded},
         {"turns come round", test_turns_come_round},
         {"nobody waits for ever", test_nobody_waits_for_ever},
         {"questions are taken back", test_questions_are_taken_back},
         {"a good answer outlives bad ones", test_a_good_answer_outlives_many_bad_ones},
         {"who is told may cancel", test_whoever_is_told_may_cancel_others},
         {"a client that ends", test_a_client_that_ends}, {"authorization", test_authorization},
         {"long questions", test_long_questions_are_not_remembered},
         {"nothing is held for ever", test_nothing_is_held_for_ever},
         {"always allowed paths", test_paths},
         {"authorities of the configmap", test_authorities_of_the_configmap},
         {"a first look that must not fail", test_a_first_look_that_must_not_fail},
         {"tokens", test_tokens},
         {"forged token reviews name no user", test_forged_token_reviews_name_no_user},
         {"an answer of another kind allows nothing", test_answer_of_another_kind_allows_nothing},
         {"nobody to ask", test_without_anybody_to_ask},
         {"an authority of a file", test_an_authority_of_a_file}, {"bearer", test_bearer},
         {"headers of a proxy", test_front_proxy_headers}, {"bad configmaps", test_bad_configmaps},
         {"flags of TLS", test_tls_flags})
