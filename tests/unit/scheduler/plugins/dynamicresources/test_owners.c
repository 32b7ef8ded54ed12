/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/dynamicresources/test_owners.c - which pods may own a claim for
 * extended resources: never one too few, whatever happened to claims
 */
#include "common/k8s/codec.h"
#include "scheduler/plugins/dynamicresources/claims.h"
#include "tests/unit/harness.h"

#define PODS   40u
#define CLAIMS 60u

static struct bh_objects objects;

static void put(const char *name, unsigned pod, bool marked, unsigned version)
{
    char uid[16], rv[16];
    snprintf(uid, sizeof uid, "uid-%u", pod);
    snprintf(rv, sizeof rv, "%u", version);
    K8s__StringEntry mark = K8S__STRING_ENTRY__INIT, *marks = &mark;
    K8s__OwnerReference owner = K8S__OWNER_REFERENCE__INIT, *owners = &owner;
    K8s__ObjectMeta meta = K8S__OBJECT_META__INIT;
    K8s__ResourceClaim c = K8S__RESOURCE_CLAIM__INIT;
    char key[] = BH_DRA_SPECIAL_ANNOTATION, yes[] = "true", no[] = "false", ns[] = "ns";
    struct bh_buf b = {0};

    mark.key = key;
    mark.value = marked ? yes : no;
    owner.uid = uid;
    owner.has_controller = owner.controller = true;
    meta.name = (char *)(uintptr_t)name;
    meta.namespace_ = ns;
    meta.resourceversion = rv;
    meta.n_annotations = meta.n_ownerreferences = 1;
    meta.annotations = &marks;
    meta.ownerreferences = &owners;
    c.metadata = &meta;
    bh_pb_pack(&b, &c.base);
    CU_ASSERT_FATAL(bh_objects_put(&objects, BH_KIND_RESOURCECLAIM, "ns", name, b.p, b.n, NULL) ==
                    0);
    bh_buf_fini(&b);
}

static void change(struct bh_rand *r, unsigned version)
{
    char name[16], rv[16];
    struct bh_err err = {0};

    snprintf(name, sizeof name, "c%u", (unsigned)bh_rand_below(r, CLAIMS));
    snprintf(rv, sizeof rv, "%u", version - 1);
    const ProtobufCMessage *m = bh_objects_get(&objects, BH_KIND_RESOURCECLAIM, "ns", name);
    switch (bh_rand_below(r, 8)) {
    case 0:
        (void)bh_objects_put(&objects, BH_KIND_RESOURCECLAIM, "ns", name, NULL, 0, NULL);
        break;
    case 1:
        if (m)
            CU_ASSERT(bh_objects_assume(&objects, BH_KIND_RESOURCECLAIM, m, false, &err) == 0);
        break;
    case 2:
        if (m)
            bh_objects_restore(&objects, BH_KIND_RESOURCECLAIM, "ns", name,
                               bh_object_meta(m)->resourceversion);
        break;
    default:
        put(name, (unsigned)bh_rand_below(r, PODS), bh_rand_below(r, 2), version);
    }
}

static bool owns(const char *uid)
{
    bh_objects_each(ob, &objects, BH_KIND_RESOURCECLAIM) {
        const K8s__ObjectMeta *m = ((const K8s__ResourceClaim *)(const void *)ob->msg)->metadata;
        if (bh_streq(m->ownerreferences[0]->uid, uid) && bh_streq(m->annotations[0]->value, "true"))
            return true;
    }
    return false;
}

/* How many of the pods may own one; all that do are among them. */
static unsigned look(struct bh_dra_owners *w)
{
    unsigned n = 0;
    char uid[16];

    for (unsigned i = 0; i < PODS; i++) {
        snprintf(uid, sizeof uid, "uid-%u", i);
        bool may = bh_dra_may_own(w, &objects, bh_str_c(uid));
        CU_ASSERT(may || !owns(uid));
        n += may;
    }
    return n;
}

static void test_never_one_too_few(void)
{
    struct bh_dra_owners often = {.pos = 0}, seldom = {.pos = 0}, fresh;
    struct bh_rand r;

    bh_rand_seed(&r, 7);
    for (unsigned i = 1; i <= 4000; i++) {
        change(&r, i);
        (void)look(&often);
        if (i % 97 == 0)
            (void)look(&seldom);
    }
    fresh = (struct bh_dra_owners){.pos = 0};
    CU_ASSERT(look(&fresh) < PODS); /* it tells of some that they have none */
    bh_umap_fini(&often.uids);
    bh_umap_fini(&seldom.uids);
    bh_umap_fini(&fresh.uids);
    bh_objects_fini(&objects);
    objects = (struct bh_objects){.log = NULL};
}

/* Many that came and went are forgotten; whoever reads seldom misses nothing. */
static void test_begins_anew(void)
{
    struct bh_dra_owners w = {.pos = 0};
    struct bh_rand r;

    put("stays", 0, true, 1);
    for (unsigned i = 1; i < 3000; i++) {
        put("goes", 1000 + i, true, i);
        (void)bh_dra_may_own(&w, &objects, bh_str_c("uid-0"));
    }
    CU_ASSERT(w.uids.len < 1100);
    CU_ASSERT(look(&w) == 1);
    bh_rand_seed(&r, 8);
    for (unsigned i = 0; i < BH_OBJECT_LOG + 10; i++)
        put("goes", (unsigned)bh_rand_below(&r, PODS), i % 2, i);
    put("goes", 7, true, 1);
    put("other", 8, true, 1);
    CU_ASSERT(w.pos < objects.log_begin);
    CU_ASSERT(look(&w) == 3);
    bh_umap_fini(&w.uids);
    bh_objects_fini(&objects);
    objects = (struct bh_objects){.log = NULL};
}

BH_TESTS("scheduler/plugins/dynamicresources/owners", {"never one too few", test_never_one_too_few},
         {"begins anew", test_begins_anew})
