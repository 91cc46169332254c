// Health: who leads, how old the last pass is, and how much happens.

import { html, useEffect, useRef, useState } from './vendor/preact.js';
import uPlot from './vendor/uPlot.js';
import { get, now } from './api.js';
import { Card, coloursOf, Fault, Table, Tag, useClock, useLoad, useReady } from './parts.js';
import { day, number, span } from './text.js';

const every = 2000, kept = 150; // samples: five minutes
const samples = []; // per time: commits/s, events/s, mean lag; they stay when the page is left

function sample(h) {
  const at = Date.parse(h.now), last = samples.at(-1);
  if (last && (at <= last.at || at - last.at > 10 * every || h.commits_total < last.commitsTotal)) samples.length = 0;
  const before = samples.at(-1), rate = (v, old) => before && v !== undefined && old !== undefined ? Math.max(0, (v - old) / (at - before.at) * 1000) : null;
  const { subscriber_lag_events_sum: lags, subscriber_lag_events_count: reads } = h.figures || {};
  samples.push({
    at, commitsTotal: h.commits_total, eventsTotal: h.events_total, lags, reads, commits: rate(h.commits_total, before?.commitsTotal), events: rate(h.events_total, before?.eventsTotal),
    lag: h.subscriber_lag ?? (before && reads > before.reads ? (lags - before.lags) / (reads - before.reads) : before && reads === before.reads ? 0 : null),
  });
  if (samples.length > kept) samples.shift();
}

// Chart draws one series of the samples.
function Chart({ title, field, unit, turn }) {
  const box = useRef(), plot = useRef(), last = samples.at(-1)?.[field];
  useEffect(() => {
    const make = () => {
      plot.current?.destroy();
      const { accent, line, quiet } = coloursOf(['accent', 'line', 'quiet']), axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: '11px system-ui' };
      plot.current = new uPlot({
        width: box.current.clientWidth, height: 150, legend: { show: false }, cursor: { show: false }, scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
        axes: [{ ...axis, values: (_, ticks) => ticks.map(t => new Date(t * 1000).toLocaleTimeString('en-GB')), space: 90 }, { ...axis, size: 46 }],
        series: [{}, { stroke: accent, width: 1.5, fill: accent.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)'), points: { show: false } }],
      }, data(), box.current);
    };
    const data = () => [samples.map(s => s.at / 1000), samples.map(s => s[field])];
    make();
    const resized = new ResizeObserver(() => plot.current.setSize({ width: box.current.clientWidth, height: 150 }));
    resized.observe(box.current);
    addEventListener('theme', make);
    return () => { resized.disconnect(); removeEventListener('theme', make); plot.current.destroy(); };
  }, []);
  useEffect(() => plot.current.setData([samples.map(s => s.at / 1000), samples.map(s => s[field])]), [turn]);
  const said = last === null || last === undefined ? 'not known yet' : `${last.toLocaleString('en', { maximumFractionDigits: 1 })} ${unit}`;
  return html`<section class="panel" aria-label=${title}><h2>${title} <span class="quiet">${said}</span></h2><div ref=${box} role="img" aria-label=${`${title} of the last five minutes, now ${said}`}></div></section>`;
}

const unknown = html`<span class="quiet">not known here</span>`;

export function Health() {
  useClock();
  const [turn, next] = useState(0);
  const health = useLoad(async signal => {
    const h = await get('health', signal);
    sample(h);
    next(n => n + 1);
    return h;
  }, [], every);
  const h = health.data;
  useReady(h || health.error);
  const age = h?.last_pass_at ? now() - Date.parse(h.last_pass_at) : undefined;
  const figures = Object.entries(h?.figures || {}).sort(([a], [b]) => a < b ? -1 : 1);
  return html`<h1>Health</h1><${Fault} what="The health cannot be read" error=${health.error} />
    ${h && html`<div class="cards">
      <${Card} title="Leader" value=${h.leader || 'nobody'}>${h.role === 'leader' ? html`<${Tag} kind="good">this process leads<//>` : html`<${Tag}>this process is a ${h.role || 'standby'}<//>`}${h.lease_seconds !== undefined ? ` lease for ${span(1000 * h.lease_seconds)}` : ''}<//>
      <${Card} title="Last pass of convergence" value=${age === undefined ? unknown : `${span(age)} ago`}>${h.last_pass_seconds !== undefined ? `took ${span(1000 * h.last_pass_seconds)}` : ''}<//>
      <${Card} title="Subscribers" value=${h.subscribers === undefined ? unknown : number(h.subscribers)}>${h.subscriber_lag === undefined ? '' : h.subscriber_lag ? `the slowest is ${number(h.subscriber_lag)} events behind` : 'none is behind'}<//>
      <${Card} title="Version" value=${h.version || unknown}>${[h.started_at && `started ${day(h.started_at)}`, `newest event ${number(h.events_total)}`].filter(x => x).join(', ')}<//></div>`}
    <div class="charts"><${Chart} title="Commits" unit="per second" field="commits" turn=${turn} /><${Chart} title="Events" unit="per second" field="events" turn=${turn} /><${Chart} title="Lag of subscribers" unit="events" field="lag" turn=${turn} /></div>
    ${figures.length > 0 && html`<section class="panel" aria-label="Figures"><h2>All figures</h2><${Table} id="figures" label="Figures" rows=${figures} empty="" page=${100} head=${[['Figure'], ['Value', 'n']]} row=${([name, v]) => html`<tr key=${name}><th scope="row" class="mono">${name}</th><td class="n">${Number(v).toLocaleString('en', { maximumFractionDigits: 4 })}</td></tr>`} /></section>`}`;
}
