/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/schema/emit_v2.c - the tables as definitions of OpenAPI v2, in protobuf
 *
 * For kubectl before 1.27, which explains, validates and computes patches from them; hence the
 * merge keys. Numbers are those of gnostic's openapi.v2: Schema {1 $ref, 2 format, 4 description,
 * 19 required, 21 additionalProperties{1 schema}, 22 type{1}, 23 items{1 schema},
 * 25 properties{1 NamedSchema{1 name, 2 value}}, 31 extension NamedAny{1 name, 2 Any{2 yaml}}}.
 */
#include "common/base/map.h"
#include "common/k8s/wire.h"
#include "simulator/schema/schema.h"

#define REF "#/definitions/"

void bh_oas_put_str(struct bh_buf *b, unsigned field, const char *s)
{
    bh_wire_add_bytes(b, field, s, strlen(s));
}

void bh_oas_put_msg(struct bh_buf *b, unsigned field, struct bh_buf *msg)
{
    bh_wire_add_bytes(b, field, msg->p, msg->n);
    bh_buf_fini(msg);
}

void bh_oas_put_extension(struct bh_buf *b, unsigned field, const char *name, const char *yaml)
{
    struct bh_buf any = {0}, named = {0};
    bh_oas_put_str(&any, 2, yaml);
    bh_oas_put_str(&named, 1, name);
    bh_oas_put_msg(&named, 2, &any);
    bh_oas_put_msg(b, field, &named);
}

static void put_type(struct bh_buf *b, const char *type, const char *format)
{
    struct bh_buf t = {0};
    if (*format)
        bh_oas_put_str(b, 2, format);
    bh_oas_put_str(&t, 1, type);
    bh_oas_put_msg(b, 22, &t);
}

static void put_value(struct bh_buf *b, const struct bh_oas_field *f, const char *form)
{
    struct bh_buf inner = {0}, around = {0};
    if (*form) {
        put_value(&inner, f, form + 1);
        put_type(b, *form == '[' ? "array" : "object", "");
        bh_oas_put_msg(&around, 1, &inner);
        bh_oas_put_msg(b, *form == '[' ? 23 : 21, &around);
    } else if (f->type) {
        bh_buf_adds(&inner, REF);
        bh_oas_full_name(f->type, &inner);
        bh_oas_put_msg(b, 1, &inner);
    } else {
        const struct bh_oas_leaf *leaf = bh_oas_leaf(f->leaf);
        if (*leaf->type)
            put_type(b, leaf->type, leaf->format);
    }
}

static void put_field(struct bh_buf *properties, const struct bh_oas_field *f)
{
    struct bh_buf schema = {0}, named = {0};
    if (*f->words)
        bh_oas_put_str(&schema, 4, f->words);
    put_value(&schema, f, f->form);
    if (f->merge_key && !bh_streq(f->merge_key, "-"))
        bh_oas_put_extension(&schema, 31, "x-kubernetes-patch-merge-key", f->merge_key);
    if (f->merge_key || f->retain_keys)
        bh_oas_put_extension(&schema, 31, "x-kubernetes-patch-strategy",
                             !f->retain_keys ? "merge"
                             : f->merge_key  ? "merge,retainKeys"
                                             : "retainKeys");
    bh_oas_put_str(&named, 1, f->name);
    bh_oas_put_msg(&named, 2, &schema);
    bh_oas_put_msg(properties, 1, &named);
}

static void define(const struct bh_oas_type *t, const struct bh_sim_type *kind, struct bh_map *done,
                   struct bh_buf *out)
{
    struct bh_buf name = {0}, schema = {0}, properties = {0}, named = {0};
    char gvk[400];
    bh_oas_full_name(t, &name);
    if (bh_map_get(done, name.p, name.n)) {
        bh_buf_fini(&name);
        return;
    }
    bh_map_put(done, name.p, name.n, done);
    if (*t->words)
        bh_oas_put_str(&schema, 4, t->words);
    for (size_t i = 0; i < t->n; i++) {
        if (t->fields[i].required)
            bh_oas_put_str(&schema, 19, t->fields[i].name);
    }
    put_type(&schema, "object", "");
    for (size_t i = 0; i < t->n; i++)
        put_field(&properties, &t->fields[i]);
    if (t->n)
        bh_oas_put_msg(&schema, 25, &properties);
    if (kind) {
        snprintf(gvk, sizeof(gvk), "- group: \"%s\"\n  kind: %s\n  version: %s\n", kind->group,
                 kind->kind, kind->version);
        bh_oas_put_extension(&schema, 31, "x-kubernetes-group-version-kind", gvk);
    }
    bh_oas_put_msg(&named, 1, &name);
    bh_oas_put_msg(&named, 2, &schema);
    bh_oas_put_msg(out, 1, &named);
    for (size_t i = 0; i < t->n; i++) {
        if (t->fields[i].type)
            define(t->fields[i].type, NULL, done, out);
    }
}

void bh_oas_emit_v2(const struct bh_sim_type *t, struct bh_map *done, struct bh_buf *out)
{
    const struct bh_oas_type *root = bh_oas_root(t);
    if (root)
        define(root, t, done, out);
}
