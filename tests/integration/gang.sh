#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/gang.sh - PodGroups and Workloads as a person meets them with kubectl: served when asked for, in
# the versions of 1.36 and of later clusters, refused with reasons, explained, printed, protected; seen by the watcher
# usage: BERTH_BIN=build/bin tests/integration/gang.sh
. "$(dirname "$0")/lib/common.sh"
trap finish EXIT
command -v kubectl >/dev/null || { skip "gang" "no kubectl"; finish; exit; }

GATES=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true
OLD=scheduling.k8s.io/v1alpha2
NEW=scheduling.k8s.io/v1beta1

# group NAME API SPEC: a PodGroup as YAML
group() { printf 'apiVersion: %s\nkind: PodGroup\nmetadata: {name: %s}\nspec: %s\n' "$2" "$1" "$3"; }
create() { group "$@" | kubectl create -f -; }
# fails TEXT COMMAND...: it does, and says why
fails() {
    local text=$1 out
    shift
    if out=$("$@" 2>&1); then echo "did not fail: $out"; return 1; fi
    grep -qF -- "$text" <<<"$out" || { echo "wanted: $text"; echo "got: $out"; return 1; }
}
refused() { fails "$1" create "${@:2}"; } # TEXT NAME API SPEC
column() { kubectl get podgroup "$1" -o wide --no-headers | awk -v n="$2" '{print $n}'; }
is() { [ "$("${@:2}")" = "$1" ] || { echo "wanted $1, got: $("${@:2}")"; return 1; }; }
absent() { ! kubectl get "$@" 2>/dev/null; }
no_such_version() { ! kubectl get --raw "/apis/$1" 2>/dev/null; }

check "a gate that is none is told before anything runs" fails 'unrecognized feature gate: Gangs' \
    "$BERTH_BIN/berth" up --feature-gates Gangs=true
start_up --no-example --feature-gates $GATES --runtime-config $OLD=true,$NEW=true || exit

# ---- served ----
expect "discovery has both versions" '"scheduling.k8s.io/v1alpha2".*"scheduling.k8s.io/v1beta1"' kubectl get --raw /apis/scheduling.k8s.io
check "but not the one that nobody asked for" no_such_version scheduling.k8s.io/v1alpha3
expect "kubectl knows the kinds" 'podgroups .*true +PodGroup' kubectl api-resources --namespaced
expect "explain: what a gang is" 'minCount.*<integer>.*-required-' kubectl explain podgroup.spec.schedulingPolicy.gang --api-version $OLD
expect "explain: the reference of later versions" 'workloadRef' kubectl explain podgroup.spec --api-version $NEW

# ---- created, printed ----
check "a gang" create gang $OLD '{schedulingPolicy: {gang: {minCount: 3}}, schedulingConstraints: {topology: [{key: rack}]}}'
check "a basic group, in the later version" create plain $NEW '{schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}}'
expect "its columns" 'NAME +POLICY +WORKLOAD +STATUS +AGE' kubectl get podgroups
check "gang: policy" is Gang column gang 2
check "plain: policy" is Basic column plain 2
check "no workload" is '<none>' column gang 3
check "not scheduled yet" is Pending column gang 4
check "a disruption mode in one version" is PodGroup kubectl get podgroups.v1alpha2.scheduling.k8s.io plain -o 'jsonpath={.spec.disruptionMode}'
check "is the same in the other" is '{"single":{}}' kubectl get podgroups.v1beta1.scheduling.k8s.io gang -o 'jsonpath={.spec.disruptionMode}'

# ---- refused ----
check "no policy" refused 'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`' a $OLD '{schedulingPolicy: {}}'
check "minCount" refused 'spec.schedulingPolicy.gang.minCount: Invalid value: -2: must be greater than or equal to 1' a $OLD '{schedulingPolicy: {gang: {minCount: -2}}}'
check "two topologies" refused 'spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item' a $OLD \
    '{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}, {key: b}]}}'
check "two disruption modes" refused 'spec.disruptionMode: Invalid value: "{`single`, `all`}": exactly one of `single`, `all` is required, but multiple fields are set' \
    a $NEW '{schedulingPolicy: {basic: {}}, disruptionMode: {single: {}, all: {}}}'
check "a workload that is not there" refused 'PodGroup rejected: Workload "w" not found' a $NEW \
    '{schedulingPolicy: {basic: {}}, workloadRef: {workloadName: w, templateName: t}}'
check "a reference without template, named as the version has it" refused 'spec.workloadRef.templateName: Required value' a $NEW \
    '{schedulingPolicy: {basic: {}}, workloadRef: {workloadName: w}}'
check "a field of the other version" refused 'unknown field "spec.workloadRef"' a $OLD '{schedulingPolicy: {basic: {}}, workloadRef: {}}'
check "minCount may not change in 1.36" fails 'field is immutable' kubectl patch podgroups.v1alpha2.scheduling.k8s.io gang --type merge \
    -p '{"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}}'
check "but later" kubectl patch podgroups.v1beta1.scheduling.k8s.io gang --type merge -p '{"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}}'

# ---- workloads ----
check "a workload" kubectl create -f - <<EOF
apiVersion: $NEW
kind: Workload
metadata: {name: w}
spec: {podGroupTemplates: [{name: t, schedulingPolicy: {gang: {minCount: 2}}}]}
EOF
expect "in its table" '^w +[0-9]+s' kubectl get workloads
check "a group of it" create made $NEW '{schedulingPolicy: {gang: {minCount: 2}}, workloadRef: {workloadName: w, templateName: t}}'
check "shows it" is w column made 3
check "and as 1.36 calls it" is t kubectl get podgroups.v1alpha2.scheduling.k8s.io made -o 'jsonpath={.spec.podGroupTemplateRef.workload.podGroupTemplateName}'

# ---- status ----
server=$(kubectl config view -o 'jsonpath={.clusters[0].cluster.server}')
status_of() { # as the scheduler's binder writes it
    curl -fsS -X PATCH -H 'Content-Type: application/strategic-merge-patch+json' --data "$1" \
        "$server/apis/$OLD/namespaces/default/podgroups/gang/status"
}
condition() {
    printf '{"status":{"conditions":[{"type":"PodGroupScheduled","status":"%s","reason":"%s","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}' "$1" "$2"
}
check "its condition" status_of "$(condition False Unschedulable)"
check "shows in the table" is Unschedulable column gang 4
check "scheduled" status_of "$(condition True Scheduled)"
check "shows, too" is Scheduled column gang 4
check "there is one of its type" is PodGroupScheduled kubectl get podgroup gang -o 'jsonpath={.status.conditions[*].type}'
check "a condition without a reason is none" fails 'status.conditions[0].reason: Required value: must be set' \
    kubectl patch podgroups.v1alpha2.scheduling.k8s.io gang --subresource status --type merge -p '{"status":{"conditions":[{"type":"A","status":"True","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'

# ---- pods, protection ----
pod() { printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {schedulingGroup: %s, containers: [{name: c, image: i}]}' "$1" "$2"; }
check "a pod of the gang" kubectl create -f - <<<"$(pod p '{podGroupName: gang}')"
check "a group without a name" fails 'spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`' kubectl create -f - <<<"$(pod q '{}')"
check "a group that is deleted" kubectl delete podgroup gang --wait=false
check "stays while it has pods" kubectl get podgroup gang
check "they go" kubectl delete pod p --wait --grace-period=0 --force
eventually "and it with them" 20 absent podgroup gang

# ---- the watcher ----
watched() { curl -fsS "http://127.0.0.1:$(metrics_port watcher)/metrics" | grep -qE '^berth_watcher_objects\{kind="PodGroup"\} 2'; }
eventually "the watcher has the two that are left" 20 watched

# ---- scheduled: a gang of three on nodes for two, then three ----
node() {
    printf 'apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: "1", memory: 1Gi, pods: "9"}, conditions: [{type: Ready, status: "True"}]}\n' "$1" |
        kubectl create -f -
}
worker() { # NAME [GROUP]
    printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {schedulingGroup: {podGroupName: %s}, containers: [{name: c, image: i, resources: {requests: {cpu: 800m}}}]}\n' "$1" "${2:-trio}" |
        kubectl create -f -
}
says() { # PATTERN COMMAND...
    local out
    out=$("${@:2}") && grep -qE -- "$1" <<<"$out" || { echo "wanted: $1"; echo "got: $out"; return 1; }
}
explain() { "$BERTH_BIN/berth" explain --runtime-dir "$run" "$@"; }
queue() { "$BERTH_BIN/berth" queue --runtime-dir "$run"; }
bound() { kubectl get pods t1 t2 t3 --ignore-not-found -o 'jsonpath={.items[*].spec.nodeName}' | wc -w; }
check "a gang of three" create trio $OLD '{schedulingPolicy: {gang: {minCount: 3}}}'
for n in n1 n2; do check "node $n" node $n; done
for p in t1 t2; do check "pod $p" worker $p; done
eventually "they wait for the third" 20 says 't2 +gated .*trio: 0 of 3 scheduled, 1 missing +GangScheduling' queue
expect "explain: the group is not complete" 'Result: +Gated: waiting for minCount pods from a gang' explain podgroup/trio
check "pod t3" worker t3
eventually "room for two: nobody goes" 20 is Unschedulable column trio 4
check "really nobody" is 0 bound
check "its condition is of no generation, as PodGroups have none" is '' kubectl get podgroup trio -o 'jsonpath={.metadata.generation}{.status.conditions[*].observedGeneration}'
eventually "queue: what of it is scheduled" 20 says 't1 .*trio: 0 of 3 scheduled +-? .*pod group is unschedulable, waiting for minCount pods' queue
expect "explain: one that has room is not scheduled" 'Result: +Has room on n[12]' "$BERTH_BIN/berth" explain pod/t1 --runtime-dir "$run"
expect "... its group waits, and who else has room" 'Waits: +the pod has room on n[12], and the group default/trio waits: 2 of 3 have room \(berth explain podgroup/trio -n default\)' \
    "$BERTH_BIN/berth" explain pod/t1 --runtime-dir "$run"
expect "... as a document" '^2 3$' bash -c "'$BERTH_BIN/berth' explain pod/t1 --runtime-dir '$run' -o json | jq -r '.group | \"\(.haveRoom) \(.waiting)\"'"
expect "decisions: neither" 'default/t1 +[0-9]+ +HasRoom +GroupWaits +n[12] .*the pod has room on n[12], and its group default/trio waits: 2 of 3 have room' \
    "$BERTH_BIN/berth" decisions --runtime-dir "$run" --pod t1
expect "explain names the group" 'Group: +trio, 0 of 3 scheduled' "$BERTH_BIN/berth" explain pod/t1 --runtime-dir "$run"
expect "the event of one that has room" 'pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait and no plugin rejected pod' \
    kubectl get events --field-selector involvedObject.name=t1
expect "explain: why the group waits" 'Result: +Unschedulable: .*pod group is unschedulable' explain podgroup/trio
expect "... who has room" 't1 +has room +n[12]' explain podgroup/trio
expect "... who has not" 't3 +no room +- +0/2 nodes are available: 2 Insufficient cpu' explain podgroup/trio
expect "... what would help" 'For all of the group \(t3 stands for each member' explain podgroup/trio
expect "... a node more; no eviction of other members" ';one more node like n1, without taints$' bash -c "'$BERTH_BIN/berth' explain --runtime-dir '$run' podgroup/trio -o json | jq -r '[.fixes.fixes[] | select(.fits) | .text] | join(\";\")'"
expect "... as a document" '^t3 no room$' bash -c "'$BERTH_BIN/berth' explain --runtime-dir '$run' podgroup/trio -o json | jq -r '.pods[2] | .name + \" \" + .state'"
commands() { # GROUP TEXT: of the group's fix
    explain "podgroup/$1" -o json | jq -r "first(.fixes.fixes[] | select(.text | test(\"$2\"))) | .commands[]"
}
expect "... the commands of a change are for every member" '^for pod in t1 t2 t3; do kubectl get pod \$pod -n default' commands trio half
asked() { curl -fsS -H 'Content-Type: application/json' --data "$1" "$server/berth/v1/podgroup"; }
expect "the page asks for the same" '^Unschedulable t3 2$' bash -c "curl -fsS --data '{\"name\":\"trio\",\"fixes\":true}' '$server/berth/v1/podgroup' | jq -r '.result + \" \" + .fixesFor + \" \" + ([.fixes.fixes[] | select(.fits)] | length | tostring)'"
check "... and hears of a group that is not there" fails 'error: 404' asked '{"name":"nobody"}'
check "no such group" fails 'there is no PodGroup "nobody" in namespace "default"' explain podgroup/nobody
check "what is about pods only" fails 'are about a pod, not about a group' explain podgroup/trio --node n1
check "a third node" node n3
eventually "all three go" 40 is 3 bound
eventually "and the group says so" 20 is Scheduled column trio 4
expect "explain: nobody of it waits" 'Result: +Scheduled: no pod of it waits' explain podgroup/trio
expect "... its members are counted" 'Members: +3 known, 3 on nodes, 0 waiting' explain podgroup/trio
expect "... and named with their nodes" '^t1 +on its node +n[1-3]' explain podgroup/trio
scheduler_metrics() { curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics"; }
check "metrics: groups by result" says 'scheduler_podgroup_schedule_attempts_total\{profile="default-scheduler",result="scheduled"\} 1$' scheduler_metrics

# ---- placed: two that have to be in one rack ----
racked() { node "$1" && kubectl label node "$1" "rack=$2"; } # NODE RACK
check "a gang in one rack" create pair $OLD '{schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: rack}]}}'
check "a node in rack a" racked n4 a
check "a node in rack b" racked n5 b
for p in r1 r2; do check "pod $p" worker $p pair; done
eventually "no rack has room for two" 20 is Unschedulable column pair 4
says_placements() { says '0/2 placements are available, first placement status: pod group is unschedulable' kubectl get podgroup pair -o 'jsonpath={.status.conditions[*].message}'; }
eventually "the condition says so" 20 says_placements
expect "explain: rack by rack" '^a +1 +1 +- +does not fit: 0/1 nodes are available: 1 Insufficient cpu' explain podgroup/pair
check "another node in rack b" racked n6 b
racks() { kubectl get pods r1 r2 -o 'jsonpath={.items[*].spec.nodeName}' | tr ' ' '\n' | sort | tr '\n' ' '; }
eventually "there both go" 40 is 'n5 n6 ' racks
check "metrics: placements by what came of them" says 'berth_scheduler_placements_total\{profile="default-scheduler",result="unschedulable"\} [2-9]' scheduler_metrics
check "... the one that fitted" says 'berth_scheduler_placements_total\{profile="default-scheduler",result="fits"\} [1-9]' scheduler_metrics
check "... and the points that chose it" says 'scheduler_framework_extension_point_duration_seconds_count\{extension_point="PlacementGenerate",profile="default-scheduler",status="Success"\} [1-9]' scheduler_metrics

# ---- one claim for all members: whichever is written first, all of them go, and to the device's node ----
check "a device class, a device of n7, and a claim" kubectl create -f - <<'EOF'
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fabric}
spec: {selectors: [{cel: {expression: 'device.driver == "fabric.example.org"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fabric}
spec: {driver: fabric.example.org, pool: {name: p, generation: 1, resourceSliceCount: 1}, nodeName: n7, devices: [{name: d0}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: fabric}}]}}
EOF
sharing() { # NAME
    printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {schedulingGroup: {podGroupName: shares}, resourceClaims: [{name: c, resourceClaimName: shared}], containers: [{name: c, image: i, resources: {requests: {cpu: 100m}, claims: [{name: c}]}}]}\n' "$1" |
        kubectl create -f -
}
check "a gang that shares it" create shares $OLD '{schedulingPolicy: {gang: {minCount: 3}}}'
check "its node" node n7
for p in s1 s2 s3; do check "pod $p" sharing $p; done
shared_nodes() { kubectl get pods s1 s2 s3 -o 'jsonpath={.items[*].spec.nodeName}'; }
eventually "all three go to the device" 40 is 'n7 n7 n7' shared_nodes
consumers() { kubectl get resourceclaim shared -o json | jq -r '[.status.reservedFor[].name] | sort | join(" ")'; }
check "the claim is reserved for all of them" is 's1 s2 s3' consumers

# ---- the commands of a change, as they are printed, let all of the group go ----
check "a node for one more" node n8
check "a gang of three where two have room" create wide $OLD '{schedulingPolicy: {gang: {minCount: 3}}}'
for p in w1 w2 w3; do check "pod $p" worker $p wide; done
eventually "it waits" 20 is Unschedulable column wide 4
obeyed() { bash -ec "$(commands wide half)"; }
check "the commands are accepted" obeyed
wide_nodes() { kubectl get pods w1 w2 w3 -o 'jsonpath={.items[*].spec.nodeName}' | wc -w; }
eventually "all three go" 40 is 3 wide_nodes
