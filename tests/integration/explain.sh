#!/usr/bin/env bash
# `berth explain` and `berth queue` on a live system: pending and bound pods, what-if, the scheduler's
# control socket under rubbish, observers that come, are killed, and go.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "explain" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }

cat >"$work/scheduler.yaml" <<Y
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: 600
podInitialBackoffSeconds: 600
profiles:
- schedulerName: default-scheduler
- schedulerName: no-taints
  plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}
Y
start_up --binders 1 --config "$work/scheduler.yaml" || exit 1
export BERTH_RUNTIME_DIR=$run
b() { "$BERTH_BIN/berth" "$@"; }
# pod NAME SPEC-MEMBERS: a pod, its container aside
pod() {
    k create -f - <<Y
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec: {$2 containers: [{name: c, image: pause, resources: {requests: {cpu: ${3:-100m}}}}]}
Y
}
queue_of() { b queue "${@:2}" --no-headers | awk -v n="$1" '$2 == n {print $3}'; }
in_queue() { [ "$(queue_of "$1")" = "$2" ]; }
condition() { k get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}'; }
node_of() { k get pod "$1" -o jsonpath='{.spec.nodeName}'; }
bound() { [ -n "$(node_of "$1")" ]; }
explained() { b explain "$1" -o json | jq -r "$2"; }

# ---- the queue
pod here "" >/dev/null
pod big "" 100 >/dev/null
pod held "schedulingGates: [{name: example.com/hold}]," >/dev/null
pod picky "nodeSelector: {disktype: ssd}," >/dev/null
eventually "a pod is bound" 10 bound here
eventually "big is unschedulable" 10 in_queue big unschedulable
eventually "picky is unschedulable" 10 in_queue picky unschedulable
eventually "held is gated" 10 in_queue held gated
expect "queue tells plugins and message" 'default +big +unschedulable +1 .* TaintToleration,NodeResourcesFit +0/5 nodes' b queue
expect "queue of a namespace" 'No pods wait in namespace "kube-system"' b queue -n kube-system
expect "queue -o wide has the whole message" '5 Preemption is not helpful for scheduling\.$' b queue -o wide
expect "queue -o json" '^waiting for scheduling gates: \[example.com/hold\]$' \
    bash -c "'$BERTH_BIN/berth' queue -o json | jq -r '.items[] | select(.name == \"held\") | .message'"
expect "queue -o yaml" 'queue: gated' b queue -o yaml
full() { [ "$(b queue "$@" 2>&1 >/dev/full)" = "berth queue: could not write: No space left on device" ]; }
check "queue says once that it cannot write" full
check "queue -w, too, and ends" full -w

# ---- pending pods
expect "explain names the first rejecting plugin of each node" 'node-c1 +TaintToleration .*untolerated taint' b explain pod/big -o wide
expect "explain: queue, scheduler, configuration" "configuration: $run/scheduler.yaml" b explain big
expect "explain: the queue's view" '^Queue: +unschedulable, 1 attempt, rejected by TaintToleration, NodeResourcesFit' b explain big
check "the message is what the API server has" test "$(explained big .explanation.message)" = "$(condition big)"
check "no condition line when it says the same" no_line_with '^Condition:' b explain big
check "the message without preemption" test "$(b explain big --no-preemption -o json | jq -r .explanation.message)" = "$(explained big .explanation.fitMessage)"
expect "a gated pod" 'Gated' b explain pods/held
expect "one node only" '^1$' bash -c "'$BERTH_BIN/berth' explain default/big --node node-b1 -o json | jq '.explanation.rejected | length'"
sed 's/600/700/' "$work/scheduler.yaml" >"$work/other.yaml"
check "another configuration" test "$(b explain big --config "$work/other.yaml" -o json | jq -r .scheduler.configuration)" = "$work/other.yaml"

# ---- bound pods
check "a bound pod: where it is" test "$(explained here .nodeName)" = "$(node_of here)"
expect "a bound pod: decided anew" '^Scheduled$' explained here .explanation.result
expect "a bound pod: how its node does now" '^[0-9]+$' explained here .nodeNow.rank
expect "all scores add up" '^true$' explained here '[.explanation.ranking[] | .total == ([.plugins[].weighted] | add)] | all'
check "its room is free for itself" test "$(explained here .explanation.nodes.feasible)" = 4

own_node() { [ "$(b explain here | sed -n 's/^State: *bound to \([^ ]*\) (now rank 1 of.*/\1/p')" = "$(b explain here | sed -n 's/^Result: *would now be Scheduled on //p')" ]; }
check "of equally good nodes its own is the result" own_node
check "a bound pod is in no queue" no_line_with '^Queue:' b explain here

# ---- other objects
k create deployment owner --image=pause --replicas=2 >/dev/null
k patch deployment owner -p '{"spec":{"paused":true,"template":{"spec":{"nodeSelector":{"no":"such"}}}}}' >/dev/null
two_pods() { [ "$(k get pods -l app=owner -o name | grep -c .)" -ge 2 ]; }
eventually "a workload has pods" 20 two_pods
k patch deployment owner -p '{"spec":{"paused":false}}' >/dev/null
pending_owned() { b explain deployment/owner | grep -q '^State: *pending'; }
eventually "deployment/NAME: its first pending pod" 20 pending_owned
expect "and how many there are" '^Note: +deployment/owner has [0-9]+ pods?, 1 pending; this is pod/owner-' b explain Deployments.apps/owner
expect "TYPE NAME" '^State: *pending' b explain deploy owner
expect "also of a ReplicaSet" '^Pod: *default/owner-' b explain "$(k get rs -l app=owner -o name | head -n 1)"
expect "a type in capitals" '^Pod: *default/here$' b explain POD/here
expect "a node" '^cpu +[0-9]+m +8000m +[0-9]+%$' b explain node/node-a1
expect "a node as JSON" '^NodePicture node-a1$' bash -c "'$BERTH_BIN/berth' explain node/node-a1 -o json | jq -r '.kind + \" \" + .node.metadata.name'"
status_1() { b explain "$@" 2>&1; [ $? -eq 1 ]; }
expect "a workload without pods" 'no pod of job "none" is in namespace "default"' status_1 job/none
expect "a type that is none" '"service" was taken for a namespace, types are pod, podgroup, node' status_1 service/here
expect "what is given to no node" 'there is no node "none"' status_1 node/none
expect "decisions of a pod" 'default/here ' b decisions pod/here
expect "POD/NAME there, too" 'default/here ' b decisions POD/here
k delete deployment owner >/dev/null

# ---- what if
k get node node-b2 -o json | jq '.metadata.labels.disktype = "ssd"' >"$work/ssd.json"
expect "what if a label changed" '^After: +Scheduled on node-b2' b explain picky --what-if "$work/ssd.json"
k get pod big -o json | jq '.spec.nodeSelector = {disktype: "ssd"} | .spec.containers[0].resources.requests.cpu = "1"' >"$work/small-ssd.json"
expect "what if: what would help is what helps the changed pod" '^null label node-b2 disktype=ssd, as the pod requires$' bash -c \
    "'$BERTH_BIN/berth' explain big -f '$work/small-ssd.json' -o json | jq -r '[.fixes, (.whatIf.fixes.fixes[] | select(.fits) | .text)] | \"\(.[0]) \(.[1])\"'"
check "... and nothing when it fits with the other changes" test "$(b explain big -f "$work/small-ssd.json" -f "$work/ssd.json" -o json | jq '.whatIf.fixes')" = null
expect "what if: one node differs" '^node-b2 .*NodeAffinity: .*feasible' b explain picky -f "$work/ssd.json"
cat >"$work/huge.yaml" <<Y
apiVersion: v1
kind: Node
metadata: {name: huge}
status: {allocatable: {cpu: "200", memory: 1Ti, pods: "110"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
Y
expect "what if a node joined" '^Scheduled on huge$' bash -c "'$BERTH_BIN/berth' explain big -f '$work/huge.yaml' -o json | jq -r .whatIf.difference.result.after"
k get pod held -o json | jq 'del(.spec.schedulingGates)' >"$work/open.json"
expect "what if the pod had no gates" '^After: +Scheduled on node-' b explain held -f "$work/open.json"
k get pod here -o json | jq '.spec.containers[0].resources.requests.cpu = "3"' >"$work/fat.json"
expect "what if another pod were fatter" "^Pod +default +here +replaced" b explain picky -f "$work/fat.json"
check "nobody noticed" in_queue held gated
check "the cluster has the nodes it had" test "$(k get nodes --no-headers | wc -l)" = 5

# ---- refusals
fails() { # NAME STATUS PATTERN COMMAND...
    local name=$1 status=$2 pattern=$3 out rc
    shift 3
    out=$("$@" 2>&1)
    rc=$?
    if [ "$rc" -eq "$status" ] && grep -qE -- "$pattern" <<<"$out"; then ok "$name"; else not_ok "$name" "status $rc, wanted $status and: $pattern
got: $out"; fi
}
fails "an unknown pod" 1 'no pod "her" in namespace "default" \(did you mean default/here, default/held\?' b explain her
fails "the right name, the wrong namespace" 1 'did you mean default/here\?' b explain here -n kube-system
fails "an unknown node" 1 'never came to a node "nope": the cluster has 5 nodes' b explain big --node nope
fails "a scheduler without profile" 1 'profile' b explain big --what-if <(k get pod big -o json | jq '.spec.schedulerName = "other"')
fails "a file that is none" 1 'could not read /nonexistent' b explain big -f /nonexistent
fails "a kind that does not matter" 1 'document 1.*Deployment: not a kind' b explain big -f <(echo '{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"x"}}')
fails "a broken quantity" 1 'Node "x".*quantit' b explain big -f <(echo '{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"},"status":{"allocatable":{"cpu":"1e400x"}}}')
fails "a field that is none" 1 'Pod default/big: .*unknown field "spec.nodeSelecter" \(did you mean nodeSelector\?\)' \
    b explain big -f <(k get pod big -o json | jq '.spec.nodeSelecter = {a: "b"}')
fails "no pod named" 2 'say what to explain' b explain
fails "contradicting namespaces" 2 'is in namespace "default"' b explain default/big -n kube-system
fails "another form" 2 'invalid value "html" for --output' b queue -o html
fails "nothing runs there" 1 'No such file or directory' b queue --runtime-dir "$work/none"
mkdir "$work/empty"
fails "no scheduler" 1 "no berth-scheduler runs in \"$work/empty\"" b queue --runtime-dir "$work/empty"
fails "no watcher" 1 "no berth-watcher runs in \"$work/empty\"" b explain big --runtime-dir "$work/empty"
if [ "$(id -u)" -eq 0 ] && id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
    chmod 755 "$work" # the directory above is not what is tested
    fails "no permission" 1 'ermission denied' setpriv --reuid nobody --clear-groups "$BERTH_BIN/berth" queue
else
    skip "no permission" "needs root and setpriv"
fi

# ---- what would make it fit: tried before it is said, and the commands do what they promise
fix() { b explain "$1" -o json | jq -r "first(.fixes.fixes[] | select(.text | test(\"$2\"))) | $3"; }
do_it() { bash -ec "$(fix "$1" "$2" '.commands[]')"; }
would_fit() { [ "$(b explain "$1" -o json | jq -r .explanation.result)" = Scheduled ]; }
is_bound() { k get pvc "$1" -o jsonpath='{.status.phase}' | grep -q Bound; }
k apply -f - >/dev/null <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: both}
spec:
  selector: {matchLabels: {app: both}}
  template:
    metadata: {labels: {app: both}}
    spec: {nodeSelector: {kubernetes.io/hostname: node-c1}, containers: [{name: main, image: pause, resources: {requests: {cpu: "40"}}}]}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: at-once}
provisioner: kubernetes.io/no-provisioner
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: later}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: far}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /far}, storageClassName: far, claimRef: {namespace: default, name: far}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [mars]}]}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: chip}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: chip.example.com}}]}}
Y
claim() { printf '%s\n' '---' 'apiVersion: v1' 'kind: PersistentVolumeClaim' "metadata: {name: $1}" "spec: {accessModes: [ReadWriteOnce], storageClassName: $1, ${2:-} resources: {requests: {storage: 1Gi}}}"; }
{ claim at-once; claim later; claim nowhere; claim far 'volumeName: far,'; } | k apply -f - >/dev/null
eventually "the claim is bound" 10 is_bound far
for c in at-once later nowhere far absent; do pod "with-$c" "volumes: [{name: v, persistentVolumeClaim: {claimName: $c}}]," >/dev/null; done
pod with-chip "resourceClaims: [{name: r, resourceClaimName: chip}]," >/dev/null
pod fat "" 20 >/dev/null
eventually "they wait" 20 in_queue fat unschedulable
expect "a missing claim" '^true fits' fix with-absent 'PersistentVolumeClaim default/absent' '"\(.fits) \(.outcome)"'
expect "a missing class" '^true fits' fix with-nowhere 'StorageClass nowhere, which the claim default/nowhere names' '"\(.fits) \(.outcome)"'
expect "a volume for a claim that binds at once" '^true fits' fix with-at-once 'PersistentVolume default-at-once' '"\(.fits) \(.outcome)"'
expect "a volume for one that waits for its pod" '^true fits' fix with-later 'PersistentVolume default-later' '"\(.fits) \(.outcome)"'
expect "a volume that is where no node is" '^true fits' fix with-far 'a node where the PersistentVolume far can be: zone=mars' '"\(.fits) \(.outcome)"'
expect "a device class that is missing" '^false still nowhere: .*cannot allocate all claims' fix with-chip 'DeviceClass chip.example.com, which the claim default/chip asks for' '"\(.fits) \(.outcome)"'
expect "with its manifest as text" '^  name: chip.example.com$' b explain with-chip
both=$(k get pod -l app=both -o name)
expect "two changes when one is not enough" '^true$' fix "$both" 'tolerate the taint dedicated=gpu:NoSchedule .*, and 32 cpu, as much as is free' .fits
expect "the patch goes to the owner, and says why" 'owner, Deployment both' fix "$both" 'tolerate the taint .*, and 32 cpu' .note
expect "nothing that admission adds" 'patch Deployment both .*"tolerations":\[\{"key":"dedicated"' fix "$both" 'tolerate the taint .*, and 32 cpu' '.commands[]'
for what in "with-absent PersistentVolumeClaim" "with-nowhere StorageClass" "with-at-once PersistentVolume" "with-later PersistentVolume" "with-far zone=mars" "with-chip DeviceClass" "fat half"; do
    check "the commands are accepted: $what" do_it "${what% *}" "${what#* }"
done
for p in with-absent with-nowhere with-at-once with-later with-far fat; do eventually "$p fits then" 20 would_fit "$p"; done
check "the owner is patched" do_it "$both" 'tolerate the taint .*, and 32 cpu'
new_one() { k get pod -l app=both -o json | jq -e '.items[] | select(.spec.containers[0].resources.requests.cpu == "32")'; }
eventually "and makes another pod" 20 new_one

# ---- a decision on its way
binder=$(pid_of berth-binder)
# The scheduler misses a binder that says nothing for three seconds: where the machine needs longer for all of this, the
# next try may not.
binding() { b queue --all -o wide | grep -E 'slow +binding .* node-[abc][12] '; }
on_its_way() {
    local i
    kill -CONT "$binder"
    k delete pod quick slow --ignore-not-found --now >/dev/null
    pod quick "" >/dev/null
    for i in {1..100}; do bound quick >/dev/null 2>&1 && break; sleep 0.1; done
    kill -STOP "$binder"
    pod slow "" >/dev/null
    for i in {1..20}; do binding && break; done
    queue_of slow >"$work/slow.queue" && b explain slow >"$work/slow.text" && explained slow .queue.binding.node >"$work/slow.on" && explained slow .nodeName >"$work/slow.node" && binding
}
eventually "a pod whose bind is on its way" 60 on_its_way
expect "is not listed among those that wait" '^$' cat "$work/slow.queue"
expect "is explained as decided" '^State: +decided, being bound to node-' cat "$work/slow.text"
check "and its node knows its room is taken" cmp "$work/slow.on" "$work/slow.node"
kill -CONT "$binder"
eventually "it is bound" 20 bound slow

# ---- the control socket and rubbish
scheduler=$(pid_of berth-scheduler)
head -c 100000 /dev/urandom >"$work/rubbish"
for i in 1 2 3; do
    curl -s -m 0.3 --unix-socket "$run/control.sock" --data-binary "@$work/rubbish" http://scheduler/ >/dev/null
done
expect "the queue answers all the same" 'big +unschedulable' b queue
check "by the same scheduler" test "$(pid_of berth-scheduler)" = "$scheduler"

# ---- observers
b explain big -o json >"$work/o1" & p1=$!
b explain here -o json >"$work/o2" & p2=$!
b explain picky -o json >"$work/o3" & p3=$!
for p in $p1 $p2 $p3; do
    wait "$p"
    expect "one of three observers at once" '^0$' echo $?
done
check "all have their answer" test "$(cat "$work/o1" "$work/o2" "$work/o3" | jq -s 'map(.explanation.result) | length')" = 3
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do # more than there are places
    b explain big >/dev/null 2>&1 & p1=$!
    [ "$i" -gt 6 ] && sleep 0.01
    kill -9 "$p1" 2>/dev/null
    wait "$p1" 2>/dev/null
done
metric() { curl -fsS "http://127.0.0.1:$(metrics_port watcher)/metrics" | awk -v m="$1" '$1 == m {print $2}'; }
no_observers() { [ "$(metric berth_watcher_feed_observers)" = 0 ]; }
eventually "killed observers are forgotten" 10 no_observers
check "one scheduler is fed" test "$(metric berth_watcher_feed_schedulers)" = 1
check "and none was lost" test "$(metric berth_watcher_feed_dropped_total)" = 0
check "the scheduler is the same" test "$(pid_of berth-scheduler)" = "$scheduler"
check "another observer finds a place" b explain big
pod after "" >/dev/null
eventually "pods are scheduled as before" 10 bound after

# ---- without a scheduler that answers
kill -STOP "$scheduler"
expect "explain with a configuration of its own" 'Note: +the scheduler does not answer' b explain big --config "$work/scheduler.yaml"
kill -CONT "$scheduler"
check "it goes on" b queue

# ---- kubectl berth
mkdir "$work/bin"
ln -s "$BERTH_BIN/berth" "$work/bin/kubectl-berth"
expect "kubectl berth queue" 'big +unschedulable' env PATH="$work/bin:$PATH" kubectl berth queue

# ---- a cluster without nodes
k delete nodes --all >/dev/null
no_nodes() { b explain big | grep -q 'no nodes available'; }
eventually "the nodes are gone" 10 no_nodes
expect "a node is proposed" '^a node: the cluster has none' b explain big
b explain big | sed -n '/^a node: the cluster has none/,/^EOF/p' | grep -v '^  fits:' | sed 1d >"$work/first-node.sh"
check "the command makes it" bash "$work/first-node.sh"
eventually "and the pod goes there" 20 bound big
