/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/hints.h - is this event about something the waiting pod uses
 */
#ifndef BH_STORAGE_HINTS_H
#define BH_STORAGE_HINTS_H

#include "scheduler/plugins/volumebinding/storage.h"

/* A claim of the pod; named: only those that the pod names itself. */
enum bh_hint bh_hint_own_claim(const struct bh_hint_call *c);
enum bh_hint bh_hint_named_claim(const struct bh_hint_call *c);

/* An event whose object is not known, or that is no update: worth another try. */
static inline bool bh_hint_always(const struct bh_cluster_event *ev)
{
    return ev->object_name == BH_SYM_NONE || ev->action == BH_EV_ADD;
}
#endif
