/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/parse.c - expression text into checked nodes
 *
 * One pass: precedence climbing, names resolved and types found while a node is made, so a node
 * never refers to anything unchecked. Macros are nodes of their own; their variables are slots
 * numbered by nesting. Invariants: operands come before their node; nesting and depth are bounded
 * (cel_int.h), which bounds the C stack of parser and evaluator. Fails with: -EINVAL and the first
 * error only, as "compilation failed: ERROR: <input>:line:column: why". Upstream:   cel-go/parser;
 * differences: the text of syntax errors, one error instead of all.
 */
#include "scheduler/cel/cel_int.h"

static uint32_t expr(struct cel_parser *ps);

uint32_t bh_cel_fail(struct cel_parser *ps, size_t pos, const char *fmt, ...)
{
    unsigned line = 1, column = 1;
    char why[400];
    va_list ap;

    if (ps->rc != 0)
        return CEL_NONE;
    for (size_t i = 0; i < pos && i < ps->lex.n; i++) {
        bool newline = ps->lex.text[i] == '\n';
        line += newline;
        column = newline ? 1 : column + ((ps->lex.text[i] & 0xc0) != 0x80);
    }
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    ps->rc = bh_err_set(ps->err, -EINVAL, "compilation failed: ERROR: <input>:%u:%u: %s", line,
                        column, why);
    return CEL_NONE;
}

static void next(struct cel_parser *ps)
{
    bh_cel_lex(&ps->lex);
    if (ps->lex.tok == TOK_BAD)
        bh_cel_fail(ps, ps->lex.pos, "Syntax error: %s", ps->lex.why);
}

static uint32_t unexpected(struct cel_parser *ps)
{
    const struct cel_lexer *l = &ps->lex;

    if (l->tok == TOK_END)
        return bh_cel_fail(ps, l->pos, "Syntax error: mismatched input '<EOF>'");
    return bh_cel_fail(ps, l->pos, "Syntax error: mismatched input '%.*s'",
                       (int)BH_MIN(l->end - l->pos, (size_t)40), l->text + l->pos);
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
    if (accept(ps, ch))
        return true;
    unexpected(ps);
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

static void *grow(struct bh_arena *a, const void *old, uint32_t n, uint32_t *cap, size_t size)
{
    *cap = BH_MAX(*cap * 2, 16u);
    void *p = bh_arena_array(a, *cap, size);
    if (n)
        memcpy(p, old, n * size);
    return p;
}

static bool set_args(struct cel_parser *ps, struct cel_node *n, const uint32_t *args,
                     uint32_t n_args)
{
    struct bh_cel_program *p = ps->p;

    while (p->n_args + n_args > p->cap_args)
        p->arg = grow(&p->arena, p->arg, p->n_args, &p->cap_args, sizeof(*p->arg));
    n->first = p->n_args;
    n->n_args = n_args;
    n->depth = 1;
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i] == CEL_NONE)
            return false;
        n->depth = (uint16_t)BH_MAX(n->depth, p->node[args[i]].depth + 1);
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

    if (p->n_nodes == p->cap_nodes)
        p->node = grow(&p->arena, p->node, p->n_nodes, &p->cap_nodes, sizeof(*p->node));
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
    if (o->n == o->cap)
        o->p = grow(&ps->p->arena, o->p, o->n, &o->cap, sizeof(*o->p));
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
    ps->n_vars++;
    ps->p->n_slots = (uint16_t)BH_MAX(ps->p->n_slots, ps->n_vars);
    return true;
}

static bool find_var(const struct cel_parser *ps, struct bh_str name, unsigned *ret)
{
    for (unsigned i = ps->n_vars; i-- > 0;) {
        if (bh_str_eq(ps->var[i].name, name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static uint32_t identifier(struct cel_parser *ps, struct bh_str name, size_t pos)
{
    static const uint8_t kinds[] = {CEL_BOOL,  CEL_INT,  CEL_UINT, CEL_DOUBLE, CEL_STRING,
                                    CEL_BYTES, CEL_LIST, CEL_MAP,  CEL_TYPE,   CEL_NULL};
    struct cel_node n = new_node(OP_VAR, pos);
    unsigned var;

    if (find_var(ps, name, &var)) {
        n.slot = (uint16_t)var;
        n.type = ps->var[var].type;
        return add_node(ps, &n, NULL, 0);
    }
    if (bh_str_eqc(name, "device")) {
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
    return bh_cel_fail(ps, pos, "undeclared reference to '%.*s' (in container '')",
                       (int)BH_MIN(name.n, (size_t)64), name.p);
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

static const struct macro {
    const char *name;
    uint8_t op;
    uint8_t args_max; /* behind the variable */
    bool two_vars;    /* may have two variables */
} macros[] = {
    {"all", OP_ALL, 1, true},
    {"exists", OP_EXISTS, 1, true},
    {"exists_one", OP_EXISTS_ONE, 1, false},
    {"existsOne", OP_EXISTS_ONE, 1, true},
    {"filter", OP_FILTER, 1, false},
    {"map", OP_MAP_MACRO, 2, false},
    {"optMap", OP_OPT_MAP, 1, false},
    {"optFlatMap", OP_OPT_FLATMAP, 1, false},
};

static const struct macro *find_macro(struct bh_str name)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(macros); i++) {
        if (bh_str_eqc(name, macros[i].name))
            return &macros[i];
    }
    return NULL;
}

/* Declares the macro's variables with the types the range gives them. */
static bool macro_vars(struct cel_parser *ps, const struct macro *m, struct cel_node *n,
                       const struct cel_type *range, const struct bh_str name[2])
{
    const struct cel_type *first = NULL, *item;

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
        struct bh_buf b = {0};
        bh_cel_type_text(&b, range);
        bh_cel_fail(
            ps, n->pos,
            "expression of type '%s' cannot be range of a comprehension (must be list, map, or "
            "dynamic)",
            bh_buf_str(&b));
        bh_buf_fini(&b);
        return false;
    }
    n->slot = (uint16_t)ps->n_vars;
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
    if (m->two_vars && ps->lex.tok == TOK_IDENT) {
        struct cel_lexer back = ps->lex; /* a name alone is a variable only when more follows */
        if (var_name(ps, &name[1]) && at(ps, ','))
            n.two_vars = true;
        else
            ps->lex = back;
        if (n.two_vars)
            next(ps);
    }
    if (ps->rc != 0 || !macro_vars(ps, m, &n, ps->p->node[range].type, name))
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
    n.slot = (uint16_t)ps->n_vars;
    if (!push_var(ps, name, ps->p->node[args[0]].type))
        return CEL_NONE;
    args[1] = expr(ps);
    ps->n_vars--;
    if (args[1] == CEL_NONE || !expect(ps, ')'))
        return CEL_NONE;
    return add_node(ps, &n, args, 2);
}

static uint32_t has(struct cel_parser *ps, size_t pos)
{
    uint32_t arg = expr(ps);

    if (arg == CEL_NONE || !expect(ps, ')'))
        return CEL_NONE;
    struct cel_node *n = &ps->p->node[arg];
    if (n->op != OP_SELECT)
        return bh_cel_fail(ps, pos, "invalid argument to has() macro");
    n->op = OP_HAS;
    n->type = &bh_cel_types[CEL_BOOL];
    return arg;
}

/* ---- calls and postfix operators ---- */

/* Operands up to the closing parenthesis, behind the receiver if there is one. */
static uint32_t call(struct cel_parser *ps, struct bh_str name, uint32_t receiver, size_t pos)
{
    struct cel_node n = new_node(OP_CALL, pos);
    uint32_t args[CEL_ARGS_MAX], n_args = 0;

    if (receiver != CEL_NONE)
        args[n_args++] = receiver;
    while (ps->rc == 0 && !at(ps, ')')) {
        if (n_args == CEL_ARGS_MAX)
            return bh_cel_fail(ps, pos, "found no matching overload for '%.*s'",
                               (int)BH_MIN(name.n, (size_t)64), name.p);
        args[n_args++] = expr(ps);
        if (!accept(ps, ','))
            break;
    }
    if (ps->rc != 0 || !expect(ps, ')'))
        return CEL_NONE;
    if (!set_args(ps, &n, args, n_args) || !bh_cel_check_call(ps, &n, name, receiver != CEL_NONE))
        return CEL_NONE;
    return put_node(ps, &n);
}

static uint32_t member(struct cel_parser *ps, uint32_t left)
{
    size_t pos = ps->lex.pos;
    bool optional = accept(ps, '?');
    struct bh_str name = token_text(ps);

    if (ps->lex.tok != TOK_IDENT)
        return ps->rc ? CEL_NONE : unexpected(ps);
    next(ps);
    if (!optional && accept(ps, '(')) {
        const struct macro *m = find_macro(name);
        return m ? macro(ps, m, left, pos) : call(ps, name, left, pos);
    }
    struct cel_node n = new_node(optional ? OP_OPT_SELECT : OP_SELECT, pos);
    n.name = name;
    return add_node(ps, &n, &left, 1);
}

static uint32_t index_of(struct cel_parser *ps, uint32_t left)
{
    size_t pos = ps->lex.pos;
    bool optional = accept(ps, '?');
    uint32_t args[2] = {left, expr(ps)};
    struct cel_node n = new_node(optional ? OP_OPT_INDEX : OP_INDEX, pos);

    if (args[1] == CEL_NONE || !expect(ps, ']'))
        return CEL_NONE;
    return add_node(ps, &n, args, 2);
}

/* cel.bind(), optional.of(), sets.contains() ...: a dotted name that is called. */
static bool is_namespace(const struct cel_parser *ps, struct bh_str name)
{
    unsigned var;

    return at(ps, '.') && !find_var(ps, name, &var) &&
           (bh_str_eqc(name, "cel") || bh_str_eqc(name, "optional") || bh_str_eqc(name, "sets"));
}

static uint32_t named(struct cel_parser *ps)
{
    size_t pos = ps->lex.pos;
    struct bh_str name = token_text(ps);

    next(ps);
    if (is_namespace(ps, name)) {
        next(ps);
        const char *end = ps->lex.text + ps->lex.end;
        bool ident = ps->lex.tok == TOK_IDENT;
        bool adjacent = token_text(ps).p == name.p + name.n + 1;
        next(ps);
        if (!ident || !adjacent || !accept(ps, '('))
            return bh_cel_fail(ps, pos, "undeclared reference to '%.*s' (in container '')",
                               (int)name.n, name.p);
        name.n = (size_t)(end - name.p);
        return bh_str_eqc(name, "cel.bind") ? bind(ps, pos) : call(ps, name, CEL_NONE, pos);
    }
    if (accept(ps, '('))
        return bh_str_eqc(name, "has") ? has(ps, pos) : call(ps, name, CEL_NONE, pos);
    return identifier(ps, name, pos);
}

static uint32_t list_literal(struct cel_parser *ps, size_t pos)
{
    struct cel_node n = new_node(OP_LIST, pos);
    struct operands o = {0};

    while (ps->rc == 0 && !at(ps, ']')) {
        push(ps, &o, expr(ps));
        if (!accept(ps, ','))
            break;
    }
    if (ps->rc != 0 || !expect(ps, ']'))
        return CEL_NONE;
    return add_node(ps, &n, o.p, o.n);
}

static uint32_t map_literal(struct cel_parser *ps, size_t pos)
{
    struct cel_node n = new_node(OP_MAP, pos);
    struct operands o = {0};

    while (ps->rc == 0 && !at(ps, '}')) {
        push(ps, &o, expr(ps));
        if (ps->rc != 0 || !expect(ps, ':'))
            return CEL_NONE;
        push(ps, &o, expr(ps));
        if (!accept(ps, ','))
            break;
    }
    if (ps->rc != 0 || !expect(ps, '}'))
        return CEL_NONE;
    return add_node(ps, &n, o.p, o.n);
}

static uint32_t primary(struct cel_parser *ps)
{
    size_t pos = ps->lex.pos;
    struct cel_value v = ps->lex.value;
    uint32_t inner;

    switch (ps->lex.tok) {
    case TOK_INT:
        if (ps->lex.magnitude > (uint64_t)INT64_MAX)
            return bh_cel_fail(ps, pos, "Syntax error: invalid int literal");
        break;
    case TOK_UINT:
    case TOK_DOUBLE:
    case TOK_STRING:
    case TOK_BYTES:
        break;
    case TOK_IDENT:
        return named(ps);
    default:
        if (accept(ps, '[')) {
            return list_literal(ps, pos);
        } else if (accept(ps, '{')) {
            return map_literal(ps, pos);
        } else if (!accept(ps, '(')) {
            return ps->rc ? CEL_NONE : unexpected(ps);
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
        if (accept(ps, '.'))
            left = member(ps, left);
        else if (accept(ps, '['))
            left = index_of(ps, left);
        else
            return left;
    }
    return CEL_NONE;
}

/* ! and - in any number; the least int is a literal of its own, since its magnitude alone is none.
 */
static uint32_t unary(struct cel_parser *ps)
{
    size_t pos = ps->lex.pos;
    struct cel_node n = new_node(at(ps, '!') ? OP_NOT : OP_NEG, pos);
    uint32_t arg;

    if (!at(ps, '!') && !at(ps, '-'))
        return postfix(ps, primary(ps));
    next(ps);
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
    arg = unary(ps);
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

static uint32_t binary(struct cel_parser *ps, int level);

/* The further operands of a chain of && or of ||. */
static uint32_t logical(struct cel_parser *ps, uint32_t left, enum cel_op op, int level, size_t pos)
{
    struct cel_node n = new_node(op, pos);
    struct operands o = {0};
    enum cel_op other;

    push(ps, &o, left);
    while (ps->rc == 0 && binary_op(ps, &other) == level) {
        next(ps);
        push(ps, &o, binary(ps, level + 1));
    }
    return ps->rc ? CEL_NONE : add_node(ps, &n, o.p, o.n);
}

static uint32_t binary(struct cel_parser *ps, int level)
{
    uint32_t left = unary(ps);
    enum cel_op op;
    int found;

    while (ps->rc == 0 && (found = binary_op(ps, &op)) >= level && found > 0) {
        size_t pos = ps->lex.pos;
        if (found <= LEVEL_AND) {
            left = logical(ps, left, op, found, pos);
            continue;
        }
        struct cel_node n = new_node(op, pos);
        next(ps);
        uint32_t args[2] = {left, binary(ps, found + 1)};
        left = ps->rc ? CEL_NONE : add_node(ps, &n, args, 2);
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
        args[0] = ps->rc ? CEL_NONE : add_node(ps, &n, args, 3);
    }
    ps->nesting--;
    return ps->rc ? CEL_NONE : args[0];
}

static void check_result(struct cel_parser *ps, const struct cel_type *t)
{
    struct bh_buf b = {0};

    if (t->kind == CEL_BOOL || t->kind == CEL_DYN)
        return;
    bh_cel_type_text(&b, t);
    ps->rc = bh_err_set(ps->err, -EINVAL, "must evaluate to bool or the unknown type, not %s",
                        bh_buf_str(&b));
    bh_buf_fini(&b);
}

int bh_cel_parse(struct bh_cel_program *p, struct bh_err *err)
{
    struct cel_parser ps = {.p = p, .err = err};

    ps.lex = (struct cel_lexer){.text = p->text, .n = p->text_n, .arena = &p->arena};
    ps.lex.pool = bh_arena_alloc(&p->arena, p->text_n + 1);
    next(&ps);
    p->root = expr(&ps);
    if (ps.rc == 0 && ps.lex.tok != TOK_END)
        unexpected(&ps);
    if (ps.rc == 0)
        check_result(&ps, p->node[p->root].type);
    return ps.rc;
}
