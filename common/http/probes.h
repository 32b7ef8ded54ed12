/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/probes.h - /metrics, /healthz, /livez, /readyz of a daemon
 *
 * Replies follow kube-apiserver's: "ok" as text/plain; with ?verbose one "[+]name ok" line a check
 * and the closing "healthz check passed"; a failing check gives 500, always verbose, with "[-]name
 * failed: reason withheld" for the public text. /livez/NAME asks one check. A probe without checks
 * has the check "ping". /metrics is text/plain; version=0.0.4. Unknown paths: 404; methods other
 * than GET and HEAD: 405. The same is served on a Unix socket (mode 0660), where berth-front asks;
 * there, and only there, PUT /debug/flags/v with a number as the body changes the verbosity of the
 * log. Address "127.0.0.1:10259" or "[::1]:10259" or ":0"; "0" or "" as a whole disables it. With
 * neither address nor socket *ret_p is NULL, which every function here accepts. -EINVAL when the
 * address is malformed, else listen's errno.
 * Threads: the loop's.
 */
#ifndef BH_PROBES_H
#define BH_PROBES_H

#include "common/base/metrics.h"
#include "common/http/server.h"

struct bh_probe_check {
    const char *name;
    bool (*ok)(void *arg);
    void *arg;
    bool live;  /* part of /livez and /healthz */
    bool ready; /* part of /readyz */
    /* What to say while it is not ok instead of "reason withheld": nothing that is a secret; may be
     * NULL. */
    const char *(*why)(void *arg);
};
struct bh_probes;
/* checks: array copied; ends with name NULL. */
/* runtime_dir, name: the socket is <runtime_dir>/<name>.http; NULL = none. */
int bh_probes_start(uv_loop_t *loop, const char *address, const char *runtime_dir, const char *name,
                    struct bh_metrics *m, const struct bh_probe_check *checks,
                    struct bh_probes **ret_p, struct bh_err *err);
uint16_t bh_probes_port(const struct bh_probes *p);
void bh_probes_free(struct bh_probes *p);
#endif
