// Parts that several pages use.

import { h, text, classed } from './dom.js';
import { t } from './i18n.js';

export const pill = (kind, label) => h('span.pill.' + kind, null, h('span.mark', { 'aria-hidden': 'true' }, { ok: '●', warn: '▲', bad: '■', off: '○' }[kind]), h('span', null, label));

// setPill updates a pill in place.
export function setPill(el, kind, label) {
  classed(el, 'pill ' + kind);
  text(el.firstChild, { ok: '●', warn: '▲', bad: '■', off: '○' }[kind]);
  text(el.lastChild, label);
}

export const card = (title, ...content) => h('section.card', null, title && h('h2', null, title), content);
export const fact = (label, value, hint) => h('div.fact', null, h('dt', null, label), h('dd', null, value), hint && h('small', null, hint));

// stat is a number with its name.
export function stat(label) {
  const value = h('b', null, '–');
  const hint = h('small');
  return {
    el: h('div.stat', null, h('span', null, label), value, hint),
    update(v, more) {
      text(value, v);
      text(hint, more || '');
    },
  };
}

export const empty = (message) => h('p.empty', null, message);
export const fault = (message) => h('p.fault', { role: 'alert' }, message);
export const later = (f, ms) => {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), ms);
  };
};
export const loading = () => h('p.empty', null, t('loading'));
