// SPDX-License-Identifier: Apache-2.0
//
// config.js - the scheduler's configuration: what runs, a checked editor, what a change means, the way back
import {toYaml} from './edits.js';
import {
  confirmDialog, diffView, errorNote, fetchJSON, fmt, h, handover, navigate, note, plainTable, registerScreen,
  replace, tabs, to, toast, YamlEditor
} from './lib.js';

// Configurations that were in force, as far as this tab knows, newest first; gone with it.
const past = [];
export const seen = (text, what) => {
  if (past[0]?.text !== text) {
    past.unshift({text, what, time: new Date().toISOString()});
    past.splice(20);
  }
};

// The running scheduler takes the configuration over; an error says what is wrong with it.
export async function putInForce(text, what) {
  await fetchJSON('/api/v1/schedulerconfiguration', {method: 'POST', type: 'application/yaml', body: text});
  toast('The configuration is in force.', 'ok');
  seen(toYaml(await fetchJSON('/api/v1/schedulerconfiguration')), what);  // as it is shown while it runs
}

registerScreen('config', {
  title: 'Scheduler configuration',
  key: 'c',
  nav: {group: 'Tools', order: 2, label: 'Configuration'},
  mount(el) {
    const s = new ConfigScreen(el);
    return () => s.leave();
  }
});

class ConfigScreen {
  constructor(el) {
    el.classList.add('fill');
    this.running = '';
    this.editor = new YamlEditor({
      label: 'KubeSchedulerConfiguration as YAML',
      delay: 350,
      onChange: () => this.check(),
      onSubmit: () => this.apply()
    });
    this.status = h('span', {class: 'faint', role: 'status'});
    this.applyButton = h('button', {type: 'button', class: 'primary', writes: true, onclick: () => this.apply()}, 'Apply');
    this.effective = new YamlEditor({readOnly: true, label: 'Effective configuration'});
    this.diff = h('div', {});
    this.past = h('div', {});
    this.guests = h('div', {});
    const side = tabs([
      {id: 'diff', title: 'Against running', body: h('div', {class: 'panel sidepane'}, this.diff)},
      {id: 'effective', title: 'Effective', body: h('div', {class: 'col sidepane'}, this.effective.el)},
      {id: 'past', title: 'Roll back', body: this.past},
      {id: 'guests', title: 'Guests', body: h('div', {class: 'panel sidepane'}, this.guests)}
    ], {onSelect: (id) => id === 'guests' && this.showGuests()});
    el.append(
        h('div', {class: 'row wrap'},
          h('span', {class: 'muted'},
            'Edit, look at what changes, apply: the scheduler loads it without a restart.'),
          h('span', {class: 'grow'}), this.status,
          h('button', {type: 'button', onclick: () => this.set(this.running)}, 'Back to running'),
          h('button', {
            type: 'button',
            title: 'Decide the same pods with both configurations; nothing is changed',
            onclick: () => {
              handover.config = this.editor.value;
              navigate(to('configdiff'));
            }
          },
            'What would it move?'),
          this.applyButton),
        h('div', {class: 'configgrid'}, h('div', {class: 'col editmain'}, this.editor.el, this.editor.problemsEl),
          side));
    this.load();
  }
  leave() {
    this.dead = true;
    this.editor.changed.cancel();
  }
  set(text) {
    this.editor.value = text;
    this.check();
  }

  async load(keep) {
    this.status.textContent = 'Reading the running configuration';
    try {
      const c = await fetchJSON('/api/v1/schedulerconfiguration');
      const made = await fetchJSON('/berth/v1/configs/check', {method: 'POST', body: {config: JSON.stringify(c)}})
                       .catch(() => null);
      // JSON is what the server keeps; people write YAML.
      this.running = toYaml(c);
      this.runningEffective = (made && made.effective) || this.running;
      this.effective.value = this.runningEffective;
      if (!past.length) seen(this.running, 'at the start of this session');
      if (!keep) this.set(this.running);
      this.status.textContent = '';
    } catch (e) {
      this.status.textContent = '';
      replace(this.diff, errorNote(e));
      if (!this.editor.value)
        this.set(
            'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: default-scheduler\n');
    }
    this.showPast();
  }

  async check() {
    const mine = (this.checks = (this.checks || 0) + 1), text = this.editor.value;
    this.status.textContent = 'Checking';
    let r;
    try {
      r = await fetchJSON('/berth/v1/configs/check', {method: 'POST', body: {config: text}});
    } catch (e) {
      if (!this.dead && mine === this.checks) {
        this.editor.setErrors([{line: e.line || 0, message: e.message}]);
        this.status.textContent = '';
      }
      return;
    }
    if (this.dead || mine !== this.checks) return;
    this.valid = r.valid;
    const say = (e, warning) => ({
      line: e.line || 0,
      warning,
      message: e.field && !e.message.includes(e.field) ? `${e.field}: ${e.message}` : e.message
    });
    this.editor.setErrors([
      ...(r.errors || []).map((e) => say(e, false)),
      ...(r.warnings || []).map((e) => say(typeof e === 'string' ? {message: e} : e, true))
    ]);
    if (r.effective) this.effective.value = r.effective;
    this.edited = r.valid && r.effective ? r.effective : null;
    replace(this.diff, this.difference());
    this.status.textContent = r.valid ? (text === this.running ? 'This is what runs' : 'Valid') : '';
  }

  // With all defaults filled in on both sides, so that only what means something else is shown.
  difference() {
    if (!this.running) return note('', 'What runs is not known.');
    const same = 'It means the same as what runs.';
    return this.edited ? diffView(this.runningEffective, this.edited, {same})
                       : diffView(this.running, this.editor.value, {same});
  }

  async apply() {
    if (this.busy) return;
    if (!(await confirmDialog(
            {title: 'Apply this configuration?', body: h('div', {class: 'col'}, this.difference()), confirm: 'Apply'})))
      return;
    await this.send(this.editor.value, 'applied here');
  }
  async send(text, what) {
    this.busy = true;
    this.applyButton.disabled = true;
    this.status.textContent = 'Applying';
    try {
      await putInForce(text, what);
      await this.load();
    } catch (e) {
      this.status.textContent = '';
      this.editor.setErrors([{line: e.line || 0, message: e.field ? `${e.field}: ${e.message}` : e.message}]);
      toast(e.message, 'bad');
    } finally {
      this.busy = false;
      this.applyButton.disabled = false;
    }
  }

  showPast() {
    const button = (text, f) => h('button', {type: 'button', onclick: f}, text);
    const choice = (p) =>
        h('span', {class: 'row', style: {justifyContent: 'flex-end'}}, button('Look at it', () => this.set(p.text)),
          button('Roll back', () => this.send(p.text, 'rolled back')));
    const columns = [
      {title: 'When', cell: (p) => fmt.time(p.time)},
      {title: 'What', cell: (p) => p.what},
      {
        title: '',
        align: 'right',
        cell: (p) => (p.text === this.running ? h('span', {class: 'faint'}, 'running') : choice(p))
      },
    ];
    const none = note('', 'Nothing was applied in this session.');
    replace(this.past, past.length ? h('div', {class: 'panel'}, plainTable(columns, past)) : none);
  }

  // WebAssembly guests that run, and what they did so far.
  async showGuests() {
    let items;
    try {
      items = (await fetchJSON('/berth/v1/guests')).items;
    } catch (e) {
      replace(this.guests, errorNote(e));
      return;
    }
    const each = (g) => g.hooks.map((k) => k.name).join(', ');
    const columns = [
      {title: 'Guest', cell: (g) => h('span', {title: `${g.url}\nsha256 ${g.sha256}`}, g.name)},
      {title: 'Hooks', cell: each},
      {title: 'Code', cell: (g) => (g.compiled ? 'compiled' : 'interpreted')},
      {title: 'Calls', align: 'right', cell: (g) => fmt.count(g.calls)},
      {title: 'Traps', align: 'right', cell: (g) => h('span', {title: g.lastTrap || ''}, fmt.count(g.traps))},
      {title: 'µs a call', align: 'right', cell: (g) => (g.calls ? (g.microseconds / g.calls).toFixed(2) : '')},
      {title: 'MiB', align: 'right', cell: (g) => (g.memoryBytes / 1048576).toFixed(1)},
      {title: 'Instances', align: 'right', cell: (g) => fmt.count(g.instances)}
    ];
    const none = note('', 'No WebAssembly guests run: args.guestURL of a plugin names one (docs/wasm.md).');
    replace(this.guests, items.length ? plainTable(columns, items) : none);
  }
}
