/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/main.c - berth-scheduler: parse, run, report
 */
#include "common/base/log.h"
#include "common/base/opt.h"
#include "scheduler/daemon/daemon.h"
#include <errno.h>

static const struct bh_opt_usage usage = {
    .program = "berth-scheduler",
    .synopsis = "[flags]",
    .about =
        "Takes scheduling decisions from the snapshot that berth-watcher keeps and hands them to "
        "berth-binder processes. Needs no API credentials.",
    .examples = "  berth-scheduler --config /etc/berth/scheduler.yaml\n"
                "  berth-scheduler --runtime-dir /tmp/berth --verify -v 2\n",
    .exits = "  0  stopped by a signal\n  1  could not start, see the message\n  2  wrong usage\n",
};

static int write_config(struct bh_sched_config *cfg, const char *path)
{
    struct bh_buf text = {0};

    bh_sched_config_write(cfg, BH_SCHED_CONFIG_YAML, true, &text);
    int rc = bh_write_file(path, text.p, text.n, 0600);
    if (rc < 0)
        bh_log_error("command failed", bh_kv_s("err", strerror(-rc)), bh_kv_s("file", path));
    else
        bh_log_info("Wrote configuration", bh_kv_s("file", path));
    bh_buf_fini(&text);
    bh_sched_config_free(cfg);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}

int main(int argc, char **argv)
{
    const char *config = NULL, *write_to = NULL, *runtime = NULL, *tie = "random", *format = "text";
    const char *metrics = "127.0.0.1:10259";
    int64_t verbosity = 1, seed = 0;
    bool verify = false;
    const struct bh_opt table[] = {
        {"config", 0, BH_OPT_STR, &config, "FILE",
         "KubeSchedulerConfiguration; without it the defaults"},
        {"write-config-to", 0, BH_OPT_STR, &write_to, "FILE",
         "write the configuration with all defaults to this file and exit"},
        {"runtime-dir", 0, BH_OPT_STR, &runtime, "DIR",
         "sockets and snapshot of this instance (default $BERTH_RUNTIME_DIR or /run/berth)"},
        {"metrics-address", 0, BH_OPT_STR, &metrics, "ADDR",
         "address of /metrics and the health paths; 0 turns them off"},
        {"tie-break", 0, BH_OPT_STR, &tie, "random|first",
         "among nodes of equal score: seeded choice, or the smallest name"},
        {"seed", 0, BH_OPT_INT, &seed, "N", "seed of the random choice; 0 draws one"},
        {"verify", 0, BH_OPT_BOOL, &verify, NULL,
         "take every decision on the reference path too and abort on a difference"},
        {"logging-format", 0, BH_OPT_STR, &format, "text|json", "format of log lines"},
        {"v", 'v', BH_OPT_INT, &verbosity, "N", "verbosity of the log"},
        {0},
    };
    struct bh_opt_list rest = {0};
    struct bh_sched_config *cfg = NULL;
    struct bh_sched_daemon_options o = {0};
    struct bh_err err = {0};
    char dir[108];
    int rc = bh_opt_parse(table, &usage, argc, argv, &rest, &err);

    if (rc > 0)
        return BH_EXIT_OK;
    if (rc == 0 && rest.n)
        rc = bh_err_set(&err, -EINVAL, "unexpected argument \"%s\"", rest.v[0]);
    if (rc == 0 && !bh_streq(tie, "random") && !bh_streq(tie, "first"))
        rc =
            bh_err_set(&err, -EINVAL, "invalid value \"%s\" for --tie-break: random or first", tie);
    free(rest.v);
    if (rc < 0) {
        fprintf(stderr, "berth-scheduler: %s\nSee 'berth-scheduler --help'.\n", err.msg);
        return BH_EXIT_USAGE;
    }
    bh_log_init("berth-scheduler", (int)verbosity,
                bh_streq(format, "json") ? BH_LOG_JSON : BH_LOG_TEXT);
    if (bh_sched_config_load_logged(config, &cfg) < 0)
        return BH_EXIT_FAIL;
    if (write_to)
        return write_config(cfg, write_to);
    rc = bh_runtime_dir(runtime, dir, &err);
    if (rc == 0) {
        o = (struct bh_sched_daemon_options){
            .runtime_dir = dir,
            .metrics_address = metrics,
            .config = cfg,
            .config_path = config,
            .tie_break = bh_streq(tie, "first") ? BH_TIE_FIRST : BH_TIE_RANDOM,
            .verify = verify,
            .seed = seed ? (uint64_t)seed : bh_rand_entropy(),
        };
        rc = bh_sched_daemon_run(&o, &err);
    }
    if (rc < 0)
        bh_log_error("command failed", bh_kv_s("err", err.msg));
    bh_sched_config_free(cfg);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
