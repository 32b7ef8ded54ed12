#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What counts as steady, and what is sampled of a process."""

import contextlib
import io
import mmap
import os
import random
import sys

import load

MIB = load.MIB
failed = passed = 0


def check(name, good):
    global failed, passed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"{'ok' if good else 'not ok'} - {name}")


def steady(values, slack=2 * MIB):
    return load.is_steady(values, slack)[0]


random.seed(1)
NOISE = [random.randrange(MIB) for _ in range(300)]
check("noise is steady", steady([20 * MIB + n for n in NOISE]))
check("growth in the first third is steady", steady([20 * MIB * min(i, 100) / 100 for i in range(300)]))
check("a peak is steady", steady([500 * MIB if i == 250 else 20 * MIB for i in range(300)]))
check("less is steady", steady([(40 - i / 10) * MIB for i in range(300)]))
check("growth to the end is not", not steady([20 * MIB + i * MIB / 10 + n for i, n in enumerate(NOISE)]))
check("nor a step before the last third", not steady([20 * MIB if i < 200 else 24 * MIB for i in range(300)]))
check("one descriptor more is steady", steady([40] * 200 + [41] * 100, 2))
check("five more are not", not steady([40] * 200 + [45] * 100, 2))
check("too few samples prove nothing", not steady([1, 1]))


def judged(values):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        counts = load.judge(values)
    return counts, out.getvalue()


leaks = {"scheduler": {"pss": [i * MIB for i in range(30)], "rss": [MIB] * 30, "fds": [50] * 30, "threads": [8] * 30},
         "shared memory": {"segments": [2] * 20 + [3] * 10, "bytes": [MIB] * 30}}
counts, table = judged(leaks)
check("each line that is not steady counts", counts == (4, 2))
check("and the table says which", [line.split()[:3] for line in table.splitlines() if "NOT STEADY" in line] ==
      [["scheduler", "pss", "30"], ["shared", "memory", "segments"]])

# Of this process, under the name of one of Berth's.
pid = os.fork()
if pid == 0:
    os.execv(sys.executable, ["berth-watcher", "-c", "import time; time.sleep(600)"])
os.kill(pid, 0)
while (found := load.sample_process(pid)) is None:
    pass
check("a process is known by its name", found[0] == "watcher" and all(found[1][what] > 0 for what in load.LIMITS))
check("and found below its parent", pid in load.children(os.getpid()))
os.kill(pid, 9)
os.waitpid(pid, 0)
check("one that ended has no sample", load.sample_process(pid) is None)

path = f"/dev/shm/berth-soak-test-{os.getpid()}"
with open(path, "w+b") as f:
    f.truncate(MIB)
    f.write(b"x" * MIB)
    f.flush()
    with mmap.mmap(f.fileno(), MIB):
        check("shared memory is what the processes map", load.sample_shared([os.getpid()]) == {"segments": 1, "bytes": MIB})
    os.unlink(path)
check("and nothing else", load.sample_shared([os.getpid()]) == {"segments": 0, "bytes": 0})
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(failed > 0)
