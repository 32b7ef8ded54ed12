/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/extend.c - what HTTP extenders say about the candidates
 *
 * One after the other; each sees what the former left, may drop nodes and choose other victims, and
 * what it answers replaces the candidates. The ordinary choice follows, with its numbers.
 *
 * Runs in:    the engine's thread; waits for the extenders.
 * Upstream:   pkg/scheduler/framework/preemption/preemption.go (callExtenders), pkg/scheduler/
 *             extender.go (convertToVictims); differences: candidates are in the order of their
 *             names.
 */
#include "scheduler/extender/extender.h"
#include "scheduler/preemption/preemption.h"

static int by_node(const void *a, const void *b)
{
    return strcmp(((const struct bh_ext_victims *)a)->node,
                  ((const struct bh_ext_victims *)b)->node);
}

static struct bh_ext_victims *to_victims(struct bh_call *c, const struct bh_candidate *cand,
                                         uint32_t n)
{
    struct bh_ext_victims *v = bh_arena_new_array(c->arena, struct bh_ext_victims, n);

    for (uint32_t i = 0; i < n; i++) {
        v[i].node = bh_sym_text(c->tab, c->cache->rows[cand[i].row]->name);
        v[i].violations = cand[i].violating;
        v[i].n_pods = cand[i].n_victims;
        v[i].pods = bh_arena_new_array(c->arena, struct bh_ext_victim, cand[i].n_victims);
        for (uint32_t k = 0; k < cand[i].n_victims; k++) {
            const struct bh_pod_rec *r = cand[i].victims[k]->rec;
            v[i].pods[k] = (struct bh_ext_victim){.namespace_ = bh_rec_text(r, r->namespace_),
                                                  .name = bh_rec_text(r, r->name),
                                                  .uid = bh_rec_text(r, r->uid)};
        }
    }
    if (n > 1)
        qsort(v, n, sizeof *v, by_node);
    return v;
}

/* One node of a reply; NULL, or what is wrong with it. */
static const char *to_candidate(struct bh_call *c, uint32_t i, const struct bh_ext_victims *v,
                                struct bh_candidate *ret)
{
    bh_sym name = bh_sym_find(c->tab, v->node, strlen(v->node));
    const struct bh_node_info *ni = name != BH_SYM_NONE ? bh_cache_node(c->cache, name) : NULL;

    if (!ni)
        return bh_arena_printf(c->arena, "nodeinfo not found for node name \"%.*s\"",
                               (int)BH_EXT_TEXT_MAX, v->node);
    *ret = (struct bh_candidate){.row = ni->row, .violating = v->violations};
    ret->victims = bh_arena_new_array(c->arena, struct bh_pod_info *, ni->n_pods + 1);
    for (uint32_t k = 0; k < v->n_pods; k++) {
        struct bh_pod_info *p = NULL;
        bool listed = false;
        for (uint32_t j = 0; j < ni->n_pods && !p; j++)
            if (bh_str_eq(bh_rec_text(ni->pods[j]->rec, ni->pods[j]->rec->uid), v->pods[k].uid))
                p = ni->pods[j];
        if (!p)
            return bh_ext_no_victim(c->cycle->ext, i, v->pods[k].uid, v->node);
        for (uint32_t j = 0; j < ret->n_victims; j++)
            listed |= ret->victims[j] == p;
        if (!listed)
            ret->victims[ret->n_victims++] = p;
    }
    return NULL;
}

/* The reply of extender i as candidates; NULL, or what is wrong with it. */
static const char *to_candidates(struct bh_call *c, uint32_t i, const struct bh_ext_victims *v,
                                 uint32_t n, struct bh_candidate **ret, uint32_t *ret_n)
{
    struct bh_candidate *cand = bh_arena_new_array(c->arena, struct bh_candidate, n + 1);
    bool ignorable = bh_ext_ignorable(c->cycle->ext, i);
    uint32_t m = 0;

    for (uint32_t k = 0; k < n; k++) {
        const char *error = to_candidate(c, i, &v[k], &cand[k]);
        if (error)
            return error;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (cand[k].n_victims)
            cand[m++] = cand[k];
        else if (!ignorable)
            return bh_arena_printf(c->arena, "expected at least one victim pod on node \"%s\"",
                                   v[k].node);
    }
    *ret = cand;
    *ret_n = m;
    return NULL;
}

static const char *ask(struct bh_call *c, uint32_t i, struct bh_candidate **cand, uint32_t *n)
{
    const struct bh_pod_rec *r = c->pod->rec;
    const struct bh_ext_pod pod = {.namespace_ = bh_rec_text(r, r->namespace_),
                                   .name = bh_rec_text(r, r->name),
                                   .uid = bh_rec_text(r, r->uid)};
    struct bh_ext *x = c->cycle->ext;
    struct bh_ext_victims *reply = NULL;
    uint32_t n_reply = 0;
    const char *error = bh_ext_preempt(x, i, &pod, to_victims(c, *cand, *n), *n, &reply, &n_reply);

    if (error)
        return error;
    error = to_candidates(c, i, reply, n_reply, cand, n);
    if (error)
        bh_ext_complain(x, i, BH_EXT_PREEMPT, error);
    return error;
}

const struct bh_status *bh_extend_candidates(struct bh_call *c, struct bh_candidate **cand,
                                             uint32_t *n)
{
    const struct bh_cycle *cy = c->cycle;

    for (uint32_t i = 0; cy->ext && i < bh_ext_count(cy->ext) && *n; i++) {
        if (!(cy->ext_interested >> i & 1) || !bh_ext_has(cy->ext, i, BH_EXT_PREEMPT))
            continue;
        const char *error = ask(c, i, cand, n);
        if (error && !bh_ext_ignorable(cy->ext, i))
            return bh_status_new(c->arena, BH_ERROR, NULL, "%s", error);
    }
    return NULL;
}
