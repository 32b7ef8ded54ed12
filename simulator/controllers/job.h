/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/job.h - what a job's policies say about its pods (job_rules.c)
 *
 * Pure functions over trees; nothing is kept. Upstream: pkg/controller/job/pod_failure_policy.go,
 * success_policy.go, indexed_job_utils.go (v1.36).
 */
#ifndef BH_SIM_JOB_H
#define BH_SIM_JOB_H

#include "simulator/server/tree.h"

/* What the first rule of spec.podFailurePolicy that matches a failed pod does with the failure. */
enum bh_job_action {
    BH_JOB_COUNT, /* no rule matches, too */
    BH_JOB_IGNORE,
    BH_JOB_FAIL_INDEX,
    BH_JOB_FAIL_JOB
};
/* *ret_message, in a, with BH_JOB_FAIL_JOB: why. */
enum bh_job_action bh_job_failure_action(struct bh_arena *a, const struct bh_json *job,
                                         const struct bh_json *pod, const char **ret_message);

/* What is known of an index of an indexed job. */
#define BH_JOB_DONE 1
#define BH_JOB_LOST 2 /* it failed for good */
#define BH_JOB_BUSY 4 /* a pod works at it, or, where only failed pods are replaced, ends */

/* "0,2-4": mark for each of the n indexes in text; what is not to be read is passed over. */
void bh_job_indexes_read(const char *text, uint8_t *index, int64_t n, uint8_t mark);
void bh_job_indexes_write(struct bh_buf *b, const uint8_t *index, int64_t n, uint8_t mark);
int64_t bh_job_indexes_count(const uint8_t *index, int64_t n, uint8_t mark);

/* The number of the first rule of spec.successPolicy that the done indexes meet, or -1. */
int64_t bh_job_success_rule(struct bh_arena *a, const struct bh_json *job, const uint8_t *index,
                            int64_t n);
#endif
