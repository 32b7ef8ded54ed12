/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_pod.c - a Pod's identity into its record
 */
#include <errno.h>

#include "common/k8s/codec.h"
#include "common/k8s/compile_priv.h"

static int64_t unix_ns(const K8s__Time *t)
{
    int64_t v;

    if (!t)
        return 0;
    if (__builtin_mul_overflow(t->seconds, (int64_t)1000000000, &v) ||
        __builtin_add_overflow(v, (int64_t)t->nanos, &v))
        return t->seconds < 0 ? INT64_MIN : INT64_MAX;
    return v;
}

static bool preempted_by_scheduler(const K8s__PodStatus *st)
{
    for (size_t i = 0; st && i < st->n_conditions; i++) {
        const K8s__PodCondition *k = st->conditions[i];
        if (bh_streq(k->type, "DisruptionTarget"))
            return bh_streq(k->status, "True") && bh_streq(k->reason, "PreemptionByScheduler");
    }
    return false;
}

static uint64_t extended_claim_hash(const K8s__PodStatus *st)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    if (!st || !st->extendedresourceclaimstatus)
        return 0;
    bh_pb_pack(&b, &st->extendedresourceclaimstatus->base);
    uint64_t h = bh_hash(b.p, b.n, 0);
    return h ? h : 1;
}

int bh_compile_pod(struct bh_arena *a, const K8s__Pod *p, const struct bh_interner *in,
                   struct bh_pod_rec **ret, struct bh_err *err)
{
    struct bh_compiler c = {.a = a, .in = in, .err = err};
    struct bh_pod_rec head = {0};
    const K8s__ObjectMeta *m = p->metadata;

    if (!m || !*m->name)
        return bh_err_set(err, -EINVAL, "pod: metadata.name is empty");
    if (!*m->uid)
        return bh_err_set(err, -EINVAL, "pod %s/%s: metadata.uid is empty", m->namespace_, m->name);
    head.flags = (m->deletiontimestamp ? BH_POD_TERMINATING : 0) |
                 (preempted_by_scheduler(p->status) ? BH_POD_PREEMPTED_BY_SCHEDULER : 0);
    head.node = p->spec ? bh_compile_sym(&c, p->spec->nodename) : BH_SYM_NONE;
    head.nominated_node =
        p->status ? bh_compile_sym(&c, p->status->nominatednodename) : BH_SYM_NONE;
    if (p->spec && p->spec->schedulinggroup)
        head.group = bh_compile_sym(&c, p->spec->schedulinggroup->podgroupname);
    head.resource_version = bh_compile_version(m->resourceversion);
    head.generation = m->generation;
    head.creation_ns = unix_ns(m->creationtimestamp);
    head.start_ns = p->status ? unix_ns(p->status->starttime) : 0;
    head.extended_claim_hash = extended_claim_hash(p->status);
    bh_rec_begin(&c.b, a, BH_REC_POD, sizeof(head));
    head.name = bh_rec_put_text(&c.b, m->name);
    head.namespace_ = bh_rec_put_text(&c.b, m->namespace_);
    head.uid = bh_rec_put_text(&c.b, m->uid);
    const K8s__PodStatus *st = p->status;
    size_t n = st ? st->n_resourceclaimstatuses : 0;
    struct bh_claim_status *out = bh_rec_room(&c.b, n, sizeof(*out), &head.claim_statuses);
    for (size_t i = 0; out && i < n; i++)
        out[i] = (struct bh_claim_status){
            .name = bh_compile_sym(&c, st->resourceclaimstatuses[i]->name),
            .claim = bh_compile_sym(&c, st->resourceclaimstatuses[i]->resourceclaimname)};
    return bh_compile_end(&c, "pod", &head.h, sizeof(head), ret);
}
