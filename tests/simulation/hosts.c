/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/hosts.c - the processes: what each runs, and that it is started again
 */
#include "common/api/kubeconfig.h"
#include "common/base/loop.h"
#include "common/http/probes.h"
#include "scheduler/config/config.h"
#include "scheduler/daemon/daemon.h"
#include "simulator/server/server.h"
#include "simulator/server/sim.h"
#include "tests/simulation/simulation.h"
#include "watcher/watcher.h"

#include <stdio.h>
#include <sys/stat.h>

#define RESTART_MIN (20 * MS)
#define RESTART_MAX (2500 * MS)

struct process processes[1 + MAX_HOSTS * (2 + MAX_BINDERS)];
unsigned n_processes;
struct bh_sim *server;
struct bh_api_config api_config[MAX_HOSTS];
static struct bh_sched_config *sched_config;
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
        .history_events = (int64_t)draw_between(DRAW_PLAN, 40, 400),
        .bookmark_interval_ns = (int64_t)SECOND,
        .kubelet_delay_ns = (int64_t)(100 * MS),
        .first_revision = 1,
        .seed = world.seed | 1};

    (void)p;
    snprintf(history, sizeof(history), "%s/history.jsonl", world.dir);
    uv_loop_init(&loop);
    if (bh_sim_new(&loop, &o, &server, &err) < 0) {
        fail("API server: %s", err.msg);
        return;
    }
    errands = source_new(&loop, on_errands, NULL);
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

static void scheduler_main(struct process *p)
{
    struct bh_err err = {""};
    const struct bh_sched_daemon_options o = {.runtime_dir = p->host->dir,
                                              .metrics_address = "0",
                                              .config = sched_config,
                                              .tie_break = BH_TIE_RANDOM,
                                              .verify = world.seed % 8 == 0,
                                              .seed = 1 + draw(DRAW_ENTROPY, UINT32_MAX)};

    if (bh_sched_daemon_run(&o, &err) < 0)
        say("cannot run: %s", err.msg);
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

void hosts_init(void)
{
    static const struct {
        int64_t lease, renew, retry;
    } leases[] = {{15000, 10000, 2000}, {6000, 4000, 1000}, {4000, 2500, 500}};
    const size_t l = draw(DRAW_PLAN, BH_ARRAY_LEN(leases));

    leader.lease_duration_ns = leases[l].lease * (int64_t)MS;
    leader.renew_deadline_ns = leases[l].renew * (int64_t)MS;
    leader.retry_period_ns = leases[l].retry * (int64_t)MS;
    if (bh_sched_config_load_logged(NULL, &sched_config) < 0)
        fail("no configuration");
    add(P_SERVER, NULL, 0);
    for (unsigned i = 0; i < world.n_hosts; i++) {
        struct host *h = &world.host[i];
        h->n = (int)i;
        snprintf(h->name, sizeof(h->name), "h%u", i);
        snprintf(h->dir, sizeof(h->dir), "%s/%s", world.dir, h->name);
        if (mkdir(h->dir, 0700) < 0)
            fail("cannot create %s", h->dir);
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

void hosts_start(void)
{
    for (unsigned i = 0; i < n_processes; i++)
        if (!processes[i].alive && processes[i].kind != P_SERVER)
            process_start(&processes[i], draw(DRAW_PLAN, SECOND));
}

void process_over(struct process *p)
{
    if (p->kind == P_WATCHER)
        reach(restart_watcher);
    else if (p->kind == P_SCHEDULER)
        reach(restart_scheduler);
    else if (p->kind == P_BINDER)
        reach(restart_binder);
    else if (!world.down)
        fail("the API server ended");
    if (!world.down && p->wanted)
        process_start(p, draw_between(DRAW_PLAN, RESTART_MIN, RESTART_MAX));
}

void server_faults(const char *spec)
{
    struct bh_err err = {""};

    if (bh_sim_set_faults(server, spec, &err) < 0)
        fail("%s", err.msg);
}
