// SPDX-License-Identifier: Apache-2.0
//
// answer.js - draws one decision: the funnel, the reasons, "why not this node", scores, the heat map.
//
// A decision comes from the record (docs/simulator-api.md 3) or is computed for a question (an
// explanation, section 4). Both are drawn from one model: the members of a recorded decision, and a
// source of nodes: page(query) -> {plugins, total, items}, one(name) -> item with difference,
// every(status) -> all items.

import { colour, empty, fmt, h, nodeLink, plural, replace, segmented, sequential, spinner, tabs, tip } from './lib.js';
import { RowList, ask, count, cssColour, failure, into, pluginColours, podRef, reasonNow, reasonWords } from './parts.js';

const PAGE = 200, WHOLE_PAGE = 1000;

// ---- sources -------------------------------------------------------------------------------------

// A node without scores has none, not empty ones.
function unscored(n) {
  if (n.weighted && n.weighted.length) return n;
  const { total, raw, normalized, weighted, ...rest } = n;
  return rest;
}

export class Recorded {
  constructor(id, total) {
    this.base = `/berth/v1/decisions/${id}/nodes`;
    this.total = total;
    this.whole = new Map();
  }

  async page({ offset = 0, limit = PAGE, sort = 'total', status = 'all', q = '' }) {
    const p = new URLSearchParams({ offset, limit, sort, status });
    if (q) p.set('q', q);
    const got = await ask('GET', `${this.base}?${p}`);
    got.items = got.items.map(unscored);
    return got;
  }

  async one(name) {
    return unscored(await ask('GET', `${this.base}/${encodeURIComponent(name)}`));
  }

  async every(status, progress) {
    if (this.whole.has(status)) return this.whole.get(status);
    const items = [];
    let plugins = [], total = 1;
    while (items.length < total) {
      const got = await this.page({ offset: items.length, limit: WHOLE_PAGE, status });
      plugins = got.plugins || [];
      total = got.total;
      if (!got.items.length) break;
      items.push(...got.items);
      if (progress) progress(items.length, total);
    }
    const answer = { plugins, total: items.length, items };
    this.whole.set(status, answer);
    return answer;
  }
}

const FILTER_ORDER = ['NodeUnschedulable', 'NodeName', 'TaintToleration', 'NodeAffinity', 'NodePorts',
  'NodeResourcesFit', 'VolumeRestrictions', 'NodeVolumeLimits', 'VolumeBinding', 'VolumeZone',
  'PodTopologySpread', 'InterPodAffinity', 'DynamicResources'];
const inOrder = (p) => (FILTER_ORDER.indexOf(p) + FILTER_ORDER.length + 1) % (FILTER_ORDER.length + 1);

export class Computed {
  constructor(explanation) {
    const ranking = explanation.ranking || [];
    const withAll = ranking.reduce((a, b) => ((b.plugins || []).length > (a.plugins || []).length ? b : a), { plugins: [] });
    this.plugins = (withAll.plugins || []).map((p) => ({ name: p.plugin, weight: p.weight }));
    const feasible = ranking.map((r) => this.feasible(r, explanation.scored));
    const subset = explanation.preFilterSubset;
    const outside = subset ? new Set(subset.nodes) : null;
    const rejected = (explanation.rejected || []).map((r) => ({ ...r,
      status: outside && !outside.has(r.node) && subset.plugins.includes(r.plugin) ? 'excluded' : 'rejected' }));
    this.lists = { feasible, rejected, all: feasible.concat(rejected) };
    this.byName = new Map(this.lists.all.map((n) => [n.node, n]));
    this.winner = ranking.find((r) => r.chosen) || null;
  }

  feasible(r, scored) {
    const of = new Map((r.plugins || []).map((p) => [p.plugin, p]));
    const pick = (k) => this.plugins.map((p) => (of.get(p.name) || {})[k] || 0);
    const item = { node: r.node, status: 'feasible', reasons: [], rank: r.rank };
    if (!scored) return item;
    return { ...item, total: r.total, raw: pick('raw'), normalized: pick('normalized'), weighted: pick('weighted') };
  }

  sorted(list, sort) {
    if (sort === 'total') return list;
    const k = this.plugins.findIndex((p) => p.name === sort);
    if (k < 0) return [...list].sort((a, b) => (a.node < b.node ? -1 : 1));
    return [...list].sort((a, b) => ((b.weighted || [])[k] || 0) - ((a.weighted || [])[k] || 0));
  }

  async page({ offset = 0, limit = PAGE, sort = 'total', status = 'all', q = '' }) {
    let list = this.lists[status];
    if (q) list = list.filter((n) => n.node.includes(q));
    return { plugins: this.plugins, total: list.length, items: this.sorted(list, sort).slice(offset, offset + limit) };
  }

  async one(name) {
    const n = this.byName.get(name), w = this.winner && this.byName.get(this.winner.node);
    if (!n) throw Object.assign(new Error(`there is no node "${name}" in this decision`), { status: 404 });
    const more = {};
    if (w && w.weighted) more.winner = { node: w.node, total: w.total };
    if (w && w.weighted && n.weighted)
      more.difference = this.plugins.map((p, i) => ({ plugin: p.name, weighted: n.weighted[i] - w.weighted[i] }));
    return { ...n, ...more };
  }

  async every(status) {
    return { plugins: this.plugins, total: this.lists[status].length, items: this.lists[status] };
  }
}

// An explanation with the members that a recorded decision has.
export function fromExplanation(e) {
  const nodes = e.nodes || {}, groups = e.rejectedGroups || [];
  const d = { ...e, computed: true, rejectedGroups: groups, scorePlugins: [], nodeName: e.nodeName || '', nodes };
  const by = new Map();
  for (const g of groups) by.set(g.plugin, (by.get(g.plugin) || 0) + g.count);
  let left = nodes.total || 0;
  d.funnel = [{ step: 'all nodes', count: left }];
  for (const [plugin, removed] of [...by].sort((a, b) => inOrder(a[0]) - inOrder(b[0])))
    d.funnel.push({ step: 'Filter', plugin, removed, count: left -= removed });
  if (nodes.notEvaluated) d.funnel.push({ step: 'not evaluated', removed: nodes.notEvaluated, count: left -= nodes.notEvaluated });
  d.funnel.push({ step: 'feasible', count: nodes.feasible || 0 });
  return d;
}

// ---- the head line -------------------------------------------------------------------------------

// Groups that say the same in words (they differ in whether evicting would help) are one here.
function sayings(groups) {
  const by = new Map();
  for (const g of groups) {
    const key = reasonWords(g.reasons), had = by.get(key);
    if (had) had.count += g.count;
    else by.set(key, { count: g.count, first: g });
  }
  return [...by.values()].sort((a, b) => b.count - a.count);
}

function because(d, go) {
  const list = sayings(d.rejectedGroups || []), shown = list.slice(0, 3), out = [];
  shown.forEach((s, i) => {
    out.push(i ? (i === shown.length - 1 && list.length <= 3 ? ' and ' : ', ') : '');
    out.push(h('a', { href: '#', onclick: (e) => { e.preventDefault(); if (go) go('why', s.first); } }, i ? count(s.count) : plural(s.count, 'node')), ' ' + reasonWords(s.first.reasons, s.count));
  });
  const rest = list.slice(3).reduce((n, s) => n + s.count, 0);
  if (rest) out.push(`, and ${plural(rest, 'other')} had other reasons`);
  return out;
}

// What happened, in a sentence. go(tab, group) opens the part that explains a number.
export function headline(d, go) {
  const pod = podRef(d.pod.namespace, d.pod.name);
  const to = (tab, text) => h('a', { href: '#', onclick: (e) => { e.preventDefault(); if (go) go(tab); } }, text);
  const why = because(d, go), done = d.computed ? 'would go to' : 'went to';
  if (d.result === 'Scheduled') {
    const best = (d.top || d.ranking || [])[0], n = (d.scorePlugins || []).length || ((best || {}).plugins || []).length;
    const points = d.scored && best ? [': ', to('scores', `${count(best.total)} points`), ` from ${plural(n, 'plugin')}, the best of `,
      to('scores', plural(d.nodes.feasible, 'possible node'))] : d.nodes.feasible > 1 ? [`, one of ${plural(d.nodes.feasible, 'possible node')}`] : [': the only node that was possible'];
    return [pod, ` ${done} `, nodeLink(d.nodeName), ...points, ...(why.length ? ['; ', ...why] : []), '.'];
  }
  if (d.result === 'Gated') return [pod, ' is not tried: ', d.message || 'a plugin keeps it out of the queue', '.'];
  if (!(d.nodes || {}).total && /no nodes available/.test(d.message || '')) return [pod, d.computed ? ' would fit nowhere: ' : ' fitted nowhere: ', 'there are no nodes.'];
  if (d.result === 'Error') return [pod, ' could not be decided: ', d.message || 'no reason was given'];
  const whole = d.preFilter && !Array.isArray(d.preFilter) ? d.preFilter : null;
  const groups = why.length ? why : [whole ? `${whole.plugin} rejected it as a whole: ${(whole.reasons || []).join(', ')}` : (d.message || 'no node was there').replace(/\.$/, '')];
  const p = d.preemption, nominated = p && p.nominatedNode;
  return [pod, d.computed ? ' would fit nowhere: ' : ' fitted nowhere: ', ...groups, nominated
    ? ['. It evicts ', to('preemption', plural((p.victims || []).length, 'pod')), ' on ', nodeLink(nominated), ' to make room.'] : '.'].flat();
}

// ---- funnel and reasons --------------------------------------------------------------------------

function funnelRow(s, all, onPlugin) {
  const share = all ? (100 * s.count) / all : 0, lost = all ? (100 * (s.removed || 0)) / all : 0;
  const bar = h('span', { class: 'q-funnel-bar' }, h('i', { class: 'q-kept' }), h('i', { class: 'q-lost' }));
  bar.children[0].style.width = `${s.count ? Math.max(share, 0.6) : 0}%`;
  bar.children[1].style.width = `${lost ? Math.max(lost, 0.6) : 0}%`;
  const label = s.plugin ? [h('b', {}, s.plugin), h('small', {}, s.step)] : [h('b', {}, s.step)];
  return h('button', { type: 'button', class: 'q-funnel-row', disabled: !s.removed, onclick: () => onPlugin(s.plugin) },
    h('span', { class: 'q-funnel-label' }, ...label), bar,
    h('span', { class: 'q-funnel-lost' }, s.removed ? `−${count(s.removed)}` : ''), h('span', { class: 'q-funnel-n' }, count(s.count)));
}

function funnel(d, onPlugin) {
  const steps = d.funnel || [], all = steps.length ? steps[0].count : 0;
  const idle = steps.filter((s) => s.plugin && !s.removed);
  const rows = steps.filter((s) => !idle.includes(s)).map((s) => funnelRow(s, all, onPlugin));
  const last = d.nodeName ? { step: d.scored ? 'scored, best chosen' : 'chosen', count: 1 } : null;
  if (last) rows.push(funnelRow(last, all, onPlugin));
  const more = idle.length ? h('details', { class: 'q-idle' }, h('summary', {}, `${plural(idle.length, 'plugin')} rejected no node`),
    h('p', {}, idle.map((s) => s.plugin).join(', '))) : null;
  return h('div', { class: 'q-funnel' }, ...rows, more);
}

async function groupNodes(source, g, place, onNode) {
  await into(place, () => source.every('rejected'), (all) => {
    const names = all.items.filter((n) => n.plugin === g.plugin && n.code === g.code && (n.reasons || []).join() === (g.reasons || []).join()).map((n) => n.node);
    const shown = names.length ? names : g.nodes || [];
    const list = new RowList({ height: 26, label: 'nodes', rows: 9, onOpen: (i) => onNode(shown[i]),
      draw: (i) => [nodeLink(shown[i]), h('button', { type: 'button', class: 'ghost', onclick: () => onNode(shown[i]) }, 'why not?')] });
    list.setCount(shown.length);
    return [list.el, shown.length < g.count ? h('p', { class: 'muted' }, `${count(shown.length)} of ${count(g.count)} names were kept.`) : null];
  });
}

function group(source, g, all, onNode) {
  const place = h('div', { class: 'q-group-nodes' });
  const box = h('details', { class: 'q-group' }, h('summary', {}, h('b', { class: 'q-group-n' }, count(g.count)),
    h('span', {}, `${g.count === 1 ? 'node' : 'nodes'} ${reasonWords(g.reasons, g.count)}`),
    h('small', {}, `${g.plugin}: ${(g.reasons || []).join(', ')}${g.code === 'UnschedulableAndUnresolvable' ? ' (evicting pods would not help)' : ''}`)), place);
  box.addEventListener('toggle', () => { if (box.open && !place.firstChild) groupNodes(source, g, place, onNode); });
  box.dataset.plugin = g.plugin;
  return box;
}

function groups(d, source, onNode) {
  const list = d.rejectedGroups || [];
  if (!list.length) return empty('No node was rejected', d.nodes && d.nodes.total ? 'Every node that was looked at was possible.' : 'There were no nodes.');
  return h('div', { class: 'q-groups' }, ...list.map((g) => group(source, g, d.nodes.total, onNode)));
}

// ---- why not this node ---------------------------------------------------------------------------

function signed(n) {
  return n > 0 ? `+${count(n)}` : n < 0 ? `−${count(-n)}` : '0';
}

function nodeSentence(n, d) {
  const done = d.computed;
  switch (n.status) {
    case 'excluded': return [`was not looked at: `, h('b', {}, n.plugin || 'a plugin'), ' had narrowed the choice to other nodes before (PreFilter)',
      (n.reasons || []).length ? `: ${n.reasons.join(', ')}` : '', '.'];
    case 'not-evaluated': return ['was not looked at: enough possible nodes had been found before its turn (percentageOfNodesToScore).'];
    case 'rejected': return [done ? 'is rejected by ' : 'was rejected by ', h('b', {}, n.plugin), `: it ${done ? reasonNow(n.reasons) : reasonWords(n.reasons, 1)}.`];
    default: break;
  }
  if (n.node === d.nodeName) return [n.total === undefined ? 'is the only node that was possible.' : `is the node that was chosen, with ${count(n.total)} points.`];
  if (n.total === undefined) return ['is possible.'];
  const w = n.winner;
  if (!w) return [`is possible, with ${count(n.total)} points.`];
  if (w.total === n.total) return [`has the same ${count(n.total)} points as `, nodeLink(w.node), ': one of the equals is drawn by chance.'];
  return [`was possible: ${count(n.total)} points, ${count(w.total - n.total)} fewer than `, nodeLink(w.node), ` (${count(w.total)}).`];
}

function differences(n) {
  const list = (n.difference || []).filter((x) => x.weighted).sort((a, b) => a.weighted - b.weighted);
  if (!list.length) return null;
  const most = Math.max(...list.map((x) => Math.abs(x.weighted)));
  return h('div', { class: 'q-deltas' }, ...list.map((x) => {
    const bar = h('i', { class: x.weighted < 0 ? 'q-less' : 'q-more' });
    bar.style.width = `${(50 * Math.abs(x.weighted)) / most}%`;
    return h('div', { class: 'q-delta' }, h('span', {}, x.plugin), h('span', { class: 'q-delta-bar' }, bar), h('b', {}, signed(x.weighted)));
  }));
}

function nodeAnswer(n, d) {
  const detail = [];
  if (n.status === 'rejected') {
    detail.push(h('p', { class: 'muted' }, `Its words: “${(n.reasons || []).join(', ')}” (${n.code}). `,
      n.code === 'UnschedulableAndUnresolvable' ? 'Evicting pods from this node would not help.' : n.code === 'Unschedulable' ? 'Evicting pods from this node might help.' : ''));
    if ((n.passed || []).length) detail.push(h('p', { class: 'muted' }, `It had passed ${n.passed.join(', ')} before; plugins after ${n.plugin} were not asked.`));
  }
  return h('div', { class: 'q-answer' }, h('p', { class: 'q-say' }, nodeLink(n.node), ' ', ...nodeSentence(n, d)), ...detail, differences(n),
    n.weighted ? scoreTable(n, d) : null);
}

function scoreTable(n, d) {
  const plugins = d.scorePlugins && d.scorePlugins.length ? d.scorePlugins : d.sourcePlugins || [];
  if (plugins.length !== n.weighted.length) return null;
  return h('table', { class: 'plain q-table' }, h('thead', {}, h('tr', {}, ...['Plugin', 'Raw', 'Normalised', 'Weight', 'Points'].map((t) => h('th', {}, t)))),
    h('tbody', {}, ...plugins.map((p, i) => h('tr', {}, h('td', {}, p.name), ...[n.raw[i], n.normalized[i], p.weight, n.weighted[i]].map((v) => h('td', { class: 'num right' }, count(v)))))));
}

let lists = 0;

function whyNot(d, source) {
  const id = `q-nodes-${++lists}`, known = h('datalist', { id }), place = h('div', { class: 'q-why-answer', 'aria-live': 'polite' });
  const input = h('input', { type: 'search', list: id, placeholder: 'name of a node', 'aria-label': 'Why not this node?', autocomplete: 'off', spellcheck: 'false' });
  let timer = 0;
  const suggest = async () => {
    try {
      const got = await source.page({ q: input.value.trim(), limit: 12, sort: 'name' });
      known.replaceChildren(...got.items.map((n) => h('option', { value: n.node })));
    } catch { /* suggestions are a help, no more: the answer itself reports what is wrong */ }
  };
  const answer = (name) => {
    if (!name) return;
    input.value = name;
    into(place, () => source.one(name).catch((err) => {
      if (err.status === 404) return null;
      throw err;
    }), (n) => (n ? nodeAnswer(n, { ...d, sourcePlugins: source.plugins }) : h('p', { class: 'q-say' }, `There was no node “${name}” when this was decided.`)));
  };
  input.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(suggest, 150); });
  input.addEventListener('focus', suggest, { once: true });
  const form = h('form', { class: 'q-ask', onsubmit: (e) => { e.preventDefault(); answer(input.value.trim()); } },
    h('label', {}, 'Why not'), input, h('button', { type: 'submit' }, 'Ask'), known);
  const el = h('div', { class: 'q-why' }, form, place);
  el.answer = (name) => { answer(name); el.scrollIntoView({ block: 'nearest' }); };
  return el;
}

// ---- scores as stacked bars ----------------------------------------------------------------------

function segmentTip(e, item, plugins, i) {
  tip(e.clientX, e.clientY, h('b', {}, plugins[i].name), h('div', {}, `${count(item.weighted[i])} points = ${count(item.normalized[i])} × weight ${plugins[i].weight}`),
    h('div', {}, `raw score ${count(item.raw[i])}`));
}

function scoreBar(item, plugins, colours, most, shown) {
  const bar = h('span', { class: 'q-bar', onmouseleave: () => tip(0, 0, null) });
  if (!item.weighted) return bar;
  shown.forEach((i) => {
    const w = item.weighted[i];
    if (!(w > 0)) return;
    const seg = h('i', { style: { background: colour(colours.get(plugins[i].name)) }, onmousemove: (e) => segmentTip(e, item, plugins, i) });
    seg.style.width = `${(100 * w) / most}%`;
    bar.append(seg);
  });
  bar.setAttribute('role', 'img');
  bar.setAttribute('aria-label', shown.map((i) => `${plugins[i].name} ${item.weighted[i]}`).join(', ') || 'nothing that differs');
  return bar;
}

class Scores {
  constructor(d, source, onNode) {
    Object.assign(this, { d, source, onNode, sort: 'total', q: '', table: false, pages: new Map() });
    this.legend = h('div', { class: 'q-legend' });
    this.head = h('div', { class: 'q-score-head' });
    this.list = new RowList({ height: 28, label: 'nodes with their scores', draw: (i) => this.row(i), onOpen: (i) => this.open(i) });
    this.list.el.classList.add('q-score-rows');
    this.note = h('div');
    const find = h('input', { type: 'search', placeholder: 'filter nodes', 'aria-label': 'filter nodes',
      oninput: () => { this.q = find.value.trim(); this.start(); } });
    this.only = h('input', { type: 'checkbox', onchange: () => this.start() });
    this.by = h('select', { 'aria-label': 'sort by', onchange: () => { this.sort = this.by.value; this.start(); } });
    const form = segmented([['bars', 'Bars'], ['table', 'Table']], 'bars', (v) => { this.table = v === 'table'; this.heading(); this.list.refresh(); }, 'how to show scores');
    this.box = h('div', { class: 'q-score-box' }, this.head, this.list.el);
    this.el = h('div', { class: 'q-scores' }, h('div', { class: 'q-tools' }, h('label', {}, 'Sort by ', this.by), find, form, h('label', { class: 'check' }, this.only, 'Only what differs')), this.legend, this.note, this.box);
    this.start();
  }

  async start() {
    this.pages.clear();
    this.turn = (this.turn || 0) + 1;
    const turn = this.turn;
    try {
      const first = await this.source.page({ sort: this.sort, status: 'feasible', q: this.q });
      if (turn !== this.turn) return;
      this.plugins = first.plugins;
      this.pages.set(0, first.items);
      this.colours = pluginColours(this.plugins.map((p) => p.name));
      this.best = this.best || Math.max(1, ...first.items.map((n) => n.total || 0), ((this.d.top || [])[0] || {}).total || 0);
      await this.choose();
      if (turn !== this.turn) return;
      this.controls();
      this.note.replaceChildren(...(first.total ? [] : [empty(this.q ? 'No such node among the possible ones' : 'No node was possible', 'So nothing was scored.')]));
      this.heading();
      this.list.setCount(first.total);
    } catch (err) {
      if (turn === this.turn) this.note.replaceChildren(failure(err, () => this.start()));
    }
  }

  // Which plugins are shown, and the points that fill a bar: all of them, or those that do not give every node the same.
  async choose() {
    this.shown = this.plugins.map((_, k) => k);
    this.most = this.best;
    if (!this.only.checked) return;
    const scored = (await this.source.every('feasible')).items.filter((n) => n.weighted);
    this.shown = this.shown.filter((k) => scored.some((n) => n.weighted[k] !== scored[0].weighted[k]));
    this.most = Math.max(1, ...scored.map((n) => this.shown.reduce((sum, k) => sum + n.weighted[k], 0)));
  }

  controls() {
    const shown = this.shown.map((k) => this.plugins[k]);
    this.legend.replaceChildren(...shown.map((p) => h('button', { type: 'button', class: 'q-key', title: `sort by ${p.name}`,
      onclick: () => { this.by.value = this.sort = p.name; this.start(); } }, h('i', { style: { background: colour(this.colours.get(p.name)) } }), p.name, h('small', {}, `×${p.weight}`))),
    ...(this.only.checked && !shown.length ? [h('span', { class: 'muted' }, 'Every plugin gives all nodes the same points.')] : []));
    if (this.by.options.length) return;
    this.by.append(...[['total', 'total'], ['name', 'name'], ...this.plugins.map((p) => [p.name, p.name])].map(([v, t]) => h('option', { value: v }, t)));
  }

  heading() {
    const cols = this.table ? this.shown.map((k) => this.plugins[k].name).map((p) => h('span', { class: 'q-score-cell', title: p }, p)) : [h('span', { class: 'q-bar-title' }, 'weighted points')];
    this.box.style.setProperty('--score-min', this.table ? `${300 + 90 * cols.length}px` : '0');
    this.head.replaceChildren(h('span', { class: 'q-score-name' }, 'Node'), ...cols, h('span', { class: 'q-score-total' }, 'Total'), h('span', { class: 'q-score-gap' }, 'to best'));
  }

  item(i) {
    const p = Math.floor(i / PAGE);
    if (this.pages.has(p)) return this.pages.get(p)[i % PAGE];
    this.pages.set(p, []);
    const turn = this.turn;
    this.source.page({ offset: p * PAGE, sort: this.sort, status: 'feasible', q: this.q }).then((got) => {
      if (turn !== this.turn) return;
      this.pages.set(p, got.items);
      this.list.refresh();
    }, () => this.pages.delete(p));
    return undefined;
  }

  row(i) {
    const n = this.item(i);
    if (!n) return [h('span', { class: 'q-score-name' }, '…')];
    const chosen = n.node === this.d.nodeName;
    const name = h('span', { class: 'q-score-name' }, chosen ? h('b', { title: 'chosen' }, '★ ') : null, nodeLink(n.node));
    const middle = this.table ? this.shown.map((k) => h('span', { class: 'q-score-cell', title: `raw ${n.raw[k]}, normalised ${n.normalized[k]}, weight ${this.plugins[k].weight}` },
      count(n.weighted[k]), h('small', {}, ` ${n.normalized[k]}`))) : [scoreBar(n, this.plugins, this.colours, this.most, this.shown)];
    const gap = n.total === undefined ? '' : signed(n.total - this.best);
    return [name, ...(n.weighted ? middle : [h('span', { class: 'q-bar-title' }, 'the only possible node: not scored')]),
      h('span', { class: 'q-score-total' }, n.total === undefined ? '' : count(n.total)), h('span', { class: 'q-score-gap' }, gap)];
  }

  open(i) {
    const n = this.item(i);
    if (n) this.onNode(n.node);
  }
}

const scores = (d, source, onNode) => new Scores(d, source, onNode).el;

// ---- heat map: plugin × node ---------------------------------------------------------------------

const ramp = (share) => sequential(share).match(/\d+/g).map(Number);

function rgb(text) {
  const c = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  c.fillStyle = text;
  c.fillRect(0, 0, 1, 1);
  return [...c.getImageData(0, 0, 1, 1).data];
}

const ROW = 24;

class Heat {
  constructor(d, all, onNode) {
    Object.assign(this, { d, onNode, plugins: all.plugins, at: 0, from: 0, span: Math.max(1, all.items.length) });
    this.order(all.items);
    const scored = all.items.some((n) => n.normalized);
    this.rows = this.filters.map((f) => ({ filter: f })).concat(scored ? this.plugins.map((p, i) => ({ score: i, name: p.name })) : []);
    this.canvas = h('canvas', { class: 'q-heat-canvas', tabindex: '0', role: 'img', 'aria-label': `heat map of ${count(this.nodes.length)} nodes and ${this.rows.length} plugins; arrows move, plus and minus zoom, enter explains` });
    this.say = h('p', { class: 'q-heat-say', 'aria-live': 'polite' });
    const labels = this.rows.map((r) => h('div', { class: 'q-heat-label', title: r.filter || r.name }, h('small', {}, r.filter ? (r.filter === 'PreFilter' ? '' : 'filter') : 'score'), r.filter || r.name));
    this.el = h('div', { class: 'q-heat' }, this.scale(), h('div', { class: 'q-heat-body' }, h('div', { class: 'q-heat-labels' }, ...labels), this.canvas), this.say,
      h('div', { class: 'q-tools' }, h('button', { type: 'button', onclick: () => this.zoom(0.5) }, 'Zoom in'), h('button', { type: 'button', onclick: () => this.zoom(2) }, 'Zoom out'),
        h('button', { type: 'button', onclick: () => this.look(0, this.nodes.length) }, 'All nodes'),
        h('small', {}, 'Wheel zooms, dragging moves, a click asks about the node. Nodes stand by total, then by who rejected them.')));
    this.paintWhole();
    this.listen();
    new ResizeObserver(() => this.later()).observe(this.canvas);
    const theme = () => (this.canvas.isConnected ? this.paintWhole() : removeEventListener('berth-theme', theme));
    addEventListener('berth-theme', theme);
  }

  order(items) {
    const rejecters = new Map();
    for (const n of items) if (n.status === 'rejected') rejecters.set(n.plugin, (rejecters.get(n.plugin) || 0) + 1);
    const order = this.d.filterPlugins && this.d.filterPlugins.length ? this.d.filterPlugins : [...rejecters.keys()].sort((a, b) => inOrder(a) - inOrder(b));
    this.filters = order.filter((p) => rejecters.has(p));
    if (items.some((n) => n.status === 'excluded')) this.filters.unshift('PreFilter');
    const key = (n) => (n.status === 'feasible' ? -1 : n.status === 'excluded' ? 1000 : n.status === 'rejected' ? 500 - this.filters.indexOf(n.plugin) : 2000);
    this.nodes = [...items].sort((a, b) => key(a) - key(b) || (b.total || 0) - (a.total || 0) || (a.node < b.node ? -1 : 1));
  }

  scale() {
    const steps = Array.from({ length: 20 }, (_, i) => { const s = h('i'); s.style.background = sequential(i / 19); return s; });
    return h('div', { class: 'q-heat-scale' }, 'score 0 ', h('span', { class: 'q-heat-ramp' }, ...steps), ' 100',
      h('i', { class: 'q-box q-heat-no' }), 'rejected here', h('i', { class: 'q-box q-heat-pass' }), 'passed', h('i', { class: 'q-box q-heat-none' }), 'not asked');
  }

  cell(n, r, c) {
    if (r.filter) {
      const mine = n.status === 'excluded' ? 'PreFilter' : n.plugin, at = this.filters.indexOf(r.filter), no = this.filters.indexOf(mine);
      if (n.status === 'feasible' || (no > at && no >= 0)) return c.pass;
      return no === at && no >= 0 ? c.no : c.none;
    }
    return n.normalized ? ramp(n.normalized[r.score] / 100) : c.none;
  }

  // One pixel for a node and a plugin; drawing then is scaling this picture.
  paintWhole() {
    const c = { pass: rgb(cssColour('--q-pass')), no: rgb(cssColour('--q-no')), none: rgb(cssColour('--q-none')) };
    const w = Math.max(1, this.nodes.length), hh = Math.max(1, this.rows.length), img = new ImageData(w, hh);
    this.rows.forEach((r, y) => this.nodes.forEach((n, x) => {
      const p = this.cell(n, r, c);
      img.data.set([p[0], p[1], p[2], 255], 4 * (y * w + x));
    }));
    // A picture a row: scaled together, neighbours would run into each other.
    this.whole = this.rows.map((_, y) => {
      const row = h('canvas', { width: w, height: 1 });
      row.getContext('2d').putImageData(img, 0, -y);
      return row;
    });
    this.canvas.style.height = `${hh * ROW}px`;
    this.later();
  }

  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw() {
    const k = devicePixelRatio || 1, w = this.canvas.clientWidth, hh = this.rows.length * ROW;
    if (!w || !this.nodes.length) return;
    if (this.canvas.width !== Math.round(w * k)) this.canvas.width = Math.round(w * k);
    if (this.canvas.height !== Math.round(hh * k)) this.canvas.height = Math.round(hh * k);
    const g = this.canvas.getContext('2d');
    g.setTransform(k, 0, 0, k, 0, 0);
    g.clearRect(0, 0, w, hh);
    g.imageSmoothingEnabled = this.span > w;
    this.whole.forEach((row, y) => g.drawImage(row, this.from, 0, this.span, 1, 0, y * ROW, w, ROW - 2));
    const x = ((this.at + 0.5 - this.from) * w) / this.span, wide = Math.max(2, w / this.span);
    g.strokeStyle = cssColour('--q-cursor');
    g.lineWidth = 2;
    if (x >= 0 && x <= w) g.strokeRect(x - wide / 2, 0, wide, hh - 2);
  }

  look(from, span) {
    this.span = Math.max(Math.min(8, this.nodes.length), Math.min(this.nodes.length, span));
    this.from = Math.max(0, Math.min(this.nodes.length - this.span, from));
    this.later();
  }

  zoom(factor, at = this.at + 0.5) {
    const span = Math.max(Math.min(8, this.nodes.length), Math.min(this.nodes.length, this.span * factor));
    this.look(at - (at - this.from) * (span / this.span), span);
  }

  move(to) {
    this.at = Math.max(0, Math.min(this.nodes.length - 1, to));
    if (this.at < this.from) this.look(this.at, this.span);
    else if (this.at + 1 > this.from + this.span) this.look(this.at + 1 - this.span, this.span);
    this.later();
    const n = this.nodes[this.at];
    this.say.replaceChildren(h('b', {}, n.node), n.status === 'feasible'
      ? (n.weighted ? `: ${count(n.total)} points; ${this.plugins.map((p, i) => `${p.name} ${n.normalized[i]} × ${p.weight}`).join(', ')}` : ': possible, not scored')
      : n.status === 'rejected' ? `: rejected by ${n.plugin}: ${(n.reasons || []).join(', ')}` : `: ${n.status}${n.plugin ? ' by ' + n.plugin : ''}`);
  }

  nodeAt(e) {
    return Math.floor(this.from + ((e.clientX - this.canvas.getBoundingClientRect().left) * this.span) / this.canvas.clientWidth);
  }

  listen() {
    const c = this.canvas;
    let drag = null;
    c.addEventListener('pointermove', (e) => {
      if (drag) { drag.moved = drag.moved || Math.abs(e.clientX - drag.x) > 4; this.look(drag.from - ((e.clientX - drag.x) * this.span) / c.clientWidth, this.span); }
      else this.move(this.nodeAt(e));
    });
    c.addEventListener('pointerdown', (e) => { drag = { x: e.clientX, from: this.from }; c.setPointerCapture(e.pointerId); });
    c.addEventListener('pointerup', (e) => {
      if (drag && !drag.moved && this.nodes[this.nodeAt(e)]) this.onNode(this.nodes[this.nodeAt(e)].node);
      drag = null;
    });
    c.addEventListener('pointercancel', () => { drag = null; });
    c.addEventListener('wheel', (e) => {
      e.preventDefault();
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.look(this.from + (e.deltaX * this.span) / c.clientWidth, this.span);
      else this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.nodeAt(e) + 0.5);
    }, { passive: false });
    c.addEventListener('keydown', (e) => {
      const big = Math.max(1, Math.round(this.span / 10));
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: big, PageUp: -big, Home: -this.nodes.length, End: this.nodes.length }[e.key];
      if (step) this.move(this.at + step);
      else if (e.key === '+' || e.key === '=') this.zoom(0.5);
      else if (e.key === '-') this.zoom(2);
      else if (e.key === 'Enter') this.onNode(this.nodes[this.at].node);
      else return;
      e.preventDefault();
    });
  }
}

function heat(d, source, onNode) {
  const place = h('div', { class: 'q-heat-place' });
  const bar = h('span', { class: 'num' }), wait = h('div', {}, spinner('Loading the nodes'), bar);
  place.append(wait);
  source.every('all', (n, of) => { bar.textContent = `${count(n)} of ${count(of)}`; }).then((all) => {
    replace(place, all.items.length ? new Heat(d, all, onNode).el : empty('No nodes', 'There is nothing to draw.'));
  }, (err) => place.replaceChildren(failure(err, () => place.replaceWith(heat(d, source, onNode)))));
  return place;
}

// ---- preemption ----------------------------------------------------------------------------------

function preemption(d) {
  const p = d.preemption;
  if (!p) return empty('No pod was evicted', d.postFilterMessage || (d.result === 'Scheduled' ? 'There was room without it.' : 'Preemption found nothing that would help.'));
  const rows = (p.victims || []).map((v) => h('tr', {}, h('td', {}, podRef(v.namespace, v.name)), h('td', { class: 'num right' }, count(v.priority))));
  return h('div', {}, h('p', { class: 'q-say' }, `To make room on `, nodeLink(p.nominatedNode), `, ${plural((p.victims || []).length, 'pod')} of lower priority ${rows.length === 1 ? 'is' : 'are'} evicted.`),
    h('p', { class: 'muted' }, p.pdbViolations ? `${plural(p.pdbViolations, 'of them is', 'of them are')} protected by a disruption budget that has nothing left.` : 'No disruption budget is violated.',
      p.alternatives ? ` ${plural(p.alternatives, 'other node')} would have been as good.` : ''),
    h('table', { class: 'plain q-table' }, h('thead', {}, h('tr', {}, h('th', {}, 'Victim'), h('th', { class: 'num right' }, 'Priority'))), h('tbody', {}, ...rows)),
    d.postFilterMessage ? h('p', { class: 'muted' }, d.postFilterMessage) : null);
}

// ---- all of it -----------------------------------------------------------------------------------

function timings(d) {
  const t = Object.entries(d.timings_ns || {}).filter(([, v]) => v > 0), all = t.reduce((n, [, v]) => n + v, 0);
  if (!t.length) return null;
  return h('div', { class: 'q-times' }, h('h2', {}, 'Where the time went'), ...t.map(([k, v]) => {
    const bar = h('i');
    bar.style.width = `${(100 * v) / all}%`;
    return h('div', { class: 'q-delta' }, h('span', {}, k), h('span', { class: 'q-time-bar' }, bar), h('b', {}, fmt.ns(v)));
  }));
}

function whyPart(d, source, view) {
  if (d.result === 'Gated') {
    view.askNode = view.openGroup = () => {};
    return empty('No node was looked at', 'A pod that waits for its gates is decided when they are gone.');
  }
  const search = whyNot(d, source), list = groups(d, source, (n) => search.answer(n));
  view.askNode = (n) => search.answer(n);
  view.openGroup = (plugin, g) => {
    const i = g ? (d.rejectedGroups || []).indexOf(g) : -1;
    [...list.querySelectorAll('.q-group')].forEach((el, k) => { el.open = i >= 0 ? k === i : el.dataset.plugin === plugin; });
  };
  return h('div', { class: 'q-two' }, h('section', {}, h('h2', {}, 'From all nodes to one'), funnel(d, (p) => view.openGroup(p)), timings(d)),
    h('section', {}, search, h('h2', {}, 'Why nodes were rejected'), list));
}

// Tabs over a decision. tab: the one to show; onTab(name) is told when another is opened.
export function answer(d, source, { tab = 'why', onTab, extra = [] } = {}) {
  const view = {}, why = whyPart(d, source, view);
  const onNode = (n) => { el.show('why'); view.askNode(n); };
  const strip = tabs([{ id: 'why', title: 'Why', body: why },
    { id: 'scores', title: 'Scores', count: count((d.nodes || {}).feasible), body: () => scores(d, source, onNode) },
    { id: 'heat', title: 'Heat map', body: () => heat(d, source, onNode) },
    { id: 'preemption', title: 'Preemption', count: d.preemption ? (d.preemption.victims || []).length : undefined, body: () => preemption(d) }, ...extra], { selected: tab, onSelect: onTab });
  const go = (t, g) => { el.show(t); if (g) view.openGroup(g.plugin, g); if (onTab) onTab(t); };
  const el = h('div', { class: 'q-decision' }, h('div', { class: 'q-topline' }, h('h2', { class: 'q-headline grow' }, headline(d, go))), strip);
  el.show = strip.show;
  el.askNode = onNode;
  return el;
}
