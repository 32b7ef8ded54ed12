/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/opt.h - the command line, from one table
 *
 * pflag's rules, because operators bring kube-scheduler's flags: --x=v and --x v, booleans only
 * --x or --x=false, no abbreviations, `--` ends options, -v N / -vN / -v=N for single letters,
 * boolean letters can be joined (-ab). '_' in a name counts as '-', as in kube-scheduler. A list
 * takes commas, repeats append, and the first use replaces the default.
 * The same table prints --help, and --help=words for shells that complete a line: "--name=VALUE" or
 * "--name", a tab and what --help says of it; the words that may follow. Unknown option: "unknown
 * flag: --foo", exit status 2 is the caller's (BH_EXIT_USAGE).
 */
#ifndef BH_OPT_H
#define BH_OPT_H

#include "common/base/base.h"

#define BH_OPT_WORDS 2
enum bh_exit { BH_EXIT_OK = 0, BH_EXIT_FAIL = 1, BH_EXIT_USAGE = 2 };
enum bh_opt_kind {
    BH_OPT_BOOL,
    BH_OPT_STR,
    BH_OPT_INT,
    BH_OPT_DURATION_NS,
    BH_OPT_STRLIST,
    BH_OPT_INT32,  /* int64_t*, within int32_t */
    BH_OPT_LEVEL,  /* int64_t*, decimal, 0 to INT32_MAX */
    BH_OPT_FLOAT,  /* double*, within float */
    BH_OPT_IP,     /* const char**, an address, or "" */
    BH_OPT_ARRAY,  /* struct bh_opt_list*; each use is one item, commas and all */
    BH_OPT_WORD,   /* const char**; --x alone is "true" */
    BH_OPT_CHOICE, /* const char**, one of the words of the placeholder "table|wide|json" */
    BH_OPT_SECTION /* no option: name "", what follows stands in --help under this help text */
};
/* What the parser puts in a list is one block, text included: free(v). Defaults may be static. */
struct bh_opt_list {
    const char **v;
    size_t n;
};
static inline void bh_opt_list_fini(struct bh_opt_list *l)
{
    free(l->v);
}
struct bh_opt {
    const char *name; /* without dashes; NULL ends the table */
    char letter;      /* 0 = none */
    enum bh_opt_kind kind;
    void *target;    /* bool*, const char**, int64_t*, int64_t*, struct bh_opt_list*, or as above */
    const char *arg; /* placeholder in --help, e.g. "FILE" */
    const char *help;
};
struct bh_opt_usage {
    const char *program;  /* "berth-watcher" or "berth load" */
    const char *synopsis; /* "[flags]" */
    const char *about;    /* paragraph */
    const char *examples; /* printed verbatim, may be NULL */
    const char *exits;    /* exit codes, printed verbatim, may be NULL */
    /* Errors of values from this option of the table on have Go's texts, as kube-scheduler's flags do;
     * NULL = none. */
    const struct bh_opt *go_texts;
};
/* Parses argv[1..]. Positional arguments are collected in *ret_args (may be NULL: then one is
 * an error; the caller frees ret_args->v, which points into argv).
 * 0; 1 when --help or --version was printed (exit 0), BH_OPT_WORDS when --help=words was;
 * -EINVAL with err set. Strings point into
 * argv. Targets keep their value, the default, unless the option is given. */
int bh_opt_parse(const struct bh_opt *table, const struct bh_opt_usage *usage, int argc,
                 char **argv, struct bh_opt_list *ret_args, struct bh_err *err);
/* The same, and given[i] (as long as the table, false before) tells what was on the command
 * line. */
int bh_opt_parse_given(const struct bh_opt *table, const struct bh_opt_usage *usage, int argc,
                       char **argv, struct bh_opt_list *ret_args, bool *given, struct bh_err *err);
/* The value of an option as pflag prints it: "true", "5m0s", "[a,b]". */
struct bh_buf;
void bh_opt_value(const struct bh_opt *o, struct bh_buf *b);
void bh_opt_help(const struct bh_opt *table, const struct bh_opt_usage *usage);
/* first: no word stands before, so those of the synopsis may follow. */
void bh_opt_words(const struct bh_opt *table, const struct bh_opt_usage *usage, bool first);
/* As Go's ParseBool: 1, 0, or -1 for what is neither. */
int bh_parse_bool(const char *s);
/* Go duration text: "1h2m3.5s", "100ms", "0". 0 or -EINVAL. */
int bh_parse_duration_ns(const char *s, int64_t *ret_ns);
/* As Go prints it: "1h2m3.5s", "100ms", "0s". */
void bh_format_duration_ns(int64_t ns, char out[static 32]);
#endif
