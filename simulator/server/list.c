/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/list.c - GET of one object, LIST of many, in pages
 *
 * A continue token names the revision of its first page; all later pages come from the list frozen
 * at that moment (store.c), or are refused with 410 when it is lost.
 * Upstream: apiserver/pkg/storage/etcd3/store.go (GetList), pkg/storage/continue.go; differences:
 *           no inconsistent continue tokens: after 410 a client lists again.
 */
#include "simulator/server/req.h"

#include "common/k8s/wire.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include <stdio.h>

#define YAML_LIST_BYTES_MAX ((size_t)512 << 20) /* of its tree; no client reads that much YAML */
#define AT_ONCE             1000                /* items; more are sent a portion at a time */
#define TOO_OLD_LIST        "The resourceVersion for the provided list is too old."
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

/* ---- continue tokens ------------------------------------------------------------------------- */

static const char hex[] = "0123456789abcdef";

/* out: twice what text has room for. */
static void token_write(char *out, uint64_t rv, const struct bh_sim_obj *last)
{
    char text[600];
    snprintf(text, sizeof(text), "%llu:%s/%s", (unsigned long long)rv, last->ns, last->name);
    for (const char *p = text; *p; p++) {
        *out++ = hex[(unsigned char)*p >> 4];
        *out++ = hex[(unsigned char)*p & 15];
    }
    *out = '\0';
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

/* ---- choosing what to show ------------------------------------------------------------------- */

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
        return p->frozen ? 0 : bh_sim_fail(&r->e, 410, "Expired", TOO_OLD_CONTINUE);
    }
    if (match && *match && !(rv && *rv))
        return bh_sim_fail(&r->e, 400, "BadRequest",
                           "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (bh_sim_rv_future(r, wanted))
        return 0;
    if (match && bh_streq(match, "Exact")) {
        p->rv = wanted;
        p->frozen = bh_sim_page_get(r->sim, b, wanted);
        return p->frozen ? 0 : bh_sim_fail(&r->e, 410, "Expired", TOO_OLD_LIST);
    }
    return 0;
}

static void append_object(struct page *p, struct bh_sim_obj *o)
{
    BH_GROW(p->v, p->n, p->cap);
    p->v[p->n++] = o;
}

static int by_key(const void *x, const void *y)
{
    const struct bh_sim_obj *a = *(struct bh_sim_obj *const *)x;
    const struct bh_sim_obj *b = *(struct bh_sim_obj *const *)y;
    return bh_sim_key_cmp(a->ns, a->name, b->ns, b->name);
}

/* The pods of one node, from the index: true when that was all that was asked for. */
static bool collect_node(struct bh_sim_req *r, struct page *p)
{
    const char *node = NULL;
    struct bh_sim_objs l;
    if (!(r->type->flags & BH_SIM_GRACEFUL) || p->limit || p->frozen)
        return false;
    for (unsigned i = 0; i < p->filter.n_terms; i++) {
        if (p->filter.terms[i].what == BH_SIM_F_NODE && p->filter.terms[i].equal)
            node = p->filter.terms[i].value;
    }
    if (!node || !*node)
        return false;
    bh_sim_pods_on_node(r->sim, node, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (bh_sim_filter_match(&p->filter, l.v[i]))
            append_object(p, l.v[i]);
    }
    if (p->n)
        qsort(p->v, p->n, sizeof(struct bh_sim_obj *), by_key);
    bh_sim_objs_fini(&l); /* the store holds them */
    return true;
}

static void collect(struct bh_sim_req *r, struct page *p)
{
    struct bh_sim_bucket *b = bh_sim_bucket(r->sim, r->type);
    if (collect_node(r, p))
        return;
    if (!p->frozen)
        bh_sim_sort(b);
    size_t n = p->frozen ? p->frozen->n : b->n_order, i = 0;
    if (*p->after)
        i = bh_sim_seek(b, p->frozen, p->after_ns, p->after);
    else if (p->filter.ns)
        i = bh_sim_seek(b, p->frozen, p->filter.ns, "");
    if (p->filter.ns) /* the end of the namespace: no text goes behind this */
        n = bh_sim_seek(b, p->frozen, p->filter.ns, "\xff");
    for (; i < n && !p->more; i++) {
        struct bh_sim_obj *o = p->frozen ? p->frozen->v[i] : b->order[i]->cur;
        if (!bh_sim_filter_match(&p->filter, o))
            continue;
        if (p->limit && p->n == p->limit) {
            p->more = true;
            p->remaining = n - i;
        } else {
            append_object(p, o);
        }
    }
    /* Later pages read from here; the references stay alive in it. */
    if (p->more && !p->frozen)
        p->frozen = bh_sim_page_get(r->sim, b, p->rv);
}

/* ---- writing --------------------------------------------------------------------------------- */

void bh_sim_list_head_pb(const struct bh_sim_list_out *o, size_t items_n, struct bh_buf *out)
{
    char rv[24], kind[80], api_version[80];
    struct bh_buf packed = {0}, field = {0};
    K8s__ListMeta meta = K8S__LIST_META__INIT;
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long)o->rv);
    meta.resourceversion = rv;
    if (*o->token) {
        meta.continue_ = (char *)o->token;
        meta.has_remainingitemcount = o->remaining > 0;
        meta.remainingitemcount = (int64_t)o->remaining;
    }
    bh_pb_pack(&packed, &meta.base);
    bh_wire_add_bytes(&field, 1, packed.p, packed.n);
    bh_sim_type_api_version(o->type, api_version);
    snprintf(kind, sizeof(kind), "%sList", o->type->kind);
    bh_envelope_begin(out, api_version, kind, field.n + items_n);
    bh_buf_add(out, field.p, field.n);
    bh_buf_fini(&packed);
    bh_buf_fini(&field);
}

static void write_list(struct bh_sim_list_out *o, const struct page *p, struct bh_buf *out)
{
    struct bh_buf items = {0};
    bool pb = o->format == BH_SIM_FMT_PB;
    bh_sim_list_begin(o, out);
    for (size_t i = 0; i < p->n; i++)
        bh_sim_list_item(o, p->v[i], pb ? &items : out);
    if (pb) {
        bh_sim_list_head_pb(o, items.n, out);
        bh_buf_add(out, items.p, items.n);
    }
    bh_sim_list_end(o, out);
    bh_buf_fini(&items);
}

/* The JSON text once more, as YAML. */
static void reply_yaml(struct bh_sim_req *r, const struct bh_buf *text)
{
    struct bh_json *v;
    struct bh_err err = {{0}};
    r->a->limit_bytes = r->a->used_bytes + YAML_LIST_BYTES_MAX;
    int rc = bh_json_parse(r->a, text->p, text->n, BH_JSON_NUL, &v, &err);
    r->a->limit_bytes = 0;
    if (rc == 0) {
        bh_sim_reply_yaml(r, 200, v);
        return;
    }
    bh_sim_fail(&r->e, 413, "RequestEntityTooLarge",
                "the list is too large as YAML: ask with a limit, or for application/json");
    r->format = BH_SIM_FMT_JSON;
}

void bh_sim_do_list(struct bh_sim_req *r)
{
    struct page p = {0};
    r->verb = "list";
    if (bh_sim_negotiate(r, true) || bh_sim_filter_init(r, &p.filter) || read_options(r, &p))
        goto out;
    if (r->done || r->e.code)
        goto out;
    collect(r, &p);
    /* What the writers of list_out.c have to know of this page. */
    struct bh_sim_list_out o = {.sim = r->sim,
                                .type = r->type,
                                .table_type = bh_sim_table_type(r->type),
                                .format = r->format,
                                .old_table = r->old_table,
                                .include = bh_sim_include_of(r),
                                .now_ns = bh_sim_now_ns(r->sim),
                                .a = r->a,
                                .rv = p.rv,
                                /* not known of what selectors choose */
                                .remaining = p.filter.labels || p.filter.n_terms ? 0 : p.remaining};
    if (p.more)
        token_write(o.token, p.rv, p.v[p.n - 1]);
    if (p.n > AT_ONCE && r->format != BH_SIM_FMT_YAML && !r->sim->faults) {
        bh_sim_list_slowly(r, &o, p.v, p.n);
        goto out;
    }
    struct bh_buf *b = &r->sim->reply;
    bh_buf_reset(b);
    write_list(&o, &p, b);
    if (r->format == BH_SIM_FMT_YAML)
        reply_yaml(r, b);
    else
        bh_sim_reply_raw(r, 200,
                         r->format == BH_SIM_FMT_PB ? "application/vnd.kubernetes.protobuf"
                                                    : "application/json",
                         b->p, b->n);
    if (b->cap > ((size_t)8 << 20))
        bh_buf_fini(b);
out:
    bh_sim_filter_fini(&p.filter);
    free(p.v);
}

void bh_sim_do_get(struct bh_sim_req *r)
{
    uint64_t rv;
    r->verb = "get";
    const struct bh_sim_obj *o = bh_sim_get(r->sim, r->type, r->ns, r->name);
    if (bh_sim_negotiate(r, true) ||
        bh_sim_parse_rv(r, bh_http_query(r->http, "resourceVersion"), &rv) ||
        bh_sim_rv_future(r, rv))
        return;
    if (o)
        bh_sim_reply_obj(r, 200, o);
    else
        bh_sim_not_found(&r->e, r->type, r->name);
}
