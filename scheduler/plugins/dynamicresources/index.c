/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/index.c - slices into pools and devices; what selectors say of
 * them, remembered
 */
#include <errno.h>

#include "common/k8s/codec.h"
#include "scheduler/plugins/dynamicresources/devices.h"

void bh_dra_init(struct bh_dra *d, struct bh_symtab *tab)
{
    *d = (struct bh_dra){.tab = tab, .metadata_name = bh_sym_internc(tab, "metadata.name")};
    bh_arena_init(&d->index_arena, 0);
    bh_arena_init(&d->state_arena, 0);
    bh_arena_init(&d->scratch, 0);
    bh_arena_init(&d->cel, 0);
}

static void drop_programs(struct bh_dra *d)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&d->programs, &it));) {
        struct bh_dra_program *p = m->value;
        bh_cel_free(p->cel);
        free(p->error);
        free(p->known);
        free(p);
    }
    bh_map_clear(&d->programs);
}

void bh_dra_fini(struct bh_dra *d)
{
    drop_programs(d);
    bh_map_fini(&d->programs);
    bh_map_fini(&d->ids);
    bh_umap_fini(&d->by_node);
    bh_dra_taken_fini(d);
    bh_dra_forget_asked(d);
    bh_dra_forget_wishes(d);
    bh_dra_forget_columns(d);
    bh_dra_sights_fini(d);
    free(d->last.out);
    bh_umap_fini(&d->owners.uids);
    bh_arena_fini(&d->index_arena);
    bh_arena_fini(&d->state_arena);
    bh_arena_fini(&d->scratch);
    bh_arena_fini(&d->cel);
}

/* ---- slices ---- */

static int by_name(const void *pa, const void *pb)
{
    const struct bh_dra_slice *a = pa, *b = pb;
    int c = strcmp(a->driver, b->driver);

    if (!c)
        c = strcmp(a->pool_name, b->pool_name);
    return c ? c : strcmp(a->name, b->name);
}

/* Selectors that look the same are compiled once. */
static struct bh_dra_where where_of(struct bh_dra *d, struct bh_map *known, struct bh_buf *b,
                                    const K8s__ResourceSliceSpec *s)
{
    bool all = s->has_allnodes && s->allnodes;

    if (all || (s->nodename && *s->nodename) || !s->nodeselector)
        return bh_dra_where_of(&d->index_arena, d->tab, s->nodename, all, s->nodeselector);
    bh_buf_reset(b);
    bh_pb_pack(b, &s->nodeselector->base);
    uintptr_t i = (uintptr_t)bh_map_get(known, b->p, b->n);
    if (!i) {
        i = ++d->n_selectors; /* an integer, not an address */
        d->selectors[i - 1] =
            bh_dra_where_of(&d->index_arena, d->tab, NULL, false, s->nodeselector);
        d->selectors[i - 1].number = (uint32_t)(i - 1);
        bh_map_put(known, b->p, b->n, (void *)i);
    }
    return d->selectors[i - 1];
}

static void read_slices(struct bh_dra *d, const struct bh_objects *o)
{
    struct bh_map known BH_CLEANUP(bh_map_fini) = {0};
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    uint32_t n = 0;

    bh_objects_each(ob, o, BH_KIND_RESOURCESLICE) {
        n++;
    }
    d->slices = bh_arena_new_array(&d->index_arena, struct bh_dra_slice, n + 1);
    d->selectors = bh_arena_new_array(&d->index_arena, struct bh_dra_where, n + 1);
    d->n_slices = d->n_selectors = 0;
    bh_objects_each(ob, o, BH_KIND_RESOURCESLICE) {
        const K8s__ResourceSlice *m = (const void *)ob->msg;
        const K8s__ResourceSliceSpec *s = m->spec;
        if (!s || !s->pool)
            continue;
        d->slices[d->n_slices++] = (struct bh_dra_slice){
            .spec = s,
            .name = ob->name,
            .driver = s->driver,
            .pool_name = s->pool->name,
            .generation = s->pool->generation,
            .count = s->pool->resourceslicecount,
            .per_device = s->has_perdevicenodeselection && s->perdevicenodeselection,
            .where = where_of(d, &known, &b, s),
            .n = (uint32_t)s->n_devices,
        };
        d->n_devices += (uint32_t)s->n_devices;
    }
    if (d->n_slices)
        qsort(d->slices, d->n_slices, sizeof *d->slices, by_name);
}

/* Neither drivers nor devices have a slash in their names, pools may. */
static uint32_t id_of(struct bh_dra *d, const char *driver, const char *pool, const char *device,
                      bool add)
{
    BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s/%s", driver, pool, device);
    uintptr_t id = (uintptr_t)bh_map_get(&d->ids, key, strlen(key));

    if (!id && add) {
        id = ++d->n_ids;
        bh_map_put(&d->ids, key, strlen(key), (void *)id); /* an integer, not an address */
    }
    return id ? (uint32_t)(id - 1) : BH_DRA_NO_DEVICE;
}

static uint32_t device_flags(const K8s__Device *m)
{
    bool shared = m->has_allowmultipleallocations && m->allowmultipleallocations;
    uint32_t f = (shared ? BH_DRA_SHARED : BH_DRA_PLAIN_CAPACITY) |
                 (m->n_bindingconditions ? BH_DRA_BINDING : 0) |
                 (m->n_consumescounters ? BH_DRA_COUNTED : 0) | (m->n_taints ? BH_DRA_TAINTED : 0);

    for (size_t i = 0; i < m->n_capacity; i++)
        if (m->capacity[i]->value && m->capacity[i]->value->requestpolicy)
            f &= ~(uint32_t)BH_DRA_PLAIN_CAPACITY;
    return f;
}

static void read_devices(struct bh_dra *d)
{
    uint32_t at = 0;

    d->devices = bh_arena_new_array(&d->index_arena, struct bh_dra_device, d->n_devices + 1);
    for (uint32_t i = 0; i < d->n_slices; i++) {
        struct bh_dra_slice *s = &d->slices[i];
        s->first = at;
        for (uint32_t k = 0; k < s->n; k++, at++) {
            const K8s__Device *m = s->spec->devices[k];
            struct bh_dra_device *dev = &d->devices[at];
            *dev = (struct bh_dra_device){.msg = m,
                                          .slice = i,
                                          .id = id_of(d, s->driver, s->pool_name, m->name, true),
                                          .flags = device_flags(m)};
            if (s->per_device)
                dev->where = bh_dra_where_of(&d->index_arena, d->tab, m->nodename,
                                             m->has_allnodes && m->allnodes, m->nodeselector);
        }
    }
    d->first_of_id = bh_arena_new_array(&d->index_arena, uint32_t, d->n_ids + 1);
    for (uint32_t i = d->n_devices; i-- > 0;) {
        d->devices[i].same_id = d->first_of_id[d->devices[i].id];
        d->first_of_id[d->devices[i].id] = i + 1;
    }
    d->stamp = bh_arena_new_array(&d->index_arena, uint32_t, d->n_ids + 1);
    d->sharing = bh_arena_new_array(&d->index_arena, uint64_t, d->n_ids + 1);
    d->stamp_now = 0;
}

/* Pools of a node are listed by falling number. */
static void link_node(struct bh_dra *d, bh_sym node, uint32_t pool, uint32_t slot)
{
    uint64_t head = 0;

    (void)bh_umap_get(&d->by_node, node, &head);
    if (head && d->node_pools[head - 1].pool == pool)
        return;
    d->node_pools[slot].pool = pool;
    d->node_pools[slot].next = (uint32_t)head;
    bh_umap_put(&d->by_node, node, slot + 1);
}

/* See counters.c: what is available is remembered by the pool's name alone. */
static void find_namesakes(struct bh_dra *d)
{
    struct bh_map names BH_CLEANUP(bh_map_fini) = {0};
    bool any = false;

    for (uint32_t i = 0; i < d->n_pools; i++) {
        struct bh_dra_pool *p = &d->pools[i];
        const struct bh_dra_slice *s = &d->slices[p->first];
        p->namesake = i;
        any |= p->has_counters;
        for (uint32_t k = 0; p->has_counters && k < p->n; k++)
            d->odd_counters |= s[k].generation != s->generation || s[k].count != (int64_t)p->n;
    }
    for (uint32_t i = 0; i < d->n_pools && any; i++) {
        struct bh_dra_pool *p = &d->pools[i], *first = bh_map_get(&names, p->name, strlen(p->name));
        if (first)
            p->namesake = first->namesake;
        else
            bh_map_put(&names, p->name, strlen(p->name), p);
        d->odd_counters |= first != NULL;
    }
}

static void read_pools(struct bh_dra *d)
{
    d->pools = bh_arena_new_array(&d->index_arena, struct bh_dra_pool, d->n_slices + 1);
    d->everywhere = bh_arena_new_array(&d->index_arena, uint32_t, d->n_slices + 1);
    d->node_pools = bh_arena_array(&d->index_arena, d->n_slices + 1, sizeof *d->node_pools);
    for (uint32_t i = 0; i < d->n_slices; i++) {
        struct bh_dra_slice *s = &d->slices[i];
        struct bh_dra_pool *p = d->n_pools ? &d->pools[d->n_pools - 1] : NULL;
        if (!p || strcmp(p->driver, s->driver) != 0 || strcmp(p->name, s->pool_name) != 0) {
            p = &d->pools[d->n_pools++];
            *p = (struct bh_dra_pool){.driver = s->driver, .name = s->pool_name, .first = i};
        }
        p->n++;
        s->pool = d->n_pools - 1;
        if (s->spec->n_sharedcounters)
            p->has_counters = true;
        else if (s->where.kind == BH_DRA_ON_NODE)
            link_node(d, s->where.node, s->pool, i);
        else
            p->everywhere = true;
    }
    for (uint32_t i = 0; i < d->n_pools; i++)
        if (d->pools[i].everywhere || (d->pools[i].has_counters && bh_dra_seen_by_others(d, i)))
            d->everywhere[d->n_everywhere++] = i;
    d->by_selector = true;
    for (uint32_t i = 0; i < d->n_everywhere; i++) {
        const struct bh_dra_pool *p = &d->pools[d->everywhere[i]];
        for (const struct bh_dra_slice *s = &d->slices[p->first], *end = s + p->n; s < end; s++)
            d->by_selector &= !s->per_device && !s->where.error &&
                              (s->where.kind != BH_DRA_ON_NODE || !bh_dra_has_devices(s));
    }
    find_namesakes(d);
    bh_dra_read_tallies(d);
}

/* ---- claims ---- */

struct claim_ids { /* of the results of a claim; kept with the object */
    const ProtobufCMessage *msg;
    uint64_t slices; /* version of the slices that the ids come from */
    size_t cap;
    uint32_t *v;
};

void bh_dra_find_ids(struct bh_dra *d, const K8s__DeviceAllocationResult *al, uint32_t *ids)
{
    for (size_t i = 0; i < al->n_results; i++) {
        const K8s__DeviceRequestAllocationResult *r = al->results[i];
        ids[i] = id_of(d, r->driver, r->pool, r->device, false);
    }
}

/* Names are looked up once in the life of claim and index. */
const uint32_t *bh_dra_ids_of(struct bh_dra *d, const struct bh_object *o,
                              const K8s__DeviceAllocationResult *al)
{
    struct bh_object *ob = (struct bh_object *)(uintptr_t)o; /* only its derived part changes */
    struct claim_ids *k = ob->derived;

    if (k && k->msg == ob->msg && k->slices == d->index_version)
        return k->v;
    if (!k)
        k = ob->derived = bh_arena_new(&ob->arena, struct claim_ids);
    uint32_t *v = k && k->cap >= al->n_results
                      ? k->v
                      : bh_arena_new_array(&ob->arena, uint32_t, al->n_results);
    if (!k || !v) /* the arena's limit */
        v = bh_arena_new_array(&d->state_arena, uint32_t, al->n_results);
    else
        *k = (struct claim_ids){ob->msg, d->index_version, BH_MAX(k->cap, al->n_results), v};
    bh_dra_find_ids(d, al, v);
    return v;
}

void bh_dra_sync(struct bh_dra *d, const struct bh_objects *o)
{
    if (!d->index_generation || d->index_version != o->version[BH_KIND_RESOURCESLICE]) {
        bh_arena_reset(&d->index_arena);
        bh_map_clear(&d->ids);
        bh_umap_clear(&d->by_node);
        d->n_slices = d->n_pools = d->n_devices = d->n_ids = d->n_everywhere = 0;
        d->odd_counters = false;
        d->index_generation++;
        d->index_version = o->version[BH_KIND_RESOURCESLICE];
        read_slices(d, o);
        read_devices(d);
        read_pools(d);
    }
    bh_dra_sync_taken(d, o);
    if (d->programs.len > BH_DRA_PROGRAMS_MAX ||
        d->programs.len * ((size_t)d->n_devices + 1) > BH_DRA_KNOWN_MAX)
        drop_programs(d);
}

/* ---- selectors ---- */

enum { UNKNOWN, MATCHES, DIFFERS, FAILS };

int bh_dra_selector_match(struct bh_dra *d, const char *expression, uint32_t device, bool *ret,
                          struct bh_err *err)
{
    struct bh_dra_program *p = bh_map_get(&d->programs, expression, strlen(expression));
    const struct bh_dra_device *dev = &d->devices[device];
    const struct bh_cel_device arg = {.driver = d->slices[dev->slice].driver, .device = dev->msg};
    struct bh_err why = {{0}};

    if (!p) {
        p = bh_calloc(1, sizeof *p);
        if (bh_cel_compile(expression, &p->cel, &why) < 0)
            p->error = bh_strdup(why.msg);
        bh_map_put(&d->programs, expression, strlen(expression), p);
    }
    if (p->index != d->index_generation) {
        free(p->known);
        p->known = bh_calloc(d->n_devices + 1, 1);
        p->index = d->index_generation;
    }

    if (p->error)
        return bh_err_set(err, -EINVAL, "CEL compile error: %s", p->error);
    if (p->known[device] == UNKNOWN || p->known[device] == FAILS) { /* again for the text */
        bh_arena_reset(&d->cel);
        int rc = bh_cel_match_device(p->cel, &arg, &d->cel, ret, NULL, err);
        p->known[device] = rc < 0 ? FAILS : *ret ? MATCHES : DIFFERS;
        if (rc < 0)
            return bh_err_prefix(err, -EINVAL, "CEL runtime error");
    }
    *ret = p->known[device] == MATCHES;
    return 0;
}
