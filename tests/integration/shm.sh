#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/shm.sh - shared memory among strangers: names that others take, names that somebody
# removes, leftovers of whoever was killed
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
trap 'rm -rf $squatted; finish' EXIT
squatted=
RT=$work/run

# Of another user, where there is one to be; a directory is in everybody's way.
squat() { # names in /dev/shm
    local as=()
    [ "$(id -u)" -eq 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null &&
        as=(setpriv --reuid nobody --clear-groups)
    squatted+=" $*"
    "${as[@]}" mkdir "$@"
}
objects() { find /dev/shm -maxdepth 1 -type f -name "$(basename "$instance")*" -user "$(id -u)" "$@"; }
count_is() { [ "$(objects | wc -l)" -eq "$1" ] || { objects; return 1; }; }
watcher_metric() { curl -fsS "http://127.0.0.1:$(metrics_port watcher)/metrics" | awk -v m="$1" '$1 == m {print $2}'; }
at_least() { [ "$(watcher_metric "$1")" -ge "$2" ]; }
pids() { for p in berth-watcher berth-scheduler 'berth-binder .*--instance 1'; do pid_of "$p"; done | tr '\n' ' '; }
follows_what_is_there() { # the scheduler has mapped nothing that was removed
    ! grep -q '/dev/shm/berth-.*(deleted)' "/proc/$(pid_of berth-scheduler)/maps"
}
stop_up() {
    kill -INT "$up_pid"
    wait "$up_pid"
    up_pid=
}
load() { "$BERTH_BIN/berth" load synthetic --kubeconfig "$KUBECONFIG" -o json "$@"; }

# ---- strangers -------------------------------------------------------------------------------------
start_up --runtime-dir "$RT" --binders 1 || exit 1
instance=$(sort -u "$work/shm" | head -n 1)
stop_up
check "nothing is left after the first start" count_is 0

# Names that can be known: those of the first start, and what would come after it.
squat "$instance" "$instance-0123456789abcdef" "$instance.readers"
start_up --runtime-dir "$RT" --binders 1 || exit 1
eventually "the strangers' objects are named" 10 \
    grep -q "Objects of somebody else.*first=\"$(basename "$instance")" "$RT/watcher.log"
expect "the snapshot is read" 'node-a1 ' "$BERTH_BIN/berth" get nodes --runtime-dir "$RT"
before=$(pids)
grow() { load --node-count 36000 --pod-count 1 --prefix grow >"$work/grow.json" 2>&1; }
check "a cluster that needs a larger segment" grow
check "there was a larger one" at_least berth_watcher_snapshot_moves_total 1
expect "nobody ended" "^$before\$" pids

# ---- names that go -----------------------------------------------------------------------------------
lost=$(watcher_metric berth_watcher_snapshot_lost_total)
objects -delete
eventually "the watcher notices that its names are gone" 20 at_least berth_watcher_snapshot_lost_total $((lost + 2))
check "and says which" grep -q 'A name of the snapshot is gone.*name="/berth-' "$RT/watcher.log"
eventually "there are new ones" 20 count_is 3
expect "which are found" '^node-035999 ' "$BERTH_BIN/berth" get nodes --runtime-dir "$RT"
expect "a pod is decided" '"bound":1,' load --node-count 0 --pod-count 1 --prefix after-names
eventually "the scheduler has followed" 20 follows_what_is_there
watcher=$(pid_of berth-watcher)
kill -STOP "$watcher" # so that nobody makes them again
objects -delete
expect "nothing is read from what is gone: get" 'No such file' eval '! "$BERTH_BIN/berth" get nodes --runtime-dir "$RT" 2>&1'
expect "and explain" 'snapshot of .*No such file' eval '! "$BERTH_BIN/berth" explain pod/x --runtime-dir "$RT" 2>&1'
kill -CONT "$watcher"
eventually "they are made again" 20 count_is 3
rm "$RT/watcher/snapshot"
eventually "a link that is gone is made again" 20 test -L "$RT/watcher/snapshot"
ln -sfn /dev/shm/berth-0000000000000000-0000000000000000 "$RT/watcher/snapshot"
points_home() { readlink "$RT/watcher/snapshot" | grep "^$instance-"; }
eventually "and one that leads elsewhere" 20 points_home
expect "a pod is decided after that" '"bound":1,' load --node-count 0 --pod-count 1 --prefix after-link
expect "nobody ended by that" "^$before\$" pids

# ---- leftovers ---------------------------------------------------------------------------------------
kill -9 "$(pid_of berth-watcher)"
three_and_new() { count_is 3 && [ "$(pids)" != "$before" ] && "$BERTH_BIN/berth" get nodes --runtime-dir "$RT" >"$work/nodes"; }
eventually "a killed watcher's memory goes with its successor" 60 three_and_new
note_shm
all=$(pgrep -P "$up_pid" | tr '\n' ' ')
kill -9 "$up_pid"
# shellcheck disable=SC2086 # they are several
kill -9 $all
wait "$up_pid" 2>/dev/null
up_pid=
all_gone() { # their locks go with them, and memory locked by a living writer is left alone
    local p
    for p in $all; do ! cat /proc/"$p"/task/*/maps 2>/dev/null | grep . || return 1; done
}
eventually "they have ended" 20 all_gone
killed=$(objects)
at_least_three() { [ "$(wc -l <<<"$killed")" -ge 3 ]; } # one more when they died while the segment moved
check "all killed: it stays" at_least_three
start_up --runtime-dir "$RT" --binders 1 || exit 1
none_of_the_killed() {
    local f
    for f in $killed; do ! [ -e "$f" ] || { echo "left: $f"; return 1; }; done
}
check "a new start has cleared it away" none_of_the_killed
eventually "and made its own" 20 count_is 3 # a larger segment and the one that it replaces are there at once
stop_up
check "nothing is left at the end" count_is 0
check "not even the link" test ! -e "$RT/watcher/snapshot" -a ! -L "$RT/watcher/snapshot"
