#!/usr/bin/env bash
# HTTP/2: Berth behind a TLS front that speaks it (nghttpx). Requests share few connections; the front goes away politely
# (GOAWAY) and rudely, and nothing is lost or written twice.
# shellcheck disable=SC2016 # awk and nghttpx have variables of their own
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in nghttpx openssl jq curl; do
    command -v $t >/dev/null || { skip "HTTP/2" "no $t"; exit 0; }
done
audit=$work/audit.log access=$work/access.log
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=front -addext 'subjectAltName=IP:127.0.0.1' \
    -keyout "$work/front.key" -out "$work/front.crt" 2>/dev/null || { not_ok "openssl makes a certificate"; exit 1; }

"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/plain.yaml" --audit-log-path "$audit" --faults delay-ms=20 >"$work/simulator.log" 2>&1 &
sim=$!
wait_for_file "$work/plain.yaml" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
plain=$(awk '$1 == "server:" {print $2}' "$work/plain.yaml")
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
front() {
    nghttpx --conf=/dev/null -f "127.0.0.1,$port" -b "127.0.0.1,${plain##*:};;" --workers=1 --errorlog-file="$work/front.log" \
        --accesslog-file="$access" --accesslog-format='$alpn $remote_port $method $status $request_time $http_user_agent' \
        --frontend-read-timeout=600s --backend-read-timeout=600s --http2-max-concurrent-streams=200 \
        --frontend-http2-read-timeout=600s "$work/front.key" "$work/front.crt" >>"$work/front.out" 2>&1 &
    also_stop=$!
}
cut_front() { # its worker holds the port for a moment longer than the process that is killed
    local worker end=$((SECONDS + 20 * PATIENCE))
    worker=$(pgrep -P "$also_stop")
    kill -9 "$also_stop"
    wait "$also_stop" 2>/dev/null
    while [ -n "$worker" ] && kill -0 "$worker" 2>/dev/null && [ "$SECONDS" -le "$end" ]; do sleep 0.05; done
}
front
trap 'kill "$sim" 2>/dev/null; finish' EXIT
curl_front() { curl -fsS --cacert "$work/front.crt" "$@"; }
answers() { curl_front -o /dev/null "https://127.0.0.1:$port/readyz"; }
eventually "the front is up" 10 answers || exit 1
expect "it speaks HTTP/2" '^2$' curl_front -o /dev/null -w '%{http_version}' "https://127.0.0.1:$port/readyz"
cat >"$work/h2.yaml" <<K
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$port", certificate-authority: front.crt}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
K
load() { # prefix pods
    "$BERTH_BIN/berth" load synthetic --kubeconfig "$work/plain.yaml" --prefix "$1" --node-count 60 --pod-count "$2" \
        --timeout $((60 * PATIENCE))s -o json >"$work/load.$1" 2>&1
}
start_up --kubeconfig "$work/h2.yaml" --binders 2 || exit 1
check "2,000 pods through it" load first 2000

# ---- what went over the wire
expect "nothing but a watch spoke HTTP/1.1" '^0$' awk '$6 ~ /^berth-(watcher|binder)/ && $1 != "h2" && ($6 !~ /watcher/ || $3 != "GET") {n++}
    END {print n + 0}' "$access"
# Binders: requests, connections, and the sum of the requests' times. By the time that the load took this is how many were
# under way at once: more than the connections is not possible without multiplexing.
awk '$6 ~ /^berth-binder/ {n++; c[$2] = 1; s += $5} END {k = 0; for (i in c) k++; print n, k, s}' "$access" >"$work/wire"
read -r requests connections seconds <"$work/wire"
took=$(jq -r .seconds <(tail -n 1 "$work/load.first"))
echo "# $requests requests of 2 binders over $connections connections, $seconds s of requests in $took s"
expect "binds and events came through it" '^yes$' awk "BEGIN {print ($requests >= 3000) ? \"yes\" : \"no\"}"
expect "over few connections" '^yes$' awk "BEGIN {print ($connections <= 12) ? \"yes\" : \"no\"}"
expect "many at a time on each" '^yes$' awk "BEGIN {print ($seconds > 1.5 * $took * $connections) ? \"yes\" : \"no\"}"

# ---- the front goes
load second 1500 & job=$!
sleep 0.4
kill -QUIT "$also_stop" # what is under way ends, then GOAWAY
sleep 0.2
cut_front
front
wait $job
expect "a restart of the front under load" '"bound":1500,' cat "$work/load.second"
load third 1500 & job=$!
for _ in 1 2 3; do
    sleep 0.3
    cut_front
    front
done
wait $job
expect "three more, by kill -9" '"bound":1500,' cat "$work/load.third"
expect "no pod was bound twice" '^0$' bound_twice "$audit"
for p in watcher scheduler; do
    eventually "$p is ready" 20 curl -fsS "http://127.0.0.1:$(metrics_port $p)/readyz"
done
