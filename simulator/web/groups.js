// SPDX-License-Identifier: Apache-2.0
//
// groups.js - pods that go together: the list of PodGroups, and one of them with its members, why it waits, and where it is
//
// #/groups[?q=TEXT], #/groups/NAMESPACE/NAME[?by=LABEL&resource=NAME]
import {amount, nodeStatus, podStatus, resourceNames} from './kinds.js';
import {
  compareNames, empty, fetchJSON, fmt, h, kv, legend, linkTo, navigate, note, panel, plural, reasonsOf, registerScreen, replace, setQuery, setTitle, spinner,
  stackedBar, Table, tag, to, toast
} from './lib.js';
import {ask, count, failure, podRef} from './parts.js';
import {rows, subscribe} from './store.js';

const KIND = 'podgroups.scheduling.k8s.io', API = '/apis/scheduling.k8s.io', BOXES = 120, HOST = 'kubernetes.io/hostname';
const PARTS = [['used by others', 'var(--text-3)'], ['used by the group', 'var(--ok)'], ['wanted by those that wait', 'var(--warn)'], ['free', 'var(--surface-3)']];

// ---- what there is to know of a group -------------------------------------------------------------------------

// Whether the server has groups at all: its gate is off by default, and discovery is asked once a visit.
async function served() {
  const versions = ((await fetchJSON('/apis')).groups || []).find((g) => g.name === 'scheduling.k8s.io')?.versions || [];
  for (const v of versions) {
    const list = await fetchJSON(`/apis/${v.groupVersion}`);
    if ((list.resources || []).some((r) => r.name === 'podgroups')) return `${API}/${v.version}`;
  }
  return '';
}
const notServed = () => empty(
    'There are no pod groups here', 'The API server does not serve PodGroups: the feature gate GenericWorkload is off, as in every cluster by default.',
    h('code', {}, 'berth up --feature-gates GenericWorkload=true,GangScheduling=true --runtime-config scheduling.k8s.io/v1alpha2=true'));

const minOf = (o) => o.spec?.schedulingPolicy?.gang?.minCount || 0;
const keyOf = (o) => o.spec?.schedulingConstraints?.topology?.[0]?.key || '';
const condition = (o) => (o.status?.conditions || []).find((c) => /^PodGroup(Initially)?Scheduled$/.test(c.type));
const isOver = (p) => p.phase === 'Succeeded' || p.phase === 'Failed';

// Members of all groups by the group's key.
function membersByGroup() {
  const by = new Map();
  for (const p of rows('pods').values()) {
    if (!p.group || isOver(p)) continue;
    const key = `${p.namespace}/${p.group}`;
    if (!by.has(key)) by.set(key, []);
    by.get(key).push(p);
  }
  return by;
}

// [word, tone, why] of a group with these members.
function stateOf(o, members) {
  const c = condition(o), min = minOf(o);
  if (o.metadata.deletionTimestamp) return ['Terminating', 'warn', 'It stays as long as it has pods.'];
  if (c && c.status === 'True') return ['Scheduled', 'ok', ''];
  if (members.length < min) return ['Incomplete', 'warn', `${min - members.length} of ${plural(min, 'pod')} are not there yet`];
  if (c) return [c.reason, 'bad', c.message];
  return ['Pending', 'info', members.length ? 'it has not been tried yet' : 'it has no pods'];
}

const domainsOf = (members, key) => [...new Set(members.filter((p) => p.node).map((p) => (rows('nodes').get(p.node)?.labels || {})[key]).filter(Boolean))].sort(compareNames);

// A row of the list; a new object when something of it changed.
function rowOf(g, members) {
  const o = g.object, min = minOf(o), there = members.filter((p) => p.node).length, key = keyOf(o), [state, tone, why] = stateOf(o, members);
  return {
    key: g.key, namespace: g.namespace, name: g.name, labels: g.labels, created: g.created, policy: min ? 'Gang' : 'Basic', min, members: members.length, there,
    state, tone, why, topology: key, where: domainsOf(members, key || HOST)
  };
}
const wanted = (r) => r.min || r.members;
const places = (r) => (r.topology ? `${r.topology}${r.where.length ? `: ${r.where.join(', ')}` : ''}` : r.where.length ? plural(r.where.length, 'node') : '');
const groupHref = (ns, name) => to('groups', ns, name);

// ---- the list -----------------------------------------------------------------------------------------------

const columns = [
  {id: 'group', title: 'Group', width: 'minmax(160px,1.4fr)', text: (r) => `${r.namespace}/${r.name}`, cell: (r) => h('a', {href: groupHref(r.namespace, r.name), tabindex: '-1'}, `${r.namespace}/${r.name}`)},
  {id: 'state', title: 'State', width: '124px', text: (r) => r.state, cell: (r) => tag(r.state, r.tone)},
  {id: 'policy', title: 'Policy', width: '80px', text: (r) => r.policy},
  {id: 'scheduled', title: 'Scheduled', width: '104px', align: 'right', text: (r) => `${r.there} of ${wanted(r)}`, sort: (r) => (wanted(r) ? r.there / wanted(r) : 1)},
  {id: 'members', title: 'Members', width: '90px', align: 'right', text: (r) => r.members, sort: (r) => r.members},
  {id: 'where', title: 'Placement', width: 'minmax(120px,1fr)', text: places},
  {id: 'age', title: 'Age', width: '72px', align: 'right', live: true, text: (r) => fmt.age(r.created), sort: (r) => Date.parse(r.created)},
  {id: 'why', title: 'Why it waits', width: 'minmax(160px,2fr)', text: (r) => r.why},
];

function mountList(el, query) {
  const table = new Table({
    columns, name: 'groups', labels: (r) => r.labels, sort: {id: 'state', dir: 'desc'}, query: query.q || '', onQuery: (q) => setQuery({q: q || null}),
    href: (r) => groupHref(r.namespace, r.name), onOpen: (r) => navigate(groupHref(r.namespace, r.name)),
    emptyNode: empty('No pod group', 'A PodGroup of scheduling.k8s.io makes pods go together: all that it needs, or none.')
  });
  const box = panel(null, {flush: true, class: 'grow'}, table.el);
  box.firstChild.classList.add('q-fill');
  replace(el, box);
  const draw = () => {
    const by = membersByGroup();
    table.setRows([...rows(KIND).values()].map((g) => rowOf(g, by.get(g.key) || [])));
  };
  return [subscribe(KIND, draw), subscribe('pods', draw), subscribe('nodes', draw)];
}

// ---- one group: where it is, and where room is -----------------------------------------------------------------

// What boxes are made of, for one resource: {name, nodes, allocatable, used, own, members, answer}.
function domains(members, key, resource, answer) {
  const out = new Map(), told = new Map((answer?.placements || []).map((p) => [p.name, p]));
  for (const n of rows('nodes').values()) {
    const name = n.labels?.[key];
    if (!name) continue;
    if (!out.has(name)) out.set(name, {name, nodes: 0, out: 0, allocatable: 0, used: 0, own: 0, members: 0, told: told.get(name)});
    const d = out.get(name);
    d.nodes++;
    d.out += nodeStatus(n)[0] === 'Ready' ? 0 : 1;
    d.allocatable += amount(n.allocatable || {}, resource);
    d.used += amount(n.requested || {}, resource);
  }
  for (const p of members) {
    const d = p.node && out.get(rows('nodes').get(p.node)?.labels?.[key]);
    if (!d) continue;
    d.members++;
    d.own += resource === 'pods' ? 1 : amount(p, resource);
  }
  return [...out.values()].sort((a, b) => b.members - a.members || compareNames(a.name, b.name));
}

const verdict = (d) => (!d.told ? null : d.told.fits ? tag(d.told.chosen ? 'chosen' : 'fits', 'ok') : tag(`room for ${d.told.placed}`, 'bad'));

function boxOf(d, resource, need) {
  const free = Math.max(0, d.allocatable - d.used), q = (v) => (resource === 'cpu' ? fmt.cpu(v) : fmt.quantity(resource, v)), others = Math.max(0, d.used - d.own);
  const wants = Math.min(need, free), parts = [[others, 0], [d.own, 1], [wants, 2]];
  return h(
      'li', {class: 'g-box', dataset: {domain: d.name}, title: d.told?.lack || null}, h('div', {class: 'row'}, h('b', {class: 'clip'}, d.name), h('span', {class: 'grow'}), verdict(d)),
      stackedBar(parts.map(([value, i]) => ({value, colour: PARTS[i][1], title: `${PARTS[i][0]}: ${q(value)}`})), {max: d.allocatable || 1, height: 14}),
      h('small', {class: need > free ? 'bad' : ''}, `${q(free)} of ${q(d.allocatable)} free${need ? `, ${q(need)} needed` : ''}`),
      h('small', {class: 'muted'}, `${plural(d.nodes, 'node')}${d.out ? ` (${d.out} closed)` : ''}${d.members ? `, ${plural(d.members, 'member')} here` : ''}`));
}

// Labels that nodes share, the group's own first, the name of the host last.
function keys(own) {
  const seen = new Set();
  for (const n of rows('nodes').values()) for (const k of Object.keys(n.labels || {})) seen.add(k);
  seen.delete(HOST);
  return [...new Set([...(own ? [own] : []), ...[...seen].sort(), HOST])];
}

class Group {
  constructor(el, ns, name, query) {
    this.ns = ns;
    this.name = name;
    this.by = query.by || '';
    this.resource = query.resource || 'cpu';
    this.head = h('div');
    this.whyBox = h('div');
    this.boxes = h('ol', {class: 'g-boxes'});
    this.more = h('p', {class: 'muted'});
    const pick = (label, set) => h('select', {'aria-label': label, onchange: (e) => { set(e.target.value); this.map(); }});
    this.bySelect = pick('Topology key', (v) => { this.by = v; setQuery({by: v}); });
    this.resSelect = pick('Resource', (v) => { this.resource = v; setQuery({resource: v === 'cpu' ? null : v}); });
    this.table = new Table({
      name: 'members', fixedHeight: 12, sort: {id: 'pod', dir: 'asc'}, emptyText: 'It has no pods.', onOpen: (p) => navigate(to('pods', p.namespace, p.name)),
      columns: [
        {id: 'pod', title: 'Pod', width: 'minmax(140px,1.2fr)', text: (p) => p.name, cell: (p) => podRef(p.namespace, p.name)},
        {id: 'status', title: 'Status', width: '124px', text: (p) => podStatus(p)[0], cell: (p) => tag(...podStatus(p))},
        {id: 'node', title: 'Node', width: 'minmax(100px,1fr)', text: (p) => p.node || p.nominated || '', cell: (p) => (p.node ? linkTo(p.node, 'nodes', p.node) : p.nominated ? `promised: ${p.nominated}` : '')},
        {id: 'tried', title: 'Tried now', width: '110px', text: (p) => this.said(p)?.state || ''},
        {id: 'message', title: 'Message', width: 'minmax(160px,2.4fr)', text: (p) => (p.node ? '' : this.said(p)?.message || p.message || ''), cell: (p) => (p.node ? '' : reasonsOf(this.said(p)?.message || p.message))},
      ]
    });
    replace(el, this.head, h('div', {class: 'grid two'}, this.whyBox, panel('Placement map', {tools: [this.bySelect, this.resSelect]}, legend(PARTS), this.boxes, this.more)),
            panel('Members', {flush: true}, this.table.el));
    replace(this.whyBox, panel('Why it waits', {}, spinner('Trying the group')));
  }
  said(p) { return this.answer?.pods?.find((x) => x.name === p.name); }

  draw() {
    const g = rows(KIND).get(`${this.ns}/${this.name}`), members = membersByGroup().get(`${this.ns}/${this.name}`) || [];
    if (!g) return this.none();
    const r = rowOf(g, members), waiting = members.filter((p) => !p.node).length, shape = JSON.stringify([r.state, r.why, members.length, r.there, rows('nodes').size]);
    this.own = r.topology;
    this.members = members;
    replace(this.head, panel(null, {}, kv([
      ['State', [tag(r.state, r.tone), ' ', r.why]], ['Policy', r.min ? `Gang: ${plural(r.min, 'pod')} or none` : 'Basic: each as it fits'],
      ['Members', `${count(r.there)} of ${count(wanted(r))} scheduled, ${count(waiting)} waiting, ${count(members.length)} known`],
      ['Topology', r.topology ? `all in one ${r.topology}` : 'anywhere'], ['Placement', r.where.length ? places(r) : ''], ['Age', fmt.age(r.created)],
      ['Object', linkTo('PodGroup as YAML', 'kind', KIND, this.ns, this.name)]
    ])));
    this.table.setRows(members.map((p) => ({...p})));
    this.map();
    if (shape !== this.shape) {
      this.shape = shape;
      clearTimeout(this.soon);
      this.soon = setTimeout(() => this.explain(waiting), 400);
    }
  }
  none() {
    if (this.synced) replace(this.head, empty(`There is no group ${this.ns}/${this.name}`, 'It may have been deleted.', linkTo('All groups', 'groups')));
    this.whyBox.hidden = !!this.synced;
  }

  map() {
    const all = keys(this.own), res = [...new Set([...rows('nodes').values()].flatMap(resourceNames))], waiting = (this.members || []).filter((p) => !p.node);
    if (!all.includes(this.by)) this.by = this.own || all.find((k) => /zone$/.test(k)) || HOST;
    if (!res.includes(this.resource)) this.resource = 'cpu';
    replace(this.bySelect, all.map((k) => h('option', {value: k}, k === this.own ? `${k} (the group's)` : k)));
    replace(this.resSelect, res.map((k) => h('option', {value: k}, k)));
    this.bySelect.value = this.by;
    this.resSelect.value = this.resource;
    const need = waiting.reduce((s, p) => s + (this.resource === 'pods' ? 1 : amount(p, this.resource)), 0);
    const list = domains(this.members || [], this.by, this.resource, this.by === this.own ? this.answer : null);
    replace(this.boxes, list.slice(0, BOXES).map((d) => boxOf(d, this.resource, need)));
    this.more.textContent = !list.length ? 'No node has this label.' : list.length > BOXES ? `${count(list.length - BOXES)} more are not shown` : '';
  }

  async explain(waiting) {
    const turn = (this.turn = (this.turn || 0) + 1), still = () => !this.gone && turn === this.turn;
    if (!waiting) {
      this.answer = null;
      replace(this.whyBox, panel('Why it waits', {}, h('p', {class: 'muted'}, 'No pod of it waits for a node.')));
      return;
    }
    try {
      const got = await ask('POST', '/berth/v1/podgroup', {namespace: this.ns, name: this.name, fixes: true});
      if (!still()) return;
      this.answer = got;
      replace(this.whyBox, panel('Why it waits', {tools: h('button', {type: 'button', onclick: () => this.explain(waiting)}, 'Ask again')}, whyOf(got)));
      this.draw();
    } catch (err) {
      if (still()) replace(this.whyBox, panel('Why it waits', {}, failure(err, () => this.explain(waiting))));
    }
  }
}

// ---- one group: why it waits, and what would help ---------------------------------------------------------------

function whyOf(got) {
  const fixes = got.fixes?.fixes || [], good = fixes.filter((x) => x.fits), tried = got.placements || [];
  const all = got.members.waiting, room = tried.length ? Math.max(...tried.map((p) => p.placed)) : (got.pods || []).filter((p) => p.node && !/^on its/.test(p.state)).length;
  const word = {Fits: 'It fits: the scheduler will place it at its next attempt.', Preempts: 'It fits when its victims are gone.', Gated: 'It is not complete, or held back by a gate.'}[got.result];
  return [
    h('p', {class: 'q-headline'}, word || `${room} of ${plural(all, 'member')} that wait have room${tried.length ? ` in one ${got.group.topologyKey}` : ''}.`), got.message ? h('p', {class: 'muted'}, got.message) : null,
    got.fixes ? [h('h3', {}, `What would make all of it fit? ${count(good.length)} of ${plural(got.fixes.tried, 'change')} that were tried`), h('ol', {class: 'q-ideas'}, fixes.map(idea))] : null,
    got.fixes && !fixes.length ? note('info', 'No change comes to mind.') : null
  ];
}

function idea(x) {
  const commands = (x.commands || []).join('\n'), text = h('pre', { tabindex: '0' }, commands);
  const copy = () => { getSelection().selectAllChildren(text); if (document.execCommand('copy')) toast('Copied.', 'ok'); };
  return h(
      'li', {}, h('span', {class: `q-sign ${x.fits ? (/evicting/.test(x.outcome) ? 'warn' : 'ok') : 'faint'}`}, x.fits ? '✓' : '✕'),
      h('div', {}, x.text, h('small', {}, x.outcome),
        commands && x.fits ? h('details', {}, h('summary', {}, 'as commands'), x.note ? h('p', {class: 'muted'}, x.note) : null, text, h('button', {type: 'button', onclick: copy}, 'Copy')) : null));
}

function mountGroup(el, ns, name, query) {
  const g = new Group(el, ns, name, query), draw = (s) => { g.synced = g.synced || (s.synced && s.rows === rows(KIND)); g.draw(); };
  setTitle(name, h('a', {href: to('groups')}, 'Pod groups'), ns);
  return [subscribe(KIND, draw), subscribe('pods', draw), subscribe('nodes', draw), () => { g.gone = true; clearTimeout(g.soon); }];
}

registerScreen('groups', {
  title: 'Pod groups', nav: {group: 'Decisions', order: 35},
  mount(el, route) {
    let stops = [], gone = false;
    const one = route.params.length === 2;
    if (!one) el.classList.add('fill');
    replace(el, spinner('Looking for groups'));
    served().then((api) => {
      if (gone) return;
      if (!api) replace(el, notServed());
      else stops = one ? mountGroup(el, route.params[0], route.params[1], route.query) : mountList(el, route.query);
    }, (err) => !gone && replace(el, failure(err, () => navigate(location.hash))));
    return () => { gone = true; for (const stop of stops) stop(); };
  },
});
