import { limitClient, limitOf } from './actions.js';
import { admin } from './api.js';
import { h } from './dom.js';
import { count } from './format.js';
import { t } from './i18n.js';
import { card, empty, fault, pill } from './parts.js';

export function limits() {
  const body = h('div');
  async function load() {
    try {
      const all = await admin('GET', 'limits');
      const row = (l) => h('tr', null, h('td', null, t('limit.kind.' + l.kind)), h('td.name', null, l.name || t('limit.nameless')),
        h('td', null, l.blocked ? pill('bad', t('limit.isblocked')) : pill('ok', t('limit.islimited'))),
        h('td.num', null, l.rate ? count(l.rate) : '–'), h('td.num', null, l.quota ? count(l.quota) : '–'), h('td.num', null, l.used ? count(l.used) : '0'), h('td.num', null, l.refused ? count(l.refused) : '0'),
        h('td.do', null, h('button', { onclick: () => limitOf(l.kind, l.name, load) }, t('action.edit'))));
      body.replaceChildren(all.limits.length ? h('div.scroll', null, h('table', null, h('thead', null, h('tr', null, ['of', 'name', 'state'].map((k) => h('th', null, t('limit.' + k))), ['rate', 'quota', 'used', 'refused'].map((k) => h('th.num', null, t('limit.' + k))), h('th'))), h('tbody', null, all.limits.map(row)))) : empty(t('limit.empty')));
    } catch (e) {
      body.replaceChildren(fault(e.message));
    }
  }
  load();
  return { el: h('div.page', null, h('div.headline', null, h('h1', null, t('nav.limits')), h('button.primary', { id: 'limit-client', onclick: () => limitClient(load) }, t('limit.client'))), h('p.summary', null, t('limit.page')), card(null, body)) };
}
