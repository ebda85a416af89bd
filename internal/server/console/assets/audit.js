import { admin } from './api.js';
import { h, text } from './dom.js';
import { moment } from './format.js';
import { t } from './i18n.js';
import { fault, later, pill } from './parts.js';

const size = 50;

// values returns the members of a text that is JSON, unless it was cut.
function values(json) {
  try {
    return json ? JSON.parse(json) : {};
  } catch {
    return { '…': json };
  }
}

const shown = (v) => (typeof v === 'string' ? v : JSON.stringify(v));

// lines are what a change replaced, and by what.
function lines(e) {
  const from = values(e.from);
  const to = values(e.to);
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].map((k) => h('div', null, h('b', null, k), ' ', [from[k], to[k]].filter((v) => v !== undefined).map(shown).join(' → ')));
}

export function audit() {
  const body = h('tbody');
  const place = h('span');
  const trail = ['']; // the before of each page so far
  let next = '';
  const again = later(() => { trail.splice(0, trail.length, ''); load(); }, 250);
  const field = (id) => h('input', { type: 'search', id: 'audit-' + id, placeholder: t('audit.by.' + id), 'aria-label': t('audit.by.' + id), oninput: again });
  const tag = field('tag');
  const who = field('who');
  const back = h('button', { id: 'back', onclick: () => { trail.pop(); load(); } }, t('page.back'));
  const forth = h('button', { id: 'forth', onclick: () => { trail.push(next); load(); } }, t('page.next'));
  const error = h('div');
  const none = h('p.empty', { hidden: true }, t('audit.none'));

  async function load() {
    try {
      const page = await admin('GET', 'audit', { before: trail[trail.length - 1], object: tag.value && 'tag ' + tag.value, who: who.value, limit: size });
      next = page.next || '';
      error.replaceChildren();
      none.hidden = page.entries.length > 0;
      body.replaceChildren(...page.entries.map(row));
      text(place, t('row.page', { n: trail.length }));
      back.disabled = trail.length < 2;
      forth.disabled = !next;
    } catch (e) {
      error.replaceChildren(fault(e.message));
    }
  }
  const row = (e) => h('tr', null,
    h('td', null, moment(e.time.replace(/\.\d+/, ''))), h('td.name', null, e.who, h('small', null, e.address)), h('td', null, e.operation), h('td.name', null, e.object),
    h('td', null, lines(e)), h('td', null, e.result === 'done' ? pill('ok', t('audit.done')) : [pill('bad', t('audit.failed')), h('small', null, e.result)]));

  load();
  return {
    el: h('div.page', null,
      h('div.headline', null, h('h1', null, t('nav.audit')), tag, who),
      h('p.summary', null, t('audit.lead')), error,
      h('div.scroll', null, h('table', null, h('thead', null, h('tr', null, ['time', 'who', 'operation', 'object', 'change', 'result'].map((c) => h('th', null, t('audit.' + c))))), body), none),
      h('nav.pager', { 'aria-label': t('page.label') }, back, place, forth)),
    search: tag,
  };
}
