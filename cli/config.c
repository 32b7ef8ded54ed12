/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/config.c - `berth config check`: is a file a configuration, and where not
 *
 * Each error has a line of its own: FILE:LINE: and upstream's text. Line ends within a text (YAML's
 * errors, a whole file in quotes) are shown as \n, so that one line is one error.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/config.h"
#include "common/data/yaml.h"
#include "scheduler/native/native.h"

#define WHO_CHECK "berth config check"
#define STDIN_MAX ((size_t)4 << 20)

/* ---- reading and telling, for both commands -------------------------------------------------- */

const char *bh_config_name_of(const char *path)
{
    return bh_streq(path, "-") ? "<stdin>" : path;
}

int bh_config_read_from(const char *path, struct bh_sched_config **ret, struct bh_config_report *r)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    if (!bh_streq(path, "-"))
        return bh_sched_config_load_report(path, ret, r);
    int rc = bh_cli_read(path, STDIN_MAX, &b);
    if (rc < 0)
        r->summary = bh_arena_printf(&r->arena, "read standard input: %s", strerror(-rc));
    else
        rc = bh_sched_config_read(bh_buf_str(&b), b.n, ret, r);
    return rc;
}

static void print_finding(FILE *to, const char *path, const struct bh_config_finding *f,
                          const char *kind)
{
    fputs(bh_config_name_of(path), to);
    if (f->line)
        fprintf(to, ":%u", f->line);
    fprintf(to, ": %s", kind);
    /* What a terminal would act on is escaped, as in the logs. */
    const char *s = f->text;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '\n')
            fputs("\\n", to);
        else if (c == '\t')
            fputs("\\t", to);
        else if (c < 0x20 || c == 0x7f)
            fprintf(to, "\\x%02x", c);
        else
            putc(c, to);
    }
    putc('\n', to);
}

void bh_config_print(FILE *to, const char *path, const struct bh_config_findings *f, bool errors)
{
    for (uint32_t i = 0; i < f->n; i++)
        print_finding(to, path, &f->v[i], errors ? "" : f->v[i].note ? "note: " : "warning: ");
}

/* ---- check ----------------------------------------------------------------------------------- */

struct check {
    const char *output;
    bool strict, quiet;
    struct bh_arena arena;
    struct bh_json *items; /* -o json, yaml */
    unsigned bad, warned;
};

static struct bh_json *findings(struct bh_arena *a, const struct bh_config_findings *f, bool kinds)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < f->n; i++)
        bh_json_append(a, list, "line?: %u, kind?: %s, message: %s", f->v[i].line,
                       !kinds         ? NULL
                       : f->v[i].note ? "note"
                                      : "warning",
                       f->v[i].text);
    return list;
}

static void check_one(struct check *k, const char *path)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report r;

    bh_config_report_init(&r);
    bool valid = bh_config_read_from(path, &c, &r) == 0;
    k->bad += !valid;
    for (uint32_t i = 0; i < r.warnings.n; i++)
        k->warned += !r.warnings.v[i].note;
    if (k->items) {
        bh_json_append(
            &k->arena, k->items, "file: %s, valid: %i, error?: %s, errors: %p, warnings: %p",
            bh_config_name_of(path), valid, valid ? NULL : r.summary,
            findings(&k->arena, &r.errors, false), findings(&k->arena, &r.warnings, true));
    } else {
        fflush(stdout);
        bh_config_print(stderr, path, &r.warnings, false);
        bh_config_print(stdout, path, &r.errors, true);
        if (!valid && !r.errors.n)
            print_finding(stdout, path, &(struct bh_config_finding){.text = r.summary}, "");
        if (valid && !k->quiet)
            printf("%s: valid, %u profile%s, %u extender%s\n", bh_config_name_of(path),
                   c->n_profiles, c->n_profiles == 1 ? "" : "s", c->n_extenders,
                   c->n_extenders == 1 ? "" : "s");
    }
    bh_sched_config_free(c);
    bh_config_report_fini(&r);
}

static int check(int argc, char **argv)
{
    struct bh_native_options plugins = {0};
    struct check k = {.output = "text"};
    const struct bh_opt table[] = {
        {"output", 'o', BH_OPT_CHOICE, &k.output, "text|json|yaml", "form of the output"},
        {"strict", 0, BH_OPT_BOOL, &k.strict, NULL, "warnings count as errors (notes do not)"},
        {"quiet", 'q', BH_OPT_BOOL, &k.quiet, NULL, "say nothing about files that are valid"},
        BH_NATIVE_OPTIONS(plugins),
        {0},
    };
    struct bh_opt_list files BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO_CHECK), argc, argv, &files, &err);

    if (rc == 0 && !files.n)
        rc = bh_err_set(&err, -EINVAL, "say which file to check, or - for standard input");
    if (rc != 0)
        return bh_cli_usage(WHO_CHECK, rc, &err);
    bh_native_start(&plugins, NULL);
    if (!bh_streq(k.output, "text"))
        k.items = bh_json_new(&k.arena, BH_JSON_ARRAY);
    for (size_t i = 0; i < files.n; i++)
        check_one(&k, files.v[i]);
    if (k.items) {
        struct bh_buf out = {0};
        bh_form_write(&out,
                      bh_json_make(&k.arena,
                                   "apiVersion: " BH_EXPLAIN_API
                                   ", kind: ConfigCheckList, items: %p",
                                   k.items),
                      bh_streq(k.output, "json") ? BH_FORM_JSON : BH_FORM_YAML);
        k.bad |= bh_cli_print(WHO_CHECK, &out) != BH_EXIT_OK;
    }
    bh_arena_fini(&k.arena);
    return k.bad || (k.strict && k.warned) ? BH_EXIT_FAIL : BH_EXIT_OK;
}

/* ---- berth config ---------------------------------------------------------------------------- */

int bh_cmd_config(int argc, char **argv)
{
    static const struct bh_cli_command commands[] = {
        {"check", check, "what is wrong with configuration files"},
        {"show", bh_config_show, "the configuration in force, or that a file would put in force"}};

    return bh_cli_dispatch("berth config", "configuration files and the configuration in force",
                           commands, BH_ARRAY_LEN(commands), argc, argv);
}
