// SPDX-License-Identifier: Apache-2.0
//
// widgets.js - dialogs, messages, tabs, bars, charts; lib.js lists them and passes them on
import {fmt, h, icon, replace, uniqueId} from './lib.js';

// ---- dialogs and messages ----------------------------------------------------------------------------------

// buttons: [{text, kind: 'primary'|'danger primary'|'', value, action?() -> false keeps it open (may be async)}].
// Resolves with the button's value, null when it was closed. focus: the element that gets the focus first.
export function dialog({title, body, buttons = [{text: 'Close', value: null}], wide, focus}) {
  return new Promise((done) => {
    let result = null;
    const close = (v) => {
      result = v;
      el.close();
    };
    const press = async (b) => {
      if (b.action) {
        for (const x of foot.querySelectorAll('button')) x.disabled = true;
        let keep;
        try {
          keep = await b.action();
        } catch (e) {
          keep = false;
          toast(e.message, 'bad');
        }
        for (const x of foot.querySelectorAll('button')) x.disabled = false;
        if (keep === false) return;
      }
      close(b.value ?? null);
    };
    const foot = h(
        'footer', {},
        buttons.map(
            (b) => h(
                'button', {type: 'button', class: b.kind || '', onclick: () => press(b), autofocus: b.focus}, b.text)));
    const id = uniqueId('dlg');
    const el =
        h('dialog', {
          class: wide ? 'wide' : '',
          'aria-labelledby': id,
          onclose: () => {
            el.remove();
            done(result);
          }
        },
          h('header', {}, h('span', {class: 'grow', id}, title),
            h('button', {type: 'button', class: 'ghost icononly', 'aria-label': 'Close', onclick: () => close(null)},
              icon('close'))),
          h('div', {
            class: 'body',
            onkeydown: (e) => {
              const ok = foot.querySelector('.primary:not(.danger)');
              if (e.key === 'Enter' && e.target.matches('input:not([type=checkbox]):not([type=file])') && ok) {
                e.preventDefault();
                ok.click();
              }
            }
          },
            body),
          foot);
    document.body.append(el);
    el.showModal();
    if (focus) focus.focus();
    else {
      const b =
          foot.querySelector('[autofocus]') || foot.querySelector('.primary:not(.danger)') || foot.lastElementChild;
      if (b) b.focus();
    }
  });
}

export function confirmDialog({title, body, confirm = 'OK', cancel = 'Cancel', danger, wide}) {
  return dialog({
           title,
           body,
           wide,
           buttons: [
             {text: cancel, value: false, focus: danger},
             {text: confirm, kind: danger ? 'danger primary' : 'primary', value: true}
           ]
         })
      .then(Boolean);
}

export function toast(text, tone = 'info', {stay} = {}) {
  const box = document.getElementById('toasts');
  const el =
      h('div', {class: `toast ${tone}`}, h('span', {class: 'grow'}, text),
        h('button', {type: 'button', class: 'ghost', 'aria-label': 'Dismiss', onclick: () => el.remove()},
          icon('close')));
  while (box.childElementCount >= 4) box.firstElementChild.remove();
  box.append(el);
  if (!stay) setTimeout(() => el.remove(), tone === 'bad' ? 12000 : 5000);
}

// items: [[text, function]]; the list closes at Esc, at a click beside it and when the focus leaves it.
export function menuButton(label, items, {icon: name, title, kind = ''} = {}) {
  const list = h('div', {class: 'menu', role: 'menu', hidden: true});
  const button =
      h('button', {
        type: 'button',
        class: kind,
        title,
        'aria-haspopup': 'menu',
        'aria-expanded': 'false',
        onclick: () => open(list.hidden)
      },
        name ? icon(name) : null, label);
  const open = (on) => {
    list.hidden = !on;
    button.setAttribute('aria-expanded', String(on));
    if (on) list.querySelector('button').focus();
  };
  for (const [text, f] of items)
    list.append(
        h('button', {
          type: 'button',
          role: 'menuitem',
          class: 'ghost',
          onclick: () => {
            open(false);
            button.focus();
            f();
          }
        },
          text));
  list.addEventListener('keydown', (e) => {
    const all = [...list.children], i = all.indexOf(document.activeElement);
    if (e.key === 'Escape') {
      e.stopPropagation();
      open(false);
      button.focus();
    }
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      all[(i + (e.key === 'ArrowDown' ? 1 : all.length - 1)) % all.length].focus();
    }
  });
  const el = h('span', {class: 'menubox'}, button, list);
  el.addEventListener('focusout', (e) => {
    if (!el.contains(e.relatedTarget)) open(false);
  });
  return el;
}

export function download(name, text, type = 'text/plain') {
  const url = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], {type}));
  const a = h('a', {href: url, download: name});
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// ---- small pieces ------------------------------------------------------------------------------------------

export const tag = (text, tone = '') => h('span', {class: `tag ${tone}`}, text);
export function labelTags(labels, max = 100) {
  const all = Object.entries(labels || {});
  return h(
      'span', {class: 'tags'},
      all.slice(0, max).map(
          ([k, v]) => h('span', {class: 'tag label', title: `${k}=${v}`}, v === '' ? k : `${k}=${v}`)),
      all.length > max ? h('span', {class: 'faint'}, `${all.length - max} more`) : null);
}
export const kv = (pairs) =>
    h('dl', {class: 'kv'},
      pairs.filter((p) => p && p[1] !== null && p[1] !== undefined && p[1] !== '')
          .map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)]));
export const note = (tone, ...body) => h('div', {class: `note ${tone}`, role: tone === 'bad' ? 'alert' : null}, body);
export const empty = (title, text, ...more) =>
    h('div', {class: 'empty'}, h('h2', {}, title), text ? h('p', {}, text) : null,
      more.length ? h('p', {class: 'row', style: {justifyContent: 'center', marginTop: '12px'}}, more) : null);
export const spinner = (text = 'Loading') =>
    h('div', {class: 'row faint', role: 'status', style: {padding: '12px'}}, h('span', {class: 'spin'}), text);
export function errorNote(e) {
  const where = [e.field ? `field ${e.field}` : '', e.line ? `line ${e.line}` : ''].filter(Boolean).join(', ');
  return note(
      'bad', e.message, where && !e.message.includes(e.field || '\0') ? h('div', {class: 'faint'}, where) : null);
}
// panel('Pods', {tools: [nodes], flush: true, class: ''}, ...body)
export function panel(title, o, ...body) {
  if (!o || o instanceof Node || typeof o === 'string' || Array.isArray(o)) {
    body.unshift(o);
    o = {};
  }
  return h(
      'section', {class: `panel ${o.class || ''}`, 'aria-label': typeof title === 'string' ? title : null},
      title === null ? null : h('header', {}, h('h2', {}, title), h('span', {class: 'grow'}), o.tools || []),
      h('div', {class: o.flush ? 'body flush' : 'body', style: o.style}, body));
}
// columns: [{title, cell(row), align}]
export function plainTable(columns, rows, {emptyText = 'None'} = {}) {
  if (!rows.length) return h('div', {class: 'faint', style: {padding: '8px 10px'}}, emptyText);
  const cls = (c) => (c.align === 'right' ? 'right num' : null);
  return h(
      'table', {class: 'plain'},
      h('thead', {}, h('tr', {}, columns.map((c) => h(c.title ? 'th' : 'td', {class: cls(c), scope: c.title ? 'col' : null}, c.title)))),
      h('tbody', {}, rows.map((r) => h('tr', {}, columns.map((c) => h('td', {class: cls(c)}, c.cell(r)))))));
}

// items: [{id, title, count?, body: Node or function -> Node (made when first shown)}] -> element
export function tabs(items, {selected, onSelect} = {}) {
  const list = h('div', {class: 'tabs', role: 'tablist'}), body = h('div', {class: 'tabbody'}), made = new Map();
  const buttons = items.map(
      (t) =>
          h('button', {type: 'button', role: 'tab', id: uniqueId('tab'), onclick: () => show(t.id, true)}, t.title,
            t.count !== undefined ? h('span', {class: 'count'}, ` ${t.count}`) : null));
  const show = (id, user) => {
    const i = Math.max(0, items.findIndex((t) => t.id === id)), t = items[i];
    buttons.forEach((b, j) => {
      b.setAttribute('aria-selected', String(i === j));
      b.tabIndex = i === j ? 0 : -1;
    });
    if (!made.has(t.id))
      made.set(
          t.id,
          h('div', {role: 'tabpanel', class: 'tabpanel', 'aria-labelledby': buttons[i].id},
            typeof t.body === 'function' ? t.body() : t.body));
    body.replaceChildren(made.get(t.id));
    if (user && onSelect) onSelect(t.id);
  };
  list.addEventListener('keydown', (e) => {
    const i = buttons.indexOf(document.activeElement), step = {ArrowRight: 1, ArrowLeft: buttons.length - 1}[e.key];
    if (i < 0 || !step) return;
    e.preventDefault();
    const j = (i + step) % buttons.length;
    buttons[j].focus();
    show(items[j].id, true);
  });
  list.append(...buttons);
  const el = h('div', {class: 'tabbox'}, list, body);
  el.show = (id) => show(id);
  if (items.length) show(selected || items[0].id);
  return el;
}

// items: [[value, text]]
export function segmented(items, value, onChange, label) {
  const buttons = items.map(
      ([v, text]) =>
          h('button', {
            type: 'button',
            'aria-pressed': String(v === value),
            onclick: () => {
              mark(v);
              onChange(v);
            }
          },
            text));
  const mark = (v) => buttons.forEach((b, i) => b.setAttribute('aria-pressed', String(items[i][0] === v)));
  const el = h('span', {class: 'segmented', role: 'group', 'aria-label': label}, buttons);
  el.set = mark;
  return el;
}

// ---- colours -----------------------------------------------------------------------------------------------

export const colour = (i) => `var(--c${(((i % 12) + 12) % 12) + 1})`;
export const dark = () => document.documentElement.dataset.theme === 'dark';
// One direction of lightness each, so that the order survives any colour blindness and a grey print.
const SCALES = {
  light: [[223, 231, 236], [190, 220, 224], [122, 186, 200], [56, 138, 170], [38, 88, 140], [43, 38, 98]],
  dark: [[35, 48, 58], [38, 76, 98], [37, 112, 128], [70, 152, 132], [150, 192, 104], [246, 226, 98]],
};
export function sequential(t) {
  const s = SCALES[dark() ? 'dark' : 'light'], x = Math.max(0, Math.min(1, isFinite(t) ? t : 0)) * (s.length - 1),
        i = Math.min(s.length - 2, Math.floor(x)), f = x - i;
  return `rgb(${[0, 1, 2].map((k) => Math.round(s[i][k] + (s[i + 1][k] - s[i][k]) * f)).join(',')})`;
}
// A text colour that can be read on sequential(t).
export const inkOn = (t) => (dark() ? (t > 0.58 ? '#10181d' : '#e9f0f4') : t > 0.45 ? '#ffffff' : '#1b252d');

// ---- bars and charts ---------------------------------------------------------------------------------------

// segments: [{value, colour, title}]; max: the whole width (default: the sum)
export function stackedBar(segments, {max, height = 10, label} = {}) {
  const sum = segments.reduce((s, x) => s + Math.max(0, x.value), 0), whole = max || sum || 1;
  const name = label || segments.map((s) => s.title).filter(Boolean).join(', ');
  const described = name ? {role: 'img', 'aria-label': name} : {'aria-hidden': 'true'};  // the text beside it says the same
  return h(
      'div', {class: 'bar', ...described, style: {height: `${height}px`}},
      segments.map((s) => h('i', {
                     title: s.title,
                     style: {width: `${Math.max(0, (s.value / whole) * 100)}%`, background: s.colour, flex: 'none'}
                   })));
}
export const legend = (items) =>
    h('div', {class: 'legend'}, items.map(([text, c]) => h('span', {}, h('i', {style: {background: c}}), text)));

let tipEl = null;
// Shows nodes beside the pointer; tip(0, 0, null) hides it.
export function tip(x, y, ...body) {
  if (!tipEl) {
    tipEl = h('div', {class: 'charttip', role: 'tooltip'});
    document.body.append(tipEl);
  }
  if (!body.length || body[0] === null) {
    tipEl.hidden = true;
    return;
  }
  replace(tipEl, body);
  tipEl.hidden = false;
  const w = tipEl.offsetWidth, hh = tipEl.offsetHeight;
  tipEl.style.left = `${x + 14 + w > innerWidth ? Math.max(4, x - w - 10) : x + 14}px`;
  tipEl.style.top = `${y + 14 + hh > innerHeight ? Math.max(4, y - hh - 10) : y + 14}px`;
}

function niceStep(max, n) {
  const raw = max / n, p = 10 ** Math.floor(Math.log10(raw || 1));
  return [1, 2, 2.5, 5, 10].map((m) => m * p).find((s) => s >= raw) || p;
}

// lineChart({series: [{name, colour, points: [[x, y]]}], height, yMax?, yText(y), xText(x), xMin?, xMax?, label, steps?: bool, area?: bool,
//            marks?: [{x, title, colour}]}) -> element with .set(o) that draws anew. x: numbers (times in ms).
export function lineChart(o) {
  const el = h('div', {class: 'chartbox'});
  el.set = (more) => {
    Object.assign(o, more);
    draw();
  };
  const size = new ResizeObserver(() => draw());
  size.observe(el);
  let plot = null;
  function draw() {
    const W = el.clientWidth, H = o.height || 160;
    el.style.height = `${H}px`;
    if (!W) return;
    const all = o.series.flatMap((s) => s.points), L = 46, R = 8, T = 8, B = 20;
    const fold = (f, k, start) => all.reduce((m, p) => f(m, p[k]), start);
    const x0 = o.xMin ?? fold(Math.min, 0, Infinity), x1 = o.xMax ?? fold(Math.max, 0, -Infinity);
    const top = o.yMax ?? Math.max(fold(Math.max, 1, 0), 1e-9), step = o.yStep || niceStep(top, 4),
          y1 = o.yMax ?? Math.ceil(top / step - 1e-9) * step;
    const X = (x) => L + ((x - x0) / (x1 - x0 || 1)) * (W - L - R),
          Y = (y) => H - B - (Math.min(y, y1) / (y1 || 1)) * (H - T - B);
    const svg = h('svg:svg', {
      class: 'chart',
      width: W,
      height: H,
      viewBox: `0 0 ${W} ${H}`,
      role: 'img',
      'aria-label': o.label || o.series.map((s) => s.name).join(', ')
    });
    if (!all.length)
      svg.append(
          h('svg:text', {x: L + (W - L - R) / 2, y: T + (H - T - B) / 2, 'text-anchor': 'middle'},
            o.emptyText || 'Nothing measured yet'));
    for (let y = 0; y <= y1 + step / 2; y += step)
      svg.append(
          h('svg:line', {class: 'gridline', x1: L, x2: W - R, y1: Y(y), y2: Y(y)}),
          h('svg:text', {x: L - 6, y: Y(y) + 4, 'text-anchor': 'end'}, (o.yText || String)(y)));
    if (all.length && isFinite(x0) && isFinite(x1)) {
      const n = Math.max(1, Math.floor((W - L) / 130));
      for (let i = 0; i <= n; i++) {
        const x = x0 + ((x1 - x0) * i) / n;
        svg.append(
            h('svg:text',
              {x: X(x),
               y: H - 5,
               'text-anchor': i === 0 ? 'start'
                   : i === n          ? 'end'
                                      : 'middle'},
              (o.xText || String)(x)));
      }
    }
    for (const m of o.marks || [])
      svg.append(
          h('svg:line',
            {x1: X(m.x), x2: X(m.x), y1: T, y2: H - B, stroke: m.colour || 'var(--text-3)', 'stroke-dasharray': '2 3'},
            h('svg:title', {}, m.title)));
    o.series.forEach((s, i) => {
      if (!s.points.length) return;
      let d = '', last = null;
      for (const [x, y] of s.points) {
        if (last !== null && o.steps) d += `H${X(x).toFixed(1)}`;
        d += `${last === null ? 'M' : 'L'}${X(x).toFixed(1)} ${Y(y).toFixed(1)}`;
        last = y;
      }
      const c = s.colour || colour(i);
      if (o.area)
        svg.append(h('svg:path', {
          d: `${d}L${X(s.points[s.points.length - 1][0]).toFixed(1)} ${Y(0)}L${X(s.points[0][0]).toFixed(1)} ${Y(0)}Z`,
          fill: c,
          opacity: '.14'
        }));
      svg.append(h('svg:path', {d, fill: 'none', stroke: c, 'stroke-width': '1.6', 'stroke-linejoin': 'round'}));
    });
    plot =
        {X, x0, x1, L, R, W, T, H, B, cross: h('svg:line', {class: 'cross', y1: T, y2: H - B, visibility: 'hidden'})};
    svg.append(plot.cross);
    el.replaceChildren(svg);
  }
  el.addEventListener('pointermove', (e) => {
    if (!plot || !o.series.some((s) => s.points.length)) return;
    const px = e.clientX - el.getBoundingClientRect().left,
          x = plot.x0 + ((px - plot.L) / (plot.W - plot.L - plot.R)) * (plot.x1 - plot.x0);
    const near = (pts) => pts.reduce((b, p) => (b === null || Math.abs(p[0] - x) < Math.abs(b[0] - x) ? p : b), null);
    const hits = o.series.map((s, i) => [s, near(s.points), i]).filter((t) => t[1]);
    const at = hits[0][1][0];
    plot.cross.setAttribute('x1', plot.X(at));
    plot.cross.setAttribute('x2', plot.X(at));
    plot.cross.setAttribute('visibility', 'visible');
    tip(e.clientX, e.clientY, h('div', {class: 'faint'}, (o.xText || String)(at)),
        hits.map(
            ([s, p, i]) =>
                h('div', {class: 'row'},
                  h('i',
                    {style: {width: '10px', height: '10px', borderRadius: '2px', background: s.colour || colour(i)}}),
                  s.name, h('b', {class: 'num', style: {marginLeft: 'auto'}}, (o.yText || fmt.count)(p[1])))));
  });
  el.addEventListener('pointerleave', () => {
    tip(0, 0, null);
    if (plot) plot.cross.setAttribute('visibility', 'hidden');
  });
  return el;
}

// A canvas as large as its parent, sharp on every screen; draw(ctx, width, height) is called at most once a frame after
// .redraw(), and whenever size or theme change.
export function canvasView(parent, draw) {
  const canvas =
            h('canvas', {style: {display: 'block', position: 'absolute', inset: '0', width: '100%', height: '100%'}}),
        ctx = canvas.getContext('2d', {alpha: false});
  let asked = 0;
  const paint = () => {
    asked = 0;
    const w = parent.clientWidth, hh = parent.clientHeight, k = devicePixelRatio || 1;
    if (!w || !hh) return;
    if (canvas.width !== Math.round(w * k) || canvas.height !== Math.round(hh * k)) {
      canvas.width = Math.round(w * k);
      canvas.height = Math.round(hh * k);
    }
    ctx.setTransform(k, 0, 0, k, 0, 0);
    draw(ctx, w, hh);
  };
  canvas.redraw = () => {
    if (!asked) asked = requestAnimationFrame(paint);
  };
  parent.append(canvas);
  new ResizeObserver(canvas.redraw).observe(parent);
  const onTheme = () => (canvas.isConnected ? canvas.redraw() : removeEventListener('berth-theme', onTheme));
  addEventListener('berth-theme', onTheme);
  return canvas;
}
