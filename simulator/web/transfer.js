// SPDX-License-Identifier: Apache-2.0
//
// transfer.js - import, export and reset
import {
  confirmDialog, download, errorNote, fetchJSON, fetchRaw, fmt, h, icon, note, panel, plural, registerScreen, replace,
  segmented, Table, tag, toast
} from './lib.js';
import {rows} from './store.js';

registerScreen(
    'transfer', {title: 'Import and export', key: 'i', nav: {group: 'Tools', order: 3}, mount});

const result = () => document.getElementById('importresult');

function mount(el) {
  let mode = 'replace';
  const out = h('div', {id: 'importresult'}), file = h('input', {
                                                type: 'file',
                                                class: 'sr',
                                                id: 'importfile',
                                                'aria-label': 'File to import',
                                                tabindex: '-1',
                                                accept: '.json,.yaml,.yml,.gz,application/json',
                                                onchange: () => take(file.files)
                                              });
  const modes = segmented([['replace', 'Replace the cluster'], ['merge', 'Add to the cluster']], mode, (m) => {
    mode = m;
  }, 'What happens with what is there');
  const take = async (files) => {
    if (!files.length) return;
    const f = files[0];
    file.value = '';
    replace(out, h('div', {class: 'row'}, h('span', {class: 'spin'}), `Reading ${f.name}`));
    const found = await readImport(f, mode);
    if (!found || !(await confirmImport(f, mode, found))) return;
    replace(out, h('div', {class: 'row'}, h('span', {class: 'spin'}), `Importing ${f.name}`));
    await importText(f, mode);
  };
  const drop =
      h('div', {
        class: 'drop',
        ondragover: (e) => {
          e.preventDefault();
          drop.classList.add('over');
        },
        ondragleave: () => drop.classList.remove('over'),
        ondrop: (e) => {
          e.preventDefault();
          drop.classList.remove('over');
          take(e.dataTransfer.files);
        }
      },
        icon('upload'), h('p', {}, 'Drop a file here, or'),
        h('button', {type: 'button', class: 'primary', writes: true, onclick: () => file.click()}, 'Choose a file'),
        h('p', {class: 'faint'},
          'kubectl get -o yaml, manifests, or an export of this page or of kube-scheduler-simulator; YAML or JSON'));
  const text = h('textarea', {
    rows: 6,
    class: 'mono',
    style: {width: '100%'},
    placeholder: 'apiVersion: v1 ...',
    'aria-label': 'YAML to import',
    spellcheck: 'false'
  });
  const kinds = h('input', {type: 'checkbox', checked: true, id: 'allkinds'});
  const save = (format) => exportAs(format, kinds.checked);
  const button = (kind, f, ...label) => h('button', {type: 'button', class: kind, onclick: f}, label);
  const writer = (kind, f, label) => h('button', {type: 'button', class: kind, writes: true, onclick: f}, label);
  const paste = () => text.value.trim() && take([new File([text.value], 'the pasted text')]);
  const imports = panel(
      'Import', {},
      h('div', {class: 'col'}, modes, drop, file,
        h('details', {}, h('summary', {}, 'Paste text instead'),
          h('div', {class: 'col', style: {paddingTop: '8px'}}, text,
            h('div', {}, writer('', paste, 'Import the text'))))));
  const exports = panel(
      'Export', {},
      h('div', {class: 'col'},
        h('p', {class: 'muted'}, 'One file with the cluster and the scheduler configuration. ',
          'Importing it elsewhere gives the same situation: pods keep their nodes.'),
        h('label', {class: 'check', 'for': 'allkinds'}, kinds,
          'All kinds (otherwise the seven that kube-scheduler-simulator knows)'),
        h('div', {class: 'row'}, button('primary', () => save('yaml'), icon('download'), 'YAML'),
          button('', () => save('json'), icon('download'), 'JSON'))));
  const resets = panel(
      'Reset', {},
      h('div', {class: 'col'},
        h('p', {class: 'muted'}, 'Back to the state at start: the objects and the scheduler configuration ',
          'that were there when the server began.'),
        h('div', {}, writer('danger', reset, 'Reset the cluster'))));
  el.append(h('div', {class: 'grid two'}, imports, h('div', {class: 'col'}, exports, resets)), out);
}

// What the server would do with a file: nothing is changed. -> its answer, null when nothing of it can be imported (that is shown)
async function readImport(f, mode) {
  const out = result();
  try {
    const found = await fetchJSON(`/api/v1/import?mode=${mode}&dryRun=All`, {method: 'POST', body: f, type: 'application/yaml'});
    if (!found.kinds.length && !found.schedulerConfig) {
      replace(out, note('bad', `Nothing of ${f.name} can be imported; the cluster is as it was.`), listed(found));
      return null;
    }
    replace(out);
    return found;
  } catch (e) {
    replace(out, errorNote(e));
    return null;
  }
}

function confirmImport(f, mode, found) {
  const total = found.kinds.reduce((n, k) => n + k.count, 0);
  return confirmDialog({
    title: mode === 'replace' ? 'Replace the cluster?' : `Import ${plural(total, 'object')}?`,
    body: h('div', {class: 'col'},
            h('p', {}, mode === 'replace' ? `Everything that is there now is deleted (${plural(rows('nodes').size, 'node')} and ${plural(rows('pods').size, 'pod')} among it), then ` : 'From ',
              h('b', {}, f.name), ` (${fmt.bytes(f.size)})${mode === 'replace' ? ` with ${plural(total, 'object')} is imported.` : ':'}`),
            h('div', {class: 'row wrap'}, found.kinds.map((k) => tag(`${fmt.count(k.count)} ${k.kind}`, 'info')), found.schedulerConfig ? tag('scheduler configuration', 'info') : null),
            listed(found)),
    confirm: mode === 'replace' ? 'Replace' : 'Import',
    danger: mode === 'replace',
    wide: true
  });
}

// What is left out and what is refused, by name.
function listed({leftOut = [], errors = []}) {
  const all = [...errors.map((e) => ({...e, what: 'refused'})), ...leftOut.map((e) => ({...e, what: 'left out'}))].map((e, i) => ({...e, key: String(i)}));
  if (!all.length) return null;
  const table = new Table({
    name: 'not imported',
    columns: [
      {id: 'what', title: 'What', width: '90px', text: (e) => e.what},
      {id: 'kind', title: 'Kind', width: 'minmax(100px,1fr)', text: (e) => e.kind || ''},
      {id: 'namespace', title: 'Namespace', width: 'minmax(80px,1fr)', text: (e) => e.namespace || ''},
      {id: 'name', title: 'Name', width: 'minmax(100px,1fr)', text: (e) => e.name || ''},
      {id: 'message', title: 'Why', width: 'minmax(200px,3fr)', text: (e) => e.message || ''}
    ],
    fixedHeight: 12
  });
  table.setRows(all);
  return h('div', {class: 'panel'}, table.el);
}

// Sends a file or a text to the server and shows what became of each object. -> the answer or null
export async function importText(body, mode) {
  const out = result();
  try {
    const r = await fetchJSON(
        `/api/v1/import?mode=${mode}`,
        {method: 'POST', body: body instanceof Blob ? body : String(body), type: 'application/yaml'});
    const n = (r.created || 0) + (r.updated || 0);
    toast(
        `${plural(n, 'object')} imported${
            (r.errors || []).length ? `, ${plural(r.errors.length, 'object')} refused` : ''}.`,
        (r.errors || []).length ? 'warn' : 'ok');
    if (out) showResult(out, r);
    return r;
  } catch (e) {
    if (out) replace(out, errorNote(e));
    else toast(e.message, 'bad');
    return null;
  }
}
function showResult(out, r) {
  replace(
      out,
      panel(
          'The last import', {},
          h('div', {class: 'row wrap'},
            [['created', 'ok'], ['updated', 'info'], ['deleted', ''], ['skipped', '']].map(
                ([k, tone]) => tag(`${fmt.count(r[k] || 0)} ${k}`, r[k] ? tone : '')),
            tag(`${fmt.count((r.errors || []).length)} refused`, (r.errors || []).length ? 'bad' : ''))),
      h('div', {style: {marginTop: '12px'}}, listed(r)));
}

async function exportAs(format, all) {
  const q = new URLSearchParams({...(all ? {kinds: 'all'} : {}), ...(format === 'yaml' ? {format} : {})});
  try {
    const r = await fetchRaw(`/api/v1/export?${q}`, {accept: '*/*'}),
          day = new Date().toISOString().slice(0, 16).replace(/[:T]/g, '-');
    download(`cluster-${day}.${format}`, await r.blob());
  } catch (e) { toast(e.message, 'bad'); }
}
async function reset() {
  if (!(await confirmDialog({
        title: 'Reset the cluster?',
        body:
            'All changes since the server began are lost, the scheduler configuration too. This cannot be taken back; an export can be imported later.',
        confirm: 'Reset',
        danger: true
      })))
    return;
  try {
    await fetchJSON('/api/v1/reset', {method: 'PUT'});
    toast('The cluster is as it was at the start.', 'ok');
  } catch (e) { toast(e.message, 'bad'); }
}
