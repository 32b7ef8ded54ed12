#!/usr/bin/env python3
"""Changes one line at random and asks the unit tests of its folder whether they notice: what no test of a line says
survives. Touches nothing of the tree; the same seed makes the same changes, also after lines elsewhere have moved.

usage: tests/mutants.py [--seed N] [--count N] [--jobs N] [--list] [--at FILE:LINE]... [FOLDER|FILE]...
       (after `make unit-tests`)

--at changes that line alone, in every way there is; --list prints what would be changed. What the tests let through is
asked again with AddressSanitizer and UBSan in the changed file, as `make check-deep` has them in all: a step behind the
end, and memory that nobody frees. Prints each survivor as a diff, a table of the folders, at last "mutants: N made,
N survived"; status 1 when more than one in twenty did.

A program's main.c is in no unit test: tests/integration runs it.
"""
import argparse
import hashlib
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

FOLDERS = ['scheduler/daemon', 'watcher', 'binder', 'front', 'common/bus', 'common/http', 'common/snapshot', 'common/k8s']
# what a slip of the hand does: a comparison turned or off by one, and for or, a sign, a number, a condition, a call left out
CHANGES = [(r' == ', ' != '), (r' != ', ' == '), (r' < ', ' <= '), (r' <= ', ' < '), (r' > ', ' >= '), (r' >= ', ' > '),
           (r' && ', ' || '), (r' \|\| ', ' && '), (r' \+ ', ' - '), (r' - ', ' + '), (r'\b0\b(?![.x])', '1'), (r'\b1\b(?![.x])', '2'),
           (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r'\bif \((?=[^()]*\)$)(.*)\)$', r'if (!(\1))'), (r'\bif \(!', 'if ('),
           (r'^(\s+)(?!return|break|continue|goto|bh_assert|bh_log|BH_LOG|case|default|else|for|while|if|do)([a-z_][\w>.\-\[\]]*(?: [+|&-]?= |\().*;)$', r'\1;'),
           (r'\breturn [^;]+;', None), (r'\+\+;', '--;'), (r'\b(\w+) \+= ', r'\1 -= ')]
SANITIZE = '-fsanitize=address,undefined -fno-sanitize-recover=all -w'
HANGS_S = 60


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


def drawn(seed, sites):
    """In an order that the seed gives, each for itself: a line that is added elsewhere changes nothing for the others."""
    times, order = {}, []
    for f, i, line, new in sites:
        same = (f, line.strip(), new.strip())
        times[same] = times.get(same, 0) + 1
        order.append((hashlib.sha256(repr((seed, same, times[same])).encode()).digest(), (f, i, line, new)))
    return [site for _, site in sorted(order)]


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
        self.repo, self.work, self.command, self.original = repo, work, {}, {}
        self.trusted, self.unfit, self.noticed, self.serial = set(), set(), {}, itertools.count()
        for line in told.splitlines():
            m = re.search(r' -o (\S+)', line)
            if m and not line.startswith(('mkdir', 'printf')):
                self.command[m[1]] = line

    def run(self, command):
        return subprocess.run(command, shell=True, cwd=self.repo, env={**os.environ, 'CCACHE_DISABLE': '1'},
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def compiled(self, path, lines, flags=''):
        """Name of the object, which has no word about lines; None: it does not compile."""
        place = f'{self.work}/{next(self.serial)}'
        obj, src, out = f'build/obj/{path[:-2]}.o', f'{place}/{path}', f'{place}/mutant.o'
        os.makedirs(os.path.dirname(src))
        open(src, 'w').writelines(lines)
        command = self.command[obj].replace(f'-MMD -MP -c -o {obj} {path}', f'-g0 {flags} -ffile-prefix-map={place}/= -c -o {out} {src}')
        return out if self.run(command) else None

    def as_it_is(self, path, flags=''):
        if (path, flags) not in self.original:
            self.original[path, flags] = self.compiled(path, open(f'{self.repo}/{path}').readlines(), flags) or \
                sys.exit(f'mutants: {path} does not compile as it is')
        return self.original[path, flags]

    def mutant(self, path, i, new):
        """The object of the file with line i made new; None: it does not compile, or is the same."""
        lines = open(f'{self.repo}/{path}').readlines()
        mutant = self.compiled(path, lines[:i] + [new + '\n'] + lines[i + 1:])
        return mutant if mutant and open(mutant, 'rb').read() != open(self.as_it_is(path), 'rb').read() else None

    def says(self, test, obj, flags=''):
        """None, or the first that the test says with this object: the rest of it would wait for its deadlines, one after
        the other. What takes a minute hangs."""
        out = f'{self.work}/test-{next(self.serial)}'
        if not self.run(self.command[test].replace(f'-o {test} ', f'-o {out} {flags} -Wl,--strip-debug {obj} ')):
            sys.exit(f'mutants: {test} cannot be linked')
        with subprocess.Popen([out], cwd=self.repo, env={**os.environ, 'BH_TEST_TIMEOUT': str(HANGS_S)}, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, errors='replace', start_new_session=True) as p:
            bad = next((line.strip() for line in p.stdout if line.startswith('not ok')), None)
            if bad:
                os.killpg(p.pid, signal.SIGKILL)
            status = p.wait()
        os.unlink(out)
        return bad or (f'status {status}' if status else None)

    def notices(self, path, obj, tests, flags=''):
        """Whether some test does: first those named like the file, then those that noticed most. One that notices for the
        first time, or because it hangs, has to pass on the file as it is."""
        stem = os.path.basename(path)[:-2]
        for t in sorted(tests, key=lambda t: (stem not in os.path.basename(t), -self.noticed.get(t, 0))):
            said = (t, flags) not in self.unfit and self.says(t, obj, flags)
            if not said:
                continue
            if (t, flags) not in self.trusted or said == f'status {-signal.SIGALRM}':
                bad = self.says(t, self.as_it_is(path, flags), flags)
                if bad:
                    print(f'mutants: {t} {flags} fails as it is: {bad}', file=sys.stderr)
                    self.unfit.add((t, flags))
                    continue
                self.trusted.add((t, flags))
            self.noticed[t] = self.noticed.get(t, 0) + 1
            return True
        return False

    def outcome(self, site, obj, tests):
        """'killed', 'sanitized' (killed by what the sanitizers see) or 'survived'."""
        path, i, _, new = site
        if self.notices(path, obj, tests):
            return 'killed'
        lines = open(f'{self.repo}/{path}').readlines()
        seen = self.compiled(path, lines[:i] + [new + '\n'] + lines[i + 1:], SANITIZE)
        return 'sanitized' if seen and self.notices(path, seen, tests, SANITIZE) else 'survived'


class Run:
    """Some at a time: most of the time a test waits."""

    def __init__(self, build, sites, count):
        self.build, self.sites, self.count, self.lock, self.made = build, iter(sites), count, threading.Lock(), 0
        self.results, self.broken = {}, None

    def next(self):
        while self.made < self.count:
            site = next(self.sites, None)
            if not site:
                return None
            obj = self.build.mutant(site[0], site[1], site[3])
            if obj:
                self.made += 1
                return site, obj
        return None

    def work(self):
        try:
            while not self.broken:
                with self.lock:
                    one = self.next()
                if not one:
                    return
                site, obj = one
                outcome = self.build.outcome(site, obj, tests_of(self.build.repo, site[0]))
                with self.lock:
                    self.tell(site, outcome)
        except (Exception, SystemExit) as e:
            self.broken = e

    def tell(self, site, outcome):
        f, i, line, new = site
        self.results.setdefault(next((d for d in FOLDERS if f.startswith(d + '/')), os.path.dirname(f)), []).append(outcome)
        if outcome == 'survived':
            print(f'{f}:{i + 1}\n-{line.rstrip()}\n+{new}', flush=True)
        told = [o for r in self.results.values() for o in r]
        print(f'{len(told)} made, {told.count("survived")} survived', end='\r' if sys.stderr.isatty() else '\n', file=sys.stderr, flush=True)

    def table(self):
        print(f'{"folder":18s} {"made":>5s} {"killed":>7s} {"by sanitizers":>14s} {"survived":>9s}')
        for d, r in sorted(self.results.items()):
            print(f'{d:18s} {len(r):5d} {r.count("killed"):7d} {r.count("sanitized"):14d} {r.count("survived"):9d}')
        told = [o for r in self.results.values() for o in r]
        return len(told), told.count('survived')


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--count', type=int, default=200)
    a.add_argument('--jobs', type=int, default=2)
    a.add_argument('--at', action='append', default=[])
    a.add_argument('--list', action='store_true')
    a.add_argument('where', nargs='*')
    a = a.parse_args()
    repo = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = []
    for w in a.where or FOLDERS:
        files += [w] if w.endswith('.c') else [os.path.relpath(os.path.join(d, f), repo) for d, _, fs in os.walk(f'{repo}/{w}') for f in fs
                                               if f.endswith('.c') and f != 'main.c']
    sites = []
    for f in sorted(set(x.split(':')[0] for x in a.at) if a.at else files):
        for i, line in enumerate(open(f'{repo}/{f}')):
            if not a.at or f'{f}:{i + 1}' in a.at:
                sites += [(f, i, line, new) for new in mutations(line)]
    if not sites:
        sys.exit('mutants: there is nothing to change')
    sites = drawn(a.seed, sites)
    if a.list:
        for f, i, line, new in sites[:a.count]:
            print(f'{f}:{i + 1}\n-{line.rstrip()}\n+{new}')
        return 0
    with tempfile.TemporaryDirectory() as work:
        build = Build(repo, work, sorted({f for f, *_ in sites}), sorted({t for f, *_ in sites for t in tests_of(repo, f)}))
        run = Run(build, sites, len(sites) if a.at else a.count)
        workers = [threading.Thread(target=run.work, daemon=True) for _ in range(a.jobs)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        if run.broken:
            raise run.broken
    made, survived = run.table()
    print(f'mutants: {made} made, {survived} survived (seed {a.seed})')
    return survived * 20 > made


sys.exit(main())
