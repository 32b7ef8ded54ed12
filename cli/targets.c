/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/targets.c - what TYPE/NAME names, and the pods of a workload
 *
 * A pending pod is known with its owner; a record of a bound one names ReplicaSets,
 * ReplicationControllers and StatefulSets only, so pods of the others are matched by their names.
 */
#include "cli/targets.h"

#include <errno.h>
#include <strings.h>

#include "cli/cli.h"
#include "scheduler/explain/grid.h"

static const struct {
    const char *words; /* the first is its name */
    const char *kind;  /* of the pods' owner */
    enum bh_owner_kind owner;
} targets[] = {
    [BH_TARGET_POD] = {"pod pods po", "", BH_OWNER_NONE},
    [BH_TARGET_GROUP] = {"podgroup podgroups pg", "", BH_OWNER_NONE},
    [BH_TARGET_NODE] = {"node nodes no", "", BH_OWNER_NONE},
    [BH_TARGET_DEPLOYMENT] = {"deployment deployments deploy", "ReplicaSet", BH_OWNER_REPLICASET},
    [BH_TARGET_REPLICASET] = {"replicaset replicasets rs", "ReplicaSet", BH_OWNER_REPLICASET},
    [BH_TARGET_CONTROLLER] = {"replicationcontroller replicationcontrollers rc",
                              "ReplicationController", BH_OWNER_REPLICATIONCONTROLLER},
    [BH_TARGET_STATEFULSET] = {"statefulset statefulsets sts", "StatefulSet", BH_OWNER_STATEFULSET},
    [BH_TARGET_DAEMONSET] = {"daemonset daemonsets ds", "DaemonSet", BH_OWNER_DAEMONSET},
    [BH_TARGET_JOB] = {"job jobs", "Job", BH_OWNER_OTHER},
    [BH_TARGET_CRONJOB] = {"cronjob cronjobs cj", "Job", BH_OWNER_OTHER},
};

enum bh_target bh_target_parse(const char *word, size_t n)
{
    char lower[64];
    size_t i = 0;

    for (; i < n && i < sizeof(lower) - 1 && word[i] != '.'; i++)
        lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 'a' - 'A' : word[i]);
    lower[i] = '\0';
    for (enum bh_target t = BH_TARGET_POD; t < BH_TARGET_NONE; t++)
        if (*lower && bh_word_at(targets[t].words, lower) >= 0)
            return t;
    return BH_TARGET_NONE;
}

static const char *name_target(enum bh_target t)
{
    static const char *const names[] = {
        "pod",         "podgroup",  "node", "deployment", "replicaset",  "replicationcontroller",
        "statefulset", "daemonset", "job",  "cronjob",    "other object"};
    return names[BH_MIN(t, BH_TARGET_NONE)];
}

/* ---- pods of a workload ---------------------------------------------------------------------- */

/* name is "PREFIX-REST", and REST has so many parts that '-' separates. */
static bool is_below(const char *name, const char *prefix, unsigned parts)
{
    size_t n = strlen(prefix);

    if (strncmp(name, prefix, n) != 0 || name[n] != '-' || !name[n + 1])
        return false;
    for (name += n + 1; *name; name++)
        if (*name == '-' && --parts == 0)
            return false;
    return parts == 1;
}

/* By the owner's name where it is known. */
static bool is_owner(enum bh_target t, const char *owner, const char *name)
{
    return t == BH_TARGET_DEPLOYMENT || t == BH_TARGET_CRONJOB ? is_below(owner, name, 1)
                                                               : bh_streq(owner, name);
}

static bool belongs_to(const struct bh_view *w, const struct bh_view_row *r, enum bh_target t,
                       const char *name)
{
    const char *owner = bh_sym_text(w->symtab, r->shape->owner), *pod = bh_view_name(w, r);

    if (r->owner_kind) /* pending */
        return bh_streq(r->owner_kind, targets[t].kind) && is_owner(t, r->owner, name);
    if (r->shape->owner_kind != targets[t].owner)
        return false;
    if (*owner)
        return is_owner(t, owner, name);
    return t == BH_TARGET_CRONJOB || t == BH_TARGET_JOB
               ? is_below(pod, name, 2) || (t == BH_TARGET_JOB && is_below(pod, name, 1))
               : is_below(pod, name, 1);
}

int bh_target_find_pod(const char *runtime_dir, enum bh_target t, const char *ns, const char *name,
                       struct bh_arena *a, const char **ret_pod, const char **ret_note,
                       struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *trouble = NULL;
    size_t n = 0, found = 0, pending = 0;
    struct bh_view w = {0};
    int rc = bh_view_open(&w, runtime_dir, true, &trouble, err);
    struct bh_view_row **rows = rc == 0 ? bh_view_rows(&w, true, &n) : NULL;

    *ret_pod = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct bh_pod_rec *pod = rows[i]->pod;
        if (!bh_str_eqc(bh_rec_text(pod, pod->namespace_), ns) || !belongs_to(&w, rows[i], t, name))
            continue;
        if (!found++ || (pod->node == BH_SYM_NONE && !pending))
            *ret_pod = bh_arena_strdup(a, bh_view_name(&w, rows[i]));
        pending += pod->node == BH_SYM_NONE;
    }
    if (found)
        *ret_note =
            bh_arena_printf(a, "%s/%s has %zu pod%s, %zu pending; this is pod/%s", name_target(t),
                            name, found, found == 1 ? "" : "s", pending, *ret_pod);
    else if (rc == 0)
        rc = bh_err_set(err, -ENOENT, "no pod of %s \"%s\" is in namespace \"%s\"%s%s",
                        name_target(t), name, ns, trouble ? "; pending pods are not known: " : "",
                        trouble ? trouble : "");
    free(rows);
    bh_view_close(&w);
    return rc;
}

/* ---- a node ---------------------------------------------------------------------------------- */

static void add_share(struct bh_grid *g, const char *name, __int128 used, int64_t of,
                      const char *unit, unsigned shift)
{
    bh_grid_cell(g, 0, "%s", name);
    bh_grid_cell(g, BH_CELL_RIGHT, "%lld%s", (long long)(used >> shift), unit);
    bh_grid_cell(g, BH_CELL_RIGHT, "%lld%s", (long long)(of >> shift), unit);
    bh_grid_cell(g, BH_CELL_RIGHT, "%lld%%", of > 0 ? (long long)(used * 100 / of) : 0);
    bh_grid_row(g);
}

static void print_node_table(const struct bh_view *w, const struct bh_view_row *node,
                             struct bh_view_row *const *pods, size_t n, struct bh_buf *out)
{
    BH_CLEANUP(bh_freep) char *labels = bh_view_labels_text(w, node->node, node->node->labels);
    BH_CLEANUP(bh_freep) char *taints = bh_view_taints_text(w, node->node);
    const bool colour = bh_colour_wanted(STDOUT_FILENO);
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    bh_grid_line(&g, "Node:", 0, "%s", bh_view_name(w, node));
    bh_grid_line(&g, "State:", 0, "%s",
                 node->node->flags & BH_NODE_UNSCHEDULABLE ? "SchedulingDisabled" : "Schedulable");
    bh_grid_line(&g, "Taints:", 0, "%s", *taints ? taints : "<none>");
    bh_grid_line(&g, "Labels:", 0, "%s", *labels ? labels : "<none>");
    bh_grid_print(&g, out, 0, colour);
    bh_buf_addc(out, '\n');
    bh_grid_heading(&g, BH_CELL_BOLD, "RESOURCE", ">REQUESTED", ">ALLOCATABLE", ">SHARE", NULL);
    add_share(&g, "cpu", node->cpu_milli, node->node->alloc_cpu_milli, "m", 0);
    add_share(&g, "memory", node->memory_bytes, node->node->alloc_memory_bytes, "Mi", 20);
    add_share(&g, "pods", node->pods, node->node->alloc_pods, "", 0);
    bh_grid_print(&g, out, 0, colour);
    bh_buf_addc(out, '\n');
    bh_grid_heading(&g, BH_CELL_BOLD, "NAMESPACE", "POD", ">CPU", ">MEMORY", ">PRIORITY", NULL);
    for (size_t i = 0; i < n; i++) {
        if (pods[i]->pod->node != node->node->name)
            continue;
        bh_grid_cell(&g, 0, "%s", bh_rec_text(pods[i]->pod, pods[i]->pod->namespace_).p);
        bh_grid_cell(&g, 0, "%s", bh_view_name(w, pods[i]));
        bh_grid_cell(&g, BH_CELL_RIGHT, "%lldm", (long long)pods[i]->cpu_milli);
        bh_grid_cell(&g, BH_CELL_RIGHT, "%lldMi", (long long)(pods[i]->memory_bytes >> 20));
        bh_grid_cell(&g, BH_CELL_RIGHT, "%d", (int)pods[i]->shape->priority);
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, colour);
    bh_buf_addf(out, "\nWhy a pod is not here: berth explain pod/NAME --node %s\n",
                bh_view_name(w, node));
}

static void write_node(const struct bh_view *w, const struct bh_view_row *node,
                       struct bh_view_row *const *pods, size_t n, enum bh_form form,
                       struct bh_buf *out)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_json *doc =
        bh_json_make(&a, "kind: NodePicture, apiVersion: " BH_EXPLAIN_API ", node: %p, pods: []",
                     bh_view_node_json(w, &a, node));

    for (size_t i = 0; i < n; i++)
        if (pods[i]->pod->node == node->node->name)
            bh_json_push(bh_json_get(doc, "pods"), bh_view_pod_json(w, &a, pods[i]));
    bh_form_write(out, doc, form);
}

int bh_target_print_node(const char *runtime_dir, const char *name, enum bh_form form,
                         struct bh_buf *out, struct bh_err *err)
{
    struct bh_view w = {0};
    size_t n = 0;
    int rc = bh_view_open(&w, runtime_dir, false, NULL, err);
    struct bh_view_row **pods = rc == 0 ? bh_view_rows(&w, true, &n) : NULL;
    const struct bh_view_row *node = rc == 0 ? bh_map_get(&w.nodes, name, strlen(name)) : NULL;

    if (rc == 0 && !node)
        rc = bh_err_set(err, -ENOENT, "there is no node \"%s\": see 'berth get nodes'", name);
    if (rc == 0 && (form == BH_FORM_JSON || form == BH_FORM_YAML))
        write_node(&w, node, pods, n, form, out);
    else if (rc == 0)
        print_node_table(&w, node, pods, n, out);
    free(pods);
    bh_view_close(&w);
    return rc;
}
