/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/lane_h1.c - HTTP/1.1 over a lane (http_parser reads the replies)
 *
 * Replies come in the order of the requests. One request at a time until the peer has kept the
 * connection after a reply, then `depth` of them. A reply that is not wanted any more, or is
 * too large, ends the connection: nothing behind it could be told apart from it.
 * Runs in: the loop, inside bh_lane_read and a turn.
 */
#include "common/api/lane.h"

#include <http_parser.h>

struct h1 {
    http_parser parser;
    struct bh_buf name, value;
    bool in_value;
};

static struct bh_api_req *current(struct bh_lane *l)
{
    return TAILQ_FIRST(&l->flight);
}

static void end_of_header(struct bh_lane *l)
{
    struct h1 *h = l->talker;

    if (h->in_value)
        bh_lane_header(current(l), bh_buf_str(&h->name), h->name.n, bh_buf_str(&h->value),
                       h->value.n);
    bh_buf_reset(&h->name);
    bh_buf_reset(&h->value);
    h->in_value = false;
}

static int on_begin(http_parser *p)
{
    struct bh_lane *l = p->data;
    struct bh_api_req *r = current(l);
    struct h1 *h = l->talker;

    if (!r) /* a reply without a request */
        return -1;
    bh_buf_reset(&h->name);
    bh_buf_reset(&h->value);
    h->in_value = false;
    r->content_type[0] = 0;
    r->retry_after_s = -1;
    return 0;
}

static int on_name(http_parser *p, const char *at, size_t n)
{
    struct bh_lane *l = p->data;
    struct h1 *h = l->talker;

    if (h->in_value)
        end_of_header(l);
    bh_buf_add(&h->name, at, n);
    return 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
    struct bh_lane *l = p->data;
    struct h1 *h = l->talker;

    h->in_value = true;
    bh_buf_add(&h->value, at, n);
    return 0;
}

static int on_head(http_parser *p)
{
    struct bh_lane *l = p->data;

    end_of_header(l);
    current(l)->code = (int)p->status_code;
    current(l)->head_done = p->status_code >= 200;
    return 0;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
    struct bh_lane *l = p->data;

    return bh_lane_body(current(l), at, n) ? 0 : -1;
}

static int on_end(http_parser *p)
{
    struct bh_lane *l = p->data;

    if (p->status_code < 200) /* there is another head to come */
        return 0;
    bh_lane_done(l, current(l), NULL);
    if (http_should_keep_alive(p)) {
        l->room = l->set->no_pipeline ? 1 : l->set->depth;
    } else {
        l->set->no_pipeline |= l->n_flight > 0;
        if (l->state == LANE_OPEN)
            l->state = LANE_LEAVING;
    }
    return 0;
}

static const http_parser_settings settings = {.on_message_begin = on_begin,
                                              .on_header_field = on_name,
                                              .on_header_value = on_value,
                                              .on_headers_complete = on_head,
                                              .on_body = on_body,
                                              .on_message_complete = on_end};

static void h1_open(struct bh_lane *l)
{
    struct h1 *h = bh_calloc(1, sizeof(*h));

    http_parser_init(&h->parser, HTTP_RESPONSE);
    h->parser.data = l;
    l->talker = h;
    l->room = 1;
    l->serial = true;
    bh_lanes_turn_soon(l->set);
}

static void h1_close(struct bh_lane *l)
{
    struct h1 *h = l->talker;

    bh_buf_fini(&h->name);
    bh_buf_fini(&h->value);
    free(h);
}

static int h1_feed(struct bh_lane *l, const char *p, size_t n)
{
    struct h1 *h = l->talker;
    bool pipelined = l->n_flight > 1;

    size_t used = http_parser_execute(&h->parser, &settings, p, n);
    struct bh_api_req *r = current(l);
    if (HTTP_PARSER_ERRNO(&h->parser) != HPE_OK || used != n) {
        if (r && r->too_large)
            bh_lane_done(l, r, "reply is larger than allowed");
        else
            bh_lane_break(l, http_errno_description(HTTP_PARSER_ERRNO(&h->parser)));
        return -1;
    }
    if (!n || l->state == LANE_LEAVING) {
        l->set->no_pipeline |= pipelined && l->n_flight > 0;
        if (l->n_flight)
            return -1;
    }
    return 0;
}

static void h1_submit(struct bh_lane *l, struct bh_api_req *r)
{
    const struct bh_api_client *c = l->set->c;

    bh_buf_adds(&l->out, r->method);
    bh_buf_addc(&l->out, ' ');
    bh_buf_add(&l->out, bh_buf_str(&r->url) + c->origin_n, r->url.n - c->origin_n);
    bh_buf_adds(&l->out, " HTTP/1.1\r\nHost: ");
    bh_buf_adds(&l->out, c->host);
    for (size_t i = 0; i < r->headers->n_fields; i++) {
        const struct bh_api_header *f = &r->headers->fields[i];
        bh_buf_adds(&l->out, "\r\n");
        bh_buf_add(&l->out, f->line, f->line_n);
    }
    if (r->request_body.n || bh_streq(r->method, "POST")) {
        bh_buf_adds(&l->out, "\r\nContent-Length: ");
        bh_buf_addi64(&l->out, (int64_t)r->request_body.n);
    }
    bh_buf_adds(&l->out, "\r\n\r\n");
    bh_buf_add(&l->out, r->request_body.p, r->request_body.n);
}

static void h1_drop(struct bh_lane *l, struct bh_api_req *r)
{
    (void)r;
    bh_lane_break(l, "another request on the connection was given up");
}

static void h1_pump(struct bh_lane *l)
{
    (void)l; /* h1_submit has said it */
}

const struct bh_lane_talk bh_lane_h1 = {h1_open, h1_close, h1_submit, h1_feed, h1_drop, h1_pump};
