/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/generate.c - a scenario from a seed: which features, which cluster, which changes
 *
 * A round has some of the features and not others, and few nodes and names: bugs live where things
 * meet, and a small cluster makes them meet often. Everything is drawn from one generator, so the
 * seed is the scenario.
 */
#include "tests/property/generate.h"

unsigned below(struct gen *g, unsigned n)
{
    return (unsigned)bh_rand_below(&g->r, n);
}

bool chance(struct gen *g, unsigned percent)
{
    return below(g, 100) < percent;
}

const char *any(struct gen *g, const char *const *v, unsigned n)
{
    return v[below(g, n)];
}

struct bh_json *parse(struct gen *g, const char *text)
{
    char *t = bh_arena_strdup(g->a, text);
    struct bh_json *v = NULL;
    struct bh_err err;

    for (char *p = t; *p; p++)
        *p = *p == '\'' ? '"' : *p == '`' ? '\'' : *p;
    if (bh_json_parse(g->a, t, strlen(t), BH_JSON_STRICT, &v, &err) < 0) {
        fprintf(stderr, "generate: %s in %s\n", err.msg, t);
        abort();
    }
    return v;
}

const char *any_namespace(struct gen *g)
{
    return has(g, F_NAMESPACES) ? ONE(g, "default", "default", "ns1", "ns2") : "default";
}

const char *any_node(struct gen *g)
{
    return T(g, "n%u", below(g, g->n_nodes));
}

void add_op(struct gen *g, const char *text)
{
    bh_json_push(g->ops, parse(g, text));
}

void apply_tree(struct gen *g, struct bh_json *object)
{
    struct bh_json *op = parse(g, "{'op':'apply'}");

    bh_json_set(g->a, op, "object", object);
    bh_json_push(g->ops, op);
}

void apply_op(struct gen *g, const char *object)
{
    apply_tree(g, parse(g, object));
}

/* ---- changes --------------------------------------------------------------------------------- */

static void apply_pod(struct gen *g, struct gen_pod *p, const char *node, const char *meta,
                      const char *spec)
{
    p->object = parse(g, pod_text(g, p, node, meta, spec));
    apply_tree(g, bh_json_clone(g->a, p->object));
    p->gone = false;
    p->bound = node != NULL;
}

static struct gen_pod *new_pod(struct gen *g)
{
    struct gen_pod *p = &g->pods[g->n_pods];

    if (g->n_pods == BH_ARRAY_LEN(g->pods))
        return &g->pods[below(g, g->n_pods)];
    if (chance(g, 12))
        make_template(g, &g->templates[below(g, TEMPLATES)]);
    /* a template may be replaced later: this pod keeps what it was made of */
    p->t = bh_arena_memdup(g->a, &g->templates[below(g, TEMPLATES)], sizeof *p->t);
    p->uid = 0;
    p->group = some_group(g);
    p->name = T(g, "p%u", g->n_pods++);
    p->key = T(g, "%s/%s", p->t->namespace_, p->name);
    return p;
}

static void schedule_op(struct gen *g, const struct gen_pod *p)
{
    add_op(g, T(g, "{'op':'schedule','pod':'%s','then':'%s'}", p->key,
                ONE(g, "bind", "bind", "bind", "assume", "assume", "forget", "look")));
}

static void pending_pod(struct gen *g)
{
    struct gen_pod *p = new_pod(g);
    const char *gates =
        has(g, F_GATES) && chance(g, 20) ? ",'schedulingGates':[{'name':'g1'}]" : "";

    apply_pod(g, p, NULL, "", gates);
    if (chance(g, 85))
        schedule_op(g, p);
}

static void bound_pod(struct gen *g)
{
    struct gen_pod *p = new_pod(g);
    const char *meta =
        has(g, F_TERMINATING) && chance(g, 20) ? ",'deletionTimestamp':'2029-11-01T00:00:00Z'" : "";

    apply_pod(g, p, any_node(g), meta, "");
}

static void delete_op(struct gen *g, const char *kind, const char *ns, const char *name)
{
    add_op(g, T(g, "{'op':'delete','kind':'%s','namespace':'%s','name':'%s'}", kind, ns, name));
}

static void delete_pod(struct gen *g, struct gen_pod *p)
{
    delete_op(g, "Pod", p->t->namespace_, p->name);
    p->gone = true;
}

/* In place, of a running pod as well: cpu and memory, never what was not there. */
static void resize(struct gen *g, struct bh_json *spec)
{
    struct bh_json *containers = bh_json_get(spec, "containers");

    for (struct bh_json *c = containers ? containers->c.first : NULL; c; c = c->next) {
        struct bh_json *requests = bh_json_get(bh_json_get(c, "resources"), "requests");
        if (bh_json_get(requests, "cpu"))
            bh_json_set_str(g->a, requests, "cpu", ONE(g, "50m", "300m", "1", "2"));
        if (bh_json_get(requests, "memory"))
            bh_json_set_str(g->a, requests, "memory", ONE(g, "32Mi", "256Mi", "1Gi"));
    }
}

static void tolerate(struct gen *g, struct bh_json *spec)
{
    struct bh_json *list = bh_json_get(spec, "tolerations");

    if (!list)
        list = bh_json_set(g->a, spec, "tolerations", bh_json_new(g->a, BH_JSON_ARRAY));
    bh_json_push(list,
                 parse(g, ONE(g, "{'key':'a','operator':'Exists'}",
                              "{'key':'b','operator':'Equal','value':'1'}",
                              "{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}")));
}

/* What the claim controller writes. */
static void name_claims(struct gen *g, struct bh_json *object)
{
    const struct bh_json *claims = bh_json_path(object, "spec.resourceClaims");

    if (bh_json_get_str(bh_json_at(claims, 0), "resourceClaimTemplateName"))
        bh_json_set(g->a, bh_json_get(object, "status"), "resourceClaimStatuses",
                    parse(g, T(g, "[{'name':'d','resourceClaimName':'rc%u'}]", below(g, 6))));
}

/* What the API server allows to change in a pod, and a pod of the same name after it. */
static void change_pod(struct gen *g, struct gen_pod *p)
{
    struct bh_json *o = bh_json_clone(g->a, p->object), *spec = bh_json_get(o, "spec");
    struct bh_json *meta = bh_json_get(o, "metadata");

    bh_json_set_str(g->a, meta, "resourceVersion", T(g, "%u", ++g->serial));
    switch (below(g, 7)) {
    case 0:
        bh_json_set(g->a, meta, "labels",
                    parse(g, T(g, "{'app':'%s','tier':'front'}", ONE(g, "a", "b", "c"))));
        break;
    case 1:
        resize(g, spec);
        break;
    case 2:
        tolerate(g, spec);
        break;
    case 3:
        if (has(g, F_TERMINATING))
            bh_json_set_str(g->a, meta, "deletionTimestamp", "2029-11-01T00:00:00Z");
        break;
    case 4:
        name_claims(g, o);
        break;
    case 5:
        p->uid++;
        apply_pod(g, p, p->bound ? any_node(g) : NULL, "", "");
        return;
    default:
        break;
    }
    (void)bh_json_unset(spec, "schedulingGates");
    p->object = o;
    apply_tree(g, bh_json_clone(g->a, o));
}

/* Another controller's doing, or another snapshot: the pod is bound elsewhere. */
static void move_pod(struct gen *g, struct gen_pod *p)
{
    struct bh_json *o = bh_json_clone(g->a, p->object);

    bh_json_set_str(g->a, bh_json_get(o, "spec"), "nodeName", any_node(g));
    p->object = o;
    apply_tree(g, bh_json_clone(g->a, o));
}

static const char *drops(struct gen *g, const char *form, unsigned names)
{
    const char *s = "";

    for (unsigned i = below(g, 3); i > 0; i--)
        s = T(g, "%s%s'%s'", s, *s ? "," : "", T(g, form, below(g, names)));
    return s;
}

/* ---- objects other than nodes and pods ------------------------------------------------------- */

static bool is_fixed(const char *kind)
{
    static const char *const kinds[] = {"ResourceClaim",
                                        "ResourceClaimTemplate",
                                        "VolumeAttachment",
                                        "PersistentVolumeClaim",
                                        "CSIStorageCapacity",
                                        "StorageClass",
                                        "ReplicaSet",
                                        "StatefulSet",
                                        "PodGroup"};

    for (unsigned i = 0; i < BH_ARRAY_LEN(kinds); i++)
        if (bh_streq(kinds[i], kind))
            return true;
    return false;
}

static void copy_member(struct gen *g, struct bh_json *into, const struct bh_json *from,
                        const char *key)
{
    const struct bh_json *v = bh_json_get(from, key);

    if (v)
        bh_json_set(g->a, into, key, bh_json_clone(g->a, v));
}

/* The known object with what may change taken from the new one. */
static struct bh_json *changed_in_place(struct gen *g, const struct bh_json *known,
                                        const struct bh_json *neu)
{
    struct bh_json *o = bh_json_clone(g->a, known), *spec = bh_json_get(o, "spec");
    struct bh_json *meta = bh_json_get(o, "metadata");

    if (!bh_json_path(known, "status.allocation"))
        copy_member(g, o, neu, "status");
    else if (chance(g, 50)) /* an allocation can only go */
        (void)bh_json_unset(o, "status");
    copy_member(g, o, neu, "capacity");
    copy_member(g, o, neu, "allowedTopologies");
    copy_member(g, meta, bh_json_get(neu, "metadata"), "annotations");
    copy_member(g, meta, bh_json_get(neu, "metadata"), "resourceVersion");
    copy_member(g, meta, bh_json_get(neu, "metadata"), "deletionTimestamp");
    if (bh_streq(bh_json_get_str(o, "kind"), "PersistentVolumeClaim") &&
        !bh_json_get(spec, "volumeName"))
        copy_member(g, spec, bh_json_get(neu, "spec"), "volumeName");
    return o;
}

/* What the API server does not let change goes and comes back as another object. */
static void apply_other(struct gen *g, struct bh_json *o)
{
    const char *kind = bh_json_get_str(o, "kind");
    const struct bh_json *meta = bh_json_get(o, "metadata");
    const char *ns = bh_json_get_str(meta, "namespace"), *name = bh_json_get_str(meta, "name");
    const char *id = T(g, "%s %s/%s", kind, ns ? ns : "", name);
    struct bh_json *known = bh_map_get(&g->others, id, strlen(id));

    if (known && is_fixed(kind)) {
        if (chance(g, 60))
            o = changed_in_place(g, known, o);
        else
            delete_op(g, kind, ns ? ns : "", name);
    }
    bh_map_put(&g->others, id, strlen(id), o);
    apply_tree(g, bh_json_clone(g->a, o));
}

void other_op(struct gen *g, const char *text)
{
    apply_other(g, parse(g, text));
}

static void change_others(struct gen *g)
{
    static const char *const kinds[][2] = {
        {"PersistentVolume", "pv%u"},
        {"PersistentVolumeClaim", "c%u"},
        {"ResourceClaim", "rc%u"},
        {"ResourceSlice", "s-n%u-0"},
        {"Service", "s%u"},
        {"PodDisruptionBudget", "b%u"},
        {"CSINode", "n%u"},
        {"VolumeAttachment", "va%u"},
        {"CSIStorageCapacity", "cap%u"},
        {"Namespace", "ns%u"},
        {"DeviceClass", "gpu"},
        {"StorageClass", "wait"},
    };
    if (has(g, F_GROUPS) && chance(g, 25)) {
        change_groups(g);
        return;
    }
    const char *text = other_text(g);

    if (text && chance(g, 75)) {
        other_op(g, text);
        return;
    }
    unsigned k = below(g, BH_ARRAY_LEN(kinds));
    delete_op(g, kinds[k][0], k == 8 ? "default" : any_namespace(g),
              T(g, kinds[k][1], below(g, k == 9 ? 3 : 8)));
}

static struct gen_pod *some_pod(struct gen *g)
{
    for (unsigned tries = 0; g->n_pods && tries < 8; tries++) {
        struct gen_pod *p = &g->pods[below(g, g->n_pods)];
        if (!p->gone)
            return p;
    }
    return NULL;
}

static void change_node(struct gen *g)
{
    unsigned i = below(g, g->n_nodes);

    g->node_there[i] = !g->node_there[i] || !chance(g, 30);
    if (g->node_there[i])
        apply_op(g, node_text(g, i));
    else
        delete_op(g, "Node", "", T(g, "n%u", i));
}

static void with_pod(struct gen *g, struct gen_pod *p)
{
    switch (below(g, 9)) {
    case 0:
        delete_pod(g, p);
        break;
    case 1:
        change_pod(g, p);
        break;
    case 2:
        add_op(g, T(g, "{'op':'confirm','pod':'%s'}", p->key));
        break;
    case 3:
        add_op(g, T(g, "{'op':'forget','pod':'%s'}", p->key));
        break;
    case 4:
        if (has(g, F_NOMINATE))
            add_op(g, T(g, "{'op':'nominate','pod':'%s','node':'%s'}", p->key,
                        chance(g, 75) ? any_node(g) : ""));
        break;
    case 5:
        if (p->bound && chance(g, 40))
            move_pod(g, p);
        break;
    default:
        schedule_op(g, p);
        break;
    }
}

static void change(struct gen *g)
{
    struct gen_pod *p = some_pod(g);
    unsigned what = below(g, 100);

    if (what < 14)
        change_node(g);
    else if (what < 44 && p)
        with_pod(g, p);
    else if (what < 50)
        bound_pod(g);
    else if (what < 62)
        change_others(g);
    else if (what < 64)
        add_op(g, T(g, "{'op':'rebuild','drop':[%s]}",
                    chance(g, 50) ? drops(g, "Node n%u", g->n_nodes)
                                  : drops(g, "Pod default/p%u", g->n_pods + 1)));
    else if (what < 65)
        add_op(g,
               T(g, "{'op':'feed','drop':[%s]}", drops(g, "PersistentVolumeClaim default/c%u", 8)));
    else if (what < 69)
        add_op(g, "{'op':'check'}");
    else
        pending_pod(g);
}

/* ---- entry ----------------------------------------------------------------------------------- */

static uint32_t some_features(struct gen *g, const struct generate_options *o)
{
    uint32_t on = 0;
    unsigned percent = 20 + below(g, 60);

    if (o->exact)
        return o->features;
    for (uint32_t f = 1; f <= F_CROWDED; f <<= 1)
        if (chance(g, f == F_SAMPLING || f == F_CROWDED ? 6
                      : f == F_ODD || f == F_DEVICES    ? percent / 2
                                                        : percent))
            on |= f;
    struct bh_rand r; /* came later: what a seed was before, it is without groups still */
    bh_rand_seed(&r, ~o->seed);
    if (bh_rand_below(&r, 100) < 20)
        on |= F_GROUPS;
    return o->features ? on & o->features : on;
}

struct bh_json *generate(struct bh_arena *a, const struct generate_options *o)
{
    struct gen *g = bh_calloc(1, sizeof *g);
    struct bh_json *s = bh_json_new(a, BH_JSON_OBJECT);

    g->a = a;
    bh_rand_seed(&g->r, o->seed);
    g->on = some_features(g, o);
    g->n_nodes = o->nodes ? o->nodes : 1 + below(g, chance(g, 15) ? 40 : 10);
    g->n_nodes = BH_MIN(g->n_nodes, (unsigned)BH_ARRAY_LEN(g->node_there));
    g->n_profiles = has(g, F_PROFILES) ? 1 + below(g, 3) : 1;
    g->ops = bh_json_new(a, BH_JSON_ARRAY);
    for (unsigned i = 0; i < TEMPLATES; i++)
        make_template(g, &g->templates[i]);
    bh_json_set(a, s, "seed", bh_json_new_cstr(a, T(g, "%llu", (unsigned long long)o->seed)));
    bh_json_set_i64(a, s, "features", g->on);
    bh_json_set_bool(a, s, "rebuilt", chance(g, 60));
    bh_json_set_bool(a, s, "first", chance(g, 80));
    if (has(g, F_GROUPS))
        bh_json_set(a, s, "gates", bh_json_new_cstr(a, gates_text(g)));
    const char *config = config_text(g);
    if (config)
        bh_json_set(a, s, "config", parse(g, config));
    for (unsigned i = 0; i < g->n_nodes; i++) {
        g->node_there[i] = chance(g, 85);
        if (g->node_there[i])
            apply_op(g, node_text(g, i));
    }
    starting_objects(g);
    for (unsigned i = has(g, F_GROUPS) ? 4 : 0; i > 0; i--)
        change_groups(g);
    for (unsigned i = below(g, 3 * g->n_nodes) + (has(g, F_CROWDED) ? 3 * g->n_nodes : 0); i > 0;
         i--)
        bound_pod(g);
    for (unsigned i = o->ops ? o->ops : 30 + below(g, 90); i > 0; i--)
        change(g);
    add_op(g, "{'op':'check'}");
    bh_json_set(a, s, "ops", g->ops);
    bh_map_fini(&g->others);
    free(g);
    return s;
}
