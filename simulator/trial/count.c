/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/count.c - how many more of a pod fit
 *
 * The document, for -o json and yaml:
 *
 *   kind, apiVersion   "CapacityReport", "berth/v1"
 *   pod                {namespace, name}: the one that was counted
 *   total              int: how many fit
 *   stopped            "Unschedulable": no more fit; "Limit": --max was reached
 *   message            why no more fit, upstream's text
 *   rejectedGroups[]   the same by verdict, as in an explanation
 *   nodes[]            {node, count: int}, most first, equals by name; no node without any
 *   gangs              of a pod whose PodGroup is a gang: {total: int, how many whole gangs the copies
 *                      make; minCount: int, topologyKey: each of them is in one of its domains}
 *   warnings[]         text
 */
#include <errno.h>

#include "simulator/trial/trial.h"
#include "common/k8s/compile.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/explain/grid.h"

#define COUNT_MAX      1000000
#define SHOWN_NODES    20u
#define COUNTED_SUFFIX "-%u"

struct node_count {
    bh_sym node;
    uint32_t n;
};
struct count {
    struct bh_trial *t;
    const struct bh_trial_pod *pod;
    struct bh_json *tree; /* the pod */
    struct bh_arena kept; /* of tree, message and groups */
    struct bh_arena a;    /* of the copy at hand */
    struct bh_umap index; /* node -> index into nodes */
    struct node_count *nodes;
    size_t n_nodes, cap_nodes;
    uint32_t total, limit;
    bool limited;
    const char *message;
    struct bh_json *groups;
};

/* ---- copies ---------------------------------------------------------------------------------- */

/* The copy's own claim, where the pod has one that was made for it. */
static int copy_claim(struct count *c, const struct bh_kind_info *k, const char *ns,
                      const char *from, const char *to, const char *uid, struct bh_err *err)
{
    const ProtobufCMessage *m = bh_engine_get_object(c->t->w.engine, k->kind, ns, from);

    if (!m)
        return 0;
    struct bh_json *o = bh_pb_to_json(&c->a, m);
    bh_json_add(&c->a, o, "apiVersion: '', metadata: {name: %s, uid: %s}", to, to);
    bh_json_each(r, bh_json_path(o, "metadata.ownerReferences"))
        if (bh_json_get_bool(r, "controller", false))
            bh_json_set_str(&c->a, r, "uid", uid);
    return bh_offline_put_tree(&c->t->w, &c->a, k, o, err);
}

static int next_copy(struct count *c, struct bh_pod_rec **ret, struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(c->t->w.engine));
    struct bh_json *pod = bh_json_clone(&c->a, c->tree);
    const char *name =
        bh_arena_printf(&c->a, "%.200s" COUNTED_SUFFIX, bh_trial_pod_name(c->pod), c->total + 1);
    ProtobufCMessage *m;

    bh_json_add(&c->a, pod, "metadata: {name: %s, uid: %s}", name, name);
    const char *ns = bh_trial_pod_ns(c->pod), *old = bh_trial_pod_name(c->pod);
    int rc = 0;
    bh_json_each(v, bh_json_path(pod, "spec.volumes")) {
        const char *volume = bh_json_get_str(v, "name");
        if (rc >= 0 && volume && bh_json_get(v, "ephemeral"))
            rc = copy_claim(c, &bh_kinds[BH_KIND_PERSISTENTVOLUMECLAIM], ns,
                            bh_arena_printf(&c->a, "%s-%s", old, volume),
                            bh_arena_printf(&c->a, "%s-%s", name, volume), name, err);
    }
    bh_json_each(s, bh_json_path(pod, "status.resourceClaimStatuses")) {
        const char *claim = bh_json_get_str(s, "resourceClaimName");
        if (rc < 0 || !claim)
            continue;
        const char *mine = bh_arena_printf(&c->a, "%s" COUNTED_SUFFIX, claim, c->total + 1);
        rc = copy_claim(c, &bh_kinds[BH_KIND_RESOURCECLAIM], ns, claim, mine, name, err);
        bh_json_set_str(&c->a, s, "resourceClaimName", mine);
    }
    rc = rc < 0 ? rc : bh_json_to_pb(&c->a, bh_kinds[BH_KIND_POD].desc, pod, &m, NULL, err);
    if (rc >= 0)
        rc = bh_compile_pod(&c->a, (const struct K8s__Pod *)(const void *)m, &in, ret, err);
    if (rc >= 0)
        (*ret)->shape = c->pod->shape;
    return rc;
}

/* ---- counting -------------------------------------------------------------------------------- */

/* That a gang is not complete says nothing about room: its copies are counted in whole gangs. */
static bool is_gangs(const struct bh_status *gate)
{
    return gate->plugin && bh_streq(gate->plugin, "GangScheduling");
}

/* 1: placed; 0: no more fit. */
static int place_one(struct count *c, struct bh_err *err)
{
    struct bh_offline *w = &c->t->w;
    struct bh_pod_rec *rec = NULL;
    int rc = next_copy(c, &rec, err);

    if (rc < 0)
        return rc;
    const struct bh_pending p = {.pod = rec, .shape = c->pod->shape};
    const struct bh_status *gate = bh_engine_pre_enqueue(w->engine, &p);
    if (gate && !is_gangs(gate)) {
        c->message = bh_arena_strdup(&c->kept, bh_status_message(&c->a, gate));
        return 0;
    }
    const struct bh_status *refused = NULL;
    bh_sym node = BH_SYM_NONE;
    if (bh_offline_decide(w, &p, &node, &refused)->kind != BH_DECIDED) {
        struct bh_engine *e = c->t->w.engine;
        const struct bh_decision *d =
            bh_engine_schedule(e, &p, BH_EXPLAIN | BH_NO_PREEMPTION, c->t->o.now_ns);
        c->message = bh_arena_strdup(&c->kept, d->message ? d->message : "");
        c->groups = bh_explain_groups(&c->kept, bh_engine_symtab(e), d);
        return 0;
    }
    if (refused && refused->code != BH_WAIT) {
        c->message = bh_arena_strdup(&c->kept, bh_status_message(&c->a, refused));
        bh_offline_give_back(w, &p, node);
        return 0;
    }
    bh_offline_bind(w, &p, node);
    uint64_t i;
    if (!bh_umap_get(&c->index, node, &i)) {
        BH_GROW(c->nodes, c->n_nodes, c->cap_nodes);
        i = c->n_nodes++;
        c->nodes[i] = (struct node_count){.node = node};
        bh_umap_put(&c->index, node, i);
    }
    c->nodes[i].n++;
    c->total++;
    return 1;
}

static int run(struct count *c, struct bh_err *err)
{
    int rc = 1;

    while (rc == 1 && c->total < c->limit && !bh_trial_stopped(c->t)) {
        rc = place_one(c, err);
        bh_arena_reset(&c->a);
        bh_trial_progress(c->t, "counting", c->total, c->limit);
    }
    c->limited = rc == 1;
    bh_trial_progress(c->t, NULL, 0, 0);
    return rc < 0 ? rc : 0;
}

/* ---- report ---------------------------------------------------------------------------------- */

static int most_first(const void *pa, const void *pb, void *arg)
{
    const struct node_count *a = pa, *b = pb;

    return a->n != b->n ? BH_CMP(b->n, a->n)
                        : strcmp(bh_sym_text(arg, a->node), bh_sym_text(arg, b->node));
}

/* Appends {node, what: how many} for each node. */
static void add_nodes(const struct count *c, struct bh_arena *a, struct bh_json *doc,
                      const char *what)
{
    const struct bh_symtab *tab = bh_engine_symtab(c->t->w.engine);
    struct bh_json *nodes = bh_json_list_at(a, doc, "nodes");

    for (size_t i = 0; i < c->n_nodes; i++)
        bh_json_append(a, nodes, "node: %s, %s: %u", bh_sym_text(tab, c->nodes[i].node), what,
                       c->nodes[i].n);
}

/* ---- whole gangs ----------------------------------------------------------------------------- */

static bool gang_of(const struct count *c, struct bh_pod_group *ret)
{
    const struct bh_symtab *tab = bh_engine_symtab(c->t->w.engine);
    const bh_sym group = c->pod->rec->group;
    struct bh_err err;

    if (group == BH_SYM_NONE || !bh_sched_config_gate(c->t->config, "GangScheduling"))
        return false;
    const K8s__PodGroup *m = (const void *)bh_engine_get_object(
        c->t->w.engine, BH_KIND_PODGROUP, bh_trial_pod_ns(c->pod), bh_sym_text(tab, group));
    return m && bh_pod_group_read(m, ret, &err) == 0 && ret->min_count != BH_GROUP_NOT_A_GANG;
}

static bh_sym label_of(const struct bh_node_rec *n, bh_sym key)
{
    const struct bh_kv *l = bh_rec_at(n, n->labels, struct bh_kv);

    for (uint32_t i = 0; i < n->labels.n; i++)
        if (l[i].key == key)
            return l[i].value;
    return BH_SYM_NONE;
}

/* In one domain each, where the group wants that. */
static uint64_t whole_gangs(const struct count *c, const struct bh_pod_group *g)
{
    struct bh_symtab *tab = bh_engine_symtab(c->t->w.engine);
    struct bh_umap domains = {0};
    uint64_t gangs = 0, n;

    if (!g->topology_key)
        return c->total / (uint32_t)g->min_count;
    const bh_sym key = bh_sym_internc(tab, g->topology_key);
    for (size_t i = 0; i < c->n_nodes; i++) {
        const bh_sym domain = label_of(bh_engine_find_node(c->t->w.engine, c->nodes[i].node), key);
        if (domain == BH_SYM_NONE)
            continue;
        n = 0;
        (void)bh_umap_get(&domains, domain, &n);
        gangs -= n / (uint32_t)g->min_count;
        n += c->nodes[i].n;
        gangs += n / (uint32_t)g->min_count;
        bh_umap_put(&domains, domain, n);
    }
    bh_umap_fini(&domains);
    return gangs;
}

static void add_gangs(const struct count *c, struct bh_arena *a, struct bh_json *doc)
{
    struct bh_pod_group g;

    if (gang_of(c, &g))
        bh_json_add(a, doc, "gangs: {total: %lu, minCount: %d, topologyKey?: %s}",
                    whole_gangs(c, &g), g.min_count, g.topology_key);
}

static void write_gangs(const struct count *c, struct bh_buf *out)
{
    struct bh_pod_group g;

    if (!gang_of(c, &g))
        return;
    bh_buf_addf(out, "That is room for %llu more %s of %d", (unsigned long long)whole_gangs(c, &g),
                whole_gangs(c, &g) == 1 ? "gang" : "gangs", g.min_count);
    if (g.topology_key)
        bh_buf_addf(out, ", each in one %s", g.topology_key);
    bh_buf_addc(out, '\n');
}

static void write_table(const struct count *c, bool wide, bool colour, struct bh_buf *out)
{
    const struct bh_symtab *tab = bh_engine_symtab(c->t->w.engine);
    size_t shown = wide ? c->n_nodes : BH_MIN(c->n_nodes, (size_t)SHOWN_NODES);
    struct bh_grid g = {0};

    if (c->n_nodes) {
        bh_grid_heading(&g, 0, "NODE", ">PODS", NULL);
        for (size_t i = 0; i < shown; i++) {
            bh_grid_cell(&g, 0, "%s", bh_sym_text(tab, c->nodes[i].node));
            bh_grid_cell(&g, BH_CELL_RIGHT, "%u", c->nodes[i].n);
            bh_grid_row(&g);
        }
        bh_grid_print(&g, out, 0, colour);
        if (shown < c->n_nodes)
            bh_buf_addf(out, "... and %zu more nodes; -o wide lists all\n", c->n_nodes - shown);
        bh_buf_addc(out, '\n');
    }
    bh_buf_addf(out, "%u more of pod ", c->total);
    bh_text_add(out, 0, colour, bh_trial_pod_ns(c->pod));
    bh_buf_addc(out, '/');
    bh_text_add(out, 0, colour, bh_trial_pod_name(c->pod));
    bh_buf_addf(out, " fit on %zu of %u nodes\n", c->n_nodes, c->t->n_nodes);
    write_gangs(c, out);
    if (c->limited)
        bh_buf_addf(out, "Stopped at the limit of %u\n", c->limit);
    if (c->message) {
        bh_buf_adds(out, "No more because: ");
        bh_text_add(out, BH_CELL_BAD, colour, c->message);
        bh_buf_adds(out, "\n\n");
        bh_explain_render_groups(out, c->groups, colour);
    }
    bh_grid_fini(&g);
}

/* ---- which pod ------------------------------------------------------------------------------- */

/* The pod's object, of which copies are made. */
static int read_pod(struct count *c, const struct bh_trial_pod *p, struct bh_err *err)
{
    const struct bh_trial_item *it =
        bh_trial_find_item(c->t, "Pod", bh_trial_pod_ns(p), bh_trial_pod_name(p));

    bh_assert(it); /* the pod was made of it */
    c->pod = p;
    return bh_json_parse(&c->kept, it->json, it->n, BH_JSON_NUL, &c->tree, err);
}

static void count_init(struct count *c, struct bh_trial *t, int64_t max)
{
    t->w.o.flags = BH_NO_PREEMPTION;
    *c = (struct count){.t = t, .limit = max > 0 ? (uint32_t)BH_MIN(max, COUNT_MAX) : COUNT_MAX};
}

static void count_fini(struct count *c)
{
    bh_umap_fini(&c->index);
    bh_arena_fini(&c->kept);
    bh_arena_fini(&c->a);
    free(c->nodes);
}

static void sort_nodes(struct count *c)
{
    if (c->n_nodes > 1)
        qsort_r(c->nodes, c->n_nodes, sizeof *c->nodes, most_first,
                bh_engine_symtab(c->t->w.engine));
}

int bh_trial_count(struct bh_trial *t, int64_t max, struct bh_buf *out, struct bh_err *err)
{
    enum bh_form form = t->o.form;
    struct count c;

    if (t->n_list != 1)
        return bh_err_set(err, -EINVAL,
                          t->n_list ? "--count counts one pod and %zu are pending: say which with "
                                      "--pod NAMESPACE/NAME"
                                    : "--count counts a pending pod and there is none",
                          t->n_list);
    count_init(&c, t, max);
    int rc = read_pod(&c, t->list[0], err);
    rc = rc < 0 ? rc : run(&c, err);
    if (rc >= 0) {
        sort_nodes(&c);
        if (form == BH_FORM_JSON || form == BH_FORM_YAML) {
            BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
            struct bh_json *doc = bh_trial_document(c.t, &a, "CapacityReport");
            bh_json_add(&a, doc, "pod: {namespace: %s, name: %s}, total: %u, stopped: %s",
                        bh_trial_pod_ns(c.pod), bh_trial_pod_name(c.pod), c.total,
                        c.limited ? "Limit" : "Unschedulable");
            if (c.message)
                bh_json_set_str(&a, doc, "message", c.message);
            if (c.groups)
                bh_json_set(&a, doc, "rejectedGroups", bh_json_clone(&a, c.groups));
            add_nodes(&c, &a, doc, "count");
            add_gangs(&c, &a, doc);
            bh_form_write(out, doc, form);
        } else
            write_table(&c, form == BH_FORM_WIDE, t->o.colour, out);
    }
    count_fini(&c);
    return rc;
}

/* ---- several pods ---------------------------------------------------------------------------- */

static struct bh_json *all_counted(struct bh_arena *a, struct count *c, size_t n,
                                   const struct count *failed)
{
    const char *limit = "as many as asked for fit";
    int64_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += c[i].total;
    struct bh_json *doc = bh_json_make(
        a, "replicas: %ld, failReason: {type: %s, message: %s}, rejectedGroups?: %p, pods: []",
        total, failed ? "Unschedulable" : "LimitReached", failed ? failed->message : limit,
        failed ? bh_json_clone(a, failed->groups) : NULL);
    for (size_t i = 0; i < n; i++) {
        sort_nodes(&c[i]);
        struct bh_json *pod =
            bh_json_append(a, bh_json_get(doc, "pods"), "namespace: %s, name: %s, replicas: %u",
                           bh_trial_pod_ns(c[i].pod), bh_trial_pod_name(c[i].pod), c[i].total);
        add_nodes(&c[i], a, pod, "replicas");
        add_gangs(&c[i], a, pod);
    }
    return doc;
}

int bh_trial_count_all(struct bh_trial *t, struct bh_trial_pod *const *pods, size_t n, int64_t max,
                       struct bh_arena *a, struct bh_json **ret, struct bh_err *err)
{
    struct count *c = bh_calloc(n + 1, sizeof *c);
    const struct count *failed = NULL;
    uint32_t placed = 0, limit = 0;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        count_init(&c[i], t, max);
        limit = c[i].limit;
        rc = rc < 0 ? rc : read_pod(&c[i], pods[i], err);
    }
    for (size_t i = 0; rc >= 0 && !failed && placed < limit; i = (i + 1) % n) {
        rc = place_one(&c[i], err);
        bh_arena_reset(&c[i].a);
        placed += rc == 1;
        failed = rc == 0 ? &c[i] : NULL;
        if (bh_trial_stopped(t))
            rc = bh_err_set(err, -ECANCELED, "cancelled");
    }
    if (rc >= 0)
        *ret = all_counted(a, c, n, failed);
    for (size_t i = 0; i < n; i++)
        count_fini(&c[i]);
    free(c);
    return rc < 0 ? rc : 0;
}
