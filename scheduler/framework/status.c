/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/status.c - verdicts
 *
 * Upstream: k8s.io/kube-scheduler/framework/interface.go.
 */
#include "scheduler/framework/status.h"

const struct bh_status bh_status_skip = {.code = BH_SKIP};

const char *bh_code_name(enum bh_code c)
{
    static const char *const names[] = {
        [BH_SUCCESS] = "Success",
        [BH_ERROR] = "Error",
        [BH_UNSCHEDULABLE] = "Unschedulable",
        [BH_UNSCHEDULABLE_AND_UNRESOLVABLE] = "UnschedulableAndUnresolvable",
        [BH_WAIT] = "Wait",
        [BH_SKIP] = "Skip",
        [BH_PENDING] = "Pending",
    };
    return (size_t)c < BH_ARRAY_LEN(names) ? names[c] : "?";
}

const struct bh_status *bh_status_new(struct bh_arena *a, enum bh_code code, const char *plugin,
                                      const char *fmt, ...)
{
    struct bh_status *s = bh_arena_new(a, struct bh_status);
    const char **reasons = bh_arena_new(a, const char *);
    va_list ap;

    va_start(ap, fmt);
    reasons[0] = bh_arena_vprintf(a, fmt, ap);
    va_end(ap);
    *s = (struct bh_status){.code = code, .n_reasons = 1, .reasons = reasons, .plugin = plugin};
    return s;
}

bool bh_status_equal(const struct bh_status *a, const struct bh_status *b)
{
    bool equal = a->code == b->code && a->n_reasons == b->n_reasons && a->plugin == b->plugin;

    for (uint32_t i = 0; equal && i < a->n_reasons; i++)
        equal = bh_streq(a->reasons[i], b->reasons[i]);
    return equal;
}

const char *bh_status_message(struct bh_arena *a, const struct bh_status *s)
{
    size_t n = 1;

    for (uint32_t i = 0; s && i < s->n_reasons; i++)
        n += strlen(s->reasons[i]) + 2;
    char *text = bh_arena_alloc(a, n), *at = text;
    for (uint32_t i = 0; s && i < s->n_reasons; i++)
        at = stpcpy(i ? stpcpy(at, ", ") : at, s->reasons[i]);
    *at = 0;
    return text;
}
