#!/usr/bin/env python3
"""Draws the repository's sample from the whole recording, always the same one.

usage: tests/conformance/sample.py CORPUS OUTDIR

Every case of every kind is kept, byte for byte; one of more than STEPS steps (a trace) keeps the first
STEPS of them. The files are compressed without name and time, so that the same recording gives the same
bytes.
"""
import glob
import gzip
import json
import os
import sys

STEPS = 3000


def sample(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        for line in f:
            case = json.loads(line)
            if len(case["steps"]) > STEPS:
                case["steps"] = case["steps"][:STEPS]
                line = json.dumps(case, separators=(",", ":"), ensure_ascii=False) + "\n"
            yield line.encode()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    corpus, out = sys.argv[1:]
    total = 0
    for path in sorted(glob.glob(os.path.join(corpus, "*.jsonl.gz"))):
        target = os.path.join(out, os.path.basename(path))
        data = gzip.compress(b"".join(sample(path)), compresslevel=9, mtime=0)
        with open(target, "wb") as f:
            f.write(data)
        total += len(data)
        print(f"{os.path.basename(path):32} {len(data):8}")
    print(f"{'total':32} {total:8}")


if __name__ == "__main__":
    main()
