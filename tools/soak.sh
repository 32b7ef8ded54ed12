#!/usr/bin/env bash
# Everything random, at length: the property test (plain and with sanitizers), every fuzz target, the pipeline under
# faults again and again; and the load of gangs, plugins and guests, under which each process has to stay as it is
# (tests/soak/load.py, alone for an hour: --seconds 3600). Builds do not count against the time.
# usage: tools/soak.sh BUILD SECONDS
# Findings stay in BUILD/soak: scenarios (property --replay), fuzz inputs, logs. SEED begins another run of seeds.
set -u
build=$1 seconds=$2
out=$build/soak
passed=0 failed=0 skipped=0
mkdir -p "$out/findings"
share() { echo $((seconds * $1 / 100)); }
RANDOM=${SEED:-$RANDOM}
seed=$((RANDOM * 32768 + RANDOM))
echo "# SEED=$seed, $seconds seconds, findings in $out"

# run NAME COMMAND...: counts one test, or those that the command's last line tells of
run() {
    local name=$1 log=$out/${1//[^a-zA-Z0-9]/_}.log rc line p f s
    shift
    nice "$@" >"$log" 2>&1
    rc=$?
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    read -r p f s <<<"$(tr -dc '0-9 ' <<<"${line:-0 passed, 0 failed, 0 skipped}")"
    [ $((p + f + s)) -gt 0 ] || { if [ "$rc" -eq 0 ]; then p=1; else f=1; fi; }
    [ "$rc" -eq 0 ] || [ "$f" -gt 0 ] || f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-5s %-32s %s passed, %s failed\n' "$([ "$f" -gt 0 ] && echo FAIL || echo ok)" "$name" "$p" "$f"
    [ "$f" -eq 0 ] || { grep -aE '^(not ok|# |==[0-9]+==|.*(ERROR|SUMMARY|Assertion))' "$log" | head -n 30 | sed 's/^/      /'; }
}

run property "$build/tests/property/property" --seed "$seed" --seconds "$(share 30)" --out "$out/findings"

asan=$build-asan
if make --no-print-directory BUILD="$asan" SANITIZE=address,undefined OPT="-O1 -g" WERROR= -j"$(nproc)" property >"$out/asan-build.log" 2>&1; then
    run "property with sanitizers" "$asan/tests/property/property" --seed $((seed + 1000000)) --seconds "$(share 15)" --out "$out/findings"
else
    echo "skip  property with sanitizers: does not build, see $out/asan-build.log"
    skipped=$((skipped + 1))
fi

targets=(tests/fuzz/fuzz_*.c)
each=$(($(share 20) / ${#targets[@]}))
for t in "${targets[@]}"; do
    t=$(basename "$t" .c)
    t=${t#fuzz_}
    if ! command -v clang >/dev/null; then
        echo "skip  fuzz $t: no clang"
        skipped=$((skipped + 1))
        continue
    fi
    run "fuzz $t" make --no-print-directory BUILD="$build" fuzz FUZZ="$t" SECONDS=$((each > 0 ? each : 1))
done

# Caches fill for about ten minutes: less than a quarter of an hour says nothing about memory.
long=$(share 20)
run "gangs, plugins and guests" python3 tests/soak/load.py --bin "$build/bin" --seconds $((long > 900 ? long : 900))
sed -n '/^PROCESS/,$p' "$out/gangs__plugins_and_guests.log" | sed 's/^/      /'

end=$((SECONDS + $(share 15)))
n=0
while [ "$n" -eq 0 ] || [ "$SECONDS" -lt "$end" ]; do
    n=$((n + 1))
    run "pipeline under faults $n" env SEED=$((seed + n)) BERTH_BIN="$build/bin" bash tests/integration/faults.sh
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
