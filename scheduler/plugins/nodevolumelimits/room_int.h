/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/room_int.h - between room.c (rows) and room_sources.c
 */
#ifndef BH_ROOM_INT_H
#define BH_ROOM_INT_H

#include "scheduler/plugins/heads.h"
#include "scheduler/plugins/nodevolumelimits/room.h"

#define BH_NO_SOURCE BH_HEADS_END

/* The row has to be worked out again. */
void bh_room_touch(struct bh_room *r, uint32_t row);

/* The source of a claim, one use of it by the row more. Its key in by_name is its place. */
uint32_t bh_room_use(struct bh_call *c, struct bh_room *r, uint32_t row, bh_sym ns, bh_sym claim,
                     bool owned);
void bh_room_unuse(struct bh_room *r, uint32_t source);
/* A claim, volume or attachment changed: touches the rows that something else came out for. */
void bh_room_follow(struct bh_call *c, struct bh_room *r, const struct bh_object_entry *change);
/* Attachments that came, or came anew, at or after a position of the objects' log. */
void bh_room_read_attachments(struct bh_call *c, struct bh_room *r, uint64_t since);
void bh_room_refresh_all(struct bh_call *c, struct bh_room *r);
void bh_room_sources_fini(struct bh_room *r);
#endif
