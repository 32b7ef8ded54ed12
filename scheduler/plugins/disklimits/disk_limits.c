/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/disklimits/disk_limits.c - how many in-tree cloud disks a node can attach
 */
#include <errno.h>

#include "common/base/log.h"
#include "scheduler/plugins/disklimits/disk_limits.h"

/* Stands for upstream's random prefix of claims without a volume: no cloud makes such an id. */
#define UNBOUND_PREFIX "\x01"

#define LIMIT_FROM_ENV "KUBE_MAX_PD_VOLS"

struct args {
    const struct bh_disk_kind *kind;
    bh_sym limit_key, instance_type, instance_type_beta;
    int64_t env_limit;         /* 0 = none */
    struct bh_status too_many; /* what a full node says */
};
struct ids { /* of volumes; sorted, each once, after make_set() */
    bh_sym *v;
    uint32_t n;
};
struct state {
    struct ids wanted;
    const struct bh_status *error;
};

/* ---- args ---- */

/* A positive decimal number, as Go's Atoi reads it; anything else is as if it were not set. */
static int64_t limit_from_env(void)
{
    const char *s = getenv(LIMIT_FROM_ENV);
    char *end;

    if (!s || !*s)
        return 0;
    bool number = (*s >= '0' && *s <= '9') || *s == '+' || *s == '-';
    errno = 0;
    long long v = number ? strtoll(s, &end, 10) : 0;
    if (number && !errno && !*end && v > 0)
        return v;
    bh_log_warn("Unable to parse maximum PD volumes value, using default",
                bh_kv_s(LIMIT_FROM_ENV, s));
    return 0;
}

int bh_disk_limits_new(const struct bh_plugin_env *env, const struct bh_disk_kind *kind, void **ret)
{
    static const char *const too_many[] = {"node(s) exceed max volume count"};
    struct args *a = bh_arena_new(env->arena, struct args);

    *a = (struct args){
        .kind = kind,
        .limit_key = bh_sym_internc(env->tab, kind->limit_key),
        .instance_type = bh_sym_internc(env->tab, "node.kubernetes.io/instance-type"),
        .instance_type_beta = bh_sym_internc(env->tab, "beta.kubernetes.io/instance-type"),
        .env_limit = limit_from_env(),
        .too_many = {.code = BH_UNSCHEDULABLE,
                     .n_reasons = 1,
                     .reasons = too_many,
                     .plugin = kind->plugin},
    };
    *ret = a;
    return 0;
}

/* ---- volumes of a pod ---- */

/* The disk's name in its cloud; NULL: a volume of another kind. */
static const char *disk_of(const K8s__PersistentVolume *v, enum bh_in_tree kind)
{
    const K8s__PersistentVolumeSource *s = v->spec ? v->spec->persistentvolumesource : NULL;

    if (!s)
        return NULL;
    switch (kind) {
    case BH_IN_TREE_EBS:
        return s->awselasticblockstore ? s->awselasticblockstore->volumeid : NULL;
    case BH_IN_TREE_GCE_PD:
        return s->gcepersistentdisk ? s->gcepersistentdisk->pdname : NULL;
    case BH_IN_TREE_AZURE_DISK:
        return s->azuredisk ? s->azuredisk->diskname : NULL;
    case BH_IN_TREE_CINDER:
        return s->cinder ? s->cinder->volumeid : NULL;
    default:
        return NULL;
    }
}

/* A claim that has no volume yet, or whose volume is gone, counts as the disk it will be. */
static bool id_of_claim(struct bh_call *c, const struct bh_pod_rec *pod, const struct bh_volume *of,
                        const K8s__PersistentVolumeClaim *claim, bh_sym *ret)
{
    const struct args *a = c->args;
    const char *volume = bh_claim_volume_name(claim);
    const K8s__PersistentVolume *v = *volume ? bh_find_volume(c->objects, volume) : NULL;

    if (v) {
        const char *disk = disk_of(v, a->kind->in_tree);
        *ret = disk ? bh_sym_internc(c->tab, disk) : BH_SYM_NONE;
        return disk != NULL;
    }
    /* The class that the claim names in its spec, not in the old annotation, makes such disks. */
    const char *class = claim->spec ? claim->spec->storageclassname : NULL;
    const K8s__StorageClass *sc = class ? bh_find_class(c->objects, class) : NULL;
    if (!sc || !bh_streq(sc->provisioner, bh_in_tree_info[a->kind->in_tree].name))
        return false;
    *ret = bh_sym_internc(c->tab,
                          bh_arena_printf(c->arena, UNBOUND_PREFIX "%s/%s", bh_rec_namespace(pod),
                                          bh_claim_name(c->arena, c->tab, pod, of)));
    return true;
}

/* is_new: the pod is being scheduled, its claims have to exist. */
static const struct bh_status *add_pod(struct bh_call *c, const struct bh_pod_info *pod,
                                       bool is_new, struct ids *out)
{
    const struct args *a = c->args;
    const struct bh_volume *v = bh_shape_volumes(pod->shape);

    for (uint32_t i = 0; i < pod->shape->volumes.n; i++) {
        if (bh_uses_claim(&v[i])) {
            const K8s__PersistentVolumeClaim *claim;
            const struct bh_status *s =
                bh_claim_of(c, a->kind->plugin, pod->rec, &v[i], is_new, &claim);
            if (s)
                return s;
            out->n += claim && id_of_claim(c, pod->rec, &v[i], claim, &out->v[out->n]);
        } else if (bh_in_tree_inline(&v[i]) == a->kind->in_tree) {
            out->v[out->n++] = v[i].type == BH_VOL_AZURE_DISK ? v[i].disk_name : v[i].source;
        }
    }
    return NULL;
}

static void make_set(struct ids *s)
{
    s->n = (uint32_t)bh_sort_unique(s->v, s->n, sizeof *s->v, bh_by_sym);
}

static struct state *new_state(struct bh_call *c)
{
    struct state *st = bh_arena_new(c->arena, struct state);
    uint32_t n = c->pod->shape->volumes.n;

    st->wanted.v = bh_arena_new_array(c->arena, bh_sym, n ? n : 1);
    st->error = add_pod(c, c->pod, true, &st->wanted);
    make_set(&st->wanted);
    return st;
}

/* ---- the plugin ---- */

const struct bh_status *bh_disk_limits_pre_filter(struct bh_call *c,
                                                  struct bh_node_set *ret_nodes BH_UNUSED)
{
    const struct bh_volume *v = bh_shape_volumes(c->pod->shape);
    const struct args *a = c->args;
    bool any = false;

    for (uint32_t i = 0; i < c->pod->shape->volumes.n; i++)
        any |= bh_uses_claim(&v[i]) || bh_in_tree_inline(&v[i]) == a->kind->in_tree;
    if (any)
        c->pre_filter_state = new_state(c);
    return any ? NULL : &bh_status_skip;
}

static int64_t limit_of(const struct bh_call *c, const struct bh_node_rec *n)
{
    const struct args *a = c->args;
    const struct bh_kv *labels = bh_rec_at(n, n->labels, struct bh_kv);
    bh_sym type = BH_SYM_NONE;
    bool present;
    int64_t limit = bh_node_rec_scalar(n, a->limit_key, &present);

    if (present)
        return limit;
    if (a->env_limit)
        return a->env_limit;
    if (!a->kind->limit_of_type)
        return a->kind->limit;
    if (!bh_labels_get(labels, n->labels.n, a->instance_type, &type))
        (void)bh_labels_get(labels, n->labels.n, a->instance_type_beta, &type);
    return a->kind->limit_of_type(bh_sym_text(c->tab, type));
}

const struct bh_status *bh_disk_limits_filter(struct bh_call *c, const struct bh_node_info *node)
{
    const struct args *a = c->args;
    /* Filter may be configured without PreFilter. */
    const struct state *st = c->pre_filter_state ? c->pre_filter_state : new_state(c);
    struct ids used;

    if (st->error)
        return st->error;
    if (!st->wanted.n || bh_find_csi_node(c->objects, bh_sym_text(c->tab, node->name)))
        return NULL;
    struct bh_arena_mark mark = bh_arena_mark(c->arena);
    size_t room = 1;
    for (uint32_t i = 0; i < node->n_pods; i++)
        room += node->pods[i]->shape->volumes.n;
    used = (struct ids){.v = bh_arena_new_array(c->arena, bh_sym, room)};
    for (uint32_t i = 0; i < node->n_pods; i++) {
        const struct bh_status *s = add_pod(c, node->pods[i], false, &used);
        if (s)
            return s;
    }
    make_set(&used);
    int64_t n = used.n;
    for (uint32_t i = 0; i < st->wanted.n; i++)
        n += !used.n || !bsearch(&st->wanted.v[i], used.v, used.n, sizeof *used.v, bh_by_sym);
    bh_arena_rewind(c->arena, mark);
    return n > limit_of(c, node->rec) ? &a->too_many : NULL;
}

/* Nothing is remembered: every node is asked, because one of them may fail. */
static enum bh_overlay_answer ask(struct bh_call *c, uint32_t *rows, uint32_t *n)
{
    for (uint32_t row = 0; row < c->cache->cols.n_rows; row++) {
        const struct bh_status *s = bh_row_bit(&c->cache->cols, BH_ROW_LIVE, row)
                                        ? bh_disk_limits_filter(c, c->cache->rows[row])
                                        : &bh_status_skip;
        if (!s)
            rows[(*n)++] = row;
        else if (s != &bh_status_skip && !bh_status_rejected(s))
            return BH_OVERLAY_FAILS;
    }
    return BH_OVERLAY_ONLY;
}
const struct bh_overlay_ops bh_disk_limits_overlay = {.ask = ask};

const struct bh_event_reg bh_disk_limits_events[] = {
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_TAINT},
    {.on = BH_ON_POD, .actions = BH_EV_DELETE},
    {.on = BH_ON_OBJECT, .kind = BH_KIND_PERSISTENTVOLUMECLAIM, .actions = BH_EV_ADD},
    {.actions = 0},
};
