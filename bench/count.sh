#!/usr/bin/env bash
# Counts instead of timing: instructions and allocations of what `make bench` compares, one line a case on standard
# output. Programs run under callgrind, which counts only while the named function runs; allocations are those that
# the program itself reports (bh_allocations of common/base).
# usage: bench/count.sh BUILD [REGEXP OF CASES]
# Lines:  case <TAB> how often <TAB> instructions each <TAB> allocations each
set -euo pipefail
build=${1:?usage: bench/count.sh BUILD [REGEXP]} only=${2:-.}
here=$(dirname "$0")
command -v valgrind >/dev/null || { echo "count.sh: valgrind is not installed (make deps-dev)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count CASE TIMES FUNCTION COMMAND...   TIMES: how often in all; 0 = as often as FUNCTION is called
count() {
    local name=$1 times=$2 fn=$3 allocations
    shift 3
    grep -qE "$only" <<<"$name" || return 0
    [ -t 2 ] && printf '\r\033[Kcounting %s' "$name" >&2
    # setarch -R: the same addresses in every run, so that counts do not differ by how a table hashes them
    if ! setarch -R valgrind --tool=callgrind --collect-atstart=no --toggle-collect="$fn" --compress-strings=no \
        --callgrind-out-file="$work/out" "$@" >"$work/said" 2>"$work/log"; then
        echo "count.sh: $name: $* failed:" >&2
        cat "$work/log" "$work/said" >&2
        exit 1
    fi
    case $fn in # the JSON of `berth bench perf` has both
    bh_offline_decide) allocations=$(sed -n 's/.*"PerDecision": *\([0-9.e+-]*\).*/\1/p' "$work/said") ;;
    bh_world_take) allocations=$(sed -n 's/.*"PerChange": *\([0-9.e+-]*\).*/\1/p' "$work/said") ;;
    *) allocations=$(sed -n 's/.* \([0-9.]*\) allocations each.*/\1/p' "$work/said" | sort -g | tail -n 1) ;;
    esac
    awk -v name="$name" -v fn="$fn" -v times="$times" -v allocations="$allocations" '
        /^cfn=/ { callee = substr($0, 5); next }
        /^calls=/ && callee == fn { split($1, c, "="); calls += c[2] }
        /^totals:/ { total = $2 }
        END {
            if (!calls || allocations == "") {
                print "count.sh: " name ": " (calls ? "no allocations were reported" : fn " was never called") > "/dev/stderr"
                exit 1
            }
            n = times ? times : calls
            printf "%s\t%d\t%.0f\t%.3f\n", name, n, total / n, allocations
        }' "$work/out"
}

perf() { # WHAT FUNCTION WORKLOAD
    count "$1/$3" 0 "$2" "$build/bin/berth-bench" perf "$here/workloads/performance-config.yaml" --labels '' \
        --name "^$3/small" -o json
}

for w in $(sed -n 's/^- name: //p' "$here/workloads/performance-config.yaml"); do
    perf decide bh_offline_decide "$w"
done
for w in plain volumes churn claims; do
    perf take bh_world_take "$w"
done
for load in one different nowhere; do
    for path in fast reference; do
        count "engine/$load-$path" 50 measured "$build/bench/engine_bench" "$load" 50 "$path" alone 500
    done
done
count engine/one-5000-nodes 2000 measured "$build/bench/engine_bench" one 2000 fast alone 5000
count queue/event 0 bh_queue_event "$build/bench/queue_bench" 1000
for kind in pod-json pod-protobuf node-json node-protobuf; do
    count "intake/$kind" 0 take_in "$build/bench/intake_bench" "$kind" 1000
done
[ -t 2 ] && printf '\r\033[K' >&2
exit 0
