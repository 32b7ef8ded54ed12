/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/rows.c - short rows of pods and nodes
 */
#include "simulator/console/rows.h"

#include "common/k8s/quantity.h"

#define ZONE_LABEL "topology.kubernetes.io/zone"

/* ---- amounts ----------------------------------------------------------------------------------
 */

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
    for (unsigned i = 0; i < x->n; i++) {
        if (bh_streq(x->more[i].name, name))
            return &x->more[i].value;
    }
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
    for (unsigned i = 0; i < x->n; i++) {
        if (x->more[i].value)
            x->more[k++] = x->more[i];
    }
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

static struct bh_console_amounts of_container(const struct bh_json *c)
{
    struct bh_console_amounts x = {0};

    read_list(&x, bh_json_path(c, "resources.requests"));
    return x;
}

static bool counts_on_pod_level(const char *name)
{
    return bh_streq(name, "cpu") || bh_streq(name, "memory") ||
           strncmp(name, "hugepages-", 10) == 0;
}

void bh_console_requests(const struct bh_json *pod, struct bh_console_amounts *out)
{
    const struct bh_json *spec = bh_json_get(pod, "spec");
    const struct bh_json *level = bh_json_path(spec, "resources.requests");
    struct bh_console_amounts sidecars = {0}, init = {0}, x;

    memset(out, 0, sizeof(*out));
    bh_json_each(c, bh_json_get_list(spec, "containers")) {
        x = of_container(c);
        bh_console_amounts_add(out, &x, 1);
    }
    bh_json_each(c, bh_json_get_list(spec, "initContainers")) {
        x = of_container(c);
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
        int64_t *v = counts_on_pod_level(q->key.p) ? slot(out, q->key.p) : NULL;
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

/* ---- text -------------------------------------------------------------------------------------
 */

static void add_str(struct bh_buf *out, const char *name, const char *v)
{
    bh_buf_addf(out, ",\"%s\":", name);
    bh_buf_add_json_str(out, v, strlen(v));
}

static void add_bool(struct bh_buf *out, const char *name, bool v)
{
    bh_buf_addf(out, ",\"%s\":%s", name, v ? "true" : "false");
}

static void add_i64(struct bh_buf *out, const char *name, int64_t v)
{
    bh_buf_addf(out, ",\"%s\":", name);
    bh_buf_addi64(out, v);
}

static void add_value(struct bh_buf *out, const char *name, const struct bh_json *v,
                      const char *absent)
{
    bh_buf_addf(out, ",\"%s\":", name);
    if (v)
        bh_json_write(out, v);
    else
        bh_buf_adds(out, absent);
}

static void add_more(struct bh_buf *out, const struct bh_console_amounts *x)
{
    bh_buf_adds(out, ",\"resources\":{");
    for (unsigned i = 0; i < x->n; i++) {
        if (i)
            bh_buf_addc(out, ',');
        bh_buf_add_json_str(out, x->more[i].name, strlen(x->more[i].name));
        bh_buf_addc(out, ':');
        bh_buf_addi64(out, x->more[i].value);
    }
    bh_buf_addc(out, '}');
}

static void add_amounts(struct bh_buf *out, const char *name, const struct bh_console_amounts *x)
{
    bh_buf_addf(out, ",\"%s\":{\"cpu_milli\":", name);
    bh_buf_addi64(out, x->cpu_milli);
    add_i64(out, "memory_bytes", x->memory_bytes);
    add_i64(out, "pods", x->pods);
    add_more(out, x);
    bh_buf_addc(out, '}');
}

const struct bh_json *bh_console_condition(const struct bh_json *obj, const char *type)
{
    const struct bh_json *found = NULL;

    bh_json_each(c, bh_json_get_list(bh_json_get(obj, "status"), "conditions")) {
        if (bh_streq(bh_json_get_text(c, "type"), type))
            found = c;
    }
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

static void begin(struct bh_buf *out, const struct bh_sim_obj *o, const struct bh_json *obj)
{
    bh_buf_adds(out, "{\"key\":");
    if (*o->ns) {
        bh_buf_addf(out, "\"%s/%s\"", o->ns, o->name); /* names need no escapes */
        add_str(out, "namespace", o->ns);
    } else {
        bh_buf_add_json_str(out, o->name, strlen(o->name));
    }
    add_str(out, "name", o->name);
    add_str(out, "uid", o->uid);
    add_i64(out, "revision", (int64_t)o->rv);
    add_str(out, "created", bh_json_get_text(bh_json_get(obj, "metadata"), "creationTimestamp"));
}

static void add_owner(struct bh_buf *out, const struct bh_json *obj)
{
    bh_json_each(w, bh_json_get_list(bh_json_get(obj, "metadata"), "ownerReferences")) {
        if (!bh_json_get_bool(w, "controller", false))
            continue;
        char text[600];
        snprintf(text, sizeof(text), "%.250s/%.300s", bh_json_get_text(w, "kind"),
                 bh_json_get_text(w, "name"));
        add_str(out, "owner", text);
        return;
    }
    add_str(out, "owner", "");
}

/* Why it is not running: the scheduler's word while it has no node, then its own. */
static void add_reason(struct bh_buf *out, const struct bh_sim_obj *o, const struct bh_json *obj)
{
    const struct bh_json *status = bh_json_get(obj, "status"), *from = status;

    if (!*o->node_name)
        from = bh_console_condition(obj, "PodScheduled");
    add_str(out, "reason", bh_json_get_text(from, "reason"));
    add_str(out, "message", bh_json_get_text(from, "message"));
}

void bh_console_pod_row(struct bh_buf *out, const struct bh_sim_obj *o, const struct bh_json *obj)
{
    const struct bh_json *spec = bh_json_get(obj, "spec"), *status = bh_json_get(obj, "status");
    struct bh_console_amounts x;

    begin(out, o, obj);
    add_str(out, "phase", o->phase);
    add_str(out, "node", o->node_name);
    add_str(out, "nominated", bh_json_get_text(status, "nominatedNodeName"));
    add_i64(out, "priority", bh_json_get_i64(spec, "priority", 0));
    add_str(out, "scheduler", bh_json_get_text(spec, "schedulerName"));
    add_bool(out, "ready", condition_is_true(obj, "Ready"));
    add_bool(out, "deleting", o->deleting);
    add_bool(out, "gated", !*o->node_name && bh_console_gated(obj));
    add_reason(out, o, obj);
    add_owner(out, obj);
    bh_console_requests(obj, &x);
    add_i64(out, "cpu_milli", x.cpu_milli);
    add_i64(out, "memory_bytes", x.memory_bytes);
    add_more(out, &x);
    add_value(out, "labels", bh_json_path(obj, "metadata.labels"), "{}");
    bh_buf_addc(out, '}');
}

static void add_taints(struct bh_buf *out, const struct bh_json *spec)
{
    const char *comma = "";

    bh_buf_adds(out, ",\"taints\":[");
    bh_json_each(t, bh_json_get_list(spec, "taints")) {
        const char *key = bh_json_get_text(t, "key");
        bh_buf_addf(out, "%s{\"key\":", comma);
        bh_buf_add_json_str(out, key, strlen(key));
        add_str(out, "value", bh_json_get_text(t, "value"));
        add_str(out, "effect", bh_json_get_text(t, "effect"));
        bh_buf_addc(out, '}');
        comma = ",";
    }
    bh_buf_addc(out, ']');
}

void bh_console_node_row(struct bh_buf *out, const struct bh_sim_obj *o, const struct bh_json *obj,
                         const struct bh_console_amounts *requested)
{
    const struct bh_json *spec = bh_json_get(obj, "spec");
    const char *zone = bh_sim_obj_label(o, ZONE_LABEL);
    struct bh_console_amounts x;

    begin(out, o, obj);
    add_bool(out, "ready", condition_is_true(obj, "Ready"));
    add_bool(out, "unschedulable", bh_json_get_bool(spec, "unschedulable", false));
    add_str(out, "zone", zone ? zone : "");
    add_value(out, "labels", bh_json_path(obj, "metadata.labels"), "{}");
    add_taints(out, spec);
    bh_console_allocatable(obj, &x);
    add_amounts(out, "allocatable", &x);
    add_amounts(out, "requested", requested);
    bh_buf_addc(out, '}');
}
