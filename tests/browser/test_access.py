# SPDX-License-Identifier: Apache-2.0
"""axe-core over every screen in both themes: no violation. The keyboard's place after navigation.

AXE names axe.min.js (tools/axe.sh fetches it).
"""
import os

from browser import Keys, Page, api, check, run

with open(os.environ['AXE'], encoding='utf-8') as f:
    AXE = f.read()
RUN = """const done = arguments[0];
axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
    .then((r) => done(r.violations.flatMap((v) => v.nodes.map((n) => `${v.id} (${v.impact}): ${n.target.join(' ')}: ${[...n.any, ...n.all, ...n.none].map((x) => x.message).join('; ')}: ${n.html.slice(0, 160)}`))),
          (e) => done([`axe: ${e.message}`]))"""
READY = "return !document.querySelector('#main .spin') && !!document.querySelector('#main .screen').firstChild && !document.querySelector('#main [aria-busy=true]')"
POD = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'waits', 'namespace': 'default'}, 'spec': {'containers': [{'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': '700'}}}]}}
RUNS = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'fits', 'namespace': 'default'}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}
found = {}  # violation -> where it was seen first


def look(page, where):
    """Both themes of what is shown."""
    if not page.js('return !!window.axe'):
        page.js(AXE)
    theme = page.js('return document.documentElement.dataset.theme')
    for name in ('light', 'dark'):
        page.js('document.documentElement.dataset.theme = arguments[0]', name)
        for v in page.d.execute_async_script(RUN):
            found.setdefault(v, f'{where}, {name}')
    page.js('document.documentElement.dataset.theme = arguments[0]', theme)


def report(what):
    check(what, not found, '\n'.join(f'{where}: {v}' for v, where in found.items()))
    found.clear()


def go(page, route):
    page.go(f'#/{route}')
    page.wait(f'{route} is loaded', READY, seconds=30)


def test_no_screen_has_a_violation(page: Page):
    api('/api/v1/namespaces/default/pods', 'POST', POD)
    api('/api/v1/namespaces/default/pods', 'POST', RUNS)
    page.open('#/overview')
    page.wait_text('default/waits')
    names = page.js("return [...document.querySelectorAll('#nav a.item')].map((a) => a.dataset.screen)")
    check('all screens are visited', len(names) > 35, names)
    for name in names:
        go(page, name)
        look(page, name)
    for route in ('nodes/node-a1', 'pods/default/waits', 'drain?nodes=node-a1', 'deployments/default/hello', 'kind/secrets', 'nonsense', 'edit?path=/api/v1/nodes/node-a1'):
        go(page, route)
        look(page, route)
    report('no screen has a violation')


def test_no_tab_has_a_violation(page: Page):
    page.open('#/overview')
    for route, ready in (('pods/default/fits', 'Conditions'), ('decisions/pod/default/fits', 'points'), ('decisions/pod/default/waits', 'fitted nowhere'), ('whatif?pod=default/waits', 'Insufficient'), ('config', 'Effective'), ('deployments/default/hello', 'Replicas')):
        go(page, route)
        page.wait_text(ready, seconds=30)
        n = page.js("return document.querySelectorAll('#main .tabs button').length")
        for i in range(max(1, n)):
            page.js("document.querySelectorAll('#main .tabs button')[arguments[0]]?.click()", i)
            page.wait('the tab is loaded', READY, seconds=30)
            look(page, f'{route}, tab {i}')
    report('no tab has a violation')


def test_no_dialog_has_a_violation(page: Page):
    page.open('#/overview')
    page.chord(Keys.CONTROL, 'k')
    page.key('node')
    page.wait('hits', "return document.querySelectorAll('.palette li[role=option]').length > 3")
    look(page, 'the search')
    page.key(Keys.ESCAPE)
    page.key('?')
    page.wait_text('Keyboard', 'dialog')
    look(page, 'the keyboard help')
    page.key(Keys.ESCAPE)
    for route, button in (('nodes/node-a1', 'Label'), ('nodes/node-a1', 'Taint'), ('nodes', 'Several nodes'), ('transfer', 'Reset the cluster'), ('drain?nodes=node-a1', 'Drain node-a1')):
        go(page, route)
        page.press(button)
        page.wait('the dialog', "return !!document.querySelector('dialog[open] footer button')")
        look(page, f'{route}, {button}')
        page.key(Keys.ESCAPE)
        page.wait('it is closed', "return !document.querySelector('dialog[open]')")
    report('no dialog has a violation')


def test_no_small_screen_has_a_violation(page: Page):
    page.open('#/overview')
    for width, touch in ((390, True), (820, True), (820, False)):
        page.d.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': width, 'height': 900, 'deviceScaleFactor': 1, 'mobile': touch})
        page.d.execute_cdp_cmd('Emulation.setTouchEmulationEnabled', {'enabled': touch})
        for route in ('overview', 'pods', 'decisions/pod/default/fits'):
            go(page, route)
            look(page, f'{route}, {width} wide')
    page.d.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
    page.d.execute_cdp_cmd('Emulation.setTouchEmulationEnabled', {'enabled': False})
    report('no small screen has a violation')
    for name in ('waits', 'fits'):
        api(f'/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0', 'DELETE')


def test_navigation_moves_the_focus_to_the_heading(page: Page):
    page.open('#/overview')
    page.d.refresh()
    page.wait('the frame is built', "return !!document.querySelector('#main .screen')")
    check('a page that is opened leaves the focus where it is', page.js("return document.activeElement === document.body"))
    here = "return document.activeElement.tagName === 'H1' && document.activeElement.innerText"
    for route, title in (('queue', 'Queue'), ('nodes', 'Nodes'), ('nodes/node-a1', 'node-a1'), ('timeline', 'Timeline')):
        page.js("document.querySelector('#nav a.item').focus()")
        go(page, route)
        page.wait(f'the focus is on the heading {title}', f'return (() => {{ {here} }})() === arguments[0]', title)
    check('navigation moves the focus to the heading', True)
    go(page, 'edit?kind=pods')
    check('a screen with a place of its own keeps it', page.js('return document.activeElement.tagName') == 'TEXTAREA')


if __name__ == '__main__':
    run(test_no_screen_has_a_violation, test_no_tab_has_a_violation, test_no_dialog_has_a_violation, test_no_small_screen_has_a_violation,
        test_navigation_moves_the_focus_to_the_heading)
