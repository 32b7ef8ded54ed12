/* SPDX-License-Identifier: Apache-2.0
 *
 * nodemetrics/parse.c - replies of Prometheus, metrics-server and load watcher as one text
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "common/k8s/quantity.h"
#include "nodemetrics/nodemetrics.h"

#define NAME_MAX_BYTES 253u /* of a node */
#define OUTDATED_S     300  /* behind the newest of its list: the kubelet does not answer */

void bh_nm_fini(struct bh_nm *m)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(&m->nodes, &it));)
        bh_buf_fini(e->value);
    bh_map_fini_values(&m->nodes);
}

/* ---- what may stand in the text -------------------------------------------------------------- */

static bool is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:");

    return n && n <= NAME_MAX_BYTES && !s[n];
}

static bool is_word(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n < 32 && !s[n];
}

static void add(struct bh_nm *m, const char *node, const char *type, const char *op, double v)
{
    if (!is_name(node) || !*type || !is_word(type) || !is_word(op) || !isfinite(v)) {
        m->n_left_out++;
        return;
    }
    struct bh_buf *b = bh_map_get(&m->nodes, node, strlen(node));
    if (!b) {
        b = bh_calloc(1, sizeof *b);
        (void)bh_map_put(&m->nodes, node, strlen(node), b);
    }
    bh_buf_addf(b, " %s/%s=%.17g", type, op, v);
}

/* *ret stays as it is when v is none. */
static bool number(const struct bh_json *v, double *ret)
{
    char *end;

    if (!v || (v->type != BH_JSON_NUMBER && v->type != BH_JSON_STRING) || !v->s.n)
        return false;
    double d = strtod(v->s.p, &end);
    if (end != v->s.p + v->s.n) /* a text may hold NUL */
        return false;
    *ret = d;
    return true;
}

/* ---- load watcher ---------------------------------------------------------------------------- */

int bh_nm_add_watcher(struct bh_nm *m, const struct bh_json *v, struct bh_err *err)
{
    const struct bh_json *window = bh_json_get(v, "window");
    const struct bh_json *nodes = bh_json_path(v, "data.NodeMetricsMap");

    if (!nodes || nodes->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EBADMSG, "data.NodeMetricsMap: an object is needed");
    m->start_s = bh_json_get_i64(window, "start", 0);
    m->end_s = bh_json_get_i64(window, "end", 0);
    if (!m->end_s)
        m->end_s = bh_json_get_i64(v, "timestamp", 0);
    bh_json_each(node, nodes)
        bh_json_each(k, bh_json_get(node, "metrics")) {
            double value = NAN;
            (void)number(bh_json_get(k, "value"), &value);
            add(m, node->key.p, bh_json_get_text(k, "type"), bh_json_get_text(k, "operator"),
                value);
        }
    return 0;
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

int bh_nm_add_vector(struct bh_nm *m, const struct bh_json *v, const char *node_label,
                     const char *word, struct bh_err *err)
{
    const struct bh_json *list = bh_json_path(v, "data.result");
    char type[32] = "", op[32] = "";

    if (!bh_streq(bh_json_get_text(v, "status"), "success"))
        return bh_err_set(err, -EBADMSG, "Prometheus says: %s",
                          *bh_json_get_text(v, "error") ? bh_json_get_text(v, "error")
                                                        : "no success");
    if (!bh_streq(bh_json_get_text(bh_json_get(v, "data"), "resultType"), "vector"))
        return bh_err_set(err, -EBADMSG, "data.resultType: a vector is needed");
    (void)sscanf(word, "%31[^/]/%31s", type, op);
    bh_json_each(r, list) {
        const struct bh_json *at = bh_json_get(r, "value");
        BH_CLEANUP(bh_freep)
        char *node = bh_strdup(bh_json_get_text(bh_json_get(r, "metric"), node_label));
        char *port = strrchr(node, ':');
        double when = 0, value = NAN;
        if (port && port[1] && !port[1 + strspn(port + 1, "0123456789")])
            *port = '\0'; /* instance="node-a:9100" */
        (void)number(bh_json_at(at, 0), &when);
        (void)number(bh_json_at(at, 1), &value);
        add(m, node, type, op, 100 * value);
        if (when > 0 && when < 1e12)
            m->end_s = BH_MAX(m->end_s, (int64_t)when);
    }
    return 0;
}

/* ---- metrics-server -------------------------------------------------------------------------- */

static double amount(const struct bh_json *list, const char *name)
{
    const char *text = bh_json_get_text(list, name);
    bh_nano v;

    return *text && bh_quantity_parse(text, strlen(text), &v) == 0 ? (double)v : NAN;
}

static const struct bh_json *capacity_of(const struct bh_map *by_name, const char *node)
{
    return bh_json_path(bh_map_get(by_name, node, strlen(node)), "status.capacity");
}

static int64_t moment(const struct bh_json *item)
{
    int64_t ns = 0;

    return bh_time_parse_ns(bh_json_get_text(item, "timestamp"), &ns) == 0 ? ns / 1000000000 : 0;
}

int bh_nm_add_usage(struct bh_nm *m, const struct bh_json *metrics, const struct bh_json *nodes,
                    struct bh_err *err)
{
    const struct bh_json *items = bh_json_get_list(metrics, "items");
    struct bh_map by_name BH_CLEANUP(bh_map_fini) = {0};

    if (!items || !bh_json_get_list(nodes, "items"))
        return bh_err_set(err, -EBADMSG, "items: a list is needed");
    bh_json_each(n, bh_json_get_list(nodes, "items")) {
        const char *name = bh_json_get_text(bh_json_get(n, "metadata"), "name");
        (void)bh_map_put(&by_name, name, strlen(name), n);
    }
    bh_json_each(i, items)
        m->end_s = BH_MAX(m->end_s, moment(i));
    bh_json_each(i, items) {
        const char *name = bh_json_get_text(bh_json_get(i, "metadata"), "name");
        const struct bh_json *has = capacity_of(&by_name, name), *usage = bh_json_get(i, "usage");
        if (moment(i) < m->end_s - OUTDATED_S) {
            m->n_left_out++;
            continue;
        }
        /* A node without a capacity gives no number: it is left out. */
        add(m, name, "CPU", "Latest", 100 * amount(usage, "cpu") / amount(has, "cpu"));
        add(m, name, "Memory", "Latest", 100 * amount(usage, "memory") / amount(has, "memory"));
    }
    m->start_s = m->end_s;
    return 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct bh_map_entry *const *)a)->key, (*(struct bh_map_entry *const *)b)->key);
}

void bh_nm_text(const struct bh_nm *m, struct bh_buf *out)
{
    struct bh_map_entry **v = bh_calloc(m->nodes.len + 1, sizeof(struct bh_map_entry *)), *e;
    size_t n = 0;

    for (size_t it = 0; (e = bh_map_next(&m->nodes, &it));)
        v[n++] = e;
    qsort(v, n, sizeof(struct bh_map_entry *), by_name);
    bh_buf_addf(out, "berth-node-metrics 1\nwindow %" PRId64 " %" PRId64 "\n", m->start_s,
                m->end_s);
    for (size_t i = 0; i < n; i++)
        bh_buf_addf(out, "%s%s\n", v[i]->key, bh_buf_str(v[i]->value));
    free(v);
}
