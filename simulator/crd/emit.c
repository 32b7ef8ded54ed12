/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/emit.c - a definition's schema as OpenAPI publishes it
 *
 * Upstream: apiextensions-apiserver/pkg/controller/openapi/builder
 */
#include "simulator/crd/crd.h"

static void put_member(struct bh_buf *out, const struct bh_json *m)
{
    bh_buf_addc(out, ',');
    bh_buf_add_json_str(out, m->key.p, m->key.n);
    bh_buf_addc(out, ':');
    bh_json_write(out, m);
}

void bh_crd_emit(const struct bh_sim_type *t, struct bh_buf *out)
{
    const struct bh_json *schema = t->custom->schema;
    bh_buf_addc(out, '"');
    /* The group's words backwards: stable.example.com -> com.example.stable */
    const char *group = t->group;
    const char *end = group + strlen(group);
    while (end > group) {
        const char *p = end;
        while (p > group && p[-1] != '.')
            p--;
        bh_buf_add(out, p, (size_t)(end - p));
        bh_buf_addc(out, '.');
        end = p > group ? p - 1 : group;
    }
    /* Every object has these properties, whatever its schema says. */
    bh_buf_addf(out,
                "%s.%s\":{\"properties\":{\"apiVersion\":{\"type\":\"string\"},"
                "\"kind\":{\"type\":\"string\"},\"metadata\":{\"allOf\":[{\"$ref\":"
                "\"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta\"}],"
                "\"description\":\"Name, labels and the like.\"}",
                t->version, t->kind);
    bh_json_each(p, bh_json_get(schema, "properties")) {
        if (bh_word_at("apiVersion kind metadata", p->key.p) < 0)
            put_member(out, p);
    }
    bh_buf_addc(out, '}');
    bh_json_each(m, schema) {
        if (!bh_streq(m->key.p, "properties") && !bh_streq(m->key.p, "type"))
            put_member(out, m);
    }
    bh_buf_addf(out,
                ",\"type\":\"object\",\"x-kubernetes-group-version-kind\":[{\"group\":\"%s\","
                "\"version\":\"%s\",\"kind\":\"%s\"}]}",
                t->group, t->version, t->kind);
}
