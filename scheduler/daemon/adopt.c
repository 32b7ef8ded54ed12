/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/adopt.c - what the scheduler before us left on the wire
 *
 * A binding outlives the scheduler that asked for it, and the binder that sent it too. Before the
 * first decision every one that may still take effect counts on its node: a pod decided earlier
 * would be given the same room. What there is, is known from the record (inflight.h), which names
 * every bind and every write of devices that was handed out, and from the binders that are still
 * there: each is greeted, reports what it has on the wire, and knows our epoch from then on, so
 * that it sends nothing more of the old one. A binder that says nothing for binder_grace_ns is
 * taken for dead.
 *
 * Then each such pod that the watcher shows as pending is assumed on its node with its volumes and
 * devices, and the bind is asked for again: the API server answers for both requests, whichever it
 * saw first. One that the watcher does not show as pending is bound or gone, and the snapshot says
 * which. Under another term of the lease nothing is asked for again: another host may have decided
 * meanwhile; the pod counts until the old request cannot take effect any more, and then is looked
 * at.
 *
 * Statuses: what a binder is writing of a pod comes before anything of ours about it (ledger.h). Nobody
 * knows what a binder had that died: for as long as it may come in behind the start of the one in its
 * place, nothing is decided.
 *
 * Devices: while a write of a claim may be on the wire no pod gets any; a binder's request lasts 10
 * s at most, so BH_INFLIGHT_REQUEST_NS after our start that is over even where no binder tells. A
 * claim that the watch does not show as written, although its pod's bind was asked for, is waited
 * for just as long.
 */
#include "common/base/log.h"
#include "scheduler/daemon/daemon.h"

struct bh_adopted { /* a bind of the scheduler before us */
    LIST_ENTRY(bh_adopted) link;
    struct bh_pod_state *pod; /* held */
    char *node;
    uint64_t id; /* of the item, as recorded, or as a binder reported it later */
    uint64_t term, until_boot_ns;
    uint32_t slot;
    bool counted; /* assumed, its place is BINDING; its claims are not all known yet */
};
struct bh_adopted_claim { /* a write of devices, by "uid/id" */
    uint64_t until_ns;
    uint32_t slot;
    bool reported; /* by a binder: its answer will come */
    bool creates;
};

/* ---- binders to be heard --------------------------------------------------------------------- */

static struct bh_former_binder *add_binder(struct bh_sched_adoption *a, const char *name)
{
    a->binder = bh_reallocarray(a->binder, a->n_binders + 1, sizeof(*a->binder));
    struct bh_former_binder *b = &a->binder[a->n_binders++];
    *b = (struct bh_former_binder){.heard = false};
    snprintf(b->name, sizeof(b->name), "%s", name);
    return b;
}

unsigned bh_sched_binders_unheard(const struct bh_sched_daemon *d)
{
    unsigned n = bh_inflight_unknown(d->adopt.record);

    for (unsigned i = 0; i < d->adopt.n_binders; i++)
        n += !d->adopt.binder[i].heard;
    return n;
}

void bh_sched_binder_heard(struct bh_sched_daemon *d, const char *name, uint64_t age_ns)
{
    struct bh_sched_adoption *a = &d->adopt;
    struct bh_former_binder *b = NULL;

    for (unsigned i = 0; i < a->n_binders && !b; i++)
        if (bh_streq(a->binder[i].name, name))
            b = &a->binder[i];
    if (age_ns < BH_BUS_GRANT_TAIL_NS && bh_sched_binders_awaited(d) &&
        (b ? !b->heard : bh_inflight_unknown(a->record)))
        a->settled_ns = BH_MAX(a->settled_ns, bh_boot_ns() + BH_BUS_GRANT_TAIL_NS - age_ns);
    if (!b) {
        b = add_binder(a, name);
        bh_inflight_add_binder(a->record, name);
    }
    b->heard = true;
    if (!a->heard_all_ns && !bh_sched_binders_unheard(d))
        a->heard_all_ns = bh_mono_ns();
}

bool bh_sched_binders_awaited(const struct bh_sched_daemon *d)
{
    return bh_mono_ns() - d->started_ns < d->timing.binder_grace_ns && bh_sched_binders_unheard(d);
}

/* ---- binds ----------------------------------------------------------------------------------- */

/* Without its slot of the record. */
static void free_bind(struct bh_sched_daemon *d, struct bh_adopted *a)
{
    LIST_REMOVE(a, link);
    d->adopt.n_binds--;
    a->pod->adopted = NULL;
    bh_pod_drop(a->pod);
    free(a->node);
    free(a);
}

void bh_sched_unadopt(struct bh_sched_daemon *d, struct bh_pod_state *s)
{
    if (!s->adopted)
        return;
    bh_inflight_drop(d->adopt.record, s->adopted->slot);
    free_bind(d, s->adopted);
}

static void note_bind(struct bh_sched_daemon *d, const struct bh_inflight_item *it, uint32_t slot)
{
    struct bh_adopted *a = bh_calloc(1, sizeof(*a));
    struct bh_pod_state *s = bh_pods_hold(d->pods, bh_str_c(it->uid));

    bh_sched_unadopt(d, s);
    *a = (struct bh_adopted){.pod = s,
                             .node = bh_strdup(it->node),
                             .id = it->id,
                             .term = it->term,
                             .until_boot_ns = it->until_boot_ns,
                             .slot = slot};
    s->adopted = a;
    LIST_INSERT_HEAD(&d->adopt.binds, a, link);
    d->adopt.n_binds++;
}

void bh_sched_review_adopted(struct bh_sched_daemon *d)
{
    for (struct bh_adopted *a = LIST_FIRST(&d->adopt.binds), *next; a; a = next) {
        next = LIST_NEXT(a, link);
        if (!a->pod->queued)
            bh_sched_unadopt(d, a->pod);
    }
}

/* Its volumes and devices: false while the watch has not shown them as they were written before the
 * bind was asked for. */
static bool takes_claims(struct bh_sched_daemon *d, const struct bh_queued_pod *p, bh_sym node)
{
    const struct bh_status *s = bh_engine_reserve(d->engine, &p->pending, node);
    bool open = s != NULL;
    uint32_t n;

    const struct bh_write *v = bh_engine_prebind_work(d->engine, bh_pod_uid(p->pod), &n);
    for (uint32_t i = 0; v && i < n; i++) /* plugins' own were made before that, too */
        open |= v[i].what != BH_WRITE_PATCH;
    if (open)
        bh_engine_unreserve(d->engine, &p->pending, node);
    return !open;
}

/* On its node from now on. False: there is nothing to adopt. */
static bool count_bind(struct bh_sched_daemon *d, struct bh_adopted *a, bh_sym node)
{
    const struct bh_str uid = bh_pod_uid(a->pod);

    /* A node that went away: nothing on it can be booked twice. */
    if (!bh_engine_find_node(d->engine, node) || bh_engine_find_pod(d->engine, uid, NULL))
        return false;
    struct bh_queued_pod *p = bh_queue_take(d->queue, a->pod, bh_sched_now(d));
    if (!p) /* not pending, or decided before this bind was known */
        return false;
    (void)bh_engine_assume(d->engine, &p->pending, node);
    bh_queue_binding(d->queue, a->pod);
    a->counted = true;
    d->adopt.n_counted++;
    return true;
}

/* True: done with it. */
static bool adopt(struct bh_sched_daemon *d, struct bh_adopted *a)
{
    const bh_sym node = bh_sym_internc(d->symtab, a->node);

    if (!a->counted && !count_bind(d, a, node))
        return true;
    const struct bh_queued_pod *p = a->pod->queued;
    if (!p)
        return true;
    /* The snapshot is ahead of the feed and shows the outcome: the feed's message ends the bind. */
    if (!bh_engine_is_assumed(d->engine, bh_pod_uid(a->pod)))
        return false;
    if (!takes_claims(d, p, node) && bh_mono_ns() - d->started_ns < d->timing.claim_ns)
        return false;
    const uint64_t now = bh_boot_ns();
    /* Every binder, or the one started in its place, has said what it sends: nothing of this. */
    if (d->adopt.heard_all_ns)
        a->until_boot_ns = BH_MIN(a->until_boot_ns, now + BH_INFLIGHT_REQUEST_NS);
    const bool asked = bh_sched_send_bind(d, p, node, true);
    struct bh_work *w = p->pod->bind;
    w->slot = a->slot;
    w->doubt_boot_ns = a->until_boot_ns;
    a->slot = 0;
    if (!asked || a->term != d->lease.term)
        bh_ledger_keep(d->ledger, w,
                       bh_mono_ns() + a->until_boot_ns - BH_MIN(now, a->until_boot_ns));
    return true;
}

void bh_sched_adopt_end_term(struct bh_sched_daemon *d)
{
    struct bh_adopted *a;

    LIST_FOREACH(a, &d->adopt.binds, link) {
        if (a->counted)
            bh_sched_binding_over(d, a->pod, BH_OVER_RECALLED, "", "");
        a->counted = false;
    }
}

/* ---- claims ---------------------------------------------------------------------------------- */

static char *claim_key(const char *uid, uint64_t id)
{
    return bh_asprintf("%s/%llu", uid ? uid : "", (unsigned long long)id);
}

static void note_claim(struct bh_sched_daemon *d, const struct bh_inflight_item *it, uint32_t slot,
                       bool reported)
{
    BH_CLEANUP(bh_freep) char *key = claim_key(it->uid, it->id);
    struct bh_adopted_claim *c = bh_malloc(sizeof(*c)), *former;

    *c = (struct bh_adopted_claim){.until_ns = bh_mono_ns() + d->timing.claim_ns,
                                   .slot = slot,
                                   .reported = reported,
                                   .creates = it->kind == BERTH__WORK_KIND__WORK_NEW_CLAIM};
    former = bh_map_put(&d->adopt.claims, key, strlen(key), c);
    if (former && former->slot)
        c->slot = former->slot;
    free(former);
}

static void end_claim(struct bh_sched_daemon *d, const char *key, size_t n)
{
    struct bh_adopted_claim *c = bh_map_del(&d->adopt.claims, key, n);

    if (c)
        bh_inflight_drop(d->adopt.record, c->slot);
    free(c);
}

/* ---- what binders say ------------------------------------------------------------------------ */

static void note_status(struct bh_sched_daemon *d, const Berth__WorkItem *it)
{
    const struct bh_str ns = bh_str_c(it->namespace_), name = bh_str_c(it->name);
    struct bh_work *w;

    if (it->kind == BERTH__WORK_KIND__WORK_GROUP_STATUS) {
        w = bh_work_new(it->kind, ns, name, bh_str_c(it->uid));
    } else {
        BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *s = bh_pods_hold(d->pods, bh_str_c(it->uid));
        w = bh_work_for(it->kind, ns, name, s);
    }
    w->former_id = it->id;
    bh_ledger_adopt(d->ledger, w, bh_mono_ns() + d->timing.claim_ns);
}

void bh_sched_adopt_reported(struct bh_sched_daemon *d, const Berth__BinderHello *h)
{
    for (size_t i = 0; i < h->n_in_flight; i++) {
        const Berth__WorkItem *it = h->in_flight[i];
        if (bh_work_is_status(it->kind)) {
            note_status(d, it);
            continue;
        }
        const struct bh_inflight_item item = {.kind = it->kind,
                                              .id = it->id,
                                              .term = d->in.lease_term,
                                              .until_boot_ns = bh_boot_ns() + BH_INFLIGHT_NS,
                                              .uid = it->uid,
                                              .node = it->node};
        const struct bh_pod_state *s = bh_pods_find(d->pods, bh_str_c(it->uid));

        if (it->kind == BERTH__WORK_KIND__WORK_ALLOCATION ||
            it->kind == BERTH__WORK_KIND__WORK_RESERVATION ||
            it->kind == BERTH__WORK_KIND__WORK_NEW_CLAIM ||
            it->kind == BERTH__WORK_KIND__WORK_PATCH)
            note_claim(d, &item, 0, true);
        if (it->kind != BERTH__WORK_KIND__WORK_BIND)
            continue;
        if (s && s->adopted)
            s->adopted->id = it->id;
        if (s && (s->bind || s->adopted))
            continue;
        if (!d->in.feed.synced || (s && s->queued)) /* else bound, or gone */
            note_bind(d, &item, 0);
    }
}

void bh_sched_adopt_answered(struct bh_sched_daemon *d, const Berth__WorkResult *r)
{
    BH_CLEANUP(bh_freep) char *key = claim_key(r->uid, r->id);
    struct bh_pod_state *s = bh_pods_find(d->pods, bh_str_c(r->uid));
    const struct bh_adopted_claim *c =
        d->adopt.claims.len ? bh_map_get(&d->adopt.claims, key, strlen(key)) : NULL;

    if (c && r->outcome != BERTH__OUTCOME__OUTCOME_STALE &&
        r->outcome != BERTH__OUTCOME__OUTCOME_UNKNOWN) { /* else a request may have been out */
        if (r->has_object)
            (void)bh_engine_learn(d->engine, BH_KIND_RESOURCECLAIM, r->object.data, r->object.len,
                                  c->creates, NULL, NULL);
        end_claim(d, key, strlen(key));
    }
    if (r->outcome != BERTH__OUTCOME__OUTCOME_UNKNOWN) /* else it may be written yet */
        bh_ledger_end_adopted(d->ledger, bh_str_c(r->uid), r->id);
    /* One that is done, or not known, is asked for again: the API server knows. What else was
     * written for the pod says nothing of its bind. */
    if (!s || !s->adopted || s->adopted->id != r->id ||
        (r->outcome != BERTH__OUTCOME__OUTCOME_REJECTED &&
         r->outcome != BERTH__OUTCOME__OUTCOME_GONE &&
         r->outcome != BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE))
        return;
    if (s->adopted->counted)
        bh_sched_binding_over(d, s, BH_OVER_RECALLED, "", "");
    bh_sched_unadopt(d, s);
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_sched_adopt_start(struct bh_sched_daemon *d, struct bh_err *err)
{
    int rc = bh_inflight_open(d->o.runtime_dir, &d->adopt.record, err);

    if (rc == 0) {
        bh_ledger_record(d->ledger, d->adopt.record);
        struct bh_sched_adoption *a = &d->adopt;
        struct bh_inflight_item it;
        const char *name;
        uint32_t slot, pos = 0;
        while ((slot = bh_inflight_next(a->record, &pos, &it)))
            if (it.kind == BERTH__WORK_KIND__WORK_BIND)
                note_bind(d, &it, slot);
            else
                note_claim(d, &it, slot, false);
        for (uint32_t i = 0; (name = bh_inflight_binder(a->record, i)); i++)
            (void)add_binder(a, name);
        a->heard_all_ns = bh_sched_binders_unheard(d) ? 0 : bh_mono_ns();
        a->told_silent = a->heard_all_ns != 0;
        a->inherited = a->n_binders || a->n_binds || a->claims.len || bh_sched_binders_unheard(d);
        if (a->n_binders || a->n_binds || a->claims.len)
            bh_log_info("A scheduler was here before, hearing its binders first",
                        bh_kv_u("binders", a->n_binders), bh_kv_u("binds", a->n_binds),
                        bh_kv_u("claims", a->claims.len));
    }
    return rc;
}

/* As if killed: what was not answered stays recorded. */
void bh_sched_adopt_fini(struct bh_sched_daemon *d)
{
    struct bh_map_entry *m;

    for (struct bh_adopted *a = LIST_FIRST(&d->adopt.binds), *next; a; a = next) {
        next = LIST_NEXT(a, link);
        free_bind(d, a);
    }
    for (size_t it = 0; (m = bh_map_next(&d->adopt.claims, &it));)
        free(m->value);
    bh_map_fini(&d->adopt.claims);
    free(d->adopt.binder);
    bh_inflight_close(d->adopt.record);
}

bool bh_sched_adopted(const struct bh_sched_daemon *d)
{
    return !d->adopt.n_binds && !d->adopt.claims.len &&
           !bh_inflight_unrecorded_until(d->adopt.record);
}

void bh_sched_adopt_turn(struct bh_sched_daemon *d)
{
    struct bh_sched_adoption *a = &d->adopt;

    if (!a->told_silent && !bh_sched_binders_awaited(d)) { /* the wait is over */
        a->told_silent = true;
        for (unsigned i = 0; i < a->n_binders; i++)
            if (!a->binder[i].heard)
                bh_log_warn("A binder of the scheduler before does not answer: what it had counts "
                            "as on the wire",
                            bh_kv_s("binder", a->binder[i].name));
        a->n_silent = bh_sched_binders_unheard(d);
    }
    if (d->adopt.claims.len) {
        const uint64_t now = bh_mono_ns(), heard = d->adopt.heard_all_ns;
        struct bh_map_entry *m;
        for (size_t it = 0; (m = bh_map_next(&d->adopt.claims, &it));) {
            const struct bh_adopted_claim *c = m->value;
            if (now >= c->until_ns || (!c->reported && heard && now - heard >= BH_WATCH_LAG_NS))
                end_claim(d, m->key, m->key_len);
        }
    }
    if (d->adopt.n_binds && bh_sched_ready(d) && bh_sched_leads(d)) {
        uint64_t before = d->adopt.n_counted;
        for (struct bh_adopted *b = LIST_FIRST(&a->binds), *next; b; b = next) {
            next = LIST_NEXT(b, link);
            if (adopt(d, b))
                bh_sched_unadopt(d, b->pod);
        }
        if (d->adopt.n_counted != before)
            bh_log_info(
                "Binds of the scheduler before count on their nodes and are asked for again",
                bh_kv_u("pods", d->adopt.n_counted - before));
    }
}

void bh_sched_adopt_left(struct bh_sched_daemon *d)
{
    /* One that never spoke to us may have work of the scheduler before us, however long we ran. */
    if (!bh_sched_binders_unheard(d) && !bh_inflight_count(d->adopt.record))
        bh_inflight_forget_binders(d->adopt.record);
}
