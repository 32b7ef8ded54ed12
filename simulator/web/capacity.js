// SPDX-License-Identifier: Apache-2.0
//
// capacity.js - how many more fit, what a drain would do, which pods to move, what another configuration would do
//
// #/capacity[?pod=NAMESPACE/NAME]   #/drain[?nodes=a,b]   #/rebalance[?pod=NAMESPACE/NAME]   #/configdiff

import { Table, debounce, empty, errorNote, fetchJSON, fmt, h, handover, nodeLink, note, panel, plural, registerScreen, replace, segmented, setQuery, spinner } from './lib.js';
import { rows, subscribe } from './store.js';
import { YamlEditor } from './editor.js';
import { share } from './kinds.js';
import { RowList, ask, clip, count, failure, into, podRef, reasonWords, whatifHref } from './parts.js';
import { bare, nodeLike, toYaml } from './edits.js';
import { mistake } from './whatif.js';
import { drainView, startDrain } from './drain.js';
import { groupsPart, reportButton } from './report.js';

const part = encodeURIComponent;
const SIZES = [['small', '100m', '128Mi'], ['medium', '1', '2Gi'], ['large', '4', '16Gi']];

function template(name, cpu, memory) {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec: { containers: [{ name: 'main', image: 'registry.example/app', resources: { requests: { cpu, memory } } }] } };
}

// ---- how many fit --------------------------------------------------------------------------------

class Capacity {
  constructor(place, query) {
    this.pods = [];
    this.podBox = h('div', { class: 'col' });
    this.nodes = [];
    this.nodeList = h('ul', { class: 'q-changes' });
    this.result = h('div');
    this.soon = debounce(250, () => this.ask());
    this.max = h('input', { type: 'number', min: '0', placeholder: 'no limit', 'aria-label': 'at most', class: 'q-number', onchange: () => this.soon() });
    this.without = h('input', { list: 'capacity-nodes', placeholder: 'node', 'aria-label': 'node to leave out' });
    replace(place, h('div', { class: 'q-ask-and-see' }, h('div', {}, this.podPanel(), this.nodePanel(),
      h('div', { class: 'row' }, h('button', { type: 'button', class: 'primary', onclick: () => this.ask() }, 'Count'), h('label', { class: 'row' }, 'at most', this.max))), this.result));
    if (query.pod) this.take(query.pod);
    else this.add(template('more', '500m', '512Mi'));
  }

  podPanel() {
    const from = h('input', { list: 'capacity-pods', placeholder: 'like namespace/name', 'aria-label': 'like an existing pod', onfocus: () => replace(known, [...rows('pods').values()].slice(0, 300).map((p) => h('option', { value: p.key }))), onchange: () => { if (from.value) this.take(from.value.trim()); from.value = ''; } });
    const known = h('datalist', { id: 'capacity-pods' });
    return panel('More of which pod?', {}, h('div', { class: 'col' }, h('div', { class: 'row wrap' }, SIZES.map(([name, cpu, mem]) => h('button', { type: 'button', onclick: () => this.set(template(name, cpu, mem)) }, `${name}: ${cpu} cpu, ${mem}`)), from, known), this.podBox,
      h('div', {}, h('button', { type: 'button', class: 'ghost', onclick: () => this.add(template(`more-${this.pods.length + 1}`, '1', '1Gi')) }, '+ another pod, in turns'))));
  }

  async take(key) {
    const [ns, name] = key.includes('/') ? key.split('/') : ['default', key];
    try {
      const pod = bare(await fetchJSON(`/api/v1/namespaces/${part(ns)}/pods/${part(name)}`));
      setQuery({ pod: key });
      this.set(pod);
    } catch (err) { replace(this.result, h('section', { class: 'panel' }, failure(err))); }
  }

  set(object) { this.pods = []; this.add(object); }

  add(object) {
    this.pods.push(new YamlEditor({ label: 'a pod, as YAML', value: toYaml(object), onChange: () => this.soon(), onSubmit: () => this.ask() }));
    this.showPods();
    this.soon();
  }

  showPods() {
    replace(this.podBox, this.pods.map((e, i) => h('div', { class: 'q-capacity-pod' }, e.el, e.problemsEl, this.pods.length > 1 ? h('button', { type: 'button', class: 'ghost', onclick: () => { this.pods.splice(i, 1); this.showPods(); this.soon(); } }, 'without this one') : null)));
  }

  nodePanel() {
    const like = h('input', { list: 'capacity-nodes', placeholder: 'like which node', 'aria-label': 'add nodes like', onfocus: () => this.names() }), n = h('input', { type: 'number', min: '1', max: '1000', value: '5', 'aria-label': 'how many nodes', class: 'q-number' });
    this.known = h('datalist', { id: 'capacity-nodes' });
    this.without.addEventListener('focus', () => this.names());
    return panel('With other nodes?', {}, h('div', { class: 'col' }, h('form', { class: 'row wrap', onsubmit: (e) => { e.preventDefault(); this.more(like.value.trim(), +n.value); } }, 'add', n, like, this.known, h('button', { type: 'submit' }, 'Add')),
      h('form', { class: 'row wrap', onsubmit: (e) => { e.preventDefault(); if (this.without.value.trim()) { this.nodes.push({ exclude: this.without.value.trim() }); this.without.value = ''; this.showNodes(); } } }, 'leave out', this.without, h('button', { type: 'submit' }, 'Leave out'))), this.nodeList);
  }

  names() { replace(this.known, [...rows('nodes').values()].slice(0, 500).map((n) => h('option', { value: n.name }))); }

  async more(like, n) {
    const name = like || [...rows('nodes').keys()][0];
    try {
      if (!name) throw new Error('There is no node to take as a model: create one.');
      const node = await fetchJSON(`/api/v1/nodes/${part(name)}`);
      this.nodes.push({ like: name, count: Math.max(1, n || 1), manifest: toYaml(nodeLike(node, `more-like-${name}`, {}, (node.spec || {}).taints)) });
      this.showNodes();
    } catch (err) { replace(this.nodeList, h('li', { class: 'bad' }, err.message)); }
  }

  showNodes() {
    replace(this.nodeList, this.nodes.map((c, i) => h('li', {}, clip(c.exclude ? `without ${c.exclude}` : `${plural(c.count, 'node')} more, like ${c.like}`), h('button', { type: 'button', class: 'ghost', 'aria-label': 'take back', onclick: () => { this.nodes.splice(i, 1); this.showNodes(); } }, '×'))));
    this.soon();
  }

  async ask() {
    const turn = (this.turn = (this.turn || 0) + 1), exclude = this.nodes.filter((c) => c.exclude).map((c) => c.exclude);
    const body = { pods: this.pods.map((e) => e.value), max: +this.max.value || 0, addNodes: this.nodes.filter((c) => c.manifest).map((c) => ({ manifest: c.manifest, count: c.count })), excludeNodes: exclude };
    for (const e of this.pods) e.setErrors([]);
    const timer = setTimeout(() => turn === this.turn && replace(this.result, spinner('Counting')), 300);
    try {
      const got = await ask('POST', '/berth/v1/capacity', body);
      if (turn !== this.turn || this.gone) return;
      const changed = body.addNodes.length + exclude.length;
      this.base = changed ? this.base : got.replicas;
      this.show(got, changed, body);
    } catch (err) {
      if (turn !== this.turn || this.gone) return;
      const at = /^pods\[(\d+)\]/.exec(err.field || '');
      if (at && this.pods[+at[1]]) this.pods[+at[1]].setErrors([mistake(this.pods[+at[1]].value, err)]);
      replace(this.result, h('section', { class: 'panel' }, failure(err, () => this.ask())));
    } finally { clearTimeout(timer); }
  }

  show(got, changed, body) {
    const more = changed && this.base !== undefined ? got.replicas - this.base : 0;
    replace(this.result, panel('Fit', { tools: [h('span', { class: 'faint' }, `computed in ${fmt.ns(got.took_ns)}; nothing was changed`), reportButton(() => capacityReport(got, body), 'ghost')] }, h('div', { class: 'col' },
      h('div', { class: 'row' }, h('span', { class: 'q-big' }, count(got.replicas)), h('div', {}, h('div', {}, got.replicas === 1 ? 'more pod fits' : 'more pods fit'), more ? h('div', { class: more > 0 ? 'ok' : 'bad' }, `${more > 0 ? '+' : '−'}${count(Math.abs(more))} by the change of nodes`) : null)),
      limit(got), got.pods.map((p) => spread(p, got.pods.length > 1)))));
  }
}

function limit(got) {
  const why = got.failReason || {}, groups = got.rejectedGroups || [];
  if (why.type === 'LimitReached') return note('info', 'Counted up to the limit that you set; there is room for more.');
  if (!groups.length) return note('warn', h('b', {}, 'What stops the next one: '), why.message || 'nothing was said');
  return note('warn', h('b', {}, 'What stops the next one'), h('ul', { class: 'q-limits', title: why.message }, groups.map((g) => h('li', {}, h('b', { class: 'num' }, count(g.count)), ` ${g.count === 1 ? 'node' : 'nodes'} ${reasonWords(g.reasons, g.count)} `, h('small', { class: 'faint' }, `${g.plugin}: ${(g.reasons || []).join(', ')}`)))));
}

function capacityReport(got, asked) {
  const why = got.failReason || {};
  return { title: `Capacity for ${got.pods.map((p) => p.name).join(', ')}`, lines: [`${plural(got.replicas, 'more pod')} ${got.replicas === 1 ? 'fits' : 'fit'}.`, ...(why.type === 'LimitReached' ? ['Counted up to the limit that was set; there is room for more.'] : why.message ? [`What stops the next one: ${why.message}`] : [])],
    parts: [groupsPart('What stops the next one', got.rejectedGroups), ...got.pods.map((p) => ({ title: `Where ${p.name} would go`, columns: ['Node', ['Pods']], rows: [...(p.nodes || [])].sort((a, b) => b.replicas - a.replicas).map((n) => [n.node, count(n.replicas)]) })),
      { title: 'Nodes that were added for the question', columns: [['Nodes'], 'Manifest'], rows: asked.addNodes.map((n) => [count(n.count), n.manifest]) }, { title: 'Nodes that were left out', lines: asked.excludeNodes }, { title: 'The pods', pre: asked.pods.join('---\n') }] };
}

function spread(p, several) {
  const nodes = [...(p.nodes || [])].sort((a, b) => b.replicas - a.replicas), most = nodes.length ? nodes[0].replicas : 1;
  if (!nodes.length) return h('p', { class: 'muted' }, `${p.name}: none`);
  const list = new RowList({ height: 26, label: 'where they go', rows: 12, draw: (i) => [h('span', { class: 'q-score-name' }, nodeLink(nodes[i].node)), h('span', { class: 'bar grow' }, h('i', { style: { width: `${(100 * nodes[i].replicas) / most}%`, background: 'var(--bar-1)' } })), h('b', { class: 'num q-score-total' }, count(nodes[i].replicas))] });
  list.setCount(nodes.length);
  return h('div', {}, h('h3', { class: 'q-h3' }, several ? `${p.name}: ${count(p.replicas)} on ${plural(nodes.length, 'node')}` : `They would go to ${plural(nodes.length, 'node')}`, h('small', { class: 'faint' }, nodes.length > 1 ? ` ${count(nodes[nodes.length - 1].replicas)} to ${count(most)} on each` : '')), list.el);
}

// ---- drain preview -------------------------------------------------------------------------------

const drainColumns = [
  { id: 'pod', title: 'Pod', width: 'minmax(180px,1.5fr)', text: (p) => `${p.namespace}/${p.name}`, cell: (p) => podRef(p.namespace, p.name) },
  { id: 'from', title: 'From', width: 'minmax(110px,1fr)', text: (p) => p.from, cell: (p) => nodeLink(p.from) },
  { id: 'to', title: 'To', width: 'minmax(110px,1fr)', text: (p) => p.to || '', cell: (p) => (p.to ? nodeLink(p.to) : h('span', { class: 'bad' }, 'nowhere')) },
  { id: 'message', title: 'Why', width: 'minmax(160px,2.4fr)', text: (p) => p.message || '' },
  { id: 'ask', title: '', width: '84px', text: () => '', cell: (p) => (p.to ? '' : h('a', { href: whatifHref(p.namespace, p.name) }, 'what if?')) },
];

class Drain {
  constructor(place, query) {
    place.classList.add('fill');
    this.chosen = new Set((query.nodes || '').split(',').filter(Boolean));
    this.result = h('div', { class: 'q-drain-result' });
    this.live = h('div', {}, drainView());
    this.table = new Table({ name: 'nodes', selectable: true, sort: { id: 'name', dir: 'asc' }, onSelect: (s) => this.pick(s), columns: [
      { id: 'name', title: 'Node', width: 'minmax(110px,1.4fr)', text: (n) => n.name, cell: (n) => nodeLink(n.name) }, { id: 'zone', title: 'Zone', width: '70px', text: (n) => n.zone || '' },
      { id: 'pods', title: 'Pods', width: '62px', align: 'right', order: 'desc', text: (n) => (n.requested || {}).pods || 0, sort: (n) => (n.requested || {}).pods || 0 },
      { id: 'cpu', title: 'CPU', width: '72px', align: 'right', order: 'desc', text: (n) => fmt.percent(share(n, 'cpu')), sort: (n) => share(n, 'cpu') }], placeholder: 'Filter nodes' });
    for (const n of this.chosen) this.table.selected.add(n);
    replace(place, h('div', { class: 'q-drain' }, panel('Nodes to drain', { flush: true }, this.table.el), h('div', { class: 'q-drain-side' }, this.live, this.result)));
    this.soon = debounce(200, () => this.ask());
    this.stop = subscribe('nodes', ({ rows: all, changed }) => this.table.setRows(all, changed));
    this.ask();
  }

  pick(selected) {
    const now = [...selected].sort().join();
    if (now === this.now) return;
    this.now = now;
    this.chosen = new Set(selected);
    setQuery({ nodes: now || null });
    this.soon();
  }

  ask() {
    const nodes = [...this.chosen];
    if (!nodes.length) { replace(this.result, empty('Choose nodes', 'Tick the nodes that would be drained: where their pods would go is computed at once. Nothing is evicted before you say so.')); return; }
    into(this.result, () => ask('POST', '/berth/v1/drain', { nodes }), (got) => this.show(got, nodes), 'Computing where they would go');
  }

  // What is computed is shown first; the button under it evicts.
  async begin(nodes) {
    try {
      if (await startDrain(nodes)) replace(this.live, drainView());
    } catch (err) { replace(this.live, errorNote(err)); }
  }

  show(got, nodes) {
    const stuck = got.pods.filter((p) => !p.to), table = new Table({ name: 'drain', columns: drainColumns, key: (p) => `${p.namespace}/${p.name}`, sort: { id: 'to', dir: 'asc' }, emptyText: 'No pod would move.' });
    table.setRows(got.pods);
    const n = got.blocked || [];
    const said = [nodes.length === 1 ? `Draining ${nodes[0]}: ` : `Draining ${plural(nodes.length, 'node')}: `, `${plural(got.pods.length - stuck.length, 'pod')} would find another node`, stuck.length ? `, ${count(stuck.length)} would not` : '', n.length ? `, ${plural(n.length, 'eviction is', 'evictions are')} blocked` : '', '.'].join('');
    return [h('div', { class: 'row wrap' }, h('span', { class: 'grow' }), reportButton(() => drainReport(got, nodes, said))), note(stuck.length || n.length ? 'warn' : 'ok', said,
      n.length ? h('ul', { class: 'q-limits' }, n.slice(0, 20).map((b) => h('li', {}, podRef(b.namespace, b.name), `: ${b.reason}`)), n.length > 20 ? h('li', {}, `${count(n.length - 20)} more`) : null) : null),
      h('div', { class: 'row' }, h('button', { type: 'button', class: 'danger', writes: true, onclick: () => this.begin(nodes) }, nodes.length === 1 ? `Drain ${nodes[0]}` : `Drain ${plural(nodes.length, 'node')}`), h('span', { class: 'faint' }, 'cordons, then evicts; budgets are respected')), h('section', { class: 'panel grow' }, table.el)];
  }
}

function drainReport(got, nodes, said) {
  const blocked = got.blocked || [], stuck = got.pods.some((p) => !p.to) || blocked.length;
  return { title: `Drain of ${nodes.join(', ')}`, badge: stuck ? ['not all would go', 'bad'] : ['all would go', 'good'], lines: [said], parts: [
    { title: 'Pods that would move', columns: ['Pod', 'From', 'To', 'Why'], rows: got.pods.map((p) => [`${p.namespace}/${p.name}`, p.from, p.to || 'nowhere', p.message]) },
    { title: 'Evictions that are blocked', columns: ['Pod', 'Why'], rows: blocked.map((b) => [`${b.namespace}/${b.name}`, b.reason]) }] };
}

// ---- which pods to move --------------------------------------------------------------------------

const moveColumns = [
  { id: 'wave', title: 'Wave', width: '62px', align: 'right', text: (m) => m.wave, sort: (m) => m.wave },
  { id: 'pod', title: 'Pod', width: 'minmax(180px,1.5fr)', text: (m) => `${m.namespace}/${m.name}`, cell: (m) => podRef(m.namespace, m.name) },
  { id: 'from', title: 'From', width: 'minmax(110px,1fr)', text: (m) => m.from, cell: (m) => nodeLink(m.from) },
  { id: 'to', title: 'To', width: 'minmax(110px,1fr)', text: (m) => m.to, cell: (m) => nodeLink(m.to) },
  { id: 'budget', title: 'Budget', width: 'minmax(80px,.8fr)', text: (m) => m.budget || '' },
];
const keptColumns = [
  { id: 'node', title: 'Node', width: 'minmax(110px,1fr)', text: (k) => k.node, cell: (k) => nodeLink(k.node) },
  { id: 'reason', title: 'Keeps its pods because', width: 'minmax(200px,3fr)', text: (k) => k.reason },
];

class Rebalance {
  constructor(place, query) {
    this.pod = query.pod || '';
    this.result = h('div', { class: 'q-drain-side' });
    this.live = h('div', {}, drainView());
    const number = (name, label) => h('label', { class: 'field' }, label, h('input', { name, type: 'number', min: 0, step: 1, placeholder: 'no limit' }));
    this.form = h('form', { class: 'row wrap ends', onsubmit: (e) => { e.preventDefault(); this.ask(); } }, this.pod ? h('span', {}, 'Room for ', podRef(...this.pod.split('/'))) : [number('maxNodes', 'Nodes at most'), h('label', { class: 'field' }, 'Only nodes with labels', h('input', { name: 'selector', placeholder: 'pool=batch' }))], number('maxMoves', 'Moves at most'), h('button', { type: 'submit' }, 'Plan'));
    replace(place, h('div', { class: 'q-drain-side' }, panel('Which pods to move', {}, this.form), this.live, this.result));
    this.ask();
  }

  ask() {
    const body = Object.fromEntries([...new FormData(this.form)].filter(([, v]) => v !== '').map(([k, v]) => [k, k === 'selector' ? v : Number(v)]));
    if (this.pod) { const [namespace, name] = this.pod.split('/'); body.for = [{ namespace, name }]; }
    into(this.result, () => ask('POST', '/berth/v1/rebalance', body), (got) => this.show(got), 'Planning moves');
  }

  async begin(nodes) {
    try {
      if (await startDrain(nodes)) replace(this.live, drainView());
    } catch (err) { replace(this.live, errorNote(err)); }
  }

  show(got) {
    const table = (name, columns, key, rows) => { const t = new Table({ name, columns, key, fixedHeight: Math.min(rows.length, 14) }); t.setRows(rows); return h('section', { class: 'panel' }, t.el); };
    const said = this.pod ? `${plural(got.moves.length, 'move')} make${got.moves.length === 1 ? 's' : ''} room on ${got.place[0].node}.` : `${count(got.free.length)} of ${plural(got.nodes, 'node')} become free by ${plural(got.moves.length, 'move')} in ${plural(got.waves, 'wave')}; ${count(got.empty.length)} ${got.empty.length === 1 ? 'has' : 'have'} nothing to move.`;
    const nothing = !this.pod && !got.free.length && !got.moves.length;
    return [note(nothing ? 'info' : 'ok', nothing ? [h('b', {}, 'Nothing to move. '), `None of ${plural(got.nodes, 'node')} can be freed; ${count(got.empty.length)} ${got.empty.length === 1 ? 'has' : 'have'} nothing to move.`] : said, this.pod ? h('code', {}, `berth rebalance -n ${this.pod.split('/')[0]} --for ${this.pod.split('/')[1]} --apply`) : null),
      got.free.length ? h('div', { class: 'row' }, h('button', { type: 'button', class: 'danger', writes: true, onclick: () => this.begin([...got.free, ...got.empty]) }, `Drain ${plural(got.free.length, 'node')}`), h('span', { class: 'faint' }, 'cordons these and the empty ones, then evicts; budgets are respected')) : null,
      got.moves.length ? table('moves', moveColumns, (m) => m.uid, got.moves) : null, got.kept.length ? table('kept', keptColumns, (k) => k.node, got.kept) : null];
  }
}

// ---- two configurations --------------------------------------------------------------------------

const profile = (rest) => `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
${rest}`;
const PRESETS = [['defaults', profile('')], ['fill nodes one after the other (MostAllocated)', profile(`  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
`)], ['spread ten times as strong', profile(`  plugins:
    multiPoint:
      enabled:
      - {name: PodTopologySpread, weight: 20}
`)], ['without image locality', profile(`  plugins:
    score:
      disabled:
      - name: ImageLocality
`)]];

class ConfigDiff {
  constructor(place) {
    this.a = new YamlEditor({ label: 'configuration A' });
    this.b = new YamlEditor({ label: 'configuration B', onSubmit: () => this.ask() });
    this.which = 'pending';
    this.state = h('div');
    this.result = h('div', { class: 'col' });
    const preset = h('select', { 'aria-label': 'take an example', onchange: () => { if (preset.value) this.b.value = PRESETS[+preset.value][1]; preset.value = ''; } }, h('option', { value: '' }, 'Take an example …'), PRESETS.map(([name], i) => h('option', { value: String(i) }, name)));
    replace(place, h('div', { class: 'q-two q-configs' }, panel('A: the one that runs', {}, this.a.el, this.a.problemsEl), panel('B: the other one', { tools: [preset] }, this.b.el, this.b.problemsEl)),
      h('div', { class: 'row wrap' }, h('button', { type: 'button', class: 'primary', onclick: () => this.ask() }, 'Compare'), segmented([['pending', 'pending pods'], ['all', 'all pods, one after the other from empty nodes']], 'pending', (v) => { this.which = v; }, 'which pods'), this.state), this.result);
    this.start();
  }

  async start() {
    try {
      const text = toYaml(await fetchJSON('/api/v1/schedulerconfiguration'));
      this.running = text;
      if (!this.a.value) this.a.value = text;
      if (!this.b.value) this.b.value = handover.config || text;
      replace(this.result, empty('Change B', 'For example a weight of a score plugin, or disable one; then compare. The scheduler keeps running with its own configuration.'));
    } catch (err) { replace(this.result, errorNote(err)); }
  }

  async ask() {
    const body = { b: this.b.value, pods: this.which };
    if (this.a.value !== this.running) body.a = this.a.value;
    this.a.setErrors([]);
    this.b.setErrors([]);
    await into(this.result, () => ask('POST', '/berth/v1/configs/diff', body).catch((err) => {
      const e = (err.field || '').startsWith('a') ? this.a : this.b;
      if (err.status === 400) e.setErrors([{ line: err.line || 0, message: err.message }]);
      throw err;
    }), (got) => this.show(got, body), 'Deciding every pod twice');
  }

  show(got, body) {
    if (!got.compared) return empty(body.pods === 'pending' ? 'No pod is pending' : 'There are no pods', body.pods === 'pending' ? 'Compare all pods instead.' : 'Create some first.');
    return [note(got.different.length ? 'info' : 'ok', h('b', {}, got.different.length ? `${count(got.different.length)} of ${plural(got.compared, 'pod')} would go elsewhere` : `All ${plural(got.compared, 'pod')} are decided alike`), `; ${count(got.same)} stay the same. Computed in ${fmt.ns(got.took_ns)}.`), differences(got, body, ['With A', 'With B'])];
  }
}

// What configs/diff answered to body. names: of the two configurations.
export function differences(got, body, names) {
  const table = new Table({ name: 'differences', key: (p) => `${p.namespace}/${p.name}`, sort: { id: 'pod', dir: 'asc' }, fixedHeight: 12, onOpen: (p) => why(p, body, place), columns: [
    { id: 'pod', title: 'Pod', width: 'minmax(180px,1.5fr)', text: (p) => `${p.namespace}/${p.name}`, cell: (p) => podRef(p.namespace, p.name) },
    ...['a', 'b'].map((k, i) => ({ id: k, title: names[i], width: 'minmax(130px,1.4fr)', text: (p) => p[k] || p[`message${k.toUpperCase()}`] || 'pending', cell: (p) => (p[k] ? nodeLink(p[k]) : h('span', { class: 'bad', title: p[`message${k.toUpperCase()}`] }, 'nowhere')) })),
    { id: 'why', title: '', width: '96px', text: () => '', cell: (p) => h('button', { type: 'button', class: 'ghost', onclick: () => why(p, body, place) }, 'why?') }] });
  const place = h('div');
  table.setRows(got.different);
  return [utilisation(got.utilisation, names), got.different.length ? h('section', { class: 'panel' }, table.el) : null, place];
}

// The two nodes of one pod under B, plugin by plugin.
function why(p, body, place) {
  into(place, () => ask('POST', '/berth/v1/whatif', { pod: { namespace: p.namespace, name: p.name }, config: body.b }), (got) => {
    const of = (n) => ((got.after || {}).ranking || []).find((r) => r.node === n), a = of(p.a), b = of(p.b);
    const title = h('h3', { class: 'q-h3' }, podRef(p.namespace, p.name), ' decided with B, plugin by plugin');
    if (!a || !b || a.total === undefined || b.total === undefined) return [title, note('info', !p.a || !p.b ? p.messageB || p.messageA || 'One of the two has no node for it.' : 'The present state of the cluster has no scores for both nodes: earlier pods of the comparison filled them.')];
    return [title, h('table', { class: 'plain' }, h('thead', {}, h('tr', {}, h('th', {}, 'Plugin'), h('th', { class: 'right' }, p.a), h('th', { class: 'right' }, p.b), h('th', { class: 'right' }, 'difference'))),
      h('tbody', {}, (a.plugins || []).map((x, i) => { const y = (b.plugins || [])[i] || {}, by = (y.weighted || 0) - x.weighted; return h('tr', {}, h('td', {}, `${x.plugin} ×${x.weight}`), h('td', { class: 'right num' }, count(x.weighted)), h('td', { class: 'right num' }, count(y.weighted)), h('td', { class: 'right num' }, by ? `${by > 0 ? '+' : '−'}${count(Math.abs(by))}` : '')); }),
        h('tr', {}, h('td', {}, h('b', {}, 'Total')), h('td', { class: 'right num' }, count(a.total)), h('td', { class: 'right num' }, count(b.total)), h('td', { class: 'right num' }, `${b.total >= a.total ? '+' : '−'}${count(Math.abs(b.total - a.total))}`))))];
  });
}

const NAMES = { scheduled: 'pods that find a node', unschedulable: 'pods that do not', gated: 'gated pods', preempted: 'pods that are evicted', nodesUsed: 'nodes used' };

// Whatever the server measured on both sides: shares are shown as bars.
function utilisation(u, names) {
  const a = (u || {}).a || {}, b = (u || {}).b || {}, keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((k) => typeof (a[k] ?? b[k]) === 'number');
  if (!keys.length) return null;
  const cell = (v) => (v === undefined ? '' : v > 0 && v <= 1 && !Number.isInteger(v) ? h('span', { class: 'q-share' }, h('span', { class: 'bar' }, h('i', { style: { width: `${v * 100}%`, background: 'var(--bar-1)' } })), h('span', { class: 'num' }, `${(v * 100).toFixed(1)} %`)) : count(v));
  return panel('Utilisation side by side', { flush: true }, h('table', { class: 'plain' }, h('thead', {}, h('tr', {}, h('th', {}, ''), names.map((name) => h('th', {}, name)))), h('tbody', {}, keys.map((k) => h('tr', {}, h('td', {}, NAMES[k] || k), h('td', {}, cell(a[k])), h('td', {}, cell(b[k])))))));
}

registerScreen('capacity', { title: 'Capacity', key: 'f', nav: { group: 'Decisions', order: 50 },
  mount(el, route) { const c = new Capacity(el, route.query); return () => { c.gone = true; }; } });
registerScreen('drain', { title: 'Drain', nav: { group: 'Decisions', order: 60 },
  mount(el, route) { const d = new Drain(el, route.query); return () => d.stop(); } });
registerScreen('rebalance', { title: 'Rebalance', nav: { group: 'Decisions', order: 65 },
  mount(el, route) { new Rebalance(el, route.query); } });
registerScreen('configdiff', { title: 'Configuration diff', nav: { group: 'Decisions', order: 70 },
  mount(el) { new ConfigDiff(el); } });

