/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/openb.c - the openb trace's CSV files, row by row
 */
#include "simulator/scenario/openb.h"

#include <errno.h>

#define CSV_MAX_BYTES   (256u << 20)
#define CSV_MAX_COLUMNS 32u

/* ---- CSV ---------------------------------------------------------------------------------------
 */

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
    int rc;

    *c = (struct csv){.path = path};
    rc = bh_read_file(path, CSV_MAX_BYTES, &c->text, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "could not read \"%s\": %s", path, strerror(-rc));
    c->next = c->text;
    if (!csv_line(c, c->column, &c->n_columns))
        return bh_err_set(err, -EINVAL, "\"%s\" is empty: a header line is expected", path);
    return 0;
}

static int csv_text(const struct csv *c, const char *column, bool required, const char **ret,
                    struct bh_err *err)
{
    for (unsigned i = 0; i < c->n_columns; i++)
        if (bh_streq(c->column[i], column)) {
            *ret = c->cell[i];
            if (required && !**ret)
                return bh_err_set(err, -EINVAL, "%s:%u: column \"%s\" is empty", c->path, c->line,
                                  column);
            return 0;
        }
    *ret = "";
    return required
               ? bh_err_set(err, -EINVAL, "%s: no column \"%s\" in the header", c->path, column)
               : 0;
}

static int csv_number(const struct csv *c, const char *column, int64_t *ret, struct bh_err *err)
{
    const char *s;
    char *end;
    int rc = csv_text(c, column, true, &s, err);
    long long v;

    if (rc < 0)
        return rc;
    errno = 0;
    v = strtoll(s, &end, 10);
    if (errno || end == s || *end || v < 0)
        return bh_err_set(err, -EINVAL, "%s:%u: column \"%s\": \"%s\" is not a whole number >= 0",
                          c->path, c->line, column, s);
    *ret = v;
    return 0;
}

/* -1 where there is nothing. */
static int csv_seconds(const struct csv *c, const char *column, int64_t *ret, struct bh_err *err)
{
    const char *s;

    *ret = -1;
    (void)csv_text(c, column, false, &s, NULL);
    return *s ? csv_number(c, column, ret, err) : 0;
}

/* ---- openb -------------------------------------------------------------------------------------
 */

static void add_resources(struct bh_buf *b, int64_t cpu_milli, int64_t memory_mib, int64_t gpus,
                          int64_t gpu_milli)
{
    bh_buf_addf(b, "\"cpu\":\"%lldm\",\"memory\":\"%lldMi\"", (long long)cpu_milli,
                (long long)memory_mib);
    if (gpus)
        bh_buf_addf(b, ",\"nvidia.com/gpu\":\"%lld\"", (long long)gpus);
    if (gpu_milli)
        bh_buf_addf(b, ",\"example.com/gpu-milli\":\"%lld\"", (long long)gpu_milli);
}

static void add_text(struct bh_buf *b, const char *s)
{
    bh_buf_add_json_str(b, s, strlen(s));
}

static int node_row(const struct csv *c, struct bh_openb_row *row, struct bh_err *err)
{
    const char *name, *model;
    int64_t cpu = 0, memory = 0, gpus = 0;
    struct bh_buf b = {0};
    int rc = csv_text(c, "sn", true, &name, err);

    if (rc == 0)
        rc = csv_number(c, "cpu_milli", &cpu, err);
    if (rc == 0)
        rc = csv_number(c, "memory_mib", &memory, err);
    if (rc == 0)
        rc = csv_number(c, "gpu", &gpus, err);
    if (rc == 0)
        rc = csv_text(c, "model", false, &model, err);
    if (rc < 0)
        return rc;
    bh_buf_adds(&b, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":");
    add_text(&b, name);
    bh_buf_adds(&b, ",\"labels\":{\"kubernetes.io/hostname\":");
    add_text(&b, name);
    if (*model) {
        bh_buf_adds(&b, ",\"gpu-model\":");
        add_text(&b, model);
    }
    bh_buf_adds(
        &b, "}},\"spec\":{},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]");
    for (int i = 0; i < 2; i++) {
        bh_buf_adds(&b, i ? ",\"capacity\":{" : ",\"allocatable\":{");
        add_resources(&b, cpu, memory, gpus, gpus * 1000);
        bh_buf_adds(&b, ",\"pods\":\"256\"}");
    }
    bh_buf_adds(&b, "}}");
    row->name = name;
    row->json = b;
    return 0;
}

static int pod_row(const struct csv *c, struct bh_openb_row *row, struct bh_err *err)
{
    const char *name, *qos;
    int64_t cpu = 0, memory = 0, gpus = 0, gpu_milli = 0;
    struct bh_buf b = {0};
    int rc = csv_text(c, "name", true, &name, err);

    if (rc == 0)
        rc = csv_number(c, "cpu_milli", &cpu, err);
    if (rc == 0)
        rc = csv_number(c, "memory_mib", &memory, err);
    if (rc == 0)
        rc = csv_number(c, "num_gpu", &gpus, err);
    if (rc == 0)
        rc = csv_number(c, "gpu_milli", &gpu_milli, err);
    if (rc == 0)
        rc = csv_text(c, "qos", false, &qos, err);
    if (rc == 0)
        rc = csv_seconds(c, "creation_time", &row->created_s, err);
    if (rc == 0)
        rc = csv_seconds(c, "deletion_time", &row->deleted_s, err);
    if (rc < 0)
        return rc;
    /* The trace shares GPUs by thousandths; a fraction asks for gpu-milli only, whole GPUs for
     * both. */
    if (gpus == 1 && gpu_milli < 1000)
        gpus = 0;
    else
        gpu_milli *= gpus;
    bh_buf_adds(&b,
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\","
                "\"name\":");
    add_text(&b, name);
    bh_buf_adds(&b, ",\"labels\":{\"qos\":");
    add_text(&b, qos);
    bh_buf_adds(&b, "}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                    "\"registry.k8s.io/pause:3.9\",\"resources\":{\"requests\":{");
    add_resources(&b, cpu, memory, gpus, gpu_milli);
    bh_buf_adds(&b, "}");
    if (gpus || gpu_milli) {
        bh_buf_adds(&b, ",\"limits\":{");
        if (gpus)
            bh_buf_addf(&b, "\"nvidia.com/gpu\":\"%lld\",", (long long)gpus);
        bh_buf_addf(&b, "\"example.com/gpu-milli\":\"%lld\"}", (long long)gpu_milli);
    }
    bh_buf_adds(&b, "}}]}}");
    row->name = name;
    row->json = b;
    return 0;
}

int bh_openb_read(const char *path, bool pods, bh_openb_fn *fn, void *arg, struct bh_err *err)
{
    struct csv c;
    unsigned n;
    int rc = csv_open(&c, path, err);

    while (rc == 0 && csv_line(&c, c.cell, &n)) {
        struct bh_openb_row row = {.pod = pods, .created_s = -1, .deleted_s = -1};
        rc = pods ? pod_row(&c, &row, err) : node_row(&c, &row, err);
        if (rc == 0)
            rc = fn(arg, &row, err);
        bh_buf_fini(&row.json);
    }
    free(c.text);
    return rc;
}
