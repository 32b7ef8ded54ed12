#!/usr/bin/env bash
# Random kill -9 of every Berth process while a load runs against an API server that refuses, cuts connections
# and loses replies: every pod ends bound, exactly once.
# SEED repeats a run; KILLS and PODS change its size; FAULTS is what the API server does (berth-simulator --faults).
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
SEED=${SEED:-$RANDOM}
KILLS=${KILLS:-8}
PODS=${PODS:-3000}
FAULTS=${FAULTS-429-every=403,500-every=307,lose-every=199,truncate-every=503,drop-watch-every=1501}
RANDOM=$SEED
echo "# SEED=$SEED KILLS=$KILLS PODS=$PODS FAULTS=$FAULTS"

"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/kubeconfig" --faults "$FAULTS" >"$work/simulator.log" 2>&1 &
also_stop=$!
wait_for_file "$work/kubeconfig" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
KUBECONFIG=$work/kubeconfig
export KUBECONFIG
start_up --kubeconfig "$KUBECONFIG" --runtime-dir "$work/run" --binders 2 || exit 1
server=$(sed -n 's/.*server: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$KUBECONFIG" | head -n 1)

"$BERTH_BIN/berth" load synthetic --node-count 200 --pod-count "$PODS" --parallel 16 -o json --timeout 60s \
    >"$work/load.json" 2>"$work/load.err" &
load=$!
victims=(berth-watcher berth-scheduler 'berth-binder .*--instance 1' 'berth-binder .*--instance 2')
for ((i = 0; i < KILLS; i++)); do
    v=${victims[RANDOM % 4]}
    sleep "0.$((RANDOM % 6 + 1))"
    pid=$(pid_of "$v")
    [ -n "$pid" ] && kill -9 "$pid" && echo "# killed ${v}"
done
wait "$load"
expect "the load ends with every pod decided" '^0$' echo $?
expect "every pod is bound" "\"bound\":$PODS,\"unschedulable\":0,\"undecided\":0,\"failed\":0" cat "$work/load.json"
# lists may be cut as well: ask until one is whole
get() { curl -fsS --retry 20 --retry-all-errors --retry-delay 0 "$server$1" >"$2"; }
check "the pods can be listed" get /api/v1/pods "$work/pods.json"
expect "as many pods as were created" "^$PODS\$" jq '.items | length' "$work/pods.json"
expect "no pod without a node" '^0$' jq '[.items[] | select(.spec.nodeName == null)] | length' "$work/pods.json"
expect "no bound pod says PodScheduled=False" '^0$' jq '[.items[] | select(any(.status.conditions[]?;
    .type == "PodScheduled" and .status == "False"))] | length' "$work/pods.json"
expect "no node holds more than it has" '^true$' jq '
    [.items[] | .spec.nodeName] | group_by(.) | map(length) | max <= 110' "$work/pods.json"
check "the events can be listed" get '/apis/events.k8s.io/v1/events' "$work/events.json"
expect "no event tells of another node than the pod's" '^0$' jq -n --slurpfile p "$work/pods.json" --slurpfile e "$work/events.json" '
    ($p[0].items | map({key: .metadata.name, value: .spec.nodeName}) | from_entries) as $node |
    [$e[0].items[] | select(.reason == "Scheduled") | . as $ev |
        select($ev.note | endswith(" to " + $node[$ev.regarding.name]) | not)] | length'
kill -INT "$up_pid"
wait "$up_pid"
expect "the end is clean" '^0$' echo $?
up_pid=
check "nothing is left in /dev/shm" no_shm
check "no socket is left" no_line_with sock ls "$work/run"
[ "$failed" -eq 0 ] || grep -h '^[WEF]' "$work"/run/*.log | sed 's/^/#   /' | tail -n 40
