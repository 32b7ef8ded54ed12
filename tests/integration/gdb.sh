#!/usr/bin/env bash
# tools/gdb/berth.py shows strings, maps and records.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v gdb >/dev/null || { skip "gdb's pretty-printers" "no gdb"; exit 0; }
program=$BERTH_BIN/../tests/integration/gdb_values

gdb -nx -batch -ex "source $here/../../tools/gdb/berth.py" -ex 'set print pretty off' -ex 'break show' -ex run \
    -ex 'print *text' -ex 'print *map' -ex 'print *numbers' -ex 'print *pod' -ex 'print *node' "$program" >"$work/out" 2>&1
if grep -q 'ptrace: Operation not permitted\|Could not trace' "$work/out"; then
    skip "gdb's pretty-printers" "no program may be traced here"
    exit 0
fi
shown() { # what, pattern
    if grep -qE -- "$2" "$work/out"; then ok "$1"; else not_ok "$1" "$(cat "$work/out")"; fi
}
shown "a string" '= "a \\"quoted\\" text"$'
for key in alpha beta; do shown "a map: its key $key" "= bh_map of 2 = \\{.*\\[.?\"$key.?\"\\] = "; done
if grep -q '"gone"' "$work/out"; then not_ok "a deleted key is not shown" "$(cat "$work/out")"; else ok "a deleted key is not shown"; fi
shown "a map of numbers" '= bh_umap of 1 = \{\[41\] = 42\}'
shown "a pod's record: texts behind the fields" 'bh_pod_rec of [0-9]+ bytes = .*node = 7.*name = .?"web-1.*uid = .?"u-12'
shown "a node's record: elements of a slice" 'bh_node_rec of [0-9]+ bytes = .*labels = \{\{key = 11, value = 12\}, \{key = 13, value = 14\}\}'
