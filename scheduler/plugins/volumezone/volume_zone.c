/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumezone/volume_zone.c - volumes that live in a zone
 *
 * Upstream: pkg/scheduler/framework/plugins/volumezone.
 */
#include "scheduler/cache/label_columns.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/volumebinding/hints.h"
#include "scheduler/plugins/volumebinding/translate.h"

BH_STATUS_CONST(wrong_zone, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "VolumeZone",
                "node(s) had no available volume zone");

enum { N_KEYS = 4 };

/* A label of a volume: the node's label has to hold one of the values. */
struct constraint {
    unsigned key; /* index of keys_of() */
    uint32_t n;
    const bh_sym *values;
};
struct state {
    struct constraint *list;
    uint32_t n;
};

/* In order of evaluation; a beta key is followed by its successor two places on. */
static void keys_of(const struct bh_known_syms *s, bh_sym keys[static N_KEYS])
{
    keys[0] = s->zone_beta;
    keys[1] = s->region_beta;
    keys[2] = s->zone;
    keys[3] = s->region;
}

static const struct bh_status *reject(struct bh_call *c, const char *text)
{
    return bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "VolumeZone", "%s", text);
}

static void add_constraint(struct bh_call *c, struct state *st, unsigned key, const char *label)
{
    size_t n;
    char **zones = bh_split_zones(c->arena, label, true, &n);
    bh_sym *values = bh_arena_new_array(c->arena, bh_sym, n);

    for (size_t i = 0; i < n; i++) {
        if (!*zones[i])
            return; /* not a list of zones: upstream ignores the label */
        values[i] = bh_sym_internc(c->tab, zones[i]);
    }
    st->list[st->n++] = (struct constraint){.key = key, .n = (uint32_t)n, .values = values};
}

static const struct bh_status *read_volume(struct bh_call *c, const struct bh_volume *v,
                                           struct state *st)
{
    const char *ns = bh_rec_namespace(c->pod->rec);
    const char *name = bh_sym_text(c->tab, v->source);
    bh_sym keys[N_KEYS];

    if (!*name)
        return reject(c, "PersistentVolumeClaim had no name");
    const K8s__PersistentVolumeClaim *claim = bh_find_claim(c->objects, ns, name);
    if (!claim)
        return reject(c, bh_not_found(c->arena, "persistentvolumeclaim", name));
    const char *pv_name = bh_claim_volume_name(claim);
    if (!*pv_name) {
        /* A claim without a volume: fine while it waits for its first consumer. */
        const char *class = bh_claim_class(claim);
        bool modeless;
        if (!*class)
            return reject(c, "PersistentVolumeClaim had no pv name and storageClass name");
        if (!bh_find_class(c->objects, class))
            return reject(c, bh_not_found(c->arena, "storageclass.storage.k8s.io", class));
        bool waits = bh_claim_waits(c->objects, claim, &modeless);
        if (modeless)
            return reject(c,
                          bh_arena_printf(c->arena, "VolumeBindingMode not set for StorageClass %s",
                                          bh_quoted(c->arena, class)));
        return waits ? NULL : reject(c, "PersistentVolume had no name");
    }
    const K8s__PersistentVolume *pv = bh_find_volume(c->objects, pv_name);
    if (!pv)
        return reject(c, bh_not_found(c->arena, "persistentvolume", pv_name));
    keys_of(&c->cache->sym, keys);
    for (unsigned k = 0; k < N_KEYS; k++) {
        const char *label = bh_meta_label(pv->metadata, bh_sym_text(c->tab, keys[k]));
        if (label)
            add_constraint(c, st, k, label);
    }
    return NULL;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_volume *v = bh_shape_volumes(s);

    if (!bh_shape_uses_claims(s, false))
        return &bh_status_skip;
    struct state *st = bh_arena_new(c->arena, struct state);
    st->list = bh_arena_new_array(c->arena, struct constraint, (size_t)s->volumes.n * N_KEYS);
    for (uint32_t i = 0; i < s->volumes.n; i++) {
        if (v[i].type != BH_VOL_CLAIM)
            continue;
        const struct bh_status *why = read_volume(c, &v[i], st);
        if (why)
            return why;
    }
    c->pre_filter_state = st;
    return st->n ? NULL : &bh_status_skip;
}

/* value: of the node's labels, by key; BH_LABEL_ABSENT where it has none. */
static bool fits(const struct state *st, const bh_sym value[static N_KEYS])
{
    bool any = false;

    for (unsigned k = 0; k < N_KEYS; k++)
        any |= value[k] != BH_LABEL_ABSENT;
    for (uint32_t i = 0; any && i < st->n; i++) {
        unsigned k = st->list[i].key;
        uint32_t j = 0;
        if (value[k] == BH_LABEL_ABSENT && k < 2)
            k += 2;
        while (j < st->list[i].n && st->list[i].values[j] != value[k])
            j++;
        if (value[k] == BH_LABEL_ABSENT || j == st->list[i].n)
            return false;
    }
    return true;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    const struct bh_kv *labels = bh_rec_at(node->rec, node->rec->labels, struct bh_kv);
    bh_sym keys[N_KEYS], value[N_KEYS];

    if (!c->pre_filter_state) { /* the profile leaves PreFilter out */
        const struct bh_status *s = pre_filter(c, NULL);
        if (s)
            return s->code == BH_SKIP ? NULL : s;
    }
    keys_of(&c->cache->sym, keys);
    for (unsigned k = 0; k < N_KEYS; k++) {
        value[k] = BH_LABEL_ABSENT;
        (void)bh_labels_get(labels, node->rec->labels.n, keys[k], &value[k]);
    }
    return fits(c->pre_filter_state, value) ? NULL : &wrong_zone;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    struct bh_label_columns *labels = (struct bh_label_columns *)(uintptr_t)c->args;
    const bh_sym *column[N_KEYS];
    bh_sym keys[N_KEYS], value[N_KEYS];
    uint32_t m = 0;

    keys_of(&c->cache->sym, keys);
    for (unsigned k = 0; k < N_KEYS; k++)
        column[k] = bh_label_column(labels, c->cache, keys[k]);
    for (uint32_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < N_KEYS; k++)
            value[k] = column[k][rows[i]];
        if (fits(c->pre_filter_state, value))
            rows[m++] = rows[i];
    }
    return m;
}

static int args_new(const struct bh_plugin_env *env BH_UNUSED, const struct bh_json *args BH_UNUSED,
                    void **ret, struct bh_err *err BH_UNUSED)
{
    *ret = bh_calloc(1, sizeof(struct bh_label_columns));
    return 0;
}

static void args_free(void *args)
{
    bh_label_columns_fini(args);
    free(args);
}

static enum bh_hint class_added(const struct bh_hint_call *c)
{
    return bh_hint_if(c->ev->object_name == BH_SYM_NONE || c->ev->object_changes & BH_CLASS_WAITS);
}

static enum bh_hint volume_changed(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_always(c->ev) || c->ev->object_changes & BH_VOLUME_ZONES);
}

static const struct bh_event_reg events[] = {
    {BH_ON_OBJECT, BH_KIND_STORAGECLASS, BH_EV_ADD, class_added},
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_LABEL},
    {BH_ON_OBJECT, BH_KIND_PERSISTENTVOLUMECLAIM, BH_EV_ADD | BH_EV_UPDATE, bh_hint_named_claim},
    {BH_ON_OBJECT, BH_KIND_PERSISTENTVOLUME, BH_EV_ADD | BH_EV_UPDATE, volume_changed},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_volume_zone = {
    BH_PLUGIN_HEAD("VolumeZone"),
    .flags = BH_PLUGIN_OVERLAY | BH_PLUGIN_HINTS_BY_ESSENCE,
    .args_new = args_new,
    .args_free = args_free,
    .events = events,
    .pre_filter = pre_filter,
    .filter = filter,
    .filter_rows = filter_rows,
    .idle = bh_volumes_idle,
};
