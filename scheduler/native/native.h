/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/native.h - plugins out of shared objects, found by name
 *
 * A name that no built-in plugin has is looked up among the files of the plugin folders: first what
 * they say of themselves is read, without running anything of them; then the file is loaded in a child
 * process, and when that went well here. What is loaded stays loaded.
 *
 * Folders: $BERTH_PLUGIN_DIR (files *.so), $BERTH_PLUGIN_CONFIG (*.yaml: where a plugin's file is,
 * and its digest; *.pub: who may sign); $BERTH_PLUGIN_POLICY. Environment, because the programs that Berth starts look
 * for the same plugins. They are read when the first unknown name is asked for.
 *
 * Owns:    descriptors and open files, for the life of the process.
 * Runs in: any thread; one after the other.
 */
#ifndef BH_NATIVE_H
#define BH_NATIVE_H

#include "common/base/trusted_file.h"
#include "scheduler/framework/plugin.h"

#define BH_PLUGIN_DIR    "/usr/lib/berth/plugins"
#define BH_PLUGIN_CONFIG "/etc/berth/plugins.d"
#define BH_PLUGIN_POLICY "owned" /* "pinned": only files whose digest is given; "signed" */

/* Options of a program; values go into the environment by bh_native_start(). */
struct bh_native_options {
    const char *dir, *config, *policy; /* NULL: as the environment says, else the defaults */
};
#define BH_NATIVE_OPTIONS(o)                                                                       \
    {"plugin-dir", 0,                                                                              \
     BH_OPT_STR,   &(o).dir,                                                                       \
     "DIR",        "plugins as shared objects (default $BERTH_PLUGIN_DIR or " BH_PLUGIN_DIR ")"},  \
        {"plugin-config",                                                                          \
         0,                                                                                        \
         BH_OPT_STR,                                                                               \
         &(o).config,                                                                              \
         "DIR",                                                                                    \
         "files that say where a plugin's file is, and its digest (default $BERTH_PLUGIN_CONFIG "  \
         "or " BH_PLUGIN_CONFIG ")"},                                                              \
    {                                                                                              \
        "plugin-policy", 0, BH_OPT_CHOICE, &(o).policy, "owned|pinned|signed",                     \
            "which of them may be loaded: those that only their owner can change, or of these "    \
            "only those whose digest is given, or that a key beside --plugin-config has signed "   \
            "(default $BERTH_PLUGIN_POLICY or " BH_PLUGIN_POLICY ")"                               \
    }
/* From now on bh_plugin_find() knows them. tell: why a file is not used, one line each; called from
 * the look-up; NULL: as before. Again: other options, before the first look-up. */
void bh_native_start(const struct bh_native_options *o, void (*tell)(const char *line));

/* Ends the processes that plugins with `mode: process` run in; who asks one of them again starts it anew. For
 * a program that has looked at a configuration, and goes on without it. */
void bh_native_end_processes(void);

struct bh_native_file {                           /* what a file says of itself */
    const char *file, *names, *version, *license; /* names: of its plugins, one space between */
    uint32_t major, minor;
    char sha256[65];
};
/* Its plugins come from this file, whatever there is in the folders; apart: in a process of their own.
 * Texts live as long as the process. 0; -EINVAL, -errno: why it is refused. */
int bh_native_use(const char *path, bool apart, struct bh_native_file *ret, struct bh_err *err);

/* Before a configuration is read again: files that came since are known. 1: a file that plugins were
 * loaded from is another one, or gone; 0: none is; -EINVAL: one is, and would be refused. */
int bh_native_refresh(struct bh_err *err);

/* For the scheduler, before it reads its configuration: from now on it stands written down in the
 * runtime directory in which plugin's code the process is, so that the next one knows who ended this
 * one. A plugin that did so three times within ten minutes is put aside for as long as its file is
 * the same: its callbacks fail, or have no say where the plugin configuration says `onCrash: skip`.
 * A callback that does not return within the time-out ends the process (a thread watches once a
 * plugin is loaded). 0; -EINVAL, -errno. */
int bh_native_guard(const char *runtime_dir, const char *timeout, struct bh_err *err);
/* In the runtime directory: what it loaded */
#define BH_NATIVE_INVENTORY BH_SCHEDULER_DIR "/plugins.json"
/* .NAME beside it: moment in ns and number of nodes */
#define BH_NATIVE_MEASURED BH_SCHEDULER_DIR "/plugin.measured"
#define BH_NATIVE_PROCESS                                                                          \
    BH_SCHEDULER_DIR                                                                               \
    "/plugin.process" /* .NAME beside it: pid, starts and calls of a process of its own */
/* Those of a guarded process that run in a process of their own. pid 0: it is not running. */
void bh_native_each_process(void (*fn)(void *arg, const char *plugin, int pid, uint64_t starts,
                                       uint64_t calls),
                            void *arg);
/* Notices processes that ended since their last callback: pods that wait at Permit for their plugins fail. In the
 * engine's thread, as callbacks are. */
void bh_native_check_processes(void);
/* As bh_native_each(), of those that were put aside since the last time. */
void bh_native_each_newly_aside(void (*fn)(void *arg, const char *plugin, const char *aside,
                                           bool skips),
                                void *arg);
/* Those of a guarded process that said when what they know of nodes was measured. */
void bh_native_each_measured(void (*fn)(void *arg, const char *plugin, int64_t at_ns,
                                        uint64_t n_nodes),
                             void *arg);
/* Those that a guarded process loaded. aside: why its code is not run, NULL: it is; skips: its pods
 * are scheduled without it then. Texts live as long as the process. */
void bh_native_each(void (*fn)(void *arg, const char *plugin, const char *aside, bool skips),
                    void *arg);
/* What they measure, for metrics. */
struct bh_native_sample {
    const char *name, *help; /* live as long as the process */
    uint32_t kind;           /* as enum bh_metric_kind */
    double value;            /* counter, gauge */
    const double *bounds;    /* histogram: of its buckets */
    uint32_t n_bounds;
    /* Of each bucket and the infinite one: how many since the last time, and their sum. */
    const uint64_t *counts;
    const double *sums;
};
void bh_native_each_metric(void (*fn)(void *arg, const struct bh_native_sample *s), void *arg);
#endif
