/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/scale.c - the scale sub-resource of workloads (autoscaling/v1 Scale)
 *
 * Upstream: pkg/registry/apps/deployment/storage/storage.go (ScaleREST)
 */
#include "simulator/server/req.h"

#include "proto/kubernetes/kubernetes.pb-c.h"
#include <stdio.h>

static void selector_text(const struct bh_json *sel, struct bh_buf *out)
{
    const struct bh_json *labels = bh_json_get(sel, "matchLabels");
    if (!labels && !bh_json_get(sel, "matchExpressions"))
        labels = sel; /* a replication controller's plain map */
    bh_json_each(l, labels) {
        if (l->type == BH_JSON_STRING)
            bh_buf_addf(out, "%s%s=%s", out->n ? "," : "", l->key.p, bh_json_cstr(l));
    }
    bh_json_each(x, bh_json_get(sel, "matchExpressions")) {
        const char *key = bh_json_get_str(x, "key"), *op = bh_json_get_str(x, "operator");
        if (!key || !op)
            continue;
        if (out->n)
            bh_buf_addc(out, ',');
        if (bh_streq(op, "Exists") || bh_streq(op, "DoesNotExist")) {
            bh_buf_addf(out, "%s%s", bh_streq(op, "Exists") ? "" : "!", key);
            continue;
        }
        bh_buf_addf(out, "%s %s (", key, bh_streq(op, "In") ? "in" : "notin");
        size_t i = 0;
        bh_json_each(v, bh_json_get(x, "values"))
            bh_buf_addf(out, "%s%s", i++ ? "," : "", bh_json_cstr(v) ? bh_json_cstr(v) : "");
        bh_buf_addc(out, ')');
    }
}

/* Where a kind keeps its replicas; custom resources say so themselves. */
struct paths {
    const char *spec, *status, *selector; /* dotted, without the first dot; NULL = none */
};

static struct paths paths_of(const struct bh_sim_type *t)
{
    static const char *const members[] = {"specReplicasPath", "statusReplicasPath",
                                          "labelSelectorPath"};
    const char *p[3] = {"spec.replicas", "status.replicas", NULL};
    for (size_t i = 0; t->custom && i < 3; i++) {
        const char *own = bh_json_get_str(t->custom->scale, members[i]);
        if (own && *own == '.')
            p[i] = own + 1;
    }
    return (struct paths){p[0], p[1], p[2]};
}

static int64_t number_at(const struct bh_json *v, const char *path, int64_t dflt)
{
    int64_t n;
    return bh_json_i64(bh_json_path(v, path), &n) ? n : dflt;
}

static struct bh_json *scale_of(struct bh_sim_req *r, const struct bh_sim_obj *o)
{
    static const char *const copied[] = {"name", "namespace", "uid", "resourceVersion",
                                         "creationTimestamp"};
    struct bh_arena *a = r->a;
    const struct bh_json *tree = bh_sim_obj_tree(a, o);
    const struct bh_json *meta = bh_json_get(tree, "metadata"), *spec = bh_json_get(tree, "spec");
    struct paths p = paths_of(o->type);
    struct bh_buf sel = {0};
    if (p.selector && bh_json_cstr(bh_json_path(tree, p.selector)))
        bh_buf_adds(&sel, bh_json_cstr(bh_json_path(tree, p.selector)));
    else if (!o->type->custom)
        selector_text(bh_json_get(spec, "selector"), &sel);
    struct bh_json *v = bh_json_make(
        a,
        "kind: Scale, apiVersion: autoscaling/v1, metadata: {}, spec: {replicas: %ld}, "
        "status: {replicas: %ld, selector?: %s}",
        number_at(tree, p.spec, o->type->custom ? 0 : 1), number_at(tree, p.status, 0), sel.p);
    bh_buf_fini(&sel);
    for (size_t i = 0; i < BH_ARRAY_LEN(copied); i++) {
        const struct bh_json *x = bh_json_get(meta, copied[i]);
        if (x)
            bh_json_set(a, bh_json_get(v, "metadata"), copied[i], bh_json_clone(a, x));
    }
    return v;
}

static void write_scale(struct bh_sim_req *r, const struct bh_sim_obj *o, const struct bh_json *v)
{
    const struct bh_json *replicas = bh_json_path(v, "spec.replicas");
    const char *rv = bh_json_get_str(bh_json_get(v, "metadata"), "resourceVersion");
    const char *shown = ""; /* anything can stand there */
    int64_t n = 0;
    const char *name = bh_json_get_str(bh_json_get(v, "metadata"), "name");
    if (name && *name && !bh_streq(name, o->name)) {
        bh_sim_fail(&r->e, 400, "BadRequest",
                    "the name of the object (%s) does not match the name on the URL (%s)", name,
                    o->name);
        return;
    }
    if (replicas && (replicas->type == BH_JSON_NUMBER || replicas->type == BH_JSON_STRING))
        shown = replicas->s.p;
    if (replicas && (!bh_json_i64(replicas, &n) || n < 0)) {
        bh_sim_field_error(&r->e, "spec.replicas", "Invalid value", shown,
                           "must be greater than or equal to 0");
        snprintf(r->e.details_kind, sizeof(r->e.details_kind), "Scale");
        bh_sim_fail(
            &r->e, 422, "Invalid",
            "Scale.autoscaling \"%s\" is invalid: spec.replicas: Invalid value: %s: must be "
            "greater than or equal to 0",
            o->name, shown);
        return;
    }
    struct bh_sim_wopt w = {.dry_run = bh_sim_dry_run(r), .warnings = &r->warnings};
    struct bh_json *tree = bh_sim_obj_tree(r->a, o);
    struct bh_sim_obj *now = NULL;
    struct bh_json *at = tree; /* with the objects on the way */
    const char *path = paths_of(o->type).spec;
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1)
        at = bh_json_obj_at(r->a, at, bh_arena_strndup(r->a, path, (size_t)(dot - path)));
    bh_json_set_i64(r->a, at, path, n);
    if (rv && *rv)
        bh_json_set_str(r->a, bh_json_get(tree, "metadata"), "resourceVersion", rv);
    if (!r->e.code)
        bh_sim_do_update(r->sim, o->type, r->ns, r->name, BH_SIM_MAIN, r->a, tree, &w, &now, &r->e);
    if (!r->e.code)
        bh_sim_reply_tree(r, 200, scale_of(r, now), &k8s__scale__descriptor);
    bh_sim_obj_unref(now);
}

void bh_sim_do_scale(struct bh_sim_req *r)
{
    struct bh_json *v;
    struct bh_sim_obj *o = bh_sim_get(r->sim, r->type, r->ns, r->name);
    r->verb = "scale";
    if (bh_sim_negotiate(r, false) || (!o && bh_sim_not_found(&r->e, r->type, r->name)))
        return;
    bh_sim_obj_ref(o);
    if (bh_streq(r->method, "GET")) {
        bh_sim_reply_tree(r, 200, scale_of(r, o), &k8s__scale__descriptor);
    } else if (bh_streq(r->method, "PUT")) {
        if (!bh_sim_need_body(r, NULL, &k8s__scale__descriptor, &v))
            write_scale(r, o, v);
    } else if (!bh_sim_patch(r, "Scale", scale_of(r, o), &v)) {
        write_scale(r, o, v);
    }
    bh_sim_obj_unref(o);
}
