/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/schema/check.c - members that do not exist, stand twice or have the wrong JSON type
 *
 * Runs in: the simulator's loop, for every body. The path is written down only when there is
 * something to say: it is kept as a chain of frames on the stack.
 * Upstream: apimachinery/pkg/runtime/serializer/json (strict decoding), sigs.k8s.io/json;
 * differences: the type mismatch names the path as JSON has it.
 */
#include "simulator/schema/schema.h"

#include "common/k8s/codec.h"
#include "common/k8s/quantity.h"

#include <errno.h>

#define NAMED_MAX 16

struct frame {
    const struct frame *up;
    const char *name; /* NULL: index */
    size_t index;
};

static void put_path(struct bh_buf *b, const struct frame *f)
{
    if (!f)
        return;
    put_path(b, f->up);
    if (!f->name)
        bh_buf_addf(b, "[%zu]", f->index);
    else
        bh_buf_addf(b, "%s%s", b->n ? "." : "", f->name);
}

void bh_oas_unknown(struct bh_oas_report *rep, const char *what, const char *path, const char *name)
{
    if (rep->n++ < NAMED_MAX)
        bh_buf_addf(&rep->unknown, "%s field \"%.200s%s%.100s\"\n", what, path, *path ? "." : "",
                    name);
}

static void unknown(struct bh_oas_report *rep, const char *what, const struct frame *at,
                    const char *name)
{
    struct bh_buf path = {0};
    put_path(&path, at);
    bh_oas_unknown(rep, what, bh_buf_str(&path), name);
    bh_buf_fini(&path);
}

static void mismatch(struct bh_oas_report *rep, const struct frame *at, const struct bh_json *v,
                     const char *want)
{
    static const char *const names[] = {"null", "bool", "number", "string", "array", "object"};
    struct bh_buf path = {0};
    if (*rep->mismatch)
        return;
    put_path(&path, at);
    snprintf(rep->mismatch, sizeof(rep->mismatch),
             "json: cannot unmarshal %s into Go struct field %.200s of type %s", names[v->type],
             bh_buf_str(&path), want);
    bh_buf_fini(&path);
}

static void check_leaf(char leaf, const struct bh_json *v, const struct frame *at,
                       struct bh_oas_report *rep)
{
    int64_t n;
    int32_t ns;
    bh_nano ignored;
    switch (leaf) {
    case 's':
    case 'y':
    case 't':
    case 'm':
        if (v->type != BH_JSON_STRING)
            mismatch(rep, at, v, leaf == 't' || leaf == 'm' ? "v1.Time" : "string");
        else if (leaf == 'y' || (leaf != 's' && v->s.n && bh_time_parse(v->s.p, v->s.n, &n, &ns)))
            rep->careful = true;
        break;
    case 'b':
        if (v->type != BH_JSON_BOOL)
            mismatch(rep, at, v, "bool");
        break;
    case 'i':
    case 'l':
        if (!bh_json_i64(v, &n) || (leaf == 'i' && (n < INT32_MIN || n > INT32_MAX)))
            mismatch(rep, at, v, leaf == 'i' ? "int32" : "int64");
        break;
    case 'd':
        if (v->type != BH_JSON_NUMBER)
            mismatch(rep, at, v, "float64");
        break;
    case 'q':
    case 'x':
        if (v->type != BH_JSON_STRING && v->type != BH_JSON_NUMBER)
            mismatch(rep, at, v, leaf == 'q' ? "resource.Quantity" : "intstr.IntOrString");
        else if (leaf == 'q' ? bh_quantity_parse(v->s.p, v->s.n, &ignored) != 0
                             : v->type == BH_JSON_NUMBER)
            rep->careful = true;
        break;
    default: /* anything */
        rep->careful = true;
        break;
    }
}

static void check_object(const struct bh_oas_type *t, struct bh_json *v, const struct frame *at,
                         struct bh_oas_report *rep);

static void check_value(const struct bh_oas_field *f, const char *form, struct bh_json *v,
                        const struct frame *at, struct bh_oas_report *rep)
{
    struct frame here = {.up = at};
    if (v->type == BH_JSON_NULL)
        return;
    if (!*form) {
        if (f->type)
            check_object(f->type, v, at, rep);
        else
            check_leaf(f->leaf, v, at, rep);
        return;
    }
    if (v->type != (*form == '[' ? BH_JSON_ARRAY : BH_JSON_OBJECT)) {
        mismatch(rep, at, v, *form == '[' ? "[]" : "map[string]");
        return;
    }
    bh_json_each(m, v) {
        here.name = *form == '{' ? m->key.p : NULL;
        check_value(f, form + 1, m, &here, rep);
        here.index++;
    }
}

static void check_object(const struct bh_oas_type *t, struct bh_json *v, const struct frame *at,
                         struct bh_oas_report *rep)
{
    if (v->type == BH_JSON_NULL)
        return;
    if (v->type != BH_JSON_OBJECT) {
        mismatch(rep, at, v, t->name);
        return;
    }
    for (struct bh_json *m = v->c.first, *next; m; m = next) {
        const struct bh_oas_field *f = bh_oas_field(t, m->key.p);
        struct frame here = {.up = at, .name = m->key.p};
        next = m->next;
        if (f) {
            check_value(f, f->form, m, &here, rep);
        } else {
            unknown(rep, "unknown", at, m->key.p);
            bh_json_remove(v, m);
        }
    }
}

void bh_oas_check(const struct bh_oas_type *t, struct bh_json *obj, const char *at,
                  struct bh_oas_report *rep)
{
    struct frame here = {.name = at};
    check_object(t, obj, at ? &here : NULL, rep);
}

static void repeats(const struct bh_json *v, const struct frame *at, struct bh_oas_report *rep)
{
    struct frame here = {.up = at};
    bh_json_each(m, v) {
        here.name = v->type == BH_JSON_OBJECT ? m->key.p : NULL;
        for (const struct bh_json *o = v->c.first; here.name && o != m && rep->n < NAMED_MAX;
             o = o->next) {
            if (!bh_streq(o->key.p, m->key.p))
                continue;
            unknown(rep, "duplicate", at, m->key.p);
            break;
        }
        repeats(m, &here, rep);
        here.index++;
    }
}

void bh_oas_repeats(const struct bh_json *v, struct bh_oas_report *rep)
{
    repeats(v, NULL, rep);
}
