/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/volume_binding.c - claims find volumes, volumes find nodes
 *
 * Upstream: pkg/scheduler/framework/plugins/volumebinding; differences: PreBind's writes are a list
 *           for a binder (assume.c). The gate StorageCapacityScoring is off.
 */
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/volumebinding/binder.h"
#include "scheduler/plugins/volumebinding/hints.h"

#define BIND_TIMEOUT_S 600
#define SECOND_NS      ((int64_t)1000000000)

BH_STATUS_CONST(no_state, BH_ERROR, "VolumeBinding", "not found");

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    const struct bh_pod_claims *claims;

    if (!c->pod->shape->volumes.n)
        return &bh_status_skip;
    const struct bh_status *s = bh_claims_read(c, &claims);
    c->pre_filter_state = (void *)(uintptr_t)claims;
    return s ? s : claims ? NULL : &bh_status_skip;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    return bh_claims_filter(c, c->pre_filter_state, node->rec);
}

static const struct bh_overlay_ops overlay = {.ask = bh_claims_ask};

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    return bh_claims_can_rows(c->pre_filter_state)
               ? bh_claims_rows(c, c->pre_filter_state, rows, n)
               : bh_filter_one_by_one(c, &bh_plugin_volume_binding, rows, n);
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct bh_binder *b = bh_arena_new(env->arena, struct bh_binder);
    int64_t s = args ? bh_json_get_i64(args, "bindTimeoutSeconds", BIND_TIMEOUT_S) : BIND_TIMEOUT_S;

    *b = (struct bh_binder){.timeout_ns = BH_MIN(s, INT64_MAX / SECOND_NS) * SECOND_NS,
                            .objects = env->objects,
                            .reserved = env->reserved,
                            .labels = bh_calloc(1, sizeof *b->labels),
                            .volumes = bh_calloc(1, sizeof *b->volumes)};
    *ret = b;
    return 0;
}

static void args_free(void *args)
{
    struct bh_binder *b = args;

    bh_label_columns_fini(b->labels);
    free(b->labels);
    bh_volumes_fini(b->volumes);
    free(b->volumes);
}

static void args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path, struct bh_field_errors *errs)
{
    int64_t s = bh_json_get_i64(args, "bindTimeoutSeconds", BIND_TIMEOUT_S);
    const struct bh_json *shape = bh_json_get(args, "shape");
    const char *points = "";

    if (s < 0)
        bh_field_error(
            errs,
            "%s.bindTimeoutSeconds: Invalid value: %lld: invalid BindTimeoutSeconds, should "
            "not be a negative value",
            path, (long long)s);
    if (!shape || shape->type != BH_JSON_ARRAY)
        return;
    bh_json_each(p, shape)
        points =
            bh_arena_printf(errs->a, "%s%s{\"Utilization\":%lld,\"Score\":%lld}", points,
                            *points ? "," : "", (long long)bh_json_get_i64(p, "utilization", 0),
                            (long long)bh_json_get_i64(p, "score", 0));
    bh_field_error(errs,
                   "%s.shape: Invalid value: [%s]: unexpected field `shape`, remove it or turn on "
                   "the feature gate StorageCapacityScoring",
                   path, points);
}

static enum bh_hint class_changed(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_always(c->ev) || c->ev->object_changes & BH_CLASS_TOPOLOGIES);
}

static enum bh_hint csi_node_changed(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_always(c->ev) || c->ev->object_changes & BH_CSI_NODE_MIGRATION);
}

/* Upstream looks at inline volumes only; claims that are to be provisioned wait for it as well. */
static enum bh_hint csi_driver_changed(const struct bh_hint_call *c)
{
    const struct bh_volume *v = bh_shape_volumes(c->shape);

    if (c->ev->object_name == BH_SYM_NONE)
        return BH_QUEUE;
    if (!(c->ev->object_changes & BH_CSI_DRIVER_UNCHECKED))
        return BH_QUEUE_SKIP;
    for (uint32_t i = 0; i < c->shape->volumes.n; i++)
        if (bh_uses_claim(&v[i]) || (v[i].type == BH_VOL_CSI && v[i].source == c->ev->object_name))
            return BH_QUEUE;
    return BH_QUEUE_SKIP;
}

static enum bh_hint capacity_changed(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_always(c->ev) || c->ev->object_changes & BH_CAPACITY_GREW);
}

/* An assumed pod gave its volumes back without a volume being written. */
static enum bh_hint forgotten(const struct bh_hint_call *c)
{
    return bh_hint_if(c->ev->was_assumed && c->ev->old_shape &&
                      bh_shape_uses_claims(c->ev->old_shape, true));
}

#define ADD_OR_UPDATE (BH_EV_ADD | BH_EV_UPDATE)
static const struct bh_event_reg events[] = {
    {BH_ON_OBJECT, BH_KIND_STORAGECLASS, ADD_OR_UPDATE, class_changed},
    {BH_ON_OBJECT, BH_KIND_PERSISTENTVOLUMECLAIM, ADD_OR_UPDATE, bh_hint_own_claim},
    {BH_ON_OBJECT, BH_KIND_PERSISTENTVOLUME, ADD_OR_UPDATE, NULL},
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_LABEL},
    {.on = BH_ON_POD, .actions = BH_EV_DELETE, .hint = forgotten}, /* not upstream */
    {BH_ON_OBJECT, BH_KIND_CSINODE, ADD_OR_UPDATE, csi_node_changed},
    {BH_ON_OBJECT, BH_KIND_CSIDRIVER, BH_EV_UPDATE, csi_driver_changed},
    {BH_ON_OBJECT, BH_KIND_CSISTORAGECAPACITY, ADD_OR_UPDATE, capacity_changed},
    {.actions = 0},
};

static const struct bh_field schema[] = {
    {"bindTimeoutSeconds", BH_FIELD_INT64, NULL, NULL},
    {"shape", BH_FIELD_OBJECTS, bh_field_shape_point, "UtilizationShapePoint"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

/* The gate StorageCapacityScoring is off: PreScore skips, and what is never called gives 0. */
static const struct bh_status *skip_score(struct bh_call *c BH_UNUSED,
                                          const uint32_t *rows BH_UNUSED, uint32_t n BH_UNUSED)
{
    return &bh_status_skip;
}
static const struct bh_status *zero_score(struct bh_call *c BH_UNUSED,
                                          const struct bh_node_info *node BH_UNUSED, int64_t *ret)
{
    *ret = 0;
    return NULL;
}
static void zero_rows(struct bh_call *c BH_UNUSED, const uint32_t *rows BH_UNUSED, uint32_t n,
                      int64_t *ret)
{
    memset(ret, 0, n * sizeof *ret);
}

const struct bh_plugin bh_plugin_volume_binding = {
    BH_PLUGIN_HEAD("VolumeBinding"),
    .flags = BH_PLUGIN_OVERLAY | BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_RESERVES_CLAIMS,
    .events = events,
    .pre_filter = pre_filter,
    .filter = filter,
    .filter_rows = filter_rows,
    .without_pre_filter = &no_state,
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .args_free = args_free,
    .pre_score = skip_score,
    .score = zero_score,
    .score_rows = zero_rows,
    .reserve = bh_claims_reserve,
    .unreserve = bh_claims_unreserve,
    .pre_bind = bh_claims_check,
    .idle = bh_volumes_idle,
    .overlay = &overlay,
};
