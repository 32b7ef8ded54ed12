/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/coscheduling/resources.c - has the cluster what a group asks for at least?
 *
 * Upstream: scheduler-plugins, pkg/coscheduling/core/core.go (CheckClusterResource), apimachinery's
 *           Quantity as Go prints it; differences: nodes come in the order of their coming (upstream: as
 *           its snapshot lists them), which can tell only where a node has less than nothing left. A
 *           minResources without entries counts as none.
 */
#include "scheduler/plugins/coscheduling/coscheduling.h"

#define NANO_DIGITS 9

/* A quantity as Go keeps it: a number of units of 10^scale. */
struct need {
    const char *name;
    bh_nano left;
    int scale;
    const char *format;
    bool met;
};
struct own { /* a pod of the group on a node */
    uint32_t row;
    const struct bh_shape_rec *shape;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct need *)a)->name, ((const struct need *)b)->name);
}

static int by_row(const void *a, const void *b)
{
    const uint32_t x = ((const struct own *)a)->row, y = ((const struct own *)b)->row;

    return (x > y) - (x < y);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

/* Scale and format that Go's parser gives the text. */
static void describe(const char *text, struct need *n)
{
    static const char si[] = "num kMGTPE"; /* 10^-9, 10^-6 ... */
    const char *end = text + strspn(text, "+-0123456789.");
    const char *dot = memchr(text, '.', (size_t)(end - text));
    const char *p = *end ? strchr(si, *end) : NULL;

    n->format = "DecimalSI";
    n->scale = 0;
    if (end[0] && end[1] == 'i') {
        n->format = "BinarySI";
        return;
    }
    if ((*end == 'e' || *end == 'E') && end[1]) {
        n->format = "DecimalExponent";
        n->scale = (int)BH_MAX(-99, BH_MIN(strtol(end + 1, NULL, 10), 99));
    } else if (p) {
        n->scale = (int)(p - si - 3) * 3;
    }
    n->scale -= dot ? (int)(end - dot - 1) : 0;
}

/* A name may be given twice: the last counts. */
static struct need *need_of(struct need *v, uint32_t *n, const char *name)
{
    for (uint32_t i = 0; i < *n; i++)
        if (bh_streq(v[i].name, name))
            return &v[i];
    v[*n].name = name;
    return &v[(*n)++];
}

static struct need *needs_of(struct bh_call *c, const K8s__CoschedulingPodGroupSpec *spec,
                             uint32_t *ret_n)
{
    struct need *v = bh_arena_new_array(c->arena, struct need, spec->n_minresources + 1);
    uint32_t n = 0;

    for (size_t i = 0; i < spec->n_minresources; i++) {
        const K8s__QuantityEntry *e = spec->minresources[i];
        const char *text = e->value && e->value->string ? e->value->string : "0";
        struct need *need = need_of(v, &n, e->key);
        describe(text, need);
        if (bh_quantity_parse(text, strlen(text), &need->left) < 0) /* the watcher refuses these */
            need->left = 0;
    }
    struct need *pods = need_of(v, &n, "pods");
    pods->left = (bh_nano)spec->minmember * 1000000000;
    pods->scale = 0;
    pods->format = "DecimalSI";
    qsort(v, n, sizeof *v, by_name);
    *ret_n = n;
    return v;
}

/* ---- what there is --------------------------------------------------------------------------- */

static struct own *own_pods(const struct bh_call *c, const struct bh_group *g, uint32_t *ret_n)
{
    static const enum bh_member_place on_nodes[] = {BH_MEMBER_ASSUMED, BH_MEMBER_ASSIGNED};
    struct own *v = bh_arena_new_array(c->arena, struct own, (g ? bh_group_scheduled(g) : 0) + 1);
    const struct bh_member *m;
    uint32_t n = 0;

    for (unsigned i = 0; g && i < BH_ARRAY_LEN(on_nodes); i++)
        TAILQ_FOREACH(m, &g->at[on_nodes[i]], link) {
            const struct bh_pod_info *p = &bh_cache_pod(c->cache, bh_member_uid(m))->info;
            const struct bh_node_info *ni = bh_cache_node(c->cache, p->rec->node);
            if (ni)
                v[n++] = (struct own){ni->row, p->shape};
        }
    if (n > 1)
        qsort(v, n, sizeof *v, by_row);
    *ret_n = n;
    return v;
}

/* The resource of the name that the node has left, in nano units, were its own pods of the group not
 * there. *ret_scale: in what units upstream counts it. */
static bh_nano left_on(const struct bh_call *c, const struct bh_node_info *ni,
                       const struct own *own, uint32_t n_own, const char *name, int *ret_scale)
{
    const struct bh_node_rec *r = ni->rec;
    bh_nano left, unit = 1000000000, back = 0;
    bool there = true;

    *ret_scale = 0;
    if (bh_streq(name, "pods")) {
        back = n_own;
        left = r->alloc_pods - (bh_nano)ni->n_pods;
    } else if (bh_streq(name, "cpu")) {
        unit /= 1000;
        *ret_scale = -3;
        left = r->alloc_cpu_milli - ni->used_cpu_milli;
        for (uint32_t i = 0; i < n_own; i++)
            back += own[i].shape->used.cpu_milli;
    } else if (bh_streq(name, "memory")) {
        left = r->alloc_memory_bytes - ni->used_memory_bytes;
        for (uint32_t i = 0; i < n_own; i++)
            back += own[i].shape->used.memory_bytes;
    } else if (bh_streq(name, "ephemeral-storage")) {
        left = r->alloc_ephemeral_bytes - ni->used_ephemeral_bytes;
        for (uint32_t i = 0; i < n_own; i++)
            back += own[i].shape->used.ephemeral_bytes;
    } else {
        const bh_sym sym = bh_sym_find(c->tab, name, strlen(name));
        left = bh_node_rec_scalar(r, sym, &there);
        left -= bh_node_info_used_scalar(ni, sym);
        for (uint32_t i = 0; i < n_own; i++)
            back += bh_requests_scalar(own[i].shape, &own[i].shape->used, sym, &(bool){false});
    }
    return there ? (left + back) * unit : 0;
}

/* true: nothing is needed any more. */
static bool subtract(const struct bh_call *c, const struct bh_node_info *ni, const struct own *own,
                     uint32_t n_own, struct need *v, uint32_t n)
{
    bool all = true;
    int scale;

    for (uint32_t i = 0; i < n; i++) {
        if (v[i].met)
            continue;
        const bh_nano left = left_on(c, ni, own, n_own, v[i].name, &scale);
        v[i].left -= left;
        if (left)
            v[i].scale = BH_MIN(v[i].scale, scale);
        v[i].met = v[i].left <= 0;
        all &= v[i].met;
    }
    return all;
}

/* "map[cpu:{{500 -3} {<nil>}  DecimalSI}]": Go's form of a quantity's inside. */
static const char *gap_text(struct bh_arena *a, const struct need *v, uint32_t n)
{
    const char *text = "";

    for (uint32_t i = 0; i < n; i++) {
        bh_nano unit = 1, value = v[i].left;
        int scale = BH_MAX(v[i].scale, -NANO_DIGITS);
        if (v[i].met)
            continue;
        for (int k = -NANO_DIGITS; k < scale && value % (unit * 10) == 0; k++)
            unit *= 10;
        for (scale = -NANO_DIGITS, value = unit; value > 1; value /= 10)
            scale++;
        text =
            bh_arena_printf(a, "%s%s%s:{{%lld %d} {<nil>}  %s}", text, *text ? " " : "", v[i].name,
                            (long long)bh_sum_i64(v[i].left / unit), scale, v[i].format);
    }
    return bh_arena_printf(a, "resource gap: map[%s]", text);
}

const char *bh_cosched_resource_gap(struct bh_call *c, const K8s__CoschedulingPodGroupSpec *spec,
                                    const struct bh_group *own)
{
    uint32_t n, n_own, first = 0;
    struct need *v = needs_of(c, spec, &n);
    const struct own *mine = own_pods(c, own, &n_own);

    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++) {
        uint32_t end = first;
        if (!bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row))
            continue;
        while (first < n_own && mine[first].row < row)
            end = ++first;
        while (end < n_own && mine[end].row == row)
            end++;
        if (subtract(c, c->cache->rows[row], mine + first, end - first, v, n))
            return NULL;
        first = end;
    }
    return gap_text(c->arena, v, n);
}
