/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/rbac.c - what a user may do, by the roles and bindings that are stored
 *
 * Asked for each request of everybody but the administrator, so who plays by the rules costs the
 * others nothing. Roles are read as they stand: nothing is kept between two requests.
 * Upstream: plugin/pkg/auth/authorizer/rbac, apiserver/pkg/endpoints/filters/{authorization,
 *           impersonation}.go, pkg/registry/rbac/{escalation_check,validation/policy_comparator}.go;
 *           differences: rules of an aggregated role are put together when they are asked for.
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

/* ---- what is granted must be held ------------------------------------------------------------ */

/* A rule grants the product of its lists, which is soon more than can be looked for. */
#define GRANTS_MAX  50000u
#define MISSING_MAX 200u /* things; a message holds fewer */

struct grants { /* of a role, one verb on one thing each */
    struct bh_arena *a;
    const struct bh_json *held[2]; /* lists of rules */
    struct bh_json *missing;       /* rules; verbs on the same thing in one */
    size_t n;                      /* looked for; above GRANTS_MAX: not all of them were */
};

static bool same_thing(const struct bh_json *a, const struct bh_json *b)
{
    static const char *const lists[] = {"apiGroups", "resources", "resourceNames"};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++)
        if (!bh_json_equal(bh_json_get(a, lists[i]), bh_json_get(b, lists[i])))
            return false;
    return true;
}

static void add_missing(struct grants *g, const struct bh_sim_ask *ask, const char *resource)
{
    struct bh_json *rule =
        ask->path ? bh_json_make(g->a, "nonResourceURLs: [%s]", ask->path)
                  : bh_json_make(g->a, "apiGroups: [%s], resources: [%s]", ask->group, resource);
    struct bh_json *verbs = NULL;
    if (*ask->name)
        bh_json_add(g->a, rule, "resourceNames: [%s]", ask->name);
    bh_json_each(m, ask->path ? NULL : g->missing)
        if (!verbs && same_thing(m, rule))
            verbs = bh_json_get_list(m, "verbs");
    if (!verbs && g->missing->c.n == MISSING_MAX)
        return;
    if (!verbs) {
        verbs = bh_json_list_at(g->a, rule, "verbs");
        bh_json_push(g->missing, rule);
    }
    bh_json_push(verbs, bh_json_new_cstr(g->a, ask->verb));
}

static void look_for(struct grants *g, struct bh_sim_ask ask, const char *resource)
{
    struct question q = {.a = g->a, .ask = &ask};
    const char *slash = strchr(resource, '/');

    ask.sub = slash ? slash + 1 : "";
    ask.resource = slash ? bh_arena_strndup(g->a, resource, (size_t)(slash - resource)) : resource;
    for (size_t i = 0; i < BH_ARRAY_LEN(g->held); i++)
        bh_json_each(rule, g->held[i])
            if (rule_allows(&q, rule, ""))
                return;
    add_missing(g, &ask, resource);
}

/* False: they are too many. Each list has at most as many members as a body may have. */
static bool count_grants(struct grants *g, const struct bh_json *rule)
{
    size_t verbs = bh_tree_len(bh_json_get_list(rule, "verbs")),
           n = bh_tree_len(bh_json_get_list(rule, "nonResourceURLs")) * verbs, product;
    size_t names = BH_MAX(bh_tree_len(bh_json_get_list(rule, "resourceNames")), (size_t)1);

    if (__builtin_mul_overflow(bh_tree_len(bh_json_get_list(rule, "apiGroups")) *
                                   bh_tree_len(bh_json_get_list(rule, "resources")),
                               verbs * names, &product) ||
        __builtin_add_overflow(n, product, &n) || __builtin_add_overflow(g->n, n, &g->n))
        g->n = SIZE_MAX;
    return g->n <= GRANTS_MAX;
}

/* Upstream's order: groups, resources, verbs; then what is no resource. */
static void look_for_rule(struct grants *g, const struct bh_json *rule)
{
    const struct bh_json *verbs = bh_json_get_list(rule, "verbs");
    const struct bh_json *only = bh_json_get_list(rule, "resourceNames");
    struct bh_sim_ask ask = {.ns = "", .name = ""};

    if (!count_grants(g, rule))
        return;
    bh_json_each(group, bh_json_get_list(rule, "apiGroups"))
        bh_json_each(resource, bh_json_get_list(rule, "resources"))
            bh_json_each(verb, verbs) {
                ask.group = bh_json_cstr(group);
                ask.verb = bh_json_cstr(verb);
                if (!bh_tree_len(only))
                    look_for(g, ask, bh_json_cstr(resource));
                bh_json_each(name, only) {
                    ask.name = bh_json_cstr(name);
                    look_for(g, ask, bh_json_cstr(resource));
                }
            }
    ask.name = "";
    bh_json_each(url, bh_json_get_list(rule, "nonResourceURLs"))
        bh_json_each(verb, verbs) {
            ask.path = bh_json_cstr(url);
            ask.verb = bh_json_cstr(verb);
            look_for(g, ask, "");
        }
}

/* As Go prints a list of texts with %q. */
static void add_texts(struct bh_buf *b, const struct bh_json *list)
{
    const char *before = "";

    bh_buf_addc(b, '[');
    bh_json_each(v, list) {
        bh_buf_adds(b, before);
        bh_json_write(b, v);
        before = " ";
    }
    bh_buf_addc(b, ']');
}

static const char *rule_text(struct bh_arena *a, const struct bh_json *rule)
{
    static const char *const members[][2] = {{"apiGroups", "APIGroups"},
                                             {"resources", "Resources"},
                                             {"nonResourceURLs", "NonResourceURLs"},
                                             {"resourceNames", "ResourceNames"},
                                             {"verbs", "Verbs"}};
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_buf_addc(&b, '{');
    for (size_t i = 0; i < BH_ARRAY_LEN(members); i++) {
        const struct bh_json *list = bh_json_get_list(rule, members[i][0]);
        if (!list)
            continue;
        bh_buf_addf(&b, "%s%s:", b.n > 1 ? ", " : "", members[i][1]);
        add_texts(&b, list);
    }
    bh_buf_addc(&b, '}');
    return bh_arena_strdup(a, b.p);
}

/* Upstream's text when the user does not hold all that rules grant in ns; NULL: he does. */
static const char *not_held(struct bh_sim *s, struct bh_arena *a, const struct bh_json *user,
                            const char *ns, const struct bh_json *rules)
{
    const struct bh_json *own = bh_sim_rules_of(s, a, user, ns);
    struct grants g = {
        .a = a,
        .held = {bh_json_get_list(own, "resourceRules"), bh_json_get_list(own, "nonResourceRules")},
        .missing = bh_json_new(a, BH_JSON_ARRAY)};
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    size_t n = 0;

    bh_json_each(rule, rules)
        look_for_rule(&g, rule);
    if (!g.missing->c.n && g.n <= GRANTS_MAX)
        return NULL;
    bh_buf_addf(&b, "user \"%s\" (groups=", bh_json_get_text(user, "username"));
    add_texts(&b, bh_json_get_list(user, "groups"));
    bh_buf_adds(&b, ") is attempting to grant ");
    if (g.n > GRANTS_MAX) {
        bh_buf_addf(&b, "more than %u RBAC permissions at once", GRANTS_MAX);
        return bh_arena_strdup(a, b.p);
    }
    const char **texts = bh_arena_new_array(a, const char *, g.missing->c.n);
    bh_json_each(rule, g.missing)
        texts[n++] = rule_text(a, rule);
    n = bh_sort_unique(texts, n, sizeof(*texts), bh_by_text);
    bh_buf_adds(&b, "RBAC permissions not currently held:");
    for (size_t i = 0; i < n; i++)
        bh_buf_addf(&b, "\n%s", texts[i]);
    return bh_arena_strdup(a, b.p);
}

/* Nothing but what the garbage collector needs is different. */
static bool same_grants(struct bh_arena *a, const struct bh_json *old, const struct bh_json *obj)
{
    static const char *const free_ones[] = {"ownerReferences", "finalizers", "managedFields",
                                            "resourceVersion"};
    struct bh_json *v[] = {bh_json_clone(a, old), bh_json_clone(a, obj)};

    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < BH_ARRAY_LEN(free_ones); k++)
            bh_json_unset(bh_json_get(v[i], "metadata"), free_ones[k]);
    return bh_json_equal(v[0], v[1]);
}

/* Why the user may not write the role; NULL: he may. */
static const char *role_refused(struct bh_sim *s, struct bh_arena *a, const struct bh_json *user,
                                const char *ns, const struct bh_json *old,
                                const struct bh_json *role)
{
    const char *why = not_held(s, a, user, ns, bh_tree_arr(role, "rules"));
    struct bh_json *all = bh_json_new(a, BH_JSON_ARRAY);

    if (why || (!bh_tree_has(role, "aggregationRule") && !bh_tree_has(old, "aggregationRule")))
        return why;
    bh_json_append(a, all, "verbs: ['*'], apiGroups: ['*'], resources: ['*']");
    bh_json_append(a, all, "verbs: ['*'], nonResourceURLs: ['*']");
    return not_held(s, a, user, ns, all)
               ? "must have cluster-admin privileges to use the aggregationRule"
               : NULL;
}

int bh_sim_check_grants(struct bh_sim *s, struct bh_arena *a, const struct bh_sim_type *t,
                        const char *ns, const struct bh_json *user, const struct bh_json *old,
                        const struct bh_json *obj, struct bh_sim_error *e)
{
    const struct bh_json *ref = bh_tree_obj(obj, "roleRef");
    const char *name = bh_tree_str(obj, "metadata.name"), *why;
    bool cluster = bh_tree_is(ref, "kind", "ClusterRole");
    struct bh_sim_ask ask = {.verb = "escalate", .group = t->group, .sub = "", .ns = ns};

    if (!user || !bh_streq(t->group, RBAC_GROUP) || (old && same_grants(a, old, obj)))
        return 0;
    ask.resource = !ref ? t->plural : cluster ? "clusterroles" : "roles";
    ask.name = ref ? bh_json_get_text(ref, "name") : old ? name : "";
    if (ref)
        ask.verb = "bind";
    if (bh_sim_may(s, a, user, &ask, &why))
        return 0;
    if (ref) {
        const struct bh_sim_type *of = bh_sim_type_find(RBAC_GROUP, "v1", ask.resource);
        const struct bh_sim_obj *role = bh_sim_get(s, of, cluster ? "" : ns, ask.name);
        if (!role)
            return bh_sim_fail(e, 404, "NotFound", "%s." RBAC_GROUP " \"%s\" not found",
                               of->singular, ask.name);
        why = not_held(s, a, user, ns, bh_sim_role_rules(s, a, bh_sim_obj_tree(a, role)));
    } else {
        why = role_refused(s, a, user, ns, old, obj);
    }
    if (!why)
        return 0;
    bh_sim_error_about(e, t, t->plural, name);
    return bh_sim_fail(e, 403, "Forbidden", "%s.%s \"%s\" is forbidden: %s", t->plural, t->group,
                       name ? name : "", why);
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
