#!/usr/bin/env bash
# Least privilege: each process under a user of its own, as config/rbac.yaml has them, against a server that writes an
# audit log. Plain pods, preemption, volumes that wait for their pod, claims, extended resources, the lease, the HTTPS
# port with token and access reviews; then every request has to be allowed to exactly its process, every right has to be
# used (lib/rbac_check.py lists the others and why they are there), and kube-scheduler's own identity has to cover all.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq kubectl python3; do
    command -v $t >/dev/null || { skip "least privilege" "no $t"; exit 0; }
done
repo=$(cd "$here/../.." && pwd)
audit=$work/audit.log run=$work/run
mkdir "$run"
cat >"$work/tokens" <<T
t-admin,admin,1,"system:masters"
t-watcher,berth:watcher,2
t-binder,berth:binder,3
t-front,berth:front,4
t-viewer,prometheus,5,"system:monitoring"
T
"$BERTH_BIN/berth-simulator" --tls --kubeconfig-out "$work/admin.yaml" --token-file "$work/tokens" --audit-log-path "$audit" \
    >"$work/simulator.log" 2>&1 &
also_stop=$!
wait_for_file "$work/admin.yaml" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
kubectl --kubeconfig "$work/admin.yaml" --cache-dir "$work/cache" apply -f "$repo/config/rbac.yaml" >/dev/null
for u in watcher binder front; do sed "s/t-admin/t-$u/" "$work/admin.yaml" >"$work/$u.yaml"; done
start() { # log program flags...
    local log=$1 what=$2
    shift 2
    "$BERTH_BIN/berth-$what" --runtime-dir "$run" "$@" >"$work/$log.log" 2>&1 &
    also_stop="$! $also_stop"
}
port=$((18000 + $$ % 6000)) # below the ports that the kernel hands out
start watcher watcher --kubeconfig "$work/watcher.yaml" --metrics-address 127.0.0.1:0
start scheduler scheduler --metrics-address 127.0.0.1:0
for i in 1 2; do start "binder-$i" binder --kubeconfig "$work/binder.yaml" --instance $i --metrics-address 127.0.0.1:0; done
start front front --secure-port $port --authentication-kubeconfig "$work/front.yaml" --authorization-kubeconfig "$work/front.yaml"
export KUBECONFIG=$work/admin.yaml
k() { kubectl --cache-dir "$work/cache" "$@"; }
count() { [ "$(k get pods -l "run=$1" -o json | jq '[.items[] | select(.spec.nodeName)] | length')" = "$2" ] || { k get pods; return 1; }; }

# ---- a cluster in which everything happens
node() { # name cpu
    cat <<Y
---
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {only: $1, kubernetes.io/hostname: $1}}
status:
  allocatable: {cpu: "$2", memory: 8Gi, pods: "50"}
  capacity: {cpu: "$2", memory: 8Gi, pods: "50"}
  conditions: [{type: Ready, status: "True"}]
Y
}
pod() { # name run cpu class [further lines of spec]
    cat <<Y
---
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: default, labels: {run: $2}}
spec:
  priorityClassName: $4
  containers: [{name: c, image: pause, resources: {requests: {cpu: "$3"}${5:-}}}]
Y
    [ $# -lt 6 ] || printf '  %s\n' "${@:6}"
}
for c in high:1000 low:-10; do
    printf -- '---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %s\n' "${c%:*}" "${c#*:}"
done >"$work/objects.yaml"
{
    node big 8
    node small 2
    cat <<Y
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: made}
provisioner: berth.example.com/made
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  persistentVolumeReclaimPolicy: Retain
  local: {path: /disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [big]}]}]}}
Y
    for c in local made; do
        cat <<Y
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $c, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: $c, resources: {requests: {storage: 1Gi}}}
Y
    done
    for c in gpu nic; do
        cat <<Y
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: $c}
spec: {selectors: [{cel: {expression: 'device.driver == "$c.example.com"'}}]$([ $c = gpu ] || echo ', extendedResourceName: example.com/nic')}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: $c}
spec: {driver: $c.example.com, nodeName: big, pool: {name: big, generation: 1, resourceSliceCount: 1}, devices: [{name: d0}]}
Y
    done
    cat <<Y
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
Y
    pod plain work 100m low
    pod nowhere lost 100m low '' 'nodeSelector: {only: nowhere}'
    for i in 1 2; do pod victim-$i victim 1 low '' 'nodeSelector: {only: small}'; done
    pod on-disk work 100m low '' 'volumes: [{name: v, persistentVolumeClaim: {claimName: local}}]'
    pod on-made work 100m low '' 'volumes: [{name: v, persistentVolumeClaim: {claimName: made}}]'
    pod with-gpu work 100m low '' 'resourceClaims: [{name: d, resourceClaimName: gpu}]'
    pod with-nic work 100m low ', limits: {example.com/nic: 1}'
} >>"$work/objects.yaml"
sed -i 's/{requests: {cpu: "100m"}, limits: {example.com\/nic: 1}}/{requests: {cpu: "100m", example.com\/nic: 1}, limits: {example.com\/nic: 1}}/' "$work/objects.yaml"
check "nodes, volumes, devices, pods" k apply -f "$work/objects.yaml"
eventually "pods are bound" 15 count work 5
eventually "the small node is full" 20 count victim 2
pod preemptor first 2 high '' 'nodeSelector: {only: small}' >"$work/preemptor.yaml"
check "a pod that needs their room" k apply -f "$work/preemptor.yaml"
eventually "it gets it" 20 count first 1
check "pods with devices go" k delete pod with-gpu with-nic --wait=false
free() {
    local allocated
    allocated=$(k get resourceclaims -o jsonpath='{.items[*].status.allocation}') && [ -z "$allocated" ] ||
        { k get resourceclaims -o yaml; return 1; }
}
eventually "devices are free again" 20 free

front() { [ "$(curl -sk -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $1" "https://127.0.0.1:$port$2")" = "$3" ]; }
eventually "the HTTPS port asks who somebody is and what he may" 20 front t-viewer /metrics 200
check "and takes no for an answer" front t-viewer /configz 403

renewed() { grep -F '"resource":"leases"' "$audit" | grep -qF '"verb":"update"'; }
eventually "the lease is renewed" 20 renewed

# ---- what was asked for, and what is granted
kubectl annotate --local -f "$repo/config/rbac.yaml" berth/test=yes -o json >"$work/rules.json"
judge() { python3 "$here/lib/rbac_check.py" "$work/rules.json" "$audit"; }
expect "every request is its process's right, every right is used or has a reason" '^berth:binder: [0-9]+ requests, berth:front: [0-9]+ requests, berth:watcher: [0-9]+ requests$' judge
if [ -n "${SHOW:-}" ]; then judge; fi
# the checker can say no
one_less() { # jq filter on each object, what has to be said
    jq "$1" "$work/rules.json" >"$work/less.json"
    python3 "$here/lib/rbac_check.py" "$work/less.json" "$audit" >"$work/said"
    [ $? -eq 1 ] && grep -qF "$2" "$work/said" || { cat "$work/said"; return 1; }
}
check "a right that is missing is found" one_less '(.rules[]? | select(.resources == ["pods/binding"]) | .verbs) = ["patch"]' "berth:binder may not: ['default', '', 'pods/binding', 'create'"
check "one too many is found" one_less '(.rules[]? | select(.resources == ["pods/status"]) | .resources) += ["secrets"]' "has not used (None, '', 'secrets', 'patch')"
check "and what kube-scheduler has not" one_less '(.rules[]? | select(.resources == ["pods/status"]) | .resources) += ["secrets"]' "has what system:kube-scheduler has not: (None, '', 'secrets', 'patch')"
check "a role of another process does not help" one_less '(select(.metadata.name == "berth:binder" and .subjects) | .subjects[]) |= (.name |= sub("binder"; "other"))' "berth:binder may not:"
# a process that tries what another one does: its own requests under the other's name
as_another() { # whose, who tries, resource, verb, what has to be said
    grep -F "\"username\":\"berth:$1\"" "$audit" | sed "s/\"username\":\"berth:$1\"/\"username\":\"berth:$2\"/" >"$work/other.log"
    python3 "$here/lib/rbac_check.py" "$work/rules.json" "$work/other.log" >"$work/said"
    [ $? -eq 1 ] && grep -qE "^berth:$2 may not: \['[^']*', '[^']*', '$3', '$4'" "$work/said" || { cat "$work/said"; return 1; }
}
for t in binder:front:pods/binding:create binder:front:pods:delete binder:front:pods/status:patch binder:watcher:pods/binding:create binder:watcher:pods:delete \
    watcher:front:leases:update watcher:binder:leases:update watcher:front:pods:list watcher:binder:nodes:watch front:binder:tokenreviews:create; do
    IFS=: read -r whose who what verb <<<"$t"
    check "berth-$who may not $verb $what" as_another "$whose" "$who" "$what" "$verb"
done
