/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_bind.c - Bind and PostBind, what plugins want written for a pod,
 * and plugins that let many pods wait for each other
 */
#include "scheduler/framework/asks.h"
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/daemon/fixture.h"

#define BIND      BERTH__WORK_KIND__WORK_BIND
#define PATCH     BERTH__WORK_KIND__WORK_PATCH
#define STATUS    BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DONE      BERTH__OUTCOME__OUTCOME_DONE
#define REJECTED  BERTH__OUTCOME__OUTCOME_REJECTED
#define UNKNOWN   BERTH__OUTCOME__OUTCOME_UNKNOWN
#define ELSEWHERE BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE
#define BOUND     BERTH__CHANGE_OP__CHANGE_BOUND
#define DELETED   BERTH__CHANGE_OP__CHANGE_DELETED
#define SECONDS   INT64_C(1000000000)
#define OTHERS    12u /* pods */

/* ---- a plugin ---------------------------------------------------------------------------------- */

static struct {
    struct bh_waiting_pods *pods;
    struct bh_reservations *reserved;
    struct bh_plugin_asks *asks;
    const struct bh_status *bind;         /* what it says */
    const struct bh_status *once;         /* what it says first of all */
    bool at_pre_bind;                     /* there, not at Bind */
    const struct bh_patch *instead;       /* of the Binding */
    const struct bh_patch *before, *undo; /* what PreBind wants written; and undone */
    bool early;                           /* Reserve lists it already */
    unsigned binds;                       /* calls of bind */
    unsigned group;                       /* pods that wait for each other */
    const struct bh_status *permit;       /* what Permit says, once */
    const char *wake;                     /* uid of a pod that Permit activates */
    bool hands_on;                        /* PreEnqueue of "big" activates the others */
    bool selfish;                         /* Permit refuses the pod that it activates */
    bool says;                            /* Permit emits an event */
    char told[256];                       /* "bound p n1, " "undone p n1, " in order */
} plug;

static struct bh_waker waker = {.plugin = "NodeResourcesFit"}; /* as if it were that one */

static int plug_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err)
{
    (void)args, (void)err;
    plug.pods = env->waiting;
    plug.reserved = env->reserved;
    plug.asks = env->asks;
    bh_asks_add_waker(env->asks, &waker);
    *ret = NULL;
    return 0;
}

static void took_note(struct bh_call *c, const char *what, bh_sym node)
{
    size_t n = strlen(plug.told);

    snprintf(plug.told + n, sizeof(plug.told) - n, "%s %s %s, ", what,
             bh_rec_text(c->pod->rec, c->pod->rec->name).p, bh_sym_text(c->tab, node));
}

/* Of the pod itself. */
static struct bh_write write_of(struct bh_call *c, const struct bh_patch *p)
{
    const struct bh_pod_rec *r = c->pod->rec;

    return (struct bh_write){.what = BH_WRITE_PATCH,
                             .namespace_ = bh_rec_text(r, r->namespace_).p,
                             .name = bh_rec_text(r, r->name).p,
                             .uid = bh_rec_text(r, r->uid).p,
                             .patch = p,
                             .plugin = "Plug"};
}

static struct bh_reservation *list_write(struct bh_call *c, bh_sym node)
{
    struct bh_reservation *v = bh_reservation_for(plug.reserved, bh_rec_uid(c->pod->rec), node);

    if (!v->n) {
        struct bh_write w = write_of(c, plug.before);
        w.namespace_ = bh_arena_strdup(&v->arena, w.namespace_);
        w.name = bh_arena_strdup(&v->arena, w.name);
        w.uid = bh_arena_strdup(&v->arena, w.uid);
        bh_reservation_add(v, &w);
    }
    return v;
}

static const struct bh_status *plug_reserve(struct bh_call *c, bh_sym node)
{
    if (plug.before && plug.early)
        (void)list_write(c, node);
    return NULL;
}

static void plug_unreserve(struct bh_call *c, bh_sym node)
{
    took_note(c, "undone", node);
}

BH_STATUS_CONST(plug_waits, BH_WAIT, "Plug", "");
BH_STATUS_CONST(plug_refuses, BH_UNSCHEDULABLE, "Plug", "not here");
BH_STATUS_CONST(plug_fails, BH_ERROR, "Plug", "boom");
BH_STATUS_CONST(plug_pends, BH_PENDING, "Plug", "not yet");

static bool says_once(const struct bh_status **ret)
{
    *ret = bh_take_ptr(plug.once);
    return *ret != NULL;
}

static void allow(void *arg, struct bh_str uid)
{
    (void)arg;
    (void)bh_waiting_allow(plug.pods, uid, "Plug");
}

static const struct bh_status *plug_pre_enqueue(struct bh_call *c)
{
    char uid[16];

    if (plug.hands_on && bh_str_eqc(bh_rec_uid(c->pod->rec), "u-big"))
        for (unsigned i = 0; i < OTHERS; i++) {
            snprintf(uid, sizeof uid, "u-o%u", i);
            bh_waiting_activate(plug.pods, bh_str_c(uid));
        }
    return NULL;
}

/* The pod that makes the group complete lets all of it go. */
static const struct bh_status *plug_permit(struct bh_call *c, bh_sym node, int64_t *ret)
{
    (void)node;
    if (plug.permit)
        return bh_take_ptr(plug.permit);
    if (plug.wake)
        bh_waiting_activate(plug.pods, bh_str_c(plug.wake));
    if (plug.selfish && bh_str_eqc(bh_rec_uid(c->pod->rec), plug.wake))
        return &plug_refuses;
    if (plug.says)
        CU_ASSERT(bh_asks_event(plug.asks, &(struct bh_asked_event){.namespace_ = "default",
                                                                    .name = "p",
                                                                    .uid = "u-p",
                                                                    .controller = "ctl",
                                                                    .reason = "Said",
                                                                    .note = "so it is"}));
    if (!plug.group)
        return NULL;
    *ret = 900 * SECONDS;
    if (plug.pods->by_uid.len + 1 < plug.group)
        return &plug_waits;
    bh_waiting_each(plug.pods, allow, NULL);
    return NULL;
}

static const struct bh_status *plug_pre_bind(struct bh_call *c, bh_sym node, int64_t since_ns)
{
    const struct bh_status *s;

    (void)since_ns;
    if (plug.at_pre_bind && says_once(&s))
        return s;
    if (!plug.before || plug.early || bh_reservation_of(plug.reserved, bh_rec_uid(c->pod->rec)))
        return NULL;
    (void)list_write(c, node);
    return &plug_waits;
}

static uint32_t plug_undo(struct bh_call *c, const struct bh_write **ret)
{
    struct bh_write w = write_of(c, plug.undo);

    if (plug.undo)
        *ret = bh_arena_memdup(c->arena, &w, sizeof(w));
    return plug.undo != NULL;
}

static const struct bh_status *plug_bind(struct bh_call *c, bh_sym node, struct bh_bind_order *ret)
{
    struct bh_write w = write_of(c, plug.instead);
    const struct bh_status *s;

    (void)node;
    plug.binds++;
    if (!plug.at_pre_bind && says_once(&s))
        return s;
    if (plug.instead)
        ret->write = bh_arena_memdup(c->arena, &w, sizeof(w));
    return plug.bind;
}

static void plug_post_bind(struct bh_call *c, bh_sym node)
{
    took_note(c, "bound", node);
}

static const struct bh_plugin plugin = {BH_PLUGIN_HEAD("Plug"),     .flags = BH_PLUGIN_NODE_LOCAL,
                                        .args_new = plug_new,       .pre_enqueue = plug_pre_enqueue,
                                        .reserve = plug_reserve,    .unreserve = plug_unreserve,
                                        .permit = plug_permit,      .pre_bind = plug_pre_bind,
                                        .undo_work = plug_undo,     .bind = plug_bind,
                                        .post_bind = plug_post_bind};
const struct bh_plugin *const bh_plugins_extra[] = {&plugin, NULL};

static const struct bh_patch annotate = {.api_version = "v1",
                                         .resource = "pods",
                                         .body = "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}"};
static const struct bh_patch claim = {.api_version = "x.example.com/v1",
                                      .resource = "seats",
                                      .json = true,
                                      .body =
                                          "[{\"op\":\"add\",\"path\":\"/spec/by\",\"value\":1}]"};

static void setup_plug(struct fixture *f)
{
    memset(&plug, 0, sizeof(plug));
    plug.bind = &bh_status_skip;
    setup_with(f, "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: Plug}]}\n"
                  "    bind: {enabled: [{name: Plug}, {name: DefaultBinder}]}\n");
    go(f);
}

/* The one request for the pod that goes out next, once the patches of its status are answered. */
static struct item *await_write(struct fixture *f, Berth__WorkKind kind, const char *name)
{
    struct item *i;

    for (;;) {
        SPIN(f, (i = find_item(&f->b[0], STATUS, name)) || find_item(&f->b[0], kind, name));
        if (!i)
            return find_item(&f->b[0], kind, name);
        answer(&f->b[0], i, DONE, NULL);
    }
}

static bool body_is(const struct item *i, const struct bh_patch *p)
{
    return bh_streq(i->resource, p->resource) && i->n_bytes == strlen(p->body) &&
           memcmp(i->bytes, p->body, i->n_bytes) == 0;
}

/* ---- Bind and PostBind ----------------------------------------------------------------------- */

static void test_post_bind_is_told_once_of_what_is_bound(void)
{
    struct fixture f;
    struct item *i;

    setup_plug(&f);
    add_pod(&f, "p", "1");
    i = await_write(&f, BIND, "p");
    CU_ASSERT(!*i->resource && plug.binds == 1); /* it skipped: DefaultBinder's */
    settle(&f);
    CU_ASSERT_STRING_EQUAL(plug.told, "");
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, bh_streq(plug.told, "bound p n1, "));
    snap_pod(&f, "p", "1", "n1", "");
    end_pod(&f, "p", BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    add_pod(&f, "q", "1"); /* the watch is faster than the answer */
    i = await_write(&f, BIND, "q");
    snap_pod(&f, "q", "1", "n1", "");
    end_pod(&f, "q", BOUND);
    settle(&f);
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, place(&f, "q") == BH_Q_NONE);
    CU_ASSERT_STRING_EQUAL(plug.told, "bound p n1, bound q n1, ");
    teardown(&f);
}

/* An earlier request took effect, whose answer was lost. */
static void test_post_bind_is_told_of_a_bind_that_only_the_watch_knows(void)
{
    struct fixture f;

    setup_plug(&f);
    add_pod(&f, "p", "1");
    answer(&f.b[0], await_write(&f, BIND, "p"), UNKNOWN, NULL);
    answer(&f.b[0], await_write(&f, BIND, "p"), REJECTED, "no");
    SPIN(&f, bind_of(&f, "u-p") && bind_of(&f, "u-p")->kept);
    CU_ASSERT_STRING_EQUAL(plug.told, "");
    snap_pod(&f, "p", "1", "n1", "");
    end_pod(&f, "p", BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    CU_ASSERT_STRING_EQUAL(plug.told, "bound p n1, ");
    teardown(&f);
}

static void test_a_bind_that_was_lost_to_another_is_unreserved(void)
{
    struct fixture f;
    struct item *i;

    setup_plug(&f);
    snap_node(&f, "n2", "4");
    add_pod(&f, "p", "1");
    i = await_write(&f, BIND, "p");
    snap_pod(&f, "p", "1", "n2", "");
    end_pod(&f, "p", BOUND);
    settle(&f);
    answer(&f.b[0], i, ELSEWHERE, "n2");
    SPIN(&f, bh_streq(plug.told, "undone p n1, "));
    plug.group = 2;
    add_pod(&f, "q", "1");
    SPIN(&f, place(&f, "q") == BH_Q_WAITING);
    CU_ASSERT_PTR_NOT_NULL(pod_of(&f, "u-q")->waiting);
    CU_ASSERT_PTR_EQUAL(pod_of(&f, "u-q")->waiting, bh_engine_waiting(f.d.engine, bh_str_c("u-q")));
    snap_pod(&f, "q", "1", "n2", "");
    end_pod(&f, "q", BOUND);
    SPIN(&f, place(&f, "q") == BH_Q_NONE && f.d.prebinds.n == 0);
    CU_ASSERT_PTR_NULL(bh_engine_waiting(f.d.engine, bh_str_c("u-q")));
    CU_ASSERT_STRING_EQUAL(plug.told, "undone p n1, undone q n1, ");
    teardown(&f);
}

static void test_a_bind_plugin_fails_or_refuses(void)
{
    static const char failed[] = "running Bind plugin \"Plug\": boom";
    struct fixture f;

    setup_plug(&f);
    plug.once = &plug_fails;
    add_pod(&f, "p", "1");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", failed));
    CU_ASSERT_STRING_EQUAL(pod_of(&f, "u-p")->queued->last_reason, "SchedulerError");
    CU_ASSERT_STRING_EQUAL(plug.told, "undone p n1, ");
    (void)await_write(&f, BIND, "p");

    plug.once = &plug_refuses;
    add_pod(&f, "q", "1");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "not here"));
    CU_ASSERT_STRING_EQUAL(pod_of(&f, "u-q")->queued->last_reason, "Unschedulable");
    CU_ASSERT_STRING_EQUAL(pod_of(&f, "u-q")->queued->last_message, "not here");
    (void)await_write(&f, BIND, "q"); /* no event has to help it: it is tried again */
    teardown(&f);
}

static void test_a_pod_that_every_bind_plugin_skips_is_tried_again_silently(void)
{
    struct fixture f;

    memset(&plug, 0, sizeof(plug));
    plug.bind = &bh_status_skip;
    setup_with(&f, "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: Plug}]}\n"
                   "    bind: {enabled: [{name: Plug}], disabled: [{name: DefaultBinder}]}\n");
    go(&f);
    add_pod(&f, "p", "1");
    SPIN(&f, plug.binds > 2);
    for (unsigned i = 0; i < f.b[0].n; i++) /* neither event nor condition */
        CU_ASSERT(f.b[0].items[i].kind == STATUS && !*f.b[0].items[i].reason);
    plug.bind = NULL;
    answer(&f.b[0], await_write(&f, BIND, "p"), REJECTED, "no");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "running Bind plugin \"Plug\": no"));
    teardown(&f);
}

static void test_a_bind_may_be_a_patch(void)
{
    static char huge[(64u << 10) + 3];
    const struct bh_patch large = {"v1", "pods", NULL, false, huge};
    struct fixture f;
    struct item *i;

    setup_plug(&f);
    plug.bind = NULL;
    plug.instead = &claim;
    add_pod(&f, "p", "1");
    i = await_write(&f, BIND, "p");
    CU_ASSERT(body_is(i, &claim) && bh_streq(i->object, "p") && bh_streq(i->object_uid, "u-p"));
    CU_ASSERT_STRING_EQUAL(i->node, "n1");
    answer(&f.b[0], i, REJECTED, "not now");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "running Bind plugin \"Plug\": not now"));
    answer(&f.b[0], await_write(&f, BIND, "p"), DONE, NULL);
    SPIN(&f, bind_of(&f, "u-p") && bind_of(&f, "u-p")->kept); /* until the watch shows the pod */
    end_pod(&f, "p", DELETED);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);

    memset(huge, ' ', sizeof(huge) - 1);
    plug.instead = &large;
    add_pod(&f, "q", "1");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling",
                       "running Bind plugin \"Plug\": what it wants written cannot be sent: work: "
                       "patch without a body, or with one of more than 64 Ki bytes"));
    teardown(&f);
}

/* The one that it is asked for again may be on the wire: the pod stays where it was sent. */
static void test_an_adopted_bind_that_is_refused_now_is_only_looked_at(void)
{
    struct fixture f;
    struct item *i;

    setup_plug(&f);
    add_pod(&f, "p", "4");
    (void)await_write(&f, BIND, "p");
    plug.bind = &plug_fails;
    scheduler_stop(&f);
    f.known = false;
    f.b[0].forgetful = true;
    scheduler_start(&f);
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "p", "4");
    add_pod(&f, "q", "4");
    feed_batch(&f, NULL, true);
    SPIN(&f, bind_of(&f, "u-p") && bind_of(&f, "u-p")->kept);
    SPIN(&f, place(&f, "q") == BH_Q_UNSCHEDULABLE); /* it counts */
    CU_ASSERT(count_items(&f.b[0], BIND, "p") == 1);
    bind_of(&f, "u-p")->due_ns = 0;
    SPIN(&f, (i = find_item(&f.b[0], BIND, "p")) && i->look);
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, bh_streq(plug.told, "bound p n1, "));
    teardown(&f);
}

/* ---- PreBind --------------------------------------------------------------------------------- */

static void test_what_pre_bind_wants_written_is_written_first(void)
{
    struct fixture f;
    struct item *i;

    setup_plug(&f);
    for (unsigned early = 0; early < 2; early++) {
        const char *name = early ? "q" : "p";
        plug.early = early;
        plug.before = &annotate;
        add_pod(&f, name, "1");
        i = await_write(&f, PATCH, name);
        CU_ASSERT(body_is(i, &annotate) && bh_streq(i->object, name));
        settle(&f);
        CU_ASSERT(count_items(&f.b[0], BIND, name) == 0 && place(&f, name) == BH_Q_BINDING);
        answer(&f.b[0], i, DONE, NULL);
        (void)await_write(&f, BIND, name);
        CU_ASSERT(count_items(&f.b[0], PATCH, name) == 1);
    }
    teardown(&f);
}

static void test_a_refused_patch_sends_the_pod_back(void)
{
    struct fixture f;
    struct item *i;

    setup_plug(&f);
    plug.before = &annotate;
    plug.undo = &claim;
    add_pod(&f, "p", "1");
    answer(&f.b[0], await_write(&f, PATCH, "p"), REJECTED, "forbidden");
    i = await_write(&f, PATCH, "p");
    CU_ASSERT(body_is(i, &claim)); /* undone first */
    CU_ASSERT_STRING_EQUAL(plug.told, "");
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "running PreBind plugin \"Plug\": forbidden"));
    CU_ASSERT(strncmp(plug.told, "undone p n1, ", 13) == 0);
    teardown(&f);
}

static void test_pre_bind_fails_or_refuses(void)
{
    struct fixture f;

    setup_plug(&f);
    plug.at_pre_bind = true;
    plug.once = &plug_fails;
    add_pod(&f, "p", "1");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "running PreBind plugin \"Plug\": boom"));
    (void)await_write(&f, BIND, "p");
    plug.once = &plug_refuses;
    add_pod(&f, "q", "1");
    SPIN(&f, has_event(&f.b[0], "FailedScheduling", "not here"));
    (void)await_write(&f, BIND, "q");
    teardown(&f);
}

/* It could come after what the next scheduler has written. */
static void test_nothing_is_decided_while_a_patch_may_be_on_the_wire(void)
{
    struct fixture f;

    setup_plug(&f);
    plug.before = &annotate;
    add_pod(&f, "p", "1");
    (void)await_write(&f, PATCH, "p");
    scheduler_stop(&f);
    f.known = false;
    scheduler_start(&f);
    CU_ASSERT(f.d.adopt.claims.len == 1);
    CU_ASSERT(!bh_sched_adopted(&f.d));
    teardown(&f);
}

/* ---- Permit ---------------------------------------------------------------------------------- */

static void test_the_last_of_a_group_lets_all_of_it_go(void)
{
    struct fixture f;

    setup_plug(&f);
    plug.group = 3;
    add_pod(&f, "a", "1");
    add_pod(&f, "b", "1");
    SPIN(&f, place(&f, "a") == BH_Q_WAITING && place(&f, "b") == BH_Q_WAITING);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "a") + count_items(&f.b[0], BIND, "b") == 0);
    add_pod(&f, "c", "1");
    (void)await_write(&f, BIND, "a");
    (void)await_write(&f, BIND, "b");
    (void)await_write(&f, BIND, "c");
    CU_ASSERT(plug.pods->by_uid.len == 0 && f.d.prebinds.n == 0);
    teardown(&f);
}

/* As if killed: those that wait are pending for the API server, and are decided anew. */
static void test_pods_that_wait_survive_the_scheduler_and_are_bound_together(void)
{
    struct fixture f;

    setup_plug(&f);
    plug.group = 3;
    add_pod(&f, "a", "1");
    add_pod(&f, "b", "1");
    SPIN(&f, place(&f, "a") == BH_Q_WAITING && place(&f, "b") == BH_Q_WAITING);
    scheduler_stop(&f);
    f.known = false;
    scheduler_start(&f);
    SPIN(&f, f.known);
    feed_begin(&f);
    add_pod(&f, "b", "1");
    add_pod(&f, "a", "1");
    feed_batch(&f, NULL, true);
    SPIN(&f, place(&f, "a") == BH_Q_WAITING && place(&f, "b") == BH_Q_WAITING);
    settle(&f);
    CU_ASSERT(count_items(&f.b[0], BIND, "a") + count_items(&f.b[0], BIND, "b") == 0);
    add_pod(&f, "c", "1");
    (void)await_write(&f, BIND, "a");
    (void)await_write(&f, BIND, "b");
    (void)await_write(&f, BIND, "c");
    teardown(&f);
}

static void test_a_plugin_activates_a_pod(void)
{
    struct fixture f;

    setup_plug(&f);
    add_pod(&f, "big", "9");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    CU_ASSERT(pod_of(&f, "u-big")->queued->attempts == 1);
    plug.wake = "u-big";
    add_pod(&f, "p", "1");
    (void)await_write(&f, BIND, "p");
    SPIN(&f, pod_of(&f, "u-big")->queued->attempts == 2);
    plug.wake = "u-nobody";
    add_pod(&f, "q", "1");
    (void)await_write(&f, BIND, "q");
    SPIN(&f, plug.pods->activate.len == 0);
    teardown(&f);
}

/* PreEnqueue is asked while pods are being activated. */
static void test_one_activated_pod_activates_others(void)
{
    struct fixture f;
    char name[16];

    setup_plug(&f);
    add_pod(&f, "big", "9");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    for (unsigned i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "o%u", i);
        add_pod(&f, name, "9");
        SPIN(&f, place(&f, name) == BH_Q_UNSCHEDULABLE);
    }
    plug.hands_on = true;
    plug.wake = "u-big";
    add_pod(&f, "p", "1");
    (void)await_write(&f, BIND, "p");
    settle(&f);
    for (unsigned i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "u-o%u", i);
        SPIN(&f, pod_of(&f, name)->queued->attempts == 2);
    }
    teardown(&f);
}

/* It decides nothing before all pods are there. */
static void new_scheduler(struct fixture *f)
{
    scheduler_stop(f);
    f->known = false;
    scheduler_start(f);
    SPIN(f, f->known);
    feed_begin(f);
}

/* Before the pods of lower priority that are decided in the same turn. */
static void test_an_activated_pod_is_next(void)
{
    struct fixture f;

    setup_plug(&f);
    plug.wake = "u-big";
    new_scheduler(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "big", "9", "\"priority\":3,", ""));
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", "\"priority\":2,", ""));
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "last", "9", "\"priority\":1,", ""));
    feed_batch(&f, NULL, true);
    SPIN(&f, pod_of(&f, "u-big") && pod_of(&f, "u-big")->queued->attempts == 2 &&
                 pod_of(&f, "u-last")->queued->attempts == 1);
    CU_ASSERT(pod_of(&f, "u-big")->queued->popped_ns < pod_of(&f, "u-last")->queued->popped_ns);
    teardown(&f);
}

/* It fails and is activated again and again, and is the more important one. */
static void test_a_pod_that_is_activated_for_ever_lets_others_pass(void)
{
    struct fixture f;

    setup_plug(&f);
    plug.wake = "u-big";
    plug.selfish = true;
    new_scheduler(&f);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "big", "1", "\"priority\":2,", ""));
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED, pod(&f, "p", "1", "\"priority\":1,", ""));
    feed_batch(&f, NULL, true);
    (void)await_write(&f, BIND, "p");
    teardown(&f);
}

/* Pending: what it waits for is no fault of the pod's, and when it is there no back-off is served. */
static void test_a_pending_pod_serves_no_backoff(void)
{
    static const struct bh_cluster_event ev = {
        .resource = BH_EV_PLUGIN, .action = BH_EV_UPDATE, .plugin = "Plug"};
    const struct bh_status *const says[] = {&plug_refuses, &plug_pends};
    struct fixture f;

    for (size_t i = 0; i < BH_ARRAY_LEN(says); i++) {
        setup_plug(&f);
        plug.permit = says[i];
        f.config->pod_max_backoff_ns = 1000 * SECONDS;
        f.config->pod_initial_backoff_ns = 1000 * SECONDS;
        new_scheduler(&f);
        add_pod(&f, "p", "1");
        feed_batch(&f, NULL, true);
        SPIN(&f, place(&f, "p") == BH_Q_UNSCHEDULABLE);
        bh_queue_event(f.d.queue, &ev, bh_sched_now(&f.d));
        CU_ASSERT(place(&f, "p") == (says[i] == &plug_pends ? BH_Q_ACTIVE : BH_Q_BACKOFF));
        teardown(&f);
    }
}

static void test_a_plugin_says_and_wakes(void)
{
    struct fixture f;

    setup_plug(&f);
    add_pod(&f, "big", "9");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    plug.says = true;
    add_pod(&f, "p", "1");
    SPIN(&f, has_event(&f.b[0], "Said", "so it is"));
    settle(&f);
    CU_ASSERT(pod_of(&f, "u-big")->queued->attempts == 1);
    bh_asks_wake(&waker);
    SPIN(&f, pod_of(&f, "u-big")->queued->attempts == 2);
    teardown(&f);
}

static void test_a_plugin_wakes_at_a_time(void)
{
    struct fixture f;

    setup_plug(&f);
    add_pod(&f, "big", "9");
    SPIN(&f, place(&f, "big") == BH_Q_UNSCHEDULABLE);
    bh_asks_wake_at(&waker, INT64_MAX - 1);
    settle(&f);
    CU_ASSERT(pod_of(&f, "u-big")->queued->attempts == 1);
    CU_ASSERT(bh_engine_wakes_next(f.d.engine) == INT64_MAX - 1);
    bh_asks_wake_at(&waker, bh_sched_now(&f.d));
    SPIN(&f, pod_of(&f, "u-big")->queued->attempts == 2);
    CU_ASSERT(bh_engine_wakes_next(f.d.engine) == INT64_MAX);
    bh_asks_wake_at(&waker, 1);
    bh_asks_wake_at(&waker, INT64_MAX); /* it changed its mind */
    settle(&f);
    CU_ASSERT(pod_of(&f, "u-big")->queued->attempts == 2);
    teardown(&f);
}

BH_TESTS("scheduler/daemon/bind",
         {"PostBind is told once of what is bound", test_post_bind_is_told_once_of_what_is_bound},
         {"PostBind is told of a bind that only the watch knows",
          test_post_bind_is_told_of_a_bind_that_only_the_watch_knows},
         {"a bind that was lost to another is unreserved",
          test_a_bind_that_was_lost_to_another_is_unreserved},
         {"a Bind plugin fails or refuses", test_a_bind_plugin_fails_or_refuses},
         {"a pod that every Bind plugin skips is tried again silently",
          test_a_pod_that_every_bind_plugin_skips_is_tried_again_silently},
         {"a bind may be a patch", test_a_bind_may_be_a_patch},
         {"an adopted bind that is refused now is only looked at",
          test_an_adopted_bind_that_is_refused_now_is_only_looked_at},
         {"what PreBind wants written is written first",
          test_what_pre_bind_wants_written_is_written_first},
         {"a refused patch sends the pod back", test_a_refused_patch_sends_the_pod_back},
         {"PreBind fails or refuses", test_pre_bind_fails_or_refuses},
         {"nothing is decided while a patch may be on the wire",
          test_nothing_is_decided_while_a_patch_may_be_on_the_wire},
         {"the last of a group lets all of it go", test_the_last_of_a_group_lets_all_of_it_go},
         {"pods that wait survive the scheduler and are bound together",
          test_pods_that_wait_survive_the_scheduler_and_are_bound_together},
         {"a plugin activates a pod", test_a_plugin_activates_a_pod},
         {"an activated pod is next", test_an_activated_pod_is_next},
         {"one activated pod activates others", test_one_activated_pod_activates_others},
         {"a pod that is activated for ever lets others pass",
          test_a_pod_that_is_activated_for_ever_lets_others_pass},
         {"a pending pod serves no backoff", test_a_pending_pod_serves_no_backoff},
         {"a plugin says something, and wakes what it rejected", test_a_plugin_says_and_wakes},
         {"a plugin wakes what it rejected at a time", test_a_plugin_wakes_at_a_time})
