#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checker, checked: a history where all is well passes, and each thing that must not happen is found.

Every rule of check.py has at least one made-up history that breaks it, and only it; a rule without one fails.
"""
import copy
import io
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import check  # noqa: E402
import model  # noqa: E402
import run  # noqa: E402

S = 10**9
passed = failed = 0


def expect(name, good, detail=""):
    global passed, failed
    if good:
        passed += 1
        print(f"ok - {name}")
    else:
        failed += 1
        print(f"not ok - {name}\n#   {detail}")


class World:
    """Writes histories: each call is one change, a second after the one before."""

    def __init__(self):
        self.lines, self.rv, self.now, self.objects = [], 100, 1000 * S, {}

    def put(self, obj, agent="kubectl", user="admin", verb="", sub="", gone=False, received=None, after=S):
        self.rv += 1
        self.now += after
        obj = copy.deepcopy(obj)
        obj["metadata"].setdefault("uid", f"{obj['kind']}-{obj['metadata']['name']}")
        k = (obj["kind"],) + model.key(obj)
        change = "DELETED" if gone else "MODIFIED" if k in self.objects else "ADDED"
        self.objects.pop(k, None)
        if not gone:
            self.objects[k] = obj
        self.lines.append({"rv": self.rv, "change": change, "boot_ns": self.now, "received_ns": received or self.now - 1000,
                           "verb": verb or "create", "subresource": sub, "user": user, "agent": agent, "object": obj})
        return obj

    def edit(self, kind, name, how, ns="default", **kw):
        obj = copy.deepcopy(self.objects[(kind, ns if kind not in ("Node", "PersistentVolume") else "", name)])
        how(obj)
        return self.put(obj, **kw)

    def bind(self, name, node, user="host-a", **kw):
        def how(p):
            p["spec"]["nodeName"] = node
            p.setdefault("status", {})["conditions"] = [{"type": "PodScheduled", "status": "True"}]
            p["status"].pop("nominatedNodeName", None)
        return self.edit("Pod", name, how, agent="berth-binder/1", user=user, sub="binding", **kw)

    def node(self, name, zone="z0", **spec):
        return self.put({"kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": zone}},
                         "spec": spec, "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "4", "example.com/gpu": "1"}}})

    def pod(self, name, cpu="500m", labels=None, status=None, container=None, **spec):
        c = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        c.update(container or {})
        return self.put({"kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
                         "spec": {"containers": [c], **spec}, "status": status or {"phase": "Pending"}})

    def lease(self, user, holder=None, **kw):
        return self.put({"kind": "Lease", "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
                         "spec": {"holderIdentity": holder if holder is not None else user}}, agent="berth-watcher/1", user=user, **kw)

    def claim(self, name, volume=None):
        return self.put({"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
                         "spec": {"storageClassName": "made", **({"volumeName": volume} if volume else {})}})

    def volume(self, name, claim, node=None):
        spec = {"claimRef": {"namespace": "default", "name": claim, "uid": f"PersistentVolumeClaim-{claim}"}}
        if node:
            spec["nodeAffinity"] = {"required": host(node)}
        return self.put({"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})

    def devices(self, name, device, pods, node="n1"):
        allocation = {"devices": {"results": [{"driver": "d", "pool": node, "device": device}]}, "nodeSelector": host(node)}
        return self.put({"kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": {},
                         "status": {"allocation": allocation if device else None,
                                    "reservedFor": [{"resource": "pods", "name": p, "uid": f"Pod-{p}"} for p in pods]}})

    def found(self, **kw):
        c = check.Checker(**kw)
        for line in self.lines:
            c.feed(line)
        return c.finish(), c


def host(node):
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}


ANTI = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}]}}
NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}]}}


def with_y(which):
    return {which: {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"app": "y"}}, "topologyKey": "zone"}]}}


EVEN = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}}]
WAITS = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}
X = {"app": "x"}


def base():
    """One of everything, done right."""
    w = World()
    w.lease("host-a")
    w.node("n1")
    w.node("n2", "z1", taints=[{"key": "t", "value": "v", "effect": "NoSchedule"}])
    w.node("n3", "z2", unschedulable=True)
    w.put({"kind": "StorageClass", "metadata": {"name": "made"}, "provisioner": "p"})
    w.pod("plain")
    w.bind("plain", "n1")
    w.put({"kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "reason": "Scheduled",
           "involvedObject": {"uid": "Pod-plain"}, "message": "Successfully assigned default/plain to n1"}, agent="berth-binder/1", user="host-a")
    w.pod("tolerant", tolerations=[{"key": "t", "operator": "Exists"}])
    w.bind("tolerant", "n2")
    w.pod("stored", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    w.claim("data")
    w.volume("pv", "data", "n1")
    w.claim("data", "pv")
    w.bind("stored", "n1")
    w.devices("gpu", "g0", ["user"])
    w.pod("user", resourceClaims=[{"name": "r", "resourceClaimName": "gpu"}])
    w.bind("user", "n1")
    w.pod("apart", labels=X, affinity=ANTI, cpu="100m")
    w.bind("apart", "n1")
    w.pod("huge", cpu="100", status=WAITS)
    return w


def crowd(w):
    """n1 has 1.6 of 2 CPUs and 4 of 4 pods by now; n4 is empty."""
    w.node("n4", "z3")
    w.now += 60 * S
    return w


def break_twice(w):
    w.edit("Pod", "plain", lambda p: p["spec"].update(nodeName="n2"))


def break_twice_emptied(w):
    w.edit("Pod", "plain", lambda p: p["spec"].pop("nodeName"))
    w.put(w.objects[("Pod", "default", "plain")], gone=True)


def break_gap(w):
    w.rv += 1
    w.node("n9", "z9", unschedulable=True)


def break_back(w):
    w.rv -= 5
    w.node("n9", "z9", unschedulable=True)


def break_deleting(w):
    w.pod("going")
    w.edit("Pod", "going", lambda p: p["metadata"].update(deletionTimestamp="now"))
    w.bind("going", "n4")


def break_gated(w):
    w.pod("gated", schedulingGates=[{"name": "g"}])
    w.bind("gated", "n4")


def break_no_node(w):
    w.pod("p")
    w.bind("p", "nowhere")


def break_bad_name(w):
    w.pod("p")
    w.bind("p", "../nodes")


def break_selector(w):
    w.pod("p", nodeSelector={"zone": "z0"})
    w.bind("p", "n4")


def break_affinity(w):
    w.pod("p", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": host("n1")}})
    w.bind("p", "n4")


def break_taint(w):
    w.pod("p", tolerations=[{"key": "t", "operator": "Equal", "value": "other"}])
    w.bind("p", "n2")


def break_cordon(w):
    w.pod("p")
    w.bind("p", "n3")


def break_cpu(w):
    for i in range(2):
        w.pod(f"p{i}", cpu="1200m")
        w.bind(f"p{i}", "n4")


def break_pods(w):
    for i in range(5):
        w.pod(f"p{i}", cpu="1m")
        w.bind(f"p{i}", "n4")


def break_extended(w):
    for i in range(2):
        w.pod(f"p{i}", container={"resources": {"requests": {"example.com/gpu": "1"}}})
        w.bind(f"p{i}", "n4")


def break_init(w):
    w.pod("p", cpu="1", initContainers=[{"name": "i", "resources": {"requests": {"cpu": "2500m"}}}])
    w.bind("p", "n4")


def break_ports(w):
    for i in range(2):
        w.pod(f"p{i}", container={"ports": [{"hostPort": 80, **({"hostIP": "10.0.0.1"} if i else {})}]})
        w.bind(f"p{i}", "n4")


def stored(w, name, claim, where, mode="ReadWriteOnce"):
    """A pod with a volume of driver d on a node."""
    if ("PersistentVolumeClaim", "default", claim) not in w.objects:
        w.put({"kind": "PersistentVolumeClaim", "metadata": {"name": claim, "namespace": "default"},
               "spec": {"storageClassName": "made", "accessModes": [mode], "volumeName": f"pv-{claim}"}})
        w.put({"kind": "PersistentVolume", "metadata": {"name": f"pv-{claim}"}, "spec": {
            "csi": {"driver": "d"}, "claimRef": {"namespace": "default", "name": claim, "uid": f"PersistentVolumeClaim-{claim}"}}})
    w.pod(name, cpu="1m", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])
    w.bind(name, where)


def attaches(w, count):
    w.put({"kind": "CSINode", "metadata": {"name": "n4"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": count}}]}})
    w.now += 60 * S


def break_memory(w):
    for i in range(2):
        w.pod(f"p{i}", container={"resources": {"requests": {"memory": "3Gi"}}})
        w.bind(f"p{i}", "n4")


def break_attach(w):
    attaches(w, 2)
    for i in range(3):
        stored(w, f"p{i}", f"c{i}", "n4")


def break_alone(w):
    w.node("n5", "z5")
    w.now += 60 * S
    stored(w, "p0", "c", "n5", "ReadWriteOncePod")
    stored(w, "p1", "c", "n4", "ReadWriteOncePod")


def break_anti(w):
    w.node("n5", "z0")
    w.now += 60 * S
    w.pod("p", labels=X, cpu="1m")  # the other one's term speaks
    w.bind("p", "n5")


def break_near(w):
    w.pod("p", affinity=NEAR)
    w.bind("p", "n4")


def break_spread(w):
    for i in range(2):
        w.pod(f"p{i}", labels=X, topologySpreadConstraints=EVEN, cpu="1m")
        w.bind(f"p{i}", "n4")


def break_no_volume(w):
    w.claim("more")
    w.pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "more"}}])
    w.bind("p", "n4")


def break_far_volume(w):
    w.claim("more", "pv2")
    w.volume("pv2", "more", "n1")
    w.pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "more"}}])
    w.bind("p", "n4")


def with_claim(w, where="n4"):
    w.pod("p", resourceClaims=[{"name": "r", "resourceClaimName": "c"}])
    w.bind("p", where)


def break_no_claim(w):
    w.devices("c", None, [])
    with_claim(w)


def break_unreserved(w):
    w.devices("c", "g9", [], "n4")
    with_claim(w)


def break_far_claim(w):
    w.node("n6", "z6")
    w.now += 60 * S
    w.devices("c", "g9", ["p"], "n6")
    with_claim(w)


def break_device(w):
    w.devices("other", "g0", [])


def break_moved_volume(w):
    w.edit("PersistentVolume", "pv", lambda v: v["spec"]["claimRef"].update(uid="another"))


def break_moved_claim(w):
    w.edit("PersistentVolumeClaim", "data", lambda c: c["spec"].update(volumeName="another"))
    w.edit("PersistentVolumeClaim", "data", lambda c: c["spec"].pop("volumeName"))


def break_moved_devices(w):
    w.devices("gpu", "g1", ["user"])


def break_lease(w):
    w.lease("host-b")
    w.pod("p")
    w.bind("p", "n4")


def break_lease_released(w):
    w.lease("host-a", "")
    w.pod("p")
    w.bind("p", "n4")


def break_lease_patch(w):
    w.lease("host-b")
    w.edit("Pod", "huge", lambda p: p["status"].update(phase="Pending"), agent="berth-binder/1", user="host-a", verb="patch", sub="status")


def break_victim(w):
    w.put(w.objects[("Pod", "default", "plain")], agent="berth-binder/1", user="host-a", verb="delete", gone=True)


def break_lost(w):
    w.pod("p", status=WAITS)


def break_lost_device(w):
    w.put({"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "d", "nodeName": "n4", "pool": {"name": "n4"}, "devices": [{"name": "free"}]}})
    w.devices("c", None, [])
    w.pod("p", status=WAITS, resourceClaims=[{"name": "r", "resourceClaimName": "c"}])


def break_preempt(w):
    w.pod("low", cpu="2")
    w.bind("low", "n4")
    w.pod("high", cpu="2", priority=10, status=WAITS)


def break_condition(w):
    w.edit("Pod", "plain", lambda p: p["status"].update(conditions=WAITS["conditions"]))


def break_silent(w):
    w.pod("p", cpu="100")


def break_nominated(w):
    w.edit("Pod", "huge", lambda p: p["status"].update(nominatedNodeName="nowhere"))
    w.edit("Pod", "huge", lambda p: p["status"].pop("nominatedNodeName"))


def break_nominated_bound(w):
    w.edit("Pod", "plain", lambda p: p["status"].update(nominatedNodeName="n1"))


def break_leak(w):
    w.put(w.objects[("Pod", "default", "user")], gone=True)


def break_leaked_volume(w):
    w.volume("pv3", "data")


def gang(w, n, **more):
    w.put({"kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    for i in range(n):
        w.pod(f"member{i}", schedulingGroup={"podGroupName": "g"}, status=WAITS, **more)


def break_quorum(w):
    gang(w, 1)
    w.bind("member0", "n4")


def break_quorum_gated(w):
    gang(w, 2)
    w.edit("Pod", "member1", lambda p: p["spec"].update(schedulingGates=[{"name": "g"}]))
    w.bind("member0", "n4")


def break_stuck(w):
    gang(w, 2)


def break_stuck_half(w):
    gang(w, 2)
    w.bind("member0", "n4")


def group(w, name, n):
    """Of plugin Coscheduling."""
    w.put({"kind": "PodGroup", "metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": 2}})
    for i in range(n):
        w.pod(f"{name}-{i}", labels={"scheduling.x-k8s.io/pod-group": name}, status=WAITS)


def break_quorum_group(w):
    group(w, "g", 1)
    w.bind("g-0", "n4")


def break_stuck_group(w):
    group(w, "g", 2)


def break_event(w):
    w.put({"kind": "Event", "metadata": {"name": "e2", "namespace": "default"}, "reason": "Scheduled", "involvedObject": {"uid": "Pod-plain"},
           "message": "Successfully assigned default/plain to n4"}, agent="berth-binder/1", user="host-a")


def break_restless(w):
    w.edit("Pod", "huge", lambda p: p["status"].update(phase="Pending"), agent="berth-binder/1", user="host-a", verb="patch", sub="status")


BROKEN = [("twice", break_twice), ("twice", break_twice_emptied), ("gap", break_gap), ("gap", break_back), ("not-pending", break_deleting),
          ("not-pending", break_gated), ("no-node", break_no_node), ("no-node", break_bad_name), ("node", break_selector), ("node", break_affinity),
          ("node", break_taint), ("node", break_cordon), ("overcommit", break_cpu), ("overcommit", break_pods), ("overcommit", break_extended),
          ("overcommit", break_init), ("overcommit", break_ports), ("overcommit", break_memory), ("overcommit", break_attach), ("overcommit", break_alone), ("apart", break_anti), ("apart", break_near), ("spread", break_spread),
          ("volume", break_no_volume), ("volume", break_far_volume), ("claim", break_no_claim), ("claim", break_unreserved),
          ("claim", break_far_claim), ("device", break_device), ("moved", break_moved_volume), ("moved", break_moved_claim),
          ("moved", break_moved_devices), ("lease", break_lease), ("lease", break_lease_released), ("lease", break_lease_patch),
          ("victim", break_victim), ("lost", break_lost), ("lost", break_lost_device), ("preempt", break_preempt),
          ("condition", break_condition), ("condition", break_silent), ("nominated", break_nominated),
          ("nominated", break_nominated_bound), ("leak", break_leak), ("leak", break_leaked_volume), ("quorum", break_quorum), ("quorum", break_quorum_gated), ("stuck", break_stuck), ("stuck", break_stuck_half),
          ("quorum", break_quorum_group), ("stuck", break_stuck_group),
          ("event", break_event), ("restless", break_restless)]


def histories():
    found, c = base().found()
    expect("a good history is good", not found, found)
    expect("and was looked at", c.counts["binds"] == 5 and not c.counts["excused"] and not c.counts["unjudged"], c.counts)
    found, c = crowd(base()).found()
    expect("a good one with an empty node too", not found, found)
    for rule, how in BROKEN:
        w = crowd(base())
        how(w)
        quiet = {"quiet_from": w.now - 1} if rule == "restless" else {}
        found, _ = w.found(**quiet)
        name = how.__name__[6:].replace("_", " ")
        rules = {r for _, r, _ in found}
        expect(f"{rule}: {name}", rules == {rule}, found)
    missing = set(check.RULES) - {rule for rule, _ in BROKEN}
    expect("each rule has a history that breaks it", not missing, missing)


def excuses():
    """What somebody else changed a moment ago is excused, and only then."""
    cases = {
        "cordoned": ("node", lambda w: w.edit("Node", "n4", lambda n: n["spec"].update(unschedulable=True))),
        "deleted": ("no-node", lambda w: w.put(w.objects[("Node", "", "n4")], gone=True)),
        "tainted": ("node", lambda w: w.edit("Node", "n4", lambda n: n["spec"].update(taints=[{"key": "q", "effect": "NoSchedule"}]))),
        "shrunk": ("overcommit", lambda w: w.edit("Node", "n4", lambda n: n["status"].update(allocatable={"pods": "9"}))),
    }
    for what, (rule, change) in cases.items():
        for later, want in ((1, set()), (9, {rule})):
            w = crowd(base())
            w.pod("p")
            change(w)
            w.bind("p", "n4", after=later * S)
            found, c = w.found(stale_s=5)
            expect(f"a node {what} {later} s before", {r for _, r, _ in found} == want and c.counts["excused"] == (not want), found)
    w = crowd(base())
    w.node("n5", "z5")
    w.edit("Node", "n5", lambda n: n["spec"].update(unschedulable=True))
    w.edit("Node", "n5", lambda n: n["spec"].update(unschedulable=False))
    w.pod("big", cpu="3")
    w.bind("big", "n5")
    found = w.found(stale_s=60)[0]
    expect("that a node is new, or was cordoned, is no excuse for what it has no room for", {r for _, r, _ in found} == {"overcommit"}, found)
    for later, want in ((1, set()), (9, {"apart"})):
        w = crowd(base())
        w.node("n5", "z5")
        w.now += 60 * S
        w.pod("first", labels={"app": "y"}, affinity=with_y("podAffinity"))
        w.pod("plain-y", labels={"app": "y"})
        w.bind("plain-y", "n5")
        w.bind("first", "n4", after=later * S)
        found, c = w.found(stale_s=5)
        expect(f"a friend bound {later} s before the first of them", {r for _, r, _ in found} == want and c.counts["excused"] == (not want), found)
        w = crowd(base())
        w.node("n5", "z5")
        w.now += 60 * S
        w.pod("near", affinity=with_y("podAffinity"))
        w.pod("plain-y", labels={"app": "y"})
        w.bind("near", "n5")
        w.bind("plain-y", "n5", after=later * S)
        found, c = w.found(stale_s=5)
        expect(f"a friend bound {later} s after who was put next to it", {r for _, r, _ in found} == want and c.counts["excused"] == (not want), found)
    w = crowd(base())
    w.pod("old", labels=X, cpu="1m")
    w.lease("host-b")
    at = w.now
    w.pod("p")
    w.bind("p", "n4", received=at - 3 * S, after=1)
    w.bind("old", "n4", user="host-b")
    expect("a request that was inside the server when the lease passed on", not w.found()[0], w.found()[0])
    w = crowd(base())
    attaches(w, 1)
    for i in range(2):  # one volume, attached once
        stored(w, f"p{i}", "c", "n4")
    expect("two pods with one volume, which is attached once", not w.found()[0], w.found()[0])
    w.put(w.objects[("Pod", "default", "p0")], gone=True)
    w.put(w.objects[("Pod", "default", "p1")], gone=True)
    stored(w, "p3", "c3", "n4")
    expect("a volume after others are gone", not w.found()[0], w.found()[0])
    w = crowd(base())
    w.node("n5", "z5")
    stored(w, "alone", "c4", "n5", "ReadWriteOncePod")
    w.put(w.objects[("Node", "", "n5")], gone=True)
    stored(w, "next", "c4", "n4", "ReadWriteOncePod")
    expect("a claim for one pod, when the first one's node is gone", not w.found()[0], w.found()[0])
    w = crowd(base())
    group(w, "g", 2)
    group(w, "h", 2)
    expect("two groups of Coscheduling, which may keep each other away", not w.found()[0], w.found()[0])
    w = crowd(base())
    gang(w, 2, cpu="1500m")
    expect("a gang of which one has room, not two", not w.found()[0], w.found()[0])
    for n, want in ((1, set()), (2, {"nominated"})):
        w = crowd(base())
        gang(w, n, cpu="1500m")
        w.node("n9")
        w.edit("Pod", "member0", lambda p: p["status"].update(nominatedNodeName="n9"))
        w.put(w.objects[("Node", "", "n9")], gone=True)
        found = w.found()[0]
        expect(f"a nomination to a node that is gone, of {n} of a gang of 2", {rule for _, rule, _ in found} == want, found)
    w = crowd(base())
    gang(w, 2, cpu="1100m")
    w.bind("member0", "n4")
    expect("half a gang, when the other half has no room any more", not w.found()[0], w.found()[0])
    for left, want in ((False, set()), (True, {"preempt"})):
        w = crowd(base())
        w.pod("other", cpu="100m")
        w.bind("other", "n4")
        w.pod("high", cpu="2", priority=10, status=WAITS, nodeSelector={"kubernetes.io/hostname": "n4"})
        w.pod("low", cpu="1500m")
        w.bind("low", "n4")
        if left:
            w.put(w.objects[("Pod", "default", "other")], gone=True)
        found = w.found()[0]
        expect(f"a lower pod bound behind a higher one's back, {'then' if left else 'and no'} room was left", {r for _, r, _ in found} == want, found)
    w = crowd(base())
    w.pod("p", status=WAITS)
    w.edit("Node", "n4", lambda n: n["spec"].update(unschedulable=True))
    expect("a pod that fits on no node may wait", not w.found()[0], w.found()[0])
    w = crowd(base())
    w.node("n5", "z5")
    w.pod("late")
    w.put(w.objects[("Node", "", "n5")], gone=True)
    w.bind("late", "n5")
    w.edit("Pod", "late", lambda p: p["status"].update(conditions=WAITS["conditions"]))
    expect("a binding to a node that went meanwhile, and what was said before it was known", not w.found()[0], w.found()[0])
    w.rv += 1000
    w.node("n9", "z9", unschedulable=True)
    expect("a restart of the server may skip versions", not w.found(restarts=1)[0], w.found(restarts=1)[0])


def program():
    """The command itself: cut files, wrong files, exit status."""
    here = os.path.dirname(os.path.abspath(__file__))

    def judge(text, *args):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
            f.write(text)
            f.flush()
            return subprocess.run([sys.executable, os.path.join(here, "check.py"), f.name, *args], capture_output=True, text=True, check=False)
    w = base()
    text = "".join(json.dumps(line) + "\n" for line in w.lines)
    r = judge(text + '{"rv": 9')
    expect("a last line without its end is left out", r.returncode == 0 and r.stdout.endswith("; 0 found\n"), r)
    r = judge("{]\n" + text)
    expect("a line that is not JSON is named", r.returncode == 1 and ":1: " in r.stderr, r)
    break_twice(w)
    r = judge("".join(json.dumps(line) + "\n" for line in w.lines), "-o", "json")
    expect("what is found, as JSON", r.returncode == 1 and json.loads(r.stdout)["found"][0]["rule"] == "twice", r)
    r = subprocess.run([sys.executable, os.path.join(here, "check.py"), "/nonexistent"], capture_output=True, text=True, check=False)
    expect("no history", r.returncode == 2 and "/nonexistent" in r.stderr, r)


def watches():
    """A peace begins when each watch was heard of twice."""
    first = {"Node": 3, "Pod": 7}
    for what, now, want in (("nothing came", first, "Node"), ("pods only", {"Node": 4, "Pod": 9}, "Node"), ("both", {"Node": 5, "Pod": 9}, None),
                            ("one that is new", {"Node": 5, "Pod": 9, "Lease": 1}, "Lease")):
        expect(f"bookmarks: {what}", run.behind(first, now) == want, run.behind(first, now))


def quantities():
    for text, want in (("500m", 0.5), ("2", 2), ("4Gi", 4 * 2**30), ("1e3", 1000), ("0.5", 0.5), ("1500M", 1.5e9), ("3u", 3e-6)):
        expect(f"quantity {text}", float(model.quantity(text)) == want, model.quantity(text))


if __name__ == "__main__":
    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=True)
    quantities()
    watches()
    histories()
    excuses()
    program()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)
