/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/preemption/budgets.c - pod disruption budgets against a list of victims
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
 *           (filterPodsWithPDBViolation); differences: none.
 */
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/preemption/preemption.h"

/* Budgets without a selector, with an empty or an invalid one cover no pod. */
void bh_budgets_list(struct bh_budgets *out, const struct bh_objects *o, struct bh_arena *a)
{
    uint32_t n = 0;

    bh_objects_each(ob, o, BH_KIND_PODDISRUPTIONBUDGET)
        n++;

    *out = (struct bh_budgets){.v = bh_arena_new_array(a, struct bh_budget, n ? n : 1)};
    bh_objects_each(ob, o, BH_KIND_PODDISRUPTIONBUDGET) {
        const K8s__PodDisruptionBudget *p = (const K8s__PodDisruptionBudget *)(const void *)ob->msg;
        const K8s__LabelSelector *s = p->spec ? p->spec->selector : NULL;
        if (!s || s->n_matchlabels + s->n_matchexpressions == 0 || !bh_label_selector_parses(s))
            continue;
        out->v[out->n++] = (struct bh_budget){
            .ns = ob->ns, .pdb = p, .allowed = p->status ? p->status->disruptionsallowed : 0};
    }
}

static const char *label(const struct bh_symtab *tab, const struct bh_shape_rec *s, const char *key)
{
    const struct bh_kv *l = bh_rec_at(s, s->labels, struct bh_kv);
    bh_sym k = bh_sym_find(tab, key, strlen(key)), v;

    return k != BH_SYM_NONE && bh_labels_get(l, s->labels.n, k, &v) ? bh_sym_text(tab, v) : NULL;
}

static bool requirement(const K8s__LabelSelectorRequirement *r, const char *have)
{
    bool in = false;

    for (size_t i = 0; have && i < r->n_values; i++)
        in |= bh_streq(have, r->values[i]);
    if (bh_streq(r->operator_, "In"))
        return in;
    if (bh_streq(r->operator_, "NotIn"))
        return !in;
    return bh_streq(r->operator_, "Exists") ? have != NULL : have == NULL;
}

static bool covers(const struct bh_budget *b, const struct bh_symtab *tab,
                   const struct bh_pod_info *pod)
{
    const K8s__LabelSelector *s = b->pdb->spec->selector;

    if (!bh_str_eqc(bh_rec_text(pod->rec, pod->rec->namespace_), b->ns))
        return false;
    for (size_t i = 0; i < s->n_matchlabels; i++) {
        const char *have = label(tab, pod->shape, s->matchlabels[i]->key);
        const char *want = s->matchlabels[i]->value;
        if (!have || !bh_streq(have, want ? want : ""))
            return false;
    }
    for (size_t i = 0; i < s->n_matchexpressions; i++)
        if (!requirement(s->matchexpressions[i],
                         label(tab, pod->shape, s->matchexpressions[i]->key)))
            return false;
    return true;
}

static bool already_disrupted(const struct bh_budget *b, const struct bh_pod_info *pod)
{
    const K8s__PodDisruptionBudgetStatus *st = b->pdb->status;

    for (size_t i = 0; st && i < st->n_disruptedpods; i++)
        if (bh_str_eqc(bh_rec_text(pod->rec, pod->rec->name), st->disruptedpods[i]->key))
            return true;
    return false;
}

bool bh_budgets_pay(const struct bh_budgets *b, int64_t *left, const struct bh_symtab *tab,
                    const struct bh_pod_info *pod)
{
    bool violating = false;

    for (uint32_t k = 0; k < b->n && pod->shape->labels.n; k++)
        if (covers(&b->v[k], tab, pod) && !already_disrupted(&b->v[k], pod))
            violating |= --left[k] < 0;
    return violating;
}

int64_t *bh_budgets_left(const struct bh_budgets *b, struct bh_arena *a)
{
    int64_t *left = bh_arena_new_array(a, int64_t, b->n ? b->n : 1);

    for (uint32_t k = 0; k < b->n; k++)
        left[k] = b->v[k].allowed;
    return left;
}

void bh_budgets_split(const struct bh_budgets *b, struct bh_arena *a, const struct bh_symtab *tab,
                      struct bh_pod_info *const *pods, uint32_t n, bool *ret_violating)
{
    int64_t *left = bh_budgets_left(b, a);

    for (uint32_t i = 0; i < n; i++)
        ret_violating[i] = bh_budgets_pay(b, left, tab, pods[i]);
}
