/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/guest_int.h - what the files of this room share
 */
#ifndef BH_GUEST_INT_H
#define BH_GUEST_INT_H

#include "common/base/buf.h"
#include "common/base/map.h"
#include "scheduler/extender/extender.h"
#include "scheduler/framework/framework.h"
#include "scheduler/wasm/guest.h"

#define BH_GUEST_BIT(hook) (1u << (hook))

/* ---- load.c: from args to a module ----------------------------------------------------------- */

/* A guest by its plugin's name. */
struct bh_guest_plugin {
    struct bh_guest_plugin *next;
    struct bh_plugin d; /* what the framework sees */
    char *name;
    struct bh_wasm_module *m;
    char *bytes; /* of the file: is it still the same? */
    size_t n_bytes;
    uint32_t func[BH_GUEST_HOOKS];
    uint32_t hooks;             /* bits of those it exports */
    uint32_t runs;              /* those of them that have to be called: can_skip in load.c */
    unsigned needs;             /* of whole objects, enum bh_ext_need */
    bool node_local, first_abi; /* first_abi: imports as of v0.1.0 */
    bool may_forget;            /* nodes that it was asked about: bh_guest_renew() */
    /* ---- for metrics; the engine's thread ---- */
    uint64_t calls[BH_GUEST_HOOKS], traps[BH_GUEST_HOOKS], ns[BH_GUEST_HOOKS];
    uint32_t instances, pages; /* pages: the most that one has had */
    /* ---- for people; the engine's thread ---- */
    char *url, sha256[65];
    char last_trap[256];
    uint64_t events, events_dropped;
    double events_left; /* that it may still record, as of events_ns */
    uint64_t events_ns;
    uint64_t logs_second; /* of the monotonic clock; in it came n_logs lines */
    uint32_t n_logs;
};
/* args as the original's plugin configuration, and what else there is to set. */
struct bh_guest_args {
    const char *url, *config; /* config: NULL = "" */
    char sha256[65];          /* that the file has to have; "" = any */
    int32_t severity;
    const char **argv;
    uint32_t argc;
    int64_t timeout_ns; /* of a hook */
    int64_t cycle_ns;   /* of all hooks of a pod's scheduling cycle */
    bool node_local;    /* what filter and score say may be kept */
};
/* -EINVAL: "failed to decode into X PluginConfig: ...". Texts are those of args, lists in a. */
int bh_guest_args_read(struct bh_arena *a, const char *name, const struct bh_json *args,
                       struct bh_guest_args *ret, struct bh_err *err);

/* ---- plugin.c: hooks as the framework's callbacks -------------------------------------------- */

/* Fills the descriptor; events is owned by it. */
void bh_guest_describe(struct bh_guest_plugin *p, bool node_local,
                       const struct bh_event_reg *events);
/* What the guest registers for: asked once, with these args. Free it. */
int bh_guest_events(struct bh_guest_plugin *p, const struct bh_guest_args *args,
                    struct bh_event_reg **ret, struct bh_err *err);

/* ---- instance.c: who runs a pod's hooks ------------------------------------------------------- */

/* A plugin of one profile. */
struct bh_guest {
    struct bh_guest_plugin *of;
    struct bh_guest_args args;
    struct bh_plugin_env env;
    struct bh_guest_run *cycle; /* runs the hooks of the pod that was decided last */
    struct bh_guest_run *free;  /* have no pod */
    struct bh_map bound;        /* by the pod's uid: its binding cycle is still to come */
    /* The cycle that is on, by its pod and its moment, and when its time is over: instances that trap come and
     * go within one. */
    struct bh_buf cycle_uid;
    int64_t cycle_at_ns;
    uint64_t due_ns;
    bh_sym *scored; /* nodes since PreScore, as normalizescore is going to see them */
    uint32_t n_scored, cap_scored;
    /* How scoring many nodes ended early, in the cycle's arena, and at which: score() says it. NULL: it did
     * not. */
    const struct bh_status *failed;
    uint32_t failed_row;
};
/* One instance of the module. */
struct bh_guest_run {
    struct bh_guest_run *next; /* of the free ones */
    struct bh_guest *g;
    struct bh_wasm *w;
    struct bh_buf uid; /* of the pod whose hooks it runs */
    struct bh_buf
        pod; /* its object as it was at Reserve: who is bound is no pending pod any more */
    struct bh_buf out; /* what the hook wrote to stdout and stderr */
    uint32_t asked;    /* about so many nodes since the pod's prefilter */
    uint64_t anew_ns;  /* what the last bh_guest_renew() took, where it told of the pod */
    bool again;        /* it is told of the pod anew: what it records was recorded */
    bool exited;       /* proc_exit() */
    uint32_t exit_code;
    /* ---- of the hook that is running: what it may ask for ---- */
    struct bh_call *c; /* NULL: no pod */
    bh_sym node;
    const struct bh_pod_info *target;
    const uint32_t *rows; /* PreScore's */
    uint32_t n_rows;
    const int64_t *scores; /* of g->scored */
    const struct bh_diagnosis *why;
    /* ---- ... and what it answered ---- */
    struct bh_buf reason, node_names, nominated, events;
    struct bh_arena arena; /* of the scores below */
    struct bh_json *normalized;
    uint64_t value;
};
/* The instance that is to run the pod's hook; `begin`: of its first one. NULL: *ret_why. */
struct bh_guest_run *bh_guest_of(struct bh_call *c, bool begin, const struct bh_status **ret_why);
/* Without a pod. */
int bh_guest_run_new(struct bh_guest *g, struct bh_guest_run **ret, struct bh_err *err);
/* Its fields of what the hook may ask for are set, and are cleared. NULL: it returned; else the text
 * of the trap, in a, and r is gone. */
const char *bh_guest_call(struct bh_guest_run *r, enum bh_guest_hook hook, struct bh_arena *a);
/* Before filter or score is asked about n nodes, of a guest whose answers may be kept: one that was asked about
 * many is told of the pod anew. Clears what the hook may ask for. NULL: go on; else why not, and r may be
 * gone. */
const char *bh_guest_renew(struct bh_guest_run *r, struct bh_call *c, enum bh_guest_hook hook,
                           uint32_t n);
/* Score of many nodes, about each as bh_guest_call(), until one fails. How many were scored; less than n:
 * *ret_trap is the text of the trap, and r is gone, or NULL: the next one's code is in r->value. */
uint32_t bh_guest_score_rows(struct bh_guest_run *r, const uint32_t *rows, uint32_t n, int64_t *ret,
                             const char **ret_trap);
/* From now on it is that pod's alone. */
void bh_guest_keep(struct bh_guest_run *r, const struct bh_call *c);
void bh_guest_release(struct bh_guest *g, struct bh_str uid);
void bh_guest_fini(struct bh_guest *g);

/* ---- event.c: what guests record -------------------------------------------------------------- */
/* EventMessage of the original. false: bh_wasm_fail() was told. */
bool bh_guest_eventf(struct bh_guest_run *r, struct bh_str json);

/* ---- host.c, wasi.c: what guests may import --------------------------------------------------- */
bool bh_guest_current_node_name(struct bh_wasm *w, void *user, uint64_t *v);
/* How many bytes of s are at most max, without a part of a character at the end. */
size_t bh_guest_fits(struct bh_str s, size_t max);
extern const struct bh_wasm_host bh_guest_host[], bh_guest_wasi[];
extern const size_t bh_guest_n_host, bh_guest_n_wasi;
#endif
