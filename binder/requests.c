/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/requests.c - the writes as paths and JSON bodies
 *
 * Upstream: pkg/scheduler/framework/api_calls, client-go/tools/events; differences: the pod's uid
 * goes with every write (a re-created pod of the same name must not get an old pod's status), and a
 * deletion carries it as a precondition.
 */
#include "binder/binder.h"
#include "common/k8s/quantity.h"
#include "common/k8s/selector.h"

/* Of the pod, or of the PodGroup. */
static void item_path(struct bh_buf *path, const Berth__WorkItem *it, const char *sub)
{
    bh_buf_reset(path);
    if (it->kind == BERTH__WORK_KIND__WORK_GROUP_STATUS)
        bh_url_addf(path, "/apis/scheduling.k8s.io/%s/namespaces/%s/podgroups/%s", it->api_version,
                    it->namespace_, it->name);
    else
        bh_url_addf(path, "/api/v1/namespaces/%s/pods/%s", it->namespace_, it->name);
    bh_buf_adds(path, sub);
}

/* ---- what a binder does not do, whichever scheduler asks ------------------------------------- */

static bool is_name(const char *s)
{
    return s && bh_valid_dns1123_subdomain(s, strlen(s));
}

static bool condition_is(const Berth__WorkItem *it, const char *type)
{
    return !it->condition || bh_streq(it->condition->type, type);
}

static bool is_group_version(const char *v)
{
    return v && (bh_streq(v, "v1beta1") || bh_streq(v, "v1alpha3") || bh_streq(v, "v1alpha2"));
}

/* A group's scheduling, as v1alpha2 and as later versions call it. */
static bool is_group_condition(const char *type)
{
    return bh_streq(type, "PodGroupScheduled") || bh_streq(type, "PodGroupInitiallyScheduled");
}

static const char *group_refused(const Berth__WorkItem *it)
{
    if (!is_group_version(it->api_version))
        return "the version of the PodGroup API is none that is known";
    return it->condition && is_group_condition(it->condition->type)
               ? NULL
               : "of a PodGroup's conditions only those of its scheduling are a scheduler's";
}

const char *bh_request_refused(const Berth__WorkItem *it)
{
    const Berth__ObjectWrite *w = it->write;

    if (!is_name(it->namespace_) || !is_name(it->name))
        return "the namespace and name are not ones that a pod or PodGroup can have";
    if (!it->uid || !*it->uid)
        return "the uid is missing";
    if (it->kind == BERTH__WORK_KIND__WORK_BIND && !is_name(it->node))
        return "the node's name is not one that a node can have";
    if (it->nominated_node && *it->nominated_node && !is_name(it->nominated_node))
        return "the nominated node's name is not one that a node can have";
    if (it->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS && !condition_is(it, "PodScheduled"))
        return "of a pod's conditions only PodScheduled is a scheduler's";
    if (it->kind == BERTH__WORK_KIND__WORK_DELETE && !condition_is(it, "DisruptionTarget"))
        return "a victim's condition is DisruptionTarget";
    if (w && ((w->namespace_ && *w->namespace_ && !is_name(w->namespace_)) ||
              (w->name && *w->name && !is_name(w->name))))
        return "the object's namespace and name are not ones that it can have";
    return it->kind == BERTH__WORK_KIND__WORK_GROUP_STATUS ? group_refused(it) : NULL;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

void bh_request_bind(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it,
                     unsigned timeout_s)
{
    item_path(path, it, "/binding");
    if (timeout_s)
        bh_url_addf(path, "?timeout=%us", timeout_s);
    bh_buf_reset(body);
    bh_buf_add_json(body,
                    "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":%s,"
                    "\"namespace\":%s,\"uid\":%s},\"target\":{\"kind\":\"Node\",\"name\":%s}}",
                    it->name, it->namespace_, it->uid, it->node);
}

void bh_request_get_pod(struct bh_buf *path, const Berth__WorkItem *it)
{
    item_path(path, it, "");
}

static void add_condition(struct bh_buf *b, const Berth__WorkItem *it)
{
    const Berth__Condition *c = it->condition;
    const bool of_pod = it->kind != BERTH__WORK_KIND__WORK_GROUP_STATUS;
    char now[32];

    bh_buf_add_json(b, "\"conditions\":[{\"type\":%s,\"status\":%s,\"reason\":%s,\"message\":%s",
                    c->type, c->status, c->reason, c->message);
    if (c->observed_generation)
        bh_buf_addf(b, ",\"observedGeneration\":%lld", (long long)c->observed_generation);
    if (c->transition) {
        bh_time_format(now, bh_wall_ns() / 1000000000);
        bh_buf_addf(b, "%s,\"lastTransitionTime\":\"%s\"", of_pod ? ",\"lastProbeTime\":null" : "",
                    now);
    }
    bh_buf_adds(b, "}]");
}

void bh_request_patch_status(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it)
{
    item_path(path, it, "/status");
    bh_buf_reset(body);
    bh_buf_add_json(body, "{\"metadata\":{\"uid\":%s},\"status\":{", it->uid);
    if (it->condition)
        add_condition(body, it);
    if (it->set_nominated_node) {
        if (it->condition)
            bh_buf_addc(body, ',');
        if (it->nominated_node && *it->nominated_node)
            bh_buf_add_json(body, "\"nominatedNodeName\":%s", it->nominated_node);
        else
            bh_buf_adds(body, "\"nominatedNodeName\":null");
    }
    bh_buf_adds(body, "}}");
}

void bh_request_delete(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it)
{
    item_path(path, it, "");
    bh_buf_reset(body);
    bh_buf_add_json(
        body, "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":%s}}",
        it->uid);
}

/* A name of at most 253 bytes that ends in a letter or digit before the dot, however long the pod's
 * is. */
void bh_request_event_name(char out[static 256], const char *pod, uint64_t unique_ns)
{
    size_t n = strnlen(pod, 253 - 17);

    while (n > 0 && (pod[n - 1] == '-' || pod[n - 1] == '.'))
        n--;
    memcpy(out, pod, n);
    out[n++] = '.';
    for (int shift = (63 - __builtin_clzll(unique_ns | 1)) & ~3; shift >= 0; shift -= 4)
        out[n++] = "0123456789abcdef"[unique_ns >> shift & 15];
    out[n] = '\0';
}

static void add_related(struct bh_buf *body, const Berth__ObjectReference *r)
{
    bh_buf_add_json(body, ",\"related\":{\"kind\":%s,\"apiVersion\":%s,\"name\":%s,\"uid\":%s",
                    r->kind, r->api_version, r->name, r->uid);
    if (r->namespace_ && *r->namespace_)
        bh_buf_add_json(body, ",\"namespace\":%s", r->namespace_);
    if (r->resource_version && *r->resource_version)
        bh_buf_add_json(body, ",\"resourceVersion\":%s", r->resource_version);
    bh_buf_adds(body, "}");
}

void bh_request_event(struct bh_buf *path, struct bh_buf *body, const Berth__WorkItem *it,
                      const char *hostname, uint64_t unique_ns)
{
    const Berth__EventText *e = it->event;
    const char *controller = e->reporting_controller ? e->reporting_controller : "";
    const bool of_node = it->kind == BERTH__WORK_KIND__WORK_EVENT && it->node && *it->node;
    char now[40], name[256], instance[640];
    int64_t wall = bh_wall_ns();

    bh_request_event_name(name, it->name, unique_ns);
    snprintf(instance, sizeof(instance), "%s-%s", controller, hostname);

    bh_buf_reset(path);
    bh_url_addf(path, "/apis/events.k8s.io/v1/namespaces/%s/events", it->namespace_);
    bh_time_format_micro(now, wall / 1000000000, (int32_t)(wall % 1000000000));
    bh_buf_reset(body);
    bh_buf_add_json(
        body,
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":%s,"
        "\"namespace\":%s},\"eventTime\":%s,\"reportingController\":%s,"
        "\"reportingInstance\":%s,\"action\":%s,\"reason\":%s,\"regarding\":{\"kind\":%s,"
        "\"apiVersion\":\"v1\",\"name\":%s,\"uid\":%s",
        name, it->namespace_, now, controller, instance, e->action, e->reason,
        of_node ? "Node" : "Pod", it->name, it->uid);
    if (!of_node)
        bh_buf_add_json(body, ",\"namespace\":%s", it->namespace_);
    if (e->regarding_resource_version && *e->regarding_resource_version)
        bh_buf_add_json(body, ",\"resourceVersion\":%s", e->regarding_resource_version);
    bh_buf_adds(body, "}");
    if (e->related)
        add_related(body, e->related);
    bh_buf_add_json(body, ",\"note\":%s,\"type\":%s}", e->note, e->type);
}
