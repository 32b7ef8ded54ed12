#!/usr/bin/env bash
# `berth rebalance`: a plan of a running system and of files, and done through the eviction API.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "rebalance" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
b() { "$BERTH_BIN/berth" "$@"; }
plan() { b rebalance -o json "${@:2}" | jq -r "$1"; }

start_up --binders 1 --no-example || exit 1
export BERTH_RUNTIME_DIR=$run
# node NAME: 4 cpu
node() {
    cat <<Y
---
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {kubernetes.io/hostname: $1, pool: ${1%%-*}}}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
Y
}
# deployment NAME REPLICAS CPU
deployment() {
    cat <<Y
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: $2
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: $3}}}]}
Y
}
{ for n in a-1 a-2 b-1 b-2; do node $n; done; deployment web 4 900m; } | k create -f - >"$work/created" ||
    not_ok "objects" "$(cat "$work/created")"
k create -f - >/dev/null <<Y
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}
Y
nodes_with() { k get pods -l app="$1" -o json | jq -r '[.items[].spec.nodeName // "none"] | unique | length'; }
nodes_are() { [ "$(nodes_with "$1")" = "$2" ] && [ "$(k get pods -l app="$1" -o json | jq '[.items[] | select(.status.phase == "Running" and .metadata.deletionTimestamp == null)] | length')" = "$3" ]; }
allows() { [ "$(k get pdb web -o jsonpath='{.status.disruptionsAllowed}')" = "$1" ]; }
eventually "a pod on each node" 10 nodes_are web 4 4
eventually "the budget allows one" 10 allows 1

# ---- plans
expect "three of four nodes, one eviction after the other" '^3 of 4 nodes become free by 3 moves in 3 waves; 0 have nothing to move$' b rebalance
check "every wave has one move, all to the node that stays" test \
    "$(plan '[(.moves | map(.wave) | tostring), (.moves | map(.to) | unique | length), (.moves | map(.budget) | unique | tostring)] | join(" ")')" = '[1,2,3] 1 ["web"]'
check "the same plan twice" test "$(b rebalance -o json)" = "$(b rebalance -o json)"
expect "only nodes of a pool" '^2 of 4 nodes' b rebalance -l pool=a
check "... and no others" test "$(plan '.free | sort | tostring' -l pool=a)" = '["a-1","a-2"]'
expect "at most one node" '^1 of 4 nodes become free by 1 move in 1 wave' b rebalance --max-nodes 1
expect "at most two moves" '^2 of 4 nodes become free by 2 moves' b rebalance --max-moves 2
expect "and says why not more" 'its 1 pods would be more than 2 moves' b rebalance --max-moves 2
check "nothing was changed" nodes_are web 4 4

# ---- pods that stay
k run bare --image pause --overrides '{"spec": {"nodeName": "a-1"}}' >/dev/null
sees_bare() { b get pods 2>/dev/null | grep -q bare; }
eventually "the watcher has it" 10 sees_bare
expect "a pod without a controller holds its node" '^a-1 +pod default/bare: no controller would make it anew' b rebalance
k delete pod bare --grace-period 0 --force >/dev/null 2>&1

# ---- room for a pod
k create -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: big}
spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: "4"}}}]}
Y
waits() { [ "$(b queue --no-headers | awk '$2 == "big" {print $3}')" = unschedulable ]; }
eventually "big fits nowhere" 10 waits
expect "one move makes room for it" '^1 pod that waits gets a place by 1 move$' b rebalance --for big
check "it is promised the node that is left" test "$(plan '.place[0].node == .moves[0].from' --for pod/big)" = true
expect "a pod that is not there" 'no pod that waits in namespace "default" is "bug"' bash -c "'$BERTH_BIN/berth' rebalance --for bug 2>&1; [ \$? -eq 1 ]"
expect "done" '' b rebalance --for big --apply --rate 50
bound() { [ "$(k get pod big -o jsonpath='{.status.phase}')" = Running ]; }
eventually "and big runs" 30 bound
eventually "beside all of web, on the three other nodes" 30 nodes_are web 3 4
k delete pod big --grace-period 0 --force >/dev/null 2>&1
eventually "the budget allows one again" 10 allows 1

# ---- nodes freed, for real
gone() { [ "$(b rebalance -o json | jq '(.free | length) + (.empty | length)')" = 3 ]; }
eventually "three could be free" 10 gone
out=$(b rebalance --apply --rate 50 2>&1)
check "all were evicted" grep -qE 'rebalance: 2 of 2 pods evicted, 0 were gone already' <<<"$out"
eventually "one node has them all" 30 nodes_are web 1 4
check "the others are closed" test "$(k get nodes -o json | jq '[.items[] | select(.spec.unschedulable)] | length')" = 3
expect "nothing is left to do" '^0 of 4 nodes become free by 0 moves in 0 waves; 3 have nothing to move' b rebalance

# ---- files, and wrong usage
k get nodes,pods,pdb -o yaml >"$work/cluster.yaml"
expect "a plan of files" '^0 of 4 nodes become free' b rebalance -f "$work/cluster.yaml"
check "--apply wants a cluster" status 2 b rebalance -f "$work/cluster.yaml" --apply
check "--rate has limits" status 2 b rebalance --rate 0
expect "a bad selector is told" 'invalid value "a in" for --selector: unable to parse requirement' bash -c "'$BERTH_BIN/berth' rebalance -l 'a in' 2>&1; true"
check "no room at all: status 3" bash -c "sed 's/cpu: 900m/cpu: 3/' '$work/cluster.yaml' >'$work/full.yaml'
printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: huge, uid: huge, namespace: default}\nspec: {schedulerName: default-scheduler, containers: [{name: c, image: x, resources: {requests: {cpu: 5}}}]}\n' >>'$work/full.yaml'
'$BERTH_BIN/berth' rebalance -f '$work/full.yaml' --for huge 2>'$work/err'; [ \$? -eq 3 ] && grep -q 'no moves make room for pod default/huge: 0/4 nodes are available' '$work/err'"
