/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/get.c - `berth get nodes|pods`: the scheduler's view, read from the snapshot in shared memory
 *
 * No API server is asked. What is shown is what decisions are taken from, assumed pods excepted.
 */
#include "cli/cli.h"
#include "common/base/map.h"
#include "common/control/ask.h"
#include "common/snapshot/snapshot.h"
#include <errno.h>
#include <time.h>

#define WHO         "berth get"
#define PATIENCE_NS UINT64_C(10000000000)

struct row {
    struct bh_node_rec *node; /* or */
    struct bh_pod_rec *pod;
    __int128 cpu_milli, memory_bytes; /* requested, by a node's pods */
    uint64_t pods;
};
struct rows {
    struct row *v;
    size_t n;
    struct bh_map index; /* a node's name, a pod's uid -> row + 1: a rebuild may tell one twice */
};
struct view {
    struct bh_symtab *symtab;
    struct rows nodes, pods;
    bool complete;
};

static void rows_fini(struct rows *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].node);
        free(l->v[i].pod);
    }
    free(l->v);
    bh_map_fini(&l->index);
    *l = (struct rows){0};
}

static void put(struct rows *l, const char *key, size_t n, struct row row)
{
    uintptr_t at = (uintptr_t)bh_map_get(&l->index, key, n);

    if (!at) {
        at = ++l->n;
        l->v = bh_reallocarray(l->v, l->n, sizeof(*l->v));
        l->v[at - 1] = (struct row){0};
        (void)bh_map_put(&l->index, key, n, (void *)at);
    }
    free(l->v[at - 1].node);
    free(l->v[at - 1].pod);
    l->v[at - 1] = row;
}

static void on_event(void *arg, const struct bh_snap_event *ev)
{
    struct view *v = arg;

    if (ev->op == BH_SNAP_BEGIN) {
        rows_fini(&v->nodes);
        rows_fini(&v->pods);
        v->complete = false;
    } else if (ev->op == BH_SNAP_END) {
        v->complete = true;
    } else if (ev->op == BH_SNAP_NODE_PUT && !v->complete) { /* one consistent picture is enough */
        const char *name = bh_sym_text(v->symtab, ev->node->name);
        put(&v->nodes, name, strlen(name),
            (struct row){.node = bh_memdup(ev->node, ev->node->h.size)});
    } else if (ev->op == BH_SNAP_POD_PUT && !v->complete) {
        struct bh_str uid = bh_rec_text(ev->pod, ev->pod->uid);
        put(&v->pods, uid.p, uid.n,
            (struct row){.pod = bh_memdup(ev->pod, ev->pod->h.size),
                         .cpu_milli = ev->shape->used.cpu_milli,
                         .memory_bytes = ev->shape->used.memory_bytes});
    }
}

/* A watcher that has just been started lists the API server's objects first. */
static int read_view(struct view *v, const char *runtime_dir, struct bh_err *err)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    uint64_t until = bh_mono_ns() + PATIENCE_NS;
    enum bh_snap_outcome o = BH_SNAP_NOT_READY;

    struct bh_snap_reader *r = bh_snap_reader_new(runtime_dir, v->symtab);
    for (unsigned i = 0; i < 10000 && !(v->complete && o == BH_SNAP_OK); i++) {
        o = bh_snap_follow(r, 1u << 20, on_event, v);
        if (o == BH_SNAP_NOT_READY && bh_mono_ns() < until && !bh_snap_reader_absent(r) &&
            bh_ask_probe(runtime_dir, "watcher", "berth-watcher", NULL) == 0) {
            nanosleep(&pause, NULL);
            continue;
        }
        if (o == BH_SNAP_NOT_READY || o == BH_SNAP_VERSION || o == BH_SNAP_CORRUPT)
            break;
    }
    if (!v->complete)
        bh_err_set(err, -ENOENT, "no snapshot in \"%s\": %s", runtime_dir, bh_snap_reader_error(r));
    bh_snap_reader_free(r);
    return v->complete ? 0 : -ENOENT;
}

static int by_name(const void *a, const void *b, void *symtab)
{
    const struct row *x = a, *y = b;

    if (x->node)
        return strcmp(bh_sym_text(symtab, x->node->name), bh_sym_text(symtab, y->node->name));
    int c = strcmp(bh_rec_text(x->pod, x->pod->namespace_).p,
                   bh_rec_text(y->pod, y->pod->namespace_).p);
    return c ? c : strcmp(bh_rec_text(x->pod, x->pod->name).p, bh_rec_text(y->pod, y->pod->name).p);
}

static int percent(__int128 used, int64_t of)
{
    return of > 0 ? (int)(used * 100 / of) : 0;
}

static void print_nodes(const struct view *v)
{
    printf("%-32s %-20s %9s %6s %11s %6s %10s\n", "NAME", "STATUS", "CPU", "CPU%", "MEMORY", "MEM%",
           "PODS");
    for (size_t i = 0; i < v->nodes.n; i++) {
        const struct row *n = &v->nodes.v[i];
        char memory[32], pods[48];
        snprintf(memory, sizeof(memory), "%lldMi", (long long)(n->memory_bytes >> 20));
        snprintf(pods, sizeof(pods), "%llu/%lld", (unsigned long long)n->pods,
                 (long long)n->node->alloc_pods);
        printf("%-32s %-20s %8lldm %5d%% %11s %5d%% %10s\n", bh_sym_text(v->symtab, n->node->name),
               n->node->flags & BH_NODE_UNSCHEDULABLE ? "SchedulingDisabled" : "Schedulable",
               (long long)n->cpu_milli, percent(n->cpu_milli, n->node->alloc_cpu_milli), memory,
               percent(n->memory_bytes, n->node->alloc_memory_bytes), pods);
    }
}

static void print_pods(const struct view *v)
{
    printf("%-20s %-48s %-32s %9s %11s\n", "NAMESPACE", "NAME", "NODE", "CPU", "MEMORY");
    for (size_t i = 0; i < v->pods.n; i++) {
        const struct row *p = &v->pods.v[i];
        char memory[32];
        snprintf(memory, sizeof(memory), "%lldMi", (long long)(p->memory_bytes >> 20));
        printf("%-20s %-48s %-32s %8lldm %11s\n", bh_rec_text(p->pod, p->pod->namespace_).p,
               bh_rec_text(p->pod, p->pod->name).p, bh_sym_text(v->symtab, p->pod->node),
               (long long)p->cpu_milli, memory);
    }
}

static int print_json(const struct view *v, const struct rows *l)
{
    struct bh_buf b = {0};
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    struct bh_json *list = bh_json_new(&a, BH_JSON_ARRAY);
    for (size_t i = 0; i < l->n; i++) {
        const struct row *r = &l->v[i];
        struct bh_json *o =
            r->node ? bh_json_append(&a, list, "name: %s, unschedulable: %i, pods: %lu",
                                     bh_sym_text(v->symtab, r->node->name),
                                     (r->node->flags & BH_NODE_UNSCHEDULABLE) != 0, r->pods)
                    : bh_json_append(&a, list, "namespace: %s, name: %s, node: %s",
                                     bh_rec_text(r->pod, r->pod->namespace_).p,
                                     bh_rec_text(r->pod, r->pod->name).p,
                                     bh_sym_text(v->symtab, r->pod->node));
        bh_json_add(&a, o, "cpuMilli: %ld, memoryBytes: %ld", (int64_t)r->cpu_milli,
                    (int64_t)r->memory_bytes);
    }
    bh_json_write(&b, list);
    bh_buf_addc(&b, '\n');
    return bh_cli_print("berth get", &b);
}

/* 0: nodes, 1: pods, by the names that kubectl knows. */
static int resource(const struct bh_opt_list *words, struct bh_err *err)
{
    static const char *const names[] = {"nodes node no", "pods pod po"}, *const plural[] = {"nodes",
                                                                                            "pods"};

    if (words->n == 0)
        return bh_err_set(err, -EINVAL, "say what to get: nodes or pods");
    for (int i = 0; i < 2; i++)
        if (bh_word_at(names[i], words->v[0]) >= 0)
            return words->n == 1
                       ? i
                       : bh_err_set(err, -EINVAL, "unexpected argument \"%s\": all %s are shown",
                                    words->v[1], plural[i]);
    for (int i = 0; i < 2; i++)
        if (bh_edits(words->v[0], plural[i]) <= 2)
            return bh_err_set(err, -EINVAL, "unknown resource \"%s\" (did you mean %s?)",
                              words->v[0], plural[i]);
    return bh_err_set(err, -EINVAL, "unknown resource \"%s\", expected nodes or pods", words->v[0]);
}

int bh_cmd_get(int argc, char **argv)
{
    const char *runtime = NULL, *output = "table";
    const struct bh_opt table[] = {
        {"runtime-dir", 0, BH_OPT_STR, &runtime, "DIR", "instance to read " BH_INSTANCE_DEFAULT},
        {"output", 'o', BH_OPT_CHOICE, &output, "table|json", "form of the output"},
        {0},
    };
    struct bh_opt_list rest BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    struct view v = {0};
    char dir[108];
    int status = BH_EXIT_OK, rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &rest, &err);

    int what = rc == 0 ? resource(&rest, &err) : 0;
    if (rc != 0 || what < 0)
        return bh_cli_usage(WHO, BH_MIN(rc, what), &err);
    struct rows *shown = what ? &v.pods : &v.nodes;
    v.symtab = bh_symtab_new();
    rc = bh_cli_find_dir(WHO, runtime, dir, &err);
    if (rc == 0)
        rc = read_view(&v, dir, &err);
    for (size_t i = 0; i < v.pods.n; i++) {
        const struct row *p = &v.pods.v[i];
        const char *name = bh_sym_text(v.symtab, p->pod->node);
        uintptr_t at = (uintptr_t)bh_map_get(&v.nodes.index, name, strlen(name));
        if (!at)
            continue;
        v.nodes.v[at - 1].pods++;
        v.nodes.v[at - 1].cpu_milli += p->cpu_milli;
        v.nodes.v[at - 1].memory_bytes += p->memory_bytes;
    }
    if (shown->n > 1)
        qsort_r(shown->v, shown->n, sizeof(*shown->v), by_name, v.symtab);
    if (rc == 0 && bh_streq(output, "json"))
        status = print_json(&v, shown);
    else if (rc == 0 && shown == &v.nodes)
        print_nodes(&v);
    else if (rc == 0)
        print_pods(&v);
    else
        status = bh_cli_fail(WHO, &err);
    rows_fini(&v.nodes);
    rows_fini(&v.pods);
    bh_symtab_free(v.symtab);
    return status;
}
