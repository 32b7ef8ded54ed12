#!/usr/bin/env bash
# `berth bench scale`: a snapshot in shared memory, a scheduler's engine on it; tables, JSON, plots, wrong usage, being stopped.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
s() { "$BERTH_BIN/berth" bench scale "$@"; }
both() { "$@" 2>&1 || true; }
small=(--nodes 200,1000 --decisions 3000)

check "two sizes: status 0" s "${small[@]}" --plot "$work/growth.svg" --report "$work/growth.html"
expect "all decisions of the larger one, percentiles and rate" '^ *1000  all +3000( +[0-9.]+){6}$' s "${small[@]}"
expect "kinds of templates are listed apart" '^ *200  anti-affinity +[0-9]+( +[0-9.]+){5}$' s "${small[@]}"
expect "memory: nodes and pods" '^ *1000  2000( +[0-9.]+){8}$' s "${small[@]}"
all_fast() { # of the table whose last column is FAST every row, and there are two
    s "${small[@]}" --only plain | awk '/FAST$/ {on = 1; next} on && NF {n++; if ($NF != "100.0%") bad = 1; print}
        END {exit bad || n != 2}'
}
check "every decision comes from the fast path" all_fast
expect "JSON has the percentiles" '"p99.9": [0-9.e+]+' s "${small[@]}" -o json
expect "both paths of the engine agree" '^ *150  all +300 ' s --nodes 150 --decisions 300 --verify
expect "ties by name as well" '^ *150  all +300 ' s --nodes 150 --decisions 300 --verify --tie-break first
expect "pods that fit nowhere are counted" '^[0-9]+ pods fit nowhere' s --nodes 1 --decisions 500 --pods-per-node 100
expect "the drawing has lines" 'class="line c4"' cat "$work/growth.svg"
expect "the page has them and the table" 'PER SECOND' cat "$work/growth.html"
for bad in "--nodes x" "--nodes 0" "--nodes 200,100" "--nodes 5000000" "--decisions 0" "--templates 0" "--pods-per-node 101" "--zones 0" \
    "--only gpu" "--clock sun" "--tie-break last" "-o yaml" "--frobnicate" "one"; do
    # shellcheck disable=SC2086
    check "wrong usage is refused with status 2: $bad" status 2 s $bad
done
expect "the message names flag and value" 'invalid value "x" for --nodes' both s --nodes x
check "a plot that cannot be written: status 1" status 1 s --nodes 5 --decisions 5 --plot "$work/none/growth.svg"
stopped() { # nothing stays behind, and it says so
    local pid snapshot
    mkdir "$work/tmp"
    TMPDIR="$work/tmp" "$BERTH_BIN/berth" bench scale --nodes 1000000 --decisions 1000000 >"$work/stopped" 2>&1 &
    pid=$!
    # its runtime directory names the shared memory
    until snapshot=$(readlink "$work"/tmp/berth-scale-*/watcher/snapshot); do kill -0 "$pid" || return 1; done
    kill -TERM "$pid"
    wait "$pid" && return 1
    grep -q stopped "$work/stopped" && ! compgen -G "$snapshot*" && ! compgen -G "$work/tmp/*"
}
check "stopped while building: no shared memory is left" stopped
