#!/usr/bin/env bash
# Are bugs found that are planted on purpose? For each tests/simulation/planted/*.patch a copy of this tree is built with it, and seeds are
# run until one is not green.
# usage: tests/simulation/planted.sh [NAME...]     SEEDS=10000 at most, JOBS at a time (all processors), BUILD (build): built already
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build} passed=0 failed=0
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -cf - --exclude=.git --exclude="./$build/tests" --exclude="./$build/bin" --exclude="./$build/check-logs" . | tar -xf - -C "$copy"
[ $# -gt 0 ] || set -- $(basename -s .patch -a tests/simulation/planted/*.patch)
for name in "$@"; do
    patch=$PWD/tests/simulation/planted/$name.patch
    patch -d "$copy" -p1 -s --no-backup-if-mismatch <"$patch"
    make -C "$copy" -s BUILD="$build" WERROR= -j"${JOBS:-$(nproc)}" simulation-program >"$copy/make.log" 2>&1 || { cat "$copy/make.log"; exit 2; }
    if (cd "$copy" && "$build/bin/berth-simulation" --first 1 --seeds "${SEEDS:-10000}" --jobs "${JOBS:-$(nproc)}" --stop --no-shrink) >"$copy/run.log" 2>&1; then
        echo "not ok - $name: $(grep -a '^seeds:' "$copy/run.log"), and nothing was found"
        failed=$((failed + 1))
    else
        echo "ok - $name: $(grep -a -m1 '^seed ' "$copy/run.log" | cut -c1-140)"
        passed=$((passed + 1))
    fi
    patch -d "$copy" -p1 -s -R --no-backup-if-mismatch <"$patch"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
