/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/help.c - what --help of a command says around its flags (help.data)
 */
#include "cli/cli.h"

static const char help[] =
#include "cli/help.data.h"
    ;

const struct bh_opt_usage *bh_cli_help(const char *program)
{
    static struct bh_opt_usage u;
    static struct bh_buf synopsis, about, examples, exits; /* live as long as the process */
    BH_CLEANUP(bh_freep) char *head = bh_asprintf("= %s\n", program);
    const char *p = strstr(help, head);
    size_t n = p ? strcspn(p += strlen(head), "\n") : 0;

    bh_assert(p && !u.program); /* a process runs one command */
    bh_buf_add(&synopsis, p, n);
    for (p += n + 1; *p && *p != '='; p += n + 1) {
        n = strcspn(p, "\n");
        if (*p == ' ') /* as it stands */
            bh_buf_add(bh_is_digit(p[2]) ? &exits : &examples, p, n + 1);
        else if (*p == '.')
            bh_buf_addc(&about, '\n');
        else
            bh_buf_addf(&about, "%s%.*s", about.n && about.p[about.n - 1] != '\n' ? " " : "",
                        (int)n, p);
    }
    u = (struct bh_opt_usage){.program = program,
                              .synopsis = synopsis.p,
                              .about = about.p,
                              .examples = examples.p,
                              .exits = exits.p};
    return &u;
}
