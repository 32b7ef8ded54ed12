#!/usr/bin/env bash
# Volumes and devices through the whole pipeline: local volumes, provisioning, ephemeral volumes, claim templates
# of StatefulSets, ResourceClaims, extended resources; twenty pods for five devices; kills in between.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "volumes and devices" "no kubectl"; exit 0; }
command -v jq >/dev/null || { skip "volumes and devices" "no jq"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }

start_up --binders 2 || exit 1

running() { [ "$(k get pods -l "app=$1" --no-headers 2>/dev/null | grep -c ' Running ')" -eq "$2" ]; }
is() { # what jsonpath value
    [ "$(k get "$1" -o jsonpath="$2")" = "$3" ] || { k get "$1" -o yaml; return 1; }
}
pod() { # name app, further members of spec from stdin
    printf '%s\n' '---' 'apiVersion: v1' 'kind: Pod' "metadata: {name: $1, labels: {app: $2}}" 'spec:'
    sed 's/^/  /'
}

# ---- volumes
cat >"$work/storage.yaml" <<Y
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
Y
for n in a1 a2 b1; do
    cat >>"$work/storage.yaml" <<Y
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-$n}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  persistentVolumeReclaimPolicy: Retain
  local: {path: /disk}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-$n]}]}]}}
Y
done
claim() { printf '%s\n' '---' 'apiVersion: v1' 'kind: PersistentVolumeClaim' "metadata: {name: $1}" \
    "spec: {accessModes: [ReadWriteOnce], storageClassName: $2, resources: {requests: {storage: 5Gi}}}"; }
claim data local >>"$work/storage.yaml"
claim fresh made >>"$work/storage.yaml"
check "classes, local volumes and claims" k apply -f "$work/storage.yaml"
container='containers: [{name: c, image: pause}]'
{
    pod on-disk disk <<<"$container
volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
    pod provisioned made <<<"$container
volumes: [{name: v, persistentVolumeClaim: {claimName: fresh}}]"
    pod short-lived ephemeral <<<"$container
volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: made, resources: {requests: {storage: 1Gi}}}}}}]"
} >"$work/pods.yaml"
check "pods that use them" k apply -f "$work/pods.yaml"
eventually "the pod on a local volume runs" 20 running disk 1
eventually "the one with a provisioned volume runs" 20 running made 1
eventually "the one with an ephemeral volume runs" 20 running ephemeral 1
node=$(k get pod on-disk -o jsonpath='{.spec.nodeName}')
disk=$(k get pvc data -o jsonpath='{.spec.volumeName}')
expect "its volume is of its node" "^disk-${node#node-}\$" echo "$disk"
check "the volume was bound by the scheduler" is "pv/$disk" '{.metadata.annotations.pv\.kubernetes\.io/bound-by-controller}' yes
check "it names the claim" is "pv/$disk" '{.spec.claimRef.namespace}/{.spec.claimRef.name}/{.spec.claimRef.uid}' \
    "default/data/$(k get pvc data -o jsonpath='{.metadata.uid}')"
check "the provisioner was told the node" is pvc/fresh '{.metadata.annotations.volume\.kubernetes\.io/selected-node}' \
    "$(k get pod provisioned -o jsonpath='{.spec.nodeName}')"

cat >"$work/set.yaml" <<Y
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  replicas: 3
  serviceName: store
  selector: {matchLabels: {app: store}}
  template: {metadata: {labels: {app: store}}, spec: {containers: [{name: c, image: pause}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: made, resources: {requests: {storage: 1Gi}}}
Y
check "a StatefulSet with volumeClaimTemplates" k apply -f "$work/set.yaml"
eventually "its three pods run" 30 running store 3
expect "each has a volume" '^3$' bash -c "kubectl --cache-dir $work/cache get pvc --no-headers | grep '^data-store-' | grep -c ' Bound '"

# ---- devices
device() { printf '  - name: %s\n' "$1"; }
slice() { # node driver devices...
    printf '%s\n' '---' 'apiVersion: resource.k8s.io/v1' 'kind: ResourceSlice' "metadata: {name: $1-${2%%.*}}" 'spec:' \
        "  driver: $2" "  nodeName: $1" "  pool: {name: $1, generation: 1, resourceSliceCount: 1}" '  devices:'
    shift 2
    for d in "$@"; do device "$d"; done
}
class() { # name driver [more]
    printf '%s\n' '---' 'apiVersion: resource.k8s.io/v1' 'kind: DeviceClass' "metadata: {name: $1}" 'spec:' \
        "  selectors: [{cel: {expression: 'device.driver == \"$2\"'}}]"
    [ $# -lt 3 ] || echo "  $3"
}
{
    class gpu gpu.example.com
    class nic nic.example.com 'extendedResourceName: example.com/nic'
    slice node-a1 gpu.example.com g0 g1 g2
    slice node-b1 gpu.example.com g3 g4
    slice node-a2 nic.example.com n0 n1
    cat <<Y
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
Y
} >"$work/devices.yaml"
check "classes, slices, a claim and a template" k apply -f "$work/devices.yaml"
{
    for i in 1 2; do
        pod "share-$i" share <<<"$container
resourceClaims: [{name: d, resourceClaimName: shared}]"
    done
    pod nic nic <<<"containers: [{name: c, image: pause, resources: {limits: {example.com/nic: 2}, requests: {example.com/nic: 2}}}]"
} >"$work/users.yaml"
check "two pods share a claim, one asks for an extended resource" k apply -f "$work/users.yaml"
eventually "the two run" 20 running share 2
eventually "the third runs" 20 running nic 1
check "the shared claim is reserved for two" is resourceclaim/shared '{.status.reservedFor[*].resource}' "pods pods"
check "and protected" is resourceclaim/shared '{.metadata.finalizers[0]}' resource.kubernetes.io/delete-protection
expect "the extended resource has a claim of its own" '^nic-extended-resources-[a-z0-9]{5}$' \
    k get pod nic -o 'jsonpath={.status.extendedResourceClaimStatus.resourceClaimName}'
check "it has both devices" is "resourceclaim/$(k get pod nic -o 'jsonpath={.status.extendedResourceClaimStatus.resourceClaimName}')" \
    '{.status.allocation.devices.results[*].device}' "n0 n1"
check "they go" k delete pod share-1 share-2 nic --wait=false
eventually "the shared claim is free" 20 is resourceclaim/shared '{.status.allocation}' ""

# twenty pods, five devices; processes die meanwhile; a finished pod's device goes to the next
for i in $(seq 20); do
    pod "race-$i" race <<<"$container
resourceClaims: [{name: d, resourceClaimTemplateName: one-gpu}]"
done >"$work/race.yaml"
taken() { # every device that is allocated, one a line
    k get resourceclaims -o json | jq -r '.items[].status.allocation.devices.results[]? | .driver + "/" + .pool + "/" + .device'
}
no_device_twice() {
    local all
    all=$(taken) && [ -n "$all" ] && [ -z "$(sort <<<"$all" | uniq -d)" ] || { taken; return 1; }
}
check "twenty pods" k create -f "$work/race.yaml"
eventually "five run" 20 running race 5
check "no device twice" no_device_twice
sleep 1
expect "five and no more" '^5$' bash -c "kubectl --cache-dir $work/cache get pods -l app=race --no-headers | grep -c ' Running '"
round=0
left=20
while [ "$left" -gt 5 ]; do
    round=$((round + 1))
    k get pods -l app=race --no-headers | awk '$3 == "Running" {print $1}' >"$work/done"
    xargs kubectl --cache-dir "$work/cache" delete pod --wait=false <"$work/done" >/dev/null
    case $round in
    1) kill -9 "$(pid_of berth-scheduler)" ;;
    2) kill -9 "$(pid_of 'berth-binder .*--instance 1')" ;;
    3) kill -9 "$(pid_of 'berth-binder .*--instance 2')" "$(pid_of berth-scheduler)" ;;
    esac
    left=$((left - $(wc -l <"$work/done")))
    eventually "round $round: the next five run" 40 running race $((left < 5 ? left : 5)) || break
    check "round $round: no device twice" no_device_twice
done
k delete pods -l app=race --wait=false >/dev/null
eventually "in the end all devices are free" 20 bash -c "all=\$(kubectl --cache-dir $work/cache get resourceclaims -o jsonpath='{.items[*].status.allocation}') && [ -z \"\$all\" ]"
claims_left() { [ "$(k get resourceclaims --no-headers 2>/dev/null | awk '{print $1}')" = shared ] || { k get resourceclaims -o yaml; return 1; }; }
eventually "and of the claims only the one that nobody made for a pod is left" 20 claims_left

# Devices that are attached to the node after the allocation: the pod waits until their driver says so; when it says that it
# failed, the claim is freed with all that was said about it, and allocated anew.
{
    class fabric fabric.example.com
    slice node-b1 fabric.example.com f0 f1 | sed 's/- name: \(f[01]\)$/- {name: \1, bindsToNode: true, bindingConditions: [Attached], bindingFailureConditions: [Broken]}/'
    cat <<Y
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: far}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: fabric}}]}}
Y
    pod far far <<<"$container
resourceClaims: [{name: d, resourceClaimName: far}]"
} >"$work/far.yaml"
check "a pod for a device that has to be attached" k apply -f "$work/far.yaml"
allocated() { k get resourceclaim far -o 'jsonpath={.status.allocation.devices.results[0].device}'; }
has_device() { k get resourceclaim far -o json | jq -e '.status.allocation and ((.status.devices // []) | length == 0)'; }
eventually "a device is allocated" 20 has_device
waits() { k get events -o json | jq -e '[.items[] | select(.reason == "BindingConditionsPending" and .involvedObject.name == "far" and
    .type == "Normal" and .message == "waiting for binding conditions for device on node node-b1")] | length >= 1'; }
eventually "an event tells what the pod waits for" 10 waits
expect "it is not bound yet" '^$' k get pod far -o 'jsonpath={.spec.nodeName}'
server=$(awk '$1 == "server:" {print $2}' "$KUBECONFIG")
driver_says() { # condition device
    curl -fsS -X PATCH -H 'Content-Type: application/merge-patch+json' "$server/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/far/status" -d '{"status":
        {"devices": [{"driver": "fabric.example.com", "pool": "node-b1", "device": "'"$2"'", "conditions": [{"type": "'"$1"'", "status": "True",
        "reason": "Test", "message": "says the test", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}]}}'
}
check "its driver cannot attach it" driver_says Broken "$(allocated)"
eventually "the pod gets a device again" 30 has_device
expect "it waits again" '^$' k get pod far -o 'jsonpath={.spec.nodeName}'
check "whose driver can" driver_says Attached "$(allocated)"
eventually "the pod runs" 20 running far 1
metric_of() { curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics" | grep "^$1"; }
expect "metrics: one that was bound" 'driver="fabric.example.com",profile="default-scheduler",status="success".* 1$' \
    metric_of scheduler_dra_bindingconditions_allocations_total
expect "and one that failed" 'driver="fabric.example.com",profile="default-scheduler",status="failure".* [1-9]' \
    metric_of scheduler_dra_bindingconditions_allocations_total

# what volumes went through
kill -9 "$(pid_of berth-scheduler)" "$(pid_of 'berth-binder .*--instance 1')"
for i in $(seq 6); do
    claim "late-$i" made
    pod "late-$i" late <<<"$container
volumes: [{name: v, persistentVolumeClaim: {claimName: late-$i}}]"
done >"$work/late.yaml"
check "claims and pods while scheduler and binder are dead" k create -f "$work/late.yaml"
sleep 2
kill -9 "$(pid_of berth-scheduler)" 2>/dev/null
eventually "they all run" 40 running late 6
