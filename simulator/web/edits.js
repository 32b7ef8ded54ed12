// SPDX-License-Identifier: Apache-2.0
//
// edits.js - single changes of a pod, of nodes: what the what-if screen offers, and which of them are
// worth asking when a pod does not fit. Nothing here talks to the server; objects are never changed,
// copies are returned.

import { parseQuantity as quantity } from './lib.js';
import { taintText } from './kinds.js';

export const copy = (o) => JSON.parse(JSON.stringify(o));

const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 };

// A number of a resource as a quantity, rounded down (never to nothing).
export function amount(resource, n) {
  if (resource === 'cpu') {
    if (n >= 1 && Number.isInteger(n)) return String(n);
    const milli = Math.max(1, Math.floor(n * 1000));
    return `${milli > 2000 ? Math.floor(milli / 100) * 100 : milli}m`;
  }
  if (resource === 'memory' || resource.startsWith('hugepages-') || resource === 'ephemeral-storage') {
    for (const u of ['Gi', 'Mi', 'Ki']) if (n >= BINARY[u] * 4 || (n >= BINARY[u] && n % BINARY[u] === 0)) return `${Math.floor(n / BINARY[u])}${u}`;
  }
  return String(Math.max(1, Math.floor(n)));
}

const containers = (pod) => [...(pod.spec.containers || []), ...(pod.spec.initContainers || [])];

// What the pod asks for: the sum over containers, or the largest init container if that is more.
export function requests(pod) {
  const sum = {}, spec = pod.spec || {};
  const of = (c) => ({ ...((c.resources || {}).limits || {}), ...((c.resources || {}).requests || {}) });
  for (const c of spec.containers || []) for (const [r, q] of Object.entries(of(c))) sum[r] = (sum[r] || 0) + quantity(q);
  for (const c of spec.initContainers || []) for (const [r, q] of Object.entries(of(c))) sum[r] = Math.max(sum[r] || 0, quantity(q));
  return sum;
}

// ---- as text -------------------------------------------------------------------------------------

// A plain scalar that every reader of YAML takes for the same string.
const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_./-]+)*$/, WORDS = /^(?:y|n|yes|no|on|off|true|false|null|~)$/i;

function scalar(v) {
  if (typeof v !== 'string') return JSON.stringify(v);
  return (PLAIN.test(v) && !WORDS.test(v)) || /^[0-9]+(?:m|[KMGTP]i|[kMGTP])$/.test(v) ? v : JSON.stringify(v);
}

const isEmpty = (v) => v === null || typeof v !== 'object' || (Array.isArray(v) ? !v.length : !Object.keys(v).length);

function block(v, indent, out) {
  const pad = ' '.repeat(indent);
  if (Array.isArray(v)) {
    for (const x of v) {
      if (isEmpty(x)) { out.push(`${pad}- ${scalar(x)}`); continue; }
      const inner = [];
      block(x, indent + 2, inner);
      out.push(`${pad}- ${inner[0].slice(indent + 2)}`, ...inner.slice(1));
    }
    return;
  }
  for (const [k, x] of Object.entries(v)) {
    if (x === undefined) continue;
    if (isEmpty(x)) out.push(`${pad}${scalar(k)}: ${scalar(x)}`);
    else { out.push(`${pad}${scalar(k)}:`); block(x, Array.isArray(x) ? indent : indent + 2, out); }
  }
}

export function toYaml(v) {
  if (isEmpty(v)) return scalar(v) + '\n';
  const out = [];
  block(v, 0, out);
  return out.join('\n') + '\n';
}

// ---- of the pod ----------------------------------------------------------------------------------

export function scaled(pod, resource, factor) {
  const p = copy(pod);
  for (const c of containers(p)) {
    for (const list of [(c.resources || {}).requests, (c.resources || {}).limits])
      if (list && list[resource] !== undefined) list[resource] = amount(resource, quantity(list[resource]) * factor);
  }
  return p;
}

export function without(pod, ...path) {
  const p = copy(pod);
  let o = p.spec;
  for (const k of path.slice(0, -1)) { if (!o[k]) return p; o = o[k]; }
  delete o[path[path.length - 1]];
  return p;
}

export function tolerating(pod, taint) {
  const p = copy(pod), t = taint ? { key: taint.key, operator: taint.value ? 'Equal' : 'Exists', effect: taint.effect } : { operator: 'Exists' };
  if (taint && taint.value) t.value = taint.value;
  p.spec.tolerations = [...(p.spec.tolerations || []), t];
  return p;
}

// spec.priority may only be what its class says; with neither, the number itself is asked.
export function withPriority(pod, priority) {
  const p = copy(pod);
  delete p.spec.priorityClassName;
  delete p.spec.preemptionPolicy;
  p.spec.priority = priority;
  return p;
}

const hard = (c) => !c.whenUnsatisfiable || c.whenUnsatisfiable === 'DoNotSchedule';

function withoutHostPorts(pod) {
  const p = copy(pod);
  for (const c of containers(p)) for (const port of c.ports || []) delete port.hostPort;
  return p;
}

function softSpread(pod) {
  const p = copy(pod);
  for (const c of p.spec.topologySpreadConstraints || []) if (hard(c)) c.whenUnsatisfiable = 'ScheduleAnyway';
  return p;
}

// What the server owns goes: the rest can be created again under this or another name.
export function bare(object) {
  const o = copy(object), m = o.metadata || {};
  for (const k of ['uid', 'resourceVersion', 'managedFields', 'creationTimestamp', 'generation', 'selfLink', 'ownerReferences', 'generateName', 'deletionTimestamp', 'deletionGracePeriodSeconds']) delete m[k];
  if (o.kind === 'Pod') {
    delete o.status;
    delete o.spec.nodeName;
    for (const c of containers(o)) if (c.volumeMounts && !c.volumeMounts.length) delete c.volumeMounts;
  }
  return o;
}

// ---- of nodes ------------------------------------------------------------------------------------

export function nodeLike(node, name, labels, taints) {
  const n = bare(node);
  n.metadata.name = name;
  n.metadata.labels = { ...(n.metadata.labels || {}), 'kubernetes.io/hostname': name, ...(labels || {}) };
  n.spec = {};
  if (taints && taints.length) n.spec.taints = taints;
  return n;
}

export function cordoned(node, on) {
  const n = copy(node);
  n.spec = n.spec || {};
  if (on) n.spec.unschedulable = true;
  else delete n.spec.unschedulable;
  n.spec.taints = (n.spec.taints || []).filter((t) => t.key !== 'node.kubernetes.io/unschedulable');
  if (on) n.spec.taints.push({ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' });
  return n;
}

// "key=value:Effect" or "key:Effect"; null when it is neither.
export function parseTaint(text) {
  const m = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text.trim());
  return m ? { key: m[1], ...(m[2] ? { value: m[2] } : {}), effect: m[3] } : null;
}

export function tainted(node, taint) {
  const n = copy(node);
  n.spec = n.spec || {};
  n.spec.taints = (n.spec.taints || []).filter((t) => !(t.key === taint.key && t.effect === taint.effect)).concat([taint]);
  return n;
}

export function untainted(node) {
  const n = copy(node);
  n.spec = { ...(n.spec || {}) };
  delete n.spec.taints;
  return n;
}

export function labelled(node, key, value) {
  const n = copy(node);
  n.metadata.labels = { ...(n.metadata.labels || {}) };
  if (value === null) delete n.metadata.labels[key];
  else n.metadata.labels[key] = value;
  return n;
}

// ---- what might make it fit ----------------------------------------------------------------------

const DOMAIN = ['cpu', 'memory'];

function free(row, resource) {
  const a = row.allocatable || {}, r = row.requested || {};
  if (resource === 'cpu') return ((a.cpu_milli || 0) - (r.cpu_milli || 0)) / 1000;
  if (resource === 'memory') return (a.memory_bytes || 0) - (r.memory_bytes || 0);
  return ((a.resources || {})[resource] || 0) - ((r.resources || {})[resource] || 0);
}

// An idea is {text, edit(pod) -> pod} or {text, node, make(node object) -> changes}, or both.
function sizeIdeas(pod, rows, lacking, near) {
  const out = [], want = requests(pod), list = lacking.filter((r) => want[r] > 0);
  for (const r of list) {
    out.push({ text: `half the ${r}: ${amount(r, want[r] / 2)} instead of ${amount(r, want[r])}`, edit: (p) => scaled(p, r, 0.5) });
    // What is free where nothing but room is missing.
    const most = Math.max(0, ...rows.filter((n) => near.has(n.name)).map((n) => free(n, r)));
    if (most > 0 && most < want[r] && Math.abs(most - want[r] / 2) > want[r] * 0.01) out.push({ text: `as much ${r} as is free on one node: ${amount(r, most)} instead of ${amount(r, want[r])}`, edit: (p) => scaled(p, r, (most * 0.9999) / want[r]) });
  }
  if (list.length > 1) out.push({ text: `half of ${list.join(' and ')}`, edit: (p) => list.reduce((q, r) => scaled(q, r, 0.5), p) });
  return out;
}

function placementIdeas(pod) {
  const out = [], s = pod.spec, a = s.affinity || {};
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  if (s.nodeSelector && Object.keys(s.nodeSelector).length)
    out.push({ text: `no node selector (${Object.entries(s.nodeSelector).map(([k, v]) => `${k}=${v}`).join(', ')})`, edit: (p) => without(p, 'nodeSelector') });
  for (const [k, text] of [['nodeAffinity', 'node affinity'], ['podAffinity', 'pod affinity'], ['podAntiAffinity', 'pod anti-affinity']])
    if ((a[k] || {})[required]) out.push({ text: `no required ${text}`, edit: (p) => without(p, 'affinity', k, required) });
  if ((s.topologySpreadConstraints || []).some(hard)) out.push({ text: 'spread preferred, not required', edit: softSpread });
  if (containers(pod).some((c) => (c.ports || []).some((p) => p.hostPort))) out.push({ text: 'no host ports', edit: withoutHostPorts });
  if ((s.schedulingGates || []).length) out.push({ text: `no scheduling gates (${s.schedulingGates.map((g) => g.name).join(', ')})`, edit: (p) => without(p, 'schedulingGates') });
  return out;
}

const tolerates = (pod, t) => (pod.spec.tolerations || []).some((o) => (!o.key || o.key === t.key) && (!o.effect || o.effect === t.effect)
  && (o.operator === 'Exists' || (o.value || '') === (t.value || '')));

function taintIdeas(pod, rows) {
  const seen = new Map();
  for (const n of rows) {
    for (const t of n.taints || []) {
      if (t.effect === 'PreferNoSchedule' || tolerates(pod, t) || t.key === 'node.kubernetes.io/unschedulable') continue;
      seen.set(taintText(t), { t, n: ((seen.get(taintText(t)) || {}).n || 0) + 1 });
    }
  }
  return [...seen.values()].sort((a, b) => b.n - a.n).slice(0, 4)
    .map(({ t, n }) => ({ text: `tolerate the taint ${taintText(t)} (${n} ${n === 1 ? 'node has' : 'nodes have'} it)`, edit: (p) => tolerating(p, t) }));
}

const size = (n) => n.allocatable.cpu_milli * 1e9 + n.allocatable.memory_bytes;
const best = (list, by) => list.reduce((a, b) => (!a || by(b) > by(a) ? b : a), null);

// As large a node of that kind as the pod needs, with a tenth to spare.
function enlarged(node, want, lacking) {
  const n = copy(node);
  for (const r of lacking) for (const k of ['allocatable', 'capacity']) {
    const now = quantity(((n.status || {})[k] || {})[r] || '0');
    if (now < want[r] * 1.1) n.status[k][r] = amount(r, r === 'cpu' ? Math.ceil(want[r] * 1.1) : want[r] * 1.1);
  }
  return n;
}

// Ideas that change nodes name them; the caller fetches the node and makes the change.
function nodeIdeas(pod, rows, groups, lacking) {
  const out = [], selector = Object.entries(pod.spec.nodeSelector || {}), want = requests(pod);
  for (const n of rows.filter((x) => x.unschedulable).sort((a, b) => size(b) - size(a)).slice(0, 2)) out.push({ text: `uncordon ${n.name}`, node: n.name, make: (o) => [{ manifest: cordoned(o, false) }] });
  const largest = best(rows, size), small = largest && lacking.some((r) => want[r] > free({ ...largest, requested: {} }, r));
  if (largest) out.push({ text: `one more node like the largest, ${largest.name}, without taints`, node: largest.name, make: (o) => [{ manifest: nodeLike(o, 'one-more-node', Object.fromEntries(selector)) }] });
  if (small) out.push({ text: `one more node that is large enough (${lacking.filter((r) => want[r]).map((r) => `${amount(r, want[r])} ${r}`).join(', ')} and a tenth more)`, node: largest.name,
    make: (o) => [{ manifest: enlarged(nodeLike(o, 'one-larger-node', Object.fromEntries(selector)), want, lacking.filter((r) => want[r])) }] });
  if (selector.length && groups.some((g) => /affinity\/selector/.test((g.reasons || []).join()))) {
    const near = best(rows.filter((n) => !(n.taints || []).length && !n.unschedulable), (n) => free(n, 'cpu'));
    if (near) out.push({ text: `label ${near.name} with ${selector.map(([k, v]) => `${k}=${v}`).join(', ')}`, node: near.name,
      make: (o) => [{ manifest: selector.reduce((x, [k, v]) => labelled(x, k, v), o) }] });
  }
  return out;
}

// Single changes that are worth asking, those that answer the reasons first. rows: nodes of the store;
// top: the highest priority of any pod.
export function ideas(pod, rows, explanation, top) {
  const groups = explanation.rejectedGroups || [], all = groups.flatMap((g) => g.reasons || []);
  const lacking = [...new Set(all.map((r) => (/^Insufficient (.+)$/.exec(r) || [])[1]).filter(Boolean))];
  const near = new Set((explanation.rejected || []).filter((n) => (n.reasons || []).some((r) => /^Insufficient /.test(r))).map((n) => n.node));
  if (explanation.result === 'Gated') return placementIdeas(pod).slice(-1);
  const list = [...placementIdeas(pod), ...(all.some((r) => /taint/.test(r)) ? taintIdeas(pod, rows) : []), ...sizeIdeas(pod, rows, lacking, near), ...nodeIdeas(pod, rows, groups, lacking)];
  const now = pod.spec.priority || 0, higher = Math.max(top || 0, now) + 1000;
  if (rows.length && pod.spec.preemptionPolicy !== 'Never') list.push({ text: `a higher priority (${higher} instead of ${now}): evicts others`, edit: (p) => withPriority(p, higher), alone: true });
  return list;
}

// Two changes at once, for when no single one helps: pairs of different kinds, at most this many.
export function pairs(list, most) {
  const out = [], usable = list.filter((i) => !i.alone);
  for (let i = 0; i < usable.length; i++) for (let k = i + 1; k < usable.length && out.length < most; k++) {
    const [a, b] = [usable[i], usable[k]], kind = (x) => x.text.split(/[ :]/).slice(0, 2).join(' ');
    if (kind(a) === kind(b) || (a.node && b.node)) continue;
    const n = a.node ? a : b;
    out.push({ text: `${a.text}, and ${b.text}`, edit: (p) => [a, b].reduce((q, x) => (x.edit ? x.edit(q) : q), p), ...(n.node ? { node: n.node, make: n.make } : {}) });
  }
  return out;
}
