/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/rbac.c - what a user may do, by the roles and bindings that are stored
 *
 * Asked for each request of everybody but the administrator, so who plays by the rules costs the
 * others nothing. Roles are read as they stand: nothing is kept between two requests.
 * Upstream: plugin/pkg/auth/authorizer/rbac, apiserver/pkg/endpoints/filters/{authorization,
 *           impersonation}.go; differences: rules of an aggregated role are put together when they
 *           are asked for; whoever may write roles may write any (no check of escalation).
 */
#include "simulator/server/audit.h"
#include "simulator/server/req.h"
#include "simulator/server/tree.h"

#include <strings.h>

#define RBAC_GROUP "rbac.authorization.k8s.io"

struct walk {
    struct bh_sim *s;
    struct bh_arena *a;
    const struct bh_json *user;
    /* true: enough. from: "ClusterRoleBinding ..." */
    bool (*fn)(void *arg, const struct bh_json *rule, const char *from);
    void *arg;
    struct bh_buf missing; /* roles that bindings name and nobody has made */
};

/* ---- rules ----------------------------------------------------------------------------------- */

/* admin is made of edit, which is made of view, which is made of others; deeper than that, and of
 * roles that are made of each other, what is stored counts. */
#define AGGREGATED_MAX 3

static const struct bh_json *role_rules(struct bh_sim *s, struct bh_arena *a,
                                        const struct bh_json *role, int depth)
{
    const struct bh_json *selectors = bh_tree_arr(role, "aggregationRule.clusterRoleSelectors");
    struct bh_json *rules = bh_json_new(a, BH_JSON_ARRAY);
    struct bh_sim_objs l;

    if (!selectors || depth == AGGREGATED_MAX)
        return bh_tree_arr(role, "rules");
    bh_sim_list(s, BH_SIM_TYPE(RBAC_GROUP, "v1", "clusterroles"), NULL, &l);
    bh_json_each(sel, selectors) {
        struct bh_selector *selector;
        if (bh_selector_from_json(sel, &selector, NULL) < 0)
            continue;
        for (size_t i = 0; i < l.n; i++) {
            if (bh_tree_is(role, "metadata.name", l.v[i]->name) ||
                !bh_selector_match(selector, bh_sim_get_label, l.v[i]))
                continue;
            bh_json_each(rule, role_rules(s, a, bh_sim_obj_tree(a, l.v[i]), depth + 1))
                bh_json_push(rules, bh_json_clone(a, rule));
        }
        bh_selector_free(selector);
    }
    bh_sim_objs_fini(&l);
    return rules;
}

const struct bh_json *bh_sim_role_rules(struct bh_sim *s, struct bh_arena *a,
                                        const struct bh_json *role)
{
    return role_rules(s, a, role, 0);
}

static const char *account_name(struct bh_arena *a, const struct bh_json *subject, const char *ns)
{
    const char *own = bh_json_get_text(subject, "namespace");

    return bh_arena_printf(a, "system:serviceaccount:%s:%s", *own ? own : ns,
                           bh_json_get_text(subject, "name"));
}

/* The first subject that the user is; NULL: none. */
static const struct bh_json *subject_of(struct walk *w, const struct bh_json *binding,
                                        const char *ns)
{
    const char *user = bh_json_get_text(w->user, "username");

    bh_json_each(s, bh_tree_arr(binding, "subjects")) {
        const char *kind = bh_json_get_text(s, "kind"), *name = bh_json_get_text(s, "name");
        if ((bh_streq(kind, "User") && bh_streq(name, user)) ||
            (bh_streq(kind, "Group") && bh_tree_lists(bh_json_get(w->user, "groups"), name)) ||
            (bh_streq(kind, "ServiceAccount") && bh_streq(account_name(w->a, s, ns), user)))
            return s;
    }
    return NULL;
}

static const char *describe(struct walk *w, const struct bh_sim_obj *binding,
                            const struct bh_json *ref, const struct bh_json *subject)
{
    const char *ns = bh_json_get_text(subject, "namespace");

    return bh_arena_printf(w->a, "%s \"%s%s%s\" of %s \"%s\" to %s \"%s%s%s\"", binding->type->kind,
                           binding->name, *binding->ns ? "/" : "", binding->ns,
                           bh_json_get_text(ref, "kind"), bh_json_get_text(ref, "name"),
                           bh_json_get_text(subject, "kind"), bh_json_get_text(subject, "name"),
                           *ns ? "/" : "", ns);
}

/* Tells w->fn the rules of one binding; true: enough. */
static bool walk_binding(struct walk *w, const struct bh_sim_obj *binding)
{
    const struct bh_json *tree = bh_sim_obj_tree(w->a, binding);
    const struct bh_json *ref = bh_tree_obj(tree, "roleRef");
    const struct bh_json *subject = subject_of(w, tree, binding->ns);
    bool cluster = !bh_streq(bh_json_get_text(ref, "kind"), "Role");

    if (!subject)
        return false;
    const char *name = bh_json_get_text(ref, "name");
    const struct bh_sim_obj *role =
        cluster ? bh_sim_get(w->s, BH_SIM_TYPE(RBAC_GROUP, "v1", "clusterroles"), "", name)
                : bh_sim_get(w->s, BH_SIM_TYPE(RBAC_GROUP, "v1", "roles"), binding->ns, name);
    if (!role) {
        bh_buf_addf(&w->missing, "%s%s." RBAC_GROUP " \"%s\" not found", w->missing.n ? ", " : "",
                    cluster ? "clusterrole" : "role", name);
        return false;
    }
    const char *from = describe(w, binding, ref, subject);
    bh_json_each(rule, bh_sim_role_rules(w->s, w->a, bh_sim_obj_tree(w->a, role)))
        if (w->fn(w->arg, rule, from))
            return true;
    return false;
}

/* All rules that hold for w->user in the cluster and in ns ("": in the cluster alone). */
static bool walk(struct walk *w, const char *ns)
{
    const struct bh_sim_type *const types[] = {BH_SIM_TYPE(RBAC_GROUP, "v1", "clusterrolebindings"),
                                               BH_SIM_TYPE(RBAC_GROUP, "v1", "rolebindings")};
    bool enough = false;

    for (size_t t = 0; t < (*ns ? 2 : 1) && !enough; t++) {
        struct bh_sim_objs l = bh_sim_listed(w->s, types[t], t ? ns : NULL);
        for (size_t i = 0; i < l.n && !enough; i++)
            enough = walk_binding(w, l.v[i]);
        bh_sim_objs_fini(&l);
    }
    return enough;
}

/* ---- does a rule allow it? ------------------------------------------------------------------- */

static bool names(const struct bh_json *rule, const char *list, const char *what)
{
    const struct bh_json *l = bh_json_get_list(rule, list);

    return bh_tree_lists(l, "*") || bh_tree_lists(l, what);
}

static bool covers_path(const struct bh_json *rule, const char *path)
{
    bh_json_each(m, bh_json_get_list(rule, "nonResourceURLs")) {
        const char *url = bh_json_cstr(m) ? bh_json_cstr(m) : "";
        size_t n = strlen(url);
        if (bh_streq(url, path) || (n && url[n - 1] == '*' && strncmp(url, path, n - 1) == 0))
            return true;
    }
    return false;
}

struct question {
    struct bh_arena *a;
    const struct bh_sim_ask *ask;
    const char *why;
};

static const char *resource_of(struct bh_arena *a, const struct bh_sim_ask *ask)
{
    return *ask->sub ? bh_arena_printf(a, "%s/%s", ask->resource, ask->sub) : ask->resource;
}

static bool rule_allows(void *arg, const struct bh_json *rule, const char *from)
{
    struct question *q = arg;
    const struct bh_sim_ask *ask = q->ask;
    const struct bh_json *only = bh_json_get_list(rule, "resourceNames");

    if (!names(rule, "verbs", ask->verb))
        return false;
    if (ask->path ? !covers_path(rule, ask->path)
                  : !names(rule, "apiGroups", ask->group) ||
                        !(names(rule, "resources", resource_of(q->a, ask)) ||
                          (*ask->sub &&
                           names(rule, "resources", bh_arena_printf(q->a, "*/%s", ask->sub)))) ||
                        (bh_tree_len(only) && !bh_tree_lists(only, ask->name)))
        return false;
    q->why = bh_arena_printf(q->a, "RBAC: allowed by %s", from);
    return true;
}

bool bh_sim_may(struct bh_sim *s, struct bh_arena *a, const struct bh_json *user,
                const struct bh_sim_ask *ask, const char **ret_why)
{
    struct question q = {.a = a, .ask = ask, .why = ""};
    struct walk w = {.s = s, .a = a, .user = user, .fn = rule_allows, .arg = &q};
    bool may = !user || bh_tree_lists(bh_json_get(user, "groups"), "system:masters") ||
               walk(&w, ask->path ? "" : ask->ns);

    if (!may && w.missing.n)
        q.why = bh_arena_printf(a, "RBAC: %s", bh_buf_str(&w.missing));
    bh_buf_fini(&w.missing);
    *ret_why = q.why;
    return may;
}

/* ---- all of a user's rules ------------------------------------------------------------------- */

struct rules {
    struct bh_arena *a;
    struct bh_json *of_resources, *of_paths;
};

static bool add_rule(void *arg, const struct bh_json *rule, const char *from BH_UNUSED)
{
    struct rules *r = arg;

    bh_json_push(bh_json_get(rule, "nonResourceURLs") ? r->of_paths : r->of_resources,
                 bh_json_clone(r->a, rule));
    return false;
}

struct bh_json *bh_sim_rules_of(struct bh_sim *s, struct bh_arena *a, const struct bh_json *user,
                                const char *ns)
{
    struct rules r = {a, bh_json_new(a, BH_JSON_ARRAY), bh_json_new(a, BH_JSON_ARRAY)};
    struct walk w = {.s = s, .a = a, .user = user, .fn = add_rule, .arg = &r};

    walk(&w, ns);
    bh_buf_fini(&w.missing);
    return bh_json_make(a, "resourceRules: %p, nonResourceRules: %p, incomplete: false",
                        r.of_resources, r.of_paths);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int forbid(struct bh_sim_req *r, const struct bh_sim_ask *ask, const char *why)
{
    const char *user = bh_json_get_text(r->user, "username"), *colon = *why ? ": " : "";

    if (ask->path)
        return bh_sim_fail(&r->e, 403, "Forbidden",
                           "forbidden: User \"%s\" cannot %s path \"%s\"%s%s", user, ask->verb,
                           ask->path, colon, why);
    snprintf(r->e.details_group, sizeof(r->e.details_group), "%s", ask->group);
    snprintf(r->e.details_kind, sizeof(r->e.details_kind), "%s", ask->resource);
    snprintf(r->e.details_name, sizeof(r->e.details_name), "%s", ask->name);
    return bh_sim_fail(
        &r->e, 403, "Forbidden",
        "%s%s%s%s is forbidden: User \"%s\" cannot %s resource \"%s\" in API group \"%s\" %s%s%s",
        ask->resource, *ask->group ? "." : "", ask->group,
        *ask->name ? bh_arena_printf(r->a, " \"%s\"", ask->name) : "", user, ask->verb,
        resource_of(r->a, ask), ask->group,
        *ask->ns ? bh_arena_printf(r->a, "in the namespace \"%s\"", ask->ns)
                 : "at the cluster scope",
        colon, why);
}

static int check(struct bh_sim_req *r, const struct bh_sim_ask *ask)
{
    const char *why;

    return bh_sim_may(r->sim, r->a, r->user, ask, &why) ? 0 : forbid(r, ask, why);
}

static char *lower(struct bh_arena *a, const char *text)
{
    char *out = bh_arena_strdup(a, text);

    for (char *p = out; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
    return out;
}

int bh_sim_authorize(struct bh_sim_req *r)
{
    const char *fields = bh_http_query(r->http, "fieldSelector");
    static const char by_name[] = "metadata.name=";

    if (!r->user)
        return 0;
    if (!r->type)
        return check(r, &(struct bh_sim_ask){.verb = lower(r->a, r->method), .path = r->path});
    struct bh_sim_ask ask = {.verb = bh_sim_verb_of(r),
                             .group = r->type->group,
                             .resource = r->type->plural,
                             .sub = r->sub,
                             .ns = r->ns,
                             .name = r->name};
    if (bh_streq(r->method, "GET") && bh_sim_query_bool(r, "watch", false))
        ask.verb = "watch";
    if (!*ask.name && fields && strncmp(fields, by_name, sizeof(by_name) - 1) == 0)
        ask.name = bh_arena_strndup(r->a, fields + sizeof(by_name) - 1,
                                    strcspn(fields + sizeof(by_name) - 1, ","));
    if (!*ask.group && bh_streq(ask.resource, "namespaces"))
        ask.ns = ask.name;
    return check(r, &ask);
}

/* ---- acting as another one ------------------------------------------------------------------- */

struct disguise {
    struct bh_sim_req *r;
    struct bh_buf groups; /* "a,b" */
    struct bh_json *extra;
    const char *user, *uid;
};

static void take_header(void *arg, const char *name, const char *value)
{
    static const char prefix[] = "Impersonate-", extra[] = "Extra-";
    struct disguise *d = arg;
    struct bh_sim_req *r = d->r;
    const char *what = name + sizeof(prefix) - 1;

    if (strncasecmp(name, prefix, sizeof(prefix) - 1) != 0 || r->e.code)
        return;
    struct bh_sim_ask ask = {
        .verb = "impersonate", .group = "", .sub = "", .ns = "", .name = value};
    if (strcasecmp(what, "User") == 0) {
        static const char account[] = "system:serviceaccount:";
        bool is_account = strncmp(value, account, sizeof(account) - 1) == 0;
        const char *ns = is_account ? value + sizeof(account) - 1 : "";
        size_t n = strcspn(ns, ":");
        d->user = value;
        ask.resource = "users";
        if (ns[n]) {
            ask.resource = "serviceaccounts";
            ask.ns = bh_arena_strndup(r->a, ns, n);
            ask.name = ns + n + 1;
        }
    } else if (strcasecmp(what, "Group") == 0) {
        bh_buf_addf(&d->groups, "%s,", value);
        ask.resource = "groups";
    } else if (strcasecmp(what, "Uid") == 0) {
        d->uid = value;
        ask.group = "authentication.k8s.io";
        ask.resource = "uids";
    } else if (strncasecmp(what, extra, sizeof(extra) - 1) == 0) {
        const char *key = lower(r->a, what + sizeof(extra) - 1);
        bh_json_push(bh_json_list_at(r->a, d->extra, key), bh_json_new_cstr(r->a, value));
        ask.group = "authentication.k8s.io";
        ask.resource = "userextras";
        ask.sub = key;
    } else {
        return;
    }
    check(r, &ask);
}

int bh_sim_impersonate(struct bh_sim_req *r)
{
    struct disguise d = {.r = r, .uid = ""};

    if (!bh_http_header(r->http, "Impersonate-User") &&
        !bh_http_header(r->http, "Impersonate-Group") &&
        !bh_http_header(r->http, "Impersonate-Uid"))
        return 0;
    d.extra = bh_json_new(r->a, BH_JSON_OBJECT);
    bh_http_header_each(r->http, take_header, &d);
    if (!r->e.code && (!d.user || !*d.user))
        bh_sim_fail(&r->e, 400, "BadRequest",
                    "requested groups, uid or extra without impersonating a user");
    if (!r->e.code) {
        const char *groups = bh_buf_str(&d.groups);
        struct bh_json *user = bh_sim_user_new(
            r->a, d.user, d.uid, *groups ? groups : bh_sim_service_account_groups(r->a, d.user));
        bh_json_add(r->a, user, "extra?: %p", d.extra);
        r->user = user;
    }
    bh_buf_fini(&d.groups);
    return r->e.code;
}
