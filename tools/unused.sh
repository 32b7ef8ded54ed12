#!/usr/bin/env bash
# External functions and objects of the product that no other file uses: they should be static; and those
# that only tests call: they should go (a step of a file's own work may be called by its test, too).
# Reads the symbol tables of the build's objects (`make all` first). A short list below names what stays
# all the same, each with its reason; one that is not needed is told.
# usage: tools/unused.sh BUILD       prints each, then "N passed, N failed, 0 skipped" (one test a symbol kept external)
set -euo pipefail
build=${1:-build}
cd "$(dirname "$0")/.."

# symbol: why it may stay
stays='
bh_snap_reader_of: a reader in the writer itself: damaged segments are fuzzed and tested with it
bh_api_in_flight: what the limit of requests is tested by
bh_log_dropped: what a full pipe costs is tested by it
bh_resources_count: bounded memory is tested by it
bh_reviews_count: bounded memory is tested by it
bh_bus_send_bytes: what a stranger may send is tested with it
'
[ -d "$build/obj" ] || { echo "tools/unused.sh: no $build/obj: run make first" >&2; exit 2; }
# Objects whose source is gone do not count.
objects() { # folder
    find "$build/obj" -name '*.o' | while read -r o; do
        s=${o#"$build"/obj/}
        [ -e "${s%.o}.c" ] && echo "$o"
    done | sort
}
# What tests and benchmarks say, word by word: their objects are not kept.
words=$(git ls-files -co --exclude-standard 'tests/*.c' 'tests/*.h' 'bench/count/*.c' | xargs grep -ohE '\bbh_[a-z0-9_]+' | sort -u)
# Functions that their own file calls as well: of interest when tests call them, too.
objects | xargs nm -A | awk -v build="$build" -v stays="$stays" -v words="$words" '
function own_calls(file, s,    line, n) {
    while ((getline line < file) > 0)
        while (match(line, "(^|[^A-Za-z0-9_])" s "([^A-Za-z0-9_]|$)")) {
            n++
            line = substr(line, RSTART + RLENGTH - 1)
        }
    close(file)
    return n
}
BEGIN {
    n = split(stays, l, "\n")
    for (i = 1; i <= n; i++) { s = l[i]; sub(/:.*/, "", s); if (s != "") stay[s] = 1 }
    n = split(words, l, "\n")
    for (i = 1; i <= n; i++) by_tests[l[i]] = 1
}
{
    file = $0; sub(/\.o:.*/, ".c", file); sub("^" build "/obj/", "", file)
    if (file ~ /^tests\//) next
    type = $(NF - 1); name = $NF
    if (type ~ /^[TDBRC]$/) defined[name] = file
    else if (type == "U" || type == "w" || type == "v") used[name] = 1
}
END {
    for (s in defined) {
        if (s in used || s == "main") {
            if (s in stay) { print "not ok - " s " is used: take it out of tools/unused.sh" | "sort"; failed++ } else passed++
        } else if (s in stay || (s in by_tests && own_calls(defined[s], s) > 1)) {
            passed++
        } else {
            print "not ok - " defined[s] ": " s (s in by_tests ? " is used by tests only" : " is used by no other file") | "sort"
            failed++
        }
    }
    close("sort")
    printf "%d passed, %d failed, 0 skipped\n", passed, failed
    exit failed > 0
}'
