# SPDX-License-Identifier: Apache-2.0
"""What the page costs: a keystroke in an object of a megabyte; frames with 5,000 nodes and 20,000 pods. Prints figures, judges nothing.

    build/bin/berth up --port 0        # another terminal: an idle one, it gets large objects and a large cluster
    BERTH_URL=http://127.0.0.1:PORT /usr/bin/python3 tests/browser/measure.py [typing] [frames]

What a person sees has the machine's other load in it: the time until a keystroke is painted (with up to 16 ms of waiting for the frame), the
main thread's work on a frame from its first callback until it is handed to the compositor, tasks longer than 50 ms. The
processor time of the page's main thread has no waiting in it; of frames it is the mean, everything between them counted.
"""
import sys
import threading
import time

from browser import URL, Keys, Page, api

MAPS = '/api/v1/namespaces/default/configmaps'
WATCH_KEYS = """if (window.__keys) return; window.__keys = []; let t = 0;
addEventListener('keydown', () => { t = performance.now(); requestAnimationFrame(() => setTimeout(() => window.__keys.push(performance.now() - t))); }, true)"""

WATCH_FRAMES = """const f = window.__frames = {work: [], gap: [], long: []}, c = new MessageChannel(); let began = 0, last = 0;
new PerformanceObserver((l) => l.getEntries().forEach((e) => f.long.push(e.duration))).observe({type: 'longtask'});
c.port1.onmessage = () => f.work.push(performance.now() - began);
(function frame(t) { began = performance.now(); if (last) f.gap.push(t - last); last = t; if (t) c.port2.postMessage(0); requestAnimationFrame(frame); })()"""


def spread(values):
    v = sorted(values)
    return f'median {v[len(v) // 2]:.1f} ms, p95 {v[int(len(v) * .95)]:.1f} ms, most {v[-1]:.1f} ms, of {len(v)}'


def processor_ms(page):
    """What the main thread has used so far."""
    return 1000 * {m['name']: m['value'] for m in page.d.execute_cdp_cmd('Performance.getMetrics', {})['metrics']}['TaskDuration']


def typing(page):
    texts = {'25,000 lines': '\n'.join(f'line {i} of a long text, number: {i}' for i in range(25000))[:1000000], 'one line': 'abcdefghi' * 111111}
    for name, text in texts.items():
        api(f'{MAPS}/measured', 'DELETE', wanted=(404,))
        api(MAPS, 'POST', {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'measured'}, 'data': {'a': text}})
        page.open('#/overview')
        page.go(f'#/edit?path={MAPS}/measured')
        page.wait('the object is loaded', "return document.querySelector('#main .editor pre')?.innerText.includes('data:')", seconds=60)
        page.js(WATCH_KEYS)
        page.js("document.querySelector('#main .editor textarea').focus()")
        for where in (Keys.HOME, Keys.END):
            page.chord(Keys.CONTROL, where)
            page.key(*([Keys.ARROW_DOWN] * 2 + [Keys.END] if where == Keys.HOME else [Keys.ARROW_UP] * 7))
            page.js('window.__keys = []')
            used = []
            for c in 'typed in one object of a megabyte':
                before = processor_ms(page)
                page.key(c)
                page.wait('the frame', 'return window.__keys.length > arguments[0]', len(used))
                used.append(processor_ms(page) - before)
            print(f"1 MB in {name}, near the {'start' if where == Keys.HOME else 'end'}: until painted {spread(page.js('return window.__keys'))}; processor {spread(used)}", flush=True)
    api(f'{MAPS}/measured', 'DELETE')


def cluster():
    """5,000 nodes with 20,000 pods on them, in the place of what was there."""
    shape = {'cpu': '16', 'memory': '64Gi', 'pods': '110'}
    nodes = [{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': f'node-{i}', 'labels': {'topology.kubernetes.io/zone': f'zone-{i % 3}', 'pool': f'pool-{i % 5}'}}, 'status': {'allocatable': shape, 'capacity': shape}} for i in range(5000)]
    pods = [{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': f'pod-{i}', 'namespace': 'default', 'labels': {'app': f'app-{i % 7}'}},
             'spec': {'nodeName': f'node-{i % 5000}', 'containers': [{'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': '1', 'memory': '1Gi'}}}]}} for i in range(20000)]
    api('/api/v1/import?mode=replace', 'POST', {'apiVersion': 'v1', 'kind': 'List', 'items': nodes + pods})


class Traffic(threading.Thread):
    """Pods come and are scheduled, and the oldest of them go."""
    def __init__(self):
        super().__init__()
        self.over, self.sent = threading.Event(), 0

    def run(self):
        path = '/api/v1/namespaces/default/pods'
        while not self.over.is_set():
            api(path, 'POST', {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': f'new-{self.sent}', 'labels': {'app': 'new'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': '100m'}}}]}})
            if self.sent >= 200:
                api(f'{path}/new-{self.sent - 200}?gracePeriodSeconds=0', 'DELETE')
            self.sent += 1
        for i in range(max(0, self.sent - 200), self.sent):
            api(f'{path}/new-{i}?gracePeriodSeconds=0', 'DELETE')


def frames(page):
    cluster()
    ready = {'#/overview': "return [...document.querySelectorAll('.tile .value')].some(e => e.innerText === '5,000')",
             '#/pods': "return /^20,0/.test(document.querySelector('.vt-count')?.innerText || '') && document.querySelectorAll('#main .vt-row:not([hidden])').length > 5",
             '#/map': "return document.querySelector('#main').innerText.includes('5,000 nodes')"}
    for route, there in ready.items():
        page.d.get('about:blank')
        page.d.get(f'{URL}/ui/{route}')
        first = page.js(f"""return new Promise((done) => {{ const there = () => {{ {there} }}; (function look() {{ if (there()) requestAnimationFrame(() => setTimeout(() => done(performance.now()))); else setTimeout(look, 10); }})(); }})""")
        used = processor_ms(page)
        print(f'{route}: first view {first:.0f} ms after the navigation began; processor {used:.0f} ms', flush=True)
        traffic = Traffic()
        traffic.start()
        page.js(WATCH_FRAMES)
        for what in ('pods come and go', 'and somebody scrolls'):
            page.js('Object.assign(window.__frames, {work: [], gap: [], long: []})')
            before, sent, end = processor_ms(page), traffic.sent, time.monotonic() + 10
            while time.monotonic() < end:
                if what.startswith('and'):
                    page.d.execute_cdp_cmd('Input.dispatchMouseEvent', {'type': 'mouseWheel', 'x': 700, 'y': 450, 'deltaX': 0, 'deltaY': 240})
                else:
                    time.sleep(.1)
            f, used, sent = page.js('return window.__frames'), processor_ms(page) - before, traffic.sent - sent
            print(f"{route}, {what} ({sent} pods made): work {spread(f['work'])} frames; from frame to frame {spread(f['gap'])}; {len(f['long'])} long tasks, {sum(f['long']):.0f} ms; "
                  f"processor {used / max(1, len(f['work'])):.1f} ms a frame", flush=True)
        traffic.over.set()
        traffic.join()


if __name__ == '__main__':
    page = Page()
    try:
        page.open()
        page.d.execute_cdp_cmd('Performance.enable', {'timeDomain': 'threadTicks'})
        for f in (typing, frames):
            if len(sys.argv) == 1 or f.__name__ in sys.argv:
                f(page)
    finally:
        page.close()
