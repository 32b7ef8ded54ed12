/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_reflector.c - LIST and WATCH against a server that does what it likes
 *
 * The server is a script: each request takes the next step. What the consumer has seen is folded
 * into a set, which must equal the server's; every delivery is also written down as text.
 */
#include "common/api/reflector.h"
#include "common/base/loop.h"
#include "tests/unit/common/api/raw_server.h"

#include "proto/kubernetes/kubernetes.pb-c.h"

struct env;
typedef void step_fn(struct env *e, struct raw_conn *c, const char *target);
struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_api_client *client;
    struct bh_reflector *reflector;
    char url[64];
    step_fn *const *steps;
    size_t n_steps, at;
    struct bh_buf log;     /* deliveries: "+a " "~a " "-a " "!bad " "|" list complete */
    struct bh_buf targets; /* requests, one a line */
    unsigned synced, relists, bad, troubles, healthy;
    char trouble[256];
    const char *want; /* log to wait for */
    uint64_t idle_ns;
    enum bh_kind kind;
};

static void on_event(void *arg, const struct bh_kind_info *k, const struct bh_reflector_event *ev)
{
    static const char sign[] = {'+', '~', '-'};
    struct env *e = arg;
    (void)k;
    bh_buf_addf(&e->log, "%c%s/%s@%s%s ", sign[ev->type], ev->name, ev->uid, ev->resource_version,
                ev->object ? "" : "?");
    if (ev->object && ev->type != BH_WATCH_DELETED)
        CU_ASSERT_STRING_EQUAL(bh_object_meta(ev->object)->name, ev->name);
}

static void on_synced(void *arg, const struct bh_kind_info *k, bool relist)
{
    struct env *e = arg;
    (void)k;
    e->synced++;
    e->relists += relist;
    bh_buf_adds(&e->log, "| ");
}

static void on_bad(void *arg, const struct bh_kind_info *k, const char *name, const char *why)
{
    struct env *e = arg;
    (void)k;
    e->bad++;
    bh_buf_addf(&e->log, "!%s ", name);
    CU_ASSERT(*why);
}

static void on_trouble(void *arg, const struct bh_kind_info *k, const char *text)
{
    struct env *e = arg;
    (void)k;
    if (text) {
        e->troubles++;
        snprintf(e->trouble, sizeof(e->trouble), "%s", text);
    } else {
        e->healthy++;
    }
}

static void handle(struct raw_server *s, const struct raw_request *r)
{
    struct env *e = s->arg;
    bh_buf_addf(&e->targets, "%s\n", r->target);
    if (e->at < e->n_steps)
        e->steps[e->at++](e, r->conn, r->target);
    /* beyond the script: silence */
}

static bool log_is(void *arg)
{
    struct env *e = arg;
    return bh_streq(bh_buf_str(&e->log), e->want) && e->at == e->n_steps;
}

/* Runs the script and expects exactly these deliveries. */
static void play(struct env *e, step_fn *const *steps, size_t n, const char *want)
{
    struct bh_err err = {""};
    struct bh_api_config cfg = {.server = e->url};
    const struct bh_api_options o = {.qps = 0};
    const struct bh_reflector_callbacks cb = {on_event, on_synced, on_bad, on_trouble, e};
    e->steps = steps;
    e->n_steps = n;
    e->want = want;
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handle, e);
    snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%u", e->server.port);
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &cfg, &o, &e->client, &err), 0);
    e->reflector = bh_reflector_new(&e->loop, e->client, &bh_kinds[e->kind], &cb);
    bh_reflector_set_timing(e->reflector, e->idle_ns ? e->idle_ns : UINT64_C(10) * 1000000000, 100);
    if (!run_until(&e->loop, log_is, e))
        printf("# got:  %s\n# want: %s\n# steps %zu of %zu, trouble: %s\n# %s\n",
               bh_buf_str(&e->log), want, e->at, e->n_steps, e->trouble, bh_buf_str(&e->targets));
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&e->log), want);
    CU_ASSERT_EQUAL(e->at, e->n_steps);
}

static void finish(struct env *e)
{
    bh_reflector_free(e->reflector);
    bh_api_client_free(e->client);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
    bh_buf_fini(&e->log);
    bh_buf_fini(&e->targets);
}

/* ---- what the server says ----------------------------------------------------------------------
 */

#define ITEM(name, uid, rv)                                                                        \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv "\"}}"
#define LIST(rv, items)                                                                            \
    "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"" rv         \
    "\"},\"items\":[" items "]}"
#define PAGE(rv, cont, items)                                                                      \
    "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" cont     \
    "\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(rv)                                                                               \
    EVENT("BOOKMARK", "{\"kind\":\"Node\",\"metadata\":{\"resourceVersion\":\"" rv "\"}}")
#define EXPIRED                                                                                    \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","           \
    "\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}"

static void list_ab(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 200, LIST("10", ITEM("a", "ua", "5") "," ITEM("b", "ub", "6")));
}

static void list_empty_10(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 200, LIST("10", ""));
}

static void watch_silent(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_stream(c, "application/json");
}

static void gone_410(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 410, EXPIRED);
}

/* ---- the normal course --------------------------------------------------------------------------
 */

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
    CU_ASSERT(bh_reflector_synced(e.reflector));
    CU_ASSERT(bh_reflector_last_byte_ns(e.reflector) > 0);
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

/* ---- 410 in all its forms -----------------------------------------------------------------------
 */

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

/* ---- a feed out of contract ---------------------------------------------------------------------
 */

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

/* ---- broken connections -------------------------------------------------------------------------
 */

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

/* ---- kinds that are not there -------------------------------------------------------------------
 */

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

static void core_not_found(struct env *e, struct raw_conn *c, const char *target)
{
    (void)e, (void)target;
    raw_json(c, 404, "{}");
}

static void test_core_kind_is_never_absent(void)
{
    static step_fn *const steps[] = {core_not_found, list_ab, watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 3, "+a/ua@5 +b/ub@6 | ");
    finish(&e);
}

/* ---- protobuf -----------------------------------------------------------------------------------
 */

static void add_object(struct bh_buf *out, const char *name, const char *uid, const char *rv)
{
    K8s__ObjectMeta meta = K8S__OBJECT_META__INIT;
    K8s__Node node = K8S__NODE__INIT;
    meta.name = (char *)(uintptr_t)name;
    meta.uid = (char *)(uintptr_t)uid;
    meta.resourceversion = (char *)(uintptr_t)rv;
    node.metadata = &meta;
    bh_pb_pack(out, &node.base);
}

static void pb_list(struct env *e, struct raw_conn *c, const char *target)
{
    struct bh_buf raw = {0}, item = {0}, env = {0};
    (void)e, (void)target;
    bh_buf_add(&raw,
               "\x0a\x04\x12\x02"
               "10",
               6); /* metadata {2 resourceVersion "10"} */
    add_object(&item, "a", "ua", "5");
    bh_buf_addc(&raw, 0x12);
    bh_buf_addc(&raw, (char)item.n);
    bh_buf_add(&raw, item.p, item.n);
    bh_buf_add(&raw, "\x12\x03\x0a\x01\xff", 5); /* an item whose metadata is cut */
    bh_envelope_write(&env, "v1", "NodeList", raw.p, raw.n);
    raw_reply(c, 200, "Content-Type: application/vnd.kubernetes.protobuf\r\n", env.p, env.n);
    bh_buf_fini(&raw);
    bh_buf_fini(&item);
    bh_buf_fini(&env);
}

static void pb_watch(struct env *e, struct raw_conn *c, const char *target)
{
    static const char *const types[] = {"ADDED", "MODIFIED", "BOOKMARK", "DELETED"};
    static const char *const rvs[] = {"11", "12", "15", "16"};
    struct bh_buf frames = {0};
    (void)e, (void)target;
    for (size_t i = 0; i < 4; i++) {
        struct bh_buf item = {0}, env = {0};
        add_object(&item, i == 2 ? "" : "b", i == 2 ? "" : "ub", rvs[i]);
        bh_envelope_write(&env, "v1", "Node", item.p, item.n);
        bh_watch_frame_pb(&frames, types[i], env.p, env.n);
        bh_buf_fini(&item);
        bh_buf_fini(&env);
    }
    raw_stream(c, "application/vnd.kubernetes.protobuf;stream=watch");
    for (size_t i = 0; i < frames.n; i++) /* a byte a chunk */
        raw_chunk(c, frames.p + i, 1);
    bh_buf_fini(&frames);
}

static void test_protobuf(void)
{
    static step_fn *const steps[] = {pb_list, pb_watch};
    struct env e = {.kind = BH_KIND_NODE};
    struct bh_reflector_stats st;
    play(&e, steps, 2, "+a/ua@5 ! | +b/ub@11 ~b/ub@12 -b/ub@16 ");
    bh_reflector_stats(e.reflector, &st);
    CU_ASSERT_EQUAL(st.bookmarks, 1);
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

/* ---- once more -------------------------------------------------------------------------------
 */

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
    static step_fn *const steps[] = {list_then_again, list_ab_500, list_ab, watch_then_again,
                                     list_ab,         watch_silent};
    struct env e = {.kind = BH_KIND_NODE};
    play(&e, steps, 6,
         "+a/ua@5 +b/ub@6 | ~a/ua@5 ~b/ub@6 | ~a/ua@5 ~b/ub@6 | ");
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
         {"410 on the second page: one list in one piece, nothing twice", test_410_on_page_2},
         {"a version the server does not have yet: consistent relist",
          test_version_from_the_future},
         {"duplicates, lost, late and reordered events converge", test_out_of_contract},
         {"an undecodable object is skipped and reported", test_undecodable_object},
         {"a cut watch goes on from the last version", test_cut},
         {"a server that comes late or breaks off is waited for", test_server_comes_late},
         {"a silent connection is given up", test_idle},
         {"a server that stays silent twice is asked for everything",
          test_restored_server_is_silent},
         {"versions that go back mean a restore: full relist", test_versions_go_back},
         {"garbage three times from one version: relist", test_garbage},
         {"an absurd frame length drops the connection", test_frame_too_large},
         {"a watch that ends at once without an event: relist", test_very_short_watch},
         {"429 with Retry-After delays list and watch and loses nothing", test_429},
         {"a kind the server does not have is empty until it appears", test_absent_kind},
         {"a core kind is never taken as absent", test_core_kind_is_never_absent},
         {"protobuf lists and streams, a byte at a time", test_protobuf},
         {"freeing in any order leaves nothing behind", test_freed_while_running})
