/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/groups.c - what became of the PodGroups whose pods were pending
 */
#include "simulator/trial/trial.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/explain/grid.h"

/* The last attempt counts, but a group that once had its members is scheduled. */
void bh_trial_on_grouped(void *arg, const struct bh_offline_group *g)
{
    struct bh_trial *t = arg;
    const char *key = bh_arena_printf(&t->names, "%s/%s", g->ns, g->name);
    struct bh_trial_group *x = bh_map_get(&t->groups, key, strlen(key));

    if (!x) {
        x = bh_arena_new(&t->names, struct bh_trial_group);
        bh_map_put(&t->groups, key, strlen(key), x);
    }
    *x = (struct bh_trial_group){.attempts = x->attempts + 1,
                                 .placements = g->result->n_placements,
                                 .fits = x->fits || g->result->code == BH_SUCCESS,
                                 .failed = g->result->code == BH_ERROR,
                                 .message = bh_arena_strdup(&t->names, g->result->message)};
    for (uint32_t i = 0; i < x->placements; i++)
        x->fitting += g->result->placements[i].fits;
}

/* Without the gate upstream does not look at groups, and neither is it said anywhere else. */
void bh_trial_groups_warn(struct bh_trial *t)
{
    if (bh_sched_config_gate(t->config, "GenericWorkload"))
        return;
    for (size_t i = 0; i < t->n_items; i++) {
        const struct bh_trial_item *it = &t->items[i];
        if (it->replaced || !it->kind || it->kind->kind != BH_KIND_PODGROUP)
            continue;
        bh_trial_warn(t,
                      "PodGroup %s/%s and all others are not looked at, each pod goes on its "
                      "own: the feature gate GenericWorkload is off",
                      it->ns, it->name);
        return;
    }
}

/* ---- the report ------------------------------------------------------------------------------ */

struct row {
    const struct bh_trial_pod *pod; /* one of it */
    const char *name;
    uint32_t pods; /* that were pending */
};

static int by_name(const void *pa, const void *pb)
{
    const struct row *a = pa, *b = pb;
    int cmp = strcmp(bh_trial_pod_ns(a->pod), bh_trial_pod_ns(b->pod));

    return cmp ? cmp : strcmp(a->name, b->name);
}

static struct row *rows_of(const struct bh_trial *t, size_t *ret_n)
{
    struct row *v = bh_calloc(t->n_list + 1, sizeof *v);
    BH_CLEANUP(bh_map_fini) struct bh_map index = {0};
    size_t n = 0;

    for (size_t i = 0; i < t->n_list; i++) {
        const struct bh_trial_pod *p = t->list[i];
        if (p->rec->group == BH_SYM_NONE || p->placed_before)
            continue;
        const char *name = bh_sym_text(bh_engine_symtab(t->w.engine), p->rec->group);
        BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s", bh_trial_pod_ns(p), name);
        struct row *r = bh_map_get(&index, key, strlen(key));
        if (!r) {
            r = &v[n++];
            *r = (struct row){.pod = p, .name = name};
            bh_map_put(&index, key, strlen(key), r);
        }
        r->pods++;
    }
    if (n > 1)
        qsort(v, n, sizeof *v, by_name);
    *ret_n = n;
    return v;
}

static const char *result_of(const struct bh_trial_group *x)
{
    return !x ? "Gated" : x->fits ? "Scheduled" : x->failed ? "Error" : "Unschedulable";
}

static struct bh_json *describe(const struct bh_trial *t, struct bh_arena *a, const struct row *r)
{
    const char *ns = bh_trial_pod_ns(r->pod);
    BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s", ns, r->name);
    const struct bh_trial_group *x = bh_map_get(&t->groups, key, strlen(key));
    const struct bh_pending pending = {.pod = r->pod->rec, .shape = r->pod->shape};
    const struct bh_group *g = bh_engine_group_of(t->w.engine, &pending);
    const K8s__PodGroup *m =
        (const void *)bh_engine_get_object(t->w.engine, BH_KIND_PODGROUP, ns, r->name);
    struct bh_pod_group spec = {0};
    struct bh_err err;
    const bool known = m && bh_pod_group_read(m, &spec, &err) == 0;

    return bh_json_make(
        a,
        "namespace: %s, name: %s, policy: %s, minCount?: %d, topologyKey?: %s, result: %s, "
        "pods: %u, members: %u, scheduled: %u, attempts: %u, placements?: %u, fitting?: %u, "
        "message?: %s",
        ns, r->name,
        !known           ? "None"
        : spec.min_count ? "Gang"
                         : "Basic",
        spec.min_count, spec.topology_key, result_of(x), r->pods, g ? bh_group_all(g) : 0,
        g ? bh_group_scheduled(g) : 0, x ? x->attempts : 0, x ? x->placements : 0,
        x ? x->fitting : 0, x ? x->message : NULL);
}

struct bh_json *bh_trial_groups(const struct bh_trial *t, struct bh_arena *a)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    size_t n;

    if (!bh_sched_config_gate(t->config, "GenericWorkload"))
        return list;
    struct row *v = rows_of(t, &n);
    for (size_t i = 0; i < n; i++)
        bh_json_push(list, describe(t, a, &v[i]));
    free(v);
    return list;
}

void bh_trial_groups_table(const struct bh_trial *t, struct bh_grid *g, bool colour,
                           struct bh_buf *out)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const struct bh_json *list = bh_trial_groups(t, &a);

    if (!list->c.n)
        return;
    bh_buf_adds(out, "\nGroups\n");
    bh_grid_heading(g, 0, "NAMESPACE", "NAME", "POLICY", ">MIN", ">MEMBERS", ">SCHEDULED", "RESULT",
                    "MESSAGE", NULL);
    bh_json_each(x, list) {
        const char *result = bh_json_get_text(x, "result");
        bh_grid_members(g, 0, x, "namespace name policy >minCount >members >scheduled");
        bh_grid_cell(g, bh_streq(result, "Scheduled") ? BH_CELL_GOOD : BH_CELL_BAD, "%s", result);
        bh_grid_cell(g, 0, "%s", bh_json_get_text(x, "message"));
        bh_grid_row(g);
    }
    bh_grid_print(g, out, 0, colour);
}
