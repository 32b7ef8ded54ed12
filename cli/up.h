/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/up.h - what `berth up` and `berth run` keep: the processes they started, and where they live
 *
 * Threads: one libuv loop.
 */
#ifndef BH_UP_H
#define BH_UP_H

#include "cli/cli.h"
#include "common/base/loop.h"
#include <limits.h>

#define BH_UP_CHILDREN 40

struct bh_up;
struct bh_up_child {
    struct bh_up *up;
    char name[32], log[PATH_MAX]; /* log "": our own stderr */
    char **argv;                  /* NULL-terminated */
    pid_t pid;
    uint64_t started_ns;
    unsigned pause_ms;
    bool told_to_stop, ended;
    int status; /* of the last end */
    /* The built-in server without a file: where in argv the next life is told how the last one
     * ended, and that its objects are gone. NULL = nothing is lost with it. */
    char **loss;
    uv_timer_t again;
};
struct bh_up {
    uv_loop_t loop;
    struct bh_signals *signals;
    uv_signal_t sigchld;
    struct bh_up_child child[BH_UP_CHILDREN];
    unsigned n;
    const char *who;  /* "berth up" */
    bool speaks_klog; /* through the log, as the children do, not as sentences */
    char bindir[PATH_MAX], dir[108], kubeconfig[PATH_MAX];
    char config[128];    /* the scheduler's, of the built-in server */
    uint16_t front_port; /* HTTPS */
    int lock;            /* up.lock of the runtime directory, 0 = not ours */
    int guarded;         /* the end of a pipe that children hold open, too; 0 = no guard */
    pid_t guard;         /* removes what is left when we are killed */
    int held[2];         /* sockets that hold the server's and the front's port, 0 = none */
    bool made_dir, own_server, elects, started, stopping;
    bool lost;      /* a child with a loss is back: what it was started with is missing */
    bool signalled; /* a signal came to end it, maybe while bh_up_stop() was at it already */
};

struct bh_up_options {
    const char *kubeconfig;                       /* NULL = the built-in API server */
    const char *config, *runtime, *data, *record; /* config, runtime, data NULL = none */
    const char *gates;                            /* "--feature-gates=...", NULL = defaults */
    const char *plugin_writes;                    /* the binders', NULL = none */
    const char *runtime_config; /* of the built-in server: "--runtime-config=...", NULL = none */
    int64_t binders, port;
    int64_t front_port; /* -1: the usual one, or a free one */
    bool annotate, leader_elect, no_kubelet, no_front;
    const char *node_metrics; /* "kubernetes", "prometheus=URL", "load-watcher=URL"; NULL = none */
    bool observe; /* kubeconfig's cluster is only read: own_server is a copy of it, nobody binds */
};

/* A loop with signals and ends of children. on_hup NULL: SIGHUP stops, too. */
struct bh_up *bh_up_open(const char *who, void (*on_hup)(void *up));
void bh_up_close(struct bh_up *u); /* all have ended; frees */
/* Where our own program lies, and these next to it. */
int bh_up_find_programs(struct bh_up *u, const char *const *programs, struct bh_err *err);
bool bh_up_has_program(const struct bh_up *u, const char *program);
bool bh_up_pump(struct bh_up *u); /* one look at the loop; false: we are to stop */
/* Waits a moment, in which a child that cannot run at all ends; that is an error. */
int bh_up_settle(struct bh_up *u, struct bh_err *err);
/* args, more: NULL-terminated lists without the program; more may be NULL. */
void bh_up_add_child(struct bh_up *u, const char *program, const char *name,
                     const char *const *args, char *const *more);
int bh_up_spawn(struct bh_up_child *c); /* -errno */
/* While all are being started none may end: -ECHILD, and the last words of its log are shown. */
int bh_up_all_alive(struct bh_up *u, struct bh_err *err);
/* The last lines of a log, indented: the file goes away with the runtime directory. */
void bh_up_last_words(const struct bh_up_child *c);
void bh_up_tell_to_stop(struct bh_up_child *c);
void bh_up_stop_child(struct bh_up *u, struct bh_up_child *c); /* waits for its end */

/* ---- up_cluster.c: the processes of a whole Berth -------------------------------------------- */
/* Makes the runtime directory and describes the children; own_server and, for another server,
 * kubeconfig are set already, the programs were found. */
int bh_up_prepare(struct bh_up *u, const struct bh_up_options *o, struct bh_err *err);
/* Returns when the built-in server listens; for others at once. */
int bh_up_start_child(struct bh_up *u, struct bh_up_child *c, struct bh_err *err);
/* All of them, in reverse order, and what was made in the file system. */
void bh_up_stop(struct bh_up *u);
#endif
