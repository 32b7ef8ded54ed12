/* SPDX-License-Identifier: Apache-2.0
 *
 * common/control/ask.h - asking the running scheduler (scheduler/daemon/control.h)
 *
 * One question at a time; a call waits for its answer, at most BH_ASK_TIMEOUT_NS. Fails with:
 * negative errno and a text that says what to do: no scheduler there, permission denied, no answer.
 * Threads: one owner.
 */
#ifndef BH_CONTROL_ASK_H
#define BH_CONTROL_ASK_H

#include "common/bus/bus.h"
#include "common/data/json.h"

#define BH_ASK_TIMEOUT_NS UINT64_C(5000000000)

struct bh_ask {
    struct bh_bus *bus;
    struct bh_arena arena; /* of the newest answer */
    uint64_t id;
    uint64_t timeout_ns; /* 0 = BH_ASK_TIMEOUT_NS; after bh_ask_open */
};
/* Is there a socket that we may use? socket: "control"; program: its server, for the text. 0,
 * -ENOENT (it does not run), -EACCES. */
int bh_ask_probe(const char *runtime_dir, const char *socket, const char *program,
                 struct bh_err *err);
int bh_ask_open(struct bh_ask *k, const char *runtime_dir, struct bh_err *err);
void bh_ask_close(struct bh_ask *k); /* a zeroed one too */
/* q: what to ask; version and id are filled in. The answer lives until the next question. */
int bh_ask(struct bh_ask *k, Berth__ControlRequest *q, const Berth__ControlReply **ret,
           struct bh_err *err);
/* A question without parameters. */
int bh_ask_for(struct bh_ask *k, Berth__ControlWhat what, const Berth__ControlReply **ret,
               struct bh_err *err);
/* Every pod of the queue once, page by page, in no order. ns NULL = all; places: bits 1 << place,
 * 0 = all. fn may keep nothing. */
int bh_ask_queue(struct bh_ask *k, const char *ns, uint32_t places,
                 void (*fn)(void *arg, const Berth__QueuePod *p), void *arg, struct bh_err *err);

/* ---- pods.c: pods of the queue for people and programs --------------------------------------- */
const char *bh_queue_place_name(Berth__QueuePlace p); /* "active", "backoff", ... */
/* {namespace, name, uid, queue, ...} */
struct bh_json *bh_queue_pod_json(struct bh_arena *a, const Berth__QueuePod *p);
#endif
