#!/usr/bin/env bash
# The same seed does the same, to the byte of its history: wherever memory lies, and whatever is in it before it is written to.
# usage: tests/simulation/same.sh [PROGRAM [OTHER]]     OTHER: the same sources built otherwise; SEEDS=20
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${1:-build/bin/berth-simulation} other=${2:-${1:-build/bin/berth-simulation}} seeds=${SEEDS:-20}
export ASAN_OPTIONS=detect_leaks=0 # processes that are killed leave what they had
traces() { "$@" --first 1 --seeds "$seeds" --jobs 1 --traces | grep '^trace'; }
one=$(traces "$program")
two=$(MALLOC_PERTURB_=165 traces "$other")
differ=$(diff <(echo "$one") <(echo "$two") | grep -c '^<' || true)
diff <(echo "$one") <(echo "$two") | sed 's/^/    /' || true
echo "$((seeds - differ)) passed, $differ failed, 0 skipped"
[ "$differ" = 0 ]
