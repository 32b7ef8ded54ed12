/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/capacityscheduling/quota.h - what the files of this folder share
 *
 * Amounts are as the host gives them: cpu in milli, everything else in whole units.
 */
#ifndef CS_QUOTA_H
#define CS_QUOTA_H

#include "berth/plugin.h"

#define CS_RESOURCES 64u /* that are told apart: the three below, and extended ones */
#define CS_ALWAYS    3u  /* cpu, memory, ephemeral-storage: always compared */

struct cs_amounts {
    uint64_t named; /* bit by resource: it says something about it */
    int64_t v[CS_RESOURCES];
};
struct cs_namespace {
    berth_sym name;
    int has_quota;
    int64_t quota_created; /* of the ElasticQuota that counts */
    struct berth_str quota_name;
    struct cs_amounts min, max;
    /* Of all its pods that have a node. Unsigned: what is added is taken off again exactly. */
    uint64_t used[CS_RESOURCES];
};

struct cs_row;
struct cs_instance {
    struct berth_home *home;
    uint32_t n_resources;
    berth_sym resource[CS_RESOURCES];
    int told_resources; /* that there are more */
    /* ---- usage.c: by namespace, and what each row has a part in it ---- */
    struct cs_namespace *ns; /* index 0 is nobody's */
    uint32_t n_ns, cap_ns;
    uint32_t *slot, n_slots;    /* by the name's symbol: index in ns, 0 = free */
    struct berth_str last_name; /* asked for last, and its number */
    uint32_t last_ns;
    struct cs_row *row;
    uint32_t n_rows;
    uint64_t seen;
    /* ---- quotas.c: of the namespaces with a quota ---- */
    uint64_t quotas_version;
    int quotas_read;
    uint64_t total_used[CS_RESOURCES];
    int64_t total_min[CS_RESOURCES];
};

/* What a decision about a pod with a quota looks at. */
struct cs_pod {
    uint32_t ns; /* its namespace, whose has_quota says whether the rest counts */
    struct cs_amounts request;
    /* With the requests of pods that were promised a node: of its namespace, as important as it or more;
     * and besides of other namespaces that do not use more than their min. */
    struct cs_amounts with_own, with_all;
};

extern const struct berth_host *cs_host;

/* What 64 bits do not hold is the most that they do. */
static inline int64_t cs_sum(int64_t a, int64_t b)
{
    int64_t sum;

    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

/* ---- usage.c ---- */
/* Everything as it is now. 0: no memory. */
int cs_current(struct cs_instance *in, struct berth_call *c);
/* Its number, from 1 on; 0: no memory. */
uint32_t cs_namespace_of(struct cs_instance *in, struct berth_call *c, const struct berth_pod *pod);
uint32_t cs_namespace_named(struct cs_instance *in, struct berth_str name);
/* Which of the amounts is the resource's; CS_RESOURCES: none, there are too many. */
uint32_t cs_resource(struct cs_instance *in, berth_sym resource);
/* The sum of its containers, or the largest init container where that is more; and overhead. */
void cs_request(struct cs_instance *in, struct berth_call *c, const struct berth_pod *pod,
                struct cs_amounts *ret);
void cs_use(struct cs_instance *in, uint32_t ns, const struct cs_amounts *a, int by);
void cs_usage_fini(struct cs_instance *in);

/* ---- quotas.c ---- */
int cs_read_quotas(struct cs_instance *in, struct berth_call *c);
int cs_over_max_with(const struct cs_instance *in, uint32_t ns, const struct cs_amounts *more);
int cs_over_min_with(const struct cs_instance *in, uint32_t ns, const struct cs_amounts *more);
int cs_over_min(const struct cs_instance *in, uint32_t ns);
int cs_total_over_min_with(const struct cs_instance *in, const struct cs_amounts *more);

/* The quota that counts of each namespace, by its number. free() it; NULL: no memory. */
const struct berth_object **cs_counting_quotas(struct cs_instance *in, struct berth_call *c);

/* ---- status.c ---- */
void cs_tend(void *self, struct berth_call *c);

/* ---- preempt.c ---- */
/* The pod at hand, after cs_current(). 0: no memory. */
int cs_pod_at_hand(struct cs_instance *in, struct berth_call *c, struct cs_pod *ret);
int32_t cs_post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                       struct berth_why *why);

int32_t cs_no_memory(struct berth_why *why);
#endif
