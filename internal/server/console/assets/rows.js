import { createTag, editTag, limitOf, repair } from './actions.js';
import { read } from './api.js';
import { h, text } from './dom.js';
import { count, moment } from './format.js';
import { t } from './i18n.js';
import { fault, later, pill } from './parts.js';

const size = 50;

export function rows(ctx) {
  const body = h('tbody');
  const place = h('span');
  const trail = ['']; // the after of each page so far
  let next = '';
  const from = h('input', { type: 'search', id: 'search', placeholder: t('row.from'), 'aria-label': t('row.from'), oninput: later(() => { trail.splice(0, trail.length, ''); load(); }, 250) });
  const back = h('button', { id: 'back', onclick: () => { trail.pop(); load(); } }, t('page.back'));
  const forth = h('button', { id: 'forth', onclick: () => { trail.push(next); load(); } }, t('page.next'));
  const error = h('div');
  const none = h('p.empty', { hidden: true }, t('row.none'));

  // before is a name right before the one that was typed, so that the name itself is shown, too.
  const before = (name) => (name ? name.slice(0, -1) + String.fromCodePoint(Math.max(1, name.codePointAt(name.length - 1) - 1)) + '\u{10FFFD}' : '');

  async function load() {
    try {
      const page = await read('rows', { after: trail[trail.length - 1] || before(from.value), limit: size });
      next = page.next || '';
      error.replaceChildren();
      none.hidden = page.rows.length > 0;
      body.replaceChildren(...page.rows.map(row));
      text(place, t('row.page', { n: trail.length }));
      back.disabled = trail.length < 2;
      forth.disabled = !next;
    } catch (e) {
      error.replaceChildren(fault(e.message));
    }
  }
  const options = (r) => [r.fixed_step && t('row.fixed'), r.min_step && '≥ ' + count(r.min_step), r.max_step && '≤ ' + count(r.max_step)].filter(Boolean).join(', ');
  const act = (f, name) => () => f(name, load);
  const row = (r) => h('tr', null,
    h('td.name', null, r.tag, r.description && h('small', null, r.description), r.format && h('small', null, r.format), r.rows && h('small', null, t('row.sequence')), r.order === 'strict' && h('small', null, t('row.strict')), r.period && h('small', null, t('row.period.' + r.period))),
    h('td', null, pill(r.state === 'ok' ? 'ok' : 'bad', t('row.state.' + r.state))),
    h('td.num', null, r.max_id), h('td.num', null, count(r.step), options(r) && h('small', null, options(r))), h('td.num', null, r.fence || '–'), h('td', null, r.update_time ? moment(r.update_time) : '–'),
    ctx.session.actions && h('td.do', null,
      !r.rows && h('button', { onclick: act(editTag, r.tag), 'data-do': 'edit' }, t('action.edit')),
      h('button', { onclick: act((tag, done) => limitOf('tag', tag, done), r.tag), 'data-do': 'limit' }, t('action.limit')),
      r.state === 'latched' && h('button', { onclick: act(repair, r.tag), 'data-do': 'repair' }, t('action.repair'))));

  const el = h('div.page', null,
    h('div.headline', null, h('h1', null, t('nav.rows')), from, ctx.session.actions && h('button.primary', { id: 'create', onclick: () => createTag(load) }, t('tag.create'))),
    h('p.summary', null, t('row.lead')), error,
    h('div.scroll', null, h('table', null, h('thead', null, h('tr', null,
      ...['tag', 'state'].map((c) => h('th', null, t('row.' + c))), ...['max_id', 'step', 'fence'].map((c) => h('th.num', null, t('row.' + c))), h('th', null, t('row.updated')), ctx.session.actions && h('th', null, t('row.actions')))), body), none),
    h('nav.pager', { 'aria-label': t('page.label') }, back, place, forth));
  load();
  return { el, search: from };
}
