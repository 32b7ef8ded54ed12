/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/encode.c - objects as Table rows, as partial metadata and as protobuf
 */
#include "simulator/server/req.h"

#include <stdio.h>

bool bh_sim_encode_pb(struct bh_sim *s, const struct bh_sim_type *t, const struct bh_json *tree,
                      bool envelope, struct bh_buf *out)
{
    char api_version[80];
    if (!t->pb)
        return false;
    if (!envelope)
        return bh_json_to_wire(t->pb, tree, out, NULL) == 0;
    bh_buf_reset(&s->wire);
    if (bh_json_to_wire(t->pb, tree, &s->wire, NULL) < 0)
        return false;
    bh_sim_type_api_version(t, api_version);
    bh_envelope_write(out, api_version, t->kind, s->wire.p, s->wire.n);
    return true;
}

void bh_sim_encode_partial(const struct bh_json *tree, struct bh_buf *out)
{
    bh_buf_adds(
        out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
    bh_json_write(out, bh_json_get(tree, "metadata"));
    bh_buf_addc(out, '}');
}

enum bh_sim_include bh_sim_include_of(const struct bh_sim_req *r)
{
    const char *v = bh_http_query(r->http, "includeObject");
    if (v && bh_streq(v, "Object"))
        return BH_SIM_INCLUDE_OBJECT;
    return v && bh_streq(v, "None") ? BH_SIM_INCLUDE_NONE : BH_SIM_INCLUDE_METADATA;
}

const struct bh_sim_type *bh_sim_table_type(const struct bh_sim_type *t)
{
    return t->custom ? t : bh_sim_type_stored(t); /* versions of a definition have their own */
}

void bh_sim_table_begin(const struct bh_sim_type *t, bool old, const char *meta, bool columns,
                        struct bh_buf *out)
{
    bh_buf_addf(out,
                "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{%s},"
                "\"columnDefinitions\":",
                old ? "v1beta1" : "v1", meta);
    if (columns)
        bh_sim_table_columns(t, out);
    else
        bh_buf_adds(out, "null");
    bh_buf_adds(out, ",\"rows\":[");
}

void bh_sim_table_row(const struct bh_sim_type *t, const struct bh_json *tree, int64_t now_ns,
                      enum bh_sim_include inc, bool first, struct bh_buf *out)
{
    if (!first)
        bh_buf_addc(out, ',');
    bh_buf_adds(out, "{\"cells\":");
    bh_sim_table_cells(t, tree, now_ns, out);
    if (inc == BH_SIM_INCLUDE_OBJECT) {
        bh_buf_adds(out, ",\"object\":");
        bh_json_write(out, tree);
    } else if (inc == BH_SIM_INCLUDE_METADATA) {
        bh_buf_adds(out, ",\"object\":");
        bh_sim_encode_partial(tree, out);
    }
    bh_buf_addc(out, '}');
}

void bh_sim_table_end(struct bh_buf *out)
{
    bh_buf_adds(out, "]}");
}

void bh_sim_table_of(const struct bh_sim_type *t, bool old, uint64_t rv, const struct bh_json *tree,
                     int64_t now_ns, enum bh_sim_include inc, bool columns, struct bh_buf *out)
{
    char meta[64];
    snprintf(meta, sizeof(meta), "\"resourceVersion\":\"%llu\"", (unsigned long long)rv);
    bh_sim_table_begin(bh_sim_table_type(t), old, meta, columns, out);
    bh_sim_table_row(bh_sim_table_type(t), tree, now_ns, inc, true, out);
    bh_sim_table_end(out);
}
