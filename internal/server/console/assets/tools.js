import { read } from './api.js';
import { h } from './dom.js';
import { t } from './i18n.js';
import { card, fact, fault } from './parts.js';

// form shows fields, and what the node answers to them.
function form(id, fields, button, ask) {
  const out = h('div.answer', { 'aria-live': 'polite' });
  const inputs = fields.map((f) => h('input', { id: `${id}-${f.name}`, name: f.name, value: f.value || '', placeholder: f.placeholder, inputmode: f.mode, autocomplete: 'off', spellcheck: 'false' }));
  const el = h('form', {
    id,
    onsubmit: async (e) => {
      e.preventDefault();
      const values = Object.fromEntries(inputs.map((i) => [i.name, i.value.trim()]));
      try {
        out.replaceChildren(h('dl.facts', null, await ask(values)));
      } catch (err) {
        out.replaceChildren(fault(err.message));
      }
    },
  }, fields.map((f, i) => h('div.field', null, h('label', { for: `${id}-${f.name}` }, f.label), inputs[i])), h('div.buttons.tight', null, h('button.primary', { type: 'submit' }, button)), out);
  return el;
}

export function tools() {
  const now = new Date();
  const hour = new Date(now.getTime() - 3600e3);
  const iso = (d) => d.toISOString().replace(/\.\d+Z$/, 'Z');
  const id = (value) => h('span.id', null, value);
  const el = h('div.page', null, h('div.headline', null, h('h1', null, t('nav.tools'))), h('p.summary', null, t('tools.lead')),
    h('div.columns', null,
      card(t('tools.decode'), form('decode', [{ name: 'id', label: t('tools.id'), mode: 'numeric' }], t('tools.decode.do'), async (v) => {
        const d = await read('decode', v);
        return [fact(t('tools.time'), d.time), d.datacenter !== undefined && fact(t('snow.datacenter'), String(d.datacenter)), fact(t('snow.worker'), String(d.worker)), fact(t('tools.sequence'), String(d.sequence)), fact(t('snow.layout.name'), d.layout), d.warning && h('div.fact.wide', null, fault(d.warning))];
      })),
      card(t('tools.encode'), form('encode', [{ name: 'time', label: t('tools.time'), value: iso(now) }, { name: 'datacenter', label: t('snow.datacenter'), value: '0', mode: 'numeric' }, { name: 'worker', label: t('snow.worker'), value: '0', mode: 'numeric' }, { name: 'sequence', label: t('tools.sequence'), value: '0', mode: 'numeric' }], t('tools.encode.do'), async (v) => {
        const d = await read('encode', v);
        return [fact(t('tools.id'), id(d.id)), fact(t('snow.layout.name'), d.layout)];
      })),
      card(t('tools.span'), form('span', [{ name: 'from', label: t('tools.from'), value: iso(hour) }, { name: 'to', label: t('tools.to'), value: iso(now) }], t('tools.span.do'), async (v) => {
        const d = await read('span', v);
        return [fact(t('tools.lo'), id(d.lo)), fact(t('tools.hi'), id(d.hi)), h('div.fact.wide', null, h('small', null, t('tools.span.hint')), h('code', null, `WHERE id >= ${d.lo} AND id < ${d.hi}`))];
      }))));
  return { el };
}
