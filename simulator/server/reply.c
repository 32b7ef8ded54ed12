/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/reply.c - answers: objects, Status, text
 */
#include "simulator/server/req.h"

#include "simulator/server/audit.h"
#include "simulator/server/data.h"
#include "simulator/server/faults.h"
#include "common/data/yaml.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include <stdio.h>

#define JSON_TYPE "application/json"
#define YAML_TYPE "application/yaml"
#define PB_TYPE   "application/vnd.kubernetes.protobuf"

static struct bh_sim_counts counts_of(struct bh_sim_metrics *m, const char *verb, int code)
{
    char text[12];
    for (size_t i = 0; i < m->n_counts; i++) {
        if (m->counts[i].verb == verb && m->counts[i].code == code)
            return m->counts[i];
    }
    snprintf(text, sizeof(text), "%d", code);
    const struct bh_sim_counts c = {verb, code, bh_metric_cell(m->requests, verb, text),
                                    bh_metric_cell(m->latency, verb)};
    if (m->n_counts < BH_SIM_COUNTS)
        m->counts[m->n_counts++] = c;
    return c;
}

void bh_sim_reply_begin(struct bh_sim_req *r, int code)
{
    char v[16];
    bh_http_set_header(r->http, "Cache-Control",
                       r->immutable ? "public, immutable" : "no-cache, private");
    for (const char *p = bh_buf_str(&r->warnings); *p;) {
        size_t n = strcspn(p, "\n");
        /* Warning: 299 - "text", where quotes and backslashes of the text are escaped (RFC
         * 7234). */
        struct bh_buf b = {0};
        bh_buf_adds(&b, "299 - \"");
        for (size_t i = 0; i < BH_MIN(n, (size_t)512); i++) {
            if (p[i] == '"' || p[i] == '\\')
                bh_buf_addc(&b, '\\');
            bh_buf_addc(&b, p[i]);
        }
        bh_buf_addc(&b, '"');
        bh_http_set_header(r->http, "Warning", b.p);
        bh_buf_fini(&b);
        p += n + (p[n] == '\n');
    }
    if (r->e.code && r->e.retry_after_s) {
        snprintf(v, sizeof(v), "%d", r->e.retry_after_s);
        bh_http_set_header(r->http, "Retry-After", v);
    }
    const char *verb = r->verb ? r->verb : "other";
    const struct bh_sim_counts c = counts_of(&r->sim->metrics, verb, code);
    bh_cell_add(c.requests, 1);
    bh_cell_observe(c.latency, (double)(bh_mono_ns() - r->start_ns) / 1e9);
    bh_sim_audit(r, code);
    r->done = true;
}

void bh_sim_reply_raw(struct bh_sim_req *r, int code, const char *content_type, const void *p,
                      size_t n)
{
    bh_sim_reply_begin(r, code);
    if (r->sim->faults && bh_sim_fault_reply(r, code, content_type, p, n))
        return;
    if (bh_sim_data_hold(r, code, content_type, p, n))
        return;
    bh_http_reply(r->http, code, content_type, p, n);
}

/* Merge sort of a list of members by name. */
static struct bh_json *sorted(struct bh_json *l, size_t n)
{
    struct bh_json *half = l, *rest, head = {0}, *tail = &head;
    if (n < 2)
        return l;
    for (size_t i = 1; i < n / 2; i++)
        half = half->next;
    rest = half->next;
    half->next = NULL;
    l = sorted(l, n / 2);
    rest = sorted(rest, n - n / 2);
    while (l && rest) {
        struct bh_json **least = strcmp(rest->key.p, l->key.p) < 0 ? &rest : &l;
        tail = tail->next = *least;
        *least = (*least)->next;
    }
    tail->next = l ? l : rest;
    return head.next;
}

static void sort_members(struct bh_json *v)
{
    if (v->type == BH_JSON_OBJECT && v->c.n > 1) {
        v->c.first = sorted(v->c.first, v->c.n);
        for (v->c.last = v->c.first; v->c.last->next;)
            v->c.last = v->c.last->next;
    }
    bh_json_each(m, v)
        sort_members(m);
}

void bh_sim_reply_yaml(struct bh_sim_req *r, int code, struct bh_json *v)
{
    struct bh_buf b = {0};
    sort_members(v);
    bh_yaml_write(&b, v);
    bh_sim_reply_raw(r, code, YAML_TYPE, b.p, b.n);
    bh_buf_fini(&b);
}

void bh_sim_reply_tree(struct bh_sim_req *r, int code, const struct bh_json *v,
                       const ProtobufCMessageDescriptor *desc)
{
    const char *api_version = bh_json_get_str(v, "apiVersion"), *kind = bh_json_get_str(v, "kind");
    if (r->format == BH_SIM_FMT_YAML) {
        bh_sim_reply_yaml(r, code, bh_json_clone(r->a, v));
        return;
    }
    struct bh_buf *b = &r->sim->reply, *wire = &r->sim->wire;
    bh_buf_reset(wire);
    bh_buf_reset(b);
    if (r->format == BH_SIM_FMT_PB && desc && bh_json_to_wire(desc, v, wire, NULL) == 0) {
        bh_envelope_write(b, api_version ? api_version : "v1", kind ? kind : "", wire->p, wire->n);
        bh_sim_reply_raw(r, code, PB_TYPE, b->p, b->n);
        return;
    }
    if (bh_sim_query_bool(r, "pretty", false))
        bh_json_write_pretty(b, v);
    else
        bh_json_write(b, v);
    bh_buf_addc(b, '\n');
    bh_sim_reply_raw(r, code, JSON_TYPE, b->p, b->n);
}

void bh_sim_reply_error(struct bh_sim_req *r)
{
    bh_sim_reply_tree(r, r->e.code, bh_sim_status_tree(r->a, &r->e), &k8s__status__descriptor);
}

void bh_sim_reply_obj(struct bh_sim_req *r, int code, const struct bh_sim_obj *o)
{
    if (r->format == BH_SIM_FMT_JSON && !r->type->stored_as &&
        !bh_sim_query_bool(r, "pretty", false)) {
        bh_sim_reply_raw(r, code, JSON_TYPE, o->json, o->json_n);
        return;
    }
    struct bh_json *tree = bh_sim_obj_tree(r->a, o);
    struct bh_buf *b = &r->sim->reply;
    if (r->format != BH_SIM_FMT_TABLE && r->format != BH_SIM_FMT_PARTIAL) {
        bh_sim_convert_out(r->a, r->type, tree);
        bh_sim_reply_tree(r, code, tree, r->type->pb);
        return;
    }
    bh_buf_reset(b);
    if (r->format == BH_SIM_FMT_TABLE)
        bh_sim_table_of(r->type, r->old_table, o->rv, tree, bh_sim_now_ns(r->sim),
                        bh_sim_include_of(r), true, b);
    else
        bh_sim_encode_partial(tree, b);
    bh_sim_reply_raw(r, code, JSON_TYPE, b->p, b->n);
}
