#!/usr/bin/env bash
# berth import, sync, record and replay between two API servers: `berth up` is the real cluster, a berth-simulator without
# a scheduler the copy; then what was recorded is played in the first.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
b() { "$BERTH_BIN/berth" "$@"; }
any() { "$@" || true; }
api() { # SERVER METHOD PATH [BODY [TYPE]]
    curl -fsS -X "$2" "$1$3" ${4:+-H "Content-Type: ${5:-application/json}" -d "$4"}
}
pod() { # name extra-of-spec
    printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","labels":{"app":"%s"},"annotations":{"note":"hunter2"}},"spec":{%s"containers":[{"name":"c","image":"registry.corp/app","env":[{"name":"P","value":"hunter2"}],"args":["--key=hunter2"],"resources":{"requests":{"cpu":"100m"}}}]}}' "$1" "$1" "${2:-}"
}
pods=/api/v1/namespaces/default/pods

start_up --port 0 --front-port 0 --runtime-dir "$work/run" || exit 1
from=$(awk '/API server/ {print $3; exit}' "$work/up.out")
"$BERTH_BIN/berth-simulator" --port 0 --kubeconfig-out "$work/copy.conf" >"$work/copy.log" 2>&1 &
also_stop=$!
wait_for_file "$work/copy.conf"
to=$(awk '/server:/ {print $2}' "$work/copy.conf")

# ---- usage
check "import without a source: status 2" status 2 b import --to "$to"
check "import with two ends: status 2" status 2 b import --from "$from" --to "$to" --dry-run
check "an unknown kind: status 2" status 2 b import --from "$from" --dry-run --kinds secrets
check "record without a file: status 2" status 2 b record --from "$from"
check "replay without a file: status 2" status 2 b replay
check "a speed of 0: status 2" status 2 b replay x --speed 0
expect "a source that is not there: status 1" 'the source at http://127.0.0.1:1 cannot be reached' any b import --from http://127.0.0.1:1 --dry-run
check "and for record" status 1 b record --from http://127.0.0.1:1 -o "$work/none.jsonl"

# ---- import
api "$from" POST /api/v1/namespaces/default/secrets '{"metadata":{"name":"s"},"stringData":{"k":"hunter2"}}' >/dev/null
api "$from" POST $pods "$(pod first)" >/dev/null
bound() { api "$1" GET "$pods/$2" | jq -re '.spec.nodeName // empty'; }
eventually "the source's scheduler places a pod" 20 bound "$from" first
expect "a dry run reads" '^nodes +5 +0 ' b import --from "$from" --dry-run
expect "import creates" '^nodes +5 +5 ' b import --from "$work/run/kubeconfig" --to "$work/copy.conf"
expect "pods stay on their nodes" "^$(bound "$from" first)\$" bound "$to" first
expect "again, nothing is left to do" '"created": 0' b import --from "$from" --to "$to" -o json
nodes_of() { api "$1" GET /api/v1/nodes | jq -S '[.items[] | {n: .metadata.name, l: .metadata.labels, a: .status.allocatable, t: .spec.taints}]'; }
check "nodes are the same, status and all" diff <(nodes_of "$from") <(nodes_of "$to")
no_secret() { # everything the copy has
    local k
    for k in pods secrets configmaps nodes; do
        no_line_with hunter2 api "$to" GET "/api/v1/$k" || return 1
    done
}
check "no secret has left the source" no_secret
b import --from "$from" --anonymise --manifests "$work/anon.yaml" >/dev/null
check "anonymised manifests name nothing" no_line_with 'hunter2|corp|node-a1|first' cat "$work/anon.yaml"
pod more >"$work/more.json"
expect "and can be simulated" 'default +more +Scheduled' b simulate -f "$work/anon.yaml" -f "$work/more.json"
api "$from" POST /api/v1/namespaces '{"metadata":{"name":"shop"}}' >/dev/null
api "$from" POST /api/v1/namespaces/shop/pods "$(pod lone)" >/dev/null
refused() { status 3 b import --from "$from" --to "$to" --kinds pods && b import --from "$from" --to "$to" --kinds pods | grep 'shop/lone: namespaces "shop" not found'; }
expect "what the destination refuses is told" 'not found' refused

# ---- record and sync, while things happen
"$BERTH_BIN/berth" record --from "$from" --output "$work/rec.jsonl" 2>"$work/rec.err" &
rec=$!
"$BERTH_BIN/berth" record --from "$from" --output "$work/killed.jsonl.gz" --header --anonymise 2>"$work/killed.err" &
killed=$!
"$BERTH_BIN/berth" sync --from "$from" --to "$to" --pods follow >"$work/sync.out" 2>"$work/sync.err" &
sync=$!
eventually "sync gets in step" 20 grep -q '^in step' "$work/sync.out"
eventually "record has the state" 20 grep -q 'recording changes' "$work/rec.err"
eventually "the other one, too" 20 grep -q 'recording changes' "$work/killed.err"
api "$to" PATCH /api/v1/nodes/node-a1 '{"metadata":{"labels":{"by":"hand"}}}' application/merge-patch+json >/dev/null
for i in 1 2 3; do api "$from" POST $pods "$(pod "new-$i")" >/dev/null; done
eventually "new pods are bound in the source" 20 bound "$from" new-3
same_node() { [ -n "$(bound "$to" "$1")" ] && [ "$(bound "$from" "$1")" = "$(bound "$to" "$1")" ]; }
eventually "and there, in the copy" 20 same_node new-3
api "$from" PATCH /api/v1/nodes/node-b1 '{"spec":{"unschedulable":true}}' application/merge-patch+json >/dev/null
api "$from" DELETE "$pods/new-1?gracePeriodSeconds=0" >/dev/null
cordoned() { api "$to" GET /api/v1/nodes/node-b1 | jq -e '.spec.unschedulable'; }
eventually "changes of nodes follow" 20 cordoned
gone() { [ "$(curl -s -o /dev/null -w '%{http_code}' "$to$pods/$1")" = 404 ]; }
eventually "so does the end of a pod" 20 gone new-1
by_hand() { api "$to" GET /api/v1/nodes/node-a1 | jq -e '.metadata.labels.by == "hand"'; }
check "what was added by hand stays" by_hand
eventually "what was recorded is in the file" 5 grep -q '"event":"Delete".*"name":"new-1"' "$work/rec.jsonl"
{ kill -9 $killed; wait $killed; } 2>/dev/null
api "$from" POST $pods "$(pod last)" >/dev/null
eventually "one more pod" 20 bound "$to" last
kill -TERM $rec $sync
wait $rec
check "record ends with 0" test $? -eq 0
wait $sync
check "sync ends with 0" test $? -eq 0
check "nothing was lost at the end" grep -q '"name":"last"' "$work/rec.jsonl"
check "every line is a record" jq -es 'all(.time and .event and .resource.kind)' "$work/rec.jsonl"
check "the file holds no secret" no_line_with 'hunter2|managedFields|args' cat "$work/rec.jsonl"
killed_lines() { gzip -dc "$work/killed.jsonl.gz" 2>/dev/null | jq -es 'length > 10 and .[0].berthRecord == 1' && ! gzip -dc "$work/killed.jsonl.gz" 2>/dev/null | grep -E 'hunter2|corp|new-1'; }
check "a killed recorder's file can be read" killed_lines

# ---- replay, into the cluster with the scheduler
b_replay() { b replay --server "$from" "$@"; }
check "paused at the beginning" status 0 b_replay "$work/rec.jsonl" --clear --paused
replay_is() { b_replay --status -o json | jq -e "$1"; }
eventually "loaded" 10 replay_is '.phase == "Paused" and .applied == 0 and .total > 10'
expect "a second file is refused" 'is being replayed' any b_replay "$work/rec.jsonl"
check "three records by hand" status 0 b_replay --step 3
eventually "three are applied" 10 replay_is '.applied == 3'
check "half speed, and on" status 0 b_replay --speed 0.5 --resume
eventually "time passes" 10 replay_is '.applied > 5 and .phase == "Running"'
check "stop" status 0 b_replay --stop
check "nothing left of it" replay_is '.phase == "None"'
check "at full speed to the end" status 0 b_replay "$work/rec.jsonl" --clear --speed max
compared() { replay_is '.phase == "Done" and .errorCount == 0 and .waiting == 0 and (.compared.same + .compared.different == 4)'; }
eventually "every pod is placed and compared" 10 compared
# Two equal nodes and a third that takes no pod; the first pod is recorded on one of the equal ones, then on the other.
record() { # type, time, JSON of an object without its apiVersion
    echo '{"time":"2026-01-01T00:00:0'"$2"'Z","event":"'"$1"'","resource":{"apiVersion":"v1",'"$3"'}}'
}
tied() { # the node that is recorded of pod z-tie
    local n
    for n in tie-a tie-b; do record Add 0 '"kind":"Node","metadata":{"name":"'$n'"},"status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"}}'; done
    record Add 0 '"kind":"Node","metadata":{"name":"closed"},"spec":{"taints":[{"key":"no","effect":"NoSchedule"}]},"status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"}}'
    record Add 1 '"kind":"Pod","metadata":{"name":"z-tie","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}'
    record Update 2 '"kind":"Pod","metadata":{"name":"z-tie","namespace":"default"},"spec":{"nodeName":"'"$1"'","containers":[{"name":"c","image":"i"}]}'
    record Add 3 '"kind":"Pod","metadata":{"name":"a-closed","namespace":"default"},"spec":{"containers":[{"name":"c","image":"i"}]}'
    record Update 4 '"kind":"Pod","metadata":{"name":"a-closed","namespace":"default"},"spec":{"nodeName":"closed","containers":[{"name":"c","image":"i"}]}'
}
tied tie-a >"$work/tie-a.jsonl"
tied tie-b >"$work/tie-b.jsonl"
played() { # plays until both pods are compared
    status 0 b_replay "$work/$1.jsonl" --clear --speed max
    eventually "$1: both pods are compared" 10 replay_is '.phase == "Done" and .compared.same + .compared.different == 2'
    b_replay --status -o json >"$work/$1.json"
}
# Whatever is drawn, z-tie is on its recorded node in some plays and by a tie elsewhere in the others.
played tie-a
played tie-b
check "a node of equal score counts as agreement" jq -es 'map(.compared | .same + .ties == 1 and .different - .ties == 1) | all' "$work/tie-a.json" "$work/tie-b.json"
check "differences are sorted by name" jq -es 'map(.compared.differences | map(.name) | . == sort) | all' "$work/tie-a.json" "$work/tie-b.json"
check "a node that is rejected here is another node" jq -e '.compared.differences[0] | .name == "a-closed" and .how == "infeasible"' "$work/tie-b.json"
expect "as text" '^pods waiting 0  same node [01]  another of equal score [01]  another node 1 ' b_replay --status --compare
expect "with the reason" '^  default/a-closed: recorded closed, here tie-[ab], the recorded node is rejected here$' b_replay --status --compare
check "the record of before again" status 0 b_replay "$work/rec.jsonl" --clear --speed max
eventually "is played" 10 compared
expect "the cluster is as it was" '^node-b1 true$' jq -r '.items[] | select(.spec.unschedulable) | "\(.metadata.name) true"' <(api "$from" GET /api/v1/nodes)
killed_replay() { b_replay "$work/killed.jsonl.gz" --clear --speed 1000 --follow; }
expect "the killed, anonymised one, followed" '^Done .*' killed_replay
echo garbage >"$work/garbage"
expect "garbage: status 1 and the line" 'line 1' any b_replay "$work/garbage"
check "status 1" status 1 b_replay "$work/garbage"
head -c 300000000 /dev/zero | gzip -1 >"$work/bomb.gz"
expect "a file of zeros is no record" 'Failed' any b_replay "$work/bomb.gz"
check "the server still serves" api "$from" GET /api/v1/nodes
expect "steering nothing: refused" 'nothing is being replayed' any b_replay --pause
printf 'sn,cpu_milli,memory_mib,gpu,model\nn1,32000,65536,0,\n' >"$work/n.csv"
printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,creation_time,deletion_time\np1,1000,1024,0,0,LS,10,20\np2,1000,1024,0,0,LS,15,\n' >"$work/p.csv"
check "a trace becomes a record" status 0 b record --openb --nodes "$work/n.csv" --pods "$work/p.csv" -o "$work/t.jsonl.gz"
check "and is not written over" status 1 b record --openb --nodes "$work/n.csv" --pods "$work/p.csv" -o "$work/t.jsonl.gz"
check "it plays" status 0 b_replay "$work/t.jsonl.gz" --clear --speed 100
one_left() { api "$from" GET $pods | jq -e '[.items[].metadata.name] == ["p2"]'; }
eventually "pods came and went" 10 one_left
cat >"$work/kwok.yaml" <<'Y'
apiVersion: v1
kind: Node
metadata: {name: k1, annotations: {secret: hunter2}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
{apiVersion: action.kwok.x-k8s.io/v1alpha1, kind: ResourcePatch, resource: {group: "", version: v1, resource: pods}, target: {name: kp, namespace: default}, durationNanosecond: 1000000000, method: create, template: {apiVersion: v1, kind: Pod, metadata: {name: kp, namespace: default}, spec: {containers: [{name: c, image: i}]}}}
---
{apiVersion: action.kwok.x-k8s.io/v1alpha1, kind: ResourcePatch, resource: {group: "", version: v1, resource: pods}, target: {name: kp, namespace: default}, durationNanosecond: 2000000000, method: patch, template: {metadata: {labels: {a: b}}, spec: {nodeName: k1}}}
---
{apiVersion: action.kwok.x-k8s.io/v1alpha1, kind: ResourcePatch, resource: {group: "", version: v1, resource: pods}, target: {name: kp, namespace: default}, durationNanosecond: 3000000000, method: delete}
Y
kwok_is() { jq -es 'map(.event) == ["Add","Add","Update","Delete"] and .[2].resource.spec.nodeName == "k1" and .[2].resource.spec.containers[0].image == "i" and .[3].time == "2023-01-01T00:00:03.000000Z"' "$work/kwok.jsonl" && ! grep hunter2 "$work/kwok.jsonl"; }
check "a recording of kwokctl becomes a record" status 0 b record --kwok "$work/kwok.yaml" -o "$work/kwok.jsonl"
check "with whole objects and its times" kwok_is
printf 'kind: ResourcePatch\napiVersion: action.kwok.x-k8s.io/v1alpha1\nmethod: explode\n' >"$work/bad.yaml"
expect "what it does not understand is told with its line" 'bad.yaml: line 1: durationNanosecond' any b record --kwok "$work/bad.yaml" -o - --force

# ---- two schedulers compared: the copy is the source now, and its binding is done by hand
"$BERTH_BIN/berth" sync --from "$to" --to "$from" >"$work/back.out" 2>"$work/back.err" &
back=$!
eventually "sync the other way round" 20 grep -q '^in step' "$work/back.out"
api "$to" POST $pods "$(pod twice '"nodeSelector":{"kubernetes.io/hostname":"node-a1"},')" >/dev/null
eventually "the destination's scheduler decides" 20 bound "$from" twice
api "$to" POST "$pods/twice/binding" '{"metadata":{"name":"twice"},"target":{"kind":"Node","name":"node-b2"}}' >/dev/null
eventually "the difference is told" 10 grep -q 'default/twice: on node-a1 here, on node-b2 in the source' "$work/back.err"
kill -TERM $back
wait $back
check "and counted" grep -q '^new pods: same node 0  another node 1  not placed here 0' "$work/back.out"
