#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real processes, real faults, a load of every kind of pod, and a checker over everything the API server committed.

See --help and tests/README.md. Each scenario prints its seed first: the same seed draws the same plan of faults and
load (when things happen depends on the machine, so a failure may need a few rounds to come back).
"""
import argparse
import ctypes
import glob
import heapq
import http.client
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import check  # noqa: E402
import load  # noqa: E402
from proxy import Proxy  # noqa: E402

SCALE = float(os.environ.get("BH_TEST_TIMEOUT_SCALE", "1"))
HELD = re.compile(r"Fault: a binding waits for its (?:effect|answer).* ms=(\d+)")
LEASE, RENEW, RETRY = 3 * SCALE, 2 * SCALE, 0.4 * SCALE
SETTLE_S, QUIET_S, STEP_S = 60 * SCALE, 1.5, 0.02
FDS_MORE, RSS_TIMES, RSS_MORE = 24, 1.5, 32 << 20
BOOKMARKS = 'berth_watcher_bookmarks_total{kind="'
LIBC, PR_SET_PDEATHSIG, OWN_PID = ctypes.CDLL(None), 1, os.getpid()
TOKENS = "t-admin,admin,1,system:masters\nt-a,host-a,2,system:masters\nt-b,host-b,3,system:masters\n"


class Api:
    """The load's own view of the server: tries a few times, never gives up the run."""

    def __init__(self, port):
        self.port = port

    def once(self, method, path, body):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            c.request(method, path, json.dumps(body) if body else None, {
                "Authorization": "Bearer t-admin", "Content-Type": kind, "User-Agent": "fault-load"})
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()

    def reply(self, method, path, body=None, tries=4):
        for n in range(tries):
            try:
                code, data = self.once(method, path, body)
                if code != 429 and code < 500:
                    return code, data
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.02 * (n + 1))
        return 0, b""

    def __call__(self, method, path, body=None):
        return self.reply(method, path, body)[0]

    def items(self, path):
        code, data = self.reply("GET", path, tries=20)
        try:
            return json.loads(data)["items"] if code == 200 else []
        except ValueError:
            return []


def scrape(port):
    """{series: value}, or None when it does not answer."""
    try:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
        c.request("GET", "/metrics")
        text = c.getresponse().read().decode()
        c.close()
    except (OSError, http.client.HTTPException):
        return None
    return {k: float(v) for k, _, v in (line.rpartition(" ") for line in text.splitlines() if line and line[0] != "#")}


class Log:
    """Lines of a growing file, each read once."""

    def __init__(self, path):
        self.path, self.at = path, 0

    def lines(self):
        with open(self.path, "rb") as f:
            f.seek(self.at)
            data = f.read()
        whole = data.rfind(b"\n") + 1
        self.at += whole
        return data[:whole].decode(errors="replace").splitlines()


def behind(first, now):
    """The kind of object whose watch has not been heard of since the first sample of bookmarks; None: all were.

    Two bookmarks: the first may have been on its way. What the server committed before the second was sent has come.
    """
    for kind, n in sorted(now.items()):
        if n < first.get(kind, 0) + 2:
            return kind
    return None


def before_main():
    """A SIGHUP may come before the program has got as far as its main(); a program ends with the thread that started it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != OWN_PID:  # it died before
        os._exit(1)


class Process:
    """A program that is started again when it dies."""

    def __init__(self, name, argv, log):
        self.name, self.argv, self.log, self.popen, self.wanted, self.starts = name, argv, log, None, False, 0
        self.stopped, self.started = False, 0.0

    def start(self):
        self.wanted, self.stopped, self.started = True, False, time.monotonic()
        self.starts += 1
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen(self.argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, preexec_fn=before_main)

    @property
    def alive(self):
        return self.popen is not None and self.popen.poll() is None

    def signal(self, sig):
        if self.alive:
            self.popen.send_signal(sig)

    def stop(self):
        self.signal(signal.SIGSTOP)
        self.stopped = True

    def cont(self):
        self.signal(signal.SIGCONT)
        self.stopped = False

    def kill(self):
        if self.alive:
            self.popen.kill()
            self.popen.wait()

    def end(self, seconds):
        """TERM; the exit status, None when it had to be killed."""
        self.wanted = False
        self.cont()
        self.signal(signal.SIGTERM)
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def port(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            found = re.findall(r"metrics_port=(\d+)", f.read())
        return int(found[-1]) if found else 0

    def fds_and_rss(self):
        with open(f"/proc/{self.popen.pid}/statm", encoding="ascii") as f:
            rss = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        return len(os.listdir(f"/proc/{self.popen.pid}/fd")), rss


class Host:
    """Watcher, scheduler and binders of one machine, behind a network of their own."""

    def __init__(self, run, name, binders):
        self.run, self.name, self.dir = run, name, os.path.join(run.dir, name)
        os.mkdir(self.dir)
        self.proxy = Proxy(run.server_port, f"{run.seed}-{name}")
        self.kubeconfig = os.path.join(run.dir, f"{name}.yaml")
        with open(run.kubeconfig, encoding="utf-8") as f:
            text = f.read().replace("t-admin", f"t-{name}").replace(f":{run.server_port}", f":{self.proxy.port}")
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            f.write(text)
        self.processes = {}
        self.add("watcher", "--kubeconfig", self.kubeconfig, "--leader-elect-lease-duration", f"{LEASE}s",
                 "--leader-elect-renew-deadline", f"{RENEW}s", "--leader-elect-retry-period", f"{RETRY}s", "--metrics-address", "127.0.0.1:0", *run.watcher_flags)
        self.add("scheduler", "--metrics-address", "127.0.0.1:0", *run.scheduler_flags)
        for i in range(binders):
            self.add_binder(i + 1)

    def add(self, what, *flags, name=None):
        name = name or what
        p = Process(f"{self.name}.{name}", [os.path.join(self.run.bin, f"berth-{what}"), "--runtime-dir", self.dir, *flags],
                    os.path.join(self.run.dir, f"{self.name}.{name}.log"))
        self.processes[name] = p
        return p

    def add_binder(self, i):
        return self.add("binder", "--kubeconfig", self.kubeconfig, "--instance", str(i), "--metrics-address", "127.0.0.1:0", name=f"binder-{i}")

    def start(self):
        for p in self.processes.values():
            p.start()

    def metrics(self, name):
        return scrape(self.processes[name].port())

    def bookmarks(self):
        """{kind: bookmarks received} of its watches; empty when the watcher does not answer."""
        return {k[len(BOOKMARKS):-2]: v for k, v in (self.metrics("watcher") or {}).items() if k.startswith(BOOKMARKS)}

    def segments(self):
        """Names under /dev/shm that its processes have mapped."""
        found = set()
        for p in self.processes.values():
            if p.alive:
                with open(f"/proc/{p.popen.pid}/maps", encoding="utf-8", errors="replace") as f:
                    found.update(re.findall(r"/dev/shm/(berth-[0-9a-f]+)", f.read()))
        return found


class Run:
    """One scenario: a server, hosts, a load, faults by the clock, and the checker at their heels."""

    def __init__(self, options, name, seed):
        self.o, self.name, self.seed, self.bin = options, name, seed, options.bin
        self.scenario = SCENARIOS[name]
        self.dir = os.path.join(options.logs, f"{name}-{seed}")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        self.fault_rand, self.load_rand = (random.Random(f"{seed}-{name}-{what}") for what in ("faults", "load"))
        self.scheduler_flags = ("--verify",) if options.verify else ()
        self.server_flags = self.watcher_flags = ()
        if self.gangs:
            self.with_gangs()
        self.todo, self.order, self.begin = [], itertools.count(), time.monotonic()
        self.said, self.count, self.first = [], {}, {}
        self.history = os.path.join(self.dir, "history.jsonl")
        self.checker, self.read_to = check.Checker(self.scenario.get("stale", 6) * SCALE, 10**6), 0
        self.last_write = 0
        self.shm, self.orphans = set(), set()
        self.fault_parts, self.server_log, self.held_until = {}, None, 0.0

    @property
    def gangs(self):
        return "gangs" in self.scenario.get("load", {})

    def with_gangs(self):
        """Groups try again at the end of their backoff only: it has to be short, or nothing is ever decided."""
        gates, config = "--feature-gates=GenericWorkload=true,GangScheduling=true", os.path.join(self.dir, "config.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npodInitialBackoffSeconds: 1\npodMaxBackoffSeconds: 1\n")
        self.server_flags = (gates, "--runtime-config=scheduling.k8s.io/v1alpha2=true")
        self.watcher_flags = (gates,)
        self.scheduler_flags += (gates, "--config", config)

    # ---- results

    def result(self, what, bad):
        """bad: what was found, [] or None when all is well."""
        text = f"{self.name} {self.seed}: {what}"
        print(f"not ok - {text}" if bad else f"ok - {text}", flush=True)
        for line in (bad or [])[:12]:
            print(f"#   {line}", flush=True)
        TOTAL["failed" if bad else "passed"] += 1
        if bad:
            self.said.append(what)

    def note(self, text):
        with open(os.path.join(self.dir, "faults.log"), "a", encoding="utf-8") as f:
            f.write(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.3f} {text}\n")
        self.count[text.split()[0]] = self.count.get(text.split()[0], 0) + 1
        if self.o.verbose:
            print(f"#   {time.monotonic() - self.begin:7.2f} {text}", flush=True)

    # ---- the server

    def start_server(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.server_port = s.getsockname()[1]
        self.kubeconfig, self.faults_file = os.path.join(self.dir, "admin.yaml"), os.path.join(self.dir, "faults")
        for path, text in ((os.path.join(self.dir, "tokens"), TOKENS), (self.faults_file, "\n")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        self.server = Process("server", [
            os.path.join(self.bin, "berth-simulator"), "--port", str(self.server_port), "--kubeconfig-out", self.kubeconfig,
            "--token-file", os.path.join(self.dir, "tokens"), "--history-file", self.history, "--faults", f"@{self.faults_file}",
            "--audit-log-path", os.path.join(self.dir, "audit.log"), "--kubelet-delay", "100ms", "--bookmark-interval", "0.5s",
            "--history-events", str(self.scenario.get("history", 20000)), *self.server_flags], os.path.join(self.dir, "server.log"))
        self.server.start()
        self.api, self.server_log = Api(self.server_port), Log(self.server.log)
        self.wait(20, lambda: self.api("GET", "/readyz") == 200)

    def set_faults(self, spec, part="base"):
        """Faults of one part; those of the others stay."""
        self.fault_parts[part] = spec
        with open(self.faults_file, "w", encoding="utf-8") as f:
            f.write(",".join(filter(None, self.fault_parts.values())) + "\n")
        self.server.signal(signal.SIGHUP)

    def binding_open(self):
        """The server holds a binding just now, as far as its log tells."""
        for text in self.server_log.lines():
            if m := HELD.search(text):
                self.held_until = max(self.held_until, time.monotonic() + int(m.group(1)) / 1000)
        return time.monotonic() < self.held_until

    # ---- time

    def at(self, seconds, what):
        heapq.heappush(self.todo, (time.monotonic() + seconds, next(self.order), what))

    def due(self):
        while self.todo and self.todo[0][0] <= time.monotonic():
            heapq.heappop(self.todo)[2]()

    def everything(self):
        return [p for h in self.hosts for p in h.processes.values()] + [self.server]

    def supervise(self):
        for p in self.everything():
            if p.wanted and not p.alive and not getattr(p, "planned", False):
                if p.popen.returncode != -signal.SIGKILL and p.popen.returncode is not None and p.popen.returncode != 0:
                    self.result(f"{p.name} ends only when it is told to", [f"status {p.popen.returncode}", *last_lines(p.log)])
                p.planned = True
                r = self.fault_rand.random()
                self.at(2.5 if r < 0.1 else r * 0.6, lambda p=p: self.again(p))

    def again(self, p):
        p.planned = False
        if p.wanted and not p.alive:
            p.start()

    def wait(self, seconds, good, every=0.1):
        end = time.monotonic() + seconds * SCALE
        while time.monotonic() < end:
            if good():
                return True
            time.sleep(every)
        return False

    def follow(self):
        """Feeds the checker what the history has got since."""
        with open(self.history, "rb") as f:
            f.seek(self.read_to)
            data = f.read()
        whole = data.rfind(b"\n") + 1
        self.read_to += whole
        for text in data[:whole].splitlines():
            line = json.loads(text)
            self.checker.feed(line)
            if line["object"]["kind"] not in ("Lease", "Event") and line["agent"].startswith("berth-"):
                self.last_write = line["boot_ns"]

    # ---- one round

    def active(self, seconds):
        end, next_step = time.monotonic() + seconds, 0.0
        self.set_faults(self.scenario.get("base", ""))
        if "binds" in self.scenario:
            self.slow_binds()
        for fault in self.scenario["faults"]:
            self.plan(fault)
        while time.monotonic() < end:
            self.due()
            self.supervise()
            if time.monotonic() >= next_step:
                self.load.step()
                next_step = time.monotonic() + self.load_rand.expovariate(1 / STEP_S)
            time.sleep(0.005)
        self.follow()

    def slow_binds(self):
        """A phase of bindings that take long: before their effect, or before their answer."""
        r, ms = self.fault_rand, 0
        if r.random() < self.scenario["binds"]:
            ms = r.randint(100, 3000)
            self.set_faults(f"{r.choice(('bind-late-ms', 'bind-late-ms', 'bind-answer-ms'))}={ms}", "binds")
        else:
            self.set_faults("", "binds")
        self.note(f"slow-binds {self.fault_parts['binds'] or 'none'}")
        self.at(1 + r.random() * 3, lambda: self.calm or self.slow_binds())

    def plan(self, fault):
        def now():
            if not self.calm:
                fault(self)
                self.at(self.fault_rand.expovariate(1 / self.scenario.get("every", 0.8)), now)
        self.at(self.fault_rand.random() * self.scenario.get("every", 0.8), now)

    def heal(self):
        self.calm = True
        self.todo.clear()
        for p in self.everything():
            p.planned = False
            if p.stopped:
                p.cont()
            if p.wanted and not p.alive:
                p.start()
        for h in self.hosts:
            h.proxy.resume()
        self.wait(20, lambda: self.api("GET", "/readyz") == 200)
        self.fault_parts.clear()
        self.set_faults("")
        self.load.wait()
        time.sleep(0.3)
        self.load.sweep()

    def leading(self):
        """The host whose watcher says so; None while nobody does."""
        for h in self.hosts:
            m = h.metrics("watcher")
            if m and m.get('leader_election_master_status{name="kube-scheduler"}') == 1:
                return h
        return None

    def unsettled(self):
        """Why not all is decided yet."""
        self.follow()
        for h in self.hosts:  # a scheduler cannot decide on nodes and pods that its watcher has not been told of
            first, now = self.heard[h.name], h.bookmarks()
            kind = behind(first, now) if now and first else "every object"
            if not first or any(n < first.get(k, 0) for k, n in now.items()):
                self.heard[h.name] = now  # a watcher that has just started
            if kind:
                return f"{h.name}: the watch of {kind} is not heard of"
        h = self.leading()
        m = h.metrics("scheduler") if h else None
        if m is None:
            return "nobody leads" if h is None else "the scheduler does not answer"
        queues = () if self.gangs else ('scheduler_pending_pods{queue="active"}', 'scheduler_pending_pods{queue="backoff"}')  # a gang without room tries for ever
        for series in (*queues, 'scheduler_cache_size{type="assumed_pods"}',
                       *(f'berth_scheduler_ledger{{what="{w}"}}' for w in ("before_bind", "binds", "out", "queued"))):
            if m.get(series, 0):
                return f"{h.name}: {series} {m[series]:.0f}"
        waiting = sum(1 for p in self.checker.cluster.pods.values() if not p["spec"].get("nodeName"))
        known = sum(v for k, v in m.items() if k.startswith("scheduler_pending_pods"))
        if waiting != known:
            return f"{waiting} pods have no node, the scheduler's queue knows {known:.0f}"
        seen = h.metrics("watcher") or {}
        for kind in ("ResourceClaim", "PersistentVolumeClaim", "PersistentVolume"):  # their watches come back one by one
            if (n := int(seen.get(f'berth_watcher_objects{{kind="{kind}"}}', 0))) != len(self.checker.of(kind)):
                return f"{h.name}: the watcher knows {n} objects of kind {kind}, the API server {len(self.checker.of(kind))}"
        if time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.last_write < (4e9 if self.gangs else 1.2e9):
            return "writes go on"
        return "; ".join(self.compare_caches())

    def settle(self, round_name):
        why, end = "", time.monotonic() + SETTLE_S
        self.heard = {h.name: h.bookmarks() for h in self.hosts}
        while time.monotonic() < end:
            self.supervise()
            self.due()
            why = self.unsettled()
            if not why:
                break
            time.sleep(0.25)
        took = SETTLE_S - (end - time.monotonic())
        self.result(f"{round_name}: everything is decided, caches equal the cluster" + (f" ({took:.1f} s after the last fault)" if not why else ""),
                    [why, *self.stuck()] if why else None)
        self.checker.quiet_from = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        time.sleep(QUIET_S)
        self.follow()
        self.checker.quiet_from = None

    def stuck(self):
        pods = [p for p in self.checker.cluster.pods.values() if not p["spec"].get("nodeName")]
        return [f"{p['metadata']['name']} ({(p['metadata'].get('labels') or {}).get('kind')}): " + "; ".join(
            f"{c['type']}={c['status']} {c.get('message', '')[:160]}" for c in p.get("status", {}).get("conditions") or []) for p in pods[:8]]

    def judge(self, round_name):
        self.follow()
        new = self.checker.finish()
        self.checker.found = []
        self.checker.events = []
        self.result(f"{round_name}: the history holds ({summary(self.checker.counts)})", [f"{rule} at {rv}: {text}" for rv, rule, text in new])
        self.result(f"{round_name}: no descriptors, no memory leaked", self.weigh())

    def compare_caches(self):
        nodes = len(self.checker.cluster.nodes)
        pods = sum(len(v) for v in self.checker.cluster.placed.values())
        bad = []
        for h in self.hosts:
            m = h.metrics("scheduler")
            if m is None:
                bad.append(f"{h.name}: the scheduler does not answer")
                continue
            got = [int(m.get(f'scheduler_cache_size{{type="{t}"}}', -1)) for t in ("nodes", "pods")]
            if got != [nodes, pods]:
                bad.append(f"{h.name}: nodes and pods {got}, the API server has {[nodes, pods]}")
            for name in h.processes:
                held = (h.metrics(name) or {}).get('berth_binder_held{what="items"}', 0)
                if held:
                    bad.append(f"{h.name}.{name} holds {held:.0f} items")
        return bad

    def weigh(self):
        bad = []
        for p in self.everything():
            if not p.alive:
                continue
            fds, rss = p.fds_and_rss()
            old = self.first.setdefault((p.name, p.popen.pid), (fds, rss))
            if fds > old[0] + FDS_MORE * (4 if p is self.server else 1):  # the server's are its clients' connections
                bad.append(f"{p.name}: {fds} descriptors, {old[0]} in an earlier quiet phase")
            if p is not self.server and rss > old[1] * RSS_TIMES + RSS_MORE:
                bad.append(f"{p.name}: {rss >> 20} MiB, {old[1] >> 20} MiB in an earlier quiet phase")
        return bad

    # ---- the whole

    def go(self, seconds, rounds):
        print(f"# {self.name}: seed {self.seed}; again: {self.again_command()}", flush=True)
        self.start_server()
        self.calm = True
        self.hosts = []
        self.load = load.Load(self.api, self.load_rand, **self.scenario.get("load", {}))
        try:
            self.load.build()
            for n in ("a", "b")[:self.scenario.get("hosts", 1)]:
                self.hosts.append(Host(self, n, self.scenario.get("binders", 2)))
            for h in self.hosts:
                h.start()
            self.wait(20, self.leading)
            for i in range(rounds):
                self.calm = False
                for h in self.hosts:
                    self.shm |= h.segments()
                self.active(seconds)
                self.heal()
                self.settle(f"round {i + 1}")
                self.judge(f"round {i + 1}")
            c = self.checker.counts
            wanted = self.count.get("kill-while-binding") if self.scenario["faults"] == [kill_while_binding] else self.count
            self.result(f"faults and load happened ({summary(self.count)})",
                        None if c["binds"] > 20 and wanted else [f"{c}", f"{self.count}"])
        finally:
            self.finish()

    def again_command(self):
        more = f" --round-seconds {self.o.round_seconds} --rounds {self.o.rounds}"
        return f"tests/faults/run.py --bin {os.path.relpath(self.bin)} --scenario {self.name} --seed {self.seed}{more}"

    def finish(self):
        self.load.close()
        for h in self.hosts:
            self.shm |= h.segments()
        bad = []
        for h in self.hosts:
            order = sorted(h.processes.values(), key=lambda p: ("binder" not in p.name, "scheduler" not in p.name))
            for p in order:
                if p.alive and (status := p.end(15 * SCALE)) != 0:
                    bad.append(f"{p.name} ended with {status}")
            h.proxy.close()
        self.result("all end when they are told to", bad)
        left = [f for s in self.shm for f in glob.glob(f"/dev/shm/{s}*")]
        # the services' directories stay, with the record of the lease, the mark of plugins, and, where something may still
        # be in flight, the record of that
        stays = ("/watcher", "/scheduler", "/watcher/lease", "/scheduler/plugin.mark", "/scheduler/scheduler.inflight")
        left += [f for h in self.hosts for f in glob.glob(f"{h.dir}/*") + glob.glob(f"{h.dir}/*/*")
                 if not f.endswith(stays) and f not in self.orphans]
        self.result("nothing is left in shared memory, no socket", left)
        status = self.server.end(15 * SCALE)
        self.result("the server ends", None if status == 0 else [f"status {status}", *last_lines(self.server.log)])
        if self.said:
            print(f"# {self.name}: FAILED with seed {self.seed}\n#   again: {self.again_command()}\n#   logs:  {self.dir}", flush=True)
        elif not self.o.keep:
            shutil.rmtree(self.dir, ignore_errors=True)


def summary(counts):
    return ", ".join(f"{v} {k}" for k, v in counts.items() if v)


def last_lines(path, n=4):
    with open(path, encoding="utf-8", errors="replace") as f:
        return [line.rstrip()[:300] for line in f.readlines()[-n:]]


# ---- faults --------------------------------------------------------------------------------------


def pick(run, host=None):
    h = host or run.fault_rand.choice(run.hosts)
    return h, run.fault_rand.choice(sorted(h.processes.values(), key=lambda p: p.name))


def kill_some(run):
    h, p = pick(run)
    several = run.fault_rand.random()
    victims = list(h.processes.values()) if several < 0.08 else [p] if several < 0.8 else [p, pick(run, h)[1]]
    for v in victims:
        if v.alive:
            run.note(f"kill {v.name}")
            v.kill()


def kill_while_binding(run):
    """Scheduler, binders, both at once, the watcher, everything: while a binding is held if there is one."""
    h, r = run.fault_rand.choice(run.hosts), run.fault_rand
    whom = r.choice((("scheduler",), ("scheduler",), ("scheduler", "binder"), ("scheduler", "binder"), ("binder",), ("watcher",),
                     ("watcher", "scheduler"), ("watcher", "scheduler", "binder")))
    what = "kill-while-binding" if run.binding_open() else "kill"
    for name, p in h.processes.items():
        if name.split("-")[0] in whom and p.alive:
            p.kill()
    run.note(f"{what} {h.name}: {', '.join(whom)}")
    run.load.urgent(r.randint(2, 6))  # who is started again decides about them first


def stop_some(run):
    h, p = pick(run)
    r = run.fault_rand.random()
    seconds = LEASE * (1.1 + r) if r < 0.25 else 0.05 + r
    victims = list(h.processes.values()) if run.fault_rand.random() < 0.1 else [p]
    for v in victims:
        if v.alive and not v.stopped:
            run.note(f"stop {v.name} {seconds:.2f}")
            v.stop()
            run.at(seconds, v.cont)


def api_errors(run):
    r = run.fault_rand
    kinds = {"429-every": (5, 60), "500-every": (5, 60), "503-every": (5, 60), "410-every": (2, 4), "drop-every": (7, 60), "lose-every": (3, 30),
             "truncate-every": (5, 60), "drop-watch-every": (10, 200), "delay-ms": (1, 150)}
    chosen = {k: r.randint(*kinds[k]) for k in r.sample(sorted(kinds), r.randint(0, 4))}
    if r.random() < 0.04:
        chosen = {"500-every": 1}  # nothing works at all
    spec = ",".join(f"{k}={v}" for k, v in sorted(chosen.items()))
    run.note(f"errors {spec or 'none'}")
    run.set_faults(spec, "errors")


def network(run):
    h, r = run.fault_rand.choice(run.hosts), run.fault_rand
    what = r.choice(("cut", "cut-in", "refuse", "stall", "slow"))
    seconds = r.random() * 1.5
    run.note(f"{what} {h.name} {seconds:.2f}")
    if what == "cut":
        h.proxy.cut()
        return
    if what == "cut-in":
        h.proxy.cut_in = r.randint(1, 20000)
    elif what == "refuse":
        h.proxy.refusing = True
        h.proxy.cut()
    elif what == "stall":
        h.proxy.stall()
    else:
        h.proxy.delay_s = r.random() * 0.1
    run.at(seconds, h.proxy.resume)


def partition_leader(run):
    h = run.leading()
    if h is None:
        return
    r = run.fault_rand
    what, seconds = r.choice(("partition", "stall", "stop-host", "kill-host", "stop-watcher", "stop-scheduler", "stop-binder-1", "term-watcher")), LEASE * (0.5 + r.random())
    run.note(f"{what} {h.name} {seconds:.2f}")
    processes = list(h.processes.values()) if what.endswith("host") else [h.processes[n] for n in h.processes if what.endswith(n)]
    if what == "partition":
        h.proxy.refusing = True
        h.proxy.cut()
        run.at(seconds, h.proxy.resume)
    elif what == "stall":
        h.proxy.stall()
        run.at(seconds, h.proxy.resume)
    for p in processes:
        if what.startswith("kill"):
            p.kill()
        elif what.startswith("term"):
            p.signal(signal.SIGTERM)
        elif p.alive and not p.stopped:
            p.stop()
            run.at(seconds, p.cont)


def deaf_successor(run):
    """The stand-by host is cut off, the leader goes on for a while and dies; then the other one is back, and behind."""
    h = run.leading()
    if h is None:
        return
    other = next(o for o in run.hosts if o is not h)
    seconds = LEASE * 0.2 + run.fault_rand.random() * LEASE
    run.note(f"deaf-successor {other.name} {seconds:.2f}")
    other.proxy.refusing = True
    other.proxy.cut()

    def lose_the_leader():
        for p in h.processes.values():
            if p.alive:
                p.stop()
                run.at(LEASE * 1.8, p.cont)
    run.at(seconds, lose_the_leader)
    run.at(seconds + LEASE * 1.2, other.proxy.resume)


def restart_server(run):
    if run.server.alive:
        run.note("restart server")
        run.server.kill()


def change_binders(run):
    h, r = run.hosts[0], run.fault_rand
    binders = sorted(n for n in h.processes if n.startswith("binder"))
    if len(binders) > 1 and r.random() < 0.5 or len(binders) > 5:
        name = r.choice(binders)
        p = h.processes.pop(name)
        p.wanted = False
        run.note(f"remove {p.name}")
        if not p.alive or r.random() < 0.3:
            p.kill()
            run.orphans.add(os.path.join(h.dir, f"{name}.http"))  # until a successor of that name comes
            return
        young = time.monotonic() - p.started < 1
        status = p.end(10 * SCALE)
        if status == -signal.SIGTERM and young:  # it had not come to its handler yet
            run.orphans.add(os.path.join(h.dir, f"{name}.http"))
        elif status != 0:
            run.result(f"{p.name} ends when it is told to", [f"status {status}", *last_lines(p.log)])
    else:
        i = next(i for i in itertools.count(1) if f"binder-{i}" not in h.processes)
        run.note(f"add {h.name}.binder-{i}")
        h.add_binder(i).start()


SCENARIOS = {
    "kill": {"about": "kill -9 of watcher, scheduler and binders", "faults": [kill_some], "stale": 6, "base": "delay-ms=15"},
    "binding": {"about": "kill -9 of scheduler, binders, both, watcher while bindings take 0.1 to 3 s", "faults": [kill_while_binding], "stale": 15, "every": 1.5,
                "binds": 0.85, "load": {"nodes": 10, "slots": 3, "pods_max": 60}},  # no room to spare: what is booked twice is noticed
    "stop": {"about": "SIGSTOP and SIGCONT, also for longer than the lease", "faults": [stop_some], "stale": 12, "base": "delay-ms=15"},
    "api": {"about": "429, 5xx, lost and cut answers, expired watches, a bad network", "faults": [api_errors, network], "every": 1.2, "stale": 15},
    "restart": {"about": "the API server killed and started again with its objects, without its past", "faults": [restart_server],
                "history": 40, "every": 2.5, "stale": 15, "base": "delay-ms=15"},
    "leader": {"about": "two hosts; the leader stopped, killed, cut off", "faults": [partition_leader], "hosts": 2, "binders": 1, "every": 3.5, "stale": 20, "base": "delay-ms=15",
               "binds": 0.4},
    "successor": {"about": "two hosts; the stand-by is cut off before the leader goes, and behind when it takes over",
                  "faults": [deaf_successor], "hosts": 2, "binders": 1, "every": 10, "stale": 2, "base": "delay-ms=15"},
    "binders": {"about": "binders come and go", "faults": [change_binders], "binders": 3, "every": 0.5, "stale": 6, "base": "delay-ms=15"},
    "gangs": {"about": "two hosts, gangs half assumed and half bound; processes killed, the leader stopped, killed, cut off", "hosts": 2, "binders": 1, "every": 2.5,
              "stale": 20, "base": "delay-ms=15", "binds": 0.4, "faults": [kill_some, partition_leader], "load": {"pods_max": 110, "gangs": 0.35}},
    "mix": {"about": "all of it on two hosts", "hosts": 2, "binders": 2, "every": 4, "stale": 20, "history": 200, "binds": 0.4,
            "faults": [kill_some, stop_some, api_errors, network, partition_leader, deaf_successor, restart_server]},
}
TOTAL = {"passed": 0, "failed": 0}


def options():
    names = "\n".join(f"  {k:10} {v['about']}" for k, v in SCENARIOS.items())
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog=f"""scenarios:
{names}

examples:
  tests/faults/run.py                                 each scenario, six minutes in all
  tests/faults/run.py --scenario leader --rounds 10   one of them for longer
  tests/faults/run.py --seed 4711 --scenario api      what failed once, again

exit status: 0 all passed, 1 something failed, 2 wrong usage""")
    p.add_argument("--bin", default="build/bin", metavar="DIR", help="where the programs are (build/bin)")
    p.add_argument("--seed", type=int, metavar="N", help="of every choice; drawn and printed when not given")
    p.add_argument("--seconds", type=float, default=360, metavar="N", help="for everything together, about (360)")
    p.add_argument("--rounds", type=int, default=2, metavar="N", help="of each scenario: faults, then peace and a look (2)")
    p.add_argument("--round-seconds", type=float, metavar="N", help="of faults in a round (from --seconds)")
    p.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), metavar="NAME", help="only this one; may be repeated")
    p.add_argument("--logs", default=os.path.join(tempfile.gettempdir(), f"berth-faults-{os.getuid()}"), metavar="DIR", help="history and logs of what fails")
    p.add_argument("--keep", action="store_true", help="keep the logs of what passes, too")
    p.add_argument("--verify", action="store_true", help="schedulers take each decision on both paths")
    p.add_argument("--verbose", action="store_true", help="tell of each fault")
    o = p.parse_args()
    o.bin, o.scenario = os.path.abspath(o.bin), o.scenario or list(SCENARIOS)
    if not os.access(os.path.join(o.bin, "berth-simulator"), os.X_OK):
        p.error(f"no programs in {o.bin}: build them, or say --bin")
    if o.seed is None:
        o.seed = random.SystemRandom().randrange(10**6)
    if o.round_seconds is None:
        # starting, settling and ending take about 9 s a round
        o.round_seconds = round(max(5.0, o.seconds / len(o.scenario) / o.rounds - 9 * SCALE), 1)
    return o


def main():
    o = options()
    print(f"# seed {o.seed}: {', '.join(o.scenario)}; {o.rounds} rounds of {o.round_seconds} s each", flush=True)
    for name in o.scenario:
        run = Run(o, name, o.seed)
        run.go(o.round_seconds, o.rounds)
    print(f"{TOTAL['passed']} passed, {TOTAL['failed']} failed, 0 skipped")
    return 1 if TOTAL["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
