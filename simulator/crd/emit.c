/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/emit.c - a definition's schema as OpenAPI publishes it
 *
 * Upstream: apiextensions-apiserver/pkg/controller/openapi/builder
 */
#include "simulator/crd/crd.h"

/* The group's words backwards: stable.example.com -> com.example.stable */
static void put_reversed(const char *group, struct bh_buf *out)
{
    const char *end = group + strlen(group);
    while (end > group) {
        const char *p = end;
        while (p > group && p[-1] != '.')
            p--;
        bh_buf_add(out, p, (size_t)(end - p));
        bh_buf_addc(out, '.');
        end = p > group ? p - 1 : group;
    }
}

static void put_member(struct bh_buf *out, bool *any, const char *name, const char *schema)
{
    bh_buf_addf(out, "%s\"%s\":%s", *any ? "," : "", name, schema);
    *any = true;
}

/* Every object has these, whatever its schema says. */
static void put_properties(const struct bh_json *schema, struct bh_buf *out)
{
    bool any = false;
    bh_buf_adds(out, "\"properties\":{");
    put_member(out, &any, "apiVersion", "{\"type\":\"string\"}");
    put_member(out, &any, "kind", "{\"type\":\"string\"}");
    put_member(out, &any, "metadata",
               "{\"allOf\":[{\"$ref\":\"#/components/schemas/"
               "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta\"}],\"description\":\"Name, labels "
               "and the like.\"}");
    bh_json_each(p, bh_json_get(schema, "properties")) {
        if (bh_streq(p->key.p, "apiVersion") || bh_streq(p->key.p, "kind") ||
            bh_streq(p->key.p, "metadata"))
            continue;
        bh_buf_addc(out, ',');
        bh_buf_add_json_str(out, p->key.p, p->key.n);
        bh_buf_addc(out, ':');
        bh_json_write(out, p);
    }
    bh_buf_addc(out, '}');
}

void bh_crd_emit(const struct bh_sim_type *t, struct bh_buf *out)
{
    const struct bh_json *schema = t->custom->schema;
    bh_buf_addc(out, '"');
    put_reversed(t->group, out);
    bh_buf_addf(out, "%s.%s\":{", t->version, t->kind);
    put_properties(schema, out);
    bh_json_each(m, schema) {
        if (bh_streq(m->key.p, "properties") || bh_streq(m->key.p, "type"))
            continue;
        bh_buf_addc(out, ',');
        bh_buf_add_json_str(out, m->key.p, m->key.n);
        bh_buf_addc(out, ':');
        bh_json_write(out, m);
    }
    bh_buf_addf(out,
                ",\"type\":\"object\",\"x-kubernetes-group-version-kind\":[{\"group\":\"%s\","
                "\"version\":\"%s\",\"kind\":\"%s\"}]}",
                t->group, t->version, t->kind);
}
