/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/status.c - verdicts
 *
 * Upstream: k8s.io/kube-scheduler/framework/interface.go.
 */
#include "common/base/buf.h"
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
    struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    reasons[0] = bh_arena_strndup(a, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    *s = (struct bh_status){.code = code, .n_reasons = 1, .reasons = reasons, .plugin = plugin};
    return s;
}

const char *bh_status_message(struct bh_arena *a, const struct bh_status *s)
{
    struct bh_buf b = {0};

    for (uint32_t i = 0; s && i < s->n_reasons; i++) {
        if (i)
            bh_buf_adds(&b, ", ");
        bh_buf_adds(&b, s->reasons[i]);
    }
    char *text = bh_arena_strndup(a, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return text;
}
