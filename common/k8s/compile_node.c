/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_node.c - a Node into its record
 *
 * Upstream: pkg/scheduler/framework/types.go (NodeInfo.SetNode).
 */
#include <errno.h>

#include "common/k8s/compile_priv.h"

/* Of a set of pairs, whatever their order: duplicates do not occur in what a server sends. */
static uint64_t pair_hash(const char *key, const char *value)
{
    return bh_hash(value, strlen(value), bh_hash(key, strlen(key), 0));
}

static struct bh_slice put_images(struct bh_compiler *c, const K8s__NodeStatus *st)
{
    struct bh_slice s;
    size_t n = 0, at = 0;

    for (size_t i = 0; st && i < st->n_images; i++)
        n += st->images[i]->n_names;
    struct bh_image *out = bh_rec_room(&c->b, n, sizeof(*out), &s);
    for (size_t i = 0; st && out && i < st->n_images; i++) {
        const K8s__ContainerImage *img = st->images[i];
        for (size_t j = 0; j < img->n_names; j++)
            out[at++] = (struct bh_image){.name = bh_compile_sym(c, img->names[j]),
                                          .size_bytes = img->sizebytes};
    }
    return s;
}

/* `pods` is no resource of pods, so the amounts leave it out. */
static int pods_of(struct bh_compiler *c, K8s__QuantityEntry *const *list, size_t n,
                   const char *what, int64_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        const K8s__QuantityEntry *e = list[i];
        bh_nano v;
        if (*e->key != 'p' || !bh_streq(e->key, "pods") || !e->value || !e->value->string)
            continue;
        if (bh_quantity_parse(e->value->string, strlen(e->value->string), &v) != 0)
            return bh_err_set(c->err, -EINVAL, "status.%s[pods]: quantity \"%.32s\" does not parse",
                              what, e->value->string);
        *ret = bh_quantity_value(v);
    }
    return 0;
}

/* -1: not named. */
static int64_t amount_of(const struct bh_amounts *x, bh_sym name)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->scalars[i].name == name)
            return bh_quantity_value(x->scalars[i].v);
    return -1;
}

/* The amount of one list that the other does not have, or has another of. A name that stands in
 * every node is a symbol only where it is needed. */
static uint32_t add_other(struct bh_compiler *c, struct bh_res *out, uint32_t n, const char *text,
                          bh_sym name, int64_t capacity, int64_t allocatable)
{
    if (capacity != allocatable)
        out[n++] =
            (struct bh_res){.name = text ? bh_compile_sym(c, text) : name, .value = capacity};
    return n;
}

/* What the node has, where it is not what pods may use of it. Most nodes keep some for themselves:
 * two or three amounts. */
static int put_capacity(struct bh_compiler *c, const K8s__NodeStatus *st,
                        const struct bh_node_rec *head, const struct bh_amounts *alloc,
                        struct bh_slice *ret)
{
    struct bh_amounts cap = {0};
    int64_t pods = 0;
    uint32_t n = 0;

    if (!st || !st->n_capacity) /* no node of a cluster, but many a file: as allocatable */
        return 0;
    bh_amounts_read(c, &cap, st->capacity, st->n_capacity, "status.capacity");
    int rc = c->rc ? c->rc : pods_of(c, st->capacity, st->n_capacity, "capacity", &pods);
    struct bh_res *v = bh_arena_new_array(c->a, struct bh_res, 4 + cap.n + alloc->n);
    if (rc || !v)
        return rc ? rc : bh_compile_no_memory(c, "capacity");
    n = add_other(c, v, n, "cpu", 0, bh_quantity_milli_value(cap.std[BH_CPU]),
                  head->alloc_cpu_milli);
    n = add_other(c, v, n, "memory", 0, bh_quantity_value(cap.std[BH_MEMORY]),
                  head->alloc_memory_bytes);
    n = add_other(c, v, n, "ephemeral-storage", 0, bh_quantity_value(cap.std[BH_EPHEMERAL]),
                  head->alloc_ephemeral_bytes);
    n = add_other(c, v, n, "pods", 0, pods, head->alloc_pods);
    for (uint32_t i = 0; i < cap.n; i++)
        n = add_other(c, v, n, NULL, cap.scalars[i].name, bh_quantity_value(cap.scalars[i].v),
                      amount_of(alloc, cap.scalars[i].name));
    for (uint32_t i = 0; i < alloc->n; i++)
        if (amount_of(&cap, alloc->scalars[i].name) < 0)
            n = add_other(c, v, n, NULL, alloc->scalars[i].name, 0,
                          bh_quantity_value(alloc->scalars[i].v));
    bh_rec_sort(v, n, sizeof *v, bh_rec_by_name);
    *ret = bh_rec_put(&c->b, v, n, sizeof *v);
    return 0;
}

int bh_compile_node(struct bh_arena *a, const K8s__Node *n, const struct bh_interner *in,
                    struct bh_node_rec **ret, struct bh_err *err)
{
    struct bh_compiler c = {.a = a, .in = in, .err = err};
    struct bh_amounts alloc = {0};
    struct bh_node_rec head = {0};

    if (!n->metadata || !*n->metadata->name)
        return bh_err_set(err, -EINVAL, "node: metadata.name is empty");
    bh_rec_begin(&c.b, a, BH_REC_NODE, sizeof(head));
    if (n->status)
        bh_amounts_read(&c, &alloc, n->status->allocatable, n->status->n_allocatable,
                        "status.allocatable");
    int rc = c.rc        ? c.rc
             : n->status ? pods_of(&c, n->status->allocatable, n->status->n_allocatable,
                                   "allocatable", &head.alloc_pods)
                         : 0;
    if (rc == 0)
        rc = bh_compile_map(&c, n->metadata->labels, n->metadata->n_labels, &head.labels);
    if (rc)
        return bh_err_prefix(err, rc, "node %s", n->metadata->name);
    const K8s__ObjectMeta *m = n->metadata;
    head.name = bh_compile_sym(&c, m->name);
    head.uid = bh_compile_sym(&c, m->uid);
    head.flags = n->spec && n->spec->unschedulable ? BH_NODE_UNSCHEDULABLE : 0;
    head.resource_version = bh_compile_version(m->resourceversion);
    for (size_t i = 0; i < m->n_annotations; i++)
        head.annotations_hash += pair_hash(m->annotations[i]->key, m->annotations[i]->value);
    for (size_t i = 0; n->status && i < n->status->n_conditions; i++)
        head.conditions_hash +=
            pair_hash(n->status->conditions[i]->type, n->status->conditions[i]->status);
    head.alloc_cpu_milli = bh_quantity_milli_value(alloc.std[BH_CPU]);
    head.alloc_memory_bytes = bh_quantity_value(alloc.std[BH_MEMORY]);
    head.alloc_ephemeral_bytes = bh_quantity_value(alloc.std[BH_EPHEMERAL]);
    const K8s__NodeSpec *spec = n->spec;
    struct bh_taint *out = bh_rec_room(&c.b, spec ? spec->n_taints : 0, sizeof(*out), &head.taints);
    for (size_t i = 0; spec && out && i < spec->n_taints; i++)
        out[i] = (struct bh_taint){.key = bh_compile_sym(&c, spec->taints[i]->key),
                                   .value = bh_compile_sym(&c, spec->taints[i]->value),
                                   .effect = bh_compile_effect(spec->taints[i]->effect)};
    head.scalars = bh_amounts_put(&c, &alloc);
    head.images = put_images(&c, n->status);
    if (n->status)
        head.features =
            bh_compile_syms(&c, n->status->declaredfeatures, n->status->n_declaredfeatures);
    rc = put_capacity(&c, n->status, &head, &alloc, &head.capacity);
    if (rc)
        return bh_err_prefix(err, rc, "node %s", n->metadata->name);
    return bh_compile_end(&c, "node", &head.h, sizeof(head), ret);
}
