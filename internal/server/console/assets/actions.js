// What an administrator can do. Each action asks first, and goes to the administrator's interface.

import { admin } from './api.js';
import { dialog, tell } from './dialog.js';
import { h } from './dom.js';
import { t } from './i18n.js';

const number = (text, field) => {
  if (text === '') return undefined;
  if (!/^-?\d+$/.test(text)) throw new Error(t('fault.number', { field }));
  return text;
};
const small = (text, field) => {
  const n = number(text, field);
  return n === undefined ? undefined : Number(n);
};

// optionFields are those of a tag whose IDs people read, and of strict order. row is what the tag has.
const optionFields = (row) => [
  { name: 'strict', label: t('tag.strict'), value: row.order === 'strict', type: 'checkbox', hint: t('tag.strict.hint') },
  { name: 'format', label: t('tag.format'), value: row.format || '', hint: t('tag.format.hint') },
  { name: 'period', label: t('tag.period'), value: row.period || '', hint: t('tag.period.hint') },
  { name: 'period_zone', label: t('tag.period_zone'), value: row.period_zone || '', placeholder: 'UTC', hint: t('tag.period_zone.hint') },
  { name: 'description', label: t('tag.description'), value: row.description || '' },
];

// optionChange returns what differs from row.
function optionChange(v, row) {
  const change = {};
  if (v.strict !== (row.order === 'strict')) change.order = v.strict ? 'strict' : 'plain';
  for (const key of ['format', 'period', 'period_zone', 'description']) {
    if (v[key] !== (row[key] || '')) change[key] = v[key];
  }
  return change;
}

export function createTag(done) {
  dialog({
    title: t('tag.create'), lead: t('tag.create.lead'), confirm: t('tag.create.do'),
    fields: [
      { name: 'tag', label: t('tag.name') },
      { name: 'start', label: t('tag.start'), value: 1, mode: 'numeric', hint: t('tag.start.hint') },
      { name: 'step', label: t('tag.step'), value: 1000, mode: 'numeric', hint: t('tag.step.hint') },
      ...optionFields({}),
    ],
    run: (v) => admin('POST', 'tag', null, { tag: v.tag, start: number(v.start, t('tag.start')) || '1', step: small(v.step, t('tag.step')) || 1000, ...optionChange(v, {}) }),
    done: (tag) => { tell(t('tag.created', { tag: tag.tag })); done(); },
  });
}

export async function editTag(name, done) {
  let row;
  try {
    row = await admin('GET', 'tag', { tag: name });
  } catch (e) {
    tell(e.message);
    return;
  }
  dialog({
    title: t('tag.edit', { tag: name }), lead: t('tag.edit.lead'), confirm: t('tag.edit.do'),
    fields: [
      { name: 'step', label: t('tag.step'), value: row.step, mode: 'numeric', hint: t('tag.step.hint') },
      { name: 'min_step', label: t('tag.min_step'), value: row.min_step || 0, mode: 'numeric', hint: t('tag.min_step.hint') },
      { name: 'max_step', label: t('tag.max_step'), value: row.max_step || 0, mode: 'numeric', hint: t('tag.max_step.hint') },
      { name: 'fixed_step', label: t('tag.fixed_step'), value: row.fixed_step, type: 'checkbox' },
      ...optionFields(row),
    ],
    run: (v) => {
      const change = optionChange(v, row);
      for (const key of ['step', 'min_step', 'max_step']) {
        const n = small(v[key], t('tag.' + key));
        if (n !== undefined && n !== (row[key] || 0)) change[key] = n;
      }
      if (v.fixed_step !== Boolean(row.fixed_step)) change.fixed_step = v.fixed_step;
      return admin('PATCH', 'tag', { tag: name }, change);
    },
    done: () => { tell(t('tag.edited', { tag: name })); done(); },
  });
}

export async function limitOf(kind, name, done) {
  let found = {};
  try {
    const all = await admin('GET', 'limits');
    found = all.limits.find((l) => l.kind === kind && l.name === name) || {};
  } catch (e) {
    tell(e.message);
    return;
  }
  dialog({
    title: t('limit.title', { name: name || t('limit.nameless') }), lead: t('limit.lead'), confirm: t('limit.do'),
    fields: [
      { name: 'rate', label: t('limit.rate'), value: found.rate || '0', mode: 'numeric', hint: t('limit.none') },
      { name: 'quota', label: t('limit.quota'), value: found.quota || '0', mode: 'numeric', hint: t('limit.none') },
      { name: 'blocked', label: t('limit.blocked'), value: found.blocked, type: 'checkbox', hint: t('limit.blocked.hint') },
    ],
    run: (v) => { // what differs from found only: another operator may have blocked the name meanwhile
      const change = {};
      for (const key of ['rate', 'quota']) {
        const n = number(v[key], t('limit.' + key)) || '0';
        if (n !== (found[key] || '0')) change[key] = n;
      }
      if (v.blocked !== Boolean(found.blocked)) change.blocked = v.blocked;
      return admin('PATCH', 'limit/' + kind, { [kind]: name }, change);
    },
    done: () => { tell(t('limit.done', { name: name || t('limit.nameless') })); done(); },
  });
}

export function limitClient(done) {
  dialog({
    title: t('limit.client'), lead: t('limit.client.lead'), confirm: t('action.next'),
    fields: [{ name: 'client', label: t('limit.client.name') }],
    run: async (v) => v.client,
    done: (name) => limitOf('client', name, done),
  });
}

// repair shows the plan first: what the nodes know of the tag, and where IDs go on.
export async function repair(name, done) {
  let plan;
  const asking = tell(t('repair.asking', { tag: name }));
  try {
    plan = await admin('GET', 'repair', { tag: name });
  } catch (e) {
    tell(e.message);
    return;
  } finally {
    asking.remove();
  }
  const fact = (label, value) => value && h('div.fact', null, h('dt', null, label), h('dd', null, value));
  const body = h('div', null,
    h('dl.facts', null,
      fact(t('repair.row'), plan.no_row ? t('repair.norow') : plan.row),
      fact(t('repair.posted'), plan.posted), fact(t('repair.deleted'), plan.deleted), fact(t('repair.fence'), plan.cluster_fence),
      fact(t('repair.above'), plan.above), fact(t('repair.first'), plan.first)),
    h('table', null, h('thead', null, h('tr', null, h('th', null, t('repair.node')), h('th.num', null, t('repair.end')), h('th', null, t('repair.state')))),
      h('tbody', null, (plan.nodes || []).map((n) => h('tr', null, h('td.id', null, n.node), h('td.num', null, n.end), h('td', null, n.state))))),
    plan.alone && h('p.fault', null, plan.alone),
    !plan.refused && untold(plan),
    plan.refused && h('p.fault', null, plan.refused));
  dialog({
    title: t('repair.title', { tag: name }), lead: plan.refused ? t('repair.refused') : t('repair.lead'), body, confirm: t('repair.do'), danger: true,
    run: plan.refused ? null : () => admin('POST', 'repair', { tag: name }, { above: '0' }),
    done: (r) => {
      const said = t('repair.done', { tag: name });
      if (r.plan.untold) dialog({ title: said, body: untold(r.plan) }); else tell(said);
      done();
    },
  });
}

// untold names the nodes that a repair does not reach: they may issue what they hold from below.
const untold = (plan) => plan.untold && h('p.fault', null, t('repair.untold', { nodes: plan.untold.join(', ') }));

export function drain(done) {
  dialog({
    title: t('drain.title'), lead: t('drain.lead'), confirm: t('drain.do'), danger: true,
    fields: [{ name: 'delay', label: t('drain.delay'), value: '', placeholder: '30s', hint: t('drain.hint') }],
    run: (v) => admin('POST', 'drain', { delay: v.delay }),
    done: () => { tell(t('drain.done')); done(); },
  });
}

export function weight(now, done) {
  dialog({
    title: t('weight.title'), lead: t('weight.lead'), confirm: t('weight.do'),
    fields: [{ name: 'weight', label: t('weight.label'), value: now, mode: 'numeric', hint: t('weight.hint') }],
    run: (v) => admin('POST', 'node/weight', { weight: number(v.weight, t('weight.label')) }),
    done: () => { tell(t('weight.done')); done(); },
  });
}
