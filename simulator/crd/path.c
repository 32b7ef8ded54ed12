/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/path.c - the part of JSON path that definitions use
 *
 * Upstream: client-go/util/jsonpath; differences: of several matches the first is shown.
 */
#include "simulator/crd/crd.h"
#include "simulator/server/tree.h"

#include <stdlib.h>

#define STEPS_MAX 64

/* Reads a quoted text; NULL when it is none. */
static const char *quoted(const char *p, char *out, size_t n)
{
    char q = *p;
    size_t len = q ? strcspn(p + 1, (char[]){q, 0}) : 0;
    if ((q != '\'' && q != '"') || p[1 + len] != q || len >= n)
        return NULL;
    memcpy(out, p + 1, len);
    out[len] = 0;
    return p + len + 2;
}

static const struct bh_json *walk(const struct bh_json *v, const char *p, int steps);

/* ?(@.type=="Ready")] and what comes after it. */
static const struct bh_json *filter(const struct bh_json *v, const char *p, int steps)
{
    char name[128], want[256], text[256];
    size_t n = strcspn(p, "=!<>)");
    const char *value = p + n + 2, *end;
    if (strncmp(p, "@.", 2) != 0 || n >= sizeof(name) || n < 3 || (p[n] != '=' && p[n] != '!') ||
        p[n + 1] != '=')
        return NULL;
    snprintf(name, sizeof(name), "%.*s", (int)n - 1, p + 1);
    end = quoted(value, want, sizeof(want));
    if (!end) {
        size_t len = strcspn(value, ")");
        snprintf(want, sizeof(want), "%.*s", (int)BH_MIN(len, sizeof(want) - 1), value);
        end = value + len;
    }
    if (strncmp(end, ")]", 2) != 0)
        return NULL;
    bh_json_each(m, v) {
        const struct bh_json *x = walk(m, name, steps);
        struct bh_buf b = {0};
        bool is = x && bh_tree_scalar(&b, x);
        snprintf(text, sizeof(text), "%s", bh_buf_str(&b));
        bh_buf_fini(&b);
        const struct bh_json *found =
            (is && bh_streq(text, want)) == (p[n] == '=') ? walk(m, end + 2, steps) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* [0] ['a'] [*] [?(...)] */
static const struct bh_json *bracket(const struct bh_json *v, const char *p, int steps)
{
    char name[256];
    if (*p == '?' && p[1] == '(')
        return filter(v, p + 2, steps);
    if (*p == '*' && p[1] == ']') {
        bh_json_each(m, v) {
            const struct bh_json *found = walk(m, p + 2, steps);
            if (found)
                return found;
        }
        return NULL;
    }
    const char *end = quoted(p, name, sizeof(name));
    if (end)
        return *end == ']' ? walk(bh_json_get(v, name), end + 1, steps) : NULL;
    long i = strtol(p, (char **)&end, 10);
    if (end == p || *end != ']' || !v || v->type != BH_JSON_ARRAY)
        return NULL;
    if (i < 0)
        i += (long)v->c.n;
    return i < 0 ? NULL : walk(bh_json_at(v, (size_t)i), end + 1, steps);
}

static const struct bh_json *walk(const struct bh_json *v, const char *p, int steps)
{
    char name[256];
    size_t n = 0;
    if (!v || steps <= 0)
        return NULL;
    if (!*p)
        return v;
    if (*p == '[')
        return bracket(v, p + 1, steps - 1);
    if (*p == '.' && p[1] == '[')
        return bracket(v, p + 2, steps - 1);
    if (*p != '.')
        return NULL;
    for (p++; *p && *p != '.' && *p != '['; p++) {
        if (*p == '\\' && p[1])
            p++;
        if (n + 1 < sizeof(name))
            name[n++] = *p;
    }
    name[n] = 0;
    return walk(bh_json_get(v, name), p, steps - 1);
}

const struct bh_json *bh_crd_path(const struct bh_json *v, const char *path)
{
    size_t n = strlen(path);
    char plain[512];
    if (*path == '{' && path[n - 1] == '}' && n < sizeof(plain)) {
        snprintf(plain, sizeof(plain), "%.*s", (int)n - 2, path + 1);
        path = plain;
    }
    return walk(v, path, STEPS_MAX);
}

const struct bh_json *bh_crd_old_item(const struct bh_json *schema, const struct bh_json *old,
                                      const struct bh_json *item, size_t *ret_i)
{
    const struct bh_json *keys = bh_json_get_list(schema, "x-kubernetes-list-map-keys");

    *ret_i = 0;
    if (!bh_streq(bh_json_get_text(schema, "x-kubernetes-list-type"), "map") ||
        !bh_tree_len(keys) || !old || old->type != BH_JSON_ARRAY)
        return NULL;
    bh_json_each(o, old) {
        bool same = true;
        bh_json_each(k, keys) {
            const char *key = bh_json_cstr(k) ? bh_json_cstr(k) : "";
            const struct bh_json *a = bh_json_get(item, key), *b = bh_json_get(o, key);
            same = same && (a && b ? bh_json_equal(a, b) : a == b);
        }
        if (same)
            return o;
        ++*ret_i;
    }
    return NULL;
}
