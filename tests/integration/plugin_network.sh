#!/usr/bin/env bash
# NetworkOverhead and TopologicalSort: an application in berth simulate, with what is wrong with its objects told; and in a
# running cluster, where costs that change, and a pod that comes near, wake who was rejected.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
build=$(dirname "$BERTH_BIN")
root=$(cd "$here/../.." && pwd)
config=$root/config/plugins/networkaware.yaml
node() { # name region zone
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {topology.kubernetes.io/region: %s, topology.kubernetes.io/zone: %s}}\nstatus: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}, capacity: {cpu: "8", memory: 16Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}\n' "$@"
}
pod() { # name group workload [zone]
    local where=
    if [ $# -eq 4 ]; then where="nodeSelector: {topology.kubernetes.io/zone: $4}, "; fi
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {appgroup.diktyo.x-k8s.io: %s, appgroup.diktyo.x-k8s.io.workload: %s}}\nspec: {%scontainers: [{name: c, image: pause, resources: {requests: {cpu: "6"}}}]}\n' \
        "$1" "$2" "$3" "$where"
}
group() { # name [what db depends on]
    cat <<Y
---
apiVersion: appgroup.diktyo.x-k8s.io/v1alpha1
kind: AppGroup
metadata: {name: $1, namespace: default}
spec:
  numMembers: 3
  topologySortingAlgorithm: ReverseKahn
  workloads:
  - workload: {kind: Deployment, name: web, selector: web}
    dependencies: [{workload: {kind: Deployment, name: cart, selector: cart}, maxNetworkCost: 10}]
  - workload: {kind: Deployment, name: cart, selector: cart}
    dependencies: [{workload: {kind: Deployment, name: db, selector: db}, minBandwidth: 100Mi, maxNetworkCost: 1}]
  - workload: {kind: StatefulSet, name: db, selector: db}
    dependencies: [${2-}]
Y
}
# What the application's own controller writes: sorted by selector.
order='{topologyOrder: [{workload: {kind: Deployment, name: cart, selector: cart}, index: 2}, {workload: {kind: StatefulSet, name: db, selector: db}, index: 1}, {workload: {kind: Deployment, name: web, selector: web}, index: 3}]}'
topology() { # cost-between-zones name-of-weights [cost-between-regions]
    cat <<Y
---
apiVersion: networktopology.diktyo.x-k8s.io/v1alpha1
kind: NetworkTopology
metadata: {name: nt-default, namespace: default}
spec:
  configmapName: none
  weights:
  - name: $2
    topologyList:
    - topologyKey: topology.kubernetes.io/region
      originList:
      - {origin: west, costList: [{destination: east, networkCost: ${3:-20}, bandwidthCapacity: 10Gi}]}
      - {origin: east, costList: [{destination: west, networkCost: ${3:-20}}]}
    - topologyKey: topology.kubernetes.io/zone
      originList:
      - {origin: w1, costList: [{destination: w2, networkCost: $1}]}
      - {origin: w2, costList: [{destination: w1, networkCost: $1}]}
Y
}
nodes() { node a west w1; node a2 west w1; node b west w2; node c east e1; }
simulated() {
    "$BERTH_BIN/berth" simulate --verify --tie-break=first --plugin-dir "$build/plugins" --config "$config" "$@" 2>&1
}

"$BERTH_BIN/berth" plugin check "$build/plugins/networkaware.so" >"$work/checked" 2>&1
expect "berth plugin check has both of them decide" 'plugin +TopologicalSort: queueSort decided +64 pods on 16 nodes, both paths agree: 60 placed, 4 unschedulable, 0 gated, 0 failed memory +is freed' \
    bash -c 'grep -v "^reads" "$1" | sed -n "/TopologicalSort/,\$p" | tr "\n" " "' - "$work/checked"

# ---- an application, its pods in the wrong order: db first, cart beside it, web not too far
{ nodes; topology 5 UserDefined; group shop; echo "status: $order"; } >"$work/cluster.yaml"
{ pod web shop web; pod cart shop cart; pod db shop db; } >"$work/pods.yaml"
simulated -f "$work/cluster.yaml" -f "$work/pods.yaml" --explain >"$work/said"
expect "the last in the file is tried first" 'default +db +Scheduled +a$' cat "$work/said"
expect "what talks to it goes to its zone" 'default +cart +Scheduled +a2$' cat "$work/said"
expect "and what talks to that to the next one" 'default +web +Scheduled +b$' cat "$work/said"
expect "berth simulate --explain says why" 'NetworkOverhead +Unschedulable +Node c does not meet several network requirements from Workload dependencies: Satisfied: 0 Violated: 1 +c$' cat "$work/said"
check "and nothing is wrong" bash -c '! grep -q "A plugin says" "$1"' - "$work/said"

# ---- what is wrong is told, and does no harm
pod p none web >"$work/none.yaml"
expect "a pod whose AppGroup is missing gets a node" 'default +p +Scheduled +a$' simulated -f "$work/cluster.yaml" -f "$work/none.yaml"
expect "and the log says so" 'plugin="?NetworkOverhead.*AppGroup \\"none\\" is in none of the namespaces: for its pods all nodes are alike' \
    simulated -f "$work/cluster.yaml" -f "$work/none.yaml"
{ nodes; topology 5 Dijkstra; group shop; echo "status: $order"; } >"$work/weights.yaml"
expect "weights of another name" 'NetworkTopology \\"nt-default\\" has no weights of the name weightsName' simulated -f "$work/weights.yaml" -f "$work/pods.yaml"
{ nodes; group shop; } >"$work/bare.yaml"
expect "no NetworkTopology" 'NetworkTopology \\"nt-default\\" is in none of the namespaces' simulated -f "$work/bare.yaml" -f "$work/pods.yaml"
{ nodes; topology 5 UserDefined; group shop; } >"$work/unsorted.yaml"
simulated -f "$work/unsorted.yaml" -f "$work/pods.yaml" --explain >"$work/computed"
check "where nobody wrote the order it is the same, by spec.topologySortingAlgorithm" cmp "$work/said" "$work/computed"
{ nodes; group shop | sed 's/^    dependencies: .*/    dependencies: []/'; } >"$work/free.yaml"
expect "without dependencies there is none" 'plugin="?TopologicalSort.*AppGroup \\"shop\\" has neither status.topologyOrder nor dependencies: its pods go by priority and time' \
    simulated -f "$work/free.yaml" -f "$work/pods.yaml"
{ nodes; topology 5 UserDefined; group shop '{workload: {kind: Deployment, name: web, selector: web}, maxNetworkCost: 10}'; echo "status: $order"; } >"$work/circle.yaml"
expect "dependencies in a circle" 'plugin="?TopologicalSort.*AppGroup \\"shop\\" has dependencies that go round in a circle' simulated -f "$work/circle.yaml" -f "$work/pods.yaml"
expect "and its pods get nodes as they can" '3 placed, 0 unschedulable' simulated -f "$work/circle.yaml" -f "$work/pods.yaml"

# ---- in a running cluster
command -v kubectl >/dev/null || { skip "in a running cluster" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
on() { [ "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" = "$2" ]; }
says() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$2"; }
seen() { curl -fsS --noproxy '*' "http://127.0.0.1:$(metrics_port watcher)/metrics" | grep -qxF "berth_watcher_objects{kind=\"$1\"} 1"; }
apply() { "$@" | k apply -f -; }
start_up --binders 1 --no-example --config "$config" --plugin-dir "$build/plugins" || exit 1
check "definitions and rights" k apply -f "$root/config/plugins/networkaware-crd.yaml"
served() { k get appgroups,networktopologies; }
eventually "the kinds are served" 20 served
nodes >"$work/nodes.yaml"
check "nodes" k apply -f "$work/nodes.yaml"
check "the application" apply group shop
check "what it costs" apply topology 5 UserDefined
eventually "the watcher has the AppGroup" 20 seen appgroups.appgroup.diktyo.x-k8s.io
eventually "and the NetworkTopology" 20 seen networktopologies.networktopology.diktyo.x-k8s.io
check "a database in the east" apply pod db shop db e1
eventually "gets the one node there" 20 on db c
check "its cart" apply pod cart shop cart w1
eventually "has no room there, and is too far elsewhere" 20 says cart 'Node a does not meet several network requirements from Workload dependencies: Satisfied: 0 Violated: 1'
expect "berth explain says so" 'NetworkOverhead +Unschedulable +Node a2 does not meet several network requirements' \
    env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" explain --runtime-dir "$run" pod/cart
west() { [[ $(k get pod "$1" -o 'jsonpath={.spec.nodeName}') =~ ^(a|a2)$ ]]; }
check "a better line from west to east" apply topology 5 UserDefined 1
eventually "the cart is tried again" 20 west cart
check "the old one" apply topology 5 UserDefined
check "another application" apply group pair
check "a node for its cart" apply node d east e1
check "its cart" apply pod cart2 pair cart e1
eventually "gets it" 20 on cart2 d
check "its web" apply pod web2 pair web
eventually "is too far from it" 20 says web2 'Node b does not meet several network requirements from Workload dependencies: Satisfied: 0 Violated: 1'
check "one more cart, near" apply pod cart3 pair cart w2
eventually "gets a node" 20 on cart3 b
eventually "and web is tried again" 20 west web2
