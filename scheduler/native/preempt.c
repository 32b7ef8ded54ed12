/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/preempt.c - a plugin's PostFilter makes room by its own rules
 *
 * While the dry runs go on, the plugin's rules and the filters of all plugins are asked in turn: what says
 * in whose code this thread is, is put back each time.
 *
 * Runs in: the engine's thread.
 */
#include "scheduler/native/native_int.h"
#include "scheduler/preemption/preemption.h"

struct run {
    struct bh_native *in;
    struct bh_call *c;
    uint32_t may;
    const char *broke;
    const struct berth_preemption *how;
};

static struct berth_call *into(const struct run *r)
{
    struct bh_native *in = r->in;

    if (bh_native_mark && !in->of->process) {
        bh_native_mark->plugin = in->of->index;
        bh_native_mark->calls++;
        bh_native_mark->hook = BH_HOOK_POST_FILTER;
    }
    in->call = r->c;
    in->hook = BH_HOOK_POST_FILTER;
    in->may = r->may;
    in->broke = r->broke;
    bh_native_inside = in;
    return (struct berth_call *)(void *)r->c;
}

static void out_of(struct run *r)
{
    r->broke = r->in->broke;
    bh_native_inside = NULL;
    if (bh_native_mark)
        bh_native_mark->hook = BH_HOOK_NONE;
}

static bool waits_for(void *arg, const struct bh_pod_info *pod)
{
    struct run *r = arg;
    int32_t answer = r->how->waits_for(r->how->arg, into(r), bh_pod_handle(pod));

    out_of(r);
    return answer;
}

static bool may_evict(void *arg, const struct bh_pod_info *pod)
{
    struct run *r = arg;
    int32_t answer = r->how->evicts(r->how->arg, into(r), bh_pod_handle(pod));

    out_of(r);
    return answer;
}

static void begin(void *arg, const struct bh_node_info *node)
{
    struct run *r = arg;

    if (!r->how->begin)
        return;
    r->how->begin(r->how->arg, into(r), bh_node_handle(node));
    out_of(r);
}

static void moved(void *arg, const struct bh_pod_info *pod, int by)
{
    struct run *r = arg;

    if (!r->how->moved)
        return;
    r->how->moved(r->how->arg, into(r), bh_pod_handle(pod), by);
    out_of(r);
}

static const struct bh_status *check(void *arg, const struct bh_node_info *node,
                                     enum bh_victims_when when, struct bh_arena *a)
{
    static const uint32_t whens[] = {[BH_VICTIMS_NONE] = BERTH_EVICT_NONE,
                                     [BH_VICTIMS_OFF] = BERTH_EVICT_OFF,
                                     [BH_VICTIMS_FIT] = BERTH_EVICT_FITS,
                                     [BH_VICTIMS_NO_LONGER] = BERTH_EVICT_GONE};
    struct run *r = arg;
    struct berth_why why = {.size = sizeof why};

    if (!r->how->check)
        return NULL;
    int32_t code = r->how->check(r->how->arg, into(r), bh_node_handle(node), whens[when], &why);
    out_of(r);
    if (code == BERTH_SUCCESS)
        return NULL;
    if (code != BERTH_UNSCHEDULABLE && code != BERTH_UNRESOLVABLE && code != BERTH_ERROR)
        return bh_status_new(a, BH_ERROR, NULL, "it may not return %d there", (int)code);
    if (!why.reason.p || !why.reason.n || why.reason.n > 1024 || !bh_native_is_text(why.reason))
        return bh_status_new(a, (enum bh_code)code, NULL, "plugin \"%s\" gave no reason",
                             r->in->of->d.name);
    return bh_status_new(a, (enum bh_code)code, NULL, "%.*s", (int)why.reason.n, why.reason.p);
}

/* What is wrong with the order; NULL: nothing. */
static const char *wrong_with(const struct bh_native *in, const struct berth_preemption *how)
{
    if (in->hook != BH_HOOK_POST_FILTER || !in->diagnosis || in->ran)
        return "it called preemption->run outside of PostFilter, or twice";
    if (how->size < sizeof *how || !how->waits_for || !how->evicts)
        return "it called preemption->run without waits_for() or evicts()";
    if (how->flags & ~BERTH_PREEMPT_ASCENDING)
        return "it called preemption->run with flags that this Berth does not know";
    if (how->min_candidates_percentage < 0 || how->min_candidates_percentage > 100 ||
        how->min_candidates_absolute < 0)
        return "it called preemption->run with a share of nodes that is not 0 to 100 percent";
    return NULL;
}

static int32_t preemption_run(struct berth_call *c, const struct berth_preemption *how,
                              struct berth_why *why)
{
    struct bh_native *in = bh_native_callback(c, "run");

    if (!in)
        return BERTH_ERROR;
    const char *wrong = wrong_with(in, how);
    if (wrong) {
        in->broke = wrong;
        return BERTH_ERROR;
    }
    in->ran = true; /* its callbacks may not either */
    struct run r = {in, in->call, in->may, in->broke, how};
    const struct bh_preemption_args args = {
        .min_candidates_percentage = how->min_candidates_percentage,
        .min_candidates_absolute = how->min_candidates_absolute};
    const struct bh_victim_rules rules = {.arg = &r,
                                          .ascending = how->flags & BERTH_PREEMPT_ASCENDING,
                                          .waits_for = waits_for,
                                          .begin = begin,
                                          .may_evict = may_evict,
                                          .moved = moved,
                                          .check = check};
    out_of(&r);
    const struct bh_status *s = bh_preempt_by(r.c, &args, &rules, in->diagnosis, in->preempted);
    into(&r);
    in->found = !s;
    in->no_room = s;
    if (!s)
        return BERTH_SUCCESS;
    struct bh_str text = bh_str_c(bh_status_message(r.c->arena, s));
    in->no_room_text = text.p;
    why->reason = (struct berth_str){text.p, text.n};
    return (int32_t)s->code;
}

const struct berth_host_preemption bh_native_preemption = {
    .size = sizeof bh_native_preemption,
    .run = preemption_run,
};
