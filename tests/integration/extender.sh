#!/usr/bin/env bash
# HTTP extenders with real processes: one that filters by names, one by whole nodes, one that scores, one with a say in
# preemption, one that binds; one that hangs, one that talks rubbish, one whose failures do not matter, one behind TLS that asks
# for a certificate. Each is interested in pods of its own resource only.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "extenders" "no kubectl"; exit 0; }
server=$BERTH_BIN/../tests/integration/extender_server
[ -x "$server" ] || { skip "extenders" "extender_server is not built"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@" </dev/null; }

start_extenders() { # port, 0 = any
    rm -f "$work/port"
    "$server" --port "$1" --port-file "$work/port" --kubeconfig "$work/kubeconfig" >"$work/extender.log" 2>&1 &
    extender_pid=$!
    also_stop="$extender_pid $nginx_pid"
    wait_for_file "$work/port"
    port=$(cat "$work/port")
}
nginx_pid=
start_extenders 0
check "the extenders start" test -s "$work/port"

# TLS with client certificates and HTTP/2: nginx in front of the same extenders
tls_front() {
    local d=$work/tls
    mkdir -p "$d"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca -keyout "$d/ca.key" -out "$d/ca.pem" 2>/dev/null
    for who in server client; do
        openssl req -newkey rsa:2048 -nodes -subj "/CN=$who" -keyout "$d/$who.key" -out "$d/$who.csr" 2>/dev/null
        openssl x509 -req -in "$d/$who.csr" -CA "$d/ca.pem" -CAkey "$d/ca.key" -CAcreateserial -days 2 \
            -extfile <(echo "subjectAltName=DNS:extender.test") -out "$d/$who.pem" 2>/dev/null
    done
    tls_port=$((20000 + RANDOM % 20000))
    cat >"$d/nginx.conf" <<N
daemon off; pid $d/nginx.pid; error_log $d/error.log;
events {}
http {
    access_log $d/access.log; client_body_temp_path $d; proxy_temp_path $d;
    fastcgi_temp_path $d; uwsgi_temp_path $d; scgi_temp_path $d;
    log_format who '\$server_protocol \$ssl_client_s_dn'; access_log $d/who.log who;
    server {
        listen 127.0.0.1:$tls_port ssl http2;
        ssl_certificate $d/server.pem; ssl_certificate_key $d/server.key;
        ssl_client_certificate $d/ca.pem; ssl_verify_client on;
        location / { proxy_pass http://127.0.0.1:$port; }
    }
}
N
    nginx -c "$d/nginx.conf" -e "$d/error.log" 2>/dev/null &
    nginx_pid=$!
    also_stop="$extender_pid $nginx_pid"
    wait_for_file "$d/nginx.pid"
}
if command -v nginx >/dev/null; then tls_front; else tls_port=1; fi

extender() { # resource, more
    printf -- '- {managedResources: [{name: test.berth/%s, ignoredByScheduler: true}], %s}\n' "$1" "$2"
}
{
    printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n'
    at="urlPrefix: http://127.0.0.1:$port"
    extender names "$at/only-b, filterVerb: filter, nodeCacheCapable: true"
    extender whole "$at/never-a, filterVerb: filter"
    extender likes "$at/likes-a2, prioritizeVerb: prioritize, weight: 100, nodeCacheCapable: true"
    extender spares "$at/spares-a1, preemptVerb: preempt"
    extender binds "$at/binder, bindVerb: bind"
    extender hangs "$at/hangs, filterVerb: filter, nodeCacheCapable: true, httpTimeout: 1s"
    extender rubbish "$at/rubbish, filterVerb: filter, nodeCacheCapable: true"
    extender ignored "$at/fails, filterVerb: filter, nodeCacheCapable: true, ignorable: true"
    extender tls "urlPrefix: 'https://127.0.0.1:$tls_port/only-b', filterVerb: filter, nodeCacheCapable: true, tlsConfig: {
        serverName: extender.test, caFile: $work/tls/ca.pem, certFile: $work/tls/client.pem, keyFile: $work/tls/client.key}"
} >"$work/config.yaml"
[ "$tls_port" -ne 1 ] || sed -i 's/, tlsConfig:.*/}/; /serverName: extender.test/d' "$work/config.yaml"
start_up --config "$work/config.yaml" || exit 1

pod() { # name, resource, more of the spec
    cat <<P
---
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {app: $1}}
spec:
  containers: [{name: c, image: pause, resources: {requests: {cpu: 100m, test.berth/$2: "1"}, limits: {test.berth/$2: "1"}}}]
${3:+  $3}
P
}
create() { pod "$@" | kubectl --cache-dir "$work/cache" create -f - >/dev/null; }
node_of() { k get pod "$1" -o jsonpath='{.spec.nodeName}'; }
# shellcheck disable=SC2053 # $2 is a pattern
on() { [[ $(node_of "$1") == $2 ]]; }
bound() { [ -n "$(node_of "$1")" ]; }
heard() { curl -fsS "http://127.0.0.1:$port/heard"; }
last() { curl -fsS "http://127.0.0.1:$port/last?path=$1"; }
message() { k get pod "$1" -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}: {.status.conditions[?(@.type=="PodScheduled")].message}'; }
says() { [[ $(message "$1") == "$2" ]]; }

# filter
create names names
eventually "filter by names: only nodes b" 10 on names 'node-b*'
expect "it was sent names, and the whole pod" '^\{"Pod":\{"metadata":\{"name":"names".*"uid":.*"creationTimestamp":"20.*"spec":\{.*"containers":\[\{"name":"c","image":"pause".*,"Nodes":null,"NodeNames":\["node-' last /only-b/filter
check "without kind and managed fields" no_line_with '"kind":"Pod"|managedFields' last /only-b/filter
create whole whole
eventually "filter by whole nodes: never on a" 10 on whole 'node-b*'
expect "it was sent nodes with labels, status and allocatable" '"Nodes":\{"metadata":\{\},"items":\[\{"metadata":\{"name":"node-.*"labels":\{.*"disk":.*"status":\{.*"allocatable":\{.*"NodeNames":null\}$' last /never-a/filter
k label node node-b2 fresh=yes >/dev/null
fresh() { k delete pod whole --ignore-not-found --wait=false --grace-period=0 --force >/dev/null 2>&1; create whole whole; sleep 0.3; last /never-a/filter | grep -q '"fresh":"yes"'; }
eventually "and hears of their changes" 10 fresh

# prioritize
create likes likes
eventually "prioritize: the node it likes" 10 on likes node-a2

# bind; at first the extender does not know where the API server is
create binds binds
eventually "bind: a failure sends the pod back" 10 says binds "SchedulerError: failed bind with extender at URL http://127.0.0.1:$port/binder/bind, code 500"
cp "$KUBECONFIG" "$work/kubeconfig"
eventually "the extender writes it" 15 bound binds
expect "it was asked" '^\{"PodName":"binds","PodNamespace":"default","PodUID":"[0-9a-f-]+","Node":"node-' last /binder/bind
scheduled() { k get events --field-selector "reason=Scheduled,involvedObject.name=$1" -o jsonpath='{.items[*].message}' | grep -q "Successfully assigned default/$1 to node-"; }
eventually "its Scheduled event" 10 scheduled binds

# errors
create rubbish rubbish
eventually "rubbish is an error of the pod" 10 says rubbish "SchedulerError: invalid character '<' looking for beginning of value"
create ignored ignored
eventually "failures of an ignorable one do not matter" 10 bound ignored
if [ "$tls_port" -ne 1 ]; then
    create tls tls
    eventually "TLS with a client certificate" 10 on tls 'node-b*'
    expect "over HTTP/2, as the client it is" '^HTTP/2.0 CN=client$' cat "$work/tls/who.log"
else
    skip "TLS with a client certificate" "no nginx"
fi

# one that hangs: a second each time, and nothing else
metrics=http://127.0.0.1:$(metrics_port scheduler)
create hangs hangs
eventually "it is asked" 10 bash -c "curl -fsS http://127.0.0.1:$port/heard | grep -q /hangs/filter"
expect "the scheduler is alive meanwhile" '^ok$' curl -fsS --max-time 30 "$metrics/livez"
check "and answers questions" timeout 60 "$BERTH_BIN/berth" queue --runtime-dir "$run"
k run other --image=pause >/dev/null
eventually "other pods are scheduled" 15 bound other
eventually "the pod hears why" 15 says hangs "SchedulerError: Post \"http://127.0.0.1:$port/hangs/filter\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
for i in 1 2 3 4; do create "hangs-too-$i" hangs; done
resting() { curl -fsS "$metrics/metrics" | grep -q 'berth_extender_errors_total{.*hangs.*reason="resting"} [1-9]'; }
eventually "after a few times it is left alone" 40 resting
k delete pod hangs hangs-too-{1..4} --wait=false --grace-period=0 --force >/dev/null 2>&1

# preemption: the cluster is full of cheap pods, and a1 is spared
cat >"$work/low.yaml" <<Y
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: low}
spec:
  replicas: 9
  selector: {matchLabels: {app: low}}
  template:
    metadata: {labels: {app: low}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: pause, resources: {requests: {cpu: "3500m"}}}]}
Y
k create -f "$work/low.yaml" >/dev/null
full() { [ "$(k get pods -l app=low -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .)" -ge 8 ]; }
eventually "the nodes are full" 20 full
pod wins spares 'priorityClassName: high' | sed 's/cpu: 100m/cpu: "3500m"/' >"$work/wins.yaml"
k create -f "$work/wins.yaml" >/dev/null
eventually "preempt: room is made" 20 bound wins
expect "not on the spared node" '^node-(a2|b1|b2)$' node_of wins
expect "it was sent the victims" '"NodeNameToVictims":\{"node-.*"Pods":\[\{"metadata":\{"name":"low-.*"nodeName":"node-.*"NumPDBViolations":0' last /spares-a1/preempt
k delete deployment low >/dev/null

# the extenders go away and come back
kill "$extender_pid"
wait "$extender_pid" 2>/dev/null
create away names
eventually "nobody there" 10 says away "SchedulerError: Post \"http://127.0.0.1:$port/only-b/filter\": dial tcp 127.0.0.1:$port: connect: connection refused"
start_extenders "$port"
eventually "it is asked again" 30 on away 'node-b*'

# without a cluster
pod sim whole >"$work/sim.yaml"
expect "berth simulate asks them too" 'sim +Scheduled +node-b' "$BERTH_BIN/berth" simulate --config "$work/config.yaml" -f config/example-cluster.yaml -f "$work/sim.yaml"

# metrics, and the end in the middle of a decision
curl -fsS "$metrics/metrics" >"$work/scheduler.prom"
expect "requests are counted" 'berth_extender_requests_total\{extender="http://127.0.0.1:[0-9]+/only-b",verb="filter"\} [1-9]' cat "$work/scheduler.prom"
expect "errors are counted" 'berth_extender_errors_total\{extender="http://127.0.0.1:[0-9]+/rubbish",verb="filter",reason="reply"\} [1-9]' cat "$work/scheduler.prom"
if command -v promtool >/dev/null; then
    check "promtool check metrics" bash -c "promtool check metrics <$work/scheduler.prom"
else
    skip "promtool check metrics" "no promtool"
fi
expect "the log is not flooded" '^[0-9]$|^[1-3][0-9]$' bash -c "grep -c 'Extender failed\|Skipping extender' $run/scheduler.log"
create hangs2 hangs
asked_of_it() { last /hangs/filter | grep -q '"name":"hangs2"'; }
eventually "another one is asked" 20 asked_of_it
kill -INT "$up_pid"
wait "$up_pid"
expect "Ctrl-C ends with status 0, also while a decision waits" '^0$' echo $?
up_pid=

# a binder whose failures do not matter
{
    printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n'
    extender binds "urlPrefix: http://127.0.0.1:$port/fails, bindVerb: bind, ignorable: true"
} >"$work/config.yaml"
start_up --config "$work/config.yaml" || exit 1
create binds2 binds
eventually "an ignorable binder fails: a binder of ours binds" 10 bound binds2
expect "it was asked first" '"/fails/bind":1' heard
eventually "one Scheduled event" 10 scheduled binds2
kill -INT "$up_pid"
wait "$up_pid"
up_pid=
