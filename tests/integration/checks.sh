#!/usr/bin/env bash
# The checks of lib/common.sh themselves: what must not be there is not there only where somebody looked.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
fails() { ! "$@"; }
lines() { printf '%s\n' "$@"; }
: >"$work/empty"

expect "lines are counted" '^2$' lines_with '^a' lines ab b ac
expect "none is 0, and no failure" '^0$' lines_with '^x' lines a b
check "a command that fails counts nothing" fails lines_with a bash -c 'echo a; exit 1'
check "nor does one that prints nothing" fails lines_with a cat "$work/empty"
check "nor one that is not there" fails lines_with a "$work/nothing"
check "nor a pattern that is none" fails lines_with '(' lines a
check "no line is no line" no_line_with x lines a b
check "one line is one" fails no_line_with b lines a b
check "a command that fails proves nothing" fails no_line_with x bash -c 'echo a; exit 1'
check "a missing file proves nothing" fails no_line_with x cat "$work/nothing"
check "an empty file proves nothing" fails no_line_with x cat "$work/empty"

bind() { printf '{"objectRef":{"namespace":"n","name":"%s","subresource":"binding"},"responseStatus":{"code":%s}}\n' "$1" "$2"; }
{ bind a 201; bind b 409; bind b 201; printf '{"objectRef":{"name":"c","subresource":"binding"'; } >"$work/audit"
expect "a pod that was bound once, with a line that is being written" '^0$' bound_twice "$work/audit"
{ bind b 201; bind a 201; } >>"$work/audit.more"
cat "$work/audit.more" "$work/audit" >"$work/both"
expect "two that were bound twice" '^2$' bound_twice "$work/both"
check "a log without bindings tells nothing" fails bound_twice "$work/empty"
bind a 409 >"$work/refused"
check "nor does one of refusals" fails bound_twice "$work/refused"
check "nor one that is missing" fails bound_twice "$work/nothing"

check "the status that was wanted" status 3 bash -c 'exit 3'
check "another status" fails status 3 bash -c 'exit 1'
check "nobody of that name" no_process "$work/nobody"
bash -c 'exec -a "$1" sleep 60' _ "$work/somebody" &
also_stop=$!
named() { grep -qzF "$work/somebody" "/proc/$also_stop/cmdline"; }
eventually "somebody of that name" 10 named
check "is seen" fails no_process "$work/somebody"
