/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/run.c - `berth run`: kube-scheduler's command line for all of Berth's processes
 *
 * A static pod or a plain unit has one command and one stream of log lines; this is it. Watcher,
 * scheduler, binders and berth-front run below it with the same flags, write to its stderr, are
 * started again when they die, and stop in an order that lets the lease go at once.
 * Differences from kube-scheduler: SIGTERM ends with status 0 without leader election, too; a lost
 * lease ends nothing, Berth stands by; SIGHUP reads credentials again.
 */
#include "cli/up.h"
#include "common/api/from_flags.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "scheduler/config/config.h"
#include "scheduler/decisions/recorder.h"
#include "scheduler/native/native.h"
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define WHO         "berth run"
#define MAX_BINDERS 32

struct run {
    struct bh_kube_flags flags;
    const char *runtime;
    int64_t binders;
    const char *record, *decisions_file; /* the scheduler's own */
    const char *plugin_writes;           /* the binders', NULL = none */
    int64_t decisions_max_bytes, decisions_max_age_ns;
    struct bh_native_options plugins;
    char **words; /* for each process: the flags that were given, NULL-terminated */
    size_t n_words;
};

static void add_word(void *arg, const char *word)
{
    struct run *r = arg;

    r->words = bh_realloc(r->words, (r->n_words + 2) * sizeof(char *));
    r->words[r->n_words++] = bh_strdup(word);
    r->words[r->n_words] = NULL;
}

/* Metrics and health are asked for at berth-front; without it each process has its usual port. */
static void describe_children(struct bh_up *u, const struct run *r)
{
    bool front = r->flags.serving.secure_port != 0 && bh_up_has_program(u, "berth-front");
    const char *quiet = front ? "--metrics-address=0" : NULL;
    char dir[sizeof(u->dir) + 16], name[32], instance[32];

    snprintf(dir, sizeof(dir), "--runtime-dir=%s", u->dir);
    if (front)
        bh_up_add_child(u, "berth-front", "front", (const char *const[]){dir, NULL}, r->words);
    else if (r->flags.serving.secure_port != 0)
        bh_log_warn("Not serving HTTPS: berth-front is not next to this program",
                    bh_kv_s("folder", u->bindir));
    bh_up_add_child(u, "berth-watcher", "watcher", (const char *const[]){dir, quiet, NULL},
                    r->words);
    BH_CLEANUP(bh_freep) char *mode = bh_asprintf("--record-decisions=%s", r->record);
    BH_CLEANUP(bh_freep) char *file = bh_asprintf("--decisions-file=%s", r->decisions_file);
    BH_CLEANUP(bh_freep)
    char *bytes = bh_asprintf("--decisions-max-bytes=%lld", (long long)r->decisions_max_bytes);
    BH_CLEANUP(bh_freep)
    char *age = bh_asprintf("--decisions-max-age=%lldns", (long long)r->decisions_max_age_ns);
    if (bh_streq(r->record, "off"))
        bh_up_add_child(u, "berth-scheduler", "scheduler", (const char *const[]){dir, quiet, NULL},
                        r->words);
    else
        bh_up_add_child(u, "berth-scheduler", "scheduler",
                        (const char *const[]){dir, mode, file, bytes, age, quiet, NULL}, r->words);
    BH_CLEANUP(bh_freep)
    char *writes = bh_asprintf("--plugin-writes=%s", r->plugin_writes ? r->plugin_writes : "");
    for (int64_t i = 1; i <= r->binders; i++) {
        snprintf(name, sizeof(name), "binder-%d", (int)i);
        snprintf(instance, sizeof(instance), "--instance=%d", (int)i);
        bh_up_add_child(u, "berth-binder", name,
                        (const char *const[]){dir, instance, r->plugin_writes ? writes : quiet,
                                              r->plugin_writes ? quiet : NULL, NULL},
                        r->words);
    }
}

/* What can be known to be wrong before anything runs: one message then, not one a process. */
static int check(struct bh_up *u, struct run *r, struct bh_err *err)
{
    static const char *const programs[] = {"berth-watcher", "berth-scheduler", "berth-binder",
                                           NULL};
    const char *path = *r->flags.config ? r->flags.config : NULL;
    const struct bh_api_own_flags own = {NULL, NULL};
    struct bh_sched_config *c = NULL;
    struct bh_api_setup setup = {0};
    int rc = bh_up_find_programs(u, programs, err);

    if (rc < 0)
        return rc;
    if (bh_sched_config_load_logged(path, &c) < 0)
        return -ECANCELED; /* said already */
    bh_sched_config_free(c);
    bh_native_end_processes();
    rc = bh_api_setup_load(&setup, &r->flags, &own, NULL, err);
    if (rc == 0)
        rc = bh_leader_config_check(&setup.file.leader, err);
    bh_api_setup_fini(&setup);
    return rc < 0 ? rc : bh_runtime_dir(r->runtime, u->dir, err);
}

/* Credentials are read again, as by a unit's reload. */
static void on_hup(void *up)
{
    struct bh_up *u = up;

    bh_log_info("Passing SIGHUP on");
    for (unsigned i = 0; i < u->n; i++)
        if (u->child[i].pid)
            kill(u->child[i].pid, SIGHUP);
}

static int serve(struct bh_up *u, struct bh_err *err)
{
    int rc = 0;

    for (unsigned i = 0; i < u->n && rc == 0 && !u->stopping; i++) {
        rc = bh_up_spawn(&u->child[i]);
        if (rc < 0)
            bh_err_set(err, rc, "could not start %s: %s", u->child[i].name, strerror(-rc));
    }
    if (rc == 0)
        rc = bh_up_settle(u, err);
    if (rc < 0)
        return rc;
    u->started = true;
    if (!u->stopping) {
        bh_log_info("Started", bh_kv_u("processes", u->n), bh_kv_s("runtime_dir", u->dir));
        bh_notify("READY=1");
    }
    while (!u->stopping)
        uv_run(&u->loop, UV_RUN_DEFAULT);
    return 0;
}

static int work(struct run *r)
{
    struct bh_up *u = bh_up_open(WHO, on_hup);
    struct bh_err err = {0};
    int code = BH_EXIT_OK, rc;

    u->speaks_klog = true;
    rc = check(u, r, &err);
    if (rc == 0 && *r->flags.write_config_to) {
        /* --write-config-to: berth-scheduler does that, and nothing else runs. */
        char **argv = bh_calloc(r->n_words + 2, sizeof(char *));
        argv[0] = bh_asprintf("%s/berth-scheduler", u->bindir);
        for (size_t i = 0; i < r->n_words; i++)
            argv[i + 1] = r->words[i];
        execv(argv[0], argv);
        bh_log_error("command failed", bh_kv_s("err", strerror(errno)), bh_kv_s("file", argv[0]));
        free(argv[0]);
        free(argv);
        code = BH_EXIT_FAIL;
    } else if (rc == 0) {
        describe_children(u, r);
        rc = serve(u, &err);
    }
    if (rc < 0 && rc != -ECANCELED)
        bh_log_error("command failed", bh_kv_s("err", err.msg));
    /* The scheduler first: it calls back what its binders may still write, and tells the
     * watcher, which then gives the lease up at once. Health and metrics are served until the
     * end. */
    static const char *const order[] = {"scheduler", "watcher", "binder-", "front"};
    if (u->started) {
        bh_log_info("Requested to terminate, exiting");
        bh_notify("STOPPING=1");
    }
    u->stopping = true;
    for (size_t k = 0; k < BH_ARRAY_LEN(order); k++) {
        size_t n = strlen(order[k]);
        for (unsigned i = 0; i < u->n; i++) /* all of a name at once: each may take a second */
            if (strncmp(u->child[i].name, order[k], n) == 0)
                bh_up_tell_to_stop(&u->child[i]);
        for (unsigned i = 0; i < u->n; i++)
            if (strncmp(u->child[i].name, order[k], n) == 0)
                bh_up_stop_child(u, &u->child[i]);
    }
    bh_up_close(u);
    return rc < 0 ? BH_EXIT_FAIL : code;
}

int bh_cmd_run(int argc, char **argv)
{
    struct run r = {.binders = 2,
                    .record = "off",
                    .decisions_file = "",
                    .decisions_max_bytes = BH_DECISIONS_MAX_BYTES};
    struct bh_err err;
    const struct bh_opt own[] = {
        {"binders", 0, BH_OPT_INT, &r.binders, "N", "number of binders (1 to 32)"},
        {"plugin-writes", 0, BH_OPT_STR, &r.plugin_writes, "LIST",
         "what scheduler plugins may have patched, see berth-binder"},
        {"runtime-dir", 0, BH_OPT_STR, &r.runtime, "DIR",
         "sockets of this instance (default: $BERTH_RUNTIME_DIR, /run/berth)"},
        BH_RECORD_OPTIONS(r.record, r.decisions_file, r.decisions_max_bytes,
                          r.decisions_max_age_ns),
        BH_NATIVE_OPTIONS(r.plugins),
        {0},
    };
    int code = bh_kube_flags_start(&r.flags, own, bh_cli_help(WHO), argc, argv);

    if (code >= 0)
        return code;
    if (r.binders < 1 || r.binders > MAX_BINDERS) {
        bh_err_set(&err, -EINVAL, "invalid value %lld for --binders: 1 to %d", (long long)r.binders,
                   MAX_BINDERS);
        code = bh_cli_usage(WHO, -EINVAL, &err);
    } else {
        bh_native_start(&r.plugins, NULL); /* the processes find them by our environment */
        bh_kube_flags_forward(&r.flags, add_word, &r);
        code = work(&r);
    }
    for (size_t i = 0; i < r.n_words; i++)
        free(r.words[i]);
    free(r.words);
    bh_kube_flags_free(&r.flags);
    return code;
}
