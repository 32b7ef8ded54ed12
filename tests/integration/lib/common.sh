# Sourced by the integration tests: checks that count, a Berth to test, and its end.
# shellcheck shell=bash
set -u
BERTH_BIN=${BERTH_BIN:-build/bin}
BERTH_BIN=$(cd "$BERTH_BIN" && pwd)
SCALE=${BH_TEST_TIMEOUT_SCALE:-1}
passed=0 failed=0 skipped=0
work=$(mktemp -d)
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
    local name=$1 end=$((SECONDS + $2 * SCALE)) out=
    shift 2
    while [ "$SECONDS" -le "$end" ]; do
        if out=$("$@" 2>&1); then ok "$name"; return 0; fi
        sleep 0.2
    done
    not_ok "$name" "$out"
    return 1
}
start_up() { # flags of berth up
    # two tests that start at once would both find 10259 free
    "$BERTH_BIN/berth" up --front-port 0 "$@" >"$work/up.out" 2>"$work/up.err" &
    up_pid=$!
    local end=$((SECONDS + 30 * SCALE))
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
    ok "berth up starts"
}
# Shared memory of berths whose runtime directory is ours: names are a hash of it, so look for new ones and
# leave out those that other tests made meanwhile and that are still in use.
our_shm() { find /dev/shm -maxdepth 1 -name 'berth-*' -printf '%f\n' | sort; }
same_shm() { # before
    local f try
    for f in $(comm -13 <(printf '%s\n' "$1") <(our_shm)); do
        # Another test's that is just being made or taken away is nobody's for a moment.
        for try in 1 2 3 4 5 6; do
            [ -e "/dev/shm/$f" ] && ! in_use "/dev/shm/$f" || continue 2
            sleep 0.3
        done
        echo "left: $f after $try looks"
        return 1
    done
    echo same
}
in_use() { # some process has it open or mapped
    local m
    for m in /proc/[0-9]*/maps; do
        grep -qF "$1" "$m" 2>/dev/null && return 0
    done
    find /proc/[0-9]*/fd -lname "$1" 2>/dev/null | grep -q .
}
wait_for_file() { # path
    local end=$((SECONDS + 20 * SCALE))
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
