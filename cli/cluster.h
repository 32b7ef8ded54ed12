/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/cluster.h - what `berth import`, `sync` and `record` share: a source, what is taken from it,
 * how it is followed, and how objects get into a destination
 *
 * Whatever is read goes through simulator/replay/clean.h before anything else sees it.
 * Threads: one loop; all callbacks come from it.
 */
#ifndef BH_CLI_CLUSTER_H
#define BH_CLI_CLUSTER_H

#include "cli/cli.h"
#include "common/base/loop.h"
#include "common/base/map.h"
#include "common/k8s/kinds.h"
#include "common/k8s/selector.h"
#include "simulator/replay/clean.h"

/* ---- cluster.c: an API server, and what is wanted of it -------------------------------------- */
struct bh_cluster {
    uv_loop_t *loop;
    struct bh_api_config *cfg;
    struct bh_api_client *client;
};
/* spec: a kubeconfig, http://... or https://..., or NULL = as kubectl finds it. */
int bh_cluster_open(struct bh_cluster *c, uv_loop_t *loop, const char *spec, const char *context,
                    const char *user_agent, struct bh_err *err);
void bh_cluster_close(struct bh_cluster *c);
struct bh_sim_type;
/* "/api/v1/namespaces/NS/pods/NAME/SUB"; ns, name, sub NULL or "" = left out. */
void bh_cluster_path(struct bh_buf *out, const struct bh_sim_type *t, const char *ns,
                     const char *name, const char *sub);
/* Answers at all? err says what to look at. */
int bh_cluster_reach(struct bh_cluster *c, const char *whose, struct bh_err *err);
/* A list, query "?limit=1": -EACCES (401, 403), -ENOENT (not served), -ESTALE (expired), -EIO. */
int bh_cluster_list(struct bh_cluster *c, const struct bh_clean_kind *k, const char *query,
                    struct bh_buf *body, struct bh_err *err);

struct bh_take {
    /* options */
    struct bh_opt_list kinds, namespaces, exclude;
    const char *selector, *node_selector, *annotations, *anonymise_key;
    bool anonymise;
    /* from them */
    struct bh_selector *labels, *node_labels;
    struct bh_anon anon;
};
#define BH_TAKE_OPTS(t)                                                                             \
    {"kinds",     0,          BH_OPT_STRLIST,                                                       \
     &(t)->kinds, "KIND,...", "only these kinds (default: all that scheduling looks at)"},          \
        {"namespaces", 'n', BH_OPT_STRLIST, &(t)->namespaces, "NS,...", "only these namespaces"},   \
        {"exclude-namespaces", 0, BH_OPT_STRLIST, &(t)->exclude, "NS,...", "not these"},            \
        {"selector",     'l',      BH_OPT_STR,                                                      \
         &(t)->selector, "LABELS", "only objects of namespaces with these labels"},                 \
        {"node-selector",     0,        BH_OPT_STR,                                                 \
         &(t)->node_selector, "LABELS", "only nodes with these labels"},                            \
        {"keep-annotations", 0,                                                                     \
         BH_OPT_STR,         &(t)->annotations,                                                     \
         "PREFIX,...",       "annotations to take along, besides those of storage and scheduling"}, \
        {"anonymise",     0,    BH_OPT_BOOL,                                                        \
         &(t)->anonymise, NULL, "put hashes in the place of names, label values and images"},       \
    {                                                                                               \
        "anonymise-key", 0, BH_OPT_STR, &(t)->anonymise_key, "TEXT",                                \
            "the same key gives the same hashes (default: a random one)"                            \
    }
int bh_take_init(struct bh_take *t, struct bh_err *err); /* after the options were read */
void bh_take_fini(struct bh_take *t);
/* once: kinds that are imported but not followed count, too. */
bool bh_take_kind(const struct bh_take *t, const struct bh_clean_kind *k, bool once);
/* The cleaned object, NULL: not taken, *ret_why tells why. Finished pods come with a why and are
 * returned. */
struct bh_json *bh_take_object(const struct bh_take *t, struct bh_arena *a,
                               const struct bh_clean_kind *k, const struct bh_json *obj,
                               const char **ret_why);

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

/* ---- follow.c: a source's changes, cleaned, without what does not matter --------------------- */
struct bh_follow;
struct bh_follow_options {
    struct bh_cluster *from;
    const struct bh_take *take;
    /* initial: it was there when the following began. */
    void (*on_change)(void *arg, const struct bh_clean_kind *k, bool added, bool initial,
                      const struct bh_json *obj);
    void (*on_gone)(void *arg, const struct bh_clean_kind *k, const char *ns, const char *name);
    void (*on_all_synced)(void *arg);
    void *arg;
    const char *program; /* for lines on stderr about trouble */
};
/* Kinds that may not be read are told on stderr and left out; -EACCES when that is all of them. */
int bh_follow_start(const struct bh_follow_options *o, struct bh_follow **ret, struct bh_err *err);
void bh_follow_free(struct bh_follow *f);
#endif
