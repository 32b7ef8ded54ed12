#!/usr/bin/env bash
# `berth bench perf --mode pipeline`: scheduler_perf files of our own with real processes; what is printed, what fails
# how, and that nothing stays behind.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
unset XDG_RUNTIME_DIR
export TMPDIR=$work # runtime directories
perf() { "$BERTH_BIN/berth" bench perf --mode pipeline "$@"; }
p() { perf "$here/bench/performance-config.yaml" "$@"; }
alone() { # nobody works in our runtime directories, and there are none
    local left
    left=$(ls -d "$work"/berth-up-* 2>/dev/null; pgrep -af "$work/berth-up-")
    [ -z "$left" ] || { printf 'left: %s\n' "$left"; return 1; }
    echo alone
}

seen() { # until the process has shared memory, or is gone
    until note_shm; do
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.05
    done
}
# A folder of programs of which one waits for the test when it is told to stop: PROGRAM WHAT-IT-DOES-THEN
bench_with() {
    mkdir "$work/with-$1"
    cp "$BERTH_BIN"/berth{,-bench} "$work/with-$1/"
    ln -s "$BERTH_BIN"/berth-{simulator,watcher,scheduler,binder,front} "$work/with-$1/"
    rm "$work/with-$1/$1"
    cat >"$work/with-$1/$1" <<END
#!/usr/bin/env bash
"$BERTH_BIN/$1" "\$@" &
trap '$2; kill -TERM \$!' TERM
wait
wait
END
    chmod +x "$work/with-$1/$1"
}
# Each cluster's watcher tells at its end what it has mapped.
bench_with berth-watcher "grep -oE \"/dev/shm/berth-[0-9a-f]{16}\" /proc/\$!/maps >>\"$work/shm\""
"$work/with-berth-watcher/berth" bench perf --mode pipeline "$here/bench/performance-config.yaml" --labels short -o wide \
    >"$work/short" 2>"$work/short.err"
check "all short ones run: status 0" test $? -eq 0
check "clusters have shared memory" test -s "$work/shm"
expect "a row: 40 pods, rates, CPU of five processes, memory" '^Basic/4Nodes +40 +[0-9]+ +[0-9.]+ +[1-9][0-9]* +[0-9]+( +[0-9]+\.[0-9]){6}( +[1-9][0-9]*){6} ' cat "$work/short"
expect "an event helps pods that were rejected" '^Events/2Nodes +4 ' cat "$work/short"
expect "steady state goes on" '^Churn/steady +[1-9][0-9]+ ' cat "$work/short"
check "no complaint" test ! -s "$work/short.err"

p --labels '' --name 'Basic/(4Nodes|gate)' --binders 1 -o json >"$work/items" 2>"$work/notes"
processes() { python3 -c '
import json, sys
items = json.load(open(sys.argv[1]))["dataItems"]
print(*sorted({i["labels"]["process"] for i in items if i["labels"]["Metric"] == "berth_cpu_per_pod" and i["data"]["Average"] > 0}))
print(*sorted({i["labels"]["Metric"] for i in items} - {"not applicable"}))' "$work/items"; }
expect "each process has an item" '^all binder-1 client scheduler simulator watcher$' processes
p --labels '' --name 'Basic/4Nodes' --record-decisions auto --rounds 2 >"$work/rounds" 2>&1
check "without and with recording in turn: status 0" test $? -eq 0
expect "... two rows of each" '^Basic/4Nodes, off Basic/4Nodes, auto Basic/4Nodes, off Basic/4Nodes, auto $' \
    bash -c "grep -oE '^Basic/4Nodes, [a-z]+' '$work/rounds' | tr '\n' ' '"
expect "... and both side by side" '^Basic/4Nodes: median of 2, scheduler.s CPU a pod: off [0-9.]+ us, auto [0-9.]+ us \([0-9.]+\)$' cat "$work/rounds"
check "rounds of nothing else: status 2" status 2 p --rounds 2
p --labels refused -o wide >"$work/churn" 2>&1
check "churn whose writes are refused ends nothing: status 0" test $? -eq 0
expect "... and the row is complete, its threshold without a number" '^Refused/churn +5 .* not compared$' cat "$work/churn"
expect "... and the refusals are told" 'note: churn: 2 writes were refused, the first: pods "only" already exists \(POST .*: 409\) ' cat "$work/churn"
expect "upstream's items are there" 'SchedulingDuration .*heap_memory_usage .*scheduler_framework_extension_point_duration_seconds .*scheduler_scheduling_attempt_duration_seconds' processes
expect "a gate that has no effect is named" 'note: feature gate SchedulerQueueingHints=false has no effect' cat "$work/notes"
expect "nothing is left of clusters that ended" '^alone$' alone

cat >"$work/bad.yaml" <<'END'
- name: Missing
  workloadTemplate:
  - {opcode: createPods, count: 1, podTemplatePath: none.yaml, collectMetrics: true}
  workloads: [{name: template}]
- name: Refused
  workloadTemplate:
  - {opcode: createPods, count: 3, podTemplatePath: refused.yaml, collectMetrics: true}
  workloads: [{name: pod}]
- name: Unfit
  workloadTemplate:
  - {opcode: createPods, count: 1, collectMetrics: true}
  workloads: [{name: pod}]
END
printf 'apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}\nspec: {containers: [{name: Not A Name, image: i}]}\n' >"$work/refused.yaml"
perf "$work/bad.yaml" --labels '' --time-limit $((10 * SCALE))s >"$work/bad" 2>&1
check "bad workloads: status 1" test $? -eq 1
expect "a template that is not there is named" '^Missing/template +failed: op 0 \(createPods\): /.*/none.yaml: No such file' cat "$work/bad"
expect "what the server refuses is told in its words" '^Refused/pod: op 0 \(createPods\): Pod "x-.*" is invalid: spec.containers\[0\].name.* \(POST /api/v1/namespaces/namespace-0/pods: 422\)' \
    cat "$work/bad"
expect "a pod that fits nowhere ends with the time limit" '^Unfit/pod +0 .* so far; failed: op 0 .*0 of 1 pods have a node: it took longer than' cat "$work/bad"
sed 's/createPods,/createPodz,/' "$work/bad.yaml" >"$work/worse.yaml"
check "an unknown opcode: status 1" status 1 perf "$work/worse.yaml" --labels ''
check "no binders: status 2" status 2 perf "$work/bad.yaml" --binders 0
expect "nothing is left of clusters that failed" '^alone$' alone
check "nor in /dev/shm" no_shm

cat >"$work/long.yaml" <<'END'
- name: Long
  workloadTemplate:
  - {opcode: createNodes, count: 2}
  - {opcode: createPods, count: 5, collectMetrics: true}
  - {opcode: sleep, duration: 100s}
  workloads: [{name: one}, {name: two}]
END
begin_long() { # starts one, waits for its scheduler
    "$BERTH_BIN/berth" bench perf --mode pipeline "$work/long.yaml" --labels '' >"$work/long" 2>&1 &
    also_stop=$!
    local end=$((SECONDS + 20 * PATIENCE))
    until pgrep -P "$also_stop" -f berth-binder >/dev/null; do
        [ "$SECONDS" -le "$end" ] || return 1
        sleep 0.05
    done
    seen "$also_stop"
}
end_long() { # how it ended
    wait "$also_stop"
    echo "status $?"
    also_stop=
    cat "$work/long"
}
begin_long
kill -INT "$also_stop"
end_long >"$work/ended"
expect "Ctrl-C: status 1" '^status 1$' cat "$work/ended"
expect "Ctrl-C: the workload says so" '^Long/one: .*stopped' cat "$work/ended"
check "Ctrl-C: no other one begins" no_line_with Long/two cat "$work/ended"
expect "Ctrl-C: nothing is left" '^alone$' alone
# The same while a cluster is taken down: the signal ends the programs, not only their end. The binder says when that
# has begun, and goes only when the signal was sent.
sed -i 's/sleep, duration: 100s/sleep, duration: 100ms/' "$work/long.yaml"
bench_with berth-binder "touch \"$work/going\"; until [ -e \"$work/go\" ]; do sleep 0.05; done"
"$work/with-berth-binder/berth" bench perf --mode pipeline "$work/long.yaml" --labels '' >"$work/long" 2>&1 &
also_stop=$!
eventually "a cluster is taken down" 60 test -e "$work/going"
kill -INT "$also_stop"
touch "$work/go"
end_long >"$work/ended"
expect "Ctrl-C while a cluster goes: status 1" '^status 1$' cat "$work/ended"
check "Ctrl-C while a cluster goes: no other one begins" no_line_with Long/two cat "$work/ended"
expect "Ctrl-C while a cluster goes: nothing is left" '^alone$' alone
sed -i 's/sleep, duration: 100ms/sleep, duration: 100s/' "$work/long.yaml"
begin_long
kill -KILL "$(pgrep -P "$also_stop" -f berth-scheduler)"
eventually "a process that is killed ends the workload" 20 grep -qE '^Long/one: .*(the scheduler ended|scheduler could not be started)' "$work/long"
kill -KILL "$also_stop" # what it has started by now must notice by itself
end_long >/dev/null 2>&1
eventually "processes whose bench was killed end" 20 no_process "$work/berth-up-"
check "nothing is left in /dev/shm" no_shm
