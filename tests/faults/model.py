# SPDX-License-Identifier: Apache-2.0
"""What a pod needs and what a node has, written down a second time, slowly, from Kubernetes' documents.

Shares nothing with the scheduler on purpose: a checker that used its code would share its mistakes. Only what the
fault suite's load uses is here; `beyond(pod)` names what is not, and such pods are not judged.
"""
import functools
from fractions import Fraction

SUFFIX = {"": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9,
          "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
EXISTS = ("Exists", "DoesNotExist")


@functools.lru_cache(maxsize=None)
def quantity(text):
    text = str(text)
    digits = text.rstrip("numkMGTPEi")
    return Fraction(digits) * SUFFIX[text[len(digits):]]


def key(obj):
    meta = obj["metadata"]
    return (meta.get("namespace", ""), meta["name"])


def uid(obj):
    return obj["metadata"].get("uid", "")


def spec(obj):
    return obj.get("spec") or {}


def status(obj):
    return obj.get("status") or {}


def labels(obj):
    return obj["metadata"].get("labels") or {}


def deleting(obj):
    return "deletionTimestamp" in obj["metadata"]


def terminated(pod):
    return status(pod).get("phase") in ("Succeeded", "Failed")


def node_of(pod):
    return spec(pod).get("nodeName", "")


def group_of(pod):
    """Key of the PodGroup that it names; None: of none."""
    name = (spec(pod).get("schedulingGroup") or {}).get("podGroupName") or labels(pod).get("scheduling.x-k8s.io/pod-group")
    return (key(pod)[0], name) if name else None


def priority(pod):
    return spec(pod).get("priority") or 0


# ---- resources -----------------------------------------------------------------------------------


def _add(into, more):
    for name, value in (more or {}).items():
        into[name] = into.get(name, 0) + quantity(value)


def requests(pod):
    """Containers and sidecars run together; each init container beside the sidecars before it."""
    total, sidecars, peak = {"pods": Fraction(1)}, {}, {}
    for c in spec(pod).get("containers") or []:
        _add(total, (c.get("resources") or {}).get("requests"))
    for c in spec(pod).get("initContainers") or []:
        wants = (c.get("resources") or {}).get("requests")
        if c.get("restartPolicy") == "Always":
            _add(sidecars, wants)
            _add(total, wants)
            now = dict(sidecars)
        else:
            now = dict(sidecars)
            _add(now, wants)
        for name, value in now.items():
            peak[name] = max(peak.get(name, 0), value)
    for name, value in peak.items():
        total[name] = max(total.get(name, 0), value)
    for name, value in (((spec(pod).get("resources") or {}).get("requests")) or {}).items():
        total[name] = quantity(value)
    _add(total, spec(pod).get("overhead"))
    return total


def host_ports(pod):
    found = set()
    for c in spec(pod).get("containers") or []:
        for p in c.get("ports") or []:
            if p.get("hostPort"):
                found.add((p.get("hostIP") or "0.0.0.0", p.get("protocol") or "TCP", p["hostPort"]))
    return found


def ports_clash(mine, taken):
    for ip, proto, port in mine:
        for ip2, proto2, port2 in taken:
            if port == port2 and proto == proto2 and (ip == ip2 or "0.0.0.0" in (ip, ip2)):
                return f"{proto} port {port}"
    return None


# ---- selectors -----------------------------------------------------------------------------------


def expression(e, have):
    op, values = e["operator"], e.get("values") or []
    value = have.get(e["key"])
    if op in EXISTS:
        return (value is not None) == (op == "Exists")
    if op == "In":
        return value in values
    if op == "NotIn":
        return value not in values
    if value is None:
        return False
    return int(value) > int(values[0]) if op == "Gt" else int(value) < int(values[0])


def selects(selector, have):
    if selector is None:
        return False
    return all(have.get(k) == v for k, v in (selector.get("matchLabels") or {}).items()) and \
        all(expression(e, have) for e in selector.get("matchExpressions") or [])


def node_terms(selector, node):
    """A NodeSelector: one of its terms; an empty term matches nothing."""
    for term in selector.get("nodeSelectorTerms") or []:
        exprs, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
        if (exprs or fields) and all(expression(e, labels(node)) for e in exprs) and \
                all(expression(e, {"metadata.name": node["metadata"]["name"]}) for e in fields):
            return True
    return False


def wants_node(pod, node):
    """nodeSelector and required node affinity."""
    if any(labels(node).get(k) != v for k, v in (spec(pod).get("nodeSelector") or {}).items()):
        return False
    required = ((spec(pod).get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return not required or node_terms(required, node)


def tolerates(pod, taint):
    for t in spec(pod).get("tolerations") or []:
        if t.get("effect") and t["effect"] != taint["effect"]:
            continue
        if t.get("key") and t["key"] != taint["key"]:
            continue
        if t.get("operator", "Equal") == "Exists" or (t.get("key") and t.get("value", "") == taint.get("value", "")):
            return True
    return False


def repelled(pod, node):
    """The taint, or being cordoned, that keeps the pod away."""
    if spec(node).get("unschedulable") and not tolerates(pod, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}):
        return "cordoned"
    for taint in spec(node).get("taints") or []:
        if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(pod, taint):
            return f"taint {taint['key']}"
    return None


# ---- between pods --------------------------------------------------------------------------------


def terms(pod, which):
    part = (spec(pod).get("affinity") or {}).get(which) or {}
    return part.get("requiredDuringSchedulingIgnoredDuringExecution") or []


def term_matches(term, owner, other):
    spaces = term.get("namespaces") or [key(owner)[0]]
    return key(other)[0] in spaces and selects(term.get("labelSelector"), labels(other))


def hard_spread(pod):
    return [c for c in spec(pod).get("topologySpreadConstraints") or [] if c.get("whenUnsatisfiable") == "DoNotSchedule"]


def beyond(pod):
    """What this model does not know about the pod; '' = nothing."""
    for which in ("podAffinity", "podAntiAffinity"):
        for t in terms(pod, which):
            if t.get("namespaceSelector") is not None or t.get("matchLabelKeys") or t.get("mismatchLabelKeys"):
                return f"{which} with namespaceSelector or label keys"
    for c in hard_spread(pod):
        if c.get("minDomains") or c.get("matchLabelKeys") or c.get("nodeTaintsPolicy") == "Honor" or c.get("nodeAffinityPolicy") == "Ignore":
            return "topologySpreadConstraints beyond maxSkew"
    if spec(pod).get("schedulerName", "default-scheduler") != "default-scheduler":
        return "another scheduler's"
    return ""


class Cluster:
    """Nodes and the pods on them, as of one version of the history."""

    def __init__(self):
        self.nodes = {}   # name -> node
        self.pods = {}    # (namespace, name) -> pod
        self.placed = {}  # node name -> {(namespace, name)}: bound and not terminated

    def put_pod(self, pod, gone=False):
        k = key(pod)
        old = self.pods.pop(k, None)
        if old is not None:
            self.placed.get(node_of(old), set()).discard(k)
        if gone:
            return
        self.pods[k] = pod
        if node_of(pod) and not terminated(pod):
            self.placed.setdefault(node_of(pod), set()).add(k)

    def on(self, name, without=()):
        return [self.pods[k] for k in self.placed.get(name, ()) if k not in without]

    def overfull(self, pod, node, without=()):
        """Why the node has no room; None = it has."""
        need, has = requests(pod), status(node).get("allocatable") or {}
        there = self.on(node["metadata"]["name"], without)
        taken = [requests(p) for p in there]
        for name, value in need.items():
            if not value:
                continue
            used = sum((t.get(name, 0) for t in taken), Fraction(0))
            room = quantity(has.get(name, 0))
            if used + value > room:
                return f"{name}: {float(used)} used + {float(value)} wanted > {float(room)}"
        mine = host_ports(pod)
        return ports_clash(mine, set().union(*(host_ports(p) for p in there))) if mine and there else None

    def crowded(self, name):
        """Why the node is over-committed as it stands; None = it is not, or there is none of that name."""
        node, there = self.nodes.get(name), self.on(name)
        if node is None:
            return None
        used, has = {}, status(node).get("allocatable") or {}
        for p in there:
            for what, value in requests(p).items():
                used[what] = used.get(what, 0) + value
        for what, value in used.items():
            if value > quantity(has.get(what, 0)):
                return f"{name} has {what} {float(quantity(has.get(what, 0)))}, {float(value)} are taken by {', '.join(sorted(key(p)[1] for p in there))}"
        taken = set()
        for p in there:
            clash = ports_clash(host_ports(p), taken)
            if clash:
                return f"{name}: {clash} is taken twice"
            taken |= host_ports(p)
        return None

    def _domain(self, node_name, topology):
        node = self.nodes.get(node_name)
        return labels(node).get(topology) if node else None

    def standing(self, without):
        for name, keys in self.placed.items():
            for k in keys:
                if k not in without:
                    yield name, self.pods[k]

    def disliked(self, pod, node, without=()):
        """Required anti-affinity, both ways, and affinity."""
        me = key(pod)
        for name, other in self.standing(set(without) | {me}):
            for owner, seen in ((pod, other), (other, pod)):
                for t in terms(owner, "podAntiAffinity"):
                    mine = labels(node).get(t["topologyKey"])
                    if mine is not None and mine == self._domain(name, t["topologyKey"]) and term_matches(t, owner, seen):
                        return f"anti-affinity with {key(other)[1]} on {name}"
        for t in terms(pod, "podAffinity"):
            mine, friends, near = labels(node).get(t["topologyKey"]), 0, False
            for name, other in self.standing(set(without) | {me}):
                if term_matches(t, pod, other):
                    friends += 1
                    near = near or (mine is not None and mine == self._domain(name, t["topologyKey"]))
            if mine is None or not (near or (friends == 0 and term_matches(t, pod, pod))):
                return f"no friend of affinity within {t['topologyKey']}"
        return None

    def lopsided(self, pod, node, without=()):
        """DoNotSchedule constraints."""
        me, all_keys = key(pod), [c["topologyKey"] for c in hard_spread(pod)]
        for c in hard_spread(pod):
            counts = {}
            for name, n in self.nodes.items():
                if all(k in labels(n) for k in all_keys) and wants_node(pod, n):
                    counts.setdefault(labels(n)[c["topologyKey"]], 0)
            mine = labels(node).get(c["topologyKey"])
            if mine not in counts:
                return f"outside of {c['topologyKey']}"
            for name, other in self.standing(set(without) | {me}):
                d = self._domain(name, c["topologyKey"])
                n = self.nodes.get(name)
                if d in counts and n is not None and all(k in labels(n) for k in all_keys) and wants_node(pod, n) and \
                        key(other)[0] == me[0] and not deleting(other) and selects(c.get("labelSelector"), labels(other)):
                    counts[d] += 1
            own = 1 if selects(c.get("labelSelector"), labels(pod)) else 0
            skew = counts[mine] + own - min(counts.values())
            if skew > c["maxSkew"]:
                return f"skew {skew} over {c['topologyKey']}"
        return None

    def refuses(self, pod, node, without=()):
        """The first reason for which the pod may not stand on the node; None = it may."""
        if not wants_node(pod, node):
            return "node affinity"
        return repelled(pod, node) or self.overfull(pod, node, without) or self.disliked(pod, node, without) or \
            self.lopsided(pod, node, without)
