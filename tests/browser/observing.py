# SPDX-License-Identifier: Apache-2.0
"""The page of a `berth up --observe`, for tests/integration/observe.sh: the comparison; what writes is off and says why.

BERTH_NODE and BERTH_POD name a node, and a pod that is a difference; BERTH_CLUSTER is the cluster's name in the kubeconfig.
"""
import os

from browser import check, run

OFF = """return [...document.querySelectorAll('#main button')].filter((b) => b.textContent.trim() === arguments[0])
    .map((b) => b.disabled && b.title.includes('read-only copy'))"""


def test_comparison(page):
    page.open('#/comparison')
    page.wait_text(os.environ['BERTH_POD'])
    text = page.text('#main')
    check('the comparison tells the agreement', 'Agreement' in text and '%' in text, text)
    check('and why a node differs', 'NodeResourcesFit' in text and 'against' in text, text)
    check('it is in the navigation', page.js("return !!document.querySelector('nav a.item[data-screen=comparison]')"))
    page.shot('comparison')


def test_frame_names_the_cluster(page):
    for width in (1366, 390):
        page.d.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': width, 'height': 844, 'deviceScaleFactor': 1, 'mobile': False})
        page.open('#/overview')
        page.wait('the tag', "return !document.getElementById('copy').hidden")
        tag = page.js("const e = document.getElementById('copy'), b = e.getBoundingClientRect(); return [e.innerText, e.title, b.left >= 0 && b.right <= innerWidth]")
        check(f'the frame names the observed cluster and says read-only, {width} wide', os.environ['BERTH_CLUSTER'] in tag[0] and 'read-only' in tag[0] and tag[1].startswith('http') and tag[2], tag)
    page.d.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})


def test_writes_are_off(page):
    page.open(f"#/nodes/{os.environ['BERTH_NODE']}")
    page.wait_text('Cordon')
    for button in ('Cordon', 'Label', 'Taint', 'Delete'):
        check(f'{button} is off, with the reason', page.js(OFF, button) == [True], page.js(OFF, button))
    page.go('#/transfer')
    page.wait_text('Reset the cluster')
    for button in ('Reset the cluster', 'Choose a file'):
        check(f'{button} is off, with the reason', page.js(OFF, button) == [True], page.js(OFF, button))


run(test_comparison, test_frame_names_the_cluster, test_writes_are_off)
