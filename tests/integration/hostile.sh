#!/usr/bin/env bash
# Hostile input at every door: an API server that says absurd things to a live pipeline, rubbish on its
# sockets and in its shared memory, absurd requests to the built-in API server, and absurd files. Every time:
# a clear error or a decision in bounded time, the same processes afterwards, and good pods bound.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v python3 >/dev/null || { skip "hostile input" "no python3"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1

# ---- the API server is hostile --------------------------------------------------------------------
python3 "$here/hostile_server.py" "$work/kubeconfig" >"$work/server.log" 2>&1 &
also_stop=$!
wait_for_file "$work/kubeconfig" || { not_ok "the fake API server starts" "$(cat "$work/server.log")"; exit 1; }
server=$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$work/kubeconfig")
KUBECONFIG=$work/kubeconfig
export KUBECONFIG
start_up --kubeconfig "$KUBECONFIG" --runtime-dir "$work/run" --binders 2 || exit 1

processes=(berth-watcher berth-scheduler 'berth-binder .*--instance 1' 'berth-binder .*--instance 2')
pids() { for p in "${processes[@]}"; do pid_of "$p"; done | tr '\n' ' '; }
before=$(pids)
check "all four run" test "$(wc -w <<<"$before")" -eq 4
bound() { [ "$(curl -fsS "$server/test/bound" | grep -c "^$1")" -eq "$2" ]; }
post() { curl -fsS --data-binary @- "$server/test/$1" >/dev/null; }
good_pod() { # name
    printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","namespace":"default","uid":"u-%s","resourceVersion":"@RV@"},"spec":{"schedulerName":"default-scheduler","containers":[{"name":"c"}]}}' "$1" "$1" | post pods
}
ready() { curl -fsS "http://127.0.0.1:$(metrics_port "$1")/readyz" | grep -qx ok; }
healthy() { # name: all processes are those of the beginning, and a new pod is bound
    expect "$1: no process ended" "^$before\$" pids
    good_pod "after-${1// /-}"
    eventually "$1: a new pod is bound" 60 bound "after-${1// /-}" 1
}

eventually "good pods are bound among hostile ones" 90 bound good- 20
expect "malformed objects are named, with their field" 'Skipping a malformed object.*kind="?(Pod|Node).*err=' cat "$run/watcher.log"
for p in watcher scheduler binder-1; do
    eventually "$p is ready" 20 ready "$p"
done
healthy "hostile objects"

printf '{"type":"ADDED","object":{"kind":"Pod"' | post garbage
healthy "a cut stream"
printf '\000\001\002 no JSON at all ]]}}' | post garbage
healthy "rubbish in a stream"

# ---- rubbish on sockets and in shared memory ------------------------------------------------------
sockets=("$run"/*.sock)
check "there are sockets to talk to" test -S "${sockets[0]}"
check "rubbish is sent to every socket" timeout "$((60 * PATIENCE))" python3 "$here/hostile_socket.py" "${sockets[@]}"
healthy "rubbish on sockets"

segment=$(grep -ho '/dev/shm/berth-[^ ]*' "/proc/$(pid_of berth-scheduler)/maps" | sort -u | xargs ls -S | head -n 1)
python3 - "$segment" <<'P'
import os, random, sys
random.seed(1)
with open(sys.argv[1], "r+b") as f:
    size, at, used = os.fstat(f.fileno()).st_size, 4096, []
    while at < size:
        try:
            begin = f.seek(at, os.SEEK_DATA)
            at = f.seek(begin, os.SEEK_HOLE)
        except OSError:
            break
        used.append((begin, at))
    for _ in range(2000):
        begin, end = random.choice(used)
        f.seek(random.randrange(begin, max(end - 64, begin + 1)))
        f.write(random.randbytes(48))
P
for what in nodes pods; do
    timeout "$((30 * PATIENCE))" "$BERTH_BIN/berth" get "$what" --runtime-dir "$run" >"$work/get.out" 2>&1
    expect "berth get $what ends on a spoilt snapshot" '^[0-2]$' echo $?
done
good_pod during-spoilt-snapshot
kill -9 "$(pid_of berth-watcher)" 2>/dev/null # its memory is the spoilt one: the next begins with a new one
processes=(berth-scheduler 'berth-binder .*--instance 1' 'berth-binder .*--instance 2')
before=${before#* }
healthy "spoilt snapshot"
eventually "the pod from meanwhile is bound" 60 bound during-spoilt-snapshot 1
check "no process said that it aborts" no_line_with 'ssertion|Sanitizer|verify:' cat "$run"/*.log
kill -INT "$up_pid"
wait "$up_pid"
expect "the end is clean" '^0$' echo $?
up_pid=
kill "$also_stop"
wait "$also_stop" 2>/dev/null

# ---- absurd requests to the built-in API server ----------------------------------------------------
"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/sim-kubeconfig" >"$work/simulator.log" 2>&1 &
also_stop=$!
wait_for_file "$work/sim-kubeconfig" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
server=$(sed -n 's/.*server: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$work/sim-kubeconfig" | head -n 1)
expect "every request has an answer below 500" ' requests, 0 wrong' timeout "$((300 * PATIENCE))" python3 "$here/hostile_requests.py" "$server"
expect "the API server is healthy" '^ok$' curl -fsS "$server/healthz"
check "it is the same process" kill -0 "$also_stop"

# ---- hostile files ---------------------------------------------------------------------------------
python3 "$here/hostile_files.py" "$work/files" || not_ok "hostile files can be written"
cat >"$work/door.sh" <<'D'
# door.sh FILE COMMAND...: names the file when the command crashes, hangs, or fails without a word
file=$1
shift
out=$(timeout "$((60 * PATIENCE))" "$@" "$file" 2>&1 </dev/null)
rc=$?
[ "$rc" -le 3 ] && { [ "$rc" -eq 0 ] || [ -n "$out" ]; } || echo "$file: exit status $rc ${out:0:200}"
D
export PATIENCE
doors() { # name folder command...: the file comes last
    local name=$1 folder=$2 n out
    shift 2
    n=$(find "$work/files/$folder" -type f | wc -l)
    out=$(find "$work/files/$folder" -type f -print0 | xargs -0 -P "$(nproc)" -I{} bash "$work/door.sh" {} "$@")
    if [ -z "$out" ] && [ "$n" -gt 5 ]; then ok "$name ($n files)"; else not_ok "$name ($n files)" "$out"; fi
}
good=$work/files/good.yaml
doors "berth simulate and hostile objects" objects "$BERTH_BIN/berth" simulate -f "$good" -f
doors "berth simulate and files that are none" text "$BERTH_BIN/berth" simulate -f "$good" -f
doors "hostile configurations" config "$BERTH_BIN/berth" simulate -f "$good" --config
doors "hostile recordings" conformance "$BERTH_BIN/berth" conformance
doors "hostile kubeconfigs" kubeconfig "$BERTH_BIN/berth" load synthetic --timeout 2s --kubeconfig
doors "hostile tables" csv "$BERTH_BIN/berth" load openb --kubeconfig "$work/sim-kubeconfig" --nodes "$good" --pods
