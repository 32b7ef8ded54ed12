// SPDX-License-Identifier: Apache-2.0
//
// queue.js - the scheduler's queue: who is tried next, who waits, for what
//
// #/queue[?in=PLACE&plugin=NAME&q=TEXT]

import { Table, empty, fmt, h, note, panel, reasonsOf, registerScreen, replace, setQuery, spinner, tag, plural, to } from './lib.js';
import { askProfiles, isUnserved } from './schedulers.js';
import { rows } from './store.js';
import { ask, count, failure, podDecisionsHref, podRef, whatifHref } from './parts.js';

const PLACES = [['active', 'is next to be tried', 'info'], ['backoff', 'waits out its backoff', 'warn'], ['error-backoff', 'failed, waits out its backoff', 'warn'],
  ['unschedulable', 'until something changes', 'bad'], ['gated', 'kept out by a gate', 'warn'], ['waiting', 'has a node, waits for Permit', 'info'], ['in-flight', 'is being decided', 'info'], ['binding', 'is being bound', 'ok']];
const TONE = Object.fromEntries(PLACES.map(([p, , t]) => [p, t]));
const SLOWEST = 30000; // between two looks at a queue of 100,000

const left = (t) => { const s = (Date.parse(t) - Date.now()) / 1000; return s > 0 ? `${s.toFixed(s < 10 ? 1 : 0)} s` : 'now'; };

// What the pod waits for, in the column of timers: backoff and the patience of Permit plugins count down, all else counts up.
const until = (p) => p.backoffUntil || p.permitUntil;
const timer = (p) => (until(p) ? `in ${left(until(p))}` : fmt.age(p.queuedAt || p.createdAt));

const columns = [
  { id: 'pod', title: 'Pod', width: 'minmax(180px,1.6fr)', text: (p) => `${p.namespace}/${p.name}`, cell: (p) => podRef(p.namespace, p.name) },
  { id: 'queue', title: 'Queue', width: '126px', text: (p) => p.queue, cell: (p) => tag(p.queue, TONE[p.queue]) },
  { id: 'timer', title: 'Since / tried', width: '104px', align: 'right', live: true, text: timer, sort: (p) => Date.parse(until(p) || p.queuedAt || p.createdAt) },
  { id: 'attempts', title: 'Attempts', width: '86px', align: 'right', order: 'desc', text: (p) => p.attempts, sort: (p) => p.attempts, cell: (p) => h('a', { href: podDecisionsHref(p.namespace, p.name) }, p.attempts) },
  { id: 'priority', title: 'Priority', width: '84px', align: 'right', order: 'desc', text: (p) => p.priority, sort: (p) => p.priority },
  { id: 'plugins', title: 'Kept by', width: 'minmax(140px,1.2fr)', text: (p) => (p.plugins || []).join(', ') },
  { id: 'message', title: 'Message', width: 'minmax(160px,2.4fr)', text: (p) => p.message || '', cell: (p) => reasonsOf(p.message), byText: true },
  { id: 'ask', title: '', width: '84px', text: () => '', cell: (p) => h('a', { href: whatifHref(p.namespace, p.name), tabindex: '-1' }, 'what if?') },
];

class Queue {
  constructor(place, query) {
    place.classList.add('fill');
    this.where = query.in || '';
    this.plugin = query.plugin || '';
    this.places = h('div', { class: 'q-places', role: 'group', 'aria-label': 'part of the queue' });
    this.by = h('select', { 'aria-label': 'kept by plugin', onchange: () => { this.plugin = this.by.value; this.filter(); } });
    this.table = new Table({ columns, key: (p) => p.uid || `${p.namespace}/${p.name}`, name: 'queue', sort: { id: 'queue', dir: 'asc' }, query: query.q || '', onQuery: (q) => setQuery({ q: q || null }), tools: [this.by],
      onOpen: (p) => { location.hash = podDecisionsHref(p.namespace, p.name); }, emptyNode: empty('The queue is empty', 'Every pod that the scheduler knows has a node.') });
    this.state = h('div');
    this.outside = h('div');
    this.box = panel(null, { flush: true, class: 'grow' }, this.table.el);
    this.box.firstChild.classList.add('q-fill');
    replace(place, this.places, this.state, this.outside, this.box);
    this.box.hidden = true;
    replace(this.state, spinner('Asking the scheduler'));
  }

  filter() {
    setQuery({ in: this.where || null, plugin: this.plugin || null });
    this.table.setFilter(this.where || this.plugin ? (p) => (!this.where || p.queue === this.where) && (!this.plugin || (p.plugins || []).includes(this.plugin)) : null);
    for (const b of this.places.children) b.setAttribute('aria-pressed', String(b.dataset.place === this.where));
  }

  show(got) {
    const n = got.counts || {}, all = got.items.length;
    const known = PLACES.filter(([p]) => n[p] || ['active', 'backoff', 'unschedulable', 'gated'].includes(p));
    replace(this.places, [['', 'all of the queue'], ...known].map(([p, text]) => h('button', { type: 'button', dataset: { place: p }, 'aria-pressed': String(p === this.where), title: text,
      onclick: () => { this.where = this.where === p ? '' : p; this.filter(); } }, h('b', {}, count(p ? n[p] : all)), h('small', {}, p || 'all'))));
    const plugins = new Map();
    for (const p of got.items) for (const k of p.plugins || []) plugins.set(k, (plugins.get(k) || 0) + 1);
    if (this.plugin && !plugins.has(this.plugin)) plugins.set(this.plugin, 0);
    replace(this.by, h('option', { value: '' }, 'kept by any plugin'), [...plugins].sort((a, b) => b[1] - a[1]).map(([k, c]) => h('option', { value: k }, `${k} (${count(c)})`)));
    this.by.value = this.plugin;
    replace(this.state, got.running === false ? note('warn', 'The scheduler does not decide at the moment: it waits for the lease or for the watcher.') : null);
    this.box.hidden = false;
    this.table.setRows(got.items);
    if (!this.filtered) { this.filtered = true; if (this.where || this.plugin) this.filter(); }
  }

  // Pods that wait and are in no queue, as far as a line has room.
  showOutside() {
    const list = [...rows('pods').values()].filter(isUnserved), shown = list.slice(0, 5);
    replace(this.outside, list.length ? note('warn', `${plural(list.length, 'pod')} ${list.length === 1 ? 'is' : 'are'} in no queue, for no scheduler here serves ${list.length === 1 ? 'its' : 'their'} spec.schedulerName: `,
      shown.map((p, i) => [i ? ', ' : '', h('a', { href: podDecisionsHref(p.namespace, p.name) }, p.key), ` (${p.scheduler})`]), list.length > shown.length ? h('span', {}, ', and ', h('a', { href: to('pods', { q: 'status:"No scheduler"' }) }, `${count(list.length - shown.length)} more`)) : null) : null);
  }

  async load() {
    const t0 = performance.now();
    try {
      const [got] = await Promise.all([ask('GET', '/berth/v1/queue'), askProfiles()]);
      if (!this.gone) this.showOutside();
      if (!this.gone) this.show(got);
    } catch (err) {
      if (!this.gone) { this.box.hidden = true; replace(this.places); replace(this.state, failure(err, () => this.load())); }
    }
    if (this.gone) return;
    clearTimeout(this.next);
    this.next = setTimeout(() => this.turn(), Math.min(SLOWEST, Math.max(1500, (performance.now() - t0) * 8)));
  }

  turn() {
    if (document.hidden) { this.next = setTimeout(() => this.turn(), 1000); return; }
    this.load();
  }
}

registerScreen('queue', {
  title: 'Queue', key: 'q', nav: { group: 'Decisions', order: 30 },
  mount(el, route) {
    const q = new Queue(el, route.query);
    q.load();
    const second = setInterval(() => !q.box.hidden && q.table.draw(true), 1000);
    return () => { q.gone = true; clearInterval(second); clearTimeout(q.next); };
  },
});
