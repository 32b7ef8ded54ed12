#!/usr/bin/env bash
# The whole pipeline with real processes and the built-in API server: throughput, latency and the CPU time
# of each process per pod.
# usage: bench/pipeline.sh [BINDIR]     NODES=5000 PODS=20000 BINDERS=2 PARALLEL=64 RECORD=off|summary|full
set -euo pipefail
bin=$(cd "${1:-build/bin}" && pwd)
NODES=${NODES:-5000} PODS=${PODS:-20000} BINDERS=${BINDERS:-2} PARALLEL=${PARALLEL:-64}
work=$(mktemp -d)
trap 'kill -TERM "$up" 2>/dev/null; wait "$up" 2>/dev/null; rm -rf "$work"' EXIT
"$bin/berth" up --no-example --binders "$BINDERS" --record-decisions "${RECORD:-off}" >"$work/out" 2>&1 &
up=$!
until grep -q '^Berth is up' "$work/out"; do
    kill -0 "$up" || { cat "$work/out"; exit 1; }
    sleep 0.1
done
KUBECONFIG=$(awk '/kubeconfig/ {print $2; exit}' "$work/out")
export KUBECONFIG
"$bin/berth" load synthetic --node-count "$NODES" --pod-count 0
ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
declare -A name before
for pid in $(pgrep -P "$up"); do
    name[$pid]=$(tr '\0' ' ' <"/proc/$pid/cmdline" | awk '{n = split($1, a, "/"); print a[n]}')
    before[$pid]=$(ticks "$pid")
done
TIMEFORMAT='%U %S'
{ time "$bin/berth" load synthetic --node-count 0 --pod-count "$PODS" --parallel "$PARALLEL" 2>&3; } 3>&2 2>"$work/load.time"
hz=$(getconf CLK_TCK)
echo "CPU per pod at $NODES nodes, $PODS pods:"
for pid in "${!name[@]}"; do
    awk -v n="${name[$pid]}" -v t="$(($(ticks "$pid") - before[$pid]))" -v hz="$hz" -v p="$PODS" \
        -v rss="$(awk '/VmRSS/ {print $2}' "/proc/$pid/status")" \
        'BEGIN { printf "  %-18s %7.1f us  rss %d MiB\n", n, t / hz * 1e6 / p, rss / 1024 }'
done | sort
awk -v p="$PODS" '{ printf "  %-18s %7.1f us  (the client)\n", "berth load", ($1 + $2) * 1e6 / p }' "$work/load.time"
