/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/field.c - lists of errors, and what is told about single values
 *
 * Upstream: apimachinery/pkg/util/validation/field, apimachinery/pkg/util/errors (Aggregate).
 */

#include "common/base/base64.h"
#include "common/base/buf.h"
#include "common/k8s/syntax.h"
#include "scheduler/config/field.h"

void bh_field_error(struct bh_field_errors *e, const char *fmt, ...)
{
    struct bh_buf b = {0};
    bool known = false;
    va_list ap;

    if (e->n == BH_FIELD_ERRORS_MAX) {
        e->dropped++;
        return;
    }
    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < e->n && !known; i++)
        known = bh_streq(e->v[i], bh_buf_str(&b));
    if (!known) {
        uint32_t cap = e->cap;
        BH_ARENA_GROW(e->a, e->v, e->n, cap);
        BH_ARENA_GROW(e->a, e->lines, e->n, e->cap);
        e->lines[e->n] = e->line;
        e->v[e->n++] = bh_arena_strndup(e->a, bh_buf_str(&b), b.n);
    }
    bh_buf_fini(&b);
}

static const char *join(const struct bh_field_errors *e, bool brackets)
{
    struct bh_buf b = {0};

    if (brackets)
        bh_buf_addc(&b, '[');
    for (uint32_t i = 0; i < e->n; i++) {
        if (i)
            bh_buf_adds(&b, ", ");
        bh_buf_adds(&b, e->v[i]);
    }
    if (e->dropped)
        bh_buf_addf(&b, " ... and %u more", e->dropped);
    if (brackets)
        bh_buf_addc(&b, ']');
    const char *text = bh_arena_strndup(e->a, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return text;
}

const char *bh_field_errors_text(const struct bh_field_errors *e)
{
    return join(e, e->n > 1);
}

const char *bh_field_errors_list(const struct bh_field_errors *e)
{
    return join(e, false);
}

const char *bh_field_value(struct bh_arena *a, const struct bh_json *v)
{
    struct bh_buf b = {0};

    bh_json_write(&b, v);
    const char *text = bh_arena_strndup(a, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return text;
}

bool bh_field_qualified_name(struct bh_field_errors *e, const char *path, const char *s)
{
    struct bh_buf why = {0};
    bool bad = bh_label_key_why(&why, s, strlen(s));

    for (const char *p = bh_buf_str(&why), *end; bad && p; p = end ? end + 2 : NULL) {
        end = strstr(p, "; "); /* between two explanations */
        bh_field_error(e, "%s: Invalid value: \"%s\": %.*s", path, s,
                       end ? (int)(end - p) : (int)strlen(p), p);
    }
    bh_buf_fini(&why);
    return bad;
}

int64_t bh_field_base64(struct bh_arena *a, const char *s, struct bh_str *ret)
{
    size_t n = strlen(s), len;
    char *bytes = bh_arena_alloc(a, BH_BASE64_ROOM(n) + 1);

    if (bh_base64_decode(s, n, bytes, &len) < 0)
        return (int64_t)len;
    bytes[len] = 0;
    *ret = (struct bh_str){bytes, len};
    return -1;
}
