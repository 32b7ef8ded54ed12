/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_read.c - the tables of rules, read once into structs
 *
 * Whatever a table names that nothing knows - a rule, a set, a member of the schema - ends the
 * process: the tables are the program's own.
 */
#include "simulator/admission/rules_int.h"

#include "common/base/map.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const tables[] = {
#include "simulator/admission/rules/meta.data.h"
    ,
#include "simulator/admission/rules/pod.data.h"
    ,
#include "simulator/admission/rules/container.data.h"
    ,
#include "simulator/admission/rules/volume.data.h"
    ,
#include "simulator/admission/rules/workload.data.h"
    ,
#include "simulator/admission/rules/core.data.h"
    ,
#include "simulator/admission/rules/storage.data.h"
    ,
#include "simulator/admission/rules/devices.data.h"
    ,
#include "simulator/admission/rules/defaults.data.h"
    ,
};

static struct {
    struct bh_arena arena;
    struct bh_map sets; /* name -> struct bh_rule_set */
} all;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct reading {
    const char *p, *line;
    const char *package;
    struct bh_rule_set *set;
};

BH_NORETURN static void give_up(const struct reading *rd, const char *what)
{
    fprintf(stderr, "rules: %s: %.*s\n", what, (int)strcspn(rd->line, "\n"), rd->line);
    abort();
}

static void skip_blanks(struct reading *rd)
{
    rd->p += strspn(rd->p, " ");
}

static bool take(struct reading *rd, const char *token)
{
    size_t n = strlen(token);

    skip_blanks(rd);
    if (strncmp(rd->p, token, n) != 0)
        return false;
    rd->p += n;
    return true;
}

static bool takes_word(struct reading *rd, const char *word)
{
    size_t n = strlen(word);

    skip_blanks(rd);
    if (strncmp(rd->p, word, n) != 0 || (rd->p[n] != ' ' && rd->p[n] != '\n'))
        return false;
    rd->p += n;
    return true;
}

/* "a text", or a word that ends at one of the stops. */
static const char *read_word(struct reading *rd, const char *stops)
{
    struct bh_buf b = {0};

    skip_blanks(rd);
    if (*rd->p != '"') {
        size_t n = strcspn(rd->p, stops);
        if (!n)
            give_up(rd, "a word is missing");
        const char *s = bh_arena_strndup(&all.arena, rd->p, n);
        rd->p += n;
        return s;
    }
    for (rd->p++; *rd->p != '"'; rd->p++) {
        if (*rd->p == '\n')
            give_up(rd, "a text has no end");
        rd->p += *rd->p == '\\';
        bh_buf_addc(&b, *rd->p);
    }
    rd->p++;
    const char *s = bh_arena_strndup(&all.arena, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return s;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const struct bh_oas_type *step_into(struct reading *rd, const struct bh_oas_type *t,
                                           const char *name, const char **ret_form)
{
    const struct bh_oas_field *f = t ? bh_oas_field(t, name) : NULL;

    if (!f)
        give_up(rd, "the schema has no such member");
    *ret_form = f->form;
    return f->type;
}

/* "a.b[].c{}" of an object of type t; "." is the object. */
static void read_path(struct reading *rd, struct rule_line *l, const struct bh_oas_type *t)
{
    const char *form = "";

    skip_blanks(rd);
    if (*rd->p == '.' && rd->p[1] == ' ') {
        rd->p++;
        return;
    }
    for (;;) {
        struct rule_seg *s = &l->seg[l->n_segs++];
        if (l->n_segs > RULE_SEGS_MAX)
            give_up(rd, "the path is too long");
        if (take(rd, "[]")) {
            s->step = RULE_EACH;
            form++;
        } else if (take(rd, "{}")) {
            s->step = RULE_EACH;
            form++;
        } else if (take(rd, "{@}")) {
            s->step = RULE_KEYS;
        } else {
            size_t n = strcspn(rd->p, " .[{\n");
            s->name = bh_arena_strndup(&all.arena, rd->p, n);
            rd->p += n;
            t = step_into(rd, t, s->name, &form);
        }
        rd->p += *rd->p == '.';
        if (*rd->p == ' ')
            return;
    }
}

/* ---- conditions ------------------------------------------------------------------------------ */

static struct rule_cond *read_or(struct reading *rd);

static void read_operand(struct reading *rd, struct rule_operand *o)
{
    skip_blanks(rd);
    o->count = take(rd, "#");
    o->old = take(rd, "old:");
    while (take(rd, "^"))
        o->up++;
    o->path = read_word(rd, " )&|=!<>?,\n");
    if (o->path[0] == '/')
        o->root = true, o->path++;
}

static void read_literal(struct reading *rd, struct rule_cond *c)
{
    skip_blanks(rd);
    if (*rd->p == '.') {
        rd->p++;
        read_operand(rd, &c->right);
        c->has_right = true;
        return;
    }
    do {
        if (c->n_words == BH_ARRAY_LEN(c->word))
            give_up(rd, "too many words");
        c->word[c->n_words++] = read_word(rd, " ),\n");
    } while (c->op == RULE_IN && *rd->p == ',' && rd->p++);
}

static struct rule_cond *read_term(struct reading *rd)
{
    static const struct {
        const char *text;
        enum rule_op op;
    } ops[] = {{"==", RULE_EQ}, {"!=", RULE_NE}, {"<=", RULE_LE}, {">=", RULE_GE},
               {"<", RULE_LT},  {">", RULE_GT},  {"?", RULE_HAS}, {"in ", RULE_IN}};
    struct rule_cond *c = bh_arena_new(&all.arena, struct rule_cond);

    if (take(rd, "!")) {
        c->op = RULE_NOT;
        c->a = read_term(rd);
        return c;
    }
    if (take(rd, "(")) {
        c = read_or(rd);
        if (!take(rd, ")"))
            give_up(rd, "\")\" is missing");
        return c;
    }
    read_operand(rd, &c->left);
    c->op = RULE_TRUE;
    for (size_t i = 0; i < BH_ARRAY_LEN(ops) && c->op == RULE_TRUE; i++)
        if (take(rd, ops[i].text))
            c->op = ops[i].op;
    if (c->op != RULE_TRUE && c->op != RULE_HAS)
        read_literal(rd, c);
    return c;
}

static struct rule_cond *read_chain(struct reading *rd, const char *token, enum rule_op op,
                                    struct rule_cond *(*next)(struct reading *rd))
{
    struct rule_cond *c = next(rd);

    while (take(rd, token)) {
        struct rule_cond *both = bh_arena_new(&all.arena, struct rule_cond);
        *both = (struct rule_cond){.op = op, .a = c, .b = next(rd)};
        c = both;
    }
    return c;
}

static struct rule_cond *read_and(struct reading *rd)
{
    return read_chain(rd, "&&", RULE_AND, read_term);
}

static struct rule_cond *read_or(struct reading *rd)
{
    return read_chain(rd, "||", RULE_OR, read_and);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bh_rule_fn *find_rule(const char *name)
{
    static const struct bh_rule *const lists[] = {bh_rules_basic, bh_rules_names,
                                                  bh_rules_pod,   bh_rules_resources,
                                                  bh_rules_kinds, bh_rules_devices};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++)
        for (const struct bh_rule *r = lists[i]; r->name; r++)
            if (bh_streq(r->name, name))
                return r->fn;
    return NULL;
}

static struct bh_rule_set *set_at(const char *name)
{
    struct bh_rule_set *s = bh_map_get(&all.sets, name, strlen(name));

    if (!s) {
        s = bh_arena_new(&all.arena, struct bh_rule_set);
        s->name = name;
        bh_map_put(&all.sets, name, strlen(name), s);
    }
    return s;
}

/* "default VALUE": JSON, or a word; "$now" is worked out when it is filled in. */
static void read_value(struct reading *rd, struct bh_rule_call *c)
{
    bool quoted = (skip_blanks(rd), *rd->p == '"');
    const char *text = read_word(rd, " \n");
    struct bh_err err = {{0}};
    struct bh_json *v;

    if (quoted || bh_json_parse(&all.arena, text, strlen(text), 0, &v, &err) < 0)
        v = bh_json_new_cstr(&all.arena, text);
    c->value = v;
}

static void read_call(struct reading *rd, struct bh_rule_call *c)
{
    const char *name = read_word(rd, " ,\n");

    if (isupper((unsigned char)*name))
        c->set = set_at(name);
    else if (!(c->fn = find_rule(name)))
        give_up(rd, "no such rule");
    if (bh_streq(name, "default") || bh_streq(name, "set")) {
        read_value(rd, c);
        return;
    }
    if (bh_streq(name, "drop") || bh_streq(name, "copy"))
        c->value = bh_json_new(&all.arena, BH_JSON_NULL);
    for (skip_blanks(rd); *rd->p != '\n' && *rd->p != ','; skip_blanks(rd)) {
        if (strncmp(rd->p, "if ", 3) == 0)
            return;
        if (takes_word(rd, "of")) {
            c->of = read_word(rd, " ,\n");
            continue;
        }
        if (c->n == BH_ARRAY_LEN(c->arg))
            give_up(rd, "too many arguments");
        const char *arg = read_word(rd, " ,\n");
        if (c->n < 2)
            c->num[c->n] = strtoll(arg, NULL, 10);
        c->arg[c->n++] = arg;
    }
}

static void read_line(struct reading *rd)
{
    struct rule_line *l = bh_arena_new(&all.arena, struct rule_line), **end = &rd->set->first;

    while (*end)
        end = &(*end)->next;
    *end = l;
    read_path(rd, l, rd->set->type);
    if (takes_word(rd, "as"))
        l->alias = read_word(rd, " ");
    do {
        struct bh_rule_call **tail = &l->call[l->n_calls++];
        if (l->n_calls > RULE_CALLS_MAX)
            give_up(rd, "too many rules");
        *tail = bh_arena_new(&all.arena, struct bh_rule_call);
        read_call(rd, *tail);
    } while (take(rd, ","));
    if (takes_word(rd, "if"))
        l->cond = read_or(rd);
    skip_blanks(rd);
    if (*rd->p != '\n')
        give_up(rd, "something is left");
}

/* "PodSpec:" or "InitContainer(Container):" */
static void read_head(struct reading *rd)
{
    size_t n = strcspn(rd->p, "(:");
    const char *name = bh_arena_strndup(&all.arena, rd->p, n), *type = name;

    rd->p += n;
    if (take(rd, "("))
        type = read_word(rd, ")"), rd->p++;
    const char *dot = strrchr(type, '.');
    rd->set = set_at(name);
    rd->set->type =
        bh_oas_find(dot ? bh_arena_strndup(&all.arena, type, (size_t)(dot - type)) : rd->package,
                    dot ? dot + 1 : type);
    if (!rd->set->type)
        give_up(rd, "the schema has no such type");
}

static void read_table(const char *text)
{
    struct reading rd = {.package = ""};

    for (const char *p = text; *p; p += strcspn(p, "\n") + 1) {
        rd.p = rd.line = p;
        if (*p == '@')
            rd.package = bh_arena_strndup(&all.arena, p + 1, strcspn(p + 1, "\n"));
        else if (isupper((unsigned char)*p) && p[strcspn(p, " :\n")] == ':')
            read_head(&rd);
        else
            read_line(&rd);
    }
}

static void load(void)
{
    bh_arena_init(&all.arena, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(tables); i++)
        read_table(tables[i]);
    struct bh_map_entry *e;
    for (size_t it = 0; (e = bh_map_next(&all.sets, &it));) {
        const struct bh_rule_set *set = e->value;
        if (!set->type) {
            fprintf(stderr, "rules: no set is called %s\n", e->key);
            abort();
        }
    }
}

const struct bh_rule_set *bh_rules_find(const char *name)
{
    pthread_once(&once, load);
    return bh_map_get(&all.sets, name, strlen(name));
}
