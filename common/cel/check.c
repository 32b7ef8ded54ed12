/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/check.c - static types
 *
 * Finds the type of a node from its operands' and refuses what can only fail. dyn fits everything
 * and is decided while evaluating; attribute values are dyn, driver, domains and capacities are
 * known.
 * Upstream: cel-go/checker with HomogeneousAggregateLiterals and CrossTypeNumericComparisons; the
 * device is declared in k8s.io/dynamic-resource-allocation/cel. Differences: types have no
 * parameters besides the element's and the key's.
 */
#include "common/cel/cel_int.h"

const struct cel_type bh_cel_types[CEL_DYN + 1] = {
    [CEL_ERROR] = {.kind = CEL_DYN},
    [CEL_NULL] = {.kind = CEL_NULL},
    [CEL_BOOL] = {.kind = CEL_BOOL},
    [CEL_INT] = {.kind = CEL_INT},
    [CEL_UINT] = {.kind = CEL_UINT},
    [CEL_DOUBLE] = {.kind = CEL_DOUBLE},
    [CEL_STRING] = {.kind = CEL_STRING},
    [CEL_BYTES] = {.kind = CEL_BYTES},
    [CEL_LIST] = {.kind = CEL_LIST, .elem = &bh_cel_types[CEL_DYN]},
    [CEL_MAP] = {.kind = CEL_MAP, .elem = &bh_cel_types[CEL_DYN], .key = &bh_cel_types[CEL_DYN]},
    [CEL_QUANTITY] = {.kind = CEL_QUANTITY},
    [CEL_IP] = {.kind = CEL_IP},
    [CEL_CIDR] = {.kind = CEL_CIDR},
    [CEL_SEMVER] = {.kind = CEL_SEMVER},
    [CEL_URL] = {.kind = CEL_URL},
    [CEL_FORMAT] = {.kind = CEL_FORMAT},
    [CEL_TYPE] = {.kind = CEL_TYPE},
    [CEL_OPTIONAL] = {.kind = CEL_OPTIONAL, .elem = &bh_cel_types[CEL_DYN]},
    [CEL_TIMESTAMP] = {.kind = CEL_TIMESTAMP},
    [CEL_DURATION] = {.kind = CEL_DURATION},
    [CEL_DEVICE] = {.kind = CEL_DEVICE},
    [CEL_DYN] = {.kind = CEL_DYN},
};
const struct cel_type bh_cel_any = {.kind = CEL_DYN};
/* Of what an empty literal or optional.none() holds. */
static const struct cel_type free_type = {.kind = CEL_DYN};
#define DYN    (&bh_cel_types[CEL_DYN])
#define BOOL   (&bh_cel_types[CEL_BOOL])
#define INT    (&bh_cel_types[CEL_INT])
#define STRING (&bh_cel_types[CEL_STRING])

static const struct cel_type attribute_map = {.kind = CEL_MAP, .elem = &bh_cel_any, .key = STRING};
static const struct cel_type no_items = {.kind = CEL_LIST, .elem = &free_type};
static const struct cel_type no_entries = {.kind = CEL_MAP, .elem = &free_type, .key = &free_type};
static const struct cel_type no_value = {.kind = CEL_OPTIONAL, .elem = &free_type};
static const struct cel_type attributes_type = {
    .kind = CEL_MAP, .elem = &attribute_map, .key = STRING};
static const struct cel_type capacity_map = {
    .kind = CEL_MAP, .elem = &bh_cel_types[CEL_QUANTITY], .key = STRING};
static const struct cel_type capacity_type = {
    .kind = CEL_MAP, .elem = &capacity_map, .key = STRING};
static const struct cel_type string_list = {.kind = CEL_LIST, .elem = STRING};
static const struct cel_type int_list = {.kind = CEL_LIST, .elem = INT};
static const struct cel_type query_type = {.kind = CEL_MAP, .elem = &string_list, .key = STRING};
static const struct cel_type errors_type = {.kind = CEL_OPTIONAL, .elem = &string_list};
static const struct cel_type format_type = {.kind = CEL_OPTIONAL,
                                            .elem = &bh_cel_types[CEL_FORMAT]};

static const struct cel_type *type_of(struct bh_arena *a, enum cel_kind kind,
                                      const struct cel_type *elem, const struct cel_type *key)
{
    struct cel_type *t = bh_arena_new(a, struct cel_type);
    *t = (struct cel_type){.kind = (uint8_t)kind, .elem = elem, .key = key};
    return t;
}

/* Types nest as deep as the expression, and their text must not grow with it. */
static void type_text(struct bh_buf *b, const struct cel_type *t, unsigned depth)
{
    if (t->kind == CEL_DYN || depth == 0) {
        bh_buf_adds(b, t == &bh_cel_any ? "any" : "dyn");
        return;
    }
    bh_buf_adds(b, t->kind == CEL_NULL        ? "null"
                   : t->kind == CEL_TIMESTAMP ? "timestamp"
                   : t->kind == CEL_DURATION  ? "duration"
                                              : bh_cel_kind_name(t->kind));
    if (!t->elem)
        return;
    bh_buf_addc(b, '(');
    if (t->key) {
        type_text(b, t->key, depth - 1);
        bh_buf_adds(b, ", ");
    }
    type_text(b, t->elem, depth - 1);
    bh_buf_addc(b, ')');
}

const char *bh_cel_type_text(struct cel_parser *ps, const struct cel_type *t)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    type_text(&b, t, 4);
    return bh_arena_strdup(&ps->p->arena, bh_buf_str(&b));
}

/* May values of the two types be equal? Null is compared with what upstream has as messages. */
static bool compatible(const struct cel_type *a, const struct cel_type *b)
{
    const uint32_t nullable = 1u << CEL_NULL | 1u << CEL_QUANTITY | 1u << CEL_SEMVER |
                              1u << CEL_IP | 1u << CEL_CIDR | 1u << CEL_URL | 1u << CEL_FORMAT |
                              1u << CEL_OPTIONAL | 1u << CEL_TIMESTAMP | 1u << CEL_DURATION |
                              1u << CEL_OBJECT;

    while (a->kind != CEL_DYN && b->kind != CEL_DYN) {
        if (a->kind == CEL_NULL || b->kind == CEL_NULL)
            return cel_in(a->kind, nullable) && cel_in(b->kind, nullable);
        if (a->kind != b->kind || a->schema != b->schema || (a->key && !compatible(a->key, b->key)))
            return false;
        if (!a->elem)
            return true;
        a = a->elem;
        b = b->elem;
    }
    return true;
}

/* The same, as literals demand; what an empty literal holds is like anything. */
static bool same_type(const struct cel_type *a, const struct cel_type *b)
{
    while (a != b && a != &free_type && b != &free_type) {
        if (a->kind != b->kind || a->kind == CEL_DYN || a->schema != b->schema ||
            (a->key && !same_type(a->key, b->key)))
            return false;
        if (!a->elem)
            return true;
        a = a->elem;
        b = b->elem;
    }
    return true;
}

/* Of two compatible types the one that promises less. */
static const struct cel_type *join(const struct cel_type *a, const struct cel_type *b)
{
    if (a == &free_type || (a->elem && a->elem == &free_type))
        return b;
    if (b == &free_type || (b->elem && b->elem == &free_type))
        return a;
    if (a == &bh_cel_any && b->kind == CEL_DYN)
        return b;
    return a->kind == CEL_DYN || (a->elem && a->elem->kind == CEL_DYN) ? a : b;
}

const struct cel_type *bh_cel_iter_type(const struct cel_type *t, bool two,
                                        const struct cel_type **ret_first)
{
    *ret_first = DYN;
    if (t == &bh_cel_any)
        return NULL;
    if (t->kind == CEL_DYN)
        return DYN;
    if (t->kind == CEL_LIST) {
        *ret_first = INT;
        return t->elem;
    }
    if (t->kind != CEL_MAP)
        return NULL;
    *ret_first = t->key;
    return two ? t->elem : t->key;
}

static const struct cel_type *arg_type(const struct cel_parser *ps, const struct cel_node *n,
                                       uint32_t i)
{
    return ps->p->node[ps->p->arg[n->first + i]].type;
}

/* "found no matching overload for '_+_' applied to '(int, string)'". */
static bool no_overload(struct cel_parser *ps, const struct cel_node *n, struct bh_str name,
                        bool receiver)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    for (uint32_t i = 0; i < n->n_args; i++) {
        if (i)
            bh_buf_adds(&b, receiver && i == 1 ? ".(" : ", ");
        else if (!receiver)
            bh_buf_addc(&b, '(');
        bh_buf_adds(&b, bh_cel_type_text(ps, arg_type(ps, n, i)));
    }
    bh_buf_adds(&b, receiver && n->n_args == 1 ? ".()" : n->n_args ? ")" : "()");
    bh_cel_fail(ps, n->pos, "found no matching overload for '%.*s' applied to '%s'",
                (int)BH_MIN(name.n, (size_t)64), name.p, bh_buf_str(&b));
    return false;
}

const char *const bh_cel_op_name[] = {
    [OP_INDEX] = "_[_]", [OP_OPT_INDEX] = "_[?_]", [OP_AND] = "_&&_",   [OP_OR] = "_||_",
    [OP_NOT] = "!_",     [OP_NEG] = "-_",          [OP_COND] = "_?_:_", [OP_EQ] = "_==_",
    [OP_NE] = "_!=_",    [OP_LT] = "_<_",          [OP_LE] = "_<=_",    [OP_GT] = "_>_",
    [OP_GE] = "_>=_",    [OP_IN] = "@in",          [OP_ADD] = "_+_",    [OP_SUB] = "_-_",
    [OP_MUL] = "_*_",    [OP_DIV] = "_/_",         [OP_MOD] = "_%_",
};

static bool refuse(struct cel_parser *ps, const struct cel_node *n)
{
    return no_overload(ps, n, bh_str_c(bh_cel_op_name[n->op]), false);
}

/* ---- members ---- */

static const struct cel_type *field_type(struct bh_arena *a, const struct cel_type *t,
                                         struct bh_str *of)
{
    struct bh_str name = *of;

    if (t->kind == CEL_DYN)
        return DYN;
    if (t->kind == CEL_MAP)
        return t->elem;
    if (t->kind == CEL_OBJECT)
        return bh_cel_field_type(a, t, of);
    if (t->kind != CEL_DEVICE)
        return NULL;
    return bh_str_eqc(name, "driver")                     ? STRING
           : bh_str_eqc(name, "attributes")               ? &attributes_type
           : bh_str_eqc(name, "capacity")                 ? &capacity_type
           : bh_str_eqc(name, "allowMultipleAllocations") ? BOOL
                                                          : NULL;
}

/* Optionals are looked through; the result of that is an optional again. */
static const struct cel_type *unwrap(const struct cel_type *t, bool *optional)
{
    if (t->kind != CEL_OPTIONAL)
        return t;
    *optional = true;
    return t->elem;
}

static bool check_select(struct cel_parser *ps, struct cel_node *n)
{
    bool optional = n->op == OP_OPT_SELECT;
    const struct cel_type *left = unwrap(arg_type(ps, n, 0), &optional);
    const struct cel_type *t = field_type(&ps->p->arena, left, &n->name);

    if (!t && (left->kind == CEL_DEVICE || left->kind == CEL_OBJECT)) {
        bh_cel_fail(ps, n->pos, "undefined field '%.*s'", (int)BH_MIN(n->name.n, (size_t)64),
                    n->name.p);
    } else if (!t) {
        bh_cel_fail(ps, n->pos, "type '%s' does not support field selection",
                    bh_cel_type_text(ps, left));
    } else {
        n->type = optional ? type_of(&ps->p->arena, CEL_OPTIONAL, t, NULL) : t;
    }
    return t != NULL;
}

static bool check_index(struct cel_parser *ps, struct cel_node *n)
{
    bool optional = n->op == OP_OPT_INDEX;
    const struct cel_type *left = unwrap(arg_type(ps, n, 0), &optional);
    const struct cel_type *key = arg_type(ps, n, 1), *t = DYN;

    if (left->kind == CEL_MAP    ? !compatible(left->key, key)
        : left->kind == CEL_LIST ? !compatible(key, INT)
                                 : left->kind != CEL_DYN)
        return refuse(ps, n);
    if (left->kind != CEL_DYN)
        t = left->elem;
    n->type = optional ? type_of(&ps->p->arena, CEL_OPTIONAL, t, NULL) : t;
    return true;
}

/* ---- operators ---- */

static bool is_numeric(uint8_t kind)
{
    return cel_in(kind, CEL_NUMBERS) || kind == CEL_DYN;
}

static bool check_order(struct cel_parser *ps, struct cel_node *n)
{
    uint8_t a = arg_type(ps, n, 0)->kind, b = arg_type(ps, n, 1)->kind;
    bool same = a == b || a == CEL_DYN || b == CEL_DYN;
    uint8_t known = a == CEL_DYN ? b : a;

    n->type = BOOL;
    if ((is_numeric(a) && is_numeric(b)) || (same && cel_in(known, CEL_ORDERED & ~CEL_NUMBERS)))
        return true;
    return refuse(ps, n);
}

static bool check_arithmetic(struct cel_parser *ps, struct cel_node *n)
{
    const struct cel_type *a = arg_type(ps, n, 0), *b = arg_type(ps, n, 1);
    uint8_t known = a->kind == CEL_DYN ? b->kind : a->kind;
    enum cel_kind time = cel_time_sum(n->op == OP_SUB, a->kind, b->kind);
    bool fits = is_numeric(known);

    if (time != CEL_ERROR && (n->op == OP_ADD || n->op == OP_SUB)) {
        n->type = &bh_cel_types[time];
        return true;
    }
    if (n->op == OP_ADD)
        fits |= known == CEL_STRING || known == CEL_BYTES || known == CEL_LIST;
    if (n->op == OP_MOD)
        fits &= known != CEL_DOUBLE;
    if (!fits || !compatible(a, b))
        return refuse(ps, n);
    n->type = a->kind != CEL_DYN ? join(a, b) : b->kind != CEL_DYN ? b : DYN;
    return true;
}

static bool check_in(struct cel_parser *ps, struct cel_node *n)
{
    const struct cel_type *a = arg_type(ps, n, 0), *b = arg_type(ps, n, 1);

    n->type = BOOL;
    if (b->kind == CEL_DYN || (b->kind == CEL_LIST && compatible(a, b->elem)) ||
        (b->kind == CEL_MAP && compatible(a, b->key)))
        return true;
    return refuse(ps, n);
}

static bool not_bool(struct cel_parser *ps, uint32_t at)
{
    bh_cel_fail(ps, ps->p->node[at].pos, "expected type 'bool' but found '%s'",
                bh_cel_type_text(ps, ps->p->node[at].type));
    return false;
}

static bool all_bool(struct cel_parser *ps, struct cel_node *n)
{
    n->type = BOOL;
    for (uint32_t i = 0; i < n->n_args; i++) {
        uint8_t kind = arg_type(ps, n, i)->kind;
        if (kind == CEL_BOOL || kind == CEL_DYN)
            continue;
        if (n->op == OP_NOT)
            return refuse(ps, n);
        return not_bool(ps, ps->p->arg[n->first + i]);
    }
    return true;
}

static bool check_cond(struct cel_parser *ps, struct cel_node *n)
{
    const struct cel_type *c = arg_type(ps, n, 0), *a = arg_type(ps, n, 1), *b = arg_type(ps, n, 2);

    if ((c->kind != CEL_BOOL && c->kind != CEL_DYN) || !compatible(a, b))
        return refuse(ps, n);
    n->type = join(a, b);
    return true;
}

static bool check_equal(struct cel_parser *ps, struct cel_node *n)
{
    n->type = BOOL;
    return compatible(arg_type(ps, n, 0), arg_type(ps, n, 1)) || refuse(ps, n);
}

static bool check_negate(struct cel_parser *ps, struct cel_node *n)
{
    n->type = arg_type(ps, n, 0);
    if (n->type->kind == CEL_UINT || !is_numeric(n->type->kind))
        return refuse(ps, n);
    return true;
}

/* ---- names and literals ---- */

/* Operands first, first + step ... have one type. */
static const struct cel_type *common_type(struct cel_parser *ps, const struct cel_node *n,
                                          uint32_t first, uint32_t step)
{
    const struct cel_type *t = n->n_args > first ? arg_type(ps, n, first) : DYN;

    for (uint32_t i = first + step; i < n->n_args; i += step) {
        const struct cel_type *other = arg_type(ps, n, i);
        if (!same_type(t, other) && ps->in_format) {
            t = DYN;
            break;
        }
        if (!same_type(t, other)) {
            bh_cel_fail(ps, ps->p->node[ps->p->arg[n->first + i]].pos,
                        "expected type '%s' but found '%s'", bh_cel_type_text(ps, t),
                        bh_cel_type_text(ps, other));
            return NULL;
        }
        t = join(t, other);
    }
    return t;
}

/* What an optional entry of a literal may hold. */
static bool check_entry(struct cel_parser *ps, struct cel_node *n)
{
    const struct cel_type *t = arg_type(ps, n, 0);

    if (t->kind != CEL_OPTIONAL && t->kind != CEL_DYN) {
        bh_cel_fail(ps, n->pos, "expected type 'optional_type(dyn)' but found '%s'",
                    bh_cel_type_text(ps, t));
        return false;
    }
    n->type = t->kind == CEL_OPTIONAL ? t->elem : DYN;
    return true;
}

static bool check_list(struct cel_parser *ps, struct cel_node *n)
{
    const struct cel_type *t = common_type(ps, n, 0, 1);

    n->type = n->n_args == 0 ? &no_items : t ? type_of(&ps->p->arena, CEL_LIST, t, NULL) : NULL;
    return t != NULL;
}

static bool check_map(struct cel_parser *ps, struct cel_node *n)
{
    const struct cel_type *k = common_type(ps, n, 0, 2), *v = k ? common_type(ps, n, 1, 2) : NULL;

    if (!v)
        return false;
    /* Simple keys only, as evaluation demands; so a type is a chain and comparing two is linear. */
    if (!cel_in(k->kind, CEL_KEYS) && k->kind != CEL_DYN) {
        bh_cel_fail(ps, n->pos, "unsupported key type: %s", bh_cel_kind_name(k->kind));
        return false;
    }
    n->type = n->n_args ? type_of(&ps->p->arena, CEL_MAP, v, k) : &no_entries;
    return true;
}

/* ---- macros ---- */

static bool check_macro(struct cel_parser *ps, struct cel_node *n)
{
    const struct cel_type *range = arg_type(ps, n, 0), *body = arg_type(ps, n, 1), *key;
    const struct cel_type *condition = n->n_args == 3 ? arg_type(ps, n, 2) : body;
    struct bh_arena *a = &ps->p->arena;

    if (n->op == OP_OPT_MAP) {
        n->type = type_of(a, CEL_OPTIONAL, body, NULL);
        return true;
    }
    if (n->op == OP_OPT_FLATMAP) {
        n->type = body;
        return body->kind == CEL_OPTIONAL || body->kind == CEL_DYN ||
               no_overload(ps, n, BH_STR("optFlatMap"), true);
    }
    bool transforms = n->op == OP_MAP_MACRO || n->op == OP_TO_LIST || n->op == OP_TO_MAP ||
                      n->op == OP_TO_ENTRIES || n->op == OP_SORT_BY;
    if ((!transforms || n->n_args == 3) && condition->kind != CEL_BOOL &&
        condition->kind != CEL_DYN)
        return not_bool(ps, ps->p->arg[n->first + (n->n_args == 3 ? 2 : 1)]);
    if (n->op == OP_SORT_BY) {
        n->type = range;
        return true;
    }
    if (n->op == OP_TO_MAP) {
        (void)bh_cel_iter_type(range, true, &key);
        n->type = type_of(a, CEL_MAP, body, key);
        return true;
    }
    if (n->op == OP_TO_ENTRIES) {
        n->type = body->kind == CEL_DYN ? &bh_cel_types[CEL_MAP] : body;
        return n->type->kind == CEL_MAP || no_overload(ps, n, BH_STR("cel.@mapInsert"), false);
    }
    if (n->op == OP_MAP_MACRO || n->op == OP_TO_LIST)
        n->type = type_of(a, CEL_LIST, body, NULL);
    else if (n->op == OP_FILTER)
        n->type = type_of(a, CEL_LIST, bh_cel_iter_type(range, false, &key), NULL);
    else
        n->type = BOOL;
    return true;
}

/* ---- functions ---- */

static const struct cel_type *result_type(struct cel_parser *ps, const struct cel_node *n, char ret)
{
    const struct cel_type *first = n->n_args ? arg_type(ps, n, 0) : DYN;

    switch (ret) {
    case 'l':
        return &string_list;
    case 'I':
        return &int_list;
    case 'D': /* its element, which is a list */
        return first->elem && first->elem->kind == CEL_LIST ? first->elem : &bh_cel_types[CEL_LIST];
    case 'f': /* an optional of its element */
        return type_of(&ps->p->arena, CEL_OPTIONAL, first->elem ? first->elem : DYN, NULL);
    case '=': /* as the first operand */
        return first;
    case 'e': /* its element */
        if (n->n_args == 2 && (!first->elem || first->elem == &free_type))
            return arg_type(ps, n, 1);
        return first->elem ? first->elem : DYN;
    case 'o': /* an optional of it */
        return type_of(&ps->p->arena, CEL_OPTIONAL, first, NULL);
    case 'Q': /* what a URL asks */
        return &query_type;
    case 'V': /* perhaps errors */
        return &errors_type;
    case 'P': /* perhaps a named format */
        return &format_type;
    case 'O': /* an optional of a type not known */
        return &no_value;
    default:
        return &bh_cel_types[bh_cel_letter_kind(ret)];
    }
}

/* Two lists or optionals of one type, or one and what it holds. */
static bool same_item(const struct cel_func *f, const struct cel_type *a, const struct cel_type *b)
{
    bool holder = f->args[0] == 'L' || f->args[0] == 'o';

    if (!holder || !a->elem)
        return true;
    if (f->args[1] == '*')
        return compatible(a->elem, b);
    return f->args[1] != f->args[0] || compatible(a, b);
}

static bool row_fits(struct cel_parser *ps, const struct cel_node *n, const struct cel_func *f)
{
    char letter[CEL_ARGS_MAX];

    if (!bh_cel_func_takes(f, n->n_args, letter))
        return false;
    for (uint32_t i = 0; i < n->n_args; i++) {
        const struct cel_type *t = arg_type(ps, n, i);
        if (t->kind != CEL_DYN && !bh_cel_func_accepts(letter[i], t->kind))
            return false;
        if (t->kind == CEL_LIST && t->elem->kind != CEL_DYN &&
            !bh_cel_func_accepts_item(letter[i] == 'H' ? 'h' : letter[i], t->elem->kind))
            return false;
    }
    return n->n_args < 2 || same_item(f, arg_type(ps, n, 0), arg_type(ps, n, 1));
}

bool bh_cel_check_call(struct cel_parser *ps, struct cel_node *n, struct bh_str name, bool member)
{
    bool known = false, rule = ps->p->self;

    for (size_t i = 0; i < bh_cel_n_funcs; i++) {
        const struct cel_func *f = &bh_cel_funcs[i];
        if (!bh_str_eqc(name, f->name) || (rule && bh_streq(f->name, "includes"))) /* of devices */
            continue;
        known = true;
        if (f->member != member || !row_fits(ps, n, f))
            continue;
        const struct cel_type *t = result_type(ps, n, f->ret);
        if (!n->type) {
            n->call.func = f;
            n->type = t;
            continue;
        }
        n->many = !bh_streq(f->name, "size") && !bh_streq(f->name, "sort");
        if (n->type->kind != t->kind)
            n->type = DYN; /* which overload it is shows while evaluating */
    }
    if (n->type) {
        /* A pattern that is a literal is compiled once, and fails here instead of on the
             * first device. */
        const char *why;
        if (n->n_args < 2 || n->call.func->args[0] != 's' ||
            !(bh_streq(n->call.func->name, "matches") || bh_streq(n->call.func->name, "find") ||
              bh_streq(n->call.func->name, "findAll")))
            return true;
        const struct cel_node *pattern = &ps->p->node[ps->p->arg[n->first + 1]];
        if (pattern->op != OP_CONST || pattern->value.kind != CEL_STRING)
            return true;
        n->call.regex = bh_regex_compile(&ps->p->arena,
                                         (struct bh_str){pattern->value.s, pattern->value.n}, &why);
        if (!n->call.regex && bh_streq(n->call.func->name, "matches"))
            bh_cel_fail(ps, pattern->pos, "invalid matches argument");
        else if (!n->call.regex)
            ps->rc = bh_err_set(ps->err, -EINVAL,
                                "program instantiation failed: error parsing regexp: %s", why);
        return n->call.regex != NULL;
    }
    if (known)
        return no_overload(ps, n, name, member);
    bh_cel_fail(ps, n->pos, "undeclared reference to '%.*s' (in container '')",
                (int)BH_MIN(name.n, (size_t)64), name.p);
    return false;
}

bool bh_cel_check(struct cel_parser *ps, struct cel_node *n)
{
    static bool (*const check[])(struct cel_parser *, struct cel_node *) = {
        [OP_SELECT] = check_select,   [OP_INDEX] = check_index,
        [OP_AND] = all_bool,          [OP_OPT_SELECT] = check_select,
        [OP_OR] = all_bool,           [OP_NOT] = all_bool,
        [OP_OPT_INDEX] = check_index, [OP_NEG] = check_negate,
        [OP_COND] = check_cond,       [OP_EQ] = check_equal,
        [OP_NE] = check_equal,        [OP_LT] = check_order,
        [OP_LE] = check_order,        [OP_GT] = check_order,
        [OP_GE] = check_order,        [OP_IN] = check_in,
        [OP_ADD] = check_arithmetic,  [OP_SUB] = check_arithmetic,
        [OP_MUL] = check_arithmetic,  [OP_DIV] = check_arithmetic,
        [OP_MOD] = check_arithmetic,  [OP_LIST] = check_list,
        [OP_MAP] = check_map,         [OP_ENTRY] = check_entry,
    };

    /* Variables, has() and calls are typed where they are made. */
    bh_assert(n->op != OP_VAR && n->op != OP_HAS && n->op != OP_CALL);
    if (n->op == OP_CONST)
        n->type = &bh_cel_types[n->value.kind];
    else if (n->op == OP_DEVICE)
        n->type = &bh_cel_types[CEL_DEVICE];
    else if (n->op == OP_BIND)
        n->type = arg_type(ps, n, 1);
    if (n->type)
        return true;
    return n->op < BH_ARRAY_LEN(check) && check[n->op] ? check[n->op](ps, n) : check_macro(ps, n);
}
