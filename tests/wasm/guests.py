#!/usr/bin/env python3
"""A folder of foreign guests, each in a small cluster: what it exports, and what became of a pod.

usage: tests/wasm/guests.py --bin build/bin DIR
Prints a table; fails when a guest ends `berth simulate` in another way than by placing the pod, rejecting it, or refusing the guest.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: good-node}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: bad-node}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: good-pod, namespace: test}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
"""


def config(guest):
    plugins = {"multiPoint": {"enabled": [{"name": "Guest"}]}, "bind": {"disabled": [{"name": "DefaultBinder"}],
                                                                       "enabled": [{"name": "DefaultBinder"}]}}
    args = {"guestURL": f"file://{guest}", "hookTimeout": "10s"}
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins, "pluginConfig": [{"name": "Guest", "args": args}]}]}


def run(*words):
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return p.returncode, p.stdout


def verdict(bin_dir, guest, work):
    (work / "cluster.yaml").write_text(CLUSTER)
    (work / "config.yaml").write_text(json.dumps(config(guest)))
    code, text = run(f"{bin_dir}/berth", "simulate", "-f", work / "cluster.yaml", "--config", work / "config.yaml")
    refused = re.search(r"wasm: .*", text)
    pod = re.search(r"good-pod +(.*)", text)
    why = re.search(r"1 +test/good-pod +(.*)", text)
    if pod:
        return 0 <= code < 128, pod[1].replace(" <none>", "") + (why[1] if why else "")
    return code in (1, 2) and bool(refused), f"refused: {refused[0]}" if refused else text.strip()


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
            bad += not good
            print(f"{str(g.relative_to(o.dir.resolve())):62} {'ok ' if good else 'BAD'} {text[:150]}")
            print(f"{'':66} {hooks[1] if hooks else 'no module'}")
    print(f"{len(guests) - bad} passed, {bad} failed, 0 skipped")
    return 1 if bad or not guests else 0


if __name__ == "__main__":
    sys.exit(main())
