/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/queue.c - the work queue of the controllers
 *
 * Owns:       waiting keys and their timers.
 * Invariants: a key waits at most once in line and at most once for its time, the earliest that was
 *             asked for; a timer is armed exactly while keys wait. A key that is
 *             queued during its own sync waits for the next turn, so that nothing is lost and no
 *             sync runs inside another.
 */
#include "simulator/controllers/controllers.h"

#define TURN_NS 5000000 /* a turn ends after this long: clients want the loop too */

struct bh_ctl_item {
    struct bh_ctl_item *next;
    enum bh_ctl ctl;
    size_t key_n;
    const char *ns, *name; /* into key */
    char key[];            /* controller, ns, 0, name, 0 */
};
struct bh_ctl_delayed {
    struct bh_sim_controllers *c;
    struct bh_ctl_delayed *prev, *next;
    struct bh_sim_timer *timer;
    uint64_t at_ns; /* monotonic */
    struct bh_ctl_item *item;
};

static bh_ctl_sync_fn *const sync_fns[BH_CTL_N] = {
    [BH_CTL_DEPLOYMENT] = bh_ctl_sync_deployment,
    [BH_CTL_REPLICASET] = bh_ctl_sync_replicaset,
    [BH_CTL_REPLICATIONCONTROLLER] = bh_ctl_sync_replicationcontroller,
    [BH_CTL_STATEFULSET] = bh_ctl_sync_statefulset,
    [BH_CTL_DAEMONSET] = bh_ctl_sync_daemonset,
    [BH_CTL_JOB] = bh_ctl_sync_job,
    [BH_CTL_PDB] = bh_ctl_sync_pdb,
    [BH_CTL_NAMESPACE] = bh_ctl_sync_namespace,
    [BH_CTL_GC_ORPHANED] = bh_ctl_sync_orphaned,
    [BH_CTL_GC_DEPENDENTS] = bh_ctl_sync_waiting,
    [BH_CTL_CLAIM] = bh_ctl_sync_claim,
    [BH_CTL_VOLUME] = bh_ctl_sync_volume,
    [BH_CTL_VOLUME_SWEEP] = bh_ctl_sync_volume_sweep,
    [BH_CTL_POD_CLAIMS] = bh_ctl_sync_pod_claims,
    [BH_CTL_RESOURCE_CLAIM] = bh_ctl_sync_resource_claim,
    [BH_CTL_NODE] = bh_ctl_sync_node,
    [BH_CTL_TAINT_EVICTION] = bh_ctl_sync_taint_eviction,
    [BH_CTL_PODGC] = bh_ctl_sync_podgc,
    [BH_CTL_POD_END] = bh_ctl_sync_pod_end,
    [BH_CTL_CRONJOB] = bh_ctl_sync_cronjob,
    [BH_CTL_HPA] = bh_ctl_sync_hpa,
    [BH_CTL_RESIZE] = bh_ctl_sync_resize,
    [BH_CTL_QUOTA] = bh_ctl_sync_quota,
};

int64_t bh_ctl_delay(const struct bh_sim_controllers *c, int64_t ns)
{
    return bh_sim_manual_clock(c->sim) ? 0 : ns;
}

static struct bh_ctl_item *item_new(enum bh_ctl ctl, const char *ns, const char *name)
{
    size_t ns_n = strlen(ns), name_n = strlen(name), n = 1 + ns_n + 1 + name_n;
    struct bh_ctl_item *it = bh_malloc(sizeof(*it) + n + 1);

    *it = (struct bh_ctl_item){.ctl = ctl, .key_n = n};
    it->key[0] = (char)ctl;
    memcpy(it->key + 1, ns, ns_n + 1);
    memcpy(it->key + 1 + ns_n + 1, name, name_n + 1);
    it->ns = it->key + 1;
    it->name = it->key + 1 + ns_n + 1;
    return it;
}

static struct bh_ctl_item *take_first(struct bh_ctl_queue *q)
{
    struct bh_ctl_item *it = q->first;

    q->first = it->next;
    if (!q->first)
        q->last = NULL;
    q->n--;
    bh_map_del(&q->known, it->key, it->key_n);
    return it;
}

static void turn(void *arg)
{
    struct bh_sim_controllers *c = arg;
    struct bh_ctl_queue *q = &c->queue;
    bool manual = bh_sim_manual_clock(c->sim); /* nobody else waits for a turn */
    uint64_t end = bh_mono_ns() + TURN_NS;

    q->timer = NULL;
    for (size_t n = q->n; n; n--) {
        struct bh_ctl_item *it = take_first(q);
        sync_fns[it->ctl](c, it->ns, it->name);
        bh_arena_reset(&c->arena);
        free(it);
        if (!manual && bh_mono_ns() > end)
            break;
    }
    if (q->n && !q->timer)
        q->timer = bh_sim_after(c->sim, bh_ctl_delay(c, BH_CTL_DELAY_NS), turn, c);
}

static void append(struct bh_sim_controllers *c, struct bh_ctl_item *it)
{
    struct bh_ctl_queue *q = &c->queue;

    if (bh_map_get(&q->known, it->key, it->key_n)) {
        free(it);
        return;
    }
    bh_map_put(&q->known, it->key, it->key_n, it);
    if (q->last)
        q->last->next = it;
    else
        q->first = it;
    q->last = it;
    q->n++;
    if (!q->timer)
        q->timer = bh_sim_after(c->sim, bh_ctl_delay(c, BH_CTL_DELAY_NS), turn, c);
}

void bh_ctl_enqueue(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns, const char *name)
{
    append(c, item_new(ctl, ns, name));
}

/* ---- delayed keys ---------------------------------------------------------------------------- */

/* Out of the list and the table; the item goes back to the caller. */
static struct bh_ctl_item *drop_delayed(struct bh_ctl_delayed *d)
{
    struct bh_ctl_queue *q = &d->c->queue;
    struct bh_ctl_item *it = d->item;

    if (d->prev)
        d->prev->next = d->next;
    else
        q->delayed = d->next;
    if (d->next)
        d->next->prev = d->prev;
    bh_map_del(&q->delayed_known, it->key, it->key_n);
    free(d);
    return it;
}

static void delay_over(void *arg)
{
    struct bh_ctl_delayed *d = arg;
    struct bh_sim_controllers *c = d->c;

    append(c, drop_delayed(d));
}

void bh_ctl_enqueue_after(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns,
                          const char *name, int64_t delay_ns)
{
    struct bh_ctl_queue *q = &c->queue;
    struct bh_ctl_item *it = item_new(ctl, ns, name);
    struct bh_ctl_delayed *d = bh_map_get(&q->delayed_known, it->key, it->key_n);
    uint64_t at = bh_sim_mono_ns(c->sim) + (uint64_t)BH_MAX(delay_ns, 0);

    if (d && d->at_ns <= at) {
        free(it);
        return;
    }
    if (d) {
        bh_sim_cancel(d->timer);
        free(drop_delayed(d));
    }
    d = bh_malloc(sizeof(*d));
    *d = (struct bh_ctl_delayed){.c = c, .next = q->delayed, .at_ns = at, .item = it};
    if (d->next)
        d->next->prev = d;
    q->delayed = d;
    bh_map_put(&q->delayed_known, it->key, it->key_n, d);
    d->timer = bh_sim_after(c->sim, delay_ns, delay_over, d);
}

bool bh_ctl_waits(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns, const char *name)
{
    struct bh_ctl_item *it = item_new(ctl, ns, name);
    bool waits = bh_map_get(&c->queue.known, it->key, it->key_n) ||
                 bh_map_get(&c->queue.delayed_known, it->key, it->key_n);

    free(it);
    return waits;
}

bool bh_ctl_dequeue(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns, const char *name)
{
    struct bh_ctl_delayed *d;
    struct bh_ctl_item *it;

    if (!c->queue.delayed_known.len)
        return false;
    it = item_new(ctl, ns, name);
    d = bh_map_get(&c->queue.delayed_known, it->key, it->key_n);
    free(it);
    if (!d)
        return false;
    bh_sim_cancel(d->timer);
    free(drop_delayed(d));
    return true;
}

void bh_ctl_queue_fini(struct bh_sim_controllers *c)
{
    struct bh_ctl_queue *q = &c->queue;

    bh_sim_cancel(q->timer);
    q->timer = NULL;
    while (q->first)
        free(take_first(q));
    for (struct bh_ctl_delayed *d; (d = q->delayed);) {
        bh_sim_cancel(d->timer);
        free(drop_delayed(d));
    }
    bh_map_fini(&q->known);
    bh_map_fini(&q->delayed_known);
}
