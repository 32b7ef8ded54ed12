/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/codec.h - API objects from and to the wire: protobuf and JSON give the same structs
 *
 * protobuf: the "k8s\0" envelope (runtime.Unknown), list envelopes walked by hand so that one item
 * at a time is unpacked, watch frames (4-byte length, meta.v1.WatchEvent).
 * JSON: converted to the same protobuf-c struct by walking its descriptor (JSON names are the field
 * names; maps, Quantity, Time, MicroTime, IntOrString and inlined unions are the special cases).
 * Unknown fields are ignored in both; a field of the wrong type is an error naming its path.
 * Decoded messages live in the caller's arena; reset it instead of freeing them. The arena should
 * carry a limit (2.7 F11: 64 x the wire size, at least 1 MiB).
 */
#ifndef BH_CODEC_H
#define BH_CODEC_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/data/json.h"
#include "common/k8s/kinds.h"

/* An empty message in the arena, NULL at its limit. */
void *bh_pb_new(struct bh_arena *a, const ProtobufCMessageDescriptor *d);
/* Allocator for protobuf-c that takes from the arena; free is a no-op. */
ProtobufCAllocator bh_arena_pb_allocator(struct bh_arena *a);

/* Bare message bytes (no envelope). 0, -EINVAL, -E2BIG (arena limit). A NUL in a text becomes U+001A
 * there, since texts of a message are C strings: the text keeps its length and is equal to no name. */
int bh_pb_unpack(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const void *p, size_t n,
                 ProtobufCMessage **ret_m, struct bh_err *err);
/* The same where it is the usual case (unpack.c), else NULL, which says nothing: ask protobuf-c.
 * For messages without required fields, as all of ours. */
ProtobufCMessage *bh_pb_unpack_fast(struct bh_arena *a, const ProtobufCMessageDescriptor *d,
                                    const void *p, size_t n);
/* Does no text of the message hold NUL, which protobuf-c cuts? false too: not protobuf. */
bool bh_pb_texts_are_whole(const ProtobufCMessageDescriptor *d, const void *p, size_t n);
/* Appends the bytes of an object without its metadata.managedFields, which is read nowhere here and
 * which often are most of it. False: they are no protobuf; out is as long as it was, or longer. */
bool bh_pb_without_managed(struct bh_buf *out, const void *p, size_t n);
/* Splits an envelope: api_version, kind and the raw message, all borrowed from p. */
struct bh_envelope {
    struct bh_str api_version, kind, raw;
};
#define BH_PB_MAGIC_BYTES 4
bool bh_is_pb_type(const char *content_type);    /* application/vnd.kubernetes.protobuf */
bool bh_is_pb_envelope(const void *p, size_t n); /* starts with "k8s\0" */
/* Sets api_version and kind, as far as the bytes of an envelope's typeMeta hold them; -EINVAL. */
int bh_type_meta_read(struct bh_str bytes, struct bh_envelope *e);
int bh_envelope_open(const void *p, size_t n, struct bh_envelope *ret_e, struct bh_err *err);
/* The same in parts: what comes before n raw bytes, and behind them. */
void bh_envelope_begin(struct bh_buf *out, const char *api_version, const char *kind, size_t n);
void bh_envelope_end(struct bh_buf *out);
void bh_envelope_write(struct bh_buf *out, const char *api_version, const char *kind,
                       const void *raw, size_t n);

/* One object in either encoding (decided by its first bytes). d: expected type. */
int bh_decode_object(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const void *p,
                     size_t n, ProtobufCMessage **ret_m, struct bh_err *err);

/* A K8s__CustomObject from the JSON of any object; its metadata must be as that of all kinds. */
int bh_decode_custom(struct bh_arena *a, const void *p, size_t n, ProtobufCMessage **ret_m,
                     struct bh_err *err);

/* JSON tree -> message. -EINVAL with the place and what is wrong there. Unknown members are ignored; *ret_dropped (may be NULL) counts members that
 * the schema does not hold, so that a server knows whether protobuf would lose something. */
int bh_json_to_pb(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                  ProtobufCMessage **ret_m, unsigned *ret_dropped, struct bh_err *err);
/* JSON tree -> bare message bytes, appended; of the message it would be. out is as it was when that
 * fails. */
int bh_json_to_wire(const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                    struct bh_buf *out, struct bh_err *err);
/* message -> JSON tree, as Kubernetes prints it: absent and zero value-typed fields left out,
 * optional (pointer) fields kept when present, times as RFC 3339. */
struct bh_json *bh_pb_to_json(struct bh_arena *a, const ProtobufCMessage *m);
/* message -> bare bytes */
void bh_pb_pack(struct bh_buf *out, const ProtobufCMessage *m);
/* Makes what is value-typed upstream present where it is not, as Kubernetes' own marshaller writes
 * it: empty texts, zeros, empty structs. Readers that do without a check for absent fields need it.
 * false: the arena's limit. */
bool bh_pb_fill(struct bh_arena *a, ProtobufCMessage *m);
/* A copy with everything in it; NULL when the arena's limit was hit. */
ProtobufCMessage *bh_pb_copy(struct bh_arena *a, const ProtobufCMessage *m);

/* ---- lists ---- */
struct bh_list_meta {
    char resource_version[32];
    char *cont; /* continue token, caller frees; NULL when this was the last page */
    int64_t remaining;
};
/* Streaming decoder of one LIST reply; feed chunks as they arrive. item() gets each element's bytes
 * as soon as they are there: bare message bytes (is_pb) or JSON text. Only the element that is not
 * complete is held, at most max_bytes of it; the list as a whole may have any length. So items may
 * have been handed out when the reply turns out to be cut short or garbled: a list counts only when
 * finish says 0. That the reply is a list at all is known before the first item for protobuf (an
 * envelope that tells its kind after its content is refused; upstream writes it first), and at
 * finish for JSON.
 * feed: 0; -EINVAL garbage; -EFBIG element too large; item's non-zero result. An error sticks, and
 * finish tells it again, in words. finish: metadata wherever it stood; *ret untouched on error. */
struct bh_list_reader;
typedef int bh_list_item_fn(void *arg, const void *p, size_t n, bool is_pb);
struct bh_list_reader *bh_list_reader_new(const char *content_type, size_t max_bytes,
                                          bh_list_item_fn *item, void *arg);
int bh_list_reader_feed(struct bh_list_reader *r, const void *p, size_t n);
int bh_list_reader_finish(struct bh_list_reader *r, struct bh_list_meta *ret, struct bh_err *err);
void bh_list_reader_free(struct bh_list_reader *r);

/* ---- watch streams ---- */
enum bh_watch_type {
    BH_WATCH_ADDED,
    BH_WATCH_MODIFIED,
    BH_WATCH_DELETED,
    BH_WATCH_BOOKMARK,
    BH_WATCH_ERROR,
    BH_WATCH_UNKNOWN
};
/* event: the object's bytes (envelope or JSON text) for bh_decode_object / bh_decode_status. */
typedef int bh_watch_event_fn(void *arg, enum bh_watch_type t, const void *p, size_t n);
struct bh_watch_reader;
struct bh_watch_reader *bh_watch_reader_new(const char *content_type, size_t max_frame_bytes,
                                            bh_watch_event_fn *fn, void *arg);
/* 0; -EINVAL garbage; -EFBIG frame too large; fn's non-zero result. */
int bh_watch_reader_feed(struct bh_watch_reader *r, const void *p, size_t n);
void bh_watch_reader_free(struct bh_watch_reader *r);
/* Frame writer (server side): the object as an envelope. */
void bh_watch_frame_pb(struct bh_buf *out, const char *type, const void *envelope, size_t n);

/* ---- Status ---- */
struct bh_api_status {
    int code;
    char reason[64];
    char message[512];
    int retry_after_s; /* from details, 0 = none */
    char details_kind[64], details_name[256];
};
/* Reads a Status in either encoding; a body that is none gives code http_code and an excerpt. */
void bh_decode_status(const void *p, size_t n, int http_code, struct bh_api_status *ret);

/* metadata.resourceVersion of a bookmark, and whether it carries k8s.io/initial-events-end. */
int bh_decode_bookmark(const void *p, size_t n, char ret_rv[static 32], bool *ret_initial_end);
#endif
