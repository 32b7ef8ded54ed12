/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/probe.h - USDT probes: a pod's way through the scheduler, for bpftrace, perf and gdb
 *
 * Each is one no-op instruction until a tracer puts a breakpoint there; arguments are worked out all
 * the same, so they are pointers and numbers that are at hand. Provider berth:
 *   pop        uid, its length, attempts before      the queue gave the pod out
 *   decide     uid, its length, feasible nodes       the decision is taken; 0: none fits
 *   assume     uid, its length, symbol of the node   counts on the node from now on
 *   send       uid, its length, kind of work         a binder has been given the item
 *   written    uid, its length, outcome              the binder's answer (enum Outcome of berth.proto)
 *   confirmed  uid, its length, symbol of the node   the watch shows an assumed pod on its node
 * A uid is text without a NUL to rely on. docs/debugging.md has an example.
 */
#ifndef BH_PROBE_H
#define BH_PROBE_H

#include "common/base/base.h"

#include <sys/sdt.h>

#define bh_probe_pod(point, uid, what)                                                             \
    do {                                                                                           \
        struct bh_str probe_uid = (uid);                                                           \
        DTRACE_PROBE3(berth, point, probe_uid.p, probe_uid.n, (long)(what));                       \
    } while (0)
#endif
