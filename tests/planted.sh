#!/usr/bin/env bash
# Does `make check` find bugs that are planted on purpose? For each tests/planted/*.patch a copy of this tree is built with it, and the unit
# tests of the room that it is in are run (its first line says what it breaks).
# usage: tests/planted.sh [NAME...]     BUILD (build): built already
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build} passed=0 failed=0
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -cf - --exclude=.git --exclude="./$build/check-logs" . | tar -xf - -C "$copy"
[ $# -gt 0 ] || set -- $(basename -s .patch -a tests/planted/*.patch)
for name in "$@"; do
    patch=$PWD/tests/planted/$name.patch folder=$(sed -n 's|^--- a/\(.*\)/[^/]*$|\1|p' "$PWD/tests/planted/$name.patch") found=
    patch -d "$copy" -p1 -s --no-backup-if-mismatch <"$patch"
    while [ ! -d "tests/unit/$folder" ]; do folder=${folder%/*}; done
    for t in tests/unit/"$folder"/test_*.c; do
        t=$build/tests/${t#tests/unit/}
        make -C "$copy" -s BUILD="$build" WERROR= "${t%.c}" >"$copy/make.log" 2>&1 || { cat "$copy/make.log"; exit 2; }
        (cd "$copy" && timeout 600 "${t%.c}") >"$copy/run.log" 2>&1 || { found=${t%.c}; break; }
    done
    if [ -n "$found" ]; then
        echo "ok - $name: ${found#"$build"/tests/}: $(grep -a -m1 '^not ok' "$copy/run.log" || tail -n 1 "$copy/run.log")"
        passed=$((passed + 1))
    else
        echo "not ok - $name: no unit test of $folder says anything"
        failed=$((failed + 1))
    fi
    patch -d "$copy" -p1 -s -R --no-backup-if-mismatch <"$patch"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
