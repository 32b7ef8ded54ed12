/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/client_metrics.c - rest_client_* metrics
 *
 * Invariants: cells are found by comparing pointers and integers: a small request must stay cheap.
 *             Labels are methods, HTTP codes and the configured host: bounded. Several clients of
 *             one process share the families.
 * Upstream:   component-base/metrics/prometheus/restclient/metrics.go; differences: a transport is
 * a pool of connections; no DNS, garbage collection, CA reload and certificate age series.
 */
#include <math.h>

#include "common/api/api_int.h"

static const double seconds[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
static const double bytes[] = {64,    256,    512,     1024,    4096,    16384,
                               65536, 262144, 1048576, 4194304, 16777216};

static struct bh_metric *family(struct bh_metrics *m, enum bh_metric_kind kind, const char *name,
                                const char *help, const char *labels, const double *bounds,
                                size_t n)
{
    struct bh_metric *f = bh_metric_find(m, name);

    return f ? f : bh_metric_new(m, kind, name, help, labels, bounds, n);
}

void bh_api_metrics_init(struct bh_api_client *c, struct bh_metrics *m)
{
    if (!m)
        return;
    c->m_requests = family(m, BH_COUNTER, "rest_client_requests_total",
                           "[ALPHA] Number of HTTP requests, partitioned by status code, method, "
                           "and host.",
                           "code,host,method", NULL, 0);
    c->m_duration = family(m, BH_HISTOGRAM, "rest_client_request_duration_seconds",
                           "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
                           "host,verb", seconds, BH_ARRAY_LEN(seconds));
    c->m_retries = family(m, BH_COUNTER, "rest_client_request_retries_total",
                          "[ALPHA] Number of request retries, partitioned by status code, verb, "
                          "and host.",
                          "code,host,verb", NULL, 0);
    c->m_limited = family(m, BH_HISTOGRAM, "rest_client_rate_limiter_duration_seconds",
                          "[ALPHA] Client side rate limiter latency in seconds. Broken down by "
                          "verb, and host.",
                          "host,verb", seconds, BH_ARRAY_LEN(seconds));
    c->m_sent = family(m, BH_HISTOGRAM, "rest_client_request_size_bytes",
                       "[ALPHA] Request size in bytes. Broken down by verb and host.", "host,verb",
                       bytes, BH_ARRAY_LEN(bytes));
    c->m_received = family(m, BH_HISTOGRAM, "rest_client_response_size_bytes",
                           "[ALPHA] Response size in bytes. Broken down by verb and host.",
                           "host,verb", bytes, BH_ARRAY_LEN(bytes));
    c->m_exec_calls = family(
        m, BH_COUNTER, "rest_client_exec_plugin_call_total",
        "[ALPHA] Number of calls to an exec plugin, partitioned by the type of event encountered "
        "(no_error, plugin_execution_error, plugin_not_found_error, client_internal_error) and an "
        "optional exit code. The exit code will be set to 0 if and only if the plugin call was "
        "successful.",
        "call_status,code", NULL, 0);
    c->m_exec_ttl = bh_metric_cell(family(
        m, BH_GAUGE, "rest_client_exec_plugin_ttl_seconds",
        "[ALPHA] Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by "
        "the auth exec plugin. The value is in seconds until certificate expiry (negative if "
        "already expired). If auth exec plugins are unused or manage no TLS certificates, the "
        "value will be +INF.",
        "", NULL, 0));
    bh_cell_set(c->m_exec_ttl, INFINITY); /* certificates of commands: read, their end is not */
    c->m_pools = bh_metric_cell(family(m, BH_GAUGE, "rest_client_transport_cache_entries",
                                       "[ALPHA] Number of transport entries in the internal cache.",
                                       "", NULL, 0));
    c->m_new_pools = bh_metric_cell(
        family(m, BH_COUNTER, "rest_client_transport_create_calls_total",
               "[ALPHA] Number of calls to get a new transport, partitioned by the result of the "
               "operation hit: obtained from the cache, miss: created and added to the cache, "
               "miss-gc: recreated and added back to the cache after being garbage collected, "
               "uncacheable: created and not cached",
               "result", NULL, 0),
        "miss");
}
static void code_text(int code, char out[static 16])
{
    if (code)
        snprintf(out, 16, "%d", code);
    else
        snprintf(out, 16, "<error>");
}

static struct bh_cell *request_cell(struct bh_api_client *c, const char *method, int code)
{
    char text[16];
    for (unsigned i = 0; i < c->n_cells; i++)
        if (c->cells[i].method == method && c->cells[i].code == code)
            return c->cells[i].requests;
    code_text(code, text);
    struct bh_cell *cell = bh_metric_cell(c->m_requests, text, c->host, method);
    if (c->n_cells < BH_ARRAY_LEN(c->cells))
        c->cells[c->n_cells++] = (struct bh_api_metric_cell){method, code, cell};
    return cell;
}

/* Index into c->verbs; all four cells are made at once, the families without samples are small. */
static unsigned verb_of(struct bh_api_client *c, const char *method)
{
    for (unsigned i = 0; i < c->n_verbs; i++)
        if (c->verbs[i].method == method)
            return i;
    bh_assert(c->n_verbs < BH_ARRAY_LEN(c->verbs)); /* methods are interned: five */
    c->verbs[c->n_verbs].method = method;
    c->verbs[c->n_verbs].duration = bh_metric_cell(c->m_duration, c->host, method);
    c->verbs[c->n_verbs].limited = bh_metric_cell(c->m_limited, c->host, method);
    c->verbs[c->n_verbs].sent = bh_metric_cell(c->m_sent, c->host, method);
    c->verbs[c->n_verbs].received = bh_metric_cell(c->m_received, c->host, method);
    return c->n_verbs++;
}

void bh_api_metrics_done(struct bh_api_client *c, const struct bh_api_req *r)
{
    curl_off_t received = 0;

    if (!c->m_requests || c->closing) /* then they may be gone */
        return;
    bh_cell_add(request_cell(c, r->method, r->code), 1);
    if (r->call.long_lived)
        return;
    unsigned v = verb_of(c, r->method);
    bh_cell_observe(c->verbs[v].duration, (double)(bh_mono_ns() - r->start_ns) / 1e9);
    bh_cell_observe(c->verbs[v].sent, (double)r->request_body.n);
    if (r->on.lean)
        received = (curl_off_t)r->body.n;
    else if (r->code)
        curl_easy_getinfo(r->easy, CURLINFO_SIZE_DOWNLOAD_T, &received);
    if (r->code)
        bh_cell_observe(c->verbs[v].received, (double)received);
}

void bh_api_metrics_limited(struct bh_api_client *c, const struct bh_api_req *r)
{
    if (c->m_requests && !c->closing)
        bh_cell_observe(c->verbs[verb_of(c, r->method)].limited,
                        r->state == BH_REQ_WAITING ? (double)(bh_mono_ns() - r->start_ns) / 1e9
                                                   : 0);
}

void bh_api_metrics_pools(struct bh_api_client *c, int change)
{
    if (!c->m_pools)
        return;
    bh_cell_add(c->m_pools, change);
    if (change > 0)
        bh_cell_add(c->m_new_pools, change);
}

void bh_api_metrics_exec(struct bh_api_client *c, const struct bh_api_exec *x, bool ok)
{
    const char *status = "plugin_execution_error";
    char code[24];

    if (!c->m_exec_calls)
        return;
    if (ok)
        status = "no_error";
    else if (x->status == 127)
        status = "plugin_not_found_error";
    else if (x->exited && !x->status)
        status = "client_internal_error"; /* it ended well, but what it printed is not usable */
    snprintf(code, sizeof(code), "%d", ok ? 0 : x->status ? x->status : 1);
    bh_cell_add(bh_metric_cell(c->m_exec_calls, status, code), 1);
}

void bh_api_metrics_retry(struct bh_api_client *c, const struct bh_api_req *r)
{
    char text[16];
    if (!c->m_retries)
        return;
    code_text(r->code, text);
    bh_cell_add(bh_metric_cell(c->m_retries, text, c->host, r->method), 1);
}
