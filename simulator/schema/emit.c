/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/schema/emit.c - the tables as JSON schemas, for `kubectl explain` and other readers of
 * /openapi/v3
 */
#include "common/base/map.h"
#include "simulator/schema/schema.h"

#define REF "#/components/schemas/"

struct shared {
    char leaf;
    const char *name, *schema;
};
/* Leaves that are schemas of their own, under these names in every Kubernetes document. */
static const struct shared shared[] = {
    {'q', "io.k8s.apimachinery.pkg.api.resource.Quantity",
     "{\"description\":\"An amount, such as 500m, 2 or 1Gi.\",\"oneOf\":[{\"type\":\"string\"},"
     "{\"type\":\"number\"}]}"},
    {'x', "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
     "{\"description\":\"A number, or a string such as 25%.\",\"format\":\"int-or-string\","
     "\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}"},
    {'t', "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
     "{\"description\":\"RFC 3339, whole seconds.\",\"format\":\"date-time\",\"type\":\"string\"}"},
    {'m', "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
     "{\"description\":\"RFC 3339, microseconds.\",\"format\":\"date-time\",\"type\":\"string\"}"},
};

static bool note(struct bh_map *done, const char *name)
{
    size_t n = strlen(name);
    if (bh_map_get(done, name, n))
        return false;
    bh_map_put(done, name, n, done);
    return true;
}

static void put_words(struct bh_buf *out, const char *words)
{
    if (!*words)
        return;
    bh_buf_adds(out, "\"description\":");
    bh_buf_add_json_str(out, words, strlen(words));
    bh_buf_addc(out, ',');
}

static void put_leaf(char letter, struct bh_buf *out)
{
    const struct bh_oas_leaf *leaf = bh_oas_leaf(letter);
    for (size_t i = 0; i < BH_ARRAY_LEN(shared); i++) {
        if (shared[i].leaf == letter) {
            bh_buf_addf(out, "\"allOf\":[{\"$ref\":\"" REF "%s\"}]", shared[i].name);
            return;
        }
    }
    if (*leaf->format)
        bh_buf_addf(out, "\"format\":\"%s\",", leaf->format);
    if (*leaf->type)
        bh_buf_addf(out, "\"type\":\"%s\"", leaf->type);
    else
        bh_buf_adds(out, "\"x-kubernetes-preserve-unknown-fields\":true");
}

/* The members of the schema of f, without braces. */
static void put_type(const struct bh_oas_field *f, const char *form, struct bh_buf *out)
{
    if (*form == '[')
        bh_buf_adds(out, "\"type\":\"array\",\"items\":{");
    else if (*form == '{')
        bh_buf_adds(out, "\"type\":\"object\",\"additionalProperties\":{");
    if (*form) {
        put_type(f, form + 1, out);
        bh_buf_addc(out, '}');
    } else if (f->type) {
        bh_buf_adds(out, "\"allOf\":[{\"$ref\":\"" REF);
        bh_oas_full_name(f->type, out);
        bh_buf_adds(out, "\"}]");
    } else {
        put_leaf(f->leaf, out);
    }
}

static void put_merge(const struct bh_oas_field *f, struct bh_buf *out)
{
    if (f->merge_key && !bh_streq(f->merge_key, "-"))
        bh_buf_addf(out,
                    ",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"%s\"],"
                    "\"x-kubernetes-patch-merge-key\":\"%s\"",
                    f->merge_key, f->merge_key);
    if (f->merge_key || f->retain_keys)
        bh_buf_addf(out, ",\"x-kubernetes-patch-strategy\":\"%s%s%s\"", f->merge_key ? "merge" : "",
                    f->merge_key && f->retain_keys ? "," : "", f->retain_keys ? "retainKeys" : "");
}

static void put_object(const struct bh_oas_type *t, struct bh_buf *out)
{
    bool any = false;
    put_words(out, t->words);
    bh_buf_adds(out, "\"type\":\"object\"");
    if (!t->n)
        return; /* readers drop an empty member when they write it again */
    bh_buf_adds(out, ",\"properties\":{");
    for (size_t i = 0; i < t->n; i++) {
        bh_buf_addf(out, "%s\"%s\":{", i ? "," : "", t->fields[i].name);
        put_words(out, t->fields[i].words);
        put_type(&t->fields[i], t->fields[i].form, out);
        put_merge(&t->fields[i], out);
        bh_buf_addc(out, '}');
    }
    bh_buf_addc(out, '}');
    for (size_t i = 0; i < t->n; i++) {
        if (!t->fields[i].required)
            continue;
        bh_buf_addf(out, "%s\"%s\"", any ? "," : ",\"required\":[", t->fields[i].name);
        any = true;
    }
    if (any)
        bh_buf_addc(out, ']');
}

static void emit_parts(const struct bh_oas_type *t, struct bh_map *done, struct bh_buf *out);

static void emit_type(const struct bh_oas_type *t, struct bh_map *done, struct bh_buf *out)
{
    struct bh_buf name = {0};
    bh_oas_full_name(t, &name);
    if (note(done, bh_buf_str(&name))) {
        bh_buf_addf(out, ",\"%s\":{", name.p);
        put_object(t, out);
        bh_buf_addc(out, '}');
        emit_parts(t, done, out);
    }
    bh_buf_fini(&name);
}

static void emit_parts(const struct bh_oas_type *t, struct bh_map *done, struct bh_buf *out)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->fields[i].type)
            emit_type(t->fields[i].type, done, out);
        for (size_t k = 0; k < BH_ARRAY_LEN(shared); k++) {
            if (shared[k].leaf == t->fields[i].leaf && note(done, shared[k].name))
                bh_buf_addf(out, ",\"%s\":%s", shared[k].name, shared[k].schema);
        }
    }
}

void bh_oas_emit_named(const char *package, const char *name, struct bh_map *done,
                       struct bh_buf *out)
{
    struct bh_buf b = {0};
    emit_type(bh_oas_find(package, name), done, &b);
    if (b.n) /* behind what is there already, or first */
        bh_buf_adds(out, b.p + (out->n == 0));
    bh_buf_fini(&b);
}

void bh_oas_emit(const struct bh_sim_type *t, struct bh_map *done, struct bh_buf *out)
{
    const struct bh_oas_type *root = bh_oas_root(t);
    struct bh_buf name = {0};
    if (!root)
        return;
    bh_oas_full_name(root, &name);
    if (note(done, bh_buf_str(&name))) {
        bh_buf_addf(out, "%s\"%s\":{", out->n && out->p[out->n - 1] != '{' ? "," : "", name.p);
        put_object(root, out);
        bh_buf_addf(out,
                    ",\"x-kubernetes-group-version-kind\":[{\"group\":\"%s\",\"version\":\"%s\","
                    "\"kind\":\"%s\"}]}",
                    t->group, t->version, t->kind);
        emit_parts(root, done, out);
    }
    bh_buf_fini(&name);
}
