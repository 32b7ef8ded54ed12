#!/usr/bin/env bash
# kill -9 of scheduler, of scheduler and binder, of binder, while a binding is on the wire that takes effect later: no node is
# booked twice. A short form of `make doublebook`; SEED repeats the order of the runs, RUNS changes how many there are.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
RUNS=${RUNS:-12}
SEED=${SEED:-$RANDOM}
echo "# SEED=$SEED RUNS=$RUNS"
for kind in scheduler both binder; do
    check "no node is booked twice, nobody is forgotten: kill -9 of $kind, bindings held for 1 s" \
        python3 "$here/../faults/doublebook.py" --bin "$BERTH_BIN" --runs "$((RUNS / 3))" --kind "$kind" --delay 1 \
        --clusters 2 --seed "$SEED" --logs "$work/$kind"
done
