// SPDX-License-Identifier: Apache-2.0
//
// explorer.js - decisions: the list, one decision, the decisions about one pod
//
// #/decisions[?result=&namespace=&q=]   #/decisions/ID[?tab=]   #/decisions/pod/NAMESPACE/NAME[?tab=]

import { empty, fmt, h, nodeLink, note, plural, reasonsOf, registerScreen, replace, segmented, setQuery, setTitle, stackedBar, to } from './lib.js';
import { RowList, ask, attemptResult, badge, between, count, decisionHref, eventWords, failure, into, podDecisionsHref, podRef, whatifHref } from './parts.js';
import { Computed, Recorded, answer, fromExplanation } from './answer.js';
import { decisionReport, reportButton } from './report.js';
import { askProfiles, isUnservedPod, unservedNote } from './schedulers.js';

const part = encodeURIComponent;

// ---- the list ------------------------------------------------------------------------------------

const KEEP = 5000; // rows held: the newest
const RESULTS = [['', 'All'], ['Scheduled', 'Scheduled'], ['Unschedulable', 'Unschedulable'], ['Error', 'Error']];

// What recording keeps of them now, by the newest ones.
const KEPT = { full: 'Of the newest decisions every node is kept.',
  sample: 'Many pods at a time: every node is kept of a sample and of pods that failed before, of the others a summary.',
  summary: 'Of the newest decisions a summary is kept: result, message and times, no nodes.' };

class DecisionList {
  constructor(place, query) {
    this.filter = { result: query.result || '', namespace: query.namespace || '', q: query.q || '' };
    this.items = [];
    this.shown = [];
    this.live = true;
    this.list = new RowList({ height: 30, label: 'decisions, newest first', draw: (i) => this.row(this.shown[i]),
      onOpen: (i) => { location.hash = decisionHref(this.shown[i].id); } });
    this.list.el.addEventListener('scroll', () => this.atEnd(), { passive: true });
    this.state = h('div');
    this.counts = h('span', { class: 'vt-count' });
    place.classList.add('fill');
    replace(place, h('section', { class: 'panel q-list' }, this.tools(), this.head(), this.state, this.list.el));
  }

  tools() {
    const find = h('input', { type: 'search', placeholder: 'pod, node or message', value: this.filter.q, 'aria-label': 'filter decisions',
      class: 'vt-search', oninput: () => { this.filter.q = find.value.trim(); this.changed(); this.show(); } });
    this.ns = h('select', { 'aria-label': 'namespace', onchange: () => { this.filter.namespace = this.ns.value; this.changed(); this.start(); } }, h('option', { value: '' }, 'all namespaces'));
    const live = h('input', { type: 'checkbox', checked: true, onchange: () => { this.live = live.checked; if (this.live) this.poll(); } });
    return h('div', { class: 'vt-tools' }, find, segmented(RESULTS, this.filter.result, (v) => { this.filter.result = v; this.changed(); this.start(); }, 'result'), this.ns,
      h('label', { class: 'check' }, live, 'live'), h('span', { class: 'grow' }), this.counts);
  }

  changed() {
    setQuery({ q: this.filter.q || null, result: this.filter.result || null, namespace: this.filter.namespace || null });
  }

  head() {
    return h('div', { class: 'q-drow q-dhead' }, ...['Time', 'Pod', 'Result', 'Node', 'Possible nodes', 'Attempt', 'Woken because', 'Took'].map((t) => h('span', { class: t === 'Took' ? 'right' : null }, t)));
  }

  row(d) {
    const n = d.nodes || {};
    return h('div', { class: 'q-drow' }, h('span', { class: 'num' }, h('a', { href: decisionHref(d.id) }, fmt.time(d.time))),
      h('span', { class: 'clip' }, podRef(d.pod.namespace, d.pod.name)), h('span', {}, badge(attemptResult(d))),
      h('span', { class: 'clip', title: d.message || '' }, d.nodeName ? nodeLink(d.nodeName) : h('span', { class: 'muted' }, reasonsOf(d.message))),
      h('span', { class: 'q-share', title: `${count(n.feasible)} of ${count(n.total)} nodes were possible` }, stackedBar([{ value: n.feasible || 0, colour: 'var(--bar-1)' }], { max: n.total || 1, height: 8 }), h('small', { class: 'num' }, `${count(n.feasible)}/${count(n.total)}`)),
      h('span', { class: 'num' }, h('a', { href: podDecisionsHref(d.pod.namespace, d.pod.name) }, `#${d.attempt}`)),
      h('span', { class: 'clip muted' }, eventWords(d.trigger || '')), h('span', { class: 'num right' }, fmt.ns(d.duration_ns)));
  }

  path(before) {
    const p = new URLSearchParams({ limit: 200 });
    if (this.filter.result) p.set('result', this.filter.result);
    if (this.filter.namespace) p.set('namespace', this.filter.namespace);
    if (before) p.set('before', before);
    return `/berth/v1/decisions?${p}`;
  }

  start() {
    this.items = [];
    return into(this.state, () => ask('GET', this.path()), (got) => { this.take(got, true); });
  }

  take(got, older) {
    this.recording = got.recording || {};
    if (older) this.more = got.more;
    const have = new Map(this.items.map((d) => [d.id, d]));
    for (const d of got.items) have.set(d.id, d);
    this.items = [...have.values()].sort((a, b) => b.id - a.id).slice(0, KEEP);
    this.namespaces();
    this.show();
  }

  namespaces() {
    const have = new Set([...this.ns.options].map((o) => o.value));
    for (const d of this.items) {
      if (have.has(d.pod.namespace)) continue;
      have.add(d.pod.namespace);
      this.ns.append(h('option', { value: d.pod.namespace }, d.pod.namespace));
    }
    this.ns.value = this.filter.namespace;
  }

  show() {
    const q = this.filter.q.toLowerCase(), was = this.list.el.scrollTop ? this.shown[Math.floor(this.list.el.scrollTop / 30)] : null;
    this.shown = q ? this.items.filter((d) => `${d.pod.namespace}/${d.pod.name} ${d.nodeName} ${d.message}`.toLowerCase().includes(q)) : this.items;
    this.list.setCount(this.shown.length);
    if (was) this.list.el.scrollTop = Math.max(0, this.shown.indexOf(was)) * 30 + (this.list.el.scrollTop % 30);
    const r = this.recording || {};
    replace(this.counts, r.mode === 'off' ? 'recording is off' : [r.keeps ? h('span', { class: `tag ${r.keeps === 'full' ? 'ok' : 'info'}`, title: KEPT[r.keeps] }, `keeps: ${r.keeps}`) : null,
      ` ${count(this.shown.length)} shown, ${count(r.records)} kept${r.dropped ? `, ${count(r.dropped)} overwritten` : ''}`]);
    this.state.replaceChildren(...(this.shown.length ? [] : [this.none()]));
    this.list.el.hidden = !this.shown.length;
  }

  none() {
    if (this.items.length || this.filter.result || this.filter.namespace) return empty('No decision matches', this.more ? `Among the newest ${count(this.items.length)}.` : 'Change or clear the filters.', this.more ? h('button', { type: 'button', onclick: () => this.older() }, 'Look further back') : null);
    if ((this.recording || {}).mode === 'off') return recordingOff();
    return empty('No decision yet', 'Create a pod: what the scheduler decides about it appears here at once.', h('p', {}, h('a', { href: '#/pods' }, 'To the pods')));
  }

  atEnd() {
    const l = this.list.el;
    if (l.scrollTop + l.clientHeight >= l.scrollHeight - 600) this.older();
  }

  older() {
    if (!this.more || this.fetching || this.items.length >= KEEP) return;
    this.fetching = true;
    ask('GET', this.path(this.items[this.items.length - 1].id)).then((got) => this.take(got, true), () => { this.more = false; })
      .finally(() => { this.fetching = false; });
  }

  async poll() {
    if (!this.live || this.gone || document.hidden || !this.recording) return;
    try {
      const got = await ask('GET', this.path());
      if (this.gone) return;
      const top = this.items.length ? this.items[0].id : 0;
      const fresh = got.items.some((d) => d.id > top), changed = got.items.some((d) => { const o = this.items.find((x) => x.id === d.id); return o && o.outcome !== d.outcome; });
      if (fresh || changed) this.take(got, false);
    } catch { /* the frame's banner says that the server is away; the next turn asks again */ }
  }
}

function recordingOff() {
  return empty('Decisions are not recorded', 'This scheduler runs without --record-decisions. What it would decide now can be asked at any time, without changing anything.',
    h('p', {}, h('a', { class: 'button', href: '#/whatif' }, 'Ask a question')));
}

function mountList(place, { query }) {
  const list = new DecisionList(place, query);
  list.start();
  const timer = setInterval(() => list.poll(), 1500);
  return () => { list.gone = true; clearInterval(timer); };
}

// ---- attempts of a pod, on a line ----------------------------------------------------------------

function gapWidth(a, b) {
  const s = (Date.parse(b.time) - Date.parse(a.time)) / 1000;
  return Math.round(Math.min(220, 64 + 28 * Math.log10(1 + Math.max(0, s))));
}

function gap(a, b) {
  const el = h('li', { class: 'q-gap', title: `${between(a.time, b.time)} in the queue` }, h('small', {}, between(a.time, b.time)), h('small', { class: 'faint' }, a.pod.uid !== b.pod.uid ? 'another pod of this name' : b.trigger ? eventWords(b.trigger) : 'in the queue'));
  el.style.minWidth = `${gapWidth(a, b)}px`;
  return el;
}

// attempts: oldest first
function history(attempts, current, onPick) {
  const out = [];
  attempts.forEach((d, i) => {
    if (i) out.push(gap(attempts[i - 1], d));
    const on = d.id === current;
    out.push(h('li', {}, h('button', { type: 'button', class: `q-attempt${on ? ' on' : ''}`, 'aria-current': on ? 'true' : 'false', onclick: () => onPick(d) },
      h('b', {}, `#${d.attempt}`), badge(attemptResult(d)), h('small', {}, d.nodeName || fmt.time(d.time)))));
  });
  if (attempts.length < 2) return null;
  const el = h('ol', { class: 'q-history', 'aria-label': 'attempts of this pod' }, ...out);
  requestAnimationFrame(() => { const on = el.querySelector('.on'); if (on) el.scrollLeft = on.parentElement.offsetLeft - el.clientWidth / 2; });
  return el;
}

// ---- one decision --------------------------------------------------------------------------------

// The group that a member with room waits for.
function groupLink(d) {
  const m = d.outcome === 'GroupWaits' && /its group (\S+)\/(\S+) waits/.exec(d.outcomeMessage || '');
  return m ? [' ', h('a', { href: to('groups', m[1], m[2]) }, 'The group')] : '';
}

function facts(d) {
  const list = [['Result', badge(attemptResult(d))], ['Time', fmt.date(d.time)], ['Attempt', `#${d.attempt}`], ['Profile', d.profile], ['Took', fmt.ns(d.duration_ns)],
    ['Woken because', eventWords(d.trigger || '')], ['Then', d.outcome ? [badge(d.outcome), d.outcomeMessage ? ` ${d.outcomeMessage}` : '', groupLink(d)] : ''],
    ['Equals', d.result === 'Scheduled' && d.tie && d.tie.equals > 1 ? `${plural(d.tie.equals, 'node')} had the best total; one was drawn` : ''],
    ['Looked at', d.nodes && d.nodes.evaluated < d.nodes.total ? `${count(d.nodes.evaluated)} of ${plural(d.nodes.total, 'node')}` : '']];
  return h('div', { class: 'q-facts' }, ...list.filter(([, v]) => v && v.length !== 0).map(([k, v]) => h('span', {}, h('small', {}, k), h('span', {}, ...[v].flat(2)))));
}

function rawPart(d) {
  const place = h('div');
  const notes = h('div');
  place.append(h('p', { class: 'muted' }, 'As the server tells it: ', h('a', { href: `/berth/v1/decisions/${d.id}`, target: '_blank', rel: 'noopener' }, `/berth/v1/decisions/${d.id}`), '. Below, what kube-scheduler-simulator would have written onto the pod.'), notes);
  into(notes, () => ask('GET', `/berth/v1/decisions/${d.id}/annotations`), (got) => {
    const list = Object.entries(got);
    if (!list.length) return empty('No annotations', 'This decision was recorded without the nodes.');
    return h('dl', { class: 'q-notes' }, ...list.flatMap(([k, v]) => [h('dt', {}, k), h('dd', {}, h('pre', { tabindex: '0' }, typeof v === 'string' ? v : JSON.stringify(v)))]));
  });
  return place;
}

function actions(d) {
  const { namespace, name } = d.pod;
  return h('div', { class: 'q-actions' }, reportButton(() => decisionReport(d, new Recorded(d.id))), h('a', { class: 'button', href: to('pods', namespace, name) }, 'The pod'),
    h('a', { class: 'button primary', href: whatifHref(namespace, name) }, d.result === 'Scheduled' ? 'What if …?' : 'What would make it fit?'));
}

function show(place, d, strip, query) {
  const body = answer(d, new Recorded(d.id), { tab: query.tab || 'why', onTab: (tab) => setQuery({ tab }),
    extra: [{ id: 'raw', title: 'Record', body: () => rawPart(d) }] });
  body.firstChild.append(actions(d));
  body.firstChild.after(facts(d), strip || '');
  if (d.mode === 'summary') body.lastChild.replaceWith(empty('Its nodes were not kept', 'Recorded as a summary: the result, the message and the times. Start with --record-decisions=full to keep every node; what would be decided now can be asked at any time.'));
  replace(place, body);
}

async function podAttempts(ns, name) {
  const got = await ask('GET', `/berth/v1/pods/${part(ns)}/${part(name)}/decisions`);
  return { ...got, items: got.items.sort((a, b) => a.id - b.id) }; // earlier pods of this name stand before it
}

function mountDecision(place, { params, query }) {
  const id = params[0];
  setTitle(`Decision ${id}`, h('a', { href: to('decisions') }, 'Decisions'));
  into(place, async () => {
    const d = await ask('GET', `/berth/v1/decisions/${part(id)}`);
    const all = await podAttempts(d.pod.namespace, d.pod.name).catch(() => ({ items: [d] }));
    return [d, all];
  }, ([d, all]) => {
    const attempts = all.items.some((x) => x.id === d.id) ? all.items : [d];
    show(place, d, history(attempts, d.id, (x) => { location.hash = decisionHref(x.id); }), query);
  }).then(() => missing(place, id));
}

function missing(place, id) {
  const failed = place.querySelector('.empty[role=alert] h2');
  if (failed && failed.textContent === 'Not here')
    place.replaceChildren(empty(`Decision ${id} is not kept`, 'The store holds the newest decisions; this one was overwritten, or never recorded.', h('p', {}, h('a', { href: '#/decisions' }, 'To the decisions that are kept'))));
}

// ---- the decisions about one pod -----------------------------------------------------------------

function gated(ns, name, pod) {
  const gates = (pod.spec.schedulingGates || []).map((g) => g.name);
  return empty(`${ns}/${name} waits at its gates`, `No decision is taken before these are removed from it: ${gates.join(', ')}.`,
    h('p', {}, h('a', { class: 'button', href: to('pods', ns, name) }, 'The pod'), ' ', h('a', { class: 'button primary', href: whatifHref(ns, name) }, 'Where would it go without them?')));
}

function askNow(place, ns, name) {
  into(place, () => ask('POST', '/berth/v1/whatif', { pod: { namespace: ns, name } }), (got) => {
    const e = got.after, d = fromExplanation(e);
    return [note('info', 'This is not a record: it is what would be decided now. Nothing was changed.'), answer(d, new Computed(e))];
  }, 'Asking what would be decided now');
}

async function noRecord(place, ns, name, recording) {
  const pod = await ask('GET', `/api/v1/namespaces/${part(ns)}/pods/${part(name)}`).catch((err) => err);
  if (pod instanceof Error) { place.replaceChildren(pod.status === 404 ? empty(`There is no pod ${ns}/${name}`, 'And no decision about one of this name is kept.') : failure(pod)); return; }
  if (((pod.spec || {}).schedulingGates || []).length) { place.replaceChildren(gated(ns, name, pod)); return; }
  await askProfiles();
  if (isUnservedPod(pod)) { place.replaceChildren(unservedNote(pod)); return; }
  const off = (recording || {}).mode === 'off', bound = (pod.spec || {}).nodeName;
  const why = off ? 'This scheduler runs without --record-decisions.' : bound ? 'Its decision was overwritten by newer ones, or it came with its node and was never decided.'
    : 'It has not been tried yet, or its decisions were overwritten by newer ones.';
  place.replaceChildren(empty(`No decision about ${ns}/${name} is kept`, why,
    h('p', {}, h('button', { type: 'button', class: 'primary', onclick: () => askNow(place, ns, name) }, 'Ask what would be decided now'), ' ', h('a', { class: 'button', href: to('pods', ns, name) }, 'The pod'))));
}

function mountPod(place, { params, query }) {
  const [, ns, name] = params;
  setTitle(name, h('a', { href: to('decisions') }, 'Decisions'), ns);
  let newest = 0, gone = false, timer = 0;
  const pick = (d, items) => into(place, () => ask('GET', `/berth/v1/decisions/${d.id}`), (full) => show(place, full, history(items, d.id, (x) => pick(x, items)), query));
  const load = () => into(place, () => podAttempts(ns, name), (got) => {
    if (!got.items.length) { noRecord(place, ns, name, got.recording); return; }
    newest = got.items[got.items.length - 1].id;
    pick(got.items[got.items.length - 1], got.items);
  });
  const watch = async () => {
    if (gone || document.hidden) return;
    const got = await podAttempts(ns, name).catch(() => null);
    if (!gone && got && got.items.length && got.items[got.items.length - 1].id !== newest) load();
  };
  load();
  timer = setInterval(watch, 3000);
  return () => { gone = true; clearInterval(timer); };
}

registerScreen('decisions', {
  title: 'Decisions', key: 'd', nav: { group: 'Decisions', order: 10 },
  mount(el, route) {
    if (route.params[0] === 'pod' && route.params.length >= 3) return mountPod(el, route);
    return route.params.length ? mountDecision(el, route) : mountList(el, route);
  },
});
