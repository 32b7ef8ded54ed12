/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/review.c - answers that are made up: access reviews, "who am I", logs
 *
 * Clients of this server may do everything with objects, so reviews of resources say yes.
 * Callers of other servers (SubjectAccessReview with nonResourceAttributes) get what a cluster's
 * bootstrap roles give: system:masters everything, system:monitoring metrics and health, all users
 * health and version. TokenReview knows the tokens of the token file
 * (TOKEN,user,uid,"group,group"); a line with the token alone, and any token without such a file,
 * is the administrator's.
 */
#include "simulator/server/req.h"
#include "simulator/server/tree.h"

#include <stdio.h>

static struct bh_json *add_groups(struct bh_arena *a, struct bh_json *user, const char *list)
{
    struct bh_json *l = bh_json_set(a, user, "groups", bh_json_new(a, BH_JSON_ARRAY));

    while (*list) {
        size_t n = strcspn(list, ",");
        if (n)
            bh_json_push(l, bh_json_new_str(a, list, n));
        list += n + (list[n] == ',');
    }
    bh_json_push(l, bh_json_new_cstr(a, "system:authenticated"));
    return l;
}

static void user_info(struct bh_arena *a, struct bh_json *user)
{
    bh_json_set_str(a, user, "username", "kubernetes-admin");
    (void)add_groups(a, user, "system:masters");
}

/* user,uid,"groups" behind a token; text is writable. */
static void listed_user(struct bh_arena *a, struct bh_json *user, char *text)
{
    char *uid = strchr(text, ','), *groups = uid ? strchr(uid + 1, ',') : NULL;

    if (uid)
        *uid++ = '\0';
    if (groups) {
        *groups++ = '\0';
        groups += *groups == '"';
        groups[strcspn(groups, "\"")] = '\0';
    }
    bh_json_add(a, user, "username: %s, uid?: %s", text, uid ? uid : "");
    (void)add_groups(a, user, groups ? groups : "");
}

/* path is one of the list; with below, also what is below one. */
static bool path_in(const char *path, const char *const *list, size_t n, bool below)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strlen(list[i]);
        if (strncmp(path, list[i], k) == 0 && (!path[k] || (below && path[k] == '/')))
            return true;
    }
    return false;
}

/* system:public-info-viewer and system:monitoring of a fresh cluster. */
static bool path_allowed(const struct bh_json *spec)
{
    static const char *const open[] = {"/healthz", "/livez", "/readyz", "/version", "/version/"};
    static const char *const watched[] = {"/metrics", "/metrics/slis"};
    const struct bh_json *at = bh_json_get(spec, "nonResourceAttributes");
    const char *path = bh_json_get_text(at, "path"), *verb = bh_json_get_text(at, "verb");
    const struct bh_json *groups = bh_json_get_list(spec, "groups");

    if (bh_tree_lists(groups, "system:masters"))
        return true;
    if (!bh_streq(verb, "get"))
        return false;
    return path_in(path, open, BH_ARRAY_LEN(open), false) ||
           (bh_tree_lists(groups, "system:monitoring") &&
            (path_in(path, open, 3, true) || path_in(path, watched, BH_ARRAY_LEN(watched), false)));
}

void bh_sim_do_review(struct bh_sim_req *r)
{
    char api_version[80];
    bool rules = bh_streq(r->type->kind, "SelfSubjectRulesReview");
    r->verb = "review";
    struct bh_json *v = NULL;
    if (bh_sim_negotiate(r, false) || (!rules && bh_sim_body(r, r->type, r->type->pb, &v)))
        return;
    if (!v)
        v = bh_json_new(r->a, BH_JSON_OBJECT);
    bh_sim_type_api_version(r->type, api_version);
    bh_json_add(r->a, v, "kind: %s, apiVersion: %s", r->type->kind, api_version);
    struct bh_json *st = bh_json_set(r->a, v, "status", bh_json_new(r->a, BH_JSON_OBJECT));
    if (bh_streq(r->type->kind, "SelfSubjectReview")) {
        user_info(r->a, bh_json_obj_at(r->a, st, "userInfo"));
    } else if (bh_streq(r->type->kind, "TokenReview")) {
        const char *token = bh_json_get_text(bh_json_get(v, "spec"), "token");
        const char *file = r->sim->opt.tokens;
        struct bh_str user = BH_STR("");
        bool known = file ? bh_sim_token_find(file, token, &user) : *token;
        bh_json_set_bool(r->a, st, "authenticated", known);
        if (known && user.n)
            listed_user(r->a, bh_json_obj_at(r->a, st, "user"),
                        bh_arena_strndup(r->a, user.p, user.n));
        else if (known)
            user_info(r->a, bh_json_obj_at(r->a, st, "user"));
    } else if (rules) {
        /* `kubectl auth can-i --list`: the same for every namespace: the body is not even read. */
        bh_json_add(r->a, v,
                    "spec: {}, status: {resourceRules: [{apiGroups: [*], resources: [*], verbs: "
                    "[*]}], nonResourceRules: [{nonResourceURLs: [*], verbs: [*]}], incomplete: "
                    "false}");
    } else {
        const struct bh_json *spec = bh_json_get(v, "spec");
        bool of_path = !bh_streq(r->type->kind, "SelfSubjectAccessReview") &&
                       bh_json_get(spec, "nonResourceAttributes");
        bool allowed = !of_path || path_allowed(spec);
        bh_json_add(r->a, st, "allowed: %i, reason?: %s", allowed,
                    !allowed  ? ""
                    : of_path ? "RBAC: allowed by a bootstrap role"
                              : "the simulator allows everything");
    }
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
