#!/usr/bin/env bash
# SySched in a running cluster: pods go where others make the same system calls, by the profiles as they are now.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
build=$(dirname "$BERTH_BIN")
root=$(cd "$here/../.." && pwd)

for n in a b; do
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: "8", memory: 8Gi, pods: "110"}, capacity: {cpu: "8", memory: 8Gi, pods: "110"}}\n' "$n"
done >"$work/nodes.yaml"

# ---- in a cluster
command -v kubectl >/dev/null || { skip "system calls" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
profile() { # name calls
    printf -- '---\napiVersion: security-profiles-operator.x-k8s.io/v1beta1\nkind: SeccompProfile\nmetadata: {name: %s, namespace: default}\nspec: {defaultAction: SCMP_ACT_ERRNO, syscalls: [{action: SCMP_ACT_ALLOW, names: [%s]}]}\n' "$1" "$2"
}
pod() { # name profile [node]
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {%s securityContext: {seccompProfile: {type: Localhost, localhostProfile: operator/default/%s.json}}, containers: [{name: c, image: pause}]}\n' \
        "$1" "${3:+nodeSelector: {kubernetes.io/hostname: $3\},}" "$2" | k apply -f -
}
on() { [ "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" = "$2" ]; }

start_up --binders 1 --no-example --config "$root/config/plugins/sysched.yaml" --plugin-dir "$build/plugins" || exit 1
check "definition and rights" k apply -f "$root/config/plugins/sysched-crd.yaml"
served() { k get seccompprofiles; }
eventually "the kind is served" 20 served
{ profile web 'read, write, accept, listen'; profile batch 'read, write, fork, execve'; } >"$work/profiles.yaml"
sed 's/metadata: {name: \([ab]\)}/metadata: {name: \1, labels: {kubernetes.io\/hostname: \1}}/' "$work/nodes.yaml" >"$work/named.yaml"
check "two profiles and two nodes" k apply -f "$work/profiles.yaml" -f "$work/named.yaml"
seen() { curl -fsS --noproxy '*' "http://127.0.0.1:$(metrics_port watcher)/metrics" | grep -qxF 'berth_watcher_objects{kind="seccompprofiles.security-profiles-operator.x-k8s.io"} 2'; }
eventually "the watcher has the profiles" 20 seen
check "a pod of one on a node" pod web web a
eventually "is there" 20 on web a
check "one of the other on the other" pod batch batch b
eventually "is there, too" 20 on batch b
for i in 1 2 3; do
    check "web $i" pod "web$i" web
    eventually "goes where its like is" 20 on "web$i" a
    check "batch $i" pod "batch$i" batch
    eventually "and so does that" 20 on "batch$i" b
done
