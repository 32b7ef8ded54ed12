/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/binder/test_requests.c - the writes a binder sends, byte by byte where it matters
 */
#include "binder/binder.h"
#include "common/data/json.h"
#include "tests/unit/harness.h"

static char ns[] = "default", name[] = "web-0", uid[] = "u-1", node[] = "n1", empty[] = "";

static struct bh_json *parse(struct bh_arena *a, const struct bh_buf *b)
{
    struct bh_json *v = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_json_parse(a, b->p, b->n, BH_JSON_STRICT, &v, &err) == 0);
    return v;
}

static Berth__WorkItem item(void)
{
    Berth__WorkItem it = BERTH__WORK_ITEM__INIT;

    it.namespace_ = ns;
    it.name = name;
    it.uid = uid;
    it.node = node;
    return it;
}

static void test_binding_names_pod_uid_and_node(void)
{
    struct bh_buf path = {0}, body = {0};
    struct bh_arena a;
    Berth__WorkItem it = item();
    struct bh_json *v;

    bh_arena_init(&a, 0);
    bh_request_bind(&path, &body, &it, 30);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&path),
                           "/api/v1/namespaces/default/pods/web-0/binding?timeout=30s");
    v = parse(&a, &body);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "kind"), "Binding");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "metadata.uid")), "u-1");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "target.name")), "n1");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "target.kind")), "Node");
    bh_arena_fini(&a);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
}

static void test_status_patch_merges_the_condition_and_clears_the_nomination(void)
{
    struct bh_buf path = {0}, body = {0};
    struct bh_arena a;
    Berth__WorkItem it = item();
    Berth__Condition c = BERTH__CONDITION__INIT;
    char type[] = "PodScheduled", no[] = "False", why[] = "Unschedulable",
         text[] = "0/1 nodes are available: 1 \"x\"\n.";
    struct bh_json *v, *cond;

    bh_arena_init(&a, 0);
    c.type = type;
    c.status = no;
    c.reason = why;
    c.message = text;
    c.observed_generation = 3;
    c.transition = false;
    it.condition = &c;
    it.set_nominated_node = true;
    it.nominated_node = empty;
    bh_request_patch_status(&path, &body, &it);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&path), "/api/v1/namespaces/default/pods/web-0/status");
    v = parse(&a, &body);
    cond = bh_json_at(bh_json_path(v, "status.conditions"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(cond, "message"), text);
    CU_ASSERT(bh_json_get_i64(cond, "observedGeneration", 0) == 3);
    CU_ASSERT(bh_json_get(cond, "lastTransitionTime") == NULL); /* kept while the status stays */
    CU_ASSERT(bh_json_path(v, "status.nominatedNodeName")->type == BH_JSON_NULL);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "metadata.uid")), "u-1");
    c.transition = true;
    bh_request_patch_status(&path, &body, &it);
    v = parse(&a, &body);
    cond = bh_json_at(bh_json_path(v, "status.conditions"), 0);
    CU_ASSERT(bh_json_get_str(cond, "lastTransitionTime") != NULL);
    CU_ASSERT(bh_json_get(cond, "lastProbeTime")->type == BH_JSON_NULL);
    bh_arena_fini(&a);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
}

/* A PodGroup has its status where the server's version of the API is, and conditions without a probe. */
static void test_the_condition_of_a_group(void)
{
    struct bh_buf path = {0}, body = {0};
    struct bh_arena a;
    Berth__WorkItem it = item();
    Berth__Condition c = BERTH__CONDITION__INIT;
    char type[] = "PodGroupInitiallyScheduled", no[] = "False", why[] = "Unschedulable",
         version[] = "v1beta1", other[] = "PodScheduled", path_text[] = "v1/../../v1";
    struct bh_json *cond;

    bh_arena_init(&a, 0);
    c.type = type;
    c.status = no;
    c.reason = why;
    c.message = empty;
    c.observed_generation = 2;
    c.transition = true;
    it.kind = BERTH__WORK_KIND__WORK_GROUP_STATUS;
    it.condition = &c;
    it.api_version = version;
    CU_ASSERT_PTR_NULL(bh_request_refused(&it));
    bh_request_patch_status(&path, &body, &it);
    CU_ASSERT_STRING_EQUAL(
        bh_buf_str(&path),
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/web-0/status");
    cond = bh_json_at(bh_json_path(parse(&a, &body), "status.conditions"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(cond, "type"), type);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(cond, "message"), "");
    CU_ASSERT(bh_json_get_i64(cond, "observedGeneration", 0) == 2);
    CU_ASSERT_PTR_NOT_NULL(bh_json_get_str(cond, "lastTransitionTime"));
    CU_ASSERT_PTR_NULL(bh_json_get(cond, "lastProbeTime"));
    it.api_version = path_text;
    CU_ASSERT_PTR_NOT_NULL(bh_request_refused(&it));
    it.api_version = version;
    c.type = other;
    CU_ASSERT_PTR_NOT_NULL(bh_request_refused(&it));
    bh_arena_fini(&a);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
}

static void test_delete_carries_the_uid_as_precondition(void)
{
    struct bh_buf path = {0}, body = {0};
    struct bh_arena a;
    Berth__WorkItem it = item();

    bh_arena_init(&a, 0);
    bh_request_delete(&path, &body, &it);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(parse(&a, &body), "preconditions.uid")),
                           "u-1");
    bh_arena_fini(&a);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
}

static void test_event_names(void)
{
    const struct {
        const char *pod;
        uint64_t unique;
        const char *want;
    } cases[] = {{"web-0", 0, "web-0.0"},
                 {"web-0", 0xf, "web-0.f"},
                 {"web-0", 0x10, "web-0.10"},
                 {"web-0", 0x18c0ffee12345678, "web-0.18c0ffee12345678"},
                 {"web.-", UINT64_MAX, "web.ffffffffffffffff"},
                 {"-", 7, ".7"}};
    char text[256], longest[300];

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        bh_request_event_name(text, cases[i].pod, cases[i].unique);
        CU_ASSERT_STRING_EQUAL(text, cases[i].want);
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    bh_request_event_name(text, longest, UINT64_MAX);
    CU_ASSERT_EQUAL(strlen(text), 253);
}

static void test_event_survives_hostile_text(void)
{
    struct bh_buf path = {0}, body = {0};
    struct bh_arena a;
    Berth__WorkItem it = item();
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    char type[] = "Warning", reason[] = "FailedScheduling", action[] = "Scheduling",
         note[] = "100% \x1b[31m\xff %s %n", controller[] = "default-scheduler";
    struct bh_json *v;

    bh_arena_init(&a, 0);
    e.type = type;
    e.reason = reason;
    e.action = action;
    e.note = note;
    e.reporting_controller = controller;
    it.event = &e;
    bh_request_event(&path, &body, &it, "host", 0xabc);
    v = parse(&a, &body);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "metadata.name")), "web-0.abc");
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "reportingInstance"), "default-scheduler-host");
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "note"), "100% \x1b[31m\xef\xbf\xbd %s %n");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "regarding.kind")), "Pod");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "regarding.namespace")), "default");
    it.kind = BERTH__WORK_KIND__WORK_EVENT;
    it.node = it.name;
    bh_request_event(&path, &body, &it, "host", 0xabd);
    v = parse(&a, &body);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(v, "regarding.kind")), "Node");
    CU_ASSERT(bh_json_path(v, "regarding.namespace") == NULL);
    CU_ASSERT(bh_json_path(v, "related") == NULL);
    bh_arena_fini(&a);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
}

static void test_whom_an_event_is_related_to(void)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, body BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_series_set s = {.list = TAILQ_HEAD_INITIALIZER(s.list)};
    struct bh_series_write w = {0};
    struct bh_arena a;
    Berth__WorkItem it = item();
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    Berth__ObjectReference r = BERTH__OBJECT_REFERENCE__INIT;
    char reason[] = "Preempted", kind[] = "Pod", version[] = "v1", vip[] = "vip", one[] = "u-vip",
         other[] = "u-other", at[] = "7";

    bh_arena_init(&a, 0);
    e.reason = reason;
    e.related = &r;
    it.event = &e;
    r.kind = kind;
    r.api_version = version;
    r.name = vip;
    r.uid = one;
    bh_request_event(&path, &body, &it, "host", 1);
    CU_ASSERT_PTR_NULL(bh_json_path(parse(&a, &body), "related.namespace"));
    r.namespace_ = ns;
    r.resource_version = at;
    bh_request_event(&path, &body, &it, "host", 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        bh_buf_str(&body), "\"related\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"name\":\"vip\","
                           "\"uid\":\"u-vip\",\"namespace\":\"default\","
                           "\"resourceVersion\":\"7\"},\"note\":"));
    CU_ASSERT(bh_series_observe(&s, &it, 1, &w) == BH_SERIES_FIRST);
    (void)bh_series_start(&s, &it, 1, "web-0.1", &path, &body, &w);
    r.uid = other; /* another preemptor's is another event */
    CU_ASSERT(bh_series_observe(&s, &it, 1, &w) == BH_SERIES_FIRST);
    r.uid = one;
    CU_ASSERT(bh_series_observe(&s, &it, 1, &w) == BH_SERIES_SECOND);
    bh_series_write_fini(&w);
    bh_series_fini(&s);
    bh_arena_fini(&a);
}

static void test_what_has_no_uid_is_refused(void)
{
    Berth__WorkItem it = item();

    CU_ASSERT_PTR_NULL(bh_request_refused(&it));
    it.uid = empty;
    CU_ASSERT_STRING_EQUAL(bh_request_refused(&it), "the uid is missing");
    it.uid = NULL;
    CU_ASSERT_STRING_EQUAL(bh_request_refused(&it), "the uid is missing");
}

/* Whether a write is due at that time, and with this in it, once. */
static bool due(struct bh_series_set *s, int64_t wall_ns, const char *part)
{
    struct bh_series_write w = {0};
    const bool is = bh_series_due(s, wall_ns, &w);

    CU_ASSERT_TRUE(!is || strstr(bh_buf_str(&w.patch_body), part));
    CU_ASSERT_FALSE(is && bh_series_due(s, wall_ns, &w)); /* once */
    bh_series_write_fini(&w);
    return is;
}

/* An event that goes on for hours is told of every half an hour: the API server forgets it else. */
/* As when a hundred thousand pods do not fit: nothing grows until a timer comes round. */
static void test_of_too_many_series_the_longest_unseen_is_ended(void)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, body BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_series_set s = {.list = TAILQ_HEAD_INITIALIZER(s.list)};
    struct bh_series_write w = {0};
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    Berth__WorkItem it = item();
    unsigned written = 0;
    char other[24];

    it.event = &e;
    e.reason = name;
    bh_buf_adds(&path, "/events");
    bh_buf_adds(&body, "{}");
    CU_ASSERT(bh_series_observe(&s, &it, 1, &w) == BH_SERIES_FIRST);
    CU_ASSERT_FALSE(bh_series_start(&s, &it, 1, "web-0.1", &path, &body, &w));
    CU_ASSERT(bh_series_observe(&s, &it, 1, &w) == BH_SERIES_SECOND);
    CU_ASSERT(bh_series_observe(&s, &it, 1, &w) == BH_SERIES_COUNTED);
    it.uid = other;
    for (unsigned i = 0; i < BH_SERIES_MAX + 3; i++) {
        snprintf(other, sizeof(other), "other-%u", i);
        CU_ASSERT(bh_series_observe(&s, &it, 2 + i, &w) == BH_SERIES_FIRST);
        written += bh_series_start(&s, &it, 2 + i, "web-0.2", &path, &body, &w);
        CU_ASSERT(!written || strstr(bh_buf_str(&w.patch_body), "\"count\":3"));
    }
    CU_ASSERT(written == 1 && bh_series_count(&s) == BH_SERIES_MAX);
    bh_series_write_fini(&w);
    bh_series_fini(&s);
}

static void test_a_series_that_lives_is_written_again(void)
{
    const int64_t each_ns = BH_SERIES_FINISH_NS / 2, start_ns = 1000000000;
    struct bh_series_set s = {.list = TAILQ_HEAD_INITIALIZER(s.list)};
    struct bh_buf path = {0}, body = {0};
    struct bh_series_write w = {0};
    Berth__WorkItem it = item();
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;

    it.event = &e;
    e.reason = name;
    bh_request_event(&path, &body, &it, "host", 1);
    CU_ASSERT(bh_series_observe(&s, &it, start_ns, &w) == BH_SERIES_FIRST);
    (void)bh_series_start(&s, &it, start_ns, "web-0.1", &path, &body, &w);
    CU_ASSERT(bh_series_observe(&s, &it, start_ns, &w) == BH_SERIES_SECOND);
    for (unsigned i = 1; i <= 20; i++) {
        const int64_t now_ns = start_ns + i * each_ns;
        CU_ASSERT(bh_series_observe(&s, &it, now_ns, &w) == BH_SERIES_COUNTED);
        CU_ASSERT_FALSE(due(&s, now_ns - 1, ""));
        CU_ASSERT_EQUAL(due(&s, now_ns, i == 10 ? "\"count\":12," : "\"count\":22,"), i % 10 == 0);
    }
    CU_ASSERT_EQUAL(bh_series_count(&s), 1);
    CU_ASSERT_TRUE(due(&s, start_ns + 22 * each_ns + 1, "\"count\":22,")); /* it has ended */
    CU_ASSERT_EQUAL(bh_series_count(&s), 0);
    bh_series_write_fini(&w);
    bh_series_fini(&s);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
}

BH_TESTS("binder/requests",
         {"binding names pod, uid and node", test_binding_names_pod_uid_and_node},
         {"status patch merges the condition and clears the nomination",
          test_status_patch_merges_the_condition_and_clears_the_nomination},
         {"the condition of a group", test_the_condition_of_a_group},
         {"delete carries the uid as precondition", test_delete_carries_the_uid_as_precondition},
         {"names of events", test_event_names},
         {"event survives hostile text", test_event_survives_hostile_text},
         {"whom an event is related to", test_whom_an_event_is_related_to},
         {"what has no uid is refused", test_what_has_no_uid_is_refused},
         {"of too many series the longest unseen is ended",
          test_of_too_many_series_the_longest_unseen_is_ended},
         {"a series that lives is written again", test_a_series_that_lives_is_written_again})
