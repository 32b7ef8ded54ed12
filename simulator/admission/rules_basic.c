/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_basic.c - rules that any member may have: presence, words, ranges, sizes
 *
 * Upstream: apimachinery/pkg/api/validate, apimachinery/pkg/util/validation/field (v1.36).
 */
#include "simulator/admission/rules.h"

#include "common/k8s/quantity.h"

#include <stdlib.h>

static const char *text_of(const struct bh_rule_call *c, size_t i)
{
    return i < c->n ? c->arg[i] : "";
}

/* A text with "{member}" in it: what the object around has there. */
static const char *filled_in(struct bh_rule_run *r, const struct bh_rule_at *at, const char *text)
{
    const char *open = strchr(text, '{'), *close = open ? strchr(open, '}') : NULL;
    struct bh_buf b = {0};

    if (!close)
        return text;
    const char *name = bh_arena_strndup(r->w->arena, open + 1, (size_t)(close - open - 1));
    const struct bh_rule_at *holder = bh_rule_holder(at);
    const struct bh_json *v =
        bh_streq(name, "@") ? at->v : bh_json_path(holder ? holder->v : NULL, name);
    bh_buf_add(&b, text, (size_t)(open - text));
    if (!bh_tree_scalar(&b, v))
        bh_buf_adds(&b, v && v->type == BH_JSON_NULL ? "" : "");
    bh_buf_adds(&b, filled_in(r, at, close + 1));
    const char *s = bh_arena_strndup(r->w->arena, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return s;
}

/* What an error shows: the place, or the member that "of" names. */
static const char *shown(struct bh_rule_run *r, const struct bh_rule_at *at,
                         const struct bh_rule_call *c)
{
    const struct bh_rule_at *holder = bh_rule_holder(at);

    if (!c->of)
        return bh_rule_shown(r, at);
    if (bh_streq(c->of, "null") || bh_streq(c->of, "''"))
        return *c->of == 'n' ? "null" : "\"\"";
    if (at->type || !holder)
        holder = at;
    if (bh_streq(c->of, "@"))
        return bh_rule_shown(r, holder);
    struct bh_rule_at m = bh_rule_member(holder, c->of);
    return bh_rule_shown(r, &m);
}

/* ---- presence -------------------------------------------------------------------------------- */

static bool rule_required(struct bh_rule_run *r, const struct bh_rule_at *at,
                          const struct bh_rule_call *c)
{
    bool object = at->v && at->type;

    if (object || !bh_rule_is_empty(at->v))
        return true;
    bh_rule_error(r, at, "Required value", NULL, text_of(c, 0));
    return false;
}

static bool rule_present(struct bh_rule_run *r, const struct bh_rule_at *at,
                         const struct bh_rule_call *c)
{
    if (at->v)
        return true;
    bh_rule_error(r, at, "Required value", NULL, text_of(c, 0));
    return false;
}

static bool rule_require(struct bh_rule_run *r, const struct bh_rule_at *at,
                         const struct bh_rule_call *c)
{
    bh_rule_error(r, at, "Required value", NULL, filled_in(r, at, text_of(c, 0)));
    return false;
}

static bool rule_forbid(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    bh_rule_error(r, at, "Forbidden", NULL, filled_in(r, at, text_of(c, 0)));
    return false;
}

/* Nothing of these members may be set. */
static bool rule_forbid_members(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    for (size_t i = 1; i < c->n; i++) {
        struct bh_rule_at m = bh_rule_member(at, c->arg[i]);
        if (m.v && !(m.field && !m.field->pointer && bh_rule_is_empty(m.v)))
            bh_rule_error(r, &m, "Forbidden", NULL, c->arg[0]);
    }
    return true;
}

static bool rule_invalid(struct bh_rule_run *r, const struct bh_rule_at *at,
                         const struct bh_rule_call *c)
{
    bh_rule_error(r, at, "Invalid value", shown(r, at, c), filled_in(r, at, text_of(c, 0)));
    return false;
}

static bool rule_duplicate(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    bh_rule_error(r, at, "Duplicate value", shown(r, at, c), text_of(c, 0));
    return false;
}

static bool rule_unsupported(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    bh_rule_unsupported(r, at, shown(r, at, c), c->n, c->arg);
    return false;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool rule_enum(struct bh_rule_run *r, const struct bh_rule_at *at,
                      const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    if (!s)
        return true;
    for (size_t i = 0; i < c->n; i++)
        if (bh_streq(c->arg[i], s))
            return true;
    bh_rule_unsupported(r, at, bh_rule_shown(r, at), c->n, c->arg);
    return false;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool rule_min(struct bh_rule_run *r, const struct bh_rule_at *at,
                     const struct bh_rule_call *c)
{
    int64_t n;

    if (!bh_rule_number(at, &n) || n >= c->num[0])
        return true;
    bh_rule_invalid(r, at,
                    c->n > 1 ? filled_in(r, at, c->arg[1])
                             : bh_rule_printf(r, "must be greater than or equal to %s", c->arg[0]));
    return false;
}

static bool rule_max(struct bh_rule_run *r, const struct bh_rule_at *at,
                     const struct bh_rule_call *c)
{
    int64_t n;

    if (!bh_rule_number(at, &n) || n <= c->num[0])
        return true;
    bh_rule_invalid(r, at,
                    c->n > 1 ? filled_in(r, at, c->arg[1])
                             : bh_rule_printf(r, "must be less than or equal to %s", c->arg[0]));
    return false;
}

static bool rule_range(struct bh_rule_run *r, const struct bh_rule_at *at,
                       const struct bh_rule_call *c)
{
    int64_t n;

    if (!bh_rule_number(at, &n) || (n >= c->num[0] && n <= c->num[1]))
        return true;
    bh_rule_invalid(
        r, at,
        c->n > 2 ? filled_in(r, at, c->arg[2])
                 : bh_rule_printf(r, "must be between %s and %s, inclusive", c->arg[0], c->arg[1]));
    return false;
}

/* An IntOrString: a number that is not negative, or a percentage. */
static bool rule_int_or_percent(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    int64_t n;
    const char *s = bh_json_cstr(at->v);

    (void)c;
    if (!at->v)
        return true;
    if (!s) {
        if (!bh_json_i64(at->v, &n) || n >= 0)
            return true;
        bh_rule_invalid(r, at, "must be greater than or equal to 0");
        return false;
    }
    size_t digits = strspn(s, "0123456789");
    if (digits && bh_streq(s + digits, "%"))
        return true;
    bh_rule_invalid(r, at,
                    "a valid percent string must be a numeric string followed by an ending '%' "
                    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
    return false;
}

static bool rule_percent_max(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const char *s = bh_json_cstr(at->v);
    size_t digits = s ? strspn(s, "0123456789") : 0;

    (void)c;
    if (!digits || !bh_streq(s + digits, "%") || strtoll(s, NULL, 10) <= 100)
        return true;
    bh_rule_invalid(r, at, "must not be greater than 100%");
    return false;
}

/* ---- quantities ------------------------------------------------------------------------------ */

static bool rule_quantity_min(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    bh_nano q;

    if (!at->v || !bh_adm_parse_quantity(at->v, &q) || q >= (bh_nano)c->num[0] * 1000000000)
        return true;
    if (c->n > 2)
        bh_rule_error(r, at, "Forbidden", NULL, c->arg[1]);
    else
        bh_rule_invalid(r, at, c->n > 1 ? c->arg[1] : "must be greater than or equal to 0");
    return false;
}

static bool rule_quantity_positive(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_rule_call *c)
{
    bh_nano q;

    (void)c;
    if (!at->v || !bh_adm_parse_quantity(at->v, &q) || q > 0)
        return true;
    bh_rule_invalid(r, at, "must be greater than zero");
    return false;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool rule_max_items(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    size_t n = bh_tree_len(at->v);

    if (n <= (size_t)c->num[0])
        return true;
    bh_rule_error(r, at, "Too many", bh_rule_printf(r, "%zu", n),
                  bh_rule_printf(r, "must have at most %s items", c->arg[0]));
    return false;
}

static bool rule_max_bytes(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    if (!s || strlen(s) <= (size_t)c->num[0])
        return true;
    bh_rule_error(r, at, "Too long", NULL,
                  bh_rule_printf(r, "may not be more than %s bytes", c->arg[0]));
    return false;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const struct bh_json *key_of(const struct bh_json *e, const char *key)
{
    return *key == '@' ? e : bh_json_path(e, key);
}

static bool same_keys(const struct bh_json *a, const struct bh_json *b,
                      const struct bh_rule_call *c)
{
    for (size_t i = 0; i < c->n && !strchr(c->arg[i], '='); i++) {
        const struct bh_json *x = key_of(a, c->arg[i]), *y = key_of(b, c->arg[i]);
        if (bh_rule_is_empty(x) && bh_rule_is_empty(y))
            continue;
        if (!x || !y || !bh_json_equal(x, y))
            return false;
    }
    return true;
}

/* unique KEY... [at=MEMBER] [show=MEMBER] [empty=yes]: no two elements have the same keys ("@": the
 * element itself). The later one is the error, at the element or its member; what is empty does not
 * count unless the line has it so. */
static bool rule_unique(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    const char *where = "", *show = "";
    bool empty = false, fine = true;
    size_t i = 0;

    for (size_t k = 0; k < c->n; k++) {
        where = strncmp(c->arg[k], "at=", 3) == 0 ? c->arg[k] + 3 : where;
        show = strncmp(c->arg[k], "show=", 5) == 0 ? c->arg[k] + 5 : show;
        empty = empty || bh_streq(c->arg[k], "empty=yes");
    }
    bh_json_each(e, at->v) {
        bool seen = false;
        for (const struct bh_json *p = at->v->c.first; p != e && !seen; p = p->next)
            seen = (empty || !bh_rule_is_empty(key_of(e, c->arg[0]))) && same_keys(p, e, c);
        struct bh_rule_at element = bh_rule_element(at, e, i++);
        if (!seen)
            continue;
        struct bh_rule_at member = bh_rule_member(&element, *where ? where : "name");
        struct bh_rule_at value = bh_rule_member(&element, *show ? show : c->arg[0]);
        bool whole = *c->arg[0] == '@' || bh_streq(show, "@");
        bh_rule_error(r, *where ? &member : &element, "Duplicate value",
                      bh_rule_shown(r, whole ? &element : &value), "");
        fine = false;
    }
    return fine;
}

/* ---- updates --------------------------------------------------------------------------------- */

static bool same_value(const struct bh_json *a, const struct bh_json *b)
{
    if (!a || !b)
        return bh_rule_is_empty(a) && bh_rule_is_empty(b);
    return bh_json_equal(a, b);
}

static bool rule_immutable(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    if (!r->w->old || same_value(at->v, at->old))
        return true;
    bh_rule_error(r, at, "Invalid value", shown(r, at, c), c->n ? c->arg[0] : "field is immutable");
    return false;
}

/* ---- defaults, control ----------------------------------------------------------------------- */

static struct bh_json *ensure(struct bh_arena *a, const struct bh_rule_at *at)
{
    if (at->v || !at->up || !at->member)
        return at->v;
    struct bh_json *up = ensure(a, at->up);
    return up && up->type == BH_JSON_OBJECT ? bh_json_obj_at(a, up, at->member) : NULL;
}

static bool rule_default(struct bh_rule_run *r, const struct bh_rule_at *at,
                         const struct bh_rule_call *c)
{
    bool given = at->v && (at->v->type == BH_JSON_OBJECT || !at->field || at->field->pointer ||
                           !bh_rule_is_empty(at->v));
    struct bh_json *up = given ? NULL : ensure(r->w->arena, at->up);

    if (up && up->type == BH_JSON_OBJECT)
        bh_json_set(r->w->arena, up, at->member,
                    bh_json_cstr(c->value) && bh_streq(c->value->s.p, "$now")
                        ? bh_json_new_cstr(r->w->arena, bh_adm_now(r->w))
                        : bh_json_clone(r->w->arena, c->value));
    return true;
}

static bool rule_set(struct bh_rule_run *r, const struct bh_rule_at *at,
                     const struct bh_rule_call *c)
{
    if (at->up->v && at->up->v->type == BH_JSON_OBJECT)
        bh_json_set(r->w->arena, at->up->v, at->member, bh_json_clone(r->w->arena, c->value));
    return true;
}

/* As the member next to it that the argument names. */
static bool rule_copy(struct bh_rule_run *r, const struct bh_rule_at *at,
                      const struct bh_rule_call *c)
{
    struct bh_rule_at from = bh_rule_member(at->up, c->arg[0]);

    if (!at->v && from.v && at->up->v->type == BH_JSON_OBJECT)
        bh_json_set(r->w->arena, at->up->v, at->member, bh_json_clone(r->w->arena, from.v));
    return true;
}

/* What a feature gate keeps from being stored. */
static bool rule_drop(struct bh_rule_run *r, const struct bh_rule_at *at,
                      const struct bh_rule_call *c)
{
    (void)r, (void)c;
    if (at->v)
        bh_json_unset(at->up->v, at->member);
    return true;
}

const struct bh_rule bh_rules_basic[] = {
    {"required", rule_required},
    {"present", rule_present},
    {"require", rule_require},
    {"forbid", rule_forbid},
    {"forbid-members", rule_forbid_members},
    {"invalid", rule_invalid},
    {"duplicate", rule_duplicate},
    {"unsupported", rule_unsupported},
    {"enum", rule_enum},
    {"min", rule_min},
    {"max", rule_max},
    {"range", rule_range},
    {"int-or-percent", rule_int_or_percent},
    {"percent-max", rule_percent_max},
    {"quantity-min", rule_quantity_min},
    {"quantity-positive", rule_quantity_positive},
    {"max-items", rule_max_items},
    {"max-bytes", rule_max_bytes},
    {"unique", rule_unique},
    {"immutable", rule_immutable},
    {"default", rule_default},
    {"set", rule_set},
    {"drop", rule_drop},
    {"copy", rule_copy},
    {0},
};
