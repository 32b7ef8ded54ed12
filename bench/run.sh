#!/usr/bin/env bash
# `make bench`: counts (count.sh), compares with bench/baseline.tsv (compare.awk), and adds the counts to a history.
# usage: bench/run.sh BUILD [--only REGEXP] [--accept] [--history FILE] [--limit PERCENT]
#   --only     these cases only; the baseline's others are left out of the comparison
#   --accept   the counts become the new baseline, and go into bench/history.tsv too
#   --history  where lines are added (BUILD/bench/history.tsv): date, commit, compiler, then count.sh's columns
#   --limit    per cent of instructions that may be lost (2)
# Exit status: 0 nothing got worse, 1 something did, 2 it could not be counted.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '3,9s/^# //p' "$0"; exit "$1"; }
[ $# -ge 1 ] || usage 2
[ "$1" = --help ] && usage 0
build=$1 only=. accept='' history='' limit=2
shift
while [ $# -gt 0 ]; do
    case $1 in
    --only | --history | --limit)
        [ $# -ge 2 ] || usage 2
        declare "${1#--}=$2"
        shift 2
        ;;
    --accept) accept=1; shift ;;
    *) usage 2 ;;
    esac
done
history=${history:-$build/bench/history.tsv}
baseline=$here/baseline.tsv
compiler=$("${CC:-cc}" --version | head -n 1)
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo none)
[ -z "$(git -C "$here" status --porcelain -uno 2>/dev/null)" ] || commit+=+
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bash "$here/count.sh" "$build" "$only" >"$work/counts" || exit 2
keep() { # FILE
    [ -s "$1" ] || printf '# date\tcommit\tcompiler\tcase\ttimes\tinstructions\tallocations\n' >"$1"
    awk -v head="$(date -u +%FT%TZ)"$'\t'"$commit"$'\t'"$compiler" '{ print head "\t" $0 }' "$work/counts" >>"$1"
}
mkdir -p "$(dirname "$history")"
keep "$history"
rc=0
# Cases that --only leaves out are not missing.
awk -F'\t' -v only="$only" '/^#/ || $1 ~ only' "$baseline" >"$work/baseline" 2>/dev/null || true
awk -v compiler="$compiler" -v limit="$limit" -f "$here/compare.awk" "$work/baseline" "$work/counts" || rc=$?
if [ -n "$accept" ]; then
    [ "$only" = . ] || { echo "run.sh: --accept needs all cases" >&2; exit 2; }
    { printf '# What make bench compares with; made by make bench-accept. Columns: bench/count.sh.\n# compiler: %s\n' "$compiler"
      cat "$work/counts"; } >"$baseline"
    keep "$here/history.tsv"
    rc=0
fi
exit $rc
