/* SPDX-License-Identifier: Apache-2.0
 *
 * common/flags/feature_gates.h - every feature gate that kube-scheduler v1.36 knows
 *
 * A gate's default and stage belong to a minor version, because --emulated-version chooses among
 * them. The whole of upstream's list is known, not only what a scheduler asks for: operators give
 * one list to all their components.
 * Upstream: component-base/{featuregate,compatibility}, pkg/features, apiserver/pkg/features,
 * client-go/features, component-base/{logs,metrics,zpages}.
 * Threads: written by main at the start, read by any after that.
 */
#ifndef BH_FEATURE_GATES_H
#define BH_FEATURE_GATES_H

#include "common/base/buf.h"
#include "common/base/opt.h"

#define BH_KUBERNETES_VERSION  "v1.36" /* whose behaviour Berth has */
#define BH_FEATURE_GATES_MAX   256
#define BH_FEATURE_MINOR_FLOOR 33 /* oldest that can be emulated; the newest is ours */
#define BH_FEATURE_MINOR       36

/* Joined as upstream's aggregate: [a, b], the same only once. */
struct bh_flag_errors {
    struct bh_buf text;
    unsigned n;
};
void bh_flag_err(struct bh_flag_errors *e, const char *fmt, ...) BH_PRINTF(2, 3);
int bh_flag_errors_close(struct bh_flag_errors *e, struct bh_err *err); /* -EINVAL or 0 */

/* Zero is not a valid state: start with bh_feature_gates_init. */
struct bh_feature_gates {
    int emulated, min_compatibility;  /* minor versions of 1.x, possibly out of range */
    int8_t set[BH_FEATURE_GATES_MAX]; /* by row: -1 = not given, else the value in force */
    bool given[BH_FEATURE_GATES_MAX]; /* named in --feature-gates itself */
};
void bh_feature_gates_init(struct bh_feature_gates *g); /* defaults of BH_FEATURE_MINOR */
/* What --emulated-version, --min-compatibility-version and --feature-gates say, checked: what
 * cannot be read, is unknown, locked, or misses what it depends on. Upstream's texts. */
int bh_feature_gates_set(struct bh_feature_gates *g, const struct bh_opt_list *gates,
                         const struct bh_opt_list *emulated,
                         const struct bh_opt_list *min_compatibility, struct bh_err *err);
/* From defaults and "A=true,B=false" alone; text NULL or "": defaults. */
int bh_feature_gates_parse(struct bh_feature_gates *g, const char *text, struct bh_err *err);
/* The range of the two versions, for upstream's Validate: texts are added, one a call of add. */
void bh_feature_gates_check_versions(const struct bh_feature_gates *g,
                                     void (*add)(void *arg, const char *text), void *arg);
/* The name must be one of the list (asserted). */
bool bh_feature_enabled(const struct bh_feature_gates *g, const char *name);
/* All that exist in the emulated version, sorted by name, AllAlpha and AllBeta included. stage as
 * in kubernetes_feature_enabled: "ALPHA", "BETA", "" (GA), "DEPRECATED". differs: the value is not
 * the default of BH_FEATURE_MINOR. */
struct bh_feature_state {
    const char *name, *stage;
    bool enabled, differs, given;
};
void bh_feature_gates_each(const struct bh_feature_gates *g,
                           void (*fn)(void *arg, const struct bh_feature_state *s), void *arg);

/* The list itself (feature_gates.data), from the first bh_feature_gates_init on. states: a letter for
 * each minor version from the floor on; needs: names, one blank between, NULL = none. */
struct bh_feature_row {
    const char *name, *states, *needs;
};
extern const struct bh_feature_row *const bh_feature_rows;
extern size_t bh_n_feature_rows;
#endif
