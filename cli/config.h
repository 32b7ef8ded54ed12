/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/config.h - `berth config`: what its two commands share
 */
#ifndef BH_CLI_CONFIG_H
#define BH_CLI_CONFIG_H

#include <stdio.h>

#include "scheduler/config/config.h"
#include "scheduler/explain/explain.h"

int bh_config_show(int argc, char **argv);

/* Reads a configuration; path "-" is standard input. As bh_sched_config_load_report. */
int bh_config_read_from(const char *path, struct bh_sched_config **ret, struct bh_config_report *r);
const char *bh_config_name_of(const char *path); /* "<stdin>" for "-" */
/* "FILE:LINE: warning: TEXT" or "FILE: note: ...", line by line. */
void bh_config_print(FILE *to, const char *path, const struct bh_config_findings *f, bool errors);
/* The configuration as columns for people. */
void bh_config_table(struct bh_buf *out, const struct bh_sched_config *c, bool colour);
#endif
