import { language, t } from './i18n.js';

const formats = new Map();
function format(options) {
  const key = language + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language === 'zh' ? 'zh-CN' : 'en', options));
  return formats.get(key);
}

// count is a whole number, which may be a string of 64 bits.
export const count = (n) => format({}).format(typeof n === 'string' ? BigInt(n) : n);

// rate is a number per second in few digits.
export function rate(n) {
  if (n === undefined || n === null) return '–';
  if (n === 0) return '0';
  if (n < 10) return format({ maximumFractionDigits: n < 0.1 ? 3 : n < 1 ? 2 : 1 }).format(n);
  if (n < 100000) return format({ maximumFractionDigits: 0 }).format(n);
  return format({ notation: 'compact', maximumFractionDigits: 1 }).format(n);
}

const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];

// span is a time in seconds, in its two largest units.
export function span(seconds) {
  if (seconds === undefined || seconds === null) return '–';
  if (seconds >= 365.25 * 86400) return t('unit.years', { n: format({ maximumFractionDigits: 1 }).format(seconds / 365.25 / 86400) });
  if (seconds < 1) return format({ maximumFractionDigits: 0 }).format(seconds * 1000) + ' ms';
  if (seconds < 10) return format({ maximumFractionDigits: 1 }).format(seconds) + ' s';
  for (const [i, [unit, size]] of units.entries()) {
    if (seconds < size) continue;
    const first = Math.floor(seconds / size);
    const next = units[i + 1];
    const rest = next && first < 10 ? Math.floor((seconds % size) / next[1]) : 0;
    return rest ? `${first} ${unit} ${rest} ${next[0]}` : `${first} ${unit}`;
  }
  return '0 s';
}

// offset is a signed difference of clocks in seconds.
export function offset(seconds) {
  if (seconds === undefined || seconds === null) return '–';
  const ms = seconds * 1000;
  if (ms === 0) return '0 ms';
  return (ms >= 0 ? '+' : '−') + format({ maximumFractionDigits: Math.abs(ms) < 100 ? 1 : 0 }).format(Math.abs(ms)) + ' ms';
}

export function ago(iso, now) {
  if (!iso) return '–';
  const seconds = ((now || Date.now()) - Date.parse(iso)) / 1000;
  return seconds < 1 ? t('time.now') : t('time.ago', { span: span(Math.floor(seconds)) });
}

// moment is a time: in words of ISO 8601, or in Unix milliseconds, which may be a string of digits.
export function moment(iso) {
  const d = new Date(/^-?\d+$/.test(iso) ? Number(iso) : iso);
  return Number.isNaN(d.getTime()) ? '–' : d.toISOString().replace('T', ' ').replace(/\.000Z$/, 'Z');
}

export const clock = (seconds, fine) => new Date(seconds * 1000).toLocaleTimeString(language === 'zh' ? 'zh-CN' : 'en-GB', { hour: '2-digit', minute: '2-digit', second: fine ? '2-digit' : undefined });
export const percent = (x) => format({ style: 'percent', maximumFractionDigits: 0 }).format(x);
