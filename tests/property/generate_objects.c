/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/generate_objects.c - nodes and everything that is neither node nor pod
 *
 * Names come from small pools, so that objects find each other and are replaced by later ones.
 */
#include "tests/property/generate.h"

#define DRIVER "csi.example.com"
#define GPU    "gpu.example.com"

/* ---- nodes ----------------------------------------------------------------------------------- */

static const char *taints(struct gen *g)
{
    if (!has(g, F_TAINTS) || chance(g, 60))
        return "";
    return ONE(g, ",'unschedulable':true", ",'taints':[{'key':'a','effect':'NoSchedule'}]",
               ",'taints':[{'key':'a','value':'1','effect':'NoExecute'}]",
               ",'taints':[{'key':'a','effect':'PreferNoSchedule'}]",
               ",'taints':[{'key':'b','value':'1','effect':'PreferNoSchedule'},{'key':'b','value':"
               "'2','effect':'PreferNoSchedule'}]",
               ",'taints':[{'key':'b','value':'1','effect':'NoSchedule'},{'key':'a','effect':"
               "'PreferNoSchedule'}]",
               ",'unschedulable':true,'taints':[{'key':'node.kubernetes.io/unschedulable','effect':"
               "'NoSchedule'}]");
}

static const char *allocatable(struct gen *g)
{
    if (has(g, F_ODD) && chance(g, 15))
        return ONE(g, "'cpu':'0','memory':'0','pods':'5'", "'cpu':'0.5','memory':'1e9','pods':'3'",
                   "'pods':'4'", "'cpu':'4','memory':'8Ei','pods':'10'",
                   "'cpu':'100E','memory':'4Gi','pods':'3','kubernetes.io/odd':'2'",
                   "'cpu':'2','memory':'3000000000','pods':'0'", "",
                   "'cpu':'1930m','memory':'2Gi','pods':'4','attachable-volumes-x':'1'");
    return T(g, "'cpu':'%s','memory':'%s','pods':'%u'%s%s%s",
             ONE(g, "1", "2", "4", "500m", "1930m", "8"), ONE(g, "1Gi", "4Gi", "8Gi", "3800Mi"),
             1 + below(g, 10),
             ONE(g, ",'ephemeral-storage':'10Gi'", ",'ephemeral-storage':'1Gi'", ""),
             ONE(g, "", "", ",'example.com/gpu':'4'", ",'example.com/gpu':'1'",
                 ",'example.com/gpu':'0'"),
             ONE(g, "", ",'hugepages-2Mi':'64Mi'", ",'hugepages-2Mi':'0'"));
}

static const char *node_labels(struct gen *g, unsigned i)
{
    const char *l = T(g, "'kubernetes.io/hostname':'n%u'", i);

    if (chance(g, 88))
        l = T(g, "%s,'topology.kubernetes.io/zone':'z%u'", l, below(g, 3));
    if (chance(g, 60))
        l = T(g, "%s,'topology.kubernetes.io/region':'re%u'", l, below(g, 2));
    if (chance(g, 70))
        l = T(g, "%s,'disk':'%s'", l, ONE(g, "ssd", "hdd"));
    if (chance(g, 60))
        l = T(g, "%s,'rack':'r%u'", l, below(g, 4));
    if (chance(g, 50))
        l = T(g, "%s,'gen':'%s'", l, ONE(g, "1", "3", "5", "7", "x"));
    return l;
}

static const char *images(struct gen *g)
{
    if (!has(g, F_IMAGES) || chance(g, 40))
        return "";
    return T(g,
             ",'images':[{'names':['%s','%s'],'sizeBytes':%u000000},{'names':['img/c:latest'],"
             "'sizeBytes':%u000000}]",
             ONE(g, "img/a:1", "img/b:1"), ONE(g, "img/b:1", "img/d@sha256:1", "img/c:latest"),
             20 + below(g, 1500), 1 + below(g, 900));
}

const char *node_text(struct gen *g, unsigned i)
{
    const char *more = "";

    if (has(g, F_FEATURES))
        more = ONE(
            g, "", ",'declaredFeatures':['RestartAllContainersOnContainerExits']",
            ",'declaredFeatures':['GuaranteedQoSPodCPUResize','UserNamespacesHostNetworkSupport',"
            "'RestartAllContainersOnContainerExits']",
            ",'declaredFeatures':['UserNamespacesHostNetworkSupport']");
    return T(
        g,
        "{'apiVersion':'v1','kind':'Node','metadata':{'name':'n%u','uid':'u-n%u','labels':{%s},"
        "'annotations':{'x':'%u'}},'spec':{'podCIDR':''%s},'status':{'allocatable':{%s},"
        "'conditions':[{'type':'Ready','status':'%s'}]%s%s}}",
        i, i, node_labels(g, i), below(g, 2), taints(g), allocatable(g), ONE(g, "True", "False"),
        images(g), more);
}

/* ---- storage --------------------------------------------------------------------------------- */

static const char *const classes[] = {
    "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'imm'},"
    "'provisioner':'" DRIVER "','volumeBindingMode':'Immediate'}",
    "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'wait'},"
    "'provisioner':'" DRIVER "','volumeBindingMode':'WaitForFirstConsumer'}",
    "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'zonal'},"
    "'provisioner':'" DRIVER "','volumeBindingMode':'WaitForFirstConsumer','allowedTopologies':[{"
    "'matchLabelExpressions':[{'key':'topology.kubernetes.io/zone','values':['z0','z1']}]}]}",
    "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'local'},"
    "'provisioner':'kubernetes.io/no-provisioner','volumeBindingMode':'WaitForFirstConsumer'}",
    "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'zonal'},"
    "'provisioner':'" DRIVER "','volumeBindingMode':'WaitForFirstConsumer','allowedTopologies':[{"
    "'matchLabelExpressions':[{'key':'topology.kubernetes.io/zone','values':['z2']}]}]}",
};

static const char *storage_class(struct gen *g)
{
    return ONE(g, "imm", "wait", "wait", "zonal", "local", "local", "absent", "");
}

/* The claim that the ephemeral volume controller makes for a pod. */
static const char *ephemeral_claim(struct gen *g)
{
    const struct gen_pod *p = &g->pods[below(g, g->n_pods)];

    return T(
        g,
        "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'%s-v',"
        "'namespace':'%s','uid':'u-%s-v','resourceVersion':'%u','ownerReferences':[{"
        "'apiVersion':'v1','kind':'Pod','name':'%s','uid':'u-%s-%u','controller':true}]},'spec':"
        "{'accessModes':['ReadWriteOnce'],'volumeMode':'Filesystem','storageClassName':'wait',"
        "'resources':{'requests':{'storage':'1Gi'}}},'status':{'phase':'Pending'}}",
        p->name, p->t->namespace_, p->name, ++g->serial, p->name, p->name, p->uid + chance(g, 10));
}

static const char *claim(struct gen *g)
{
    unsigned i = below(g, 8);
    const char *meta = "", *spec = "", *phase = "Pending";

    switch (below(g, 8)) {
    case 0:
    case 1:
    case 2:
        meta = ",'annotations':{'pv.kubernetes.io/bind-completed':'yes'}";
        spec = T(g, ",'volumeName':'pv%u'", chance(g, 80) ? i : below(g, 8));
        phase = "Bound";
        break;
    case 3:
        meta = T(g, ",'annotations':{'volume.kubernetes.io/selected-node':'%s'}", any_node(g));
        break;
    case 4:
        if (chance(g, 30))
            phase = "Lost";
        else if (chance(g, 30))
            meta = ",'deletionTimestamp':'2029-01-01T00:00:00Z'";
        break;
    default:
        break;
    }
    return T(
        g,
        "{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'c%u',"
        "'namespace':'%s','uid':'u-c%u','resourceVersion':'%u'%s},'spec':{'accessModes':['%s'],"
        "'volumeMode':'Filesystem','storageClassName':'%s','resources':{'requests':{"
        "'storage':'%uGi'}}%s},'status':{'phase':'%s'}}",
        i, any_namespace(g), i, ++g->serial, meta,
        ONE(g, "ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"),
        storage_class(g), 1 + below(g, 8), spec, phase);
}

static const char *volume_source(struct gen *g, unsigned i)
{
    return chance(g, 75)
               ? T(g, "'csi':{'driver':'" DRIVER "','volumeHandle':'h%u'}", i)
               : ONE(g, "'local':{'path':'/d'}", "'awsElasticBlockStore':{'volumeID':'vol-1'}",
                     "'gcePersistentDisk':{'pdName':'pd-1'}");
}

static const char *volume(struct gen *g)
{
    unsigned i = below(g, 8);
    const char *affinity = "", *ref = "", *labels = "";

    if (chance(g, 50))
        affinity = T(g,
                     ",'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[%s]"
                     "}]}}",
                     node_requirement(g));
    if (chance(g, 45))
        ref = T(g, ",'claimRef':{'namespace':'%s','name':'c%u','uid':'u-c%u'}", any_namespace(g), i,
                i);
    if (chance(g, 35))
        labels = ONE(g, ",'labels':{'topology.kubernetes.io/zone':'z0'}",
                     ",'labels':{'topology.kubernetes.io/zone':'z1__z2'}",
                     ",'labels':{'topology.kubernetes.io/region':'re1'}",
                     ",'labels':{'failure-domain.beta.kubernetes.io/zone':'z1'}");
    return T(
        g,
        "{'apiVersion':'v1','kind':'PersistentVolume','metadata':{'name':'pv%u','uid':'u-pv%u',"
        "'resourceVersion':'%u'%s},'spec':{'capacity':{'storage':'%uGi'},'accessModes':["
        "'ReadWriteOnce'%s],'volumeMode':'Filesystem','storageClassName':'%s',%s%s%s},'status':"
        "{'phase':'%s'}}",
        i, i, ++g->serial, labels, 1 + below(g, 10),
        chance(g, 50) ? ",'ReadWriteMany','ReadWriteOncePod'" : "", storage_class(g),
        volume_source(g, i), affinity, ref, *ref ? "Bound" : "Available");
}

static const char *storage_text(struct gen *g)
{
    switch (below(g, 12)) {
    case 0:
        return classes[below(g, BH_ARRAY_LEN(classes))];
    case 1:
    case 2:
        return T(g,
                 "{'apiVersion':'storage.k8s.io/v1','kind':'CSINode','metadata':{'name':'%s'%s},"
                 "'spec':{'drivers':[{'name':'" DRIVER "','nodeID':'x','topologyKeys':["
                 "'topology.kubernetes.io/zone']%s}]}}",
                 any_node(g),
                 chance(g, 30) ? ",'annotations':{'storage.alpha.kubernetes.io/migrated-plugins':"
                                 "'kubernetes.io/aws-ebs,kubernetes.io/gce-pd'}"
                               : "",
                 chance(g, 70) ? T(g, ",'allocatable':{'count':%u}", below(g, 4)) : "");
    case 3:
        return T(g,
                 "{'apiVersion':'storage.k8s.io/v1','kind':'CSIDriver','metadata':{'name':'" DRIVER
                 "'},'spec':{'storageCapacity':%s}}",
                 ONE(g, "true", "false"));
    case 4:
        return T(g,
                 "{'apiVersion':'storage.k8s.io/v1','kind':'CSIStorageCapacity','metadata':{'name':"
                 "'cap%u','namespace':'default'},'nodeTopology':%s,'storageClassName':'%s',"
                 "'capacity':'%uGi'%s}",
                 below(g, 4),
                 chance(g, 25)
                     ? "{}"
                     : T(g, "{'matchLabels':{'topology.kubernetes.io/zone':'z%u'}}", below(g, 3)),
                 ONE(g, "wait", "zonal"), below(g, 10),
                 chance(g, 30) ? ",'maximumVolumeSize':'3Gi'" : "");
    case 5:
        return T(g,
                 "{'apiVersion':'storage.k8s.io/v1','kind':'VolumeAttachment','metadata':{'name':"
                 "'va%u'},'spec':{'attacher':'" DRIVER "','nodeName':'%s','source':{"
                 "'persistentVolumeName':'pv%u'}},'status':{'attached':true}}",
                 below(g, 4), any_node(g), below(g, 8));
    case 6:
    case 7:
    case 8:
        return volume(g);
    default:
        return g->n_pods && chance(g, 20) ? ephemeral_claim(g) : claim(g);
    }
}

const char *pod_volumes(struct gen *g, const char *ns)
{
    (void)ns;
    if (!has(g, F_VOLUMES) || chance(g, 55))
        return "";
    switch (below(g, 8)) {
    case 0:
        return T(g,
                 ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c%u'}},{'name':'w',"
                 "'persistentVolumeClaim':{'claimName':'c%u'}}]",
                 below(g, 8), below(g, 8));
    case 1:
        return ONE(
            g, ",'volumes':[{'name':'v','gcePersistentDisk':{'pdName':'pd-1'}}]",
            ",'volumes':[{'name':'v','gcePersistentDisk':{'pdName':'pd-1','readOnly':true}}]",
            ",'volumes':[{'name':'v','awsElasticBlockStore':{'volumeID':'vol-1'}}]",
            ",'volumes':[{'name':'v','iscsi':{'targetPortal':'p','iqn':'i','lun':0}}]",
            ",'volumes':[{'name':'v','rbd':{'monitors':['m1','m2'],'image':'i'}}]");
    case 2:
        return ",'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'spec':{"
               "'accessModes':['ReadWriteOnce'],'storageClassName':'wait','resources':{'requests':{"
               "'storage':'1Gi'}}}}}}]";
    case 3:
        return ",'volumes':[{'name':'v','csi':{'driver':'" DRIVER
               "'}},{'name':'e','emptyDir':{}},{'name':'m','configMap':{'name':'m'}}]";
    default:
        return T(g, ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c%u'}}]",
                 below(g, 8));
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

static const char *device(struct gen *g, unsigned i)
{
    const char *more = "";

    if (chance(g, 10))
        more = T(g, ",'taints':[{'key':'t','value':'1','effect':'%s'}]",
                 ONE(g, "NoSchedule", "NoExecute"));
    else if (chance(g, 15))
        return T(g,
                 "{'name':'gpu-%u','allowMultipleAllocations':true,'attributes':{'model':{'string':"
                 "'a100'}},'capacity':{'memory':{'value':'80Gi'%s}}}",
                 i,
                 ONE(g, "", ",'requestPolicy':{'default':'10Gi','validValues':['10Gi','40Gi']}",
                     ",'requestPolicy':{'default':'10Gi','validRange':{'min':'10Gi','max':'60Gi',"
                     "'step':'10Gi'}}"));
    else if (chance(g, 12))
        more =
            T(g, ",'consumesCounters':[{'counterSet':'set','counters':{'slices':{'value':'%u'}}}]",
              1 + below(g, 3));
    return T(
        g,
        "{'name':'gpu-%u','attributes':{'model':{'string':'%s'},'numa':{'int':%u}%s},'capacity':"
        "{'memory':{'value':'%uGi'}}%s}",
        i, ONE(g, "a100", "h100"), below(g, 2),
        chance(g, 80) ? T(g, ",'fast':{'bool':%s}", ONE(g, "true", "false")) : "",
        40 * (1 + below(g, 2)), more);
}

static const char *slice(struct gen *g)
{
    unsigned i = below(g, g->n_nodes), n = 1 + below(g, 4);
    const char *devices = device(g, 0), *where, *pool, *what;
    bool sets = chance(g, 20); /* of counters, which stand in a slice of their own */

    for (unsigned k = 1; k < n; k++)
        devices = T(g, "%s,%s", devices, device(g, k));
    if (chance(g, 80)) {
        where = T(g, "'nodeName':'n%u'", i);
        pool = T(g, "n%u", i);
    } else {
        where = chance(g, 50)
                    ? "'allNodes':true"
                    : T(g, "'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[%s]}]}",
                        node_requirement(g));
        pool = "net";
    }
    what = sets ? "'sharedCounters':[{'name':'set','counters':{'slices':{'value':'4'}}}]"
                : T(g, "'devices':[%s]", devices);
    bool two = (sets || strstr(devices, "consumesCounters")) == chance(g, 95);
    return T(
        g,
        "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'s-%s-%s'"
        "},'spec':{'driver':'" GPU "',%s,'pool':{'name':'%s','generation':%u,"
        "'resourceSliceCount':%u},%s}}",
        pool, sets ? "c" : ONE(g, "0", "0", "0", "0", "1"), where, pool, chance(g, 85) ? 1 : 2,
        two ? 2 : 1, what);
}

static const char *cel(struct gen *g)
{
    return ONE(g, "device.attributes[`" GPU "`].model == `h100`",
               "device.attributes[`" GPU "`].numa == 0 && device.driver == `" GPU "`",
               "device.capacity[`" GPU "`].memory.compareTo(quantity(`60Gi`)) > 0",
               "device.attributes[`" GPU "`].fast", "device.driver.startsWith(`gpu`)",
               "`model` in device.attributes[`" GPU "`]",
               "device.attributes[`" GPU "`].absent == 1",
               "device.allowMultipleAllocations == true");
}

static const char *exact_request(struct gen *g, bool sub)
{
    const char *more = "";

    if (chance(g, 45))
        more = T(g, ",'selectors':[{'cel':{'expression':'%s'}}]", cel(g));
    if (chance(g, 15))
        more = T(g, "%s,'tolerations':[{'key':'t','operator':'Exists'}]", more);
    if (chance(g, 15))
        more = T(g, "%s,'capacity':{'requests':{'memory':'%uGi'}}", more, 15 + 25 * below(g, 2));
    if (!sub && chance(g, 5))
        more = T(g, "%s,'adminAccess':true", more);
    return T(g, "'deviceClassName':'%s','allocationMode':%s%s", ONE(g, "gpu", "gpu", "any", "nope"),
             chance(g, 10) ? "'All'" : T(g, "'ExactCount','count':%u", 1 + below(g, 2)), more);
}

static const char *claim_spec(struct gen *g)
{
    const char *more = "", *first = T(g, "'exactly':{%s}", exact_request(g, false));

    if (chance(g, 15))
        first = T(g, "'firstAvailable':[{'name':'x',%s},{'name':'y',%s}]", exact_request(g, true),
                  exact_request(g, true));
    if (chance(g, 25))
        more = T(g, ",{'name':'r1','exactly':{%s}}", exact_request(g, false));
    return T(g, "{'devices':{'requests':[{'name':'r0',%s}%s]%s}}", first, more,
             chance(g, 25)
                 ? ONE(g, ",'constraints':[{'matchAttribute':'" GPU "/numa'}]",
                       ",'constraints':[{'matchAttribute':'" GPU "/model','requests':['r0']}]",
                       ",'constraints':[{'distinctAttribute':'" GPU "/numa'}]")
                 : "");
}

static const char *resource_claim(struct gen *g)
{
    unsigned i = below(g, 6), node = below(g, g->n_nodes);
    const char *status = "";

    if (chance(g, 25))
        status =
            T(g,
              ",'status':{'allocation':{'devices':{'results':[{'request':'r0','driver':'" GPU
              "','pool':'n%u','device':'gpu-%u'}]},'nodeSelector':{'nodeSelectorTerms':[{"
              "'matchFields':[{'key':'metadata.name','operator':'In','values':['n%u']}]}]}}%s}",
              node, below(g, 3), node,
              chance(g, 50) ? ",'reservedFor':[{'resource':'pods','name':'somebody','uid':"
                              "'u-somebody'}]"
                            : "");
    return T(g,
             "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':{'name':'rc%u',"
             "'namespace':'%s','uid':'u-rc%u','resourceVersion':'%u'},'spec':%s%s}",
             i, any_namespace(g), i, ++g->serial, claim_spec(g), status);
}

static const char *device_text(struct gen *g)
{
    switch (below(g, 9)) {
    case 0:
        return T(g,
                 "{'apiVersion':'resource.k8s.io/v1','kind':'DeviceClass','metadata':{'name':'%s'},"
                 "'spec':{%s}}",
                 ONE(g, "gpu", "any"),
                 ONE(g, "'selectors':[{'cel':{'expression':'device.driver == `" GPU "`'}}]",
                     "'extendedResourceName':'example.com/gpu'", ""));
    case 1:
        return T(g,
                 "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaimTemplate','metadata':{"
                 "'name':'t%u','namespace':'%s'},'spec':{'spec':%s}}",
                 below(g, 2), any_namespace(g), claim_spec(g));
    case 2:
    case 3:
    case 4:
        return slice(g);
    default:
        return resource_claim(g);
    }
}

const char *pod_claims(struct gen *g, const char *ns, const char **ret_status)
{
    (void)ns;
    if (!has(g, F_DEVICES) || chance(g, 55))
        return "";
    if (chance(g, 15)) {
        *ret_status = chance(g, 70) ? T(g,
                                        ",'resourceClaimStatuses':[{'name':'d','resourceClaimName':"
                                        "'rc%u'}]",
                                        below(g, 6))
                                    : "";
        return T(g, ",'resourceClaims':[{'name':'d','resourceClaimTemplateName':'t%u'}]",
                 below(g, 2));
    }
    return chance(g, 25)
               ? T(g,
                   ",'resourceClaims':[{'name':'d','resourceClaimName':'rc%u'},{'name':"
                   "'e','resourceClaimName':'rc%u'}]",
                   below(g, 6), below(g, 6))
               : T(g, ",'resourceClaims':[{'name':'d','resourceClaimName':'rc%u'}]", below(g, 6));
}

/* ---- the rest -------------------------------------------------------------------------------- */

static const char *namespace_text(struct gen *g)
{
    return T(g,
             "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'%s','uid':'u-ns','labels':{"
             "%s}}}",
             ONE(g, "default", "ns1", "ns2"), ONE(g, "'team':'x'", "'team':'y'", ""));
}

static const char *workload_text(struct gen *g)
{
    const char *ns = any_namespace(g);

    switch (below(g, 4)) {
    case 0:
        return T(g,
                 "{'apiVersion':'apps/v1','kind':'StatefulSet','metadata':{'name':'%s','namespace':"
                 "'%s'},'spec':{'selector':%s}}",
                 ONE(g, "a", "b"), ns, label_selector(g));
    case 1:
        return T(g,
                 "{'apiVersion':'apps/v1','kind':'ReplicaSet','metadata':{'name':'%s','namespace':"
                 "'%s'},'spec':{'selector':%s}}",
                 ONE(g, "a", "b"), ns, label_selector(g));
    default:
        return T(g,
                 "{'apiVersion':'v1','kind':'Service','metadata':{'name':'s%u','namespace':'%s'},"
                 "'spec':{'selector':{%s}}}",
                 below(g, 3), ns, ONE(g, "'app':'a'", "'app':'b'", "'app':'a','tier':'front'", ""));
    }
}

static const char *budget_text(struct gen *g)
{
    return T(g,
             "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'b%u',"
             "'namespace':'%s'},'spec':{'minAvailable':1,'selector':%s},'status':{"
             "'disruptionsAllowed':%u}}",
             below(g, 3), any_namespace(g), label_selector(g), below(g, 3));
}

const char *other_text(struct gen *g)
{
    for (unsigned tries = 0; tries < 40; tries++) {
        switch (below(g, 10)) {
        case 0:
            if (has(g, F_NAMESPACES))
                return namespace_text(g);
            break;
        case 1:
            if (has(g, F_SERVICES))
                return workload_text(g);
            break;
        case 2:
            if (has(g, F_PRIORITY))
                return budget_text(g);
            break;
        case 3:
        case 4:
        case 5:
            if (has(g, F_VOLUMES))
                return storage_text(g);
            break;
        default:
            if (has(g, F_DEVICES))
                return device_text(g);
            break;
        }
    }
    return NULL;
}

void starting_objects(struct gen *g)
{
    for (unsigned i = 0; has(g, F_VOLUMES) && i < 4; i++)
        other_op(g, classes[i]);
    for (unsigned i = 0; has(g, F_VOLUMES) && i < 8; i++)
        other_op(g, storage_text(g));
    for (unsigned i = 0; has(g, F_NAMESPACES) && i < 2; i++)
        other_op(g, namespace_text(g));
    for (unsigned i = 0; has(g, F_DEVICES) && i < 10; i++)
        other_op(g, device_text(g));
    for (unsigned i = 0; i < 3; i++) {
        const char *t = other_text(g);
        if (t)
            other_op(g, t);
    }
}
