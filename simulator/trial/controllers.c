/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/controllers.c - disruption budgets follow pods that come and go
 *
 * A disruption budget's status is worked out at the start when the file gives none, and kept
 * current as pods are placed and evicted; a pod that has a node is healthy here.
 * Upstream: pkg/controller/disruption; differences: the expected number of pods is
 * the number of pods that the budget covers, not what their controllers want.
 */
#include "simulator/trial/trial.h"
#include "common/k8s/selector.h"
#include "simulator/server/tree.h"

struct bh_trial_budget {
    struct bh_trial_budget *next;
    const struct bh_kind_info *kind;
    const char *ns, *name;
    struct bh_selector *selector;
    struct bh_arena a;
    struct bh_json *obj; /* in a; its status as below */
    bool derived;        /* the file gave no status */
    bool counted;        /* allowed follows from the counts */
    int64_t expected, healthy, desired, allowed;
};

int bh_trial_budgets_add(struct bh_trial *t, struct bh_arena *a, const struct bh_trial_item *it,
                         const struct bh_json *obj, struct bh_err *err)
{
    const struct bh_json *st = bh_json_get(obj, "status");
    struct bh_selector *selector = NULL;
    int rc = bh_selector_from_json(bh_json_path(obj, "spec.selector"), &selector, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "spec.selector");
    struct bh_trial_budget *b = bh_calloc(1, sizeof *b);
    *b = (struct bh_trial_budget){.next = t->budgets,
                                  .kind = it->kind,
                                  .ns = it->ns,
                                  .name = it->name,
                                  .selector = selector,
                                  .derived = !st || st->type != BH_JSON_OBJECT,
                                  .expected = bh_json_get_i64(st, "expectedPods", 0),
                                  .healthy = bh_json_get_i64(st, "currentHealthy", 0),
                                  .desired = bh_json_get_i64(st, "desiredHealthy", 0),
                                  .allowed = bh_json_get_i64(st, "disruptionsAllowed", 0)};
    b->obj = bh_json_clone(&b->a, obj);
    b->counted = b->derived || b->allowed == BH_MAX(b->healthy - b->desired, 0);
    t->budgets = b;
    return bh_offline_put_tree(&t->w, a, it->kind, obj, err);
}

/* ---- which pods ------------------------------------------------------------------------------ */

static bool covers(const struct bh_trial *t, const struct bh_trial_budget *b,
                   const struct bh_shape_rec *shape)
{
    const struct bh_symtab *tab = bh_engine_symtab(t->w.engine);

    return bh_streq(bh_sym_text(tab, shape->namespace_), b->ns) &&
           bh_selector_match_labels(b->selector, bh_rec_at(shape, shape->labels, struct bh_kv),
                                    shape->labels.n, tab);
}

void bh_trial_budgets_see(struct bh_trial *t, const struct bh_shape_rec *shape, bool placed)
{
    for (struct bh_trial_budget *b = t->budgets; b; b = b->next) {
        if (!b->derived || !covers(t, b, shape))
            continue;
        b->expected++;
        b->healthy += placed;
    }
}

/* ---- what it allows -------------------------------------------------------------------------- */

static void write_status(struct bh_trial *t, struct bh_trial_budget *b)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_json *o = bh_json_add(&a, bh_json_clone(&a, b->obj),
                                    "status: {expectedPods: %ld, currentHealthy: %ld, "
                                    "desiredHealthy: %ld, disruptionsAllowed: %ld}",
                                    b->expected, b->healthy, b->desired, b->allowed);

    int rc = bh_offline_put_tree(&t->w, &a, b->kind, o, NULL);
    bh_assert(rc == 0); /* it went in before */
}

void bh_trial_budgets_settle(struct bh_trial *t)
{
    for (struct bh_trial_budget *b = t->budgets; b; b = b->next) {
        const struct bh_json *spec = bh_json_get(b->obj, "spec");
        const struct bh_json *most = bh_json_get(spec, "maxUnavailable");
        if (!b->derived)
            continue;
        b->desired = most ? b->expected - bh_tree_scaled(most, b->expected, true)
                          : bh_tree_scaled(bh_json_get(spec, "minAvailable"), b->expected, true);
        b->desired = BH_MAX(b->desired, 0);
        b->allowed = BH_MAX(b->healthy - b->desired, 0);
        write_status(t, b);
    }
}

void bh_trial_budgets_follow(struct bh_trial *t, const struct bh_shape_rec *shape, int healthy)
{
    for (struct bh_trial_budget *b = t->budgets; b; b = b->next) {
        int64_t before = b->allowed;
        if (!covers(t, b, shape))
            continue;
        b->healthy = BH_MAX(b->healthy + healthy, 0);
        if (b->counted)
            b->allowed = BH_MAX(b->healthy - b->desired, 0);
        else if (healthy < 0)
            b->allowed = BH_MAX(b->allowed - 1, 0);
        if (b->allowed != before)
            write_status(t, b);
    }
}

void bh_trial_budgets_fini(struct bh_trial *t)
{
    for (struct bh_trial_budget *b = t->budgets, *next; b; b = next) {
        next = b->next;
        bh_selector_free(b->selector);
        bh_arena_fini(&b->a);
        free(b);
    }
}
