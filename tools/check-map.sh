#!/usr/bin/env bash
# ARCHITECTURE.md's map and the READMEs against the tree:
#   - every folder with C files stands in the table of "The house", and what stands there exists;
#   - every folder with more than three .c and .h files has a README;
#   - each plugin of plugins/ is a Debian package and has an example configuration;
#   - links between the project's Markdown files lead somewhere;
#   - the C files that a README's table of files names are there;
#   - bugs that are planted on purpose still have their place.
# Prints what is wrong and "N passed, N failed, 0 skipped" (one test a folder or file).
# usage: tools/check-map.sh
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0 failed=0
test_that() { # what, then a command
    local what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else
        echo "not ok - $what"
        failed=$((failed + 1))
    fi
}
# First column of the table: `folder/`, or `folder/a/` `b/` with the latter below the former.
map=$(awk '/^## The house/ { on = 1; next } /^## / { on = 0 } on && /^\| `/' ARCHITECTURE.md | cut -d'|' -f2 |
    grep -oE '`[^`]+`' | tr -d '`' | sed 's|/$||')
is_mapped() { [[ $'\n'$map$'\n' == *$'\n'$1$'\n'* ]]; }
folders=$(git ls-files -co --exclude-standard '*.c' '*.h' | while read -r f; do [ ! -e "$f" ] || echo "${f%/*}"; done | sort | uniq -c |
    awk '$2 !~ /^tests(\/|$)/ && $2 !~ /^(scheduler\/)?plugins\// { print $2 " " $1 }')
while read -r folder n; do
    test_that "ARCHITECTURE.md's map lacks $folder" is_mapped "$folder"
    [ "$n" -le 3 ] || test_that "$folder has $n files and no README.md" test -e "$folder/README.md"
done <<<"$folders"
while read -r folder n; do
    [ "$n" -le 3 ] || test_that "$folder has $n files and no README.md" test -e "$folder/README.md"
done < <(git ls-files 'scheduler/plugins/*/*.c' 'scheduler/plugins/*/*.h' | sed 's|/[^/]*$||' | sort | uniq -c | awk '{ print $2 " " $1 }')
for entry in $map; do
    test_that "ARCHITECTURE.md's map names $entry, which is not there" test -d "$entry"
done
for plugin in plugins/*/; do
    plugin=${plugin#plugins/} plugin=${plugin%/}
    [[ $plugin != include && $plugin != wasm ]] || continue
    test_that "debian/control has not one berth-plugin-$plugin" test "$(grep -cx "Package: berth-plugin-$plugin" debian/control)" = 1
    test_that "config/plugins/$plugin.yaml is missing" test -s "config/plugins/$plugin.yaml"
done
# All links of all files first, "FILE LINK" a line: a process for each of them would take most of the time.
declare -A dead
documents=$(git ls-files -co --exclude-standard '*.md' | while read -r f; do [ ! -e "$f" ] || echo "$f"; done)
while read -r f link; do
    link=${link%%#*} folder=
    [[ $f != */* ]] || folder=${f%/*}/
    case $link in '' | http*) continue ;; esac
    [ -e "$folder$link" ] || dead[$f]+="    $f: $link"$'\n'
done < <(xargs awk 'FNR == 1 { code = 0 } /^```/ { code = !code; next }
    !code { while (match($0, /\]\([^) ]+\)/)) { print FILENAME, substr($0, RSTART + 2, RLENGTH - 3); $0 = substr($0, RSTART + RLENGTH) } }' <<<"$documents")
no_dead_link() { # file
    printf %s "${dead[$1]-}"
    [ -z "${dead[$1]-}" ]
}
while read -r f; do
    test_that "a link in $f leads nowhere" no_dead_link "$f"
done <<<"$documents"
while read -r f name; do
    test_that "$f names $name, which is not there" test -e "${f%/*}/$name"
done < <(grep '/README.md$' <<<"$documents" | xargs awk -F'|' 'FNR == 1 || !/^\|/ { on = 0 } /^\| file / { on = 1 }
    on { while (match($2, /`[a-z0-9_]+\.(c|h|data)`/)) { print FILENAME, substr($2, RSTART + 1, RLENGTH - 2); $2 = substr($2, RSTART + RLENGTH) } }')
while read -r f; do
    test_that "$f does not apply any more" git apply --check "$f"
done < <(git ls-files -co --exclude-standard '*/planted/*.patch')
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
