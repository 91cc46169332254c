// Words and numbers as people read them.

// Formats are slow to make.
const whole = new Intl.NumberFormat('en'), rounded = [0, 1].map(maximumFractionDigits => new Intl.NumberFormat('en', { maximumFractionDigits }));
const times = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' }), days = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

const looks = {
  running: 'running', unready: 'running, not ready', starting: 'starting', suspect: 'suspect: its cell is missing', evacuating: 'evacuating: runs until it is replaced', stopping: 'stopping: its cell was told to stop it',
  crashed: 'crashed, waits', waiting: 'waits for a cell', unplaced: 'no cell takes it',
};
// plain is a text of others in a sentence of ours: what would break the line or
// change the direction of the words around it is spelled out.
export const plain = text => String(text ?? '').replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, c => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`);

export const lookText = look => looks[look] || look;
export const allLooks = Object.keys(looks);

export const plural = (n, word, words = word + 's') => `${number(n)} ${n === 1 ? word : words}`;
export const number = n => n === undefined || n === null ? '–' : whole.format(n);

// mib is an amount of mebibytes.
export function mib(n) {
  if (n === undefined || n === null) return '–';
  if (Math.abs(n) < 1024) return `${number(Math.round(n))} MiB`;
  if (Math.abs(n) < 1024 * 1024) return `${trim(n / 1024)} GiB`;
  return `${trim(n / 1024 / 1024)} TiB`;
}
export const bytes = n => n === undefined || n < 0 ? '–' : n < 1024 ? `${Math.round(n)} B` : n < 1 << 20 ? `${trim(n / 1024)} KiB` : mib(n / (1 << 20));
const trim = v => rounded[v < 10 ? 1 : 0].format(v);

export const share = (part, all) => all ? Math.min(1, Math.max(0, part / all)) : 0;
export const percent = v => `${Math.round(100 * v)} %`;

// span is a length of time in ms: 4.2 s, 3 min 5 s, 2 d 4 h.
export function span(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}
export const nanoseconds = n => span(n / 1e6);
export const clock = at => at ? times.format(new Date(at)) : '–';
export const day = at => at ? days.format(new Date(at)) : '–';

const waits = {
  NOTHING: 'nothing', START: 'the start of a new instance', RESTART: 'the restart of a crashed instance', HEALTHY: 'a new instance that has still to prove healthy',
  READY: 'a new instance that is not ready for traffic', CONFIRMED: 'somebody who confirms the canary', RESUMED: 'somebody who resumes it',
};
export const waitText = w => waits[w] || w;

const begins = { UNKNOWN: 'before the history began', CREATED: 'created', UPDATED: 'updated', ACTIVATED: 'activated', ROLLED_BACK: 'rolled back to', RESTARTED: 'restarted' };
export const beginText = b => begins[b] || b;
const ends = { ACTIVE: 'active', REPLACED: 'replaced', SUPERSEDED: 'overtaken before it was done', GIVEN_UP: 'given up', LOST: 'not known' };
export const endText = e => ends[e] || e || 'active';

// eventText describes an event as one short sentence for the list of what happened.
export function eventText(e) {
  const l = e.lrp, t = e.task;
  if (t) {
    const name = `task ${(t.after || t.before).task_guid}`;
    if (!t.after) return [name, 'was deleted'];
    if (t.after.state === 'PENDING') return [name, 'waits for a cell'];
    if (t.after.state === 'RUNNING') return [name, `runs on ${plain(t.after.cell_id)}`];
    return [name, t.after.failed ? `failed: ${plain(t.after.failure_reason)}` : `is ${t.after.state.toLowerCase()}`];
  }
  const r = l.after || l.before, name = `${r.process_guid}/${r.index}`;
  if (l.kind === 'actual_lrp_crashed') return [name, `crashed: ${plain(l.cause.detail) || 'for an unknown reason'}`];
  if (r.placement_error) return [name, `could not be placed: ${plain(r.placement_error)}`];
  return [name, `runs on ${plain(r.cell_id)}`];
}

// routeText is what a card shows of the routes under one key, which may be any
// JSON: hostnames where there are any.
export function routeText(routes) {
  const say = v => typeof v === 'string' ? v : JSON.stringify(v);
  return [routes].flat().map(route => {
    const names = [route?.hostnames ?? route?.hostname].flat().filter(name => typeof name === 'string' && name);
    return plain(names.length ? names.join(', ') : say(route));
  }).join('; ');
}

export const labelTexts = labels => Object.entries(labels || {}).map(([key, value]) => value ? `${key}=${value}` : key).sort();

// chooser reads what somebody looks for: part of a name, the key of a label, or a
// selector as diegoctl takes it, such as "team=blog,!tier". The function that it
// returns reports whether something with these labels and names is wanted.
export function chooser(text) {
  const want = text.trim(), part = want.toLowerCase();
  if (!/[=!,]/.test(want)) return (labels, ...names) => Object.hasOwn(labels || {}, want) || names.some(name => name?.toLowerCase().includes(part));
  const needs = want.split(',').filter(need => need.trim()).map(need => {
    const [, not, key, other, value] = /^(!?)([^=!]*)(?:(!?)=(.*))?$/s.exec(need.trim()) || [, '', need];
    return { not: Boolean(not || other), key: key.trim(), value: value?.trim() };
  });
  return labels => needs.every(({ not, key, value }) => (Object.hasOwn(labels || {}, key) && (value === undefined || labels[key] === value)) !== not);
}

// cellStates are the words that describe a cell, the most important first.
export function cellStates(c) {
  const out = [];
  if (!c.present) out.push('missing');
  if (c.error) out.push('no answer');
  if (c.evacuating) out.push('draining');
  if (c.cordoned) out.push('cordoned');
  if (c.unhealthy) out.push('unhealthy');
  if (c.settling) out.push('settling');
  return out;
}
