/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/api_int.h - the client's parts, between the files of common/api
 *
 *   client.c     life of the client and its requests: start, wait, retry, finish, cancel
 *   transfer.c   one request as a libcurl easy handle
 *   pool.c       libcurl multi handles on libuv: sockets, timers, connection limits
 *   lane*.c      small requests without libcurl's cost for each (lane.h)
 *   creds.c      certificates and tokens, and their rotation
 *   exec.c       credentials that a command prints
 *   headers.c    shared header lists
 *   limit.c      requests a second, also of several processes
 */
#ifndef BH_API_INT_H
#define BH_API_INT_H

#include "common/api/client.h"
#include "common/data/json.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <sys/queue.h>

/* ---- certificates ---------------------------------------------------------------------------- */
/* PEM texts of one moment; immutable, shared by the easy handles and pools that were set up with
 * them (libcurl borrows the bytes). */
struct bh_api_creds {
    unsigned refs;
    char *ca, *cert, *key; /* NULL = none given */
};
struct bh_api_creds *bh_api_creds_ref(struct bh_api_creds *k);
void bh_api_creds_unref(struct bh_api_creds *k);
int bh_api_creds_load(const struct bh_api_config *cfg, struct bh_api_creds **ret,
                      struct bh_err *err);
static inline bool bh_api_same(const char *a, const char *b) /* NULL is like NULL only */
{
    return a == b || (a && b && bh_streq(a, b));
}
bool bh_api_creds_equal(const struct bh_api_creds *a, const struct bh_api_creds *b);

/* ---- kubeconfig's users[].user.exec and as* (kubeconfig_exec.c) ------------------------------ */
int bh_kubeconfig_exec(const struct bh_json *user, const char *path, struct bh_api_config *c,
                       struct bh_err *err);
void bh_kubeconfig_exec_cluster(const struct bh_json *cluster, struct bh_api_config *c);
int bh_kubeconfig_impersonation(const struct bh_json *user, struct bh_api_config *c,
                                struct bh_err *err);
char *bh_kubeconfig_beside(const char *path, const char *s); /* s, relative to the file at path */
struct bh_exec_config *bh_exec_config_copy(const struct bh_exec_config *x); /* NULL stays NULL */
void bh_exec_config_free(struct bh_exec_config *x);
size_t bh_texts_count(char *const *v); /* NULL-terminated lists */
char **bh_texts_copy(char **v);
void bh_texts_free(char **v); /* wipes: they may hold secrets */

/* ---- a command's credentials (exec.c) -------------------------------------------------------- */
#define BH_API_EXEC_TIMEOUT_NS (UINT64_C(60) * 1000000000)
struct bh_api_exec {
    struct bh_api_client *c;
    pid_t pid;
    uv_signal_t ended; /* SIGCHLD */
    uv_pipe_t out;
    uv_timer_t timer; /* kills a command that hangs */
    struct bh_buf text;
    bool running, exited, ready;
    unsigned open; /* handles of this run that are not closed yet */
    int status, signal;
    int64_t expires_s;     /* unix time, INT64_MAX = never */
    uint64_t last_run_ns;  /* monotonic; 0 = never */
    struct bh_err failure; /* of the last run, msg "" = it went well */
};
/* True: there are credentials (or no command is configured). False: a command is running, requests
 * wait (BH_REQ_HELD); or, with failure.msg set and none running, they fail with it. */
bool bh_api_exec_ready(struct bh_api_client *c);
void bh_api_exec_expire(struct bh_api_client *c); /* the server refused them */
void bh_api_exec_close(struct bh_api_client *c);  /* asynchronous; counts in c->open_handles */

/* ---- header lists ---------------------------------------------------------------------------- */
/* One per (content type, accept, extra) and token. libcurl borrows the list while a request
 * runs. */
struct bh_api_headers {
    LIST_ENTRY(bh_api_headers) link;
    unsigned refs; /* running requests, plus one while in the cache */
    char *content_type, *accept, *extra;
    struct curl_slist *list;
    /* The same for lanes, without the lines that only tell libcurl something. */
    struct bh_api_header {
        const char *line, *value; /* borrowed from list; value: inside line */
        char *name;               /* in lower case */
        size_t line_n, name_n, value_n;
    } * fields;
    size_t n_fields;
};
LIST_HEAD(bh_api_headers_list, bh_api_headers);
struct bh_api_headers *bh_api_headers_get(struct bh_api_client *c, const struct bh_api_call *call);
void bh_api_headers_unref(struct bh_api_headers *h);
void bh_api_headers_flush(struct bh_api_client *c); /* the token changed */

/* ---- pools ----------------------------------------------------------------------------------- */
/* One multi handle with its connections. Watches and big lists have their own, so that they never
 * delay writes. A pool that new certificates retired only finishes what runs on it. */
struct bh_api_pool {
    TAILQ_ENTRY(bh_api_pool) link;
    struct bh_api_client *c;
    CURLM *multi;
    uv_timer_t timer;
    struct bh_api_creds *creds;
    bool long_lived, retired;
    bool http1, known; /* version learnt from a reply, or plaintext */
    bool for_lanes;    /* its transfers make connections and nothing else */
    unsigned in_flight;
    long max_host; /* as told to libcurl */
};
TAILQ_HEAD(bh_api_pool_list, bh_api_pool);
struct bh_lane;
/* Streams with a connection each have a pool of their own, too: libcurl notes for each host, not
 * for each connection, whether it speaks HTTP/2, and they do not. */
enum { BH_API_POOL_SHORT, BH_API_POOL_LONG, BH_API_POOL_ALONE, BH_API_POOLS };
struct bh_api_pool *bh_api_pool_new(struct bh_api_client *c, bool long_lived);
void bh_api_pool_add(struct bh_api_pool *p, struct bh_api_req *r);
void bh_api_pool_remove(struct bh_api_pool *p, struct bh_api_req *r);
void bh_api_pool_add_easy(struct bh_api_pool *p, CURL *easy); /* what both do to libcurl */
void bh_api_pool_remove_easy(struct bh_api_pool *p, CURL *easy);
void bh_api_pool_learn(struct bh_api_pool *p, CURL *easy); /* HTTP version, after a reply */
void bh_api_pool_free(struct bh_api_pool *p); /* asynchronous; counts in c->open_handles */

/* One poll handle per descriptor number, kept stopped between uses: libcurl reports every idle
 * connection as removed, and making a new handle each time costs system calls. */
struct bh_api_socket {
    uv_poll_t poll;
    struct bh_api_client *c;
    struct bh_api_pool *pool; /* NULL while stopped */
    int events;               /* what is waited for */
    unsigned company_ms;      /* of the only request on it (client.h) */
    bool held;                /* not polled: the client's timer looks at it */
    uint64_t looked_ns;
    struct bh_lane *lane; /* whose connection it is, once it is made */
    int fd;
};
struct bh_api_socket *bh_api_socket_for(struct bh_api_client *c, curl_socket_t fd);
void bh_api_socket_watch(struct bh_api_socket *s, int uv_events); /* 0 = not at all */
void bh_api_sockets_close(struct bh_api_client *c); /* asynchronous; counts in c->open_handles */

/* ---- requests -------------------------------------------------------------------------------- */
struct bh_lanes;
TAILQ_HEAD(bh_api_reqs, bh_api_req);
enum bh_api_req_state {
    BH_REQ_FREE,
    BH_REQ_WAITING, /* for a token of the rate limiter */
    BH_REQ_HELD,    /* until a command has printed credentials */
    BH_REQ_DELAYED, /* between two attempts */
    BH_REQ_QUEUED,  /* started from inside a libcurl callback */
    BH_REQ_RUNNING,
    BH_REQ_TIMED, /* running, and ended when no byte comes for long */
    BH_REQ_CANCELED,
    BH_REQ_STATES
};
struct bh_api_req {
    TAILQ_ENTRY(bh_api_req) link;
    struct bh_api_client *c;
    struct bh_api_pool *pool; /* while RUNNING by libcurl */
    struct {                  /* over lanes (lane.h) */
        TAILQ_ENTRY(bh_api_req) link;
        bool lean;                /* this attempt goes, or went, over lanes */
        struct bh_api_reqs *list; /* the one it is on; NULL = none (any more) */
        struct bh_lane *lane;     /* NULL = none has it */
        const char *why;          /* done: what went wrong, NULL = nothing */
        int32_t stream;
        unsigned refused, ahead; /* ahead: on its connection when it was given, itself included */
        size_t body_off;
        uint64_t given_ns;
    } on;
    CURL *easy;
    struct bh_api_creds *easy_creds; /* what easy is set up with */
    struct bh_api_headers *headers;
    enum bh_api_req_state state;
    struct bh_api_call call; /* strings: url, method, and headers own them */
    const char *method;      /* interned */
    const char *easy_custom; /* CUSTOMREQUEST that easy is set up with */
    struct bh_buf url, request_body, body;
    char content_type[128];
    int code, retry_after_s;
    int curl_code; /* of a transfer that failed */
    int os_errno;  /* lanes: of a connection that could not be made */
    int lack;      /* errno: what was missing for a socket, 0 = nothing */
    unsigned attempts;
    bool head_done, too_large, stopped, sent;
    bool fenced; /* its time was over before it, or all of it, could be sent */
    uint64_t start_ns, deadline_ns, last_byte_ns, due_ns; /* monotonic; deadline 0 = none */
    char error[CURL_ERROR_SIZE];
};
TAILQ_HEAD(bh_api_req_list, bh_api_req);
void bh_api_transfer_prepare(struct bh_api_req *r); /* sets r->easy up for the next attempt */
void bh_api_transfer_fini(struct bh_api_req *r);
void bh_api_transfer_reset(struct bh_api_req *r); /* forgets the last attempt's reply */
/* How connections are made: trust, names, proxies, timeouts. lack: set when a socket cannot be had
 * because descriptors or memory are used up; lives as long as e. */
void bh_api_set_connection(CURL *e, const struct bh_api_client *c, const struct bh_api_creds *k,
                           int *lack);
/* libcurl says "could not connect" or "could not resolve" of an attempt that failed for lack of
 * descriptors or memory. True: text tells of that, and *lack is the errno. */
bool bh_api_tell_lack(CURLcode rc, int *lack, char text[CURL_ERROR_SIZE]);
static inline bool bh_api_past_fence(const struct bh_api_req *r)
{
    return r->call.not_after_boot_ns && bh_boot_ns() >= r->call.not_after_boot_ns;
}
int bh_api_retry_after(struct bh_str value); /* seconds, -1 = not that form */

/* ---- lanes (lane.h) -------------------------------------------------------------------------- */
struct bh_lanes *bh_lanes_new(struct bh_api_client *c, const struct bh_api_options *o);
void bh_lanes_add(struct bh_lanes *s, struct bh_api_req *r);
void bh_lanes_remove(struct bh_lanes *s, struct bh_api_req *r); /* wherever it is; no callback */
void bh_lanes_renew(struct bh_lanes *s); /* credentials changed: what is open finishes and goes */
/* Nothing runs any more; connections are closed now, the rest counts in c->open_handles. */
void bh_lanes_close(struct bh_lanes *s);

/* ---- client ---------------------------------------------------------------------------------- */
struct bh_api_metric_cell {
    const char *method; /* interned */
    int code;           /* 0 = no reply */
    struct bh_cell *requests;
};
/* limit.c: at most qps requests a second and burst at once; shared by all that name the file. */
struct bh_api_limit {
    uint64_t gap_ns, burst_ns; /* gap 0 = no limit */
    int fd;                    /* of the file; -1: it is not shared */
    uint64_t own_ns;           /* monotonic clock, as the word in the file: what was seen last */
};
int bh_api_limit_init(struct bh_api_limit *l, double qps, int burst, const char *file,
                      struct bh_err *err);
void bh_api_limit_fini(struct bh_api_limit *l);
bool bh_api_limit_take(struct bh_api_limit *l, uint64_t now);
uint64_t bh_api_limit_next(const struct bh_api_limit *l, uint64_t now); /* worth another try */

struct bh_api_client {
    uv_loop_t *loop;
    struct bh_api_config *cfg; /* own copy */
    char *base;                /* scheme://host[:port][/path] of every URL */
    char *host;                /* host[:port] of the server, for the Host header and metrics */
    size_t origin_n;           /* base up to its path */
    struct curl_slist *connect_to;
    bool tls, loopback;
    char *user_agent, *field_manager;
    unsigned max_connections;

    struct bh_api_creds *creds;
    uint64_t certs_checked_ns, token_checked_ns;
    uint64_t files_seen; /* hash over the certificate files' identities when last read */
    char *token;
    struct bh_api_headers_list headers;
    unsigned n_headers;

    uint64_t fence_first_ns; /* when the first running request may not be sent; boot clock */
    struct bh_api_pool *pool[BH_API_POOLS];
    struct bh_api_pool *lane_pool;
    struct bh_lanes *lanes; /* NULL = all by libcurl */
    struct bh_api_pool_list retired;
    struct bh_api_socket **sockets; /* by descriptor */
    size_t n_sockets;
    uv_timer_t company;  /* for those that are held */
    uint64_t body_bytes; /* of all replies by libcurl */

    struct bh_api_limit limit;
    bool json;

    struct bh_api_exec *exec; /* NULL = no command configured */

    struct bh_api_req_list reqs[BH_REQ_STATES]; /* by state */
    unsigned n_live, n_spare;
    uv_timer_t alarm, pump;
    unsigned in_curl; /* inside a libcurl call: no other one is allowed on the same multi */
    unsigned busy;    /* inside our callbacks to the caller: nothing may be torn down */
    bool closing;
    unsigned open_handles;

    struct bh_metric *m_requests, *m_duration, *m_retries, *m_limited, *m_sent, *m_received,
        *m_exec_calls;
    struct bh_cell *m_pools, *m_new_pools, *m_exec_ttl; /* NULL without metrics */
    struct bh_api_metric_cell cells[64];
    unsigned n_cells;
    struct {
        const char *method;
        struct bh_cell *duration, *limited, *sent, *received;
    } verbs[8];
    unsigned n_verbs;
};
/* Ends what ++c->busy began. The outermost one does a tear-down that had to wait: c may be gone. */
void bh_api_leave(struct bh_api_client *c);
void bh_api_kick(struct bh_api_client *c);               /* deferred work soon, from the loop */
void bh_api_finished(struct bh_api_req *r, CURLcode rc); /* libcurl is done with it */
/* A transfer is over, libcurl's or a lane's. why NULL: there is a reply. late: it timed out. */
void bh_api_ended(struct bh_api_req *r, bool late, const char *why);
/* Re-reads what is due (force: everything). True when connections have to be new. */
bool bh_api_certs_refresh(struct bh_api_client *c, bool force);
void bh_api_token_refresh(struct bh_api_client *c, bool force);
struct bh_api_config *bh_api_config_copy(const struct bh_api_config *c);
void bh_api_use(struct bh_api_client *c, struct bh_api_creds *k); /* takes k; new connections */
void bh_api_unhold(struct bh_api_client *c); /* credentials came, or did not: held requests go on */
void bh_api_handle_closed(struct bh_api_client *c); /* one of open_handles */
void bh_api_on_closed(uv_handle_t *h);              /* the same; its data is the client */
void bh_api_metrics_init(struct bh_api_client *c, struct bh_metrics *m);
void bh_api_metrics_done(struct bh_api_client *c, const struct bh_api_req *r);
void bh_api_metrics_retry(struct bh_api_client *c, const struct bh_api_req *r);
void bh_api_metrics_limited(struct bh_api_client *c, const struct bh_api_req *r); /* goes on now */
void bh_api_metrics_pools(struct bh_api_client *c, int change);
void bh_api_metrics_exec(struct bh_api_client *c, const struct bh_api_exec *x, bool ok);
#endif
