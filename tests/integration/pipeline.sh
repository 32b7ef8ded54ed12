#!/usr/bin/env bash
# The whole pipeline with real processes and a real kubectl: the walk of every tutorial, unschedulable pods,
# kills, probes, and a clean end.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "the walk" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }

start_up --binders 2 || exit 1

bound() { [ "$(k get pods -l "$1" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .)" -eq "$2" ]; }
running() { [ "$(k get pods -l "$1" --no-headers | grep -c ' Running ')" -eq "$2" ]; }

expect "five example nodes are Ready" '^5$' bash -c "kubectl --cache-dir $work/cache get nodes --no-headers | grep -c ' Ready'"
cat >"$work/nginx.yaml" <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  replicas: 3
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      containers: [{name: nginx, image: "nginx:1.14.2", ports: [{containerPort: 80}]}]
Y
check "apply a Deployment" k apply -f "$work/nginx.yaml"
eventually "its pods are bound" 10 bound app=nginx 3
eventually "its pods run" 10 running app=nginx 3
expect "rollout status" 'successfully rolled out' k rollout status deployment/nginx --timeout=20s
expect "the ReplicaSet" 'nginx-[a-z0-9]+ +3 +3 +3' k get rs
pod=$(k get pods -l app=nginx -o jsonpath='{.items[0].metadata.name}')
expect "describe shows the Scheduled event" "Successfully assigned default/$pod to node-" k describe pod "$pod"
check "no pod went to the tainted node" no_line_with node-c1 k get pods -l app=nginx -o wide --no-headers
check "scale to 6" k scale deployment/nginx --replicas=6
eventually "six run" 10 running app=nginx 6

# a pod that cannot fit, and what users read about it
k run big --image=pause --overrides='{"spec":{"containers":[{"name":"big","image":"pause","resources":{"requests":{"cpu":"100"}}}]}}' >/dev/null
failed_event() { k get events --field-selector reason=FailedScheduling -o jsonpath='{range .items[*]}{.message}{"\n"}{end}' | grep -qxF "$1"; }
# counts are sorted as text, the tainted node counts for its taint alone
eventually "FailedScheduling reads as upstream's" 10 failed_event \
    "0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu. no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
cond() { [ "$(k get pod big -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}')" = Unschedulable ]; }
eventually "its PodScheduled condition" 5 cond
cat >"$work/node.yaml" <<Y
apiVersion: v1
kind: Node
metadata: {name: huge}
status: {capacity: {cpu: "200", memory: 1Ti, pods: "110"}, allocatable: {cpu: "200", memory: 1Ti, pods: "110"}}
Y
check "a node with room appears" k create -f "$work/node.yaml"
eventually "the pod is woken and bound" 20 bound run=big 1

# probes and metrics of every process
for p in watcher scheduler binder-1; do
    port=$(metrics_port "$p")
    expect "$p /readyz" '^ok$' curl -fsS "http://127.0.0.1:$port/readyz"
    expect "$p /livez" '^ok$' curl -fsS "http://127.0.0.1:$port/livez"
    expect "$p /healthz?verbose" 'healthz check passed' curl -fsS "http://127.0.0.1:$port/healthz?verbose"
    curl -fsS "http://127.0.0.1:$port/metrics" >"$work/$p.prom"
    if command -v promtool >/dev/null; then
        check "$p promtool check metrics" bash -c "promtool check metrics <$work/$p.prom"
    else
        skip "$p promtool check metrics" "no promtool"
    fi
done
expect "scheduler_schedule_attempts_total" 'scheduler_schedule_attempts_total\{profile="default-scheduler",result="scheduled"\} [1-9]' cat "$work/scheduler.prom"
expect "berth get nodes reads the snapshot" 'node-a1 +Schedulable' "$BERTH_BIN/berth" get nodes --runtime-dir "$run"
expect "berth get pods reads the snapshot" "default +$pod" "$BERTH_BIN/berth" get pods --runtime-dir "$run"

# kill -9, one process after the other; the next pods are scheduled all the same
n=0
for p in berth-watcher berth-scheduler 'berth-binder .*--instance 1' 'berth-binder .*--instance 2'; do
    n=$((n + 1))
    kill -9 "$(pid_of "$p")"
    check "create pods while ${p%% *} ($n) is dead" k create deployment "after-$n" --image=pause --replicas=4
    eventually "they run" 20 running "app=after-$n" 4
done
expect "berth up tells of the restarts" 'was killed by signal 9, starting it again' cat "$work/up.err"

# the built-in server takes its objects along; it says so, and what was there at the start comes back
kill -9 "$(pid_of berth-simulator)"
eventually "the example comes back" 30 grep -q 'the example cluster is there again' "$work/up.err"
expect "berth up tells what is gone, and why" 'was killed by signal 9 at .*Z: its objects were in memory only and are gone' cat "$work/up.err"
expect "and the server does" '^lost the built-in API server was killed' eval 'k get --raw /berth/v1/timeline | jq -r ".items[] | .what + \" \" + .detail"'
expect "nodes of the start, nothing else" '^node-a1 node-a2 node-b1 node-b2 node-c1 $' eval 'k get nodes -o name | sed s,node/,, | tr "\n" " "'
expect "no pods of before" 'not found' eval '! k get deployment after-1'
check "and it schedules" k create deployment anew --image=pause --replicas=4
eventually "they run" 20 running "app=anew" 4

# the end
kill -INT "$up_pid"
wait "$up_pid"
expect "Ctrl-C ends with status 0" '^0$' echo $?
up_pid=
check "the runtime directory is gone" test ! -e "$run"
check "nothing is left in /dev/shm" no_shm
