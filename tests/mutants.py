#!/usr/bin/env python3
"""Changes one line at random and asks the unit tests of its folder whether they notice: what no test of a line says
survives. Touches nothing of the tree; the same seed makes the same changes.

usage: tests/mutants.py [--seed N] [--count N] [--at FILE:LINE]... [FOLDER|FILE]...      (after `make unit-tests`)

--at changes that line alone, in every way there is. Prints each survivor as a diff line, at last "mutants: N made,
N survived"; status 1 when more than one in twenty did.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile

FOLDERS = ['scheduler/daemon', 'watcher', 'binder', 'front', 'common/bus', 'common/http', 'common/snapshot', 'common/k8s']
# what a slip of the hand does: a comparison turned or off by one, and for or, a sign, a number, a condition, a call left out
CHANGES = [(r' == ', ' != '), (r' != ', ' == '), (r' < ', ' <= '), (r' <= ', ' < '), (r' > ', ' >= '), (r' >= ', ' > '),
           (r' && ', ' || '), (r' \|\| ', ' && '), (r' \+ ', ' - '), (r' - ', ' + '), (r'\b0\b(?![.x])', '1'), (r'\b1\b(?![.x])', '2'),
           (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r'\bif \((?=[^()]*\)$)(.*)\)$', r'if (!(\1))'), (r'\bif \(!', 'if ('),
           (r'^(\s+)(?!return|break|continue|goto|bh_assert|bh_log|BH_LOG|case|default|else|for|while|if|do)([a-z_][\w>.\-\[\]]*(?: [+|&-]?= |\().*;)$', r'\1;'),
           (r'\breturn [^;]+;', None), (r'\+\+;', '--;'), (r'\b(\w+) \+= ', r'\1 -= ')]


def mutations(line):
    code = line.rstrip('\n')
    if not re.match(r'\s', code) or re.match(r'\s*(/\*|\*|//|"|#)', code) or re.search(r'bh_assert|bh_log|BH_LOG|static_assert', code):
        return
    for pattern, to in CHANGES:
        for m in re.finditer(pattern, code.split(' /*')[0]):
            if code[:m.start()].count('"') % 2:  # within a text
                continue
            if to is None:
                new = 'return 0;' if m.group() != 'return 0;' else 'return 1;'
            else:
                new = m.expand(to)
            if new != m.group():
                yield code[:m.start()] + new + code[m.end():]


ELSEWHERE = {'common/http': ['simulator/http']}  # tests of a folder that need more than it may use


def tests_of(repo, path):
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(f'{repo}/tests/unit/{folder}'):
        folder = os.path.dirname(folder)
    found = [f'build/tests/{d}/{n[:-2]}' for d in [folder, *ELSEWHERE.get(folder, [])] if d
             for n in sorted(os.listdir(f'{repo}/tests/unit/{d}')) if n.startswith('test_') and n.endswith('.c')]
    return found or sys.exit(f'mutants: tests/unit has nothing about {path}')


class Build:
    """How the tree's make compiles these sources and links these tests, without asking it each time."""

    def __init__(self, repo, work, sources, tests):
        told = subprocess.run(['make', '-n', 'V=1', *[x for f in [*sources, 'tests/unit/harness.c'] for x in ('-W', f)], *tests], cwd=repo,
                              stdout=subprocess.PIPE, check=True, text=True).stdout
        self.repo, self.work, self.command, self.trusted = repo, work, {}, set()
        for line in told.splitlines():
            m = re.search(r' -o (\S+)', line)
            if m and not line.startswith(('mkdir', 'printf')):
                self.command[m[1]] = line

    def run(self, command):
        return subprocess.run(command, shell=True, cwd=self.repo, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def compiled(self, path, lines):
        """The object's name and its bytes; None: it does not compile."""
        obj, src, out = f'build/obj/{path[:-2]}.o', f'{self.work}/{path}', f'{self.work}/mutant.o'
        os.makedirs(os.path.dirname(src), exist_ok=True)
        open(src, 'w').writelines(lines)
        ok = self.run(self.command[obj].replace(f'-MMD -MP -c -o {obj} {path}', f'-c -o {out} {src}'))
        return (out, open(out, 'rb').read()) if ok else None

    def says(self, test, obj):
        """None, or the first that the test says with this object: the rest of it would wait for its deadlines, one after
        the other. What takes a minute hangs."""
        out = f'{self.work}/test'
        if not self.run(self.command[test].replace(f'-o {test} ', f'-o {out} {obj} ')):
            sys.exit(f'mutants: {test} cannot be linked')
        with subprocess.Popen([out], cwd=self.repo, env={**os.environ, 'BH_TEST_TIMEOUT': '60'}, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, errors='replace', start_new_session=True) as p:
            bad = next((line.strip() for line in p.stdout if line.startswith('not ok')), None)
            if bad:
                os.killpg(p.pid, signal.SIGKILL)
            status = p.wait()
        return bad or (f'status {status}' if status else None)

    def outcome(self, path, i, new, tests):
        """Of line i made new: None if it does not compile, or the compiler makes the same of it; else whether some test
        noticed, those named like the file first. One that notices for the first time has to pass on the line as it was;
        then it is trusted."""
        lines = open(f'{self.repo}/{path}').readlines()
        before = self.compiled(path, lines)
        mutant = self.compiled(path, lines[:i] + [new + '\n'] + lines[i + 1:])
        if not before:
            sys.exit(f'mutants: {path} does not compile as it is')
        if not mutant or mutant[1] == before[1]:
            return None
        stem = os.path.basename(path)[:-2]
        for t in sorted(tests, key=lambda t: stem not in os.path.basename(t)):
            if not self.says(t, mutant[0]):
                continue
            if t not in self.trusted:
                said = self.says(t, self.compiled(path, lines)[0])
                if said:
                    sys.exit(f'mutants: {t} fails as it is: {said}')
                self.trusted.add(t)
            return True
        return False


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--count', type=int, default=200)
    a.add_argument('--at', action='append', default=[])
    a.add_argument('where', nargs='*')
    a = a.parse_args()
    repo = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = []
    for w in a.where or FOLDERS:
        files += [w] if w.endswith('.c') else [os.path.relpath(os.path.join(d, f), repo) for d, _, fs in os.walk(f'{repo}/{w}') for f in fs if f.endswith('.c')]
    sites = []
    for f in sorted(set(x.split(':')[0] for x in a.at) if a.at else files):
        for i, line in enumerate(open(f'{repo}/{f}')):
            if not a.at or f'{f}:{i + 1}' in a.at:
                sites += [(f, i, line, new) for new in mutations(line)]
    if not sites:
        sys.exit('mutants: there is nothing to change')
    random.Random(a.seed).shuffle(sites)
    made = survived = 0
    with tempfile.TemporaryDirectory() as work:
        build = Build(repo, work, sorted({f for f, *_ in sites}), sorted({t for f, *_ in sites for t in tests_of(repo, f)}))
        for f, i, line, new in sites:
            if made == (len(sites) if a.at else a.count):
                break
            noticed = build.outcome(f, i, new, tests_of(repo, f))
            if noticed is None:
                continue
            made += 1
            survived += not noticed
            if not noticed:
                print(f'{f}:{i + 1}\n-{line.rstrip()}\n+{new}', flush=True)
            print(f'{made} made, {survived} survived', end='\r' if sys.stderr.isatty() else '\n', file=sys.stderr, flush=True)
    print(f'mutants: {made} made, {survived} survived (seed {a.seed})')
    return survived * 20 > made


sys.exit(main())
