// SPDX-License-Identifier: Apache-2.0
//
// lib.js - what every screen of the page is made of
//
// Rule of the house: what comes from objects becomes text nodes or attributes, never markup; nothing here
// or in a screen makes markup of text. Styles are classes (app.css) or h()'s `style` object: the policy of the
// server forbids style attributes in markup.
//
// ELEMENTS
//   h(tag, props?, ...children) -> Element   h('button', {class: 'primary', onclick: f, disabled: b}, 'Apply')
//       props: class, style {name: value} (also '--x'), dataset {}, on<event>: function, value/checked/disabled...,
//       everything else an attribute (true: empty, false/null: left out). Children: text, numbers, nodes, arrays,
//       null/false are left out. h('svg:path', {...}) makes SVG.
//   replace(el, ...children), icon(name), debounce(ms, f), uniqueId(prefix)
//
// SCREENS AND ROUTES: #/NAME/SEGMENT/...?key=value
//   registerScreen(name, {title, key?, nav?: {group, order, label?}, mount(el, route), update?(route), unmount?()})
//       key: the shortcut after 'g' (g o = overview). nav: absent: not in the navigation, else ICONS has one of this name. group: one of navGroups.
//       mount fills `el` (an empty div inside <main>). A new hash of the same screen calls update(route) when there
//       is one, else unmount and mount. route: {name, params: [decoded segments], query: {key: value}}.
//       mount may return a function: it is called at unmount. Errors it throws are shown.
//   navigate(hashOrParts, {replace?}), to('pods', ns, name, {query}) -> '#/pods/ns/name?...', setQuery({k: v|null})
//   linkTo(text, ...parts) -> <a>; podLink(ns, name), nodeLink(name); setTitle(text, ...crumbs)
//
// SERVER
//   fetchJSON(path, {method, body, type, accept, signal, timeout, raw}) -> value; body: a string goes as it is (type says what it
//       is), anything else as JSON. Throws ApiError {message, status, field, line, causes: [{field, message}], body}
//       for every status >= 400 and for a server that does not answer (status 0). fetchText(path, o) -> text.
//   The token of the settings screen is sent with every request.
//
// FORMATS  fmt.cpu(milli) fmt.bytes(n) fmt.count(n) fmt.percent(0..1) fmt.age(rfc3339) fmt.since(rfc3339) fmt.time(rfc3339)
//          fmt.date(rfc3339) fmt.ns(n) fmt.quantity(name, n): by resource name; parseQuantity('100m') -> 0.1
//          reasonsOf(message): what stands behind "0/5 nodes are available:"; plural(n, 'pod') -> '1 pod'; compareNames(a, b): node-2 before node-10
//
// TABLE    new Table({...}) (table.js; options stand there): virtual rows, sort, search, keyboard, selection, export.
// WIDGETS  (widgets.js) dialog({title, body, buttons, wide}), confirmDialog({title, body, confirm, danger}) -> bool,
//          toast(text, tone), tabs(items, {selected, onSelect}), panel(title, {tools}, ...body), tag(text, tone), labelTags(labels),
//          kv(pairs), note(tone, ...), empty(title, text, ...buttons), errorNote(error), spinner(text), segmented(items, value, onChange),
//          stackedBar(segments, {max, height}), legend(items), lineChart({...}), canvasView(el, draw), tip(x, y, nodes|null),
//          colour(i): category colour (a CSS var), sequential(t): the theme's scale from 0 to 1 as 'rgb()', inkOn(t)
//          download(name, text, type), menuButton(label, items), plainTable(columns, rows)
// EDITOR   (editor.js) new YamlEditor({value, label, readOnly, onChange, onSubmit}) .el .value .setErrors([{line, message, warning}])
//          .problems(el); diffView(a, b); lineOfField(yaml, field) -> line
// STORE    (store.js) see there.

const SVG = 'http://www.w3.org/2000/svg';

// Buttons that change the cluster are made with `writes: true`. On a copy of somebody else's cluster they are off, and say why.
let noWrites = '';
function markWriting(el) {
  el.dataset.writes = '';
  if (!noWrites) return;
  el.disabled = true;
  Object.defineProperty(el, 'disabled', {get: () => true, set: () => {}, configurable: true}); // whoever says otherwise
  el.title = noWrites;
}
export function forbidWrites(why) {
  noWrites = why;
  for (const el of document.querySelectorAll('[data-writes]')) markWriting(el);
}

export function h(tag, props, ...children) {
  const svg = tag.startsWith('svg:');
  const el = svg ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  if (props !== null && (typeof props !== 'object' || props instanceof Node || Array.isArray(props))) {
    children.unshift(props);
    props = null;
  }
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'style') setStyle(el, value);
    else if (name === 'dataset') Object.assign(el.dataset, value);
    else if (name === 'class') el.setAttribute('class', value);
    else if (name === 'writes') markWriting(el);
    else if (name.startsWith('on') && typeof value === 'function') el.addEventListener(name.slice(2), value);
    else if (!svg && ['value', 'checked', 'disabled', 'hidden', 'selected', 'indeterminate', 'readOnly'].includes(name))
      el[name] = value;
    else el.setAttribute(name, value === true ? '' : String(value));
  }
  append(el, children);
  // A select's value can be set only when its options are there.
  if (el.tagName === 'SELECT' && props && props.value !== undefined) el.value = props.value;
  return el;
}

function setStyle(el, style) {
  for (const [k, v] of Object.entries(style)) {
    if (v === null || v === undefined) continue;
    if (k.startsWith('--')) el.style.setProperty(k, v);
    else el.style[k] = v;
  }
}

// Characters that turn the direction of what follows would let a name pass for another: they are shown by their number.
export const visible = (text) => text.replace(
    /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`);

function append(el, children) {
  for (const c of children) {
    if (c === null || c === undefined || c === false || c === true) continue;
    if (Array.isArray(c)) append(el, c);
    else el.append(c instanceof Node ? c : document.createTextNode(visible(String(c))));
  }
}

export function replace(el, ...children) {
  el.replaceChildren();
  append(el, children);
  return el;
}

let ids = 0;
export const uniqueId = (prefix) => `${prefix}-${++ids}`;

export function debounce(ms, f) {
  let t = 0;
  const run = (...args) => {
    clearTimeout(t);
    t = setTimeout(() => f(...args), ms);
  };
  run.cancel = () => clearTimeout(t);
  return run;
}

// Strokes on a grid of 16. A screen's icon has the screen's name and is no other's.
const ICONS = {
  overview: 'M2 2.5h5v6H2zM9 2.5h5v3H9zM9 7.5h5v6H9zM2 10.5h5v3H2z',
  map:
      'M2 2h3.4v3.4H2zM6.3 2h3.4v3.4H6.3zM10.6 2H14v3.4h-3.4zM2 6.3h3.4v3.4H2zM6.3 6.3h3.4v3.4H6.3zM10.6 6.3H14v3.4h-3.4zM2 10.6h3.4V14H2zM6.3 10.6h3.4V14H6.3z',
  nodes: 'M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.1M4.5 11h.1',
  pods: 'M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM8 8v6M8 8l5.4-3M8 8 2.6 5',
  events: 'M3 3h10v8H8l-3 3v-3H3z',
  tour: 'M4 14.5v-13M4 2.5h9l-2.5 3 2.5 3H4',
  comparison: 'M6 3.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10 3.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9',
  decisions: 'M8 2v4M8 6 4 10M8 6l4 4M4 10v4M12 10v4',
  whatif: 'M5.6 6A2.5 2.5 0 1 1 8.7 8.4C8 8.7 8 9.3 8 10M8 13v.2',
  queue: 'M2 4h12M2 8h9M2 12h6',
  groups:
      'M8 2.2a2.1 2.1 0 1 1 0 4.2 2.1 2.1 0 0 1 0-4.2M4 9.4a2.1 2.1 0 1 1 0 4.2 2.1 2.1 0 0 1 0-4.2M12 9.4a2.1 2.1 0 1 1 0 4.2 2.1 2.1 0 0 1 0-4.2',
  timeline: 'M8 2v6l3.5 2M14 8A6 6 0 1 1 8 2',
  capacity: 'M2.8 12.5a6 6 0 1 1 10.4 0M8 9.5l3-4M2.8 12.5h2M11.2 12.5h2',
  drain: 'M8 1.8c2.8 3.4 4.3 5.6 4.3 7.6a4.3 4.3 0 0 1-8.6 0C3.7 7.4 5.2 5.2 8 1.8z',
  rebalance: 'M8 2v12M5 14h6M2.8 4h10.4M2.8 4 1 9.2h3.6zM13.2 4l-1.8 5.2H15z',
  weights: 'M5 6h6l2.2 8H2.8zM8 6a2 2 0 1 1 .1 0',
  configdiff: 'M3 1.8h10v12.4H3zM8 3.8v4M6 5.8h4M6 11h4',
  scenarios: 'M4 2.5l9 5.5-9 5.5z',
  replay: 'M3 8a5 5 0 1 0 1.6-3.6M3 2v3h3',
  edit: 'M3 13l.7-3L11 2.7 13.3 5 6 12.3zM9.5 4.2l2.3 2.3',
  config: 'M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M9 3v3h2.5V3zM4.2 10v3h2.5v-3z',
  transfer: 'M4.5 13V3M4.5 3 2 5.5M4.5 3 7 5.5M11.5 3v10M11.5 13 9 10.5M11.5 13l2.5-2.5',
  settings:
      'M8 5.5A2.5 2.5 0 1 1 8 10.5 2.5 2.5 0 0 1 8 5.5M8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4',
  deployments: 'M3 6h7v7H3zM6 3h7v7',
  replicasets: 'M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3',
  statefulsets: 'M7 4h7M7 8h7M7 12h7M2 3l1.5-1v4M2 9.5c0-2 3-2 3 0L2 13h3',
  daemonsets: 'M1.8 9h3.4v4H1.8zM6.3 9h3.4v4H6.3zM10.8 9h3.4v4h-3.4zM3.5 4v2.5M8 4v2.5M12.5 4v2.5',
  jobs: 'M3 3h10v10H3zM5.5 8l2 2 3.5-4',
  cronjobs: 'M8 4.2a4.9 4.9 0 1 1 0 9.8 4.9 4.9 0 0 1 0-9.8M8 6.5V9l2 1M1.8 4.4 4.2 2M14.2 4.4 11.8 2',
  namespaces: 'M2 3.5h4.2L8 5.5h6v8H2z',
  persistentvolumeclaims: 'M2 4c0-2.4 8-2.4 8 0v8c0 2.4-8 2.4-8 0zM2 4c0 2.4 8 2.4 8 0M13 6.5v4M11 8.5h4',
  persistentvolumes: 'M2.5 4c0-2.6 11-2.6 11 0v8c0 2.6-11 2.6-11 0zM2.5 4c0 2.6 11 2.6 11 0M2.5 8c0 2.6 11 2.6 11 0',
  storageclasses: 'M2 2.5h5.5l6.2 6.2-5 5L2 7zM5 5.5h.1',
  priorityclasses: 'M3 8.5l5-5 5 5M3 13l5-5 5 5',
  poddisruptionbudgets: 'M8 1.8 13 4v4c0 3-2 5-5 6.2C5 13 3 11 3 8V4z',
  resourceclaims: 'M10.5 2a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7M8 8l-6 6M4 12l1.8 1.8',
  resourceslices:
      'M4 4h8v8H4zM6 1.5V4M10 1.5V4M6 12v2.5M10 12v2.5M1.5 6H4M1.5 10H4M12 6h2.5M12 10h2.5',
  deviceclasses: 'M2.5 2.5h11v11h-11zM6 6h4v4H6z',
  kind: 'M5 3H3v10h2M11 3h2v10h-2M7 6.5h2v3H7z',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.4 10.4 14 14',
  sun:
      'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.1 1.1M11.9 11.9 13 13M3 13l1.1-1.1M11.9 4.1 13 3',
  moon: 'M13.2 9.6A5.8 5.8 0 1 1 6.4 2.8a4.6 4.6 0 0 0 6.8 6.8z',
  help: 'M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8M6.2 6.3a1.8 1.8 0 1 1 2.5 1.8c-.5.2-.7.5-.7 1M8 11.4v.1',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'M4 4l8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  trash: 'M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4M9.2 7v4',
  download: 'M8 2v8M8 10 5 7M8 10l3-3M3 13.5h10',
  upload: 'M8 11V3M8 3 5 6M8 3l3 3M3 13.5h10',
  refresh: 'M13 8a5 5 0 1 1-1.6-3.6M13 2v3h-3',
};
export function icon(name) {
  return h(
      'svg:svg', {class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false'},
      h('svg:path', {d: ICONS[name] || ICONS.kind}));
}

// ---- server ------------------------------------------------------------------------------------------------

export class ApiError extends Error {
  constructor(message, {status = 0, field, line, causes = [], body} = {}) {
    super(message);
    Object.assign(this, {name: 'ApiError', status, field, line, causes, body});
  }
}

export const auth = {
  get token() {
    try {
      return sessionStorage.getItem('berth-token') || '';
    } catch { return ''; }
  },
  set token(t) {
    try {
      t ? sessionStorage.setItem('berth-token', t) : sessionStorage.removeItem('berth-token');
    } catch { /* private mode */
    }
  },
  headers() { return this.token ? {Authorization: `Bearer ${this.token}`} : {};},
  needed: () => {},  // main.js: what to do when the server answers 401
};

async function request(path, o = {}) {
  const headers = {Accept: o.accept || 'application/json', ...auth.headers()};
  let body = o.body;
  if (body !== undefined && body !== null) {
    const raw = typeof body === 'string' || body instanceof Blob || body instanceof ArrayBuffer;
    headers['Content-Type'] = o.type || 'application/json';
    if (!raw) body = JSON.stringify(body);
  }
  let signal = o.signal;
  if (o.timeout)
    signal = signal ? AbortSignal.any([signal, AbortSignal.timeout(o.timeout)]) : AbortSignal.timeout(o.timeout);
  let r;
  try {
    r = await fetch(
        path, {method: o.method || 'GET', headers, body, signal, cache: 'no-store', credentials: 'same-origin'});
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new ApiError(
        e.name === 'TimeoutError' ? 'The server took too long to answer.' : 'The server does not answer.', {status: 0});
  }
  if (r.ok) return r;
  if (r.status === 401) auth.needed();
  throw await errorOf(r);
}

async function errorOf(r) {
  let text = '', v = null;
  try {
    text = await r.text();
    v = JSON.parse(text);
  } catch { /* not JSON */
  }
  if (!v || typeof v !== 'object')
    return new ApiError(text.trim().slice(0, 2000) || `${r.status} ${r.statusText}`, {status: r.status});
  const causes = (v.details && v.details.causes) || [];
  return new ApiError(v.message || `${r.status} ${r.statusText}`, {
    status: r.status,
    field: v.field || (causes[0] && causes[0].field),
    line: v.line,
    causes,
    body: v,
  });
}

export async function fetchJSON(path, o) {
  const r = await request(path, o);
  const text = await r.text();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch { throw new ApiError('The server\'s answer is not JSON.', {status: r.status}); }
}
export async function fetchText(path, o) { return (await request(path, {accept: '*/*', ...o})).text(); }
export const fetchRaw = request;

// ---- routes ------------------------------------------------------------------------------------------------

export const navGroups = ['Cluster', 'Decisions', 'Run', 'Tools', 'Workloads', 'Storage and policy'];
export const screens = new Map();
export function registerScreen(name, def) {
  screens.set(name, {name, ...def});
  routesChanged();
}
let routesChanged = () => {};
let current = null;  // {route, screen, el, dispose}

function parseHash(hash) {
  const [path, search] = hash.replace(/^#\/?/, '').split('?');
  const seg = path.split('/').filter((s) => s !== '').map((s) => {
    try {
      return decodeURIComponent(s);
    } catch { return s; }
  });
  return {
    name: seg[0] || 'overview',
    params: seg.slice(1),
    query: Object.fromEntries(new URLSearchParams(search || ''))
  };
}
export function to(...parts) {
  const query = parts.length && parts[parts.length - 1] !== null && typeof parts[parts.length - 1] === 'object'
      ? parts.pop()
      : null;
  let s =
      '#/' + parts.filter((p) => p !== undefined && p !== null && p !== '').map((p) => encodeURIComponent(p)).join('/');
  const q =
      new URLSearchParams(Object.entries(query || {}).filter(([, v]) => v !== null && v !== undefined && v !== ''));
  if (q.size) s += '?' + q;
  return s;
}
export function navigate(hash, {replace: r} = {}) {
  const target = Array.isArray(hash) ? to(...hash) : hash;
  if (r) {
    history.replaceState(null, '', target);
    onHash();
  } else location.hash = target;
}
export const route = () => parseHash(location.hash);
// Changes the query of the address without mounting anything anew: for filters and tabs.
export function setQuery(change) {
  const r = route(), q = {...r.query, ...change};
  history.replaceState(null, '', to(r.name, ...r.params, q));
  if (current) current.route = route();
}
export const linkTo = (text, ...parts) => h('a', {href: to(...parts)}, text);
export const podLink = (ns, name, text) => linkTo(text ?? name, 'pods', ns, name);
export const nodeLink = (name) => (name ? linkTo(name, 'nodes', name) : '');

// What one screen leaves for the next: {config: text for the configuration diff}
export const handover = {};

let titleSink = () => {};
export function setTitle(text, ...crumbs) { titleSink(text, crumbs); }

export function leave() {
  if (!current) return;
  const c = current;
  current = null;
  try {
    if (c.screen.unmount) c.screen.unmount();
    if (typeof c.dispose === 'function') c.dispose();
  } catch (e) { console.error(e); }
  c.el.remove();
}

function onHash() {
  const r = route(), screen = screens.get(r.name), main = document.getElementById('main'), moved = Boolean(current);
  if (current && screen === current.screen && screen.update) {
    current.route = r;
    screen.update(r);
    return routesChanged(moved);
  }
  leave();
  const el = h('div', {class: 'screen'});
  main.replaceChildren(el);
  main.scrollTop = 0;
  if (!screen) {
    setTitle('Not found');
    el.append(
        h('div', {class: 'empty'}, h('h2', {}, 'There is no such page'), h('p', {}, location.hash),
          h('p', {}, linkTo('To the overview', 'overview'))));
    return routesChanged(moved);
  }
  setTitle(screen.title);
  current = {route: r, screen, el};
  try {
    const out = screen.mount(el, r);
    if (out && typeof out.then === 'function')
      out.then((d) => {
        if (current && current.el === el) current.dispose = d;
        else if (typeof d === 'function') d();
      }, (e) => showFailure(el, e));
    else if (current && current.el === el) current.dispose = out;
  } catch (e) { showFailure(el, e); }
  routesChanged(moved);
}
function showFailure(el, e) {
  console.error(e);
  el.append(h('div', {class: 'note bad'}, 'This page could not be shown: ', e.message));
}
export function startRouter({onTitle, onRoute}) {
  titleSink = onTitle;
  routesChanged = onRoute;
  window.addEventListener('hashchange', onHash);
  onHash();
}

// ---- formats -----------------------------------------------------------------------------------------------

const SI = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60
};
export function parseQuantity(s) {
  if (typeof s === 'number') return s;
  const m = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/.exec(String(s ?? '').trim());
  return m && SI[m[2]] !== undefined ? Number(m[1]) * SI[m[2]] : NaN;
}
const round = (x, n = 1) => String(Number(x.toFixed(Math.abs(x) >= 100 ? 0 : n)));
const counter = new Intl.NumberFormat('en-US');
export const fmt = {
  count: (n) => (n === undefined || n === null ? '' : counter.format(n)),
  cpu: (m) =>
      (m === undefined || m === null ? ''
           : Math.abs(m) < 1000      ? `${round(m)}m`
                                     : counter.format(Number((m / 1000).toFixed(m < 100000 ? 2 : 0)))),
  bytes(n) {
    if (n === undefined || n === null) return '';
    const units = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
    let i = 0, x = n;
    while (Math.abs(x) >= 1024 && i < units.length - 1) {
      x /= 1024;
      i++;
    }
    return `${round(x)}${i ? units[i] : ' B'}`;
  },
  quantity(name, n) {
    if (name === 'cpu') return fmt.cpu(n);
    if (name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-')) return fmt.bytes(n);
    return fmt.count(n);
  },
  percent: (x) =>
      (x === undefined || x === null || !isFinite(x) ? '' : `${x > 0 && x < 0.01 ? '<1' : Math.round(x * 100)}%`),
  seconds(s) {
    if (!isFinite(s)) return '';
    s = Math.max(0, s);
    if (s < 120) return `${Math.floor(s)}s`;
    if (s < 7200) return `${Math.floor(s / 60)}m`;
    if (s < 172800) return `${Math.floor(s / 3600)}h`;
    return `${Math.floor(s / 86400)}d`;
  },
  age: (t) => (t ? fmt.seconds((Date.now() - Date.parse(t)) / 1000) : ''),
  since: (t) => (t ? `${fmt.age(t)} ago` : ''),
  time(t) {
    const d = new Date(t);
    return t && !isNaN(d) ? d.toLocaleTimeString('en-GB') : '';
  },
  date(t) {
    const d = new Date(t);
    return t && !isNaN(d) ? d.toLocaleString('en-GB', {dateStyle: 'medium', timeStyle: 'medium'}) : '';
  },
  ns(n) {
    if (n === undefined || n === null) return '';
    if (n < 1e3) return `${n} ns`;
    if (n < 1e6) return `${round(n / 1e3)} us`;
    if (n < 1e9) return `${round(n / 1e6)} ms`;
    return `${round(n / 1e9, 2)} s`;
  },
};
export const plural = (n, word, many) => `${fmt.count(n)} ${n === 1 ? word : many || word + 's'}`;
// The reasons of "0/5 nodes are available: 4 Insufficient cpu, ... preemption: ...": what differs from pod to pod comes first. Any other message as it is.
export const reasonsOf = (message) => {
  const m = /^\d+\/\d+ nodes are available: (.+?)\.?( preemption: .*)?$/s.exec(message || '');
  return m ? m[1] : message || '';
};
const collator = new Intl.Collator('en', {numeric: true});
export const compareNames = (a, b) => collator.compare(a ?? '', b ?? '');

export * from './widgets.js';
export * from './table.js';
export * from './editor.js';
