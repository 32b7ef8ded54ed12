/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/dynamicresources/world.h - a cluster with devices, for tests
 *
 * Objects are JSON with ' for ", and ` where a ' is meant. Every pod is decided by both paths of
 * the engine, which have to agree.
 */
#ifndef BH_DRA_WORLD_H
#define BH_DRA_WORLD_H

#include <stdio.h>

#include "common/base/buf.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/engine/engine.h"
#include "tests/unit/harness.h"

#define CANNOT "DynamicResources/UU: cannot allocate all claims; "
#define DRV    "d.x"

static struct bh_engine *e;
static struct bh_arena arena;
static struct bh_buf text;
static const char *pod_extra = ""; /* members of the pod's spec */
static const char *pod_status = "";

static inline ProtobufCMessage *read_json(const struct bh_kind_info *k, const char *json)
{
    char *t = bh_arena_strdup(&arena, json);
    ProtobufCMessage *m = NULL;
    struct bh_err err = {{0}};

    for (char *p = t; *p; p++)
        *p = *p == '\'' ? '"' : *p == '`' ? '\'' : *p;
    if (bh_decode_object(&arena, k->desc, t, strlen(t), &m, &err) < 0)
        printf("  %s: %s\n", err.msg, t);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    return m;
}

/* json: what follows the metadata's uid; NULL deletes. In strings ' is written `. */
static inline void put_event(struct bh_cluster_event *ev, enum bh_kind kind, const char *name,
                             const char *json)
{
    struct bh_buf b = {0};
    const char *ns = bh_kinds[kind].namespaced ? "ns" : "";

    if (json)
        bh_pb_pack(&b, read_json(&bh_kinds[kind],
                                 bh_arena_printf(&arena,
                                                 "{'metadata':{'name':'%s','namespace':'%s',"
                                                 "'uid':'uid-%s'%s",
                                                 name, ns, name, json)));
    ev->resource = BH_EV_OBJECT;
    ev->kind = kind;
    CU_ASSERT_EQUAL(
        bh_engine_put_object_event(e, ev, ns, name, json ? bh_buf_str(&b) : NULL, b.n, NULL), 0);
    bh_buf_fini(&b);
}

static inline void put(enum bh_kind kind, const char *name, const char *json)
{
    struct bh_cluster_event ev = {0};

    put_event(&ev, kind, name, json ? bh_arena_printf(&arena, "},%s}", json) : NULL);
}

static inline void node(const char *name, const char *labels, const char *more)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(e));
    struct bh_node_rec *rec;
    const char *json = bh_arena_printf(
        &arena,
        "{'metadata':{'name':'%s','labels':{%s}},'status':{'allocatable':{'cpu':'8','memory':"
        "'8Gi','pods':'99'%s}}}",
        name, labels, more);

    CU_ASSERT_EQUAL_FATAL(bh_compile_node(&arena,
                                          (const void *)read_json(&bh_kinds[BH_KIND_NODE], json),
                                          &in, &rec, NULL),
                          0);
    bh_engine_put_node(e, rec);
}

static inline struct bh_pending pod(const char *name, const char *claims)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(e));
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    const char *json = bh_arena_printf(
        &arena,
        "{'metadata':{'name':'%s','namespace':'ns','uid':'uid-%s'},'spec':{'schedulerName':"
        "'default-scheduler',%s'resourceClaims':[%s]},'status':{%s}}",
        name, name, *pod_extra ? pod_extra : "'containers':[{'name':'c'}],", claims, pod_status);
    const struct K8s__Pod *p = (const void *)read_json(&bh_kinds[BH_KIND_POD], json);

    CU_ASSERT_EQUAL_FATAL(bh_compile_shape(&arena, p, &in, &shape, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(bh_compile_pod(&arena, p, &in, &rec, NULL), 0);
    return (struct bh_pending){.pod = rec, .shape = bh_engine_shape(e, shape)};
}

static inline const char *plugin_of(const struct bh_status *s)
{
    return s->plugin ? s->plugin : "-";
}

static inline const char *code(const struct bh_status *s)
{
    return s->code == BH_UNSCHEDULABLE ? "U" : s->code == BH_ERROR ? "E" : "UU";
}

/* "*PLUGIN/CODE: reason" when no node was looked at, the error's text, or for each rejected node
 * "node=PLUGIN/CODE: reason; " and what PostFilter says; "" is: fits everywhere. Scores follow when
 * some node prefers an alternative. */
static inline const char *ask(const char *claims)
{
    struct bh_pending p = pod("p", claims);
    struct bh_symtab *tab = bh_engine_symtab(e);
    const struct bh_decision *d = bh_engine_schedule(e, &p, BH_EXPLAIN, 1000);

    bh_buf_reset(&text);
    if (d->kind == BH_DECISION_ERROR)
        bh_buf_adds(&text, d->message);
    else if (d->pre_filter)
        bh_buf_addf(&text, "*%s/%s: %s", plugin_of(d->pre_filter), code(d->pre_filter),
                    d->pre_filter->reasons[0]);
    for (uint32_t i = 0; d->kind != BH_DECISION_ERROR && !d->pre_filter && i < d->n_rejected; i++)
        bh_buf_addf(&text, "%s=%s/%s: %s; ", bh_sym_text(tab, d->rejected[i].node),
                    plugin_of(d->rejected[i].status), code(d->rejected[i].status),
                    d->rejected[i].status->reasons[0]);
    for (uint32_t i = 0; d->scored && i < d->n_scores; i++)
        for (uint32_t k = 0; k < d->n_score_plugins; k++)
            if (bh_streq(d->scores[i].plugins[k].plugin, "DynamicResources") &&
                d->scores[i].plugins[k].weighted)
                bh_buf_addf(&text, "%s+%d ", bh_sym_text(tab, d->scores[i].node),
                            (int)d->scores[i].plugins[k].weighted);
    bh_engine_shape_unref(e, p.shape);
    return bh_buf_str(&text);
}

#define EXPECT(claims, want)                                                                       \
    do {                                                                                           \
        const char *got_ = ask(claims);                                                            \
        if (!bh_streq(got_, (want)))                                                               \
            printf("  line %d: got %s\n", __LINE__, got_ ? got_ : "-");                            \
        CU_ASSERT_STRING_EQUAL(got_, (want));                                                      \
    } while (0)
#define NAMED(claim) "{'name':'" claim "','resourceClaimName':'" claim "'}"
#define ONE          NAMED("one")

static inline void claim(const char *name, const char *spec, const char *status)
{
    put(BH_KIND_RESOURCECLAIM, name,
        bh_arena_printf(&arena, "'spec':{'devices':{%s}},'status':{%s}", spec, status));
}

static inline void requests(const char *more)
{
    claim("one", bh_arena_printf(&arena, "'requests':[%s]", more), "");
}

/* One request r of class any. */
static inline void request(const char *members)
{
    requests(
        bh_arena_printf(&arena, "{'name':'r','exactly':{'deviceClassName':'any'%s}}", members));
}

/* A pool of one slice. */
static inline void slice(const char *name, const char *where, const char *devices)
{
    put(BH_KIND_RESOURCESLICE, name,
        bh_arena_printf(&arena,
                        "'spec':{'driver':'" DRV
                        "','pool':{'name':'%s','generation':1,'resourceSliceCount':1},%s,%s}",
                        name, where, devices));
}

static inline void on_node(const char *name, const char *devices)
{
    slice(name, bh_arena_printf(&arena, "'nodeName':'%s'", name),
          bh_arena_printf(&arena, "'devices':[%s]", devices));
}

/* A configuration with this filterTimeout. */
static inline struct bh_sched_config *with_timeout(const char *duration)
{
    struct bh_sched_config *config = NULL;
    struct bh_json *v = NULL;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    char *json = bh_arena_printf(&a,
                                 "{\"apiVersion\":\"kubescheduler.config.k8s.io/v1\",\"kind\":"
                                 "\"KubeSchedulerConfiguration\",\"profiles\":[{\"pluginConfig\":[{"
                                 "\"name\":\"DynamicResources\",\"args\":{\"filterTimeout\":\"%s\"}"
                                 "}]}]}",
                                 duration);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, json, strlen(json), 0, &v, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(v, &config, NULL), 0);
    bh_arena_fini(&a);
    return config;
}

/* Nodes a and b, a class that takes every device. */
static inline void begin_with(const struct bh_sched_config *config)
{
    const struct bh_engine_options o = {
        .config = config, .tie_break = BH_TIE_FIRST, .verify = true};

    bh_arena_init(&arena, 0);
    pod_extra = pod_status = "";
    CU_ASSERT_EQUAL_FATAL(bh_engine_new(&o, &e, NULL), 0);
    node("a", "'zone':'za'", "");
    node("b", "'zone':'zb'", "");
    put(BH_KIND_DEVICECLASS, "any", "'spec':{}");
}

static inline void begin(void)
{
    begin_with(NULL);
}

static inline void end(void)
{
    bh_engine_free(e);
    bh_arena_fini(&arena);
    bh_buf_fini(&text);
}
#endif
