/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/rows.c - short rows of pods and nodes
 */
#include "simulator/console/rows.h"

#include "common/k8s/quantity.h"

#define ZONE_LABEL "topology.kubernetes.io/zone"

/* ---- amounts --------------------------------------------------------------------------------- */

static int64_t add_sat(int64_t a, int64_t b)
{
    int64_t v;

    if (__builtin_add_overflow(a, b, &v))
        v = a < 0 ? INT64_MIN : INT64_MAX;
    return v;
}

static int64_t *slot(struct bh_console_amounts *x, const char *name)
{
    if (bh_streq(name, "cpu"))
        return &x->cpu_milli;
    if (bh_streq(name, "memory"))
        return &x->memory_bytes;
    if (bh_streq(name, "pods"))
        return &x->pods;
    for (unsigned i = 0; i < x->n; i++)
        if (bh_streq(x->more[i].name, name))
            return &x->more[i].value;
    if (x->n == BH_CONSOLE_RESOURCES)
        return NULL;
    x->more[x->n].name = name;
    x->more[x->n].value = 0;
    return &x->more[x->n++].value;
}

void bh_console_amount_add(struct bh_console_amounts *x, const char *name, int64_t value)
{
    int64_t *v = slot(x, name);

    if (v)
        *v = add_sat(*v, value);
}

void bh_console_amounts_add(struct bh_console_amounts *x, const struct bh_console_amounts *y,
                            int sign)
{
    unsigned k = 0;

    x->cpu_milli = add_sat(x->cpu_milli, sign * y->cpu_milli);
    x->memory_bytes = add_sat(x->memory_bytes, sign * y->memory_bytes);
    x->pods = add_sat(x->pods, sign * y->pods);
    for (unsigned i = 0; i < y->n; i++)
        bh_console_amount_add(x, y->more[i].name, sign * y->more[i].value);
    for (unsigned i = 0; i < x->n; i++)
        if (x->more[i].value)
            x->more[k++] = x->more[i];
    x->n = k;
}

static void raise_to(struct bh_console_amounts *x, const struct bh_console_amounts *y)
{
    x->cpu_milli = BH_MAX(x->cpu_milli, y->cpu_milli);
    x->memory_bytes = BH_MAX(x->memory_bytes, y->memory_bytes);
    for (unsigned i = 0; i < y->n; i++) {
        int64_t *v = slot(x, y->more[i].name);
        if (v)
            *v = BH_MAX(*v, y->more[i].value);
    }
}

static int64_t amount_of(const struct bh_json *q, bool milli)
{
    bh_nano v;

    if (!q || (q->type != BH_JSON_STRING && q->type != BH_JSON_NUMBER) ||
        bh_quantity_parse(q->s.p, q->s.n, &v) < 0)
        return 0;
    return milli ? bh_quantity_milli_value(v) : bh_quantity_value(v);
}

/* A ResourceList. */
static void read_list(struct bh_console_amounts *x, const struct bh_json *list)
{
    bh_json_each(q, list && list->type == BH_JSON_OBJECT ? list : NULL)
        bh_console_amount_add(x, q->key.p, amount_of(q, bh_streq(q->key.p, "cpu")));
}

void bh_console_requests(const struct bh_json *pod, struct bh_console_amounts *out)
{
    const struct bh_json *spec = bh_json_get(pod, "spec");
    const struct bh_json *level = bh_json_path(spec, "resources.requests");
    struct bh_console_amounts sidecars = {0}, init = {0};

    memset(out, 0, sizeof(*out));
    bh_json_each(c, bh_json_get_list(spec, "containers")) {
        struct bh_console_amounts x = {0};
        read_list(&x, bh_json_path(c, "resources.requests"));
        bh_console_amounts_add(out, &x, 1);
    }
    bh_json_each(c, bh_json_get_list(spec, "initContainers")) {
        struct bh_console_amounts x = {0};
        read_list(&x, bh_json_path(c, "resources.requests"));
        if (bh_streq(bh_json_get_text(c, "restartPolicy"), "Always")) {
            bh_console_amounts_add(out, &x, 1);
            bh_console_amounts_add(&sidecars, &x, 1);
            x = sidecars;
        } else {
            bh_console_amounts_add(&x, &sidecars, 1);
        }
        raise_to(&init, &x);
    }
    raise_to(out, &init);
    bh_json_each(q, level && level->type == BH_JSON_OBJECT ? level : NULL) {
        bool counts =
            bh_word_at("cpu memory", q->key.p) >= 0 || strncmp(q->key.p, "hugepages-", 10) == 0;
        int64_t *v = counts ? slot(out, q->key.p) : NULL;
        if (v)
            *v = amount_of(q, bh_streq(q->key.p, "cpu"));
    }
    read_list(out, bh_json_get(spec, "overhead"));
    out->pods = 1;
}

void bh_console_allocatable(const struct bh_json *node, struct bh_console_amounts *out)
{
    memset(out, 0, sizeof(*out));
    read_list(out, bh_json_path(node, "status.allocatable"));
}

/* ---- text ------------------------------------------------------------------------------------ */

const struct bh_json *bh_console_condition(const struct bh_json *obj, const char *type)
{
    const struct bh_json *found = NULL;

    bh_json_each(c, bh_json_get_list(bh_json_get(obj, "status"), "conditions"))
        if (bh_streq(bh_json_get_text(c, "type"), type))
            found = c;
    return found;
}

static bool condition_is_true(const struct bh_json *obj, const char *type)
{
    return bh_streq(bh_json_get_text(bh_console_condition(obj, type), "status"), "True");
}

bool bh_console_gated(const struct bh_json *pod)
{
    return bh_json_first(bh_json_get_list(bh_json_get(pod, "spec"), "schedulingGates")) != NULL;
}

static struct bh_json *more_of(struct bh_arena *a, const struct bh_console_amounts *x)
{
    struct bh_json *v = bh_json_new(a, BH_JSON_OBJECT);

    for (unsigned i = 0; i < x->n; i++)
        bh_json_set_i64(a, v, x->more[i].name, x->more[i].value);
    return v;
}

static struct bh_json *amounts_of(struct bh_arena *a, const struct bh_console_amounts *x)
{
    return bh_json_make(a, "cpu_milli: %ld, memory_bytes: %ld, pods: %ld, resources: %p",
                        x->cpu_milli, x->memory_bytes, x->pods, more_of(a, x));
}

static struct bh_json *labels_of(struct bh_arena *a, const struct bh_json *obj)
{
    const struct bh_json *labels = bh_json_path(obj, "metadata.labels");

    return labels ? bh_json_clone(a, labels) : bh_json_new(a, BH_JSON_OBJECT);
}

/* What both rows begin with. */
static struct bh_json *begin(struct bh_arena *a, const struct bh_sim_obj *o,
                             const struct bh_json *obj)
{
    return bh_json_make(a, "key: %s, namespace?: %s, name: %s, uid: %s, revision: %lu, created: %s",
                        *o->ns ? bh_arena_printf(a, "%s/%s", o->ns, o->name) : o->name, o->ns,
                        o->name, o->uid, o->rv,
                        bh_json_get_str(bh_json_get(obj, "metadata"), "creationTimestamp"));
}

static const char *owner_of(struct bh_arena *a, const struct bh_json *obj)
{
    bh_json_each(w, bh_json_get_list(bh_json_get(obj, "metadata"), "ownerReferences"))
        if (bh_json_get_bool(w, "controller", false))
            return bh_arena_printf(a, "%.250s/%.300s", bh_json_get_text(w, "kind"),
                                   bh_json_get_text(w, "name"));
    return "";
}

struct bh_json *bh_console_pod_row(struct bh_arena *a, const struct bh_sim_obj *o,
                                   const struct bh_json *obj)
{
    const struct bh_json *spec = bh_json_get(obj, "spec"), *status = bh_json_get(obj, "status");
    /* why it is not running: the scheduler's word while it has no node, then its own */
    const struct bh_json *why = *o->node_name ? status : bh_console_condition(obj, "PodScheduled");
    struct bh_console_amounts x;

    bh_console_requests(obj, &x);
    return bh_json_add(
        a, begin(a, o, obj),
        "phase: %s, node: %s, nominated: %s, priority: %ld, scheduler: %s, ready: %i, "
        "deleting: %i, gated: %i, reason: %s, message: %s, owner: %s, cpu_milli: %ld, "
        "memory_bytes: %ld, resources: %p, labels: %p, group?: %s",
        o->phase, o->node_name, bh_json_get_str(status, "nominatedNodeName"),
        bh_json_get_i64(spec, "priority", 0), bh_json_get_str(spec, "schedulerName"),
        condition_is_true(obj, "Ready"), o->deleting, !*o->node_name && bh_console_gated(obj),
        bh_json_get_str(why, "reason"), bh_json_get_str(why, "message"), owner_of(a, obj),
        x.cpu_milli, x.memory_bytes, more_of(a, &x), labels_of(a, obj),
        bh_json_get_str(bh_json_get(spec, "schedulingGroup"), "podGroupName"));
}

struct bh_json *bh_console_node_row(struct bh_arena *a, const struct bh_sim_obj *o,
                                    const struct bh_json *obj,
                                    const struct bh_console_amounts *requested)
{
    const struct bh_json *spec = bh_json_get(obj, "spec");
    struct bh_json *row = begin(a, o, obj);
    struct bh_console_amounts x;

    bh_json_add(a, row, "ready: %i, unschedulable: %i, zone: %s, labels: %p, taints: []",
                condition_is_true(obj, "Ready"), bh_json_get_bool(spec, "unschedulable", false),
                bh_sim_obj_label(o, ZONE_LABEL), labels_of(a, obj));
    bh_json_each(t, bh_json_get_list(spec, "taints"))
        bh_json_append(a, bh_json_get(row, "taints"), "key: %s, value: %s, effect: %s",
                       bh_json_get_str(t, "key"), bh_json_get_str(t, "value"),
                       bh_json_get_str(t, "effect"));
    bh_console_allocatable(obj, &x);
    return bh_json_add(a, row, "allocatable: %p, requested: %p", amounts_of(a, &x),
                       amounts_of(a, requested));
}
