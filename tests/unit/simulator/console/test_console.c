/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/console/test_console.c - rows, sums, import, export and reset over HTTP
 */
#include "simulator/console/rows.h"
#include "simulator/console/totals.h"
#include "simulator/server/sim_int.h"
#include "tests/unit/simulator/http_client.h"

#define PODS  "/api/v1/namespaces/default/pods"
#define NODES "/api/v1/nodes"

static void just(struct fixture *f, struct call c, long code)
{
    call(f, &c);
    if (c.code != code)
        fprintf(stderr, "%s %s: %ld, want %ld: %s\n", c.method, c.path, c.code, code,
                bh_buf_str(&c.data));
    CU_ASSERT_EQUAL(c.code, code);
    call_fini(&c);
}

static struct bh_json *ask(struct fixture *f, struct call c, long code)
{
    struct bh_json *v = NULL;

    call(f, &c);
    CU_ASSERT_EQUAL(c.code, code);
    if (c.data.n)
        v = parse(f, bh_buf_str(&c.data));
    call_fini(&c);
    return v;
}

static void make_pod(struct fixture *f, const char *name, const char *node, const char *cpu)
{
    char body[600];

    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodeName\":\"%s\",\"containers\":[{"
             "\"name\":\"c\",\"image\":\"x\",\"resources\":{\"requests\":{\"cpu\":\"%s\","
             "\"example.com/x\":\"1\"},\"limits\":{\"example.com/x\":\"1\"}}}]}}",
             name, node, cpu);
    just(f, (struct call){.method = "POST", .path = PODS, .body = body}, 201);
}

static void make_node(struct fixture *f, const char *name)
{
    char body[400];

    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{\"cpu\":\"4\","
             "\"pods\":\"10\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
             name);
    just(f, (struct call){.method = "POST", .path = NODES, .body = body}, 201);
}

/* ---- amounts --------------------------------------------------------------------------------- */

static struct bh_console_amounts requests(struct fixture *f, const char *spec)
{
    struct bh_console_amounts x;
    char text[1200];

    snprintf(text, sizeof(text), "{\"spec\":%s}", spec);
    bh_console_requests(parse(f, text), &x);
    return x;
}

#define C(requests) "{\"resources\":{\"requests\":" requests "}}"

static void test_requests(void)
{
    struct fixture f;
    struct bh_console_amounts x;

    fixture_init(&f, NULL, false);
    x = requests(&f, "{\"containers\":[" C("{\"cpu\":\"250m\",\"memory\":\"1Ki\"}") "," C(
                         "{\"cpu\":\"0.5\",\"a/b\":\"2\"}") "]}");
    CU_ASSERT_EQUAL(x.cpu_milli, 750);
    CU_ASSERT_EQUAL(x.memory_bytes, 1024);
    CU_ASSERT_EQUAL_FATAL(x.n, 1);
    CU_ASSERT_STRING_EQUAL(x.more[0].name, "a/b");
    CU_ASSERT_EQUAL(x.more[0].value, 2);
    /* an init container counts alone, with the sidecars before it */
    x = requests(&f,
                 "{\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{"
                 "\"requests\":{\"cpu\":\"100m\"}}}," C("{\"cpu\":\"2\"}") "],\"containers\":[" C(
                     "{\"cpu\":\"1\"}") "],\"overhead\":{\"cpu\":\"10m\"}}");
    CU_ASSERT_EQUAL(x.cpu_milli, 2110);
    /* the pod's own request is the one that counts */
    x = requests(&f, "{\"resources\":{\"requests\":{\"cpu\":\"3\"}},\"containers\":[" C(
                         "{\"cpu\":\"1\",\"memory\":\"5\"}") "]}");
    CU_ASSERT_EQUAL(x.cpu_milli, 3000);
    CU_ASSERT_EQUAL(x.memory_bytes, 5);
    x = requests(&f, "{\"containers\":[" C("{\"cpu\":\"rubbish\",\"memory\":7}") ",7,null]}");
    CU_ASSERT_EQUAL(x.cpu_milli, 0);
    CU_ASSERT_EQUAL(x.memory_bytes, 7);
    fixture_fini(&f);
}

static void test_amounts_are_bounded(void)
{
    struct bh_console_amounts x = {.cpu_milli = INT64_MAX}, y = {.cpu_milli = 1};
    char name[BH_CONSOLE_RESOURCES + 8][8];

    bh_console_amounts_add(&x, &y, 1);
    CU_ASSERT_EQUAL(x.cpu_milli, INT64_MAX);
    for (int i = 0; i < BH_CONSOLE_RESOURCES + 8; i++) {
        snprintf(name[i], sizeof(name[i]), "r%d", i);
        bh_console_amount_add(&x, name[i], 1);
    }
    CU_ASSERT_EQUAL(x.n, BH_CONSOLE_RESOURCES);
    y = x;
    bh_console_amounts_add(&x, &y, -1);
    CU_ASSERT_EQUAL(x.n, 0);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int64_t cpu_of(struct fixture *f, const char *node)
{
    struct bh_console_amounts x;

    bh_sim_drain(f->s);
    bh_console_totals_requested(f->s->console, node, &x);
    return x.cpu_milli;
}

static const struct bh_console_counts *counts(struct fixture *f)
{
    const struct bh_console_counts *t;

    bh_sim_drain(f->s);
    t = bh_console_totals(f->s->console);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    return t;
}

/* What was before anybody asked is there, too. */
static void test_history_begins_with_the_server(void)
{
    const int64_t second = 1000000000, begin = 1700000000 * second;
    struct bh_sim_options o = {.no_controllers = true, .manual_clock = true, .clock_ns = begin};
    struct fixture f;

    fixture_init(&f, &o, true);
    make_node(&f, "n1");
    make_pod(&f, "a", "n1", "1");
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, begin + 3 * second), 0);
    const struct bh_json *points =
        bh_json_get(ask(&f, (struct call){.path = "/berth/v1/utilisation"}, 200), "points");
    CU_ASSERT_PTR_NOT_NULL_FATAL(bh_json_at(points, 2));
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_at(points, 2), "nodes", 0), 1);
    CU_ASSERT_STRING_EQUAL(bh_json_get(bh_json_at(points, 2), "cpu")->s.p, "0.2500");
    fixture_fini(&f);
}

static void count_waiting(void *arg, const char *message, int64_t pods)
{
    CU_ASSERT_STRING_EQUAL(message, "no room");
    *(int64_t *)arg += pods;
}

static int64_t waiting(struct fixture *f)
{
    int64_t n = 0;

    bh_sim_drain(f->s);
    bh_console_totals_waiting(f->s->console, count_waiting, &n);
    return n;
}

static void test_totals(void)
{
    struct fixture f;

    fixture_init(&f, NULL, true);
    make_node(&f, "n1");
    make_pod(&f, "before", "n1", "1");
    CU_ASSERT_EQUAL(counts(&f)->pods.total, 1); /* read from the store */
    make_node(&f, "n2");
    make_pod(&f, "a", "n2", "500m"); /* followed */
    make_pod(&f, "b", "", "2");
    CU_ASSERT_EQUAL(counts(&f)->pods.total, 3);
    CU_ASSERT_EQUAL(counts(&f)->pods.pending, 1);
    CU_ASSERT_EQUAL(counts(&f)->pods.scheduled, 2);
    CU_ASSERT_EQUAL(counts(&f)->allocatable.cpu_milli, 8000);
    CU_ASSERT_EQUAL(cpu_of(&f, "n1"), 1000);
    CU_ASSERT_EQUAL(cpu_of(&f, "n2"), 500);
    just(&f,
         (struct call){.method = "PATCH",
                       .path = PODS "/b/status",
                       .content_type = "application/merge-patch+json",
                       .body =
                           "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
                           "\"False\",\"reason\":\"Unschedulable\",\"message\":\"no room\"}]}}"},
         200);
    CU_ASSERT_EQUAL(waiting(&f), 1);
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "b", NULL, "n2", NULL, NULL, NULL), 0);
    CU_ASSERT_EQUAL(waiting(&f), 0);
    CU_ASSERT_EQUAL(cpu_of(&f, "n2"), 2500);
    CU_ASSERT_EQUAL(counts(&f)->pods.pending, 0);
    /* who is finished needs nothing any more */
    just(&f,
         (struct call){.method = "PATCH",
                       .path = PODS "/b/status",
                       .content_type = "application/merge-patch+json",
                       .body = "{\"status\":{\"phase\":\"Succeeded\"}}"},
         200);
    CU_ASSERT_EQUAL(cpu_of(&f, "n2"), 500);
    CU_ASSERT_EQUAL(counts(&f)->pods.succeeded, 1);
    just(&f, (struct call){.method = "DELETE", .path = PODS "/a?gracePeriodSeconds=0"}, 200);
    just(&f, (struct call){.method = "DELETE", .path = NODES "/n2"}, 200);
    CU_ASSERT_EQUAL(cpu_of(&f, "n2"), 0);
    CU_ASSERT_EQUAL(counts(&f)->nodes.total, 1);
    CU_ASSERT_EQUAL(counts(&f)->requested.cpu_milli, 1000);
    CU_ASSERT_EQUAL(counts(&f)->requested.n, 1); /* example.com/x of "before" */
    fixture_fini(&f);
}

/* ---- import, export, reset ------------------------------------------------------------------- */

static int64_t number(const struct bh_json *v, const char *key)
{
    return bh_json_get_i64(v, key, -1);
}

static void test_transfer(void)
{
    static const char list[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"uid\":\"u3\","
        "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"r\","
        "\"uid\":\"u2\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
        "\"name\":\"x\",\"uid\":\"lost\"}]},\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"x\"}]},\"status\":{\"phase\":\"Failed\"}},"
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"r\",\"uid\":"
        "\"u2\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":"
        "{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"x\"}]}}}}"
        ","
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"kube-system\"}},"
        "{\"apiVersion\":\"v9\",\"kind\":\"Nonsense\",\"metadata\":{\"name\":\"q\"}}]}";
    struct fixture f;
    struct bh_json *v, *pod;

    fixture_init(&f, NULL, true);
    make_node(&f, "old");
    v = ask(&f, (struct call){.method = "POST", .path = "/api/v1/import?dryRun=All", .body = list},
            200);
    CU_ASSERT_EQUAL(bh_json_get_list(v, "kinds")->c.n, 2);
    CU_ASSERT_EQUAL(number(bh_json_at(bh_json_get(v, "kinds"), 1), "count"), 1);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_at(bh_json_get(v, "kinds"), 1), "kind"), "Pod");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_first(bh_json_get(v, "leftOut")), "name"),
                           "kube-system");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_first(bh_json_get(v, "errors")), "kind"),
                           "Nonsense");
    just(&f, (struct call){.path = NODES "/old"}, 200);
    just(&f, (struct call){.path = PODS "/p"}, 404);
    just(&f, (struct call){.method = "POST", .path = "/api/v1/import?dryRun=Some", .body = list},
         400);
    v = ask(&f, (struct call){.method = "POST", .path = "/api/v1/import", .body = list}, 200);
    CU_ASSERT_EQUAL(number(v, "created"), 2);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_first(bh_json_get(v, "leftOut")), "name"),
                           "kube-system");
    CU_ASSERT_EQUAL(number(v, "deleted"), 1);
    CU_ASSERT_EQUAL(number(v, "skipped"), 1);
    CU_ASSERT_EQUAL(bh_json_get_list(v, "errors")->c.n, 1);
    just(&f, (struct call){.path = NODES "/old"}, 404);
    pod = ask(&f, (struct call){.path = PODS "/p"}, 200);
    v = ask(&f, (struct call){.path = "/apis/apps/v1/namespaces/default/replicasets/r"}, 200);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(pod, "status.phase")), "Failed");
    CU_ASSERT_EQUAL(bh_json_path(pod, "metadata.ownerReferences")->c.n, 1);
    CU_ASSERT_STRING_EQUAL(
        bh_json_get_text(bh_json_first(bh_json_path(pod, "metadata.ownerReferences")), "uid"),
        bh_json_cstr(bh_json_path(v, "metadata.uid")));
    v = ask(&f, (struct call){.path = "/api/v1/export"}, 200);
    CU_ASSERT_EQUAL(bh_json_get_list(v, "pods")->c.n, 1);
    CU_ASSERT_PTR_NULL(bh_json_get(bh_json_first(bh_json_get(v, "pods")), "kind"));
    CU_ASSERT_EQUAL(bh_json_get_list(v, "namespaces")->c.n, 0);
    CU_ASSERT_EQUAL(bh_json_get_list(v, "priorityClasses")->c.n, 0);
    CU_ASSERT_PTR_NULL(bh_json_get(v, "others"));
    v = ask(&f, (struct call){.path = "/api/v1/export?kinds=all"}, 200);
    CU_ASSERT_PTR_NOT_NULL(bh_json_first(bh_json_get(v, "others")));
    just(&f, (struct call){.path = "/api/v1/export?kinds=pods"}, 400);
    v = ask(&f,
            (struct call){.method = "POST",
                          .path = "/api/v1/import?mode=replace",
                          .body = "{\"apiVersion\":\"v9\",\"kind\":\"Nonsense\",\"metadata\":{"
                                  "\"name\":\"q\"}}"},
            200);
    CU_ASSERT_EQUAL(number(v, "created"), 0);
    CU_ASSERT_EQUAL(number(v, "deleted"), 0);
    v = bh_json_first(bh_json_get_list(v, "errors"));
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(v, "kind"), "Nonsense");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(v, "name"), "q");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(v, "message"), "this server has no such kind");
    just(&f, (struct call){.path = PODS "/p"}, 200); /* nothing was emptied for nothing */
    fixture_fini(&f);
}

static void test_reset(void)
{
    struct fixture f;
    struct bh_json *before, *after;
    uint64_t rv;

    fixture_init(&f, NULL, true);
    make_node(&f, "n1");
    just(&f, (struct call){.method = "PUT", .path = "/api/v1/reset?mark=true"}, 202);
    before = ask(&f, (struct call){.path = NODES "/n1"}, 200);
    make_node(&f, "n2");
    just(&f,
         (struct call){.method = "PATCH",
                       .path = NODES "/n1",
                       .content_type = "application/merge-patch+json",
                       .body = "{\"spec\":{\"unschedulable\":true},\"metadata\":{"
                               "\"finalizers\":[\"example.com/f\"]}}"},
         200);
    rv = f.s->rv;
    just(&f, (struct call){.method = "PUT", .path = "/api/v1/reset"}, 202);
    just(&f, (struct call){.path = NODES "/n2"}, 404);
    after = ask(&f, (struct call){.path = NODES "/n1"}, 200);
    CU_ASSERT(bh_json_equal(bh_json_get(before, "spec"), bh_json_get(after, "spec")));
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(before, "metadata.uid")),
                           bh_json_cstr(bh_json_path(after, "metadata.uid")));
    CU_ASSERT(f.s->rv > rv);
    fixture_fini(&f);
}

/* ---- the stream, the past -------------------------------------------------------------------- */

static void test_asof(void)
{
    struct fixture f;
    struct bh_json *v;
    char path[80];

    fixture_init(&f, NULL, true);
    make_node(&f, "n1");
    make_pod(&f, "a", "n1", "1");
    snprintf(path, sizeof(path), "/berth/v1/asof?revision=%llu", (unsigned long long)f.s->rv);
    make_pod(&f, "b", "n1", "1");
    just(&f, (struct call){.method = "DELETE", .path = PODS "/a?gracePeriodSeconds=0"}, 200);
    v = ask(&f, (struct call){.path = path}, 200);
    CU_ASSERT_EQUAL_FATAL(bh_json_get_list(v, "pods")->c.n, 1);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_first(bh_json_get(v, "pods")), "name"), "a");
    v = bh_json_get(bh_json_first(bh_json_get(v, "nodes")), "requested");
    CU_ASSERT_EQUAL(number(v, "cpu_milli"), 1000);
    just(&f, (struct call){.path = "/berth/v1/asof?revision=x"}, 400);
    just(&f, (struct call){.path = "/berth/v1/asof?revision=99999999"}, 400);
    fixture_fini(&f);
}

static void test_read_only(void)
{
    const struct bh_sim_options o = {
        .no_controllers = true, .first_revision = 100, .read_only = true};
    struct fixture f;

    fixture_init(&f, &o, true);
    make_node(&f, "n1"); /* programs may */
    just(&f,
         (struct call){
             .method = "DELETE", .path = NODES "/n1", .headers = {"User-Agent: Mozilla/5.0"}},
         403);
    just(&f, (struct call){.method = "PUT", .path = "/api/v1/reset"}, 403);
    just(&f,
         (struct call){.method = "POST",
                       .path = "/berth/v1/manifest",
                       .body = "a: 1",
                       .headers = {"User-Agent: Mozilla/5.0", "Content-Type: application/yaml"}},
         200);
    fixture_fini(&f);
}

BH_TESTS("simulator/console", {"what a pod asks for", test_requests},
         {"sums are bounded", test_amounts_are_bounded}, {"sums follow the store", test_totals},
         {"the history begins with the server", test_history_begins_with_the_server},
         {"import and export", test_transfer}, {"reset", test_reset}, {"as it was", test_asof},
         {"read-only", test_read_only})
