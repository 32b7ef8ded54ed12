#!/usr/bin/env bash
# `berth up --kubeconfig` against an API server it did not start, over TLS with a CA of its own: the processes trust that CA
# alone, kubectl works with the kubeconfig the server wrote, and hostile requests leave everybody healthy.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "TLS" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@" </dev/null; }

"$BERTH_BIN/berth-simulator" --tls --port 0 --kubeconfig-out "$work/tls.kubeconfig" >"$work/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; finish' EXIT
eventually "the server writes its kubeconfig" 10 test -s "$work/tls.kubeconfig" || exit 1
export KUBECONFIG=$work/tls.kubeconfig
expect "it serves HTTPS" 'server: https://' cat "$KUBECONFIG"
check "kubectl needs no questions" k get nodes
start_up --kubeconfig "$KUBECONFIG" --binders 3 || exit 1
check "create the example cluster" k create -f config/example-cluster.yaml
running() { [ "$(k get pods -l app=hello --no-headers | grep -c ' Running ')" -eq 3 ]; }
eventually "its pods run" 15 running
for p in 'huge cpu 9223372036854775807' 'e400 memory 1e400'; do
    read -r name resource amount <<<"$p"
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: x, resources: {requests: {%s: "%s"}}}]}\n' \
        "$name" "$resource" "$amount"
done >"$work/hostile.yaml"
check "create pods with absurd requests" k create -f "$work/hostile.yaml"
failed() { k get events --field-selector "reason=FailedScheduling,involvedObject.name=$1" -o jsonpath='{.items[*].message}' | grep -q "$2"; }
eventually "the cpu fits nowhere" 10 failed huge '4 Insufficient cpu'
eventually "the memory fits nowhere" 10 failed e400 '4 Insufficient memory'
expect "the scheduler is ready still" '^ok$' curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/readyz"
kill -INT "$up_pid"
wait "$up_pid"
expect "the end is clean" '^0$' echo $?
up_pid=
