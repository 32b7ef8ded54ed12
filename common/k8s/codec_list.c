/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/codec_list.c - LIST replies, one element at a time
 *
 * Every list is {1 metadata, 2 items}; unpacking it whole would cost several times its size in
 * memory, so the envelope is walked by hand. A protobuf length prefix covers the whole list, hence
 * the bytes are gathered before the walk; JSON elements are handed out while they arrive.
 */
#include "common/k8s/codec.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "common/k8s/wire.h"

#define REST_MAX ((size_t)1 << 20) /* memory for a list's kind and metadata */

struct bh_list_reader {
    bool is_pb;
    size_t max_bytes;
    bh_list_item_fn *item;
    void *arg;
    struct bh_buf body;          /* protobuf */
    struct bh_json_split *split; /* JSON */
    int dead;                    /* first error; sticks */
};

static bool is_pb_type(const char *content_type)
{
    static const char pb[] = "application/vnd.kubernetes.protobuf";
    return content_type && strncasecmp(content_type, pb, sizeof(pb) - 1) == 0;
}

static int json_item(void *arg, const char *p, size_t n)
{
    struct bh_list_reader *r = arg;
    return r->item(r->arg, p, n, false);
}

struct bh_list_reader *bh_list_reader_new(const char *content_type, size_t max_bytes,
                                          bh_list_item_fn *item, void *arg)
{
    struct bh_list_reader *r = bh_calloc(1, sizeof(*r));

    *r = (struct bh_list_reader){
        .is_pb = is_pb_type(content_type), .max_bytes = max_bytes, .item = item, .arg = arg};
    if (!r->is_pb)
        r->split = bh_json_split_new(BH_JSON_SPLIT_ITEMS, max_bytes, json_item, r);
    return r;
}

void bh_list_reader_free(struct bh_list_reader *r)
{
    if (!r)
        return;
    bh_json_split_free(r->split);
    bh_buf_fini(&r->body);
    free(r);
}

int bh_list_reader_feed(struct bh_list_reader *r, const void *p, size_t n)
{
    if (r->dead)
        return r->dead;
    if (!r->is_pb)
        return r->dead = bh_json_split_feed(r->split, p, n);
    if (n > r->max_bytes - BH_MIN(r->body.n, r->max_bytes))
        return r->dead = -EFBIG;
    bh_buf_add(&r->body, p, n);
    return 0;
}

static bool is_list_kind(struct bh_str kind)
{
    return kind.n > 4 && memcmp(kind.p + kind.n - 4, "List", 4) == 0;
}

static int read_list_meta(struct bh_str bytes, struct bh_list_meta *meta)
{
    struct bh_wire w = bh_wire_of(bytes.p, bytes.n);
    struct bh_wire_field f;
    int rc;

    while ((rc = bh_wire_next(&w, &f)) > 0) {
        if (f.number == 2 &&
            bh_wire_text(&f, meta->resource_version, sizeof(meta->resource_version)) != 0)
            return -EINVAL;
        if (f.number == 3 && f.is_bytes) {
            free(meta->cont);
            meta->cont = f.bytes.n ? bh_strndup(f.bytes.p, f.bytes.n) : NULL;
        }
        if (f.number == 4 && !f.is_bytes)
            meta->remaining = (int64_t)f.value;
    }
    return rc;
}

static int finish_pb(struct bh_list_reader *r, struct bh_list_meta *meta, struct bh_err *err)
{
    struct bh_envelope e;
    struct bh_wire_field f;
    int rc = bh_envelope_open(bh_buf_str(&r->body), r->body.n, &e, err);

    if (rc)
        return rc;
    if (!is_list_kind(e.kind))
        return bh_err_set(err, -EINVAL, "list: reply is a %.*s", (int)BH_MIN(e.kind.n, 64),
                          e.kind.p);
    /* A body cut right before its items must not pass for an empty cluster. */
    if (!e.raw.p)
        return bh_err_set(err, -EINVAL, "list: reply has no content");
    struct bh_wire w = bh_wire_of(e.raw.p, e.raw.n);
    while ((rc = bh_wire_next(&w, &f)) > 0) {
        if (f.number > 2)
            continue;
        if (!f.is_bytes)
            rc = -EINVAL;
        else if (f.number == 1)
            rc = read_list_meta(f.bytes, meta);
        else if ((rc = r->item(r->arg, f.bytes.p, f.bytes.n, true)) != 0)
            return rc;
        if (rc < 0)
            break;
    }
    return rc ? bh_err_set(err, -EINVAL, "list: %.*s is cut short or garbled",
                           (int)BH_MIN(e.kind.n, 64), e.kind.p)
              : 0;
}

static int finish_json(struct bh_list_reader *r, struct bh_list_meta *meta, struct bh_err *err)
{
    struct bh_buf rest BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    struct bh_json *v;

    bh_arena_init(&a, REST_MAX);
    int rc = bh_json_split_finish(r->split, &rest);
    if (rc)
        return bh_err_set(err, rc, "list: reply is cut short");
    rc = bh_json_parse(&a, bh_buf_str(&rest), rest.n, 0, &v, err);
    if (rc)
        return bh_err_prefix(err, rc, "list");
    const char *kind = bh_json_get_str(v, "kind");
    if (!is_list_kind(bh_str_c(kind)))
        return bh_err_set(err, -EINVAL, "list: reply is a %.64s",
                          kind ? kind : "document without kind");
    const struct bh_json *m = bh_json_get(v, "metadata");
    const char *rv = bh_json_get_str(m, "resourceVersion"), *cont = bh_json_get_str(m, "continue");
    if (rv && strlen(rv) >= sizeof(meta->resource_version))
        return bh_err_set(err, -EINVAL, "list: metadata.resourceVersion is too long");
    snprintf(meta->resource_version, sizeof(meta->resource_version), "%s", rv ? rv : "");
    meta->cont = cont && *cont ? bh_strdup(cont) : NULL;
    meta->remaining = bh_json_get_i64(m, "remainingItemCount", 0);
    return 0;
}

int bh_list_reader_finish(struct bh_list_reader *r, struct bh_list_meta *ret, struct bh_err *err)
{
    struct bh_list_meta meta = {0};

    if (r->dead)
        return bh_err_set(err, r->dead, "list: %s",
                          r->dead == -EFBIG ? "reply is too large" : "reply is garbled");
    int rc = r->is_pb ? finish_pb(r, &meta, err) : finish_json(r, &meta, err);
    if (rc) {
        r->dead = rc;
        free(meta.cont);
        return rc;
    }
    *ret = meta;
    return 0;
}
