/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/patches.h - what plugins ask for: patches of any object, as far as they are allowed
 *
 * The scheduler runs plugins and holds no credentials; here they are, so here is looked at what is
 * asked for, whichever scheduler asks:
 *   - The resource is one that --plugin-writes names. Without the flag there is none.
 *   - The object is meant as it was seen: uid or resourceVersion go with the patch as preconditions, or
 *     it is JSON with a `test` of its own.
 *   - It may be repeated. A merge patch may by its nature; of JSON patches only test, add, replace and
 *     remove are made, the two that move the elements of a list not on one.
 *   - It is no longer than 64 Ki (bus.h), is JSON, and leaves metadata's uid, resourceVersion, name and
 *     namespace alone.
 * A conflict, or a test that fails: the object is read. As wanted already = done; still the one that
 * was meant = once more, a few times; else rejected.
 *
 * Threads: the binder's.
 */
#ifndef BH_BINDER_PATCHES_H
#define BH_BINDER_PATCHES_H

#include "binder/objects.h"

/* --plugin-writes: RESOURCE[.GROUP][/SUBRESOURCE], separated by commas, as kubectl and RBAC write
 * them. 0, or -EINVAL with the one that is none. */
int bh_plugin_writes_check(const char *list, struct bh_err *err);

struct bh_patch_job;
/* list: as above, NULL = nothing is allowed. w outlives the job. NULL: refused; err says why. */
struct bh_patch_job *bh_patch_job_new(const Berth__ObjectWrite *w, const char *list,
                                      struct bh_err *err);
void bh_patch_job_free(struct bh_patch_job *j);
/* As bh_object_job_... of objects.h, which calls them. */
bool bh_patch_job_reads(const struct bh_patch_job *j);
void bh_patch_job_request(struct bh_patch_job *j, struct bh_buf *path, struct bh_buf *body,
                          struct bh_api_call *call);
bool bh_patch_job_reply(struct bh_patch_job *j, const struct bh_api_reply *r,
                        struct bh_object_end *ret);
#endif
