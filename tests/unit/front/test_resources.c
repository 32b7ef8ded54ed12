/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/front/test_resources.c - what every pod asks for, as the feed tells
 */
#include "front/resources.h"

#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

static uv_loop_t loop;
static struct bh_resources *r;

static void change(Berth__ChangeOp op, const char *uid, const char *json)
{
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    struct bh_arena a;
    struct bh_buf bytes = {0};
    ProtobufCMessage *m = NULL;
    struct bh_err err = {""};

    bh_arena_init(&a, 0);
    c.op = op;
    c.kind = BH_KIND_POD;
    c.uid = (char *)(uintptr_t)uid;
    if (json) {
        CU_ASSERT_EQUAL_FATAL(
            bh_decode_object(&a, &k8s__pod__descriptor, json, strlen(json), &m, &err), 0);
        bh_pb_pack(&bytes, m);
    }
    c.object.data = (uint8_t *)bytes.p;
    c.object.len = bytes.n;
    bh_resources_change(r, &c);
    bh_buf_fini(&bytes);
    bh_arena_fini(&a);
}

static void expect(const char *text)
{
    struct bh_buf out = {0}, series = {0};

    bh_resources_write(r, &out);
    for (const char *p = bh_buf_str(&out); *p; p = strchr(p, '\n') + 1)
        if (*p != '#') /* without HELP and TYPE */
            bh_buf_add(&series, p, strcspn(p, "\n") + 1);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&series), text);
    bh_buf_fini(&series);
    bh_buf_fini(&out);
}

static void begin(void)
{
    uv_loop_init(&loop);
    r = bh_resources_new(&loop, "/nonexistent");
}

static void end(void)
{
    bh_resources_free(r);
    uv_run(&loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(uv_loop_close(&loop), 0);
}

#define META "\"metadata\":{\"namespace\":\"n\",\"name\":\"p\",\"uid\":\"u\"}"
#define LINE(what, node, resource, unit, v)                                                        \
    "kube_pod_resource_" what "{namespace=\"n\",node=\"" node                                      \
    "\",pod=\"p\",priority=\"\",resource=\"" resource "\",scheduler=\"s\",unit=\"" unit "\"} " v   \
    "\n"

static void test_requests(void)
{
    begin();
    change(BERTH__CHANGE_OP__CHANGE_ADDED, "u",
           "{" META ",\"spec\":{\"schedulerName\":\"s\",\"overhead\":{\"cpu\":\"50m\"},"
           "\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"100m\","
           "\"hugepages-2Mi\":\"4Mi\",\"memory\":\"0\"}}}],\"initContainers\":[{\"name\":\"i\","
           "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}");
    expect(LINE("request", "", "cpu", "cores", "1.05")
               LINE("request", "", "hugepages-2Mi", "bytes", "4194304"));
    end();
}

static void test_limits(void)
{
    begin();
    change(BERTH__CHANGE_OP__CHANGE_ADDED, "u",
           "{" META ",\"spec\":{\"schedulerName\":\"s\",\"nodeName\":\"m\",\"overhead\":{\"cpu\":"
           "\"1\",\"memory\":\"1\"},\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":"
           "{\"cpu\":\"2\",\"example.com/x\":\"3\"}}}]}}");
    expect(LINE("limit", "m", "cpu", "cores", "3") LINE("limit", "m", "example.com/x", "", "3")
               LINE("request", "m", "cpu", "cores", "1")
                   LINE("request", "m", "memory", "bytes", "1"));
    end();
}

static void test_life_of_a_pod(void)
{
    static const char asks[] =
        "\"schedulerName\":\"s\",\"containers\":[{\"name\":\"a\",\"resources\":"
        "{\"requests\":{\"cpu\":\"1\"}}}]}";
    char text[512];

    begin();
    snprintf(text, sizeof(text), "{" META ",\"spec\":{%s}", asks);
    change(BERTH__CHANGE_OP__CHANGE_ADDED, "u", text);
    expect(LINE("request", "", "cpu", "cores", "1"));
    change(BERTH__CHANGE_OP__CHANGE_BOUND, "u", NULL); /* its object comes */
    CU_ASSERT_EQUAL(bh_resources_count(r), 1);
    snprintf(text, sizeof(text), "{" META ",\"spec\":{\"nodeName\":\"m\",%s}", asks);
    change(BERTH__CHANGE_OP__CHANGE_MODIFIED, "u", text);
    expect(LINE("request", "m", "cpu", "cores", "1"));
    snprintf(text, sizeof(text),
             "{" META ",\"status\":{\"phase\":\"Succeeded\"},\"spec\":{\"nodeName\":\"m\",%s}",
             asks);
    change(BERTH__CHANGE_OP__CHANGE_MODIFIED, "u", text);
    expect("");
    change(BERTH__CHANGE_OP__CHANGE_ADDED, "u",
           "{" META ",\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":"
           "{\"cpu\":\"-1\"}}}]}}");
    expect("");
    change(BERTH__CHANGE_OP__CHANGE_DELETED, "u", NULL);
    change(BERTH__CHANGE_OP__CHANGE_DELETED, "", NULL);
    CU_ASSERT_EQUAL(bh_resources_count(r), 0);
    end();
}

static bool told, complete;

static void on_told(void *arg, bool all)
{
    (void)arg;
    told = true;
    complete = all;
}

static void test_the_end_tells_who_waits(void)
{
    begin();
    told = false;
    complete = true;
    bh_resources_ask(r, on_told, NULL);
    CU_ASSERT(!told);
    end();
    CU_ASSERT(told && !complete);
}

BH_TESTS("front/resources", {"requests", test_requests}, {"limits", test_limits},
         {"life of a pod", test_life_of_a_pod},
         {"the end tells who waits", test_the_end_tells_who_waits})
