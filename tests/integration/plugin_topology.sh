#!/usr/bin/env bash
# NodeResourceTopologyMatch in a running cluster: pods go where one NUMA node has room, an object that changes wakes them, and
# with discardReservedNodes a node is used again once its pod is bound. A second profile has the cache: what its pods take counts
# in every zone until the node's object has their fingerprint, also after a restart, and pods of the other profile are foreign. A third
# one makes room in zones by preemption.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "topology" "no kubectl"; exit 0; }
build=$(dirname "$BERTH_BIN")
root=$(cd "$here/../.." && pwd)
k() { kubectl --cache-dir "$work/cache" "$@"; }
node() {
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: "16", memory: 16Gi, pods: "110"}, capacity: {cpu: "16", memory: 16Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}\n' "$1"
}
topology() { # name cpu-of-zone-0 cpu-of-zone-1
    printf -- '---\napiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata: {name: %s}\nattributes: [{name: topologyManagerPolicy, value: single-numa-node}, {name: topologyManagerScope, value: pod}]\nzones:\n' "$1"
    local i=0 cpu
    for cpu in "$2" "$3"; do
        printf -- '- {name: node-%d, type: Node, resources: [{name: cpu, capacity: "4", allocatable: "4", available: "%s"}, {name: memory, capacity: 8Gi, allocatable: 8Gi, available: 8Gi}]}\n' $((i++)) "$cpu"
    done
}
pod_of() { # name cpu
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: pause, resources: {requests: {cpu: "%s", memory: 1Gi}, limits: {cpu: "%s", memory: 1Gi}}}]}\n' "$1" "$2" "$2"
}
pod() { pod_of "$@" | k apply -f -; }
on() { [ "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" = "$2" ]; }
says() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$2"; }

# ---- preemption in a scenario: the object has to say where the pods are ----
build=$(realpath "$build")
fingerprint() { PYTHONPATH=$root/tests/conformance/community python3 -B -c 'import run, sys; print(run.fingerprint(["default/" + p for p in sys.argv[1:]]))' "$@"; }
node a >"$work/a.yaml"
topology a 4 2 | sed "s/^attributes: \[/&{name: nodeTopologyPodsFingerprint, value: $(fingerprint)}, /" >"$work/nobody.yaml"
urgent() { # name seconds
    printf -- '  - {at: %ss, create: [{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {priorityClassName: %s, containers: [{name: c, image: i, resources: {requests: {cpu: 4, memory: 1Gi}, limits: {cpu: 4, memory: 1Gi}}}]}}]}\n' "$2" "$1" "$1" "$1"
}
zones() { # seconds cpu-of-zone-0 attributes
    printf -- '  - {at: %ss, patch: {apiVersion: topology.node.k8s.io/v1alpha2, kind: NodeResourceTopology, name: a, merge: {attributes: [{name: topologyManagerPolicy, value: single-numa-node}, %s], zones: [{name: node-0, type: Node, resources: [{name: cpu, capacity: 4, allocatable: 4, available: %s}, {name: memory, capacity: 8Gi, allocatable: 8Gi, available: 7Gi}]}, {name: node-1, type: Node, resources: [{name: cpu, capacity: 4, allocatable: 4, available: 2}, {name: memory, capacity: 8Gi, allocatable: 8Gi, available: 8Gi}]}]}}}\n' "$1" "$3" "$2"
}
cat >"$work/scenario.yaml" <<EOT
apiVersion: sim.berth.dev/v1alpha1
kind: Scenario
metadata: {name: zones}
spec:
  setup:
  - create:
    - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 1}
    - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
    - {$(sed '/^---/d; s/$/,/' "$work/a.yaml" | tr -d '\n')}
    -
$(sed '/^---/d; s/^/      /' "$work/nobody.yaml")
  schedulers:
  - name: preempting
    config:
$(sed -n '/^apiVersion/,$p' "$root/config/plugins/noderesourcetopologymatch.yaml" | sed 's/# cacheResync/cacheResync/; s/# preemptionMode/preemptionMode/; s/^/      /')
  timeline:
$(urgent low 1)
$(zones 5 0 "{name: nodeTopologyPodsFingerprint, value: $(fingerprint low)}, {name: topology.node.k8s.io/numaplacement-metadata, value: 'npv0v001::ve=leb89::cc=1::nn=2::bn=0'}")
$(urgent high 10)
$(zones 60 4 "{name: nodeTopologyPodsFingerprint, value: $(fingerprint)}")
  until: 120s
  expect:
  - {pods: app=low, scheduled: 100%, at: 9s}
  - {pods: app=high, scheduled: 0%, at: 55s}
  - {pods: app=high, scheduled: 100%}
EOT
scenario() { BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" scenario run --verify "$work/scenario.yaml"; }
expect "the pod in the zone is evicted" 'pods.preempted +1$' scenario
check "and the other one is there when the object has seen it" scenario

sed 's/discardReservedNodes: false/discardReservedNodes: true/' "$root/config/plugins/noderesourcetopologymatch.yaml" >"$work/config.yaml"
sed -n '/^- schedulerName/,$p' "$root/config/plugins/noderesourcetopologymatch.yaml" | sed 's/default-scheduler/cached/; s/# cacheResync/cacheResync/' >>"$work/config.yaml"
sed -n '/^- schedulerName/,$p' "$root/config/plugins/noderesourcetopologymatch.yaml" | sed 's/default-scheduler/preempting/; s/# cacheResync/cacheResync/; s/# preemptionMode/preemptionMode/' >>"$work/config.yaml"
start_up --binders 1 --no-example --config "$work/config.yaml" --plugin-dir "$build/plugins" || exit 1
check "definition and rights" k apply -f "$root/config/plugins/noderesourcetopologymatch-crd.yaml"
served() { k get noderesourcetopologies; }
eventually "the kind is served" 20 served
{ node a; node b; topology a 2 2; topology b 3 1; } >"$work/nodes.yaml"
check "two nodes of two zones" k apply -f "$work/nodes.yaml"
seen() { curl -fsS --noproxy '*' "http://127.0.0.1:$(metrics_port watcher)/metrics" | grep -qxF 'berth_watcher_objects{kind="noderesourcetopologies.topology.node.k8s.io"} 2'; }
eventually "the watcher has their topology" 20 seen
check "a pod of three cores" pod three 3
eventually "goes where one zone has them" 20 on three b
check "a pod of four" pod four 4
eventually "fits no zone, although nodes have sixteen" 20 says four '0/2 nodes are available: 2 cannot align pod.'
expect "berth explain says so" 'NodeResourceTopologyMatch +Unschedulable +cannot align pod' \
    env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" explain --runtime-dir "$run" pod/four
topology a 4 2 >"$work/a.yaml"
check "one zone is freed" k apply -f "$work/a.yaml"
eventually "the pod is tried again" 20 on four a
check "one more of four" pod more 4 # only node a has a zone for it
eventually "a node whose pod is bound is used again" 20 on more a
{ pod_of left 4; pod_of right 4; } >"$work/two.yaml" # the second comes while the first is on its way
check "two at once" k apply -f "$work/two.yaml"
eventually "the first is there" 20 on left a
eventually "and so is the second, which no object woke" 20 on right a

# ---- the cache ----
knows() { # node cpu-of-zone-0 cpu-of-zone-1 pod...: what its agent writes
    topology "$1" "$2" "$3" | sed "s/^attributes: \[/&{name: nodeTopologyPodsFingerprint, value: $(fingerprint "${@:4}")}, /" | k apply -f -
}
pod_in() { pod_of "$2" "$3" | sed "s/^spec: {/&schedulerName: $1, nodeSelector: {pool: cache}, /" | k apply -f -; } # profile name cpu
node c | sed 's/metadata: {/&labels: {pool: cache}, /' >"$work/c.yaml"
check "a node of a pool" k apply -f "$work/c.yaml"
check "whose agent says that nobody is there" knows c 4 4
check "a pod of three of its cores" pod_in cached first 3
eventually "is there" 20 on first c
check "one of two" pod_in cached second 2
eventually "may meet the first in any zone" 20 says second '1 cannot align pod'
check "the agent knows the first" knows c 1 4 first
eventually "and the second goes to the other zone" 20 on second c
check "a pod of the other profile" pod_in default-scheduler foreign 1
eventually "comes past the cache" 20 on foreign c
check "a pod of one core" pod_in cached third 1
eventually "does not trust the node any more" 20 says third '1 invalid node topology data'
check "the agent knows all three" knows c 1 1 first second foreign
eventually "and the third has room" 20 on third c
scheduler=$(pid_of berth-scheduler)
check "the scheduler is killed" kill -9 "$scheduler"
another() { local p; p=$(pid_of berth-scheduler) && [ -n "$p" ] && [ "$p" != "$scheduler" ]; }
eventually "and started again" 30 another
check "a pod of one core more" pod_in cached fourth 1
eventually "waits: the third may be in any zone" 30 says fourth '1 invalid node topology data'
check "the agent knows the third" knows c 0 1 first second foreign third
eventually "and the fourth has room" 20 on fourth c
check "one more" pod_in cached fifth 1
eventually "does not fit" 20 says fifth '1 cannot align pod'
check "an agent that is ahead: of a pod that is not there yet" knows c 2 1 first second foreign third fourth extra
seen_ahead() { [ "$(k get noderesourcetopologies c -o 'jsonpath={.zones[0].resources[0].available}')" = 2 ]; }
check "its object is there" seen_ahead
pod_of extra 1 | sed 's/^spec: {/&nodeName: c, /' >"$work/extra.yaml"
check "the pod comes past all schedulers" k apply -f "$work/extra.yaml"
eventually "and the fifth has room, although no event brought it back" 40 on fifth c

# ---- preemption: the object says in which zone each container is ----
printf 'apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1000\n' >"$work/class.yaml"
check "a class of pods that preempt" k apply -f "$work/class.yaml"
placed() { # containers: in zone 0, which has most of them and so no list of them
    sed "s/^attributes: \[/&{name: topology.node.k8s.io\/numaplacement-metadata, value: 'npv0v001::ve=leb89::cc=$1::nn=2::bn=0'}, /"
}
node d | sed 's/metadata: {/&labels: {pool: preempt}, /' >"$work/d.yaml"
pod_preempting() { pod_of "$1" 4 | sed "s/^spec: {/&schedulerName: preempting, terminationGracePeriodSeconds: 0, nodeSelector: {pool: preempt}, $2/" | k apply -f -; }
knows_placed() { topology "$1" "$2" "$3" | sed "s/^attributes: \[/&{name: nodeTopologyPodsFingerprint, value: $(fingerprint "${@:5}")}, /; s/available: 8Gi/available: 7Gi/" | placed "$4" | k apply -f -; }
check "a node for pods that preempt" k apply -f "$work/d.yaml"
check "with nobody there" knows d 4 2
watched() { curl -fsS --noproxy '*' "http://127.0.0.1:$(metrics_port watcher)/metrics" | grep -qxF 'berth_watcher_objects{kind="noderesourcetopologies.topology.node.k8s.io"} 4'; }
eventually "which the watcher has" 20 watched
check "a pod that fills a zone" pod_preempting low ""
eventually "is there" 20 on low d
check "one that is more important" pod_preempting high "priorityClassName: urgent, "
eventually "does not know what the zone would have without it" 20 says high 'preemption: 0/4 nodes are available: 1 cannot align pod'
check "the agent says where it is" knows_placed d 0 2 1 low
gone() { ! k get pod "$1"; }
eventually "so it is evicted" 30 gone low
evicted() { [ "$(k get events -o json | jq -r '.items[] | select(.reason == "Preempted").involvedObject.name')" = low ]; }
eventually "to make room" 20 evicted
check "the agent has seen that it is gone" knows d 4 2
eventually "and the other one is there" 30 on high d
