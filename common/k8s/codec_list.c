/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/codec_list.c - LIST replies, one element at a time
 *
 * Every list is {1 metadata, 2 items}; unpacking it whole would cost several times its size in
 * memory, and gathering it before the first item is looked at would leave this process idle while
 * the server sends and the server idle while it decodes. So the envelope and the list in it are
 * walked by hand, field by field, while they arrive.
 */
#include "common/k8s/codec.h"

#include <errno.h>
#include <stdio.h>

#include "common/k8s/wire.h"

#define REST_MAX ((size_t)1 << 20) /* memory for a list's kind and metadata */

/* runtime.Unknown, and what all lists have in common */
enum { ENVELOPE_TYPE_META = 1, ENVELOPE_RAW = 2, ENVELOPE_ENCODING = 3, ENVELOPE_LAST = 4 };
enum { LIST_METADATA = 1, LIST_ITEMS = 2 };

struct pb_walk {
    enum { PB_MAGIC, PB_ENVELOPE, PB_CONTENT } at;
    struct bh_buf pending; /* what has arrived of a field that is not complete */
    size_t need;           /* bytes that pending must have before it is worth another look */
    uint64_t left;         /* PB_CONTENT: bytes up to the content's end, without skip's */
    uint64_t skip;         /* of a field that is not read, still to come */
    bool is_list, has_content;
    char kind[64]; /* for messages */
};
struct bh_list_reader {
    bool is_pb;
    size_t max_bytes;
    bh_list_item_fn *item;
    void *arg;
    struct pb_walk pb;
    struct bh_list_meta meta;    /* protobuf: as far as read */
    struct bh_json_split *split; /* JSON */
    int dead;                    /* first error; sticks */
    struct bh_err why;           /* its text, "" = the errno says it */
};

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
        .is_pb = bh_is_pb_type(content_type), .max_bytes = max_bytes, .item = item, .arg = arg};
    snprintf(r->pb.kind, sizeof(r->pb.kind), "document without kind");
    if (!r->is_pb)
        r->split = bh_json_split_new(BH_JSON_SPLIT_ITEMS, max_bytes, json_item, r);
    return r;
}

void bh_list_reader_free(struct bh_list_reader *r)
{
    if (!r)
        return;
    bh_json_split_free(r->split);
    bh_buf_fini(&r->pb.pending);
    free(r->meta.cont);
    free(r);
}

static bool is_list_kind(struct bh_str kind)
{
    return kind.n > 4 && memcmp(kind.p + kind.n - 4, "List", 4) == 0;
}

/* ---- protobuf ---- */

static int garbled(struct bh_list_reader *r)
{
    return bh_err_set(&r->why, -EINVAL, "list: %s is cut short or garbled", r->pb.kind);
}

static int not_a_list(struct bh_list_reader *r)
{
    return bh_err_set(&r->why, -EINVAL, "list: reply is a %s", r->pb.kind);
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

/* A complete field of the envelope or of the list in it. */
static int on_field(struct bh_list_reader *r, const struct bh_wire_field *f)
{
    if (r->pb.at == PB_CONTENT) {
        if (f->number == LIST_ITEMS)
            return r->item(r->arg, f->bytes.p, f->bytes.n, true);
        return read_list_meta(f->bytes, &r->meta) < 0 ? garbled(r) : 0;
    }
    if (f->number == ENVELOPE_TYPE_META) {
        struct bh_envelope e = {{"", 0}, {"", 0}, {NULL, 0}};
        if (r->pb.has_content || bh_type_meta_read(f->bytes, &e) < 0)
            return garbled(r);
        snprintf(r->pb.kind, sizeof(r->pb.kind), "%.*s", (int)BH_MIN(e.kind.n, 63), e.kind.p);
        r->pb.is_list = is_list_kind(e.kind);
        return 0;
    }
    return f->bytes.n ? bh_err_set(&r->why, -EINVAL,
                                   "list: protobuf envelope: content encoding is not supported")
                      : 0;
}

/* The field at the front of p. *ret_used: how many bytes are done with; 0: it is not complete, and
 * pb.need tells how many bytes it takes to get further. */
static int next_field(struct bh_list_reader *r, const uint8_t *p, size_t n, size_t *ret_used)
{
    struct pb_walk *const pb = &r->pb;
    const bool inside = pb->at == PB_CONTENT;
    const size_t avail = inside ? (size_t)BH_MIN(n, pb->left) : n;
    struct bh_wire w = bh_wire_of(p, avail);
    struct bh_wire_field f;
    int rc = bh_wire_head(&w, &f);
    const size_t head = (size_t)(w.p - p);

    *ret_used = 0;
    if (rc == -EAGAIN && !(inside && avail == pb->left)) {
        pb->need = avail + 1;
        return 0;
    }
    if (rc < 0)
        return garbled(r);
    const uint64_t size = f.is_bytes ? f.value : 0;
    if (inside && size > pb->left - head)
        return garbled(r);
    if (!inside && f.is_bytes && f.number == ENVELOPE_RAW) {
        *ret_used = head;
        if (!r->pb.is_list)
            return not_a_list(r);
        if (r->pb.has_content)
            return garbled(r);
        r->pb.has_content = true;
        r->pb.at = PB_CONTENT;
        r->pb.left = size;
        return 0;
    }
    if (f.is_bytes && f.number <= (uint32_t)(inside ? LIST_ITEMS : ENVELOPE_ENCODING)) {
        if (size > r->max_bytes)
            return -EFBIG;
        if (size > avail - head) {
            pb->need = head + (size_t)size;
            return 0;
        }
        *ret_used = head + (size_t)size;
        f.bytes = (struct bh_str){(const char *)w.p, (size_t)size};
        rc = on_field(r, &f);
    } else {
        *ret_used = head;
        pb->skip = size;
        rc = !f.is_bytes && f.number <= (uint32_t)(inside ? LIST_ITEMS : ENVELOPE_LAST) ? garbled(r)
                                                                                        : 0;
    }
    if (inside)
        pb->left -= head + size;
    return rc;
}

/* Walks what is complete at the front of p. */
static int walk(struct bh_list_reader *r, const uint8_t *p, size_t n, size_t *ret_used)
{
    struct pb_walk *const pb = &r->pb;
    size_t at = 0, used = 1;
    int rc = 0;

    while (rc == 0 && used && at < n) {
        if (pb->skip) {
            used = (size_t)BH_MIN(n - at, pb->skip);
            pb->skip -= used;
        } else if (pb->at == PB_CONTENT && pb->left == 0) {
            pb->at = PB_ENVELOPE;
            continue;
        } else if (pb->at == PB_MAGIC) {
            pb->need = BH_PB_MAGIC_BYTES;
            if (n - at < pb->need)
                break;
            if (!bh_is_pb_envelope(p + at, n - at)) {
                rc = bh_err_set(&r->why, -EINVAL,
                                "list: protobuf envelope: does not start with \"k8s\\0\"");
                break;
            }
            used = pb->need;
            pb->at = PB_ENVELOPE;
        } else {
            rc = next_field(r, p + at, n - at, &used);
        }
        at += used;
    }
    *ret_used = at;
    return rc;
}

static int feed_pb(struct bh_list_reader *r, const uint8_t *p, size_t n)
{
    struct bh_buf *const pending = &r->pb.pending;
    size_t used;
    int rc = 0;

    while (rc == 0 && n) {
        if (pending->n == 0) { /* complete fields straight from the caller's buffer */
            rc = walk(r, p, n, &used);
            p += used;
            n -= used;
            if (rc || n == 0)
                break;
        }
        used = BH_MIN(n, r->pb.need - pending->n);
        bh_buf_add(pending, p, used);
        p += used;
        n -= used;
        if (pending->n < r->pb.need)
            break;
        rc = walk(r, (const uint8_t *)pending->p, pending->n, &used);
        if (used) {
            bh_assert(rc || used == pending->n); /* need was exact */
            bh_buf_reset(pending);
        }
    }
    return rc;
}

static int finish_pb(struct bh_list_reader *r, struct bh_list_meta *meta)
{
    struct pb_walk *const pb = &r->pb;

    if (pb->at == PB_MAGIC || pb->pending.n || pb->skip || (pb->at == PB_CONTENT && pb->left))
        return garbled(r);
    if (!pb->is_list)
        return not_a_list(r);
    /* A body cut right before its items must not pass for an empty cluster. */
    if (!pb->has_content)
        return bh_err_set(&r->why, -EINVAL, "list: reply has no content");
    *meta = r->meta;
    r->meta.cont = NULL;
    return 0;
}

/* ---- JSON ---- */

static int finish_json(struct bh_list_reader *r, struct bh_list_meta *meta)
{
    struct bh_buf rest BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    struct bh_json *v;

    bh_arena_init(&a, REST_MAX);
    int rc = bh_json_split_finish(r->split, &rest);
    if (rc)
        return bh_err_set(&r->why, rc, "list: reply is cut short");
    rc = bh_json_parse(&a, bh_buf_str(&rest), rest.n, 0, &v, &r->why);
    if (rc)
        return bh_err_prefix(&r->why, rc, "list");
    const char *kind = bh_json_get_str(v, "kind");
    if (!is_list_kind(bh_str_c(kind)))
        return bh_err_set(&r->why, -EINVAL, "list: reply is a %.64s",
                          kind ? kind : "document without kind");
    const struct bh_json *m = bh_json_get(v, "metadata");
    const char *rv = bh_json_get_str(m, "resourceVersion"), *cont = bh_json_get_str(m, "continue");
    if (rv && strlen(rv) >= sizeof(meta->resource_version))
        return bh_err_set(&r->why, -EINVAL, "list: metadata.resourceVersion is too long");
    snprintf(meta->resource_version, sizeof(meta->resource_version), "%s", rv ? rv : "");
    meta->cont = cont && *cont ? bh_strdup(cont) : NULL;
    meta->remaining = bh_json_get_i64(m, "remainingItemCount", 0);
    return 0;
}

/* ---- the reader ---- */

int bh_list_reader_feed(struct bh_list_reader *r, const void *p, size_t n)
{
    if (!r->dead)
        r->dead = r->is_pb ? feed_pb(r, p, n) : bh_json_split_feed(r->split, p, n);
    return r->dead;
}

int bh_list_reader_finish(struct bh_list_reader *r, struct bh_list_meta *ret, struct bh_err *err)
{
    struct bh_list_meta meta = {0};

    if (!r->dead)
        r->dead = r->is_pb ? finish_pb(r, &meta) : finish_json(r, &meta);
    if (r->dead) {
        free(meta.cont);
        return bh_err_set(err, r->dead, "%s",
                          *r->why.msg         ? r->why.msg
                          : r->dead == -EFBIG ? "list: an element of the reply is too large"
                                              : "list: reply is garbled");
    }
    *ret = meta;
    return 0;
}
