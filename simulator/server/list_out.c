/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/list_out.c - the text of a list, at once or a portion in each turn of the loop
 *
 * A list of all pods of a large cluster is hundreds of megabytes: it is sent as a stream, a few
 * milliseconds of it in a turn, and no faster than the client reads, so that others do not wait.
 * What it shows is the moment of the request: the objects are referenced until it is out.
 * Runs in: the loop.
 */
#include "simulator/server/req.h"

#include "common/k8s/wire.h"

#define TURN_NS     3000000
#define PENDING_MAX ((size_t)4 << 20) /* bytes queued above which it pauses */
#define PAUSE_NS    ((int64_t)2 * 1000000)
#define PIECE_BYTES ((size_t)64 << 10)

/* ---- pieces of a list ------------------------------------------------------------------------ */

void bh_sim_list_begin(struct bh_sim_list_out *o, struct bh_buf *out)
{
    char api_version[80];
    bool partial = o->format == BH_SIM_FMT_PARTIAL;
    struct bh_buf meta = {0};
    if (o->format == BH_SIM_FMT_PB)
        return;
    bh_buf_addf(&meta, "\"resourceVersion\":\"%llu\"", (unsigned long long)o->rv);
    if (*o->token)
        bh_buf_addf(&meta, ",\"continue\":\"%s\"", o->token);
    if (o->remaining)
        bh_buf_addf(&meta, ",\"remainingItemCount\":%zu", o->remaining);
    bh_sim_type_api_version(o->type, api_version);
    if (o->format == BH_SIM_FMT_TABLE)
        bh_sim_table_begin(o->table_type, o->old_table, meta.p, true, out);
    else
        bh_buf_addf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{%s},\"items\":[",
                    partial ? "PartialObjectMetadata" : o->type->kind,
                    partial ? "meta.k8s.io/v1" : api_version, meta.p);
    bh_buf_fini(&meta);
}

void bh_sim_list_item(struct bh_sim_list_out *o, const struct bh_sim_obj *obj, struct bh_buf *out)
{
    bool first = o->n++ == 0;
    if (!first && o->format != BH_SIM_FMT_TABLE && o->format != BH_SIM_FMT_PB)
        bh_buf_addc(out, ',');
    if ((o->format == BH_SIM_FMT_JSON || o->format == BH_SIM_FMT_YAML) && !o->type->stored_as) {
        bh_buf_add(out, obj->json, obj->json_n);
        return;
    }
    struct bh_arena_mark m = bh_arena_mark(o->a);
    struct bh_json *tree = bh_sim_obj_tree(o->a, obj);
    if (o->format == BH_SIM_FMT_TABLE) {
        bh_sim_table_row(o->table_type, tree, o->now_ns, o->include, first, out);
    } else {
        bh_sim_convert_out(o->a, o->type, tree);
        if (o->format == BH_SIM_FMT_PARTIAL)
            bh_sim_encode_partial(tree, out);
        else if (o->format == BH_SIM_FMT_PB) {
            /* An item whose content does not fit the schema is left out, as a watch leaves
                 * it out: the typed client that asked for protobuf could not have read it
                 * either. */
            bh_buf_reset(&o->item);
            if (bh_sim_encode_pb(o->sim, o->type, tree, false, &o->item))
                bh_wire_add_bytes(out, 2, o->item.p, o->item.n);
        } else
            bh_json_write(out, tree);
    }
    bh_arena_rewind(o->a, m);
}

void bh_sim_list_end(struct bh_sim_list_out *o, struct bh_buf *out)
{
    if (o->format == BH_SIM_FMT_TABLE)
        bh_sim_table_end(out);
    else if (o->format == BH_SIM_FMT_PB)
        bh_envelope_end(out);
    else
        bh_buf_adds(out, "]}\n");
    bh_buf_fini(&o->item);
}

/* ---- a long one ------------------------------------------------------------------------------ */

struct slow {
    struct bh_sim *sim;
    struct bh_sim_list_out out;
    struct bh_sim_objs objs;
    size_t at, sent; /* of objs; of text */
    struct bh_http_stream *stream;
    struct bh_sim_timer *timer;
    struct bh_arena arena;
    struct bh_buf text;
    bool whole; /* text is complete: protobuf tells its length first */
};

static void on_close(void *arg)
{
    struct slow *w = arg;
    bh_sim_cancel(w->timer);
    bh_sim_objs_fini(&w->objs);
    bh_buf_fini(&w->out.item);
    bh_buf_fini(&w->text);
    bh_arena_fini(&w->arena);
    free(w);
}

static bool full(const struct slow *w)
{
    return bh_http_stream_pending(w->stream) > PENDING_MAX;
}

/* Writes and sends for a while; true when everything is on its way. */
static bool go_on(struct slow *w)
{
    bool pb = w->out.format == BH_SIM_FMT_PB;
    for (uint64_t end = bh_mono_ns() + TURN_NS; bh_mono_ns() < end && (pb || !full(w));) {
        for (int i = 0; i < 16 && w->at < w->objs.n; i++)
            bh_sim_list_item(&w->out, w->objs.v[w->at++], &w->text);
        if (w->at == w->objs.n)
            break;
        if (!pb && w->text.n >= PIECE_BYTES) {
            bh_http_stream_copy(w->stream, w->text.p, w->text.n);
            bh_buf_reset(&w->text);
        }
    }
    if (w->at < w->objs.n)
        return false;
    if (!w->whole && pb) {
        /* Protobuf: the items are together; now their length is known. */
        struct bh_buf head = {0};
        bh_sim_list_head_pb(&w->out, w->text.n, &head);
        bh_http_stream_copy(w->stream, head.p, head.n);
        bh_buf_fini(&head);
    }
    if (!w->whole)
        bh_sim_list_end(&w->out, &w->text);
    w->whole = true;
    while (w->sent < w->text.n && !full(w)) {
        size_t n = BH_MIN(w->text.n - w->sent, PIECE_BYTES);
        bh_http_stream_copy(w->stream, w->text.p + w->sent, n);
        w->sent += n;
    }
    return w->sent == w->text.n;
}

static void step(void *arg)
{
    struct slow *w = arg;
    w->timer = NULL;
    if (go_on(w))
        bh_http_stream_end(w->stream);
    else
        w->timer = bh_sim_after_real(w->sim, full(w) ? PAUSE_NS : 0, step, w);
}

void bh_sim_list_slowly(struct bh_sim_req *r, const struct bh_sim_list_out *o,
                        struct bh_sim_obj *const *v, size_t n)
{
    struct slow *w = bh_calloc(1, sizeof(*w));
    *w = (struct slow){.sim = r->sim, .out = *o};
    bh_arena_init(&w->arena, 0);
    w->out.a = &w->arena;
    w->objs.v = bh_reallocarray(NULL, n, sizeof(struct bh_sim_obj *));
    for (; w->objs.n < n; w->objs.n++)
        w->objs.v[w->objs.n] = bh_sim_obj_ref(v[w->objs.n]);
    bh_sim_list_begin(&w->out, &w->text);
    bh_sim_reply_begin(r, 200);
    w->stream = bh_http_stream_start(
        r->http,
        o->format == BH_SIM_FMT_PB ? "application/vnd.kubernetes.protobuf" : "application/json",
        on_close, w);
    step(w);
}
