#!/usr/bin/env bash
# PreemptionToleration in a running cluster: a pod whose priority class tolerates preemption stays, until somebody comes who is as important as
# the class says.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
build=$(dirname "$BERTH_BIN")
root=$(cd "$here/../.." && pwd)

printf 'apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: "1", pods: "10"}}\n' >"$work/a.yaml"

# ---- in a scenario
cat >"$work/scenario.yaml" <<EOT
apiVersion: sim.berth.dev/v1alpha1
kind: Scenario
metadata: {name: toleration}
spec:
  setup:
  - generate: {kind: Node, count: 1, resources: {cpu: 1, memory: 4Gi}}
  - create:
    - apiVersion: scheduling.k8s.io/v1
      kind: PriorityClass
      metadata: {name: batch, annotations: {preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority: "10000", preemption-toleration.scheduling.x-k8s.io/toleration-seconds: "60"}}
      value: 100
    - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 9999}
    - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: higher}, value: 10000}
  schedulers:
  - name: tolerant
    config:
$(sed -n '/^apiVersion/,$p' "$root/config/plugins/preemptiontoleration.yaml" | sed 's/^/      /')
  timeline:
  - {at: 1s, create: [{apiVersion: v1, kind: Pod, metadata: {name: low, labels: {app: low}}, spec: {priorityClassName: batch, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}]}
  - {at: 2s, create: [{apiVersion: v1, kind: Pod, metadata: {name: high, labels: {app: high}}, spec: {priorityClassName: high, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}]}
  - {at: 15s, create: [{apiVersion: v1, kind: Pod, metadata: {name: higher, labels: {app: higher}}, spec: {priorityClassName: higher, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}]}
  until: 30s
  expect:
  - {pods: app=low, scheduled: 100%, at: 10s}
  - {pods: app=high, scheduled: 0%}
  - {pods: app=higher, scheduled: 100%}
EOT
scenario() { BERTH_PLUGIN_DIR="$(realpath "$build")/plugins" "$BERTH_BIN/berth" scenario run "$work/scenario.yaml"; }
check "a class that tolerates preemption in a scenario, and one that is important enough" scenario

# ---- in a cluster
command -v kubectl >/dev/null || { skip "toleration" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
class() { # name value annotations
    printf -- '---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s, annotations: {%s}}\nvalue: %s\n' "$1" "${3-}" "$2"
}
pod() { # name class
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {priorityClassName: %s, terminationGracePeriodSeconds: 0, containers: [{name: c, image: pause, resources: {requests: {cpu: "1"}}}]}\n' "$1" "$2" |
        k apply -f -
}
on() { [ "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" = "$2" ]; }
says() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$2"; }
gone() { ! k get pod "$1" >/dev/null 2>&1; }

start_up --binders 1 --no-example --config "$root/config/plugins/preemptiontoleration.yaml" --plugin-dir "$build/plugins" || exit 1
prefix=preemption-toleration.scheduling.x-k8s.io
{
    cat "$root/config/plugins/preemptiontoleration-rbac.yaml"
    class batch 100 "$prefix/minimum-preemptable-priority: \"10000\", $prefix/toleration-seconds: \"3600\""
    class high 9999
    class higher 10000
} >"$work/classes.yaml"
check "classes" k apply -f "$work/classes.yaml" -f "$work/a.yaml"
check "a pod of the class that tolerates preemption" pod batch batch
eventually "has the node" 20 on batch a
check "a pod that is more important, not enough" pod high high
eventually "evicts nobody" 20 says high '0/1 nodes are available: 1 No preemption victims found for incoming pod.'
check "one that is" pod higher higher
eventually "evicts it" 20 gone batch
eventually "and has the node" 20 on higher a
