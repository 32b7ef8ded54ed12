/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/tree.h - type-checked look-ups and "set when absent" on JSON trees
 *
 * Shared by admission/, crd/, tables/ and controllers/. What a client wrote can have any shape, so a
 * field of the wrong type counts as absent here; the core has refused what does not fit the kind's
 * schema where there is one. Paths are dotted ("spec.template.spec"); for keys that contain dots
 * use bh_json_get().
 */
#ifndef BH_SIM_TREE_H
#define BH_SIM_TREE_H

#include "common/base/buf.h"
#include "common/data/json.h"

/* NULL (or dflt) when absent or of another type. */
struct bh_json *bh_tree_arr(const struct bh_json *v, const char *dotted);
struct bh_json *bh_tree_obj(const struct bh_json *v, const char *dotted);
const char *bh_tree_str(const struct bh_json *v, const char *dotted);
int64_t bh_tree_i64(const struct bh_json *v, const char *dotted, int64_t dflt);
bool bh_tree_bool(const struct bh_json *v, const char *dotted, bool dflt);
bool bh_tree_is(const struct bh_json *v, const char *dotted, const char *text); /* string equal */
bool bh_tree_has(const struct bh_json *v, const char *dotted);    /* present and not null */
bool bh_tree_lists(const struct bh_json *list, const char *text); /* as one of its strings */
/* An IntOrString against total; percentages are rounded up or down. NULL: 0. */
int64_t bh_tree_scaled(const struct bh_json *v, int64_t total, bool up);
size_t bh_tree_len(const struct bh_json *v); /* elements or members; 0 for everything else */
/* Number, string or bool as text appended to b; false when v is neither. */
bool bh_tree_scalar(struct bh_buf *b, const struct bh_json *v);

/* A comma in JSON text, unless a list or an object begins here. */
void bh_tree_comma(struct bh_buf *b);
/* A member that is a text, behind such a comma. */
void bh_tree_add_str(struct bh_buf *b, const char *key, const char *value);
/* Appends p[0..n) in base64. */
void bh_tree_add_base64(struct bh_buf *b, const void *p, size_t n);

bool bh_tree_deleting(const struct bh_json *obj);
/* The element of status.conditions with this type, or NULL. */
struct bh_json *bh_tree_condition(const struct bh_json *obj, const char *type);
bool bh_tree_condition_true(const struct bh_json *obj, const char *type);
const char *bh_tree_label(const struct bh_json *obj, const char *key);      /* or NULL */
const char *bh_tree_annotation(const struct bh_json *obj, const char *key); /* or NULL */
bool bh_tree_is_default_class(const struct bh_json *storage_class);

/* The node that a pod's required affinity names, "" without one. */
const char *bh_tree_pinned_to(const struct bh_json *pod);

/* Set a member of obj that is absent, null or (strings) empty. True when something was set. */
bool bh_tree_dflt_str(struct bh_arena *a, struct bh_json *obj, const char *key, const char *v);
/* The same for all members that a template of bh_json_make() has, in objects within it, too. */
void bh_tree_dflt(struct bh_arena *a, struct bh_json *obj, const char *fmt, ...) BH_PRINTF(3, 4);
/* The member's object or array, created when absent or null. NULL when it is of another type. */
struct bh_json *bh_tree_dflt_obj(struct bh_arena *a, struct bh_json *obj, const char *key);
struct bh_json *bh_tree_dflt_arr(struct bh_arena *a, struct bh_json *obj, const char *key);
/* Copies what from has and the member's object lacks; an empty from makes no object. */
void bh_tree_fill(struct bh_arena *a, struct bh_json *obj, const char *key,
                  const struct bh_json *from);
struct bh_json *bh_tree_push_obj(struct bh_arena *a, struct bh_json *arr); /* a new last element */
void bh_tree_set_quantity(struct bh_arena *a, struct bh_json *obj, const char *key, __int128 nano,
                          bool binary);

/* Sets the condition in status.conditions. lastTransitionTime moves only when the status changes.
 * now: RFC 3339. True when anything but times changed. */
bool bh_tree_set_condition(struct bh_arena *a, struct bh_json *obj, const char *type,
                           const char *status, const char *reason, const char *message,
                           const char *now);
#endif
