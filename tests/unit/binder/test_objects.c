/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/binder/test_objects.c - writes to volumes and claims, step by step against an API
 * server that the test plays: what goes out, and what every answer means
 */
#include <errno.h>

#include "binder/patches.h"
#include "common/data/json.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

#define VOLUME     BERTH__WORK_KIND__WORK_VOLUME_CLAIM
#define SELECT     BERTH__WORK_KIND__WORK_SELECTED_NODE
#define ALLOCATE   BERTH__WORK_KIND__WORK_ALLOCATION
#define RESERVE    BERTH__WORK_KIND__WORK_RESERVATION
#define CREATE     BERTH__WORK_KIND__WORK_NEW_CLAIM
#define DEALLOCATE BERTH__WORK_KIND__WORK_DEALLOCATION
#define REMOVE     BERTH__WORK_KIND__WORK_DELETE_CLAIM
#define UNRESERVE  BERTH__WORK_KIND__WORK_UNRESERVATION
#define DONE       BERTH__OUTCOME__OUTCOME_DONE
#define REJECTED   BERTH__OUTCOME__OUTCOME_REJECTED
#define GONE       BERTH__OUTCOME__OUTCOME_GONE
#define CLAIM_PATH "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"

static struct {
    struct bh_arena a;
    Berth__WorkItem item;
    Berth__ObjectWrite write;
    struct bh_object_job *job;
    struct bh_buf path, body, seen;
    struct bh_object_end end;
    bool ended;
} t;

static char *text(const char *s)
{
    return bh_arena_strdup(&t.a, s);
}

static ProtobufCBinaryData pack(const ProtobufCMessageDescriptor *d, const char *json)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};
    struct bh_buf b = {0};
    ProtobufCBinaryData data;

    CU_ASSERT_FATAL(bh_decode_object(&t.a, d, json, strlen(json), &m, &err) == 0);
    bh_pb_pack(&b, m);
    data = (ProtobufCBinaryData){b.n, bh_arena_memdup(&t.a, b.p, b.n)};
    bh_buf_fini(&b);
    return data;
}

static void begin(Berth__WorkKind kind, const char *name, const ProtobufCMessageDescriptor *d,
                  const char *json)
{
    struct bh_err err = {0};

    bh_arena_init(&t.a, 0);
    berth__work_item__init(&t.item);
    berth__object_write__init(&t.write);
    t.item.kind = kind;
    t.item.namespace_ = text("ns");
    t.item.name = text("p");
    t.item.uid = text("u-p");
    t.item.write = &t.write;
    t.write.namespace_ = kind == VOLUME ? NULL : text("ns");
    t.write.name = text(name);
    t.write.uid = text("u-o");
    t.write.resource_version = text("5");
    t.write.object = pack(d, json);
    if (kind == CREATE)
        t.write.pod_status = pack(&k8s__pod_extended_resource_claim_status__descriptor,
                                  "{\"requestMappings\":[{\"containerName\":\"c\",\"resourceName\":"
                                  "\"x/y\",\"requestName\":"
                                  "\"q\"}]}");
    t.ended = false;
    t.job = bh_object_job_new(&t.item, NULL, &err);
    CU_ASSERT_FATAL(t.job != NULL);
}

static void finish(void)
{
    bh_object_job_free(t.job);
    bh_buf_fini(&t.path);
    bh_buf_fini(&t.body);
    bh_buf_fini(&t.seen);
    bh_arena_fini(&t.a);
}

/* The request that goes out next is this one. */
static void sends(const char *method, const char *path)
{
    struct bh_api_call call = {.method = NULL};

    CU_ASSERT_FATAL(!t.ended);
    bh_object_job_request(t.job, &t.path, &t.body, &call);
    CU_ASSERT_STRING_EQUAL(call.method, method);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&t.path), path);
    CU_ASSERT(bh_object_job_reads(t.job) == bh_streq(method, "GET"));
}

static bool body_has(const char *part)
{
    return strstr(bh_buf_str(&t.body), part) != NULL;
}

static void gets(int code, const char *json)
{
    struct bh_api_reply r = {.outcome = BH_API_OK, .code = code};

    r.body = (struct bh_str){json, (uint32_t)strlen(json)};
    t.ended = bh_object_job_reply(t.job, &r, &t.end);
}

static void gets_conflict(void)
{
    gets(409, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":"
              "\"Conflict\",\"message\":\"it was modified\",\"code\":409}");
}

static void ends(Berth__Outcome o, const char *message)
{
    CU_ASSERT_FATAL(t.ended);
    CU_ASSERT(t.end.outcome == o);
    CU_ASSERT_STRING_EQUAL(t.end.message, message);
}

/* ---- volumes --------------------------------------------------------------------------------- */

#define PV_PATH "/api/v1/persistentvolumes/v"
#define PV(version, spec)                                                                          \
    "{\"metadata\":{\"name\":\"v\",\"uid\":\"u-o\",\"resourceVersion\":\"" version                 \
    "\",\"annotations\":{\"pv.kubernetes.io/bound-by-controller\":\"yes\"}},\"spec\":{" spec "}}"
#define REF(uid)                                                                                   \
    "\"claimRef\":{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"ns\"," \
    "\"name\":\"c\",\"uid\":\"" uid "\",\"resourceVersion\":\"4\"}"

static void begin_volume(void)
{
    begin(VOLUME, "v", &k8s__persistent_volume__descriptor, PV("5", REF("u-c")));
    sends("PATCH", PV_PATH);
}

static void test_a_volume_gets_its_claim(void)
{
    begin_volume();
    CU_ASSERT_STRING_EQUAL(
        bh_buf_str(&t.body),
        "{\"metadata\":{\"uid\":\"u-o\",\"resourceVersion\":\"5\",\"annotations\":{"
        "\"pv.kubernetes.io/bound-by-controller\":\"yes\"}},\"spec\":{\"claimRef\":{"
        "\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"ns\",\"name\":\"c\",\"uid\":\"u-c\","
        "\"apiVersion\":\"v1\",\"resourceVersion\":\"4\",\"fieldPath\":null}}}");
    gets(200, PV("6", REF("u-c")));
    ends(DONE, "");
    CU_ASSERT(bh_object_job_seen(t.job, &t.seen) && t.seen.n > 0);
    finish();
}

static void test_a_conflict_is_looked_at(void)
{
    begin_volume(); /* our own earlier write */
    gets_conflict();
    sends("GET", PV_PATH);
    gets(200, PV("9", REF("u-c")));
    ends(DONE, "");
    finish();

    begin_volume(); /* something that does not matter has changed */
    gets_conflict();
    sends("GET", PV_PATH);
    gets(200, PV("9", ""));
    sends("PATCH", PV_PATH);
    CU_ASSERT(body_has("\"resourceVersion\":\"9\""));
    gets(200, PV("10", REF("u-c")));
    ends(DONE, "");
    finish();

    begin_volume(); /* another claim has it */
    gets_conflict();
    sends("GET", PV_PATH);
    gets(200, PV("9", REF("u-other")));
    ends(REJECTED, "it was modified");
    finish();

    begin_volume(); /* another object under the name */
    gets_conflict();
    sends("GET", PV_PATH);
    gets(200, "{\"metadata\":{\"name\":\"v\",\"uid\":\"u-new\",\"resourceVersion\":\"9\"}}");
    ends(GONE, "the object was re-created");
    finish();
}

static void test_conflicts_end(void)
{
    begin_volume();
    for (unsigned i = 0; i < 5; i++) {
        gets_conflict();
        sends("GET", PV_PATH);
        gets(200, PV("9", ""));
        sends("PATCH", PV_PATH);
    }
    gets_conflict();
    ends(REJECTED, "it was modified");
    finish();
}

static void test_what_is_missing_or_refused_ends(void)
{
    begin_volume();
    gets(404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"no such volume\"}");
    ends(GONE, "no such volume");
    finish();
    begin_volume();
    gets(403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"you may not\"}");
    ends(REJECTED, "you may not");
    finish();
    begin_volume(); /* not an object: look, and give up when that goes on */
    for (unsigned i = 0; i < 20 && !t.ended; i++)
        gets(200, "[]");
    CU_ASSERT(t.ended && t.end.outcome == REJECTED);
    finish();
}

#define PVC(notes, spec)                                                                           \
    "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"u-o\",\"resourceVersion\":"      \
    "\"5\","                                                                                       \
    "\"annotations\":{" notes "}},\"spec\":{" spec "}}"
#define SELECTED(node) "\"volume.kubernetes.io/selected-node\":\"" node "\""

static void test_a_claim_gets_its_node(void)
{
    static const char path[] = "/api/v1/namespaces/ns/persistentvolumeclaims/c";

    begin(SELECT, "c", &k8s__persistent_volume_claim__descriptor, PVC(SELECTED("n1"), ""));
    sends("PATCH", path);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&t.body),
                           "{\"metadata\":{\"uid\":\"u-o\",\"resourceVersion\":\"5\","
                           "\"annotations\":{" SELECTED("n1") "}}}");
    gets_conflict();
    sends("GET", path);
    gets(200, PVC(SELECTED("n2"), "")); /* somebody chose otherwise */
    ends(REJECTED, "it was modified");
    finish();

    begin(SELECT, "c", &k8s__persistent_volume_claim__descriptor, PVC(SELECTED("n1"), ""));
    sends("PATCH", path);
    gets_conflict();
    gets(200, PVC("", "\"volumeName\":\"v\"")); /* bound by now */
    ends(REJECTED, "it was modified");
    finish();
}

/* ---- claims ---------------------------------------------------------------------------------- */

#define FINALIZER "\"finalizers\":[\"resource.kubernetes.io/delete-protection\"]"
#define RESULT(device)                                                                             \
    "\"allocation\":{\"devices\":{\"results\":[{\"request\":\"q\",\"driver\":\"d.x\",\"pool\":"    \
    "\"n1\",\"device\":\"" device "\"}]}}"
#define FOR(uid) "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"" uid "\"}]"
#define RC(version, meta, status)                                                                  \
    "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"u-o\",\"resourceVersion\":"      \
    "\"" version "\"" meta "},\"status\":{" status "}}"

static void begin_allocation(void)
{
    begin(ALLOCATE, "r", &k8s__resource_claim__descriptor,
          RC("5", "," FINALIZER, RESULT("g0") "," FOR("u-p")));
    sends("PATCH", CLAIM_PATH "/r");
    CU_ASSERT(body_has(FINALIZER) && body_has("\"resourceVersion\":\"5\"") && !body_has("status"));
}

static void test_a_claim_is_protected_then_allocated(void)
{
    begin_allocation();
    gets(200, RC("6", "," FINALIZER, ""));
    sends("PATCH", CLAIM_PATH "/r/status");
    CU_ASSERT(body_has("\"resourceVersion\":\"6\"") && body_has("\"device\":\"g0\"") &&
              body_has(FOR("u-p")) && body_has("\"allocationTimestamp\":\"2"));
    gets(200, RC("7", "," FINALIZER, RESULT("g0") "," FOR("u-p")));
    ends(DONE, "");
    finish();
}

static void test_an_allocation_is_not_made_twice_nor_over_another(void)
{
    begin_allocation(); /* repeated: both steps were done */
    gets_conflict();
    sends("GET", CLAIM_PATH "/r");
    gets(200, RC("7", "," FINALIZER, RESULT("g0") "," FOR("u-p")));
    ends(DONE, "");
    finish();

    begin_allocation(); /* repeated: the first step was done */
    gets_conflict();
    gets(200, RC("6", "," FINALIZER, ""));
    sends("PATCH", CLAIM_PATH "/r/status");
    finish();

    begin_allocation(); /* another member of the group wrote the same: the pod is added */
    gets_conflict();
    gets(200, RC("7", "," FINALIZER, RESULT("g0") "," FOR("u-x")));
    sends("PATCH", CLAIM_PATH "/r/status");
    CU_ASSERT(body_has("\"resourceVersion\":\"7\"") && body_has("u-x") && body_has("u-p") &&
              !body_has("allocation"));
    finish();

    begin_allocation();
    gets_conflict();
    gets(200, RC("7", "," FINALIZER, RESULT("g1") "," FOR("u-x")));
    ends(REJECTED, "claim ns/r got allocated elsewhere in the meantime");
    finish();

    begin_allocation(); /* ours, but on the devices of an earlier decision */
    gets_conflict();
    gets(200, RC("7", "," FINALIZER, RESULT("g1") "," FOR("u-p")));
    ends(REJECTED, "claim ns/r got allocated elsewhere in the meantime");
    finish();

    begin_allocation();
    gets_conflict();
    gets(200, RC("7", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", ""));
    ends(REJECTED, "claim ns/r got deleted in the meantime");
    finish();

    begin_allocation();
    gets(422, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"bad\"}");
    ends(REJECTED, "add finalizer to claim ns/r: bad");
    finish();
}

static void begin_reservation(void)
{
    begin(RESERVE, "r", &k8s__resource_claim__descriptor,
          RC("5", "",
             RESULT("g0") ",\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"o\",\"uid\":"
                          "\"u-other\"},{\"resource\":\"pods\",\"name\":\"p\",\"uid\":"
                          "\"u-p\"}]"));
    sends("PATCH", CLAIM_PATH "/r/status");
    CU_ASSERT(body_has("u-other") && body_has("u-p") && !body_has("allocation"));
}

static void test_a_reservation_joins_what_is_there_now(void)
{
    begin_reservation();
    gets_conflict();
    gets(200, RC("8", "", RESULT("g0") "," FOR("u-third")));
    sends("PATCH", CLAIM_PATH "/r/status");
    CU_ASSERT(body_has("u-third") && body_has("u-p") && !body_has("u-other"));
    gets(200, RC("9", "", RESULT("g0") "," FOR("u-p")));
    ends(DONE, "");
    finish();

    begin_reservation();
    gets_conflict();
    gets(200, RC("8", "", ""));
    ends(REJECTED, "claim ns/r got deallocated elsewhere in the meantime");
    finish();
}

static void test_undoing(void)
{
    begin(UNRESERVE, "r", &k8s__resource_claim__descriptor, RC("5", "", RESULT("g0")));
    sends("PATCH", CLAIM_PATH "/r/status");
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&t.body),
                           "{\"metadata\":{\"uid\":\"u-o\"},\"status\":{\"reservedFor\":[{"
                           "\"$patch\":\"delete\",\"uid\":\"u-p\"}]}}");
    gets(200, RC("6", "", RESULT("g0")));
    ends(DONE, "");
    finish();

    begin(DEALLOCATE, "r", &k8s__resource_claim__descriptor, RC("5", "", ""));
    sends("PATCH", CLAIM_PATH "/r/status");
    CU_ASSERT(body_has("\"allocation\":null") && body_has("\"reservedFor\":null"));
    gets_conflict(); /* what was decided about has changed: somebody may use it */
    gets(200, RC("6", "", RESULT("g0") "," FOR("u-p")));
    ends(REJECTED, "it was modified");
    finish();

    begin(REMOVE, "r", &k8s__resource_claim__descriptor, RC("5", "", ""));
    sends("PATCH", CLAIM_PATH "/r");
    CU_ASSERT(body_has("\"finalizers\":[]"));
    gets(200, RC("6", "", ""));
    sends("DELETE", CLAIM_PATH "/r");
    CU_ASSERT(body_has("\"preconditions\":{\"uid\":\"u-o\"}"));
    gets(404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"gone\"}");
    ends(DONE, "");
    finish();
}

/* ---- a claim for extended resources ---------------------------------------------------------- */

#define OWNED(uid)                                                                                 \
    ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"" uid  \
    "\"}]"
#define NEW                                                                                        \
    "{\"metadata\":{\"namespace\":\"ns\",\"generateName\":\"p-extended-resources-\"" OWNED(        \
        "u-p") "," FINALIZER "},\"spec\":{},\"status\":{" RESULT("g0") "," FOR("u-p") "}}"

static void test_a_new_claim_has_one_name_whoever_makes_it(void)
{
    char name[64];

    begin(CREATE, "", &k8s__resource_claim__descriptor, NEW);
    sends("POST", CLAIM_PATH);
    CU_ASSERT(!body_has("status") && !body_has("finalizers") &&
              body_has("\"kind\":\"ResourceClaim\""));
    const char *at = strstr(bh_buf_str(&t.body), "\"name\":\"p-extended-resources-");
    CU_ASSERT_FATAL(at != NULL);
    snprintf(name, sizeof(name), "%.*s", 26, at + 8);
    CU_ASSERT_STRING_EQUAL(name, "p-extended-resources-8nlx5"); /* and whatever its version */
    CU_ASSERT(at[8 + 26] == '"');
    finish();

    begin(CREATE, "", &k8s__resource_claim__descriptor, NEW); /* another binder, the same pod */
    sends("POST", CLAIM_PATH);
    CU_ASSERT(body_has(name));
    gets_conflict();
    sends("GET", bh_arena_printf(&t.a, CLAIM_PATH "/%s", name));
    gets(200, RC("8", OWNED("u-p"), "")); /* made, not allocated */
    sends("PATCH", bh_arena_printf(&t.a, CLAIM_PATH "/%s", name));
    gets(200, RC("9", OWNED("u-p") "," FINALIZER, ""));
    sends("PATCH", bh_arena_printf(&t.a, CLAIM_PATH "/%s/status", name));
    gets(200, RC("10", OWNED("u-p"), RESULT("g0") "," FOR("u-p")));
    sends("PATCH", "/api/v1/namespaces/ns/pods/p/status");
    CU_ASSERT(body_has(name) && body_has("\"requestMappings\":[{") && body_has("\"uid\":\"u-p\""));
    gets(404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"pod is gone\"}");
    ends(GONE, "pod is gone");
    CU_ASSERT(bh_object_job_seen(t.job, &t.seen)); /* so that it can be undone */
    finish();
}

static void test_a_strangers_claim_is_left_alone(void)
{
    char first[256];

    begin(CREATE, "", &k8s__resource_claim__descriptor, NEW);
    sends("POST", CLAIM_PATH);
    snprintf(first, sizeof(first), "%s", bh_buf_str(&t.body));
    gets_conflict();
    gets(200, RC("8", OWNED("u-x"), ""));
    sends("POST", CLAIM_PATH);
    CU_ASSERT(strcmp(first, bh_buf_str(&t.body)) != 0);
    CU_ASSERT(body_has("\"name\":\"p-extended-resources-4lknb\""));
    for (unsigned i = 0; i < 20 && !t.ended; i++) {
        gets_conflict();
        if (!t.ended)
            gets(200, RC("8", OWNED("u-x"), ""));
    }
    CU_ASSERT(t.ended && t.end.outcome == REJECTED);
    finish();
}

static void test_an_object_that_says_nothing_is_refused(void)
{
    struct bh_err err = {0};

    begin_volume();
    t.write.object = pack(&k8s__persistent_volume__descriptor, PV("5", ""));
    CU_ASSERT(bh_object_job_new(&t.item, NULL, &err) == NULL);
    CU_ASSERT(*err.msg);
    t.write.object = (ProtobufCBinaryData){3, (uint8_t *)text("\xff\xff\xff")};
    CU_ASSERT(bh_object_job_new(&t.item, NULL, &err) == NULL);
    finish();
}

/* ---- what plugins ask for ---------------------------------------------------------------------- */

static Berth__ObjectPatch patch;

/* Of seat s of ns; NULL: refused, with this reason. */
static void ask(const char *allowed, bool json, const char *body, const char *refusal)
{
    struct bh_err err = {0};

    bh_arena_init(&t.a, 0);
    berth__work_item__init(&t.item);
    berth__object_write__init(&t.write);
    berth__object_patch__init(&patch);
    t.item.kind = BERTH__WORK_KIND__WORK_PATCH;
    t.item.write = &t.write;
    t.write.namespace_ = text("ns");
    t.write.name = text("s");
    t.write.uid = text("u-o");
    t.write.patch = &patch;
    patch.api_version = text("x.example.com/v1");
    patch.resource = text("seats");
    patch.json = json;
    patch.body = text(body);
    t.ended = false;
    t.job = bh_object_job_new(&t.item, allowed, &err);
    CU_ASSERT((t.job != NULL) == (refusal == NULL));
    CU_ASSERT_STRING_EQUAL(err.msg, refusal ? refusal : "");
}

#define SEATS     "nodes,seats.x.example.com"
#define SEAT_PATH "/apis/x.example.com/v1/namespaces/ns/seats/s"
#define BY_P      "{\"metadata\":{\"labels\":{\"l\":\"1\"}},\"spec\":{\"by\":\"p\"}}"
#define SEAT(uid, version, rest)                                                                   \
    "{\"metadata\":{\"name\":\"s\",\"uid\":\"" uid "\",\"resourceVersion\":\"" version "\","       \
    "\"labels\":{\"l\":\"1\"}}" rest "}"

static void test_a_merge_patch_is_made_of_the_object_that_was_meant(void)
{
    ask(SEATS, false, BY_P, NULL);
    sends("PATCH", SEAT_PATH);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&t.body),
                           "{\"metadata\":{\"labels\":{\"l\":\"1\"},\"uid\":\"u-o\"},\"spec\":{"
                           "\"by\":\"p\"}}");
    gets_conflict(); /* whose? */
    sends("GET", SEAT_PATH);
    gets(200, SEAT("u-o", "7", ",\"spec\":{\"by\":\"q\"}"));
    sends("PATCH", SEAT_PATH);
    gets_conflict();
    gets(200, SEAT("u-o", "8", ",\"spec\":{\"by\":\"p\"}"));
    ends(DONE, ""); /* an earlier request of ours */
    finish();

    ask(SEATS, false, BY_P, NULL);
    sends("PATCH", SEAT_PATH);
    gets_conflict();
    sends("GET", SEAT_PATH);
    gets(200, SEAT("u-other", "7", ""));
    ends(GONE, "the object was re-created");
    finish();

    ask(SEATS, false, BY_P, NULL);
    sends("PATCH", SEAT_PATH);
    gets(200, SEAT("u-o", "8", ""));
    ends(DONE, "");
    CU_ASSERT(!bh_object_job_seen(t.job, &t.seen));
    finish();
}

static void test_a_patch_of_a_version_is_not_made_of_another(void)
{
    ask(SEATS, false, BY_P, NULL);
    t.write.resource_version = text("5");
    bh_object_job_free(t.job);
    t.job = bh_object_job_new(&t.item, SEATS, NULL);
    sends("PATCH", SEAT_PATH);
    CU_ASSERT(body_has("\"resourceVersion\":\"5\""));
    gets_conflict();
    sends("GET", SEAT_PATH);
    gets(200, SEAT("u-o", "6", ",\"spec\":{\"by\":\"q\"}"));
    ends(REJECTED, "it was modified");
    finish();
}

static void test_a_json_patch_tests_first(void)
{
    static const char body[] = "[{\"op\":\"test\",\"path\":\"/spec/by\",\"value\":\"\"},"
                               "{\"op\":\"replace\",\"path\":\"/spec/by\",\"value\":\"p\"},"
                               "{\"op\":\"remove\",\"path\":\"/spec/free\"}]";
    static const char failed[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":"
        "\"Invalid\",\"message\":\"the server rejected our request\",\"code\":422}";

    ask(SEATS, true, body, NULL);
    sends("PATCH", SEAT_PATH);
    CU_ASSERT(strncmp(bh_buf_str(&t.body),
                      "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u-o\"},"
                      "{\"op\":\"test\",\"path\":\"/spec/by\"",
                      80) == 0);
    gets(422, failed);
    sends("GET", SEAT_PATH);
    gets(200, SEAT("u-o", "7", ",\"spec\":{\"by\":\"p\"}"));
    ends(DONE, ""); /* both are as wanted */
    finish();

    ask(SEATS, true, body, NULL);
    sends("PATCH", SEAT_PATH);
    gets(422, failed);
    sends("GET", SEAT_PATH);
    gets(200, SEAT("u-o", "7", ",\"spec\":{\"by\":\"q\",\"free\":true}"));
    ends(REJECTED, "the server rejected our request"); /* somebody else's now */
    finish();

    ask(SEATS, true, body, NULL);
    for (unsigned i = 0; i < 20 && !t.ended; i++) {
        sends(i % 2 ? "GET" : "PATCH", SEAT_PATH);
        if (i % 2)
            gets(200, SEAT("u-o", "7", ",\"spec\":{\"by\":\"\",\"free\":true}"));
        else
            gets_conflict();
    }
    ends(REJECTED, "it was modified"); /* not for ever */
    finish();

    ask(SEATS, true, body, NULL);
    t.write.resource_version = text("5");
    bh_object_job_free(t.job);
    t.job = bh_object_job_new(&t.item, SEATS, NULL);
    sends("PATCH", SEAT_PATH);
    CU_ASSERT_STRING_EQUAL(
        bh_buf_str(&t.body),
        "[{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u-o\"},"
        "{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"5\"},"
        "{\"op\":\"test\",\"path\":\"/spec/by\",\"value\":\"\"},"
        "{\"op\":\"replace\",\"path\":\"/spec/by\",\"value\":\"p\"},"
        "{\"op\":\"remove\",\"path\":\"/spec/free\"}]");
    gets(422, failed);
    sends("GET", SEAT_PATH);
    gets(200, SEAT("u-o", "5", ",\"spec\":{\"by\":\"\",\"free\":true}"));
    sends("PATCH", SEAT_PATH); /* as it was meant: what failed was something else */
    finish();
}

static void test_a_patch_that_is_missing_or_refused_ends(void)
{
    ask(SEATS, false, BY_P, NULL);
    sends("PATCH", SEAT_PATH);
    gets(404, "{}");
    CU_ASSERT(t.ended && t.end.outcome == GONE);
    finish();
    ask(SEATS, false, BY_P, NULL);
    sends("PATCH", SEAT_PATH);
    gets(403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}");
    ends(REJECTED, "no");
    finish();
    ask(SEATS, false, BY_P, NULL);
    sends("PATCH", SEAT_PATH);
    gets(422, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"by: too long\"}");
    ends(REJECTED, "by: too long");
    finish();
    ask(SEATS, false, BY_P, NULL);
    sends("PATCH", SEAT_PATH);
    gets_conflict();
    gets(200, "<html>");
    ends(REJECTED, "the API server's answer is no such object");
    finish();
}

static void test_patches_that_no_plugin_may_have_made(void)
{
    static const struct {
        const char *allowed;
        bool json;
        const char *body, *refusal;
    } cases[] = {
        {NULL, false, BY_P,
         "plugins may not write seats.x.example.com: --plugin-writes of berth-binder does not name "
         "it"},
        {"seats,seats.x.example.com/status,seats.x.example.comm", false, BY_P,
         "plugins may not write seats.x.example.com: --plugin-writes of berth-binder does not name "
         "it"},
        {SEATS, false, "[]", "the merge patch, or its metadata, is no object"},
        {SEATS, false, "{\"metadata\":null}", "the merge patch, or its metadata, is no object"},
        {SEATS, false, "{\"metadata\":{\"name\":\"x\"}}",
         "the merge patch changes which object it is"},
        {SEATS, true, "{}", "the JSON patch is no list of operations"},
        {SEATS, true, "[]", "the JSON patch is no list of operations"},
        {SEATS, true, "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]",
         "an operation is test, add, replace or remove: others cannot be repeated"},
        {SEATS, true, "[7]",
         "an operation is test, add, replace or remove: others cannot be repeated"},
        {SEATS, true, "[{\"op\":\"add\",\"value\":1}]",
         "an operation needs a path, which begins with /"},
        {SEATS, true, "[{\"op\":\"add\",\"path\":\"/spec/l/-\",\"value\":1}]",
         "an operation adds to a list or removes from it: it cannot be repeated"},
        {SEATS, true, "[{\"op\":\"remove\",\"path\":\"/spec/l/0\"}]",
         "an operation adds to a list or removes from it: it cannot be repeated"},
        {SEATS, true, "[{\"op\":\"replace\",\"path\":\"/metadata/uid\",\"value\":\"x\"}]",
         "an operation changes which object it is"},
    };
    struct bh_err err = {0};

    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        ask(cases[i].allowed, cases[i].json, cases[i].body, cases[i].refusal);
        finish();
        t.job = NULL;
    }
    ask(SEATS, false, BY_P, NULL);
    bh_object_job_free(t.job);
    patch.api_version = text("x.example.com/../v1");
    CU_ASSERT_PTR_NULL(bh_object_job_new(&t.item, SEATS, &err));
    CU_ASSERT(strstr(err.msg, "apiVersion, resource or subresource is none") != NULL);
    patch.api_version = text("x.example.com/v1");
    patch.body = text("{\"spec\":");
    CU_ASSERT_PTR_NULL(bh_object_job_new(&t.item, SEATS, &err));
    CU_ASSERT(strncmp(err.msg, "the patch is no JSON: ", 22) == 0);
    patch.body = text(BY_P);
    t.write.uid = NULL;
    t.job = bh_object_job_new(&t.item, SEATS, &err);
    CU_ASSERT_PTR_NULL(t.job);
    CU_ASSERT_STRING_EQUAL(
        err.msg, "the patch says neither uid nor resourceVersion of the object that is meant");
    finish();
}

static void test_the_list_of_what_plugins_may_write(void)
{
    static const char *const bad[] = {"",      ",pods",   "pods,",       "Pods",
                                      "pods/", "/status", "pods,,nodes", "a b"};
    struct bh_err err = {0};

    CU_ASSERT(bh_plugin_writes_check("pods,pods/status,seats.x.example.com", &err) == 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++)
        CU_ASSERT(bh_plugin_writes_check(bad[i], &err) == -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg,
                           "--plugin-writes: \"a b\" is not RESOURCE[.GROUP][/SUBRESOURCE], "
                           "such as pods, pods/status or widgets.example.com");
}

BH_TESTS("binder/objects", {"a volume gets its claim", test_a_volume_gets_its_claim},
         {"a conflict is looked at", test_a_conflict_is_looked_at},
         {"conflicts end", test_conflicts_end},
         {"what is missing or refused ends", test_what_is_missing_or_refused_ends},
         {"a claim gets its node", test_a_claim_gets_its_node},
         {"a claim is protected, then allocated", test_a_claim_is_protected_then_allocated},
         {"an allocation is not made twice nor over another",
          test_an_allocation_is_not_made_twice_nor_over_another},
         {"a reservation joins what is there now", test_a_reservation_joins_what_is_there_now},
         {"undoing", test_undoing},
         {"a new claim has one name, whoever makes it",
          test_a_new_claim_has_one_name_whoever_makes_it},
         {"a stranger's claim is left alone", test_a_strangers_claim_is_left_alone},
         {"an object that says nothing is refused", test_an_object_that_says_nothing_is_refused},
         {"a merge patch is made of the object that was meant",
          test_a_merge_patch_is_made_of_the_object_that_was_meant},
         {"a patch of a version is not made of another",
          test_a_patch_of_a_version_is_not_made_of_another},
         {"a JSON patch tests first", test_a_json_patch_tests_first},
         {"a patch that is missing or refused ends", test_a_patch_that_is_missing_or_refused_ends},
         {"patches that no plugin may have made", test_patches_that_no_plugin_may_have_made},
         {"the list of what plugins may write", test_the_list_of_what_plugins_may_write})
