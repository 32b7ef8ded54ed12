#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is a pod lost when the API server answers its binding wrongly?

Pods one after the other; the binding of each is answered 404, 409, 410, 422, or 201, and nothing happens (as from a proxy, a
webhook, an API server that was restored from a backup). Each must have a node in the end. Then two answers that are true:
a pod that is deleted, and one that is deleted and made anew under its name, while the binding waits: the first is forgotten,
the second gets a node. A pod is lost when the server shows it pending, and the scheduler neither queues it nor works on it.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import model  # noqa: E402
from doublebook import LEDGER, PODS, Cluster, Missed, pod, wait  # noqa: E402
from run import SCALE, last_lines  # noqa: E402

FALSE = {"404": "bind-404-every", "409": "bind-409-every", "410": "bind-410-every", "422": "bind-422-every", "201": "bind-201-every"}
TRUE = ("deleted", "again")
LIED = re.compile(r'Fault: a binding is answered falsely.*pod="([^"]+)"')
WORK = ("scheduler_pending_pods", 'scheduler_cache_size{type="assumed_pods"}', *(f'berth_scheduler_ledger{{what="{w}"}}' for w in LEDGER))


def node_of(cluster, name):
    cluster.follow()
    p = cluster.state.pods.get(("default", name))
    return model.node_of(p) if p else ""


def lied(cluster, name):
    return any((m := LIED.search(t)) and m.group(1) == name for t in cluster.server_log.lines())


def work_left(cluster):
    return {k: v for k, v in cluster.scheduler().items() if v and k.startswith(WORK)}


def judge(cluster, name, seconds, want_node=True):
    """"" when the pod got its node within the time (or nobody remembers it), else what is the matter."""
    begin = time.monotonic()
    while time.monotonic() < begin + seconds * SCALE:
        if node_of(cluster, name) if want_node else not work_left(cluster):
            lost = cluster.scheduler().get("berth_pods_lost_total", 0)
            return f"berth_pods_lost_total is {lost:.0f}" if lost else ""
        time.sleep(0.05)
    left = work_left(cluster)
    known = ", ".join(f"{k} {v:.0f}" for k, v in left.items()) or "nothing"
    what = "has no node" if want_node else "is gone"
    return f"{name} {what} after {seconds * SCALE:g} s, the scheduler has {known}" + ("" if left else ": LOST")


def false_answer(cluster, code, o):
    name = f"false-{code}"
    cluster.set_faults(f"{FALSE[code]}=1")
    cluster.must(pod(name))
    for _ in range(o.times):
        wait(o.wait, lambda: lied(cluster, name), f"binding of {name} is answered falsely")
    cluster.set_faults("")
    return judge(cluster, name, o.wait)


def true_answer(cluster, what, o):
    """The pod goes while its binding waits: the 404, or the 409 for another uid, is the truth."""
    cluster.set_faults("bind-late-ms=500")
    cluster.must(pod(what))
    cluster.binding_came(what)
    cluster.api("DELETE", f"{PODS}/{what}?gracePeriodSeconds=0")
    if what == "again":
        cluster.must(pod(what))
    cluster.set_faults("")
    return judge(cluster, what, o.wait, want_node=what == "again")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog="""examples:
  tests/faults/answers.py                              each answer once
  tests/faults/answers.py --answer 404 --times 3       three times in a row
  tests/faults/answers.py --answer 201 --wait 120 --scheduler-flag=--some-flag=5s

exit status: 0 every pod got its node, 1 one did not, 2 wrong usage""")
    p.add_argument("--answer", action="append", choices=[*FALSE, *TRUE], help="only this one; may be repeated")
    p.add_argument("--times", type=int, default=1, metavar="N", help="false answers in a row for one pod (1)")
    p.add_argument("--wait", type=float, default=60, metavar="SECONDS", help="for the node (60)")
    p.add_argument("--scheduler-flag", action="append", default=[], metavar="FLAG", help="of berth-scheduler; may be repeated")
    p.add_argument("--bin", default="build/bin", metavar="DIR", help="where the programs are (build/bin)")
    p.add_argument("--logs", metavar="DIR", help="history and logs, kept when something was found (a folder below the temporary one)")
    o = p.parse_args()
    o.bin, o.binders = os.path.abspath(o.bin), 1
    if not os.access(os.path.join(o.bin, "berth-simulator"), os.X_OK):
        p.error(f"no programs in {o.bin}: build them, or say --bin")
    o.logs = o.logs or tempfile.mkdtemp(prefix="berth-answers-")
    return o


def main():
    o, failed, passed = options(), 0, 0
    cluster = Cluster(o, 1)
    try:
        for what in o.answer or [*FALSE, *TRUE]:
            begin, bad = time.monotonic(), ""
            try:
                bad = (false_answer if what in FALSE else true_answer)(cluster, what, o)
                took = time.monotonic() - begin
                cluster.clean()
            except Missed as e:
                bad = bad or str(e)
            name = f"a binding is answered {what}, and nothing happened" if what in FALSE else f"a pod is deleted while its binding waits ({what})"
            print(f"not ok - {name}\n#   {bad}" if bad else f"ok - {name} ({took:.1f} s)", flush=True)
            failed, passed = failed + bool(bad), passed + (not bad)
    finally:
        cluster.end()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    if failed:
        print(f"# logs in {cluster.dir}", *last_lines(cluster.processes["scheduler"].log), sep="\n#   ")
    else:
        shutil.rmtree(o.logs, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
