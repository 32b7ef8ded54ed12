# Sourced by the integration tests: checks that count, a Berth to test, and its end.
# shellcheck shell=bash
set -u
BERTH_BIN=${BERTH_BIN:-build/bin}
BERTH_BIN=$(cd "$BERTH_BIN" && pwd)
SCALE=${BH_TEST_TIMEOUT_SCALE:-1}
PATIENCE=$((5 * SCALE)) # of deadlines, which cost nothing unless they are missed; SCALE is for protocols with times of their own
passed=0 failed=0 skipped=0
work=$(mktemp -d)
export BERTH_TEST=$work # whose a process is
up_pid=
also_stop= # one more process of the test

ok() { passed=$((passed + 1)); echo "ok - $1"; }
not_ok() { # name [detail]
    failed=$((failed + 1))
    echo "not ok - $1"
    [ $# -gt 1 ] && printf '%s\n' "$2" | sed 's/^/#   /' | head -n 30
    return 0
}
skip() { skipped=$((skipped + 1)); echo "ok - $1 # SKIP $2"; }
# check NAME COMMAND...: passes when the command succeeds
check() {
    local name=$1 out
    shift
    if out=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "$out"; fi
}
# expect NAME PATTERN COMMAND...: passes when the command succeeds and prints the pattern (ERE)
expect() {
    local name=$1 pattern=$2 out
    shift 2
    if out=$("$@" 2>&1) && grep -qE -- "$pattern" <<<"$out"; then ok "$name"; else not_ok "$name" "wanted: $pattern
got: $out"; fi
}
# eventually NAME SECONDS COMMAND...: repeats until it succeeds
eventually() {
    local name=$1 end=$((SECONDS + $2 * PATIENCE)) out=
    shift 2
    while [ "$SECONDS" -le "$end" ]; do
        if out=$("$@" 2>&1); then ok "$name"; return 0; fi
        sleep 0.2
    done
    not_ok "$name" "$out"
    return 1
}
# status WANT COMMAND...: succeeds when the command ends with that exit status
status() {
    local want=$1 out rc
    shift
    out=$("$@" 2>&1)
    rc=$?
    [ "$rc" -eq "$want" ] || { printf 'exit status %s, not %s\n%s\n' "$rc" "$want" "$out"; return 1; }
}
# For what must not be there. A command that fails, and one that prints nothing at all, prove nothing: what they were
# to look through was not there.
# lines_with PATTERN COMMAND...: prints how many lines of what the command prints match (ERE), 0 as well
lines_with() {
    local pattern=$1 out n
    shift
    out=$("$@") || { echo "failed: $*" >&2; return 1; }
    [ -n "$out" ] || { echo "printed nothing: $*" >&2; return 1; }
    n=$(grep -cE -- "$pattern" <<<"$out")
    [ $? -le 1 ] && echo "$n"
}
# no_line_with PATTERN COMMAND...: succeeds when the command prints something, and nothing that matches
no_line_with() {
    local n
    n=$(lines_with "$@") || return 1
    [ "$n" -eq 0 ] || { echo "$n lines match $1"; return 1; }
}
# bound_twice AUDIT-LOG: prints how many pods were bound more than once; fails when it tells of no binding
bound_twice() {
    # the last line may not be whole yet
    grep -F '"subresource":"binding"' "$1" | grep '}$' >"$work/bindings" || { echo "no bindings in $1" >&2; return 1; }
    jq -r 'select(.responseStatus.code == 201) | .objectRef.namespace + "/" + .objectRef.name' "$work/bindings" >"$work/bound" &&
        [ -s "$work/bound" ] && sort "$work/bound" | uniq -d | wc -l
}
# no_process PATTERN: succeeds when no command line matches
no_process() {
    pgrep -af -- "$1"
    [ $? -eq 1 ]
}
start_up() { # flags of berth up; UP=demo: of berth demo
    # The shell empties it in the background process: an earlier one's "is up" would count.
    : >"$work/up.out"
    # two tests that start at once would both find 10259 free
    "$BERTH_BIN/berth" "${UP:-up}" --front-port 0 "$@" >"$work/up.out" 2>"$work/up.err" &
    up_pid=$!
    local end=$((SECONDS + 30 * PATIENCE))
    until grep -qs '^Berth is up' "$work/up.out"; do
        if ! kill -0 "$up_pid" 2>/dev/null || [ "$SECONDS" -gt "$end" ]; then
            not_ok "berth up starts" "$(cat "$work/up.out" "$work/up.err")"
            return 1
        fi
        sleep 0.1
    done
    KUBECONFIG=$(awk '/kubeconfig/ {print $2; exit}' "$work/up.out")
    export KUBECONFIG
    run=$(awk '/^  logs/ {print $2; exit}' "$work/up.out")
    run=${run%/\*.log}
    note_shm
    ok "berth up starts"
}
# Shared memory of this test's own processes; others run beside it and come and go. Names are a hash of the
# runtime directory, so who has it mapped says whose it is, and the environment whose process that is.
note_shm() { # remembers what is mapped now; fails when nothing is
    local p
    for p in $(pgrep -f berth); do
        grep -qzxF "BERTH_TEST=$work" "/proc/$p/environ" || continue
        grep -oE '/dev/shm/berth-[0-9a-f]{16}' "/proc/$p/maps" | tee -a "$work/shm"
    done 2>/dev/null | grep -q .
}
no_shm() { # of what was noted nothing is left
    local f left=
    [ -s "$work/shm" ] || { echo "none was noted"; return 1; }
    while read -r f; do left+=$(compgen -G "$f*"); done < <(sort -u "$work/shm")
    [ -z "$left" ] || { echo "left: $left"; return 1; }
}
wait_for_file() { # path
    local end=$((SECONDS + 20 * PATIENCE))
    until [ -s "$1" ]; do
        [ "$SECONDS" -le "$end" ] || return 1
        sleep 0.05
    done
}
pid_of() { pgrep -P "$up_pid" -f "$1" | head -n 1; }
metrics_port() { sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$run/$1.log" | tail -n 1; }
finish() {
    local p
    for p in $up_pid $also_stop; do
        kill -0 "$p" 2>/dev/null || continue
        kill -TERM "$p"
        wait "$p" 2>/dev/null
    done
    rm -rf "$work"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit $?
}
trap finish EXIT
