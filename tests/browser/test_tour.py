# SPDX-License-Identifier: Apache-2.0
"""The guided tour, walked whole: every step of every chapter, skipped, left, repeated and taken away; on a phone, too."""
from browser import Page, api, check, run
from test_page import STICKS_OUT

DO = "const b = document.querySelector('#tour [data-do=' + arguments[0] + ']'); if (!b || b.disabled) return ''; const t = b.innerText; b.click(); return t || 'x'"
DRAWN = "return !document.querySelector('#main .spin') && !!document.querySelector('#main .screen')?.firstChild"


def ours(kind):
    return api(f'/api/v1/{kind}?labelSelector=berth.dev/tour')['items']


def location(page):
    return page.js('return location.hash').split('?')[0]


def start(page, chapter):
    page.go('#/tour')
    page.wait('the chapters', "const b = document.querySelector('#main [data-chapter=' + arguments[0] + ']'); if (!b) return false; b.click(); return true", chapter)
    page.wait('what was there before is gone', "return /step 1 of/.test(document.querySelector('#tour').innerText) && !document.querySelector('#tour .spin') && !location.hash.startsWith('#/tour')", seconds=60)


def act(page):
    page.wait('a step to do', DO, 'act')
    page.wait('it came about', "return document.querySelector('#tour [data-do=act]').innerText === '✓ Done'", seconds=60)


def walk(page, chapter, look):
    """All steps of a chapter, each done and looked at."""
    start(page, chapter)
    while True:
        title = page.text('#tour h2')
        if page.all('#tour [data-do=act]'):
            act(page)
        page.wait('the screen of the step', DRAWN, seconds=30)
        look(title)
        if page.wait('on', DO, 'next') == 'End of the chapter':
            break
    page.wait('back on the page of the tour', "return location.hash === '#/tour' && document.querySelector('#tour').hidden")


def on_a_phone(page: Page):
    page.theme('light')
    page.d.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': 390, 'height': 844, 'deviceScaleFactor': 1, 'mobile': True})
    seen, bad = {}, []

    def look(title):
        page.js('return new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))')
        seen[title] = (page.js('return location.hash'), page.text('#tour .tourlive'))
        bad.extend(f'{title}: {x}' for x in page.js(STICKS_OUT)[:5])
        room = page.js("return document.querySelector('#main').clientHeight")
        if room < 300:
            bad.append(f'{title}: the screen has {room} px')
        page.shot(f'tour-phone-{len(seen)}')
    walk(page, 'waiting', look)
    check('five steps on five screens', [v[0].split('?')[0] for v in seen.values()] == ['#/map', '#/pods/default/tour-big', '#/decisions/pod/default/tour-big', '#/whatif', '#/decisions/pod/default/tour-big'], seen)
    texts = [v[1] for v in seen.values()]
    check('the scheduler’s own words', '3 Insufficient cpu' in texts[1], texts)
    check('the larger node took it', 'tour-big runs on tour-large' in texts[4], texts)
    check('nothing sticks out, and the screen has room', not bad, '\n'.join(bad))
    check('the objects are real', api('/api/v1/namespaces/default/pods/tour-big')['spec']['nodeName'] == 'tour-large')
    page.d.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})


def skipped_and_left(page: Page):
    page.open('#/tour')
    start(page, 'spread')
    check('the chapter before is gone', not [n for n in ours('nodes') if n['metadata']['labels']['berth.dev/tour'] == 'waiting'])
    for _ in range(2):
        check('a step can be skipped', page.wait('skip', DO, 'next') == 'Skip')
    check('skipping makes nothing', not ours('nodes') and not ours('pods'))
    act(page)
    pods = ours('pods')
    check('what was skipped is made up for', len(ours('nodes')) == 6 and len(pods) == 9, f'{len(pods)}')
    check('the ninth waits', 'waiting: 1' in page.text('#tour') and 'zone-c: 2' in page.text('#tour'), page.text('#tour'))
    page.shot('tour-queue-light')
    page.d.refresh()
    page.wait('it goes on where it was', "return /step 3 of 5/.test(document.querySelector('#tour')?.innerText || '')")
    page.wait('on', DO, 'next')
    page.wait('the pod that waits', "return location.hash.startsWith('#/decisions/pod/default/tour-web-')")
    page.wait_text('topology spread constraints', '#tour')
    page.button('Back', '#tour')
    page.wait('a step back, done already', "return /step 3 of 5/.test(document.querySelector('#tour').innerText) && !!document.querySelector('#tour [data-do=act][disabled]')")
    for _ in range(2):
        page.wait('on', DO, 'next')
    act(page)
    check('three in every zone', all(f'zone-{z}: 3' in page.text('#tour') for z in 'abc'), page.text('#tour'))
    page.button('Repeat the chapter', '#tour')
    page.wait('from the start', "return /step 1 of 5/.test(document.querySelector('#tour').innerText) && !document.querySelector('#tour .spin')", seconds=60)
    check('repeating begins with nothing', not ours('nodes') and not ours('pods'))
    for _ in range(3):
        page.wait('on', DO, 'next')
    check('a step that only looks says what it lacks', 'Make what was skipped' in page.text('#tour') and location(page) == '#/map', page.text('#tour'))
    page.button('Leave', '#tour')
    page.wait('left', "return document.querySelector('#tour').hidden && location.hash === '#/tour'")


def preemption_in_the_dark(page: Page):
    page.theme('dark')
    page.open('#/tour')
    page.shot('tour-dark')
    seen = {}

    def look(title):
        seen[title] = page.text('#tour .tourlive')
        page.shot(f'tour-preemption-{len(seen)}-dark')
    walk(page, 'preemption', look)
    check('the important pod ran', 'tour-urgent runs on tour-full-' in seen['An important pod comes'], seen)
    events = [e for e in api('/api/v1/namespaces/default/events')['items'] if e['reason'] == 'Preempted']
    check('somebody gave way', any(e['involvedObject']['name'].startswith('tour-batch-') for e in events), [e['involvedObject'] for e in events])
    check('with room for all, all run', len([p for p in ours('pods') if p['spec'].get('nodeName')]) == 5)
    check('the chapter is marked', page.text('#main').count('✓ seen') >= 1)
    page.button('Take them away')
    page.wait('all of it is gone', "return !/of the tour (is|are) in the cluster/.test(document.querySelector('#main').innerText)", seconds=60)
    check('nothing of the tour is left', not ours('nodes') and not ours('pods') and not api('/apis/apps/v1/deployments?labelSelector=berth.dev/tour')['items'] and not api('/apis/scheduling.k8s.io/v1/priorityclasses?labelSelector=berth.dev/tour')['items'])
    page.theme('light')


if __name__ == '__main__':
    run(on_a_phone, skipped_and_left, preemption_in_the_dark)
