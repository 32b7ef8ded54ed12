#!/usr/bin/env bash
# The binary interface of plugins, as gcc sees plugins/include/berth/plugin.h, against what it was (plugin-v1.abi): tables
# may have become longer at their ends, and nothing else may be another. Types of parameters and results count, which
# tests/unit/scheduler/native/test_layout.c (offsets, constants, and structs in arrays, which may not grow) does not see.
# usage: tests/abi/abi.sh [--accept]      --accept: what is there now is the reference, once it has been released or is to stay
set -u
cd "$(dirname "$0")/../.." || exit 2
golden=tests/abi/plugin-v1.abi
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ok() { echo "ok - $1"; passed=$((passed + 1)); }
not_ok() { printf 'not ok - %s\n%s\n' "$1" "${2//$'\n'/$'\n#   '}" | sed '2s/^/#   /'; failed=$((failed + 1)); }
if ! command -v abidiff >/dev/null || ! command -v gcc >/dev/null; then
    echo "ok - the plugins' binary interface # SKIP no abidiff (abigail-tools), or no gcc"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

dump() { # folder with berth/plugin.h, output
    gcc -std=c11 -g -O0 -I"$1" -c tests/abi/surface.c -o "$work/surface.o" &&
        abidw --headers-dir "$1" --no-show-locs --no-corpus-path --no-comp-dir-path --no-architecture --no-parameter-names --type-id-style hash --out-file "$2" "$work/surface.o"
}
# Is the report about tables that became longer at their ends only? Prints what is not.
judge() {
    awk '
    /^$/ || /^(Leaf changes|Changed leaf types|Removed\/Changed\/Added variables) summary: / { next }
    /^Removed\/Changed\/Added functions summary: 0 Removed, 0 Changed, / { next }
    /^\x27struct berth_[a-z_]+\x27 changed:$/ { size = -1; next }
    /^  type size changed from [0-9]+ to [0-9]+ \(in bits\)$/ && $7 > $5 { size = $5; next }
    /^  [0-9]+ data member insertions?:$/ && size > 0 { next }
    /^    \x27.*\x27, at offset [0-9]+ \(in bits\)$/ && size > 0 && $(NF - 2) >= size { next }
    { print; bad = 1 }
    END { exit bad }' "$1"
}
compare() { # folder: 0 the same or longer, 1 other, with why, 2 neither can be said
    dump "$1" "$work/now.abi" || return 2
    abidiff --leaf-changes-only "$golden" "$work/now.abi" >"$work/report" 2>&1
    [ $(($? & 3)) -eq 0 ] || { cat "$work/report"; return 2; } # its own errors
    judge "$work/report"
}

if [ "${1-}" = --accept ]; then
    dump plugins/include "$golden"
    exit
fi
if why=$(compare plugins/include); then
    ok "plugins that exist fit"
    sed -n "s/^'struct \(.*\)' changed:/#   \1 is longer than in $(basename "$golden"): tests\/abi\/abi.sh --accept/p" "$work/report"
else
    not_ok "plugins that exist fit" "$why"
fi

# ---- does it find what it is for? Each is the header with one thing changed
try() { # fits|breaks, what, sed script
    mkdir -p "$work/try/berth"
    sed "$3" plugins/include/berth/plugin.h >"$work/try/berth/plugin.h"
    if cmp -s plugins/include/berth/plugin.h "$work/try/berth/plugin.h"; then
        not_ok "$2" "the header does not have what is to be changed"
        return
    fi
    why=$(compare "$work/try" 2>&1)
    case $?$1 in 0fits | 1breaks) ok "$1: $2" ;; *) not_ok "$1: $2" "$why" ;; esac
}
end='/^struct berth_host_base {/,/^};/s/^};/    void (*more)(void);\n};/'
try fits "a member at a table's end" "$end"
try fits "members at the ends of two" "$end; /^struct berth_plugin {/,/^};/s/^};/    uint64_t one, two;\n};/"
try breaks "one in the middle" '/^struct berth_host_base {/,/^};/s/^    void \*(\*alloc)/    void (*more)(void);\n&/'
try breaks "one that is gone" '/^    int64_t (\*now)(struct berth_call \*c);$/d'
try breaks "two that changed places" '/^struct berth_entry {/,/^};/{/uint64_t n;/d; s/^    const struct berth_plugin \*const \*plugins;.*/    uint64_t n;\n&/}'
try breaks "a parameter of another type" 's/\(void (\*wake_at)(struct berth_home \*home, \)int64_t/\1int32_t/'
try breaks "the same, where the table became longer, too" "s/\(void (\*wake_at)(struct berth_home \*home, \)int64_t/\1int32_t/; $end"
try breaks "one parameter more" 's/^    int64_t (\*now)(struct berth_call \*c/&, int32_t which/'
try breaks "a result of another type" 's/^    int64_t (\*now)/    int32_t (*now)/'
try breaks "a struct of another member's" 's/^    uint64_t n; \/\* bytes \*\//    uint32_t n;/'
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
