/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/get.c - `berth get nodes|pods`: the scheduler's view, read from the snapshot in shared memory
 *
 * No API server is asked. What is shown is what decisions are taken from, assumed pods excepted.
 */
#include "cli/cli.h"
#include "common/base/map.h"
#include "common/snapshot/snapshot.h"
#include <errno.h>

struct node_row {
    struct bh_node_rec *rec;
    __int128 cpu_milli, memory_bytes;
    uint64_t pods;
};
struct pod_row {
    struct bh_pod_rec *rec;
    int64_t cpu_milli, memory_bytes;
};
struct view {
    struct bh_symtab *symtab;
    struct node_row *nodes;
    struct pod_row *pods;
    size_t n_nodes, n_pods;
    struct bh_umap
        node_index;          /* symbol of the name -> row: a rebuild may deliver an object twice */
    struct bh_map pod_index; /* uid -> row + 1 */
    bool complete;
};

static void view_reset(struct view *v)
{
    for (size_t i = 0; i < v->n_nodes; i++)
        free(v->nodes[i].rec);
    for (size_t i = 0; i < v->n_pods; i++)
        free(v->pods[i].rec);
    v->n_nodes = v->n_pods = 0;
    bh_umap_clear(&v->node_index);
    bh_map_clear(&v->pod_index);
}

static void put_node(struct view *v, const struct bh_node_rec *rec)
{
    uint64_t row;

    if (!bh_umap_get(&v->node_index, rec->name, &row)) {
        row = v->n_nodes++;
        v->nodes = bh_reallocarray(v->nodes, v->n_nodes, sizeof(*v->nodes));
        v->nodes[row] = (struct node_row){0};
        bh_umap_put(&v->node_index, rec->name, row);
    }
    free(v->nodes[row].rec);
    v->nodes[row].rec = bh_memdup(rec, rec->h.size);
}

static void put_pod(struct view *v, const struct bh_pod_rec *rec, const struct bh_shape_rec *shape)
{
    struct bh_str uid = bh_rec_text(rec, rec->uid);
    uintptr_t row = (uintptr_t)bh_map_get(&v->pod_index, uid.p, uid.n);

    if (!row) {
        row = ++v->n_pods;
        v->pods = bh_reallocarray(v->pods, v->n_pods, sizeof(*v->pods));
        v->pods[row - 1] = (struct pod_row){0};
        (void)bh_map_put(&v->pod_index, uid.p, uid.n, (void *)row);
    }
    free(v->pods[row - 1].rec);
    v->pods[row - 1] = (struct pod_row){.rec = bh_memdup(rec, rec->h.size),
                                        .cpu_milli = shape->used.cpu_milli,
                                        .memory_bytes = shape->used.memory_bytes};
}

static void on_event(void *arg, const struct bh_snap_event *ev)
{
    struct view *v = arg;

    switch (ev->op) {
    case BH_SNAP_BEGIN:
        view_reset(v);
        v->complete = false;
        break;
    case BH_SNAP_END:
        v->complete = true;
        break;
    case BH_SNAP_NODE_PUT:
        if (!v->complete) /* one consistent picture is enough */
            put_node(v, ev->node);
        break;
    case BH_SNAP_POD_PUT:
        if (!v->complete)
            put_pod(v, ev->pod, ev->shape);
        break;
    default:
        break;
    }
}

static int read_view(struct view *v, const char *runtime_dir, struct bh_err *err)
{
    struct bh_snap_reader *r;
    enum bh_snap_outcome o = BH_SNAP_NOT_READY;

    r = bh_snap_reader_new(runtime_dir, v->symtab);
    for (unsigned i = 0; i < 10000 && !(v->complete && o == BH_SNAP_OK); i++) {
        o = bh_snap_follow(r, 1u << 20, on_event, v);
        if (o == BH_SNAP_NOT_READY || o == BH_SNAP_VERSION || o == BH_SNAP_CORRUPT)
            break;
    }
    if (!v->complete)
        bh_err_set(err, -ENOENT, "no snapshot in \"%s\": %s", runtime_dir, bh_snap_reader_error(r));
    bh_snap_reader_free(r);
    return v->complete ? 0 : -ENOENT;
}

static int node_order(const void *a, const void *b, void *arg)
{
    const struct node_row *x = a, *y = b;

    return strcmp(bh_sym_text(arg, x->rec->name), bh_sym_text(arg, y->rec->name));
}

static int pod_order(const void *a, const void *b)
{
    const struct bh_pod_rec *x = ((const struct pod_row *)a)->rec,
                            *y = ((const struct pod_row *)b)->rec;
    int c = strcmp(bh_rec_text(x, x->namespace_).p, bh_rec_text(y, y->namespace_).p);

    return c ? c : strcmp(bh_rec_text(x, x->name).p, bh_rec_text(y, y->name).p);
}

static void sum_up(struct view *v)
{
    struct node_row **by_sym = bh_calloc(bh_symtab_count(v->symtab), sizeof(*by_sym));

    for (size_t i = 0; i < v->n_nodes; i++)
        by_sym[v->nodes[i].rec->name] = &v->nodes[i];
    for (size_t i = 0; i < v->n_pods; i++) {
        struct node_row *n = by_sym[v->pods[i].rec->node];
        if (!n)
            continue;
        n->pods++;
        n->cpu_milli += v->pods[i].cpu_milli;
        n->memory_bytes += v->pods[i].memory_bytes;
    }
    free(by_sym);
}

static int percent(__int128 used, int64_t of)
{
    return of > 0 ? (int)(used * 100 / of) : 0;
}

static void print_nodes(struct view *v)
{
    qsort_r(v->nodes, v->n_nodes, sizeof(*v->nodes), node_order, v->symtab);
    sum_up(v);
    printf("%-32s %-20s %9s %6s %11s %6s %10s\n", "NAME", "STATUS", "CPU", "CPU%", "MEMORY", "MEM%",
           "PODS");
    for (size_t i = 0; i < v->n_nodes; i++) {
        const struct node_row *n = &v->nodes[i];
        char memory[32], pods[48];
        snprintf(memory, sizeof(memory), "%lldMi", (long long)(n->memory_bytes >> 20));
        snprintf(pods, sizeof(pods), "%llu/%lld", (unsigned long long)n->pods,
                 (long long)n->rec->alloc_pods);
        printf("%-32s %-20s %8lldm %5d%% %11s %5d%% %10s\n", bh_sym_text(v->symtab, n->rec->name),
               n->rec->flags & BH_NODE_UNSCHEDULABLE ? "SchedulingDisabled" : "Schedulable",
               (long long)n->cpu_milli, percent(n->cpu_milli, n->rec->alloc_cpu_milli), memory,
               percent(n->memory_bytes, n->rec->alloc_memory_bytes), pods);
    }
}

static void print_pods(struct view *v)
{
    qsort(v->pods, v->n_pods, sizeof(*v->pods), pod_order);
    printf("%-20s %-48s %-32s %9s %11s\n", "NAMESPACE", "NAME", "NODE", "CPU", "MEMORY");
    for (size_t i = 0; i < v->n_pods; i++) {
        const struct pod_row *p = &v->pods[i];
        char memory[32];
        snprintf(memory, sizeof(memory), "%lldMi", (long long)(p->memory_bytes >> 20));
        printf("%-20s %-48s %-32s %8lldm %11s\n", bh_rec_text(p->rec, p->rec->namespace_).p,
               bh_rec_text(p->rec, p->rec->name).p, bh_sym_text(v->symtab, p->rec->node),
               (long long)p->cpu_milli, memory);
    }
}

static void print_json(struct view *v, bool nodes)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_addc(&b, '[');
    for (size_t i = 0; nodes && i < v->n_nodes; i++) {
        const struct node_row *n = &v->nodes[i];
        const char *name = bh_sym_text(v->symtab, n->rec->name);
        bh_buf_adds(&b, i ? ",{\"name\":" : "{\"name\":");
        bh_buf_add_json_str(&b, name, strlen(name));
        bh_buf_addf(
            &b, ",\"unschedulable\":%s,\"pods\":%llu,\"cpuMilli\":%lld,\"memoryBytes\":%lld}",
            n->rec->flags & BH_NODE_UNSCHEDULABLE ? "true" : "false", (unsigned long long)n->pods,
            (long long)n->cpu_milli, (long long)n->memory_bytes);
    }
    for (size_t i = 0; !nodes && i < v->n_pods; i++) {
        const struct pod_row *p = &v->pods[i];
        struct bh_str ns = bh_rec_text(p->rec, p->rec->namespace_);
        struct bh_str name = bh_rec_text(p->rec, p->rec->name);
        const char *node = bh_sym_text(v->symtab, p->rec->node);
        bh_buf_adds(&b, i ? ",{\"namespace\":" : "{\"namespace\":");
        bh_buf_add_json_str(&b, ns.p, ns.n);
        bh_buf_adds(&b, ",\"name\":");
        bh_buf_add_json_str(&b, name.p, name.n);
        bh_buf_adds(&b, ",\"node\":");
        bh_buf_add_json_str(&b, node, strlen(node));
        bh_buf_addf(&b, ",\"cpuMilli\":%lld,\"memoryBytes\":%lld}", (long long)p->cpu_milli,
                    (long long)p->memory_bytes);
    }
    bh_buf_addc(&b, ']');
    puts(bh_buf_str(&b));
}

static const struct bh_opt_usage usage = {
    .program = "berth get",
    .synopsis = "nodes|pods [flags]",
    .about = "Prints nodes (with what their pods request) or assigned pods from the snapshot that "
             "berth-watcher keeps in shared memory.",
    .examples = "  berth get nodes\n  berth get pods --runtime-dir /run/berth -o json\n",
    .exits = "  0  printed\n  1  no snapshot\n  2  wrong usage\n",
};

int bh_cmd_get(int argc, char **argv)
{
    const char *runtime = NULL, *output = "table";
    const struct bh_opt table[] = {
        {"runtime-dir", 0, BH_OPT_STR, &runtime, "DIR",
         "instance to look at (default $BERTH_RUNTIME_DIR or /run/berth)"},
        {"output", 'o', BH_OPT_CHOICE, &output, "table|json", "form of the output"},
        {0},
    };
    struct bh_opt_list rest BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    struct view v = {0};
    char dir[108];
    bool nodes;
    int rc = bh_opt_parse(table, &usage, argc, argv, &rest, &err);

    if (rc == 0 && (rest.n != 1 || (!bh_streq(rest.v[0], "nodes") && !bh_streq(rest.v[0], "pods"))))
        rc = bh_err_set(&err, -EINVAL, "say what to get: nodes or pods");
    if (rc != 0)
        return bh_cli_usage(usage.program, rc, &err);
    nodes = bh_streq(rest.v[0], "nodes");
    v.symtab = bh_symtab_new();
    rc = bh_runtime_dir(runtime, dir, &err);
    if (rc == 0)
        rc = read_view(&v, dir, &err);
    if (rc == 0 && bh_streq(output, "json")) {
        sum_up(&v);
        print_json(&v, nodes);
    } else if (rc == 0 && nodes) {
        print_nodes(&v);
    } else if (rc == 0) {
        print_pods(&v);
    }
    if (rc < 0)
        fprintf(stderr, "berth get: %s\n", err.msg);
    view_reset(&v);
    free(v.nodes);
    free(v.pods);
    bh_umap_fini(&v.node_index);
    bh_map_fini(&v.pod_index);
    bh_symtab_free(v.symtab);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
