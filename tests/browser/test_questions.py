# SPDX-License-Identifier: Apache-2.0
"""The screens of questions: a new user's evening, from an empty cluster to why and what would make it fit."""
import gzip
import json
import os
import signal
import tempfile
import time

from browser import PATIENCE, Keys, Page, api, check, run

EVIL = '<img src=x onerror="window.__ran=1">'
NODE = """apiVersion: v1
kind: Node
metadata: {name: %s, labels: {zone: %s, kubernetes.io/hostname: %s}}
spec: {taints: [%s]}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "110"}, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec: {%s containers: [{name: main, image: app, resources: {requests: {cpu: "%s", memory: 1Gi}}}]}
"""
HEADLINE = "const e = document.querySelector('#main .q-headline'); return e ? e.innerText : ''"


def create(text):
    kind = text.split('kind: ')[1].split('\n')[0]
    api('/api/v1/nodes' if kind == 'Node' else '/api/v1/namespaces/default/pods', 'POST', text, 'application/yaml')


def phase(name):
    p = api(f'/api/v1/namespaces/default/pods/{name}', wanted=(404,))
    return p['status'].get('phase') if p else ''


def until(page, what, ready, seconds=15):
    """A condition of the server: asked through the page's waiting, so that a failure shows the screen."""
    page.wait(what, 'return true')
    for _ in range(int(seconds * PATIENCE / 0.05)):
        if ready():
            return
        page.js('return 0')
    raise AssertionError(f'waited in vain: {what}')


def click(page, css, text):
    page.wait(f'{text} in {css}', "const b = [...document.querySelectorAll(arguments[0])].find(e => e.innerText.trim().startsWith(arguments[1]) && !e.disabled); if (!b) return false; b.click(); return true", css, text)


def an_empty_cluster_is_told(page: Page):
    page.theme('light')
    page.open()
    api('/api/v1/reset', 'PUT')
    for n in api('/api/v1/nodes')['items']:
        api(f"/api/v1/nodes/{n['metadata']['name']}", 'DELETE')
    for d in api('/apis/apps/v1/deployments')['items']:
        api(f"/apis/apps/v1/namespaces/{d['metadata']['namespace']}/deployments/{d['metadata']['name']}", 'DELETE')
    until(page, 'no nodes, no pods', lambda: not api('/api/v1/nodes')['items'] and not api('/api/v1/pods')['items'])
    page.go('#/queue')
    page.wait_text('The queue is empty')
    page.go('#/whatif')
    page.wait_text('there are no nodes')
    check('a question to an empty cluster is answered', 'would fit nowhere' in page.js(HEADLINE), page.js(HEADLINE))


def from_pending_to_running(page: Page):
    page.go('#/edit')
    page.wait('the editor', "return !!document.querySelector('#main .editor textarea')")
    page.yaml('---\n'.join(NODE % (f'n{i}', 'ab'[i % 2], f'n{i}', '{key: gpu, value: "yes", effect: NoSchedule}' if i == 3 else '') for i in range(1, 4)))
    page.chord(Keys.CONTROL, Keys.ENTER)
    until(page, 'three nodes', lambda: len(api('/api/v1/nodes')['items']) == 3)
    for i in range(4):
        create(POD % (f'web-{i}', '', '500m'))
    create(POD % ('big', '', '6'))
    page.go('#/queue')
    page.wait_text('default/big')
    page.wait_text('NodeResourcesFit')
    check('the queue tells who keeps the pod', 'unschedulable' in page.text('#main'))

    page.go('#/decisions/pod/default/big')
    page.wait('the decision in words', "return /fitted nowhere/.test(document.querySelector('#main .q-headline')?.innerText || '')")
    line = page.js(HEADLINE)
    check('why it is pending, in a sentence', '2 nodes had too little cpu' in line and 'taint' in line, line)
    check('the funnel ends at none', page.js("return [...document.querySelectorAll('.q-funnel-row')].pop().innerText").split()[-1] == '0')
    click(page, '.q-group summary', '2')
    page.wait('the names of the nodes', "return [...document.querySelectorAll('.q-group[open] .q-row')].map(r => r.innerText).join().includes('n1')")
    box = page.one('.q-ask input')
    box.send_keys('n3', Keys.ENTER)
    page.wait_text('was rejected by TaintToleration', '.q-why-answer')
    check('why not n3', 'does not tolerate' in page.text('.q-why-answer'), page.text('.q-why-answer'))
    box.clear()
    box.send_keys('nowhere', Keys.ENTER)
    page.wait_text('There was no node “nowhere”', '.q-why-answer')
    page.allowed.append('nodes/nowhere')
    page.shot('decision-pending-light')

    click(page, '#main a.button', 'What would make it fit')
    page.wait('suggestions were asked', "return / would help/.test(document.querySelector('#main').innerText)", seconds=30)
    ideas = page.js("return [...document.querySelectorAll('.q-ideas li')].map(l => l.innerText)")
    check('what would make it fit is found', any('cpu (half)' in i and 'fits' in i for i in ideas) and any('large enough' in i and 'fits' in i for i in ideas), '\n'.join(ideas))
    check('what does not help is told', any('tolerate the taint' in i and 'nowhere' in i for i in ideas), '\n'.join(ideas))
    page.js("[...document.querySelectorAll('.q-ideas li')].find(l => l.innerText.includes('cpu (half)')).querySelector('details').open = true")
    check('with a command to copy', 'kubectl replace --force' in page.text('.q-ideas details[open]') and 'immutable' in page.text('.q-ideas details[open]'), page.text('.q-ideas'))
    page.shot('whatif-suggestions-light')
    page.js("[...document.querySelectorAll('.q-ideas li')].find(l => l.innerText.includes('cpu (half)')).querySelector(':scope > button').click()")
    page.wait('before and after', "const v = document.querySelector('.q-verdict .better'); return !!v && /Scheduled/.test(v.innerText)")
    check('nothing was changed by asking', phase('big') == 'Pending' and '6' == api('/api/v1/namespaces/default/pods/big')['spec']['containers'][0]['resources']['requests']['cpu'])
    click(page, '#main button', 'Apply for real')
    page.wait_text('Replace the pod default/big', 'dialog')
    page.shot('whatif-apply-light')
    click(page, 'dialog button', 'Change the cluster')
    until(page, 'big runs', lambda: phase('big') == 'Running')
    # the pod may run before the page has heard that it was written, and goes to the pod
    page.wait('the pod after the change', "return location.hash === '#/pods/default/big'")
    check('it runs after the change was applied', True)


def a_decision_explained(page: Page):
    page.go('#/decisions/pod/default/big')
    page.wait('where it went', "return /went to n[12]/.test(document.querySelector('#main .q-headline')?.innerText || '')")
    page.wait_text('points', '.q-headline')
    click(page, '.tabs button', 'Scores')
    page.wait('two bars', "return document.querySelectorAll('.q-score-rows .q-bar i').length > 4")
    page.shot('scores-light')
    names = "return [...document.querySelectorAll('.q-score-rows .q-score-name')].map(e => e.innerText.replace('★ ', ''))"
    api_top = api('/berth/v1/decisions?pod=big&limit=1')['items'][0]
    top = api(f"/berth/v1/decisions/{api_top['id']}")['top'][0]
    check('bars stand in the order of totals', page.js(names)[0] == top['node'], page.js(names))
    check('the total is the recorded one', page.text('.q-score-rows .q-score-total').replace(',', '') == str(top['total']))
    click(page, '.segmented button', 'Table')
    page.wait('scores as numbers', "return document.querySelectorAll('.q-score-rows .q-score-cell').length > 4")
    click(page, '.tabs button', 'Heat map')
    page.wait('the heat map', "return !!document.querySelector('.q-heat-canvas') && document.querySelector('.q-heat-canvas').width > 100")
    page.js("document.querySelector('.q-heat-canvas').focus()")
    page.key(Keys.END)
    page.wait_text('n3: rejected by TaintToleration', '.q-heat-say')
    page.shot('heat-light')
    page.key(Keys.ENTER)
    page.wait_text('n3 was rejected', '.q-why-answer')
    check('the heat map is walked by keys and asks about a node', True)
    page.go('#/decisions')
    page.wait_text('default/big')
    page.js("const i = document.querySelector('#main .vt-search'); i.value = 'big'; i.dispatchEvent(new Event('input'))")
    page.wait('filtered', "const r = [...document.querySelectorAll('.q-list .q-row')]; return r.length > 0 && r.every(x => x.innerText.includes('big'))")
    check('decisions are filtered by text', True)
    page.js("const i = document.querySelector('#main .vt-search'); i.value = ''; i.dispatchEvent(new Event('input'))")
    create(POD % ('late', '', '100m'))
    page.wait_text('default/late')
    check('a new decision appears by itself', True)
    page.shot('decisions-light')
    what_is_kept(page)


def what_is_kept(page: Page):
    """The badge says what the server says of the newest decisions: here everything, under load (tests/unit) less."""
    badge = "const e = document.querySelector('#main .vt-count .tag'); return e && e.innerText === arguments[0] && e.title"
    check('a few pods: every node is kept, and said', api('/berth/v1/decisions?limit=1')['recording']['keeps'] == 'full'
          and 'every node is kept' in page.wait('the badge', badge, 'keeps: full'))
    page.js("""const real = window.fetch; window.unkept = () => { window.fetch = real; };
               window.fetch = async (...a) => { const r = await real(...a); if (!String(a[0]).includes('berth/v1/decisions?')) return r;
                 const j = await r.json(); return Response.json({...j, recording: {...j.recording, keeps: window.keeps}}); };""")
    for keeps, says in (('sample', 'of the others a summary'), ('summary', 'no nodes')):
        page.js('window.keeps = arguments[0]', keeps)
        page.go('#/queue')
        page.go('#/decisions')
        check(f'{keeps}: so says the badge', says in page.wait('the badge', badge, f'keeps: {keeps}'))
    page.js('window.unkept()')


def other_questions(page: Page):
    page.go('#/capacity')
    page.wait('a number', "return +(document.querySelector('.q-big')?.innerText || 0) > 0")
    before = int(page.text('.q-big'))
    page.js("document.querySelector('[aria-label=\"add nodes like\"]').value = 'n1'; document.querySelector('[aria-label=\"how many nodes\"]').value = '2'; document.querySelector('[aria-label=\"add nodes like\"]').closest('form').requestSubmit()")
    page.wait('more with two nodes more', f"return +(document.querySelector('.q-big')?.innerText || 0) >= {before} + 8")
    check('two more nodes are counted, none was made', len(api('/api/v1/nodes')['items']) == 3)
    page.shot('capacity-light')
    page.go('#/drain?nodes=n1')
    page.wait_text('Draining n1')
    check('a drain is shown before it is done', 'default/' in page.text('.q-drain-result'), page.text('#main'))
    page.shot('drain-light')
    page.go('#/rebalance')
    page.wait('a plan of moves', "return /become free by \\d+ move|Nothing to move/.test(document.querySelector('#main').innerText)")
    check('a plan says which nodes keep their pods, and why', 'Keeps its pods because'.lower() in page.text('#main').lower() or 'Drain' in page.text('#main'), page.text('#main'))
    page.shot('rebalance-light')
    page.go('#/configdiff')
    page.wait('both configurations', "return [...document.querySelectorAll('#main .editor textarea')].every(a => a.value.includes('KubeSchedulerConfiguration'))")
    page.js("const a = document.querySelectorAll('#main .editor textarea')[1]; a.value = 'apiVersion: kubescheduler.config.k8s.io/v1\\nkind: KubeSchedulerConfiguration\\nparallelism: 0\\n'; a.dispatchEvent(new Event('input', {bubbles: true}))")
    page.allowed.append('configs/diff')
    click(page, '#main button', 'Compare')
    page.wait_text('should be an integer value greater than zero')
    check('a wrong configuration is marked at its line', page.js("return document.querySelectorAll('#main .editor')[1].querySelector('.gutter .e')?.innerText") == '3')
    page.js("const s = document.querySelector('[aria-label=\"take an example\"]'); s.value = '1'; s.dispatchEvent(new Event('change'))")
    click(page, '#main button', 'Compare')
    page.wait_text('No pod is pending')
    click(page, '#main .segmented button', 'all pods')
    click(page, '#main button', 'Compare')
    page.wait('compared', "return /pods? (?:are decided alike|would go elsewhere)/.test(document.querySelector('#main').innerText)")
    page.shot('configdiff-light')
    page.go('#/whatif?pod=default/late')
    page.wait('answered', "return /would go to/.test(document.querySelector('#main .q-headline')?.innerText || '')")
    page.allowed.append('berth/v1/manifest')
    page.allowed.append('berth/v1/whatif')
    page.yaml('apiVersion: v1\nkind: Pod\nmetadata: {name: late}\nspec: {containers: [{name: a, image: b, resources: {requests: {cpu: many}}}]}\n')
    page.wait('the mistake is told', "return !document.querySelector('#main .problems').hidden")
    check('a mistake in a question is shown with its line', 'Line 4' in page.text('#main .problems'), page.text('#main .problems'))


def time_and_runs(page: Page):
    page.go('#/timeline')
    page.wait('events', "return document.querySelectorAll('.q-events .q-row').length > 5")
    page.wait_text('The cluster at')
    now = page.wait('pods now', "return document.querySelectorAll('.q-then .tile .value')[1]?.innerText")
    page.js("document.querySelector('.q-lanes').focus()")
    page.key(Keys.HOME)
    page.wait('the cluster as it was', f"return document.querySelectorAll('.q-then .tile .value')[1]?.innerText !== '{now}' || /No longer known/.test(document.querySelector('.q-then').innerText)")
    check('the cursor goes back in time', True)
    page.key(Keys.END)
    page.wait('and forth', f"return document.querySelectorAll('.q-then .tile .value')[1]?.innerText === '{now}'")
    page.shot('timeline-light')
    page.go('#/scenarios')
    page.wait('an example stands there', "return document.querySelector('#main .editor textarea').value.includes('kind: Scenario')")
    click(page, '#main .panel button.primary', 'Run')
    page.wait('the run ends well', "return /Succeeded/.test(document.querySelector('#main').innerText)", seconds=40)
    page.wait('plots', "return document.querySelectorAll('#main .chart path').length > 4")
    check('a scenario with two configurations is run and drawn', True)
    page.shot('scenario-light')
    page.button('Forget')
    page.wait_text('its result is lost', 'dialog')
    page.button('Cancel', 'dialog footer')
    check('a scenario is not forgotten without asking', len(api('/berth/v1/scenarios')['items']) == 1)
    click(page, '.tabs button', 'Numbers')
    page.wait_text('pods created')
    click(page, '.tabs button', 'Comparison')
    page.wait_text('went to')


def record(at, event, text):
    o = api('/berth/v1/manifest', 'POST', text, 'application/yaml')['documents'][0]['object']
    return json.dumps({'time': f'2026-01-05T10:00:{at:02d}Z', 'event': event, 'resource': o}) + '\n'


def replay(page: Page):
    """A file that is no record, under a hostile name; then a record, paused, stepped and let go."""
    folder = tempfile.mkdtemp(prefix='berth-record-')
    bad, good = os.path.join(folder, EVIL.replace('/', '') + '.jsonl.gz'), os.path.join(folder, 'record.jsonl')
    with gzip.open(bad, 'wt') as f:
        f.write('not a record\n')
    with open(good, 'w', encoding='utf-8') as f:
        f.write(record(0, 'Add', NODE % ('r1', 'a', 'r1', '')) + record(1, 'Add', NODE % ('r2', 'b', 'r2', '')))
        f.writelines(record(2 + i, 'Add', POD % (f'old-{i}', '', '1')) for i in range(4))
        f.writelines(record(6, 'Update', POD % (f'old-{i}', 'nodeName: r1,', '1')) for i in range(4))
        f.write(record(9, 'Delete', POD % ('old-0', '', '1')))
    page.allowed.append('berth/v1/replay')
    page.go('#/replay')
    page.wait_text('Play a recorded cluster again')
    page.one('input[type=file]').send_keys(bad)
    click(page, '#main button.primary', 'Play')
    page.wait_text('Everything that is there now is deleted', 'dialog')
    before = len(api('/api/v1/nodes')['items'])
    page.button('Cancel', 'dialog footer')
    check('a replay asks before it empties the cluster', len(api('/api/v1/nodes')['items']) == before and api('/berth/v1/replay')['phase'] == 'None')
    click(page, '#main button.primary', 'Play')
    page.button('Empty and play', 'dialog footer')
    page.wait('a wrong file is refused', "return !!document.querySelector('#main .note.bad')")
    check('a file that is no record is refused in words', 'record' in page.text('#main .note.bad'), page.text('#main .note.bad'))
    api('/berth/v1/replay', 'DELETE')

    def start_shown():  # the server forgets a replay when its work has ended, a moment after the answer
        page.go('#/queue')
        page.go('#/replay')
        time.sleep(0.5)
        return 'Play a recorded cluster again' in page.text('#main')
    until(page, 'replays begin anew', start_shown)
    page.one('input[type=file]').send_keys(good)
    page.js("[...document.querySelectorAll('#main label.check')].find(l => l.innerText.includes('start paused')).querySelector('input').click()")
    click(page, '#main button.primary', 'Play')
    page.button('Empty and play', 'dialog footer')
    page.wait_text('Paused')
    click(page, '#main button', 'Step')
    page.wait('one change', "return document.querySelector('#main .tile .value')?.innerText === '1'")
    check('a paused replay goes step by step', True)
    click(page, '#main button', '▶ Go on')
    page.wait('played to its end', "return document.querySelector('#main .tag')?.innerText.includes('Done')")
    check('what was recorded is there', sorted(n['metadata']['name'] for n in api('/api/v1/nodes')['items']) == ['r1', 'r2'])
    def compared():  # what the scheduler binds last arrives after the record's end
        return api('/berth/v1/replay')['compared']
    until(page, 'every pod is compared', lambda: compared()['same'] + compared()['different'] == 4)
    compared = compared()
    page.wait('both numbers', "const t = [...document.querySelectorAll('#main .tile')].map(e => e.innerText); return t.some(x => x.includes('As recorded')) && t.some(x => x.includes('Otherwise'))")
    check('what was decided otherwise is named', compared['same'] + compared['different'] == 4 and ('recorded on r1' in page.text('#main')) == (compared['different'] > 0), compared)
    page.shot('replay-light')
    click(page, '#main button.danger', 'Stop and forget')
    click(page, 'dialog button', 'Stop')
    page.wait_text('Play a recorded cluster again')
    for f in (bad, good):
        os.unlink(f)
    os.rmdir(folder)


def hostile_texts(page: Page):
    page.allowed.append('%3Cimg')
    page.go('#/decisions/pod/default/' + EVIL.replace('/', '%2F').replace('<', '%3C').replace('>', '%3E').replace('"', '%22').replace(' ', '%20'))
    page.wait_text('There is no pod default/<img')
    page.go('#/whatif')
    page.wait('ready', "return document.querySelector('#main .editor textarea')?.value.includes('kind: Pod')")
    page.yaml('apiVersion: v1\nkind: Pod\nmetadata: {name: asked, annotations: {note: ' + json.dumps(EVIL) + '}}\nspec: {nodeSelector: {' + json.dumps(EVIL) + ': ' + json.dumps(EVIL) + '}, containers: [{name: a, image: ' + json.dumps(EVIL) + '}]}\n')
    page.wait('told or answered', "return !document.querySelector('#main .problems').hidden || /fit nowhere/.test(document.querySelector('#main .q-headline')?.innerText || '')")
    page.go('#/scenarios')
    page.allowed.append('berth/v1/scenarios')
    page.wait('ready', "return document.querySelector('#main .editor textarea')?.value.includes('kind: Scenario')")
    page.yaml('apiVersion: sim.berth.dev/v1alpha1\nkind: Scenario\nmetadata: {name: ' + json.dumps(EVIL) + '}\nspec: {' + json.dumps(EVIL) + ': 1}\n')
    click(page, '#main .panel button.primary', 'Run')
    page.wait('refused', "return !document.querySelector('#main .problems').hidden || /Failed/.test(document.querySelector('#main').innerText)")
    check('hostile texts stay texts', page.js('return !document.querySelector("img") && !window.__ran'))


KEEP = "const make = URL.createObjectURL.bind(URL); window.__saved = ''; URL.createObjectURL = (b) => { b.text().then(t => { window.__saved = t; }); return make(b); }"


def report(page, name, *holds):
    """Saves the screen's answer, opens the file on its own, and comes back."""
    here = page.js('return location.hash')
    page.js(KEEP)
    click(page, '#main button', 'Save as report')
    text = page.wait('the report', 'return window.__saved')
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, 'report.html')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        page.note_refused()
        page.d.get(f'file://{path}')
        page.shot(f'report-{name}')
        shown = page.text('body')
        wide = page.js('return document.documentElement.scrollWidth <= innerWidth')
        alone = page.js("return !document.querySelector('script, link, img, iframe') && !!document.querySelector('style').textContent && !/url\\(|@import/.test(document.querySelector('style').textContent)")
        ran = page.js('return window.__ran || 0')
    missed = [x for x in holds if x not in shown]
    check(f'a report of {name}, in one file', alone and wide and not ran and not missed, f'{alone} {wide} {ran} {missed}\n{shown[:1500]}')
    page.open(here)


def saved_as_reports(page: Page):
    create((POD % ('never', '', '60')).replace('metadata: {', f"metadata: {{annotations: {{note: '{EVIL}'}}, "))
    until(page, 'never waits', lambda: any(c.get('reason') == 'Unschedulable' for c in api('/api/v1/namespaces/default/pods/never')['status'].get('conditions', [])))
    page.open('#/decisions/pod/default/never')
    page.wait('the decision', "return /fitted nowhere/.test(document.querySelector('#main .q-headline')?.innerText || '')")
    report(page, 'decision', 'about default/never', 'Unschedulable', 'fitted nowhere: 2 nodes had too little cpu', 'NodeResourcesFit', 'From all nodes to one', 'Insufficient cpu', 'n1, n2')
    page.go('#/decisions/pod/default/big')
    page.wait('a node was chosen', "return /went to/.test(document.querySelector('#main .q-headline')?.innerText || '')")
    report(page, 'decision-scored', 'Scores', 'NodeResourcesFit ×1', 'n1')
    page.go('#/whatif?pod=default/never')
    page.wait('half the cpu would not do, none is found', "return / would help/.test(document.querySelector('#main').innerText)", seconds=30)
    page.js("[...document.querySelectorAll('.q-ideas li button')].find(b => b.innerText === 'Try it' && !b.disabled).click()")
    page.wait('before and after', "return !!document.querySelector('.q-verdict')")
    report(page, 'what-if', 'What if: default/never', 'As it is: default/never would fit nowhere', 'With the changes', 'What was changed for the question', EVIL.split('"')[0])
    page.go('#/capacity?pod=default/big')
    page.wait('counted', "return /more pods? fits?/.test(document.querySelector('#main').innerText)")
    report(page, 'capacity', 'Capacity for big', 'What stops the next one', 'The pods', 'image: app')
    page.go('#/drain?nodes=n1')
    page.wait('computed', "return /Draining n1/.test(document.querySelector('#main').innerText)")
    report(page, 'drain', 'Drain of n1', 'Draining n1', 'no controller would make it anew')
    api('/api/v1/namespaces/default/pods/never', 'DELETE')


def a_page_that_was_left(page: Page):
    """The browser may keep it for the way back: holding its stream, six of them would leave no connection for the seventh."""
    live = "return document.querySelector('.live')?.dataset.state === 'live'"
    page.open('#/pods')
    page.wait('live', live)
    page.js("""const real = AbortController.prototype.abort;
               AbortController.prototype.abort = function (...a) { sessionStorage.setItem('gave-back', '1'); return real.apply(this, a); };
               sessionStorage.removeItem('gave-back')""")
    page.d.get('about:blank')
    page.d.back()
    page.wait('live again', live)
    page.wait_text('default')
    check('a page that is left gives its stream back, and goes on when it is shown again', page.js("return sessionStorage.getItem('gave-back') === '1'"))


WEIGHT = "const i = document.querySelector('input[aria-label=\"weight of ' + arguments[0] + '\"]'); i.value = arguments[1]; i.dispatchEvent(new Event('input')); return i.value"


def weights_move_pods(page: Page):
    running = api('/api/v1/schedulerconfiguration')
    page.open('#/weights')
    page.wait('as they are, nothing moves', "return /^0\\nof \\d+ pods would move/.test(document.querySelector('#main .q-big')?.parentNode.innerText || '')")
    check('a slider for each plugin that scores', page.js("return [...document.querySelectorAll('.q-weights li b')].map(e => e.innerText)")
          == [p['name'] for p in api('/berth/v1/configs/check', 'POST', {'config': json.dumps(running)})['scores'][0]['plugins']])
    check('the page says what is counted', 'in the order of their creation' in page.text('#main'))
    for name in ('NodeResourcesFit', 'NodeResourcesBalancedAllocation', 'TaintToleration'):
        page.js(WEIGHT, name, '0')
    page.js(WEIGHT, 'ImageLocality', '7')
    moved = int(page.wait('pods would move', "const b = document.querySelector('#main .q-big'), n = b?.innerText; return n !== '0' && !b.closest('[aria-busy]') ? n : ''"))
    page.js("[...document.querySelectorAll('#main [role=tab]')].find(t => t.innerText === 'As YAML').click()")
    text = page.wait('the YAML beside it', "return document.querySelector('#main .editor textarea').value")
    got = api('/berth/v1/configs/diff', 'POST', {'b': text, 'pods': 'all'})
    check('as many pods as the server counts', moved == len(got['different']) > 0, f'{moved} {got}')
    check('each is named with both nodes', got['different'][0]['name'] in page.text('#main') and 'These weights' in page.text('#main'))
    check('nothing was changed by looking', api('/api/v1/schedulerconfiguration') == running)
    page.shot('weights-light')
    page.button('Apply')
    page.wait_text('Apply these weights', 'dialog')
    page.button('Apply', 'dialog')
    page.wait_text('in force', '#toasts', seconds=30)
    of = {p['name']: p['weight'] for p in api('/berth/v1/configs/check', 'POST', {'config': json.dumps(api('/api/v1/schedulerconfiguration'))})['scores'][0]['plugins']}
    check('the scheduler runs with them', of.get('ImageLocality') == 7 and 'NodeResourcesFit' not in of, of)
    page.wait('again, nothing moves', "return /^0\\nof/.test(document.querySelector('#main .q-big')?.parentNode.innerText || '')")
    page.js(WEIGHT, 'NodeResourcesFit', '1')
    page.wait_text('was 0', '.q-weights')
    page.go('#/config')
    page.wait('the way back', "return [...document.querySelectorAll('#main [role=tab]')].find(t => t.innerText.startsWith('Roll back'))").click()
    page.button('Roll back', '#main .tabpanel')
    page.wait('back', "return /This is what runs/.test(document.querySelector('#main').innerText)", seconds=30)
    check('rolled back', api('/berth/v1/configs/check', 'POST', {'config': json.dumps(running)})['scores'] == api('/berth/v1/configs/check', 'POST', {'config': json.dumps(api('/api/v1/schedulerconfiguration'))})['scores'])


def in_the_dark(page: Page):
    page.theme('dark')
    create(POD % ('huge', '', '9'))
    page.open('#/whatif?pod=default/huge')
    page.wait('suggestions for an address that was typed', "return / would help/.test(document.querySelector('#main').innerText)", seconds=30)
    check('suggestions know the nodes', 'large enough' in page.text('.q-ideas'))
    page.shot('whatif-suggestions-dark')
    page.open('#/decisions/pod/default/big')
    page.wait('drawn', "return /went to/.test(document.querySelector('#main .q-headline')?.innerText || '')")
    page.shot('decision-dark')
    for name in ('timeline', 'capacity', 'queue', 'scenarios', 'whatif'):
        page.go(f'#/{name}')
        page.wait('drawn', "return document.querySelector('#main').innerText.length > 60")
        page.shot(f'{name}-dark')
    wide = page.js("return [document.querySelector('#main').scrollWidth, document.querySelector('#main').clientWidth]")
    check('nothing is wider than the window', wide[0] <= wide[1], wide)
    page.theme('light')


def the_server_dies(page: Page):
    create(POD % ('of-before', '', '1'))
    page.go('#/pods')
    page.wait_text('of-before')
    page.allowed += ['berth/v1/watch', 'ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED_ENCODING', 'ERR_CONNECTION_RESET']
    os.kill(int(os.environ['BERTH_SERVER_PID']), signal.SIGKILL)
    page.wait('the banner', "const b = document.getElementById('banner'); return !b.hidden && /cluster of before is gone: the built-in API server was killed by signal 9/.test(b.innerText)", seconds=30)
    check('a cluster that is gone is told, with the reason', True)
    page.wait('what is gone is not shown', "return !document.querySelector('#main').innerText.includes('of-before')")
    page.go('#/nodes')
    page.wait_text('node-a1')
    check('the example is there again', True)
    page.shot('gone-light')
    page.button('I see', '#banner')
    page.open('#/timeline')
    page.wait('live', "return document.querySelector('.live').dataset.state === 'live'")
    check('said until it is read, and kept in the timeline', page.js("return document.getElementById('banner').hidden")
          and 'in memory only and are gone' in api('/berth/v1/timeline')['items'][0]['detail'])


if __name__ == '__main__':
    run(an_empty_cluster_is_told, from_pending_to_running, a_decision_explained, other_questions, saved_as_reports, a_page_that_was_left, weights_move_pods, time_and_runs, hostile_texts, in_the_dark, replay, the_server_dies)
