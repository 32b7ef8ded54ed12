#!/usr/bin/env bash
# What tests reach, room by room, against bars: reads with gcovr the counters that an instrumented build's programs left
# (`make coverage` builds it and runs them). What nothing ran counts as not reached.
#   - lines: those with code; `abort();`, which no test outlives, is none of them.
#   - branches: every way out of every condition, each && and || apart, as gcc makes them without optimising. Not those of
#     bh_assert(), nor of the level at which bh_log_v() and bh_log_debug() speak: the way not taken there is a mistake of
#     ours, or silence.
# A process that ends by itself writes its counters; one that is killed (kill -9) or leaves by _exit() does not.
# Prints "room lines% branches% bar ok|BELOW" a room, the total last; status 1 when a room is below its bar.
# usage: tools/coverage.sh BUILD [PATH]...     PATH: also each file below it, with the lines that nothing reached or that
#                                              have a branch nothing took
set -euo pipefail
build=${1:?usage: tools/coverage.sh BUILD [PATH]...}
shift
cd "$(dirname "$0")/.."
[ -d "$build/obj" ] || { echo "tools/coverage.sh: no $build/obj: run make coverage first" >&2; exit 2; }

# Lines and branches in percent. A file's bar is the entry with the longest beginning of its path, which is a room of its own.
bars='
. 85 75
scheduler/engine 95 85
common/snapshot 95 85
common/bus 95 85
scheduler/daemon/ledger.c 95 85
watcher/leader.c 95 85
front/authn.c 95 85
'
# Of a source that is gone the build keeps what it made.
find "$build/obj" -name '*.gcno' | while read -r made; do
    source=${made#"$build/obj/"}
    [ -e "${source%.gcno}.c" ] || rm -f "$made" "${made%.gcno}.gcda"
done
gcovr -r . -j "$(nproc)" --object-directory "$build/obj" --exclude-branches-by-pattern '.*\b(bh_assert|bh_log_v|bh_log_debug)\(' \
    --exclude-lines-by-pattern '.*\babort\(\);' -e "$build/" -e tests/ --json "$build/coverage.json" "$build/obj" >&2
jq -r '.files[] | .file as $f | .lines[] | select(."gcovr/noncode" | not) |
    [$f, .line_number, .count, (.branches | length), ([.branches[] | select(.count > 0)] | length)] | @tsv' "$build/coverage.json" |
    awk -F'\t' -v bars="$bars" -v paths="$*" '
function room_of(file,    b, best, part) {
    for (b in line_bar)
        if (index(file, b) == 1 && length(b) > length(best)) best = b
    if (best != "") return best
    split(file, part, "/")
    return part[1] "/" part[2] ~ /^(common|simulator|scheduler|bench)\/[^.]*$/ ? part[1] "/" part[2] : part[1]
}
function percent(some, all) { return all ? 100 * some / all : 100 }
BEGIN {
    n = split(bars, l, "\n")
    for (i = 1; i <= n; i++)
        if (split(l[i], w, " ") == 3) { line_bar[w[1]] = w[2]; branch_bar[w[1]] = w[3] }
    wanted = split(paths, want, " ")
}
{
    room = room_of($1)
    for (i = 1; i <= 3; i++) {
        k = i == 1 ? room : i == 2 ? $1 : "total"
        lines[k]++; reached[k] += $3 > 0; branches[k] += $4; taken[k] += $5
    }
    rooms[room]; files[$1]
    if (!$3) missed[$1] = missed[$1] " " $2
    else if ($5 < $4) half[$1] = half[$1] " " $2
}
END {
    for (r in rooms) {
        b = r in line_bar ? r : "."
        ok = percent(reached[r], lines[r]) >= line_bar[b] && percent(taken[r], branches[r]) >= branch_bar[b]
        below += !ok
        printf "%-26s %6.1f %6.1f  %d/%d %s\n", r, percent(reached[r], lines[r]), percent(taken[r], branches[r]), line_bar[b], branch_bar[b], ok ? "ok" : "BELOW" | "LC_ALL=C sort"
    }
    close("LC_ALL=C sort")
    printf "%-26s %6.1f %6.1f  of %d lines, %d branches; %d of %d rooms below\n", "total", percent(reached["total"], lines["total"]), percent(taken["total"], branches["total"]), lines["total"], branches["total"], below, length(rooms)
    for (f in files)
        for (i = 1; i <= wanted; i++)
            if (index(f, want[i]) == 1)
                printf "\n%s %.1f %.1f\n  not reached:%s\n  in part:%s\n", f, percent(reached[f], lines[f]), percent(taken[f], branches[f]), missed[f], half[f]
    exit below > 0 || !length(rooms)
}'
