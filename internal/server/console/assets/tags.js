import { editTag, limitOf, repair } from './actions.js';
import { h, keyed, text, classed } from './dom.js';
import { ago, count, percent, rate, span } from './format.js';
import { t } from './i18n.js';
import { later, pill, setPill } from './parts.js';

const columns = [['tag', ''], ['state', ''], ['buffer', ''], ['rate', 'num'], ['seconds', 'num'], ['stock', 'num'], ['step', 'num'], ['load', 'num']];
const size = 50;

export const stateOf = (tag) => (tag.latched ? ['bad', t('tag.latched')] : tag.problem ? ['warn', tag.problem] : tag.loading ? ['ok', t('tag.loading')] : ['ok', t('tag.ok')]);

// buffers shows both ranges, with the current position.
function buffers() {
  const used = h('span.used');
  const current = h('span.range.current', null, used, h('span.tick'));
  const next = h('span.range.next');
  const el = h('span.buffers', { role: 'img' }, current, next);
  return {
    el,
    update(tag) {
      const whole = Number(BigInt(tag.current.hi) - BigInt(tag.current.lo));
      const ahead = Number(BigInt(tag.next.hi) - BigInt(tag.next.lo));
      current.style.flexGrow = String(whole > 0 ? 1 : 0.001);
      next.style.flexGrow = String(whole > 0 ? Math.min(2, Math.max(0.3, (ahead || tag.length || whole) / whole)) : 1);
      used.style.width = (tag.used * 100).toFixed(2) + '%';
      current.lastChild.style.left = (tag.used * 100).toFixed(2) + '%';
      classed(next, 'range next' + (ahead > 0 ? ' full' : tag.loading ? ' loading' : ''));
      const label = t('tag.buffers', { used: percent(tag.used), lo: tag.current.lo, hi: tag.current.hi, position: tag.position, next: ahead > 0 ? `[${tag.next.lo}, ${tag.next.hi})` : t('tag.nonext') });
      el.setAttribute('aria-label', label);
      el.setAttribute('title', label);
    },
  };
}

const steps = (tag) => {
  const times = tag.step > 0 ? tag.length / tag.step : 1;
  const moved = tag.was ? (tag.length > tag.was ? '▲ ' : '▼ ') : '';
  return [moved + count(tag.length), times === 1 ? '' : '×' + rate(times)];
};

export function tags(ctx) {
  const params = { q: '', sort: 'tag', dir: '', offset: 0, limit: size };
  const head = h('tr');
  const body = h('tbody');
  const summary = h('p.summary', { 'aria-live': 'polite' });
  const search = h('input', { type: 'search', id: 'search', placeholder: t('tag.search'), 'aria-label': t('tag.search'), oninput: later(() => { params.q = search.value; params.offset = 0; ctx.restart(); }, 250) });
  const place = h('span');
  const back = h('button', { id: 'back', onclick: () => move(-size) }, t('page.back'));
  const forth = h('button', { id: 'forth', onclick: () => move(size) }, t('page.next'));
  const none = h('p.empty', { hidden: true }, t('tag.none'));
  const panel = h('aside.panel', { hidden: true, 'aria-label': t('tag.detail') });
  let found = 0;
  let chosen = null;

  const move = (by) => {
    params.offset = Math.max(0, Math.min(params.offset + by, Math.max(0, found - 1)));
    ctx.restart();
  };
  const order = (name) => {
    if (params.sort === name) params.dir = params.dir ? '' : 'down';
    else {
      params.sort = name;
      params.dir = ['rate', 'stock', 'step', 'load'].includes(name) ? 'down' : '';
    }
    params.offset = 0;
    heads();
    ctx.restart();
  };
  const arrow = (on) => h('span.arrow', { 'aria-hidden': 'true' }, on ? (params.dir ? '↓' : '↑') : '');
  const heads = () => head.replaceChildren(...columns.map(([name, kind]) => {
    const on = params.sort === name;
    const th = name === 'buffer' ? h('th', { scope: 'col' }, t('tag.col.buffer'))
      : h((kind ? 'th.' + kind : 'th') + '.' + name, { scope: 'col', 'aria-sort': on ? (params.dir ? 'descending' : 'ascending') : null },
        h('button.sort', { 'data-sort': name, onclick: () => order(name) }, kind && arrow(on), t('tag.col.' + name), !kind && arrow(on)));
    return th;
  }));
  heads();

  const show = keyed(body, (first) => {
    let now = first;
    const name = h('button.link', { onclick: () => choose(now) });
    const store = h('small');
    const state = pill('ok', '');
    const bar = buffers();
    const cells = ['rate', 'seconds', 'stock', 'step', 'load'].map((c) => h('td.num.' + c, null, h('span'), h('small')));
    return {
      el: h('tr', null, h('td.name', null, name, store), h('td.state', null, state), h('td.ranges', null, bar.el), cells),
      update(tag) {
        now = tag;
        text(name, tag.tag);
        text(store, tag.store && tag.store !== 'default' ? tag.store : '');
        setPill(state, ...stateOf(tag));
        bar.update(tag);
        const values = [[rate(tag.rate), ''], [tag.rate === 0 ? '∞' : span(tag.seconds), ''], [count(tag.stock), ''], steps(tag), [ago(tag.last_load), tag.failures ? t('tag.failures', { n: tag.failures }) : '']];
        values.forEach(([value, more], i) => {
          text(cells[i].firstChild, value);
          text(cells[i].lastChild, more);
        });
        classed(cells[1], 'num seconds' + (tag.seconds !== undefined && tag.seconds < 10 ? ' low' : ''));
        if (chosen === tag.tag) detail(tag);
      },
    };
  });

  const facts = h('dl.facts');
  const title = h('h2');
  const bar = buffers();
  const act = (f) => () => chosen !== null && f(chosen, () => ctx.restart());
  panel.append(
    h('div.headline', null, title, h('button', { id: 'close', onclick: () => choose(null) }, t('action.close'))),
    bar.el, facts,
    ...(ctx.session.actions ? [h('div.buttons.tight', null,
      h('button', { id: 'edit', onclick: act(editTag) }, t('action.edit')),
      h('button', { id: 'limit', onclick: act((tag, done) => limitOf('tag', tag, done)) }, t('action.limit')),
      h('button', { id: 'repair', onclick: act(repair) }, t('action.repair')))] : []));
  panel.addEventListener('keydown', (e) => e.key === 'Escape' && choose(null));

  const choose = (tag) => {
    chosen = tag ? tag.tag : null;
    panel.hidden = !tag;
    if (tag) {
      detail(tag);
      panel.querySelector('#close').focus();
    }
  };
  const detail = (tag) => {
    text(title, tag.tag);
    bar.update(tag);
    const rows = [
      ['tag.position', tag.position], ['tag.current', `[${tag.current.lo}, ${tag.current.hi})`], ['tag.next', tag.next.hi === '0' ? t('tag.nonext') : `[${tag.next.lo}, ${tag.next.hi})`],
      ['tag.col.stock', count(tag.stock)], ['tag.col.rate', rate(tag.rate)], ['tag.col.seconds', tag.rate === 0 ? '∞' : span(tag.seconds)],
      ['tag.step', count(tag.step)], ['tag.length', count(tag.length) + (tag.was ? ' ← ' + count(tag.was) : '')],
      ['tag.fence', tag.fence], tag.cluster_fence && ['tag.cluster', tag.cluster_fence],
      ['tag.col.load', ago(tag.last_load)], ['tag.used', ago(tag.last_use)],
      ['tag.failed', tag.failures ? t('tag.failures', { n: tag.failures }) : '0'], (tag.error || tag.problem) && ['tag.error', tag.error || tag.problem],
    ].filter(Boolean);
    if (facts.children.length !== rows.length) facts.replaceChildren(...rows.map(() => h('div.fact', null, h('dt'), h('dd'))));
    rows.forEach(([label, value], i) => {
      text(facts.children[i].firstChild, t(label));
      text(facts.children[i].lastChild, value);
      classed(facts.children[i], ['tag.position', 'tag.current', 'tag.next', 'tag.fence', 'tag.cluster', 'tag.error'].includes(label) ? 'fact wide' : 'fact');
    });
  };

  const el = h('div.page', null,
    h('div.headline', null, h('h1', null, t('nav.tags')), search),
    summary,
    h('div.split', null, h('div.scroll', null, h('table.tags', null, h('thead', null, head), body), none), panel),
    h('nav.pager', { 'aria-label': t('page.label') }, back, place, forth));
  return {
    el, view: 'tags', params, search,
    update(page) {
      found = page.found;
      show(page.tags, (tag) => tag.tag);
      none.hidden = page.tags.length > 0;
      text(summary, t('tag.summary', { found: count(page.found), used: count(page.in_use), latched: count(page.latched), failing: count(page.failing) }));
      text(place, page.found ? t('page.place', { from: count(page.offset + 1), to: count(Math.min(page.offset + page.tags.length, page.found)), of: count(page.found) }) : '');
      back.disabled = page.offset === 0;
      forth.disabled = page.offset + page.tags.length >= page.found;
    },
  };
}
