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

#define NEAR_EDITS 3u
#define DEEP_MAX   4

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
    if (rep->n++ < BH_OAS_NAMED)
        bh_buf_addf(&rep->unknown, "%s field \"%.200s%s%.100s\"\n", what, path, *path ? "." : "",
                    name);
}

/* ---- which field was meant ------------------------------------------------------------------- */

/* A field of that name somewhere inside of t, on a way without lists: its path into out. */
static bool find_inside(const struct bh_oas_type *t, const char *name, int deep,
                        char out[static 96])
{
    const struct bh_oas_field *f = bh_oas_field(t, name);

    if (f) {
        snprintf(out, 96, "%.95s", name);
        return true;
    }
    for (size_t i = 0; deep > 1 && i < t->n; i++) {
        char rest[96];
        f = &t->fields[i];
        if (!f->type || *f->form || !find_inside(f->type, name, deep - 1, rest))
            continue;
        snprintf(out, 96, "%.40s.%.54s", f->name, rest);
        return true;
    }
    return false;
}

/* A slip of the finger in this object, else the same name at another place of the whole one. */
static void find_meant(const struct bh_oas_report *rep, const struct bh_oas_type *t,
                       const char *name, char out[static 96])
{
    unsigned best = NEAR_EDITS + 1;

    *out = '\0';
    for (size_t i = 0; i < t->n; i++) {
        unsigned n = bh_edits(t->fields[i].name, name);
        if (n >= best || 3 * n > strlen(name))
            continue;
        best = n;
        snprintf(out, 96, "%.95s", t->fields[i].name);
    }
    for (int deep = 2; !*out && deep <= DEEP_MAX; deep++)
        if (!find_inside(t, name, deep, out))
            (void)find_inside(rep->whole, name, deep, out);
}

static void named(struct bh_oas_report *rep, const char *what, const struct frame *at,
                  const char *name)
{
    struct bh_buf path = {0};
    put_path(&path, at);
    bh_oas_unknown(rep, what, bh_buf_str(&path), name);
    bh_buf_fini(&path);
}

/* m: a member that t does not have. */
static void unknown(struct bh_oas_report *rep, const struct bh_oas_type *t, const struct frame *at,
                    const struct bh_json *m)
{
    if (rep->n < BH_OAS_NAMED) {
        rep->at[rep->n].line = m->line;
        find_meant(rep, t, m->key.p, rep->at[rep->n].mean);
    }
    named(rep, "unknown", at, m->key.p);
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

/* An element of a list or a map that is null: what decoding it into Go's type leaves, so that whoever reads a list
 * of texts finds texts. Times and "anything" are null there, too. */
static void fill_null(const struct bh_oas_field *f, const char *form, struct bh_json *v)
{
    if (*form || f->type) {
        v->type = *form == '[' ? BH_JSON_ARRAY : BH_JSON_OBJECT;
        v->c.first = v->c.last = NULL;
        v->c.n = 0;
    } else if (strchr("sy", f->leaf)) {
        v->type = BH_JSON_STRING;
        v->s = BH_STR("");
    } else if (f->leaf == 'q') {
        v->type = BH_JSON_STRING;
        v->s = BH_STR("0");
    } else if (strchr("ildx", f->leaf)) {
        v->type = BH_JSON_NUMBER;
        v->s = BH_STR("0");
    } else if (f->leaf == 'b') {
        v->type = BH_JSON_BOOL;
        v->b = false;
    }
}

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
        if (m->type == BH_JSON_NULL)
            fill_null(f, form + 1, m);
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
            unknown(rep, t, at, m);
            bh_json_remove(v, m);
        }
    }
}

void bh_oas_check(const struct bh_oas_type *t, struct bh_json *obj, const char *at,
                  struct bh_oas_report *rep)
{
    struct frame here = {.name = at};
    rep->whole = t;
    check_object(t, obj, at ? &here : NULL, rep);
}

/* ---- manifests that no request brings -------------------------------------------------------- */

void bh_oas_sentence(const struct bh_oas_report *rep, unsigned i, struct bh_buf *out)
{
    const char *p = rep->unknown.p, *mean = rep->at[i].mean;

    for (; i; i--)
        p = strchr(p, '\n') + 1;
    bh_buf_add(out, p, strcspn(p, "\n"));
    if (*mean)
        bh_buf_addf(out, " (did you mean %s?)", mean);
}

void bh_oas_check_whole(struct bh_json *obj, struct bh_oas_report *rep)
{
    const struct bh_sim_type *t =
        bh_sim_type_of_kind(bh_json_get_text(obj, "apiVersion"), bh_json_get_text(obj, "kind"));
    const struct bh_oas_type *root = t ? bh_oas_root(t) : NULL;

    if (root)
        bh_oas_check(root, obj, NULL, rep);
}

int bh_oas_refuse_unknown(struct bh_json *obj, uint32_t line, struct bh_err *err)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf all = {0};
    struct bh_oas_report rep = {0};

    bh_oas_check_whole(obj, &rep);
    for (unsigned i = 0; i < BH_MIN(rep.n, BH_OAS_NAMED); i++) {
        bh_buf_adds(&all, i ? ", " : "");
        if (line && rep.at[i].line)
            bh_buf_addf(&all, "line %u: ", line + rep.at[i].line - obj->line);
        bh_oas_sentence(&rep, i, &all);
    }
    bh_buf_fini(&rep.unknown);
    return rep.n ? bh_err_set(err, -EINVAL, "%s", bh_buf_str(&all)) : 0;
}

/* ---- members that stand twice ---------------------------------------------------------------- */

static void repeats(const struct bh_json *v, const struct frame *at, struct bh_oas_report *rep)
{
    struct frame here = {.up = at};
    bh_json_each(m, v) {
        here.name = m->key.p; /* NULL: of a list */
        for (const struct bh_json *o = v->c.first; here.name && o != m && rep->n < BH_OAS_NAMED;
             o = o->next) {
            if (!o->key.p || !bh_streq(o->key.p, here.name))
                continue;
            named(rep, "duplicate", at, here.name);
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
