# SPDX-License-Identifier: Apache-2.0
"""The page's frame, tables, object pages, editor, map, configuration, import and export."""
import json
import os
import re
import subprocess
import tempfile
import time

from browser import PATIENCE, ActionChains, Keys, Page, api, check, run

EVIL = '<img src=x onerror="window.__ran=1"><script>window.__ran=1</script>'
MANAGED = 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default%s}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: "%s"}}}]}\n'
ROWS = "return [...document.querySelectorAll('#main .vt-row:not([hidden])')].map(r => r.innerText)"
FOCUS = "const e = document.activeElement; return e ? (e.innerText || e.getAttribute('aria-label') || e.id || e.tagName).trim().slice(0, 60) : ''"


def pod(name, cpu='100m', more=''):
    return MANAGED % (name, more, cpu)


def create(path, text):
    return api(path, 'POST', text, 'application/yaml')


def overview(page: Page):
    page.theme('light')
    page.wait('the tiles are filled', "return [...document.querySelectorAll('.tile .value')].some(e => e.innerText === '5')")
    page.wait('the stream is live', "return document.querySelector('.live').dataset.state === 'live'")
    page.wait_text('Requested of allocatable')
    page.wait_text('nvidia.com/gpu')
    create('/api/v1/namespaces/default/pods', pod('huge', '500'))
    page.wait_text('Insufficient cpu')
    page.wait_text('default/huge')
    check('the overview names what waits, and why', True)
    page.shot('overview-light')
    page.go('#/pods?q=status:Unschedulable')
    page.wait('one row', f"{ROWS}.length === 1")
    check('the link to pending pods shows these only', 'huge' in page.js(ROWS)[0])


def frame(page: Page):
    page.go('#/overview')
    page.key('g', 'n')
    page.wait_text('node-a1')
    check('g n goes to the nodes', page.js('return location.hash').startswith('#/nodes'))
    page.key('?')
    page.wait_text('Keyboard', 'dialog')
    check('? shows the shortcuts', 'Ctrl' in page.text('dialog'))
    page.key(Keys.ESCAPE)
    page.wait('the help is closed', "return !document.querySelector('dialog[open]')")
    page.chord(Keys.CONTROL, 'k')
    page.wait('the palette has the focus', "return document.activeElement.getAttribute('role') === 'combobox'")
    page.key('node-b2')
    page.wait('a hit', "return document.querySelector('.palette li[aria-selected=true]')?.innerText.includes('node-b2')")
    page.key(Keys.ENTER)
    page.wait_text('Biggest pods')
    check('the search leads to a node', page.js('return location.hash') == '#/nodes/node-b2')
    page.shot('node-light')
    create('/api/v1/namespaces/default/configmaps', 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: findable}\n')
    create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: findables.example.com}\nspec: {group: example.com, scope: Cluster, names: {plural: findables, singular: findable, kind: Findable}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n')
    page.chord(Keys.CONTROL, 'k')
    page.key('findable')
    page.wait('objects of every kind', "const t = document.querySelector('.palette').innerText; return t.includes('default/findable') && t.includes('findables.example.com')")
    page.shot('search')
    page.key(Keys.ESCAPE)
    page.wait('the search is closed', "return !document.querySelector('dialog[open]')")
    page.chord(Keys.CONTROL, 'k')
    page.key('configmap findable')
    page.wait('the kind chooses', "return document.querySelector('.palette li[aria-selected=true]')?.innerText.includes('default/findable')")
    page.key(Keys.ENTER)
    page.wait('its page', "return location.hash.endsWith('/default/findable')")
    page.wait_text('ConfigMap')
    check('the search leads to objects of every kind', True)
    api('/api/v1/namespaces/default/configmaps/findable', 'DELETE')
    api('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/findables.example.com', 'DELETE')
    page.go('#/nodes/node-b2')
    page.key('t')
    check('t turns the theme', page.js('return document.documentElement.dataset.theme') == 'dark')
    page.shot('node-dark')
    page.js("location.hash = '#/nonsense/x'")
    page.wait_text('There is no such page')
    page.js("location.hash = '#/pods/default/not-there'")
    page.wait_text('There is no Pod default/not-there')
    page.allowed.append('pods/not-there')
    check('unknown addresses are told', True)
    page.go('#/overview')
    page.key('t')


def tables(page: Page):
    page.go('#/pods')
    for i in range(3):
        create('/api/v1/namespaces/default/pods', pod(f'small-{i}', '100m', ', labels: {app: small}'))
    page.wait('three new rows without a reload', f"return ({ROWS.replace('return ', '')}).filter(t => t.includes('small-')).length === 3")
    check('new pods appear by themselves', True)
    page.wait('they run', f"return ({ROWS.replace('return ', '')}).filter(t => t.includes('small-') && t.includes('Running')).length === 3")
    page.key('/')
    page.key('app=small')
    page.wait('the label filter', f"{ROWS}.length === 3")
    check('a label filters', True)
    page.shot('pods-light')
    page.key(Keys.ENTER)
    page.key(Keys.HOME, ' ', Keys.ARROW_DOWN, ' ')
    check('space selects rows', page.js("return document.querySelectorAll('#main .vt-row[aria-selected=true]').length") == 2)
    page.button('Delete')
    page.wait_text('Delete 2 Pods?', 'dialog')
    check('the focus is on Cancel', page.js(FOCUS) == 'Cancel')
    page.button('Delete', 'dialog footer')
    page.wait('they are gone', f"return ({ROWS.replace('return ', '')}).filter(t => t.includes('small-')).length === 1")
    names = [p['metadata']['name'] for p in api('/api/v1/namespaces/default/pods')['items']]
    check('two were deleted, one is left', sum(n.startswith('small-') for n in names) == 1, names)
    page.js("document.querySelector('.vt-search').value = ''; document.querySelector('.vt-search').dispatchEvent(new Event('input'))")
    routes = page.js("return [...document.querySelectorAll('#nav a.item')].map(a => a.getAttribute('href'))")
    kinds = [r for r in routes if r.split('/')[1] in ('nodes', 'events', 'deployments', 'replicasets', 'statefulsets', 'daemonsets', 'jobs', 'cronjobs', 'namespaces', 'persistentvolumeclaims', 'persistentvolumes',
                                                      'storageclasses', 'priorityclasses', 'poddisruptionbudgets', 'resourceclaims', 'resourceslices', 'deviceclasses')]
    check('every kind has a table', len(kinds) == 17, kinds)
    for r in kinds:
        page.go(r)
        page.wait(f'{r} is loaded', "return !!document.querySelector('#main .vt-count') && !document.querySelector('#main .spin')")
    page.go('#/kind')
    page.wait_text('ConfigMap')
    page.go('#/kind/secrets')
    page.wait_text('No secret')
    create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n'
           '  names: {plural: widgets, singular: widget, kind: Widget}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n')
    create('/apis/example.com/v1/namespaces/default/widgets', 'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: first}\nspec: {size: 3}\n')
    page.go('#/kind/widgets.example.com')
    page.wait('its row', f"{ROWS}.length === 1")
    page.go('#/kind/widgets.example.com/default/first')
    page.wait_text('size: 3')
    check('kinds found by discovery have tables and pages too, custom ones as well', True)


def hostile(page: Page):
    labels = {'evil': 'x'}
    o = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'hostile', 'namespace': 'default', 'labels': labels, 'annotations': {'note': EVIL, 'turned': 'abc\u202edef', 'json': json.dumps({'a': EVIL})}},
         'spec': {'containers': [{'name': 'c', 'image': EVIL.replace(' ', ''), 'resources': {'requests': {'cpu': '900'}}}], 'nodeSelector': {'a': 'b'}}}
    api('/api/v1/namespaces/default/pods', 'POST', o)
    api('/api/v1/namespaces/default/events', 'POST', {'apiVersion': 'v1', 'kind': 'Event', 'metadata': {'name': 'hostile', 'namespace': 'default'}, 'type': 'Warning', 'reason': '<b>Bold</b>', 'message': EVIL,
                                                     'involvedObject': {'apiVersion': 'v1', 'kind': 'Pod', 'name': 'hostile', 'namespace': 'default'}, 'lastTimestamp': '2026-01-01T00:00:00Z'})
    api('/api/v1/namespaces/default/configmaps', 'POST', {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'hostile', 'namespace': 'default'}, 'data': {'x': EVIL, '__proto__': 'p'}})
    page.go('#/pods/default/hostile')
    page.wait_text('onerror=')
    check('an annotation is shown as text', EVIL in page.text('#main'))
    check('a character that turns the direction is shown', 'abc[U+202E]def' in page.text('#main'))
    page.shot('pod-light')
    page.button('YAML', '#main .tabs')
    page.wait('the YAML is there', "return document.querySelector('#main .editor pre')?.innerText.includes('onerror=')")
    shows = "return document.querySelector('#main .editor pre').innerText.includes('managedFields')"
    check('who manages which field is hidden at first', not page.js(shows))
    page.js("document.querySelector('.yamlview input').click()")
    page.wait('a switch shows it', shows)
    page.button('Events', '#main .tabs')
    page.wait_text('<b>Bold</b>')
    page.go('#/events?q=Bold')
    page.wait_text('<b>Bold</b>')
    page.go('#/kind/configmaps/default/hostile')
    page.wait_text('onerror=')
    page.js("location.hash = '#/pods/default/' + encodeURIComponent('<img src=x onerror=window.__ran=1>')")
    page.wait_text('There is no Pod')
    page.allowed.append('%3Cimg')
    page.js("location.hash = '#/edit?path=' + encodeURIComponent('//example.com/api/x')")
    page.wait_text('This is no object')
    check('nothing of it became markup', page.js("return document.querySelectorAll('#main script, #main img').length") == 0)
    check('nothing of it ran', page.js('return window.__ran') == 0)


def editor(page: Page):
    page.go('#/edit?kind=nodes')
    page.wait('the template is valid', "return document.querySelector('#main [role=status]').innerText.includes('the server would take it')")
    check('the template of a node is accepted', True)
    templates = page.js("""return Promise.all([import('./templates.js'), import('./kinds.js')]).then(([t, k]) => t.TEMPLATES.map(x => {
        const kind = k.kindByName(x.kind); return [x.id, t.numbered(x.text, 1), k.objectPath(kind, kind.namespaced ? 'default' : '')]; }))""")
    refused = []
    for name, text, path in templates:
        try:
            api(path + '?dryRun=All', 'POST', text, 'application/yaml')
        except AssertionError as e:
            refused.append(f'{name}: {e}')
    check('the server takes every template as it is', len(templates) >= 22 and not refused, '\n'.join(refused))
    page.yaml('apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n bad: [\n')
    page.wait('the syntax error has a line', "return /Line [4-7]/.test(document.querySelector('.problems').innerText)")
    check('a syntax error is shown at its line', True)
    page.yaml('apiVersion: v1\nkind: Pod\nmetadata:\n  name: bad\nspec:\n  containers:\n  - name: c\n    image: i\n    resources:\n      requests:\n        cpu: "-1"\n')
    page.wait('the field is found', "return /Line (9|10|11)\\b/.test(document.querySelector('.problems').innerText)")
    check("the server's refusal is shown at the field's line", 'requests' in page.text('.problems'), page.text('.problems'))
    page.yaml('apiVersion: v1\nkind: Pod\nmetadata:\n  name: typo\nspec:\n  nodeSelecter: {a: b}\n  containers:\n  - {name: c, image: i}\n')
    page.wait('the field is told', "return /Line 6\\b/.test(document.querySelector('.problems').innerText)")
    check('a field that is none has its line and the one that was meant', 'did you mean nodeSelector?' in page.text('.problems'), page.text('.problems'))
    page.shot('editor-light')
    page.allowed += ['dryRun=All', '/berth/v1/manifest', 'schedulerconfiguration', 'configs/check', 'api/v1/import']
    page.yaml('apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team-{n}\n')
    page.js("const c = document.getElementById('copies'); c.value = 3; c.dispatchEvent(new Event('input'))")
    page.wait('three would be taken', "return document.querySelector('#main [role=status]').innerText.startsWith('3 objects')")
    page.js("document.querySelector('#main .editor textarea').focus()")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.wait_text('3 objects written')
    names = [n['metadata']['name'] for n in api('/api/v1/namespaces')['items']]
    check('copies with a name pattern', {'team-1', 'team-2', 'team-3'} <= set(names), names)
    page.go('#/edit?path=/apis/apps/v1/namespaces/default/deployments/hello')
    text = page.wait('the object is loaded', "const t = document.querySelector('#main .editor textarea').value; return t.includes('replicas: 3') && t")
    page.yaml(text.replace('replicas: 3', 'replicas: 4'))
    page.button('Show changes')
    page.wait_text('replicas: 4', 'dialog .diff')
    check('what would change is shown first', '- ' in page.text('dialog .diff') and 'replicas: 3' in page.text('dialog .diff'))
    page.shot('diff-light')
    page.button('Replace', 'dialog footer')
    page.wait_text('is written')
    check('and then written', api('/apis/apps/v1/namespaces/default/deployments/hello')['spec']['replicas'] == 4)
    other = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'shared'}, 'data': {'k': 'theirs'}}
    path = '/api/v1/namespaces/default/configmaps/shared'
    api(path + '?fieldManager=team-b', 'PATCH', other, 'application/apply-patch+yaml')
    page.allowed += ['configmaps/shared']
    page.go('#/edit?kind=nodes')
    page.wait('a template', "return document.querySelector('#main .editor textarea').value.includes('kind: Node')")
    page.button('Apply', '#main .segmented')
    page.yaml('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shared\n  namespace: default\ndata:\n  k: ours\n')
    page.wait('the conflict is told while typing', "return document.querySelector('.problems').innerText.includes('team-b')")
    page.js("document.querySelector('#main .editor textarea').focus()")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.wait_text('team-b', 'dialog .conflicts')
    check('a conflict names the field and its manager', '.data.k' in page.text('dialog .conflicts'), page.text('dialog'))
    page.shot('conflict-light')
    page.button('Leave it', 'dialog footer')
    page.wait('it is refused', "return !document.querySelector('dialog') && document.querySelector('.problems').innerText.includes('team-b')")
    check('what is left stays', api(path)['data']['k'] == 'theirs')
    page.js("document.querySelector('#main .editor textarea').focus()")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.wait_text('team-b', 'dialog .conflicts')
    page.button('Overwrite', 'dialog footer')
    page.wait_text('is written')
    check('what is overwritten is', api(path)['data']['k'] == 'ours')
    page.go('#/edit?kind=pods')
    page.wait('a template again', "return document.querySelector('#main .editor textarea').value.includes('kind: Pod')")
    page.chord(Keys.CONTROL, Keys.HOME)
    page.key(Keys.TAB)
    check('Tab indents', page.js("return document.querySelector('#main .editor textarea').value.startsWith('  apiVersion')"))
    page.key(Keys.ESCAPE, Keys.TAB)
    check('Esc, then Tab leaves', page.js("return document.activeElement.tagName") != 'TEXTAREA')


def large_text(page: Page):
    """An object of a megabyte in the editor: only the lines in sight are drawn and held, and they are those of the text."""
    maps, begin, end = '/api/v1/namespaces/default/configmaps', [Keys.CONTROL, Keys.HOME], [Keys.CONTROL, Keys.END]
    def open_map(name, data):
        api(maps, 'POST', {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'a': data}})
        page.go(f'#/edit?path={maps}/{name}')
        page.wait('the object is loaded', "return document.querySelector('#main .editor pre')?.innerText.includes('data:')", seconds=30)
        page.js("document.querySelector('#main .editor textarea').focus()")
    def copied():
        page.chord(Keys.CONTROL, 'a')
        return page.js("""const d = new DataTransfer(); document.querySelector('#main .editor textarea').dispatchEvent(new ClipboardEvent('copy', {clipboardData: d, cancelable: true, bubbles: true}));
                          return d.getData('text/plain')""")
    def paste(text):
        page.js("const i = new DataTransfer(); i.setData('text/plain', arguments[0]); document.activeElement.dispatchEvent(new ClipboardEvent('paste', {clipboardData: i, cancelable: true, bubbles: true}))", text)
    def has_line(text):
        page.wait(f'the line {text} is drawn', "return [...document.querySelectorAll('#main .editor .l')].some(l => l.textContent.trim() === arguments[0])", text)
    open_map('large', '\n'.join(f'line {i} of a long text, number: {i}' for i in range(22000)))
    before = copied()
    check('all of it is selected and copied', len(before) > 800000 and before.count('\n') > 22000, len(before))
    page.chord(*begin)
    page.key(Keys.PAGE_DOWN, Keys.PAGE_DOWN, Keys.PAGE_DOWN, Keys.PAGE_DOWN, Keys.PAGE_DOWN, Keys.HOME, *[Keys.ARROW_RIGHT] * 4)
    line = page.js("const a = document.querySelector('#main .editor textarea'); return a.value.slice(a.selectionStart).split('\\n')[0]")
    page.key('typed ')
    has_line(f'typed {line}')
    ActionChains(page.d).key_down(Keys.SHIFT).send_keys(*[Keys.PAGE_DOWN] * 8).key_up(Keys.SHIFT).perform()
    page.key(Keys.DELETE)
    short = copied()
    check('a selection longer than what is in sight is deleted', 'typed ' in short and 80 < before.count('\n') - short.count('\n') < 600 and short[-200:] == before[-200:], before.count('\n') - short.count('\n'))
    page.chord(Keys.CONTROL, 'z')
    check('and comes back', copied() == before.replace(line, f'typed {line}', 1))
    page.chord(Keys.CONTROL, 'z')
    check('what was typed in one go is undone in one', copied() == before)
    page.chord(Keys.CONTROL, 'y')
    page.chord(Keys.CONTROL, 'f')
    page.key('LINE 21999 ')
    page.wait('one is found', "return document.querySelector('.find [role=status]').innerText === '1 of 1' && document.querySelector('#main .editor .hit')?.textContent === 'line 21999 '")
    page.shot('editor-find')
    page.key(Keys.ESCAPE)
    paste('pasted ')
    has_line('pasted of a long text, number: 21999')
    page.key(Keys.HOME)
    page.d.execute_cdp_cmd('Input.imeSetComposition', {'text': 'に', 'selectionStart': 1, 'selectionEnd': 1})
    page.d.execute_cdp_cmd('Input.imeSetComposition', {'text': 'にほ', 'selectionStart': 2, 'selectionEnd': 2})
    page.d.execute_cdp_cmd('Input.insertText', {'text': '日本'})
    page.wait('the composed text is drawn', "return [...document.querySelectorAll('#main .editor .l')].some(l => l.textContent.startsWith('日本'))")
    check('a composition is written, and is one step', '日本    pasted of' in copied(), copied()[-300:])
    page.chord(Keys.CONTROL, 'z')
    check('and is undone as one', '日' not in copied() and 'に' not in copied())
    page.chord(*end)
    drawn = page.js("""const e = document.querySelector('#main .editor'), held = e.querySelector('textarea').value.split('\\n'), total = Number(e.querySelector('.gutter span:last-child').textContent);
        const spans = [...e.querySelectorAll('.l')], y = (x) => Math.round(x.getBoundingClientRect().top), a = e.querySelector('textarea');
        return {drawn: spans.length, wrong: spans.filter((l, i) => l.textContent !== held[i]).length, total,
            block: spans.find(l => l.textContent.includes('line 21990 ')).querySelector('span').className, above: y(spans[0]) - y(a) - 6,
            height: [e.querySelector('pre').offsetHeight, e.querySelector('.gutter').offsetHeight, total * 18 + 12], over: [a.scrollWidth - a.clientWidth, a.scrollHeight - a.clientHeight]}""")
    check('of a large text the lines in sight are held and drawn, in the same place', drawn['drawn'] < 400 and drawn['wrong'] == 0 and drawn['block'] == 's' and drawn['above'] == 0, drawn)
    check('and the rest has its place', len(set(drawn['height'])) == 1 and drawn['over'] == [0, 0], drawn)
    page.shot('editor-large')
    open_map('wide', 'abcdefghi' * 100000)
    page.chord(*begin)
    page.key(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.END)
    paste('\u202eturned')
    page.key('typed')
    page.wait('the end of the line is drawn', "return [...document.querySelectorAll('#main .editor .l')].some(l => /\u2190turnedtyped$/.test(l.textContent) && l.textContent.length < 5000)")
    check('a character that turns the direction is shown as a symbol, and counted', 'U+202E' in page.js("return document.querySelector('#main .editor .gutter .w').title") and page.text('#main .editor .turn') == '←')
    check('but copied as it is', '\u202eturned' in copied())
    page.shot('editor-wide')
    for name in ('large', 'wide'):
        api(f'{maps}/{name}', 'DELETE')


def cluster_map(page: Page):
    page.go('#/map')
    page.wait_text('5 nodes in 3 groups')
    page.js("document.querySelector('.mapscroll').focus()")
    page.key(Keys.ARROW_RIGHT)
    page.wait('a cell is described', "return !!document.querySelector('.charttip:not([hidden])') && document.querySelector('[aria-live]') !== null")
    first = page.text('.charttip')
    page.key(Keys.ARROW_RIGHT)
    check('arrows move from cell to cell', page.text('.charttip') != first)
    page.shot('map-light')
    page.key('+')
    page.key(Keys.HOME, Keys.ENTER)
    page.wait_text('Biggest pods')
    check('Enter opens the node', page.js('return location.hash').startswith('#/nodes/node-'))
    page.go('#/map?resource=nvidia.com%2Fgpu&by=none')
    page.wait_text('nvidia.com/gpu: 0 of 4')
    check('resource and group stand in the address', True)


def configuration(page: Page):
    page.go('#/config')
    text = page.wait('the running configuration', "const t = document.querySelector('#main .editor textarea').value; return t.includes('profiles:') && t")
    page.wait('it is valid', "return /what runs|Valid/.test(document.querySelector('#main [role=status]').innerText)")
    page.button('Guests', '#main .tabs')
    page.wait_text('No WebAssembly guests run')
    page.button('Against running', '#main .tabs')
    page.yaml(text + 'nonsense: 1\n')
    page.wait('the error is told', "return document.querySelector('.problems').innerText.includes('nonsense')")
    check('an unknown field is told while typing', 'Line' in page.text('.problems'), page.text('.problems'))
    page.yaml('apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: default-scheduler\n- schedulerName: second\n')
    page.wait('valid', "return document.querySelector('#main [role=status]').innerText === 'Valid'")
    page.shot('config-light')
    page.button('Apply')
    page.button('Apply', 'dialog footer')
    page.wait('in force', "return document.querySelector('#toasts').innerText.includes('in force')", seconds=40)
    running = json.dumps(api('/api/v1/schedulerconfiguration'))
    check('the new configuration runs', '"second"' in running, running[:500])
    page.button('Roll back', '#main .tabs')
    page.wait_text('at the start of this session')
    page.wait('the button', "const b = [...document.querySelectorAll('#main table button')].filter(b => b.innerText === 'Roll back').pop(); b?.click(); return !!b")
    page.wait_text('rolled back', seconds=40)
    check('and the old one again', '"second"' not in json.dumps(api('/api/v1/schedulerconfiguration')))


def transfer(page: Page):
    page.go('#/transfer')
    page.wait_text('Drop a file here')
    page.shot('transfer-dark')
    page.button('Add to the cluster')
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, 'some.yaml')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(pod('imported') + '---\napiVersion: v1\nkind: Pod\nmetadata: {name: "Not A Name"}\nspec: {containers: []}\n')
        page.one('#importfile').send_keys(path)
        page.wait_text('Import 2 objects?', 'dialog')
        page.button('Import', 'dialog footer')
        page.wait_text('The last import')
    check('what was refused is listed', 'Not A Name' in page.text('#main'), page.text('#importresult'))
    check('the rest is there', api('/api/v1/namespaces/default/pods/imported')['metadata']['name'] == 'imported')
    page.button('Reset the cluster')
    page.wait_text('Reset the cluster?', 'dialog')
    page.button('Cancel', 'dialog footer')
    check('reset asks first', len(api('/api/v1/nodes')['items']) == 5)
    page.button('Reset the cluster')
    page.button('Reset', 'dialog footer')
    page.wait_text('as it was at the start', '#toasts')
    check('reset brings the first state back', len(api('/api/v1/nodes')['items']) == 5)
    for path in ('/apis/apps/v1/namespaces/default/deployments', '/api/v1/nodes', '/api/v1/namespaces/default/pods'):
        api(path, 'DELETE')
    page.go('#/overview')
    page.wait_text('This cluster has no nodes')
    page.shot('empty-dark')
    page.button('Load the example')
    page.wait('six nodes', "return [...document.querySelectorAll('.tile .value')].some(e => e.innerText === '6')")
    page.wait_text('Insufficient', seconds=30)
    check('an empty cluster offers an example', True)


def lost_and_found(page: Page):
    page.go('#/pods')
    page.wait('live', "return document.querySelector('.live').dataset.state === 'live'")
    page.allowed.append('berth/v1/watch')
    page.d.execute_cdp_cmd('Network.enable', {})
    page.d.execute_cdp_cmd('Network.emulateNetworkConditions', {'offline': True, 'latency': 0, 'downloadThroughput': 0, 'uploadThroughput': 0})
    page.js("import('/ui/store.js').catch(() => {})")
    page.allowed.append('ERR_INTERNET_DISCONNECTED')
    page.js("return import('./store.js').then(s => s.restart())")
    page.wait('the banner', "return !document.getElementById('banner').hidden && document.getElementById('banner').innerText.includes('lost')")
    check('a lost connection is told', page.js("return document.querySelector('.live').dataset.state") == 'lost')
    page.shot('lost-light')
    create('/api/v1/namespaces/default/pods', pod('meanwhile'))
    page.d.execute_cdp_cmd('Network.emulateNetworkConditions', {'offline': False, 'latency': 0, 'downloadThroughput': -1, 'uploadThroughput': -1})
    page.wait('it comes back by itself', f"return document.getElementById('banner').hidden && ({ROWS.replace('return ', '')}).some(t => t.includes('meanwhile'))", seconds=30)
    check('and what happened meanwhile is there', True)


def keyboard_walk(page: Page):
    """Every control of every screen can be reached, and nothing holds the focus."""
    for route in ('#/overview', '#/pods', '#/map', '#/config', '#/transfer', '#/settings'):
        page.go(route)
        page.js("document.activeElement.blur(); document.getElementById('main').focus()")
        seen, shown = [], True
        for _ in range(40):
            page.key(Keys.ESCAPE, Keys.TAB) if page.js("return document.activeElement.tagName === 'TEXTAREA'") else page.key(Keys.TAB)
            e = page.js("""const e = document.activeElement; if (!e || e === document.body) return null; const b = e.getBoundingClientRect(), s = getComputedStyle(e);
                           return [e.tagName + (e.id || e.innerText || e.getAttribute('aria-label') || '').slice(0, 30), b.width > 0, e.matches(':focus-visible')]""")
            if e is None:
                break
            seen.append(e[0])
            shown = shown and e[2]
            if len(seen) > 4 and seen[-1] == seen[-2] == seen[-3]:
                check(f'{route} has no keyboard trap', False, seen[-5:])
                break
        check(f'{route} can be walked with Tab, the focus is seen', len(set(seen)) > 3 and shown, seen)


def dark_pictures(page: Page):
    page.theme('dark')
    page.go('#/overview')
    page.wait('the bars', "return document.querySelectorAll('.resourceline').length > 2")
    page.shot('overview-dark')
    for route, name in (('#/pods', 'pods-dark'), ('#/map', 'map-dark'), ('#/edit?kind=pods', 'editor-dark'), ('#/config', 'config-dark')):
        page.go(route)
        page.wait('it is loaded', "return !document.querySelector('#main .spin')")
        page.js("return new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))")
        page.shot(name)
    # Text on its ground: at least 4.5 to 1 in both themes, for the colours that carry text.
    for theme in ('light', 'dark'):
        page.js("document.documentElement.dataset.theme = arguments[0]", theme)
        worst = page.js("""
          const s = getComputedStyle(document.documentElement), lum = (c) => { const m = /^#(..)(..)(..)$/.exec(c.trim()); return m.slice(1).map(x => parseInt(x, 16) / 255).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4).reduce((a, x, i) => a + x * [.2126, .7152, .0722][i], 0); };
          const pairs = []; for (const t of ['--text', '--text-2', '--text-3', '--accent', '--ok', '--warn', '--bad', '--info']) for (const g of ['--surface', '--bg']) pairs.push([t, g]);
          for (const t of ['ok', 'warn', 'bad', 'info']) pairs.push(['--' + t, '--' + t + '-soft']);
          pairs.push(['--accent-text', '--accent'], ['--nav-text', '--nav-bg'], ['--nav-text-2', '--nav-bg']);
          return pairs.map(([a, b]) => { const x = lum(s.getPropertyValue(a)), y = lum(s.getPropertyValue(b)); return [(Math.max(x, y) + .05) / (Math.min(x, y) + .05), a, b]; }).sort((p, q) => p[0] - q[0])[0];""")
        check(f'every text has a contrast of 4.5 or more, {theme}', worst[0] >= 4.5, worst)


# What sticks out of the window or is cut off; tables, lists, tabs and the editor scroll in a box of their own.
STICKS_OUT = """
const out = [], main = document.getElementById('main'), scrolls = (e) => e.id !== 'main' && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
if (main.scrollWidth > main.clientWidth) out.push(`the page is ${main.scrollWidth} wide in ${main.clientWidth}`);
for (const e of document.querySelectorAll('#frame *')) {
  if (!e.offsetParent || e.closest('.sr, svg, .editor')) continue;
  let box = e.parentElement;
  while (box && !scrolls(box)) box = box.parentElement;
  const cut = e.innerText && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'hidden';
  if (!box && (cut || e.getBoundingClientRect().right > innerWidth + 1)) out.push(`${e.tagName}.${e.className}: ${e.innerText.slice(0, 60)}`);
}
return out;"""


def small_screens(page: Page):
    """On a tablet and a phone everything is there, and nothing is cut; light and dark."""
    create('/api/v1/namespaces/default/pods', pod('does-not-fit-anywhere', '700'))
    page.theme('light')
    ready = "return !document.querySelector('#main .spin') && !!document.querySelector('#main .screen').firstChild"
    for name, width, height in (('tablet', 768, 1024), ('phone', 390, 844)):
        page.d.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': True})
        bad = []
        for route in ('overview', 'map', 'nodes', 'pods', 'nodes/node-a1', 'pods/default/does-not-fit-anywhere', 'decisions', 'decisions/pod/default/does-not-fit-anywhere', 'whatif?pod=default/does-not-fit-anywhere',
                      'capacity', 'tour', 'weights', 'drain?nodes=node-a1', 'rebalance', 'queue', 'timeline', 'config', 'configdiff', 'edit', 'transfer', 'settings', 'scenarios', 'replay', 'events'):
            page.go(f'#/{route}')
            page.wait('it is loaded', ready)
            page.js("return new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))")
            bad += [f'#/{route} {x}' for x in page.js(STICKS_OUT)[:5]]
            page.js("document.documentElement.dataset.theme = 'dark'") if route == 'overview' else None
            page.shot(f'{name}-{route.split("?")[0].replace("/", "-")}')
            page.js("document.documentElement.dataset.theme = 'light'")
        check(f'nothing sticks out or is cut on a {name}', not bad, '\n'.join(bad))
    page.js("document.querySelector('#top button').click()")
    page.wait('the drawer has the focus', "return document.getElementById('nav').contains(document.activeElement)")
    page.js("document.querySelector('#nav a[href=\"#/queue\"]').click()")
    page.wait('it closes behind who leaves by it', "return location.hash === '#/queue' && getComputedStyle(document.getElementById('nav')).visibility === 'hidden'")
    check('a phone has its navigation in a drawer', True)
    page.d.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
    api('/api/v1/namespaces/default/pods/does-not-fit-anywhere', 'DELETE')


def rollout(page: Page):
    path = '/apis/apps/v1/namespaces/default/deployments'
    create(path, 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: again}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: again}}\n  template:\n    metadata: {labels: {app: again}}\n    spec: {containers: [{name: c, image: i}]}\n')
    page.open('#/deployments/default/again')
    page.press('Restart')
    page.wait_text('The pods of again are replaced', '#toasts')
    template = api(f'{path}/again')['spec']['template']
    check('a workload is restarted as kubectl does it', 'kubectl.kubernetes.io/restartedAt' in template['metadata'].get('annotations', {}), template)
    api(f'{path}/again', 'DELETE')
    # Back to the first of two images: a deployment's revisions are replica sets, a stateful set's are controller revisions.
    for kind, plural, more in (('Deployment', 'deployments', ''), ('StatefulSet', 'statefulsets', '  serviceName: s\n')):
        path = f'/apis/apps/v1/namespaces/default/{plural}'
        create(path, f'apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: back}}\nspec:\n  replicas: 1\n{more}  selector: {{matchLabels: {{app: back}}}}\n  template:\n    metadata: {{labels: {{app: back}}}}\n    spec: {{containers: [{{name: c, image: first}}]}}\n')
        page.open(f'#/{plural}/default/back?tab=history')
        page.wait_text('Revision 1')
        api(f'{path}/back', 'PATCH', {'metadata': {'annotations': {'mine': 'stays'}}, 'spec': {'template': {'spec': {'containers': [{'name': 'c', 'image': 'second'}]}}}}, 'application/strategic-merge-patch+json')
        page.wait_text('Revision 2')
        page.wait('what has changed', "const t = document.querySelector('#main .revision .diff')?.innerText || ''; return t.includes('image: second') && t.includes('image: first')")
        page.shot(f'history-{plural}')
        page.press('Back to revision 1')
        page.wait_text('image: first', 'dialog .diff')
        page.button('Go back', 'dialog footer')
        page.wait_text('Revision 3')
        back = api(f'{path}/back')
        check(f'a {kind} goes back to an earlier revision', back['spec']['template']['spec']['containers'][0]['image'] == 'first' and 'pod-template-hash' not in back['spec']['template']['metadata']['labels'], back['spec']['template'])
        page.open('#/pods')  # or its page may look once more for what is gone, and the console tells
        api(f'{path}/back', 'DELETE')


def draining(page: Page):
    """The button under the preview cordons and evicts; a budget holds, Stop stops, what has no controller stays."""
    shape = {'cpu': '1', 'memory': '1Gi', 'pods': '10'}
    api('/api/v1/nodes', 'POST', {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'leave', 'labels': {'only': 'here'}}, 'status': {'capacity': shape, 'allocatable': shape}})
    def deploy(name):
        api('/apis/apps/v1/namespaces/default/deployments', 'POST', {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': name}, 'spec': {'replicas': 2, 'selector': {'matchLabels': {'app': name}}, 'template': {
            'metadata': {'labels': {'app': name}}, 'spec': {'nodeSelector': {'only': 'here'}, 'containers': [{'name': 'c', 'image': 'i'}]}}}})
    def on_node():
        return sorted(p['metadata']['name'].split('-')[0] for p in api('/api/v1/pods?fieldSelector=spec.nodeName%3Dleave')['items'])
    deploy('free')
    deploy('held')
    create('/api/v1/namespaces/default/pods', MANAGED.replace('spec: {', 'spec: {nodeSelector: {only: here}, ') % ('alone', '', '1m'))
    budget = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
    create(budget, 'apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: held}\nspec: {minAvailable: 2, selector: {matchLabels: {app: held}}}\n')
    page.open('#/nodes/leave')
    page.wait('five pods run there', "return fetch('/api/v1/pods?fieldSelector=spec.nodeName%3Dleave').then(r => r.json()).then(l => l.items.filter(p => p.status.phase === 'Running').length === 5)")
    page.button('Drain')
    page.wait_text('blocked', '.q-drain-result')
    page.allowed += ['/eviction']
    page.button('Drain leave', '.q-drain-result')
    page.wait_text('without a controller', 'dialog')
    announced = "return document.querySelector('dialog [role=status]')?.innerText || ''"
    check('the question counts what would be evicted as it is', '4 pods evicted; 1 pod stays.' in page.js(announced), page.text('dialog'))
    page.js("document.querySelector('dialog input[type=checkbox]').click()")
    check('and with a tick what is evicted then', '5 pods evicted. ' in page.js(announced), page.text('dialog'))
    page.js("document.querySelector('dialog input[type=checkbox]').click()")
    page.shot('drain-asks')
    page.button('Drain', 'dialog footer')
    state = "return [...document.querySelectorAll('.draining .vt-row:not([hidden])')].map(r => r.innerText.replaceAll('\\n', ' ')).join('\\n')"
    page.wait('two are gone', "return document.querySelector('.draining [role=status]').innerText.startsWith('2 of 4 pods gone, 2 wait, 1 stay')")
    page.wait('the reasons', f"const t = (() => {{ {state} }})(); return t.includes('disruption budget') && t.includes('no controller')")
    check('a drain evicts and respects budgets', on_node() == ['alone', 'held', 'held'] and api('/api/v1/nodes/leave')['spec'].get('unschedulable'), on_node())
    page.shot('drain-waits')
    page.go('#/overview')
    page.go('#/drain?nodes=leave')
    page.button('Stop', '.draining')
    page.wait_text('Stopped', '.draining')
    api(f'{budget}/held', 'DELETE')
    page.button('Drain leave', '.q-drain-result')
    page.wait_text('without a controller', 'dialog')
    page.js("document.querySelector('dialog input[type=checkbox]').click()")
    page.button('Drain', 'dialog footer')
    page.wait_text('Drained: 3 of 3 pods gone', '.draining', seconds=40)
    check('and goes on to the end when nothing holds it', on_node() == [], on_node())
    for name in ('free', 'held'):
        api(f'/apis/apps/v1/namespaces/default/deployments/{name}', 'DELETE')
    api('/api/v1/nodes/leave', 'DELETE')


def labels_and_taints(page: Page):
    def node():
        return api('/api/v1/nodes/marked')
    def change(button, done, **fields):
        page.press(button, '#main .objecthead')
        page.wait('the dialog', "return !!document.querySelector('dialog[open] .primary')")
        for name, text in fields.items():
            page.js("document.getElementById(arguments[0]).value = arguments[1]", name, text)
        page.button('Change', 'dialog footer')
        page.wait(done, "return fetch('/api/v1/nodes/marked').then(r => r.text()).then(t => t.includes(arguments[0]) && !document.querySelector('dialog[open]'))", done)
        page.wait_text(done)
    create('/api/v1/nodes', 'apiVersion: v1\nkind: Node\nmetadata: {name: marked, labels: {old: one}}\nspec: {taints: [{key: gone, effect: NoExecute}]}\n')
    page.open('#/nodes/marked')
    change('Label', 'rack', labelkey='rack', labelvalue='r7')
    check('a label is added', node()['metadata']['labels'].items() >= {'old': 'one', 'rack': 'r7'}.items(), node()['metadata'])
    change('Taint', 'dedicated', taintkey='dedicated', taintvalue='db', tainteffect='PreferNoSchedule')
    mine = [t for t in node()['spec']['taints'] if t['key'] in ('gone', 'dedicated')]
    check('a taint with its effect is added', {'key': 'dedicated', 'value': 'db', 'effect': 'PreferNoSchedule'} in mine and len(mine) == 2, mine)
    for button, text in (('Taint', 'gone'), ('Label', 'old=one')):
        page.press(button, '#main .objecthead')
        page.js("[...document.querySelectorAll('dialog label.check')].find(l => l.innerText.includes(arguments[0])).click()", text)
        if button == 'Taint':
            page.shot('node-taints')
        page.button('Change', 'dialog footer')
        page.wait('the dialog is closed', "return !document.querySelector('dialog[open]')")
        page.js("location.hash = '#/nodes'")
        page.open('#/nodes/marked')
    n = node()
    check('both are removed again', 'old' not in n['metadata']['labels'] and 'gone' not in [t['key'] for t in n['spec']['taints']], n)
    page.press('Label', '#main .objecthead')
    page.js("document.getElementById('labelvalue').value = 'x'")
    page.button('Change', 'dialog footer')
    page.wait_text('a value but no key', '#toasts')
    check('a label without a key is refused', True)
    api('/api/v1/nodes/marked', 'DELETE')


def columns_fit(page: Page):
    """Headers stand over their cells, and a name is cut only when there is no room for it."""
    long = 'payment-service-frontend-5b7d9c5b'
    create('/api/v1/namespaces/default/pods', pod(long))
    page.open('#/pods')
    page.wait('its row', f"return ({ROWS.replace('return ', '')}).some(t => t.includes('{long}'))")
    name = f"[...document.querySelectorAll('#main .vt-row:not([hidden]) .vt-cell')].find(c => c.innerText === '{long}')"
    page.wait('all of the name is seen', f"return {name}.scrollWidth <= {name}.clientWidth")
    check('a long name has the room that others leave', True)
    page.wait('the message', "return [...document.querySelectorAll('#main .vt-head button')].some(b => b.innerText === 'Message')")
    page.go('#/decisions')
    page.wait_text(long)
    lefts = page.js("const x = (css) => [...document.querySelector(css).children].slice(0, 7).map(e => Math.round(e.getBoundingClientRect().left)); return [x('.q-dhead'), x('.q-row .q-drow')]")
    check('headers of the decisions stand over their columns', lefts[0] == lefts[1], lefts)
    api(f'/api/v1/namespaces/default/pods/{long}', 'DELETE')
    narrow, broad = 'n-' + 'i' * 30, 'n-' + 'iw' * 15
    for n in (narrow, broad):
        create('/api/v1/namespaces/default/pods', pod(n))
    page.open('#/pods')
    page.d.refresh()
    page.wait('of two names of one length the wider is seen, too', f"const c = {name.replace(long, broad)}; return c && c.scrollWidth <= c.clientWidth")
    check('a name is as wide as it is drawn, not as it has letters', True)
    for n in (narrow, broad):
        api(f'/api/v1/namespaces/default/pods/{n}', 'DELETE')


def token(page: Page):
    """A server that wants a token: the page itself is no secret, what it asks for is."""
    with tempfile.TemporaryDirectory() as d:
        path, log = os.path.join(d, 'tokens'), os.path.join(d, 'log')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('s3cret,admin,1,"system:masters"\n')
        os.chmod(path, 0o600)
        with open(log, 'wb') as out:
            server = subprocess.Popen([os.path.join(os.environ['BERTH_BIN'], 'berth-simulator'), '--port', '0', '--token-file', path], stdout=out, stderr=out)
        try:
            end, port = time.monotonic() + 15 * PATIENCE, None
            while port is None:
                with open(log, encoding='utf-8', errors='replace') as f:
                    port = re.search(r'port=(\d+)', f.read())
                assert time.monotonic() < end, 'berth-simulator did not start'
                time.sleep(0.05)
            page.allowed += ['401', f':{port[1]}/']
            page.also.add(f'127.0.0.1:{port[1]}')
            page.d.get(f'http://127.0.0.1:{port[1]}/ui/#/settings')
            page.wait('the banner asks for a token', "return document.getElementById('banner')?.innerText.includes('wants a token')")
            for text in ('wrong', 's3cret'):
                page.wait('the field for it', "const t = document.getElementById('token'); if (t) t.value = ''; return !!t")
                page.one('#token').send_keys(text, Keys.ENTER)
                page.wait('the answer to it', "return document.getElementById('toasts').innerText.includes(arguments[0])", 'Unauthorized' if text == 'wrong' else 'accepts it')
            page.wait('the stream is live', "return document.querySelector('.live').dataset.state === 'live'")
            check('with the token the page works, without it only says so', page.js("return document.getElementById('banner').hidden"))
            page.note_refused()
        finally:
            server.terminate()
            server.wait()
            page.d.get('about:blank')


def many(page: Page):
    """A large cluster: only what is in sight exists."""
    shape = {'cpu': '16', 'memory': '64Gi', 'pods': '110'}
    items = [{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': f'big-{i}', 'labels': {'topology.kubernetes.io/zone': f'zone-{i % 3}', 'pool': f'pool-{i % 5}'}}, 'status': {'allocatable': shape, 'capacity': shape}} for i in range(5000)]
    items += [{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': f'many-{i}', 'namespace': 'default', 'labels': {'app': f'many-{i % 7}'}},
               'spec': {'nodeName': f'big-{i * 7 % 5000}', 'containers': [{'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': '2', 'memory': '1Gi'}}}]}} for i in range(10000)]
    api('/api/v1/import?mode=merge', 'POST', {'apiVersion': 'v1', 'kind': 'List', 'items': items})
    page.go('#/map?by=pool')
    page.wait_text('5,006 nodes in 6 groups', seconds=30)
    page.js("document.querySelector('.mapscroll').focus()")
    page.key(Keys.ARROW_DOWN, Keys.ARROW_DOWN, '+', '+')
    check('the map shows 5,000 nodes', 'requested' in page.text('#main'))
    page.key('0')
    page.js("return new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))")
    page.shot('map-5000')
    page.go('#/pods')
    page.wait('all pods are counted', "return /^10,0\\d\\d rows$/.test(document.querySelector('.vt-count').innerText)", seconds=30)
    page.js("document.querySelector('.vt-scroll').focus()")
    page.key(Keys.END)
    page.wait('the last row', "return [...document.querySelectorAll('#main .vt-row:not([hidden])')].some(r => r.getAttribute('aria-rowindex') === document.querySelector('.vt-scroll').getAttribute('aria-rowcount'))")
    rows = page.js("return document.querySelectorAll('#main .vt-row').length")
    check('of 10,000 pods only the rows in sight exist', 10 < rows < 120, rows)
    api('/api/v1/reset', 'PUT')


# One table is told what changed, the other gets everything each time; made-up changes, some of them told only after the Map
# has gone further. -> what differs, and whether a row that moved kept its element
FOLLOW = """
const {Table} = await import('/ui/table.js');
const columns = [{id: 'v', title: 'V', text: (r) => r.v}, {id: 'name', title: 'Name', text: (r) => r.key}], made = () => new Table({columns, name: 'followed'});
const told = made(), whole = made(), map = new Map(), bad = [];
document.querySelector('#main').append(told.el);
told.el.style.height = '400px';
let seed = 1, later = [];
const any = (n) => ((seed = (seed * 1103515245 + 12345) % 2147483648) >> 8) % n;
const settle = (changed, what) => {
  told.setRows(map, changed);
  told.recompute();
  whole.setRows([...map.values()]);
  whole.recompute();
  const [a, b] = [told, whole].map((t) => t.rows.map((r) => `${r.v} ${r.key}`).join());
  if (a !== b) bad.push(`${what}: ${a.slice(0, 300)} is not ${b.slice(0, 300)}`);
};
settle(null, 'the empty table');
for (let turn = 0; turn < 200; turn++) {
  const changed = [];
  for (let n = any(9); n > 0; n--) {
    const key = `pod-${any(60)}`, old = map.get(key), row = {key, v: any(20) || ''};
    if (old && any(3) === 0) map.delete(key);
    else map.set(key, row);
    changed.push({type: map.has(key) ? 'MODIFIED' : 'DELETED', row, old});
  }
  if (turn % 20 === 7) for (const t of [told, whole]) t.setQuery(turn % 40 === 7 ? 'v:1' : '');
  const by = columns[any(2)];
  if (turn % 50 === 9) for (const t of [told, whole]) t.setSort(by);
  // What one call does not tell, the next one does.
  const held = any(2) ? changed.splice(any(changed.length + 1)) : [];
  told.setRows(map, [...later, ...changed]);
  later = held;
  if (!later.length) settle([], `turn ${turn}`);
  else told.recompute();
}
for (const t of [told, whole]) t.setQuery('');
await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
for (const t of [told, whole]) {
  t.sort = {id: 'none', dir: 'asc'};
  t.setSort(columns[1]);
}
const moves = [...told.body.children].find((e) => !e.hidden && e.row === told.rows[2]), row = {key: 'a', v: 1};
map.set('a', row);
settle([{type: 'ADDED', row}], 'one more');
return {bad, kept: moves && moves.row === told.rows[3] && moves.idx === 3};
"""


def told_what_changed(page: Page):
    page.open('#/settings')
    got = page.js(f'return (async () => {{{FOLLOW}}})()')
    check('a table that is told what changed shows what one with all rows shows', not got['bad'], '\n'.join(got['bad'][:5]))
    check('a row that moves keeps its element', got['kept'], got)
    page.open('#/overview')


if __name__ == '__main__':
    run(overview, frame, tables, hostile, editor, large_text, cluster_map, configuration, keyboard_walk, dark_pictures, small_screens, columns_fit, told_what_changed, rollout, draining, labels_and_taints, lost_and_found, transfer, many, token)
