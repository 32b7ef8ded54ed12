#!/usr/bin/env bash
# The Rust declarations that are made of berth/plugin.h (tools/rust-header.awk) have its layout: every row of
# tests/unit/scheduler/native/test_layout.c holds for them, too.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
root=$(realpath "$here/../..")
make_rs() { awk -f "$root/tools/rust-header.awk" "$1"; }

# ---- what it does not understand is an error, not left out
header=$root/plugins/include/berth/plugin.h
printf 'struct berth_x {\n    uint32_t size;\n    uint32_t open' >"$work/half.h"
check "a header that ends too early" status 1 make_rs "$work/half.h"
printf '/* one\n */\nunion berth_x { uint32_t a; };\n' >"$work/union.h"
check "a declaration of another kind" status 1 make_rs "$work/union.h"
check "the header" status 0 make_rs "$header"
command -v rustc >/dev/null || { skip "layout in Rust" "no rustc"; exit 0; }

# ---- each row of the C test as a line of a program
make_rs "$header" >"$work/berth.rs"
{
    echo 'mod berth;'
    echo 'macro_rules! at { ($t:ident, $m:ident, $n:expr) => {{ let u = std::mem::MaybeUninit::<berth::$t>::uninit(); let p = u.as_ptr();'
    echo '    let n = unsafe { std::ptr::addr_of!((*p).$m) as usize - p as usize }; row(n == $n, stringify!($t.$m)); }} }'
    echo 'fn row(good: bool, what: &str) { println!("{} {}", if good { "good" } else { "wrong" }, what); }'
    echo 'fn main() {'
    sed -nE -e 's/^AT\(([a-z0-9_]+), type, ([0-9]+)\);/    at!(berth_\1, type_, \2);/; s/^AT\(([a-z0-9_]+), ([a-z0-9_]+), ([0-9]+)\);/    at!(berth_\1, \2, \3);/p; /^    at!/p' \
        -e 's/^(GROWS|FIXED)\(([a-z0-9_]+), ([0-9]+)\);/    row(std::mem::size_of::<berth::berth_\2>() >= \3, "size of \2");/p' \
        -e 's/^IS\(([A-Z0-9_]+), ([0-9a-fx]+)u?\);/    row(berth::BERTH_\1 as u64 == \2, "\1");/p' "$root/tests/unit/scheduler/native/test_layout.c" | uniq
    echo '}'
} >"$work/layout.rs"
(cd "$work" && rustc --edition 2021 -o layout layout.rs) >"$work/said" 2>&1
check "they compile, as the test's rows" test $? = 0
"$work/layout" >"$work/rows"
check "no row is lost" test "$(grep -c '' "$work/rows")" = "$(grep -cE '^(AT|GROWS|FIXED|IS)\(' "$root/tests/unit/scheduler/native/test_layout.c")"
check "every row holds" test "$(grep -c '^wrong' "$work/rows")" = 0
