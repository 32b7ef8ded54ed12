// SPDX-License-Identifier: Apache-2.0
//
// timeline.js - what happened, on a line, and the cluster as it was at any point of it
//
// #/timeline[?at=REVISION]

import { empty, fmt, h, nodeLink, plural, reasonsOf, registerScreen, replace, sequential, setQuery, tip, to } from './lib.js';
import { share } from './kinds.js';
import { RowList, ask, clip, count, cssColour, into, podDecisionsHref, podRef } from './parts.js';

const LANES = [['created', 'created', '--c3'], ['bound', 'bound', '--c1'], ['updated', 'updated', '--c9'], ['evicted', 'evicted', '--c6'],
  ['deleted', 'deleted', '--c4'], ['config', 'configuration', '--c10']];
const LANE = 24, AXIS = 22, LIMIT = 5000;

// ---- the lanes -----------------------------------------------------------------------------------

export class Lanes {
  constructor(onCursor) {
    this.onCursor = onCursor;
    this.items = [];
    this.at = -1;
    this.canvas = h('canvas', { class: 'q-lanes', tabindex: '0', role: 'slider', 'aria-label': 'moment: arrows go from event to event, page keys ten, plus and minus zoom' });
    this.canvas.style.height = `${LANES.length * LANE + AXIS}px`;
    this.el = h('div', { class: 'q-lanes-box' }, h('div', { class: 'q-lanes-names' }, ...LANES.map(([, name]) => h('span', {}, name))), this.canvas);
    new ResizeObserver(() => this.later()).observe(this.canvas);
    this.listen();
  }

  set(items) {
    const following = this.at < 0 || this.at === this.items.length - 1, was = this.items[this.at];
    this.items = items.map((e) => ({ ...e, t: Date.parse(e.time), lane: Math.max(0, LANES.findIndex(([w]) => w === e.what)) })).sort((a, b) => a.t - b.t || a.revision - b.revision);
    const n = this.items.length;
    const first = n ? this.items[0].t : Date.now() - 1000, last = n ? this.items[n - 1].t : Date.now();
    const pad = Math.max(500, (last - first) * 0.02);
    this.whole = [first - pad, last + pad];
    if (!this.from || following) [this.from, this.to] = this.whole;
    if (following) this.at = n - 1;
    else if (was) this.at = Math.max(0, this.items.findIndex((e) => e.revision === was.revision && e.t === was.t));
    this.later();
  }

  x(t) { return ((t - this.from) * this.canvas.clientWidth) / (this.to - this.from); }
  time(x) { return this.from + (x * (this.to - this.from)) / this.canvas.clientWidth; }

  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw() {
    const k = devicePixelRatio || 1, w = this.canvas.clientWidth, hh = LANES.length * LANE + AXIS;
    if (!w || !this.whole) return;
    this.canvas.width = Math.round(w * k);
    this.canvas.height = Math.round(hh * k);
    const g = this.canvas.getContext('2d');
    g.setTransform(k, 0, 0, k, 0, 0);
    this.grid(g, w);
    this.marks(g, w);
    if (this.at >= 0 && this.items[this.at]) {
      const x = Math.round(this.x(this.items[this.at].t)) + 0.5;
      g.fillStyle = cssColour('--text');
      g.fillRect(x - 1, 0, 2, LANES.length * LANE);
      g.beginPath();
      g.arc(x, 4, 4, 0, 7);
      g.fill();
    }
  }

  grid(g, w) {
    g.font = `11px ${cssColour('--font')}`;
    LANES.forEach((_, i) => { g.fillStyle = cssColour(i % 2 ? '--surface' : '--surface-2'); g.fillRect(0, i * LANE, w, LANE); });
    const span = this.to - this.from, steps = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 86400].map((s) => s * 1000);
    const step = steps.find((s) => (s * w) / span > 90) || steps[steps.length - 1];
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step) {
      const x = Math.round(this.x(t)) + 0.5;
      g.fillStyle = cssColour('--line');
      g.fillRect(x, 0, 1, LANES.length * LANE);
      g.fillStyle = cssColour('--text-3');
      const text = fmt.time(t), long = g.measureText(text).width;
      g.fillText(text, x + 3 + long <= w ? x + 3 : x - 3 - long, LANES.length * LANE + 15);
    }
  }

  // Events that fall on one pixel are one mark, taller the more they are.
  marks(g, w) {
    const n = LANES.map(() => new Uint32Array(Math.ceil(w / 3) + 1));
    for (const e of this.items) {
      const x = this.x(e.t);
      if (x >= 0 && x <= w) n[e.lane][Math.floor(x / 3)]++;
    }
    n.forEach((lane, i) => {
      g.fillStyle = cssColour(LANES[i][2]);
      lane.forEach((c, x) => {
        if (!c) return;
        const tall = Math.min(LANE - 4, 6 + 5 * Math.log2(c));
        g.fillRect(x * 3, i * LANE + (LANE - tall) / 2, 3, tall);
      });
    });
  }

  look(from, to) {
    const span = Math.max(1000, Math.min(this.whole[1] - this.whole[0], to - from));
    this.from = Math.max(this.whole[0], Math.min(this.whole[1] - span, from));
    this.to = this.from + span;
    this.later();
  }

  zoom(f, t) { this.look(t - (t - this.from) * f, t + (this.to - t) * f); }

  nearest(t) {
    let a = 0, b = this.items.length;
    while (a < b) { const m = (a + b) >> 1; if (this.items[m].t <= t) a = m + 1; else b = m; }
    return Math.max(0, a - 1);
  }

  // quiet: nobody moved the cursor, it follows what is new.
  go(i, quiet) {
    if (!this.items.length) return;
    this.at = Math.max(0, Math.min(this.items.length - 1, i));
    const e = this.items[this.at];
    if (e.t < this.from || e.t > this.to) { const half = (this.to - this.from) / 2; this.look(e.t - half, e.t + half); }
    this.canvas.setAttribute('aria-valuenow', String(e.revision));
    this.canvas.setAttribute('aria-valuetext', `${fmt.time(e.time)}, revision ${e.revision}`);
    this.later();
    this.onCursor(e, quiet);
  }

  goRevision(revision) {
    const i = this.items.findIndex((e) => e.revision >= revision);
    this.go(i < 0 ? this.items.length - 1 : i);
  }

  listen() {
    const c = this.canvas;
    let drag = null;
    c.addEventListener('pointerdown', (e) => { drag = e.shiftKey ? { x: e.clientX, from: this.from, to: this.to } : 'cursor'; c.setPointerCapture(e.pointerId); if (drag === 'cursor') this.go(this.nearest(this.time(e.offsetX))); });
    c.addEventListener('pointermove', (e) => {
      if (drag === 'cursor') this.go(this.nearest(this.time(e.offsetX)));
      else if (drag) { const d = ((e.clientX - drag.x) * (drag.to - drag.from)) / c.clientWidth; this.look(drag.from - d, drag.to - d); }
      else this.hover(e);
    });
    c.addEventListener('pointerup', () => { drag = null; });
    c.addEventListener('pointerleave', () => tip(0, 0, null));
    c.addEventListener('wheel', (e) => {
      e.preventDefault();
      const span = this.to - this.from;
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.look(this.from + (e.deltaX * span) / c.clientWidth, this.to + (e.deltaX * span) / c.clientWidth);
      else this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.time(e.offsetX));
    }, { passive: false });
    c.addEventListener('keydown', (e) => this.key(e));
  }

  key(e) {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -this.items.length, End: this.items.length }[e.key];
    if (step) this.go(this.at + step);
    else if (e.key === '+' || e.key === '=') this.zoom(0.5, this.items[this.at] ? this.items[this.at].t : (this.from + this.to) / 2);
    else if (e.key === '-') this.zoom(2, this.items[this.at] ? this.items[this.at].t : (this.from + this.to) / 2);
    else return;
    e.preventDefault();
  }

  hover(e) {
    const lane = Math.floor(e.offsetY / LANE), a = this.time(e.offsetX - 3), b = this.time(e.offsetX + 3);
    const hits = this.items.filter((x) => x.lane === lane && x.t >= a && x.t <= b);
    if (!hits.length) { tip(0, 0, null); return; }
    tip(e.clientX, e.clientY, h('b', {}, `${plural(hits.length, 'event')} at ${fmt.time(hits[0].time)}`),
      ...hits.slice(0, 6).map((x) => h('div', {}, `${x.kind} ${x.namespace ? x.namespace + '/' : ''}${x.name} ${x.what}${x.detail ? ': ' + x.detail : ''}`)), hits.length > 6 ? h('div', {}, '…') : null);
  }
}

// ---- the cluster as it was -----------------------------------------------------------------------

// A cell a node, filled as far as it is requested.
function miniMap(nodes, what = 'cpu') {
  const canvas = h('canvas', { class: 'q-minimap', role: 'img', 'aria-label': `${plural(nodes.length, 'node')}, filled by requested ${what}` });
  const list = [...nodes].sort((a, b) => (a.zone || '').localeCompare(b.zone || '') || (a.name < b.name ? -1 : 1));
  let cols = 1, cell = 10;
  const draw = () => {
    const w = canvas.clientWidth, k = devicePixelRatio || 1;
    if (!w) return;
    cell = Math.max(3, Math.min(26, Math.floor(Math.sqrt((w * 200) / Math.max(1, list.length)))));
    cols = Math.max(1, Math.floor(w / cell));
    const hh = Math.max(cell, Math.ceil(list.length / cols) * cell);
    canvas.style.height = `${hh}px`;
    canvas.width = Math.round(w * k);
    canvas.height = Math.round(hh * k);
    const g = canvas.getContext('2d');
    g.setTransform(k, 0, 0, k, 0, 0);
    const c = { empty: cssColour('--surface-3'), fill: cssColour('--bar-1'), full: cssColour('--bad'), off: cssColour('--line-2') };
    list.forEach((n, i) => {
      const x = (i % cols) * cell, y = Math.floor(i / cols) * cell, s = cell - 1, f = Math.min(1, share(n, what));
      const off = n.unschedulable || n.ready === false;
      if (s < 8) { g.fillStyle = off ? c.off : sequential(f); g.fillRect(x, y, s, s); return; } // too small to be filled in part
      g.fillStyle = off ? c.off : c.empty;
      g.fillRect(x, y, s, s);
      g.fillStyle = f > 0.95 ? c.full : c.fill;
      g.fillRect(x, y + s * (1 - f), s, s * f);
    });
  };
  const at = (e) => list[Math.floor(e.offsetY / cell) * cols + Math.floor(e.offsetX / cell)];
  canvas.addEventListener('pointermove', (e) => {
    const n = at(e);
    if (!n) { tip(0, 0, null); return; }
    tip(e.clientX, e.clientY, h('b', {}, n.name), h('div', {}, `cpu ${fmt.cpu((n.requested || {}).cpu_milli || 0)} of ${fmt.cpu((n.allocatable || {}).cpu_milli || 0)}`),
      h('div', {}, `memory ${fmt.bytes((n.requested || {}).memory_bytes || 0)} of ${fmt.bytes((n.allocatable || {}).memory_bytes || 0)}`), h('div', {}, plural((n.requested || {}).pods || 0, 'pod')));
  });
  canvas.addEventListener('pointerleave', () => tip(0, 0, null));
  canvas.addEventListener('click', (e) => { const n = at(e); if (n) location.hash = to('nodes', n.name); });
  new ResizeObserver(draw).observe(canvas);
  return canvas;
}

function total(nodes, what) {
  const key = what === 'cpu' ? 'cpu_milli' : 'memory_bytes', all = nodes.reduce((n, x) => n + ((x.allocatable || {})[key] || 0), 0), used = nodes.reduce((n, x) => n + ((x.requested || {})[key] || 0), 0);
  return all ? `${((100 * used) / all).toFixed(1)} %` : '–';
}

function tile(name, value, sub, href) {
  return h(href ? 'a' : 'div', href ? { class: 'tile', href } : { class: 'tile' }, h('span', { class: 'name' }, name), h('span', { class: 'value' }, value), h('span', { class: 'sub' }, sub || ''));
}

function asOf(got, e) {
  const pending = got.pods.filter((p) => !p.node && p.phase !== 'Succeeded' && p.phase !== 'Failed');
  const list = new RowList({ height: 26, label: 'pods that were pending', rows: 9,
    draw: (i) => [podRef(pending[i].namespace, pending[i].name), h('span', { class: 'muted clip grow', title: pending[i].message || null }, reasonsOf(pending[i].message) || pending[i].reason || ''), h('a', { href: podDecisionsHref(pending[i].namespace, pending[i].name) }, 'decisions')] });
  list.setCount(pending.length);
  return h('section', { class: 'panel' }, h('header', {}, h('h2', {}, `The cluster at ${fmt.time(e.time)}`), h('span', { class: 'faint num' }, `revision ${got.revision}`)),
    h('div', { class: 'body col' }, h('div', { class: 'tiles' }, tile('Nodes', count(got.nodes.length), `${count(got.nodes.filter((n) => n.unschedulable).length)} cordoned`),
      tile('Pods', count(got.pods.length), `${count(got.pods.filter((p) => p.node).length)} on nodes`), tile('Pending', count(pending.length), ''), tile('cpu requested', total(got.nodes, 'cpu'), ''), tile('memory requested', total(got.nodes, 'memory'), '')),
    got.nodes.length ? miniMap(got.nodes) : empty('No nodes', 'At this moment the cluster was empty.'),
    pending.length ? h('div', {}, h('h3', { class: 'q-h3' }, 'Pending then'), list.el) : null));
}

// ---- the screen ----------------------------------------------------------------------------------

const jump = (e) => (e.kind === 'Pod' ? podRef(e.namespace, e.name) : e.kind === 'Node' ? nodeLink(e.name) : h('span', {}, `${e.kind} ${e.namespace ? e.namespace + '/' : ''}${e.name}`));

class Timeline {
  constructor(place, query) {
    this.at = query.at;
    this.lanes = new Lanes((e, quiet) => this.cursor(e, quiet));
    this.state = h('div');
    this.then = h('div', { class: 'q-then' });
    this.about = h('span', { class: 'faint num' });
    this.list = new RowList({ height: 28, label: 'events', draw: (i) => this.row(this.lanes.items[i]), onOpen: (i) => this.lanes.go(i) });
    this.follow = h('input', { type: 'checkbox', checked: true });
    replace(place, h('section', { class: 'panel' }, h('header', {}, h('h2', {}, 'What happened'), this.about, h('span', { class: 'grow' }),
      h('label', { class: 'check' }, this.follow, 'live'), h('button', { type: 'button', onclick: () => this.lanes.look(...this.lanes.whole) }, 'All'),
      h('button', { type: 'button', onclick: () => this.lanes.go(this.lanes.items.length - 1) }, 'Now'),
      h('small', { class: 'faint' }, 'drag: moment · wheel: zoom · shift-drag: move')), h('div', { class: 'body' }, this.state, this.lanes.el)),
    h('div', { class: 'q-two' }, this.then, h('section', { class: 'panel q-events' }, h('header', {}, h('h2', {}, 'Events')), this.list.el)));
  }

  row(e) {
    const lane = LANES.find(([w]) => w === e.what) || LANES[0], dot = h('i', { class: 'q-dot' });
    dot.style.background = `var(${lane[2]})`;
    return [h('span', { class: 'num faint' }, fmt.time(e.time)), h('span', { class: 'q-what' }, dot, e.what), h('span', { class: 'clip grow' }, jump(e), e.detail ? h('span', { class: 'muted' }, ` ${e.detail}`) : null),
      h('small', { class: 'faint clip' }, e.by || ''), e.kind === 'Pod' && (e.what === 'bound' || e.what === 'evicted') ? h('a', { href: podDecisionsHref(e.namespace, e.name) }, 'why?') : null];
  }

  load() {
    return into(this.state, () => ask('GET', `/berth/v1/timeline?limit=${LIMIT}`), (got) => { this.take(got); this.state.replaceChildren(...(got.items.length ? [] : [empty('Nothing has happened yet', 'Create a node or a pod.')])); });
  }

  take(got) {
    this.newest = got.items.reduce((n, e) => Math.max(n, e.revision), 0);
    this.lanes.set(got.items);
    this.lanes.el.hidden = !got.items.length;
    this.about.textContent = `${got.items.length >= LIMIT ? 'the newest ' : ''}${plural(got.items.length, 'event')}${got.oldest ? `, history reaches back to revision ${got.oldest}` : ''}`;
    this.list.setCount(this.lanes.items.length);
    if (this.at) this.lanes.goRevision(+this.at);
    else if (this.lanes.items.length) this.lanes.go(this.lanes.at, true);
    this.at = null;
  }

  cursor(e, quiet) {
    clearTimeout(this.timer);
    this.list.select(this.lanes.at);
    if (!quiet) setQuery({ at: this.lanes.at === this.lanes.items.length - 1 ? null : e.revision });
    if (this.asked === e.revision) return;
    // Following a busy cluster must not cost more than a tenth of the time that its state takes to be told.
    const wait = quiet ? Math.max(120, (this.ready || 0) + 10 * (this.cost || 0) - performance.now()) : 120;
    this.timer = setTimeout(() => this.goTo(e), wait);
  }

  async goTo(e) {
    const t0 = performance.now();
    this.asked = e.revision;
    await into(this.then, () => ask('GET', `/berth/v1/asof?revision=${e.revision}`), (got) => asOf(got, e));
    this.ready = performance.now();
    this.cost = this.ready - t0;
  }

  async poll() {
    if (!this.follow.checked || document.hidden || this.gone || this.newest === undefined) return;
    const got = await ask('GET', `/berth/v1/timeline?limit=${LIMIT}`).catch(() => null);
    if (got && !this.gone && got.items.some((e) => e.revision > this.newest)) { this.state.replaceChildren(); this.take(got); }
  }
}

function mount(place, { query }) {
  const t = new Timeline(place, query);
  t.load();
  const timer = setInterval(() => t.poll(), 3000);
  return () => { t.gone = true; clearInterval(timer); clearTimeout(t.timer); tip(0, 0, null); };
}


registerScreen('timeline', { title: 'Timeline', key: 't', nav: { group: 'Decisions', order: 40 }, mount });
