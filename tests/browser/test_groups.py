# SPDX-License-Identifier: Apache-2.0
"""Pods that go together: the list of groups, and one that waits until a rack has room for all of it."""
from browser import Page, api, check, run

GROUPS = '/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups'
PODS = '/api/v1/namespaces/default/pods'
GROUP = 'apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: %s}\nspec: {schedulingPolicy: %s%s}\n'
NODE = """apiVersion: v1
kind: Node
metadata: {name: %s, labels: {rack: %s, kubernetes.io/hostname: %s}}
spec: {taints: [{key: gang, effect: NoSchedule}]}
status: {capacity: {cpu: "1", memory: 4Gi, pods: "9"}, allocatable: {cpu: "1", memory: 4Gi, pods: "9"}}
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  schedulingGroup: {podGroupName: %s}
  nodeSelector: {rack: %s}
  tolerations: [{key: gang, operator: Exists}]
  containers: [{name: main, image: app, resources: {requests: {cpu: 800m}}}]
"""
BOX = "const b = [...document.querySelectorAll('.g-box')].find(e => e.dataset.domain === arguments[0]); return b ? b.innerText.replace(/\\n/g, ' ') : ''"
STICKS_OUT = "return [...document.querySelectorAll('#main *')].filter(e => !e.closest('.vt, pre, details') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className || e.tagName).slice(0, 5)"


def create(path, text):
    api(path, 'POST', text, 'application/yaml')


def main_text(page):
    return page.js("return document.querySelector('#main').innerText")


def the_list(page: Page):
    page.theme('light')
    page.open('#/groups')
    page.wait('no group yet', "return /No pod group/.test(document.querySelector('#main').innerText)")
    for name, rack in (('g1', 'east'), ('g2', 'west'), ('g3', 'west')):
        create('/api/v1/nodes', NODE % (name, rack, name))
    create(GROUPS, GROUP % ('train', '{gang: {minCount: 3}}', ', schedulingConstraints: {topology: [{key: rack}]}'))
    page.wait_text('3 of 3 pods are not there yet')
    for i in (1, 2):
        create(PODS, (POD % (f'w{i}', 'train', 'x')).replace('  nodeSelector: {rack: x}\n', ''))
    page.wait_text('1 of 3 pods are not there yet')
    check('a group whose pods are missing says how many', '0 of 3' in main_text(page))
    create(PODS, (POD % ('w3', 'train', 'x')).replace('  nodeSelector: {rack: x}\n', ''))
    page.wait_text('0/2 placements are available', '#main')
    check('one without room says why', 'Unschedulable' in main_text(page))
    page.shot('groups-light')


def one_group(page: Page):
    page.js("document.querySelector('#main a[href=\"#/groups/default/train\"]').click()")
    page.wait('the answer', "return /What would make all of it fit/.test(document.querySelector('#main').innerText)", seconds=30)
    check('who has room and who has not', '2 of 3 members that wait have room in one rack' in main_text(page), main_text(page)[:600])
    check('more nodes are counted, by rack', '2 more nodes like g1, without taints, with rack=east' in main_text(page), main_text(page)[:2000])
    west, east = page.js(BOX, 'west'), page.js(BOX, 'east')
    check('a box for each rack: free, needed, room', '2 of 2 free, 2.4 needed' in west and 'room for 2' in west and '1 of 1 free' in east, [west, east])
    page.shot('group-light')
    page.js("const s = document.querySelector('select[aria-label=\"Topology key\"]'); s.value = 'kubernetes.io/hostname'; s.dispatchEvent(new Event('change'))")
    page.wait('boxes by node', "return !!document.querySelector('.g-box[data-domain=\"g3\"]')")
    check('another key, another map; it stands in the address', 'by=kubernetes.io' in page.js('return location.hash'))
    page.js("const s = document.querySelector('select[aria-label=\"Topology key\"]'); s.value = 'rack'; s.dispatchEvent(new Event('change'))")
    create('/api/v1/nodes', NODE % ('g4', 'west', 'g4'))
    page.wait('all of it goes', "return /3 of 3 scheduled, 0 waiting/.test(document.querySelector('#main').innerText)", seconds=60)
    page.wait('the map follows', BOX.replace('return b ?', 'return b && /3 members here/.test(b.innerText) ?'), 'west')
    check('it is in one rack', 'rack: west' in main_text(page), main_text(page)[:500])
    page.shot('group-scheduled-light')


def a_pod_names_its_group(page: Page):
    page.go('#/pods/default/w1')
    page.wait('the link', "return !!document.querySelector('#main a[href=\"#/groups/default/train\"]')")
    check('a pod leads to its group', True)
    page.go('#/groups/default/nobody')
    page.wait_text('There is no group default/nobody')
    check('no such group', True)


def on_a_phone(page: Page):
    """At 390 px nothing sticks out; light and dark."""
    page.d.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': 390, 'height': 844, 'deviceScaleFactor': 1, 'mobile': True})
    create(GROUPS, GROUP % ('long-name-of-a-group-that-waits-for-its-members-and-does-not-get-them', '{gang: {minCount: 2}}', ''))
    bad = []
    for route in ('groups', 'groups/default/train', 'groups/default/long-name-of-a-group-that-waits-for-its-members-and-does-not-get-them'):
        page.go(f'#/{route}')
        page.wait('it is drawn', "return !document.querySelector('#main .spin') && document.querySelector('#main').innerText.length > 40")
        bad += [f'{route}: {x}' for x in page.js(STICKS_OUT)]
        wide = page.js("return document.documentElement.scrollWidth - innerWidth")
        bad += [f'{route}: {wide} px too wide'] if wide > 0 else []
        page.shot('phone-' + route.split('/')[0] + str(route.count('/')))
    page.theme('dark')
    page.go('#/groups/default/train')
    page.wait('it is drawn', "return !!document.querySelector('.g-box')")
    page.shot('phone-group-dark')
    check('nothing sticks out on a phone', not bad, '\n'.join(bad))
    page.theme('light')
    page.d.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})


def hostile_names(page: Page):
    """What objects say is text."""
    evil = '<img src=x onerror=window.__ran=1>'
    api(f'{GROUPS}/train/status', 'PATCH', {'status': {'conditions': [{'type': 'DisruptionTarget', 'status': 'True', 'reason': 'R', 'message': evil, 'lastTransitionTime': '2026-01-01T00:00:00Z'}]}}, 'application/merge-patch+json')
    page.go('#/groups/default/train')
    page.wait('it is drawn', "return !!document.querySelector('.g-box')")
    check('nothing of an object ran', not page.js('return window.__ran'))
    for p in ('w1', 'w2', 'w3'):
        api(f'{PODS}/{p}', 'DELETE', {'gracePeriodSeconds': 0})
    for g in api(GROUPS)['items']:
        api(f"{GROUPS}/{g['metadata']['name']}", 'DELETE')
    for n in ('g1', 'g2', 'g3', 'g4'):
        api(f'/api/v1/nodes/{n}', 'DELETE')
    page.go('#/groups')
    page.wait('the list is empty again', "return /No pod group/.test(document.querySelector('#main').innerText)")
    check('groups that are gone leave the list', True)


if __name__ == '__main__':
    run(the_list, one_group, a_pod_names_its_group, on_a_phone, hostile_names)
