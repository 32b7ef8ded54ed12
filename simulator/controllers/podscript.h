/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/podscript.h - what a container's command does, without running it
 *
 * See podscript.c for what is understood.
 */
#ifndef BH_SIM_PODSCRIPT_H
#define BH_SIM_PODSCRIPT_H

#include "common/base/map.h"
#include "simulator/server/tree.h"

struct bh_ctl_program {
    int64_t run_ns, exit_code; /* run_ns INT64_MAX = for ever */
    int64_t term_ns;           /* how long it takes to end when it is told to */
    bool unknown;              /* nothing here understands it; it is taken to run for ever */
};

/* Who runs. */
struct bh_ctl_run {
    struct bh_arena *a;
    const struct bh_json *pod, *container; /* container: its env and volumeMounts */
    struct bh_map *files; /* key of a file in a volume -> id of the run that made it; NULL: none */
    const char *id;       /* of this run, among all that may share a volume */
};

/* What the command and args of a container, or of an exec handler, do. */
struct bh_ctl_program bh_ctl_program_of(const struct bh_ctl_run *run, const struct bh_json *what);
/* The pod is gone, and its own volumes with it. */
void bh_ctl_forget_files(struct bh_map *files, const char *pod_uid);
#endif
