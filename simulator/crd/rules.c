/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/rules.c - x-kubernetes-validations: a schema's CEL rules, compiled once, asked at
 * each write
 *
 * Owns:       a node for each place of the schema that has rules at it or below it, in one arena.
 *             The schema itself is borrowed.
 * Upstream:   apiextensions-apiserver/pkg/apiserver/schema/cel, pkg/apis/apiextensions/validation.
 */
#include "simulator/crd/crd.h"

#include "common/cel/cel.h"
#include "simulator/server/tree.h"
#include <errno.h>

#define KEY         "x-kubernetes-validations"
#define DEPTH_MAX   64
#define COST_LIMIT  10000000 /* of all rules of one write */
#define MESSAGE_MAX (5 * 1024)
/* Of what an expression may cost at worst, and of what all of a schema may together. */
#define WORST_MAX     10000000u
#define WORST_ALL_MAX 100000000u
#define NEVER         UINT64_MAX /* how often: not once */
#define WORST_NAMED   4          /* the dearest, when all are too dear */

struct program {
    struct bh_cel_program *cel;
    struct program *next;
};
struct rule {
    const struct bh_json *v;
    struct bh_cel_program *cel, *message; /* NULL: did not compile; has none */
};
struct node {
    const struct bh_json *schema;
    const char *key; /* of a property */
    struct rule *rule;
    size_t n_rules;
    struct node *items, *more, *properties, *all_of; /* the last two: lists */
    struct node *next;
};
struct bh_crd_rules {
    struct bh_arena arena;
    struct program *programs;
    struct node *root;
};

/* ---- compiling ------------------------------------------------------------------------------- */

struct worst {
    const char *at;
    uint64_t cost;
};
struct compiler {
    struct bh_crd_rules *r;
    struct bh_sim_error *e; /* NULL: the definition has been judged before */
    const char
        *uncorrelated; /* the highest list above whose elements are not found again; NULL: none */
    bool unchanged;    /* was taken like this before: an expression may cost what it costs */
    bool unpriced;     /* below allOf */
    uint64_t often;    /* how many values there can be of this place; 0: no bound says it */
    uint64_t worst_all;
    struct worst worst[WORST_NAMED + 1]; /* the dearest first */
};

/* ---- what they may cost at worst --------------------------------------------------------------- */

static void too_dear(struct compiler *c, const char *at, const char *what, uint64_t cost,
                     uint64_t limit)
{
    double factor = (double)cost / (double)limit;
    char by[40];

    if (factor > 100)
        snprintf(by, sizeof(by), "more than 100x");
    else /* never "by factor of 1.0x" */
        snprintf(by, sizeof(by), factor < 1.5 ? "%fx" : "%.1fx", factor);
    bh_sim_field_error(c->e, at, "Forbidden", NULL,
                       "%s exceeds budget by factor of %s (try simplifying the rule, or adding "
                       "maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
                       "declared)",
                       what, by);
}

static void count_worst(struct compiler *c, const char *at, uint64_t cost)
{
    size_t i = WORST_NAMED;

    if (__builtin_add_overflow(c->worst_all, cost, &c->worst_all))
        c->worst_all = UINT64_MAX;
    if (cost < WORST_ALL_MAX / 100)
        return;
    for (; i > 0 && cost > c->worst[i - 1].cost; i--)
        c->worst[i] = c->worst[i - 1];
    c->worst[i] = (struct worst){at, cost};
}

/* An expression that compiled. A message is made once, a rule is asked for each value there is. */
static void price(struct compiler *c, const struct bh_json *schema, const char *text,
                  unsigned flags, const char *at)
{
    bool message = flags & BH_CEL_MESSAGE;
    uint64_t cost = 0;

    if (!c->e || c->unpriced || bh_cel_estimate_rule(text, schema, flags, &cost) < 0)
        return;
    uint64_t often = message    ? 1
                     : c->often ? c->often
                                : bh_cel_max_cardinality(schema, flags & BH_CEL_ROOT);
    if (__builtin_mul_overflow(cost, often == NEVER ? 0 : often, &cost))
        cost = UINT64_MAX;
    if (cost > WORST_MAX && !c->unchanged)
        too_dear(c, at, message ? "estimated messageExpression cost" : "estimated rule cost", cost,
                 WORST_MAX);
    count_worst(c, at, cost);
}

static void judge_all(struct compiler *c, const char *at)
{
    if (c->worst_all <= WORST_ALL_MAX)
        return;
    for (size_t i = 0; i < WORST_NAMED && c->worst[i].at; i++)
        bh_sim_field_error(c->e, c->worst[i].at, "Forbidden", NULL, "%s",
                           "contributed to estimated rule cost total exceeding cost limit for "
                           "entire OpenAPIv3 schema");
    too_dear(c, at,
             "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
             c->worst_all, WORST_ALL_MAX);
}

/* How many values there can be below a schema of which there can be `often`. */
static uint64_t often_below(uint64_t often, const struct bh_json *schema)
{
    bool list = bh_streq(bh_json_get_text(schema, "type"), "array");
    bool map = bh_streq(bh_json_get_text(schema, "type"), "object") &&
               bh_json_get(schema, "additionalProperties");
    const char *bound = list ? "maxItems" : "maxProperties";
    int64_t n = bh_json_get_i64(schema, bound, 0);
    uint64_t product;

    if (!often || (!list && !map))
        return often;
    if (!bh_json_get(schema, bound))
        return 0;
    if (n <= 0 || often == NEVER)
        return NEVER;
    return __builtin_mul_overflow(often, (uint64_t)n, &product) ? NEVER - 1 : product;
}

/* ---- judging ----------------------------------------------------------------------------------- */

static struct bh_cel_program *compile(struct compiler *c, const struct bh_json *schema,
                                      const char *text, unsigned flags, const char *at,
                                      const char *member)
{
    struct bh_arena *a = &c->r->arena;
    struct bh_cel_program *cel = NULL;
    struct bh_err err = {{0}};

    if (!text[strspn(text, " \t\r\n")])
        return NULL;
    if (bh_cel_compile_rule(text, schema, flags, &cel, &err) == 0) {
        struct program *p = bh_arena_new(a, struct program);
        *p = (struct program){cel, c->r->programs};
        c->r->programs = p;
        price(c, schema, text, flags, bh_arena_printf(a, "%s.%s", at, member));
    } else if (c->e) {
        bool of_message = strncmp(err.msg, "compilation failed", 18) == 0 && flags & BH_CEL_MESSAGE;
        bh_sim_field_error(c->e, bh_arena_printf(a, "%s.%s", at, member), "Invalid value",
                           bh_arena_printf(a, "\"%.100s\"", text), "%s%s",
                           of_message ? "messageExpression " : "", err.msg);
    }
    return cel;
}

static const char *trimmed(struct bh_arena *a, const char *text)
{
    size_t n;

    text += strspn(text, " \t\r\n");
    n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    return bh_arena_strndup(a, text, n);
}

/* Of a member of the rule at `at`, with its value unless something is required of it. */
static void wrong(struct compiler *c, const struct bh_json *v, const char *at, const char *member,
                  const char *kind, const char *text)
{
    struct bh_arena *a = &c->r->arena;
    const struct bh_json *of = *kind == 'R' ? NULL : bh_json_get(v, member);
    BH_CLEANUP(bh_buf_fini) struct bh_buf value = {0};

    if (of)
        bh_json_write(&value, of);
    bh_sim_field_error(c->e, bh_arena_printf(a, "%s.%s", at, member), kind,
                       of ? bh_arena_printf(a, "%.102s", bh_buf_str(&value)) : NULL, "%s", text);
}

static void check_texts(struct compiler *c, const struct bh_json *v, const char *at)
{
    static const char blank[] = "must be non-empty if specified",
                      lines[] = "must not contain line breaks";
    struct bh_arena *a = &c->r->arena;
    const char *message = bh_json_get_text(v, "message"), *path = bh_json_get_text(v, "fieldPath");
    const char *expression = bh_json_get_text(v, "messageExpression");
    const char *rule = trimmed(a, bh_json_get_text(v, "rule")), *said = trimmed(a, message);

    if (!*rule)
        wrong(c, v, at, "rule", "Required value", "rule is not specified");
    else if (*message && !*said)
        wrong(c, v, at, "message", "Invalid value", blank);
    else if (said[strcspn(said, "\r\n")])
        wrong(c, v, at, "message", "Invalid value", lines);
    else if (rule[strcspn(rule, "\r\n")] && !*said)
        wrong(c, v, at, "message", "Required value",
              "message must be specified if rule contains line breaks");
    if (*expression && !*trimmed(a, expression))
        wrong(c, v, at, "messageExpression", "Required value",
              "messageExpression must be non-empty if specified");
    if (*path && !*trimmed(a, path))
        wrong(c, v, at, "fieldPath", "Invalid value", blank);
    if (path[strcspn(path, "\r\n")])
        wrong(c, v, at, "fieldPath", "Invalid value", lines);
}

/* What of a rule is no expression. */
static void check_rule(struct compiler *c, const struct bh_json *v, const struct rule *rule,
                       const char *at)
{
    struct bh_arena *a = &c->r->arena;
    const char *reason = bh_json_get_str(v, "reason");

    check_texts(c, v, at);
    if (reason && bh_word_at("FieldValueRequired FieldValueInvalid FieldValueForbidden "
                             "FieldValueDuplicate",
                             reason) < 0)
        wrong(c, v, at, "reason", "Unsupported value",
              "supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", "
              "\"FieldValueInvalid\", \"FieldValueRequired\"");
    if (rule->cel && bh_cel_uses_old_self(rule->cel) && c->uncorrelated)
        wrong(c, v, at, "rule", "Invalid value",
              bh_arena_printf(a,
                              "oldSelf cannot be used on the uncorrelatable portion of the schema "
                              "within %s",
                              c->uncorrelated));
    if (rule->cel && !bh_cel_uses_old_self(rule->cel) && bh_json_get(v, "optionalOldSelf"))
        wrong(c, v, at, "optionalOldSelf", "Invalid value",
              "may not be set if oldSelf is not used in rule");
}

/* fieldPath: .a.b or ['a'] along properties, without the first dot in *ret. */
static bool field_path(struct bh_arena *a, const struct bh_json *schema, const char *path,
                       const char **ret)
{
    struct bh_buf b = {0};
    bool good = true;

    while (*path && good) {
        bool quoted = *path == '[' && path[1] == '\'';
        size_t skip = quoted ? 2 : 1, n = strcspn(path + skip, quoted ? "'" : ".[");
        const char *name = bh_arena_strndup(a, path + skip, n);
        const struct bh_json *p = bh_json_get(bh_json_get(schema, "properties"), name);
        const struct bh_json *more = p ? NULL : bh_json_get(schema, "additionalProperties");
        good = (quoted || *path == '.') && n && (p || more) &&
               (!quoted || strncmp(path + skip + n, "']", 2) == 0);
        if (good)
            bh_buf_addf(&b, p ? "%s%s" : "%s[%s]", p && b.n ? "." : "", name);
        path += skip + n + (quoted && good ? 2 : 0);
        schema = p ? p : more;
    }
    *ret = bh_arena_strdup(a, bh_buf_str(&b));
    bh_buf_fini(&b);
    return good;
}

static void compile_rules(struct compiler *c, struct node *n, const struct bh_json *schema,
                          const struct bh_json *list, bool root, const char *at)
{
    struct bh_arena *a = &c->r->arena;

    n->rule = bh_arena_new_array(a, struct rule, bh_tree_len(list) + 1);
    bh_json_each(v, list) {
        const char *here = bh_arena_printf(a, "%s." KEY "[%zu]", at, n->n_rules);
        const char *message = bh_json_get_text(v, "messageExpression"), *path;
        unsigned flags = root ? BH_CEL_ROOT : 0;
        struct rule *rule = &n->rule[n->n_rules++];
        flags |= bh_json_get_bool(v, "optionalOldSelf", false) ? BH_CEL_OPTIONAL_OLD : 0;
        rule->v = v;
        rule->cel = compile(c, schema, bh_json_get_text(v, "rule"), flags, here, "rule");
        if (rule->cel)
            rule->message =
                compile(c, schema, message, flags | BH_CEL_MESSAGE, here, "messageExpression");
        if (!c->e)
            continue;
        check_rule(c, v, rule, here);
        if (!field_path(a, schema, bh_json_get_text(v, "fieldPath"), &path))
            wrong(c, v, here, "fieldPath", "Invalid value", "must be a valid path");
    }
}

/* rules: where they stand, which is schema itself, or (allOf) what is laid over it. NULL: none. */
static struct node *compile_node(struct compiler *c, const struct bh_json *rules,
                                 const struct bh_json *schema, bool root, const char *at, int depth)
{
    struct bh_arena *a = &c->r->arena;
    const struct bh_json *list = bh_json_get_list(rules, KEY);
    struct node n = {.schema = schema}, *sub;
    size_t i = 0;

    if (depth > DEPTH_MAX || !rules || rules->type != BH_JSON_OBJECT || !schema ||
        schema->type != BH_JSON_OBJECT)
        return NULL;
    if (bh_tree_len(list))
        compile_rules(c, &n, schema, list, root, at);
#define SUB(member, from, over)                                                                    \
    compile_node(c, from, over, bh_json_get_bool(over, "x-kubernetes-embedded-resource", false),   \
                 bh_arena_printf(a, "%s." member, at), depth + 1)
    const struct bh_json *items = bh_json_get(schema, "items");
    const struct bh_json *more = bh_json_get(schema, "additionalProperties");
    const char *above = c->uncorrelated;
    if (!above && !bh_streq(bh_json_get_text(schema, "x-kubernetes-list-type"), "map"))
        c->uncorrelated = at;
    uint64_t often = c->often;
    c->often = often_below(often, schema);
    n.items = SUB("items", bh_json_get(rules, "items"), items);
    c->uncorrelated = above;
    n.more = SUB("additionalProperties", bh_json_get(rules, "additionalProperties"), more);
    bh_json_each(p, bh_json_get(rules, "properties")) {
        const struct bh_json *over = bh_json_get(bh_json_get(schema, "properties"), p->key.p);
        sub = compile_node(c, p, over,
                           bh_json_get_bool(over, "x-kubernetes-embedded-resource", false),
                           bh_arena_printf(a, "%s.properties[%s]", at, p->key.p), depth + 1);
        if (sub) {
            sub->key = p->key.p;
            sub->next = n.properties;
            n.properties = sub;
        }
    }
    c->often = often;
    bool unpriced = c->unpriced;
    c->unpriced = true;
    bh_json_each(p, bh_json_get_list(rules, "allOf")) {
        sub = compile_node(c, p, schema, root, bh_arena_printf(a, "%s.allOf[%zu]", at, i++),
                           depth + 1);
        if (sub) {
            sub->next = n.all_of;
            n.all_of = sub;
        }
    }
    c->unpriced = unpriced;
    return n.n_rules || n.items || n.more || n.properties || n.all_of
               ? bh_arena_memdup(a, &n, sizeof(n))
               : NULL;
}

struct bh_crd_rules *bh_crd_rules_new(const struct bh_json *schema, const struct bh_json *old,
                                      const char *at, struct bh_sim_error *e)
{
    struct bh_crd_rules *r = bh_calloc(1, sizeof(*r));
    struct compiler c = {
        .r = r, .e = e, .often = 1, .unchanged = old && bh_json_equal(schema, old)};

    bh_arena_init(&r->arena, 0);
    r->root = compile_node(&c, schema, schema, true, at, 0);
    if (e)
        judge_all(&c, at);
    if (r->root)
        return r;
    bh_crd_rules_free(r);
    return NULL;
}

void bh_crd_rules_free(struct bh_crd_rules *r)
{
    if (!r)
        return;
    for (struct program *p = r->programs; p; p = p->next)
        bh_cel_free(p->cel);
    bh_arena_fini(&r->arena);
    free(r);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* A place of the object and what stood there before (NULL: nothing that it could be compared with),
 * as trees and as expressions see them. */
struct place {
    const struct place *above;
    const struct bh_json *v, *old;
    const struct cel_value *self, *old_self;
    const char *path;
};
struct asking {
    struct bh_arena *a;
    struct bh_sim_error *e;
    struct bh_buf *warnings;
    uint64_t left; /* of the cost */
    bool over;     /* no further rule is asked */
};

static void say(struct asking *q, const struct place *p, const struct bh_json *schema,
                const char *text)
{
    bh_sim_field_error(q->e, *p->path ? p->path : "<nil>", "Invalid value",
                       bh_arena_printf(q->a, "\"%s\"", bh_json_get_text(schema, "type")), "%s",
                       text);
}

static bool take_cost(struct asking *q, const struct place *p, const struct bh_json *schema,
                      uint64_t cost)
{
    q->over = cost > q->left;
    if (q->over)
        say(q, p, schema,
            "validation failed due to running out of cost budget, no further validation rules will "
            "be run");
    q->left -= BH_MIN(cost, q->left);
    return !q->over;
}

/* What to say instead of the rule's text; "" when the message has none to tell. */
static const char *message_of(struct asking *q, const struct place *p, const struct rule *rule)
{
    struct bh_arena_mark mark = bh_arena_mark(q->a);
    char said[MESSAGE_MAX + 1] = "";
    struct bh_str text = {0};
    uint64_t cost = 0;
    bool ok;

    if (!rule->message ||
        bh_cel_eval_rule(rule->message, p->self, p->old_self, q->a, &ok, &text, &cost, NULL) < 0)
        text.n = 0;
    q->left -= BH_MIN(cost, q->left);
    if (text.n <= MESSAGE_MAX)
        snprintf(said, sizeof(said), "%.*s", (int)text.n, text.n ? text.p : "");
    bh_arena_rewind(q->a, mark); /* what an evaluation takes is not small */
    const char *m = trimmed(q->a, said);
    return strchr(m, '\n') ? "" : m;
}

/* Nothing of what the rule looked at has been changed by this write, here or all around it. */
static bool is_unchanged(const struct place *p)
{
    for (; p; p = p->above)
        if (p->old && bh_json_equal(p->v, p->old))
            return true;
    return false;
}

static void refuse(struct asking *q, const struct place *p, const struct bh_json *schema,
                   const struct rule *rule)
{
    static const char *const kinds[] = {"Required value", "Forbidden", "Duplicate value"};
    const char *reason = bh_json_get_text(rule->v, "reason"), *under = "";
    const char *said = message_of(q, p, rule), *message = bh_json_get_text(rule->v, "message");
    int kind = bh_word_at("FieldValueRequired FieldValueForbidden FieldValueDuplicate", reason);
    bool shown = p->v->type < BH_JSON_ARRAY && kind != 0 && kind != 1;
    struct bh_buf value = {0};

    (void)field_path(q->a, schema, bh_json_get_text(rule->v, "fieldPath"), &under);
    const char *path =
        bh_arena_printf(q->a, "%s%s%s", p->path, *p->path && *under ? "." : "", under);
    if (!*said)
        said = *message ? trimmed(q->a, message)
                        : bh_arena_printf(q->a, "failed rule: %s",
                                          trimmed(q->a, bh_json_get_text(rule->v, "rule")));
    if (shown)
        bh_json_write(&value, p->v);
    path = *path ? path : "<nil>";
    const char *what = kind < 0 ? "Invalid value" : kinds[kind];
    if (!bh_cel_uses_old_self(rule->cel) && is_unchanged(p)) {
        if (q->warnings)
            bh_buf_addf(q->warnings, "%s: %s%s%s: %s\n", path, what, shown ? ": " : "",
                        bh_buf_str(&value), said);
    } else {
        bh_sim_field_error(q->e, path, what, shown ? bh_buf_str(&value) : NULL, "%s",
                           kind == 2 ? "" : said);
    }
    bh_buf_fini(&value);
}

static void ask(struct asking *q, const struct place *p, const struct bh_json *schema,
                const struct rule *rule)
{
    const char *text = bh_json_get_text(rule->v, "message");
    struct bh_str none = {0};
    struct bh_err err = {{0}};
    uint64_t cost = 0;
    bool holds = true;

    if (!rule->cel || (bh_cel_uses_old_self(rule->cel) && !p->old &&
                       !bh_json_get_bool(rule->v, "optionalOldSelf", false)))
        return;
    text = trimmed(q->a, *text ? text : bh_json_get_text(rule->v, "rule"));
    struct bh_arena_mark mark = bh_arena_mark(q->a);
    int rc = bh_cel_eval_rule(rule->cel, p->self, p->old_self, q->a, &holds, &none, &cost, &err);
    bh_arena_rewind(q->a, mark);
    if (!take_cost(q, p, schema, cost))
        return;
    if (rc == -E2BIG)
        say(q, p, schema,
            bh_arena_printf(q->a,
                            "'%s': no further validation rules will be run due to call cost "
                            "exceeds limit for rule: %s",
                            err.msg, text));
    else if (rc < 0 && strncmp(err.msg, "no such overload", 16) == 0)
        say(q, p, schema,
            bh_arena_printf(q->a,
                            "'%s': call arguments did not match a supported operator, function or "
                            "macro signature for rule: %s",
                            err.msg, text));
    else if (rc < 0)
        say(q, p, schema, bh_arena_printf(q->a, "%s evaluating rule: %s", err.msg, text));
    else if (!holds)
        refuse(q, p, schema, rule);
    q->over = rc == -E2BIG;
}

static const struct bh_json *old_member(const struct bh_json *old, const char *key, size_t *ret_i)
{
    *ret_i = 0;
    if (!old || old->type != BH_JSON_OBJECT)
        return NULL;
    bh_json_each(o, old) {
        if (bh_streq(o->key.p, key))
            return o;
        ++*ret_i;
    }
    return NULL;
}

static void walk(struct asking *q, const struct node *n, const struct place *p);

static void walk_members(struct asking *q, const struct node *n, const struct place *p)
{
    size_t i = 0, at;

    bh_json_each(m, p->v) {
        const struct node *sub = p->v->type == BH_JSON_ARRAY ? n->items : n->properties;
        while (p->v->type == BH_JSON_OBJECT && sub && !bh_streq(sub->key, m->key.p))
            sub = sub->next;
        bool mapped = p->v->type == BH_JSON_OBJECT && !sub;
        sub = mapped ? n->more : sub;
        struct place below = {.above = p, .v = m, .self = bh_cel_child(p->self, i++)};
        if (!sub || q->over)
            continue;
        below.old = p->v->type == BH_JSON_ARRAY ? bh_crd_old_item(n->schema, p->old, m, &at)
                                                : old_member(p->old, m->key.p, &at);
        if (below.old && below.old->type == BH_JSON_NULL)
            below.old = NULL;
        below.old_self = below.old ? bh_cel_child(p->old_self, at) : NULL;
        below.path = p->v->type == BH_JSON_ARRAY ? bh_arena_printf(q->a, "%s[%zu]", p->path, i - 1)
                     : mapped
                         ? bh_arena_printf(q->a, "%s[%s]", p->path, m->key.p)
                         : bh_arena_printf(q->a, "%s%s%s", p->path, *p->path ? "." : "", m->key.p);
        walk(q, sub, &below);
    }
}

static void walk(struct asking *q, const struct node *n, const struct place *p)
{
    if (p->v->type == BH_JSON_NULL)
        return;
    for (size_t i = 0; i < n->n_rules && !q->over; i++)
        ask(q, p, n->schema, &n->rule[i]);
    for (const struct node *o = n->all_of; o && !q->over; o = o->next)
        walk(q, o, p);
    if (p->v->type >= BH_JSON_ARRAY && (n->items || n->more || n->properties))
        walk_members(q, n, p);
}

/* Rules count on values of the schema's types. */
static bool is_blocked(const struct bh_sim_error *e)
{
    for (unsigned i = 0; i < e->n_causes; i++)
        if (bh_word_at("FieldValueRequired FieldValueTooLong FieldValueTooMany",
                       e->causes[i].type) >= 0 ||
            strstr(bh_sim_cause_message(e, i), "in body must be of type"))
            return true;
    return false;
}

void bh_crd_rules_check(const struct bh_crd_rules *r, struct bh_arena *a, const struct bh_json *obj,
                        const struct bh_json *old, struct bh_sim_error *e, struct bh_buf *warnings)
{
    struct asking q = {.a = a, .e = e, .warnings = warnings, .left = COST_LIMIT};

    if (!r)
        return;
    if (is_blocked(e)) {
        bh_sim_field_error(e, "<nil>", "Invalid value", "null", "%s",
                           "some validation rules were not checked because the object was invalid; "
                           "correct the existing errors to complete validation");
        return;
    }
    struct place p = {.v = obj,
                      .old = old,
                      .self = bh_cel_value_of(a, r->root->schema, obj),
                      .old_self = old ? bh_cel_value_of(a, r->root->schema, old) : NULL,
                      .path = ""};
    walk(&q, r->root, &p);
}
