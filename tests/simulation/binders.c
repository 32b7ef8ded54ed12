/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/binders.c - what a binder's process runs
 */
#include "binder/binder.h"
#include "tests/simulation/simulation.h"

#include <stdio.h>

void binder_main(struct process *p)
{
    const struct host *served = host_served(p);
    char instance[8], endpoint[64];
    struct bh_err err = {""};
    const struct bh_binder_options o = {
        .runtime_dir = p->host->dir,
        .instance = instance,
        .metrics_address = "0",
        .plugin_writes = "pods,configmaps",
        .scheduler_endpoint = world.tcp && p->index == (int)world.n_binders - 1 ? endpoint : NULL,
        .api = &api_config[served->n]};

    snprintf(endpoint, sizeof(endpoint), "tcp://%s:10270", served->name);
    snprintf(instance, sizeof(instance), "%d", p->index);
    if (bh_binder_run(&o, &err) < 0)
        say("cannot run: %s", err.msg);
}
