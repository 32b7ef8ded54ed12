/* SPDX-License-Identifier: Apache-2.0
 *
 * front/peers.h - Berth's other processes, as their sockets <runtime>/<name>.http tell
 *
 * Watcher and scheduler are always expected; binders come and go with their sockets. A question is
 * bounded in time and in the size of its answer; a process that does not answer is absent.
 * Threads: the loop's.
 */
#ifndef BH_FRONT_PEERS_H
#define BH_FRONT_PEERS_H

#include "common/api/client.h"

#define BH_PEERS_MAX         64u
#define BH_PEER_ANSWER_BYTES ((size_t)16 << 20)

struct bh_peers;
struct bh_peer_answer {
    char name[64]; /* "watcher", "binder-1" */
    int code;      /* HTTP; 0 = no answer */
    char *body;    /* NULL without an answer */
    size_t n;
};
struct bh_peers *bh_peers_new(uv_loop_t *loop, const char *runtime_dir);
/* Questions that are under way are answered as "no answer", from the loop. NULL allowed. */
void bh_peers_free(struct bh_peers *p);

/* One question to one process. code 0 = no answer; body is borrowed during the call, which comes
 * from the loop, never from inside bh_peers_ask. body_in may be NULL. */
void bh_peers_ask(struct bh_peers *p, const char *name, const char *method, const char *path,
                  const char *body_in, uint64_t timeout_ns,
                  void (*done)(void *arg, int code, struct bh_str body), void *arg);
/* The same question to all of them at once; done is called when each has answered, or not. What is
 * in v is freed afterwards. */
void bh_peers_ask_all(struct bh_peers *p, const char *method, const char *path, const char *body_in,
                      uint64_t timeout_ns,
                      void (*done)(void *arg, struct bh_peer_answer *v, size_t n), void *arg);
#endif
