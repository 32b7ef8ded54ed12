// SPDX-License-Identifier: Apache-2.0
//
// settings.js - how the page looks, the token, what server this is
import {auth, fetchJSON, fmt, h, kv, linkTo, panel, registerScreen, replace, segmented, toast} from './lib.js';
import {setTheme, themeChoice, tokenChanged} from './main.js';

registerScreen('settings', {
  title: 'Settings',
  key: ',',
  nav: {group: 'Tools', order: 4},
  mount(el) {
    const token = h('input', {
      type: 'password',
      id: 'token',
      autocomplete: 'off',
      value: auth.token,
      style: {width: '320px'},
      onkeydown: (e) => {
        if (e.key === 'Enter') use();
      }
    });
    const use = async () => {
      auth.token = token.value.trim();
      tokenChanged();
      try {
        await fetchJSON('/berth/v1/overview');
        toast('The server accepts it.', 'ok');
      } catch (e) { toast(e.message, 'bad'); }
    };
    const about = h('div', {}, h('span', {class: 'faint'}, 'Asking'));
    fetchJSON('/berth/v1/overview')
        .then(
            (o) =>
                replace(about, kv([
                          ['Version', o.version], ['Time there', fmt.date(o.time)],
                          ['Revision', h('span', {class: 'num'}, String(o.revision))],
                          ['Writing', o.readOnly ? 'not allowed: read-only' : 'allowed'],
                          [
                            'Decisions',
                            o.recording ? `recording: ${o.recording.mode}, ${fmt.count(o.recording.records)} records, ${
                                              fmt.bytes(o.recording.bytes)}${
                                              o.recording.dropped ? `, ${fmt.count(o.recording.dropped)} dropped` : ''}`
                                                                  : ''
                          ],
                          ['Address', location.origin]
                        ])),
            (e) => replace(about, h('span', {class: 'bad'}, e.message)));
    el.append(
        h('div', {class: 'grid two'},
          panel(
              'Appearance', {},
              h('div', {class: 'field'}, h('span', {}, 'Theme'),
                segmented(
                    [['auto', 'As the system'], ['light', 'Light'], ['dark', 'Dark']], themeChoice(), setTheme,
                    'Theme'))),
          panel(
              'Access', {},
              h('div', {class: 'col'},
                h('div', {class: 'field'}, h('label', {'for': 'token'}, 'Bearer token, if the server wants one'),
                  h('div', {class: 'row'}, token, h('button', {type: 'button', onclick: use}, 'Use it'),
                    h('button', {
                      type: 'button',
                      class: 'ghost',
                      onclick: () => {
                        token.value = '';
                        use();
                      }
                    },
                      'Forget it'))),
                h('p', {class: 'faint'}, 'It is kept for this tab only and goes when the tab is closed.'))),
          panel('Server', {}, about),
          panel(
              'Elsewhere', {},
              h('div', {class: 'col'},
                h('p', {class: 'muted'},
                  'kubectl works against the same address; what it changes is shown here at once.'),
                h('pre', {}, `kubectl --server ${location.origin} get nodes,pods -o wide`),
                h('p', {}, linkTo('Import and export', 'transfer'))))));
  },
});
