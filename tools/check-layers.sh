#!/usr/bin/env bash
# Proves that #include arrows between rooms only point down (ARCHITECTURE.md, "The house").
# Prints each wrong arrow with its file, and "N passed, N failed, 0 skipped" (one test a room).
set -euo pipefail
cd "$(dirname "$0")/.."

# room: rooms it may include besides itself
rules='
common/base:
common/http: common/base
common/data: common/base
common/k8s: common/base common/data proto
common/snapshot: common/base common/k8s common/data proto
common/api: common/base common/data common/k8s common/http proto
common/bus: common/base common/k8s common/data proto
watcher: common proto
scheduler: common proto
binder: common proto
front: common proto
simulator: common proto scheduler
cli: common proto scheduler simulator
bench: common proto watcher scheduler binder front simulator cli
plugins: plugins
'
passed=0 failed=0
while IFS=: read -r room allowed; do
    [ -n "$room" ] || continue
    bad=$(git ls-files -co --exclude-standard "$room/*.c" "$room/*.h" |
        xargs -r grep -HnE '^#include "[a-z0-9_-]+/' |
        awk -F'"' -v room="$room" -v allowed="$allowed" '
            BEGIN { n = split(allowed, a, " ") }
            {
                inc = $2
                if (index(inc, room "/") == 1) next
                for (i = 1; i <= n; i++) if (index(inc, a[i] "/") == 1) next
                print $0
            }')
    if [ -n "$bad" ]; then
        echo "not ok - $room includes what it may not (allowed:$allowed)"
        echo "$bad" | sed 's/^/    /'
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done <<<"$rules"
# nothing includes tests
if git ls-files -co --exclude-standard '*.c' '*.h' | grep -v '^tests/' | xargs grep -ln '#include "tests/'; then
    echo "not ok - product code includes tests"
    failed=$((failed + 1))
else
    passed=$((passed + 1))
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
