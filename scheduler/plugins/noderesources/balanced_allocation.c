/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/balanced_allocation.c - nodes whose resources fill up evenly are
 * better
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go; differences:
 * none.
 */
#include <math.h>

#include "scheduler/plugins/noderesources/resources.h"
#include "scheduler/plugins/registry.h"

/* How even the fractions in use are, 0..100. The order of the floating point operations is
 * upstream's: another order changes the last bit and with it the score. */
static int64_t evenness(const struct bh_res_view *v, bool with_pod)
{
    double f[BH_RES_MAX], sum = 0, std = 0;

    for (uint32_t i = 0; i < v->n; i++) {
        f[i] = (double)(with_pod ? v->v[i].requested : v->v[i].used) / (double)v->v[i].alloc;
        if (f[i] > 1)
            f[i] = 1;
        sum += f[i];
    }
    if (v->n == 2) {
        std = fabs((f[0] - f[1]) / 2);
    } else if (v->n > 2) {
        double mean = sum / (double)v->n, squares = 0;
        for (uint32_t i = 0; i < v->n; i++)
            squares = squares + (f[i] - mean) * (f[i] - mean);
        std = sqrt(squares / (double)v->n);
    }
    return (int64_t)((1 - std) * 100.0);
}

/* 75 = the pod leaves the balance as it is; more = it improves it. */
static int64_t balance(const struct bh_res_view *v)
{
    return 50 + (50 + evenness(v, true) - evenness(v, false)) / 2;
}

static const int64_t *requests_of(struct bh_call *c)
{
    const struct bh_res_list *l = c->args;
    int64_t *q = bh_arena_new_array(c->arena, int64_t, l->n);

    for (uint32_t i = 0; i < l->n; i++)
        q[i] = bh_res_request(&l->v[i], c->pod->shape, &c->pod->shape->used);
    return q;
}

static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n)
{
    const struct bh_res_list *l = c->args;
    const int64_t *q = requests_of(c);
    bool any = false;

    (void)rows;
    (void)n;
    for (uint32_t i = 0; i < l->n; i++)
        any |= q[i] != 0;
    c->pre_score_state = (void *)(uintptr_t)q;
    return any ? NULL : &bh_status_skip;
}

/* PreScore may be disabled while Score is not. */
static const int64_t *state_of(struct bh_call *c)
{
    return c->pre_score_state ? c->pre_score_state : requests_of(c);
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret)
{
    struct bh_res_view v;

    bh_res_view_node(&v, c->args, state_of(c), node, false);
    *ret = balance(&v);
    return NULL;
}

static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    const int64_t *q = state_of(c);
    struct bh_res_columns cols;
    struct bh_res_view v;

    bh_res_columns_resolve(&cols, c->args, q, &c->cache->cols, false);
    for (uint32_t i = 0; i < n; i++) {
        if (bh_likely(cols.complete))
            bh_res_view_row(&v, &cols, rows[i]);
        else
            bh_res_view_node(&v, c->args, q, c->cache->rows[rows[i]], false);
        ret[i] = balance(&v);
    }
}

/* ---- args -------------------------------------------------------------------------------------
 */

static void args_check(const struct bh_json *args, const char *path, struct bh_field_errors *errs)
{
    const struct bh_json *list = bh_json_get(args, "resources");
    unsigned i = 0;

    bh_json_each(r, list)
    {
        const char *name = bh_json_get_str(r, "name");
        int64_t weight = bh_json_get_i64(r, "weight", 0);
        for (const struct bh_json *q = list->c.first; q != r; q = q->next) {
            if (name && bh_json_get_str(q, "name") && bh_streq(name, bh_json_get_str(q, "name"))) {
                bh_field_error(errs, "%s.resources[%u].name: Duplicate value: \"%s\"", path, i,
                               name);
                break;
            }
        }
        if (weight != 0 && weight != 1)
            bh_field_error(errs, "%s.resources[%u].weight: Invalid value: %lld: must be 1", path, i,
                           (long long)weight);
        i++;
    }
    if (i > BH_RES_MAX)
        bh_field_error(errs, "%s.resources: Too many: %u: must have at most %u items", path, i,
                       BH_RES_MAX);
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err)
{
    struct bh_res_list *l = bh_arena_new(env->arena, struct bh_res_list);

    (void)err;
    bh_res_list_new(l, bh_json_get(args, "resources"), env->tab);
    *ret = l;
    return 0;
}

static const struct bh_event_reg events[] = {{.actions = 0}};

static const struct bh_field resource_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"weight", BH_FIELD_INT64, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field schema[] = {
    {"resources", BH_FIELD_OBJECTS, resource_schema, "ResourceSpec"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

const struct bh_plugin bh_plugin_balanced_allocation = {
    .abi = BH_PLUGIN_ABI,
    .size = sizeof(struct bh_plugin),
    .name = "NodeResourcesBalancedAllocation",
    .points = BH_POINT_BIT(BH_POINT_PRE_SCORE) | BH_POINT_BIT(BH_POINT_SCORE),
    .flags = BH_PLUGIN_NODE_LOCAL,
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .events = events,
    .pre_score = pre_score,
    .score = score,
    .score_rows = score_rows,
};
