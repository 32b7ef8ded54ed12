/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/clean.h - what may leave a real cluster: the members scheduling looks at
 *
 * One table says, kind by kind, which members are kept; everything else is dropped, whatever it is.
 * So what is not foreseen (a new field, a token in an annotation) does not leave. Kinds that are
 * not in the table are never read: secrets, config maps, service accounts, events, custom kinds.
 * docs/replay.md tells users what that means. `berth import`, `sync` and `record` send every object
 * through here, and replay does so with record files of others.
 *
 * Anonymising gives names, label values and images a keyed hash in their place: equal texts stay
 * equal wherever they stand (a node's name, its hostname label, the pods that name it), so that
 * selectors and affinity mean the same. Without the key no reader can tell, or try, what they were.
 * Threads: any; nothing is shared but constants.
 */
#ifndef BH_SIM_REPLAY_CLEAN_H
#define BH_SIM_REPLAY_CLEAN_H

#include "common/data/json.h"

enum bh_clean_flags {
    BH_CLEAN_NAMESPACED = 1,
    BH_CLEAN_STATUS = 2,   /* has a status of which something is kept */
    BH_CLEAN_WORKLOAD = 4, /* a controller makes pods of it: only when asked for by name */
    BH_CLEAN_ONCE = 8      /* imported, but neither synchronised nor recorded */
};
struct bh_clean_kind {
    const char *group; /* "" for core */
    const char *version, *kind, *plural;
    unsigned flags;
    const char *keep; /* "spec(a b(c)) x": members; (...) = what to keep of them */
};
/* In the order in which they are to be created: what others refer to comes first. */
extern const struct bh_clean_kind bh_clean_kinds[];
extern const size_t bh_clean_n_kinds;
/* api_version "apps/v1"; NULL when not in the table. */
const struct bh_clean_kind *bh_clean_kind_find(const char *api_version, const char *kind);
/* By "pods" or "Pod"; NULL when unknown. */
const struct bh_clean_kind *bh_clean_kind_named(const char *name);
/* "apps/v1" */
const char *bh_clean_api_version(const struct bh_clean_kind *k, char out[static 80]);
/* Writes "/apis/apps/v1/namespaces/NS/replicasets"; ns NULL = of all namespaces, or none. */
struct bh_buf;
void bh_clean_path(const struct bh_clean_kind *k, const char *ns, struct bh_buf *out);

/* The kept part of obj as a new tree in a: apiVersion, kind, metadata{name, namespace, uid,
 * creationTimestamp, labels, annotations of a few prefixes, ownerReferences} and what the table
 * says. more_annotations: comma separated prefixes, NULL = none. NULL, with *ret_why: scheduling
 * has no use for this one ("finished", ...). obj is not changed. */
struct bh_json *bh_clean(struct bh_arena *a, const struct bh_clean_kind *k,
                         const struct bh_json *obj, const char *more_annotations,
                         const char **ret_why);
/* Makes a cleaned object one that can be created: without uid and times, the priority left to the
 * class, claims that were made from a template named, and the status out of it, which is returned
 * (NULL when there is none to write). Nodes keep theirs inside, and it is returned too.
 * Owner references go; a caller that relinks them saves them first. */
struct bh_json *bh_clean_new(struct bh_arena *a, const struct bh_clean_kind *k,
                             struct bh_json *obj);
/* The merge patch that makes cur, a whole object of some server, what want (cleaned) says, as far
 * as the table goes: what is not in the table stays as it is there. NULL: nothing to change. Of a
 * pod only labels, annotations, scheduling gates and its end are changed; its node is the
 * scheduler's.
 */
struct bh_json *bh_clean_diff(struct bh_arena *a, const struct bh_clean_kind *k,
                              const struct bh_json *cur, const struct bh_json *want);

/* ---- anonymise.c ----------------------------------------------------------------------------- */
struct bh_anon {
    uint8_t key[32];
};
void bh_anon_init(struct bh_anon *n, const char *secret); /* NULL: a random key */
/* In place; obj is a cleaned object. */
void bh_anon_object(const struct bh_anon *n, struct bh_arena *a, struct bh_json *obj);
/* The text that takes s's place. Literals that mean something to Kubernetes stay. */
const char *bh_anon_text(const struct bh_anon *n, struct bh_arena *a, const char *s);
#endif
