#!/usr/bin/env bash
# berth-front among strangers: made-up tokens without end, connections that say nothing or drip, requests that two
# readers would read differently. The API server is played (front_flood.py): it says how much it is asked.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl openssl python3; do
    command -v $t >/dev/null || { skip "strangers at the HTTPS port" "no $t"; exit 0; }
done
flood() { python3 "$here/front_flood.py" "$@"; }

cd "$work" || exit 1
mkdir run
python3 "$here/front_flood.py" api api.port 2>api.log &
also_stop="$also_stop $!"
check "the API server starts" wait_for_file api.port
api=$(cat api.port)
cat >kubeconfig <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:$api"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
Y
port=$((24000 + $$ % 8000)) # below the ports that the kernel hands out
"$BERTH_BIN/berth-front" --runtime-dir "$work/run" --secure-port $port --bind-address 0.0.0.0 \
    --authentication-kubeconfig kubeconfig --authorization-kubeconfig kubeconfig \
    --authentication-skip-lookup >front.log 2>&1 &
front=$!
also_stop="$also_stop $front"
url=https://127.0.0.1:$port
metrics() { curl -sk --max-time 20 -H 'Authorization: Bearer good-metrics' "$url/metrics"; }
livez() { curl -sk --max-time 20 "$url/livez" | grep -qx ok; }
eventually "the front is there" 20 livez

# ---- tokens
expect "many made-up tokens take no memory" ' KiB$' flood tokens $port $front
eventually "what they asked is taken back" 60 bash -c "curl -s 127.0.0.1:$api/stats | grep -q '\"open\": 0'"
expect "reviews in flight have a bound, the others hear 429" '^at most 16 at once, 16 wait' flood bound $port "$api"
expect "so have access reviews" '^at most 16 at once, 16 wait' flood bound $port "$api" /stuck
expect "one question for all who have one token" '^one question for 20 clients' flood shared $port "$api"
expect "good tokens are served among made-up ones" '^60 good tokens' flood valid $port "$api"

# ---- connections
expect "one address has 32, probes more" '^32, a probe' flood crowd $port
expect "of another host, 32 and no probe" '^(32, no probe|no address)$' flood crowd_from_afar $port
expect "512 that drip do not keep a probe out" ' 0 at the end$' flood dripping $port
expect "whoever is slow is not waited for" '^all ended' flood slow $port
check "and all is as before" livez

# ---- requests
expect "what two readers could read differently is 400" ' 0 taken for requests$' flood shapes $port
raw() { printf '%b' "$1" | timeout 120 openssl s_client -quiet -connect "127.0.0.1:$port" 2>/dev/null | head -n 1 | tr -d '\r'; }
expect "as another client sees it" '^HTTP/1.1 400 Bad Request$' raw 'GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'
expect "and what makes sense is answered" '^HTTP/1.1 200 OK$' raw 'GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
check "a body in chunks" bash -c "[ \$(curl -sk -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer good-1' -H 'Transfer-Encoding: chunked' -X PUT -d 2 $url/debug/flags/v) = 200 ]"

# ---- numbers
check "what is no TLS is none" bash -c "! curl -s --max-time 20 http://127.0.0.1:$port/livez"
metrics >metrics.txt
for why in address malformed reserve slow handshake; do
    check "refused connections are counted: $why" grep -qE "^berth_front_connections_refused_total\{why=\"$why\"\} [1-9]" metrics.txt
done
check "connections are" grep -qE '^berth_front_connections [1-9]' metrics.txt
for what in refused canceled remembered; do
    check "reviews: $what" grep -qE "^berth_front_token_reviews_total\{what=\"$what\"\} [1-9]" metrics.txt
done
kill -TERM $front
wait $front
check "SIGTERM ends it with 0" test $? -eq 0
