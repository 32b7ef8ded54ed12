/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/verbs.c - POST, PUT, PATCH, DELETE of API objects
 *
 * Upstream: apiserver/pkg/endpoints/handlers/{create,update,patch,delete}.go
 */
#include "simulator/server/req.h"

#include "common/data/patch.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "simulator/server/pod.h"
#include <errno.h>
#include <stdio.h>

#define MANAGER_BYTES_MAX 128

/* What the record of fields will hold for good. options: "CreateOptions". */
static int check_manager(struct bh_sim_req *r, const char *options)
{
    const char *m = bh_http_query(r->http, "fieldManager");
    char why[64];
    size_t n = m ? strlen(m) : 0, at = 0;
    while (at < n && (unsigned char)m[at] >= ' ' && m[at] != 0x7f)
        at++;
    bool is_long = n > MANAGER_BYTES_MAX;
    if (!is_long && at == n)
        return 0;
    if (is_long)
        snprintf(why, sizeof(why), "may not be more than %d bytes", MANAGER_BYTES_MAX);
    else
        snprintf(why, sizeof(why), "invalid character U+%04X (at position %zu)",
                 (unsigned char)m[at], at);
    const char *what = is_long ? "Too long" : "Invalid value";
    bh_sim_field_error(&r->e, "fieldManager", what, NULL, "%s", why);
    return bh_sim_fail(&r->e, 422, "Invalid",
                       "%s.meta.k8s.io \"\" is invalid: fieldManager: %s: %s", options, what, why);
}

static const struct bh_apply_op *op_of(struct bh_sim_req *r)
{
    char now[32], api_version[80];
    const char *manager = bh_http_query(r->http, "fieldManager");
    if (!manager || !*manager) {
        const char *agent = bh_http_header(r->http, "User-Agent");
        size_t n = agent ? strcspn(agent, "/ ") : 0;
        manager =
            agent ? bh_arena_strndup(r->a, agent, BH_MIN(n, (size_t)MANAGER_BYTES_MAX)) : "unknown";
    }
    struct bh_apply_op *op = bh_arena_new(r->a, struct bh_apply_op);
    bh_time_format_ns(now, bh_sim_now_ns(r->sim));
    bh_sim_type_api_version(r->type, api_version);
    op->kind = r->type->custom ? "" : r->type->kind; /* lists of custom resources are atomic */
    op->api_version = bh_arena_strdup(r->a, api_version);
    op->manager = manager;
    op->subresource = r->sub;
    op->time = bh_arena_strdup(r->a, now);
    op->force = bh_sim_query_bool(r, "force", false);
    return op;
}

/* Ownership of fields is recorded for writers that name themselves (kubectl always does) and for
 * objects that have a record already. All others' writes, the bulk of a benchmark, stay small; what
 * they own is "before-first-apply" when a client applies over it.
 * old: tree of the present object, NULL when it does not exist or was not parsed. */
static struct bh_sim_wopt options_of(struct bh_sim_req *r, const struct bh_json *old)
{
    const char *manager = bh_http_query(r->http, "fieldManager");
    bool recorded = (manager && *manager) || bh_json_path(old, "metadata.managedFields");
    return (struct bh_sim_wopt){
        .dry_run = bh_sim_dry_run(r),
        .track = recorded && (!r->type->stored_as || r->type->custom) ? op_of(r) : NULL,
        .warnings = &r->warnings,
        .old = old,
        .as = r->type,
        .user = r->user};
}

static void finish(struct bh_sim_req *r, int code, struct bh_sim_obj *o)
{
    if (o)
        bh_sim_reply_obj(r, code, o);
    bh_sim_obj_unref(o);
}

static void reply_success(struct bh_sim_req *r, int code)
{
    static const char text[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                               "\"status\":\"Success\",\"code\":201}\n";
    if (code == 201 && r->format == BH_SIM_FMT_JSON && !bh_http_query(r->http, "pretty")) {
        bh_sim_reply_raw(r, code, "application/json", text, sizeof(text) - 1);
        return;
    }
    struct bh_sim_error ok;
    bh_sim_error_init(&ok);
    ok.code = code;
    bh_sim_reply_tree(r, code, bh_sim_status_tree(r->a, &ok), &k8s__status__descriptor);
}

/* ---- POST ------------------------------------------------------------------------------------ */

/* Binding and Eviction: the answer is a Status. t: what the body is, NULL = no type of ours. */
static void post_about_pod(struct bh_sim_req *r, const struct bh_sim_type *t,
                           const ProtobufCMessageDescriptor *desc, bh_sim_pod_fn *act)
{
    struct bh_json *v;
    if (bh_sim_negotiate(r, false) || bh_sim_need_body(r, t, desc, &v) ||
        (t && bh_sim_check_schema(r, v)))
        return;
    const struct bh_json *meta = bh_json_get(v, "metadata");
    const char *name = *r->name ? r->name : bh_json_get_text(meta, "name");
    const char *ns = bh_json_get_text(meta, "namespace");
    if (*ns && !bh_streq(ns, r->ns))
        bh_sim_fail(&r->e, 400, "BadRequest",
                    "the namespace of the provided object does not match the namespace sent on the "
                    "request");
    else if (!*name)
        bh_sim_fail(&r->e, 400, "BadRequest", "Name parameter required.");
    bool dry_run = bh_sim_dry_run(r);
    if (!r->e.code)
        act(r->sim, r->ns, name, v, dry_run, &r->e);
    if (!r->e.code)
        reply_success(r, 201);
}

static void post_object(struct bh_sim_req *r)
{
    struct bh_json *v;
    struct bh_sim_obj *o = NULL;
    const struct bh_sim_type *stored = bh_sim_type_stored(r->type);
    r->verb = "create";
    if (r->type->custom && r->type->custom->terminating)
        bh_sim_fail(&r->e, 405, "MethodNotAllowed",
                    "create not allowed while custom resource definition is terminating");
    if (r->e.code || bh_sim_negotiate(r, true) || check_manager(r, "CreateOptions") ||
        bh_sim_need_body(r, r->type, r->type->pb, &v) || bh_sim_check_schema(r, v))
        return;
    struct bh_sim_wopt w = options_of(r, NULL);
    bh_sim_convert_in(r->a, r->type, v);
    if (!r->e.code)
        bh_sim_do_create(r->sim, stored, r->ns, r->a, v, &w, &o, &r->e);
    if (o && stored != r->type && r->format == BH_SIM_FMT_JSON) {
        /* What was stored is at hand as a tree: no need to read it back for the other form. */
        bh_sim_convert_out(r->a, r->type, v);
        bh_sim_reply_tree(r, 201, v, r->type->pb);
        bh_sim_obj_unref(o);
        return;
    }
    finish(r, 201, o);
}

void bh_sim_do_post(struct bh_sim_req *r)
{
    bool pod = (r->type->flags & BH_SIM_GRACEFUL) != 0;
    if (bh_streq(r->type->plural, "bindings") || (pod && bh_streq(r->sub, "binding"))) {
        r->verb = "bind";
        r->type = bh_sim_type_find("", "v1", "bindings");
        post_about_pod(r, r->type, r->type->pb, bh_sim_pod_bind);
    } else if (pod && bh_streq(r->sub, "eviction")) {
        r->verb = "evict";
        post_about_pod(r, NULL, &k8s__eviction__descriptor, bh_sim_pod_evict);
    } else if (r->type->flags & BH_SIM_REVIEW) {
        bh_sim_do_review(r);
    } else if (*r->name || *r->sub || ((r->type->flags & BH_SIM_NAMESPACED) && !*r->ns)) {
        bh_sim_fail(&r->e, 405, "MethodNotAllowed",
                    "the server does not allow this method on the requested resource");
    } else {
        post_object(r);
    }
}

/* ---- PUT ------------------------------------------------------------------------------------- */

static enum bh_sim_sub sub_of(const struct bh_sim_req *r)
{
    if (bh_streq(r->sub, "resize"))
        return BH_SIM_RESIZE;
    if (bh_streq(r->sub, "ephemeralcontainers"))
        return BH_SIM_EPHEMERAL;
    return bh_streq(r->sub, "status") ? BH_SIM_STATUS : BH_SIM_MAIN;
}

static bool set_finalizers(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    const struct bh_json *l = arg;
    struct bh_json *spec = bh_json_obj_at(a, obj, "spec");
    if (l)
        bh_json_set(a, spec, "finalizers", bh_json_clone(a, l));
    else
        bh_json_unset(spec, "finalizers");
    return true;
}

void bh_sim_do_put(struct bh_sim_req *r)
{
    struct bh_json *v;
    struct bh_sim_obj *o = NULL;
    r->verb = "update";
    if (bh_sim_negotiate(r, true) || check_manager(r, "UpdateOptions") ||
        bh_sim_need_body(r, r->type, r->type->pb, &v) || bh_sim_check_schema(r, v))
        return;
    if (bh_streq(r->sub, "finalize")) {
        bh_sim_edit(r->sim, r->type, "", r->name, NULL, BH_SIM_WHOLE, set_finalizers,
                    bh_json_path(v, "spec.finalizers"), &o, &r->e);
        finish(r, 200, o);
        return;
    }
    const struct bh_sim_obj *cur = bh_sim_get(r->sim, r->type, r->ns, r->name);
    struct bh_sim_wopt w = options_of(r, cur ? bh_sim_obj_tree(r->a, cur) : NULL);
    w.reordered = true;
    bh_sim_convert_in(r->a, r->type, v);
    if (!r->e.code)
        bh_sim_do_update(r->sim, bh_sim_type_stored(r->type), r->ns, r->name, sub_of(r), r->a, v,
                         &w, &o, &r->e);
    finish(r, 200, o);
}

/* ---- PATCH ----------------------------------------------------------------------------------- */

static int patch_failed(struct bh_sim_req *r, int rc, const char *why)
{
    switch (rc) {
    case -ENOTSUP:
        return bh_sim_fail(&r->e, 415, "UnsupportedMediaType",
                           "the body of the request was in an unknown format: %s", why);
    case -E2BIG:
        return bh_sim_fail(&r->e, 413, "RequestEntityTooLarge", "the patch is too large: %s", why);
    case -ENOENT:
    case -EBADMSG:
        return bh_sim_fail(&r->e, 422, "Invalid",
                           "the server rejected our request due to an error in our request: %s",
                           why);
    default:
        return bh_sim_fail(&r->e, 400, "BadRequest", "error applying the patch: %s", why);
    }
}

enum patch_kind { PATCH_UNKNOWN = -1, PATCH_JSON, PATCH_MERGE, PATCH_STRATEGIC, PATCH_APPLY };

static enum patch_kind kind_of_patch(const struct bh_sim_req *r)
{
    char type[96];
    bh_sim_content_type(r, type);
    return (enum patch_kind)bh_word_at(
        "application/json-patch+json application/merge-patch+json "
        "application/strategic-merge-patch+json application/apply-patch+yaml",
        type);
}

#define PATCH_BYTES_MAX ((size_t)256 << 20) /* JSON patch `copy` can multiply a document */

int bh_sim_patch(struct bh_sim_req *r, const char *kind, const struct bh_json *doc,
                 struct bh_json **ret)
{
    struct bh_json *patch;
    struct bh_err err = {{0}};
    enum patch_kind k = kind_of_patch(r);
    if (k == PATCH_UNKNOWN ||
        (k == PATCH_STRATEGIC && r->type->custom && bh_streq(kind, r->type->kind)))
        return bh_sim_fail(&r->e, 415, "UnsupportedMediaType",
                           "the body of the request was in an unknown format - accepted media "
                           "types include: application/json-patch+json, "
                           "application/merge-patch+json, %sapplication/apply-patch+yaml",
                           r->type->custom ? "" : "application/strategic-merge-patch+json, ");
    if (bh_sim_body_text(r, k == PATCH_APPLY, &patch))
        return r->e.code;
    int rc;
    r->a->limit_bytes = r->a->used_bytes + PATCH_BYTES_MAX;
    if (k == PATCH_JSON)
        rc = bh_patch_json(r->a, doc, patch, ret, &err);
    else if (k == PATCH_MERGE)
        rc = bh_patch_merge(r->a, doc, patch, ret, &err);
    else
        rc = bh_patch_strategic(r->a, kind, doc, patch, ret, &err);
    r->a->limit_bytes = 0;
    return rc < 0 ? patch_failed(r, rc, err.msg) : 0;
}

static int apply_options(struct bh_sim_req *r)
{
    const char *manager = bh_http_query(r->http, "fieldManager");
    if (manager && *manager)
        return 0;
    bh_sim_field_error(&r->e, "fieldManager", "Required value", NULL,
                       "is required for apply patch");
    return bh_sim_fail(&r->e, 422, "Invalid",
                       "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is "
                       "required for apply patch");
}

static int apply_refused(struct bh_sim_req *r, int rc, const struct bh_json *conflicts,
                         const char *why)
{
    if (rc != -EBUSY)
        return patch_failed(r, rc, why);
    bh_json_each(c, bh_json_get(conflicts, "causes")) {
        bh_sim_error_cause(&r->e, "FieldManagerConflict", bh_json_get_text(c, "field"),
                           bh_json_get_text(c, "message"));
    }
    const char *message = bh_json_get_str(conflicts, "message");
    return bh_sim_fail(&r->e, 409, "Conflict", "%s", message ? message : why);
}

/* Server-side apply; cur NULL: the object is created. */
static void apply_object(struct bh_sim_req *r, const struct bh_sim_obj *cur)
{
    const struct bh_sim_type *stored = bh_sim_type_stored(r->type);
    struct bh_json *config, *v, *conflicts = NULL, *old = NULL, *live = NULL;
    struct bh_sim_obj *o = NULL;
    struct bh_err err = {{0}};
    if (bh_sim_body_text(r, true, &config) || bh_sim_check_schema(r, config))
        return;
    /* What this path does not write it does not own either. */
    bool keeps = !(r->type->flags & BH_SIM_HAS_STATUS) || r->type->flags & BH_SIM_KEEP_STATUS;
    if (!keeps && (!*r->sub || bh_streq(r->sub, "status")))
        bh_json_unset(config, *r->sub ? "spec" : "status");
    if (cur) {
        old = bh_sim_obj_tree(r->a, cur);
        live = bh_json_clone(r->a, old);
        bh_sim_convert_out(r->a, r->type, live);
    }
    int rc = bh_apply_ssa(r->a, op_of(r), live, config, &v, &conflicts, &err);
    if (rc < 0) {
        apply_refused(r, rc, conflicts, err.msg);
        return;
    }
    if (bh_sim_check_shape(r, v)) /* the managers have put it together */
        return;
    struct bh_sim_wopt w = {.dry_run = bh_sim_dry_run(r),
                            .warnings = &r->warnings,
                            .old = old,
                            .as = r->type,
                            .user = r->user,
                            .reordered = true};
    bh_json_set_str(r->a, bh_json_obj_at(r->a, v, "metadata"), "name", r->name);
    bh_sim_convert_in(r->a, r->type, v);
    if (!r->e.code && cur)
        bh_sim_do_update(r->sim, stored, r->ns, r->name, sub_of(r), r->a, v, &w, &o, &r->e);
    else if (!r->e.code)
        bh_sim_do_create(r->sim, stored, r->ns, r->a, v, &w, &o, &r->e);
    finish(r, cur ? 200 : 201, o);
}

/* What a patch has made cannot be decoded: the error is about the patch. */
static void blame_patch(struct bh_sim_req *r, const struct bh_json *v, const char *why)
{
    struct bh_buf text = {0}, quoted = {0};

    bh_json_write(&text, v);
    bh_buf_add_json_str(&quoted, text.p, text.n);
    r->e = (struct bh_sim_error){0};
    bh_sim_field_error(&r->e, "patch", "Invalid value", bh_buf_str(&quoted), "%s", why);
    bh_sim_fail(&r->e, 422, "Invalid", " \"\" is invalid: patch: Invalid value: %s: %s",
                bh_buf_str(&quoted), why);
    bh_buf_fini(&text);
    bh_buf_fini(&quoted);
}

/* Whether v, which a patch has made of an object of r's type, is one still. */
static bool is_decodable(struct bh_sim_req *r, struct bh_json *v)
{
    const char *version = bh_json_get_text(v, "apiVersion"), *kind = bh_json_get_text(v, "kind");
    char own[80];

    bh_sim_type_api_version(r->type, own);
    if (!bh_streq(version, own))
        blame_patch(r, v,
                    bh_arena_printf(r->a,
                                    "no kind \"%s\" is registered for version \"%s\" in scheme "
                                    "\"pkg/api/legacyscheme/scheme.go:30\"",
                                    kind, version));
    else if (!bh_streq(kind, r->type->kind))
        blame_patch(r, v,
                    bh_arena_printf(r->a, "converting (%s.%s) to (%s.%s): unknown conversion",
                                    r->type->version, kind,
                                    *r->type->group ? r->type->group : "core", r->type->kind));
    else if (bh_sim_check_schema(r, v) == 400) {
        const char *why = strstr(r->e.message, " cannot be handled as a ");
        why = why ? strstr(why, ": ") : NULL;
        if (why)
            blame_patch(r, v, bh_arena_printf(r->a, "%s", why + 2));
    }
    return !r->e.code;
}

void bh_sim_do_patch(struct bh_sim_req *r)
{
    enum patch_kind k = kind_of_patch(r);
    const struct bh_sim_obj *cur = bh_sim_get(r->sim, r->type, r->ns, r->name);
    r->verb = k == PATCH_APPLY ? "apply" : "patch";
    if (bh_sim_negotiate(r, true) || (k == PATCH_APPLY && apply_options(r)) ||
        check_manager(r, "PatchOptions"))
        return;
    if (k == PATCH_APPLY && (cur || !*r->sub)) {
        apply_object(r, cur);
    } else if (cur) {
        const struct bh_sim_type *stored = bh_sim_type_stored(r->type);
        struct bh_json *v = NULL, *doc = bh_sim_obj_tree(r->a, cur);
        struct bh_sim_obj *o = NULL;
        struct bh_sim_wopt w = options_of(r, doc);
        if (r->type->stored_as) {
            doc = bh_json_clone(r->a, doc);
            bh_sim_convert_out(r->a, r->type, doc);
        }
        if (!r->e.code && !bh_sim_patch(r, r->type->kind, doc, &v) && is_decodable(r, v)) {
            bh_sim_convert_in(r->a, r->type, v);
            bh_sim_do_update(r->sim, stored, r->ns, r->name, sub_of(r), r->a, v, &w, &o, &r->e);
        }
        finish(r, 200, o);
    } else {
        bh_sim_not_found(&r->e, r->type, r->name);
    }
}

/* ---- DELETE ---------------------------------------------------------------------------------- */

static int delete_options(struct bh_sim_req *r, struct bh_sim_delete_options *o, bool *ret_dry_run)
{
    struct bh_json *v;
    uint64_t grace;
    const char *q = bh_http_query(r->http, "gracePeriodSeconds");
    *o = (struct bh_sim_delete_options){.grace_s = -1};
    /* Who says nothing keeps a replication controller's pods, as ever (its strategy upstream). */
    if (r->type == BH_SIM_TYPE("", "v1", "replicationcontrollers"))
        o->propagation = "Orphan";
    if (bh_sim_body(r, NULL, &k8s__delete_options__descriptor, &v))
        return r->e.code;
    if (q && bh_sim_parse_rv(r, q, &grace))
        return bh_sim_fail(&r->e, 400, "BadRequest", "gracePeriodSeconds: not a number");
    if (q)
        o->grace_s = (int64_t)BH_MIN(grace, (uint64_t)1 << 32);
    q = bh_http_query(r->http, "propagationPolicy");
    if (q)
        o->propagation = q;
    bh_sim_delete_options_read(v, o);
    *ret_dry_run = bh_sim_dry_run(r) || bh_json_at(bh_json_get(v, "dryRun"), 0);
    if (o->propagation && *o->propagation && !bh_streq(o->propagation, "Background") &&
        !bh_streq(o->propagation, "Foreground") && !bh_streq(o->propagation, "Orphan"))
        return bh_sim_fail(&r->e, 422, "Invalid",
                           "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid "
                           "value: \"%.40s\": supported values: \"Foreground\", \"Background\", "
                           "\"Orphan\"",
                           o->propagation);
    return r->e.code;
}

static void reply_deleted(struct bh_sim_req *r, const struct bh_sim_obj *o)
{
    struct bh_sim_error ok = {.code = 200};
    bh_sim_error_about(&ok, r->type, r->type->plural, o->name);
    snprintf(ok.details_uid, sizeof(ok.details_uid), "%s", o->uid);
    struct bh_json *v = bh_sim_status_tree(r->a, &ok);
    bh_json_unset(v, "code"); /* as upstream's */
    bh_sim_reply_tree(r, 200, v, &k8s__status__descriptor);
}

static void delete_all(struct bh_sim_req *r, const struct bh_sim_delete_options *o, bool dry_run)
{
    struct bh_sim_filter f;
    struct bh_sim_objs l;
    if (bh_sim_filter_init(r, &f))
        return;
    bh_sim_list(r->sim, bh_sim_type_stored(r->type), f.ns, &l);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_sim_error e = {0};
        if (bh_sim_filter_match(&f, l.v[i]) &&
            bh_sim_do_delete(r->sim, l.v[i]->type, l.v[i]->ns, l.v[i]->name, o, dry_run, NULL, NULL,
                             &e) &&
            e.code != 404 && !r->e.code)
            r->e = e;
    }
    bh_sim_objs_fini(&l);
    bh_sim_filter_fini(&f);
    if (!r->e.code)
        reply_success(r, 200);
}

void bh_sim_do_remove(struct bh_sim_req *r)
{
    struct bh_sim_delete_options o;
    bool dry_run = false, gone = false;
    struct bh_sim_obj *obj = NULL;
    r->verb = *r->name ? "delete" : "deletecollection";
    if (bh_sim_negotiate(r, true) || delete_options(r, &o, &dry_run))
        return;
    if (!*r->name) {
        delete_all(r, &o, dry_run);
        return;
    }
    bh_sim_do_delete(r->sim, bh_sim_type_stored(r->type), r->ns, r->name, &o, dry_run, &gone, &obj,
                     &r->e);
    if (obj && (!gone || (r->type->flags & BH_SIM_RETURN_DELETED)))
        bh_sim_reply_obj(r, 200, obj);
    else if (obj)
        reply_deleted(r, obj);
    bh_sim_obj_unref(obj);
}
