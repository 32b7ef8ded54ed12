/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/negotiate.c - media types: how a client wants its answer, what it sent
 *
 * protobuf answers hold only the fields of proto/kubernetes, which is a projection of the API. So
 * a client that takes JSON too is answered in JSON, unless it says that it knows (header
 * `Berth-Projection: scheduling`): no Go client ever loses fields in a read-modify-write.
 * Upstream: apiserver/pkg/endpoints/handlers/negotiation; differences: q values are ignored (no
 *           known client sends them), first match wins.
 */
#include "simulator/server/req.h"

#include "common/data/apply.h"
#include "common/data/yaml.h"
#include "proto/kubernetes/apiextensions.pb-c.h"
#include "simulator/crd/crd.h"
#include <stdio.h>

#define PB_TYPE        "application/vnd.kubernetes.protobuf"
#define YAML_TYPE      "application/yaml"
#define TREE_BYTES_MAX ((size_t)256 << 20) /* what one body may grow to */

static bool str_has(struct bh_str s, const char *needle)
{
    return memmem(s.p, s.n, needle, strlen(needle)) != NULL;
}

static struct bh_str trim(struct bh_str s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static bool has_version(struct bh_str media, const char *version)
{
    const char *at = memmem(media.p, media.n, version, strlen(version));

    return at && (at + strlen(version) == media.p + media.n || at[strlen(version)] == ';');
}

static int choose(struct bh_sim_req *r, const char *accept, bool tables)
{
    const char *projection = bh_http_header(r->http, "Berth-Projection");
    bool wants_pb = projection && bh_streq(projection, "scheduling");
    bool pb_possible = !r->type || r->type->pb, saw_pb = false;
    bool stream = r->verb && bh_streq(r->verb, "watch");
    for (const char *p = accept; *p;) {
        const char *comma = strchrnul(p, ',');
        struct bh_str s = trim((struct bh_str){p, (size_t)(comma - p)});
        const char *semi = memchr(s.p, ';', s.n);
        struct bh_str media = trim((struct bh_str){s.p, semi ? (size_t)(semi - s.p) : s.n});
        bool json = bh_str_eqc(media, "application/json") || bh_str_eqc(media, "*/*") ||
                    bh_str_eqc(media, "application/*");
        bool yaml = bh_str_eqc(media, YAML_TYPE) || bh_str_eqc(media, "application/x-yaml");
        bool pb = bh_str_eqc(media, PB_TYPE);
        p = *comma ? comma + 1 : comma;
        if (str_has(s, "as=")) {
            if (json && tables && str_has(s, "as=PartialObjectMetadata"))
                return BH_SIM_FMT_PARTIAL;
            r->old_table = !stream && has_version(s, "v=v1beta1");
            if (json && tables && str_has(s, "as=Table") &&
                (r->old_table || has_version(s, "v=v1")))
                return BH_SIM_FMT_TABLE;
            continue;
        }
        if (pb && pb_possible && wants_pb)
            return BH_SIM_FMT_PB;
        if (json)
            return BH_SIM_FMT_JSON;
        if (yaml && !stream)
            return BH_SIM_FMT_YAML;
        saw_pb |= pb;
    }
    return saw_pb && pb_possible ? BH_SIM_FMT_PB : -1;
}

int bh_sim_negotiate(struct bh_sim_req *r, bool tables)
{
    const char *accept = bh_http_header(r->http, "Accept");
    int f = accept && *accept ? choose(r, accept, tables) : BH_SIM_FMT_JSON;
    if (f < 0)
        return bh_sim_fail(
            &r->e, 406, "NotAcceptable",
            "only the following media types are accepted: application/json, " YAML_TYPE "%s",
            r->type && r->type->pb ? ", " PB_TYPE : "");
    r->format = (enum bh_sim_format)f;
    return 0;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

void bh_sim_content_type(const struct bh_sim_req *r, char out[static 96])
{
    const char *v = bh_http_header(r->http, "Content-Type");
    size_t n = v ? strcspn(v, ";") : 0;
    struct bh_str s = trim((struct bh_str){v, n});
    n = BH_MIN(s.n, (size_t)95);
    if (n)
        memcpy(out, s.p, n);
    out[n] = '\0';
}

/* Members are looked up one by one, and field management does it for each: a label list of a
 * hundred thousand would keep the only thread busy for a minute. A real API server's limit is in
 * bytes. */
#define MEMBERS_MAX 16384
/* A body has 3 MiB at most, what patches and managers add to an object has no end; etcd takes half of
 * what a body may have. */
#define OBJECT_BYTES_MAX ((size_t)4 << 20)

struct shape {
    const struct bh_json *wide; /* has too many members; NULL: none has */
    unsigned depth;
    size_t bytes; /* of its text at least */
};

static void measure(struct shape *s, const struct bh_json *v, unsigned depth)
{
    s->bytes += v->key.n;
    if (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER)
        s->bytes += v->s.n;
    if (v->type < BH_JSON_ARRAY)
        return;
    s->bytes += v->c.n;
    s->depth = BH_MAX(s->depth, depth);
    if (!s->wide && v->c.n > MEMBERS_MAX)
        s->wide = v;
    bh_json_each(e, v)
        measure(s, e, depth + 1);
}

/* What is stored is read again, also out of other documents: it must not be as deep as can be read. */
int bh_sim_check_shape(struct bh_sim_req *r, const struct bh_json *v)
{
    struct shape s = {0};
    measure(&s, v, 1);
    if (s.depth > BH_APPLY_MAX_DEPTH)
        return bh_sim_fail(&r->e, 413, "RequestEntityTooLarge",
                           "Request entity too large: it is nested deeper than %d levels",
                           BH_APPLY_MAX_DEPTH);
    if (s.bytes > OBJECT_BYTES_MAX)
        return bh_sim_fail(&r->e, 413, "RequestEntityTooLarge",
                           "Request entity too large: the object has more than %zu bytes",
                           OBJECT_BYTES_MAX);
    return s.wide ? bh_sim_fail(&r->e, 413, "RequestEntityTooLarge",
                                "Request entity too large: \"%.64s\" has %zu members, at most %d "
                                "are possible",
                                s.wide->key.p ? s.wide->key.p : "", s.wide->c.n, MEMBERS_MAX)
                  : 0;
}

static int bad_body(struct bh_sim_req *r, const char *why)
{
    return bh_sim_fail(&r->e, 400, "BadRequest", "error decoding the request body: %s", why);
}

enum validation { IGNORE, WARN, STRICT };

/* ?fieldValidation=; a client that does not say gets warnings. */
static int validation_of(struct bh_sim_req *r, enum validation *ret)
{
    const char *v = bh_http_query(r->http, "fieldValidation");
    int at = v && *v ? bh_word_at("Ignore Warn Strict", v) : WARN;
    *ret = (enum validation)at;
    if (at >= 0)
        return 0;
    static const char text[] = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
    const char *shown = bh_arena_printf(r->a, "\"%.40s\"", v);
    const char *options = bh_streq(r->method, "POST")  ? "CreateOptions"
                          : bh_streq(r->method, "PUT") ? "UpdateOptions"
                                                       : "PatchOptions";
    bh_sim_field_error(&r->e, "fieldValidation", "Unsupported value", shown, "%s", text);
    return bh_sim_fail(&r->e, 422, "Invalid",
                       "%s.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: %s: %s",
                       options, shown, text);
}

/* Unknown and repeated members: an error, warnings, or nothing. */
static int judge(struct bh_sim_req *r, enum validation how, const char *who,
                 const struct bh_oas_report *rep)
{
    struct bh_buf all = {0};
    if (!rep->n || how == IGNORE)
        return 0;
    if (how == WARN) {
        bh_buf_add(&r->warnings, rep->unknown.p, rep->unknown.n);
        return 0;
    }
    for (const char *p = rep->unknown.p; *p;) {
        size_t n = strcspn(p, "\n");
        bh_buf_addf(&all, "%s%.*s", all.n ? ", " : "", (int)n, p);
        p += n + (p[n] == '\n');
    }
    bh_sim_fail(&r->e, 400, "BadRequest", "%sstrict decoding error: %s", who, all.p);
    bh_buf_fini(&all);
    return r->e.code;
}

static int parse_as(struct bh_sim_req *r, bool yaml, unsigned flags, struct bh_json **ret_v,
                    struct bh_err *err)
{
    struct bh_str body = bh_http_body(r->http);
    r->a->limit_bytes = r->a->used_bytes + TREE_BYTES_MAX;
    int rc = yaml ? bh_yaml_parse(r->a, body.p, body.n, flags | BH_JSON_NUL, ret_v, err)
                  : bh_json_parse(r->a, body.p, body.n, flags | BH_JSON_NUL, ret_v, err);
    r->a->limit_bytes = 0;
    return rc;
}

static void name_kind(const struct bh_sim_req *r, char out[static 400])
{
    snprintf(out, 400, "%s in version \"%s\" cannot be handled as a %s", r->type->kind,
             r->type->version, r->type->kind);
}

/* A body with repeated members is refused before it is checked: what its kind does not have is told
 * along, and first. who: "" if it is not of the request's kind. */
static void add_unknown(struct bh_sim_req *r, bool yaml, struct bh_oas_report *rep,
                        char who[static 410])
{
    const struct bh_oas_type *t = r->type && !*r->sub ? bh_oas_root(r->type) : NULL;
    struct bh_oas_report own = {0};
    struct bh_err err = {{0}};
    struct bh_json *v;
    if (!t || parse_as(r, yaml, 0, &v, &err) < 0 ||
        !bh_streq(bh_json_get_text(v, "kind"), r->type->kind))
        return;
    char kind[400];
    name_kind(r, kind);
    snprintf(who, 410, "%s: ", kind);
    bh_oas_check(t, v, NULL, &own);
    bh_buf_add(&own.unknown, rep->unknown.p, rep->unknown.n);
    own.n += rep->n;
    bh_buf_fini(&rep->unknown);
    *rep = own;
}

/* The reader stops at the first member that stands twice. So when it does, the text is read again
 * for all of them, with their paths, and once more for the last of each, which are the ones that
 * count. */
static int parse_text(struct bh_sim_req *r, bool yaml, struct bh_json **ret_v)
{
    enum validation how;
    struct bh_err err = {{0}};
    struct bh_oas_report rep = {0};
    if (validation_of(r, &how))
        return r->e.code;
    int rc = parse_as(r, yaml, how == IGNORE ? 0 : BH_JSON_STRICT, ret_v, &err);
    if (rc < 0 && how != IGNORE && strstr(err.msg, "duplicate field") &&
        parse_as(r, yaml, BH_JSON_REPEATS, ret_v, &err) == 0) {
        char who[410] = "";
        bh_oas_repeats(*ret_v, &rep);
        if (how == STRICT)
            add_unknown(r, yaml, &rep, who);
        judge(r, how, who, &rep);
        bh_buf_fini(&rep.unknown);
        rc = r->e.code ? 0 : parse_as(r, yaml, 0, ret_v, &err);
    }
    if (r->e.code)
        return r->e.code;
    return rc < 0 ? bad_body(r, err.msg) : bh_sim_check_shape(r, *ret_v);
}

int bh_sim_body_text(struct bh_sim_req *r, bool yaml, struct bh_json **ret_v)
{
    if (!bh_http_body(r->http).n)
        return bad_body(r, "it is empty");
    return parse_text(r, yaml, ret_v);
}

static int check_kind(struct bh_sim_req *r, const struct bh_sim_type *t, const char *api_version,
                      const char *kind)
{
    char want[80];
    bh_sim_type_api_version(t, want);
    if (*kind && !bh_streq(kind, t->kind))
        return bh_sim_fail(&r->e, 400, "BadRequest",
                           "%s in version \"%s\" cannot be handled as a %s", kind, api_version,
                           t->kind);
    if (*api_version && !bh_streq(api_version, want))
        return bh_sim_fail(&r->e, 400, "BadRequest",
                           "the API version in the data (%s) does not match the expected API "
                           "version (%s)",
                           api_version, want);
    return 0;
}

static int parse_pb(struct bh_sim_req *r, const struct bh_sim_type *t,
                    const ProtobufCMessageDescriptor *desc, struct bh_json **ret_v)
{
    struct bh_str body = bh_http_body(r->http);
    struct bh_envelope env;
    struct bh_err err = {{0}};
    ProtobufCMessage *m;
    /* Schemas contain themselves: what protobuf-c would read has no bound on its depth. */
    bool crd = !desc && t && t->flags & BH_SIM_DEFINES;
    if (crd)
        desc = &k8s__custom_resource_definition__descriptor;
    if (!desc)
        return bh_sim_fail(&r->e, 415, "UnsupportedMediaType",
                           "the body of the request was in an unknown format - accepted media "
                           "types include: application/json, application/yaml");
    if (bh_envelope_open(body.p, body.n, &env, &err) < 0)
        return bad_body(r, err.msg);
    char *api_version = bh_arena_strndup(r->a, env.api_version.p, env.api_version.n);
    char *kind = bh_arena_strndup(r->a, env.kind.p, env.kind.n);
    if (t && check_kind(r, t, api_version, kind))
        return r->e.code;
    r->a->limit_bytes = r->a->used_bytes + TREE_BYTES_MAX;
    int rc = 0;
    if (!crd)
        rc = bh_pb_unpack(r->a, desc, env.raw.p, env.raw.n, &m, &err);
    else if (!(m = bh_pb_unpack_fast(r->a, desc, env.raw.p, env.raw.n)))
        rc = bh_err_set(&err, -EINVAL, "no CustomResourceDefinition in protobuf, or too deep");
    *ret_v = rc < 0 ? NULL : bh_pb_to_json(r->a, m);
    if (crd && *ret_v)
        bh_crd_from_pb(r->a, *ret_v);
    r->a->limit_bytes = 0;
    return *ret_v ? bh_sim_check_shape(r, *ret_v)
                  : bad_body(r, rc < 0 ? err.msg : "it is too large");
}

int bh_sim_body(struct bh_sim_req *r, const struct bh_sim_type *t,
                const ProtobufCMessageDescriptor *desc, struct bh_json **ret_v)
{
    char type[96];
    struct bh_str body = bh_http_body(r->http);
    *ret_v = NULL;
    if (!body.n)
        return 0;
    bh_sim_content_type(r, type);
    if (bh_is_pb_envelope(body.p, body.n))
        return parse_pb(r, t, desc, ret_v);
    bool yaml = bh_streq(type, YAML_TYPE) || bh_streq(type, "application/x-yaml");
    /* A form can be sent by any web page; an API client says what it sends, or nothing. */
    if (*type && !yaml && !bh_streq(type, "application/json"))
        return bh_sim_fail(&r->e, 415, "UnsupportedMediaType",
                           "the body of the request was in an unknown format - accepted media "
                           "types include: application/json, application/yaml, " PB_TYPE);
    if (parse_text(r, yaml, ret_v))
        return r->e.code;
    if (!*ret_v || (*ret_v)->type != BH_JSON_OBJECT)
        return bad_body(r, "it is not an object");
    return t ? check_kind(r, t, bh_json_get_text(*ret_v, "apiVersion"),
                          bh_json_get_text(*ret_v, "kind"))
             : 0;
}

int bh_sim_need_body(struct bh_sim_req *r, const struct bh_sim_type *t,
                     const ProtobufCMessageDescriptor *desc, struct bh_json **ret_v)
{
    if (bh_sim_body(r, t, desc, ret_v))
        return r->e.code;
    return *ret_v ? 0 : bh_sim_fail(&r->e, 400, "BadRequest", "the request needs a body");
}

/* The type's whole schema: takes out what it does not have, names what has the wrong JSON type. */
static int check_fields(struct bh_sim_req *r, struct bh_json *obj, bool *ret_careful)
{
    enum validation how;
    struct bh_oas_report rep = {0};
    const struct bh_oas_type *t = bh_oas_root(r->type);
    char who[400], text[1024];
    if ((!t && !r->type->custom) || validation_of(r, &how))
        return r->e.code;
    if (t)
        bh_oas_check(t, obj, NULL, &rep);
    else if (bh_json_get(obj, "metadata"))
        bh_oas_check(bh_oas_find("meta.v1", "ObjectMeta"), bh_json_get(obj, "metadata"), "metadata",
                     &rep);
    if (r->type->custom)
        bh_crd_prune(r->type->custom->schema, obj, &rep);
    *ret_careful = !t || rep.careful;
    if (!rep.n && !*rep.mismatch)
        return 0;
    name_kind(r, who);
    snprintf(text, sizeof(text), "%s: ", who);
    if (*rep.mismatch)
        bh_sim_fail(&r->e, 400, "BadRequest", "%s%s", text, rep.mismatch);
    judge(r, how, text, &rep);
    bh_buf_fini(&rep.unknown);
    return r->e.code;
}

int bh_sim_check_schema(struct bh_sim_req *r, struct bh_json *obj)
{
    struct bh_err err = {{0}};
    char who[400];
    if (bh_sim_check_shape(r, obj)) /* a patch may have put together what neither part was */
        return r->e.code;
    bool careful = true;
    if (check_fields(r, obj, &careful) || !r->type->pb || !careful)
        return r->e.code;
    bh_buf_reset(&r->sim->wire);
    if (bh_json_to_wire(r->type->pb, obj, &r->sim->wire, &err) == 0)
        return 0;
    name_kind(r, who);
    return bh_sim_fail(&r->e, 400, "BadRequest", "%s: %s", who, err.msg);
}

/* ---- query ----------------------------------------------------------------------------------- */

bool bh_sim_query_bool(const struct bh_sim_req *r, const char *name, bool dflt)
{
    const char *v = bh_http_query(r->http, name);
    if (!v)
        return dflt;
    return *v == 0 || bh_streq(v, "true") || bh_streq(v, "1") || bh_streq(v, "True");
}

bool bh_sim_dry_run(struct bh_sim_req *r)
{
    const char *v = bh_http_query(r->http, "dryRun");
    if (!v || !*v)
        return false;
    if (bh_streq(v, "All"))
        return true;
    bh_sim_fail(&r->e, 400, "BadRequest",
                "dryRun: Unsupported value: \"%s\": supported values: \"All\"", v);
    return false;
}

int bh_sim_parse_rv(struct bh_sim_req *r, const char *text, uint64_t *ret)
{
    uint64_t v = 0;
    for (const char *p = text ? text : ""; *p; p++) {
        if (*p < '0' || *p > '9' || v > UINT64_MAX / 10 - 1)
            return bh_sim_fail(&r->e, 400, "BadRequest",
                               "resourceVersion: Invalid value: \"%.40s\": not a number", text);
        v = v * 10 + (uint64_t)(*p - '0');
    }
    *ret = v;
    return 0;
}

bool bh_sim_rv_future(struct bh_sim_req *r, uint64_t rv)
{
    if (rv <= r->sim->rv)
        return false;
    if (!r->waited) {
        bh_sim_wait(r, (int64_t)500 * 1000000);
        return true;
    }
    bh_sim_error_cause(&r->e, "ResourceVersionTooLarge", "", "Too large resource version");
    r->e.retry_after_s = 1;
    bh_sim_fail(&r->e, 504, "Timeout", "Timeout: Too large resource version: %llu, current: %llu",
                (unsigned long long)rv, (unsigned long long)r->sim->rv);
    return true;
}
