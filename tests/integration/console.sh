#!/usr/bin/env bash
# What the page asks for (docs/simulator-api.md 1, 2, 4) on a live system: rows, questions,
# kube-scheduler-simulator's paths, the scheduler's configuration, and what must not get through.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null && command -v jq >/dev/null || { skip "console" "no kubectl or jq"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }

start_up --binders 1 || exit 1
url=$(awk '/web page/ {print $3}' "$work/up.out")
url=${url%/ui/}
get() { curl -sS --max-time $((20 * PATIENCE)) "$url$1"; }
post() { # path body [more of curl's]
    local path=$1 body=$2
    shift 2
    curl -sS --max-time $((40 * PATIENCE)) -H 'Content-Type: application/json' --data-binary "$body" "$@" "$url$path"
}
code() { curl -sS -o /dev/null --max-time $((40 * PATIENCE)) -w '%{http_code}' "$@"; }
says() { [ "$("${@:2}")" = "$1" ]; } # TEXT COMMAND...
has() { jq -e "$1" >/dev/null <<<"$2"; }

# ---- overview, rows
ready() { get /berth/v1/overview | jq -e '.scheduler.deciding and .pods.running == 3' >/dev/null; }
eventually "the overview knows the running pods and the scheduler" 30 ready
o=$(get /berth/v1/overview)
check "sums of nodes and requests" has '.nodes.total == 5 and .nodes.ready == 5 and (.resources[] | select(.name == "cpu") | .allocatable == 68000 and .requested == 750)' "$o"
curl -sSN --max-time $((60 * PATIENCE)) "$url/berth/v1/watch?kinds=pods,nodes,deployments.apps" >"$work/stream" &
also_stop=$!
told() { grep -q "$1" "$work/stream"; }
eventually "the stream tells the state and says so" 20 told '^event: synced'
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: big}
spec: {containers: [{name: c, image: pause, resources: {requests: {cpu: 30}}}]}
Y
eventually "a pod that nothing fits shows why" 20 told '"key":"default/big".*Insufficient cpu'
k scale deployment hello --replicas=4 >/dev/null
sums() { grep -A1 '^event: nodes' "$work/stream" | sed -n 's/^data: //p' | jq -se 'flatten | group_by(.row.key) | map(last.row.requested.cpu_milli) | add == 1000' >/dev/null; }
eventually "nodes are told again when their pods change" 20 sums
check "the reason that rejects most nodes is the first" has '.pendingReasons[0] == {reason: "Insufficient cpu", count: 1, rejections: 4}' "$(get /berth/v1/overview)"
check "the overview counts the reason" has '[.pendingReasons[].reason] | index("Insufficient cpu")' "$(get /berth/v1/overview)"
id=$(grep '^id:' "$work/stream" | tail -1 | cut -d' ' -f2)
k delete pod big --now >/dev/null
k get pods >/dev/null
resumed() { curl -sSN --max-time 1 -H "Last-Event-ID: $id" "$url/berth/v1/watch?kinds=pods" 2>/dev/null | grep -q '"type":"DELETED","row":{"key":"default/big"'; }
check "a stream that broke goes on where it was" resumed
again() { curl -sSN --max-time 1 "$url/berth/v1/watch?kinds=pods&since=5" 2>/dev/null | head -n1 | grep -q 'event: reset'; }
check "one from too long ago begins again" again
check "an unknown kind is refused" says 400 code "$url/berth/v1/watch?kinds=pods,nonsense"

# ---- questions
pod=$(k get pods -o name | head -n1)
explained=$("$BERTH_BIN/berth" explain "$pod" --runtime-dir "$run" -o json | jq -S .explanation)
asked=$(post /berth/v1/whatif "{\"pod\":{\"name\":\"${pod#pod/}\"},\"everybody\":true}" | jq -S .after)
check "what-if of a bound pod says what berth explain says" says "$explained" echo "$asked"
w=$(post /berth/v1/whatif '{"pod":{"manifest":"apiVersion: v1\nkind: Pod\nmetadata: {name: huge}\nspec: {containers: [{name: c, image: pause, resources: {requests: {cpu: 60}}}]}"},
 "changes":[{"manifest":"apiVersion: v1\nkind: Node\nmetadata: {name: new1}\nstatus: {allocatable: {cpu: 64, memory: 64Gi, pods: 110}}"},{"delete":{"kind":"Node","name":"node-a1"}}]}')
check "a node more makes a pod fit" has '.before.result == "Unschedulable" and .after.nodeName == "new1" and (.changes | map(.action)) == ["added","deleted"]' "$w"
check "nothing of it is real" says 404 code "$url/api/v1/nodes/new1"
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: typo}\nspec:\n  nodeSelecter: {a: b}\n  containers: [{name: c, image: i}]\n' >"$work/typo.yaml"
check "a field that is none, in what-if" has '.field == "pod.manifest" and .line == 5 and (.message | contains("did you mean nodeSelector?"))' \
    "$(post /berth/v1/whatif "$(jq -Rs '{pod: {manifest: .}}' "$work/typo.yaml")")"
check "to editors" has '.documents[0].problems == [{line: 5, message: "unknown field \"spec.nodeSelecter\" (did you mean nodeSelector?)"}]' \
    "$(curl -s -H 'Content-Type: application/yaml' --data-binary "@$work/typo.yaml" "$url/berth/v1/manifest")"
check "and in the report of an import" has '.created == 0 and (.errors[0] | .name == "typo" and (.message | startswith("line 5: unknown field")))' \
    "$(curl -s -H 'Content-Type: application/yaml' --data-binary "@$work/typo.yaml" "$url/api/v1/import?mode=merge")"
check "a pod that is not there is named" has '.field == "pod" and .message == "there is no pod gone in namespace default"' "$(post /berth/v1/whatif '{"pod":{"name":"gone"},"everybody":true}')"
check "a change that is not valid is named" has '.field == "changes[0].manifest" and .line > 0' "$(post /berth/v1/whatif '{"pod":{"name":"'"${pod#pod/}"'"},"changes":[{"manifest":"a: [1"}]}')"
check "a member nobody knows is named" has '.field == "podd"' "$(post /berth/v1/whatif '{"podd":{}}')"
check "a configuration that is not valid is named" has '.field == "config" and .line == 4' "$(post /berth/v1/whatif '{"pod":{"name":"'"${pod#pod/}"'"},"config":"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- foo: 1\n"}')"
one='"apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec: {containers: [{name: c, image: pause, resources: {requests: {cpu: 2}}}]}"'
counted=$(post /berth/v1/capacity '{"pods":['"$one"']}' | jq .replicas)
printf '%b' "$(jq -r . <<<"$one")" >"$work/one.yaml"
k get nodes,pods -o yaml >"$work/cluster.yaml"
simulated=$("$BERTH_BIN/berth" simulate -f "$work/cluster.yaml" -f "$work/one.yaml" --count --pod default/one -o json 2>/dev/null | jq .total)
check "capacity counts as berth simulate does" says "$simulated" echo "$counted"
check "a node more is more capacity" has ".replicas == $counted + 4" "$(post /berth/v1/capacity '{"pods":['"$one"'],"addNodes":[{"manifest":"apiVersion: v1\nkind: Node\nmetadata: {name: x}\nstatus: {allocatable: {cpu: 4, memory: 64Gi, pods: 110}}","count":2}]}')"
node=$(k get "$pod" -o jsonpath='{.spec.nodeName}')
check "draining says where pods go" has ".pods | length > 0 and all(.from == \"$node\" and .to != null and .to != \"$node\")" "$(post /berth/v1/drain "{\"nodes\":[\"$node\"]}")"
check "which pods to move" has '.kind == "RebalancePlan" and ((.free | length) + (.empty | length) + (.kept | length)) == 5' "$(post /berth/v1/rebalance '{}')"
check "a selector that is none is named" has '.field == "selector"' "$(post /berth/v1/rebalance '{"selector":"a in"}')"
check "which plugins score, and with which weight" has '.valid and ([.scores[0].plugins[] | select(.name == "ImageLocality")][0].weight == 7) and ([.scores[0].plugins[] | select(.name == "NodeResourcesFit")] == []) and .scores[1].profile == "b"' "$(post /berth/v1/configs/check '{"config":"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: a, plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 7}]}, score: {disabled: [{name: NodeResourcesFit}]}}}, {schedulerName: b}]"}')"
check "two configurations compared" has '.compared == 4 and (.same + (.different | length)) == 4' "$(post /berth/v1/configs/diff '{"b":"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]","pods":"all"}')"
check "a configuration checked" has '.valid == false and .errors[0].field == "parallelism" and .errors[0].line == 3' "$(post /berth/v1/configs/check '{"config":"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1"}')"
check "the queue" has '.running and (.counts | has("unschedulable"))' "$(get /berth/v1/queue)"
check "the time line" has '[.items[] | select(.what == "bound")] | length >= 4' "$(get '/berth/v1/timeline?limit=1000')"
rev=$(get /berth/v1/overview | jq .revision)
k scale deployment hello --replicas=1 >/dev/null
fewer() { [ "$(get /berth/v1/overview | jq .pods.total)" = 1 ]; }
eventually "the deployment shrinks" 20 fewer
check "the cluster as it was" has '(.pods | length) == 4 and ([.nodes[].requested.cpu_milli] | add) == 1000' "$(get "/berth/v1/asof?revision=$rev")"
check "too long ago" says 410 code "$url/berth/v1/asof?revision=7"

# ---- the scheduler's configuration
scheduler=$(pgrep -P "$up_pid" berth-scheduler)
conf='apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: '
check "a bad one is refused with field and line" has '.field == "podInitialBackoffSeconds" and .line == 3' "$(post /api/v1/schedulerconfiguration "${conf}0")"
check "a good one is taken" says 202 code --data-binary "${conf}2" "$url/api/v1/schedulerconfiguration"
backoff() { get /api/v1/schedulerconfiguration | jq .podInitialBackoffSeconds; }
check "and runs" says 2 backoff
check "in the same process" says "$scheduler" pgrep -P "$up_pid" berth-scheduler
check "its file is the owner's" says 600 stat -c %a "$run/scheduler.yaml"
k create deployment web --image=pause --replicas=20 >/dev/null
for i in 3 4 5; do code --data-binary "$conf$i" "$url/api/v1/schedulerconfiguration" >/dev/null; done &
changes=$!
k scale deployment web --replicas=60 >/dev/null
some_run() { [ "$(get /berth/v1/overview | jq .pods.running)" -gt 1 ]; }
eventually "pods of the load run" 40 some_run
kill -9 "$scheduler" # in the middle of it
wait "$changes"
all_run() { [ "$(get /berth/v1/overview | jq .pods.running)" = 61 ]; }
eventually "pods go on running through changes and a kill" 40 all_run
# the pods may have been done before the kill: the scheduler has to come back first
eventually "what runs is what the file says" 20 says "$(sed -n 's/^podInitialBackoffSeconds: //p' "$run/scheduler.yaml")" backoff

# ---- export, import, reset
check "a document of which nothing can be taken replaces nothing" has '.created == 0 and .deleted == 0 and (.errors | length) == 1' \
    "$(curl -s -H 'Content-Type: application/yaml' --data-binary "@$work/typo.yaml" "$url/api/v1/import")"
get /api/v1/export >"$work/export.json"
check "the export has seven kinds and the configuration" has '(.pods | length) == 61 and (.nodes | length) == 5 and (.pods[0] | has("kind") | not) and .schedulerConfig.kind == "KubeSchedulerConfiguration" and .namespaces == []' "$(cat "$work/export.json")"
cat >"$work/import.json" <<J
{"namespaces":[{"metadata":{"name":"shop","uid":"n1"}}],
 "nodes":[{"metadata":{"name":"m1"},"status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"},"capacity":{"cpu":"8","memory":"8Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}}],
 "pvcs":[{"metadata":{"name":"c1","namespace":"shop","uid":"old-claim"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"volumeName":"v1","storageClassName":""},"status":{"phase":"Bound"}}],
 "pvs":[{"metadata":{"name":"v1","uid":"old-volume"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},"claimRef":{"namespace":"shop","name":"c1","uid":"old-claim"}},"status":{"phase":"Bound"}}],
 "pods":[{"metadata":{"name":"p1","namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"gone","uid":"not-there","controller":true}]},"spec":{"nodeName":"m1","serviceAccountName":"nobody","containers":[{"name":"c","image":"x"}]}},
         {"metadata":{"name":"Bad_Name","namespace":"shop"},"spec":{"containers":[{"name":"c","image":"x"}]}}]}
J
i=$(post /api/v1/import "$(cat "$work/import.json")")
check "an import replaces, and lists what it refused" has '.created == 5 and .deleted >= 61 and (.errors | length) == 1 and .errors[0].name == "Bad_Name"' "$i"
check "what was there is gone" says "m1" k get nodes -o jsonpath='{.items[*].metadata.name}'
check "a volume knows its claim again" says "$(k get pvc c1 -n shop -o jsonpath='{.metadata.uid}')" k get pv v1 -o jsonpath='{.spec.claimRef.uid}'
running() { [ "$(k get pod p1 -n shop -o jsonpath='{.status.phase}')" = Running ]; }
eventually "a pod without its owner and account stays" 20 running
check "manifests can be merged" has '.created == 1 and .deleted == 0' "$(post '/api/v1/import?mode=merge' '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"extra"}}]}')"
before=$(get /berth/v1/overview | jq .revision)
k apply -f - >/dev/null <<'EOF'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: boats, singular: boat, kind: Boat}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
EOF
boat() { k apply -f - <<<'{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"ark"}}'; }
eventually "a custom kind that came later" 10 boat
check "reset" says 202 code -X PUT "$url/api/v1/reset"
no_boats() { ! k get crd boats.example.com 2>/dev/null && [ "$(code "$url/apis/example.com/v1/boats")" = 404 ]; }
eventually "takes it away" 20 no_boats
back() { [ "$(k get nodes -o name | wc -l)" = 5 ] && [ "$(get /berth/v1/overview | jq .pods.running)" = 3 ]; }
eventually "brings back the start" 30 back
check "with its configuration" says 1 backoff
check "and revisions never run backwards" [ "$(get /berth/v1/overview | jq .revision)" -gt "$before" ]
lines() { curl -sSN --max-time 1 "$url/api/v1/listwatchresources" 2>/dev/null | jq -se '(map(select(.Kind == "nodes" and .EventType == "ADDED")) | length) == 5 and all(.Obj | has("kind") | not)' >/dev/null; }
check "the list-and-watch stream has a line for each object" lines

# ---- what must not get through
check "another site's page may not reset" says 403 code -X PUT -H 'Origin: http://evil.example' "$url/api/v1/reset"
check "nor one that the browser tells of" says 403 code -X PUT -H 'Sec-Fetch-Site: cross-site' "$url/api/v1/reset"
check "nor send a form" says 403 code -A Mozilla/5.0 -d a=b "$url/api/v1/import"
check "nor read a stream" says 403 code -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: no-cors' "$url/berth/v1/watch?kinds=pods"
check "a rebound name" says 403 code -H 'Host: evil.example' "$url/berth/v1/overview"
for body in '{' '[]' 'x: [' '{"pods":3}' ''; do
    check "rubbish is refused: $body" says 400 code --data-binary "$body" "$url/api/v1/import"
done
head -c 70000000 /dev/zero | tr '\0' ' ' >"$work/huge"
check "a body beyond bounds" says 413 code -H 'Expect:' --data-binary "@$work/huge" "$url/api/v1/import"
head -c 4000000 "$work/huge" >"$work/large"
check "and a smaller one elsewhere" says 413 code -H 'Expect:' --data-binary "@$work/large" "$url/berth/v1/whatif"
expect "... which a client-go understands" '^Status Failure RequestEntityTooLarge Request entity too large: limit is 3145728 413$' \
    bash -c "curl -sS -H 'Expect:' --data-binary '@$work/large' '$url/api/v1/namespaces/default/configmaps' | jq -r '[.kind, .status, .reason, .message, .code] | join(\" \")'"
check "the server is well" says 200 code "$url/berth/v1/overview"

