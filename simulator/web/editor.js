// SPDX-License-Identifier: Apache-2.0
//
// editor.js - a YAML editor (text area, coloured copy under it, line numbers), places of fields, differences of texts
//
// YAML is coloured and searched line by line here; it is read by the server only (POST /berth/v1/manifest).
import {debounce, h, replace} from './lib.js';

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
    this.el = h('div', {class: 'editor'}, this.gutter, h('div', {class: 'code'}, this.pre, this.area));
    this.changed = debounce(o.delay ?? 300, () => o.onChange && o.onChange(this.value));
    this.area.addEventListener('input', () => {
      this.draw();
      this.changed();
    });
    this.area.addEventListener('keydown', (e) => this.onKey(e));
    this.el.addEventListener('pointerdown', (e) => {
      if (!this.el.querySelector('.code').contains(e.target) && e.target !== this.gutter)
        setTimeout(() => this.area.focus());
    });
    // Where the text stands is kept: to ask while drawing would lay it out twice.
    Object.assign(this, {top: 0, room: 0});
    const seen = () => {
      Object.assign(this, {top: this.el.scrollTop, room: this.el.clientHeight});
      if (this.large) this.show();
    };
    this.el.addEventListener('scroll', seen);
    new ResizeObserver(seen).observe(this.el);
    this.problemsEl = h('div', {class: 'problems', role: 'log', hidden: true, 'aria-label': 'Problems'});
    this.area.value = o.value || '';
    this.draw();
  }
  get value() { return this.area.value; }
  set value(t) {
    this.area.value = t;
    this.setErrors([]);
    this.draw();
  }
  focus() { this.area.focus(); }

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
    this.draw();
  }
  goTo(line) {
    if (!line) return;
    const lines = this.value.split('\n');
    let at = 0;
    for (let i = 0; i < Math.min(line - 1, lines.length); i++) at += lines[i].length + 1;
    this.area.focus();
    this.area.setSelectionRange(at, at + (lines[line - 1] || '').length);
    this.el.scrollTop = Math.max(0, (line - 1) * 18 - this.el.clientHeight / 2);
  }

  draw() {
    const text = this.value;
    this.lines = text.split('\n');
    this.large = this.lines.length > 1000 || text.length > 100000;
    // Lines out of sight count for the widths, too. Asking the text area for its own would lay it out once more.
    const width = (l) => l.length + (/[^ -~]/.test(l) ? l.replace(/[ -~]/g, '').length : 0);
    const widest = this.large ? this.lines.reduce((most, l) => Math.max(most, width(l)), 0) : 0;
    this.area.parentNode.style.minWidth = this.large ? `calc(${widest}ch + 20px)` : '';
    this.gutter.style.minWidth = this.large ? `calc(${String(this.lines.length).length}ch + 19px)` : '';
    this.show();
  }
  // Of a large text only the lines in sight exist, with some around them: every keystroke and every scroll draws them anew.
  show() {
    const {lines, large} = this, around = 40, height = 18, state = {block: -1};
    const top = large ? Math.max(0, Math.floor(this.top / height) - around) : 0;
    const first = Math.min(top, Math.max(0, lines.length - 2 * around));
    const last = large ? first + Math.ceil(this.room / height) + 2 * around : lines.length;
    for (let i = 0; i < first; i++) inBlock(lines[i], state);
    const seen = lines.slice(first, last), attributes = (i, name) => {
      const e = this.errors.get(first + i + 1);
      return {class: [name, e && e.tone].filter(Boolean).join(' ') || null, title: e ? e.message : null};
    };
    replace(this.gutter, seen.map((_, i) => h('span', attributes(i, ''), first + i + 1)));
    replace(
        this.pre,
        seen.map(
            (l, i) => h(
                'span', attributes(i, 'l'),
                paint(l, state).map(([c, t]) => (c ? h('span', {class: c}, new Text(t)) : new Text(t))))));
    for (const el of [this.gutter, this.pre]) {
      el.style.paddingTop = `${6 + first * height}px`;
      el.style.paddingBottom = `${6 + Math.max(0, lines.length - first - seen.length) * height}px`;
    }
  }

  onKey(e) {
    const a = this.area;
    if ((e.ctrlKey || e.metaKey) && e.key === 'Enter') {
      e.preventDefault();
      this.changed.cancel();
      if (this.o.onSubmit) this.o.onSubmit();
      return;
    }
    if (e.key === 'Escape') {
      this.leave = true;
      return;
    }  // the next Tab leaves: no keyboard trap
    if (a.readOnly) return;
    if (e.key === 'Tab' && !this.leave) {
      e.preventDefault();
      const {selectionStart: s, selectionEnd: t, value: v} = a;
      if (s === t && !e.shiftKey) {
        document.execCommand('insertText', false, '  ');
        return;
      }
      const from = v.lastIndexOf('\n', s - 1) + 1;
      let end = v.indexOf('\n', Math.max(s, t - 1));
      if (end < 0) end = v.length;
      const text =
          v.slice(from, end).split('\n').map((l) => (e.shiftKey ? l.replace(/^ {1,2}/, '') : '  ' + l)).join('\n');
      a.setSelectionRange(from, end);
      document.execCommand('insertText', false, text);  // keeps the browser's undo
      a.setSelectionRange(from, from + text.length);
    } else if (e.key === 'Enter' && !e.shiftKey && !e.ctrlKey) {
      const v = a.value, from = v.lastIndexOf('\n', a.selectionStart - 1) + 1, line = v.slice(from, a.selectionStart);
      const more = /:\s*([|>][-+0-9]*)?\s*$/.test(line) && !/^\s*#/.test(line) ? '  ' : '';
      const dash = /^ *- +(?=\S+.*:)/.exec(line);
      e.preventDefault();
      document.execCommand(
          'insertText', false, '\n' + (dash ? ' '.repeat(dash[0].length) : /^ */.exec(line)[0]) + more);
    }
    if (e.key !== 'Shift') this.leave = false;
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
