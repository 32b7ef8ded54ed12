// SPDX-License-Identifier: Apache-2.0
//
// rollout.js - the revisions of a workload, and the way back to one, as `kubectl rollout history` and `undo`
import {toYaml} from './edits.js';
import {objectPath} from './kinds.js';
import {confirmDialog, diffView, empty, fetchJSON, fmt, h, replace, tag, toast} from './lib.js';
import {subscribe} from './store.js';

const REVISION = 'deployment.kubernetes.io/revision', HASH = 'pod-template-hash';
// Annotations of a deployment that are its own and not of a revision.
const OWN = [REVISION, 'kubectl.kubernetes.io/last-applied-configuration', 'deployment.kubernetes.io/revision-history',
  'deployment.kubernetes.io/desired-replicas', 'deployment.kubernetes.io/max-replicas', 'deprecated.deployment.rollback.to'];

export const rollsOut = (k) => ['deployments', 'statefulsets', 'daemonsets'].includes(k.name);

// The template without what the deployment controller adds to it.
function plain(template) {
  const t = structuredClone(template || {});
  if (t.metadata?.labels) delete t.metadata.labels[HASH];
  return t;
}
// A replica set or a controller revision -> {number, template, cause, created, source}
function revisionOf(o) {
  const meta = o.metadata, a = meta.annotations || {}, {$patch, ...template} = o.data?.spec?.template || {};
  return {
    number: Number(o.kind === 'ReplicaSet' ? a[REVISION] : o.revision) || 0,
    template: plain(o.kind === 'ReplicaSet' ? o.spec.template : template),
    cause: a['kubernetes.io/change-cause'] || '',
    created: meta.creationTimestamp,
    source: o
  };
}
// The request that makes the workload what it was at the revision.
function wayBack(k, o, r) {
  if (k.name !== 'deployments') return {type: 'application/strategic-merge-patch+json', body: r.source.data};
  const pick = (from, want) => Object.fromEntries(Object.entries(from || {}).filter(([name]) => want(name)));
  const annotations = {...pick(o.metadata.annotations, (n) => OWN.includes(n)), ...pick(r.source.metadata.annotations, (n) => !OWN.includes(n))};
  return {
    type: 'application/json-patch+json',
    body: [{op: 'replace', path: '/spec/template', value: r.template}, {op: 'add', path: '/metadata/annotations', value: annotations}]
  };
}

// A tab of the object page: {id, title, make() -> Node, update(object)}
export function historyPart(k, object, stops) {
  const el = h('div', {class: 'col'}), from = k.name === 'deployments' ? 'replicasets.apps' : 'controllerrevisions.apps';
  let list = [], shown = '', ready = false;
  const draw = () => {
    const now = object().metadata.annotations?.[REVISION] || '', key = JSON.stringify([now, list.map((r) => [r.number, r.source.metadata.uid]), ready]);
    if (key === shown) return;
    shown = key;
    if (!list.length) {
      replace(el, ready ? empty('No revisions yet', 'Each template of its pods becomes one.') : null);
      return;
    }
    replace(el, list.map((r, i) => h('section', {class: 'panel revision'},
      h('header', {}, h('h2', {}, `Revision ${r.number}`), i ? null : tag('current', 'ok'), h('span', {class: 'faint', title: fmt.date(r.created)}, fmt.since(r.created)),
        h('span', {class: 'clip'}, r.cause), h('span', {class: 'grow'}),
        i ? h('button', {type: 'button', writes: true, onclick: () => undo(r)}, `Back to revision ${r.number}`) : null),
      h('div', {class: 'body'}, i + 1 < list.length ? diffView(toYaml(list[i + 1].template), toYaml(r.template), {same: 'The template is the same.'})
                                                    : h('details', {}, h('summary', {}, 'The oldest that is kept'), h('pre', {class: 'mono'}, toYaml(r.template)))))));
  };
  const undo = async (r) => {
    const {name, namespace} = object().metadata;
    let o;
    try {
      o = await fetchJSON(objectPath(k, namespace, name)); // the page's may be older than the revision that was pressed
    } catch (e) {
      toast(e.message, 'bad');
      return;
    }
    if (o.spec.paused) {
      toast('A paused deployment cannot go back; resume it first.', 'bad');
      return;
    }
    const sure = await confirmDialog({
      title: `${name}: back to revision ${r.number}`,
      body: h('div', {class: 'col'}, h('p', {}, 'Its pods are replaced as in any other rollout. What changes in their template:'),
              diffView(toYaml(plain(o.spec.template)), toYaml(r.template), {same: 'Nothing: the template is the same.'})),
      confirm: 'Go back'
    });
    if (!sure) return;
    try {
      await fetchJSON(objectPath(k, namespace, name), {method: 'PATCH', ...wayBack(k, o, r)});
      toast(`${name} is on its way back to revision ${r.number}.`, 'ok');
    } catch (e) { toast(e.message, 'bad'); }
  };
  return {
    id: 'history',
    title: 'History',
    make: () => {
      stops.push(subscribe(from, ({rows, synced}) => {
        const uid = object().metadata.uid, mine = [...rows.values()].map((x) => x.object).filter((x) => (x.metadata.ownerReferences || []).some((w) => w.uid === uid && w.controller));
        list = mine.map(revisionOf).sort((a, b) => b.number - a.number);
        ready = synced;
        draw();
      }));
      return el;
    },
    update: () => draw()
  };
}
