// SPDX-License-Identifier: Apache-2.0
//
// edits.js - single changes of a pod, of nodes: what the what-if screen offers. Nothing here talks to the
// server; objects are never changed, copies are returned.

import { parseQuantity as quantity } from './lib.js';

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

// RFC 7386: what a fix of the server's changes of an object.
export function merged(object, patch) {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch;
  const o = object && typeof object === 'object' && !Array.isArray(object) ? { ...object } : {};
  for (const [k, v] of Object.entries(patch)) {
    if (v === null) delete o[k];
    else o[k] = merged(o[k], v);
  }
  return o;
}
