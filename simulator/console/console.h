/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/console.h - what the simulator answers besides the Kubernetes API
 *
 * Three groups of paths, on the same port and behind the same checks (simulator/security.c):
 *   /ui/...        the web page: files of share/berth/web, nothing else (web.c)
 *   /api/v1/X      kube-scheduler-simulator's own paths (schedulerconfiguration, reset, export,
 *                  import, listwatchresources): no name of a core resource collides with them
 *   /berth/v1/X    Berth's own; docs/simulator-api.md is their contract
 *
 * An endpoint is a line in routes[] (console.c) and a function in the file of its subject. Handlers
 * run in the loop and must be quick; what takes longer than a few milliseconds is given to
 * bh_console_work(), which runs it in a worker thread and answers later.
 *
 * Errors are {"message": TEXT} with a status code; "field" and "line" where they are known.
 * This folder may use simulator/req.h and the scheduler's libraries (as the core may).
 */
#ifndef BH_SIM_CONSOLE_H
#define BH_SIM_CONSOLE_H

#include "simulator/req.h"

/* The path without its group's prefix, cut at '/': seg[0] is the endpoint's name. Decoded. */
#define BH_CONSOLE_SEGMENTS 6
struct bh_console_req {
    struct bh_sim_req *r;
    unsigned n;
    const char *seg[BH_CONSOLE_SEGMENTS];
};
typedef void bh_console_fn(struct bh_console_req *c);

/* Called by route.c for every request that passed the checks. false: not one of ours. */
bool bh_console_route(struct bh_sim_req *r);
/* Serves /ui/... (web.c). */
bool bh_console_web(struct bh_sim_req *r);

/* ---- answers ---------------------------------------------------------------------------------- */
void bh_console_reply(struct bh_sim_req *r, int code, const struct bh_json *v); /* NULL: empty */
/* {"message": ...}; field NULL and line 0: left out. */
void bh_console_fail(struct bh_sim_req *r, int code, const char *field, unsigned line,
                     const char *fmt, ...) BH_PRINTF(5, 6);
#endif
