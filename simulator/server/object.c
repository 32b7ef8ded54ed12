/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/object.c - one version of one object: text and hot fields in a single block
 *
 * Owns:       the block. Layout: struct, labels, owner uids, strings, JSON text.
 * Invariants: the text is what bh_json_write() gives for the object's tree, so text -> tree -> text
 *             is the identity, which is how a write finds out that it changed nothing.
 */
#include "simulator/server/sim_int.h"

#include <stdio.h>

static void write_key(struct bh_buf *b, const struct bh_json *m, const struct bh_json *first)
{
    if (m != first)
        bh_buf_addc(b, ',');
    bh_buf_add_json_str(b, m->key.p, m->key.n);
    bh_buf_addc(b, ':');
}

static void write_meta(struct bh_buf *b, const struct bh_json *meta, uint64_t rv,
                       struct bh_sim_spans *sp)
{
    bh_buf_addc(b, '{');
    bh_json_each(m, meta) {
        write_key(b, m, meta->c.first);
        if (bh_str_eqc(m->key, "resourceVersion")) {
            bh_buf_addc(b, '"');
            sp->rv_at = (uint32_t)b->n;
            bh_buf_addi64(b, (int64_t)rv);
            sp->rv_n = (uint32_t)b->n - sp->rv_at;
            bh_buf_addc(b, '"');
        } else {
            bh_json_write(b, m);
        }
    }
    bh_buf_addc(b, '}');
}

static void write_text(struct bh_buf *b, const struct bh_json *tree, uint64_t rv,
                       struct bh_sim_spans *sp)
{
    *sp = (struct bh_sim_spans){0};
    bh_buf_reset(b);
    bh_buf_addc(b, '{');
    bh_json_each(m, tree) {
        write_key(b, m, tree->c.first);
        uint32_t at = (uint32_t)b->n;
        if (bh_str_eqc(m->key, "metadata")) {
            write_meta(b, m, rv, sp);
            continue;
        }
        bh_json_write(b, m);
        if (bh_str_eqc(m->key, "spec")) {
            sp->spec_at = at;
            sp->spec_n = (uint32_t)b->n - at;
        } else if (bh_str_eqc(m->key, "status")) {
            sp->status_at = at;
            sp->status_n = (uint32_t)b->n - at;
        }
    }
    bh_buf_addc(b, '}');
}

/* What the block will hold besides the struct, gathered before its size is known. */
struct parts {
    struct bh_str ns, name, uid, node, phase, owner_uid, owner_kind;
    const struct bh_json *labels, *owners;
    size_t n_labels, n_owners, string_bytes;
    bool deleting, has_annotations, has_finalizers;
    int64_t generation;
};

static struct bh_str str_of(const struct bh_json *v)
{
    return v && v->type == BH_JSON_STRING ? v->s : BH_STR("");
}

static bool filled(const struct bh_json *v, enum bh_json_type t)
{
    return v && v->type == t && v->c.n > 0;
}

static void gather_owners(struct parts *p, const struct bh_json *refs)
{
    if (!filled(refs, BH_JSON_ARRAY))
        return;
    p->owners = refs;
    bh_json_each(r, refs) {
        p->n_owners++;
        p->string_bytes += str_of(bh_json_get(r, "uid")).n + 1;
        if (bh_json_get_bool(r, "controller", false)) {
            p->owner_uid = str_of(bh_json_get(r, "uid"));
            p->owner_kind = str_of(bh_json_get(r, "kind"));
        }
    }
}

static void gather_meta(struct parts *p, const struct bh_json *meta)
{
    bh_json_each(m, meta) {
        if (bh_str_eqc(m->key, "name"))
            p->name = str_of(m);
        else if (bh_str_eqc(m->key, "namespace"))
            p->ns = str_of(m);
        else if (bh_str_eqc(m->key, "uid"))
            p->uid = str_of(m);
        else if (bh_str_eqc(m->key, "deletionTimestamp"))
            p->deleting = m->type == BH_JSON_STRING;
        else if (bh_str_eqc(m->key, "finalizers"))
            p->has_finalizers |= filled(m, BH_JSON_ARRAY);
        else if (bh_str_eqc(m->key, "generation"))
            bh_json_i64(m, &p->generation);
        else if (bh_str_eqc(m->key, "ownerReferences"))
            gather_owners(p, m);
        else if (bh_str_eqc(m->key, "annotations"))
            p->has_annotations = filled(m, BH_JSON_OBJECT);
        else if (bh_str_eqc(m->key, "labels") && filled(m, BH_JSON_OBJECT))
            p->labels = m;
    }
    bh_json_each(l, p->labels) {
        p->n_labels++;
        p->string_bytes += l->key.n + 1 + str_of(l).n + 1;
    }
}

static struct parts gather(const struct bh_sim_type *t, const struct bh_json *tree)
{
    struct parts p = {0};
    p.ns = p.name = p.uid = p.node = p.phase = p.owner_uid = p.owner_kind = BH_STR("");
    gather_meta(&p, bh_json_get(tree, "metadata"));
    p.phase = str_of(bh_json_get(bh_json_get(tree, "status"), "phase"));
    if (!*t->group && bh_streq(t->kind, "Pod"))
        p.node = str_of(bh_json_get(bh_json_get(tree, "spec"), "nodeName"));
    else if (!*t->group && bh_streq(t->kind, "Namespace"))
        p.has_finalizers |=
            filled(bh_json_get(bh_json_get(tree, "spec"), "finalizers"), BH_JSON_ARRAY);
    const struct bh_str all[] = {p.ns, p.name, p.uid, p.node, p.phase, p.owner_uid, p.owner_kind};
    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++)
        p.string_bytes += all[i].n + 1;
    return p;
}

static const char *put(char **at, struct bh_str s)
{
    char *p = *at;
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = 0;
    *at += s.n + 1;
    return p;
}

static struct bh_sim_obj *build(const struct bh_sim_type *t, const struct bh_json *tree,
                                const struct bh_buf *text, const struct bh_sim_spans *sp,
                                uint64_t rv)
{
    struct parts p = gather(t, tree);
    size_t labels_n = p.n_labels * sizeof(struct bh_sim_label);
    size_t owners_n = p.n_owners * sizeof(char *);
    size_t head = sizeof(struct bh_sim_obj) + labels_n + owners_n + p.string_bytes;
    struct bh_sim_obj *o = bh_malloc(head + text->n + 1);
    struct bh_sim_label *labels = (struct bh_sim_label *)(o + 1);
    const char **owners = (const char **)((char *)(o + 1) + labels_n);
    char *at = (char *)(o + 1) + labels_n + owners_n;
    *o = (struct bh_sim_obj){
        .refs = 1,
        .type = t,
        .rv = rv,
        .generation = p.generation,
        .json = (char *)o + head,
        .json_n = (uint32_t)text->n,
        .deleting = p.deleting,
        .has_annotations = p.has_annotations,
        .has_finalizers = p.has_finalizers,
        .n_labels = (uint32_t)p.n_labels,
        .labels = labels,
        .n_owners = (uint32_t)p.n_owners,
        .owner_uids = owners,
        .head_n = (uint32_t)head,
        .rv_at = sp->rv_at,
        .rv_n = sp->rv_n,
        .spec_at = sp->spec_at,
        .spec_n = sp->spec_n,
        .status_at = sp->status_at,
        .status_n = sp->status_n,
    };
    o->ns = put(&at, p.ns);
    o->name = put(&at, p.name);
    o->uid = put(&at, p.uid);
    o->node_name = put(&at, p.node);
    o->phase = put(&at, p.phase);
    o->owner_uid = put(&at, p.owner_uid);
    o->owner_kind = put(&at, p.owner_kind);
    bh_json_each(l, p.labels) {
        labels->key = put(&at, l->key);
        labels->value = put(&at, str_of(l));
        labels++;
    }
    bh_json_each(r, p.owners)
        *owners++ = put(&at, str_of(bh_json_get(r, "uid")));
    memcpy((char *)o + head, text->p, text->n + 1);
    return o;
}

struct bh_sim_obj *bh_sim_obj_new(struct bh_sim *s, const struct bh_sim_type *t,
                                  const struct bh_json *tree, uint64_t rv)
{
    struct bh_sim_spans *sp = &s->scratch_spans;
    write_text(&s->scratch, tree, rv, sp);
    bh_assert(sp->rv_n > 0);
    return build(t, tree, &s->scratch, sp, rv);
}

struct bh_sim_obj *bh_sim_obj_new_again(struct bh_sim *s, const struct bh_sim_type *t,
                                        const struct bh_json *tree, uint64_t rv, uint64_t was)
{
    char now[21], then[21];
    const struct bh_sim_spans *sp = &s->scratch_spans;
    if (bh_dec_u64(now, rv) != bh_dec_u64(then, was))
        return bh_sim_obj_new(s, t, tree, rv);
    bh_assert(sp->rv_n == strlen(then) && memcmp(s->scratch.p + sp->rv_at, then, sp->rv_n) == 0);
    memcpy(s->scratch.p + sp->rv_at, now, sp->rv_n);
    return build(t, tree, &s->scratch, sp, rv);
}

bool bh_sim_obj_same(struct bh_sim *s, const struct bh_sim_obj *o, const struct bh_json *tree,
                     bool *ret_same_spec)
{
    struct bh_sim_spans *sp = &s->scratch_spans;
    write_text(&s->scratch, tree, o->rv, sp);
    *ret_same_spec = sp->spec_n == o->spec_n &&
                     memcmp(s->scratch.p + sp->spec_at, o->json + o->spec_at, sp->spec_n) == 0;
    return s->scratch.n == o->json_n && memcmp(s->scratch.p, o->json, o->json_n) == 0;
}

struct bh_sim_obj *bh_sim_obj_with_rv(const struct bh_sim_obj *o, uint64_t rv)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)rv);
    uint32_t json_n = o->json_n - o->rv_n + (uint32_t)n;
    struct bh_sim_obj *c = bh_malloc(o->head_n + (size_t)json_n + 1);
    memcpy(c, o, o->head_n);
    ptrdiff_t by = (char *)c - (const char *)o;
    const char **moved[] = {&c->ns,    &c->name,      &c->uid,        &c->node_name,
                            &c->phase, &c->owner_uid, &c->owner_kind, &c->json};
    for (size_t i = 0; i < BH_ARRAY_LEN(moved); i++)
        *moved[i] += by;
    struct bh_sim_label *labels = (struct bh_sim_label *)(c + 1);
    for (uint32_t i = 0; i < c->n_labels; i++) {
        labels[i].key += by;
        labels[i].value += by;
    }
    const char **owners = (const char **)(labels + c->n_labels);
    for (uint32_t i = 0; i < c->n_owners; i++)
        owners[i] += by;
    c->labels = labels;
    c->owner_uids = owners;
    char *json = (char *)c + c->head_n;
    uint32_t tail = o->rv_at + o->rv_n, by_n = (uint32_t)n - o->rv_n;
    memcpy(json, o->json, o->rv_at);
    memcpy(json + o->rv_at, digits, (size_t)n);
    memcpy(json + o->rv_at + n, o->json + tail, o->json_n - tail + 1);
    c->refs = 1;
    c->rv = rv;
    c->rv_n = (uint32_t)n;
    c->json_n = json_n;
    c->spec_at += c->spec_at > o->rv_at ? by_n : 0;
    c->status_at += c->status_at > o->rv_at ? by_n : 0;
    return c;
}

struct bh_sim_obj *bh_sim_obj_ref(struct bh_sim_obj *o)
{
    o->refs++;
    return o;
}

void bh_sim_obj_unref(struct bh_sim_obj *o)
{
    if (o && --o->refs == 0)
        free(o);
}

struct bh_json *bh_sim_obj_tree(struct bh_arena *a, const struct bh_sim_obj *o)
{
    struct bh_json *v = NULL;
    size_t limit = a->limit_bytes;
    a->limit_bytes = 0; /* our own text: its size was bounded when it came in */
    int rc = bh_json_parse(a, o->json, o->json_n, BH_JSON_NUL, &v, NULL);
    a->limit_bytes = limit;
    bh_assert(rc == 0);
    return v;
}

const char *bh_sim_obj_label(const struct bh_sim_obj *o, const char *key)
{
    for (uint32_t i = 0; i < o->n_labels; i++) {
        if (bh_streq(o->labels[i].key, key))
            return o->labels[i].value;
    }
    return NULL;
}
