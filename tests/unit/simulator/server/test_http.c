/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_http.c - requests and answers over real connections
 */
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "simulator/server/sim_int.h"
#include "tests/unit/simulator/http_client.h"
#include "simulator/server/tls.h"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS      "/api/v1/namespaces/default/"
#define CMS     NS "configmaps"
#define PB_TYPE "application/vnd.kubernetes.protobuf"
#define CRDS    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define TABLE   "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

/* One exchange whose code is checked; c is the caller's to look at and to finish. */
static void expect(struct fixture *f, struct call *c, long code)
{
    call(f, c);
    if (c->code != code)
        fprintf(stderr, "%s %s: %ld, want %ld: %s\n", c->method, c->path, c->code, code,
                bh_buf_str(&c->data));
    CU_ASSERT_EQUAL(c->code, code);
}
/* The same when only the code matters. */
static void just(struct fixture *f, struct call c, long code)
{
    expect(f, &c, code);
    call_fini(&c);
}

static void test_crud(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    struct call c = {.method = "POST",
                     .path = CMS,
                     .body = "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}"};
    expect(&f, &c, 201);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "ConfigMap");
    CU_ASSERT(reply_header(&c, "Content-Type: application/json"));
    call_fini(&c);
    c = (struct call){.path = CMS "/a"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "data.k"), "v");
    const char *rv = bh_arena_strdup(&f.a, reply_str(&c, "metadata.resourceVersion"));
    const char *uid = bh_arena_strdup(&f.a, reply_str(&c, "metadata.uid"));
    call_fini(&c);
    char body[300];
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%s\"},\"data\":{\"k\":\"w\"}}",
             rv);
    just(&f, (struct call){.method = "PUT", .path = CMS "/a", .body = body}, 200);
    c = (struct call){.method = "PUT", .path = CMS "/a", .body = body};
    expect(&f, &c, 409);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "reason"), "Conflict");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "details.kind"), "configmaps");
    call_fini(&c);
    c = (struct call){.method = "DELETE", .path = CMS "/a"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "status"), "Success");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "details.uid"), uid);
    call_fini(&c);
    c = (struct call){.path = CMS "/a"};
    expect(&f, &c, 404);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "message"), "configmaps \"a\" not found");
    call_fini(&c);
    fixture_fini(&f);
}

static void test_bad_requests(void)
{
    static const struct {
        const char *method, *path, *type, *body;
        long code;
    } cases[] = {
        {"GET", "/nonsense", NULL, NULL, 404},
        {"GET", "/api/v1/nonsense", NULL, NULL, 404},
        {"GET", "/api/v2/pods", NULL, NULL, 404},
        {"GET", "/apis/apps/v1/pods", NULL, NULL, 404},
        {"GET", "/api/v1//pods", NULL, NULL, 404},
        {"GET", "/api/v1/pods/x", NULL, NULL, 404}, /* no namespace */
        {"GET", "/api/v1/namespaces/default/nodes", NULL, NULL, 404},
        {"GET", NS "pods/x/nonsense", NULL, NULL, 404},
        {"POST", NS "pods/x/exec", NULL, "{}", 501},
        {"POST", "/api/v1/pods", NULL, "{}", 405},
        {"PUT", CMS, NULL, "{}", 405},
        {"POST", CMS "/x", NULL, "{}", 405},
        {"POST", CMS, NULL, NULL, 400},
        {"POST", CMS, NULL, "{", 400},
        {"POST", CMS, NULL, "[1]", 400},
        {"POST", CMS, NULL, "{\"kind\":\"Secret\"}", 400},
        {"POST", CMS, NULL, "{\"apiVersion\":\"apps/v1\",\"kind\":\"ConfigMap\"}", 400},
        {"POST", CMS, NULL, "{\"metadata\":{\"name\":7}}", 400},
        {"POST", CMS, NULL, "{\"metadata\":{\"name\":\"x\"},\"data\":{\"a\":1}}", 400},
        {"POST", CMS, "text/plain", "{}", 415},
        {"POST", CMS "?dryRun=Maybe", NULL, "{\"metadata\":{\"name\":\"x\"}}", 400},
        {"PATCH", CMS "/x", "application/merge-patch+json", "{}", 404},
        {"PATCH", CMS "/x", "application/apply-patch+yaml", "{}", 422}, /* no fieldManager */
        {"GET", CMS "?limit=x", NULL, NULL, 400},
        {"GET", CMS "?continue=zz", NULL, NULL, 400},
        {"GET", CMS "?resourceVersionMatch=Exact", NULL, NULL, 400},
        {"DELETE", CMS "/x?propagationPolicy=Perhaps", NULL, NULL, 422},
    };
    struct fixture f;
    fixture_init(&f, NULL, true);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct call c = {.method = cases[i].method,
                         .path = cases[i].path,
                         .content_type = cases[i].type,
                         .body = cases[i].body};
        expect(&f, &c, cases[i].code);
        CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "Status");
        call_fini(&c);
    }
    fixture_fini(&f);
}

/* A list as wide as this would keep the only thread busy for a minute; patches count as well. */
static void test_wide_bodies(void)
{
    struct fixture f;
    struct bh_buf b = {0};
    fixture_init(&f, NULL, true);
    bh_buf_adds(&b, "{\"metadata\":{\"name\":\"wide\"},\"data\":{\"a\":\"v\"");
    for (unsigned i = 0; i < 20000; i++)
        bh_buf_addf(&b, ",\"k%u\":\"v\"", i);
    bh_buf_adds(&b, "}}");
    struct call c = {.method = "POST", .path = CMS, .body = b.p};
    expect(&f, &c, 413);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "reason"), "RequestEntityTooLarge");
    call_fini(&c);
    create(&f, "configmaps", "default", "{\"metadata\":{\"name\":\"wide\"}}", NULL);
    just(&f,
         (struct call){.method = "PATCH",
                       .path = CMS "/wide",
                       .content_type = "application/merge-patch+json",
                       .body = b.p},
         413);
    just(&f, (struct call){.path = CMS "/wide"}, 200);
    bh_buf_fini(&b);
    fixture_fini(&f);
}

static char *wide_map(const char *name, char key, unsigned n)
{
    struct bh_buf b = {0};

    bh_buf_addf(&b,
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"},"
                "\"data\":{\"%c\":\"v\"",
                name, key);
    for (unsigned i = 0; i < n; i++)
        bh_buf_addf(&b, ",\"%c%u\":\"v\"", key, i);
    bh_buf_adds(&b, "}}");
    return bh_buf_take(&b);
}

/* None of the requests is too large, but what they would make together. */
static void test_objects_that_grow(void)
{
    static const char revisions[] = "/apis/apps/v1/namespaces/default/controllerrevisions";
    BH_CLEANUP(bh_freep) char *most = wide_map("w", 'a', 16000), *more = wide_map("w", 'b', 500);
    BH_CLEANUP(bh_freep) char *long_text = bh_malloc((size_t)5 << 19);
    struct bh_buf b = {0};
    struct fixture f;

    fixture_init(&f, NULL, true);
    just(&f,
         (struct call){.method = "PATCH",
                       .path = CMS "/w?fieldManager=one",
                       .content_type = "application/apply-patch+yaml",
                       .body = most},
         201);
    just(&f,
         (struct call){.method = "PATCH",
                       .path = CMS "/w?fieldManager=two",
                       .content_type = "application/apply-patch+yaml",
                       .body = more},
         413);
    just(&f,
         (struct call){.method = "POST",
                       .path = revisions,
                       .body = "{\"metadata\":{\"name\":\"l\"},\"revision\":1}"},
         201);
    memset(long_text, 'x', ((size_t)5 << 19) - 1);
    long_text[((size_t)5 << 19) - 1] = '\0';
    for (char name = 'a'; name <= 'b'; name++) {
        char path[128];
        bh_buf_reset(&b);
        bh_buf_addf(&b, "{\"data\":{\"%c\":\"%s\"}}", name, long_text);
        snprintf(path, sizeof(path), "%s/l", revisions);
        just(&f,
             (struct call){.method = "PATCH",
                           .path = path,
                           .content_type = "application/merge-patch+json",
                           .body = b.p},
             name == 'a' ? 200 : 413);
    }
    bh_buf_fini(&b);
    fixture_fini(&f);
}

/* Whatever is taken can be read again, with the record of who owns which of its fields. */
static void test_deep_bodies(void)
{
    static const char list[] = "/apis/apps/v1/namespaces/default/controllerrevisions";
    struct fixture f;

    fixture_init(&f, NULL, true);
    for (unsigned deep = 110; deep <= 127; deep++) { /* members below the object itself */
        struct bh_buf b = {0};
        char path[128];
        bh_buf_addf(&b,
                    "{\"apiVersion\":\"apps/v1\",\"kind\":\"ControllerRevision\",\"metadata\":"
                    "{\"name\":\"d%u\"},\"revision\":1,\"data\":",
                    deep);
        for (unsigned i = 0; i < deep; i++)
            bh_buf_adds(&b, "{\"a\":");
        bh_buf_addc(&b, '1');
        for (unsigned i = 0; i <= deep; i++)
            bh_buf_addc(&b, '}');
        snprintf(path, sizeof(path), "%s?fieldManager=m", list);
        just(&f, (struct call){.method = "POST", .path = path, .body = b.p},
             deep < 120 ? 201 : 413);
        snprintf(path, sizeof(path), "%s/d%u", list, deep);
        just(&f,
             (struct call){.method = "PATCH",
                           .path = path,
                           .content_type = "application/merge-patch+json",
                           .body = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"},
             deep < 120 ? 200 : 404);
        snprintf(path, sizeof(path), "%s/d%u?fieldManager=n&force=true", list, deep);
        just(&f,
             (struct call){.method = "PATCH",
                           .path = path,
                           .content_type = "application/apply-patch+yaml",
                           .body = b.p},
             deep < 115 ? 200 : 413); /* the record is five deeper */
        bh_buf_fini(&b);
    }
    just(&f, (struct call){.path = list}, 200);
    fixture_fini(&f);
}

/* The name that a writer gives himself is kept with what he writes. */
static void test_field_managers(void)
{
    char path[300], most[128 + 1];
    struct fixture f;

    fixture_init(&f, NULL, true);
    memset(most, 'm', 128);
    most[128] = '\0';
    snprintf(path, sizeof(path), CMS "?fieldManager=%s", most);
    just(&f,
         (struct call){.method = "POST", .path = path, .body = "{\"metadata\":{\"name\":\"a\"}}"},
         201);
    snprintf(path, sizeof(path), CMS "?fieldManager=%sm", most);
    struct call c = {.method = "POST", .path = path, .body = "{\"metadata\":{\"name\":\"b\"}}"};
    expect(&f, &c, 422);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "message"),
                           "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may "
                           "not be more than 128 bytes");
    call_fini(&c);
    just(&f,
         (struct call){.method = "PUT",
                       .path = CMS "/a?fieldManager=a%0Ab",
                       .body = "{\"metadata\":{\"name\":\"a\"}}"},
         422);
    c = (struct call){.method = "PATCH",
                      .path = CMS "/a?fieldManager=a%0Ab",
                      .content_type = "application/merge-patch+json",
                      .body = "{}"};
    expect(&f, &c, 422);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(reply_str(&c, "message"), "invalid character U+000A (at position 1)"));
    call_fini(&c);
    fixture_fini(&f);
}

static void test_dry_run(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    uint64_t rv = bh_sim_revision(f.s);
    just(&f,
         (struct call){.method = "POST",
                       .path = CMS "?dryRun=All",
                       .body = "{\"metadata\":{\"name\":\"a\"}}"},
         201);
    create(&f, "configmaps", "default", "{\"metadata\":{\"name\":\"b\"}}", NULL);
    just(&f,
         (struct call){.method = "PATCH",
                       .path = CMS "/b?dryRun=All",
                       .content_type = "application/merge-patch+json",
                       .body = "{\"data\":{\"x\":\"y\"}}"},
         200);
    just(&f, (struct call){.method = "DELETE", .path = CMS "/b?dryRun=All"}, 200);
    just(&f, (struct call){.method = "DELETE", .path = CMS "/b", .body = "{\"dryRun\":[\"All\"]}"},
         200);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), rv + 1);
    CU_ASSERT_PTR_NOT_NULL(get(&f, "configmaps", "default", "b"));
    fixture_fini(&f);
}

static void make_many(struct fixture *f, int n)
{
    for (int i = 0; i < n; i++) {
        char text[100];
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"n%03d\",\"labels\":{\"odd\":\"%d\"}}}", i, i & 1);
        CU_ASSERT_EQUAL(create(f, "configmaps", "default", text, NULL), 0);
    }
}

static void test_pages_show_one_moment(void)
{
    struct fixture f;
    char path[1024], token[512] = "";
    size_t seen = 0;
    const char *rv = NULL;
    fixture_init(&f, NULL, true);
    make_many(&f, 25);
    for (int page = 0; page < 3; page++) {
        snprintf(path, sizeof(path), CMS "?limit=10&continue=%s", token);
        struct call c = {.path = path};
        expect(&f, &c, 200);
        const struct bh_json *v = reply_json(&c);
        seen += bh_json_get(v, "items")->c.n;
        const char *now = reply_str(&c, "metadata.resourceVersion");
        CU_ASSERT(!rv || bh_streq(now, rv));
        rv = bh_arena_strdup(&f.a, now);
        snprintf(token, sizeof(token), "%s", reply_str(&c, "metadata.continue"));
        if (page == 0)
            CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(v, "metadata"), "remainingItemCount", 0),
                            15);
        call_fini(&c);
        /* changes between the pages are not seen */
        snprintf(path, sizeof(path), "n%03d", page);
        bh_sim_delete(f.s, type_of("configmaps"), "default", path, NULL, NULL);
        snprintf(path, sizeof(path), "{\"metadata\":{\"name\":\"z%d\"}}", page);
        create(&f, "configmaps", "default", path, NULL);
    }
    CU_ASSERT_EQUAL(seen, 25);
    CU_ASSERT_STRING_EQUAL(token, "");
    fixture_fini(&f);
}

static void test_lost_page_is_410(void)
{
    struct fixture f;
    char path[1024];
    fixture_init(&f, NULL, true);
    make_many(&f, 5);
    struct call c = {.path = CMS "?limit=2"};
    expect(&f, &c, 200);
    snprintf(path, sizeof(path), CMS "?limit=2&continue=%s", reply_str(&c, "metadata.continue"));
    call_fini(&c);
    create(&f, "configmaps", "default", "{\"metadata\":{\"name\":\"q\"}}", NULL);
    bh_sim_pages_expire(f.s, 0);
    c = (struct call){.path = path};
    expect(&f, &c, 410);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "reason"), "Expired");
    call_fini(&c);
    fixture_fini(&f);
}

static size_t count_items(struct fixture *f, const char *query)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", query);
    struct call c = {.path = path};
    expect(f, &c, 200);
    const struct bh_json *l = bh_json_get(reply_json(&c), "items");
    size_t n = l ? l->c.n : SIZE_MAX;
    call_fini(&c);
    return n;
}

static void test_selectors(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    make_many(&f, 6);
    CU_ASSERT_EQUAL(count_items(&f, CMS "?labelSelector=odd%3D1"), 3);
    CU_ASSERT_EQUAL(count_items(&f, CMS "?labelSelector=odd%20notin%20(1)"), 3);
    CU_ASSERT_EQUAL(count_items(&f, CMS "?labelSelector=!odd"), 0);
    CU_ASSERT_EQUAL(count_items(&f, CMS "?fieldSelector=metadata.name%3Dn002"), 1);
    CU_ASSERT_EQUAL(count_items(&f, CMS "?fieldSelector=metadata.namespace!%3Ddefault"), 0);
    CU_ASSERT_EQUAL(count_items(&f, "/api/v1/configmaps?fieldSelector=metadata.name!%3Dn002"), 5);
    create_pod(&f, "p");
    create(&f, "nodes", "", "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"unschedulable\":true}}",
           NULL);
    CU_ASSERT_EQUAL(count_items(&f, "/api/v1/pods?fieldSelector=spec.nodeName%3D"), 1);
    CU_ASSERT_EQUAL(count_items(&f, "/api/v1/pods?fieldSelector=status.phase!%3DPending"), 0);
    CU_ASSERT_EQUAL(count_items(&f, "/api/v1/pods?fieldSelector=spec.restartPolicy%3DAlways,"
                                    "spec.schedulerName%3Ddefault-scheduler,"
                                    "spec.hostNetwork%3Dfalse"),
                    1);
    CU_ASSERT_EQUAL(count_items(&f, "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue"), 1);
    bh_sim_event(f.s, get(&f, "pods", "default", "p"), "Normal", "R", "kubelet", "m");
    CU_ASSERT_EQUAL(count_items(&f, "/api/v1/events?fieldSelector=involvedObject.kind%3DPod,"
                                    "source%3Dkubelet,involvedObject.name%3Dp"),
                    1);
    CU_ASSERT_EQUAL(count_items(&f,
                                "/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp,"
                                "reason%3DR"),
                    1);
    just(&f, (struct call){.path = "/api/v1/pods?fieldSelector=spec.nonsense%3Dx"}, 400);
    /* A custom resource's field, whose path is as long as its definition likes. */
#define LONG_NAME "aNameOfAFieldThatSomebodyFoundToSayAllThatThereIsToSayOfItAndMore"
    just(&f,
         (struct call){
             .method = "POST",
             .path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
             .body =
                 "{\"metadata\":{\"name\":\"things.x.io\"},\"spec\":{\"group\":\"x.io\",\"scope\":"
                 "\"Cluster\",\"names\":{\"plural\":\"things\",\"kind\":\"Thing\"},\"versions\":[{"
                 "\"name\":\"v1\",\"served\":true,\"storage\":true,\"selectableFields\":[{"
                 "\"jsonPath\":\".spec." LONG_NAME "\"}],\"schema\":{\"openAPIV3Schema\":{\"type\":"
                 "\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{"
                 "\"" LONG_NAME "\":{\"type\":\"string\"}}}}}}}]}}"},
         201);
    just(&f,
         (struct call){.method = "POST",
                       .path = "/apis/x.io/v1/things",
                       .body =
                           "{\"apiVersion\":\"x.io/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":"
                           "\"t\"},\"spec\":{\"" LONG_NAME "\":\"v\"}}"},
         201);
    CU_ASSERT_EQUAL(count_items(&f, "/apis/x.io/v1/things?fieldSelector=spec." LONG_NAME "%3Dv"),
                    1);
    CU_ASSERT_EQUAL(count_items(&f, "/apis/x.io/v1/things?fieldSelector=spec." LONG_NAME "%3Dw"),
                    0);
    fixture_fini(&f);
}

static void test_list_versions(void)
{
    struct fixture f;
    char path[200];
    fixture_init(&f, NULL, true);
    make_many(&f, 2);
    unsigned long long rv = bh_sim_revision(f.s);
    snprintf(path, sizeof(path), CMS "?resourceVersion=%llu&resourceVersionMatch=Exact", rv);
    CU_ASSERT_EQUAL(count_items(&f, path), 2);
    make_many(&f, 0);
    create(&f, "configmaps", "default", "{\"metadata\":{\"name\":\"q\"}}", NULL);
    CU_ASSERT_EQUAL(count_items(&f, path), 2); /* still frozen */
    snprintf(path, sizeof(path), CMS "?resourceVersion=%llu&resourceVersionMatch=NotOlderThan", rv);
    CU_ASSERT_EQUAL(count_items(&f, path), 3);
    CU_ASSERT_EQUAL(count_items(&f, CMS "?resourceVersion=0"), 3);
    just(&f, (struct call){.path = CMS "?resourceVersion=101&resourceVersionMatch=Exact"}, 410);
    just(&f, (struct call){.path = CMS "?resourceVersion=999999"}, 504);
    fixture_fini(&f);
}

static void test_tables(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    create_pod(&f, "p");
    struct call c = {.path = NS "pods", .accept = TABLE};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "Table");
    const struct bh_json *row = bh_json_at(bh_json_get(reply_json(&c), "rows"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_at(bh_json_get(row, "cells"), 0)), "p");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(row, "object.kind")), "PartialObjectMetadata");
    call_fini(&c);
    c = (struct call){.path = NS "pods/p?includeObject=Object", .accept = TABLE};
    expect(&f, &c, 200);
    row = bh_json_at(bh_json_get(reply_json(&c), "rows"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(row, "object.kind")), "Pod");
    call_fini(&c);
    static const struct {
        const char *accept, *version;
    } asked[] = {
        {TABLE, "meta.k8s.io/v1"},
        {"application/json;as=Table;v=v1beta1;g=meta.k8s.io", "meta.k8s.io/v1beta1"},
        {"application/json;as=Table;g=meta.k8s.io;v=v1beta1", "meta.k8s.io/v1beta1"},
        {"application/json;as=Table;v=v1beta1;g=meta.k8s.io," TABLE, "meta.k8s.io/v1beta1"},
        {"application/json;as=Table;v=v2;g=meta.k8s.io," TABLE, "meta.k8s.io/v1"}};
    static const char *const paths[] = {NS "pods", NS "pods/p"};
    for (size_t i = 0; i < 2 * BH_ARRAY_LEN(asked); i++) {
        c = (struct call){.path = paths[i % 2], .accept = asked[i / 2].accept};
        expect(&f, &c, 200);
        CU_ASSERT_STRING_EQUAL(reply_str(&c, "apiVersion"), asked[i / 2].version);
        CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "Table");
        call_fini(&c);
    }
    c = (struct call){.path = NS "pods",
                      .accept = "application/json;as=PartialObjectMetadataList;"
                                "v=v1;g=meta.k8s.io"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "PartialObjectMetadataList");
    row = bh_json_at(bh_json_get(reply_json(&c), "items"), 0);
    CU_ASSERT_PTR_NULL(bh_json_get(row, "spec"));
    call_fini(&c);
    fixture_fini(&f);
}

static void test_timeout(void)
{
    static const char *const good[] = {"", "1s", "1h2m", "99h"}, *const bad[] = {"invalid", "5",
                                                                                 "1x"};
    struct fixture f;
    char path[80];

    fixture_init(&f, NULL, true);
    for (size_t i = 0; i < BH_ARRAY_LEN(good); i++) {
        snprintf(path, sizeof(path), NS "pods?timeout=%s", good[i]);
        struct call c = {.path = path};
        expect(&f, &c, 200);
        call_fini(&c);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        char want[160];
        snprintf(path, sizeof(path), NS "pods?timeout=%s", bad[i]);
        snprintf(want, sizeof(want),
                 "invalid timeout specified in the request URL - time: invalid duration \"%s\"",
                 bad[i]);
        struct call c = {.path = path};
        expect(&f, &c, 400);
        CU_ASSERT_STRING_EQUAL(reply_str(&c, "message"), want);
        call_fini(&c);
    }
    fixture_fini(&f);
}

static void test_who_gets_protobuf(void)
{
    static const struct {
        const char *accept, *header;
        bool pb;
    } cases[] = {
        {PB_TYPE, NULL, true},
        {PB_TYPE ",application/json", NULL, false},
        {PB_TYPE ",*/*", NULL, false},
        {PB_TYPE ",application/json", "Berth-Projection: scheduling", true},
        {"application/json", "Berth-Projection: scheduling", false},
        {"*/*", NULL, false},
    };
    struct fixture f;
    fixture_init(&f, NULL, true);
    create_pod(&f, "p");
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct call c = {
            .path = NS "pods/p", .accept = cases[i].accept, .headers = {cases[i].header}};
        expect(&f, &c, 200);
        CU_ASSERT_EQUAL(reply_header(&c, "Content-Type: " PB_TYPE), cases[i].pb);
        CU_ASSERT_EQUAL(bh_is_pb_envelope(c.data.p, c.data.n), cases[i].pb);
        call_fini(&c);
    }
    just(&f, (struct call){.path = NS "pods/p", .accept = "text/html"}, 406);
    just(&f, (struct call){.path = CRDS, .accept = PB_TYPE}, 406); /* JSON only */
    struct call c = {.path = NS "pods/none", .accept = PB_TYPE};
    expect(&f, &c, 404);
    struct bh_api_status st;
    bh_decode_status(c.data.p, c.data.n, 404, &st);
    CU_ASSERT_STRING_EQUAL(st.reason, "NotFound");
    CU_ASSERT_STRING_EQUAL(st.message, "pods \"none\" not found");
    call_fini(&c);
    fixture_fini(&f);
}

struct names {
    struct bh_arena *a;
    char text[256];
};
static int on_item(void *arg, const void *p, size_t n, bool is_pb)
{
    struct names *l = arg;
    ProtobufCMessage *m = NULL;
    CU_ASSERT(is_pb);
    CU_ASSERT_EQUAL(bh_pb_unpack(l->a, &k8s__pod__descriptor, p, n, &m, NULL), 0);
    strncat(l->text, ((K8s__Pod *)m)->metadata->name, sizeof(l->text) - strlen(l->text) - 1);
    return 0;
}

static void test_protobuf_list(void)
{
    struct fixture f;
    struct bh_list_meta meta = {0};
    fixture_init(&f, NULL, true);
    create_pod(&f, "b");
    create_pod(&f, "a");
    create_pod(&f, "c");
    struct names l = {.a = &f.a};
    struct call c = {.path = "/api/v1/pods?limit=2", .accept = PB_TYPE};
    expect(&f, &c, 200);
    struct bh_list_reader *r = bh_list_reader_new(PB_TYPE, 1 << 20, on_item, &l);
    CU_ASSERT_EQUAL(bh_list_reader_feed(r, c.data.p, c.data.n), 0);
    CU_ASSERT_EQUAL(bh_list_reader_finish(r, &meta, NULL), 0);
    bh_list_reader_free(r);
    CU_ASSERT_STRING_EQUAL(l.text, "ab");
    CU_ASSERT_EQUAL(strtoull(meta.resource_version, NULL, 10), bh_sim_revision(f.s));
    CU_ASSERT_PTR_NOT_NULL(meta.cont);
    CU_ASSERT_EQUAL(meta.remaining, 1);
    free(meta.cont);
    call_fini(&c);
    fixture_fini(&f);
}

static void test_protobuf_bodies(void)
{
    struct fixture f;
    struct bh_buf raw = {0}, body = {0};
    fixture_init(&f, NULL, true);
    K8s__ObjectMeta meta = K8S__OBJECT_META__INIT;
    K8s__Namespace ns = K8S__NAMESPACE__INIT;
    meta.name = (char *)"pb";
    ns.metadata = &meta;
    bh_pb_pack(&raw, &ns.base);
    bh_envelope_write(&body, "v1", "Namespace", raw.p, raw.n);
    struct call c = {.method = "POST",
                     .path = "/api/v1/namespaces",
                     .body = body.p,
                     .body_n = body.n,
                     .content_type = PB_TYPE};
    expect(&f, &c, 201);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "metadata.name"), "pb");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "status.phase"), "Active");
    call_fini(&c);
    /* another kind's path, and a kind that is JSON only */
    just(&f,
         (struct call){.method = "POST",
                       .path = CMS,
                       .body = body.p,
                       .body_n = body.n,
                       .content_type = PB_TYPE},
         400);
    just(&f,
         (struct call){.method = "POST",
                       .path = CRDS,
                       .body = body.p,
                       .body_n = body.n,
                       .content_type = PB_TYPE},
         400);
    just(&f,
         (struct call){.method = "POST",
                       .path = "/api/v1/namespaces",
                       .body = body.p,
                       .body_n = body.n - 3,
                       .content_type = PB_TYPE},
         400);
    bh_buf_fini(&raw);
    bh_buf_fini(&body);
    fixture_fini(&f);
}

static void test_patches(void)
{
    static const struct {
        const char *type, *body;
        long code;
        const char *want; /* image of container c, and of d */
    } cases[] = {
        {"application/strategic-merge-patch+json",
         "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"j\"}]}}}}",
         200, "j"},
        {"application/merge-patch+json", "{\"spec\":{\"replicas\":4}}", 200, "j"},
        {"application/json-patch+json",
         "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/"
         "image\",\"value\":\"k\"}]",
         200, "k"},
        {"application/json-patch+json", "[{\"op\":\"remove\",\"path\":\"/spec/nope\"}]", 422, "k"},
        {"application/json-patch+json", "{}", 400, "k"},
        {"application/merge-patch+json", "{\"spec\":{\"replicas\":\"x\"}}", 422, "k"},
        {"application/merge-patch+json", "{\"metadata\":{\"resourceVersion\":\"1\"}}", 409, "k"},
        {"application/json", "{}", 415, "k"},
    };
    struct fixture f;
    fixture_init(&f, NULL, true);
    create(&f, "deployments", "default",
           "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":"
           "{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":"
           "{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
           NULL);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        just(&f,
             (struct call){.method = "PATCH",
                           .path = "/apis/apps/v1/namespaces/default/deployments/d",
                           .content_type = cases[i].type,
                           .body = cases[i].body},
             cases[i].code);
        const struct bh_json *tree = bh_sim_obj_tree(&f.a, get(&f, "deployments", "default", "d"));
        const struct bh_json *l = bh_json_path(tree, "spec.template.spec.containers");
        CU_ASSERT_EQUAL(l->c.n, 1);
        CU_ASSERT_STRING_EQUAL(bh_json_get_str(bh_json_at(l, 0), "image"), cases[i].want);
    }
    CU_ASSERT_EQUAL(get(&f, "deployments", "default", "d")->generation, 4);
    fixture_fini(&f);
}

static void test_apply(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    const char *type = "application/apply-patch+yaml";
    just(&f,
         (struct call){.method = "PATCH",
                       .path = CMS "/a?fieldManager=one",
                       .content_type = type,
                       .body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
                               "data: {x: '1', y: '1'}\n"},
         201);
    struct call c = {.method = "PATCH",
                     .path = CMS "/a?fieldManager=two",
                     .content_type = type,
                     .body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                             "\"a\"},\"data\":{\"x\":\"2\"}}"};
    expect(&f, &c, 409);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(reply_str(&c, "message"), "Apply failed with 1 conflict: conflict with \"one\""));
    const struct bh_json *cause = bh_json_at(bh_json_path(reply_json(&c), "details.causes"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(cause, "reason"), "FieldManagerConflict");
    call_fini(&c);
    c = (struct call){.method = "PATCH",
                      .path = CMS "/a?fieldManager=two&force=true",
                      .content_type = type,
                      .body =
                          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                          "\"a\"},\"data\":{\"x\":\"2\"}}"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "data.x"), "2");
    CU_ASSERT_EQUAL(bh_json_path(reply_json(&c), "metadata.managedFields")->c.n, 2);
    call_fini(&c);
    /* what a manager stops applying goes */
    c = (struct call){.method = "PATCH",
                      .path = CMS "/a?fieldManager=one",
                      .content_type = type,
                      .body =
                          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":"
                          "\"a\"}}"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "data.x"), "2");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "data.y"), "");
    call_fini(&c);
    /* the same again changes nothing */
    uint64_t rv = bh_sim_revision(f.s);
    just(&f,
         (struct call){.method = "PATCH",
                       .path = CMS "/a?fieldManager=two",
                       .content_type = type,
                       .body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":"
                               "{\"name\":\"a\"},\"data\":{\"x\":\"2\"}}"},
         200);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), rv);
    fixture_fini(&f);
}

/* Status is neither written nor owned where a pod itself is applied. */
static void test_apply_status(void)
{
    static const char pod[] = "/api/v1/namespaces/default/pods/a?fieldManager=one";
    static const char status[] = "/api/v1/namespaces/default/pods/a/status?fieldManager=one";
    static const char body[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: "
                               "{conditions: [{type: Mine, status: 'True'}]}\n";
    const char *type = "application/apply-patch+yaml";
    struct fixture f;

    fixture_init(&f, NULL, true);
    just(&f,
         (struct call){.method = "PATCH",
                       .path = pod,
                       .content_type = type,
                       .body = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
                               "spec: {containers: [{name: c, image: i}]}\n"},
         201);
    struct call c = {.method = "PATCH",
                     .path = "/api/v1/namespaces/default/pods/a?fieldManager=two",
                     .content_type = type,
                     .body = body};
    expect(&f, &c, 200);
    CU_ASSERT_PTR_NULL(strstr(c.data.p, "Mine"));
    call_fini(&c);
    c = (struct call){.method = "PATCH", .path = status, .content_type = type, .body = body};
    expect(&f, &c, 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(c.data.p, "\"type\":\"Mine\""));
    call_fini(&c);
    fixture_fini(&f);
}

static void test_yaml_body(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    just(&f,
         (struct call){
             .method = "POST",
             .path = CMS,
             .content_type = "application/yaml",
             .body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yam\ndata:\n  a: b\n"},
         201);
    CU_ASSERT_STRING_EQUAL(field(&f, get(&f, "configmaps", "default", "yam"), "data.a"), "b");
    fixture_fini(&f);
}

/* The reply's body is this text. */
static void expect_text(struct fixture *f, struct call c, long code, const char *want)
{
    expect(f, &c, code);
    if (!strstr(bh_buf_str(&c.data), want))
        fprintf(stderr, "want %s\ngot  %s\n", want, bh_buf_str(&c.data));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&c.data), want));
    call_fini(&c);
}

#define YAML_TYPE "application/yaml"

static void test_yaml_answers(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    expect_text(&f,
                (struct call){.method = "POST",
                              .path = CMS,
                              .content_type = YAML_TYPE,
                              .accept = YAML_TYPE,
                              .body = "metadata: {name: yam}\ndata: {b: \"no\", a: x}\n"},
                201, "apiVersion: v1\ndata:\n  a: x\n  b: \"no\"\nkind: ConfigMap\n");
    expect_text(&f, (struct call){.path = CMS "/yam", .accept = YAML_TYPE}, 200, "  name: yam\n");
    expect_text(&f, (struct call){.path = CMS, .accept = YAML_TYPE}, 200,
                "items:\n- apiVersion: v1\n  data:\n    a: x\n");
    expect_text(&f,
                (struct call){.method = "PATCH",
                              .path = CMS "/yam",
                              .content_type = "application/merge-patch+json",
                              .accept = YAML_TYPE,
                              .body = "{\"data\":{\"c\":\"1\"}}"},
                200, "  c: \"1\"\n");
    expect_text(&f, (struct call){.path = CMS "/none", .accept = YAML_TYPE}, 404,
                "code: 404\ndetails:\n  kind: configmaps\n  name: none\n");
    /* A mistake is named with its line. */
    expect_text(&f,
                (struct call){.method = "POST",
                              .path = CMS,
                              .content_type = YAML_TYPE,
                              .body = "metadata:\n  name: x\ndata:\n  a: [\n"},
                400, "line 5");
    expect_text(&f, (struct call){.path = CMS "?watch=1", .accept = YAML_TYPE}, 406,
                "NotAcceptable");
    fixture_fini(&f);
}

static void test_field_validation(void)
{
    static const char body[] = "{\"metadata\":{\"name\":\"v\",\"lables\":{}},\"data\":{\"a\":\"1\","
                               "\"a\":\"2\"},\"dat\":{}}";
    struct fixture f;
    fixture_init(&f, NULL, true);
    expect_text(
        &f, (struct call){.method = "POST", .path = CMS "?fieldValidation=Strict", .body = body},
        400, "strict decoding error: duplicate field \\\"data.a\\\"");
    expect_text(&f,
                (struct call){.method = "POST",
                              .path = CMS "?fieldValidation=Strict",
                              .body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                      "\"name\":\"d\"},\"dada\":{},\"data\":{\"a\":\"1\",\"a\":"
                                      "\"2\"}}"},
                400,
                "ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: strict decoding "
                "error: unknown field \\\"dada\\\", duplicate field \\\"data.a\\\"");
    expect_text(&f,
                (struct call){.method = "POST",
                              .path = CMS "?fieldValidation=Strict",
                              .body = "{\"metadata\":{\"name\":\"v\",\"lables\":{}},\"dat\":{}}"},
                400,
                "ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: strict decoding "
                "error: unknown field \\\"metadata.lables\\\", unknown field \\\"dat\\\"");
    expect_text(&f,
                (struct call){.method = "POST", .path = CMS "?fieldValidation=Loud", .body = body},
                422, "supported values");
    struct call c = {.method = "POST", .path = CMS, .body = body};
    expect(&f, &c, 201);
    CU_ASSERT(reply_header(&c, "Warning: 299 - \"unknown field \\\"dat\\\"\""));
    CU_ASSERT(reply_header(&c, "Warning: 299 - \"duplicate field \\\"data.a\\\"\""));
    call_fini(&c);
    CU_ASSERT_STRING_EQUAL(field(&f, get(&f, "configmaps", "default", "v"), "data"),
                           "{\"a\":\"2\"}");
    CU_ASSERT_STRING_EQUAL(field(&f, get(&f, "configmaps", "default", "v"), "dat"), "");
    expect_text(&f,
                (struct call){.method = "PATCH",
                              .path = CMS "/v?fieldValidation=Strict",
                              .content_type = "application/merge-patch+json",
                              .body = "{\"datum\":1}"},
                422, "unknown field \\\"datum\\\"");
    fixture_fini(&f);
}

static void test_metrics_api(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    just(&f,
         (struct call){.method = "POST",
                       .path = "/api/v1/nodes",
                       .body = "{\"metadata\":{\"name\":\"n\",\"annotations\":{"
                               "\"kwok.x-k8s.io/usage-cpu\":\"1500m\"}}}"},
         201);
    expect_text(&f, (struct call){.path = "/apis/metrics.k8s.io/v1beta1/nodes"}, 200,
                "\"usage\":{\"cpu\":\"1500m\",\"memory\":\"0\"}");
    expect_text(&f, (struct call){.path = "/apis/metrics.k8s.io/v1beta1/nodes/x"}, 404, "NotFound");
    create_pod(&f, "p"); /* pending: there is nothing to tell */
    expect_text(&f, (struct call){.path = "/apis/metrics.k8s.io/v1beta1/pods"}, 200,
                "\"items\":[]");
    just(
        &f,
        (struct call){.method = "POST", .path = "/apis/metrics.k8s.io/v1beta1/nodes", .body = "{}"},
        405);
    fixture_fini(&f);
}

static void test_binding_request(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    create_pod(&f, "p");
    create_pod(&f, "q");
    static const char body[] = "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":"
                               "\"p\"},\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}";
    struct call c = {.method = "POST", .path = NS "pods/p/binding", .body = body};
    expect(&f, &c, 201);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "status"), "Success");
    call_fini(&c);
    c = (struct call){.method = "POST", .path = NS "pods/p/binding", .body = body};
    expect(&f, &c, 409);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "details.kind"), "pods/binding");
    call_fini(&c);
    just(&f,
         (struct call){.method = "POST",
                       .path = NS "bindings",
                       .body = "{\"metadata\":{\"name\":\"q\"},\"target\":{\"name\":\"n2\"}}"},
         201);
    CU_ASSERT_STRING_EQUAL(get(&f, "pods", "default", "q")->node_name, "n2");
    just(&f,
         (struct call){.method = "POST", .path = NS "pods/q/binding", .body = "{\"target\":{}}"},
         500);
    just(&f,
         (struct call){.method = "POST",
                       .path = NS "pods/none/binding",
                       .body = "{\"target\":{\"name\":\"n\"}}"},
         404);
    fixture_fini(&f);
}

static void test_scale(void)
{
    struct fixture f;
    const char *path = "/apis/apps/v1/namespaces/default/deployments/d/scale";
    fixture_init(&f, NULL, true);
    create(&f, "deployments", "default",
           "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":"
           "{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":"
           "{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
           NULL);
    struct call c = {.path = path};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "Scale");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "status.selector"), "a=b");
    call_fini(&c);
    c = (struct call){.method = "PATCH",
                      .path = path,
                      .content_type = "application/merge-patch+json",
                      .body = "{\"spec\":{\"replicas\":5}}"};
    expect(&f, &c, 200);
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(reply_json(&c), "spec"), "replicas", 0), 5);
    call_fini(&c);
    CU_ASSERT_EQUAL(get(&f, "deployments", "default", "d")->generation, 2);
    just(&f,
         (struct call){.method = "PUT",
                       .path = path,
                       .body =
                           "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":2}}"},
         409);
    just(&f, (struct call){.method = "PUT", .path = path, .body = "{\"spec\":{\"replicas\":-2}}"},
         422);
    just(&f, (struct call){.path = CMS "/x/scale"}, 404);
    fixture_fini(&f);
}

static void test_finalize_namespace(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    create(&f, "namespaces", "", "{\"metadata\":{\"name\":\"t\"}}", NULL);
    struct call c = {.method = "DELETE", .path = "/api/v1/namespaces/t"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "status.phase"), "Terminating");
    call_fini(&c);
    just(&f,
         (struct call){.method = "PUT",
                       .path = "/api/v1/namespaces/t/finalize",
                       .body = "{\"metadata\":{\"name\":\"t\"},\"spec\":{\"finalizers\":[]}}"},
         200);
    CU_ASSERT_PTR_NULL(get(&f, "namespaces", "", "t"));
    just(&f, (struct call){.method = "PUT", .path = "/api/v1/namespaces/t/finalize", .body = "{}"},
         404);
    fixture_fini(&f);
}

static void test_delete_collection(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    make_many(&f, 6);
    just(&f, (struct call){.method = "DELETE", .path = CMS "?labelSelector=odd%3D1"}, 200);
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("configmaps")), 3);
    fixture_fini(&f);
}

static void test_other_representations(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    just(&f,
         (struct call){.method = "POST",
                       .path = "/apis/events.k8s.io/v1/namespaces/default/events",
                       .body = "{\"metadata\":{\"name\":\"e\"},\"regarding\":{\"kind\":\"Pod\","
                               "\"namespace\":\"default\",\"name\":\"p\"},\"note\":\"hello\","
                               "\"reason\":\"R\",\"type\":\"Normal\",\"action\":\"A\","
                               "\"reportingController\":\"me\",\"reportingInstance\":\"i\","
                               "\"eventTime\":\"2026-01-01T00:00:00.000001Z\"}"},
         201);
    struct call c = {.path = NS "events/e"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "apiVersion"), "v1");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "message"), "hello");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "involvedObject.name"), "p");
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "reportingComponent"), "me");
    call_fini(&c);
    c = (struct call){.path = "/apis/events.k8s.io/v1/namespaces/default/events"};
    expect(&f, &c, 200);
    const struct bh_json *e = bh_json_at(bh_json_get(reply_json(&c), "items"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(e, "note"), "hello");
    call_fini(&c);
    just(&f,
         (struct call){.method = "POST",
                       .path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
                       .body =
                           "{\"metadata\":{\"name\":\"h\"},\"spec\":{\"scaleTargetRef\":{\"kind\":"
                           "\"Deployment\",\"name\":\"d\"},\"maxReplicas\":3,"
                           "\"targetCPUUtilizationPercentage\":70}}"},
         201);
    c = (struct call){.path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h"};
    expect(&f, &c, 200);
    const struct bh_json *m = bh_json_at(bh_json_path(reply_json(&c), "spec.metrics"), 0);
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_path(m, "resource.target"), "averageUtilization", 0),
                    70);
    call_fini(&c);
    c = (struct call){.path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h"};
    expect(&f, &c, 200);
    CU_ASSERT_EQUAL(
        bh_json_get_i64(bh_json_get(reply_json(&c), "spec"), "targetCPUUtilizationPercentage", 0),
        70);
    call_fini(&c);
    fixture_fini(&f);
}

static void test_discovery(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    struct call c = {.path = "/apis",
                     .accept = "application/json;g=apidiscovery.k8s.io;v=v2;as="
                               "APIGroupDiscoveryList,application/json"};
    expect(&f, &c, 200);
    CU_ASSERT(reply_header(&c, "Content-Type: application/json;g=apidiscovery.k8s.io;v=v2;as="
                               "APIGroupDiscoveryList"));
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "APIGroupDiscoveryList");
    const char *etag = strcasestr(bh_buf_str(&c.head), "ETag: ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(etag);
    char header[64];
    snprintf(header, sizeof(header), "If-None-Match: %.18s", etag + 6);
    call_fini(&c);
    c = (struct call){.path = "/apis",
                      .accept = "application/json;g=apidiscovery.k8s.io;v=v2;as="
                                "APIGroupDiscoveryList,application/json",
                      .headers = {header}};
    expect(&f, &c, 304);
    call_fini(&c);
    c = (struct call){.path = "/api/v1"};
    expect(&f, &c, 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(c.data.p, "\"name\":\"pods/eviction\",\"singularName\":\"\","
                                            "\"namespaced\":true,\"group\":\"policy\""));
    /* As kube-apiserver publishes it for config maps. */
    CU_ASSERT_PTR_NOT_NULL(strstr(c.data.p, "\"storageVersionHash\":\"qFsyl6wFWjQ=\""));
    call_fini(&c);
    c = (struct call){.path = "/apis"};
    expect(&f, &c, 200);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "kind"), "APIGroupList");
    call_fini(&c);
    just(&f, (struct call){.path = "/apis/"}, 200);
    just(&f, (struct call){.path = "/apis/apps"}, 200);
    just(&f, (struct call){.path = "/apis/apps/v1"}, 200);
    just(&f, (struct call){.path = "/apis/nope/v1"}, 404);
    fixture_fini(&f);
}

static void test_openapi(void)
{
    struct fixture f;
    char path[200];
    fixture_init(&f, NULL, true);
    struct call c = {.path = "/openapi/v3"};
    expect(&f, &c, 200);
    const struct bh_json *doc = bh_json_get(bh_json_get(reply_json(&c), "paths"), "apis/apps/v1");
    snprintf(path, sizeof(path), "%s", bh_json_get_str(doc, "serverRelativeURL"));
    call_fini(&c);
    c = (struct call){.path = path};
    expect(&f, &c, 200);
    CU_ASSERT(reply_header(&c, "Cache-Control: public, immutable"));
    CU_ASSERT_PTR_NOT_NULL(strstr(c.data.p, "\"fieldValidation\""));
    call_fini(&c);
    just(&f, (struct call){.path = "/openapi/v3/apis/apps/v1?hash=0"}, 301);
    c = (struct call){.path = "/openapi/v2",
                      .accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"};
    expect(&f, &c, 200);
    CU_ASSERT(reply_header(
        &c, "Content-Type: application/com.github.proto-openapi.spec.v2.v1.0+protobuf"));
    CU_ASSERT_EQUAL(memcmp(c.data.p,
                           "\x0a\x03"
                           "2.0",
                           5),
                    0);
    call_fini(&c);
    fixture_fini(&f);
}

static void test_reviews_and_misc(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    struct call c = {.method = "POST",
                     .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                     .body = "{\"spec\":{\"resourceAttributes\":{\"verb\":\"get\"}}}"};
    expect(&f, &c, 201);
    CU_ASSERT(bh_json_get_bool(bh_json_get(reply_json(&c), "status"), "allowed", false));
    call_fini(&c);
    c = (struct call){.path = "/version"};
    expect(&f, &c, 200);
    CU_ASSERT_EQUAL(strncmp(reply_str(&c, "gitVersion"), "v1.36.0", 7), 0);
    call_fini(&c);
    just(&f, (struct call){.path = "/readyz"}, 200);
    just(&f, (struct call){.path = "/livez?verbose"}, 200);
    just(&f, (struct call){.path = "/healthz/ping"}, 200);
    c = (struct call){.path = "/metrics"};
    expect(&f, &c, 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(c.data.p, "berth_simulator_requests_total{"));
    call_fini(&c);
    create_pod(&f, "p");
    just(&f, (struct call){.path = NS "pods/p/log"}, 400); /* still Pending */
    fixture_fini(&f);
}

static void test_who_may_talk(void)
{
    struct fixture f;
    fixture_init(&f, NULL, true);
    char own[64];
    snprintf(own, sizeof(own), "Origin: http://127.0.0.1:%u", bh_sim_port(f.s));
    const char *body = "{\"metadata\":{\"generateName\":\"x-\"}}";
    just(&f, (struct call){.path = CMS, .headers = {"Host: evil.example"}}, 403);
    just(&f, (struct call){.path = CMS, .headers = {"Host: localhost:1"}}, 200);
    just(&f, (struct call){.path = CMS, .headers = {"Host: [::1]:1"}}, 200);
    just(&f,
         (struct call){.method = "POST",
                       .path = CMS,
                       .body = body,
                       .headers = {"Origin: http://evil.example"}},
         403);
    just(&f, (struct call){.method = "POST", .path = CMS, .body = body, .headers = {own}}, 201);
    fixture_fini(&f);
    const struct bh_sim_options o = {.no_controllers = true,
                                     .first_revision = 100,
                                     .tokens =
                                         "# comment\nsecret,me,1,\"system:masters\"\nother\n"};
    fixture_init(&f, &o, true);
    just(&f, (struct call){.path = CMS}, 401);
    just(&f, (struct call){.path = "/readyz"}, 200);
    just(&f, (struct call){.path = CMS, .headers = {"Authorization: Bearer secret"}}, 200);
    just(&f, (struct call){.path = CMS, .headers = {"Authorization: Bearer other"}}, 200);
    just(&f, (struct call){.path = CMS, .headers = {"Authorization: Bearer secre"}}, 401);
    just(&f, (struct call){.path = CMS, .headers = {"Authorization: Bearer secretsecret"}}, 401);
    fixture_fini(&f);
    struct bh_sim *s = NULL;
    struct bh_err err;
    uv_loop_t loop;
    uv_loop_init(&loop);
    const struct bh_sim_options open_door = {.address = "0.0.0.0"};
    CU_ASSERT(bh_sim_new(&loop, &open_door, &s, &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "not the loopback"));
    uv_loop_close(&loop);
    struct bh_selfsigned t;
    CU_ASSERT_EQUAL_FATAL(bh_sim_tls_make("0.0.0.0", &t, NULL), 0);
    const struct bh_sim_options guarded = {.no_controllers = true,
                                           .first_revision = 100,
                                           .address = "0.0.0.0",
                                           .tokens = "secret",
                                           .tls_cert_pem = t.cert_pem,
                                           .tls_key_pem = t.key_pem};
    fixture_init(&f, &guarded, true);
    just(&f,
         (struct call){.path = CMS,
                       .ca_pem = t.ca_pem,
                       .headers = {"Host: some.name", "Authorization: Bearer secret"}},
         200);
    just(&f, (struct call){.path = CMS, .ca_pem = t.ca_pem, .headers = {"Host: some.name"}}, 401);
    fixture_fini(&f);
    bh_selfsigned_fini(&t);
}

static void test_tls(void)
{
    struct fixture f;
    struct bh_selfsigned t;
    CU_ASSERT_EQUAL_FATAL(bh_sim_tls_make("127.0.0.1", &t, NULL), 0);
    const struct bh_sim_options o = {.no_controllers = true,
                                     .first_revision = 100,
                                     .tls_cert_pem = t.cert_pem,
                                     .tls_key_pem = t.key_pem};
    fixture_init(&f, &o, true);
    just(&f, (struct call){.path = "/version", .ca_pem = t.ca_pem}, 200);
    fixture_fini(&f);
    bh_selfsigned_fini(&t);
}

static void test_faults(void)
{
    struct fixture f;
    const struct bh_sim_options o = {.no_controllers = true,
                                     .first_revision = 100,
                                     .faults = "429-every=3,lose-every=2,delay-ms=5"};
    fixture_init(&f, &o, true);
    just(&f, (struct call){.path = CMS}, 200);
    just(&f, (struct call){.path = CMS}, 200);
    struct call c = {.path = CMS};
    expect(&f, &c, 429);
    CU_ASSERT(reply_header(&c, "Retry-After: 1"));
    call_fini(&c);
    just(&f,
         (struct call){.method = "POST", .path = CMS, .body = "{\"metadata\":{\"name\":\"a\"}}"},
         201);
    c = (struct call){.method = "POST", .path = CMS, .body = "{\"metadata\":{\"name\":\"b\"}}"};
    call(&f, &c);
    CU_ASSERT_NOT_EQUAL(c.result, CURLE_OK); /* done, but the answer is lost */
    CU_ASSERT_PTR_NOT_NULL(get(&f, "configmaps", "default", "b"));
    call_fini(&c);
    fixture_fini(&f);
    const struct bh_sim_options cut = {
        .no_controllers = true, .first_revision = 100, .faults = "truncate-every=1"};
    fixture_init(&f, &cut, true);
    c = (struct call){.path = CMS};
    call(&f, &c);
    CU_ASSERT_NOT_EQUAL(c.result, CURLE_OK);
    CU_ASSERT(c.data.n > 0);
    call_fini(&c);
    fixture_fini(&f);
    struct bh_sim *s = NULL;
    const struct bh_sim_options bad = {.faults = "explode=1"};
    uv_loop_t loop;
    struct bh_err err;
    uv_loop_init(&loop);
    CU_ASSERT(bh_sim_new_bare(&loop, &bad, &s, &err) < 0);
    bh_loop_drain_close(&loop);
}

/* A client that does not wait for its answer. */
static void ask_and_leave(struct fixture *f, const char *path, const char *body)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(bh_sim_port(f->s)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    BH_CLEANUP(bh_freep)
    char *text = bh_asprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                             "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                             path, strlen(body), body);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    CU_ASSERT_EQUAL(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
    close(fd);
}

static void test_binding_faults(void)
{
    static const char body[] = "{\"target\":{\"name\":\"n1\"}}";
    const struct call bind = {.method = "POST", .path = NS "pods/p/binding", .body = body};
    static const struct {
        const char *spec;
        int code;
    } lies[] = {{"bind-201-every=1", 201},
                {"bind-404-every=1", 404},
                {"bind-409-every=1", 409},
                {"bind-410-every=1", 410},
                {"bind-422-every=1", 422}};
    struct fixture f;
    const struct bh_sim_options o = {
        .no_controllers = true, .first_revision = 100, .faults = "bind-404-every=2"};

    fixture_init(&f, &o, true);
    for (const char *p = "pqrs"; *p; p++)
        create_pod(&f, (const char[]){*p, '\0'});
    just(&f, (struct call){.method = "POST", .path = NS "pods/q/binding", .body = body}, 201);
    just(&f, bind, 404);
    for (size_t i = 0; i < BH_ARRAY_LEN(lies); i++) {
        CU_ASSERT_EQUAL(bh_sim_set_faults(f.s, lies[i].spec, NULL), 0);
        just(&f, bind, lies[i].code);
        CU_ASSERT_STRING_EQUAL(get(&f, "pods", "default", "p")->node_name, "");
    }
    /* Held, then done and answered as without a fault: also when the faults are over meanwhile. */
    CU_ASSERT_EQUAL(bh_sim_set_faults(f.s, "bind-late-ms=20,bind-answer-ms=20", NULL), 0);
    just(&f, bind, 201);
    CU_ASSERT_STRING_EQUAL(get(&f, "pods", "default", "p")->node_name, "n1");
    just(&f, bind, 409);
    /* Its client leaves: what was held happens, but for what is held at the server's end. */
    CU_ASSERT_EQUAL(bh_sim_set_faults(f.s, "bind-late-ms=20", NULL), 0);
    ask_and_leave(&f, NS "pods/r/binding", body);
    while (!*get(&f, "pods", "default", "r")->node_name)
        uv_run(&f.loop, UV_RUN_ONCE);
    CU_ASSERT_STRING_EQUAL(get(&f, "pods", "default", "r")->node_name, "n1");
    CU_ASSERT_EQUAL(bh_sim_set_faults(f.s, "bind-late-ms=600000", NULL), 0);
    ask_and_leave(&f, NS "pods/s/binding", body);
    just(&f, (struct call){.path = NS "pods/s"}, 200);
    CU_ASSERT_STRING_EQUAL(get(&f, "pods", "default", "s")->node_name, "");
    fixture_fini(&f);
}

BH_TESTS("simulator/http", {"create, read, update, delete", test_crud},
         {"wrong requests get the right codes", test_bad_requests},
         {"bodies with too many members are refused", test_wide_bodies},
         {"names of field managers", test_field_managers},
         {"objects that grow", test_objects_that_grow}, {"deep bodies", test_deep_bodies},
         {"a dry run commits nothing", test_dry_run},
         {"all pages of a list show one moment", test_pages_show_one_moment},
         {"a lost page is answered with 410", test_lost_page_is_410},
         {"label and field selectors select", test_selectors},
         {"lists honour resourceVersion and its match", test_list_versions},
         {"tables and partial metadata", test_tables}, {"?timeout= that is none", test_timeout},
         {"protobuf goes to those who ask for nothing else or say they know",
          test_who_gets_protobuf},
         {"a protobuf list has items, version and continue", test_protobuf_list},
         {"protobuf bodies are understood", test_protobuf_bodies},
         {"patches of three kinds", test_patches},
         {"server-side apply owns, conflicts, forces and removes", test_apply},
         {"apply does not own a status that it does not write", test_apply_status},
         {"YAML bodies are understood", test_yaml_body},
         {"answers come as YAML, mistakes with their line", test_yaml_answers},
         {"unknown and repeated fields are refused, or warned of", test_field_validation},
         {"metrics come from annotations and requests", test_metrics_api},
         {"bindings are requested in two ways", test_binding_request},
         {"the scale sub-resource reads and writes replicas", test_scale},
         {"a namespace without finalizers goes", test_finalize_namespace},
         {"a collection is deleted by selector", test_delete_collection},
         {"events and autoscalers have two representations", test_other_representations},
         {"discovery in both forms, with ETag", test_discovery},
         {"openapi has what kubectl looks for", test_openapi},
         {"reviews, version, health, metrics, logs", test_reviews_and_misc},
         {"only the loopback's names, own origins and known tokens may talk", test_who_may_talk},
         {"TLS with the certificate made at start", test_tls},
         {"faults happen as specified", test_faults},
         {"bindings are held, or answered falsely", test_binding_faults})
