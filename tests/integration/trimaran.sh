#!/usr/bin/env bash
# berth-metrics asks each of its sources and writes a file; a running scheduler's Trimaran plugins decide by it, show how old it is,
# and do not decide by what is too old.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in python3 jq curl; do
    command -v $t >/dev/null || { skip "Trimaran" "no $t"; exit 0; }
done
build=$(dirname "$BERTH_BIN")
source_pid=
stop_source() { [ -z "$source_pid" ] || kill "$source_pid" 2>/dev/null; }
now=$(date +%s)

# ---- a source
series='instance:node_cpu:ratio[15m]' mem='instance:node_memory_utilisation:ratio[15m]'
vector() { # node value ...
    local list=()
    while [ $# -gt 0 ]; do list+=("{\"metric\": {\"instance\": \"$1\"}, \"value\": [$now.25, \"$2\"]}"); shift 2; done
    local IFS=,
    printf '{"status": "success", "data": {"resultType": "vector", "result": [%s]}}' "${list[*]}"
}
watcher() { # end of the window, load of node a
    printf '{"timestamp": 1, "window": {"duration": "15m", "start": %s, "end": %s}, "data": {"NodeMetricsMap": {
      "a": {"metrics": [{"type": "CPU", "operator": "AVG", "value": %s}, {"type": "CPU", "operator": "STD", "value": 2.5}, {"type": "Memory", "value": 7}]},
      "b": {"metrics": [{"type": "CPU", "operator": "Latest", "value": 70}]},
      "bad name": {"metrics": [{"type": "CPU", "operator": "AVG", "value": 1}]},
      "c": {"metrics": [{"type": "CPU", "operator": "AVG", "value": "NaN"}, {"type": "C P", "operator": "AVG", "value": 1}]}}}}' "$(($1 - 900))" "$1" "$2"
}
item() { printf '{"metadata": {"name": "%s"}, "timestamp": "%s", "usage": {"cpu": "%s", "memory": "%s"}}' "$@"; }
has() { printf '{"metadata": {"name": "%s"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}' "$1"; }
utc() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }
answers() { # end of the load watcher's window, load of node a
    cat >"$work/answers.new" <<EOF
{"/watcher": $(watcher "$1" "$2"),
 "avg_over_time($series)": $(vector a:9100 0.31 b 0.5), "stddev_over_time($series)": $(vector a:9100 0.04),
 "avg_over_time($mem)": $(vector a:9100 0.25), "stddev_over_time($mem)": $(vector b +Inf),
 "/apis/metrics.k8s.io/v1beta1/nodes": {"kind": "NodeMetricsList", "items": [$(item a "$(utc "$now")" 1500m 2Gi), $(item gone "$(utc "$now")" 1 1Gi),
   $(item old "$(utc $((now - 900)))" 1 1Gi)]},
 "/api/v1/nodes": {"kind": "NodeList", "items": [$(has a), $(has old)]}}
EOF
    mv "$work/answers.new" "$work/answers"
}
answers "$now" 20
python3 "$here/lib/metrics_source.py" "$work/answers" "$work/port" &
source_pid=$!
trap 'stop_source; finish' EXIT
wait_for_file "$work/port"
url=http://127.0.0.1:$(cat "$work/port")
echo secret >"$work/token"
once() { "$BERTH_BIN/berth-metrics" --once --output - "$@" 2>/dev/null; }

# ---- what each source's replies become
check "a load watcher's metrics in its order" test "$(once --source load-watcher --address "$url")" = "berth-node-metrics 1
window $((now - 900)) $now
a CPU/AVG=20 CPU/STD=2.5 Memory/=7
b CPU/Latest=70"
check "Prometheus' averages and deviations, without ports" test "$(once --source prometheus --address "$url" --token-file "$work/token")" = "berth-node-metrics 1
window $((now - 900)) $now
a CPU/AVG=31 CPU/STD=4 Memory/AVG=25
b CPU/AVG=50"
printf 'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "%s"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\ncurrent-context: c\n' \
    "$url" >"$work/kubeconfig"
check "metrics-server's use of what nodes have" test "$(once --kubeconfig "$work/kubeconfig")" = "berth-node-metrics 1
window $now $now
a CPU/Latest=37.5 Memory/Latest=25"

# ---- what goes wrong
any() { "$@" 2>&1 || true; }
metrics() { "$BERTH_BIN/berth-metrics" "$@"; }
expect "a source that says no" 'GET /api/v1/query.*: HTTP 401' any metrics --once --source prometheus --address "$url"
check "fails" status 1 metrics --once --source prometheus --address "$url"
expect "another path" 'GET /watcher: HTTP 404' any metrics --once --source load-watcher --address "$url/x"
echo '{"/watcher": {"data": {"NodeMetricsMap": []}}}' >"$work/answers"
expect "a reply of another form" 'data.NodeMetricsMap: an object is needed' any metrics --once --source load-watcher --address "$url"
echo '{"/watcher": {"data": {"NodeMetricsMap": {}}}}' >"$work/answers"
expect "one that knows no node" 'the source knows nothing of any node' any metrics --once --source load-watcher --address "$url"
expect "no address" 'address: the URL of prometheus is needed' any metrics --once --source prometheus
check "wrong usage" status 2 metrics --source nagios
check "too often" status 2 metrics --interval 10ms
check "no window" status 2 metrics --window long

# ---- a running scheduler
command -v kubectl >/dev/null || { skip "a running scheduler" "no kubectl"; exit 0; }
answers "$(date +%s)" 0
cat >"$work/config.yaml" <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score: {disabled: [{name: "*"}], enabled: [{name: TargetLoadPacking, weight: 1}]}
  pluginConfig:
  - name: TargetLoadPacking
    args: {watcherAddress: "$url", maxAgeSeconds: 3600, metricProvider: {token: mine}}
EOF
expect "no such source" 'invalid value "nagios" for --node-metrics' any "$BERTH_BIN/berth" up --node-metrics nagios
start_up --binders 1 --no-example --config "$work/config.yaml" --plugin-dir "$build/plugins" --node-metrics "load-watcher=$url" || exit 1
listed() { "$BERTH_BIN/berth" plugins --runtime-dir "$run" | grep '^TargetLoadPacking .* 2 nodes, '; }
eventually "berth up starts it, too" 20 listed
kill -TERM "$up_pid"
wait "$up_pid"
export BERTH_NODE_METRICS=$work/node-metrics
"$BERTH_BIN/berth-metrics" --source load-watcher --address "$url" --interval 1s 2>"$work/metrics.log" &
metrics_pid=$!
stop_source() { kill "$source_pid" "$metrics_pid" 2>/dev/null; }
wait_for_file "$work/node-metrics"
start_up --binders 1 --no-example --config "$work/config.yaml" --plugin-dir "$build/plugins" || exit 1
k() { kubectl --cache-dir "$work/cache" "$@"; }
for n in a b; do
    printf 'apiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {capacity: {cpu: "40", memory: 64Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}\n---\n' $n
done | k create -f - >/dev/null
pod() { printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: 10m, memory: 1Mi}}}]}\n' "$1" | k create -f - >/dev/null; }
on() { [ "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" = "$2" ]; }
pod p1
# an idle node scores 40, one with 70 % half of that
eventually "the pod goes where the load is not" 20 on p1 a
expect "berth plugins tells of how many nodes and how old" '^TargetLoadPacking .* score +2 nodes, [0-9]+s ago +' "$BERTH_BIN/berth" plugins --runtime-dir "$run"
check "as JSON" test "$("$BERTH_BIN/berth" plugins --runtime-dir "$run" -o json | jq '.plugins[0].measuredNodes')" = 2
scrape() { curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics"; }
expect "a metric tells the age" '^berth_scheduler_plugin_measured_age_seconds\{plugin="TargetLoadPacking"\} [0-9]' scrape
expect "and the nodes" '^berth_scheduler_plugin_measured_nodes\{plugin="TargetLoadPacking"\} 2$' scrape
expect "a token in the scheduler's configuration is told" 'metricProvider.token is not used here' cat "$run/scheduler.log"
answers "$(date +%s)" 39
is() { grep -q "^a CPU/AVG=$1 " "$work/node-metrics"; }
eventually "the file follows" 20 is 39
measured() { scrape | grep -q "^berth_scheduler_plugin_measured_age_seconds.* $1"; }
answers "$(($(date +%s) - 7200))" 5
told() { grep -q 'older than maxAgeSeconds: nodes score as without metrics' "$run/scheduler.log"; }
eventually "what is too old decides nothing, and the log says so" 20 told
check "and the metric shows it" measured '[7-9][0-9][0-9][0-9]'
echo '{"/watcher": 503}' >"$work/answers"
failed() { grep -q 'No metrics of nodes.*HTTP 503' "$work/metrics.log"; }
eventually "a source that fails is told once" 20 failed
check "and the file stays" is 5
answers "$(date +%s)" 1
eventually "until it is back" 20 is 1
kill -TERM "$metrics_pid"
wait "$metrics_pid"
check "berth-metrics ends" test $? = 0
refused() { grep -q "node-metrics: $1" "$run/scheduler.log"; }
put_with() { # mode owner: the same file again
    cp "$work/node-metrics" "$work/another" && chmod "$1" "$work/another" && chown "$2" "$work/another" && mv "$work/another" "$work/node-metrics"
}
put_with 666 "$(id -u)"
eventually "a file that others may write decides nothing" 20 refused 'others than its owner may write it'
if [ "$(id -u)" = 0 ]; then
    put_with 640 61299
    eventually "nor does one of another user" 20 refused "it belongs neither to root, nor to the scheduler's user"
fi
kill -TERM "$up_pid"
wait "$up_pid"
