// SPDX-License-Identifier: Apache-2.0
//
// main.js - the frame around the screens: navigation, top bar, search, shortcuts, theme
import {discover, objectPath, objectRoute} from './kinds.js';
import {
  ApiError, auth, debounce, dialog, fetchJSON, fmt, forbidWrites, h, icon, navGroups, navigate, replace, route, screens, startRouter,
  to, toast
} from './lib.js';
import {learnProfiles} from './schedulers.js';
import {onState, restart, rows, startStore, store, subscribe} from './store.js';

// Each file registers its screens. One that is missing or broken costs its own screens only.
const FILES = [
  'overview', 'clustermap', 'resources', 'edit', 'config', 'transfer', 'settings', 'explorer', 'whatif', 'capacity',
  'weights', 'queue', 'groups', 'timeline', 'runs', 'tour'
];

// ---- theme -------------------------------------------------------------------------------------------------

const media = matchMedia('(prefers-color-scheme: dark)');
const remember = {
  get: (k) => {
    try {
      return localStorage.getItem(`berth-${k}`) || '';
    } catch { return ''; }
  },
  set: (k, v) => {
    try {
      if (v) localStorage.setItem(`berth-${k}`, v);
      else localStorage.removeItem(`berth-${k}`);
    } catch { /* private mode */
    }
  },
};
export function setTheme(choice) {
  remember.set('theme', choice === 'auto' ? '' : choice);
  applyTheme();
}
export const themeChoice = () => remember.get('theme') || 'auto';
function applyTheme() {
  const c = themeChoice(), isDark = c === 'dark' || (c === 'auto' && media.matches);
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
  const b = document.getElementById('themebutton');
  if (b) {
    replace(b, icon(isDark ? 'sun' : 'moon'));
    b.setAttribute('aria-label', isDark ? 'Light theme' : 'Dark theme');
    b.title = b.getAttribute('aria-label');
  }
  dispatchEvent(new Event('berth-theme'));
}
media.addEventListener('change', applyTheme);

// ---- navigation --------------------------------------------------------------------------------------------

const counts = new Map();  // screen name -> element
let navShown = '';

function buildNav() {
  const nav = document.getElementById('nav'), here = route().name;
  const list = [...screens.values()].filter((s) => s.nav).sort((a, b) => (a.nav.order ?? 50) - (b.nav.order ?? 50));
  const shape = list.map((s) => s.name).join();
  if (shape !== navShown) {
    navShown = shape;
    counts.clear();
    replace(
        nav,
        h('a', {class: 'brand', href: to('overview'), 'aria-label': 'Berth, overview'}, brand(),
          h('span', {class: 'label'}, 'Berth')),
        navGroups.map((g) => {
          const items = list.filter((s) => s.nav.group === g);
          return items.length ? navGroup(g, items) : null;
        }));
    showCounts();
  }
  const active = screens.get(here)?.nav ? here : screens.get(here)?.under || here;
  for (const g of nav.querySelectorAll('.group')) g.classList.toggle('closed', isShut(g.dataset.group));
  for (const a of nav.querySelectorAll('a.item')) {
    if (a.dataset.screen === active) {
      a.setAttribute('aria-current', 'page');
      a.parentNode.classList.remove('closed');
    } else a.removeAttribute('aria-current');
  }
}
// Groups open and close; the two long lists of kinds are closed at first. The group of the present screen is open.
const isShut = (g) =>
    (remember.get(`nav-${g}`) || (['Workloads', 'Storage and policy'].includes(g) ? 'closed' : 'open')) === 'closed';
function navGroup(g, items) {
  const shut = isShut(g);
  const button =
      h('button', {
        type: 'button',
        'aria-expanded': String(!shut),
        onclick: () => {
          const c = el.classList.toggle('closed');
          button.setAttribute('aria-expanded', String(!c));
          remember.set(`nav-${g}`, c ? 'closed' : 'open');
        }
      },
        g);
  const el =
      h('div', {class: shut ? 'group closed' : 'group', role: 'group', 'aria-label': g, dataset: {group: g}},
        h('h2', {}, button), items.map(navItem));
  return el;
}
function navItem(s) {
  const count = h('span', {class: 'count'});
  counts.set(s.name, count);
  return h(
      'a',
      {class: 'item', href: to(s.name), dataset: {screen: s.name}, title: s.key ? `${s.title} (g ${s.key})` : s.title},
      icon(s.name), h('span', {class: 'label'}, s.nav.label || s.title), count);
}
function brand() {
  return h(
      'svg:svg', {viewBox: '0 0 32 32', width: 22, height: 22, 'aria-hidden': 'true'},
      h('svg:rect', {width: 32, height: 32, rx: 7, fill: '#1d8ba5'}),
      [[7, 7, 1], [17, 7, 0.55], [7, 17, 0.55], [17, 17, 1]].map(
          ([x, y, o]) => h('svg:rect', {x, y, width: 8, height: 8, rx: 1.5, fill: '#fff', opacity: o})));
}
function showCounts() {
  for (const k of ['pods', 'nodes'])
    if (counts.has(k)) counts.get(k).textContent = rows(k).size ? fmt.count(rows(k).size) : '';
}

function buildTop() {
  const live = h('span', {class: 'live', role: 'status'}, '');
  onState((state, info) => {
    live.dataset.state = state;
    live.textContent = {live: 'Live', loading: 'Loading', lost: 'Disconnected'}[state];
    live.title = {
      live: 'Changes are shown as they happen',
      loading: 'The cluster\'s state is being read',
      lost: info
    }[state];
    banner(state, info);
  });
  const copy = h('span', {id: 'copy', class: 'tag warn', hidden: true});
  const crumbs = h('span', {class: 'crumbs'}), title = h('h1', {tabindex: '-1'});
  replace(
      document.getElementById('top'),
      h('button', {
        type: 'button',
        class: 'ghost icononly',
        'aria-label': 'Narrow or wide navigation',
        title: 'Narrow or wide navigation',
        onclick: toggleNav
      },
        icon('menu')),
      h('div', {class: 'where'}, crumbs, title), copy,
      h('button', {type: 'button', class: 'searchbutton', onclick: openPalette, 'aria-keyshortcuts': 'Control+K'},
        icon('search'), h('span', {class: 'label'}, 'Search'), h('kbd', {'aria-hidden': 'true'}, 'Ctrl K')),
      live, h('button', {
        type: 'button',
        class: 'ghost icononly',
        id: 'themebutton',
        onclick: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark')
      }),
      h('button', {
        type: 'button',
        class: 'ghost icononly',
        'aria-label': 'Keyboard shortcuts',
        title: 'Keyboard shortcuts (?)',
        onclick: openHelp
      },
        icon('help')));
  return {crumbs, title, copy};
}
const phone = matchMedia('(max-width: 640px)');  // narrow.css: the navigation is a drawer there
function drawer(open) {
  const d = document.documentElement.dataset;
  if (!open && !d.drawer) return;
  d.drawer = open ? 'open' : '';
  document.querySelector('#nav a.item').focus();
  if (!open) document.getElementById('main').focus();
}
function toggleNav() {
  const d = document.documentElement.dataset;
  if (phone.matches) {
    drawer(!d.drawer);
    return;
  }
  remember.set('nav', d.nav === 'narrow' ? 'wide' : 'narrow');
  applyNav();
}
const tablet = matchMedia('(max-width: 860px)');
function applyNav() {
  const choice = remember.get('nav') || (tablet.matches ? 'narrow' : 'wide');
  document.documentElement.dataset.nav = phone.matches ? 'wide' : choice;
}
for (const m of [phone, tablet]) m.addEventListener('change', applyNav);

// The server is another one than before, and empty or back at its start: said until somebody has read it.
function gone(el) {
  const text = store.lost;
  el.className = '';
  el.dataset.for = 'gone';
  el.hidden = false;
  replace(el, h('span', {class: 'grow'}, `The cluster of before is gone: ${text}.`), h('button', {
            type: 'button',
            onclick: () => {
              remember.set('lost', text);
              el.hidden = true;
            }
          }, 'I see'));
}
let bannerTimer = 0;
function banner(state, info) {
  const el = document.getElementById('banner');
  clearTimeout(bannerTimer);
  if (state !== 'lost') {
    if (el.dataset.for === 'token') return;
    el.hidden = true;
    if (state === 'live' && store.lost && store.lost !== remember.get('lost')) gone(el);
    return;
  }
  // A connection that comes back at once is not worth a banner.
  bannerTimer = setTimeout(() => {
    el.className = 'bad';
    el.dataset.for = 'lost';
    el.hidden = false;
    replace(
        el,
        h('span', {class: 'grow'},
          `The connection to the server is lost (${info}). What you see may be old; it is resumed by itself.`),
        h('button', {type: 'button', onclick: restart}, 'Try now'));
  }, 1200);
}
auth.needed = () => {
  const el = document.getElementById('banner');
  clearTimeout(bannerTimer);
  el.className = 'bad';
  el.dataset.for = 'token';
  el.hidden = false;
  replace(
      el,
      h('span', {class: 'grow'}, auth.token ? 'The server does not accept the token.' : 'The server wants a token.'),
      h('a', {class: 'button', href: to('settings')}, 'Enter a token'));
};
export function tokenChanged() {
  document.getElementById('banner').dataset.for = '';
  document.getElementById('banner').hidden = true;
  restart();
}

// ---- search and commands -----------------------------------------------------------------------------------

const commands = [];
function addCommand(title, run, hint = '') { commands.push({title, run, what: hint || 'Command'}); }

// Objects of all kinds but pods, nodes (the store has those) and events: names only, asked for each time the search is opened.
const MOST = 2000;  // of one kind
let others = [];
async function listOthers(listed) {
  const kinds = (await discover(true)).filter((k) => !['pods', 'nodes', 'events'].includes(k.watch) && k.kind !== 'Event');
  const fresh = [], accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
  const worker = async () => {
    for (let k; (k = kinds.pop());) {
      const got = await fetchJSON(`${objectPath(k)}?limit=${MOST}`, {accept}).catch(() => null);  // forbidden: not found either
      for (const o of (got && got.items) || []) {
        const {name, namespace} = o.metadata;
        fresh.push({
          title: namespace ? `${namespace}/${name}` : name,
          what: k.kind,
          run: () => navigate(objectRoute(k, {name, namespace}))
        });
      }
    }
  };
  await Promise.all([worker(), worker(), worker()]);
  others = fresh;
  listed();
}

// Letters in order, whole words first; 0: no match.
function score(text, words) {
  const t = text.toLowerCase();
  let s = 0;
  for (const w of words) {
    const i = t.indexOf(w);
    if (i < 0) return 0;
    s += i === 0 ? 30 : /[-/ .]/.test(t[i - 1]) ? 20 : 10;
  }
  return s + 10 / (1 + t.length / 20);
}
function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), out = [];
  for (const s of screens.values())
    if (s.nav)
      out.push({
        title: s.title,
        what: s.key ? `Screen, g ${s.key}` : 'Screen',
        run: () => navigate(to(s.name)),
        s: words.length ? score(s.title, words) * 1.3 : 1
      });
  for (const c of commands) out.push({...c, s: words.length ? score(c.title, words) * 1.2 : 0.5});
  if (words.length) {
    for (const n of rows('nodes').values()) {
      const s = score(n.name, words);
      if (s) out.push({title: n.name, what: 'Node', run: () => navigate(to('nodes', n.name)), s});
    }
    for (const o of others) {
      const s = score(o.title, words) || score(`${o.what} ${o.title}`, words);
      if (s) out.push({...o, s});
    }
    let seen = 0;
    for (const p of rows('pods').values()) {
      const s = score(p.key, words);
      if (s) {
        out.push({
          title: p.key,
          what: p.node ? `Pod on ${p.node}` : `Pod, ${p.phase}`,
          run: () => navigate(to('pods', p.namespace, p.name)),
          s
        });
        if (++seen > 2000) break;
      }
    }
  }
  return out.filter((x) => x.s > 0).sort((a, b) => b.s - a.s || (a.title < b.title ? -1 : 1)).slice(0, 30);
}
function openPalette() {
  if (document.querySelector('dialog[open]')) return;
  let hits = [], at = 0;
  const list = h('ul', {role: 'listbox', id: 'palette-list', 'aria-label': 'Results'});
  const input = h('input', {
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': 'palette-list',
    'aria-label': 'Search screens, commands and objects of every kind',
    placeholder: 'Search screens, commands and objects of every kind',
    spellcheck: 'false',
    autocomplete: 'off'
  });
  const el =
      h('dialog', {
        class: 'palette',
        'aria-label': 'Search',
        onclose: () => el.remove(),
        onclick: (e) => {
          if (e.target === el) el.close();
        }
      },
        input, list);
  const mark = (i) => {
    at = Math.max(0, Math.min(hits.length - 1, i));
    [...list.children].forEach((li, j) => {
      li.setAttribute('aria-selected', String(j === at));
      if (j === at) {
        li.scrollIntoView({block: 'nearest'});
        input.setAttribute('aria-activedescendant', li.id);
      }
    });
  };
  const show = () => {
    hits = find(input.value);
    replace(
        list,
        hits.length
            ? hits.map(
                  (x, i) =>
                      h('li', {role: 'option', id: `palette-${i}`, onclick: () => go(i), onpointermove: () => mark(i)},
                        h('span', {class: 'clip'}, x.title), h('span', {class: 'what'}, x.what)))
            : h('li', {class: 'faint'}, 'Nothing found'));
    mark(0);
  };
  const go = (i) => {
    const x = hits[i];
    el.close();
    if (x) x.run();
  };
  input.addEventListener('input', debounce(60, show));
  input.addEventListener('keydown', (e) => {
    if (e.key === 'ArrowDown') {
      e.preventDefault();
      mark(at + 1);
    }
    if (e.key === 'ArrowUp') {
      e.preventDefault();
      mark(at - 1);
    }
    if (e.key === 'Enter') {
      e.preventDefault();
      hits = find(input.value);
      go(Math.min(at, hits.length - 1));
    }
  });
  document.body.append(el);
  el.showModal();
  show();
  input.focus();
  // What came meanwhile is shown where nobody has chosen a row yet.
  listOthers(() => el.isConnected && at === 0 && show()).catch((e) => toast(e.message, 'bad'));
}

// ---- shortcuts ---------------------------------------------------------------------------------------------

const KEYS = [
  ['Ctrl K', 'Search screens, commands, objects of every kind'],
  ['/', 'Filter of the table; without one: search everything'],
  ['?', 'This overview'],
  ['g then a letter', 'Go to a screen'],
  ['t', 'Light or dark'],
  ['n', 'New object from a template'],
  ['Arrows, Page, Home, End', 'Move in a table, the map or a list'],
  ['Enter', 'Open the row'],
  ['Space', 'Select the row'],
  ['Ctrl A', 'Select all rows shown'],
  ['Esc', 'Clear the selection; close'],
  ['Ctrl Enter', 'Editor: apply'],
  ['Tab, Shift Tab', 'Editor: indent (Esc, then Tab leaves the editor)'],
];
function openHelp() {
  const go = [...screens.values()].filter((s) => s.nav && s.key).sort((a, b) => (a.key < b.key ? -1 : 1));
  const list = (items) =>
      h('dl', {class: 'kv'},
        items.map(
            ([k, v]) =>
                [h('dt', {},
                   k.split(', ').length > 1 || k.includes('then') ? h('kbd', {}, k)
                                                                  : k.split(' ').map((x) => h('kbd', {}, x))),
                 h('dd', {}, v)]));
  dialog({
    title: 'Keyboard',
    wide: true,
    body: h('div', {class: 'grid two'}, list(KEYS), list(go.map((s) => [`g ${s.key}`, s.nav.label || s.title])))
  });
}
let gPressed = 0;
function onKey(e) {
  const t = e.target,
        typing = t.closest &&
      t.closest('input:not([type=checkbox]):not([type=radio]):not([type=range]),textarea,select,[contenteditable]');
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    openPalette();
    return;
  }
  if (e.key === 'Escape') drawer(false);
  if (typing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  if (gPressed && performance.now() - gPressed < 1500) {
    gPressed = 0;
    const s = [...screens.values()].find((x) => x.key === e.key);
    if (s) {
      e.preventDefault();
      navigate(to(s.name));
    }
    return;
  }
  if (e.key === 'g') {
    gPressed = performance.now();
    return;
  }
  if (e.key === '?') {
    e.preventDefault();
    openHelp();
  }
  if (e.key === 't') setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
  if (e.key === 'n') navigate(to('edit'));
  if (e.key === '/') {
    e.preventDefault();
    const s = document.querySelector('#main .vt-search');
    if (s && s.offsetParent) {
      s.focus();
      s.select();
    } else openPalette();
  }
}

// ---- start -------------------------------------------------------------------------------------------------

async function start() {
  applyNav();
  const top = buildTop();
  applyTheme();
  const load = async (f) => {
    try {
      await import(`./${f}.js`);
    } catch (e) { console.warn(`${f}.js: ${e.message}`); }
  };
  const [server] = await Promise.all([fetchJSON('/berth/v1/overview').catch(() => ({})), ...FILES.map(load)]);
  learnProfiles(server);
  if (server.observes) await load('comparison');
  if (server.readOnly) {
    const {name, server: url} = server.observes || {};
    top.copy.hidden = false;
    top.copy.title = url || '';
    replace(top.copy, url ? [h('b', {}, name || url), ' read-only'] : 'read-only');
    forbidWrites(
        server.observes ? `This is a read-only copy of ${server.observes.server}: what is to change is changed there.` :
                          'The server runs with --read-only.');
  }
  addEventListener('keydown', onKey);
  document.getElementById('skip').addEventListener('click', (e) => {
    e.preventDefault();
    document.getElementById('main').focus();
  });
  document.getElementById('frame').addEventListener('click', (e) => {
    if (!e.target.closest('#top')) drawer(false);
  });
  addCommand('Light theme', () => setTheme('light'));
  addCommand('Dark theme', () => setTheme('dark'));
  addCommand('Keyboard shortcuts', openHelp);
  startRouter({
    onTitle: (text, crumbs) => {
      document.title = `${text} - Berth`;
      replace(top.crumbs, crumbs.map((c) => [c, h('span', {class: 'faint', 'aria-hidden': 'true'}, '/')]));
      replace(top.title, text);
      top.title.title = text;
    },
    onRoute: (moved) => {
      buildNav();
      drawer(false);
      // A reader of the page continues at the new screen's heading, unless the screen has chosen a place.
      if (moved && !document.activeElement.closest('.screen')) top.title.focus({preventScroll: true});
    },
  });
  for (const k of ['pods', 'nodes']) subscribe(k, debounceCounts);
  startStore();
}
const debounceCounts = (() => {
  let t = 0;
  return () => {
    if (!t)
      t = setTimeout(() => {
        t = 0;
        showCounts();
      }, 250);
  };
})();

addEventListener('unhandledrejection', (e) => {
  if (e.reason && e.reason.name === 'AbortError') {
    e.preventDefault();
    return;
  }
  if (e.reason instanceof ApiError) e.preventDefault();
  toast(e.reason && e.reason.message ? e.reason.message : 'Something went wrong in the page.', 'bad');
});
start();
