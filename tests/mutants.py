#!/usr/bin/env python3
"""Changes one line at random and asks the unit tests of its folder whether they notice: what no test of a line says
survives. Touches nothing of the tree; the same seed makes the same changes, also after lines elsewhere have moved.

usage: tests/mutants.py [--seed N] [--count N] [--jobs N] [--list] [--at FILE:LINE]... [FOLDER|FILE]...
       tests/mutants.py --simulation [--seeds N] [--results FILE] ...
       (after `make unit-tests`, with --simulation also `make simulation-program`)

--at changes that line alone, in every way there is; --list prints what would be changed. What the tests let through is
asked again with AddressSanitizer and UBSan in the changed file, as `make check-deep` has them in all: a step behind the
end, and memory that nobody frees. Prints each survivor as a diff, a table of the folders, at last "mutants: N made,
N survived"; status 1 when more than one in twenty did.

--simulation runs each change in berth-simulation too, seeds 1 to N, until one is red, whatever the unit tests found. It prints
what killed each change, and the two scores at the end: what both let through, and what the simulation kills by itself; status 1
when that is more than 3 % or less than 60 %. --results keeps a line of JSON for each change: a later run with the same file takes
its results from there and goes on with the next.

A program's main.c is in no unit test: tests/integration runs it.
"""
import argparse
import hashlib
import itertools
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading

FOLDERS = ['scheduler/daemon', 'scheduler/native', 'watcher', 'binder', 'front', 'common/bus', 'common/http', 'common/snapshot', 'common/k8s']
SIMULATED = ['scheduler/life', 'scheduler/writes', 'scheduler/daemon', 'watcher', 'binder']  # those that there are
SIMULATION = 'build/bin/berth-simulation'
MAY_SURVIVE, MUST_KILL = 0.03, 0.6  # unit tests and simulation together; the simulation by itself
# what a slip of the hand does: a comparison turned or off by one, and for or, a sign, a number, a condition, a call left out
CHANGES = [(r' == ', ' != '), (r' != ', ' == '), (r' < ', ' <= '), (r' <= ', ' < '), (r' > ', ' >= '), (r' >= ', ' > '),
           (r' && ', ' || '), (r' \|\| ', ' && '), (r' \+ ', ' - '), (r' - ', ' + '), (r'\b0\b(?![.x])', '1'), (r'\b1\b(?![.x])', '2'),
           (r'\btrue\b', 'false'), (r'\bfalse\b', 'true'), (r'\bif \((?=[^()]*\)$)(.*)\)$', r'if (!(\1))'), (r'\bif \(!', 'if ('),
           (r'^(\s+)(?!return|break|continue|goto|bh_assert|bh_log|BH_LOG|case|default|else|for|while|if|do)([a-z_][\w>.\-\[\]]*(?: [+|&-]?= |\().*;)$', r'\1;'),
           (r'\breturn [^;]+;', None), (r'\+\+;', '--;'), (r'\b(\w+) \+= ', r'\1 -= ')]
SANITIZE = '-fsanitize=address,undefined -fno-sanitize-recover=all -w'
HANGS_S = 60
SEED_S = 120  # a seed takes less than a second; what takes so long hangs


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

    def __init__(self, repo, work, sources, programs):
        told = subprocess.run(['make', '-n', 'V=1', *[x for f in [*sources, 'tests/unit/harness.c'] for x in ('-W', f)], *programs], cwd=repo,
                              stdout=subprocess.PIPE, check=True, text=True).stdout
        self.repo, self.work, self.command, self.original = repo, work, {}, {}
        self.trusted, self.unfit, self.noticed, self.serial = set(), set(), {}, itertools.count()
        for line in told.splitlines():
            m = re.search(r' -o (\S+)', line) or re.search(r'; ar rcs (\S+)', line)
            if m and not line.startswith(('mkdir', 'printf')):
                self.command[m[1]] = line
        self.mirrored = set()
        for program in programs:
            self.mirror(os.path.dirname(program))

    def mirror(self, folder):
        """Links to all that the tree has, from build down to this folder: tests look for files beside themselves."""
        above = os.path.dirname(folder)
        if above:
            self.mirror(above)
        if folder in self.mirrored:
            return
        self.mirrored.add(folder)
        here = f'{self.work}/{folder}'
        if os.path.islink(here):
            os.unlink(here)
        os.makedirs(here, exist_ok=True)
        for name in os.listdir(f'{self.repo}/{folder}'):
            if not os.path.lexists(f'{here}/{name}'):
                os.symlink(f'{self.repo}/{folder}/{name}', f'{here}/{name}')

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
        out = f'{self.work}/{test}-{next(self.serial)}'
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

    def simulated(self, path, obj):
        """Name of a simulation with this object. Watcher and binder are in it as one object each, with few names."""
        out, command = f'{self.work}/{SIMULATION}-{next(self.serial)}', self.command[SIMULATION]
        place, room = os.path.dirname(obj), path.split('/')[0]
        whole, library = f'build/obj/tests/simulation/lib_{room}.o', f'build/lib/{room}.a'
        if f'{whole}.all' in self.command and path.startswith(f'{room}/'):
            members = re.search(r'; ar rcs \S+ (.*)', self.command[library])[1].replace(f'build/obj/{path[:-2]}.o', obj)
            made = self.command[f'{whole}.all'].replace(f'--whole-archive {library}', members).replace(whole, f'{place}/whole.o')
            command = command.replace(whole, f'{place}/whole.o') if self.run(made) else 'false'
            obj = ''
        if not self.run(command.replace(f'-o {SIMULATION} ', f'-o {out} -Wl,--strip-debug {obj} ')):
            sys.exit(f'mutants: {SIMULATION} cannot be linked with {path}')
        return out

    def seeds(self, program, n):
        """The message of the first red seed, or None; and the trace of each seed. A seed without a line for two minutes hangs."""
        with subprocess.Popen([program, '--first', '1', '--seeds', str(n), '--jobs', '1', '--stop', '--no-shrink', '--traces'], cwd=self.repo,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as p:
            text = b''
            while select.select([p.stdout], [], [], SEED_S)[0]:
                part = os.read(p.stdout.fileno(), 1 << 16)
                if not part:
                    break
                text += part
            else:
                os.killpg(p.pid, signal.SIGKILL)
                text += b'\nseed: it hangs\n'
            status = p.wait()
        lines = text.decode(errors='replace').splitlines()
        traces = [line for line in lines if line.startswith('trace ')]
        red = next((line for line in lines if line.startswith('seed ') or line.startswith('seed:')), None)
        return red or (f'status {status}' if status else None), traces

    def simulation_result(self, path, obj, n):
        program = self.simulated(path, obj)
        try:
            red, traces = self.seeds(program, n)
        finally:
            os.unlink(program)
        return red, traces

    def outcome(self, site, obj, tests):
        """'killed', 'sanitized' (killed by what the sanitizers see) or 'survived'."""
        path, i, _, new = site
        if self.notices(path, obj, tests):
            return 'killed'
        lines = open(f'{self.repo}/{path}').readlines()
        seen = self.compiled(path, lines[:i] + [new + '\n'] + lines[i + 1:], SANITIZE)
        return 'sanitized' if seen and self.notices(path, seen, tests, SANITIZE) else 'survived'


def key_of(site):
    path, _, line, new = site
    return path, line.strip(), new.strip()


class Run:
    """Some at a time: most of the time a test waits."""

    def __init__(self, build, sites, count):
        self.build, self.sites, self.count, self.lock, self.made = build, iter(sites), count, threading.Lock(), 0
        self.results, self.broken = {}, None

    def outcome(self, site, obj):
        return self.build.outcome(site, obj, tests_of(self.build.repo, site[0]))

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
                outcome = self.outcome(site, obj)
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


class SimulatedRun(Run):
    """The results of the unit tests and of the simulation, for each change."""

    def __init__(self, build, sites, count, seeds, path, seed):
        super().__init__(build, sites, count)
        self.n_seeds, self.path, self.seed, self.known = seeds, path, seed, {}
        for line in open(path) if path and os.path.exists(path) else []:
            r = json.loads(line)
            self.known.setdefault((r['file'], r['line'], r['new']), []).append(r)
        red, self.traces = build.seeds(SIMULATION, seeds)
        if red:
            sys.exit(f'mutants: the simulation is red as it is: {red}')

    def next(self):
        while self.made < self.count:
            site = next(self.sites, None)
            if not site:
                return None
            known = self.known.get(key_of(site))
            if known:
                self.made += 1
                self.count_one(site, known.pop(0))
                continue
            obj = self.build.mutant(site[0], site[1], site[3])
            if obj:
                self.made += 1
                return site, obj
        return None

    def outcome(self, site, obj):
        unit = super().outcome(site, obj)
        red, traces = self.build.simulation_result(site[0], obj, self.n_seeds)
        path, line, new = key_of(site)
        return {'file': path, 'line': line, 'new': new, 'unit': unit, 'simulation': red, 'seeds': self.n_seeds, 'draw': self.seed,
                'same': traces == self.traces}

    def tell(self, site, outcome):
        if self.path:
            with open(self.path, 'a') as f:
                print(json.dumps(outcome), file=f)
        self.count_one(site, outcome)

    def count_one(self, site, r):
        by_unit, by_simulation = r['unit'] != 'survived', bool(r['simulation'])
        killer = ('both' if by_unit else 'simulation') if by_simulation else 'unit' if by_unit else 'survived'
        f, i, line, new = site
        self.results.setdefault(next((d for d in SIMULATED if f.startswith(d + '/')), os.path.dirname(f)), []).append(killer)
        print(f'{killer:10s} {f}:{i + 1}' + (f'  {r["simulation"][:120]}' if by_simulation else ''), flush=True)
        if not by_simulation:
            print(f'-{line.rstrip()}\n+{new}' + ('\n  each seed did the same as without it' if r['same'] else ''), flush=True)

    def table(self):
        killers = ['both', 'unit', 'simulation', 'survived']
        print(f'{"folder":18s} {"made":>5s} ' + ' '.join(f'{w:>10s}' for w in killers))
        for d, r in sorted(self.results.items()):
            print(f'{d:18s} {len(r):5d} ' + ' '.join(f'{r.count(w):10d}' for w in killers))
        all_ = [w for r in self.results.values() for w in r]
        return len(all_), all_.count('survived'), all_.count('both') + all_.count('simulation')


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--seed', type=int, default=1)
    a.add_argument('--count', type=int, default=200)
    a.add_argument('--jobs', type=int, default=2)
    a.add_argument('--at', action='append', default=[])
    a.add_argument('--list', action='store_true')
    a.add_argument('--simulation', action='store_true')
    a.add_argument('--seeds', type=int, default=2000)
    a.add_argument('--results')
    a.add_argument('where', nargs='*')
    a = a.parse_args()
    repo = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = []
    for w in a.where or ([d for d in SIMULATED if os.path.isdir(f'{repo}/{d}')] if a.simulation else FOLDERS):
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
        programs = sorted({t for f, *_ in sites for t in tests_of(repo, f)}) + ([SIMULATION] if a.simulation else [])
        build = Build(repo, work, sorted({f for f, *_ in sites}), programs)
        count = len(sites) if a.at else a.count
        run = SimulatedRun(build, sites, count, a.seeds, a.results, a.seed) if a.simulation else Run(build, sites, count)
        workers = [threading.Thread(target=run.work, daemon=True) for _ in range(a.jobs)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        if run.broken:
            raise run.broken
    made, survived, *simulated = run.table()
    if not simulated:
        print(f'mutants: {made} made, {survived} survived (seed {a.seed})')
        return survived * 20 > made
    print(f'mutants: {made} made, {survived} survived ({survived / max(made, 1):.1%}), {simulated[0]} killed by the simulation '
          f'({simulated[0] / max(made, 1):.1%}; seed {a.seed}, seeds 1 to {a.seeds})')
    return survived > MAY_SURVIVE * made or simulated[0] < MUST_KILL * made


sys.exit(main())
