/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/request.c - what a handler sees of a request, and its answer
 *
 * Owns:     struct bh_http_req from the request line to libmicrohttpd's completion notice.
 * Runs in:  the loop thread.
 */
#include "common/http/impl.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static void set_peer(struct bh_http_req *r)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *sa = info ? info->client_addr : NULL;

    if (sa && sa->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, r->peer,
                  sizeof(r->peer));
    } else if (sa && sa->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(a))
            inet_ntop(AF_INET, &a->s6_addr[12], r->peer, sizeof(r->peer));
        else
            inet_ntop(AF_INET6, a, r->peer, sizeof(r->peer));
    }
}

static void link_in(struct bh_http_req *r)
{
    struct bh_http_server *s = r->server;

    r->next = s->reqs;
    r->prev_next = &s->reqs;
    if (r->next)
        r->next->prev_next = &r->next;
    s->reqs = r;
}

struct bh_http_req *bh_http_req_new(struct bh_http_server *s, struct MHD_Connection *conn,
                                    const char *uri)
{
    struct bh_http_req *r = bh_calloc(1, sizeof(*r));

    r->server = s;
    r->conn = conn;
    r->bad_uri = bh_http_uri_parse(uri, &r->uri) < 0;
    set_peer(r);
    link_in(r);
    return r;
}

struct bh_http_req *bh_http_req_of(struct bh_http_server *s, struct bh_http_conn *c,
                                   struct bh_http_head *head, const char *peer)
{
    struct bh_http_req *r = bh_calloc(1, sizeof(*r));

    r->server = s;
    r->plain = c;
    r->head = *head;
    *head = (struct bh_http_head){0};
    r->method = r->head.method;
    r->bad_uri = bh_http_uri_parse(r->head.target, &r->uri) < 0;
    memcpy(r->peer, peer, sizeof(r->peer));
    link_in(r);
    bh_http_set_body_limit(r);
    return r;
}

static void free_headers(struct bh_http_req *r)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        free(r->headers[i].name);
        free(r->headers[i].value);
    }
    free(r->headers);
    r->headers = NULL;
    r->n_headers = 0;
}

void bh_http_req_free(struct bh_http_req *r)
{
    *r->prev_next = r->next;
    if (r->next)
        r->next->prev_next = r->prev_next;
    if (r->state == BH_HTTP_DEFERRED && r->on_abort)
        r->on_abort(r->abort_arg);
    if (r->stream && !r->plain)
        bh_http_stream_detach(r->stream);
    if (r->response)
        MHD_destroy_response(r->response);
    free_headers(r);
    bh_http_head_fini(&r->head);
    bh_buf_fini(&r->lines);
    bh_http_uri_fini(&r->uri);
    bh_buf_fini(&r->body);
    free(r);
}

const char *bh_http_method(const struct bh_http_req *r)
{
    return r->method;
}

const char *bh_http_path(const struct bh_http_req *r)
{
    return r->uri.path;
}

const char *bh_http_query(const struct bh_http_req *r, const char *name)
{
    for (size_t i = 0; i < r->uri.n_params; i++)
        if (bh_streq(r->uri.params[i].name, name))
            return r->uri.params[i].value;
    return NULL;
}

void bh_http_query_each(const struct bh_http_req *r,
                        void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
    for (size_t i = 0; i < r->uri.n_params; i++)
        fn(arg, r->uri.params[i].name, r->uri.params[i].value);
}

const char *bh_http_header(const struct bh_http_req *r, const char *name)
{
    return r->plain ? bh_http_head_field(&r->head, name)
                    : MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

struct header_walk {
    void (*fn)(void *arg, const char *name, const char *value);
    void *arg;
};

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    const struct header_walk *w = cls;

    (void)kind;
    w->fn(w->arg, name, value ? value : "");
    return MHD_YES;
}

void bh_http_header_each(const struct bh_http_req *r,
                         void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
    struct header_walk w = {fn, arg};

    for (size_t i = 0; r->plain && i < r->head.n_fields; i++)
        fn(arg, r->head.fields[i].name, r->head.fields[i].value);
    if (r->plain)
        return;
    MHD_get_connection_values(r->conn, MHD_HEADER_KIND, on_header, &w);
}

struct bh_str bh_http_body(const struct bh_http_req *r)
{
    return (struct bh_str){bh_buf_str(&r->body), r->body.n};
}

const char *bh_http_peer(const struct bh_http_req *r)
{
    return r->peer;
}

void bh_http_set_header(struct bh_http_req *r, const char *name, const char *value)
{
    bh_assert(r->state != BH_HTTP_ANSWERED);
    if (r->plain) {
        if (strpbrk(name, "\r\n") || strpbrk(value, "\r\n"))
            return; /* as libmicrohttpd: no line may become two */
        bh_buf_adds(&r->lines, name);
        bh_buf_add(&r->lines, ": ", 2);
        bh_buf_adds(&r->lines, value);
        bh_buf_add(&r->lines, "\r\n", 2);
        return;
    }
    r->headers = bh_reallocarray(r->headers, r->n_headers + 1, sizeof(*r->headers));
    r->headers[r->n_headers].name = bh_strdup(name);
    r->headers[r->n_headers++].value = bh_strdup(value);
}

void bh_http_on_abort(struct bh_http_req *r, void (*fn)(void *arg), void *arg)
{
    r->on_abort = fn;
    r->abort_arg = arg;
}

void bh_http_req_answer(struct bh_http_req *r, unsigned code, struct MHD_Response *resp,
                        const char *content_type)
{
    bh_assert(resp && r->state != BH_HTTP_ANSWERED);
    if (content_type)
        MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    for (size_t i = 0; i < r->n_headers; i++)
        MHD_add_response_header(resp, r->headers[i].name, r->headers[i].value);
    free_headers(r);
    bool suspended = r->state == BH_HTTP_DEFERRED && !r->gone;
    r->response = resp;
    r->code = code;
    r->state = BH_HTTP_ANSWERED;
    if (suspended)
        bh_http_resume(r);
}

enum MHD_Result bh_http_req_queue(struct bh_http_req *r)
{
    enum MHD_Result rc = MHD_queue_response(r->conn, r->code, r->response);
    MHD_destroy_response(bh_take_ptr(r->response)); /* libmicrohttpd holds its own reference */
    return rc;
}

void bh_http_reply(struct bh_http_req *r, int code, const char *content_type, const void *body,
                   size_t n)
{
    if (r->plain) {
        bh_http_plain_reply(r, code, content_type, body, n);
        return;
    }
    struct MHD_Response *resp = MHD_create_response_from_buffer(
        n, (void *)(uintptr_t)body, n ? MHD_RESPMEM_MUST_COPY : MHD_RESPMEM_PERSISTENT);
    bh_http_req_answer(r, (unsigned)code, resp, content_type);
}
