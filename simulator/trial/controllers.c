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

struct bh_trial_budget {
    struct bh_trial_budget *next;
    const struct bh_kind_info *kind;
    const char *ns, *name;
    struct bh_selector *selector;
    char *json;   /* the object, its status as below */
    bool derived; /* the file gave no status */
    bool counted; /* allowed follows from the counts */
    int64_t expected, healthy, desired, allowed;
};

static int64_t number(const struct bh_json *st, const char *key)
{
    return bh_json_get_i64(st, key, 0);
}

static struct bh_json *tree_of(struct bh_arena *a, const struct bh_trial_budget *b)
{
    struct bh_json *v = NULL;

    int rc = bh_json_parse(a, b->json, strlen(b->json), 0, &v, NULL);
    bh_assert(rc == 0); /* we wrote it */
    return v;
}

int bh_trial_budgets_add(struct bh_trial *t, struct bh_arena *a, const struct bh_trial_item *it,
                         const struct bh_json *obj, struct bh_err *err)
{
    const struct bh_json *st = bh_json_get(obj, "status");
    struct bh_selector *selector = NULL;
    struct bh_buf json = {0};
    int rc = bh_selector_from_json(bh_json_path(obj, "spec.selector"), &selector, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "spec.selector");
    bh_json_write(&json, obj);
    struct bh_trial_budget *b = bh_calloc(1, sizeof *b);
    *b = (struct bh_trial_budget){.next = t->budgets,
                                  .kind = it->kind,
                                  .ns = it->ns,
                                  .name = it->name,
                                  .selector = selector,
                                  .json = bh_buf_take(&json),
                                  .derived = !st || st->type != BH_JSON_OBJECT,
                                  .expected = number(st, "expectedPods"),
                                  .healthy = number(st, "currentHealthy"),
                                  .desired = number(st, "desiredHealthy"),
                                  .allowed = number(st, "disruptionsAllowed")};
    b->counted = b->derived || b->allowed == BH_MAX(b->healthy - b->desired, 0);
    t->budgets = b;
    return bh_offline_put_tree(&t->w, a, it->kind, obj, err);
}

/* ---- which pods -------------------------------------------------------------------------------
 */

struct labels {
    const struct bh_symtab *tab;
    const struct bh_shape_rec *shape;
};

static const char *label(void *arg, const char *key)
{
    const struct labels *l = arg;
    bh_sym k = bh_sym_find(l->tab, key, strlen(key)), v;

    return k != BH_SYM_NONE && bh_labels_get(bh_rec_at(l->shape, l->shape->labels, struct bh_kv),
                                             l->shape->labels.n, k, &v)
               ? bh_sym_text(l->tab, v)
               : NULL;
}

static bool covers(const struct bh_trial *t, const struct bh_trial_budget *b,
                   const struct bh_shape_rec *shape)
{
    struct labels l = {.tab = bh_engine_symtab(t->w.engine), .shape = shape};

    return bh_streq(bh_sym_text(l.tab, shape->namespace_), b->ns) &&
           bh_selector_match(b->selector, label, &l);
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

/* ---- what it allows ---------------------------------------------------------------------------
 */

/* IntOrString of a number of pods, percentages rounded up. */
static int64_t scaled(const struct bh_json *v, int64_t total)
{
    const char *s = bh_json_cstr(v);
    int64_t n = 0;

    if (!s)
        return bh_json_i64(v, &n) ? n : 0;
    return (strtoll(s, NULL, 10) * total + 99) / 100;
}

static void write_status(struct bh_trial *t, struct bh_trial_budget *b)
{
    struct bh_buf json = {0};
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    struct bh_json *o = tree_of(&a, b), *st = bh_json_obj_at(&a, o, "status");
    bh_json_set_i64(&a, st, "expectedPods", b->expected);
    bh_json_set_i64(&a, st, "currentHealthy", b->healthy);
    bh_json_set_i64(&a, st, "desiredHealthy", b->desired);
    bh_json_set_i64(&a, st, "disruptionsAllowed", b->allowed);
    bh_json_write(&json, o);
    free(b->json);
    b->json = bh_buf_take(&json);
    int rc = bh_offline_put_tree(&t->w, &a, b->kind, o, NULL);
    bh_assert(rc == 0); /* it went in before */
}

void bh_trial_budgets_settle(struct bh_trial *t)
{
    for (struct bh_trial_budget *b = t->budgets; b; b = b->next) {
        BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
        if (!b->derived)
            continue;
        const struct bh_json *spec = bh_json_get(tree_of(&a, b), "spec");
        const struct bh_json *most = bh_json_get(spec, "maxUnavailable");
        b->desired = most ? b->expected - scaled(most, b->expected)
                          : scaled(bh_json_get(spec, "minAvailable"), b->expected);
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
        free(b->json);
        free(b);
    }
}
