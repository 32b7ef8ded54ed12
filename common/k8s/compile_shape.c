/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_shape.c - what all pods of one template share
 *
 * Arrays are appended in the order of record.h (record_layout.h says why), so the order of the
 * calls in bh_compile_shape() is part of the format.
 * Upstream: pkg/scheduler/framework/types.go (PodInfo.Update), plugins/imagelocality,
 * plugins/nodeports.
 */
#include <errno.h>

#include "common/k8s/compile_priv.h"

static uint32_t toleration_op(const char *s)
{
    int op = bh_word_at("Equal Exists Lt Gt", *s ? s : "Equal");

    return op < 0 ? BH_TOL_OTHER : (uint32_t)op;
}

static size_t count_ports(const K8s__Container *k)
{
    size_t n = 0;

    for (size_t i = 0; i < k->n_ports; i++)
        n += k->ports[i]->hostport > 0;
    return n;
}

static struct bh_host_port *add_ports(struct bh_compiler *c, const K8s__Container *k,
                                      struct bh_host_port *out)
{
    for (size_t i = 0; i < k->n_ports; i++) {
        const K8s__ContainerPort *p = k->ports[i];
        if (p->hostport <= 0)
            continue;
        *out++ =
            (struct bh_host_port){.ip = bh_compile_sym(c, *p->hostip ? p->hostip : "0.0.0.0"),
                                  .protocol = bh_compile_sym(c, *p->protocol ? p->protocol : "TCP"),
                                  .port = p->hostport};
    }
    return out;
}

static struct bh_slice put_host_ports(struct bh_compiler *c, const K8s__PodSpec *spec)
{
    struct bh_slice s;
    size_t n = 0;

    for (size_t i = 0; i < spec->n_initcontainers; i++)
        n += bh_is_sidecar(spec->initcontainers[i]) ? count_ports(spec->initcontainers[i]) : 0;
    for (size_t i = 0; i < spec->n_containers; i++)
        n += count_ports(spec->containers[i]);
    struct bh_host_port *out = bh_rec_room(&c->b, n, sizeof(*out), &s);
    for (size_t i = 0; out && i < spec->n_initcontainers; i++)
        out = bh_is_sidecar(spec->initcontainers[i]) ? add_ports(c, spec->initcontainers[i], out)
                                                     : out;
    for (size_t i = 0; out && i < spec->n_containers; i++)
        out = add_ports(c, spec->containers[i], out);
    return s;
}

/* An image without tag or digest means ":latest"; nothing else is expanded. */
static bh_sym image_sym(struct bh_compiler *c, const char *name)
{
    const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');

    if (colon && (!slash || colon > slash))
        return bh_compile_sym(c, name);
    char *full = bh_arena_printf(c->a, "%s:latest", name);
    c->b.failed |= !full;
    return bh_compile_sym(c, full);
}

static struct bh_slice put_images(struct bh_compiler *c, const K8s__PodSpec *spec)
{
    struct bh_slice s;
    size_t n = spec->n_initcontainers + spec->n_containers;

    for (size_t i = 0; i < spec->n_volumes; i++)
        n += spec->volumes[i]->volumesource && spec->volumes[i]->volumesource->image;
    bh_sym *out = bh_rec_room(&c->b, n, sizeof(*out), &s);
    for (size_t i = 0; out && i < spec->n_initcontainers; i++)
        *out++ = image_sym(c, spec->initcontainers[i]->image);
    for (size_t i = 0; out && i < spec->n_containers; i++)
        *out++ = image_sym(c, spec->containers[i]->image);
    for (size_t i = 0; out && i < spec->n_volumes; i++) {
        const K8s__VolumeSource *v = spec->volumes[i]->volumesource;
        if (v && v->image)
            *out++ = image_sym(c, v->image->reference);
    }
    return s;
}

static struct bh_slice put_gates(struct bh_compiler *c, const K8s__PodSpec *spec)
{
    struct bh_slice s;
    bh_sym *out = bh_rec_room(&c->b, spec->n_schedulinggates, sizeof(*out), &s);

    for (size_t i = 0; out && i < spec->n_schedulinggates; i++)
        out[i] = bh_compile_sym(c, spec->schedulinggates[i]->name);
    return s;
}

/* ---- flags ---- */
static bool restarts_all(K8s__Container *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < list[i]->n_restartpolicyrules; j++)
            if (bh_streq(list[i]->restartpolicyrules[j]->action, "RestartAllContainers"))
                return true;
    }
    return false;
}

/* A volume that the volume plugins look at: its source is none of the seven local ones. */
static bool uses_volumes(const K8s__PodSpec *spec)
{
    for (size_t i = 0; i < spec->n_volumes; i++) {
        const K8s__VolumeSource *v = spec->volumes[i]->volumesource;
        if (!v || v->configmap || v->secret || v->emptydir || v->downwardapi || v->projected ||
            v->hostpath || v->image)
            continue;
        for (unsigned j = 0; j < v->base.descriptor->n_fields; j++)
            if (*(void *const *)((const char *)v + v->base.descriptor->fields[j].offset))
                return true;
    }
    return false;
}

static uint32_t spec_flags(const K8s__PodSpec *s)
{
    const K8s__PodAffinity *in = s->affinity ? s->affinity->podaffinity : NULL;
    const K8s__PodAntiAffinity *anti = s->affinity ? s->affinity->podantiaffinity : NULL;
    bool used = (in && (in->n_requiredduringschedulingignoredduringexecution ||
                        in->n_preferredduringschedulingignoredduringexecution)) ||
                (anti && (anti->n_requiredduringschedulingignoredduringexecution ||
                          anti->n_preferredduringschedulingignoredduringexecution));
    uint32_t f = (in || anti ? BH_SHAPE_HAS_POD_AFFINITY_OBJECT : 0) |
                 (used ? BH_SHAPE_USES_POD_AFFINITY : 0);

    f |= s->n_nodeselector ? BH_SHAPE_HAS_NODE_SELECTOR : 0;
    f |= s->preemptionpolicy && bh_streq(s->preemptionpolicy, "Never") ? BH_SHAPE_NEVER_PREEMPT : 0;
    f |= s->hostnetwork ? BH_SHAPE_HOST_NETWORK : 0;
    f |= s->has_hostusers && !s->hostusers ? BH_SHAPE_HOST_USERS_FALSE : 0;
    f |= s->n_topologyspreadconstraints ? BH_SHAPE_USES_SPREAD : 0;
    f |= s->n_resourceclaims ? BH_SHAPE_USES_CLAIMS : 0;
    f |= uses_volumes(s) ? BH_SHAPE_USES_VOLUMES : 0;
    if (restarts_all(s->containers, s->n_containers) ||
        restarts_all(s->initcontainers, s->n_initcontainers))
        f |= BH_SHAPE_RESTART_ALL_CONTAINERS;
    return f;
}

/* The owner that says `controller: true`; its name when its kind is one whose selector counts. */
static void put_owner(struct bh_compiler *c, const K8s__ObjectMeta *m, struct bh_shape_rec *r)
{
    static const struct {
        const char *version, *kind;
    } known[] = {
        [BH_OWNER_REPLICATIONCONTROLLER] = {"v1", "ReplicationController"},
        [BH_OWNER_REPLICASET] = {"apps/v1", "ReplicaSet"},
        [BH_OWNER_STATEFULSET] = {"apps/v1", "StatefulSet"},
        [BH_OWNER_DAEMONSET] = {"apps/v1", "DaemonSet"},
        [BH_OWNER_NODE] = {"v1", "Node"},
    };
    size_t i = 0;

    while (i < m->n_ownerreferences &&
           !(m->ownerreferences[i]->has_controller && m->ownerreferences[i]->controller))
        i++;
    r->owner_kind = i == m->n_ownerreferences ? BH_OWNER_NONE : BH_OWNER_OTHER;
    if (i == m->n_ownerreferences)
        return;
    const K8s__OwnerReference *o = m->ownerreferences[i];
    for (unsigned k = BH_OWNER_REPLICATIONCONTROLLER; k < BH_ARRAY_LEN(known); k++) {
        if (bh_streq(o->apiversion, known[k].version) && bh_streq(o->kind, known[k].kind)) {
            r->owner_kind = k;
            if (k <= BH_OWNER_STATEFULSET)
                r->owner = bh_compile_sym(c, o->name);
        }
    }
}

static int put_arrays(struct bh_compiler *c, const K8s__Pod *p)
{
    const K8s__ObjectMeta *m = p->metadata;
    struct bh_slice labels, selector;

    struct bh_pod_amounts amounts;
    bh_compile_requests(c, p, &amounts);
    if (c->rc)
        return c->rc;
    const K8s__PodSpec *spec = p->spec;
    struct bh_slice tolerations;
    struct bh_toleration *out = bh_rec_room(&c->b, spec->n_tolerations, sizeof(*out), &tolerations);
    for (size_t i = 0; out && i < spec->n_tolerations; i++) {
        const K8s__Toleration *t = spec->tolerations[i];
        out[i] = (struct bh_toleration){.key = bh_compile_sym(c, t->key),
                                        .value = bh_compile_sym(c, t->value),
                                        .op = toleration_op(t->operator_),
                                        .effect = bh_compile_effect(t->effect)};
    }
    int rc = bh_compile_map(c, p->spec->nodeselector, p->spec->n_nodeselector, &selector);
    if (rc)
        return rc;
    bh_compile_affinity(c, p->spec->affinity ? p->spec->affinity->nodeaffinity : NULL);
    struct bh_slice ports = put_host_ports(c, p->spec);
    struct bh_slice gates = put_gates(c, p->spec);
    bh_compile_pod_terms(c, p);
    struct bh_slice volumes = {0, 0};
    rc = bh_compile_volumes(c, p->spec, &volumes);
    if (rc)
        return rc;
    struct bh_slice claims = {0, 0}, extended = {0, 0};
    rc = bh_compile_claims(c, p->spec, &claims, &extended);
    if (rc)
        return rc;
    struct bh_slice containers = {0, 0}, overhead = {0, 0};
    rc = bh_compile_containers(c, p, &amounts, &containers, &overhead);
    if (rc)
        return rc;
    /* Last, so that nothing else depends on their lengths: bh_shape_essence(). */
    rc = bh_compile_map(c, m->labels, m->n_labels, &labels);
    if (rc)
        return rc;
    struct bh_slice images = put_images(c, p->spec);
    if (c->b.failed)
        return 0; /* bh_compile_end reports it */
    struct bh_shape_rec *r = bh_shape_of(c);
    r->labels = labels;
    r->tolerations = tolerations;
    r->node_selector = selector;
    r->host_ports = ports;
    r->images = images;
    r->gates = gates;
    r->volumes = volumes;
    r->claims = claims;
    r->extended = extended;
    r->containers = containers;
    r->overhead = overhead;
    return 0;
}

int bh_compile_shape(struct bh_arena *a, const K8s__Pod *p, const struct bh_interner *in,
                     struct bh_shape_rec **ret, struct bh_err *err)
{
    static const K8s__PodSpec no_spec = K8S__POD_SPEC__INIT;
    struct bh_compiler c = {.a = a, .in = in, .err = err};
    K8s__Pod pod = *p;

    if (!p->metadata || !*p->metadata->name)
        return bh_err_set(err, -EINVAL, "pod: metadata.name is empty");
    if (!pod.spec)
        pod.spec = (K8s__PodSpec *)&no_spec; /* only read */
    bh_rec_begin(&c.b, a, BH_REC_SHAPE, sizeof(struct bh_shape_rec));
    int rc = put_arrays(&c, &pod);
    if (rc)
        return rc;
    if (!c.b.failed) {
        struct bh_shape_rec *r = bh_shape_of(&c);
        r->namespace_ = bh_compile_sym(&c, p->metadata->namespace_);
        r->scheduler_name = bh_compile_sym(&c, pod.spec->schedulername);
        r->priority = pod.spec->priority;
        r->flags |= spec_flags(pod.spec);
        r->image_containers =
            (int32_t)BH_MIN(pod.spec->n_initcontainers + pod.spec->n_containers, (size_t)INT32_MAX);
        put_owner(&c, p->metadata, r);
    }
    return bh_compile_end(&c, "pod", NULL, 0, ret);
}
