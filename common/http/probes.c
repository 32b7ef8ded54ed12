/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/probes.c - /metrics, /healthz, /livez, /readyz of a daemon
 *
 * Owns:       a server, a copy of the checks. Not the metrics.
 * Runs in:    the loop thread: a daemon whose loop hangs does not answer, which is what a probe is
 *             for.
 * Upstream:   k8s.io/apiserver pkg/server/healthz/healthz.go (handleRootHealth,
 *             adaptCheckToHandler); differences: no ?exclude=.
 */
#include "common/http/probes.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/base/sockpath.h"

#define MAX_CONNECTIONS   256
#define LOCAL_CONNECTIONS 32
#define TEXT_PLAIN        "text/plain; charset=utf-8"

struct bh_probes {
    struct bh_http_server *server, *local; /* local: on the Unix socket */
    struct bh_metrics *metrics;
    struct bh_probe_check *checks;
    size_t n_checks;
};
enum probe { PROBE_HEALTHZ, PROBE_LIVEZ, PROBE_READYZ, PROBE_COUNT };
static const char *const probe_names[PROBE_COUNT] = {"healthz", "livez", "readyz"};

static bool always_ok(void *arg)
{
    (void)arg;
    return true;
}

static const struct bh_probe_check ping = {
    .name = "ping", .ok = always_ok, .live = true, .ready = true};

static bool belongs(const struct bh_probe_check *c, enum probe probe)
{
    return probe == PROBE_READYZ ? c->ready : c->live;
}

/* The i-th check of the probe, NULL behind the last. */
static const struct bh_probe_check *check_at(const struct bh_probes *p, enum probe probe, size_t i)
{
    size_t seen = 0;

    for (size_t k = 0; k < p->n_checks; k++)
        if (belongs(&p->checks[k], probe) && seen++ == i)
            return &p->checks[k];
    return seen == 0 && i == 0 ? &ping : NULL;
}

static void reply(struct bh_http_req *r, int code, const char *text, size_t n)
{
    bh_http_set_header(r, "X-Content-Type-Options", "nosniff");
    bh_http_set_header(r, "Cache-Control", "no-cache, private");
    bh_http_reply(r, code, TEXT_PLAIN, text, n);
}

static void reply_text(struct bh_http_req *r, int code, const char *text)
{
    reply(r, code, text, strlen(text));
}

static void serve_probe(const struct bh_probes *p, struct bh_http_req *r, enum probe probe)
{
    struct bh_buf out = {0};
    const struct bh_probe_check *c;
    bool ok = true;

    for (size_t i = 0; (c = check_at(p, probe, i)); i++) {
        bool passed = c->ok(c->arg);
        const char *why = !passed && c->why ? c->why(c->arg) : NULL;
        if (passed)
            bh_buf_addf(&out, "[+]%s ok\n", c->name);
        else
            bh_buf_addf(&out, "[-]%s failed: %s\n", c->name, why ? why : "reason withheld");
        ok = ok && passed;
    }
    bh_buf_addf(&out, "%s check %s\n", probe_names[probe], ok ? "passed" : "failed");
    if (ok && !bh_http_query(r, "verbose"))
        reply_text(r, 200, "ok");
    else
        reply(r, ok ? 200 : 500, out.p, out.n);
    bh_buf_fini(&out);
}

static void serve_one_check(const struct bh_probes *p, struct bh_http_req *r, enum probe probe,
                            const char *name)
{
    const struct bh_probe_check *c;

    for (size_t i = 0; (c = check_at(p, probe, i)); i++) {
        if (!bh_streq(c->name, name))
            continue;
        if (c->ok(c->arg))
            reply_text(r, 200, "ok");
        else
            reply_text(r, 500, "internal server error: reason withheld\n");
        return;
    }
    reply_text(r, 404, "404 page not found\n");
}

/* As kube-scheduler's /debug/flags/v. */
static void serve_verbosity(struct bh_http_req *r)
{
    struct bh_str body = bh_http_body(r);
    char text[128], *end;

    if (!bh_streq(bh_http_method(r), "PUT")) {
        reply_text(r, 406, "unsupported http method");
        return;
    }
    snprintf(text, sizeof(text), "%.*s", (int)BH_MIN(body.n, 32u), body.p);
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end || errno || v < INT32_MIN || v > INT32_MAX) {
        reply_text(r, 400, "failed set klog.logging.verbosity: the body must be a number");
        return;
    }
    bh_log_set_verbosity((int)v);
    snprintf(text, sizeof(text), "successfully set klog.logging.verbosity to %ld", v);
    reply_text(r, 200, text);
}

static void serve(struct bh_http_req *r, void *arg)
{
    const struct bh_probes *p = arg;
    const char *path = bh_http_path(r), *method = bh_http_method(r);

    if (!bh_streq(method, "GET") && !bh_streq(method, "HEAD")) {
        bh_http_set_header(r, "Allow", "GET, HEAD");
        reply_text(r, 405, "405 method not allowed\n");
        return;
    }
    if (bh_streq(path, "/metrics") && p->metrics) {
        struct bh_buf out = {0};
        bh_metrics_render(p->metrics, &out);
        bh_http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", bh_buf_str(&out), out.n);
        bh_buf_fini(&out);
        return;
    }
    for (enum probe probe = 0; probe < PROBE_COUNT; probe++) {
        size_t n = strlen(probe_names[probe]);
        if (path[0] != '/' || strncmp(path + 1, probe_names[probe], n) != 0)
            continue;
        const char *rest = path + 1 + n;
        if (*rest == '\0' || bh_streq(rest, "/")) {
            serve_probe(p, r, probe);
            return;
        }
        if (*rest == '/') {
            serve_one_check(p, r, probe, rest + 1);
            return;
        }
    }
    reply_text(r, 404, "404 page not found\n");
}

/* "host:port"; the host part goes to ret_host as it is, brackets included. */
static int split_address(const char *address, char ret_host[static 64], uint16_t *ret_port,
                         struct bh_err *err)
{
    const char *colon = strrchr(address, ':');
    const char *bracket = strrchr(address, ']');

    if (!colon || (bracket && colon < bracket) ||
        (!bracket && memchr(address, ':', (size_t)(colon - address))))
        return bh_err_set(err, -EINVAL, "address %s: must be HOST:PORT, [IPV6]:PORT or :PORT",
                          address);
    char *end;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (!bh_is_digit(colon[1]) || *end || port > UINT16_MAX)
        return bh_err_set(err, -EINVAL, "address %s: port must be a number from 0 to 65535",
                          address);
    size_t n = (size_t)(colon - address);
    if (n >= 64)
        return bh_err_set(err, -EINVAL, "address %s: not an IPv4 or IPv6 address", address);
    memcpy(ret_host, address, n);
    ret_host[n] = '\0';
    *ret_port = (uint16_t)port;
    return 0;
}

static void serve_local(struct bh_http_req *r, void *arg)
{
    if (bh_streq(bh_http_path(r), "/debug/flags/v"))
        serve_verbosity(r);
    else
        serve(r, arg);
}

static int start_local(struct bh_probes *p, uv_loop_t *loop, const char *runtime_dir,
                       const char *name, struct bh_err *err)
{
    char path[BH_SOCKPATH_MAX + 1];
    const struct bh_http_options o = {
        .unix_path = path, .max_connections = LOCAL_CONNECTIONS, .max_body_bytes = 4096};
    int n = snprintf(path, sizeof(path), "%s/%s.http", runtime_dir, name);

    if (n < 0 || (size_t)n >= sizeof(path))
        return bh_err_set(err, -ENAMETOOLONG, "socket path \"%s/%s.http\" is longer than %u bytes",
                          runtime_dir, name, BH_SOCKPATH_MAX);
    return bh_http_server_new(loop, &o, serve_local, p, &p->local, err);
}

int bh_probes_start(uv_loop_t *loop, const char *address, const char *runtime_dir, const char *name,
                    struct bh_metrics *m, const struct bh_probe_check *checks,
                    struct bh_probes **ret_p, struct bh_err *err)
{
    bool tcp = address && *address && !bh_streq(address, "0");
    char host[64];
    struct bh_http_options o = {.address = host, .max_connections = MAX_CONNECTIONS};

    int rc = tcp ? split_address(address, host, &o.port, err) : 0;
    if (rc < 0)
        return rc;
    if (!tcp && !runtime_dir) {
        *ret_p = NULL;
        return 0;
    }
    struct bh_probes *p = bh_calloc(1, sizeof(*p));
    p->metrics = m;
    while (checks && checks[p->n_checks].name)
        p->n_checks++;
    p->checks = bh_memdup(checks, p->n_checks * sizeof(*checks));
    if (tcp)
        rc = bh_http_server_new(loop, &o, serve, p, &p->server, err);
    if (rc == 0 && runtime_dir)
        rc = start_local(p, loop, runtime_dir, name, err);
    if (rc < 0) {
        bh_probes_free(p);
        return rc;
    }
    *ret_p = p;
    return 0;
}

uint16_t bh_probes_port(const struct bh_probes *p)
{
    return p && p->server ? bh_http_server_port(p->server) : 0;
}

void bh_probes_free(struct bh_probes *p)
{
    if (!p)
        return;
    bh_http_server_free(p->server);
    bh_http_server_free(p->local);
    free(p->checks);
    free(p);
}
