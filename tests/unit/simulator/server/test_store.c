/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_store.c - the store and the rules of writing, without HTTP
 */
#include "common/k8s/quantity.h"
#include "simulator/server/pod.h"
#include "simulator/server/sim_int.h"
#include "tests/unit/simulator/sim_test.h"

#define CM "configmaps"

static int create_cm(struct fixture *f, const char *ns, const char *name)
{
    char text[200];
    snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"k\":\"v\"}}", name);
    return create(f, CM, ns, text, NULL);
}

static int update(struct fixture *f, const char *plural, const char *ns, const char *name,
                  enum bh_sim_sub sub, const char *text)
{
    f->e = (struct bh_sim_error){0};
    return bh_sim_update(f->s, type_of(plural), ns, name, sub, &f->a, parse(f, text), NULL, &f->e);
}

static void test_create_stamps(void)
{
    struct fixture f;
    struct bh_sim_obj *o = NULL;
    fixture_init(&f, NULL, false);
    uint64_t before = bh_sim_revision(f.s);
    CU_ASSERT_EQUAL(create(&f, "deployments", "default",
                           "{\"metadata\":{\"name\":\"d\",\"uid\":\"mine\",\"generation\":7,"
                           "\"deletionTimestamp\":\"2020-01-01T00:00:00Z\"},\"spec\":{\"selector\":"
                           "{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":"
                           "{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                           "\"i\"}]}}},\"status\":{\"replicas\":9}}",
                           &o),
                    0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT_EQUAL(o->rv, before + 1);
    CU_ASSERT_EQUAL(o->generation, 1);
    CU_ASSERT_EQUAL(strlen(o->uid), 36);
    CU_ASSERT_FALSE(o->deleting);
    CU_ASSERT_STRING_EQUAL(field(&f, o, "status.replicas"), "");
    CU_ASSERT_STRING_EQUAL(field(&f, o, "metadata.namespace"), "default");
    CU_ASSERT_STRING_EQUAL(field(&f, o, "apiVersion"), "apps/v1");
    int64_t ns;
    CU_ASSERT_EQUAL(bh_time_parse_ns(field(&f, o, "metadata.creationTimestamp"), &ns), 0);
    bh_sim_obj_unref(o);
    fixture_fini(&f);
}

static void test_create_refusals(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    CU_ASSERT_EQUAL(create_cm(&f, "default", "a"), 0);
    CU_ASSERT_EQUAL(create_cm(&f, "default", "a"), 409);
    CU_ASSERT_STRING_EQUAL(f.e.message, "configmaps \"a\" already exists");
    CU_ASSERT_STRING_EQUAL(f.e.reason, "AlreadyExists");
    CU_ASSERT_EQUAL(create_cm(&f, "nowhere", "a"), 404);
    CU_ASSERT_STRING_EQUAL(f.e.message, "namespaces \"nowhere\" not found");
    CU_ASSERT_EQUAL(create_cm(&f, "default", "Bad"), 422);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "ConfigMap \"Bad\" is invalid: metadata.name: "
                                               "Invalid value: \"Bad\": a lowercase RFC 1123"));
    CU_ASSERT_EQUAL(create(&f, CM, "default", "{\"metadata\":{}}", NULL), 422);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "name or generateName is required"));
    CU_ASSERT_EQUAL(create(&f, CM, "default",
                           "{\"metadata\":{\"name\":\"b\",\"namespace\":\"kube-system\"}}", NULL),
                    400);
    CU_ASSERT_EQUAL(create(&f, CM, "default",
                           "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"5\"}}", NULL),
                    400);
    CU_ASSERT_EQUAL(create(&f, CM, "default",
                           "{\"metadata\":{\"name\":\"b\",\"labels\":{\"a\":\"b c\"}}}", NULL),
                    422);
    CU_ASSERT_EQUAL(f.e.n_causes, 1);
    CU_ASSERT_STRING_EQUAL(f.e.causes[0].type, "FieldValueInvalid");
    CU_ASSERT_EQUAL(
        create(&f, CM, "default", "{\"metadata\":{\"name\":\"b\",\"labels\":[1]}}", NULL), 400);
    fixture_fini(&f);
}

static void test_generate_name(void)
{
    struct fixture f;
    struct bh_sim_obj *o = NULL;
    fixture_init(&f, NULL, false);
    CU_ASSERT_EQUAL(create(&f, CM, "default", "{\"metadata\":{\"generateName\":\"x-\"}}", &o), 0);
    CU_ASSERT_EQUAL(strlen(o->name), 7);
    CU_ASSERT_EQUAL(strspn(o->name + 2, "bcdfghjklmnpqrstvwxz2456789"), 5);
    bh_sim_obj_unref(o);
    fixture_fini(&f);
}

static void test_noop_and_generation(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    static const char text[] =
        "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
        "\"minAvailable\":%d}%s}";
    char t[300];
    snprintf(t, sizeof(t), text, 1, "");
    CU_ASSERT_EQUAL(create(&f, "poddisruptionbudgets", "default", t, NULL), 0);
    uint64_t rv = get(&f, "poddisruptionbudgets", "default", "b")->rv;
    /* the same again, members in another order */
    CU_ASSERT_EQUAL(update(&f, "poddisruptionbudgets", "default", "b", BH_SIM_MAIN,
                           "{\"spec\":{\"minAvailable\":1,\"selector\":{\"matchLabels\":{\"a\":"
                           "\"b\"}}},\"metadata\":{\"name\":\"b\"}}"),
                    0);
    CU_ASSERT_EQUAL(get(&f, "poddisruptionbudgets", "default", "b")->rv, rv);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), rv);
    /* status through the main resource is ignored */
    snprintf(t, sizeof(t), text, 1, ",\"status\":{\"currentHealthy\":3}");
    CU_ASSERT_EQUAL(update(&f, "poddisruptionbudgets", "default", "b", BH_SIM_MAIN, t), 0);
    CU_ASSERT_EQUAL(bh_sim_revision(f.s), rv);
    /* spec through status is ignored, status is taken, the generation stays */
    snprintf(t, sizeof(t), text, 2, ",\"status\":{\"currentHealthy\":3}");
    CU_ASSERT_EQUAL(update(&f, "poddisruptionbudgets", "default", "b", BH_SIM_STATUS, t), 0);
    struct bh_sim_obj *o = get(&f, "poddisruptionbudgets", "default", "b");
    CU_ASSERT_STRING_EQUAL(field(&f, o, "spec.minAvailable"), "1");
    CU_ASSERT_STRING_EQUAL(field(&f, o, "status.currentHealthy"), "3");
    CU_ASSERT_EQUAL(o->generation, 1);
    CU_ASSERT_EQUAL(o->rv, rv + 1);
    /* a spec change keeps the status and counts up */
    snprintf(t, sizeof(t), text, 2, "");
    CU_ASSERT_EQUAL(update(&f, "poddisruptionbudgets", "default", "b", BH_SIM_MAIN, t), 0);
    o = get(&f, "poddisruptionbudgets", "default", "b");
    CU_ASSERT_EQUAL(o->generation, 2);
    CU_ASSERT_STRING_EQUAL(field(&f, o, "status.currentHealthy"), "3");
    fixture_fini(&f);
}

static void test_update_conflicts(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    create_cm(&f, "default", "a");
    CU_ASSERT_EQUAL(update(&f, CM, "default", "a", BH_SIM_MAIN,
                           "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}"),
                    409);
    CU_ASSERT_STRING_EQUAL(f.e.message,
                           "Operation cannot be fulfilled on configmaps \"a\": the object has been "
                           "modified; please apply your changes to the latest version and try "
                           "again");
    CU_ASSERT_EQUAL(update(&f, CM, "default", "a", BH_SIM_MAIN,
                           "{\"metadata\":{\"name\":\"a\",\"uid\":\"other\"}}"),
                    409);
    CU_ASSERT_EQUAL(update(&f, CM, "default", "a", BH_SIM_MAIN, "{\"metadata\":{\"name\":\"b\"}}"),
                    400);
    CU_ASSERT_EQUAL(
        update(&f, CM, "default", "zz", BH_SIM_MAIN, "{\"metadata\":{\"name\":\"zz\"}}"), 404);
    /* leases are made by PUT when missing */
    CU_ASSERT_EQUAL(update(&f, "leases", "default", "l", BH_SIM_MAIN,
                           "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"me\"}}"),
                    0);
    CU_ASSERT_PTR_NOT_NULL(get(&f, "leases", "default", "l"));
    fixture_fini(&f);
}

static void test_lists_are_ordered(void)
{
    struct fixture f;
    struct bh_sim_objs l;
    fixture_init(&f, NULL, false);
    static const char *const names[] = {"m", "c", "z", "a", "k"};
    for (size_t i = 0; i < 5; i++) {
        create_cm(&f, "default", names[i]);
        create_cm(&f, "kube-system", names[i]);
        if (i == 2) { /* sort in the middle, so that later ones are merged in */
            bh_sim_list(f.s, type_of(CM), NULL, &l);
            CU_ASSERT_EQUAL(l.n, 6);
            bh_sim_objs_fini(&l);
        }
    }
    bh_sim_delete(f.s, type_of(CM), "default", "c", NULL, NULL);
    create_cm(&f, "default", "b");
    bh_sim_list(f.s, type_of(CM), "default", &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 5);
    CU_ASSERT_STRING_EQUAL(l.v[0]->name, "a");
    CU_ASSERT_STRING_EQUAL(l.v[1]->name, "b");
    CU_ASSERT_STRING_EQUAL(l.v[4]->name, "z");
    bh_sim_objs_fini(&l);
    bh_sim_list(f.s, type_of(CM), NULL, &l);
    CU_ASSERT_EQUAL(l.n, 10);
    for (size_t i = 1; i < l.n; i++)
        CU_ASSERT(bh_sim_key_cmp(l.v[i - 1]->ns, l.v[i - 1]->name, l.v[i]->ns, l.v[i]->name) < 0);
    bh_sim_objs_fini(&l);
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of(CM)), 10);
    fixture_fini(&f);
}

/* Random creates and deletes against a plain array. */
static void test_random_against_model(void)
{
    struct fixture f;
    bool model[64] = {false};
    struct bh_rand r;
    fixture_init(&f, NULL, false);
    bh_rand_seed(&r, 7);
    for (int step = 0; step < 4000; step++) {
        unsigned i = (unsigned)bh_rand_below(&r, 64);
        char name[16];
        snprintf(name, sizeof(name), "n%u", i);
        int rc = model[i] ? bh_sim_delete(f.s, type_of(CM), "default", name, NULL, NULL)
                          : create_cm(&f, "default", name);
        CU_ASSERT_EQUAL(rc, 0);
        model[i] = !model[i];
        bh_arena_reset(&f.a);
        if (step % 97 && step != 3999)
            continue;
        struct bh_sim_objs l;
        size_t n = 0;
        for (size_t k = 0; k < 64; k++)
            n += model[k];
        bh_sim_list(f.s, type_of(CM), "default", &l);
        CU_ASSERT_EQUAL(l.n, n);
        for (size_t k = 0; k < l.n; k++)
            CU_ASSERT(model[strtoul(l.v[k]->name + 1, NULL, 10)]);
        bh_sim_objs_fini(&l);
    }
    fixture_fini(&f);
}

static void test_bind(void)
{
    struct fixture f;
    struct bh_sim_objs l;
    fixture_init(&f, NULL, false);
    create_pod(&f, "p");
    struct bh_sim_obj *o = get(&f, "pods", "default", "p");
    CU_ASSERT_STRING_EQUAL(o->phase, "Pending");
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "p", "wrong", "n1", NULL, NULL, &f.e), 409);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "Precondition failed: UID in precondition: wrong"));
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "p", o->uid, "n1", NULL, NULL, NULL), 0);
    o = get(&f, "pods", "default", "p");
    CU_ASSERT_STRING_EQUAL(o->node_name, "n1");
    CU_ASSERT_EQUAL(o->generation, 1);
    const struct bh_json *c =
        bh_json_at(bh_json_path(bh_sim_obj_tree(&f.a, o), "status.conditions"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(c, "type"), "PodScheduled");
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(c, "status"), "True");
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "p", NULL, "n2", NULL, NULL, &f.e), 409);
    CU_ASSERT_STRING_EQUAL(f.e.message,
                           "Operation cannot be fulfilled on pods/binding \"p\": pod p "
                           "is already assigned to node \"n1\"");
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "q", NULL, "n2", NULL, NULL, NULL), 404);
    bh_sim_pods_on_node(f.s, "n1", &l);
    CU_ASSERT_EQUAL(l.n, 1);
    bh_sim_objs_fini(&l);
    bh_sim_pods_on_node(f.s, "", &l);
    CU_ASSERT_EQUAL(l.n, 0);
    bh_sim_objs_fini(&l);
    fixture_fini(&f);
}

static void test_bind_gated_and_deleted(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    create(&f, "pods", "default",
           "{\"metadata\":{\"name\":\"g\"},\"spec\":{\"schedulingGates\":[{\"name\":\"a\"}],"
           "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
           NULL);
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "g", NULL, "n", NULL, NULL, &f.e), 409);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "pod g has non-empty .spec.schedulingGates"));
    create(&f, "pods", "default",
           "{\"metadata\":{\"name\":\"d\",\"finalizers\":[\"a.b/c\"]},\"spec\":{\"containers\":"
           "[{\"name\":\"c\",\"image\":\"i\"}]}}",
           NULL);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("pods"), "default", "d", NULL, NULL), 0);
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_bind(f.s, "default", "d", NULL, "n", NULL, NULL, &f.e), 409);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(f.e.message, "pod d is being deleted, cannot be assigned to a host"));
    fixture_fini(&f);
}

static bool drop_finalizers(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    (void)arg;
    (void)a;
    return bh_json_unset(bh_json_get(obj, "metadata"), "finalizers");
}

static void test_delete_waits(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    const struct bh_sim_type *pods = type_of("pods");
    /* an unassigned pod goes at once, a bound one waits for its kubelet */
    create_pod(&f, "a");
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "a", NULL, NULL), 0);
    CU_ASSERT_PTR_NULL(get(&f, "pods", "default", "a"));
    create_pod(&f, "b");
    bh_sim_bind(f.s, "default", "b", NULL, "n", NULL, NULL, NULL);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "b", NULL, NULL), 0);
    struct bh_sim_obj *o = get(&f, "pods", "default", "b");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    CU_ASSERT(o->deleting);
    CU_ASSERT_STRING_EQUAL(field(&f, o, "metadata.deletionGracePeriodSeconds"), "30");
    uint64_t rv = o->rv;
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "b", NULL, NULL), 0);
    CU_ASSERT_EQUAL(get(&f, "pods", "default", "b")->rv, rv);
    const struct bh_sim_delete_options wrong = {.grace_s = 0, .uid = "other"};
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "b", &wrong, &f.e), 409);
    const struct bh_sim_delete_options now = {.grace_s = 0};
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "b", &now, NULL), 0);
    /* three hundred years, and for ever: neither is over already */
    create(&f, "pods", "default",
           "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"nodeName\":\"n\","
           "\"terminationGracePeriodSeconds\":"
           "9223372036854775807,\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
           NULL);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "d", NULL, NULL), 0);
    CU_ASSERT_STRING_EQUAL(field(&f, get(&f, "pods", "default", "d"), "metadata.deletionTimestamp"),
                           "9999-12-31T23:59:59Z");
    const struct bh_sim_delete_options long_time = {.grace_s = 9500000000};
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "d", &long_time, NULL), 0);
    CU_ASSERT(strcmp(field(&f, get(&f, "pods", "default", "d"), "metadata.deletionTimestamp"),
                     "2327") > 0);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, pods, "default", "d", &now, NULL), 0);
    CU_ASSERT_PTR_NULL(get(&f, "pods", "default", "b"));
    /* finalizers hold until they are taken away */
    create(&f, CM, "default", "{\"metadata\":{\"name\":\"c\",\"finalizers\":[\"x.y/z\"]}}", NULL);
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of(CM), "default", "c", NULL, NULL), 0);
    CU_ASSERT(get(&f, CM, "default", "c")->deleting);
    CU_ASSERT_EQUAL(bh_sim_edit(f.s, type_of(CM), "default", "c", NULL, BH_SIM_WHOLE,
                                drop_finalizers, NULL, NULL, NULL),
                    0);
    CU_ASSERT_PTR_NULL(get(&f, CM, "default", "c"));
    fixture_fini(&f);
}

static void test_namespace_life(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    const struct bh_sim_type *ns = type_of("namespaces");
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, ns, "", "default", NULL, &f.e), 403);
    create(&f, "namespaces", "", "{\"metadata\":{\"name\":\"t\"}}", NULL);
    CU_ASSERT_STRING_EQUAL(get(&f, "namespaces", "", "t")->phase, "Active");
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, ns, "", "t", NULL, NULL), 0);
    CU_ASSERT_STRING_EQUAL(get(&f, "namespaces", "", "t")->phase, "Terminating");
    CU_ASSERT_EQUAL(create_cm(&f, "t", "a"), 403);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.e.message, "because it is being terminated"));
    CU_ASSERT_STRING_EQUAL(f.e.causes[0].type, "NamespaceTerminating");
    fixture_fini(&f);
}

static void test_owner_index(void)
{
    struct fixture f;
    struct bh_sim_objs l;
    fixture_init(&f, NULL, false);
    create_cm(&f, "default", "owner");
    const char *uid = bh_arena_strdup(&f.a, get(&f, CM, "default", "owner")->uid);
    char text[400];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"kid-%d\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                 "\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":\"%s\",\"controller\":%s}]}}",
                 i, uid, i ? "true" : "false");
        CU_ASSERT_EQUAL(create(&f, i == 2 ? "secrets" : CM, "default", text, NULL), 0);
    }
    bh_sim_owned_by(f.s, uid, NULL, &l);
    CU_ASSERT_EQUAL(l.n, 3);
    bh_sim_objs_fini(&l);
    bh_sim_owned_by(f.s, uid, type_of(CM), &l);
    CU_ASSERT_EQUAL(l.n, 2);
    bh_sim_objs_fini(&l);
    CU_ASSERT_STRING_EQUAL(get(&f, CM, "default", "kid-0")->owner_uid, "");
    CU_ASSERT_STRING_EQUAL(get(&f, CM, "default", "kid-1")->owner_uid, uid);
    CU_ASSERT_EQUAL(update(&f, CM, "default", "kid-1", BH_SIM_MAIN,
                           "{\"metadata\":{\"name\":"
                           "\"kid-1\"}}"),
                    0);
    bh_sim_delete(f.s, type_of(CM), "default", "kid-0", NULL, NULL);
    bh_sim_owned_by(f.s, uid, NULL, &l);
    CU_ASSERT_EQUAL(l.n, 1);
    bh_sim_objs_fini(&l);
    fixture_fini(&f);
}

static void test_history_is_bounded(void)
{
    struct fixture f;
    const struct bh_sim_options o = {
        .no_controllers = true, .history_events = 10, .first_revision = 100};
    fixture_init(&f, &o, false);
    struct bh_sim_bucket *b = bh_sim_bucket(f.s, type_of(CM));
    uint64_t first = bh_sim_revision(f.s) + 1;
    for (int i = 0; i < 25; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        create_cm(&f, "default", name);
    }
    CU_ASSERT_EQUAL(b->ring.n, 10);
    CU_ASSERT_EQUAL(b->evicted_rv, first + 14);
    CU_ASSERT_EQUAL(bh_sim_history_at(b, 0)->rv, first + 15);
    CU_ASSERT_EQUAL(bh_sim_history_after(b, first + 20), 6);
    CU_ASSERT_EQUAL(bh_sim_history_after(b, first + 24), 10);
    CU_ASSERT_EQUAL(bh_sim_history_after(b, 0), 0);
    fixture_fini(&f);
}

static void test_frozen_pages(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    struct bh_sim_bucket *b = bh_sim_bucket(f.s, type_of(CM));
    create_cm(&f, "default", "a");
    create_cm(&f, "default", "b");
    uint64_t rv = bh_sim_revision(f.s);
    CU_ASSERT_PTR_NOT_NULL(bh_sim_page_get(f.s, b, rv));
    bh_sim_delete(f.s, type_of(CM), "default", "a", NULL, NULL);
    create_cm(&f, "default", "c");
    const struct bh_sim_objs *l = bh_sim_page_get(f.s, b, rv);
    CU_ASSERT_PTR_NOT_NULL_FATAL(l);
    CU_ASSERT_EQUAL(l->n, 2);
    CU_ASSERT_STRING_EQUAL(l->v[0]->name, "a");
    CU_ASSERT_PTR_NULL(bh_sim_page_get(f.s, b, rv + 1)); /* passed, never frozen */
    CU_ASSERT_PTR_NULL(bh_sim_page_get(f.s, b, bh_sim_revision(f.s) + 1));
    create_pod(&f, "p"); /* other kinds do not age it */
    CU_ASSERT_EQUAL(bh_sim_page_get(f.s, b, rv + 2)->n, 2);
    bh_sim_pages_expire(f.s, 0);
    CU_ASSERT_PTR_NULL(bh_sim_page_get(f.s, b, rv));
    fixture_fini(&f);
}

struct heard {
    struct fixture *f;
    int n[3];
    bool nested;
};

static void listener(void *arg, enum bh_sim_change c, struct bh_sim_obj *old,
                     struct bh_sim_obj *now)
{
    struct heard *h = arg;
    h->n[c]++;
    CU_ASSERT_EQUAL(old == NULL, c == BH_SIM_ADDED);
    if (c == BH_SIM_ADDED && bh_streq(now->name, "first")) {
        int before = h->n[BH_SIM_ADDED];
        create_cm(h->f, "default", "second");
        CU_ASSERT_EQUAL(h->n[BH_SIM_ADDED], before); /* told later, not inside the write */
        h->nested = true;
    }
}

static void test_listeners_run_later(void)
{
    struct fixture f;
    struct heard h = {.f = &f};
    fixture_init(&f, NULL, false);
    bh_sim_listen(f.s, type_of(CM), listener, &h);
    create_cm(&f, "default", "first");
    create_pod(&f, "other-kind");
    CU_ASSERT_EQUAL(h.n[BH_SIM_ADDED], 0);
    bh_sim_drain(f.s);
    CU_ASSERT(h.nested);
    CU_ASSERT_EQUAL(h.n[BH_SIM_ADDED], 2);
    bh_sim_delete(f.s, type_of(CM), "default", "second", NULL, NULL);
    while (uv_run(&f.loop, UV_RUN_NOWAIT) && !h.n[BH_SIM_DELETED])
        ;
    CU_ASSERT_EQUAL(h.n[BH_SIM_DELETED], 1);
    CU_ASSERT_EQUAL(h.n[BH_SIM_MODIFIED], 0);
    fixture_fini(&f);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static void test_timers(void)
{
    struct fixture f;
    int fired = 0, cancelled = 0;
    fixture_init(&f, NULL, false);
    bh_sim_after(f.s, 0, count_call, &fired);
    struct bh_sim_timer *t = bh_sim_after(f.s, 1000000, count_call, &cancelled);
    bh_sim_cancel(t);
    while (!fired)
        uv_run(&f.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(cancelled, 0);
    bh_sim_after(f.s, (int64_t)3600 * 1000000000, count_call,
                 &cancelled); /* freed with the server */
    fixture_fini(&f);
}

static void test_events_count_up(void)
{
    struct fixture f;
    struct bh_sim_objs l;
    fixture_init(&f, NULL, false);
    create_pod(&f, "p");
    for (int i = 0; i < 3; i++)
        bh_sim_event(f.s, get(&f, "pods", "default", "p"), "Normal", "Pulled", "kubelet",
                     "image %s", "x");
    bh_sim_event(f.s, get(&f, "pods", "default", "p"), "Normal", "Pulled", "kubelet", "image y");
    bh_sim_list(f.s, type_of("events"), "default", &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 2);
    const char *counts[] = {field(&f, l.v[0], "count"), field(&f, l.v[1], "count")};
    CU_ASSERT((bh_streq(counts[0], "3") && bh_streq(counts[1], "1")) ||
              (bh_streq(counts[0], "1") && bh_streq(counts[1], "3")));
    CU_ASSERT_STRING_EQUAL(field(&f, l.v[0], "involvedObject.name"), "p");
    bh_sim_objs_fini(&l);
    fixture_fini(&f);
}

static void test_events_expire(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    create_pod(&f, "p");
    for (int i = 0; i < 2500; i++)
        bh_sim_event(f.s, get(&f, "pods", "default", "p"), "Normal", "R", "me", "text %d", i);
    uint64_t rv = bh_sim_revision(f.s);
    bh_sim_event(f.s, get(&f, "pods", "default", "p"), "Normal", "R", "me", "text 7"); /* again */
    bh_sim_event(f.s, get(&f, "pods", "default", "p"), "Normal", "R", "me", "new");
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("events")), 2501);
    bh_sim_events_expire(f.s, rv);
    for (int turn = 0; turn < 1000 && bh_sim_count(f.s, type_of("events")) > 2; turn++)
        uv_run(&f.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("events")), 2);
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("pods")), 1);
    bh_sim_events_tick(f.s); /* the first minutes only take notes */
    CU_ASSERT_EQUAL(bh_sim_count(f.s, type_of("events")), 2);
    fixture_fini(&f);
}

static void make_budget(struct fixture *f, const char *name, int allowed, int observed)
{
    char text[400];
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"minAvailable\":1,\"selector\":"
             "{\"matchLabels\":{\"app\":\"x\"}}}}",
             name);
    CU_ASSERT_EQUAL(create(f, "poddisruptionbudgets", "default", text, NULL), 0);
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"disruptionsAllowed\":%d,"
             "\"currentHealthy\":1,\"desiredHealthy\":1,\"expectedPods\":1,"
             "\"observedGeneration\":%d}}",
             name, allowed, observed);
    CU_ASSERT_EQUAL(update(f, "poddisruptionbudgets", "default", name, BH_SIM_STATUS, text), 0);
}

static bool set_running(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    (void)arg;
    struct bh_json *v = NULL;
    static const char text[] = "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                               "\"status\":\"True\"}]}";
    bh_json_parse(a, text, sizeof(text) - 1, 0, &v, NULL);
    bh_json_set(a, obj, "status", v);
    return true;
}

static void test_eviction(void)
{
    struct fixture f;
    fixture_init(&f, NULL, false);
    create_pod(&f, "p");
    bh_sim_bind(f.s, "default", "p", NULL, "n", NULL, NULL, NULL);
    bh_sim_edit(f.s, type_of("pods"), "default", "p", NULL, BH_SIM_STATUS, set_running, NULL, NULL,
                NULL);
    make_budget(&f, "b", 0, 1);
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_pod_evict(f.s, "default", "p", NULL, false, &f.e), 429);
    CU_ASSERT_STRING_EQUAL(f.e.message,
                           "Cannot evict pod as it would violate the pod's disruption budget.");
    CU_ASSERT_STRING_EQUAL(f.e.causes[0].type, "DisruptionBudget");
    CU_ASSERT_STRING_EQUAL(bh_sim_cause_message(&f.e, 0),
                           "The disruption budget b needs 1 healthy pods and has 1 currently");
    CU_ASSERT_EQUAL(update(&f, "poddisruptionbudgets", "default", "b", BH_SIM_STATUS,
                           "{\"metadata\":{\"name\":\"b\"},\"status\":{\"disruptionsAllowed\":1,"
                           "\"observedGeneration\":1,\"currentHealthy\":1,\"desiredHealthy\":0,"
                           "\"expectedPods\":1}}"),
                    0);
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_pod_evict(f.s, "default", "p", NULL, false, &f.e), 0);
    CU_ASSERT(get(&f, "pods", "default", "p")->deleting);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(get(&f, "pods", "default", "p")->json, "\"reason\":\"EvictionByEvictionAPI\""));
    struct bh_sim_obj *b = get(&f, "poddisruptionbudgets", "default", "b");
    CU_ASSERT_STRING_EQUAL(field(&f, b, "status.disruptionsAllowed"), "0");
    CU_ASSERT_NOT_EQUAL(strlen(field(&f, b, "status.disruptedPods.p")), 0);
    f.e = (struct bh_sim_error){0};
    CU_ASSERT_EQUAL(bh_sim_pod_evict(f.s, "default", "nope", NULL, false, &f.e), 404);
    fixture_fini(&f);
}

BH_TESTS("simulator/store",
         {"create sets uid, version, time and generation and drops status", test_create_stamps},
         {"create refuses what upstream refuses, in its words", test_create_refusals},
         {"generateName gets five safe characters", test_generate_name},
         {"writes that change nothing commit nothing; status and spec keep apart",
          test_noop_and_generation},
         {"updates are refused for another version, uid or name", test_update_conflicts},
         {"lists come in order of namespace and name", test_lists_are_ordered},
         {"random creates and deletes agree with a plain model", test_random_against_model},
         {"binding sets node and condition once", test_bind},
         {"gated and deleted pods are not bound", test_bind_gated_and_deleted},
         {"deletion waits for grace and finalizers", test_delete_waits},
         {"a terminating namespace takes nothing new", test_namespace_life},
         {"objects are found by their owners", test_owner_index},
         {"history keeps the newest and knows what it lost", test_history_is_bounded},
         {"a frozen page keeps its moment", test_frozen_pages},
         {"listeners run after the write, in order", test_listeners_run_later},
         {"timers fire once, or not when cancelled", test_timers},
         {"repeated events count up", test_events_count_up},
         {"events not written for long are removed", test_events_expire},
         {"eviction asks the disruption budget", test_eviction})
