// Line charts of the last hour in plain SVG. Beside each stands a table with the numbers, for
// those who cannot see the lines.

import { h, text } from './dom.js';
import { clock } from './format.js';
import { t } from './i18n.js';

const height = 150;
const left = 46;
const right = 8;
const top = 10;
const bottom = 20;

function nice(max) {
  if (max <= 0) return 1;
  const base = 10 ** Math.floor(Math.log10(max));
  return [1, 2, 2.5, 5, 10].map((m) => m * base).find((m) => m >= max * 0.999);
}

// chart returns an element and its update. lines are {key, name, class}; show formats a value.
export function chart(title, lines, show, options = {}) {
  const now = h('span.now');
  let width = 640; // in pixels, as it is on the screen, so that texts are not scaled
  const plot = h('svg', { height, role: 'img', 'aria-label': title });
  const rows = h('tbody');
  const legend = lines.length > 1 ? h('span.legend', null, lines.map((l) => h('span.key.' + l.class, null, l.name))) : null;
  const el = h('figure.card.chart', null,
    h('figcaption', null, h('span', null, title), legend, now),
    plot,
    h('details', null, h('summary', null, t('chart.table')),
      h('table', null, h('thead', null, h('tr', null, h('th', null, t('chart.time')), lines.map((l) => h('th.num', null, l.name)))), rows)));
  let points = [];
  let hovered = null;
  let window = 3600; // seconds shown: an hour, or what there is of it

  const draw = () => {
    width = Math.max(240, plot.clientWidth || width);
    plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const end = points.length ? points[points.length - 1].at : Date.now() / 1000;
    window = points.length ? Math.min(3600, Math.max(60, end - points[0].at)) : 3600;
    const x = (at) => left + ((at - end + window) / window) * (width - left - right);
    const values = points.flatMap((p) => lines.map((l) => p[l.key])).filter((v) => typeof v === 'number');
    const max = nice(Math.max(options.least || 0, ...values.map(Math.abs)));
    const min = options.signed ? -max : 0;
    const y = (v) => top + ((max - v) / (max - min)) * (height - top - bottom);
    const parts = [];
    for (const v of options.signed ? [max, 0, min] : [max, max / 2, 0]) {
      parts.push(h('line.grid', { x1: left, x2: width - right, y1: y(v), y2: y(v) }));
      parts.push(h('text.axis', { x: left - 6, y: y(v) + 3.5, 'text-anchor': 'end' }, show(v)));
    }
    const marks = width < 400 ? 2 : 4;
    for (let i = 0; i <= marks; i++) {
      const at = end - window + (window * i) / marks;
      parts.push(h('text.axis', { x: x(at), y: height - 5, 'text-anchor': i === 0 ? 'start' : i === marks ? 'end' : 'middle' }, clock(at, window < 1200)));
    }
    for (const l of lines) {
      let run = [];
      const flush = () => {
        if (run.length > 1) {
          const d = 'M' + run.map(([px, py]) => px.toFixed(1) + ' ' + py.toFixed(1)).join('L');
          if (!options.signed && lines.length === 1) parts.push(h('path.area', { d: `${d}L${run[run.length - 1][0].toFixed(1)} ${y(0)}L${run[0][0].toFixed(1)} ${y(0)}Z` }));
          parts.push(h('path.line.' + l.class, { d }));
        } else if (run.length === 1) {
          parts.push(h('circle.dot.' + l.class, { cx: run[0][0], cy: run[0][1], r: 2 }));
        }
        run = [];
      };
      for (const p of points) {
        if (typeof p[l.key] === 'number') run.push([x(p.at), y(p[l.key])]);
        else flush();
      }
      flush();
    }
    if (hovered) parts.push(h('line.cursor', { x1: x(hovered.at), x2: x(hovered.at), y1: top, y2: height - bottom }));
    plot.replaceChildren(...parts);
    const p = hovered || points[points.length - 1];
    text(now, p ? (hovered ? clock(p.at, true) + '  ' : '') + lines.map((l) => (lines.length > 1 ? l.name + ' ' : '') + show(p[l.key])).join(' · ') : t('chart.none'));
    rows.replaceChildren(...points.filter((_, i) => (points.length - 1 - i) % 60 === 0).map((q) => h('tr', null, h('td', null, clock(q.at)), lines.map((l) => h('td.num', null, show(q[l.key]))))));
  };
  plot.addEventListener('pointermove', (e) => {
    const box = plot.getBoundingClientRect();
    const end = points.length ? points[points.length - 1].at : 0;
    const at = end - window + ((((e.clientX - box.left) / box.width) * width - left) / (width - left - right)) * window;
    hovered = points.reduce((best, p) => (!best || Math.abs(p.at - at) < Math.abs(best.at - at) ? p : best), null);
    draw();
  });
  plot.addEventListener('pointerleave', () => {
    hovered = null;
    draw();
  });
  new ResizeObserver(() => plot.clientWidth && plot.clientWidth !== width && draw()).observe(plot);
  return {
    el,
    update(list) {
      points = list;
      draw();
    },
  };
}
