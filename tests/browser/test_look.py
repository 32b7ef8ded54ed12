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


run(test_each_screen_has_its_own_icon, test_narrow_navigation_has_labels_on_touch)
