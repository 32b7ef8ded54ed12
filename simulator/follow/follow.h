/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/follow/follow.h - a cluster that others run: reached, and followed kind by kind
 *
 * Whatever is read goes through simulator/replay/clean.h before anything else sees it. Nothing here
 * writes: all requests are GETs.
 * Threads: one loop; all callbacks come from it.
 */
#ifndef BH_SIM_FOLLOW_H
#define BH_SIM_FOLLOW_H

#include "common/api/client.h"
#include "common/base/loop.h"
#include "common/base/map.h"
#include "common/base/opt.h"
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
/* A list, query "?limit=1": -EPERM (401), -EACCES (403), -ENOENT (not served), -ESTALE (expired), -EIO. */
int bh_cluster_list(struct bh_cluster *c, const struct bh_clean_kind *k, const char *query,
                    struct bh_buf *body, struct bh_err *err);

struct bh_take {
    /* options */
    struct bh_opt_list kinds, namespaces, exclude;
    const char *selector, *node_selector, *annotations, *anonymise_key;
    bool anonymise;
    /* For a copy that nobody else changes: all kinds that can be followed, with what controllers
     * would compute in a copy that lives (status), and the marks of what is being deleted. */
    bool mirror;
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
    /* May be NULL. A kind cannot be read, with the reason; text NULL: it can again. */
    void (*on_trouble)(void *arg, const struct bh_clean_kind *k, const char *text);
    void *arg;
    const char *program; /* for lines on stderr about trouble */
};
/* Kinds that may not be read are told on stderr and left out; -EACCES when that is all of them. */
int bh_follow_start(const struct bh_follow_options *o, struct bh_follow **ret, struct bh_err *err);
void bh_follow_free(struct bh_follow *f);
#endif
