#!/usr/bin/env bash
# Runs test programs, prints one line each and one total.
# usage: tools/run-checks.sh OUTDIR < list      (list: "name<TAB>jobs<TAB>command" a line)
# A program's own last line "N passed, N failed, N skipped" is added up; one that ends non-zero without
# a failed test counts as one failed. jobs=p: may run beside others, jobs=s: alone.
set -u
out=$1
mkdir -p "$out"
max=$(($(nproc) * 2)) # many of them wait most of their time
passed=0 failed=0 skipped=0
names=()
# A python3 that is a shim (pyenv's) starts shells for each program: the real one once and for all.
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)
[[ :$PATH: == *:${python%/*}:* ]] || [ -z "$python" ] || PATH=${python%/*}:$PATH

run_one() { # name command
    local log=$out/${1//\//_}.log t0 t1
    t0=$(date +%s.%N)
    timeout "${BERTH_TEST_LIMIT:-1800}" bash -c "$2" >"$log" 2>&1
    echo $? >"$log.rc"
    t1=$(date +%s.%N)
    awk -v a="$t0" -v b="$t1" 'BEGIN { printf "%.1f\n", b - a }' >"$log.s"
}
report() { # name
    local log=$out/${1//\//_}.log rc line p=0 f=0 s=0 mark=ok
    rc=$(cat "$log.rc")
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    [ -n "$line" ] && read -r p f s <<<"$(tr -dc '0-9 ' <<<"$line")"
    if [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    [ -z "$line" ] && [ "$rc" -eq 0 ] && p=1
    [ "$f" -gt 0 ] && mark=FAIL
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-5s %-44s %5d passed' "$mark" "$1" "$p"
    [ "$f" -gt 0 ] && printf ', %d failed' "$f"
    [ "$s" -gt 0 ] && printf ', %d skipped' "$s"
    printf '  (%s s)\n' "$(cat "$log.s")"
    if [ "$mark" = FAIL ]; then
        grep -aE '^(not ok|# |FAIL|==[0-9]+==|.*(ERROR|Assertion|assertion))' "$log" | head -n 40 | sed 's/^/      /'
        [ -z "$line" ] && tail -n 15 "$log" | sed 's/^/      /'
        [ "$rc" -eq 124 ] && echo "      timed out"
    fi
    grep -a '^ok .*# SKIP\|^skip ' "$log" | sed 's/^/      /'
}

while IFS=$'\t' read -r name jobs cmd; do
    [ -n "$name" ] || continue
    if [ "$jobs" = s ]; then
        wait
        for n in "${names[@]}"; do report "$n"; done
        names=()
        run_one "$name" "$cmd"
        report "$name"
        continue
    fi
    while [ "$(jobs -rp | wc -l)" -ge "$max" ]; do wait -n; done
    run_one "$name" "$cmd" &
    names+=("$name")
done
wait
for n in "${names[@]}"; do report "$n"; done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
