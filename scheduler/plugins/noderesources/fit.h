/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/noderesources/fit.h - args of NodeResourcesFit, shared by its files
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/noderesources; differences: none.
 */
#ifndef BH_FIT_H
#define BH_FIT_H

#include "scheduler/plugins/noderesources/class_devices.h"

enum bh_fit_strategy { BH_FIT_LEAST, BH_FIT_MOST, BH_FIT_RATIO };
struct bh_fit_point { /* score is scaled by 10: 0..100 */
    int64_t utilization, score;
};
struct bh_fit_args {
    struct bh_symtab *tab;
    enum bh_fit_strategy strategy;
    struct bh_res_list resources;
    struct bh_fit_point *shape;
    uint32_t n_shape;
    bh_sym *ignored; /* ignoredResources */
    uint32_t n_ignored;
    const char **ignored_groups;
    uint32_t n_ignored_groups;
    struct bh_umap reasons;  /* resource -> "Insufficient <resource>", made once */
    struct bh_umap extended; /* resource -> 1 + is extended */
    struct bh_class_devices *devices;
    struct bh_arena *arena;
};
extern const struct bh_field bh_fit_schema[];
void bh_fit_args_check(const struct bh_plugin *self, const struct bh_json *args, const char *path,
                       struct bh_field_errors *errs);
int bh_fit_args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err);
void bh_fit_args_free(void *args);
/* The resource is left to others: ignoredResources, ignoredResourceGroups. */
bool bh_fit_ignores(struct bh_fit_args *a, bh_sym name);

int64_t bh_fit_score(const struct bh_fit_args *a, const struct bh_res_view *v);
/* y(x) of the broken line, as upstream truncates it. */
int64_t bh_broken_line(const struct bh_fit_point *p, uint32_t n, int64_t x);
extern const struct bh_event_reg bh_fit_events[];
#endif
