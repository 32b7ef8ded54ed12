// SPDX-License-Identifier: Apache-2.0
//
// whatif.js - what would be decided if the pod, the nodes or the configuration were others
//
// #/whatif[?pod=NAMESPACE/NAME]
//
// Nothing is changed by asking. "Apply for real" shows what will be written and writes it after a
// second click: an owned pod through its owner, any other by deleting and creating it.

import { debounce, dialog, empty, errorNote, fetchJSON, fetchText, fmt, h, nodeLink, note, panel, plural, registerScreen, replace,
  setQuery, spinner, tabs, toast, to } from './lib.js';
import { rows, subscribe, synced } from './store.js';
import { YamlEditor, diffView, lineOfField } from './editor.js';
import { RowList, ask, badge, clip, count, failure, podRef } from './parts.js';
import { Computed, answer, fromExplanation, headline } from './answer.js';
import { bare, copy, cordoned, labelled, merged, nodeLike, parseTaint, requests, scaled, tainted, tolerating, toYaml, untainted, without, withPriority } from './edits.js';
import { kindOf } from './edit.js';
import { objectPath } from './kinds.js';
import { decisionParts, reportButton, result } from './report.js';
import { topOwner, unservedNote } from './schedulers.js';

const part = encodeURIComponent;
const NEW_POD = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'asked', namespace: 'default' },
  spec: { containers: [{ name: 'main', image: 'registry.example/app', resources: { requests: { cpu: '500m', memory: '256Mi' } } }] } };

// What a person wants to see of a pod: not what the server added to it.
function readable(pod) {
  const p = bare(pod);
  const notes = p.metadata.annotations || {};
  delete notes['kubectl.kubernetes.io/last-applied-configuration'];
  if (!Object.keys(notes).length) delete p.metadata.annotations;
  return p;
}

async function parseManifest(text) {
  const got = await fetchJSON('/berth/v1/manifest', { method: 'POST', body: text, type: 'application/yaml' });
  return (got.documents || []).map((d) => d.object);
}

// ---- the screen ----------------------------------------------------------------------------------

class WhatIf {
  constructor(place, query) {
    this.changes = [];
    this.config = null;
    this.pod = null; // the pod as it is; null: a new one
    this.editor = new YamlEditor({ label: 'the pod, as YAML', onChange: () => this.ask(), onSubmit: () => this.ask() });
    this.right = h('div');
    this.ideasBox = h('div', { hidden: true });
    this.result = h('div');
    this.right.append(this.ideasBox, this.result);
    this.askSoon = debounce(50, () => this.askNow());
    replace(place, h('div', { class: 'q-ask-and-see' }, h('div', { class: 'q-asked' }, this.podPanel(), this.nodePanel(), this.configPanel(), this.buttons()), this.right));
    this.choose(query.pod || '');
  }

  // -- the pod

  podPanel() {
    this.known = h('datalist', { id: 'whatif-pods' });
    this.name = h('input', { list: 'whatif-pods', placeholder: 'namespace/name of a pod, or empty for a new one', 'aria-label': 'pod', class: 'grow', autocomplete: 'off', spellcheck: 'false', onfocus: () => this.podNames(), onchange: () => this.choose(this.name.value.trim()) });
    this.podState = h('div');
    this.chips = h('div', { class: 'q-chips' });
    return panel('The pod', { tools: [h('button', { type: 'button', class: 'ghost', onclick: () => this.choose('') }, 'New pod')] },
      h('div', { class: 'col' }, h('div', { class: 'row' }, this.name, this.known), this.podState, this.chips, this.editor.el, this.editor.problemsEl));
  }

  podNames() {
    const list = [...rows('pods').values()].sort((a, b) => (!!a.node - !!b.node) || (a.key < b.key ? -1 : 1)).slice(0, 300);
    replace(this.known, list.map((p) => h('option', { value: p.key }, p.node ? `on ${p.node}` : 'pending')));
  }

  async choose(key) {
    const turn = (this.turn = (this.turn || 0) + 1);
    this.ideasAsked = false;
    this.name.value = key;
    setQuery({ pod: key || null });
    replace(this.podState);
    this.pod = null;
    if (!key) { this.edit(copy(NEW_POD)); return; }
    const [ns, name] = key.includes('/') ? key.split('/') : ['default', key];
    this.editor.value = '';
    replace(this.podState, spinner('Reading the pod'));
    try {
      const pod = await fetchJSON(`/api/v1/namespaces/${part(ns)}/pods/${part(name)}`);
      if (turn !== this.turn) return;
      this.pod = pod;
      replace(this.podState, pod.spec.nodeName ? h('p', { class: 'muted' }, 'It is on ', nodeLink(pod.spec.nodeName), ' and is asked as if it were not there yet.') : null);
      this.edit(readable(pod));
    } catch (err) {
      if (turn !== this.turn) return;
      replace(this.podState);
      replace(this.chips);
      replace(this.result, h('section', { class: 'panel' }, err.status === 404 ? empty(`There is no pod ${ns}/${name}`, 'It may have gone. Choose another one, or ask about a new one.') : failure(err, () => this.choose(key))));
      this.ideasBox.hidden = true;
    }
  }

  edit(object) {
    this.shown = toYaml(object);
    if (!this.pod || this.original === undefined || this.pod.metadata.uid !== this.originalOf) {
      this.original = this.shown;
      this.originalOf = this.pod ? this.pod.metadata.uid : '';
    }
    this.editor.value = this.shown;
    this.quick(object);
    this.ask();
  }

  // Quick changes are made on what stands in the editor.
  quick(object) {
    const s = object.spec || {}, want = requests(object), list = [];
    for (const r of Object.keys(want)) list.push([`½ ${r}`, (p) => scaled(p, r, 0.5)], [`2× ${r}`, (p) => scaled(p, r, 2)]);
    if (s.nodeSelector) list.push(['no node selector', (p) => without(p, 'nodeSelector')]);
    if (s.affinity) list.push(['no affinity', (p) => without(p, 'affinity')]);
    if (s.topologySpreadConstraints) list.push(['no spread', (p) => without(p, 'topologySpreadConstraints')]);
    if ((s.schedulingGates || []).length) list.push(['no gates', (p) => without(p, 'schedulingGates')]);
    list.push(['tolerate every taint', (p) => tolerating(p, null)], ['priority +1000', (p) => withPriority(p, (p.spec.priority || 0) + 1000)]);
    replace(this.chips, list.map(([text, make]) => h('button', { type: 'button', onclick: async () => {
      const now = await this.object();
      if (now) this.edit(make(now));
    } }, text)), h('button', { type: 'button', hidden: !this.edited(), onclick: () => { this.editor.value = this.original; this.restore(); } }, '↺ as it is'));
  }

  async restore() {
    const now = await this.object();
    if (now) this.edit(now);
  }

  edited() { return this.pod && this.editor.value !== this.original; }

  async object() {
    if (this.editor.value === this.shown && this.shownObject) return copy(this.shownObject);
    try {
      const [o] = await parseManifest(this.editor.value);
      return o && o.spec ? o : null;
    } catch (err) {
      this.editor.setErrors([{ line: err.line || 0, message: err.message }]);
      return null;
    }
  }

  // -- nodes

  nodePanel() {
    this.action = h('select', { 'aria-label': 'what to do with the node' }, [['add', 'add one like'], ['cordon', 'cordon'], ['uncordon', 'uncordon'], ['taint', 'taint'], ['untaint', 'remove taints of'], ['label', 'label'], ['delete', 'delete']].map(([v, t]) => h('option', { value: v }, t)));
    this.nodeNames = h('datalist', { id: 'whatif-nodes' });
    this.node = h('input', { list: 'whatif-nodes', placeholder: 'node', 'aria-label': 'node', autocomplete: 'off', onfocus: () => this.listNodes() });
    this.detail = h('input', { 'aria-label': 'detail', placeholder: '', hidden: true });
    this.action.addEventListener('change', () => {
      const hint = { taint: 'key=value:NoSchedule', label: 'key=value', add: 'how many' }[this.action.value];
      this.detail.hidden = !hint;
      this.detail.placeholder = hint || '';
    });
    this.list = h('ul', { class: 'q-changes' });
    this.nodeError = h('div');
    this.action.dispatchEvent(new Event('change'));
    return panel('The nodes', {}, h('form', { class: 'row wrap', onsubmit: (e) => { e.preventDefault(); this.addChange(); } }, this.action, this.node, this.nodeNames, this.detail, h('button', { type: 'submit' }, 'Add')), this.nodeError, this.list);
  }

  listNodes() { replace(this.nodeNames, [...rows('nodes').values()].slice(0, 500).map((n) => h('option', { value: n.name }))); }

  async addChange() {
    const name = this.node.value.trim(), what = this.action.value, detail = this.detail.value.trim();
    replace(this.nodeError);
    try {
      if (!name) throw new Error('Which node?');
      const node = await fetchJSON(`/api/v1/nodes/${part(name)}`);
      this.changes.push(...this.nodeChanges(node, what, detail));
      this.showChanges();
    } catch (err) {
      replace(this.nodeError, note('bad', err.message));
    }
  }

  nodeChanges(node, what, detail) {
    const name = node.metadata.name, taint = what === 'taint' ? parseTaint(detail) : null;
    if (what === 'taint' && !taint) throw new Error('A taint is KEY=VALUE:EFFECT; effects are NoSchedule, PreferNoSchedule and NoExecute.');
    const [, k, v] = /^([^=]+)=?(.*)$/.exec(detail) || [];
    if (what === 'label' && !k) throw new Error('A label is KEY=VALUE.');
    switch (what) {
      case 'add': return this.added(node, Math.max(1, Math.min(500, parseInt(detail, 10) || 1)));
      case 'cordon': return [{ text: `cordon ${name}`, manifest: cordoned(node, true) }];
      case 'uncordon': return [{ text: `uncordon ${name}`, manifest: cordoned(node, false) }];
      case 'taint': return [{ text: `taint ${name} ${detail}`, manifest: tainted(node, taint) }];
      case 'untaint': return [{ text: `remove the taints of ${name}`, manifest: untainted(node) }];
      case 'label': return [{ text: `label ${name} ${detail}`, manifest: labelled(node, k, v) }];
      default: return [{ text: `delete ${name}`, delete: { kind: 'Node', name } }];
    }
  }

  added(node, n) {
    const taken = new Set([...rows('nodes').keys(), ...this.changes.map((c) => (c.manifest ? c.manifest.metadata.name : ''))]), out = [];
    for (let i = 1; out.length < n; i++) {
      const name = `new-${i}`;
      if (!taken.has(name)) out.push({ text: `add ${name}, like ${node.metadata.name}`, manifest: nodeLike(node, name, {}, (node.spec || {}).taints) });
    }
    return out;
  }

  showChanges() {
    replace(this.list, this.changes.map((c, i) => h('li', {}, clip(c.text), c.manifest ? h('button', { type: 'button', class: 'ghost', onclick: () => this.editChange(c) }, 'edit') : null,
      h('button', { type: 'button', class: 'ghost', 'aria-label': `leave out: ${c.text}`, onclick: () => { this.changes.splice(i, 1); this.showChanges(); } }, '×'))));
    this.ask();
  }

  async editChange(c) {
    const editor = new YamlEditor({ label: 'the changed object', value: toYaml(c.manifest) });
    await dialog({ title: c.text, wide: true, body: h('div', { class: 'col q-edit' }, editor.el, editor.problemsEl), buttons: [{ text: 'Cancel', value: null }, { text: 'Use it', kind: 'primary', value: true, action: async () => {
      try { const [o] = await parseManifest(editor.value); c.manifest = o; this.showChanges(); return true; } catch (err) { editor.setErrors([{ line: err.line || 0, message: err.message }]); return false; }
    } }] });
  }

  // -- configuration and the rest

  configPanel() {
    this.configBox = h('div');
    this.configOn = h('input', { type: 'checkbox', onchange: () => this.useConfig(this.configOn.checked) });
    return panel('The configuration', {}, h('label', { class: 'check' }, this.configOn, 'decide with another one than the scheduler runs with'), this.configBox);
  }

  async useConfig(on) {
    this.config = null;
    replace(this.configBox);
    if (on) {
      replace(this.configBox, spinner('Reading the configuration'));
      try {
        const running = toYaml(await fetchJSON('/api/v1/schedulerconfiguration'));
        this.config = new YamlEditor({ label: 'KubeSchedulerConfiguration', value: running, onChange: () => this.ask(), onSubmit: () => this.ask() });
        replace(this.configBox, this.config.el, this.config.problemsEl);
      } catch (err) {
        this.configOn.checked = false;
        replace(this.configBox, errorNote(err));
      }
    }
    this.ask();
  }

  buttons() {
    this.everybody = h('input', { type: 'checkbox', onchange: () => this.ask() });
    this.applyButton = h('button', { type: 'button', onclick: () => this.apply(), disabled: true, writes: true }, 'Apply for real …');
    return h('div', { class: 'row wrap' }, h('button', { type: 'button', class: 'primary', onclick: () => this.askNow() }, 'Ask'), h('label', { class: 'check' }, this.everybody, 'all pending pods, too'), h('span', { class: 'grow' }), this.applyButton);
  }

  // -- asking

  ask() { this.askSoon(); }

  body(extra = [], manifest = null) {
    const text = manifest || (this.pod ? (this.edited() ? this.editor.value : null) : this.editor.value);
    const pod = this.pod ? { namespace: this.pod.metadata.namespace, name: this.pod.metadata.name } : { manifest: text };
    const changes = [...(this.pod && text ? [{ manifest: text }] : []), ...this.changes.map((c) => (c.manifest ? { manifest: c.manifest } : { delete: c.delete })), ...extra];
    return { pod, changes, ...(this.config ? { config: this.config.value } : {}), ...(this.everybody.checked ? { everybody: true } : {}) };
  }

  async askNow() {
    if (this.gone || !this.editor.value.trim()) return;
    const turn = (this.asked = (this.asked || 0) + 1);
    const timer = setTimeout(() => turn === this.asked && replace(this.result, spinner('Asking')), 300);
    this.editor.setErrors([]);
    if (this.config) this.config.setErrors([]);
    this.applyButton.disabled = !(this.edited() || this.changes.length || this.config || !this.pod);
    try {
      const body = this.body(), got = await ask('POST', '/berth/v1/whatif', body);
      if (turn !== this.asked || this.gone) return;
      this.show(got, body);
    } catch (err) {
      if (turn === this.asked && !this.gone) this.refused(err);
    } finally {
      clearTimeout(timer);
    }
  }

  // The reason goes to where the mistake is: the editor of the pod, of the configuration, or the list.
  refused(err) {
    const f = err.field || '';
    const unserved = f === 'pod.spec.schedulerName' && this.pod;
    if (f.startsWith('config') && this.config) this.config.setErrors([{ line: err.line || 0, message: err.message }]);
    else if (!unserved && (f.startsWith('pod') || f.startsWith('changes[0]')) && err.status === 400) this.editor.setErrors([mistake(this.editor.value, err)]);
    if (unserved) this.unserved();
    else replace(this.result, h('section', { class: 'panel' }, failure(err, () => this.askNow())));
  }

  // One reason, what to do about it, and a press that asks with it done.
  unserved() {
    this.ideasBox.hidden = true;
    replace(this.result, unservedNote(this.pod, (name) => h('button', { type: 'button', onclick: async () => {
      const now = await this.object();
      if (now) this.edit({ ...now, spec: { ...now.spec, schedulerName: name } });
    } }, 'Try it')));
  }

  show(got, asked) {
    const changed = this.edited() || this.changes.length || this.config, before = got.before, after = got.after;
    const d = fromExplanation(after), source = new Computed(after);
    const list = [];
    if (changed && before) list.push(verdict(before, after));
    list.push(h('section', { class: 'panel' }, h('div', { class: 'body' }, changed && before ? this.compared(got, d, source) : answer(d, source))),
      h('p', { class: 'row wrap faint' }, `Nothing was changed. Computed in ${fmt.ns(got.took_ns)} from revision ${got.revision}.`, reportButton(() => this.report(got, asked), 'ghost')));
    replace(this.result, list.map((x) => h('div', { class: 'q-part' }, x)));
    this.next(after, changed);
  }

  async next(after, changed) {
    const turn = this.asked;
    await nodesKnown();
    if (this.gone || turn !== this.asked) return;
    if (after.result === 'Scheduled' || !rows('nodes').size) { if (!changed) this.ideasBox.hidden = true; return; }
    if (!changed && !this.ideasAsked) this.suggest();
    else this.result.prepend(h('div', { class: 'q-part' }, h('button', { type: 'button', onclick: () => this.suggest() }, 'What would make it fit now?')));
  }

  // asked: the body of the question that got answers.
  async report(got, asked) {
    const { before, after } = got, d = fromExplanation(after), given = [asked.pod, ...asked.changes].map((c) => c.manifest || (c.delete ? `# deleted: ${c.delete.kind} ${c.delete.name}\n` : '')).filter(Boolean);
    return { title: `What if: ${d.pod.namespace}/${d.pod.name}`, badge: result(after.result), lines: [...(before ? [`As it is: ${headlineText(before)}`] : []), `${before ? 'With the changes' : 'Now'}: ${headlineText(after)}`],
      parts: [{ title: 'What was changed for the question', pre: given.map((m) => (typeof m === 'string' ? m : toYaml(m))).join('---\n') }, { title: 'Configuration', pre: asked.config },
        { title: 'Nodes that answer differently', columns: ['Node', 'Before', 'After'], rows: ((got.difference || {}).nodes || []).map((n) => [n.node, n.before || 'not there', n.after || 'not there']) },
        { title: 'Other pods', columns: ['Pod', 'Before', 'After'], rows: (got.others || []).map((o) => [`${o.namespace}/${o.name}`, o.before || 'pending', o.after || 'pending']) }, ...await decisionParts(d, new Computed(after))] };
  }

  compared(got, d, source) {
    const diff = got.difference || {}, nodes = diff.nodes || [], others = got.others || [];
    return tabs([{ id: 'after', title: 'After', body: () => answer(d, source) },
      { id: 'diff', title: 'What differs', count: count(nodes.length), body: () => differing(nodes, diff.unchanged) },
      { id: 'scores', title: 'Score changes', body: () => scoreChanges(got.before, got.after) },
      { id: 'others', title: 'Other pods', count: this.everybody.checked ? count(others.length) : undefined, body: () => moved(others, this.everybody.checked) },
      { id: 'before', title: 'Before', body: () => answer(fromExplanation(got.before), new Computed(got.before)) }], { selected: 'after' });
  }

  // -- what would make it fit

  async suggest() {
    this.ideasAsked = true;
    const turn = this.turn, run = (this.suggested = (this.suggested || 0) + 1), sum = h('span', { class: 'muted' });
    const still = () => !this.gone && turn === this.turn && run === this.suggested;
    const place = h('div', {}, spinner('Trying changes'));
    this.ideasBox.hidden = false;
    replace(this.ideasBox, panel('What would make it fit?', { tools: [sum] }, place));
    try {
      const got = await ask('POST', '/berth/v1/whatif', { ...this.body(), fixes: true });
      if (!still()) return;
      const { fixes = [], tried = 0, pairs } = got.fixes || {}, good = fixes.filter((x) => x.fits).length, what = pairs ? 'pair of changes' : 'single change';
      sum.textContent = good ? `${plural(good, what, pairs ? 'pairs of changes' : 'single changes')} would help` : `nothing of this would help (${count(tried)} tried)`;
      replace(place, fixes.length ? h('ol', { class: 'q-ideas' }, fixes.map((x) => fixLine(x, () => this.use(x)))) : empty('No idea', 'No single change comes to mind.'));
    } catch (err) {
      if (still()) replace(place, failure(err, () => this.suggest()));
    }
  }

  async use(fix) {
    try {
      const made = (fix.create || []).map((manifest) => ({ text: `create ${manifest.kind} ${manifest.metadata.name}`, manifest }));
      if (fix.node) made.push({ text: `change ${fix.node.name}`, manifest: merged(await fetchJSON(`/api/v1/nodes/${part(fix.node.name)}`), fix.node.patch) });
      this.changes.push(...made);
      if (fix.pod) this.edit(readable(fix.pod));
      if (made.length) this.showChanges();
      this.result.scrollIntoView({ block: 'start' });
    } catch (err) { toast(err.message, 'bad'); }
  }

  // -- for real

  async apply() {
    try { await this.writes(); } catch (err) { toast(err.message, 'bad'); }
  }

  async writes() {
    const list = [], edited = this.edited() || !this.pod ? await this.object() : null;
    if (edited) list.push(await podWrite(this.pod, edited, this.original));
    for (const c of this.changes) list.push(nodeWrite(c));
    if (this.config) list.push(configWrite(this.config.value));
    if (!list.length) return;
    const state = h('div');
    const body = h('div', { class: 'col' }, list.map((w) => h('div', {}, h('p', {}, h('b', {}, w.text)), w.why ? h('p', { class: 'muted' }, w.why) : null, w.diff || null)), state);
    await dialog({ title: 'Apply for real', wide: true, body, buttons: [{ text: 'Cancel', value: null }, { text: 'Change the cluster', kind: 'primary', value: true, action: async () => {
      for (const w of list) {
        if (w.done) continue;
        replace(state, spinner(w.text));
        try { await w.run(); w.done = true; } catch (err) { replace(state, note('bad', `${w.text}: ${err.message}`)); return false; }
      }
      toast('The cluster was changed.', 'ok');
      return true;
    } }] });
    if (list.every((w) => w.done)) this.applied(list.find((w) => w.page));
  }

  // written: what was done to the pod, with the page where that is seen.
  applied(written) {
    this.changes = [];
    if (this.configOn.checked) { this.configOn.checked = false; this.useConfig(false); }
    if (written) location.hash = written.page;
    else this.showChanges();
  }
}

// A refusal as the editor shows it: a field that is named is found; the line alone is the document's.
export function mistake(text, err) {
  const at = /((?:spec|metadata|status)(?:\.[\w-]+|\[[^\]]+\])+)/.exec(err.message || '');
  return { line: (at && lineOfField(text, at[1])) || err.line || 0, message: err.message };
}

// A page that was opened at this screen is asked before it knows the nodes.
const nodesKnown = () => new Promise((done) => {
  if (synced('nodes')) { done(); return; }
  const stop = subscribe('nodes', (s) => { if (s.synced) over(); });
  const timer = setTimeout(() => over(), 10000);
  function over() { clearTimeout(timer); setTimeout(() => stop()); done(); }
});

// ---- what differs --------------------------------------------------------------------------------

function verdict(before, after) {
  const side = (title, e, tone) => h('div', { class: tone }, h('small', {}, title), h('div', {}, badge(e.result), ' ', e.result === 'Scheduled' ? nodeLink(e.nodeName) : ''), h('small', {}, e.result === 'Scheduled'
    ? `${plural((e.nodes || {}).feasible || 0, 'node')} possible` : headlineText(e)));
  const rank = (e) => (e.result === 'Scheduled' ? 1 : 0), tone = rank(after) > rank(before) ? 'better' : rank(after) < rank(before) ? 'worse' : '';
  return h('div', { class: 'q-verdict', role: 'status' }, side('As it is', before, ''), h('span', { 'aria-hidden': 'true' }, '→'), side('With your changes', after, tone));
}

function headlineText(e) {
  return h('span', {}, headline(fromExplanation(e))).textContent;
}

function differing(nodes, unchanged) {
  if (!nodes.length) return empty('Every node answers as before', unchanged ? `${plural(unchanged, 'node')} unchanged.` : '');
  const list = new RowList({ height: 28, label: 'nodes that differ', rows: 12, draw: (i) => [h('span', { class: 'q-score-name' }, nodeLink(nodes[i].node)), clip(nodes[i].before || 'not there'), h('span', { class: 'faint' }, '→'), clip(nodes[i].after || 'not there')] });
  list.setCount(nodes.length);
  const now = nodes.filter((n) => /^feasible/.test(n.after || '') && !/^feasible/.test(n.before || '')).length, lost = nodes.filter((n) => /^feasible/.test(n.before || '') && !/^feasible/.test(n.after || '')).length;
  return h('div', {}, h('p', { class: 'muted' }, `${plural(now, 'node')} became possible, ${count(lost)} no longer ${lost === 1 ? 'is' : 'are'}; ${plural(unchanged || 0, 'node')} as before.`), list.el);
}

// Nodes that were possible before and after, by how much their total moved.
function scoreChanges(before, after) {
  const was = new Map((before.ranking || []).map((r) => [r.node, r]));
  const list = (after.ranking || []).filter((r) => was.has(r.node) && r.total !== undefined && was.get(r.node).total !== undefined).map((r) => {
    const old = new Map((was.get(r.node).plugins || []).map((p) => [p.plugin, p.weighted])), parts = [];
    for (const p of r.plugins || []) { const by = p.weighted - (old.get(p.plugin) || 0); if (by) parts.push(`${p.plugin} ${by > 0 ? '+' : '−'}${Math.abs(by)}`); }
    return { node: r.node, was: was.get(r.node).total, is: r.total, parts };
  }).filter((x) => x.was !== x.is || x.parts.length).sort((a, b) => Math.abs(b.is - b.was) - Math.abs(a.is - a.was));
  if (!list.length) return empty('No score changed', before.scored && after.scored ? 'Every node that is possible both ways has the same points.' : 'Scores can be compared when both sides score at least two nodes.');
  const rowsList = new RowList({ height: 28, label: 'score changes', rows: 12, draw: (i) => [h('span', { class: 'q-score-name' }, nodeLink(list[i].node)), h('span', { class: 'num' }, `${count(list[i].was)} → ${count(list[i].is)}`), h('b', { class: `num ${list[i].is < list[i].was ? 'bad' : 'ok'}` }, `${list[i].is > list[i].was ? '+' : '−'}${count(Math.abs(list[i].is - list[i].was))}`), clip(h('span', { class: 'muted' }, list[i].parts.join(', ')))] });
  rowsList.setCount(list.length);
  return rowsList.el;
}

function moved(others, asked) {
  if (!asked) return empty('Other pods were not asked', 'Tick “all pending pods, too” to see which of them would go elsewhere.');
  if (!others.length) return empty('No other pending pod changes', 'All of them are decided as before.');
  const list = new RowList({ height: 28, label: 'other pods', rows: 12, draw: (i) => [clip(podRef(others[i].namespace, others[i].name)), clip(others[i].before ? nodeLink(others[i].before) : 'pending'), h('span', { class: 'faint' }, '→'), clip(others[i].after ? nodeLink(others[i].after) : 'pending')] });
  list.setCount(others.length);
  return list.el;
}

// ---- ideas ---------------------------------------------------------------------------------------

function fixLine(fix, onUse) {
  const [sign, tone] = fix.fits ? ['✓', /evicting/.test(fix.outcome) ? 'warn' : 'ok'] : ['✕', 'faint'], commands = (fix.commands || []).join('\n');
  const text = h('pre', { tabindex: '0' }, commands);
  // navigator.clipboard is not there over plain HTTP.
  const copyIt = () => { getSelection().selectAllChildren(text); if (document.execCommand('copy')) toast('Copied.', 'ok'); };
  return h('li', {}, h('span', { class: `q-sign ${tone}` }, sign), h('div', {}, fix.text, h('small', {}, fix.outcome),
    commands && (fix.fits || fix.missing) ? h('details', {}, h('summary', {}, 'as commands'), fix.note ? h('p', { class: 'muted' }, fix.note) : null, text, h('button', { type: 'button', onclick: copyIt }, 'Copy')) : fix.note && fix.fits ? h('small', {}, fix.note) : null),
  h('button', { type: 'button', onclick: onUse }, 'Try it'));
}

// ---- writing -------------------------------------------------------------------------------------

const json = (method, path, body) => fetchJSON(path, { method, body });
const podPath = (m) => `/api/v1/namespaces/${part(m.namespace || 'default')}/pods`;
// What differs between the pod as it is and as edited, put into a template made of it.
function onTemplate(template, pod, edited) {
  const t = copy(template), before = readable(pod).spec;
  for (const k of new Set([...Object.keys(before), ...Object.keys(edited.spec)])) {
    if (k === 'containers' || k === 'initContainers' || k === 'priority' || JSON.stringify(before[k]) === JSON.stringify(edited.spec[k])) continue;
    if (edited.spec[k] === undefined) delete t.spec[k];
    else t.spec[k] = edited.spec[k];
  }
  for (const k of ['containers', 'initContainers']) for (const c of edited.spec[k] || []) {
    const mine = (t.spec[k] || []).find((x) => x.name === c.name), was = (before[k] || []).find((x) => x.name === c.name);
    if (mine && was) for (const f of Object.keys({ ...c, ...was })) if (JSON.stringify(c[f]) !== JSON.stringify(was[f])) { if (c[f] === undefined) delete mine[f]; else mine[f] = c[f]; }
  }
  return t;
}

async function gone(pod) {
  const path = `${podPath(pod.metadata)}?fieldSelector=${part(`metadata.name=${pod.metadata.name}`)}`;
  for (let i = 0; i < 100; i++) {
    if (!(await fetchJSON(path)).items.some((p) => p.metadata.uid === pod.metadata.uid)) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error('the old pod does not go away');
}

async function podWrite(pod, edited, original) {
  const m = edited.metadata, name = `${m.namespace || 'default'}/${m.name}`;
  const page = to('pods', m.namespace || 'default', m.name);
  if (!pod) return { text: `Create the pod ${name}`, page, run: () => json('POST', podPath(m), edited) };
  const owner = await topOwner(pod), path = `${podPath(pod.metadata)}/${part(pod.metadata.name)}`;
  if (owner && owner.object.spec && owner.object.spec.template) {
    const next = copy(owner.object);
    next.spec.template = onTemplate(owner.object.spec.template, pod, edited);
    return { text: `Change the template of ${owner.kind} ${pod.metadata.namespace}/${owner.name}`, why: 'The pod belongs to it, and all of its pods get the change.', page: owner.page,
      diff: diffView(toYaml(owner.object.spec.template), toYaml(next.spec.template)), run: () => json('PUT', owner.path, next) };
  }
  return { text: `Replace the pod ${name}`, page, why: 'Little of an existing pod may be changed, so it is deleted and created again.', diff: diffView(original, toYaml(edited)),
    run: async () => {
      // Asked of the server first: a pod that it would refuse does not cost the one that is there.
      const trial = copy(edited);
      trial.metadata.name = `${m.name.slice(0, 200)}-trial`;
      await json('POST', `${podPath(m)}?dryRun=All`, trial);
      await json('DELETE', `${path}?gracePeriodSeconds=0`);
      await gone(pod);
      await json('POST', podPath(m), edited);
    } };
}

function nodeWrite(c) {
  if (c.delete) return { text: `Delete the node ${c.delete.name}`, run: () => json('DELETE', `/api/v1/nodes/${part(c.delete.name)}`) };
  const o = c.manifest, name = o.metadata.name, path = `/api/v1/nodes/${part(name)}`;
  if (o.kind !== 'Node') return { text: `Create the ${o.kind} ${name}`, run: async () => json('POST', objectPath(await kindOf(o), o.metadata.namespace), o) };
  if (!o.metadata.uid) return { text: `Create the node ${name}`, run: () => json('POST', '/api/v1/nodes', o) };
  // Status changes all the time: only what was edited is written, onto the node as it is then.
  return { text: `Change the node ${name}`, why: c.text, run: async () => {
    const now = await fetchJSON(path);
    now.spec = o.spec;
    now.metadata.labels = o.metadata.labels;
    return json('PUT', path, now);
  } };
}

const configWrite = (text) => ({ text: 'Run the scheduler with this configuration', run: () => fetchText('/api/v1/schedulerconfiguration', { method: 'POST', body: text, type: 'application/yaml' }) });

registerScreen('whatif', {
  title: 'What if', key: 'w', nav: { group: 'Decisions', order: 20 },
  mount(el, route) {
    const w = new WhatIf(el, route.query);
    return () => { w.gone = true; };
  },
});

