/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/list.c - GET of one object, LIST of many, in pages
 *
 * A continue token names the revision of its first page; all later pages come from the list frozen
 * at that moment (store.c), or are refused with 410 when it is lost.
 * Upstream: apiserver/pkg/storage/etcd3/store.go (GetList), pkg/storage/continue.go; differences:
 *           no inconsistent continue tokens: after 410 a client lists again.
 */
#include "simulator/req.h"

#include "proto/kubernetes/kubernetes.pb-c.h"
#include <stdio.h>

#define TOO_OLD_LIST "The resourceVersion for the provided list is too old."
#define TOO_OLD_CONTINUE                                                                           \
    "The provided continue parameter is too old to display a consistent list result. You must "    \
    "start a new list without the continue parameter."

struct page {
    struct bh_sim_filter filter;
    uint64_t rv;
    uint64_t limit;                   /* 0 = all */
    char after_ns[256], after[256];   /* start behind this name; after "" = at the beginning */
    const struct bh_sim_objs *frozen; /* NULL = the present */
    struct bh_sim_obj **v;            /* what this page holds; borrowed */
    size_t n, cap;
    bool more;
    size_t remaining;
};

/* ---- continue tokens
 * ----------------------------------------------------------------------------- */

static const char hex[] = "0123456789abcdef";

static void token_write(struct bh_buf *out, uint64_t rv, const struct bh_sim_obj *last)
{
    char text[600];
    int n =
        snprintf(text, sizeof(text), "%llu:%s/%s", (unsigned long long)rv, last->ns, last->name);
    for (int i = 0; i < n; i++) {
        bh_buf_addc(out, hex[(unsigned char)text[i] >> 4]);
        bh_buf_addc(out, hex[(unsigned char)text[i] & 15]);
    }
}

static int bad_token(struct bh_sim_req *r)
{
    return bh_sim_fail(&r->e, 400, "BadRequest", "continue key is not valid");
}

static int token_read(struct bh_sim_req *r, const char *token, struct page *p)
{
    char text[600];
    size_t n = strlen(token);
    if (n % 2 || n / 2 >= sizeof(text))
        return bad_token(r);
    for (size_t i = 0; i < n; i += 2) {
        const char *hi = strchr(hex, token[i]), *lo = strchr(hex, token[i + 1]);
        if (!hi || !lo)
            return bad_token(r);
        text[i / 2] = (char)((hi - hex) << 4 | (lo - hex));
    }
    text[n / 2] = 0;
    unsigned long long rv;
    int used = 0;
    if (sscanf(text, "%llu:%n", &rv, &used) != 1 || !used)
        return bad_token(r);
    char *slash = strchr(text + used, '/');
    if (!slash || !slash[1])
        return bad_token(r);
    p->rv = rv;
    snprintf(p->after_ns, sizeof(p->after_ns), "%.*s", (int)(slash - text - used), text + used);
    snprintf(p->after, sizeof(p->after), "%s", slash + 1);
    return 0;
}

/* ---- choosing what to show
 * ------------------------------------------------------------------------ */

static int expired(struct bh_sim_req *r, const char *text)
{
    return bh_sim_fail(&r->e, 410, "Expired", "%s", text);
}

/* Reads limit, continue, resourceVersion and its match. 0, or a code; r->done when waiting. */
static int read_options(struct bh_sim_req *r, struct page *p)
{
    const char *limit = bh_http_query(r->http, "limit");
    const char *token = bh_http_query(r->http, "continue");
    const char *rv = bh_http_query(r->http, "resourceVersion");
    const char *match = bh_http_query(r->http, "resourceVersionMatch");
    uint64_t wanted = 0;
    struct bh_sim_bucket *b = bh_sim_bucket(r->sim, r->type);
    p->rv = r->sim->rv;
    if (limit && bh_sim_parse_rv(r, limit, &p->limit))
        return bh_sim_fail(&r->e, 400, "BadRequest", "limit: not a number");
    if (bh_sim_parse_rv(r, rv, &wanted))
        return r->e.code;
    if (token && *token) {
        if (token_read(r, token, p))
            return r->e.code;
        p->frozen = bh_sim_page_get(r->sim, b, p->rv);
        return p->frozen ? 0 : expired(r, TOO_OLD_CONTINUE);
    }
    if (match && *match && !(rv && *rv))
        return bh_sim_fail(&r->e, 400, "BadRequest",
                           "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (bh_sim_rv_future(r, wanted))
        return 0;
    if (match && bh_streq(match, "Exact")) {
        p->rv = wanted;
        p->frozen = bh_sim_page_get(r->sim, b, wanted);
        return p->frozen ? 0 : expired(r, TOO_OLD_LIST);
    }
    return 0;
}

static struct bh_sim_obj *at(const struct page *p, const struct bh_sim_bucket *b, size_t i)
{
    return p->frozen ? p->frozen->v[i] : b->order[i]->cur;
}

/* First index whose key is behind (ns, name); name "" = the first of the namespace. */
static size_t seek(const struct page *p, const struct bh_sim_bucket *b, size_t n, const char *ns,
                   const char *name)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct bh_sim_obj *o = at(p, b, mid);
        if (bh_sim_key_cmp(o->ns, o->name, ns, name) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void collect(struct bh_sim_req *r, struct page *p)
{
    struct bh_sim_bucket *b = bh_sim_bucket(r->sim, r->type);
    bh_sim_sort(b);
    size_t n = p->frozen ? p->frozen->n : b->n_order, i = 0;
    if (*p->after)
        i = seek(p, b, n, p->after_ns, p->after);
    else if (p->filter.ns)
        i = seek(p, b, n, p->filter.ns, "");
    for (; i < n; i++) {
        struct bh_sim_obj *o = at(p, b, i);
        if (p->filter.ns && !bh_streq(o->ns, p->filter.ns))
            break;
        if (!bh_sim_filter_match(&p->filter, o))
            continue;
        if (p->limit && p->n == p->limit) {
            p->more = true;
            p->remaining++;
            if (bh_sim_filter_selects(&p->filter))
                break;
            continue;
        }
        if (p->n == p->cap) {
            p->cap = p->cap ? p->cap * 2 : 64;
            p->v = bh_reallocarray(p->v, p->cap, sizeof(struct bh_sim_obj *));
        }
        p->v[p->n++] = o;
    }
    /* Later pages read from here; the references stay alive in it. */
    if (p->more && !p->frozen)
        p->frozen = bh_sim_page_get(r->sim, b, p->rv);
}

/* ---- writing
 * -------------------------------------------------------------------------------------- */

static void list_meta(const struct page *p, struct bh_buf *out)
{
    bh_buf_addf(out, "\"resourceVersion\":\"%llu\"", (unsigned long long)p->rv);
    if (!p->more)
        return;
    bh_buf_adds(out, ",\"continue\":\"");
    token_write(out, p->rv, p->v[p->n - 1]);
    bh_buf_addc(out, '"');
    if (!bh_sim_filter_selects(&p->filter))
        bh_buf_addf(out, ",\"remainingItemCount\":%zu", p->remaining);
}

static void write_json(struct bh_sim_req *r, const struct page *p, struct bh_buf *out)
{
    char api_version[80];
    bool partial = r->format == BH_SIM_FMT_PARTIAL;
    bh_sim_type_api_version(r->type, api_version);
    bh_buf_addf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{",
                partial ? "PartialObjectMetadata" : r->type->kind,
                partial ? "meta.k8s.io/v1" : api_version);
    list_meta(p, out);
    bh_buf_adds(out, "},\"items\":[");
    for (size_t i = 0; i < p->n; i++) {
        const struct bh_sim_obj *o = p->v[i];
        if (i)
            bh_buf_addc(out, ',');
        if (!partial && !r->type->stored_as) {
            bh_buf_add(out, o->json, o->json_n);
            continue;
        }
        struct bh_arena_mark m = bh_arena_mark(r->a);
        struct bh_json *tree = bh_sim_obj_tree(r->a, o);
        bh_sim_convert_out(r->a, r->type, tree);
        if (partial)
            bh_sim_encode_partial(tree, "PartialObjectMetadata", out);
        else
            bh_json_write(out, tree);
        bh_arena_rewind(r->a, m);
    }
    bh_buf_adds(out, "]}\n");
}

static void write_table(struct bh_sim_req *r, const struct page *p, struct bh_buf *out)
{
    struct bh_buf meta = {0};
    int64_t now = bh_sim_now_ns(r->sim);
    enum bh_sim_include inc = bh_sim_include_of(r);
    list_meta(p, &meta);
    bh_sim_table_begin(p->n ? p->v[0]->type : bh_sim_type_stored(r->type), bh_buf_str(&meta), true,
                       out);
    for (size_t i = 0; i < p->n; i++) {
        struct bh_arena_mark m = bh_arena_mark(r->a);
        bh_sim_table_row(p->v[i]->type, bh_sim_obj_tree(r->a, p->v[i]), now, inc, i == 0, out);
        bh_arena_rewind(r->a, m);
    }
    bh_sim_table_end(out);
    bh_buf_fini(&meta);
}

static void add_varint(struct bh_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        bh_buf_addc(b, (char)(v | 0x80));
    bh_buf_addc(b, (char)v);
}

static void add_bytes(struct bh_buf *b, char tag, const void *p, size_t n)
{
    bh_buf_addc(b, tag);
    add_varint(b, n);
    bh_buf_add(b, p, n);
}

/* An item whose content does not fit the schema is left out, as a watch leaves it out: the typed
 * client that asked for protobuf could not have read it either. */
static void write_pb(struct bh_sim_req *r, const struct page *p, struct bh_buf *out)
{
    char rv[24], kind[80], api_version[80];
    struct bh_buf raw = {0}, item = {0}, token = {0};
    K8s__ListMeta meta = K8S__LIST_META__INIT;
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long)p->rv);
    meta.resourceversion = rv;
    if (p->more) {
        token_write(&token, p->rv, p->v[p->n - 1]);
        meta.continue_ = token.p;
        meta.has_remainingitemcount = !bh_sim_filter_selects(&p->filter);
        meta.remainingitemcount = (int64_t)p->remaining;
    }
    bh_pb_pack(&item, &meta.base);
    add_bytes(&raw, 0x0a, item.p, item.n);
    for (size_t i = 0; i < p->n; i++) {
        struct bh_arena_mark m = bh_arena_mark(r->a);
        struct bh_json *tree = bh_sim_obj_tree(r->a, p->v[i]);
        bh_sim_convert_out(r->a, r->type, tree);
        bh_buf_reset(&item);
        if (bh_sim_encode_pb(r->a, r->type, tree, false, &item))
            add_bytes(&raw, 0x12, item.p, item.n);
        bh_arena_rewind(r->a, m);
    }
    bh_sim_type_api_version(r->type, api_version);
    snprintf(kind, sizeof(kind), "%sList", r->type->kind);
    bh_envelope_write(out, api_version, kind, raw.p, raw.n);
    bh_buf_fini(&raw);
    bh_buf_fini(&item);
    bh_buf_fini(&token);
}

void bh_sim_do_list(struct bh_sim_req *r)
{
    struct page p = {0};
    r->verb = "list";
    if (bh_sim_negotiate(r, true) || bh_sim_filter_init(r, &p.filter) || read_options(r, &p))
        goto out;
    if (r->done)
        goto out;
    collect(r, &p);
    struct bh_buf *b = &r->sim->reply;
    bh_buf_reset(b);
    if (r->format == BH_SIM_FMT_TABLE)
        write_table(r, &p, b);
    else if (r->format == BH_SIM_FMT_PB)
        write_pb(r, &p, b);
    else
        write_json(r, &p, b);
    bh_sim_reply_raw(r, 200,
                     r->format == BH_SIM_FMT_PB ? "application/vnd.kubernetes.protobuf"
                                                : "application/json",
                     b->p, b->n);
    if (b->cap > ((size_t)8 << 20))
        bh_buf_fini(b);
out:
    bh_sim_filter_fini(&p.filter);
    free(p.v);
    if (!r->done)
        bh_sim_reply_error(r);
}

void bh_sim_do_get(struct bh_sim_req *r)
{
    uint64_t rv;
    r->verb = "get";
    const struct bh_sim_obj *o = bh_sim_get(r->sim, r->type, r->ns, r->name);
    if (bh_sim_negotiate(r, true) ||
        bh_sim_parse_rv(r, bh_http_query(r->http, "resourceVersion"), &rv)) {
        bh_sim_reply_error(r);
    } else if (bh_sim_rv_future(r, rv)) {
        return;
    } else if (!o) {
        bh_sim_not_found(&r->e, r->type, r->name);
        bh_sim_reply_error(r);
    } else {
        bh_sim_reply_obj(r, 200, o);
    }
}
