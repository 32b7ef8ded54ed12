/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/metrics_api.c - metrics.k8s.io/v1beta1, for `kubectl top`
 *
 * Nothing runs, so nothing is measured. What a running pod uses is what its annotations
 * kwok.x-k8s.io/usage-cpu and usage-memory say, shared evenly among its containers, and else what
 * its containers request. What a node uses is what its own annotations of these names say, and else
 * the sum over its running pods.
 * Upstream: kubernetes-sigs/metrics-server (pkg/api); the annotations are kwok's.
 */
#include "simulator/server/req.h"
#include "simulator/server/tree.h"

#include "common/k8s/quantity.h"
#include <stdio.h>

#define ANNOTATION "kwok.x-k8s.io/usage-"

struct usage {
    bh_nano v[2]; /* cpu, memory */
};
static const char *const names[] = {"cpu", "memory"};

static bool annotated(const struct bh_json *obj, size_t i, bh_nano *ret)
{
    char key[64];
    snprintf(key, sizeof(key), ANNOTATION "%s", names[i]);
    const char *v = bh_json_get_str(bh_json_path(obj, "metadata.annotations"), key);
    return v && bh_quantity_parse(v, strlen(v), ret) == 0 && *ret >= 0;
}

static struct usage of_container(const struct bh_json *pod, const struct bh_json *c, size_t n)
{
    struct usage u = {{0}};
    const struct bh_json *requests = bh_json_path(c, "resources.requests");
    for (size_t i = 0; i < 2; i++) {
        const struct bh_json *q = bh_json_get(requests, names[i]);
        if (annotated(pod, i, &u.v[i]))
            u.v[i] /= (bh_nano)BH_MAX(n, (size_t)1);
        else if (q && (q->type == BH_JSON_STRING || q->type == BH_JSON_NUMBER))
            (void)bh_quantity_parse(q->s.p, q->s.n, &u.v[i]);
    }
    return u;
}

static void add(struct usage *sum, struct usage u)
{
    for (size_t i = 0; i < 2; i++)
        sum->v[i] = u.v[i] > BH_NANO_MAX - sum->v[i] ? BH_NANO_MAX : sum->v[i] + u.v[i];
}

static struct usage of_node(struct bh_sim_req *r, const struct bh_json *node, const char *name)
{
    struct usage sum = {{0}}, own;
    struct bh_sim_objs l;
    bh_sim_pods_on_node(r->sim, name, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (!bh_streq(l.v[i]->phase, "Running"))
            continue;
        struct bh_arena_mark m = bh_arena_mark(r->a);
        const struct bh_json *pod = bh_sim_obj_tree(r->a, l.v[i]);
        const struct bh_json *all = bh_json_get_list(bh_json_get(pod, "spec"), "containers");
        bh_json_each(c, all)
            add(&sum, of_container(pod, c, all->c.n));
        bh_arena_rewind(r->a, m);
    }
    bh_sim_objs_fini(&l);
    for (size_t i = 0; i < 2; i++) {
        if (annotated(node, i, &own.v[i]))
            sum.v[i] = own.v[i];
    }
    return sum;
}

static void set_usage(struct bh_arena *a, struct bh_json *to, struct usage u)
{
    struct bh_json *o = bh_json_obj_at(a, to, "usage");
    for (size_t i = 0; i < 2; i++)
        bh_tree_set_quantity(a, o, names[i], u.v[i], i == 1);
}

/* The metrics of one pod or node; in a list, items need no apiVersion and kind. */
static struct bh_json *metrics_of(struct bh_sim_req *r, const struct bh_sim_obj *o)
{
    char now[32];
    struct bh_arena *a = r->a;
    const struct bh_json *tree = bh_sim_obj_tree(a, o);
    const struct bh_json *labels = bh_json_path(tree, "metadata.labels");
    bh_time_format_ns(now, bh_sim_now_ns(r->sim));
    struct bh_json *v = bh_json_make(
        a,
        "kind: %s, apiVersion: metrics.k8s.io/v1beta1, metadata: {name: %s, namespace?: %s, "
        "creationTimestamp: %s, labels?: %p}, timestamp: %s, window: 30s",
        r->type->kind, o->name, o->ns, now, labels ? bh_json_clone(a, labels) : NULL, now);
    if (!(r->type->flags & BH_SIM_NAMESPACED)) {
        set_usage(a, v, of_node(r, tree, o->name));
        return v;
    }
    struct bh_json *l = bh_json_list_at(a, v, "containers");
    const struct bh_json *all = bh_json_get_list(bh_json_get(tree, "spec"), "containers");
    bh_json_each(c, all)
        set_usage(a, bh_json_append(a, l, "name: %s", bh_json_get_text(c, "name")),
                  of_container(tree, c, all->c.n));
    return v;
}

static bool has_metrics(const struct bh_sim_req *r, const struct bh_sim_obj *o)
{
    return !(r->type->flags & BH_SIM_NAMESPACED) || bh_streq(o->phase, "Running");
}

static void list(struct bh_sim_req *r, const struct bh_sim_type *source)
{
    const struct bh_sim_type *t = r->type;
    struct bh_sim_filter f;
    struct bh_sim_objs l;
    r->type = source; /* whose labels and fields are meant */
    int rc = bh_sim_filter_init(r, &f);
    r->type = t;
    if (rc)
        return;
    struct bh_json *v =
        bh_json_make(r->a, "kind: %s, apiVersion: metrics.k8s.io/v1beta1, metadata: {}, items: []",
                     bh_arena_printf(r->a, "%sList", t->kind));
    struct bh_json *items = bh_json_get(v, "items");
    bh_sim_list(r->sim, source, f.ns, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (has_metrics(r, l.v[i]) && bh_sim_filter_match(&f, l.v[i]))
            bh_json_push(items, metrics_of(r, l.v[i]));
    }
    bh_sim_objs_fini(&l);
    bh_sim_filter_fini(&f);
    bh_sim_reply_tree(r, 200, v, NULL);
}

void bh_sim_do_metrics(struct bh_sim_req *r)
{
    const struct bh_sim_type *source = bh_sim_type_find("", "v1", r->type->plural);
    r->verb = *r->name ? "get" : "list";
    if (bh_sim_negotiate(r, false))
        return;
    if (!*r->name) {
        list(r, source);
        return;
    }
    const struct bh_sim_obj *o = bh_sim_get(r->sim, source, r->ns, r->name);
    if (o && has_metrics(r, o))
        bh_sim_reply_tree(r, 200, metrics_of(r, o), NULL);
    else
        bh_sim_not_found(&r->e, r->type, r->name);
}
