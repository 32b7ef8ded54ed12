// SPDX-License-Identifier: Apache-2.0
//
// weights.js - #/weights: a slider for every plugin that scores, and how many pods would move
//
// Every position of the sliders is a configuration; the server decides all pods with it and with the running one, in
// a worker thread (configs/diff). A newer position cancels the question about an older one.

import { YamlEditor, colour, confirmDialog, debounce, diffView, fetchJSON, fmt, h, note, panel, plural, registerScreen, replace, tabs, toast } from './lib.js';
import { ask, count, failure, pluginColours } from './parts.js';
import { copy, toYaml } from './edits.js';
import { differences } from './capacity.js';
import { putInForce, seen } from './config.js';

const MOST = 20; // of a slider; its number takes larger ones, and the slider follows
const PAUSE = 250, BUSY = 429, BUSY_PAUSE = 1000; // ms: after the last move; until the server is asked again
const COUNTED = 'All pods that are on nodes or wait for one are placed again on the nodes of this moment, in the order of their creation, '
  + 'once with the running weights and once with these. A pod counts when its node is another one. Pods of daemon sets stay; ties go to the first name.';

// The configuration with these weights in one profile; 0: the plugin does not score.
export function withWeights(config, profile, weights) {
  const c = copy(config), of = c.profiles.find((p) => p.schedulerName === profile), plugins = (of.plugins ||= {});
  const score = (plugins.score ||= {}), all = (plugins.multiPoint || {}).enabled || [];
  let off = score.disabled || [], own = score.enabled || [];
  for (const [name, weight] of weights) {
    off = off.filter((x) => x.name !== name);
    const at = own.find((x) => x.name === name) || (off.some((x) => x.name === '*') ? null : all.find((x) => x.name === name));
    if (!weight) {
      own = own.filter((x) => x.name !== name);
      off = [...off, { name }];
    } else if (at) at.weight = weight;
    else own = [...own, { name, weight }];
  }
  delete score.disabled;
  delete score.enabled;
  if (off.length) score.disabled = off;
  if (own.length) score.enabled = own;
  return c;
}

class Weights {
  constructor(place) {
    this.rows = h('ul', { class: 'q-weights' });
    this.profile = h('select', { 'aria-label': 'profile', onchange: () => this.fill() });
    this.applyButton = h('button', { type: 'button', class: 'primary', disabled: true, writes: true, onclick: () => this.apply() }, 'Apply');
    this.moved = h('div', { class: 'row', role: 'status' });
    this.result = h('div', { class: 'col' });
    this.diff = h('div');
    this.yaml = new YamlEditor({ readOnly: true, label: 'the configuration with these weights' });
    this.soon = debounce(PAUSE, () => this.count());
    this.later = debounce(BUSY_PAUSE, () => this.soon());
    replace(place, h('div', { class: 'q-ask-and-see' },
      h('div', {}, panel('Weights of the plugins that score', { tools: [this.profile] }, this.rows),
        h('div', { class: 'row wrap' }, h('button', { type: 'button', onclick: () => this.fill() }, 'Back to running'), this.applyButton),
        tabs([{ id: 'diff', title: 'What changes', body: h('div', { class: 'panel sidepane' }, this.diff) }, { id: 'yaml', title: 'As YAML', body: this.yaml.el }])),
      h('div', {}, panel('Pods that would move', { tools: [h('button', { type: 'button', class: 'ghost', title: 'On the nodes of this moment', onclick: () => this.count() }, 'Count again')] }, h('div', { class: 'col' }, this.moved, h('p', { class: 'muted' }, COUNTED))), this.result)));
    this.load();
  }

  leave() {
    this.gone = true;
    this.soon.cancel();
    this.later.cancel();
    if (this.asked) this.asked.abort();
  }

  async load() {
    try {
      this.running = await fetchJSON('/api/v1/schedulerconfiguration');
      const check = (config) => ask('POST', '/berth/v1/configs/check', { config });
      const { apiVersion, kind } = this.running;
      const [now, usual] = await Promise.all([check(JSON.stringify(this.running)), check(JSON.stringify({ apiVersion, kind }))]);
      this.scores = now.scores;
      this.usual = usual.scores[0].plugins;
      this.text = toYaml(this.running);
      seen(this.text, 'found running');
      const chosen = this.profile.value;
      replace(this.profile, this.scores.map((s) => h('option', { value: s.profile }, s.profile)));
      if (this.scores.some((s) => s.profile === chosen)) this.profile.value = chosen;
      this.fill();
    } catch (err) { replace(this.result, h('section', { class: 'panel' }, failure(err, () => this.load()))); }
  }

  // What scores now, and what is there but was told not to score; in the configuration's order.
  plugins() {
    const now = this.scores.find((s) => s.profile === this.profile.value).plugins, own = this.running.profiles.find((p) => p.schedulerName === this.profile.value);
    const there = (((own.plugins || {}).multiPoint || {}).enabled || []).map((x) => x.name);
    const off = this.usual.filter((u) => there.includes(u.name) && !now.some((x) => x.name === u.name)).map((u) => ({ name: u.name, weight: 0 }));
    return [...now, ...off].sort((a, b) => there.indexOf(a.name) - there.indexOf(b.name));
  }

  fill() {
    const list = this.plugins(), colours = pluginColours(list.map((x) => x.name));
    this.weights = new Map();
    replace(this.rows, list.map((x) => this.row(x, colour(colours.get(x.name)))));
    this.change();
  }

  row({ name, weight }, mark) {
    const was = h('small', { class: 'faint' });
    const slider = h('input', { type: 'range', min: '0', max: String(Math.max(MOST, weight)), step: '1', value: String(weight), 'aria-label': `weight of ${name}`, oninput: () => set(+slider.value) });
    const number = h('input', { type: 'number', min: '0', step: '1', class: 'q-number', value: String(weight), 'aria-label': `${name}, number`, oninput: () => set(Math.max(0, Math.floor(+number.value) || 0), true) });
    const set = (w, typed) => {
      slider.max = String(Math.max(slider.max, w));
      slider.value = String(w);
      if (!typed) number.value = String(w);
      if (w === weight) this.weights.delete(name);
      else this.weights.set(name, w);
      was.textContent = w === weight ? (w ? '' : 'does not score') : `${w ? '' : 'does not score; '}was ${weight}`;
      this.change();
    };
    was.textContent = weight ? '' : 'does not score';
    return h('li', {}, h('span', { class: 'row wrap' }, h('i', { class: 'q-dot', style: { background: mark } }), h('b', {}, name), was), number, slider);
  }

  change() {
    this.config = toYaml(withWeights(this.running, this.profile.value, this.weights));
    this.applyButton.disabled = !this.weights.size;
    this.yaml.value = this.config;
    replace(this.diff, this.difference());
    this.moved.setAttribute('aria-busy', 'true');
    this.soon();
  }

  difference() { return diffView(this.text, this.weights.size ? this.config : this.text, { same: 'These are the weights that run.' }); }

  async count() {
    if (this.asked) this.asked.abort();
    const mine = (this.asked = new AbortController()), body = { b: this.config, pods: 'all' };
    this.moved.setAttribute('aria-busy', 'true');
    try {
      const got = await ask('POST', '/berth/v1/configs/diff', body, { signal: mine.signal });
      if (mine !== this.asked || this.gone) return;
      this.moved.removeAttribute('aria-busy');
      const n = got.different.length;
      replace(this.moved, h('span', { class: 'q-big' }, count(n)), h('div', {}, h('div', {}, `of ${plural(got.compared, 'pod')} would move`), h('div', { class: 'faint' }, `computed in ${fmt.ns(got.took_ns)}; nothing was changed`)));
      replace(this.result, n ? differences(got, body, ['Running weights', 'These weights']) : null);
    } catch (err) {
      if (mine !== this.asked || this.gone || err.name === 'AbortError') return;
      if (err.status === BUSY) { this.later(); return; } // older questions are still being given up
      replace(this.moved);
      replace(this.result, err.status === 400 ? note('bad', err.message) : h('section', { class: 'panel' }, failure(err, () => this.count())));
    }
  }

  async apply() {
    const text = this.config;
    if (!(await confirmDialog({ title: 'Apply these weights?', body: h('div', { class: 'col' }, h('p', {}, 'The scheduler loads the configuration without a restart. Pods that are on nodes stay there; the weights count for those that come.'), this.difference()), confirm: 'Apply' }))) return;
    this.applyButton.disabled = true;
    try {
      await putInForce(text, 'weights applied');
      await this.load();
    } catch (err) {
      this.applyButton.disabled = false;
      toast(err.message, 'bad');
    }
  }
}

registerScreen('weights', { title: 'Weights', nav: { group: 'Decisions', order: 65 },
  mount(el) { const w = new Weights(el); return () => w.leave(); } });
