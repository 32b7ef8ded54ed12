/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/podtopologyspread/world.h - what the tests of spreading and of
 * inter-pod affinity build their clusters with
 */
#ifndef BH_SPREAD_WORLD_H
#define BH_SPREAD_WORLD_H

#include "tests/unit/scheduler/engine/fixture.h"

#define ROOM "'cpu':'4','memory':'8Gi','pods':'110'"

/* A node with its hostname label; zone "" = none; more: further labels. */
BH_UNUSED static struct bh_node_rec *w_node_rec(struct fx *f, const char *name, const char *zone,
                                                const char *more, const char *spec)
{
    const char *labels = bh_arena_printf(&f->arena, "'kubernetes.io/hostname':'%s'%s%s%s%s%s", name,
                                         *zone ? ",'topology.kubernetes.io/zone':'" : "", zone,
                                         *zone ? "'" : "", *more ? "," : "", more);
    return fx_node_rec(f, name, ROOM, labels, spec, "");
}

BH_UNUSED static void w_node(struct fx *f, const char *name, const char *zone)
{
    bh_engine_put_node(f->e, w_node_rec(f, name, zone, "", ""));
}

/* meta: further metadata members; spec: members of spec. */
BH_UNUSED static struct fx_pod w_pod(struct fx *f, const char *ns, const char *name,
                                     const char *labels, const char *meta, const char *spec)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(f->e));
    struct bh_shape_rec *shape = NULL;
    struct fx_pod p = {0};
    const char *text = bh_arena_printf(
        &f->arena,
        "{'metadata':{'name':'%s','namespace':'%s','uid':'%s-%s','labels':{%s}%s%s},'spec':{"
        "'schedulerName':'default-scheduler','containers':[{'name':'c'}]%s%s}}",
        name, ns, ns, name, labels, *meta ? "," : "", meta, *spec ? "," : "", spec);
    const struct K8s__Pod *m = (const struct K8s__Pod *)(const void *)fx_message(
        f, &k8s__pod__descriptor, fx_json(f, text));

    CU_ASSERT_FATAL(bh_compile_shape(&f->arena, m, &in, &shape, NULL) == 0);
    CU_ASSERT_FATAL(bh_compile_pod(&f->arena, m, &in, &p.rec, NULL) == 0);
    p.shape = bh_engine_shape(f->e, shape);
    return p;
}

/* meta: further metadata members; more: further members of the object; each begins with a comma. */
BH_UNUSED static void w_object(struct fx *f, enum bh_kind kind, const char *ns, const char *name,
                               const char *meta, const char *more)
{
    const char *text = bh_arena_printf(&f->arena, "{'metadata':{'name':'%s','namespace':'%s'%s}%s}",
                                       name, ns, meta, more);
    struct bh_buf b = {0};

    bh_pb_pack(&b, fx_message(f, bh_kinds[kind].desc, fx_json(f, text)));
    CU_ASSERT(bh_engine_put_object(f->e, kind, ns, name, bh_buf_str(&b), b.n, NULL) == 0);
    bh_buf_fini(&b);
}

/* labels: JSON members */
BH_UNUSED static void w_namespace(struct fx *f, const char *name, const char *labels)
{
    w_object(f, BH_KIND_NAMESPACE, "", name, bh_arena_printf(&f->arena, ",'labels':{%s}", labels),
             "");
}

/* "15 13 - 6": raw or normalised scores of a plugin of weight 2 on the nodes, - = not scored
 * there. */
BH_UNUSED static const char *w_scores(struct fx *f, const struct bh_decision *d, const char *plugin,
                                      const char *nodes, bool raw)
{
    const char *text = "";

    for (const char *c = nodes; *c; c++) {
        const char node[2] = {*c, '\0'};
        bool found = false;
        for (uint32_t i = 0; i < d->n_scores; i++)
            found |= bh_streq(fx_text(f, d->scores[i].node), node);
        int64_t v = fx_score(f, d, node, plugin, raw);
        text = found ? bh_arena_printf(&f->arena, "%s%s%lld", text, *text ? " " : "",
                                       (long long)(raw ? v : v / 2))
                     : bh_arena_printf(&f->arena, "%s%s-", text, *text ? " " : "");
    }
    return text;
}

/* One letter a node: . feasible, U unschedulable, X unschedulable and unresolvable. */
BH_UNUSED static const char *w_verdicts(struct fx *f, const struct bh_decision *d,
                                        const char *nodes)
{
    char *text = bh_arena_strdup(&f->arena, nodes);

    for (char *c = text; *c; c++) {
        const char node[2] = {*c, '\0'};
        const char *v = fx_verdict(f, d, node);
        *c = !*v ? '.' : strncmp(v, "Unschedulable:", 14) == 0 ? 'U' : 'X';
    }
    return text;
}
#endif
