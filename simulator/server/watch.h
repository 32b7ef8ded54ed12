/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/watch.h - streams of changes, seen from the store
 */
#ifndef BH_SIM_WATCH_H
#define BH_SIM_WATCH_H

#include "simulator/server/sim_int.h"

/* Sends one commit to all watches of b. tree: the new object's tree when at hand. */
void bh_sim_watch_dispatch(struct bh_sim *s, struct bh_sim_bucket *b, const struct bh_sim_event *ev,
                           const struct bh_json *tree);
/* A BOOKMARK with the present revision to every watch that wants them. */
void bh_sim_watch_bookmarks(struct bh_sim *s);
/* Ends all watches of b: its type is no longer served. */
void bh_sim_watch_end_all(struct bh_sim_bucket *b);

#endif
