/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/patch.h - the patch languages of the Kubernetes API, on JSON trees
 *
 * All functions work on copies: the result lives in the arena and may share nothing with doc or
 * patch. Errors are texts a client can be shown. Result size is bounded by the arena's limit
 * (JSON-patch `copy` bombs end with -E2BIG).
 */
#ifndef BH_PATCH_H
#define BH_PATCH_H

#include "common/data/json.h"

/* RFC 6902. -EINVAL malformed patch or path, -ENOENT missing target, -EBADMSG failed `test`. */
int bh_patch_json(struct bh_arena *a, const struct bh_json *doc, const struct bh_json *patch,
                  struct bh_json **ret, struct bh_err *err);
/* RFC 7386. */
int bh_patch_merge(struct bh_arena *a, const struct bh_json *doc, const struct bh_json *patch,
                   struct bh_json **ret, struct bh_err *err);
/* Strategic merge. The schema question "how does this list merge?" is answered by field path from a
 * built-in table of Kubernetes' built-in types: kind + dotted path without indices
 * ("spec.template.spec.containers") -> merge key ("name"), or primitive-merge, or atomic.
 * Directives $patch, $retainKeys, $setElementOrder/x, $deleteFromPrimitiveList/x.
 * -ENOTSUP when the kind has no strategic merge (custom resources: the API server answers 415). */
int bh_patch_strategic(struct bh_arena *a, const char *kind, const struct bh_json *doc,
                       const struct bh_json *patch, struct bh_json **ret, struct bh_err *err);
/* The table: merge key of the list at path ("" = atomic, "-" = set of primitives). Used by
 * server-side apply too. */
const char *bh_patch_merge_key(const char *kind, const char *path);
/* The smallest merge patch that turns from into to; used by tests and by the simulator's diff. */
struct bh_json *bh_patch_diff(struct bh_arena *a, const struct bh_json *from,
                              const struct bh_json *to);
#endif
