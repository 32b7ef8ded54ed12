// SPDX-License-Identifier: Apache-2.0
//
// parts.js - what the screens of questions share: words for decisions, colours for plugins, a list
// that draws only the rows that are seen, the tooltip, the places where an answer is awaited.

import { fetchJSON, fmt, h, podLink, replace, spinner, tag, to } from './lib.js';

export const count = (n) => fmt.count(n || 0);
export const between = (a, b) => fmt.ns((Date.parse(b) - Date.parse(a)) * 1e6);
export const ask = (method, path, body, o) => fetchJSON(path, { method, body, ...o });

// ---- plain words ---------------------------------------------------------------------------------

// What a reason means, after "412 nodes"; the exact text stands beside it wherever this is used.
const REASONS = [
  [/^Too many pods$/, () => 'had no room for another pod'],
  [/untolerated taint/, () => 'had a taint that the pod does not tolerate'],
  [/node affinity\/selector/, () => 'did not match the node selector or affinity of the pod'],
  [/were unschedulable/, () => 'were cordoned'],
  [/requested node name/, () => 'had another name than the pod asks for'],
  [/free ports/, () => 'had the port of the pod taken'],
  [/existing pods anti-affinity/, () => 'ran pods that do not want this one beside them'],
  [/anti-affinity rules/, () => 'ran pods that this one does not want beside it'],
  [/pod affinity rules/, () => 'ran none of the pods that this one wants beside it'],
  [/missing required label/, () => 'lacked the label of a topology spread constraint'],
  [/topology spread constraints/, () => 'would have made the spread of the pods too uneven'],
  [/volume node affinity|persistent volumes to bind/, () => 'could not reach the volume of the pod'],
  [/max volume count/, () => 'had too many volumes attached'],
  [/cannot allocate all claims/, () => 'did not have the devices that the pod claims'],
];

// n: of how many nodes it is said.
export function reasonWords(reasons, n = 2) {
  const words = [], little = [];
  for (const r of reasons || []) {
    const hit = REASONS.find(([re]) => re.test(r)), m = /^Insufficient (.+)$/.exec(r);
    if (m) little.push(m[1]);
    else words.push(hit ? hit[1](r.match(hit[0])) : `said "${r}"`);
  }
  if (little.length) words.push(`had too little ${little.join(' and ')}`);
  return words.length ? words.join(' and ').replace(n === 1 ? /^were\b/ : /^$/, 'was') : 'gave no reason';
}

// The same for the pod as a whole or one node: "has too little cpu".
export function reasonNow(reasons) {
  return reasonWords(reasons).replace(/\bhad\b/g, 'has').replace(/\bwere\b/g, 'is')
    .replace(/\bdid not\b/g, 'does not').replace(/\bran\b/g, 'runs').replace(/\bwould have made\b/g, 'would make')
    .replace(/\bcould not\b/g, 'cannot').replace(/\blacked\b/g, 'lacks').replace(/\bsaid\b/g, 'says');
}

const EVENTS = {
  NodeAdd: 'a node was added', NodeDelete: 'a node went', AssignedPodAdd: 'a pod was placed',
  AssignedPodUpdate: 'a placed pod changed', AssignedPodDelete: 'a pod went', PodAdd: 'it was created',
  UnscheduledPodAdd: 'it was created', UnscheduledPodUpdate: 'it was changed', UnschedulablePodAdd: 'it was created', UnschedulablePodUpdate: 'it was changed', UnschedulableTimeout: 'it had waited long enough',
  NodeUpdate: 'a node changed', NodeTaintChange: 'a taint changed', NodeLabelChange: 'a label of a node changed',
  NodeAllocatableChange: 'a node changed its size', NodeConditionChange: 'a node changed its state',
  BackoffComplete: 'its backoff was over', ScheduleAttemptFailure: 'its last attempt failed and its backoff was over', ForceActivate: 'a plugin asked for it',
};

// An event without words of its own is shown as the scheduler names it.
export const eventWords = (t) => EVENTS[t] || t;

// ---- links ---------------------------------------------------------------------------------------

export const podRef = (ns, name) => podLink(ns, name, `${ns}/${name}`);
export const podDecisionsHref = (ns, name) => to('decisions', 'pod', ns, name);
export const decisionHref = (id) => to('decisions', String(id));
export const whatifHref = (ns, name) => to('whatif', { pod: `${ns}/${name}` });

// ---- plugins have colours ------------------------------------------------------------------------

// The nine that score by default keep theirs on every screen; others take what is left over.
const OWN = ['NodeResourcesFit', 'TaintToleration', 'PodTopologySpread', 'InterPodAffinity',
  'NodeResourcesBalancedAllocation', 'NodeAffinity', 'ImageLocality', 'VolumeBinding', 'DynamicResources'];
const N_COLOURS = 12; // --c1 .. --c12 of app.css

export function pluginColours(plugins) {
  const taken = new Set(), out = new Map();
  for (const p of plugins) {
    const i = OWN.indexOf(p);
    if (i >= 0) { out.set(p, i); taken.add(i); }
  }
  let next = 0;
  for (const p of plugins) {
    if (out.has(p)) continue;
    while (next < N_COLOURS && taken.has(next)) next++;
    out.set(p, next < N_COLOURS ? next++ : out.size % N_COLOURS);
  }
  return out;
}

export const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- waiting for answers -------------------------------------------------------------------------

export function failure(err, again) {
  const where = [err.field ? `field ${err.field}` : '', err.line ? `line ${err.line}` : ''].filter(Boolean).join(', ');
  return h('div', { class: 'empty', role: 'alert' }, h('h2', { class: 'bad' }, failureTitle(err)), h('p', {}, err.message || String(err)),
    where ? h('p', { class: 'faint' }, where) : null, again ? h('p', {}, h('button', { type: 'button', onclick: again }, 'Try again')) : null);
}

function failureTitle(err) {
  switch (err && err.status) {
    case 404: return 'Not here';
    case 410: return 'No longer known';
    case 503: return 'The scheduler does not answer';
    case 0: return 'The server does not answer';
    case 400: return 'This cannot be asked';
    default: return 'The server did not answer this';
  }
}

// Shows a spinner, then what draw() makes of the answer, or why there is none. A later call wins
// over an earlier one on the same place. draw() may return nothing when it has filled the place.
export async function into(place, load, draw, text) {
  const turn = (place.turn || 0) + 1;
  place.turn = turn;
  const timer = setTimeout(() => place.turn === turn && place.replaceChildren(spinner(text)), place.firstChild ? 250 : 0);
  try {
    const answer = await load();
    if (place.turn !== turn) return;
    const made = draw(answer);
    if (made) replace(place, made);
  } catch (err) {
    if (place.turn !== turn || (err && err.name === 'AbortError')) return;
    place.replaceChildren(failure(err, () => into(place, load, draw, text)));
  } finally {
    clearTimeout(timer);
  }
}

// ---- a list that draws what is seen --------------------------------------------------------------

// Rows of one height. draw(i) makes row i; onOpen(i) is Enter or a click. Keys: arrows, page, home, end.
export class RowList {
  constructor({ height, draw, onOpen, label, rows }) {
    this.rowHeight = height;
    this.drawRow = draw;
    this.onOpen = onOpen;
    this.n = 0;
    this.at = -1;
    this.drawn = new Map();
    this.inner = h('div', { class: 'q-rows-inner', role: 'rowgroup' });
    this.el = h('div', { class: 'q-rows', tabindex: '0', role: 'grid', 'aria-label': label }, this.inner);
    if (rows) Object.assign(this.el.style, { maxHeight: `${rows * height + 2}px`, scrollbarGutter: 'auto' }); // it ends where its card does
    this.el.addEventListener('scroll', () => this.later(), { passive: true });
    this.el.addEventListener('keydown', (e) => this.key(e));
    this.el.addEventListener('click', (e) => this.click(e));
    new ResizeObserver(() => this.later()).observe(this.el);
  }

  setCount(n) {
    this.n = n;
    this.el.setAttribute('aria-rowcount', String(n));
    this.inner.style.height = `${n * this.rowHeight}px`;
    if (this.at >= n) this.at = n - 1;
    this.refresh();
  }

  refresh() {
    for (const row of this.drawn.values()) row.remove();
    this.drawn.clear();
    this.paint();
  }

  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
  }

  paint() {
    const from = Math.max(0, Math.floor(this.el.scrollTop / this.rowHeight) - 4);
    const to = Math.min(this.n, Math.ceil((this.el.scrollTop + (this.el.clientHeight || 400)) / this.rowHeight) + 4);
    for (const [i, row] of this.drawn) {
      if (i >= from && i < to) continue;
      row.remove();
      this.drawn.delete(i);
    }
    for (let i = from; i < to; i++) if (!this.drawn.has(i)) this.place(i);
    this.seen = [from, to];
  }

  place(i) {
    const row = h('div', { class: 'q-row', role: 'row', id: `${this.id()}-${i}`, 'aria-rowindex': String(i + 1),
      'aria-selected': String(i === this.at) }, h('div', { class: 'q-cell', role: 'gridcell' }, this.drawRow(i)));
    row.style.top = `${i * this.rowHeight}px`;
    row.style.height = `${this.rowHeight}px`;
    row.dataset.i = i;
    this.drawn.set(i, row);
    this.inner.append(row);
  }

  id() {
    if (!this.el.id) this.el.id = `rows${RowList.made = (RowList.made || 0) + 1}`;
    return this.el.id;
  }

  select(i) {
    this.at = Math.max(0, Math.min(this.n - 1, i));
    const top = this.at * this.rowHeight, view = this.el.clientHeight;
    if (top < this.el.scrollTop) this.el.scrollTop = top;
    else if (top + this.rowHeight > this.el.scrollTop + view) this.el.scrollTop = top + this.rowHeight - view;
    this.paint();
    for (const [k, row] of this.drawn) row.setAttribute('aria-selected', String(k === this.at));
    this.el.setAttribute('aria-activedescendant', `${this.id()}-${this.at}`);
  }

  key(e) {
    if (e.target !== this.el || !this.n) return;
    const page = Math.max(1, Math.floor(this.el.clientHeight / this.rowHeight) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.n, End: this.n }[e.key];
    if (step) this.select(this.at + step);
    else if (e.key === 'Enter' && this.at >= 0 && this.onOpen) this.onOpen(this.at);
    else return;
    e.preventDefault();
  }

  click(e) {
    const row = e.target.closest('.q-row');
    if (!row || e.target.closest('a, button')) return;
    this.select(+row.dataset.i);
    if (this.onOpen) this.onOpen(this.at);
  }
}

// ---- small pieces --------------------------------------------------------------------------------

// What an attempt came to: a member of a group that waits has room, and is not scheduled.
export const attemptResult = (d) => d.outcome === 'GroupWaits' ? 'HasRoom' : d.result;

export function badge(result) {
  const tone = { Scheduled: 'ok', Bound: 'ok', Succeeded: 'ok', Done: 'ok', Unschedulable: 'bad', Error: 'bad', Failed: 'bad', Gated: 'warn', Paused: 'warn', HasRoom: 'warn' }[result] || 'info';
  return tag(`${{ ok: '✓', bad: '✕', warn: '‖', info: '•' }[tone]} ${result}`, tone);
}

export const clip = (...content) => h('span', { class: 'clip grow', title: content.filter((c) => typeof c === 'string').join('') || null }, content);
