#!/usr/bin/env bash
# `berth` as a person types it: help, slips of the finger, commands that find a running `berth up`.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
b() { "$BERTH_BIN/berth" "$@"; }
unset BERTH_RUNTIME_DIR

# ---- help
check "help COMMAND is COMMAND --help" test "$(b help load)" = "$(b load --help)"
check "also of a command's command" test "$(b help scenario run)" = "$(b scenario run --help)"
check "and of berth bench" test "$(b help bench scale)" = "$(b bench scale --help)"
check "a command that is not there" status 2 b help nothing
meant() { "$@" 2>&1 | grep -F "did you mean"; }
expect "a slip in a command" 'unknown command "exlpain", did you mean "explain"\?' meant b exlpain
expect "in a command's command" 'did you mean "report"\?' meant b scenario reprot
expect "in a flag" 'unknown flag: --ouput, did you mean --output\?' meant b queue --ouput=json
check "a word like nothing gets no guess" no_line_with 'did you mean' bash -c '"$1/berth" zzzzzz 2>&1; true' _ "$BERTH_BIN"

# ---- which Berth: others may run on this machine, so it is about these two
mkdir "$work/elsewhere"
(cd "$work/elsewhere" && exec "$BERTH_BIN/berth" up --front-port 0 --runtime-dir first >"$work/first.out" 2>&1) &
also_stop=$!
eventually "one that was given a relative directory" 30 grep -q '^Ctrl-C' "$work/first.out"
first=$work/elsewhere/first
start_up --no-example --binders 1 || exit 1
unset KUBECONFIG
dirs() { grep -oE "^  ($first|$run) " <<<"$1" | tr -d ' ' | paste -sd' '; } # of ours, in their order
expect "without being told, a command finds one" 'STATUS' b get nodes
said=$(b queue 2>&1 >/dev/null)
check "and says that there are others, the newest first" test "$(dirs "$said")" = "$run $first"
said=$(b load synthetic --node-count 0 --pod-count 1 2>&1)
check "what would change one of them asks which" test "$(dirs "$said")" = "$run $first"
check "and says how to choose" grep -q 'BERTH_RUNTIME_DIR=DIR or KUBECONFIG=DIR/kubeconfig says which' <<<"$said"
check "with a status" status 1 b load synthetic --node-count 0 --pod-count 1
expect "--runtime-dir wins" 'node-a1' b get nodes --runtime-dir "$first"
expect "BERTH_RUNTIME_DIR wins" 'node-a1' env BERTH_RUNTIME_DIR="$first" "$BERTH_BIN/berth" get nodes
check "and nothing is said then" test -z "$(BERTH_RUNTIME_DIR=$first b get nodes 2>&1 >/dev/null)"
expect "also for load" 'bound +1$' env BERTH_RUNTIME_DIR="$first" "$BERTH_BIN/berth" load synthetic --node-count 0 --pod-count 1
expect "and explain sees it" 'bound to node' env BERTH_RUNTIME_DIR="$first" "$BERTH_BIN/berth" explain pod/load-000000
kill -9 "$up_pid"
wait "$up_pid" 2>/dev/null
up_pid=
said=$(b get nodes 2>&1)
check "one that was killed is none" no_line_with "^  $run " echo "$said"
rm -rf "$run"
