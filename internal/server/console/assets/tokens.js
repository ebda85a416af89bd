// Named tokens. The secret of a new one is made here: only its SHA-256 goes to the node.

import { admin } from './api.js';
import { dialog, tell } from './dialog.js';
import { h } from './dom.js';
import { moment } from './format.js';
import { t } from './i18n.js';
import { empty, fault } from './parts.js';

const roles = ['issue', 'snowflake', 'read', 'admin'];

// newSecret returns a secret of 256 random bits as leaf token create makes it, and its digest.
async function newSecret() {
  if (!crypto.subtle) throw new Error(t('token.insecure'));
  const random = crypto.getRandomValues(new Uint8Array(32));
  const secret = 'leaf_' + btoa(String.fromCharCode(...random)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  const sum = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret));
  return { secret, digest: [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, '0')).join('') };
}

// wordsOf returns the roles of a form, with a word for each pattern of tags.
function wordsOf(v) {
  const patterns = v.tags.split(/\s+/).filter(Boolean);
  if (patterns.length && !v.issue) throw new Error(t('token.tags.only'));
  return roles.filter((r) => v[r]).flatMap((r) => (r === 'issue' && patterns.length ? patterns.map((p) => 'issue:' + p) : [r]));
}

function create(done) {
  dialog({
    title: t('token.create'), lead: t('token.create.lead'), confirm: t('token.create.do'),
    fields: [
      { name: 'name', label: t('token.name'), hint: t('token.name.hint') },
      ...roles.map((r) => ({ name: r, label: r, type: 'checkbox', hint: t('token.role.' + r) })),
      { name: 'tags', label: t('token.tags'), placeholder: 'order* invoice', hint: t('token.tags.hint') },
    ],
    run: async (v) => {
      const words = wordsOf(v);
      const { secret, digest } = await newSecret();
      return { secret, ...(await admin('POST', 'token', null, { name: v.name, digest, roles: words })) };
    },
    done: (made) => {
      dialog({ title: t('token.created', { name: made.name }), lead: t('token.once'), body: h('code.secret', { id: 'secret' }, made.secret) });
      done();
    },
  });
}

function revoke(name, done) {
  dialog({
    title: t('token.revoke.title', { name }), lead: t('token.revoke.lead'), confirm: t('token.revoke'), danger: true,
    run: () => admin('DELETE', 'token', { name }),
    done: () => { tell(t('token.revoked', { name })); done(); },
  });
}

export function tokens() {
  const body = h('div');
  const row = (k) => h('tr', null, h('td.name', null, k.name), h('td.name.id', null, k.roles.join(' ')), h('td', null, moment(k.created)),
    h('td.do', null, h('button', { 'data-revoke': k.name, onclick: () => revoke(k.name, load) }, t('token.revoke') + '…')));
  async function load() {
    try {
      const all = await admin('GET', 'tokens');
      const head = h('tr', null, ['name', 'roles', 'made'].map((c) => h('th', null, t('token.' + c))), h('th'));
      body.replaceChildren(...[
        !all.asked && h('p.fault', null, t('token.unasked')),
        h('div.scroll', null, all.tokens.length ? h('table', null, h('thead', null, head), h('tbody', null, all.tokens.map(row))) : empty(t('token.none'))),
      ].filter(Boolean));
    } catch (e) {
      body.replaceChildren(fault(e.message));
    }
  }
  load();
  return { el: h('div.page', null, h('div.headline', null, h('h1', null, t('nav.tokens')), h('button.primary', { id: 'create-token', onclick: () => create(load) }, t('token.create') + '…')), h('p.summary', null, t('token.lead')), body) };
}
