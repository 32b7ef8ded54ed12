/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/service.c - EndpointSlices and Endpoints: the pods behind each service
 *
 * A namespace with services is looked at together, at most every 100 ms while its pods change.
 * Endpoints stay in the slice they are in; new ones go where there is room.
 * Upstream: pkg/controller/endpointslice, staging/src/k8s.io/endpointslice, pkg/controller/endpoint
 * (v1.36); differences: no topology hints, no last-change annotation, IPv4 only, Endpoints that
 * people write are not mirrored into slices.
 */
#include "simulator/controllers/controllers.h"

#define DELAY_NS     100000000 /* looking is linear in the pods of a namespace */
#define SLICE_MAX    100       /* --max-endpoints-per-slice */
#define OBJECT_MAX   1000      /* Endpoints have no more addresses */
#define SERVICE_NAME "kubernetes.io/service-name"
#define HEADLESS     "service.kubernetes.io/headless"

struct backend {
    struct bh_sim_obj *pod;
    struct bh_json *ports; /* as slices have them; the same tree for pods that share it */
    bool ready, taken;     /* taken: it is in a slice already */
};
struct service {
    struct bh_sim_controllers *c;
    const struct bh_sim_obj *obj;
    const struct bh_json *tree;
    struct backend *v; /* in order of pods' names */
    size_t n;
    bool headless, publish; /* publish: addresses of pods that are not ready, too */
};
struct slice {
    const struct service *s;
    struct bh_json *ports, *endpoints;
};

void bh_ctl_service_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                           const struct bh_sim_obj *obj)
{
    const char *of;

    if (obj->type == c->t.pods) {
        if (*obj->node_name && !bh_map_put(&c->served, obj->ns, strlen(obj->ns), c))
            bh_ctl_enqueue_after(c, BH_CTL_SERVICE, obj->ns, "", bh_ctl_delay(c, DELAY_NS));
    } else if (obj->type == c->t.services) {
        bh_ctl_again(c, BH_CTL_SERVICE, obj, 0);
    } else if (change == BH_SIM_DELETED && obj->type == c->t.endpoints) {
        bh_ctl_again(c, BH_CTL_SERVICE, obj, 0);
    } else if (change == BH_SIM_DELETED && obj->type == c->t.slices &&
               (of = bh_sim_obj_label(obj, SERVICE_NAME))) {
        bh_ctl_enqueue(c, BH_CTL_SERVICE, obj->ns, of);
    }
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* The number behind a name among the ports of the pod's containers, 0 = none. */
static int64_t named_port(const struct bh_json *pod, const char *name, const char *protocol)
{
    bh_json_each(container, bh_tree_arr(pod, "spec.containers"))
        bh_json_each(p, bh_tree_arr(container, "ports"))
            if (bh_tree_is(p, "name", name) && bh_tree_is(p, "protocol", protocol))
                return bh_tree_i64(p, "containerPort", 0);
    return 0;
}

/* The service's ports at pod; *ret_shared: they are the same at every pod. */
static struct bh_json *ports_at(const struct service *s, const struct bh_sim_obj *pod,
                                bool *ret_shared)
{
    struct bh_arena *a = &s->c->arena;
    struct bh_json *ports = bh_json_new(a, BH_JSON_ARRAY), *tree = NULL;

    *ret_shared = true;
    bh_json_each(p, bh_tree_arr(s->tree, "spec.ports")) {
        const char *text = bh_tree_str(p, "targetPort"), *name = bh_tree_str(p, "name");
        const char *protocol = bh_tree_str(p, "protocol");
        int64_t number = bh_tree_i64(p, "targetPort", 0);
        if (text) {
            tree = tree ? tree : bh_sim_obj_tree(a, pod);
            number = named_port(tree, text, protocol);
            *ret_shared = false;
        }
        if (number)
            bh_json_append(a, ports, "name: %s, protocol: %s, port: %ld, appProtocol?: %s",
                           name ? name : "", protocol, number, bh_tree_str(p, "appProtocol"));
    }
    return ports;
}

/* Pods that the selector matches, with an address, not finished. Borrowed from all. */
static void find_backends(struct service *s, const struct bh_sim_objs *all)
{
    const struct bh_json *labels = bh_tree_obj(s->tree, "spec.selector");
    struct bh_json *ports = NULL;
    bool shared = false;

    s->v = bh_arena_new_array(&s->c->arena, struct backend, all->n + 1);
    for (size_t i = 0; i < all->n; i++) {
        struct bh_sim_obj *p = all->v[i];
        bool match = !bh_ctl_pod_finished(p);
        bh_json_each(m, labels) {
            const char *value = match ? bh_sim_obj_label(p, m->key.p) : NULL;
            match = value && bh_streq(value, bh_json_cstr(m));
        }
        if (!match || !strstr(p->json, "\"podIP\":\""))
            continue;
        if (!shared)
            ports = ports_at(s, p, &shared);
        s->v[s->n++] = (struct backend){.pod = p, .ports = ports, .ready = bh_ctl_pod_ready(p)};
    }
}

static const char *ip_of(struct bh_arena *a, const struct bh_sim_obj *pod)
{
    static const char key[] = "\"podIP\":\"";
    const char *at = strstr(pod->json, key) + sizeof(key) - 1;

    return bh_arena_strndup(a, at, strcspn(at, "\""));
}

/* The pod's own name below the service's, when it asked for one. */
static const char *hostname_of(const struct service *s, struct bh_arena *a,
                               const struct bh_sim_obj *pod)
{
    if (!strstr(pod->json, "\"subdomain\":\""))
        return NULL;
    const struct bh_json *tree = bh_sim_obj_tree(a, pod);
    return bh_tree_is(tree, "spec.subdomain", s->obj->name) ? bh_tree_str(tree, "spec.hostname")
                                                            : NULL;
}

static struct bh_json *target_of(struct bh_arena *a, const struct bh_sim_obj *pod)
{
    return bh_json_make(a, "kind: Pod, namespace: %s, name: %s, uid: %s", pod->ns, pod->name,
                        pod->uid);
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void add_endpoint(const struct service *s, struct slice *to, struct backend *b)
{
    struct bh_arena *a = &s->c->arena;
    const struct bh_sim_obj *pod = b->pod;
    const struct bh_sim_obj *node = bh_sim_get(s->c->sim, s->c->t.nodes, "", pod->node_name);

    b->taken = true;
    bh_json_append(a, to->endpoints,
                   "addresses: [%s], conditions: {ready: %i, serving: %i, terminating: %i}, "
                   "hostname?: %s, nodeName: %s, targetRef: %p, zone?: %s",
                   ip_of(a, pod), s->publish || (b->ready && !pod->deleting), b->ready,
                   pod->deleting, hostname_of(s, a, pod), pod->node_name, target_of(a, pod),
                   node ? bh_sim_obj_label(node, "topology.kubernetes.io/zone") : NULL);
}

/* The service's labels and the controller's own. */
static void set_labels(const struct service *s, struct bh_arena *a, struct bh_json *o,
                       const char *key, const char *manager)
{
    struct bh_json *labels = bh_json_make(a, "%s: %s", key, manager);

    bh_json_each(m, bh_tree_obj(s->tree, "metadata.labels"))
        if (!bh_json_get(labels, m->key.p) && !bh_streq(m->key.p, SERVICE_NAME) &&
            !bh_streq(m->key.p, HEADLESS))
            bh_json_set(a, labels, m->key.p, bh_json_clone(a, m));
    if (s->headless)
        bh_json_set_str(a, labels, HEADLESS, "");
    bh_json_add(a, o, "metadata: {labels: %p}", labels);
}

static bool write_slice(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct slice *l = arg;

    set_labels(l->s, a, o, "endpointslice.kubernetes.io/managed-by",
               "endpointslice-controller.k8s.io");
    bh_json_add(a, o,
                "metadata: {labels: {" SERVICE_NAME ": %s}}, addressType: IPv4, endpoints: %p, "
                "ports: %p",
                l->s->obj->name, bh_json_clone(a, l->endpoints), bh_json_clone(a, l->ports));
    return true;
}

static void create_slice(const struct service *s, struct slice *l)
{
    struct bh_arena *a = &s->c->pod_arena;
    struct bh_json *o =
        bh_json_make(a, "metadata: {generateName: %s}", bh_arena_printf(a, "%s-", s->obj->name));

    bh_ctl_own(a, bh_json_get(o, "metadata"), s->obj);
    write_slice(l, a, o);
    if (bh_sim_create(s->c->sim, s->c->t.slices, s->obj->ns, a, o, NULL, NULL))
        bh_ctl_again(s->c, BH_CTL_SERVICE, s->obj, BH_CTL_RETRY_NS);
    bh_arena_reset(a);
}

/* A slice goes on with those of its pods that are still behind the service, at the same ports. */
static void keep_endpoints(const struct service *s, struct slice *l, const struct bh_json *tree,
                           const struct bh_map *by_uid)
{
    *l = (struct slice){s, bh_tree_arr(tree, "ports"), bh_json_new(&s->c->arena, BH_JSON_ARRAY)};
    bh_json_each(e, bh_tree_arr(tree, "endpoints")) {
        const char *uid = bh_tree_str(e, "targetRef.uid");
        struct backend *b = uid ? bh_map_get(by_uid, uid, strlen(uid)) : NULL;
        if (b && !b->taken && bh_json_equal(b->ports, l->ports))
            add_endpoint(s, l, b);
    }
}

static void sync_slices(struct service *s)
{
    struct bh_sim_controllers *c = s->c;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs old = bh_sim_owned(c->sim, s->obj->uid, c->t.slices);
    BH_CLEANUP(bh_map_fini) struct bh_map by_uid = {0};
    struct slice *l = bh_arena_new_array(&c->arena, struct slice, old.n + s->n + 1);
    size_t n = old.n, at = 0;

    for (size_t i = 0; i < s->n; i++)
        bh_map_put(&by_uid, s->v[i].pod->uid, strlen(s->v[i].pod->uid), &s->v[i]);
    for (size_t i = 0; i < old.n; i++)
        keep_endpoints(s, &l[i], bh_sim_obj_tree(&c->arena, old.v[i]), &by_uid);
    for (size_t i = 0; i < s->n; i++) {
        struct backend *b = &s->v[i];
        if (b->taken)
            continue;
        /* The place of the last one, or the first that takes it. */
        for (size_t k = at; k < n; k++, at = k)
            if (bh_tree_len(l[k].endpoints) < SLICE_MAX && bh_json_equal(l[k].ports, b->ports))
                break;
        if (at == n)
            l[n++] = (struct slice){s, b->ports, bh_json_new(&c->arena, BH_JSON_ARRAY)};
        add_endpoint(s, &l[at], b);
        if (i + 1 < s->n && s->v[i + 1].ports != b->ports)
            at = 0;
    }
    for (size_t i = 0; i < old.n; i++) {
        if (bh_tree_len(l[i].endpoints) || (!s->n && i == 0))
            bh_ctl_edit(c, old.v[i], BH_SIM_MAIN, write_slice, &l[i]);
        else
            bh_ctl_delete(c, old.v[i]);
    }
    if (!n) /* a service without pods has an empty slice */
        l[n++] = (struct slice){s, NULL, bh_json_new(&c->arena, BH_JSON_ARRAY)};
    for (size_t i = old.n; i < n; i++)
        create_slice(s, &l[i]);
}

/* ---- Endpoints ------------------------------------------------------------------------------- */

static struct bh_json *object_ports(struct bh_arena *a, const struct bh_json *ports)
{
    struct bh_json *ret = bh_json_clone(a, ports);

    bh_json_each(p, ret)
        if (bh_tree_is(p, "name", ""))
            bh_json_unset(p, "name");
    return ret;
}

static struct bh_json *unless_empty(struct bh_json *list)
{
    return list->c.n ? list : NULL;
}

/* The addresses of the pods that have the ports of s->v[from], as a subset. */
static void add_subset(const struct service *s, struct bh_arena *a, struct bh_json *subsets,
                       size_t from, size_t *left)
{
    struct bh_json *lists[] = {bh_json_new(a, BH_JSON_ARRAY), bh_json_new(a, BH_JSON_ARRAY)};

    for (size_t i = from; i < s->n && *left; i++) {
        struct backend *b = &s->v[i];
        if (b->taken || (b->pod->deleting && !s->publish) ||
            !bh_json_equal(b->ports, s->v[from].ports))
            continue;
        b->taken = true;
        --*left;
        bh_json_append(a, lists[!(b->ready || s->publish)],
                       "ip: %s, hostname?: %s, nodeName: %s, targetRef: %p", ip_of(a, b->pod),
                       hostname_of(s, a, b->pod), b->pod->node_name, target_of(a, b->pod));
    }
    if (lists[0]->c.n || lists[1]->c.n)
        bh_json_append(a, subsets, "addresses?: %p, notReadyAddresses?: %p, ports?: %p",
                       unless_empty(lists[0]), unless_empty(lists[1]),
                       unless_empty(object_ports(a, s->v[from].ports)));
}

static bool write_endpoints(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct service *s = arg;
    struct bh_json *subsets = bh_json_new(a, BH_JSON_ARRAY);
    size_t left = OBJECT_MAX;

    for (size_t i = 0; i < s->n; i++)
        s->v[i].taken = false;
    for (size_t i = 0; i < s->n && left; i++)
        if (!s->v[i].taken)
            add_subset(s, a, subsets, i, &left);
    set_labels(s, a, o, "endpoints.kubernetes.io/managed-by", "endpoint-controller");
    bh_json_add(a, o, "subsets?: %p", unless_empty(subsets));
    return true;
}

static void sync_endpoints(const struct service *s)
{
    struct bh_sim_controllers *c = s->c;
    const struct bh_sim_obj *o = bh_sim_get(c->sim, c->t.endpoints, s->obj->ns, s->obj->name);
    struct bh_arena *a = &c->pod_arena;

    if (o) {
        bh_ctl_edit(c, o, BH_SIM_MAIN, write_endpoints, s);
        return;
    }
    struct bh_json *new = bh_json_make(a, "metadata: {name: %s}", s->obj->name);
    write_endpoints((void *)(uintptr_t)s, a, new);
    if (bh_sim_create(c->sim, c->t.endpoints, s->obj->ns, a, new, NULL, NULL))
        bh_ctl_again(c, BH_CTL_SERVICE, s->obj, BH_CTL_RETRY_NS);
    bh_arena_reset(a);
}

/* ---- sync ------------------------------------------------------------------------------------ */

/* pods: of the namespace, listed when the first service asks for them. */
static void sync_service(struct bh_sim_controllers *c, const struct bh_sim_obj *obj,
                         struct bh_sim_objs *pods)
{
    struct service s = {.c = c, .obj = obj, .tree = bh_sim_obj_tree(&c->arena, obj)};

    /* Without a selector others say what is behind it. */
    if (obj->deleting || bh_tree_is(s.tree, "spec.type", "ExternalName") ||
        !bh_tree_len(bh_tree_obj(s.tree, "spec.selector")))
        return;
    s.headless = bh_tree_is(s.tree, "spec.clusterIP", "None");
    s.publish = bh_tree_bool(s.tree, "spec.publishNotReadyAddresses", false);
    if (!pods->n)
        bh_sim_list(c->sim, c->t.pods, obj->ns, pods);
    find_backends(&s, pods);
    sync_slices(&s);
    sync_endpoints(&s);
}

void bh_ctl_sync_service(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, c->t.services, ns);
    const struct bh_sim_obj *o;

    if (!*name)
        bh_map_del(&c->served, ns, strlen(ns));
    else if (!bh_sim_get(c->sim, c->t.services, ns, name) &&
             (o = bh_sim_get(c->sim, c->t.endpoints, ns, name)))
        bh_ctl_delete(c, o);
    if (!l.n)
        return;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs pods = {0};
    for (size_t i = 0; i < l.n; i++) {
        struct bh_arena_mark mark = bh_arena_mark(&c->arena);
        if (!*name || bh_streq(l.v[i]->name, name))
            sync_service(c, l.v[i], &pods);
        bh_arena_rewind(&c->arena, mark);
    }
}
