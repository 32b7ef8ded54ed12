#!/usr/bin/env bash
# Plugins that read objects: Maintenance with its custom resource, in a running cluster: the definition comes late, windows come,
# change and go; and what happens when the watcher may not list them.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
build=$(dirname "$BERTH_BIN")
root=$(cd "$here/../.." && pwd)
export BERTH_PLUGIN_CONFIG=$work/plugins.d

config() { # reads profiles
    printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n%s\n' "$1"
}
config '- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Maintenance}]}}
  pluginConfig: [{name: Maintenance, args: {leadSeconds: 60}}]
- schedulerName: plain' >"$work/config.yaml"
sed 's/leadSeconds: 60/leadSeconds: soon/' "$work/config.yaml" >"$work/bad.yaml"
any() { "$@" || true; }
expect "arguments are looked at" 'args.leadSeconds: 0 to 604800 is needed' \
    any env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" config check "$work/bad.yaml"

expect "what it reads is said" '^reads +maintenancewindows.v1alpha1.berth.dev$' "$BERTH_BIN/berth" plugin check "$build/plugins/maintenance.so"

server() { sed -n 's/^ *server: *//p' "$KUBECONFIG" | tr -d '"'; }
api() { # METHOD PATH [TYPE]; a body from stdin
    local type=${3:-application/json}
    curl -sS --noproxy '*' -o "$work/reply" -w '%{http_code}' -X "$1" "$(server)$2" ${3:+-H "Content-Type: $type" --data-binary @-} |
        grep -q '^2' || { cat "$work/reply"; return 1; }
}
get() { curl -sS --noproxy '*' "$(server)$1"; }
WINDOWS=/apis/berth.dev/v1alpha1/maintenancewindows
PODS=/api/v1/namespaces/default/pods
node() { printf '{"apiVersion":"v1","kind":"Node","metadata":{"name":"%s","labels":{"rack":"%s"}},"status":{"allocatable":{"cpu":"8","memory":"16Gi","pods":"110"}}}' "$@" | api POST /api/v1/nodes application/json; }
pod() { printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"},"spec":{"schedulerName":"%s","containers":[{"name":"c","image":"i"}]}}' "$1" "${2:-default-scheduler}" | api POST $PODS application/json; }
at() { date -u -d "$1" +%Y-%m-%dT%H:%M:%SZ; }
window() { # name from until selector note
    printf '{"apiVersion":"berth.dev/v1alpha1","kind":"MaintenanceWindow","metadata":{"name":"%s"},"spec":{"from":"%s","until":"%s","nodeSelector":%s,"note":"%s"}}' \
        "$1" "$(at "$2")" "$(at "$3")" "$4" "$5" | api POST $WINDOWS application/json
}
on() { [ "$(get $PODS/"$1" | jq -r .spec.nodeName)" = "$2" ]; }
bound() { [ "$(get $PODS/"$1" | jq -r .spec.nodeName)" != null ]; }
message() { get $PODS/"$1" | jq -r '.status.conditions[]? | select(.type == "PodScheduled").message'; }
says() { message "$1" | grep -F "$2"; }
metric() { curl -fsS --noproxy '*' "http://127.0.0.1:$(metrics_port "$1")/metrics"; }
has_metric() { metric "$1" | grep -qxF "$2"; }

# ---- berth simulate reads such objects from its files, if a profile's plugin asks for them
cat >"$work/window.yaml" <<'Y'
apiVersion: v1
kind: Node
metadata: {name: a, labels: {rack: r1}}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}
---
apiVersion: berth.dev/v1alpha1
kind: MaintenanceWindow
metadata: {name: rack1}
spec: {from: "2026-01-01T00:00:00Z", until: "2200-01-01T00:00:00Z", nodeSelector: {matchLabels: {rack: r1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}]}
Y
simulated() { "$BERTH_BIN/berth" simulate --verify --plugin-dir "$build/plugins" -f "$work/window.yaml" "$@" 2>&1; }
expect "berth simulate reads them" '0/1 nodes are available: 1 node\(s\) were in the maintenance window "rack1"' \
    any simulated --config "$work/config.yaml"
expect "without the plugin they are left out" 'kind MaintenanceWindow in berth.dev/v1alpha1 is not known, left out' simulated

# ---- so do scenarios, which may change and delete them
scenario() { # config of the scheduler
    cat <<Y
apiVersion: sim.berth.dev/v1alpha1
kind: Scenario
begin: "2026-01-01T00:00:00Z"
until: 60m
schedulers: [{name: it, config: $1}]
setup:
- create: {apiVersion: berth.dev/v1alpha1, kind: MaintenanceWindow, metadata: {name: disks}, spec: {from: "2026-01-01T00:10:00Z", until: "2026-01-01T00:50:00Z", nodeSelector: {}}}
timeline:
- {at: 1m, delete: {apiVersion: berth.dev/v1alpha1, kind: MaintenanceWindow, name: rack1}}
- {at: 2m, generate: {kind: Pod, name: early}}
- {at: 20m, generate: {kind: Pod, name: late}}
- {at: 22m, patch: {apiVersion: berth.dev/v1alpha1, kind: MaintenanceWindow, name: disks, merge: {spec: {from: "2026-01-01T00:30:00Z"}}}}
- {at: 48m, generate: {kind: Pod, name: last}}
expect:
- {at: 30s, pods: "", pending: 1}
- {at: 19m, pods: "", count: 2, scheduled: 2}
- {at: 21m, pods: "", count: 3, pending: 1}
- {at: 23m, pods: "", scheduled: 3}
- {at: 49m, pods: "", pending: 1}
- {at: 50m1s, pods: "", scheduled: 4}
Y
    printf -- '---\n'
    cat "$work/window.yaml"
}
scenario config.yaml >"$work/scenario.yaml"
s() { env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" scenario "$@"; }
check "a scenario has such objects in its steps, and a window's end is what pods wait for" s run --verify "$work/scenario.yaml"
{ cat "$root/config/plugins/maintenance-crd.yaml"; echo ---; cat "$work/scenario.yaml"; } >"$work/defined.yaml"
mkdir "$work/plugins.d"
printf 'name: Maintenance\nfile: maintenance.so\nmode: process\n' >"$work/plugins.d/maintenance.yaml"
s run "$work/scenario.yaml" --out "$work/there.json" >"$work/there"
expect "and a process of the plugin's own says the same time" '^passed +it at 3001.000 s: .*4 of 4 scheduled' cat "$work/there"
rm -r "$work/plugins.d"
check "with a definition as well" s run "$work/defined.yaml"
sed -i 's/spec: {from: "2026-01-01T00:10:00Z",/spec: {/' "$work/defined.yaml"
expect "which is held to" 'MaintenanceWindow disks: .*spec.from: Required value' any s run "$work/defined.yaml"
sed 's/schedulers:.*/schedulers: []/' "$work/scenario.yaml" >"$work/nobody.yaml"
expect "what nobody reads is refused" 'nobody.yaml: document 3, line [0-9]+: kind: MaintenanceWindow of berth.dev/v1alpha1 is not served by the simulator, and no plugin of the schedulers reads it' \
    any s check "$work/nobody.yaml"
printf 'apiVersion: sim.berth.dev/v1alpha1\nkind: Scenario\ntimeline: [{files: window.yaml}]\n' >"$work/files.yaml"
expect "from a file, too" 'files \(line 3\): MaintenanceWindow of berth.dev/v1alpha1 is not served by the simulator, and no plugin reads it' any s run "$work/files.yaml"

# ---- the definition comes late: without it there are no windows
start_up --binders 1 --no-example --config "$work/config.yaml" --plugin-dir "$build/plugins" || exit 1
expect "the plugin reads a kind" '^Maintenance +1.0.0 +Active +0 +yes +preFilter,filter +' "$BERTH_BIN/berth" plugins --runtime-dir "$run"
for n in a b; do check "node $n" node $n r1; done
check "node c" node c r2
pod early
eventually "without the definition a pod gets a node" 20 bound early
expect "the watcher says that there is no such kind" 'kind="maintenancewindows.berth.dev".*does not have this kind' cat "$run/watcher.log"
check "the definition" api POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions application/yaml <"$root/config/plugins/maintenance-crd.yaml"
there() { window rack1 '10 minutes ago' '1 hour' '{"matchLabels":{"rack":"r1"}}' 'new switches'; }
eventually "a window" 10 there
listed() { has_metric watcher 'berth_watcher_objects{kind="maintenancewindows.berth.dev"} 1'; }
eventually "is seen within seconds" 20 listed
check "and the kind is healthy" has_metric watcher 'berth_watcher_troubled{kind="maintenancewindows.berth.dev"} 0'

# ---- a window keeps pods away
for i in 1 2 3; do pod "p$i"; done
for i in 1 2 3; do eventually "a pod goes elsewhere: p$i" 20 on "p$i" c; done
check "one more window, which begins within leadSeconds" window soon '30 seconds' '1 hour' \
    '{"matchExpressions":[{"key":"rack","operator":"NotIn","values":["r1"]}]}' 'disks'
check "one that is far away" window later '2 hours' '3 hours' '{}' 'everything'
check "one that is over" window past '2 hours ago' '1 hour ago' '{}' 'everything'
listed4() { has_metric watcher 'berth_watcher_objects{kind="maintenancewindows.berth.dev"} 4'; }
eventually "all are seen" 20 listed4
pod stuck
eventually "no node is left, and the pod says why" 20 says stuck '0/3 nodes are available: 1 node(s) were in the maintenance window "soon": disks, 2 node(s) were in the maintenance window "rack1": new switches.'
expect "berth explain says so, too" 'UnschedulableAndUnresolvable +node\(s\) were in the maintenance window "rack1": new switches +a, b$' \
    env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" explain --runtime-dir "$run" pod/stuck
expect "which needs the plugin, and says how it is found" 'found by \$BERTH_PLUGIN_DIR\): .*"Maintenance" does not exist' \
    any env -u BERTH_PLUGIN_DIR "$BERTH_BIN/berth" explain --runtime-dir "$run" pod/stuck
{
    printf 'apiVersion: sim.berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: now}\nspec:\n  start: cluster\n  begin: "%s"\n  until: 10s\n' "$(at now)"
    printf '  timeline: [{at: 1s, generate: {kind: Pod, name: fresh, labels: {app: fresh}}}]\n  expect: [{at: 5s, pods: app=fresh, reason: in the maintenance window}]\n  schedulers:\n  - name: it\n    config:\n'
    sed 's/^/      /' "$work/config.yaml"
} >"$work/now.yaml"
check "a scenario that starts from the cluster" api POST /apis/sim.berth.dev/v1alpha1/scenarios application/yaml <"$work/now.yaml"
passes() { get /apis/sim.berth.dev/v1alpha1/scenarios/now | jq -e '.status.passed'; }
eventually "has its windows" 20 passes

# ---- so have questions and exports
ask() { curl -sS --noproxy '*' -X POST -H 'Content-Type: application/json' --data-binary "$2" "$(server)$1" | jq -e "$3"; }
fresh='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"fresh"},"spec":{"containers":[{"name":"c","image":"i"}]}}'
about() { ask /berth/v1/whatif '{"pod":{"manifest":'"$fresh"'},"changes":['"$1"']}' "$2"; }
check "what-if has them" about '' '.after.result == "Unschedulable" and (.after.message | contains("maintenance window \"soon\""))'
check "may delete one" about '{"delete":{"kind":"MaintenanceWindow","name":"soon"}}' \
    '.after.nodeName == "c" and .changes == [{"kind":"MaintenanceWindow","name":"soon","action":"deleted"}]'
check "change one" about '{"manifest":{"apiVersion":"berth.dev/v1alpha1","kind":"MaintenanceWindow","metadata":{"name":"soon"},"spec":{"from":"2200-01-01T00:00:00Z","until":"2200-01-02T00:00:00Z","nodeSelector":{}}}}' \
    '.after.nodeName == "c" and .changes[0].action == "replaced"'
check "and name one that there is not" about '{"delete":{"kind":"MaintenanceWindow","name":"gone"}}' '.field == "changes[0].delete" and .message == "there is no MaintenanceWindow gone"'
check "capacity has them" ask /berth/v1/capacity '{"pods":['"$fresh"']}' '.replicas == 0 and (.failReason.message | contains("maintenance window"))'
get '/api/v1/export?kinds=all' >"$work/export.json"
check "an export has them, with their definition" jq -e '[.others[].kind | select(. == "MaintenanceWindow" or . == "CustomResourceDefinition")] | length == 5' "$work/export.json"
pod other plain
eventually "profiles without the plugin do not care" 20 bound other

# ---- a change of an object wakes the pod
check "the window is made shorter" api PATCH $WINDOWS/soon application/merge-patch+json <<<"{\"spec\":{\"from\":\"$(at '5 minutes')\"}}"
eventually "the pod is tried again, and gets a node" 20 on stuck c
pod again
eventually "answers are not those from before" 20 on again c
check "it is moved back" api PATCH $WINDOWS/soon application/merge-patch+json <<<"{\"spec\":{\"from\":\"$(at '1 minute ago')\"}}"
sees_it() { # the watcher has told, so that the next pod meets it
    local p=probe$RANDOM
    pod "$p"
    for _ in $(seq 50); do
        if bound "$p"; then return 1; fi
        if says "$p" '"soon"' >/dev/null; then return 0; fi
        sleep 0.1
    done
    return 1
}
eventually "and is there again" 20 sees_it
pod last
eventually "a pod waits" 20 says last '"soon"'
check "the window is deleted" api DELETE $WINDOWS/soon
eventually "the pod gets a node" 20 on last c
pod unread
eventually "and so do others" 20 on unread c

# ---- all of them go with the definition
check "the definition is deleted" api DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/maintenancewindows.berth.dev
none() { has_metric watcher 'berth_watcher_objects{kind="maintenancewindows.berth.dev"} 0'; }
eventually "nothing is left of them" 30 none
jq '{pods: [], others: [.others[] | select(.kind == "MaintenanceWindow" or .kind == "CustomResourceDefinition")]}' "$work/export.json" >"$work/import.json"
import() { ask '/api/v1/import?mode=merge' "@$work/import.json" "$1"; }
check "an import brings them back, with their definition" import '.created == 5 and .errors == []'
eventually "the watcher has them" 30 listed4
check "once more changes nothing" import '.created == 0 and .skipped == 1 and .errors == []'
kill -TERM "$up_pid"
wait "$up_pid"

# ---- annotations of nodes: kept for this plugin, and a change of one wakes the pod
config '- plugins: {filter: {enabled: [{name: Strange}]}}' >"$work/strange.yaml"
noted() { printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, annotations: {strange/ok: "%s"}}\nstatus: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}\n' "$@"; }
{ noted a no; noted b yes; printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n'; } >"$work/noted.yaml"
export BERTH_STRANGE=note
expect "in berth simulate" 'default +p +Scheduled +b$' "$BERTH_BIN/berth" simulate --verify --plugin-dir "$build/tests/plugins" --config "$work/strange.yaml" -f "$work/noted.yaml"
start_up --binders 1 --no-example --config "$work/strange.yaml" --plugin-dir "$build/tests/plugins" || exit 1
for n in a b; do check "node $n" node $n r1; done
pod noted
eventually "no node is annotated" 20 says noted '0/2 nodes are available: 2 not annotated.'
check "one is annotated" api PATCH /api/v1/nodes/b application/merge-patch+json <<<'{"metadata":{"annotations":{"strange/ok":"yes"}}}'
eventually "the pod goes there" 20 on noted b
pod noted2
eventually "and so does the next" 20 on noted2 b
check "it is taken away" api PATCH /api/v1/nodes/b application/merge-patch+json <<<'{"metadata":{"annotations":{"strange/ok":null}}}'
not_any_more() {
    local p=probe$RANDOM
    pod "$p"
    for _ in $(seq 50); do
        if bound "$p"; then return 1; fi
        if says "$p" 'not annotated' >/dev/null; then return 0; fi
        sleep 0.1
    done
    return 1
}
eventually "and pods stay away" 20 not_any_more
kill -TERM "$up_pid"
wait "$up_pid"
unset BERTH_STRANGE

# ---- a watcher that may not: nothing is decided by profiles that need it
command -v kubectl >/dev/null || { skip "rights" "no kubectl"; exit 0; }
run=$work/run
mkdir "$run"
printf '%s\n' 't-admin,admin,1,"system:masters"' t-watcher,berth:watcher,2 >"$work/tokens"
"$BERTH_BIN/berth-simulator" --tls --kubeconfig-out "$work/admin.yaml" --token-file "$work/tokens" --no-controllers >"$work/simulator.log" 2>&1 &
also_stop=$!
check "a server with roles" wait_for_file "$work/admin.yaml"
export KUBECONFIG=$work/admin.yaml
k() { kubectl --cache-dir "$work/cache" "$@"; }
check "the definition and roles" k apply -f "$root/config/plugins/maintenance-crd.yaml" -f "$root/config/rbac.yaml"
sed 's/t-admin/t-watcher/' "$work/admin.yaml" >"$work/watcher.yaml"
start() { # program flags...
    local what=$1
    shift
    "$BERTH_BIN/berth-$what" --runtime-dir "$run" --metrics-address 127.0.0.1:0 "$@" >"$run/$what.log" 2>&1 &
    also_stop="$! $also_stop"
}
start watcher --kubeconfig "$work/watcher.yaml"
start scheduler --config "$work/config.yaml" --plugin-dir "$build/plugins"
start binder --kubeconfig "$work/admin.yaml" --instance 1
k create -f - >/dev/null <<Y
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "8", memory: 16Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}
Y
kpod() { k run "$1" --image i --overrides '{"spec":{"schedulerName":"'"${2:-default-scheduler}"'"}}' >/dev/null; }
kbound() { [ "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" = a ]; }
ksays() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$2"; }
kpod blind
kpod free plain
eventually "other profiles decide" 30 kbound free
eventually "the pod says what is missing" 30 ksays blind \
    'plugin "Maintenance" reads what is not known: the watcher may not list maintenancewindows.berth.dev'
ready() { curl -s --noproxy '*' "http://127.0.0.1:$(metrics_port watcher)/readyz"; }
expect "so does readiness" '^\[-\]plugin-kinds failed: the watcher may not list maintenancewindows.berth.dev$' ready
check "a metric" has_metric watcher 'berth_watcher_troubled{kind="maintenancewindows.berth.dev"} 1'
expect "and the log, in the server's words" 'cannot list resource \\?"maintenancewindows\\?"' cat "$run/watcher.log"
check "the pod is not bound" status 1 kbound blind
check "half of the rights" k apply -f <(sed 's/list, watch/list/' "$root/config/plugins/maintenance-rbac.yaml")
cannot_watch() { ready | grep -xF '[-]plugin-kinds failed: the watcher may not watch maintenancewindows.berth.dev'; }
eventually "are not enough" 60 cannot_watch
check "all of them" k apply -f "$root/config/plugins/maintenance-rbac.yaml"
eventually "and the pod gets its node" 60 kbound blind
is_ready() { [ "$(ready)" = ok ]; }
eventually "and the watcher is ready" 20 is_ready
