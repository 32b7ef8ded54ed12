/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/native_int.h - what the files of this room share
 */
#ifndef BH_NATIVE_INT_H
#define BH_NATIVE_INT_H

#include "plugins/include/berth/plugin.h"
#include "scheduler/cache/label_columns.h"
#include "scheduler/native/native.h"

/* ---- file.c: files that may be loaded -------------------------------------------------------- */

/* Opens the file for reading if only its owner, we or root, could have put it there and can change
 * it: a regular file, no symbolic links on the way. The descriptor, or -errno. */
int bh_native_open(const char *path, struct bh_err *err);
/* Of an open file, in hex. 0 or -errno. */
int bh_native_sha256(int fd, char out[static 65]);

/* ---- note.c: what a file says of itself ------------------------------------------------------ */

/* Reads the ELF note of an open file and checks everything that can be checked without running it.
 * Texts live in the arena. */
int bh_native_read_note(int fd, const char *path, struct bh_arena *a, struct bh_native_file *ret,
                        struct bh_err *err);

/* ---- adapter.c: a plugin's callbacks as the framework's -------------------------------------- */

/* One plugin of a file. */
struct bh_native_plugin {
    struct bh_plugin d;    /* what the framework sees */
    struct berth_plugin p; /* ours: what the file has beyond it is not looked at */
};
/* A descriptor for it, for the life of the process; -EINVAL: what is wrong with it. */
int bh_native_adopt(const struct berth_plugin *p, struct bh_native_plugin **ret,
                    struct bh_err *err);

#define BH_NATIVE_REASONS 32u /* that an instance remembers */

/* One instance: what the plugin knows as berth_home. Lives in the framework's arena. */
struct bh_native {
    const struct bh_native_plugin *of;
    void *self;
    struct bh_arena *arena;
    struct bh_symtab *tab;
    struct bh_waiting_pods *waiting;
    bh_sym cpu, memory, ephemeral, pods; /* names of resources that are no scalars */
    struct bh_label_columns *labels;     /* NULL: none was asked for */
    bh_sym label_key[BH_LABEL_COLUMNS];
    uint32_t n_labels;
    const struct bh_status *reason[BH_NATIVE_REASONS]; /* given before; so most are made once */
    uint32_t n_reasons;
    /* ---- of the callback that is running ---- */
    struct bh_call *call; /* NULL in create() */
    uint32_t may;         /* BERTH_READS_ bits */
    bool *by_pod;         /* hint(): set when the pod's identity was asked for */
    const char *broke;    /* what it did although it may not; NULL = nothing */
};
/* The instance whose callback this thread is in; NULL: none. */
extern _Thread_local struct bh_native *bh_native_inside;

/* ---- host.c: the host's functions ------------------------------------------------------------ */

extern const struct berth_host bh_native_host;
struct bh_native_errors { /* behind struct berth_errors */
    struct bh_field_errors *errs;
    const char *path;
};
/* UTF-8 without control characters? */
bool bh_native_is_text(struct berth_str s);
#endif
