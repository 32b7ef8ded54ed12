#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is a node booked twice when processes die while a binding is on the wire?

One node with one CPU. The API server holds bindings for a while. A pod that takes the whole node is created; as soon as
the server says that its binding has come, processes are killed (-9). While they are down a pod of higher priority, as
large, is created; then they are started again. Whatever happens, the two must never be on the node at the same time:
that is looked for in all that the server committed, change by change.
"""
import argparse
import collections
import itertools
import json
import os
import queue
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import model  # noqa: E402
from run import SCALE, Api, Log, Process, last_lines, scrape  # noqa: E402

KINDS = {"scheduler": ("scheduler",), "both": ("scheduler", "binder"), "binder": ("binder",), "all": ("watcher", "scheduler", "binder")}
EFFECTS = {"first": "bind-answer-ms", "late": "bind-late-ms"}
USUAL_EFFECTS = ("late", "late", "late", "first")  # one that took effect at once is seen by the watcher: hardly a danger
POLICIES = {"never": "high-never", "default": "high"}
PODS = "/api/v1/namespaces/default/pods"
SETTLE_S = 60
STAMP = re.compile(r"^[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d\.\d+)")
HELD = re.compile(r'Fault: a binding waits for its (?:effect|answer).*pod="([^"]+)"')
LEDGER = ("before_bind", "binds", "out", "queued")  # work of berth_scheduler_ledger
Case = collections.namedtuple("Case", "delay kind effect policy")


def amounts(**more):
    return {"cpu": "1", "memory": "1Gi", "pods": "110", **more}


def pod(name, priority_class=None):
    spec = {"containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": "1"}}}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


class Missed(Exception):
    """The kill came too late, or something that has nothing to do with the question failed."""


class Cluster:
    """A server, a watcher, a scheduler and binders; used for many runs."""

    def __init__(self, o, number):
        self.o, self.dir, self.serial = o, os.path.join(o.logs, f"cluster-{number}"), 0
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(os.path.join(self.dir, "run"))
        self.history, self.faults_file = os.path.join(self.dir, "history.jsonl"), os.path.join(self.dir, "faults")
        self.faults, self.state = "", model.Cluster()
        with open(self.faults_file, "w", encoding="utf-8") as f:
            f.write("\n")
        kubeconfig = os.path.join(self.dir, "kubeconfig")
        self.processes = {}
        self.server = self.add("simulator", "--port", "0", "--kubeconfig-out", kubeconfig, "--history-file", self.history,
                               "--faults", f"@{self.faults_file}", "--audit-log-path", os.path.join(self.dir, "audit.log"), "--kubelet-delay", "20ms")
        self.server.start()
        self.server_log, self.changes = Log(self.server.log), Log(self.history)
        wait(20, lambda: os.path.exists(kubeconfig) and os.path.getsize(kubeconfig), "the server starts")
        with open(kubeconfig, encoding="utf-8") as f:
            self.api = Api(int(re.search(r"server:.*:(\d+)", f.read()).group(1)))
        wait(20, lambda: self.api("GET", "/readyz") == 200, "the server is ready")
        runtime = ("--runtime-dir", os.path.join(self.dir, "run"), "--metrics-address", "127.0.0.1:0")
        self.add("watcher", "--kubeconfig", kubeconfig, *runtime)
        self.add("scheduler", *runtime, *getattr(o, "scheduler_flag", ()))
        for i in range(o.binders):
            self.add("binder", "--kubeconfig", kubeconfig, "--instance", str(i + 1), *runtime, name=f"binder-{i + 1}")
        self.must({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, "status": {"capacity": amounts(), "allocatable": amounts()}},
                  "/api/v1/nodes")
        for name, policy in (("high", "PreemptLowerPriority"), ("high-never", "Never")):
            self.must({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}, "value": 1000,
                       "preemptionPolicy": policy}, "/apis/scheduling.k8s.io/v1/priorityclasses")
        for p in self.processes.values():
            if not p.alive:
                p.start()
        wait(40, lambda: self.idle(), "the cluster starts")

    def add(self, what, *flags, name=None):
        p = Process(name or what, [os.path.join(self.o.bin, f"berth-{what}"), *flags], os.path.join(self.dir, f"{name or what}.log"))
        self.processes[name or what] = p
        return p

    def must(self, obj, path=PODS):
        if self.api("POST", path, obj) != 201:
            raise Missed(f"cannot create {obj['kind']} {obj['metadata']['name']}")

    # ---- what is known

    def scheduler(self):
        return scrape(self.processes["scheduler"].port()) or {}

    def settled(self):
        m = self.scheduler()
        return m and not m.get('scheduler_cache_size{type="assumed_pods"}', 1) and not any(
            m.get(f'berth_scheduler_ledger{{what="{w}"}}', 1) for w in LEDGER)

    def idle(self):
        """No pod anywhere, and a binder that may be given work."""
        m = self.scheduler()
        return m.get('scheduler_cache_size{type="nodes"}') == 1 and m.get('scheduler_cache_size{type="pods"}') == 0 and \
            not any(v for k, v in m.items() if k.startswith("scheduler_pending_pods")) and m.get("berth_scheduler_binders", 1) and self.settled()

    def follow(self):
        """Feeds the model with what was committed; why the node was over-committed at some moment, or None."""
        bad = None
        for text in self.changes.lines():
            line = json.loads(text)
            obj, gone = line["object"], line["change"] == "DELETED"
            if obj["kind"] == "Node":
                self.state.nodes[obj["metadata"]["name"]] = obj
            elif obj["kind"] == "Pod":
                self.state.put_pod(obj, gone)
                why = self.state.crowded(model.node_of(obj)) if not gone else None
                bad = bad or (why and f"version {line['rv']}: {why}")
        return bad

    # ---- steps

    def set_faults(self, spec):
        if spec == self.faults:
            return
        with open(self.faults_file, "w", encoding="utf-8") as f:
            f.write(spec + "\n")
        self.server_log.lines()
        self.server.signal(signal.SIGHUP)
        wait(10, lambda: any("The faults are read again" in t for t in self.server_log.lines()), "the server reads its faults")
        self.faults = spec

    def binding_came(self, name):
        """The wall clock when the server got the pod's binding."""
        end = time.monotonic() + 20 * SCALE
        while time.monotonic() < end:
            for text in self.server_log.lines():
                if (m := HELD.search(text)) and m.group(1) == name:
                    return when(text)
            time.sleep(0.001)
        raise Missed(f"no binding of {name} came")

    def victims(self, kind):
        return [p for n, p in self.processes.items() if n.split("-")[0] in KINDS[kind]]

    def decided(self, low, high):
        """Each of the two is bound, gone, or said to fit nowhere."""
        a, b = (self.state.pods.get(("default", n)) for n in (low, high))
        return (a is None or model.node_of(a)) and b is not None and (model.node_of(b) or any(
            c["type"] == "PodScheduled" and c["status"] == "False" for c in model.status(b).get("conditions") or []))

    def run(self, case):
        """"" when all was well, else what was not."""
        self.serial += 1
        low, high = f"low-{self.serial}", f"high-{self.serial}"
        self.set_faults(f"{EFFECTS[case.effect]}={round(case.delay * 1000)}")
        self.must(pod(low))
        came = self.binding_came(low)
        for p in self.victims(case.kind):
            p.kill()
        if time.time() >= came + case.delay:
            raise Missed("the kill came after the answer")
        self.must(pod(high, POLICIES[case.policy]))
        for p in self.victims(case.kind):
            p.start()
        bad, end = None, time.monotonic() + SETTLE_S * SCALE
        while not bad and time.monotonic() < end:
            bad = self.follow()
            if not bad and self.decided(low, high) and time.time() > came + case.delay and self.settled():
                bad = self.follow()
                break
            time.sleep(0.02)
        else:
            if not bad:
                m = self.scheduler()
                return f"not settled: {low} {self.where(low)}, {high} {self.where(high)}, " + \
                    ", ".join(f"{k} {v:.0f}" for k, v in m.items() if v and k.startswith(("scheduler_pending", "berth_scheduler_ledger")))
        return f"over-committed: {bad}" if bad else ""

    def where(self, name):
        p = self.state.pods.get(("default", name))
        return "is gone" if p is None else f"is on {model.node_of(p)}" if model.node_of(p) else "has no node"

    def clean(self):
        """No pod is left, and everybody has noticed. A binding that is still held finds no pod."""
        for p in self.processes.values():
            if not p.alive:
                p.start()
        self.set_faults("")
        self.follow()
        for _, name in list(self.state.pods):
            self.api("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        wait(SETTLE_S, lambda: self.follow() or (not self.state.pods and self.idle()), "the cluster is empty again")

    def end(self):
        for name in sorted(self.processes, key=lambda n: ("watcher" in n, "simulator" in n)):
            if self.processes[name].alive:
                self.processes[name].end(10 * SCALE)


def wait(seconds, good, what):
    end = time.monotonic() + seconds * SCALE
    while time.monotonic() < end:
        if good():
            return
        time.sleep(0.01)
    raise Missed(f"waited for: {what}")


def when(text):
    m = STAMP.match(text)
    t = time.localtime()
    return time.mktime((t.tm_year, int(m.group(1)), int(m.group(2)), int(m.group(3)), int(m.group(4)), 0, 0, 0, -1)) + float(m.group(5))


class Table:
    def __init__(self):
        self.lock, self.rows, self.bad = threading.Lock(), {}, 0

    def add(self, case, what, where=""):
        with self.lock:
            row = self.rows.setdefault(case, collections.Counter())
            column = what.split(":")[0] if what else "well"
            row[column] += 1
            if column in ("over-committed", "not settled"):
                self.bad += 1
                print(f"# delay {case.delay}, kill {case.kind}, effect {case.effect}, policy {case.policy}: {what} ({where})", flush=True)

    def show(self):
        by = {}
        for case, row in self.rows.items():
            by.setdefault((case.delay, case.kind), collections.Counter()).update(row)
        print(f"{'delay':>6} {'killed':10} {'runs':>5} {'over-committed':>15} {'not settled':>12} {'missed':>7}")
        total = collections.Counter()
        for (delay, kind), row in sorted(by.items()):
            self.line(f"{delay:5g}s {kind:10}", row)
            total.update(row)
        self.line(f"{'all':17}", total)

    @staticmethod
    def line(head, row):
        runs = row["well"] + row["over-committed"] + row["not settled"]
        print(f"{head} {runs:5} {row['over-committed']:15} {row['not settled']:12} {row['missed']:7}")


def work(o, number, todo, table):
    cluster, tries = None, 0
    while True:
        try:
            case = todo.get_nowait()
        except queue.Empty:
            break
        try:
            if cluster is None:
                cluster = Cluster(o, number)
            what = cluster.run(case)
            table.add(case, what, f"run {cluster.serial} in {cluster.dir}")
            cluster.clean()
        except Missed as e:
            table.add(case, "missed")
            tries += 1
            if o.verbose or tries > 3:
                print(f"# missed: {e} ({case})", flush=True)
            if tries > 20 + o.runs // 4:
                print("# too many runs said nothing: given up", flush=True)
                break
            todo.put(case)
            try:
                if cluster is not None:
                    cluster.clean()
            except Missed as again:
                print(f"# {again}: {'; '.join(last_lines(cluster.processes['scheduler'].log))}", flush=True)
                cluster.end()
                cluster, number = None, f"{number}+"
    if cluster is not None:
        cluster.end()


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog="""examples:
  tests/faults/doublebook.py --runs 400                              every delay, kind of kill, effect and policy in turn
  tests/faults/doublebook.py --runs 100 --delay 0.3 --kind scheduler --policy never

exit status: 0 never over-committed, 1 over-committed, or a pod that nobody decided about, 2 wrong usage""")
    p.add_argument("--runs", type=int, default=48, metavar="N", help="over all combinations together (48)")
    p.add_argument("--delay", action="append", type=float, metavar="SECONDS", help="of bindings; may be repeated (0.1 0.3 1 3)")
    p.add_argument("--kind", action="append", choices=list(KINDS), help="what is killed; may be repeated (scheduler both binder)")
    p.add_argument("--effect", action="append", choices=list(EFFECTS), help="the binding takes effect first and is answered late, or takes effect late (late three times of four)")
    p.add_argument("--policy", action="append", choices=list(POLICIES), help="preemptionPolicy of the higher pod (both)")
    p.add_argument("--binders", type=int, default=1, metavar="N", help="binders of each cluster (1)")
    p.add_argument("--clusters", type=int, default=4, metavar="N", help="clusters side by side (4)")
    p.add_argument("--seed", type=int, metavar="N", help="of the order of the runs; drawn and printed when not given")
    p.add_argument("--bin", default="build/bin", metavar="DIR", help="where the programs are (build/bin)")
    p.add_argument("--logs", metavar="DIR", help="history and logs, kept when something was found (a folder below the temporary one)")
    p.add_argument("--verbose", action="store_true", help="tell of runs that said nothing, too")
    o = p.parse_args()
    o.bin = os.path.abspath(o.bin)
    if not os.access(os.path.join(o.bin, "berth-simulator"), os.X_OK):
        p.error(f"no programs in {o.bin}: build them, or say --bin")
    if o.runs < 1 or o.clusters < 1 or o.binders < 1:
        p.error("--runs, --clusters and --binders: want at least 1")
    if o.seed is None:
        o.seed = random.SystemRandom().randrange(10**6)
    o.delay, o.kind = o.delay or [0.1, 0.3, 1.0, 3.0], o.kind or ["scheduler", "both", "binder"]
    o.effect, o.policy = o.effect or USUAL_EFFECTS, o.policy or list(POLICIES)
    o.logs = o.logs or tempfile.mkdtemp(prefix="berth-doublebook-")
    return o


def main():
    o = options()
    print(f"# seed {o.seed}, {o.runs} runs, logs in {o.logs}", flush=True)
    cases = [Case(*c) for c in itertools.product(o.delay, o.kind, o.effect, o.policy)]
    random.Random(o.seed).shuffle(cases)
    todo, table = queue.Queue(), Table()
    for case in itertools.islice(itertools.cycle(cases), o.runs):
        todo.put(case)
    threads = [threading.Thread(target=work, args=(o, i + 1, todo, table)) for i in range(min(o.clusters, o.runs))]
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    except KeyboardInterrupt:
        table.show()
        os._exit(130)  # the threads wait for this and that; what they started ends with us
    table.show()
    short = todo.qsize()
    if not table.bad and not short:
        shutil.rmtree(o.logs, ignore_errors=True)
    return 1 if table.bad or short else 0


if __name__ == "__main__":
    sys.exit(main())
