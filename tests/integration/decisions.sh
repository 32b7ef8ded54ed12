#!/usr/bin/env bash
# Recorded decisions on a live system: what `berth decisions` and the simulator tell is what `berth explain` says,
# annotations on pods, and a scheduler that is killed, a file that goes away, two schedulers on one file.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "decisions" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
b() { "$BERTH_BIN/berth" "$@"; }
prefix=kube-scheduler-simulator.sigs.k8s.io

start_up --binders 1 --annotate-decisions || exit 1
export BERTH_RUNTIME_DIR=$run
server=$(awk '/server:/ {print $2}' "$KUBECONFIG")
get() { curl -fsS "$server/berth/v1/$1"; }
code() { curl -s -o /dev/null -w '%{http_code}' "$server/berth/v1/$1"; }
pod() { # NAME CPU [SPEC-MEMBERS]
    k create -f - <<Y
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec: {${3:-} containers: [{name: c, image: pause, resources: {requests: {cpu: $2}}}]}
Y
}
last() { b decisions --pod "default/$1" --limit 1 -o json | jq -r ".items[0]$2"; }
outcome_is() { [ "$(last "$1" .outcome)" = "$2" ]; }
annotation() { k get pod "$1" -o json | jq -r --arg k "$prefix/$2" '.metadata.annotations[$k]'; }
annotated() { [ "$(annotation "$1" "$2")" != null ]; }

# ---- what was decided
pod small 100m >/dev/null
eventually "a bound pod's outcome is recorded" 15 outcome_is small Bound
check "its node is the one it has" test "$(last small .nodeName)" = "$(k get pod small -o jsonpath='{.spec.nodeName}')"
expect "list" "default/small +1 +Scheduled +Bound +node-" b decisions --pod default/small
expect "list, wide" 'UnschedulablePodAdd +default-scheduler' b decisions -n default -o wide
expect "show" '^Result: +Scheduled on node-' b decisions show "$(last small .id)"
expect "show one node" 'untolerated taint' b decisions show "$(last small .id)" --node node-c1
expect "a node that was chosen, plugin by plugin" '^SCORE +WEIGHT +RAW +NORMALIZED +WEIGHTED' b decisions show "$(last small .id)" --node "$(last small .nodeName)"
expect "its annotations" "^$prefix/selected-node: node-" b decisions annotations "$(last small .id)"
check "as JSON" test "$(b decisions annotations "$(last small .id)" -o json | jq -r --arg k "$prefix/selected-node" '.[$k]')" = "$(last small .nodeName)"
check "none of an attempt that there is not" status 1 b decisions annotations 999999
check "nor of what is no number" status 2 b decisions annotations x
pod big 900 >/dev/null
eventually "a failed attempt is recorded" 15 outcome_is big ""
b explain pod/big -o json | jq -S .explanation >"$work/explain"
b decisions show "$(last big .id)" -o json | jq -S . >"$work/recorded"
check "recorded and explained are equal" diff "$work/explain" "$work/recorded"
get "decisions/$(last big .id)/explanation" | jq -S . >"$work/served"
check "and so is what the simulator tells" diff "$work/explain" "$work/served"
check "the condition has the same message" test "$(last big .message)" = \
    "$(k get pod big -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}')"

# ---- over HTTP
check "summary" test "$(get "pods/default/big/decisions" | jq -r '.items[0].result')" = Unschedulable
check "detail: a funnel that ends with nothing" test "$(get "decisions/$(last big .id)" | jq '.funnel[-1].count')" = 0
check "nodes" test "$(get "decisions/$(last big .id)/nodes?status=rejected&q=cpu" | jq .total)" = 4
check "overview says that decisions are recorded" test "$(get overview | jq -r .recording.mode)" = full
check "no such attempt" test "$(code decisions/999999)" = 404
check "no number" test "$(code decisions/x)" = 400
curl -sN "$server/berth/v1/watch?kinds=decisions" >"$work/stream" &
streamer=$!

# ---- annotations
eventually "a bound pod is annotated" 15 annotated small bind-result
check "with the node that was selected" test "$(annotation small selected-node)" = "$(last small .nodeName)"
check "and its bind" test "$(annotation small bind-result)" = '{"DefaultBinder":"success"}'
eventually "a pending pod is annotated" 15 annotated big filter-result
check "with what each node said" test "$(annotation big filter-result | jq -r '."node-a1".NodeResourcesFit')" = "Insufficient cpu"
check "skipped plugins are empty" test "$(annotation big prefilter-result-status | jq -r .NodePorts)" = ""
check "rejected nodes" test "$(annotation big postfilter-result | jq -c .)" = '{"node-a1":{},"node-a2":{},"node-b1":{},"node-b2":{},"node-c1":{}}'
check "history is of this pod" test "$(annotation big result-history | jq length)" = "$(b decisions --pod default/big -o json | jq '.items | length')"
check "the same over HTTP" test "$(get "decisions/$(last small .id)/annotations" | jq -r --arg k "$prefix/selected-node" '.[$k]')" = "$(last small .nodeName)"
eventually "the stream has them" 15 grep -q '"name":"big"\|"name":"small"' "$work/stream"
kill "$streamer"

# ---- accidents
before=$(last big .id)
kill -9 "$(pid_of berth-scheduler)"
pod after 100m >/dev/null
eventually "a new scheduler goes on with the file" 30 outcome_is after Bound
check "ids rise" test "$(last after .id)" -gt "$before"
rm -f "$run/scheduler/decisions.db" "$run/scheduler/decisions.db-wal" "$run/scheduler/decisions.db-shm"
# A moment long the answer may be that the file is being changed, and big's next attempt may be in a new one.
nothing_before() { [ "$(get decisions | jq "[.items[] | select(.id <= $1)] | length")" = 0 ]; }
eventually "without a file nothing of before is told" 15 nothing_before "$before"
sleep 1
pod anew 100m >/dev/null
eventually "the file is made anew" 30 outcome_is anew Bound
check "the simulator reads the new one" test "$(get pods/default/anew/decisions | jq -r '.items[0].outcome')" = Bound
check "ids have gone on rising" test "$(last anew .id)" -gt "$before"
eventually "annotations go on" 15 annotated anew bind-result
"$BERTH_BIN/berth-scheduler" --runtime-dir "$work" --metrics-address 0 --record-decisions full \
    --decisions-file "$run/scheduler/decisions.db" >"$work/second.log" 2>&1 &
also_stop=$!
says() { grep -q "$1" "$work/second.log"; }
eventually "a second scheduler on the file is told so" 15 says 'another scheduler writes to this file'
expect "not a file of ours" 'not a file of recorded decisions' bash -c "! '$BERTH_BIN/berth' decisions --decisions-file '$KUBECONFIG'"
expect "no file" 'Is a scheduler recording' bash -c "! '$BERTH_BIN/berth' decisions --decisions-file '$work/none.db'"
expect "wrong usage" 'unknown verb "lst"' bash -c "! '$BERTH_BIN/berth' decisions lst"
