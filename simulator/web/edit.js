// SPDX-License-Identifier: Apache-2.0
//
// edit.js - writing objects: YAML with templates, checks while typing, differences before anything is changed
import {discover, kindByName, objectPath, objectRoute} from './kinds.js';
import {
  confirmDialog, dialog, diffView, empty, fetchJSON, fetchText, fmt, h, lineOfField, linkTo, note, plural, registerScreen, replace,
  segmented, setQuery, setTitle, toast, withoutManaged, YamlEditor
} from './lib.js';
import {forAll} from './resources.js';
import {numbered, templateFor, TEMPLATES} from './templates.js';

const MANAGER = 'fieldManager=berth-page';
const MODES = {create: 'Create', apply: 'Apply', replace: 'Replace'};
const NAMES = 5000, NAMES_ONLY = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
let draft = null;  // what was typed last, when the screen is left without applying

registerScreen('edit', {
  title: 'New object',
  key: 'y',
  nav: {group: 'Tools', order: 1, label: 'YAML editor'},
  async mount(el, r) {
    el.classList.add('fill');
    const screen = new EditScreen(el);
    if (r.query.path) await screen.openExisting(r.query.path);
    else await screen.openTemplate(r.query.kind, r.query.template);
    return () => screen.leave();
  },
});

// ---- reading documents -------------------------------------------------------------------------------------

// The server reads the YAML: [{line, text, object, problems: fields that do not exist}]. Throws ApiError with .line.
async function readManifest(text) {
  const docs =
      (await fetchJSON('/berth/v1/manifest', {method: 'POST', type: 'application/yaml', body: text})).documents || [];
  const lines = text.split('\n');
  return docs.map((d, i) => {
    const next = docs.slice(i + 1).find((x) => x.line > d.line),
          alone = docs.filter((x) => x.line === d.line).length === 1;
    // The text of one document; of a List's item only the object is there.
    return {
      ...d,
      alone,
      text: alone
          ? lines.slice(d.line - 1, next ? next.line - 1 : undefined).join('\n').replace(/\n---[^\n]*\n*$/, '\n')
          : JSON.stringify(d.object)
    };
  });
}
export async function kindOf(o) {
  const match = (k) => k.kind === o.kind && k.apiVersion === o.apiVersion;
  const k = (await discover()).find(match) || (await discover(true)).find(match);
  if (!k)
    throw new Error(
        o.kind ? `The server serves no ${o.kind} in ${o.apiVersion || 'no apiVersion'}.`
               : 'kind and apiVersion are needed.');
  return k;
}

class Unknown extends Error {
  constructor(problems) {
    super(problems.map((p) => `line ${p.line}: ${p.message}`).join(', '));
    this.problems = problems;
  }
}

// One request that writes the document. mode: apply | create | replace; force: fields of other managers, too. -> the object
async function write(doc, mode, {dryRun, yaml, force} = {}) {
  if (doc.problems) throw new Unknown(doc.problems);
  const o = doc.object, m = o.metadata || {}, k = await kindOf(o), ns = k.namespaced ? m.namespace || 'default' : '';
  const extra = [MANAGER, 'fieldValidation=Strict', dryRun ? 'dryRun=All' : ''].filter(Boolean).join('&'), get = yaml ? fetchText : fetchJSON,
        accept = yaml ? 'application/yaml' : 'application/json';
  const send = (path, method, type, q) => get(`${path}?${q}`, {method, type, body: doc.text, accept});
  if (mode === 'create' || !m.name) return send(objectPath(k, ns), 'POST', 'application/yaml', extra);
  if (mode === 'replace') return send(objectPath(k, ns, m.name), 'PUT', 'application/yaml', extra);
  return send(
      objectPath(k, ns, m.name), 'PATCH', 'application/apply-patch+yaml', force ? `${extra}&force=true` : extra);
}

// Fields that others manage, of an apply that was refused for them: [{field, message}], null for any other refusal.
const conflictsOf = (e) =>
    (e.status === 409 && (e.body?.details?.causes || []).some((c) => c.reason === 'FieldManagerConflict') ? e.causes
                                                                                                          : null);
// Writes; when fields belong to other managers, asks whether to take them over. Throws the refusal when not.
async function writeOrAsk(doc, mode) {
  try {
    return await write(doc, mode);
  } catch (e) {
    const conflicts = conflictsOf(e), o = doc.object;
    if (!conflicts) throw e;
    const sure = await confirmDialog({
      title: `Others manage fields of ${o.kind} ${o.metadata.name}`,
      body: h('div', {class: 'col'},
              h('p', {}, 'Applying changes what these wrote. Overwritten fields belong to this page from then on.'),
              h('ul', {class: 'conflicts'},
                conflicts.map((c) => h('li', {}, h('code', {}, c.field), ' ', h('span', {}, c.message))))),
      confirm: 'Overwrite',
      cancel: 'Leave it',
      danger: true
    });
    if (!sure) throw e;
    return write(doc, mode, {force: true});
  }
}

// Places of a refusal: [{line, message}]
function places(doc, e) {
  if (e.problems) return e.problems;
  const at = (field) => (field && doc.alone ? lineOfField(doc.text, field, doc.line) : 0);
  if (e.line) return [{line: e.line + (doc.alone ? doc.line - 1 : 0), message: e.message}];
  if (e.causes && e.causes.length)
    return e.causes.map(
        (c) => ({line: at(c.field) || doc.line, message: c.field ? `${c.field}: ${c.message}` : c.message}));
  const m = /"?((?:spec|metadata|status|data|webhooks|rules)(?:\.[\w-]+|\[[^\]]+\])*)"?/.exec(e.message || '');
  return [{line: at(e.field || (m && m[1])) || doc.line, message: e.message}];
}
// What the server writes by itself is no change of anybody's.
const forDiff = (yaml) =>
    withoutManaged(yaml).replace(/^ {2}(?:resourceVersion|generation|uid|creationTimestamp): .*\n/gm, '');

// Of a template the text and the first number with which its name is free: {n} is counted up, another name gets a number.
async function withFreeName(t) {
  const k = kindByName(t.kind), [, name] = /^ {2}name: (\S+)$/m.exec(t.text) || [];
  const list = await fetchJSON(`${objectPath(k, k.namespaced ? 'default' : '')}?limit=${NAMES}`, {accept: NAMES_ONLY}).catch(() => null);
  const taken = new Set(((list && list.items) || []).map((o) => o.metadata.name));
  let n = 1;
  const at = (i) => (name.includes('{n}') ? numbered(name, i) : i === 1 ? name : name.replace(/^[^.]+/, (x) => `${x}-${i}`));
  while (name && taken.has(at(n))) n++;
  if (!name || name.includes('{n}')) return {text: t.text, first: n};
  // A workload selects its pods by a label of its name, which must not be another's.
  const line = /^ {4}spec:/m.test(t.text) ? /^( {2}name| +app): (\S+)$/gm : /^( {2}name): (\S+)$/m;
  return {text: t.text.replace(line, (whole, key, value) => (value === name ? `${key}: ${at(n)}` : whole)), first: 1};
}

// ---- the screen --------------------------------------------------------------------------------------------

class EditScreen {
  constructor(el) {
    this.el = el;
    this.mode = 'create';
    this.editor = new YamlEditor(
        {label: 'Objects as YAML', delay: 500, onChange: () => this.check(), onSubmit: () => this.apply()});
    this.status = h('span', {class: 'faint', role: 'status'});
    this.copies = h('input', {
      type: 'number',
      min: 1,
      max: 100000,
      value: 1,
      id: 'copies',
      style: {width: '76px'},
      oninput: () => this.check()
    });
    this.first = h('input', {type: 'number', min: 0, value: 1, id: 'firstcopy', style: {width: '76px'}});
    this.modes = segmented(Object.entries(MODES), this.mode, (m) => {
      this.setMode(m);
      this.check();
    }, 'How to write');
    this.button =
        h('button', {type: 'button', class: 'primary', title: 'Ctrl Enter', writes: true, onclick: () => this.apply()}, 'Create');
    this.result = h('div', {class: 'col'});
    this.list = h('div', {class: 'templates', role: 'list', 'aria-label': 'Templates'});
    const side = h('aside', {class: 'panel editside'}, h('header', {}, h('h2', {}, 'Templates')), this.list);
    const hint = 'In each copy {n} becomes its number, {n%3} the number modulo 3';
    const tools =
        h('div', {class: 'row wrap'}, this.modes, h('label', {class: 'row', 'for': 'copies'}, 'Copies', this.copies),
          h('label', {class: 'row', 'for': 'firstcopy'}, 'from', this.first),
          h('span', {class: 'faint', title: hint}, '{n} is the number'), h('span', {class: 'grow'}), this.status,
          h('button', {type: 'button', onclick: () => this.preview()}, 'Show changes'), this.button);
    const main = h('div', {class: 'col editmain'}, this.editor.el, this.editor.problemsEl, this.result);
    el.append(tools, h('div', {class: 'editgrid'}, main, side));
    this.showTemplates();
  }
  leave() {
    this.dead = true;
    this.editor.changed.cancel();
    draft = !this.path && this.editor.value !== this.original ? {text: this.editor.value} : draft;
  }

  showTemplates() {
    const groups = [...new Set(TEMPLATES.map((t) => t.group))];
    replace(
        this.list,
        groups.map(
            (g) =>
                h('div', {role: 'listitem'}, h('h3', {}, g),
                  TEMPLATES.filter((t) => t.group === g)
                      .map(
                          (t) =>
                              h('button', {
                                type: 'button',
                                class: 'ghost',
                                'aria-pressed': String(t === this.template),
                                onclick: () => this.use(t)
                              },
                                t.title)))),
        h('div', {role: 'listitem'}, h('h3', {}, 'Yours'),
          h('button',
            {type: 'button', class: 'ghost', disabled: !draft, onclick: () => draft && this.setText(draft.text)},
            'What you typed last'),
          h('label', {
            class: 'button ghost',
            tabindex: '0',
            onkeydown: (e) => {
              if (e.key === 'Enter' || e.key === ' ') {
                e.preventDefault();
                e.currentTarget.click();
              }
            }
          },
            'From a file', h('input', {
              type: 'file',
              class: 'sr',
              tabindex: '-1',
              accept: '.yaml,.yml,.json',
              onchange: (e) => this.fromFile(e.target.files[0])
            }))));
  }
  setText(text) {
    this.editor.value = text;
    this.original = text;
    this.check();
  }
  async use(t) {
    if (this.editor.value !== this.original && this.original !== undefined) draft = {text: this.editor.value};
    if (this.path) {
      this.path = null;
      setTitle('New object');
    }
    setQuery({kind: null, path: null, template: t.id});
    await this.begin(t);
  }
  // A new object of a template, with a name that no other has.
  async begin(t) {
    this.template = t;
    this.setMode('create');
    this.showTemplates();
    const {text, first} = await withFreeName(t);
    if (this.dead || this.template !== t) return;
    this.first.value = first;
    this.setText(text);
    this.editor.focus();
  }
  setMode(m) {
    this.mode = m;
    this.modes.set(m);
    this.button.textContent = MODES[m];
  }
  openTemplate(kind, id) {
    return this.begin(TEMPLATES.find((x) => x.id === id) || templateFor(kind) || TEMPLATES[0]);
  }
  async fromFile(f) {
    if (!f) return;
    if (f.size > 4 << 20) {
      toast('Files over 4 MiB are imported, not edited: see Import and export.', 'warn');
      return;
    }
    this.setText(await f.text());
  }
  async openExisting(path) {
    // Only paths of this server's API: an address is made by others too.
    if (!/^\/(api|apis)\/[\w./%:-]+$/.test(path)) {
      replace(this.el, empty('This is no object', path, linkTo('To the editor', 'edit')));
      return;
    }
    try {
      this.setText(withoutManaged(await fetchText(path, {accept: 'application/yaml'})));
      this.path = path;
      this.setMode('replace');
      const name = decodeURIComponent(path.split('/').pop());
      setTitle(`Edit ${name}`);
      this.editor.focus();
    } catch (e) { replace(this.el, empty('The object cannot be read', e.message, linkTo('To the editor', 'edit'))); }
  }

  // ---- checking: syntax first, then what the server would say
  async check() {
    const mine = (this.checks = (this.checks || 0) + 1),
          text = numbered(this.editor.value, Number(this.first.value) || 1);
    const stale = () => this.dead || mine !== this.checks;
    const errors = [];
    let docs = [];
    this.status.textContent = 'Checking';
    try {
      docs = await readManifest(text);
    } catch (e) { errors.push({line: e.line || 0, message: e.message}); }
    if (stale()) return;
    for (const [i, d] of docs.slice(0, 10).entries()) {
      try {
        await write(d, this.mode, {dryRun: true});
      } catch (e) {
        if (e.name === 'AbortError') return;
        // What a document needs may stand before it, and a dry run leaves nothing behind.
        const maybe = i > 0 && (e.status === 404 || e.status === 403);
        errors.push(...places(d, e).map(
            (x) =>
                (maybe ? {...x, warning: true, message: `${x.message} (unless an object before it makes it so)`} : x)));
      }
      if (stale()) return;
    }
    if (this.count() > 1 && !/\{n(%\d+)?\}/.test(this.editor.value))
      errors.push({
        line: 0,
        warning: true,
        message: 'For several copies put {n} where the number goes, for example name: web-{n}.'
      });
    this.editor.setErrors(errors);
    this.docs = docs.length;
    const n = docs.length * this.count();
    this.status.textContent = errors.some((e) => !e.warning)
        ? ''
        : `${plural(n, 'object')}, the server would take ${n === 1 ? 'it' : 'them'}`;
  }
  count() { return Math.max(1, Math.min(100000, Math.floor(Number(this.copies.value)) || 1)); }

  async preview() {
    let docs;
    try {
      docs = await readManifest(numbered(this.editor.value, Number(this.first.value) || 1));
    } catch (e) {
      this.editor.setErrors([{line: e.line, message: e.message}]);
      return;
    }
    const parts = [], errors = [];
    for (const d of docs.slice(0, 50)) {
      const m = d.object.metadata || {};
      try {
        const k = await kindOf(d.object), ns = k.namespaced ? m.namespace || 'default' : '';
        const before = m.name ? await fetchText(objectPath(k, ns, m.name), {accept: 'application/yaml'}).catch((e) => {
          if (e.status === 404) return '';
          throw e;
        })
                              : '';
        const after = await write(d, this.mode, {dryRun: true, yaml: true, force: true});
        parts.push(
            h('section', {},
              h('h3', {}, h('b', {}, `${d.object.kind} ${m.name || m.generateName || ''}`), ' ',
                h('span', {class: 'faint'}, before ? 'is changed' : 'is new')),
              diffView(forDiff(before), forDiff(after))));
      } catch (e) {
        errors.push(...places(d, e));
        parts.push(note('bad', `${d.object.kind || 'Object'} ${m.name || ''}: ${e.message}`));
      }
    }
    this.editor.setErrors(errors);
    const go = await dialog({
      title: 'What would change',
      wide: true,
      body:
          h('div', {class: 'col'},
            this.count() > 1 ? note('', `The first of ${fmt.count(this.count())} copies.`) : null, parts),
      buttons: [{text: 'Close'}, {text: MODES[this.mode], kind: 'primary', value: true}]
    });
    if (go) await this.apply();
  }

  async apply() {
    if (this.busy) return;
    this.busy = true;
    this.button.disabled = true;
    try {
      await (this.count() > 1 ? this.applyCopies() : this.applyOnce());
    } finally {
      this.busy = false;
      this.button.disabled = false;
    }
  }
  async applyOnce() {
    let docs;
    const errors = [], done = [];
    try {
      docs = await readManifest(numbered(this.editor.value, Number(this.first.value) || 1));
    } catch (e) {
      this.editor.setErrors([{line: e.line || 0, message: e.message}]);
      return;
    }
    if (!docs.length) {
      this.editor.setErrors([{line: 0, message: 'There is no object here.'}]);
      return;
    }
    for (const d of docs) {
      try {
        const o = await writeOrAsk(d, this.mode);
        done.push([await kindOf(d.object), o]);
      } catch (e) { errors.push(...places(d, e)); }
    }
    this.editor.setErrors(errors);
    this.showDone(done, errors);
    // The next replacement needs the new resourceVersion.
    if (this.path && !errors.length && !this.dead) {
      const p = this.path;
      await this.openExisting(p);
    }
  }
  showDone(done, errors) {
    if (!done.length) {
      replace(this.result);
      return;
    }
    const link = ([k, o]) =>
        h('a', {href: objectRoute(k, {namespace: o.metadata.namespace, name: o.metadata.name})},
          `${k.kind} ${o.metadata.name}`);
    if (done.length > 1 || errors.length)
      replace(
          this.result,
          note(
              errors.length ? 'warn' : 'ok',
              `${plural(done.length, 'object')} written${errors.length ? ', others refused' : ''}: `,
              done.slice(0, 12).map((d, i) => [i ? ', ' : '', link(d)])));
    else { replace(this.result, note('ok', link(done[0]), ' is written.')); }
    this.original = this.editor.value;
  }
  // Copies are read in parts of 200, and written one by one, six at a time.
  async applyCopies() {
    const n = this.count(), from = Math.floor(Number(this.first.value)) || 0, docs = [];
    for (let i = 0; i < n; i += 200) {
      const text = Array.from({length: Math.min(200, n - i)}, (_, j) => numbered(this.editor.value, from + i + j))
                       .join('\n---\n');
      try {
        docs.push(...await readManifest(text));
      } catch (e) {
        this.editor.setErrors([{line: i ? 0 : e.line || 0, message: e.message}]);
        return;
      }
      if (docs.length > 200 && i % 2000 === 0) this.status.textContent = `${fmt.count(docs.length)} read`;
    }
    const errors = await forAll(
        docs, `Writing ${plural(docs.length, 'object')}`,
        (d) => write({...d, text: JSON.stringify(d.object)}, this.mode === 'apply' ? 'apply' : this.mode),
        (d) => `${d.object.kind} ${(d.object.metadata || {}).name || ''}`);
    const good = docs.length - errors.length, k = await kindOf(docs[0].object);
    replace(
        this.result,
        note(
            errors.length ? 'warn' : 'ok',
            `${plural(good, 'object')} written${
                errors.length ? `, ${fmt.count(errors.length)} refused: ${errors[0].message}` : ''}. `,
            linkTo(k.title || k.kind, ...(k.custom ? ['kind', k.watch] : [k.name]))));
  }
}
