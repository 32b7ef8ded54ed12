/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/up.h - what `berth up` keeps: the processes it started, and where they live
 *
 * Threads: one libuv loop.
 */
#ifndef BH_UP_H
#define BH_UP_H

#include "cli/cli.h"
#include "common/base/loop.h"
#include <limits.h>

#define BH_UP_CHILDREN 40
#define BH_UP_ARGS     24

struct bh_up;
struct bh_up_child {
    struct bh_up *up;
    char name[32], log[PATH_MAX];
    char *argv[BH_UP_ARGS];
    pid_t pid;
    uint64_t started_ns;
    unsigned pause_ms;
    bool told_to_stop, ended;
    int status; /* of the last end */
    uv_timer_t again;
};
struct bh_up {
    uv_loop_t loop;
    struct bh_signals *signals;
    uv_signal_t sigchld;
    struct bh_up_child child[BH_UP_CHILDREN];
    unsigned n;
    char bindir[PATH_MAX], dir[108], kubeconfig[PATH_MAX];
    bool made_dir, own_server, elects, started, stopping;
};

/* args: NULL-terminated list without the program. */
struct bh_up_child *bh_up_add_child(struct bh_up *u, const char *program, const char *name,
                                    const char *const *args);
int bh_up_spawn(struct bh_up_child *c);            /* -errno */
void bh_up_on_sigchld(uv_signal_t *s, int signum); /* s->data: struct bh_up */
/* While everything is being started nobody may end: -ECHILD, and the last words are shown. */
int bh_up_all_alive(struct bh_up *u, struct bh_err *err);
/* The last lines of a log, indented: the file goes away with the runtime directory. */
void bh_up_last_words(const struct bh_up_child *c);
void bh_up_tell_to_stop(struct bh_up_child *c);
void bh_up_stop_child(struct bh_up *u, struct bh_up_child *c); /* waits for its end */
#endif
