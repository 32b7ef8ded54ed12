// SPDX-License-Identifier: Apache-2.0
//
// runs.js - a recorded cluster played again, and scenarios
//
// #/replay   #/scenarios[/ID]

import { YamlEditor } from './editor.js';
import { Table, colour, confirmDialog, download, empty, errorNote, fetchJSON, fetchText, fmt, h, legend, lineChart, nodeLink, note, panel, plural, registerScreen, replace,
  segmented, setTitle, spinner, tabs, tag, to, toast } from './lib.js';
import { subscribe } from './store.js';
import { RowList, ask, badge, clip, count, failure, into, podDecisionsHref, podRef } from './parts.js';
import { toYaml } from './edits.js';

// ---- replay --------------------------------------------------------------------------------------

const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 0]; // 0: as fast as it can
const speedText = (s) => (s > 0 ? `${s}×` : 'max');
const nearestSpeed = (s) => (s > 0 ? SPEEDS.slice(0, -1).reduce((best, x, i) => (Math.abs(Math.log(x / s)) < Math.abs(Math.log(SPEEDS[best] / s)) ? i : best), 0) : SPEEDS.length - 1);

class Replay {
  constructor(place) {
    this.points = [];
    this.box = h('div', { class: 'col' });
    replace(place, this.box);
    this.stop = subscribe('replay', ({ rows, changed }) => {
      const all = changed && changed.length ? changed[changed.length - 1].row : [...rows.values()].pop();
      if (!all || !all.phase) return;
      this.told = (this.told || 0) + 1;
      this.show(all);
    });
  }

  load() {
    return into(this.box, () => ask('GET', '/berth/v1/replay'), (s) => { this.show(s); });
  }

  // Shows what the server answers, unless the stream has told of something later meanwhile.
  async answer(asked) {
    const told = this.told, s = await asked;
    if (told === this.told) this.show(s);
  }

  show(s) {
    if (this.gone) return;
    const fresh = !this.state || (this.state.phase === 'None') !== (s.phase === 'None');
    this.state = s;
    if (fresh) this.build();
    if (s.phase !== 'None') this.update(s);
  }

  build() {
    this.points = [];
    this.nErrors = undefined;
    replace(this.box, this.state.phase === 'None' ? this.upload() : this.player());
  }

  upload() {
    const file = h('input', { type: 'file', accept: '.jsonl,.json,.gz,.ndjson', 'aria-label': 'record file' });
    const clear = h('input', { type: 'checkbox', checked: true }), paused = h('input', { type: 'checkbox' }), speed = this.speedControl(100), state = h('div');
    const start = async (f) => {
      if (!f) { replace(state, note('warn', 'Choose a record file first.')); return; }
      if (clear.checked && !(await confirmDialog({ title: 'Empty the cluster?', body: h('p', {}, 'Everything that is there now is deleted, then ', h('b', {}, f.name), ' is played.'), confirm: 'Empty and play', danger: true }))) return;
      replace(state, spinner(`Sending ${f.name}`));
      try {
        const q = new URLSearchParams({ name: f.name, speed: String(speed.speed), paused: String(paused.checked), clear: String(clear.checked) });
        await this.answer(fetchJSON(`/berth/v1/replay?${q}`, { method: 'POST', body: f, type: f.name.endsWith('.gz') ? 'application/gzip' : 'application/x-ndjson' }));
      } catch (err) { replace(state, errorNote(err)); }
    };
    const drop = h('div', { class: 'q-drop', ondragover: (e) => { e.preventDefault(); drop.classList.add('over'); }, ondragleave: () => drop.classList.remove('over'),
      ondrop: (e) => { e.preventDefault(); drop.classList.remove('over'); start(e.dataTransfer.files[0]); } }, h('p', {}, 'Drop a record file here, or choose one: ', file));
    return panel('Play a recorded cluster again', {}, h('div', { class: 'col' }, h('p', { class: 'muted' }, 'A record is made with ', h('code', {}, 'berth record'), ' from any cluster: what was created, changed and deleted, with times. Playing it shows what this scheduler does with it, and how often it decides as the recorded one did.'),
      drop, h('div', { class: 'row wrap' }, h('span', { class: 'q-speed' }, 'speed ', speed), h('label', { class: 'check' }, clear, 'empty this cluster first'), h('label', { class: 'check' }, paused, 'start paused')), state,
      h('div', {}, h('button', { type: 'button', class: 'primary', writes: true, onclick: () => start(file.files[0]) }, 'Play'))));
  }

  speedControl(speed, onChange) {
    const out = h('output', {}, speedText(speed));
    const range = h('input', { type: 'range', min: '0', max: String(SPEEDS.length - 1), step: '1', value: String(nearestSpeed(speed)), 'aria-label': 'speed', 'aria-valuetext': speedText(speed),
      oninput: () => { el.speed = SPEEDS[+range.value]; out.textContent = speedText(el.speed); range.setAttribute('aria-valuetext', speedText(el.speed)); }, onchange: () => onChange && onChange(el.speed) });
    const el = h('span', { class: 'q-speed' }, range, out);
    el.speed = speed;
    el.set = (s) => { if (document.activeElement === range) return; el.speed = s; range.value = String(nearestSpeed(s)); out.textContent = speedText(s); };
    return el;
  }

  player() {
    this.head = h('div', { class: 'row' });
    this.bar = h('i');
    this.progress = h('div', { class: 'q-progress', role: 'progressbar', 'aria-label': 'progress' }, this.bar);
    this.numbers = h('div', { class: 'tiles' });
    this.speed = this.speedControl(this.state.speed, (s) => this.patch({ speed: s }));
    this.pause = h('button', { type: 'button', onclick: () => this.patch({ paused: this.state.phase === 'Running' }) });
    this.step = h('button', { type: 'button', onclick: () => this.patch({ step: 1 }) }, 'Step');
    this.chart = lineChart({ height: 200, label: 'progress of the replay', series: [], xText: (x) => fmt.time(new Date(x).toISOString()), yText: (y) => (Number.isInteger(y) ? fmt.count(y) : ''), area: true });
    this.errors = h('div');
    this.others = h('div');
    this.nOthers = 0;
    this.state0 = h('div');
    return [panel('Replay', { tools: [h('button', { type: 'button', class: 'danger', onclick: () => this.end() }, 'Stop and forget')] }, h('div', { class: 'col' }, this.head, this.progress,
      h('div', { class: 'row wrap' }, this.pause, this.step, h('span', { class: 'q-speed' }, 'speed ', this.speed)), this.state0, this.numbers)),
    panel('Decided as recorded, and otherwise', {}, legend([['same node', colour(2)], ['another node', colour(5)]]), this.chart), this.others, this.errors];
  }

  update(s) {
    const c = s.compared || {}, done = s.total ? s.applied / s.total : 0, over = s.phase === 'Done' || s.phase === 'Failed';
    replace(this.head, badge(s.phase), h('b', {}, s.name || 'record'), h('span', { class: 'muted num' }, s.at ? `at ${fmt.date(s.at)}` : ''), h('span', { class: 'grow' }), h('span', { class: 'faint num' }, s.start && s.end ? `${fmt.date(s.start)} to ${fmt.date(s.end)}` : ''));
    this.bar.style.width = `${100 * done}%`;
    this.progress.setAttribute('aria-valuenow', String(Math.round(100 * done)));
    this.pause.textContent = s.phase === 'Running' ? '‖ Pause' : '▶ Go on';
    this.pause.disabled = over;
    this.step.disabled = over || s.phase === 'Running';
    this.speed.set(s.speed);
    const both = (c.same || 0) + (c.different || 0), tile = (name, value, sub, href) => h(href ? 'a' : 'div', { class: 'tile', href: href || null }, h('span', { class: 'name' }, name), h('span', { class: 'value' }, value), h('span', { class: 'sub' }, sub));
    replace(this.numbers, tile('Applied', count(s.applied), `of ${count(s.total)} changes, ${Math.floor(100 * done)} %`, to('timeline')), tile('Waiting', count(s.waiting), 'pods for their node', to('queue')),
      tile('As recorded', count(c.same), both ? `${((100 * c.same) / both).toFixed(1)} % of ${plural(both, 'decision')}` : '', to('decisions')), tile('Otherwise', count(c.different), 'on another node', to('decisions')), tile('Errors', count(s.errorCount || (s.errors || []).length), s.skipped ? `${count(s.skipped)} changes left out` : ''));
    this.plot(s, c);
    this.elsewhere(c.differences || [], c.different || 0);
    if (s.message) replace(this.state0, note(s.phase === 'Failed' ? 'bad' : 'info', s.message));
    this.mistakes(s.errors || []);
  }

  plot(s, c) {
    const x = Date.parse(s.at), last = this.points[this.points.length - 1];
    if (!s.at || isNaN(x)) return;
    if (last && last[0] === x) last.splice(0, 3, x, c.same || 0, c.different || 0);
    else this.points.push([x, c.same || 0, c.different || 0]);
    // Every second point goes when there are too many: a line of a thousand is as good.
    if (this.points.length > 2000) this.points = this.points.filter((_, i) => i % 2 === 0);
    this.chart.set({ xMin: Date.parse(s.start), xMax: Date.parse(s.end), series: [{ name: 'same node', colour: colour(2), points: this.points.map((p) => [p[0], p[1]]) }, { name: 'another node', colour: colour(5), points: this.points.map((p) => [p[0], p[2]]) }] });
  }

  // The pods that went elsewhere, as far as the server names them.
  elsewhere(list, all) {
    if (this.nOthers === list.length) return;
    this.nOthers = list.length;
    const rows = new RowList({ height: 26, label: 'pods on another node', rows: 10, draw: (i) => [h('span', { class: 'q-score-name' }, podRef(list[i].namespace, list[i].name)), clip(h('span', { class: 'muted' }, `recorded on ${list[i].recorded || 'none'}, here on `), list[i].actual ? nodeLink(list[i].actual) : 'none'), h('a', { href: podDecisionsHref(list[i].namespace, list[i].name) }, 'why?')] });
    rows.setCount(list.length);
    replace(this.others, list.length ? panel(`On another node than recorded (${list.length < all ? `${count(list.length)} of ` : ''}${count(all)})`, { flush: true }, rows.el) : null);
  }

  mistakes(list) {
    if (this.nErrors === list.length) return;
    this.nErrors = list.length;
    if (!list.length) { replace(this.errors); return; }
    const rows = new RowList({ height: 26, label: 'errors', rows: 10, draw: (i) => [h('span', { class: 'num faint' }, `line ${list[i].line}`), clip(list[i].message)] });
    rows.setCount(list.length);
    replace(this.errors, panel(`What could not be applied (${count(list.length)})`, { flush: true }, rows.el));
  }

  async patch(change) {
    try { await this.answer(ask('PATCH', '/berth/v1/replay', change)); } catch (err) { toast(err.message, 'bad'); }
  }

  async end() {
    if (!(await confirmDialog({ title: 'Stop the replay?', body: 'What it created stays in the cluster.', confirm: 'Stop', danger: true }))) return;
    try { await ask('DELETE', '/berth/v1/replay'); this.state = null; this.load(); } catch (err) { toast(err.message, 'bad'); }
  }
}

// ---- scenarios: examples -------------------------------------------------------------------------

const EXAMPLES = [['Two configurations compared', `apiVersion: sim.berth.dev/v1alpha1
kind: Scenario
metadata:
  name: spread-or-pack
spec:
  seed: 7
  setup:
  - generate:
      kind: Node
      count: 20
      labels: {zone: {cycle: [a, b, c]}}
      resources: {cpu: "16", memory: 64Gi, pods: "110"}
  schedulers:
  - name: spread
  - name: pack
    config:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: KubeSchedulerConfiguration
      profiles:
      - schedulerName: default-scheduler
        pluginConfig:
        - name: NodeResourcesFit
          args:
            scoringStrategy:
              type: MostAllocated
              resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]
  timeline:
  - at: 0s
    generate:
      kind: Pod
      count: 400
      every: 500ms
      resources: {cpu: 500m, memory: 1Gi}
  - at: 3m30s
    generate:
      kind: Pod
      count: 12
      name: large-
      resources: {cpu: "8", memory: 32Gi}
  until: 6m
`], ['A zone fails', `apiVersion: sim.berth.dev/v1alpha1
kind: Scenario
metadata:
  name: zone-fails
spec:
  seed: 1
  setup:
  - generate:
      kind: Node
      count: 30
      labels: {zone: {cycle: [a, b, c]}}
      resources: {cpu: "8", memory: 32Gi, pods: "110"}
  timeline:
  - at: 0s
    generate:
      kind: Deployment
      name: web
      replicas: 120
      resources: {cpu: "1", memory: 2Gi}
  - at: 1m
    drain: {selector: zone=a}
  until: quiescent
  atMost: 30m
`], ['What this cluster does with more', `apiVersion: sim.berth.dev/v1alpha1
kind: Scenario
metadata:
  name: more-on-this-cluster
spec:
  start: cluster
  timeline:
  - at: 0s
    generate:
      kind: Pod
      count: 100
      every: 1s
      resources: {cpu: 250m, memory: 256Mi}
  until: quiescent
`]];

// ---- the list ------------------------------------------------------------------------------------

class Scenarios {
  constructor(place) {
    this.editor = new YamlEditor({ label: 'the scenario, as YAML', value: EXAMPLES[0][1], onSubmit: () => this.run() });
    this.state = h('div');
    this.list = new Table({ name: 'scenarios', key: (s) => s.id, fixedHeight: 12, sort: { id: 'started', dir: 'desc' }, onOpen: (s) => { location.hash = to('scenarios', s.id); }, emptyText: 'None has been run yet.', columns: [
      { id: 'name', title: 'Name', width: 'minmax(130px,1.4fr)', text: (s) => s.name, cell: (s) => h('a', { href: to('scenarios', s.id) }, s.name || s.id) },
      { id: 'phase', title: 'State', width: '122px', text: (s) => s.phase, cell: (s) => badge(s.phase) },
      { id: 'progress', title: 'Progress', width: 'minmax(90px,1fr)', text: (s) => Math.round(100 * share(s)), cell: (s) => h('span', { class: 'bar' }, h('i', { style: { width: `${100 * share(s)}%`, background: 'var(--bar-1)' } })) },
      { id: 'started', title: 'Started', width: '92px', text: (s) => fmt.time(s.started), sort: (s) => Date.parse(s.started) }, { id: 'took', title: 'Took', width: '86px', align: 'right', text: (s) => fmt.ns(s.took_ns), sort: (s) => s.took_ns }] });
    const example = h('select', { 'aria-label': 'example', onchange: () => { if (example.value) this.editor.value = EXAMPLES[+example.value][1]; example.value = ''; } }, h('option', { value: '' }, 'Take an example …'), EXAMPLES.map(([name], i) => h('option', { value: String(i) }, name)));
    replace(place, h('div', { class: 'q-two q-runs' }, panel('A scenario', { tools: [example, h('button', { type: 'button', onclick: () => this.second() }, '+ a second configuration')] },
      h('div', { class: 'col' }, this.editor.el, this.editor.problemsEl, this.state, h('div', { class: 'row' }, h('button', { type: 'button', class: 'primary', onclick: () => this.run() }, 'Run'),
        h('span', { class: 'muted' }, 'It runs beside this cluster, in virtual time; nothing here is changed.')))), panel('Runs', { flush: true }, this.list.el)));
  }

  async load() {
    try { this.list.setRows((await ask('GET', '/berth/v1/scenarios')).items); } catch (err) { this.list.setRows([]); replace(this.list.emptyEl, failure(err, () => this.load())); }
  }

  // Adds the running configuration to compare with, when the scenario names no schedulers yet.
  async second() {
    try {
      const config = toYaml(await fetchJSON('/api/v1/schedulerconfiguration')).trimEnd().split('\n').map((l) => `      ${l}`).join('\n');
      const text = this.editor.value;
      const have = /^ {2}schedulers:\s*$/m.test(text), add = `  - name: other\n    config:\n${config}\n`;
      if (have) this.editor.value = text.replace(/^ {2}schedulers:\s*\n((?: {2}- | {3,}).*\n?)*/m, (all) => all.replace(/\n?$/, '\n') + add);
      else this.editor.value = `${text.trimEnd()}\n  schedulers:\n  - name: default\n${add}`;
    } catch (err) { toast(err.message, 'bad'); }
  }

  async run() {
    this.editor.setErrors([]);
    replace(this.state, spinner('Reading the scenario'));
    try {
      const got = await fetchJSON('/berth/v1/scenarios', { method: 'POST', body: this.editor.value, type: 'application/yaml' });
      replace(this.state);
      location.hash = to('scenarios', got.id);
    } catch (err) {
      if (err.status === 400) { this.editor.setErrors([{ line: err.line || 0, message: err.message }]); replace(this.state); } else replace(this.state, errorNote(err));
    }
  }
}

const share = (s) => (s.phase !== 'Running' ? 1 : s.progress && s.progress.end_ns ? Math.min(1, s.progress.at_ns / s.progress.end_ns) : 0);

// ---- one run -------------------------------------------------------------------------------------

const NUMBERS = [['pods.created', 'pods created'], ['bindings', 'bindings'], ['pods.unschedulable', 'left pending'], ['attempts', 'attempts'], ['attempts.failed', 'of them failed'], ['preemptions', 'preemptions'],
  ['latency.p50', 'pending time, median', 's'], ['latency.p99', 'pending time, 99th of 100', 's'], ['pending.mean', 'pending on average'], ['pending.max', 'pending at most'], ['nodes.used', 'nodes used'], ['duration', 'virtual time', 's']];

const number = (v, unit) => (v === undefined ? '' : unit === 's' ? fmt.ns(v * 1e9) : Number.isInteger(v) ? count(v) : v.toFixed(v < 1 ? 4 : 2));

function summary(runs) {
  const keys = new Set(runs.flatMap((r) => Object.keys(r.summary || {}))), known = NUMBERS.filter(([k]) => keys.has(k)), rest = [...keys].filter((k) => !known.some(([n]) => n === k));
  const line = (k, text, unit) => {
    const v = runs.map((r) => (r.summary || {})[k]), by = runs.length === 2 && typeof v[0] === 'number' && typeof v[1] === 'number' ? v[1] - v[0] : null;
    return h('tr', {}, h('td', {}, text), v.map((x) => h('td', { class: 'right num' }, number(x, unit))), by === null ? null : h('td', { class: 'right num muted' }, by ? `${by > 0 ? '+' : '−'}${number(Math.abs(by), unit)}` : '='));
  };
  const table = (list) => h('table', { class: 'plain' }, h('thead', {}, h('tr', {}, h('th', {}, ''), runs.map((r) => h('th', { class: 'right' }, r.name)), runs.length === 2 ? h('th', { class: 'right' }, 'difference') : null)), h('tbody', {}, list.map(([k, t, u]) => line(k, t, u))));
  return h('div', {}, table(known), rest.length ? h('details', { class: 'q-idle' }, h('summary', {}, `${plural(rest.length, 'number')} more`), table(rest.map((k) => [k, k]))) : null);
}

function plots(runs) {
  const xs = (r) => r.series.at_ns.map((t) => t / 1e6), line = (title, get, o = {}) => {
    const series = runs.map((r, i) => ({ name: r.name, colour: colour(i), points: (get(r.series) || []).map((y, k) => [xs(r)[k], y]) })).filter((s) => s.points.length);
    return series.length ? panel(title, {}, lineChart({ series, height: 170, label: title, steps: true, xText: (x) => (x ? fmt.ns(x * 1e6) : '0'), yText: (y) => fmt.count(Math.round(y * 100) / 100), ...o })) : null;
  };
  const shares = Object.keys(((runs[0] || {}).series || {}).utilisation || {}), stranded = Object.keys(((runs[0] || {}).series || {}).stranded || {});
  const percent = { yMax: 1, yStep: 0.25, yText: (y) => `${Math.round(y * 100)} %` };
  return h('div', { class: 'col' }, runs.length > 1 ? legend(runs.map((r, i) => [r.name, colour(i)])) : null, h('div', { class: 'grid two' },
    line('Pods on nodes', (s) => s.pods), line('Pending', (s) => s.pending), shares.map((r) => line(`Utilisation: ${r}`, (s) => s.utilisation[r], percent)),
    line('Bindings', (s) => s.bindings), line('Attempts', (s) => s.attempts), stranded.map((r) => line(`Free, but of no use: ${r}`, (s) => s.stranded[r], percent))));
}

function expectations(runs) {
  const list = runs.flatMap((r) => (r.expectations || []).map((e) => ({ ...e, run: r.name })));
  if (!list.length) return null;
  return panel('Expectations', { flush: true }, h('table', { class: 'plain' }, h('tbody', {}, list.map((e) => h('tr', {}, h('td', {}, tag(e.passed ? '✓ met' : '✕ failed', e.passed ? 'ok' : 'bad')), h('td', {}, e.run), h('td', {}, e.expected), h('td', {}, e.found))))));
}

function compared(result) {
  const c = result.comparison;
  if (!c) return empty('One configuration', 'Name two under “schedulers” to compare what they do with the same steps.');
  const table = new Table({ name: 'different', key: (p) => `${p.namespace}/${p.name}`, fixedHeight: 14, sort: { id: 'pod', dir: 'asc' }, emptyText: 'Every pod went to the same node.', columns: [
    { id: 'pod', title: 'Pod', width: 'minmax(180px,1.5fr)', text: (p) => `${p.namespace}/${p.name}` }, ...c.schedulers.map((s, i) => ({ id: `n${i}`, title: s, width: 'minmax(120px,1fr)', text: (p) => p.nodes[i] || 'none' }))] });
  table.setRows(c.different || []);
  return h('div', { class: 'col' }, note(c.pods.different ? 'info' : 'ok', `${count(c.pods.different)} of ${plural(c.pods.same + c.pods.different, 'pod')} went to different nodes, ${count(c.pods.same)} to the same.`), h('section', { class: 'panel' }, table.el));
}

function unplaced(runs) {
  return h('div', { class: 'col' }, runs.map((r) => {
    const list = r.unschedulable || [], rows = new RowList({ height: 26, label: 'pods left pending', rows: 10, draw: (i) => [h('b', {}, `${list[i].namespace}/${list[i].name}`), clip(h('span', { class: 'muted' }, list[i].message || list[i].reason || ''))] });
    rows.setCount(list.length);
    return panel(`${r.name}: ${plural(list.length, 'pod')} left pending`, { flush: true }, list.length ? rows.el : empty('None', 'Every pod found a node.'));
  }));
}

function events(runs) {
  const place = h('div'), draw = (i) => {
    const list = runs[i].timeline || [], rows = new RowList({ height: 26, label: 'timeline', rows: 18, draw: (k) => [h('span', { class: 'num faint q-at' }, fmt.ns(list[k].at_ns)), h('span', { class: 'q-what' }, list[k].what), clip(`${list[k].kind || ''} ${list[k].namespace ? list[k].namespace + '/' : ''}${list[k].name || ''}`, list[k].node ? ` → ${list[k].node}` : '', list[k].detail ? h('span', { class: 'muted' }, ` ${list[k].detail}`) : null)] });
    rows.setCount(list.length);
    replace(place, h('section', { class: 'panel' }, rows.el), runs[i].timelineLeftOut ? h('p', { class: 'muted' }, `${count(runs[i].timelineLeftOut)} more are in the file.`) : null);
  };
  draw(0);
  return h('div', { class: 'col' }, runs.length > 1 ? segmented(runs.map((r, i) => [i, r.name]), 0, draw, 'configuration') : null, place);
}

class Run {
  constructor(place, id) {
    this.id = id;
    this.path = `/berth/v1/scenarios/${encodeURIComponent(id)}`;
    this.head = h('div');
    this.body = h('div', { class: 'col' });
    replace(place, this.head, this.body);
    replace(this.head, spinner());
    setTitle(id, h('a', { href: to('scenarios') }, 'Scenarios'));
  }

  async load() {
    clearTimeout(this.timer);
    try {
      const s = await ask('GET', this.path);
      if (this.gone) return;
      setTitle(s.name || this.id, h('a', { href: to('scenarios') }, 'Scenarios'));
      this.top(s);
      if (s.phase === 'Running') this.timer = setTimeout(() => this.load(), 400);
      else if (!this.done) { this.done = true; this.show(s); }
    } catch (err) {
      if (!this.gone) { replace(this.head, failure(err, () => this.load())); replace(this.body); }
    }
  }

  top(s) {
    const p = s.progress || {};
    replace(this.head, panel(s.name || this.id, { tools: [s.result ? h('button', { type: 'button', onclick: () => this.report(s) }, 'Open the report') : null, s.result ? h('button', { type: 'button', onclick: () => download(`${s.name || this.id}.json`, JSON.stringify(s.result, null, 2), 'application/json') }, 'Save the result') : null,
      h('button', { type: 'button', class: 'danger', onclick: () => this.remove() }, s.phase === 'Running' ? 'Stop' : 'Forget')] }, h('div', { class: 'col' }, h('div', { class: 'row' }, badge(s.phase), s.result && s.result.schedulers.some((r) => (r.expectations || []).length) ? tag(s.result.passed ? '✓ as expected' : '✕ not as expected', s.result.passed ? 'ok' : 'bad') : null,
      h('span', { class: 'muted num' }, s.phase === 'Running' ? `virtual time ${fmt.ns(p.at_ns || 0)}${p.end_ns ? ` of ${fmt.ns(p.end_ns)}` : ''}` : `took ${fmt.ns(s.took_ns)}`)),
    s.phase === 'Running' ? h('div', { class: 'q-progress' }, h('i', { style: { width: `${100 * share(s)}%` } })) : null, s.message ? note(s.phase === 'Failed' ? 'bad' : 'info', s.message) : null)));
  }

  show(s) {
    const r = s.result, runs = (r && r.schedulers) || [];
    if (!runs.length) { replace(this.body, s.phase === 'Failed' ? null : empty('No result', 'The run left nothing to show.')); return; }
    replace(this.body, expectations(runs), tabs([{ id: 'plots', title: 'Plots', body: () => plots(runs) }, { id: 'numbers', title: 'Numbers', body: () => h('section', { class: 'panel' }, summary(runs)) },
      { id: 'compare', title: 'Comparison', count: r.comparison ? count(r.comparison.pods.different) : undefined, body: () => compared(r) }, { id: 'pending', title: 'Left pending', count: count(runs.reduce((n, x) => n + (x.unschedulable || []).length, 0)), body: () => unplaced(runs) },
      { id: 'events', title: 'Timeline', body: () => events(runs) }], { selected: 'plots' }));
  }

  // The report is a document of its own; a token, if there is one, must go with the request.
  async report(s) {
    try {
      const html = await fetchText(`${this.path}/report`, { accept: 'text/html' });
      const url = URL.createObjectURL(new Blob([html], { type: 'text/html' }));
      if (!window.open(url, '_blank', 'noopener')) download(`${s.name || this.id}.html`, html, 'text/html');
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (err) { toast(err.message, 'bad'); }
  }

  async remove() {
    if (!(await confirmDialog({ title: 'Forget the scenario?', body: 'It ends if it still runs, and its result is lost. A report can be saved before.', confirm: 'Forget', danger: true }))) return;
    try { await ask('DELETE', this.path); location.hash = to('scenarios'); } catch (err) { toast(err.message, 'bad'); }
  }
}

registerScreen('replay', { title: 'Replay', key: 'r', nav: { group: 'Run', order: 20 },
  mount(el) { const r = new Replay(el); r.load(); return () => { r.gone = true; r.stop(); }; } });
registerScreen('scenarios', { title: 'Scenarios', key: 's', nav: { group: 'Run', order: 10 },
  mount(el, route) {
    if (route.params.length) { const run = new Run(el, route.params[0]); run.load(); return () => { run.gone = true; clearTimeout(run.timer); }; }
    const list = new Scenarios(el);
    list.load();
    const timer = setInterval(() => !document.hidden && list.load(), 2000);
    return () => clearInterval(timer);
  } });

