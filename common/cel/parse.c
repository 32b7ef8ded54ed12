/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/parse.c - expression text into checked nodes
 *
 * One pass: precedence climbing, names resolved and types found while a node is made, so a node
 * never refers to anything unchecked. Macros are nodes of their own; each variable has a slot of
 * its own. What upstream's optimizer makes of constants is made here (literals, conversions).
 * Invariants: operands come before their node; nesting and depth are bounded (cel_int.h), which
 *             bounds the C stack of parser and evaluator. Fails with: -EINVAL and the first error
 *             only, as upstream prints it with its line.
 * Upstream:   cel-go/parser, cel-go/interpreter/decorators.go; differences: one error instead of
 *             all; characters that are no token.
 */
#include "common/cel/cel_int.h"

static uint32_t expr(struct cel_parser *ps);

uint32_t bh_cel_fail(struct cel_parser *ps, size_t pos, const char *fmt, ...)
{
    unsigned line = 1, column = 1;
    const char *text = ps->lex.text, *begin = text;
    struct bh_buf dots BH_CLEANUP(bh_buf_fini) = {0};
    char why[400];
    va_list ap;

    if (ps->rc != 0)
        return CEL_NONE;
    for (size_t i = 0; i < pos && i < ps->lex.n; i++) {
        bool newline = text[i] == '\n';
        line += newline;
        column = newline ? 1 : column + ((text[i] & 0xc0) != 0x80);
        begin = newline ? text + i + 1 : begin;
    }
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    for (unsigned i = 1; i < column; i++)
        bh_buf_addc(&dots, '.');
    ps->rc = bh_err_set(ps->err, -EINVAL,
                        "compilation failed: ERROR: <input>:%u:%u: %s\n | %.*s\n | %s^", line,
                        column, why, (int)strcspn(begin, "\n"), begin, bh_buf_str(&dots));
    return CEL_NONE;
}

static void next(struct cel_parser *ps)
{
    bh_cel_lex(&ps->lex);
    if (ps->lex.tok == TOK_BAD)
        bh_cel_fail(ps, ps->lex.pos, "%s%s",
                    strstr(ps->lex.why, " literal") ? "" : "Syntax error: ", ps->lex.why);
}

/* What can begin an expression; behind a bracket a question mark as well. */
#define PRIMARY(more)                                                                              \
    "{'[', '{', '(', '.', '-', '!', " more "'true', 'false', 'null', NUM_FLOAT, NUM_INT, "         \
    "NUM_UINT, STRING, BYTES, IDENTIFIER}"

/* May the token behind the present one follow instead of it? */
static bool next_is(const struct cel_parser *ps, const char *expected)
{
    struct cel_lexer l = ps->lex;

    bh_cel_lex(&l);
    if (l.tok == TOK_END || l.tok == TOK_BAD)
        return l.tok == TOK_END && bh_streq(expected, "<EOF>");
    if (l.tok == TOK_CHAR)
        return expected[0] == '\'' ? expected[1] == l.ch : strchr("[{(.-!", l.ch) != NULL;
    return expected[0] == '{' && l.tok >= TOK_IDENT && l.tok <= TOK_BYTES;
}

/* In the words of upstream's parser generator, which first tries without the token. */
static uint32_t unexpected(struct cel_parser *ps, const char *expected)
{
    const struct cel_lexer *l = &ps->lex;
    int n = l->tok == TOK_END ? 5 : (int)BH_MIN(l->end - l->pos, (size_t)40);
    const char *text = l->tok == TOK_END ? "<EOF>" : l->text + l->pos;

    if (expected[0] == '\'' && (l->tok == TOK_END || !next_is(ps, expected)))
        return bh_cel_fail(ps, l->pos, "Syntax error: missing %s at '%.*s'", expected, n, text);
    return bh_cel_fail(ps, l->pos, "Syntax error: %s input '%.*s' expecting %s",
                       l->tok != TOK_END && next_is(ps, expected) ? "extraneous" : "mismatched", n,
                       text, expected);
}

static bool at(const struct cel_parser *ps, char ch)
{
    return ps->lex.tok == TOK_CHAR && ps->lex.ch == ch;
}

static bool accept(struct cel_parser *ps, char ch)
{
    if (!at(ps, ch))
        return false;
    next(ps);
    return true;
}

static bool expect(struct cel_parser *ps, char ch)
{
    char expected[] = {'\'', ch, '\'', '\0'};

    if (accept(ps, ch))
        return true;
    unexpected(ps, expected);
    return false;
}

static struct bh_str token_text(const struct cel_parser *ps)
{
    return (struct bh_str){ps->lex.text + ps->lex.pos, ps->lex.end - ps->lex.pos};
}

/* ---- nodes ---- */

static struct cel_node new_node(enum cel_op op, size_t pos)
{
    return (struct cel_node){.op = (uint8_t)op, .pos = (uint32_t)pos};
}

static bool set_args(struct cel_parser *ps, struct cel_node *n, const uint32_t *args,
                     uint32_t n_args)
{
    struct bh_cel_program *p = ps->p;

    n->first = p->n_args;
    n->n_args = n_args;
    n->depth = 1;
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i] == CEL_NONE)
            return false;
        n->depth = (uint16_t)BH_MAX(n->depth, p->node[args[i]].depth + 1);
        BH_ARENA_GROW(&p->arena, p->arg, p->n_args, p->cap_args);
        p->arg[p->n_args++] = args[i];
    }
    if (n->depth > CEL_DEPTH_MAX)
        bh_cel_fail(ps, n->pos, "expression recursion limit exceeded: %d", CEL_DEPTH_MAX);
    return n->depth <= CEL_DEPTH_MAX;
}

/* A node that has its operands and its type. Returns its index. */
static uint32_t put_node(struct cel_parser *ps, const struct cel_node *n)
{
    struct bh_cel_program *p = ps->p;

    BH_ARENA_GROW(&p->arena, p->node, p->n_nodes, p->cap_nodes);
    p->node[p->n_nodes] = *n;
    return p->n_nodes++;
}

/* The type is found unless it is there already, as a variable's. */
static uint32_t add_node(struct cel_parser *ps, struct cel_node *n, const uint32_t *args,
                         uint32_t n_args)
{
    if (!set_args(ps, n, args, n_args) || (!n->type && !bh_cel_check(ps, n)))
        return CEL_NONE;
    return put_node(ps, n);
}

static uint32_t add_const(struct cel_parser *ps, size_t pos, struct cel_value v)
{
    struct cel_node n = new_node(OP_CONST, pos);
    n.value = v;
    return add_node(ps, &n, NULL, 0);
}

/* A list of operands of any length while it is being parsed. */
struct operands {
    uint32_t *p, n, cap;
};

static void push(struct cel_parser *ps, struct operands *o, uint32_t node)
{
    BH_ARENA_GROW(&ps->p->arena, o->p, o->n, o->cap);
    o->p[o->n++] = node;
}

/* ---- variables ---- */

static bool push_var(struct cel_parser *ps, struct bh_str name, const struct cel_type *type)
{
    if (ps->n_vars == CEL_VARS_MAX) {
        bh_cel_fail(ps, ps->lex.pos, "expression recursion limit exceeded: %d", CEL_VARS_MAX);
        return false;
    }
    ps->var[ps->n_vars].name = name;
    ps->var[ps->n_vars].type = type;
    ps->var[ps->n_vars].slot = ps->p->n_slots++; /* its own: values of bind are found late */
    ps->n_vars++;
    return true;
}

/* -1: there is none. */
static int find_var(const struct cel_parser *ps, struct bh_str name)
{
    int i = (int)ps->n_vars - 1;

    while (i >= 0 && !bh_str_eq(ps->var[i].name, name))
        i--;
    return i;
}

static uint32_t undeclared(struct cel_parser *ps, struct bh_str name, size_t pos)
{
    return bh_cel_fail(ps, pos, "undeclared reference to '%.*s' (in container '')",
                       (int)BH_MIN(name.n, (size_t)64), name.p);
}

static uint32_t identifier(struct cel_parser *ps, struct bh_str name, size_t pos)
{
    static const uint8_t kinds[] = {CEL_BOOL,  CEL_INT,  CEL_UINT, CEL_DOUBLE, CEL_STRING,
                                    CEL_BYTES, CEL_LIST, CEL_MAP,  CEL_TYPE,   CEL_NULL};
    struct cel_node n = new_node(OP_VAR, pos);
    int var = find_var(ps, name);

    if (var >= 0) {
        n.slot = ps->var[var].slot;
        ps->p->uses_old |= ps->p->self && n.slot == 1;
        n.type = ps->var[var].type;
        return add_node(ps, &n, NULL, 0);
    }
    if (!ps->p->self && bh_str_eqc(name, "device")) {
        n.op = OP_DEVICE;
        return add_node(ps, &n, NULL, 0);
    }
    if (bh_str_eqc(name, "true") || bh_str_eqc(name, "false"))
        return add_const(ps, pos, cel_bool(name.n == 4));
    if (bh_str_eqc(name, "null"))
        return add_const(ps, pos, (struct cel_value){.kind = CEL_NULL});
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        if (bh_str_eqc(name, bh_cel_kind_name(kinds[i])))
            return add_const(ps, pos, (struct cel_value){.kind = CEL_TYPE, .i = kinds[i]});
    }
    return undeclared(ps, name, pos);
}

/* The name of a new variable, the current token. */
static bool var_name(struct cel_parser *ps, struct bh_str *ret)
{
    *ret = token_text(ps);
    if (ps->lex.tok != TOK_IDENT) {
        bh_cel_fail(ps, ps->lex.pos, "argument must be a simple name");
        return false;
    }
    next(ps);
    return true;
}

/* ---- macros ---- */

enum { ONE = 1, TWO = 2 };

static const struct macro {
    const char *name;
    uint8_t op;
    uint8_t args_max; /* behind the variable */
    uint8_t vars;     /* how many there may be, as bits */
} macros[] = {
    {"all", OP_ALL, 1, ONE | TWO},
    {"exists", OP_EXISTS, 1, ONE | TWO},
    {"exists_one", OP_EXISTS_ONE, 1, ONE | TWO},
    {"existsOne", OP_EXISTS_ONE, 1, TWO},
    {"filter", OP_FILTER, 1, ONE},
    {"map", OP_MAP_MACRO, 2, ONE},
    {"sortBy", OP_SORT_BY, 1, ONE},
    {"transformList", OP_TO_LIST, 2, TWO},
    {"transformMap", OP_TO_MAP, 2, TWO},
    {"transformMapEntry", OP_TO_ENTRIES, 2, TWO},
    {"optMap", OP_OPT_MAP, 1, ONE},
    {"optFlatMap", OP_OPT_FLATMAP, 1, ONE},
};

/* Declares the macro's variables with the types the range gives them. */
static bool macro_vars(struct cel_parser *ps, const struct macro *m, struct cel_node *n,
                       const struct cel_node *over, const struct bh_str name[2])
{
    const struct cel_type *range = over->type, *first = NULL, *item;

    if (m->op == OP_OPT_MAP || m->op == OP_OPT_FLATMAP) {
        if (range->kind != CEL_OPTIONAL && range->kind != CEL_DYN) {
            bh_cel_fail(ps, n->pos, "found no matching overload for '%s'", m->name);
            return false;
        }
        item = range->kind == CEL_OPTIONAL ? range->elem : &bh_cel_types[CEL_DYN];
    } else {
        item = bh_cel_iter_type(range, n->two_vars, &first);
    }
    if (!item) {
        bh_cel_fail(
            ps, over->pos,
            "expression of type '%s' cannot be range of a comprehension (must be list, map, or "
            "dynamic)",
            bh_cel_type_text(ps, range));
        return false;
    }
    n->slot = ps->p->n_slots;
    if (n->two_vars)
        return push_var(ps, name[0], first) && push_var(ps, name[1], item);
    return push_var(ps, name[0], item);
}

/* The parenthesis is open and the current token is the variable. */
static uint32_t macro(struct cel_parser *ps, const struct macro *m, uint32_t range, size_t pos)
{
    struct cel_node n = new_node((enum cel_op)m->op, pos);
    unsigned outer = ps->n_vars;
    struct bh_str name[2] = {0};
    uint32_t args[3] = {range, CEL_NONE, CEL_NONE}, n_args = 1;

    if (!var_name(ps, &name[0]) || !expect(ps, ','))
        return CEL_NONE;
    if ((m->vars & TWO) && ps->lex.tok == TOK_IDENT) {
        struct cel_lexer back = ps->lex; /* a name alone is a variable only when more follows */
        if (var_name(ps, &name[1]) && at(ps, ','))
            n.two_vars = true;
        else
            ps->lex = back;
        if (n.two_vars)
            next(ps);
    }
    if (ps->rc == 0 && !n.two_vars && !(m->vars & ONE))
        return undeclared(ps, bh_str_c(m->name), pos);
    if (ps->rc != 0 || !macro_vars(ps, m, &n, &ps->p->node[range], name))
        return CEL_NONE;
    do {
        args[n_args++] = expr(ps);
    } while (ps->rc == 0 && n_args <= m->args_max && accept(ps, ','));
    if (ps->rc == 0 && !expect(ps, ')'))
        return CEL_NONE;
    ps->n_vars = outer;
    if (ps->rc != 0)
        return CEL_NONE;
    if (n_args == 3) { /* map(x, condition, transform) */
        uint32_t condition = args[1];
        args[1] = args[2];
        args[2] = condition;
    }
    return add_node(ps, &n, args, n_args);
}

/* cel.bind(name, value, expression), behind its parenthesis. */
static uint32_t bind(struct cel_parser *ps, size_t pos)
{
    struct cel_node n = new_node(OP_BIND, pos);
    struct bh_str name;
    uint32_t args[2];

    if (!var_name(ps, &name) || !expect(ps, ','))
        return CEL_NONE;
    args[0] = expr(ps);
    if (args[0] == CEL_NONE || !expect(ps, ','))
        return CEL_NONE;
    n.slot = ps->p->n_slots;
    if (!push_var(ps, name, ps->p->node[args[0]].type))
        return CEL_NONE;
    args[1] = expr(ps);
    ps->n_vars--;
    if (args[1] == CEL_NONE || !expect(ps, ')'))
        return CEL_NONE;
    return add_node(ps, &n, args, 2);
}

/* The root of this chain of members, if it is one, is not paid for. */
static void mark_root(struct cel_parser *ps, uint32_t at)
{
    struct cel_node *n = &ps->p->node[at];

    while (n->op == OP_SELECT || n->op == OP_OPT_SELECT || n->op == OP_INDEX ||
           n->op == OP_OPT_INDEX) {
        struct cel_node *from = &ps->p->node[ps->p->arg[n->first]];
        if (!bh_cel_is_attribute(from))
            break;
        n = from;
    }
    n->no_root = true;
}

static uint32_t has(struct cel_parser *ps)
{
    uint32_t arg = expr(ps);

    if (arg == CEL_NONE || !expect(ps, ')'))
        return CEL_NONE;
    struct cel_node *n = &ps->p->node[arg];
    if (n->op != OP_SELECT)
        return bh_cel_fail(ps, n->pos, "invalid argument to has() macro");
    mark_root(ps, arg);
    n->op = OP_HAS;
    n->type = &bh_cel_types[CEL_BOOL];
    return arg;
}

/* ---- literals ---- */

static uint32_t entry(struct cel_parser *ps, bool optional)
{
    struct cel_node n = new_node(OP_ENTRY, ps->lex.pos);
    uint32_t arg = expr(ps);

    return optional && arg != CEL_NONE ? add_node(ps, &n, &arg, 1) : arg;
}

/* As upstream: what is made of constants alone is found now and costs nothing later; an error stays
 * where it is. */
static bool all_const(const struct cel_parser *ps, const uint32_t *args, uint32_t n_args)
{
    for (uint32_t i = 0; i < n_args; i++)
        if (ps->p->node[args[i]].op != OP_CONST)
            return false;
    return true;
}

static uint32_t replace_by_value(struct cel_parser *ps, uint32_t at, bool error_fails)
{
    if (ps->p->flags & CEL_UNFOLDED)
        return at;
    struct cel_eval e = {.prog = ps->p, .arena = &ps->p->arena};
    struct cel_value v = bh_cel_eval(&e, at);
    struct cel_node *n = &ps->p->node[at];

    if (v.kind == CEL_ERROR && (n->type->kind == CEL_TIMESTAMP || n->type->kind == CEL_DURATION))
        return bh_cel_fail(ps, ps->p->node[ps->p->arg[n->first]].pos, "invalid %s argument",
                           n->call.func->name);
    if (v.kind == CEL_ERROR && error_fails) {
        ps->rc = bh_err_set(ps->err, -EINVAL, "program instantiation failed: %s", v.s);
        return CEL_NONE;
    }
    if (v.kind == CEL_ERROR || e.exhausted)
        return at;
    n->op = OP_CONST;
    n->value = v;
    return at;
}

static uint32_t add_literal(struct cel_parser *ps, struct cel_node *n, const struct operands *o)
{
    bool fold = ps->rc == 0 && all_const(ps, o->p, o->n);
    uint32_t at = add_node(ps, n, o->p, o->n);

    return fold && at != CEL_NONE ? replace_by_value(ps, at, false) : at;
}

/* Conversions of a constant. */
static bool is_conversion(struct bh_str name)
{
    static const char *const names[] = {"int",   "uint", "double", "string",    "bool",
                                        "bytes", "dyn",  "type",   "timestamp", "duration"};

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++)
        if (bh_str_eqc(name, names[i]))
            return true;
    return false;
}

/* ---- calls and postfix operators ---- */

/* Operands up to the closing parenthesis, behind the receiver if there is one. */
static uint32_t call(struct cel_parser *ps, struct bh_str name, uint32_t receiver, size_t pos)
{
    struct cel_node n = new_node(OP_CALL, pos);
    uint32_t args[CEL_ARGS_MAX], n_args = 0;

    bool is_format = receiver != CEL_NONE && bh_str_eqc(name, "format");
    ps->in_format += is_format;
    if (receiver != CEL_NONE)
        args[n_args++] = receiver;
    for (bool more = !at(ps, ')'); ps->rc == 0 && more; more = accept(ps, ',')) {
        if (n_args == CEL_ARGS_MAX)
            return bh_cel_fail(ps, pos, "found no matching overload for '%.*s'",
                               (int)BH_MIN(name.n, (size_t)64), name.p);
        args[n_args++] = expr(ps);
    }
    ps->in_format -= is_format;
    if (ps->rc != 0 || !expect(ps, ')'))
        return CEL_NONE;
    if (!set_args(ps, &n, args, n_args) || !bh_cel_check_call(ps, &n, name, receiver != CEL_NONE))
        return CEL_NONE;
    if (is_format && !bh_cel_check_format(ps, &n))
        return CEL_NONE;
    uint32_t at = put_node(ps, &n);
    if (receiver == CEL_NONE && n_args == 1 && is_conversion(name) && all_const(ps, args, 1))
        return replace_by_value(ps, at, true);
    return at;
}

static uint32_t no_alternative(struct cel_parser *ps)
{
    const struct cel_lexer *l = &ps->lex;

    return bh_cel_fail(ps, l->pos, "Syntax error: no viable alternative at input '.%.*s'",
                       (int)BH_MIN(l->end - l->pos, (size_t)40), l->text + l->pos);
}

static uint32_t member(struct cel_parser *ps, uint32_t left, size_t pos)
{
    bool optional = accept(ps, '?');
    struct bh_str name = token_text(ps);

    if (ps->lex.tok != TOK_IDENT)
        return ps->rc ? CEL_NONE : no_alternative(ps);
    next(ps);
    size_t open = ps->lex.pos;
    if (!optional && accept(ps, '(')) {
        for (size_t i = 0; i < BH_ARRAY_LEN(macros); i++)
            if (bh_str_eqc(name, macros[i].name))
                return macro(ps, &macros[i], left, open);
        return call(ps, name, left, open);
    }
    struct cel_node n = new_node(optional ? OP_OPT_SELECT : OP_SELECT, pos);
    n.name = name;
    return add_node(ps, &n, &left, 1);
}

static uint32_t index_of(struct cel_parser *ps, uint32_t left, size_t pos)
{
    bool optional = accept(ps, '?');
    uint32_t args[2] = {left, CEL_NONE};

    if (!optional && (ps->lex.tok == TOK_END || at(ps, ']')))
        return unexpected(ps, PRIMARY("'?', "));
    args[1] = expr(ps);
    struct cel_node n = new_node(optional ? OP_OPT_INDEX : OP_INDEX, pos);

    if (args[1] == CEL_NONE || !expect(ps, ']'))
        return CEL_NONE;
    return add_node(ps, &n, args, 2);
}

static uint32_t named(struct cel_parser *ps)
{
    size_t pos = ps->lex.pos;
    struct bh_str name = token_text(ps);

    next(ps);
    /* cel.bind() (of devices only), optional.of(), sets.contains() ...: a dotted name that is
     * called. */
    if (at(ps, '.') && find_var(ps, name) < 0 &&
        ((bh_str_eqc(name, "cel") && !ps->p->self) || bh_str_eqc(name, "optional") ||
         bh_str_eqc(name, "sets") || bh_str_eqc(name, "lists") || bh_str_eqc(name, "strings") ||
         bh_str_eqc(name, "ip") || bh_str_eqc(name, "format"))) {
        next(ps);
        struct bh_str inner = token_text(ps);
        bool ident = ps->lex.tok == TOK_IDENT;
        next(ps);
        size_t open = ps->lex.pos;
        if (!ident || !accept(ps, '('))
            return undeclared(ps, name, pos);
        char *p = bh_arena_alloc(&ps->p->arena, name.n + inner.n + 2);
        memcpy(p, name.p, name.n);
        p[name.n] = '.';
        memcpy(p + name.n + 1, inner.p, inner.n);
        p[name.n + 1 + inner.n] = '\0';
        struct bh_str full = {p, name.n + 1 + inner.n};
        return bh_str_eqc(full, "cel.bind") ? bind(ps, open) : call(ps, full, CEL_NONE, open);
    }
    size_t open = ps->lex.pos;
    if (accept(ps, '('))
        return bh_str_eqc(name, "has") ? has(ps) : call(ps, name, CEL_NONE, open);
    return identifier(ps, name, pos);
}

/* Of a literal, which a comma could have continued. */
static bool expect_end(struct cel_parser *ps, char ch)
{
    if (!at(ps, ch))
        unexpected(ps, ch == ']' ? "{']', ','}" : "{'}', ','}");
    return accept(ps, ch);
}

static uint32_t map_literal(struct cel_parser *ps, size_t pos)
{
    struct cel_node n = new_node(OP_MAP, pos);
    struct operands o = {0};

    while (ps->rc == 0 && !at(ps, '}')) {
        bool optional = accept(ps, '?');
        push(ps, &o, expr(ps));
        if (ps->rc != 0 || !expect(ps, ':'))
            return CEL_NONE;
        push(ps, &o, entry(ps, optional));
        if (!accept(ps, ','))
            break;
    }
    if (ps->rc != 0 || !expect_end(ps, '}'))
        return CEL_NONE;
    return add_literal(ps, &n, &o);
}

static uint32_t primary(struct cel_parser *ps)
{
    size_t pos = ps->lex.pos;
    struct cel_value v = ps->lex.value;
    uint32_t inner;

    switch (ps->lex.tok) {
    case TOK_INT:
        if (ps->lex.magnitude > (uint64_t)INT64_MAX)
            return bh_cel_fail(ps, pos, "invalid int literal");
        break;
    case TOK_UINT:
    case TOK_DOUBLE:
    case TOK_STRING:
    case TOK_BYTES:
        break;
    case TOK_IDENT:
        return named(ps);
    default:
        if (accept(ps, '.')) /* the root, where everything begins anyway */
            return ps->lex.tok == TOK_IDENT ? named(ps) : no_alternative(ps);
        if (accept(ps, '[')) {
            struct cel_node n = new_node(OP_LIST, pos);
            struct operands o = {0};
            while (ps->rc == 0 && !at(ps, ']')) {
                push(ps, &o, entry(ps, accept(ps, '?')));
                if (!accept(ps, ','))
                    break;
            }
            if (ps->rc != 0 || !expect_end(ps, ']'))
                return CEL_NONE;
            return add_literal(ps, &n, &o);
        } else if (accept(ps, '{')) {
            return map_literal(ps, pos);
        } else if (!accept(ps, '(')) {
            return ps->rc ? CEL_NONE : unexpected(ps, PRIMARY(""));
        }
        inner = expr(ps);
        return inner != CEL_NONE && expect(ps, ')') ? inner : CEL_NONE;
    }
    next(ps);
    return add_const(ps, pos, v);
}

static uint32_t postfix(struct cel_parser *ps, uint32_t left)
{
    while (ps->rc == 0 && left != CEL_NONE) {
        size_t pos = ps->lex.pos;
        if (accept(ps, '.'))
            left = member(ps, left, pos);
        else if (accept(ps, '['))
            left = index_of(ps, left, pos);
        else
            return left;
    }
    return CEL_NONE;
}

/* ! and - in any number; the least int is a literal of its own: its magnitude alone is none. */
static uint32_t unary(struct cel_parser *ps)
{
    size_t pos = ps->lex.pos;
    struct cel_node n = new_node(at(ps, '!') ? OP_NOT : OP_NEG, pos);

    if (!at(ps, '!') && !at(ps, '-'))
        return postfix(ps, primary(ps));
    next(ps);
    if (at(ps, n.op == OP_NOT ? '!' : '-')) { /* two of them are none */
        next(ps);
        return unary(ps);
    }
    if (n.op == OP_NEG && (ps->lex.tok == TOK_INT || ps->lex.tok == TOK_DOUBLE)) {
        struct cel_value v = ps->lex.value;
        if (v.kind == CEL_INT)
            v.i = (int64_t)(0 - ps->lex.magnitude);
        else
            v.d = -v.d;
        next(ps);
        return postfix(ps, add_const(ps, pos, v));
    }
    if (++ps->nesting > CEL_NESTING_MAX)
        return bh_cel_fail(ps, pos, "expression recursion limit exceeded: %d", CEL_NESTING_MAX);
    uint32_t arg = unary(ps);
    ps->nesting--;
    return arg == CEL_NONE ? CEL_NONE : add_node(ps, &n, &arg, 1);
}

enum { LEVEL_OR = 1, LEVEL_AND, LEVEL_RELATION, LEVEL_SUM, LEVEL_PRODUCT };

/* The binary operator at hand; 0 = none. */
static int binary_op(const struct cel_parser *ps, enum cel_op *ret)
{
    static const char chars[] = "<>+-*/%";
    static const uint8_t ops[] = {OP_LT, OP_GT, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD};
    const char *found;

    switch (ps->lex.tok) {
    case TOK_OR:
        *ret = OP_OR;
        return LEVEL_OR;
    case TOK_AND:
        *ret = OP_AND;
        return LEVEL_AND;
    case TOK_EQ:
    case TOK_NE:
    case TOK_LE:
    case TOK_GE:
        *ret = ps->lex.tok == TOK_EQ   ? OP_EQ
               : ps->lex.tok == TOK_NE ? OP_NE
               : ps->lex.tok == TOK_LE ? OP_LE
                                       : OP_GE;
        return LEVEL_RELATION;
    case TOK_IDENT:
        *ret = OP_IN;
        return bh_str_eqc(token_text(ps), "in") ? LEVEL_RELATION : 0;
    case TOK_CHAR:
        found = strchr(chars, ps->lex.ch);
        if (!found)
            return 0;
        *ret = (enum cel_op)ops[found - chars];
        return found - chars < 2 ? LEVEL_RELATION : found - chars < 4 ? LEVEL_SUM : LEVEL_PRODUCT;
    default:
        return 0;
    }
}

static uint32_t binary(struct cel_parser *ps, int level)
{
    uint32_t left = unary(ps);
    enum cel_op op;
    int found;

    while (ps->rc == 0 && (found = binary_op(ps, &op)) >= level && found > 0) {
        size_t pos = ps->lex.pos;
        if (found <= LEVEL_AND) {
            /* The further operands of a chain of && or of ||. */
            struct cel_node n = new_node(op, pos);
            struct operands o = {0};
            enum cel_op other;
            push(ps, &o, left);
            while (ps->rc == 0 && binary_op(ps, &other) == found) {
                next(ps);
                push(ps, &o, binary(ps, found + 1));
            }
            left = ps->rc ? CEL_NONE : add_node(ps, &n, o.p, o.n);
            continue;
        }
        struct cel_node n = new_node(op, pos);
        next(ps);
        uint32_t args[2] = {left, binary(ps, found + 1)};
        left = ps->rc ? CEL_NONE : add_node(ps, &n, args, 2);
        const struct cel_node *right = ps->rc == 0 && op == OP_IN ? &ps->p->node[args[1]] : NULL;
        if (right && right->op == OP_CONST && right->type->kind == CEL_LIST && !right->value.n) {
            ps->p->node[left].op = OP_CONST; /* whatever stands on the left */
            ps->p->node[left].value = cel_bool(false);
        }
    }
    return ps->rc ? CEL_NONE : left;
}

static uint32_t expr(struct cel_parser *ps)
{
    uint32_t args[3] = {CEL_NONE, CEL_NONE, CEL_NONE};

    if (ps->rc != 0)
        return CEL_NONE;
    if (++ps->nesting > CEL_NESTING_MAX)
        return bh_cel_fail(ps, ps->lex.pos, "expression recursion limit exceeded: %d",
                           CEL_NESTING_MAX);
    args[0] = binary(ps, LEVEL_OR);
    size_t pos = ps->lex.pos;
    if (ps->rc == 0 && accept(ps, '?')) {
        struct cel_node n = new_node(OP_COND, pos);
        args[1] = binary(ps, LEVEL_OR);
        if (ps->rc == 0 && expect(ps, ':'))
            args[2] = expr(ps);
        for (size_t i = 1; ps->rc == 0 && i < 3; i++)
            mark_root(ps, args[i]);
        args[0] = ps->rc ? CEL_NONE : add_node(ps, &n, args, 3);
    }
    ps->nesting--;
    return ps->rc ? CEL_NONE : args[0];
}

static void declare_self(struct cel_parser *ps)
{
    struct cel_type *optional = bh_arena_new(&ps->p->arena, struct cel_type);

    *optional = (struct cel_type){.kind = CEL_OPTIONAL, .elem = ps->p->self};
    (void)push_var(ps, BH_STR("self"), ps->p->self);
    (void)push_var(ps, BH_STR("oldSelf"),
                   ps->p->flags & BH_CEL_OPTIONAL_OLD ? optional : ps->p->self);
}

int bh_cel_parse(struct bh_cel_program *p, struct bh_err *err)
{
    struct cel_parser ps = {.p = p, .err = err};

    ps.lex = (struct cel_lexer){.text = p->text, .n = p->text_n, .arena = &p->arena};
    ps.lex.pool = bh_arena_alloc(&p->arena, p->text_n + 1);
    if (p->self)
        declare_self(&ps);
    next(&ps);
    p->root = expr(&ps);
    if (ps.rc == 0 && ps.lex.tok != TOK_END)
        unexpected(&ps, "<EOF>");
    if (ps.rc == 0) {
        const struct cel_type *t = p->node[p->root].type;
        if (p->self && t->kind != (p->flags & BH_CEL_MESSAGE ? CEL_STRING : CEL_BOOL))
            ps.rc =
                bh_err_set(err, -EINVAL, "%s",
                           p->flags & BH_CEL_MESSAGE ? "messageExpression must evaluate to a string"
                                                     : "cel expression must evaluate to a bool");
        else if (!p->self && t->kind != CEL_BOOL && t != &bh_cel_any)
            ps.rc = bh_err_set(ps.err, -EINVAL, "must evaluate to bool or the unknown type, not %s",
                               bh_cel_type_text(&ps, t));
    }
    return ps.rc;
}
