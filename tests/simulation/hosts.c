/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/hosts.c - the processes: what each runs, and that it is started again
 */
#include "common/api/kubeconfig.h"
#include "common/base/loop.h"
#include "common/base/trusted_file.h"
#include "common/http/probes.h"
#include "common/snapshot/snapshot.h"
#include "scheduler/config/config.h"
#include "scheduler/daemon/daemon.h"
#include "simulator/schema/schema.h"
#include "simulator/server/features.h"
#include "simulator/server/server.h"
#include "simulator/server/sim.h"
#include "simulator/server/sim_int.h"
#include "tests/simulation/simulation.h"
#include "watcher/watcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESTART_MIN (20 * MS)
#define RESTART_MAX (2500 * MS)
#define BOOKMARKS   (5 * SECOND)
#define CONFIG      "scheduler.yaml"
#define UPTIME_MAX  (100 * 86400 * SECOND)
#define UPTIME_LESS                                                                                \
    ((int64_t)(900 * SECOND)) /* world.now_ns begins later than most machines' clocks */
#define DRIFT_PPM 100
/* A machine takes so long until its services run: what it sent before has arrived. */
#define DOWN_MIN   (4 * SECOND)
#define DOWN_MAX   (10 * SECOND)
#define GANG_GATES "GenericWorkload=true,GangScheduling=true"

struct process processes[1 + MAX_HOSTS * (2 + MAX_BINDERS)];
unsigned n_processes;
struct bh_sim *server;
static struct bh_feature_gates gates, preempting; /* those of gangs are on: of server and hosts */
static struct bh_opt_list served;
struct bh_api_config api_config[MAX_HOSTS];
static struct bh_leader_config leader = {.leader_elect = true,
                                         .resource_lock = "leases",
                                         .resource_name = "kube-scheduler",
                                         .resource_namespace = "kube-system"};

/* Who asks a daemon how it is does not play a part here. */
int bh_probes_start(uv_loop_t *loop, const char *address, const char *runtime_dir, const char *name,
                    struct bh_metrics *m, const struct bh_probe_check *checks,
                    struct bh_probes **ret_p, struct bh_err *err)
{
    (void)loop, (void)address, (void)runtime_dir, (void)name, (void)m, (void)checks, (void)err;
    *ret_p = NULL;
    return 0;
}

uint16_t bh_probes_port(const struct bh_probes *p)
{
    (void)p;
    return 0;
}

void bh_probes_free(struct bh_probes *p)
{
    (void)p;
}

/* ---- what they run --------------------------------------------------------------------------- */

struct errand {
    STAILQ_ENTRY(errand) link;
    void (*fn)(void);
};
static STAILQ_HEAD(, errand) errand_list = STAILQ_HEAD_INITIALIZER(errand_list);
static struct source *errands;

static void on_errands(void *arg)
{
    struct errand *e;

    (void)arg;
    while ((e = STAILQ_FIRST(&errand_list))) {
        STAILQ_REMOVE_HEAD(&errand_list, link);
        e->fn();
        free(e);
    }
}

void in_server(void (*fn)(void))
{
    struct errand *e = bh_malloc(sizeof(*e));

    e->fn = fn;
    STAILQ_INSERT_TAIL(&errand_list, e, link);
    source_set(errands);
}

static void server_main(struct process *p)
{
    char history[96];
    uv_loop_t loop;
    struct bh_err err = {""};
    const struct bh_sim_options o = {
        .tokens = "t0,h0,1,system:masters\nt1,h1,2,system:masters\nt2,h2,3,system:masters\n",
        .history_file = history,
        .history_events = world.history_events,
        .bookmark_interval_ns = (int64_t)BOOKMARKS,
        .kubelet_delay_ns = (int64_t)(100 * MS),
        .first_revision = 1,
        .features = &gates,
        .runtime_config = &served,
        .seed = 1 + draw(DRAW_ENTROPY, UINT32_MAX)};

    if (p->life > 1)
        reach(server_restarted);
    snprintf(history, sizeof(history), "%s/" HISTORY, world.dir);
    uv_loop_init(&loop);
    if (bh_sim_new(&loop, &o, &server, &err) < 0) {
        fail("API server: %s", err.msg);
        return;
    }
    errands = source_new(&loop, on_errands, NULL);
    if (!STAILQ_EMPTY(&errand_list))
        source_set(errands);
    uv_run(&loop, UV_RUN_DEFAULT);
}

struct watcher_run {
    uv_loop_t loop;
    struct bh_watcher *watcher;
};

static void on_watcher_synced(void *arg)
{
    (void)arg;
}

static void on_watcher_failed(void *arg)
{
    uv_stop(&((struct watcher_run *)arg)->loop);
}

static void on_watcher_stop(void *arg)
{
    struct watcher_run *r = arg;

    bh_watcher_stop(r->watcher, on_watcher_failed, r);
}

static void watcher_main(struct process *p)
{
    struct watcher_run r = {.watcher = NULL};
    struct bh_signals *signals = NULL;
    struct bh_err err = {""};
    const struct bh_watcher_callbacks cb = {on_watcher_synced, on_watcher_failed, &r};
    const struct bh_watcher_options o = {.api = &api_config[p->host->n],
                                         .runtime_dir = p->host->dir,
                                         .metrics_address = "0",
                                         .user_agent = "berth-watcher/simulation",
                                         .leader = &leader,
                                         .pod_groups = world.gangs == OF_SCHEDULING,
                                         .coscheduling = world.gangs == OF_COSCHEDULING,
                                         .event_source = "default-scheduler"};

    uv_loop_init(&r.loop);
    if (bh_watcher_new(&r.loop, &o, &cb, &r.watcher, &err) < 0) {
        say("cannot start: %s", err.msg);
    } else {
        signals = bh_signals_new(&r.loop, on_watcher_stop, NULL, &r);
        uv_run(&r.loop, UV_RUN_DEFAULT);
    }
    bh_watcher_free(r.watcher);
    bh_signals_close(signals);
    bh_loop_drain_close(&r.loop);
}

void hosts_configure(struct host *h, unsigned which)
{
    static const char *const rest[] = {
        "",
        "podMaxBackoffSeconds: 3\n",
        "percentageOfNodesToScore: 40\n",
        ("profiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: "
         "NodeResourcesFit\n    args:\n      scoringStrategy:\n        type: MostAllocated\n"),
        "podMaxBackoffSeconds: never\n", /* is refused */
    };
    /* A group is tried again at the end of its backoff only. */
    static const char *const with_gangs[] = {
        "podMaxBackoffSeconds: 1\n",
        "podMaxBackoffSeconds: 1\npercentageOfNodesToScore: 40\n",
    };
    static const char *const with_plugin[] = {
        ("profiles:\n- schedulerName: default-scheduler\n  plugins:\n"
         "    multiPoint: {enabled: [{name: " PLUGIN "}]}\n"),
        ("podMaxBackoffSeconds: 3\nprofiles:\n- schedulerName: default-scheduler\n  plugins:\n"
         "    multiPoint: {enabled: [{name: " PLUGIN "}]}\n"),
    };
    static const char coscheduling[] =
        "podMaxBackoffSeconds: 1\nprofiles:\n- schedulerName: default-scheduler\n  plugins:\n"
        "    multiPoint: {enabled: [{name: Coscheduling}]}\n"
        "    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: \"*\"}]}\n"
        "  pluginConfig:\n  - name: Coscheduling\n"
        "    args: {permitWaitingTimeSeconds: 3, podGroupBackoffSeconds: 1}\n";
    char path[128];
    BH_CLEANUP(bh_freep)
    char *text = bh_asprintf("apiVersion: kubescheduler.config.k8s.io/v1\n"
                             "kind: KubeSchedulerConfiguration\n%s",
                             world.gangs == OF_COSCHEDULING ? coscheduling
                             : world.gangs ? with_gangs[which % BH_ARRAY_LEN(with_gangs)]
                             : world.marks ? with_plugin[which % BH_ARRAY_LEN(with_plugin)]
                                           : rest[which % BH_ARRAY_LEN(rest)]);

    snprintf(path, sizeof(path), "%s/" CONFIG, h->dir);
    if (bh_write_file(path, text, strlen(text), 0600) < 0)
        fail("cannot write %s", path);
}

/* One life of the program; what it knows of itself is in its configuration's file. */
static int schedule(struct process *p, const char *path)
{
    struct bh_err err = {""};
    struct bh_sched_config *config = NULL;
    struct bh_buf text = {0};

    if (bh_sched_config_load_logged(path, &config) < 0) { /* the service manager starts it again */
        say("cannot start with its configuration");
        return -EINVAL;
    }
    bh_sched_config_write(config, BH_SCHED_CONFIG_YAML, true, &text);
    if (world.gangs == OF_SCHEDULING)
        bh_sched_config_apply_gates(config, &gates);
    BH_CLEANUP(bh_freep)
    char *listen = bh_asprintf("tcp://%s:10270", p->host->name);
    const struct bh_sched_daemon_options o = {.runtime_dir = p->host->dir,
                                              .binder_listen = world.tcp ? listen : NULL,
                                              .metrics_address = "0",
                                              .config = config,
                                              .config_path = path,
                                              .config_text = bh_buf_str(&text),
                                              .tie_break = BH_TIE_RANDOM,
                                              .group_stays = true,
                                              .verify = world.seed % 8 == 0,
                                              .seed = 1 + draw(DRAW_ENTROPY, UINT32_MAX)};
    int rc = bh_sched_daemon_run(&o, &err);
    if (rc < 0)
        say("cannot run: %s", err.msg);
    bh_buf_fini(&text);
    bh_sched_config_free(config);
    return rc;
}

static void scheduler_main(struct process *p)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/" CONFIG, p->host->dir);
    while (schedule(p, path) == BH_SCHED_RELOAD)
        reach(configuration_reloaded);
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

int __real_bh_snap_writer_new(const char *dir, const struct bh_snap_options *o,
                              struct bh_snap_writer **ret_w, struct bh_err *err);
int __wrap_bh_snap_writer_new(const char *dir, const struct bh_snap_options *o,
                              struct bh_snap_writer **ret_w, struct bh_err *err);
enum bh_snap_outcome __real_bh_snap_follow(struct bh_snap_reader *r, unsigned max_events,
                                           void (*fn)(void *arg, const struct bh_snap_event *ev),
                                           void *arg);
enum bh_snap_outcome __wrap_bh_snap_follow(struct bh_snap_reader *r, unsigned max_events,
                                           void (*fn)(void *arg, const struct bh_snap_event *ev),
                                           void *arg);

/* So small that it has to move as the cluster grows. */
int __wrap_bh_snap_writer_new(const char *dir, const struct bh_snap_options *o,
                              struct bh_snap_writer **ret_w, struct bh_err *err)
{
    const struct bh_snap_options small = {
        .initial_bytes = (size_t)4096 << draw(DRAW_ENTROPY, 5),
        .log_entries = 64u << draw(DRAW_ENTROPY, 5),
    };

    (void)o;
    if (world.running)
        world.running->host->log_entries = small.log_entries;
    return __real_bh_snap_writer_new(dir, &small, ret_w, err);
}

struct delivery {
    void (*fn)(void *arg, const struct bh_snap_event *ev);
    void *arg;
};

/* Copying takes time, in which the writer goes on. */
static void deliver(void *arg, const struct bh_snap_event *ev)
{
    const struct delivery *d = arg;

    if (chance(DRAW_ORDER, world.slow_copies ? 50 : 2))
        process_wait(draw(DRAW_ORDER, 5 * MS));
    step();
    d->fn(d->arg, ev);
}

enum bh_snap_outcome __wrap_bh_snap_follow(struct bh_snap_reader *r, unsigned max_events,
                                           void (*fn)(void *arg, const struct bh_snap_event *ev),
                                           void *arg)
{
    struct delivery d = {fn, arg};
    struct process *p = world.running;

    p->copying = true;
    enum bh_snap_outcome o = __real_bh_snap_follow(r, max_events, deliver, &d);
    p->copying = false;
    return o;
}

/* ---- who there is ---------------------------------------------------------------------------- */

static void add(enum kind kind, struct host *h, int index)
{
    static const struct {
        const char *name;
        void (*main)(struct process *);
    } kinds[] = {{"server", server_main},
                 {"watcher", watcher_main},
                 {"scheduler", scheduler_main},
                 {"binder", binder_main}};
    struct process *p = &processes[n_processes++];

    *p = (struct process){
        .host = h, .kind = kind, .index = index, .main = kinds[kind].main, .wanted = true};
    snprintf(p->name, sizeof(p->name), "%s%s%s%.0d", h ? h->name : "", h ? "." : "",
             kinds[kind].name, index);
}

struct process *find_process(enum kind kind, struct host *h, int index)
{
    for (unsigned i = 0; i < n_processes; i++)
        if (processes[i].kind == (int)kind && processes[i].host == h && processes[i].index == index)
            return &processes[i];
    return NULL;
}

/* Tables that a process makes when it needs them first, and never changes. */
static void make_tables(void)
{
    static const char *versions[] = {"scheduling.k8s.io/v1alpha2=true"};
    struct host nowhere = {.n = 0};
    struct bh_sched_config *config = NULL;
    struct bh_err err = {""};
    char path[128];

    (void)bh_oas_root(bh_sim_type_find("", "v1", "pods"));
    if (bh_feature_gates_parse(&gates, GANG_GATES, &err) < 0 ||
        bh_feature_gates_parse(&preempting, GANG_GATES ",WorkloadAwarePreemption=true", &err) < 0)
        fail("%s", err.msg);
    served = (struct bh_opt_list){.v = versions, .n = BH_ARRAY_LEN(versions)};
    memcpy(nowhere.dir, world.prepared, sizeof(world.prepared));
    hosts_configure(&nowhere, 0);
    snprintf(path, sizeof(path), "%s/" CONFIG, nowhere.dir);
    if (bh_sched_config_load(path, &config, &err) < 0)
        fail("%s", err.msg);
    bh_sched_config_free(config);
}

const struct host *host_served(const struct process *p)
{
    const bool far = world.tcp && p->index == (int)world.n_binders - 1;

    return &world.host[(p->host->n + far) % (int)world.n_hosts];
}

/* An API server with what a fresh cluster has, before there is a seed: each begins with a copy. */
void hosts_prepare(void)
{
    make_tables();
    add(P_SERVER, NULL, 0);
    world.history_events = 1;
    process_start(&processes[0], 0);
    run_until(world.now_ns + 10 * MS, NULL);
}

/* Its history goes on in a file of the seed's. */
static void take_server(void)
{
    char path[96], old[96], *text = NULL;
    size_t n = 0;

    snprintf(old, sizeof(old), "%s/" HISTORY, world.prepared);
    snprintf(path, sizeof(path), "%s/" HISTORY, world.dir);
    if (bh_read_file(old, (size_t)1 << 20, &text, &n) < 0 || bh_write_file(path, text, n, 0600) < 0)
        fail("cannot copy %s", old);
    free(text);
    close(server->history_fd);
    server->history_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    world.history_events = (unsigned)draw_between(DRAW_PLAN, 40, 400);
    server->opt.history_events = world.history_events;
    bh_rand_seed(&server->rand, world.seed);
    bh_rand_seed(&server->uid_rand, ~world.seed);
}

void hosts_init(void)
{
    static const struct {
        int64_t lease, renew, retry;
    } leases[] = {{15000, 10000, 2000}, {6000, 4000, 1000}, {4000, 2500, 500}};
    const size_t l = draw(DRAW_PLAN, BH_ARRAY_LEN(leases));
    struct bh_err err = {""};

    leader.lease_duration_ns = leases[l].lease * (int64_t)MS;
    leader.renew_deadline_ns = leases[l].renew * (int64_t)MS;
    leader.retry_period_ns = leases[l].retry * (int64_t)MS;

    if (world.groups_preempt) {
        gates = preempting;
        if (bh_sim_features_init(server, &err) < 0) /* what it had is the parent's */
            fail("%s", err.msg);
    }
    take_server();
    for (unsigned i = 0; i < world.n_hosts; i++) {
        struct host *h = &world.host[i];
        h->n = (int)i;
        if (plan_clocks()) {
            h->boot_off_ns = (int64_t)draw(DRAW_BOOT, UPTIME_MAX) - UPTIME_LESS;
            h->boot_ppm = (int64_t)draw(DRAW_BOOT, 2 * DRIFT_PPM + 1) - DRIFT_PPM;
        }
        snprintf(h->name, sizeof(h->name), "h%u", i);
        snprintf(h->dir, sizeof(h->dir), "%s/%s", world.dir, h->name);
        if (mkdir(h->dir, 0700) < 0)
            fail("cannot create %s", h->dir);
        hosts_configure(h, 0);
        api_config[i] = (struct bh_api_config){.server = bh_strdup("http://server"),
                                               .token = bh_asprintf("t%u", i),
                                               .source = bh_strdup("simulation"),
                                               .namespace_ = bh_strdup("default")};
        add(P_WATCHER, h, 0);
        add(P_SCHEDULER, h, 0);
        for (unsigned k = 0; k < world.n_binders; k++)
            add(P_BINDER, h, (int)k);
    }
}

/* What a runtime directory in memory has is gone with the machine; one on disk keeps it. */
static void remove_files(const struct host *h)
{
    char path[sizeof(h->dir) + 256];
    DIR *d = opendir(h->dir);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s", h->dir, e->d_name);
        if (e->d_name[0] != '.' && !bh_streq(e->d_name, CONFIG))
            bh_remove_tree(path);
    }
    if (d)
        closedir(d);
}

void hosts_restart(struct host *h, bool keeps_files)
{
    const uint64_t down = draw_between(DRAW_BOOT, DOWN_MIN, DOWN_MAX);

    say("%s starts again, %s files", h->name, keeps_files ? "with" : "without");
    reach(machine_restarted);
    if (keeps_files)
        reach(files_of_another_boot);
    for (unsigned i = 1; i < n_processes; i++) {
        struct process *p = &processes[i];
        if (p->host != h)
            continue;
        process_kill(p);
        process_start(p, down + draw(DRAW_BOOT, SECOND));
    }
    shared_memory_gone(world.dir, h);
    if (!keeps_files)
        remove_files(h);
    h->boots++;
    h->up_ns = world.now_ns + down;
    h->boot_off_ns = (int64_t)draw(DRAW_BOOT, 60 * SECOND) - (int64_t)world.now_ns;
}

void hosts_start(void)
{
    for (unsigned i = 0; i < n_processes; i++)
        if (!processes[i].alive && processes[i].kind != P_SERVER)
            process_start(&processes[i], draw(DRAW_PLAN, SECOND));
}

void process_over(struct process *p)
{
    if (p->kind == P_WATCHER) {
        p->host->leads = false;
        reach(restart_watcher);
    } else if (p->kind == P_SCHEDULER) {
        p->host->decides = false;
        reach(restart_scheduler);
    } else if (p->kind == P_BINDER) {
        reach(restart_binder);
    } else if (!world.down && !p->killed) {
        fail("the API server ended");
    }
    if (!world.down && p->wanted)
        process_start(p, draw_between(DRAW_RESTART, RESTART_MIN, RESTART_MAX));
}

void server_faults(const char *spec)
{
    struct bh_err err = {""};

    if (bh_sim_set_faults(server, spec, &err) < 0)
        fail("%s", err.msg);
}
