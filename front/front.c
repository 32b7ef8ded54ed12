/* SPDX-License-Identifier: Apache-2.0
 *
 * front/front.c - kube-scheduler's HTTPS port: opened, kept, closed
 */
#include "front/front.h"

#include <errno.h>

#include "common/base/log.h"

#define CONNECTIONS  256u
#define PER_ADDRESS  32u
#define RESERVE      32u /* more, for probes from this host */
#define IDLE_S       60u
#define BODY_BYTES   ((size_t)64 << 10)
#define REFRESH_MS   5000u
#define REVIEW_QPS   200 /* as upstream: the API server's answers are the limit */
#define REVIEW_BURST 400

static void make_metrics(struct bh_front *f)
{
    f->metrics = bh_metrics_new();
    bh_metrics_add_process(f->metrics, "berth-front");
    f->m_requests = bh_metric_new(f->metrics, BH_COUNTER, "berth_front_requests_total",
                                  "Requests answered, by path and code.", "path,code", NULL, 0);
    f->m_scrape_errors =
        bh_metric_new(f->metrics, BH_COUNTER, "berth_front_scrape_errors_total",
                      "Times a process did not give its metrics.", "process", NULL, 0);
    f->m_refused = bh_metric_new(
        f->metrics, BH_COUNTER, "berth_front_connections_refused_total",
        "Connections ended by this side before they had a request, and why.", "why", NULL, 0);
    f->m_connections = bh_metric_cell(bh_metric_new(f->metrics, BH_GAUGE, "berth_front_connections",
                                                    "Connections of clients.", "", NULL, 0));
    f->m_disabled = bh_metric_new(f->metrics, BH_COUNTER, "disabled_metrics_total",
                                  "[BETA] The count of disabled metrics.", "", NULL, 0);
    f->m_hidden = bh_metric_new(f->metrics, BH_COUNTER, "hidden_metrics_total",
                                "[BETA] The count of hidden metrics.", "", NULL, 0);
    f->m_unexpected = bh_metric_new(
        f->metrics, BH_COUNTER, "cardinality_enforcement_unexpected_categorizations_total",
        "[ALPHA] The count of unexpected categorizations during cardinality enforcement.", "", NULL,
        0);
    f->label_rules = bh_label_rules_new(&f->o.flags->allow_metric_labels,
                                        f->o.flags->allow_metric_labels_manifest);
    f->health = bh_health_new(f->metrics);
}

/* "" = no API server is asked. */
static int open_client(struct bh_front *f, const char *kubeconfig, const char *flag,
                       struct bh_api_client **ret, struct bh_err *err)
{
    const struct bh_api_options o = {.user_agent = "berth-front/" BH_VERSION " (linux/amd64)",
                                     .max_connections = BH_REVIEW_ASKED,
                                     .qps = REVIEW_QPS,
                                     .burst = REVIEW_BURST,
                                     .metrics = f->authn_client ? NULL : f->metrics};
    struct bh_api_config *cfg = NULL;

    if (!kubeconfig || !*kubeconfig)
        return 0;
    int rc = bh_kubeconfig_load(kubeconfig, NULL, &cfg, err);
    if (rc == 0)
        rc = bh_api_client_new(f->loop, cfg, &o, ret, err);
    bh_api_config_free(cfg);
    return rc < 0 ? bh_err_prefix(err, rc, "--%s", flag) : 0;
}

static int open_access(struct bh_front *f, struct bh_err *err)
{
    const struct bh_kube_flags *k = f->o.flags;
    int rc =
        open_client(f, k->authn.kubeconfig, "authentication-kubeconfig", &f->authn_client, err);

    if (rc == 0)
        rc = open_client(f, k->authz.kubeconfig, "authorization-kubeconfig", &f->authz_client, err);
    if (rc < 0)
        return rc;
    if (!f->authn_client)
        bh_log_warn("Authentication is disabled: no --authentication-kubeconfig, every token is "
                    "anonymous");
    if (!f->authz_client)
        bh_log_warn("Authorization is disabled: no --authorization-kubeconfig, what is not always "
                    "allowed is forbidden");
    const struct bh_authn_options an = {&k->authn, f->authn_client, f->metrics};
    const struct bh_authz_options az = {&k->authz, f->authz_client, f->metrics};
    rc = bh_authn_new(f->loop, &an, &f->authn, err);
    return rc < 0 ? rc : bh_authz_new(f->loop, &az, &f->authz, err);
}

static void on_refresh(uv_timer_t *t)
{
    struct bh_front *f = t->data;
    struct bh_err err;
    int rc = bh_certs_refresh(f->certs, false, &err);

    if (rc > 0)
        bh_log_info("Serving certificates were read again");
    else if (rc < 0)
        bh_log_error("Serving certificates stay as they were", bh_kv_s("err", err.msg));
}

int bh_front_open(struct bh_front *f, const struct bh_front_options *o, uv_loop_t *loop,
                  struct bh_err *err)
{
    *f = (struct bh_front){
        .loop = loop, .o = *o, .started_mono_ns = bh_mono_ns(), .started_wall_ns = bh_wall_ns()};
    make_metrics(f);
    uv_timer_init(loop, &f->refresh);
    f->refresh.data = f;
    f->peers = bh_peers_new(loop, o->runtime_dir);
    f->control = bh_asker_new(loop, o->runtime_dir);
    f->resources = bh_resources_new(loop, o->runtime_dir);
    int rc = open_access(f, err);
    if (rc == 0)
        rc = bh_certs_new(&o->flags->serving, &f->certs, err);
    if (rc < 0)
        return rc;
    static const char *const probes[] = {"/healthz", "/livez", "/readyz", NULL};
    const struct bh_http_options server = {.address = o->flags->serving.bind_address,
                                           .port = o->port,
                                           .tls = bh_certs_tls(f->certs),
                                           .reuse_port = o->flags->serving.permit_port_sharing,
                                           .max_body_bytes = BODY_BYTES,
                                           .max_connections = CONNECTIONS,
                                           .per_address = PER_ADDRESS,
                                           .reserve = RESERVE,
                                           .reserve_paths = probes,
                                           .refused = f->m_refused,
                                           .open = f->m_connections,
                                           .idle_timeout_s = IDLE_S};
    rc = bh_http_server_new(loop, &server, bh_front_serve, f, &f->server, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "failed to create listener");
    uv_timer_start(&f->refresh, on_refresh, REFRESH_MS, REFRESH_MS);
    return 0;
}

uint16_t bh_front_port(const struct bh_front *f)
{
    return bh_http_server_port(f->server);
}

void bh_front_reload(struct bh_front *f)
{
    struct bh_err err;

    if (f->authn_client)
        bh_api_client_reload(f->authn_client);
    if (f->authz_client)
        bh_api_client_reload(f->authz_client);
    bh_authn_reload(f->authn);
    bh_authz_forget(f->authz);
    if (bh_certs_refresh(f->certs, true, &err) < 0)
        bh_log_error("Serving certificates stay as they were", bh_kv_s("err", err.msg));
}

/* First the parts that ask other processes: their callers end while the server is still there. The
 * clients last: what they cancel is told from the loop. */
void bh_front_close(struct bh_front *f)
{
    f->stopping = f->closed = true;
    bh_authn_free(f->authn);
    bh_authz_free(f->authz);
    bh_asker_free(f->control);
    bh_resources_free(f->resources);
    bh_peers_free(f->peers);
    bh_api_client_free(f->authn_client);
    bh_api_client_free(f->authz_client);
    while (f->under_way && uv_run(f->loop, UV_RUN_ONCE))
        ;
    bh_http_server_free(f->server);
    bh_certs_free(f->certs);
    uv_close((uv_handle_t *)&f->refresh, NULL);
    bh_health_free(f->health);
    bh_metrics_free(f->metrics);
    bh_label_rules_free(f->label_rules);
}
