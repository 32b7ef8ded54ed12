#!/usr/bin/env bash
# kube-scheduler's command line in every process: what kubeadm passes is accepted, what is wrong is said in
# upstream's words, the file wins over the deprecated flags, --master over the kubeconfig, a limit of requests holds
# for all binders together; and `berth run` serves with it: restarts what dies, gives the lease up on SIGTERM.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq; do
    command -v $t >/dev/null || { skip "flags" "no $t"; exit 0; }
done
audit=$work/audit.log
unset KUBECONFIG KUBERNETES_SERVICE_HOST KUBERNETES_MASTER
export HOME=$work
KUBEADM=(--authentication-kubeconfig=/etc/kubernetes/scheduler.conf --authorization-kubeconfig=/etc/kubernetes/scheduler.conf
    --bind-address=127.0.0.1 --kubeconfig=/etc/kubernetes/scheduler.conf --leader-elect=true)
PROCESSES=(watcher scheduler binder)
[ -x "$BERTH_BIN/berth-front" ] && PROCESSES+=(front)

# ---- every process takes the whole line, and says what is wrong with it
status() { # wanted status, command...: its output, and success when it ended with that status
    local wanted=$1 got=0
    shift
    timeout $((20 * PATIENCE)) "$@" 2>&1 || got=$?
    [ "$got" = "$wanted" ] || { echo "status $got"; return 1; }
}
run_berth() { # process...: berth-PROCESS, or `berth run`
    local p=$1
    shift
    if [ "$p" = run ]; then status "$1" "$BERTH_BIN/berth" run "${@:2}"; else status "$1" "$BERTH_BIN/berth-$p" "${@:2}"; fi
}
for p in "${PROCESSES[@]}" run; do
    expect "$p: kubeadm's line and --version" 'Kubernetes v1\.36' run_berth "$p" 0 "${KUBEADM[@]}" --version
    expect "$p: an unknown flag" 'unknown flag: --port' run_berth "$p" 2 "${KUBEADM[@]}" --port=10251
    expect "$p: an unknown gate" '"command failed" err="unrecognized feature gate: Foo"' \
        run_berth "$p" 1 "${KUBEADM[@]}" --feature-gates=Foo=true
    expect "$p: a locked gate" 'cannot set feature gate DynamicResourceAllocation to false, feature is locked to true' \
        run_berth "$p" 1 "${KUBEADM[@]}" --feature-gates=DynamicResourceAllocation=false
    expect "$p: ports and versions together" \
        'err="\[emulation version 1\.20 is not between \[1\.33, 1\.36\.0\], .*--secure-port 70000 must be between 1 and 65535, inclusive' \
        run_berth "$p" 1 "${KUBEADM[@]}" --emulated-version=1.20 --secure-port=70000
    expect "$p: an unknown log format" 'format: Invalid value: .*xml.*: Unsupported log format' \
        run_berth "$p" 1 "${KUBEADM[@]}" --logging-format=xml
    expect "$p: --help has its own and kube-scheduler's flags" '--pod-max-in-unschedulable-pods-duration' run_berth "$p" 0 --help
done
for p in watcher binder run; do
    expect "$p: no configuration at all" \
        'invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable' \
        run_berth "$p" 1 --runtime-dir="$work/none"
done
expect "binder: a resource that is none" 'plugin-writes: .*Pods.* is not RESOURCE\[\.GROUP\]\[/SUBRESOURCE\]' \
    run_berth binder 1 --plugin-writes=pods,Pods --kubeconfig=/x
expect "scheduler: flags go into the written configuration" 'Wrote configuration' \
    run_berth scheduler 0 --write-config-to="$work/written.yaml" --leader-elect=false --kube-api-qps=7 --kubeconfig=/x
expect "... as upstream's do" 'leaderElect: false' cat "$work/written.yaml"
check "... all of them" grep -qE '^  qps: 7$' "$work/written.yaml"
expect "berth run --write-config-to writes and ends" 'Wrote configuration' \
    run_berth run 0 --write-config-to="$work/written2.yaml" --master=http://127.0.0.1:1 --runtime-dir="$work/none"
check "... without a limit that is not in force" grep -qE '^  qps: -1$' "$work/written2.yaml"

# ---- an API server that writes down who asked for what
"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/kubeconfig" --audit-log-path "$audit" >"$work/simulator.log" 2>&1 &
simulator=$!
also_stop=$simulator
wait_for_file "$work/kubeconfig" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
server=$(awk '$1 == "server:" {print $2}' "$work/kubeconfig")
sed "s|$server|http://127.0.0.1:1|" "$work/kubeconfig" >"$work/elsewhere"
lease() { curl -fsS "$server/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/$1" | jq -r .spec.holderIdentity; }
bound() { curl -fsS "$server/api/v1/pods" | jq '[.items[] | select(.spec.nodeName)] | length'; }
load() { # prefix pods
    "$BERTH_BIN/berth" load synthetic --kubeconfig "$work/kubeconfig" --prefix "$1" --node-count 10 --pod-count "$2" \
        --timeout $((30 * PATIENCE))s -o json
}

# ---- berth run: one service; the file's kubeconfig wins, --master over all
cat >"$work/config.yaml" <<Y
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: $work/elsewhere
leaderElection:
  resourceName: of-the-file
Y
service=
start_service() { # flags
    "$BERTH_BIN/berth" run --runtime-dir="$work/run" --secure-port=0 --binders=2 "$@" >"$work/out" 2>"$work/log" &
    service=$!
    also_stop="$simulator $service"
}
leading() { grep -q '"Scheduler decides"' "$work/log"; }
child() { pgrep -P "$service" -f "berth-$1" | head -n 1; }
stop_service() { # name
    kill -TERM "$service"
    local rc=0
    wait "$service" || rc=$?
    also_stop=$simulator
    if [ "$rc" = 0 ]; then ok "$1: SIGTERM ends with 0"; else not_ok "$1: SIGTERM ends with 0" "$rc: $(tail -n 5 "$work/log")"; fi
}
start_service --config="$work/config.yaml" --kubeconfig=/nowhere --kube-api-qps=1 --kube-api-burst=1 \
    --master="$server" --leader-elect-retry-period=500ms --feature-gates=StorageCapacityScoring=true --v=3
eventually "berth run takes the lease that the file names, at --master" 20 leading
check "... not kube-scheduler's own" test -n "$(lease of-the-file)"
expect "a gate that cannot be switched is named" 'storage classes are not scored' cat "$work/log"
expect "the configuration in force is told at -v 2" 'resourceName: of-the-file' cat "$work/log"
expect "... and the plugins" '"the scheduler starts to work with those plugins" .*NodeResourcesFit' cat "$work/log"
expect "... and every flag" '] FLAG: --kube-api-qps="1"' cat "$work/log"
check "pods are bound" load a 40
# what binders did is told in company, a moment later
eventually "the log says so in upstream's words" 5 grep -qE \
    '"Successfully bound pod to node" pod="default/a-000000" node="[^"]*" evaluatedNodes=[0-9]+ feasibleNodes=[0-9]+' "$work/log"
expect "... and the attempt before" '"Attempting to schedule pod" pod="default/a-000000"' cat "$work/log"

kill -HUP "$service"
reread() { [ "$(grep -c '"Reading credentials again"' "$work/log")" -ge 3 ] && grep -q "configuration's file says what is in force" "$work/log"; }
eventually "SIGHUP: watcher and binders read credentials, the scheduler its configuration" 20 reread
check "nobody died of it" load c 20
note_shm
stop_service "with leader election"
check "the lease is free" test "$(lease of-the-file)" = ""
check "no process is left" no_process "runtime-dir=$work/run"

# ---- a limit that was asked for holds for all binders together: what the audit log has in some second
start_service --kubeconfig="$work/kubeconfig" --leader-elect=false --kube-api-qps=40 --kube-api-burst=10 --logging-format=json
eventually "berth run without leader election" 20 leading
: >"$work/mark" && from=$(wc -l <"$audit")
began=$(date +%s%3N)
check "pods are bound under the limit" load d 120
# the n-th binding cannot come before (n - burst) / qps seconds after there was anything to bind
paced() {
    tail -n "+$((from + 1))" "$audit" | jq -s -e --argjson began "$began" '
        def ms: (.requestReceivedTimestamp | .[0:19] + "Z" | fromdateiso8601 * 1000) +
                (.requestReceivedTimestamp | .[20:23] | tonumber);
        [.[] | select(.objectRef.subresource == "binding" and .stage == "ResponseComplete") | ms] | sort
        | length as $n | if $n < 120 then error("only \($n) bindings") else . end
        | (.[-1] - $began) as $took | (($n - 10) / 40 * 1000) as $least
        | if $took < $least then error("\($n) bindings in \($took) ms, at least \($least)") else $took end'
}
check "the limit is one for both binders" paced
old=$(child scheduler)
kill -KILL "$old"
replaced() { [ -n "$(child scheduler)" ] && [ "$(child scheduler)" != "$old" ]; }
eventually "a killed scheduler is started again" 20 replaced
old=$(child binder)
kill -KILL "$old"
binder_replaced() { [ -n "$(child binder)" ] && ! kill -0 "$old" 2>/dev/null && [ "$(pgrep -P "$service" -fc berth-binder)" = 2 ]; }
eventually "a killed binder is started again" 20 binder_replaced
check "... and pods are bound" load b 20
check "lines are JSON" jq -e -s 'all(has("ts") and has("caller") and has("msg"))' "$work/log"
stop_service "without leader election"

# ---- what is wrong is said once, before anything runs
said_once() { # pattern flags...
    local pattern=$1 out
    shift
    out=$(run_berth run 1 --runtime-dir="$work/never" "$@") || { echo "$out"; return 1; }
    [ "$(grep -c . <<<"$out")" = 1 ] && grep -qE -- "$pattern" <<<"$out" || { echo "$out"; return 1; }
}
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nfoo: 1\n' >"$work/bad.yaml"
check "an unknown field of the file" said_once '"command failed" err="strict decoding error: unknown field .*foo' \
    --config="$work/bad.yaml" --kubeconfig="$work/kubeconfig"
check "a missing kubeconfig" said_once 'err=.*/nowhere.*No such file' --kubeconfig=/nowhere
check "leader election that cannot work" said_once 'leaseDuration must be greater than renewDeadline' \
    --kubeconfig="$work/kubeconfig" --leader-elect-lease-duration=1s
check "a file that is not there" said_once 'open /nowhere.yaml: no such file' --config=/nowhere.yaml
expect "a limit without burst" 'burst is required to be greater than 0' run_berth binder 1 --runtime-dir="$work/never" \
    --kubeconfig="$work/kubeconfig" --kube-api-qps=5 --kube-api-burst=0
check "nothing was started" test ! -e "$work/never/watcher.sock"
check "and no process is left of it" no_process "runtime-dir=$work/never"
check "no shared memory is left" no_shm
