/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/pods.c - the table of handles
 */
#include "scheduler/queue/pods.h"

struct bh_pod_state *bh_pods_find(const struct bh_pods *t, struct bh_str uid)
{
    return bh_map_get(&t->by_uid, uid.p, uid.n);
}

struct bh_pod_state *bh_pods_hold(struct bh_pods *t, struct bh_str uid)
{
    struct bh_pod_state *s = bh_pods_find(t, uid);

    if (s)
        return bh_pod_hold(s);
    s = bh_malloc(sizeof(*s) + t->room + uid.n + 1);
    char *text = (char *)s->room + t->room;
    memcpy(text, uid.p, uid.n);
    text[uid.n] = '\0';
    *s = (struct bh_pod_state){.table = t, .held = 1, .uid = text, .n_uid = uid.n};
    (void)bh_map_put(&t->by_uid, uid.p, uid.n, s);
    return s;
}

void bh_pod_follow(struct bh_pod_state *s, struct bh_pod_state *lead)
{
    struct bh_pod_state *old = s->lead;

    if (old)
        LIST_REMOVE(s, follows);
    s->lead = lead ? bh_pod_hold(lead) : NULL;
    if (lead)
        LIST_INSERT_HEAD(&lead->followers, s, follows);
    if (old)
        bh_pod_drop(old);
}

void bh_pod_drop(struct bh_pod_state *s)
{
    if (--s->held)
        return;
    bh_pod_follow(s, NULL);
    bh_assert(!s->queued && !s->bind && !s->first && !s->prebind && !s->adopted && !s->waiting &&
              !s->nomination);
    (void)bh_map_del(&s->table->by_uid, s->uid, s->n_uid);
    free(s);
}

void bh_pods_fini(struct bh_pods *t)
{
    bh_assert(!t->by_uid.len);
    bh_map_fini(&t->by_uid);
}

enum bh_pod_phase bh_pod_phase(const struct bh_pod_state *s)
{
    if (s->place == BH_Q_NONE)
        return BH_POD_NONE;
    if (s->place == BH_Q_IN_FLIGHT)
        return BH_POD_DECIDING;
    if (!bh_pod_has_node(s))
        return BH_POD_QUEUED;
    return s->bind      ? BH_POD_BINDING
           : s->prebind ? BH_POD_PREBIND
           : s->adopted ? BH_POD_ADOPTED
                        : BH_POD_LOST;
}
