/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes_think.c - which changes are worth trying, from the reasons of an explanation
 */
#include "simulator/offline/fixes_int.h"

#include "common/k8s/quantity.h"
#include "scheduler/cache/node_info.h"

#define REQUIRED     "requiredDuringSchedulingIgnoredDuringExecution"
#define TAINTS       4u
#define INSUFFICIENT "Insufficient "

struct bh_fix *bh_fixes_add(struct bh_fixes *f, const char *kind, const char *text)
{
    struct bh_fix *x = &f->v[BH_MIN(f->n, BH_FIX_MAX - 1)];

    if (f->n < BH_FIX_MAX)
        f->n++;
    *x = (struct bh_fix){.kind = kind, .text = text};
    return x;
}

static struct bh_json *patch(struct bh_fixes *f, const char *member, struct bh_json *value)
{
    return bh_json_make(f->a, "spec: {%s: %p}", member, value);
}

static bool has_reason(const struct bh_json *why, const char *part)
{
    bh_json_each(g, bh_json_get_list(why, "rejectedGroups"))
        bh_json_each(r, bh_json_get_list(g, "reasons"))
            if (bh_json_cstr(r) && strstr(bh_json_cstr(r), part))
                return true;
    return false;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

const struct bh_node_rec *bh_fixes_rec(struct bh_fixes *f, const char *name)
{
    return bh_engine_find_node(f->w->engine, bh_sym_internc(bh_engine_symtab(f->w->engine), name));
}

static const char *amount(struct bh_fixes *f, const char *resource, int64_t v)
{
    bool bytes = bh_streq(resource, "memory") || bh_streq(resource, "ephemeral-storage") ||
                 strncmp(resource, "hugepages-", 10) == 0;

    if (bh_streq(resource, "cpu") && v % 1000)
        return bh_arena_printf(f->a, "%lldm", (long long)v);
    if (bytes && v % (1 << 20) == 0)
        return bh_arena_printf(f->a, "%lldMi", (long long)(v >> 20));
    return bh_arena_printf(f->a, "%lld", (long long)(bh_streq(resource, "cpu") ? v / 1000 : v));
}

static const char *effect_name(uint32_t effect)
{
    return effect == BH_NO_EXECUTE           ? "NoExecute"
           : effect == BH_PREFER_NO_SCHEDULE ? "PreferNoSchedule"
                                             : "NoSchedule";
}

static struct bh_json *taint_tree(struct bh_fixes *f, const struct bh_taint *t)
{
    const struct bh_symtab *tab = bh_engine_symtab(f->w->engine);

    return bh_json_make(f->a, "key: %s, value?: %s, effect: %s", bh_sym_text(tab, t->key),
                        bh_sym_text(tab, t->value), effect_name(t->effect));
}

struct bh_json *bh_fixes_node(struct bh_fixes *f, const char *name)
{
    const struct bh_symtab *tab = bh_engine_symtab(f->w->engine);
    const struct bh_node_rec *n = bh_fixes_rec(f, name);

    if (!n)
        return NULL;
    struct bh_json *o = bh_json_make(
        f->a,
        "apiVersion: v1, kind: Node, metadata: {name: %s, labels: {}}, spec: {unschedulable?: %i}, "
        "status: {allocatable: {cpu: %s, memory: %s, ephemeral-storage: %s, pods: %s}}",
        name, (n->flags & BH_NODE_UNSCHEDULABLE) != 0, amount(f, "cpu", n->alloc_cpu_milli),
        amount(f, "memory", n->alloc_memory_bytes),
        amount(f, "ephemeral-storage", n->alloc_ephemeral_bytes), amount(f, "pods", n->alloc_pods));
    const struct bh_kv *l = bh_rec_at(n, n->labels, struct bh_kv);
    for (uint32_t i = 0; i < n->labels.n; i++)
        bh_json_set_str(f->a, bh_json_path(o, "metadata.labels"), bh_sym_text(tab, l[i].key),
                        bh_sym_text(tab, l[i].value));
    const struct bh_taint *t = bh_rec_at(n, n->taints, struct bh_taint);
    for (uint32_t i = 0; i < n->taints.n; i++)
        bh_json_push(bh_json_list_at(f->a, bh_json_get(o, "spec"), "taints"), taint_tree(f, &t[i]));
    const struct bh_res *r = bh_rec_at(n, n->scalars, struct bh_res);
    for (uint32_t i = 0; i < n->scalars.n; i++)
        bh_json_set_str(f->a, bh_json_path(o, "status.allocatable"), bh_sym_text(tab, r[i].name),
                        bh_arena_printf(f->a, "%lld", (long long)r[i].value));
    return o;
}

/* One that no node has: an earlier advice may have been taken. */
static const char *unused_name(struct bh_fixes *f, const char *name)
{
    const char *one = name;

    for (unsigned i = 2; bh_fixes_rec(f, one); i++)
        one = bh_arena_printf(f->a, "%s-%u", name, i);
    return one;
}

struct bh_json *bh_fixes_new_node(struct bh_fixes *f, const char *like, const char *name)
{
    struct bh_json *o = bh_fixes_node(f, like), *labels = bh_json_path(o, "metadata.labels");

    name = unused_name(f, name);
    bh_json_clear(bh_json_get(o, "spec"));
    bh_json_add(f->a, o, "metadata: {name: %s}", name);
    bh_json_set_str(f->a, labels, "kubernetes.io/hostname", name);
    bh_json_each(s, bh_json_path(f->pod, "spec.nodeSelector"))
        bh_json_set(f->a, labels, s->key.p, bh_json_clone(f->a, s));
    bh_json_set(f->a, bh_json_get(o, "status"), "capacity",
                bh_json_clone(f->a, bh_json_path(o, "status.allocatable")));
    return o;
}

/* What a node has of a resource, and what is free of it. Thousandths for cpu. */
static int64_t of_node(struct bh_fixes *f, bh_sym node, const char *resource, int64_t *ret_free)
{
    const struct bh_node_info *ni = bh_engine_node_info(f->w->engine, node);
    const struct bh_node_rec *n = ni->rec;
    bh_sym scalar = bh_sym_internc(bh_engine_symtab(f->w->engine), resource);
    bool cpu = bh_streq(resource, "cpu"), memory = bh_streq(resource, "memory"),
         disk = bh_streq(resource, "ephemeral-storage");
    int64_t has = cpu      ? n->alloc_cpu_milli
                  : memory ? n->alloc_memory_bytes
                  : disk   ? n->alloc_ephemeral_bytes
                           : bh_node_rec_scalar(n, scalar, NULL);

    *ret_free = has - bh_sum_i64(cpu      ? ni->used_cpu_milli
                                 : memory ? ni->used_memory_bytes
                                 : disk   ? ni->used_ephemeral_bytes
                                          : bh_node_info_used_scalar(ni, scalar));
    return has;
}

struct look { /* at every node */
    struct bh_fixes *f;
    const char *resource;
    int64_t most, most_free;
    bh_sym largest, cordoned;
    double size;
    const struct bh_shape_rec *pod; /* that smallest has to hold; NULL: none */
    bh_sym smallest;
    double smallest_size;
    struct taint {
        struct bh_taint t;
        unsigned n;
    } taint[16];
    unsigned n_taints;
};

/* An empty node of that size would do. */
static bool is_large_enough(const struct bh_node_rec *n, const struct bh_shape_rec *pod)
{
    const struct bh_res *r = bh_rec_at(pod, pod->fit.scalars, struct bh_res);

    for (uint32_t i = 0; i < pod->fit.scalars.n; i++)
        if (r[i].value > bh_node_rec_scalar(n, r[i].name, NULL))
            return false;
    return pod->fit.cpu_milli <= n->alloc_cpu_milli &&
           pod->fit.memory_bytes <= n->alloc_memory_bytes &&
           pod->fit.ephemeral_bytes <= n->alloc_ephemeral_bytes && n->alloc_pods > 0;
}

static void look_at(void *arg, bh_sym node)
{
    struct look *l = arg;
    const struct bh_node_rec *n = bh_engine_find_node(l->f->w->engine, node);
    int64_t free = 0;

    if (!n)
        return;
    if (l->resource) {
        l->most = BH_MAX(l->most, of_node(l->f, node, l->resource, &free));
        l->most_free = BH_MAX(l->most_free, free);
        return;
    }
    double size = (double)n->alloc_cpu_milli * 1e9 + (double)n->alloc_memory_bytes;
    if (l->largest == BH_SYM_NONE || size > l->size) {
        l->size = size;
        l->largest = node;
    }
    if (l->pod && is_large_enough(n, l->pod) &&
        (l->smallest == BH_SYM_NONE || size < l->smallest_size)) {
        l->smallest_size = size;
        l->smallest = node;
    }
    if (n->flags & BH_NODE_UNSCHEDULABLE)
        l->cordoned = node;
    const struct bh_taint *t = bh_rec_at(n, n->taints, struct bh_taint);
    for (uint32_t i = 0; i < n->taints.n; i++) {
        unsigned k = 0;
        while (k < l->n_taints && memcmp(&l->taint[k].t, &t[i], sizeof(*t)) != 0)
            k++;
        if (k == l->n_taints && k < BH_ARRAY_LEN(l->taint))
            l->taint[l->n_taints++].t = t[i];
        if (k < l->n_taints)
            l->taint[k].n++;
    }
}

static struct look look(struct bh_fixes *f, const char *resource)
{
    struct look l = {.f = f, .resource = resource};

    bh_engine_each_node(f->w->engine, look_at, &l);
    return l;
}

const char *bh_fixes_largest(struct bh_fixes *f)
{
    bh_sym s = look(f, NULL).largest;

    return s == BH_SYM_NONE ? NULL : bh_sym_text(bh_engine_symtab(f->w->engine), s);
}

/* ---- the pod's rules ------------------------------------------------------------------------- */

/* containers with what f changes of each, NULL when there is nothing */
typedef struct bh_json *of_container(struct bh_fixes *f, const struct bh_json *c, const void *arg);
static struct bh_json *each_container(struct bh_fixes *f, of_container *fn, const void *arg)
{
    struct bh_json *spec = NULL;

    bh_json_each(list, bh_json_get(f->pod, "spec")) {
        if (!bh_streq(list->key.p, "containers") && !bh_streq(list->key.p, "initContainers"))
            continue;
        bh_json_each(c, list) {
            struct bh_json *o = fn(f, c, arg);
            if (!o)
                continue;
            spec = spec ? spec : bh_json_new(f->a, BH_JSON_OBJECT);
            bh_json_set_str(f->a, o, "name", bh_json_get_text(c, "name"));
            bh_json_push(bh_json_list_at(f->a, spec, list->key.p), o);
        }
    }
    return spec ? bh_json_make(f->a, "spec: %p", spec) : NULL;
}

static struct bh_json *without_host_ports(struct bh_fixes *f, const struct bh_json *c,
                                          const void *arg BH_UNUSED)
{
    bh_json_each(p, bh_json_get_list(c, "ports"))
        if (bh_json_get(p, "hostPort"))
            return bh_json_make(f->a, "ports: null");
    return NULL;
}

static void placement(struct bh_fixes *f)
{
    static const char *const affinities[][2] = {
        {"nodeAffinity", "no required node affinity"},
        {"podAffinity", "no required pod affinity"},
        {"podAntiAffinity", "no required pod anti-affinity"}};
    const struct bh_json *spec = bh_json_get(f->pod, "spec");
    struct bh_json *soft = bh_json_clone(f->a, bh_json_get(spec, "topologySpreadConstraints"));
    bool hard = false;

    if (bh_json_first(bh_json_get(spec, "nodeSelector")))
        bh_fixes_add(f, "selector", "no node selector")->pod =
            patch(f, "nodeSelector", bh_json_new(f->a, BH_JSON_NULL));
    for (size_t i = 0; i < BH_ARRAY_LEN(affinities); i++)
        if (bh_json_get(bh_json_get(bh_json_get(spec, "affinity"), affinities[i][0]), REQUIRED))
            bh_fixes_add(f, affinities[i][0], affinities[i][1])->pod = patch(
                f, "affinity", bh_json_make(f->a, "%s: {" REQUIRED ": null}", affinities[i][0]));
    bh_json_each(c, soft)
        if (!bh_streq(bh_json_get_text(c, "whenUnsatisfiable"), "ScheduleAnyway")) {
            bh_json_set_str(f->a, c, "whenUnsatisfiable", "ScheduleAnyway");
            /* the old entry goes: what is required is part of the merge key */
            hard = true;
        }
    if (hard) {
        bh_json_push(soft, bh_json_make(f->a, "$patch: replace"));
        bh_fixes_add(f, "spread", "spread preferred, not required")->pod =
            patch(f, "topologySpreadConstraints", soft);
    }
    struct bh_json *ports = each_container(f, without_host_ports, NULL);
    if (ports)
        bh_fixes_add(f, "containers", "no host ports")->pod = ports;
}

static void gates(struct bh_fixes *f)
{
    if (bh_json_first(bh_json_path(f->pod, "spec.schedulingGates")))
        bh_fixes_add(f, "gates", "no scheduling gates")->pod =
            patch(f, "schedulingGates", bh_json_new(f->a, BH_JSON_NULL));
}

static bool tolerates(struct bh_fixes *f, const struct bh_json *taint)
{
    const char *key = bh_json_get_text(taint, "key"), *effect = bh_json_get_text(taint, "effect");

    bh_json_each(t, bh_json_path(f->pod, "spec.tolerations")) {
        const char *k = bh_json_get_text(t, "key"), *e = bh_json_get_text(t, "effect");
        if ((!*k || bh_streq(k, key)) && (!*e || bh_streq(e, effect)) &&
            (bh_streq(bh_json_get_text(t, "operator"), "Exists") ||
             bh_streq(bh_json_get_text(t, "value"), bh_json_get_text(taint, "value"))))
            return true;
    }
    return false;
}

static void taints(struct bh_fixes *f)
{
    struct look l = look(f, NULL);
    unsigned made = 0;

    for (unsigned i = 0; i < l.n_taints && made < TAINTS; i++) {
        struct bh_json *t = taint_tree(f, &l.taint[i].t);
        const char *value = bh_json_get_text(t, "value"), *key = bh_json_get_text(t, "key");
        if (l.taint[i].t.effect == BH_PREFER_NO_SCHEDULE || tolerates(f, t) ||
            bh_streq(key, "node.kubernetes.io/unschedulable"))
            continue;
        const struct bh_json *have = bh_json_path(f->pod, "spec.tolerations");
        struct bh_json *list = have ? bh_json_clone(f->a, have) : bh_json_new(f->a, BH_JSON_ARRAY);
        bh_json_append(f->a, list, "key: %s, operator: %s, value?: %s, effect: %s", key,
                       *value ? "Equal" : "Exists", value, bh_json_get_text(t, "effect"));
        bh_fixes_add(f, "taint",
                     bh_arena_printf(f->a, "tolerate the taint %s%s%s:%s (%u %s it)", key,
                                     *value ? "=" : "", value, bh_json_get_text(t, "effect"),
                                     l.taint[i].n, l.taint[i].n == 1 ? "node has" : "nodes have"))
            ->pod = patch(f, "tolerations", list);
        made++;
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct scale { /* of a resource: times by/from; by 0 = just read */
    const char *resource;
    int64_t by, from;
    int64_t *sum;
};

/* Thousandths for cpu, as nodes have it. */
static int64_t quantity(const char *resource, const char *text)
{
    bh_nano q;

    if (bh_quantity_parse(text, strlen(text), &q) < 0)
        return 0;
    return bh_streq(resource, "cpu") ? bh_quantity_milli_value(q) : bh_quantity_value(q);
}

/* Down, to what people write. */
static int64_t rounded(const char *resource, int64_t v)
{
    int64_t unit = bh_streq(resource, "cpu") ? 10 : v >= 64 << 20 ? 1 << 20 : 1;

    return BH_MAX(v - v % unit, 1);
}

static struct bh_json *scaled(struct bh_fixes *f, const struct bh_json *c, const void *arg)
{
    static const char *const sides[] = {"requests", "limits"};
    const struct scale *s = arg;
    struct bh_json *o = NULL;

    for (size_t i = 0; i < BH_ARRAY_LEN(sides); i++) {
        const struct bh_json *side = bh_json_get(bh_json_get(c, "resources"), sides[i]);
        const char *text = bh_json_get_text(side, s->resource);
        if (!*text)
            continue;
        int64_t v = quantity(s->resource, text);
        if (s->sum && (i == 0 || !*s->sum))
            *s->sum += v;
        if (s->by) {
            o = o ? o : bh_json_make(f->a, "resources: {}");
            v = (int64_t)((double)v * (double)s->by / (double)s->from);
            bh_json_set_str(f->a, bh_json_obj_at(f->a, bh_json_get(o, "resources"), sides[i]),
                            s->resource, amount(f, s->resource, rounded(s->resource, v)));
        }
    }
    return o;
}

/* The most that is free where nothing but room is missing. */
static int64_t free_near(struct bh_fixes *f, const char *resource)
{
    struct bh_symtab *tab = bh_engine_symtab(f->w->engine);
    int64_t most = 0, free;

    bh_json_each(v, bh_json_get_list(f->why, "rejected")) {
        const char *first = bh_json_cstr(bh_json_first(bh_json_get_list(v, "reasons")));
        bh_sym node = bh_sym_internc(tab, bh_json_get_text(v, "node"));
        if (!first || strncmp(first, INSUFFICIENT, sizeof(INSUFFICIENT) - 1) != 0 ||
            !bh_engine_find_node(f->w->engine, node))
            continue;
        (void)of_node(f, node, resource, &free);
        most = BH_MAX(most, free);
    }
    return most;
}

static void size(struct bh_fixes *f, const char *resource)
{
    int64_t want = 0;
    struct scale s = {.resource = resource, .sum = &want};
    struct look l = look(f, resource);

    (void)each_container(f, scaled, &s);
    if (want <= 0)
        return;
    const int64_t sizes[] = {rounded(resource, want / 2), rounded(resource, free_near(f, resource)),
                             rounded(resource, l.most_free)};
    for (size_t i = 0; i < BH_ARRAY_LEN(sizes); i++) {
        if (sizes[i] <= 1 || sizes[i] >= want || (i && sizes[i] == sizes[i - 1]))
            continue;
        s = (struct scale){.resource = resource, .by = sizes[i], .from = want};
        bh_fixes_add(f, "containers",
                     bh_arena_printf(f->a, "%s %s%s instead of %s", amount(f, resource, sizes[i]),
                                     resource, i ? ", as much as is free on a node" : " (half)",
                                     amount(f, resource, want)))
            ->pod = each_container(f, scaled, &s);
    }
    const char *largest = bh_fixes_largest(f);
    const int64_t enough = rounded(resource, want + want / 10);
    if (l.most >= want || !largest)
        return;
    struct bh_json *node = bh_fixes_new_node(f, largest, "one-larger-node");
    bh_json_each(side, bh_json_get(node, "status"))
        bh_json_set_str(f->a, side, resource, amount(f, resource, enough));
    struct bh_fix *x =
        bh_fixes_add(f, "node",
                     bh_arena_printf(f->a, "one more node that is large enough: %s %s",
                                     amount(f, resource, enough), resource));
    x->create = bh_json_new(f->a, BH_JSON_ARRAY);
    bh_json_push(x->create, node);
}

static void sizes(struct bh_fixes *f)
{
    struct bh_map seen BH_CLEANUP(bh_map_fini) = {0};

    bh_json_each(g, bh_json_get_list(f->why, "rejectedGroups")) {
        bh_json_each(r, bh_json_get_list(g, "reasons")) {
            const char *text = bh_json_cstr(r) ? bh_json_cstr(r) : "";
            if (strncmp(text, INSUFFICIENT, sizeof(INSUFFICIENT) - 1) == 0 &&
                !bh_map_put(&seen, text, strlen(text), (void *)(uintptr_t)text))
                size(f, text + sizeof(INSUFFICIENT) - 1);
        }
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Of an empty cluster: of a usual size, or as large as the pod asks for. */
static void first_node(struct bh_fixes *f)
{
    static const char name[] = "first-node";
    struct bh_json *labels = bh_json_new(f->a, BH_JSON_OBJECT),
                   *room = bh_json_make(f->a, "pods: %s", "110");

    bh_json_set_str(f->a, labels, "kubernetes.io/hostname", name);
    bh_json_each(s, bh_json_path(f->pod, "spec.nodeSelector"))
        bh_json_set(f->a, labels, s->key.p, bh_json_clone(f->a, s));
    bh_json_set_str(f->a, room, "cpu", "8");
    bh_json_set_str(f->a, room, "memory", "32Gi");
    bh_json_each(c, bh_json_path(f->pod, "spec.containers")) {
        bh_json_each(r, bh_json_path(c, "resources.requests")) {
            const char *resource = r->key.p, *has = bh_json_get_text(room, resource);
            int64_t want = 0;
            (void)each_container(f, scaled, &(struct scale){.resource = resource, .sum = &want});
            if (want > (*has ? quantity(resource, has) : 0))
                bh_json_set_str(f->a, room, resource,
                                amount(f, resource, rounded(resource, want + want / 10)));
        }
    }
    struct bh_fix *x = bh_fixes_add(f, "node", "a node: the cluster has none");
    x->create = bh_json_new(f->a, BH_JSON_ARRAY);
    bh_json_push(
        x->create,
        bh_json_make(f->a,
                     "apiVersion: v1, kind: Node, metadata: {name: %s, labels: %p}, spec: {}, "
                     "status: {allocatable: %p, capacity: %p}",
                     name, labels, room, bh_json_clone(f->a, room)));
}

static void nodes(struct bh_fixes *f)
{
    const struct bh_symtab *tab = bh_engine_symtab(f->w->engine);
    struct bh_offline_object x;
    struct look l = {.f = f};
    struct bh_err err;

    if (bh_offline_read(f->w->engine, f->a, &bh_kinds[BH_KIND_POD], f->pod, &x, &err) == 0)
        l.pod = x.shape;
    bh_engine_each_node(f->w->engine, look_at, &l);

    if (l.cordoned != BH_SYM_NONE) {
        const char *name = bh_sym_text(tab, l.cordoned);
        struct bh_json *left = bh_json_new(f->a, BH_JSON_ARRAY);
        bh_json_each(t, bh_json_path(bh_fixes_node(f, name), "spec.taints"))
            if (!bh_streq(bh_json_get_text(t, "key"), "node.kubernetes.io/unschedulable"))
                bh_json_push(left, bh_json_clone(f->a, t));
        struct bh_fix *uncordon =
            bh_fixes_add(f, "node", bh_arena_printf(f->a, "uncordon %s", name));
        uncordon->node_name = name;
        uncordon->node = bh_json_make(f->a, "spec: {unschedulable: false, taints: %p}", left);
    }
    if (l.largest == BH_SYM_NONE) {
        first_node(f);
        return;
    }
    const char *like = bh_sym_text(tab, l.smallest != BH_SYM_NONE ? l.smallest : l.largest);
    struct bh_fix *one = bh_fixes_add(
        f, "node", bh_arena_printf(f->a, "one more node like %s, without taints", like));
    one->create = bh_json_new(f->a, BH_JSON_ARRAY);
    bh_json_push(one->create, bh_fixes_new_node(f, like, "one-more-node"));
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void priority(struct bh_fixes *f)
{
    int64_t now = bh_json_get_i64(bh_json_get(f->pod, "spec"), "priority", 0);
    const int64_t higher = 1000000000; /* the highest that is not the system's */

    if (now >= higher ||
        bh_streq(bh_json_get_text(bh_json_get(f->pod, "spec"), "preemptionPolicy"), "Never"))
        return;
    struct bh_fix *x = bh_fixes_add(f, "priority", "a higher priority: evicts others");
    x->alone = true;
    x->pod = bh_json_make(f->a, "spec: {priorityClassName: urgent, priority: %ld}", (long)higher);
    x->create = bh_json_new(f->a, BH_JSON_ARRAY);
    bh_json_append(f->a, x->create,
                   "apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "
                   "urgent}, value: %ld",
                   (long)higher);
}

/* Those that answer the reasons first. */
void bh_fixes_think(struct bh_fixes *f)
{
    if (bh_streq(bh_json_get_text(f->why, "result"), "Gated")) {
        gates(f);
        return;
    }
    bh_fixes_missing(f);
    if (has_reason(f->why, "affinity/selector"))
        bh_fixes_labels(f);
    placement(f);
    if (has_reason(f->why, "taint"))
        taints(f);
    sizes(f);
    nodes(f);
    priority(f);
}
