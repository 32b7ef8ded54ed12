/* SPDX-License-Identifier: Apache-2.0
 *
 * front/health.h - /healthz, /livez, /readyz
 *
 * Checks, as kube-scheduler's: leaderElection (the watcher's: it leads and has renewed in time, or
 * does not lead), shutdown (this process is not about to end), sched-handler-sync (the scheduler
 * has everything there is), ping. /livez is ping alone: it answers whatever the others do. A
 * process that does not answer within BH_HEALTH_NS fails its check.
 * Upstream: apiserver/pkg/server/healthz/healthz.go, component-base/metrics/prometheus/slis.
 */
#ifndef BH_FRONT_HEALTH_H
#define BH_FRONT_HEALTH_H

#include "common/base/metrics.h"

#define BH_HEALTH_NS     UINT64_C(2000000000)
#define BH_HEALTH_CHECKS 4u

struct bh_health_check {
    const char *name;
    const char *why; /* NULL = it is fine */
    bool excluded;
};
/* Appends what the probe answers; returns 200 or 500. excluded: the names of ?exclude=. */
int bh_health_write(const char *probe, const struct bh_health_check *checks, size_t n,
                    const char *const *excluded, size_t n_excluded, bool verbose,
                    struct bh_buf *out);

struct bh_health; /* kubernetes_healthcheck and kubernetes_healthchecks_total */
struct bh_health *bh_health_new(struct bh_metrics *m);
void bh_health_free(struct bh_health *h); /* NULL allowed */
void bh_health_observe(struct bh_health *h, const char *check, const char *probe, bool ok);
void bh_health_render(struct bh_health *h, struct bh_buf *out); /* these two alone */
#endif
