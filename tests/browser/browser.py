# SPDX-License-Identifier: Apache-2.0
"""What the browser tests share: Chromium without a screen, checks that count, and what must hold all the time.

A test file does:

    from browser import Page, check, run
    def test_something(page): ...
    run(test_something, ...)

BERTH_URL names the server, SCREENSHOTS the folder for pictures. Chromium reaches nothing but the server: its own
background traffic is off, and every request that the page makes is looked at when the run ends, with the console.
"""
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

URL = os.environ.get('BERTH_URL', 'http://127.0.0.1:8080').rstrip('/')
SHOTS = os.environ.get('SCREENSHOTS', '')
PATIENCE = 5 * float(os.environ.get('BH_TEST_TIMEOUT_SCALE', '1'))  # deadlines cost nothing unless they are missed
FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-component-update', '--disable-sync',
         '--no-default-browser-check', '--disable-extensions', '--disable-default-apps', '--force-color-profile=srgb',
         '--window-size=1366,768']
# Runs before the page's own scripts: what the policy refused, and whether anything of an object's text ran as code.
WATCH = """
window.__refused = []; window.__ran = 0;
addEventListener('securitypolicyviolation', (e) => window.__refused.push(e.violatedDirective + ' ' + e.blockedURI));
"""
counts = {'ok': 0, 'bad': 0}


def check(name, good, detail=''):
    counts['ok' if good else 'bad'] += 1
    print(f"{'ok' if good else 'not ok'} - {name}", flush=True)
    if not good and detail != '':
        for line in str(detail).splitlines()[:20]:
            print(f'#   {line}', flush=True)
    return good


deleted = set()  # by the tests, maybe while the page asks for it


def api(path, method='GET', body=None, kind='application/json', wanted=None):
    """One request to the server, past the browser. Returns the JSON answer (or text), or None for an accepted refusal."""
    if method == 'DELETE':
        deleted.add(urllib.parse.urlsplit(path).path)
    data = body if body is None or isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    r = urllib.request.Request(URL + path, data=data, method=method, headers={'Content-Type': kind, 'Accept': 'application/json'})
    try:
        with urllib.request.urlopen(r, timeout=30 * PATIENCE) as f:
            text = f.read().decode()
    except urllib.error.HTTPError as e:
        if wanted and e.code in wanted:
            return None
        raise AssertionError(f'{method} {path}: {e.code} {e.read().decode()[:500]}') from e
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


class Page:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix='berth-browser-')
        o = webdriver.ChromeOptions()
        o.binary_location = '/usr/bin/chromium'
        for f in FLAGS + [f'--user-data-dir={self.profile}']:
            o.add_argument(f)
        o.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
        self.d = webdriver.Chrome(options=o, service=Service('/usr/bin/chromedriver'))
        self.d.set_script_timeout(30 * PATIENCE)
        self.d.execute_cdp_cmd('Page.addScriptToEvaluateOnNewDocument', {'source': WATCH})
        self.also = set()  # further servers of ours
        self.allowed = []  # texts of console messages that a test provoked
        self.refused = []

    def close(self):
        try:
            self.d.quit()
        finally:
            shutil.rmtree(self.profile, ignore_errors=True)

    # ---- going and waiting
    def open(self, route='#/overview'):
        self.d.get(f'{URL}/ui/{route}')
        self.wait('the frame is built', "return !!document.querySelector('#nav a.item') && !!document.querySelector('#main .screen')")

    def go(self, route):
        self.js('location.hash = arguments[0]', route)
        self.wait(f'{route} is shown', "return !!document.querySelector('#main .screen')")

    def js(self, script, *args):
        return self.d.execute_script(script, *args)

    def wait(self, what, script, *args, seconds=15):
        """Until the script returns something true; that is returned. What it looks at may not be there yet."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            error = ''
            try:
                got = self.js(script, *args)
            except JavascriptException as e:
                got, error = None, f'\n{e.msg}'
            if got:
                return got
            if time.monotonic() > end:
                raise AssertionError(f'waited in vain: {what}{error}\nat {self.js("return location.hash")}\n{self.text("#main")[:800]}')
            time.sleep(0.05)

    def wait_text(self, text, css='#main', seconds=15):
        return self.wait(f'"{text}" in {css}', 'const e = document.querySelector(arguments[0]); return !!e && e.innerText.includes(arguments[1])', css, text, seconds=seconds)

    def text(self, css):
        return self.js("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", css)

    def all(self, css):
        return self.d.find_elements(By.CSS_SELECTOR, css)

    def one(self, css):
        return self.d.find_element(By.CSS_SELECTOR, css)

    def button(self, text, css='#main'):
        """Clicks the first button or link below css whose text begins so."""
        e = self.wait(f'button {text}', "return [...document.querySelectorAll(arguments[0] + ' button, ' + arguments[0] + ' a.button')].find(b => b.innerText.trim().startsWith(arguments[1]) && !b.disabled && b.offsetParent !== null)", css, text)
        try:
            e.click()
        except StaleElementReferenceException:  # drawn anew between the two steps
            self.button(text, css)

    def press(self, text, css='#main'):
        """The same in one step, where the page may draw the button anew between finding it and the click."""
        self.wait(f'button {text}', "const b = [...document.querySelectorAll(arguments[0] + ' button')].find(b => b.innerText.trim().startsWith(arguments[1]) && !b.disabled); b?.click(); return !!b", css, text)

    def key(self, *keys):
        a = ActionChains(self.d)
        for k in keys:
            a = a.send_keys(k)
        a.perform()

    def chord(self, modifier, k):
        ActionChains(self.d).key_down(modifier).send_keys(k).key_up(modifier).perform()

    def yaml(self, text):
        """Replaces what the editor holds, as typing does."""
        self.js("""const a = document.querySelector('#main .editor textarea:not([readonly])'); a.focus(); a.value = arguments[0];
                   a.dispatchEvent(new Event('input', {bubbles: true}));""", text)

    def theme(self, name):
        self.open()
        self.js("localStorage.setItem('berth-theme', arguments[0])", name)
        self.d.refresh()

    def shot(self, name):
        if SHOTS:
            os.makedirs(SHOTS, exist_ok=True)
            for tries in (2, 1, 0):  # chromedriver gives a picture ten seconds, however busy the machine is
                try:
                    return self.d.save_screenshot(os.path.join(SHOTS, name + '.png'))
                except TimeoutException:
                    if not tries:
                        raise

    # ---- what must hold all the time
    def note_refused(self):
        self.refused += self.js('const r = window.__refused || []; window.__refused = []; return r')

    def is_expected(self, message):
        if '404 (Not Found)' in message and urllib.parse.urlsplit(message.split()[0]).path in deleted:
            return True
        return any(a in message for a in self.allowed)

    def watch_all(self):
        self.note_refused()
        bad = [f"{e['level']} {e['message'][:300]}" for e in self.d.get_log('browser')
               if e['level'] in ('SEVERE', 'WARNING') and not self.is_expected(e['message'])]
        check('no error and no warning in the console', not bad, '\n'.join(bad))
        check('nothing was refused by the content security policy', not self.refused, '\n'.join(self.refused))
        own, foreign = urllib.parse.urlsplit(URL).netloc, set()
        for e in self.d.get_log('performance'):
            m = json.loads(e['message'])['message']
            if m['method'] != 'Network.requestWillBeSent':
                continue
            u = urllib.parse.urlsplit(m['params']['request']['url'])
            if u.scheme in ('http', 'https', 'ws', 'wss') and u.netloc != own and u.netloc not in self.also:
                foreign.add(u.netloc)
        check('no request went to another host', not foreign, '\n'.join(foreign))
        check('no text of an object ran as code', self.js('return window.__ran || 0') == 0)


def run(*tests):
    """Runs the tests in one browser; ends the process: 0 when all checks passed."""
    page = Page()
    try:
        for t in tests:
            began = time.monotonic()
            try:
                t(page)
            except Exception as e:  # a test that breaks off is one failure, the others still run
                check(t.__name__.replace('_', ' '), False, f'{e}\n{traceback.format_exc()[-1500:]}')
                page.shot(f'failed-{t.__name__}')
            print(f'# {t.__name__}: {time.monotonic() - began:.1f} s', flush=True)
            page.js("for (const d of document.querySelectorAll('dialog[open]')) d.close()")
            page.note_refused()
        page.watch_all()
    finally:
        page.close()
    sys.exit(1 if counts['bad'] else 0)


__all__ = ['ActionChains', 'Page', 'check', 'run', 'api', 'By', 'Keys', 'URL', 'PATIENCE']
