// The frame of the page: session, navigation, language, colours. Each page returns its element
// and, if it is live, the view that it is updated from.

import { onLost, post, read } from './api.js';
import { audit } from './audit.js';
import { cluster } from './cluster.js';
import { h } from './dom.js';
import { change, language, setup, t } from './i18n.js';
import { limits } from './limits.js';
import { live } from './live.js';
import { overview } from './overview.js';
import { fault, setPill, pill } from './parts.js';
import { rows } from './rows.js';
import { snowflake } from './snowflake.js';
import { tags } from './tags.js';
import { tokens } from './tokens.js';
import { tools } from './tools.js';

const pages = { overview, tags, rows, snowflake, tools, cluster, limits, audit, tokens };
const needsToken = (name) => ['limits', 'audit', 'tokens'].includes(name);
const root = document.getElementById('root');
let session = {};
let page = null;
let stream = null;
let ended = false;

const themes = ['auto', 'light', 'dark'];
const theme = () => localStorage.getItem('leaf-theme') || 'auto';
function paint() {
  document.documentElement.dataset.theme = theme();
}

function stop() {
  if (stream) stream.close();
  stream = null;
}

function login(message) {
  stop();
  page = null;
  document.querySelectorAll('dialog').forEach((d) => d.close());
  const token = h('input', { type: 'password', id: 'token', autocomplete: 'off', 'aria-label': t('login.token'), placeholder: t('login.token') });
  const wrong = h('div');
  const form = h('form.login.card', {
    onsubmit: async (e) => {
      e.preventDefault();
      try {
        session = await post('login', { token: token.value });
        token.value = '';
        ended = false;
        frame();
      } catch (err) {
        wrong.replaceChildren(fault(err.code === 'unauthenticated' ? t('login.wrong') : err.message));
        token.select();
      }
    },
  }, h('h1', null, logo(), 'Leaf'), h('p.lead', null, message || t(session.read_only ? 'login.lead.client' : 'login.lead')), token, wrong, h('div.buttons', null, h('button.primary', { type: 'submit', id: 'sign-in' }, t('login.do'))));
  root.replaceChildren(h('main.center', null, form));
  token.focus();
}

const logo = () => h('svg.logo', { viewBox: '0 0 32 32', 'aria-hidden': 'true' }, h('path', { d: 'M27 4C14 4 6 10 6 19c0 3 1 5 2 6-1 1-2 2-2 3h2c0-1 1-2 2-3 1 1 3 1 5 1 9 0 12-10 12-22z' }));

const current = () => {
  const name = location.hash.replace(/^#\/?/, '').split('?')[0];
  return pages[name] && (!needsToken(name) || session.actions) ? name : 'overview';
};

let links = [];
const state = pill('off', '');

function frame() {
  const names = Object.keys(pages).filter((n) => !needsToken(n) || session.actions);
  links = names.map((n, i) => h('a', { href: '#/' + n, 'data-page': n, title: String(i + 1) }, t('nav.' + n)));
  const select = (id, label, options, value, set) => h('select', { id, 'aria-label': label, onchange: (e) => set(e.target.value) }, options.map(([v, name]) => h('option', { value: v, selected: v === value }, name)));
  const bar = h('header.bar', null,
    h('a.brand', { href: '#/overview' }, logo(), h('b', null, 'Leaf')), h('nav', { 'aria-label': t('nav.label') }, links), h('span.space'), state,
    session.signed_in && !session.actions || session.read_only ? h('span.badge', null, t('readonly')) : !session.actions && h('span.badge', { title: t('readonly.notoken') }, t('readonly')),
    select('theme', t('theme'), themes.map((v) => [v, t('theme.' + v)]), theme(), (v) => {
      localStorage.setItem('leaf-theme', v);
      paint();
    }),
    select('language', t('language'), [['en', 'English'], ['zh', '中文']], language, async (v) => {
      await change(v);
      frame();
    }),
    session.signed_in && h('button', { id: 'sign-out', onclick: async () => {
      ended = true; // a late answer to the old session must not empty the field of the next token
      await post('logout').catch(() => {});
      session = { ...session, needed: true, signed_in: false, actions: false };
      login();
    } }, t('logout')));
  const main = h('main', { id: 'main', tabindex: '-1' });
  root.replaceChildren(h('a.skip', { href: '#main', onclick: (e) => { e.preventDefault(); main.focus(); } }, t('skip')), bar, main);
  setPill(state, 'off', t('state.connecting'));
  show();
}

function show() {
  const main = document.getElementById('main');
  if (!main) return;
  stop();
  const name = current();
  links.forEach((l) => (l.dataset.page === name ? l.setAttribute('aria-current', 'page') : l.removeAttribute('aria-current')));
  page = pages[name]({ session, restart: connect });
  main.replaceChildren(page.el);
  document.title = t('nav.' + name) + ' · Leaf';
  connect();
}

function connect() {
  stop();
  const shown = page;
  const view = shown.view || 'overview'; // for the pill
  stream = live(session, view, shown.view ? shown.params : {}, (data) => {
    if (page !== shown) return;
    if (shown.update) shown.update(data);
    if (data.modes) health(data);
  }, (ok, err) => {
    if (!ok) setPill(state, 'bad', err && err.status === 401 ? t('state.ended') : t('state.lost'));
    else if (view !== 'overview') setPill(state, 'ok', t('state.live'));
  });
}

function health(o) {
  const on = o.modes.filter((m) => m.enabled);
  const ready = on.filter((m) => m.ready).length;
  setPill(state, ready === 0 ? 'bad' : ready < on.length || o.alarms.length ? 'warn' : 'ok', ready === 0 ? t('mode.notready') : o.alarms.length ? t('state.alarms', { n: o.alarms.length + (o.more_alarms || 0) }) : t('mode.ready'));
}

onLost(() => {
  if (ended) return;
  ended = true;
  session = { ...session, needed: true, signed_in: false, actions: false };
  login(t('login.ended'));
});

window.addEventListener('hashchange', show);
window.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]') || /INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName) || !page) return;
  if (e.key === '/' && page.search) {
    e.preventDefault();
    page.search.focus();
  } else if (links[Number(e.key) - 1]) links[Number(e.key) - 1].click();
});

paint();
await setup();
try {
  session = await read('session');
  if (session.needed) login();
  else frame();
} catch (e) {
  root.replaceChildren(h('main.center', null, fault(e.message)));
}
