/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/protobuf.c - a definition that came as protobuf, as JSON spells it
 *
 * Upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go, generated.proto (v1.36)
 */
#include "simulator/crd/crd.h"

#include <ctype.h>

#include "simulator/server/tree.h"

static void schema_from_pb(struct bh_arena *a, struct bh_json *schema);

/* A schema, a list, or a bool stands in a message that JSON does not have. */
static void unwrap(struct bh_arena *a, struct bh_json *m)
{
    static const char *const members[] = {"schema", "jSONSchemas", "property", "allows"};
    const struct bh_json was = *m;
    struct bh_json *in = NULL;

    for (size_t i = 0; i < BH_ARRAY_LEN(members) && !in; i++)
        in = bh_json_get(m, members[i]);
    if (!in)
        return;
    schema_from_pb(a, in);
    if (in->type == BH_JSON_ARRAY)
        bh_json_each(each, in)
            schema_from_pb(a, each);
    *m = *in;
    m->key = was.key;
    m->next = was.next;
}

/* "xKubernetesListType" is "x-kubernetes-list-type". */
static const char *extension(struct bh_arena *a, const char *name)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    for (; *name; name++) {
        if (isupper((unsigned char)*name))
            bh_buf_addc(&b, '-');
        bh_buf_addc(&b, (char)tolower((unsigned char)*name));
    }
    return bh_arena_strndup(a, b.p, b.n);
}

/* No deeper than messages within each other were read. */
static void schema_from_pb(struct bh_arena *a, struct bh_json *schema)
{
    bh_json_each(m, schema) {
        if (bh_word_at("not", m->key.p) >= 0)
            schema_from_pb(a, m);
        else if (bh_word_at("allOf anyOf oneOf properties patternProperties definitions",
                            m->key.p) >= 0)
            bh_json_each(each, m)
                schema_from_pb(a, each);
        else if (bh_word_at("items additionalItems additionalProperties", m->key.p) >= 0)
            unwrap(a, m);
        else if (bh_word_at("dependencies", m->key.p) >= 0)
            bh_json_each(each, m)
                unwrap(a, each);
        else if (bh_word_at("ref schema", m->key.p) >= 0)
            m->key = bh_str_c(bh_arena_printf(a, "$%s", m->key.p));
        else if (strncmp(m->key.p, "xKubernetes", strlen("xKubernetes")) == 0)
            m->key = bh_str_c(extension(a, m->key.p));
    }
}

void bh_crd_from_pb(struct bh_arena *a, struct bh_json *crd)
{
    bh_json_each(v, bh_tree_arr(crd, "spec.versions"))
        schema_from_pb(a, bh_tree_obj(v, "schema.openAPIV3Schema"));
}
