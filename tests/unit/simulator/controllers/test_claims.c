/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_claims.c - volumes for claims, claims for pods, devices
 * back
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define PV(name, size, mode, class, rest)                                                          \
    "metadata: {name: " name "}\nspec: {capacity: {storage: " size "}, accessModes: [" mode        \
    "], hostPath: {path: /x}, storageClassName: " class rest "}"
#define PVC(name, class, rest)                                                                     \
    "metadata: {name: " name                                                                       \
    "}\nspec: {accessModes: [ReadWriteOnce], storageClassName: '" class "', resources: "           \
                                                                        "{requests: {storage: "    \
                                                                        "5Gi}}" rest "}"

static bool phase_is(struct world *w, const char *plural, const char *ns, const char *name,
                     const char *phase)
{
    const struct bh_sim_obj *o = get(&w->f, plural, ns, name);

    return o && bh_streq(o->phase, phase);
}

static const char *text_at(struct world *w, const char *plural, const char *ns, const char *name,
                           const char *path)
{
    const struct bh_sim_obj *o = get(&w->f, plural, ns, name);
    const char *s = o ? bh_tree_str(bh_sim_obj_tree(&w->f.a, o), path) : NULL;

    return s ? s : "";
}

static void test_static(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "PersistentVolume", "", PV("big", "100Gi", "ReadWriteOnce", "manual", ""));
    make(&w.f, "PersistentVolume", "", PV("right", "10Gi", "ReadWriteOnce", "manual", ""));
    make(&w.f, "PersistentVolume", "", PV("other", "6Gi", "ReadOnlyMany", "manual", ""));
    UNTIL(&w, phase_is(&w, "persistentvolumes", "", "right", "Available"));
    make(&w.f, "PersistentVolumeClaim", "default", PVC("c", "manual", ""));
    UNTIL(&w, phase_is(&w, "persistentvolumeclaims", "default", "c", "Bound"));
    EQ(text_at(&w, "persistentvolumeclaims", "default", "c", "spec.volumeName"), "right");
    EQ(text_at(&w, "persistentvolumeclaims", "default", "c", "status.capacity.storage"), "10Gi");
    EQ(text_at(&w, "persistentvolumes", "", "right", "spec.claimRef.name"), "c");
    CU_ASSERT(phase_is(&w, "persistentvolumes", "", "right", "Bound"));

    /* a claim that came first is bound when a volume does */
    make(&w.f, "PersistentVolumeClaim", "default", PVC("d", "manual", ", volumeMode: Block"));
    settle(&w);
    CU_ASSERT(phase_is(&w, "persistentvolumeclaims", "default", "d", "Pending"));
    make(&w.f, "PersistentVolume", "",
         PV("block", "10Gi", "ReadWriteOnce", "manual", ", volumeMode: Block"));
    UNTIL(&w, phase_is(&w, "persistentvolumeclaims", "default", "d", "Bound"));

    bh_sim_delete(w.f.s, type_of("persistentvolumeclaims"), "default", "c", NULL, NULL);
    UNTIL(&w, phase_is(&w, "persistentvolumes", "", "right", "Released"));
    world_fini(&w);
}

static void test_scheduler_chose(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "StorageClass", "",
         "metadata: {name: local}\nprovisioner: kubernetes.io/no-provisioner\n"
         "volumeBindingMode: WaitForFirstConsumer");
    make(&w.f, "PersistentVolumeClaim", "default", PVC("c", "local", ""));
    make(&w.f, "PersistentVolume", "", PV("v", "10Gi", "ReadWriteOnce", "local", ""));
    settle(&w); /* although it fits: the scheduler has the say */
    CU_ASSERT(phase_is(&w, "persistentvolumeclaims", "default", "c", "Pending"));
    change(&w.f, "PersistentVolume", "", "v", BH_SIM_MAIN, "spec.claimRef",
           "{apiVersion: v1, kind: PersistentVolumeClaim, namespace: default, name: c}");
    UNTIL(&w, phase_is(&w, "persistentvolumeclaims", "default", "c", "Bound"));
    EQ(text_at(&w, "persistentvolumeclaims", "default", "c", "spec.volumeName"), "v");
    world_fini(&w);
}

static void test_provisioned(void)
{
    struct world w;
    char name[64];

    world_init(&w, NULL);
    make(&w.f, "Node", "", "metadata: {name: n1, labels: {zone: z7}}");
    make(&w.f, "StorageClass", "",
         "metadata: {name: csi}\nprovisioner: csi.example.com\n"
         "volumeBindingMode: WaitForFirstConsumer\n"
         "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [z1, z7]}]}]");
    make(&w.f, "PersistentVolumeClaim", "default", PVC("c", "csi", ""));
    settle(&w);
    CU_ASSERT(phase_is(&w, "persistentvolumeclaims", "default", "c", "Pending"));
    change(&w.f, "PersistentVolumeClaim", "default", "c", BH_SIM_MAIN, "metadata.annotations",
           "{volume.kubernetes.io/selected-node: n1}");
    UNTIL(&w, phase_is(&w, "persistentvolumeclaims", "default", "c", "Bound"));
    snprintf(name, sizeof(name), "%s",
             text_at(&w, "persistentvolumeclaims", "default", "c", "spec.volumeName"));
    EQ(text_at(&w, "persistentvolumes", "", name, "spec.csi.driver"), "csi.example.com");
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "persistentvolumes", "", name)->json,
                                  "{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"z7\"]}"));
    bh_sim_delete(w.f.s, type_of("persistentvolumeclaims"), "default", "c", NULL, NULL);
    UNTIL(&w, !get(&w.f, "persistentvolumes", "", name)); /* reclaim policy Delete */
    world_fini(&w);
}

static void test_taken_volume(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "PersistentVolume", "",
         PV("v", "10Gi", "ReadWriteOnce", "manual",
            ", claimRef: {namespace: default, name: other, uid: u-1}"));
    make(&w.f, "PersistentVolumeClaim", "default", PVC("c", "manual", ", volumeName: v"));
    settle(&w);
    CU_ASSERT(phase_is(&w, "persistentvolumeclaims", "default", "c", "Pending"));
    UNTIL(&w, phase_is(&w, "persistentvolumes", "", "v", "Released")); /* u-1 is gone */
    world_fini(&w);
}

/* The scheduler that wrote the second volume had not seen the first: the claim keeps what it has. */
static void test_two_volumes_for_one_claim(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "PersistentVolume", "", PV("first", "10Gi", "ReadWriteOnce", "manual", ""));
    make(&w.f, "PersistentVolumeClaim", "default", PVC("c", "manual", ""));
    UNTIL(&w, phase_is(&w, "persistentvolumeclaims", "default", "c", "Bound"));
    const char *ref = bh_arena_printf(
        &w.f.a, ", claimRef: {kind: PersistentVolumeClaim, namespace: default, name: c, uid: %s}",
        get(&w.f, "persistentvolumeclaims", "default", "c")->uid);
    make(&w.f, "PersistentVolume", "",
         bh_arena_printf(
             &w.f.a,
             "metadata: {name: ours, annotations: {pv.kubernetes.io/"
             "bound-by-controller: 'yes'}}\nspec: {capacity: {storage: 10Gi}, accessModes: "
             "[ReadWriteOnce], hostPath: {path: /x}, storageClassName: manual%s}",
             ref));
    make(&w.f, "PersistentVolume", "",
         bh_arena_printf(&w.f.a,
                         "metadata: {name: theirs}\nspec: {capacity: {storage: 10Gi}, "
                         "accessModes: [ReadWriteOnce], hostPath: {path: /x}, "
                         "storageClassName: manual%s}",
                         ref));
    UNTIL(&w, phase_is(&w, "persistentvolumes", "", "ours", "Available"));
    UNTIL(&w, phase_is(&w, "persistentvolumes", "", "theirs", "Available"));
    EQ(text_at(&w, "persistentvolumes", "", "ours", "spec.claimRef.name"), "");
    CU_ASSERT_PTR_NULL(strstr(get(&w.f, "persistentvolumes", "", "ours")->json, "bound-by"));
    EQ(text_at(&w, "persistentvolumes", "", "theirs", "spec.claimRef.name"), "c");
    EQ(text_at(&w, "persistentvolumes", "", "theirs", "spec.claimRef.uid"), "");
    settle(&w);
    EQ(text_at(&w, "persistentvolumeclaims", "default", "c", "spec.volumeName"), "first");
    bh_sim_delete(w.f.s, type_of("persistentvolumeclaims"), "default", "c", NULL, NULL);
    UNTIL(&w, phase_is(&w, "persistentvolumes", "", "first", "Released"));
    world_fini(&w);
}

static void test_pod_claims(void)
{
    struct world w;
    char claim[128];

    world_init(&w, NULL);
    w.bind = false;
    make(&w.f, "Pod", "default",
         "metadata: {name: p}\nspec:\n  containers: [{name: c, image: i}]\n"
         "  volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: "
         "b}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]\n"
         "  resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]");
    UNTIL(&w, get(&w.f, "persistentvolumeclaims", "default", "p-scratch"));
    EQ(text_at(&w, "persistentvolumeclaims", "default", "p-scratch", "metadata.labels.a"), "b");
    CU_ASSERT_EQUAL(bh_sim_count(w.f.s, type_of("resourceclaims")), 0);
    make(&w.f, "ResourceClaimTemplate", "default",
         "metadata: {name: t}\nspec: {spec: {devices: {requests: [{name: r, exactly: "
         "{deviceClassName: d}}]}}}");
    UNTIL(&w, bh_sim_count(w.f.s, type_of("resourceclaims")) == 1 &&
                  strstr(get(&w.f, "pods", "default", "p")->json, "\"resourceClaimStatuses\":[{"));
    struct bh_sim_objs l;
    bh_sim_list(w.f.s, type_of("resourceclaims"), NULL, &l);
    snprintf(claim, sizeof(claim), "%s", l.v[0]->name);
    CU_ASSERT(strncmp(claim, "p-gpu-", 6) == 0);
    bh_sim_objs_fini(&l);
    settle(&w); /* once */
    CU_ASSERT_EQUAL(bh_sim_count(w.f.s, type_of("resourceclaims")), 1);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, NULL);
    UNTIL(&w, !bh_sim_count(w.f.s, type_of("resourceclaims")) &&
                  !bh_sim_count(w.f.s, type_of("persistentvolumeclaims")));
    world_fini(&w);
}

static void test_devices_go_back(void)
{
    struct world w;
    struct bh_sim_obj *p, *q;
    char list[300];

    world_init(&w, NULL);
    w.bind = false;
    p = make(&w.f, "Pod", "default",
             "metadata: {name: p}\nspec: {containers: [{name: c, image: i}], resourceClaims: "
             "[{name: gpu, resourceClaimName: shared}]}");
    q = make(&w.f, "Pod", "default",
             "metadata: {name: q}\nspec: {containers: [{name: c, image: i}], resourceClaims: "
             "[{name: gpu, resourceClaimName: shared}]}");
    snprintf(list, sizeof(list),
             "{allocation: {devices: {results: []}}, reservedFor: [{resource: pods, name: p, uid: "
             "%s}, {resource: pods, name: q, uid: %s}]}",
             p->uid, q->uid);
    make(&w.f, "ResourceClaim", "default",
         "metadata: {name: shared}\nspec: {devices: {requests: [{name: r, exactly: "
         "{deviceClassName: d}}]}}");
    CU_ASSERT_EQUAL(
        change(&w.f, "ResourceClaim", "default", "shared", BH_SIM_STATUS, "status", list), 0);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, NULL);
    UNTIL(&w, !strstr(get(&w.f, "resourceclaims", "default", "shared")->json, "\"name\":\"p\""));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(get(&w.f, "resourceclaims", "default", "shared")->json, "\"allocation\""));
    change(&w.f, "Pod", "default", "q", BH_SIM_STATUS, "status.phase", "Succeeded");
    UNTIL(&w, !strstr(get(&w.f, "resourceclaims", "default", "shared")->json, "\"allocation\""));
    world_fini(&w);
}

BH_TESTS("simulator/controllers/claims",
         {"a claim gets the smallest volume that suits, and gives it back", test_static},
         {"a class that waits is the scheduler's to decide", test_scheduler_chose},
         {"the stand-in provisioner serves the chosen node's topology", test_provisioned},
         {"a volume that belongs to another is not taken", test_taken_volume},
         {"a claim that has a volume lets another one go", test_two_volumes_for_one_claim},
         {"ephemeral volumes and claim templates become claims of the pod", test_pod_claims},
         {"devices are free when the last user is gone", test_devices_go_back})
