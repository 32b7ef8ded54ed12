/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/resources.c - the configured resource lists of the two scorers
 *
 * Upstream:   pkg/scheduler/framework/plugins/noderesources/resource_allocation.go; differences:
 *             none.
 */
#include "common/k8s/compile.h"
#include "scheduler/plugins/noderesources/class_devices.h"

const struct bh_field bh_res_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"weight", BH_FIELD_INT64, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

static void add_spec(struct bh_res_list *l, const char *name, int64_t weight, struct bh_symtab *tab)
{
    struct bh_res_spec *r = &l->v[l->n++];

    *r = (struct bh_res_spec){.kind = BH_RES_OTHER,
                              .name = bh_sym_internc(tab, name),
                              .weight = weight ? weight : 1,
                              .scalar = bh_resource_is_scalar(name)};
    if (bh_streq(name, "cpu"))
        r->kind = BH_RES_CPU;
    else if (bh_streq(name, "memory"))
        r->kind = BH_RES_MEMORY;
    else if (bh_streq(name, "ephemeral-storage"))
        r->kind = BH_RES_EPHEMERAL;
}

void bh_res_list_new(struct bh_res_list *l, const struct bh_json *resources, struct bh_symtab *tab)
{
    l->n = 0;
    bh_json_each(r, resources) {
        const char *name = bh_json_get_str(r, "name");
        if (l->n < BH_RES_MAX)
            add_spec(l, name ? name : "", bh_json_get_i64(r, "weight", 0), tab);
    }
    if (!l->n) {
        add_spec(l, "cpu", 1, tab);
        add_spec(l, "memory", 1, tab);
    }
}

static int64_t request_of(const struct bh_res_spec *r, const void *rec, const struct bh_requests *q)
{
    switch (r->kind) {
    case BH_RES_CPU:
        return q->cpu_milli;
    case BH_RES_MEMORY:
        return q->memory_bytes;
    case BH_RES_EPHEMERAL:
        return q->ephemeral_bytes;
    case BH_RES_OTHER:
        break;
    }
    return bh_requests_scalar(rec, q, r->name, NULL);
}

const int64_t *bh_res_requests(struct bh_call *c, const struct bh_res_list *l,
                               const struct bh_requests *q)
{
    int64_t *v = bh_arena_new_array(c->arena, int64_t, l->n);

    for (uint32_t i = 0; i < l->n; i++)
        v[i] = request_of(&l->v[i], c->pod->shape, q);
    return v;
}

void bh_res_view_node(struct bh_res_view *out, const struct bh_res_list *l, const int64_t *requests,
                      const struct bh_node_info *ni, bool nonzero, struct bh_class_devices *devices)
{
    out->n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct bh_res_spec *r = &l->v[i];
        int64_t alloc = 0, used = 0;
        if (requests[i] == 0 && r->scalar)
            continue;
        switch (r->kind) {
        case BH_RES_CPU:
            alloc = ni->rec->alloc_cpu_milli;
            used = bh_sum_i64(nonzero ? ni->nonzero_cpu_milli : ni->used_cpu_milli);
            break;
        case BH_RES_MEMORY:
            alloc = ni->rec->alloc_memory_bytes;
            used = bh_sum_i64(nonzero ? ni->nonzero_memory_bytes : ni->used_memory_bytes);
            break;
        case BH_RES_EPHEMERAL:
            alloc = ni->rec->alloc_ephemeral_bytes;
            used = bh_sum_i64(ni->used_ephemeral_bytes);
            break;
        case BH_RES_OTHER:
            alloc = bh_node_rec_scalar(ni->rec, r->name, NULL);
            used = bh_sum_i64(bh_node_info_used_scalar(ni, r->name));
            break;
        }
        if (alloc == 0 && devices && r->kind == BH_RES_OTHER)
            bh_class_devices_count(devices, i, ni->rec, &alloc, &used);
        if (alloc == 0)
            continue;
        out->v[out->n++] =
            (struct bh_res_figures){alloc, used, bh_add_sat(used, requests[i]), r->weight};
    }
}

void bh_res_columns_resolve(struct bh_res_columns *out, const struct bh_res_list *l,
                            const int64_t *requests, const struct bh_columns *cols, bool nonzero,
                            const struct bh_class_devices *devices)
{
    out->n = 0;
    out->complete = !devices;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct bh_res_spec *r = &l->v[i];
        const struct bh_scalar_column *s = NULL;
        const int64_t *alloc = NULL, *used = NULL;

        if (requests[i] == 0 && r->scalar)
            continue;
        switch (r->kind) {
        case BH_RES_CPU:
            alloc = cols->alloc_cpu_milli;
            used = nonzero ? cols->nonzero_cpu_milli : cols->used_cpu_milli;
            break;
        case BH_RES_MEMORY:
            alloc = cols->alloc_memory_bytes;
            used = nonzero ? cols->nonzero_memory_bytes : cols->used_memory_bytes;
            break;
        case BH_RES_EPHEMERAL:
            alloc = cols->alloc_ephemeral_bytes;
            used = cols->used_ephemeral_bytes;
            break;
        case BH_RES_OTHER:
            s = bh_columns_scalar(cols, r->name);
            if (!s && cols->n_scalars == BH_COLUMNS_SCALARS)
                out->complete = false;
            if (!s)
                continue; /* no node and no pod on a node knows it */
            alloc = s->alloc;
            used = s->used;
            break;
        }
        out->v[out->n++] = (struct bh_res_column){alloc, used, requests[i], r->weight};
    }
}
