# SPDX-License-Identifier: Apache-2.0
"""What the page costs: a keystroke in an object of a megabyte. Prints figures, judges nothing.

    build/bin/berth up --port 0        # another terminal: an idle one, it gets large objects
    BERTH_URL=http://127.0.0.1:PORT /usr/bin/python3 tests/browser/measure.py [typing]

The time until a frame has been painted is what a person sees; it has the machine's other load in it, and up to 16 ms of waiting for the
frame. The processor time of the page's main thread has neither.
"""
import sys

from browser import Keys, Page, api

MAPS = '/api/v1/namespaces/default/configmaps'
WATCH_KEYS = """if (window.__keys) return; window.__keys = []; let t = 0;
addEventListener('keydown', () => { t = performance.now(); requestAnimationFrame(() => setTimeout(() => window.__keys.push(performance.now() - t))); }, true)"""


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


if __name__ == '__main__':
    page = Page()
    try:
        page.open()
        page.d.execute_cdp_cmd('Performance.enable', {'timeDomain': 'threadTicks'})
        for f in (typing,):
            if len(sys.argv) == 1 or f.__name__ in sys.argv:
                f(page)
    finally:
        page.close()
