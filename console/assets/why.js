// Why an instance is where it is, or nowhere; and whether more would fit.

import { html, useEffect, useMemo, useRef, useState } from './vendor/preact.js';
import { call, now, post } from './api.js';
import { lanes, placement, refusal, scale } from './explain.js';
import { At, Bar, Fault, link, Look, Table, Tag, useClock, useFleet, useFresh, useLoad, useReady } from './parts.js';
import { lookOf, may, recordID, slotsOf, store } from './store.js';
import { clock, lookText, mib, number, percent, plain, plural, share, span } from './text.js';

const laneHeight = 26;

const said = b => `${plain(b.record.cell_id) || lookText(b.look).split(/[,:]/)[0]} · ${span(b.to - b.from)}`;

// Strip is the timeline as a picture; the table below it says the same.
function Strip({ entries }) {
  const box = useRef(), [width, set] = useState(900);
  useEffect(() => {
    const resized = new ResizeObserver(() => set(box.current?.clientWidth || 900));
    resized.observe(box.current);
    return () => resized.disconnect();
  }, []);
  const end = now(), { bars, lanes: n } = lanes(entries, lookOf, end);
  const x = scale([...bars.flatMap(b => [b.from, b.to])], width - 2), crashes = entries.filter(e => e.event?.kind === 'actual_lrp_crashed').map(e => Date.parse(e.at));
  return html`<div class="strip" ref=${box}>${bars.length > 0 && html`<svg width=${width} height=${n * laneHeight + 24} role="img" aria-label="What was at this index from when to when; the table below says the same.">
    ${bars.map(b => html`<g key=${b.epoch + b.from}><rect class="span ${b.look}" x=${x(b.from)} y=${b.lane * laneHeight + 2} width=${Math.max(3, x(b.to) - x(b.from) - 1)} height=${laneHeight - 6} rx="3"><title>${`${lookText(b.look)}${b.record.cell_id ? ` on ${plain(b.record.cell_id)}` : ''}, ${clock(b.from)}, for ${span(b.to - b.from)}`}</title></rect>
      ${x(b.to) - x(b.from) > 7 * said(b).length + 14 && html`<text class="in ${b.look}" x=${x(b.from) + 7} y=${b.lane * laneHeight + 16}>${said(b)}</text>`}</g>`)}
    ${crashes.map(t => html`<text class="crash" x=${(x(t) || 0) - 4} y=${n * laneHeight + 12}>✕</text>`)}
    <text class="quiet" x="0" y=${n * laneHeight + 20}>${clock(bars[0].from)}</text><text class="quiet" x=${width - 2} y=${n * laneHeight + 20} text-anchor="end">now</text></svg>`}</div>`;
}

// Parts shows the parts of a score as bars: the winner's and the runner-up's.
function Parts({ parts, here, other }) {
  return html`<div class="against"><span></span><span class="quiet">${here}</span><span class="quiet">${other || 'no other cell'}</span>${parts.map(({ by, won, lost }) => {
    const inUse = by.endsWith(' in use'), most = inUse ? 1 : Math.max(Math.abs(won), Math.abs(lost)) || 1, say = v => inUse ? percent(v) : `${v}`;
    return html`<span>${by}</span><span class="room"><${Bar} value=${share(Math.abs(won), most)} label=${by} /> ${say(won)}</span>${lost === null ? html`<span class="quiet">–</span>` : html`<span class="room other"><${Bar} value=${share(Math.abs(lost), most)} label=${by} /> ${say(lost)}</span>`}`;
  })}</div>`;
}

// Reasons shows how many cells refused for which reason.
function Reasons({ cells, reasons, nearest }) {
  return html`<div class="reasons">${reasons.map(r => html`<div><span>${r.reason}</span><span class="room"><${Bar} value=${share(r.cells, cells)} warn label=${`${r.cells} of ${cells} cells`} /> ${number(r.cells)} <span class="quiet">of ${plural(cells, 'cell')}</span></span></div>`)}
    ${nearest && html`<p>The nearest is <a href=${link('cell', nearest.cell)}>${nearest.cell}</a>, which lacks ${nearest.lacks}.</p>`}</div>`;
}

function Details({ e }) {
  const { cause, after } = e.event || {}, won = after?.state === 'CLAIMED' && placement(cause?.detail), no = after?.placement_error && refusal(after.placement_error);
  if (won) return html`<${Parts} ...${won} here=${after.cell_id} />`;
  if (no) return html`<${Reasons} ...${no} />`;
  return null;
}

const lacks = l => [l.memory_mb && `${mib(l.memory_mb)} of memory`, l.disk_mb && `${mib(l.disk_mb)} of disk`, l.containers && plural(l.containers, 'container'), l.pids && plural(l.pids, 'process', 'processes'),
  ...Object.entries(l.extra_resources || {}).map(([name, n]) => `${number(n)} of ${name}`)].filter(x => x).join(' and ');

const parts = [['preference', 'preference'], ['zone_instances', 'of its process in the zone'], ['cell_instances', 'of its process on the cell'], ['cell_tasks', 'tasks on the cell'], ['memory', 'memory in use', percent],
  ['disk', 'disk in use', percent], ['containers', 'containers in use', percent], ['extra_resources', 'further resources in use', percent], ['starting', 'containers that start'], ['bin_pack', 'bin packing']];

// Score compares the parts of a placement's score with those of the runner-up.
function Score({ placement: p }) {
  const up = p.runner_up?.cell_id ? p.runner_up : null, say = (v, f) => f ? f(v) : +Number(v).toFixed(3);
  const rows = parts.filter(([name]) => p.score[name] || up?.score[name]);
  return html`<div class="table"><table aria-label="Score of ${p.cell_id}"><thead><tr><th scope="col">Part of the score</th><th scope="col"><a href=${link('cell', p.cell_id)}>${p.cell_id}</a></th><th scope="col">${up ? html`runner-up <a href=${link('cell', up.cell_id)}>${up.cell_id}</a>` : 'no other cell can take it'}</th></tr></thead>
    <tbody>${rows.map(([name, text, f]) => {
      const a = p.score[name] || 0, b = up?.score[name] || 0, most = f ? 1 : Math.max(Math.abs(a), Math.abs(b)) || 1;
      return html`<tr key=${name}><th scope="row">${text}</th><td><span class="room"><${Bar} value=${share(Math.abs(a), most)} label=${text} /> ${say(a, f)}</span></td><td>${up && html`<span class="room other"><${Bar} value=${share(Math.abs(b), most)} label=${text} /> ${say(b, f)}</span>`}</td></tr>`;
    })}${rows.length === 0 && html`<tr><td colspan="3" class="quiet">Every part is zero: the cell is empty.</td></tr>`}</tbody></table></div>`;
}

// Fit asks where more instances of a process would go.
function Fit({ guid }) {
  const [n, want] = useState(20), [asked, ask] = useState(20), [memory, size] = useState('');
  const [chosen, override] = useState({});
  const plan = useLoad(signal => post('plan', { process_guid: guid, instances: asked, ...chosen }, signal), [guid, asked, chosen]);
  const result = plan.data?.result, placements = result?.placements || [], refusals = result?.refusals || [];
  const onCell = new Map();
  for (const p of placements) {
    if (!onCell.has(p.cell_id)) onCell.set(p.cell_id, []);
    onCell.get(p.cell_id).push(p);
  }
  const rows = [...onCell.entries()].sort((a, b) => b[1].length - a[1].length), first = refusals.find(r => r.explanation) || refusals[0];
  const submit = e => { e.preventDefault(); override(memory ? { memory_mb: Number(memory) } : {}); ask(n); };
  return html`<section class="panel" aria-label="Would more fit?"><h2>Would more fit?</h2>
    <form class="tools" id="fit" onSubmit=${submit}><label>Would <input type="number" id="fit-instances" min="1" max="10000" value=${n} onInput=${e => want(Math.max(1, Math.floor(Number(e.target.value) || 1)))} /> more of these fit</label>
      <label>with <input type="number" min="1" placeholder=${store.fleet.processes.get(guid)?.sizes[store.fleet.processes.get(guid)?.active]?.memory_mb ?? ''} value=${memory} onInput=${e => size(e.target.value)} /> MiB each?</label> <button class="main">Ask</button></form>
    <${Fault} what="The auctioneer did not answer" error=${plan.error} />
    ${result && html`<p id="fit-answer" role="status">${refusals.length === 0 ? html`<${Tag} kind="good">yes<//> ${placements.length === 1 ? `One more would go to ${plain(placements[0].cell_id)}.` : `All ${number(placements.length)} would fit, on ${plural(onCell.size, 'cell')}.`}`
        : html`<${Tag} kind="bad">${placements.length ? 'not all' : 'no'}<//> ${number(placements.length)} of ${number(placements.length + refusals.length)} would fit${onCell.size ? `, on ${plural(onCell.size, 'cell')}` : ''}.`} ${plan.data.others ? html`<span class="quiet">${number(plan.data.others)} that wait already were planned with them.</span>` : ''} Nothing was started.</p>
      ${first && html`<h3>What is short</h3>${first.explanation ? html`<${Reasons} cells=${first.explanation.cells} reasons=${first.explanation.reasons} nearest=${first.explanation.nearest && { cell: first.explanation.nearest.cell_id, lacks: lacks(first.explanation.nearest.lacks) }} />` : html`<p>${first.error}</p>`}`}
      ${placements.length > 0 && html`<h3>${placements.length === 1 ? 'Why there' : 'Why the first goes where it goes'}</h3><${Score} placement=${placements[0]} />
        ${placements.length > 1 && html`<h3>Where they would go</h3><${Table} label="Placements" rows=${rows} page=${10} empty="" head=${[['Cell'], ['Instances', 'n'], ['Memory in use then', 'n'], ['Disk in use then', 'n']]}
          row=${([cell, list]) => html`<tr key=${cell}><th scope="row"><a href=${link('cell', cell)}>${cell}</a></th><td class="n">${number(list.length)}</td><td class="n">${percent(list.at(-1).score.memory)}</td><td class="n">${percent(list.at(-1).score.disk)}</td></tr>`} />`}`}`}</section>`;
}

function Ask() {
  const [guid, name] = useState(''), [index, at] = useState(0);
  useFleet(() => true, 1000);
  const names = [...store.fleet.processes.keys()].sort(), lost = [...store.fleet.waiting.values()].filter(r => lookOf(r) !== 'waiting').slice(0, 50);
  useReady(store.loaded);
  return html`<h1>Why</h1><p class="quiet">Why an instance is where it is, why it crashed, or why it is nowhere.</p>
    <form class="tools" onSubmit=${e => { e.preventDefault(); if (guid) location.hash = link('why', guid, String(index)); }}>
      <label>Process <input id="why-process" list="all" required value=${guid} onInput=${e => name(e.target.value)} /></label><datalist id="all">${names.filter(g => g.includes(guid)).slice(0, 50).map(g => html`<option value=${g} />`)}</datalist>
      <label>index <input type="number" min="0" value=${index} onInput=${e => at(Number(e.target.value))} /></label> <button class="main">Why?</button></form>
    <section class="panel" aria-label="Instances that need an explanation"><h2>These need an explanation</h2><${Table} label="Instances that crashed or found no cell" rows=${lost} empty="No instance waits after a crash or for want of room." head=${[['Instance'], ['State'], ['Reason']]}
      row=${r => html`<tr key=${recordID(r)}><th scope="row"><a href=${link('why', r.process_guid, String(r.index))}>${r.process_guid}/${r.index}</a></th><td><${Look} look=${lookOf(r)} /></td><td>${r.placement_error || r.crash_reason}</td></tr>`} /></section>`;
}

function Index({ guid, index }) {
  const past = useFresh(signal => call('bbs/timeline', { process_guid: guid, index }, signal), guid, [index]);
  useFleet(delta => delta.processes.has(guid));
  useClock(); // the last bar grows
  // Two events of one commit that say the same to people are shown once.
  const entries = past.data || [], told = useMemo(() => entries.filter((e, i) => i === 0 || e.text !== entries[i - 1].text || e.at !== entries[i - 1].at).toReversed(), [past.data]);
  const process = store.fleet.processes.get(guid), records = process && slotsOf(process)[index] || [];
  const no = records.map(r => refusal(r.placement_error)).find(x => x);
  useReady(past.data || past.error);
  return html`<div class="head"><div><h1>Why ${guid}/${index}</h1><p class="quiet">${records.map(r => html`<${Look} look=${lookOf(r)} /> ${r.cell_id && html`on <a href=${link('cell', r.cell_id)}>${r.cell_id}</a>`} `)}</p></div>
      <p class="buttons">${index > 0 && html`<a href=${link('why', guid, String(index - 1))}>Index ${index - 1}</a>`} <a href=${link('process', guid, String(index))}>The process</a> ${process && index + 1 < process.instances && html`<a href=${link('why', guid, String(index + 1))}>Index ${index + 1}</a>`}</p></div>
    ${no && html`<section class="panel" aria-label="Why it is nowhere"><h2>Why it is nowhere</h2><${Reasons} ...${no} /></section>`}
    <section class="panel" aria-label="Timeline"><h2>Timeline</h2><${Fault} what="The timeline cannot be read" error=${past.error} /><${Strip} entries=${entries} />
      <${Table} id="timeline" label="Timeline" rows=${told} page=${25} empty=${past.data ? 'Nothing is known of it: the log of events does not go so far back.' : past.error ? '–' : 'Loading …'} head=${[['Time'], ['What happened'], ['What decided'], ['Event', 'n']]}
        row=${e => html`<tr key=${e.sequence}><td><${At} at=${e.at} /></td><td>${e.event?.after?.state === 'CLAIMED' && placement(e.text)?.head || e.text}</td><td><${Details} e=${e} /></td><td class="n quiet">${e.sequence}</td></tr>`} /></section>
    ${may('auctioneer/plan') && process?.desired && html`<${Fit} guid=${guid} />`}`;
}

export const Why = ({ args: [guid, index] }) => guid === undefined ? html`<${Ask} />` : html`<${Index} key=${guid + '/' + index} guid=${guid} index=${Number(index) || 0} />`;
