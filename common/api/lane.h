/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/lane.h - many small requests over few connections, cheaply (internal to common/api)
 *
 * A client that was made `lean` sends its short requests over lanes. libcurl still makes every
 * connection (names, proxies, Unix sockets, TLS, certificates: CURLOPT_CONNECT_ONLY) and moves its
 * bytes; what is said over it is a lane's: HTTP/2 (nghttp2) where ALPN offers it, HTTP/1.1
 * (http_parser) else, pipelined once the peer has shown that it keeps connections. So there is one
 * way to reach an API server, and two ways to talk: lanes for requests that are small and many,
 * libcurl for those that stream, wait for hours, or are few.
 *
 *   lanes.c     the set of a client: queue, turns, deadlines, which connection takes a request
 *   lane.c      one connection: made, read, written, lost
 *   lane_h2.c, lane_h1.c   what is said
 *
 * A turn: what was started since the last one is written together, at the end of the loop's turn.
 * Pace: while three requests or more are out (HTTP/1.1: 16), replies are read when about three more
 * will have come, judged by the time that requests take (16 ms at most, 20 when many are out);
 * `linger_ms` makes both sides wait that long, busy or not. Depth: over HTTP/1.1 no more is on
 * a connection than is answered within 250 ms, because what waits in the server no fence can stop;
 * more than is answered at once (5 ms) only when all have that much. Fence: a request is looked at
 * right before it is given to a connection, and only to one that has nothing left to write, so its
 * bytes leave then. Of a body that HTTP/2's windows hold back each part is looked at again: past
 * the fence the stream is reset before its end. What no fence reaches is bytes already in `out`
 * when the socket takes no more: they leave when it does, and not at all if the request's deadline
 * has broken the connection before.
 * Errors:     a request ends as BH_API_TRANSPORT; sent is false only when no connection had it, or
 *             the server said that it did not look at it (then it is first tried again on another
 *             connection).
 * Threads:    the loop's.
 */
#ifndef BH_API_LANE_H
#define BH_API_LANE_H

#include "common/api/api_int.h"

#define BH_LANE_DEPTH 64u /* HTTP/1.1: requests on the wire of one connection */

enum bh_lane_state {
    LANE_CONNECTING,
    LANE_OPEN,
    LANE_LEAVING, /* takes nothing new, finishes what it has */
    LANE_BROKEN   /* only to be closed */
};
struct bh_lane {
    TAILQ_ENTRY(bh_lane) link;
    struct bh_lanes *set;
    struct bh_api_pool *pool; /* whose multi handle has the connection */
    CURL *easy;
    struct bh_api_creds *creds; /* what easy is set up with */
    void *ssl;                  /* libcurl's, NULL = no TLS */
    struct bh_api_socket *socket;
    enum bh_lane_state state;
    const struct bh_lane_talk *talk;
    void *talker;               /* the talk's */
    struct bh_api_reqs flight;  /* given to it, oldest first */
    unsigned n_flight, room;    /* room: how many it takes at a time */
    bool serial;                /* replies come in the order of the requests */
    bool blocked;               /* out is not empty: the socket takes no more */
    uint64_t used_ns, heard_ns; /* last request given; last byte read */
    struct bh_buf out;
    size_t out_off;
    int lack;                    /* errno: what was missing for a socket, 0 = nothing */
    char error[CURL_ERROR_SIZE]; /* why it broke; libcurl writes here too */
};
TAILQ_HEAD(bh_lane_list, bh_lane);
struct bh_lane_talk {
    void (*open)(struct bh_lane *l);
    void (*close)(struct bh_lane *l);
    void (*submit)(struct bh_lane *l, struct bh_api_req *r); /* r is in flight already */
    int (*feed)(struct bh_lane *l, const char *p, size_t n); /* n 0 = the peer closed; < 0 broken */
    void (*drop)(struct bh_lane *l, struct bh_api_req *r);   /* its reply is not wanted any more */
    void (*pump)(struct bh_lane *l);                         /* what it has to say goes to out */
};
extern const struct bh_lane_talk bh_lane_h2, bh_lane_h1;

/* The set of one client. */
struct bh_lanes {
    struct bh_api_client *c;
    struct bh_lane_list lanes;
    struct bh_api_reqs queue, done; /* no connection has it yet; over, its callback is due */
    unsigned n_lanes, n_flight;
    unsigned depth;                  /* HTTP/1.1: requests on the wire of one connection */
    bool no_pipeline;                /* a peer has lost pipelined requests */
    bool paced;                      /* sockets are not looked at until the timer */
    uint64_t latency_ns, service_ns; /* of a request; of one among those ahead of it (averages) */
    uint64_t deadline_ns;            /* what the deadline timer is set to, UINT64_MAX = off */
    uint64_t linger_ms, retry_ns;    /* retry: no new connection before */
    unsigned n_handles;
    uv_idle_t soon;
    uv_timer_t pace, deadline;
    char in[64u << 10];
};

/* ---- lane.c */
void bh_lane_new(struct bh_lanes *s);
/* libcurl made the connection, or did not. */
void bh_lane_connected(struct bh_lane *l, CURLcode rc);
void bh_lane_read(struct bh_lane *l);  /* replies go to set->done */
void bh_lane_write(struct bh_lane *l); /* out, as much as the socket takes */
void bh_lane_on_socket(struct bh_lane *l, int events);
void bh_lane_watch(struct bh_lane *l); /* tells the loop what is waited for */
void bh_lane_break(struct bh_lane *l, const char *why);
void bh_lane_free(struct bh_lane *l); /* nothing may be in flight */
/* For the talks: a header of the reply to r; bytes of its body (false: too many); its end. */
void bh_lane_header(struct bh_api_req *r, const char *name, size_t name_n, const char *value,
                    size_t value_n);
bool bh_lane_body(struct bh_api_req *r, const char *p, size_t n);
void bh_lane_done(struct bh_lane *l, struct bh_api_req *r, const char *why); /* NULL: all of it */
void bh_lane_refused(struct bh_lane *l, struct bh_api_req *r); /* the server did not look at it */

/* ---- lanes.c */
void bh_lanes_turn_soon(struct bh_lanes *s);
/* From the list it is on to the end of another one, or to none (NULL); on.lane is NULL then. */
static inline void bh_lanes_move(struct bh_lanes *s, struct bh_api_req *r, struct bh_api_reqs *to)
{
    TAILQ_REMOVE(r->on.list, r, on.link);
    if (r->on.lane) {
        r->on.lane->n_flight--;
        s->n_flight--;
    }
    r->on.lane = NULL;
    r->on.list = to;
    if (to)
        TAILQ_INSERT_TAIL(to, r, on.link);
}
/* Ends what the caller did to lanes: callbacks, broken connections, pace. Inside c->busy. */
void bh_lanes_settle(struct bh_lanes *s);
#endif
