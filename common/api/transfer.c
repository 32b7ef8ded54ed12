/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/transfer.c - one request as a libcurl easy handle
 *
 * Owns:       the easy handle of a struct bh_api_req; kept between requests, because what never
 *             changes (trust, protocols, callbacks) costs more to set than a small request.
 * Runs in:    the loop; the callbacks here run inside libcurl and must not call it.
 */
#include "common/api/api_int.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS   30000L
#define DEAD_PEER_MS         30000 /* TCP_USER_TIMEOUT: unacknowledged data */
#define KEEPALIVE_IDLE_S     30L
#define KEEPALIVE_INTERVAL_S 5L
#define KEEPALIVE_PROBES     3
#define STREAM_BUFFER_BYTES  (256L << 10)
#define REPLY_MAX_BYTES      ((size_t)64 << 20)

static curl_socket_t on_opensocket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    int *lack = arg, fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    (void)purpose;
    if (fd < 0 && bh_err_lack(NULL, errno))
        *lack = errno;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* Resolvers open files and sockets too, and do not say why they could not. */
static int lacks_now(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), e = errno;
    if (fd >= 0)
        close(fd);
    return fd < 0 && bh_err_lack(NULL, e) ? e : 0;
}

bool bh_api_tell_lack(CURLcode rc, int *lack, char text[CURL_ERROR_SIZE])
{
    struct bh_err err;

    if (!*lack && (rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_COULDNT_RESOLVE_PROXY ||
                   rc == CURLE_OUT_OF_MEMORY))
        *lack = lacks_now();
    if (!*lack)
        return false;
    bh_err_lack(&err, *lack);
    snprintf(text, CURL_ERROR_SIZE, "no connection: %.*s", CURL_ERROR_SIZE - 16, err.msg);
    return true;
}

static int on_sockopt(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    const int timeout_ms = DEAD_PEER_MS, probes = KEEPALIVE_PROBES;
    (void)arg, (void)purpose;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    return CURL_SOCKOPT_OK;
}

static bool header_is(const char *line, size_t n, const char *name, struct bh_str *ret_value)
{
    size_t k = strlen(name);
    if (n <= k || line[k] != ':' || strncasecmp(line, name, k) != 0)
        return false;
    const char *p = line + k + 1, *end = line + n;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (end > p && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *ret_value = (struct bh_str){p, (size_t)(end - p)};
    return true;
}

/* Seconds only; client-go ignores the date form too. */
int bh_api_retry_after(struct bh_str s)
{
    int v = 0;
    if (s.n == 0 || s.n > 6)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        if (!bh_is_digit(s.p[i]))
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

static bool is_success(int code)
{
    return code >= 200 && code < 300;
}

/* True to go on. */
static bool head_complete(struct bh_api_req *r)
{
    r->head_done = true;
    if (!r->call.on_head || !is_success(r->code))
        return true;
    r->c->busy++;
    r->stopped |= r->call.on_head(r->call.arg, r->code, r->content_type) != 0;
    r->c->busy--; /* not bh_api_leave(): no tear-down from inside libcurl */
    return !r->stopped;
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    struct bh_api_req *r = arg;
    const size_t n = size * count;
    struct bh_str v;

    r->last_byte_ns = bh_mono_ns();
    if (r->state == BH_REQ_CANCELED)
        return 0;
    if (n > 5 && memcmp(line, "HTTP/", 5) == 0) { /* a new head: forget that of a 1xx */
        r->content_type[0] = 0;
        r->retry_after_s = -1;
        r->code = 0;
    } else if (header_is(line, n, "content-type", &v)) {
        snprintf(r->content_type, sizeof(r->content_type), "%.*s", (int)BH_MIN(v.n, 127), v.p);
    } else if (header_is(line, n, "retry-after", &v)) {
        r->retry_after_s = bh_api_retry_after(v);
    } else if (n <= 2 && (line[0] == '\r' || line[0] == '\n')) {
        long code = 0;
        curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &code);
        r->code = (int)code;
        if (code >= 200 && !r->head_done && !head_complete(r))
            return 0;
    }
    return n;
}

static size_t on_body(char *p, size_t size, size_t count, void *arg)
{
    struct bh_api_req *r = arg;
    const size_t n = size * count;

    r->last_byte_ns = bh_mono_ns();
    r->c->body_bytes += n;
    if (r->state == BH_REQ_CANCELED)
        return 0;
    if (r->call.on_data && is_success(r->code)) {
        r->c->busy++;
        int rc = r->call.on_data(r->call.arg, p, n);
        r->c->busy--;
        if (rc == 0)
            return n;
        r->stopped = true;
        return 0;
    }
    size_t max = r->call.max_reply_bytes ? r->call.max_reply_bytes : REPLY_MAX_BYTES;
    if (n > max - BH_MIN(r->body.n, max)) {
        r->too_large = true;
        return 0;
    }
    bh_buf_add(&r->body, p, n);
    return n;
}

/* Right before the request's first byte: the last moment to leave it. */
static int on_prereq(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct bh_api_req *r = arg;
    (void)remote_ip, (void)local_ip, (void)remote_port, (void)local_port;
    r->fenced = bh_api_past_fence(r);
    return r->fenced ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void set_blob(CURL *e, CURLoption option, const char *text)
{
    struct curl_blob b = {(void *)(uintptr_t)text, strlen(text), CURL_BLOB_NOCOPY};
    curl_easy_setopt(e, option, &b);
}

void bh_api_set_connection(CURL *e, const struct bh_api_client *c, const struct bh_api_creds *k,
                           int *lack)
{
    curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, on_opensocket);
    curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, lack);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* a name server that hangs holds nothing up */
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, on_sockopt);
    curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (c->cfg->unix_socket)
        curl_easy_setopt(e, CURLOPT_UNIX_SOCKET_PATH, c->cfg->unix_socket);
    if (c->connect_to)
        curl_easy_setopt(e, CURLOPT_CONNECT_TO, c->connect_to);
    /* As Go's client: never a proxy to this machine, whatever the environment says. */
    if (c->cfg->proxy_url || c->loopback)
        curl_easy_setopt(e, CURLOPT_PROXY, c->cfg->proxy_url ? c->cfg->proxy_url : "");
    if (c->tls) {
        curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (k->ca) {
            /* Without the NULL every CA of the system would do as well. */
            curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
            curl_easy_setopt(e, CURLOPT_CAINFO, NULL);
            set_blob(e, CURLOPT_CAINFO_BLOB, k->ca);
        }
        if (k->cert && k->key) {
            curl_easy_setopt(e, CURLOPT_SSLCERTTYPE, "PEM");
            curl_easy_setopt(e, CURLOPT_SSLKEYTYPE, "PEM");
            set_blob(e, CURLOPT_SSLCERT_BLOB, k->cert);
            set_blob(e, CURLOPT_SSLKEY_BLOB, k->key);
        }
        if (c->cfg->insecure_skip_tls_verify) {
            curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
            curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
        }
    }
}

static void set_up(struct bh_api_req *r)
{
    struct bh_api_client *c = r->c;
    if (!r->easy) {
        r->easy = curl_easy_init();
        if (!r->easy)
            abort(); /* out of memory, as in base.h */
    } else {
        curl_easy_reset(r->easy);
        bh_api_creds_unref(r->easy_creds);
    }
    r->easy_creds = bh_api_creds_ref(c->creds);
    r->easy_custom = NULL;
    CURL *e = r->easy;
    curl_easy_setopt(e, CURLOPT_PRIVATE, r);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->error);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, on_prereq);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, r);
    curl_easy_setopt(e, CURLOPT_USERAGENT, c->user_agent);
    bh_api_set_connection(e, c, r->easy_creds, &r->lack);
}

void bh_api_transfer_reset(struct bh_api_req *r)
{
    r->error[0] = r->content_type[0] = 0;
    r->code = r->curl_code = r->lack = 0;
    r->retry_after_s = -1;
    r->head_done = r->too_large = r->stopped = r->fenced = false;
    bh_buf_reset(&r->body);
}

void bh_api_transfer_prepare(struct bh_api_req *r)
{
    const uint64_t now = bh_mono_ns();
    long timeout_ms = 0;

    if (!r->easy || r->easy_creds != r->c->creds)
        set_up(r);
    bh_api_transfer_reset(r);
    r->last_byte_ns = now;
    /* Not a moment before the deadline, or it is no timeout: libcurl counts a begun millisecond. */
    if (r->deadline_ns)
        timeout_ms = r->deadline_ns > now ? (long)((r->deadline_ns - now) / 1000000) + 2 : 1;

    CURL *e = r->easy;
    const bool post = bh_streq(r->method, "POST"), body = post || r->call.body_n > 0;
    if (body) {
        curl_easy_setopt(e, CURLOPT_POST, 1L);
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->request_body.n);
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, bh_buf_str(&r->request_body));
    } else {
        curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
    }
    const char *custom = post || (!body && bh_streq(r->method, "GET")) ? NULL : r->method;
    if (r->easy_custom != custom)
        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, custom);
    r->easy_custom = custom;
    curl_easy_setopt(r->easy, CURLOPT_URL, bh_buf_str(&r->url));
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers->list);
    curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    /* A libcurl without zlib refuses, and then does not ask for it. */
    curl_easy_setopt(r->easy, CURLOPT_ACCEPT_ENCODING, r->call.gzip ? "gzip" : NULL);
    curl_easy_setopt(r->easy, CURLOPT_BUFFERSIZE,
                     r->call.long_lived ? STREAM_BUFFER_BYTES : (long)CURL_MAX_WRITE_SIZE);
    const bool alone = r->call.company_ms > 0, h2 = r->c->tls && !alone;
    curl_easy_setopt(r->easy, CURLOPT_FRESH_CONNECT, alone ? 1L : 0L);
    curl_easy_setopt(r->easy, CURLOPT_FORBID_REUSE, alone ? 1L : 0L);
    curl_easy_setopt(r->easy, CURLOPT_PIPEWAIT, h2 ? 1L : 0L);
    /* HTTP/2 only where ALPN offers it: reuse of plaintext HTTP/2 connections is broken in 7.88. */
    curl_easy_setopt(r->easy, CURLOPT_HTTP_VERSION,
                     (long)(h2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
}

void bh_api_transfer_fini(struct bh_api_req *r)
{
    if (r->easy)
        curl_easy_cleanup(r->easy);
    bh_api_creds_unref(r->easy_creds);
    r->easy = NULL;
    r->easy_creds = NULL;
}
