/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/pack_int.h - what packing and unpacking agree on beside the order of parts
 */
#ifndef BH_DECISION_PACK_INT_H
#define BH_DECISION_PACK_INT_H

#include "common/k8s/wire.h"
#include "scheduler/decisions/record.h"

enum bh_node_mark {                 /* what a place of the list was in an attempt */
                    BH_NODE_ABSENT, /* no node of the cluster */
                    BH_NODE_UNSEEN, /* a node that nobody looked at */
                    BH_NODE_FEASIBLE,
                    BH_NODE_VERDICTS /* rejected: this + the number of the verdict */
};
#endif
