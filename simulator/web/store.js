// SPDX-License-Identifier: Apache-2.0
//
// store.js - the cluster as the page knows it, kept current by the server's change stream
//
// Pods and nodes are always followed (rows of docs/simulator-api.md, section 2); other kinds while somebody subscribes.
//   subscribe(kind, f) -> stop()    kind: 'pods', 'nodes', 'deployments.apps', 'decisions' ...: PLURAL[.GROUP]. f({rows, changed, synced})
//                                   is called once soon, then at most once a frame when something of the kind changed.
//                                   changed: [{type, row, old}] since the last call (null: look at everything).
//   rows(kind) -> Map key -> row    of kinds other than pods and nodes a row is {key, name, namespace, uid, created, labels, object}
//   row(kind, key), synced(kind), state -> 'live' | 'loading' | 'lost', onState(f(state, info)), restart()
//
// One connection carries pods and nodes, a second one what screens ask for besides. Both are read with fetch, because
// EventSource cannot send a token. A connection that ends is opened again from the last revision, with growing pauses; if
// the server cannot go back so far it says reset, and what it does not name again until `synced` goes. Rows are known
// by their key; a new uid under an old key replaces it, an older revision than the known one is ignored.
import {auth} from './lib.js';

const kinds = new Map();  // name -> {rows, subs, changed, synced, seen}
const stateSubs = new Set();
let frame = 0;

export const store = {
  state: 'loading',
  info: '',
  lost: ''  // why the cluster of before is gone, when the server says so
};

function kindOf(name) {
  let k = kinds.get(name);
  if (!k)
    kinds.set(
        name, (k = {name, rows: new Map(), subs: new Set(), changed: [], synced: false, seen: null, dirty: false}));
  return k;
}

export const rows = (kind) => kindOf(kind).rows;
export const row = (kind, key) => kindOf(kind).rows.get(key);
export const synced = (kind) => kindOf(kind).synced;
export const onState = (f) => {
  stateSubs.add(f);
  f(store.state, store.info);
  return () => stateSubs.delete(f);
};

function setState(state, info = '') {
  if (store.state === state && store.info === info) return;
  store.state = state;
  store.info = info;
  for (const f of stateSubs) f(state, info);
}

export function subscribe(kind, f) {
  const k = kindOf(kind), sub = {f, first: true};
  k.subs.add(sub);
  if (!CORE.has(kind)) extra.want(kind);
  mark(k);
  return () => {
    k.subs.delete(sub);
    if (!CORE.has(kind) && !k.subs.size) extra.drop(kind);
  };
}

function mark(k) {
  k.dirty = true;
  if (frame) return;
  // Hidden pages get no frames; they are told once a second.
  frame = document.hidden ? setTimeout(flush, 1000) : requestAnimationFrame(flush);
}

function flush() {
  frame = 0;
  for (const k of kinds.values()) {
    if (!k.dirty) continue;
    const changed = k.changed;
    k.dirty = false;
    k.changed = [];
    for (const s of k.subs) {
      try {
        s.f({rows: k.rows, changed: s.first ? null : changed, synced: k.synced});
      } catch (e) { console.error(e); }
      s.first = false;
    }
  }
}

// Whole objects become rows; of events only what tables show is kept.
function rowOf(whole) {
  const m = whole.metadata || {}, o = whole.kind === 'Event' ? shortEvent(whole) : whole;
  return {
    key: m.namespace ? `${m.namespace}/${m.name}` : m.name,
    name: m.name || '',
    namespace: m.namespace || '',
    uid: m.uid,
    revision: Number(m.resourceVersion) || 0,
    created: m.creationTimestamp,
    labels: m.labels || {},
    object: o
  };
}

function shortEvent(e) {
  const i = e.involvedObject || e.regarding || {};
  return {
    type: e.type,
    reason: e.reason,
    message: e.message || e.note,
    count: e.count,
    series: e.series,
    lastTimestamp: e.lastTimestamp,
    eventTime: e.eventTime,
    involvedObject: {kind: i.kind, namespace: i.namespace, name: i.name}
  };
}

function change(k, c) {
  const r = c.row || (c.object && rowOf(c.object));
  if (!r) return;
  const key = r.key ?? String(r.id ?? r.name ?? '');
  r.key = key;
  const old = k.rows.get(key);
  if (c.type === 'DELETED') {
    if (!old || (old.uid && r.uid && old.uid !== r.uid)) return;
    k.rows.delete(key);
  } else {
    if (old && old.uid === r.uid && old.revision > r.revision) {
      if (k.seen) k.seen.add(key);
      return;
    }
    k.rows.set(key, r);
    if (k.seen) k.seen.add(key);
  }
  if (k.subs.size) k.changed.push({type: old && c.type === 'ADDED' ? 'MODIFIED' : c.type, row: r, old});
  if (k.changed.length > 20000) {
    k.changed = [];
    for (const s of k.subs) s.first = true;
  }
}

class Stream {
  constructor(name, list) {
    this.name = name;
    this.kinds = new Set(list);
    this.revision = '';
    this.tries = 0;
    this.generation = 0;
  }

  want(kind) {
    if (this.kinds.has(kind)) return;
    // What nobody looks at any more would only be sent again; the server follows a bounded number of kinds, too.
    for (const n of [...this.kinds])
      if (!kindOf(n).subs.size) {
        this.kinds.delete(n);
        kinds.delete(n);
      }
    this.kinds.add(kind);
    this.later(true);
  }
  drop(kind) {
    this.unused = this.unused || new Set();
    this.unused.add(kind);
    clearTimeout(this.gc);
    this.gc = setTimeout(() => this.collect(), 20000);
  }
  // Kinds nobody looks at any more leave after a while, so that going back and forth costs nothing.
  collect() {
    let gone = false;
    for (const n of this.unused || [])
      if (!kindOf(n).subs.size && this.kinds.delete(n)) {
        kinds.delete(n);
        gone = true;
      }
    this.unused = null;
    if (gone) this.later(true);
  }
  later(fresh) {
    if (fresh) this.fresh = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), 20);
  }

  async open() {
    if (paused) return;
    const mine = ++this.generation;
    if (this.abort) this.abort.abort();
    if (!this.kinds.size) return;
    this.abort = new AbortController();
    if (this.fresh) {
      this.revision = '';
      this.fresh = false;
    }
    if (!this.revision) this.begin();
    const q = new URLSearchParams({kinds: [...this.kinds].join(',')});
    if (this.revision) q.set('since', this.revision);
    let why = '';
    try {
      const r = await fetch(
          `/berth/v1/watch?${q}`,
          {headers: {Accept: 'text/event-stream', ...auth.headers()}, signal: this.abort.signal, cache: 'no-store'});
      if (r.status === 401) auth.needed();
      if (!r.ok) {
        if (r.status === 410) this.revision = '';
        if (r.status === 400 && this.refused(await r.text())) {
          this.later(true);
          return;
        }
        throw new Error(`${r.status} ${r.statusText}`);
      }
      this.tries = 0;
      if (this.revision) this.isLive();
      await this.read(r.body.getReader(), mine);
      why = 'the server closed the connection';
    } catch (e) {
      if (mine !== this.generation) return;
      why = e.message;
    }
    if (mine !== this.generation) return;
    this.tries++;
    if (paused) return;
    // One end of a stream is nothing to be told of; a second one is.
    if (this.tries > 1 || this.name === 'core') setState('lost', why);
    clearTimeout(this.timer);
    this.timer = setTimeout(
        () => this.open(), Math.min(10000, 300 * 2 ** Math.min(6, this.tries)) * (0.8 + Math.random() * 0.4));
  }

  // A kind that the server does not follow is left out, so that it costs the others nothing. -> true: ask again
  refused(text) {
    const name = /"message":"\\"([^"\\]+)\\"/.exec(text);
    if (!name || !this.kinds.delete(name[1])) return false;
    const k = kindOf(name[1]);
    k.synced = true;
    mark(k);
    return true;
  }

  begin() {
    this.synced = false;
    for (const n of this.kinds) {
      const k = kindOf(n);
      k.seen = new Set();
    }
    if (this.name === 'core' && store.state !== 'lost') setState('loading');
  }
  isLive() {
    if (this.name === 'core' || core.synced) setState('live');
    this.synced = true;
  }

  finishState() {
    for (const n of this.kinds) {
      const k = kindOf(n);
      if (k.seen) {
        for (const [key, r] of k.rows)
          if (!k.seen.has(key)) {
            k.rows.delete(key);
            k.changed.push({type: 'DELETED', row: r, old: r});
          }
        k.seen = null;
      }
      k.synced = true;
      mark(k);
    }
    this.isLive();
  }

  async read(reader, mine) {
    const utf8 = new TextDecoder();
    // What has come of an event whose end has not: joined once, however many parts it came in.
    let parts = [], last = '', at = performance.now();
    // Comments come every 15 s; a connection silent for longer than three of them is dead.
    const dog = setInterval(() => {
      if (performance.now() - at > 50000) reader.cancel().catch(() => {});
    }, 5000);
    try {
      for (;;) {
        const {done, value} = await reader.read();
        if (done || mine !== this.generation) return;
        at = performance.now();
        const text = utf8.decode(value, {stream: true});
        parts.push(text);
        const ends = text.includes('\n\n') || (last === '\n' && text[0] === '\n');
        last = text[text.length - 1] ?? last;
        if (!ends) continue;
        const events = parts.join('').split('\n\n');
        parts = [events.pop()];
        for (const e of events) this.event(e);
      }
    } finally { clearInterval(dog); }
  }

  event(text) {
    let id = '', name = '', data = '';
    for (const line of text.split('\n')) {
      if (line.startsWith('data:')) data += line.slice(line[5] === ' ' ? 6 : 5);
      else if (line.startsWith('event:')) name = line.slice(6).trim();
      else if (line.startsWith('id:')) id = line.slice(3).trim();
    }
    if (!name && !data) return;
    let v = null;
    if (data) try {
        v = JSON.parse(data);
      } catch {
        console.error('change stream: not JSON');
        return;
      }
    if (name === 'reset') {
      this.revision = '';
      this.begin();
      return;
    }
    if (name === 'synced') {
      store.lost = v.lost || '';
      this.finishState();
    }
    else if (Array.isArray(v)) {
      const k = kindOf(name);
      for (const c of v) change(k, c);
      mark(k);
    }
    // Until the state is complete there is no revision to go on from.
    if (id && this.synced) this.revision = id;
    else if (name === 'synced' && v && v.revision) this.revision = String(v.revision);
  }
}

const CORE = new Set(['pods', 'nodes']);
const core = new Stream('core', CORE);
const extra = new Stream('extra', []);
export function restart() {
  core.later(true);
  if (extra.kinds.size) extra.later(true);
}
export const startStore = () => core.open();
// A browser opens six connections to a server, for all tabs together. Tabs that nobody sees give theirs back after a while,
// a page that was left does so at once: the browser may keep it for the way back, with its timers stopped. Looked at again,
// they begin anew.
let paused = false, hiding = 0;
function pause() {
  paused = true;
  for (const s of [core, extra]) {
    s.generation++;
    clearTimeout(s.timer);
    if (s.abort) s.abort.abort();
  }
}
function resume() {
  clearTimeout(hiding);
  if (!paused) return;
  paused = false;
  setState('loading');
  restart();
}
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(pause, 20000);
  else resume();
});
addEventListener('pagehide', pause);
addEventListener('pageshow', resume);
addEventListener('online', () => {
  if (store.state === 'lost') {
    core.later();
    if (extra.kinds.size) extra.later();
  }
});
