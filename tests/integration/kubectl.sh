#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/kubectl.sh - every kubectl command of the tutorials against berth-simulator
#
#   BERTH_BIN  folder of the programs            (build/bin)
#   KUBECTLS   kubectl programs to try, by space (kubectl of the PATH)
#
# For each kubectl a fresh server is started; pods are bound here by hand, because no scheduler
# runs. One line per check, `N passed, N failed, N skipped` at the end; exit status 1 when one
# failed. Without any kubectl everything is skipped.
set -u
BERTH_BIN=${BERTH_BIN:-build/bin}
KUBECTLS=${KUBECTLS:-$(command -v kubectl || true)}
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
server=0

stop_server() {
    [ "$server" = 0 ] && return 0
    local rc
    kill "$server" 2>/dev/null
    wait "$server" 2>/dev/null
    rc=$?
    server=0
    return $rc
}
trap 'stop_server; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

# start_server ARGS...: a fresh server; sets KUBECONFIG.
start_server() {
    stop_server
    rm -f "$tmp/kubeconfig"
    "$BERTH_BIN/berth-simulator" --kubeconfig-out "$tmp/kubeconfig" "$@" >"$tmp/server.out" 2>"$tmp/server.log" &
    server=$!
    for _ in $(seq 100); do
        [ -s "$tmp/server.out" ] && break
        kill -0 "$server" 2>/dev/null || break
        read -rt 0.1 <> <(:) || true
    done
    export KUBECONFIG=$tmp/kubeconfig
    rm -rf "$HOME/.kube"
}

k() { timeout 300 "$kubectl" "$@"; }

# verdict NAME OK: prints and counts; the output of a failed check follows.
verdict() {
    if [ "$2" = 1 ]; then
        passed=$((passed + 1))
        echo "ok     $label $1"
    else
        failed=$((failed + 1))
        echo "not ok $label $1"
        sed 's/^/    | /' "$tmp/out" | head -20
        alive
    fi
}
# alive: ends the whole test when the server has died; every further check would only say so.
alive() {
    [ "$server" = 0 ] || kill -0 "$server" 2>/dev/null || {
        echo "not ok $label the server died"
        tail -5 "$tmp/server.log"
        failed=$((failed + 1))
        echo "$passed passed, $failed failed, $skipped skipped"
        exit 1
    }
}
# check NAME STATUS REGEX COMMAND...: exit status and (when not empty) a match in the output.
check() {
    local name=$1 want=$2 regex=$3 rc good=0
    shift 3
    "$@" >"$tmp/out" 2>&1 </dev/null
    rc=$?
    if [ $rc = "$want" ] && { [ -z "$regex" ] || grep -Eqz -- "$regex" "$tmp/out"; }; then good=1; fi
    [ $good = 1 ] || echo "(exit $rc, want $want; pattern: $regex)" >>"$tmp/out"
    verdict "$name" $good
}
# feed NAME STATUS REGEX FILE COMMAND...: as check, with FILE on standard input.
feed() {
    local name=$1 want=$2 regex=$3 file=$4
    shift 4
    check "$name" "$want" "$regex" bash -c 'f=$1; shift; exec timeout 300 "$@" <"$f"' _ "$file" "$kubectl" "$@"
}
skip() {
    skipped=$((skipped + 1))
    echo "skip   $label $1"
}
# eventually NAME REGEX COMMAND...: runs it until its output matches, at most 20 s.
eventually() {
    local name=$1 regex=$2 end=$((SECONDS + 20)) good=0
    shift 2
    while [ $SECONDS -lt $end ]; do
        "$@" >"$tmp/out" 2>&1
        if grep -Eq -- "$regex" "$tmp/out"; then
            good=1
            break
        fi
        read -rt 0.2 <> <(:) || true
    done
    verdict "$name" $good
}
# names ARGS...: how many names `get -o name` prints.
names() { k get "$@" -o name | grep -c .; }
# bind NAMESPACE POD NODE
bind() {
    printf '{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%s"},"target":{"kind":"Node","name":"%s"}}' \
        "$2" "$3" | k create --raw "/api/v1/namespaces/$1/pods/$2/binding" -f - >/dev/null
}
# bind_all NAMESPACE NODE: what a scheduler would do with the pending pods of a namespace.
bind_all() {
    local pod
    for pod in $(k get pods -n "$1" -o jsonpath='{range .items[?(@.status.phase=="Pending")]}{.metadata.name}{" "}{end}'); do
        bind "$1" "$pod" "$2"
    done
}

manifests() {
    cat >"$tmp/node.yaml" <<'Y'
apiVersion: v1
kind: Node
metadata:
  name: NAME
  labels: {kubernetes.io/hostname: NAME, topology.kubernetes.io/zone: a, node-role.kubernetes.io/worker: ""}
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady}]
Y
    for n in n1 n2; do sed "s/NAME/$n/" "$tmp/node.yaml" >"$tmp/$n.yaml"; done
    cat >"$tmp/deploy.yaml" <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: nginx
        image: nginx:1.25
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
Y
    sed 's/nginx:1.25/nginx:1.26/; s/replicas: 3/replicas: 2/' "$tmp/deploy.yaml" >"$tmp/deploy2.yaml"
    cat >"$tmp/pod.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {app: solo}}
spec:
  containers: [{name: c, image: busybox, env: [{name: A, value: "1"}], resources: {requests: {cpu: 10m}}}]
Y
    cat >"$tmp/list.yaml" <<'Y'
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: cm1}, data: {a: b}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: cm2}, data: {c: d}}
Y
    echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm1"},"data":{"a":"x"}}' >"$tmp/cm1.json"
    cat >"$tmp/ssa.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: ssa, labels: {v: one}}
data: {a: "1"}
Y
    sed 's/one/two/; s/"1"/"2"/' "$tmp/ssa.yaml" >"$tmp/ssa2.yaml"
    cat >"$tmp/typo.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: typo}
spec:
  nodeSelecter: {a: b}
  containers: [{name: c, image: x, resorces: {}}]
Y
    cat >"$tmp/quota.yaml" <<'Y'
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: small}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: small}, spec: {hard: {pods: "1", requests.cpu: 500m}}}
- {apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: small}, spec: {limits: [{type: Container, defaultRequest: {cpu: 200m}}]}}
Y
    cat >"$tmp/crd.yaml" <<'Y'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [cronSpec]
            x-kubernetes-validations: [{rule: self.replicas != 7, message: seven is taken, fieldPath: .replicas}]
            properties:
              cronSpec: {type: string, pattern: '^\S+( \S+){4}$', description: When to run.}
              replicas: {type: integer, minimum: 1, maximum: 10, default: 1}
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
Y
    cat >"$tmp/ct.yaml" <<'Y'
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: my}
spec: {cronSpec: "* * * * *"}
Y
    sed 's/\* \* \* \* \*/x/; s/"}/", replicas: 20}/' "$tmp/ct.yaml" >"$tmp/ct-bad.yaml"
    sed 's/"}/", extra: 1}/' "$tmp/ct.yaml" >"$tmp/ct-typo.yaml"
    printf '#!/bin/sh\nsed -i s/replicas:\\ 2/replicas:\\ 4/ "$1"\n' >"$tmp/editor"
    chmod +x "$tmp/editor"
}

discovery() {
    check "version" 0 'v1\.36' k version
    check "cluster-info" 0 'running at' k cluster-info
    check "api-resources" 0 'deployments +deploy +apps/v1 +true +Deployment' k api-resources
    check "api-resources --namespaced=false" 0 'nodes +no +v1 +false +Node' k api-resources --namespaced=false
    check "api-versions" 0 'scheduling.k8s.io/v1' k api-versions
    check "get --raw /readyz" 0 '^ok' k get --raw /readyz
    check "get of every kind in all namespaces" 0 'system-node-critical' \
        k get ns,no,po,pv,pvc,sc,pc,deploy,rs,job,pdb,ev -A -o wide
    check "apiservices" 0 'v1\.apps +Local +True.*v2\.autoscaling +Local +True' k get apiservices
    check "a deleted root CA" 0 'deleted' k delete configmap kube-root-ca.crt
    eventually "comes back" 'kube-root-ca.crt +1' k get configmap kube-root-ca.crt
    check "a namespace" 0 'created' k create namespace fresh
    eventually "gets the root CA" 'kube-root-ca.crt +1' k get configmap kube-root-ca.crt -n fresh
    eventually "and its service account" 'default' k get serviceaccount default -n fresh
    check "the namespace goes" 0 'deleted' k delete namespace fresh
    cat >"$tmp/hook.yaml" <<'Y'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: pods.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://hook.example.com/"}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
Y
    check "a webhook configuration" 0 'created' k create -f "$tmp/hook.yaml"
    check "get validatingwebhookconfigurations" 0 'hook +1 ' k get validatingwebhookconfigurations
    check "delete it" 0 'deleted' k delete -f "$tmp/hook.yaml"
    check "get of an unknown kind fails" 1 "doesn't have a resource type" k get nonsense
    check "get of a missing pod fails" 1 'pods "nope" not found' k get pod nope
    check "auth can-i" 0 'yes' k auth can-i create pods
    check "auth can-i --list" 0 '\*\.\*' k auth can-i --list
    check "explain" 0 'Taints of nodes that the pod puts up with' k explain pod.spec.tolerations
    check "explain --recursive" 0 'livenessProbe.*terminationMessagePolicy' \
        k explain pod.spec.containers --recursive
    check "explain of another group" 0 'Which pods it protects' k explain pdb.spec
    check "explain of an unknown field fails" 1 'does not exist' k explain pod.spec.nonsense
    if [ "$minor" -ge 28 ]; then
        check "auth whoami" 0 'kubernetes-admin' k auth whoami
    else
        skip "auth whoami"
    fi
}

nodes() {
    check "create -f node" 0 'node/n1 created' k create -f "$tmp/n1.yaml"
    check "create -f second node" 0 'node/n2 created' k create -f "$tmp/n2.yaml"
    eventually "get nodes shows Ready" 'n1 +Ready +worker' k get nodes
    check "get nodes -o wide" 0 'INTERNAL-IP' k get nodes -o wide
    check "label node" 0 'labeled' k label node n1 disk=ssd
    check "get -l" 0 'n1' k get nodes -l disk=ssd -o name
    check "unlabel node" 0 'n1' k label node n1 disk-
    check "annotate node" 0 'annotated?' k annotate node n1 note=hello
    check "taint add" 0 'tainted' k taint node n1 dedicated=x:NoSchedule
    check "taint is there" 0 'dedicated' k get node n1 -o 'jsonpath={.spec.taints}'
    check "taint remove" 0 'untainted' k taint node n1 dedicated-
    check "cordon" 0 'cordoned' k cordon n2
    eventually "cordoned node shows it" 'n2 +Ready,SchedulingDisabled' k get nodes
    check "uncordon" 0 'uncordoned' k uncordon n2
    check "describe node" 0 'Allocatable:.*cpu: +8' k describe node n1
    if [ "$minor" -ge 24 ]; then
        check "patch --subresource=status node" 0 'patched' \
            k patch node n1 --subresource=status --type=merge -p '{"status":{"capacity":{"example.com/gpu":"2"}}}'
        check "status patch arrived" 0 '2' k get node n1 -o 'jsonpath={.status.capacity.example\.com/gpu}'
    else
        skip "patch --subresource=status node"
    fi
    k annotate node n1 kwok.x-k8s.io/usage-memory=8Gi >/dev/null
    check "top nodes" 0 'n1 +0m +0% +8192Mi +25%' k top nodes
    check "describe priorityclass" 0 'Value: +2000001000' k describe pc system-node-critical
}

tutorial() {
    check "create ns" 0 'namespace/t created' k create ns t
    check "apply deployment" 0 'deployment.apps/web created' k apply -n t -f "$tmp/deploy.yaml"
    eventually "its replica set makes three pods" '^3$' names pods -n t -l app=web
    check "pods are Pending" 0 'Pending' k get pods -n t
    check "apply again changes nothing" 0 'web unchanged' k apply -n t -f "$tmp/deploy.yaml"
    k get pods -n t -w --output-watch-events >"$tmp/watch" 2>&1 &
    local watcher=$!
    bind_all t n1
    eventually "bound pods become Running" '^3$' names pods -n t --field-selector status.phase=Running
    check "get -o wide shows the node" 0 'web-.* n1 ' k get pods -n t -o wide
    check "rollout status" 0 'successfully rolled out' k rollout status deploy/web -n t --timeout=20s
    check "top pods" 0 'web-[^ ]+ +100m +64Mi' k top pods -n t
    eventually "get -w saw the change" 'MODIFIED +web-' cat "$tmp/watch"
    kill $watcher 2>/dev/null
    wait $watcher 2>/dev/null
    check "get deploy,rs" 0 'deployment.apps/web +3/3 +3 +3' k get deploy,rs -n t
    check "get -o yaml" 0 'kind: Deployment' k get deploy web -n t -o yaml
    check "get -o json" 0 '"kind": "Deployment"' k get deploy web -n t -o json
    check "get -o name" 0 'deployment.apps/web' k get deploy -n t -o name
    check "get -o custom-columns" 0 'web +3' \
        k get deploy -n t -o custom-columns=N:.metadata.name,R:.spec.replicas
    check "get --show-labels" 0 'app=web' k get pods -n t --show-labels
    check "get --sort-by" 0 'web-' k get pods -n t --sort-by=.metadata.name
    check "get all" 0 'replicaset.apps/web-' k get all -n t
    check "describe deployment" 0 'Replicas: +3 desired' k describe deploy web -n t
    check "describe pod" 0 'Node: +n1' k describe pod -n t -l app=web
    check "describe ns" 0 'Name: +t' k describe ns t
    check "get events" 0 '' k get events -n t
    cat >"$tmp/event.yaml" <<'EOF'
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: sorted, namespace: kube-public}
type: Normal
reason: Tried
action: Try
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: tests
reportingInstance: tests-1
regarding: {kind: Pod, name: p, namespace: kube-public}
EOF
    check "an event without lastTimestamp" 0 'created' k create -f "$tmp/event.yaml"
    check "get events --sort-by=.lastTimestamp without any" 0 'Tried' \
        k get events -n kube-public --sort-by=.lastTimestamp
    if [ "$minor" -ge 26 ]; then
        check "events --for" 0 '' k events -n t --for deploy/web
    else
        skip "events --for"
    fi
    check "scale up" 0 'scaled' k scale deploy/web --replicas=5 -n t
    eventually "five pods" '^5$' names pods -n t -l app=web
    check "scale with the wrong --current-replicas fails" 1 'Expected replicas to be 2' \
        k scale deploy/web --current-replicas=2 --replicas=3 -n t
    check "scale down" 0 'scaled' k scale deploy/web --replicas=2 -n t
    check "apply a changed deployment" 0 'web configured' k apply -n t -f "$tmp/deploy2.yaml"
    eventually "a second replica set" '^2$' names rs -n t
    finish_rollout
    check "rollout history" 0 'REVISION' k rollout history deploy/web -n t
    check "rollout undo" 0 'rolled back' k rollout undo deploy/web -n t
    finish_rollout
    check "undo brought the old image back" 0 'nginx:1.25' \
        k get deploy web -n t -o 'jsonpath={.spec.template.spec.containers[0].image}'
    check "rollout restart" 0 'restarted' k rollout restart deploy/web -n t
    finish_rollout
    check "rollout pause" 0 'paused' k rollout pause deploy/web -n t
    check "rollout resume" 0 'resumed' k rollout resume deploy/web -n t
    check "set image" 0 'image updated' k set image deploy/web nginx=nginx:1.27 -n t
    check "edit" 0 'edited' env EDITOR="$tmp/editor" KUBE_EDITOR="$tmp/editor" "$kubectl" edit deploy web -n t
    check "edit changed the replicas" 0 '^4' k get deploy web -n t -o 'jsonpath={.spec.replicas}'
    check "expose" 0 'service/web exposed' k expose deploy web --port=80 -n t
    eventually "the service has endpoints" 'Endpoints: +10\.128\.[0-9.]+:80' k describe service web -n t
    printf 'apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: each}\nspec: {selector: {matchLabels: {app: each}}, template: {metadata: {labels: {app: each}}, spec: {containers: [{name: c, image: "x:1"}]}}}\n' >"$tmp/each.yaml"
    check "apply a daemon set" 0 'created' k apply -n t -f "$tmp/each.yaml"
    eventually "its first revision" '^1$' names controllerrevisions -n t -l app=each
    check "set image of a daemon set" 0 'image updated' k set image ds/each c=x:2 -n t
    eventually "its second revision" '^2$' names controllerrevisions -n t -l app=each
    check "rollout undo of a daemon set" 0 'daemonset.apps/each rolled back' k rollout undo ds/each -n t
    check "its template is the former one" 0 '^x:1$' k get ds each -n t -o 'jsonpath={.spec.template.spec.containers[0].image}'
    eventually "whose revision is the newest now" '3 x:1$' newest_revision each
    check "delete the daemon set" 0 'deleted' k delete ds each -n t
    check "endpoint slices" 0 'web-[a-z0-9]+ +IPv4 +80 +10\.128\.' k get endpointslices -n t
    check "autoscale" 0 'autoscaled' k autoscale deploy web --min=2 --max=5 --cpu-percent=80 -n t
    check "get hpa" 0 'Deployment/web' k get hpa -n t
    check "describe hpa" 0 'Min replicas: +2' k describe hpa web -n t
}

newest_revision() { # workload's label app: number and image of its newest revision
    k get controllerrevisions -n t -l "app=$1" --sort-by=.revision \
        -o 'jsonpath={range .items[*]}{.revision} {.data.spec.template.spec.containers[0].image}{"\n"}{end}' | tail -n 1
}

# Binds what a rollout makes until it is done.
finish_rollout() {
    local end=$((SECONDS + 20)) good=0
    while [ $SECONDS -lt $end ]; do
        bind_all t n2
        k rollout status deploy/web -n t --timeout=1s >"$tmp/out" 2>&1 && good=1 && break
    done
    verdict "rollout finishes" $good
}

creating() {
    check "create deployment" 0 'created' k create deployment d --image=x --replicas=2 -n t
    check "create job" 0 'created' k create job j --image=x -n t
    check "create priorityclass" 0 'created' k create priorityclass high --value=10
    if [ "$minor" -ge 21 ]; then # older ones ask for v1beta1, which v1.36 does not have
        check "create cronjob" 0 'created' k create cronjob cj --image=x --schedule='* * * * *' -n t
        check "create pdb" 0 'created' k create pdb b --selector=app=d --min-available=1 -n t
    else
        skip "create cronjob, pdb"
    fi
    check "create configmap" 0 'created' k create configmap lit --from-literal=a=b -n t
    check "create secret" 0 'created' k create secret generic s --from-literal=a=b -n t
    check "create serviceaccount" 0 'created' k create serviceaccount bot -n t
    check "create role" 0 'created' k create role reader --verb=get --resource=pods -n t
    check "create quota" 0 'created' k create quota q --hard=pods=100 -n t
    check "run" 0 'pod/r created' k run r --image=x -n t
    check "create -f pod" 0 'pod/p1 created' k create -f "$tmp/pod.yaml" -n t
    check "create again fails" 1 'pods "p1" already exists' k create -f "$tmp/pod.yaml" -n t
    check "create -f list" 0 'cm1 created.*cm2 created' k create -f "$tmp/list.yaml" -n t
    check "create of a bad name fails" 1 'RFC 1123' k run Bad_Name --image=x -n t
    check "create in a missing namespace fails" 1 'namespaces "missing" not found' \
        k create configmap x -n missing
    check "create --dry-run=server" 0 'created \(server dry run\)' \
        k create configmap dry --dry-run=server -n t
    check "the dry run left nothing" 1 'not found' k get configmap dry -n t
    check "get pvc,pv,sc" 0 '' k get pvc,pv,sc -n t
}

changing() {
    check "apply --server-side" 0 'serverside-applied' k apply --server-side -n t -f "$tmp/ssa.yaml"
    check "apply --server-side again" 0 'serverside-applied' k apply --server-side -n t -f "$tmp/ssa.yaml"
    check "apply --server-side --force-conflicts" 0 'serverside-applied' \
        k apply --server-side --force-conflicts -n t -f "$tmp/ssa2.yaml"
    check "server-side apply changed it" 0 '^two 2' \
        k get configmap ssa -n t -o 'jsonpath={.metadata.labels.v} {.data.a}'
    check "apply --dry-run=server" 0 'server dry run' k apply --dry-run=server -n t -f "$tmp/deploy.yaml"
    check "diff shows a difference" 1 'replicas' k diff -n t -f "$tmp/deploy.yaml"
    check "replace" 0 'replaced' k replace -n t -f "$tmp/cm1.json"
    check "replace --force" 0 'replaced' k replace --force -n t -f "$tmp/cm1.json"
    feed "replace -f -" 0 'replaced' "$tmp/cm1.json" replace -n t -f -
    check "patch strategic" 0 'patched' \
        k patch deploy d -n t -p '{"spec":{"template":{"spec":{"containers":[{"name":"x","image":"y"}]}}}}'
    check "patch merge" 0 'patched' k patch cm cm2 -n t --type=merge -p '{"data":{"c":null,"e":"f"}}'
    check "merge patch removed a key" 0 '^\{"e":"f"\}' k get cm cm2 -n t -o 'jsonpath={.data}'
    check "patch json" 0 'patched' \
        k patch cm cm2 -n t --type=json -p '[{"op":"add","path":"/data/g","value":"h"}]'
    check "a bad json patch fails" 1 'request is invalid' \
        k patch cm cm2 -n t --type=json -p '[{"op":"remove","path":"/data/zzz"}]'
    check "label pod" 0 'labeled' k label pod p1 tier=a -n t
    check "label needs --overwrite" 1 'overwrite' k label pod p1 tier=b -n t
    check "annotate pod" 0 'annotated?' k annotate pod p1 a=b -n t
    check "an invalid value is refused" 1 'is invalid' \
        k patch deploy d -n t --type=merge -p '{"spec":{"replicas":-1}}'
    check "a wrong type is refused" 1 'replicas' \
        k patch deploy d -n t --type=merge -p '{"spec":{"replicas":"x"}}'
    check "wait --for=condition" 0 'condition met' bash -c "
        '$kubectl' wait --for=condition=Ready pod/p1 -n t --timeout=20s & w=\$!
        printf '{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p1\"},\"target\":{\"name\":\"n1\"}}' |
            '$kubectl' create --raw /api/v1/namespaces/t/pods/p1/binding -f - >/dev/null
        wait \$w"
    if [ "$minor" -ge 23 ]; then
        check "wait --for=jsonpath" 0 'condition met' \
            k wait --for=jsonpath='{.status.phase}'=Running pod/p1 -n t --timeout=20s
    else
        skip "wait --for=jsonpath"
    fi
    check "binding a bound pod fails" 1 'already assigned to node' bash -c "
        printf '{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p1\"},\"target\":{\"name\":\"n2\"}}' |
            '$kubectl' create --raw /api/v1/namespaces/t/pods/p1/binding -f -"
    check "logs" 0 'simulated' k logs p1 -n t
    check "exec is refused" 1 'simulated' k exec p1 -n t -- ls
}

refusing() {
    check "port-forward is refused" 1 'simulated' k port-forward p1 8080:80 -n t
    check "unknown fields are refused" 1 'unknown field "(spec.)?nodeSelecter".*|.*resorces' \
        k create -f "$tmp/typo.yaml" -n t
    if [ "$minor" -ge 27 ]; then
        check "or named in warnings" 0 'unknown field "spec.containers\[0\].resorces"' \
            k create -f "$tmp/typo.yaml" -n t --validate=warn
    else
        skip "or named in warnings"
    fi
    check "a conflict of server-side apply names the manager" 1 'conflicts? with "kubectl"' \
        k apply --server-side --field-manager=other -n t -f "$tmp/ssa.yaml"
    check "create -f quota" 0 'resourcequota/q created' k create -f "$tmp/quota.yaml"
    check "within the quota" 0 'created' k run one --image=x -n small
    check "the limit range gave a request" 0 '200m' \
        k get pod one -n small -o 'jsonpath={.spec.containers[0].resources.requests.cpu}'
    check "get quota" 0 'pods: 1/1, requests.cpu: 200m/500m' k get quota -n small
    check "beyond the quota" 1 'exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1' \
        k run two --image=x -n small
    k delete pod one -n small --force --grace-period=0 >/dev/null 2>&1
    eventually "the quota counts what is gone" 'pods: 0/1' k get quota -n small
    check "create a quota of quotas" 0 'created' k create quota quotas --hard=resourcequotas=3 -n small
    eventually "a quota counts itself" 'resourcequotas: 2/3' k get quota quotas -n small
    if [ "$minor" -ge 32 ]; then
        check "patch --subresource=resize" 0 'patched' k patch pod p1 -n t --subresource=resize \
            -p '{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"500m"}}}]}}'
        eventually "the kubelet follows" '^500m' k get pod p1 -n t \
            -o 'jsonpath={.status.containerStatuses[0].resources.requests.cpu}'
    else
        skip "patch --subresource=resize"
    fi
}

custom() {
    check "apply of a definition" 0 'created' k apply -f "$tmp/crd.yaml"
    check "wait until it is established" 0 'condition met' \
        k wait --for=condition=Established crd/crontabs.stable.example.com --timeout=20s
    check "apply of a custom object" 0 'crontab.stable.example.com/my created' k apply -f "$tmp/ct.yaml"
    check "get by its short name shows its columns" 0 'SPEC +REPLICAS.*\* \* \* \* \* +1' k get ct
    check "get all includes it" 0 'crontab.stable.example.com/my' k get all
    check "scale of it" 0 'scaled' k scale ct/my --replicas=4
    check "another version of it" 0 'v1beta1 4' \
        k get crontabs.v1beta1.stable.example.com my -o 'jsonpath={.apiVersion} {.spec.replicas}'
    check "its schema refuses" 1 'cronSpec in body should match|should be less than or equal to 10' \
        k apply --validate=false -f "$tmp/ct-bad.yaml"
    check "its rules do" 1 'spec.replicas: Invalid value: .*seven is taken' k patch ct my --type=merge -p '{"spec":{"replicas":7}}'
    if [ "$minor" -ge 27 ]; then
        check "explain of it" 0 'When to run' k explain ct.spec.cronSpec
        check "unknown fields of it are refused" 1 'unknown field "spec.extra"' k apply -f "$tmp/ct-typo.yaml"
    else
        skip "explain of it, its unknown fields"
    fi
    sed 's/self.replicas != 7/"self.cronSpec.matches(self.cronSpec)"/' "$tmp/crd.yaml" >"$tmp/crd-dear.yaml"
    check "a rule that may cost too much is refused" 1 'rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x' \
        k apply -f "$tmp/crd-dear.yaml"
    check "delete of the definition" 0 'deleted' k delete crd crontabs.stable.example.com --timeout=20s
    check "its objects and its kind are gone" 1 '' k get ct
}

deleting() {
    check "drain --dry-run=client" 0 '' k drain n1 --ignore-daemonsets --force --dry-run=client
    check "drain" 0 'drained|evicted' k drain n1 --ignore-daemonsets --force --delete-emptydir-data --timeout=50s
    check "uncordon after drain" 0 'uncordoned' k uncordon n1
    check "delete pod" 0 'deleted' k delete pod r -n t
    check "delete a missing pod fails" 1 'not found' k delete pod r -n t
    check "delete --ignore-not-found" 0 '' k delete pod r -n t --ignore-not-found
    k run f --image=x -n t >/dev/null 2>&1
    check "delete --force" 0 'force deleted' k delete pod f -n t --grace-period=0 --force
    check "delete -l" 0 'deleted' k delete rs -n t -l app=d --cascade=background
    check "delete deployment" 0 'deleted' k delete deploy d -n t
    eventually "its pods are gone" '^0$' names pods -n t -l app=d
    check "delete deployment --cascade=foreground" 0 'deleted' k delete deploy web -n t "$foreground"
    check "its replica sets went first" 0 '' k get rs -n t
    k patch cm lit -n t --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}' >/dev/null
    check "delete --wait=false" 0 'deleted' k delete cm lit -n t --wait=false
    k wait --for=delete cm/lit -n t --timeout=20s >"$tmp/waited" 2>&1 &
    local waiter=$!
    eventually "wait --for=delete watches" 'berth_simulator_watches [1-9]' k get --raw /metrics
    k patch cm lit -n t --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
    check "wait --for=delete" 0 '' wait $waiter
    check "delete --all" 0 'deleted' k delete configmaps --all -n t
    check "delete job" 0 'deleted' k delete job j -n t
    check "delete ns" 0 'namespace "t" deleted' k delete ns t --timeout=50s
    check "the namespace is gone" 1 'not found' k get ns t
    check "deleting default is refused" 1 'may not be deleted' k delete ns default
    check "delete node" 0 'deleted' k delete node n2
}

# what users may do
rights() {
    check "can-i: the administrator" 0 'yes' k auth can-i delete nodes
    check "can-i --as" 1 '^no' k auth can-i list pods -n t --as jane
    check "create rolebinding" 0 'created' k create rolebinding jane -n t --clusterrole=view --user=jane
    check "can-i --as with a role" 0 '^yes' k auth can-i list pods -n t --as jane
    check "which reads" 0 'p1' k get pods -n t --as jane
    check "and no more" 1 'pods "p1" is forbidden: User "jane" cannot delete resource "pods" in API group "" in the namespace "t"' \
        k delete pod p1 -n t --as jane
    check "nor elsewhere" 1 'cannot list resource "nodes" in API group "" at the cluster scope' k get nodes --as jane
    check "can-i --list" 0 'pods/log +\[\] +\[\] +\[get list watch\]' k auth can-i --list -n t --as jane
    check "a group" 0 'yes' k auth can-i delete nodes --as root --as-group system:masters
    if [ "$minor" -ge 23 ]; then
        check "debug adds a container" 0 'Defaulting debug container name to' k debug p1 --image=busybox -n t
        check "which is there" 0 'busybox' k get pod p1 -n t -o 'jsonpath={.spec.ephemeralContainers[0].image}'
        check "and not to be had by other ways" 1 'pod updates may not change fields' k patch pod p1 -n t --type=json \
            -p '[{"op":"remove","path":"/spec/ephemeralContainers"}]'
    else
        skip "debug"
    fi
}

secure() {
    echo secret-token >"$tmp/tokens"
    start_server --tls --token-file "$tmp/tokens"
    check "TLS and token: get ns" 0 'kube-system' k get ns
    sed 's/secret-token/wrong/' "$tmp/kubeconfig" >"$tmp/kubeconfig.bad"
    if [ "$minor" -ge 24 ]; then
        check "create token" 0 '^[^.]+[.][^.]+[.][^.]+$' k create token default
        token=$(k create token default)
        sed "s/secret-token/$token/" "$tmp/kubeconfig" >"$tmp/kubeconfig.sa"
        check "a service account may what its roles say" 1 'User "system:serviceaccount:default:default" cannot list' \
            env KUBECONFIG="$tmp/kubeconfig.sa" "$kubectl" get pods
        k create rolebinding reader --clusterrole=view --serviceaccount=default:default >/dev/null
        check "which are heard at once" 0 'No resources found' env KUBECONFIG="$tmp/kubeconfig.sa" "$kubectl" get pods
        k create rolebinding writer --clusterrole=edit --serviceaccount=default:default >/dev/null
        k run p --image=x >/dev/null
        token=$(k create token default --bound-object-kind Pod --bound-object-name p)
        sed "s/secret-token/$token/" "$tmp/kubeconfig" >"$tmp/kubeconfig.sa"
        check "a bound token" 0 'pod/p' env KUBECONFIG="$tmp/kubeconfig.sa" "$kubectl" get pods -o name
        k delete pod p --now >/dev/null
        check "ends with its pod" 1 'Unauthorized|logged in' env KUBECONFIG="$tmp/kubeconfig.sa" "$kubectl" get ns
    else
        skip "create token"
    fi
    check "a wrong token is refused" 1 'Unauthorized|logged in' env KUBECONFIG="$tmp/kubeconfig.bad" "$kubectl" get ns
}

manifests
[ -n "$KUBECTLS" ] || { label=kubectl; skip "no kubectl in PATH"; }
for kubectl in $KUBECTLS; do
    export HOME=$tmp/home
    mkdir -p "$HOME"
    start_server
    minor=$("$kubectl" version --client -o json 2>/dev/null | sed -n 's/.*"minor": *"\([0-9]*\).*/\1/p' | head -1)
    label="[1.${minor:=0}]"
    foreground=--cascade=foreground
    discovery
    nodes
    tutorial
    creating
    changing
    refusing
    rights
    custom
    deleting
    check "the server stops cleanly" 0 '' stop_server
    secure
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
