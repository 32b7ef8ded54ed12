// SPDX-License-Identifier: Apache-2.0
//
// overview.js - is the cluster well, what waits and why, where is room; for an empty cluster: how to begin
import {kindByName, objectPath, podStatus} from './kinds.js';
import {
  colour, dialog, errorNote, fetchJSON, fmt, h, icon, lineChart, linkTo, panel, plainTable, plural, registerScreen,
  replace, sequential, spinner, stackedBar, tag, to, toast
} from './lib.js';
import {forAll} from './resources.js';
import {isUnserved, learnProfiles, unservedReason} from './schedulers.js';
import {rows, subscribe, synced} from './store.js';
import {exampleCluster, NODE, numbered} from './templates.js';
import {importText} from './transfer.js';

registerScreen('overview', {
  title: 'Overview',
  key: 'o',
  nav: {group: 'Cluster', order: 1},
  mount(el) {
    const o = new Overview(el);
    return () => o.leave();
  },
});

class Overview {
  constructor(el) {
    this.el = el;
    this.points = [];
    this.tiles = h('div', {class: 'tiles'});
    this.start = h('div', {hidden: true});
    this.bars = h('div', {class: 'col', style: {gap: '9px'}}, spinner());
    this.reasons = h('div', {}, spinner());
    this.waiting = h('div', {}, spinner());
    const times = (t) => fmt.time(t);
    this.chart = lineChart({
      series: [],
      height: 170,
      yMax: 1,
      yStep: 0.25,
      yText: fmt.percent,
      xText: times,
      label: 'Requested share of CPU and memory over time'
    });
    this.pods = lineChart({
      series: [],
      height: 130,
      yText: (v) => fmt.count(Math.round(v * 100) / 100),
      xText: times,
      label: 'Pods and pending pods over time'
    });
    const plot = (title, items, chart) => panel(
        title,
        {tools: h('div', {class: 'legend'}, items.map(([t, c]) => h('span', {}, h('i', {style: {background: c}}), t)))},
        chart);
    el.append(
        this.start, this.tiles,
        h('div', {class: 'grid two overviewgrid'},
          h('div', {class: 'col'}, panel('Requested of allocatable', {tools: linkTo('Cluster map', 'map')}, this.bars),
            plot('Requested share over time', [['CPU', colour(0)], ['Memory', colour(1)]], this.chart)),
          h('div', {class: 'col'},
            panel(
                'Why pods wait', {tools: linkTo('Pending pods', 'pods', {q: 'status:Unschedulable'}), flush: true},
                this.reasons),
            panel('Waiting longest', {flush: true, tools: linkTo('Queue', 'queue')}, this.waiting),
            plot('Pods over time', [['Pods', colour(2)], ['Pending', colour(5)]], this.pods))));
    this.drawTiles(null);
    this.poll();
    this.timer = setInterval(() => {
      if (!document.hidden) this.poll();
    }, 2000);
    this.stops = [subscribe('pods', () => this.pendingLater()), subscribe('nodes', () => this.emptyOrNot())];
  }
  leave() {
    clearInterval(this.timer);
    clearTimeout(this.later);
    this.stops.forEach((f) => f());
    this.dead = true;
  }

  async poll() {
    if (this.polling) return;
    this.polling = true;
    try {
      const o = await fetchJSON('/berth/v1/overview', {timeout: 8000});
      if (this.dead) return;
      learnProfiles(o);
      this.drawTiles(o);
      this.drawBars(o.resources || []);
      this.drawReasons([...unserved(), ...(o.pendingReasons || [])]);
      const since = this.points.length ? this.points[this.points.length - 1].time : '';
      const u = await fetchJSON(`/berth/v1/utilisation${since ? `?since=${encodeURIComponent(since)}` : ''}`, {
                  timeout: 8000
                }).catch(() => null);
      if (u && !this.dead) this.drawCharts(u.points || []);
    } catch (e) {
      if (!this.dead && !this.points.length && e.status !== 0) replace(this.bars, errorNote(e));
    } finally { this.polling = false; }
  }

  drawTiles(o) {
    const n = o ? o.nodes : {}, p = o ? o.pods : {}, s = o ? o.scheduler : {}, rec = o ? o.recording || {} : {};
    const tile = (name, value, sub, href, tone) =>
        h('a', {class: 'tile', href}, h('span', {class: 'name'}, name),
          h('span', {class: `value ${tone || ''}`}, value ?? ''), h('span', {class: 'sub'}, sub || ''));
    const first = document.activeElement && this.tiles.contains(document.activeElement)
        ? [...this.tiles.children].indexOf(document.activeElement)
        : -1;
    const notReady = o ? n.total - n.ready : 0,
          state = !o ? ['', '']
        : !s.running ? ['Not running', 'bad']
        : s.deciding ? ['Deciding', '']
                     : ['Stand-by', 'warn'];
    const many = (k, word) => (o && k ? `${fmt.count(k)} ${word}` : '');
    const both = (...texts) => texts.filter(Boolean).join(', ');
    const recorded = o && rec.mode && rec.mode !== 'off';
    const waiting = !o ? '' : p.gated ? many(p.gated, 'gated') : p.pending ? 'waiting for a node' : 'nothing waits';
    const nodes = o ? both(many(notReady, 'not ready') || 'all ready', many(n.unschedulable, 'cordoned')) : '';
    replace(
        this.tiles, tile('Nodes', fmt.count(n.total), nodes, to('nodes'), notReady ? 'warn' : ''),
        tile('Pods', fmt.count(p.total), both(many(p.running, 'running'), many(p.succeeded, 'done')), to('pods')),
        tile(
            'Scheduled', fmt.count(p.scheduled), p.total ? `${fmt.percent(p.scheduled / p.total)} of all` : '',
            to('pods')),
        tile(
            'Pending', fmt.count(p.pending), waiting, to('pods', {q: 'status:Unschedulable'}), p.pending ? 'warn' : ''),
        tile(
            'Failed', fmt.count(p.failed), many(p.terminating, 'terminating'), to('pods', {q: 'status:Failed'}),
            p.failed ? 'bad' : ''),
        tile(
            'Scheduler', state[0],
            s.trouble ||
                (recorded ? many(rec.records, {auto: 'decisions recorded', full: 'decisions recorded in full', summary: 'decisions recorded as summaries'}[rec.mode])
                     : o  ? 'not recording decisions'
                          : ''),
            to('config'), state[1]));
    if (first >= 0) this.tiles.children[first]?.focus();
  }
  drawBars(list) {
    if (!list.length || !list.some((r) => r.allocatable)) {
      replace(this.bars, h('div', {class: 'faint'}, 'No node offers anything yet.'));
      return;
    }
    replace(this.bars, list.map((r) => {
      const q = (x) => fmt.quantity(r.name, x), x = r.allocatable ? r.requested / r.allocatable : 0;
      return h(
          'a', {class: 'resourceline', href: to('map', {resource: r.name === 'cpu' ? null : r.name})},
          h('span', {class: 'clip', title: r.name}, r.name),
          stackedBar(
              [{
                value: Math.min(r.requested, r.allocatable),
                colour: sequential(0.3 + 0.6 * Math.min(1, x)),
                title: `${q(r.requested)} requested`
              }],
              {max: r.allocatable || 1, height: 12, label: `${r.name} ${fmt.percent(x)}`}),
          h('b', {class: 'num right'}, fmt.percent(x)),
          h('span', {class: 'num right muted'}, `${q(r.requested)} of ${q(r.allocatable)}`));
    }));
  }
  drawReasons(list) {
    if (!list.length) {
      replace(this.reasons, h('div', {class: 'empty'}, 'No pod has been refused.'));
      return;
    }
    const most = Math.max(...list.map((r) => r.count));
    replace(
        this.reasons,
        h('div', {class: 'reasons'},
          list.slice(0, 12).map(
              (r) =>
                  h('a', {
                    href: to('pods', {q: r.q || `status:Unschedulable message:"${r.reason.replace(/"/g, '')}"`}),
                    title: r.reason
                  },
                    h('i', {style: {width: `calc((100% - 24px) * ${r.count / most})`}}), h('span', {class: 'clip'}, r.reason),
                    h('b', {class: 'num'}, fmt.count(r.count)))),
          list.length > 12 ? h('div', {class: 'faint', style: {padding: '4px 12px'}},
                               `and ${plural(list.length - 12, 'reason')} more`)
                           : null));
  }
  pendingLater() {
    if (!this.later)
      this.later = setTimeout(() => {
        this.later = 0;
        this.drawWaiting();
      }, this.shownOnce ? 1000 : 30);
  }
  drawWaiting() {
    if (this.dead || !synced('pods')) return;
    this.shownOnce = true;
    const list = [];
    for (const p of rows('pods').values())
      if (!p.node && p.phase === 'Pending' && !p.deleting) list.push(p);
    list.sort((a, b) => (a.created < b.created ? -1 : 1));
    replace(
        this.waiting,
        list.length ? plainTable(
                          [
                            {title: 'Pod', cell: (p) => linkTo(p.key, 'pods', p.namespace, p.name)},
                            {title: 'Status', cell: (p) => tag(...podStatus(p))},
                            {title: 'Since', align: 'right', cell: (p) => fmt.age(p.created)},
                            {title: '', cell: (p) => linkTo('Why?', 'decisions', 'pod', p.namespace, p.name)}
                          ],
                          list.slice(0, 8))
                    : h('div', {class: 'empty'}, 'Every pod has a node.'));
  }
  drawCharts(points) {
    const last = this.points.length ? this.points[this.points.length - 1].time : '';
    this.points.push(...points.filter((p) => p.time > last));
    if (this.points.length > 3600) this.points.splice(0, this.points.length - 3600);
    // A plot has no more points than it has room for.
    const step = Math.max(1, Math.ceil(this.points.length / 600)),
          use = this.points.filter((_, i) => i % step === 0 || i === this.points.length - 1),
          line = (k) => use.map((p) => [Date.parse(p.time), p[k] || 0]);
    this.chart.set({
      series: [
        {name: 'CPU', colour: colour(0), points: line('cpu')},
        {name: 'Memory', colour: colour(1), points: line('memory')}
      ]
    });
    this.pods.set({
      series: [
        {name: 'Pods', colour: colour(2), points: line('pods')},
        {name: 'Pending', colour: colour(5), points: line('pending')}
      ]
    });
  }

  emptyOrNot() {
    const none = synced('nodes') && rows('nodes').size === 0;
    this.start.hidden = !none;
    if (none && !this.start.firstChild) this.start.append(beginnings());
  }
}

// Pods that no scheduler here serves, as reasons beside those of the scheduler.
function unserved() {
  const by = new Map();
  for (const p of rows('pods').values())
    if (isUnserved(p)) by.set(p.scheduler, (by.get(p.scheduler) || 0) + 1);
  return [...by].map(([name, count]) => ({reason: unservedReason(name), count, q: `status:"No scheduler" message:${name}`}));
}

// ---- an empty cluster --------------------------------------------------------------------------------------

function beginnings() {
  const choice = (name, title, text, action, f) =>
      h('div', {class: 'panel choice'}, icon(name), h('h3', {}, title), h('p', {class: 'muted'}, text),
        h('button', {type: 'button', onclick: f}, action));
  return h(
      'section', {'aria-label': 'How to begin'},
      h('h2', {class: 'starthead'}, 'This cluster has no nodes. How do you want to begin?'),
      h('div', {class: 'grid three'},
        choice(
            'map', 'Nodes from a template', 'As many as you like, spread over zones, with the size you give them.',
            'Make nodes', nodesDialog),
        choice(
            'deployments', 'An example',
            'Six nodes in three zones and two Deployments, one of which does not fit: something to ask questions about.',
            'Load the example',
            async () => {
              await importText(exampleCluster(), 'merge');
            }),
        choice(
            'upload', 'A cluster of yours',
            'The output of kubectl get -o yaml, manifests, or a file that was exported here.', 'Import a file', () => {
              location.hash = to('transfer');
            })));
}

export async function nodesDialog() {
  const field = (label, el) => h('div', {class: 'field'}, h('label', {'for': el.id}, label), el);
  const input = (id, value, more) => h('input', {id: `nodes-${id}`, value, ...more});
  const f = {
    count: input('count', 10, {type: 'number', min: 1, max: 20000}),
    name: input('name', 'node-{n}'),
    zones: input('zones', 3, {type: 'number', min: 1, max: 100}),
    cpu: input('cpu', '8'),
    memory: input('memory', '32Gi'),
    pods: input('pods', 110, {type: 'number', min: 1, max: 10000}),
    gpu: input('gpu', 0, {type: 'number', min: 0, max: 64})
  };
  const from = largest() + 1;
  const sure = await dialog({
    title: 'Make nodes',
    focus: f.count,
    body:
        h('div', {class: 'grid two'}, field('How many', f.count), field('Names ({n} is the number)', f.name),
          field('Zones', f.zones), field('CPU of each', f.cpu), field('Memory of each', f.memory),
          field('Pods at most', f.pods), field('GPUs of each (nvidia.com/gpu)', f.gpu)),
    buttons: [
      {text: 'Cancel'}, {
        text: 'Make them',
        kind: 'primary',
        value: true,
        action: () => {
          if (!f.name.value.includes('{n}') && Number(f.count.value) > 1) {
            toast('The name needs {n}, so that each node has its own.', 'warn');
            return false;
          }
          return true;
        }
      }
    ]
  });
  if (!sure) return;
  const text = NODE({
    name: f.name.value,
    zone: `zone-{n%${Math.max(1, Math.floor(Number(f.zones.value)) || 1)}}`,
    cpu: f.cpu.value,
    memory: f.memory.value,
    pods: f.pods.value,
    extended: Number(f.gpu.value) > 0 ? [`nvidia.com/gpu: "${Number(f.gpu.value)}"`] : []
  });
  const n = Math.max(1, Math.min(20000, Math.floor(Number(f.count.value)) || 1)), k = kindByName('nodes');
  const errors = await forAll(
      Array.from({length: n}, (_, i) => from + i), `Making ${plural(n, 'node')}`,
      (i) => fetchJSON(objectPath(k, ''), {method: 'POST', type: 'application/yaml', body: numbered(text, i)}),
      (i) => numbered(f.name.value, i));
  if (errors.length < n) toast(`${plural(n - errors.length, 'node')} made.`, 'ok');
}
function largest() {
  let m = 0;
  for (const n of rows('nodes').values()) {
    const d = /(\d+)$/.exec(n.name);
    if (d) m = Math.max(m, Number(d[1]));
  }
  return m;
}
