#!/usr/bin/env bash
# What the built-in API server accepts, refuses and stores, against recorded answers of kube-apiserver (tests/validation/README.md).
# VALIDATION=--write writes the list of what differs.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
"$BERTH_BIN/berth-simulator" --no-controllers --feature-gates GenericWorkload=true --runtime-config scheduling.k8s.io/v1alpha2=true \
    --port 0 --kubeconfig-out "$work/sim.conf" >"$work/sim.log" 2>&1 &
also_stop=$!
wait_for_file "$work/sim.conf"
port=$(sed -n 's/.*server:.*:\([0-9]*\)$/\1/p' "$work/sim.conf")
check "recorded requests are answered as known.txt has it" \
    python3 "$here/../validation/replay.py" ${VALIDATION:+"$VALIDATION"} "$port"
finish
