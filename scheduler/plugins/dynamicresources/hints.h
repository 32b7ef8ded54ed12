/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/hints.h - which claim and pod events wake a pod
 */
#ifndef BH_DRA_HINTS_H
#define BH_DRA_HINTS_H

#include "scheduler/framework/plugin.h"

enum bh_hint bh_dra_hint_claim(const struct bh_hint_call *c);
enum bh_hint bh_dra_hint_pod(const struct bh_hint_call *c);
/* An assumed pod gave its devices back without a claim being written. */
enum bh_hint bh_dra_hint_forgotten(const struct bh_hint_call *c);
#endif
