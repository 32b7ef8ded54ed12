/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/cel.h - CEL as device selectors use it
 *
 * compile once per expression text, evaluate once per (expression, device): the result is a bool or
 * an error text as upstream's. A program is immutable and may be shared; it lives in its own arena.
 * Limits (hostile input): expression 10 KiB, nesting 64, evaluation cost 1,000,000 units counted
 * while evaluating (message as upstream's "... cost limit exceeded"); regular expressions are
 * linear time.
 * Upstream: k8s.io/dynamic-resource-allocation/cel, google/cel-go; what is not supported fails at
 * compile time, never silently at evaluation.
 */
#ifndef BH_CEL_H
#define BH_CEL_H

#include "common/base/arena.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

struct bh_cel_program;
#define BH_CEL_COST_LIMIT UINT64_C(1000000)

/* The variable `device`: driver, attributes by domain, capacities by domain,
 * allowMultipleAllocations. Built from the API object; attribute and capacity names without a
 * domain belong to the driver's. */
struct bh_cel_device {
    const char *driver;
    const K8s__Device *device;
};
/* 0 or -EINVAL with upstream-like compile error text in err. */
int bh_cel_compile(const char *expression, struct bh_cel_program **ret, struct bh_err *err);
void bh_cel_free(struct bh_cel_program *p);
/* Evaluates in scratch (not reset here). 0 with *ret_match; -EINVAL with err (evaluation error:
 * missing key, wrong type, not a bool); -E2BIG when the cost limit was exceeded. ret_cost may be
 * NULL. */
int bh_cel_match_device(const struct bh_cel_program *p, const struct bh_cel_device *d,
                        struct bh_arena *scratch, bool *ret_match, uint64_t *ret_cost,
                        struct bh_err *err);
#endif
