/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/job_rules.c - pod failure policies, success policies, lists of indexes
 */
#include "simulator/controllers/job.h"

#include <inttypes.h>

/* ---- pod failure policy ---------------------------------------------------------------------- */

static bool lists_number(const struct bh_json *list, int64_t n)
{
    int64_t v;

    bh_json_each(e, list)
        if (bh_json_i64(e, &v) && v == n)
            return true;
    return false;
}

/* The first container that ended with a code other than 0 that the rule asks for. */
static const struct bh_json *match_exit_code(const struct bh_json *rule, const struct bh_json *pod)
{
    static const char *const lists[] = {"status.containerStatuses", "status.initContainerStatuses"};
    const char *name = bh_tree_str(rule, "containerName");
    bool in = bh_tree_is(rule, "operator", "In");

    if (!in && !bh_tree_is(rule, "operator", "NotIn"))
        return NULL;
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(s, bh_tree_arr(pod, lists[i])) {
            int64_t code = bh_tree_i64(s, "state.terminated.exitCode", 0);
            if (code && (!name || bh_tree_is(s, "name", name)) &&
                lists_number(bh_tree_arr(rule, "values"), code) == in)
                return s;
        }
    }
    return NULL;
}

static const char *match_condition(const struct bh_json *patterns, const struct bh_json *pod)
{
    bh_json_each(c, bh_tree_arr(pod, "status.conditions")) {
        const char *type = bh_tree_str(c, "type"), *status = bh_tree_str(c, "status");
        bh_json_each(p, patterns) {
            if (type && status && bh_tree_is(p, "type", type) && bh_tree_is(p, "status", status))
                return type;
        }
    }
    return NULL;
}

/* The rule's match as a text for people, in a; NULL: it does not match. */
static const char *matches(struct bh_arena *a, const struct bh_json *rule,
                           const struct bh_json *pod)
{
    const struct bh_json *codes = bh_tree_obj(rule, "onExitCodes"), *s;
    const char *ns = bh_tree_str(pod, "metadata.namespace"), *type;
    const char *name = bh_tree_str(pod, "metadata.name");

    ns = ns ? ns : "";
    if (codes) {
        s = match_exit_code(codes, pod);
        return s ? bh_arena_printf(a, "Container %s for pod %s/%s failed with exit code %" PRId64,
                                   bh_tree_str(s, "name"), ns, name,
                                   bh_tree_i64(s, "state.terminated.exitCode", 0))
                 : NULL;
    }
    type = match_condition(bh_tree_arr(rule, "onPodConditions"), pod);
    return type ? bh_arena_printf(a, "Pod %s/%s has condition %s", ns, name, type) : NULL;
}

enum bh_job_action bh_job_failure_action(struct bh_arena *a, const struct bh_json *job,
                                         const struct bh_json *pod, const char **ret_message)
{
    static const char actions[] = "Count Ignore FailIndex FailJob"; /* enum bh_job_action */
    int64_t n = -1;

    bh_json_each(rule, bh_tree_arr(job, "spec.podFailurePolicy.rules")) {
        const char *what = bh_tree_str(rule, "action"), *why = matches(a, rule, pod);
        n++;
        if (!why || !what || bh_word_at(actions, what) < 0)
            continue;
        *ret_message = bh_arena_printf(a, "%s matching %s rule at index %" PRId64, why, what, n);
        return (enum bh_job_action)bh_word_at(actions, what);
    }
    return BH_JOB_COUNT;
}

/* ---- indexes --------------------------------------------------------------------------------- */

void bh_job_indexes_read(const char *text, uint8_t *index, int64_t n, uint8_t mark)
{
    for (const char *at = text ? text : ""; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        char *end;
        int64_t first = strtoll(at, &end, 10), last = first;
        if (end != at && *end == '-')
            last = strtoll(end + 1, &end, 10);
        if (end == at + len && first >= 0)
            for (int64_t i = first; i <= last && i < n; i++)
                index[i] |= mark;
        at += len;
    }
}

void bh_job_indexes_write(struct bh_buf *b, const uint8_t *index, int64_t n, uint8_t mark)
{
    for (int64_t i = 0, end; i < n; i = end + 1) {
        end = i;
        if (!(index[i] & mark))
            continue;
        while (end + 1 < n && index[end + 1] & mark)
            end++;
        bh_buf_addf(b, "%s%" PRId64, b->n ? "," : "", i);
        if (end > i)
            bh_buf_addf(b, "%c%" PRId64, end == i + 1 ? ',' : '-', end);
    }
}

int64_t bh_job_indexes_count(const uint8_t *index, int64_t n, uint8_t mark)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        count += (index[i] & mark) == mark;
    return count;
}

/* ---- success policy -------------------------------------------------------------------------- */

#define ASKED 128 /* by the rule's succeededIndexes */

static bool met(const struct bh_json *rule, uint8_t *index, int64_t n)
{
    const char *asked = bh_tree_str(rule, "succeededIndexes");
    int64_t count = bh_tree_i64(rule, "succeededCount", INT64_MAX);

    if (!asked)
        return bh_job_indexes_count(index, n, BH_JOB_DONE) >= count;
    bh_job_indexes_read(asked, index, n, ASKED);
    int64_t all = bh_job_indexes_count(index, n, ASKED);
    int64_t done = bh_job_indexes_count(index, n, ASKED | BH_JOB_DONE);
    for (int64_t i = 0; i < n; i++)
        index[i] &= (uint8_t)~ASKED;
    return all && done >= BH_MIN(all, count);
}

int64_t bh_job_success_rule(struct bh_arena *a, const struct bh_json *job, const uint8_t *index,
                            int64_t n)
{
    const struct bh_json *rules = bh_tree_arr(job, "spec.successPolicy.rules");
    int64_t i = 0;

    if (!bh_tree_len(rules) || !bh_job_indexes_count(index, n, BH_JOB_DONE))
        return -1;
    uint8_t *marked = bh_arena_array(a, (size_t)n, 1);
    memcpy(marked, index, (size_t)n);
    bh_json_each(rule, rules) {
        if (met(rule, marked, n))
            return i;
        i++;
    }
    return -1;
}
