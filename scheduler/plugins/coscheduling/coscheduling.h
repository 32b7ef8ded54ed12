/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/coscheduling/coscheduling.h - between the files of this folder
 */
#ifndef BH_COSCHEDULING_PLUGIN_H
#define BH_COSCHEDULING_PLUGIN_H

#include "common/k8s/coscheduling.h"
#include "common/k8s/quantity.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/framework/framework.h"

/* NULL: the nodes together have what spec.minResources asks for, and room for minMember pods, not
 * counting what pods of this group take. Else upstream's text, in c->arena. own: the group's members, or
 * NULL. */
const char *bh_cosched_resource_gap(struct bh_call *c, const K8s__CoschedulingPodGroupSpec *spec,
                                    const struct bh_group *own);
#endif
