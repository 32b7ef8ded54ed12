#!/usr/bin/env bash
# Writable data of our libraries: what one instance (of a scheduler, a watcher, a server) writes there another one in the same process
# would see, and a run of tests/simulation would not be its seed's alone. Each has to stand in tools/globals.allow, with its reason.
# usage: tools/check-globals.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
rooms="common watcher scheduler binder front simulator"
sources=$(git ls-files -co --exclude-standard -- $rooms | grep '\.c$' | grep -v '/main\.c$')
found=$(printf '%s\n' $sources | sed "s|^|$build/obj/|; s|c\$|o|" | xargs objdump -t | awk -v build="$build/obj/" '
    / file format / {f = $1; sub(/:$/, "", f); f = substr(f, length(build) + 1); sub(/o$/, "c", f)}
    $3 == "O" && $4 ~ /^\.(bss|data|tbss|tdata)/ && $4 !~ /^\.data\.rel\.ro/ || / \*COM\*/ {sub(/\.[0-9]+$/, "", $NF); print f, $NF}' | sort -u)
allowed=$(sed -n 's/^\([^# ][^ ]*\) \([^ ]*\) .*/\1 \2/p' tools/globals.allow | sort -u)
passed=$(comm -12 <(echo "$found") <(echo "$allowed") | grep -c . || true) failed=0
while read -r f name; do
    [ -n "$f" ] || continue
    echo "not ok - $f: $name is written to and belongs to no instance: move it into one, or say why not in tools/globals.allow"
    failed=$((failed + 1))
done < <(comm -23 <(echo "$found") <(echo "$allowed"))
while read -r f name; do
    [ -n "$f" ] || continue
    echo "not ok - tools/globals.allow: $f has no writable $name (any more)"
    failed=$((failed + 1))
done < <(comm -13 <(echo "$found") <(echo "$allowed"))
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
