// SPDX-License-Identifier: Apache-2.0
//
// comparison.js - berth up --observe: what the cluster's scheduler chose, and what Berth would have chosen
import {fetchJSON, fmt, h, kv, note, panel, plainTable, registerScreen, replace} from './lib.js';
import {podRef} from './parts.js';

const EVERY_MS = 3000;

function whole(c) {
  const d = c.different;
  return kv([
    ['Cluster', c.server], ['Since', c.synced ? fmt.date(c.since) : 'the copy is not complete yet'],
    ['Compared', `${fmt.count(c.compared)} pods`],
    ['Agreement', c.compared ? `${(100 * c.agreed / c.compared).toFixed(2)} %` : '–'],
    ['Same node', fmt.count(c.same)], ['Another node of the same score', fmt.count(c.tie)],
    ['A node of a lower score', fmt.count(d.lowerScore)], ['A node that Berth rejects', fmt.count(d.infeasible)],
    ['No node for Berth', fmt.count(d.noNode)], ['Pods of other schedulers, not compared', fmt.count(c.otherSchedulers)]
  ]);
}

const why = (d) => (d.scores ?
                        h('details', {}, h('summary', {}, d.why),
                          plainTable(
                              [
                                {title: 'Plugin', cell: (s) => s.plugin},
                                {title: d.berth, align: 'right', cell: (s) => String(s.berth)},
                                {title: d.node, align: 'right', cell: (s) => String(s.actual)}
                              ],
                              [...d.scores, {plugin: 'Total', ...d.total}])) :
                        h('span', {}, d.why, d.message ? h('div', {class: 'faint'}, d.message) : null));

const differences = (list) => plainTable(
    [
      {title: 'Time', cell: (d) => fmt.date(d.time)}, {title: 'Pod', cell: (d) => podRef(d.namespace, d.name)},
      {title: 'Node', cell: (d) => d.node}, {title: 'Berth', cell: (d) => d.berth || 'none'}, {title: 'Why', cell: why}
    ],
    list, {emptyText: 'There is no difference so far.'});

registerScreen('comparison', {
  title: 'Comparison',
  nav: {group: 'Decisions', order: 5},
  mount(el) {
    const left = h('div', {}), about = h('div', {}), list = h('div', {class: 'scroll'});
    let shown = '';
    const look = async () => {
      const c = await fetchJSON('/berth/v1/comparison');
      replace(about, whole(c));
      replace(left, c.lost ? note('bad', `The cluster does not answer, the copy stays as it is: ${c.lost}`) : null,
        c.leftOut.map((k) => note('warn', `${k.resource} are left out: ${k.message}`)));
      const text = JSON.stringify(c.differences); // what somebody has opened stays open
      if (text !== shown) replace(list, differences(c.differences));
      shown = text;
    };
    el.append(left, panel('What Berth would have chosen', {}, about), panel('Differences', {}, list));
    look();
    const timer = setInterval(() => look().catch(() => {}), EVERY_MS);
    return () => clearInterval(timer);
  },
});
