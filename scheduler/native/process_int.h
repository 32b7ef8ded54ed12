/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process_int.h - what the files of the scheduler's side of process.h share
 */
#ifndef BH_NATIVE_PROCESS_INT_H
#define BH_NATIVE_PROCESS_INT_H

#include <pthread.h>
#include <sys/types.h>

#include "scheduler/native/process.h"

/* What an instance may add to the symbol table, which is never freed: bytes of texts, and of each symbol. Its
 * process is ended when it wants more. */
#define BH_PX_INTERN_BYTES  ((size_t)4 << 20)
#define BH_PX_SYMBOL_BYTES  64u
#define BH_PX_LOGS_A_SECOND 64u /* lines of an instance's threads; the rest is dropped */
#define BH_PX_HEARD_KEPT    ((size_t)4 << 20) /* of the copy of a message, for the next one */

/* Where the reference path goes through the nodes one by one: after the second all others are asked about at
 * once, and what was said is kept for as long as nothing that it depends on is another. */
struct bh_px_ahead {
    uint64_t key;      /* of everything that the answers depend on; 0: none */
    const void *state; /* of these PreFilter's: a copy may change, this one may not */
    bool there;        /* else one node was asked about */
    bool failed;       /* it cannot be */
    uint32_t cap;      /* rows */
    struct bh_px_each *each;
    int64_t *scores;
    const char *reason[BH_PX_REASONS];
    uint32_t n_reasons;
    struct bh_arena texts;
};

struct bh_px_instance {
    struct bh_px_ahead filters, scores;
    struct bh_px *x;
    struct bh_native *in;
    uint32_t id, plugin; /* index in the file */
    char *args;          /* JSON; NULL: none */
    uint64_t generation; /* of the process that has it; 0: none */
    struct bh_px_fed fed;
    const struct bh_node_info *given; /* of the call: the node that came with it */
    size_t interned_bytes;
    uint64_t logs_second; /* the reader's: of the monotonic clock; in it came n_logs */
    uint32_t n_logs;
    bool failed; /* ... the process ended in this pod's attempt: it is not started again for that */
    uint64_t failed_at;
    char failure[512], broke[256];
    struct bh_px_instance *next;
};
struct bh_px {
    pthread_mutex_t lock; /* a call */
    const struct bh_native_file *f;
    int fd;
    struct bh_native_plugin *plugin[BH_PX_PLUGINS];
    uint32_t n_plugins;
    _Atomic uint32_t n_told; /* of them the reader's thread knows */
    uint64_t written_s;      /* the reader's: when it wrote down how they are */
    /* ---- the process ---- */
    pid_t pid; /* 0: there is none */
    pid_t parent;
    int down_fd, up_fd, sock;
    struct bh_px_area *down, *up;
    uint32_t seen; /* up->seq that was heard last */
    /* Whose Score is being answered before its turn, NULL: nobody's; what about, and for which rows (in `down`). */
    struct bh_px_instance *asked;
    uint64_t asked_key;
    struct bh_px_in asked_rows;
    uint64_t generation;
    pthread_t reader;
    atomic_bool closed;  /* the process's end of the socket is closed: it has ended, or will soon */
    struct bh_buf heard; /* a copy of what was said */
    uint64_t until_ns;   /* the deadline of the call that goes on */
    int failed_rc;       /* why a question within an upcall was not answered; 0: it was */
    /* ---- instances ---- */
    pthread_mutex_t list; /* the reader's thread looks, too */
    struct bh_px_instance *first;
    uint32_t last_id;
};

/* Starts the process and says hello; what it answered is in x->heard. 0, -errno, -EINVAL. */
int bh_px_start(struct bh_px *x, struct bh_px_in *ret, struct bh_err *err);
bool bh_px_is_gone(void *x); /* it ended by itself */
/* Ends it; pods that wait at Permit for its plugins fail. text: how it ended, of a process that was to go on; rc: why
 * it is ended, -EPIPE: it has ended already. false: another process or the kernel ended it, which is no crash of the
 * plugin's. */
bool bh_px_end(struct bh_px *x, int rc, char *text, size_t n);
/* Says what is in o and waits; upcalls are for i (NULL: there are none). *ret: the answer, behind *r. */
int bh_px_transact(struct bh_px *x, struct bh_px_instance *i, const struct bh_px_out *o,
                   uint64_t deadline_ns, struct bh_px_reply *r, struct bh_px_in *ret);
/* The same for what was said before. */
int bh_px_await(struct bh_px *x, struct bh_px_instance *i, uint64_t deadline_ns,
                struct bh_px_reply *r, struct bh_px_in *ret);
/* Answers an upcall. false: it is none that there is. */
bool bh_px_serve(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o);
/* Copies what the other side said. 0, -EBADMSG. */
int bh_px_hear(struct bh_px *x, bool aside, struct bh_px_in *ret);
/* process_preempt.c: the upcall BH_PX_UP_RUN. false: the process did not answer as it has to. */
bool bh_px_serve_run(struct bh_px_instance *i, struct bh_px_in *m, struct bh_px_out *o);
/* A frame from the socket. */
void bh_px_told(struct bh_px *x, const struct bh_px_frame *f, const char *text);

/* ---- process_calls.c: callbacks that cross ---------------------------------------------------- */
/* A plugin of the file, as its process describes it; -EINVAL: what is wrong. */
int bh_px_adopt(struct bh_px *x, struct bh_px_in *m, struct bh_native_plugin **ret,
                struct bh_err *err);
#endif
