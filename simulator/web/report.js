// SPDX-License-Identifier: Apache-2.0
//
// report.js - an answer of the page as one file: no scripts, nothing loaded, in the dress of the scenarios' reports
//
// A report: {title, badge: [text, 'good' | 'bad'], lines: [text], parts: [{title, lines, columns, rows, pre}]}. A column is a
// name, or [name] for numbers. Everything becomes text nodes; the browser writes them as markup. Long lists are cut, and say so.

import { download, fetchJSON, fetchText, fmt, h, icon, plural, toast } from './lib.js';
import { eventWords } from './parts.js';
import { headline } from './answer.js';

const ROWS_SHOWN = 300, NODES_NAMED = 10, SCORED_SHOWN = 50;
const markup = (node) => new XMLSerializer().serializeToString(node);

export const sentence = (d) => h('span', {}, headline(d)).textContent;

function table({ columns, rows }) {
  const cell = (tag, i, v) => h(tag, { class: Array.isArray(columns[i]) ? 'n' : tag === 'td' ? 'm' : null }, v === undefined || v === null ? '' : String(v));
  return [h('div', { class: 'scroll' }, h('table', {}, columns.some((c) => c !== '') ? h('tr', {}, columns.map((c, i) => cell('th', i, [c].flat()[0]))) : null, rows.slice(0, ROWS_SHOWN).map((r) => h('tr', {}, r.map((v, i) => cell('td', i, v)))))),
    rows.length > ROWS_SHOWN ? h('p', { class: 'dim' }, `and ${plural(rows.length - ROWS_SHOWN, 'more row', 'more rows')}`) : null];
}

function part(p) {
  const rows = p.rows || [];
  if (!rows.length && !p.pre && !(p.lines || []).length) return null;
  return [h('h2', {}, p.title), (p.lines || []).map((t) => h('p', {}, t)), rows.length ? table(p) : null, p.pre ? h('div', { class: 'scroll' }, h('pre', {}, p.pre)) : null];
}

async function text(r) {
  const [css, now] = await Promise.all([fetchText('report.css'), fetchJSON('/berth/v1/overview')]);
  const main = h('main', {}, h('h1', {}, r.title, r.badge ? h('span', { class: `badge ${r.badge[1]}` }, r.badge[0]) : null),
    h('p', { class: 'dim' }, `${fmt.date(now.time)} · ${plural(now.nodes.total, 'node')}, ${plural(now.pods.total, 'pod')}, revision ${now.revision} · Berth ${now.version}`),
    (r.lines || []).map((t) => h('p', {}, t)), r.parts.map(part));
  return `<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer" content="no-referrer"><title>${markup(document.createTextNode(r.title))}</title><style>${css}</style></head><body>${markup(main)}</body></html>\n`;
}

// make() returns the report, or a promise of it; its file is named after it.
export function reportButton(make, kind = '') {
  const save = async () => {
    button.disabled = true;
    try {
      const r = await make();
      download(`${r.title.replace(/[^A-Za-z0-9.-]+/g, '-')}.html`, await text(r), 'text/html');
    } catch (err) { toast(err.message, 'bad'); }
    button.disabled = false;
  };
  const button = h('button', { type: 'button', class: kind, title: 'One HTML file that needs nothing else', onclick: save }, icon('download'), 'Save as report');
  return button;
}

// ---- what several answers have -------------------------------------------------------------------

export const result = (r) => [r, r === 'Scheduled' ? 'good' : 'bad'];
export const groupsPart = (title, groups) => ({ title, columns: [['Nodes'], 'Plugin', 'Reasons', 'Which'], rows: (groups || []).map((g) => [fmt.count(g.count), g.plugin, (g.reasons || []).join(', '),
  (g.nodes || []).slice(0, NODES_NAMED).join(', ') + (g.count > NODES_NAMED ? ` and ${fmt.count(g.count - NODES_NAMED)} more` : '')]) });

// source: of its nodes (answer.js).
export async function decisionParts(d, source) {
  const scored = d.scored ? await source.page({ limit: SCORED_SHOWN, status: 'feasible' }) : { plugins: [], items: [] }, p = d.preemption;
  const funnel = (d.funnel || []).filter((s) => !s.plugin || s.removed);
  return [{ title: 'From all nodes to one', columns: ['Step', 'Plugin', ['Taken out'], ['Left']], rows: funnel.map((s) => [s.step, s.plugin, s.removed ? fmt.count(s.removed) : '', fmt.count(s.count)]) },
    groupsPart('Why nodes were rejected', d.rejectedGroups),
    { title: 'Scores', columns: ['Node', ['Total'], ...scored.plugins.map((x) => [`${x.name} ×${x.weight}`])], rows: scored.items.map((n) => [n.node, fmt.count(n.total), ...(n.weighted || []).map(fmt.count)]),
      lines: scored.total > scored.items.length ? [`The best ${scored.items.length} of ${plural(scored.total, 'node')}, as weighted points.`] : [] },
    { title: 'Pods that give way', lines: p && p.nominatedNode ? [`Evicted on ${p.nominatedNode}:`] : [], columns: ['Pod', ['Priority']], rows: ((p || {}).victims || []).map((v) => [`${v.namespace}/${v.name}`, v.priority]) },
    { title: 'The scheduler’s message', lines: d.message ? [d.message] : [] }];
}

// A recorded decision.
export async function decisionReport(d, source) {
  const facts = [['Time', fmt.date(d.time)], ['Attempt', `#${d.attempt}`], ['Profile', d.profile], ['Took', fmt.ns(d.duration_ns)], ['Woken because', eventWords(d.trigger || '')], ['Then', [d.outcome, d.outcomeMessage].filter(Boolean).join(': ')]];
  return { title: `Decision ${d.id} about ${d.pod.namespace}/${d.pod.name}`, badge: result(d.result), lines: [sentence(d)],
    parts: [{ title: 'The attempt', columns: ['', ''], rows: facts.filter(([, v]) => v) }, ...(d.mode === 'summary' ? [{ title: 'Nodes', lines: ['This decision was recorded without its nodes.', d.message] }] : await decisionParts(d, source))] };
}
