#!/usr/bin/env bash
# What `make bench` says of counts and a baseline: bench/compare.awk with made-up ones (counting takes minutes).
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
root=$(cd "$here/../.." && pwd)
compare() { awk -v compiler="${COMPILER:-cc 1}" -v limit=2 -f "$root/bench/compare.awk" "$work/baseline" "$work/counts"; }
both() { "$@" 2>&1 || true; }
printf '# compiler: cc 1\na\t10\t1000\t0.000\nb\t10\t1000\t1.500\n' >"$work/baseline"
given() { printf '%b' "$1" >"$work/counts"; }

given 'a\t10\t1019\t0.000\nb\t10\t981\t1.500\n'
expect "small changes are no news" '^2 cases: 0 worse, 0 better, 0 new, 2 as before' compare
given 'a\t10\t1021\t0.000\nb\t10\t1000\t1.500\n'
check "more instructions: status 1" bash -c "awk -v compiler='cc 1' -v limit=2 -f '$root/bench/compare.awk' '$work/baseline' '$work/counts'; [ \$? -eq 1 ]"
expect "more instructions are named" '^  a +1000 -> 1021 instructions \(\+2\.1 %\)   WORSE$' both compare
expect "only these count" '^2 cases: 1 worse, 0 better, 0 new, 1 as before' both compare
given 'a\t10\t1000\t0.010\nb\t10\t1000\t1.500\n'
expect "an allocation more is worse" '^  a .*0\.000 -> 0\.010 allocations   WORSE$' both compare
given 'a\t10\t500\t0.000\nb\t10\t1000\t0.500\nc\t1\t7\t0.000\n'
expect "fewer are better" '^3 cases: 0 worse, 2 better, 1 new, 0 as before' compare
expect "a new case is named" '^  c +7 instructions +0\.000 allocations   new$' compare
given 'a\t10\t1000\t0.000\n'
expect "a case that is gone is worse" '^  b +in the baseline, not counted   WORSE$' both compare
given 'a\t10\t2000\t0.000\nb\t10\t1000\t1.500\n'
COMPILER='cc 2' expect "another compiler: no verdict" 'the baseline was counted with "cc 1", this with "cc 2": no verdict' compare
given 'a\t10\tmany\t0.000\n'
expect "rubbish is refused with its line" 'counts:1: expected four columns' both compare
check "the baseline has what is counted" bash -c "
    cut -f1 '$root/bench/baseline.tsv' | grep -v '^#' | sort >'$work/has'
    { for w in \$(sed -n 's/^- name: //p' '$root/bench/workloads/performance-config.yaml'); do echo decide/\$w; done; } | sort >'$work/wants'
    [ -s '$work/wants' ] && missing=\$(comm -13 '$work/has' '$work/wants') && [ -z \"\$missing\" ]"
