#!/usr/bin/env bash
# Lines of product C (.c and .h outside of tests/) by room and folder, then the longest files and functions.
# usage: tools/sizes.sh [COMMIT]      of that commit's tree instead of the files here (table only)
set -euo pipefail
cd "$(dirname "$0")/.."

list() { # file<TAB>lines
    if [ $# -gt 0 ]; then
        git grep -c '' "$1" -- '*.c' '*.h' | sed "s/^$1://" | tr ':' '\t'
    else
        git ls-files '*.c' '*.h' | xargs grep -c '' | tr ':' '\t'
    fi | grep -v '^tests/'
}
list "$@" | awk -F'\t' '
{
    folder = $1; sub(/\/[^\/]*$/, "", folder)
    if (folder ~ /^scheduler\/plugins\//) folder = "scheduler/plugins/*"
    room = folder; sub(/\/.*/, "", room)
    in_folder[folder] += $2; files[folder]++; in_room[room] += $2; in_all += $2
}
END {
    for (f in in_folder) {
        room = f; sub(/\/.*/, "", room)
        printf "%s\t1%s\t  %-28s %7d lines %5d files\n", room, f, f, in_folder[f], files[f]
    }
    for (r in in_room) printf "%s\t0\t%-30s %7d lines\n", r, r, in_room[r]
    printf "~\t2\t%-30s %7d lines\n", "product C", in_all
}' | LC_ALL=C sort -t"$(printf '\t')" -k1,2 | cut -f3
[ $# -eq 0 ] || exit 0
echo
echo "longest files"
list | sort -t"$(printf '\t')" -k2 -rn | head -10 | awk -F'\t' '{ printf "  %6d  %s\n", $2, $1 }'
echo "longest functions"
git ls-files '*.c' | grep -v '^tests/' | xargs awk '
FNR == 1 { at = 0 }
/^[A-Za-z_].*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
/^\{/ { at = FNR }
/^\}/ { if (at) printf "%6d  %s  %s\n", FNR - at - 1, name, FILENAME; at = 0 }' | sort -rn | head -10 | sed 's/^/  /'
