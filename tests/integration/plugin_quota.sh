#!/usr/bin/env bash
# CapacityScheduling in a running cluster: a namespace borrows what another does not use, and gives it back when that one's pods come.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "quota" "no kubectl"; exit 0; }
build=$(dirname "$BERTH_BIN")
root=$(cd "$here/../.." && pwd)
k() { kubectl --cache-dir "$work/cache" "$@"; }
node() {
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}, capacity: {cpu: "4", memory: 16Gi, pods: "110"}, conditions: [{type: Ready, status: "True"}]}\n' "$1"
}
quota() { # namespace min max
    printf -- '---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {name: q, namespace: %s}\nspec: {min: {cpu: "%s"}, max: {cpu: "%s"}}\n' "$1" "$1" "$2" "$3"
}
pod() { # namespace name priority
    printf -- 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec: {priorityClassName: %s, terminationGracePeriodSeconds: 0, containers: [{name: c, image: pause, resources: {requests: {cpu: "2"}}}]}\n' "$2" "$1" "$3" | k apply -f -
}
classes() {
    printf -- 'apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: 0\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n'
}
bound() { [ -n "$(k -n "$1" get pod "$2" -o 'jsonpath={.spec.nodeName}')" ]; }
says() { k -n "$1" get pod "$2" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$3"; }
uses() { [ "$(k -n "$1" get elasticquota q -o 'jsonpath={.status.used.cpu}')" = "$2" ]; }

start_up --binders 1 --no-example --config "$root/config/plugins/capacityscheduling.yaml" --plugin-dir "$build/plugins" || exit 1
check "definition and rights" k apply -f "$root/config/plugins/capacityscheduling-crd.yaml"
served() { k get elasticquotas -A; }
eventually "the kind is served" 20 served
classes >"$work/classes.yaml"
check "classes" k apply -f "$work/classes.yaml"
{ node a; node b; quota lender 4 6; quota borrower 4 6; } >"$work/cluster.yaml"
check "two nodes of four cores, two namespaces with four each" k apply -f "$work/cluster.yaml"
seen() { curl -fsS --noproxy '*' "http://127.0.0.1:$(metrics_port watcher)/metrics" | grep -qxF 'berth_watcher_objects{kind="elasticquotas.scheduling.x-k8s.io"} 2'; }
eventually "the watcher has their quotas" 20 seen
for i in 1 2 3; do check "pod $i of the borrower" pod borrower "b$i" high; done
for i in 1 2 3; do eventually "has a node" 20 bound borrower "b$i"; done
eventually "its quota says so" 20 uses borrower 6
eventually "and the other one that nothing is used" 20 uses lender 0
version() { k -n "$1" get elasticquota q -o 'jsonpath={.metadata.resourceVersion}'; }
was=$(version lender)
check "one more" pod borrower b4 high
eventually "is more than its maximum" 20 says borrower b4 'Pod borrower/b4 is rejected in PreFilter because ElasticQuota borrower is more than Max'
check "one that is not right" k -n borrower patch elasticquota q --subresource status --type merge -p '{"status":{"used":{"cpu":"1","example.com/gone":"3"}}}'
eventually "is put right" 20 uses borrower 6
check "as a whole" bash -c '[ "$(kubectl --cache-dir "$1" -n borrower get elasticquota q -o "jsonpath={.status.used}")" = "{\"cpu\":\"6\"}" ]' - "$work/cache"
check "one that is right is not written again" test "$was" = "$(version lender)"
check "the lender's first pod" pod lender l1 low
eventually "goes where there is room" 20 bound lender l1
check "its second" pod lender l2 low
eventually "takes back what is its own, from pods of a higher priority" 30 bound lender l2
evicted() { [ "$(k -n borrower get pods --no-headers --field-selector spec.nodeName!= | wc -l)" -eq 2 ]; }
check "of those one is gone" evicted
eventually "the lender uses what it may" 20 uses lender 4
check "its third" pod lender l3 low
eventually "finds nobody who owes it anything" 20 says lender l3 'is rejected in PreFilter because total ElasticQuota used is more than min'
expect "berth explain says so" 'CapacityScheduling' env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" explain --runtime-dir "$run" -n lender pod/l3
