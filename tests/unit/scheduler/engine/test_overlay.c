/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods with volumes share kept results, and what is remembered about volumes on nodes follows every
 * change. Each decision is taken twice: by an engine that verifies every path against the reference
 * path, and by one on the fast path as it runs in production.
 */
#include "tests/unit/scheduler/engine/fixture.h"

#define NODES 12u

struct pair {
    struct fx v, f; /* verifies; fast */
    struct bh_arena a;
};

static void each(struct pair *p, void (*fn)(struct fx *f, void *arg), void *arg)
{
    fn(&p->v, arg);
    fn(&p->f, arg);
}

struct object {
    enum bh_kind kind;
    const char *ns, *name, *text; /* NULL: deleted */
};

static void put_object(struct fx *f, void *arg)
{
    const struct object *o = arg;
    struct bh_err err = {{0}};
    struct bh_buf b = {0};

    if (o->text)
        bh_pb_pack(&b, fx_message(f, bh_kinds[o->kind].desc, fx_json(f, o->text)));
    CU_ASSERT_FATAL(bh_engine_put_object(f->e, o->kind, o->ns, o->name,
                                         o->text ? bh_buf_str(&b) : NULL, b.n, &err) == 0);
    bh_buf_fini(&b);
}

static void object(struct pair *p, enum bh_kind kind, const char *ns, const char *name,
                   const char *text)
{
    struct object o = {kind, ns, name, text};
    each(p, put_object, &o);
}

static void put_node(struct fx *f, void *arg)
{
    fx_node(f, arg, "'cpu':'64','memory':'256Gi','pods':'110'",
            ((const char *)arg)[2] % 2 ? "'topology.kubernetes.io/zone':'a'"
                                       : "'topology.kubernetes.io/zone':'b'",
            "", "");
}

static void move_to_zone_a(struct fx *f, void *arg)
{
    fx_node(f, arg, "'cpu':'64','memory':'256Gi','pods':'110'", "'topology.kubernetes.io/zone':'a'",
            "", "");
}

static void limit(struct pair *p, const char *node, const char *driver, int count)
{
    object(p, BH_KIND_CSINODE, "", node,
           bh_arena_printf(&p->a,
                           "{'metadata':{'name':'%s'},'spec':{'drivers':[{'name':'%s',"
                           "'allocatable':{'count':%d}}]}}",
                           node, driver, count));
}

/* labels, affinity: members of metadata.labels and of spec. */
static void volume(struct pair *p, unsigned i, const char *handle, const char *labels,
                   const char *affinity)
{
    const char *pv = bh_arena_printf(&p->a, "pv%u", i);

    object(p, BH_KIND_PERSISTENTVOLUME, "", pv,
           bh_arena_printf(&p->a,
                           "{'metadata':{'name':'%s','labels':{%s}},'spec':{'csi':{'driver':'d',"
                           "'volumeHandle':'%s'},'capacity':{'storage':'1Gi'}%s}}",
                           pv, labels, handle, affinity));
}

/* A volume of driver d and the claim c<i> that is bound to it. */
static void claim(struct pair *p, unsigned i, const char *handle, const char *labels,
                  const char *affinity)
{
    const char *pvc = bh_arena_printf(&p->a, "c%u", i);

    volume(p, i, handle, labels, affinity);
    object(
        p, BH_KIND_PERSISTENTVOLUMECLAIM, "default", pvc,
        bh_arena_printf(&p->a,
                        "{'metadata':{'name':'%s','namespace':'default','annotations':{"
                        "'pv.kubernetes.io/bind-completed':'yes'}},'spec':{'volumeName':'pv%u'}}",
                        pvc, i));
}

static void begin(struct pair *p)
{
    fx_init(&p->v, NULL);
    fx_init_with(&p->f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_FIRST});
    bh_arena_init(&p->a, 0);
    for (unsigned i = 0; i < NODES; i++)
        each(p, put_node, bh_arena_printf(&p->a, "n%02u", i));
}

static void end(struct pair *p)
{
    fx_fini(&p->v);
    fx_fini(&p->f);
    bh_arena_fini(&p->a);
}

static const char *volumes(struct pair *p, unsigned i)
{
    return bh_arena_printf(
        &p->a, "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c%u'}}]", i);
}

static const char *place_on(struct fx *f, const char *name, const char *more, bool stays)
{
    struct fx_pod q = fx_pod(f, name, "'cpu':'100m'", more);
    const struct bh_pending pending = {.pod = q.rec, .shape = q.shape};
    const struct bh_decision *d = bh_engine_schedule(f->e, &pending, 0, 0);
    const char *node = d->kind == BH_DECIDED ? fx_text(f, d->node) : "";

    if (stays && *node) {
        bh_sym sym = d->node;
        CU_ASSERT(bh_engine_assume(f->e, &pending, sym) == 0);
        CU_ASSERT(bh_engine_reserve(f->e, &pending, sym) == NULL);
    }
    return node;
}

static uint64_t slow(const struct pair *p)
{
    struct bh_engine_stats st;

    bh_engine_stats(p->f.e, &st);
    return st.reference_cycles;
}

/* Where the pod goes; "" = nowhere. Only then the reference path may be taken. */
static const char *place(struct pair *p, const char *name, const char *more, bool stays)
{
    const char *v = place_on(&p->v, name, more, stays);
    uint64_t before = slow(p);
    const char *f = place_on(&p->f, name, more, stays);

    FX_STR(f, v);
    CU_ASSERT(!*f || slow(p) == before);
    return v;
}

static uint64_t hits(const struct pair *p)
{
    struct bh_engine_stats st;

    bh_engine_stats(p->f.e, &st);
    return st.shape_hits;
}

static void test_shared(void)
{
    struct bh_engine_stats st;
    struct pair p;

    begin(&p);
    for (unsigned i = 0; i < 40; i++) {
        claim(&p, i, bh_arena_printf(&p.a, "h%u", i), "", "");
        (void)place(&p, bh_arena_printf(&p.a, "p%u", i), volumes(&p, i), true);
    }
    FX_INT(hits(&p), 38); /* the first is forgotten, the second makes the results */
    bh_engine_stats(p.f.e, &st);
    FX_INT(st.reference_cycles, 0);
    end(&p);
}

/* Nodes fill up, one after the other has room again for another reason. */
static void test_room(void)
{
    static const char va[] = "{'metadata':{'name':'va'},'spec':{'attacher':'d','nodeName':'n03',"
                             "'source':{'persistentVolumeName':'pv70'}}}";
    const char *where[2 * NODES];
    struct pair p;

    begin(&p);
    for (unsigned i = 0; i < NODES; i++)
        limit(&p, bh_arena_printf(&p.a, "n%02u", i), "d", 2);
    for (unsigned i = 0; i < 2 * NODES; i++) {
        claim(&p, i, bh_arena_printf(&p.a, "h%u", i), "", "");
        where[i] = place(&p, bh_arena_printf(&p.a, "p%u", i), volumes(&p, i), true);
        CU_ASSERT_FATAL(*where[i]);
    }
    claim(&p, 70, "h70", "", "");
    claim(&p, 71, "h71", "", "");
    FX_STR(place(&p, "full", volumes(&p, 70), false), "");
    limit(&p, "n05", "d", 3);
    FX_STR(place(&p, "grown", volumes(&p, 70), false), "n05");
    limit(&p, "n05", "d", 2);
    FX_STR(place(&p, "shrunk", volumes(&p, 70), false), "");
    limit(&p, "n06", "other", 1);
    FX_STR(place(&p, "unlimited", volumes(&p, 70), false), "n06");
    limit(&p, "n06", "d", 2);
    /* Two claims of one volume take one place. */
    const char *node = place(&p, "again", volumes(&p, 12), false);
    unsigned first = 0; /* the other one there */
    while (first == 12 || !bh_streq(where[first], node))
        first++;
    claim(&p, 12, bh_arena_printf(&p.a, "h%u", first), "", "");
    FX_STR(place(&p, "same", volumes(&p, 70), false), node);
    object(&p, BH_KIND_PERSISTENTVOLUMECLAIM, "default", bh_arena_printf(&p.a, "c%u", first), NULL);
    FX_STR(place(&p, "gone", volumes(&p, 70), false), node);
    volume(&p, 12, "h12", "", "");
    FX_STR(place(&p, "back", volumes(&p, 70), false), node);
    claim(&p, first, bh_arena_printf(&p.a, "h%u", first), "", "");
    FX_STR(place(&p, "moved", volumes(&p, 70), false), "");
    volume(&p, 12, bh_arena_printf(&p.a, "h%u", first), "", ""); /* the volume alone */
    FX_STR(place(&p, "one", volumes(&p, 70), false), node);
    volume(&p, 12, "h12", "", "");
    FX_STR(place(&p, "two", volumes(&p, 70), false), "");
    /* Attached without a pod counts, attached with one does not. */
    limit(&p, "n03", "d", 3);
    FX_STR(place(&p, "va0", volumes(&p, 71), false), "n03");
    object(&p, BH_KIND_VOLUMEATTACHMENT, "", "va", va);
    FX_STR(place(&p, "va1", volumes(&p, 71), false), "");
    object(&p, BH_KIND_PERSISTENTVOLUME, "", "pv70", NULL);
    FX_STR(place(&p, "va2", volumes(&p, 71), false), "n03");
    claim(&p, 70, "h70", "", "");
    FX_STR(place(&p, "va3", volumes(&p, 71), false), "");
    object(&p, BH_KIND_VOLUMEATTACHMENT, "", "va", NULL);
    FX_STR(place(&p, "va4", volumes(&p, 71), false), "n03");
    object(&p, BH_KIND_PERSISTENTVOLUME, "", "pv70", NULL);
    object(&p, BH_KIND_VOLUMEATTACHMENT, "", "va", va);
    FX_STR(place(&p, "va5", volumes(&p, 71), false), "n03"); /* attached is nobody knows what */
    volume(&p, 70, "h70", "", "");
    FX_STR(place(&p, "va6", volumes(&p, 71), false), "");
    end(&p);
}

/* Nodes that come, go and come back under another row; a log that was overrun. */
static void test_rows(void)
{
    struct pair p;

    begin(&p);
    for (unsigned i = 0; i < NODES; i++)
        limit(&p, bh_arena_printf(&p.a, "n%02u", i), "d", i == 7 ? 1 : 0);
    claim(&p, 0, "h0", "", "");
    claim(&p, 1, "h1", "", "");
    for (unsigned i = 0; i < 3; i++)
        FX_STR(place(&p, "x", volumes(&p, 0), false), "n07");
    FX_STR(place(&p, "a", volumes(&p, 0), true), "n07");
    FX_STR(place(&p, "b", volumes(&p, 1), false), "");
    for (unsigned i = 0; i < 2; i++)
        bh_engine_del_node(i ? p.f.e : p.v.e,
                           bh_sym_internc(bh_engine_symtab(i ? p.f.e : p.v.e), "n02"));
    each(&p, put_node, bh_arena_strdup(&p.a, "n20"));
    FX_STR(place(&p, "c", volumes(&p, 1), false), "n20"); /* it took n02's row and has no limit */
    limit(&p, "n20", "d", 0);
    FX_STR(place(&p, "d", volumes(&p, 1), false), "");
    each(&p, put_node, bh_arena_strdup(&p.a, "n02")); /* its CSINode is still there */
    FX_STR(place(&p, "e", volumes(&p, 1), false), "");
    for (unsigned i = 0; i < 40000u; i++)
        limit(&p, "elsewhere", "d", (int)i);
    limit(&p, "n02", "d", 1);
    for (unsigned i = 0; i < 40000u; i++)
        limit(&p, "elsewhere", "d", (int)i);
    FX_STR(place(&p, "f", volumes(&p, 1), false), "n02");
    end(&p);
}

/* Where a volume's zone or node affinity leaves few nodes, scores are those of these nodes. */
static void test_narrowed(void)
{
    static const char on_n04[] =
        ",'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
        "'topology.kubernetes.io/zone','operator':'In','values':['b']}]}]}}";
    struct pair p;

    begin(&p);
    for (unsigned i = 0; i < 30; i++) {
        claim(&p, i, bh_arena_printf(&p.a, "h%u", i),
              i % 3 == 0 ? "'topology.kubernetes.io/zone':'a'" : "", i % 3 == 1 ? on_n04 : "");
        const char *node = place(&p, bh_arena_printf(&p.a, "p%u", i), volumes(&p, i), true);
        CU_ASSERT(*node);
        CU_ASSERT(i % 3 == 2 || (node[2] % 2 == 1) == (i % 3 == 0));
    }
    CU_ASSERT(hits(&p) >= 28);
    for (unsigned i = 0; i < NODES; i++) /* all but one */
        if (i != 4)
            each(&p, move_to_zone_a, bh_arena_printf(&p.a, "n%02u", i));
    FX_STR(place(&p, "moved", volumes(&p, 1), false), "n04");
    CU_ASSERT(!bh_streq(place(&p, "others", volumes(&p, 0), false), "n04"));
    end(&p);
}

static void waiting_claim(struct pair *p, unsigned i, const char *class)
{
    object(p, BH_KIND_PERSISTENTVOLUMECLAIM, "default", bh_arena_printf(&p->a, "c%u", i),
           bh_arena_printf(&p->a,
                           "{'metadata':{'name':'c%u','namespace':'default','uid':'u%u',"
                           "'resourceVersion':'1'},'spec':{'storageClassName':'%s','accessModes':["
                           "'ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}",
                           i, i, class));
}

static void class(struct pair *p, const char *name, const char *provisioner, const char *more)
{
    object(p, BH_KIND_STORAGECLASS, "", name,
           bh_arena_printf(&p->a,
                           "{'metadata':{'name':'%s'},'provisioner':'%s','volumeBindingMode':"
                           "'WaitForFirstConsumer'%s}",
                           name, provisioner, more));
}

/* A volume of class local that nobody has yet, in a zone; claim: whom it is for, or "". */
static void free_volume(struct pair *p, unsigned i, const char *zone, const char *for_claim)
{
    const char *name = bh_arena_printf(&p->a, "free%u", i);

    object(p, BH_KIND_PERSISTENTVOLUME, "", name,
           bh_arena_printf(
               &p->a,
               "{'metadata':{'name':'%s','resourceVersion':'1'},'spec':{'storageClassName':'local',"
               "'accessModes':['ReadWriteOnce'],'capacity':{'storage':'%uGi'},'local':{'path':'/d'}"
               "%s,'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
               "'topology.kubernetes.io/zone','operator':'In','values':['%s']}]}]}}},"
               "'status':{'phase':'Available'}}",
               name, i + 1, for_claim, zone));
}

/* Claims whose volume is found, or made, for the node. */
static void test_waiting(void)
{
    static const char zone_b[] = ",'allowedTopologies':[{'matchLabelExpressions':[{'key':"
                                 "'topology.kubernetes.io/zone','values':['b']}]}]";
    struct pair p;

    begin(&p);
    class(&p, "any", "d", "");
    class(&p, "b", "d", zone_b);
    class(&p, "local", "kubernetes.io/no-provisioner", "");
    for (unsigned i = 0; i < 12; i++) {
        waiting_claim(&p, i, i % 2 ? "b" : "any");
        const char *node = place(&p, bh_arena_printf(&p.a, "p%u", i), volumes(&p, i), true);
        CU_ASSERT_FATAL(*node);
        CU_ASSERT(i % 2 == 0 || node[2] % 2 == 0);
    }
    for (unsigned i = 20; i < 26; i++)
        waiting_claim(&p, i, "local");
    FX_STR(place(&p, "none", volumes(&p, 20), false), "");
    for (unsigned i = 0; i < 3; i++)
        free_volume(&p, i, i == 1 ? "b" : "a", "");
    for (unsigned i = 20; i < 23; i++) {
        const char *node = place(&p, bh_arena_printf(&p.a, "l%u", i), volumes(&p, i), true);
        CU_ASSERT(*node);
    }
    FX_STR(place(&p, "taken", volumes(&p, 23), false), "");
    free_volume(&p, 7, "b", ",'claimRef':{'namespace':'default','name':'c24'}");
    FX_STR(place(&p, "theirs", volumes(&p, 23), false), "");
    const char *node = place(&p, "theirs", volumes(&p, 24), false);
    CU_ASSERT(*node && node[2] % 2 == 0);
    object(&p, BH_KIND_PERSISTENTVOLUME, "", "free7", NULL);
    FX_STR(place(&p, "lost", volumes(&p, 24), false), "");
    free_volume(&p, 8, "a", "");
    CU_ASSERT(*place(&p, "new", volumes(&p, 23), true));
    end(&p);
}

/* A nominated pod's volume takes a place as well, where its priority is not lower. */
static void test_nominated(void)
{
    struct pair p;

    begin(&p);
    for (unsigned i = 0; i < NODES; i++)
        limit(&p, bh_arena_printf(&p.a, "n%02u", i), "d", i == 4);
    claim(&p, 0, "h0", "", "");
    claim(&p, 1, "h1", "", "");
    for (unsigned i = 0; i < 3; i++)
        FX_STR(place(&p, "x", volumes(&p, 0), false), "n04");
    for (unsigned i = 0; i < 2; i++) {
        struct fx *f = i ? &p.f : &p.v;
        struct fx_pod q = fx_pod(f, "promised", "'cpu':'100m'",
                                 bh_arena_printf(&p.a, "'priority':5,%s", volumes(&p, 1)));
        const struct bh_pending pending = {.pod = q.rec, .shape = q.shape};
        bh_engine_nominate(f->e, &pending, bh_sym_internc(bh_engine_symtab(f->e), "n04"));
    }
    FX_STR(place(&p, "y", volumes(&p, 0), false), "");
    FX_STR(place(&p, "same", volumes(&p, 1), false), "n04"); /* the promised one's own volume */
    for (unsigned i = 0; i < NODES;
         i++) /* now there is room everywhere, but for the promised one */
        limit(&p, bh_arena_printf(&p.a, "n%02u", i), "d", 1);
    CU_ASSERT(*place(&p, "elsewhere", volumes(&p, 0), false));
    FX_STR(place(&p, "z", bh_arena_printf(&p.a, "'priority':6,%s", volumes(&p, 0)), false), "n00");
    end(&p);
}

BH_TESTS("scheduler/engine/overlay", {"pods with different claims share kept results", test_shared},
         {"room for volumes follows limits, volumes, claims and attachments", test_room},
         {"nodes and overrun logs", test_rows},
         {"volumes that reach some nodes only", test_narrowed},
         {"claims that wait for their first consumer", test_waiting},
         {"nominated pods' volumes", test_nominated})
