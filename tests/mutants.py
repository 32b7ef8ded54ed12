#!/usr/bin/env python3
"""Changes one line at random and asks the unit tests of its folder whether they notice: what no test of a line says
survives. Works on a copy; the same seed makes the same changes.

usage: tests/mutants.py [--seed N] [--count N] [--at FILE:LINE]... [FOLDER|FILE]...      (after `make unit-tests`)

--at changes that line alone, in every way there is. Prints each survivor as a diff line, at last "mutants: N made,
N survived"; status 1 when more than one in twenty did.
"""
import argparse
import os
import random
import re
import shutil
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


def tests_of(tree, path):
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(f'{tree}/tests/unit/{folder}'):
        folder = os.path.dirname(folder)
    found = [f'build/tests/{d}/{n[:-2]}' for d in [folder, *ELSEWHERE.get(folder, [])] if d
             for n in sorted(os.listdir(f'{tree}/tests/unit/{d}')) if n.startswith('test_') and n.endswith('.c')]
    return found or sys.exit(f'mutants: tests/unit has nothing about {path}')


def make(tree, target):
    return subprocess.run(['make', '-s', target], cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def noticed_by(tree, test):
    """Empty, or what the test says."""
    try:
        r = subprocess.run([f'./{test}'], cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=300)
    except subprocess.TimeoutExpired:
        return 'it does not end'
    if not r.returncode:
        return ''
    bad = [line for line in r.stdout.decode(errors='replace').splitlines() if line.startswith(('not ok', '#   '))]
    return '\n'.join(bad[:4]) or f'status {r.returncode}'


def says(tree, test):
    return noticed_by(tree, test) if make(tree, test) else 'it cannot be built'


def outcome(tree, path, i, new, tests, trusted):
    """Of line i made new: None if it does not compile, or the compiler makes the same of it; else whether some test
    noticed. Tests are linked one by one, those named like the file first: most mutants need no more than that. One that
    notices for the first time has to pass on the line as it was; then it is trusted."""
    lines = open(f'{tree}/{path}').readlines()
    obj = f'build/obj/{path[:-2]}.o'
    stem = os.path.basename(path)[:-2]

    def write(line):
        open(f'{tree}/{path}', 'w').writelines(lines[:i] + [line] + lines[i + 1:])

    if not make(tree, obj):
        sys.exit(f'mutants: {path} does not compile as it is')
    before = open(f'{tree}/{obj}', 'rb').read()
    write(new + '\n')
    noticed = None
    if make(tree, obj) and before != open(f'{tree}/{obj}', 'rb').read():
        noticed = next((t for t in sorted(tests, key=lambda t: stem not in os.path.basename(t)) if says(tree, t)), False)
    write(lines[i])
    if noticed and noticed not in trusted:
        said = says(tree, noticed)
        if said:
            sys.exit(f'mutants: {noticed} fails as it is: {said}')
        trusted.add(noticed)
    return noticed if noticed is None else bool(noticed)


def left_out(repo):
    """What a copy can do without."""
    return lambda folder, names: [n for n in names if folder == repo and (n == '.git' or n.startswith('build-'))
                                  or folder == f'{repo}/build' and (n == 'coverage' or n.endswith('-logs'))]


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
    trusted = set()
    with tempfile.TemporaryDirectory() as work:
        tree = f'{work}/tree'
        shutil.copytree(repo, tree, symlinks=True, ignore=left_out(repo))
        for f, i, line, new in sites:
            if made == (len(sites) if a.at else a.count):
                break
            noticed = outcome(tree, f, i, new, tests_of(tree, f), trusted)
            if noticed is None:
                continue
            made += 1
            survived += not noticed
            if not noticed:
                print(f'{f}:{i + 1}\n-{line.rstrip()}\n+{new}', flush=True)
            if sys.stderr.isatty():
                print(f'\r{made} made, {survived} survived', end='', file=sys.stderr)
        shutil.rmtree(tree)
    print(f'mutants: {made} made, {survived} survived (seed {a.seed})')
    return survived * 20 > made


sys.exit(main())
