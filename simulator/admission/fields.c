/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/fields.c - one field error each: texts, values, syntax of names and labels
 *
 * Upstream: apimachinery/pkg/util/validation/field/errors.go, apimachinery/pkg/api/validation,
 * apimachinery/pkg/util/validation/validation.go (v1.36); differences: a value whose JSON is long
 * is left out of the message, which would be cut otherwise.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/selector.h"

#include <stdio.h>

#define VALUE_BYTES_MAX 160

/* %s and %zu of a path, without printf: an object that is in order makes dozens of paths which
 * are never read. False: fmt has something else, or out is too short. */
static bool simple_path(char *out, size_t cap, size_t *ret_n, const char *fmt, va_list ap)
{
    size_t n = 0;

    for (const char *p = fmt; *p; p++) {
        char digits[21];
        const char *s = p;
        size_t len = 1;
        if (p[0] == '%' && p[1] == 's') {
            s = va_arg(ap, const char *);
            len = strlen(s);
            p++;
        } else if (p[0] == '%' && p[1] == 'z' && p[2] == 'u') {
            len = bh_dec_u64(digits, va_arg(ap, size_t));
            s = digits;
            p += 2;
        } else if (p[0] == '%') {
            return false;
        } else {
            len = strcspn(p, "%");
            p += len - 1;
        }
        if (len >= cap - n)
            return false;
        memcpy(out + n, s, len);
        n += len;
    }
    *ret_n = n;
    return true;
}

const char *bh_adm_path(struct bh_sim_write *w, const char *fmt, ...)
{
    char text[256];
    size_t n;
    struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bool simple = simple_path(text, sizeof(text), &n, fmt, ap);
    va_end(ap);
    const char *s = simple ? bh_arena_strndup(w->arena, text, n) : NULL;
    if (simple)
        return s ? s : "";
    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    s = bh_arena_strndup(w->arena, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return s ? s : "";
}

const char *bh_adm_now(struct bh_sim_write *w)
{
    char now[32];

    bh_time_format_ns(now, bh_sim_now_ns(w->sim));
    return bh_adm_path(w, "%s", now);
}

const char *bh_adm_member(struct bh_sim_write *w, const char *at, const char *member)
{
    return *at ? bh_adm_path(w, "%s.%s", at, member) : member;
}

void bh_adm_each(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                 const char *list,
                 void (*check)(struct bh_sim_write *w, const char *at,
                               const struct bh_json *element))
{
    size_t i = 0;

    bh_json_each(e, bh_tree_arr(holder, list))
        check(w, bh_adm_path(w, "%s%s%s[%zu]", at, *at ? "." : "", list, i++), e);
}

int bh_adm_forbid(struct bh_sim_write *w, const char *fmt, ...)
{
    const struct bh_sim_type *t = w->type;
    char why[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return bh_sim_fail(w->error, 403, "Forbidden", "%s%s%s \"%s\" is forbidden: %s", t->plural,
                       *t->group ? "." : "", t->group,
                       bh_json_get_text(bh_json_get(w->obj, "metadata"), "name"), why);
}

/* ---- kinds of errors ------------------------------------------------------------------------- */

void bh_adm_required(struct bh_sim_write *w, const char *at, const char *member, const char *text)
{
    bh_sim_field_error(w->error, bh_adm_member(w, at, member), "Required value", NULL, "%s", text);
}

void bh_adm_forbidden(struct bh_sim_write *w, const char *at, const char *member, const char *text)
{
    bh_sim_field_error(w->error, bh_adm_member(w, at, member), "Forbidden", NULL, "%s", text);
}

static void with_value(struct bh_sim_write *w, const char *field, const char *kind,
                       const struct bh_json *v, const char *text)
{
    struct bh_buf b = {0};

    if (v)
        bh_json_write(&b, v);
    else
        bh_buf_adds(&b, "\"\"");
    bh_sim_field_error(w->error, field, kind, b.n <= VALUE_BYTES_MAX ? bh_buf_str(&b) : NULL, "%s",
                       text);
    bh_buf_fini(&b);
}

void bh_adm_invalid_value(struct bh_sim_write *w, const char *field, const struct bh_json *v,
                          const char *text)
{
    with_value(w, field, "Invalid value", v, text);
}

void bh_adm_invalid(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                    const char *member, const char *text)
{
    bh_adm_invalid_value(w, bh_adm_member(w, at, member), bh_json_path(holder, member), text);
}

void bh_adm_invalid_text(struct bh_sim_write *w, const char *field, const char *v, const char *text)
{
    struct bh_json j = {.type = BH_JSON_STRING, .s = bh_str_c(v ? v : "")};

    with_value(w, field, "Invalid value", &j, text);
}

void bh_adm_duplicate(struct bh_sim_write *w, const char *field, const char *v)
{
    struct bh_json j = {.type = BH_JSON_STRING, .s = bh_str_c(v ? v : "")};

    with_value(w, field, "Duplicate value", &j, "");
}

void bh_adm_unique(struct bh_sim_write *w, const char *field, const struct bh_json *list,
                   const struct bh_json *element)
{
    const char *name = bh_json_get_text(element, "name");

    for (const struct bh_json *p = list->c.first; *name && p != element; p = p->next) {
        if (bh_tree_is(p, "name", name)) {
            bh_adm_duplicate(w, field, name);
            return;
        }
    }
}

const char *bh_adm_text(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                        const char *member, const char *why)
{
    const char *s = bh_tree_str(holder, member);

    if (s && *s)
        return s;
    bh_adm_required(w, at, member, why);
    return NULL;
}

static void one_of_value(struct bh_sim_write *w, const char *field, const struct bh_json *v,
                         const char *words, bool required)
{
    const char *s = bh_json_cstr(v);
    struct bh_buf b = {0};

    if (!v || v->type == BH_JSON_NULL || (s && !*s)) {
        if (required)
            bh_sim_field_error(w->error, field, "Required value", NULL, "%s", "");
        return;
    }
    if (s && bh_word_at(words, s) >= 0)
        return;
    bh_buf_adds(&b, "supported values: \"");
    for (; *words; words++) {
        if (*words == ' ')
            bh_buf_adds(&b, "\", \"");
        else
            bh_buf_addc(&b, *words);
    }
    bh_buf_addc(&b, '"');
    with_value(w, field, "Unsupported value", v, bh_buf_str(&b));
    bh_buf_fini(&b);
}

void bh_adm_one_of(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                   const char *member, const char *words, bool required)
{
    const char *s = bh_tree_str(holder, member);

    if (!s || !*s || bh_word_at(words, s) < 0) /* no path is written for what is in order */
        one_of_value(w, bh_adm_member(w, at, member), bh_json_path(holder, member), words,
                     required);
}

bool bh_adm_same(const struct bh_json *a, const struct bh_json *b, const char *dotted)
{
    const struct bh_json *x = bh_json_path(a, dotted), *y = bh_json_path(b, dotted);
    bool no_x = !x || x->type == BH_JSON_NULL, no_y = !y || y->type == BH_JSON_NULL;

    return no_x || no_y ? no_x == no_y : bh_json_equal(x, y);
}

void bh_adm_immutable(struct bh_sim_write *w, const char *dotted)
{
    const struct bh_json *v = bh_json_path(w->obj, dotted);

    if (!w->old || bh_adm_same(w->obj, w->old, dotted))
        return;
    if (v && v->type >= BH_JSON_ARRAY) /* declarative validation shows scalars only */
        bh_sim_field_error(w->error, dotted, "Invalid value", "null", "field is immutable");
    else
        bh_adm_invalid(w, "", w->obj, dotted, "field is immutable");
}

/* ---- names and labels ------------------------------------------------------------------------ */

void bh_adm_dns_label(struct bh_sim_write *w, const char *field, const char *v)
{
    size_t n = v ? strlen(v) : 0;

    if (!n)
        bh_sim_field_error(w->error, field, "Required value", NULL, "%s", "");
    else if (n > 63)
        bh_adm_invalid_text(w, field, v, "must be no more than 63 bytes");
    else if (!bh_valid_dns1123_label(v, n))
        bh_adm_invalid_text(w, field, v, BH_SIM_LABEL_TEXT);
}

void bh_adm_dns_subdomain(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                          const char *member)
{
    const char *v = bh_tree_str(holder, member);
    size_t n = v ? strlen(v) : 0;

    if (n > 253)
        bh_adm_invalid(w, at, holder, member, "must be no more than 253 bytes");
    else if (n && !bh_valid_dns1123_subdomain(v, n))
        bh_adm_invalid(w, at, holder, member, BH_SIM_SUBDOMAIN_TEXT);
}

void bh_adm_label_key(struct bh_sim_write *w, const char *field, const char *v)
{
    if (!v || !*v)
        bh_adm_invalid_text(w, field, "", "name part must be non-empty");
    else if (!bh_valid_label_key(v, strlen(v)))
        bh_adm_invalid_text(w, field, v, BH_SIM_KEY_TEXT);
}
