/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_audit.c - the audit log: who asked for what, and what came of it
 */
#include "tests/unit/simulator/http_client.h"

#include <errno.h>

#define PODS "/api/v1/namespaces/default/pods"

/* Line n of the file as a tree; NULL behind the last one. */
static struct bh_json *line(struct fixture *f, const char *path, unsigned n)
{
    char *text, *rest, *l;
    size_t bytes;
    struct bh_json *v = NULL;
    CU_ASSERT_EQUAL_FATAL(bh_read_file(path, (size_t)1 << 20, &text, &bytes), 0);
    for (rest = text; (l = strsep(&rest, "\n")) && n; n--)
        ;
    if (l && *l)
        v = parse(f, l);
    free(text);
    return v;
}

static const char *at(const struct bh_json *v, const char *dotted)
{
    const struct bh_json *m = bh_json_path(v, dotted);
    return m && (m->type == BH_JSON_STRING || m->type == BH_JSON_NUMBER) ? m->s.p : "";
}

static long just(struct fixture *f, struct call c)
{
    long code = call(f, &c);
    call_fini(&c);
    return code;
}

static void test_lines(void)
{
    char *path = bh_asprintf("%s/audit", bh_test_tmpdir());
    const struct bh_sim_options o = {
        .no_controllers = true, .tokens = "t1,alice,1,\"system:masters\"\nt2\n", .audit_log = path};
    static const char alice[] = "Authorization: Bearer t1", nobody[] = "Authorization: Bearer t2";
    struct fixture f;
    fixture_init(&f, &o, true);
    CU_ASSERT_EQUAL(create_pod(&f, "p"), 0);
    CU_ASSERT_EQUAL(just(&f, (struct call){.method = "POST",
                                           .path = PODS "/p/binding?timeout=3s",
                                           .body = "{\"target\":{\"kind\":\"Node\",\"name\":"
                                                   "\"n\\u001b\"}}",
                                           .headers = {alice, "User-Agent: me/1"}}),
                    201);
    CU_ASSERT_EQUAL(just(&f, (struct call){.path = PODS "?limit=5", .headers = {nobody}}), 200);
    CU_ASSERT_EQUAL(just(&f, (struct call){.path = PODS "/p"}), 401);
    CU_ASSERT_EQUAL(just(&f, (struct call){.method = "DELETE",
                                           .path = "/apis/coordination.k8s.io/v1/namespaces/x/"
                                                   "leases/l",
                                           .body = "no json",
                                           .headers = {alice}}),
                    400);

    const struct bh_json *v = line(&f, path, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_STRING_EQUAL(at(v, "kind"), "Event");
    CU_ASSERT_STRING_EQUAL(at(v, "apiVersion"), "audit.k8s.io/v1");
    CU_ASSERT_STRING_EQUAL(at(v, "stage"), "ResponseComplete");
    CU_ASSERT_STRING_EQUAL(at(v, "level"), "Request");
    CU_ASSERT_STRING_EQUAL(at(v, "verb"), "create");
    CU_ASSERT_STRING_EQUAL(at(v, "requestURI"), PODS "/p/binding?timeout=3s");
    CU_ASSERT_STRING_EQUAL(at(v, "user.username"), "alice");
    CU_ASSERT_STRING_EQUAL(at(v, "userAgent"), "me/1");
    CU_ASSERT_STRING_EQUAL(at(v, "objectRef.resource"), "pods");
    CU_ASSERT_STRING_EQUAL(at(v, "objectRef.name"), "p");
    CU_ASSERT_STRING_EQUAL(at(v, "objectRef.subresource"), "binding");
    CU_ASSERT_STRING_EQUAL(at(v, "responseStatus.code"), "201");
    CU_ASSERT_STRING_EQUAL(at(v, "requestObject.target.name"), "n\x1b");
    CU_ASSERT(strcmp(at(v, "requestReceivedTimestamp"), at(v, "stageTimestamp")) <= 0);
    v = line(&f, path, 1);
    CU_ASSERT_STRING_EQUAL(at(v, "verb"), "list");
    CU_ASSERT_STRING_EQUAL(at(v, "level"), "Metadata");
    CU_ASSERT_STRING_EQUAL(at(v, "user.username"), "system:anonymous"); /* a token without a name */
    v = line(&f, path, 2);
    CU_ASSERT_STRING_EQUAL(at(v, "responseStatus.code"), "401");
    v = line(&f, path, 3);
    CU_ASSERT_STRING_EQUAL(at(v, "verb"), "delete");
    CU_ASSERT_STRING_EQUAL(at(v, "objectRef.apiGroup"), "coordination.k8s.io");
    CU_ASSERT_PTR_NULL(bh_json_get(v, "requestObject"));
    CU_ASSERT_PTR_NULL(line(&f, path, 4));
    fixture_fini(&f);
    free(path);
}

static void test_a_file_that_cannot_be_opened(void)
{
    const struct bh_sim_options o = {.no_controllers = true, .audit_log = "/nonexistent/audit"};
    struct bh_sim *s = NULL;
    struct bh_err err = {""};
    uv_loop_t loop;
    uv_loop_init(&loop);
    CU_ASSERT_EQUAL(bh_sim_new(&loop, &o, &s, &err), -ENOENT);
    CU_ASSERT_STRING_EQUAL(err.msg, "audit log /nonexistent/audit: No such file or directory");
    bh_loop_drain_close(&loop);
}

BH_TESTS("simulator/audit", {"a line an answered request", test_lines},
         {"a file that cannot be opened", test_a_file_that_cannot_be_opened})
