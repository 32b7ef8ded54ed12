/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/codec_watch.c - watch streams: frames in, frames out
 *
 * protobuf: 4-byte big-endian length, then a bare meta.v1.WatchEvent {1 type, 2 object {1 raw}}
 * whose raw is a complete envelope. JSON: {"type":...,"object":...} documents, one after the other.
 * A JSON event is not parsed here: a scan finds where the object's text lies, the consumer parses
 * it once.
 */
#include "common/k8s/codec.h"

#include <errno.h>

#include "common/k8s/wire.h"

struct bh_watch_reader {
    bool is_pb;
    size_t max_frame_bytes;
    bh_watch_event_fn *fn;
    void *arg;
    struct bh_buf pending;       /* protobuf: bytes of frames not yet complete */
    struct bh_json_split *split; /* JSON */
    int dead;                    /* first error; sticks */
};

static enum bh_watch_type type_of(struct bh_str s)
{
    static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    unsigned i = 0;

    while (i < BH_ARRAY_LEN(names) && !bh_str_eqc(s, names[i]))
        i++;
    return i < BH_ARRAY_LEN(names) ? (enum bh_watch_type)i : BH_WATCH_UNKNOWN;
}

/* ---- JSON: a scan over a document that the splitter has delimited ---- */
struct scan {
    const char *p, *end;
};

static void skip_blanks(struct scan *s)
{
    while (s->p < s->end && strchr(" \t\r\n", *s->p))
        s->p++;
}

/* At a quote: moves behind the closing one. */
static bool skip_string(struct scan *s, struct bh_str *ret)
{
    const char *start = ++s->p;

    for (; s->p < s->end; s->p++) {
        if (*s->p == '\\') {
            s->p++;
        } else if (*s->p == '"') {
            *ret = (struct bh_str){start, (size_t)(s->p - start)};
            s->p++;
            return true;
        }
    }
    return false;
}

static bool skip_value(struct scan *s)
{
    struct bh_str ignored;
    int depth = 0;

    for (; s->p < s->end; s->p++) {
        char c = *s->p;
        if (c == '"') {
            if (!skip_string(s, &ignored))
                return false;
            s->p--;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']' || c == ',') {
            if (depth == 0)
                return true;
            depth -= c != ',';
        }
    }
    return false;
}

static int find_members(const char *p, size_t n, struct bh_str *ret_type, struct bh_str *ret_object)
{
    struct scan s = {p, p + n};
    struct bh_str key;

    skip_blanks(&s);
    if (s.p == s.end || *s.p++ != '{')
        return -EINVAL;
    for (skip_blanks(&s); s.p < s.end && *s.p == '"'; skip_blanks(&s)) {
        if (!skip_string(&s, &key))
            return -EINVAL;
        skip_blanks(&s);
        if (s.p == s.end || *s.p++ != ':')
            return -EINVAL;
        skip_blanks(&s);
        const char *value = s.p;
        if (!skip_value(&s))
            return -EINVAL;
        struct bh_str text = {value, (size_t)(s.p - value)};
        if (bh_str_eqc(key, "object"))
            *ret_object = text;
        if (bh_str_eqc(key, "type") && text.n >= 2 && *value == '"') {
            while (value[text.n - 1] != '"') /* blanks before the comma */
                text.n--;
            *ret_type = (struct bh_str){value + 1, text.n - 2};
        }
        if (*s.p == ',')
            s.p++;
    }
    return s.p < s.end && *s.p == '}' ? 0 : -EINVAL;
}

static int json_event(void *arg, const char *p, size_t n)
{
    struct bh_watch_reader *r = arg;
    struct bh_str type = {"", 0}, object = {NULL, 0};

    if (find_members(p, n, &type, &object) != 0 || !object.p)
        return -EINVAL;
    return r->fn(r->arg, type_of(type), object.p, object.n);
}

/* ---- protobuf ---- */
static int pb_event(struct bh_watch_reader *r, const char *p, size_t n)
{
    struct bh_str frame = {p, n}, type = {"", 0}, object = {"", 0}, raw = {NULL, 0};

    if (bh_wire_find(frame, 1, &type) < 0 || bh_wire_find(frame, 2, &object) < 0 ||
        bh_wire_find(object, 1, &raw) < 0 || !raw.p)
        return -EINVAL;
    return r->fn(r->arg, type_of(type), raw.p, raw.n);
}

/* Hands out the complete frames at the front of p; *ret_used tells how many bytes they took. */
static int pb_frames(struct bh_watch_reader *r, const char *p, size_t n, size_t *ret_used)
{
    size_t at = 0;
    int rc = 0;

    while (n - at >= 4) {
        const uint8_t *h = (const uint8_t *)p + at;
        size_t len = (size_t)h[0] << 24 | (size_t)h[1] << 16 | (size_t)h[2] << 8 | h[3];
        if (len > r->max_frame_bytes) {
            rc = -EFBIG;
            break;
        }
        if (n - at - 4 < len)
            break;
        rc = pb_event(r, p + at + 4, len);
        if (rc)
            break;
        at += 4 + len;
    }
    *ret_used = at;
    return rc;
}

/* ---- reader ---- */
struct bh_watch_reader *bh_watch_reader_new(const char *content_type, size_t max_frame_bytes,
                                            bh_watch_event_fn *fn, void *arg)
{
    struct bh_watch_reader *r = bh_calloc(1, sizeof(*r));

    *r = (struct bh_watch_reader){.is_pb = bh_is_pb_type(content_type),
                                  .max_frame_bytes = max_frame_bytes,
                                  .fn = fn,
                                  .arg = arg};
    if (!r->is_pb)
        r->split = bh_json_split_new(BH_JSON_SPLIT_DOCS, max_frame_bytes, json_event, r);
    return r;
}

void bh_watch_reader_free(struct bh_watch_reader *r)
{
    if (!r)
        return;
    bh_json_split_free(r->split);
    bh_buf_fini(&r->pending);
    free(r);
}

int bh_watch_reader_feed(struct bh_watch_reader *r, const void *p, size_t n)
{
    size_t used;

    if (r->dead)
        return r->dead;
    if (!r->is_pb)
        return r->dead = bh_json_split_feed(r->split, p, n);
    if (r->pending.n == 0) { /* whole frames straight from the caller's buffer */
        r->dead = pb_frames(r, p, n, &used);
        if (!r->dead && used < n)
            bh_buf_add(&r->pending, (const char *)p + used, n - used);
        return r->dead;
    }
    bh_buf_add(&r->pending, p, n);
    r->dead = pb_frames(r, r->pending.p, r->pending.n, &used);
    if (!r->dead)
        bh_buf_consume(&r->pending, used);
    return r->dead;
}

/* ---- writer ---- */
void bh_watch_frame_pb(struct bh_buf *out, const char *type, const void *envelope, size_t n)
{
    size_t n_type = strlen(type);
    size_t n_object = 1 + bh_wire_varint_size(n) + n;
    size_t len =
        1 + bh_wire_varint_size(n_type) + n_type + 1 + bh_wire_varint_size(n_object) + n_object;
    const uint8_t head[4] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
                             (uint8_t)len};

    bh_assert(len <= UINT32_MAX);
    bh_buf_add(out, head, sizeof(head));
    bh_wire_add_bytes(out, 1, type, n_type);
    bh_wire_add_varint(out, 2 << 3 | 2);
    bh_wire_add_varint(out, n_object);
    bh_wire_add_bytes(out, 1, envelope, n);
}
