// SPDX-License-Identifier: Apache-2.0
//
// resources.js - a table for every kind, current as the cluster changes
import {discover, KINDS, objectPath, objectRoute} from './kinds.js';
import {
  compareNames, dialog, empty, errorNote, fetchJSON, fmt, h, icon, linkTo, navigate, note, plural, registerScreen,
  replace, setQuery, setTitle, spinner, Table, to, toast
} from './lib.js';
import {mountObject} from './object.js';
import {nodesDialog} from './overview.js';
import {subscribe} from './store.js';

// The namespace chosen last, for all tables.
let chosenNamespace = '';

for (const k of KINDS)
  registerScreen(k.name, {title: k.title, key: k.key, nav: k.nav, mount: (el, r) => mountKind(el, r, k, r.params)});

function mountKind(el, r, k, params) {
  return params.length >= (k.namespaced ? 2 : 1)
      ? mountObject(el, k, k.namespaced ? params[0] : '', params[k.namespaced ? 1 : 0], r)
      : mountTable(el, r, k);
}

function mountTable(el, r, k) {
  el.classList.add('fill');
  if (r.query.ns !== undefined) chosenNamespace = r.query.ns;
  const nsSelect =
      h('select', {
        'aria-label': 'Namespace',
        hidden: !k.namespaced,
        onchange: () => {
          chosenNamespace = nsSelect.value;
          setQuery({ns: chosenNamespace || null});
          table.setFilter(filter());
        }
      },
        h('option', {value: ''}, 'All namespaces'));
  const filter = () => (k.namespaced && chosenNamespace ? (row) => row.namespace === chosenNamespace : null);
  const quick = k.name === 'pods' ? h('span', {class: 'row'},
                                      [['Pending', 'status:Pending'], ['Unschedulable', 'status:Unschedulable']].map(
                                          ([text, q]) =>
                                              h('button', {
                                                type: 'button',
                                                class: 'ghost',
                                                onclick: () => {
                                                  table.setQuery(q);
                                                  setQuery({q});
                                                }
                                              },
                                                text)))
                                  : null;
  const table = new Table({
    columns: k.columns,
    name: k.name,
    labels: (row) => row.labels,
    selectable: k.name !== 'events',
    sort: k.sort || {id: 'name', dir: 'asc'},
    query: r.query.q,
    filter: filter(),
    onQuery: (q) => setQuery({q: q || null}),
    onOpen: (row) => navigate(objectRoute(k, row)),
    href: (row) => objectRoute(k, row),
    tools: [nsSelect, quick],
    actions:
        [h('button', {type: 'button', class: 'danger', writes: true, onclick: () => removeRows(k, table)}, icon('trash'), 'Delete')],
    emptyNode: empty(
        `No ${k.title.toLowerCase()}`, 'They appear here as soon as there are some.',
        k.name === 'events' ? null
                            : h('a', {class: 'button', href: to('edit', {kind: k.custom ? null : k.name})},
                                icon('plus'), `New ${k.kind}`)),
  });
  const loading = spinner(`Loading ${k.title.toLowerCase()}`);
  const fresh = k.name === 'events' || k.custom
      ? null
      : h('a', {class: 'button primary', href: to('edit', {kind: k.name})}, icon('plus'), `New ${k.kind}`);
  if (k.name === 'nodes') table.tools.append(h('button', {type: 'button', writes: true, onclick: nodesDialog}, 'Several nodes'));
  if (fresh) table.tools.append(fresh);
  el.append(h('div', {class: 'panel grow', style: {minHeight: '0'}}, table.el));
  table.emptyEl.style.visibility = 'hidden';
  el.firstChild.prepend(loading);
  const namespaces = new Set();
  const stop = subscribe(k.watch, ({rows: all, synced: done, changed}) => {
    if (done) {
      loading.remove();
      table.emptyEl.style.visibility = '';
    }
    if (k.namespaced) fillNamespaces(nsSelect, namespaces, changed ? changed.map((c) => c.row) : all.values());
    table.setRows(all, changed);
  });
  return () => {
    stop();
    clearTimeout(table.timer);
  };
}

function fillNamespaces(select, known, list) {
  const before = known.size;
  for (const row of list) known.add(row.namespace);
  if (chosenNamespace) known.add(chosenNamespace);
  if (known.size === before) return;
  replace(
      select, h('option', {value: ''}, 'All namespaces'),
      [...known].sort(compareNames).map((n) => h('option', {value: n}, n)));
  select.value = chosenNamespace;
}

// ---- deleting ----------------------------------------------------------------------------------------------

async function removeRows(k, table) {
  const list = table.rows.filter((row) => table.selected.has(row.key));
  if (await removeObjects(k, list)) table.clearSelection();
}
// Asks, deletes eight at a time, shows how far it is and what was refused. -> true when something was deleted.
export async function removeObjects(k, list) {
  const now = h('input', {type: 'checkbox', id: 'grace0', checked: k.name === 'pods'});
  const sure = await dialog({
    title: `Delete ${plural(list.length, k.kind)}?`,
    body:
        h('div', {class: 'col'},
          h('div', {}, list.slice(0, 8).map((row) => h('div', {class: 'mono clip'}, row.key)),
            list.length > 8 ? h('div', {class: 'faint'}, `and ${fmt.count(list.length - 8)} more`) : null),
          k.name === 'nodes' ? note('warn', 'Pods on a deleted node are deleted by the garbage collector.') : null,
          h('label', {class: 'check'}, now, 'At once, without grace period')),
    buttons: [{text: 'Cancel', value: false, focus: true}, {text: 'Delete', kind: 'danger primary', value: true}]
  });
  if (!sure) return false;
  const errors = await forAll(
      list, `Deleting ${plural(list.length, k.kind)}`,
      (row) => fetchJSON(objectPath(k, row.namespace, row.name) + (now.checked ? '?gracePeriodSeconds=0' : ''), {
                 method: 'DELETE'
               }).catch((e) => {
        if (e.status !== 404) throw e;
      }));
  if (!errors.length)
    toast(list.length === 1 ? `${list[0].key} is deleted.` : `${plural(list.length, k.kind)} deleted.`, 'ok');
  return true;
}

// f(item) for all, eight at a time, with a progress dialog when it takes longer than half a second. -> [{item, message}]
export async function forAll(list, title, f, nameOf = (x) => x.key) {
  const errors = [], bar = h('progress', {max: list.length, value: 0, style: {width: '100%'}}),
        text = h('p', {class: 'num'});
  let done = 0, next = 0, stopped = false;
  const shown = setTimeout(
      () => dialog({title, body: h('div', {class: 'col'}, bar, text), buttons: [{text: 'Stop', value: 'stop'}]})
                .then((v) => {
                  if (done < list.length) stopped = v === 'stop' || v === null;
                }),
      500);
  const worker = async () => {
    while (next < list.length && !stopped) {
      const item = list[next++];
      try {
        await f(item);
      } catch (e) { errors.push({item, message: e.message, error: e}); }
      bar.value = ++done;
      text.textContent = `${fmt.count(done)} of ${fmt.count(list.length)}${
          errors.length ? `, ${fmt.count(errors.length)} refused` : ''}`;
    }
  };
  await Promise.all(Array.from({length: 6}, worker));
  clearTimeout(shown);
  done = list.length;
  bar.closest('dialog')?.close();
  if (errors.length)
    await dialog({
      title: `${plural(errors.length, 'request')} refused`,
      wide: true,
      body:
          h('div', {class: 'col'},
            errors.slice(0, 200).map((e) => note('bad', h('b', {class: 'mono'}, nameOf(e.item)), ' ', e.message)))
    });
  return errors;
}

// ---- kinds found by discovery ------------------------------------------------------------------------------

registerScreen('kind', {
  title: 'All kinds',
  nav: {group: 'Storage and policy', order: 20, label: 'All kinds'},
  async mount(el, r) {
    if (r.params.length) return mountFound(el, r);
    el.classList.add('fill');
    const wait = spinner('Asking the server for its kinds');
    el.append(wait);
    let kinds;
    try {
      kinds = await discover(true);
    } catch (e) {
      wait.replaceWith(errorNote(e));
      return null;
    }
    const table = new Table({
      name: 'kinds',
      sort: {id: 'kind', dir: 'asc'},
      columns: [
        {id: 'kind', title: 'Kind', width: 'minmax(180px,1fr)', text: (k) => k.kind, open: true},
        {id: 'group', title: 'Group', width: 'minmax(180px,1fr)', text: (k) => k.group || 'core'},
        {id: 'version', title: 'Version', width: '100px', text: (k) => k.version},
        {id: 'plural', title: 'Resource', width: 'minmax(180px,1fr)', text: (k) => k.name},
        {id: 'scope', title: 'Scope', width: '120px', text: (k) => (k.namespaced ? 'Namespaced' : 'Cluster')}
      ],
      key: (k) => k.watch,
      href: (k) => (k.custom ? to('kind', k.watch) : to(k.name)),
      onOpen: (k) => navigate(k.custom ? to('kind', k.watch) : to(k.name)),
    });
    table.setRows(kinds);
    wait.replaceWith(h('div', {class: 'panel grow'}, table.el));
    return null;
  },
});

async function mountFound(el, r) {
  const wait = spinner('Asking the server for its kinds');
  el.append(wait);
  let k;
  try {
    k = (await discover()).find((x) => x.watch === r.params[0]) ||
        (await discover(true)).find((x) => x.watch === r.params[0]);
  } catch (e) {
    wait.replaceWith(errorNote(e));
    return null;
  }
  wait.remove();
  if (!k) {
    el.append(empty('The server does not serve this kind', r.params[0], linkTo('All kinds', 'kind')));
    return null;
  }
  if (!el.isConnected) return null;
  setTitle(k.kind, linkTo('All kinds', 'kind'));
  return mountKind(el, r, k, r.params.slice(1));
}
