/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/engine/fixture.h - an engine fed with short JSON texts
 *
 * Single quotes stand for double ones, so that objects read well in C. Metadata that every object
 * needs (uid, namespace) is filled in from the name.
 */
#ifndef BH_ENGINE_FIXTURE_H
#define BH_ENGINE_FIXTURE_H

#include <stdio.h>

#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/engine/engine.h"
#include "tests/unit/harness.h"

struct fx {
    struct bh_engine *e;
    struct bh_sched_config *config;
    struct bh_arena arena; /* records handed out by fx_pod live here */
};
struct fx_pod {
    struct bh_pod_rec *rec;
    bh_shape_id shape;
};

BH_UNUSED static const struct bh_json *fx_json(struct fx *f, const char *text)
{
    char *t = bh_arena_strdup(&f->arena, text);
    struct bh_json *v = NULL;
    struct bh_err err;

    for (char *p = t; *p; p++)
        if (*p == '\'')
            *p = '"';
    int rc = bh_json_parse(&f->arena, t, strlen(t), BH_JSON_NUL, &v, &err);
    if (rc < 0)
        fprintf(stderr, "fixture: %s in %s\n", err.msg, t);
    CU_ASSERT_FATAL(rc == 0);
    return v;
}

/* config: profile JSON (an element of profiles[]) or NULL. */
BH_UNUSED static void fx_init_with(struct fx *f, const char *profile, struct bh_engine_options o)
{
    struct bh_err err = {{0}};

    memset(f, 0, sizeof *f);
    bh_arena_init(&f->arena, 0);
    if (profile) {
        const char *text = bh_arena_printf(
            &f->arena,
            "{'apiVersion':'kubescheduler.config.k8s.io/v1','kind':'KubeSchedulerConfiguration',"
            "'profiles':[%s]}",
            profile);
        int rc = bh_sched_config_new(fx_json(f, text), &f->config, &err);
        if (rc < 0)
            fprintf(stderr, "fixture: %s\n", err.msg);
        CU_ASSERT_FATAL(rc == 0);
        o.config = f->config;
    }
    CU_ASSERT_FATAL(bh_engine_new(&o, &f->e, &err) == 0);
}

BH_UNUSED static void fx_init(struct fx *f, const char *profile)
{
    fx_init_with(f, profile, (struct bh_engine_options){.tie_break = BH_TIE_FIRST, .verify = true});
}

BH_UNUSED static void fx_fini(struct fx *f)
{
    bh_engine_free(f->e);
    bh_sched_config_free(f->config);
    bh_arena_fini(&f->arena);
}

static ProtobufCMessage *fx_message(struct fx *f, const ProtobufCMessageDescriptor *d,
                                    const struct bh_json *v)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {{0}};
    int rc = bh_json_to_pb(&f->arena, d, v, &m, NULL, &err);

    if (rc < 0)
        fprintf(stderr, "fixture: %s\n", err.msg);
    CU_ASSERT_FATAL(rc == 0);
    return m;
}

/* allocatable, labels: JSON objects' insides; more: further spec/status members, all may be "". */
BH_UNUSED static struct bh_node_rec *fx_node_rec(struct fx *f, const char *name,
                                                 const char *allocatable, const char *labels,
                                                 const char *spec, const char *status)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(f->e));
    struct bh_node_rec *rec = NULL;
    struct bh_err err = {{0}};
    const char *text =
        bh_arena_printf(&f->arena,
                        "{'metadata':{'name':'%s','uid':'uid-%s','labels':{%s}},'spec':{%s},"
                        "'status':{'allocatable':{%s}%s%s}}",
                        name, name, labels, spec, allocatable, *status ? "," : "", status);

    CU_ASSERT_FATAL(bh_compile_node(&f->arena,
                                    (const struct K8s__Node *)(const void *)fx_message(
                                        f, &k8s__node__descriptor, fx_json(f, text)),
                                    &in, &rec, &err) == 0);
    return rec;
}

BH_UNUSED static void fx_node(struct fx *f, const char *name, const char *allocatable,
                              const char *labels, const char *spec, const char *status)
{
    bh_engine_put_node(f->e, fx_node_rec(f, name, allocatable, labels, spec, status));
}

/* meta: further metadata members; spec: members of spec; status: members of status. */
BH_UNUSED static struct fx_pod fx_pod_full(struct fx *f, const char *name, const char *meta,
                                           const char *spec, const char *status)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(f->e));
    struct bh_shape_rec *shape = NULL;
    struct fx_pod p = {0};
    struct bh_err err = {{0}};
    const char *text =
        bh_arena_printf(&f->arena,
                        "{'metadata':{'name':'%s','namespace':'default','uid':'uid-%s'%s%s},"
                        "'spec':{'schedulerName':'default-scheduler'%s%s},'status':{%s}}",
                        name, name, *meta ? "," : "", meta, *spec ? "," : "", spec, status);
    const struct K8s__Pod *m = (const struct K8s__Pod *)(const void *)fx_message(
        f, &k8s__pod__descriptor, fx_json(f, text));

    CU_ASSERT_FATAL(bh_compile_shape(&f->arena, m, &in, &shape, &err) == 0);
    CU_ASSERT_FATAL(bh_compile_pod(&f->arena, m, &in, &p.rec, &err) == 0);
    p.shape = bh_engine_shape(f->e, shape);
    return p;
}

/* One container with these requests; more: further spec members. */
BH_UNUSED static struct fx_pod fx_pod(struct fx *f, const char *name, const char *requests,
                                      const char *more)
{
    const char *spec =
        bh_arena_printf(&f->arena, "'containers':[{'name':'c','resources':{'requests':{%s}}}]%s%s",
                        requests, *more ? "," : "", more);
    return fx_pod_full(f, name, "", spec, "");
}

BH_UNUSED static void fx_place(struct fx *f, struct fx_pod p, const char *node)
{
    p.rec->node = bh_sym_internc(bh_engine_symtab(f->e), node);
    bh_engine_put_pod(f->e, p.rec, p.shape);
}

BH_UNUSED static const struct bh_decision *fx_schedule(struct fx *f, struct fx_pod p)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    return bh_engine_schedule(f->e, &pending, BH_EXPLAIN, (int64_t)1893456000 * 1000000000);
}

BH_UNUSED static const char *fx_text(struct fx *f, bh_sym s)
{
    return bh_sym_text(bh_engine_symtab(f->e), s);
}

/* "Unschedulable: a, b" of one node, "" when it is feasible. */
BH_UNUSED static const char *fx_verdict(struct fx *f, const struct bh_decision *d, const char *node)
{
    for (uint32_t i = 0; i < d->n_rejected; i++)
        if (bh_streq(fx_text(f, d->rejected[i].node), node))
            return bh_arena_printf(&f->arena, "%s: %s", bh_code_name(d->rejected[i].status->code),
                                   bh_status_message(&f->arena, d->rejected[i].status));
    return "";
}

/* Weighted score of one plugin on one node; -1 when it did not score there. */
BH_UNUSED static int64_t fx_score(struct fx *f, const struct bh_decision *d, const char *node,
                                  const char *plugin, bool raw)
{
    for (uint32_t i = 0; i < d->n_scores; i++) {
        if (!bh_streq(fx_text(f, d->scores[i].node), node))
            continue;
        for (uint32_t k = 0; d->scores[i].plugins && k < d->n_score_plugins; k++)
            if (bh_streq(d->scores[i].plugins[k].plugin, plugin))
                return raw ? d->scores[i].plugins[k].raw : d->scores[i].plugins[k].weighted;
    }
    return -1;
}

#define FX_STR(have, want)                                                                         \
    do {                                                                                           \
        const char *fx_have_ = (have), *fx_want_ = (want);                                         \
        bool fx_ok_ = fx_have_ && bh_streq(fx_have_, fx_want_);                                    \
        if (!fx_ok_)                                                                               \
            fprintf(stderr, "  line %d: have \"%s\"\n           want \"%s\"\n", __LINE__,          \
                    fx_have_ ? fx_have_ : "(null)", fx_want_);                                     \
        CU_ASSERT(fx_ok_);                                                                         \
    } while (0)
#define FX_INT(have, want)                                                                         \
    do {                                                                                           \
        long long fx_h_ = (long long)(have), fx_w_ = (long long)(want);                            \
        if (fx_h_ != fx_w_)                                                                        \
            fprintf(stderr, "  line %d: have %lld, want %lld\n", __LINE__, fx_h_, fx_w_);          \
        CU_ASSERT(fx_h_ == fx_w_);                                                                 \
    } while (0)
#endif
