#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/integration/client.sh - the official Python client (client.py) against berth-simulator
#
#   BERTH_BIN  folder of the programs  (build/bin)
#
# Debian's python3-kubernetes; without it everything is skipped.
set -u
BERTH_BIN=${BERTH_BIN:-build/bin}
python=
for p in /usr/bin/python3 python3; do
    "$p" -c 'import kubernetes' 2>/dev/null && python=$p && break
done
if [ -z "$python" ]; then
    echo "skip   no Python with the kubernetes module"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
tmp=$(mktemp -d)
"$BERTH_BIN/berth-simulator" --kubeconfig-out "$tmp/kubeconfig" >"$tmp/out" 2>"$tmp/log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$tmp"' EXIT
for _ in $(seq 200); do
    [ -s "$tmp/kubeconfig" ] && break
    read -rt 0.05 <> <(:) || true
done
timeout $((300 * ${BH_TEST_TIMEOUT_SCALE:-1})) "$python" "$(dirname "$0")/client.py" "$tmp/kubeconfig"
