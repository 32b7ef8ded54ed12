/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/policy_tables.h - predicates and priorities of old, and what does their work now
 */
#ifndef BH_POLICY_TABLES_H
#define BH_POLICY_TABLES_H

#include "scheduler/config/field.h"

struct bh_predicate { /* in the order in which they were checked */
    const char *name;
    const char *plugins[5]; /* NULL ends */
    const char *became;     /* for people */
    bool is_default, mandatory;
    bool gone; /* no plugin does its work */
};
struct bh_priority { /* by name: so they were scored */
    const char *name, *plugin;
    const char *became;   /* NULL: no plugin does its work */
    const char *strategy; /* of NodeResourcesFit */
    int64_t default_weight;
};
enum { BH_PREDICATES = 19, BH_PRIORITIES = 11 };
extern const struct bh_predicate bh_predicates[BH_PREDICATES];
extern const struct bh_priority bh_priorities[BH_PRIORITIES];
extern const struct bh_field bh_policy_schema[];
#endif
