/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/openb.c - the openb trace's CSV files, row by row
 */
#include "simulator/scenario/openb.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "common/data/json.h"

#define CSV_MAX_BYTES   (256u << 20)
#define CSV_MAX_COLUMNS 32u

/* ---- CSV ------------------------------------------------------------------------------------- */

struct csv {
    const char *path;
    char *text, *next;
    unsigned line, n_columns;
    char *column[CSV_MAX_COLUMNS]; /* header */
    char *cell[CSV_MAX_COLUMNS];
};

static unsigned split(char *line, char **out)
{
    unsigned n = 0;

    while (line && n < CSV_MAX_COLUMNS) {
        char *comma = strchr(line, ',');
        if (comma)
            *comma = '\0';
        out[n++] = line;
        line = comma ? comma + 1 : NULL;
    }
    return n;
}

/* The next line's cells; false at the end. Short lines have empty cells. */
static bool csv_line(struct csv *c, char **out, unsigned *n)
{
    static char none[] = "";
    char *line, *end;

    do {
        line = c->next;
        if (!line || !*line)
            return false;
        end = strchr(line, '\n');
        c->next = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        c->line++;
        line[strcspn(line, "\r")] = '\0';
    } while (!*line);
    *n = split(line, out);
    for (unsigned i = *n; i < CSV_MAX_COLUMNS; i++)
        out[i] = none;
    return true;
}

static int csv_open(struct csv *c, const char *path, struct bh_err *err)
{
    size_t n;

    *c = (struct csv){.path = path};
    int rc = bh_read_file(path, CSV_MAX_BYTES, &c->text, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%s\": %s", path, strerror(-rc));
    c->next = c->text;
    if (!csv_line(c, c->column, &c->n_columns))
        return bh_err_set(err, -EINVAL, "\"%s\" is empty: a header line is expected", path);
    return 0;
}

/* A column of the row: "" where there is none. */
static int csv_text(const struct csv *c, const char *column, bool required, const char **ret,
                    struct bh_err *err)
{
    *ret = "";
    for (unsigned i = 0; i < c->n_columns; i++) {
        if (!bh_streq(c->column[i], column))
            continue;
        *ret = c->cell[i];
        return required && !**ret ? bh_err_set(err, -EINVAL, "%s:%u: column \"%s\" is empty",
                                               c->path, c->line, column)
                                  : 0;
    }
    return required
               ? bh_err_set(err, -EINVAL, "%s: no column \"%s\" in the header", c->path, column)
               : 0;
}

static int csv_number(const struct csv *c, const char *column, bool required, int64_t *ret,
                      struct bh_err *err)
{
    const char *s;
    char *end;
    int rc = csv_text(c, column, required, &s, err);
    long long v;

    if (rc < 0 || !*s)
        return rc;
    errno = 0;
    v = strtoll(s, &end, 10);
    if (errno || end == s || *end || v < 0)
        return bh_err_set(err, -EINVAL, "%s:%u: column \"%s\": \"%s\" is not a whole number >= 0",
                          c->path, c->line, column, s);
    *ret = v;
    return 0;
}

/* ---- openb ----------------------------------------------------------------------------------- */

/* What a file is read for: texts and numbers of a row. */
struct fields {
    const char *name, *label;
    int64_t cpu_milli, memory_mib, gpus, gpu_milli, created_s, deleted_s;
};
struct field {
    const char *column;
    size_t at; /* in struct fields */
    bool text, required;
};
#define AT(member) offsetof(struct fields, member)
static const struct field node_fields[] = {{"sn", AT(name), true, true},
                                           {"cpu_milli", AT(cpu_milli), false, true},
                                           {"memory_mib", AT(memory_mib), false, true},
                                           {"gpu", AT(gpus), false, true},
                                           {"model", AT(label), true, false},
                                           {0}};
static const struct field pod_fields[] = {{"name", AT(name), true, true},
                                          {"cpu_milli", AT(cpu_milli), false, true},
                                          {"memory_mib", AT(memory_mib), false, true},
                                          {"num_gpu", AT(gpus), false, true},
                                          {"gpu_milli", AT(gpu_milli), false, true},
                                          {"qos", AT(label), true, false},
                                          {"creation_time", AT(created_s), false, false},
                                          {"deletion_time", AT(deleted_s), false, false},
                                          {0}};

/* The amounts of a row, without what it has none of. */
static struct bh_json *resources(struct bh_arena *a, const struct fields *f, int64_t gpu_milli)
{
    return bh_json_make(a, "cpu: %s, memory: %s, nvidia.com/gpu?: %s, example.com/gpu-milli?: %s",
                        bh_arena_printf(a, "%" PRId64 "m", f->cpu_milli),
                        bh_arena_printf(a, "%" PRId64 "Mi", f->memory_mib),
                        f->gpus ? bh_arena_printf(a, "%" PRId64, f->gpus) : NULL,
                        gpu_milli ? bh_arena_printf(a, "%" PRId64, gpu_milli) : NULL);
}

static struct bh_json *node_of(struct bh_arena *a, const struct fields *f)
{
    struct bh_json *room = resources(a, f, f->gpus * 1000);

    bh_json_set_str(a, room, "pods", "256");
    return bh_json_make(
        a,
        "apiVersion: v1, kind: Node, metadata: {name: %s, labels: {kubernetes.io/hostname: %s, "
        "gpu-model?: %s}}, spec: {}, status: {conditions: [{type: Ready, status: True}], "
        "allocatable: %p, capacity: %p}",
        f->name, f->name, f->label, room, bh_json_clone(a, room));
}

static struct bh_json *pod_of(struct bh_arena *a, struct fields *f)
{
    /* GPUs are shared by thousandths; a fraction asks for gpu-milli only, whole GPUs for both. */
    if (f->gpus == 1 && f->gpu_milli < 1000)
        f->gpus = 0;
    else
        f->gpu_milli *= f->gpus;
    struct bh_json *limits = resources(a, f, f->gpu_milli);
    bh_json_unset(limits, "cpu");
    bh_json_unset(limits, "memory");
    return bh_json_make(a,
                        "apiVersion: v1, kind: Pod, metadata: {namespace: default, name: %s, "
                        "labels: {qos: %s}}, spec: {containers: [{name: c, "
                        "image: 'registry.k8s.io/pause:3.9', "
                        "resources: {requests: %p, limits?: %p}}]}",
                        f->name, f->label, resources(a, f, f->gpu_milli),
                        limits->c.n ? limits : NULL);
}

int bh_openb_read(const char *path, bool pods, bh_openb_fn *fn, void *arg, struct bh_err *err)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct csv c;
    unsigned n;
    int rc = csv_open(&c, path, err);

    while (rc == 0 && csv_line(&c, c.cell, &n)) {
        struct bh_openb_row row = {.pod = pods};
        struct fields f = {.created_s = -1, .deleted_s = -1};
        for (const struct field *x = pods ? pod_fields : node_fields; x->column && rc == 0; x++) {
            void *at = (char *)&f + x->at;
            rc = x->text ? csv_text(&c, x->column, x->required, at, err)
                         : csv_number(&c, x->column, x->required, at, err);
        }
        if (rc == 0) {
            row.name = f.name;
            row.created_s = f.created_s;
            row.deleted_s = f.deleted_s;
            bh_json_write(&row.json, pods ? pod_of(&a, &f) : node_of(&a, &f));
            rc = fn(arg, &row, err);
        }
        bh_buf_fini(&row.json);
        bh_arena_reset(&a);
    }
    free(c.text);
    return rc;
}
