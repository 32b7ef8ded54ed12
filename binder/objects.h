/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/objects.h - writes to other objects than pods: volumes, their claims, ResourceClaims
 *
 * One write may take several requests. Each is a merge patch that carries uid and resourceVersion,
 * because this side knows only the fields it reads; the first goes out on the word of the decision.
 * A conflict means: read the object, look whether it is as wanted already (done), whether the write
 * is still right (once more, a few times), or not (rejected, in upstream's words). So every write
 * may be repeated, by any binder.
 *
 *   VOLUME_CLAIM    patch                      right while no other claim has the volume
 *   SELECTED_NODE   patch                      right while unbound and no node is selected
 *   ALLOCATION      finalizers; status         right while not being deleted, and not allocated or
 *                                              allocated alike (another member of the pod's group
 *                                              wrote it): then only the reservation is written
 *   RESERVATION     status                     right while allocated and not being deleted
 *   NEW_CLAIM       create; as ALLOCATION; the pod's status. The name is made of the pod's uid
 *   DEALLOCATION    status                     right for the version that was decided about alone
 *   DELETE_CLAIM    finalizers; delete         what is gone is done
 *   UNRESERVATION   status (strategic)         no condition but the uid
 *   PATCH           see patches.h
 *
 * Threads:    the binder's.
 * Upstream:   plugins/volumebinding/binder.go (bindAPIUpdate), plugins/dynamicresources (bindClaim,
 *             Unreserve).
 */
#ifndef BH_BINDER_OBJECTS_H
#define BH_BINDER_OBJECTS_H

#include "common/api/client.h"
#include "common/base/arena.h"
#include "common/bus/bus.h"

struct bh_object_job;
/* it outlives the job. plugin_writes: what plugins may patch. NULL: its object is none, or a patch is
 * not made; err says why. */
struct bh_object_job *bh_object_job_new(const Berth__WorkItem *it, const char *plugin_writes,
                                        struct bh_err *err);
void bh_object_job_free(struct bh_object_job *o);
/* The next request only reads. */
bool bh_object_job_reads(const struct bh_object_job *o);
/* The next request: method, content type; path and body into the buffers, which are reset first. */
void bh_object_job_request(struct bh_object_job *o, struct bh_buf *path, struct bh_buf *body,
                           struct bh_api_call *call);
struct bh_object_end {
    Berth__Outcome outcome;
    int code;
    const char *reason, *message; /* valid until the job is freed */
};
/* A definite answer to it. true: that was all, see ret; false: go on with the next request. */
bool bh_object_job_reply(struct bh_object_job *o, const struct bh_api_reply *r,
                         struct bh_object_end *ret);
/* The object as the API server told it last, as bare bytes; false: it told nothing. */
bool bh_object_job_seen(const struct bh_object_job *o, struct bh_buf *ret);
#endif
