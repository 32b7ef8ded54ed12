/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/opt_help.c - --help from the option table
 *
 * Upstream:   pflag's FlagUsagesWrapped (layout); differences: placeholders come from the table.
 */
#include "common/base/buf.h"
#include "common/base/opt.h"

#define COLUMNS         100
#define HELP_COLUMN_MAX 44

/* text in [indent, COLUMNS), broken at blanks; the cursor stands at indent already. */
static void add_wrapped(struct bh_buf *b, const char *text, size_t indent)
{
    size_t room = COLUMNS - indent;

    while (strlen(text) > room) {
        size_t cut = room;
        while (cut && text[cut] != ' ')
            cut--;
        if (!cut)
            cut = strcspn(text, " ");
        if (!text[cut])
            break;
        bh_buf_addf(b, "%.*s\n%*s", (int)cut, text, (int)indent, "");
        text += cut + 1;
    }
    bh_buf_addf(b, "%s\n", text);
}

static const char *placeholder(const struct bh_opt *o)
{
    static const char *const usual[] = {
        [BH_OPT_STR] = "TEXT",         [BH_OPT_INT] = "N",      [BH_OPT_DURATION_NS] = "DURATION",
        [BH_OPT_STRLIST] = "TEXT,...", [BH_OPT_INT32] = "N",    [BH_OPT_LEVEL] = "N",
        [BH_OPT_FLOAT] = "NUMBER",     [BH_OPT_IP] = "ADDRESS", [BH_OPT_ARRAY] = "TEXT"};
    if (o->kind == BH_OPT_BOOL || o->kind == BH_OPT_WORD)
        return NULL;
    return o->arg ? o->arg : usual[o->kind];
}

static void add_left(struct bh_buf *b, const struct bh_opt *o)
{
    if (o->letter)
        bh_buf_addf(b, "  -%c, --%s", o->letter, o->name);
    else
        bh_buf_addf(b, "      --%s", o->name);
    if (placeholder(o))
        bh_buf_addf(b, " %s", placeholder(o));
}

static void add_option(struct bh_buf *b, const struct bh_opt *o, size_t column)
{
    struct bh_buf left = {0}, right = {0};

    add_left(&left, o);
    bh_buf_adds(&right, o->help);
    /* The default is the target's value before parsing; help is asked for alone, so it still
     * stands. */
    struct bh_buf value = {0};
    bh_opt_value(o, &value);
    const char *v = bh_buf_str(&value);
    if (o->kind == BH_OPT_STRLIST || o->kind == BH_OPT_ARRAY) {
        if (((const struct bh_opt_list *)o->target)->n) /* "[a,b]" */
            bh_buf_addf(&right, " (default %.*s)", (int)value.n - 2, v + 1);
    } else if (!strstr(o->help, "(default") && *v && !bh_streq(v, "0") && !bh_streq(v, "0s") &&
               !bh_streq(v, "false")) {
        bool text = o->kind == BH_OPT_STR || o->kind == BH_OPT_WORD || o->kind == BH_OPT_CHOICE;
        bh_buf_addf(&right, text ? " (default \"%s\")" : " (default %s)", v);
    }
    bh_buf_fini(&value);
    if (left.n + 2 > column)
        bh_buf_addf(b, "%s\n%*s", left.p, (int)column, "");
    else
        bh_buf_addf(b, "%-*s", (int)column, left.p);
    add_wrapped(b, right.p, column);
    bh_buf_fini(&left);
    bh_buf_fini(&right);
}

static void add_flags(struct bh_buf *b, const struct bh_opt *table)
{
    static bool unused;
    const struct bh_opt usual[] = {
        {.name = "help", .letter = 'h', .target = &unused, .help = "print this text"},
        {.name = "version", .target = &unused, .help = "print the version"},
    };
    size_t n_usual = BH_ARRAY_LEN(usual); /* one less when the table says what --version does */
    size_t column = sizeof("  -h, --help") + 2;
    struct bh_buf left = {0};

    for (const struct bh_opt *o = table; o->name; o++) {
        if (o->kind == BH_OPT_SECTION)
            continue;
        bh_buf_reset(&left);
        add_left(&left, o);
        if (bh_streq(o->name, "version"))
            n_usual = 1;
        if (left.n + 3 <= HELP_COLUMN_MAX)
            column = BH_MAX(column, left.n + 3);
    }
    bh_buf_fini(&left);
    /* What belongs to no section stands first, and --help with it. */
    const struct bh_opt *o = table;
    for (; o->name && o->kind != BH_OPT_SECTION; o++)
        add_option(b, o, column);
    for (size_t i = 0; i < n_usual; i++)
        add_option(b, &usual[i], column);
    for (; o->name; o++) {
        if (o->kind == BH_OPT_SECTION)
            bh_buf_addf(b, "\n%s:\n", o->help);
        else
            add_option(b, o, column);
    }
}

void bh_opt_help(const struct bh_opt *table, const struct bh_opt_usage *usage)
{
    struct bh_buf b = {0};

    if (usage->about) {
        const char *text = usage->about;
        while (*text) {
            size_t n = strcspn(text, "\n");
            char *line = bh_strndup(text, n);
            add_wrapped(&b, line, 0);
            free(line);
            text += n + (text[n] == '\n');
        }
        bh_buf_addc(&b, '\n');
    }
    bh_buf_addf(&b, "Usage:\n  %s %s\n\nFlags:\n", usage->program,
                usage->synopsis ? usage->synopsis : "[flags]");
    add_flags(&b, table);
    if (usage->examples)
        bh_buf_addf(
            &b, "\nExamples:\n%s%s", usage->examples,
            usage->examples[0] && usage->examples[strlen(usage->examples) - 1] == '\n' ? "" : "\n");
    if (usage->exits)
        bh_buf_addf(&b, "\nExit status:\n%s%s", usage->exits,
                    usage->exits[0] && usage->exits[strlen(usage->exits) - 1] == '\n' ? "" : "\n");
    fputs(b.p, stdout);
    fflush(stdout);
    bh_buf_fini(&b);
}

void bh_opt_words(const struct bh_opt *table, const struct bh_opt_usage *usage, bool first)
{
    const char *s = usage->synopsis ? usage->synopsis : "";
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz-|"); /* "nodes|pods [flags]" */

    for (size_t i = 0, end; first && memchr(s, '|', n) && i < n; i = end + 1) {
        end = i + strcspn(s + i, "| ");
        printf("%.*s\n", (int)(end - i), s + i);
    }
    for (const struct bh_opt *o = table; o->name; o++) {
        const char *value = placeholder(o);
        if (o->kind == BH_OPT_SECTION)
            continue;
        printf("--%s%s%s\t%s\n", o->name, value ? "=" : "", value ? value : "", o->help);
        if (o->letter)
            printf("-%c%s%s\t%s\n", o->letter, value ? "=" : "", value ? value : "", o->help);
    }
    printf("--help\tprint this text\n");
}
