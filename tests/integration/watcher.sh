#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/watcher.sh - berth-watcher against berth-simulator, as processes
#
# One "ok"/"not ok" line a check, last line "N passed, N failed, N skipped". What the watcher knows is
# read from its /metrics.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
RT=$work/rt
sim_pid='' watcher_pid='' url='' metrics=''

stop() { # stop PID [SIGNAL]
    [ -n "$1" ] && kill "-${2:-TERM}" "$1" 2>/dev/null && wait "$1" 2>/dev/null
}
end() {
    stop "$watcher_pid"
    stop "$sim_pid"
    finish
}
trap end EXIT
within() { # within SECONDS COMMAND...: until it succeeds
    local end=$((SECONDS + $1 * PATIENCE))
    shift
    until "$@"; do
        [ $SECONDS -le $end ] || return 1
        sleep 0.05
    done
}

start_sim() { # start_sim PORT FLAGS...
    local port=$1
    shift
    rm -f "$work/kubeconfig"
    "$BERTH_BIN/berth-simulator" --port "$port" --kubeconfig-out "$work/kubeconfig" --no-controllers "$@" \
        >"$work/sim.out" 2>"$work/sim.log" &
    sim_pid=$!
    within 10 test -s "$work/kubeconfig" || return 1
    url=$(sed -n 's/^ *server: *//p' "$work/kubeconfig" | tr -d '"')
    sim_port=${url##*:}
}
start_watcher() {
    rm -f "$work/watcher.log"
    "$BERTH_BIN/berth-watcher" --kubeconfig "$work/kubeconfig" --runtime-dir "$RT" \
        --metrics-address 127.0.0.1:0 >>"$work/watcher.out" 2>"$work/watcher.log" &
    watcher_pid=$!
    within 10 grep -qs metrics_port= "$work/watcher.log" || return 1
    metrics=http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/watcher.log")
}
api() { # api METHOD PATH [JSON]
    curl -sk --noproxy '*' -o "$work/reply" -w '%{http_code}' -X "$1" "$url$2" \
        -H 'Content-Type: application/json' ${CURL_AUTH:+-H "$CURL_AUTH"} ${3:+-d "$3"} |
        grep -qE "^(${WANTED_CODE:-20})"
}
metric() {
    curl -s --noproxy '*' "$metrics/metrics" | awk -v m="$1" '$1 == m {print $2}'
}
metric_is() { [ "$(metric "$1")" = "$2" ]; }
ready() { curl -sf --noproxy '*' -o /dev/null "$metrics/readyz"; }
not_ready() { ! ready; }
alive() { curl -sf --noproxy '*' -o /dev/null "$metrics/livez"; }
node() {
    api POST /api/v1/nodes '{"apiVersion":"v1","kind":"Node","metadata":{"name":"'"$1"'"},
        "status":{"allocatable":{"cpu":"8","memory":"16Gi","pods":"110"}}}'
}
pod() {
    api POST /api/v1/namespaces/default/pods '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"'"$1"'"},
        "spec":{"containers":[{"name":"c","image":"nginx"}]}}'
}
bind() {
    api POST "/api/v1/namespaces/default/pods/$1/binding" '{"apiVersion":"v1","kind":"Binding",
        "metadata":{"name":"'"$1"'"},"target":{"kind":"Node","name":"'"$2"'"}}'
}
note_shm_name() { # the segments the running watcher has mapped
    sed -n 's|.*/dev/shm/\(berth-[0-9a-f]*\).*|\1|p' "/proc/$watcher_pid/maps" | sort -u | head -n 1 >"$work/shm"
    [ -s "$work/shm" ]
}
no_leftovers() { [ -s "$work/shm" ] && [ ! -e "$RT/watcher.sock" ] && ! compgen -G "/dev/shm/$(cat "$work/shm")*" >/dev/null; }

if ! command -v curl >/dev/null; then
    skip "berth-watcher end to end" "curl is missing"
    exit
fi
mkdir -m 750 "$RT"

# ---- before and after the API server is there ----------------------------------------------------
start_sim 0
stop "$sim_pid"
start_watcher
check "without an API server the watcher lives and is not ready" eval 'alive && not_ready'
start_sim "$sim_port"
eventually "it becomes ready when the server comes" 10 ready
check "the snapshot has a name of its own" note_shm_name
check "a second watcher in the same directory is refused" eval \
    '! "$BERTH_BIN/berth-watcher" --kubeconfig "$work/kubeconfig" --runtime-dir "$RT" --metrics-address 0 2>/dev/null && alive'

# ---- following -----------------------------------------------------------------------------------
for i in 1 2 3; do node "node-$i"; done
eventually "nodes appear in the snapshot" 5 metric_is berth_watcher_snapshot_nodes 3
for i in 1 2 3 4 5; do pod "pod-$i"; done
eventually "pending pods are kept for schedulers" 5 metric_is 'berth_watcher_objects{kind="Pod"}' 5
check "and are not in the snapshot" metric_is berth_watcher_snapshot_pods 0
for i in 1 2 3; do bind "pod-$i" "node-$i"; done
eventually "bound pods move to the snapshot" 5 metric_is berth_watcher_snapshot_pods 3
check "their transition was seen" metric_is berth_watcher_pods_bound_total 3
api DELETE '/api/v1/namespaces/default/pods/pod-1?gracePeriodSeconds=0'
api DELETE /api/v1/nodes/node-3
check "deleted pods and nodes leave it" eval \
    'within 5 metric_is berth_watcher_snapshot_nodes 2 && within 5 metric_is berth_watcher_snapshot_pods 2'

# ---- crashes -------------------------------------------------------------------------------------
stop "$watcher_pid" KILL
start_watcher
within 10 ready
check "after kill -9 the state is the same" eval \
    'metric_is berth_watcher_snapshot_nodes 2 && metric_is berth_watcher_snapshot_pods 2 && metric_is "berth_watcher_objects{kind=\"Pod\"}" 4'
stop "$sim_pid" KILL
start_sim "$sim_port"
node "reborn"
eventually "a server that lost everything is followed" 20 eval \
    'metric_is berth_watcher_snapshot_nodes 1 && metric_is berth_watcher_snapshot_pods 0'
stop "$watcher_pid"
check "SIGTERM leaves nothing behind" no_leftovers
stop "$sim_pid"

# ---- a server that misbehaves --------------------------------------------------------------------
start_sim 0 --faults 410-every=7,drop-watch-every=11,truncate-every=23,429-every=17 --bookmark-interval 1s
start_watcher
within 40 ready
start_rv() { rv=$(curl -s --noproxy '*' "$url/api/v1/pods" | jq -re .metadata.resourceVersion); }
within 5 start_rv
# Writes are hit by the faults too: each is repeated until it is done (201) or was before (409).
WANTED_CODE='201|409'
for i in $(seq 20); do within 5 node "n$i"; done
for i in $(seq 30); do within 5 pod "p$i"; done
for i in $(seq 15); do within 5 bind "p$i" "n$i"; done
followed_all() {
    metric_is berth_watcher_snapshot_nodes 20 && metric_is berth_watcher_snapshot_pods 15 &&
        metric_is 'berth_watcher_objects{kind="Pod"}' 30 && return
    curl -s --noproxy '*' "$metrics/metrics" | grep -E '^berth_watcher_(snapshot_(nodes|pods)|objects.*Pod")'
    curl -s --noproxy '*' "$url/api/v1/pods" | jq '.items | length'
    grep '"Pod"' "$work/watcher.log" | tail -n 4
    return 1
}
# Back-off goes up to 30 s, jittered to twice that, and is forgotten after two quiet minutes only, as client-go's.
eventually "410s, dropped and truncated watches and 429s lose nothing" 200 followed_all
WANTED_CODE=
# 45 events and more to catch up with, a drop at every 11th: a client has to get on nevertheless.
caught_up() { [ "$(curl -sN --noproxy '*' --max-time 5 "$url/api/v1/pods?watch=1&resourceVersion=$rv" | grep -c '"ADDED"')" -ge 1 ]; }
eventually "a watch that is dropped sends what came before" 10 caught_up
stop "$watcher_pid"
stop "$sim_pid"

# ---- TLS and tokens ------------------------------------------------------------------------------
printf 's3cret,system:kube-scheduler,1\nt-admin\n' >"$work/tokens"
if start_sim 0 --tls --token-file "$work/tokens"; then
    start_watcher
    eventually "TLS with the server's own CA and a bearer token" 10 ready
    CURL_AUTH="Authorization: Bearer t-admin" node n1
    eventually "and what happens there is seen" 5 metric_is berth_watcher_snapshot_nodes 1
    check "the token is in no log" no_line_with s3cret cat "$work/watcher.log"
    stop "$watcher_pid"
fi
