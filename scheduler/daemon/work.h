/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/work.h - one item of the ledger: something that a binder is asked to do
 *
 * Owns:       its texts, and its hold on the pod that it is for.
 * Runs in:    the scheduler's duty cycle.
 */
#ifndef BH_SCHED_WORK_H
#define BH_SCHED_WORK_H

#include <sys/queue.h>

#include "common/base/buf.h"
#include "common/bus/bus.h"
#include "scheduler/queue/pods.h"

struct bh_write; /* scheduler/cache/write.h */
struct bh_work {
    Berth__WorkItem item; /* as it goes onto the wire; its texts are owned */
    struct bh_pod_state
        *pod; /* the pod it is for, held; NULL: no pod of ours (a victim, what plugins tend) */
    bool transition; /* of the condition, or of those that it, or a BIND, took the place of */
    struct bh_pod_state *on_behalf; /* DELETE: the preemptor, held */
    bool last;          /* DELETE: waits for the end of the others on_behalf of that preemptor */
    bool bound_seen;    /* BIND: the watch was faster than the answer */
    bool kept;          /* BIND: see bh_ledger_keep */
    bool outside;       /* BIND: an extender writes it, see bh_ledger_next_outside */
    bool told_bound;    /* BIND: PostBind plugins know that it is done */
    const char *plugin; /* BIND: the Bind plugin that asked for it; NULL: an extender's */
    uint64_t queued_ns, sent_ns;
    uint64_t due_ns;        /* kept: when to look; of a binder that is cut off: when to ask again */
    uint64_t doubt_boot_ns; /* BIND: until then an earlier request for it may take effect */
    uint32_t slot;          /* of the record (inflight.h); 0 = none */
    uint64_t late_ns; /* the answer was given so long before it came (binders send some together) */
    uint64_t term;    /* of the lease it was decided under */
    uint64_t decision; /* BIND: the attempt's number in the record, 0 = none */
    uint64_t
        former_id; /* a status: the scheduler before us asked for it under this id; 0 = we did */
    /* the ledger's */
    TAILQ_ENTRY(bh_work) link;
    struct bh_binder *binder;  /* NULL = queued or parked */
    struct bh_work *successor; /* parked behind this one, which is out */
    uint8_t lane;
    bool packed; /* all texts are in text, or constant; the event is this one */
    Berth__EventText event;
    char text[];
};
TAILQ_HEAD(bh_works, bh_work);
/* What is asked for most: bind the pod and say so. */
struct bh_bind_texts {
    struct bh_pod_state *pod;
    struct bh_str ns, name;
    const char *node, *controller, *resource_version; /* the last two: of the event */
};
static inline bool bh_work_is_write(Berth__WorkKind k)
{
    return (int)k >= BERTH__WORK_KIND__WORK_VOLUME_CLAIM && (int)k <= BERTH__WORK_KIND__WORK_PATCH;
}
/* Of a pod or a PodGroup. */
static inline bool bh_work_is_status(Berth__WorkKind k)
{
    return k == BERTH__WORK_KIND__WORK_PATCH_STATUS || k == BERTH__WORK_KIND__WORK_GROUP_STATUS;
}
/* Done late it undoes what was written after it: one binder at a time has it (binder/binder.h). */
static inline bool bh_work_undoes(Berth__WorkKind k)
{
    return bh_work_is_status(k) || k == BERTH__WORK_KIND__WORK_UNRESERVATION ||
           k == BERTH__WORK_KIND__WORK_PATCH;
}
/* A BIND in one block, with its event of at most note_max bytes; its texts may not be given
 * away. */
struct bh_work *bh_work_bind(const struct bh_bind_texts *t, size_t note_max);
struct bh_work *bh_work_new(Berth__WorkKind kind, struct bh_str ns, struct bh_str name,
                            struct bh_str uid);
/* For a pod of ours. */
struct bh_work *bh_work_for(Berth__WorkKind kind, struct bh_str ns, struct bh_str name,
                            struct bh_pod_state *s);
/* A condition of a PodGroup's status, to be given with bh_work_condition(). Newer ones take the place of
 * those that no binder has been given yet; the ledger keeps their order. api_version: "v1beta1". */
struct bh_work *bh_work_group(struct bh_str ns, struct bh_str name, struct bh_str uid,
                              const char *api_version);
void bh_work_free(struct bh_work *w); /* one that was not added */
/* The item's parts. Texts are copied, but note and message, which it takes over. */
void bh_work_event(struct bh_work *w, const char *type, const char *reason, const char *action,
                   char *note, const char *controller, const char *resource_version);
/* After bh_work_event: what the event is about beside the item's object; copied. */
struct bh_object_ref {
    const char *kind, *api_version, *resource_version; /* the last may be NULL */
    struct bh_str namespace_, name, uid;
};
void bh_work_related(struct bh_work *w, const struct bh_object_ref *r);
void bh_work_condition(struct bh_work *w, const char *type, const char *status, const char *reason,
                       char *message, int64_t generation, bool transition);
void bh_work_nominate(struct bh_work *w, const char *node); /* "" clears it */
/* The item's object; of a BIND what is written in the Binding's place. */
void bh_work_write(struct bh_work *w, const struct bh_write *x);
/* Why the bus would not take it, NULL: it does. What is written for a pod comes from objects that any
 * user may have made, and from plugins. Items that are not taken are dropped when they are sent; a
 * write must not be, nor a bind. */
const char *bh_work_unfit(const struct bh_work *w);
/* The request that is out may take effect although its outcome is not known: a bad answer to a later
 * one is not the end of it before that time (bh_work.doubt_boot_ns). */
void bh_work_doubt(struct bh_work *w, uint64_t ns);
/* It takes room or devices on a node if it is done; of a plugin's patch for a pod that is taken for granted. */
bool bh_work_takes_effect(const struct bh_work *w);
#endif
