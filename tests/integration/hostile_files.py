#!/usr/bin/env python3
"""Hostile files for every command that reads one.

usage: hostile_files.py DIR   makes DIR/{objects,text,config,conformance,kubeconfig,csv}/...
"""
import gzip
import json
import os
import random
import sys

import hostile_objects as ho

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def bomb(levels, width):
    return "a0: &a0 [%s]\n" % ",".join("x" * width) + "".join(
        "a%d: &a%d [%s]\n" % (i, i, ",".join(["*a%d" % (i - 1)] * width)) for i in range(1, levels))


def texts():
    """What is wrong as YAML or JSON already."""
    yield ""
    yield "\x00\x01\x02"
    yield "\xff\xfe not utf-8"
    yield "a: &a [*a]\n"
    yield bomb(10, 10)
    yield "{" * 100000
    yield "[" * 1000000
    yield "- " * 50000
    yield "a:\n" + "".join(" " * i + "a:\n" for i in range(1, 3000))
    yield "x" * 5000000
    yield "? " * 10000
    yield "%YAML 9.9\n---\n"
    yield "--- \n" * 10000
    yield "!!python/object/apply:os.system ['true']\n"
    yield "a: |\n" + " x\n" * 100000
    yield "\t- tabs\n"
    yield '{"a":1,"a":2}'
    yield '{"a":' + "9" * 100000 + "}"
    yield '{"a":"' + "\\u0000" * 10000 + '"}'
    yield "<<: *missing\n"
    yield "0x: 1e400\n.inf: .nan\n~: ~\n"


def configs():
    yield from texts()
    yield CONFIG + "profiles: 7\n"
    yield CONFIG + "profiles: [[]]\n"
    yield CONFIG + "profiles: [null, {schedulerName: 5}]\n"
    yield CONFIG + "parallelism: 1e400\n"
    yield CONFIG + "parallelism: -99999999999999999999\n"
    yield CONFIG + "podInitialBackoffSeconds: .nan\n"
    yield CONFIG + "unknown: " + "[" * 200 + "]" * 200 + "\n"
    yield CONFIG + "profiles:\n" + "".join("- {schedulerName: s%d}\n" % i for i in range(3000))
    yield CONFIG + "profiles: [{schedulerName: %s}]\n" % ("s" * 1000000)
    yield CONFIG + "profiles: [{plugins: {score: {enabled: [%s]}}}]\n" % ",".join(["{name: NodeAffinity}"] * 10000)
    yield CONFIG + "profiles: [{plugins: {filter: {enabled: [{name: NoSuchPlugin, weight: -1}]}}}]\n"
    yield CONFIG + "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 9223372036854775807}]}}}]\n"
    yield CONFIG + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: [1]}]}]\n"
    yield CONFIG + "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: [%s]}}}]}]\n" % (
        ",".join("{name: r%d, weight: 1}" % i for i in range(10000)))
    yield CONFIG + "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [%s]}}}}]}]\n" % (
        ",".join(["{}"] * 10000))
    yield CONFIG + "extenders: [{urlPrefix: '%s', httpTimeout: 1e400s, weight: -1}]\n" % ("http://" + "h" * 100000)
    yield "apiVersion: kubescheduler.config.k8s.io/v9\nkind: KubeSchedulerConfiguration\n"
    yield "apiVersion: v1\nkind: Policy\npredicates: [{name: 7, argument: []}]\npriorities: {}\n"


def cases():
    """Recordings: one JSON object a line."""
    yield from texts()
    node = ho.node("n1")
    yield json.dumps({"objects": 5, "steps": 5})
    yield json.dumps({"objects": [node], "steps": [{"op": "schedule"}, {"op": 7}, {"op": "delete", "kind": "Pod"}]})
    yield json.dumps({"objects": [node], "steps": [{"op": "schedule", "object": ho.pod("p"), "expect": []}]})
    yield json.dumps({"objects": [node], "steps": [{"op": "reschedule", "namespace": 1, "name": None}]})
    yield json.dumps({"config": {"profiles": 3}, "objects": [node], "steps": []})
    yield json.dumps({"objects": [node], "steps": [{"op": "schedule", "object": ho.pod("p"), "expect": {
        "feasible": "n1", "scores": [1], "filtered": 3, "preempt": {"node": 1}}}]})


def kubeconfigs():
    yield from texts()
    yield "apiVersion: v1\nkind: Config\nclusters: 5\n"
    yield "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '%s'}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n" % ("h" * 100000)
    yield "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: '!!!'}}]\nusers: [{name: u, user: {client-key-data: AAAA, client-certificate-data: '%s'}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n" % ("QUJD" * 100000)
    yield "current-context: " + "x" * 1000000 + "\n"


def tables():
    head = "sn,cpu_milli,memory_mib,gpu,model\n"
    yield ""
    yield head + "n1,-1,1e400,9999999999999999999,x\n"
    yield head + "," * 100000 + "\n"
    yield head + '"' * 9999 + "\n"
    yield head + "x" * 5000000 + ",1,1,1,\n"
    yield "\x00" * 1000
    yield "name\nname\n"


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))


def main():
    out = sys.argv[1]
    for n, (_, text) in enumerate(ho.everything()):
        write("%s/objects/%d.json" % (out, n), text.replace("@RV@", "1"))
    for folder, source, end in (("text", texts, ".yaml"), ("config", configs, ".yaml"), ("conformance", cases, ".jsonl"),
                                ("kubeconfig", kubeconfigs, ""), ("csv", tables, ".csv")):
        for n, text in enumerate(source()):
            write("%s/%s/%d%s" % (out, folder, n, end), text)
    random.seed(1)
    packed = gzip.compress(json.dumps({"objects": [ho.node("n1")], "steps": []}).encode() * 100)
    write(out + "/conformance/cut.jsonl.gz", packed[:-20])
    write(out + "/conformance/spoilt.jsonl.gz", packed[:20] + random.randbytes(50) + packed[70:])
    write(out + "/conformance/bomb.jsonl.gz", gzip.compress(b"\x00" * 300_000_000))
    write(out + "/good.yaml", json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        ho.node("good-1"), ho.node("good-2"), ho.pod("good")]}).replace("@RV@", "1"))


if __name__ == "__main__":
    main()
