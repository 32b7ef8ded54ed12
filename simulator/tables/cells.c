/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/cells.c - one cell of a row: how it is written, and the words of columns.data
 * that any kind can use
 *
 * Runs in: the simulator's loop; no state.
 * Upstream: pkg/printers/internalversion/printers.go (helpers at its end), apimachinery
 * meta/v1/helpers.go FormatLabelSelector; differences: none known.
 */
#include "simulator/tables/table.h"

#include "common/k8s/quantity.h"

void bh_cell_str(struct bh_table_row *r, const char *s)
{
    bh_tree_comma(r->out);
    bh_buf_add_json_str(r->out, s ? s : "", s ? strlen(s) : 0);
}

void bh_cell_or(struct bh_table_row *r, const char *s, const char *if_empty)
{
    bh_cell_str(r, s && *s ? s : if_empty);
}

void bh_cell_fmt(struct bh_table_row *r, const char *fmt, ...)
{
    struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    bh_cell_buf(r, &b, "");
}

void bh_cell_buf(struct bh_table_row *r, struct bh_buf *b, const char *if_empty)
{
    bh_tree_comma(r->out);
    if (b->n)
        bh_buf_add_json_str(r->out, b->p, b->n);
    else
        bh_buf_add_json_str(r->out, if_empty, strlen(if_empty));
    bh_buf_fini(b);
}

void bh_cell_i64(struct bh_table_row *r, int64_t v)
{
    bh_tree_comma(r->out);
    bh_buf_addi64(r->out, v);
}

void bh_cell_bool(struct bh_table_row *r, bool v)
{
    bh_tree_comma(r->out);
    bh_buf_adds(r->out, v ? "true" : "false");
}

void bh_cell_name(struct bh_table_row *r, const struct bh_json *obj)
{
    bh_cell_str(r, bh_tree_str(obj, "metadata.name"));
}

void bh_cell_since(struct bh_table_row *r, const char *time_text)
{
    struct bh_buf b = {0};
    int64_t s;
    int32_t ns;

    if (!time_text || bh_time_parse(time_text, strlen(time_text), &s, &ns) < 0)
        bh_buf_adds(&b, "<unknown>");
    else
        bh_human_duration(&b, r->now_s - s);
    bh_cell_buf(r, &b, "");
}

void bh_cell_age(struct bh_table_row *r, const struct bh_json *obj)
{
    bh_cell_since(r, bh_tree_str(obj, "metadata.creationTimestamp"));
}

void bh_cell_join(struct bh_buf *b, const char *sep, const char *s)
{
    if (!s || !*s)
        return;
    if (b->n)
        bh_buf_adds(b, sep);
    bh_buf_adds(b, s);
}

void bh_cell_lower(struct bh_buf *b, const char *s)
{
    for (; s && *s; s++)
        bh_buf_addc(b, *s >= 'A' && *s <= 'Z' ? (char)(*s + 32) : *s);
}

/* ---- selectors as text ----------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted, joined by commas; frees the texts. */
static void cell_sorted(struct bh_table_row *r, char **part, size_t n)
{
    struct bh_buf b = {0};

    qsort(part, n, sizeof(*part), by_text);
    for (size_t i = 0; i < n; i++) {
        if (i)
            bh_buf_addc(&b, ',');
        bh_buf_adds(&b, part[i]);
        free(part[i]);
    }
    free(part);
    bh_cell_buf(r, &b, "<none>");
}

static size_t map_parts(char **part, const struct bh_json *labels)
{
    size_t n = 0;

    bh_json_each(l, labels) {
        const char *v = bh_json_cstr(l);
        part[n++] = bh_asprintf("%s=%s", l->key.p, v ? v : "");
    }
    return n;
}

static void labels_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *labels = bh_tree_obj(o, r->path);
    char **part = bh_calloc((labels ? labels->c.n : 0) + 1, sizeof(*part));

    cell_sorted(r, part, map_parts(part, labels));
}

static char *expression_text(const struct bh_json *e)
{
    const char *key = bh_tree_str(e, "key"), *op = bh_tree_str(e, "operator");
    const struct bh_json *values = bh_tree_arr(e, "values");
    struct bh_buf b = {0};
    size_t n = 0;

    key = key ? key : "";
    if (!op || bh_streq(op, "Exists"))
        return bh_strdup(key);
    if (bh_streq(op, "DoesNotExist"))
        return bh_asprintf("!%s", key);
    char **v = bh_calloc((values ? values->c.n : 0) + 1, sizeof(*v));
    bh_json_each(e2, values)
        v[n++] = (char *)(bh_json_cstr(e2) ? bh_json_cstr(e2) : "");
    qsort(v, n, sizeof(*v), by_text);
    bh_buf_addf(&b, "%s %s (", key, bh_streq(op, "In") ? "in" : "notin");
    for (size_t i = 0; i < n; i++)
        bh_buf_addf(&b, "%s%s", i ? "," : "", v[i]);
    bh_buf_addc(&b, ')');
    free(v);
    return bh_buf_take(&b);
}

static void selector_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *sel = bh_tree_obj(o, r->path);
    const struct bh_json *labels = bh_tree_obj(sel, "matchLabels");
    const struct bh_json *exprs = bh_tree_arr(sel, "matchExpressions");
    size_t n = (labels ? labels->c.n : 0) + (exprs ? exprs->c.n : 0);
    char **part = bh_calloc(n + 1, sizeof(*part));

    n = map_parts(part, labels);
    bh_json_each(e, exprs)
        part[n++] = expression_text(e);
    cell_sorted(r, part, n);
}

/* ---- look-ups by path ------------------------------------------------------------------------ */

static void text_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_or(r, bh_tree_str(o, r->path), r->if_absent);
}

static void value_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};

    bh_tree_scalar(&b, bh_json_path(o, r->path));
    bh_cell_buf(r, &b, r->if_absent);
}

static void number_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_i64(r, bh_tree_i64(o, r->path, r->if_absent ? strtol(r->if_absent, NULL, 10) : 0));
}

static void bool_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_bool(r, bh_tree_bool(o, r->path, r->if_absent && bh_streq(r->if_absent, "true")));
}

static void since_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *time = bh_tree_str(o, r->path);

    if (!time && r->if_absent)
        bh_cell_str(r, r->if_absent);
    else
        bh_cell_since(r, time);
}

static void count_cell(struct bh_table_row *r, const struct bh_json *o)
{
    size_t n = bh_tree_len(bh_json_path(o, r->path));

    if (r->if_absent)
        n += bh_tree_len(bh_json_path(o, r->if_absent));
    bh_cell_i64(r, (int64_t)n);
}

/* r->path: the list, and behind "[]." the member of its elements. */
static void join_cell(struct bh_table_row *r, const struct bh_json *o)
{
    char list[80];
    const char *each = strstr(r->path, "[]");
    struct bh_buf b = {0}, text = {0};

    snprintf(list, sizeof(list), "%.*s", (int)(each - r->path), r->path);
    bh_json_each(e, bh_tree_arr(o, list)) {
        bh_buf_reset(&text);
        bh_tree_scalar(&text, each[2] ? bh_json_get(e, each + 3) : e);
        bh_cell_join(&b, ",", bh_buf_str(&text));
    }
    bh_buf_fini(&text);
    bh_cell_buf(r, &b, r->if_absent);
}

static void containers_cells(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf names = {0}, images = {0};
    bool first = true;

    bh_json_each(c, bh_tree_arr(bh_tree_obj(o, r->path), "containers")) {
        bh_buf_addf(&names, "%s%s", first ? "" : ",", bh_json_get_text(c, "name"));
        bh_buf_addf(&images, "%s%s", first ? "" : ",", bh_json_get_text(c, "image"));
        first = false;
    }
    bh_cell_buf(r, &names, "");
    bh_cell_buf(r, &images, "");
}

static void reference_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *ref = bh_tree_obj(o, r->path);

    bh_cell_fmt(r, "%s/%s", bh_json_get_text(ref, "kind"), bh_json_get_text(ref, "name"));
}

const struct bh_table_cell bh_table_cells_any[] = {
    {"name", bh_cell_name},
    {"age", bh_cell_age},
    {"text", text_cell},
    {"value", value_cell},
    {"number", number_cell},
    {"bool", bool_cell},
    {"since", since_cell},
    {"count", count_cell},
    {"join", join_cell},
    {"labels", labels_cell},
    {"selector", selector_cell},
    {"reference", reference_cell},
    {"containers", containers_cells},
    {NULL, NULL},
};
