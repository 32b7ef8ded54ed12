# SPDX-License-Identifier: Apache-2.0
"""The page of a `berth up --observe`, for tests/integration/observe.sh: the comparison; what writes is off and says why.

BERTH_NODE and BERTH_POD name a node, and a pod that is a difference.
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


def test_writes_are_off(page):
    page.open(f"#/nodes/{os.environ['BERTH_NODE']}")
    page.wait_text('Cordon')
    for button in ('Cordon', 'Label', 'Taint', 'Delete'):
        check(f'{button} is off, with the reason', page.js(OFF, button) == [True], page.js(OFF, button))
    page.go('#/transfer')
    page.wait_text('Reset the cluster')
    for button in ('Reset the cluster', 'Choose a file'):
        check(f'{button} is off, with the reason', page.js(OFF, button) == [True], page.js(OFF, button))


run(test_comparison, test_writes_are_off)
