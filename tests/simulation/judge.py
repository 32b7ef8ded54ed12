#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges histories for berth-simulation: lines "FILE QUIET_NS" in; out "ok" and what there was, or what was found."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
import check  # noqa: E402

STALE = 30.0  # a host may be cut off, and its processes stopped, for 25 s
LATE = 48.0  # what a connection lost is given to a binder again after 45 s: as DOUBT_NS

for line in sys.stdin:
    path, quiet = line.split()
    c = check.Checker(STALE, 0, int(quiet), LATE)
    for change in check.read(path):
        c.feed(change)
    c.finish(False)
    counts = " ".join(str(c.counts[k]) for k in ("binds", "preemptions", "takeovers", "excused"))
    print("; ".join(f"{rule} at {rv}: {text}" for rv, rule, text in c.found[:3])[:480] or f"ok {counts}", flush=True)
