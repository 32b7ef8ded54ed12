/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/request.c - what a handler sees of a request, and what all requests share
 */
#include "common/http/carrier.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <strings.h>

void bh_http_peer_text(const struct sockaddr_storage *a, char out[static 46])
{
    const struct sockaddr_in *four = (const void *)a;
    const struct sockaddr_in6 *six = (const void *)a;

    *out = '\0';
    if (a->ss_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, out, 46);
    else if (a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], out, 46);
    else if (a->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &six->sin6_addr, out, 46);
}

void bh_http_req_init(struct bh_http_req *r, struct bh_http_server *s, const char *target)
{
    r->server = s;
    r->bad_uri = bh_http_uri_parse(target, &r->uri) < 0;
    if (s->body_limit && !r->bad_uri)
        r->max_body_bytes = s->body_limit(r->uri.path);
    if (!r->max_body_bytes)
        r->max_body_bytes = s->max_body_bytes;
}

void bh_http_req_fini(struct bh_http_req *r)
{
    if (r->state == BH_HTTP_DEFERRED && r->on_abort)
        r->on_abort(r->abort_arg);
    bh_buf_fini(&r->lines);
    bh_http_uri_fini(&r->uri);
    bh_buf_fini(&r->body);
}

int bh_http_take_body(struct bh_http_req *r, const char *p, size_t n)
{
    if (r->too_large || n > r->max_body_bytes - r->body.n) {
        r->too_large = true;
        bh_buf_fini(&r->body);
        r->thrown_bytes += n;
        return r->thrown_bytes > r->max_body_bytes ? -E2BIG : 0;
    }
    bh_buf_add(&r->body, p, n);
    return 0;
}

static const char *type_of(const char *text)
{
    return *text == '{' ? "application/json" : "text/plain; charset=utf-8";
}

void bh_http_reply_text(struct bh_http_req *r, int code, const char *text)
{
    bh_http_reply(r, code, type_of(text), text, strlen(text));
}

const char *bh_http_too_large(const struct bh_http_req *r, char out[static 256])
{
    snprintf(out, 256,
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
             "\"message\":\"Request entity too large: limit is %zu\","
             "\"reason\":\"RequestEntityTooLarge\",\"code\":413}\n",
             r->max_body_bytes);
    return out;
}

void bh_http_dispatch(struct bh_http_req *r)
{
    char text[256];

    r->state = BH_HTTP_HANDLING;
    if (r->too_large)
        bh_http_reply_text(r, MHD_HTTP_CONTENT_TOO_LARGE, bh_http_too_large(r, text));
    else if (r->bad_uri)
        bh_http_reply_text(r, MHD_HTTP_BAD_REQUEST, "invalid escape in the path\n");
    else
        r->server->handler(r, r->server->arg);
}

void bh_http_write_refusal(struct bh_buf *out, int code, const char *text)
{
    time_t now = (time_t)(bh_wall_ns() / 1000000000);
    struct tm tm;
    char date[40];

    gmtime_r(&now, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    bh_buf_addf(out,
                "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\n"
                "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                code, MHD_get_reason_phrase_for((unsigned)code), date, type_of(text), strlen(text),
                text);
}

const char *bh_http_head_fault(ssize_t rc)
{
    return rc == -414   ? "request line too long\n"
           : rc == -431 ? "request headers too large\n"
                        : "malformed request\n";
}

/* ---- what a handler sees ----------------------------------------------------------------------- */

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
    for (size_t i = 0; i < r->n_fields; i++)
        if ((r->fields[i].name[0] | 0x20) == (name[0] | 0x20) &&
            strcasecmp(r->fields[i].name, name) == 0)
            return r->fields[i].value;
    return NULL;
}

void bh_http_header_each(const struct bh_http_req *r,
                         void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
    for (size_t i = 0; i < r->n_fields; i++)
        fn(arg, r->fields[i].name, r->fields[i].value);
}

struct bh_str bh_http_body(const struct bh_http_req *r)
{
    return (struct bh_str){bh_buf_str(&r->body), r->body.n};
}

const char *bh_http_peer(const struct bh_http_req *r)
{
    return r->peer;
}

size_t bh_http_client_certs(const struct bh_http_req *r, struct bh_str *out, size_t max)
{
    unsigned n = 0;
    const gnutls_datum_t *list = r->tls ? gnutls_certificate_get_peers(r->tls, &n) : NULL;

    if (!list)
        return 0;
    n = (unsigned)BH_MIN(n, max);
    for (unsigned i = 0; i < n; i++)
        out[i] = (struct bh_str){(const char *)list[i].data, list[i].size};
    return n;
}

/* ---- the answer -------------------------------------------------------------------------------- */

void bh_http_set_header(struct bh_http_req *r, const char *name, const char *value)
{
    bh_assert(r->state != BH_HTTP_ANSWERED);
    if (strpbrk(name, "\r\n") || strpbrk(value, "\r\n"))
        return; /* no line may become two */
    bh_buf_adds(&r->lines, name);
    bh_buf_add(&r->lines, ": ", 2);
    bh_buf_adds(&r->lines, value);
    bh_buf_add(&r->lines, "\r\n", 2);
}

void bh_http_on_abort(struct bh_http_req *r, void (*fn)(void *arg), void *arg)
{
    r->on_abort = fn;
    r->abort_arg = arg;
}

void bh_http_reply(struct bh_http_req *r, int code, const char *content_type, const void *body,
                   size_t n)
{
    bh_assert(r->state != BH_HTTP_ANSWERED);
    r->server->carrier->reply(r, code, content_type, body, n);
}
