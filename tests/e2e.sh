#!/usr/bin/env bash
# Runs Kubernetes' own end-to-end program, unmodified, against a fresh `berth up`, and prints a table (docs/e2e.md).
# usage: E2E=PATH/e2e.test tests/e2e.sh [FOCUS [SKIP]]      (regular expressions of Ginkgo; default: sig-scheduling)
#   E2E_TIMEOUT=30m  bound on the whole run;  BERTH_BIN=build/bin
#   E2E_PIECES=FILE  run its lines side by side against the one cluster: NAME#FOCUS[#SKIP], instead of FOCUS
# Status 1 when a test failed, 2 when nothing could be run. The program's output: a .log beside each .json of the table.
set -u
cd "$(dirname "$0")/.." || exit 2
focus=${1:-'\[sig-scheduling\]'} skip=${2:-'\[Feature:|\[FeatureGate:|\[Alpha\]|GPU'} bin=${BERTH_BIN:-build/bin}
[ -x "${E2E:-}" ] || { sed -n 2,5p "$0" >&2; exit 2; }
out=$(mktemp -d "${TMPDIR:-/tmp}/berth-e2e-XXXXXX") || exit 2
"$bin/berth" up --no-example --front-port 0 --runtime-dir "$out/run" >"$out/up.log" 2>&1 &
up=$!
trap 'kill "$up" 2>/dev/null; wait "$up" 2>/dev/null' EXIT
export KUBECONFIG=$out/run/kubeconfig
until grep -q 'is up' "$out/up.log"; do
    kill -0 "$up" 2>/dev/null || { cat "$out/up.log" >&2; exit 2; }
    sleep 0.2
done

# The suite waits a minute, before each serial test, for these three on every node.
{
    for i in 1 2 3; do
        cat <<Y
---
apiVersion: v1
kind: Node
metadata: {name: node-$i, labels: {kubernetes.io/hostname: node-$i, kubernetes.io/os: linux, topology.kubernetes.io/zone: zone-$i}}
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110", ephemeral-storage: 100Gi}
Y
    done
    cat <<Y # tests of claims skip themselves without one
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: example.com/simulated
Y
    for d in kube-proxy fluentd-elasticsearch node-problem-detector; do
        cat <<Y
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: $d, namespace: kube-system}
spec:
  selector: {matchLabels: {app: $d}}
  template:
    metadata: {labels: {app: $d}}
    spec:
      priorityClassName: system-node-critical
      tolerations: [{operator: Exists}]
      containers: [{name: $d, image: $d}]
Y
    done
} | kubectl apply --server-side -f - >/dev/null || exit 2

piece() { # name, focus, skip
    "$E2E" -kubeconfig "$KUBECONFIG" -provider=skeleton -disable-log-dump --ginkgo.no-color --ginkgo.v \
        --ginkgo.focus="$2" --ginkgo.skip="$3" --ginkgo.timeout="${E2E_TIMEOUT:-30m}" \
        --ginkgo.json-report="$out/$1.json" >"$out/$1.log" 2>&1
}
rc=0
if [ -n "${E2E_PIECES:-}" ]; then
    pids=()
    while IFS='#' read -r name of but; do
        [ -n "$of" ] || continue
        piece "$name" "$of" "$skip${but:+|$but}" &
        pids+=("$!")
    done <"$E2E_PIECES"
    for p in "${pids[@]}"; do wait "$p" || rc=1; done
else
    piece e2e "$focus" "$skip" || rc=1
fi
jq -r '.[].SpecReports[] | select(.LeafNodeType == "It" and .State != "skipped" or .State == "skipped" and .RunTime > 0)
       | "\(.State)\t\(.RunTime / 1e8 | round / 10)\t\([.ContainerHierarchyTexts[], .LeafNodeText] | join(" "))"' "$out"/*.json |
    sort -t$'\t' -k1,1 -k2,2nr | awk -F'\t' '{printf "%-8s %7.1f s  %s\n", $1, $2, $3; n[$1]++}
    END {printf "%d passed, %d failed, %d skipped\n", n["passed"], n["failed"] + n["timedout"] + n["panicked"] + n["interrupted"], n["skipped"]}'
echo "output: $out/*.log"
exit "$rc"
