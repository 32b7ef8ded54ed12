/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/sim_int.h - what the files of the core share: the server's state, the store, requests
 *
 * Private to simulator/ (not to its sub-folders). The functions stand under the file they live in.
 */
#ifndef BH_SIM_INT_H
#define BH_SIM_INT_H

#include <sys/queue.h>

#include "common/base/heap.h"
#include "common/base/map.h"
#include "common/data/apply.h"
#include "common/base/metrics.h"
#include "simulator/http/server.h"
#include "common/k8s/codec.h"
#include "common/k8s/selector.h"
#include "simulator/server/server.h"
#include "simulator/server/sim.h"

/* ---- store.c: buckets, slots, history -------------------------------------------------------- */

struct bh_sim_req;
struct bh_sim_slot;
/* One ownerReference of one object, in the list of all objects that name this owner. */
struct bh_sim_own {
    struct bh_sim_slot *slot;
    LIST_ENTRY(bh_sim_own) same;  /* owner */
    SLIST_ENTRY(bh_sim_own) more; /* of the same object */
    struct bh_sim_own_list *list;
};
struct bh_sim_own_list {
    LIST_HEAD(, bh_sim_own) all;
    char uid[];
};
struct bh_sim_node_list {
    LIST_HEAD(, bh_sim_slot) all;
    char node[];
};
/* One name. cur is NULL when the object is gone; the slot lives on until the next sort. */
struct bh_sim_slot {
    struct bh_sim_obj *cur;
    LIST_ENTRY(bh_sim_slot) same_node;
    struct bh_sim_node_list *node;
    SLIST_HEAD(, bh_sim_own) owners;
};
struct bh_sim_event {
    enum bh_sim_change change;
    uint64_t rv;
    struct bh_sim_obj *old, *obj; /* referenced; old NULL when ADDED */
};
/* Events in the order they came; the memory only grows. */
struct bh_sim_ring {
    struct bh_sim_event *v;
    size_t cap, first, n;
};
static inline struct bh_sim_event *bh_sim_ring_at(const struct bh_sim_ring *r, size_t i)
{
    return &r->v[(r->first + i) & (r->cap - 1)];
}
/* Takes references of its own. */
struct bh_sim_event *bh_sim_ring_push(struct bh_sim_ring *r, enum bh_sim_change c,
                                      struct bh_sim_obj *old, struct bh_sim_obj *obj);
/* The first event, with its references. */
struct bh_sim_event bh_sim_ring_take(struct bh_sim_ring *r);
void bh_sim_event_fini(struct bh_sim_event *e);
/* A frozen list that continue tokens read from, so that all pages show one moment. */
struct bh_sim_page_set {
    uint64_t rv, used; /* used: clock of the last page, for eviction */
    struct bh_sim_objs objs;
};
#define BH_SIM_PAGE_SETS 4
struct bh_sim_bucket {
    const struct bh_sim_type *type;
    struct bh_map slots; /* "ns/name" -> slot */
    /* In order up to n_sorted, then new ones as they came; dead ones are dropped when sorting. */
    struct bh_sim_slot **order;
    size_t n_order, cap_order, n_sorted, n_dead;
    /* History: a ring of the last commits. evicted_rv: the newest commit no longer in it. */
    struct bh_sim_ring ring;
    size_t ring_bytes;
    uint64_t evicted_rv, last_rv;
    struct bh_map watches; /* index key (watch.c) -> bh_sim_watch_list */
    size_t n_watches;
    struct bh_sim_page_set pages[BH_SIM_PAGE_SETS];
};

struct bh_sim_listen_entry {
    const struct bh_sim_type *type;
    bh_sim_listener *fn;
    void *arg;
};

/* The cells of one verb and code, looked up once. verb: compared as a pointer. */
struct bh_sim_counts {
    const char *verb;
    int code;
    struct bh_cell *requests, *latency;
};
#define BH_SIM_COUNTS 32
struct bh_sim_metrics {
    struct bh_metrics *m;
    struct bh_sim_counts counts[BH_SIM_COUNTS];
    size_t n_counts;
    struct bh_metric *requests, *latency, *objects;
    struct bh_cell *turn, *turn_max;
    struct bh_cell *watch_events, *watches, *revision, *commits, *watch_dropped, *listener_queue;
};

/* Where in an object's text the digits of resourceVersion and the values of spec and status are. */
struct bh_sim_spans {
    uint32_t rv_at, rv_n, spec_at, spec_n, status_at, status_n;
};

struct bh_sim {
    uv_loop_t *loop;
    struct bh_sim_options opt;
    struct bh_sim_features *features; /* features.c */
    struct bh_http_server *http;
    struct bh_sim_bucket *buckets;  /* one per type; those of second representations stay empty */
    struct bh_sim_customs *customs; /* types and buckets of definitions (custom.c); NULL = none */
    uint64_t rv;
    struct bh_map nodes;  /* node name -> bh_sim_node_list */
    struct bh_map owners; /* uid -> bh_sim_own_list */
    struct bh_sim_listen_entry *listen;
    size_t n_listen;
    struct bh_sim_ring pending; /* commits the listeners have not seen */
    bool draining;
    uv_idle_t *idle;   /* runs while there is something to do at once (clock.c) */
    uv_timer_t *alarm; /* for the first timer of both lines */
    uv_prepare_t *turn_end;
    uint64_t turn_ns, idle_ns;          /* when the last turn ended; time in poll until then */
    double turn_max;                    /* seconds, since the last scrape */
    struct bh_heap timers, real_timers; /* the first is due first */
    uint64_t timer_seq;
    int64_t clock_ns; /* now, under a manual clock */
    struct bh_sim_timer *bookmark_timer;
    /* Events live an hour: the revision of each of the last 60 minutes, and those being removed. */
    uint64_t minute_rv[60];
    unsigned minute;
    uint64_t minute_ns;
    struct bh_sim_objs expired;
    size_t expired_at;
    LIST_HEAD(, bh_sim_hold) holds; /* bindings that a fault holds (faults.c) */
    struct bh_rand rand, uid_rand;  /* suffixes of names; uids */
    uint64_t token_key[4];          /* signs tokens of service accounts */
    struct bh_arena arena;          /* of the request being handled */
    struct bh_arena edit_arena;     /* of an edit or a binding, which can happen inside a request */
    unsigned edits;                 /* that use it just now, one inside the other */
    struct bh_buf wire;             /* a protobuf encoding, kept for its memory */
    /* Kept for their memory: a commit's text, a reply, watch frames. */
    struct bh_sim_spans scratch_spans; /* of the text in scratch */
    struct bh_buf scratch, reply, frame, frame2;
    struct bh_sim_controllers *controllers;
    struct bh_console *console; /* NULL without HTTP */
    struct bh_sim_metrics metrics;
    struct bh_sim_faults *faults;
    struct bh_sim_data *data;         /* NULL = none; data.h */
    int audit_fd;                     /* -1 = none */
    int history_fd;                   /* -1 = none; history.h */
    uint64_t restored_rv;             /* of the last line read from the history file */
    const struct bh_sim_req *request; /* the one being handled; NULL: a controller is at work */
    struct bh_buf line;               /* of the history file */
    struct bh_map docs;               /* path -> bh_sim_doc: discovery and OpenAPI, built once */
    bool any_host; /* listens beyond the loopback: tokens protect it, names say nothing */
    bool stopping;
};

struct bh_sim_bucket *bh_sim_bucket(struct bh_sim *s, const struct bh_sim_type *t);
struct bh_sim_slot *bh_sim_slot_get(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                                    const char *name);
void bh_sim_store_init(struct bh_sim *s);
void bh_sim_store_fini(struct bh_sim *s);
/* Forgets objects, history and frozen pages, without telling any watch. */
void bh_sim_bucket_clear(struct bh_sim *s, struct bh_sim_bucket *b);
/* Puts obj (takes the reference) in place of the slot's present one; slot NULL = a new name. Tells
 * history, watches and listeners. tree: obj's tree when at hand, else NULL. */
void bh_sim_commit(struct bh_sim *s, struct bh_sim_slot *slot, struct bh_sim_obj *obj,
                   const struct bh_json *tree);
void bh_sim_commit_delete(struct bh_sim *s, struct bh_sim_slot *slot);
/* Before any watch is there to be told: puts obj (takes the reference) into the store as it is, or
 * takes the object of its name out. restored: all is in; the next commit is rv + 1, and no watch
 * goes back behind rv. */
void bh_sim_store_restored(struct bh_sim *s, uint64_t rv);
/* The same for an object as text had it: finds its type. -EINVAL with err: no such kind, no
 * name. */
int bh_sim_store_restore_tree(struct bh_sim *s, const struct bh_json *obj, uint64_t rv, bool gone,
                              struct bh_err *err);
/* Brings order up to date; afterwards order[0..n_order) is sorted and alive. */
void bh_sim_sort(struct bh_sim_bucket *b);
int bh_sim_key_cmp(const char *ns_a, const char *name_a, const char *ns_b, const char *name_b);
/* First index of the sorted bucket, or of a list frozen from it, whose key is behind (ns, name);
 * name "" = the first of the namespace. */
size_t bh_sim_seek(const struct bh_sim_bucket *b, const struct bh_sim_objs *frozen, const char *ns,
                   const char *name);
/* Event i of the ring, oldest first. */
static inline const struct bh_sim_event *bh_sim_history_at(const struct bh_sim_bucket *b, size_t i)
{
    return bh_sim_ring_at(&b->ring, i);
}
/* Index of the first event newer than rv. */
size_t bh_sim_history_after(const struct bh_sim_bucket *b, uint64_t rv);
/* The list as of revision rv, frozen now when nothing has changed since; NULL when it is lost. */
const struct bh_sim_objs *bh_sim_page_get(struct bh_sim *s, struct bh_sim_bucket *b, uint64_t rv);
void bh_sim_pages_expire(struct bh_sim *s, uint64_t older_than_ns);

/* ---- object.c -------------------------------------------------------------------------------- */

/* Text and hot fields of tree, with revision rv. */
struct bh_sim_obj *bh_sim_obj_new(struct bh_sim *s, const struct bh_sim_type *t,
                                  const struct bh_json *tree, uint64_t rv);
/* Whether writing tree would change nothing of o, and whether it would leave the spec alone. */
bool bh_sim_obj_same(struct bh_sim *s, const struct bh_sim_obj *o, const struct bh_json *tree,
                     bool *ret_same_spec);
/* As bh_sim_obj_new(), right after bh_sim_obj_same() wrote the same tree's text at revision `was`,
 * which need not be written again. */
struct bh_sim_obj *bh_sim_obj_new_again(struct bh_sim *s, const struct bh_sim_type *t,
                                        const struct bh_json *tree, uint64_t rv, uint64_t was);
/* The same object with another resourceVersion. */
struct bh_sim_obj *bh_sim_obj_with_rv(const struct bh_sim_obj *o, uint64_t rv);

/* ---- write.c --------------------------------------------------------------------------------- */

struct bh_sim_wopt {
    bool dry_run;
    struct bh_buf *warnings; /* may be NULL */
    const struct bh_apply_op
        *track; /* record which manager owns the fields (managedFields); NULL = do not */
    bool
        reordered; /* update: members may come in another order than the stored ones (PUT, apply) */
    const struct bh_json *old; /* update: the present object's tree when the caller has parsed it */
    const struct bh_sim_type *as; /* the representation the client used; NULL = the stored one */
    const struct bh_json *user;   /* who writes, as bh_sim_req.user; NULL = the administrator */
};
/* Roles and bindings (t: any type): user holds what he grants, or may escalate or bind. 0 or a code.
 * rbac.c */
int bh_sim_check_grants(struct bh_sim *s, struct bh_arena *a, const struct bh_sim_type *t,
                        const char *ns, const struct bh_json *user, const struct bh_json *old,
                        const struct bh_json *obj, struct bh_sim_error *e);
int bh_sim_do_create(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                     struct bh_arena *a, struct bh_json *obj, const struct bh_sim_wopt *w,
                     struct bh_sim_obj **ret_obj, struct bh_sim_error *e);
int bh_sim_do_update(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                     const char *name, enum bh_sim_sub sub, struct bh_arena *a, struct bh_json *obj,
                     const struct bh_sim_wopt *w, struct bh_sim_obj **ret_obj,
                     struct bh_sim_error *e);
/* *ret_gone: the object left the store now. *ret_obj: its last state. */
int bh_sim_do_delete(struct bh_sim *s, const struct bh_sim_type *t, const char *ns,
                     const char *name, const struct bh_sim_delete_options *o, bool dry_run,
                     bool *ret_gone, struct bh_sim_obj **ret_obj, struct bh_sim_error *e);
enum bh_sim_store_flags {
    BH_SIM_STORE_DRY_RUN = 1,
    BH_SIM_STORE_KEEP_GENERATION = 2,
    BH_SIM_STORE_CHANGED = 4 /* the caller knows that something changed */
};
/* The last step of every update: no-op check, generation, commit, removal when nothing holds a
 * deleted object any more. */
int bh_sim_store_update(struct bh_sim *s, struct bh_sim_slot *slot, struct bh_arena *a,
                        struct bh_json *obj, unsigned flags, struct bh_sim_obj **ret_obj);
/* Memory for one edit of an object; edits nest, and it is all free when the outermost ends. */
struct bh_arena *bh_sim_edit_begin(struct bh_sim *s);
void bh_sim_edit_end(struct bh_sim *s);
/* 409: a client means another object of this name; or another version of it (rv NULL or "": any). */
int bh_sim_other_uid(struct bh_sim_error *e, const struct bh_sim_obj *o, const char *uid);
int bh_sim_other_rv(struct bh_sim_error *e, const struct bh_sim_obj *o, const char *rv);
int bh_sim_not_found(struct bh_sim_error *e, const struct bh_sim_type *t, const char *name);

/* ---- pod.c ----------------------------------------------------------------------------------- */

/* meta/v1 DeleteOptions into o; strings are borrowed from v, absent members leave o as it is. */
void bh_sim_delete_options_read(const struct bh_json *v, struct bh_sim_delete_options *o);

/* ---- error.c --------------------------------------------------------------------------------- */

/* Turns collected field errors into the 422. Returns e->code (0 when there are none). */
int bh_sim_error_close(struct bh_sim_error *e, const struct bh_sim_type *t, const char *name);
struct bh_json *bh_sim_status_tree(struct bh_arena *a, const struct bh_sim_error *e);

/* ---- event.c --------------------------------------------------------------------------------- */

/* Called about once a minute: removes Events that were not written for an hour. */
void bh_sim_events_tick(struct bh_sim *s);
/* Removes Events last written at revision rv or before, a portion in each turn of the loop. */
void bh_sim_events_expire(struct bh_sim *s, uint64_t rv);

/* ---- listen.c -------------------------------------------------------------------------------- */

void bh_sim_listen_queue(struct bh_sim *s, enum bh_sim_change c, struct bh_sim_obj *old,
                         struct bh_sim_obj *obj);
void bh_sim_listen_burst(struct bh_sim *s, size_t burst); /* tells up to burst commits */
void bh_sim_listen_fini(struct bh_sim *s);

/* ---- clock.c --------------------------------------------------------------------------------- */

void bh_sim_clock_init(struct bh_sim *s);
void bh_sim_clock_fini(struct bh_sim *s); /* frees the timers that are left */
void bh_sim_clock_wake(struct bh_sim *s); /* there may be something to do at once */
/* As bh_sim_after(), on the machine's clock in any case: for what belongs to HTTP, not to the
 * simulated cluster. */
struct bh_sim_timer *bh_sim_after_real(struct bh_sim *s, int64_t delay_ns, void (*fn)(void *arg),
                                       void *arg);

#endif
