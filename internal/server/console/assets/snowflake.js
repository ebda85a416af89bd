import { read } from './api.js';
import { h, text } from './dom.js';
import { ago, count, moment, offset, percent, span } from './format.js';
import { t } from './i18n.js';
import { card, fact, fault, pill, setPill } from './parts.js';

export function snowflake() {
  const state = pill('off', '');
  const reason = h('div');
  const claim = h('dl.facts');
  const time = h('dl.facts');
  const layout = h('dl.facts');
  const peers = h('tbody');
  const table = h('table', { hidden: true }, h('thead', null, h('tr', null, h('th', null, t('snow.peer')), h('th.num', null, t('snow.worker')), h('th.num', null, t('snow.ahead')))), peers);
  const asked = h('p.empty');
  const workers = h('div');
  const el = h('div.page', null,
    h('div.headline', null, h('h1', null, t('nav.snowflake')), state), reason,
    h('div.columns', null, card(t('snow.claim'), claim), card(t('snow.time'), time)),
    h('div.columns', null,
      card(t('snow.peers'), asked, table),
      card(t('snow.layout'), layout)),
    card(t('snow.registry'), workers));
  const ahead = (s, ms) => t('snow.aheadof', { span: span(Math.abs(Number(ms) - Number(s.now)) / 1000), way: Number(ms) >= Number(s.now) ? t('snow.future') : t('snow.past') });

  (async () => {
    try {
      const w = await read('workers');
      workers.replaceChildren(
        h('p.summary', null, t('snow.registry.is', { registry: w.registry, kind: t('snow.kind.' + w.kind), namespace: w.namespace, last: count(w.last) })),
        h('div.scroll', null, h('table', null, h('thead', null, h('tr', null, h('th', null, t('snow.worker')), h('th', null, t('snow.state')), h('th', null, t('snow.address')), h('th.num', null, t('snow.bound')))),
          h('tbody', null, w.workers.slice(0, 500).map((x) => h('tr', null, h('td', null, String(x.worker)), h('td', null, pill(x.state === 'running' ? 'ok' : x.state === 'unreadable' ? 'bad' : x.state === 'held' ? 'warn' : 'off', t('worker.' + x.state)), x.own && h('small', null, t('snow.own'))), h('td.id', null, x.address || '–'), h('td.num', null, x.bound === '0' ? '–' : moment(x.bound))))))),
        w.workers.length > 500 ? h('p.empty', null, t('snow.more', { n: count(w.workers.length - 500) })) : '');
    } catch (e) {
      workers.replaceChildren(fault(e.message));
    }
  })();

  return {
    el, view: 'snowflake',
    update(s) {
      setPill(state, !s.enabled ? 'off' : !s.ready ? 'bad' : s.reason ? 'warn' : 'ok', s.enabled ? s.state : t('mode.off'));
      reason.replaceChildren(...(s.reason ? [fault(s.reason)] : []));
      const held = s.worker >= 0;
      claim.replaceChildren(...[
        fact(t('snow.worker'), held ? String(s.worker) : t('snow.none')), s.datacenter !== undefined && fact(t('snow.datacenter'), String(s.datacenter)),
        fact(t('snow.confirmed'), held ? t(s.confirmed ? 'yes' : 'snow.fromfile') : '–'), s.registry && fact(t('snow.registry'), `${s.registry}, ${t('snow.kind.' + s.kind)}`), s.address && fact(t('snow.address'), h('span.id', null, s.address)),
        fact(t('snow.claims'), count(s.Claims || 0)), fact(t('snow.losses'), count(s.Losses || 0)), fact(t('snow.renewals'), count(s.RenewFailures || 0)), fact(t('snow.clockerrors'), count(s.ClockErrors || 0)),
      ].filter(Boolean));
      time.replaceChildren(...(held ? [
        fact(t('snow.bound'), moment(s.bound), ahead(s, s.bound)), s.inner !== s.bound && fact(t('snow.inner'), moment(s.inner), ahead(s, s.inner)),
        s.sequence > 0 ? fact(t('snow.position'), moment(s.position), ahead(s, s.position)) : fact(t('snow.position'), t('snow.nothing')),
        fact(t('snow.floor'), Number(s.floor) > Date.parse(s.begin) ? moment(s.floor) : '–'),
        fact(t('snow.sequence'), t('snow.sequence.of', { n: count(s.sequence), of: count(s.capacity) }), percent(s.capacity ? s.sequence / s.capacity : 0)),
      ] : [fact(t('snow.bound'), '–')]).filter(Boolean));
      layout.replaceChildren(fact(t('snow.layout.name'), s.layout || '–'), fact(t('snow.unit'), s.unit || '–'), fact(t('snow.begin'), moment(s.begin)), fact(t('snow.end'), moment(s.end)),
        fact(t('snow.left'), span((Date.parse(s.end) - Number(s.now)) / 1000)));
      table.hidden = s.peers.length === 0;
      text(asked, !s.asked ? t('snow.notasked') : s.median === undefined ? t('snow.nopeer', { ago: ago(s.asked) }) : t('snow.asked', { ago: ago(s.asked), median: offset(-s.median) }));
      peers.replaceChildren(...s.peers.map((p) => h('tr', null, h('td.id', null, p.address), h('td.num', null, String(p.worker)), h('td.num', null, p.error ? h('span.low', null, p.error) : offset(p.ahead)))));
    },
  };
}
