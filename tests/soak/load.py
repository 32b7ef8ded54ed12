#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gangs, plugins and WebAssembly guests for hours: is what each process holds steady?

Starts `berth up` with five profiles, creates pods of each round after round, waits until all are bound, deletes them,
and samples memory, file descriptors, threads and shared memory of each process meanwhile:

  gang        PodGroups of GenericWorkload
  in-process  NodeResourcesAllocatable, a native plugin in the scheduler's process
  process     LabelGang (Permit) and NodeMetadata (Score), each in a process of its own (mode: process)
  guest       a WebAssembly guest, compiled by `berth wasmc`
  interpreted a WebAssembly guest with a filter, interpreted

Every --kill-every rounds LabelGang's process is killed; NodeMetadata's lives as long as the run. What a process holds
is sampled by what it is, not by pid.

Steady: the median of the last third of the samples is at most that of the second third, plus MARGIN of it, plus a
slack (LIMITS). The first third is the time in which caches fill. At the end a table, and "N passed, N failed, N
skipped"; status 1 when something is not steady, a pod is not bound in time, or a process restarted by itself.
Guests are left out where they are not built (clang and wasm-ld are needed). A line a minute says how far it is; SIGINT
and SIGTERM end the run early, with the table of the samples until then.
"""

import argparse
import collections
import glob
import http.client
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
MARGIN = 0.05
# What is sampled of each process, and by how much more than MARGIN it may differ.
LIMITS = {"pss": 2 * MIB, "rss": 2 * MIB, "fds": 2, "threads": 1}
SHARED_LIMITS = {"segments": 0, "bytes": MIB}
ROLES = {"berth-watcher": "watcher", "berth-scheduler": "scheduler", "berth-binder": "binder", "berth-front": "front",
         "berth-simulator": "API server", "berth-plugin-host": "plugin host", "berth": "berth up"}
GATES = "GenericWorkload=true,GangScheduling=true"
GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
PODS, EVENTS = "/api/v1/namespaces/default/pods", "/apis/events.k8s.io/v1/namespaces/default/events"
NODES, GANG, PLAIN = 20, 8, 10
KILLED = "plugin host labelgang.so"


def is_steady(values, slack):
    """(steady?, median of the second third, median of the last third)"""
    third = len(values) // 3
    if not third:
        return False, 0, 0
    before, after = statistics.median(values[third:2 * third]), statistics.median(values[2 * third:])
    return after <= before * (1 + MARGIN) + slack, before, after


# ---- samples ---------------------------------------------------------------------------------------

def read(path):
    with open(path, "rb") as f:
        return f.read().decode(errors="replace")


def children(pid):
    found = [pid]
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            found += [p for child in read(task).split() for p in children(int(child))]
        except OSError:
            pass
    return found


def sample_process(pid):
    """(name, {what: value}), None: it ends at this moment"""
    try:
        argv = read(f"/proc/{pid}/cmdline").split("\0")
        rollup = read(f"/proc/{pid}/smaps_rollup")
        kib = {k: int(re.search(rf"^{k}: +(\d+) kB", rollup, re.M)[1]) for k in ("Pss", "Rss")}
        name = ROLES[os.path.basename(argv[0])]
        if name == "binder":
            name += " " + argv[argv.index("--instance") + 1] if "--instance" in argv else ""
        if name == "plugin host":
            name += " " + os.path.basename(argv[1])
        threads = int(re.search(r"^Threads:\s+(\d+)", read(f"/proc/{pid}/status"), re.M)[1])
        return name, {"pss": kib["Pss"] * 1024, "rss": kib["Rss"] * 1024, "fds": len(os.listdir(f"/proc/{pid}/fd")),
                      "threads": threads}
    except (OSError, KeyError, TypeError, ValueError):
        return None


def sample_shared(pids):
    """Segments that the processes map, and what they take."""
    names = set()
    for pid in pids:
        try:
            names |= set(re.findall(r"/dev/shm/berth-\S+", read(f"/proc/{pid}/maps")))
        except OSError:
            pass
    sizes = []
    for name in names:
        try:
            sizes.append(os.stat(name).st_blocks * 512)
        except OSError:
            pass
    return {"segments": len(sizes), "bytes": sum(sizes)}


class Sampler(threading.Thread):
    def __init__(self, root, every):
        super().__init__(daemon=True)
        self.root, self.every, self.ended = root, every, threading.Event()
        self.values = collections.defaultdict(lambda: collections.defaultdict(list))

    def run(self):
        while not self.ended.wait(self.every):
            pids = children(self.root)
            for found in filter(None, map(sample_process, pids)):
                for what, value in found[1].items():
                    self.values[found[0]][what].append(value)
            for what, value in sample_shared(pids).items():
                self.values["shared memory"][what].append(value)


# ---- the cluster -----------------------------------------------------------------------------------

class Client:
    def __init__(self, kubeconfig):
        self.address = re.search(r"server: *\"?https?://([^\s\"]+)", read(kubeconfig))[1]
        self.connection = http.client.HTTPConnection(self.address, timeout=60)

    def request(self, method, path, body=None, fine=(200, 201, 202)):
        self.connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        text = response.read()
        if response.status not in fine:
            raise RuntimeError(f"{method} {path}: {response.status} {text[:500]}")
        return json.loads(text) if text else None


def node(name):
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"rank": str(hash(name) % 10)}},
            "status": {"allocatable": capacity, "capacity": capacity}}


def pod(name, profile, labels=None, group=None):
    spec = {"schedulerName": profile, "containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def make_round(client, n, guests):
    """As many pods as it creates."""
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": f"g{n}"},
             "spec": {"schedulingPolicy": {"gang": {"minCount": GANG}}}}
    client.request("POST", GROUPS, group)
    pods = [pod(f"gang-{n}-{i}", "gang", group=f"g{n}") for i in range(GANG)]
    pods += [pod(f"apart-{n}-{i}", "process", {"team": f"t{n}", "size": str(GANG)}) for i in range(GANG)]
    for profile in ["in-process"] + list(guests):
        pods += [pod(f"{profile}-{n}-{i}", profile) for i in range(PLAIN)]
    for p in pods:
        client.request("POST", PODS, p)
    return len(pods)


def await_bound(client, n, seconds):
    """None, or what became of the pods that are not bound in time."""
    end = time.monotonic() + seconds
    while True:
        pods = client.request("GET", PODS)["items"]
        left = [p for p in pods if not p["spec"].get("nodeName")]
        if len(pods) == n and not left:
            return None
        if time.monotonic() > end:
            return [(p["metadata"]["name"], [c.get("message") for c in p.get("status", {}).get("conditions", [])])
                    for p in left][:5] or f"{len(pods)} pods of {n}"
        time.sleep(0.1)


def clear_round(client, n):
    client.request("DELETE", PODS, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    client.request("DELETE", f"{GROUPS}/g{n}", fine=(200, 202, 404))
    client.request("DELETE", EVENTS)
    while client.request("GET", PODS)["items"]:
        time.sleep(0.05)


# ---- the processes ---------------------------------------------------------------------------------

def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def guest_profile(name, plugin, url, config=""):
    return f"""- schedulerName: {name}
  plugins: {{multiPoint: {{enabled: [{{name: {plugin}}}]}}}}
  pluginConfig: [{{name: {plugin}, args: {{guestURL: "file://{url}", guestConfig: "{config}"}}}}]
"""


def find_guests(build):
    """{profile: (plugin, file, its configuration)}"""
    all_guests = {"guest": ("NodeNumber", f"{build}/plugins/wasm/nodenumber.wasm", ""),
                  "interpreted": ("Wish", f"{build}/tests/guests/wish.wasm", "filter=node")}
    return {profile: guest for profile, guest in all_guests.items() if os.path.exists(guest[1])}


def configure(build, work):
    os.mkdir(f"{work}/plugins.d")
    for name, mode in (("NodeResourcesAllocatable", "inProcess"), ("LabelGang", "process"), ("NodeMetadata", "process")):
        write(f"{work}/plugins.d/{name}.yaml", f"name: {name}\nfile: {build}/plugins/{name.lower()}.so\nmode: {mode}\n")
    write(f"{work}/config.yaml", """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: gang
- schedulerName: in-process
  plugins: {score: {enabled: [{name: NodeResourcesAllocatable}]}}
- schedulerName: process
  plugins: {permit: {enabled: [{name: LabelGang}]}, score: {enabled: [{name: NodeMetadata}]}}
  pluginConfig:
  - {name: LabelGang, args: {groupLabel: team, sizeLabel: size, timeoutSeconds: 600}}
  - name: NodeMetadata
    args: {metadataKey: rank, metadataSource: Label, metadataType: Number, scoringStrategy: Highest}
""" + "".join(guest_profile(profile, *guest) for profile, guest in find_guests(build).items()))


def start_berth(binary, work, record):
    build = os.path.dirname(os.path.realpath(binary))
    configure(build, work)
    env = dict(os.environ, BERTH_PLUGIN_CONFIG=f"{work}/plugins.d", BERTH_WASM_CACHE=f"{work}/compiled")
    if "guest" in find_guests(build):
        subprocess.run([f"{binary}/berth", "wasmc", "--cache", f"{work}/compiled", find_guests(build)["guest"][1]],
                       check=True, stdout=subprocess.DEVNULL)
    out = open(f"{work}/up.out", "w+", encoding="utf-8")
    up = subprocess.Popen([f"{binary}/berth", "up", "--no-example", "--binders", "2", "--front-port", "0",
                           "--record-decisions", record, "--runtime-dir", f"{work}/run", "--config", f"{work}/config.yaml", "--feature-gates", GATES,
                           "--runtime-config", "scheduling.k8s.io/v1alpha2=true"], stdout=out, stderr=out, env=env,
                          start_new_session=True)  # a terminal's SIGINT is for this process alone
    end = time.monotonic() + 120
    while "Berth is up" not in read(f"{work}/up.out"):
        if up.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"berth up does not start: {read(f'{work}/up.out')}")
        time.sleep(0.1)
    return up, re.search(r"KUBECONFIG=(\S+)", read(f"{work}/up.out"))[1]


def own_processes(root):
    """{name: pid} of those that have to stay."""
    names = {}
    for pid in children(root):
        found = sample_process(pid)
        if found and found[0] != KILLED:
            names[found[0]] = pid
    return names


def kill_plugin_host(root):
    killed = 0
    for pid in children(root):
        found = sample_process(pid)
        if found and found[0] == KILLED:
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


# ---- the verdict -----------------------------------------------------------------------------------

def show(what, value):
    return f"{value / MIB:.1f} MiB" if what in ("pss", "rss", "bytes") else f"{value:g}"


def judge(values):
    """Prints the table; how many lines are steady, and how many are not."""
    good = bad = 0
    print(f"{'PROCESS':<40} {'WHAT':<9} {'SAMPLES':>7} {'FIRST':>11} {'2ND THIRD':>11} {'3RD THIRD':>11} {'LARGEST':>11}")
    for name in sorted(values):
        for what, slack in (SHARED_LIMITS if name == "shared memory" else LIMITS).items():
            v = values[name][what]
            steady, before, after = is_steady(v, slack)
            good, bad = good + steady, bad + (not steady)
            print(f"{name:<40} {what:<9} {len(v):>7} {show(what, v[0] if v else 0):>11} {show(what, before):>11} "
                  f"{show(what, after):>11} {show(what, max(v, default=0)):>11}{'' if steady else '  NOT STEADY'}")
    return good, bad


def report_progress(values, seconds, rounds):
    pss = ", ".join(f"{name} {show('pss', values[name]['pss'][-1])}" for name in ("scheduler", "watcher")
                    if values[name]["pss"])
    print(f"# {seconds:.0f} s: {rounds} rounds; PSS: {pss}", flush=True)


def run_rounds(client, up, guests, options, values, interrupted):
    """(rounds, pods, kills, what went wrong or None)"""
    began, rounds, pods, kills = time.monotonic(), 0, 0, 0
    reported = began
    while time.monotonic() < began + options.seconds and not interrupted.is_set():
        rounds += 1
        if time.monotonic() > reported + 60:
            reported = time.monotonic()
            report_progress(values, reported - began, rounds)
        try:
            n = make_round(client, rounds, guests)
            if rounds % options.kill_every == 0:  # while pods of the round wait, or are decided
                kills += kill_plugin_host(up.pid)
            wrong = await_bound(client, n, options.patience)
            if wrong:
                return rounds, pods, kills, wrong
            pods += n
            clear_round(client, rounds)
        except (OSError, http.client.HTTPException, RuntimeError) as e:
            return rounds, pods, kills, repr(e)
        time.sleep(options.pause)
    return rounds, pods, kills, None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/bin")
    p.add_argument("--seconds", type=int, default=3600)
    p.add_argument("--sample-every", type=float, default=2, help="seconds between two samples")
    p.add_argument("--kill-every", type=int, default=20, help="rounds between two kills of a plugin's process")
    p.add_argument("--pause", type=float, default=0.2, help="seconds between two rounds")
    p.add_argument("--record-decisions", default="off", help="as of berth up: auto, full, summary or off")
    p.add_argument("--patience", type=float, default=120, help="seconds in which the pods of a round are bound")
    options = p.parse_args()
    interrupted = threading.Event()
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, lambda *_: interrupted.set())
    work = tempfile.mkdtemp(prefix="berth-soak-")
    up, kubeconfig = start_berth(options.bin, work, options.record_decisions)
    bad = 0
    try:
        client = Client(kubeconfig)
        for i in range(NODES):
            client.request("POST", "/api/v1/nodes", node(f"n{i}"))
        sampler = Sampler(up.pid, options.sample_every)
        sampler.start()
        before, began = own_processes(up.pid), time.monotonic()
        guests = find_guests(os.path.dirname(os.path.realpath(options.bin)))
        rounds, pods, kills, wrong = run_rounds(client, up, guests, options, sampler.values, interrupted)
        seconds = time.monotonic() - began
        after = own_processes(up.pid)
        sampler.ended.set()
        sampler.join()
        good, bad = judge(sampler.values)
        print(f"{rounds} rounds, {pods} pods bound, {kills} plugin processes killed, {seconds:.0f} seconds")
        for text, wrong in (("every pod is bound in time", wrong),
                            ("no process restarted", before != after and f"{before}, then {after}")):
            good, bad = good + (not wrong), bad + bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} - {text}" + (f": {wrong}" if wrong else ""))
        print(f"{good} passed, {bad} failed, {2 - len(guests)} skipped")
    finally:
        up.terminate()
        up.wait()
        if bad:
            print(f"# logs: {work}/run")
        else:
            shutil.rmtree(work)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
