/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/completion.c - `berth completion bash|zsh|fish`, and the names that a line may go on with
 *
 * The scripts (cli/completion/) ask each command for its words with --help=words; commands that take
 * names of objects add those of the instance that they would read.
 */
#include <errno.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/view.h"

#define WHO "berth completion"

static const struct {
    const char *shell, *text;
} scripts[] = {
    {
        "bash",
#include "cli/berth.bash.h"
    },
    {
        "zsh",
#include "cli/berth.zsh.h"
    },
    {
        "fish",
#include "cli/berth.fish.h"
    },
};

int bh_cmd_completion(int argc, char **argv)
{
    const struct bh_opt none[] = {{0}};
    struct bh_opt_list shells BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    struct bh_buf out = {0};
    char near[64];
    int rc = bh_opt_parse(none, bh_cli_help(WHO), argc, argv, &shells, &err);

    if (rc == 0 && shells.n != 1)
        rc = bh_err_set(&err, -EINVAL, "say for which shell: bash, zsh or fish");
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    for (size_t i = 0; i < BH_ARRAY_LEN(scripts); i++)
        if (bh_streq(scripts[i].shell, shells.v[0])) {
            bh_buf_adds(&out, scripts[i].text);
            return bh_cli_print(WHO, &out);
        }
    bh_near_word(near, "bash zsh fish", shells.v[0]);
    rc = bh_err_set(&err, -EINVAL, "unknown shell \"%s\"%s: bash, zsh or fish", shells.v[0], near);
    return bh_cli_usage(WHO, rc, &err);
}

static void print_names(struct bh_view *v, bool pods, const char *prefix)
{
    size_t n = 0;
    struct bh_view_row **rows = bh_view_rows(v, pods, &n);

    for (size_t i = 0; i < n;
         i++) /* a pod of another namespace needs -n: it is named in the text */
        printf("%s%s\t%s\n", prefix, bh_view_name(v, rows[i]),
               pods ? bh_rec_text(rows[i]->pod, rows[i]->pod->namespace_).p : "node");
    free(rows);
}

void bh_cli_print_names(const char *program, const char *pods, const char *nodes)
{
    BH_CLEANUP(bh_freep) char *trouble = NULL;
    struct bh_view v = {0};
    struct bh_err err;
    char dir[108];

    if (bh_cli_find_dir(program, NULL, dir, &err) < 0)
        return;
    if (bh_view_open(&v, dir, pods != NULL, &trouble, &err) == 0) {
        if (pods)
            print_names(&v, true, pods);
        if (nodes)
            print_names(&v, false, nodes);
    }
    bh_view_close(&v);
}
