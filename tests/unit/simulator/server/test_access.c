/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_access.c - who somebody is and what he may: roles, tokens of
 * service accounts, acting as another one
 */
#include "tests/unit/simulator/http_client.h"

#define RBAC     "/apis/rbac.authorization.k8s.io/v1"
#define NS       "/api/v1/namespaces/default"
#define AS(user) "Impersonate-User: " user

static const struct bh_sim_options options = {.no_controllers = true, .first_revision = 100};

static void expect(struct fixture *f, struct call c, long code, const char *text)
{
    long got = call(f, &c);

    if (got != code || (text && !strstr(bh_buf_str(&c.data), text)))
        fprintf(stderr, "%s %s: %ld %s\n want %ld %s\n", c.method ? c.method : "GET", c.path, got,
                bh_buf_str(&c.data), code, text ? text : "");
    CU_ASSERT_EQUAL(got, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&c.data), text ? text : ""));
    call_fini(&c);
}

static void post(struct fixture *f, const char *path, const char *body)
{
    expect(f, (struct call){.method = "POST", .path = path, .body = body}, 201, NULL);
}

static void bind_role(struct fixture *f, const char *where, const char *kind, const char *role,
                      const char *subject)
{
    char body[600], path[120];

    snprintf(path, sizeof(path), RBAC "%s", where);
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"generateName\":\"b-\"},\"roleRef\":{\"apiGroup\":"
             "\"rbac.authorization.k8s.io\",\"kind\":\"%s\",\"name\":\"%s\"},\"subjects\":[%s]}",
             kind, role, subject);
    post(f, path, body);
}

static void test_roles(void)
{
    static const char pod[] = "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":"
                              "\"c\",\"image\":\"x\"}]}}";
    struct fixture f;

    fixture_init(&f, &options, true);
    /* Nobody is forbidden anything without being named. */
    post(&f, NS "/pods", pod);
    expect(
        &f, (struct call){.path = NS "/pods", .headers = {AS("jane")}}, 403,
        "\"message\":\"pods is forbidden: User \\\"jane\\\" cannot list resource \\\"pods\\\" in "
        "API group \\\"\\\" in the namespace \\\"default\\\"\"");
    expect(&f, (struct call){.path = "/apis/apps/v1/deployments?watch=1", .headers = {AS("jane")}},
           403,
           "deployments.apps is forbidden: User \\\"jane\\\" cannot watch resource "
           "\\\"deployments\\\" in API group \\\"apps\\\" at the cluster scope");
    expect(&f, (struct call){.path = "/metrics", .headers = {AS("jane")}}, 403,
           "forbidden: User \\\"jane\\\" cannot get path \\\"/metrics\\\"");
    expect(&f, (struct call){.path = "/berth/v1/state", .headers = {AS("jane")}}, 403, NULL);
    expect(&f, (struct call){.path = "/api/v1", .headers = {AS("jane")}}, 200, NULL);
    /* In one namespace, by an aggregated role. */
    bind_role(&f, "/namespaces/default/rolebindings", "ClusterRole", "view",
              "{\"kind\":\"User\",\"name\":\"jane\"}");
    expect(&f, (struct call){.path = NS "/pods/p", .headers = {AS("jane")}}, 200, NULL);
    expect(&f, (struct call){.path = NS "/pods?watch=1&resourceVersion=1", .headers = {AS("jane")}},
           200, "too old resource version");
    expect(&f, (struct call){.path = NS, .headers = {AS("jane")}}, 200, NULL);
    expect(&f, (struct call){.path = "/api/v1/pods", .headers = {AS("jane")}}, 403, NULL);
    expect(&f, (struct call){.path = NS "/secrets", .headers = {AS("jane")}}, 403, NULL);
    expect(&f, (struct call){.method = "DELETE", .path = NS "/pods/p", .headers = {AS("jane")}},
           403, "pods \\\"p\\\" is forbidden: User \\\"jane\\\" cannot delete resource");
    /* What is written later belongs to it, too. */
    post(&f, RBAC "/clusterroles",
         "{\"metadata\":{\"name\":\"more\",\"labels\":{\"rbac.authorization.k8s.io/aggregate-to-"
         "view\":\"true\"}},\"rules\":[{\"verbs\":[\"list\"],\"apiGroups\":[\"\"],\"resources\":"
         "[\"secrets\"]}]}");
    expect(&f, (struct call){.path = NS "/secrets", .headers = {AS("jane")}}, 200, NULL);
    /* By name, by group, and a sub-resource of anything. */
    post(&f, RBAC "/clusterroles",
         "{\"metadata\":{\"name\":\"some\"},\"rules\":[{\"verbs\":[\"get\",\"watch\"],"
         "\"apiGroups\":[\"\"],\"resources\":[\"nodes\"],\"resourceNames\":[\"n1\"]},{\"verbs\":"
         "[\"get\"],\"apiGroups\":[\"apps\"],\"resources\":[\"*/scale\"]},{\"verbs\":[\"get\"],"
         "\"nonResourceURLs\":[\"/metr*\"]}]}");
    bind_role(&f, "/clusterrolebindings", "ClusterRole", "some",
              "{\"kind\":\"Group\",\"name\":\"crew\"}");
#define CREW AS("tim"), "Impersonate-Group: crew"
    expect(&f, (struct call){.path = "/metrics", .headers = {CREW}}, 200, NULL);
    expect(&f, (struct call){.path = "/api/v1/nodes/n1", .headers = {CREW}}, 404, NULL);
    expect(&f, (struct call){.path = "/api/v1/nodes/n2", .headers = {CREW}}, 403, NULL);
    expect(
        &f,
        (struct call){.path = "/apis/apps/v1/namespaces/x/deployments/d/scale", .headers = {CREW}},
        404, NULL);
    expect(&f, (struct call){.path = "/apis/apps/v1/namespaces/x/deployments/d", .headers = {CREW}},
           403, NULL);
    expect(&f,
           (struct call){.path = NS "/pods",
                         .headers = {AS("root"), "Impersonate-Group: system:masters"}},
           200, NULL);
    /* A role that nobody has made is named. */
    bind_role(&f, "/clusterrolebindings", "ClusterRole", "absent",
              "{\"kind\":\"User\",\"name\":\"joe\"}");
    expect(&f, (struct call){.path = "/metrics", .headers = {AS("joe")}}, 403,
           "RBAC: clusterrole.rbac.authorization.k8s.io \\\"absent\\\" not found");
    expect(&f, (struct call){.path = "/metrics", .headers = {"Impersonate-Group: crew"}}, 400,
           "without impersonating a user");
    fixture_fini(&f);
}

#define REVIEWS "/apis/authorization.k8s.io/v1/"

static void test_reviews(void)
{
    struct fixture f;

    fixture_init(&f, &options, true);
    bind_role(&f, "/namespaces/default/rolebindings", "ClusterRole", "view",
              "{\"kind\":\"ServiceAccount\",\"name\":\"default\"}");
    static const struct {
        const char *kind, *spec, *user;
        long code;
        const char *want;
    } cases[] = {
        {"selfsubjectaccessreviews",
         "\"resourceAttributes\":{\"verb\":\"delete\",\"resource\":\"x\"}", NULL, 201,
         "\"allowed\":true"},
        {"selfsubjectaccessreviews",
         "\"resourceAttributes\":{\"verb\":\"delete\",\"resource\":\"x\"}", AS("jane"), 201,
         "\"allowed\":false"},
        {"selfsubjectaccessreviews",
         "\"resourceAttributes\":{\"verb\":\"list\",\"resource\":\"pods\",\"namespace\":"
         "\"default\"}",
         AS("system:serviceaccount:default:default"), 201,
         "\"allowed\":true,\"reason\":\"RBAC: allowed by RoleBinding \\\"b-"},
        {"selfsubjectaccessreviews",
         "\"resourceAttributes\":{\"verb\":\"list\",\"resource\":\"pods\"}",
         AS("system:serviceaccount:default:default"), 201, "\"allowed\":false"},
        {"subjectaccessreviews",
         "\"groups\":[\"system:monitoring\"],\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":"
         "\"/livez/ping\"}",
         NULL, 201, "of ClusterRole \\\"system:monitoring\\\" to Group \\\"system:monitoring\\\""},
        {"subjectaccessreviews", "\"user\":\"jane\"", NULL, 422,
         "exactly one of nonResourceAttributes or resourceAttributes must be specified"},
        {"subjectaccessreviews", "\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/\"}",
         NULL, 422, "at least one of user or group must be specified"},
        {"selfsubjectrulesreviews", "\"namespace\":\"default\"",
         AS("system:serviceaccount:default:default"), 201, "\"nonResourceURLs\":[\"/livez\""},
        {"selfsubjectrulesreviews", "\"namespace\":\"default\"",
         AS("system:serviceaccount:default:default"), 201, "\"pods/log\""},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char path[120], body[400];
        snprintf(path, sizeof(path), REVIEWS "%s", cases[i].kind);
        snprintf(body, sizeof(body), "{\"spec\":{%s}}", cases[i].spec);
        expect(
            &f,
            (struct call){.method = "POST", .path = path, .body = body, .headers = {cases[i].user}},
            cases[i].code, cases[i].want);
    }
    expect(&f,
           (struct call){.method = "POST",
                         .path = REVIEWS "namespaces/default/localsubjectaccessreviews",
                         .body =
                             "{\"spec\":{\"user\":\"jane\",\"resourceAttributes\":{\"namespace\":"
                             "\"other\"}}}"},
           422, "must match metadata.namespace");
    expect(&f,
           (struct call){.method = "POST",
                         .path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                         .body = "{}",
                         .headers = {AS("jane"), "Impersonate-Group: a", "Impersonate-Group: b",
                                     "Impersonate-Extra-Why: x"}},
           201,
           "\"username\":\"jane\",\"groups\":[\"a\",\"b\",\"system:authenticated\"],\"extra\":{"
           "\"why\":[\"x\"]}");
    fixture_fini(&f);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

#define TOKEN NS "/serviceaccounts/default/token"

/* "Authorization: Bearer ..." of a new token. */
static const char *fresh_token(struct fixture *f, const char *spec)
{
    char body[300];
    snprintf(body, sizeof(body), "{\"spec\":{%s}}", spec);
    struct call c = {.method = "POST", .path = TOKEN, .body = body};
    CU_ASSERT_EQUAL(call(f, &c), 201);
    const struct bh_json *v = parse(f, bh_buf_str(&c.data));
    const char *token = bh_json_get_text(bh_json_get(v, "status"), "token");
    const char *header = bh_arena_printf(&f->a, "Authorization: Bearer %s", token);
    call_fini(&c);
    return header;
}

static void review_token(struct fixture *f, const char *header, const char *audience,
                         const char *want)
{
    const char *body = bh_arena_printf(&f->a, "{\"spec\":{\"token\":\"%s\",\"audiences\":[%s]}}",
                                       header + strlen("Authorization: Bearer "), audience);
    expect(f,
           (struct call){.method = "POST",
                         .path = "/apis/authentication.k8s.io/v1/tokenreviews",
                         .body = body},
           201, want);
}

static void test_tokens(void)
{
    static const char me[] = "\"username\":\"system:serviceaccount:default:default\"";
    struct bh_sim_options o = options;
    struct bh_sim_delete_options now = {.grace_s = 0};
    struct fixture f;

    o.manual_clock = true;
    fixture_init(&f, &o, true);
    const char *plain = fresh_token(&f, "");
    review_token(&f, plain, "", me);
    review_token(&f, plain, "", "\"system:serviceaccounts:default\"");
    review_token(&f, plain, "\"other\"", "\"authenticated\":false");
    expect(&f, (struct call){.path = NS "/pods", .headers = {plain}}, 403,
           "User \\\"system:serviceaccount:default:default\\\" cannot list");
    bind_role(&f, "/namespaces/default/rolebindings", "ClusterRole", "view",
              "{\"kind\":\"ServiceAccount\",\"name\":\"default\",\"namespace\":\"default\"}");
    expect(&f, (struct call){.path = NS "/pods", .headers = {plain}}, 200, NULL);
    expect(&f, (struct call){.path = NS "/pods", .headers = {plain, AS("admin")}}, 403,
           "cannot impersonate resource \\\"users\\\"");
    /* One letter less, or for others. */
    char *cut = bh_arena_strndup(&f.a, plain, strlen(plain) - 1);
    expect(&f, (struct call){.path = NS "/pods", .headers = {cut}}, 401, NULL);
    const char *vault = fresh_token(&f, "\"audiences\":[\"vault\",\"b\"]");
    expect(&f, (struct call){.path = NS "/pods", .headers = {vault}}, 401, NULL);
    review_token(&f, vault, "\"a\",\"vault\"", "\"audiences\":[\"vault\"]");
    /* Bound to a pod, it ends with it. */
    post(&f, NS "/pods",
         "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\","
         "\"image\":\"x\"}]}}");
    const char *bound = fresh_token(
        &f, "\"boundObjectRef\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"name\":\"p\"}");
    review_token(&f, bound, "", "\"authentication.kubernetes.io/pod-name\":[\"p\"]");
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("pods"), "default", "p", &now, NULL), 0);
    review_token(&f, bound, "", "\"error\":\"pod has been deleted\"");
    /* And with its time, and its account. */
    const char *brief = fresh_token(&f, "\"expirationSeconds\":600");
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, bh_sim_now_ns(f.s) + (int64_t)601 * 1000000000), 0);
    review_token(&f, brief, "", "expired");
    CU_ASSERT_EQUAL(
        bh_sim_delete(f.s, type_of("serviceaccounts"), "default", "default", &now, NULL), 0);
    review_token(&f, plain, "", "\"error\":\"service account has been deleted\"");
    expect(&f, (struct call){.method = "POST", .path = TOKEN, .body = "{}"}, 404, NULL);
    fixture_fini(&f);
}

static void test_token_requests_that_are_refused(void)
{
    static const struct {
        const char *body;
        long code;
        const char *want;
    } cases[] = {
        {"{\"spec\":{\"expirationSeconds\":5}}", 422,
         "may not specify a duration less than 10 min"},
        {"{\"spec\":{\"expirationSeconds\":99999999999}}", 422, "larger than 2^32 seconds"},
        {"{\"metadata\":{\"uid\":\"u\"},\"spec\":{}}", 409, "the UID in the token request (u)"},
        {"{\"spec\":{\"boundObjectRef\":{\"kind\":\"Pod\",\"name\":\"no\"}}}", 404, "not found"},
        {"{\"spec\":{\"boundObjectRef\":{\"kind\":\"Job\",\"name\":\"no\"}}}", 400,
         "cannot bind token to object of type"}};
    struct fixture f;

    fixture_init(&f, &options, true);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++)
        expect(&f, (struct call){.method = "POST", .path = TOKEN, .body = cases[i].body},
               cases[i].code, cases[i].want);
    fixture_fini(&f);
}

/* Users of a token file have the rights of their roles; a token alone is the administrator's. */
static void test_token_file(void)
{
    struct bh_sim_options o = options;
    struct fixture f;

    o.tokens = "admin\nsched,system:kube-scheduler,1\n";
    fixture_init(&f, &o, true);
#define BEARER(t) "Authorization: Bearer " t
    expect(&f, (struct call){.path = NS "/pods", .headers = {BEARER("admin")}}, 200, NULL);
    expect(&f, (struct call){.path = "/api/v1/pods", .headers = {BEARER("sched")}}, 200, NULL);
    expect(&f, (struct call){.path = "/api/v1/secrets", .headers = {BEARER("sched")}}, 403, NULL);
    expect(&f, (struct call){.path = "/api/v1/pods", .headers = {BEARER("a.b.c")}}, 401, NULL);
    fixture_fini(&f);
}

/* Who writes roles and bindings grants nothing that he does not hold, unless he may escalate or bind. */
static void test_grants(void)
{
#define ROLES             RBAC "/namespaces/default/roles"
#define ROLE(name, rules) "{\"metadata\":{\"name\":\"" name "\"},\"rules\":[" rules "]}"
#define RULE(verbs, group, resources)                                                              \
    "{\"verbs\":[" verbs "],\"apiGroups\":[\"" group "\"],\"resources\":[" resources "]}"
#define BINDING(name, kind, role)                                                                  \
    "{\"metadata\":{\"name\":\"" name                                                              \
    "\"},\"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"" kind                 \
    "\",\"name\":\"" role "\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"ann\"}]}"
    struct fixture f;

    fixture_init(&f, &options, true);
    post(&f, RBAC "/clusterroles",
         ROLE("lead",
              RULE("\"*\"", "rbac.authorization.k8s.io", "\"roles\",\"rolebindings\"") "," RULE(
                  "\"get\",\"list\"", "", "\"pods\",\"pods/log\"")));
    /* What may be done to roles is not "*": that would hold escalate and bind. */
    expect(
        &f,
        (struct call){
            .method = "PUT",
            .path = RBAC "/clusterroles/lead",
            .body = ROLE(
                "lead",
                RULE("\"create\",\"update\",\"patch\"", "rbac.authorization.k8s.io",
                     "\"roles\",\"rolebindings\",\"clusterroles\"") "," RULE("\"get\",\"list\"", "",
                                                                             "\"pods\",\"pods/"
                                                                             "log\""))},
        200, NULL);
    bind_role(&f, "/clusterrolebindings", "ClusterRole", "lead",
              "{\"kind\":\"User\",\"name\":\"ann\"}");
#define ANN(how, where, what, code, text)                                                          \
    expect(&f, (struct call){.method = how, .path = where, .headers = {AS("ann")}, .body = what},  \
           code, text)
    ANN("POST", ROLES, ROLE("held", RULE("\"get\"", "", "\"pods/log\"")), 201, NULL);
    ANN("POST", ROLES,
        ROLE("more", RULE("\"get\",\"delete\",\"watch\"", "",
                          "\"pods\"") "," RULE("\"get\"", "apps", "\"deployments\"")),
        403,
        "roles.rbac.authorization.k8s.io \\\"more\\\" is forbidden: user \\\"ann\\\" "
        "(groups=[\\\"system:authenticated\\\"]) is attempting to grant RBAC permissions not "
        "currently held:\\n{APIGroups:[\\\"\\\"], Resources:[\\\"pods\\\"], Verbs:[\\\"delete\\\" "
        "\\\"watch\\\"]}\\n{APIGroups:[\\\"apps\\\"], Resources:[\\\"deployments\\\"], "
        "Verbs:[\\\"get\\\"]}");
    ANN("PUT", ROLES "/held", ROLE("held", RULE("\"*\"", "", "\"pods\"")), 403,
        "Verbs:[\\\"*\\\"]");
    ANN("POST", RBAC "/clusterroles",
        "{\"metadata\":{\"name\":\"sum\"},\"aggregationRule\":{\"clusterRoleSelectors\":[{"
        "\"matchLabels\":{\"a\":\"b\"}}]}}",
        403, "must have cluster-admin privileges to use the aggregationRule");
    ANN("POST", RBAC "/clusterroles",
        "{\"metadata\":{\"name\":\"urls\"},\"rules\":[{\"verbs\":[\"get\"],\"nonResourceURLs\":"
        "[\"/secret\"]}]}",
        403, "{NonResourceURLs:[\\\"/secret\\\"], Verbs:[\\\"get\\\"]}");
    /* What a list of texts has besides texts is looked for as any other thing. */
    ANN("POST", ROLES, ROLE("n1", RULE("\"get\"", "", "null")), 403, "attempting to grant");
    ANN("POST", ROLES, ROLE("n2", RULE("null", "", "\"pods\"")), 403, NULL);
    ANN("POST", ROLES, ROLE("n3", "null,{\"verbs\":[\"get\"],\"nonResourceURLs\":[null]}"), 403,
        NULL);
    /* A rule's lists multiply. */
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    bh_buf_adds(&b, "{\"metadata\":{\"name\":\"y\"},\"rules\":[{\"verbs\":[\"get\",\"get\",\"get\","
                    "\"get\",\"get\",\"get\"],\"apiGroups\":[\"\"],\"resources\":[\"pods\"");
    for (int i = 0; i < 10000; i++)
        bh_buf_adds(&b, ",\"pods\"");
    bh_buf_adds(&b, "]}]}");
    ANN("POST", ROLES, b.p, 403, "attempting to grant more than 50000 RBAC permissions at once");
    /* Bindings: of what is held, of what is not, of what nobody has made. */
    const char *bindings = RBAC "/namespaces/default/rolebindings";
    ANN("POST", bindings, BINDING("b1", "Role", "held"), 201, NULL);
    ANN("POST", bindings, BINDING("b2", "ClusterRole", "edit"), 403,
        "rolebindings.rbac.authorization.k8s.io \\\"b2\\\" is forbidden: user \\\"ann\\\"");
    ANN("POST", bindings, BINDING("b3", "Role", "none"), 404,
        "role.rbac.authorization.k8s.io \\\"none\\\" not found");
    /* With the verbs, by name. */
    post(&f, RBAC "/clusterroles",
         "{\"metadata\":{\"name\":\"trusted\"},\"rules\":[{\"verbs\":[\"bind\"],\"apiGroups\":["
         "\"rbac.authorization.k8s.io\"],\"resources\":[\"clusterroles\"],\"resourceNames\":["
         "\"edit\"]"
         "},{\"verbs\":[\"escalate\"],\"apiGroups\":[\"rbac.authorization.k8s.io\"],\"resources\":["
         "\"roles\"]}]}");
    bind_role(&f, "/clusterrolebindings", "ClusterRole", "trusted",
              "{\"kind\":\"User\",\"name\":\"ann\"}");
    ANN("POST", bindings, BINDING("b2", "ClusterRole", "edit"), 201, NULL);
    ANN("POST", bindings, BINDING("b4", "ClusterRole", "admin"), 403, NULL);
    ANN("PUT", ROLES "/held", ROLE("held", RULE("\"*\"", "", "\"pods\"")), 200, NULL);
    /* The administrator grants anything, and so does his group. */
    post(&f, ROLES, ROLE("all", RULE("\"*\"", "*", "\"*\"")));
    expect(&f,
           (struct call){.method = "POST",
                         .path = ROLES,
                         .headers = {AS("root"), "Impersonate-Group: system:masters"},
                         .body = ROLE("all-2", RULE("\"*\"", "*", "\"*\""))},
           201, NULL);
    fixture_fini(&f);
}

BH_TESTS("simulator/access", {"roles and bindings", test_roles},
         {"grants of roles and bindings", test_grants}, {"access reviews", test_reviews},
         {"tokens of service accounts", test_tokens},
         {"token requests that are refused", test_token_requests_that_are_refused},
         {"users of a token file", test_token_file})
