/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/cli.h - the subcommands of `berth`, and what they share
 *
 * Each command parses its own flags (argv[0] is its name) and returns an exit status (enum
 * bh_exit).
 */
#ifndef BH_CLI_H
#define BH_CLI_H

#include "common/api/client.h"
#include "common/base/opt.h"
#include "common/data/json.h"

int bh_cmd_up(int argc, char **argv);
int bh_cmd_demo(int argc, char **argv);
int bh_cmd_run(int argc, char **argv);
int bh_cmd_load(int argc, char **argv);
int bh_cmd_completion(int argc, char **argv);
int bh_cmd_conformance(int argc, char **argv);
int bh_cmd_keygen(int argc, char **argv);
int bh_cmd_wasmc(int argc, char **argv);
int bh_cmd_get(int argc, char **argv);
int bh_cmd_simulate(int argc, char **argv);
int bh_cmd_queue(int argc, char **argv);
int bh_cmd_decisions(int argc, char **argv);
int bh_cmd_compare(int argc, char **argv);
int bh_cmd_explain(int argc, char **argv);
int bh_cmd_config(int argc, char **argv);
int bh_cmd_bench(int argc, char **argv);
int bh_cmd_plugin(int argc, char **argv);
int bh_cmd_plugins(int argc, char **argv);
int bh_cmd_rebalance(int argc, char **argv);
int bh_cmd_scenario(int argc, char **argv);
int bh_cmd_import(int argc, char **argv);
int bh_cmd_sync(int argc, char **argv);
int bh_cmd_record(int argc, char **argv);
int bh_cmd_replay(int argc, char **argv);
int bh_cmd_wasm(int argc, char **argv);

struct bh_cli_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about; /* one line */
};
/* Runs the one of n that argv[1] names, or tells what there is. */
int bh_cli_dispatch(const char *program, const char *about, const struct bh_cli_command *v,
                    size_t n, int argc, char **argv);
/* help.c: for bh_opt_parse(); "berth load". */
const struct bh_opt_usage *bh_cli_help(const char *program);
/* The exit status after bh_opt_parse() said something else than 0: rc < 0 tells what is wrong and
 * where to look. */
int bh_cli_usage(const char *program, int rc, const struct bh_err *err);
/* Says what went wrong; BH_EXIT_FAIL. */
int bh_cli_fail(const char *program, const struct bh_err *err);
/* A whole file; "-": the standard input. */
int bh_cli_read(const char *path, size_t max, struct bh_buf *out);
/* To the standard output; frees the text. BH_EXIT_FAIL, and told, when it cannot be written. */
int bh_cli_print(const char *program, struct bh_buf *text);

/* ---- completion.c ---------------------------------------------------------------------------- */
/* For --help=words (bh_opt_parse() was BH_OPT_WORDS): names of pods and nodes, a line each, with these
 * prefixes before them; NULL: none of them. Without an instance nothing is printed. */
void bh_cli_print_names(const char *program, const char *pods, const char *nodes);

/* ---- instance.c: which Berth is meant ---------------------------------------------------------- */
/* One order for all commands: the option, $BERTH_RUNTIME_DIR, $KUBECONFIG, this user's `berth up`,
 * the usual place.
 * The runtime directory: $KUBECONFIG counts when it is the file of one of this user's `berth up`; of
 * several the newest is taken, and the others are listed on stderr; the usual place is /run/berth.
 * stderr reports when $KUBECONFIG leads to another cluster. -ENOENT: with a hint. */
int bh_cli_find_dir(const char *program, const char *from_option, char out[static 108],
                    struct bh_err *err);
#define BH_INSTANCE_DEFAULT                                                                        \
    "(default: $BERTH_RUNTIME_DIR, the instance of $KUBECONFIG, your newest 'berth up', "          \
    "/run/berth)"
/* The kubeconfig, for commands that change a cluster; from_option is --kubeconfig, runtime_dir
 * --runtime-dir or NULL, which replaces $BERTH_RUNTIME_DIR. A single `berth up` counts, several are
 * -EEXIST and listed; *ret NULL: as kubectl finds it, $KUBECONFIG first. The caller frees. */
int bh_cli_find_cluster(const char *program, const char *from_option, const char *runtime_dir,
                        char **ret, struct bh_err *err);
#define BH_CLUSTER_DEFAULT                                                                         \
    "(default: the instance of $BERTH_RUNTIME_DIR, $KUBECONFIG, your 'berth up', else as kubectl)"
/* The `berth up` of this directory is found from now on, until its process or bh_instance_end().
 * kubeconfig: an absolute path, NULL when the directory has the built-in server's. 0 or -errno. */
int bh_instance_announce(const char *dir, const char *kubeconfig, struct bh_err *err);
void bh_instance_end(const char *dir);

/* ---- terminal.c ------------------------------------------------------------------------------ */
/* One line on stderr, redrawn at most ten times a second; silent when stderr is no terminal. */
struct bh_progress {
    bool on;
    uint64_t drawn_ns, from_ns;
};
void bh_progress_init(struct bh_progress *p);
void bh_progress_patient(struct bh_progress *p); /* the same; silent when it is over in a glance */
/* done of total as a bar, then the text. */
void bh_progress_draw(struct bh_progress *p, uint64_t done, uint64_t total, const char *fmt, ...)
    BH_PRINTF(4, 5);
void bh_progress_end(struct bh_progress *p);

/* ---- guests.c: WebAssembly guests of the running scheduler ------------------------------------- */
/* As it tells them (scheduler/wasm/guest.h), an empty list when it does not run; in a. */
struct bh_json;
struct bh_arena;
int bh_cli_guests(const char *runtime_dir, struct bh_arena *a, struct bh_json **ret,
                  struct bh_err *err);
/* A table, and the last trap of each that had one; nothing when there are none. */
void bh_cli_add_guests(struct bh_buf *out, const struct bh_json *guests);
#endif
