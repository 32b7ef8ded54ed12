/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/codec_status.c - Status objects and watch bookmarks, in either encoding
 */
#include "common/k8s/codec.h"

#include <errno.h>
#include <stdio.h>

#include "common/k8s/wire.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define STATUS_ARENA_MAX ((size_t)4 << 20)
#define EXCERPT_MAX      200

static void copy_text(char *out, size_t cap, const char *s)
{
    size_t n = s ? strnlen(s, cap - 1) : 0;

    /* Never cut a UTF-8 sequence in two. */
    while (s && n == cap - 1 && n > 0 && ((uint8_t)s[n] & 0xc0) == 0x80)
        n--;
    if (n)
        memcpy(out, s, n);
    out[n] = '\0';
}

/* What a proxy or a broken server sent, on one printable line. */
static void excerpt(const char *p, size_t n, int http_code, char *out, size_t cap)
{
    size_t k = BH_MIN(BH_MIN(n, EXCERPT_MAX), cap - 1), len = 0;

    for (size_t i = 0; i < k; i++) {
        char c = p[i] >= ' ' && p[i] < 127 ? p[i] : ' ';
        if (c != ' ' || (len && out[len - 1] != ' '))
            out[len++] = c;
    }
    while (len && out[len - 1] == ' ')
        len--;
    out[len] = '\0';
    if (len == 0)
        snprintf(out, cap, "HTTP %d without a message", http_code);
}

void bh_decode_status(const void *p, size_t n, int http_code, struct bh_api_status *ret)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini);

    bh_arena_init(&a, STATUS_ARENA_MAX);
    *ret = (struct bh_api_status){.code = http_code};
    ProtobufCMessage *m = NULL;
    struct bh_envelope e;
    struct bh_json *v;
    if (bh_is_pb_envelope(p, n)) {
        if (bh_envelope_open(p, n, &e, NULL) == 0 && bh_str_eqc(e.kind, "Status"))
            (void)bh_pb_unpack(&a, &k8s__status__descriptor, e.raw.p, e.raw.n, &m, NULL);
    } else if (n && bh_json_parse(&a, p, n, 0, &v, NULL) == 0 &&
               bh_streq(bh_json_get_text(v, "kind"), "Status")) {
        (void)bh_json_to_pb(&a, &k8s__status__descriptor, v, &m, NULL, NULL);
    }
    const K8s__Status *s = (const K8s__Status *)m;
    if (!s) {
        excerpt(p, n, http_code, ret->message, sizeof(ret->message));
        return;
    }
    if (s->code)
        ret->code = s->code;
    copy_text(ret->reason, sizeof(ret->reason), s->reason);
    copy_text(ret->message, sizeof(ret->message), s->message);
    if (s->details) {
        ret->retry_after_s = BH_MAX(s->details->retryafterseconds, 0);
        copy_text(ret->details_kind, sizeof(ret->details_kind), s->details->kind);
        copy_text(ret->details_name, sizeof(ret->details_name), s->details->name);
    }
}

static bool is_initial_end(struct bh_str entry)
{
    struct bh_str key = {"", 0}, value = {"", 0};

    (void)bh_wire_find(entry, 1, &key);
    (void)bh_wire_find(entry, 2, &value);
    return bh_str_eqc(key, "k8s.io/initial-events-end") && bh_str_eqc(value, "true");
}

/* Every object has metadata as field 1, so a bookmark is read without knowing its kind. */
static int bookmark_pb(const void *p, size_t n, char *rv, bool *initial_end)
{
    struct bh_envelope e;
    struct bh_wire_field f;
    int rc = bh_envelope_open(p, n, &e, NULL);

    if (rc)
        return rc;
    struct bh_str meta = {NULL, 0};
    rc = bh_wire_find(e.raw, 1, &meta);
    struct bh_wire w = bh_wire_of(meta.p, meta.n);
    while (rc == 0 && (rc = bh_wire_next(&w, &f)) > 0) {
        rc = 0;
        if (f.number == 6)
            rc = bh_wire_text(&f, rv, 32);
        else if (f.number == 12 && f.is_bytes && is_initial_end(f.bytes))
            *initial_end = true;
    }
    return rc;
}

static int bookmark_json(const void *p, size_t n, char *rv, bool *initial_end)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    struct bh_json *v;

    bh_arena_init(&a, STATUS_ARENA_MAX);
    int rc = bh_json_parse(&a, p, n, 0, &v, NULL);
    if (rc)
        return rc;
    const struct bh_json *meta = bh_json_get(v, "metadata");
    const char *text = bh_json_get_str(meta, "resourceVersion");
    if (!text || strlen(text) >= 32)
        return -EINVAL;
    memcpy(rv, text, strlen(text) + 1);
    *initial_end = bh_streq(
        bh_json_get_text(bh_json_get(meta, "annotations"), "k8s.io/initial-events-end"), "true");
    return 0;
}

int bh_decode_bookmark(const void *p, size_t n, char ret_rv[static 32], bool *ret_initial_end)
{
    char rv[32] = "";
    bool initial_end = false;
    int rc = bh_is_pb_envelope(p, n) ? bookmark_pb(p, n, rv, &initial_end)
                                     : bookmark_json(p, n, rv, &initial_end);

    if (rc == 0 && !*rv)
        rc = -EINVAL;
    if (rc)
        return rc;
    memcpy(ret_rv, rv, sizeof(rv));
    *ret_initial_end = initial_end;
    return 0;
}
