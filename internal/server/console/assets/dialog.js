// Dialogs. The browser keeps the focus inside and closes them with Escape.

import { h, text } from './dom.js';
import { t } from './i18n.js';

// dialog shows a form. fields are {name, label, value, type, hint}; run gets their values, and
// its error is shown. confirm is the text of the button; danger colours it. Without run there is
// nothing to confirm.
export function dialog({ title, lead, fields = [], body, confirm, danger, run, done }) {
  const inputs = new Map();
  const fault = h('p.fault', { role: 'alert', hidden: true });
  const rows = fields.map((f) => {
    const id = 'field-' + f.name;
    const input = f.type === 'checkbox'
      ? h('input', { id, name: f.name, type: 'checkbox', checked: Boolean(f.value) })
      : h('input', { id, name: f.name, type: f.type || 'text', value: f.value === undefined ? '' : String(f.value), autocomplete: 'off', spellcheck: 'false', placeholder: f.placeholder, inputmode: f.mode });
    inputs.set(f.name, input);
    return h(f.type === 'checkbox' ? 'div.field.check' : 'div.field', null,
      h('label', { for: id }, f.label), input, f.hint && h('small', null, f.hint));
  });
  const go = h('button', { class: danger ? 'primary danger' : 'primary', type: 'submit', id: 'confirm' }, confirm || t('action.confirm'));
  const close = h('button', { type: 'button', id: 'cancel', onclick: () => el.close() }, t(run ? 'action.cancel' : 'action.close'));
  const form = h('form', { onsubmit: submit }, h('h2', null, title), lead && h('p.lead', null, lead), body, rows, fault, h('div.buttons', null, close, run && go));
  const el = h('dialog', { 'aria-label': title, onclose: () => el.remove() }, form);

  async function submit(e) {
    e.preventDefault();
    const values = {};
    for (const [name, input] of inputs) values[name] = input.type === 'checkbox' ? input.checked : input.value.trim();
    go.disabled = true;
    fault.hidden = true;
    try {
      const result = await run(values);
      el.close();
      if (done) done(result);
    } catch (err) {
      text(fault, err.message);
      fault.hidden = false;
    } finally {
      go.disabled = false;
    }
  }
  document.body.append(el);
  el.showModal();
  return el;
}

// tell shows a short message at the bottom of the page.
export function tell(message) {
  const el = h('div.toast', { role: 'status' }, message);
  document.body.append(el);
  setTimeout(() => el.remove(), 5000);
  return el;
}
