/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_run.c - tables of rules applied to an object: places, conditions, errors
 *
 * Runs in: the thread of the write. Places are a chain on the stack; paths are written for errors only.
 * Upstream: apimachinery/pkg/util/validation/field (v1.36); differences: what of a pod's spec is part
 * of its security context there is shown where a manifest has it.
 */
#include "simulator/admission/rules_int.h"

#include "common/k8s/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- places ---------------------------------------------------------------------------------- */

static struct bh_json *present(struct bh_json *v)
{
    return v && v->type != BH_JSON_NULL ? v : NULL;
}

static const struct bh_oas_type *type_of(const struct bh_oas_field *f, const char *form)
{
    return f && !*form ? f->type : NULL;
}

struct bh_rule_at bh_rule_member(const struct bh_rule_at *at, const char *name)
{
    const struct bh_oas_field *f = at->type ? bh_oas_field(at->type, name) : NULL;

    return (struct bh_rule_at){.up = at,
                               .member = name,
                               .name = name,
                               .v = present(bh_json_get(at->v, name)),
                               .old = present(bh_json_get(at->old, name)),
                               .field = f,
                               .form = f ? f->form : "",
                               .type = f ? type_of(f, f->form) : NULL};
}

struct bh_rule_at bh_rule_element(const struct bh_rule_at *at, struct bh_json *v, size_t index)
{
    const char *form = *at->form ? at->form + 1 : "";

    return (struct bh_rule_at){.up = at,
                               .index = index,
                               .v = present(v),
                               .old = present(bh_json_at(at->old, index)),
                               .field = at->field,
                               .form = form,
                               .type = type_of(at->field, form)};
}

struct bh_rule_at bh_rule_entry(const struct bh_rule_at *at, struct bh_json *v)
{
    const char *form = *at->form ? at->form + 1 : "";

    return (struct bh_rule_at){.up = at,
                               .key = v->key.p,
                               .v = present(v),
                               .old = present(bh_json_get(at->old, v->key.p)),
                               .field = at->field,
                               .form = form,
                               .type = type_of(at->field, form)};
}

struct bh_rule_at bh_rule_named(const struct bh_rule_at *at, const char *name)
{
    return (struct bh_rule_at){.up = at, .name = name, .form = ""};
}

const struct bh_rule_at *bh_rule_holder(const struct bh_rule_at *at)
{
    for (at = at->up; at && !at->type; at = at->up)
        ;
    return at;
}

const struct bh_rule_at *bh_rule_root(const struct bh_rule_at *at)
{
    while (at->up)
        at = at->up;
    return at;
}

static void put_path(struct bh_buf *b, const struct bh_rule_at *at)
{
    if (!at || (!at->up && !at->base))
        return;
    put_path(b, at->base ? at->base : at->up);
    if (at->silent)
        return;
    if (at->name)
        bh_buf_addf(b, "%s%s", b->n ? "." : "", at->name);
    else if (at->key)
        bh_buf_addf(b, "[%s]", at->key);
    else
        bh_buf_addf(b, "[%zu]", at->index);
}

static const char *keep(struct bh_rule_run *r, struct bh_buf *b)
{
    const char *s = bh_arena_strndup(r->w->arena, bh_buf_str(b), b->n);

    bh_buf_fini(b);
    return s ? s : "";
}

/* ---- values ---------------------------------------------------------------------------------- */

bool bh_rule_is_empty(const struct bh_json *v)
{
    int64_t n;

    if (!v)
        return true;
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

static bool is_pointer(const struct bh_rule_at *at)
{
    return at->field && !*at->form && at->field->pointer;
}

const char *bh_rule_text(const struct bh_rule_at *at)
{
    const char *s = bh_json_cstr(at->v);

    return s ? s : is_pointer(at) ? NULL : "";
}

bool bh_rule_number(const struct bh_rule_at *at, int64_t *ret)
{
    *ret = 0;
    return at->v ? bh_json_i64(at->v, ret) : !is_pointer(at);
}

static void put_quoted(struct bh_buf *b, const char *s, size_t n)
{
    bh_buf_addc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char)s[i];
        if (ch == '"' || ch == '\\')
            bh_buf_addf(b, "\\%c", ch);
        else if (ch == '\n')
            bh_buf_adds(b, "\\n");
        else if (ch == '\t')
            bh_buf_adds(b, "\\t");
        else if (ch == '\r')
            bh_buf_adds(b, "\\r");
        else if (ch < ' ' || ch == 0x7f)
            bh_buf_addf(b, "\\x%02x", ch);
        else
            bh_buf_addc(b, (char)ch);
    }
    bh_buf_addc(b, '"');
}

const char *bh_rule_quoted(struct bh_rule_run *r, const char *s)
{
    struct bh_buf b = {0};

    put_quoted(&b, s, strlen(s));
    return keep(r, &b);
}

/* "hostIP" -> "HostIP": as the structs inside kube-apiserver call it. */
static void put_go_name(struct bh_buf *b, const char *name)
{
    static const char *const whole[][2] = {{"cel", "CEL"},
                                           {"csi", "CSI"},
                                           {"nfs", "NFS"},
                                           {"fc", "FC"},
                                           {"uid", "UID"},
                                           {"ip", "IP"},
                                           {"iscsi", "ISCSI"},
                                           {"rbd", "RBD"},
                                           {"apiGroup", "APIGroup"},
                                           {"apiVersion", "APIVersion"},
                                           {"tty", "TTY"},
                                           {"fsType", "FSType"},
                                           {"httpGet", "HTTPGet"},
                                           {"tcpSocket", "TCPSocket"},
                                           {"grpc", "GRPC"},
                                           {"fsGroup", "FSGroup"},
                                           {"tcp", "TCP"},
                                           {"shareID", "ShareID"},
                                           {"seLinuxOptions", "SELinuxOptions"}};

    for (size_t i = 0; i < BH_ARRAY_LEN(whole); i++) {
        if (bh_streq(whole[i][0], name)) {
            bh_buf_adds(b, whole[i][1]);
            return;
        }
    }
    bh_buf_addc(b, (char)toupper((unsigned char)*name));
    bh_buf_adds(b, name + 1);
}

static void put_go(struct bh_buf *b, const struct bh_oas_field *f, const char *form,
                   const struct bh_json *v);

static void put_go_members(struct bh_buf *b, const struct bh_oas_type *t, const struct bh_json *v)
{
    bool inner = bh_streq(t->package, "meta.v1"); /* has tags there, too */

    for (size_t i = 0; i < t->n; i++) {
        const struct bh_oas_field *f = &t->fields[t->declared[i]];
        const struct bh_json *m = bh_json_get(v, f->name);
        if (f->type && bh_streq(f->type->name, "ObjectMeta")) { /* embedded */
            put_go_members(b, f->type, m);
            continue;
        }
        if (inner && bh_rule_is_empty(m))
            continue;
        bh_buf_adds(b, bh_buf_str(b)[b->n - 1] == '{' ? "\"" : ",\"");
        if (inner)
            bh_buf_adds(b, f->name);
        else
            put_go_name(b, f->name);
        bh_buf_adds(b, "\":");
        put_go(b, f, f->form, m && m->type != BH_JSON_NULL ? m : NULL);
    }
}

static void put_go_object(struct bh_buf *b, const struct bh_oas_type *t, const struct bh_json *v)
{
    bh_buf_addc(b, '{');
    put_go_members(b, t, v);
    bh_buf_addc(b, '}');
}

static void put_go_list(struct bh_buf *b, const struct bh_oas_field *f, const char *form,
                        const struct bh_json *v)
{
    bool first = true, map = *form == '{';

    bh_buf_addc(b, map ? '{' : '[');
    bh_json_each(e, v) {
        if (!first)
            bh_buf_addc(b, ',');
        first = false;
        if (map) {
            bh_buf_add_json_str(b, e->key.p, e->key.n);
            bh_buf_addc(b, ':');
        }
        put_go(b, f, form + 1, e);
    }
    bh_buf_addc(b, map ? '}' : ']');
}

/* As encoding/json writes the structs inside kube-apiserver. */
static void put_go(struct bh_buf *b, const struct bh_oas_field *f, const char *form,
                   const struct bh_json *v)
{
    if (!v && (*form || f->pointer || !f->leaf || strchr("tmra", f->leaf)))
        v = f->type && !*form && !f->pointer ? v : NULL;
    if (!v && f->type && !*form && !f->pointer)
        put_go_object(b, f->type, NULL);
    else if (!v && (*form || f->pointer || strchr("tmra", f->leaf)))
        bh_buf_adds(b, "null");
    else if (!v)
        bh_buf_adds(b, f->leaf == 'b'            ? "false"
                       : strchr("ildx", f->leaf) ? "0"
                       : f->leaf == 'q'          ? "\"0\""
                                                 : "\"\"");
    else if (*form)
        put_go_list(b, f, form, v);
    else if (f->type)
        put_go_object(b, f->type, v);
    else
        bh_json_write(b, v);
}

const char *bh_rule_shown(struct bh_rule_run *r, const struct bh_rule_at *at)
{
    struct bh_buf b = {0};

    if (at->v && at->v->type == BH_JSON_STRING)
        put_quoted(&b, at->v->s.p, at->v->s.n);
    else if (at->field)
        put_go(&b, at->field, at->form, at->v);
    else if (at->type)
        put_go_object(&b, at->type, at->v);
    else if (at->v)
        bh_json_write(&b, at->v);
    else
        bh_buf_adds(&b, "\"\"");
    return keep(r, &b);
}

/* ---- errors ---------------------------------------------------------------------------------- */

void bh_rule_error(struct bh_rule_run *r, const struct bh_rule_at *at, const char *kind,
                   const char *value, const char *text)
{
    struct bh_buf b = {0};

    put_path(&b, at);
    bh_sim_field_error(r->w->error, bh_buf_str(&b), kind, value, "%s", text);
    bh_buf_fini(&b);
}

void bh_rule_invalid(struct bh_rule_run *r, const struct bh_rule_at *at, const char *text)
{
    bh_rule_error(r, at, "Invalid value", bh_rule_shown(r, at), text);
}

void bh_rule_invalid_text(struct bh_rule_run *r, const struct bh_rule_at *at, const char *value,
                          const char *text)
{
    bh_rule_error(r, at, "Invalid value", bh_rule_quoted(r, value), text);
}

void bh_rule_invalid_number(struct bh_rule_run *r, const struct bh_rule_at *at, int64_t value,
                            const char *text)
{
    bh_rule_error(r, at, "Invalid value", bh_rule_printf(r, "%lld", (long long)value), text);
}

void bh_rule_unsupported(struct bh_rule_run *r, const struct bh_rule_at *at, const char *value,
                         size_t n, const char *const *words)
{
    struct bh_buf b = {0};

    bh_buf_adds(&b, "supported values: ");
    for (size_t i = 0; i < n; i++)
        bh_buf_addf(&b, "%s\"%s\"", i ? ", " : "", words[i]);
    bh_rule_error(r, at, "Unsupported value", value, bh_buf_str(&b));
    bh_buf_fini(&b);
}

const char *bh_rule_printf(struct bh_rule_run *r, const char *fmt, ...)
{
    struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    return keep(r, &b);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static const struct bh_json *special(struct bh_rule_run *r, const char *name)
{
    static const struct {
        const char *name;
        unsigned ops;
    } ops[] = {{"$create", 1u << BH_SIM_OP_CREATE},
               {"$update", 1u << BH_SIM_OP_UPDATE},
               {"$status", 1u << BH_SIM_OP_UPDATE_STATUS}};
    static const struct bh_json yes = {.type = BH_JSON_BOOL, .b = true};

    if (bh_streq(name, "$kind"))
        return bh_json_new_cstr(r->w->arena, r->w->type->kind);
    for (size_t i = 0; i < BH_ARRAY_LEN(ops); i++)
        if (bh_streq(ops[i].name, name))
            return ops[i].ops & (1u << r->w->op) ? &yes : NULL;
    bh_assert(strncmp(name, "$gate:", 6) == 0);
    return bh_sim_feature(r->w->sim, name + 6) ? &yes : NULL;
}

static const struct bh_json *operand(struct bh_rule_run *r, const struct bh_rule_at *at,
                                     const struct rule_operand *o)
{
    if (*o->path == '$')
        return special(r, o->path);
    for (unsigned i = 0; i < o->up && at; i++)
        at = bh_rule_holder(at);
    if (o->root)
        at = bh_rule_root(at);
    if (!at)
        return NULL;
    const struct bh_json *from = o->old ? at->old : at->v;
    const struct bh_json *v = *o->path == '@' ? from : bh_json_path(from, o->path);
    return v && v->type != BH_JSON_NULL ? v : NULL;
}

static bool same_scalar(const struct bh_json *v, const char *word)
{
    int64_t n;

    if (v && v->type == BH_JSON_BOOL)
        return bh_streq(word, v->b ? "true" : "false");
    if (v && v->type == BH_JSON_NUMBER && bh_json_i64(v, &n))
        return n == strtoll(word, NULL, 10) && (isdigit((unsigned char)*word) || *word == '-');
    if (!v)
        return !*word || bh_streq(word, "0") || bh_streq(word, "false");
    return v->type == BH_JSON_STRING && bh_streq(v->s.p, word);
}

static int64_t number_of(const struct bh_json *v, const struct rule_operand *o)
{
    int64_t n = 0;

    if (o->count)
        return v && v->type == BH_JSON_STRING ? (int64_t)v->s.n : (int64_t)bh_tree_len(v);
    return v && bh_json_i64(v, &n) ? n : 0;
}

static bool compare(struct bh_rule_run *r, const struct bh_rule_at *at, const struct rule_cond *c)
{
    const struct bh_json *v = operand(r, at, &c->left);
    const struct bh_json *w = c->has_right ? operand(r, at, &c->right) : NULL;

    if (c->op == RULE_EQ || c->op == RULE_NE || c->op == RULE_IN) {
        bool same = false;
        if (c->has_right)
            same = v && w ? bh_json_equal(v, w) : bh_rule_is_empty(v) && bh_rule_is_empty(w);
        else if (c->left.count)
            same = number_of(v, &c->left) == strtoll(c->word[0], NULL, 10);
        else
            for (size_t i = 0; i < c->n_words; i++)
                same = same || same_scalar(v, c->word[i]);
        return same == (c->op != RULE_NE);
    }
    int64_t a = number_of(v, &c->left),
            b = c->has_right ? number_of(w, &c->right) : strtoll(c->word[0], NULL, 10);
    return c->op == RULE_LT ? a < b : c->op == RULE_LE ? a <= b : c->op == RULE_GT ? a > b : a >= b;
}

static bool holds(struct bh_rule_run *r, const struct bh_rule_at *at, const struct rule_cond *c)
{
    switch (c->op) {
    case RULE_NOT:
        return !holds(r, at, c->a);
    case RULE_AND:
        return holds(r, at, c->a) && holds(r, at, c->b);
    case RULE_OR:
        return holds(r, at, c->a) || holds(r, at, c->b);
    case RULE_HAS:
        return operand(r, at, &c->left) != NULL;
    case RULE_TRUE:
        return !bh_rule_is_empty(operand(r, at, &c->left));
    default:
        return compare(r, at, c);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* What defaults are made of; everything else checks. */
static bool applies(const struct bh_rule_run *r, const struct bh_rule_call *c)
{
    return c->set || (c->value != NULL) == r->defaults;
}

static void run_calls(struct bh_rule_run *r, const struct rule_line *l, const struct bh_rule_at *at)
{
    struct bh_rule_at renamed = *at;

    if (l->alias) { /* begins at the object that the line is about */
        const struct bh_rule_at *base = at;
        const char *name = l->alias;
        for (size_t i = 0; i < l->n_segs; i++)
            base = base->up;
        for (; *name == '^'; name++)
            base = base->up ? base->up : base;
        const char *hole = strstr(name, "[]");
        renamed.base = base;
        renamed.silent = !*name || bh_streq(name, ".");
        renamed.key = NULL;
        renamed.name =
            hole ? bh_rule_printf(r, "%.*s[%zu]%s", (int)(hole - name), name, at->index, hole + 2)
                 : name;
    }
    for (size_t i = 0; i < l->n_calls; i++) {
        const struct bh_rule_call *c = l->call[i];
        if (!applies(r, c))
            continue;
        if (c->set)
            bh_rules_apply_at(r, c->set, &renamed);
        else if (!c->fn(r, &renamed, c))
            return;
    }
}

/* The last member of the path has been reached when only elements are left. */
static bool is_last_member(const struct rule_line *l, size_t seg)
{
    for (; seg < l->n_segs; seg++)
        if (l->seg[seg].step == RULE_MEMBER)
            return false;
    return true;
}

static void walk(struct bh_rule_run *r, const struct rule_line *l, size_t seg,
                 const struct bh_rule_at *at)
{
    if (seg == l->n_segs) {
        run_calls(r, l, at);
        return;
    }
    const struct rule_seg *s = &l->seg[seg];
    if (s->step == RULE_MEMBER) {
        if (is_last_member(l, seg + 1) && l->cond && !holds(r, at, l->cond))
            return;
        struct bh_rule_at m = bh_rule_member(at, s->name);
        if (r->defaults && !m.v && m.type && !m.field->pointer && at->v &&
            at->v->type == BH_JSON_OBJECT)
            m.v = bh_json_obj_at(r->w->arena, at->v, s->name); /* a struct that is no pointer */
        if (m.v || is_last_member(l, seg + 1) || (m.field && m.type && !m.field->pointer))
            walk(r, l, seg + 1, &m);
    } else if (s->step == RULE_KEYS) {
        bh_json_each(e, at->v) {
            struct bh_json key = {.type = BH_JSON_STRING, .s = e->key};
            struct bh_rule_at k = {
                .up = at, .silent = true, .v = &key, .form = ""}; /* as the map */
            walk(r, l, seg + 1, &k);
        }
    } else {
        size_t i = 0;
        bh_json_each(e, at->v) {
            struct bh_rule_at m =
                *at->form == '{' ? bh_rule_entry(at, e) : bh_rule_element(at, e, i++);
            walk(r, l, seg + 1, &m);
        }
    }
}

void bh_rules_apply_at(struct bh_rule_run *r, const struct bh_rule_set *set,
                       const struct bh_rule_at *at)
{
    if (!at->v && at->field && (at->field->pointer || *at->form))
        return;
    for (const struct rule_line *l = set->first; l; l = l->next) {
        if (!l->n_segs && l->cond && !holds(r, at, l->cond))
            continue;
        walk(r, l, 0, at);
    }
}

static void apply_whole(struct bh_rule_run *r, const struct bh_rule_set *set, struct bh_json *obj)
{
    struct bh_rule_at root = {.v = obj, .old = r->w->old, .form = "", .type = set->type};

    bh_rules_apply_at(r, set, &root);
}

void bh_rules_apply(struct bh_sim_write *w, const char *name)
{
    struct bh_rule_run r = {.w = w};

    apply_whole(&r, bh_rules_find(name), w->obj);
}

void bh_rules_default(struct bh_sim_write *w, const char *name, struct bh_json *obj)
{
    struct bh_rule_run r = {.w = w, .defaults = true};
    const struct bh_rule_set *set = bh_rules_find(bh_arena_printf(w->arena, "%sDefault", name));

    if (set && obj && obj->type == BH_JSON_OBJECT)
        apply_whole(&r, set, obj);
}

void bh_rules_apply_meta(struct bh_sim_write *w)
{
    struct bh_rule_run r = {.w = w};
    const struct bh_rule_set *set = bh_rules_find("ObjectMeta");
    struct bh_rule_at root = {.v = w->obj, .old = w->old, .form = ""};
    struct bh_rule_at meta = bh_rule_member(&root, "metadata");

    meta.type = set->type;
    bh_rules_apply_at(&r, set, &meta);
}
