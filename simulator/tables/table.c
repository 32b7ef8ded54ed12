/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/table.c - columns and cells of any kind
 *
 * Runs in: the simulator's loop; no state but what columns.data says.
 * Upstream: pkg/printers/storage/storage.go, pkg/printers/internalversion/printers.go (v1.36);
 * differences: rows carry no conditions, kubectl reads none.
 */
#include "simulator/tables/table.h"

#include "simulator/server/sim.h"

#include <pthread.h>

static const char lines[] =
#include "simulator/tables/columns.data.h"
    ;

struct column {
    const char *name; /* NULL: the kind has no more */
    const char *type, *words, *path, *if_absent;
    const struct bh_table_cell *cell; /* NULL: the one before has written it */
    bool wide;
};
struct kind {
    const char *group, *kind;
    const struct column *columns;
};
static struct kind *kinds; /* the first one is for all that are not listed */
static size_t n_kinds;

/* ---- columns.data ---------------------------------------------------------------------------- */

/* Cuts the next part off; without the blanks around it. */
static char *next_part(char **rest, const char *sep)
{
    char *part = strsep(rest, sep);
    part += strspn(part, " ");
    for (size_t n = strlen(part); n && part[n - 1] == ' ';)
        part[--n] = 0;
    return part;
}

static const struct bh_table_cell *find_cell(const char *word)
{
    static const struct bh_table_cell *const files[] = {bh_table_cells_any, bh_table_cells_pod,
                                                        bh_table_cells_kind};
    for (size_t i = 0; i < BH_ARRAY_LEN(files); i++) {
        for (const struct bh_table_cell *c = files[i]; c->word; c++) {
            if (bh_streq(c->word, word))
                return c;
        }
    }
    bh_assert(bh_streq(word, "\""));
    return NULL;
}

static struct column read_column(char *line)
{
    struct column c = {.wide = *line == '*'};
    line++;
    c.name = next_part(&line, "|");
    c.type = next_part(&line, "|");
    char *cell = next_part(&line, "|");
    c.words = next_part(&line, "|");
    c.cell = find_cell(strsep(&cell, " "));
    c.path = cell ? strsep(&cell, " ") : NULL;
    c.if_absent = cell;
    return c;
}

static void load(void)
{
    size_t n = 0;
    for (const char *p = lines; *p; p++)
        n += *p == '\n';
    kinds = bh_calloc(n, sizeof(*kinds));
    struct column *c = bh_calloc(n + 1, sizeof(*c)), *first = c;
    char *rest = bh_strdup(lines);
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (*line != '@') {
            *c++ = read_column(line);
            continue;
        }
        if (c != first) /* else kinds that share their columns */
            first = ++c;
        char *kind = strchr(++line, '/'); /* "apps/Deployment" */
        if (kind)
            *kind++ = 0;
        kinds[n_kinds++] = (struct kind){kind ? line : "", kind ? kind : line, first};
    }
}

static const struct column *columns_of(const struct bh_sim_type *t)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    for (size_t i = 1; i < n_kinds; i++) {
        if (bh_streq(kinds[i].kind, t->kind) && bh_streq(kinds[i].group, t->group))
            return kinds[i].columns;
    }
    return kinds[0].columns;
}

/* ---- the doors ------------------------------------------------------------------------------- */

void bh_table_column(struct bh_buf *out, const char *name, const char *type, const char *format,
                     const char *words, int64_t priority)
{
    bh_tree_comma(out);
    bh_buf_addc(out, '{');
    bh_tree_add_str(out, "name", name);
    bh_tree_add_str(out, "type", type);
    bh_tree_add_str(out, "format", format);
    bh_tree_add_str(out, "description", words);
    bh_buf_addf(out, ",\"priority\":%lld}", (long long)priority);
}

void bh_sim_table_columns(const struct bh_sim_type *t, struct bh_buf *out)
{
    bh_buf_addc(out, '[');
    if (t->custom)
        bh_table_custom_columns(t->custom->columns, out);
    for (const struct column *c = t->custom ? NULL : columns_of(t); c && c->name; c++)
        bh_table_column(out, c->name, c->type, bh_streq(c->name, "Name") ? "name" : "", c->words,
                        c->wide);
    bh_buf_addc(out, ']');
}

void bh_sim_table_cells(const struct bh_sim_type *t, const struct bh_json *obj, int64_t now_ns,
                        struct bh_buf *out)
{
    struct bh_table_row r = {.out = out, .now_s = now_ns / 1000000000};

    bh_buf_addc(out, '[');
    if (t->custom)
        bh_table_custom_cells(t->custom->columns, obj, &r);
    for (const struct column *c = t->custom ? NULL : columns_of(t); c && c->name; c++) {
        r.path = c->path;
        r.if_absent = c->if_absent;
        if (c->cell)
            c->cell->fill(&r, obj);
    }
    bh_buf_addc(out, ']');
}
