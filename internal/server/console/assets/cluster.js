import { weight } from './actions.js';
import { read } from './api.js';
import { h } from './dom.js';
import { count } from './format.js';
import { t } from './i18n.js';
import { card, empty, fault, loading, pill } from './parts.js';

export function cluster(ctx) {
  const content = h('div.stack', null, loading());
  let timer = 0;
  async function load() {
    clearTimeout(timer);
    try {
      const c = await read('cluster');
      const own = c.nodes.find((n) => n.own);
      const total = c.nodes.reduce((sum, n) => sum + n.weight, 0);
      const zones = new Map();
      for (const n of c.nodes) zones.set(n.zone || '–', [...(zones.get(n.zone || '–') || []), n]);
      const row = (n) => h('tr', null,
        h('td', null, h('span.id', null, n.id), n.own && h('small', null, t('cluster.own'))), h('td', null, n.zone || '–'),
        h('td', null, n.ready === undefined ? pill(n.error ? 'bad' : 'off', t('cluster.silent')) : pill(n.ready ? 'ok' : 'bad', t(n.ready ? 'mode.ready' : 'mode.notready')), n.error && h('small', null, n.error)),
        h('td.num', null, count(n.weight), h('small', null, total ? t('cluster.share', { percent: Math.round((100 * n.weight) / total) }) : '')), h('td', null, n.version || '–'),
        h('td.id', null, n.servers.map((s) => h('div', null, h('span.dim', null, s.protocol + ' '), s.address))));
      content.replaceChildren(
        h('div.stats', null, ...[[t('cluster.nodes'), c.nodes.length], [t('cluster.zones'), zones.size], [t('cluster.ready'), c.nodes.filter((n) => n.ready).length], [t('cluster.versions'), new Set(c.nodes.map((n) => n.version || '')).size]].map(([label, n]) => h('div.stat', null, h('span', null, label), h('b', null, count(n))))),
        card(null, h('div.scroll', null, h('table', null, h('thead', null, h('tr', null, ['id', 'zone', 'state'].map((k) => h('th', null, t('cluster.' + k))), h('th.num', null, t('cluster.weight')), ['version', 'addresses'].map((k) => h('th', null, t('cluster.' + k))))), h('tbody', null, c.nodes.map(row)))),
          c.directory && h('p.empty', null, t('cluster.directory') + ' ', h('span.id', null, c.directory)), c.more ? h('p.empty', null, t('cluster.more', { n: count(c.more) })) : ''));
      button.hidden = !own;
      button.onclick = () => weight(own.weight, load);
    } catch (e) {
      content.replaceChildren(e.code === 'disabled' ? empty(e.message) : fault(e.message));
      button.hidden = true;
    }
    if (el.isConnected || !timer) timer = setTimeout(() => (el.isConnected && !document.hidden ? load() : 0), 6000);
  }
  const button = h('button', { id: 'weight', hidden: true }, t('weight.open'));
  const el = h('div.page', null, h('div.headline', null, h('h1', null, t('nav.cluster')), ctx.session.actions && button), h('p.summary', null, t('cluster.lead')), content);
  load();
  return { el };
}
