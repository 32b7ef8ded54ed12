/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/apply.h - server-side apply: which manager owns which field, on JSON trees
 *
 * metadata.managedFields records for each manager the set of fields it set last (FieldsV1: f:name,
 * k:{"name":"x"} for elements of keyed lists, v:value for elements of sets, `.` for the node
 * itself). bh_apply_ssa merges a manager's configuration, removes what it no longer applies and
 * no other one owns, and refuses to change other managers' fields. bh_apply_track_update keeps the
 * record for ordinary writes; callers may leave it out (it costs a walk over both objects): an
 * object without any record belongs to "before-first-apply" when it is applied to for the first
 * time, as upstream.
 *
 * Which lists are keyed comes from patch_schema.c. Kinds without a schema (custom resources) have
 * atomic lists. Names the caller keeps for itself are never owned: apiVersion, kind, and in
 * metadata name, namespace, uid, generation, resourceVersion, creationTimestamp, selfLink,
 * managedFields. Inputs are not changed unless said so; results live in the arena and may share
 * texts with inputs of the same arena. -E2BIG: the arena's limit.
 *
 * Fields stand deeper in their record than in the object: an object whose record would be deeper than
 * BH_APPLY_MAX_DEPTH has none, and cannot be applied (-E2BIG).
 */
#ifndef BH_APPLY_H
#define BH_APPLY_H

#include "common/data/json.h"

/* Less than what can be read: objects stand in other documents. */
#define BH_APPLY_MAX_DEPTH (BH_JSON_MAX_DEPTH - 8)

struct bh_apply_op {
    const char *kind;        /* of the object */
    const char *api_version; /* the request's, e.g. "apps/v1" */
    const char *manager;     /* fieldManager */
    const char *subresource; /* NULL or "" for the object itself, "status", "scale" */
    const char *time;        /* now, RFC 3339 in UTC with seconds */
    bool force;              /* bh_apply_ssa: take fields over instead of failing */
};

/* live may be NULL (then the result is what to create). 0 with *ret_obj, complete with
 * managedFields; -EINVAL malformed configuration (duplicate or missing list keys, managedFields
 * set); -EBUSY conflicts: *ret_conflicts is {"message": "Apply failed with 1 conflict: ...",
 * "causes": [{"type":"FieldManagerConflict","message":...,"field":".spec.replicas"}]}, ready for
 * the 409's Status (message, details.causes). */
int bh_apply_ssa(struct bh_arena *a, const struct bh_apply_op *op, const struct bh_json *live,
                 const struct bh_json *config, struct bh_json **ret_obj,
                 struct bh_json **ret_conflicts, struct bh_err *err);

/* After a create (old NULL), update or patch: obj is the object about to be stored, defaults filled
 * in; its metadata.managedFields is replaced. The record starts from obj's own managedFields when
 * the client sent any, else from old's; a client resets it by sending [{}]. At most ten Update
 * entries are kept, older ones are merged into "ancient-changes". */
int bh_apply_track_update(struct bh_arena *a, const struct bh_apply_op *op,
                          const struct bh_json *old, struct bh_json *obj, struct bh_err *err);
#endif
