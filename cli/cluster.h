/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/cluster.h - what `berth import`, `sync` and `record` share: a command at work on two
 * clusters, and how objects get into a destination
 *
 * The source, what is taken from it and how it is followed: simulator/follow/follow.h.
 * Threads: one loop; all callbacks come from it.
 */
#ifndef BH_CLI_CLUSTER_H
#define BH_CLI_CLUSTER_H

#include "cli/cli.h"
#include "simulator/follow/follow.h"

/* ---- session.c: a command at work until it is done, or a signal comes --------------------------- */
struct bh_session {
    uv_loop_t loop;
    struct bh_signals *signals;
    uv_timer_t timer; /* data: the command's */
    struct bh_progress progress;
    struct bh_arena arena; /* of what is at hand */
    struct bh_cluster from, to;
    bool stopping;
    /* options, NULL = not given */
    const char *from_spec, *context, *to_spec, *to_context;
};
#define BH_FROM_OPTS(s, what)                                                                      \
    {"from", 0, BH_OPT_STR, &(s)->from_spec, "KUBECONFIG|URL", "the cluster to " what},            \
    {                                                                                              \
        "context", 0, BH_OPT_STR, &(s)->context, "NAME", "context of --from"                       \
    }
#define BH_TO_OPTS(s)                                                                              \
    {"to", 0, BH_OPT_STR, &(s)->to_spec, "KUBECONFIG|URL", "the API server to write to"},          \
    {                                                                                              \
        "to-context", 0, BH_OPT_STR, &(s)->to_context, "NAME", "context of --to"                   \
    }
/* every_ms: of the timer, 0 = it rests; on_timer NULL: it only ends turns of the loop. */
void bh_session_begin(struct bh_session *s, unsigned every_ms, uv_timer_cb on_timer, void *arg);
/* Both ends, as far as they are named, answer. */
int bh_session_connect(struct bh_session *s, const char *user_agent, struct bh_err *err);
void bh_session_end(struct bh_session *s);

/* GET of path from the scheduler whose runtime directory that is; what went before in the loop goes on. */
int bh_scheduler_get(uv_loop_t *loop, const char *dir, const char *path, int *ret_code,
                     struct bh_buf *body, struct bh_err *err);

/* ---- apply.c: objects into a destination --------------------------------------------------------
 * A queue of objects by kind and name. What is put while the same object is on its way follows
 * after it; of several versions only the newest is written. Existing objects are patched to say
 * what the given one says, as far as it is in the table of clean.h; all else of them stays. */
enum bh_applied {
    BH_APPLIED_CREATED,
    BH_APPLIED_UPDATED,
    BH_APPLIED_UNCHANGED,
    BH_APPLIED_DELETED,
    BH_APPLIED_BOUND,     /* a pod: bound as in the source */
    BH_APPLIED_DIFFERENT, /* a pod: it is on another node there; message says which */
    BH_APPLIED_FAILED,
    BH_APPLIED_COUNT
};
struct bh_applier;
struct bh_applier_options {
    struct bh_cluster *to;
    unsigned parallel; /* objects on their way at a time */
    bool follow;       /* pods are bound as in the source, and moved when they differ */
    bool decides;      /* the destination's scheduler allocates claims that are there */
    void (*on_result)(void *arg, const struct bh_clean_kind *k, const char *ns, const char *name,
                      enum bh_applied what, const char *message);
    void *arg;
};
struct bh_applier *bh_applier_new(const struct bh_applier_options *o);
void bh_applier_free(struct bh_applier *ap); /* what is under way is given up */
/* obj: as bh_take_object() gave it. */
void bh_applier_put(struct bh_applier *ap, const struct bh_clean_kind *k,
                    const struct bh_json *obj);
void bh_applier_delete(struct bh_applier *ap, const struct bh_clean_kind *k, const char *ns,
                       const char *name);
size_t bh_applier_backlog(const struct bh_applier *ap);
#endif
