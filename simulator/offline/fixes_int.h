/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes_int.h - what fixes*.c share
 *
 * fixes.c            trying, pairs, the document
 * fixes_think.c      which changes are worth trying, from the reasons of an explanation
 * fixes_labels.c     labels that the pod requires and no suitable node has
 * fixes_siblings.c   the other pods of the owner whose template a change patches
 * fixes_missing.c    objects that the pod names and that are not there
 * fixes_commands.c   a change as commands for a shell
 * fixes_group.c      the same changes for all members of a group
 */
#ifndef BH_OFFLINE_FIXES_INT_H
#define BH_OFFLINE_FIXES_INT_H

#include "simulator/offline/fixes.h"

#define BH_FIX_MAX     96u /* with pairs; more would not be read */
#define BH_FIX_OBJECTS 64u /* of one change */

struct bh_fix {
    const char *text, *kind;      /* two of one kind make no pair */
    struct bh_json *pod;          /* strategic merge patch, NULL = none */
    const char *node_name;        /* of node */
    struct bh_json *node;         /* merge patch, NULL = none */
    struct bh_json *create;       /* manifests, NULL = none */
    struct bh_json *assumed;      /* what controllers would then do to objects that are there */
    bool alone, missing;          /* makes no pair; create is what the pod names */
    struct bh_json *tree, *after; /* the changed pod, and how it comes out */
};
struct bh_fixes {
    struct bh_offline *w;
    struct bh_arena *a;
    const struct bh_json *pod, *why;
    struct bh_node_rec *node_was; /* of the change in force */
    const char *names;            /* of the pods that a change is made to: a group's members, blanks
                                   * between them; NULL: pod alone */
    struct bh_fix v[BH_FIX_MAX];
    unsigned n;
    /* With a group: how all of it comes out with x in force, instead of the pod alone: an explanation
     * of the first member that has no room, with `result` and `outcome` for the group. */
    struct bh_json *(*decide)(struct bh_fixes *f, const struct bh_fix *x);
    void *arg;
};
/* Tries what is in v, in pairs if nothing helps alone; the document (fixes.h). */
struct bh_json *bh_fixes_try(struct bh_fixes *f);
/* NULL: it cannot be patched. */
struct bh_json *bh_fixes_patched(struct bh_fixes *f, const char *kind, const struct bh_json *doc,
                                 const struct bh_json *patch);

struct bh_fix *bh_fixes_add(struct bh_fixes *f, const char *kind, const char *text);
void bh_fixes_think(struct bh_fixes *f);
void bh_fixes_labels(struct bh_fixes *f);
void bh_fixes_missing(struct bh_fixes *f);
/* How the pod comes out now, without the others of its group; NULL: it cannot be asked. */
struct bh_json *bh_fixes_decide(struct bh_fixes *f, const struct bh_json *pod);
/* The commands of a change of the pod patch its owner's template. */
bool bh_fixes_patches_owner(struct bh_fixes *f);
/* The owner's pods on nodes get the template of x->tree, until restored. NULL: there are none. */
struct bh_fix_siblings *bh_fixes_change_siblings(struct bh_fixes *f, const struct bh_fix *x);
void bh_fixes_restore_siblings(struct bh_fix_siblings *s); /* frees it; NULL allowed */
void bh_fixes_commands(struct bh_fixes *f, const struct bh_fix *x, struct bh_json *to);
/* The engine's node as a manifest, as far as decisions depend on it; NULL: there is none. */
struct bh_json *bh_fixes_node(struct bh_fixes *f, const char *name);
const struct bh_node_rec *bh_fixes_rec(struct bh_fixes *f, const char *name);
/* The engine's object, NULL: there is none. */
struct bh_json *bh_fixes_object(struct bh_fixes *f, enum bh_kind kind, const char *ns,
                                const char *name);
/* A new node like that one, without taints, that the pod's node selector finds. Its name is that, or
 * when a node has it, that with a number. */
struct bh_json *bh_fixes_new_node(struct bh_fixes *f, const char *like, const char *name);
const char *bh_fixes_largest(struct bh_fixes *f); /* node, NULL: there is none */
#endif
