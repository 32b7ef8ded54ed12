#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/shm_full.sh - /dev/shm is full, and the runtime directory is: what has no room waits for
# it, and nobody ends. In a mount namespace of its own with small file systems.
here=$(dirname "$0")
if [ -z "${BERTH_OWN_MOUNTS:-}" ]; then
    export BERTH_OWN_MOUNTS=1
    for how in -m -rm; do
        unshare $how mount -t tmpfs none /dev/shm 2>/dev/null && exec unshare $how bash "$0"
    done
fi
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
mount -t tmpfs -o size=1m none /dev/shm 2>"$work/mount.err" || {
    skip "full file systems" "$(tail -n 1 "$work/mount.err")"
    exit 0
}
shm_size() { mount -o "remount,size=$1" /dev/shm; }
sim_pid='' watcher_pid='' scheduler_pid='' binder_pid=''
end() {
    local p
    for p in $scheduler_pid $binder_pid $watcher_pid $sim_pid; do
        kill "$p" 2>/dev/null && wait "$p" 2>/dev/null
    done
    umount "$work/full" 2>/dev/null
    finish
}
trap end EXIT

# ---- no room at the start ----------------------------------------------------------------------------
mkdir -m 750 "$work/small"
"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/kubeconfig" --no-controllers >"$work/sim.out" 2>"$work/sim.log" &
sim_pid=$!
wait_for_file "$work/kubeconfig" || { not_ok "berth-simulator starts" "$(cat "$work/sim.log")"; exit 1; }
start_watcher() { # runtime directory, flags
    local dir=$1
    shift
    "$BERTH_BIN/berth-watcher" --kubeconfig "$work/kubeconfig" --runtime-dir "$dir" \
        --metrics-address 127.0.0.1:0 "$@" >"$work/watcher.out" 2>"$work/watcher.log" &
    watcher_pid=$!
}
watcher_says() { grep -qs "$1" "$work/watcher.log"; }
url() { echo "http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/watcher.log" | head -n 1)/$1"; }
ready() { curl -sf -o /dev/null "$(url readyz)"; }
metric() { curl -sf "$(url metrics)" | awk -v m="$1" '$1 == m {print $2}'; }
metric_is() { [ "$(metric "$1")" = "$2" ]; }
alive() { kill -0 "$watcher_pid" && curl -sf -o /dev/null "$(url livez)"; }
start_watcher "$work/small" --leader-elect=false
eventually "without room the watcher starts" 20 watcher_says metrics_port=
eventually "it says what it waits for" 20 watcher_says 'Shared memory was refused.*bytes=.*No space left'
eventually "it lists nevertheless" 20 metric_is berth_watcher_synced 1
check "it is not ready" eval '! ready'
check "its metric says so" metric_is berth_watcher_snapshot_hidden 1
expect "a reader is told why" 'there is no room for it in /dev/shm' eval '"$BERTH_BIN/berth" get nodes --runtime-dir "$work/small"; true'
check "it lives" alive
shm_size 64m
eventually "room has come: it is ready" 20 ready
check "its metric has that too" metric_is berth_watcher_snapshot_hidden 0
check "its log as well" watcher_says 'Shared memory has room again'
check "the snapshot is read" "$BERTH_BIN/berth" get nodes --runtime-dir "$work/small"
kill "$watcher_pid"
wait "$watcher_pid"
expect "the watcher ends as usual" '^0$' echo $?

# ---- a runtime directory that is full -------------------------------------------------------------------
mkdir -m 750 "$work/full"
mount -t tmpfs -o size=16k,mode=750 none "$work/full"
dd if=/dev/zero of="$work/full/filler" bs=4k 2>/dev/null
start_watcher "$work/full" --kube-api-qps 500
eventually "a runtime directory without room: the watcher is ready" 20 ready
lease_asked() { curl -sf "$(url metrics)" | grep 'rest_client_requests_total{code="404"'; } # a request that it limits
eventually "its requests go" 20 lease_asked
expect "its limit is its own, said once" '^1$' grep -c 'No room to share the request limit.*/api.limit' "$work/watcher.log"
check "it lives on" alive
start_scheduler() {
    "$BERTH_BIN/berth-scheduler" --runtime-dir "$work/full" --metrics-address 0 >>"$work/scheduler.log" 2>&1 &
    scheduler_pid=$!
}
scheduler_logs() { grep -q "$1" "$work/scheduler.log"; }
start_scheduler
"$BERTH_BIN/berth-binder" --kubeconfig "$work/kubeconfig" --runtime-dir "$work/full" --kube-api-qps 500 --metrics-address 0 >"$work/binder.log" 2>&1 &
binder_pid=$!
load_one() { # prefix flags...
    "$BERTH_BIN/berth" load synthetic --kubeconfig "$work/kubeconfig" --pod-count 1 --prefix "$1" --timeout 60s -o json "${@:2}" 2>"$work/load.err"
}
expect "scheduler and binder work without room, too" '"bound":1,' load_one full --node-count 1
check "the mark of plugins is in memory" scheduler_logs 'No space for the mark of plugins'
check "and so is the record of bindings in flight" scheduler_logs 'Bindings in flight are not recorded until there is space'
kill -9 "$scheduler_pid"
wait "$scheduler_pid" 2>/dev/null
start_scheduler
waits() { scheduler_logs 'nothing is decided before the last unrecorded one .*why="a scheduler ran without a record: no space for it"'; }
eventually "the next one finds that there is no record, and waits" 20 waits
check "it lives, too" kill -0 "$scheduler_pid"
for p in "$binder_pid" "$scheduler_pid" "$watcher_pid"; do
    kill "$p"
    wait "$p"
    expect "each ends as usual" '^0$' echo $?
done
scheduler_pid='' binder_pid='' watcher_pid=
kill "$sim_pid"
wait "$sim_pid" 2>/dev/null
sim_pid=
umount "$work/full"

# ---- no room for a larger segment --------------------------------------------------------------------------
start_up --runtime-dir "$work/run" --binders 1 || exit 1
shm_size "$(($(df --output=used -k /dev/shm | tail -n 1) + 16))k" # not a page more than it has
pids() { for p in berth-watcher berth-scheduler 'berth-binder .*--instance 1'; do pid_of "$p"; done | tr '\n' ' '; }
before=$(pids)
up_metric() { curl -sf "http://127.0.0.1:$(metrics_port watcher)/metrics" | awk -v m="$1" '$1 == m {print $2}'; }
hidden() { [ "$(up_metric berth_watcher_snapshot_hidden)" = "$1" ]; }
"$BERTH_BIN/berth" load synthetic --kubeconfig "$KUBECONFIG" --node-count 36000 --pod-count 200 --timeout 300s \
    -o json >"$work/load.json" 2>"$work/load.err" &
load=$!
eventually "growth is refused" 120 hidden 1
check "the log says what was refused" grep -q 'Shared memory was refused.*what="data segment"' "$work/run/watcher.log"
paused() { ! curl -sf -o /dev/null "http://127.0.0.1:$(metrics_port scheduler)/readyz"; }
eventually "the scheduler waits with it" 20 paused
given_back() { [ "$(grep -c /dev/shm/berth- "/proc/$(pid_of berth-scheduler)/maps")" -le 1 ]; } # the control segment
eventually "what it has read is given back" 20 given_back
shm_size 200m
eventually "with room it goes on" 60 hidden 0
wait "$load"
expect "every pod is bound" '"bound":200,' cat "$work/load.json"
expect "nobody ended" "^$before\$" pids
kill -INT "$up_pid"
wait "$up_pid"
expect "the end is clean" '^0$' echo $?
up_pid=
check "nothing is left" eval '! compgen -G "/dev/shm/*"'
