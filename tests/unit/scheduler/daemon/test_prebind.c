/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_prebind.c - between Reserve and Bind: waits at Permit, writes,
 * what comes of them, and how every failure is undone
 */
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/daemon/fixture.h"

#define BIND       BERTH__WORK_KIND__WORK_BIND
#define PATCH      BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DELETE     BERTH__WORK_KIND__WORK_DELETE
#define EVENT      BERTH__WORK_KIND__WORK_EVENT
#define VOLUME     BERTH__WORK_KIND__WORK_VOLUME_CLAIM
#define SELECT     BERTH__WORK_KIND__WORK_SELECTED_NODE
#define ALLOCATE   BERTH__WORK_KIND__WORK_ALLOCATION
#define RESERVE    BERTH__WORK_KIND__WORK_RESERVATION
#define UNRESERVE  BERTH__WORK_KIND__WORK_UNRESERVATION
#define DEALLOCATE BERTH__WORK_KIND__WORK_DEALLOCATION
#define DONE       BERTH__OUTCOME__OUTCOME_DONE
#define REJECTED   BERTH__OUTCOME__OUTCOME_REJECTED
#define UNKNOWN    BERTH__OUTCOME__OUTCOME_UNKNOWN
#define SECONDS    INT64_C(1000000000)

/* ---- a plugin that lets pods wait ------------------------------------------------------------ */

static struct {
    struct bh_waiting_pods *pods;
    int64_t timeout_ns; /* 0: nobody waits */
} permit;

static int permit_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                      struct bh_err *err)
{
    (void)args, (void)err;
    permit.pods = env->waiting;
    *ret = NULL;
    return 0;
}

BH_STATUS_CONST(please_wait, BH_WAIT, "TestPermit", "");

/* Pods with the name "now..." do not wait. */
static const struct bh_status *permit_permit(struct bh_call *c, bh_sym node, int64_t *ret)
{
    (void)node;
    if (!permit.timeout_ns || strncmp(bh_rec_text(c->pod->rec, c->pod->rec->name).p, "now", 3) == 0)
        return NULL;
    *ret = permit.timeout_ns;
    return &please_wait;
}

static const struct bh_plugin plugin = {.abi = BH_PLUGIN_ABI,
                                        .size = sizeof(struct bh_plugin),
                                        .name = "TestPermit",
                                        .args_new = permit_new,
                                        .permit = permit_permit};
const struct bh_plugin *const bh_plugins_extra[] = {&plugin, NULL};

/* ---- the world ------------------------------------------------------------------------------- */

static void setup_permit(struct fixture *f, int64_t timeout_ns)
{
    permit.timeout_ns = timeout_ns;
    setup_with(f, "profiles:\n- plugins: {permit: {enabled: [{name: TestPermit}]}}\n");
    go(f);
}

static void feed_object(struct fixture *f, enum bh_kind kind, Berth__ChangeOp op, const char *name,
                        const char *json)
{
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    struct bh_buf bytes = {0};
    char ns[] = "ns";

    c.has_op = c.has_kind = c.has_log_pos = true;
    c.op = op;
    c.kind = kind;
    c.namespace_ = bh_kinds[kind].namespaced ? ns : NULL;
    c.name = (char *)(uintptr_t)name;
    c.log_pos = bh_snap_head(f->snap);
    if (json) {
        bh_pb_pack(&bytes, decode(f, bh_kinds[kind].desc, json));
        c.has_object = true;
        c.object = (ProtobufCBinaryData){bytes.n, (uint8_t *)bytes.p};
    }
    feed_batch(f, &c, false);
    bh_buf_fini(&bytes);
}

static void put(struct fixture *f, enum bh_kind kind, const char *name, const char *json)
{
    feed_object(f, kind, BERTH__CHANGE_OP__CHANGE_MODIFIED, name, json);
}

static void put_class(struct fixture *f, const char *name, const char *provisioner)
{
    put(f, BH_KIND_STORAGECLASS, name,
        bh_arena_printf(&f->a,
                        "{\"metadata\":{\"name\":\"%s\"},\"provisioner\":\"%s\","
                        "\"volumeBindingMode\":\"WaitForFirstConsumer\"}",
                        name, provisioner));
}

/* notes: annotations; volume: spec.volumeName. */
static void put_claim(struct fixture *f, const char *class, const char *version, const char *notes,
                      const char *volume)
{
    put(f, BH_KIND_PERSISTENTVOLUMECLAIM, "c",
        bh_arena_printf(
            &f->a,
            "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"u-c\","
            "\"resourceVersion\":\"%s\",\"annotations\":{%s}},\"spec\":{"
            "\"storageClassName\":\"%s\",\"accessModes\":[\"ReadWriteOnce\"],"
            "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}},\"volumeName\":\"%s\"}}",
            version, notes, class, volume));
}

static const char *volume_json(struct fixture *f, const char *version, const char *ref)
{
    return bh_arena_printf(
        &f->a,
        "{\"metadata\":{\"name\":\"v\",\"uid\":\"u-v\",\"resourceVersion\":\"%s\"},"
        "\"spec\":{\"capacity\":{\"storage\":\"1Gi\"},\"storageClassName\":\"local\","
        "\"accessModes\":[\"ReadWriteOnce\"]%s},\"status\":{\"phase\":\"Available\"}}",
        version, ref);
}

#define REF                                                                                        \
    ",\"claimRef\":{\"kind\":\"PersistentVolumeClaim\",\"namespace\":\"ns\",\"name\":\"c\","       \
    "\"uid\":\"u-c\"}"
#define BOUND_NOTE "\"pv.kubernetes.io/bind-completed\":\"yes\""
#define CLAIMS     "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}],"
#define DEVICES    "\"resourceClaims\":[{\"name\":\"d\",\"resourceClaimName\":\"r\"}],"

/* A claim, a volume for it, and the pod p that wants it; the write that follows. */
static struct item *want_volume(struct fixture *f)
{
    put_class(f, "local", "kubernetes.io/no-provisioner");
    put_claim(f, "local", "1", "", "");
    put(f, BH_KIND_PERSISTENTVOLUME, "v", volume_json(f, "1", ""));
    feed_pod(f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(f, "p", "1", CLAIMS, ""));
    return await(f, &f->b[0], VOLUME, "p");
}

/* The write as the API server would have done it. */
static void write_done(struct fixture *f, struct item *i, enum bh_kind kind, const char *version)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};
    struct bh_buf b = {0};

    CU_ASSERT_FATAL(bh_pb_unpack(&f->a, bh_kinds[kind].desc, i->bytes, i->n_bytes, &m, &err) == 0);
    ((K8s__ObjectMeta *)(uintptr_t)bh_object_meta(m))->resourceversion =
        bh_arena_strdup(&f->a, version);
    bh_pb_pack(&b, m);
    answer_object(&f->b[0], i, DONE, NULL, &b);
    bh_buf_fini(&b);
}

/* A bind waits for the status patch that is out: each is answered. */
static bool binds(struct fixture *f, const char *name)
{
    struct item *patch = find_item(&f->b[0], PATCH, name);

    if (patch)
        answer(&f->b[0], patch, DONE, NULL);
    return find_item(&f->b[0], BIND, name) != NULL;
}

static void put_devices(struct fixture *f, const char *claim_status)
{
    put(f, BH_KIND_DEVICECLASS, "gpu", "{\"metadata\":{\"name\":\"gpu\"},\"spec\":{}}");
    put(f, BH_KIND_RESOURCESLICE, "s",
        "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"d.x\",\"nodeName\":\"n1\",\"pool\":{"
        "\"name\":\"n1\",\"generation\":1,\"resourceSliceCount\":1},\"devices\":[{\"name\":\"g0\"}]"
        "}}");
    put(f, BH_KIND_RESOURCECLAIM, "r",
        bh_arena_printf(
            &f->a,
            "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"u-r\","
            "\"resourceVersion\":\"5\"},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"q\","
            "\"exactly\":{\"deviceClassName\":\"gpu\",\"allocationMode\":\"ExactCount\","
            "\"count\":1}}]}}%s}",
            claim_status));
}

#define ALLOCATED                                                                                  \
    ",\"status\":{\"allocation\":{\"devices\":{\"results\":[{\"request\":\"q\",\"driver\":\"d."    \
    "x\","                                                                                         \
    "\"pool\":\"n1\",\"device\":\"g0\"}]}},\"reservedFor\":[{\"resource\":\"pods\",\"name\":"      \
    "\"p\","                                                                                       \
    "\"uid\":\"u-p\"}]}"
#define OTHER_DEVICES "\"resourceClaims\":[{\"name\":\"d\",\"resourceClaimName\":\"r2\"}],"

/* Of the same device. */
static void put_other_claim(struct fixture *f)
{
    put(f, BH_KIND_RESOURCECLAIM, "r2",
        "{\"metadata\":{\"name\":\"r2\",\"namespace\":\"ns\",\"uid\":\"u-r2\",\"resourceVersion\":"
        "\"5\"},\"spec\":{\"devices\":{\"requests\":[{\"name\":\"q\",\"exactly\":{"
        "\"deviceClassName\":"
        "\"gpu\",\"allocationMode\":\"ExactCount\",\"count\":1}}]}}}");
}

/* ---- volumes --------------------------------------------------------------------------------- */

static void test_a_volume_is_written_then_bound_then_the_pod(void)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    i = want_volume(&f);
    CU_ASSERT_STRING_EQUAL(i->object, "v");
    CU_ASSERT_STRING_EQUAL(i->object_uid, "u-v");
    CU_ASSERT_STRING_EQUAL(i->version, "1");
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING);
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], PATCH, "p")->nominated, "n1");
    write_done(&f, i, BH_KIND_PERSISTENTVOLUME, "2");
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p"));
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0); /* nobody has bound the claim */
    put(&f, BH_KIND_PERSISTENTVOLUME, "v", volume_json(&f, "2", REF));
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0);
    answer(&f.b[0], find_item(&f.b[0], PATCH, "p"), DONE, NULL);
    put_claim(&f, "local", "3", BOUND_NOTE, "v");
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "p")->node, "n1");
    CU_ASSERT(count_items(&f.b[0], VOLUME, "p") == 1);
    CU_ASSERT(f.d.prebinds.n == 0);
    teardown(&f);
}

static void test_a_refused_write_sends_the_pod_back_with_its_text(void)
{
    static const char text[] = "running PreBind plugin \"VolumeBinding\": it was modified";
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    i = want_volume(&f);
    answer(&f.b[0], i, REJECTED, "it was modified");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", text));
    SPIN(&f, count_items(&f.b[0], VOLUME, "p") == 2); /* an error: tried again */
    teardown(&f);
}

static void test_a_write_without_an_answer_is_repeated_and_keeps_the_pod(void)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    i = want_volume(&f);
    answer(&f.b[0], i, UNKNOWN, NULL);
    SPIN(&f, count_items(&f.b[0], VOLUME, "p") == 2);
    CU_ASSERT(find_item(&f.b[0], VOLUME, "p")->id == i->id);
    CU_ASSERT(find_item(&f.b[0], VOLUME, "p")->attempt == 1);
    CU_ASSERT(is_assumed(&f, "p"));
    teardown(&f);
}

static void test_a_pod_deleted_during_a_write_goes_with_the_answer(void)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    i = want_volume(&f);
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_DELETED);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p")); /* what it took may be written in this moment */
    write_done(&f, i, BH_KIND_PERSISTENTVOLUME, "2");
    SPIN(&f, !is_assumed(&f, "p"));
    CU_ASSERT(f.d.prebinds.n == 0);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0);
    teardown(&f);
}

static void test_a_provisioner_that_gives_up_sends_the_pod_back(void)
{
    static const char text[] = "running PreBind plugin \"VolumeBinding\": binding volumes: "
                               "provisioning failed for PVC \"c\"";
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    put_class(&f, "made", "made.example.com");
    put_claim(&f, "made", "1", "", "");
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", CLAIMS, ""));
    i = await(&f, &f.b[0], SELECT, "p");
    CU_ASSERT_STRING_EQUAL(i->object, "c");
    write_done(&f, i, BH_KIND_PERSISTENTVOLUMECLAIM, "2");
    put_claim(&f, "made", "2", "\"volume.kubernetes.io/selected-node\":\"n1\"", "");
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0);
    put_claim(&f, "made", "3", "\"other\":\"note\"", "");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", text));
    SPIN(&f, count_items(&f.b[0], SELECT, "p") == 2);
    teardown(&f);
}

static void test_the_time_for_binding_volumes_ends(void)
{
    static const char text[] = "running PreBind plugin \"VolumeBinding\": binding volumes: "
                               "context deadline exceeded";
    struct fixture f;

    setup_with(&f, "profiles:\n- pluginConfig:\n  - name: VolumeBinding\n    args: "
                   "{bindTimeoutSeconds: 0}\n");
    go(&f);
    write_done(&f, want_volume(&f), BH_KIND_PERSISTENTVOLUME, "2");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", text));
    teardown(&f);
}

static void test_an_object_that_no_message_can_carry_fails_its_pod_only(void)
{
    struct fixture f;
    char uid[600] = "";

    memset(uid, 'u', sizeof(uid) - 1);
    setup_with(&f, "");
    scheduler_stop(&f);
    f.config->pod_max_backoff_ns = 10 * SECONDS; /* one try is enough */
    scheduler_start(&f);
    go(&f);
    put_class(&f, "local", "kubernetes.io/no-provisioner");
    put_claim(&f, "local", "1", "", "");
    put(&f, BH_KIND_PERSISTENTVOLUME, "v",
        bh_arena_printf(&f.a,
                        "{\"metadata\":{\"name\":\"v\",\"uid\":\"%s\"},\"spec\":{\"capacity\":{"
                        "\"storage\":\"1Gi\"},\"storageClassName\":\"local\",\"accessModes\":["
                        "\"ReadWriteOnce\"]},\"status\":{\"phase\":\"Available\"}}",
                        uid));
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", CLAIMS, ""));
    SPIN(&f, has_event(&f.b[0], "FailedScheduling",
                       "an object that the pod needs is too large to be written"));
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_DELETED);
    add_pod(&f, "q", "1");
    (void)await(&f, &f.b[0], BIND, "q");
    teardown(&f);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void test_a_failed_bind_takes_the_reservation_back_first(void)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    put_devices(&f, "");
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", DEVICES, ""));
    i = await(&f, &f.b[0], ALLOCATE, "p");
    CU_ASSERT_STRING_EQUAL(i->object, "r");
    write_done(&f, i, BH_KIND_RESOURCECLAIM, "6");
    answer(&f.b[0], await(&f, &f.b[0], PATCH, "p"), DONE, NULL);
    answer(&f.b[0], await(&f, &f.b[0], BIND, "p"), REJECTED, "no");
    i = await(&f, &f.b[0], UNRESERVE, "p");
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p") && place(&f, "p") == BH_Q_BINDING); /* not before that */
    CU_ASSERT(!has_event(&f.b[0], "FailedScheduling", "running Bind plugin \"DefaultBinder\": no"));
    write_done(&f, i, BH_KIND_RESOURCECLAIM, "7");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "running Bind plugin \"DefaultBinder\": no"));
    (void)await(&f, &f.b[0], RESERVE, "p"); /* the allocation stays; reserved anew */
    teardown(&f);
}

/* The time that a driver takes is counted when its conditions are there. */
static void test_a_device_that_has_to_get_ready_is_waited_for(void)
{
    static const char series[] =
        "scheduler_dra_bindingconditions_allocations_total{driver=\"d.x\",profile="
        "\"default-scheduler\",status=\"success\"} 1\n";
    struct bh_buf out = {0};
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    put_devices(&f, "");
    put(&f, BH_KIND_RESOURCESLICE, "s",
        "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"d.x\",\"nodeName\":\"n1\",\"pool\":{"
        "\"name\":\"n1\",\"generation\":2,\"resourceSliceCount\":1},\"devices\":[{\"name\":\"g0\","
        "\"bindingConditions\":[\"Up\"],\"bindingFailureConditions\":[\"Broken\"]}]}}");
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", DEVICES, ""));
    i = await(&f, &f.b[0], ALLOCATE, "p");
    write_done(&f, i, BH_KIND_RESOURCECLAIM, "6");
    answer(&f.b[0], await(&f, &f.b[0], PATCH, "p"), DONE, NULL);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0);
    bh_metrics_render(f.d.metrics, &out);
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&out), series));
    put(&f, BH_KIND_RESOURCECLAIM, "r",
        "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"u-r\",\"resourceVersion\":"
        "\"7\"},"
        "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"q\",\"exactly\":{\"deviceClassName\":"
        "\"gpu\","
        "\"allocationMode\":\"ExactCount\",\"count\":1}}]}},\"status\":{\"allocation\":{"
        "\"devices\":{"
        "\"results\":[{\"request\":\"q\",\"driver\":\"d.x\",\"pool\":\"n1\",\"device\":\"g0\","
        "\"bindingConditions\":[\"Up\"],\"bindingFailureConditions\":[\"Broken\"]}]}},"
        "\"reservedFor\":[{"
        "\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"u-p\"}],\"devices\":[{\"driver\":\"d.x\","
        "\"pool\":"
        "\"n1\",\"device\":\"g0\",\"conditions\":[{\"type\":\"Up\",\"status\":\"True\"}]}]}}");
    (void)await(&f, &f.b[0], BIND, "p");
    bh_buf_reset(&out);
    bh_metrics_render(f.d.metrics, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), series));
    bh_buf_fini(&out);
    teardown(&f);
}

static void test_one_device_serves_one_pod(void)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    put_devices(&f, "");
    put_other_claim(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", DEVICES, ""));
    i = await(&f, &f.b[0], ALLOCATE, "p");
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "q", "1", OTHER_DEVICES, ""));
    SPIN(&f, place(&f, "q") == BH_Q_UNSCHEDULABLE);
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_DELETED);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], ALLOCATE, "q") == 0); /* the write may happen yet */
    answer(&f.b[0], i, REJECTED, "deleted");
    (void)await(&f, &f.b[0], ALLOCATE, "q");
    teardown(&f);
}

/* The write is the second binder's by then, and may be done yet. */
static void test_a_refusal_by_a_binder_that_lost_the_write_frees_no_device(void)
{
    struct fixture f;
    struct item *first, *second;

    setup_with(&f, "");
    go(&f);
    put_devices(&f, "");
    put_other_claim(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", DEVICES, ""));
    first = await(&f, &f.b[0], ALLOCATE, "p");
    bh_ledger_patience(f.d.ledger, SECONDS / 10, 600 * SECONDS);
    f.b[0].mute = true;
    SPIN(&f, f.d.lease.strays == 1);
    bh_ledger_patience(f.d.ledger, 600 * SECONDS, 600 * SECONDS);
    f.b[1].mute = false;
    second = await(&f, &f.b[1], ALLOCATE, "p");
    CU_ASSERT_EQUAL(second->id, first->id);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "q", "1", OTHER_DEVICES, ""));
    SPIN(&f, place(&f, "q") == BH_Q_UNSCHEDULABLE);
    f.b[0].mute = false;
    answer(&f.b[0], first, REJECTED, "its token is over");
    settle(&f);
    CU_ASSERT(is_assumed(&f, "p") && place(&f, "q") == BH_Q_UNSCHEDULABLE);
    answer(&f.b[1], second, REJECTED, "it was modified"); /* that is its own */
    SPIN(&f, find_item(&f.b[0], ALLOCATE, "q") || find_item(&f.b[1], ALLOCATE, "q") ||
                 count_items(&f.b[0], ALLOCATE, "p") + count_items(&f.b[1], ALLOCATE, "p") > 2);
    teardown(&f);
}

/* The claims' watch was faster than the answer to the write: the claim must not come back. */
static void test_a_claim_that_is_gone_when_its_write_is_answered_frees_its_device(void)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    put_devices(&f, "");
    put_other_claim(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", DEVICES, ""));
    i = await(&f, &f.b[0], ALLOCATE, "p");
    feed_object(&f, BH_KIND_RESOURCECLAIM, BERTH__CHANGE_OP__CHANGE_DELETED, "r", NULL);
    settle(&f);
    write_done(&f, i, BH_KIND_RESOURCECLAIM, "6");
    settle(&f);
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_DELETED);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "q", "1", OTHER_DEVICES, ""));
    (void)await(&f, &f.b[0], ALLOCATE, "q");
    teardown(&f);
}

/* Another client binds the pod while its claim is written: the device may be taken by then. */
static void bound_by_another_hand(bool written)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    put_devices(&f, "");
    put_other_claim(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", DEVICES, ""));
    i = await(&f, &f.b[0], ALLOCATE, "p");
    snap_pod(&f, "p", "1", "n1", DEVICES);
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "q", "1", OTHER_DEVICES, ""));
    SPIN(&f, place(&f, "q") != BH_Q_ACTIVE && place(&f, "q") != BH_Q_NONE);
    CU_ASSERT(count_items(&f.b[0], ALLOCATE, "q") == 0 && place(&f, "q") == BH_Q_UNSCHEDULABLE);
    if (written) {
        write_done(&f, i, BH_KIND_RESOURCECLAIM, "6"); /* q has to wait for another one */
        SPIN(&f, f.d.prebinds.n == 0);
        settle(&f);
        CU_ASSERT(count_items(&f.b[0], ALLOCATE, "q") == 0);
        CU_ASSERT(count_items(&f.b[0], UNRESERVE, "p") == 0); /* the pod runs with it */
    } else {
        answer(&f.b[0], i, REJECTED, "it was modified");
        (void)await(&f, &f.b[0], ALLOCATE, "q");
    }
    teardown(&f);
}

static void test_a_pod_bound_by_another_hand_keeps_its_device_until_the_answer(void)
{
    bound_by_another_hand(true);
    bound_by_another_hand(false);
}

static void test_nothing_is_decided_while_a_strangers_claim_is_on_the_wire(void)
{
    struct item wire = {.kind = ALLOCATE, .name = "old", .uid = "u-old", .epoch = 1, .id = 7};
    struct fixture f;

    setup_with(&f, "");
    f.b[0].wire[0] = wire;
    f.b[0].n_wire = 1;
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known && f.d.adopt.claims.len == 1);
    feed_begin(&f);
    feed_batch(&f, NULL, true);
    add_pod(&f, "p", "1");
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    /* Not made anew, but what was out when the binder gave it up may come in. */
    answer(&f.b[0], &wire, BERTH__OUTCOME__OUTCOME_STALE, NULL);
    answer(&f.b[0], &wire, UNKNOWN, NULL);
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE && f.d.adopt.claims.len == 1);
    answer(&f.b[0], &wire, DONE, NULL);
    (void)await(&f, &f.b[0], BIND, "p");
    teardown(&f);
}

/* The binder that had the write died too: it stands in the record, and ends with its request. */
static void test_nothing_is_decided_while_a_recorded_claim_may_be_written(void)
{
    uint64_t began;
    struct fixture f;

    setup_with(&f, "");
    go(&f);
    put_devices(&f, "");
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", DEVICES, ""));
    (void)await(&f, &f.b[0], ALLOCATE, "p");
    scheduler_stop(&f);
    f.known = false;
    f.b[0].mute = true;
    f.b[1].mute = false;
    scheduler_start(&f);
    CU_ASSERT(f.d.adopt.claims.len == 1);
    scheduler_stop(&f);
    scheduler_start(&f); /* the one after the next knows it too */
    CU_ASSERT(f.d.adopt.claims.len == 1);
    began = bh_mono_ns();
    f.d.timing.binder_grace_ns = 0;
    f.d.adopt.heard_all_ns = 0;
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "q", "1");
    feed_batch(&f, NULL, true);
    SPIN(&f, bh_sched_ready(&f.d));
    settle(&f);
    CU_ASSERT(!bh_sched_may_decide(&f.d) && place(&f, "q") == BH_Q_ACTIVE);
    bh_sched_binder_heard(&f.d, "host/x", UINT64_MAX); /* it comes back, and has it no more */
    (void)await(&f, &f.b[1], BIND, "q");
    CU_ASSERT(bh_mono_ns() - began >= UINT64_C(1000000000)); /* a lower bound: never too early */
    CU_ASSERT(bh_inflight_count(f.d.adopt.record) == 1);     /* of q */
    teardown(&f);
}

/* The next scheduler reads the bind from the record, and its watcher shows the claim as it was before the
 * device was written. */
static void setup_unseen_claim(struct fixture *f)
{
    setup_with(f, "");
    go(f);
    put_devices(f, "");
    feed_pod(f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(f, "p", "1", DEVICES, ""));
    write_done(f, await(f, &f->b[0], ALLOCATE, "p"), BH_KIND_RESOURCECLAIM, "6");
    SPIN(f, binds(f, "p"));
    scheduler_stop(f);
    f->known = false;
    scheduler_start(f);
    SPIN(f, f->known);
    feed_begin(f);
    put_devices(f, "");
    feed_pod(f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(f, "p", "1", DEVICES, ""));
    feed_batch(f, NULL, true);
    SPIN(f, f->d.adopt.n_counted == 1);
    settle(f);
}

static void test_adopted_bind_with_unseen_claim_is_not_sent_again(void)
{
    struct fixture f;

    setup_unseen_claim(&f);
    CU_ASSERT(bh_pod_phase(pod_of(&f, "u-p")) == BH_POD_ADOPTED);
    CU_ASSERT(is_assumed(&f, "p") && !bh_sched_may_decide(&f.d));
    CU_ASSERT_EQUAL(count_items(&f.b[0], BIND, "p"), 1);
    put_devices(&f, ALLOCATED);
    SPIN(&f, count_items(&f.b[0], BIND, "p") == 2);
    CU_ASSERT(bh_sched_may_decide(&f.d));
    teardown(&f);
}

/* The snapshot is ahead of the feed: the pod belongs to its adopted bind until the feed shows it too. */
static void test_adopted_bind_shown_before_its_claim_is_not_a_lost_pod(void)
{
    struct fixture f;

    setup_unseen_claim(&f);
    snap_pod(&f, "p", "1", "n1", DEVICES);
    SPIN(&f, !is_assumed(&f, "p"));
    settle(&f);
    CU_ASSERT(bh_pod_phase(pod_of(&f, "u-p")) == BH_POD_ADOPTED);
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE && !f.d.adopt.n_binds);
    CU_ASSERT_EQUAL(f.d.audit.lost, 0);
    CU_ASSERT_EQUAL(bh_inflight_count(f.d.adopt.record), 0);
    CU_ASSERT_EQUAL(count_items(&f.b[0], BIND, "p"), 1);
    teardown(&f);
}

static void test_the_end_of_a_term_takes_everything_back(void)
{
    struct fixture f;
    struct item *i;

    setup_with(&f, "");
    go(&f);
    i = want_volume(&f);
    bh_snap_set_lease(f.snap, 7, 0);
    SPIN(&f, !f.d.lease.held);
    CU_ASSERT(is_assumed(&f, "p")); /* until it is known what became of the write */
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_STALE, NULL);
    SPIN(&f, !is_assumed(&f, "p"));
    CU_ASSERT(f.d.prebinds.n == 0);
    CU_ASSERT(place(&f, "p") != BH_Q_BINDING && place(&f, "p") != BH_Q_NONE);
    teardown(&f);
}

/* ---- Permit ---------------------------------------------------------------------------------- */

/* How many waits ended with this. */
static unsigned waits(struct fixture *f, const char *result)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf out = {0};
    BH_CLEANUP(bh_freep)
    char *series =
        bh_asprintf("scheduler_permit_wait_duration_seconds_count{result=\"%s\"} ", result);
    unsigned n = 0;

    bh_metrics_render(f->d.metrics, &out);
    const char *at = strstr(bh_buf_str(&out), series);
    return at && sscanf(at + strlen(series), "%u", &n) == 1 ? n : 0;
}

static void test_a_waiting_pod_is_bound_when_it_is_allowed(void)
{
    struct fixture f;

    setup_permit(&f, 900 * SECONDS);
    add_pod(&f, "p", "1");
    SPIN(&f, place(&f, "p") == BH_Q_WAITING);
    add_pod(&f, "now", "1");
    (void)await(&f, &f.b[0], BIND, "now"); /* others go on */
    CU_ASSERT(is_assumed(&f, "p"));
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], PATCH, "p")->nominated, "n1");
    answer(&f.b[0], find_item(&f.b[0], PATCH, "p"), DONE, NULL);
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 0);
    CU_ASSERT(bh_waiting_allow(permit.pods, bh_str_c("u-p"), "Another"));
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_WAITING);
    CU_ASSERT(bh_waiting_allow(permit.pods, bh_str_c("u-p"), "TestPermit"));
    CU_ASSERT(!bh_waiting_reject(permit.pods, bh_str_c("u-p"), "TestPermit", "too late"));
    CU_ASSERT_STRING_EQUAL(await(&f, &f.b[0], BIND, "p")->node, "n1");
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING);
    CU_ASSERT(permit.pods->by_uid.len == 0 && waits(&f, "Success") == 1);
    teardown(&f);
}

static void test_a_waiting_pod_is_rejected_or_runs_out_of_time(void)
{
    struct fixture f;
    struct item *i;

    setup_permit(&f, 900 * SECONDS);
    add_pod(&f, "p", "1");
    SPIN(&f, place(&f, "p") == BH_Q_WAITING);
    CU_ASSERT(bh_waiting_reject(permit.pods, bh_str_c("u-p"), "TestPermit", "not today"));
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "0/1 nodes are available: 1 not today."));
    SPIN(&f, place(&f, "p") == BH_Q_UNSCHEDULABLE);
    CU_ASSERT(!is_assumed(&f, "p"));
    permit.timeout_ns = SECONDS / 10;
    add_pod(&f, "late", "1");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling",
                       "0/1 nodes are available: 1 rejected due to timeout after waiting 100ms at "
                       "plugin TestPermit."));
    i = await(&f, &f.b[0], PATCH, "late");
    answer(&f.b[0], i, DONE, NULL); /* the node it was to go to */
    SPIN(&f, count_items(&f.b[0], PATCH, "late") == 2);
    i = find_item(&f.b[0], PATCH, "late");
    CU_ASSERT_STRING_EQUAL(i->reason, "Unschedulable");
    CU_ASSERT(i->set_nominated && !*i->nominated);
    CU_ASSERT(waits(&f, "Unschedulable") == 2 && waits(&f, "Error") == 0);
    teardown(&f);
}

/* It is an Error, after which the pod needs no event to be tried again. */
static void test_a_waiting_pod_whose_plugin_fails_is_tried_again(void)
{
    struct fixture f;

    setup_permit(&f, 900 * SECONDS);
    add_pod(&f, "p", "1");
    SPIN(&f, place(&f, "p") == BH_Q_WAITING);
    answer(&f.b[0], await(&f, &f.b[0], PATCH, "p"), DONE, NULL); /* the node it was to go to */
    bh_waiting_fail(permit.pods, "Another", "not its own");
    settle(&f);
    CU_ASSERT(place(&f, "p") == BH_Q_WAITING);
    permit.timeout_ns = 0; /* its next process lets the pod go */
    bh_waiting_fail(permit.pods, "TestPermit", "its process ended");
    CU_ASSERT(!bh_waiting_reject(permit.pods, bh_str_c("u-p"), "TestPermit", "too late"));
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "its process ended"));
    SPIN(&f, binds(&f, "p"));
    CU_ASSERT(waits(&f, "Error") == 1 && waits(&f, "Unschedulable") == 0);
    teardown(&f);
}

static void test_a_deleted_waiting_pod_leaves_its_room(void)
{
    struct fixture f;

    setup_permit(&f, 900 * SECONDS);
    add_pod(&f, "p", "4");
    SPIN(&f, place(&f, "p") == BH_Q_WAITING);
    add_pod(&f, "now", "4");
    SPIN(&f, place(&f, "now") == BH_Q_UNSCHEDULABLE);
    end_pod(&f, "p", BERTH__CHANGE_OP__CHANGE_DELETED);
    SPIN(&f, binds(&f, "now"));
    CU_ASSERT(permit.pods->by_uid.len == 0 && f.d.prebinds.n == 0);
    CU_ASSERT(waits(&f, "Unschedulable") == 1);
    teardown(&f);
}

static void test_the_room_of_a_rejected_pod_is_offered(void)
{
    struct fixture f;

    setup_permit(&f, 900 * SECONDS);
    add_pod(&f, "p", "4");
    SPIN(&f, place(&f, "p") == BH_Q_WAITING);
    add_pod(&f, "now", "4");
    SPIN(&f, place(&f, "now") == BH_Q_UNSCHEDULABLE);
    CU_ASSERT(bh_waiting_reject(permit.pods, bh_str_c("u-p"), "TestPermit", "not today"));
    SPIN(&f, binds(&f, "now"));
    teardown(&f);
}

static void test_a_waiting_pod_is_preempted_in_memory(void)
{
    struct fixture f;

    setup_permit(&f, 900 * SECONDS);
    add_pod(&f, "p", "4");
    SPIN(&f, place(&f, "p") == BH_Q_WAITING);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "now", "4", "\"priority\":100,", ""));
    SPIN(&f, has_event(&f.b[0], "Preempted",
                       "Preempted by pod u-now on node n1 (in kube-scheduler memory)."));
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "waiting on permit for pod: preempted"));
    CU_ASSERT(count_items(&f.b[0], DELETE, "p") == 0 && waits(&f, "Error") == 1);
    SPIN(&f, binds(&f, "now"));
    teardown(&f);
}

BH_TESTS("scheduler/daemon/prebind",
         {"a volume is written, then bound, then the pod",
          test_a_volume_is_written_then_bound_then_the_pod},
         {"a refused write sends the pod back with its text",
          test_a_refused_write_sends_the_pod_back_with_its_text},
         {"a write without an answer is repeated and keeps the pod",
          test_a_write_without_an_answer_is_repeated_and_keeps_the_pod},
         {"a pod deleted during a write goes with the answer",
          test_a_pod_deleted_during_a_write_goes_with_the_answer},
         {"a provisioner that gives up sends the pod back",
          test_a_provisioner_that_gives_up_sends_the_pod_back},
         {"the time for binding volumes ends", test_the_time_for_binding_volumes_ends},
         {"an object that no message can carry fails its pod only",
          test_an_object_that_no_message_can_carry_fails_its_pod_only},
         {"a failed bind takes the reservation back first",
          test_a_failed_bind_takes_the_reservation_back_first},
         {"a device that has to get ready is waited for",
          test_a_device_that_has_to_get_ready_is_waited_for},
         {"one device serves one pod", test_one_device_serves_one_pod},
         {"a refusal by a binder that lost the write frees no device",
          test_a_refusal_by_a_binder_that_lost_the_write_frees_no_device},
         {"a claim that is gone when its write is answered frees its device",
          test_a_claim_that_is_gone_when_its_write_is_answered_frees_its_device},
         {"a pod bound by another hand keeps its device until the answer",
          test_a_pod_bound_by_another_hand_keeps_its_device_until_the_answer},
         {"nothing is decided while a stranger's claim is on the wire",
          test_nothing_is_decided_while_a_strangers_claim_is_on_the_wire},
         {"nothing is decided while a recorded claim may be written",
          test_nothing_is_decided_while_a_recorded_claim_may_be_written},
         {"adopted bind with unseen claim is not sent again",
          test_adopted_bind_with_unseen_claim_is_not_sent_again},
         {"adopted bind shown before its claim is not a lost pod",
          test_adopted_bind_shown_before_its_claim_is_not_a_lost_pod},
         {"the end of a term takes everything back", test_the_end_of_a_term_takes_everything_back},
         {"a waiting pod is bound when it is allowed",
          test_a_waiting_pod_is_bound_when_it_is_allowed},
         {"a waiting pod is rejected or runs out of time",
          test_a_waiting_pod_is_rejected_or_runs_out_of_time},
         {"a waiting pod whose plugin fails is tried again",
          test_a_waiting_pod_whose_plugin_fails_is_tried_again},
         {"a deleted waiting pod leaves its room", test_a_deleted_waiting_pod_leaves_its_room},
         {"the room of a rejected pod is offered", test_the_room_of_a_rejected_pod_is_offered},
         {"a waiting pod is preempted in memory", test_a_waiting_pod_is_preempted_in_memory})
