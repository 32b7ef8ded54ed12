#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/data.sh - berth-simulator --data: killed servers, files that are refused, wrong flags
#
#   BERTH_BIN  folder of the programs (build/bin)
#   ROUNDS     kills in each mode (2)
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
ROUNDS=${ROUNDS:-2}
sim=$BERTH_BIN/berth-simulator

refuses() { # STATUS PATTERN FLAGS...: does not start, and says why
    local want=$1 pattern=$2 out rc
    shift 2
    out=$(timeout $((20 * PATIENCE)) "$sim" "$@" 2>&1)
    rc=$?
    [ "$rc" = "$want" ] && grep -qE -- "$pattern" <<<"$out" && return 0
    echo "exit $rc, wanted $want and: $pattern; got: $out"
    return 1
}

expect "killed servers lose nothing that was answered earlier (batch)" '^[0-9]+ kills' \
    python3 "$here/data_writers.py" "$sim" "$work/batch.db" "$ROUNDS" batch
expect "killed servers lose nothing that was answered (full)" '^[0-9]+ kills' \
    python3 "$here/data_writers.py" "$sim" "$work/full.db" "$ROUNDS" full

"$sim" --data "$work/full.db" >"$work/sim.out" 2>"$work/sim.err" &
also_stop=$!
wait_for_file "$work/sim.out"
check "a second server on the file is refused" refuses 1 'another process has it open' --data "$work/full.db"
url=$(head -n 1 "$work/sim.out")
expect "the objects of before are served" '"name":"w0-' curl -sS "$url/api/v1/configmaps"
expect "so is what a fresh cluster has" '"name":"kube-system"' curl -sS "$url/api/v1/namespaces"
kill "$also_stop"
wait "$also_stop"
check "it ends in good order" test $? = 0
also_stop=
head -c 5000 /dev/zero | tr '\0' x >"$work/junk"
check "a foreign file is refused" refuses 1 'not a data file of Berth, or damaged' --data "$work/junk"
check "and left alone" test "$(wc -c <"$work/junk")" = 5000
check "a folder is refused" refuses 1 "data file $work: " --data "$work"
check "--data and --history-file exclude each other" refuses 2 'exclude each other' --data "$work/a" --history-file "$work/b"
check "--data-sync is checked" refuses 2 'want batch or full' --data "$work/a" --data-sync sometimes
check "nothing was made by refused flags" test ! -e "$work/a"
