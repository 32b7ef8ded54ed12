/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/kss.h - kube-scheduler-simulator's paths (docs/simulator-api.md section 1)
 */
#ifndef BH_CONSOLE_KSS_H
#define BH_CONSOLE_KSS_H

#include "simulator/console/console.h"

bh_console_fn bh_console_config_get, bh_console_config_post; /* config.c */
bh_console_fn bh_console_reset;                              /* reset.c */
bh_console_fn bh_console_export;                             /* export.c */
bh_console_fn bh_console_import;                             /* import.c */
bh_console_fn bh_console_list_watch;                         /* stream.c */

/* ---- config.c, in a worker thread -------------------------------------------------------------
 * The scheduler of a runtime directory. */
/* The configuration in force, as JSON text (malloc). -ENOENT: nobody runs there. */
int bh_console_config_running(const char *runtime_dir, bool yaml, char **ret, struct bh_err *err);
struct bh_console_place { /* what is wrong */
    unsigned line;        /* 0 = unknown */
    char field[160];      /* "" = none in particular */
};
/* Validates text, writes the scheduler's file, makes the scheduler take it, waits until it runs. A
 * configuration that does not get into force is taken back. 0; -EINVAL with *ret: not valid;
 * -EBUSY: another change is under way; other -errno: no scheduler, or it did not come back. */
int bh_console_config_apply(const char *runtime_dir, const char *text, size_t n,
                            struct bh_console_place *ret, struct bh_err *err);

/* ---- reset.c, in the loop ---------------------------------------------------------------------
 */
/* Takes out what people made: everything but what a cluster has from its start. Returns how many.
 */
size_t bh_console_wipe(struct bh_sim *s);
/* Part of a fresh cluster, not of what people made. */
bool bh_console_is_system(const struct bh_sim_type *t, const char *ns, const char *name);
void bh_console_baseline_start(struct bh_console *c);
void bh_console_baseline_stop(struct bh_console *c);

/* ---- import.c */
void bh_console_import_start(struct bh_console *c);
void bh_console_import_stop(struct bh_console *c);
#endif
