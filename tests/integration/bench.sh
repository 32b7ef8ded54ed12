#!/usr/bin/env bash
# `berth bench perf`: scheduler_perf files of our own through the engine; filters, thresholds, exit codes, data items.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
p() { "$BERTH_BIN/berth" bench perf "$here/bench/performance-config.yaml" "$@"; }
both() { "$@" 2>&1 || true; }

check "all short ones run: status 0" status 0 p --labels short
check "both paths of the engine agree" status 0 p --labels short --verify
check "no threshold counts then" status 0 p --labels slow --verify
expect "a row: 40 pods, 40 attempts" '^Basic/4Nodes +40 +40 +[0-9]+ .* ok$' p --labels short
expect "an event helps pods that were rejected" '^Events/2Nodes +4 +8 ' p --labels short
expect "steady state goes on" '^Churn/steady +[1-9][0-9][0-9]+ ' p --labels short
expect "names are filtered" '^Basic/missed$' p --labels '' --name missed --list
check "no workload matches: status 1" status 1 p --name nothing
check "a missed threshold: status 1" status 1 p --labels slow
expect "a missed threshold is named" 'Basic/missed/namespace-1: expected "SchedulingThroughput" "Average" to be higher: got' \
    both p --labels slow
expect "a gate that has no effect is named" 'note: feature gate SchedulerQueueingHints=false has no effect' both p --labels gate
p --labels refused >"$work/refused" 2>&1
check "churn whose writes are refused ends nothing: status 0" test $? -eq 0
expect "... and the row is complete, its threshold without a number" '^Refused/churn +5 +5 .* not compared$' cat "$work/refused"
expect "... that is told" 'note: threshold of scheduler_nothing Average: not compared' cat "$work/refused"
expect "... and the refusals" 'note: churn: .*pod-named.yaml: pods "only" already exists \(Refused/churn and 1 more\)' cat "$work/refused"
expect "times in CPU time" '^Basic/4Nodes +40 +40 +[1-9]' p --labels short --clock cpu
check "pods that fit nowhere: status 1" status 1 p --labels full
expect "pods that fit nowhere are counted" 'Basic/full: op 1 \(createPods\): namespace namespace-1: 40 of 41 pods have a node: ' \
    both p --labels full
expect "data items" '"Metric": "SchedulingThroughput"' p --labels short -o json
check "data items go into a folder" p --labels short --data-items-dir "$work/items"
expect "named as upstream's" '^BenchmarkPerfScheduling_benchmark_bench_20.*Z.json$' ls "$work/items"
p --labels devices --verify >"$work/devices" 2>&1
expect "claims that are allocated without a pod leave room for one" '^Claims/3of4 +1 +1 ' cat "$work/devices"
expect "volumes, as many as nodes can attach" '^Volumes/six +6 +6 ' cat "$work/devices"
p --labels devices --mode pipeline >"$work/devices" 2>&1
expect "claims in the pipeline" '^Claims/3of4 +1 +1 ' cat "$work/devices"
expect "and volumes" '^Volumes/six +6 +(6|7|8|9|10|11|12) ' cat "$work/devices" # "not found" first, where the watch of claims is behind the one of pods
expect "more claims than devices" 'op 5 \(allocResourceClaims\): claim bench/held-4: 0/2 nodes are available: 2 cannot allocate all claims' both p --labels toomany
expect "a gate that is locked" 'featureGates: \[.*cannot set feature gate DynamicResourceAllocation to false, feature is locked to true\]' both p --labels locked
check "no file: status 2" status 2 "$BERTH_BIN/berth" bench perf
check "a wrong flag: status 2" status 2 p --mode cluster
check "a flag of the other mode: status 2" status 2 p --mode pipeline --verify
expect "... is named" '^berth bench perf: --verify is of --mode engine and has no effect in pipeline$' both p --mode pipeline --verify
check "... the other way round: status 2" status 2 p --binders 2
check "a file that is not there: status 1" status 1 "$BERTH_BIN/berth" bench perf "$work/none.yaml"
# ---- plugins, and kinds that a CustomResourceDefinition makes ----
BERTH_PLUGIN_DIR=$(cd "$(dirname "$BERTH_BIN")" && pwd)/plugins
export BERTH_PLUGIN_DIR
workloads=$here/../../bench/workloads
c() { "$BERTH_BIN/berth" bench perf "$@" --labels short; }
expect "objects of a custom kind, both paths" '^nrt-cached/500Nodes_2000Pods +2000 +2000 ' c "$workloads/community.yaml" --name nrt --verify
mkdir "$work/own"
cp "$workloads"/*.yaml "$work/own"
sed -i 's/cpu: "1"/cpu: "9"/g' "$work/own/pod-guaranteed.yaml"
sed -i "s#\.\./\.\./config#$(cd "$here/../../config" && pwd)#; s/pods: 2000}/pods: 20}/" "$work/own/community.yaml"
expect "which the plugin reads: no zone has nine cores" 'namespace bench: 0 of 20 pods have a node' both c "$work/own/community.yaml" --name '^nrt/'
sed -i '/nrt-crd.yaml/s/nrt-crd/deviceclass/' "$work/own/community.yaml"
expect "a kind that nothing makes" 'nrt.yaml: its kind is not served here, and no CustomResourceDefinition before it makes it$' \
    both c "$work/own/community.yaml" --name '^nrt/'
