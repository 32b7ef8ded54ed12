/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/review.c - answers that are made up: access reviews, "who am I", logs
 *
 * Upstream: pkg/registry/authorization, pkg/registry/authentication (v1.36)
 */
#include "simulator/server/req.h"
#include "simulator/server/tree.h"

#include <stdio.h>

static const struct bh_json *user_info(struct bh_arena *a, const struct bh_json *user)
{
    return user ? user : bh_sim_user_new(a, "kubernetes-admin", "", "system:masters");
}

static void token_review(struct bh_sim_req *r, const struct bh_json *spec, struct bh_json *status)
{
    struct bh_sim_caller who = {.audiences = bh_json_get_list(spec, "audiences")};
    struct bh_err err = {{0}};
    bool known = bh_sim_token_user(r->sim, r->a, bh_json_get_text(spec, "token"), &who, &err) == 0;

    bh_json_add(r->a, status, "authenticated: %i, error?: %s", known, known ? "" : err.msg);
    if (!known)
        return;
    bh_json_set(r->a, status, "user", bh_json_clone(r->a, user_info(r->a, who.user)));
    if (who.audiences)
        bh_json_set(r->a, status, "audiences", bh_json_clone(r->a, who.audiences));
}

/* The user that a review is about, when it is not its sender. */
static const struct bh_json *reviewed(struct bh_arena *a, const struct bh_json *spec)
{
    const struct bh_json *groups = bh_json_get_list(spec, "groups");
    struct bh_json *user = bh_json_make(a, "username: %s", bh_json_get_text(spec, "user"));

    bh_json_set(a, user, "groups",
                groups ? bh_json_clone(a, groups) : bh_json_new(a, BH_JSON_ARRAY));
    return user;
}

static struct bh_sim_ask ask_of(const struct bh_json *spec)
{
    const struct bh_json *of = bh_json_get(spec, "resourceAttributes");
    const struct bh_json *path = bh_json_get(spec, "nonResourceAttributes");

    if (path)
        return (struct bh_sim_ask){.verb = bh_json_get_text(path, "verb"),
                                   .path = bh_json_get_text(path, "path")};
    return (struct bh_sim_ask){.verb = bh_json_get_text(of, "verb"),
                               .group = bh_json_get_text(of, "group"),
                               .resource = bh_json_get_text(of, "resource"),
                               .sub = bh_json_get_text(of, "subresource"),
                               .ns = bh_json_get_text(of, "namespace"),
                               .name = bh_json_get_text(of, "name")};
}

static void access_review(struct bh_sim_req *r, const struct bh_json *v, struct bh_json *status)
{
    const struct bh_json *spec = bh_json_get(v, "spec");
    bool self = bh_streq(r->type->kind, "SelfSubjectAccessReview");
    bool of_path = bh_json_get(spec, "nonResourceAttributes");
    const struct bh_sim_ask ask = ask_of(spec);
    const char *why;

    if (of_path == (bh_json_get(spec, "resourceAttributes") != NULL))
        bh_sim_field_error(&r->e,
                           of_path ? "spec.nonResourceAttributes" : "spec.resourceAttributes",
                           "Invalid value", NULL, "%s",
                           of_path ? "cannot be specified in combination with resourceAttributes"
                                   : "exactly one of nonResourceAttributes or resourceAttributes "
                                     "must be specified");
    if (!self && !*bh_json_get_text(spec, "user") && !bh_tree_len(bh_json_get(spec, "groups")))
        bh_sim_field_error(&r->e, "spec.user", "Invalid value", "\"\"", "%s",
                           "at least one of user or group must be specified");
    if (*r->ns && !of_path && !bh_streq(ask.ns, r->ns))
        bh_sim_field_error(&r->e, "spec.resourceAttributes.namespace", "Invalid value",
                           bh_arena_printf(r->a, "\"%s\"", ask.ns), "%s",
                           "must match metadata.namespace");
    if (bh_sim_error_close(&r->e, r->type, ""))
        return;
    bool may = bh_sim_may(r->sim, r->a, self ? r->user : reviewed(r->a, spec), &ask, &why);
    bh_json_add(r->a, status, "allowed: %i, reason?: %s", may, why);
}

void bh_sim_do_review(struct bh_sim_req *r)
{
    char api_version[80];
    struct bh_json *v = NULL;

    r->verb = "review";
    if (bh_sim_negotiate(r, false) || bh_sim_body(r, r->type, r->type->pb, &v))
        return;
    if (!v)
        v = bh_json_new(r->a, BH_JSON_OBJECT);
    bh_sim_type_api_version(r->type, api_version);
    bh_json_add(r->a, v, "kind: %s, apiVersion: %s", r->type->kind, api_version);
    struct bh_json *st = bh_json_set(r->a, v, "status", bh_json_new(r->a, BH_JSON_OBJECT));
    if (bh_streq(r->type->kind, "SelfSubjectReview"))
        bh_json_set(r->a, st, "userInfo", bh_json_clone(r->a, user_info(r->a, r->user)));
    else if (bh_streq(r->type->kind, "TokenReview"))
        token_review(r, bh_json_get(v, "spec"), st);
    else if (bh_streq(r->type->kind, "SelfSubjectRulesReview"))
        bh_json_set(r->a, v, "status",
                    bh_sim_rules_of(r->sim, r->a, user_info(r->a, r->user),
                                    bh_json_get_text(bh_json_get(v, "spec"), "namespace")));
    else
        access_review(r, v, st);
    if (!r->e.code)
        bh_sim_reply_tree(r, 201, v, r->type->pb);
}

void bh_sim_do_log(struct bh_sim_req *r)
{
    char text[700];
    const struct bh_sim_obj *o = bh_sim_get(r->sim, r->type, r->ns, r->name);
    const char *container = bh_http_query(r->http, "container");
    r->verb = "get";
    if (!o) {
        bh_sim_not_found(&r->e, r->type, r->name);
    } else {
        const struct bh_json *spec = bh_json_get(bh_sim_obj_tree(r->a, o), "spec");
        const struct bh_json *first = bh_json_at(bh_json_get(spec, "containers"), 0);
        if (!container || !*container)
            container = bh_json_get_str(first, "name");
        container = container ? container : "";
        if (bh_streq(o->phase, "Pending"))
            bh_sim_fail(&r->e, 400, "BadRequest",
                        "container \"%s\" in pod \"%s\" is waiting to start: ContainerCreating",
                        container, o->name);
    }
    if (r->e.code)
        return;
    int n = snprintf(text, sizeof(text),
                     "container %.64s of pod %.63s/%.253s is simulated: it writes no log\n",
                     container, o->ns, o->name);
    bh_sim_reply_raw(r, 200, "text/plain", text, (size_t)n);
}
