/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_preempt.c - PostFilter of a plugin in a process of its own makes room by its rules
 *
 * Its process asks for preemption->run() (an upcall), and while that goes on the scheduler asks it back what its rules
 * say: one question, one answer, with upcalls of the process's own in between. The dry runs call filters of all
 * plugins, but none of the same file: its one conversation is this one.
 *
 * Runs in: the engine's thread, in the middle of a call.
 */
#include <errno.h>

#include "scheduler/native/process_int.h"

struct asking {
    struct bh_px_instance *i;
    uint64_t has; /* bits: which rules there are */
};

/* The next message that is an answer; upcalls are served meanwhile. */
static int answer_to(struct asking *k, struct bh_px_in *ret)
{
    struct bh_px *x = k->i->x;

    for (;;) {
        int rc = bh_px_listen(x->down, x->up, x->seen, x->until_ns, bh_px_is_gone, x);
        if (rc == 0 && bh_mono_ns() > x->until_ns)
            rc = -ETIMEDOUT;
        if (rc < 0)
            return rc;
        x->seen = atomic_load(&x->up->seq);
        const bool aside = *(const volatile uint32_t *)&x->up->aside;
        if (!aside || bh_px_hear(x, true, ret) < 0)
            return -EBADMSG;
        struct bh_px_in m = *ret;
        const uint64_t up = bh_px_get_u64(&m);
        if (up == BH_PX_UP_RULED) {
            *ret = m;
            return 0;
        }
        struct bh_px_out o = bh_px_side(x->down);
        if (!bh_px_serve(k->i, ret, &o)) /* run() itself is refused: it goes on */
            return x->failed_rc < 0 ? x->failed_rc : -EBADMSG;
        bh_px_say(x->down, x->up, o.full ? 0 : o.n, true);
    }
}

/* 0 when it failed: the call ends with x->failed_rc. */
static int32_t ask(struct asking *k, enum bh_px_rule rule, const struct berth_pod *pod,
                   const struct berth_node *node, uint64_t n, struct berth_why *why)
{
    struct bh_px *x = k->i->x;
    struct bh_call *c = k->i->in->call;
    const struct bh_node_info *ni = bh_node_behind(node);
    struct bh_px_out o = bh_px_side(x->down);
    struct bh_px_in m = {0};

    if (x->failed_rc)
        return 0;
    bh_px_put_u64(&o, rule);
    bh_px_put_u64(&o, n);
    bh_px_put_pod(&o, bh_pod_behind(pod));
    bh_px_put_node(&o, c->cache, ni);
    k->i->given = ni;
    if (o.full) {
        x->failed_rc = -E2BIG;
        return 0;
    }
    bh_px_say(x->down, x->up, o.n, true);
    x->failed_rc = answer_to(k, &m);
    const int32_t code = x->failed_rc ? 0 : (int32_t)bh_px_get_u64(&m);
    struct berth_str text = x->failed_rc ? (struct berth_str){NULL, 0} : bh_px_get_str(&m);
    if (m.bad)
        x->failed_rc = -EBADMSG;
    if (why && text.n) /* of a longer one no more than tells that it is */
        why->reason.n = BH_MIN(text.n, (uint64_t)BH_PX_TEXT_MAX + 1);
    if (why && text.n)
        why->reason.p = bh_arena_memdup(c->arena, text.p, why->reason.n);
    return code;
}

static int32_t waits_for(void *arg, struct berth_call *c BH_UNUSED, const struct berth_pod *pod)
{
    return ask(arg, BH_PX_RULE_WAITS, pod, NULL, 0, NULL);
}
static int32_t evicts(void *arg, struct berth_call *c BH_UNUSED, const struct berth_pod *pod)
{
    return ask(arg, BH_PX_RULE_EVICTS, pod, NULL, 0, NULL);
}
static void begin(void *arg, struct berth_call *c BH_UNUSED, const struct berth_node *node)
{
    (void)ask(arg, BH_PX_RULE_BEGIN, NULL, node, 0, NULL);
}
static void moved(void *arg, struct berth_call *c BH_UNUSED, const struct berth_pod *pod,
                  int32_t by)
{
    (void)ask(arg, BH_PX_RULE_MOVED, pod, NULL, (uint64_t)(int64_t)by, NULL);
}
static int32_t check(void *arg, struct berth_call *c BH_UNUSED, const struct berth_node *node,
                     uint32_t when, struct berth_why *why)
{
    return ask(arg, BH_PX_RULE_CHECK, NULL, node, when, why);
}

static const char *filters_of(const struct bh_px *x)
{
    for (uint32_t i = 0; i < x->n_plugins; i++)
        if (x->plugin[i]->p.filter || x->plugin[i]->p.filter_rows || x->plugin[i]->p.change_pod)
            return "it called preemption->run in a process of its own, where no plugin of its file "
                   "may have Filter or AddPod";
    return NULL;
}

bool bh_px_serve_run(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o)
{
    struct asking k = {.i = i};
    struct berth_preemption how = {.size = sizeof how, .arg = &k};
    struct berth_why why = {.size = sizeof why};

    how.flags = (uint32_t)bh_px_get_u64(m);
    how.min_candidates_percentage = (int32_t)bh_px_get_u64(m);
    how.min_candidates_absolute = (int32_t)bh_px_get_u64(m);
    k.has = bh_px_get_u64(m);
    how.waits_for = k.has >> BH_PX_RULE_WAITS & 1 ? waits_for : NULL;
    how.evicts = k.has >> BH_PX_RULE_EVICTS & 1 ? evicts : NULL;
    how.begin = k.has >> BH_PX_RULE_BEGIN & 1 ? begin : NULL;
    how.moved = k.has >> BH_PX_RULE_MOVED & 1 ? moved : NULL;
    how.check = k.has >> BH_PX_RULE_CHECK & 1 ? check : NULL;
    if (m->bad || !i->in->call)
        return false;
    i->x->failed_rc = 0;
    const char *broke = filters_of(i->x);
    int32_t code = BERTH_ERROR;
    if (broke)
        i->in->broke = broke;
    else
        code = bh_native_host.preemption->run((struct berth_call *)(void *)i->in->call, &how, &why);
    bh_px_put_u64(o, BH_PX_RULE_DONE);
    bh_px_put_u64(o, (uint64_t)(int64_t)code);
    bh_px_put_str(o, why.reason.p,
                  BH_MIN(why.reason.p ? why.reason.n : 0, (uint64_t)BH_PX_TEXT_MAX));
    return !i->x->failed_rc;
}
