/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/native_int.h - what the files of this room share
 */
#ifndef BH_NATIVE_INT_H
#define BH_NATIVE_INT_H

#include "common/base/owned.h"
#include "common/base/symtab_texts.h"
#include "plugins/include/berth/plugin.h"
#include "scheduler/cache/label_columns.h"
#include "scheduler/framework/asks.h"
#include "scheduler/native/native.h"

/* ---- file.c: digests of open files ----------------------------------------------------------- */

/* Of an open file, by OpenSSL's name; at most 64 bytes. 0 or -errno. */
int bh_native_digest(int fd, const char *algorithm, uint8_t out[static 64]);
/* In hex. 0 or -errno. */
int bh_native_sha256(int fd, char out[static 65]);

/* ---- sign.c: minisign's signatures ----------------------------------------------------------- */

struct bh_native_key {
    uint64_t id; /* as minisign shows it, in hex */
    uint8_t key[32];
};
/* From a *.pub file, which must be as safe as a plugin's. 0; -EINVAL, -errno. */
int bh_native_read_key(const char *path, struct bh_native_key *ret, struct bh_err *err);
/* Is the open file what FILE.minisig beside it says that one of the keys has signed? 0; -EINVAL,
 * -EPERM, -errno: why not. */
int bh_native_check_signature(int fd, const char *path, const struct bh_native_key *keys,
                              uint32_t n_keys, struct bh_err *err);

/* ---- note.c: what a file says of itself ------------------------------------------------------ */

/* Reads the ELF note of an open file and checks everything that can be checked without running it.
 * Texts live in the arena. */
int bh_native_read_note(int fd, const char *path, struct bh_arena *a, struct bh_native_file *ret,
                        struct bh_err *err);

/* ---- adapter.c: a plugin's callbacks as the framework's -------------------------------------- */

/* One plugin of a file. */
struct bh_native_plugin {
    uint32_t index;                     /* in the mark */
    const char *aside;                  /* why its code is not run any more; NULL: it is */
    enum bh_kind kind[BH_CUSTOM_KINDS]; /* by index in p.kinds */
    bool skips;                  /* ... and that it has no say then; else its callbacks fail */
    struct bh_plugin d;          /* what the framework sees */
    struct berth_plugin p;       /* ours: what the file has beyond it is not looked at */
    _Atomic int64_t measured_ns; /* what it published last; 0: it never said */
    _Atomic uint64_t measured_nodes;
    struct bh_native_metrics *metrics;
    struct bh_px *process;     /* that its code runs in (process.h); NULL: in this one */
    uint32_t in_file;          /* which of the file's plugins it is */
    bool on_crash_skips;       /* what its entry says */
    struct bh_json *inventory; /* its entry; NULL: it is in none */
    _Atomic bool newly_aside;
    _Atomic uint64_t calls; /* that crossed */
    _Atomic uint64_t starts;
    _Atomic int pid;
};
/* A descriptor for it, for the life of the process; -EINVAL: what is wrong with it. */
int bh_native_adopt(const struct berth_plugin *p, struct bh_native_plugin **ret,
                    struct bh_err *err);

/* The descriptor anew, after its callbacks have changed. */
void bh_native_describe(struct bh_native_plugin *p);

#define BH_NATIVE_REASONS 32u /* that an instance remembers */

/* ---- user.c: numbers that plugins publish from threads of their own -------------------------- */

#define BH_USER_COLUMNS 8u
struct bh_native_user;
struct bh_native_user *bh_native_user_new(bool verify);
void bh_native_user_free(struct bh_native_user *u); /* NULL: nothing */
/* Any thread. false: no such column, or too many nodes. */
bool bh_native_user_publish(struct bh_native_user *u, uint32_t column,
                            const struct berth_str *nodes, const double *values, uint64_t n);
/* In the engine's thread: the column by row, the same within one cycle. */
const double *bh_native_user_column(struct bh_native_user *u, const struct bh_call *c,
                                    uint32_t column);
/* Another number when what the columns say may be another. */
uint64_t bh_native_user_epoch(struct bh_native_user *u, const struct bh_call *c);

/* ---- adapter.c ------------------------------------------------------------------------------- */

/* One instance: what the plugin knows as berth_home. Lives in the framework's arena. */
struct bh_native {
    const struct bh_native_plugin *of;
    void *self;
    struct bh_arena *arena;
    struct bh_symtab *tab;
    const struct bh_sym_texts *texts; /* of tab */
    struct bh_waiting_pods *waiting;
    struct bh_plugin_asks *asks; /* NULL: nobody listens */
    struct bh_reservations *reserved;
    struct bh_waker waker;
    uint64_t events_second; /* of the monotonic clock; in it came n_events */
    uint32_t n_events;
    bh_sym cpu, memory, ephemeral, pods; /* names of resources that are no scalars */
    struct bh_label_columns *labels;     /* NULL: none was asked for */
    bh_sym label_key[BH_LABEL_COLUMNS];
    uint32_t n_labels;
    struct bh_native_user *user;                       /* NULL: it publishes none */
    const struct bh_status *reason[BH_NATIVE_REASONS]; /* given before; so most are made once */
    uint32_t n_reasons;
    /* ---- of the callback that is running ---- */
    struct bh_call *call;        /* NULL in create() */
    uint32_t hook;               /* enum bh_native_hook */
    uint32_t may;                /* BERTH_READS_ bits */
    bool *by_pod;                /* hint(): set when the pod's identity was asked for */
    const char *broke;           /* what it did although it may not; NULL = nothing */
    bool told_less;              /* that less() did so */
    bool told_tend;              /* that tend() did, the last time */
    bh_sym node;                 /* PreBind, Bind: the pod's */
    uint32_t n_new;              /* PreBind: patches that were not asked for before */
    struct bh_bind_order *order; /* Bind: what is written */
    /* PostFilter: why no node fits, and what preemption->run() found, if it ran. */
    const struct bh_diagnosis *diagnosis;
    struct bh_post_filter_result *preempted;
    bool ran, found;
    const struct bh_status *no_room; /* ... or what it said, as the plugin has it in its reason: */
    const char *no_room_text;
};
/* The instance whose callback this thread is in; NULL: none. */
extern _Thread_local struct bh_native *bh_native_inside;

/* ---- guard.c: plugins that end the process --------------------------------------------------- */

enum bh_native_hook { /* what is written down is read by the next process: append only */
                      BH_HOOK_NONE,
                      BH_HOOK_CREATE,
                      BH_HOOK_PRE_ENQUEUE,
                      BH_HOOK_HINT,
                      BH_HOOK_PRE_FILTER,
                      BH_HOOK_CHANGE_POD,
                      BH_HOOK_FILTER,
                      BH_HOOK_POST_FILTER,
                      BH_HOOK_PRE_SCORE,
                      BH_HOOK_SCORE,
                      BH_HOOK_NORMALIZE,
                      BH_HOOK_EPOCH,
                      BH_HOOK_RESERVE,
                      BH_HOOK_PERMIT,
                      BH_HOOK_LESS,
                      BH_HOOK_IDLE,
                      BH_HOOK_PRE_BIND,
                      BH_HOOK_BIND,
                      BH_HOOK_POST_BIND,
                      BH_HOOK_UNRESERVE,
                      BH_HOOK_TEND,
                      BH_HOOKS
};
#define BH_NATIVE_MARKED 64u /* plugins */
/* In a mapped file: in which plugin's code the process is. The next one reads a copy of it. */
struct bh_native_mark {
    uint64_t magic;
    uint64_t host_boot; /* bh_host_boot() */
    volatile uint64_t calls;
    volatile uint32_t plugin, hook; /* hook BH_HOOK_NONE: in no plugin's */
    struct bh_native_marked {
        char name[64], sha256[72];
        uint64_t check; /* of the two */
    } of[BH_NATIVE_MARKED];
};
extern struct bh_native_mark *bh_native_mark; /* NULL: nothing is written down */
/* A plugin that was loaded just now. */
void bh_native_guarded(const struct bh_native_file *f, bool skip, struct bh_native_plugin *p);
/* Its own process was ended in this callback (enum bh_native_hook; BH_HOOK_NONE: in none): counted as a crash of ours is. The
 * third within ten minutes puts it aside, without changing its callbacks: they look. */
void bh_native_crashed(struct bh_native_plugin *p, const struct bh_native_file *f, uint32_t hook);
int64_t bh_native_limit_ns(void); /* for a callback */
/* Writes down what `berth plugins` shows of its process. Any thread. */
void bh_native_process_seen(const struct bh_native_plugin *p);
const char *bh_native_hook_name(uint32_t hook);
/* Any thread: what the plugin's user columns say was measured then, of so many nodes. */
void bh_native_measured(struct bh_native_plugin *p, int64_t at_ns, uint64_t n_nodes);
/* ---- aside.c ---- From now on no code of the plugin runs. */
void bh_native_put_aside(struct bh_native_plugin *p, bool skip);

/* ---- host.c: the host's functions ------------------------------------------------------------ */

extern const struct berth_host bh_native_host;
struct bh_native_errors { /* behind struct berth_errors */
    struct bh_field_errors *errs;
    const char *path;
};
/* ---- metrics.c: what plugins measure --------------------------------------------------------- */
struct bh_native_metrics;
struct bh_native_metrics *bh_native_metrics_new(void); /* for the life of the process */
bool bh_native_metrics_have(struct bh_native_metrics *m, const char *name);
void bh_native_metrics_take(struct bh_native_metrics *m,
                            void (*fn)(void *arg, const struct bh_native_sample *s), void *arg);
extern const struct berth_host_metrics bh_native_metrics_table;
/* guard.c: another plugin of this process has a metric of that name. */
bool bh_native_metric_taken(const char *name, const struct bh_native_plugin *not_by);

/* ---- writes.c: what plugins want written ----------------------------------------------------- */
extern const struct berth_host_writes bh_native_writes;
/* ---- preempt.c: making room by a plugin's rules ------------------------------------------------ */
extern const struct berth_host_preemption bh_native_preemption;
/* For host.c and writes.c: the instance whose callback c is, NULL. */
struct bh_native *bh_native_callback(const struct berth_call *c, const char *what);

/* The handles are ours, under other names. */
static inline const struct berth_node *bh_node_handle(const struct bh_node_info *n)
{
    return (const struct berth_node *)(const void *)n;
}
static inline const struct bh_node_info *bh_node_behind(const struct berth_node *n)
{
    return (const struct bh_node_info *)(const void *)n;
}
static inline const struct berth_pod *bh_pod_handle(const struct bh_pod_info *p)
{
    return (const struct berth_pod *)(const void *)p;
}
static inline const struct bh_pod_info *bh_pod_behind(const struct berth_pod *p)
{
    return (const struct bh_pod_info *)(const void *)p;
}

/* UTF-8 without control characters? */
bool bh_native_is_text(struct berth_str s);
#endif
