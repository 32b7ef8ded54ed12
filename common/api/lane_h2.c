/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/lane_h2.c - HTTP/2 over a lane (nghttp2: frames, header compression, flow control)
 *
 * Invariants: nothing is submitted before the server's SETTINGS, and never more than its limit of
 *             streams: so nghttp2 keeps no request back, and whatever it was given is in out after
 *             the next pump, but for bodies that the server's windows hold back. Those ask for the
 *             fence again, whenever a part of them may leave.
 * Runs in:    the loop, inside bh_lane_read and a turn.
 */
#include "common/api/lane.h"

#include <nghttp2/nghttp2.h>

#define STREAMS_MAX       100u /* kube-apiserver's limit */
#define STREAM_WINDOW     (1 << 20)
#define CONNECTION_WINDOW (16 << 20)
#define FIELDS_USUAL      24u
#define FIELDS_OWN        5u /* added to the client's headers */

static struct bh_api_req *req_of(nghttp2_session *h2, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(h2, stream);
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
    struct bh_api_req *r = req_of(h2, f->hd.stream_id);

    (void)flags, (void)arg;
    if (!r)
        return 0;
    if (name_n == 7 && memcmp(name, ":status", 7) == 0) { /* a new head: forget that of a 1xx */
        r->code =
            value_n == 3 ? (value[0] - '0') * 100 + (value[1] - '0') * 10 + value[2] - '0' : 0;
        r->content_type[0] = 0;
        r->retry_after_s = -1;
    } else {
        bh_lane_header(r, (const char *)name, name_n, (const char *)value, value_n);
    }
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *p, size_t n,
                   void *arg)
{
    struct bh_lane *l = arg;
    struct bh_api_req *r = req_of(h2, stream);

    (void)flags;
    if (!r)
        return 0;
    r->head_done = true;
    if (!bh_lane_body(r, (const char *)p, n)) {
        l->talk->drop(l, r);
        bh_lane_done(l, r, "reply is larger than allowed");
    }
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *f, void *arg)
{
    struct bh_lane *l = arg;

    if (f->hd.type == NGHTTP2_SETTINGS && !(f->hd.flags & NGHTTP2_FLAG_ACK)) {
        uint32_t max =
            nghttp2_session_get_remote_settings(h2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
        l->room = BH_MIN(max, STREAMS_MAX);
        bh_lanes_turn_soon(l->set);
    } else if (f->hd.type == NGHTTP2_GOAWAY && l->state == LANE_OPEN) {
        l->state = LANE_LEAVING;
    }
    return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *arg)
{
    struct bh_lane *l = arg;
    struct bh_api_req *r = req_of(h2, stream);
    char why[96];

    if (!r)
        return 0;
    if (code == NGHTTP2_REFUSED_STREAM) {
        bh_lane_refused(l, r);
    } else if (code == NGHTTP2_NO_ERROR && r->code >= 200) {
        r->fenced = false; /* answered before it was reset */
        bh_lane_done(l, r, NULL);
    } else if (r->fenced) {
        bh_lane_done(l, r, "its time was over before all of it was sent");
    } else {
        snprintf(why, sizeof(why), "the server ended the request: %s",
                 nghttp2_http2_strerror(code));
        bh_lane_done(l, r, why);
    }
    return 0;
}

static void h2_open(struct bh_lane *l)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };
    nghttp2_session_callbacks *cb;
    if (nghttp2_session_callbacks_new(&cb))
        abort(); /* out of memory, as in base.h */
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
    nghttp2_session *h2;

    if (nghttp2_session_client_new(&h2, cb, l))
        abort(); /* out of memory, as in base.h */
    nghttp2_session_callbacks_del(cb);
    l->talker = h2;
    l->room = 0; /* until its settings come */
    nghttp2_submit_settings(h2, NGHTTP2_FLAG_NONE, settings, BH_ARRAY_LEN(settings));
    nghttp2_session_set_local_window_size(h2, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
    bh_lanes_turn_soon(l->set);
}

static void h2_close(struct bh_lane *l)
{
    nghttp2_session_del(l->talker);
}

/* A part of a body may leave, maybe long after its request was given: the server's windows decide.
 * Past the fence the stream is reset instead. A server executes no request before its END_STREAM,
 * but that is the server's word: `sent` stays, the outcome counts as unknown. */
static ssize_t on_body_wanted(nghttp2_session *h2, int32_t stream, uint8_t *out, size_t max,
                              uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    struct bh_api_req *r = req_of(h2, stream);

    (void)source, (void)arg;
    if (!r) /* given up meanwhile */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (bh_api_past_fence(r)) {
        r->fenced = true;
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    size_t n = BH_MIN(max, r->request_body.n - r->on.body_off);
    memcpy(out, r->request_body.p + r->on.body_off, n);
    r->on.body_off += n;
    if (r->on.body_off == r->request_body.n)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv field(const char *name, size_t name_n, const char *value, size_t value_n)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, name_n, value_n,
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static void h2_submit(struct bh_lane *l, struct bh_api_req *r)
{
    const struct bh_api_client *c = l->set->c;
    const char *target = bh_buf_str(&r->url) + c->origin_n;
    const nghttp2_data_provider body = {.read_callback = on_body_wanted};
    nghttp2_nv usual[FIELDS_USUAL], *many = NULL, *nv = usual;
    char length[24];
    size_t n = 0;

    if (r->headers->n_fields + FIELDS_OWN > FIELDS_USUAL) /* impersonates many groups */
        nv = many = bh_calloc(r->headers->n_fields + FIELDS_OWN, sizeof(*many));
    nv[n++] = field(":method", 7, r->method, strlen(r->method));
    nv[n++] = field(":scheme", 7, c->tls ? "https" : "http", c->tls ? 5 : 4);
    nv[n++] = field(":authority", 10, c->host, strlen(c->host));
    nv[n++] = field(":path", 5, target, r->url.n - c->origin_n);
    for (size_t i = 0; i < r->headers->n_fields; i++) {
        const struct bh_api_header *f = &r->headers->fields[i];
        nv[n++] = field(f->name, f->name_n, f->value, f->value_n);
    }
    if (r->request_body.n) {
        int k = snprintf(length, sizeof(length), "%zu", r->request_body.n);
        nv[n++] = field("content-length", 14, length, (size_t)k);
        nv[n - 1].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
    }
    r->on.body_off = 0;
    r->on.stream =
        nghttp2_submit_request(l->talker, NULL, nv, n, r->request_body.n ? &body : NULL, r);
    free(many); /* nghttp2 has its own copy of the array; the texts are the headers' */
    if (r->on.stream >= 0)
        return;
    if (r->on.stream == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE && l->state == LANE_OPEN)
        l->state = LANE_LEAVING;
    bh_lane_refused(l, r);
}

static void h2_pump(struct bh_lane *l)
{
    const uint8_t *p;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(l->talker, &p)) > 0)
        bh_buf_add(&l->out, p, (size_t)n);
    if (n < 0)
        bh_lane_break(l, nghttp2_strerror((int)n));
    else if (!nghttp2_session_want_read(l->talker) && l->n_flight)
        bh_lane_break(l, "what the server says is not HTTP/2");
}

static int h2_feed(struct bh_lane *l, const char *p, size_t n)
{
    if (!n)
        return 0;
    if (nghttp2_session_mem_recv(l->talker, (const uint8_t *)p, n) < 0)
        return -1;
    if (nghttp2_session_want_write(l->talker)) /* an acknowledgement, a window */
        bh_lanes_turn_soon(l->set);
    return 0;
}

static void h2_drop(struct bh_lane *l, struct bh_api_req *r)
{
    nghttp2_session_set_stream_user_data(l->talker, r->on.stream, NULL);
    nghttp2_submit_rst_stream(l->talker, NGHTTP2_FLAG_NONE, r->on.stream, NGHTTP2_CANCEL);
    if (l->heard_ns < r->on.given_ns && l->state == LANE_OPEN)
        l->state = LANE_LEAVING; /* not a byte since: a connection that hangs gets nothing more */
    bh_lanes_turn_soon(l->set);
}

const struct bh_lane_talk bh_lane_h2 = {h2_open, h2_close, h2_submit, h2_feed, h2_drop, h2_pump};
