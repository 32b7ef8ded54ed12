/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/tables/test_tables.c - what kubectl's tables say about objects
 */
#include "simulator/tables/table.h"

#include "simulator/server/sim.h"
#include "tests/unit/harness.h"

#include <stdio.h>

/* 2026-01-01T00:10:00Z */
#define NOW_NS ((int64_t)1767226200 * 1000000000)

static struct bh_json *parse(struct bh_arena *a, const char *text)
{
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};

    if (bh_json_parse(a, text, strlen(text), BH_JSON_STRICT, &v, &err) < 0) {
        fprintf(stderr, "bad JSON in the test: %s\n", err.msg);
        abort();
    }
    return v;
}

/* Quotes in the expectation are single, to keep it readable. */
static void cells_are_at(int line, const char *kind, const char *obj, const char *want)
{
    const struct bh_sim_type *t = bh_sim_type_of_kind(NULL, kind);
    struct bh_arena a;
    struct bh_buf out = {0};
    char *text, *o;

    bh_arena_init(&a, 0);
    text = bh_arena_strdup(&a, want);
    o = bh_arena_strdup(&a, obj);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    for (char *c = o; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    bh_sim_table_cells(t, parse(&a, o), NOW_NS, &out);
    if (!bh_streq(bh_buf_str(&out), text))
        fprintf(stderr, "line %d\n got  %s\n want %s\n", line, bh_buf_str(&out), text);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&out), text);
    bh_buf_fini(&out);
    bh_arena_fini(&a);
}
#define cells_are(kind, obj, want) cells_are_at(__LINE__, kind, obj, want)
#define META                       "'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z'}"
#define META_GOING                                                                                 \
    "'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z',"                           \
    "'deletionTimestamp':'2026-01-01T00:09:00Z'}"
#define WIDE ",'<none>','<none>','<none>','<none>']"

static void duration_is(int64_t s, const char *want)
{
    struct bh_buf b = {0};

    bh_human_duration(&b, s);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), want);
    bh_buf_fini(&b);
}

static void test_duration(void)
{
    const int64_t m = 60, h = 3600, d = 86400, y = 365 * d;

    duration_is(-2, "<invalid>");
    duration_is(-1, "0s");
    duration_is(0, "0s");
    duration_is(119, "119s");
    duration_is(2 * m, "2m");
    duration_is(2 * m + 1, "2m1s");
    duration_is(10 * m - 1, "9m59s");
    duration_is(10 * m + 59, "10m");
    duration_is(3 * h - 1, "179m");
    duration_is(3 * h, "3h");
    duration_is(3 * h + m, "3h1m");
    duration_is(8 * h + m, "8h");
    duration_is(48 * h - 1, "47h");
    duration_is(2 * d, "2d");
    duration_is(2 * d + h, "2d1h");
    duration_is(8 * d + 5 * h, "8d");
    duration_is(2 * y - 1, "729d");
    duration_is(2 * y, "2y");
    duration_is(2 * y + d, "2y1d");
    duration_is(8 * y + d, "8y");
}

static void test_columns(void)
{
    struct bh_arena a;
    struct bh_buf out = {0};

    bh_arena_init(&a, 0);
    /* Every kind: valid JSON, one cell per column even for an empty object. */
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        struct bh_json *cols, *cells;
        bh_buf_reset(&out);
        bh_sim_table_columns(&bh_sim_types[i], &out);
        cols = parse(&a, bh_buf_str(&out));
        bh_buf_reset(&out);
        bh_sim_table_cells(&bh_sim_types[i], parse(&a, "{}"), NOW_NS, &out);
        cells = parse(&a, bh_buf_str(&out));
        CU_ASSERT(cols->c.n >= 2);
        if (cols->c.n != cells->c.n)
            fprintf(stderr, "%s: %zu columns, %zu cells\n", bh_sim_types[i].kind, cols->c.n,
                    cells->c.n);
        CU_ASSERT_EQUAL(cols->c.n, cells->c.n);
    }
    bh_buf_reset(&out);
    bh_sim_table_columns(bh_sim_type_of_kind("v1", "Pod"), &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "[{\"name\":\"Name\",\"type\":\"string\","
                                                    "\"format\":\"name\","));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "\"name\":\"Readiness Gates\""));
    bh_buf_fini(&out);
    bh_arena_fini(&a);
}

/* A client can put anything into a status: what has the wrong type counts as absent. */
static void test_hostile(void)
{
#define ODD_TYPES                                                                                  \
    "{'metadata':{'name':7,'creationTimestamp':{}},'spec':{'containers':{},'replicas':'3',"        \
    "'selector':[1],'ports':[1,'x',null,[]],'rules':[7],'template':{'spec':{'containers':[1]}}},"  \
    "'status':{'containerStatuses':[1,{'state':[]},{'state':{'terminated':3}}],"                   \
    "'initContainerStatuses':[null],'conditions':[3,{'type':1}],'addresses':[false]}}"
#define ODD_SELECTOR                                                                               \
    "{'spec':{'selector':{'matchExpressions':[{'key':'a','operator':'In','values':[1,null]},"      \
    "{'operator':7}],'matchLabels':{'a':3}}},'status':{'hard':{'cpu':[]}}}"
    static const char *const odd[] = {"{'metadata':[],'spec':3,'status':'x'}", ODD_TYPES,
                                      ODD_SELECTOR};
    struct bh_arena a;
    struct bh_buf out = {0};

    bh_arena_init(&a, 0);
    for (size_t k = 0; k < BH_ARRAY_LEN(odd); k++) {
        char *text = bh_arena_strdup(&a, odd[k]);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        for (size_t i = 0; i < bh_sim_n_types; i++) {
            bh_buf_reset(&out);
            bh_sim_table_cells(&bh_sim_types[i], parse(&a, text), NOW_NS, &out);
            CU_ASSERT_EQUAL(parse(&a, bh_buf_str(&out))->type, BH_JSON_ARRAY);
        }
    }
    bh_buf_fini(&out);
    bh_arena_fini(&a);
}

#define ONE "'spec':{'containers':[{'name':'c'}]}"
#define TWO "'spec':{'containers':[{'name':'c'},{'name':'d'}]}"

static void test_pod_phase(void)
{
    cells_are("Pod", "{" META "," ONE ",'status':{'phase':'Pending'}}",
              "['x','0/1','Pending','0','10m'" WIDE);
    cells_are("Pod", "{" META "," ONE ",'status':{'phase':'Failed','reason':'Evicted'}}",
              "['x','0/1','Evicted','0','10m'" WIDE);
    cells_are("Pod",
              "{" META "," ONE ",'status':{'phase':'Pending','conditions':[{'type':'PodScheduled',"
              "'status':'False','reason':'SchedulingGated'}]}}",
              "['x','0/1','SchedulingGated','0','10m'" WIDE);
    cells_are("Pod",
              "{" META ",'spec':{'containers':[{'name':'c'}],'nodeName':'n','readinessGates':["
              "{'conditionType':'g'},{'conditionType':'h'}]},'status':{'phase':'Running','podIPs':"
              "[{'ip':'1.2.3.4'},{'ip':'::1'}],'nominatedNodeName':'m','conditions':[{'type':'g',"
              "'status':'True'}],'containerStatuses':[{'name':'c','ready':true,'state':"
              "{'running':{}}}]}}",
              "['x','1/1','Running','0','10m','1.2.3.4','n','m','1/2']");
}

static void test_pod_deletion(void)
{
    cells_are("Pod", "{" META_GOING "," ONE ",'status':{'phase':'Running'}}",
              "['x','0/1','Terminating','0','10m'" WIDE);
    cells_are("Pod", "{" META_GOING "," ONE ",'status':{'phase':'Running','reason':'NodeLost'}}",
              "['x','0/1','Unknown','0','10m'" WIDE);
    cells_are("Pod", "{" META_GOING "," ONE ",'status':{'phase':'Succeeded'}}",
              "['x','0/1','Succeeded','0','10m'" WIDE);
}

static void test_pod_containers(void)
{
    cells_are("Pod",
              "{" META "," ONE ",'status':{'phase':'Running','containerStatuses':[{'name':'c',"
              "'restartCount':3,'lastState':{'terminated':{'finishedAt':'2026-01-01T00:05:00Z'}},"
              "'state':{'waiting':{'reason':'CrashLoopBackOff'}}}]}}",
              "['x','0/1','CrashLoopBackOff','3 (5m ago)','10m'" WIDE);
    cells_are("Pod",
              "{" META "," ONE ",'status':{'phase':'Failed','containerStatuses':[{'name':'c',"
              "'state':{'terminated':{'exitCode':3}}}]}}",
              "['x','0/1','ExitCode:3','0','10m'" WIDE);
    cells_are("Pod",
              "{" META "," ONE ",'status':{'phase':'Failed','containerStatuses':[{'name':'c',"
              "'state':{'terminated':{'exitCode':137,'signal':9}}}]}}",
              "['x','0/1','Signal:9','0','10m'" WIDE);
    /* One container is done while the other runs: the pod's own readiness decides the word. */
    cells_are("Pod",
              "{" META "," TWO ",'status':{'phase':'Running','containerStatuses':[{'name':'c',"
              "'state':{'terminated':{'reason':'Completed'}}},{'name':'d','ready':true,'state':"
              "{'running':{}}}]}}",
              "['x','1/2','NotReady','0','10m'" WIDE);
    cells_are("Pod",
              "{" META "," TWO ",'status':{'phase':'Running','conditions':[{'type':'Ready',"
              "'status':'True'}],'containerStatuses':[{'name':'c','state':{'terminated':{'reason':"
              "'Completed'}}},{'name':'d','ready':true,'state':{'running':{}}}]}}",
              "['x','1/2','Running','0','10m'" WIDE);
    /* The first container's reason wins over the later ones'. */
    cells_are("Pod",
              "{" META "," TWO ",'status':{'phase':'Pending','containerStatuses':[{'state':"
              "{'waiting':{'reason':'ErrImagePull'}}},{'state':{'waiting':{'reason':"
              "'ContainerCreating'}}}]}}",
              "['x','0/2','ErrImagePull','0','10m'" WIDE);
}

#define INIT                                                                                       \
    "'spec':{'containers':[{'name':'c'}],'initContainers':[{'name':'a'},{'name':'s',"              \
    "'restartPolicy':'Always'},{'name':'b'}]}"

static void test_pod_init(void)
{
    cells_are("Pod",
              "{" META "," INIT ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'a',"
              "'state':{'running':{}}}]}}",
              "['x','0/2','Init:0/3','0','10m'" WIDE);
    cells_are("Pod",
              "{" META "," INIT ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'a',"
              "'restartCount':2,'state':{'terminated':{'exitCode':1,'reason':'Error'}}}]}}",
              "['x','0/2','Init:Error','2','10m'" WIDE);
    cells_are("Pod",
              "{" META "," INIT ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'a',"
              "'state':{'waiting':{'reason':'ImagePullBackOff'}}}]}}",
              "['x','0/2','Init:ImagePullBackOff','0','10m'" WIDE);
    /* A side car that runs is counted as ready and does not hold the others up. */
    cells_are("Pod",
              "{" META "," INIT ",'status':{'phase':'Pending','initContainerStatuses':[{'name':'a',"
              "'state':{'terminated':{'exitCode':0}}},{'name':'s','started':true,'ready':true,"
              "'state':{'running':{}}},{'name':'b','state':{'waiting':{'reason':"
              "'PodInitializing'}}}]}}",
              "['x','1/2','Init:2/3','0','10m'" WIDE);
    /* After initialization only side cars' restarts count. */
    cells_are(
        "Pod",
        "{" META "," INIT ",'status':{'phase':'Running','initContainerStatuses':[{'name':'a',"
        "'restartCount':5,'state':{'terminated':{'exitCode':0}}},{'name':'s','restartCount':1,"
        "'started':true,'ready':true,'state':{'running':{}}},{'name':'b','state':"
        "{'terminated':{'exitCode':0}}}],'containerStatuses':[{'name':'c','ready':true,"
        "'restartCount':1,'state':{'running':{}}}]}}",
        "['x','2/2','Running','2','10m'" WIDE);
}

static void test_node(void)
{
    cells_are("Node", "{" META "}",
              "['x','Unknown','<none>','10m','','<none>','<none>','<unknown>','<unknown>',"
              "'<unknown>']");
    cells_are("Node",
              "{'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z','labels':{"
              "'node-role.kubernetes.io/worker':'','node-role.kubernetes.io/control-plane':'',"
              "'kubernetes.io/role':'extra'}},'spec':{'unschedulable':true},'status':{'conditions':"
              "[{'type':'Ready','status':'Unknown'}],'addresses':[{'type':'ExternalIP','address':"
              "'2.2.2.2'},{'type':'InternalIP','address':'1.1.1.1'}],'nodeInfo':{'kubeletVersion':"
              "'v1','osImage':'os','kernelVersion':'k','containerRuntimeVersion':'r'}}}",
              "['x','NotReady,SchedulingDisabled','control-plane,extra,worker','10m','v1',"
              "'1.1.1.1','2.2.2.2','os','k','r']");
    cells_are("Node", "{" META ",'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
              "['x','Ready','<none>','10m','','<none>','<none>','<unknown>','<unknown>',"
              "'<unknown>']");
}

#define TEMPLATE                                                                                   \
    "'template':{'spec':{'nodeSelector':{'z':'1','a':'2'},'containers':[{'name':'c','image':"      \
    "'i:1'},{'name':'d','image':'j'}]}}"

static void test_workloads(void)
{
    cells_are("Deployment",
              "{" META ",'spec':{'replicas':3,'selector':{'matchLabels':{'b':'1','a':'2'},"
              "'matchExpressions':[{'key':'t','operator':'In','values':['y','x']},{'key':'e',"
              "'operator':'Exists'},{'key':'n','operator':'NotIn','values':['q']},{'key':'o',"
              "'operator':'DoesNotExist'}]}," TEMPLATE "},'status':{'readyReplicas':1,"
              "'updatedReplicas':2,'availableReplicas':1}}",
              "['x','1/3',2,1,'10m','c,d','i:1,j','!o,a=2,b=1,e,n notin (q),t in (x,y)']");
    cells_are("ReplicaSet", "{" META ",'spec':{'replicas':0," TEMPLATE "}}",
              "['x',0,0,0,'10m','c,d','i:1,j','<none>']");
    cells_are("ReplicationController",
              "{" META ",'spec':{'replicas':2,'selector':{'a':'b'}," TEMPLATE "},'status':"
              "{'replicas':2,'readyReplicas':1}}",
              "['x',2,2,1,'10m','c,d','i:1,j','a=b']");
    cells_are("StatefulSet", "{" META ",'spec':{'replicas':2," TEMPLATE "}}",
              "['x','0/2','10m','c,d','i:1,j']");
    cells_are("DaemonSet",
              "{" META ",'spec':{" TEMPLATE "},'status':{'desiredNumberScheduled':4,"
              "'currentNumberScheduled':3,'numberReady':2,'updatedNumberScheduled':1,"
              "'numberAvailable':2}}",
              "['x',4,3,2,1,2,'a=2,z=1','10m','c,d','i:1,j','<none>']");
}

static void test_job(void)
{
    cells_are("Job",
              "{" META ",'spec':{'completions':3," TEMPLATE "},'status':{'succeeded':1,'startTime':"
              "'2026-01-01T00:00:00Z'}}",
              "['x','Running','1/3','10m','10m','c,d','i:1,j','<none>']");
    cells_are(
        "Job",
        "{" META ",'spec':{'parallelism':4," TEMPLATE "},'status':{'succeeded':4,'startTime':"
        "'2026-01-01T00:00:00Z','completionTime':'2026-01-01T00:00:05Z','conditions':[{'type':"
        "'Complete','status':'True'}]}}",
        "['x','Complete','4/1 of 4','5s','10m','c,d','i:1,j','<none>']");
    cells_are("Job",
              "{" META ",'spec':{'suspend':true," TEMPLATE "},'status':{'conditions':[{'type':"
              "'Suspended','status':'True'}]}}",
              "['x','Suspended','0/1','','10m','c,d','i:1,j','<none>']");
}

static void test_service(void)
{
    cells_are("Service",
              "{" META ",'spec':{'type':'NodePort','clusterIP':'10.96.0.9','ports':[{'port':80,"
              "'nodePort':30001,'protocol':'TCP'},{'port':53,'protocol':'UDP'}],'selector':"
              "{'a':'b'}}}",
              "['x','NodePort','10.96.0.9','<none>','80:30001/TCP,53/UDP','10m','a=b']");
    cells_are("Service", "{" META ",'spec':{'type':'LoadBalancer','clusterIP':'1.1.1.1'}}",
              "['x','LoadBalancer','1.1.1.1','<pending>','<none>','10m','<none>']");
    cells_are("Service",
              "{" META
              ",'spec':{'type':'LoadBalancer','clusterIP':'1.1.1.1','externalIPs':['5.5.5.5']},"
              "'status':{'loadBalancer':{'ingress':[{'ip':'4.4.4.4'},{'hostname':'h'}]}}}",
              "['x','LoadBalancer','1.1.1.1','4.4.4.4,h,5.5.5.5','<none>','10m','<none>']");
    cells_are("Service", "{" META ",'spec':{'type':'ExternalName','externalName':'e.org'}}",
              "['x','ExternalName','<none>','e.org','<none>','10m','<none>']");
}

static void test_endpoints(void)
{
    cells_are("Endpoints",
              "{" META ",'subsets':[{'addresses':[{'ip':'1.1.1.1'},{'ip':'1.1.1.2'}],'ports':"
              "[{'port':80},{'port':81}]}]}",
              "['x','1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 1 more...','10m']");
    cells_are("Endpoints", "{" META "}", "['x','<none>','10m']");
    /* As many of both as a list may have: billions of pairs. */
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    bh_buf_adds(&b, "{" META ",'subsets':[{}");
    for (int k = 0; k < 12; k++) {
        bh_buf_adds(&b, ",{'addresses':[{'ip':'1.1.1.1'}");
        for (int i = 1; i < 16384; i++)
            bh_buf_adds(&b, ",{}");
        bh_buf_adds(&b, "],'ports':[{'port':1}");
        for (int i = 1; i < 16384; i++)
            bh_buf_adds(&b, ",{}");
        bh_buf_adds(&b, "]}");
    }
    bh_buf_adds(&b, "]}");
    cells_are("Endpoints", bh_buf_str(&b), "['x','1.1.1.1:1 + 3221225469 more...','10m']");
}

static void test_storage(void)
{
    cells_are(
        "PersistentVolume",
        "{" META ",'spec':{'capacity':{'storage':'5Gi'},'accessModes':['ReadWriteMany',"
        "'ReadWriteOnce','ReadWriteOnce'],'persistentVolumeReclaimPolicy':'Retain','claimRef':"
        "{'namespace':'n','name':'c'},'storageClassName':'fast','volumeMode':'Block'},"
        "'status':{'phase':'Bound'}}",
        "['x','5Gi','RWO,RWX','Retain','Bound','n/c','fast','<unset>','','10m','Block']");
    cells_are("PersistentVolumeClaim",
              "{" META ",'spec':{'accessModes':['ReadWriteOnce'],'storageClassName':'s'},'status':"
              "{'phase':'Pending','capacity':{'storage':'9Gi'}}}",
              "['x','Pending','','','','s','<unset>','10m','<unset>']");
    cells_are("PersistentVolumeClaim",
              "{" META_GOING ",'spec':{'volumeName':'v','storageClassName':'s','volumeMode':"
              "'Filesystem'},'status':{'phase':'Bound','capacity':{'storage':'9Gi'},'accessModes':"
              "['ReadWriteOncePod']}}",
              "['x','Terminating','v','9Gi','RWOP','s','<unset>','10m','Filesystem']");
    cells_are("StorageClass",
              "{'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z','annotations':"
              "{'storageclass.kubernetes.io/is-default-class':'true'}},'provisioner':'p'}",
              "['x (default)','p','Delete','Immediate',false,'10m']");
}

static void test_event(void)
{
    cells_are("Event",
              "{'metadata':{'name':'x'},'involvedObject':{'kind':'Pod','name':'p','fieldPath':'f'},"
              "'reason':'R','type':'Normal','message':' two words\\n','source':{'component':'c',"
              "'host':'h'},'firstTimestamp':'2026-01-01T00:00:00Z','lastTimestamp':"
              "'2026-01-01T00:09:30Z','count':3}",
              "['30s','Normal','R','pod/p','f','c, h','two words','10m',3,'x']");
    /* The newer form of the same: eventTime, series, reporting controller. */
    cells_are(
        "Event",
        "{'metadata':{'name':'x'},'regarding':{'kind':'Node','name':'n'},'reason':'R','type':"
        "'Warning','note':'m','eventTime':'2026-01-01T00:05:00.000000Z','reportingController':"
        "'rc','reportingInstance':'ri','series':{'count':7,'lastObservedTime':"
        "'2026-01-01T00:09:00.000000Z'}}",
        "['60s','Warning','R','node/n','','rc, ri','m','5m',7,'x']");
    cells_are("Event", "{'metadata':{'name':'x'},'type':'Normal'}",
              "['<unknown>','Normal','','','','','','<unknown>',1,'x']");
}

static void test_policy_and_scheduling(void)
{
    cells_are("PodDisruptionBudget",
              "{" META ",'spec':{'minAvailable':'50%'},'status':{'disruptionsAllowed':2}}",
              "['x','50%','N/A',2,'10m']");
    cells_are("PodDisruptionBudget", "{" META ",'spec':{'maxUnavailable':0}}",
              "['x','N/A','0',0,'10m']");
    cells_are("PriorityClass",
              "{" META ",'value':-5,'globalDefault':true,'preemptionPolicy':'Never'}",
              "['x',-5,true,'10m','Never']");
    cells_are("ResourceClaim", "{" META ",'status':{'allocation':{},'reservedFor':[{}]}}",
              "['x','allocated,reserved','10m']");
    cells_are("ResourceClaim", "{" META "}", "['x','pending','10m']");
    cells_are("Lease", "{" META ",'spec':{'holderIdentity':'me'}}", "['x','me','10m']");
    cells_are("ResourceQuota",
              "{" META ",'status':{'hard':{'cpu':'4','limits.cpu':'8'},'used':{'cpu':'1'}}}",
              "['x','cpu: 1/4','limits.cpu: 0/8','10m']");
    cells_are("ConfigMap", "{" META ",'data':{'a':'1','b':'2'},'binaryData':{'c':''}}",
              "['x',3,'10m']");
    cells_are("DeviceClass", "{" META "}", "['x','10m']");
}

static void test_small_jobs(void)
{
    cells_are("CronJob",
              "{" META
              ",'spec':{'schedule':'* * * * *','suspend':true,'jobTemplate':{'spec':{" TEMPLATE
              "}}},'status':{'active':[{},{}],'lastScheduleTime':'2026-01-01T00:09:00Z'}}",
              "['x','* * * * *','<none>','True',2,'60s','10m','c,d','i:1,j','<none>']");
    cells_are("CronJob",
              "{" META
              ",'spec':{'suspend':false,'timeZone':'Etc/UTC','jobTemplate':{'spec':{" TEMPLATE
              "}}}}",
              "['x','','Etc/UTC','False',0,'<none>','10m','c,d','i:1,j','<none>']");
    cells_are(
        "ControllerRevision",
        "{'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z','ownerReferences':"
        "[{'kind':'Other','name':'o'},{'apiVersion':'apps/v1','kind':'StatefulSet','name':'db',"
        "'controller':true}]},'revision':7}",
        "['x','statefulset.apps/db',7,'10m']");
    cells_are("ControllerRevision", "{" META "}", "['x','<none>',0,'10m']");
    /* One that goes is told before why it will have failed, and after that it did. */
    cells_are("Job",
              "{" META_GOING ",'spec':{" TEMPLATE
              "},'status':{'conditions':[{'type':'FailureTarget',"
              "'status':'True'}]}}",
              "['x','Terminating','0/1','','10m','c,d','i:1,j','<none>']");
    cells_are("Job",
              "{" META_GOING ",'spec':{" TEMPLATE "},'status':{'startTime':'2026-01-01T00:00:00Z',"
              "'completionTime':'soon','conditions':[{'type':'Failed','status':'True'}]}}",
              "['x','Failed','0/1','10m','10m','c,d','i:1,j','<none>']");
}

static void test_network(void)
{
    cells_are("EndpointSlice",
              "{" META ",'addressType':'IPv4','ports':[{'port':80},{'port':443}],'endpoints':"
              "[{'addresses':['1.1.1.1','1.1.1.2']},{'addresses':['1.1.1.3','1.1.1.4']}]}",
              "['x','IPv4','80,443','1.1.1.1,1.1.1.2,1.1.1.3 + 1 more...','10m']");
    cells_are("EndpointSlice", "{" META "}", "['x','','<unset>','<unset>','10m']");
    cells_are("Endpoints", "{" META ",'subsets':[{'addresses':[{'ip':'1.1.1.1'}]}]}",
              "['x','1.1.1.1','10m']");
    cells_are("Ingress",
              "{" META
              ",'spec':{'ingressClassName':'n','tls':[{}],'rules':[{'host':'a'},{},{'host':"
              "'b'},{'host':'c'},{'host':'d'}]},'status':{'loadBalancer':{'ingress':[{'ip':"
              "'4.4.4.4'}]}}}",
              "['x','n','a,b,c + 1 more...','4.4.4.4','80, 443','10m']");
    cells_are("Ingress", "{" META "}", "['x','<none>','*','','80','10m']");
    cells_are("IngressClass",
              "{" META ",'spec':{'controller':'c','parameters':{'apiGroup':'g','kind':'K','name':"
              "'p'}}}",
              "['x','c','K.g/p','10m']");
    cells_are("IngressClass", "{" META ",'spec':{'parameters':{'kind':'K','name':'p'}}}",
              "['x','','K/p','10m']");
    cells_are("IngressClass", "{" META "}", "['x','','<none>','10m']");
}

static void test_who_may_and_who_serves(void)
{
    cells_are("APIService",
              "{" META ",'spec':{'service':{'namespace':'n','name':'s'}},'status':{'conditions':"
              "[{'type':'Available','status':'False','reason':'MissingEndpoints'}]}}",
              "['x','n/s','False (MissingEndpoints)','10m']");
    cells_are("APIService",
              "{" META ",'status':{'conditions':[{'type':'Available','status':'True','reason':"
              "'Local'}]}}",
              "['x','Local','True','10m']");
    cells_are("APIService", "{" META "}", "['x','Local','Unknown','10m']");
    cells_are("RoleBinding",
              "{" META
              ",'roleRef':{'kind':'Role','name':'r'},'subjects':[{'kind':'User','name':'u'},"
              "{'kind':'ServiceAccount','namespace':'n','name':'a'},{'kind':'ServiceAccount',"
              "'namespace':'n','name':'b'},{'kind':'Group'},{'kind':'Group','name':'g'}]}",
              "['x','Role/r','10m','u','g','n/a, n/b']");
    cells_are("ClusterRoleBinding", "{" META ",'roleRef':{'kind':'ClusterRole','name':'r'}}",
              "['x','ClusterRole/r','10m','','','']");
}

static void test_targets_and_claims(void)
{
    cells_are(
        "HorizontalPodAutoscaler",
        "{" META ",'spec':{'scaleTargetRef':{'kind':'Deployment','name':'d'},'minReplicas':1,"
        "'maxReplicas':9,'metrics':[{'resource':{'name':'cpu','target':{'averageUtilization':"
        "50}}},{'resource':{'name':'memory','target':{'averageValue':'1Gi'}}},{'pods':{}}]},"
        "'status':{'currentReplicas':2}}",
        "['x','Deployment/d','cpu: <unknown>/50%, memory: <unknown>/1Gi, custom: <unknown>/','1',"
        "9,2,'10m']");
    cells_are("HorizontalPodAutoscaler", "{" META "}", "['x','/','<none>','<unset>',0,0,'10m']");
    cells_are("PersistentVolumeClaim",
              "{" META ",'spec':{'volumeName':'v'},'status':{'phase':'Bound'}}",
              "['x','Bound','v','0','','','<unset>','10m','<unset>']");
    cells_are("ResourceClaim", "{" META_GOING ",'status':{'allocation':{}}}",
              "['x','deleted,allocated','10m']");
    cells_are("ResourceClaim", "{" META_GOING "}", "['x','deleted','10m']");
    cells_are("ResourceQuota",
              "{" META ",'status':{'hard':{'requests.storage':'1Gi','limits.memory':'2Gi'},'used':{"
              "'limits.memory':'1Gi'}}}",
              "['x','requests.storage: 0/1Gi','limits.memory: 1Gi/2Gi','10m']");
}

static void test_groups_of_pods(void)
{
#define GROUP_IS(conditions, status)                                                               \
    cells_are("PodGroup",                                                                          \
              "{" META ",'spec':{'schedulingPolicy':{'gang':{'minCount':3}}},'status':{"           \
              "'conditions':[" conditions "]}}",                                                   \
              "['x','Gang','<none>','" status "','10m']")
    GROUP_IS("", "Pending");
    GROUP_IS("{'type':'PodGroupScheduled','status':'True'}", "Scheduled");
    GROUP_IS("{'type':'PodGroupScheduled','status':'False','reason':'Unschedulable'}",
             "Unschedulable");
    GROUP_IS("{'type':'PodGroupInitiallyScheduled','status':'True'}", "Scheduled");
    GROUP_IS("{'type':'PodGroupScheduled','status':'True'},{'type':'DisruptionTarget','status':"
             "'True','reason':'PreemptionByScheduler'}",
             "PreemptionByScheduler");
    GROUP_IS("{'type':'DisruptionTarget','status':'True'}", "DisruptionTarget");
}

/* ---- kinds that a definition adds -------------------------------------------------------------- */

static void custom_is(const char *columns, const char *obj, const char *want)
{
    struct bh_arena a;
    struct bh_buf out = {0};
    struct bh_table_row r = {.out = &out, .now_s = NOW_NS / 1000000000};

    bh_arena_init(&a, 0);
    bh_buf_addc(&out, '[');
    bh_table_custom_cells(columns ? parse(&a, columns) : NULL, parse(&a, obj), &r);
    if (!bh_streq(bh_buf_str(&out), want))
        fprintf(stderr, "got  %s\nwant %s\n", bh_buf_str(&out), want);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&out), want);
    bh_buf_fini(&out);
    bh_arena_fini(&a);
}

static void test_custom(void)
{
    static const char columns[] =
        "[{\"name\":\"N\",\"type\":\"integer\",\"jsonPath\":\".n\"},{\"name\":\"B\",\"type\":"
        "\"boolean\",\"jsonPath\":\".b\"},{\"name\":\"T\",\"type\":\"date\",\"jsonPath\":\".t\"},{"
        "\"name\":\"S\",\"type\":\"string\",\"jsonPath\":\".s\",\"priority\":1}]";
    struct bh_arena a;
    struct bh_buf out = {0};

    custom_is(columns,
              "{\"metadata\":{\"name\":\"x\"},\"n\":7,\"b\":true,\"t\":\"2026-01-01T00:09:00Z\","
              "\"s\":\"w\"}",
              "[\"x\",7,true,\"60s\",\"w\"");
    /* Of another type than the column: as text; absent and null: null. */
    custom_is(
        columns,
        "{\"metadata\":{\"name\":\"x\"},\"n\":\"seven\",\"b\":1,\"t\":null,\"s\":{\"k\":[1]}}",
        "[\"x\",\"seven\",\"1\",null,\"{\\\"k\\\":[1]}\"");
    custom_is(columns, "{\"metadata\":{\"name\":\"x\"}}", "[\"x\",null,null,null,null");
    custom_is(NULL,
              "{\"metadata\":{\"name\":\"x\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"}}",
              "[\"x\",\"10m\"");
    bh_arena_init(&a, 0);
    bh_buf_addc(&out, '[');
    bh_table_custom_columns(parse(&a, columns), &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "\"name\":\"S\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "\"priority\":1"));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&out), "\"name\":\"Age\""));
    bh_buf_reset(&out);
    bh_buf_addc(&out, '[');
    bh_table_custom_columns(NULL, &out);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&out), "\"name\":\"Age\""));
    bh_buf_fini(&out);
    bh_arena_fini(&a);
}

BH_TESTS("simulator/tables", {"an age has two units at most and gets coarser", test_duration},
         {"every kind has one cell per column, also for an empty object", test_columns},
         {"fields of the wrong type count as absent", test_hostile},
         {"a pod's status is its phase, reason or gate", test_pod_phase},
         {"a pod that goes is Terminating, Unknown or what it ended as", test_pod_deletion},
         {"containers override the phase, the first one last", test_pod_containers},
         {"init containers show how far they are", test_pod_init},
         {"a node shows readiness, roles and addresses", test_node},
         {"workloads show counts, images and selectors", test_workloads},
         {"a job shows completions and duration", test_job},
         {"a service shows how it is reached", test_service},
         {"endpoints beyond three are counted", test_endpoints},
         {"volumes, claims and classes", test_storage}, {"events in both forms", test_event},
         {"budgets, priorities, claims and small kinds", test_policy_and_scheduling},
         {"cron jobs, revisions, jobs that go", test_small_jobs},
         {"slices, ingresses and their classes", test_network},
         {"services of the API, bindings of roles", test_who_may_and_who_serves},
         {"autoscalers, claims, quotas", test_targets_and_claims},
         {"groups of pods", test_groups_of_pods}, {"kinds that a definition adds", test_custom})
