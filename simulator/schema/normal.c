/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/schema/normal.c - an object as its Go type writes it: empty members, quantities
 *
 * A request's object is read into a struct and written again before it is stored. What is empty
 * there is left out (omitempty) or written all the same, whatever the client sent; marks of
 * fields.data have it.
 *
 * Upstream: encoding/json on staging/src/k8s.io/api types, apimachinery/pkg/api/resource
 * ParseQuantity (v1.36); differences: packages marked with "-" stay as they were sent.
 */
#include "simulator/schema/schema.h"

#include "common/k8s/quantity.h"

#include <stdlib.h>

static void normalise_object(struct bh_arena *a, const struct bh_oas_type *t, struct bh_json *v);

/* ---- quantities ------------------------------------------------------------------------------ */

/* What upstream keeps as it is: canonical but for sign, point and exponent. digits, point: of the
 * number; exp: its decimal exponent. */
static bool keeps_decimal(const char *s, const char *end, int exp)
{
    char digits[32];
    size_t n = 0, point = 0;
    bool seen = false;

    for (const char *p = s + (*s == '+' || *s == '-'); p < end; p++) {
        if (*p == '.')
            seen = true;
        else if (n < sizeof(digits) - 1)
            digits[n++] = *p, point += seen;
    }
    digits[n] = '\0';
    return n && n <= 18 && *digits != '0' && (exp - (int)point) % 3 == 0 &&
           exp - (int)point >= -9 && (n < 3 || strcmp(digits + n - 3, "000") != 0);
}

static bool is_kept(const char *s)
{
    static const char *const suffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    const char *end =
        s + 1 + strspn(s + (*s == '+' || *s == '-'), "0123456789.") - !(*s == '+' || *s == '-');

    if ((*end == 'e' || *end == 'E') && end[1])
        return keeps_decimal(s, end, (int)strtol(end + 1, NULL, 10));
    for (size_t i = 0; i < BH_ARRAY_LEN(suffixes); i++)
        if (bh_streq(end, suffixes[i]))
            return keeps_decimal(s, end, 3 * ((int)i - 3));
    return false;
}

static void normalise_quantity(struct bh_arena *a, struct bh_json *v)
{
    struct bh_buf b = {0};
    bh_nano q;
    size_t n = v->s.n;

    while (n && strchr(" \t\n", v->s.p[n - 1]))
        n--;
    if (bh_quantity_parse(v->s.p, n, &q))
        return;
    if (n != v->s.n)
        v->s = (struct bh_str){bh_arena_strndup(a, v->s.p, n), n};
    v->type = BH_JSON_STRING;
    if (is_kept(v->s.p))
        return;
    bool binary = n && v->s.p[n - 1] == 'i' && (q < 0 ? -q : q) >= 1000000000;
    bh_quantity_format(&b, q, binary);
    v->s = (struct bh_str){bh_arena_strndup(a, bh_buf_str(&b), b.n), b.n};
    bh_buf_fini(&b);
}

/* ---- members --------------------------------------------------------------------------------- */

static bool is_zero(const struct bh_json *v)
{
    int64_t n;

    switch (v->type) {
    case BH_JSON_NULL:
        return true;
    case BH_JSON_BOOL:
        return !v->b;
    case BH_JSON_NUMBER:
        return bh_json_i64(v, &n) && n == 0;
    case BH_JSON_STRING:
        return v->s.n == 0;
    default:
        return v->c.n == 0;
    }
}

/* form: what is around the value. */
static void normalise_value(struct bh_arena *a, const struct bh_oas_field *f, const char *form,
                            struct bh_json *v)
{
    if (*form) {
        bh_json_each(m, v)
            normalise_value(a, f, form + 1, m);
    } else if (f->type) {
        normalise_object(a, f->type, v);
    } else if (f->leaf == 'q' && (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER)) {
        normalise_quantity(a, v);
    }
}

static bool is_left_out(const struct bh_oas_field *f, const struct bh_json *v)
{
    if (v->type == BH_JSON_NULL)
        return true;
    if (f->always || f->pointer || (f->type && !*f->form) || strchr("tmqxra", f->leaf + !f->leaf))
        return *f->form && !f->always && is_zero(v);
    return is_zero(v);
}

static void add_zero(struct bh_arena *a, const struct bh_oas_field *f, struct bh_json *obj)
{
    struct bh_json *v;

    if (*f->form || f->pointer || strchr("tmra", f->leaf + !f->leaf)) {
        v = bh_json_new(a, BH_JSON_NULL);
    } else if (f->type) {
        v = bh_json_new(a, BH_JSON_OBJECT);
        normalise_object(a, f->type, v);
    } else if (f->leaf == 'b') {
        v = bh_json_new_bool(a, false);
    } else if (strchr("ildx", f->leaf)) {
        v = bh_json_new_i64(a, 0);
    } else {
        v = bh_json_new_cstr(a, f->leaf == 'q' ? "0" : "");
    }
    bh_json_set(a, obj, f->name, v);
}

static void normalise_object(struct bh_arena *a, const struct bh_oas_type *t, struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT || t->plain)
        return;
    for (struct bh_json *m = v->c.first, *next; m; m = next) {
        const struct bh_oas_field *f = bh_oas_field(t, m->key.p);
        next = m->next;
        if (!f)
            continue;
        normalise_value(a, f, f->form, m);
        if (is_left_out(f, m))
            bh_json_remove(v, m);
        else if (*f->form && is_zero(m)) /* stored as protobuf, which knows no empty list */
            m->type = BH_JSON_NULL;
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->fields[i].always && !bh_json_get(v, t->fields[i].name))
            add_zero(a, &t->fields[i], v);
}

void bh_oas_normalise(struct bh_arena *a, const struct bh_oas_type *t, struct bh_json *obj)
{
    if (t)
        normalise_object(a, t, obj);
}
