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
expect "in a word that has commands" 'unknown command "chek", did you mean "check"' meant b config chek
expect "in a flag" 'unknown flag: --ouput, did you mean --output\?' meant b queue --ouput=json
expect "in what to get" 'unknown resource "podz" \(did you mean pods\?\)' meant b get podz
# shellcheck disable=SC2016  # bash -c expands it
expect "a resource like none" 'unknown resource "services", expected nodes or pods' bash -c '"$1/berth" get services 2>&1; true' _ "$BERTH_BIN"
check "a resource that is none is wrong usage" status 2 b get podz
check "a word like nothing gets no guess" no_line_with 'did you mean' bash -c '"$1/berth" zzzzzz 2>&1; true' _ "$BERTH_BIN"

no_doubled_default() { # in no command's help a default stands twice, or is a number that means something else
    local c said
    for c in up demo run load get explain queue decisions compare simulate rebalance record replay "bench scale"; do
        # shellcheck disable=SC2086
        said=$(b help $c | tr -s ' \n' '  ' | sed -E 's/ -(-|[a-z],)/\n&/g' | grep -E '\(default.*\(default|default -1') && { echo "$c: $said"; return 1; }
    done
    true
}
check "every default stands once in --help" no_doubled_default

# ---- completion: of a command, of a command's command, of a flag, of its values; files where nothing is known
export PATH=$BERTH_BIN:$PATH
completion=$(cd "$here/../.." && pwd)/cli/completion
in_bash() { # the line so far, word by word
    bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _berth; printf "%s\n" "${COMPREPLY[@]}"' "$completion/berth.bash" "$@"
}
in_zsh() {
    # shellcheck disable=SC2016  # zsh expands it
    zsh -fc 'compadd() { print -l -- "${(P@)2}" }; _files() { print -l -- $words[CURRENT]*(N) }
        _describe() { print -l -- "${(P@)2}" }; words=("$@"); CURRENT=$#; source "$0"' "$completion/berth.zsh" "$@"
}
in_fish() {
    XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work fish -c 'source $argv[1]; complete -C "$argv[2..-1]"' "$completion/berth.fish" "$@"
}
touch "$work/pods.yaml"
for shell in bash zsh fish; do
    command -v $shell >/dev/null || { skip "completion in $shell" "no $shell"; continue; }
    expect "$shell completes a command" '^explain' in_$shell berth exp
    expect "$shell: a command's command" '^report' in_$shell berth scenario rep
    expect "$shell: what a command is about" '^nodes' in_$shell berth get ""
    expect "$shell: a flag" '^--no-headers' in_$shell berth queue --no
    expect "$shell: of a daemon, too" '^--runtime-dir' in_$shell berth-watcher --run
    expect "$shell: the values of a flag" '^wide' in_$shell berth decisions -o w
    expect "$shell: else files" "$work/pods.yaml" in_$shell berth simulate "$work/po"
    expect "$shell: also after a flag" "$work/pods.yaml" in_$shell berth simulate --config "$work/po"
done
# ---- WebAssembly modules: (func (export "filter") (param i32) (result i32)), i32.load of memory at the parameter
said_by() { "$@" 2>&1 || true; }
head='\0asm\1\0\0\0\1\6\1\x60\1\x7f\1\x7f\3\2\1\0\5\3\1\0\1'
printf '%b' "$head"'\7\x0a\1\6filter\0\0\x0a\x09\1\7\0\x20\0\x28\2\0\x0b' >"$work/guest.wasm"
printf '%b' "$head"'\7\x0a\1\6filter\0\0\x0a\x09\1\7\0\x20\0\xfd\2\0\x0b' >"$work/simd.wasm"
expect "a module is described" '^  exports   "filter" func \(i32\) -> \(i32\)$' said_by b wasm check "$work/guest.wasm"
expect "a hook's type is looked at" 'filter \(wrong signature, should be \(\) -> \(i32\)\)' said_by b wasm check "$work/guest.wasm"
check "with a status" status 1 b wasm check "$work/guest.wasm"
expect "an invalid one is told with its place" 'simd.wasm: function 0 at 0x2c: SIMD: opcode 0xfd is not supported' said_by b wasm check "$work/simd.wasm"
expect "a file that is none" 'simd.yaml: No such file' said_by b wasm check "$work/simd.yaml"
expect "a function of it runs" '^i32:0$' b wasm run "$work/guest.wasm" filter 65532
expect "or traps, and where" '^	\.\$0\(i32\) i32$' said_by b wasm run "$work/guest.wasm" filter 65533
check "with a status" status 1 b wasm run "$work/guest.wasm" filter 65533
expect "a number that is none" 'argument x is no i32' said_by b wasm run "$work/guest.wasm" filter x
expect "too few" 'filter takes 1 arguments, there are 0' said_by b wasm run "$work/guest.wasm" filter
expect "no such function" 'no function score is exported' said_by b wasm run "$work/guest.wasm" score
check "a call needs a function" status 2 b wasm run "$work/guest.wasm"

# Of each type the function that gives back what it is given.
same() { # TYPE VALUE
    printf '%b' "\\0asm\\1\\0\\0\\0\\1\\6\\1\\x60\\1\\x$1\\1\\x$1\\3\\2\\1\\0\\7\\5\\1\\1f\\0\\0\\x0a\\6\\1\\4\\0\\x20\\0\\x0b" >"$work/same.wasm"
    said_by b wasm run "$work/same.wasm" f -- "$2"
}
expect "a long number" '^i64:-9223372036854775808$' same 7e -9223372036854775808
expect "a short one that is below 0" '^i32:-1$' same 7f -1
expect "one that is too small for it" 'argument -2147483649 is no i32' same 7f -2147483649
expect "one that is too large" 'argument 4294967296 is no i32' same 7f 4294967296
expect "one with a fraction" '^f32:1.5$' same 7d 1.5
expect "and twice the bits" '^f64:-2.25$' same 7c -2.25
expect "a reference cannot be given" 'f takes references' same 70 0
expect "it is not compiled" 'it is not compiled: there is no [0-9a-f]{64}.so in' said_by b wasm run --compiled "$work/guest.wasm" filter 0

# ---- manual pages: one for each command of a command, of which groff has nothing to say
if command -v help2man >/dev/null && command -v groff >/dev/null; then
    man=$(cd "$here/../.." && pwd)/tools/man.sh
    check "manual pages are made" bash "$man" "$BERTH_BIN" "$work/man"
    expect "also of a command's command" '^\.TH BERTH-SCENARIO-RUN' cat "$work/man/berth-scenario-run.1"
    expect "a page names those below it" '^\.BR berth.-scenario.-run' cat "$work/man/berth-scenario.1"
    rm "$work/man/kubectl-berth.1" # says where it will be installed
    check "they are well-formed" test -z "$(groff -man -ww -Tutf8 -z "$work"/man/* 2>&1)"
else
    skip "manual pages" "no help2man or groff"
fi

mkdir "$work/plain" # a pack for kubectl krew is what is built, with its digest
repo=$(cd "$here/../.." && pwd)
expect "an archive and a manifest for kubectl krew" 'berth.yaml$' bash -c 'cd "$1" && bash tools/krew.sh "$2" "$3" https://example.org/x/' _ "$repo" "$(dirname "$BERTH_BIN")" "$work/krew"
tar -C "$work/plain" -xf "$work"/krew/*.tar.gz
expect "what the archive holds runs" '^berth [0-9]' "$work/plain/$(sed -n 's/^    bin: //p' "$work/krew/berth.yaml")" version
# shellcheck disable=SC2016  # bash -c expands it
check "it has every program" bash -c 'for p in "$2"/berth-*; do
    [ "${p##*/}" = berth-simulation ] || test -x "$1/${p##*/}" || { echo "no $p"; exit 1; }; done' _ "$work/plain/bin" "$BERTH_BIN"
check "the digest is the archive's" test "$(sed -n 's/^    sha256: //p' "$work/krew/berth.yaml")" = "$(sha256sum "$work"/krew/*.tar.gz | cut -d' ' -f1)"

# ---- which Berth: others may run on this machine, so it is about these two
mkdir "$work/elsewhere"
(cd "$work/elsewhere" && exec "$BERTH_BIN/berth" up --front-port 0 --runtime-dir first >"$work/first.out" 2>&1) &
also_stop=$!
eventually "one that was given a relative directory" 30 grep -q '^Ctrl-C' "$work/first.out"
first=$work/elsewhere/first
# the other one as `berth demo`: its cluster is empty, and its page is opened where there is a desktop
mkdir "$work/desktop"
printf '#!/bin/sh\nprintf "%%s" "$1" >"%s"\n' "$work/opened" >"$work/desktop/xdg-open"
chmod +x "$work/desktop/xdg-open"
UP=demo DISPLAY=:77 PATH=$work/desktop:$PATH start_up --binders 1 || exit 1
eventually "berth demo opens the tour" 30 test -s "$work/opened"
expect "at the address that it prints" "^  web page     $(cat "$work/opened") " cat "$work/up.out"
expect "which is the tour's" 'http://127\.0\.0\.1:[0-9]+/ui/#/tour' cat "$work/opened"
check "and it has no other cluster" grep -q 'unknown flag: --kubeconfig' <<<"$(b demo --kubeconfig "$KUBECONFIG" 2>&1)"
get_all() { b get nodes "$@" 2>&1; }
expect "nor an example" 'No nodes found' get_all --runtime-dir "$run"
unset KUBECONFIG
dirs() { grep -oE "^  ($first|$run) " <<<"$1" | tr -d ' ' | paste -sd' '; } # of ours, in their order
expect "without a flag, a command finds one" 'STATUS|No nodes found' get_all
said=$(b queue 2>&1 >/dev/null)
check "and says that there are others, the newest first" test "$(dirs "$said")" = "$run $first"
said=$(b load synthetic --node-count 0 --pod-count 1 2>&1)
check "what would change one of them asks which" test "$(dirs "$said")" = "$run $first"
check "and says how to choose" grep -q 'BERTH_RUNTIME_DIR=DIR or KUBECONFIG=DIR/kubeconfig says which' <<<"$said"
check "with a status" status 1 b load synthetic --node-count 0 --pod-count 1
expect "--runtime-dir wins" 'node-a1' b get nodes --runtime-dir "$first"
# ---- completion with names of objects; the scripts come out of the program, too
export BERTH_RUNTIME_DIR=$first
for shell in bash zsh fish; do
    check "berth completion $shell" cmp <(b completion $shell) "$completion/berth.$shell"
    command -v $shell >/dev/null || { skip "names in $shell" "no $shell"; continue; }
    expect "$shell completes names of nodes" '^node-a1' in_$shell berth get nodes node-a
    expect "$shell: TYPE/NAME" '^node/node-b1' in_$shell berth explain node/node-b
    expect "$shell: pods, too" '^pod/hello-' in_$shell berth explain pod/he
    expect "$shell: values of --node" '^node-c1' in_$shell berth explain pod/x --node node-c
done
unset BERTH_RUNTIME_DIR
check "completion of no shell" status 2 b completion
expect "of one that is none" 'unknown shell "bsh", did you mean bash\?' bash -c '"$1/berth" completion bsh 2>&1; true' _ "$BERTH_BIN"

# ---- berth get, with kubectl's manners
get() { b get "$@" --runtime-dir "$first" 2>&1; }
api=$(sed -n 's/.*server: *//p' "$first/kubeconfig")
post() { curl -sf -o /dev/null -H 'Content-Type: application/json' -d "$2" "$api/api/v1/$1"; }
pod() { # namespace, name, more of its spec
    post "namespaces/$1/pods" '{"metadata":{"name":"'"$2"'","labels":{"app":"'"$2"'","z":"1","a":"2"}},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1500m","memory":"1Gi"}}}]'"${3:-}"'}}'
}
check "a pod that fits nowhere" pod default stuck ',"nodeSelector":{"no":"such"}'
check "one that is gated" pod default gated ',"schedulingGates":[{"name":"example.com/wait"}]'
check "one of another namespace" pod kube-system elsewhere ',"nodeName":"node-b1"'
eventually "pending pods are listed" 30 bash -c '"$1/berth" get pods --runtime-dir "$2" | grep -E "^default +stuck +Unschedulable +<none> +1500m +1024Mi$"' _ "$BERTH_BIN" "$first"
expect "gated ones, too" '^default +gated +SchedulingGated' get pods
expect "and bound ones" '^kube-system +elsewhere +Bound +node-b1' get pods
check "-n: one namespace" no_line_with 'stuck' get pods -n kube-system
expect "-A: all of them" 'stuck' get po -n kube-system -A
expect "an empty namespace is reported" '^No pods found in namespace none\.$' get pods -n none
check "-l: labels" test "$(get pods -l 'app in (stuck),a!=3' -o name)" = pod/stuck
check "-l of nodes" test "$(get nodes -l kubernetes.io/hostname=node-b1 -o name)" = node/node-b1
check "one name" test "$(get nodes node-b1 --no-headers | grep -c .)" = 1
expect "TYPE/NAME, and several" 'pod/stuck' get pod/gated pod/stuck -o name
expect "a name that is not there" 'pod "none" not found' bash -c '"$1/berth" get pods stuck none --runtime-dir "$2" 2>&1; true' _ "$BERTH_BIN" "$first"
check "with a status" status 1 b get pods stuck none --runtime-dir "$first"
expect "wide: labels sorted by key, and the whole message" 'a=2,app=stuck,z=1 +0/5 nodes are available: .* Preemption is not helpful for scheduling\.$' get pods -o wide
expect "wide nodes have taints" 'dedicated=gpu:NoSchedule +.*kubernetes.io/hostname=node-c1' get nodes -o wide
check "--no-headers" no_line_with '^NAME' get nodes --no-headers
check "JSON is a List of the API's form" test "$(get nodes -o json | jq -r '.kind + .apiVersion + .items[0].kind + .items[0].metadata.labels["kubernetes.io/hostname"] + .items[0].status.allocatable.cpu')" = Listv1Nodenode-a18
check "pods, with labels and condition" test "$(get pods -l app=stuck -o json | jq -r '.items[0] | .kind + .metadata.labels.app + .status.conditions[0].reason + .requested.cpu')" = PodstuckUnschedulable1500m
check "an empty List is one" test "$(get pods -n none -o json | jq -c .items)" = '[]'
check "one object that is named is no List" test "$(get pod stuck -o json | jq -r .kind)" = Pod
expect "YAML" '^    app: stuck$' get pod/stuck -o yaml
"$BERTH_BIN/berth" get pods -w --no-headers --runtime-dir "$first" >"$work/watched" 2>&1 &
watching=$!
eventually "-w prints what is there" 30 grep -q '^default *stuck *Unschedulable' "$work/watched"
check "a pod comes" pod default later ',"nodeName":"node-a1"'
eventually "-w prints the change" 30 grep -q '^default *later *Bound *node-a1' "$work/watched"
check "a pod goes" curl -sf -o /dev/null -X DELETE "$api/api/v1/namespaces/default/pods/stuck"
eventually "-w prints that, too" 30 grep -q '^default *stuck *Deleted' "$work/watched"
check "and nothing twice" test "$(grep -c '^kube-system *elsewhere' "$work/watched")" = 1
kill "$watching"
wait "$watching" 2>/dev/null
# shellcheck disable=SC2016  # bash -c expands it
expect "a message is not cut in a pipe" 'Preemption is not helpful for scheduling\.$' bash -c '"$1/berth" decisions --runtime-dir "$2" --result Unschedulable --no-headers | cat' _ "$BERTH_BIN" "$first"
expect "BERTH_RUNTIME_DIR wins" 'node-a1' env BERTH_RUNTIME_DIR="$first" "$BERTH_BIN/berth" get nodes
check "and nothing is said then" test -z "$(BERTH_RUNTIME_DIR=$first b get nodes 2>&1 >/dev/null)"
expect "also for load" 'bound +1$' env BERTH_RUNTIME_DIR="$first" "$BERTH_BIN/berth" load synthetic --node-count 0 --pod-count 1
expect "... which ends with what it cost the scheduler" '^\{"cpuSeconds":[0-9.]+,"recording":\{"attempts":1,"dropped":0,"full":1,"fullSeconds":[0-9.]+,"writingSeconds":[0-9.]+\}\}$' \
    bash -c "BERTH_RUNTIME_DIR='$first' '$BERTH_BIN/berth' load synthetic --node-count 0 --pod-count 1 --prefix cost -o json | jq -c .scheduler"
expect "and explain sees it" 'bound to node' env BERTH_RUNTIME_DIR="$first" "$BERTH_BIN/berth" explain pod/load-000000
# one order everywhere: the option, BERTH_RUNTIME_DIR, KUBECONFIG, the newest
of_kubeconfig() { KUBECONFIG=$1 b "${@:2}"; }
expect "a KUBECONFIG that is an instance's own file selects that instance" 'node-a1' of_kubeconfig "$first/kubeconfig" get nodes
all_of_kubeconfig() { of_kubeconfig "$@" 2>&1; }
expect "of the other one, too" 'No nodes found' all_of_kubeconfig "$run/kubeconfig" get nodes
check "and nothing is printed about others" test -z "$(of_kubeconfig "$first/kubeconfig" get nodes 2>&1 >/dev/null)"
expect "in a list the first file that exists counts" 'node-a1' of_kubeconfig "$work/none:$first/kubeconfig" get nodes
expect "berth explain follows KUBECONFIG" 'bound to node' of_kubeconfig "$first/kubeconfig" explain pod/load-000000
expect "berth load follows it" 'bound +1$' of_kubeconfig "$first/kubeconfig" load synthetic --node-count 0 --pod-count 1 --prefix kc
expect "BERTH_RUNTIME_DIR is stronger, and KUBECONFIG's cluster is named" "with the instance in $first; KUBECONFIG=$run/kubeconfig leads to another cluster" \
    env BERTH_RUNTIME_DIR="$first" KUBECONFIG="$run/kubeconfig" "$BERTH_BIN/berth" get nodes
expect "also for what changes a cluster" 'bound +1$' \
    env BERTH_RUNTIME_DIR="$first" KUBECONFIG="$run/kubeconfig" "$BERTH_BIN/berth" load synthetic --node-count 0 --pod-count 1 --prefix stronger
expect "a KUBECONFIG of no instance is named" "KUBECONFIG=$work/other leads to another cluster" \
    bash -c 'echo "kind: Config" >"$1"; KUBECONFIG=$1 "$2/berth" get nodes || true' _ "$work/other" "$BERTH_BIN"
# berth run with a relative directory, of the first one's server
(cd "$work/elsewhere" && exec "$BERTH_BIN/berth" run --runtime-dir brt --kubeconfig first/kubeconfig --secure-port=0 --leader-elect=false >"$work/run.out" 2>&1) &
also_stop+=" $!"
eventually "berth run takes a relative directory" 30 b get nodes --runtime-dir "$work/elsewhere/brt"
expect "and reads that server's nodes" 'node-a1' b get nodes --runtime-dir "$work/elsewhere/brt"
check "also below a command that stands elsewhere" no_line_with 'is not ipc' cat "$work/run.out"

# ---- berth up --kubeconfig: a server that does not answer yet
"$BERTH_BIN/berth-simulator" --port 0 --kubeconfig-out "$work/late.conf" >"$work/late.log" 2>&1 &
late=$!
wait_for_file "$work/late.conf"
late_port=$(sed -n 's/.*server:.*:\([0-9]*\).*/\1/p' "$work/late.conf")
kill "$late" && wait "$late" 2>/dev/null
[ -s "$work/late.conf" ] || sed "s/x/x/" "$first/kubeconfig" | sed "s/:[0-9]*\$/:$late_port/" >"$work/late.conf"
(cd "$work" && exec "$BERTH_BIN/berth" up --front-port 0 --kubeconfig late.conf --leader-elect=false --runtime-dir late >"$work/late.out" 2>"$work/late.err") &
late_up=$!
also_stop+=" $late_up"
eventually "an API server that does not answer is reported" 30 grep -q 'late.conf does not answer yet, waiting for it' "$work/late.err"
check "Berth is not up before it answers" no_line_with '^Berth is up' cat "$work/late.err" "$work/late.out"
"$BERTH_BIN/berth-simulator" --port "$late_port" --kubeconfig-out "$work/late2.conf" >>"$work/late.log" 2>&1 &
also_stop+=" $!"
eventually "it is when the server has answered" 60 grep -q '^Berth is up' "$work/late.out"
check "no page is announced where there is none" no_line_with 'page' cat "$work/late.out"
expect "the kubeconfig is named from the root" "export KUBECONFIG=$work/late.conf" cat "$work/late.out"
expect "KUBECONFIG selects the instance that uses it" 'No nodes found' all_of_kubeconfig "$work/late.conf" get nodes
check "without a note" no_line_with 'another cluster' all_of_kubeconfig "$work/late.conf" get nodes
kill "$late_up" && wait "$late_up" 2>/dev/null

# ---- what a killed one leaves: nothing, and what was left before is removed by the next one
mkdir -p "$work/left/berth-up-gone" "$work/left/berth-up-none"
echo 1 >"$work/left/berth-up-gone/up.lock"
echo x >"$work/left/berth-up-gone/watcher.log"
(unset XDG_RUNTIME_DIR; TMPDIR=$work/left exec "$BERTH_BIN/berth" up --front-port 0 --binders 1 >"$work/swept.out" 2>&1) &
swept=$!
also_stop+=" $swept"
eventually "one in a temporary directory" 30 grep -q '^Ctrl-C' "$work/swept.out"
check "has removed what a dead one had left" test ! -e "$work/left/berth-up-gone"
check "but nothing that is not known to be of a dead one" test -d "$work/left/berth-up-none"
swept_dir=$(sed -n 's|^  kubeconfig *\(.*\)/kubeconfig$|\1|p' "$work/swept.out")
check "its directory" test -S "$swept_dir/up.sock"
{ kill -9 "$swept"; wait "$swept"; } 2>/dev/null
eventually "a kill leaves no directory" 30 test ! -e "$swept_dir"
check "and no process" no_process "$swept_dir"

kill -9 "$up_pid"
wait "$up_pid" 2>/dev/null
up_pid=
said=$(b get nodes 2>&1)
check "one that was killed is none" no_line_with "^  $run " echo "$said"
rm -rf "$run"
