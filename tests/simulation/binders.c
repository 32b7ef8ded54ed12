/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/binders.c - what a binder's process runs
 */
#include "binder/binder.h"
#include "tests/simulation/simulation.h"

#include <stdio.h>

void binder_main(struct process *p)
{
    char instance[8];
    struct bh_err err = {""};
    const struct bh_binder_options o = {.runtime_dir = p->host->dir,
                                        .instance = instance,
                                        .metrics_address = "0",
                                        .api = &api_config[p->host->n]};

    snprintf(instance, sizeof(instance), "%d", p->index);
    if (bh_binder_run(&o, &err) < 0)
        say("cannot run: %s", err.msg);
}
