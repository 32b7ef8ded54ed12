/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/config_int.h - what the files of this folder share
 */
#ifndef BH_CONFIG_INT_H
#define BH_CONFIG_INT_H

#include "scheduler/config/config.h"
#include "scheduler/config/field.h"

/* One extension point in the file and in error texts. */
struct bh_point_name {
    const char *key;       /* "preFilter" */
    const char *interface; /* "PreFilterPlugin" */
};
extern const struct bh_point_name bh_point_names[BH_POINT_COUNT];
/* Order in which upstream fills the points, so the first error is the same. */
extern const enum bh_point bh_point_order[BH_POINT_COUNT];

extern const struct bh_field bh_config_schema[];

void bh_config_validate(const struct bh_json *tree, struct bh_field_errors *errs);
/* Merges with the defaults and expands multiPoint into p->points. tree NULL: all defaults. */
int bh_config_expand(struct bh_sched_config *c, struct bh_profile_config *p,
                     const struct bh_json *profile, struct bh_err *err);
const char *bh_go_duration(struct bh_arena *a, int64_t ns);
#endif
