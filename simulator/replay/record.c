/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/record.c - reading and writing record files
 *
 * The reader holds one line at a time: a file is unpacked as it is read, so a small file that
 * unpacks to a huge one costs time up to BH_RECORD_TOTAL_MAX, never memory.
 */
#include "simulator/replay/record.h"

#include <errno.h>
#include <zlib.h>

#include "common/k8s/quantity.h"
#include "simulator/server/sim.h"

#define CHUNK_BYTES  65536
#define GZIP_BITS    (16 + MAX_WBITS)
#define YEAR_2200_NS 7258118400000000000 /* sums of times stay within int64_t */

struct bh_record_reader {
    const unsigned char *p;
    size_t left;
    bool gzip, torn, over;
    z_stream z;
    uint64_t total;
    char *chunk; /* unpacked: chunk[at..n) is not read yet */
    size_t at, n;
    struct bh_buf line;
    unsigned n_lines;
};

struct bh_record_reader *bh_record_reader_new(const void *p, size_t n)
{
    struct bh_record_reader *r = bh_calloc(1, sizeof(*r));

    r->p = p;
    r->left = n;
    r->gzip = n > 1 && r->p[0] == 0x1f && r->p[1] == 0x8b;
    r->chunk = bh_malloc(CHUNK_BYTES);
    if (r->gzip)
        bh_assert(inflateInit2(&r->z, GZIP_BITS) == Z_OK);
    return r;
}

void bh_record_reader_free(struct bh_record_reader *r)
{
    if (!r)
        return;
    if (r->gzip)
        inflateEnd(&r->z);
    bh_buf_fini(&r->line);
    free(r->chunk);
    free(r);
}

bool bh_record_torn(const struct bh_record_reader *r)
{
    return r->torn;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* 1: something is in the chunk, 0: the end. */
static int unpack(struct bh_record_reader *r, struct bh_err *err)
{
    for (;;) {
        r->z.next_in = (Bytef *)(uintptr_t)r->p;
        r->z.avail_in = (uInt)BH_MIN(r->left, (size_t)1 << 30);
        r->z.next_out = (Bytef *)r->chunk;
        r->z.avail_out = CHUNK_BYTES;
        int rc = inflate(&r->z, Z_NO_FLUSH);
        r->left -= (size_t)((const unsigned char *)r->z.next_in - r->p);
        r->p = r->z.next_in;
        r->n = CHUNK_BYTES - r->z.avail_out;
        r->at = 0;
        if (rc == Z_STREAM_END && r->left) {
            if (inflateReset(&r->z) != Z_OK) /* files put behind one another */
                return bh_err_set(err, -EBADMSG, "the gzip stream is damaged");
        } else if (rc == Z_STREAM_END || rc == Z_BUF_ERROR) {
            r->torn = r->torn || rc == Z_BUF_ERROR;
            r->over = true;
        } else if (rc != Z_OK) {
            return bh_err_set(err, -EBADMSG, "the gzip stream is damaged: %s",
                              r->z.msg ? r->z.msg : "unknown error");
        }
        if (r->n || r->over)
            return r->n != 0;
    }
}

static int refill(struct bh_record_reader *r, struct bh_err *err)
{
    int rc = 0;

    if (r->over)
        return 0;
    if (r->gzip) {
        rc = unpack(r, err);
    } else if (r->left) {
        r->n = BH_MIN(r->left, (size_t)CHUNK_BYTES);
        r->at = 0;
        memcpy(r->chunk, r->p, r->n);
        r->p += r->n;
        r->left -= r->n;
        rc = 1;
    }
    r->total += rc > 0 ? r->n : 0;
    if (r->total > BH_RECORD_TOTAL_MAX)
        rc = bh_err_set(err, -E2BIG, "the file unpacks to more than %u GiB",
                        (unsigned)(BH_RECORD_TOTAL_MAX >> 30));
    if (rc < 0)
        r->over = true;
    return rc;
}

/* The next line: 1, 0 = end, -E2BIG, -EBADMSG; *ret_whole: it ended with a newline. */
static int next_line(struct bh_record_reader *r, bool *ret_whole, bool *ret_long,
                     struct bh_err *err)
{
    bh_buf_reset(&r->line);
    *ret_whole = *ret_long = false;
    r->n_lines++;
    for (;;) {
        const char *start = r->chunk + r->at, *nl;
        size_t n = r->n - r->at;
        int rc;
        nl = n ? memchr(start, '\n', n) : NULL;
        n = nl ? (size_t)(nl - start) : n;
        if (r->line.n + n > BH_RECORD_LINE_MAX)
            *ret_long = true;
        if (!*ret_long)
            bh_buf_add(&r->line, start, n);
        r->at += n + (nl != NULL);
        if (nl) {
            *ret_whole = true;
            return 1;
        }
        r->at = r->n = 0;
        rc = refill(r, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return r->line.n || *ret_long;
    }
}

/* ---- records --------------------------------------------------------------------------------- */

static int read_event(const struct bh_json *v, enum bh_record_event *ret, struct bh_err *err)
{
    const char *e = bh_json_get_str(v, "event");
    int at = e ? bh_word_at("Add Update Delete", e) : -1;

    if (!e)
        return bh_err_set(err, -EINVAL, "event: is missing or no text");
    if (at < 0)
        return bh_err_set(err, -EINVAL,
                          "event: unknown event \"%.40s\" (known: Add, Update, Delete)", e);
    *ret = (enum bh_record_event)at;
    return 0;
}

static int read_record(const struct bh_json *v, struct bh_record *ret, struct bh_err *err)
{
    if (v->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "is no object");
    int rc = read_event(v, &ret->event, err);
    if (rc < 0)
        return rc;
    if (bh_time_parse_ns(bh_json_get_str(v, "time"), &ret->time_ns) < 0 || ret->time_ns < 0 ||
        ret->time_ns >= YEAR_2200_NS)
        return bh_err_set(err, -EINVAL, "time: is missing, not in RFC 3339, or not of our time");
    ret->resource = bh_json_get(v, "resource");
    if (!ret->resource || ret->resource->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "resource: is missing or no object");
    const struct bh_json *meta = bh_json_get(ret->resource, "metadata");
    ret->api_version = bh_json_get_text(ret->resource, "apiVersion");
    ret->kind = bh_json_get_text(ret->resource, "kind");
    ret->ns = bh_json_get_text(meta, "namespace");
    ret->name = bh_json_get_text(meta, "name");
    if (!*ret->api_version || !*ret->kind)
        return bh_err_set(err, -EINVAL, "resource: apiVersion or kind is missing");
    if (!*ret->name)
        return bh_err_set(err, -EINVAL, "resource.metadata.name: is missing");
    return 1;
}

int bh_record_next(struct bh_record_reader *r, struct bh_arena *a, struct bh_record *ret,
                   struct bh_err *err)
{
    for (;;) {
        bool whole, too_long;
        struct bh_json *v;
        int rc = next_line(r, &whole, &too_long, err);
        *ret = (struct bh_record){
            .line = r->n_lines, .api_version = "", .kind = "", .ns = "", .name = ""};
        if (rc <= 0)
            return rc;
        if (too_long)
            return bh_err_set(err, -EINVAL, "is longer than %zu bytes", BH_RECORD_LINE_MAX);
        if (strspn(bh_buf_str(&r->line), " \t\r") == r->line.n)
            continue;
        rc = bh_json_parse(a, r->line.p, r->line.n, BH_JSON_NUL, &v, err);
        if (rc < 0 && !whole) {
            r->torn = true;
            return 0;
        }
        if (rc < 0)
            return -EINVAL;
        if (bh_json_get(v, "berthRecord"))
            continue;
        return read_record(v, ret, err);
    }
}

void bh_record_write(struct bh_buf *out, int64_t time_ns, enum bh_record_event e,
                     const struct bh_json *resource)
{
    static const char *const names[] = {"Add", "Update", "Delete"};
    char time[40];

    bh_time_format_micro_ns(time, time_ns);
    bh_buf_addf(out, "{\"time\":\"%s\",\"event\":\"%s\",\"resource\":", time, names[e]);
    bh_json_write(out, resource);
    bh_buf_adds(out, "}\n");
}
