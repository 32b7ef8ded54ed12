/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/lease.c - one Lease as a lock
 *
 * Owns:       the object last seen, and at most one request.
 * Invariants: done is called exactly once a request, unless the lock is freed before.
 * Runs in:    the loop.
 */
#include "common/api/lease.h"

#include <errno.h>

#include "common/base/opt.h"
#include "common/data/json.h"
#include "common/k8s/codec.h"
#include "common/k8s/quantity.h"

#define OBJECT_MAX_BYTES ((size_t)4 << 20) /* decoded; the API server keeps 1.5 MiB at most */
#define REPLY_MAX_BYTES  ((size_t)2 << 20)

struct bh_lease {
    struct bh_api_client *client;
    char *namespace_, *name, *collection; /* collection: its URL path */
    /* The object lives in one arena, the reply that may replace it in the other. */
    struct bh_arena arena[2];
    unsigned current;
    struct bh_json *object; /* NULL = none seen, or gone */
    struct bh_buf seen;     /* what an elector looks at, as of the last get */
    struct bh_lease_record record;
    struct bh_api_req *req; /* the one that runs */
    bool closing;
    bh_lease_done done;
    void *arg;
};

struct bh_lease *bh_lease_new(struct bh_api_client *client, const char *namespace_,
                              const char *name)
{
    struct bh_lease *l = bh_calloc(1, sizeof(*l));
    struct bh_buf path = {0};

    l->client = client;
    l->namespace_ = bh_strdup(namespace_);
    l->name = bh_strdup(name);
    bh_url_addf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", namespace_);
    l->collection = bh_buf_take(&path);
    for (int i = 0; i < 2; i++)
        bh_arena_init(&l->arena[i], OBJECT_MAX_BYTES);
    return l;
}

static void destroy(struct bh_lease *l)
{
    for (int i = 0; i < 2; i++)
        bh_arena_fini(&l->arena[i]);
    bh_buf_fini(&l->seen);
    free(l->namespace_);
    free(l->name);
    free(l->collection);
    free(l);
}

void bh_lease_free(struct bh_lease *l)
{
    if (!l)
        return;
    if (!l->req) {
        destroy(l);
        return;
    }
    l->closing = true;
    bh_api_cancel(l->req);
}

const char *bh_lease_uid(const struct bh_lease *l)
{
    return bh_json_get_text(bh_json_get(l->object, "metadata"), "uid");
}

const char *bh_lease_version(const struct bh_lease *l)
{
    return bh_json_get_text(bh_json_get(l->object, "metadata"), "resourceVersion");
}

/* ---- replies --------------------------------------------------------------------------------- */

static void failed(struct bh_lease *l, enum bh_lease_outcome o, const char *error)
{
    l->done(l->arg, &(struct bh_lease_result){.outcome = o, .error = error});
}

static void copy_text(const struct bh_json *spec, const char *key, char *out, size_t size)
{
    snprintf(out, size, "%s", bh_json_get_text(spec, key));
}

/* A time that the API server takes again; "" = none. */
static void copy_time(const struct bh_json *spec, const char *key, char *out, size_t size)
{
    int64_t ignored;

    copy_text(spec, key, out, size);
    if (bh_time_parse_ns(out, &ignored) == -EINVAL)
        out[0] = '\0';
}

/* An int32 of the API that is not negative; absent = 0. */
static int64_t count_of(const struct bh_json *spec, const char *key)
{
    return BH_MIN(BH_MAX(bh_json_get_i64(spec, key, 0), 0), INT32_MAX);
}

static void read_record(struct bh_lease *l)
{
    static const char *const keys[] = {"holderIdentity", "leaseDurationSeconds", "acquireTime",
                                       "renewTime",      "leaseTransitions",     "strategy",
                                       "preferredHolder"};
    const struct bh_json *spec = bh_json_get(l->object, "spec");
    struct bh_lease_record *r = &l->record;

    *r = (struct bh_lease_record){.holder = ""};
    copy_text(spec, "holderIdentity", r->holder, sizeof(r->holder));
    copy_time(spec, "acquireTime", r->acquire_time, sizeof(r->acquire_time));
    copy_time(spec, "renewTime", r->renew_time, sizeof(r->renew_time));
    r->duration_s = count_of(spec, "leaseDurationSeconds");
    r->transitions = count_of(spec, "leaseTransitions");
    bh_buf_reset(&l->seen);
    for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++) {
        const struct bh_json *v = bh_json_get(spec, keys[i]);
        bh_buf_addc(&l->seen, ',');
        if (v)
            bh_json_write(&l->seen, v);
    }
}

/* A 2xx: the body is the object as it is now. */
static void take_object(struct bh_lease *l, const struct bh_api_reply *r)
{
    struct bh_arena *a = &l->arena[!l->current];
    struct bh_err err = {""};
    struct bh_json *tree = NULL;
    struct bh_buf before = l->seen;

    bh_arena_reset(a);
    if (bh_json_parse(a, r->body.p, r->body.n, BH_JSON_NUL, &tree, &err) < 0 ||
        !bh_json_get(tree, "metadata") || !bh_streq(bh_json_get_text(tree, "kind"), "Lease")) {
        failed(l, BH_LEASE_FAILED, err.msg[0] ? err.msg : "the answer is no Lease");
        return;
    }
    l->current = !l->current;
    l->object = tree;
    l->seen = (struct bh_buf){0};
    read_record(l);
    bool changed =
        before.n != l->seen.n || memcmp(bh_buf_str(&before), bh_buf_str(&l->seen), l->seen.n) != 0;
    bh_buf_fini(&before);
    l->done(l->arg, &(struct bh_lease_result){
                        .outcome = BH_LEASE_OK, .record = &l->record, .changed = changed});
}

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct bh_lease *l = arg;
    struct bh_api_status s;

    l->req = NULL;
    if (l->closing) {
        destroy(l);
        return;
    }
    if (r->outcome != BH_API_OK) {
        failed(l, BH_LEASE_FAILED, r->error ? r->error : "no answer");
        return;
    }
    if (r->code >= 200 && r->code < 300) {
        take_object(l, r);
        return;
    }
    bh_decode_status(r->body.p, r->body.n, r->code, &s);
    if (r->code == 404) {
        l->object = NULL;
        bh_buf_reset(&l->seen);
    }
    failed(l,
           r->code == 404   ? BH_LEASE_NOT_FOUND
           : r->code == 409 ? BH_LEASE_CONFLICT
                            : BH_LEASE_FAILED,
           s.message[0] ? s.message : s.reason);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void start(struct bh_lease *l, struct bh_api_call *call, uint64_t timeout_ns,
                  bh_lease_done done, void *arg)
{
    struct bh_buf path = {0};
    char timeout[32];

    bh_assert(!l->req && !l->closing);
    l->done = done;
    l->arg = arg;
    bh_buf_adds(&path, l->collection);
    if (!bh_streq(call->method, "POST"))
        bh_url_addf(&path, "/%s", l->name);
    bh_format_duration_ns((int64_t)timeout_ns, timeout);
    bh_buf_addf(&path, "?timeout=%s", timeout);
    call->path = bh_buf_str(&path);
    call->timeout_ns = timeout_ns;
    call->max_reply_bytes = REPLY_MAX_BYTES;
    call->on_done = on_done;
    call->arg = l;
    l->req = bh_api_start(l->client, call);
    bh_assert(l->req); /* the client's owner frees us before it */
    bh_buf_fini(&path);
}

void bh_lease_get(struct bh_lease *l, uint64_t timeout_ns, bh_lease_done done, void *arg)
{
    start(l, &(struct bh_api_call){.method = "GET"}, timeout_ns, done, arg);
}

void bh_lease_write(struct bh_lease *l, const struct bh_lease_record *record, uint64_t timeout_ns,
                    bh_lease_done done, void *arg)
{
    struct bh_api_call call = {.method = l->object ? "PUT" : "POST",
                               .content_type = "application/json"};
    struct bh_buf body = {0};

    bh_buf_adds(&body,
                "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":");
    if (l->object)
        bh_json_write(&body, bh_json_get(l->object, "metadata"));
    else
        bh_buf_add_json(&body, "{\"name\":%s,\"namespace\":%s}", l->name, l->namespace_);
    bh_buf_add_json(&body,
                    ",\"spec\":{\"holderIdentity\":%s,\"leaseDurationSeconds\":%lld,"
                    "\"acquireTime\":%s,\"renewTime\":%s,\"leaseTransitions\":%lld}}",
                    record->holder, (long long)record->duration_s, record->acquire_time,
                    record->renew_time, (long long)record->transitions);
    call.body = body.p;
    call.body_n = body.n;
    start(l, &call, timeout_ns, done, arg);
    bh_buf_fini(&body);
}
