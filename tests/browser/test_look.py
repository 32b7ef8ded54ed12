# SPDX-License-Identifier: Apache-2.0
"""Where things stand and what can be read: icons, labels on touch, phones, alignment, messages."""
from browser import Keys, Page, api, check, run

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


run(test_messages_show_their_reasons, test_each_screen_has_its_own_icon, test_narrow_navigation_has_labels_on_touch)
