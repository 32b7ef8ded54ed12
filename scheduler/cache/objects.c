/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/objects.c - the newest object of every kind that is neither node nor pod
 *
 * Runs in: the engine's thread.
 */
#include "common/k8s/codec.h"
#include "scheduler/cache/objects.h"

/* An object costs more decoded than on the wire; beyond this it is hostile. */
#define DECODED_MAX(wire) (((size_t)1 << 20) + 64 * (wire))

static char *key_of(const char *ns, const char *name)
{
    return bh_asprintf("%s/%s", ns ? ns : "", name);
}

static void free_object(struct bh_object *ob)
{
    bh_arena_fini(&ob->arena);
    free(ob->ns);
    free(ob->name);
    free(ob);
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

int bh_objects_put(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                   const void *p, size_t n, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *key = key_of(ns, name);
    struct bh_object *ob = NULL, *old;

    if (p) {
        ob = bh_calloc(1, sizeof *ob);
        bh_arena_init(&ob->arena, DECODED_MAX(n));
        int rc = bh_pb_unpack(&ob->arena, bh_kinds[kind].desc, p, n, &ob->msg, err);
        if (rc < 0) {
            free_object(ob);
            return rc;
        }
        ob->ns = bh_strdup(ns ? ns : "");
        ob->name = bh_strdup(name);
        old = bh_map_put(&o->by_name[kind], key, strlen(key), ob);
    } else {
        old = bh_map_del(&o->by_name[kind], key, strlen(key));
    }
    if (old)
        unlink_object(o, kind, old);
    if (ob) {
        ob->feed = o->feed;
        ob->next = o->first[kind];
        if (ob->next)
            ob->next->prev = ob;
        o->first[kind] = ob;
    }
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

/* Asked for each node and pod: no memory is taken for ordinary names. */
const ProtobufCMessage *bh_objects_get(const struct bh_objects *o, enum bh_kind kind,
                                       const char *ns, const char *name)
{
    size_t n_ns = ns ? strlen(ns) : 0, n_name = strlen(name), n = n_ns + 1 + n_name;
    BH_CLEANUP(bh_freep) char *large = NULL;
    char small[512], *key = small;

    if (n > sizeof small)
        key = large = bh_malloc(n);
    if (n_ns)
        memcpy(key, ns, n_ns);
    key[n_ns] = '/';
    memcpy(key + n_ns + 1, name, n_name);
    const struct bh_object *ob = bh_map_get(&o->by_name[kind], key, n);
    return ob ? ob->msg : NULL;
}
