/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process.h - a plugin in a process of its own: what both sides agree on
 *
 * The scheduler starts berth-plugin-host with the opened file; that process loads it, and the scheduler
 * never does. One side works, the other waits, so nothing that they share changes under who reads it; but
 * for Score of many nodes, which is asked for before its turn: the scheduler does other things until it takes
 * the answer, and says nothing to that process meanwhile.
 *
 *   down  memory that the scheduler writes and the host maps read-only: the request
 *   up    memory that the host writes and the scheduler maps read-only: its answer, or a question in the
 *         middle of a call (upcall), whose answer is the next thing in `down`
 *   sock  a stream from host to scheduler for what plugins' own threads say at any time (log, wake,
 *         measured, metrics); its end is the end of either side
 *
 * Passing the word.                       down.seq: W scheduler, up.seq: W host
 * Speaker:  writes the message, then seq + 1 (seq_cst), then, if the other's `sleeps` is set, FUTEX_WAKE.
 * Listener: looks for a new seq for up to 50 us; then sets its own `sleeps` (seq_cst), looks whether seq is
 *           another one, FUTEX_WAIT for the value it saw, clears `sleeps`. Pairs with the speaker's two:
 *           either it sees the new seq, or the speaker sees that it sleeps. One that looked in vain sleeps at
 *           once the next time, and from then on for twice as many times as before, up to 255, until looking
 *           succeeds: a processor that falls idle wakes up later than a short call takes, but where every
 *           processor is busy, the other side waits for the one that the listener looks on (measured with 2
 *           and a load of 10, with looking each time: 9 us a call became 100 to 1000).
 * Bound:    the scheduler waits until --plugin-timeout after the call began, upcalls included; then, and
 *           when the socket ends, the host is killed and the callback is an Error.
 *
 * What the host may know: every message carries the symbols, nodes and objects that changed since the
 * instance's last one (feed), so that the plugin's accessors answer there, from a picture of the cluster
 * with the same rows and symbols. Pods of nodes, annotations and waiting pods are asked for.
 *
 * Trust: the host is not believed. Everything from `up` and the socket is copied before it is looked
 * at, with bounds; codes, texts, scores and rows go through adapter.c like those of every other plugin.
 *
 * Owns:    per file one connection, for the life of the process; the host process is made anew when it
 *          ended, and its instances with it.
 * Threads: calls of one file are one after the other, under its lock; a thread of the scheduler's reads
 *          the socket.
 */
#ifndef BH_NATIVE_PROCESS_H
#define BH_NATIVE_PROCESS_H

#include <signal.h>
#include <stdatomic.h>

#include "scheduler/native/native_int.h"

#define BH_PX_VERSION 1u
#define BH_PX_AREA_BYTES                                                                           \
    ((size_t)32 << 20) /* of each direction; pages that nobody touches cost nothing */
#define BH_PX_FEED_BYTES ((size_t)8 << 20) /* of a message may be feed; the rest goes before it */
#define BH_PX_ROWS_MAX   (1u << 20)
#define BH_PX_PLUGINS    16u
#define BH_PX_BLIND_MAX  255u

/* Descriptors of the host process. */
enum { BH_PX_FD_PLUGIN = 3, BH_PX_FD_DOWN, BH_PX_FD_UP, BH_PX_FD_SOCK, BH_PX_FD_END };

struct bh_px_area {
    _Atomic uint32_t seq;
    _Atomic uint32_t sleeps; /* its writer, which waits for the other area */
    uint64_t bytes;          /* of the message */
    uint32_t aside;          /* it stands in the second part: an upcall, or its answer */
    /* Its writer's own: how often it is going to sleep without looking first, and how often after the next time
     * that looking was in vain. */
    uint32_t blind, blind_next;
    char pad[36];
    char data[];
};
_Static_assert(sizeof(struct bh_px_area) == 64, "the message begins on a cache line");
/* The first part is a call's request or reply, the second an upcall's: it comes in the middle. */
#define BH_PX_MAIN_BYTES ((size_t)24 << 20)
#define BH_PX_SIDE_BYTES (BH_PX_AREA_BYTES - sizeof(struct bh_px_area) - BH_PX_MAIN_BYTES)

/* Signals that only another process or the kernel, out of memory, sends: the sandbox keeps a plugin from sending itself
 * one. A process that ends by one of them did not crash. */
static const int bh_px_external[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT};

enum bh_px_op { /* what the scheduler wants */
                BH_PX_HELLO,
                BH_PX_CHECK_ARGS,
                BH_PX_CREATE,
                BH_PX_DESTROY,
                BH_PX_SYNC, /* feed only */
                BH_PX_CALL
};
enum bh_px_fn { /* which callback, with BH_PX_CALL; a bit of bh_px_plugin.has */
                BH_PX_PRE_ENQUEUE,
                BH_PX_HINT,
                BH_PX_EPOCH,
                BH_PX_IDLE,
                BH_PX_PRE_FILTER,
                BH_PX_CHANGE_POD,
                BH_PX_CLONE_STATE,
                BH_PX_FILTER,
                BH_PX_FILTER_ROWS,
                BH_PX_FILTER_EACH, /* of many nodes what FILTER says of each: asked ahead */
                BH_PX_POST_FILTER,
                BH_PX_PRE_SCORE,
                BH_PX_SCORE,
                BH_PX_SCORE_ROWS,
                BH_PX_SCORE_EACH,
                BH_PX_NORMALIZE,
                BH_PX_RESERVE,
                BH_PX_UNRESERVE,
                BH_PX_PERMIT,
                BH_PX_PRE_BIND,
                BH_PX_BIND,
                BH_PX_POST_BIND,
                BH_PX_LESS,
                BH_PX_CHECKS, /* check_args */
                BH_PX_MAKES,  /* create */
                BH_PX_FREES,  /* destroy */
                BH_PX_TEND,
                BH_PX_FNS
};
struct bh_px_request { /* begins every message of the scheduler; then feed, then what fn takes */
    uint32_t op, fn;
    uint32_t plugin, instance;
    uint32_t hook, may; /* as of struct bh_native */
    int64_t now_ns;
    /* 0: none; numbers that the host gave, or the one before it: what is kept for a template outlives it.
     * CREATE: the first number is the one after filter_state, so that no two processes give the same. */
    uint64_t filter_state, score_state;
};
enum bh_px_up { /* upcalls */
                BH_PX_UP_INTERN,
                BH_PX_UP_PODS, /* of a node */
                BH_PX_UP_ANNOTATION,
                BH_PX_UP_ALLOW,
                BH_PX_UP_REJECT,
                BH_PX_UP_ACTIVATE,
                BH_PX_UP_EACH,
                BH_PX_UP_GET,
                BH_PX_UP_EMIT,
                BH_PX_UP_PATCH,
                BH_PX_UP_DEFINE,
                BH_PX_UP_WAKE_AT,
                BH_PX_UP_FACTS,     /* of a pod: what is kept with its annotations, and they */
                BH_PX_UP_NOMINATED, /* the next pod that has a node nominated */
                BH_PX_UP_RUN,       /* preemption->run(): until it is done, it is asked back */
                BH_PX_UP_RULED,     /* the answer to that */
                BH_PX_UPS
};
enum bh_px_rule { /* what it is asked back; a bit of those that there are */
                  BH_PX_RULE_DONE,
                  BH_PX_RULE_WAITS,
                  BH_PX_RULE_EVICTS,
                  BH_PX_RULE_BEGIN,
                  BH_PX_RULE_MOVED,
                  BH_PX_RULE_CHECK
};
struct bh_px_reply { /* begins every answer; then what fn returns, then the two texts */
    int32_t code;
    uint32_t by_pod; /* hint(): it asked who the pod is */
    uint64_t filter_state, score_state;
    uint64_t payload; /* bytes of what fn returns */
    uint32_t n_reason, n_broke;
};
#define BH_PX_REASONS 32u /* that FILTER_EACH tells */
struct bh_px_each {
    int32_t code;
    uint32_t reason; /* index of the texts behind; UINT32_MAX: to be asked for alone */
};

/* What plugins' threads say: a frame on the socket. */
enum bh_px_told { BH_PX_LOG, BH_PX_WAKE, BH_PX_MEASURED, BH_PX_ADD, BH_PX_SET, BH_PX_OBSERVE };
struct bh_px_frame {
    uint32_t told, instance;
    uint32_t number, n; /* severity or metric; bytes of text behind it */
    int64_t at_ns;
    uint64_t n_nodes;
    double value;
};
#define BH_PX_TEXT_MAX 1024u

/* ---- messages: everything on multiples of 8 --------------------------------------------------- */

struct bh_px_out {
    char *p;
    size_t n, cap;
    bool full; /* it did not fit: the message is not sent */
};
/* Room for n bytes, NULL when there is none. */
void *bh_px_room(struct bh_px_out *o, size_t n);
void bh_px_put(struct bh_px_out *o, const void *p, size_t n);
void bh_px_put_u64(struct bh_px_out *o, uint64_t v);
void bh_px_put_str(struct bh_px_out *o, const char *p, uint64_t n); /* length, then bytes */

struct bh_px_in {
    const char *p, *end;
    bool bad; /* it ended too early: everything from here on is 0 */
};
const void *bh_px_get(struct bh_px_in *in, size_t n); /* NULL: bad */
uint64_t bh_px_get_u64(struct bh_px_in *in);
struct berth_str bh_px_get_str(struct bh_px_in *in);
/* Rows, as runs: mostly a message names all of them. *ret_n, an array in the arena; NULL: bad. */
void bh_px_put_rows(struct bh_px_out *o, const uint32_t *rows, uint64_t n);
uint32_t *bh_px_get_rows(struct bh_px_in *in, struct bh_arena *a, uint64_t *ret_n);
bool bh_px_same_rows(struct bh_px_in in, const uint32_t *rows, uint64_t n);
/* Scores: a byte each where that is enough. false: bad. */
void bh_px_put_scores(struct bh_px_out *o, const int64_t *scores, uint64_t n);
bool bh_px_get_scores(struct bh_px_in *in, int64_t *ret, uint64_t n);

/* Listens: 0, or -ETIMEDOUT at deadline_ns (monotonic; 0: none) or when gone() says so (-EPIPE). */
int bh_px_listen(struct bh_px_area *mine, const struct bh_px_area *other, uint32_t seen,
                 uint64_t deadline_ns, bool (*gone)(void *arg), void *arg);
/* Says what stands in mine->data, or in its second part. */
void bh_px_say(struct bh_px_area *mine, const struct bh_px_area *other, size_t bytes, bool aside);
struct bh_px_out bh_px_main(struct bh_px_area *mine);
struct bh_px_out bh_px_side(struct bh_px_area *mine);
/* What the other one said; bad: more than there is room for. */
struct bh_px_in bh_px_heard(const struct bh_px_area *other, bool aside);

/* ---- the scheduler's side --------------------------------------------------------------------- */

struct bh_px; /* a file and the process that runs it */
/* self: the instance, whose callback this thread is in. Its Score of these rows is asked for before its turn, when
 * nobody waits; score_rows() takes the answer. */
void bh_px_score_soon(void *self, const uint32_t *rows, uint32_t n);
/* Starts the process for the open file and gives what its plugins are; -errno, -EINVAL: the file's
 * fault, as of loading it here. */
int bh_px_open(const struct bh_native_file *f, int fd, struct bh_native_plugin **ret,
               uint32_t *ret_n, struct bh_err *err);

/* Notices that the process ended since its last callback: pods that wait at Permit for its plugins fail. */
void bh_px_check(struct bh_px *x);

/* Ends the process, until somebody calls. */
void bh_px_rest(struct bh_px *x);

/* What of the cluster the instance's process has got so far. */
struct bh_px_fed {
    uint32_t symbols, n_rows;
    uint64_t log_pos, membership;
    bool rows; /* log_pos holds */
    uint64_t versions[BH_CUSTOM_KINDS];
    bool objects[BH_CUSTOM_KINDS];
    uint32_t next_row;     /* of a full one that goes over several messages */
    uint32_t next_changed; /* of the cache's changed rows, likewise */
    bool full;
};
/* Adds what is new; false: not all of it fitted. o is full: it is not to be said, and *fed is as before. */
bool bh_px_feed(struct bh_px_fed *fed, const struct bh_native *in, struct bh_px_out *o);
/* What a handle stands for, for one call. */
void bh_px_put_pod(struct bh_px_out *o, const struct bh_pod_info *pod);
void bh_px_put_node(struct bh_px_out *o, const struct bh_cache *cache,
                    const struct bh_node_info *ni);
void bh_px_put_pods(struct bh_px_out *o, const struct bh_node_info *ni);

/* ---- the host's side -------------------------------------------------------------------------- */

/* berth-plugin-host: does not return. */
int bh_px_host_main(int argc, char **argv);
/* From now on the process can do nothing but compute, and talk through what it has open. loading: and
 * open files for reading, and map code. -errno. */
int bh_px_sandbox(bool loading);

/* The cluster as the scheduler's feed told it: one per instance. */
struct bh_px_world;
struct bh_px_world *bh_px_world_new(struct bh_native *in);
void bh_px_world_free(struct bh_px_world *w);
void bh_px_world_take(struct bh_px_world *w, struct bh_px_in *m);
struct bh_cache *bh_px_world_cache(struct bh_px_world *w);
struct bh_objects *bh_px_world_objects(struct bh_px_world *w);
struct bh_symtab *bh_px_world_symbols(struct bh_px_world *w);
/* Handles live in the arena, or as long as the message. NULL: there is none. */
struct bh_pod_info *bh_px_world_pod(struct bh_px_in *m, struct bh_arena *a);
/* *ret_row: to be asked for by; BH_ROW_NONE: of a node that came with the message. */
const struct bh_node_info *bh_px_world_node(struct bh_px_world *w, struct bh_px_in *m,
                                            struct bh_arena *a);
/* Are the node's pods here? Else they have to be asked for and put. */
bool bh_px_world_has_pods(const struct bh_node_info *ni);
void bh_px_world_put_pods(struct bh_px_world *w, const struct bh_node_info *ni, struct bh_px_in *m,
                          struct bh_arena *a);
#endif
