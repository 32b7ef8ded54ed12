// SPDX-License-Identifier: Apache-2.0
//
// object.js - the page of one object: details, YAML, events; for nodes their pods, for workloads theirs
import {
  amount, eventTime, kindByName, linkTab, nodeStatus, objectLink, objectPath, objectRoute, ownerLink, podStatus,
  resourceNames, taintText
} from './kinds.js';
import {
  debounce, dialog, empty, errorNote, fetchJSON, fetchText, fmt, h, icon, kv, labelTags, linkTo, navigate, note,
  panel, parseQuantity, plainTable, plural, replace, sequential, setQuery, setTitle, spinner, stackedBar, Table,
  tabs, tag, to, toast, withoutManaged, YamlEditor
} from './lib.js';
import {removeObjects} from './resources.js';
import {historyPart, rollsOut} from './rollout.js';
import {isUnservedPod, unservedNote} from './schedulers.js';
import {row, rows, subscribe} from './store.js';

export function mountObject(el, k, ns, name, r) {
  const key = k.namespaced ? `${ns}/${name}` : name, path = objectPath(k, ns, name), stops = [];
  const head = h('div', {class: 'objecthead'}), gone = h('div', {hidden: true}),
        body = h('div', {class: 'tabbox'}, spinner());
  setTitle(
      name, k.custom ? linkTo(k.kind, 'kind', k.watch) : linkTo(k.title, k.name),
      k.namespaced ? linkTo(ns, k.custom ? 'kind' : k.name, ...(k.custom ? [k.watch] : []), {ns})
                   : h('span', {class: 'faint'}, k.kind));
  el.append(head, gone, body);
  let object = null, box = null, dead = false, parts = null;

  const load = async () => {
    let o;
    try {
      o = await fetchJSON(path);
    } catch (e) {
      if (dead) return;
      if (e.status === 404 && object) {
        gone.hidden = false;
        replace(gone, note('warn', `This ${k.kind} has been deleted. What is shown is its last state.`));
      } else if (!object)
        replace(
            body,
            e.status === 404
                ? empty(
                      `There is no ${k.kind} ${key}`, 'It may have been deleted, or never existed under this name.',
                      h('a', {class: 'button', href: to(...(k.custom ? ['kind', k.watch] : [k.name]))},
                        `All ${k.title.toLowerCase()}`))
                : errorNote(e));
      return;
    }
    if (dead) return;
    gone.hidden = true;
    object = o;
    replace(head, header(k, o, ns, name));
    if (!box) {
      parts = makeParts(k, () => object, path, ns, name, stops);
      box = tabs(
          parts.map((p) => ({id: p.id, title: p.title, body: () => p.make()})),
          {selected: r.query.tab, onSelect: (id) => setQuery({tab: id === 'details' ? null : id})});
      body.replaceWith(box);
    }
    for (const p of parts) p.update(o);
  };
  const reload = debounce(250, load);
  load();
  // A change of the row means a change of the object.
  stops.push(subscribe(k.watch, ({changed}) => {
    if (changed && changed.some((c) => c.row.key === key)) reload();
  }));
  return () => {
    dead = true;
    reload.cancel();
    stops.forEach((f) => f());
  };
}

// ---- head --------------------------------------------------------------------------------------------------

function header(k, o, ns, name) {
  const buttons = [];
  const status = k.name === 'pods' ? podStatus(rowOfPod(o)) : k.name === 'nodes' ? nodeStatus(rowOfNode(o)) : null;
  if (k.name === 'pods') {
    const bound = !!(o.spec || {}).nodeName;
    buttons.push(
        h('a', {class: 'button primary', href: to('decisions', 'pod', ns, name)}, icon('decisions'),
          bound ? 'Why this node?' : 'Why is it pending?'));
    buttons.push(
        h('a', {class: 'button', href: to('whatif', {pod: `${ns}/${name}`})}, icon('whatif'),
          bound ? 'What if' : 'What would make it fit?'));
  }
  if (k.name === 'nodes') {
    const off = (o.spec || {}).unschedulable;
    buttons.push(
        h('button', {
          type: 'button',
          writes: true,
          onclick: () => patch(
              k, '', name, {spec: {unschedulable: off ? null : true}},
              off ? `${name} takes pods again.` : `${name} takes no new pods.`)
        },
          off ? 'Uncordon' : 'Cordon'));
    buttons.push(h('button', {type: 'button', writes: true, onclick: () => labelDialog(k, o)}, 'Label'));
    buttons.push(h('button', {type: 'button', writes: true, onclick: () => taintDialog(k, o)}, 'Taint'));
    buttons.push(h('a', {class: 'button', href: to('drain', {nodes: name})}, 'Drain'));
  }
  if (k.scale) buttons.push(h('button', {type: 'button', writes: true, onclick: () => scaleDialog(k, o)}, 'Scale'));
  // As `kubectl rollout restart` does it: another template, so the controller replaces the pods.
  if (rollsOut(k))
    buttons.push(
        h('button', {
          type: 'button',
          writes: true,
          onclick: () => {
            const annotations = {'kubectl.kubernetes.io/restartedAt': new Date().toISOString()};
            patch(k, ns, name, {spec: {template: {metadata: {annotations}}}}, `The pods of ${name} are replaced.`);
          }
        },
          'Restart'));
  buttons.push(h('a', {class: 'button', href: to('edit', {path: objectPath(k, ns, name)})}, icon('edit'), 'Edit'));
  buttons.push(
      h('button', {
        type: 'button',
        class: 'danger',
        writes: true,
        onclick: () => removeObjects(k, [{key: ns ? `${ns}/${name}` : name, namespace: ns, name}]).then((done) => {
          if (done) navigate(to(...(k.custom ? ['kind', k.watch] : [k.name])));
        })
      },
        icon('trash'), 'Delete'));
  return h(
      'div', {class: 'row wrap'}, h('span', {class: 'faint'}, k.kind), status ? tag(...status) : null,
      h('span', {class: 'faint'}, `created ${fmt.since(o.metadata.creationTimestamp)}`), h('span', {class: 'grow'}),
      buttons);
}
async function patch(k, ns, name, body, done, sub) {
  try {
    await fetchJSON(objectPath(k, ns, name, sub), {method: 'PATCH', type: 'application/merge-patch+json', body});
    toast(done, 'ok');
  } catch (e) { toast(e.message, 'bad'); }
}
async function scaleDialog(k, o) {
  const input =
      h('input', {type: 'number', min: 0, max: 100000, value: o.spec.replicas ?? 1, 'aria-label': 'Replicas'});
  const ok = await dialog({
    title: `Scale ${o.metadata.name}`,
    body: h('div', {class: 'field'}, h('label', {}, 'Replicas'), input),
    focus: input,
    buttons: [{text: 'Cancel'}, {text: 'Scale', kind: 'primary', value: true}]
  });
  if (ok)
    await patch(
        k, o.metadata.namespace, o.metadata.name, {spec: {replicas: Number(input.value)}},
        `${o.metadata.name} is scaled to ${input.value}.`, 'scale');
}

// Adds or changes one label or taint, or removes those whose box is unticked. made(kept) -> the patch; throws what is wrong with the input.
async function tickDialog(title, had, fields, focus, made, k, name) {
  const ticks = had.map((x) => ({x, box: h('input', {type: 'checkbox', checked: true})}));
  await dialog({
    title: `${title} of ${name}`,
    focus,
    body: h('div', {class: 'col'}, ticks.map(({x, box}) => h('label', {class: 'check mono'}, box, x.text)), fields),
    buttons: [
      {text: 'Cancel'}, {
        text: 'Change',
        kind: 'primary',
        action: async () => {
          const body = made(ticks.filter((t) => t.box.checked).map((t) => t.x));
          await fetchJSON(
              objectPath(k, '', name), {method: 'PATCH', type: 'application/merge-patch+json', body});
          toast(`${title} of ${name} are changed.`, 'ok');
        }
      }
    ]
  });
}
const line = (text, input) => h('div', {class: 'field'}, h('label', {'for': input.id}, text), input);
function labelDialog(k, o) {
  const labels = o.metadata.labels || {}, key = h('input', {type: 'text', id: 'labelkey', spellcheck: 'false'}),
        value = h('input', {type: 'text', id: 'labelvalue', spellcheck: 'false'});
  const had = Object.entries(labels).map(([a, b]) => ({key: a, text: `${a}=${b}`}));
  tickDialog('Labels', had, [line('Key of one to set', key), line('Value', value)], key, (kept) => {
    const gone = had.filter((x) => !kept.includes(x)).map((x) => [x.key, null]), name = key.value.trim();
    if (value.value.trim() && !name) throw new Error('The label has a value but no key.');
    return {metadata: {labels: {...Object.fromEntries(gone), ...(name ? {[name]: value.value.trim()} : {})}}};
  }, k, o.metadata.name);
}
function taintDialog(k, o) {
  const key = h('input', {type: 'text', id: 'taintkey', spellcheck: 'false'}),
        value = h('input', {type: 'text', id: 'taintvalue', spellcheck: 'false'});
  const effect =
      h('select', {id: 'tainteffect'}, ['NoSchedule', 'PreferNoSchedule', 'NoExecute'].map((e) => h('option', {}, e)));
  const had = ((o.spec || {}).taints || []).map((t) => ({taint: t, text: taintText(t)}));
  tickDialog(
      'Taints', had, [line('Key of one to add', key), line('Value', value), line('Effect', effect)], key, (kept) => {
        const name = key.value.trim(), more = {key: name, effect: effect.value};
        if (value.value.trim()) more.value = value.value.trim();
        if (more.value && !name) throw new Error('The taint has a value but no key.');
        const rest = kept.map((x) => x.taint).filter((t) => t.key !== name || t.effect !== more.effect);
        // A list is replaced as a whole: a node that changed meanwhile is refused.
        return {
          metadata: {resourceVersion: o.metadata.resourceVersion},
          spec: {taints: name ? [...rest, more] : rest}
        };
      }, k, o.metadata.name);
}

// The short row that tables have, from the whole object.
function rowOfPod(o) {
  const s = o.spec || {}, st = o.status || {}, c = (st.conditions || []).find((x) => x.type === 'PodScheduled') || {};
  return row('pods', `${o.metadata.namespace}/${o.metadata.name}`) || {
    phase: st.phase,
    node: s.nodeName,
    deleting: !!o.metadata.deletionTimestamp,
    gated: (s.schedulingGates || []).length > 0,
    scheduler: s.schedulerName,
    reason: c.status === 'False' ? c.reason : '',
    message: c.message
  };
}
function rowOfNode(o) {
  const c = ((o.status || {}).conditions || []).find((x) => x.type === 'Ready');
  return {ready: !c || c.status === 'True', unschedulable: (o.spec || {}).unschedulable};
}

// ---- tabs --------------------------------------------------------------------------------------------------

// [{id, title, make() -> Node, update(object)}]
function makeParts(k, object, path, ns, name, stops) {
  const parts = [live(
      'details', 'Details',
      () =>
          (k.name === 'pods'        ? podDetails(object())
               : k.name === 'nodes' ? nodeDetails(object(), stops)
                                    : genericDetails(object())))];
  if (k.name === 'nodes') parts.push(podTable('node', (p) => p.node === name, stops, 'No pods run on this node.'));
  const sel = ((object().spec || {}).selector || {}).matchLabels;
  if (sel && Object.keys(sel).length && k.namespaced)
    parts.push(podTable(
        'namespace', (p) => p.namespace === ns && Object.entries(sel).every(([a, b]) => (p.labels || {})[a] === b),
        stops, 'No pod has these labels.'));
  if (rollsOut(k)) parts.push(historyPart(k, object, stops));
  parts.push(yamlPart(path), eventsPart(k, object, ns, name, stops));
  return parts;
}

function live(id, title, render) {
  let el = null, shown = '';
  const draw = () => {
    const o = document.activeElement;
    if (el && !(o && el.contains(o) && o.matches('input,summary'))) replace(el, render());
  };
  return {
    id,
    title,
    make: () => {
      el = h('div', {class: 'col'});
      draw();
      return el;
    },
    update: (o) => {
      const t = JSON.stringify(o, (key, v) => (key === 'managedFields' ? undefined : v));
      if (el && t !== shown) draw();
      shown = t;
    }
  };
}

function yamlPart(path) {
  const editor = new YamlEditor({readOnly: true, label: 'The object as YAML'});
  const all = h('input', {type: 'checkbox', onchange: () => load()});
  let made = false;
  const load = async () => {
    try {
      const got = await fetchText(path, {accept: 'application/yaml'}), t = all.checked ? got : withoutManaged(got);
      const at = editor.el.scrollTop;
      if (t !== editor.value) {
        editor.value = t;
        editor.el.scrollTop = at;
      }
    } catch (e) {
      if (!editor.value) editor.value = `# ${e.message}`;
    }
  };
  return {
    id: 'yaml',
    title: 'YAML',
    make: () => {
      made = true;
      load();
      return h('div', {class: 'col yamlview'}, h('label', {class: 'check'}, all, 'managedFields'), editor.el);
    },
    update: () => {
      if (made && editor.el.isConnected) load();
    }
  };
}

function eventsPart(k, object, ns, name, stops) {
  const el = h('div', {class: 'panel'});
  let made = false;
  const load = async () => {
    const q =
        new URLSearchParams({fieldSelector: `involvedObject.kind=${k.kind},involvedObject.name=${name}`, limit: '500'});
    let items;
    try {
      items = (await fetchJSON(`/api/v1/${k.namespaced ? `namespaces/${encodeURIComponent(ns)}/` : ''}events?${q}`))
                  .items ||
          [];
    } catch (e) {
      replace(el, errorNote(e));
      return;
    }
    const list = items.map((o) => ({object: o, created: o.metadata.creationTimestamp}))
                     .sort((a, b) => (eventTime(a) < eventTime(b) ? 1 : -1));
    replace(
        el,
        plainTable(
            [
              {
                title: 'Last seen',
                cell: (e) => h('span', {class: 'num', title: fmt.date(eventTime(e))}, fmt.since(eventTime(e)))
              },
              {title: 'Type', cell: (e) => tag(e.object.type || '', e.object.type === 'Warning' ? 'warn' : '')},
              {title: 'Reason', cell: (e) => e.object.reason},
              {title: 'From', cell: (e) => e.object.reportingComponent || (e.object.source || {}).component || ''},
              {title: 'Message', cell: (e) => e.object.message},
              {title: 'Count', align: 'right', cell: (e) => (e.object.series || {}).count || e.object.count || 1}
            ],
            list, {emptyText: 'No events about this object.'}));
  };
  const timer = setInterval(() => {
    if (made && el.isConnected && !document.hidden) load();
  }, 4000);
  stops.push(() => clearInterval(timer));
  return {
    id: 'events',
    title: 'Events',
    make: () => {
      made = true;
      load();
      return el;
    },
    update: () => {
      if (made && el.isConnected) load();
    }
  };
}

// without: a column that would be the same in every row
function podTable(without, want, stops, emptyText) {
  const k = kindByName('pods');
  const table = new Table({
    columns: k.columns.filter((c) => c.id !== without),
    name: 'pods',
    labels: (p) => p.labels,
    sort: {id: 'cpu', dir: 'desc'},
    emptyText,
    onOpen: (p) => navigate(objectRoute(k, p)),
    href: (p) => objectRoute(k, p),
    fixedHeight: 14
  });
  const own = new Map();
  stops.push(subscribe('pods', ({rows: all, changed}) => {
    if (!changed) {
      own.clear();
      for (const p of all.values())
        if (want(p)) own.set(p.key, p);
    } else
      for (const c of changed) {
        if (c.type !== 'DELETED' && want(c.row)) own.set(c.row.key, c.row);
        else own.delete(c.row.key);
      }
    table.setRows([...own.values()]);
  }));
  return {id: 'pods', title: 'Pods', make: () => h('div', {class: 'panel'}, table.el), update: () => {}};
}

// ---- details -----------------------------------------------------------------------------------------------

const meta = (o) => panel(
    'Labels and annotations', {},
    h('div', {class: 'col'}, kv([
        [
          'Labels',
          Object.keys(o.metadata.labels || {}).length ? labelTags(o.metadata.labels)
                                                      : h('span', {class: 'faint'}, 'none')
        ],
        [
          'Owner',
          (o.metadata.ownerReferences || []).length
              ? o.metadata.ownerReferences.map((r) => [objectLink(r.kind, o.metadata.namespace, r.name), ' '])
              : null
        ],
        ['Finalizers', (o.metadata.finalizers || []).join(', ')],
        ['UID', h('span', {class: 'mono'}, o.metadata.uid)],
        ['Created', fmt.date(o.metadata.creationTimestamp)],
      ]),
      annotations(o.metadata.annotations)));
function annotations(a) {
  const all = Object.entries(a || {});
  if (!all.length) return null;
  return h(
      'div', {}, h('div', {class: 'faint'}, 'Annotations'),
      all.map(
          ([k, v]) =>
              h('details', {class: 'annotation', open: v.length < 160}, h('summary', {class: 'mono'}, k),
                h('pre', {tabindex: '0'}, pretty(v)))));
}
function pretty(v) {
  if (/^[[{]/.test(v)) try {
      return JSON.stringify(JSON.parse(v), null, 2);
    } catch { /* as it is */
    }
  return v;
}
function conditions(list) {
  return panel(
      'Conditions', {flush: true},
      plainTable(
          [
            {title: 'Type', cell: (c) => c.type}, {title: 'Status', cell: (c) => tag(c.status, conditionTone(c))},
            {title: 'Reason', cell: (c) => c.reason || ''}, {title: 'Message', cell: (c) => c.message || ''}, {
              title: 'Since',
              cell: (c) =>
                  h('span', {class: 'num', title: fmt.date(c.lastTransitionTime)}, fmt.age(c.lastTransitionTime))
            }
          ],
          list || [], {emptyText: 'No conditions.'}));
}

// Conditions that tell of trouble are good when they are False.
const conditionTone = (c) =>
    (c.status === 'Unknown'                                                                                ? ''
         : /Pressure|Unavailable|Failure|Failed|Disrupt|Suspended/.test(c.type) === (c.status === 'False') ? 'ok'
                                                                                                           : 'warn');

function podDetails(o) {
  const s = o.spec || {}, st = o.status || {}, p = rowOfPod(o);
  const sched = (st.conditions || []).find((c) => c.type === 'PodScheduled'), out = [];
  if (isUnservedPod(o)) out.push(unservedNote(o));
  if (!s.nodeName && sched && sched.message)
    out.push(note(
        sched.reason === 'SchedulingGated' ? '' : 'warn', h('b', {}, sched.reason || 'Pending'), ': ', sched.message));
  const containers = [...(s.initContainers || []).map((c) => ({...c, init: true})), ...(s.containers || [])];
  const res = (c, which) => Object.entries((c.resources || {})[which] || {}).map(([n, v]) => `${n} ${v}`).join(', ');
  out.push(
      h('div', {class: 'grid two'},
        panel('Placement', {}, kv([
                [
                  'Node', s.nodeName ? linkTo(s.nodeName, 'nodes', s.nodeName) : h('span', {class: 'faint'}, 'none yet')
                ],
                ['Nominated node', st.nominatedNodeName],
                [
                  'Priority',
                  s.priority === undefined
                      ? ''
                      : `${fmt.count(s.priority)}${s.priorityClassName ? ` (${s.priorityClassName})` : ''}`
                ],
                ['Preemption', s.preemptionPolicy === 'Never' ? 'Never' : ''],
                ['Scheduler', s.schedulerName || 'default-scheduler'], ['Phase', st.phase], ['QoS class', st.qosClass],
                [
                  'Requests',
                  Object
                          .keys(totalRequests(s))
                          .length
                      ? Object.entries(totalRequests(s))
                            .map(([n, v]) => `${n} ${n === 'cpu' ? fmt.cpu(v * 1000) : fmt.quantity(n, v)}`)
                            .join(', ')
                      : 'none'
                ],
                ['Group', p.group ? linkTo(p.group, 'groups', o.metadata.namespace, p.group) : ''],
                ['Owner', p.owner ? [`${p.owner.split('/')[0]} `, ownerLink(o.metadata.namespace, p.owner)] : ''],
                ['Pod IP', st.podIP]
              ])),
        panel('Rules for its place', {}, rules(s, o))));
  const ports = (c) => (c.ports || []).filter((x) => x.hostPort).map((x) => `${x.hostPort}/${x.protocol || 'TCP'}`);
  const role = (c) => (!c.init ? '' : c.restartPolicy === 'Always' ? ' (sidecar)' : ' (init)');
  const columns = [
    {title: 'Name', cell: (c) => [c.name, h('span', {class: 'faint'}, role(c))]},
    {title: 'Image', cell: (c) => h('span', {class: 'mono'}, c.image)},
    {title: 'Requests', cell: (c) => res(c, 'requests')},
    {title: 'Limits', cell: (c) => res(c, 'limits')},
    {title: 'Host ports', cell: (c) => ports(c).join(', ')},
  ];
  out.push(panel('Containers', {flush: true}, plainTable(columns, containers)));
  out.push(conditions(st.conditions), meta(o));
  return out;
}
// The sum that the scheduler takes: containers and sidecars, or the largest init container, and the overhead.
function totalRequests(s) {
  const sum = {}, most = {}, add = (to, r) => {
    for (const [n, v] of Object.entries(r || {})) to[n] = (to[n] || 0) + parseQuantity(v);
  };
  for (const c of s.containers || []) add(sum, (c.resources || {}).requests);
  const side = {};
  for (const c of s.initContainers || []) {
    if (c.restartPolicy === 'Always') {
      add(sum, (c.resources || {}).requests);
      add(side, (c.resources || {}).requests);
      continue;
    }
    for (const [n, v] of Object.entries((c.resources || {}).requests || {}))
      most[n] = Math.max(most[n] || 0, parseQuantity(v) + (side[n] || 0));
  }
  for (const [n, v] of Object.entries(most)) sum[n] = Math.max(sum[n] || 0, v);
  add(sum, s.overhead);
  return sum;
}

const expression = (e) => ({
                            In: `${e.key} in (${(e.values || []).join(', ')})`,
                            NotIn: `${e.key} not in (${(e.values || []).join(', ')})`,
                            Exists: `${e.key} exists`,
                            DoesNotExist: `${e.key} is absent`,
                            Gt: `${e.key} > ${e.values}`,
                            Lt: `${e.key} < ${e.values}`
                          })[e.operator] ||
    JSON.stringify(e);
const selectorText = (l) => (!l ? 'no pods' : [
  ...Object.entries(l.matchLabels || {}).map(([a, b]) => `${a}=${b}`), ...(l.matchExpressions || []).map(expression)
].join(' and ') || 'all pods');
const nodeTerm = (t) => [...(t.matchExpressions || []), ...(t.matchFields || [])].map(expression).join(' and ');
const podTerm = (t) => `pods with ${selectorText(t.labelSelector)}, same ${t.topologyKey}`;
function rules(s, o) {
  const a = s.affinity || {}, na = a.nodeAffinity || {}, pairs = [];
  const add = (title, list) => {
    if (list && list.length) pairs.push([title, h('ul', {class: 'rules'}, list.map((x) => h('li', {}, x)))]);
  };
  add('Node selector', Object.entries(s.nodeSelector || {}).map(([k, v]) => `${k}=${v}`));
  add('Node must', ((na.requiredDuringSchedulingIgnoredDuringExecution || {}).nodeSelectorTerms || []).map(nodeTerm));
  add('Node should',
      (na.preferredDuringSchedulingIgnoredDuringExecution ||
       []).map((t) => `${nodeTerm(t.preference)} (weight ${t.weight})`));
  for (const [field, must, should] of [
           ['podAffinity', 'Near, must', 'Near, should'], ['podAntiAffinity', 'Apart, must', 'Apart, should']]) {
    add(must, ((a[field] || {}).requiredDuringSchedulingIgnoredDuringExecution || []).map(podTerm));
    add(should,
        ((a[field] || {}).preferredDuringSchedulingIgnoredDuringExecution ||
         []).map((t) => `${podTerm(t.podAffinityTerm)} (weight ${t.weight})`));
  }
  add('Spread',
      (s.topologySpreadConstraints || [])
          .map(
              (t) => `${selectorText(t.labelSelector)} over ${t.topologyKey}, skew at most ${t.maxSkew}${
                  t.whenUnsatisfiable === 'ScheduleAnyway' ? ' if possible' : ''}`));
  add('Tolerates',
      (s.tolerations || [])
          .map(
              (t) => `${t.key || 'any taint'}${t.value ? `=${t.value}` : ''}${t.effect ? `:${t.effect}` : ''}${
                  t.tolerationSeconds !== undefined ? ` for ${t.tolerationSeconds} s` : ''}`));
  add('Waits for gates', (s.schedulingGates || []).map((g) => g.name));
  add('Volume claims',
      (s.volumes || [])
          .filter((v) => v.persistentVolumeClaim)
          .map((v) => objectLink('PersistentVolumeClaim', o.metadata.namespace, v.persistentVolumeClaim.claimName)));
  add('Device claims',
      (s.resourceClaims || []).map((c) => c.resourceClaimName || `from template ${c.resourceClaimTemplateName}`));
  return pairs.length ? kv(pairs)
                      : h('div', {class: 'faint'}, 'None: every node with room and without foreign taints will do.');
}

function nodeDetails(o, stops) {
  const name = o.metadata.name, bars = h('div', {class: 'col'}),
        fill = () => replace(bars, nodeBars(row('nodes', name)));
  fill();
  if (!stops.nodeBars) {
    stops.nodeBars = true;
    stops.push(subscribe('nodes', ({changed}) => {
      if (changed && changed.some((c) => c.row.key === name)) stops.fillBars();
    }));
  }
  stops.fillBars = fill;
  const st = o.status || {}, info = st.nodeInfo || {};
  return [
    h('div', {class: 'grid two'}, panel('Resources', {}, bars),
      panel('Node', {}, kv([
              [
                'Taints',
                (o.spec.taints || []).length
                    ? h('span', {class: 'tags'},
                        o.spec.taints.map((t) => h('span', {class: 'tag label warn'}, taintText(t))))
                    : h('span', {class: 'faint'}, 'none')
              ],
              ['Schedulable', o.spec.unschedulable ? 'no, cordoned' : 'yes'], ['Pod CIDR', o.spec.podCIDR],
              ['Addresses', (st.addresses || []).map((a) => a.address).join(', ')], ['Kubelet', info.kubeletVersion],
              ['System', [info.osImage, info.architecture].filter(Boolean).join(', ')],
              ['Images', (st.images || []).length ? `${st.images.length} images` : '']
            ]))),
    panel(
        'Biggest pods', {flush: true, tools: linkTab('All pods of this node', to('nodes', name, {tab: 'pods'}))},
        biggest(name)),
    conditions(st.conditions), meta(o)
  ];
}
function nodeBars(n) {
  if (!n) return h('div', {class: 'faint'}, 'Not known yet.');
  return resourceNames(n).map((res) => {
    const a = amount(n.allocatable || {}, res), u = amount(n.requested || {}, res), q = (x) => fmt.quantity(res, x);
    return h(
        'div', {},
        h('div', {class: 'row'}, h('span', {}, res), h('span', {class: 'grow'}),
          h('span', {class: 'num muted'}, `${q(u)} of ${q(a)}, ${u > a ? 'over by' : 'free'} ${q(Math.abs(a - u))}`)),
        stackedBar(
            [{
              value: Math.min(u, a),
              colour: sequential(0.3 + 0.6 * Math.min(1, a ? u / a : 0)),
              title: `requested ${q(u)}`
            }],
            {max: a || 1, label: `${res}: ${q(u)} of ${q(a)} requested`}));
  });
}
function biggest(name) {
  const list = [...rows('pods').values()]
                   .filter((p) => p.node === name)
                   .sort((a, b) => b.cpu_milli - a.cpu_milli || b.memory_bytes - a.memory_bytes)
                   .slice(0, 8);
  return plainTable(
      [
        {title: 'Pod', cell: (p) => linkTo(p.key, 'pods', p.namespace, p.name)},
        {title: 'Status', cell: (p) => tag(...podStatus(p))},
        {title: 'Priority', align: 'right', cell: (p) => fmt.count(p.priority || 0)},
        {title: 'CPU', align: 'right', cell: (p) => fmt.cpu(p.cpu_milli || 0)},
        {title: 'Memory', align: 'right', cell: (p) => fmt.bytes(p.memory_bytes || 0)}
      ],
      list, {emptyText: 'No pods run here.'});
}

function genericDetails(o) {
  const out = [], skip = new Set(['apiVersion', 'kind', 'metadata', 'status']);
  const main = Object.fromEntries(Object.entries(o).filter(([k]) => !skip.has(k)));
  out.push(h(
      'div', {class: 'grid two'},
      panel('Specification', {}, tree(Object.keys(main).length === 1 && main.spec ? main.spec : main)),
      panel(
          'Status', {}, tree(Object.fromEntries(Object.entries(o.status || {}).filter(([k]) => k !== 'conditions'))))));
  if ((o.status || {}).conditions) out.push(conditions(o.status.conditions));
  out.push(meta(o));
  return out;
}
// Nested values as indented lines; deep parts are folded.
function tree(v, depth = 0) {
  if (v === null || typeof v !== 'object') return h('span', {class: 'mono'}, String(v));
  const all = Object.entries(v);
  if (!all.length) return h('span', {class: 'faint'}, Array.isArray(v) ? 'none' : 'empty');
  return h('div', {class: 'tree'}, all.map(([k, x]) => {
    if (x === null || typeof x !== 'object')
      return h('div', {}, h('span', {class: 'muted'}, `${k}: `), h('span', {class: 'mono'}, String(x)));
    return h(
        'details', {open: depth < 3 && Object.keys(x).length <= 30},
        h('summary', {}, h('span', {class: 'muted'}, k),
          h('span', {class: 'faint'}, Array.isArray(x) ? ` ${plural(x.length, 'item')}` : '')),
        tree(x, depth + 1));
  }));
}
