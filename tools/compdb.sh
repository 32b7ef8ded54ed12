#!/usr/bin/env bash
# Compiler command lines (what `make -Bn V=1` prints) on stdin -> a JSON compilation database. See `make compdb`.
set -euo pipefail
awk -v dir="$PWD" '
function text(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
BEGIN { print "[" }
/ -o / {
    file = ""
    for (i = 1; i <= NF; i++) if ($i ~ /\.c$/ && $(i - 1) != "-o") file = $i
    if (file == "" || file in seen) next
    seen[file] = 1
    printf "%s{\"directory\": %s, \"file\": %s, \"command\": %s}", n++ ? ",\n" : "", text(dir), text(file), text($0)
}
END { print "\n]"; exit n == 0 }'
