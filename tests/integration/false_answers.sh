#!/usr/bin/env bash
# Bindings that are answered 404, 409, 410 or 422 while nothing happened, and pods that are deleted meanwhile: each one that is
# there has a node in the end. A false 201 is noticed after 30 s: `make faults` waits for it, a unit test of the daemon does not have to.
exec python3 "$(dirname "$0")/../faults/answers.py" --bin "${BERTH_BIN:-build/bin}" \
    --answer 404 --answer 409 --answer 410 --answer 422 --answer deleted --answer again
