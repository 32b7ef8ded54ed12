/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/load.c - pods of every kind come and go meanwhile, nodes too
 *
 * The shapes of tests/faults/load.py, written into the store as a client's requests would be.
 */
#include "simulator/server/sim.h"
#include "simulator/server/tree.h"
#include "tests/simulation/simulation.h"

#include <stdarg.h>
#include <stdio.h>

#define MAX_NODES    12
#define NAMES        400
#define LOCAL_DISKS  3
#define NODE_MILLI   4000u
#define COSCHEDULING "scheduling.x-k8s.io/pod-group"
#define GROUPS       3

int plan_pods = -1;
static struct {
    unsigned n_nodes, usual, serial, disks, n_pods, max_pods, slots, n_gated, n_steps;
    bool node[MAX_NODES];
    char pod[NAMES][12], gated[NAMES][12];
} load;

/* ---- requests -------------------------------------------------------------------------------- */

static int create(const char *group, const char *version, const char *plural, const char *ns,
                  const char *fmt, ...) BH_PRINTF(5, 6);

/* fmt: with ' for ". */
static int create(const char *group, const char *version, const char *plural, const char *ns,
                  const char *fmt, ...)
{
    struct bh_arena a;
    struct bh_json *v;
    struct bh_sim_error e;
    struct bh_err err = {""};
    char text[4096];
    va_list ap;
    int rc;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    bh_arena_init(&a, 0);
    bh_sim_error_init(&e);
    if (bh_json_parse(&a, text, strlen(text), 0, &v, &err) < 0) {
        fail("load: %s in %s", err.msg, text);
        rc = 400;
    } else {
        rc = bh_sim_create(server, bh_sim_find_type(server, group, version, plural), ns, &a, v,
                           NULL, &e);
    }
    if (rc && rc != 409)
        fail("load: %s in %s", e.message, text);
    bh_arena_fini(&a);
    return rc;
}

static void delete (const char *group, const char *plural, const char *ns, const char *name,
                    int64_t grace)
{
    const struct bh_sim_delete_options o = {.grace_s = grace};

    (void)bh_sim_delete(server, bh_sim_type_find(group, "v1", plural), ns, name, &o, NULL);
}

static bool merge(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    struct bh_json *patch = NULL;
    struct bh_err err = {""};

    if (bh_json_parse(a, arg, strlen(arg), 0, &patch, &err) < 0)
        return false;
    struct bh_json *spec = bh_json_obj_at(a, obj, "spec"), *m = patch->c.first, *next;
    for (; m; m = next) {
        next = m->next;
        if (m->type == BH_JSON_NULL)
            (void)bh_json_unset(spec, m->key.p);
        else
            bh_json_set(a, spec, m->key.p, bh_json_clone(a, m));
    }
    return true;
}

static void edit_spec(const char *group, const char *plural, const char *ns, const char *name,
                      const char *json)
{
    (void)bh_sim_edit(server, bh_sim_type_find(group, "v1", plural), ns, name, NULL, BH_SIM_MAIN,
                      merge, (void *)json, NULL, NULL);
}

void load_take_lease(void)
{
    edit_spec("coordination.k8s.io", "leases", "kube-system", "kube-scheduler",
              "{\"holderIdentity\":\"somebody else\"}");
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void add_node(unsigned i)
{
    create("storage.k8s.io", "v1", "csinodes", "",
           "{'apiVersion':'storage.k8s.io/v1','kind':'CSINode','metadata':{'name':'n%u'},'spec':{"
           "'drivers':[{'name':'made.berth.example.com','nodeID':'n%u','topologyKeys':[],"
           "'allocatable':{'count':2}}]}}",
           i, i);
    create("", "v1", "nodes", "",
           "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n%u','labels':{"
           "'kubernetes.io/hostname':'n%u','topology.kubernetes.io/zone':'z%u','pool':'p%u'}},"
           "'spec':{%s},'status':{'capacity':{'cpu':'4','memory':'8Gi','pods':'%u',"
           "'example.com/thing':'2'},'allocatable':{'cpu':'4','memory':'8Gi','pods':'%u',"
           "'example.com/thing':'2'}}}",
           i, i, i % 3, i % 2,
           i % 7 == 6 ? "'taints':[{'key':'dedicated','value':'x','effect':'NoSchedule'}]" : "",
           load.slots, load.slots);
    if (i % 3 == 0)
        create("resource.k8s.io", "v1", "resourceslices", "",
               "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':"
               "'n%u-gpu'},'spec':{'driver':'gpu.example.com','nodeName':'n%u','pool':{'name':'n%u'"
               ",'generation':1,'resourceSliceCount':1},'devices':[{'name':'d0'},{'name':'d1'}]}}",
               i, i, i);
    load.node[i] = true;
    load.n_nodes++;
}

static unsigned some_node(void)
{
    for (;;) {
        unsigned i = (unsigned)draw(DRAW_LOAD, MAX_NODES);
        if (load.node[i])
            return i;
    }
}

/* The node, then its pods, as a cloud and the garbage collector do. */
static void remove_node(void)
{
    unsigned i = some_node();
    struct bh_sim_objs l;
    char name[16], gpu[24];

    if (load.n_nodes == 1 || load.n_nodes + 2 <= load.usual)
        return;
    snprintf(name, sizeof(name), "n%u", i);
    snprintf(gpu, sizeof(gpu), "n%u-gpu", i);
    delete ("", "nodes", "", name, 0);
    delete ("resource.k8s.io", "resourceslices", "", gpu, 0);
    delete ("storage.k8s.io", "csinodes", "", name, 0);
    load.node[i] = false;
    load.n_nodes--;
    bh_sim_pods_on_node(server, name, &l);
    for (size_t k = 0; k < l.n; k++)
        delete ("", "pods", "default", l.v[k]->name, 0);
    bh_sim_objs_fini(&l);
}

static void change_node(const char *spec)
{
    char name[16];

    snprintf(name, sizeof(name), "n%u", some_node());
    edit_spec("", "nodes", "", name, spec);
}

static void swap_node(void)
{
    if (load.n_nodes > load.usual) {
        remove_node();
        return;
    }
    for (unsigned i = 0; i < MAX_NODES; i++) {
        unsigned k = (i + (unsigned)draw(DRAW_LOAD, MAX_NODES)) % MAX_NODES;
        if (load.node[k])
            continue;
        add_node(k);
        return;
    }
}

/* ---- pods ------------------------------------------------------------------------------------ */

static void claim(const char *name, const char *class_, const char *mode)
{
    create("", "v1", "persistentvolumeclaims", "default",
           "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'%s','namespace':"
           "'default'},'spec':{'accessModes':['%s'],'storageClassName':'%s','resources':{"
           "'requests':{'storage':'1Gi'}}}}",
           name, mode, class_);
}

enum shape {
    PLAIN,
    SELECTOR,
    TOLERANT,
    PORT,
    APART,
    SPREAD,
    EVEN,
    THING,
    MADE,
    SINGLE,
    LOCAL,
    DEVICE,
    LOW,
    HIGH,
    BIG,
    GATED,
    HUGE_,
    NEAR
};

/* What a shape adds to the spec. */
static void add_shape(enum shape k, const char *name, unsigned g, char *out, size_t n)
{
    static const char *const key = "topology.kubernetes.io/zone";
    char vol[32] = "";

    *out = 0;
    if (k == MADE || (k == LOCAL && load.disks < LOCAL_DISKS)) {
        load.disks += k == LOCAL;
        snprintf(vol, sizeof(vol), "%s-%s", k == MADE ? "made" : "local", name);
        claim(vol, k == MADE ? "made" : "local", "ReadWriteOnce");
    } else if (k == SINGLE) {
        snprintf(vol, sizeof(vol), "single-g%u", g);
    }
    if (*vol)
        snprintf(out, n, ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'%s'}}]",
                 vol);
    else if (k == SELECTOR)
        snprintf(out, n, ",'nodeSelector':{'pool':'p%u'}", g % 2);
    else if (k == TOLERANT)
        snprintf(out, n,
                 ",'tolerations':[{'key':'dedicated','operator':'Exists'}],'nodeSelector':{'%s':"
                 "'z0'}",
                 key);
    else if (k == APART || k == NEAR)
        snprintf(out, n,
                 ",'affinity':{'%s':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
                 "'labelSelector':{'matchLabels':{'app':'%sg%u'}},'topologyKey':'%s'}]}}",
                 k == APART ? "podAntiAffinity" : "podAffinity", k == APART ? "a-" : "", g,
                 k == APART ? "kubernetes.io/hostname" : key);
    else if (k == SPREAD || k == EVEN)
        snprintf(out, n,
                 ",'topologySpreadConstraints':[{'maxSkew':1,'whenUnsatisfiable':'DoNotSchedule',"
                 "'labelSelector':{'matchLabels':{'app':'%sg%u'}},'topologyKey':'%s'}]",
                 k == SPREAD ? "s-" : "h-", g, k == SPREAD ? key : "kubernetes.io/hostname");
    else if (k == DEVICE)
        snprintf(out, n, ",'resourceClaims':[{'name':'r','resourceClaimTemplateName':'one-gpu'}]");
    else if (k == LOW || k == HIGH || k == BIG)
        snprintf(out, n, ",'priorityClassName':'%s'", k == HIGH ? "high" : "low");
    else if (k == GATED)
        snprintf(out, n, ",'schedulingGates':[{'name':'example.com/wait'}]");
}

static void keep(char list[][12], unsigned *n, const char *name)
{
    if (*n < NAMES)
        snprintf(list[(*n)++], 12, "%s", name);
}

static void take_out(char list[][12], unsigned *n, unsigned i, char name[static 12])
{
    memcpy(name, list[i], 12);
    memmove(list[i], list[i + 1], (--*n - i) * 12);
}

static enum shape some_shape(void)
{
    static const uint8_t often[] = {PLAIN, PLAIN, PLAIN, SELECTOR, TOLERANT, PORT,  APART,  SPREAD,
                                    EVEN,  THING, MADE,  MADE,     SINGLE,   LOCAL, DEVICE, LOW,
                                    LOW,   BIG,   HIGH,  HIGH,     GATED,    HUGE_, NEAR};
    return often[draw(DRAW_LOAD, sizeof(often))];
}

/* Half of the names were somebody else's before, as a StatefulSet's are. */
static void add_pod(enum shape k)
{
    static const unsigned milli[] = {50, 100, 200, 500};
    const unsigned g = (unsigned)draw(DRAW_LOAD, GROUPS);
    unsigned cpu = milli[draw(DRAW_LOAD, 4)];
    char name[12], more[512], port[80] = "", app[16];

    load.serial++;
    snprintf(name, sizeof(name), "p%u",
             chance(DRAW_LOAD, 50) ? (unsigned)draw(DRAW_LOAD, load.serial) : load.serial);
    cpu = k == LOW ? 900 : k == HIGH ? 1500 : k == BIG ? 2500 : k == HUGE_ ? 40000 : cpu;
    if (k == PORT)
        snprintf(port, sizeof(port), ",'ports':[{'containerPort':80,'hostPort':%u}]",
                 8000 + (unsigned)draw(DRAW_LOAD, 3));
    add_shape(k, name, g, more, sizeof(more));
    snprintf(app, sizeof(app), "%sg%u",
             k == APART    ? "a-"
             : k == SPREAD ? "s-"
             : k == EVEN   ? "h-"
                           : "",
             g);
    int rc = create("", "v1", "pods", "default",
                    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default',"
                    "'labels':{'app':'%s'}},'spec':{'containers':[{'name':'c','image':'pause'%s,"
                    "'resources':{'requests':{'cpu':'%um','memory':'64Mi'%s}%s}}]%s}}",
                    name, app, port, cpu, k == THING ? ",'example.com/thing':'1'" : "",
                    k == THING ? ",'limits':{'example.com/thing':'1'}" : "", more);
    if (rc)
        return;
    keep(load.pod, &load.n_pods, name);
    if (k == GATED)
        keep(load.gated, &load.n_gated, name);
}

/* The newest are often still pending, or on their way. */
static void delete_pod(void)
{
    unsigned back = (unsigned)draw(DRAW_LOAD, load.n_pods);
    char name[12];

    if (chance(DRAW_LOAD, 40))
        back = (unsigned)draw(DRAW_LOAD, back / 8 + 1);
    take_out(load.pod, &load.n_pods, load.n_pods - 1 - back, name);
    delete ("", "pods", "default", name, chance(DRAW_LOAD, 50) ? -1 : 0);
}

static void ungate(void)
{
    char name[12];

    take_out(load.gated, &load.n_gated, (unsigned)draw(DRAW_LOAD, load.n_gated), name);
    edit_spec("", "pods", "default", name, "{\"schedulingGates\":null}");
}

/* ---- gangs ----------------------------------------------------------------------------------- */

static void add_group(unsigned serial, unsigned size, const char *priority)
{
    if (world.gangs == OF_COSCHEDULING)
        create("scheduling.x-k8s.io", "v1alpha1", "podgroups", "default",
               "{'apiVersion':'scheduling.x-k8s.io/v1alpha1','kind':'PodGroup','metadata':{'name':"
               "'g%u','namespace':'default'},'spec':{'minMember':%u}}",
               serial, size);
    else
        create(
            "scheduling.k8s.io", "v1alpha2", "podgroups", "default",
            "{'apiVersion':'scheduling.k8s.io/v1alpha2','kind':'PodGroup','metadata':{'name':"
            "'g%u','namespace':'default'},'spec':{'schedulingPolicy':{'gang':{'minCount':%u}}%s}}",
            serial, size, priority);
}

static void add_member(unsigned serial, unsigned i, unsigned milli, bool gated,
                       const char *priority)
{
    char name[12], label[64] = "", member[64] = "";

    snprintf(name, sizeof(name), "g%u-%u", serial % 100000, i % 100);
    if (world.gangs == OF_COSCHEDULING)
        snprintf(label, sizeof(label), ",'labels':{'" COSCHEDULING "':'g%u'}", serial);
    else
        snprintf(member, sizeof(member), "'schedulingGroup':{'podGroupName':'g%u'},", serial);
    if (create("", "v1", "pods", "default",
               "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default'%s},"
               "'spec':{%s'containers':[{'name':'c','image':'pause','resources':{'requests':{"
               "'cpu':'%um','memory':'64Mi'}}}]%s%s}}",
               name, label, member, milli,
               gated ? ",'schedulingGates':[{'name':'example.com/wait'}]" : "", priority))
        return;
    keep(load.pod, &load.n_pods, name);
    if (gated)
        keep(load.gated, &load.n_gated, name);
}

/* Equals; the object comes before them, among them or last, and some are gated for a while. */
static void add_gang(unsigned size, unsigned milli)
{
    const unsigned serial = ++load.serial, late = (unsigned)draw(DRAW_GANGS, size + 1);
    const char *priority =
        world.groups_preempt && chance(DRAW_PREEMPTORS, 50) ? ",'priorityClassName':'high'" : "";

    for (unsigned i = 0; i <= size; i++) {
        const bool gated = i < size && chance(DRAW_GANGS, 10);
        if (i == late)
            add_group(serial, size, priority);
        if (i < size)
            add_member(serial, i, milli, gated, priority);
    }
}

static void add_gangs(void)
{
    static const unsigned milli[] = {100, 500, 1500};

    if (chance(DRAW_GANGS, 15)) { /* each of the two has room, not both */
        add_gang(load.usual / 2 + 1, 2100);
        add_gang(load.usual / 2 + 1, 2100);
    } else {
        /* compilers differ in which argument they look at first */
        unsigned of = milli[draw(DRAW_GANGS, BH_ARRAY_LEN(milli))];
        add_gang(2 + (unsigned)draw(DRAW_GANGS, 4), of);
    }
}

/* An autoscaler says of a pod that it saw pending where its room will be, and is late: the API server
 * refuses that, and nothing changes. */
static void nominate_late(void)
{
    const struct bh_sim_type *pods = bh_sim_type_find("", "v1", "pods");
    struct bh_arena a;

    if (!load.n_pods || !chance(DRAW_OTHERS, 5))
        return;
    const char *name = load.pod[draw(DRAW_OTHERS, load.n_pods)];
    const struct bh_sim_obj *pod = bh_sim_get(server, pods, "default", name);
    if (!pod || !*pod->node_name)
        return;
    reach(nominated_when_bound);
    bh_arena_init(&a, 0);
    struct bh_json *tree = bh_sim_obj_tree(&a, pod);
    bh_json_set_str(&a, bh_json_obj_at(&a, tree, "status"), "nominatedNodeName", pod->node_name);
    (void)bh_sim_update(server, pods, "default", name, BH_SIM_STATUS, &a, tree, NULL, NULL);
    bh_arena_fini(&a);
}

void load_step(void)
{
    draw_for(DRAW_LOAD, ++load.n_steps);
    draw_for(DRAW_GANGS, load.n_steps);
    draw_for(DRAW_OTHERS, load.n_steps);
    draw_for(DRAW_PREEMPTORS, load.n_steps);
    nominate_late();
    if (world.gangs && load.n_pods <= load.max_pods && chance(DRAW_GANGS, 12))
        add_gangs();
    const unsigned r = (unsigned)draw(DRAW_LOAD, 1000);

    if (load.n_pods && (load.n_pods > load.max_pods || r < 300))
        delete_pod();
    else if (r < 340 && load.n_gated)
        ungate();
    else if (r < 348)
        for (unsigned i = 0; i < load.max_pods / 4; i++)
            add_pod(some_shape());
    else if (r < 362)
        change_node(chance(DRAW_LOAD, 33) ? "{\"unschedulable\":true}"
                                          : "{\"unschedulable\":null}");
    else if (r < 372)
        change_node(chance(DRAW_LOAD, 50)
                        ? "{\"taints\":null}"
                        : "{\"taints\":[{\"key\":\"dedicated\",\"value\":\"x\",\"effect\":"
                          "\"NoSchedule\"}]}");
    else if (r < 390)
        swap_node();
    else
        add_pod(some_shape());
}

/* ---- rivals ---------------------------------------------------------------------------------- */

static char contested[16]; /* a node */

void load_rivals_about(const char *node)
{
    snprintf(contested, sizeof(contested), "%s", node);
}

/* 1/1000 of a cpu that nobody has of the node, as far as the API server knows. */
static unsigned free_milli(const char *node)
{
    static const char before[] = "\"cpu\":\"";
    unsigned used = 0;
    struct bh_sim_objs l;

    bh_sim_pods_on_node(server, node, &l);
    for (size_t i = 0; i < l.n; i++) {
        const char *cpu = strstr(l.v[i]->json, before);
        char *end = NULL;
        const unsigned n = cpu ? (unsigned)strtoul(cpu + strlen(before), &end, 10) : 0;
        used += cpu && *end != 'm' ? 1000 * n : n;
    }
    bh_sim_objs_fini(&l);
    return used < NODE_MILLI ? NODE_MILLI - used : 0;
}

/* It fits beside who is bound there, and not beside who is about to be. */
static void add_rival_on(const char *node)
{
    const unsigned milli = free_milli(node);
    char name[12];

    if (!milli)
        return;
    snprintf(name, sizeof(name), "p%u", ++load.serial);
    int rc = create("", "v1", "pods", "default",
                    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default'}"
                    ",'spec':{'containers':[{'name':'c','image':'pause','resources':{'requests':{"
                    "'cpu':'%um'}}}],'priorityClassName':'high','nodeSelector':{"
                    "'kubernetes.io/hostname':'%s'},'tolerations':[{'operator':'Exists'}]}}",
                    name, milli, node);
    if (rc == 0)
        keep(load.pod, &load.n_pods, name);
}

void load_rivals(void)
{
    if (*contested)
        add_rival_on(contested);
    *contested = '\0';
    for (uint64_t n = 1 + draw(DRAW_BINDING, 4); n; n--)
        add_pod(HIGH);
}

/* ---- apart ----------------------------------------------------------------------------------- */

static void add_node_apart(const char *name, bool cordoned)
{
    create("", "v1", "nodes", "",
           "{'apiVersion':'v1','kind':'Node','metadata':{'name':'%s','labels':{'apart':'yes'}},"
           "'spec':{%s'taints':[{'key':'apart','effect':'NoSchedule'}]},'status':{'capacity':{"
           "'cpu':'4','memory':'8Gi','pods':'10'},'allocatable':{'cpu':'4','memory':'8Gi','pods':"
           "'10'}}}",
           name, cordoned ? "'unschedulable':true," : "");
}

void load_add_apart(bool cordoned)
{
    add_node_apart("apart", cordoned);
}

void load_cordon_apart(bool cordoned)
{
    edit_spec("", "nodes", "", "apart",
              cordoned ? "{\"unschedulable\":true}" : "{\"unschedulable\":null}");
}

void load_add_pod_apart(const char *name, const char *priority, unsigned milli, bool is_slow)
{
    create("", "v1", "pods", "default",
           "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default'},'spec':{"
           "'containers':[{'name':'c','image':'pause',%s'resources':{'requests':{'cpu':'%um'}}}],"
           "'priorityClassName':'%s','nodeSelector':{'apart':'yes'},'tolerations':[{'key':'apart',"
           "'operator':'Exists'}],'terminationGracePeriodSeconds':%u}}",
           name, is_slow ? "'lifecycle':{'preStop':{'sleep':{'seconds':3600}}}," : "", milli,
           priority, is_slow ? 3600 : 30);
}

/* The place of the second device does not change when the first is listed: claims name both. */
void load_add_device_apart(bool all)
{
    static const char format[] =
        "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'apart-%s'},"
        "'spec':{'driver':'gpu.example.com','nodeName':'apart','pool':{'name':'apart-%s',"
        "'generation':1,'resourceSliceCount':1},'devices':[{'name':'d0'}]}}";
    const char *name = all ? "a" : "b"; /* pools are tried by name */

    create("resource.k8s.io", "v1", "resourceslices", "", format, name, name);
}

void load_add_claimant_apart(const char *name, const char *priority)
{
    create("", "v1", "pods", "default",
           "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default'},'spec':{"
           "'containers':[{'name':'c','image':'pause','resources':{'requests':{'cpu':'100m'}}}],"
           "'priorityClassName':'%s','nodeSelector':{'apart':'yes'},'tolerations':[{'key':'apart',"
           "'operator':'Exists'}],'resourceClaims':[{'name':'r','resourceClaimTemplateName':"
           "'one-gpu'}]}}",
           name, priority);
}

#define SLOW_APART 4u

static const char *slow_apart(unsigned i)
{
    static char name[16];

    snprintf(name, sizeof(name), "apart-slow-%u", i);
    return name;
}

void load_fill_apart(void)
{
    for (unsigned i = 0; i < SLOW_APART; i++)
        load_add_pod_apart(slow_apart(i), "low", NODE_MILLI / SLOW_APART, true);
}

static const char *const members[] = {"apart-member-0", "apart-member-1"};
static const char cheap[] = "apart-cheap";

void load_add_group_apart(void)
{
    create("scheduling.k8s.io", "v1alpha2", "podgroups", "default",
           "{'apiVersion':'scheduling.k8s.io/v1alpha2','kind':'PodGroup','metadata':{'name':'apart'"
           ",'namespace':'default'},'spec':{'schedulingPolicy':{'gang':{'minCount':1}},"
           "'priorityClassName':'high'}}");
    for (unsigned i = 0; i < BH_ARRAY_LEN(members); i++)
        create("", "v1", "pods", "default",
               "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default'},"
               "'spec':{'schedulingGroup':{'podGroupName':'apart'},'containers':[{'name':'c',"
               "'image':'pause','resources':{'requests':{'cpu':'%um'}}}],'priorityClassName':'high'"
               ",'nodeSelector':{'apart':'yes'},'tolerations':[{'key':'apart','operator':'Exists'}]"
               "}}",
               members[i], NODE_MILLI / SLOW_APART);
}

void load_add_cheap_apart(void)
{
    add_node_apart("apart-b", false);
    create("", "v1", "pods", "default",
           "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'default'},'spec':{"
           "'containers':[{'name':'c','image':'pause','resources':{'requests':{'cpu':'%um'}}}],"
           "'tolerations':[{'operator':'Exists'}]}}", /* a node that is new has more taints */
           cheap, NODE_MILLI);
    load_bind_apart(cheap, "apart-b");
}

void load_clear_apart(void)
{
    for (unsigned i = 0; i < SLOW_APART; i++)
        load_remove_pod(slow_apart(i));
    load_remove_pod(cheap);
}

bool load_is_cheap_chosen(void)
{
    const struct bh_sim_obj *pod =
        bh_sim_get(server, bh_sim_type_find("", "v1", "pods"), "default", cheap);

    return !pod || pod->deleting || load_pod(members[0]) == POD_BOUND ||
           load_pod(members[1]) == POD_BOUND;
}

bool load_is_group_bound(void)
{
    return load_pod(members[0]) == POD_BOUND && load_pod(members[1]) == POD_BOUND;
}

void load_remove_pod(const char *name)
{
    delete ("", "pods", "default", name, 0);
}

void load_bind_apart(const char *name, const char *node)
{
    (void)bh_sim_bind(server, "default", name, NULL, node, NULL, NULL, NULL);
}

void load_touch_apart(void)
{
    for (unsigned i = 0; i < TOUCHES / 2; i++) {
        load_cordon_apart(true);
        load_cordon_apart(false);
    }
}

enum pod_state load_pod(const char *name)
{
    const struct bh_sim_obj *pod =
        bh_sim_get(server, bh_sim_type_find("", "v1", "pods"), "default", name);

    return !pod                                            ? POD_GONE
           : *pod->node_name                               ? POD_BOUND
           : strstr(pod->json, "\"nominatedNodeName\":\"") ? POD_PROMISED
           : strstr(pod->json, "\"PodScheduled\"")         ? POD_REFUSED
                                                           : POD_SILENT;
}

/* ---- the cluster ----------------------------------------------------------------------------- */

static void add_class(const char *name, const char *provisioner)
{
    create("storage.k8s.io", "v1", "storageclasses", "",
           "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'%s'},"
           "'provisioner':'%s','volumeBindingMode':'WaitForFirstConsumer'}",
           name, provisioner);
}

/* Its controllers' part of the kind does not matter here. */
static void add_coscheduling(void)
{
    create("apiextensions.k8s.io", "v1", "customresourcedefinitions", "",
           "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{"
           "'name':'podgroups.scheduling.x-k8s.io','annotations':{'api-approved.kubernetes.io':"
           "'https://github.com/kubernetes-sigs/scheduler-plugins/pull/50'}},'spec':{'group':"
           "'scheduling.x-k8s.io','scope':'Namespaced','names':{'kind':'PodGroup','listKind':"
           "'PodGroupList','plural':'podgroups','singular':'podgroup'},'versions':[{'name':"
           "'v1alpha1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object',"
           "'x-kubernetes-preserve-unknown-fields':true}}}]}}");
}

void load_build(void)
{
    load.usual = (unsigned)draw_between(DRAW_LOAD, 3, 8);
    load.max_pods = (unsigned)draw_between(DRAW_LOAD, 6, 26);
    load.slots = (unsigned)draw_between(DRAW_LOAD, 3, 12);
    if (plan_binds() && chance(DRAW_BINDING, 50)) { /* little room */
        load.usual = (unsigned)draw_between(DRAW_BINDING, 1, 3);
        load.slots = (unsigned)draw_between(DRAW_BINDING, 2, 4);
    }
    if (plan_pods >= 0)
        load.max_pods = (unsigned)plan_pods;
    if (world.gangs == OF_COSCHEDULING)
        add_coscheduling();
    create("resource.k8s.io", "v1", "deviceclasses", "",
           "{'apiVersion':'resource.k8s.io/v1','kind':'DeviceClass','metadata':{'name':'gpu'},"
           "'spec':{'selectors':[{'cel':{'expression':'device.driver == \\'gpu.example.com\\''}}]}"
           "}");
    add_class("made", "made.berth.example.com");
    add_class("local", "kubernetes.io/no-provisioner");
    for (unsigned i = 0; i < 2; i++)
        create("scheduling.k8s.io", "v1", "priorityclasses", "",
               "{'apiVersion':'scheduling.k8s.io/v1','kind':'PriorityClass','metadata':{'name':"
               "'%s'},'value':%u}",
               i ? "high" : "low", i ? 1000u : 10u);
    create("resource.k8s.io", "v1", "resourceclaimtemplates", "default",
           "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaimTemplate','metadata':{'name':"
           "'one-gpu','namespace':'default'},'spec':{'spec':{'devices':{'requests':[{'name':'r',"
           "'exactly':{'deviceClassName':'gpu'}}]}}}}");
    for (unsigned i = 0; i < GROUPS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "single-g%u", i);
        claim(name, "made", "ReadWriteOncePod");
    }
    if (world.marks)
        create("", "v1", "configmaps", "default",
               "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'" TENDED "','namespace':"
               "'default','labels':{'tended':'no'}}}");
    for (unsigned i = 0; i < load.usual; i++)
        add_node(i);
    for (unsigned i = 0; i < LOCAL_DISKS; i++)
        create("", "v1", "persistentvolumes", "",
               "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'disk-%u'},'spec':{"
               "'capacity':{'storage':'10Gi'},'accessModes':['ReadWriteOnce'],'storageClassName':"
               "'local','local':{'path':'/disk'},'persistentVolumeReclaimPolicy':'Retain',"
               "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
               "'kubernetes.io/hostname','operator':'In','values':['n%u']}]}]}}}}",
               i, i);
}

static bool is_member(const struct bh_sim_obj *pod)
{
    return strstr(pod->json, world.gangs == OF_COSCHEDULING ? COSCHEDULING : "\"schedulingGroup\"");
}

void load_count_gangs(void)
{
    struct bh_sim_objs l = bh_sim_listed(server, bh_sim_type_find("", "v1", "pods"), NULL);

    for (size_t i = 0; world.gangs && i < l.n; i++)
        if (is_member(l.v[i]))
            world.reached[(world.gangs == OF_SCHEDULING ? R_gang_bound : R_coscheduled) +
                          !*l.v[i]->node_name]++;
    bh_sim_objs_fini(&l);
}

static bool has_wrong_mark(const struct bh_sim_obj *pod)
{
    static const char before[] = "\"" MARK "\":\"";
    const char *mark = strstr(pod->json, before);
    const size_t n = strlen(pod->node_name);

    if (!mark || !n)
        return false;
    mark += strlen(before);
    reach(plugin_marked);
    return strncmp(mark, pod->node_name, n) != 0 || mark[n] != '"';
}

static bool is_undecided(const struct bh_sim_obj *pod)
{
    return !*pod->node_name && !pod->deleting && !strstr(pod->json, "\"PodScheduled\"") &&
           !is_member(pod); /* as long as its gang is not complete it is not tried */
}

/* On a node that is gone, too: it is deleted in the end. */
static bool is_leaving(const struct bh_sim_obj *pod)
{
    if (*pod->node_name &&
        !bh_sim_get(server, bh_sim_type_find("", "v1", "nodes"), "", pod->node_name))
        return true;
    return pod->deleting && !strstr(pod->json, "\"preStop\""); /* slow: nobody waits for it */
}

static const char *some_pod(bool (*is)(const struct bh_sim_obj *pod), const char *what)
{
    static char text[200];
    struct bh_sim_objs l = bh_sim_listed(server, bh_sim_type_find("", "v1", "pods"), NULL);
    const char *found = NULL;

    for (size_t i = 0; i < l.n && !found; i++)
        if (is(l.v[i])) {
            snprintf(text, sizeof(text), "pod %s %s", l.v[i]->name, what);
            found = text;
        }
    bh_sim_objs_fini(&l);
    return found;
}

/* A condition is not looked at here: the checker does. */
const char *load_undecided(void)
{
    return some_pod(is_undecided, "has no node, and says nothing");
}

const char *load_wrong_mark(void)
{
    return some_pod(has_wrong_mark, "is on another node than its mark names");
}

const char *load_leaving(void)
{
    return some_pod(is_leaving, "is still being deleted, or on a node that is gone");
}
