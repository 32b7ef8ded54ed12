/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/history.h - every committed change as a line of a file: for checkers, and to start from
 *
 * One JSON object a line, in the order of the commits:
 *   {"rv":N, "change":"ADDED|MODIFIED|DELETED",
 *    "boot_ns":N,              when, on CLOCK_BOOTTIME
 *    "received_ns":N,          when the request came in that did it; 0 = the server's controllers
 *    "verb":"create", "subresource":"binding", "user":"host-a", "agent":"berth-binder/...",
 *    "object":{...}}           whole, as it is now; as it was last when DELETED
 * A line is written before any watch is told of the change, so a file survives what happens to the
 * server's process; a last line without its end is dropped when the file is read again.
 *
 * The last line of each object together are the store. A server that is given a file which is there
 * begins with those objects, with the uids and versions they had, and appends. What it can not give
 * back is the past: watches from before get 410 Expired, as from an API server whose history was
 * compacted.
 */
#ifndef BH_SIM_HISTORY_H
#define BH_SIM_HISTORY_H

#include "simulator/server/sim_int.h"

/* Reads what path holds into the empty store (*ret_n lines; s->rv rises to the last one's), then
 * opens it for appending in s->history_fd. path NULL = no file. 0 or negative errno with err that
 * names the line. */
int bh_sim_history_open(struct bh_sim *s, const char *path, uint64_t *ret_n, struct bh_err *err);
/* Called for each commit, before watchers are told. */
void bh_sim_history_add(struct bh_sim *s, enum bh_sim_change c, const struct bh_sim_obj *obj);
#endif
