#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scenarios of plugin Coscheduling against `berth up`: which pods get a node, and which do not.

usage: run.py [--bin build/bin] [--only TEXT]        reads groups.yaml beside this script, which says what a scenario has

Each runs in a Berth of its own, on a copy of a cluster that has the CRD already: a watcher that starts before it asks once a minute.
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

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
CRD = os.path.join(HERE, "../../../../config/coscheduling-crd.yaml")
PATIENCE = 120 * float(os.environ.get("BH_TEST_TIMEOUT_SCALE", "1"))  # seconds until a scenario has failed; upstream's
API = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"


class Failed(Exception):
    pass


class Berth:
    """One `berth up` on a data file."""

    def __init__(self, program, folder, data, config=None):
        path = f"{folder}/config.yaml"
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump(config or {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}, f)
        self.log = open(f"{folder}/up.out", "w+", encoding="utf-8")  # lives as long as the process
        self.up = subprocess.Popen([program, "up", "--no-example", "--front-port", "0", "--runtime-dir", f"{folder}/run", "--data", data, "--config", path],
                                   stdout=self.log, stderr=subprocess.STDOUT)
        self.server = ""
        self.until("berth up", lambda: None if self.is_up() else self.words())

    def words(self):
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()

    def is_up(self):
        if self.up.poll() is not None:
            raise Failed("berth up ended: " + self.words())
        for line in self.words().splitlines():
            if line.strip().startswith("API server"):
                self.server = line.split()[2]
        return "Ctrl-C" in self.words()

    def end(self):
        self.up.terminate()
        self.up.wait()
        self.log.close()

    def call(self, method, path, body=None):
        r = urllib.request.Request(self.server + path, method=method, data=json.dumps(body).encode() if body else None,
                                   headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(r, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            raise Failed(f"{method} {path}: {json.load(e).get('message')}") from e

    def until(self, what, lacks):
        """lacks: says what is not as it should be, None when all is."""
        end = time.monotonic() + PATIENCE
        while (why := lacks()) is not None:
            if time.monotonic() > end:
                raise Failed(f"{what}: {why} after {PATIENCE:g} s")
            time.sleep(0.1)


def config_of(args):
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]},
                                      "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}},
                          "pluginConfig": [{"name": "Coscheduling", "args": args}]}]}


def pod_of(text, resource, node=None):
    name, group, amount, *priority = text.split()
    spec = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {resource: amount}}}]}
    if priority:
        spec["priorityClassName"] = priority[0]
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "labels": {} if group == "-" else {"scheduling.x-k8s.io/pod-group": group}}
    if node:
        meta["annotations"] = {"sim.berth.dev/run-time": "0s"}
    return {"metadata": meta, "spec": spec}


def tried(pod):
    return any(c["type"] == "PodScheduled" for c in pod["status"].get("conditions", []))


def lacks(berth, s):
    """Exactly the pods in bound have a node, and all were tried."""
    pods = berth.call("GET", PODS)["items"]
    ended = {p["metadata"]["name"] for p in pods if p["status"].get("phase") == "Succeeded"}
    have = {p["metadata"]["name"] for p in pods if p["spec"].get("nodeName")} - ended
    if extra := have - set(s["bound"].split()):
        raise Failed(f"{' '.join(sorted(extra))} got a node")
    if missing := set(s["bound"].split()) - have:
        return f"{' '.join(sorted(missing))} got no node"
    untried = [p["metadata"]["name"] for p in pods if not p["spec"].get("nodeName") and not tried(p)]
    return f"{' '.join(untried)} were not tried" if untried else None


def play(o, table, s, crd):
    folder = tempfile.mkdtemp(prefix="cosched")
    shutil.copy(crd, f"{folder}/cluster.db")
    berth = Berth(f"{o.bin}/berth", folder, f"{folder}/cluster.db", config_of(s.get("args", table["args"])))
    try:
        nodes = s.get("nodes", table["nodes"])
        resource = next(k for k in nodes[0] if k != "pods")
        for i, has in enumerate(nodes):
            berth.call("POST", "/api/v1/nodes", {"metadata": {"name": f"n{i}"},
                                                 "status": {"allocatable": {k: str(v) for k, v in has.items()},
                                                            "conditions": [{"type": "Ready", "status": "True"}]}})
        for name, value in table["priorities"].items():
            berth.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        for name, g in s["groups"].items():
            spec = {"minMember": g["min"], **({"minResources": g["resources"]} if "resources" in g else {})}
            berth.call("POST", API, {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})
        for text in s.get("done", []):
            name = text.split()[0]
            berth.call("POST", PODS, pod_of(text, resource, "n0"))
            berth.until(name, lambda n=name: None if berth.call("GET", f"{PODS}/{n}")["status"].get("phase") == "Succeeded" else "runs")
        for text in s["pods"]:
            berth.call("POST", PODS, pod_of(text, resource))
        berth.until("pods", lambda: lacks(berth, s))
    finally:
        berth.end()
        shutil.rmtree(folder)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", default="build/bin")
    p.add_argument("--only", default="", help="scenarios with this in their name")
    o = p.parse_args()
    with open(f"{HERE}/groups.yaml", encoding="utf-8") as f:
        table = yaml.safe_load(f)
    folder = tempfile.mkdtemp(prefix="cosched")
    crd = f"{folder}/cluster.db"
    berth = Berth(f"{o.bin}/berth", folder, crd)
    with open(CRD, encoding="utf-8") as f:
        berth.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", next(yaml.safe_load_all(f)))
    berth.end()
    passed = failed = 0
    for s in table["scenarios"]:
        if o.only not in s["name"]:
            continue
        try:
            play(o, table, s, crd)
            passed += 1
            print(f"ok - {s['name']}", flush=True)
        except Failed as e:
            failed += 1
            print(f"not ok - {s['name']}\n#   {e}", flush=True)
    shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
