/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/generate_pod.c - pods: every field that scheduling looks at
 */
#include "tests/property/generate.h"

/* ---- selectors ------------------------------------------------------------------------------- */

const char *label_selector(struct gen *g)
{
    switch (below(g, 10)) {
    case 0:
        return "{}";
    case 1:
        return "{'matchExpressions':[{'key':'tier','operator':'Exists'}]}";
    case 2:
        return T(g, "{'matchExpressions':[{'key':'app','operator':'NotIn','values':['%s']}]}",
                 ONE(g, "a", "b", "c"));
    case 3:
        return T(g,
                 "{'matchLabels':{'app':'%s'},'matchExpressions':[{'key':'version','operator':"
                 "'DoesNotExist'}]}",
                 ONE(g, "a", "b"));
    case 4:
        return T(g, "{'matchExpressions':[{'key':'app','operator':'In','values':['a','%s']}]}",
                 ONE(g, "b", "c"));
    default:
        return T(g, "{'matchLabels':{'app':'%s'}}", ONE(g, "a", "b", "c"));
    }
}

const char *node_requirement(struct gen *g)
{
    switch (below(g, 9)) {
    case 0:
        return T(g, "{'key':'gen','operator':'%s','values':['%u']}", ONE(g, "Gt", "Lt"),
                 below(g, 8));
    case 1:
        return T(g, "{'key':'disk','operator':'%s'}", ONE(g, "Exists", "DoesNotExist"));
    case 2:
        return T(g, "{'key':'disk','operator':'NotIn','values':['%s']}", ONE(g, "ssd", "hdd"));
    case 3:
        return T(g, "{'key':'rack','operator':'In','values':['r1','r%u']}", below(g, 4));
    case 4:
        return T(g, "{'key':'kubernetes.io/hostname','operator':'%s','values':['%s','%s']}",
                 ONE(g, "In", "NotIn"), any_node(g), any_node(g));
    default:
        return T(g, "{'key':'topology.kubernetes.io/zone','operator':'%s','values':['z%u','z%u']}",
                 ONE(g, "In", "In", "In", "NotIn"), below(g, 3), below(g, 3));
    }
}

static const char *node_term(struct gen *g)
{
    const char *fields =
        T(g, "'matchFields':[{'key':'metadata.name','operator':'%s','values':['%s']}]",
          ONE(g, "In", "In", "NotIn"), any_node(g));

    switch (below(g, 8)) {
    case 0:
        return T(g, "{%s}", fields);
    case 1:
        return T(g, "{%s,'matchExpressions':[%s]}", fields, node_requirement(g));
    case 2:
        return has(g, F_ODD) ? "{}" : T(g, "{'matchExpressions':[%s]}", node_requirement(g));
    case 3:
        return T(g, "{'matchExpressions':[%s,%s]}", node_requirement(g), node_requirement(g));
    default:
        return T(g, "{'matchExpressions':[%s]}", node_requirement(g));
    }
}

static const char *node_affinity(struct gen *g)
{
    const char *req = "", *pref = "";

    if (!has(g, F_AFFINITY) || chance(g, 60))
        return "";
    if (chance(g, 55))
        req = T(g, "'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[%s]}",
                chance(g, 40) ? T(g, "%s,%s", node_term(g), node_term(g)) : node_term(g));
    if (chance(g, 45))
        pref = T(g,
                 "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':%u,'preference':{"
                 "'matchExpressions':[%s]}},{'weight':%u,'preference':%s}]",
                 1 + below(g, 100), node_requirement(g), 1 + below(g, 10),
                 chance(g, 80) ? T(g, "{'matchExpressions':[%s]}", node_requirement(g)) : "{}");
    return T(g, ",'nodeAffinity':{%s%s%s}", req, *req && *pref ? "," : "", pref);
}

/* ---- other pods ------------------------------------------------------------------------------ */

static const char *topology_key(struct gen *g)
{
    return ONE(g, "kubernetes.io/hostname", "topology.kubernetes.io/zone",
               "topology.kubernetes.io/zone", "rack", "disk");
}

static const char *pod_term(struct gen *g)
{
    const char *ns = "";

    if (has(g, F_NAMESPACES) && chance(g, 40))
        ns = ONE(g, ",'namespaceSelector':{}", ",'namespaceSelector':{'matchLabels':{'team':'x'}}",
                 ",'namespaces':['ns1']",
                 ",'namespaces':['ns1','ns2'],'namespaceSelector':{"
                 "'matchLabels':{'team':'y'}}",
                 ",'namespaceSelector':{'matchExpressions':[{'key':'team','operator':'NotIn',"
                 "'values':['x']}]}");
    if (chance(g, 6))
        return T(g, "{'topologyKey':'%s'%s}", topology_key(g), ns);
    return T(g, "{'labelSelector':%s,'topologyKey':'%s'%s}", label_selector(g), topology_key(g),
             ns);
}

static const char *pod_affinity_of(struct gen *g, const char *name)
{
    const char *req = "", *pref = "";

    if (chance(g, 70))
        return "";
    if (chance(g, 50))
        req = T(g, "'requiredDuringSchedulingIgnoredDuringExecution':[%s%s]", pod_term(g),
                chance(g, 25) ? T(g, ",%s", pod_term(g)) : "");
    if (!*req || chance(g, 40))
        pref = T(g,
                 "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':%u,"
                 "'podAffinityTerm':%s}]",
                 1 + below(g, 100), pod_term(g));
    return T(g, ",'%s':{%s%s%s}", name, req, *req && *pref ? "," : "", pref);
}

static const char *affinity(struct gen *g)
{
    const char *node = node_affinity(g), *pod = "", *anti = "";

    if (has(g, F_POD_AFFINITY)) {
        pod = pod_affinity_of(g, "podAffinity");
        anti = pod_affinity_of(g, "podAntiAffinity");
    }
    const char *all = T(g, "%s%s%s", node, pod, anti);
    return *all ? T(g, ",'affinity':{%s}", all + 1) : "";
}

static const char *spread_constraint(struct gen *g)
{
    bool hard = chance(g, 60);
    const char *more = "";

    if (hard && chance(g, 30))
        more = T(g, ",'minDomains':%u", 1 + below(g, 4));
    if (chance(g, 30))
        more = T(g, "%s,'nodeAffinityPolicy':'%s'", more, ONE(g, "Honor", "Ignore"));
    if (chance(g, 30))
        more = T(g, "%s,'nodeTaintsPolicy':'%s'", more, ONE(g, "Honor", "Ignore"));
    if (chance(g, 20))
        more = T(g, "%s,'matchLabelKeys':['%s']", more, ONE(g, "version", "tier", "absent"));
    if (chance(g, 92))
        more = T(g, "%s,'labelSelector':%s", more, label_selector(g));
    return T(g, "{'maxSkew':%u,'topologyKey':'%s','whenUnsatisfiable':'%s'%s}", 1 + below(g, 3),
             topology_key(g), hard ? "DoNotSchedule" : "ScheduleAnyway", more);
}

static const char *spread(struct gen *g)
{
    if (!has(g, F_SPREAD) || chance(g, 50))
        return "";
    return chance(g, 35) ? T(g, ",'topologySpreadConstraints':[%s,%s]", spread_constraint(g),
                             spread_constraint(g))
                         : T(g, ",'topologySpreadConstraints':[%s]", spread_constraint(g));
}

/* ---- containers ------------------------------------------------------------------------------ */

static const char *amounts(struct gen *g)
{
    if (has(g, F_ODD) && chance(g, 25))
        return ONE(g, "'cpu':'0.0004','memory':'1.5Gi'", "'cpu':'1e-1','memory':'100m'",
                   "'cpu':'1u','example.com/gpu':'1'", "'memory':'0.1Ki','ephemeral-storage':'1e9'",
                   "'cpu':'9223372036854775807'", "'memory':'1E','cpu':'2E'",
                   "'kubernetes.io/odd':'1'", "'storage':'5Gi','cpu':'100m'",
                   "'attachable-volumes-x':'1'", "'hugepages-1Gi':'0'", "'cpu':'-0'");
    if (has(g, F_CROWDED) && chance(g, 75))
        return ONE(g, "'cpu':'1'", "'cpu':'500m','memory':'1Gi'", "'cpu':'1500m'", "'memory':'2Gi'",
                   "'cpu':'700m','example.com/gpu':'1'");
    return ONE(g, "'cpu':'100m','memory':'128Mi'", "'cpu':'100m','memory':'128Mi'", "'cpu':'250m'",
               "", "'cpu':'1','memory':'1Gi'", "'cpu':'500m','memory':'64Mi'",
               "'cpu':'0','memory':'512Mi'", "'cpu':'500m','example.com/gpu':'1'",
               "'memory':'64Mi','hugepages-2Mi':'2Mi'", "'example.com/gpu':'2'",
               "'cpu':'1500m','memory':'2Gi','ephemeral-storage':'1Gi'",
               "'example.com/gpu':'0','cpu':'50m'", "'cpu':'2','memory':'100M'",
               chance(g, 20) ? "'cpu':'900','memory':'1Ti'" : "'cpu':'100m'");
}

static const char *ports(struct gen *g)
{
    if (!has(g, F_PORTS) || chance(g, 70))
        return "";
    return ONE(g, ",'ports':[{'containerPort':80,'hostPort':80}]",
               ",'ports':[{'containerPort':80,'hostPort':80,'hostIP':'10.0.0.1'}]",
               ",'ports':[{'containerPort':80,'hostPort':80,'protocol':'UDP'}]",
               ",'ports':[{'containerPort':53,'hostPort':53},{'containerPort':80}]",
               ",'ports':[{'containerPort':80,'hostPort':80,'hostIP':'10.0.0.2'},{"
               "'containerPort':81,'hostPort':53,'hostIP':'0.0.0.0'}]");
}

static const char *container(struct gen *g, const char *name, const char *more)
{
    const char *image =
        has(g, F_IMAGES) ? ONE(g, "img/a:1", "img/b:1", "img/c", "img/d@sha256:1") : "pause";
    const char *limits = chance(g, 15) ? ",'limits':{'cpu':'8','memory':'16Gi'}" : "";

    return T(g, "{'name':'%s','image':'%s','resources':{'requests':{%s}%s}%s%s}", name, image,
             amounts(g), limits, ports(g), more);
}

static const char *init_containers(struct gen *g)
{
    const char *always = ",'restartPolicy':'Always'";

    if (chance(g, 75))
        return "";
    switch (below(g, 4)) {
    case 0:
        return T(g, ",'initContainers':[%s]", container(g, "i0", ""));
    case 1:
        return T(g, ",'initContainers':[%s]", container(g, "i0", always));
    case 2:
        return T(g, ",'initContainers':[%s,%s]", container(g, "i0", always),
                 container(g, "i1", ""));
    default:
        return T(g, ",'initContainers':[%s,%s,%s]", container(g, "i0", ""),
                 container(g, "i1", always), container(g, "i2", ""));
    }
}

static const char *restart_rules(struct gen *g)
{
    return has(g, F_FEATURES) && chance(g, 30)
               ? ",'restartPolicyRules':[{'action':'RestartAllContainers','exitCodes':{'operator':"
                 "'In','values':[1]}}]"
               : "";
}

static const char *containers(struct gen *g)
{
    const char *first = container(g, "c0", restart_rules(g));

    return T(g, "'containers':[%s%s]%s%s%s", first,
             chance(g, 20) ? T(g, ",%s", container(g, "c1", "")) : "", init_containers(g),
             chance(g, 8) ? ",'overhead':{'cpu':'50m','memory':'32Mi'}" : "",
             has(g, F_ODD) && chance(g, 20)
                 ? ONE(g, ",'resources':{'requests':{'cpu':'1500m'}}",
                       ",'resources':{'requests':{'cpu':'2','memory':'3Gi'},'limits':{'cpu':'2'}}",
                       ",'resources':{'requests':{'hugepages-2Mi':'4Mi','memory':'1Gi'}}")
                 : "");
}

static const char *tolerations(struct gen *g)
{
    if (!has(g, F_TAINTS) || chance(g, 45))
        return "";
    return ONE(g, ",'tolerations':[{'key':'a','operator':'Exists'}]",
               ",'tolerations':[{'operator':'Exists'}]",
               ",'tolerations':[{'key':'b','value':'1','effect':'PreferNoSchedule'}]",
               ",'tolerations':[{'key':'b','operator':'Equal','value':'1','effect':'NoSchedule'},{"
               "'key':'a','operator':'Exists','effect':'PreferNoSchedule'}]",
               ",'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':'Exists',"
               "'effect':'NoSchedule'}]",
               ",'tolerations':[{'key':'a','operator':'Equal','value':'1','effect':'NoExecute',"
               "'tolerationSeconds':30}]",
               ",'tolerations':[{'key':'gen','operator':'Gt','value':'3'}]");
}

static const char *scheduler_name(struct gen *g)
{
    static const char *const names[] = {"default-scheduler", "other", "third"};

    return names[g->n_profiles > 1 ? below(g, g->n_profiles) : 0];
}

static const char *small_things(struct gen *g)
{
    const char *s = T(g, ",'schedulerName':'%s'", scheduler_name(g));

    if (has(g, F_PRIORITY) && chance(g, 80))
        s = T(g, "%s,'priority':%d", s, (int)below(g, has(g, F_CROWDED) ? 10 : 5) * 10 - 10);
    if (has(g, F_PRIORITY) && chance(g, has(g, F_CROWDED) ? 5 : 15))
        s = T(g, "%s,'preemptionPolicy':'Never'", s);
    if (has(g, F_AFFINITY) && chance(g, 12))
        s = T(g, "%s,'nodeSelector':{%s}", s,
              ONE(g, "'disk':'ssd'", "'topology.kubernetes.io/zone':'z1'",
                  "'disk':'hdd','rack':'r1'", "'absent':'x'"));
    if (has(g, F_FEATURES) && chance(g, 20))
        s = T(g, "%s,'hostNetwork':true,'hostUsers':false", s);
    return s;
}

void make_template(struct gen *g, struct template *t)
{
    const char *status = "";

    t->namespace_ = any_namespace(g);
    t->labels = T(g, "'app':'%s'%s%s", ONE(g, "a", "a", "b", "c"),
                  chance(g, 40) ? T(g, ",'tier':'%s'", ONE(g, "front", "back")) : "",
                  chance(g, 50) ? T(g, ",'version':'v%u'", below(g, 3)) : "");
    t->owner = has(g, F_SERVICES) && chance(g, 70)
                   ? T(g,
                       ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'%s','name':'%s','uid':"
                       "'u-o','controller':true}]",
                       ONE(g, "ReplicaSet", "ReplicaSet", "StatefulSet"), ONE(g, "a", "b"))
                   : "";
    t->spec = T(g, "%s%s%s%s%s%s%s", containers(g), small_things(g), affinity(g), tolerations(g),
                spread(g), pod_volumes(g, t->namespace_), pod_claims(g, t->namespace_, &status));
    t->status = status;
}

/* A running pod whose resources were or are being changed in place. */
static const char *resized(struct gen *g)
{
    if (!has(g, F_ODD) || chance(g, 70))
        return "";
    return ONE(g,
               ",'containerStatuses':[{'name':'c0','allocatedResources':{'cpu':'2','memory':'1Gi'},"
               "'resources':{'requests':{'cpu':'1','memory':'2Gi'}}}]",
               ",'containerStatuses':[{'name':'c0','allocatedResources':{'cpu':'10m'},'resources':{"
               "'requests':{'cpu':'10m'}}}],'conditions':[{'type':'PodResizePending','status':"
               "'True','reason':'Infeasible'}]",
               ",'containerStatuses':[{'name':'c0','resources':{'requests':{'cpu':'700m'}}}],"
               "'conditions':[{'type':'PodResizePending','status':'True','reason':'Deferred'}]");
}

const char *pod_text(struct gen *g, const struct gen_pod *p, const char *node,
                     const char *more_meta, const char *more_spec)
{
    const struct template *t = p->t;
    const char *status = t->status;

    /* every running pod began at another second: who began first decides between victims */
    if (node)
        status = T(g, "%s,'startTime':'2029-0%u-%02uT%02u:%02u:%02uZ'%s", status, 1 + g->serial % 9,
                   1 + (g->serial / 9) % 28, below(g, 24), below(g, 60), below(g, 60), resized(g));
    return T(g,
             "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s','namespace':'%s','uid':"
             "'u-%s-%u','resourceVersion':'%u','creationTimestamp':'2029-01-01T00:00:%02uZ',"
             "'labels':{%s}%s%s},'spec':{%s%s%s},'status':{%s}}",
             p->name, t->namespace_, p->name, p->uid, ++g->serial, p->uid % 60, t->labels, t->owner,
             more_meta, t->spec,
             p->group ? T(g, "%s,'schedulingGroup':{'podGroupName':'%s'}", more_spec, p->group)
                      : more_spec,
             node ? T(g, ",'nodeName':'%s'", node) : "", *status ? status + 1 : "");
}
