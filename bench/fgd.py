#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a cluster's GPUs a policy places: a production trace with more demand than there is.

usage: bench/fgd.py OPENB [--bin build/bin] [--seeds 42,43,44] [--demand 1.3] [--policies default,bestfit,fgd] [--svg FILE] [--config FILE]

OPENB is a folder with openb_node_list_gpu_node.csv and openb_pod_list_default.csv. The pods are shuffled by the seed, copies of random ones
appended until they demand 130 % of the GPUs, and placed one after the other by `berth simulate`, none of them leaves; what fits nowhere is passed over.
Ties are drawn. `default` is the default profile, `bestfit` GPUBestFit alone, `fgd` FGD with GPUBestFit to decide its ties; in all of them a
fraction has to fit into one GPU (FGD's filter). --svg draws what was placed over what was demanded; --config writes fgd's configuration.
"""
import argparse
import collections
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time

WHOLE, SHARED, MODEL = "nvidia.com/gpu", "example.com/gpu-milli", "gpu-model"
COLOURS = {"default": "#888888", "bestfit": "#2b6cb0", "fgd": "#c05621"}


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def number(row, key):
    return int(float(row[key] or 0))


def demand(p):
    """cpu, milli of each GPU, GPUs, models."""
    n = number(p, "num_gpu")
    return (number(p, "cpu_milli"), number(p, "gpu_milli") if n == 1 else 1000 * (n > 0), n,
            tuple(sorted(m for m in (p["gpu_spec"] or "").split("|") if m and n)))


def gpu_milli(p):
    _, milli, n, _ = demand(p)
    return milli * n


def typical(pods):
    """The most frequent kinds of pods that are 95 % of all."""
    kinds = sorted(collections.Counter(demand(p) for p in pods).items(), key=lambda k: (-k[1], [-x for x in k[0][:3]], k[0][3]))
    out, seen = [], 0
    for (cpu, milli, n, models), count in kinds:
        out.append({"cpuMilli": cpu, "gpuMilli": milli, "gpus": n, "count": count, **({"models": list(models)} if models else {})})
        seen += count
        if seen >= 0.95 * len(pods):
            break
    return out


def config(policy, kinds):
    fgd = {"typicalPods": kinds} if policy == "fgd" else {"gpuPolicy": "BestFit"}
    names = {"enabled": [{"name": "FGD"}]}
    score = {"default": {"enabled": []}, "bestfit": {"disabled": [{"name": "*"}], "enabled": [{"name": "GPUBestFit", "weight": 1}]},
             "fgd": {"disabled": [{"name": "*"}], "enabled": [{"name": "FGD", "weight": 1000}, {"name": "GPUBestFit", "weight": 1}]}}[policy]
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"filter": names, "score": score}, "pluginConfig": [{"name": "FGD", "args": fgd}]}]}


def quantities(cpu, memory, whole, shared):
    q = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return {**q, **({WHOLE: str(whole)} if whole else {}), **({SHARED: str(shared)} if shared else {})}


def node(n):
    room = {**quantities(number(n, "cpu_milli"), number(n, "memory_mib"), number(n, "gpu"), number(n, "gpu") * 1000), "pods": "1001"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": n["sn"], "uid": n["sn"], "labels": {MODEL: n["model"]} if n["model"] else {}},
            "status": {"capacity": room, "allocatable": room}}


def pod(i, p):
    cpu, milli, n, models = demand(p)
    whole = n if milli == 1000 else 0
    spec = {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i", "resources": {
        "requests": quantities(cpu, number(p, "memory_mib"), whole, milli * n)}}]}
    if models:
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": MODEL, "operator": "In", "values": list(models)}]}]}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i:06}", "namespace": "default", "uid": f"p{i:06}"}, "spec": spec,
            "status": {"phase": "Pending"}}


def workload(pods, capacity, seed, factor):
    draw = random.Random(seed)
    out = sorted(pods, key=lambda p: p["name"])
    draw.shuffle(out)
    total, original = sum(map(gpu_milli, out)), list(out)
    while True:
        p = draw.choice(original)
        total += gpu_milli(p)
        if total > factor * capacity:
            return out
        out.append(p)


def run(o, work, nodes, pods, policy, kinds, seed):
    def write(name, what):
        path = f"{work}/{name}.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(what, f)
        return path
    objects = write("objects", {"apiVersion": "v1", "kind": "List", "items": [*map(node, nodes), *(pod(i, p) for i, p in enumerate(pods))]})
    begin = time.monotonic()
    r = subprocess.run([f"{o.bin}/berth", "simulate", "--plugin-dir", f"{o.bin}/../plugins", "--config", write("config", config(policy, kinds)),
                        "-f", objects, "-o", "json", "--no-preemption", "--tie-break", "random", "--seed", str(seed)],
                       stdout=subprocess.PIPE, check=False)
    if r.returncode not in (0, 3):
        sys.exit(f"berth simulate failed with {r.returncode}")
    placed = {p["name"] for p in json.loads(r.stdout)["pods"] if p["result"] == "Scheduled"}
    return placed, time.monotonic() - begin


def curve(pods, placed, capacity):
    points, wanted, had = [], 0, 0
    for i, p in enumerate(pods):
        wanted += gpu_milli(p)
        had += gpu_milli(p) if f"p{i:06}" in placed else 0
        if i % 50 == 0 or i == len(pods) - 1:
            points.append((100 * wanted / capacity, 100 * had / capacity))
    return points


def svg(path, curves, factor):
    w, h, low, left, most = 640, 400, 60, 50, 100 * factor

    def at(x, y):
        return f"{left + (x - low) / (most - low) * (w - left - 20):.1f},{h - 40 - (y - low) / (100 - low) * (h - 60):.1f}"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" font-family="sans-serif" font-size="12">', f'<rect width="{w}" height="{h}" fill="white"/>']
    for v in range(low, int(most) + 1, 10):
        x, y = at(v, low).split(",")
        out.append(f'<text x="{x}" y="{float(y) + 16}" text-anchor="middle">{v}</text>')
    for v in range(low, 101, 10):
        x, y = at(low, v).split(",")
        out.append(f'<text x="{float(x) - 6}" y="{float(y) + 4}" text-anchor="end">{v}</text><path d="M{x},{y} H{w - 20}" stroke="#ddd"/>')
    out.append(f'<text x="{w / 2}" y="{h - 6}" text-anchor="middle">GPUs demanded, % of all</text><text x="8" y="14">placed, %</text>')
    for i, (policy, lines) in enumerate(curves.items()):
        for points in lines:
            shown = [at(x, y) for x, y in points if x >= low and y >= low]
            out.append(f'<polyline fill="none" stroke="{COLOURS[policy]}" stroke-width="1.5" points="{" ".join(shown)}"/>')
        out.append(f'<text x="{left + 16}" y="{40 + 16 * i}" fill="{COLOURS[policy]}">{policy}</text>')
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join([*out, "</svg>", ""]))


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    a.add_argument("openb")
    a.add_argument("--bin", default="build/bin")
    a.add_argument("--seeds", default="42,43,44")
    a.add_argument("--demand", type=float, default=1.3)
    a.add_argument("--policies", default="default,bestfit,fgd")
    a.add_argument("--svg")
    a.add_argument("--config")
    o = a.parse_args()
    nodes = read(f"{o.openb}/openb_node_list_gpu_node.csv")
    original = read(f"{o.openb}/openb_pod_list_default.csv")
    capacity = 1000 * sum(number(n, "gpu") for n in nodes)
    kinds, curves = typical(original), collections.defaultdict(list)
    print(f"{len(nodes)} nodes, {capacity // 1000} GPUs; {len(original)} pods, {len(kinds)} kinds are typical")
    if o.config:
        with open(o.config, "w", encoding="utf-8") as f:
            json.dump(config("fgd", kinds), f, indent=1)
    print(f"{'POLICY':10}{'SEED':>5}{'PODS':>7}{'PLACED':>8}{'GPUS %':>8}{'AT 100 %':>10}{'SECONDS':>9}")
    with tempfile.TemporaryDirectory() as work:
        for policy in o.policies.split(","):
            for seed in map(int, o.seeds.split(",")):
                pods = workload(original, capacity, seed, o.demand)
                placed, seconds = run(o, work, nodes, pods, policy, kinds, seed)
                points = curve(pods, placed, capacity)
                curves[policy].append(points)
                full = next((y for x, y in points if x >= 100), points[-1][1])
                print(f"{policy:10}{seed:5}{len(pods):7}{len(placed):8}{points[-1][1]:8.2f}{full:10.2f}{seconds:9.1f}", flush=True)
    if o.svg:
        svg(o.svg, curves, o.demand)
    return 0


if __name__ == "__main__":
    sys.exit(main())
