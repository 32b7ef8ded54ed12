/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/data_file.h - the store as an SQLite file: opening, reading, writing (used by data.c)
 *
 * Tables: object(resource, ns, name, rv, json), one row per object, resource as "pods" or
 * "deployments.apps"; meta(key, value) with 'rv_limit': no revision above it was ever given away.
 * application_id is BH_DATA_APP_ID, user_version BH_DATA_SCHEMA. The journal is a WAL, the file is
 * locked for as long as it is open, and readable by its owner only (there are Secrets in it).
 * Threads: one at a time.
 */
#ifndef BH_SIM_DATA_FILE_H
#define BH_SIM_DATA_FILE_H

#include "simulator/server/sim.h"

#define BH_DATA_APP_ID 0x42727468 /* "Brth" */
#define BH_DATA_SCHEMA 1

struct bh_data_file;
/* Opens or makes it. full: a transaction is on the disk, not only in the kernel, when it returns.
 * -EBUSY: another process has it; -EINVAL: damaged, or no file of ours, or of a newer Berth. */
int bh_data_file_open(const char *path, bool full, struct bh_data_file **ret, struct bh_err *err);
void bh_data_file_close(struct bh_data_file *f); /* NULL allowed */
/* 0 in a new file. */
uint64_t bh_data_file_limit(const struct bh_data_file *f);
/* Calls fn for every object, CustomResourceDefinitions first; a negative result ends it. */
typedef int bh_data_row_fn(void *arg, const char *json, size_t n, uint64_t rv, struct bh_err *err);
int bh_data_file_load(struct bh_data_file *f, bh_data_row_fn *fn, void *arg, struct bh_err *err);

struct bh_data_change {
    struct bh_sim_obj *obj; /* referenced by the caller; read only */
    bool gone;
};
/* All n changes in order and the limit, or nothing of it: one transaction. */
int bh_data_file_write(struct bh_data_file *f, const struct bh_data_change *v, size_t n,
                       uint64_t limit, struct bh_err *err);
#endif
