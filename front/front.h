/* SPDX-License-Identifier: Apache-2.0
 *
 * front/front.h - kube-scheduler's HTTPS port, answered for all processes of this host
 *
 * Life of a request: authentication (authn.h), authorization (authz.h), then its path (serve.c);
 * each step may take its time. What a path needs to know comes from the other processes: their
 * sockets (peers.h), the scheduler's control socket (control.h), the watcher's feed (resources.h).
 * Threads:    one libuv loop.
 * Upstream:   cmd/kube-scheduler/app/server.go (newEndpointsHandler, buildHandlerChain).
 */
#ifndef BH_FRONT_H
#define BH_FRONT_H

#include "front/authn.h"
#include "front/authz.h"
#include "front/cert.h"
#include "common/control/asker.h"
#include "front/health.h"
#include "front/labels.h"
#include "front/peers.h"
#include "front/resources.h"

#define BH_FRONT_DRAIN_MS 5000u /* requests under way when the process is told to stop */

struct bh_front_options {
    const struct bh_kube_flags *flags;      /* borrowed for the process's life */
    const struct bh_component_config *file; /* with the flags applied */
    const char *runtime_dir;
    uint16_t port; /* --secure-port; 0 = any free one, for tests */
};
struct bh_front {
    uv_loop_t *loop;
    struct bh_front_options o;
    struct bh_api_client *authn_client, *authz_client; /* NULL = no API server to ask */
    struct bh_authn *authn;
    struct bh_authz *authz;
    struct bh_certs *certs;
    struct bh_http_server *server;
    struct bh_peers *peers;
    struct bh_asker *control;
    struct bh_resources *resources;
    struct bh_health *health;
    struct bh_metrics *metrics;
    struct bh_metric *m_requests, *m_scrape_errors, *m_refused;
    struct bh_cell *m_connections;
    struct bh_metric *m_disabled, *m_hidden, *m_unexpected; /* upstream's about its flags */
    struct bh_label_rules *label_rules;                     /* NULL = none */
    uv_timer_t refresh;                                     /* certificates */
    unsigned under_way;                                     /* requests */
    bool stopping, closed;                                  /* closed: asks no process any more */
    uint64_t started_mono_ns;
    int64_t started_wall_ns;
};

/* One request, from its arrival until all work on it is done. */
struct bh_call {
    struct bh_front *f;
    struct bh_http_req *http; /* NULL: the client is gone, or was answered */
    char *path, *verb;        /* verb: the method in lower case */
    struct bh_user *user;
    struct bh_review_wait *wait; /* for the user or its rights; NULL = not, or not any more */
};

/* ---- front.c --------------------------------------------------------------------------------- */
int bh_front_open(struct bh_front *f, const struct bh_front_options *o, uv_loop_t *loop,
                  struct bh_err *err);
void bh_front_close(struct bh_front *f);  /* drain the loop afterwards */
void bh_front_reload(struct bh_front *f); /* credentials, authorities, certificates */
uint16_t bh_front_port(const struct bh_front *f);

/* ---- serve.c --------------------------------------------------------------------------------- */
void bh_front_serve(struct bh_http_req *r, void *front); /* handler of the server */
/* Ends a call: the reply, if the client is still there. type NULL = text/plain. */
void bh_call_reply(struct bh_call *c, int code, const char *type, const void *body, size_t n);
void bh_call_text(struct bh_call *c, int code, const char *text);
/* As Go's http.Error: the text, a newline, nosniff. */
void bh_call_error(struct bh_call *c, int code, const char *text);

/* ---- what paths answer ----------------------------------------------------------------------- */
void bh_front_metrics(struct bh_call *c);   /* scrape.c */
void bh_front_slis(struct bh_call *c);      /* scrape.c */
void bh_front_verbosity(struct bh_call *c); /* scrape.c */
void bh_front_configz(struct bh_call *c);   /* zpages.c */
void bh_front_flagz(struct bh_call *c);     /* zpages.c */
void bh_front_statusz(struct bh_call *c);   /* zpages.c */
/* probe: "healthz"; check: one of them, or NULL. */
void bh_front_health(struct bh_call *c, const char *probe, const char *check); /* health.c */
void bh_front_pod_resources(struct bh_call *c);                                /* zpages.c */
#endif
