/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/objects.c - the objects that are not in the snapshot, and which reader has been told what
 *
 * Owns:       the objects (one block each).
 * Invariants: a live object is in the list and in by_name; a tombstone is in the list and has a
 *             reader that still has to be told; next[r] is in the list, never an object r can skip.
 * Runs in:    the watcher's loop.
 */
#include "watcher/objects.h"

#include "common/base/key.h"

#define KEY_MAX 1024

static size_t make_key(char out[static KEY_MAX], const char *ns, const char *name)
{
    size_t n = bh_key_pair(out, KEY_MAX, ns, name);

    bh_assert(n); /* the reflector lets no longer names through */
    return n;
}

void bh_objects_init(struct bh_objects *o)
{
    *o = (struct bh_objects){.readers = 0};
    TAILQ_INIT(&o->list);
}

void bh_objects_fini(struct bh_objects *o)
{
    struct bh_object *ob;
    while ((ob = TAILQ_FIRST(&o->list))) {
        TAILQ_REMOVE(&o->list, ob, link);
        free(ob);
    }
    for (size_t i = 0; i < BH_KIND_ALL; i++)
        bh_map_fini(&o->by_name[i]);
}

/* ---- list ------------------------------------------------------------------------------------ */

static void append(struct bh_objects *o, struct bh_object *ob)
{
    TAILQ_INSERT_TAIL(&o->list, ob, link);
    for (unsigned r = 0; r < BH_OBJECTS_READERS; r++)
        if ((o->readers >> r & 1) && !o->next[r])
            o->next[r] = ob;
}

static void unlink_object(struct bh_objects *o, struct bh_object *ob)
{
    for (unsigned r = 0; r < BH_OBJECTS_READERS; r++)
        if (o->next[r] == ob)
            o->next[r] = TAILQ_NEXT(ob, link);
    TAILQ_REMOVE(&o->list, ob, link);
}

static void destroy(struct bh_objects *o, struct bh_object *ob)
{
    o->bytes -= ob->bytes_n;
    free(ob);
}

static struct bh_object *make(const struct bh_object_key *k, const void *bytes, size_t n)
{
    const char *texts[] = {k->ns, k->name, k->uid, k->rv};
    const char **slots[4];
    size_t total = n;
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++)
        total += strlen(texts[i]) + 1;
    struct bh_object *ob = bh_malloc(sizeof(*ob) + total);
    *ob = (struct bh_object){.kind = k->kind, .state = BH_OBJ_LIVE, .bytes_n = (uint32_t)n};
    slots[0] = &ob->ns, slots[1] = &ob->name, slots[2] = &ob->uid, slots[3] = &ob->rv;
    char *p = ob->text;
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        size_t len = strlen(texts[i]) + 1;
        memcpy(p, texts[i], len);
        *slots[i] = p;
        p += len;
    }
    if (n)
        memcpy(p, bytes, n);
    ob->bytes = (uint8_t *)p;
    return ob;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void bury(struct bh_objects *o, struct bh_object *ob, const char *key, size_t n,
                 enum bh_object_state state, const char *rv, uint64_t log_pos)
{
    struct bh_object_key k = {ob->kind, ob->ns, ob->name, ob->uid, rv};
    bh_map_del(&o->by_name[ob->kind], key, n);
    o->live[ob->kind]--;
    if (ob->told) {
        struct bh_object *tomb = make(&k, NULL, 0);
        tomb->state = state;
        tomb->told = ob->told;
        tomb->log_pos = log_pos;
        o->tombs++;
        *(state == BH_OBJ_BOUND ? &o->bound : &o->changes) += 1;
        append(o, tomb);
    }
    unlink_object(o, ob);
    destroy(o, ob);
}

void bh_objects_put(struct bh_objects *o, const struct bh_object_key *k, const void *bytes,
                    size_t n, uint64_t log_pos)
{
    char key[KEY_MAX];
    size_t key_n = make_key(key, k->ns, k->name);
    struct bh_object *ob = make(k, bytes, n), *old = bh_map_get(&o->by_name[k->kind], key, key_n);
    if (old && !bh_streq(old->uid, k->uid)) {
        bury(o, old, key, key_n, BH_OBJ_DELETED, k->rv, log_pos);
        old = NULL;
    }
    ob->log_pos = log_pos;
    ob->told = old ? old->told : 0;
    o->bytes += n;
    o->changes++;
    o->live[k->kind] += !old;
    bh_map_put(&o->by_name[k->kind], key, key_n, ob);
    append(o, ob);
    if (old) {
        unlink_object(o, old);
        destroy(o, old);
    }
}

bool bh_objects_end(struct bh_objects *o, const struct bh_object_key *k, enum bh_object_state state,
                    uint64_t log_pos)
{
    char key[KEY_MAX];
    size_t n = make_key(key, k->ns, k->name);
    struct bh_object *ob = bh_map_get(&o->by_name[k->kind], key, n);
    if (!ob || !bh_streq(ob->uid, k->uid))
        return false;
    bury(o, ob, key, n, state, k->rv, log_pos);
    return true;
}

const struct bh_object *bh_objects_find(const struct bh_objects *o, enum bh_kind kind,
                                        const char *ns, const char *name)
{
    char key[KEY_MAX];
    size_t n = make_key(key, ns, name);
    return bh_map_get(&o->by_name[kind], key, n);
}

/* ---- readers --------------------------------------------------------------------------------- */

static void forget(struct bh_objects *o, unsigned reader)
{
    const uint32_t bit = 1u << reader;
    struct bh_object *ob, *next;
    for (ob = TAILQ_FIRST(&o->list); ob; ob = next) {
        next = TAILQ_NEXT(ob, link);
        ob->told &= ~bit;
        if (ob->state != BH_OBJ_LIVE && !ob->told) {
            unlink_object(o, ob);
            destroy(o, ob);
            o->tombs--;
        }
    }
}

int bh_objects_reader_open(struct bh_objects *o)
{
    for (unsigned r = 0; r < BH_OBJECTS_READERS; r++) {
        if (o->readers >> r & 1)
            continue;
        o->readers |= 1u << r;
        o->wants[r] = 0;
        o->next[r] = TAILQ_FIRST(&o->list);
        return (int)r;
    }
    return -1;
}

void bh_objects_reader_restart(struct bh_objects *o, unsigned reader)
{
    forget(o, reader);
    o->next[reader] = TAILQ_FIRST(&o->list);
}

void bh_objects_reader_close(struct bh_objects *o, unsigned reader)
{
    o->readers &= ~(1u << reader);
    o->next[reader] = NULL;
    forget(o, reader);
}

void bh_objects_reader_wants(struct bh_objects *o, unsigned reader, uint64_t kinds)
{
    o->wants[reader] = kinds;
}

bool bh_objects_passes(const struct bh_objects *o, unsigned reader, const struct bh_object *ob)
{
    if (ob->kind >= BH_KIND_CUSTOM && !(o->wants[reader] >> ob->kind & 1))
        return true;
    return ob->state != BH_OBJ_LIVE && !(ob->told >> reader & 1);
}

void bh_objects_drop(struct bh_objects *o, unsigned kind)
{
    for (struct bh_object *ob = TAILQ_FIRST(&o->list), *next; ob; ob = next) {
        const struct bh_object_key k = {ob->kind, ob->ns, ob->name, ob->uid, ob->rv};
        next = TAILQ_NEXT(ob, link);
        if (ob->kind == kind && ob->state == BH_OBJ_LIVE)
            bh_objects_end(o, &k, BH_OBJ_DELETED, ob->log_pos);
    }
}

const struct bh_object *bh_objects_peek(struct bh_objects *o, unsigned reader, bool *ret_known)
{
    struct bh_object *ob = o->next[reader];
    while (ob && bh_objects_passes(o, reader, ob))
        ob = TAILQ_NEXT(ob, link);
    o->next[reader] = ob;
    if (ob)
        *ret_known = ob->told >> reader & 1;
    return ob;
}

void bh_objects_advance(struct bh_objects *o, unsigned reader)
{
    struct bh_object *ob = o->next[reader];
    o->next[reader] = TAILQ_NEXT(ob, link);
    if (ob->state == BH_OBJ_LIVE) {
        ob->told |= 1u << reader;
        return;
    }
    ob->told &= ~(1u << reader);
    if (!ob->told) {
        unlink_object(o, ob);
        destroy(o, ob);
        o->tombs--;
    }
}
