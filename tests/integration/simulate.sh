#!/usr/bin/env bash
# `berth simulate`: files in, decisions out; exit codes, forms, standard input, a cluster that kubectl exported, hostile
# files, and a cluster of 5,000 nodes.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
s() { "$BERTH_BIN/berth" simulate "$@"; }
example=$here/../../config/example-cluster.yaml
# status WANT COMMAND...: the exit status, with what was printed
pod() { # name cpu
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: "%s"}}}]}\n' "$@"
}
pod small 100m >"$work/small.yaml"
pod huge 100 >"$work/huge.yaml"

# ---- forms and exit codes
check "all are placed: status 0" status 0 s -f "$example" -f "$work/small.yaml"
check "some are not: status 3" status 3 s -f "$example" -f "$work/small.yaml" -f "$work/huge.yaml"
check "no such file: status 1" status 1 s -f "$work/none.yaml"
check "no file: status 2" status 2 s
check "a wrong flag: status 2" status 2 s -f "$example" --output xml
expect "help names the exit codes" '^ *3  some pods were not placed' s --help
any() { "$@" || true; }
expect "the table has upstream's message" '0/5 nodes are available: .* 4 Insufficient cpu' \
    any s -f "$example" -f "$work/huge.yaml" --pod default/huge
expect "explanations side by side" '^NodeResourcesFit +1 +[0-9]+ +[0-9]+' s -f "$example" -f "$work/small.yaml" --explain
expect "wide explanations have raw scores" 'RAW +NORMALIZED +WEIGHT' \
    s -f "$example" -f "$work/small.yaml" --explain -o wide
expect "JSON is JSON" '"kind": "SimulationReport"' s -f "$example" -f "$work/small.yaml" -o json
expect "YAML is YAML" '^kind: SimulationReport$' s -f "$example" -f "$work/small.yaml" -o yaml
expect "counting" '^[1-9][0-9]* more of pod default/small fit on 4 of 5 nodes$' \
    s -f "$example" -f "$work/small.yaml" --pod default/small --count
expect "counting up to a limit" '"stopped": "Limit"' \
    s -f "$example" -f "$work/small.yaml" --pod default/small --count --max 3 -o json
plain_only() { ! s "$@" | grep -q $'\x1b'; }
check "no colour in a pipe" plain_only -f "$example" -f "$work/small.yaml" --explain
same() { [ "$("$@")" = "$("$@")" ]; }
check "runs repeat" same s -f "$example" -f "$work/small.yaml" --explain -o json --now 2026-01-02T03:04:05Z
check "so do seeded draws" same s -f "$example" -f "$work/small.yaml" --tie-break random --seed 7 -o json \
    --now 2026-01-02T03:04:05Z
check "both paths of the engine agree" status 0 s -f "$example" -f "$work/small.yaml" --verify
mkdir "$work/folder"
cp "$example" "$work/folder/1.yaml"
cp "$work/small.yaml" "$work/folder/2.yml"
expect "a folder" 'default +small +Scheduled' s -f "$work/folder"
stdin() { cat "$example" "$work/small.yaml" | s -f -; }
expect "standard input" 'default +small +Scheduled' stdin
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: other\n' \
    >"$work/other.yaml"
other() { s -f "$example" -f "$work/small.yaml" --config "$work/other.yaml" -o json; [ $? -eq 3 ]; }
expect "another configuration" '"otherScheduler": [1-9]' other
expect "pods that no profile is responsible for are named" 'warning: [0-9]+ pending pods? w[a-z]+ not decided: spec.schedulerName is "default-scheduler", and the configuration has no such profile$' other
expect "a gate without effect, too" 'warning: feature gate TaintTolerationComparisonOperators=true has no effect: tolerations with Gt and Lt tolerate nothing$' \
    s -f "$example" -f "$work/small.yaml" --feature-gates TaintTolerationComparisonOperators=true

# ---- pods that go together
gang() { # NODES
    for n in $(seq "$1"); do
        printf 'apiVersion: v1\nkind: Node\nmetadata: {name: n%s}\nstatus: {allocatable: {cpu: "1", memory: 4Gi, pods: "9"}}\n---\n' "$n"
    done
    printf 'apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: train}\nspec: {schedulingPolicy: {gang: {minCount: 8}}}\n'
    for p in $(seq 8); do
        printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: w%s}\nspec: {schedulingGroup: {podGroupName: train}, containers: [{name: c, image: i, resources: {requests: {cpu: 800m}}}]}\n' "$p"
    done
}
gates=--feature-gates=GenericWorkload=true,GangScheduling=true
gang 7 >"$work/gang7.yaml"
gang 8 >"$work/gang8.yaml"
check "room for seven of eight: nobody is placed" status 3 s -f "$work/gang7.yaml" $gates --verify
expect "the group says why" '^default +train +Gang +8 +8 +0 +Unschedulable +pod group is unschedulable' any s -f "$work/gang7.yaml" $gates
check "room for eight: all are" status 0 s -f "$work/gang8.yaml" $gates --verify
expect "and the group says so" '"result": "Scheduled"' s -f "$work/gang8.yaml" $gates -o json
expect "without the gate a group is a warning" 'PodGroup default/train and all others are not looked at' \
    s -f "$work/gang8.yaml"
gang 17 >"$work/gang17.yaml"
expect "how many more of a gang fit: whole ones" '^That is room for 2 more gangs of 8$' s -f "$work/gang17.yaml" $gates --pod default/w1 --count
labelled() { # MEMBERS
    printf 'apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: "8", memory: 4Gi, pods: "19"}}\n---\n'
    printf 'apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: train}\nspec: {minMember: %s}\n' "$1"
    for p in $(seq "$1"); do
        printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: w%s, labels: {scheduling.x-k8s.io/pod-group: train}}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 800m}}}]}\n' "$p"
    done
}
coscheduling=--config=$here/../../config/coscheduling.yaml
labelled 10 >"$work/ten.yaml"
labelled 11 >"$work/eleven.yaml"
labelled 12 >"$work/twelve.yaml"
check "Coscheduling, room for all" status 0 s -f "$work/ten.yaml" "$coscheduling" --verify
expect "one of eleven has no room: the others wait" '10 +default/w1, .* waits at Permit \(Coscheduling\)$' any s -f "$work/eleven.yaml" "$coscheduling" --verify
expect "and are counted" '^0 placed, 1 unschedulable, 10 waiting at Permit, ' any s -f "$work/eleven.yaml" "$coscheduling"
check "that is not all: status 3" status 3 s -f "$work/eleven.yaml" "$coscheduling"
expect "two of twelve have none: all are given up" '^0 placed, 12 unschedulable, 0 preempted' any s -f "$work/twelve.yaml" "$coscheduling" --verify
check "a gate that is none: status 2" status 2 s -f "$work/gang8.yaml" --feature-gates Gangs=true

# ---- hostile files: an error that names the place, at once
error() { # name pattern file
    local out rc
    out=$(timeout $((20 * PATIENCE)) "$BERTH_BIN/berth" simulate -f "$example" -f "$3" 2>&1)
    rc=$?
    if [ "$rc" -eq 1 ] && grep -qE -- "$2" <<<"$out"; then ok "$1"; else not_ok "$1" "status $rc: ${out:0:600}"; fi
}
head -c 200 "$example" >"$work/trunc.yaml"
error "truncated YAML" 'trunc.yaml: document [0-9]+.* line [0-9]+' "$work/trunc.yaml"
printf '{"apiVersion":"v1","kind":"List","items":[{"a":' >"$work/trunc.json"
error "truncated JSON" 'trunc.json: document 1: .*cut short' "$work/trunc.json"
sed 's/\[{name: c.*/7}/' "$work/small.yaml" >"$work/type.yaml"
error "a wrong type" 'type.yaml: document 1 \(line 2\): Pod default/small: Pod: spec.containers: must be a list' "$work/type.yaml"
sed 's/spec: {/spec: {nodeSelecter: {a: b}, /' "$work/small.yaml" >"$work/typo.yaml"
error "a field that is none" 'typo.yaml: document 1: Pod small: line 5: unknown field "spec.nodeSelecter" \(did you mean nodeSelector\?\)' \
    "$work/typo.yaml"
check "with --strict, too" status 1 s --strict -f "$example" -f "$work/typo.yaml"
pod negative -1 >"$work/negative.yaml"
error "a negative quantity" 'requests\[cpu\]: Invalid value: "-1"' "$work/negative.yaml"
{ printf 'apiVersion: v1\nkind: Node\nmetadata: {uid: u, name: '; head -c 10000000 /dev/zero | tr '\0' a; echo '}'; } >"$work/name.yaml"
error "a name of 10 MB" 'metadata.name: must be no more than 253 characters' "$work/name.yaml"
printf 'a: &a [*a]\n' >"$work/circle.yaml"
error "an alias inside itself" 'contains itself' "$work/circle.yaml"
{
    printf 'a0: &a0 [x]\n'
    for i in 1 2 3 4 5 6 7 8 9; do printf 'a%d: &a%d [%s*a%d]\n' "$i" "$i" "$(printf "*a$((i - 1)),%.0s" 1 2 3 4 5 6 7 8 9)" $((i - 1)); done
} >"$work/bomb.yaml"
error "a bomb of aliases" 'aliasing' "$work/bomb.yaml"
head -c 200000 /dev/zero | tr '\0' '[' >"$work/deep.yaml"
error "deep nesting" 'too deep' "$work/deep.yaml"
head -c 300000 /dev/urandom >"$work/noise.yaml"
error "noise" 'noise.yaml' "$work/noise.yaml"
printf 'apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r}\nspec: {replicas: 2000000000, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}\n' >"$work/replicas.yaml"
error "two thousand million replicas" 'more than 100000 pods' "$work/replicas.yaml"
quick() { timeout $((60 * PATIENCE)) "$BERTH_BIN/berth" simulate "$@"; }
pod e400 1e400 >"$work/e400.yaml"
check "1e400 cpus fit nowhere" status 3 quick -f "$example" -f "$work/e400.yaml"
{
    printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"terms"},"spec":{"containers":[{"name":"c","image":"i"}],"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":['
    for ((i = 0; i < 10000; i++)); do
        [ "$i" -eq 0 ] || printf ,
        printf '{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"a%d"}}}' "$i"
    done
    printf ']}}}}'
} >"$work/terms.json"
check "10,000 affinity terms" status 0 quick -f "$example" -f "$work/terms.json"
{
    cat "$example"
    printf -- '---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: slow}\nspec: {selectors: [{cel: {expression: "%s"}}]}\n' \
        "[1,2,3,4,5,6,7,8,9].all(a,[1,2,3,4,5,6,7,8,9].all(b,[1,2,3,4,5,6,7,8,9].all(c,[1,2,3,4,5,6,7,8,9].all(d,[1,2,3,4,5,6,7,8,9].all(e,[1,2,3,4,5,6,7,8,9].all(f,[1,2,3,4,5,6,7,8,9].all(g,true)))))))"
    printf -- '---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d, allNodes: true, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: [{name: g}]}\n'
    printf -- '---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: slow}}]}}\n'
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: cel}\nspec: {containers: [{name: c, image: i}], resourceClaims: [{name: c, resourceClaimName: c}]}\n'
} >"$work/cel.yaml"
cel() { quick -f "$work/cel.yaml" --pod default/cel; }
check "CEL that does not end: status 3" status 3 cel
out=$(cel)
expect "and says so" 'cost limit exceeded' echo "$out"

# ---- a large cluster
{
    printf '{"apiVersion":"v1","kind":"List","items":['
    for ((i = 0; i < 5000; i++)); do
        printf '{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%d","uid":"u%d"},"status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110"}}},\n' "$i" "$i"
    done
    printf '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":2000,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}}}]}'
} >"$work/large.json"
expect "5,000 nodes, 2,000 pods" '^2000 placed, 0 unschedulable, 0 preempted; 5000 nodes' quick -f "$work/large.json"
expect "and how many more fit" '^40000 more of pod default/one fit on 5000 of 5000 nodes$' \
    quick -f "$work/large.json" -f <(pod one 1) --pod default/one --count

# ---- what kubectl prints of a live cluster
command -v kubectl >/dev/null || { skip "an exported cluster" "no kubectl"; exit 0; }
start_up || exit 1
k() { kubectl --cache-dir "$work/cache" "$@" </dev/null; }
running() { [ "$(k get pods -l app=hello --no-headers | grep -c ' Running ')" -eq 3 ]; }
eventually "its pods run" 15 running
k get nodes,pods,deployments,replicasets,services,namespaces,priorityclasses,configmaps -A -o yaml >"$work/export.yaml"
k get nodes,pods,deployments,replicasets,services,namespaces,priorityclasses,configmaps -A -o json >"$work/export.json"
k get --raw /api/v1/nodes >"$work/nodes.json"
k get --raw /api/v1/pods >"$work/pods.json"
expect "the export as it is" '^1 placed, 0 unschedulable, 0 preempted; 5 nodes, 3 pods were there before$' \
    s -f "$work/export.yaml" -f "$work/small.yaml"
expect "the same as JSON" '^1 placed, 0 unschedulable, 0 preempted; 5 nodes, 3 pods were there before$' \
    s -f "$work/export.json" -f "$work/small.yaml" --strict
expect "the server's own lists" '^1 placed, 0 unschedulable, 0 preempted; 5 nodes, 3 pods were there before$' \
    s -f "$work/nodes.json" -f "$work/pods.json" -f "$work/small.yaml"
best=$(s -f "$work/export.yaml" -f "$work/small.yaml" --explain -o yaml | awk '/- rank: 1$/ {getline; print $2}')
check "create the same pod" k create -f "$work/small.yaml"
bound() { [ -n "$(k get pod small -o jsonpath='{.spec.nodeName}')" ]; }
eventually "it is bound" 15 bound
expect "to one of the nodes that the simulation found best" "^(${best//$'\n'/|})\$" \
    k get pod small -o 'jsonpath={.spec.nodeName}'
