# SPDX-License-Identifier: Apache-2.0
"""Where things stand and what can be read: icons, labels on touch, phones, alignment, messages."""
import json

from browser import Page, api, check, run

OVERRIDE = 'Emulation.setDeviceMetricsOverride'
FRAMES = 'return new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))'


def size(page, width, height, touch=False):
    page.d.execute_cdp_cmd(OVERRIDE, {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': touch})
    page.d.execute_cdp_cmd('Emulation.setTouchEmulationEnabled', {'enabled': touch})
    page.js(FRAMES)


def test_each_screen_has_its_own_icon(page: Page):
    page.open('#/overview')
    icons = page.js("""return [...document.querySelectorAll('#nav a.item, #top button')].map((e) =>
        [e.dataset.screen || e.getAttribute('aria-label'), e.querySelector('svg.icon path')?.getAttribute('d')])""")
    seen = {}
    for name, path in icons:
        seen.setdefault(path, []).append(name)
    check('no two screens have one icon', len(icons) > 35 and None not in seen and all(len(v) == 1 for v in seen.values()),
          [v for v in seen.values() if len(v) > 1])


def test_narrow_navigation_has_labels_on_touch(page: Page):
    size(page, 820, 1180, touch=True)
    page.open('#/overview')
    labels = page.js("""return [...document.querySelectorAll('#nav a.item')].filter((e) => e.offsetParent).map((e) => {
        const l = e.querySelector('.label').getBoundingClientRect(), r = e.getBoundingClientRect();
        return [e.dataset.screen, l.width > 0 && l.right <= r.right + 1 && l.left >= r.left - 1, r.height]; })""")
    check('each entry of the narrow navigation has its label on touch', len(labels) > 15 and all(x[1] for x in labels), labels)
    check('and is high enough for a finger', all(x[2] >= 44 for x in labels), labels)
    page.shot('tablet-touch-navigation')
    page.js("document.querySelector('#nav [data-group=Workloads] button').click()")
    page.wait('a closed group opens there', "return !!document.querySelector('#nav a[data-screen=jobs]').offsetParent")
    size(page, 820, 1180)
    page.d.refresh()
    page.wait('icons alone', "return document.querySelector('#nav a.item') && !document.querySelector('#nav .label').offsetParent")
    check('with a mouse the narrow navigation has icons alone', page.js("return document.getElementById('nav').offsetWidth") < 60)
    page.d.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})


def test_messages_show_their_reasons(page: Page):
    api('/api/v1/namespaces/default/pods', 'POST', {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'too-big'}, 'spec': {'containers': [{'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': '900'}}}]}})
    page.open('#/overview')
    size(page, 1280, 800)
    page.wait('its reason', "return [...document.querySelectorAll('.reasons a')].some((a) => a.innerText.includes('Insufficient cpu'))")
    crossed = page.js("""return [...document.querySelectorAll('.reasons a')].filter((a) => {
        const bar = a.querySelector('i').getBoundingClientRect(), text = a.querySelector('span').firstChild, r = document.createRange();
        r.selectNodeContents(text); const t = r.getBoundingClientRect();
        return bar.top < t.bottom - 2; }).map((a) => a.innerText)""")
    check('no bar of "Why pods wait" runs through its text', not crossed, crossed)
    page.shot('overview-reasons')
    for route, rows in (('#/pods?q=too-big', '.vt-row:not([hidden]) .vt-cell'), ('#/events?q=FailedScheduling', '.vt-row:not([hidden]) .vt-cell'), ('#/queue', '.vt-row:not([hidden]) .vt-cell')):
        page.go(route)
        page.wait(f'a reason in {route}', "return [...document.querySelectorAll('#main ' + arguments[0])].some((c) => c.innerText.includes('Insufficient cpu'))", rows)
        got = page.js("""const c = [...document.querySelectorAll('#main ' + arguments[0])].find((c) => c.innerText.includes('Insufficient cpu'));
            c.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); return [c.innerText, c.title]""", rows)
        check(f'{route}: a message begins with its reasons', 'nodes are available' not in got[0], got)
        check(f'{route}: the pointer shows all of it', '0/5 nodes are available' in got[1] and 'preemption' in got[1], got)
    api('/api/v1/namespaces/default/pods/too-big?gracePeriodSeconds=0', 'DELETE')


def pods(*made):
    for name, cpu in made:
        api('/api/v1/namespaces/default/pods', 'POST', {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name}, 'spec': {'containers': [{'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': cpu}}}]}})


# What ends beyond the box that scrolls it, or beyond the window.
BEYOND = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
return [...document.querySelectorAll(arguments[1])].filter((e) => e.offsetParent && (e.getBoundingClientRect().right > box.right + 1 || e.scrollWidth > e.clientWidth + 1)).map((e) => e.className + ': ' + e.innerText)"""


def test_phone_shows_scores_status_and_answers(page: Page):
    pods(('looked-at-on-a-small-screen-5d8f7c9b6d-x2x4z', '1'), ('nowhere-on-a-small-screen', '900'))
    page.open('#/overview')
    size(page, 390, 844, touch=True)
    page.go('#/decisions/pod/default/looked-at-on-a-small-screen-5d8f7c9b6d-x2x4z?tab=scores')
    page.wait('the scores', "return document.querySelectorAll('.q-score-rows .q-bar i').length > 3")
    page.js(FRAMES)
    beyond = page.js(BEYOND, '.q-score-box', '.q-score-head > *, .q-score-rows .q-bar, .q-score-rows .q-score-total, .q-score-rows .q-score-gap')
    check('the scores and their header end in their box on a phone', not beyond, beyond)
    page.shot('phone-scores')
    page.button('Table')
    page.js("document.querySelector('.q-score-box').scrollLeft = 200")
    page.wait('header and rows scroll together', """const x = (css) => [...document.querySelectorAll(css)].map((e) => Math.round(e.getBoundingClientRect().left));
        return document.querySelector('.q-score-box').scrollLeft > 0 && Math.abs(x('.q-score-head > .q-score-cell')[1] - x('.q-score-rows .q-row:first-child .q-score-cell')[1]) <= 2""")
    page.go('#/pods')
    page.wait('the row', "return !!document.querySelector('#main .vt-row:not([hidden]) .tag')")
    cut = page.js("return [...document.querySelectorAll('#main .vt-row:not([hidden]) .tag')].filter((e) => e.getBoundingClientRect().right > innerWidth - 10).map((e) => e.innerText)")
    check('the status of a pod is in sight on a phone', not cut, cut)
    page.go('#/whatif?pod=default/nowhere-on-a-small-screen')
    page.wait_text('What would make it fit?')
    y = page.js("const y = (t) => [...document.querySelectorAll('#main .panel')].find((e) => e.innerText.startsWith(t)).getBoundingClientRect().top; return [y('The pod'), y('What would make it fit?'), y('The nodes')]")
    check('on a phone the answer comes after the pod, before the other inputs', y == sorted(y) and y[1] < 844, y)
    for route in ('pods', 'transfer', 'rebalance', 'capacity'):
        page.go(f'#/{route}')
        page.wait('it is loaded', "return !document.querySelector('#main .spin') && !!document.querySelector('#main button')")
        off = page.js("""return [...document.querySelectorAll('#main button, #main a.button')].filter((b) => b.offsetParent && b.innerText.trim() && b.offsetHeight < 32).map((b) => {
            const w = document.createTreeWalker(b, NodeFilter.SHOW_TEXT); let t = w.nextNode(); while (t && !t.data.trim()) t = w.nextNode();
            const r = document.createRange(); r.selectNodeContents(t); const i = r.getBoundingClientRect(), o = b.getBoundingClientRect();
            return [b.innerText, (i.top + i.bottom - o.top - o.bottom) / 2]; }).filter((x) => Math.abs(x[1]) > 1)""")
        check(f'the text of buttons is in their middle: {route}', not off, off)
    size(page, 1280, 800)
    page.d.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})


def test_what_belongs_together_is_aligned(page: Page):
    page.open('#/overview')
    size(page, 1280, 800)
    page.wait('the bars', "return document.querySelectorAll('.resourceline .bar').length > 3")
    box = "const r = (css) => [...document.querySelectorAll(css)].filter((e) => e.offsetParent).map((e) => { const b = e.getBoundingClientRect(); return {left: Math.round(b.left), right: Math.round(b.right), top: Math.round(b.top), bottom: Math.round(b.bottom)}; });"
    lefts = page.js(box + "return r('.resourceline .bar').map((b) => b.left)")
    check('all bars of the overview begin in one line', len(set(lefts)) == 1, lefts)
    page.go('#/rebalance')
    page.wait_text('Moves at most')
    bottoms = page.js(box + "return r('#main form input, #main form button').map((b) => b.bottom)")
    check('Plan stands beside its fields', len(set(bottoms)) == 1, bottoms)
    page.go('#/configdiff')
    page.wait_text('B: the other one')
    tops = page.js(box + "return r('#main .editor').map((b) => b.top)")
    check('A and B begin at one height', len(tops) == 2 and len(set(tops)) == 1, tops)
    page.go('#/timeline')
    page.wait('the tiles', "return document.querySelectorAll('.q-then .tile').length === 5")
    tiles = page.js(box + "return [r('.q-then .tile'), r('.q-then .tiles')[0], r('.q-then .q-row')]")
    rows = {}
    for t in tiles[0]:
        rows.setdefault(t['top'], []).append(t['right'])
    check('each row of tiles ends with the card', all(max(x) == tiles[1]['right'] for x in rows.values()), rows)
    check('so do the rows below', all(x['right'] == tiles[1]['right'] for x in tiles[2]), tiles)
    ends = page.js("""const {Lanes} = await import('./timeline.js'); const drawn = [], c = document.createElement('canvas').getContext('2d');
        c.fillText = (t, x) => drawn.push([t, x, x + c.measureText(t).width]);
        for (let w = 300; w < 700; w += 7) Lanes.prototype.grid.call({from: 0, to: 61000, x: (t) => t / 61000 * w}, c, w), drawn.forEach((d) => d.push(w));
        return drawn.filter((d) => d[2] > d[3] || d[1] < 0)""".replace('const {Lanes} = await', 'return (async () => { const {Lanes} = await') + '; })()')
    check('every tick of the timeline has its whole time', not ends, ends)


def test_only_what_differs(page: Page):
    page.open('#/decisions/pod/default/looked-at-on-a-small-screen-5d8f7c9b6d-x2x4z?tab=scores')
    page.wait('the scores', "return document.querySelectorAll('.q-score-rows .q-bar i').length > 3")
    all_keys = page.js("return document.querySelectorAll('.q-key').length")
    page.js("[...document.querySelectorAll('.q-tools label')].find((l) => l.innerText.includes('Only what differs')).click()")
    keys = page.wait('fewer plugins', "const k = [...document.querySelectorAll('.q-key')].map((e) => e.innerText); return k.length < arguments[0] && k", all_keys)
    check('plugins that give all nodes the same are left out', 'TaintToleration' not in ' '.join(keys) and any('NodeResourcesFit' in k for k in keys), keys)
    width = page.js("return Math.max(...[...document.querySelectorAll('.q-score-rows .q-bar')].map((b) => [...b.children].reduce((n, i) => n + i.offsetWidth, 0) / b.offsetWidth))")
    check('and the rest fills the bars', width > .97, width)
    page.shot('scores-that-differ')
    for name in ('looked-at-on-a-small-screen-5d8f7c9b6d-x2x4z', 'nowhere-on-a-small-screen'):
        api(f'/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0', 'DELETE')


def test_map_stretches_its_colours(page: Page):
    pods(('on-the-map', '1'))
    page.open('#/map')
    page.wait_text('nodes in')
    page.wait('a node with something', "return fetch('/api/v1/namespaces/default/pods/on-the-map').then((r) => r.json()).then((p) => !!p.spec.nodeName)")
    page.wait_text('100% requested', '.maplegend')
    page.js("[...document.querySelectorAll('#main label')].find((l) => l.innerText.includes('Stretch colours')).click()")
    page.wait('the scale ends at the fullest node', "const t = document.querySelector('.maplegend').innerText; return t.includes('requested') && !t.includes('100%')")
    dark = page.js("""const c = document.querySelector('.mapview canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;
        for (let i = 0; i < d.length; i += 4) if (d[i] + d[i + 1] + d[i + 2] < 250) n++; return n / d.length * 4""")
    check('the fullest node has the last colour', dark > .001 and 'stretch=1' in page.js('return location.hash'), dark)
    page.shot('map-stretched')
    api('/api/v1/namespaces/default/pods/on-the-map?gracePeriodSeconds=0', 'DELETE')


def test_buttons_look_like_buttons(page: Page):
    page.open('#/overview')
    for route in ('pods', 'whatif', 'capacity', 'weights', 'decisions', 'edit', 'settings', 'tour', 'drain?nodes=node-a1', 'timeline'):
        page.go(f'#/{route}')
        page.wait('it is loaded', "return !document.querySelector('#main .spin') && !!document.querySelector('#main button')")
        plain = page.js("""return [...document.querySelectorAll('#main button, #main a.button')].filter((b) => b.offsetParent && b.innerText.trim() && !b.closest('.tabs, .vt-head, .q-legend, .q-funnel, .problems, .templates')).filter((b) => {
            const s = getComputedStyle(b), clear = (c) => /rgba\\(.*, 0\\)|transparent/.test(c);
            return clear(s.backgroundColor) && (s.borderTopWidth === '0px' || clear(s.borderTopColor)); }).map((b) => b.innerText)""")
        check(f'buttons look like buttons: {route}', not plain, plain)
    page.go('#/pods')
    page.wait('the button', "return [...document.querySelectorAll('#main .vt-tools button')].some((b) => b.innerText.trim() === 'Export')")
    check('what writes the rows to a file is called Export', 'Save' not in page.text('#main .vt-tools'), page.text('#main .vt-tools'))


def test_pod_of_no_scheduler_has_one_reason_everywhere(page: Page):
    served = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'unserved'}, 'spec': {'schedulerName': 'my-sched', 'containers': [{'name': 'c', 'image': 'i'}]}}
    api('/api/v1/namespaces/default/pods', 'POST', served)
    api('/apis/apps/v1/namespaces/default/deployments', 'POST', {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': 'elsewhere'}, 'spec': {'replicas': 1, 'selector': {'matchLabels': {'app': 'elsewhere'}}, 'template': {
        'metadata': {'labels': {'app': 'elsewhere'}}, 'spec': served['spec']}}})
    page.allowed.append('berth/v1/whatif')
    reason = 'spec.schedulerName "my-sched"'
    page.open('#/overview')
    page.wait_text(f'no scheduler here serves {reason}', '.reasons')
    page.js("[...document.querySelectorAll('.reasons a')].find((a) => a.innerText.includes('my-sched')).click()")
    page.wait('both are listed', "return [...document.querySelectorAll('#main .vt-row:not([hidden])')].filter((r) => r.innerText.includes('No scheduler')).length === 2")
    check('the overview leads to the pods that no scheduler serves', True)
    page.go('#/queue')
    page.wait_text('2 pods are in no queue')
    check('the queue names pods that are in no queue', 'default/unserved' in page.text('#main') and 'my-sched' in page.text('#main'))
    for route in ('pods/default/unserved', 'decisions/pod/default/unserved', 'whatif?pod=default/unserved'):
        page.go(f'#/{route}')
        page.wait_text(f'No scheduler here serves {reason}')
        page.wait_text('kubectl get pod unserved -n default -o json')
        check(f'{route}: one reason, with the commands', ' or ' not in page.text('#main .note.warn').split('give the pod')[0].split('Add a profile')[0] and 'overwritten' not in page.text('#main'), page.text('#main'))
    page.shot('whatif-unserved')
    page.button('Try it')
    page.wait_text('would go to')
    check('What if tries the pod with a scheduler that runs', 'schedulerName: default-scheduler' in page.js("return document.querySelector('#main .editor textarea').value"))
    owned = page.wait('the pod of the deployment', "return fetch('/api/v1/namespaces/default/pods?labelSelector=app%3Delsewhere').then((r) => r.json()).then((l) => l.items[0]?.metadata.name)")
    page.go(f'#/decisions/pod/default/{owned}')
    page.wait_text('kubectl patch deployment elsewhere -n default -p \'{"spec":{"template":{"spec":{"schedulerName":"default-scheduler"}}}}\'')
    check('the template of an owner is patched', True)
    api('/apis/apps/v1/namespaces/default/deployments/elsewhere', 'DELETE')
    api('/api/v1/namespaces/default/pods/unserved?gracePeriodSeconds=0', 'DELETE')


def test_rebalance_without_a_result_is_no_success(page: Page):
    page.open('#/rebalance')
    page.wait_text('become free', '#main .note.ok')
    page.js("const f = document.querySelector('#main form'); f.selector.value = 'not=there'; f.requestSubmit()")
    page.wait_text('Nothing to move', '#main .note')
    check('a plan without a move is no success', page.js("return !document.querySelector('#main .note.ok')"), page.text('#main'))


def test_import_reads_before_it_asks(page: Page):
    page.open('#/transfer')
    page.wait_text('Drop a file here')
    page.allowed.append('api/v1/import')
    page.js("document.querySelector('#main details').open = true")
    def paste(text, button='Replace the cluster'):
        page.button(button)
        page.js("const t = document.querySelector('#main textarea'); t.value = arguments[0]", text)
        page.button('Import the text')
    paste('kind: [\n')
    page.wait_text('line 2', '#importresult')
    check('a text that cannot be read is refused without a question', page.js("return !document.querySelector('dialog[open]')"), page.text('#importresult'))
    paste('apiVersion: x/v1\nkind: Nothing\nmetadata: {name: q}\n')
    page.wait_text('no such kind', '#importresult')
    check('so is one of which nothing can be taken', page.js("return !document.querySelector('dialog[open]')") and 'as it was' in page.text('#importresult'), page.text('#importresult'))
    paste(json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': [
        *({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': f'imported-{i}'}} for i in range(3)),
        {'apiVersion': 'v1', 'kind': 'Event', 'metadata': {'name': 'old-event'}}, {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'wrong'}, 'spec': {'contaners': []}}]}), 'Add to the cluster')
    page.wait_text('Import 3 objects?', 'dialog')
    page.wait_text('old-event', 'dialog')
    text = page.text('dialog')
    check('the question has kinds and counts, and names what is left out and refused', all(t in text for t in ('3 ConfigMap', 'events are not imported', 'wrong', 'contaners')), text)
    page.shot('import-asks')
    page.button('Import', 'dialog footer')
    page.wait_text('3 created', '#importresult')
    check('the answer names them, too', 'old-event' in page.text('#importresult') and 'wrong' in page.text('#importresult'), page.text('#importresult'))
    for i in range(3):
        api(f'/api/v1/namespaces/default/configmaps/imported-{i}', 'DELETE')


def test_new_creates_with_a_free_name(page: Page):
    page.open('#/overview')
    text = "return document.querySelector('#main .editor textarea')?.value || ''"
    def new(kind):
        page.go('#/settings')
        page.go(f'#/edit?kind={kind}')
        page.wait('the server would take it', "return document.querySelector('#main [role=status]')?.innerText.includes('the server would take it')")
        return page.js(text)
    for expected in ('name: web\n', 'name: web-2\n', 'name: web-3\n'):
        got = new('deployments')
        check(f'a new deployment has a free name: {expected.strip()}', expected in got and got.count(expected.strip().split()[1] + '\n') == 3, got)
        check('and is created', page.js("return document.querySelector('#main .segmented [aria-pressed=true]').innerText") == 'Create')
        page.js("[...document.querySelectorAll('#main button.primary')].find((b) => b.innerText === 'Create').click()")
        page.wait_text('is written')
    for first in ('1', '2'):
        new('pods')
        check(f'a new pod begins with number {first}', page.js("return document.getElementById('firstcopy').value") == first)
        page.js("[...document.querySelectorAll('#main button.primary')].find((b) => b.innerText === 'Create').click()")
        page.wait_text('is written')
    page.go('#/edit?path=/api/v1/namespaces/default/pods/web-1')
    page.wait('an object that is there is replaced', "return document.querySelector('#main .segmented [aria-pressed=true]').innerText === 'Replace'")
    for name in ('web', 'web-2', 'web-3'):
        api(f'/apis/apps/v1/namespaces/default/deployments/{name}', 'DELETE')
    for name in ('web-1', 'web-2'):
        api(f'/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0', 'DELETE')


run(test_new_creates_with_a_free_name, test_import_reads_before_it_asks, test_rebalance_without_a_result_is_no_success, test_pod_of_no_scheduler_has_one_reason_everywhere, test_buttons_look_like_buttons, test_phone_shows_scores_status_and_answers, test_what_belongs_together_is_aligned, test_only_what_differs, test_map_stretches_its_colours, test_messages_show_their_reasons, test_each_screen_has_its_own_icon, test_narrow_navigation_has_labels_on_touch)
