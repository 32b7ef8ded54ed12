/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/extender/ext_int.h - between the files of scheduler/extender
 *
 *   extender.c   life: from the configuration to connections; interest in a pod; metrics
 *   call.c       one exchange: request, redirects, the breaker, error texts, waiting
 *   encode.c     requests as JSON text
 *   decode.c     replies from JSON text
 *   objects.c    whole API objects, kept for extenders that want to see them
 *   verbs.c      filter, prioritize, preempt, bind
 */
#ifndef BH_EXT_INT_H
#define BH_EXT_INT_H

#include <sys/queue.h>

#include "common/api/client.h"
#include "common/base/map.h"
#include "scheduler/extender/extender.h"

enum bh_ext_trouble { /* label "reason" of berth_extender_errors_total */
                      BH_EXT_TIMED_OUT,
                      BH_EXT_UNREACHABLE, /* no reply: refused, lost, TLS, no such host */
                      BH_EXT_STATUS,      /* another status than 200 */
                      BH_EXT_RUBBISH, /* not the JSON that was asked for, or nodes and pods that do
                                         not exist */
                      BH_EXT_SAYS_NO, /* its reply has an Error */
                      BH_EXT_REST,    /* not asked: the breaker is open */
                      BH_EXT_OURS,    /* not asked: an object is missing, or the process ends */
                      BH_EXT_TROUBLES
};

/* ---- one extender ---------------------------------------------------------------------------- */
struct bh_ext_bind_job;
TAILQ_HEAD(bh_ext_bind_list, bh_ext_bind_job);
struct bh_ext_one {
    struct bh_ext *x;
    const struct bh_extender_config *c;
    char *name;                    /* url_prefix without password */
    struct bh_api_client *client;  /* NULL: see unusable */
    char *unusable;                /* why no request can be made: what Go's client would say */
    char *origin;                  /* "https://host:port" */
    char *path[BH_EXT_VERBS];      /* behind the origin */
    char *url[BH_EXT_VERBS];       /* whole, for texts */
    unsigned timeouts;             /* in a row */
    uint64_t rest_until_ns;        /* monotonic; the breaker is open until then */
    uint64_t logged_ns, unlogged;  /* one line now and then */
    unsigned binding;              /* on the wire */
    bool draining;                 /* binds that waited are being sent */
    struct bh_ext_bind_list binds; /* waiting for the wire */
    struct bh_cell *requests[BH_EXT_VERBS], *duration[BH_EXT_VERBS];
    struct bh_cell *errors[BH_EXT_VERBS][BH_EXT_TROUBLES];
};

/* ---- one exchange ---------------------------------------------------------------------------- */
struct bh_ext_call {
    LIST_ENTRY(bh_ext_call) link; /* while under way */
    struct bh_ext_one *e;
    enum bh_ext_verb verb;
    struct bh_str body; /* the caller's until done */
    /* error NULL: body is a reply with status 200. Both live during the call. */
    void (*done)(struct bh_ext_call *c, const char *error, struct bh_str body);
    /* private */
    struct bh_api_req *req;
    uint64_t start_ns, deadline_ns;
    unsigned hops;
    bool get; /* a redirect turned it into a GET */
};
LIST_HEAD(bh_ext_call_list, bh_ext_call);
/* The fields above `private` are set. done may come inside this call. */
void bh_ext_call_start(struct bh_ext_call *c);
/* Runs the loop until *pending is 0. */
void bh_ext_wait(struct bh_ext *x, const unsigned *pending);
void bh_ext_trouble(struct bh_ext_one *e, enum bh_ext_verb v, enum bh_ext_trouble t,
                    const char *error);

/* ---- all ------------------------------------------------------------------------------------- */
struct bh_ext_object {
    uint8_t *bytes; /* message; NULL once text is made (nodes) */
    size_t n;
    char *text; /* JSON, NULL = not made yet */
    size_t text_n;
    struct bh_buf whole; /* as an API server packs it; empty = not made yet */
    uint64_t interest;   /* pods */
    uint64_t feed;       /* when it was last put */
};
struct bh_ext {
    struct bh_ext_one *v;
    uint32_t n;
    uv_loop_t loop;
    uv_timer_t tick; /* runs while a cycle waits */
    bool (*waiting)(void *arg);
    void *waiting_arg;
    bool in_wait, abandon, closing;
    unsigned needs;
    bool whole;                    /* plugins see objects as messages */
    bool any_managed;              /* some extender is interested in some pods only */
    struct bh_ext_call_list calls; /* under way, binds too */
    struct bh_ext_bind_list bound; /* over, and the owner has not been told */
    struct bh_arena arena;         /* replies of the cycle */
    struct bh_arena decode;        /* one object on its way to text */
    struct bh_buf body[2];         /* requests: names or victims' uids, whole objects */
    struct bh_map nodes, pods;     /* struct bh_ext_object by name, by uid */
    uint64_t feed;
    struct bh_metric *m_requests, *m_duration, *m_errors;
};

/* objects.c; false: there is no such object. */
bool bh_ext_add_node(struct bh_ext *x, struct bh_buf *out, const char *name);
/* node: what an assumed pod's spec.nodeName is, "" = as the object says. */
bool bh_ext_add_pod(struct bh_ext *x, struct bh_buf *out, struct bh_str uid, const char *node);
void bh_ext_objects_fini(struct bh_ext *x);
/* verbs.c */
void bh_ext_tell_bound(struct bh_ext *x);
/* extender.c */
extern const char *const bh_ext_verb_names[BH_EXT_VERBS]; /* "filter" */
const char *bh_ext_verb_path(const struct bh_extender_config *c, enum bh_ext_verb v);
uint64_t bh_ext_interest_of(const struct bh_ext *x, const struct K8s__Pod *p);

/* encode.c: the body of a request into out. NULL, or which object is not known, in x's arena. */
const char *bh_ext_encode_args(struct bh_ext *x, struct bh_buf *out, bool names,
                               const struct bh_ext_pod *pod, const struct bh_ext_node *nodes,
                               uint32_t n);
const char *bh_ext_encode_victims(struct bh_ext *x, struct bh_buf *out, bool meta,
                                  const struct bh_ext_pod *pod, const struct bh_ext_victims *v,
                                  uint32_t n);
void bh_ext_encode_bind(struct bh_buf *out, const struct bh_ext_pod *pod, const char *node);

/* decode.c: 0, or -EINVAL with what Go's decoder would say about it; a reply's own Error is in
 * *ret_says then, cut to BH_EXT_TEXT_MAX. Everything in a. */
int bh_ext_decode_filter(struct bh_arena *a, struct bh_str body, bool names,
                         struct bh_ext_filtered *ret, const char **ret_says, struct bh_err *err);
int bh_ext_decode_scores(struct bh_arena *a, struct bh_str body, struct bh_ext_scores *ret,
                         struct bh_err *err);
int bh_ext_decode_victims(struct bh_arena *a, struct bh_str body, struct bh_ext_victims **ret_v,
                          uint32_t *ret_n, struct bh_err *err);
int bh_ext_decode_bound(struct bh_arena *a, struct bh_str body, const char **ret_says,
                        struct bh_err *err);
/* At most BH_EXT_TEXT_MAX bytes, whole characters; control characters become blanks. */
const char *bh_ext_tame(struct bh_arena *a, struct bh_str s);
#endif
