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
    struct bh_sim_timer *timer;
    uint64_t at_ns; /* monotonic */
    struct bh_ctl_item *item;
};

#define OF(member) offsetof(struct bh_ctl_types, member)
static const struct {
    size_t type; /* of the objects, in struct bh_ctl_types */
    bh_ctl_sync_fn *sync;
    bh_ctl_key_fn *key; /* instead: the key is no living object */
    bool workload;      /* looked at whenever it changes */
    bool deleting;      /* while it is being deleted, too */
} controllers[BH_CTL_N] = {
    [BH_CTL_DEPLOYMENT] = {OF(deployments), bh_ctl_sync_deployment, NULL, true, true},
    [BH_CTL_REPLICASET] = {OF(replicasets), bh_ctl_sync_replicaset, NULL, true, true},
    [BH_CTL_REPLICATIONCONTROLLER] = {OF(replicationcontrollers), bh_ctl_sync_replicaset, NULL,
                                      true, true},
    [BH_CTL_STATEFULSET] = {OF(statefulsets), bh_ctl_sync_statefulset, NULL, true, false},
    [BH_CTL_DAEMONSET] = {OF(daemonsets), bh_ctl_sync_daemonset, NULL, true, false},
    [BH_CTL_JOB] = {OF(jobs), bh_ctl_sync_job, NULL, true, true},
    [BH_CTL_PDB] = {OF(pdbs), NULL, bh_ctl_sync_pdb, true, false},
    [BH_CTL_NAMESPACE] = {OF(namespaces), bh_ctl_sync_namespace, NULL, false, true},
    [BH_CTL_GC_ORPHANED] = {0, NULL, bh_ctl_sync_orphaned, false, false},
    [BH_CTL_GC_DEPENDENTS] = {0, NULL, bh_ctl_sync_waiting, false, false},
    [BH_CTL_CLAIM] = {OF(claims), bh_ctl_sync_claim, NULL, false, false},
    [BH_CTL_VOLUME] = {OF(volumes), bh_ctl_sync_volume, NULL, false, false},
    [BH_CTL_VOLUME_SWEEP] = {0, NULL, bh_ctl_sync_volume_sweep, false, false},
    [BH_CTL_POD_CLAIMS] = {OF(pods), bh_ctl_sync_pod_claims, NULL, false, false},
    [BH_CTL_RESOURCE_CLAIM] = {OF(resource_claims), bh_ctl_sync_resource_claim, NULL, false, true},
    [BH_CTL_NODE] = {0, NULL, bh_ctl_sync_node, false, false},
    [BH_CTL_TAINT_EVICTION] = {OF(pods), bh_ctl_sync_taint_eviction, NULL, false, false},
    [BH_CTL_PODGC] = {0, NULL, bh_ctl_sync_podgc, false, false},
    [BH_CTL_POD_LIFE] = {OF(pods), bh_ctl_sync_pod_life, NULL, false, true},
    [BH_CTL_CRONJOB] = {OF(cronjobs), bh_ctl_sync_cronjob, NULL, true, false},
    [BH_CTL_HPA] = {OF(hpas), bh_ctl_sync_hpa, NULL, true, false},
    [BH_CTL_RESIZE] = {OF(pods), bh_ctl_sync_resize, NULL, false, false},
    [BH_CTL_QUOTA] = {0, NULL, bh_ctl_sync_quota, false, false},
    [BH_CTL_SERVICE] = {0, NULL, bh_ctl_sync_service, false, false},
    [BH_CTL_PODGROUP] = {OF(podgroups), bh_ctl_sync_podgroup, NULL, false, true},
    [BH_CTL_ADOPT] = {0, NULL, bh_ctl_sync_adopt, false, false},
    [BH_CTL_COSCHEDULING] = {0, NULL, bh_ctl_sync_coscheduling, false, false},
    [BH_CTL_JOB_ORPHAN] = {0, NULL, bh_ctl_sync_job_orphan, false, false},
};

const struct bh_sim_type *bh_ctl_type(const struct bh_sim_controllers *c, enum bh_ctl ctl)
{
    return *(const struct bh_sim_type *const *)((const char *)&c->t + controllers[ctl].type);
}

enum bh_ctl bh_ctl_workload_of(const struct bh_sim_controllers *c, const struct bh_sim_type *t)
{
    enum bh_ctl i = 0;

    while (i < BH_CTL_N && !(controllers[i].workload && bh_ctl_type(c, i) == t))
        i++;
    return i;
}

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

static void sync_item(struct bh_sim_controllers *c, const struct bh_ctl_item *it)
{
    if (controllers[it->ctl].key) {
        controllers[it->ctl].key(c, it->ns, it->name);
        return;
    }
    struct bh_sim_obj *obj = bh_sim_get(c->sim, bh_ctl_type(c, it->ctl), it->ns, it->name);
    if (!obj || (obj->deleting && !controllers[it->ctl].deleting))
        return;
    bh_sim_obj_ref(obj);
    controllers[it->ctl].sync(c, obj);
    bh_sim_obj_unref(obj);
}

static void turn(void *arg)
{
    struct bh_sim_controllers *c = arg;
    struct bh_ctl_queue *q = &c->queue;
    bool manual = bh_sim_manual_clock(c->sim); /* the loop serves nothing else */
    uint64_t end = bh_mono_ns() + TURN_NS;

    q->timer = NULL;
    for (size_t n = q->n; n; n--) {
        struct bh_ctl_item *it = take_first(q);
        sync_item(c, it);
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

/* Out of the table; the item goes back to the caller. */
static struct bh_ctl_item *drop_delayed(struct bh_ctl_delayed *d)
{
    struct bh_ctl_item *it = d->item;

    bh_map_del(&d->c->queue.delayed, it->key, it->key_n);
    free(d);
    return it;
}

static void cancel_delayed(struct bh_ctl_delayed *d)
{
    bh_sim_cancel(d->timer);
    free(drop_delayed(d));
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
    struct bh_ctl_item *it = item_new(ctl, ns, name);
    struct bh_ctl_delayed *d = bh_map_get(&c->queue.delayed, it->key, it->key_n);
    uint64_t at = bh_sim_mono_ns(c->sim) + (uint64_t)BH_MAX(delay_ns, 0);

    if (d && d->at_ns <= at) {
        free(it);
        return;
    }
    if (d)
        cancel_delayed(d);
    d = bh_malloc(sizeof(*d));
    *d = (struct bh_ctl_delayed){.c = c, .at_ns = at, .item = it};
    bh_map_put(&c->queue.delayed, it->key, it->key_n, d);
    d->timer = bh_sim_after(c->sim, delay_ns, delay_over, d);
}

void bh_ctl_again(struct bh_sim_controllers *c, enum bh_ctl ctl, const struct bh_sim_obj *obj,
                  int64_t delay_ns)
{
    if (delay_ns)
        bh_ctl_enqueue_after(c, ctl, obj->ns, obj->name, delay_ns);
    else
        bh_ctl_enqueue(c, ctl, obj->ns, obj->name);
}

/* The key's entry among those that wait for their time; in line: also whether it stands there. */
static struct bh_ctl_delayed *find_delayed(struct bh_sim_controllers *c, enum bh_ctl ctl,
                                           const char *ns, const char *name, bool *ret_in_line)
{
    struct bh_ctl_item *it = item_new(ctl, ns, name);
    struct bh_ctl_delayed *d = bh_map_get(&c->queue.delayed, it->key, it->key_n);

    *ret_in_line = bh_map_get(&c->queue.known, it->key, it->key_n) != NULL;
    free(it);
    return d;
}

bool bh_ctl_waits(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns, const char *name)
{
    bool in_line;

    return find_delayed(c, ctl, ns, name, &in_line) || in_line;
}

bool bh_ctl_dequeue(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns, const char *name)
{
    struct bh_ctl_delayed *d = NULL;
    bool in_line;

    if (c->queue.delayed.len)
        d = find_delayed(c, ctl, ns, name, &in_line);
    if (d)
        cancel_delayed(d);
    return d != NULL;
}

void bh_ctl_queue_fini(struct bh_sim_controllers *c)
{
    struct bh_ctl_queue *q = &c->queue;
    struct bh_map_entry *e;

    bh_sim_cancel(q->timer);
    q->timer = NULL;
    while (q->first)
        free(take_first(q));
    for (size_t it = 0; (e = bh_map_next(&q->delayed, &it));)
        cancel_delayed(e->value);
    bh_map_fini(&q->known);
    bh_map_fini(&q->delayed);
}
