/* SPDX-License-Identifier: Apache-2.0
 *
 * front/labels.h - --allow-metric-labels: which values a metric's label may have
 *
 * What is not on a label's list becomes "unexpected". Series that are the same then are added up by
 * merge.c, which applies the rules; upstream's come to the same.
 * Threads:    none.
 * Upstream:   component-base/metrics/options.go.
 */
#ifndef BH_FRONT_LABELS_H
#define BH_FRONT_LABELS_H

#include "common/base/buf.h"
#include "common/base/opt.h"

struct bh_label_rules;
/* pairs: each "metric,label=value,value", or several in double quotes, checked by kube_flags; a
 * later one of the same metric and label counts. Without pairs: the file manifest (YAML, a map from
 * "metric,label" to "value,value", as such or as its member allowListMapping); "" = none. As
 * upstream, a manifest that cannot be used is an error in the log and nothing more. NULL: no rules.
 */
struct bh_label_rules *bh_label_rules_new(const struct bh_opt_list *pairs, const char *manifest);
void bh_label_rules_free(struct bh_label_rules *r);
/* key: a series, name{label="value",...}, of the family of that name. Returns how many values were
 * replaced; when any, out becomes the new key. r may be NULL. */
unsigned bh_label_rules_apply(const struct bh_label_rules *r, const char *family, struct bh_str key,
                              struct bh_buf *out);
#endif
