// Small parts that several pages use.

import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { now } from './api.js';
import { onFrame } from './store.js';
import { clock, day, labelTexts, lookText, mib, number, percent, plain, share, span } from './text.js';

// useFleet draws a component anew when something has changed that it wants, at
// most once in every ms.
export function useFleet(wants = () => true, every = 200) {
  const [, draw] = useState(0), latest = useRef(wants);
  latest.current = wants;
  useEffect(() => {
    let timer = 0;
    const off = onFrame(delta => {
      if (!timer && (delta.all || delta.layout || latest.current(delta)))
        timer = setTimeout(() => { timer = 0; draw(n => n + 1); }, every);
    });
    return () => { off(); clearTimeout(timer); };
  }, [every]);
}

// repeat reads something now, again every ms unless that is 0, and again when the
// function that it returns is called. While it reads, a call makes it read once
// more afterwards: an answer that takes longer than the time between two calls
// is used all the same. take gets each answer, or the error, until signal ends it.
export function repeat(read, every, take, signal) {
  let timer = 0, busy = false, again = false;
  const once = async () => {
    if (busy) { again = true; return; }
    clearTimeout(timer);
    busy = true;
    const [data, error] = await read(signal).then(data => [data], error => [undefined, error]);
    busy = false;
    if (signal.aborted) return;
    take(data, error);
    if (again) { again = false; once(); } else if (every) timer = setTimeout(once, every);
  };
  signal.addEventListener('abort', () => clearTimeout(timer));
  once();
  return once;
}

// useLoad reads something when deps change, and again with reload.
export function useLoad(read, deps, every = 0) {
  const [state, set] = useState({}), latest = useRef(), reload = useRef();
  latest.current = read;
  useEffect(() => {
    const cut = new AbortController();
    reload.current = repeat(signal => latest.current(signal), every, (data, error) => set(old => error ? { data: old.data, error } : { data }), cut.signal);
    return () => cut.abort();
  }, deps);
  return { ...state, reload: () => reload.current() };
}

// useFresh reads something of a process, and again every ms unless that is 0 and
// when the process has changed, at most about once a second.
export function useFresh(read, guid, deps = [], every = 0) {
  const loaded = useLoad(read, [guid, ...deps], every), timer = useRef(0), reload = useRef();
  reload.current = loaded.reload;
  useEffect(() => onFrame(delta => {
    if (delta.all || delta.processes.has(guid)) timer.current ||= setTimeout(() => { timer.current = 0; reload.current(); }, 800);
  }), [guid]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return loaded;
}

// useClock draws a component once a second.
export function useClock() {
  const [, draw] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => draw(n => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return now();
}

export const link = (...path) => '#/' + path.map(p => encodeURIComponent(p)).join('/');

export const Look = ({ look, label }) => html`<span class="look ${look}"><i aria-hidden="true"></i>${label || lookText(look)}</span>`;
export const Tag = ({ kind = '', children }) => html`<span class="tag ${kind}">${children}</span>`;

export const Labels = ({ labels }) => labelTexts(labels).map(text => html`<${Tag}>${text}<//>`);

export const Bar = ({ value, warn, label }) => html`<span class="bar ${warn ? 'warn' : ''}" role="img" aria-label=${label} title=${label}><i style=${{ width: `${100 * value}%` }}></i></span>`;

// Room shows how much of an amount is reserved.
export function Room({ used, total, unit = mib }) {
  if (!total) return html`<span class="quiet">–</span>`;
  const v = share(used, total);
  return html`<span class="room"><${Bar} value=${v} warn=${v > 0.9} label=${`${percent(v)} reserved`} /><span>${unit(used)} <span class="quiet">of ${unit(total)}</span></span></span>`;
}

export const Ago = ({ at }) => at ? html`<time datetime=${at} title=${day(at)}>${span(now() - Date.parse(at))} ago</time>` : html`<span class="quiet">–</span>`;
export const At = ({ at }) => html`<time datetime=${at} title=${day(at)}>${clock(at)}</time>`;

export function Fault({ error, what }) {
  if (!error || error.name === 'AbortError') return null;
  return html`<p class="fault" role="alert"><b>${what}:</b> ${error.message}</p>`;
}

export const Card = ({ title, value, children }) => html`<div class="card"><p class="title">${title}</p><p class="value">${value}</p>${children && html`<p class="quiet">${children}</p>`}</div>`;

// Table shows some of many rows at a time. head is [title, class] per column.
export function Table({ id, label, head, rows, empty, row, page = 50 }) {
  const [at, go] = useState(0), pages = Math.max(1, Math.ceil(rows.length / page)), here = Math.min(at, pages - 1);
  return html`<div class="table"><table id=${id} aria-label=${label}>
    <thead><tr>${head.map(([title, kind]) => html`<th scope="col" class=${kind}><span>${title}</span></th>`)}</tr></thead>
    <tbody>${rows.slice(here * page, (here + 1) * page).map(row)}
    ${rows.length === 0 && html`<tr><td colspan=${head.length} class="quiet">${empty}</td></tr>`}</tbody></table>
    ${pages > 1 && html`<nav class="pager" aria-label="Pages of ${label}">
      <button disabled=${here === 0} onClick=${() => go(here - 1)}>Previous</button>
      <span>${number(here * page + 1)}–${number(Math.min(rows.length, (here + 1) * page))} of ${number(rows.length)}</span>
      <button disabled=${here === pages - 1} onClick=${() => go(here + 1)}>Next</button></nav>`}</div>`;
}

// Facts is a list of names and values.
export const Facts = ({ list }) => html`<dl class="facts">${list.filter(f => f).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

export const byName = (a, b) => a < b ? -1 : a > b ? 1 : 0;

// ready tells tests that the first data are drawn.
export const ready = () => { document.getElementById('main').dataset.ready = 'true'; };

// useReady does so once a page has what it shows.
export function useReady(has) {
  useEffect(() => { if (has) ready(); }, [has]);
}

// Choice is a list to choose one of. options are [value, text].
export const Choice = ({ label, value, options, choose }) => html`<label>${label} <select onChange=${e => choose(e.target.value)}>${options.map(([v, text]) => html`<option value=${v} selected=${v === value}>${plain(text)}</option>`)}</select></label>`;

// coloursOf are what the style sheet says about names now; it depends on the theme.
export function coloursOf(names) {
  const probe = document.createElement('i'), out = {};
  document.body.append(probe);
  for (const name of names) {
    probe.className = 'probe ' + name;
    out[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return out;
}
