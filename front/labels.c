/* SPDX-License-Identifier: Apache-2.0
 *
 * front/labels.c - --allow-metric-labels and --allow-metric-labels-manifest
 *
 * Upstream: component-base/metrics/options.go (SetLabelAllowList, SetLabelAllowListFromManifest).
 *           Its --help shows the manifest with a member allowListMapping, its code reads a map
 *           without one; both are taken here.
 */
#include "front/labels.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/data/yaml.h"

#define MANIFEST_MAX (1u << 20)

struct bh_label_rules {
    struct bh_map values;   /* "metric,label" -> "value,value" */
    struct bh_map families; /* metric -> itself; saves looking at most keys */
};

void bh_label_rules_free(struct bh_label_rules *r)
{
    struct bh_map_entry *e;

    if (!r)
        return;
    for (size_t it = 0; (e = bh_map_next(&r->values, &it));)
        free(e->value);
    bh_map_fini(&r->values);
    bh_map_fini(&r->families);
    free(r);
}

static void add_rule(struct bh_label_rules *r, const char *key, size_t n, const char *values,
                     size_t n_values)
{
    struct bh_buf b = {0};

    for (size_t i = 0; i < n_values; i++) { /* as the text format has it */
        if (values[i] == '\\' || values[i] == '"' || values[i] == '\n')
            bh_buf_addc(&b, '\\');
        bh_buf_addc(&b, values[i] == '\n' ? 'n' : values[i]);
    }
    free(bh_map_put(&r->values, key, n, bh_buf_take(&b)));
    (void)bh_map_put(&r->families, key, strcspn(key, ","), r);
}

/* metric,label=values, or several in quotes. */
static void add_pairs(struct bh_label_rules *r, const char *p)
{
    bool quoted = *p == '"';

    do {
        size_t n = strcspn(p += quoted, quoted ? "\"" : "");
        const char *eq = memchr(p, '=', n);
        if (eq)
            add_rule(r, p, (size_t)(eq - p), eq + 1, n - (size_t)(eq + 1 - p));
        p += n + (p[n] == '"');
        p += *p == ',';
    } while (*p == '"');
}

static int add_manifest(struct bh_label_rules *r, const char *file, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_json *v = NULL;
    size_t n;
    int rc = bh_read_file(file, MANIFEST_MAX, &text, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", file, strerror(-rc));
    rc = bh_yaml_parse(&a, text, n, 0, &v, err);
    if (rc == 0 && bh_json_get(v, "allowListMapping"))
        v = (struct bh_json *)bh_json_get(v, "allowListMapping");
    if (rc == 0 && v->type != BH_JSON_OBJECT)
        rc =
            bh_err_set(err, -EINVAL, "a map from \"metric,label\" to \"value,value\" was expected");
    bh_json_each(m, rc == 0 ? v : NULL) {
        const char *values = bh_json_cstr(m);
        if (!values || !strchr(m->key.p, ',')) {
            rc = bh_err_set(
                err, -EINVAL,
                "\"%.64s\": \"metric,label\" and a string with its values were expected", m->key.p);
            break;
        }
        add_rule(r, m->key.p, m->key.n, values, strlen(values));
    }
    return rc;
}

struct bh_label_rules *bh_label_rules_new(const struct bh_opt_list *pairs, const char *manifest)
{
    struct bh_label_rules *r = bh_calloc(1, sizeof(*r));
    struct bh_err err = {0};
    int rc = 0;

    for (size_t i = 0; i < pairs->n; i++)
        add_pairs(r, pairs->v[i]);
    if (!pairs->n && *manifest)
        rc = add_manifest(r, manifest, &err);
    if (rc < 0)
        bh_log_error("Failed to parse allow list manifest, ignoring it", bh_kv_s("err", err.msg));
    if (rc == 0 && r->values.len)
        return r;
    bh_label_rules_free(r);
    return NULL;
}

/* ---- applying -------------------------------------------------------------------------------- */

/* Both as they stand in the text format. */
static bool allowed(const char *list, const char *p, size_t n)
{
    for (;;) {
        size_t k = strcspn(list, ",");
        if (k == n && memcmp(list, p, n) == 0)
            return true;
        if (!list[k])
            return false;
        list += k + 1;
    }
}

/* What may stand in the label; NULL: anything. */
static const char *values_of(const struct bh_label_rules *r, const char *family, const char *label,
                             size_t n)
{
    char key[512];
    int k = snprintf(key, sizeof(key), "%s,%.*s", family, (int)n, label);

    if (k < 0 || (size_t)k >= sizeof(key) || (n == 2 && memcmp(label, "le", 2) == 0))
        return NULL; /* a bucket's bound is no label of upstream's */
    return bh_map_get(&r->values, key, (size_t)k);
}

unsigned bh_label_rules_apply(const struct bh_label_rules *r, const char *family, struct bh_str key,
                              struct bh_buf *out)
{
    const char *p = r ? memchr(key.p, '{', key.n) : NULL, *end = key.p + key.n;
    unsigned replaced = 0;

    bh_buf_reset(out);
    if (!p || !bh_map_get(&r->families, family, strlen(family)))
        return 0;
    bh_buf_add(out, key.p, (size_t)(++p - key.p));
    while (p < end && *p != '}') {
        const char *value = memchr(p, '"', (size_t)(end - p)), *q = value ? value + 1 : end;
        while (q < end && *q != '"')
            q += 1 + (*q == '\\');
        if (q >= end)
            return 0; /* no label="value" */
        const char *list = values_of(r, family, p, (size_t)(value - 1 - p));
        bool keep = !list || allowed(list, value + 1, (size_t)(q - value - 1));
        bh_buf_add(out, p, (size_t)((keep ? q : value + 1) - p));
        if (!keep)
            bh_buf_adds(out, "unexpected");
        replaced += !keep;
        bh_buf_addc(out, '"');
        p = q + 1;
        if (p < end && *p == ',')
            bh_buf_addc(out, *p++);
    }
    bh_buf_addc(out, '}');
    return replaced;
}
