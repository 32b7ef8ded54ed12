/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/console/test_questions.c - questions that the page asks: what they answer, and what they
 * say to a question that is none
 */
#include "common/k8s/kinds.h"
#include "simulator/server/sim_int.h"
#include "tests/unit/simulator/http_client.h"

#define POD(name, more)                                                                            \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\"" more             \
    "},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{"    \
    "\"cpu\":\"1\"}}}]}}"
#define NODE(name)                                                                                 \
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" name                      \
    "\"},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"10\"},"          \
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
#define LIST(...) "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" __VA_ARGS__ "]}"

static struct bh_json *ask(struct fixture *f, struct call c, long code)
{
    struct bh_json *v = NULL;

    call(f, &c);
    if (c.code != code)
        fprintf(stderr, "%s %s: %ld, want %ld: %s\n", c.method ? c.method : "GET", c.path, c.code,
                code, bh_buf_str(&c.data));
    CU_ASSERT_EQUAL(c.code, code);
    if (c.data.n)
        bh_json_parse(&f->a, c.data.p, c.data.n, 0, &v, NULL);
    call_fini(&c);
    return v;
}

static struct bh_json *post(struct fixture *f, const char *path, const char *body)
{
    return ask(f, (struct call){.method = "POST", .path = path, .body = body}, 200);
}

static const char *text(const struct bh_json *v, const char *path)
{
    const char *s = bh_json_cstr(bh_json_path(v, path));

    return s ? s : "(none)";
}

static int64_t number(const struct bh_json *v, const char *path)
{
    int64_t n = -1;

    (void)bh_json_i64(bh_json_path(v, path), &n);
    return n;
}

/* n1 has the pod "on", the pod "waits" has no node yet, "done" is over. */
static void begin(struct fixture *f)
{
    static const char cluster[] = LIST(
        NODE("n1") "," POD("waits", "") "," POD("on", "") "," POD("done", "") "," POD("owned", ""));

    fixture_init(f, NULL, true);
    CU_ASSERT_EQUAL(number(post(f, "/api/v1/import?mode=merge", cluster), "created"), 5);
    CU_ASSERT_EQUAL(bh_sim_bind(f->s, "default", "on", NULL, "n1", NULL, NULL, NULL), 0);
    CU_ASSERT_EQUAL(bh_sim_bind(f->s, "default", "done", NULL, "n1", NULL, NULL, NULL), 0);
    (void)ask(f,
              (struct call){.method = "PATCH",
                            .path = "/api/v1/namespaces/default/pods/done/status",
                            .content_type = "application/merge-patch+json",
                            .body = "{\"status\":{\"phase\":\"Succeeded\"}}"},
              200);
    (void)ask(f,
              (struct call){.method = "DELETE",
                            .path = "/api/v1/namespaces/default/pods/owned?gracePeriodSeconds=0"},
              200);
}

/* ---- questions that are none ------------------------------------------------------------------ */

struct refusal {
    const char *path, *body; /* body NULL: a GET */
    long code;
    const char *field; /* "(none)": it is about none */
    const char *message;
};

static void refuse(struct fixture *f, const struct refusal *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct call c = {
            .method = r[i].body ? "POST" : "GET", .path = r[i].path, .body = r[i].body};
        const struct bh_json *v = ask(f, c, r[i].code);
        bool said = bh_streq(text(v, "field"), r[i].field) &&
                    strstr(text(v, "message"), r[i].message) != NULL;
        CU_ASSERT(said);
        if (!said)
            fprintf(stderr, "%s %s: %s: %s\n", r[i].path, r[i].body, text(v, "field"),
                    text(v, "message"));
    }
}

#define OTHERS(scheduler)                                                                          \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"else\"},\"spec\":{"          \
    "\"schedulerName\":\"" scheduler "\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"
#define WHATIF "/berth/v1/whatif"
#define ON     "\"pod\":{\"name\":\"on\"}"

static void test_no_whatif(void)
{
    static const struct refusal rows[] = {
        {WHATIF, "{", 400, "(none)", "line 1"},
        {WHATIF, "[]", 400, "(none)", "expected an object"},
        {WHATIF, "{}", 400, "pod", "expected an object"},
        {WHATIF, "{\"pod\":[]}", 400, "pod", "expected an object"},
        {WHATIF, "{\"pod\":{}}", 400, "pod.name", "say which pod, or give its manifest"},
        {WHATIF, "{\"pod\":{\"name\":7}}", 400, "pod.name", "expected a text"},
        {WHATIF, "{\"pod\":{\"name\":\"on\",\"uid\":\"x\"}}", 400, "pod.uid", "unknown member"},
        {WHATIF, "{" ON ",\"chnges\":[]}", 400, "chnges", "unknown member"},
        /* Answered as if it had not been said, it would be an answer to another question. */
        {WHATIF, "{" ON ",\"changes\":{}}", 400, "changes", "expected a list"},
        {WHATIF, "{" ON ",\"config\":{}}", 400, "config", "expected a text"},
        {WHATIF, "{" ON ",\"everybody\":\"yes\"}", 400, "everybody", "expected true or false"},
        {WHATIF, "{" ON ",\"fixes\":1}", 400, "fixes", "expected true or false"},
        {WHATIF, "{" ON ",\"config\":\"parallelism: -1\"}", 400, "config",
         "Object 'Kind' is missing in 'parallelism: -1'"},
        {WHATIF, "{" ON ",\"changes\":[7]}", 400, "changes[0]", "expected an object"},
        {WHATIF, "{" ON ",\"changes\":[{\"manifst\":\"x\"}]}", 400, "changes[0].manifst",
         "unknown member"},
        {WHATIF, "{" ON ",\"changes\":[{\"manifest\":7}]}", 400, "changes[0].manifest",
         "expected YAML text or an object"},
        {WHATIF, "{" ON ",\"changes\":[{\"manifest\":\"# nothing\"}]}", 400, "changes[0].manifest",
         "there is no object in it"},
        {WHATIF,
         "{" ON ",\"changes\":[{\"manifest\":{\"apiVersion\":\"v1\",\"kind\":\"Event\","
         "\"metadata\":{\"name\":\"e\"}}}]}",
         400, "changes[0].manifest", "kind Event says nothing about placement"},
        {WHATIF, "{" ON ",\"changes\":[{\"delete\":{\"kind\":\"Node\",\"name\":\"nine\"}}]}", 400,
         "changes[0].delete", "there is no Node nine"},
        {WHATIF, "{" ON ",\"changes\":[{\"delete\":{\"kind\":\"Pod\",\"name\":\"nine\"}}]}", 400,
         "changes[0].delete", "there is no Pod default/nine"},
        {WHATIF, "{" ON ",\"changes\":[{\"delete\":{\"kind\":\"Pod\",\"nam\":\"nine\"}}]}", 400,
         "changes[0].delete.nam", "unknown member"},
        {WHATIF, "{\"pod\":{\"manifest\":" NODE("x") "}}", 400, "pod.manifest",
         "expected a Pod, this is a Node"},
        {WHATIF, "{\"pod\":{\"manifest\":" LIST(POD("a", "") "," POD("b", "")) "}}", 400,
         "pod.manifest", "one pod is asked about"},
        {WHATIF, "{\"pod\":{\"name\":\"gone\"}}", 404, "pod",
         "there is no pod gone in namespace default"},
        {WHATIF, "{\"pod\":{\"name\":\"on\",\"namespace\":\"else\"}}", 404, "pod",
         "there is no pod on in namespace else"},
        {WHATIF, "{\"pod\":{\"name\":\"done\"}}", 400, "pod",
         "pod default/done is finished: Succeeded"},
        {WHATIF, "{\"pod\":{\"name\":\"goes\"}}", 400, "pod", "pod default/goes is being deleted"},
        {WHATIF, "{\"pod\":{\"name\":\"else\"}}", 400, "pod.spec.schedulerName",
         "pod default/else is for the scheduler \"mine\"; the configuration has no profile of this "
         "name"},
    };
    static const char others[] =
        LIST(POD("goes", ",\"finalizers\":[\"example.com/holds\"]") "," OTHERS("mine"));
    struct fixture f;

    begin(&f);
    CU_ASSERT_EQUAL(number(post(&f, "/api/v1/import?mode=merge", others), "created"), 2);
    (void)ask(&f,
              (struct call){.method = "DELETE",
                            .path = "/api/v1/namespaces/default/pods/goes?gracePeriodSeconds=0"},
              200);
    refuse(&f, rows, BH_ARRAY_LEN(rows));
    /* With a change it takes part; it was not decided before. */
    const struct bh_json *v =
        post(&f, WHATIF,
             "{\"pod\":{\"name\":\"else\"},\"changes\":[{\"manifest\":" OTHERS(
                 "default-scheduler") "}]}");
    CU_ASSERT_STRING_EQUAL(text(v, "after.result"), "Scheduled");
    CU_ASSERT_EQUAL(bh_json_get(v, "before")->type, BH_JSON_NULL);
    fixture_fini(&f);
}

#define CAPACITY "/berth/v1/capacity"
#define ONE      "\"pods\":[" POD("p", "") "]"

static void test_no_capacity(void)
{
    static const struct refusal rows[] = {
        {CAPACITY, "{}", 400, "pods", "say which pods: a list of manifests"},
        {CAPACITY, "{\"pods\":[]}", 400, "pods", "say which pods: a list of manifests"},
        {CAPACITY, "{\"pods\":\"p\"}", 400, "pods", "expected a list"},
        {CAPACITY, "{\"pods\":[" NODE("x") "]}", 400, "pods[0]", "expected a Pod"},
        {CAPACITY, "{" ONE ",\"max\":\"ten\"}", 400, "max", "expected a whole number"},
        {CAPACITY, "{" ONE ",\"max\":1.5}", 400, "max", "expected a whole number"},
        {CAPACITY, "{" ONE ",\"addNodes\":{}}", 400, "addNodes", "expected a list"},
        {CAPACITY, "{" ONE ",\"addNodes\":[{\"count\":0}]}", 400, "addNodes[0].count",
         "a number from 1 to 10000"},
        {CAPACITY, "{" ONE ",\"addNodes\":[{\"count\":10001}]}", 400, "addNodes[0].count",
         "a number from 1 to 10000"},
        {CAPACITY, "{" ONE ",\"addNodes\":[{\"count\":\"2\"}]}", 400, "addNodes[0].count",
         "expected a whole number"},
        {CAPACITY, "{" ONE ",\"addNodes\":[{\"manifest\":" POD("p", "") "}]}", 400,
         "addNodes[0].manifest", "expected a Node"},
        {CAPACITY, "{" ONE ",\"excludeNodes\":\"n1\"}", 400, "excludeNodes", "expected a list"},
        {CAPACITY, "{" ONE ",\"excludeNodes\":[\"nine\"]}", 400, "excludeNodes",
         "there is no node nine"},
        {"/berth/v1/drain", "{}", 400, "nodes", "say which nodes: a list of names"},
        {"/berth/v1/drain", "{\"nodes\":\"n1\"}", 400, "nodes", "expected a list"},
        {"/berth/v1/drain", "{\"nodes\":[\"nine\"]}", 404, "nodes", "there is no node nine"},
        {"/berth/v1/rebalance", "{\"maxNodes\":-1}", 400, "maxNodes",
         "a number from 0 (no limit) on"},
        {"/berth/v1/rebalance", "{\"maxMoves\":4294967296}", 400, "maxMoves",
         "a number from 0 (no limit) on"},
        {"/berth/v1/rebalance", "{\"maxNodes\":\"three\"}", 400, "maxNodes",
         "expected a whole number"},
        {"/berth/v1/rebalance", "{\"selector\":\"a in\"}", 400, "selector", ""},
        {"/berth/v1/rebalance", "{\"for\":{\"name\":\"waits\"}}", 400, "for", "expected a list"},
        {"/berth/v1/rebalance", "{\"for\":[\"waits\"]}", 400, "for", "expected an object"},
        {"/berth/v1/rebalance", "{\"for\":[{\"name\":\"nine\"}]}", 404, "for",
         "no pod nine waits in namespace default"},
        {"/berth/v1/podgroup", "{}", 400, "name", "expected the name of a PodGroup"},
        {"/berth/v1/podgroup", "{\"name\":\"g\"}", 409, "(none)",
         "its feature gate GenericWorkload is off"},
        {"/berth/v1/configs/diff", "{}", 400, "b", "the configuration to compare with, as text"},
        {"/berth/v1/configs/diff", "{\"b\":\"\",\"pods\":\"some\"}", 400, "pods", "pending or all"},
        {"/berth/v1/configs/diff", "{\"b\":\"a: [\"}", 400, "b", ""},
        {"/berth/v1/configs/odd", "{}", 404, "(none)", "nothing is served at /berth/v1/configs/"},
        {"/berth/v1/configs/check", "{\"config\":7}", 400, "config", "expected a text"},
    };
    struct fixture f;

    begin(&f);
    refuse(&f, rows, BH_ARRAY_LEN(rows));
    fixture_fini(&f);
}

#define DECISIONS "/berth/v1/decisions"

static void test_no_other(void)
{
    static const struct refusal rows[] = {
        {"/berth/v1/odd", NULL, 404, "(none)", "nothing is served at /berth/v1/odd"},
        {WHATIF, NULL, 405, "(none)", "GET is not served at /berth/v1/whatif"},
        {"/berth/v1/whatif/more/and/more/and/more/again", NULL, 404, "(none)", "nothing is served"},
        {"/api/v1/import", "", 400, "(none)", "there is no object in it"},
        {"/api/v1/import", "pods: [", 400, "(none)", "line "},
        {"/api/v1/import", "pods: {}", 400, "(none)", "line 1: pods: expected a list"},
        {"/api/v1/import", "pods:\n- 7", 400, "(none)", "line 2: expected an object"},
        {"/api/v1/import", "podsoup: {}", 400, "(none)",
         "neither a document of lists nor manifests"},
        {"/api/v1/import?mode=odd", "pods: []", 400, "mode", "replace or merge"},
        {"/api/v1/export?format=xml", NULL, 400, "format", "json or yaml"},
        {"/berth/v1/manifest", "a: [", 400, "(none)", "line "},
        {DECISIONS "?limit=1001", NULL, 400, "limit", "want a number up to 1000"},
        {DECISIONS "?before=-1", NULL, 400, "before", "before \"-1\": want a number"},
        {DECISIONS "/x", NULL, 400, "id", "id \"x\": want a number"},
        {DECISIONS "/99999999999999999999", NULL, 400, "id", "want a number"},
        {DECISIONS "/1/odd", NULL, 404, "(none)", "nothing is served"},
        {DECISIONS "/1/nodes?offset=a", NULL, 400, "offset", "want a number"},
        {"/berth/v1/pods/default/on/odd", NULL, 404, "(none)", "nothing is served"},
        {"/berth/v1/pods/default/on/decisions?limit=-5", NULL, 400, "limit", "want a number"},
        {"/berth/v1/queue", NULL, 503, "(none)", "no scheduler belongs to this server"},
        {"/berth/v1/timeline?from=yesterday", NULL, 400, "from",
         "\"yesterday\" is no time like 2026-01-02T03:04:05Z"},
        {"/berth/v1/timeline?limit=0", NULL, 400, "limit", "a number from 1 to"},
        {"/berth/v1/timeline?limit=12abc", NULL, 400, "limit", "a number from 1 to"},
        {"/berth/v1/utilisation?since=x", NULL, 400, "since", "\"x\" is no time"},
        {"/berth/v1/watch", NULL, 400, "kinds", "say which kinds: ?kinds=pods,nodes"},
        {"/berth/v1/watch?kinds=pods,wombats", NULL, 400, "kinds",
         "\"wombats\" is not one of the kinds"},
        {"/berth/v1/watch?kinds=pods&since=-1", NULL, 400, "since", "\"-1\" is no revision"},
        {"/berth/v1/watch?kinds=pods&since=99999999999999999999", NULL, 400, "since",
         "is no revision"},
        {"/api/v1/listwatchresources?podsLastResourceVersion=x", NULL, 400,
         "podsLastResourceVersion", "\"x\" is no version to go on from"},
        {"/api/v1/listwatchresources?podsLastResourceVersion=-1", NULL, 400,
         "podsLastResourceVersion", "\"-1\" is no version to go on from"},
        {"/berth/v1/replay?speed=-1", "x", 400, "speed", "speed: a number above 0 up to"},
        {"/berth/v1/replay?speed=nan", "x", 400, "speed", "speed: a number above 0 up to"},
        {"/berth/v1/scenarios", "", 400, "(none)", "no document has apiVersion"},
        {"/berth/v1/scenarios", "a: [", 400, "(none)", "line"},
        {"/berth/v1/scenarios/s9", NULL, 404, "(none)", "there is no scenario s9"},
        {"/berth/v1/comparison", NULL, 404, "(none)", ""},
    };
    struct fixture f;

    begin(&f);
    refuse(&f, rows, BH_ARRAY_LEN(rows));
    fixture_fini(&f);
}

static void test_no_patch(void)
{
    static const struct {
        const char *body, *field, *message;
        long code;
    } rows[] = {
        {"[", "(none)", "line 1", 400},
        {"[]", "(none)", "an object is expected", 400},
        {"{\"speed\":\"fast\"}", "speed", "or \"max\"", 400},
        {"{\"speed\":-1}", "speed", "or \"max\"", 400},
        {"{\"paused\":1}", "paused", "paused: speed (number or \"max\"), paused (true, false)",
         400},
        {"{\"step\":0}", "step", "step (1 to ", 400},
        {"{\"odd\":1}", "odd", "odd: speed (number", 400},
        {"{\"speed\":\"max\",\"paused\":true}", "(none)", "nothing is being replayed", 409},
    };
    struct fixture f;

    begin(&f);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct call c = {.method = "PATCH", .path = "/berth/v1/replay", .body = rows[i].body};
        const struct bh_json *v = ask(&f, c, rows[i].code);
        CU_ASSERT_STRING_EQUAL(text(v, "field"), rows[i].field);
        CU_ASSERT_PTR_NOT_NULL(strstr(text(v, "message"), rows[i].message));
    }
    fixture_fini(&f);
}

/* ---- answers ---------------------------------------------------------------------------------- */

static void test_whatif(void)
{
    const struct bh_json *v;
    struct fixture f;

    begin(&f);
    v = post(&f, WHATIF, "{\"pod\":{\"name\":\"waits\"}}");
    CU_ASSERT_STRING_EQUAL(text(v, "configuration"), "defaults");
    CU_ASSERT_STRING_EQUAL(text(v, "after.result"), "Scheduled");
    CU_ASSERT_STRING_EQUAL(text(v, "after.nodeName"), "n1");
    /* Without its node nothing is left; with another one it goes there. */
    v = post(&f, WHATIF,
             "{\"pod\":{\"name\":\"waits\"},\"fixes\":true,\"changes\":[{\"delete\":{\"kind\":"
             "\"Node\",\"name\":\"n1\"}}]}");
    CU_ASSERT_STRING_EQUAL(text(v, "before.result"), "Scheduled");
    CU_ASSERT_STRING_EQUAL(text(v, "after.result"), "Error"); /* as kube-scheduler */
    CU_ASSERT_STRING_EQUAL(text(v, "after.message"), "no nodes available to schedule pods");
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "changes"), 0), "action"), "deleted");
    CU_ASSERT_PTR_NOT_NULL(bh_json_get(v, "fixes"));
    v = post(&f, WHATIF,
             "{\"pod\":{\"name\":\"waits\"},\"everybody\":true,\"changes\":[{\"delete\":{\"kind\":"
             "\"Node\",\"name\":\"n1\"}},{\"manifest\":" NODE("n2") "}]}");
    CU_ASSERT_STRING_EQUAL(text(v, "after.nodeName"), "n2");
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "changes"), 1), "action"), "added");
    v = post(&f, WHATIF, "{\"pod\":{\"manifest\":" POD("new", "") "}}");
    CU_ASSERT_STRING_EQUAL(text(v, "after.nodeName"), "n1");
    CU_ASSERT_EQUAL(bh_json_get(v, "before")->type, BH_JSON_NULL); /* there is none */
    (void)ask(&f, (struct call){.path = "/api/v1/namespaces/default/pods/new"}, 404);
    fixture_fini(&f);
}

/* A plugin reads a kind of its own that has the name of one of Kubernetes' that says nothing here. */
static void test_whatif_of_a_custom_kind(void)
{
    static const char own[] = LIST(
        "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
        "\"metadata\":{\"name\":\"jobs.own.dev\"},\"spec\":{\"group\":\"own.dev\",\"scope\":"
        "\"Namespaced\",\"names\":{\"plural\":\"jobs\",\"kind\":\"Job\"},\"versions\":[{\"name\":"
        "\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":"
        "\"object\"}}}]}},"
        "{\"apiVersion\":\"own.dev/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"}}");
    const struct bh_json *v;
    struct bh_err err = {""};
    enum bh_kind kind;
    struct fixture f;

    begin(&f);
    CU_ASSERT_EQUAL_FATAL(bh_kind_declare("own.dev", "v1", "jobs", &kind, &err), 0);
    CU_ASSERT_EQUAL(number(post(&f, "/api/v1/import?mode=merge", own), "created"), 2);
    v = post(&f, WHATIF,
             "{\"pod\":{\"name\":\"waits\"},\"changes\":[{\"delete\":{\"kind\":\"Job\",\"name\":"
             "\"j\",\"namespace\":\"default\",\"apiVersion\":\"own.dev/v1\"}}]}");
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "changes"), 0), "action"), "deleted");
    fixture_fini(&f);
}

static void test_capacity(void)
{
    const struct bh_json *v;
    struct fixture f;

    begin(&f);
    v = post(&f, CAPACITY, "{" ONE "}");
    const int64_t n = number(v, "replicas");
    CU_ASSERT(n == 2 || n == 3); /* of 4 CPUs one is taken; the pod that waits may come first */
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "pods"), 0), "name"), "p");
    v = post(&f, CAPACITY, "{" ONE ",\"max\":1}");
    CU_ASSERT_EQUAL(number(v, "replicas"), 1);
    v = post(&f, CAPACITY,
             "{" ONE ",\"addNodes\":[{\"manifest\":" NODE("x") ",\"count\":2},{\"manifest\":" NODE(
                 "y") "}]}");
    CU_ASSERT_EQUAL(number(v, "replicas"), n + 12);
    v = post(&f, CAPACITY, "{" ONE ",\"excludeNodes\":[\"n1\"]}");
    CU_ASSERT_EQUAL(number(v, "replicas"), 0);
    v = post(&f, CAPACITY,
             "{\"pods\":[\"apiVersion: v1\\nkind: Pod\\nmetadata: {name: p}\\nspec: {containers: "
             "[{name: c, image: i, resources: {requests: {cpu: 4}}}]}\"]}");
    CU_ASSERT_EQUAL(number(v, "replicas"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text(v, "failReason.message"), "Insufficient cpu"));
    fixture_fini(&f);
}

/* Two pods with an owner, one without; the budget lets one go. */
static void test_drain(void)
{
#define RS(uid)                                                                                    \
    ",\"labels\":{\"a\":\"b\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":"         \
    "\"ReplicaSet\",\"name\":\"r\",\"uid\":\"" uid "\",\"controller\":true}]"
    static const char more[] = LIST(
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"metadata\":{\"name\":\"r\","
        "\"uid\":\"u\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{"
        "\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}}}," POD("o1", RS("u")) "," POD("o2", RS("u")) "," NODE(
            "n2") ","
                  "{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{"
                  "\"name\":\"few\"},\"spec\":{\"minAvailable\":1,\"selector\":{\"matchLabels\":{"
                  "\"a\":"
                  "\"b\"}}},\"status\":{\"disruptionsAllowed\":1}}");
    const struct bh_json *v, *blocked;
    struct fixture f;

    begin(&f);
    CU_ASSERT_EQUAL(number(post(&f, "/api/v1/import?mode=merge", more), "created"), 5);
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", i ? "o1" : "o2", NULL, "n1", NULL, NULL, NULL),
                        0);
    v = post(&f, "/berth/v1/drain", "{\"nodes\":[\"n1\"]}");
    blocked = bh_json_get(v, "blocked");
    CU_ASSERT_EQUAL_FATAL(bh_json_get(v, "pods")->c.n, 1);
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "pods"), 0), "from"), "n1");
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "pods"), 0), "to"), "n2");
    CU_ASSERT_EQUAL_FATAL(blocked->c.n, 2); /* "done" is over */
    for (unsigned i = 0; i < 2; i++) {
        const struct bh_json *b = bh_json_at(blocked, i);
        CU_ASSERT_STRING_EQUAL(
            text(b, "reason"),
            bh_streq(text(b, "name"), "on")
                ? "no controller would make it anew (kubectl drain wants --force)"
                : "the disruption budget few allows none");
    }
    v = post(&f, "/berth/v1/rebalance", "{}");
    CU_ASSERT_STRING_EQUAL(text(v, "kind"), "RebalancePlan");
    fixture_fini(&f);
}

#define CONFIG "apiVersion: kubescheduler.config.k8s.io/v1\\nkind: KubeSchedulerConfiguration\\n"

static void test_configs(void)
{
    const struct bh_json *v;
    struct fixture f;

    begin(&f);
    v = post(&f, "/berth/v1/configs/check", "{\"config\":\"" CONFIG "parallelism: -1\"}");
    CU_ASSERT(!bh_json_get_bool(v, "valid", true));
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "errors"), 0), "field"), "parallelism");
    CU_ASSERT_EQUAL(number(bh_json_at(bh_json_get(v, "errors"), 0), "line"), 3);
    v = post(&f, "/berth/v1/configs/check",
             "{\"config\":\"" CONFIG "profiles: [{schedulerName: mine}]\"}");
    CU_ASSERT(bh_json_get_bool(v, "valid", false));
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "scores"), 0), "profile"), "mine");
    CU_ASSERT_PTR_NOT_NULL(strstr(text(v, "effective"), "schedulerName: mine"));
    /* Nobody decides about default-scheduler's pods there. */
    v = post(&f, "/berth/v1/configs/diff",
             "{\"pods\":\"all\",\"b\":\"" CONFIG "profiles: [{schedulerName: mine}]\"}");
    CU_ASSERT_EQUAL(number(v, "compared"), 2);
    CU_ASSERT_EQUAL(number(v, "same"), 0);
    CU_ASSERT_EQUAL(number(v, "utilisation.a.scheduled"), 2);
    CU_ASSERT_EQUAL(number(v, "utilisation.b.scheduled"), 0);
    CU_ASSERT_STRING_EQUAL(text(bh_json_at(bh_json_get(v, "different"), 0), "messageB"),
                           "takes no part: the configuration has no profile for its scheduler");
    v = post(&f, "/berth/v1/configs/diff", "{\"b\":\"" CONFIG "\"}");
    CU_ASSERT_EQUAL(number(v, "compared"), 1); /* who waits */
    CU_ASSERT_EQUAL(number(v, "same"), 1);
    fixture_fini(&f);
}

/* ---- scenarios, the past, streams -------------------------------------------------------------- */

static bool is_over(const struct bh_json *v)
{
    return bh_streq(text(v, "phase"), "Succeeded") || bh_streq(text(v, "phase"), "Failed");
}

static void test_scenario(void)
{
    static const char scenario[] =
        "apiVersion: sim.berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: small}\nspec:\n"
        "  setup:\n  - generate: {kind: Node, count: 1, resources: {cpu: 4, memory: 8Gi}}\n"
        "  timeline:\n  - {at: 1s, generate: {kind: Pod, count: 2, resources: {cpu: 1}}}\n";
    const struct bh_json *v;
    struct fixture f;
    const uint64_t end = bh_mono_ns() + (uint64_t)DEADLINE_S * 1000000000;

    begin(&f);
    CU_ASSERT_EQUAL(
        bh_json_get(ask(&f, (struct call){.path = "/berth/v1/scenarios"}, 200), "items")->c.n, 0);
    v = ask(&f, (struct call){.method = "POST", .path = "/berth/v1/scenarios", .body = scenario},
            202);
    CU_ASSERT_STRING_EQUAL(text(v, "id"), "s1");
    CU_ASSERT_STRING_EQUAL(text(v, "name"), "small");
    do
        v = ask(&f, (struct call){.path = "/berth/v1/scenarios/s1"}, 200);
    while (!is_over(v) && bh_mono_ns() < end);
    CU_ASSERT_STRING_EQUAL(text(v, "phase"), "Succeeded");
    CU_ASSERT(bh_json_get_bool(v, "passed", false));
    CU_ASSERT_STRING_EQUAL(text(v, "result.kind"), "ScenarioResult");
    struct call c = {.path = "/berth/v1/scenarios/s1/report"};
    CU_ASSERT_EQUAL(call(&f, &c), 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&c.data), "small"));
    CU_ASSERT(reply_header(&c, "X-Content-Type-Options: nosniff"));
    call_fini(&c);
    v = ask(&f, (struct call){.path = "/berth/v1/scenarios/s1/odd"}, 404);
    CU_ASSERT_STRING_EQUAL(text(v, "message"), "a scenario has no odd");
    (void)ask(&f, (struct call){.method = "DELETE", .path = "/berth/v1/scenarios/s1"}, 200);
    (void)ask(&f, (struct call){.path = "/berth/v1/scenarios/s1"}, 404);
    fixture_fini(&f);
}

/* One that cannot be read says so in its status. */
static void test_scenario_object(void)
{
    static const char bad[] =
        "{\"apiVersion\":\"sim.berth.dev/v1alpha1\",\"kind\":\"Scenario\",\"metadata\":{\"name\":"
        "\"bad\"},\"spec\":{\"timeline\":[{\"cordon\":{}}]}}";
    const char *const path = "/apis/sim.berth.dev/v1alpha1/scenarios";
    const struct bh_json *v;
    struct fixture f;

    begin(&f);
    (void)ask(&f, (struct call){.method = "POST", .path = path, .body = bad}, 201);
    bh_sim_drain(f.s);
    v = ask(&f, (struct call){.path = "/apis/sim.berth.dev/v1alpha1/scenarios/bad"}, 200);
    CU_ASSERT_STRING_EQUAL(text(v, "status.phase"), "Failed");
    CU_ASSERT_PTR_NOT_NULL(strstr(text(v, "status.message"), "one of name, selector, count"));
    fixture_fini(&f);
}

static void test_timeline(void)
{
    struct bh_buf said BH_CLEANUP(bh_buf_fini) = {0};
    struct fixture f;

    begin(&f);
    bh_sim_drain(f.s);
    bh_json_each(e, bh_json_get(ask(&f, (struct call){.path = "/berth/v1/timeline"}, 200), "items"))
        if (bh_streq(text(e, "name"), "on") || bh_streq(text(e, "kind"), "Node"))
            bh_buf_addf(&said, "%s %s %s %s, ", text(e, "kind"), text(e, "name"), text(e, "what"),
                        text(e, "detail"));
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&said),
                           "Node n1 created , Pod on created , Pod on bound n1, ");
    const struct bh_json *v = ask(&f, (struct call){.path = "/berth/v1/timeline?limit=1"}, 200);
    CU_ASSERT_EQUAL(bh_json_get(v, "items")->c.n, 1);
    v = ask(&f, (struct call){.path = "/berth/v1/timeline?to=2001-01-01T00:00:00Z"}, 200);
    CU_ASSERT_EQUAL(bh_json_get(v, "items")->c.n, 0);
    /* Nothing is recorded here. */
    v = ask(&f, (struct call){.path = DECISIONS}, 200);
    CU_ASSERT_EQUAL(bh_json_get(v, "items")->c.n, 0);
    (void)ask(&f, (struct call){.path = DECISIONS "/5"}, 404);
    v = ask(&f, (struct call){.path = "/berth/v1/overview"}, 200);
    CU_ASSERT_EQUAL(number(v, "nodes.total"), 1);
    fixture_fini(&f);
}

static bool has_text(void *arg)
{
    struct {
        struct call *c;
        const char *text;
    } *w = arg;

    pthread_mutex_lock(&w->c->lock);
    bool there = strstr(bh_buf_str(&w->c->data), w->text) != NULL;
    pthread_mutex_unlock(&w->c->lock);
    return there;
}

static bool await(struct call *c, const char *said)
{
    struct {
        struct call *c;
        const char *text;
    } w = {c, said};

    return run_until(c->f, has_text, &w);
}

/* The state, then what changes; a reader that comes back with a revision of another server begins anew. */
static void test_streams(void)
{
    struct fixture f;

    begin(&f);
    struct call pods = {.path = "/berth/v1/watch?kinds=pods,nodes,replay,scenarios,decisions"},
                lines = {.path = "/api/v1/listwatchresources"},
                future = {.path = "/berth/v1/watch?kinds=pods&since=9999999"};
    call_start(&f, &pods);
    call_start(&f, &lines);
    call_start(&f, &future);
    CU_ASSERT(await(&pods, "waits"));
    CU_ASSERT(await(&pods, "event: synced") && await(&lines, "waits"));
    CU_ASSERT(await(&future, "event: reset"));
    CU_ASSERT(await(&future, "waits"));
    CU_ASSERT_EQUAL(number(post(&f, "/api/v1/import?mode=merge", LIST(POD("late", ""))), "created"),
                    1);
    CU_ASSERT(await(&pods, "late") && await(&lines, "late") && await(&future, "late"));
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "late", NULL, "n1", NULL, NULL, NULL), 0);
    CU_ASSERT(await(&lines, "MODIFIED"));
    call_fini(&pods);
    call_fini(&lines);
    call_fini(&future);
    fixture_fini(&f);
}

BH_TESTS("simulator/console/questions", {"a what-if that is none", test_no_whatif},
         {"capacity, drain and configurations that are none", test_no_capacity},
         {"other questions that are none", test_no_other},
         {"a change of a replay that is none", test_no_patch}, {"what if", test_whatif},
         {"what if there was no object of a custom kind", test_whatif_of_a_custom_kind},
         {"how many more fit", test_capacity}, {"a drain", test_drain},
         {"configurations", test_configs}, {"a scenario", test_scenario},
         {"a scenario that cannot be read", test_scenario_object}, {"the past", test_timeline},
         {"streams", test_streams})
