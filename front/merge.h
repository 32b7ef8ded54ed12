/* SPDX-License-Identifier: Apache-2.0
 *
 * front/merge.h - the metrics of several processes as if they were one's (Prometheus text 0.0.4)
 *
 * Series of the same name and labels become one: counters, histograms and most gauges are added,
 * process_start_time_seconds is the earliest, what is said about the whole (leader, versions,
 * feature gates, limits) the largest. HELP and TYPE come from the first that has them. What a
 * process uses (processor time, memory, open files, start) also stands alone, as
 * berth_process_*{process="watcher"}.
 * Input is foreign: a line that makes no sense is left out and counted. Families come out by name.
 * Threads: none; a merge belongs to its owner.
 */
#ifndef BH_FRONT_MERGE_H
#define BH_FRONT_MERGE_H

#include "common/base/buf.h"
#include "common/base/opt.h"
#include "front/labels.h"

struct bh_merge;
/* labels: borrowed; NULL = labels stay as they are. */
struct bh_merge *bh_merge_new(const struct bh_label_rules *labels);
void bh_merge_free(struct bh_merge *m);
/* Returns how many lines were left out. text need not end with a newline. */
size_t bh_merge_add(struct bh_merge *m, const char *process, const char *text, size_t n);
/* How often the rules said "unexpected" where something was counted: of counters and histograms
 * what they counted, of gauges each. */
double bh_merge_unexpected(const struct bh_merge *m);
/* disabled: full names of families that are left out (--disabled-metrics); may be NULL. As with
 * upstream, names that do not exist do not matter, and process_* and go_*, which are no metrics of
 * its own registry, stay. */
void bh_merge_write(const struct bh_merge *m, const struct bh_opt_list *disabled,
                    struct bh_buf *out);
/* Is there such a family, and is it one that can be left out? */
bool bh_merge_can_hide(const struct bh_merge *m, const char *family);
/* The value of the first series of that family. False: there is none. */
bool bh_merge_value(const struct bh_merge *m, const char *family, double *ret);
#endif
