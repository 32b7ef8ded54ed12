# SPDX-License-Identifier: Apache-2.0
"""What happens in the cluster meanwhile: pods of every kind come and go, nodes too."""

import concurrent.futures

NODES, SLOTS, ZONES, PODS_MAX, LOCAL_DISKS = 14, 16, 3, 160, 6  # SLOTS: pods of a node
ATTACHABLE = 2  # volumes that a node of the CSI driver can attach
BURST = 25  # so many at once, now and then
CALLERS = 12
GROUPS = ("g0", "g1", "g2")


def labelled(name, namespace="", **labels):
    return {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}


def csi_node(name):
    return {"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": name}, "spec": {"drivers": [
        {"name": "made.berth.example.com", "nodeID": name, "topologyKeys": [], "allocatable": {"count": ATTACHABLE}}]}}


def device_class():
    return {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == \"gpu.example.com\""}}]}}


def storage_class(name, provisioner):
    return {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": name}, "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer"}


def volume_claim(name, storage_class, mode="ReadWriteOnce"):
    return {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "accessModes": [mode], "storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}}}


def priority_class(name, value):
    return {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}, "value": value}


def claim_template():
    return {"kind": "ResourceClaimTemplate", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "one-gpu", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}}


def slice_of(node):
    return {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": f"{node}-gpu"},
            "spec": {"driver": "gpu.example.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                     "devices": [{"name": "d0"}, {"name": "d1"}]}}


def local_volume(i, node):
    return {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": f"disk-{i}"}, "spec": {
        "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "local": {"path": "/disk"},
        "persistentVolumeReclaimPolicy": "Retain", "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}}}


def node(name, i, slots):
    spec = {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]} if i % 7 == 6 else {}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": str(slots), "example.com/thing": "2"}
    return {"kind": "Node", "apiVersion": "v1", "spec": spec, "status": {"capacity": amounts, "allocatable": amounts},
            "metadata": labelled(name, **{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{i % ZONES}", "pool": f"p{i % 2}"})}


PATHS = {"Node": "/api/v1/nodes", "PersistentVolume": "/api/v1/persistentvolumes", "Pod": "/api/v1/namespaces/default/pods",
         "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims", "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
         "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses", "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
         "CSINode": "/apis/storage.k8s.io/v1/csinodes",
         "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
         "PodGroup": "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups",
         "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"}


class Load:
    """One step() at a time; remembers only names, so that it can go on after any failure."""

    def __init__(self, api, rand, nodes=NODES, slots=SLOTS, pods_max=PODS_MAX, gangs=0.0):
        self.api, self.rand, self.nodes_usual, self.slots, self.pods_max, self.gangs = api, rand, nodes, slots, pods_max, gangs
        self.pods, self.gated, self.nodes, self.retired = [], [], {}, []
        self.serial = self.disks = 0
        self.callers = concurrent.futures.ThreadPoolExecutor(CALLERS)
        self.running = []

    def later(self, what, *args):
        """From now on, several at a time: a slow server must not make the load slow."""
        self.running = [f for f in self.running if not f.done()]
        self.running.append(self.callers.submit(what, *args))

    def wait(self):
        concurrent.futures.wait(self.running)

    def close(self):
        self.callers.shutdown()

    def create(self, obj):
        return self.api("POST", PATHS[obj["kind"]], obj) in (200, 201, 409)

    def must(self, obj):
        for _ in range(50):
            if self.create(obj):
                return
        raise SystemExit(f"cannot create {obj['kind']} {obj['metadata']['name']}")

    def build(self):
        for obj in (device_class(), storage_class("made", "made.berth.example.com"), storage_class("local", "kubernetes.io/no-provisioner"),
                    priority_class("low", 10), priority_class("high", 1000), claim_template()):
            self.must(obj)
        for group in GROUPS:
            self.must(volume_claim(f"single-{group}", "made", "ReadWriteOncePod"))
        for _ in range(self.nodes_usual):
            self.add_node(True)
        for i in range(LOCAL_DISKS):
            self.must(local_volume(i, f"n{i}"))

    # ---- nodes

    def add_node(self, must=False):
        i = self.rand.choice(self.retired) if self.retired and self.rand.random() < 0.5 else len(self.nodes) + len(self.retired)
        if i in self.retired:
            self.retired.remove(i)
        name = f"n{i}"
        (self.must if must else self.create)(csi_node(name))
        (self.must if must else self.create)(node(name, i, self.slots))
        if i % 3 == 0:
            self.create(slice_of(name))
        self.nodes[name] = i

    def remove_node(self):
        """The node, then its pods, as a cloud and the garbage collector do."""
        name = self.rand.choice(sorted(self.nodes))
        if len(self.nodes) <= self.nodes_usual - 3 or self.api("DELETE", f"/api/v1/nodes/{name}") not in (200, 404):
            return
        self.retired.append(self.nodes.pop(name))
        self.api("DELETE", f"/apis/resource.k8s.io/v1/resourceslices/{name}-gpu")
        self.api("DELETE", f"{PATHS['CSINode']}/{name}")
        self.sweep()

    def sweep(self):
        """Pods whose node is gone go too."""
        for p in self.api.items("/api/v1/pods"):
            where = p["spec"].get("nodeName")
            if where and where not in self.nodes:
                self.delete(p["metadata"]["name"], 0)

    def patch_node(self, spec):
        name = self.rand.choice(sorted(self.nodes))
        self.api("PATCH", f"/api/v1/nodes/{name}", {"spec": spec})

    # ---- pods

    def name(self):
        """Half of the names were somebody else's before, as a StatefulSet's are."""
        self.serial += 1
        return f"p{self.rand.randrange(self.serial)}" if self.rand.random() < 0.5 else f"p{self.serial}"

    def pod(self):
        r, name = self.rand, self.name()
        group = r.choice(GROUPS)
        mine = {"matchLabels": {"app": group}}
        wants = {"cpu": f"{r.choice((50, 100, 200, 500))}m", "memory": f"{r.choice((64, 128, 256))}Mi"}
        c = {"name": "c", "image": "pause", "resources": {"requests": wants}}
        spec, kind = {"containers": [c]}, r.choice(
            "plain plain plain selector tolerant port apart spread even thing made made single local device low low big high gated huge near".split())
        if kind == "selector":
            spec["nodeSelector"] = {"pool": r.choice(("p0", "p1"))}
        elif kind == "tolerant":
            spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
            spec["nodeSelector"] = {"topology.kubernetes.io/zone": "z0"}
        elif kind == "port":
            c["ports"] = [{"containerPort": 80, "hostPort": 8000 + r.randrange(3)}]
        elif kind == "apart":
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": f"a-{group}"}}, "topologyKey": "kubernetes.io/hostname"}]}}
            group = f"a-{group}"
        elif kind == "near":
            spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": mine, "topologyKey": "topology.kubernetes.io/zone"}]}}
        elif kind in ("spread", "even"):
            group = f"s-{group}"
            spec["topologySpreadConstraints"] = [{
                "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": group}},
                "topologyKey": "topology.kubernetes.io/zone" if kind == "spread" else "kubernetes.io/hostname"}]
            if kind == "even":
                spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]["app"] = group = f"h-{group}"
        elif kind == "thing":
            wants["example.com/thing"] = "1"
            c["resources"]["limits"] = {"example.com/thing": "1"}
        elif kind in ("made", "local"):
            self.claim(name, spec, kind)
        elif kind == "single":
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"single-{group}"}}]
        elif kind == "device":
            spec["resourceClaims"] = [{"name": "r", "resourceClaimTemplateName": "one-gpu"}]
        elif kind in ("low", "high", "big"):
            wants["cpu"] = {"low": "900m", "high": "1500m", "big": "2500m"}[kind]
            spec["priorityClassName"] = "high" if kind == "high" else "low"
        elif kind == "gated":
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        elif kind == "huge":
            wants["cpu"] = "40"
        self.later(self.create, {"kind": "Pod", "apiVersion": "v1", "metadata": labelled(name, "default", app=group, kind=kind), "spec": spec})
        self.pods.append(name)
        if kind == "gated":
            self.gated.append(name)

    def urgent(self, n):
        """Pods that come before all the others, as large as any."""
        for _ in range(n):
            name = self.name()
            c = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "900m", "memory": "64Mi"}}}
            self.later(self.create, {"kind": "Pod", "apiVersion": "v1", "metadata": labelled(name, "default", kind="urgent"),
                                     "spec": {"containers": [c], "priorityClassName": "high"}})
            self.pods.append(name)

    def gang(self, size, cpu):
        """A gang of equals; its object comes before them, among them or last, and some are gated for a while."""
        self.serial += 1
        group, milli = f"g{self.serial}", self.rand.choice(cpu)
        todo = [{"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha2", "metadata": {"name": group, "namespace": "default"},
                 "spec": {"schedulingPolicy": {"gang": {"minCount": size}}}}]
        for i in range(size):
            name = f"{group}-{i}"
            spec = {"containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": f"{milli}m", "memory": "64Mi"}}}],
                    "schedulingGroup": {"podGroupName": group}}
            if self.rand.random() < 0.1:
                spec["schedulingGates"] = [{"name": "example.com/wait"}]
                self.gated.append(name)
            todo.append({"kind": "Pod", "apiVersion": "v1", "metadata": labelled(name, "default", kind="member"), "spec": spec})
            self.pods.append(name)
        todo.insert(self.rand.randrange(size + 1), todo.pop(0))
        for obj in todo:
            self.later(self.create, obj)

    def two_gangs(self):
        """Each of them has room, not both: a member takes more than half of a node."""
        for _ in range(2):
            self.gang(self.nodes_usual // 2 + 1, (2100,))

    def shrink(self):
        """A pod that runs, or is about to, gets less."""
        name = self.rand.choice(self.pods)
        self.later(self.api, "PATCH", f"{PATHS['Pod']}/{name}/resize", {"spec": {"containers": [
            {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "40m", "memory": "64Mi"}}}]}})

    def claim(self, pod, spec, kind):
        """Local claims are few, so that there is a disk for each."""
        if kind == "local" and self.disks >= LOCAL_DISKS:
            return
        self.disks += kind == "local"
        name = f"{kind}-{pod}"
        self.create(volume_claim(name, kind))
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]

    def delete(self, name, grace=None):
        q = f"?gracePeriodSeconds={grace}" if grace is not None else ""
        return self.api("DELETE", f"{PATHS['Pod']}/{name}{q}") in (200, 202, 404)

    def ungate(self):
        name = self.gated.pop(self.rand.randrange(len(self.gated)))
        return self.api("PATCH", f"{PATHS['Pod']}/{name}", {"spec": {"schedulingGates": None}})

    def step(self):
        r = self.rand.random()
        if len(self.pods) > self.pods_max or (r < 0.3 and self.pods):
            # the newest are often still pending or on their way
            i = -1 - int(len(self.pods) * self.rand.random() ** 3) if self.rand.random() < 0.4 else self.rand.randrange(len(self.pods))
            self.later(self.delete, self.pods.pop(max(i, -len(self.pods))), self.rand.choice((None, 0)))
        elif self.gangs and self.rand.random() < self.gangs:
            what = self.rand.random()
            if what < 0.1:
                self.two_gangs()
            elif what < 0.2 and self.pods:
                self.shrink()
            else:
                self.gang(self.rand.randint(2, 5), (100, 500, 1500))
        elif r < 0.34 and self.gated:
            self.ungate()
        elif r < 0.345 and len(self.pods) < self.pods_max - BURST:
            for _ in range(BURST):
                self.pod()
        elif r < 0.36:
            self.patch_node(self.rand.choice(({"unschedulable": True}, {"unschedulable": None}, {"unschedulable": None})))
        elif r < 0.37:
            self.patch_node({"taints": self.rand.choice((None, [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]))})
        elif r < 0.38:
            self.add_node() if len(self.nodes) <= self.nodes_usual else self.remove_node()
        else:
            self.pod()
