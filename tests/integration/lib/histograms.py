#!/usr/bin/env python3
"""Are the histograms of a text exposition what they should be? Says what is not; exit status 1 if anything is."""
import collections
import re
import sys

SAMPLE = re.compile(r'^([A-Za-z_:][\w:]*?)_(bucket|sum|count)(?:\{(.*)\})? (\S+)$')
LE = re.compile(r'(?:^|,)le="([^"]*)"')


def main(path):
    types, series, wrong = {}, collections.defaultdict(lambda: {'buckets': []}), []
    with open(path, encoding='utf-8') as f:
        for line in f.read().splitlines():
            if line.startswith('# TYPE '):
                _, _, name, kind = line.split(' ')
                if name in types:
                    wrong.append(f'{name}: two TYPE lines')
                types[name] = kind
            m = SAMPLE.match(line)
            if not m or types.get(m[1]) != 'histogram':
                continue
            labels = m[3] or ''
            of = series[m[1], LE.sub('', labels).strip(',')]
            if m[2] == 'bucket':
                of['buckets'].append((float(LE.search(labels)[1]), float(m[4])))
            elif m[2] in of:
                wrong.append(f'{line}: twice')
            else:
                of[m[2]] = float(m[4])
    for key, of in series.items():
        bounds, counts = [b for b, _ in of['buckets']], [n for _, n in of['buckets']]
        if bounds != sorted(set(bounds)):
            wrong.append(f'{key}: bounds {bounds}')
        if counts != sorted(counts):
            wrong.append(f'{key}: not cumulative: {counts}')
        if not bounds or bounds[-1] != float('inf') or counts[-1] != of.get('count'):
            wrong.append(f'{key}: +Inf is not the count: {of}')
        if of.get('sum', -1) < 0:
            wrong.append(f'{key}: sum {of.get("sum")}')
    if not series and 'histogram' in types.values():
        wrong.append('no histogram was read')
    print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
