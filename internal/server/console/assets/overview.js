import { read } from './api.js';
import { drain } from './actions.js';
import { chart } from './chart.js';
import { h, keyed, text } from './dom.js';
import { count, moment, offset, rate, span } from './format.js';
import { t } from './i18n.js';
import { card, fact, pill, setPill, stat } from './parts.js';

export function overview(ctx) {
  const modes = h('div.modes');
  const alarms = h('ul.alarms');
  const none = h('p.calm', null, h('span.mark', { 'aria-hidden': 'true' }, '●'), t('alarm.none'));
  const more = h('p.empty', { hidden: true });
  const reasons = h('div.reasons');
  const stats = { ids: stat(t('stat.ids')), tags: stat(t('stat.tags')), loads: stat(t('stat.loads')), waiting: stat(t('stat.waiting')), refused: stat(t('stat.refused')), lost: stat(t('stat.lost')) };
  const node = h('dl.facts');
  const backends = h('tbody');
  const servers = h('dl.facts');
  const perSecond = (n) => (n === undefined || n === null ? '–' : rate(n));
  const charts = {
    ids: chart(t('chart.ids'), [{ key: 'ids', name: 'IDs/s', class: 'a' }], perSecond),
    loads: chart(t('chart.loads'), [{ key: 'loads', name: t('chart.loads.ok'), class: 'a' }, { key: 'failures', name: t('chart.loads.failed'), class: 'bad' }], perSecond),
    requests: chart(t('chart.requests'), [{ key: 'waiting', name: t('chart.waiting'), class: 'a' }, { key: 'refused', name: t('chart.refused'), class: 'bad' }], perSecond),
    clock: chart(t('chart.clock'), [{ key: 'offset', name: t('chart.offset'), class: 'a' }], offset, { signed: true, least: 0.001 }),
  };
  const actions = ctx.session.actions && h('div.buttons.tight', null, h('button', { id: 'drain', onclick: () => drain(() => {}) }, t('drain.open')));
  const el = h('div.page', null,
    h('div.headline', null, h('h1', null, t('nav.overview')), actions),
    modes, reasons,
    card(t('alarm.title'), none, alarms, more),
    h('div.stats', null, Object.values(stats).map((s) => s.el)),
    h('div.charts', null, Object.values(charts).map((c) => c.el)),
    h('div.columns', null,
      card(t('backend.title'), h('table', null, h('thead', null, h('tr', null, h('th', null, t('backend.kind')), h('th', null, t('backend.name')), h('th', null, t('backend.state')))), backends)),
      card(t('node.title'), node, servers)));

  const showModes = keyed(modes, (m) => {
    const state = pill('off', '');
    const why = h('ul');
    const box = h('section.card.mode', null, h('h2', null, t('mode.' + m.name)), state, why);
    return {
      el: box,
      update(now) {
        const kind = !now.enabled ? 'off' : !now.ready ? 'bad' : now.reasons && now.reasons.length ? 'warn' : 'ok';
        setPill(state, kind, t(!now.enabled ? 'mode.off' : now.ready ? 'mode.ready' : 'mode.notready'));
        why.replaceChildren(...(now.reasons || []).map((r) => h('li', null, r)));
      },
    };
  });
  const showAlarms = keyed(alarms, () => {
    const head = h('b');
    const what = h('span');
    const todo = h('p.do');
    return {
      el: h('li', null, h('span.mark', { 'aria-hidden': 'true' }, '▲'), h('div', null, h('p', null, head, ' ', what), todo)),
      update(a) {
        text(head, a.code + (a.subject ? ' · ' + a.subject : ''));
        text(what, a.text);
        text(todo, a.do ? t('alarm.do') + ' ' + a.do : a.text ? t('alarm.heals') : '');
      },
    };
  });
  const showBackends = keyed(backends, (b) => {
    const state = pill('ok', '');
    const why = h('small');
    return {
      el: h('tr', null, h('td', null, t('backend.' + b.kind)), h('td', null, h('div', null, b.name || ''), b.address && h('small.id', null, b.address)), h('td', null, state, why)),
      update(now) {
        setPill(state, now.healthy ? 'ok' : 'bad', t(now.healthy ? 'backend.ok' : 'backend.bad'));
        text(why, now.reason);
      },
    };
  });

  let history = null;
  let lastAt = 0;
  const draw = () => Object.values(charts).forEach((c) => c.update(history || []));
  const fetchHistory = async () => {
    try {
      history = await read('history');
      lastAt = history.length ? history[history.length - 1].at : 0;
      draw();
    } catch {
      history = null;
    }
  };
  fetchHistory();
  draw();

  return {
    el, view: 'overview',
    update(o) {
      showModes(o.modes, (m) => m.name);
      reasons.replaceChildren(...(o.reasons || []).map((r) => h('p.fault', null, r)));
      showAlarms(o.alarms, (a) => a.code + '\n' + a.subject);
      none.hidden = o.alarms.length > 0;
      more.hidden = !o.more_alarms;
      text(more, o.more_alarms ? t('alarm.more', { n: count(o.more_alarms) }) : '');
      const last = o.last || {};
      stats.ids.update(perSecond(last.ids), t('stat.persecond'));
      stats.tags.update(count(o.tags));
      stats.loads.update(count(o.loads), t('stat.failed', { n: count(o.load_failures) }));
      stats.waiting.update(last.waiting === undefined ? '–' : count(last.waiting), t('stat.waited', { n: count(o.waits) }));
      stats.refused.update(count(o.refused));
      stats.lost.update(count(o.lost), t('stat.lost.hint'));
      const uptime = (Date.parse(o.now) - Date.parse(o.started)) / 1000;
      node.replaceChildren(...[
        fact(t('node.version'), o.version || '–'), o.node_id && fact(t('node.id'), h('span.id', null, o.node_id)), o.zone && fact(t('node.zone'), o.zone),
        o.cluster && fact(t('node.cluster'), h('span.id', null, o.cluster)), fact(t('node.started'), moment(o.started), t('node.uptime', { span: span(uptime) })),
        fact(t('node.stage'), o.stage || '–'), o.data_dir && fact(t('node.datadir'), h('span.id', null, o.data_dir)), o.pid && fact('PID', String(o.pid)),
      ].filter(Boolean));
      servers.replaceChildren(...o.servers.map((s) => fact(s.protocol, h('span.id', null, s.address))));
      showBackends(o.backends, (b) => b.kind + '\n' + b.name);
      if (o.last && o.last.at > lastAt && history) {
        if (lastAt && o.last.at - lastAt > 12) fetchHistory(); // the page was hidden for a while
        else {
          history = [...history, o.last].slice(-720);
          lastAt = o.last.at;
          draw();
        }
      }
    },
  };
}

