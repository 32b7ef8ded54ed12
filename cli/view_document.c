/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/view_document.c - rows of a view in the API's form, and their labels and taints as text
 */
#include "cli/view.h"

#include "common/k8s/quantity.h"

#define NANO_A_MILLI 1000000
#define NANO         1000000000

const char *bh_view_name(const struct bh_view *w, const struct bh_view_row *r)
{
    return r->node ? bh_sym_text(w->symtab, r->node->name) : bh_rec_text(r->pod, r->pod->name).p;
}

static const char *name_effect(uint32_t effect)
{
    static const char *const names[] = {[BH_NO_SCHEDULE] = "NoSchedule",
                                        [BH_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
                                        [BH_NO_EXECUTE] = "NoExecute"};
    return effect < BH_ARRAY_LEN(names) && names[effect] ? names[effect] : "";
}

static int by_key(const void *a, const void *b, void *symtab)
{
    return strcmp(bh_sym_text(symtab, ((const struct bh_kv *)a)->key),
                  bh_sym_text(symtab, ((const struct bh_kv *)b)->key));
}

/* Records have them in the order of symbols; the caller frees. */
static struct bh_kv *sort_labels(const struct bh_view *w, const void *rec, struct bh_slice labels)
{
    struct bh_kv *v = bh_calloc(labels.n + 1, sizeof(*v));

    memcpy(v, bh_rec_at(rec, labels, struct bh_kv), labels.n * sizeof(*v));
    qsort_r(v, labels.n, sizeof(*v), by_key, w->symtab);
    return v;
}

char *bh_view_labels_text(const struct bh_view *w, const void *rec, struct bh_slice labels)
{
    BH_CLEANUP(bh_freep) struct bh_kv *v = sort_labels(w, rec, labels);
    struct bh_buf b = {0};

    for (uint32_t i = 0; i < labels.n; i++)
        bh_buf_addf(&b, "%s%s=%s", i ? "," : "", bh_sym_text(w->symtab, v[i].key),
                    bh_sym_text(w->symtab, v[i].value));
    return bh_buf_take(&b);
}

char *bh_view_taints_text(const struct bh_view *w, const struct bh_node_rec *n)
{
    const struct bh_taint *v = bh_rec_at(n, n->taints, struct bh_taint);
    struct bh_buf b = {0};

    for (uint32_t i = 0; i < n->taints.n; i++)
        bh_buf_addf(&b, "%s%s%s%s:%s", i ? "," : "", bh_sym_text(w->symtab, v[i].key),
                    v[i].value != BH_SYM_NONE ? "=" : "", bh_sym_text(w->symtab, v[i].value),
                    name_effect(v[i].effect));
    return bh_buf_take(&b);
}

static const char *print_amount(struct bh_arena *a, __int128 nano, bool binary)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_quantity_format(&b, nano, binary);
    return bh_arena_strdup(a, bh_buf_str(&b));
}

static struct bh_json *make_labels(const struct bh_view *w, struct bh_arena *a, const void *rec,
                                   struct bh_slice labels)
{
    BH_CLEANUP(bh_freep) struct bh_kv *v = sort_labels(w, rec, labels);
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);

    for (uint32_t i = 0; i < labels.n; i++)
        bh_json_add(a, o, "%s: %s", bh_sym_text(w->symtab, v[i].key),
                    bh_sym_text(w->symtab, v[i].value));
    return o;
}

static struct bh_json *make_allocatable(const struct bh_view *w, struct bh_arena *a,
                                        const struct bh_node_rec *n)
{
    const struct bh_res *v = bh_rec_at(n, n->scalars, struct bh_res);
    struct bh_json *o =
        bh_json_make(a, "cpu: %s, memory: %s, ephemeral-storage: %s, pods: %s",
                     print_amount(a, (__int128)n->alloc_cpu_milli * NANO_A_MILLI, false),
                     print_amount(a, (__int128)n->alloc_memory_bytes * NANO, true),
                     print_amount(a, (__int128)n->alloc_ephemeral_bytes * NANO, true),
                     print_amount(a, (__int128)n->alloc_pods * NANO, false));

    for (uint32_t i = 0; i < n->scalars.n; i++) {
        const char *name = bh_sym_text(w->symtab, v[i].name);
        bh_json_add(
            a, o, "%s: %s", name,
            print_amount(a, (__int128)v[i].value * NANO, strncmp(name, "hugepages-", 10) == 0));
    }
    return o;
}

struct bh_json *bh_view_node_json(const struct bh_view *w, struct bh_arena *a,
                                  const struct bh_view_row *r)
{
    const struct bh_symtab *tab = w->symtab;
    const struct bh_node_rec *n = r->node;
    const struct bh_taint *v = bh_rec_at(n, n->taints, struct bh_taint);
    struct bh_json *taints = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < n->taints.n; i++)
        bh_json_append(a, taints, "key: %s, value?: %s, effect: %s", bh_sym_text(tab, v[i].key),
                       bh_sym_text(tab, v[i].value), name_effect(v[i].effect));
    return bh_json_make(a,
                        "apiVersion: v1, kind: Node, metadata: {name: %s, uid: %s, labels?: %p}, "
                        "spec: {unschedulable?: %i, taints?: %p}, status: {allocatable: %p}, "
                        "requested: {cpu: %s, memory: %s, pods: %lu}",
                        bh_view_name(w, r), bh_sym_text(tab, n->uid),
                        make_labels(w, a, n, n->labels), (n->flags & BH_NODE_UNSCHEDULABLE) != 0,
                        n->taints.n ? taints : NULL, make_allocatable(w, a, n),
                        print_amount(a, r->cpu_milli * NANO_A_MILLI, false),
                        print_amount(a, r->memory_bytes * NANO, true), r->pods);
}

struct bh_json *bh_view_pod_json(const struct bh_view *w, struct bh_arena *a,
                                 const struct bh_view_row *r)
{
    const struct bh_symtab *tab = w->symtab;
    const struct bh_pod_rec *pod = r->pod;
    char created[32] = "";

    if (pod->creation_ns)
        bh_time_format_ns(created, pod->creation_ns);
    struct bh_json *o = bh_json_make(
        a,
        "apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s, uid: %s, "
        "creationTimestamp?: %s, labels?: %p}, "
        "spec: {schedulerName: %s, priority: %d, nodeName?: %s}, "
        "status: {nominatedNodeName?: %s}, requested: {cpu: %s, memory: %s}",
        bh_view_name(w, r), bh_rec_text(pod, pod->namespace_).p, bh_rec_text(pod, pod->uid).p,
        created, make_labels(w, a, r->shape, r->shape->labels),
        bh_sym_text(tab, r->shape->scheduler_name), (int)r->shape->priority,
        bh_sym_text(tab, pod->node), bh_sym_text(tab, pod->nominated_node),
        print_amount(a, r->cpu_milli * NANO_A_MILLI, false),
        print_amount(a, r->memory_bytes * NANO, true));
    if (r->reason)
        bh_json_append(a, bh_json_list_at(a, bh_json_get(o, "status"), "conditions"),
                       "type: PodScheduled, status: 'False', reason: %s, message: %s", r->reason,
                       r->message);
    return o;
}
