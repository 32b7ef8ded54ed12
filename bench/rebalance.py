#!/usr/bin/env python3
"""How many nodes `berth rebalance` frees on a fragmented cluster, beside a plain first-fit-decreasing plan.

usage: bench/rebalance.py BERTH NODES.csv PODS.csv [--keep PERCENT] [--seed N]

The trace's pods (name, cpu_milli, memory_mib, num_gpu) are placed on its nodes by `berth simulate`; then all but
PERCENT of them (25), drawn by the seed, leave. What is left is the fragmented cluster. First-fit-decreasing
empties the nodes one by one, the least used first, each of its pods, the largest first, onto the first node that has
room; it knows resources only (cpu, memory, gpu), and undoes a node that it cannot empty.
"""
import argparse, csv, json, random, subprocess, sys, tempfile, time

RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "pods")


def read(args):
    nodes, pods = {}, []
    for r in csv.DictReader(open(args.nodes)):
        nodes[r["sn"]] = (int(r["cpu_milli"]), int(r["memory_mib"]), int(r["gpu"]), 110)
    for r in csv.DictReader(open(args.pods)):
        pods.append((r["name"], (int(r["cpu_milli"]), int(r["memory_mib"]), int(r["num_gpu"]), 1)))
    return nodes, pods


def quantities(v):
    return {"cpu": f"{v[0]}m", "memory": f"{v[1]}Mi", "nvidia.com/gpu": str(v[2]), "pods": str(v[3])}


def objects(nodes, pods, where):
    out = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": n, "uid": n, "labels": {"kubernetes.io/hostname": n}},
            "status": {"allocatable": quantities(v), "conditions": [{"type": "Ready", "status": "True"}]}}
           for n, v in nodes.items()]
    for name, v in pods:
        asks = {k: q for k, q in quantities(v).items() if k != "pods" and q != "0"}
        spec = {"schedulerName": "default-scheduler",
                "containers": [{"name": "c", "image": "x", "resources": {"requests": asks, "limits": {k: q for k, q in asks.items() if "/" in k}}}]}
        owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "j" + name, "controller": True}]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": owner}, "spec": spec}
        if name in where:
            pod["spec"]["nodeName"] = where[name]
        out.append(pod)
    f = tempfile.NamedTemporaryFile("w", suffix=".json")
    json.dump({"apiVersion": "v1", "kind": "List", "items": out}, f)
    f.flush()
    return f


def berth(args, *words):
    r = subprocess.run([args.berth, *words, "-o", "json"], stdout=subprocess.PIPE)
    if r.returncode not in (0, 3):
        sys.exit(r.returncode)
    return json.loads(r.stdout)


def first_fit_decreasing(nodes, pods, where):
    on = {n: [] for n in nodes}
    free = {n: list(v) for n, v in nodes.items()}
    for name, v in pods:
        on[where[name]].append(v)
        free[where[name]] = [a - b for a, b in zip(free[where[name]], v)]
    share = lambda v, of: max(a / b if b else 2 * (a > 0) for a, b in zip(v[:2], of[:2]))
    used = lambda n: share([sum(v[i] for v in on[n]) for i in range(2)], nodes[n])
    order = sorted((n for n in nodes if on[n]), key=lambda n: (used(n), n))
    closed, freed, moves = {n for n in nodes if not on[n]}, 0, 0
    for n in order:
        closed.add(n)
        done = []
        for v in sorted(on[n], key=lambda v: -share(v, nodes[n])):
            to = next((t for t in nodes if t not in closed and all(a >= b for a, b in zip(free[t], v))), None)
            if to is None:
                break
            free[to] = [a - b for a, b in zip(free[to], v)]
            on[to].append(v)
            done.append((to, v))
        if len(done) == len(on[n]):
            freed, moves = freed + 1, moves + len(done)
            continue
        for to, v in done:
            free[to] = [a + b for a, b in zip(free[to], v)]
            on[to].remove(v)
        closed.discard(n)
    return freed, moves


def main():
    ap = argparse.ArgumentParser()
    for a in ("berth", "nodes", "pods"):
        ap.add_argument(a)
    ap.add_argument("--keep", type=int, default=25)
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    nodes, pods = read(args)
    with objects(nodes, pods, {}) as f:
        where = {p["name"]: p["nodeName"] for p in berth(args, "simulate", "--no-preemption", "-f", f.name)["pods"] if p.get("nodeName")}
    random.seed(args.seed)
    pods = [p for p in pods if p[0] in where and random.randrange(100) < args.keep]
    with objects(nodes, pods, where) as f:
        began = time.monotonic()
        plan = berth(args, "rebalance", "-f", f.name)
        took = time.monotonic() - began
    n, moves = first_fit_decreasing(nodes, pods, where)
    used = len({where[p[0]] for p in pods})
    print(f"{len(nodes)} nodes, {used} with pods, {len(pods)} pods")
    print(f"{'plan':<24} {'freed':>6} {'moves':>6} {'seconds':>8}")
    print(f"{'berth rebalance':<24} {len(plan['free']):>6} {len(plan['moves']):>6} {took:>8.2f}")
    print(f"{'first-fit-decreasing':<24} {n:>6} {moves:>6} {'':>8}")


main()
