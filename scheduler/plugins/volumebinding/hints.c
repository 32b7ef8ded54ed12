/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/hints.c - is this event about something the waiting pod uses
 */
#include "scheduler/plugins/volumebinding/hints.h"

/* "<pod>-<volume>" without building it. */
static bool is_ephemeral_name(const struct bh_hint_call *c, const struct bh_volume *v)
{
    const struct bh_pod_rec *rec = bh_hint_pod(c);
    struct bh_str pod = bh_rec_text(rec, rec->name);
    struct bh_str volume = bh_sym_str(c->tab, v->name);
    struct bh_str name = bh_sym_str(c->tab, c->ev->object_name);

    return name.n == pod.n + 1 + volume.n && memcmp(name.p, pod.p, pod.n) == 0 &&
           name.p[pod.n] == '-' && memcmp(name.p + pod.n + 1, volume.p, volume.n) == 0;
}

static enum bh_hint own(const struct bh_hint_call *c, bool ephemeral_too)
{
    const struct bh_volume *v = bh_shape_volumes(c->shape);

    if (c->ev->object_name == BH_SYM_NONE)
        return BH_QUEUE;
    if (c->ev->object_namespace != c->shape->namespace_)
        return BH_QUEUE_SKIP;
    for (uint32_t i = 0; i < c->shape->volumes.n; i++)
        if ((v[i].type == BH_VOL_CLAIM && v[i].source == c->ev->object_name) ||
            (ephemeral_too && v[i].type == BH_VOL_EPHEMERAL && is_ephemeral_name(c, &v[i])))
            return BH_QUEUE;
    return BH_QUEUE_SKIP;
}

enum bh_hint bh_hint_own_claim(const struct bh_hint_call *c)
{
    return own(c, true);
}

enum bh_hint bh_hint_named_claim(const struct bh_hint_call *c)
{
    return own(c, false);
}
