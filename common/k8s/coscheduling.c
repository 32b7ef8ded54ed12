/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/coscheduling.c - the PodGroup of plugin Coscheduling
 */
#include "common/k8s/coscheduling.h"

#include <errno.h>

#include "proto/kubernetes/kubernetes.pb-c.h"

#define NS_PER_S INT64_C(1000000000)

void bh_coscheduling_read(const struct K8s__CoschedulingPodGroup *m,
                          struct bh_coscheduling_group *ret)
{
    const K8s__CoschedulingPodGroupSpec *s = m->spec;
    const K8s__Time *made = m->metadata ? m->metadata->creationtimestamp : NULL;

    *ret = (struct bh_coscheduling_group){.timeout_s = BH_COSCHEDULING_NO_TIME};
    if (made && made->seconds > 0 && made->seconds < INT64_MAX / NS_PER_S)
        ret->creation_ns = made->seconds * NS_PER_S;
    if (!s)
        return;
    ret->min_member = s->minmember;
    ret->has_resources = s->n_minresources != 0;
    if (s->has_scheduletimeoutseconds)
        ret->timeout_s = s->scheduletimeoutseconds;
}

int bh_coscheduling_check(const struct K8s__CoschedulingPodGroup *m, struct bh_err *err)
{
    const K8s__CoschedulingPodGroupSpec *s = m->spec;

    if (!m->metadata || !*m->metadata->name || !*m->metadata->namespace_)
        return bh_err_set(err, -EINVAL, "metadata: name or namespace is missing");
    if (s && s->minmember < 0)
        return bh_err_set(err, -EINVAL, "spec.minMember: must be at least 1, is %d",
                          (int)s->minmember);
    return 0;
}
