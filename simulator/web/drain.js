// SPDX-License-Identifier: Apache-2.0
//
// drain.js - empties nodes as `kubectl drain` does: cordons them, evicts their pods through pods/eviction, waits for budgets
//
// It goes on while other screens are looked at, and ends with the tab.
import {confirmDialog, fetchJSON, fmt, h, nodeLink, plural, replace, Table, tag} from './lib.js';
import {podRef} from './parts.js';
import {row, subscribe} from './store.js';

const PAUSE = 5000, AT_ONCE = 6;  // kubectl asks again after 5 s
const TONES = {gone: 'ok', evicted: 'info', waits: 'warn', refused: 'bad', stays: ''};
const COLUMNS = [
  {id: 'pod', title: 'Pod', width: 'minmax(180px,1.5fr)', text: (p) => p.key, cell: (p) => podRef(p.namespace, p.name)},
  {id: 'node', title: 'From', width: 'minmax(90px,1fr)', text: (p) => p.node, cell: (p) => nodeLink(p.node)},
  {id: 'state', title: 'State', width: '90px', text: (p) => p.state, cell: (p) => tag(p.state, TONES[p.state])},
  {id: 'message', title: 'Why', width: 'minmax(160px,2.4fr)', text: (p) => p.message || ''},
];
let running = null;  // the last drain of this tab

const fieldsOf = (text) => new URLSearchParams({fieldSelector: text});
const podPath = (p) => `/api/v1/namespaces/${encodeURIComponent(p.namespace)}/pods/${encodeURIComponent(p.name)}`;
const owner = (o) => (o.metadata.ownerReferences || []).find((r) => r.controller);

// What would stop kubectl: it wants a flag for each.
function reservation(o) {
  if (['Succeeded', 'Failed'].includes(o.status?.phase)) return null;
  if (!owner(o)) return 'force';
  return (o.spec.volumes || []).some((v) => v.emptyDir) ? 'local' : null;
}
const REASONS = {force: 'no controller would make it anew', local: 'its emptyDir volumes would be lost'};

async function podsOf(node) {
  const list = (await fetchJSON(`/api/v1/pods?${fieldsOf(`spec.nodeName=${node}`)}`)).items || [];
  // Pods of daemon sets would come back at once, mirror pods belong to the node.
  return list.filter((o) => !(o.metadata.annotations || {})['kubernetes.io/config.mirror'] && (owner(o)?.kind !== 'DaemonSet' || ['Succeeded', 'Failed'].includes(o.status?.phase)));
}

// Asks, then begins. -> whether it began
export async function startDrain(nodes) {
  const found = (await Promise.all(nodes.map(podsOf))).flat(), count = (why) => found.filter((o) => reservation(o) === why).length;
  const tick = (why, text) => {
    const box = h('input', {type: 'checkbox', onchange: () => announce()});
    return {why, box, n: count(why), el: h('label', {class: 'check'}, box, text(plural(count(why), 'pod')))};
  };
  const ticks = [tick('force', (n) => `Evict ${n} without a controller too: nothing makes them anew`), tick('local', (n) => `Evict ${n} with emptyDir volumes too: what is in these is lost`)].filter((t) => t.n);
  const allowed = () => new Set(ticks.filter((t) => t.box.checked).map((t) => t.why));
  const text = h('p', {role: 'status'});
  const announce = () => {
    const yes = allowed(), evicted = found.filter((o) => !reservation(o) || yes.has(reservation(o))).length, stay = found.length - evicted;
    replace(text, `${nodes.length === 1 ? 'The node is' : 'The nodes are'} cordoned, and ${plural(evicted, 'pod')} evicted${stay ? `; ${plural(stay, 'pod')} ${stay === 1 ? 'stays' : 'stay'}` : ''}. Pods of daemon sets stay.`);
  };
  announce();
  const sure = await confirmDialog({
    title: `Drain ${nodes.length === 1 ? nodes[0] : plural(nodes.length, 'node')}?`,
    body: h('div', {class: 'col'}, text, ticks.map((t) => t.el)),
    confirm: 'Drain',
    danger: true
  });
  if (!sure) return false;
  if (running) running.stop();
  running = new Running(nodes, allowed());
  running.go(found);
  return true;
}
// The last drain's progress, null before the first.
export const drainView = () => running && running.el;

class Running {
  constructor(nodes, allowed) {
    Object.assign(this, {nodes, allowed, pods: new Map(), over: false, ended: ''});
    this.text = h('span', {class: 'grow num', role: 'status'});
    this.bar = h('progress', {max: 1, value: 0, 'aria-label': 'Pods gone'});
    this.button = h('button', {type: 'button', class: 'danger', onclick: () => this.stop()}, 'Stop');
    this.table = new Table({name: 'draining', columns: COLUMNS, sort: {id: 'pod', dir: 'asc'}, emptyText: 'No pod has to go.', fixedHeight: 10});
    this.el = h('section', {class: 'panel draining', 'aria-label': 'Drain'}, h('header', {}, h('h2', {}, `Draining ${nodes.length === 1 ? nodes[0] : plural(nodes.length, 'node')}`), this.bar, this.text, this.button), this.table.el);
  }
  set(p, state, message = '') {
    this.pods.set(p.key, {...this.pods.get(p.key), state, message});
    this.show();
  }
  count(state) { return [...this.pods.values()].filter((p) => p.state === state).length; }
  show() {
    this.table.setRows(this.pods.values());
    const stays = this.count('stays'), all = this.pods.size - stays, gone = this.count('gone');
    this.bar.max = Math.max(1, all);
    this.bar.value = all ? gone : this.over ? 1 : 0;
    const parts = [`${fmt.count(gone)} of ${plural(all, 'pod')} gone`, ...[['waits', 'wait'], ['refused', 'refused']].filter(([s]) => this.count(s)).map(([s, word]) => `${fmt.count(this.count(s))} ${word}`), stays ? `${fmt.count(stays)} stay` : ''];
    this.text.textContent = `${this.ended}${parts.filter(Boolean).join(', ')}`;
    this.button.hidden = this.over;
  }
  stop() { this.end('Stopped; cordoned still. '); }
  end(text) {
    if (this.over) return;
    this.over = true;
    this.ended = text;
    clearTimeout(this.timer);
    this.unsubscribe?.();
    this.show();
  }

  async go(found) {
    try {
      for (const name of this.nodes)
        await fetchJSON(`/api/v1/nodes/${encodeURIComponent(name)}`, {method: 'PATCH', type: 'application/merge-patch+json', body: {spec: {unschedulable: true}}});
    } catch (e) {
      this.end(`${e.message} `);
      return;
    }
    for (const o of found) {
      const m = o.metadata, why = reservation(o), stays = why && !this.allowed.has(why);
      this.pods.set(`${m.namespace}/${m.name}`, {
        key: `${m.namespace}/${m.name}`, namespace: m.namespace, name: m.name, uid: m.uid, node: o.spec.nodeName, state: stays ? 'stays' : m.deletionTimestamp ? 'evicted' : 'waits', message: stays ? REASONS[why] : ''
      });
    }
    this.show();
    this.unsubscribe = subscribe('pods', () => this.look());
    this.round();
  }
  // Which of the evicted pods are gone; the end.
  look() {
    for (const p of [...this.pods.values()])
      if (p.state === 'evicted' && row('pods', p.key)?.uid !== p.uid) this.set(p, 'gone');
    if (!['waits', 'evicted'].some((s) => this.count(s))) this.end(this.count('refused') || this.count('stays') ? 'Not empty: ' : 'Drained: ');
  }
  async round() {
    const due = [...this.pods.values()].filter((p) => p.state === 'waits');
    const worker = async () => {
      for (let p; !this.over && (p = due.shift());) await this.evict(p);
    };
    await Promise.all(Array.from({length: AT_ONCE}, worker));
    if (this.over) return;
    this.look();
    if (!this.over && this.count('waits')) this.timer = setTimeout(() => this.round(), PAUSE);
  }
  async evict(p) {
    const body = {apiVersion: 'policy/v1', kind: 'Eviction', metadata: {namespace: p.namespace, name: p.name}, deleteOptions: {preconditions: {uid: p.uid}}};
    try {
      await fetchJSON(`${podPath(p)}/eviction`, {method: 'POST', body});
      this.set(p, 'evicted');
    } catch (e) {
      // 429: a budget allows none now. 409: another pod has the name by now.
      if (e.status === 429 || e.status === 0) this.set(p, 'waits', e.message);
      else if (e.status === 404 || e.status === 409) this.set(p, 'gone');
      else this.set(p, 'refused', e.message);
    }
  }
}
