/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/status.h - the verdict of a plugin
 *
 * A verdict is not an error in the errno sense and never mixes with one. A NULL status is Success.
 * Statuses and their reasons live in the cycle's arena, or are static constants.
 * Upstream: k8s.io/kube-scheduler/framework/interface.go (Code, Status).
 */
#ifndef BH_STATUS_H
#define BH_STATUS_H

#include "common/base/arena.h"

enum bh_code {
    BH_SUCCESS,
    BH_ERROR,
    BH_UNSCHEDULABLE,
    BH_UNSCHEDULABLE_AND_UNRESOLVABLE,
    BH_WAIT,
    BH_SKIP,
    BH_PENDING
};
struct bh_status {
    enum bh_code code;
    uint32_t n_reasons;
    const char *const *reasons;
    const char *plugin; /* name of the plugin that gave it, NULL = none */
};
/* Statuses without variable text are constants of their plugin:
 *   BH_STATUS_CONST(no_ports, BH_UNSCHEDULABLE, "NodePorts", "node(s) didn't have free ports ...");
 *   return &no_ports; */
#define BH_STATUS_CONST(id, code_, plugin_, reason_)                                               \
    static BH_STATUS_SHARED(id, code_, plugin_, reason_)
/* The same for several files of a plugin, which declare it. */
#define BH_STATUS_SHARED(id, code_, plugin_, reason_)                                              \
    const struct bh_status id = {.code = (code_),                                                  \
                                 .n_reasons = 1,                                                   \
                                 .reasons = (const char *const[]){reason_},                        \
                                 .plugin = (plugin_)}
extern const struct bh_status bh_status_skip;

const char *bh_code_name(enum bh_code c); /* "UnschedulableAndUnresolvable" */
static inline enum bh_code bh_status_code(const struct bh_status *s)
{
    return s ? s->code : BH_SUCCESS;
}
static inline bool bh_status_rejected(const struct bh_status *s)
{
    enum bh_code c = bh_status_code(s);
    return c == BH_UNSCHEDULABLE || c == BH_UNSCHEDULABLE_AND_UNRESOLVABLE || c == BH_PENDING;
}
const struct bh_status *bh_status_new(struct bh_arena *a, enum bh_code code, const char *plugin,
                                      const char *fmt, ...) BH_PRINTF(4, 5);
/* The same code, reasons and plugin. */
bool bh_status_equal(const struct bh_status *a, const struct bh_status *b);
/* Reasons joined by ", ". */
const char *bh_status_message(struct bh_arena *a, const struct bh_status *s);
#endif
