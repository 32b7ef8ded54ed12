#!/usr/bin/env bash
# clang-tidy (.clang-tidy) on the C files of the product that changed since a revision, or on all.
# usage: tools/tidy.sh [--all | REVISION]     (default: where this branch left origin/main; else the last commit's files)
# Prints what it found and "N passed, N failed, 0 skipped" (one test a file). Generated headers must be there: make all.
set -u
cd "$(dirname "$0")/.." || exit 2
base=${1:-$(git merge-base origin/main HEAD 2>/dev/null)}
[ "$base" != "$(git rev-parse HEAD)" ] && [ -n "$base" ] || base=HEAD~1
if [ "$base" = --all ]; then
    files=$(git ls-files '*.c' ':!tests')
else
    files=$(git diff --name-only --diff-filter=d "$base" -- '*.c' ':!tests') || exit 2
fi
flags="-I. -Ibuild/gen -Iplugins/include -D_GNU_SOURCE -std=c17 $(pkg-config --cflags libcurl libzmq libprotobuf-c libmicrohttpd sqlite3 libuv)"
export flags
one() { # file
    local out
    # shellcheck disable=SC2086
    if out=$(clang-tidy-14 --quiet "$1" -- $flags 2>/dev/null); then echo "ok - $1"; else printf 'not ok - %s\n%s\n' "$1" "# ${out//$'\n'/$'\n'# }"; fi
}
export -f one
out=$(xargs -r -P "$(nproc)" -I{} bash -c 'one {}' <<<"$files")
grep -v '^ok' <<<"$out"
failed=$(grep -c '^not ok' <<<"$out")
echo "$(grep -c '^ok' <<<"$out") passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
