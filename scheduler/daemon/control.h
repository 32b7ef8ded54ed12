/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/control.h - the running scheduler answers questions
 *
 * SOCKET  <runtime>/control.sock, a ROUTER (BH_BUS_SERVICE_BIND): ipc, mode 0660, in the runtime
 * directory, so any user that may open the other sockets may ask: root, the user of the service,
 * its group. Nothing can be changed through it, but that the scheduler reads its own file again.
 * MESSAGE One frame, one Envelope (proto/berth.proto) with `control`; the answer is one Envelope
 * with `control_reply` and the same id. Several questions may be under way; the order is kept.
 *   STATUS  what the scheduler waits for and how much it holds.
 *   CONFIG  the configuration in force, complete, and the path of the file it came from (empty:
 *           defaults). Private keys and certificates of extenders are left out.
 *   QUEUE   the pods it knows as pending, in no particular order, at most `limit` a page, with
 *           `cursor` for the next. `restart`: pods moved in memory since the page before, which the
 *           asker notices as cursor 0: it begins again. Messages are cut to 1,024 bytes.
 *   POD     one pod by uid, with the whole message; no pod in the answer: not pending here.
 *   RELOAD  reads the configuration's file and validates it; `error` says what is wrong with it, and
 *           nothing changed. Otherwise `restart`: the scheduler starts again with it right after the
 *           answer, in the same process, with a later epoch; false: the file says what is in force.
 * ERRORS  `error` in the answer. What is no question of this version is answered with id 0.
 * BOUNDS  A question has at most BH_BUS_SERVICE_BYTES (a longer one ends the connection), an
 * answer to QUEUE at most BH_BUS_CONTROL_PODS pods. A page looks at BH_CONTROL_SLOTS slots of the
 * queue's table and may be short, even empty, with a cursor.
 * COST    At most one question a turn of the duty cycle, and all of them together at most a
 * BH_CONTROL_SHARE-th of the thread's time; the rest waits in the socket. Nothing blocks: an asker
 * that does not read its answers (BH_BUS_SERVICE_QUEUE of them) loses them, one that is gone costs
 * nothing.
 *
 * Runs in:    the scheduler's duty cycle.
 * Upstream:   none (its cache dumper logs on SIGUSR2).
 */
#ifndef BH_SCHED_CONTROL_H
#define BH_SCHED_CONTROL_H

#include "common/base/base.h"

#define BH_CONTROL_SLOTS 4096u
#define BH_CONTROL_SHARE 10u

struct bh_sched_daemon;
struct bh_control;
struct bh_control_stats {
    uint64_t answered, malformed, dropped;
    uint64_t strangers; /* connections that were turned away */
    uint64_t busy_ns;   /* that all of it took */
};
int bh_control_open(struct bh_sched_daemon *d, struct bh_control **ret, struct bh_err *err);
void bh_control_close(struct bh_control *c);     /* NULL allowed */
unsigned bh_control_serve(struct bh_control *c); /* questions answered, 0 = nothing to do */
void bh_control_stats(const struct bh_control *c, struct bh_control_stats *ret);
#endif
