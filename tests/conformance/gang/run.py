#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scenarios of groups of pods against `berth up`: what is bound, what waits and why, what is preempted.

usage: run.py [--bin build/bin] [--only TEXT] [FILE...]        FILE: podgroup.json beside this script

A file has a node, groups and pods by the beginning of their names, and scenarios of steps: {"group": NAME}, {"create": PODS},
{"delete": PODS}; and what has to become true: {"bound": PODS}, {"gated": PODS}, {"unschedulable": PODS}, {"gone": PODS},
{"condition": "GROUP STATUS REASON"}, {"of": PODS, "bound_n": N, "unschedulable_n": M}. Each scenario runs in a Berth of its own, with
feature gate WorkloadAwarePreemption if it has "wap", and with and without TopologyAwareWorkloadScheduling ("tas": with it alone).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 60 * float(os.environ.get("BH_TEST_TIMEOUT_SCALE", "1"))  # seconds until a step has failed
API = "/apis/scheduling.k8s.io/v1alpha2"
PODS = "/api/v1/namespaces/default/pods"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npodInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1\n"


class Failed(Exception):
    pass


class Berth:
    """One `berth up` with its gates, from an empty cluster with one node."""

    def __init__(self, o, data, gates):
        self.dir = tempfile.mkdtemp(prefix="gang")
        self.bin = o.bin
        with open(f"{self.dir}/config.yaml", "w", encoding="utf-8") as f:
            f.write(CONFIG)
        self.log = open(f"{self.dir}/up.out", "w+", encoding="utf-8")  # lives as long as the process
        self.up = subprocess.Popen(
            [f"{o.bin}/berth", "up", "--no-example", "--front-port", "0", "--runtime-dir", f"{self.dir}/run", "--config", f"{self.dir}/config.yaml",
             "--feature-gates", ",".join(f"{g}=true" for g in gates), "--runtime-config", "scheduling.k8s.io/v1alpha2=true"],
            stdout=self.log, stderr=subprocess.STDOUT)
        self.server = ""
        self.until("berth up is up", True, self.is_up)
        self.create("/api/v1/nodes", {"metadata": {"name": "node", "labels": data["node"]["labels"]},
                                      "status": {"capacity": {"cpu": str(data["node"]["cpu"]), "memory": "64Gi", "pods": "110"},
                                                 "conditions": [{"type": "Ready", "status": "True"}]}})
        for p in sorted({x["priority"] for x in [*data["groups"].values(), *data["pods"].values()]}):
            self.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"p{p}"}, "value": p})

        # The node is tainted until it is ready: what is tried before would fail, and be overtaken. A pod without requests shows when.
        self.create(PODS, {"metadata": {"name": "first"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}})
        self.until("the first pod", "bound", lambda: self.place("first"))
        self.call("DELETE", f"{PODS}/first")

    def is_up(self):
        if self.up.poll() is not None:
            raise Failed("berth up ended: " + self.words())
        for line in self.words().splitlines():
            if line.strip().startswith("API server"):
                self.server = line.split()[2]
        return "Ctrl-C" in self.words()

    def words(self):
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()

    def end(self):
        self.up.terminate()
        self.up.wait()
        self.log.close()
        shutil.rmtree(self.dir)

    def call(self, method, path, body=None):
        r = urllib.request.Request(self.server + path, method=method, data=json.dumps(body).encode() if body else None,
                                   headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(r, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return None
            raise Failed(f"{method} {path}: {json.load(e).get('message')}") from e

    def create(self, path, obj):
        if self.call("POST", path, obj) is None:
            raise Failed(f"POST {path}: 404")

    def until(self, what, wanted, look):
        end = time.monotonic() + PATIENCE
        while (state := look()) != wanted:
            if time.monotonic() > end:
                raise Failed(f"{what}: wanted {wanted}, is {state} after {PATIENCE:g} s")
            time.sleep(0.1)

    # ---- what is to be seen

    def place(self, name):
        """bound, unschedulable, gone, or what `berth queue` says: gated, active ..."""
        pod = self.call("GET", f"{PODS}/{name}")
        if not pod or pod["metadata"].get("deletionTimestamp"):
            return "gone"
        if pod["spec"].get("nodeName"):
            return "bound"
        conditions = {c["type"]: c for c in pod["status"].get("conditions", [])}
        if conditions.get("PodScheduled", {}).get("reason") == "Unschedulable":
            return "unschedulable"
        out = subprocess.run([f"{self.bin}/berth", "queue", "--all", "-o", "json", "--runtime-dir", f"{self.dir}/run"], capture_output=True, text=True, check=False)
        items = json.loads(out.stdout)["items"] if out.returncode == 0 else []
        return next((i["queue"].lower() for i in items if i["name"] == name), "unknown")

    def condition(self, group):
        g = self.call("GET", f"{API}/namespaces/default/podgroups/{group}") or {}
        c = next((c for c in g.get("status", {}).get("conditions", []) if c["type"] == "PodGroupScheduled"), {})
        return f"{group} {c.get('status', 'None')} {c.get('reason', '')}"


def group_of(data, name):
    g = data["groups"][name]
    spec = {"schedulingPolicy": {"gang": {"minCount": g["gang"]}} if "gang" in g else {"basic": {}}, "priorityClassName": f"p{g['priority']}"}
    if "whole" in g:
        spec["disruptionMode"] = "PodGroup"
    if "topology" in g:
        spec["schedulingConstraints"] = {"topology": [{"key": g["topology"]}]}
    return {"metadata": {"name": name}, "spec": spec}


def pod_of(data, name):
    p = data["pods"][name[:name.rindex("-") + 1]]
    spec = {"priorityClassName": f"p{p['priority']}", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(p["cpu"])}}}]}
    if "group" in p:
        spec["schedulingGroup"] = {"podGroupName": p["group"]}
    return {"metadata": {"name": name}, "spec": spec}


def step(berth, data, s):
    if "group" in s:
        berth.create(f"{API}/namespaces/default/podgroups", group_of(data, s["group"]))
    elif "create" in s:
        for name in s["create"].split():
            berth.create(PODS, pod_of(data, name))
    elif "delete" in s:
        for name in s["delete"].split():
            berth.call("DELETE", f"{PODS}/{name}")
    elif "condition" in s:
        berth.until("condition", s["condition"], lambda: berth.condition(s["condition"].split()[0]))
    elif "of" in s:
        def counts():
            places = [berth.place(n) for n in s["of"].split()]
            return f"{places.count('bound')} bound, {places.count('unschedulable')} unschedulable"
        berth.until(s["of"], f"{s['bound_n']} bound, {s['unschedulable_n']} unschedulable", counts)
    else:
        (want, names), = s.items()
        for name in names.split():
            berth.until(name, want, lambda n=name: berth.place(n))


def play(o, data, scenario, tas):
    gates = ["GenericWorkload", "GangScheduling"] + ["TopologyAwareWorkloadScheduling"] * tas + ["WorkloadAwarePreemption"] * scenario.get("wap", False)
    berth = Berth(o, data, gates)
    try:
        for n, s in enumerate(scenario["steps"], 1):
            try:
                step(berth, data, s)
            except Failed as e:
                raise Failed(f"step {n}: {e}") from e
    finally:
        berth.end()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", default="build/bin")
    p.add_argument("--only", default="", help="scenarios with this in their name")
    p.add_argument("file", nargs="*", default=[os.path.join(os.path.dirname(os.path.abspath(__file__)), "podgroup.json")])
    o = p.parse_args()
    passed = failed = 0
    for path in o.file:
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        for scenario in data["scenarios"]:
            for tas in [True] if scenario.get("tas") else [False, True]:
                name = scenario["name"] + (", with topology" if tas else "")
                if o.only not in name:
                    continue
                try:
                    play(o, data, scenario, tas)
                    passed += 1
                    print(f"ok - {name}", flush=True)
                except Failed as e:
                    failed += 1
                    print(f"not ok - {name}\n#   {e}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
