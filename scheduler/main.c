/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/main.c - berth-scheduler: parse, run, report
 */
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/wasm/store.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/native/native.h"
#include "scheduler/wasm/guest.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define START_AGAIN (-2)                  /* no exit status */
#define GUESTS_NS   UINT64_C(30000000000) /* a start waits so long for what berth-watcher downloads */

static const struct bh_opt_usage usage = {
    .program = "berth-scheduler",
    .synopsis = "[flags]",
    .about =
        "Takes scheduling decisions from the snapshot that berth-watcher keeps and hands them to "
        "berth-binder processes. Needs no API credentials.\n"
        "Takes kube-scheduler's flags as they are; --config, --write-config-to, --feature-gates "
        "and "
        "--pod-max-in-unschedulable-pods-duration are what it uses.",
    .examples = "  berth-scheduler --config /etc/berth/scheduler.yaml\n"
                "  berth-scheduler --runtime-dir /tmp/berth --verify -v 2\n",
    .exits = BH_KUBE_FLAGS_EXITS,
};

struct options {
    struct bh_kube_flags flags;
    const char *runtime, *tie, *fixes, *metrics, *users;
    const char *binder_listen, *binder_keys, *key_file;
    int64_t seed;
    bool verify, observe;
    const char *record, *decisions_file;
    enum bh_record_mode record_mode;
    int64_t decisions_max_bytes, decisions_max_age_ns;
    struct bh_native_options plugins;
    const char *plugin_timeout;
};

/* At V(2), as upstream: what is in force, and which plugins run where. */
static void tell_configuration(const struct bh_sched_config *cfg)
{
    struct bh_buf b = {0};

    if (!bh_log_v_on(2, __FILE__))
        return;
    bh_sched_config_write(cfg, BH_SCHED_CONFIG_YAML, false, &b);
    bh_log_block(2, __FILE__, __LINE__, "Using component config", "config", bh_buf_str(&b));
    for (uint32_t i = 0; i < cfg->n_profiles; i++) {
        bh_buf_reset(&b);
        bh_buf_addc(&b, '{');
        for (enum bh_point at = 0; at < BH_POINT_COUNT; at++) {
            bh_buf_addf(&b, "%s\"%s\":[", b.n > 1 ? "," : "", bh_sched_point_name(at));
            for (uint32_t k = 0; k < cfg->profiles[i].n_points[at]; k++)
                bh_buf_addf(&b, "%s\"%s\"", k ? "," : "", cfg->profiles[i].points[at][k].name);
            bh_buf_addc(&b, ']');
        }
        bh_buf_addc(&b, '}');
        bh_log_v(2, "the scheduler starts to work with those plugins",
                 bh_kv_s("profile", cfg->profiles[i].scheduler_name),
                 bh_kv_s("Plugins", bh_buf_str(&b)));
    }
    bh_buf_fini(&b);
}

/* text: the file's, before flags */
static int run(const struct options *o, const struct bh_sched_config *cfg, const char *text)
{
    struct bh_err err = {0};
    BH_CLEANUP(bh_freep) char *file = NULL;
    struct bh_bus_users users;
    char dir[108];
    int rc = bh_runtime_dir(o->runtime, dir, &err);

    if (rc == 0)
        rc = bh_bus_users_load(o->users, &users, &err);
    if (rc == 0) {
        /* A unit's own folder outlives a reboot, the runtime directory does not. */
        const char *state = getenv("STATE_DIRECTORY");
        file = *o->decisions_file       ? bh_strdup(o->decisions_file)
               : state && *state == '/' ? bh_asprintf("%s/" BH_DECISIONS_FILE, state)
                                        : bh_asprintf("%s/" BH_DECISIONS_RUNTIME, dir);
        bh_log_info("Starting Kubernetes Scheduler", bh_kv_s("version", BH_KUBERNETES_VERSION),
                    bh_kv_s("berth", BH_VERSION));
        tell_configuration(cfg);
        bh_sched_gates_warn(&o->flags.gates);
        const struct bh_sched_daemon_options so = {
            .runtime_dir = dir,
            .binder_listen = o->binder_listen,
            .binder_keys = o->binder_keys,
            .key_file = o->key_file,
            .metrics_address = o->metrics,
            .users = &users,
            .config = cfg,
            .config_path = *o->flags.config ? o->flags.config : NULL,
            .config_text = text,
            .tie_break = bh_streq(o->tie, "first") ? BH_TIE_FIRST : BH_TIE_RANDOM,
            .group_stays = !bh_streq(o->fixes, "none"),
            .verify = o->verify,
            .observe = o->observe,
            .gates = &o->flags.gates,
            .max_in_unschedulable_ns = o->flags.pod_max_in_unschedulable_ns,
            .seed = o->seed ? (uint64_t)o->seed : bh_rand_entropy(),
            .record = {.mode = o->record_mode,
                       .path = file,
                       .max_bytes = o->decisions_max_bytes,
                       .max_age_ns = o->decisions_max_age_ns},
        };
        rc = bh_sched_daemon_run(&so, &err);
    }
    if (rc < 0)
        bh_log_error("command failed", bh_kv_s("err", err.msg));
    return rc < 0 ? BH_EXIT_FAIL : rc == BH_SCHED_RELOAD ? START_AGAIN : BH_EXIT_OK;
}

static void tell_plugin(const char *line)
{
    bh_log_warn("A plugin's file is not used", bh_kv_s("err", line));
}

static int work(const struct options *o)
{
    const char *path = *o->flags.config ? o->flags.config : NULL, *to = o->flags.write_config_to;
    struct bh_sched_config *cfg = NULL;
    struct bh_buf text = {0};
    struct bh_err err = {0};
    char dir[108];
    int code;

    bh_native_start(&o->plugins, tell_plugin);
    bh_guest_start();
    if (!*to) {
        int rc = bh_runtime_dir(o->runtime, dir, &err);
        rc = rc < 0 ? rc : bh_native_guard(dir, o->plugin_timeout, &err);
        if (rc < 0) {
            bh_log_error("command failed", bh_kv_s("err", err.msg));
            return BH_EXIT_FAIL;
        }
    }
    BH_CLEANUP(bh_freep) char *store = *to ? NULL : bh_asprintf("%s/" BH_WASM_STORE, dir);
    struct bh_guest_sources guests = {.store = store, .wait_ns = GUESTS_NS};
    bh_guest_set_sources(&guests);
    if (bh_sched_config_load_logged(path, &cfg) < 0)
        return BH_EXIT_FAIL;
    guests.wait_ns = 0; /* a configuration that is read again does not stop decisions */
    guests.may_change = true;
    bh_guest_set_sources(&guests);
    bh_sched_config_write(cfg, BH_SCHED_CONFIG_YAML, true, &text);
    bh_sched_config_apply_flags(cfg, &o->flags);
    if (*to) {
        bh_buf_reset(&text);
        bh_sched_config_write(cfg, BH_SCHED_CONFIG_YAML, true, &text);
        int rc = bh_write_file(to, text.p, text.n, 0600);
        if (rc < 0)
            bh_log_error("command failed", bh_kv_s("err", strerror(-rc)), bh_kv_s("file", to));
        else
            bh_log_info("Wrote configuration", bh_kv_s("file", to));
        code = rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
    } else {
        code = run(o, cfg, bh_buf_str(&text));
    }
    bh_buf_fini(&text);
    bh_sched_config_free(cfg);
    return code;
}

/* Keeps the process and its arguments; everything else is read and made anew, as after a kill. */
static int start_again(char **argv)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    bh_signals_early(); /* no signal between two programs ends us */
    path[BH_MAX(n, (ssize_t)0)] = '\0';
    execv(path, argv); /* by its name, which process lists show */
    execv("/proc/self/exe", argv);
    bh_log_error("command failed", bh_kv_s("err", strerror(errno)));
    return BH_EXIT_FAIL;
}

int main(int argc, char **argv)
{
    char **given = bh_memdup(argv, ((size_t)argc + 1) * sizeof(*argv)); /* parsing sorts them */
    struct options o = {.tie = "random",
                        .fixes = "none",
                        .metrics = "127.0.0.1:10261",
                        .record = "off",
                        .decisions_file = "",
                        .decisions_max_bytes = BH_DECISIONS_MAX_BYTES};
    const struct bh_opt own[] = {
        {"runtime-dir", 0, BH_OPT_STR, &o.runtime, "DIR",
         "sockets and snapshot of this instance (default $BERTH_RUNTIME_DIR or /run/berth)"},
        {"metrics-address", 0, BH_OPT_STR, &o.metrics, "ADDR",
         "address of /metrics and the health paths; 0 turns them off"},
        {"tie-break", 0, BH_OPT_CHOICE, &o.tie, "random|first",
         "among nodes of equal score: seeded choice, or the smallest name"},
        {"upstream-fixes", 0, BH_OPT_CHOICE, &o.fixes, "none|group-preemption",
         "as later versions of upstream: members stay where they fit while victims are chosen for "
         "their group"},
        {"seed", 0, BH_OPT_INT, &o.seed, "N", "seed of the random choice; 0 draws one"},
        {"verify", 0, BH_OPT_BOOL, &o.verify, NULL,
         "take every decision on the reference path too and abort on a difference"},
        {"observe", 0, BH_OPT_BOOL, &o.observe, NULL,
         "decide nothing: keep the queue and answer questions beside another scheduler"},
        {"binder-listen", 0, BH_OPT_STR, &o.binder_listen, "tcp://HOST:PORT",
         "take binders of other hosts there; needs --key-file and --binder-keys"},
        {"key-file", 0, BH_OPT_STR, &o.key_file, "FILE", "our key, of 'berth keygen'"},
        {"binder-keys", 0, BH_OPT_STR, &o.binder_keys, "DIR",
         "NAME.pub of each binder that may connect; files may come and go at any time"},
        BH_BUS_USERS_OPT(&o.users),
        BH_RECORD_OPTIONS(o.record, o.decisions_file, o.decisions_max_bytes,
                          o.decisions_max_age_ns),
        BH_NATIVE_OPTIONS(o.plugins),
        {"plugin-timeout", 0, BH_OPT_STR, &o.plugin_timeout, "DURATION",
         "a plugin's callback that does not return within this ends the process (default "
         "$BERTH_PLUGIN_TIMEOUT or 10s)"},
        {0},
    };
    int code = bh_kube_flags_start(&o.flags, own, &usage, argc, argv);

    if (code >= 0) {
        free(given);
        return code;
    }
    const char *timeout = getenv("BERTH_PLUGIN_TIMEOUT");
    if (!o.plugin_timeout)
        o.plugin_timeout = timeout && *timeout ? timeout : "10s";
    o.record_mode = (enum bh_record_mode)bh_word_at("off summary full auto", o.record);
    code = work(&o);
    bh_kube_flags_free(&o.flags);
    if (code == START_AGAIN)
        code = start_again(given);
    free(given);
    return code;
}
