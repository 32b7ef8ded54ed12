/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/replay/test_clean.c - what leaves a cluster, and under which name
 */
#include "simulator/replay/clean.h"

#include "tests/unit/harness.h"

#define SECRET "hunter2"

static struct bh_arena arena;

static struct bh_json *parse(const char *text)
{
    struct bh_json *v = NULL;
    struct bh_err err;

    if (bh_json_parse(&arena, text, strlen(text), BH_JSON_STRICT, &v, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
    return v;
}

static char *text_of(const struct bh_json *v)
{
    struct bh_buf b = {0};
    char *s;

    bh_json_write(&b, v);
    s = bh_arena_strdup(&arena, bh_buf_str(&b));
    bh_buf_fini(&b);
    return s;
}

static struct bh_json *clean(const char *kind, const char *text)
{
    const char *why;

    return bh_clean(&arena, bh_clean_kind_named(kind), parse(text), NULL, &why);
}

static const char full_pod[] =
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"5\","
    "\"labels\":{\"app\":\"a\"},\"annotations\":{\"t\":\"" SECRET "\","
    "\"kubectl.kubernetes.io/last-applied-configuration\":\"" SECRET "\","
    "\"scheduler.alpha.kubernetes.io/x\":\"y\"},"
    "\"managedFields\":[{\"manager\":\"" SECRET "\"}],\"finalizers\":[\"" SECRET "\"]},"
    "\"spec\":{\"nodeName\":\"n1\",\"serviceAccountName\":\"" SECRET "\","
    "\"imagePullSecrets\":[{\"name\":\"" SECRET "\"}],\"hostname\":\"" SECRET "\","
    "\"hostAliases\":[{\"ip\":\"1.2.3.4\",\"hostnames\":[\"" SECRET "\"]}],"
    "\"dnsConfig\":{\"searches\":[\"" SECRET "\"]},\"futureField\":{\"token\":\"" SECRET "\"},"
    "\"volumes\":[{\"name\":\"v1\",\"secret\":{\"secretName\":\"" SECRET "\"}},"
    "{\"name\":\"v2\",\"configMap\":{\"name\":\"" SECRET "\"}},"
    "{\"name\":\"v3\",\"hostPath\":{\"path\":\"/" SECRET "\"}},"
    "{\"name\":\"v4\",\"csi\":{\"driver\":\"d\",\"volumeAttributes\":{\"k\":\"" SECRET "\"},"
    "\"nodePublishSecretRef\":{\"name\":\"" SECRET "\"}}},"
    "{\"name\":\"v5\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}},"
    "{\"name\":\"v6\",\"iscsi\":{\"targetPortal\":\"" SECRET "\",\"iqn\":\"q\",\"lun\":0,"
    "\"secretRef\":{\"name\":\"" SECRET "\"}}}],"
    "\"initContainers\":[{\"name\":\"i\",\"command\":[\"" SECRET "\"]}],"
    "\"containers\":[{\"name\":\"c\",\"image\":\"img\",\"command\":[\"" SECRET "\"],"
    "\"args\":[\"--x=" SECRET "\"],\"workingDir\":\"/" SECRET "\","
    "\"env\":[{\"name\":\"" SECRET "\",\"value\":\"" SECRET "\"}],"
    "\"envFrom\":[{\"secretRef\":{\"name\":\"" SECRET "\"}}],"
    "\"ports\":[{\"name\":\"" SECRET "\",\"hostPort\":80,\"containerPort\":80}],"
    "\"livenessProbe\":{\"exec\":{\"command\":[\"" SECRET "\"]}},"
    "\"lifecycle\":{\"preStop\":{\"exec\":{\"command\":[\"" SECRET "\"]}}},"
    "\"volumeMounts\":[{\"name\":\"v1\",\"mountPath\":\"/" SECRET "\"}],"
    "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}],"
    "\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\"}]},"
    "\"status\":{\"phase\":\"Running\",\"message\":\"" SECRET "\",\"podIP\":\"10.0.0.1\","
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"message\":\"" SECRET "\"}],"
    "\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"terminated\":{\"message\":\"" SECRET
    "\"}}}]}}";

static void test_pod(void)
{
    struct bh_json *o = clean("pods", full_pod);
    const char *text = text_of(o);

    CU_ASSERT_PTR_NULL(strstr(text, SECRET));
    CU_ASSERT_PTR_NULL(strstr(text, "10.0.0.1"));
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(o, "kind"), "Pod");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(o, "spec.nodeName")), "n1");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(o, "status.phase")), "Running");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"hostPort\":80"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"requests\":{\"cpu\":\"1\"}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"tolerations\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "scheduler.alpha.kubernetes.io/x"));
    CU_ASSERT_EQUAL(bh_json_path(o, "spec.volumes")->c.n, 3); /* csi, claim, iscsi */
}

static void test_other_kinds(void)
{
    static const struct {
        const char *kind, *text, *kept;
    } t[] = {
        {"nodes",
         "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"providerID\":\"" SECRET
         "\",\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]},\"status\":{\"addresses\":[{"
         "\"address\":\"" SECRET "\"}],\"nodeInfo\":{\"machineID\":\"" SECRET
         "\"},\"allocatable\":{\"cpu\":\"4\"}}}",
         "\"allocatable\":{\"cpu\":\"4\"}"},
        {"storageclasses",
         "{\"metadata\":{\"name\":\"s\"},\"provisioner\":\"p\",\"parameters\":{\"a\":\"" SECRET
         "\"},\"volumeBindingMode\":\"WaitForFirstConsumer\"}",
         "WaitForFirstConsumer"},
        {"persistentvolumes",
         "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"csi\":{\"driver\":\"d\",\"volumeHandle\":"
         "\"h\","
         "\"volumeAttributes\":{\"a\":\"" SECRET "\"},\"nodeStageSecretRef\":{\"name\":\"" SECRET
         "\"}},\"persistentVolumeReclaimPolicy\":\"Delete\",\"capacity\":{\"storage\":\"1Gi\"}}}",
         "\"persistentVolumeReclaimPolicy\":\"Retain\""},
        {"persistentvolumes",
         "{\"metadata\":{\"name\":\"v\"},\"spec\":{\"nfs\":{\"server\":\"" SECRET
         "\",\"path\":\"/x\"}}}",
         "\"hostPath\":{\"path\":\"/redacted\"}"},
        {"resourceclaims",
         "{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"spec\":{\"devices\":{\"requests\":[{"
         "\"name\":\"r\"}],\"config\":[{\"opaque\":{\"parameters\":{\"k\":\"" SECRET "\"}}}]}}}",
         "\"requests\":[{\"name\":\"r\"}]"},
        {"csinodes",
         "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"drivers\":[{\"name\":\"d\",\"nodeID\":"
         "\"" SECRET "\",\"allocatable\":{\"count\":3}}]}}",
         "\"count\":3"},
        {"replicasets",
         "{\"metadata\":{\"name\":\"r\",\"namespace\":\"n\"},\"spec\":{\"replicas\":2,\"template\":"
         "{"
         "\"metadata\":{\"annotations\":{\"x\":\"" SECRET
         "\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[{\"value\":\"" SECRET
         "\"}]}]}}}}",
         "\"replicas\":2"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        const char *text = text_of(clean(t[i].kind, t[i].text));
        CU_ASSERT_PTR_NULL(strstr(text, SECRET));
        CU_ASSERT_PTR_NOT_NULL(strstr(text, t[i].kept));
    }
    CU_ASSERT_PTR_NULL(bh_clean_kind_named("secrets"));
    CU_ASSERT_PTR_NULL(bh_clean_kind_find("v1", "ConfigMap"));
}

static void test_wrong_types(void)
{
    static const char *const texts[] = {
        "{}", "{\"metadata\":7,\"spec\":[1,\"x\",null],\"status\":\"y\"}",
        "{\"metadata\":{\"annotations\":[1]},\"spec\":{\"containers\":{\"a\":1},\"volumes\":7}}",
        "{\"spec\":{\"volumes\":[7,[],{\"name\":1}],\"resourceClaims\":[3]}}",
        "{\"spec\":{\"drivers\":[7],\"selector\":7,\"claimRef\":7,\"template\":[]}}"};

    for (size_t k = 0; k < bh_clean_n_kinds; k++)
        for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
            const char *why;
            struct bh_json *o = bh_clean(&arena, &bh_clean_kinds[k], parse(texts[i]), NULL, &why);
            struct bh_anon n;
            bh_anon_init(&n, "k");
            bh_anon_object(&n, &arena, o);
            (void)bh_clean_diff(&arena, &bh_clean_kinds[k], parse(texts[i]), o);
            (void)bh_clean_new(&arena, &bh_clean_kinds[k], o);
            CU_ASSERT_STRING_EQUAL(bh_json_get_text(o, "kind"), bh_clean_kinds[k].kind);
        }
}

static void test_new_pod(void)
{
    struct bh_json *o = clean(
        "pods",
        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"ownerReferences\":[{\"kind\":\"ReplicaSet\","
        "\"name\":\"r\",\"uid\":\"x\"}]},\"spec\":{\"priority\":5,\"preemptionPolicy\":\"Never\","
        "\"priorityClassName\":\"high\",\"resourceClaims\":[{\"name\":\"gpu\","
        "\"resourceClaimTemplateName\":\"t\"}]},\"status\":{\"phase\":\"Pending\","
        "\"resourceClaimStatuses\":[{\"name\":\"gpu\",\"resourceClaimName\":\"p-gpu-x7\"}]}}");
    struct bh_json *status = bh_clean_new(&arena, bh_clean_kind_named("pods"), o);
    const char *text = text_of(o);

    CU_ASSERT_PTR_NULL(status);
    CU_ASSERT_PTR_NULL(bh_json_path(o, "metadata.uid"));
    CU_ASSERT_PTR_NULL(bh_json_path(o, "metadata.ownerReferences"));
    CU_ASSERT_PTR_NULL(bh_json_path(o, "spec.priority"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"priorityClassName\":\"high\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"resourceClaimName\":\"p-gpu-x7\""));
    CU_ASSERT_PTR_NULL(strstr(text, "resourceClaimTemplateName"));
}

static void test_diff(void)
{
    const struct bh_clean_kind *nodes = bh_clean_kind_named("nodes");
    struct bh_json *cur = parse("{\"metadata\":{\"name\":\"n\",\"uid\":\"there\",\"labels\":{\"a\":"
                                "\"1\",\"b\":\"2\"}},\"spec\":{\"podCIDR\":\"10.0.0.0/24\","
                                "\"taints\":[{\"key\":\"k\"}]},\"status\":{\"addresses\":[]}}");
    struct bh_json *same = bh_json_clone(&arena, cur);
    struct bh_json *d;

    bh_json_set_str(&arena, bh_json_get(same, "metadata"), "uid", "here");
    CU_ASSERT_PTR_NULL(bh_clean_diff(&arena, nodes, cur, clean("nodes", text_of(same))));
    d = bh_clean_diff(&arena, nodes, cur,
                      clean("nodes", "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"1\"}},"
                                     "\"spec\":{\"unschedulable\":true}}"));
    CU_ASSERT_STRING_EQUAL(text_of(d), "{\"metadata\":{\"labels\":{\"b\":null}},\"spec\":{"
                                       "\"taints\":null,\"unschedulable\":true}}");
}

static void test_diff_pod(void)
{
    const struct bh_clean_kind *pods = bh_clean_kind_named("pods");
    struct bh_json *cur =
        parse("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"here\",\"containers\":[{"
              "\"name\":\"c\",\"env\":[{\"name\":\"A\"}]}]},\"status\":{\"phase\":\"Running\"}}");
    struct bh_json *d = bh_clean_diff(
        &arena, pods, cur,
        clean("pods", "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"there\","
                      "\"containers\":[]},\"status\":{\"phase\":\"Pending\"}}"));

    CU_ASSERT_PTR_NULL(d); /* where it runs is the other cluster's matter */
    d = bh_clean_diff(&arena, pods, cur,
                      clean("pods", "{\"metadata\":{\"name\":\"p\",\"labels\":{\"x\":\"y\"}},"
                                    "\"status\":{\"phase\":\"Succeeded\"}}"));
    CU_ASSERT_STRING_EQUAL(
        text_of(d),
        "{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"status\":{\"phase\":\"Succeeded\"}}");
}

static void test_claims_stay_bound(void)
{
    struct bh_json *cur = parse("{\"metadata\":{\"name\":\"c\",\"annotations\":{"
                                "\"pv.kubernetes.io/bind-completed\":\"yes\"}},\"spec\":{"
                                "\"volumeName\":\"mine\"},\"status\":{\"phase\":\"Bound\"}}");
    struct bh_json *d =
        bh_clean_diff(&arena, bh_clean_kind_named("persistentvolumeclaims"), cur,
                      clean("persistentvolumeclaims", "{\"metadata\":{\"name\":\"c\"},\"spec\":{"
                                                      "\"volumeName\":\"theirs\"}}"));

    CU_ASSERT_PTR_NULL(d);
}

static void test_anonymous(void)
{
    struct bh_json *node =
        clean("nodes", "{\"metadata\":{\"name\":\"web-7.corp\",\"labels\":{"
                       "\"kubernetes.io/hostname\":\"web-7.corp\",\"zone\":"
                       "\"berlin\",\"gen\":\"12\",\"kubernetes.io/os\":\"linux\"}"
                       "},\"spec\":{\"taints\":[{\"key\":\"team\",\"value\":"
                       "\"payments\",\"effect\":\"NoSchedule\"}]},\"status\":{"
                       "\"images\":[{\"names\":[\"reg.corp/app:latest\"]}]}}");
    struct bh_json *pod = clean(
        "pods",
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"payments\",\"labels\":{\"image\":\"berlin\"}"
        "},"
        "\"spec\":{\"nodeName\":\"web-7.corp\",\"nodeSelector\":{\"zone\":\"berlin\",\"image\":"
        "\"berlin\"},\"tolerations\":[{\"key\":\"team\",\"value\":\"payments\"}],\"containers\":[{"
        "\"name\":\"secret-app\",\"image\":\"reg.corp/app\"}],\"affinity\":{\"nodeAffinity\":{"
        "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
        "\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"berlin\"]},{"
        "\"key\":\"gen\",\"operator\":\"Gt\",\"values\":[\"3\"]}]}]}}}}}");
    struct bh_anon n;
    const char *zone, *text;

    bh_anon_init(&n, "key");
    zone = bh_anon_text(&n, &arena, "berlin");
    bh_anon_object(&n, &arena, node);
    bh_anon_object(&n, &arena, pod);
    text = text_of(pod);
    CU_ASSERT_PTR_NULL(strstr(text_of(node), "corp"));
    CU_ASSERT_PTR_NULL(strstr(text, "corp"));
    CU_ASSERT_PTR_NULL(strstr(text, "berlin"));
    CU_ASSERT_PTR_NULL(strstr(text, "payments"));
    CU_ASSERT_PTR_NULL(strstr(text, "secret-app"));
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(node, "metadata.name")),
                           bh_json_cstr(bh_json_path(pod, "spec.nodeName")));
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_path(pod, "spec.nodeSelector"), "zone"), zone);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_path(pod, "spec.nodeSelector"), "image"), zone);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_path(node, "metadata.labels"), "zone"), zone);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_path(node, "metadata.labels"), "gen"), "12");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, zone));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"values\":[\"3\"]"));
    /* one image, named with and without its tag */
    CU_ASSERT_PTR_NOT_NULL(strstr(
        text, bh_json_cstr(bh_json_at(
                  bh_json_get(bh_json_at(bh_json_path(node, "status.images"), 0), "names"), 0))));
}

static void test_keys_differ(void)
{
    struct bh_anon a, b, c;

    bh_anon_init(&a, "one");
    bh_anon_init(&b, "one");
    bh_anon_init(&c, NULL);
    CU_ASSERT_STRING_EQUAL(bh_anon_text(&a, &arena, "x"), bh_anon_text(&b, &arena, "x"));
    CU_ASSERT_STRING_NOT_EQUAL(bh_anon_text(&a, &arena, "x"), bh_anon_text(&c, &arena, "x"));
    CU_ASSERT_STRING_EQUAL(bh_anon_text(&c, &arena, "kube-system"), "kube-system");
}

BH_TESTS("simulator/replay/clean", {"of a pod only what places it is kept", test_pod},
         {"other kinds lose their secrets, too", test_other_kinds},
         {"wrong types are dropped", test_wrong_types}, {"a pod that can be created", test_new_pod},
         {"a diff speaks of what is kept only", test_diff},
         {"a pod's node is not changed", test_diff_pod},
         {"claims that are bound stay so", test_claims_stay_bound},
         {"hashes keep what was equal equal", test_anonymous},
         {"keys make the hashes", test_keys_differ})
