/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/client.h - asynchronous HTTP client of the API server (libcurl multi on a libuv loop)
 *
 * HTTP/2 where TLS+ALPN offers it, HTTP/1.1 else (company_ms: always); requests share few
 * connections (PIPEWAIT, at most ceil(in flight/100) connections for h2, max_connections for h1).
 * Long-lived watches and large lists use their own multi handle so that they never delay writes.
 * Trust: a CA given by the kubeconfig is the only one (CAPATH is NULL), TLS >= 1.2, no redirects,
 * no netrc, only http and https. Token files are re-read at most once a minute and after a 401;
 * certificate files when they changed (checked every minute): new connections take the new ones.
 * Client-side limit: qps/burst token bucket for everything but watches; qps <= 0 = none.
 * Threads: the loop's. Callbacks come from the loop, never from inside a call of this API.
 */
#ifndef BH_API_CLIENT_H
#define BH_API_CLIENT_H

#include "common/api/kubeconfig.h"
#include "common/base/buf.h"
#include "common/base/metrics.h"
#include <uv.h>

struct bh_api_client;
struct bh_api_options {
    const char *user_agent; /* "berth-watcher/0.1.0 (linux/amd64)" */
    /* Owner of what the client writes (metadata.managedFields); NULL = the server takes the user
     * agent's first word. */
    const char *field_manager;
    unsigned max_connections; /* HTTP/1.1 connections for short requests; 0 = 8 */
    double qps;               /* <= 0: none */
    int burst;
    const char *limit_file;     /* shares the limit with all that name it; NULL = for itself */
    bool json;                  /* lists and watches ask for JSON, never for protobuf */
    struct bh_metrics *metrics; /* rest_client_requests_total{code,host,method}, may be NULL */
    /* For clients that send many small requests: all but long-lived ones and those with on_data or
     * idle_timeout_ns go over connections of the client's own (lane.h), at a tenth of libcurl's
     * cost. linger_ms: none of them is urgent, they leave and their replies are read in company,
     * every so often. What is different for such requests:
     *  - max_connections bounds HTTP/2's connections too.
     *  - They share a fate. A connection that breaks ends all that it was given (TRANSPORT, sent),
     *    none is repeated. Over HTTP/1.1 it also breaks when one of them is cancelled, runs out of
     *    time or gets more than max_reply_bytes: nothing behind that reply could be told apart.
     *  - TRANSPORT, TIMEOUT: sent is false only while no connection was given the request, or when
     *    the server said that it did not look at it. curl_code is 0; os_errno is set when no
     *    connection could be made.
     *  - redirect is always NULL: a 3xx is a reply as any other. gzip, on_head: not looked at.
     *  - not_after_boot_ns: see there. */
    bool lean;
    unsigned linger_ms;
    unsigned depth; /* of lean ones: requests on the wire of an HTTP/1.1 connection; 0 = 64 */
};
int bh_api_client_new(uv_loop_t *loop, const struct bh_api_config *cfg,
                      const struct bh_api_options *o, struct bh_api_client **ret,
                      struct bh_err *err);
bool bh_api_client_json(const struct bh_api_client *c);
/* Cancels everything (callbacks get BH_API_CANCELED) and frees once the loop has run; NULL allowed.
 * cfg above is copied. */
void bh_api_client_free(struct bh_api_client *c);
void bh_api_client_reload(
    struct bh_api_client *c); /* re-read tokens and certificates now (SIGHUP) */

/* Fields that kube-scheduler wrote before us, or after us, stay under one owner. */
#define BH_API_FIELD_MANAGER "kube-scheduler"

enum bh_api_outcome {
    BH_API_OK,        /* an HTTP reply came, whatever its code */
    BH_API_TRANSPORT, /* no definite reply: for a write the outcome is unknown */
    BH_API_TIMEOUT,   /* the request's deadline passed; also unknown */
    BH_API_CANCELED
};
struct bh_api_reply {
    enum bh_api_outcome outcome;
    bool sent;         /* bytes of the request may have reached the server */
    int code;          /* HTTP, 0 unless OK */
    int retry_after_s; /* -1 = no such header */
    const char *content_type;
    struct bh_str body;   /* whole body of a non-streaming request */
    const char *error;    /* transport error text, NULL when OK */
    const char *redirect; /* where a 3xx reply points to, as an absolute URL; NULL without */
    bool head;            /* TRANSPORT, TIMEOUT: the reply had begun */
    int curl_code;        /* TRANSPORT: libcurl's CURLcode */
    int os_errno;         /* TRANSPORT: of a connection that could not be made, 0 = not known */
};
struct bh_api_req; /* handle of a running request */
struct bh_api_call {
    const char *method;       /* "GET", "POST", "PATCH", "PUT", "DELETE" */
    const char *path;         /* "/api/v1/pods?limit=500", already encoded */
    const char *content_type; /* of the body; NULL without body */
    const char *accept;       /* NULL = "application/json" */
    const char *extra_header; /* "Name: value", may be NULL */
    const void *body;
    size_t body_n;            /* copied */
    uint64_t timeout_ns;      /* whole request; 0 = none (watches) */
    uint64_t idle_timeout_ns; /* no byte for this long = BH_API_TIMEOUT; 0 = none */
    /* CLOCK_BOOTTIME after which no byte of it may leave: BH_API_TIMEOUT with sent = false. Looked
     * at right before libcurl gets to send, so a process that was stopped, or a machine that slept,
     * sends nothing late. What is out by then goes on. 0 = none.
     * lean: looked at right before a connection gets it. Of a body that HTTP/2's windows hold back
     * each part is looked at again: then the stream is reset before its end, sent is true and the
     * outcome unknown. */
    uint64_t not_after_boot_ns;
    size_t max_reply_bytes; /* 0 = 64 MiB */
    bool long_lived;        /* watch or big list: own connections, not rate limited */
    /* For a stream that is hardly ever quiet; 0 = it is not one. It has a connection to itself,
     * over HTTP/1.1: on a shared one libcurl looks at every stream whenever bytes come for one. And
     * while bytes come in small pieces, they are looked at once in so many ms; the first ones at
     * once. */
    unsigned company_ms;
    bool gzip;          /* let the server compress: for big lists; a watch could get stuck */
    bool retry_429_5xx; /* repeat as client-go: with Retry-After, up to 10 attempts in all */
    /* Streaming: called with each chunk of a 2xx reply; non-zero ends the request (TRANSPORT). The
     * final callback then has an empty body. NULL = the body is gathered. */
    int (*on_head)(void *arg, int code, const char *content_type); /* 2xx: once, before data; may be
                                                                       NULL; non-zero ends */
    int (*on_data)(void *arg, const void *p, size_t n);
    void (*on_done)(void *arg, const struct bh_api_reply *r); /* exactly once */
    void *arg;
};
/* Everything in call is copied. NULL (and no callback) once the client is being freed. */
struct bh_api_req *bh_api_start(struct bh_api_client *c, const struct bh_api_call *call);
void bh_api_cancel(struct bh_api_req *r); /* on_done(CANCELED) follows from the loop */
unsigned bh_api_in_flight(const struct bh_api_client *c);
/* Percent-encodes a path segment or query value into out. */
void bh_url_escape(struct bh_buf *out, const char *s);
/* A path or query from a pattern: each %s is encoded so, %d, %u, %lld and %llu are numbers. */
void bh_url_addf(struct bh_buf *out, const char *fmt, ...) BH_PRINTF(2, 3);
/* Convenience for tools: runs the loop until this one request is done. Body copied into
 * *ret_body. */
int bh_api_do(uv_loop_t *loop, struct bh_api_client *c, const struct bh_api_call *call,
              int *ret_code, struct bh_buf *ret_body, struct bh_err *err);

/* Back-off with jitter as client-go's reflector: 800 ms x2 up to 30 s, jitter factor 1.0, reset
 * after two quiet minutes. */
struct bh_backoff {
    uint64_t cur_ns, last_ns;
    struct bh_rand rand;
};
void bh_backoff_init(struct bh_backoff *b);
uint64_t bh_backoff_next_ns(struct bh_backoff *b);
#endif
