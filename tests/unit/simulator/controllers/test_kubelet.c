/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_kubelet.c - nodes come up, bound pods run, deleted ones go
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#include "simulator/controllers/podscript.h"

static void test_node_comes_up(void)
{
    struct world w;
    struct bh_sim_obj *o;

    world_init(&w, NULL);
    make(&w.f, "Node", "",
         "metadata: {name: n1, labels: {kubernetes.io/arch: arm64}}\nstatus: {capacity: {cpu: 4}}");
    UNTIL(&w, NULL != strstr(get(&w.f, "nodes", "", "n1")->json, "KubeletReady"));
    o = get(&w.f, "nodes", "", "n1");
    EQ(field(&w.f, o, "status.nodeInfo.architecture"), "arm64");
    EQ(field(&w.f, o, "status.nodeInfo.operatingSystem"), "linux");
    EQ(field(&w.f, o, "spec.taints"), "");
    EQ(field(&w.f, o, "status.capacity"), "{\"cpu\":\"4\",\"memory\":\"1Ti\",\"pods\":\"110\"}");
    EQ(field(&w.f, o, "status.allocatable.cpu"), "4");
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "\"type\":\"InternalIP\",\"address\":\"172.16.0.1\""));
    world_fini(&w);
}

/* What a device plugin, or a test's patch of the status, does. */
static void test_extended_resources_follow(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Node", "", "metadata: {name: n1}\nstatus: {capacity: {cpu: 4}}");
    UNTIL(&w, NULL != strstr(get(&w.f, "nodes", "", "n1")->json, "KubeletReady"));
    CU_ASSERT_EQUAL(change(&w.f, "Node", "", "n1", BH_SIM_STATUS, "status.capacity",
                           "{cpu: 4, pods: 110, example.com/gpu: 8}"),
                    0);
    settle(&w);
    EQ(field(&w.f, get(&w.f, "nodes", "", "n1"), "status.allocatable"),
       "{\"cpu\":\"4\",\"pods\":\"110\",\"example.com/gpu\":\"8\"}");
    CU_ASSERT_EQUAL(
        change(&w.f, "Node", "", "n1", BH_SIM_STATUS, "status.capacity", "{cpu: 8, pods: 110}"), 0);
    settle(&w);
    EQ(field(&w.f, get(&w.f, "nodes", "", "n1"), "status.allocatable"),
       "{\"cpu\":\"4\",\"pods\":\"110\"}");
    world_fini(&w);
}

static void test_scripted_node(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Node", "",
         "metadata: {name: n1}\nstatus: {conditions: [{type: Ready, status: \"False\"}]}");
    settle(&w);
    CU_ASSERT_PTR_NULL(strstr(get(&w.f, "nodes", "", "n1")->json, "KubeletReady"));
    EQ(field(&w.f, get(&w.f, "nodes", "", "n1"), "status.conditions"),
       "[{\"type\":\"Ready\",\"status\":\"False\"}]");
    world_fini(&w);
}

static void test_pod_runs(void)
{
    struct world w;
    struct bh_sim_obj *o;
    uint64_t bound;

    world_init(&w, NULL);
    w.bind = false;
    make(&w.f, "Node", "", NODE("n1"));
    make(&w.f, "Pod", "default",
         "metadata: {name: p}\n"
         "spec:\n  initContainers: [{name: a, image: i}, {name: s, image: i, restartPolicy: "
         "Always}]\n  containers: [{name: c, image: i}]\n  readinessGates: [{conditionType: g}]\n");
    settle(&w);
    EQ(get(&w.f, "pods", "default", "p")->phase, "Pending");
    bh_sim_bind(w.f.s, "default", "p", NULL, "n1", NULL, NULL, NULL);
    bound = get(&w.f, "pods", "default", "p")->rv;
    UNTIL(&w, bh_streq(get(&w.f, "pods", "default", "p")->phase, "Running"));
    settle(&w);
    o = get(&w.f, "pods", "default", "p");
    CU_ASSERT_EQUAL(o->rv, bound + 1); /* one write for everything */
    CU_ASSERT(!bh_ctl_pod_ready(o));   /* its gate is closed */
    CU_ASSERT_PTR_NOT_NULL(strstr(o->json, "readiness gate \\\"g\\\" does not exist"));
    CU_ASSERT(bh_tree_condition_true(bh_sim_obj_tree(&w.f.a, o), "ContainersReady"));
    EQ(field(&w.f, o, "status.podIP"), "10.128.0.1");
    EQ(field(&w.f, o, "status.podIPs"), "[{\"ip\":\"10.128.0.1\"}]");
    EQ(field(&w.f, o, "status.hostIP"), "172.16.0.1");
    CU_ASSERT(bh_tree_condition_true(bh_sim_obj_tree(&w.f.a, o), "PodScheduled"));
    CU_ASSERT_PTR_NOT_NULL(strstr(field(&w.f, o, "status.initContainerStatuses"), "Completed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(field(&w.f, o, "status.initContainerStatuses"), "running"));
    change(&w.f, "Pod", "default", "p", BH_SIM_STATUS, "status.conditions",
           "[{\"type\": \"g\", \"status\": \"True\"}]");
    UNTIL(&w, bh_ctl_pod_ready(get(&w.f, "pods", "default", "p")));
    world_fini(&w);
}

/* ---- a container's life, under a manual clock ------------------------------------------------ */

static void pod_with(struct world *w, const char *name, const char *spec)
{
    char text[700];

    snprintf(text, sizeof(text), "metadata: {name: %s}\nspec: {%s}", name, spec);
    CU_ASSERT_PTR_NOT_NULL(make(&w->f, "Pod", "default", text));
}

static const char *phase(struct world *w, const char *name)
{
    struct bh_sim_obj *o = get(&w->f, "pods", "default", name);

    return o ? o->phase : "gone";
}

static void test_commands(void)
{
    static const struct {
        const char *name, *command, *at_once, *after_10s;
    } pods[] = {{"well", "/bin/true", "Succeeded", "Succeeded"},
                {"badly", "'false'", "Failed", "Failed"},
                {"exit", "sh, -c, exit 1", "Failed", "Failed"},
                {"sleep", "sleep, '10'", "Running", "Succeeded"},
                {"script", "/bin/sh, -c, 'echo a; sleep 5 && false'", "Running", "Failed"},
                {"stopped", "sh, -c, 'false && sleep 5'", "Failed", "Failed"},
                {"loop", "sh, -c, 'while true; do sleep 1; done'", "Running", "Running"},
                {"either", "sh, -c, 'true || exit 1'", "Succeeded", "Succeeded"},
                {"pause", "/pause", "Running", "Running"},
                {"empty", "sh, -c, ''", "Succeeded", "Succeeded"}};
    struct world w;
    char spec[200];

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    for (size_t i = 0; i < BH_ARRAY_LEN(pods); i++) {
        snprintf(spec, sizeof(spec),
                 "restartPolicy: Never, containers: [{name: c, image: i, command: [%s]}]",
                 pods[i].command);
        pod_with(&w, pods[i].name, spec);
    }
    pass(&w, 1);
    for (size_t i = 0; i < BH_ARRAY_LEN(pods); i++)
        EQ(phase(&w, pods[i].name), pods[i].at_once);
    pass(&w, 10);
    for (size_t i = 0; i < BH_ARRAY_LEN(pods); i++)
        EQ(phase(&w, pods[i].name), pods[i].after_10s);
    world_fini(&w);
}

/* What the script ends with in the pod's container c; -1: it runs on. */
static int code_of(struct bh_arena *a, const struct bh_json *pod, const struct bh_json *c,
                   const char *script)
{
    const struct bh_ctl_run run = {a, pod, c, NULL, "r"};
    struct bh_json *what = bh_json_make(a, "command: []"), *words = bh_json_get(what, "command");

    bh_json_push(words, bh_json_new_str(a, "sh", 2));
    bh_json_push(words, bh_json_new_str(a, "-c", 2));
    bh_json_push(words, bh_json_new_str(a, script, strlen(script)));
    struct bh_ctl_program p = bh_ctl_program_of(&run, what);
    return p.run_ns == INT64_MAX ? -1 : (int)p.exit_code;
}

/* What scripts are made of, in a pod p-3 with V=42. */
static void test_scripts(void)
{
    static const struct {
        const char *script;
        int code; /* -1: it runs on */
    } scripts[] = {{"if [ $(expr ${V} % 2) -ne 0 ]; then\n  exit 1\nelse\n  exit 3\nfi\n", 3},
                   {"if [ \"$V\" = 41 ]; then exit 1; elif test $V -gt 41; then exit 4; fi", 4},
                   {"[[ -r /tmp/x ]] || exit 5", 5},
                   {"touch /tmp/x; [ -f /tmp/x ] && exit 6", 6},
                   {"echo a > /tmp/y; cat /tmp/y && exit 7", 7},
                   {"end() {\n  exit $1\n}\nend 1", -1}, /* parameters are not known */
                   {"end() { exit 8; }\nfalse || end", 8},
                   {"set -e\nif false; then exit 1; fi\nfalse\nexit 9", 1},
                   {"exit $((V / 4))", 10},
                   {"N=11 # not 12\nexit $N", 11},
                   {"[ ! -e /nowhere ] && [ \"$HOSTNAME\" != other ] && exit 12", 12},
                   {"while true; do\n  exit 13\ndone", 13},
                   {"while false; do exit 1; done; exit 14", 14},
                   {"exit $(( $RANDOM / 16384 ))", -1},
                   {"sleep infinity", -1},
                   {"sleep 99999999d", -1},
                   {"for i in 1 2; do exit 1; done", -1},
                   {"exit 1 | cat", 1}, /* the first command ends it */
                   {"echo a | grep b; exit 1", -1},
                   {"if true; then exit 15", 15},
                   {"if false; then exit 1", -1},
                   {"echo 'a; exit 1' \"b\\\" exit 2\"; exit 16", 16},
                   {"echo $(cat /etc/passwd); exit 1", -1},
                   {"} exit 1", -1},
                   {"f() { f; }; f", -1}};
    struct bh_arena a = {0};
    struct bh_json *pod = bh_json_make(&a, "metadata: {name: p-3, uid: u, labels: {v: '42'}}");
    struct bh_json *c = bh_json_make(&a, "name: c, env: []");

    bh_json_append(&a, bh_tree_arr(c, "env"), "name: V, valueFrom: {fieldRef: {fieldPath: %s}}",
                   "metadata.labels['v']");
    for (size_t i = 0; i < BH_ARRAY_LEN(scripts); i++) {
        int got = code_of(&a, pod, c, scripts[i].script);
        if (got != scripts[i].code)
            fprintf(stderr, "%s: %d, want %d\n", scripts[i].script, got, scripts[i].code);
        CU_ASSERT_EQUAL(got, scripts[i].code);
    }
    bh_arena_fini(&a);
}

/* Calls of calls, doubled variables and brackets in brackets: more than is read of any program. */
static void test_script_bounds(void)
{
    BH_CLEANUP(bh_buf_fini)
    struct bh_buf calls = {0}, doubled = {0}, brackets = {0}, sum = {0}, names = {0};
    struct bh_arena a = {0};
    const struct bh_json *pod = bh_json_make(&a, "metadata: {name: p}");
    const struct bh_json *c = bh_json_make(&a, "name: c");

    bh_buf_adds(&calls, "f0() { true; }\n");
    for (int i = 1; i < 7; i++)
        bh_buf_addf(&calls, "f%d() { f%d; f%d; f%d; f%d; f%d; f%d; }\n", i, i - 1, i - 1, i - 1,
                    i - 1, i - 1, i - 1);
    bh_buf_adds(&doubled, "x=a\n");
    for (int i = 0; i < 20; i++)
        bh_buf_adds(&doubled, "x=$x$x\n");
    bh_buf_adds(&doubled, "exit 3");
    bh_buf_adds(&sum, "x='        '\n");
    for (int i = 0; i < 11; i++)
        bh_buf_adds(&sum, "x=$x$x\n");
    bh_buf_adds(&brackets, "exit ");
    for (int i = 0; i < 40; i++)
        bh_buf_adds(&brackets, "$(expr 1 + ");
    bh_buf_adds(&brackets, "1");
    for (int i = 0; i < 40; i++)
        bh_buf_adds(&brackets, ")");
    CU_ASSERT_EQUAL(code_of(&a, pod, c, bh_arena_printf(&a, "%sf2; exit 3", bh_buf_str(&calls))),
                    3);
    bh_buf_adds(&calls, "f6; exit 3");
    CU_ASSERT_EQUAL(code_of(&a, pod, c, bh_buf_str(&calls)), -1);
    CU_ASSERT_EQUAL(code_of(&a, pod, c, bh_buf_str(&doubled)), -1);
    CU_ASSERT_EQUAL(code_of(&a, pod, c, bh_arena_printf(&a, "%sexit $((x 7))", bh_buf_str(&sum))),
                    7);
    bh_buf_adds(&sum, "exit $((x x x x 7))");
    CU_ASSERT_EQUAL(code_of(&a, pod, c, bh_buf_str(&sum)), -1);
    for (int i = 0; i < 1100; i++)
        bh_buf_adds(&names, "[ $v ];");
    bh_buf_adds(&names, "exit 3");
    CU_ASSERT_EQUAL(code_of(&a, pod, c, bh_buf_str(&names)), -1);
    CU_ASSERT_EQUAL(code_of(&a, pod, c, bh_buf_str(&brackets)), -1);
    bh_arena_fini(&a);
}

/* A file in a volume is there in the next run, for other pods where the volume is the node's. */
static void test_files_in_volumes(void)
{
    static const char script[] =
        "containers: [{name: c, image: i, command: [sh, -c, 'if [ -e /data/x ]; then exit 0; else "
        "touch /data/x; exit 1; fi'], volumeMounts: [{name: v, mountPath: /data}]}]";
    struct world w;
    char spec[400];

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    snprintf(spec, sizeof(spec), "restartPolicy: OnFailure, volumes: [{name: v, emptyDir: {}}], %s",
             script);
    pod_with(&w, "a", spec);
    pass(&w, 5);
    EQ(phase(&w, "a"), "Succeeded");
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "pods", "default", "a")->json, "\"restartCount\":1"));
    snprintf(spec, sizeof(spec), "restartPolicy: Never, volumes: [{name: v, emptyDir: {}}], %s",
             script);
    pod_with(&w, "b", spec);
    snprintf(spec, sizeof(spec),
             "restartPolicy: Never, volumes: [{name: v, hostPath: {path: /tmp/d}}], %s", script);
    pod_with(&w, "c", spec);
    pass(&w, 5);
    EQ(phase(&w, "b"), "Failed");
    EQ(phase(&w, "c"), "Failed");
    pod_with(&w, "d", spec);
    pass(&w, 5);
    EQ(phase(&w, "d"), "Succeeded");
    /* What has not begun has made nothing yet. */
    pod_with(
        &w, "e",
        "restartPolicy: Never, volumes: [{name: v, emptyDir: {}}], initContainers: [{name: a, "
        "image: i, command: [sleep, '3']}, {name: b, image: i, command: [sh, -c, '[ ! -e /v/up "
        "]'], volumeMounts: [{name: v, mountPath: /v}]}], containers: [{name: c, image: i, "
        "command: [sh, -c, 'touch /v/up'], volumeMounts: [{name: v, mountPath: /v}]}]");
    pass(&w, 8);
    EQ(phase(&w, "e"), "Succeeded");
    world_fini(&w);
}

static void test_probes(void)
{
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    pod_with(&w, "late",
             "containers: [{name: c, image: i, readinessProbe: {initialDelaySeconds: 20, httpGet: "
             "{port: 80}}}]");
    pod_with(&w, "never",
             "containers: [{name: c, image: i, readinessProbe: {exec: {command: ['false']}}}]");
    pod_with(&w, "soon",
             "containers: [{name: c, image: i, command: [sh, -c, 'touch /v/up; sleep 100'], "
             "volumeMounts: [{name: v, mountPath: /v}], readinessProbe: {exec: {command: [cat, "
             "/v/up]}}}], volumes: [{name: v, emptyDir: {}}]");
    pod_with(&w, "other",
             "containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}], "
             "readinessProbe: {exec: {command: [cat, /v/up]}}}, {name: d, image: i, command: [sh, "
             "-c, 'touch /v/up; sleep 100'], volumeMounts: [{name: v, mountPath: /v}]}], volumes: "
             "[{name: v, emptyDir: {}}]");
    pass(&w, 10);
    EQ(phase(&w, "late"), "Running");
    CU_ASSERT(!bh_ctl_pod_ready(get(&w.f, "pods", "default", "late")));
    CU_ASSERT(!bh_ctl_pod_ready(get(&w.f, "pods", "default", "never")));
    CU_ASSERT(bh_ctl_pod_ready(get(&w.f, "pods", "default", "soon")));
    CU_ASSERT(bh_ctl_pod_ready(get(&w.f, "pods", "default", "other")));
    pass(&w, 11);
    CU_ASSERT(bh_ctl_pod_ready(get(&w.f, "pods", "default", "late")));
    CU_ASSERT(!bh_ctl_pod_ready(get(&w.f, "pods", "default", "never")));
    world_fini(&w);
}

static void test_trap(void)
{
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    pod_with(&w, "p",
             "containers: [{name: c, image: i, command: [sh, -c, '_end(){ sleep 5; exit 143; }; "
             "trap _end SIGTERM; while true; do sleep 1; done']}]");
    pass(&w, 1);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, NULL);
    pass(&w, 4);
    EQ(phase(&w, "p"), "Running");
    pass(&w, 2);
    EQ(phase(&w, "p"), "gone");
    world_fini(&w);
}

/* The first time at once, then after 10 s, 20 s. */
static void test_restarts(void)
{
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    pod_with(&w, "p", "containers: [{name: c, image: i, command: ['false']}]");
    pass(&w, 1);
    EQ(phase(&w, "p"), "Running");
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "pods", "default", "p")->json, "\"restartCount\":1,"));
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "pods", "default", "p")->json, "CrashLoopBackOff"));
    CU_ASSERT(!bh_ctl_pod_ready(get(&w.f, "pods", "default", "p")));
    pass(&w, 31);
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "pods", "default", "p")->json, "\"restartCount\":3,"));
    world_fini(&w);
}

static void test_inits(void)
{
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    pod_with(&w, "p",
             "initContainers: [{name: a, image: i, command: [sleep, '3']}, {name: b, image: i, "
             "command: [sleep, '3']}], containers: [{name: c, image: i}]");
    pod_with(&w, "broken",
             "restartPolicy: Never, initContainers: [{name: a, image: i, command: ['false']}], "
             "containers: [{name: c, image: i}]");
    pass(&w, 4);
    EQ(phase(&w, "p"), "Pending");
    EQ(phase(&w, "broken"), "Failed");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(get(&w.f, "pods", "default", "p")->json, "incomplete status: [b]"));
    pass(&w, 3);
    EQ(phase(&w, "p"), "Running");
    CU_ASSERT(bh_ctl_pod_ready(get(&w.f, "pods", "default", "p")));
    world_fini(&w);
}

static void test_active_deadline(void)
{
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    pod_with(&w, "p", "activeDeadlineSeconds: 5, containers: [{name: c, image: i}]");
    pass(&w, 4);
    EQ(phase(&w, "p"), "Running");
    pass(&w, 1);
    EQ(phase(&w, "p"), "Failed");
    EQ(field(&w.f, get(&w.f, "pods", "default", "p"), "status.reason"), "DeadlineExceeded");
    world_fini(&w);
}

static void test_pre_stop(void)
{
    static const char spec[] = "terminationGracePeriodSeconds: 80, containers: [{name: c, image: "
                               "i, lifecycle: {preStop: {sleep: {seconds: 79}}}}]";
    struct bh_sim_delete_options o = {.grace_s = 0};
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    pod_with(&w, "p", spec);
    pod_with(&w, "forced", spec);
    pod_with(&w, "hurried", spec);
    pass(&w, 1);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, NULL);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "forced", NULL, NULL);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "hurried", NULL, NULL);
    pass(&w, 10);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "forced", &o, NULL);
    o.grace_s = 5;
    bh_sim_delete(w.f.s, type_of("pods"), "default", "hurried", &o, NULL);
    EQ(phase(&w, "forced"), "gone");
    pass(&w, 6);
    EQ(phase(&w, "hurried"), "gone");
    pass(&w, 62);
    EQ(phase(&w, "p"), "Running");
    pass(&w, 2);
    EQ(phase(&w, "p"), "gone");
    world_fini(&w);
}

static void test_pod_with_grace_period_of_its_own_terminates_as_long(void)
{
    static const char probe[] =
        "containers: [{name: c, image: i, livenessProbe: {terminationGracePeriodSeconds: 60, "
        "exec: {command: [\"true\"]}}}]";
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    pod_with(&w, "slow", "terminationGracePeriodSeconds: 60, containers: [{name: c, image: i}]");
    pod_with(&w, "usual", "containers: [{name: c, image: i}]");
    pod_with(&w, "probed", probe);
    pass(&w, 1);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "slow", NULL, NULL);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "usual", NULL, NULL);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "probed", NULL, NULL);
    pass(&w, 1);
    EQ(phase(&w, "usual"), "gone");
    EQ(phase(&w, "probed"), "gone");
    pass(&w, 58);
    EQ(phase(&w, "slow"), "Running");
    pass(&w, 2);
    EQ(phase(&w, "slow"), "gone");
    world_fini(&w);
}

/* A pod may be bound before its node is there; it runs when the node comes. */
static void test_pod_waits_for_node(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Pod", "default",
         "metadata: {name: p}\nspec: {nodeName: n7, containers: [{name: c, image: i}]}");
    settle(&w);
    EQ(get(&w.f, "pods", "default", "p")->phase, "Pending");
    make(&w.f, "Node", "", NODE("n7"));
    UNTIL(&w, bh_streq(get(&w.f, "pods", "default", "p")->phase, "Running"));
    world_fini(&w);
}

static void test_pod_goes(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Node", "", NODE("n1"));
    create_pod(&w.f, "p");
    UNTIL(&w, bh_streq(get(&w.f, "pods", "default", "p")->phase, "Running"));
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, &w.f.e), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(get(&w.f, "pods", "default", "p"));
    CU_ASSERT(get(&w.f, "pods", "default", "p")->deleting);
    UNTIL(&w, !get(&w.f, "pods", "default", "p"));
    world_fini(&w);
}

/* A finalizer keeps a stopped pod; the kubelet does not try again and again. */
static void test_pod_with_finalizer(void)
{
    struct world w;
    uint64_t rv;

    world_init(&w, NULL);
    make(&w.f, "Node", "", NODE("n1"));
    make(&w.f, "Pod", "default",
         "metadata: {name: p, finalizers: [a.b/c]}\nspec: {containers: [{name: c, image: i}]}");
    UNTIL(&w, bh_streq(get(&w.f, "pods", "default", "p")->phase, "Running"));
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, NULL);
    settle(&w);
    rv = bh_sim_revision(w.f.s);
    settle(&w);
    CU_ASSERT_EQUAL(bh_sim_revision(w.f.s), rv);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "pods", "default", "p"));
    CU_ASSERT_EQUAL(change(&w.f, "Pod", "default", "p", BH_SIM_MAIN, "metadata.finalizers", NULL),
                    0);
    UNTIL(&w, !get(&w.f, "pods", "default", "p"));
    world_fini(&w);
}

static void test_replaced_pod(void)
{
    const struct bh_sim_options o = {.first_revision = 100, .kubelet_delay_ns = 20000000};
    struct bh_sim_delete_options now = {.grace_s = 0};
    struct world w;

    /* The line holds pods by uid: one of the same name that came later is not touched early. */
    world_init(&w, &o);
    w.bind = false;
    make(&w.f, "Node", "", NODE("n1"));
    create_pod(&w.f, "p");
    bh_sim_bind(w.f.s, "default", "p", NULL, "n1", NULL, NULL, NULL);
    bh_sim_drain(w.f.s);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p", &now, NULL);
    create_pod(&w.f, "p");
    settle(&w);
    EQ(get(&w.f, "pods", "default", "p")->phase, "Pending");
    bh_sim_bind(w.f.s, "default", "p", NULL, "n1", NULL, NULL, NULL);
    UNTIL(&w, bh_streq(get(&w.f, "pods", "default", "p")->phase, "Running"));
    world_fini(&w);
}

static void test_no_kubelet(void)
{
    const struct bh_sim_options o = {.first_revision = 100, .no_kubelet = true};
    struct world w;

    world_init(&w, &o);
    make(&w.f, "Node", "", NODE("n1"));
    create_pod(&w.f, "p");
    settle(&w);
    EQ(get(&w.f, "pods", "default", "p")->phase, "Pending");
    EQ(get(&w.f, "pods", "default", "p")->node_name, "n1");
    world_fini(&w);
}

static void test_many(void)
{
    struct world w;
    char name[32];

    world_init(&w, NULL);
    make(&w.f, "Node", "", NODE("n1"));
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "p%d", i);
        create_pod(&w.f, name);
        bh_arena_reset(&w.f.a);
    }
    UNTIL(&w, count_pods(&w, "Running") == 2000);
    world_fini(&w);
}

BH_TESTS("simulator/controllers/kubelet", {"a node without status comes up", test_node_comes_up},
         {"extended resources come and go with capacity", test_extended_resources_follow},
         {"a node with a Ready condition is left alone", test_scripted_node},
         {"a bound pod runs after one write", test_pod_runs},
         {"a container ends as its command says", test_commands},
         {"a container that ended starts again", test_restarts},
         {"init containers come one after the other", test_inits},
         {"a pod ends at its active deadline", test_active_deadline},
         {"a preStop hook holds a pod, a force delete does not", test_pre_stop},
         {"a grace period of its own", test_pod_with_grace_period_of_its_own_terminates_as_long},
         {"a pod bound to no node waits for it", test_pod_waits_for_node},
         {"a deleted pod is gone after its grace", test_pod_goes},
         {"a finalizer keeps a stopped pod quietly", test_pod_with_finalizer},
         {"a pod of the same name is another pod", test_replaced_pod},
         {"without kubelet nothing runs", test_no_kubelet}, {"thousands of pods pass", test_many},
         {"scripts", test_scripts}, {"scripts without end", test_script_bounds},
         {"files in volumes", test_files_in_volumes}, {"readiness probes", test_probes},
         {"a trap takes its time", test_trap})
