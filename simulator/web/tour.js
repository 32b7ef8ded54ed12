// SPDX-License-Identifier: Apache-2.0
//
// tour.js - #/tour and the guide above the screens: three small clusters, step by step, each step a real object
//
// The objects of a chapter carry the label berth.dev/tour and are made in the server that the page talks to; pods go to
// the chapter's own nodes, so that it works beside whatever else is there. A step that was skipped is made up for when
// a later one needs it. Where the tour stands is kept for the tab.

import { fetchJSON, h, icon, navigate, note, panel, plural, registerScreen, replace, tag, to, toast } from './lib.js';
import { rows, subscribe, synced } from './store.js';
import { toYaml } from './edits.js';
import { podDecisionsHref, whatifHref } from './parts.js';

const LABEL = 'berth.dev/tour', ZONE = 'topology.kubernetes.io/zone', NS = '/api/v1/namespaces/default';
const PATHS = { Node: '/api/v1/nodes', Pod: `${NS}/pods`, Deployment: '/apis/apps/v1/namespaces/default/deployments', PriorityClass: '/apis/scheduling.k8s.io/v1/priorityclasses' };
const GONE = ['Deployment', 'Pod', 'Node', 'PriorityClass']; // in this order: nobody makes them anew
const REPLICA_SETS = '/apis/apps/v1/namespaces/default/replicasets';

// ---- objects -------------------------------------------------------------------------------------

const node = (of, name, cpu, zone) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { [LABEL]: of, 'kubernetes.io/hostname': name, ...(zone ? { [ZONE]: zone } : {}) } },
  status: { capacity: { cpu, memory: '16Gi', pods: '110' }, allocatable: { cpu, memory: '16Gi', pods: '110' } } });
const spec = (of, cpu, more) => ({ nodeSelector: { [LABEL]: of }, terminationGracePeriodSeconds: 1, ...more, containers: [{ name: 'main', image: 'registry.example/app', resources: { requests: { cpu, memory: '256Mi' } } }] });
const pod = (of, name, cpu, more) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default', labels: { [LABEL]: of } }, spec: spec(of, cpu, more) });
const deployment = (of, name, replicas, cpu, more) => ({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'default', labels: { [LABEL]: of } },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name, [LABEL]: of } }, spec: spec(of, cpu, more) } } });
const cordon = (names, on) => names.map((n) => ({ path: `${PATHS.Node}/${n}`, body: { spec: { unschedulable: on || null } }, as: `kubectl ${on ? 'cordon' : 'uncordon'} ${n}` }));

// ---- what is there -------------------------------------------------------------------------------

const ours = (kind, of) => [...rows(kind).values()].filter((x) => (x.labels || {})[LABEL] && (!of || x.labels[LABEL] === of));
const podOf = (name) => rows('pods').get(`default/${name}`);
const waiting = (of) => ours('pods', of).find((p) => !p.node && p.reason === 'Unschedulable');
const placed = (of) => ours('pods', of).filter((p) => p.node && !p.deleting).length;
const said = (p) => (p && p.message ? ['The scheduler says: ', h('q', {}, p.message)] : null);
const at = (p) => (p && p.node ? [h('b', {}, p.name), ' runs on ', h('b', {}, p.node), '.'] : null);
function byZone(of) {
  const n = new Map();
  for (const p of ours('pods', of)) {
    const zone = p.node ? (rows('nodes').get(p.node) || {}).zone || p.node : 'waiting';
    n.set(zone, (n.get(zone) || 0) + 1);
  }
  return [...n].sort().map(([zone, count]) => tag(`${zone}: ${count}`, zone === 'waiting' ? 'warn' : 'info'));
}

// ---- the chapters --------------------------------------------------------------------------------
// A step: title, text, go: the screen it is seen on; make: objects to create, change: merge patches; done(): it came about;
// live(): what is to be seen meanwhile. A step without make and change is for looking.

const SPREAD = { topologySpreadConstraints: [{ maxSkew: 1, topologyKey: ZONE, whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app: 'tour-web' } } }] };
const CHAPTERS = [
  { id: 'waiting', title: 'A pod that waits', text: 'A pod asks for more than any node has. Why it waits, what would help, and what happens when it does.', steps: [
    { title: 'Three small nodes', text: 'The cluster of this chapter: three nodes of four cpus each. Every cell of the map is a node, its colour what is taken of it.', go: () => to('map', { resource: 'cpu' }),
      make: [1, 2, 3].map((i) => node('waiting', `tour-small-${i}`, '4')), done: () => ours('nodes', 'waiting').length >= 3, live: () => `${plural(ours('nodes', 'waiting').length, 'node')} of the tour` },
    { title: 'A pod that asks for six cpus', text: 'No node has six cpus, so it stays Pending. The condition PodScheduled has the scheduler’s message, the same one that kubectl describe shows.', go: () => to('pods', 'default', 'tour-big'),
      make: [pod('waiting', 'tour-big', '6')], done: () => podOf('tour-big')?.reason === 'Unschedulable' || podOf('tour-big')?.node, live: () => said(podOf('tour-big')) },
    { title: 'Why does it wait?', text: 'The decision, step by step: all nodes go in, every filter takes some out, none is left. Each reason can be opened to see its nodes; below, ask “why not that node?” for any of them.', go: () => podDecisionsHref('default', 'tour-big') },
    { title: 'What would make it fit?', text: 'Changes are tried on paper, with the same engine and the cluster of this moment: less cpu, a larger node, both together. What helps has a ✓ and can be applied. Nothing changes by asking.', go: () => whatifHref('default', 'tour-big') },
    { title: 'The fix: a larger node', text: 'A node with eight cpus comes. The scheduler knows what the pod waits for, so this event wakes it; nobody has to try again. The history above the decision now has both attempts, and what came between them.', go: () => podDecisionsHref('default', 'tour-big'),
      make: [node('waiting', 'tour-large', '8')], done: () => !!podOf('tour-big')?.node, live: () => at(podOf('tour-big')) },
  ] },
  { id: 'spread', title: 'Spread over zones', text: 'Replicas stay even over three zones, also when one of them closes. What that costs, and the way out.', steps: [
    { title: 'Six nodes in three zones', text: 'Two nodes in each zone; the map groups them by the label topology.kubernetes.io/zone.', go: () => to('map', { resource: 'pods' }),
      make: [1, 2, 3, 4, 5, 6].map((i) => node('spread', `tour-zone-${'abc'[(i - 1) >> 1]}${1 + ((i - 1) & 1)}`, '4', `zone-${'abc'[(i - 1) >> 1]}`)), done: () => ours('nodes', 'spread').length >= 6, live: () => `${plural(ours('nodes', 'spread').length, 'node')} of the tour` },
    { title: 'Six replicas, at most one apart', text: 'The deployment’s pods have a topology spread constraint: no zone may have more than one pod more than another (maxSkew 1). So each zone gets two.', go: () => to('map', { resource: 'pods' }),
      make: [deployment('spread', 'tour-web', 6, '500m', SPREAD)], done: () => placed('spread') >= 6, live: () => byZone('spread') },
    { title: 'A zone closes, and more are wanted', text: 'Both nodes of zone c are cordoned, then the deployment grows to nine. There is room in a and b, yet the ninth pod waits: a fourth pod there would be two more than zone c has.', go: () => to('queue'),
      change: [...cordon(['tour-zone-c1', 'tour-zone-c2'], true), { path: `${PATHS.Deployment}/tour-web`, body: { spec: { replicas: 9 } }, as: 'kubectl scale deployment tour-web --replicas 9' }],
      done: () => placed('spread') >= 8 && !!waiting('spread'), live: () => byZone('spread') },
    { title: 'Why does the ninth wait?', text: 'Cordoned nodes were taken out by NodeUnschedulable, those of the other zones by PodTopologySpread: two reasons, and it is the second that room elsewhere does not help.', go: () => podDecisionsHref('default', (waiting('spread') || ours('pods', 'spread')[0] || { name: 'tour-web' }).name), live: () => said(waiting('spread')) },
    { title: 'The fix: the zone opens again', text: 'The nodes are uncordoned; the pod that waited goes to zone c, and all three have three.', go: () => to('map', { resource: 'pods' }),
      change: cordon(['tour-zone-c1', 'tour-zone-c2'], false), done: () => placed('spread') >= 9, live: () => byZone('spread') },
  ] },
  { id: 'preemption', title: 'Preemption', text: 'An important pod comes to a full cluster. Who gives way, and what becomes of them.', steps: [
    { title: 'Two nodes and a priority', text: 'Two nodes of four cpus, and a PriorityClass for what must run. Pods without a class have priority 0.', go: () => to('map', { resource: 'cpu' }),
      make: [node('preemption', 'tour-full-1', '4'), node('preemption', 'tour-full-2', '4'), { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'tour-important', labels: { [LABEL]: 'preemption' } }, value: 100000 }],
      done: () => ours('nodes', 'preemption').length >= 2, live: () => `${plural(ours('nodes', 'preemption').length, 'node')} of the tour` },
    { title: 'The cluster fills up', text: 'Four replicas of a batch job, two cpus each: nothing is left.', go: () => to('map', { resource: 'cpu' }),
      make: [deployment('preemption', 'tour-batch', 4, '2')], done: () => placed('preemption') >= 4, live: () => `${placed('preemption')} of 4 run` },
    { title: 'An important pod comes', text: 'It fits nowhere. The scheduler looks for the node where evicting pods of lower priority does the least harm, nominates the pod for it and evicts; when they are gone, the pod takes the room.', go: () => podDecisionsHref('default', 'tour-urgent'),
      make: [pod('preemption', 'tour-urgent', '2', { priorityClassName: 'tour-important' })], done: () => !!podOf('tour-urgent')?.node, live: () => at(podOf('tour-urgent')) },
    { title: 'Who gave way?', text: 'The deployment made a new pod for the one that went: it waits now, as the queue shows, for nothing that it may evict is left. Who went, and how many other choices there were, stands in the first attempt of tour-urgent, one screen back.', go: () => to('queue'), live: () => said(waiting('preemption')) },
    { title: 'The fix: a third node', text: 'With room for all, the pod that waited runs, too. Nobody is moved back.', go: () => to('map', { resource: 'cpu' }),
      make: [node('preemption', 'tour-full-3', '4')], done: () => placed('preemption') >= 5, live: () => `${placed('preemption')} of 5 run` },
  ] },
];

// ---- doing ---------------------------------------------------------------------------------------

const acts = (s) => !!(s.make || s.change);
async function carryOut(s) {
  for (const body of s.make || []) {
    await fetchJSON(PATHS[body.kind], { method: 'POST', body }).catch((err) => {
      if (err.status !== 409) throw err; // it is there already
    });
  }
  for (const { path, body } of s.change || []) await fetchJSON(path, { method: 'PATCH', type: 'application/merge-patch+json', body });
}

// Until f says so; false: the tour went on meanwhile.
function until(f, wanted) {
  return new Promise((resolve) => {
    const stops = [], look = () => {
      const over = !wanted();
      if (!over && !f()) return;
      for (const stop of stops) stop();
      resolve(!over);
    };
    for (const kind of ['pods', 'nodes']) stops.push(subscribe(kind, look));
  });
}

async function clear(wanted) {
  const all = async (path) => fetchJSON(`${path}?labelSelector=${LABEL}&gracePeriodSeconds=0`, { method: 'DELETE' });
  for (const kind of GONE) {
    await all(PATHS[kind]);
    if (kind === 'Deployment') await all(REPLICA_SETS);
  }
  return until(() => !ours('pods').length && !ours('nodes').length, wanted);
}

// ---- where the tour stands -----------------------------------------------------------------------

const kept = (() => { try { return JSON.parse(sessionStorage.getItem('berth-tour')) || {}; } catch { return {}; } })();
const tour = { chapter: kept.chapter || '', step: kept.step || 0, made: kept.made ?? -1, through: new Set(kept.through || []), turn: 0, busy: '' };
const chapter = () => CHAPTERS.find((c) => c.id === tour.chapter);
function remember() {
  try { sessionStorage.setItem('berth-tour', JSON.stringify({ ...tour, through: [...tour.through] })); } catch { /* private mode */ }
  draw();
}

// Runs f for the present turn of the tour: what was begun before loses.
async function inTurn(text, f) {
  const turn = ++tour.turn, wanted = () => turn === tour.turn;
  tour.busy = text;
  tour.trouble = '';
  draw();
  try {
    await f(wanted);
  } catch (err) {
    if (wanted()) tour.trouble = err.message;
  }
  if (!wanted()) return;
  tour.busy = '';
  remember();
}

function begin(id) {
  tour.chapter = id;
  tour.step = 0;
  tour.made = -1;
  remember();
  inTurn('What an earlier chapter made is taken away', async (wanted) => { if (await clear(wanted)) show(); });
}

// Has everything been done that the present step shows? A step that only looks needs the ones before it.
function isMade() {
  const { steps } = chapter();
  return tour.made >= steps.findLastIndex((s, i) => i <= tour.step && acts(s));
}
// A step may show a pod; after a reload the pods are not there at once.
async function show() {
  const turn = tour.turn, wanted = () => turn === tour.turn;
  if (synced('pods') || await until(() => synced('pods'), wanted)) navigate(chapter().steps[tour.step].go());
}

function step(i) {
  tour.step = i;
  tour.turn++; // whoever waits for the step that was left waits no longer
  tour.busy = tour.trouble = '';
  remember();
  if (isMade()) show();
}

// The steps before it, as far as they were skipped, then this one; each is waited for.
function act() {
  const { steps } = chapter(), upTo = tour.step;
  inTurn('Under way', async (wanted) => {
    for (let i = tour.made + 1; i <= upTo && wanted(); i++) {
      await carryOut(steps[i]);
      if (!(await until(steps[i].done || (() => true), wanted))) return;
      tour.made = i;
    }
    if (wanted()) show();
  });
}

function end(where) {
  tour.turn++;
  tour.chapter = '';
  tour.busy = '';
  remember();
  navigate(where);
}

function next() {
  const c = chapter();
  if (tour.step + 1 < c.steps.length) step(tour.step + 1);
  else {
    tour.through.add(c.id);
    end(to('tour'));
  }
}

// ---- the guide -----------------------------------------------------------------------------------

const dock = h('aside', { id: 'tour', 'aria-label': 'Guided tour', hidden: true });
const live = h('p', { class: 'tourlive', role: 'status' });

function whatItDoes(s) {
  const text = s.make ? s.make.map(toYaml).join('---\n') : s.change.map((c) => c.as).join('\n');
  return h('details', {}, h('summary', {}, s.make ? 'What is made, as YAML' : 'What is changed, as with kubectl'), h('pre', { tabindex: '0' }, text));
}

function draw() {
  const c = chapter();
  dock.hidden = !c;
  if (!c) return;
  const s = c.steps[tour.step], made = isMade(), last = tour.step + 1 === c.steps.length;
  const button = (text, f, o) => h('button', { type: 'button', onclick: f, ...o }, text);
  replace(
    dock, h('header', { class: 'row' }, h('span', { class: 'muted grow' }, `${c.title}: step ${tour.step + 1} of ${c.steps.length}`), button('Leave', () => end(to('tour')), { class: 'ghost', title: 'The objects stay until they are taken away on the tour’s page' })),
    h('h2', {}, s.title), h('p', {}, s.text), live, acts(s) ? whatItDoes(s) : null, tour.trouble ? note('bad', tour.trouble) : null,
    h('footer', { class: 'row wrap' }, button('Back', () => step(tour.step - 1), { disabled: !tour.step }),
      acts(s) || !made ? button(made ? '✓ Done' : tour.busy ? [h('span', { class: 'spin' }), `${tour.busy} …`] : s.make ? 'Make it' : s.change ? 'Change it' : 'Make what was skipped', act, { class: made ? '' : 'primary', disabled: made || !!tour.busy, dataset: { do: 'act' } }) : null,
      button(last ? 'End of the chapter' : made ? 'Next' : 'Skip', next, { class: made ? 'primary' : '', dataset: { do: 'next' } }),
      button('Show me', show, { class: 'ghost', disabled: !made }), button('Repeat the chapter', () => begin(c.id), { class: 'ghost' })));
  showLive();
}

function showLive() {
  const s = chapter()?.steps[tour.step];
  if (s) replace(live, (isMade() || tour.busy) && s.live ? s.live() : null);
}

// ---- the screen ----------------------------------------------------------------------------------

class TourScreen {
  constructor(place) {
    this.rest = h('div');
    this.cards = h('div', { class: 'grid three' });
    replace(place, h('div', { class: 'col' }, h('p', { class: 'muted' }, 'Three chapters on small clusters of their own. Each step makes real objects in this server and shows them on the screen where you would look; they can be skipped, left and repeated. Pods of the tour go to its own nodes only.'), this.cards, this.rest));
    this.stops = ['pods', 'nodes'].map((kind) => subscribe(kind, () => this.left()));
    replace(this.cards, CHAPTERS.map((c, i) => panel(`${i + 1}. ${c.title}`, { tools: tour.through.has(c.id) ? [tag('✓ seen', 'ok')] : [] }, h('div', { class: 'col' }, h('p', {}, c.text), h('div', {}, h('button', { type: 'button', class: 'primary', writes: true, dataset: { chapter: c.id }, onclick: () => begin(c.id) }, tour.through.has(c.id) ? 'Repeat' : 'Start'), h('span', { class: 'faint' }, `  ${plural(c.steps.length, 'step')}`))))));
  }

  left() {
    const n = ours('pods').length + ours('nodes').length;
    if (n === this.n) return;
    this.n = n;
    replace(this.rest, n ? h('div', { class: 'row wrap' }, h('span', {}, `${plural(n, 'pod or node', 'pods and nodes')} of the tour ${n === 1 ? 'is' : 'are'} in the cluster.`), h('button', { type: 'button', onclick: () => this.takeAway() }, icon('trash'), 'Take them away')) : null);
  }

  takeAway() {
    const turn = ++tour.turn;
    clear(() => turn === tour.turn).catch((err) => toast(err.message, 'bad'));
  }
}

registerScreen('tour', { title: 'Guided tour', nav: { group: 'Cluster', order: 90, label: 'Tour' },
  mount(el) { const s = new TourScreen(el); return () => s.stops.forEach((stop) => stop()); } });
document.getElementById('main').before(dock);
for (const kind of ['pods', 'nodes']) subscribe(kind, showLive);
draw();
