/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/plugins_pipeline.c - a form of a plugin in the real processes
 *
 * This program once more, as `berth bench perf --mode pipeline` on files made for it: it knows how to
 * start and to stop a cluster, and when a pod counts. Plugins are found by the environment.
 */
#include "bench/scale/plugins.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/data/json.h"

#define PODS       20000u
#define PODS_EACH  400u /* of what answers for each pod */
#define OUTPUT_MAX ((size_t)4 << 20)

static const char node_yaml[] =
    "apiVersion: v1\nkind: Node\nmetadata: {name: \"node-{{ .Index }}\", labels: "
    "{kubernetes.io/hostname: \"node-{{ .Index }}\"}}\nstatus: {capacity: {cpu: \"64\", memory: "
    "256Gi, pods: \"400\"}, conditions: [{type: Ready, status: \"True\"}]}\n";
static const char pod_yaml[] =
    "apiVersion: v1\nkind: Pod\nmetadata: {generateName: plain-}\nspec: {containers: [{name: main, "
    "image: registry.k8s.io/pause:3.10.1, resources: {requests: {cpu: 100m, memory: 200Mi}}}]}\n";
static const char workload_yaml[] =
    "- name: plugins\n  workloadTemplate:\n"
    "  - {opcode: createNodes, count: %u, nodeTemplatePath: node.yaml}\n"
    "  - {opcode: createPods, count: 50, namespace: before, podTemplatePath: pod.yaml}\n"
    "  - {opcode: createPods, count: %u, namespace: bench, podTemplatePath: pod.yaml, "
    "collectMetrics: true}\n"
    "  workloads:\n  - {name: pods, params: {}}\n";

static const char *const files[] = {"node.yaml", "pod.yaml", "workload.yaml", "config.yaml"};

static int put(const char *dir, size_t i, const char *text, size_t n, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", dir, files[i]);
    int rc = bh_write_file(path, text, n, 0600);

    return rc < 0 ? bh_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

static int put_all(const char *dir, const struct bh_bench_form *f,
                   const struct bh_bench_extender *x, uint32_t nodes, struct bh_err *err)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_buf config BH_CLEANUP(bh_buf_fini) = {0};
    BH_CLEANUP(bh_freep)
    char *workload = bh_asprintf(workload_yaml, nodes,
                                 f->plugin && f->guest != BH_BENCH_GUEST ? PODS : PODS_EACH);
    int rc = put(dir, 0, node_yaml, sizeof node_yaml - 1, err);

    bh_json_write(&config, bh_bench_form_config(&a, f, x));
    if (rc == 0)
        rc = put(dir, 1, pod_yaml, sizeof pod_yaml - 1, err);
    if (rc == 0)
        rc = put(dir, 2, workload, strlen(workload), err);
    return rc == 0 ? put(dir, 3, config.p, config.n, err) : rc;
}

/* What the program prints, all of it; its status. */
static int run(const char *dir, struct bh_buf *out, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *workload = bh_asprintf("%s/workload.yaml", dir);
    BH_CLEANUP(bh_freep) char *config = bh_asprintf("%s/config.yaml", dir);
    char part[4096];
    int fd[2], status = 0;
    ssize_t n;

    if (pipe(fd) < 0)
        return bh_err_set(err, -errno, "pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        execl("/proc/self/exe", "berth-bench", "perf", workload, "--mode", "pipeline", "--labels",
              "", "--config", config, "-o", "json", NULL);
        _exit(127);
    }
    close(fd[1]);
    while (pid > 0 && out->n < OUTPUT_MAX && (n = read(fd[0], part, sizeof part)) != 0)
        if (n > 0)
            bh_buf_add(out, part, (size_t)n);
        else if (errno != EINTR)
            break;
    close(fd[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return bh_err_set(err, -EIO, "the pipeline failed, see above");
}

static int throughput(const struct bh_buf *text, double *ret, struct bh_err *err)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_json *v = NULL;
    int rc = bh_json_parse(&a, text->p, text->n, BH_JSON_STRICT, &v, err);

    if (rc < 0)
        return rc;
    bh_json_each(item, bh_json_get(v, "dataItems")) {
        const struct bh_json *average = bh_json_path(item, "data.Average");
        const char *metric = bh_json_get_str(bh_json_get(item, "labels"), "Metric");
        if (average && metric && bh_streq(metric, "berth_throughput")) {
            *ret = strtod(average->s.p, NULL);
            return 0;
        }
    }
    return bh_err_set(err, -EIO, "the pipeline's results have no berth_throughput");
}

int bh_bench_form_pipeline(const struct bh_bench_form *f, const struct bh_bench_extender *x,
                           uint32_t nodes, double *ret_per_s, struct bh_err *err)
{
    char dir[] = "/tmp/berth-plugins-XXXXXX";
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};

    if (!mkdtemp(dir))
        return bh_err_set(err, -errno, "%s: %s", dir, strerror(errno));
    int rc = put_all(dir, f, x, nodes, err);
    if (rc == 0)
        rc = run(dir, &out, err);
    if (rc == 0)
        rc = throughput(&out, ret_per_s, err);
    for (size_t i = 0; i < BH_ARRAY_LEN(files); i++) {
        BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
    return rc;
}
