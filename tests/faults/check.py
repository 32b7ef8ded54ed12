#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays an API server's history (berth-simulator --history-file) and looks for what must never have happened.

  tests/faults/check.py HISTORY [--stale SECONDS] [--restarts N] [--quiet-from BOOT_NS] [--unfinished] [-o json]

Every change is looked at in the order of the commits, with the whole cluster as it was then. What depends on something
that somebody else changed less than --stale seconds ago (a node cordoned or deleted, a pod that went) is excused and
counted: a scheduler cannot know it yet. What only schedulers change has no excuse.
Exit status: 0 nothing found, 1 something found, 2 wrong usage or no history.
"""
import argparse
import json
import re
import sys

sys.dont_write_bytecode = True
import model as m  # noqa: E402

RULES = {
    "gap": "versions rise by one, but for restarts of the server",
    "twice": "a pod is bound once, and stays where it is",
    "not-pending": "what is bound was not being deleted, gated or finished",
    "no-node": "the node of a binding exists, and has a name that a node can have",
    "node": "the node suits: selector, affinity, taints, cordon",
    "overcommit": "no node is over-committed at the time of a binding: resources, pods, devices by count, host ports, volumes to attach, ReadWriteOncePod claims",
    "apart": "required affinity and anti-affinity hold at the time of a binding",
    "spread": "DoNotSchedule constraints hold at the time of a binding",
    "volume": "the volumes of a pod are bound, and reachable from its node, before the pod is bound",
    "claim": "the claims of a pod are allocated, reserved for it, and usable on its node, before the pod is bound",
    "device": "a device is allocated to one claim",
    "moved": "a volume, a claim or an allocation does not change its partner",
    "lease": "who writes holds the lease when the request comes in",
    "victim": "only preemption deletes pods: a pod of higher priority waits",
    "lost": "a pod that is left without a node fits on none",
    "preempt": "a pod that is left without a node could not have one by preemption",
    "condition": "a bound pod does not say PodScheduled=False, one that waits for long says so",
    "nominated": "nominatedNodeName is a node's, and no bound pod's",
    "leak": "nothing is left reserved for a pod that is gone",
    "quorum": "a member of a gang is bound when as many as the gang needs are there, ungated",
    "stuck": "a gang that is left without nodes does not fit as a whole",
    "event": "a Scheduled event tells of the node that the pod was bound to",
    "restless": "when all is decided, nobody writes",
}
SHOWN = 30
DNS_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
ASSIGNED = re.compile(r"^Successfully assigned \S+ to (\S+)$")


class Checker:
    def __init__(self, stale_s=5.0, restarts=0, quiet_from=None, late_s=None):
        """late_s: how long after it was decided about a pod is bound (stale_s)"""
        self.stale_ns, self.restarts, self.quiet_from = int(stale_s * 1e9), restarts, quiet_from
        self.late_ns = int(late_s * 1e9) if late_s else self.stale_ns
        self.cluster = m.Cluster()
        self.kinds = {}          # kind -> {key: object}; pods and nodes are in cluster
        self.found = []          # (rv, rule, text)
        self.counts = dict.fromkeys(("changes", "binds", "preemptions", "takeovers", "restarts", "halves", "excused", "unjudged"), 0)
        self.last_rv = None
        self.bound = {}          # uid -> node
        self.bound_at = {}       # uid -> boot_ns
        self.seen_at = {}        # uid -> boot_ns: pods
        self.devices = {}        # (driver, pool, device) -> claim uid
        self.holder = []         # (boot_ns, user): who took the lease, in order
        self.node_changed = {}   # name -> boot_ns: of one that was there before
        self.room_changed = {}   # name -> boot_ns: its allocatable did, or it went
        self.csi_changed = {}    # name -> boot_ns: its CSINode came, changed, went
        self.nodes_known = set()
        self.shape_changed = 0   # boot_ns: nodes came or went, pods went
        self.events = []         # (rv, uid, message) of Scheduled events
        self.member_gone = {}    # (namespace, group) -> boot_ns: of a member that was deleted or ended
        self.removed_high = []   # (boot_ns, priority) of pods that stopped waiting
        self.alone = []          # (rv, boot_ns, pod, node, text): bound without a friend that is here
        self.line = None

    # ---- helpers

    def fail(self, rule, text):
        self.found.append((self.line["rv"] if self.line else 0, rule, text))

    def of(self, kind):
        return self.kinds.setdefault(kind, {})

    def lately(self, when, ns=None):
        return when and self.line["boot_ns"] - when < (ns or self.stale_ns)

    def judge(self, rule, text, excuse):
        if excuse:
            self.counts["excused"] += 1
        else:
            self.fail(rule, text)

    def ours(self):
        return self.line["agent"].startswith("berth-binder")

    # ---- one line

    def feed(self, line):
        obj, gone = line["object"], line["change"] == "DELETED"
        kind = obj["kind"]
        self.line = line
        self.counts["changes"] += 1
        if self.last_rv is not None and line["rv"] != self.last_rv + 1:
            self.counts["restarts"] += 1
            if line["rv"] <= self.last_rv or self.counts["restarts"] > self.restarts:
                self.fail("gap", f"version {line['rv']} comes after {self.last_rv}")
        self.last_rv = line["rv"]
        if self.ours() and kind not in ("Event", "Lease"):
            self.check_writer(kind, obj)
        if kind == "Pod":
            self.pod(obj, gone)
        elif kind == "Node":
            self.node(obj, gone)
        else:
            handler = {"PersistentVolume": self.volume, "PersistentVolumeClaim": self.volume_claim, "ResourceClaim": self.resource_claim,
                       "Lease": self.lease, "Event": self.event}.get(kind)
            if handler:
                handler(obj, gone)
            if kind == "Event":
                return
            if kind == "CSINode":
                self.csi_changed[m.key(obj)[1]] = self.line["boot_ns"]
            if gone:
                self.of(kind).pop(m.key(obj), None)
            else:
                self.of(kind)[m.key(obj)] = obj

    def check_writer(self, kind, obj):
        at = self.line["received_ns"] or self.line["boot_ns"]
        taken = [user for when, user in self.holder if when <= at]
        name = "/".join(filter(None, m.key(obj)))
        if taken and taken[-1] != self.line["user"]:
            self.fail("lease", f"{self.line['user']} wrote {kind} {name} while {taken[-1] or 'nobody'} held the lease")
        if self.quiet_from and self.line["boot_ns"] > self.quiet_from:
            self.fail("restless", f"{self.line['agent'].split()[0]} wrote {kind} {name} ({self.line['verb']} {self.line['subresource']})")

    # ---- kinds

    def node(self, obj, gone):
        name = obj["metadata"]["name"]
        old = self.cluster.nodes.pop(name, None)
        if not gone:
            self.cluster.nodes[name] = obj
        if gone or old is None or self._node_face(old) != self._node_face(obj):
            self.shape_changed = self.line["boot_ns"]
            if name in self.nodes_known:  # who decides for a new one knows it as it is
                self.node_changed[name] = self.line["boot_ns"]
        if name in self.nodes_known and (gone or old is None or m.status(old).get("allocatable") != m.status(obj).get("allocatable")):
            self.room_changed[name] = self.line["boot_ns"]
        self.nodes_known.add(name)

    @staticmethod
    def _node_face(node):
        return (m.spec(node).get("taints"), m.spec(node).get("unschedulable"), m.labels(node), m.status(node).get("allocatable"))

    def pod(self, pod, gone):
        old = self.cluster.pods.get(m.key(pod))
        if old is not None and m.uid(old) != m.uid(pod):
            old = None
        self.seen_at.setdefault(m.uid(pod), self.line["boot_ns"])
        if gone:
            self.pod_gone(old, pod)
        elif m.node_of(pod):
            if old is None or not m.node_of(old):
                self.bind(old, pod)
            elif m.node_of(old) != m.node_of(pod):
                self.fail("twice", f"{m.key(pod)} moved from {m.node_of(old)} to {m.node_of(pod)}")
        elif m.uid(pod) in self.bound:
            self.fail("twice", f"{m.key(pod)} lost its node {self.bound[m.uid(pod)]}")
        nominated = m.status(pod).get("nominatedNodeName")
        if nominated and not gone and nominated != (m.status(old).get("nominatedNodeName") if old else None) and \
                nominated not in self.cluster.nodes and not self.lately(self.node_changed.get(nominated)):
            self.fail("nominated", f"{m.key(pod)} is nominated to {nominated}, which does not exist")
        if old is not None and m.node_of(old) and (gone or m.terminated(pod) or m.deleting(pod) and not m.deleting(old)):
            self.shape_changed = self.line["boot_ns"]
        if self.ours() and self.line["verb"] == "delete" and old is not None and not m.deleting(old):
            self.victim(old)
        if m.group_of(pod) and (gone or m.deleting(pod) or m.terminated(pod)):
            self.member_gone[m.group_of(pod)] = self.line["boot_ns"]
        if not m.node_of(pod) and gone or old is not None and not m.node_of(old) and m.node_of(pod):
            self.removed_high.append((self.line["boot_ns"], m.priority(pod)))
        self.cluster.put_pod(pod, gone)

    def pod_gone(self, old, pod):
        if old is not None and m.node_of(old) != m.node_of(pod):
            self.fail("twice", f"{m.key(pod)} had {m.node_of(old)}, and was deleted from {m.node_of(pod)}")

    def victim(self, pod):
        self.counts["preemptions"] += 1
        waiting = [m.priority(p) for p in self.cluster.pods.values() if not m.node_of(p)]
        waiting += [prio for when, prio in self.removed_high if self.line["boot_ns"] - when < self.stale_ns]
        if not any(prio > m.priority(pod) for prio in waiting):
            self.fail("victim", f"{m.key(pod)} of priority {m.priority(pod)} was deleted for nobody")

    def bind(self, old, pod):
        name, where = m.key(pod), m.node_of(pod)
        self.counts["binds"] += 1
        if m.uid(pod) in self.bound:
            self.fail("twice", f"{name} was bound to {self.bound[m.uid(pod)]} before {where}")
        self.bound[m.uid(pod)], self.bound_at[m.uid(pod)] = where, self.line["boot_ns"]
        before = old if old is not None else pod
        if m.deleting(before) or m.spec(before).get("schedulingGates") or m.terminated(before):
            self.fail("not-pending", f"{name} was bound while being deleted, gated or finished")
        node = self.cluster.nodes.get(where)
        changed = self.lately(self.node_changed.get(where))
        if not DNS_NAME.match(where) or node is None:
            self.judge("no-node", f"{name} was bound to {where}, which does not exist", DNS_NAME.match(where) and changed)
            return
        self.quorum(pod)
        self.place(pod, node, changed)
        self.bound_volumes(pod, node)
        self.bound_claims(pod, node)

    def place(self, pod, node, changed):
        name, where, c = m.key(pod), node["metadata"]["name"], self.cluster
        why = None if m.wants_node(pod, node) else "selector or affinity"
        why = why or m.repelled(pod, node)
        if why:
            self.judge("node", f"{name} on {where}: {why}", changed)
        less_room = self.lately(self.room_changed.get(where))
        for why, excuse in ((c.overfull(pod, node), less_room), (self.too_many_volumes(pod, node), less_room or self.lately(self.csi_changed.get(where))),
                            (self.not_alone(pod), changed)):
            if why:
                self.judge("overcommit", f"{name} on {where}: {why}", excuse)
        if m.beyond(pod):
            self.counts["unjudged"] += 1
            return
        why = c.disliked(pod, node)
        self.join(pod, node)
        if why and "friend" in why and not changed and not self.lately(self.shape_changed) and not self.overtaken(pod):
            self.alone.append((self.line["rv"], self.line["boot_ns"], pod, node, f"{name} on {where}: {why}"))
        elif why:
            self.judge("apart", f"{name} on {where}: {why}", changed or "friend" in why)
        why = c.lopsided(pod, node)
        if why:
            self.judge("spread", f"{name} on {where}: {why}", self.lately(self.shape_changed))

    # ---- gangs

    def min_count(self, group):
        """Of its object; 0: it has none, or is no gang."""
        spec = m.spec(self.of("PodGroup").get(group, {}))
        return ((spec.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount", 0) or spec.get("minMember", 0)

    def coscheduling(self, group):
        """Its members are tried one by one, hold what they got for a while, and give it back: two of them may keep each other away for ever."""
        return "minMember" in m.spec(self.of("PodGroup").get(group, {}))

    def waits(self, group):
        return any(not (m.node_of(p) or m.deleting(p)) for p in self.members(group))

    def members(self, group):
        return [p for p in self.cluster.pods.values() if m.group_of(p) == group and not m.terminated(p)]

    def groups(self):
        return {m.group_of(p) for p in self.cluster.pods.values() if m.group_of(p)}

    def quorum(self, pod):
        group = m.group_of(pod)
        if not group:
            return
        there = sum(1 for p in self.members(group) if m.node_of(p) or m.key(p) == m.key(pod) or not (m.deleting(p) or m.spec(p).get("schedulingGates")))
        if there < self.min_count(group):
            self.judge("quorum", f"{m.key(pod)} was bound when {there} of {self.min_count(group)} members were there", self.lately(self.member_gone.get(group), self.late_ns))

    def is_tried(self, pod):
        """A member of a gang that is not complete is not: it keeps its nomination, as upstream's does."""
        group = m.group_of(pod)
        return not group or sum(1 for p in self.members(group) if m.node_of(p) or not (m.deleting(p) or m.spec(p).get("schedulingGates"))) >= self.min_count(group)

    def end_of_gang(self, group):
        """Its members are equals: if it fits, it fits in any order."""
        members, c = self.members(group), self.cluster
        bound = sum(1 for p in members if m.node_of(p))
        waiting = [p for p in members if not (m.node_of(p) or m.deleting(p) or m.spec(p).get("schedulingGates"))]
        missing = max(self.min_count(group) - bound, 1)
        if len(members) < self.min_count(group) or len(waiting) < missing or not self.min_count(group):
            return
        if self.coscheduling(group) and sum(1 for g in self.groups() if self.waits(g)) > 1:
            return
        self.counts["halves"] += 0 < bound < self.min_count(group)  # a process died between two of its bindings, or a member was deleted and came again
        placed = []
        for p in waiting[:missing]:
            where = next((n for n, node in c.nodes.items() if not self.refuses(p, node)), None)
            if where is None:
                break
            trial = {**p, "spec": {**p["spec"], "nodeName": where}}
            c.put_pod(trial)
            placed.append(p)
        for p in placed:
            c.put_pod(p)
        if len(placed) == missing:
            self.fail("stuck", f"{bound} of gang {group[1]} have a node, and {missing} more would fit together")
    def join(self, pod, node):
        """Is it the friend that others were put next to, whose bindings were faster?"""
        for one in self.alone[:]:
            if all(m.labels(node).get(t["topologyKey"]) == m.labels(one[3]).get(t["topologyKey"]) and m.term_matches(t, one[2], pod)
                   for t in m.terms(one[2], "podAffinity")) and self.lately(one[1]):
                self.alone.remove(one)
                self.counts["excused"] += 1

    def overtaken(self, pod):
        """The first of its friends when it was decided: those that stand were bound just now, their bindings may have been faster."""
        for t in m.terms(pod, "podAffinity"):
            friends = [p for _, p in self.cluster.standing({m.key(pod)}) if m.term_matches(t, pod, p)]
            if not m.term_matches(t, pod, pod) or not all(self.lately(self.bound_at.get(m.uid(p))) for p in friends):
                return False
        return True

    # ---- volumes and claims

    def pod_volume_claims(self, pod):
        for v in m.spec(pod).get("volumes") or []:
            if v.get("persistentVolumeClaim"):
                yield v["persistentVolumeClaim"]["claimName"]
            elif v.get("ephemeral"):
                yield f"{m.key(pod)[1]}-{v['name']}"

    def attached(self, pod):
        """(driver, claim) of each volume that a node has to attach for the pod."""
        for name in self.pod_volume_claims(pod):
            k = (m.key(pod)[0], name)
            claim = self.of("PersistentVolumeClaim").get(k)
            pv = self.of("PersistentVolume").get(("", m.spec(claim).get("volumeName", ""))) if claim else None
            sc = self.of("StorageClass").get(("", m.spec(claim).get("storageClassName", ""))) if claim else None
            driver = (m.spec(pv).get("csi") or {}).get("driver") if pv else (sc or {}).get("provisioner")
            if driver:
                yield driver, k

    def too_many_volumes(self, pod, node, without=()):
        drivers = m.spec(self.of("CSINode").get(("", m.key(node)[1]), {})).get("drivers") or []
        limits = {d["name"]: d["allocatable"]["count"] for d in drivers if d.get("allocatable")}
        mine = set(self.attached(pod)) if limits else set()
        there = {v for p in self.cluster.on(m.key(node)[1], set(without) | {m.key(pod)}) for v in self.attached(p)} if mine else set()
        for driver in {d for d, _ in mine - there}:
            n = sum(1 for d, _ in mine | there if d == driver)
            if driver in limits and n > limits[driver]:
                return f"{n} volumes of {driver}, {limits[driver]} can be attached"
        return None

    def not_alone(self, pod, without=()):
        """A ReadWriteOncePod claim that another pod uses. On a node that is gone nobody uses anything, as in Kubernetes' scheduler."""
        for name in self.pod_volume_claims(pod):
            claim = self.of("PersistentVolumeClaim").get((m.key(pod)[0], name))
            if claim is None or "ReadWriteOncePod" not in (m.spec(claim).get("accessModes") or []):
                continue
            for where, other in self.cluster.standing(set(without) | {m.key(pod)}):
                if where in self.cluster.nodes and m.key(other)[0] == m.key(pod)[0] and name in self.pod_volume_claims(other):
                    return f"claim {name} is for one pod, and {m.key(other)[1]} has it"
        return None

    def bound_volumes(self, pod, node):
        for name in self.pod_volume_claims(pod):
            claim = self.of("PersistentVolumeClaim").get((m.key(pod)[0], name))
            pv = self.of("PersistentVolume").get(("", m.spec(claim).get("volumeName", ""))) if claim else None
            if pv is None:
                self.fail("volume", f"{m.key(pod)} was bound without volume for claim {name}")
                continue
            ref = m.spec(pv).get("claimRef") or {}
            if ref.get("uid") and ref["uid"] != m.uid(claim):
                self.fail("volume", f"{m.key(pod)}: volume {m.key(pv)[1]} of claim {name} is another claim's")
            where = (m.spec(pv).get("nodeAffinity") or {}).get("required")
            if where and not m.node_terms(where, node):
                self.fail("volume", f"{m.key(pod)} on {m.key(node)[1]}, from where volume {m.key(pv)[1]} cannot be reached")

    def pod_claims(self, pod):
        made = {s["name"]: s.get("resourceClaimName") for s in m.status(pod).get("resourceClaimStatuses") or []}
        for r in m.spec(pod).get("resourceClaims") or []:
            name = r.get("resourceClaimName") or made.get(r["name"], "")
            if name is not None:  # null: none is needed
                yield name

    def bound_claims(self, pod, node):
        for name in self.pod_claims(pod):
            claim = self.of("ResourceClaim").get((m.key(pod)[0], name))
            allocation = m.status(claim).get("allocation") if claim else None
            if not allocation:
                self.fail("claim", f"{m.key(pod)} was bound while claim {name or '(none)'} was not allocated")
                continue
            if m.uid(pod) not in [r.get("uid") for r in m.status(claim).get("reservedFor") or []]:
                self.fail("claim", f"{m.key(pod)} was bound while claim {name} was not reserved for it")
            if allocation.get("nodeSelector") and not m.node_terms(allocation["nodeSelector"], node):
                self.fail("claim", f"{m.key(pod)} on {m.key(node)[1]}, where claim {name} cannot be used")

    def volume(self, pv, gone):
        old = self.of("PersistentVolume").get(m.key(pv))
        was, now = (((m.spec(o).get("claimRef") or {}).get("uid") if o else None) for o in (old, pv))
        if not gone and was and now and was != now and m.uid(old) == m.uid(pv):
            self.fail("moved", f"volume {m.key(pv)[1]} went from one claim to another")

    def volume_claim(self, claim, gone):
        old = self.of("PersistentVolumeClaim").get(m.key(claim))
        was, now = ((m.spec(o).get("volumeName") if o else None) for o in (old, claim))
        if not gone and was and was != now and m.uid(old) == m.uid(claim):
            self.fail("moved", f"claim {m.key(claim)[1]} went from volume {was} to {now}")

    def resource_claim(self, claim, gone):
        old = self.of("ResourceClaim").get(m.key(claim))
        if old is not None and m.uid(old) != m.uid(claim):
            old = None
        took = self._devices(claim) if not gone else set()
        had = self._devices(old) if old else set()
        for d in had - took:
            if self.devices.get(d) == m.uid(claim):
                del self.devices[d]
        for d in took - had:
            other = self.devices.get(d)
            if other and other != m.uid(claim):
                self.fail("device", f"{'/'.join(d)} was allocated to claim {m.key(claim)[1]} and to {other}")
            self.devices[d] = m.uid(claim)
        if had and took and had != took:
            self.fail("moved", f"the allocation of claim {m.key(claim)[1]} changed")

    @staticmethod
    def _devices(claim):
        results = ((m.status(claim).get("allocation") or {}).get("devices") or {}).get("results") or []
        return {(r["driver"], r["pool"], r["device"]) for r in results if not r.get("adminAccess")}

    # ---- who, and what is said

    def lease(self, obj, gone):
        if m.key(obj) != ("kube-system", "kube-scheduler") or not self.line["user"]:
            return
        user = self.line["user"] if m.spec(obj).get("holderIdentity") and not gone else ""
        if gone:
            return  # nobody has taken it by that
        if not self.holder or self.holder[-1][1] != user:
            if user and any(u for _, u in self.holder):
                self.counts["takeovers"] += 1
            self.holder.append((self.line["boot_ns"], user))

    def event(self, obj, gone):
        about = obj.get("involvedObject") or {}
        if not gone and obj.get("reason") == "Scheduled" and self.ours():
            self.events.append((self.line["rv"], about.get("uid"), obj.get("message", "")))

    # ---- the end

    def finish(self, unfinished=False):
        for rv, about, text in self.events:
            said, node = ASSIGNED.match(text), self.bound.get(about)
            if not said or node != said.group(1):
                self.found.append((rv, "event", f"\"{text}\", but the pod was bound to {node}"))
        self.found += [(rv, "apart", text) for rv, _, _, _, text in self.alone]
        self.line = {"rv": self.last_rv or 0}
        if unfinished:
            return self.found
        uids = {m.uid(p) for p in self.cluster.pods.values() if not m.terminated(p)}
        for pod in self.cluster.pods.values():
            self.end_of_pod(pod)
        for group in self.groups():
            self.end_of_gang(group)
        for claim in self.of("ResourceClaim").values():
            for r in m.status(claim).get("reservedFor") or []:
                if r.get("resource") == "pods" and r.get("uid") not in uids:
                    self.fail("leak", f"claim {m.key(claim)[1]} is reserved for pod {r.get('name')}, which is gone")
        claims = {m.uid(c): c for c in self.of("PersistentVolumeClaim").values()}
        for pv in self.of("PersistentVolume").values():
            claim = claims.get((m.spec(pv).get("claimRef") or {}).get("uid"))
            if claim is not None and m.spec(claim).get("volumeName", m.key(pv)[1]) != m.key(pv)[1]:
                self.fail("leak", f"volume {m.key(pv)[1]} is kept for claim {m.key(claim)[1]}, which has another")
        return self.found

    def end_of_pod(self, pod):
        said = next((c["status"] for c in m.status(pod).get("conditions") or [] if c["type"] == "PodScheduled"), None)
        nominated, name = m.status(pod).get("nominatedNodeName"), m.key(pod)
        if m.node_of(pod):
            if said == "False" and m.node_of(pod) in self.cluster.nodes:  # else it was decided anew, for want of the node, before that was known
                self.fail("condition", f"{name} has node {m.node_of(pod)} and says PodScheduled=False")
            if nominated:
                self.fail("nominated", f"{name} has node {m.node_of(pod)} and a nominatedNodeName")
            return
        if m.terminated(pod) or m.deleting(pod) or m.beyond(pod):
            return
        if said != "False" and not m.group_of(pod):  # a gang that is not complete is not tried
            self.fail("condition", f"{name} has no node and says PodScheduled={said}")
        if nominated and nominated not in self.cluster.nodes and self.is_tried(pod):
            self.fail("nominated", f"{name} is nominated to {nominated}, which is gone")
        if not m.spec(pod).get("schedulingGates") and self.attachable(pod) and not m.group_of(pod):
            self.should_fit(pod)

    def attachable(self, pod):
        """Nothing but nodes decides about it: its claims are there, and bound where they must be."""
        for name in self.pod_volume_claims(pod):
            claim = self.of("PersistentVolumeClaim").get((m.key(pod)[0], name))
            sc = self.of("StorageClass").get(("", m.spec(claim).get("storageClassName", ""))) if claim else None
            if claim is None or m.deleting(claim) or m.spec(claim).get("volumeName") or sc is None or sc.get("provisioner") == "kubernetes.io/no-provisioner":
                return False
        return True

    def devices_free(self, pod, node):
        """Each claim takes one device of its class's driver, from the node's own slices."""
        want = sum(1 for _ in self.pod_claims(pod))
        if not want:
            return True
        if any(m.status(self.of("ResourceClaim").get((m.key(pod)[0], n), {})).get("allocation") for n in self.pod_claims(pod)):
            return False  # tied to a node already: not judged
        have = [(s["spec"]["driver"], s["spec"]["pool"]["name"], d["name"]) for s in self.of("ResourceSlice").values()
                if m.spec(s).get("nodeName") == m.key(node)[1] for d in m.spec(s).get("devices") or []]
        return sum(1 for d in have if d not in self.devices) >= want

    def refuses(self, pod, node, without=()):
        return self.cluster.refuses(pod, node, without) or self.too_many_volumes(pod, node, without) or self.not_alone(pod, without)

    def should_fit(self, pod):
        """Nothing wakes a pod when others are bound: its last attempt came after it was made, or after room was left, and knew who was there then."""
        c, tried = self.cluster, max(self.seen_at[m.uid(pod)], self.shape_changed)
        for name, node in c.nodes.items():
            if not self.devices_free(pod, node):
                continue
            if not self.refuses(pod, node):
                self.fail("lost", f"{m.key(pod)} has no node, and fits on {name}")
                return
            lower = {k for k in c.placed.get(name, ()) if m.priority(c.pods[k]) < m.priority(pod) and self.bound_at[m.uid(c.pods[k])] <= tried}
            simple = not m.hard_spread(pod) and not m.terms(pod, "podAffinity")
            if lower and simple and m.spec(pod).get("preemptionPolicy") != "Never" and not self.refuses(pod, node, lower):
                self.fail("preempt", f"{m.key(pod)} has no node, and fits on {name} without {sorted(k[1] for k in lower)}")
                return


def read(path):
    """Whole lines only: the last one may have been cut by the server's end."""
    with open(path, encoding="utf-8") as f:
        for n, text in enumerate(f, 1):
            if text.endswith("\n"):
                try:
                    yield json.loads(text)
                except ValueError as e:
                    raise SystemExit(f"check.py: {path}:{n}: {e}") from e


def main():
    p = argparse.ArgumentParser(description="Looks for what must never have happened in an API server's history.",
                                epilog="rules:\n" + "\n".join(f"  {k:12} {v}" for k, v in RULES.items()),
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("history", help="file written by berth-simulator --history-file")
    p.add_argument("--stale", type=float, default=5.0, metavar="SECONDS", help="how long others' changes may be unknown (5)")
    p.add_argument("--restarts", type=int, default=0, metavar="N", help="restarts of the server, each a gap in the versions")
    p.add_argument("--quiet-from", type=int, metavar="NS", help="boot clock from which on nobody should have written")
    p.add_argument("--unfinished", action="store_true", help="do not judge how the history ends")
    p.add_argument("-o", "--output", choices=("text", "json"), default="text")
    a = p.parse_args()
    c = Checker(a.stale, a.restarts, a.quiet_from)
    try:
        for line in read(a.history):
            c.feed(line)
    except OSError as e:
        print(f"check.py: {a.history}: {e.strerror}", file=sys.stderr)
        return 2
    c.finish(a.unfinished)
    if a.output == "json":
        json.dump({"counts": c.counts, "found": [{"rv": r, "rule": k, "text": t} for r, k, t in c.found]}, sys.stdout, indent=1)
        print()
    else:
        for rv, rule, text in c.found[:SHOWN]:
            print(f"{rule:12} at {rv}: {text}")
        if len(c.found) > SHOWN:
            print(f"and {len(c.found) - SHOWN} more")
        print(", ".join(f"{v} {k}" for k, v in c.counts.items()) + f"; {len(c.found)} found")
    return 1 if c.found else 0


if __name__ == "__main__":
    sys.exit(main())
