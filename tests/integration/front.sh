#!/usr/bin/env bash
# berth-front, the HTTPS port of kube-scheduler: who may see what, what stands there, and what remains of it while other
# processes are down. The API server is the built-in one, with TLS and a token file.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq kubectl openssl promtool python3; do
    command -v $t >/dev/null || { skip "the HTTPS port" "no $t"; exit 0; }
done

# ---- certificates: two authorities, a user of each, and one of nobody's
cd "$work" || exit 1
ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.crt" 2>/dev/null; }
leaf() { # name subject ca usage
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA "$3.crt" -CAkey "$3.key" -CAcreateserial -days 2 -out "$1.crt" \
        -extfile <(printf 'extendedKeyUsage=%s\nsubjectAltName=DNS:%s' "$4" "$1") 2>/dev/null
}
ca clients && ca proxies && ca strangers
leaf admin /O=system:masters/CN=root clients clientAuth
leaf alice /O=dev/CN=alice clients clientAuth
leaf server-only /O=system:masters/CN=root clients serverAuth
leaf proxy /CN=front-proxy proxies clientAuth
leaf other-proxy /CN=somebody proxies clientAuth
leaf stranger /O=system:masters/CN=root strangers clientAuth
leaf one.example /CN=one.example clients serverAuth
leaf two.example /CN=two.example clients serverAuth
printf 'admin-token\nviewer-token,prometheus,7,"system:monitoring"\nnobody-token,alice,8\n' >tokens

# ---- an API server, Berth, and a second front with certificates and authorities
"$BERTH_BIN/berth-simulator" --port 0 --tls --token-file tokens --kubeconfig-out kubeconfig >simulator.log 2>&1 &
also_stop=$!
check "the API server starts" wait_for_file kubeconfig
start_up --kubeconfig "$work/kubeconfig" --binders 2 --front-port 0 || exit 1
url=$(awk '/^  HTTPS/ {print $2; exit}' up.out)
export KUBECONFIG=$work/kubeconfig
kubectl create -f - >/dev/null <<Y
apiVersion: v1
kind: ConfigMap
metadata: {name: extension-apiserver-authentication, namespace: kube-system}
data:
  client-ca-file: |
$(sed 's/^/    /' clients.crt)
  requestheader-client-ca-file: |
$(sed 's/^/    /' proxies.crt)
  requestheader-allowed-names: '["front-proxy"]'
  requestheader-username-headers: '["X-Remote-User"]'
  requestheader-group-headers: '["X-Remote-Group"]'
  requestheader-extra-headers-prefix: '["X-Remote-Extra-"]'
Y
front() { # port log flags...: another front of the same system
    local port=$1 log=$2
    shift 2
    "$BERTH_BIN/berth-front" --runtime-dir "$run" --secure-port "$port" "$@" >"$log" 2>&1 &
    fronts="$fronts $!"
    also_stop="$also_stop $!"
}
fronts=
base=$((24000 + $$ % 8000)) # below the ports that the kernel hands out
api="--authentication-kubeconfig $work/kubeconfig --authorization-kubeconfig $work/kubeconfig"
cp one.example.crt serving.crt && cp one.example.key serving.key
# shellcheck disable=SC2086
front $base second.log $api --tls-cert-file serving.crt --tls-private-key-file serving.key \
    --tls-sni-cert-key "two.example.crt,two.example.key:two.example,*.two.example" --tls-min-version VersionTLS13
front $((base + 1)) third.log --client-ca-file clients.crt --authorization-always-allow-paths '/healthz,/metrics*' \
    --tls-cipher-suites TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 --show-hidden-metrics-for-version 1.35 \
    --disabled-metrics scheduler_pending_pods,nosuch,process_open_fds --allow-metric-labels scheduler_cache_size,type=nodes
second=https://127.0.0.1:$base third=https://127.0.0.1:$((base + 1))

get() { curl -sk --max-time 20 "$@"; }
code() { get -o /dev/null -w '%{http_code}' "$@"; }
gives() { # code curl-arguments...
    local want=$1 got
    shift
    got=$(code "$@")
    [ "$got" = "$want" ] || { echo "wanted $want, got $got"; return 1; }
}
admin=(-H 'Authorization: Bearer admin-token')
viewer=(-H 'Authorization: Bearer viewer-token')
nobody=(-H 'Authorization: Bearer nobody-token')
as() { printf -- '--cert %s.crt --key %s.key' "$1" "$1"; }

# ---- probes, for anybody
eventually "readyz becomes ok" 30 gives 200 "$url/readyz"
eventually "the others serve" 20 gives 200 "$second/livez"
eventually "also the third" 20 gives 200 "$third/healthz"
check "the plain answer is ok without a newline" test "$(get "$url/livez" | od -An -tx1)" = " 6f 6b"
check "readyz in full" test "$(get "$url/readyz?verbose")" = "[+]leaderElection ok
[+]shutdown ok
[+]sched-handler-sync ok
readyz check passed"
check "livez is ping" test "$(get "$url/livez?verbose")" = "[+]ping ok
livez check passed"
check "exclude" test "$(get "$url/readyz?verbose&exclude=shutdown&exclude=x&exclude=a")" = "[+]leaderElection ok
[+]shutdown excluded: ok
[+]sched-handler-sync ok
warn: some health checks cannot be excluded: no matches for \"a\",\"x\"
readyz check passed"
check "single checks need a permission of their own" gives 403 "$url/readyz/shutdown"
check "a single check" test "$(get "${admin[@]}" "$url/readyz/sched-handler-sync")" = ok
check "an unknown check is 404" gives 404 "${admin[@]}" "$url/readyz/ping"
headers() { get -D - -o /dev/null "$url/healthz" | tr -d '\r'; }
expect "headers of a probe" '^Cache-Control: no-cache, private' headers
expect "nosniff" '^X-Content-Type-Options: nosniff' headers

# ---- who: anonymous, tokens, certificates, proxies
forbidden='{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \"system:anonymous\" cannot get path \"/metrics\"","reason":"Forbidden","details":{},"code":403}'
check "anonymous may not" test "$(get "$url/metrics?pretty=0")" = "$forbidden"
check "for people on lines" test "$(get "$url/metrics")" = "$(jq . <<<"$forbidden")"
check "what does not exist is forbidden first" gives 403 "$url/nosuch"
check "a wrong token is unauthorized" gives 401 -H 'Authorization: Bearer wrong' "$url/metrics"
expect "and says so" '"message":"Unauthorized","reason":"Unauthorized","code":401' get -A '' -H 'Authorization: Bearer wrong' "$url/livez"
check "the administrator's token may" gives 200 "${admin[@]}" "$url/metrics"
check "a monitoring token may" gives 200 "${viewer[@]}" "$url/metrics"
check "but not everything" gives 403 "${viewer[@]}" "$url/configz"
check "nobody in particular may not" gives 403 "${nobody[@]}" "$url/metrics"
expect "and is named" 'User ."alice." cannot get path ."/metrics."' get "${nobody[@]}" "$url/metrics"
expect "HTML in a path is not HTML" 'path ."/&lt;b&gt;&amp;."' get "${nobody[@]}" "$url/%3Cb%3E%26"
check "Basic is no token: anonymous" gives 403 -u a:b "$url/metrics"
# shellcheck disable=SC2046
{
    eventually "a client certificate of the cluster's CA" 20 gives 200 $(as admin) "$second/metrics"
    check "a certificate without rights" gives 403 $(as alice) "$second/metrics"
    check "a stranger's certificate is unauthorized" gives 401 $(as stranger) "$second/metrics"
    check "one that is no client's, too" gives 401 $(as server-only) "$second/metrics"
    check "a token helps a stranger's certificate" gives 200 $(as stranger) "${admin[@]}" "$second/metrics"
    check "a proxy speaks for others" gives 200 $(as proxy) -H 'X-Remote-User: bob' -H 'X-Remote-Group: system:masters' "$second/metrics"
    expect "under their name" 'User ."bob."' get $(as proxy) -H 'X-Remote-User: bob' -H 'X-Remote-Group: dev' "$second/metrics"
    check "another proxy may not" gives 401 $(as other-proxy) -H 'X-Remote-User: bob' -H 'X-Remote-Group: system:masters' "$second/metrics"
    check "headers without a proxy mean nothing" gives 403 -H 'X-Remote-User: bob' -H 'X-Remote-Group: system:masters' "$second/metrics"
    check "headers with a client's certificate mean nothing" gives 403 $(as alice) -H 'X-Remote-User: bob' -H 'X-Remote-Group: system:masters' "$second/metrics"
    check "--client-ca-file alone" gives 200 $(as admin) "$third/flagz"
    check "and nobody to ask about others" gives 403 $(as alice) "$third/flagz"
}
check "--authorization-always-allow-paths with a star" gives 200 "$third/metrics/slis"
check "replaces the default" gives 403 "$third/livez"
check "without --authentication-kubeconfig a token is anonymous" gives 200 -H 'Authorization: Bearer wrong' "$third/metrics"

# ---- TLS
sni() { openssl s_client -connect "127.0.0.1:$base" -servername "$1" </dev/null 2>/dev/null | openssl x509 -noout -subject; }
expect "the given certificate" 'one\.example' sni one.example
expect "another one by name" 'two\.example' sni two.example
expect "a wildcard" 'two\.example' sni www.two.example
check "--tls-min-version refuses TLS 1.2" status 35 curl -sk --tls-max 1.2 "$second/livez"
check "TLS 1.2 elsewhere" gives 200 --tls-max 1.2 "$url/livez"
check "TLS 1.1 nowhere" status 35 curl -sk --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 "$url/livez"
cipher() { openssl s_client -tls1_2 -connect "127.0.0.1:$((base + 1))" </dev/null 2>/dev/null | grep -E '^ +Cipher'; }
expect "--tls-cipher-suites" 'ECDHE-ECDSA-AES128-GCM-SHA256' cipher
bad_flag() { timeout $((30 * PATIENCE)) "$BERTH_BIN/berth-front" --runtime-dir "$run" --secure-port $((base + 2)) "$@" 2>&1; [ $? -eq 1 ]; }
expect "an unknown suite" "Cipher suite FOO not supported or doesn't exist" bad_flag --tls-cipher-suites FOO
expect "an unknown version" 'unknown tls version .{1,2}TLS9' bad_flag --tls-min-version TLS9
expect "a certificate that is not there" 'nosuch.crt' bad_flag --tls-cert-file nosuch.crt --tls-private-key-file serving.key
expect "a key of another certificate" 'private key does not match public key' bad_flag --tls-cert-file one.example.crt --tls-private-key-file two.example.key
expect "a path with a star inside" 'only trailing \* allowed' bad_flag --authorization-always-allow-paths '/a*b'
expect "no certificate, while authorities are being looked up" '/proc/none' bad_flag --cert-dir /proc/none --authentication-kubeconfig "$KUBECONFIG"
expect "a port that is taken" 'failed to create listener' bad_flag --secure-port $base
cp two.example.key serving.key && cp two.example.crt serving.crt
new_pair() { sni one.example | grep -q two.example; }
eventually "a new pair is taken without a restart" 30 new_pair
cp one.example.key serving.key
set -- $fronts
kill -HUP "$1"
eventually "a pair that does not fit is refused" 10 grep -q 'does not match public key' second.log
check "and the old one stays" new_pair

# ---- what stands there
page() { get "${admin[@]}" "$url$1"; }
kubectl create -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec:
  containers:
  - {name: a, image: i, resources: {requests: {cpu: 100m, memory: 1Mi, example.com/gpu: 2}, limits: {memory: 2Mi, example.com/gpu: 2}}}
  - {name: b, image: i, resources: {requests: {cpu: "1"}}}
  initContainers: [{name: c, image: i, resources: {requests: {memory: 8Mi}}}]
Y
page /metrics >metrics.txt
promtool check metrics <metrics.txt >lint.txt 2>&1
check "promtool reads the metrics" test -s metrics.txt -a -z "$(grep -E 'error|parsing' lint.txt)"
for p in watcher scheduler binder-1 binder-2 front; do
    check "berth_process_resident_memory_bytes of $p" grep -q "^berth_process_resident_memory_bytes{process=\"$p\"} " metrics.txt
done
sum() { awk -v m="$1" 'index($1, "berth_" m "{") == 1 {s += $2} $1 == m {t = $2} END {exit !(s > 0 && s - t < 1 && t - s < 1)}' metrics.txt; }
check "the whole is the sum of its processes" sum process_resident_memory_bytes
check "each family once" test -z "$(grep '^# TYPE' metrics.txt | sort | uniq -d)"
check "scheduler's" grep -q '^scheduler_pending_pods' metrics.txt
check "watcher's" grep -q '^leader_election_master_status' metrics.txt
check "binders'" grep -q '^berth_binder_held' metrics.txt
metric_headers() { get "${admin[@]}" -D - -o /dev/null "$url/metrics" | tr -d '\r'; }
expect "content type" '^Content-Type: text/plain; version=0.0.4; charset=utf-8; escaping=underscores$' metric_headers
expect "start time" '^Process-Start-Time-Unix: [0-9]+$' metric_headers
get "$third/metrics" >others.txt
check "--disabled-metrics" no_line_with '^scheduler_pending_pods' cat others.txt
check "but not those of the process itself" grep -q '^process_open_fds ' others.txt
expect "counted as upstream counts" '^disabled_metrics_total 3$' cat others.txt
expect "hidden are those that exist" '^hidden_metrics_total 1$' cat others.txt
expect "--allow-metric-labels" '^scheduler_cache_size\{type="nodes"\}' cat others.txt
expect "the others are unexpected" '^scheduler_cache_size\{type="unexpected"\}' cat others.txt
expect "and counted" '^cardinality_enforcement_unexpected_categorizations_total [1-9]' cat others.txt
expect "a metric's name is checked" 'metrics.disabledMetrics: Invalid value: .{1,2}a b' bad_flag --disabled-metrics 'a b'
check "HEAD" gives 200 "${admin[@]}" -I "$url/metrics"
check "gzip" bash -c "curl -sk -H 'Authorization: Bearer admin-token' -H 'Accept-Encoding: gzip' $url/metrics | gzip -t"
check "gzip with q=0 is none" bash -c "curl -sk -H 'Authorization: Bearer admin-token' -H 'Accept-Encoding: gzip;q=0' $url/metrics | grep -q '^# HELP'"
check "POST is no way to read" gives 405 "${admin[@]}" -X POST "$url/metrics"
expect "SLIs" '^kubernetes_healthcheck\{name="ping",type="livez"\} 1$' page /metrics/slis
expect "and counts" '^kubernetes_healthchecks_total\{name="leaderElection",status="success",type="readyz"\} [1-9]' page /metrics/slis
json() { page "$1" | jq -e "$2"; }
check "configz" json /configz '.componentconfig | .kind == "KubeSchedulerConfiguration" and .parallelism == 16 and .leaderElection.leaseDuration == "15s"'
flagz=(-H 'Accept: application/json;v=v1beta1;g=config.k8s.io;as=Flagz')
check "flagz as JSON" bash -c "$(declare -f get); get ${admin[*]@Q} ${flagz[*]@Q} $url/flagz | jq -e '.kind == \"Flagz\" and .apiVersion == \"config.k8s.io/v1beta1\" and .flags[\"bind-address\"] == \"127.0.0.1\"'"
expect "flagz as text" '^bind-address:127.0.0.1$' page /flagz
expect "lists in it" '^authorization-always-allow-paths:\[/healthz /readyz /livez\]$' page /flagz
expect "statusz as text" '^Paths  /configz /flagz /healthz /livez /metrics /readyz$' page /statusz
check "statusz as JSON" bash -c "$(declare -f get); get ${admin[*]@Q} -H 'Accept: application/json;v=v1alpha1;g=config.k8s.io;as=Statusz' $url/statusz | jq -e '.kind == \"Statusz\" and .emulationVersion == \"1.36\"'"
check "no other form" gives 406 "${admin[@]}" -H 'Accept: application/yaml' "$url/flagz"
check "no profiles" gives 404 "${admin[@]}" "$url/debug/pprof/heap"
expect "and why" 'C program' page /debug/pprof/
check "not found" test "$(page /nosuch)" = "404 page not found"

# ---- pods
want='kube_pod_resource_limit{namespace="default",node="",pod="waits",priority="0",resource="example.com/gpu",scheduler="default-scheduler",unit=""} 2
kube_pod_resource_limit{namespace="default",node="",pod="waits",priority="0",resource="memory",scheduler="default-scheduler",unit="bytes"} 2097152
kube_pod_resource_request{namespace="default",node="",pod="waits",priority="0",resource="cpu",scheduler="default-scheduler",unit="cores"} 1.1
kube_pod_resource_request{namespace="default",node="",pod="waits",priority="0",resource="example.com/gpu",scheduler="default-scheduler",unit=""} 2
kube_pod_resource_request{namespace="default",node="",pod="waits",priority="0",resource="memory",scheduler="default-scheduler",unit="bytes"} 8388608'
resources() { page /metrics/resources | grep -v '^#'; }
same_resources() { [ "$(resources)" = "$want" ] || { resources; return 1; }; }
eventually "what a pod asks for" 20 same_resources
kubectl create -f - >/dev/null <<Y
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 1Gi, pods: "10", example.com/gpu: "2"}, capacity: {cpu: "4", memory: 1Gi, pods: "10", example.com/gpu: "2"}, conditions: [{type: Ready, status: "True"}]}
Y
want=${want//node=\"\"/node=\"n1\"}
eventually "and on which node it is" 20 same_resources
kubectl delete pod waits --wait=false >/dev/null
want=
eventually "a pod that is gone is gone" 20 same_resources

# ---- verbosity of all processes
expect "PUT /debug/flags/v" '^successfully set klog.logging.verbosity to 4$' get "${admin[@]}" -X PUT -d 4 "$url/debug/flags/v"
check "GET is not acceptable" gives 406 "${admin[@]}" "$url/debug/flags/v"
check "no number" gives 400 "${admin[@]}" -X PUT -d x "$url/debug/flags/v"
check "not on the plain ports" gives 405 -X PUT -d 4 "http://127.0.0.1:$(metrics_port scheduler)/debug/flags/v"
check "and not for everybody" gives 403 "${viewer[@]}" -X PUT -d 9 "$url/debug/flags/v"

# ---- without the others
stop() { kill -STOP "$(pid_of "$1")"; }
errors() { page /metrics | awk -v p="$1" '$1 == "berth_front_scrape_errors_total{process=\"" p "\"}" {print $2}'; }
stop berth-scheduler
check "livez does not care for a scheduler that hangs" gives 200 --max-time 60 "$url/livez"
check "readyz does" gives 500 "$url/readyz"
expect "and says what" '^\[-\]sched-handler-sync failed: reason withheld' get "$url/readyz"
expect "in detail to who may know" '^internal server error: berth-scheduler does not answer' page /readyz/sched-handler-sync
check "metrics come without it" no_line_with '^berth_process_open_fds{process="scheduler"}' page /metrics
check "configz is unavailable" gives 503 "${admin[@]}" "$url/configz"
kill -CONT "$(pid_of berth-scheduler)"
eventually "it is back" 20 gives 200 "$url/readyz"
for p in berth-scheduler berth-watcher 'berth-binder .*--instance 1'; do
    kill -9 "$(pid_of "$p")"
    check "livez after kill -9 of ${p%% *}" gives 200 "$url/livez"
    check "metrics after it" gives 200 "${admin[@]}" "$url/metrics"
    eventually "and back again" 30 gives 200 "$url/readyz"
done
all_there() { page /metrics >metrics.txt; for p in watcher scheduler binder-1 binder-2; do grep -q "^berth_process_open_fds{process=\"$p\"}" metrics.txt || { echo "no $p"; return 1; }; done; }
eventually "all are there again" 30 all_there
kill -9 "$(pid_of berth-front)"
eventually "the front itself comes back" 20 gives 200 "$url/readyz"

# ---- hostile
raw() { printf '%b' "$1" | timeout 60 openssl s_client -quiet -connect "${url#https://}" 2>/dev/null | head -c 200; }
raw 'nonsense\r\n\r\n' >/dev/null
expect "no version" '^HTTP/1.1 (400|505)' raw 'GET /livez HTTP/9.9\r\n\r\n'
check "what is no request harms nobody" gives 200 "$url/livez"
check "plain HTTP on the TLS port" bash -c "! curl -s --max-time 5 http://${url#https://}/livez"
check "a long token" gives 401 -H "Authorization: Bearer $(head -c 6000 /dev/zero | tr '\0' x)" "$url/metrics"
check "headers without end" bash -c "code=\$(curl -sk -o /dev/null -w '%{http_code}' -H \"A: $(head -c 60000 /dev/zero | tr '\0' x)\" $url/livez); [ \$code = 431 ] || [ \$code = 000 ]"
check "a body without end" gives 413 "${admin[@]}" -X PUT --data-binary "@$BERTH_BIN/berth-front" "$url/debug/flags/v"
check "dots and slashes" gives 404 "${admin[@]}" --path-as-is "$url/../../etc/passwd"
check "a NUL in the path" gives 400 "${admin[@]}" "$url/livez%00x"
check "many excludes" gives 200 "$url/readyz?$(for i in $(seq 200); do printf 'exclude=%s&' "$i"; done)"
tokens() { # many wrong tokens at once, and nothing is kept of them for ever
    local i
    for i in $(seq 60); do printf 'url = "%s/metrics"\nheader = "Authorization: Bearer wrong-%s"\noutput = /dev/null\nnext\n' "$url" "$i"; done >curlrc
    curl -sk --parallel --parallel-max 20 -K curlrc >/dev/null
    gives 200 "${admin[@]}" "$url/metrics"
}
check "many wrong tokens at once" tokens
python3 - "${url##*:}" <<'P' &
import socket, sys, time
held = []
for i in range(100):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.send(b"\x16\x03\x01")
    held.append(s)
time.sleep(300)
P
holder=$!
check "a hundred handshakes that never end" gives 200 --max-time 60 "$url/livez"
kill $holder 2>/dev/null
wait $holder 2>/dev/null

# ---- the end
kill -TERM "$1"
wait "$1"
check "SIGTERM ends it with 0" test $? -eq 0
check "and nobody listens any more" status 7 curl -sk --max-time 60 "$second/livez"
