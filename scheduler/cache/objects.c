/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/objects.c - the newest object of every kind that is neither node nor pod
 */
#include <errno.h>
#include <stdatomic.h>

#include "common/base/hash_seed.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cache/objects.h"

/* An object costs more decoded than on the wire; beyond this it is hostile. */
#define DECODED_MAX(wire) (((size_t)1 << 20) + 64 * (wire))

/* "ns/name": asked for each node and pod, so ordinary names cost no memory. small: room for
 * BH_KEY_SMALL; *large is to be freed. */
#define BH_KEY_SMALL 512u
static struct bh_str key_of(const char *ns, const char *name, char *small, char **large)
{
    size_t n_ns = ns ? strlen(ns) : 0, n_name = strlen(name), n = n_ns + 1 + n_name;
    char *key = n <= BH_KEY_SMALL ? small : (*large = bh_malloc(n));

    if (n_ns)
        memcpy(key, ns, n_ns);
    key[n_ns] = '/';
    memcpy(key + n_ns + 1, name, n_name);
    return (struct bh_str){key, n};
}

/* One a process and random, so that no user can make up names that share a key. */
static uint64_t key_seed(void)
{
    static _Atomic uint64_t seed;
    uint64_t s = seed, mine;

    if (s)
        return s;
    mine = bh_hash_seed() | 1;
    return atomic_compare_exchange_strong(&seed, &s, mine) ? mine : s;
}

uint64_t bh_object_key(const char *ns, const char *name)
{
    return bh_hash(name, strlen(name),
                   ns && *ns ? bh_hash(ns, strlen(ns), key_seed()) : key_seed());
}

static void changed(struct bh_objects *o, enum bh_kind kind, struct bh_object *ob)
{
    o->version[kind]++;
    if (!o->log)
        o->log = bh_malloc(BH_OBJECT_LOG * sizeof *o->log);
    ob->pos = o->log_end;
    o->log[o->log_end++ % BH_OBJECT_LOG] =
        (struct bh_object_entry){kind, bh_object_key(ob->ns, ob->name)};
    if (o->log_end - o->log_begin > BH_OBJECT_LOG)
        o->log_begin = o->log_end - BH_OBJECT_LOG;
}

static void free_assumed(struct bh_assumed *a)
{
    if (a)
        bh_arena_fini(&a->arena);
    free(a);
}

void bh_object_free(struct bh_object *ob)
{
    if (!ob)
        return;
    bh_arena_fini(&ob->arena);
    free_assumed(ob->assumed);
    free(ob->ns);
    free(ob->name);
    free(ob);
}

static void link_object(struct bh_objects *o, enum bh_kind kind, struct bh_object *ob)
{
    ob->prev = NULL;
    ob->next = o->first[kind];
    if (ob->next)
        ob->next->prev = ob;
    o->first[kind] = ob;
}

/* It is the caller's now. */
static void unlink_object(struct bh_objects *o, enum bh_kind kind, struct bh_object *ob)
{
    if (ob->prev)
        ob->prev->next = ob->next;
    else
        o->first[kind] = ob->next;
    if (ob->next)
        ob->next->prev = ob->prev;
}

void bh_objects_fini(struct bh_objects *o)
{
    for (unsigned k = 0; k < BH_KIND_ALL; k++) {
        for (struct bh_object *ob = o->first[k], *next; ob; ob = next) {
            next = ob->next;
            bh_object_free(ob);
        }
        bh_map_fini(&o->by_name[k]);
    }
    free(o->log);
}

/* ---- assumed versions ---- */

static const char *version_of(const ProtobufCMessage *m)
{
    const K8s__ObjectMeta *meta = m ? bh_object_meta(m) : NULL;

    return meta ? meta->resourceversion : "";
}

static uint64_t number_of(const char *version)
{
    uint64_t n = 0;

    for (; *version >= '0' && *version <= '9'; version++)
        n = n * 10 + (uint64_t)(*version - '0');
    return n;
}

/* Is what the API server tells newer than the assumed version? Without versions (files) it is. */
static bool is_newer(enum bh_kind kind, const ProtobufCMessage *told, const ProtobufCMessage *m)
{
    const char *now = version_of(told), *then = version_of(m);

    if (!*now || !*then)
        return true;
    return kind == BH_KIND_RESOURCECLAIM ? number_of(now) > number_of(then) : !bh_streq(now, then);
}

static struct bh_object *find_object(const struct bh_objects *o, enum bh_kind kind, const char *ns,
                                     const char *name)
{
    char small[BH_KEY_SMALL];
    BH_CLEANUP(bh_freep) char *large = NULL;
    struct bh_str key = key_of(ns, name, small, &large);

    return bh_map_get(&o->by_name[kind], key.p, key.n);
}

int bh_objects_assume(struct bh_objects *o, enum bh_kind kind, const ProtobufCMessage *m,
                      bool create, struct bh_err *err)
{
    const K8s__ObjectMeta *meta = bh_object_meta(m);

    if (!meta || !*meta->name)
        return bh_err_set(err, -EINVAL, "object without name");
    struct bh_object *ob = find_object(o, kind, meta->namespace_, meta->name);
    if (!ob && !create)
        return bh_err_set(err, -ENOENT, "%s \"%s\" not found", bh_kinds[kind].plural, meta->name);
    if (!ob) {
        char small[BH_KEY_SMALL];
        BH_CLEANUP(bh_freep) char *large = NULL;
        struct bh_str key = key_of(meta->namespace_, meta->name, small, &large);
        ob = bh_calloc(1, sizeof *ob);
        bh_arena_init(&ob->arena, 0);
        ob->ns = bh_strdup(meta->namespace_);
        ob->name = bh_strdup(meta->name);
        (void)bh_map_put(&o->by_name[kind], key.p, key.n, ob);
        ob->feed = o->feed;
        link_object(o, kind, ob);
    } else if (kind == BH_KIND_RESOURCECLAIM
                   ? number_of(version_of(ob->msg)) > number_of(meta->resourceversion)
                   : !bh_streq(version_of(ob->told), meta->resourceversion)) {
        return bh_err_set(err, -ESTALE, "\"%s%s%s\" is out of sync (stored: %s, assume: %s)",
                          meta->namespace_, *meta->namespace_ ? "/" : "", meta->name,
                          version_of(ob->told), meta->resourceversion);
    }
    struct bh_assumed *a = bh_calloc(1, sizeof *a);
    bh_arena_init(&a->arena, 0);
    a->msg = bh_pb_copy(&a->arena, m);
    free_assumed(ob->assumed);
    ob->assumed = a;
    ob->msg = a->msg;
    unlink_object(o, kind, ob);
    link_object(o, kind, ob);
    changed(o, kind, ob);
    return 0;
}

void bh_objects_restore(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                        const char *resource_version)
{
    struct bh_object *ob = find_object(o, kind, ns, name);

    if (!ob || !ob->assumed || !bh_streq(version_of(ob->assumed->msg), resource_version))
        return;
    if (!ob->told) {
        (void)bh_objects_put(o, kind, ns, name, NULL, 0, NULL);
        return;
    }
    free_assumed(ob->assumed);
    ob->assumed = NULL;
    ob->msg = ob->told;
    unlink_object(o, kind, ob);
    link_object(o, kind, ob);
    changed(o, kind, ob);
}

/* ---- what the API server tells ---- */

static int decode(struct bh_object *ob, enum bh_kind kind, const void *p, size_t n,
                  struct bh_err *err)
{
    const struct bh_kind_info *k = bh_kind_of(kind);
    struct bh_json *v = NULL;

    if (!k)
        return bh_err_set(err, -EINVAL, "an object of a kind that no plugin reads");
    int rc = bh_pb_unpack(&ob->arena, k->desc, p, n, &ob->told, err);
    if (rc == 0 && kind >= BH_KIND_CUSTOM) {
        const K8s__CustomObject *o = (const void *)ob->told;
        rc = bh_json_parse(&ob->arena, (const char *)o->json.data, o->json.len, BH_JSON_NUL, &v,
                           err);
        if (rc == 0 && (!o->metadata || v->type != BH_JSON_OBJECT))
            rc = bh_err_set(err, -EINVAL, "no object, or one without metadata");
    }
    ob->json = v;
    return rc;
}

int bh_objects_replace(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                       const void *p, size_t n, struct bh_object **ret_old, struct bh_err *err)
{
    char small[BH_KEY_SMALL];
    BH_CLEANUP(bh_freep) char *large = NULL;
    struct bh_object *ob = NULL, *old;
    struct bh_str key = key_of(ns, name, small, &large);

    *ret_old = NULL;
    if (p) {
        ob = bh_calloc(1, sizeof *ob);
        bh_arena_init(&ob->arena, DECODED_MAX(n));
        int rc = decode(ob, kind, p, n, err);
        if (rc < 0) {
            bh_object_free(ob);
            return rc;
        }
        ob->msg = ob->told;
        ob->ns = bh_strdup(ns ? ns : "");
        ob->name = bh_strdup(name);
        old = bh_map_put(&o->by_name[kind], key.p, key.n, ob);
    } else {
        old = bh_map_del(&o->by_name[kind], key.p, key.n);
    }
    if (ob && old && old->assumed && !is_newer(kind, ob->told, old->assumed->msg)) {
        /* ob replaces old: an assumed version that is not outdated goes along. */
        ob->assumed = old->assumed;
        ob->msg = ob->assumed->msg;
        old->assumed = NULL;
    }
    if (old || ob)
        changed(o, kind, ob ? ob : old);
    if (old)
        unlink_object(o, kind, old);
    if (ob) {
        ob->feed = o->feed;
        link_object(o, kind, ob);
    }
    *ret_old = old;
    return 0;
}

int bh_objects_put(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                   const void *p, size_t n, struct bh_err *err)
{
    struct bh_object *old;
    int rc = bh_objects_replace(o, kind, ns, name, p, n, &old, err);

    bh_object_free(old);
    return rc;
}

void bh_objects_sweep(struct bh_objects *o)
{
    for (unsigned k = 0; k < BH_KIND_ALL; k++)
        for (struct bh_object *ob = o->first[k], *next; ob; ob = next) {
            next = ob->next;
            if (ob->feed != o->feed)
                (void)bh_objects_put(o, (enum bh_kind)k, ob->ns, ob->name, NULL, 0, NULL);
        }
}

const struct bh_object *bh_objects_find(const struct bh_objects *o, enum bh_kind kind,
                                        const char *ns, const char *name)
{
    return find_object(o, kind, ns, name);
}

const ProtobufCMessage *bh_objects_get(const struct bh_objects *o, enum bh_kind kind,
                                       const char *ns, const char *name)
{
    const struct bh_object *ob = find_object(o, kind, ns, name);

    return ob ? ob->msg : NULL;
}

const ProtobufCMessage *bh_objects_told(const struct bh_objects *o, enum bh_kind kind,
                                        const char *ns, const char *name)
{
    const struct bh_object *ob = find_object(o, kind, ns, name);

    return ob ? ob->told : NULL;
}
