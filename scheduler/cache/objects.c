/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/objects.c - the newest object of every kind that is neither node nor pod
 *
 * Runs in: the engine's thread.
 */
#include <errno.h>

#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cache/objects.h"

/* An object costs more decoded than on the wire; beyond this it is hostile. */
#define DECODED_MAX(wire) (((size_t)1 << 20) + 64 * (wire))

static char *key_of(const char *ns, const char *name)
{
    return bh_asprintf("%s/%s", ns ? ns : "", name);
}

static void free_assumed(struct bh_assumed *a)
{
    if (a)
        bh_arena_fini(&a->arena);
    free(a);
}

static void free_object(struct bh_object *ob)
{
    bh_arena_fini(&ob->arena);
    free_assumed(ob->assumed);
    free(ob->ns);
    free(ob->name);
    free(ob);
}

static void link_object(struct bh_objects *o, enum bh_kind kind, struct bh_object *ob)
{
    ob->feed = o->feed;
    ob->next = o->first[kind];
    if (ob->next)
        ob->next->prev = ob;
    o->first[kind] = ob;
}

static void unlink_object(struct bh_objects *o, enum bh_kind kind, struct bh_object *ob)
{
    if (ob->prev)
        ob->prev->next = ob->next;
    else
        o->first[kind] = ob->next;
    if (ob->next)
        ob->next->prev = ob->prev;
    free_object(ob);
}

void bh_objects_fini(struct bh_objects *o)
{
    for (unsigned k = 0; k < BH_KIND_COUNT; k++) {
        while (o->first[k])
            unlink_object(o, (enum bh_kind)k, o->first[k]);
        bh_map_fini(&o->by_name[k]);
    }
}

/* ---- assumed versions --------------------------------------------------------------------------
 */

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

/* Is what the API server tells now newer than the assumed version? Without versions (files) it is.
 */
static bool is_newer(enum bh_kind kind, const ProtobufCMessage *told, const ProtobufCMessage *m)
{
    const char *now = version_of(told), *then = version_of(m);

    if (!*now || !*then)
        return true;
    return kind == BH_KIND_RESOURCECLAIM ? number_of(now) > number_of(then) : !bh_streq(now, then);
}

/* ob replaces old: an assumed version that is not outdated goes along. */
static void inherit(enum bh_kind kind, struct bh_object *ob, struct bh_object *old)
{
    if (!old->assumed || is_newer(kind, ob->told, old->assumed->msg))
        return;
    ob->assumed = old->assumed;
    ob->msg = ob->assumed->msg;
    old->assumed = NULL;
}

static struct bh_object *find(const struct bh_objects *o, enum bh_kind kind, const char *ns,
                              const char *name)
{
    size_t n_ns = ns ? strlen(ns) : 0, n_name = strlen(name), n = n_ns + 1 + n_name;
    BH_CLEANUP(bh_freep) char *large = NULL;
    char small[512], *key = small; /* asked for each node and pod: no memory for ordinary names */

    if (n > sizeof small)
        key = large = bh_malloc(n);
    if (n_ns)
        memcpy(key, ns, n_ns);
    key[n_ns] = '/';
    memcpy(key + n_ns + 1, name, n_name);
    return bh_map_get(&o->by_name[kind], key, n);
}

static void set_assumed(struct bh_objects *o, enum bh_kind kind, struct bh_object *ob,
                        const ProtobufCMessage *m)
{
    struct bh_assumed *a = bh_calloc(1, sizeof *a);

    bh_arena_init(&a->arena, 0);
    a->msg = bh_pb_copy(&a->arena, m);
    free_assumed(ob->assumed);
    ob->assumed = a;
    ob->msg = a->msg;
    o->version[kind]++;
}

static int assume(struct bh_objects *o, enum bh_kind kind, const ProtobufCMessage *m, bool create,
                  struct bh_err *err)
{
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    struct bh_object *ob;

    if (!meta || !*meta->name)
        return bh_err_set(err, -EINVAL, "object without name");
    ob = find(o, kind, meta->namespace_, meta->name);
    if (!ob && !create)
        return bh_err_set(err, -ENOENT, "%s \"%s\" not found", bh_kinds[kind].plural, meta->name);
    if (!ob) {
        BH_CLEANUP(bh_freep) char *key = key_of(meta->namespace_, meta->name);
        ob = bh_calloc(1, sizeof *ob);
        bh_arena_init(&ob->arena, 0);
        ob->ns = bh_strdup(meta->namespace_);
        ob->name = bh_strdup(meta->name);
        (void)bh_map_put(&o->by_name[kind], key, strlen(key), ob);
        link_object(o, kind, ob);
    } else if (kind == BH_KIND_RESOURCECLAIM
                   ? number_of(version_of(ob->msg)) > number_of(meta->resourceversion)
                   : !bh_streq(version_of(ob->told), meta->resourceversion)) {
        return bh_err_set(err, -ESTALE, "\"%s%s%s\" is out of sync (stored: %s, assume: %s)",
                          meta->namespace_, *meta->namespace_ ? "/" : "", meta->name,
                          version_of(ob->told), meta->resourceversion);
    }
    set_assumed(o, kind, ob, m);
    return 0;
}

int bh_objects_assume(struct bh_objects *o, enum bh_kind kind, const ProtobufCMessage *m,
                      struct bh_err *err)
{
    return assume(o, kind, m, false, err);
}

int bh_objects_assume_new(struct bh_objects *o, enum bh_kind kind, const ProtobufCMessage *m,
                          struct bh_err *err)
{
    return assume(o, kind, m, true, err);
}

void bh_objects_restore(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                        const char *resource_version)
{
    struct bh_object *ob = find(o, kind, ns, name);

    if (!ob || !ob->assumed || !bh_streq(version_of(ob->assumed->msg), resource_version))
        return;
    if (!ob->told) {
        (void)bh_objects_put(o, kind, ns, name, NULL, 0, NULL);
        return;
    }
    free_assumed(ob->assumed);
    ob->assumed = NULL;
    ob->msg = ob->told;
    o->version[kind]++;
}

/* ---- what the API server tells -----------------------------------------------------------------
 */

int bh_objects_put(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                   const void *p, size_t n, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *key = key_of(ns, name);
    struct bh_object *ob = NULL, *old;

    if (p) {
        ob = bh_calloc(1, sizeof *ob);
        bh_arena_init(&ob->arena, DECODED_MAX(n));
        int rc = bh_pb_unpack(&ob->arena, bh_kinds[kind].desc, p, n, &ob->told, err);
        if (rc < 0) {
            free_object(ob);
            return rc;
        }
        ob->msg = ob->told;
        ob->ns = bh_strdup(ns ? ns : "");
        ob->name = bh_strdup(name);
        old = bh_map_put(&o->by_name[kind], key, strlen(key), ob);
    } else {
        old = bh_map_del(&o->by_name[kind], key, strlen(key));
    }
    if (ob && old)
        inherit(kind, ob, old);
    if (old)
        unlink_object(o, kind, old);
    if (ob)
        link_object(o, kind, ob);
    if (old || ob)
        o->version[kind]++;
    return 0;
}

void bh_objects_sweep(struct bh_objects *o)
{
    for (unsigned k = 0; k < BH_KIND_COUNT; k++)
        for (struct bh_object *ob = o->first[k], *next; ob; ob = next) {
            next = ob->next;
            if (ob->feed != o->feed)
                (void)bh_objects_put(o, (enum bh_kind)k, ob->ns, ob->name, NULL, 0, NULL);
        }
}

const ProtobufCMessage *bh_objects_get(const struct bh_objects *o, enum bh_kind kind,
                                       const char *ns, const char *name)
{
    const struct bh_object *ob = find(o, kind, ns, name);

    return ob ? ob->msg : NULL;
}

const ProtobufCMessage *bh_objects_told(const struct bh_objects *o, enum bh_kind kind,
                                        const char *ns, const char *name)
{
    const struct bh_object *ob = find(o, kind, ns, name);

    return ob ? ob->told : NULL;
}
