// SPDX-License-Identifier: Apache-2.0
//
// kinds.js - the kinds the page knows: where they are served, their columns
//
// KINDS: name (route, plural), kind, api ('/api/v1' or '/apis/GROUP/VERSION'), namespaced, watch (name on the change stream),
// columns, nav. A kind that is found by discovery gets the same shape from kindOfResource(). Rows of pods and nodes are
// those of docs/simulator-api.md, of all others {key, name, namespace, created, labels, object}.
import {fetchJSON, fmt, h, parseQuantity, reasonsOf, sequential, tag, to} from './lib.js';
import {isUnserved, unservedReason} from './schedulers.js';

const get = (o, path) => path.split('.').reduce((x, k) => (x === null || x === undefined ? undefined : x[k]), o);
const col = (id, title, path, more = {}) => ({
  id,
  title,
  text: (r) => {
    const v = typeof path === 'function' ? path(r) : get(r.object, path);
    return v === undefined || v === null ? '' : typeof v === 'object' ? JSON.stringify(v) : v;
  },
  ...more
});

const nameCol = {
  id: 'name',
  title: 'Name',
  width: 'minmax(160px,2.2fr)',
  text: (r) => r.name,
  open: true
};
const nsCol = {
  id: 'namespace',
  title: 'Namespace',
  width: 'minmax(100px,.8fr)',
  text: (r) => r.namespace
};
const ageCol = {
  id: 'age',
  title: 'Age',
  width: '62px',
  align: 'right',
  live: true,
  text: (r) => fmt.age(r.created),
  sort: (r) => (r.created ? -Date.parse(r.created) : null),
  order: 'asc'
};
const labelsCol = {
  id: 'labels',
  title: 'Labels',
  width: 'minmax(140px,2fr)',
  text: (r) => Object.entries(r.labels || {}).map(([k, v]) => `${k}=${v}`).join(' ')
};
const num = (id, title, path, more) => col(id, title, path, {
  align: 'right',
  width: '86px',
  sort: (r) => {
    const v = get(r.object, path);
    return typeof v === 'number' ? v : v === undefined ? null : Number(v);
  },
  order: 'desc',
  ...more
});

// ---- pods and nodes ----------------------------------------------------------------------------------------

export function podStatus(p) {
  if (p.deleting) return ['Terminating', 'warn'];
  if (p.phase === 'Pending' && p.gated) return ['Gated', 'info'];
  if (p.phase === 'Pending' && p.node) return ['Starting', 'info'];
  if (isUnserved(p)) return ['No scheduler', 'bad'];
  if (p.phase === 'Pending') return [p.reason || 'Pending', p.reason && p.reason !== 'Pending' ? 'bad' : 'warn'];
  if (p.phase === 'Running') return ['Running', 'ok'];
  if (p.phase === 'Failed') return ['Failed', 'bad'];
  return [p.phase || 'Unknown', ''];
}
export function nodeStatus(n) {
  if (!n.ready) return ['NotReady', 'bad'];
  return n.unschedulable ? ['Cordoned', 'warn'] : ['Ready', 'ok'];
}
export const share = (n, name) => {
  const [a, r] = [n.allocatable || {}, n.requested || {}];
  if (name === 'cpu') return ratio(r.cpu_milli, a.cpu_milli);
  if (name === 'memory') return ratio(r.memory_bytes, a.memory_bytes);
  if (name === 'pods') return ratio(r.pods, a.pods);
  return ratio((r.resources || {})[name], (a.resources || {})[name]);
};
const ratio = (r, a) => (a ? (r || 0) / a : null);
export const amount = (side, name) => (name === 'cpu'          ? side.cpu_milli
                                           : name === 'memory' ? side.memory_bytes
                                           : name === 'pods'   ? side.pods
                                                               : (side.resources || {})[name]) ||
    0;
export const resourceNames =
    (n) => ['cpu', 'memory', 'pods', ...Object.keys((n.allocatable || {}).resources || {}).sort()];

function meter(x) {
  return h(
      'span', {class: 'meter'},
      h('span', {class: 'bar'}, h('i', {
          style: {width: `${Math.min(100, (x || 0) * 100)}%`, background: sequential(0.25 + 0.75 * Math.min(1, x || 0))}
        })),
      h('span', {class: 'num'}, x === null ? '' : fmt.percent(x)));
}
const shareCol = (id, title) => ({
  id,
  title,
  width: 'minmax(110px,1fr)',
  text: (n) => (share(n, id) === null ? '' : `${fmt.percent(share(n, id))}`),
  sort: (n) => share(n, id),
  order: 'desc',
  cell: (n) => meter(share(n, id))
});
const taintText = (t) => `${t.key}${t.value ? `=${t.value}` : ''}:${t.effect}`;

const waitsFor = (p) => (p.node ? '' : p.message || (isUnserved(p) ? unservedReason(p.scheduler) : ''));
const POD_COLUMNS = [
  nameCol,
  {id: 'status', title: 'Status', width: '116px', text: (p) => podStatus(p)[0], cell: (p) => tag(...podStatus(p)), byText: true},
  nsCol,
  {
    id: 'node',
    title: 'Node',
    width: 'minmax(100px,1fr)',
    text: (p) => p.node || (p.nominated ? `nominated: ${p.nominated}` : ''),
    cell: (p) =>
        (p.node            ? linkTab(p.node, to('nodes', p.node))
             : p.nominated ? h('span', {class: 'faint'}, `nominated: ${p.nominated}`)
                           : '')
  },
  {
    id: 'cpu',
    title: 'CPU',
    width: '70px',
    align: 'right',
    text: (p) => (p.cpu_milli ? fmt.cpu(p.cpu_milli) : ''),
    sort: (p) => p.cpu_milli || 0,
    order: 'desc'
  },
  {
    id: 'memory',
    title: 'Memory',
    width: '76px',
    align: 'right',
    text: (p) => (p.memory_bytes ? fmt.bytes(p.memory_bytes) : ''),
    sort: (p) => p.memory_bytes || 0,
    order: 'desc'
  },
  {
    id: 'priority',
    title: 'Priority',
    width: '82px',
    align: 'right',
    text: (p) => (p.priority ? fmt.count(p.priority) : ''),
    sort: (p) => p.priority || 0,
    order: 'desc'
  },
  {
    id: 'owner',
    title: 'Owner',
    width: 'minmax(100px,1.1fr)',
    text: (p) => p.owner || '',
    cell: (p) => ownerLink(p.namespace, p.owner)
  },
  {id: 'message', title: 'Message', width: 'minmax(120px,2.2fr)', text: waitsFor, cell: (p) => reasonsOf(waitsFor(p)), byText: true},
  ageCol,
];
const NODE_COLUMNS = [
  {...nameCol, width: 'minmax(150px,1.6fr)'},
  {id: 'status', title: 'Status', width: '100px', text: (n) => nodeStatus(n)[0], cell: (n) => tag(...nodeStatus(n)), byText: true},
  {id: 'zone', title: 'Zone', width: 'minmax(80px,.8fr)', text: (n) => n.zone || ''},
  shareCol('cpu', 'CPU'),
  shareCol('memory', 'Memory'),
  {
    id: 'pods',
    title: 'Pods',
    width: '92px',
    align: 'right',
    text: (n) => `${(n.requested || {}).pods ?? 0} / ${(n.allocatable || {}).pods ?? 0}`,
    sort: (n) => (n.requested || {}).pods ?? 0,
    order: 'desc'
  },
  {
    id: 'size',
    title: 'Allocatable',
    width: 'minmax(130px,1fr)',
    text: (n) =>
        `${fmt.cpu(amount(n.allocatable || {}, 'cpu'))} CPU, ${fmt.bytes(amount(n.allocatable || {}, 'memory'))}`,
    sort: (n) => amount(n.allocatable || {}, 'cpu'),
    order: 'desc'
  },
  {
    id: 'taints',
    title: 'Taints',
    width: 'minmax(110px,1.3fr)',
    text: (n) => (n.taints || []).map((t) => taintText(t).replace('node.kubernetes.io/', '')).join(' ')
  },
  ageCol,
];
export {taintText};
export const linkTab = (text, href) => h('a', {href, tabindex: '-1'}, text);
const OWNERS = {
  ReplicaSet: 'replicasets',
  StatefulSet: 'statefulsets',
  DaemonSet: 'daemonsets',
  Job: 'jobs',
  Deployment: 'deployments',
  CronJob: 'cronjobs'
};
export function ownerLink(ns, owner) {
  const [kind, name] = (owner || '').split('/');
  return OWNERS[kind] ? linkTab(name, to(OWNERS[kind], ns, name)) : owner || '';
}

// ---- the others --------------------------------------------------------------------------------------------

const replicas = (ready, want) => (r) => `${get(r.object, ready) || 0} / ${get(r.object, want) ?? 1}`;
const readyCol = (ready, want) => ({
  id: 'ready',
  title: 'Ready',
  width: '84px',
  align: 'right',
  text: replicas(ready, want),
  sort: (r) => get(r.object, ready) || 0,
  order: 'desc',
  cell: (r) => {
    const done = (get(r.object, ready) || 0) >= (get(r.object, want) ?? 1);
    return h('span', {class: done ? '' : 'warn'}, replicas(ready, want)(r));
  }
});
const imagesCol =
    col('images', 'Images', (r) => (get(r.object, 'spec.template.spec.containers') || []).map((c) => c.image).join(' '),
        {width: 'minmax(120px,1.4fr)'});
const selectorCol =
    col('selector', 'Selector',
        (r) => Object.entries(get(r.object, 'spec.selector.matchLabels') || {}).map(([k, v]) => `${k}=${v}`).join(' '),
        {width: 'minmax(120px,1.2fr)'});
const capacityCol = (path) => ({
  id: 'capacity',
  title: 'Capacity',
  width: '90px',
  align: 'right',
  text: (r) => get(r.object, path) || '',
  sort: (r) => parseQuantity(get(r.object, path)) || 0,
  order: 'desc'
});
const phaseCol = {
  id: 'phase',
  title: 'Status',
  width: '110px',
  text: (r) => get(r.object, 'status.phase') || '',
  cell: (r) => {
    const p = get(r.object, 'status.phase') || '';
    return p ? tag(p,
                   /Bound|Active/.test(p)            ? 'ok'
                       : /Pending|Available/.test(p) ? 'info'
                       : /Failed|Lost/.test(p)       ? 'bad'
                                                     : 'warn')
             : '';
  }
};
const W = 'Workloads', S = 'Storage and policy';

export const eventTime = (r) =>
    r.object.lastTimestamp || r.object.eventTime || (r.object.series || {}).lastObservedTime || r.created;
const involved = (r) => {
  const o = r.object.involvedObject || r.object.regarding || {};
  return o;
};
const KIND_ROUTES = () => new Map(KINDS.map((k) => [k.kind, k]));
export function objectLink(kind, ns, name, text) {
  const k = KIND_ROUTES().get(kind);
  return k ? h('a', {href: k.namespaced ? to(k.name, ns || 'default', name) : to(k.name, name), tabindex: '-1'},
               text || `${kind}/${name}`)
           : text || `${kind}/${name}`;
}

export const KINDS = [
  {
    name: 'nodes',
    kind: 'Node',
    api: '/api/v1',
    namespaced: false,
    title: 'Nodes',
    key: 'n',
    columns: NODE_COLUMNS,
    nav: {group: 'Cluster', order: 3}
  },
  {
    name: 'pods',
    kind: 'Pod',
    api: '/api/v1',
    namespaced: true,
    title: 'Pods',
    key: 'p',
    columns: POD_COLUMNS,
    nav: {group: 'Cluster', order: 4}
  },
  {
    name: 'events',
    kind: 'Event',
    api: '/api/v1',
    namespaced: true,
    title: 'Events',
    key: 'e',
    nav: {group: 'Cluster', order: 9},
    sort: {id: 'last', dir: 'asc'},
    columns: [
      {
        id: 'last',
        title: 'Last seen',
        width: '80px',
        align: 'right',
        live: true,
        text: (r) => fmt.age(eventTime(r)),
        sort: (r) => -Date.parse(eventTime(r) || 0)
      },
      {
        id: 'type',
        title: 'Type',
        width: '90px',
        text: (r) => r.object.type || '',
        cell: (r) => tag(r.object.type || '', r.object.type === 'Warning' ? 'warn' : '')
      },
      {id: 'reason', title: 'Reason', width: '150px', text: (r) => r.object.reason || '', open: true}, {
        id: 'object',
        title: 'Object',
        width: 'minmax(160px,1.2fr)',
        text: (r) => `${involved(r).kind || ''}/${involved(r).name || ''}`,
        cell: (r) => objectLink(involved(r).kind, involved(r).namespace, involved(r).name)
      },
      {
        id: 'message',
        title: 'Message',
        width: 'minmax(220px,3fr)',
        text: (r) => r.object.message || r.object.note || '',
        cell: (r) => reasonsOf(r.object.message || r.object.note),
        byText: true
      },
      {
        id: 'count',
        title: 'Count',
        width: '64px',
        align: 'right',
        text: (r) => (r.object.series || {}).count || r.object.count || 1,
        order: 'desc'
      },
      nsCol
    ]
  },
  {
    name: 'deployments',
    kind: 'Deployment',
    api: '/apis/apps/v1',
    namespaced: true,
    title: 'Deployments',
    scale: true,
    columns: [
      nameCol, nsCol, readyCol('status.readyReplicas', 'spec.replicas'),
      num('updated', 'Up to date', 'status.updatedReplicas'), imagesCol, selectorCol, ageCol
    ],
    nav: {group: W, order: 1}
  },
  {
    name: 'replicasets',
    kind: 'ReplicaSet',
    api: '/apis/apps/v1',
    namespaced: true,
    title: 'Replica sets',
    scale: true,
    columns: [nameCol, nsCol, readyCol('status.readyReplicas', 'spec.replicas'), imagesCol, selectorCol, ageCol],
    nav: {group: W, order: 2}
  },
  {
    name: 'statefulsets',
    kind: 'StatefulSet',
    api: '/apis/apps/v1',
    namespaced: true,
    title: 'Stateful sets',
    scale: true,
    columns: [nameCol, nsCol, readyCol('status.readyReplicas', 'spec.replicas'), imagesCol, selectorCol, ageCol],
    nav: {group: W, order: 3}
  },
  {
    name: 'daemonsets',
    kind: 'DaemonSet',
    api: '/apis/apps/v1',
    namespaced: true,
    title: 'Daemon sets',
    columns: [
      nameCol, nsCol, readyCol('status.numberReady', 'status.desiredNumberScheduled'), imagesCol, selectorCol, ageCol
    ],
    nav: {group: W, order: 4}
  },
  {
    name: 'jobs',
    kind: 'Job',
    api: '/apis/batch/v1',
    namespaced: true,
    title: 'Jobs',
    columns: [
      nameCol, nsCol, readyCol('status.succeeded', 'spec.completions'), num('active', 'Active', 'status.active'),
      num('failed', 'Failed', 'status.failed'), imagesCol, ageCol
    ],
    nav: {group: W, order: 5}
  },
  {
    name: 'cronjobs',
    kind: 'CronJob',
    api: '/apis/batch/v1',
    namespaced: true,
    title: 'Cron jobs',
    columns: [
      nameCol, nsCol, col('schedule', 'Schedule', 'spec.schedule', {width: '130px'}),
      col('suspend', 'Suspended', 'spec.suspend', {width: '100px'}),
      col('last', 'Last run', (r) => fmt.since((r.object.status || {}).lastScheduleTime)), ageCol
    ],
    nav: {group: W, order: 6}
  },
  {
    name: 'namespaces',
    kind: 'Namespace',
    api: '/api/v1',
    namespaced: false,
    title: 'Namespaces',
    columns: [nameCol, phaseCol, labelsCol, ageCol],
    nav: {group: W, order: 7}
  },
  {
    name: 'persistentvolumeclaims',
    kind: 'PersistentVolumeClaim',
    api: '/api/v1',
    namespaced: true,
    title: 'Volume claims',
    columns: [
      nameCol, nsCol, phaseCol, col('volume', 'Volume', 'spec.volumeName', {
        cell: (r) =>
            (r.object.spec.volumeName
                 ? linkTab(r.object.spec.volumeName, to('persistentvolumes', r.object.spec.volumeName))
                 : '')
      }),
      capacityCol('spec.resources.requests.storage'),
      col('modes', 'Access', (r) => (get(r.object, 'spec.accessModes') || []).join(', '), {width: '130px'}),
      col('class', 'Class', 'spec.storageClassName'), ageCol
    ],
    nav: {group: S, order: 1}
  },
  {
    name: 'persistentvolumes',
    kind: 'PersistentVolume',
    api: '/api/v1',
    namespaced: false,
    title: 'Volumes',
    columns:
        [
          nameCol, phaseCol, capacityCol('spec.capacity.storage'),
          col('modes', 'Access', (r) => (get(r.object, 'spec.accessModes') || []).join(', '), {width: '130px'}),
          col('claim', 'Claim',
              (r) => {
                const c = get(r.object, 'spec.claimRef');
                return c ? `${c.namespace}/${c.name}` : '';
              }),
          col('class', 'Class', 'spec.storageClassName'),
          col('reclaim', 'Reclaim', 'spec.persistentVolumeReclaimPolicy'), ageCol
        ],
    nav: {group: S, order: 2}
  },
  {
    name: 'storageclasses',
    kind: 'StorageClass',
    api: '/apis/storage.k8s.io/v1',
    namespaced: false,
    title: 'Storage classes',
    columns: [
      nameCol, col('provisioner', 'Provisioner', 'provisioner', {width: 'minmax(160px,1.5fr)'}),
      col('mode', 'Binding', 'volumeBindingMode', {width: '170px'}), col('reclaim', 'Reclaim', 'reclaimPolicy'), ageCol
    ],
    nav: {group: S, order: 3}
  },
  {
    name: 'priorityclasses',
    kind: 'PriorityClass',
    api: '/apis/scheduling.k8s.io/v1',
    namespaced: false,
    title: 'Priority classes',
    columns: [
      nameCol, num('value', 'Value', 'value', {width: '120px'}),
      col('default', 'Default', (r) => (r.object.globalDefault ? 'yes' : '')),
      col('preemption', 'Preemption', (r) => r.object.preemptionPolicy || 'PreemptLowerPriority', {width: '170px'}),
      ageCol
    ],
    nav: {group: S, order: 4}
  },
  {
    name: 'poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    api: '/apis/policy/v1',
    namespaced: true,
    title: 'Disruption budgets',
    columns: [
      nameCol, nsCol, col('min', 'Min available', 'spec.minAvailable', {width: '110px', align: 'right'}),
      col('max', 'Max unavailable', 'spec.maxUnavailable', {width: '120px', align: 'right'}),
      num('allowed', 'Allowed now', 'status.disruptionsAllowed', {width: '110px'}), selectorCol, ageCol
    ],
    nav: {group: S, order: 5}
  },
  {
    name: 'resourceclaims',
    kind: 'ResourceClaim',
    api: '/apis/resource.k8s.io/v1',
    namespaced: true,
    title: 'Resource claims',
    columns: [
      nameCol, nsCol,
      col('state', 'State',
          (r) => (get(r.object, 'status.allocation') ? 'allocated' : 'pending') +
              ((get(r.object, 'status.reservedFor') || []).length ? ', reserved' : ''),
          {width: '150px'}),
      col('devices', 'Devices',
          (r) =>
              (get(r.object, 'status.allocation.devices.results') || []).map((d) => `${d.pool}/${d.device}`).join(' ')),
      ageCol
    ],
    nav: {group: S, order: 6}
  },
  {
    name: 'resourceslices',
    kind: 'ResourceSlice',
    api: '/apis/resource.k8s.io/v1',
    namespaced: false,
    title: 'Resource slices',
    columns: [
      nameCol, col('driver', 'Driver', 'spec.driver'), col('pool', 'Pool', 'spec.pool.name'),
      col('node', 'Node', 'spec.nodeName'),
      col('devices', 'Devices', (r) => (get(r.object, 'spec.devices') || []).length,
          {align: 'right', width: '90px', order: 'desc'}),
      ageCol
    ],
    nav: {group: S, order: 7}
  },
  {
    name: 'deviceclasses',
    kind: 'DeviceClass',
    api: '/apis/resource.k8s.io/v1',
    namespaced: false,
    title: 'Device classes',
    columns: [
      nameCol,
      col('selectors', 'Selectors',
          (r) => (get(r.object, 'spec.selectors') || []).map((s) => (s.cel || {}).expression || '').join(' and '),
          {width: 'minmax(200px,3fr)'}),
      ageCol
    ],
    nav: {group: S, order: 8}
  },
];
for (const k of KINDS) {
  const group = k.api.startsWith('/apis/') ? k.api.split('/')[2] : '';
  k.group = group;
  k.version = k.api.split('/').pop();
  k.watch = group ? `${k.name}.${group}` : k.name;
  k.apiVersion = group ? `${group}/${k.version}` : k.version;
}

export const kindByName = (name) => KINDS.find((k) => k.name === name);
export function objectPath(k, ns, name, sub) {
  const enc = encodeURIComponent;
  return [k.api, k.namespaced && ns ? `namespaces/${enc(ns)}` : '', k.name, name ? enc(name) : '', sub || '']
      .filter(Boolean)
      .join('/');
}
export const objectRoute = (k, row) => {
  const base = k.custom ? ['kind', k.watch] : [k.name];
  return k.namespaced ? to(...base, row.namespace, row.name) : to(...base, row.name);
};

// ---- discovery ---------------------------------------------------------------------------------------------

let found = null;
// All kinds that the server has: those above and whatever else it serves, custom ones too.
export async function discover(again) {
  if (found && !again) return found;
  const groups = (await fetchJSON('/apis')).groups || [];
  // The version that a group prefers first, then kinds that only others of its versions have (PodGroup beside PriorityClass).
  const places = ['/api/v1', ...groups.map((g) => g.preferredVersion || g.versions[0]).concat(...groups.map((g) => g.versions)).map((v) => `/apis/${v.groupVersion}`)]
    .filter((p, i, all) => all.indexOf(p) === i);
  const lists = await Promise.all(places.map((p) => fetchJSON(p).then((l) => [p, l], () => [p, null])));
  const out = [];
  for (const [api, l] of lists) {
    for (const r of (l && l.resources) || [])
      if (!r.name.includes('/') && (r.verbs || []).includes('list')) out.push(kindOfResource(api, r));
  }
  found = out.filter((k, i) => !(k.kind === 'Event' && k.group) && out.findIndex((x) => x.watch === k.watch) === i);
  return found;
}
function kindOfResource(api, r) {
  const known = KINDS.find((k) => k.api === api && k.name === r.name);
  if (known) return known;
  const group = api.startsWith('/apis/') ? api.split('/')[2] : '', version = api.split('/').pop();
  return {
    name: r.name,
    kind: r.kind,
    api,
    namespaced: r.namespaced,
    title: r.kind,
    custom: true,
    group,
    version,
    verbs: r.verbs,
    apiVersion: group ? `${group}/${version}` : version,
    watch: group ? `${r.name}.${group}` : r.name,
    columns: [nameCol, r.namespaced ? nsCol : null, labelsCol, ageCol].filter(Boolean)
  };
}
