/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/volumebinding/test_assume.c - Reserve takes volumes, Unreserve gives
 * them back, PreBind waits for what comes of the writes
 */
#include <errno.h>

#include "tests/unit/scheduler/plugins/volumebinding/world.h"

#define NO_VOLUME "VolumeBinding/UU: node(s) didn't find available persistent volumes to bind"
#define MS        ((int64_t)1000000)

static struct world w;

/* uid, resourceVersion and annotations of metadata; what follows it. */
static const char *object(const char *name, const char *version, const char *notes,
                          const char *rest)
{
    return bh_arena_printf(&w.a,
                           "{'metadata':{'name':'%s','namespace':'%s','uid':'uid-%s',"
                           "'resourceVersion':'%s','annotations':{%s}},%s}",
                           name, strncmp(name, "pv", 2) ? "ns" : "", name, version, notes, rest);
}

static void claim(const char *name, const char *version, const char *notes, const char *spec)
{
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", name,
                 object(name, version, notes,
                        bh_arena_printf(
                            &w.a, "'spec':{'resources':{'requests':{'storage':'1Gi'}},%s}", spec)),
                 NULL);
}

static const char *volume_json(const char *name, const char *version, const char *spec)
{
    return object(name, version, "",
                  bh_arena_printf(&w.a,
                                  "'spec':{'capacity':{'storage':'2Gi'},'storageClassName':'local',"
                                  "%s},'status':{'phase':'Available'}",
                                  spec));
}

static void volume(const char *name, const char *version, const char *spec)
{
    world_object(&w, BH_KIND_PERSISTENTVOLUME, "", name, volume_json(name, version, spec), NULL);
}

#define IN_ZONE(z)                                                                                 \
    "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone',"         \
    "'operator':'In','values':['" z "']}]}]}}"

/* Nodes a and b; claim l may get pv-a on a, claim d is provisioned. */
static void begin(void)
{
    world_begin(&w);
    world_node(&w, "a", "'zone':'za'");
    world_node(&w, "b", "'zone':'zb'");
    world_class(&w, "local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", "");
    world_class(&w, "wait", "csi.x", "WaitForFirstConsumer", "");
    claim("l", "11", "", "'storageClassName':'local'");
    claim("d", "12", "'x':'y'", "'storageClassName':'wait'");
    volume("pv-a", "13", IN_ZONE("za"));
}

static bh_sym sym(const char *name)
{
    return bh_sym_internc(bh_engine_symtab(w.e), name);
}

static struct bh_str uid_of(const struct bh_pending *p)
{
    return bh_rec_text(p->pod, p->pod->uid);
}

static const void *get(enum bh_kind kind, const char *ns, const char *name)
{
    return bh_engine_get_object(w.e, kind, ns, name);
}

static const char *note(const K8s__ObjectMeta *m, const char *key)
{
    for (size_t i = 0; i < m->n_annotations; i++)
        if (bh_streq(m->annotations[i]->key, key))
            return m->annotations[i]->value;
    return "-";
}

static void test_static(void)
{
    begin();
    struct bh_pending p = world_pod(&w, "p", "", CLAIM("l"));
    uint32_t n = 9;
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(w.e, uid_of(&p), &n));
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &p, sym("a")));
    const struct bh_write *v = bh_engine_prebind_work(w.e, uid_of(&p), &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_EQUAL(v->what, BH_WRITE_VOLUME_CLAIM);
    CU_ASSERT_EQUAL(v->kind, BH_KIND_PERSISTENTVOLUME);
    CU_ASSERT_STRING_EQUAL(v->name, "pv-a");
    CU_ASSERT_STRING_EQUAL(v->uid, "uid-pv-a");
    CU_ASSERT_STRING_EQUAL(v->resource_version, "13");
    const K8s__PersistentVolume *pv = (const void *)v->object;
    const K8s__ObjectReference *r = pv->spec->claimref;
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_STRING_EQUAL(r->kind, "PersistentVolumeClaim");
    CU_ASSERT_STRING_EQUAL(r->apiversion, "v1");
    CU_ASSERT_STRING_EQUAL(r->namespace_, "ns");
    CU_ASSERT_STRING_EQUAL(r->name, "l");
    CU_ASSERT_STRING_EQUAL(r->uid, "uid-l");
    CU_ASSERT_STRING_EQUAL(r->resourceversion, "11");
    CU_ASSERT_STRING_EQUAL(note(pv->metadata, "pv.kubernetes.io/bound-by-controller"), "yes");
    /* Others see the volume as the claim's, the claim's own pods as reserved for it. */
    claim("m", "14", "", "'storageClassName':'local'");
    WORLD_EXPECT(&w, "q", CLAIM("m"), "a=" NO_VOLUME "; b=" NO_VOLUME "; ");
    WORLD_EXPECT(&w, "q", CLAIM("l"), "b=" NO_VOLUME "; ");
    bh_engine_unreserve(w.e, &p, sym("a"));
    WORLD_EXPECT(&w, "q", CLAIM("m"), "b=" NO_VOLUME "; ");
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(w.e, uid_of(&p), &n));
    bh_engine_unreserve(w.e, &p, sym("a")); /* again: nothing */
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

static void test_user_bound(void)
{
    uint32_t n;

    begin();
    volume("pv-a", "13", IN_ZONE("za") ",'claimRef':{'namespace':'ns','name':'l'}");
    struct bh_pending p = world_pod(&w, "p", "", CLAIM("l"));
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &p, sym("a")));
    const struct bh_write *v = bh_engine_prebind_work(w.e, uid_of(&p), &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    const K8s__PersistentVolume *pv = (const void *)v->object;
    CU_ASSERT_STRING_EQUAL(pv->spec->claimref->uid, "uid-l"); /* completed, not marked as ours */
    CU_ASSERT_STRING_EQUAL(note(pv->metadata, "pv.kubernetes.io/bound-by-controller"), "-");
    bh_engine_unreserve(w.e, &p, sym("a"));
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

static void test_dynamic(void)
{
    uint32_t n;

    begin();
    struct bh_pending p = world_pod(&w, "p", "", CLAIM("d") "," CLAIM("l"));
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &p, sym("a")));
    const struct bh_write *v = bh_engine_prebind_work(w.e, uid_of(&p), &n);
    CU_ASSERT_EQUAL_FATAL(n, 2);
    CU_ASSERT_EQUAL(v[0].what, BH_WRITE_VOLUME_CLAIM); /* volumes are written first */
    CU_ASSERT_EQUAL(v[1].what, BH_WRITE_SELECTED_NODE);
    CU_ASSERT_STRING_EQUAL(v[1].namespace_, "ns");
    CU_ASSERT_STRING_EQUAL(v[1].name, "d");
    const K8s__PersistentVolumeClaim *c = (const void *)v[1].object;
    CU_ASSERT_STRING_EQUAL(note(c->metadata, "volume.kubernetes.io/selected-node"), "a");
    CU_ASSERT_STRING_EQUAL(note(c->metadata, "x"), "y");
    WORLD_EXPECT(&w, "q", CLAIM("d"), "b=" NO_VOLUME "; ");
    bh_engine_unreserve(w.e, &p, sym("a"));
    WORLD_EXPECT(&w, "q", CLAIM("d"), "");
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

/* What is assumed goes when the API server tells another version, and stays when it tells the same
 * again. */
static void test_newer_version(void)
{
    begin();
    claim("m", "14", "", "'storageClassName':'local'");
    struct bh_pending p = world_pod(&w, "p", "", CLAIM("l"));
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &p, sym("a")));
    volume("pv-a", "13", IN_ZONE("za"));
    WORLD_EXPECT(&w, "q", CLAIM("m"), "a=" NO_VOLUME "; b=" NO_VOLUME "; ");
    bh_engine_objects_begin(w.e); /* a new feed tells everything again */
    volume("pv-a", "13", IN_ZONE("za"));
    claim("m", "14", "", "'storageClassName':'local'");
    world_class(&w, "local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer", "");
    bh_engine_objects_end(w.e);
    WORLD_EXPECT(&w, "q", CLAIM("m"), "a=" NO_VOLUME "; b=" NO_VOLUME "; ");
    volume("pv-a", "15", IN_ZONE("za"));
    WORLD_EXPECT(&w, "q", CLAIM("m"), "b=" NO_VOLUME "; ");
    bh_engine_unreserve(w.e, &p, sym("a")); /* nothing of it is left */
    WORLD_EXPECT(&w, "q", CLAIM("m"), "b=" NO_VOLUME "; ");
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

static void test_nothing_to_do(void)
{
    uint32_t n;

    begin();
    world_volume(&w, "pv", "", "'storageClassName':'wait'");
    world_bound_claim(&w, "bound", "pv");
    struct bh_pending bound = world_pod(&w, "p", "", CLAIM("bound"));
    struct bh_pending without = world_pod(&w, "r", "", "{'name':'v','emptyDir':{}}");
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &bound, sym("a")));
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &without, sym("a")));
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(w.e, uid_of(&bound), &n));
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(w.e, uid_of(&without), &n));
    bh_engine_shape_unref(w.e, bound.shape);
    bh_engine_shape_unref(w.e, without.shape);
    world_end(&w);
}

/* Claim l is on pv-a, claim d is provisioned, both not written yet. */
static struct bh_pending reserve_both(void)
{
    begin();
    struct bh_pending p = world_pod(&w, "p", "", CLAIM("l") "," CLAIM("d"));
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &p, sym("a")));
    return p;
}

static void written(const struct bh_pending *p, uint32_t i, enum bh_kind kind, const char *json)
{
    struct bh_buf b = {0};

    bh_pb_pack(&b, world_read(&w, &bh_kinds[kind], json));
    CU_ASSERT_EQUAL(bh_engine_prebind_written(w.e, uid_of(p), i, bh_buf_str(&b), b.n, NULL), 0);
    bh_buf_fini(&b);
}

#define EXPECT_CHECK(p, now, state, want)                                                          \
    do {                                                                                           \
        const char *text_;                                                                         \
        enum bh_prebind_state s_ = bh_engine_prebind_check(w.e, (p), sym("a"), 0, (now), &text_);  \
        CU_ASSERT_EQUAL(s_, (state));                                                              \
        if (s_ == BH_PREBIND_FAILED)                                                               \
            CU_ASSERT_STRING_EQUAL(text_, "running PreBind plugin \"VolumeBinding\": binding "     \
                                          "volumes: " want);                                       \
    } while (0)
#define WAITS(p)      EXPECT_CHECK(p, MS, BH_PREBIND_WAITS, "")
#define READY(p)      EXPECT_CHECK(p, MS, BH_PREBIND_READY, "")
#define FAILS(p, why) EXPECT_CHECK(p, MS, BH_PREBIND_FAILED, why)
#define REF           ",'claimRef':{'namespace':'ns','name':'l','uid':'uid-l'}"
#define BOUND         "'pv.kubernetes.io/bind-completed':'yes'"
#define SELECTED(n)   "'volume.kubernetes.io/selected-node':'" n "'"

static void test_binding_succeeds(void)
{
    struct bh_pending p = reserve_both();

    written(&p, 0, BH_KIND_PERSISTENTVOLUME, volume_json("pv-a", "20", IN_ZONE("za") REF));
    written(&p, 1, BH_KIND_PERSISTENTVOLUMECLAIM,
            object("d", "21", SELECTED("a"), "'spec':{'storageClassName':'wait'}"));
    WAITS(&p); /* the watch does not show the volume yet */
    volume("pv-a", "20", IN_ZONE("za") REF);
    WAITS(&p); /* the claim is not bound */
    claim("l", "22", BOUND, "'volumeName':'pv-a'");
    WAITS(&p); /* the other claim's write is not shown yet */
    claim("d", "21", SELECTED("a"), "'storageClassName':'wait'");
    WAITS(&p);
    claim("d", "23", SELECTED("a") "," BOUND, "'volumeName':'pv-d'");
    WAITS(&p); /* its volume is not shown yet */
    volume("pv-d", "24", IN_ZONE("za"));
    READY(&p);
    struct bh_pending on = world_pod(&w, "p", "a", CLAIM("l") "," CLAIM("d"));
    uint32_t n;
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(w.e, uid_of(&p), &n)); /* it is bound */
    bh_engine_shape_unref(w.e, on.shape);
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

static void test_binding_fails(void)
{
    struct bh_pending p = reserve_both();

    written(&p, 0, BH_KIND_PERSISTENTVOLUME, volume_json("pv-a", "20", IN_ZONE("za") REF));
    written(&p, 1, BH_KIND_PERSISTENTVOLUMECLAIM, object("d", "21", SELECTED("a"), "'spec':{}"));
    volume("pv-a", "20", IN_ZONE("zb") REF);
    FAILS(&p, "pv \"pv-a\" node affinity doesn't match node \"a\": no matching NodeSelectorTerms");
    volume("pv-a", "21", IN_ZONE("za"));
    FAILS(&p, "ClaimRef got reset for pv \"pv-a\"");
    world_object(&w, BH_KIND_PERSISTENTVOLUME, "", "pv-a", NULL, NULL);
    FAILS(&p, "failed to check binding: persistentvolumes \"pv-a\" not found");
    volume("pv-a", "22", IN_ZONE("za") REF);
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "l", NULL, NULL);
    FAILS(&p, "failed to check binding: persistentvolumeclaims \"ns/l\" not found");
    /* given another one before, which was not shown yet: there the pod has to go */
    claim("l", "22", BOUND, "'volumeName':'pv-b'");
    volume("pv-b", "23", IN_ZONE("zb"));
    FAILS(&p, "pv \"pv-b\" node affinity doesn't match node \"a\": no matching NodeSelectorTerms");
    claim("l", "24", BOUND, "'volumeName':'pv-a'");
    claim("d", "22", "'x':'y'", "'storageClassName':'wait'");
    FAILS(&p, "provisioning failed for PVC \"d\"");
    claim("d", "23", "", "'storageClassName':'wait'");
    FAILS(&p, "selectedNode annotation reset for PVC \"d\"");
    claim("d", "24", SELECTED("a") "," BOUND, "'volumeName':'pv-d'");
    volume("pv-d", "25", IN_ZONE("zb"));
    FAILS(&p, "pv \"pv-d\" node affinity doesn't match node \"a\": no matching NodeSelectorTerms");
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "d", NULL, NULL);
    FAILS(&p, "failed to check provisioning pvc: persistentvolumeclaims \"ns/d\" not found");
    bh_engine_del_node(w.e, sym("a"));
    FAILS(&p, "failed to get node \"a\": node \"a\" not found");
    bh_engine_unreserve(w.e, &p, sym("a"));
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

static void test_timeout(void)
{
    struct bh_pending p = reserve_both();

    volume("pv-a", "20", IN_ZONE("za") REF);
    claim("d", "21", SELECTED("a"), "'storageClassName':'wait'");
    EXPECT_CHECK(&p, 599999 * MS, BH_PREBIND_WAITS, "");
    EXPECT_CHECK(&p, 600000 * MS, BH_PREBIND_FAILED, "context deadline exceeded");
    bh_engine_unreserve(w.e, &p, sym("a"));
    READY(&p); /* nothing is reserved */
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

static void test_commit(void)
{
    struct bh_pending p = reserve_both();

    bh_engine_prebind_commit(w.e, uid_of(&p));
    const K8s__PersistentVolume *v = get(BH_KIND_PERSISTENTVOLUME, "", "pv-a");
    const K8s__PersistentVolumeClaim *l = get(BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "l");
    const K8s__PersistentVolumeClaim *d = get(BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "d");
    CU_ASSERT_STRING_EQUAL(v->spec->claimref->name, "l");
    CU_ASSERT_STRING_EQUAL(v->status->phase, "Bound");
    CU_ASSERT_STRING_EQUAL(l->spec->volumename, "pv-a");
    CU_ASSERT_STRING_EQUAL(l->status->phase, "Bound");
    CU_ASSERT_STRING_EQUAL(note(d->metadata, "volume.kubernetes.io/selected-node"), "a");
    WORLD_EXPECT(&w, "q", CLAIM("l") "," CLAIM("d"),
                 "b=VolumeBinding/UU: node(s) didn't match PersistentVolume's node affinity + "
                 "node(s) didn't find available persistent volumes to bind; ");
    bh_engine_unreserve(w.e, &p, sym("a")); /* too late */
    CU_ASSERT_PTR_EQUAL(get(BH_KIND_PERSISTENTVOLUME, "", "pv-a"), v);
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

/* A claim used twice that has to be provisioned, after another pod chose its node already. */
static void test_one_claim_twice(void)
{
    uint32_t n;

    begin();
    struct bh_pending p = world_pod(&w, "p", "", CLAIM("d"));
    struct bh_pending q = world_pod(&w, "q", "", CLAIM("d") "," CLAIM("d"));
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &p, sym("a")));
    CU_ASSERT_PTR_NULL(bh_engine_reserve(w.e, &q, sym("a")));
    (void)bh_engine_prebind_work(w.e, uid_of(&q), &n);
    CU_ASSERT_EQUAL(n, 2);
    bh_engine_unreserve(w.e, &q, sym("a"));
    bh_engine_unreserve(w.e, &p, sym("a"));
    bh_engine_shape_unref(w.e, p.shape);
    bh_engine_shape_unref(w.e, q.shape);
    world_end(&w);
}

static void test_bad_answers(void)
{
    struct bh_pending p = reserve_both();
    struct bh_err err;

    CU_ASSERT_EQUAL(bh_engine_prebind_written(w.e, uid_of(&p), 2, "", 0, &err), -ENOENT);
    CU_ASSERT_EQUAL(bh_engine_prebind_written(w.e, bh_str_c("nobody"), 0, "", 0, &err), -ENOENT);
    CU_ASSERT_EQUAL(bh_engine_prebind_written(w.e, uid_of(&p), 0, "\xff\xff", 2, &err), -EINVAL);
    CU_ASSERT_EQUAL(bh_engine_prebind_written(w.e, uid_of(&p), 0, "", 0, &err), -EINVAL);
    bh_engine_unreserve(w.e, &p, sym("a"));
    bh_engine_shape_unref(w.e, p.shape);
    world_end(&w);
}

BH_TESTS("scheduler/plugins/volumebinding/assume",
         {"a chosen volume is the claim's until it is given back", test_static},
         {"a volume that the user bound is only completed", test_user_bound},
         {"a claim to be provisioned has its node", test_dynamic},
         {"what is assumed lasts until the API server tells more", test_newer_version},
         {"pods without anything to bind reserve nothing", test_nothing_to_do},
         {"binding waits for the writes to be seen and for the controllers", test_binding_succeeds},
         {"binding fails with upstream's texts", test_binding_fails},
         {"binding has an end", test_timeout},
         {"without an API server the writes are committed", test_commit},
         {"one claim twice", test_one_claim_twice},
         {"answers that cannot be read", test_bad_answers})
