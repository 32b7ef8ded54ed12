/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_lists.c - long lists, sent a portion at a time, against their pages
 */
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/simulator/http_client.h"

#define MANY 2500
#define PODS "/api/v1/namespaces/default/pods"

/* Pods of three namespaces, created in no order; those of "default" are asked for. */
static void fill(struct fixture *f)
{
    char text[3000], filler[2000];
    /* The clock stands still, so that ages in tables are the same in each answer. */
    const struct bh_sim_options o = {
        .no_controllers = true, .first_revision = 100, .manual_clock = true};
    fixture_init(f, &o, true);
    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    CU_ASSERT_EQUAL(create(f, "namespaces", "", "{\"metadata\":{\"name\":\"a\"}}", NULL), 0);
    CU_ASSERT_EQUAL(create(f, "namespaces", "", "{\"metadata\":{\"name\":\"z\"}}", NULL), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"p%04d\",\"annotations\":{\"a\":\"%s\"}},\"spec\":{"
                 "\"nodeName\":\"n%d\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
                 i * 7919 % MANY, filler, i % 10);
        CU_ASSERT_EQUAL(create(f, "pods", "default", text, NULL), 0);
        bh_arena_reset(&f->a);
    }
    const char *one = "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"containers\":[{\"name\":\"c\","
                      "\"image\":\"i\"}]}}";
    CU_ASSERT_EQUAL(create(f, "pods", "a", one, NULL), 0);
    CU_ASSERT_EQUAL(create(f, "pods", "z", one, NULL), 0);
}

static void fetch(struct fixture *f, struct call *c, const char *accept, const char *path)
{
    *c = (struct call){.path = path, .accept = accept};
    call(f, c);
    CU_ASSERT_EQUAL(c->code, 200);
    CU_ASSERT_EQUAL(c->result, CURLE_OK);
}

/* The list with its items (or rows) from pages must be the list in one piece, to the byte. */
static void same_as_pages(const char *accept, const char *items)
{
    struct fixture f;
    struct call whole, page;
    struct bh_json *all, *sum = NULL;
    char path[2000] = PODS "?limit=900";
    int pages = 0;

    fill(&f);
    fetch(&f, &whole, accept, PODS);
    all = reply_json(&whole);
    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    CU_ASSERT_EQUAL(bh_json_get(all, items)->c.n, MANY);
    for (const char *token = path; *token && pages < 10; pages++) {
        fetch(&f, &page, accept, path);
        struct bh_json *v = reply_json(&page);
        token = reply_str(&page, "metadata.continue");
        if (*token)
            CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_get(v, "metadata"), "remainingItemCount", 0),
                            MANY - 900 * (pages + 1));
        snprintf(path, sizeof(path), PODS "?limit=900&continue=%s", token);
        v = bh_json_clone(&f.a, v);
        if (!sum)
            sum = v;
        else
            for (struct bh_json *i = bh_json_get(v, items)->c.first, *next; i; i = next) {
                next = i->next;
                bh_json_remove(bh_json_get(v, items), i);
                bh_json_push(bh_json_get(sum, items), i);
            }
        call_fini(&page);
    }
    CU_ASSERT_EQUAL(pages, 3);
    bh_json_unset(bh_json_get(sum, "metadata"), "continue");
    bh_json_unset(bh_json_get(sum, "metadata"), "remainingItemCount");
    struct bh_buf a = {0}, b = {0};
    bh_json_write(&a, all);
    bh_json_write(&b, sum);
    CU_ASSERT(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
    bh_buf_fini(&a);
    bh_buf_fini(&b);
    call_fini(&whole);
    fixture_fini(&f);
}

static void test_json(void)
{
    same_as_pages("application/json", "items");
}

static void test_table(void)
{
    same_as_pages("application/json;as=Table;g=meta.k8s.io;v=v1", "rows");
}

static void test_metadata(void)
{
    same_as_pages("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "items");
}

struct read {
    size_t n;
    bool ordered;
};

static int on_item(void *arg, const void *p, size_t n, bool is_pb)
{
    struct read *r = arg;
    char name[16];
    K8s__Pod *pod = is_pb ? k8s__pod__unpack(NULL, n, p) : NULL;
    snprintf(name, sizeof(name), "p%04zu", r->n++);
    r->ordered = r->ordered && pod && bh_streq(pod->metadata->name, name);
    if (pod)
        k8s__pod__free_unpacked(pod, NULL);
    return 0;
}

/* Reads the reply as a client does. */
static struct read read_pb(struct fixture *f, const char *path, struct bh_list_meta *meta)
{
    static const char type[] = "application/vnd.kubernetes.protobuf";
    struct call c;
    struct read r = {.ordered = true};
    *meta = (struct bh_list_meta){0};
    fetch(f, &c, type, path);
    struct bh_list_reader *reader = bh_list_reader_new(type, (size_t)64 << 20, on_item, &r);
    CU_ASSERT_EQUAL(bh_list_reader_feed(reader, c.data.p, c.data.n), 0);
    CU_ASSERT_EQUAL(bh_list_reader_finish(reader, meta, NULL), 0);
    bh_list_reader_free(reader);
    call_fini(&c);
    return r;
}

static void test_protobuf(void)
{
    struct fixture f;
    struct bh_list_meta meta;
    char rv[24];

    fill(&f);
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long)bh_sim_revision(f.s));
    struct read r = read_pb(&f, PODS, &meta);
    CU_ASSERT(r.n == MANY && r.ordered);
    CU_ASSERT_STRING_EQUAL(meta.resource_version, rv);
    CU_ASSERT_PTR_NULL(meta.cont);
    r = read_pb(&f, PODS "?limit=10", &meta); /* at once */
    CU_ASSERT(r.n == 10 && r.ordered && meta.cont && meta.remaining == MANY - 10);
    free(meta.cont);
    fixture_fini(&f);
}

static bool has_begun(void *arg)
{
    struct call *c = arg;
    pthread_mutex_lock(&c->lock);
    bool yes = c->data.n > 0;
    pthread_mutex_unlock(&c->lock);
    return yes;
}

/* What is deleted while it is sent is still in it. */
static void test_one_moment(void)
{
    struct fixture f;
    struct call c = {.path = PODS};
    struct bh_sim_objs l;

    fill(&f);
    call_start(&f, &c);
    run_until(&f, has_begun, &c);
    bh_sim_list(f.s, type_of("pods"), "default", &l);
    for (size_t i = 0; i < l.n; i++)
        bh_sim_delete(f.s, type_of("pods"), "default", l.v[i]->name,
                      &(struct bh_sim_delete_options){.grace_s = 0}, NULL);
    bh_sim_objs_fini(&l);
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("pods")), 2);
    run_until(&f, call_is_done, &c);
    CU_ASSERT_EQUAL(c.result, CURLE_OK);
    CU_ASSERT_EQUAL(bh_json_get(reply_json(&c), "items")->c.n, MANY);
    call_fini(&c);
    fixture_fini(&f);
}

static void test_a_client_that_goes(void)
{
    struct fixture f;
    struct call c = {.path = PODS};

    fill(&f);
    call_start(&f, &c);
    run_until(&f, has_begun, &c);
    call_finish(&c); /* cuts the connection */
    CU_ASSERT(c.result != CURLE_OK || c.data.n > 0);
    call_fini(&c);
    for (int i = 0; i < 20; i++)
        uv_run(&f.loop, UV_RUN_NOWAIT);
    fixture_fini(&f);
    fill(&f);
    c = (struct call){.path = PODS};
    call_start(&f, &c);
    run_until(&f, has_begun, &c);
    bh_sim_free(f.s); /* the server goes, in the middle */
    run_until(&f, call_is_done, &c);
    call_fini(&c);
    f.s = NULL;
    fixture_fini(&f);
}

static void test_pods_of_a_node(void)
{
    struct fixture f;
    struct call c;

    fill(&f);
    fetch(&f, &c, "application/json", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn3");
    const struct bh_json *l = bh_json_get(reply_json(&c), "items");
    CU_ASSERT_EQUAL(l->c.n, MANY / 10);
    const char *last = "";
    bh_json_each(o, l) {
        const char *name = bh_json_get_str(bh_json_get(o, "metadata"), "name");
        CU_ASSERT(strcmp(last, name) < 0);
        last = name;
    }
    call_fini(&c);
    fetch(&f, &c, "application/json", "/api/v1/namespaces/a/pods?fieldSelector=spec.nodeName%3Dn3");
    CU_ASSERT_EQUAL(bh_json_get(reply_json(&c), "items")->c.n, 0);
    call_fini(&c);
    fetch(&f, &c, "application/json", "/api/v1/namespaces/a/pods?limit=1");
    CU_ASSERT_EQUAL(bh_json_get(reply_json(&c), "items")->c.n, 1);
    CU_ASSERT_STRING_EQUAL(reply_str(&c, "metadata.continue"), "");
    call_fini(&c);
    fixture_fini(&f);
}

BH_TESTS("simulator/lists", {"JSON", test_json}, {"tables", test_table},
         {"metadata only", test_metadata}, {"protobuf", test_protobuf},
         {"a long list shows one moment", test_one_moment},
         {"clients and servers that go", test_a_client_that_goes},
         {"the pods of a node", test_pods_of_a_node})
