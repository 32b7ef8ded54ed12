#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of the community's plugins: what one plugin says of one node, and of wrong arguments.

usage: run.py [--bin build/bin] [--only TEXT] [--apart [--first N]] [FILE.yaml...]        default: all beside this script

A file has `plugin` (with `sorts: true`: it is a QueueSort), defaults of its cases (`args`, `node`) and `cases`. A case has a name and

  node, nodes   what nodes have: {cpu: 1000m, memory: 1Gi} each, and under `allocatable` where it is less, and `labels`,
                `annotations`; `nodes` has names
  pods          on nodes: {node: NAME, containers: [...], started: seconds before the window's end, name, namespace, scheduler};
                `terminating: true`; `copies`: of it; `nominated: NODE`: it is on no node, but waits for room on this one
  before        pods that are scheduled first, each {containers: [...]}
  pod           the one that is scheduled: {containers: [{requests, limits}], init: [...], overhead: {...}}
  topology      of node `node`, or by node: a name in the table's `topologies`: {policy: one or a list, attributes, zones: [{cpu: "4", costs: [10, 20] or by number}, ...]};
                a zone is named node-0, node-1 and so on, or by its `name`, and of type Node or its `type`;
                `knows`: the pods (NAMESPACE/NAME) whose fingerprint it has, or the fingerprint; `annotated: true`: in an annotation;
                `allocatable` of each zone: {cpu: "4", ...}; `placed`: {NAMESPACE/POD/CONTAINER: zone}, or the attribute as it is
  profiles      of seccomp, the table's and the case's: {NAMESPACE/NAME: [system calls that are allowed]} or {NAMESPACE/NAME: {ACTION: [...]}};
                of a pod or a container `seccomp`: what it says of the path of one, or {type: ...}
  metrics       by node: words of the file that the plugin reads ("CPU/AVG=50 CPU/STD=10"); `window_age`: seconds since it ended
  objects       what else there is, as it is; those of the table come first
  order         the queue's: names of `queue`, pods by name, as they are tried
  score         of node `node`, or by node; `raw`: before NormalizeScore; `rejects`: by node, the filter's reason
  points        the extension points that it is enabled at: [filter, score]; without: all that it has
  errors        instead of all that: texts that checking the arguments gives; []: they are right

A table with `with` (further plugins) is about what becomes of pods, by preemption too. Its cases have

  quotas        by namespace the spec of an ElasticQuota: {min: {memory: 100}, max: {...}}
  topology      as above
  there, come   pods as above with `name`, `priority`; or "NAME NAMESPACE AMOUNT PRIORITY [NODE]"; AMOUNT: of the table's `resources` ("50,10m"), PRIORITY a number or of its
                `priorities`. A word `terminating` behind them, or `nominated=NODE`, or `policy=Never`, `label=VALUE`, `class=NAME`,
                `scheduled=SECONDS` ago
  more_nodes    so many besides, without room
  classes       priority classes: {NAME: {value: 1, ANNOTATION: TEXT}}, each annotation without its prefix
  budgets       pod disruption budgets: {NAMESPACE: {LABEL VALUE: disruptions allowed}}
  bound         the names of those that have a node in the end; `on` by name: which
  says          by name: what the message of one without a node has in it

Every case is decided by both paths of the engine (--verify), in an engine of its own with no other plugin. With --apart the plugins run in a process of their own
(mode: process), those in REFUSED say why they do not.
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

import yaml

FILES = {"GPUBestFit": "fgd", "NetworkOverhead": "networkaware", "TopologicalSort": "networkaware"}  # others: the plugin's name in small letters
TRIMARAN = ("TargetLoadPacking", "LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks")
REFUSED = {"TopologicalSort": "sorts the queue (less)", "QOSSort": "sorts the queue (less)"}
HERE = os.path.dirname(os.path.abspath(__file__))


def config(plugin, args, others=("PrioritySort", "DefaultBinder"), points=()):
    """points: where the plugin is enabled; (): at all of its extension points."""
    enabled = [{"name": n} for n in others] + [{"name": plugin, "weight": 1}] * (not points)
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled},
                                      **{p: {"enabled": [{"name": plugin}]} for p in points}},
                          "pluginConfig": [{"name": plugin, "args": args}]}]}


def sorted_by(plugin, args):
    """Nodes take one pod each, the first by name first: so the nodes' names tell the order."""
    c = config(plugin, args)
    c["profiles"][0]["plugins"]["multiPoint"]["enabled"] = [{"name": n} for n in (plugin, "NodeResourcesFit", "DefaultBinder")]
    return c


def node(name, has):
    status = {k: str(v) for k, v in has.items() if k not in ("allocatable", "labels", "annotations")}
    status.setdefault("pods", "110")
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": "n-" + name, "labels": has.get("labels", {}),
                                                                 "annotations": has.get("annotations", {})},
            "status": {"capacity": status, "allocatable": {**status, **has.get("allocatable", {})}}}


def security(what):
    """The security context of a pod or a container."""
    if "seccomp" not in what:
        return {}
    s = what["seccomp"]
    return {"securityContext": {"seccompProfile": s if isinstance(s, dict) else {"type": "Localhost", "localhostProfile": s}}}


def container(i, c):
    return {"name": f"c{i}", "image": "i", "resources": {k: v for k, v in c.items() if k != "seccomp"}, **security(c)}


def profile(path, what):
    """An object SeccompProfile."""
    ns, name = path.split("/")
    what = what if isinstance(what, dict) else {"SCMP_ACT_ALLOW": what}
    return {"apiVersion": "security-profiles-operator.x-k8s.io/v1beta1", "kind": "SeccompProfile",
            "metadata": {"name": name, "namespace": ns, "uid": f"s-{ns}-{name}"},
            "spec": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"action": a, "names": n} for a, n in what.items()]}}


def pod(name, what, end):
    spec = {"schedulerName": what.get("scheduler", "default-scheduler"), "containers": [container(i, c) for i, c in enumerate(what.get("containers", []))],
            "initContainers": [{**container(i, {k: v for k, v in c.items() if k != "sidecar"}), "name": f"i{i}",
                                **({"restartPolicy": "Always"} if c.get("sidecar") else {})} for i, c in enumerate(what.get("init", []))]}
    spec.update(security(what))
    for key in ("overhead", "priority"):
        if key in what:
            spec[key] = what[key]
    status = {"phase": "Pending"}
    if "node" in what:
        spec["nodeName"] = what["node"]
        if "started" in what:
            status = {"phase": "Running", "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end - what["started"]))}
    if "nominated" in what:  # and tried after the pod that the case is about
        spec["priority"] = -1
        status["nominatedNodeName"] = what["nominated"]
    meta = {"name": what.get("name", name), "namespace": what.get("namespace", "default"), "uid": "p-" + name,
            "annotations": what.get("annotations", {}), "labels": what.get("labels", {})}
    if what.get("terminating"):
        meta |= {"deletionTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "deletionGracePeriodSeconds": 30}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


M64 = (1 << 64) - 1
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def rotl(x, n):
    return (x << n | x >> (64 - n)) & M64


def xxh64(data, seed=0):
    """XXH64, as its specification says it."""
    def word(i, size=8):
        return int.from_bytes(data[i:i + size], "little")

    def step(acc, lane):
        return rotl((acc + lane * P64[1]) & M64, 31) * P64[0] & M64
    i, n = 0, len(data)
    if n >= 32:
        acc = [(seed + P64[0] + P64[1]) & M64, (seed + P64[1]) & M64, seed, (seed - P64[0]) & M64]
        for i in range(0, n - 31, 32):
            acc = [step(a, word(i + 8 * k)) for k, a in enumerate(acc)]
        i += 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & M64
        for a in acc:
            h = ((h ^ step(0, a)) * P64[0] + P64[3]) & M64
    else:
        h = (seed + P64[4]) & M64
    h = (h + n) & M64
    while i + 8 <= n:
        h, i = (rotl(h ^ step(0, word(i)), 27) * P64[0] + P64[3]) & M64, i + 8
    if i + 4 <= n:
        h, i = (rotl(h ^ word(i, 4) * P64[0] & M64, 23) * P64[1] + P64[2]) & M64, i + 4
    for b in data[i:]:
        h = rotl(h ^ b * P64[4] & M64, 11) * P64[0] & M64
    h = (h ^ h >> 33) * P64[1] & M64
    h = (h ^ h >> 29) * P64[2] & M64
    return h ^ h >> 32


def fingerprint(pods):
    """Of a node's pods, as github.com/k8stopologyawareschedwg/podfingerprint makes it."""
    names = [p.split("/") for p in pods]
    hashes = sorted(xxh64(name.encode(), xxh64(ns.encode())) for ns, name in names)
    return f"pfp0v001{xxh64(b''.join(h.to_bytes(8, 'little') for h in hashes)):016x}"


def leb89(n):
    """A number of at least 0, as github.com/k8stopologyawareschedwg/numaplacement writes it."""
    digits = [c for c in map(chr, range(0x21, 0x7F)) if c not in '"&<>\\']
    if n < 64:
        return digits[n]
    n, last = divmod(n - 64, 64)
    out = ""
    while True:
        n, d = divmod(n, 25)
        out = digits[64 + d] + out
        if not n:
            return out + digits[last]


def placement(placed, n):
    """The attribute of the object, and those of its n zones: all but the one with the most containers."""
    hashes = sorted((xxh64(c.replace("/", "\0").encode()), zone) for c, zone in placed.items())
    lists = [[i for i, (_, zone) in enumerate(hashes) if zone == z] for z in range(n)]
    busiest = max(range(n), key=lambda z: (len(lists[z]), -z), default=0)
    texts = ["".join(leb89(i - before) for before, i in zip([0] + li, li)) for li in lists]
    return (f"npv0v001::ve=leb89::cc={len(hashes)}::nn={n}::bn={busiest}",
            ["" if z == busiest else t for z, t in enumerate(texts)])


def numbered(what):
    """The pairs of a list, by number, or of a mapping."""
    return what.items() if isinstance(what, dict) else enumerate(what)


def topology(name, what):
    """The object NodeResourceTopology of a node: what is available in its zones."""
    zones = []
    placed = what.get("placed", {})
    metadata, lists = (placed, [""] * len(what["zones"])) if isinstance(placed, str) else placement(placed, len(what["zones"]))
    prefix = "topology.node.k8s.io/numaplacement-"
    for i, z in enumerate(what["zones"]):
        there = {k: v for k, v in z.items() if k not in ("name", "type", "costs", "list")}
        most = what.get("allocatable", {})
        text = z.get("list", lists[i])
        zones.append({"name": z.get("name", f"node-{i}"), "type": z.get("type", "Node"),
                      "costs": [{"name": f"node-{k}", "value": v} for k, v in numbered(z.get("costs", []))],
                      "attributes": [{"name": prefix + "vector", "value": text}] if text else [],
                      "resources": [{"name": k, "capacity": "1000", "allocatable": most.get(k, "1000Gi" if k == "memory" else "1000"),
                                     "available": v} for k, v in there.items()]})
    attributes, annotations = dict(what.get("attributes", {})), {}
    if placed:
        attributes[prefix + "metadata"] = metadata
    if "knows" in what:
        knows = what["knows"] if isinstance(what["knows"], str) else fingerprint(what["knows"])
        if what.get("annotated"):
            annotations["topology.node.k8s.io/fingerprint"] = knows
        else:
            attributes["nodeTopologyPodsFingerprint"] = knows
    return {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
            "metadata": {"name": name, "uid": "t-" + name, "annotations": annotations},
            "topologyPolicies": what["policy"] if isinstance(what.get("policy"), list) else [what["policy"]] if "policy" in what else [], "zones": zones,
            "attributes": [{"name": k, "value": v} for k, v in attributes.items()]}


def short_pod(table, line, there):
    """A pod of a table with `with`."""
    if isinstance(line, dict):
        return pod(line["name"], line, int(time.time()))
    name, ns, amount, priority, *more = line.split()
    words = dict(w.split("=", 1) for w in more if "=" in w)
    requests = {r: a for r, a in zip(table["resources"], amount.split(",")) if a != "-"}
    meta = {"name": name, "namespace": ns, "uid": "p-" + name, "labels": {"app": words["label"]} if "label" in words else {}}
    spec = {"schedulerName": "default-scheduler", "priority": int(table["priorities"].get(priority, priority)),
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}]}
    status = {"phase": "Running" if there else "Pending"}
    if "class" in words:
        spec["priorityClassName"] = words["class"]
    if "scheduled" in words:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - int(words["scheduled"])))
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
    if "policy" in words:
        spec["preemptionPolicy"] = words["policy"]
    if "nominated" in words:
        status["nominatedNodeName"] = words["nominated"]
    if "terminating" in more:
        meta.update(deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=30)
    if there:
        spec["nodeName"] = more[0]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def quota(ns, spec):
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": "eq", "namespace": ns, "uid": "q-" + ns}, "spec": spec}


def priority_class(name, what):
    notes = {"preemption-toleration.scheduling.x-k8s.io/" + k: v for k, v in what.items() if k != "value"}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name, "uid": "c-" + name, "annotations": notes},
            "value": what["value"]}


def budget(ns, label, allowed):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"b-{label}", "namespace": ns, "uid": f"b-{ns}-{label}"},
            "spec": {"selector": {"matchLabels": {"app": label}}}, "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1,
                                                                              "expectedPods": 1, "observedGeneration": 1}}


class Runner:
    def __init__(self, o):
        self.o, self.passed, self.failed = o, 0, 0
        self.dir = tempfile.mkdtemp(prefix="community")
        self.plugins = os.path.realpath(os.path.join(o.bin, "..", "plugins"))
        self.env = {**os.environ, "BERTH_PLUGIN_DIR": self.plugins, "BERTH_NODE_METRICS": f"{self.dir}/metrics"}

    def file(self, name, text):
        path = f"{self.dir}/{name}"
        with open(path, "w", encoding="utf-8") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        return path

    def run(self, *argv):
        return subprocess.run([f"{self.o.bin}/berth", *argv], capture_output=True, text=True, check=False,
                              env=self.env)

    def put_apart(self, plugin):
        os.makedirs(f"{self.dir}/plugins.d", exist_ok=True)
        self.file("plugins.d/it.yaml", f"name: {plugin}\nfile: {FILES.get(plugin, plugin.lower())}.so\nmode: process\n")
        self.env["BERTH_PLUGIN_CONFIG"] = f"{self.dir}/plugins.d"

    def refuses(self, plugin):
        """None: a plugin that cannot run apart says why."""
        made = sorted_by if plugin.endswith("Sort") else config
        r = self.run("simulate", "--config", self.file("config.json", made(plugin, {})), "-f",
                     self.file("objects.json", {"apiVersion": "v1", "kind": "List", "items": [node("n", {"cpu": "1"})]}))
        return None if r.returncode and REFUSED[plugin] in r.stderr else r.stdout + r.stderr

    def judge(self, name, wrong):
        self.passed += wrong is None
        self.failed += wrong is not None
        print(f"ok - {name}" if wrong is None else f"not ok - {name}\n#   {wrong}")

    def whole_order(self, table, case):
        objects = [node(f"n{i:02}", {"cpu": "100", "memory": "100Gi", "pods": "1"}) for i in range(len(case["queue"]))]
        objects += table.get("objects", []) + case.get("objects", []) + [pod(n, p, 0) for n, p in case["queue"].items()]
        args = {**table.get("args", {}), **case.get("args", {})}
        r = self.run("simulate", "--verify", "--tie-break=first", "-o", "json", "--config", self.file("config.yaml", sorted_by(table["plugin"], args)),
                     "-f", self.file("objects.json", {"apiVersion": "v1", "kind": "List", "items": objects}))
        try:
            have = [p["name"] for p in sorted(json.loads(r.stdout)["pods"], key=lambda p: p["nodeName"])]
        except (ValueError, LookupError):
            return r.stdout + r.stderr
        return None if have == case["order"] else f"order {have}, not {case['order']}"

    def arguments(self, table, case):
        made = sorted_by(table["plugin"], case.get("args", {})) if table.get("sorts") else config(table["plugin"], case.get("args", {}), points=case.get("points", ()))
        r = self.run("config", "check", self.file("config.yaml", made))
        said = r.stdout + r.stderr
        if not case["errors"]:
            return None if r.returncode == 0 else said
        if r.returncode == 0:
            return "nothing is wrong with them, it says"
        missing = [t for t in case["errors"] if t not in said]
        return f"not said: {missing}; but: {said}" if missing else None

    def decide(self, table, case):
        end = int(time.time()) - case.get("window_age", 0)
        nodes = case.get("nodes") or table.get("nodes") or {"node": case.get("node", table.get("node"))}
        objects = [node(n, has) for n, has in nodes.items()]
        objects += table.get("objects", []) + case.get("objects", [])
        if len(nodes) == 1:  # of one feasible node alone nobody asks the score
            objects.append(node("another", next(iter(nodes.values()))))
        have = case.get("topology", {})
        objects += [topology(n, table["topologies"][t]) for n, t in (have if isinstance(have, dict) else {"node": have}).items()]
        objects += [profile(n, what) for n, what in {**table.get("profiles", {}), **case.get("profiles", {})}.items()]
        there = [{"node": "node", **p} if "nominated" not in p else p for p in case.get("pods", []) for _ in range(p.get("copies", 1))]
        objects += [pod(f"there-{i}", p, end) for i, p in enumerate(there)]
        objects += [pod(f"before-{i}", p, end) for i, p in enumerate(case.get("before", []))]
        objects.append(pod("p", case.get("pod", {}), end))
        lines = [f"{n} {words}" for n, words in case.get("metrics", {}).items()]
        self.file("metrics", "\n".join(["berth-node-metrics 1", f"window {end - 900} {end}", *lines, ""]))
        args = {**table.get("args", {}), **case.get("args", {})}
        r = self.run("simulate", "--verify", "-o", "json", "--explain", "--config", self.file("config.yaml", config(table["plugin"], args, points=case.get("points", ()))),
                     "-f", self.file("objects.json", {"apiVersion": "v1", "kind": "List", "items": objects}))
        try:
            return json.loads(r.stdout)["pods"][-1]["explanations"][-1], None
        except (ValueError, LookupError):
            return None, r.stdout + r.stderr

    def play(self, table, case):
        """What becomes of the pods: None, or what is not as the case says."""
        nodes = dict(case.get("nodes", table.get("nodes")))
        nodes.update({f"more-{i}": {"memory": 0} for i in range(case.get("more_nodes", 0))})
        objects = [node(n, has) for n, has in nodes.items()] + [quota(n, spec) for n, spec in case.get("quotas", {}).items()]
        objects += [budget(n, label, allowed) for n, of in case.get("budgets", {}).items() for label, allowed in of.items()]
        objects += [priority_class(n, what) for n, what in case.get("classes", {}).items()]
        objects += [topology(n, table["topologies"][t]) for n, t in case.get("topology", {}).items()]
        objects += [short_pod(table, p, True) for p in case.get("there", [])] + [short_pod(table, p, False) for p in case["come"]]
        r = self.run("simulate", "--verify", "--tie-break", "first", "-o", "json", "--config",
                     self.file("config.yaml", config(table["plugin"], table.get("args", {}), ("PrioritySort", "DefaultBinder", *table["with"]), case.get("points", ()))),
                     "-f", self.file("objects.json", {"apiVersion": "v1", "kind": "List", "items": objects}))
        try:
            doc = json.loads(r.stdout)
        except ValueError:
            return r.stdout + r.stderr
        gone = {p["name"] for p in doc["preempted"]}
        there = [(p["name"], p["node"]) if isinstance(p, dict) else (p.split()[0], p.split()[4]) for p in case.get("there", [])]
        on = {name: node for name, node in there if name not in gone}
        on.update({p["name"]: p["nodeName"] for p in doc["pods"] if p["result"] == "Scheduled"})
        says = {p["name"]: p.get("message", "") for p in doc["pods"]}
        if set(case["bound"].split()) != set(on):
            return f"bound {' '.join(sorted(on))}, evicted {' '.join(sorted(gone))}; {says}"
        wrong = {n: on[n] for n, want in case.get("on", {}).items() if on[n] != want}
        silent = {n: says.get(n) for n, text in case.get("says", {}).items() if text not in says.get(n, "")}
        return f"on {wrong}" if wrong else f"says {silent}" if silent else None

    def compare(self, table, case):
        if "order" in case:
            return self.whole_order(table, case)
        if "errors" in case:
            return self.arguments(table, case)
        if "with" in table:
            return self.play(table, case)
        e, wrong = self.decide(table, case)
        if wrong is not None:
            return wrong
        if "rejects" in case:
            have = {r["node"]: ", ".join(r["reasons"]) for r in e.get("rejected", [])}
            return None if have == case["rejects"] else f"rejects {have}, not {case['rejects']}"
        for key, want in (("normalized", case.get("score")), ("raw", case.get("raw"))):
            want = want if isinstance(want, dict) or want is None else {"node": want}
            have = {r["node"]: p[key] for r in e["ranking"] for p in r.get("plugins", []) if p["plugin"] == table["plugin"]}
            wrong = {n: have.get(n) for n in want or {} if have.get(n) != want[n]}
            if wrong:
                return f"{key} {wrong}, not {want}"
        return None if "score" in case or "raw" in case else "the case expects nothing"

    def table(self, path):
        with open(path, encoding="utf-8") as f:
            for table in yaml.safe_load_all(f):
                if self.o.apart:
                    self.put_apart(table["plugin"])
                if self.o.apart and table["plugin"] in REFUSED:
                    self.judge(f"{table['plugin']} apart: it says why not", self.refuses(table["plugin"]))
                    continue
                if self.o.apart and table["plugin"] in TRIMARAN:
                    continue  # a file is opened there, which such a process may not
                for case in table["cases"][:self.o.first]:
                    name = f"{os.path.basename(path)[:-5]}: {table['plugin']}: {case['name']}"
                    if self.o.only not in name:
                        continue
                    self.judge(name, self.compare(table, case))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--bin", default="build/bin")
    p.add_argument("--only", default="", help="cases whose name has this text")
    p.add_argument("--apart", action="store_true", help="plugins in a process of their own")
    p.add_argument("--first", type=int, help="so many cases of each table")
    p.add_argument("files", nargs="*")
    o = p.parse_args()
    r = Runner(o)
    for path in o.files or sorted(glob.glob(f"{HERE}/*.yaml")):
        r.table(path)
    print(f"{r.passed} passed, {r.failed} failed, 0 skipped")
    shutil.rmtree(r.dir)
    return r.failed > 0 or not r.passed


if __name__ == "__main__":
    sys.exit(main())
