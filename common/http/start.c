/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/start.c - what every server begins and ends with
 */
#include "common/http/carrier.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/http/listen.h"
#include "common/http/tls.h"

#define DEFAULT_BODY_BYTES      ((size_t)3 << 20)
#define DEFAULT_CONNECTIONS     256
#define FDS_BESIDES_CONNECTIONS 128
#define FDS_OF_A_CONNECTION     3 /* with libmicrohttpd: its socket and a pair */
#define LACK_EVERY              (UINT64_C(60) * 1000000000)

static void raise_fd_limit(unsigned connections)
{
    struct rlimit lim;
    rlim_t want = (rlim_t)connections * FDS_OF_A_CONNECTION + FDS_BESIDES_CONNECTIONS;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= want)
        return;
    lim.rlim_cur = BH_MIN(want, lim.rlim_max);
    setrlimit(RLIMIT_NOFILE, &lim); /* else fewer connections at a time, nothing worse */
}

static int open_tls(struct bh_http_server *s, const struct bh_http_options *o, struct bh_err *err)
{
    const struct bh_tls_pair pair = {o->tls_cert_pem, o->tls_key_pem, NULL, 0};

    s->tls = o->tls;
    s->own_tls = !o->tls && o->tls_cert_pem;
    if (!s->own_tls)
        return 0;
    int rc = bh_tls_new(NULL, o->client_ca_pem != NULL, &pair, 1, &s->tls, err);
    return rc < 0 ? bh_err_prefix(err, rc, "could not start the HTTP server on port %u", s->port)
                  : 0;
}

int bh_http_server_init(struct bh_http_server *s, uv_loop_t *loop, const struct bh_http_options *o,
                        bh_http_handler *handler, void *arg, struct bh_err *err)
{
    if (!o->tls_cert_pem != !o->tls_key_pem)
        return bh_err_set(err, -EINVAL, "TLS needs both a certificate and a key");
    s->loop = loop;
    s->handler = handler;
    s->arg = arg;
    s->max_connections = o->max_connections ? o->max_connections : DEFAULT_CONNECTIONS;
    s->idle_ms = (o->idle_timeout_s ? o->idle_timeout_s : BH_HTTP_IDLE_DEFAULT) * UINT64_C(1000);
    s->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : DEFAULT_BODY_BYTES;
    s->body_limit = o->body_limit;
    raise_fd_limit(s->max_connections + o->reserve);
    int rc = o->unix_path
                 ? bh_http_listen_unix(o->unix_path, &s->listen_fd, err)
                 : bh_http_listen(o->address, o->port, o->reuse_port, &s->listen_fd, &s->port, err);
    if (rc < 0)
        return rc;
    rc = open_tls(s, o, err);
    if (rc < 0)
        close(s->listen_fd);
    else
        s->unix_path = o->unix_path ? bh_strdup(o->unix_path) : NULL;
    return rc;
}

void bh_http_server_fini(struct bh_http_server *s)
{
    free(s->unix_path);
    if (s->own_tls)
        bh_tls_free(s->tls);
}

void bh_http_own_handle(struct bh_http_server *s, void *handle, int rc)
{
    bh_assert(rc == 0);
    ((uv_handle_t *)handle)->data = s;
    s->open_handles++;
}

uint16_t bh_http_server_port(const struct bh_http_server *s)
{
    return s->port;
}

void bh_http_server_free(struct bh_http_server *s)
{
    if (!s)
        return;
    bh_assert(!s->closing);
    s->closing = true;
    if (s->unix_path)
        (void)unlink(s->unix_path);
    s->carrier->end(s);
}

void bh_http_tell_lack(struct bh_http_server *s, int e)
{
    const uint64_t now = bh_mono_ns();
    struct bh_err err;

    if (s->lack_told_ns && now - s->lack_told_ns < LACK_EVERY)
        return;
    s->lack_told_ns = now;
    if (!bh_err_lack(&err, e))
        bh_err_set(&err, -e, "%s", strerror(e));
    bh_log_warn("Cannot take a connection", bh_kv_s("socket", s->unix_path ? s->unix_path : ""),
                bh_kv_u("port", s->port), bh_kv_s("err", err.msg));
}
