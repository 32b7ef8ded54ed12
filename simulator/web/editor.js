// SPDX-License-Identifier: Apache-2.0
//
// editor.js - a YAML editor (text area, coloured copy under it, line numbers, find), places of fields, differences of texts
//
// YAML is coloured and searched line by line here; it is read by the server only (POST /berth/v1/manifest).
import {debounce, h, replace, visible} from './lib.js';
import {Lines, order} from './lines.js';

// ---- colours: a line -> [[class, text]] --------------------------------------------------------------------

const TOKEN =
    /("(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?)|((?:^|\s)#.*$)|([{}[\],]|[&*!][\w./-]*|[|>][-+0-9]*\s*$)|([^\s"'{}[\],#:][^{}[\],:#]*?(?=\s*:(?:\s|$)))|((?<![^\s[{,])-?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?(?:[numkKMGTPE]i?)?(?=\s*(?:[,}\]]|$|\s#))|(?<![^\s[{,])(?:true|false|null|~)(?=\s*(?:[,}\]]|$|\s#)))/g;

// Whether the line stands in a | or > text; state.block is the indentation of the line that began it, -1 outside.
function inBlock(line, state) {
  const indent = line.search(/[^ ]|$/);
  if (state.block >= 0 && (!line.trim() || indent > state.block)) return true;
  const begins = /[|>]/.test(line) && /(:|^\s*-)\s+[|>][-+0-9]*\s*(#.*)?$/.test(line);
  state.block = begins ? indent : -1;
  return false;
}

function paint(line, state) {
  if (inBlock(line, state)) return [['s', line]];
  if (/^(---|\.\.\.)(\s|$)/.test(line)) return [['m', line]];
  const out = [];
  let at = 0;
  const body = line.replace(/^(\s*(?:- +)*)/, (m) => {
    out.push([m.includes('-') ? 'm' : '', m]);
    at = m.length;
    return m;
  });
  TOKEN.lastIndex = at;
  for (let m; (m = TOKEN.exec(body));) {
    if (m[0] === '') {
      TOKEN.lastIndex++;
      continue;
    }
    if (m.index > at) out.push(['', body.slice(at, m.index)]);
    const isKey = m[1] && /^\s*:(\s|$)/.test(body.slice(TOKEN.lastIndex));
    out.push([m[1] ? (isKey ? 'k' : 's') : m[2] ? 'c' : m[3] ? 'm' : m[4] ? 'k' : 'n', m[0]]);
    at = TOKEN.lastIndex;
  }
  if (at < body.length) out.push(['', body.slice(at)]);
  return out;
}

// The text of an object without the list of who manages which field.
export const withoutManaged = (yaml) => yaml.replace(/^ {2}managedFields:.*\n(?:(?: {2}-| {3,}).*\n)*/m, '');

// ---- where a field stands ----------------------------------------------------------------------------------

// lineOfField(text, 'spec.containers[0].resources.requests.cpu' or 'spec.tolerations[0]', firstLine = 1) -> line (1 based) of the deepest
// part that is there, 0 when not even the first is. Understands block style, and flow style as long as it is on the key's line.
// Map keys in brackets (annotations[a.b/c]) and in quotes are understood as the server writes them.
export function lineOfField(text, field, firstLine = 1) {
  const want = fieldParts(field), lines = text.split('\n');
  // parents: [{indent, key, index}]: what the present line stands in
  const stack = [];
  let best = {depth: 0, line: 0}, block = -1;
  lines.forEach((raw, no) => {
    if (!raw.trim() || /^\s*#/.test(raw) || /^---/.test(raw)) return;
    let indent = /^ */.exec(raw)[0].length, rest = raw.slice(indent);
    if (block >= 0) {
      if (indent > block) return;
      block = -1;
    }
    while (/^-(\s|$)/.test(rest)) {
      while (stack.length && stack[stack.length - 1].indent > indent) stack.pop();
      const top = stack[stack.length - 1];
      if (top && top.item && top.indent === indent) top.key++;
      else stack.push({indent, item: true, key: 0});
      const m = /^-\s*/.exec(rest)[0].length;
      note(no);
      indent += m;
      rest = rest.slice(m);
    }
    const key = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s"'{}[\]#][^#]*?))\s*:(?:\s+(.*))?$/.exec(rest);
    if (key) {
      while (stack.length && (stack[stack.length - 1].indent > indent || (stack[stack.length - 1].indent === indent)))
        stack.pop();
      stack.push({indent, key: key[1] ?? key[2] ?? key[3]});
      note(no);
      if (/^[|>]/.test(key[4] || '')) block = indent;
    }
  });
  function note(no) {
    let d = 0;
    while (d < stack.length && d < want.length && String(stack[d].key) === want[d]) d++;
    if (d === stack.length && d > best.depth) best = {depth: d, line: no + firstLine};
  }
  return best.line;
}
function fieldParts(field) {
  const out = [];
  for (const m of String(field || '').matchAll(/\[([^\]]*)\]|([^.[\]]+)/g))
    out.push((m[1] ?? m[2]).replace(/^["']|["']$/g, ''));
  return out;
}

// ---- the editor --------------------------------------------------------------------------------------------

// A text area lays all of its text out anew at every keystroke: 0.3 s and more for a megabyte. So it holds, as the coloured copy does,
// the lines around those in sight, of long lines the columns around those in sight: its window. A short text is in it as a whole. Caret,
// selection, composition, touch and what reads the page aloud are the browser's own there. The text itself, the selection when it
// reaches beyond the window, and undo are kept here (lines.js).
const ROW = 18, AROUND = 40, COLUMNS = 300, LONG = 1000, WHOLE = {lines: 400, length: 20000};

// Characters that turn the direction of what follows: one that is seen stands for each, so that the line stays in its order.
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const symbol = (c) => ('\u200e\u202a\u202d\u2066'.includes(c) ? '\u2192' : '\u202c\u2069'.includes(c) ? '\u2022' : c === '\u2068' ? '\u2194' : '\u2190');
const shown = (text) => text.replace(TURNS, symbol);

// Ranges [[from, to, class]] of columns, in order, become parts of their own among the coloured ones.
function marked(parts, ranges) {
  for (const [from, to, name] of ranges) {
    let at = 0;
    parts = parts.flatMap(([c, t]) => {
      const a = Math.max(0, from - at), b = Math.min(t.length, to - at);
      at += t.length;
      if (a >= b) return [[c, t]];
      return [[c, t.slice(0, a)], [`${c} ${name}`, t.slice(a, b)], [c, t.slice(b)]].filter((x) => x[1]);
    });
  }
  return parts;
}
// What of a line tells whether a block begins or ends at it.
const ends = (l) => (l.length > LONG ? l.slice(0, LONG) + l.slice(-LONG) : l);
// Columns that a line takes; those of other scripts may be twice as wide.
const widthOf = (l) => l.length + (/[^ -~]/.test(l) ? l.replace(/[ -~]/g, '').length : 0);
const KINDS = {insertText: 'type', deleteContentBackward: 'erase', deleteContentForward: 'erase'};

export class YamlEditor {
  // {value, label, readOnly, onChange(text), onSubmit(), delay: ms after which onChange is called (300)}
  constructor(o = {}) {
    this.o = o;
    this.errors = new Map();
    this.gutter = h('div', {class: 'gutter', 'aria-hidden': 'true'});
    this.pre = h('pre', {'aria-hidden': 'true'});
    this.area = h('textarea', {
      spellcheck: 'false',
      autocomplete: 'off',
      autocapitalize: 'off',
      wrap: 'off',
      'aria-label': o.label || 'YAML',
      readOnly: !!o.readOnly
    });
    this.spot = h('i', {class: 'spot', 'aria-hidden': 'true'});
    this.code = h('div', {class: 'code'}, this.pre, this.area, this.spot);
    this.el = h('div', {class: 'editor'}, this.gutter, this.code);
    this.problemsEl = h('div', {class: 'problems', role: 'log', hidden: true, 'aria-label': 'Problems'});
    this.changed = debounce(o.delay ?? 300, () => {
      this.measure();
      if (o.onChange) o.onChange(this.value);
    });
    // Where the text stands is kept: to ask while drawing would lay it out twice.
    Object.assign(this, {top: 0, room: 0, left: 0, wide: 0, ch: 0, blocks: []});
    this.text = new Lines((line) => { this.blocks.length = Math.min(this.blocks.length, (line >> 8) + 1); });
    this.listen();
    this.value = o.value || '';
  }
  listen() {
    const a = this.area, on = (name, f) => a.addEventListener(name, f);
    const selected = () => this.noteSelection();
    on('beforeinput', (e) => this.beforeInput(e));
    on('input', (e) => this.typed(e));
    on('keydown', (e) => this.onKey(e));
    on('compositionstart', () => {
      this.beforeInput({inputType: '', preventDefault() {}});
      this.composing = true;
      this.text.part();
    });
    on('compositionend', () => {
      this.composing = false;
      this.text.part();
      this.settle();
    });
    for (const name of ['copy', 'cut', 'dragstart']) on(name, (e) => this.takeOut(e));
    on('paste', (e) => {
      const text = e.clipboardData.getData('text/plain');
      e.preventDefault();
      this.noteSelection();
      if (text && !a.readOnly) this.put(text.replace(/\r\n?/g, '\n'));
    });
    // Who comes by the keyboard sees the caret; the browser has scrolled to where the text area's own was.
    let pressed = false;
    on('pointerdown', () => { pressed = document.activeElement !== a; });
    on('focus', () => {
      if (!pressed) this.reveal(this.sel.head);
      pressed = false;
      this.select();
      document.addEventListener('selectionchange', selected);
    });
    on('blur', () => document.removeEventListener('selectionchange', selected));
    this.el.addEventListener('pointerdown', (e) => {
      if (!this.code.contains(e.target) && e.target !== this.gutter && !this.bar?.contains(e.target)) setTimeout(() => this.focus());
    });
    this.el.addEventListener('scroll', () => this.seen());
    new ResizeObserver(() => this.seen()).observe(this.el);
  }
  get value() { return this.text.text; }
  set value(t) {
    const start = {line: 0, col: 0};
    this.text.reset(t);
    this.sel = {anchor: start, head: start};
    this.found = null;
    this.measure();
    this.settle(true);
    this.setErrors([]);
  }
  focus() { this.area.focus({preventScroll: true}); }

  // [{line, message, warning?}]; line 0: nowhere in particular. They stand in .problemsEl too.
  setErrors(list) {
    this.errors = new Map();
    for (const e of list)
      if (e.line)
        this.errors.set(e.line, {
          tone: e.warning && !(this.errors.get(e.line)?.tone === 'e') ? 'w' : 'e',
          message: [this.errors.get(e.line)?.message, e.message].filter(Boolean).join('\n')
        });
    replace(
        this.problemsEl,
        list.map(
            (e) =>
                h('button', {type: 'button', onclick: () => this.goTo(e.line)},
                  h('span', {class: `num ${e.warning ? 'warn' : 'bad'}`, style: {minWidth: '58px'}},
                    e.line ? `Line ${e.line}`
                        : e.warning ? 'Warning'
                                    : 'Error'),
                  h('span', {}, e.message))));
    this.problemsEl.hidden = !list.length;
    this.show();
  }
  goTo(line) {
    const at = Math.min(line, this.text.lines.length) - 1;
    if (at < 0) return;
    this.focus();
    this.move({line: at, col: this.text.lines[at].length}, {anchor: {line: at, col: 0}, block: 'center'});
  }

  // ---- the window: {first, last: lines, c0, c1: columns, whole}
  wanted() {
    const {lines} = this.text, n = lines.length, top = Math.floor(this.top / ROW), end = top + Math.ceil(this.room / ROW);
    let size = 0;
    if (n <= WHOLE.lines && (size = lines.reduce((s, l) => s + l.length + 1, 0)) <= WHOLE.length)
      return {first: 0, last: n, c0: 0, c1: Infinity, whole: true};
    const first = Math.max(0, Math.min(top, n - 1) - AROUND), last = Math.min(n, end + AROUND);
    if (!lines.slice(first, last).some((l) => l.length > LONG)) return {first, last, c0: 0, c1: Infinity};
    if (!this.ch) {
      const pen = document.createElement('canvas').getContext('2d');
      pen.font = getComputedStyle(this.el).font;
      this.ch = pen.measureText('0').width;
    }
    const at = Math.floor(this.left / this.ch);
    return {first, last, c0: Math.max(0, at - COLUMNS), c1: at + Math.ceil(this.wide / this.ch) + COLUMNS};
  }
  // Whether the window still is what it should be; it may stay while it has all that is in sight.
  fits() {
    const w = this.window, x = this.wanted(), up = (n) => Math.max(0, n);
    if (!w || !w.whole !== !x.whole || isFinite(w.c1) !== isFinite(x.c1)) return false;
    const sight = {first: x.first && x.first + AROUND, last: x.last - (x.last === this.text.lines.length ? 0 : AROUND)};
    if (w.first > up(sight.first) || w.last < sight.last || w.last - w.first > x.last - x.first + 2 * AROUND) return false;
    return !isFinite(x.c1) || (w.c0 <= (x.c0 && x.c0 + COLUMNS) && w.c1 >= x.c1 - COLUMNS);
  }
  content() {
    const {first, last, c0, c1} = this.window, l = this.text.lines.slice(first, last);
    return shown((isFinite(c1) ? l.map((x) => x.slice(c0, c1)) : l).join('\n'));
  }
  hold(text) {
    this.held = text;
    this.heldLines = text.split('\n');
  }
  inside(p) {
    const {first, last, c0, c1} = this.window;
    return p.line >= first && p.line < last && p.col >= c0 && p.col <= c1;
  }
  // The offset in the text area of a place, the nearest one for a place beyond the window.
  offset(p) {
    const {first, last, c0} = this.window;
    if (p.line < first) return 0;
    if (p.line >= last) return this.held.length;
    const l = this.heldLines, line = p.line - first;
    let at = 0;
    for (let i = 0; i < line; i++) at += l[i].length + 1;
    return at + Math.max(0, Math.min(l[line].length, p.col - c0));
  }
  place(offset) {
    const l = this.heldLines;
    let i = 0;
    while (i < l.length - 1 && offset > l[i].length) offset -= l[i++].length + 1;
    const line = this.window.first + i;
    return {line, col: Math.min(this.text.lines[line].length, this.window.c0 + offset)};
  }
  // After the text or what is in sight of it has changed: the text area holds what it should. A composition is not disturbed.
  settle(anew) {
    if (this.composing) return;
    const fits = !anew && this.fits();
    if (!fits) this.window = this.wanted();
    const text = this.content();
    if (!fits || text !== this.area.value) {
      this.area.value = text;
      this.hold(text);
      this.select();
    }
    this.show();
  }
  seen() {
    const e = this.el;
    Object.assign(this, {top: e.scrollTop, room: e.clientHeight, left: e.scrollLeft, wide: e.clientWidth});
    if (!this.fits()) this.settle();
  }

  // ---- the selection
  select() {
    const {anchor, head} = this.sel, at = this.offset(anchor), to = this.offset(head), back = order(head, anchor) < 0;
    if (document.activeElement === this.area) this.area.setSelectionRange(Math.min(at, to), Math.max(at, to), back ? 'backward' : 'forward');
    this.native = {s: Math.min(at, to), e: Math.max(at, to), back, at, out: !this.inside(anchor)};
  }
  // Takes over what the browser did with the selection; an end beyond the window stays where it is while the other one moves.
  noteSelection() {
    const {selectionStart: s, selectionEnd: e, selectionDirection: d} = this.area, back = d === 'backward', was = this.native;
    if (s === was.s && e === was.e && (s === e || back === was.back)) return;
    const at = back ? e : s, keep = was.out && at === was.at && s !== e;
    this.sel = {anchor: keep ? this.sel.anchor : this.place(at), head: this.place(back ? s : e)};
    this.native = {s, e, back, at, out: keep};
    this.goal = null;
    if (!this.composing) this.text.part();
  }
  range() { return [this.sel.anchor, this.sel.head].sort(order); }
  // Brings a place into sight, and the window to it.
  reveal(p, block = 'nearest') {
    const s = this.spot.style;
    s.top = `${6 + p.line * ROW}px`;
    s.left = `calc(10px + ${p.col}ch)`;
    this.spot.scrollIntoView({block, inline: 'nearest'});
    this.seen();
  }
  move(head, {anchor = head, block} = {}) {
    this.sel = {anchor, head};
    this.text.part();
    this.reveal(head, block);
    this.select();
  }

  // ---- changes
  // text in the place of what is selected
  put(text, o = {}) {
    const [a, b] = o.range || this.range(), end = this.text.edit(a, b, text, {sel: this.sel, kind: o.kind});
    this.sel = o.select ? {anchor: a, head: end} : {anchor: end, head: end};
    this.after(a.line, end.line);
  }
  after(from, to) {
    this.goal = this.found = null;
    this.stretch(from, to);
    this.settle();
    this.reveal(this.sel.head);
    this.select();
    this.changed();
  }
  turnBack(which) {
    const sel = this.text[which]();
    if (!sel) return;
    this.sel = sel;
    this.measure();
    this.after(0, 0);
  }
  beforeInput(e) {
    if (/^history/.test(e.inputType)) {
      e.preventDefault();
      this.turnBack(e.inputType === 'historyUndo' ? 'undo' : 'redo');
      return;
    }
    if (this.composing) return;
    this.noteSelection();
    if (!this.inside(this.sel.head)) {
      this.reveal(this.sel.head);
      this.select();
    }
    if (!this.native.out || !order(...this.range())) return;
    // The browser would replace only what it has of the selection.
    this.put('');
    if (/^delete/.test(e.inputType)) e.preventDefault();
  }
  // What the browser has changed in the text area is changed in the text: the caret stands behind it.
  typed(e) {
    const now = this.area.value, was = this.held, room = Math.min(now.length, was.length), caret = now.length - this.area.selectionEnd;
    if (now === was) return;
    let same = 0, begin = 0;
    while (same < Math.min(room, caret) && now[now.length - 1 - same] === was[was.length - 1 - same]) same++;
    while (begin < room - same && now[begin] === was[begin]) begin++;
    const a = this.place(begin), b = this.place(was.length - same), put = now.slice(begin, now.length - same);
    const end = this.text.edit(a, b, put, {sel: this.sel, kind: this.composing ? 'compose' : KINDS[e.inputType]});
    this.window.last += end.line - b.line;
    this.hold(now);
    const {selectionStart: s, selectionEnd: t} = this.area;
    this.sel = {anchor: this.place(s), head: this.place(t)};
    this.native = {s, e: t, back: false, at: s, out: false};
    this.goal = this.found = null;
    this.stretch(a.line, end.line);
    if (this.composing) this.show();
    else this.settle();
    this.changed();
  }
  // Copies are of the text, not of what stands for it.
  takeOut(e) {
    this.noteSelection();
    const [a, b] = this.range();
    if (!order(a, b)) return;
    (e.clipboardData || e.dataTransfer).setData('text/plain', this.text.slice(a, b));
    if (e.type === 'dragstart') return;
    e.preventDefault();
    if (e.type === 'cut' && !this.area.readOnly) this.put('');
  }

  // ---- drawing
  // Lines out of sight count for the widths, too. Asking the text area for its own would lay it out once more.
  measure() {
    this.widest = 0;
    this.stretch(0, this.text.lines.length - 1);
  }
  stretch(from, to) {
    for (let i = from; i <= to; i++) this.widest = Math.max(this.widest, widthOf(this.text.lines[i]));
  }
  // Whether line no stands in a | or > text is known of every 256th line.
  stateAt(no) {
    const {lines} = this.text, b = this.blocks;
    if (!b.length) b.push(-1);
    const state = {block: b[Math.min(b.length - 1, no >> 8)]};
    for (let i = Math.min(b.length - 1, no >> 8) << 8; i < no; i++) {
      inBlock(ends(lines[i]), state);
      if ((i + 1) % 256 === 0 && b.length === (i + 1) >> 8) b.push(state.block);
    }
    return state;
  }
  show() {
    const {first, last, c0, c1, whole} = this.window, {lines} = this.text, state = this.stateAt(first), f = this.found;
    const drawn = [];
    for (let no = first; no < last; no++) {
      const l = lines[no].slice(c0, c1), part = l.length < lines[no].length, turns = l.match(TURNS), e = this.errors.get(no + 1);
      const told = turns && `Characters that turn the direction: ${[...new Set(turns)].map((c) => visible(c).slice(1, -1)).join(', ')}`;
      const hit = f && f.line === no ? [[f.col - c0, f.col + f.length - c0, 'hit']] : [], ranges = [...l.matchAll(TURNS)].map((m) => [m.index, m.index + 1, 'turn']);
      const line = {l, no, block: state.block, hit: String(hit), tone: e ? e.tone : turns ? 'w' : '', title: e ? e.message : told};
      const make = (name, ...children) => h('span', {class: `${name} ${line.tone}`.trim() || null, title: line.title}, children);
      const parts = part ? [[inBlock(ends(lines[no]), state) ? 's' : '', shown(l)]] : paint(shown(l), state);
      line.draw = () => [
        make('', no + 1),
        make('l', marked(parts, [...ranges, ...hit]).map(([c, t]) => (c ? h('span', {class: c}, new Text(t)) : new Text(t))))
      ];
      drawn.push(line);
    }
    this.draw(drawn);
    const above = first * ROW, below = (lines.length - last) * ROW, indent = c0 ? `calc(10px + ${c0}ch)` : '';
    for (const el of [this.gutter, this.pre]) {
      el.style.paddingTop = `${6 + above}px`;
      el.style.paddingBottom = `${6 + below}px`;
    }
    Object.assign(this.pre.style, {paddingLeft: indent});
    Object.assign(this.area.style, {paddingLeft: indent, top: `${above}px`, height: `calc(100% - ${above + below}px)`});
    this.code.style.minWidth = whole ? '' : `calc(${this.widest}ch + 20px)`;
    this.gutter.style.minWidth = whole ? '' : `calc(${String(lines.length).length}ch + 19px)`;
    if (whole) this.area.removeAttribute('aria-description');
    else this.area.setAttribute('aria-description', `Lines ${first + 1} to ${last} of ${lines.length}`);
  }

  // A keystroke changes a line or two: only these are made anew.
  draw(drawn) {
    const was = this.drawn || [], same = (a, b) => ['l', 'no', 'block', 'hit', 'tone', 'title'].every((x) => a[x] === b[x]);
    this.drawn = drawn;
    if (was.length === drawn.length && was[0]?.no === drawn[0]?.no) {
      drawn.forEach((line, i) => {
        if (same(line, was[i])) return;
        const [number, text] = line.draw();
        this.gutter.children[i].replaceWith(number);
        this.pre.children[i].replaceWith(text);
      });
      return;
    }
    const all = drawn.map((line) => line.draw());
    replace(this.gutter, all.map((x) => x[0]));
    replace(this.pre, all.map((x) => x[1]));
  }

  // ---- keys
  onKey(e) {
    const command = e.ctrlKey || e.metaKey, key = e.key.toLowerCase(), a = this.area;
    this.noteSelection();
    const stop = (f) => {
      e.preventDefault();
      f();
    };
    if (command && key === 'enter') return stop(() => {
      this.changed.cancel();
      if (this.o.onSubmit) this.o.onSubmit();
    });
    if (command && key === 'f') return stop(() => this.find());
    if (command && key === 'a') return stop(() => {
      this.sel = {anchor: {line: 0, col: 0}, head: this.text.end};
      this.select();
    });
    if (key === 'escape') {
      this.leave = true;
      return;
    }  // the next Tab leaves: no keyboard trap
    if (a.readOnly) return;
    if (command && !e.altKey && (key === 'z' || (key === 'y' && !e.metaKey)))
      return stop(() => this.turnBack(key === 'y' || e.shiftKey ? 'redo' : 'undo'));
    if (key === 'tab' && !this.leave) stop(() => this.indent(e.shiftKey));
    else if (key === 'enter' && !e.shiftKey && !e.isComposing) stop(() => this.newLine());
    else if (!this.window.whole && !e.altKey) this.onMove(e, command, stop);
    if (key !== 'shift') this.leave = false;
  }
  indent(less) {
    const [a, b] = this.range(), two = '  ';
    if (!order(a, b) && !less) {
      this.put(two);
      return;
    }
    const to = b.line > a.line && !b.col ? b.line - 1 : b.line, {lines} = this.text;
    const text = lines.slice(a.line, to + 1).map((l) => (less ? l.replace(/^ {1,2}/, '') : two + l)).join('\n');
    this.put(text, {range: [{line: a.line, col: 0}, {line: to, col: lines[to].length}], select: true});
  }
  newLine() {
    const [a] = this.range(), line = this.text.lines[a.line].slice(0, Math.min(a.col, LONG));
    const more = /:\s*([|>][-+0-9]*)?\s*$/.test(line) && !/^\s*#/.test(line) ? '  ' : '';
    const dash = /^ *- +(?=\S+.*:)/.exec(line);
    this.put('\n' + (dash ? ' '.repeat(dash[0].length) : /^ */.exec(line)[0]) + more);
  }
  // Moves that may lead out of the window. Those that the browser makes begin with the caret in it.
  onMove(e, command, stop) {
    const {lines, end} = this.text, {head, anchor} = this.sel, page = Math.max(1, Math.floor(this.room / ROW) - 1);
    const up = {ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page}[e.key], cut = isFinite(this.window.c1);
    const go = (to) => stop(() => this.move(to, {anchor: e.shiftKey ? anchor : to}));
    if (up && !command) {
      const line = Math.max(0, Math.min(end.line, head.line + up)), goal = this.goal ?? head.col;
      go(line === head.line ? (up < 0 ? {line, col: 0} : end) : {line, col: Math.min(goal, lines[line].length)});
      this.goal = goal;
      return;
    }
    if (command && (e.key === 'Home' || (e.metaKey && e.key === 'ArrowUp'))) return go({line: 0, col: 0});
    if (command && (e.key === 'End' || (e.metaKey && e.key === 'ArrowDown'))) return go(end);
    if (cut && (e.key === 'Home' || (e.metaKey && e.key === 'ArrowLeft'))) return go({line: head.line, col: 0});
    if (cut && (e.key === 'End' || (e.metaKey && e.key === 'ArrowRight'))) return go({line: head.line, col: lines[head.line].length});
    if (!this.inside(head) && !['Shift', 'Control', 'Alt', 'Meta'].includes(e.key) && !(command && e.key.toLowerCase() === 'c')) {
      this.reveal(head);
      this.select();
    }
  }

  // ---- find
  find() {
    if (!this.bar) this.makeBar();
    this.bar.hidden = false;
    const [a, b] = this.range();
    if (a.line === b.line && a.col !== b.col && b.col - a.col < LONG) this.query.value = this.text.slice(a, b);
    this.query.focus();
    this.query.select();
    this.count();
  }
  makeBar() {
    const button = (text, title, f) => h('button', {type: 'button', class: 'ghost', 'aria-label': title, title, onclick: f}, text);
    this.query = h('input', {type: 'search', 'aria-label': 'Find in the text', oninput: () => this.next(0)});
    this.counted = h('span', {class: 'faint num', role: 'status'});
    this.bar = h('div', {class: 'find', role: 'search', onkeydown: (e) => {
      if (e.key === 'Enter' && e.target === this.query) this.next(e.shiftKey ? -1 : 1);
      else if (e.key === 'Escape') this.closeFind();
      else return;
      e.preventDefault();
      e.stopPropagation();
    }}, this.query, this.counted, button('\u2191', 'Previous (Shift Enter)', () => this.next(-1)), button('\u2193', 'Next (Enter)', () => this.next(1)),
      button('\u00d7', 'Close (Esc)', () => this.closeFind()));
    this.el.prepend(h('div', {class: 'findbox'}, this.bar));
  }
  closeFind() {
    this.bar.hidden = true;
    this.found = null;
    this.show();
    this.focus();
  }
  // All places of what is searched for, without regard to case, and which of them is shown.
  places() {
    const q = this.query.value, out = [];
    if (!q) return out;
    const e = new RegExp(q.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi');
    this.text.lines.forEach((l, line) => {
      for (const m of l.matchAll(e)) out.push({line, col: m.index, length: m[0].length});
    });
    return out;
  }
  count(all = this.places()) {
    const i = this.found ? all.findIndex((x) => !order(x, this.found)) : -1;
    this.counted.textContent = !this.query.value ? '' : !all.length ? 'none' : i < 0 ? `${all.length}` : `${i + 1} of ${all.length}`;
  }
  // step: 0 the first from where the selection begins, 1 the next, -1 the one before
  next(step) {
    const all = this.places(), [a, b] = this.range();
    const hit = step < 0 ? all.findLast((x) => order(x, a) < 0) || all[all.length - 1] : all.find((x) => order(x, step ? b : a) >= 0) || all[0];
    this.found = hit || null;
    if (hit) this.move({line: hit.line, col: hit.col + hit.length}, {anchor: {line: hit.line, col: hit.col}, block: 'center'});
    this.count(all);
    this.show();
  }
}

// ---- differences -------------------------------------------------------------------------------------------

// Lines of b against a: [{op: ' ' | '+' | '-', text}]. Common ends are cut off first; what is left is compared in O(n m)
// up to four million cells, beyond that it is shown as replaced.
function diffLines(a, b) {
  const x = a.split('\n'), y = b.split('\n');
  let s = 0, e = 0;
  while (s < x.length && s < y.length && x[s] === y[s]) s++;
  while (e < x.length - s && e < y.length - s && x[x.length - 1 - e] === y[y.length - 1 - e]) e++;
  const p = x.slice(s, x.length - e), q = y.slice(s, y.length - e),
        out = x.slice(0, s).map((text) => ({op: ' ', text}));
  if (p.length * q.length > 4e6) {
    out.push(...p.map((text) => ({op: '-', text})), ...q.map((text) => ({op: '+', text})));
  } else {
    const w = q.length + 1, t = new Uint32Array((p.length + 1) * w);
    for (let i = p.length - 1; i >= 0; i--)
      for (let j = q.length - 1; j >= 0; j--)
        t[i * w + j] = p[i] === q[j] ? t[(i + 1) * w + j + 1] + 1 : Math.max(t[(i + 1) * w + j], t[i * w + j + 1]);
    let i = 0, j = 0;
    while (i < p.length || j < q.length) {
      if (i < p.length && j < q.length && p[i] === q[j]) {
        out.push({op: ' ', text: p[i]});
        i++;
        j++;
      } else if (j >= q.length || (i < p.length && t[(i + 1) * w + j] >= t[i * w + j + 1]))
        out.push({op: '-', text: p[i++]});
      else out.push({op: '+', text: q[j++]});
    }
  }
  out.push(...x.slice(x.length - e).map((text) => ({op: ' ', text})));
  return out;
}

// An element that shows what changes from a to b, with some lines around each change.
export function diffView(a, b, {around = 3, same = 'Nothing changes.'} = {}) {
  const d = diffLines(a.replace(/\n$/, ''), b.replace(/\n$/, '')), near = new Uint8Array(d.length);
  d.forEach((l, i) => {
    if (l.op !== ' ') near.fill(1, Math.max(0, i - around), i + around + 1);
  });
  if (!near.includes(1)) return h('div', {class: 'faint'}, same);
  const el = h('div', {class: 'diff', role: 'region', 'aria-label': 'Differences'});
  let gap = 0;
  d.forEach((l, i) => {
    if (!near[i]) {
      gap++;
      return;
    }
    if (gap) {
      el.append(h('div', {class: 'skip'}, `  ${gap} equal lines`));
      gap = 0;
    }
    el.append(h('div', {class: l.op === '+' ? 'add' : l.op === '-' ? 'del' : null}, `${l.op} ${l.text}`));
  });
  if (gap) el.append(h('div', {class: 'skip'}, `  ${gap} equal lines`));
  return el;
}
