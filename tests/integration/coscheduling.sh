#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/coscheduling.sh - plugin Coscheduling with its CRD: three of three go together, two of three wait and
# time out, a group backs off, and nobody is lost when the scheduler is killed while members wait at Permit; what
# `berth queue` and `berth explain` say of groups; the phases that the built-in controller writes
# usage: BERTH_BIN=build/bin tests/integration/coscheduling.sh
. "$(dirname "$0")/lib/common.sh"
trap finish EXIT
command -v kubectl >/dev/null || { skip "coscheduling" "no kubectl"; finish; exit; }
repo=$(cd "$(dirname "$0")/../.." && pwd)

# 70: after a restart the room of those that waited is theirs still (status.nominatedNodeName), so that one of three may have
# none while only the first has its node back: two thirds lack.
cat >"$work/config.yaml" <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 2
profiles:
- schedulerName: scheduler-plugins-scheduler
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
  pluginConfig:
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: 600, podGroupBackoffSeconds: $((4 * PATIENCE)), podGroupRejectPercentage: 70}
EOF
check "the shipped configuration is valid" "$BERTH_BIN/berth" config check "$repo/config/coscheduling.yaml"
check "the test's, too" "$BERTH_BIN/berth" config check "$work/config.yaml"
# The kind is there before the watcher asks for it.
start_up --no-example --data "$work/cluster.db" || exit
check "the CRD" kubectl apply -f "$repo/config/coscheduling-crd.yaml"
kill -TERM "$up_pid"
wait "$up_pid"
start_up --no-example --data "$work/cluster.db" --config "$work/config.yaml" || exit

node() {
    printf 'apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: "1", memory: 1Gi, pods: "9"}, conditions: [{type: Ready, status: "True"}]}\n' "$1" |
        kubectl create -f -
}
group() { # NAME SPEC
    printf 'apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: %s}\nspec: %s\n' "$1" "$2" | kubectl create -f -
}
pods() { # GROUP N: GROUP-1 ... GROUP-N, one a node
    local i
    for i in $(seq "$2"); do
        printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {scheduling.x-k8s.io/pod-group: %s}}\n' "$1-$i" "$1"
        printf 'spec: {schedulerName: scheduler-plugins-scheduler, containers: [{name: c, image: i, resources: {requests: {cpu: 800m}}}]}\n---\n'
    done | kubectl create -f -
}
says() { # PATTERN COMMAND...
    local out
    out=$("${@:2}") && grep -qE -- "$1" <<<"$out" || { echo "wanted: $1"; echo "got: $out"; return 1; }
}
count() { # N PATTERN COMMAND...
    local n
    n=$(lines_with "$2" "${@:3}") && [ "$n" -eq "$1" ] || { echo "wanted $1 lines with $2, got $n"; "${@:3}"; return 1; }
}
explain() { "$BERTH_BIN/berth" explain --runtime-dir "$run" "$@"; }
queue() { "$BERTH_BIN/berth" queue --runtime-dir "$run" "$@"; }
bound() { # N GROUP
    local n
    n=$(kubectl get pods -l "scheduling.x-k8s.io/pod-group=$2" -o 'jsonpath={.items[*].spec.nodeName}' | wc -w)
    [ "$n" -eq "$1" ] || { echo "$n bound"; kubectl get pods -o wide; queue; return 1; }
}
message() { kubectl get events --field-selector reason=FailedScheduling --no-headers -o custom-columns=P:.involvedObject.name,M:.message; }
phase() { [ "$(kubectl get pg "$2" -o 'jsonpath={.status.phase}')" = "$1" ] || { kubectl get pg; return 1; }; }

# ---- three of three ----
for n in n1 n2 n3; do check "node $n" node $n; done
check "a group of three" group a '{minMember: 3}'
check "two of its pods" pods a 2
eventually "wait for the third" 20 says 'a-2 +unschedulable .*a: 0 of 3 scheduled, 1 missing +Coscheduling +0/3 nodes are available: pre-filter pod a-2 cannot find enough sibl' queue
check "the third" kubectl create -f - <<EOF
apiVersion: v1
kind: Pod
metadata: {name: a-3, labels: {scheduling.x-k8s.io/pod-group: a}}
spec: {schedulerName: scheduler-plugins-scheduler, containers: [{name: c, image: i, resources: {requests: {cpu: 800m}}}]}
EOF
eventually "and all three go" 20 bound 3 a
eventually "its phase says so" 20 phase Running a
check "explain finds them on their nodes" says '^Result: +Scheduled' explain podgroup/a

# ---- two of three: they wait, and time out ----
check "the three end" kubectl delete pods -l scheduling.x-k8s.io/pod-group=a --grace-period=0 --force
check "a node goes" kubectl delete node n3
check "a group of three that waits some seconds" group b "{minMember: 3, scheduleTimeoutSeconds: $((2 * PATIENCE))}"
check "its pods" pods b 3
eventually "two of them wait at Permit" 20 count 2 'b-. +waiting .*b: 2 of 3 scheduled +Coscheduling +waiting on permit' queue
check "and are not bound" bound 0 b
eventually "they time out, one for all" 20 says "^b-. .*rejected due to timeout after waiting $((2 * PATIENCE))s at plugin Coscheduling" message
check "the other one with it" says '^b-. .*rejection in Unreserve' message
check "nobody is bound" bound 0 b
check "the group goes" kubectl delete pg b
check "and its pods" kubectl delete pods -l scheduling.x-k8s.io/pod-group=b --grace-period=0 --force

# ---- killed while two wait ----
check "another group of three" group c '{minMember: 3}'
check "its pods" pods c 3
eventually "two wait at Permit" 20 count 2 'c-. +waiting ' queue
explain podgroup/c >"$work/c"
check "explain knows the group" says 'default/c, a gang of at least 3, of plugin Coscheduling' cat "$work/c"
check "and why it waits" says 'Unschedulable: 2 of the 3 that it takes have a node' cat "$work/c"
check "two of it have room" count 2 '^c-. +has room +n[12] ' cat "$work/c"
check "one has none" count 1 '^c-. +no room +- +0/2 nodes are available: 2 Insufficient cpu' cat "$work/c"
check "and what would give it a node" says '^For c-., with the others where they have room:' cat "$work/c"
check "as a document" says '"policy": ?"Coscheduling"' explain podgroup/c -o json
old=$(pid_of berth-scheduler)
kill -KILL "$old"
another() { local p; p=$(pid_of berth-scheduler) && [ -n "$p" ] && [ "$p" != "$old" ]; }
eventually "the scheduler is killed and started again" 20 another
# What the group was refused for while the scheduler began anew is over: a change of it has it tried again.
again() { kubectl label pg c --overwrite "again=$RANDOM" >/dev/null && count 2 'c-. +waiting ' queue; }
eventually "two wait again" 20 again
check "nobody was bound" bound 0 c
check "a third node" node n3
eventually "and all three go" 20 bound 3 c

# ---- a group that backs off ----
check "a group without room" group d '{minMember: 2}'
check "its pods" pods d 2
eventually "is given up as a whole" 20 says 'PodGroup default/d gets rejected due to Pod d-. is unschedulable even after PostFilter' message
# As upstream, what brings them back is a pod that gets its node, or a change of their PodGroup.
touched() { kubectl annotate pg d --overwrite "touched=$RANDOM$RANDOM" >/dev/null && "$@"; }
eventually "and backs off" 20 touched says 'podGroup default/d failed recently' message
check "room for it" kubectl delete pods -l scheduling.x-k8s.io/pod-group=c --grace-period=0 --force
eventually "which it takes when that is over" 40 touched bound 2 d

# ---- more than there is ----
check "a group that asks for more than the cluster has" group e '{minMember: 1, minResources: {cpu: "5", memory: 1Gi}}'
check "its pod" pods e 1
eventually "is not tried" 20 says '^e-1 +0/3 nodes are available: resource gap: map\[cpu:\{\{[0-9]+ -3\} \{<nil>\}  DecimalSI\}\]\.' message
