/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles that leave single points of a plugin out: as upstream, it does without or says what it
 * misses.
 */
#include "scheduler/plugins/registry.h"
#include "tests/unit/scheduler/engine/fixture.h"

#define WITHOUT(list)      "{'schedulerName':'default-scheduler','plugins':{" list "}}"
#define OFF(point, plugin) "'" point "':{'disabled':[{'name':'" plugin "'}]}"

/* A pod that every plugin looks at: ports, a claim with a zone, affinity, spreading, devices. */
static const char spec[] =
    "'priority':5,'containers':[{'name':'c','image':'i','ports':[{'containerPort':1,'hostPort':80}]"
    ",'resources':{'requests':{'cpu':'1'}}}],"
    "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}},"
    "{'name':'e','awsElasticBlockStore':{'volumeID':'vol-1'}}],"
    "'resourceClaims':[{'name':'d','resourceClaimName':'d'}],"
    "'hostNetwork':true,'hostUsers':false,"
    "'topologySpreadConstraints':[{'maxSkew':1,'whenUnsatisfiable':'DoNotSchedule','topologyKey':"
    "'topology.kubernetes.io/zone','labelSelector':{}},{'maxSkew':1,'whenUnsatisfiable':"
    "'ScheduleAnyway','topologyKey':'topology.kubernetes.io/zone','labelSelector':{}}],"
    "'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
    "'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'a':'b'}}}]},"
    "'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
    "'matchExpressions':[{'key':'topology.kubernetes.io/zone','operator':'Exists'}]}]}}}";

static void put(struct fx *f, enum bh_kind kind, const char *ns, const char *name, const char *json)
{
    struct bh_buf b = {0};

    bh_pb_pack(&b, fx_message(f, bh_kinds[kind].desc, fx_json(f, json)));
    CU_ASSERT(bh_engine_put_object(f->e, kind, ns, name, bh_buf_str(&b), b.n, NULL) == 0);
    bh_buf_fini(&b);
}

static void begin(struct fx *f, const char *profile)
{
    fx_init(f, profile);
    for (unsigned i = 0; i < 3; i++)
        fx_node(f, (const char *[]){"a", "b", "c"}[i], "'cpu':'4','memory':'8Gi','pods':'9'",
                "'topology.kubernetes.io/zone':'z'", "",
                "'declaredFeatures':['UserNamespacesHostNetworkSupport']");
    put(f, BH_KIND_PERSISTENTVOLUME, "", "v",
        "{'metadata':{'name':'v','labels':{'topology.kubernetes.io/zone':'z'}},'spec':{'claimRef':{"
        "'name':'c','namespace':'default'}}}");
    put(f, BH_KIND_PERSISTENTVOLUMECLAIM, "default", "c",
        "{'metadata':{'name':'c','namespace':'default','annotations':{'pv.kubernetes.io/"
        "bind-completed':''}},'spec':{'volumeName':'v'}}");
    put(f, BH_KIND_RESOURCECLAIM, "default", "d",
        "{'metadata':{'name':'d','namespace':'default','uid':'u'},'spec':{'devices':{}}}");
    put(f, BH_KIND_CSINODE, "", "a",
        "{'metadata':{'name':'a'},'spec':{'drivers':[{'name':'ebs.csi.aws.com','allocatable':{"
        "'count':1}}]}}");
    fx_place(f,
             fx_pod(f, "r", "'cpu':'1'",
                    "'volumes':[{'name':'e','awsElasticBlockStore':{"
                    "'volumeID':'vol-1'}}]"),
             "b");
}

static const char *outcome(struct fx *f, const struct bh_decision *d)
{
    const char *text = d->message ? bh_arena_strdup(&f->arena, d->message) : "";

    for (uint32_t i = 0; !*text && i < d->n_scores; i++)
        text = bh_arena_printf(&f->arena, "%s", fx_text(f, d->scores[i].node));
    return text;
}

static const struct bh_decision *rich(struct fx *f)
{
    return fx_schedule(f, fx_pod_full(f, "p", "", spec, ""));
}

#define MISSING(plugin, text)  "running \"" plugin "\" filter plugin: " text
#define UNSCORED(plugin, text) "running Score plugins: plugin \"" plugin "\" failed with: " text

static void test_errors(void)
{
    static const struct {
        const char *profile, *message;
    } rows[] = {
        {NULL, ""},
        {WITHOUT(OFF("preFilter", "NodeAffinity")), ""},
        {WITHOUT(OFF("preFilter", "NodePorts")),
         MISSING("NodePorts", "reading \"PreFilterNodePorts\" from cycleState: not found")},
        {WITHOUT(OFF("preFilter", "NodeResourcesFit")),
         MISSING("NodeResourcesFit",
                 "error reading \"PreFilterNodeResourcesFit\" from cycleState: not found")},
        {WITHOUT(OFF("preFilter", "VolumeRestrictions")),
         MISSING("VolumeRestrictions",
                 "cannot read \"PreFilterVolumeRestrictions\" from cycleState")},
        {WITHOUT(OFF("preFilter", "NodeVolumeLimits")), ""},
        {WITHOUT(OFF("preFilter", "VolumeBinding")), MISSING("VolumeBinding", "not found")},
        {WITHOUT(OFF("preFilter", "VolumeZone")), ""},
        {WITHOUT(OFF("preFilter", "PodTopologySpread")),
         MISSING("PodTopologySpread",
                 "reading \"PreFilterPodTopologySpread\" from cycleState: not found")},
        {WITHOUT(OFF("preFilter", "InterPodAffinity")),
         MISSING("InterPodAffinity",
                 "error reading \"PreFilterInterPodAffinity\" from cycleState: not found")},
        {WITHOUT(OFF("preFilter", "DynamicResources")), MISSING("DynamicResources", "not found")},
        {WITHOUT(OFF("preFilter", "DynamicResources") "," OFF("filter", "DynamicResources")),
         UNSCORED("DynamicResources", "not found")},
        {WITHOUT(OFF("preFilter", "NodeDeclaredFeatures")),
         MISSING("NodeDeclaredFeatures",
                 "error reading \"PreFilterNodeDeclaredFeatures\" from cycle-state: not found")},
        {WITHOUT(OFF("preScore", "TaintToleration")),
         UNSCORED("TaintToleration",
                  "failed to read \"PreScoreTaintToleration\" from cycleState: not found")},
        {WITHOUT(OFF("preScore", "NodeAffinity")), ""},
        {WITHOUT(OFF("preScore", "NodeResourcesFit")), ""},
        {WITHOUT(OFF("preScore", "PodTopologySpread")),
         UNSCORED("PodTopologySpread",
                  "error reading \"PreScorePodTopologySpread\" from cycleState: not found")},
        {WITHOUT(OFF("preScore", "InterPodAffinity")),
         UNSCORED("InterPodAffinity",
                  "failed to read \"PreScoreInterPodAffinity\" from cycleState: not found")},
        {WITHOUT(OFF("preScore", "NodeResourcesBalancedAllocation")), ""},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].profile);
        const struct bh_decision *d = rich(&f);
        FX_STR(d->message ? d->message : "", rows[i].message);
        if (!*rows[i].message)
            FX_STR(fx_verdict(&f, d, "b"), "Unschedulable: node(s) had no available disk");
        fx_fini(&f);
    }
}

/* Nothing falls over, whatever is missing, the first time and from kept results. */
static void test_every_point(void)
{
    static const char *const points[] = {"preEnqueue", "preFilter", "filter",  "postFilter",
                                         "preScore",   "score",     "reserve", "permit",
                                         "preBind",    "postBind"};

    for (unsigned i = 0; bh_plugins[i]; i++) {
        for (unsigned k = 0; k < BH_ARRAY_LEN(points); k++) {
            struct fx f;
            char profile[256];
            snprintf(profile, sizeof profile, WITHOUT("'%s':{'disabled':[{'name':'%s'}]}"),
                     points[k], bh_plugins[i]->name);
            begin(&f, profile);
            const char *first = outcome(&f, rich(&f));
            FX_STR(outcome(&f, rich(&f)), first);
            (void)fx_schedule(&f, fx_pod(&f, "q", "'cpu':'9'", "'priority':9"));
            fx_fini(&f);
        }
    }
}

BH_TESTS("scheduler/plugins/points", {"what misses its preparation", test_errors},
         {"every point of every plugin", test_every_point})
