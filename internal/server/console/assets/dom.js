// Elements are made here and nowhere else. Text becomes a text node; there is no way to pass markup.

const svgTags = new Set(['svg', 'path', 'line', 'rect', 'circle', 'text', 'g', 'polyline', 'polygon', 'title']);

// h makes an element: h('a.class', {href, onclick}, 'text', child, [children]).
export function h(name, attrs, ...children) {
  const [tag, ...classes] = name.split('.');
  const svg = svgTags.has(tag) && !(attrs && attrs.html);
  const el = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  if (classes.length) el.setAttribute('class', classes.join(' '));
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value === undefined || value === null || value === false || key === 'html') continue;
    if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
    else if (key === 'value' || key === 'checked' || key === 'disabled' || key === 'selected') el[key] = value;
    else el.setAttribute(key, value === true ? '' : String(value));
  }
  el.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}

// text sets the text of an element if it differs, so that a selection survives an update.
export function text(el, value) {
  const s = value === undefined || value === null ? '' : String(value);
  if (el.textContent !== s) el.textContent = s;
}

// classed sets the classes of an element if they differ.
export function classed(el, value) {
  if (el.getAttribute('class') !== value) el.setAttribute('class', value);
}

// keyed makes the children of a parent those of a list, and keeps the elements of keys that
// stay, so that focus and selection survive an update.
export function keyed(parent, make) {
  let rows = new Map();
  return (items, keyOf) => {
    const now = new Map();
    let before = null;
    for (const item of items) {
      const key = keyOf(item);
      const row = rows.get(key) || make(item);
      row.update(item);
      now.set(key, row);
      const place = before ? before.nextSibling : parent.firstChild;
      if (place !== row.el) parent.insertBefore(row.el, place);
      before = row.el;
    }
    for (const [key, row] of rows) if (!now.has(key)) row.el.remove();
    rows = now;
  };
}
