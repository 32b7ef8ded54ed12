/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_watch.c - a watch stream or list of any bytes, cut anywhere
 *
 * The first byte chooses: bit 0 protobuf or JSON, bit 1 watch or list, the rest the size of chunks.
 * Any cutting gives the same elements; each is then decoded as a pod, a bookmark and a Status, and
 * what decodes takes its way through the reflector's set, which must stay in step with a fold of
 * its verdicts.
 */
#include "common/api/reflector_int.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    uint64_t hash;
    size_t n;
    bool decode;
    bool bare;
    struct bh_arena arena;
    struct bh_refl_store store;
    size_t live;
};

static void apply(struct sum *s, bool deleted, const struct bh_refl_key *k)
{
    char *uid = NULL;
    if (deleted) {
        s->live -= bh_refl_store_del(&s->store, k, &uid);
    } else {
        enum bh_refl_verdict v = bh_refl_store_put(&s->store, k, false, &uid);
        s->live += v == BH_REFL_NEW;
        bh_assert((v == BH_REFL_REPLACED) == (uid != NULL));
    }
    free(uid);
    bh_assert(s->store.len == s->live);
}

static void decode(struct sum *s, bool deleted, const void *p, size_t n)
{
    ProtobufCMessage *m = NULL;
    struct bh_api_status st;
    char rv[32];
    bool end;
    bh_arena_reset(&s->arena);
    s->arena.limit_bytes = BH_MAX(n * 64, (size_t)1 << 20);
    bh_decode_status(p, n, 500, &st);
    (void)bh_decode_bookmark(p, n, rv, &end);
    int rc = s->bare ? bh_pb_unpack(&s->arena, &k8s__pod__descriptor, p, n, &m, NULL)
                     : bh_decode_object(&s->arena, &k8s__pod__descriptor, p, n, &m, NULL);
    const struct K8s__ObjectMeta *meta = rc == 0 ? bh_object_meta(m) : NULL;
    if (!meta)
        return;
    const struct bh_refl_key k = {meta->namespace_, meta->name, meta->uid, meta->resourceversion};
    apply(s, deleted, &k);
}

static int on_event(void *arg, enum bh_watch_type t, const void *p, size_t n)
{
    struct sum *s = arg;
    s->hash = bh_hash(p, n, s->hash + t);
    s->n++;
    if (s->decode)
        decode(s, t == BH_WATCH_DELETED, p, n);
    return 0;
}

static int on_item(void *arg, const void *p, size_t n, bool is_pb)
{
    struct sum *s = arg;
    s->bare = is_pb;
    return on_event(arg, BH_WATCH_ADDED, p, n);
}

static int read_watch(const char *type, const uint8_t *p, size_t n, size_t chunk, struct sum *s)
{
    struct bh_watch_reader *r = bh_watch_reader_new(type, 4096, on_event, s);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i += chunk)
        rc = bh_watch_reader_feed(r, p + i, BH_MIN(chunk, n - i));
    bh_watch_reader_free(r);
    return rc;
}

static int read_list(const char *type, const uint8_t *p, size_t n, size_t chunk, struct sum *s)
{
    struct bh_list_reader *r = bh_list_reader_new(type, 1 << 16, on_item, s);
    struct bh_list_meta meta = {.resource_version = ""};
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i += chunk)
        rc = bh_list_reader_feed(r, p + i, BH_MIN(chunk, n - i));
    if (rc == 0)
        rc = bh_list_reader_finish(r, &meta, NULL);
    free(meta.cont);
    bh_list_reader_free(r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const bool watch = data[0] & 2;
    const char *type = data[0] & 1 ? "application/vnd.kubernetes.protobuf" : "application/json";
    size_t chunk = (size_t)(data[0] >> 2) + 1;
    struct sum whole = {.decode = true}, cut = {.decode = false};
    bh_arena_init(&whole.arena, 0);
    int (*read)(const char *, const uint8_t *, size_t, size_t, struct sum *) =
        watch ? read_watch : read_list;
    int a = read(type, data + 1, size - 1, size, &whole);
    int b = read(type, data + 1, size - 1, chunk, &cut);
    bh_assert(a == b && whole.n == cut.n && whole.hash == cut.hash);
    bh_refl_store_fini(&whole.store);
    bh_arena_fini(&whole.arena);
    return 0;
}
