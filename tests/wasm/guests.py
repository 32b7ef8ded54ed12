#!/usr/bin/env python3
"""A folder of foreign guests, each in a small cluster: what it exports, and what became of a pod.

usage: tests/wasm/guests.py --bin build/bin DIR
Prints a table; fails when a guest ends `berth simulate` in another way than by placing the pod, rejecting it, or refusing the guest, and when one of
the original's test guests (told by the end of its path) does not do what it does there.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

NODE = """---
apiVersion: v1
kind: Node
metadata: {name: %s}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
POD = """---
apiVersion: v1
kind: Pod
metadata: {name: good-pod, namespace: test}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
"""
BOTH = ["good-node", "bad-node"]
PANIC = r"panic!.wasm error: unreachable.wasm stack trace:"
# What the original's test guests say: the end of the path, argv, nodes, what becomes of the pod.
VECTORS = [
    ("reserve/main", [], ["good"], "^Scheduled  good"),
    ("reserve/main", [], ["bad"], "^Error .*name is bad"),
    ("permit/main", [], ["good"], "^Scheduled  good"),
    ("permit/main", [], ["bad"], "^Error .*name is bad"),
    ("bind/main", [], ["bad"], "^Scheduled  bad"),  # berth simulate does not bind
    ("score/main", ["test", "preScore"], BOTH, "^Error .*PreScore plugin"),
    ("score/main", ["test", "score"], BOTH, "^Scheduled"),
    ("score/main", ["test", "scoreExtensions"], BOTH, "^Scheduled"),
    ("filter/main", ["test", "preFilter"], BOTH, "^Scheduled"),
    ("filter/main", ["test", "filter"], BOTH, "^Scheduled"),
    ("panic_on_start", [], BOTH, "^refused: wasm: instantiate error: panic!.module.1. function._start. failed: wasm error: unreachable"),
    ("panic_on_enqueue", [], BOTH, f"wasm: enqueue error: {PANIC}"),
    ("panic_on_get_config", [], BOTH, "wasm: prefilter error: wasm error: unreachable"),
    ("not_plugin", [], BOTH, "^refused: wasm: guest does not export any plugin functions"),
    ("prescore_without_score", [], BOTH, "^refused: wasm: filter, score, reserve, permit or bind must be exported"),
    ("scoreextensions_without_score", [], BOTH, "^refused: wasm: filter, score, reserve, permit or bind must be exported"),
] + [(f"panic_on_{hook}", [], BOTH, f"wasm: {hook} error: {PANIC}")
     for hook in ("prefilter", "filter", "prescore", "score", "reserve", "permit")
] + [(f"{hook}_from_global", [], BOTH, "^Scheduled") for hook in ("prefilter", "filter", "score", "reserve", "permit", "prebind", "bind", "postbind")]


def config(guest, argv):
    plugins = {"multiPoint": {"enabled": [{"name": "Guest"}]}, "bind": {"disabled": [{"name": "DefaultBinder"}],
                                                                       "enabled": [{"name": "DefaultBinder"}]}}
    args = {"guestURL": f"file://{guest}", "hookTimeout": "10s", "args": argv}
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins, "pluginConfig": [{"name": "Guest", "args": args}]}]}


def run(*words):
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return p.returncode, p.stdout


def verdict(bin_dir, guest, work, argv=(), nodes=BOTH):
    (work / "cluster.yaml").write_text("".join(NODE % n for n in nodes) + POD)
    (work / "config.yaml").write_text(json.dumps(config(guest, list(argv))))
    code, text = run(f"{bin_dir}/berth", "simulate", "-f", work / "cluster.yaml", "--config", work / "config.yaml")
    refused = re.search(r"wasm: .*", text)
    pod = re.search(r"good-pod +(.*)", text)
    why = re.search(r"1 +test/good-pod +(.*)", text)
    if pod:
        return 0 <= code < 128, pod[1].replace(" <none>", "") + (why[1] if why else "")
    return code in (1, 2) and bool(refused), f"refused: {refused[0]}" if refused else text.strip()


def vectors(bin_dir, guest, work):
    """Of a test guest of the original's: how many of its vectors were looked at, and those that failed."""
    mine = [v for v in VECTORS if re.search(f"(^|/){v[0]}\\.wasm$", str(guest))]
    wrong = []
    for _, argv, nodes, want in mine:
        text = verdict(bin_dir, guest, work, argv, nodes)[1]
        if not re.search(want, text):
            wrong.append(f"argv {argv}, nodes {nodes}: has {text[:150]!r}, want {want!r}")
    return len(mine), wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", required=True)
    p.add_argument("dir", type=pathlib.Path)
    o = p.parse_args()
    bad = 0
    guests = sorted(o.dir.resolve().rglob("*.wasm"))
    with tempfile.TemporaryDirectory() as work:
        for g in guests:
            hooks = re.search(r"hooks +(.*)", run(f"{o.bin}/berth", "wasm", "check", g)[1])
            good, text = verdict(o.bin, g, pathlib.Path(work))
            n, wrong = vectors(o.bin, g, pathlib.Path(work))
            bad += not good or bool(wrong)
            print(f"{str(g.relative_to(o.dir.resolve())):62} {'ok ' if good else 'BAD'} {text[:150]}")
            print(f"{'':66} {hooks[1] if hooks else 'no module'}{f'; as the original in {n - len(wrong)} of {n} cases' if n else ''}")
            for line in wrong:
                print(f"{'':66} BAD {line}")
    print(f"{len(guests) - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad or not guests else 0


if __name__ == "__main__":
    sys.exit(main())
