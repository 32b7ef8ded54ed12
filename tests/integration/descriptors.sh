#!/usr/bin/env bash
# With few file descriptors each process says so, with the limit, or does its work: from so few that not even an event
# loop can be made to as many as it needs.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v curl >/dev/null || { skip "few descriptors" "no curl"; exit 0; }
declare -A pid
pids() { [ ${#pid[@]} -eq 0 ] || { kill -TERM "${pid[@]}"; wait "${pid[@]}"; } 2>/dev/null; }
trap 'pids; finish' EXIT

"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/kubeconfig" --no-controllers >"$work/simulator.log" 2>&1 &
pid[simulator]=$!
wait_for_file "$work/kubeconfig" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
run=$work/run
mkdir -m 750 "$run"
secure=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

start() { # process log descriptors
    local flags=(--runtime-dir "$run")
    case $1 in
    watcher) flags+=(--kubeconfig "$work/kubeconfig" --leader-elect=false --metrics-address 127.0.0.1:0) ;;
    scheduler) flags+=(--metrics-address 127.0.0.1:0) ;;
    binder) flags+=(--kubeconfig "$work/kubeconfig" --metrics-address 127.0.0.1:0) ;;
    front) flags+=(--bind-address 127.0.0.1 --secure-port "$secure" --cert-dir "$work/certs" --authentication-kubeconfig
        "$work/kubeconfig" --authorization-kubeconfig "$work/kubeconfig") ;;
    esac
    (ulimit -n "$3" && exec "$BERTH_BIN/berth-$1" "${flags[@]}") >"$2" 2>&1 &
    pid[$1]=$!
}
ready() { # process log
    if [ "$1" = front ]; then
        curl -sk --max-time 5 "https://127.0.0.1:$secure/livez" | grep -qx ok
    else
        curl -s --max-time 5 "http://127.0.0.1:$(sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$2")/readyz" | grep -qx ok
    fi
}
told() { grep -E 'EMFILE|Too many open files' "$1"; }
# What is known of it by then: it said so, or it works. Silence goes on until the time is over.
says_or_works() { # process log
    told "$2" || ready "$1" "$2" || { cat "$2"; return 1; }
}
with() { # process descriptors...
    local p=$1 n log rc
    shift
    for n in "$@"; do
        log=$work/$p.$n.log
        start "$p" "$log" "$n"
        eventually "$p with $n descriptors says so, or works" 30 says_or_works "$p" "$log"
        kill -TERM "${pid[$p]}" 2>/dev/null
        wait "${pid[$p]}"
        rc=$?
        unset "pid[$p]"
        # 1: it could not start; 143: told to end before it could hear of it
        if [ $rc -le 1 ] || [ $rc -eq 143 ]; then ok "$p with $n: it ends in order"; else not_ok "$p with $n: it ends in order" "status $rc: $(cat "$log")"; fi
    done
}
with watcher 5 8 12 $(seq 20 2 44) 64
expect "the limit is named, and what raises it" 'Could not list or watch.*\(EMFILE\): this process may have [0-9]+; raise its limit' \
    cat "$work"/watcher.*.log
start watcher "$work/watcher.log" 1024
start binder "$work/binder.log" 1024
with scheduler 5 8 14 20 21 22 23 64
# One descriptor more each time, until the binder is let in: before that there was a scheduler that listened and could not.
let_in_or_not() { grep -E 'Binder is here|Cannot take a connection' "$1" || ! kill -0 "${pid[scheduler]}" 2>/dev/null; }
for n in $(seq 16 64); do
    log=$work/let-in.$n.log
    start scheduler "$log" "$n"
    eventually "a scheduler with $n descriptors lets the binder in, says that it cannot, or ends" 60 let_in_or_not "$log"
    kill -TERM "${pid[scheduler]}" 2>/dev/null
    wait "${pid[scheduler]}"
    unset "pid[scheduler]"
    ! grep -q 'Binder is here' "$log" || break
done
expect "a binder that cannot be let in" 'Cannot take a connection.*\(EMFILE\)' cat "$work"/let-in.*.log
expect "and one that can" 'Binder is here' cat "$work"/let-in.*.log
start scheduler "$work/scheduler.log" 1024
kill -TERM "${pid[binder]}" && wait "${pid[binder]}"
with binder 5 8 20 28 29 30 31 32 64
with front 5 8 14 20 22 24 26 28 30 64
