/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/decisions.h - recorded decisions (scheduler/decisions/decisions.h) over HTTP,
 * as rows of the stream, and as annotations on pods
 *
 * The file is that of --decisions. Questions are answered in worker threads, each with a reader of
 * its own that is kept for the next one. The stream's rows are read in the loop, a few hundred at a
 * time, once for all streams.
 */
#ifndef BH_CONSOLE_DECISIONS_H
#define BH_CONSOLE_DECISIONS_H

#include "simulator/console/console.h"

bh_console_fn bh_console_decisions, bh_console_pod_decisions;
/* The member "recording" of the overview. Some 50 us. */
struct bh_json *bh_console_recording(struct bh_console *c, struct bh_arena *a);

/* Readers outlive the jobs that use them: started before work.c, stopped behind it. */
void bh_console_decisions_start(struct bh_console *c);
void bh_console_decisions_stop(struct bh_console *c);
/* Rows of the stream. */
void bh_console_decision_rows_start(struct bh_console *c);
void bh_console_decision_rows_stop(struct bh_console *c);

/* annotate.c: writes annotations of every attempt onto its pod, if --annotate-decisions says so */
void bh_console_annotator_start(struct bh_console *c);
void bh_console_annotator_stop(struct bh_console *c);
#endif
