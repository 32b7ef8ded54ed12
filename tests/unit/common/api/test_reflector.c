/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_reflector.c - LIST and WATCH against a server that does what it likes
 *
 * The server is a script: each request takes the next step. What the consumer has seen is folded
 * into a set, which must equal the server's; every delivery is also written down as text.
 */
#include "common/api/reflector_int.h"
#include "tests/unit/common/api/reflector_env.h"

static void list_empty_10(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 200, LIST("10", ""));
}

static void gone_410(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 410, EXPIRED);
}

/* ---- the normal course ----------------------------------------------------------------------- */

static void watch_changes(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "watch=true"));
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "allowWatchBookmarks=true"));
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "resourceVersion=10&"));
    raw_stream(c, "application/json");
    raw_chunks(c, EVENT("ADDED", ITEM("c", "uc", "11")) EVENT("MODIFIED", ITEM("a", "ua", "12")));
    raw_chunks(c, "{\"type\":\"DELETED\",\"obj"); /* cut anywhere */
    raw_chunks(c, "ect\":" ITEM("b", "ub", "13") "}\n" BOOKMARK("20"));
    raw_stream_end(c);
}

static void watch_from_20(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "resourceVersion=20&")); /* the bookmark counted */
    raw_stream(c, "application/json");
    raw_chunks(c, EVENT("ADDED", ITEM("d", "ud", "21")));
}

static void test_normal(void)
{
    static step_fn *const steps[] = {list_ab, watch_changes, watch_from_20};
    struct env e = {.kind = BH_KIND_NODE};
    struct bh_reflector_stats st;
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 | +c/uc@11 ~a/ua@12 -b/ub@13 +d/ud@21 ");
    CU_ASSERT_EQUAL(
        strncmp(bh_buf_str(&e.targets), "/api/v1/nodes?limit=500&resourceVersion=0\n", 42), 0);
    bh_reflector_stats(e.reflector, &st);
    CU_ASSERT_EQUAL(st.lists, 1);
    CU_ASSERT_EQUAL(st.watches, 2);
    CU_ASSERT_EQUAL(st.bookmarks, 1);
    CU_ASSERT_EQUAL(st.objects, 3);
    finish(&e);
}

static void test_field_selector(void)
{
    static step_fn *const steps[] = {list_empty_10, watch_silent};
    struct env e = {.kind = BH_KIND_POD};
    play(&e, steps, 2, "| ");
    const char *selector =
        "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed\n";
    const char *first = strstr(bh_buf_str(&e.targets), selector);
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NOT_NULL(strstr(first + 1, selector)); /* list and watch */
    finish(&e);
}

static void page_1(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 200, PAGE("10", "tok en", ITEM("a", "ua", "5")));
}

static void page_2(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_STRING_EQUAL(target, "/api/v1/nodes?limit=500&continue=tok%20en");
    raw_json(c, 200, LIST("10", ITEM("b", "ub", "6")));
}

static void test_pages(void)
{
    static step_fn *const steps[] = {page_1, page_2, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 | ");
    finish(&e);
}

/* ---- 410 in all its forms -------------------------------------------------------------------- */

static void list_consistent(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_STRING_EQUAL(target, "/api/v1/nodes?limit=500&resourceVersion=");
    /* b vanished, a changed, c is new, d is another one of that name */
    raw_json(c, 200, LIST("30", ITEM("a", "ua", "25") "," ITEM("c", "uc", "26")));
}

static void test_410_status(void)
{
    static step_fn *const steps[] = {list_ab, gone_410, list_consistent, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | ~a/ua@25 +c/uc@26 -b/ub@6? | ");
    CU_ASSERT_EQUAL(e.relists, 1);
    finish(&e);
}

static void watch_410_inside(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
    raw_chunks(c, EVENT("MODIFIED", ITEM("a", "ua", "11")) EVENT("ERROR", EXPIRED));
}

static void test_410_in_stream(void)
{
    static step_fn *const steps[] = {list_ab, watch_410_inside, list_consistent, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | ~a/ua@11 ~a/ua@25 +c/uc@26 -b/ub@6? | ");
    finish(&e);
}

/* A server that has everything expire again at once. Waits of at least 0.08, 0.16 and 0.32 s. */
static void relists_are_spaced(step_fn *expire, const char *want)
{
    step_fn *const steps[] = {list_ab, expire,  list_ab, expire,  list_ab,
                              expire,  list_ab, expire,  list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_NODE, .hurry = 10};
    const uint64_t start = bh_mono_ns();
    play(&e, steps, BH_ARRAY_LEN(steps), want);
    CU_ASSERT(bh_mono_ns() - start >= UINT64_C(550) * 1000000);
    CU_ASSERT_EQUAL(e.relists, 4);
    finish(&e);
}

static void test_410_status_again_and_again(void)
{
    relists_are_spaced(gone_410, "+a/ua@5 +b/ub@6 | | | | | ");
}

/* That an event came first is no sign of health. */
static void test_410_in_stream_again_and_again(void)
{
    relists_are_spaced(watch_410_inside, "+a/ua@5 +b/ub@6 | ~a/ua@11 ~a/ua@5 | ~a/ua@11 ~a/ua@5 | "
                                         "~a/ua@11 ~a/ua@5 | ~a/ua@11 ~a/ua@5 | ");
}

static void list_whole(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_STRING_EQUAL(target, "/api/v1/nodes?resourceVersion="); /* no pages this time */
    raw_json(c, 200, LIST("40", ITEM("a", "ua", "5") "," ITEM("z", "uz", "39")));
}

static void test_410_on_page_2(void)
{
    static step_fn *const steps[] = {page_1, gone_410, list_whole, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    /* a was delivered already and is not again */
    play(&e, steps, 4, "+a/ua@5 +z/uz@39 | ");
    finish(&e);
}

static void too_large(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 504,
             "{\"kind\":\"Status\",\"reason\":\"Timeout\",\"code\":504,\"message\":"
             "\"Too large resource version: 99, current: 10\"}");
}

static void test_version_from_the_future(void)
{
    static step_fn *const steps[] = {list_ab, too_large, list_consistent, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | ~a/ua@25 +c/uc@26 -b/ub@6? | ");
    finish(&e);
}

/* ---- a feed out of contract ------------------------------------------------------------------ */

static void watch_odd(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
    raw_chunks(c, EVENT("ADDED", ITEM("a", "ua", "5"))   /* known already */
               EVENT("MODIFIED", ITEM("x", "ux", "11"))  /* never announced */
               EVENT("MODIFIED", ITEM("x", "ux", "11"))  /* twice */
               EVENT("ADDED", ITEM("x", "ux", "12"))     /* announced late */
               EVENT("MODIFIED", ITEM("x", "ux", "9"))   /* out of order */
               EVENT("DELETED", ITEM("y", "uy", "13"))   /* never seen */
               EVENT("ADDED", ITEM("b", "ub2", "14"))    /* another one of that name */
               EVENT("DELETED", ITEM("b", "ub", "7"))    /* the end of the first, late */
               EVENT("DELETED", ITEM("a", "ua9", "20"))  /* end of one that we never saw */
               EVENT("SOMETHING", ITEM("q", "uq", "21")) /* a type of the future */
               EVENT("ADDED", ITEM("z", "uz", "22")));
}

static void test_out_of_contract(void)
{
    static step_fn *const steps[] = {list_ab, watch_odd};
    struct env e = {.kind = BH_KIND_NODE};
    struct bh_reflector_stats st;
    play(&e, steps, 2,
         "+a/ua@5 +b/ub@6 | +x/ux@11 ~x/ux@12 -b/ub@14? +b/ub2@14 -a/ua@20? ! +z/uz@22 ");
    bh_reflector_stats(e.reflector, &st);
    CU_ASSERT_EQUAL(st.duplicates, 5);
    CU_ASSERT_EQUAL(st.objects, 3);
    finish(&e);
}

static void list_with_bad(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 200,
             LIST("10", ITEM("a", "ua",
                             "5") ",{\"metadata\":{\"name\":\"odd\",\"uid\":7}},"
                                  "{\"metadata\":{\"name\":\"nouid\"}},{}," ITEM("b", "ub", "6")));
}

static void watch_bad(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
    raw_chunks(c, EVENT("ADDED", "[]") EVENT("ADDED", ITEM("c", "uc", "11")) EVENT("BOOKMARK", "{}")
                      EVENT("ADDED", ITEM("d", "ud", "12")));
}

static void test_undecodable_object(void)
{
    static step_fn *const steps[] = {list_with_bad, watch_bad};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 2, "+a/ua@5 !odd !nouid ! +b/ub@6 | ! +c/uc@11 ! +d/ud@12 ");
    CU_ASSERT_EQUAL(e.bad, 5);
    finish(&e);
}

/* ---- broken connections ---------------------------------------------------------------------- */

static void watch_then_cut(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
    raw_chunks(c, EVENT("ADDED", ITEM("c", "uc", "11")));
    raw_close(c);
}

static void watch_from_11(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "resourceVersion=11&"));
    raw_stream(c, "application/json");
    raw_chunks(c, EVENT("ADDED", ITEM("d", "ud", "12")));
}

static void test_cut(void)
{
    static step_fn *const steps[] = {list_ab, watch_then_cut, watch_from_11};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 | +c/uc@11 +d/ud@12 ");
    CU_ASSERT_EQUAL(e.relists, 0);
    finish(&e);
}

static void unavailable(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 503, "{}");
}

static void half_list(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_sends(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
                 "{\"kind\":\"NodeList\",\"items\":[" ITEM("a", "ua", "5") ",");
    raw_close(c);
}

static void test_server_comes_late(void)
{
    static step_fn *const steps[] = {unavailable, half_list, list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | ");
    CU_ASSERT_EQUAL(e.troubles, 2);
    CU_ASSERT_EQUAL(e.healthy, 1);
    CU_ASSERT_EQUAL(e.synced, 1);
    finish(&e);
}

/* One that was away for minutes, and answers badly when it is back, is not waited for as if it had
 * answered badly all the time; nor is one that did forgiven for having been away. */
static void test_waits_for_a_server_that_is_away(void)
{
    const uint64_t second = UINT64_C(1000000000);
    struct bh_backoff b;

    bh_backoff_init(&b);
    for (int i = 0; i < 20; i++)
        CU_ASSERT(bh_refl_unreached_ns(&b) <= 4 * second);
    CU_ASSERT(bh_backoff_next_ns(&b) <= 4 * second);
    for (int i = 0; i < 5; i++)
        (void)bh_backoff_next_ns(&b);
    CU_ASSERT(bh_refl_unreached_ns(&b) <= 4 * second);
    CU_ASSERT(bh_backoff_next_ns(&b) >= 30 * second);
}

static void test_idle(void)
{
    static step_fn *const steps[] = {list_ab, watch_changes, watch_from_20, watch_silent};
    struct env e = {.kind = BH_KIND_NODE, .idle_ns = 50 * 1000000};
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | +c/uc@11 ~a/ua@12 -b/ub@13 +d/ud@21 ");
    CU_ASSERT_PTR_NOT_NULL(strstr(e.trouble, "no byte"));
    CU_ASSERT_EQUAL(e.relists, 0); /* the next one starts where this one went silent */
    finish(&e);
}

static void test_restored_server_is_silent(void)
{
    /* it does not know our version yet and says nothing: twice is enough */
    static step_fn *const steps[] = {list_ab, watch_silent, watch_silent, list_consistent,
                                     watch_silent};
    struct env e = {.kind = BH_KIND_NODE, .idle_ns = 60 * 1000000};
    play(&e, steps, 5, "+a/ua@5 +b/ub@6 | ~a/ua@25 +c/uc@26 -b/ub@6? | ");
    finish(&e);
}

static void watch_back(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
    raw_chunks(c, BOOKMARK("4"));
}

static void list_restored(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "resourceVersion="));
    CU_ASSERT_PTR_NULL(strstr(target, "resourceVersion=1"));
    raw_json(c, 200, LIST("4", ITEM("a", "ua", "3")));
}

static void test_versions_go_back(void)
{
    static step_fn *const steps[] = {list_ab, watch_back, list_restored, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | ~a/ua@3 -b/ub@6? | ");
    finish(&e);
}

static void watch_garbage(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
    raw_chunks(c, "<html>the proxy says no</html>");
}

static void list_from_10(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "resourceVersion=10"));
    raw_json(c, 200, LIST("15", ITEM("a", "ua", "5") "," ITEM("b", "ub", "6")));
}

static void test_garbage(void)
{
    static step_fn *const steps[] = {list_ab,       watch_garbage, watch_garbage,
                                     watch_garbage, list_from_10,  watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 6, "+a/ua@5 +b/ub@6 | | ");
    CU_ASSERT_PTR_NOT_NULL(strstr(e.trouble, "undecodable stream"));
    finish(&e);
}

static void watch_frame_too_large(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/vnd.kubernetes.protobuf;stream=watch");
    raw_chunk(c, "\x7f\xff\xff\xff", 4);
}

static void test_frame_too_large(void)
{
    static step_fn *const steps[] = {list_ab, watch_frame_too_large, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 | ");
    finish(&e);
}

static void short_watch(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
    raw_stream_end(c);
}

static void test_very_short_watch(void)
{
    static step_fn *const steps[] = {list_ab, short_watch, list_from_10, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | | ");
    finish(&e);
}

static void too_many(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_reply(c, 429, "Retry-After: 1\r\n", "", 0);
}

static void watch_from_10(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "resourceVersion=10&"));
    raw_stream(c, "application/json");
}

static void test_429(void)
{
    static step_fn *const steps[] = {too_many, list_ab, too_many, watch_from_10};
    struct env e = {.kind = BH_KIND_NODE};
    uint64_t start = bh_mono_ns();
    play(&e, steps, 4, "+a/ua@5 +b/ub@6 | ");
    CU_ASSERT(bh_mono_ns() - start >= UINT64_C(1990) * 1000000);
    finish(&e);
}

/* ---- kinds that are not there ---------------------------------------------------------------- */

static void not_found(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "/apis/resource.k8s.io/v1/deviceclasses?"));
    raw_json(c, 404,
             "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"the "
             "server could not find the requested resource\"}");
}

static void test_absent_kind(void)
{
    static step_fn *const steps[] = {not_found, not_found, list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_DEVICECLASS};
    play(&e, steps, 4, "| +a/ua@5 +b/ub@6 | "); /* empty at first, found when the group appears */
    CU_ASSERT_EQUAL(e.troubles, 1);
    CU_ASSERT_EQUAL(e.healthy, 1);
    finish(&e);
}

static void not_there(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 404, "{}");
}

static void watch_ends(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "watch=true"));
    raw_json(c, 410, EXPIRED);
}

static void core_not_found(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 404, "{}");
}

static void no_version(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 404, "{}");
}

/* ---- kinds that plugins read ---- */

static void may_not(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 403, "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\"}");
}

/* As custom resources are: fields that nobody knows, managedFields. */
static void list_custom(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "/apis/x.io/v1/others?"));
    raw_json(c, 200,
             LIST("10", "{\"metadata\":{\"name\":\"a\",\"uid\":\"ua\",\"resourceVersion\":\"5\","
                        "\"managedFields\":[{}]},\"json\":{\"x\":[1]}}"));
}

static void test_a_kind_of_plugins(void)
{
    static step_fn *const steps[] = {not_there, list_custom, watch_ends,
                                     not_there, list_custom, watch_silent};
    struct bh_kind_info k;
    struct env e = {.info = &k};

    bh_kind_custom(&k, 0, "x.io", "v1", "others");
    /* Empty at first; gone with its definition; there again. */
    play(&e, steps, BH_ARRAY_LEN(steps), "| +a/ua@5 | -a/ua@5? | +a/ua@5 | ");
    CU_ASSERT_PTR_NULL(bh_reflector_forbidden(e.reflector));
    finish(&e);
    bh_kind_custom_fini(&k);
}

static bool is_forbidden(void *arg)
{
    const struct env *e = arg;
    const char *verb = bh_reflector_forbidden(e->reflector);

    return e->at == e->n_steps && verb && bh_streq(verb, "watch");
}
static bool is_allowed(void *arg)
{
    const struct env *e = arg;

    return e->at == e->n_steps && !bh_reflector_forbidden(e->reflector);
}

static void test_forbidden(void)
{
    static step_fn *const half[] = {may_not, list_ab, may_not};
    static step_fn *const rest[] = {list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};

    play(&e, half, BH_ARRAY_LEN(half), "+a/ua@5 +b/ub@6 | ");
    CU_ASSERT(run_until(&e.loop, is_forbidden, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.trouble, "watch: HTTP 403"));
    e.steps = rest;
    e.n_steps = BH_ARRAY_LEN(rest);
    e.at = 0;
    CU_ASSERT(run_until(&e.loop, is_allowed, &e));
    CU_ASSERT_EQUAL(e.healthy, 2); /* after list's trouble and after watch's */
    finish(&e);
}

/* Told again: in between it could have been anything. */
static void test_absent_after_another_trouble(void)
{
    static step_fn *const steps[] = {not_found, may_not, not_found, not_found};
    struct env e = {.kind = BH_KIND_DEVICECLASS};

    play(&e, steps, BH_ARRAY_LEN(steps), "| | ");
    CU_ASSERT_EQUAL(e.troubles, 3);
    CU_ASSERT_PTR_NULL(bh_reflector_forbidden(e.reflector));
    finish(&e);
}

/* PodGroups: the server is asked in one version after the other, and again when one is gone. */
static void test_a_kind_with_several_versions(void)
{
    static step_fn *const steps[] = {no_version, list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_PODGROUP};

    play(&e, steps, BH_ARRAY_LEN(steps), "+a/ua@5 +b/ub@6 | ");
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&e.targets), "/v1alpha2/podgroups?"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&e.targets), "/v1beta1/podgroups?"));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&e.targets), "/v1alpha3/"));
    CU_ASSERT(e.troubles == 0);
    finish(&e);
}

static void test_no_version_of_a_kind(void)
{
    static step_fn *const steps[] = {no_version, no_version, no_version};
    struct env e = {.kind = BH_KIND_PODGROUP, .hurry = 1};

    play(&e, steps, BH_ARRAY_LEN(steps), "| ");
    CU_ASSERT(e.troubles == 1 && e.synced == 1);
    finish(&e);
}

static void test_core_kind_is_never_absent(void)
{
    static step_fn *const steps[] = {core_not_found, list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 | ");
    finish(&e);
}

static void test_freed_while_running(void)
{
    static step_fn *const steps[] = {list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 2, "+a/ua@5 +b/ub@6 | ");
    /* the client first: the reflector's request is canceled under it */
    bh_api_client_free(e.client);
    e.client = NULL;
    finish(&e);
    struct env f = {.kind = BH_KIND_NODE};
    play(&f, steps, 1, "+a/ua@5 +b/ub@6 | ");
    finish(&f);
}

/* ---- once more ------------------------------------------------------------------------------- */

/* Asked for while the list is being answered: this one does not count, the next one does. */
static void list_then_again(struct env *e, struct raw_conn *c, const char *target)
{
    bh_reflector_again(e->reflector);
    CU_ASSERT(bh_reflector_repeats(e->reflector));
    list_ab(e, c, target);
}

static void watch_then_again(struct env *e, struct raw_conn *c, const char *target)
{
    watch_silent(e, c, target);
    bh_reflector_again(e->reflector);
}

static void list_ab_500(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e;
    CU_ASSERT_PTR_NOT_NULL(strstr(target, "resourceVersion=10"));
    raw_json(c, 500, "{}");
}

static void test_again(void)
{
    static step_fn *const steps[] = {list_then_again,  list_ab_500, list_ab,
                                     watch_then_again, list_ab,     watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 6, "+a/ua@5 +b/ub@6 | ~a/ua@5 ~b/ub@6 | ~a/ua@5 ~b/ub@6 | ");
    CU_ASSERT(!bh_reflector_repeats(e.reflector));
    CU_ASSERT_EQUAL(e.relists, 2);
    finish(&e);
}

BH_TESTS("common/api/reflector", {"everything once more, when asked", test_again},
         {"list, watch, bookmark and the next watch", test_normal},
         {"pods are selected by phase in list and watch", test_field_selector},
         {"a list comes in pages", test_pages},
         {"410 as status of a watch: relist, the difference is delivered", test_410_status},
         {"410 inside a stream: relist, the difference is delivered", test_410_in_stream},
         {"410 as status, again and again: the lists keep their distance",
          test_410_status_again_and_again},
         {"410 inside streams, again and again: the lists keep their distance",
          test_410_in_stream_again_and_again},
         {"410 on the second page: one list in one piece, nothing twice", test_410_on_page_2},
         {"a version the server does not have yet: consistent relist",
          test_version_from_the_future},
         {"duplicates, lost, late and reordered events converge", test_out_of_contract},
         {"an undecodable object is skipped and reported", test_undecodable_object},
         {"a cut watch goes on from the last version", test_cut},
         {"a server that comes late or breaks off is waited for", test_server_comes_late},
         {"waits for a server that is away", test_waits_for_a_server_that_is_away},
         {"a silent connection is given up", test_idle},
         {"a server that stays silent twice is asked for everything",
          test_restored_server_is_silent},
         {"versions that go back mean a restore: full relist", test_versions_go_back},
         {"garbage three times from one version: relist", test_garbage},
         {"an absurd frame length drops the connection", test_frame_too_large},
         {"a watch that ends at once without an event: relist", test_very_short_watch},
         {"429 with Retry-After delays list and watch and loses nothing", test_429},
         {"a kind the server does not have is empty until it appears", test_absent_kind},
         {"a kind with several versions", test_a_kind_with_several_versions},
         {"no version of a kind", test_no_version_of_a_kind},
         {"a kind that plugins read comes and goes with its definition", test_a_kind_of_plugins},
         {"what may not be listed or watched", test_forbidden},
         {"a kind that is not there after another trouble is told as empty again",
          test_absent_after_another_trouble},
         {"a core kind is never taken as absent", test_core_kind_is_never_absent},
         {"freeing in any order leaves nothing behind", test_freed_while_running})
