/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_run.c - the daemon as a process runs it: signals, its loop, what
 * the log says, what is kept of decisions
 */
#include "common/base/log.h"
#include "scheduler/decisions/decisions.h"
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/daemon/fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define BIND    BERTH__WORK_KIND__WORK_BIND
#define STATUS  BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DONE    BERTH__OUTCOME__OUTCOME_DONE
#define BOUND   BERTH__CHANGE_OP__CHANGE_BOUND
#define DELETED BERTH__CHANGE_OP__CHANGE_DELETED

/* ---- a plugin at Permit ------------------------------------------------------------------------ */

BH_STATUS_CONST(says_wait, BH_WAIT, "TestPermit", "");
BH_STATUS_CONST(says_no, BH_UNSCHEDULABLE, "TestPermit", "not now");

static const struct bh_status *permit_says;

static const struct bh_status *permit(struct bh_call *c, bh_sym node, int64_t *ret)
{
    (void)c, (void)node;
    *ret = INT64_C(60000000000);
    return permit_says;
}

static const struct bh_plugin plugin = {BH_PLUGIN_HEAD("TestPermit"), .permit = permit};
const struct bh_plugin *const bh_plugins_extra[] = {&plugin, NULL};

/* ---- a process in a thread --------------------------------------------------------------------- */

struct process {
    pthread_t thread;
    struct bh_sched_daemon_options o;
    struct bh_err err;
    int rc;
    _Atomic bool ended;
};

static void *run(void *arg)
{
    struct process *p = arg;

    p->rc = bh_sched_daemon_run(&p->o, &p->err);
    p->ended = true;
    return NULL;
}

/* It has said hello: it hears signals. */
static void start(struct fixture *f, struct process *p)
{
    scheduler_stop(f);
    f->known = false;
    CU_ASSERT_FATAL(pthread_create(&p->thread, NULL, run, p) == 0);
    SPIN(f, f->known);
}

static void await_end(struct fixture *f, struct process *p)
{
    SPIN(f, p->ended);
    CU_ASSERT(pthread_join(p->thread, NULL) == 0);
}

static struct process process_of(const struct fixture *f)
{
    return (struct process){.o = {.runtime_dir = f->dir,
                                  .metrics_address = "0",
                                  .config = f->config,
                                  .tie_break = BH_TIE_FIRST}};
}

static void test_it_decides_until_it_is_told_to_stop(void)
{
    struct fixture f;
    struct process p;

    setup(&f);
    snap_node(&f, "n1", "4");
    p = process_of(&f);
    start(&f, &p);
    bh_snap_set_synced(f.snap, true);
    feed_begin(&f);
    add_pod(&f, "a", "1");
    feed_batch(&f, NULL, true);
    struct item *i = await(&f, &f.b[0], BIND, "a");
    CU_ASSERT_STRING_EQUAL(i->node, "n1");
    kill(getpid(), SIGHUP); /* without a file nothing changes */
    add_pod(&f, "b", "1");
    (void)await(&f, &f.b[0], BIND, "b");
    CU_ASSERT(!p.ended && !f.leaving);
    kill(getpid(), SIGTERM);
    await_end(&f, &p);
    CU_ASSERT_EQUAL(p.rc, 0);
    SPIN(&f, f.leaving); /* the watcher heard of it */
    teardown(&f);
}

/* Binders acknowledge that their grants are revoked; the last message to the watcher depends on that. */
static void test_leaving_scheduler_reports_quiet_after_binders_acknowledged(void)
{
    struct fixture f;
    struct process p;

    setup(&f);
    snap_node(&f, "n1", "4");
    bh_snap_set_lease(f.snap, 0, 0); /* it starts before the term */
    p = process_of(&f);
    start(&f, &p);
    bh_snap_set_synced(f.snap, true);
    feed_begin(&f);
    feed_batch(&f, NULL, true);
    SPIN(&f, f.ready);
    bh_snap_set_lease(f.snap, 7, bh_boot_ns() + UINT64_C(600000000000));
    SPIN(&f, f.b[0].valid_ns > 0);
    CU_ASSERT_EQUAL(f.quiet_term, 0);
    kill(getpid(), SIGTERM);
    await_end(&f, &p);
    SPIN(&f, f.leaving);
    CU_ASSERT_EQUAL(f.b[0].valid_ns, 0);
    CU_ASSERT_EQUAL(f.quiet_term, 7);
    teardown(&f);
}

static void test_a_changed_file_starts_it_again(void)
{
    static const char text[] = "apiVersion: kubescheduler.config.k8s.io/v1\n"
                               "kind: KubeSchedulerConfiguration\n",
                      broken[] = "kind: Nothing\n",
                      other[] = "apiVersion: kubescheduler.config.k8s.io/v1\n"
                                "kind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: 7\n";
    struct bh_buf in_force = {0};
    struct bh_err err = {0};
    struct fixture f;
    struct process p;
    char path[160];

    setup(&f);
    scheduler_stop(&f);
    snprintf(path, sizeof(path), "%s/config.yaml", f.dir);
    CU_ASSERT_FATAL(bh_write_file(path, text, strlen(text), 0640) == 0);
    bh_sched_config_free(f.config);
    CU_ASSERT_FATAL(bh_sched_config_load(path, &f.config, &err) == 0);
    bh_sched_config_write(f.config, BH_SCHED_CONFIG_YAML, true, &in_force);
    p = process_of(&f);
    p.o.config_path = path;
    p.o.config_text = bh_buf_str(&in_force);
    scheduler_start(&f);
    f.d.o.config_path = path;
    f.d.o.config_text = p.o.config_text;
    CU_ASSERT_EQUAL(bh_sched_reload(&f.d, &err), 0); /* it is the same */
    CU_ASSERT(!f.d.stopping);
    CU_ASSERT_FATAL(bh_write_file(path, broken, strlen(broken), 0640) == 0);
    CU_ASSERT(bh_sched_reload(&f.d, &err) < 0);
    CU_ASSERT(strstr(err.msg, "config.yaml") != NULL && !f.d.stopping);
    CU_ASSERT_FATAL(bh_write_file(path, other, strlen(other), 0640) == 0);
    start(&f, &p);
    kill(getpid(), SIGHUP);
    await_end(&f, &p);
    CU_ASSERT_EQUAL(p.rc, BH_SCHED_RELOAD);
    CU_ASSERT(!f.leaving); /* it is back at once */
    bh_buf_fini(&in_force);
    teardown(&f);
}

/* ---- the log ----------------------------------------------------------------------------------- */

static char *log_of(void (*fn)(struct fixture *), struct fixture *f)
{
    char path[160], *text = NULL;
    size_t n;
    int saved = dup(STDERR_FILENO), fd;

    snprintf(path, sizeof(path), "%s/log", f->dir);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    bh_log_set_verbosity(4);
    fn(f);
    bh_log_set_verbosity(0);
    (void)dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
    CU_ASSERT_FATAL(bh_read_file(path, 1u << 20, &text, &n) == 0);
    return text;
}

static void live(struct fixture *f)
{
    struct item *i;

    add_pod(f, "big", "9");
    SPIN(f, place(f, "big") == BH_Q_UNSCHEDULABLE);
    add_pod(f, "p", "1");
    SPIN(f, (i = find_item(&f->b[0], BIND, "p")) != NULL);
    answer(&f->b[0], i, DONE, NULL);
    SPIN(f, bind_of(f, "u-p")->kept);
    snap_pod(f, "p", "1", "n1", "");
    end_pod(f, "p", BOUND);
    snap_node(f, "n2", "2");
    end_pod(f, "big", DELETED);
    SPIN(f, place(f, "p") == BH_Q_NONE && place(f, "big") == BH_Q_NONE &&
                bh_engine_node_count(f->d.engine) == 2);
}

/* kube-scheduler's lines, which people search logs for. */
static void test_the_log_tells_of_pods_and_nodes(void)
{
    static const char *const lines[] = {
        "\"Add event for unscheduled pod\" pod=\"ns/p\"",
        "\"Attempting to schedule pod\" pod=\"ns/p\"",
        "\"About to try and schedule pod\" pod=\"ns/big\"",
        "\"Unable to schedule pod; no fit; waiting\" pod=\"ns/big\" err=\"0/1 nodes are "
        "available: 1 Insufficient cpu.",
        "\"Updating pod condition and nominated node name\" pod=\"ns/big\" "
        "conditionType=\"PodScheduled\" conditionStatus=\"False\" "
        "conditionReason=\"Unschedulable\"",
        "\"Successfully bound pod to node\" pod=\"ns/p\" node=\"n1\" evaluatedNodes=1 "
        "feasibleNodes=1 attempts=1",
        "\"Delete event for unscheduled pod\" pod=\"ns/big\"",
        "\"Add event for scheduled pod\" pod=\"ns/p\"",
        "\"Add event for node\" node=\"n2\""};
    struct fixture f;

    permit_says = NULL;
    setup(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    BH_CLEANUP(bh_freep) char *text = log_of(live, &f);
    for (size_t i = 0; i < BH_ARRAY_LEN(lines); i++)
        if (!strstr(text, lines[i])) {
            printf("# missing: %s\n", lines[i]);
            CU_FAIL("a line is missing in the log");
        }
    teardown(&f);
}

/* ---- what is kept ------------------------------------------------------------------------------ */

struct kept {
    struct bh_decisions *d;
    struct bh_arena a;
    char path[160];
};

static void setup_kept(struct fixture *f, struct kept *k, enum bh_record_mode mode)
{
    setup(f);
    scheduler_stop(f);
    snprintf(k->path, sizeof(k->path), "%s/decisions.db", f->dir);
    f->record = (struct bh_recorder_options){.mode = mode, .path = k->path};
    restart_with(f, "profiles:\n- plugins:\n    multiPoint: {enabled: [{name: TestPermit}]}\n");
    snap_node(f, "n1", "4");
    go(f);
    k->d = bh_decisions_new(k->path);
    bh_arena_init(&k->a, 0);
}

static void teardown_kept(struct fixture *f, struct kept *k)
{
    teardown(f);
    bh_decisions_free(k->d);
    bh_arena_fini(&k->a);
}

/* The newest attempt of a pod; NULL: none yet. */
static const struct bh_json *attempt_of(struct kept *k, const char *pod)
{
    const struct bh_decision_filter filter = {.pod = pod};
    struct bh_json *v = NULL;
    struct bh_err err = {0};

    if (bh_decisions_list(k->d, &k->a, &filter, &v, &err) < 0)
        return NULL;
    return bh_json_at(bh_json_get(v, "items"), 0);
}

static bool came_to(struct kept *k, const char *pod, const char *result, const char *outcome)
{
    const struct bh_json *v = attempt_of(k, pod);

    return v && bh_streq(bh_json_get_text(v, "result"), result) &&
           bh_streq(bh_json_get_text(v, "outcome"), outcome);
}

static void expect_step(struct kept *k, const char *pod, const char *what, const char *says)
{
    const struct bh_annotations_query q = {.no_history = true};
    char key[128];
    int64_t id = bh_json_get_i64(attempt_of(k, pod), "id", 0);
    struct bh_json *v = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_decisions_annotations(k->d, &k->a, id, &q, &v, &err) == 0);
    snprintf(key, sizeof(key), BH_ANNOTATION_PREFIX "%s", what);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(v, key), says);
}

static void test_each_step_of_an_attempt_is_kept(void)
{
    struct fixture f;
    struct kept k;
    struct item *i;

    permit_says = NULL;
    setup_kept(&f, &k, BH_RECORD_FULL);
    add_pod(&f, "p", "1");
    SPIN(&f, (i = find_item(&f.b[0], BIND, "p")) != NULL);
    SPIN(&f, came_to(&k, "p", "Scheduled", "Binding"));
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, came_to(&k, "p", "Scheduled", "Bound"));
    expect_step(&k, "p", "permit-result", "{\"TestPermit\":\"success\"}");
    expect_step(&k, "p", "bind-result", "{\"DefaultBinder\":\"success\"}");
    permit_says = &says_wait;
    add_pod(&f, "w", "1");
    SPIN(&f, came_to(&k, "w", "Scheduled", "Binding"));
    expect_step(&k, "w", "permit-result", "{\"TestPermit\":\"wait\"}");
    expect_step(&k, "w", "permit-result-timeout", "{\"TestPermit\":\"1m0s\"}");
    permit_says = &says_no;
    add_pod(&f, "no", "1");
    SPIN(&f, place(&f, "no") == BH_Q_UNSCHEDULABLE && attempt_of(&k, "no"));
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(attempt_of(&k, "no"), "result"), "Unschedulable");
    expect_step(&k, "no", "permit-result", "{\"TestPermit\":\"not now\"}");
    expect_step(&k, "no", "bind-result", "{}");
    add_pod(&f, "big", "9"); /* comes to no step */
    SPIN(&f, came_to(&k, "big", "Unschedulable", ""));
    teardown_kept(&f, &k);
}

static void test_a_summary_tells_what_became_of_it(void)
{
    struct fixture f;
    struct kept k;
    struct item *i;

    permit_says = NULL;
    setup_kept(&f, &k, BH_RECORD_SUMMARY);
    add_pod(&f, "p", "1");
    SPIN(&f, (i = find_item(&f.b[0], BIND, "p")) != NULL);
    answer(&f.b[0], i, BERTH__OUTCOME__OUTCOME_REJECTED, "no");
    SPIN(&f, (i = find_item(&f.b[0], BIND, "p")) != NULL); /* again */
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, came_to(&k, "p", "Scheduled", "Bound"));
    CU_ASSERT_EQUAL(bh_json_get_i64(attempt_of(&k, "p"), "attempt", 0), 2);
    permit_says = &says_no;
    add_pod(&f, "no", "1");
    SPIN(&f, attempt_of(&k, "no"));
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(attempt_of(&k, "no"), "result"), "Unschedulable");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(attempt_of(&k, "no"), "message"),
                           "0/1 nodes are available: 1 not now.");
    teardown_kept(&f, &k);
}

BH_TESTS("scheduler/daemon/run",
         {"it decides until it is told to stop", test_it_decides_until_it_is_told_to_stop},
         {"leaving scheduler reports quiet after binders acknowledged",
          test_leaving_scheduler_reports_quiet_after_binders_acknowledged},
         {"a changed file starts it again", test_a_changed_file_starts_it_again},
         {"the log tells of pods and nodes", test_the_log_tells_of_pods_and_nodes},
         {"each step of an attempt is kept", test_each_step_of_an_attempt_is_kept},
         {"a summary tells what became of it", test_a_summary_tells_what_became_of_it})
