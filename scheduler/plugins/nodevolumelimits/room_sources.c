/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/room_sources.c - claims and attachments that volumes on nodes
 * come from
 *
 * Each remembers what it stood for and under which names in the objects' change log it would stand
 * for something else: its own and its volume's. Names are hashes there, so a source may be looked
 * at in vain.
 */
#include "scheduler/plugins/nodevolumelimits/room_int.h"

#define IDLE_MIN 1024u /* so many claims that no pod uses any more are kept at least */

static unsigned table_of(enum bh_kind kind)
{
    return kind == BH_KIND_VOLUMEATTACHMENT;
}

/* ---- lists: of one key, of one volume, of one node ---- */

static void link_volume(struct bh_room *r, uint32_t i, uint64_t volume_key)
{
    struct bh_room_source *s = &r->source[i];

    s->volume_key = volume_key;
    s->next_volume = s->prev_volume = BH_NO_SOURCE;
    if (!volume_key)
        return;
    s->next_volume = bh_heads_get(&r->by_volume, volume_key);
    if (s->next_volume != BH_NO_SOURCE)
        r->source[s->next_volume].prev_volume = i;
    bh_heads_set(&r->by_volume, volume_key, i);
}

static void unlink_volume(struct bh_room *r, uint32_t i)
{
    const struct bh_room_source *s = &r->source[i];

    if (!s->volume_key)
        return;
    if (s->next_volume != BH_NO_SOURCE)
        r->source[s->next_volume].prev_volume = s->prev_volume;
    if (s->prev_volume != BH_NO_SOURCE)
        r->source[s->prev_volume].next_volume = s->next_volume;
    else
        bh_heads_set(&r->by_volume, s->volume_key, s->next_volume);
}

/* Takes i out of a short list. */
static void unlink_from(struct bh_room *r, struct bh_umap *m, uint64_t key, uint32_t i,
                        size_t member)
{
    uint32_t first = bh_heads_get(m, key), *at = &first;

    while (*at != i)
        at = (uint32_t *)(void *)((char *)&r->source[*at] + member);
    *at = *(uint32_t *)(void *)((char *)&r->source[i] + member);
    bh_heads_set(m, key, first);
}

static uint32_t new_source(struct bh_room *r, enum bh_kind kind, uint64_t key)
{
    uint32_t i = r->free_source;

    if (i != BH_NO_SOURCE) {
        r->free_source = r->source[i].next_key;
    } else {
        BH_GROW(r->source, r->n_sources, r->cap_sources);
        i = r->n_sources++;
    }
    r->source[i] =
        (struct bh_room_source){.kind = kind,
                                .key = key,
                                .row = BH_ROW_NONE,
                                .next_key = bh_heads_get(&r->by_key[table_of(kind)], key),
                                .next_node = BH_NO_SOURCE,
                                .next_volume = BH_NO_SOURCE,
                                .prev_volume = BH_NO_SOURCE};
    bh_heads_set(&r->by_key[table_of(kind)], key, i);
    return i;
}

static void drop(struct bh_room *r, uint32_t i)
{
    struct bh_room_source *s = &r->source[i];

    unlink_volume(r, i);
    unlink_from(r, &r->by_key[table_of(s->kind)], s->key, i,
                offsetof(struct bh_room_source, next_key));
    if (s->kind == BH_KIND_VOLUMEATTACHMENT)
        unlink_from(r, &r->attached, s->node, i, offsetof(struct bh_room_source, next_node));
    else
        (void)bh_umap_del(&r->by_name, s->name);
    r->n_idle -= s->kind != BH_KIND_VOLUMEATTACHMENT && !s->uses;
    free(s->volume_name);
    *s = (struct bh_room_source){.next_key = r->free_source};
    r->free_source = i;
}

/* ---- claims ---- */

static void read_claim(struct bh_call *c, struct bh_room *r, uint32_t i)
{
    const char *ns = bh_sym_text(c->tab, (bh_sym)(r->source[i].name >> 32));
    const char *name = bh_sym_text(c->tab, (bh_sym)r->source[i].name);
    const K8s__PersistentVolumeClaim *claim = bh_find_claim(c->objects, ns, name);
    const char *volume = claim ? bh_claim_volume_name(claim) : "";
    uint64_t volume_key = *volume ? bh_object_key("", volume) : 0;

    r->source[i].what = claim ? bh_attachable_of(c, claim) : (struct bh_attachable){0};
    if (volume_key == r->source[i].volume_key)
        return;
    unlink_volume(r, i);
    link_volume(r, i, volume_key);
}

static void drop_idle(struct bh_room *r)
{
    for (uint32_t i = 0; i < r->n_sources; i++)
        if (r->source[i].kind == BH_KIND_PERSISTENTVOLUMECLAIM && !r->source[i].uses)
            drop(r, i);
}

uint32_t bh_room_use(struct bh_call *c, struct bh_room *r, uint32_t row, bh_sym ns, bh_sym claim,
                     bool owned)
{
    uint64_t name = (uint64_t)ns << 32 | claim;
    uint32_t i = bh_heads_get(&r->by_name, name);

    if (i == BH_NO_SOURCE) {
        if (r->n_idle > IDLE_MIN && r->n_idle > r->n_sources / 2)
            drop_idle(r);
        i = new_source(r, BH_KIND_PERSISTENTVOLUMECLAIM,
                       bh_object_key(bh_sym_text(c->tab, ns), bh_sym_text(c->tab, claim)));
        r->source[i].name = name;
        r->n_idle++;
        bh_umap_put(&r->by_name, name, i);
        read_claim(c, r, i);
    }
    struct bh_room_source *s = &r->source[i];
    if (!s->uses) {
        r->n_idle--;
        s->row = row;
        s->owned = false;
    } else if (s->row != row) {
        s->row = BH_ROW_NONE;
    }
    s->uses++;
    s->owned |= owned;
    return i;
}

void bh_room_unuse(struct bh_room *r, uint32_t source)
{
    r->n_idle += --r->source[source].uses == 0;
}

static void touch_users(struct bh_room *r, uint32_t source)
{
    if (r->source[source].row != BH_ROW_NONE) {
        bh_room_touch(r, r->source[source].row);
        return;
    }
    for (uint32_t row = 0; row < r->cap_rows; row++)
        for (uint32_t k = 0; k < r->row[row].n_claims; k++)
            if (r->row[row].claim[k] == source)
                bh_room_touch(r, row);
}

/* ---- attachments ---- */

static void touch_node(struct bh_call *c, struct bh_room *r, bh_sym node)
{
    const struct bh_node_info *ni = bh_cache_node(c->cache, node);

    if (ni)
        bh_room_touch(r, ni->row);
}

static void read_attachment(struct bh_call *c, struct bh_room *r, uint32_t i)
{
    struct bh_room_source *s = &r->source[i];
    bh_sym driver = s->what.driver;

    s->what.volume = bh_attached_volume(c, driver, bh_find_volume(c->objects, s->volume_name));
}

void bh_room_read_attachments(struct bh_call *c, struct bh_room *r, uint64_t since)
{
    bh_objects_each(o, c->objects, BH_KIND_VOLUMEATTACHMENT) {
        const K8s__VolumeAttachment *va = (const void *)o->msg;
        const char *volume =
            va->spec && va->spec->source ? va->spec->source->persistentvolumename : NULL;
        if (o->pos < since)
            break; /* the newest come first */
        if (!volume || !*va->spec->attacher)
            continue;
        bh_sym node = bh_sym_internc(c->tab, va->spec->nodename);
        uint32_t i = new_source(r, BH_KIND_VOLUMEATTACHMENT, bh_object_key(o->ns, o->name));
        struct bh_room_source *s = &r->source[i];
        s->node = node;
        s->volume_name = bh_strdup(volume);
        s->what.driver = bh_sym_internc(c->tab, va->spec->attacher);
        s->next_node = bh_heads_get(&r->attached, node);
        bh_umap_put(&r->attached, node, i);
        link_volume(r, i, bh_object_key("", volume));
        read_attachment(c, r, i);
        touch_node(c, r, node);
    }
}

/* ---- changes ---- */

/* Whatever the source stands for now. */
static void refresh(struct bh_call *c, struct bh_room *r, uint32_t i)
{
    struct bh_attachable was = r->source[i].what;

    if (r->source[i].kind == BH_KIND_VOLUMEATTACHMENT) {
        read_attachment(c, r, i);
        if (r->source[i].what.volume != was.volume)
            touch_node(c, r, r->source[i].node);
        return;
    }
    read_claim(c, r, i);
    const struct bh_attachable *now = &r->source[i].what;
    if (now->volume != was.volume || now->driver != was.driver || now->migrated != was.migrated ||
        r->source[i].owned)
        touch_users(r, i);
}

static void refresh_or_drop(struct bh_call *c, struct bh_room *r, uint32_t i)
{
    if (r->source[i].kind == BH_KIND_PERSISTENTVOLUMECLAIM && !r->source[i].uses)
        drop(r, i);
    else
        refresh(c, r, i);
}

void bh_room_follow(struct bh_call *c, struct bh_room *r, const struct bh_object_entry *change)
{
    uint32_t i, next;

    switch (change->kind) {
    case BH_KIND_PERSISTENTVOLUMECLAIM:
        for (i = bh_heads_get(&r->by_key[0], change->key); i != BH_NO_SOURCE; i = next) {
            next = r->source[i].next_key;
            refresh_or_drop(c, r, i);
        }
        break;
    case BH_KIND_PERSISTENTVOLUME:
        for (i = bh_heads_get(&r->by_volume, change->key); i != BH_NO_SOURCE; i = next) {
            next = r->source[i].next_volume;
            refresh_or_drop(c, r, i);
        }
        break;
    case BH_KIND_VOLUMEATTACHMENT: /* what there is of it now is read anew */
        for (i = bh_heads_get(&r->by_key[1], change->key); i != BH_NO_SOURCE; i = next) {
            next = r->source[i].next_key;
            touch_node(c, r, r->source[i].node);
            drop(r, i);
        }
        break;
    default:
        break;
    }
}

void bh_room_refresh_all(struct bh_call *c, struct bh_room *r)
{
    drop_idle(r);
    for (uint32_t i = 0; i < r->n_sources; i++)
        if (r->source[i].kind == BH_KIND_PERSISTENTVOLUMECLAIM)
            refresh(c, r, i);
}

void bh_room_sources_fini(struct bh_room *r)
{
    bh_umap_fini(&r->by_name);
    bh_umap_fini(&r->by_key[0]);
    bh_umap_fini(&r->by_key[1]);
    bh_umap_fini(&r->by_volume);
    bh_umap_fini(&r->attached);
    for (uint32_t i = 0; i < r->n_sources; i++)
        free(r->source[i].volume_name);
    free(r->source);
}
