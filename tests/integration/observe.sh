#!/usr/bin/env bash
# berth up --observe beside another scheduler (a whole Berth of its own, whose API server writes an audit log): what it
# sees and compares, that it sends nothing but reads that config/rbac-observe.yaml grants, that its copy cannot be
# written, and what is said when the kubeconfig is wrong.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq kubectl python3; do
    command -v $t >/dev/null || { skip "observing" "no $t"; exit 0; }
done
repo=$(cd "$here/../.." && pwd)
audit=$work/audit.log
printf 't-admin,admin,1,"system:masters"\n' >"$work/tokens"
"$BERTH_BIN/berth-simulator" --tls --kubeconfig-out "$work/admin.yaml" --token-file "$work/tokens" --audit-log-path "$audit" \
    >"$work/simulator.log" 2>&1 &
also_stop=$!
wait_for_file "$work/admin.yaml" || { not_ok "the other cluster starts" "$(cat "$work/simulator.log")"; exit 1; }
mkdir "$work/other"
start() { # program flags...
    "$BERTH_BIN/berth-$1" --runtime-dir "$work/other" --metrics-address 127.0.0.1:0 "${@:2}" >"$work/other/$1.log" 2>&1 &
    also_stop="$! $also_stop"
}
start watcher --kubeconfig "$work/admin.yaml"
start scheduler --tie-break first
other=${also_stop%% *}
start binder --kubeconfig "$work/admin.yaml"
k() { kubectl --kubeconfig "$work/admin.yaml" --cache-dir "$work/cache" "$@"; }
check "the rights of an observer" k apply -f "$repo/config/rbac-observe.yaml"
token=$(k -n kube-system create token berth-observer) # as docs/observe.md says
sed "s/t-admin/$token/" "$work/admin.yaml" >"$work/observer.yaml"
berth() { BERTH_RUNTIME_DIR=$run "$BERTH_BIN/berth" "$@"; }
ko() { kubectl --kubeconfig "$run/kubeconfig" --cache-dir "$work/cache" "$@"; }
pods() { # name count spec
    for i in $(seq "$2"); do
        printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%s, namespace: default, labels: {run: %s}}\nspec: {%s}\n' "$1" "$i" "$1" "$3"
    done | k create -f - >/dev/null
}
asks='containers: [{name: c, image: pause, env: [{name: PASSWORD, value: not-for-others}], resources: {requests: {cpu: 300m, memory: 64Mi}}}]'
for i in 1 2 3 4; do
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: n%s, labels: {kubernetes.io/hostname: n%s}}\nstatus: {allocatable: {cpu: "%s", memory: 8Gi, pods: "110"}, capacity: {cpu: "%s", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}], nodeInfo: {kubeletVersion: v1.36.2, machineID: not-for-others}}\n' $i $i $((8 + i)) $((8 + i))
done >"$work/nodes.yaml"
check "the other cluster has nodes" k apply -f "$work/nodes.yaml"

# ---- beside a scheduler that decides as Berth does
run=$work/observe
comparison() { # jq filter that has to hold
    if berth compare -o json >"$work/comparison" && jq -e "$1" "$work/comparison" >/dev/null; then return 0; fi
    cat "$work/comparison"
    return 1
}
stop_observing() {
    kill -TERM "$up_pid"
    wait "$up_pid"
    up_pid=
}
observe() { start_up --runtime-dir "$run" --kubeconfig "$work/observer.yaml" --observe "$@"; }
if observe; then ok "berth up --observe starts"; else not_ok "berth up --observe starts" "$(cat "$work/up.err")"; exit 1; fi
expect "and says that it only looks" "observes .*nothing is written there" cat "$work/up.out"
eventually "its copy is complete" 20 comparison .synced
check "pods in a burst" pods alike 40 "$asks"
eventually "each binding is compared" 30 comparison '.compared == 40'
check "all of them agree" comparison '.agreed == 40 and .differences == []'
expect "in words" '^agreement +100.00 %' berth compare
expect "explain works" 'bound to n[1-4]' berth explain pod/alike-1
expect "the scheduler says what it is here" 'looks on only' berth explain pod/alike-1

# ---- what Berth cannot follow is told with its reason
check "a pod that waits for a node" pods waits 1 "nodeSelector: {kubernetes.io/hostname: none}, $asks"
waits() { berth queue -n default -o json | jq -e '.items[0].name == "waits-1"'; }
eventually "waits here, too" 20 waits
refused_there() { berth queue -n default -o json | jq -e '.items[0] | .queue == "unschedulable" and (.message | test("^0/4 nodes are available: "))'; }
eventually "the queue has it as the other scheduler reported it" 20 refused_there
why_in_copy() { [ "$(ko get pod waits-1 -o json | jq -r '.status.conditions[] | select(.type == "PodScheduled") | "\(.message) \(.lastTransitionTime)"')" = "$(k get pod waits-1 -o json | jq -r '.status.conditions[] | select(.type == "PodScheduled") | "\(.message) \(.lastTransitionTime)"')" ]; }
eventually "the copy has the condition's message and time" 20 why_in_copy
overview_reasons() { curl -s "$(sed -n 's/.*API server *\([^ ]*\) .*/\1/p' "$work/up.out")/berth/v1/overview" | jq -e '[.pendingReasons[].reason] | length > 0'; }
eventually "the overview counts why pods wait" 20 overview_reasons
expect "nodes have their versions" '^v1.36.2$' ko get node n1 -o 'jsonpath={.status.nodeInfo.kubeletVersion}'
check "and no ids" no_line_with not-for-others ko get nodes -o yaml
bind() { # pod node
    printf '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%s"},"target":{"apiVersion":"v1","kind":"Node","name":"%s"}}' "$1" "$2" |
        k create --raw "/api/v1/namespaces/default/pods/$1/binding" -f - >/dev/null
}
check "somebody binds it against its selector" bind waits-1 n2
eventually "Berth finds no node" 20 comparison '.different.noNode == 1 and (.differences[0] | .node == "n2" and .how == "noNode" and .plugin == "NodeAffinity" and .berth == null)'
# The scheduler there is held: somebody else places a pod where its selector does not let it.
kill -STOP "$other"
check "a pod for one node" pods odd 1 "nodeSelector: {kubernetes.io/hostname: n1}, $asks"
seen() { ko get pod "$1"; }
eventually "is in the copy" 20 seen odd-1
check "somebody binds it to another one" bind odd-1 n2
eventually "which Berth rejects, and says what it would have taken" 20 comparison '.different.infeasible == 1 and (.differences[0] | .name == "odd-1" and .node == "n2" and .how == "infeasible" and .berth == "n1" and .plugin == "NodeAffinity")'
expect "in words" '1 on a node that Berth rejects' berth compare
kill -CONT "$other"
check "a pod with a selector that the scheduler leaves alone" pods gated 1 "schedulingGates: [{name: wait}], nodeSelector: {kubernetes.io/hostname: n1}, $asks"
check "a pod of another scheduler" pods foreign 1 "schedulerName: other, $asks"
check "somebody binds that" bind foreign-1 n1
eventually "which is not compared" 20 comparison '.otherSchedulers == 1 and .compared == 42'

# ---- nothing is written: not there, and not here
copy=$(sed -n 's/.*API server *\([^ ]*\) .*/\1/p' "$work/up.out")
expect "kubectl reads the copy" 'alike-40 ' ko get pods
expect "uids are the other cluster's" "$(k get pod alike-7 -o jsonpath='{.metadata.uid}')" ko get pod alike-7 -o jsonpath='{.metadata.uid}'
check "environments of containers are not in it" no_line_with 'not-for-others|PASSWORD' ko get pods -o yaml
refused() { out=$("$@" 2>&1); grep -q 'read-only copy of another cluster' <<<"$out" || { echo "$out"; return 1; }; }
check "it cannot be written: delete" refused ko delete pod alike-1
check "cordon" refused ko cordon n1
check "create" refused ko create namespace x
check "drain" refused ko drain n1 --force --disable-eviction
for p in 'PUT /api/v1/reset' 'POST /api/v1/import' 'POST /api/v1/schedulerconfiguration' 'POST /berth/v1/replay'; do
    check "nor by the page: $p" [ "$(curl -s -o /dev/null -w '%{http_code}' -X "${p% *}" "$copy${p#* }")" = 403 ]
done
expect "but it may ask: draining a node" '"pods"|"moved"|"nodes"|"fits"' curl -s -X POST -d '{"nodes":["n1"]}' "$copy/berth/v1/drain"
expect "the overview says so" '"readOnly":true,"observes":\{"server":"http' curl -s "$copy/berth/v1/overview"
check "deleting a pod there" k delete pod alike-1 --wait=true
gone() { ! ko get pod alike-1 2>/dev/null; }
eventually "takes it out of the copy" 20 gone
stop_observing

# ---- beside one that is configured otherwise
cat >"$work/most.yaml" <<'Y'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}
Y
if observe --config "$work/most.yaml"; then ok "with another configuration than the cluster's"; else not_ok "with another configuration" "$(cat "$work/up.err")"; exit 1; fi
eventually "the copy is complete again" 20 comparison .synced
check "a pod with much to choose from" pods big 1 'containers: [{name: c, image: pause, resources: {requests: {cpu: "2", memory: 1Gi}}}]'
eventually "is a difference" 30 comparison '.different.lowerScore == 1 and .agreed == 0'
check "with the scores of both nodes" comparison '.differences[0] | .name == "big-1" and .node != .berth and .total.berth > .total.actual and ([.scores[] | select(.plugin == "NodeResourcesFit")][0] | .berth > .actual)'
expect "in words" 'big-1 .*NodeResourcesFit [0-9]+ against [0-9]+' berth compare
if [ -x /usr/bin/chromium ] && /usr/bin/python3 -c 'import selenium' 2>/dev/null; then
    BERTH_URL=$(sed -n 's/.*API server *\([^ ]*\) .*/\1/p' "$work/up.out")
    export BERTH_URL BERTH_NODE=n1 BERTH_POD=big-1 BERTH_CLUSTER=berth PYTHONDONTWRITEBYTECODE=1 SCREENSHOTS=${SCREENSHOTS:-$BERTH_BIN/../screenshots}
    (cd "$here/../browser" && /usr/bin/python3 observing.py) >"$work/page" 2>&1 && ! grep -q '^not ok' "$work/page" &&
        ok "the page compares, and what writes is off with the reason" || not_ok "the page" "$(cat "$work/page")"
else
    skip "the page of a copy" "no Chromium"
fi
stop_observing

# ---- a cluster that goes away, and comes back
begin_lone() {
    "$BERTH_BIN/berth-simulator" --data "$work/lone.db" --kubeconfig-out "$work/lone.yaml" "$@" >>"$work/lone.log" 2>&1 &
    lone=$!
    also_stop="$lone $also_stop"
}
kl() { kubectl --kubeconfig "$work/lone.yaml" --cache-dir "$work/cache" "$@"; }
begin_lone
wait_for_file "$work/lone.yaml"
lone_port=$(sed -n 's/.*server:.*:\([0-9]*\).*/\1/p' "$work/lone.yaml")
kl apply -f "$work/nodes.yaml" >/dev/null
run=$work/gone
start_up --runtime-dir "$run" --kubeconfig "$work/lone.yaml" --observe && ok "observing one that will go away"
eventually "its copy is complete" 20 comparison .synced
kill -TERM "$lone"
wait "$lone"
eventually "it is lost" 30 comparison '(.lost | length) > 0 and .leftOut == []'
expect "in words" '^lost +the copy stays as it is, asked again: .' berth compare
expect "berth up says so" 'berth-simulator: .*; trying again' cat "$run/simulator.log" "$work/up.err" "$work/up.out"
expect "the copy still answers" '^n4 ' ko get nodes
begin_lone --port "$lone_port"
eventually "it is there again" 60 comparison '.lost == null and .leftOut == []'
kl label node n4 back=yes >/dev/null
labelled() { ko get node n4 --show-labels | grep -q back=yes; }
eventually "what happens there is seen again" 20 labelled
stop_observing

# ---- what was asked for there (watches are written down when they end, and these do not)
kubectl annotate --local -f "$repo/config/rbac-observe.yaml" berth/test=yes -o json >"$work/rules.json"
cat >"$work/judge.jq" <<'J'
def right: [.objectRef.apiGroup // "", .objectRef.resource, .verb];
($rules | map(select(.kind == "ClusterRole")) | [.[].rules[] | .apiGroups[0] as $g | .resources[] as $r | .verbs[] as $v | [$g, $r, $v]]) as $granted |
map(select(.user.username == "system:serviceaccount:kube-system:berth-observer")) |
{requests: length,
 writes: map(select(.verb as $v | ["get", "list", "watch"] | index([$v]) | not)) | length,
 beyond: ((map(select(.objectRef.resource) | right) | unique) - $granted),
 unused: (($granted | map(select(.[2] == "list"))) - (map(select(.objectRef.resource) | right) | unique))}
J
judge() { grep '}$' "$audit" | jq -s -c --slurpfile rules "$work/rules.json" -f "$work/judge.jq"; }
expect "only reads, only what is granted, and nothing is granted for nothing" '^\{"requests":[1-9][0-9]+,"writes":0,"beyond":\[\],"unused":\[\]\}$' judge

# ---- a kubeconfig that is wrong
sed "s/$token/t-nobody/" "$work/observer.yaml" >"$work/nobody.yaml"
says() { # flags...: berth up ends with an error
    out=$("$BERTH_BIN/berth" up --runtime-dir "$work/wrong" --front-port 0 "$@" 2>&1)
    rc=$?
    echo "exit $rc: $out"
}
cat >"$work/forbids.py" <<'P'
"""An API server that lets nobody list what its first argument names, and serves no devices; prints its port."""
import http.server
import json
import sys

KINDS = """Namespace PriorityClass StorageClass CSIDriver DeviceClass Node CSINode ResourceSlice CSIStorageCapacity
PersistentVolumeClaim PersistentVolume VolumeAttachment Service PodDisruptionBudget ResourceClaimTemplate Pod
ResourceClaim ReplicationController ReplicaSet StatefulSet""".split()


def plural(kind):
    name = kind.lower()
    return name[:-1] + "ies" if name.endswith("y") else name + ("es" if name.endswith("s") else "s")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        group, what = self.path.split("?")[0].rsplit("/", 1)
        kind = [k + "List" for k in KINDS if plural(k) == what]
        code, body = 200, {"kind": (kind or ["Info"])[0], "apiVersion": group.split("/", 2)[-1], "metadata": {"resourceVersion": "1"}, "items": []}
        if what in sys.argv[1].split(","):
            code = 403
            body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
                    "message": 'User "eve" cannot list resource "%s" at the cluster scope' % what}
        text = json.dumps(body).encode()
        if "watch=" in self.path:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.flush()
            self.connection.recv(1)  # nothing ever happens, until the client leaves
            return
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
P
forbids() { # resources name: its kubeconfig
    python3 "$work/forbids.py" "$1" >"$work/$2.port" &
    also_stop="$! $also_stop"
    wait_for_file "$work/$2.port"
    printf 'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "http://127.0.0.1:%s"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {}}]\n' \
        "$(cat "$work/$2.port")" >"$work/$2.yaml"
}
forbids pods no-pods
forbids resourceslices,csinodes no-devices
expect "without a kubeconfig" 'exit 2: .*--observe needs --kubeconfig FILE' says --observe
expect "with binders" 'exit 2: .*--binders does not go with it' says --observe --kubeconfig "$work/observer.yaml" --binders 1
expect "a file that is not there" 'exit 1: .*no-such-file' says --observe --kubeconfig "$work/no-such-file"
expect "wrong credentials" 'exit 1: .*cannot list namespaces of the cluster to observe .*Unauthorized \(401\)' says --observe --kubeconfig "$work/nobody.yaml"
expect "no right to list pods" 'exit 1: .*cannot list pods of the cluster to observe .*"eve" cannot list.*docs/observe.md' says --observe --kubeconfig "$work/no-pods.yaml"
run=$work/partly
start_up --runtime-dir "$run" --kubeconfig "$work/no-devices.yaml" --observe && ok "a right that is missing and not vital"
expect "is told" 'left out, these credentials may not list resourceslices: User "eve"' cat "$work/up.err"
check "and stays visible" comparison '[.leftOut[].resource] == ["csinodes", "resourceslices"]'
stop_observing
kill "${also_stop%% *}" # its server
wait "${also_stop%% *}" 2>/dev/null
expect "a cluster that cannot be reached" 'exit 1: .*cluster to observe at http://127.0.0.1:[0-9]+ cannot be reached' says --observe --kubeconfig "$work/no-devices.yaml"
