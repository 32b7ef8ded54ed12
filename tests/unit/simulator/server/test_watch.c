/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_watch.c - watch streams over real connections
 */
#include "common/flags/feature_gates.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "simulator/server/sim_int.h"
#include "tests/unit/simulator/http_client.h"

#define CM   "/api/v1/namespaces/default/configmaps"
#define PODS "/api/v1/pods"

static void cm(struct fixture *f, const char *name, const char *label)
{
    char text[200];
    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"l\":\"%s\"}}}", name,
             label);
    CU_ASSERT_EQUAL(create(f, "configmaps", "default", text, NULL), 0);
}

static bool set_label(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_set_str(a, bh_json_path(obj, "metadata.labels"), "l", arg);
    return true;
}

static void relabel(struct fixture *f, const char *name, const char *label)
{
    bh_sim_edit(f->s, type_of("configmaps"), "default", name, NULL, BH_SIM_WHOLE, set_label,
                (void *)label, NULL, NULL);
}

static bool is_watched(void *arg)
{
    struct fixture *f = arg;
    return bh_sim_bucket(f->s, type_of("configmaps"))->n_watches > 0 ||
           bh_sim_bucket(f->s, type_of("pods"))->n_watches > 0;
}

static void open_watch(struct fixture *f, struct call *c)
{
    call_start(f, c);
    run_until(f, is_watched, f);
}

static void test_initial_then_live(void)
{
    struct fixture f;
    struct call c = {.path = CM "?watch=true"};
    fixture_init(&f, NULL, true);
    cm(&f, "b", "x");
    cm(&f, "a", "x");
    open_watch(&f, &c);
    wait_lines(&c, 2);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 0), "ADDED a");
    CU_ASSERT_STRING_EQUAL(line_text(&c, 1), "ADDED b");
    relabel(&f, "a", "y");
    create_pod(&f, "not-a-configmap");
    bh_sim_delete(f.s, type_of("configmaps"), "default", "b", NULL, NULL);
    wait_lines(&c, 4);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 2), "MODIFIED a");
    CU_ASSERT_STRING_EQUAL(line_text(&c, 3), "DELETED b");
    const char *rv =
        bh_json_cstr(bh_json_path(line_json(&c, 3), "object.metadata.resourceVersion"));
    CU_ASSERT_EQUAL(strtoull(rv, NULL, 10), bh_sim_revision(f.s));
    call_fini(&c);
    fixture_fini(&f);
}

static void test_from_version(void)
{
    struct fixture f;
    char path[128];
    fixture_init(&f, NULL, true);
    cm(&f, "a", "x");
    uint64_t rv = bh_sim_revision(f.s);
    cm(&f, "b", "x");
    relabel(&f, "a", "y");
    snprintf(path, sizeof(path), CM "?watch=1&resourceVersion=%llu", (unsigned long long)rv);
    struct call c = {.path = path};
    open_watch(&f, &c);
    wait_lines(&c, 2);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 0), "ADDED b");
    CU_ASSERT_STRING_EQUAL(line_text(&c, 1), "MODIFIED a");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_selectors_turn_events(void)
{
    struct fixture f;
    struct call c = {.path = CM "?watch=true&resourceVersion=0&labelSelector=l%3Dx"};
    fixture_init(&f, NULL, true);
    cm(&f, "in", "x");
    cm(&f, "out", "y");
    open_watch(&f, &c);
    wait_lines(&c, 1);
    relabel(&f, "out", "x"); /* enters */
    relabel(&f, "in", "z");  /* leaves */
    relabel(&f, "in", "q");  /* stays out */
    bh_sim_delete(f.s, type_of("configmaps"), "default", "in", NULL, NULL);
    bh_sim_delete(f.s, type_of("configmaps"), "default", "out", NULL, NULL);
    wait_lines(&c, 4);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 0), "ADDED in");
    CU_ASSERT_STRING_EQUAL(line_text(&c, 1), "ADDED out");
    CU_ASSERT_STRING_EQUAL(line_text(&c, 2), "DELETED in");
    CU_ASSERT_STRING_EQUAL(line_text(&c, 3), "DELETED out");
    /* the object that left shows its last matching state, at the version that took it away */
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(line_json(&c, 2), "object.metadata.labels.l")),
                           "x");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_field_selector(void)
{
    struct fixture f;
    struct call c = {.path = PODS
                     "?watch=true&fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase!%3DFailed"};
    fixture_init(&f, NULL, true);
    create_pod(&f, "p");
    create_pod(&f, "q");
    open_watch(&f, &c);
    bh_sim_bind(f.s, "default", "q", NULL, "n2", NULL, NULL, NULL);
    bh_sim_bind(f.s, "default", "p", NULL, "n1", NULL, NULL, NULL);
    wait_lines(&c, 1);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 0), "ADDED p");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_indexed_watches(void)
{
    struct fixture f;
    struct call by_node = {.path = PODS "?watch=true&fieldSelector=spec.nodeName%3Dn1"};
    struct call unbound = {.path = PODS "?watch=true&fieldSelector=spec.nodeName%3D"};
    struct call by_name = {.path = PODS "?watch=true&fieldSelector=metadata.name%3Dp"};
    struct call by_path = {.path = "/api/v1/namespaces/default/pods/q?watch=true"};
    struct call all = {.path = PODS "?watch=true"};
    struct call *calls[] = {&by_node, &unbound, &by_name, &by_path, &all};
    struct bh_sim_bucket *b;
    fixture_init(&f, NULL, true);
    b = bh_sim_bucket(f.s, type_of("pods"));
    for (size_t i = 0; i < BH_ARRAY_LEN(calls); i++)
        open_watch(&f, calls[i]);
    while (b->n_watches < BH_ARRAY_LEN(calls))
        uv_run(&f.loop, UV_RUN_ONCE);
    create_pod(&f, "p");
    create_pod(&f, "q");
    bh_sim_bind(f.s, "default", "p", NULL, "n1", NULL, NULL, NULL);
    bh_sim_bind(f.s, "default", "q", NULL, "n2", NULL, NULL, NULL);
    wait_lines(&by_node, 1);
    CU_ASSERT_STRING_EQUAL(line_text(&by_node, 0), "ADDED p");
    wait_lines(&unbound, 4);
    CU_ASSERT_STRING_EQUAL(line_text(&unbound, 2), "DELETED p");
    wait_lines(&by_name, 2);
    CU_ASSERT_STRING_EQUAL(line_text(&by_name, 1), "MODIFIED p");
    wait_lines(&by_path, 2);
    CU_ASSERT_STRING_EQUAL(line_text(&by_path, 0), "ADDED q");
    wait_lines(&all, 4);
    CU_ASSERT_EQUAL(count_lines(&by_node), 1);
    CU_ASSERT_EQUAL(count_lines(&by_name), 2);
    for (size_t i = 0; i < BH_ARRAY_LEN(calls); i++)
        call_fini(calls[i]);
    CU_ASSERT_EQUAL(b->watches.len, 0);
    fixture_fini(&f);
}

static void test_expired(void)
{
    struct fixture f;
    const struct bh_sim_options o = {
        .no_controllers = true, .history_events = 4, .first_revision = 100};
    struct call c = {.path = CM "?watch=true&resourceVersion=101"};
    fixture_init(&f, &o, true);
    for (int i = 0; i < 10; i++)
        cm(&f, (char[]){'a', (char)('a' + i), 0}, "x");
    CU_ASSERT_EQUAL(call(&f, &c), 200);
    const struct bh_json *v = line_json(&c, 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "type"), "ERROR");
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(v, "object"), "code", 0), 410);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(bh_json_get(v, "object"), "reason"), "Expired");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_watch_list(void)
{
    struct fixture f;
    struct call c = {.path = CM "?watch=true&sendInitialEvents=true&resourceVersionMatch="
                                "NotOlderThan&allowWatchBookmarks=true&resourceVersion="};
    fixture_init(&f, NULL, true);
    cm(&f, "a", "x");
    open_watch(&f, &c);
    wait_lines(&c, 2);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 0), "ADDED a");
    CU_ASSERT_STRING_EQUAL(line_text(&c, 1), "BOOKMARK -");
    const struct bh_json *meta = bh_json_path(line_json(&c, 1), "object.metadata");
    CU_ASSERT_STRING_EQUAL(
        bh_json_get_str(bh_json_get(meta, "annotations"), "k8s.io/initial-events-end"), "true");
    CU_ASSERT_EQUAL(strtoull(bh_json_get_str(meta, "resourceVersion"), NULL, 10),
                    bh_sim_revision(f.s));
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(line_json(&c, 1), "object.kind")),
                           "ConfigMap");
    cm(&f, "b", "x");
    wait_lines(&c, 3);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 2), "ADDED b");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_bad_options(void)
{
    static const struct {
        const char *query;
        long code;
    } cases[] = {
        {"sendInitialEvents=true", 422},
        {"resourceVersionMatch=NotOlderThan", 422},
        {"sendInitialEvents=true&resourceVersionMatch=NotOlderThan", 422},
        {"resourceVersion=abc", 400},
        {"fieldSelector=spec.nodeName%3Dx", 400},
        {"labelSelector=a%3D%3D%3Db", 400},
    };
    struct fixture f;
    fixture_init(&f, NULL, true);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char path[256];
        snprintf(path, sizeof(path), CM "?watch=true&%s", cases[i].query);
        struct call c = {.path = path};
        CU_ASSERT_EQUAL(call(&f, &c), cases[i].code);
        call_fini(&c);
    }
    struct call c = {.path = CM "?watch=true&fieldSelector=spec.nodeName%3Dx"};
    call(&f, &c);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(reply_str(&c, "message"), "field label not supported: spec.nodeName"));
    call_fini(&c);
    fixture_fini(&f);
}

static void test_future_version(void)
{
    struct fixture f;
    struct call c = {.path = CM "?watch=true&resourceVersion=99999999"};
    fixture_init(&f, NULL, true);
    CU_ASSERT_EQUAL(call(&f, &c), 504);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "reason"), "Timeout");
    const struct bh_json *cause = bh_json_at(bh_json_path(reply_json(&c), "details.causes"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(cause, "reason"), "ResourceVersionTooLarge");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_bookmarks(void)
{
    struct fixture f;
    const struct bh_sim_options o = {
        .no_controllers = true, .bookmark_interval_ns = 20000000, .first_revision = 100};
    struct call c = {.path = CM "?watch=true&allowWatchBookmarks=true"};
    struct call plain = {.path = CM "?watch=true&timeoutSeconds=1"};
    fixture_init(&f, &o, true);
    open_watch(&f, &c);
    wait_lines(&c, 1);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 0), "BOOKMARK -");
    create_pod(&f, "p"); /* another kind moves the bookmark too */
    wait_lines(&c, count_lines(&c) + 2);
    const char *rv = bh_json_cstr(
        bh_json_path(line_json(&c, count_lines(&c) - 1), "object.metadata.resourceVersion"));
    CU_ASSERT_EQUAL(strtoull(rv, NULL, 10), bh_sim_revision(f.s));
    CU_ASSERT_EQUAL(call(&f, &plain), 200); /* not asked for: none */
    CU_ASSERT_EQUAL(plain.data.n, 0);
    call_fini(&plain);
    call_fini(&c);
    fixture_fini(&f);
}

static void test_timeout_ends_with_bookmark(void)
{
    struct fixture f;
    struct call c = {.path = CM "?watch=true&allowWatchBookmarks=true&timeoutSeconds=1"};
    fixture_init(&f, NULL, true);
    CU_ASSERT_EQUAL(call(&f, &c), 200);
    CU_ASSERT_EQUAL(c.result, CURLE_OK);
    CU_ASSERT_STRING_EQUAL(line_text(&c, 0), "BOOKMARK -");
    CU_ASSERT_EQUAL(bh_sim_bucket(f.s, type_of("configmaps"))->n_watches, 0);
    call_fini(&c);
    fixture_fini(&f);
}

static void test_table_watch(void)
{
    struct fixture f;
    struct call c = {.path = PODS "?watch=true",
                     .accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"};
    fixture_init(&f, NULL, true);
    create_pod(&f, "p");
    open_watch(&f, &c);
    wait_lines(&c, 1);
    bh_sim_bind(f.s, "default", "p", NULL, "n1", NULL, NULL, NULL);
    wait_lines(&c, 2);
    const struct bh_json *first = bh_json_get(line_json(&c, 0), "object");
    const struct bh_json *second = bh_json_get(line_json(&c, 1), "object");
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(first, "kind"), "Table");
    CU_ASSERT(bh_json_get(first, "columnDefinitions")->c.n > 5);
    CU_ASSERT_EQUAL(bh_json_get(second, "columnDefinitions")->type, BH_JSON_NULL);
    const struct bh_json *row = bh_json_at(bh_json_get(second, "rows"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_at(bh_json_get(row, "cells"), 0)), "p");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(row, "object.metadata.name")), "p");
    call_fini(&c);
    fixture_fini(&f);
}

struct seen {
    struct bh_arena *a;
    char text[8][64];
    size_t n;
};

static int on_pb_event(void *arg, enum bh_watch_type t, const void *p, size_t n)
{
    struct seen *s = arg;
    ProtobufCMessage *m = NULL;
    if (t == BH_WATCH_BOOKMARK) {
        char rv[32];
        bool end = false;
        CU_ASSERT_EQUAL(bh_decode_bookmark(p, n, rv, &end), 0);
        snprintf(s->text[s->n++], 64, "BOOKMARK %s", end ? "end" : "-");
        return 0;
    }
    CU_ASSERT_EQUAL(bh_decode_object(s->a, &k8s__pod__descriptor, p, n, &m, NULL), 0);
    const K8s__Pod *pod = (const K8s__Pod *)m;
    snprintf(s->text[s->n++], 64, "%d %s %s", (int)t, pod->metadata->name,
             pod->spec->nodename ? pod->spec->nodename : "");
    return 0;
}

static bool has_bytes(void *arg)
{
    struct lines *l = arg;
    pthread_mutex_lock(&l->c->lock);
    bool ok = l->c->data.n > l->n;
    pthread_mutex_unlock(&l->c->lock);
    return ok;
}

static void test_protobuf_watch(void)
{
    struct fixture f;
    struct seen seen = {0};
    struct call c = {.path = PODS "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&"
                                  "resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
                     .accept = "application/vnd.kubernetes.protobuf, application/json",
                     .headers = {"Berth-Projection: scheduling"}};
    fixture_init(&f, NULL, true);
    create_pod(&f, "p");
    open_watch(&f, &c);
    struct lines first = {&c, 100};
    run_until(&f, has_bytes, &first);
    bh_sim_bind(f.s, "default", "p", NULL, "n1", NULL, NULL, NULL);
    run_until(&f, call_is_done, &c);
    CU_ASSERT(reply_header(&c, "Content-Type: application/vnd.kubernetes.protobuf;stream=watch"));
    seen.a = &f.a;
    struct bh_watch_reader *r = bh_watch_reader_new(
        "application/vnd.kubernetes.protobuf;stream=watch", 1 << 20, on_pb_event, &seen);
    CU_ASSERT_EQUAL(bh_watch_reader_feed(r, c.data.p, c.data.n), 0);
    bh_watch_reader_free(r);
    CU_ASSERT_EQUAL(seen.n, 4);
    CU_ASSERT_STRING_EQUAL(seen.text[0], "0 p ");
    CU_ASSERT_STRING_EQUAL(seen.text[1], "BOOKMARK end");
    CU_ASSERT_STRING_EQUAL(seen.text[2], "1 p n1");
    CU_ASSERT_STRING_EQUAL(seen.text[3], "BOOKMARK -");
    call_fini(&c);
    fixture_fini(&f);
}

struct two {
    struct fixture *f;
    const struct bh_sim_bucket *b;
};

static bool are_watching(void *arg)
{
    const struct two *w = arg;
    return w->b->n_watches == 2;
}

/* Of one commit each gets the version it asked for. */
static void test_protobuf_of_two_versions(void)
{
#define GROUPS(v) "/apis/scheduling.k8s.io/" v "/podgroups?watch=true&timeoutSeconds=2"
    const char *all[] = {"api/all=true"};
    const struct bh_opt_list config = {all, 1};
    struct bh_feature_gates gates;
    struct bh_err err = {""};
    struct fixture f;
    struct call c[2] = {{.path = GROUPS("v1beta1")}, {.path = GROUPS("v1alpha3")}};
    static const char *const versions[] = {"scheduling.k8s.io/v1beta1",
                                           "scheduling.k8s.io/v1alpha3"};

    bh_feature_gates_init(&gates);
    CU_ASSERT_EQUAL_FATAL(bh_feature_gates_parse(&gates, "GenericWorkload=true", &err), 0);
    const struct bh_sim_options o = {.no_controllers = true,
                                     .first_revision = 100,
                                     .features = &gates,
                                     .runtime_config = &config};
    fixture_init(&f, &o, true);
    for (size_t i = 0; i < 2; i++) {
        c[i].accept = "application/vnd.kubernetes.protobuf";
        c[i].headers[0] = "Berth-Projection: scheduling";
        call_start(&f, &c[i]);
    }
    struct two both = {
        &f, bh_sim_bucket(f.s, bh_sim_type_find("scheduling.k8s.io", "v1alpha2", "podgroups"))};
    run_until(&f, are_watching, &both);
    CU_ASSERT_EQUAL(
        create(&f, "podgroups", "default",
               "{\"metadata\":{\"name\":\"g\"},\"spec\":{\"schedulingPolicy\":{\"basic\":{}}}}",
               NULL),
        0);
    for (size_t i = 0; i < 2; i++) {
        run_until(&f, call_is_done, &c[i]);
        CU_ASSERT_EQUAL(c[i].code, 200);
        CU_ASSERT_PTR_NOT_NULL(
            memmem(bh_buf_str(&c[i].data), c[i].data.n, versions[i], strlen(versions[i])));
        CU_ASSERT_PTR_NULL(
            memmem(bh_buf_str(&c[i].data), c[i].data.n, versions[!i], strlen(versions[!i])));
    }
    for (size_t i = 0; i < 2; i++)
        call_fini(&c[i]);
    fixture_fini(&f);
}

static void test_events_in_both_forms(void)
{
    struct fixture f;
    struct call c = {.path = "/apis/events.k8s.io/v1/events?watch=true&timeoutSeconds=1"};
    fixture_init(&f, NULL, true);
    create_pod(&f, "p");
    bh_sim_event(f.s, get(&f, "pods", "default", "p"), "Normal", "R", "me", "text");
    CU_ASSERT_EQUAL(call(&f, &c), 200);
    const struct bh_json *o = bh_json_get(line_json(&c, 0), "object");
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(o, "apiVersion"), "events.k8s.io/v1");
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(o, "note"), "text");
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(bh_json_get(o, "regarding"), "name"), "p");
    CU_ASSERT_PTR_NULL(bh_json_get(o, "message"));
    call_fini(&c);
    fixture_fini(&f);
}

/* Many names in the initial state: fed in portions while commits go on; nothing lost or doubled. */
static void test_feed_with_concurrent_commits(void)
{
    struct fixture f;
    enum { N = 3000 };
    struct call c = {.path = CM "?watch=true"};
    fixture_init(&f, NULL, true);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%05d", i);
        cm(&f, name, "x");
        bh_arena_reset(&f.a);
    }
    call_start(&f, &c);
    run_until(&f, is_watched, &f);
    cm(&f, "late", "x");
    bh_sim_delete(f.s, type_of("configmaps"), "default", "n00000", NULL, NULL);
    wait_lines(&c, N + 2);
    CU_ASSERT_STRING_EQUAL(line_text(&c, N - 1), "ADDED n02999");
    CU_ASSERT_STRING_EQUAL(line_text(&c, N), "ADDED late");
    CU_ASSERT_STRING_EQUAL(line_text(&c, N + 1), "DELETED n00000");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_slow_watcher_is_cut(void)
{
    struct fixture f;
    const struct bh_sim_options o = {
        .no_controllers = true, .watch_buffer_bytes = 4096, .first_revision = 100};
    struct call c = {.path = CM "?watch=true"};
    fixture_init(&f, &o, true);
    open_watch(&f, &c);
    for (int i = 0; i < 100; i++) { /* without running the loop nothing is read */
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        cm(&f, name, "x");
    }
    run_until(&f, call_is_done, &c);
    CU_ASSERT_NOT_EQUAL(c.result, CURLE_OK);
    CU_ASSERT_EQUAL(bh_sim_bucket(f.s, type_of("configmaps"))->n_watches, 0);
    call_fini(&c);
    fixture_fini(&f);
}

static void test_server_stops_with_open_watch(void)
{
    struct fixture f;
    struct call c = {.path = CM "?watch=true"};
    fixture_init(&f, NULL, true);
    open_watch(&f, &c);
    bh_sim_free(f.s);
    f.s = NULL;
    run_until(&f, call_is_done, &c);
    call_fini(&c);
    fixture_fini(&f);
}

BH_TESTS("simulator/watch",
         {"a watch without version starts with the state, then follows", test_initial_then_live},
         {"a watch from a version gets what came after it", test_from_version},
         {"objects that enter or leave a selection are added or deleted",
          test_selectors_turn_events},
         {"field selectors choose pods by node and phase", test_field_selector},
         {"watches of one node or one name are found by it", test_indexed_watches},
         {"a version beyond the history is answered with ERROR 410", test_expired},
         {"sendInitialEvents ends the state with a marked bookmark", test_watch_list},
         {"unusable options are refused", test_bad_options},
         {"a version of the future times out with its cause", test_future_version},
         {"bookmarks come when asked for and carry the newest version", test_bookmarks},
         {"a timed watch ends in order, with a bookmark", test_timeout_ends_with_bookmark},
         {"a table watch sends its columns once", test_table_watch},
         {"protobuf frames decode to the same pods", test_protobuf_watch},
         {"protobuf of two versions is each one's own", test_protobuf_of_two_versions},
         {"events are watched in the newer form too", test_events_in_both_forms},
         {"feeding a long state loses and doubles nothing", test_feed_with_concurrent_commits},
         {"a watcher that does not read is cut", test_slow_watcher_is_cut},
         {"stopping the server ends its watches", test_server_stops_with_open_watch})
