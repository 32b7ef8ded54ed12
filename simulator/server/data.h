/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/data.h - --data: the store survives the process
 *
 * Every commit is queued and written to an SQLite file (data_file.h) by a thread of its own, many
 * in one transaction, in the order of their versions, so that the file always shows a moment that
 * the store was in. What the end of the process can take away:
 *   by default   what was committed since the last batch began: batches begin BH_DATA_EVERY_NS
 *                apart, or when the one before is written. After a power cut also what the kernel
 *                had not yet put on the disk; the file itself stays whole.
 *   full         nothing that a client was answered: the answer to a write waits until its
 *                transaction is on the disk. Others may see the change before.
 * Versions: a block of BH_DATA_RESERVE is claimed in the file before any of it is used, and a
 * start goes on behind the block, so a version is never used twice, not even one that was lost.
 * The past is not kept: watches from before the start get 410 Expired.
 * When the file cannot be written (disk full, ...) the batch is tried again each second, and said
 * so in the log and in berth_simulator_data_errors_total. Meanwhile the server goes on in memory:
 * its controllers do as ever; clients' writes are refused with 503 at once with full, else when
 * BH_DATA_WAITING_MAX bytes wait. Replies that wait become 500. When the claimed versions are used
 * up nothing is written.
 */
#ifndef BH_SIM_DATA_H
#define BH_SIM_DATA_H

#include "simulator/server/req.h"

#define BH_DATA_EVERY_NS    20000000
#define BH_DATA_RETRY_NS    1000000000
#define BH_DATA_RESERVE     1000000
#define BH_DATA_WAITING_MAX ((size_t)256 << 20)

/* Reads what path holds into the empty store (*ret_n objects), sets s->rv, and keeps the file from
 * here on. path NULL = no file. 0 or negative errno with err. */
int bh_sim_data_open(struct bh_sim *s, const char *path, bool full, uint64_t *ret_n,
                     struct bh_err *err);
/* Writes what waits. Says in the log what could not be written. */
void bh_sim_data_close(struct bh_sim *s);
/* Called for each commit. */
void bh_sim_data_add(struct bh_sim *s, enum bh_sim_change c, struct bh_sim_obj *obj);
/* Whether writes are refused now; fills e with the 503. */
bool bh_sim_data_refuses(struct bh_sim *s, struct bh_sim_error *e);
/* true: the reply of r is kept until the file has what it tells. */
bool bh_sim_data_hold(struct bh_sim_req *r, int code, const char *content_type, const void *p,
                      size_t n);
#endif
