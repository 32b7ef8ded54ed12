/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/volumebinding/world.h - a small cluster for the volume plugins'
 * tests
 *
 * Objects are JSON with single quotes. The engine decides every pod by both paths and compares.
 */
#ifndef BH_TEST_WORLD_H
#define BH_TEST_WORLD_H

#include <stdio.h>

#include "common/base/buf.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/engine/engine.h"
#include "tests/unit/harness.h"

struct world {
    struct bh_engine *e;
    struct bh_sched_config *config; /* NULL: the default one */
    struct bh_arena a;
    struct bh_buf text; /* of the last answer */
};

/* With one plugin besides those that queue and bind; NULL: with the default ones. */
static inline void world_begin_with(struct world *w, const char *plugin)
{
    struct bh_engine_options o = {.tie_break = BH_TIE_FIRST, .verify = true};
    struct bh_json *tree = NULL;
    struct bh_err err = {{0}};

    *w = (struct world){0};
    bh_arena_init(&w->a, 0);
    if (plugin) {
        const char *text = bh_arena_printf(
            &w->a,
            "{\"apiVersion\":\"kubescheduler.config.k8s.io/v1\",\"kind\":"
            "\"KubeSchedulerConfiguration\",\"profiles\":[{\"plugins\":{\"multiPoint\":{"
            "\"disabled\":[{\"name\":\"*\"}],\"enabled\":[{\"name\":\"PrioritySort\"},"
            "{\"name\":\"%s\"},{\"name\":\"DefaultBinder\"}]}}}]}",
            plugin);
        CU_ASSERT_EQUAL_FATAL(bh_json_parse(&w->a, text, strlen(text), 0, &tree, &err), 0);
        CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(tree, &w->config, &err), 0);
        o.config = w->config;
    }
    CU_ASSERT_EQUAL_FATAL(bh_engine_new(&o, &w->e, &err), 0);
}

static inline void world_begin(struct world *w)
{
    world_begin_with(w, NULL);
}

static inline void world_end(struct world *w)
{
    bh_engine_free(w->e);
    bh_sched_config_free(w->config);
    bh_arena_fini(&w->a);
    bh_buf_fini(&w->text);
}

static inline ProtobufCMessage *world_read(struct world *w, const struct bh_kind_info *k,
                                           const char *json)
{
    char *text = bh_arena_strdup(&w->a, json);
    ProtobufCMessage *m = NULL;
    struct bh_err err = {{0}};

    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    if (bh_decode_object(&w->a, k->desc, text, strlen(text), &m, &err) < 0)
        printf("  %s: %s\n", err.msg, json);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    return m;
}

/* Any kind but Node and Pod; json NULL deletes. ev may be NULL. */
static inline void world_object(struct world *w, enum bh_kind kind, const char *ns,
                                const char *name, const char *json, struct bh_cluster_event *ev)
{
    struct bh_cluster_event none = {.resource = BH_EV_OBJECT};
    struct bh_buf b = {0};

    if (json)
        bh_pb_pack(&b, world_read(w, &bh_kinds[kind], json));
    ev = ev ? ev : &none;
    ev->kind = kind;
    CU_ASSERT_EQUAL(
        bh_engine_put_object_event(w->e, ev, ns, name, json ? bh_buf_str(&b) : NULL, b.n, NULL), 0);
    bh_buf_fini(&b);
}

static inline void world_node(struct world *w, const char *name, const char *labels)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->e));
    struct bh_node_rec *rec;
    const char *json = bh_arena_printf(
        &w->a,
        "{'metadata':{'name':'%s','labels':{%s}},'status':{'allocatable':{'cpu':'8','memory':"
        "'8Gi','pods':'99'}}}",
        name, labels);

    CU_ASSERT_EQUAL_FATAL(
        bh_compile_node(&w->a, (const void *)world_read(w, &bh_kinds[BH_KIND_NODE], json), &in,
                        &rec, NULL),
        0);
    bh_engine_put_node(w->e, rec);
}

/* volumes: the list's elements. The pod's uid is "uid-<name>"; the caller drops the shape. */
static inline struct bh_pending world_pod(struct world *w, const char *name, const char *node,
                                          const char *volumes)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->e));
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    const char *json =
        bh_arena_printf(&w->a,
                        "{'metadata':{'name':'%s','namespace':'ns','uid':'uid-%s'},'spec':{'"
                        "schedulerName':'default-"
                        "scheduler','nodeName':'%s','containers':[{'name':'c'}],'volumes':[%s]}}",
                        name, name, node, volumes);
    const struct K8s__Pod *p = (const void *)world_read(w, &bh_kinds[BH_KIND_POD], json);

    CU_ASSERT_EQUAL_FATAL(bh_compile_shape(&w->a, p, &in, &shape, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(bh_compile_pod(&w->a, p, &in, &rec, NULL), 0);
    struct bh_pending pending = {.pod = rec, .shape = bh_engine_shape(w->e, shape)};
    if (*node)
        bh_engine_put_pod(w->e, rec, pending.shape);
    return pending;
}

static inline void world_running(struct world *w, const char *name, const char *node,
                                 const char *volumes)
{
    bh_engine_shape_unref(w->e, world_pod(w, name, node, volumes).shape);
}

static inline void add_status(struct world *w, const struct bh_status *s)
{
    bh_buf_addf(&w->text, "%s/%s:", s->plugin ? s->plugin : "-",
                s->code == BH_UNSCHEDULABLE ? "U"
                : s->code == BH_ERROR       ? "E"
                                            : "UU");
    for (uint32_t i = 0; i < s->n_reasons; i++)
        bh_buf_addf(&w->text, "%s%s", i ? " + " : " ", s->reasons[i]);
}

/* What becomes of a pod with these volumes: "*PLUGIN/CODE: reason" when no node was looked at, the
 * error's text, or for each rejected node "node=PLUGIN/CODE: reasons; " - so "" is: fits
 * everywhere. */
static inline const char *world_ask(struct world *w, const char *name, const char *volumes)
{
    struct bh_pending p = world_pod(w, name, "", volumes);
    const struct bh_decision *d = NULL;

    for (unsigned i = 0; i < 2; i++) /* the second time from kept results */
        d = bh_engine_schedule(w->e, &p, BH_EXPLAIN | BH_NO_PREEMPTION, 0);
    bh_buf_reset(&w->text);
    if (d->kind == BH_DECISION_ERROR) {
        bh_buf_adds(&w->text, d->message);
    } else if (d->pre_filter) {
        bh_buf_addc(&w->text, '*');
        add_status(w, d->pre_filter);
    }
    for (uint32_t i = 0; d->kind != BH_DECISION_ERROR && !d->pre_filter && i < d->n_rejected; i++) {
        bh_buf_addf(&w->text, "%s=", bh_sym_text(bh_engine_symtab(w->e), d->rejected[i].node));
        add_status(w, d->rejected[i].status);
        bh_buf_adds(&w->text, "; ");
    }
    bh_engine_shape_unref(w->e, p.shape);
    return bh_buf_str(&w->text);
}

static inline void world_expect(struct world *w, int line, const char *pod, const char *volumes,
                                const char *want)
{
    const char *got = world_ask(w, pod, volumes);
    bool same = bh_str_eqc(bh_str_c(got), want);

    if (!same)
        printf("  line %d: %s\n", line, got ? got : "");
    CU_ASSERT(same);
}
#define WORLD_EXPECT(w, pod, volumes, want) world_expect((w), __LINE__, (pod), (volumes), (want))

/* ---- storage --------------------------------------------------------------------------------- */

static inline void world_class(struct world *w, const char *name, const char *provisioner,
                               const char *mode, const char *more)
{
    world_object(w, BH_KIND_STORAGECLASS, "", name,
                 bh_arena_printf(&w->a,
                                 "{'metadata':{'name':'%s'},'provisioner':'%s',"
                                 "'volumeBindingMode':'%s'%s}",
                                 name, provisioner, mode, more),
                 NULL);
}

/* spec: members of spec. annotations: members. A bound claim names its volume and is so
 * annotated. */
static inline void world_claim(struct world *w, const char *name, const char *annotations,
                               const char *spec)
{
    world_object(w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", name,
                 bh_arena_printf(&w->a,
                                 "{'metadata':{'name':'%s','namespace':'ns','uid':'claim-%s',"
                                 "'annotations':{%s}},'spec':{%s},'status':{'phase':'Pending'}}",
                                 name, name, annotations, spec),
                 NULL);
}

static inline void world_bound_claim(struct world *w, const char *name, const char *volume)
{
    world_claim(w, name, "'pv.kubernetes.io/bind-completed':''",
                bh_arena_printf(&w->a, "'volumeName':'%s'", volume));
}

static inline void world_volume(struct world *w, const char *name, const char *labels,
                                const char *spec)
{
    world_object(w, BH_KIND_PERSISTENTVOLUME, "", name,
                 bh_arena_printf(&w->a,
                                 "{'metadata':{'name':'%s','labels':{%s}},'spec':{%s},"
                                 "'status':{'phase':'Available'}}",
                                 name, labels, spec),
                 NULL);
}
#define ON_NODE(label, value)                                                                      \
    "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'" label         \
    "','operator':'In','values':['" value "']}]}]}}"
#define CLAIM(name) "{'name':'v','persistentVolumeClaim':{'claimName':'" name "'}}"
#endif
