#!/usr/bin/env bash
# The scheduler has its USDT probes, with the arguments that docs/debugging.md names.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"

readelf -n "$BERTH_BIN/berth-scheduler" >"$work/notes"
for probe in pop decide assume send written confirmed; do
    if grep -A3 'Provider: berth$' "$work/notes" | grep -A2 "Name: $probe\$" | grep -qE 'Arguments: (-?[0-9]@[^ ]+ ?){3}$'; then
        ok "probe $probe with three arguments"
    else
        not_ok "probe $probe with three arguments" "$(grep -A3 'Provider: berth' "$work/notes")"
    fi
done
