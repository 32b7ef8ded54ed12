/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/terminal.c - what commands tell a person: how far they are, and that they were called wrongly
 */
#include "cli/cli.h"
#include <errno.h>
#include <unistd.h>

#define REDRAW_NS   UINT64_C(100000000)
#define PATIENCE_NS UINT64_C(2000000000)
#define BAR         30u

void bh_progress_init(struct bh_progress *p)
{
    *p = (struct bh_progress){.on = isatty(STDERR_FILENO) == 1};
}

void bh_progress_patient(struct bh_progress *p)
{
    bh_progress_init(p);
    p->from_ns = bh_mono_ns() + PATIENCE_NS;
}

void bh_progress_draw(struct bh_progress *p, uint64_t done, uint64_t total, const char *fmt, ...)
{
    char bar[BAR + 1], text[160];
    unsigned fill = total ? (unsigned)(BAR * BH_MIN(done, total) / total) : 0;
    uint64_t now = bh_mono_ns();
    va_list ap;

    if (!p->on || now < p->from_ns || (now - p->drawn_ns < REDRAW_NS && done < total))
        return;
    p->drawn_ns = now;
    memset(bar, '.', BAR);
    memset(bar, '#', fill);
    bar[BAR] = '\0';
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "\r[%s] %s\x1b[K", bar, text);
    fflush(stderr);
}

void bh_progress_end(struct bh_progress *p)
{
    if (p->on && p->drawn_ns)
        fputs("\n", stderr);
    p->drawn_ns = 0;
}

int bh_cli_dispatch(const char *program, const char *about, const struct bh_cli_command *v,
                    size_t n, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help", *near = NULL;

    if (argc > 2 && bh_streq(name, "help")) { /* help COMMAND: COMMAND --help */
        static char flag[] = "--help";
        char **turned = bh_calloc((size_t)argc + 1, sizeof(*turned));
        turned[0] = argv[0];
        memcpy(turned + 1, argv + 2, (size_t)(argc - 2) * sizeof(*turned));
        turned[argc - 1] = flag;
        int status = bh_cli_dispatch(program, about, v, n, argc, turned);
        free(turned);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        if (bh_streq(v[i].name, name))
            return v[i].run(argc - 1, argv + 1);
    if (bh_streq(name, "--help=words")) { /* as bh_opt_words() */
        for (size_t i = 0; i < n; i++)
            printf("%s\t%s\n", v[i].name, v[i].about);
        return BH_EXIT_OK;
    }
    if (!bh_streq(name, "--help") && !bh_streq(name, "-h") && !bh_streq(name, "help")) {
        unsigned best = BH_NEAR;
        for (size_t i = 0; i < n; i++)
            if (bh_is_nearer(name, v[i].name, &best))
                near = v[i].name;
        fprintf(stderr, "%s: unknown command \"%s\"", program, name);
        if (near)
            fprintf(stderr, ", did you mean \"%s\"?", near);
        fprintf(stderr, "\nSee '%s --help'.\n", program);
        return BH_EXIT_USAGE;
    }
    printf("%s - %s\n\nUsage: %s COMMAND [flags]\n\nCommands:\n", program, about, program);
    for (size_t i = 0; i < n; i++)
        printf("  %-13s %s\n", v[i].name, v[i].about);
    printf("\n'%s help COMMAND' tells more, with examples.\n", program);
    return BH_EXIT_OK;
}

int bh_cli_usage(const char *program, int rc, const struct bh_err *err)
{
    if (rc >= 0)
        return BH_EXIT_OK;
    fprintf(stderr, "%s: %s\nSee '%s --help'.\n", program, err->msg, program);
    return BH_EXIT_USAGE;
}

int bh_cli_fail(const char *program, const struct bh_err *err)
{
    fprintf(stderr, "%s: %s\n", program, err->msg);
    return BH_EXIT_FAIL;
}

int bh_cli_print(const char *program, struct bh_buf *text)
{
    (void)fwrite(bh_buf_str(text), 1, text->n, stdout);
    bh_buf_fini(text);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return BH_EXIT_OK;
    fprintf(stderr, "%s: could not write: %s\n", program, strerror(errno));
    return BH_EXIT_FAIL;
}

int bh_cli_read(const char *path, size_t max, struct bh_buf *out)
{
    FILE *f = bh_streq(path, "-") ? stdin : fopen(path, "re");
    char part[65536];
    size_t n;

    if (!f)
        return -errno;
    while ((n = fread(part, 1, sizeof(part), f)) > 0 && out->n <= max)
        bh_buf_add(out, part, n);
    int rc = ferror(f) ? -EIO : out->n > max ? -EFBIG : 0;
    if (f != stdin)
        fclose(f);
    return rc;
}
