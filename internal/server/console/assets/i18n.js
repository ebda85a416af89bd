// Texts, one file a language. English stands in for a text that is missing.

const known = ['en', 'zh'];
let english = {};
let chosen = {};
export let language = 'en';

const load = async (name) => (await fetch(new URL(name + '.json', import.meta.url))).json();

export async function setup() {
  const saved = localStorage.getItem('leaf-language');
  const wanted = [saved, ...navigator.languages.map((l) => l.slice(0, 2))];
  english = await load('en');
  await use(wanted.find((l) => known.includes(l)) || 'en');
}

export async function use(name) {
  chosen = name === 'en' ? english : await load(name);
  language = name;
  document.documentElement.lang = name === 'zh' ? 'zh-CN' : name;
}

export async function change(name) {
  localStorage.setItem('leaf-language', name);
  await use(name);
}

export function t(key, values) {
  const s = chosen[key] || english[key] || key;
  return s.replace(/\{(\w+)\}/g, (_, name) => (values && name in values ? String(values[name]) : ''));
}
