// SPDX-License-Identifier: Apache-2.0
//
// clustermap.js - every node as a cell, coloured by how much of a resource is requested
//
// One canvas as large as what is seen; scrolling moves what is drawn on it. Cells are made to fit; zooming makes them larger.
// Positions are computed when nodes come, go or change their group, colours at every drawing.
import {amount, nodeStatus, share, taintText} from './kinds.js';
import {
  canvasView, compareNames, empty, fmt, h, icon, inkOn, navigate, plural, registerScreen, replace, sequential,
  setQuery, stackedBar, tag, tip, to
} from './lib.js';
import {subscribe} from './store.js';

const HEAD = 22, GAP = 14, MIN = 4, MAX = 96, ZONE = 'topology.kubernetes.io/zone';

registerScreen('map', {
  title: 'Cluster map',
  key: 'm',
  nav: {group: 'Cluster', order: 2},
  mount(el, r) {
    const m = new ClusterMap(el, r.query);
    return () => m.leave();
  },
});

class ClusterMap {
  constructor(el, query) {
    this.res = query.resource || 'cpu';
    this.by = query.by ?? ZONE;
    this.range = [0, 1];  // the shares that have the first and the last colour
    this.zoom = 1;
    this.nodes = [];
    this.cells = [];
    this.groups = [];
    this.cursor = -1;
    this.hover = -1;
    this.match = null;
    this.frames = [
    ];  // milliseconds that the last drawings took; for who measures: document.querySelector('.mapview canvas').frames
    el.classList.add('fill');
    this.build(el, query);
    this.stop = subscribe('nodes', (s) => this.changed(s));
  }
  leave() {
    this.stop();
    removeEventListener('berth-theme', this.onTheme);
    tip(0, 0, null);
    cancelAnimationFrame(this.pending);
  }

  build(el, query) {
    this.resSelect = h('select', {
      'aria-label': 'Resource',
      onchange: () => {
        this.res = this.resSelect.value;
        setQuery({resource: this.res === 'cpu' ? null : this.res});
        this.layout();
      }
    });
    this.bySelect = h('select', {
      'aria-label': 'Group by',
      onchange: () => {
        this.by = this.bySelect.value;
        setQuery({by: this.by === ZONE ? null : this.by || 'none'});
        this.layout();
      }
    });
    if (query.by === 'none') this.by = '';
    this.orderSelect =
        h('select', {'aria-label': 'Order of the cells', onchange: () => this.layout()},
          h('option', {value: 'name'}, 'by name'), h('option', {value: 'full'}, 'fullest first'),
          h('option', {value: 'free'}, 'emptiest first'));
    this.stretch = h('input', {
      type: 'checkbox',
      checked: Boolean(query.stretch),
      onchange: () => {
        setQuery({stretch: this.stretch.checked ? 1 : null});
        this.totals();
        this.canvas.redraw();
      }
    });
    this.search = h('input', {
      type: 'search',
      class: 'vt-search',
      placeholder: 'Highlight: name, label=value',
      'aria-label': 'Highlight nodes',
      oninput: () => this.highlight(),
      style: {width: '160px'}
    });
    this.text = h('span', {class: 'num muted clip'});
    this.legend = h('div', {class: 'maplegend'});
    const b = (label, title, f) =>
        h('button', {type: 'button', class: 'icononly', title, 'aria-label': title, onclick: f}, label);
    const tools = h(
        'div', {class: 'row wrap'}, h('label', {class: 'row'}, h('span', {class: 'muted'}, 'Colour'), this.resSelect),
        h('label', {class: 'row'}, h('span', {class: 'muted'}, 'Group'), this.bySelect), this.orderSelect,
        h('label', {class: 'check', title: 'The scale goes from the emptiest node to the fullest one'}, this.stretch, 'Stretch colours'), this.search,
        h('span', {class: 'row', style: {gap: '4px'}}, b('-', 'Smaller (-)', () => this.setZoom(this.zoom / 1.4)),
          b(icon('plus'), 'Larger (+)', () => this.setZoom(this.zoom * 1.4)),
          h('button', {type: 'button', title: 'All nodes in sight (0)', onclick: () => this.setZoom(1)}, 'Fit')),
        h('span', {class: 'grow'}));
    this.spacer = h('div', {style: {width: '1px'}});
    this.view = h('div', {class: 'mapview', style: {position: 'sticky', top: '0', left: '0', height: '0'}});
    this.scroll =
        h('div', {
          class: 'mapscroll',
          tabindex: '0',
          role: 'application',
          'aria-label': 'Cluster map: arrows move, Enter opens the node, plus and minus zoom',
          onscroll: () => this.canvas.redraw(),
          onkeydown: (e) => this.onKey(e)
        },
          this.view, this.spacer);
    this.say = h('div', {class: 'sr', role: 'status', 'aria-live': 'polite'});
    this.emptyEl = h('div', {hidden: true});
    this.panel =
        h('div', {class: 'panel grow', style: {minHeight: '0', position: 'relative'}}, this.scroll, this.emptyEl,
          this.say);
    el.append(tools, this.panel, h('div', {class: 'row'}, this.text, h('span', {class: 'grow'}), this.legend));
    this.canvas = canvasView(this.view, (ctx, w, hh) => this.draw(ctx, w, hh));
    this.canvas.frames = this.frames;
    new ResizeObserver(() => {
      this.view.style.width = `${this.scroll.clientWidth}px`;
      this.view.style.height = `${this.scroll.clientHeight}px`;
      this.spacer.style.marginTop = `${- this.scroll.clientHeight}px`;
      this.layout();
    }).observe(this.scroll);
    this.scroll.addEventListener('pointermove', (e) => this.onMove(e));
    this.scroll.addEventListener('pointerleave', () => {
      this.hover = -1;
      tip(0, 0, null);
      this.canvas.redraw();
    });
    this.scroll.addEventListener('click', (e) => {
      const i = this.at(e);
      if (i >= 0) navigate(to('nodes', this.cells[i].node.name));
    });
    this.scroll.addEventListener('wheel', (e) => {
      if (e.ctrlKey) {
        e.preventDefault();
        this.setZoom(this.zoom * (e.deltaY < 0 ? 1.15 : 1 / 1.15), e);
      }
    }, {passive: false});
    this.drawLegend();
    this.onTheme = () => this.drawLegend();
    addEventListener('berth-theme', this.onTheme);
  }
  drawLegend() {
    replace(
        this.legend, h('span', {class: 'faint'}, fmt.percent(this.range[0])),
        h('span', {class: 'scale'},
          Array.from({length: 24}, (_, i) => h('i', {style: {background: sequential(i / 23)}}))),
        h('span', {class: 'faint'}, `${fmt.percent(this.range[1])} requested`),
        h('span', {class: 'faint row'}, h('i', {class: 'mark off'}), 'cordoned'),
        h('span', {class: 'faint row'}, h('i', {class: 'mark down'}), 'not ready'));
  }

  changed({rows, changed, synced}) {
    this.nodes = rows;
    const shape = !changed ||
        changed.some(
            (c) => c.type !== 'MODIFIED' || !c.old || (c.old.labels || {})[this.by] !== (c.row.labels || {})[this.by]);
    if (shape) this.choices();
    if (shape || this.orderSelect.value !== 'name') {
      cancelAnimationFrame(this.pending);
      this.pending = requestAnimationFrame(() => this.layout());
    } else {
      for (const c of changed) {
        const i = this.byName.get(c.row.name);
        if (i !== undefined) this.cells[i].node = c.row;
      }
      this.totals();
      this.canvas.redraw();
    }
    const none = synced && rows.size === 0;
    this.emptyEl.hidden = !none;
    this.scroll.hidden = none;
    if (none && !this.emptyEl.firstChild)
      replace(
          this.emptyEl,
          empty(
              'There are no nodes', 'The overview offers some ways to begin.',
              h('a', {class: 'button primary', href: to('overview')}, 'To the overview')));
  }
  choices() {
    const resources = new Set(['cpu', 'memory', 'pods']), labels = new Map();
    for (const n of this.nodes.values()) {
      for (const k of Object.keys((n.allocatable || {}).resources || {})) resources.add(k);
      for (const [k, v] of Object.entries(n.labels || {})) {
        let s = labels.get(k);
        if (!s) labels.set(k, (s = new Set()));
        if (s.size < 200) s.add(v);
      }
    }
    const pick = (select, items, value) => {
      const t = items.map((i) => i[0]).join();
      if (select.dataset.items !== t) {
        select.dataset.items = t;
        replace(select, items.map(([v, x]) => h('option', {value: v}, x)));
      }
      select.value = value;
    };
    pick(this.resSelect, [...resources].map((x) => [x, x]), this.res);
    // Labels that group: more than one value at most as many as half of the nodes.
    const good = [...labels]
                     .filter(
                         ([k, s]) => k === this.by || k === ZONE ||
                             (s.size > 1 && s.size <= Math.max(2, this.nodes.size / 2) && s.size < 200))
                     .map(([k]) => k)
                     .sort(compareNames);
    if (this.by && !good.includes(this.by)) good.unshift(this.by);
    pick(this.bySelect, [['', 'not at all'], ...good.map((k) => [k, k])], this.by);
  }

  // ---- where everything is
  layout() {
    const W = this.scroll.clientWidth - 24, H = this.scroll.clientHeight;
    if (W < 50 || H < 50 || !this.nodes.values) return;
    const groups = new Map();
    for (const n of this.nodes.values()) {
      const g = this.by ? (n.labels || {})[this.by] ?? '' : '';
      let list = groups.get(g);
      if (!list) groups.set(g, (list = []));
      list.push(n);
    }
    const order = this.orderSelect.value, byName = (a, b) => (a.name < b.name ? -1 : 1);
    const fast = this.nodes.size > 3000;  // natural order of many names is slow: only when the set changes
    for (const list of groups.values()) {
      if (order === 'name') list.sort(fast ? byName : (a, b) => compareNames(a.name, b.name));
      else
        list.sort(
            (a, b) => ((share(b, this.res) ?? -1) - (share(a, this.res) ?? -1)) * (order === 'full' ? 1 : -1) ||
                byName(a, b));
    }
    const names = [...groups.keys()].sort((a, b) => (a === '' ? 1 : b === '' ? -1 : compareNames(a, b)));
    let lo = MIN, hi = MAX;
    while (hi - lo > 0.5) {
      const mid = (lo + hi) / 2;
      if (this.place(names, groups, mid, W, null) <= H) lo = mid;
      else hi = mid;
    }
    this.cell = Math.max(MIN, Math.min(MAX, lo * this.zoom));
    if (this.zoom === 1) this.cell = Math.max(MIN, Math.floor(lo));
    const cells = [], placed = [];
    const total = this.place(names, groups, this.cell, W, (g, x, y, w, cols, list) => {
      placed.push({name: g, x, y, w, list, from: cells.length, cols});
      list.forEach((node, i) => cells.push({
        node,
        x: x + (i % cols) * this.cell,
        y: y + HEAD + Math.floor(i / cols) * this.cell,
        g: placed.length - 1
      }));
    });
    const was = this.cursor >= 0 && this.cells[this.cursor] ? this.cells[this.cursor].node.name : null;
    this.cells = cells;
    this.groups = placed;
    this.byName = new Map(cells.map((c, i) => [c.node.name, i]));
    this.cursor = was !== null && this.byName.has(was) ? this.byName.get(was) : -1;
    this.spacer.style.height = `${Math.max(total, H)}px`;
    this.hover = -1;
    this.totals();
    this.highlight();
  }
  // Groups stand side by side when they are narrow. Calls f for each; returns the height.
  place(names, groups, cell, W, f) {
    let x = 0, y = 8, row = 0;
    for (const g of names) {
      const list = groups.get(g), n = list.length;
      let cols = Math.max(1, Math.floor(W / cell));
      if (names.length > 1) cols = Math.min(cols, Math.max(Math.ceil(Math.sqrt(n * 1.5)), Math.ceil(150 / cell)));
      if (names.length > 1 && names.length <= 4)
        cols = Math.max(
            1, Math.floor((W - GAP * (names.length - 1)) / names.length / cell));  // few groups share the width
      const w = Math.max(cols * cell, 170), hh = HEAD + Math.ceil(n / cols) * cell;
      if (x > 0 && x + w > W + 0.5) {
        x = 0;
        y += row + GAP;
        row = 0;
      }
      if (f) f(g, x + 12, y, w, cols, list);
      x += w + GAP;
      row = Math.max(row, hh);
    }
    return y + row + 8;
  }
  totals() {
    let a = 0, u = 0, down = 0, low = 1, high = 0;
    for (const g of this.groups) {
      let ga = 0, gu = 0;
      for (const n0 of g.list) {
        const i = this.byName.get(n0.name), n = i === undefined ? n0 : this.cells[i].node;
        ga += amount(n.allocatable || {}, this.res);
        gu += amount(n.requested || {}, this.res);
        if (!n.ready) down++;
        const x = share(n, this.res);
        if (x === null) continue;
        low = Math.min(low, x);
        high = Math.max(high, Math.min(1, x));
      }
      g.share = ga ? gu / ga : null;
      a += ga;
      u += gu;
    }
    const range = this.stretch.checked && low < high ? [low, high] : [0, 1];
    if (range.join() !== this.range.join()) {
      this.range = range;
      this.drawLegend();
    }
    const q = (x) => fmt.quantity(this.res, x);
    this.text.textContent = `${plural(this.cells.length, 'node')}${
        this.by ? ` in ${plural(this.groups.length, 'group')}` : ''}, ${this.res}: ${q(u)} of ${q(a)} requested${
        a ? ` (${fmt.percent(u / a)})` : ''}${down ? `, ${fmt.count(down)} not ready` : ''}`;
  }
  // Where a share is on the scale, from 0 to 1.
  tone(x) {
    const [low, high] = this.range;
    return Math.max(0, Math.min(1, (x - low) / (high - low)));
  }
  highlight() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.match = words.length ? (n) => words.every((w) => {
      const [k, v] = w.split('=');
      return v !== undefined ? String((n.labels || {})[k]).toLowerCase() === v : n.name.toLowerCase().includes(w);
    })
                              : null;
    this.canvas.redraw();
  }

  // ---- drawing
  draw(ctx, W, H) {
    const t0 = performance.now(), css = getComputedStyle(document.documentElement),
          color = (v) => css.getPropertyValue(v).trim();
    const top = this.scroll.scrollTop, s = this.cell, pad = s > 12 ? 2 : s > 6 ? 1 : 0.5, side = s - pad;
    const palette = Array.from({length: 65}, (_, i) => sequential(i / 64)), text = color('--text'),
          faint = color('--text-3'), bad = color('--bad'), surface = color('--surface'), line = color('--line-2');
    ctx.fillStyle = surface;
    ctx.fillRect(0, 0, W, H);
    ctx.textBaseline = 'middle';
    ctx.font = `600 12px ${color('--font')}`;
    for (const g of this.groups) {
      if (g.y - top > H || g.y + HEAD - top < 0 || !this.by) continue;
      const name = g.name === '' ? 'no such label' : g.name,
            info = `${fmt.count(g.list.length)}${g.share === null ? '' : `, ${fmt.percent(g.share)}`}`;
      ctx.fillStyle = text;
      const w = ctx.measureText(name).width, room = g.w - ctx.measureText(info).width - 14;
      ctx.save();
      ctx.beginPath();
      ctx.rect(g.x, g.y - top, Math.max(20, room), HEAD);
      ctx.clip();
      ctx.fillText(name, g.x, g.y - top + HEAD / 2);
      ctx.restore();
      ctx.fillStyle = faint;
      ctx.fillText(info, g.x + Math.min(w, Math.max(20, room)) + 8, g.y - top + HEAD / 2);
    }
    const range = this.visible(top, H);
    for (const [from, to2] of range) {
      for (let i = from; i < to2; i++) {
        const c = this.cells[i], y = c.y - top;
        if (y + s < 0 || y > H) continue;
        const x = share(c.node, this.res), dim = this.match && !this.match(c.node);
        ctx.globalAlpha = dim ? 0.16 : 1;
        if (x === null) {
          ctx.fillStyle = surface;
          ctx.fillRect(c.x, y, side, side);
          ctx.strokeStyle = line;
          ctx.lineWidth = 1;
          ctx.strokeRect(c.x + 0.5, y + 0.5, side - 1, side - 1);
        } else {
          ctx.fillStyle = c.node.ready ? palette[Math.round(this.tone(x) * 64)] : bad;
          ctx.fillRect(c.x, y, side, side);
        }
        if (!c.node.ready || c.node.unschedulable)
          this.markCell(ctx, c, y, side, c.node.ready ? inkOn(this.tone(x || 0)) : surface);
        if (s >= 44) this.label(ctx, c, y, side, x);
      }
    }
    ctx.globalAlpha = 1;
    for (const [i, w] of [[this.hover, 1.5], [this.cursor, 2.5]]) {
      const c = this.cells[i];
      if (!c) continue;
      ctx.strokeStyle = i === this.cursor ? color('--focus') : text;
      ctx.lineWidth = w;
      ctx.strokeRect(c.x - 1, c.y - top - 1, side + 2, side + 2);
    }
    this.frames.push(performance.now() - t0);
    if (this.frames.length > 600) this.frames.shift();
  }
  visible(top, H) {
    return this.groups
        .filter((g) => g.y - top < H && g.y + HEAD + Math.ceil(g.list.length / g.cols) * this.cell - top > 0)
        .map((g) => {
          const first = Math.max(0, Math.floor((top - g.y - HEAD) / this.cell)), rows = Math.ceil(H / this.cell) + 2;
          return [
            g.from + Math.min(g.list.length, first * g.cols), g.from + Math.min(g.list.length, (first + rows) * g.cols)
          ];
        });
  }
  markCell(ctx, c, y, side, stroke) {
    ctx.strokeStyle = stroke;
    ctx.lineWidth = side > 10 ? 2 : 1;
    ctx.beginPath();
    ctx.moveTo(c.x + 1, y + side - 1);
    ctx.lineTo(c.x + side - 1, y + 1);
    if (!c.node.ready) {
      ctx.moveTo(c.x + 1, y + 1);
      ctx.lineTo(c.x + side - 1, y + side - 1);
    }
    ctx.stroke();
  }
  label(ctx, c, y, side, x) {
    ctx.fillStyle = x === null ? getComputedStyle(this.scroll).color
        : c.node.ready         ? inkOn(this.tone(x))
                               : getComputedStyle(this.panel).backgroundColor;
    ctx.font = '11px system-ui, sans-serif';
    ctx.save();
    ctx.beginPath();
    ctx.rect(c.x + 3, y, side - 6, side);
    ctx.clip();
    ctx.fillText(c.node.name, c.x + 5, y + 12);
    if (x !== null) ctx.fillText(fmt.percent(x), c.x + 5, y + 26);
    ctx.restore();
  }

  // ---- pointer and keys
  at(e) {
    const b = this.scroll.getBoundingClientRect(), x = e.clientX - b.left,
          y = e.clientY - b.top + this.scroll.scrollTop;
    for (const g of this.groups) {
      const c = Math.floor((x - g.x) / this.cell), r = Math.floor((y - g.y - HEAD) / this.cell), i = r * g.cols + c;
      if (c >= 0 && c < g.cols && r >= 0 && i < g.list.length) return g.from + i;
    }
    return -1;
  }
  onMove(e) {
    const i = this.at(e);
    if (i !== this.hover) {
      this.hover = i;
      this.canvas.redraw();
      this.scroll.style.cursor = i >= 0 ? 'pointer' : '';
    }
    if (i < 0) tip(0, 0, null);
    else tip(e.clientX, e.clientY, this.card(this.cells[i].node));
  }
  card(n) {
    const names = ['cpu', 'memory', 'pods', ...(['cpu', 'memory', 'pods'].includes(this.res) ? [] : [this.res])];
    return h(
        'div', {class: 'col', style: {gap: '5px', minWidth: '220px'}},
        h('div', {class: 'row'}, h('b', {}, n.name), h('span', {class: 'grow'}), tag(...nodeStatus(n))),
        n.zone ? h('div', {class: 'faint'}, n.zone) : null, names.map((res) => {
          const a = amount(n.allocatable || {}, res), u = amount(n.requested || {}, res);
          return h(
              'div', {},
              h('div', {class: 'row'}, h('span', {class: 'grow'}, res),
                h('span', {class: 'num'}, `${fmt.quantity(res, u)} / ${fmt.quantity(res, a)}`)),
              stackedBar(
                  [{value: Math.min(u, a), colour: sequential(0.3 + 0.65 * Math.min(1, a ? u / a : 0))}],
                  {max: a || 1, height: 6, label: res}));
        }),
        (n.taints || []).length ? h('div', {class: 'faint'}, `Taints: ${n.taints.map(taintText).join(', ')}`) : null);
  }
  setZoom(z, e) {
    const was = this.cell,
          at = this.scroll.scrollTop +
        (e ? e.clientY - this.scroll.getBoundingClientRect().top : this.scroll.clientHeight / 2);
    this.zoom = Math.max(1, Math.min(24, z));
    this.layout();
    this.scroll.scrollTop += at * (this.cell / was) - at;
    this.canvas.redraw();
  }
  onKey(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === '+' || e.key === '=') {
      e.preventDefault();
      this.setZoom(this.zoom * 1.4);
      return;
    }
    if (e.key === '-') {
      e.preventDefault();
      this.setZoom(this.zoom / 1.4);
      return;
    }
    if (e.key === '0') {
      e.preventDefault();
      this.setZoom(1);
      return;
    }
    const c = this.cells[this.cursor];
    if (e.key === 'Enter' && c) {
      e.preventDefault();
      navigate(to('nodes', c.node.name));
      return;
    }
    const step = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
      Home: 'first',
      End: 'last'
    }[e.key];
    if (!step || !this.cells.length) return;
    e.preventDefault();
    this.cursor = !c || step === 'first' ? 0 : step === 'last' ? this.cells.length - 1 : this.neighbour(c, step);
    const n = this.cells[this.cursor], y = n.y - this.scroll.scrollTop;
    if (y < HEAD) this.scroll.scrollTop = n.y - HEAD - 8;
    else if (y + this.cell > this.scroll.clientHeight)
      this.scroll.scrollTop = n.y + this.cell - this.scroll.clientHeight + 8;
    const b = this.scroll.getBoundingClientRect();
    tip(b.left + n.x + this.cell, b.top + n.y - this.scroll.scrollTop + this.cell, this.card(n.node));
    this.say.textContent =
        `${n.node.name}, ${nodeStatus(n.node)[0]}, ${this.res} ${fmt.percent(share(n.node, this.res))} requested`;
    this.canvas.redraw();
  }
  neighbour(c, [dx, dy]) {
    if (dx) return Math.max(0, Math.min(this.cells.length - 1, this.cursor + dx));
    const g = this.groups[c.g], i = this.cursor - g.from + dy * g.cols;
    if (i >= 0 && i < g.list.length) return g.from + i;
    // Into the nearest cell of another group in this direction.
    let best = this.cursor, d = Infinity;
    this.cells.forEach((o, j) => {
      const away = (o.y - c.y) * dy;
      if (o.g !== c.g && away > 0) {
        const q = away * 4 + Math.abs(o.x - c.x);
        if (q < d) {
          d = q;
          best = j;
        }
      }
    });
    return best;
  }
}
