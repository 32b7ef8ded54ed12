#!/usr/bin/env bash
# Runs what `make check` runs again and again beside busy loops, and prints a table: tests that hold still stay green.
# usage: tests/under-load.sh [RUNS [LOOPS]]      (10 runs beside 4 loops; after `make check`, which builds)
# Logs: build/under-load/RUN/. Status 1 when a run was not green.
set -u
cd "$(dirname "$0")/.." || exit 2
runs=${1:-10} loops=${2:-4} build=${BUILD:-build}
[[ $runs =~ ^[1-9][0-9]*$ && $loops =~ ^[0-9]+$ ]] || { sed -n 2,4p "$0" >&2; exit 2; }
[ -s "$build/checks" ] || { echo "$0: $build/checks is missing: run make check first" >&2; exit 2; }
export BERTH_TEST_LIMIT=${BERTH_TEST_LIMIT:-3600}
busy=()
for _ in $(seq "$loops"); do
    while :; do :; done &
    busy+=($!)
done
trap '[ ${#busy[@]} -eq 0 ] || kill "${busy[@]}" 2>/dev/null' EXIT
red=0
printf '%4s %8s %7s %8s %8s  %s\n' RUN PASSED FAILED SKIPPED SECONDS "NOT GREEN"
for run in $(seq "$runs"); do
    out=$build/under-load/$run begin=$SECONDS
    mkdir -p "$out"
    bash tools/run-checks.sh "$out" <"$build/checks" >"$out/all" 2>&1 || red=$((red + 1))
    read -r passed _ failed _ skipped _ < <(tail -n 1 "$out/all")
    printf '%4d %8s %7s %8s %8d  %s\n' "$run" "$passed" "$failed" "$skipped" $((SECONDS - begin)) \
        "$(awk '$1 == "FAIL" {printf "%s%s", sep, $2; sep = ", "}' "$out/all")"
done
[ "$red" -eq 0 ]
