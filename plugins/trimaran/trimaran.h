/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/trimaran/trimaran.h - what the files of this folder share
 */
#ifndef TRIMARAN_H
#define TRIMARAN_H

#include <pthread.h>
#include <sys/stat.h>

#include "berth/plugin.h"

/* What is known of a node, as user columns; NaN: not. */
enum column {
    CPU_LAST,  /* percent: the last CPU metric that is an average or the latest value */
    CPU_FIRST, /* ... and the first one */
    CPU_AVG,   /* percent, of all CPU metrics: an average before anything else */
    CPU_STD,
    MEMORY_AVG,
    MEMORY_STD,
    WINDOW_END, /* second at which the metrics' window ends */
    PRESENT,    /* 1: there is something about the node, maybe nothing of the above */
    COLUMNS
};

struct power { /* Peaks: of one node */
    berth_sym node;
    double k1, k2;
};

struct instance {
    struct berth_home *home;
    berth_sym cpu, memory;
    /* ---- arguments; a plugin has some of them ---- */
    double target, multiplier;   /* TargetLoadPacking */
    int64_t default_cpu;         /* milli */
    double margin, sensitivity;  /* LoadVariationRiskBalancing */
    double window, cpu_w, mem_w; /* LowRiskOverCommitment */
    struct power *power;         /* Peaks: by symbol */
    uint64_t n_power;
    /* ---- metrics.c ---- */
    char *file;
    int64_t max_age; /* seconds */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ends;
    int running, over;
    struct stat seen;  /* of the file that was read last */
    const char *wrong; /* with it */
    const char *told;  /* what the log was told last */
    int64_t moment;    /* second at which what is known was measured */
    int stale;         /* and nothing is published therefore */
};

extern const struct berth_host *trimaran_host;

/* ---- metrics.c: a thread that reads what berth-metrics wrote, and publishes it ---- */
/* 0, or -1: no thread. The first pod sees what there is already. */
int trimaran_follow(struct instance *in);
void trimaran_leave(struct instance *in);

/* ---- scores.c ---- */
int32_t trimaran_target_load(void *self, struct berth_call *c, const struct berth_node *node,
                             int64_t *ret, struct berth_why *why);
int32_t trimaran_variation(void *self, struct berth_call *c, const struct berth_node *node,
                           int64_t *ret, struct berth_why *why);
int32_t trimaran_low_risk_pre_score(void *self, struct berth_call *c, const uint32_t *rows,
                                    uint64_t n, struct berth_why *why);
int32_t trimaran_low_risk(void *self, struct berth_call *c, const struct berth_node *node,
                          int64_t *ret, struct berth_why *why);
int32_t trimaran_peaks(void *self, struct berth_call *c, const struct berth_node *node,
                       int64_t *ret, struct berth_why *why);
int32_t trimaran_peaks_normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                                 struct berth_why *why);

/* ---- beta.c ---- */
/* The regularised incomplete beta function I_x(a, b), a and b > 0; NaN: a or b is not. */
double trimaran_beta(double x, double a, double b);
#endif
