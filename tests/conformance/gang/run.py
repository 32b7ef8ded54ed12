#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scenarios of groups of pods against `berth up`: what is bound, what waits and why, what is preempted.

usage: run.py [--bin build/bin] [--only TEXT] [FILE...]        FILE: all *.json beside this script

A file has groups and workloads, nodes and pods by the beginning of their names, and scenarios: "nodes", the cluster, and "steps":
  to do:                  {"group": NAME}, {"group": NAME, "refused": TEXT}, {"workload": NAME}, {"delete_workload": NAME}, {"budget": {NAME: SPEC}},
                          {"create": PODS} (POD@NODE: on that node already), {"delete": PODS}
  what has to become true {"bound": PODS}, {"gated": PODS}, {"unschedulable": PODS}, {"gone": PODS}, {"condition": "GROUP STATUS REASON"},
                          {"of": PODS, "bound_n": N, "unschedulable_n": M}, {"preempted": PODS, "by": "podgroup" or "pod"} (those and no others)
  what is true then       {"pods": PODS, "on": NODES}, {"pods": PODS, "one": LABEL} (all in one domain)
Each scenario runs in a Berth of its own, with feature gate WorkloadAwarePreemption if it has "wap", with and without
TopologyAwareWorkloadScheduling ("tas": true or false: only so), and with and without GangScheduling if it has "without_gang". What
scenarios of a file have in common stands in its "all".
"""
import argparse
import glob
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
    """One `berth up` with its gates, from an empty cluster with the scenario's nodes."""

    def __init__(self, o, gates):
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

    def begin(self, data, nodes):
        self.until("berth up is up", True, self.is_up)
        for name in nodes:
            self.create("/api/v1/nodes", node_of(data, name))
        for p in sorted({x["priority"] for x in [*data["groups"].values(), *data["pods"].values()]}):
            self.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"p{p}"}, "value": p})

        # A node is tainted until it is ready: what is tried before would fail, and be overtaken. Pods without requests show when.
        for name in nodes:
            self.create(PODS, {"metadata": {"name": f"first-{name}"}, "spec": {"terminationGracePeriodSeconds": 0, "nodeSelector": {"kubernetes.io/hostname": name},
                                                                              "containers": [{"name": "c", "image": "i"}]}})
        for name in nodes:
            self.until(f"the first pod of {name}", "bound", lambda n=name: self.place(f"first-{n}"))
            self.call("DELETE", f"{PODS}/first-{name}")

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
            raise Failed(f"{method} {path}: {e.code} {json.load(e).get('message')}") from e

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


    def node(self, name):
        pod = self.call("GET", f"{PODS}/{name}") or {"spec": {}}
        return pod["spec"].get("nodeName", "none")

    def label(self, node, key):
        return (self.call("GET", f"/api/v1/nodes/{node}") or {"metadata": {}})["metadata"].get("labels", {}).get(key, "none")

    def preempted(self, by):
        """Names of the pods that events say were preempted by a "pod" or a "podgroup"."""
        events = self.call("GET", "/api/v1/namespaces/default/events?fieldSelector=reason%3DPreempted")["items"]
        return " ".join(sorted({e["involvedObject"]["name"] for e in events if e["message"].startswith(f"Preempted by {by} ")}))


def sort_of(objects, name):
    return objects[name[:name.rindex("-") + 1]]


def node_of(data, name):
    n = sort_of(data["nodes"], name)
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **n["labels"]}},
            "status": {"capacity": {"cpu": str(n["cpu"]), "memory": "64Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}}


def policy_of(g):
    return {"gang": {"minCount": g["gang"]}} if "gang" in g else {"basic": {}}


def workload_of(data, name):
    w = data["workloads"][name]
    meta = {"name": name, **({"finalizers": ["example.com/held"]} if w.get("held") else {})}
    return {"metadata": meta, "spec": {"podGroupTemplates": [{"name": t, "schedulingPolicy": policy_of(g)} for t, g in w["templates"].items()]}}


def group_of(data, name):
    g = data["groups"][name]
    spec = {"schedulingPolicy": policy_of(g), "priorityClassName": f"p{g['priority']}"}
    if "whole" in g:
        spec["disruptionMode"] = "PodGroup"
    if "topology" in g:
        spec["schedulingConstraints"] = {"topology": [{"key": g["topology"]}]}
    if "template" in g:
        spec["podGroupTemplateRef"] = {"workload": dict(zip(("workloadName", "podGroupTemplateName"), g["template"]))}
    return {"metadata": {"name": name}, "spec": spec}


def pod_of(data, name):
    name, _, node = name.partition("@")
    p = sort_of(data["pods"], name)
    spec = {"priorityClassName": f"p{p['priority']}", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(p["cpu"])}}}]}
    if "group" in p:
        spec["schedulingGroup"] = {"podGroupName": p["group"]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "labels": p.get("labels", {})}, "spec": spec}


def make_group(berth, data, s):
    try:
        berth.create(f"{API}/namespaces/default/podgroups", group_of(data, s["group"]))
    except Failed as e:
        if "refused" in s and ": 403 " in str(e) and s["refused"] in str(e):
            return
        raise
    if "refused" in s:
        raise Failed(f"group {s['group']}: wanted to be refused, was taken")


def do(berth, data, s):
    """What is to be done; False: the step is of another sort."""
    if "group" in s:
        make_group(berth, data, s)
    elif "workload" in s:
        berth.create(f"{API}/namespaces/default/workloads", workload_of(data, s["workload"]))
    elif "delete_workload" in s:
        berth.call("DELETE", f"{API}/namespaces/default/workloads/{s['delete_workload']}")
    elif "budget" in s:
        for name, spec in s["budget"].items():
            berth.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec})
    elif "create" in s:
        for name in s["create"].split():
            berth.create(PODS, pod_of(data, name))
    elif "delete" in s:
        for name in s["delete"].split():
            berth.call("DELETE", f"{PODS}/{name}")
    else:
        return False
    return True


def look(berth, s):
    """What has to become true, or is to be true."""
    if "condition" in s:
        berth.until("condition", s["condition"], lambda: berth.condition(s["condition"].split()[0]))
    elif "preempted" in s:
        berth.until("preempted", " ".join(sorted(s["preempted"].split())), lambda: berth.preempted(s["by"]))
        for name in s["preempted"].split():
            berth.until(name, "gone", lambda n=name: berth.place(n))
    elif "of" in s:
        def counts():
            places = [berth.place(n) for n in s["of"].split()]
            return f"{places.count('bound')} bound, {places.count('unschedulable')} unschedulable"
        berth.until(s["of"], f"{s['bound_n']} bound, {s['unschedulable_n']} unschedulable", counts)
    elif "pods" in s:
        nodes = {n: berth.node(n) for n in s["pods"].split()}
        if "on" in s and not set(nodes.values()) <= set(s["on"].split()):
            raise Failed(f"wanted all on {s['on']}: {nodes}")
        if "one" in s and len({berth.label(n, s["one"]) for n in nodes.values()} | {"none"}) != 2:
            raise Failed(f"wanted all in one {s['one']}: {nodes}")
    else:
        (want, names), = s.items()
        for name in names.split():
            berth.until(name, want, lambda n=name: berth.place(n))


def play(o, data, scenario, gates):
    berth = Berth(o, gates)
    try:
        berth.begin(data, scenario["nodes"].split())
        for n, s in enumerate(scenario["steps"], 1):
            try:
                if not do(berth, data, s):
                    look(berth, s)
            except Failed as e:
                raise Failed(f"step {n}: {e}") from e
    finally:
        berth.end()


def variants(scenario):
    """Its gates, as often as it is played, and what is to be said of them."""
    for tas in [scenario["tas"]] if "tas" in scenario else [False, True]:
        for gang in [True, False] if scenario.get("without_gang") else [True]:
            gates = ["GenericWorkload"] + ["GangScheduling"] * gang + ["TopologyAwareWorkloadScheduling"] * tas + ["WorkloadAwarePreemption"] * scenario.get("wap", False)
            yield gates, ", with topology" * (tas and "tas" not in scenario) + ", without GangScheduling" * (not gang)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", default="build/bin")
    p.add_argument("--only", default="", help="scenarios with this in their name")
    p.add_argument("file", nargs="*", default=sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "*.json"))))
    o = p.parse_args()
    passed = failed = 0
    for path in o.file:
        with open(path, encoding="utf-8") as f:
            data = {"all": {}, **json.load(f)}
        for scenario in ({**data["all"], **s} for s in data["scenarios"]):
            for gates, with_what in variants(scenario):
                name = scenario["name"] + with_what
                if o.only not in name:
                    continue
                try:
                    play(o, data, scenario, gates)
                    passed += 1
                    print(f"ok - {name}", flush=True)
                except Failed as e:
                    failed += 1
                    print(f"not ok - {name}\n#   {e}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
