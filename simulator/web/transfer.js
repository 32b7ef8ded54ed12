// SPDX-License-Identifier: Apache-2.0
//
// transfer.js - import, export and reset
import {
  confirmDialog, download, errorNote, fetchJSON, fetchRaw, fmt, h, icon, panel, plural, registerScreen, replace,
  segmented, Table, tag, toast
} from './lib.js';

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
    if (mode === 'replace' && !(await confirmDialog({
          title: 'Replace the cluster?',
          body:
              h('p', {}, 'Everything that is there now is deleted, then ', h('b', {}, f.name),
                ` (${fmt.bytes(f.size)}) is imported.`),
          confirm: 'Replace',
          danger: true
        })))
      return;
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
  const errors = (r.errors || []).map((e, i) => ({...e, key: String(i)}));
  const table = errors.length ? new Table({
    name: 'refused',
    columns: [
      {id: 'kind', title: 'Kind', width: '170px', text: (e) => e.kind || ''},
      {id: 'namespace', title: 'Namespace', width: '150px', text: (e) => e.namespace || ''},
      {id: 'name', title: 'Name', width: 'minmax(150px,1fr)', text: (e) => e.name || ''},
      {id: 'message', title: 'Why', width: 'minmax(240px,3fr)', text: (e) => e.message || ''}
    ],
    fixedHeight: 12
  })
                              : null;
  if (table) table.setRows(errors);
  replace(
      out,
      panel(
          'The last import', {},
          h('div', {class: 'row wrap'},
            [['created', 'ok'], ['updated', 'info'], ['deleted', ''], ['skipped', '']].map(
                ([k, tone]) => tag(`${fmt.count(r[k] || 0)} ${k}`, r[k] ? tone : '')),
            tag(`${fmt.count(errors.length)} refused`, errors.length ? 'bad' : ''))),
      table ? h('div', {class: 'panel', style: {marginTop: '12px'}}, table.el) : null);
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
