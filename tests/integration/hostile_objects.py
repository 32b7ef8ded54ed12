#!/usr/bin/env python3
"""Hostile API objects, as text: for the fake API server, for files and for request bodies.

usage: hostile_objects.py DIR   writes each as DIR/RESOURCE-NUMBER.json
"""
import json
import os
import sys

MANY = 10000
BIG = 10_000_000
RESOURCES = {
    "pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "services": "Service",
    "replicationcontrollers": "ReplicationController", "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet", "persistentvolumes": "PersistentVolume",
    "persistentvolumeclaims": "PersistentVolumeClaim", "storageclasses": "StorageClass",
    "csinodes": "CSINode", "csidrivers": "CSIDriver", "csistoragecapacities": "CSIStorageCapacity",
    "volumeattachments": "VolumeAttachment", "poddisruptionbudgets": "PodDisruptionBudget",
    "priorityclasses": "PriorityClass", "resourceclaims": "ResourceClaim",
    "resourceclaimtemplates": "ResourceClaimTemplate", "resourceslices": "ResourceSlice",
    "deviceclasses": "DeviceClass",
}
QUANTITIES = ["1e400", "-1", "1e-400", "0x", "1e", "", ".", "9" * 400, "-" + "9" * 200, "nan", "1Ki1", "0x10",
              "1e99999999999999999999", "99999999999999999999Ei", "1" + "0" * 5000]
count = [0]


def meta(name, ns="default"):
    count[0] += 1
    m = {"name": name, "uid": "u-%d" % count[0], "resourceVersion": "@RV@"}
    if ns:
        m["namespace"] = ns
    return m


def text(obj):
    return json.dumps(obj, separators=(",", ":"))


def obj(version, kind, name, ns="default", **members):
    return {"apiVersion": version, "kind": kind, "metadata": meta(name, ns), **members}


def node(name, allocatable=None, labels=None, **status):
    n = obj("v1", "Node", name, None, spec={}, status={
        "allocatable": allocatable or {"cpu": "64", "memory": "64Gi", "pods": "500"}, **status})
    n["metadata"]["labels"] = {"kubernetes.io/hostname": name, "zone": "z" + name[-1], **(labels or {})}
    return n


def pod(name, spec=None, labels=None, requests=None, where=None):
    p = obj("v1", "Pod", name, spec={
        **({"nodeName": where} if where else {}), "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": requests or {"cpu": "1m"}}}],
        **(spec or {})})
    if labels:
        p["metadata"]["labels"] = labels
    return p


def term(i):
    return {"labelSelector": {"matchLabels": {"app": "a%d" % i}}, "topologyKey": "kubernetes.io/hostname"}


def many_terms(kind):
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(i) for i in range(MANY)]}}}


def node_terms(terms):
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}


def large_pods():
    yield pod("many-affinity", many_terms("podAffinity"))
    yield pod("many-anti-affinity", many_terms("podAntiAffinity"))
    yield pod("many-anti-affinity-bound", many_terms("podAntiAffinity"), where="good-1")
    yield pod("many-preferred", {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": term(i)} for i in range(MANY)]}}})
    yield pod("many-node-terms", node_terms([
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n%d" % i]}]} for i in range(MANY)]))
    yield pod("many-values", node_terms([
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["v%d" % i for i in range(MANY)]}]}]))
    yield pod("many-tolerations", {"tolerations": [{"key": "t%d" % i, "operator": "Exists"} for i in range(MANY)]})
    yield pod("many-labels", labels={"l%d" % i: "v" for i in range(10 * MANY)})
    yield pod("many-constraints", {"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
         "labelSelector": {"matchLabels": {"app": "a%d" % i}}} for i in range(MANY)]})
    yield pod("many-containers", {"containers": [
        {"name": "c%d" % i, "ports": [{"hostPort": 1 + i}]} for i in range(MANY)]})
    yield pod("many-init-containers", {"initContainers": [
        {"name": "i%d" % i, "restartPolicy": "Always", "resources": {"requests": {"cpu": "1u"}}} for i in range(MANY)]})
    yield pod("many-volumes", {"volumes": [
        {"name": "v%d" % i, "persistentVolumeClaim": {"claimName": "c%d" % i}} for i in range(MANY)]})
    yield pod("many-claims", {"resourceClaims": [{"name": "d%d" % i, "resourceClaimName": "rc"} for i in range(MANY)]})
    yield pod("many-gates", {"schedulingGates": [{"name": "g%d" % i} for i in range(MANY)]})
    yield pod("many-resources", requests={"example.com/r%d" % i: "1" for i in range(MANY)})
    yield pod("p" * BIG)
    yield pod("big-label", labels={"app": "v" * BIG})
    yield pod("big-key", labels={"k" * BIG: "v"})


def odd_pods():
    for i, q in enumerate(QUANTITIES):
        yield pod("quantity-%d" % i, requests={"cpu": q})
        yield pod("quantity-bound-%d" % i, requests={"memory": q}, where="good-2")
    yield pod("wrong-spec-list", {"affinity": [1, 2, 3]})
    yield pod("wrong-containers", {"containers": 5})
    yield pod("wrong-null-containers", {"containers": [None, None]})
    yield pod("wrong-priority", {"priority": 10 ** 30})
    yield pod("wrong-priority-text", {"priority": "high"})
    yield pod("wrong-port", {"containers": [{"name": "c", "ports": [{"hostPort": -5}, {"hostPort": 10 ** 12}]}]})
    yield pod("wrong-operator", node_terms([{"matchExpressions": [{"key": "", "operator": "Sometimes", "values": [1]}]}]))
    yield pod("wrong-weight", {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": -(2 ** 31), "preference": {}}, {"weight": 2 ** 31 - 1, "preference": {"matchExpressions": []}}]}}})
    yield pod("wrong-skew", {"topologySpreadConstraints": [
        {"maxSkew": -1, "topologyKey": "", "whenUnsatisfiable": "Perhaps", "minDomains": -7}]})
    yield pod("other-scheduler", {"schedulerName": "s" * 1000})
    yield pod("unicode-\u0000\u202e\ud83d\ude00")
    p = pod("wrong-labels")
    p["metadata"]["labels"] = ["a", "b"]
    yield p
    p = pod("wrong-time")
    p["metadata"]["creationTimestamp"] = "yesterday"
    yield p
    p = pod("no-uid")
    del p["metadata"]["uid"]
    yield p
    p = pod("wrong-spec")
    p["spec"] = "spec"
    yield p
    p = pod("null-everything")
    p.update(spec=None, status=None)
    yield p


def odd_nodes():
    for i, q in enumerate(QUANTITIES):
        yield node("n-quantity-%d" % i, {"cpu": q, "memory": q, "pods": q, "example.com/x": q})
    yield node("n-labels", labels={"l%d" % i: "v" for i in range(10 * MANY)})
    yield node("n-resources", {"example.com/r%d" % i: "1" for i in range(MANY)})
    yield node("n-images", images=[{"names": ["i%d" % i], "sizeBytes": -(2 ** 63)} for i in range(MANY)])
    yield node("n" * BIG)
    n = node("n-taints")
    n["spec"] = {"taints": [{"key": "t%d" % i, "effect": "NoSchedule"} for i in range(MANY)]}
    yield n
    n = node("n-wrong-taints")
    n["spec"] = {"taints": {"key": "x"}, "unschedulable": "no"}
    yield n


HUNDRED = "[" + ",".join(str(i) for i in range(100)) + "]"


def nested(depth, macro):
    e = "true"
    for i in range(depth):
        e = "%s.%s(v%d,%s)" % (HUNDRED, macro, i, e)
    return e


EXPRESSIONS = [nested(6, "all"), nested(4, "map") + ".size()>0", "'" + "a" * 5000 + "'.matches('(a*)*(a*)*(a*)*b')",
               "(" * 4000 + "true" + ")" * 4000, "!" * 9000 + "true", "'x", "device.driver ==", "9" * 500, "\u0000",
               "'a'.replace('','" + "b" * 1500 + "').replace('','" + "c" * 1500 + "').size()==0"]


def devices():
    """Claims whose selectors never end, and a pod for each."""
    yield "resourceslices", obj("resource.k8s.io/v1", "ResourceSlice", "slice", None, spec={
        "driver": "gpu.example.com", "allNodes": True, "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d%d" % i, "attributes": {"model": {"string": "x"}}} for i in range(128)]})
    yield "deviceclasses", obj("resource.k8s.io/v1", "DeviceClass", "any", None, spec={})
    for i, e in enumerate(EXPRESSIONS):
        yield "resourceclaims", obj("resource.k8s.io/v1", "ResourceClaim", "cel-%d" % i, spec={"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1,
                                      "selectors": [{"cel": {"expression": e}}]}}]}})
        yield "pods", pod("cel-%d" % i, {"resourceClaims": [{"name": "d", "resourceClaimName": "cel-%d" % i}]})
    yield "resourceclaims", obj("resource.k8s.io/v1", "ResourceClaim", "greedy", spec={"devices": {"requests": [
        {"name": "r%d" % i, "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 2 ** 40}}
        for i in range(1000)], "constraints": [{"matchAttribute": "x/y"}] * 1000}})
    yield "pods", pod("greedy", {"resourceClaims": [{"name": "d", "resourceClaimName": "greedy"}]})


def others():
    yield "services", obj("v1", "Service", "wrong", spec={"selector": ["a"]})
    yield "services", obj("v1", "Service", "large", spec={"selector": {"k%d" % i: "v" for i in range(MANY)}})
    yield "persistentvolumes", obj("v1", "PersistentVolume", "pv", None, spec={"capacity": {"storage": "1e400"},
                                   "nodeAffinity": {"required": {"nodeSelectorTerms": [{}] * MANY}}})
    yield "persistentvolumeclaims", obj("v1", "PersistentVolumeClaim", "c0", spec={
        "resources": {"requests": {"storage": "-1"}}, "volumeName": "x" * 100000})
    yield "poddisruptionbudgets", obj("policy/v1", "PodDisruptionBudget", "b", spec={
        "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["v"] * MANY}] * 10},
        "minAvailable": {"what": 1}}, status={"disruptionsAllowed": -(2 ** 40)})
    yield "csinodes", obj("storage.k8s.io/v1", "CSINode", "good-1", None, spec={
        "drivers": [{"name": "d%d" % i, "allocatable": {"count": -(2 ** 31)}} for i in range(MANY)]})
    yield "namespaces", obj("v1", "Namespace", "n" * 1000, None, status=7)
    yield "resourceslices", obj("resource.k8s.io/v1", "ResourceSlice", "wrong", None, spec={
        "driver": 5, "devices": {"name": "x"}})


def raw():
    """Not even JSON values of the right form; each still is JSON, or the whole list would not be."""
    yield "pods", '{"apiVersion":"v1","kind":"Pod","metadata":%s,"spec":%s}' % (
        text(meta("deep")), '{"a":' * 5000 + "1" + "}" * 5000)
    yield "pods", '{"apiVersion":"v1","kind":"Pod","metadata":%s,"spec":%s}' % (
        text(meta("deep-list")), "[" * 100000 + "]" * 100000)
    yield "pods", '{"metadata":%s,"metadata":{"name":"twice"},"spec":{},"spec":{"containers":[]}}' % text(meta("twice"))
    yield "pods", '{"metadata":%s,"spec":{"priority":1e400,"containers":[{"name":"\\ud800"}]}}' % text(meta("surrogate"))
    yield "pods", '"just a string named \\"name\\":\\"text\\""'
    yield "nodes", "17"
    yield "nodes", "[]"
    yield "nodes", "null"


def everything():
    for i in range(1, 4):
        yield "nodes", text(node("good-%d" % i))
    for p in large_pods():
        yield "pods", text(p)
    for p in odd_pods():
        yield "pods", text(p)
    for n in odd_nodes():
        yield "nodes", text(n)
    for resource, o in devices():
        yield resource, text(o)
    for resource, o in others():
        yield resource, text(o)
    yield from raw()
    for i in range(20):
        yield "pods", text(pod("good-%d" % i, node_terms([{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["good-1", "good-2", "good-3"]}]}])))


def main():
    numbers = {}
    for resource, t in everything():
        numbers[resource] = numbers.get(resource, 0) + 1
        path = os.path.join(sys.argv[1], "%s-%d.json" % (resource, numbers[resource]))
        with open(path, "w", encoding="utf-8", errors="surrogatepass") as f:
            f.write(t.replace("@RV@", "1"))


if __name__ == "__main__":
    main()
