#!/usr/bin/env bash
# Proves that #include arrows between folders point one way (ARCHITECTURE.md, "The house"):
#   - every folder with C files has a rule below and includes only what its rule allows;
#   - the rules have no circle (tsort);
#   - no folder includes another one's *_int.h;
#   - an exception is a folder's one header with its reason, and is still needed.
# Prints each wrong arrow with file and line, and "N passed, N failed, 0 skipped" (one test a folder).
# usage: tools/check-layers.sh [ROOT]     ROOT: another tree than this one (the script's own test)
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

# folder: what it may include besides itself. An entry stands for the folder and all below it, with
# /*.h for the folder alone; = FOLDER: the same as there, and more. Plugins out of tree know `berth/plugin.h`
# (plugins/include), as their builders do, and nothing else.
rules='
common/base:
common/http: common/base
common/regex: common/base
common/wasm: common/base
common/data: common/base
common/flags: common/base common/data
common/k8s: common/base common/data proto
common/cel: common/base common/regex common/data common/k8s proto
common/snapshot: common/base common/k8s common/data proto
common/api: common/base common/data common/flags common/k8s common/http proto
common/bus: common/base common/k8s common/data proto
common/feed: common/base common/k8s common/bus proto
common/control: common/base common/data common/k8s common/bus proto
watcher: common proto
binder: common proto
front: common proto
nodemetrics: common
pluginhost: common scheduler/native
scheduler/cache: common proto
scheduler/config: common
scheduler/extender: common proto scheduler/config
scheduler/framework: common proto scheduler/cache scheduler/config
scheduler/native: common plugins/include scheduler/cache scheduler/framework scheduler/preemption
scheduler/wasm: common scheduler/cache scheduler/extender scheduler/framework
scheduler/preemption: common proto scheduler/cache scheduler/framework scheduler/extender
scheduler/plugins: common proto scheduler/cache scheduler/framework
scheduler/plugins/*: common proto scheduler/cache scheduler/framework scheduler/plugins/*.h
scheduler/plugins/volumebinding: = scheduler/plugins/*
scheduler/plugins/disklimits: = scheduler/plugins/* scheduler/plugins/volumebinding
scheduler/plugins/azuredisklimits: = scheduler/plugins/* scheduler/plugins/disklimits
scheduler/plugins/cinderlimits: = scheduler/plugins/* scheduler/plugins/disklimits
scheduler/plugins/ebslimits: = scheduler/plugins/* scheduler/plugins/disklimits
scheduler/plugins/gcepdlimits: = scheduler/plugins/* scheduler/plugins/disklimits
scheduler/plugins/nodevolumelimits: = scheduler/plugins/* scheduler/plugins/volumebinding
scheduler/plugins/volumerestrictions: = scheduler/plugins/* scheduler/plugins/volumebinding
scheduler/plugins/volumezone: = scheduler/plugins/* scheduler/plugins/volumebinding
scheduler/plugins/dynamicresources: = scheduler/plugins/* scheduler/plugins/volumebinding
scheduler/plugins/noderesources: = scheduler/plugins/* scheduler/plugins/dynamicresources
scheduler/plugins/selectorspread: = scheduler/plugins/* scheduler/plugins/podtopologyspread
scheduler/plugins/defaultpreemption: = scheduler/plugins/* scheduler/preemption
scheduler/engine: common proto scheduler/cache scheduler/config scheduler/extender scheduler/framework scheduler/preemption scheduler/plugins scheduler/engine/fast
scheduler/engine/fast: common proto scheduler/cache scheduler/config scheduler/framework scheduler/preemption
scheduler/queue: common proto scheduler/engine/*.h
scheduler/explain: common proto scheduler/engine/*.h
scheduler/decisions: common proto scheduler/engine/*.h scheduler/explain
scheduler/daemon: common proto scheduler/native scheduler/wasm scheduler/engine/*.h scheduler/queue scheduler/config scheduler/decisions scheduler/explain
scheduler: common proto scheduler/daemon scheduler/native scheduler/wasm
simulator/http: common/http common/base
simulator/server: common proto simulator/http
simulator/schema: common proto simulator/server
simulator/crd: common proto simulator/server simulator/schema
simulator/admission: common proto simulator/server simulator/schema simulator/crd simulator/admission/rules
simulator/tables: common proto simulator/server simulator/crd
simulator/controllers: common proto simulator/server simulator/admission
simulator/replay: common proto simulator/server
simulator/follow: common simulator/server simulator/replay
simulator/offline: common proto scheduler simulator/server simulator/admission
simulator/trial: common proto scheduler simulator/server simulator/schema simulator/admission simulator/offline
simulator/scenario: common proto scheduler simulator/server simulator/schema simulator/admission simulator/replay simulator/offline
simulator/console: common proto scheduler simulator/server simulator/schema simulator/replay simulator/follow simulator/offline simulator/trial simulator/scenario
simulator: common proto scheduler simulator/server simulator/console
cli: common proto scheduler simulator
bench/count: common proto scheduler simulator
bench/perf: common proto scheduler simulator cli
bench/scale: common proto scheduler simulator cli
bench: common bench/perf bench/scale
plugins/include/berth:
plugins/*: berth
'
# folder > header: why the arrow stands all the same.
exceptions='
scheduler/config > scheduler/framework/plugin.h: what arguments a plugin takes stands in its descriptor, which the framework needs whole
scheduler/engine/fast > scheduler/engine/state.h: the two paths of one engine; state.h and fast.h are all they see of each other
simulator/server > simulator/crd/crd.h: a custom object is pruned as it is read, and its schema is published
simulator/server > simulator/schema/schema.h: the OpenAPI documents are served with the discovery documents they belong to
'
files=$(git ls-files -co --exclude-standard '*.c' '*.h' | grep -v '^tests/' | while read -r f; do [ -e "$f" ] && echo "$f"; done)

# ---- circles -----------------------------------------------------------------------------------
circle=$(awk -F': *' 'NF && $2 != "" { n = split($2, a, " "); for (i = 1; i <= n; i++) { sub(/\/\*\.h$/, "", a[i]); if (a[i] !~ /[*=]/) print $1, a[i] } }' <<<"$rules" |
    { tsort 2>&1 >/dev/null || true; })
# ---- arrows ------------------------------------------------------------------------------------
# shellcheck disable=SC2086
arrows=$(xargs grep -HnE '^#include "[A-Za-z0-9_-]+/' <<<"$files" | awk -v rules="$rules" -v exceptions="$exceptions" '
function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
function rule_of(dir) { # the name of its rule, "" without one
    if (dir in allowed) return dir
    sub(/\/[^\/]*$/, "/*", dir)
    return dir in allowed ? dir : ""
}
BEGIN {
    n = split(rules, line, "\n")
    for (i = 1; i <= n; i++) {
        if (line[i] == "") continue
        at = index(line[i], ":")
        name = substr(line[i], 1, at - 1); list = substr(line[i], at + 1)
        if (match(list, /= [^ ]+/)) { # as another rule, and more
            base = substr(list, RSTART + 2, RLENGTH - 2)
            list = substr(list, RSTART + RLENGTH) " " allowed[base]
        }
        allowed[name] = list
    }
    n = split(exceptions, line, "\n")
    for (i = 1; i <= n; i++)
        if (split(line[i], part, " > ") == 2) {
            sub(/:.*/, "", part[2])
            unused[part[1] " " part[2]] = 1
        }
}
{
    split($0, q, "\"")
    file = $0; sub(/:.*/, "", file)
    where = $0; sub(/:#include.*/, "", where)
    from = folder(file); to = q[2]; dir = folder(to)
    if (dir == from) next
    key = rule_of(from)
    if (key == "") next # told below, once
    if (to ~ /_int\.h$/) { print from "\t" where ": " to " is private to " dir; next }
    n = split(allowed[key], a, " ")
    for (i = 1; i <= n; i++) {
        if (a[i] ~ /\*\.h$/ ? dir "/*.h" == a[i] : dir == a[i] || index(dir, a[i] "/") == 1) next
    }
    if ((from " " to) in unused || (from " " to) in used) {
        used[from " " to] = 1
        delete unused[from " " to]
        next
    }
    print from "\t" where ": " to
}
END { for (u in unused) print u "\tthis exception is not needed any more: take it out of tools/check-layers.sh" }')

named=$(sed -n 's/:.*//p' <<<"$rules")
passed=0 failed=0
bad() { # what, details
    echo "not ok - $1"
    sed 's/^/    /' <<<"$2"
    failed=$((failed + 1))
}
if [ -n "$circle" ]; then bad "the rules go in a circle" "$circle"; else passed=$((passed + 1)); fi
for dir in $(sed 's|/[^/]*$||' <<<"$files" | sort -u); do
    if ! grep -qxF -e "$dir" -e "${dir%/*}/*" <<<"$named"; then
        bad "$dir has no rule in tools/check-layers.sh" "say what it may include"
        continue
    fi
    wrong=$(awk -F'\t' -v d="$dir" '{ split($1, a, " ") } a[1] == d { print $2 }' <<<"$arrows")
    if [ -n "$wrong" ]; then bad "$dir includes what it may not" "$wrong"; else passed=$((passed + 1)); fi
done
# nothing includes tests
tests=$(xargs grep -Hn '#include "tests/' <<<"$files" || true)
if [ -n "$tests" ]; then bad "product code includes tests" "$tests"; else passed=$((passed + 1)); fi
# what a daemon knows of HTTP it knows from libraries: nothing of simulator/http/ is in one
own=$(sed -nE 's/^[a-z].*[ *](bh_[a-z0-9_]+)\(.*/\1/p' simulator/http/*.h | sort -u)
for daemon in watcher scheduler binder front; do
    binary=${BUILD:-build}/bin/berth-$daemon
    [ -x "$binary" ] || continue
    found=$(nm "$binary" | awk '{ print $NF }' | grep -xF "$own" || true)
    if [ -n "$found" ]; then bad "berth-$daemon has functions of simulator/http" "$found"; else passed=$((passed + 1)); fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
