/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/client_metrics.c - rest_client_* metrics
 *
 * Invariants: cells are found by comparing pointers and integers: a small request must stay cheap.
 *             Labels are methods, HTTP codes and the configured host: bounded.
 * Upstream:   component-base/metrics/prometheus/restclient/metrics.go; differences: no size, rate
 *             limiter or transport cache series.
 */
#include "common/api/api_int.h"

static const double buckets[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};

void bh_api_metrics_init(struct bh_api_client *c, struct bh_metrics *m)
{
    if (!m)
        return;
    c->m_requests = bh_metric_new(m, BH_COUNTER, "rest_client_requests_total",
                                  "Number of HTTP requests, partitioned by status code, method, "
                                  "and host.",
                                  "code,host,method", NULL, 0);
    c->m_duration = bh_metric_new(m, BH_HISTOGRAM, "rest_client_request_duration_seconds",
                                  "Request latency in seconds. Broken down by verb, and host.",
                                  "host,verb", buckets, BH_ARRAY_LEN(buckets));
    c->m_retries = bh_metric_new(m, BH_COUNTER, "rest_client_request_retries_total",
                                 "Number of request retries, partitioned by status code, verb, and "
                                 "host.",
                                 "code,host,verb", NULL, 0);
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

static struct bh_cell *duration_cell(struct bh_api_client *c, const char *method)
{
    for (unsigned i = 0; i < c->n_verbs; i++)
        if (c->verbs[i].method == method)
            return c->verbs[i].duration;
    struct bh_cell *cell = bh_metric_cell(c->m_duration, c->host, method);
    if (c->n_verbs < BH_ARRAY_LEN(c->verbs)) {
        c->verbs[c->n_verbs].method = method;
        c->verbs[c->n_verbs++].duration = cell;
    }
    return cell;
}

void bh_api_metrics_done(struct bh_api_client *c, const struct bh_api_req *r)
{
    if (!c->m_requests)
        return;
    bh_cell_add(request_cell(c, r->method, r->code), 1);
    if (!r->call.long_lived)
        bh_cell_observe(duration_cell(c, r->method), (double)(bh_mono_ns() - r->start_ns) / 1e9);
}

void bh_api_metrics_retry(struct bh_api_client *c, const struct bh_api_req *r)
{
    char text[16];
    if (!c->m_retries)
        return;
    code_text(r->code, text);
    bh_cell_add(bh_metric_cell(c->m_retries, text, c->host, r->method), 1);
}
