/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins in a process of their own: berth simulate decides as it does with them in its own process, and goes on when
 * that process ends.
 *
 * This program is berth-plugin-host, too. It keeps its rights and its files then, and ends at SIGTERM, which is sent
 * for SIGKILL: so a coverage build writes the counters of that side. What the sandbox forbids is
 * tests/integration/plugin_process.sh's to prove.
 */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "scheduler/native/native.h"
#include "scheduler/native/process.h"
#include "tests/unit/harness.h"

/* ---- the other side ---------------------------------------------------------------------------- */

void __gcov_dump(void) __attribute__((weak));
static bool is_host;

static void leave(int status)
{
    if (__gcov_dump)
        __gcov_dump();
    _exit(status);
}

/* Plugins that crash end by their signal. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0";
}
int bh_px_sandbox(bool loading)
{
    (void)loading;
    return 0;
}
uid_t geteuid(void) /* a host that is not root gives up no rights */
{
    return is_host ? 65534 : (uid_t)syscall(SYS_geteuid);
}
int setrlimit(__rlimit_resource_t what, const struct rlimit *l) /* sanitizers need more */
{
    (void)what, (void)l;
    return 0;
}
int kill(pid_t pid, int sig)
{
    return (int)syscall(SYS_kill, pid, sig == SIGKILL ? SIGTERM : sig);
}

__attribute__((constructor)) static void be_host(int argc, char **argv)
{
    if (argc < 1 || !bh_streq(argv[0], "berth-plugin-host") || fcntl(BH_PX_FD_SOCK, F_GETFD) < 0)
        return;
    is_host = true;
    (void)signal(SIGTERM, leave);
    leave(bh_px_host_main(argc, argv));
}

/* ---- this side --------------------------------------------------------------------------------- */

#define LEAVES 100 /* the child's status: simulate's is added */

struct world { /* files in a folder of their own */
    char *dir, *config, *objects, *out;
};

static void put(const char *path, const struct bh_buf *b)
{
    CU_ASSERT_FATAL(bh_write_file(path, bh_buf_str(b), b->n, 0600) == 0);
}

/* One profile, whose plugins those are, with args of one of them, or NULL; objects: YAML, let go here. */
static void begin(struct world *w, const char *plugins, const char *plugin, const char *args,
                  struct bh_buf *objects)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    static unsigned n;

    w->dir = bh_asprintf("%s/%u", bh_test_tmpdir(), n++);
    CU_ASSERT_FATAL(mkdir(w->dir, 0700) == 0);
    w->config = bh_asprintf("%s/config", w->dir);
    w->objects = bh_asprintf("%s/objects", w->dir);
    w->out = bh_asprintf("%s/out", w->dir);
    bh_buf_addf(&b,
                "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
                "profiles:\n- plugins: %s\n",
                plugins);
    if (args)
        bh_buf_addf(&b, "  pluginConfig: [{name: %s, args: %s}]\n", plugin, args);
    put(w->config, &b);
    put(w->objects, objects);
    bh_buf_fini(objects);
}
static void end(struct world *w)
{
    free(w->dir);
    free(w->config);
    free(w->objects);
    free(w->out);
}

/* What simulate prints with the plugin in that mode; the caller frees it. extra: one more of its flags. */
static char *simulate(struct world *w, const char *plugin, const char *file, const char *mode,
                      const char *extra)
{
    char exe[PATH_MAX] = "", *text = NULL;
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    int status = 0;
    size_t n = 0;

    CU_ASSERT_FATAL(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    bh_buf_addf(&b, "{name: %s, file: %s/../../%s, mode: %s}\n", plugin, dirname(exe), file, mode);
    BH_CLEANUP(bh_freep) char *yaml = bh_asprintf("%s/plugin.yaml", w->dir);
    put(yaml, &b);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {(char[]){"simulate"},
                        (char[]){"-f"},
                        w->objects,
                        (char[]){"--config"},
                        w->config,
                        (char[]){"-o"},
                        (char[]){"wide"},
                        (char[]){"--tie-break"},
                        (char[]){"first"},
                        (char *)(uintptr_t)extra,
                        NULL};
        const int fd = open(w->out, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
            leave(1);
        setenv("BERTH_PLUGIN_CONFIG", w->dir, 1);
        setenv("BERTH_PLUGIN_DIR", w->dir, 1);
        setenv("BERTH_PLUGIN_HOST", "/proc/self/exe", 1);
        setenv("BERTH_PLUGIN_TIMEOUT", "60s", 1); /* however slow the machine is */
        const int rc = bh_cmd_simulate(extra ? 10 : 9, argv);
        bh_native_end_processes();
        fflush(NULL);
        leave(LEAVES + rc);
    }
    CU_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) >= LEAVES);
    CU_ASSERT_FATAL(bh_read_file(w->out, 16u << 20, &text, &n) == 0);
    return text;
}

static void add_nodes(struct bh_buf *b, unsigned n)
{
    for (unsigned i = 1; i <= n; i++)
        bh_buf_addf(
            b,
            "---\n{apiVersion: v1, kind: Node, metadata: {name: n%u, labels: {rank: '%u'}}, "
            "status: {allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}}\n",
            i, i * 7 % 10);
}

static void add_pod(struct bh_buf *b, const char *name, const char *labels, int priority,
                    const char *cpu, const char *more)
{
    bh_buf_addf(b,
                "---\n{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}, annotations: "
                "{note: of-%s}}, spec: {priority: %d, %s containers: [{name: c, image: i, "
                "resources: {requests: {cpu: %s, memory: 64Mi}}}]}}\n",
                name, labels, name, priority, more, cpu);
}

static void add_pods(struct bh_buf *b, unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        char name[16], labels[64], cpu[16];
        snprintf(name, sizeof name, "p%u", i);
        snprintf(labels, sizeof labels, "app: a%u, least: '%u'", i % 5, i % 9);
        snprintf(cpu, sizeof cpu, "%um", (i * 37 % 15 + 1) * 100);
        add_pod(b, name, labels, (int)(i % 3), cpu, "");
    }
}

static void has(const char *text, const char *want)
{
    const bool there = strstr(text, want) != NULL;

    CU_ASSERT(there);
    if (!there)
        fprintf(stderr, "  want %s\n  have %s\n", want, text);
}

/* Both modes print one text, which says that. */
static void same(struct world *w, const char *plugin, const char *file, const char *extra,
                 const char *says)
{
    BH_CLEANUP(bh_freep) char *here = simulate(w, plugin, file, "inProcess", extra);
    BH_CLEANUP(bh_freep) char *there = simulate(w, plugin, file, "process", extra);

    CU_ASSERT(bh_streq(here, there));
    if (!bh_streq(here, there))
        fprintf(stderr, "  %s: in its own process\n%s\n  ... here\n%s\n", plugin, there, here);
    has(there, says);
}

#define EVERY(name)                                                                                \
    "{multiPoint: {enabled: [{name: " name ", weight: 3}]}, bind: {enabled: [{name: " name         \
    "}, {name: DefaultBinder}], disabled: [{name: '*'}]}}"
#define MULTI(name)  "{multiPoint: {enabled: [{name: " name "}]}}"
#define SCORES(name) "{score: {enabled: [{name: " name ", weight: 10}]}}"

static void test_same(void)
{
    static const struct {
        const char *plugin, *file, *profile, *args, *says;
    } rows[] = {
        {"Apart", "tests/plugins/apart.so", EVERY("Apart"), NULL, " placed, "},
        {"ApartKept", "tests/plugins/apart.so", MULTI("ApartKept"), NULL, "too low a rank"},
        {"ApartOthers", "tests/plugins/apart.so", MULTI("ApartOthers"), NULL, " placed, "},
        {"ApartRows", "tests/plugins/apart.so", MULTI("ApartRows"), NULL, " placed, "},
        {"NodeMetadata", "plugins/nodemetadata.so", SCORES("NodeMetadata"),
         "{metadataKey: rank, metadataSource: Label, metadataType: Number, scoringStrategy: "
         "Highest}",
         " placed, "},
        {"NodeResourcesAllocatable", "plugins/noderesourcesallocatable.so",
         SCORES("NodeResourcesAllocatable"), NULL, " placed, "},
        {"NodeNumberRows", "plugins/nodenumber.so", SCORES("NodeNumberRows"), NULL, " placed, "},
        {"LabelGang", "plugins/labelgang.so", MULTI("LabelGang"),
         "{groupLabel: app, sizeLabel: least}", " placed, "},
        {"PodState", "plugins/podstate.so", SCORES("PodState"), NULL, " placed, "},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_buf objects = {0};
        struct world w;
        add_nodes(&objects, 20);
        add_pods(&objects, 60);
        add_pod(&objects, "large", "app: a", 100, "4", ""); /* for whom others have to go */
        begin(&w, rows[i].profile, rows[i].plugin, rows[i].args, &objects);
        same(&w, rows[i].plugin, rows[i].file, "--explain", rows[i].says);
        BH_CLEANUP(bh_freep)
        char *verified = simulate(&w, rows[i].plugin, rows[i].file, "process", "--verify");
        has(verified, " placed, ");
        end(&w);
    }
}

/* ---- objects that plugins read, and quotas of which they keep account --------------------------- */

#define CLASS(name, value, annotations)                                                            \
    "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " name          \
    ", annotations: {" annotations "}}, value: " value "}\n"
#define POD(ns, name, spec)                                                                        \
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: " ns                   \
    ", annotations: {note: x}}, spec: {" spec                                                      \
    " containers: [{name: c, image: i, resources: {requests: &r {cpu: '2', memory: 1Gi}, limits: " \
    "*r}}]}}\n"
#define QUOTA(ns)                                                                                  \
    "---\n{apiVersion: v1, kind: Namespace, metadata: {name: " ns "}}\n---\n{apiVersion: "         \
    "scheduling.x-k8s.io/v1alpha1, kind: ElasticQuota, metadata: {name: q, namespace: " ns         \
    "}, spec: {min: {cpu: '4'}, max: {cpu: '6'}}}\n"
#define PROFILE(name, calls)                                                                       \
    "---\n{apiVersion: security-profiles-operator.x-k8s.io/v1beta1, kind: SeccompProfile, "        \
    "metadata: {name: " name ", namespace: default}, spec: {defaultAction: SCMP_ACT_ERRNO, "       \
    "syscalls: [{action: SCMP_ACT_ALLOW, names: [" calls "]}]}}\n"
#define BY(name)                                                                                   \
    "securityContext: {seccompProfile: {type: Localhost, localhostProfile: operator/default/" name \
    ".json}},"
#define ZONES(node)                                                                                \
    "---\n{apiVersion: topology.node.k8s.io/v1alpha2, kind: NodeResourceTopology, metadata: "      \
    "{name: " node "}, attributes: [{name: topologyManagerPolicy, value: single-numa-node}], "     \
    "zones: [{name: node-0, type: Node, resources: [{name: cpu, available: '2'}, {name: memory, "  \
    "available: 8Gi}]}]}\n"
#define TOLERANT "preemption-toleration.scheduling.x-k8s.io/"

static void test_objects(void)
{
    static const struct {
        const char *plugin, *file, *profile, *args, *objects, *says;
    } rows[] = {
        {"NodeResourceTopologyMatch", "plugins/noderesourcetopologymatch.so",
         MULTI("NodeResourceTopologyMatch"), "{cacheResyncPeriodSeconds: 5}",
         ZONES("n1") ZONES("n2") POD("default", "a", "") POD("default", "b", "")
             POD("default", "c", ""),
         "2 placed, 1 unschedulable"},
        {"PreemptionToleration", "plugins/preemptiontoleration.so",
         "{postFilter: {enabled: [{name: PreemptionToleration}], disabled: [{name: "
         "DefaultPreemption}]}}",
         "{minCandidateNodesPercentage: 10, minCandidateNodesAbsolute: 100}",
         CLASS("batch", "100",
               TOLERANT "minimum-preemptable-priority: '10000', " TOLERANT
                        "toleration-seconds: '60'") CLASS("high", "9999", "")
             CLASS("higher", "10000", "")
                 POD("default", "a", "priorityClassName: batch, nodeName: n1,")
                     POD("default", "b", "priorityClassName: batch, nodeName: n1,")
                         POD("default", "c", "priorityClassName: batch, nodeName: n2,")
                             POD("default", "d", "priorityClassName: batch, nodeName: n2,")
                                 POD("default", "e", "priorityClassName: high,")
                                     POD("default", "f", "priorityClassName: higher,"),
         "default/f"},
        {"CapacityScheduling", "plugins/capacityscheduling.so",
         "{multiPoint: {enabled: [{name: CapacityScheduling}]}, postFilter: {disabled: [{name: "
         "'*'}], enabled: [{name: CapacityScheduling}]}}",
         NULL,
         QUOTA("lender") QUOTA("borrower") CLASS("low", "0", "") CLASS("high", "1000", "")
             POD("borrower", "a", "priorityClassName: high,")
                 POD("borrower", "b", "priorityClassName: high,")
                     POD("borrower", "c", "priorityClassName: high,")
                         POD("borrower", "d", "priorityClassName: high,")
                             POD("lender", "e", "priorityClassName: low,")
                                 POD("lender", "f", "priorityClassName: low,"),
         "Pod borrower/d is rejected in PreFilter because ElasticQuota borrower is more than Max"},
        {"SySched", "plugins/sysched.so", SCORES("SySched"),
         "{defaultProfileNamespace: default, defaultProfileName: all-syscalls}",
         PROFILE("web", "read, write, accept, listen") PROFILE("batch", "read, write, fork, execve")
             POD("default", "a", BY("web") "nodeName: n1,")
                 POD("default", "b", BY("batch") "nodeName: n2,") POD("default", "c", BY("batch")),
         "c     Scheduled  n2"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_buf objects = {0};
        struct world w;
        add_nodes(&objects, 2);
        bh_buf_adds(&objects, rows[i].objects);
        begin(&w, rows[i].profile, rows[i].plugin, rows[i].args, &objects);
        same(&w, rows[i].plugin, rows[i].file, NULL, rows[i].says);
        end(&w);
    }
}

/* Room is made: who asks is asked back. */
static void test_evicts(void)
{
    struct bh_buf objects = {0};
    struct world w;

    add_nodes(&objects, 1);
    add_pod(&objects, "low0", "app: a", 0, "2", "nodeName: n1,");
    add_pod(&objects, "low1", "app: a", 1, "2", "nodeName: n1,");
    add_pod(&objects, "asks", "app: a", 100, "2", "");
    begin(&w, "{postFilter: {enabled: [{name: Evicts}], disabled: [{name: '*'}]}}", "Evicts", NULL,
          &objects);
    same(&w, "Evicts", "tests/plugins/evicts.so", NULL, "default/asks");
    end(&w);
}

/* ---- what happens there -------------------------------------------------------------------------- */

static void test_ends(void)
{
    static const struct {
        const char *labels, *says;
    } rows[] = {
        {"at: PreEnqueue, do: segv",
         "Gated   <none>  <none>            0  it is put aside: it ended its process three times"},
        {"at: Filter, do: segv", "its process crashed: Segmentation fault, at Filter"},
        {"at: Score, do: exit", "its process ended with status 3, at Score"},
        {"at: Filter, do: lie1", "its process answered what makes no sense, at Filter"},
        {"at: Filter, do: lie2", "its process answered what makes no sense, at Filter"},
        {"at: Filter, do: lie3", "its process answered what makes no sense, at Filter"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_buf objects = {0};
        struct world w;
        add_nodes(&objects, 4);
        add_pod(&objects, "before", "app: a", 0, "100m", "");
        add_pod(&objects, "ends", rows[i].labels, 0, "100m", "");
        add_pod(&objects, "after", "app: a", 0, "100m", "");
        begin(&w, EVERY("Apart"), "Apart", NULL, &objects);
        BH_CLEANUP(bh_freep)
        char *there = simulate(&w, "Apart", "tests/plugins/apart.so", "process", NULL);
        has(there, rows[i].says);
        has(there, i ? "2 placed, " : "0 placed, "); /* put aside, it places nobody */
        end(&w);
    }
}

/* The plugin's memory of pods that wait is gone with its process: they are decided again. */
static void test_pods_that_wait_when_it_ends(void)
{
    struct bh_buf objects = {0};
    struct world w;

    add_nodes(&objects, 1);
    add_pod(&objects, "w1", "size: \"3\"", 0, "100m", "");
    add_pod(&objects, "w2", "size: \"3\"", 0, "100m", "");
    add_pod(&objects, "ends", "at: Permit, do: segv", 0, "100m", "");
    add_pod(&objects, "w3", "size: \"3\"", 0, "100m", "");
    begin(&w, MULTI("ApartWaits"), "ApartWaits", NULL, &objects);
    BH_CLEANUP(bh_freep)
    char *there = simulate(&w, "ApartWaits", "tests/plugins/apart.so", "process", NULL);
    has(there, "its process crashed: Segmentation fault, at Permit");
    has(there, "3 placed, 0 unschedulable, 1 failed");
    end(&w);
}

/* Answers that may not be are the same errors in both modes. */
static void test_wrong(void)
{
    static const char *const what[] = {"code", "text",       "long",  "score",
                                       "rows", "undeclared", "thread"};
    struct bh_buf objects = {0};
    struct world w;

    add_nodes(&objects, 70);
    for (size_t i = 0; i < BH_ARRAY_LEN(what); i++) {
        char labels[32], name[32];
        snprintf(labels, sizeof labels, "do: %s", what[i]);
        snprintf(name, sizeof name, "after-%s", what[i]);
        add_pod(&objects, what[i], labels, 0, "100m", "");
        add_pod(&objects, name, "app: a", 0, "100m", "");
    }
    begin(&w, MULTI("ApartRows"), "ApartRows", NULL, &objects);
    BH_CLEANUP(bh_freep)
    char *here = simulate(&w, "ApartRows", "tests/plugins/apart.so", "inProcess", NULL);
    BH_CLEANUP(bh_freep)
    char *there = simulate(&w, "ApartRows", "tests/plugins/apart.so", "process", NULL);
    has(there, "it returned the status code 17, which there is not");
    has(there, "it gave a reason that is not printable UTF-8");
    has(there, "it used now without BERTH_READS_TIME");
    has(here, "it changed the rows that it was given");
    has(there, "it changed the rows that it was given");
    end(&w);
}

/* Wrong arguments are told with their path. */
static void test_arguments(void)
{
    struct bh_buf objects = {0};
    struct world w;

    add_nodes(&objects, 1);
    begin(&w, SCORES("NodeMetadata"), "NodeMetadata",
          "{metadataSource: Label, metadataType: Number, scoringStrategy: Best}", &objects);
    BH_CLEANUP(bh_freep)
    char *there = simulate(&w, "NodeMetadata", "plugins/nodemetadata.so", "process", NULL);
    has(there, "metadataKey cannot be empty");
    end(&w);
}

/* More errors than a reply can hold are no valid arguments, and the process goes on. */
static void test_arguments_with_errors_beyond_a_reply_are_refused(void)
{
    static const char *const rows[][2] = {{"{wrong: 1}", "args.wrong: xxxx"},
                                          {"{wrong: 30000}", "its answer has more than 24 MiB"}};

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_buf objects = {0};
        struct world w;
        add_nodes(&objects, 1);
        begin(&w, MULTI("ApartWaits"), "ApartWaits", rows[i][0], &objects);
        BH_CLEANUP(bh_freep)
        char *there = simulate(&w, "ApartWaits", "tests/plugins/apart.so", "process", NULL);
        has(there, rows[i][1]);
        end(&w);
    }
}

BH_TESTS("cli/apart", {"the same decisions", test_same}, {"objects that are read", test_objects},
         {"room is made", test_evicts}, {"processes that end", test_ends},
         {"pods that wait when it ends", test_pods_that_wait_when_it_ends},
         {"answers that may not be", test_wrong}, {"arguments", test_arguments},
         {"arguments with errors beyond a reply are refused",
          test_arguments_with_errors_beyond_a_reply_are_refused})
