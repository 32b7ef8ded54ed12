// SPDX-License-Identifier: Apache-2.0
//
// table.js - a table of any length: only the rows in sight exist
//
// new Table({
//   columns: [{id, title, width: '120px' | 'minmax(100px,2fr)', text(row) -> string|number, sort?(row) -> value to order by,
//              cell?(row) -> Node|text (default: text), byText: true (a cell of the same text looks the same), align: 'right', hidden,
//              order: 'desc' (first direction), live: true (ages: made anew each 10 s)}],
//   key(row) -> string (default row.key), labels?(row) -> {k: v} for k=v searches, search?(row) -> text searched (default: all columns' text),
//   name: 'pods' (state is kept under this name; file name of exports), sort: {id, dir: 'asc'|'desc'}, onOpen?(row), href?(row),
//   selectable: bool, onSelect?(Set of keys), actions?: [nodes], tools?: [nodes] (in the toolbar), placeholder, emptyText | emptyNode,
//   query: initial search, onQuery?(text), filter?(row) -> bool, fixedHeight?: rows shown at most (then the table is as high as its rows)})
// .el                 the element; fills its parent when that is a flex column
// .setRows(rows, changed)  all rows (objects are kept, not copied; a row that is another now is another object); cheap to call often: it is worked off
//                     at most a few times a second. With a Map of keys and what changed in it since the last call, as subscribe() tells it, only
//                     that is looked at
// .setFilter(f), .setQuery(text), .rows (in the order shown), .selected (Set of keys), .clearSelection()
// .focus(), .scrollToKey(key)
//
// Search: words must all occur; "-word" must not; "column:text" looks in one column; "key=value" and "key" after "label:" in labels.
// Keys: arrows, PageUp/Down, Home/End, Enter opens, Space selects, Ctrl-A selects all shown, Esc clears.
import {compareNames, debounce, fmt, h, icon, replace, uniqueId, visible} from './lib.js';
import {download, menuButton} from './widgets.js';

const ROW = 28, SPARE = 8, MAX_PX = 15e6;
let pen = null;  // measures texts in the page's font
const nodesOf = (v) =>
    (v === null || v === undefined || v === false ? []
         : Array.isArray(v)                       ? v.flatMap(nodesOf)
                                                  : [v instanceof Node ? v : document.createTextNode(visible(String(v)))]);
const clip = (x) => (x === undefined || x === null ? '' : String(x));

function parseSearch(text, columns, labels) {
  const ids = new Map(columns.map((c) => [c.id.toLowerCase(), c]));
  const tests = [];
  for (const raw of text.match(/(?:[^\s"]|"[^"]*")+/g) || []) {
    const not = raw.length > 1 && raw[0] === '-';
    const word = (not ? raw.slice(1) : raw).replace(/"/g, '');
    const colon = word.indexOf(':'), eq = word.indexOf('=');
    const col = colon > 0 && ids.get(word.slice(0, colon).toLowerCase());
    let test;
    if (col) {
      const want = word.slice(colon + 1).toLowerCase();
      test = (row) => clip(col.text(row)).toLowerCase().includes(want);
    } else if (labels && (word.startsWith('label:') || eq > 0)) {
      const [k, v] = word.replace(/^label:/, '').split(/==?/);
      test = (row) => {
        const l = labels(row) || {};
        return k in l && (v === undefined || l[k] === v);
      };
    } else {
      const want = word.toLowerCase();
      test = (row, all) => all(row).includes(want);
    }
    tests.push(not ? (r, a) => !test(r, a) : test);
  }
  return tests;
}

export class Table {
  constructor(o) {
    this.o = {key: (r) => r.key, name: 'rows', sort: null, ...o};
    this.columns = this.o.columns.filter((c) => !c.hidden);
    this.source = [];
    this.rows = [];
    this.changes = null;  // what of source is not in rows yet; null: nobody knows
    this.selected = new Set();
    this.active = null;
    this.pool = [];
    this.sort = this.o.sort || {id: this.columns[0].id, dir: 'asc'};
    this.filter = this.o.filter || null;
    this.tests = [];
    this.cost = 0;
    this.view = {wide: 0, high: 0, top: 0};  // of .scroll, in pixels
    this.id = uniqueId('vt');
    this.build();
    if (this.o.query) this.setQuery(this.o.query);
  }

  build() {
    const o = this.o;
    this.search = h('input', {
      type: 'search',
      class: 'vt-search',
      placeholder: o.placeholder || 'Filter: text, column:text, label=value',
      'aria-label': `Filter ${o.name}`,
      spellcheck: 'false',
      oninput: debounce(
          120,
          () => {
            this.applyQuery(this.search.value);
            if (o.onQuery) o.onQuery(this.search.value);
          }),
      onkeydown: (e) => {
        if (e.key === 'ArrowDown' || e.key === 'Enter') {
          e.preventDefault();
          this.focus();
        }
      }
    });
    this.countEl = h('span', {class: 'vt-count', 'aria-live': 'off'});
    this.actionsEl = h('span', {class: 'row', hidden: true}, o.actions || []);
    this.tools =
        h('div', {class: 'vt-tools'}, this.search, o.tools || [], this.countEl, h('span', {class: 'grow'}),
          this.actionsEl,
          menuButton(
              'Export', [['As CSV', () => this.save('csv')], ['As JSON', () => this.save('json')]],
              {icon: 'download', title: 'Export the rows shown'}));
    this.head = h('div', {class: 'vt-head', role: 'row'});
    this.body = h('div', {class: 'vt-body', role: 'rowgroup'});
    this.emptyEl = h('div', {class: 'empty', hidden: true});
    this.scroll =
        h('div', {
          class: 'vt-scroll',
          role: 'grid',
          tabindex: '0',
          'aria-label': o.name,
          'aria-multiselectable': o.selectable ? 'true' : null,
          onscroll: () => {
            this.view.top = this.scroll.scrollTop;
            this.draw();
          },
          onkeydown: (e) => this.onKey(e)
        },
          h('div', {role: 'rowgroup', style: {position: 'sticky', top: '0', zIndex: '2'}}, this.head), this.body);
    this.el = h('div', {class: 'vt'}, this.tools, h('div', {class: 'vt-box'}, this.scroll, this.emptyEl));
    this.widths = this.columns.map((c) => {
      const [, least, part] = /(\d+)px(?:,([\d.]+)fr)?/.exec(c.width || 'minmax(90px,1fr)');
      return {least: Number(least), part, need: 0};
    });
    this.buildHead();
    this.fit();
    this.body.addEventListener('click', (e) => this.onClick(e));
    // Only a cell under the pointer needs its whole text as a hint.
    this.body.addEventListener('mouseover', (e) => {
      const el = e.target.closest('.vt-cell'), at = el ? el.parentNode.cells.findIndex((c) => c.el === el) : -1;
      if (at >= 0 && this.columns[at].title !== '') el.title = el.parentNode.cells[at].text.slice(0, 4000);
    });
    this.body.addEventListener('dblclick', (e) => {
      const r = this.rowAt(e);
      if (r && o.onOpen) o.onOpen(r);
    });
    // Asked for in between, size and place would make the browser lay out what was changed so far.
    new ResizeObserver(() => {
      Object.assign(this.view, {wide: this.scroll.clientWidth, high: this.scroll.clientHeight, top: this.scroll.scrollTop});
      this.fit();
      this.draw();
    }).observe(this.scroll);
    if (this.columns.some((c) => c.live)) {
      const timer =
          setInterval(() => (this.el.isConnected ? this.draw('anew') : this.everShown && clearInterval(timer)), 10000);
    }
  }

  buildHead() {
    const cells = this.columns.map(
        (c) =>
            h('div', {
              role: 'columnheader',
              class: c.align === 'right' ? 'right' : '',
              'aria-sort': this.sort.id === c.id ? (this.sort.dir === 'asc' ? 'ascending' : 'descending') : 'none'
            },
              h('button', {type: 'button', title: c.hint || `Order by ${c.title}`, onclick: () => this.setSort(c)},
                c.title)));
    if (this.o.selectable) {
      this.allBox = h('input', {
        type: 'checkbox',
        'aria-label': 'Select all rows shown',
        onclick: () => this.selectAll(this.allBox.checked)
      });
      cells.unshift(h('div', {role: 'columnheader', class: 'vt-cell check'}, this.allBox));
    }
    replace(this.head, cells);
  }

  // Columns that share the rest of the width get what their texts need; when that is too much the longest give way,
  // names last. Needs only grow, so that nothing jumps while rows change: rows are looked at when they are new.
  fit(rows = []) {
    const step = Math.ceil(rows.length / 30000), view = this.view.wide;
    if (!pen) {
      pen = h('canvas').getContext('2d');
      pen.font = `${getComputedStyle(document.body).fontSize} ${getComputedStyle(document.body).fontFamily}`;
    }
    const wide = (text) => Math.ceil(pen.measureText(text).width) + 20;
    let room = view - (this.o.selectable ? 32 : 0), min = view - room;
    const open = Math.max(0, this.columns.findIndex((c) => c.open)), share = [];
    this.widths.forEach((w, i) => {
      const c = this.columns[i];
      if (!w.part) {
        room -= w.least;
        min += w.least;
        return;
      }
      // The longest texts are not always the widest: some that are nearly as long are measured, too.
      let longest = 0, need = 0, left = 300;
      for (let j = 0; j < rows.length; j += step) {
        const t = clip(c.text(rows[j]));
        if (t.length <= longest && (t.length < longest * .8 || --left < 0)) continue;
        longest = Math.max(longest, t.length);
        need = Math.max(need, wide(t.slice(0, 400)));
      }
      w.need = Math.max(w.need, need, wide(c.title) + 10, c.cell || !this.rows.length ? w.least : 0);
      w.lo = Math.min(w.need, w.least);
      share.push(w);
    });
    const name = this.widths[open], rest = room - share.reduce((s, w) => s + (w === name ? 0 : w.lo), 0);
    if (name.part) name.lo = Math.min(name.need, rest < name.least ? Math.max(name.least, Math.min(240, view - 170)) : rest);  // a phone shows the next column, too
    let low = 0, high = 5000;  // what the longest may have
    const size = (w, most) => Math.min(w.need, Math.max(w.lo, most));
    while (high - low > 1) {
      const mid = (low + high) / 2;
      if (share.reduce((s, w) => s + size(w, mid), 0) > room) high = mid;
      else low = mid;
    }
    const cols = this.widths.map((w) => (w.part ? `minmax(${Math.floor(size(w, low))}px,${w.part}fr)` : `${w.least}px`));
    if (this.o.selectable) cols.unshift('32px');
    min += share.reduce((s, w) => s + Math.floor(size(w, low)), 0);
    const widths = cols.join(' ');
    if (widths === this.fitted) return;  // every cell there is would be styled anew
    this.fitted = widths;
    this.el.style.setProperty('--vt-cols', widths);
    this.el.style.setProperty('--vt-min', `${min}px`);
  }

  setSort(c) {
    const first = c.order || 'asc';
    this.sort =
        this.sort.id === c.id ? {id: c.id, dir: this.sort.dir === 'asc' ? 'desc' : 'asc'} : {id: c.id, dir: first};
    this.buildHead();
    this.recompute(true);
  }

  setRows(rows, changed = null) {
    this.pendingRows = rows;
    if (!changed || !this.changes || this.changes.length > 20000) this.changes = null;
    else
      for (const c of changed) this.changes.push(c);
    this.schedule();
  }
  setFilter(f) {
    this.filter = f;
    this.recompute(true);
    this.scrollTo(0);
  }
  setQuery(text) {
    this.search.value = text;
    this.applyQuery(text);
  }
  applyQuery(text) {
    this.tests = parseSearch(text, this.columns, this.o.labels);
    this.scrollTo(0);
    this.recompute(true);
  }
  clearSelection() {
    this.selected.clear();
    this.selectionChanged();
  }
  focus() {
    this.scroll.focus();
    if (this.active === null && this.rows.length) this.setActive(0);
  }

  // The dearer the last time was, the longer the next waits: 200,000 rows stay usable while they change. What takes a good part of a
  // frame, with what the browser then lays out and paints, comes in less than one frame of twenty.
  schedule() {
    if (this.timer) return;
    const pause = this.cost > 3 ? Math.max(400, this.cost * 20) : this.cost * 6;
    const wait = Math.max(0, Math.min(2500, pause) - (performance.now() - (this.last || -1e9)));
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.recompute();
    }, wait);
  }

  // whole: filter, search or order are others now
  recompute(whole) {
    const t0 = performance.now(), p = this.pendingRows;
    if (p) this.source = Array.isArray(p) || p instanceof Map ? p : [...p];
    this.pendingRows = null;
    const memo = this.o.search || ((r) => this.columns.map((c) => clip(c.text(r))).join(' '));
    const all = (r) => memo(r).toLowerCase();
    const {filter, tests, source, changes} = this;
    const passes = (r) => (!filter || filter(r)) && tests.every((t) => t(r, all));
    const map = source instanceof Map;
    this.changes = map ? [] : null;
    if (changes && !whole) {
      this.orderChanged(changes, passes);
    } else {
      const list = map ? [...source.values()] : source;
      this.rows = filter || tests.length ? list.filter(passes) : list.slice();
      this.order();
    }
    if (this.active !== null) {
      const at = this.rows.findIndex((r) => this.o.key(r) === this.activeKey);
      this.active = at < 0 ? null : at;
    }
    if (this.selected.size) {
      const there = map ? source : new Set(source.map(this.o.key));
      for (const k of this.selected)
        if (!there.has(k)) this.selected.delete(k);
      this.selectionChanged();
    }
    const n = this.rows.length, m = map ? source.size : source.length;
    this.countEl.textContent =
        n === m ? `${fmt.count(n)} ${n === 1 ? 'row' : 'rows'}` : `${fmt.count(n)} of ${fmt.count(m)}`;
    this.showEmpty(n, m);
    this.fit(this.fresh);
    this.draw(true);
    this.last = performance.now();
    this.cost = this.last - t0;
  }

  // -> {by: the order's name, value(row), compare(a, b) of {r: row, v: value}}, null without an order
  ordering() {
    const c = this.columns.find((x) => x.id === this.sort.id);
    if (!c) return null;
    const sign = this.sort.dir === 'asc' ? 1 : -1, key = this.o.key;
    const big = this.big = this.rows.length > (this.big ? 15000 : 20000);  // natural order costs too much there
    const compare = (a, b) => {
      const x = a.v, y = b.v;
      if (x === y || (x == null && y == null)) {
        const p = key(a.r), q = key(b.r);
        return p < q ? -1 : p > q ? 1 : 0;
      }
      if (x === null || x === undefined || x === '') return 1;  // nothing stands last in both directions
      if (y === null || y === undefined || y === '') return -1;
      if (typeof x === 'number' && typeof y === 'number') return (x - y) * sign;
      return (big ? (x < y ? -1 : 1) : compareNames(String(x), String(y))) * sign;
    };
    return {by: `${this.sort.id} ${sign} ${big}`, value: c.sort || c.text, compare};
  }

  // Rows that were in this order already stay in it; only the new ones are sorted, and merged.
  order() {
    const o = this.ordering();
    if (!o) return;
    const fresh = new Set(this.rows);
    this.merge(o, this.by === o.by ? this.ordered.filter((k) => fresh.delete(k.r)) : [], fresh);
  }

  // The same where it is known what changed. The Map may be further than what was told of it: what it holds counts.
  orderChanged(changes, passes) {
    const o = this.ordering(), gone = new Set(), fresh = new Map();
    for (const c of changes) {
      const key = this.o.key(c.row), now = this.source.get(key);
      gone.add(c.old).add(c.row).add(now);
      if (now && passes(now)) fresh.set(key, now);
      else fresh.delete(key);
    }
    if (o && o.by === this.by) {
      this.merge(o, gone.size ? this.ordered.filter((k) => !gone.has(k.r)) : this.ordered, fresh.values());
      return;
    }
    this.rows = [...this.rows.filter((r) => !gone.has(r)), ...fresh.values()];
    this.order();
  }

  merge({by, value, compare}, kept, fresh) {
    const added = Array.from(fresh, (r) => ({r, v: value(r)})).sort(compare), merged = [];
    let from = 0;
    for (const k of added) {
      let low = from, high = kept.length;
      while (low < high) {
        const mid = (low + high) >> 1;
        if (compare(kept[mid], k) < 0) low = mid + 1;
        else high = mid;
      }
      for (; from < low; from++) merged.push(kept[from]);
      merged.push(k);
    }
    for (; from < kept.length; from++) merged.push(kept[from]);
    Object.assign(this, {by, ordered: merged, rows: merged.map((k) => k.r), fresh: added.map((k) => k.r)});
  }

  showEmpty(n, m) {
    this.emptyEl.hidden = n > 0;
    if (n) return;
    if (m === 0 && this.o.emptyNode) replace(this.emptyEl, this.o.emptyNode);
    else replace(this.emptyEl, m === 0 ? this.o.emptyText || 'Nothing here yet.' : 'Nothing matches the filter.');
  }

  draw(all) {
    const n = this.rows.length, high = n * ROW, total = Math.min(high, MAX_PX);
    if (total !== this.total) this.body.style.height = `${total}px`;
    this.total = total;
    if (this.o.fixedHeight)
      this.scroll.style.height = `${31 + ROW * Math.max(2, Math.min(n, this.o.fixedHeight)) + 2}px`;
    if (this.counted !== n) this.scroll.setAttribute('aria-rowcount', n + 1);
    this.counted = n;
    const view = this.view.high;
    if (!view) return;
    this.everShown = true;
    // Browsers bound an element's height; beyond it the scroll bar is scaled.
    const top = this.view.top, room = Math.max(1, total - view),
          scaled = high > total ? (top / room) * (high - view) : top;
    const first = Math.max(0, Math.floor(scaled / ROW) - SPARE),
          last = Math.min(n, Math.ceil((scaled + view) / ROW) + SPARE);
    const want = Math.max(0, last - first);
    while (this.pool.length < want) {
      const el = h('div', {class: 'vt-row', role: 'row'});
      this.pool.push(el);
      this.body.append(el);
    }
    // Rows keep their element wherever they go: what has the focus stays, and only what came into sight is made anew.
    const free = [], held = new Map();
    for (const el of this.pool) {
      if (el.row && !held.has(el.key)) held.set(el.key, el);
      else free.push(el);
    }
    const own = this.rows.slice(first, last).map((row) => {
      const key = this.o.key(row), el = held.get(key);
      held.delete(key);
      return el;
    });
    free.push(...held.values());
    for (let i = first; i < last; i++) {
      const el = own[i - first] || free.pop(), y = high > total ? i * ROW - scaled + top : i * ROW;
      if (all || el.idx !== i || el.row !== this.rows[i]) this.fill(el, i, !own[i - first] || all === 'anew');
      if (el.y !== y) el.style.transform = `translateY(${y}px)`;
      el.y = y;
      if (el.hidden) el.hidden = false;
    }
    for (const el of free) {
      if (!el.hidden) el.hidden = true;
      el.idx = -1;
      el.row = null;
    }
    if (this.pool.length > want + 60) this.pool = this.pool.filter((el) => !el.hidden || (el.remove(), false));
  }

  // anew: cells that depend on more than the row are made anew, too
  fill(el, i, anew) {
    const row = this.rows[i], key = this.o.key(row), on = this.selected.has(key), same = el.row === row && !anew;
    if (el.idx !== i) {
      el.id = `${this.id}-${i}`;
      el.setAttribute('aria-rowindex', i + 2);
    }
    const other = el.key !== key;
    if (el.on !== on) el.setAttribute('aria-selected', String(on));
    Object.assign(el, {idx: i, row, key, on});
    el.classList.toggle('active', i === this.active);
    if (!el.cells) this.makeCells(el);
    if (el.box) {
      el.box.checked = on;
      if (other) el.box.setAttribute('aria-label', `Select ${key}`);
    }
    if (same) return;
    this.columns.forEach((c, j) => {
      const cell = el.cells[j], text = clip(c.text(row));
      if (c.cell && !(c.byText && cell.text === text)) {
        cell.into.replaceChildren(...nodesOf(c.cell(row)));
        cell.text = text;
      } else if (cell.text !== text) {
        cell.into.textContent = visible(text);
        cell.text = text;
      }
    });
    if (el.anchor) el.anchor.setAttribute('href', this.o.href(row));
  }
  makeCells(el) {
    const open = Math.max(0, this.columns.findIndex((c) => c.open));
    el.cells = this.columns.map((c, j) => {
      const cell =
          h('div',
            {class: c.align === 'right' ? 'vt-cell right'
                 : c.mono               ? 'vt-cell mono'
                                        : 'vt-cell',
             role: 'gridcell'});
      const into = this.o.href && j === open ? h('a', {tabindex: '-1'}) : cell;
      if (into !== cell) {
        cell.append(into);
        el.anchor = into;
      }
      return {el: cell, into, text: ''};
    });
    if (this.o.selectable) {
      el.box = h('input', {type: 'checkbox', tabindex: '-1'});
      el.append(h('div', {class: 'vt-cell check', role: 'gridcell'}, el.box));
    }
    el.append(...el.cells.map((c) => c.el));
  }

  rowAt(e) {
    const el = e.target.closest('.vt-row');
    return el ? el.row : null;
  }
  onClick(e) {
    const el = e.target.closest('.vt-row');
    if (!el || !el.row) return;
    const was = this.active;
    this.setActive(el.idx, false);
    if (e.target.matches('input[type=checkbox]')) {
      if (e.shiftKey && was !== null)
        for (let i = Math.min(was, el.idx); i <= Math.max(was, el.idx); i++)
          this.selected.add(this.o.key(this.rows[i]));
      else this.toggle(el.key, e.target.checked);
      this.selectionChanged();
      this.draw(true);
    } else if (!e.target.closest('a,button,input') && this.o.onOpen && !String(window.getSelection())) {
      this.o.onOpen(el.row);
    }
  }
  toggle(key, on) {
    if (on) this.selected.add(key);
    else this.selected.delete(key);
  }
  selectAll(on) {
    this.selected = on ? new Set(this.rows.map(this.o.key)) : new Set();
    this.selectionChanged();
    this.draw(true);
  }
  selectionChanged() {
    const n = this.selected.size;
    this.actionsEl.hidden = n === 0;
    if (this.allBox) {
      this.allBox.checked = n > 0 && n >= this.rows.length;
      this.allBox.indeterminate = n > 0 && n < this.rows.length;
    }
    if (this.o.onSelect) this.o.onSelect(this.selected);
  }

  setActive(i, reveal = true) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, i));
    if (!this.rows.length) {
      this.active = null;
      return;
    }
    this.activeKey = this.o.key(this.rows[this.active]);
    if (reveal) this.reveal(this.active);
    for (const el of this.pool) el.classList.toggle('active', el.idx === this.active && !el.hidden);
    this.scroll.setAttribute('aria-activedescendant', `${this.id}-${this.active}`);
  }
  scrollTo(top) {
    this.scroll.scrollTop = this.view.top = top;
  }
  reveal(i) {
    const view = this.view.high - 31, high = this.rows.length * ROW, total = Math.min(high, MAX_PX);
    if (high > total) {
      this.scrollTo((i / this.rows.length) * (total - view));
      this.draw();
      return;
    }
    if (i * ROW < this.view.top) this.scrollTo(i * ROW);
    else if ((i + 1) * ROW > this.view.top + view) this.scrollTo((i + 1) * ROW - view);
    this.draw();
  }
  scrollToKey(key) {
    const i = this.rows.findIndex((r) => this.o.key(r) === key);
    if (i >= 0) this.setActive(i);
  }

  onKey(e) {
    if (e.target !== this.scroll) return;
    const page = Math.max(1, Math.floor(this.view.high / ROW) - 2), at = this.active ?? -1;
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: this.rows.length - 1
    };
    if (e.key in moves && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      if (e.shiftKey && this.o.selectable && this.active !== null) this.toggle(this.activeKey, true);
      this.setActive(moves[e.key]);
      if (e.shiftKey && this.o.selectable) {
        this.toggle(this.activeKey, true);
        this.selectionChanged();
        this.draw(true);
      }
    } else if (e.key === 'Enter' && this.active !== null) {
      e.preventDefault();
      if (this.o.onOpen) this.o.onOpen(this.rows[this.active]);
      else if (this.o.href) location.hash = this.o.href(this.rows[this.active]);
    } else if (e.key === ' ' && this.o.selectable && this.active !== null) {
      e.preventDefault();
      this.toggle(this.activeKey, !this.selected.has(this.activeKey));
      this.selectionChanged();
      this.draw(true);
    } else if (e.key === 'a' && (e.ctrlKey || e.metaKey) && this.o.selectable) {
      e.preventDefault();
      this.selectAll(true);
    } else if (e.key === 'Escape' && this.selected.size) {
      e.preventDefault();
      this.selectAll(false);
    }
  }

  save(form) {
    const cols = this.columns.filter((c) => c.title);
    if (form === 'json') return download(`${this.o.name}.json`, JSON.stringify(this.rows, null, 2), 'application/json');
    // A cell that a spreadsheet would take for a formula is quoted with an apostrophe.
    const cell = (x) => {
      let s = clip(x);
      if (/^[=+\-@\t\r]/.test(s) && isNaN(Number(s))) s = `'${s}`;
      return /[",\n\r]/.test(s) ? `"${s.replace(/"/g, '""')}"` : s;
    };
    const lines =
        [cols.map((c) => cell(c.title)).join(','), ...this.rows.map((r) => cols.map((c) => cell(c.text(r))).join(','))];
    return download(`${this.o.name}.csv`, lines.join('\r\n') + '\r\n', 'text/csv');
  }
}
