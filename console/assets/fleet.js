// The fleet: every cell as a box, every instance as a tile.

import { html, useEffect, useMemo, useRef, useState } from './vendor/preact.js';
import { Picture } from './picture.js';
import { At, byName, Bar, Card, link, Look, ready, Room, Table, Tag, useFleet } from './parts.js';
import { onFrame, reservedOf, store, summaryOf } from './store.js';
import { allLooks, cellStates, chooser, eventText, lookText, mib, number, percent, plain, plural, share } from './text.js';

function Numbers() {
  useFleet();
  const { fleet } = store, cells = [...fleet.cells.values()];
  let total = 0, reserved = 0;
  const disk = { total: 0, free: 0 }, marks = {};
  for (const c of cells) {
    total += c.total?.memory_mb || 0;
    reserved += reservedOf(fleet, c);
    if (c.remaining) { disk.total += c.total?.disk_mb || 0; disk.free += c.remaining.disk_mb || 0; }
    for (const mark of cellStates(c)) marks[mark] = (marks[mark] || 0) + 1;
  }
  const running = (fleet.counts.running || 0) + (fleet.counts.unready || 0);
  return html`<div class="cards">
    <${Card} title="Cells" value=${number(cells.length)}>${Object.entries(marks).map(([m, n]) => `${n} ${m}`).join(', ') || 'all well'}<//>
    <${Card} title="Instances running" value=${html`${number(running)} <small>of ${number(fleet.desired)}</small>`}>${plural(fleet.processes.size, 'process', 'processes')}, ${plural(fleet.tasks.size, 'task')}<//>
    <${Card} title="Memory reserved" value=${percent(share(reserved, total))}><${Bar} value=${share(reserved, total)} warn=${reserved > 0.9 * total} label="reserved memory" /> ${mib(reserved)} of ${mib(total)}, ${mib(total - reserved)} free<//>
    <${Card} title="Disk reserved" value=${disk.total ? percent(share(disk.total - disk.free, disk.total)) : '–'}>${disk.total ? html`<${Bar} value=${share(disk.total - disk.free, disk.total)} label="reserved disk" /> ${mib(disk.total - disk.free)} of ${mib(disk.total)}, ${mib(disk.free)} free` : 'as soon as the cells answer'}<//>
  </div>`;
}

function Legend() {
  useFleet();
  const { counts } = store.fleet;
  return html`<ul class="legend" aria-label="Instances by state">${allLooks.map(look => html`<li class=${counts[look] ? '' : 'none'}><${Look} look=${look} label=${`${lookText(look).split(':')[0]} ${number(counts[look] || 0)}`} /></li>`)}</ul>`;
}

// matcher finds the process of a name or, if there is none, those that are chosen.
function matcher(text) {
  const want = text.trim(), exact = store.fleet.processes.has(want), wanted = chooser(want);
  return guid => exact ? guid === want : wanted(store.fleet.processes.get(guid)?.labels, guid);
}

// Found says what a search has found.
function Found({ text }) {
  useFleet();
  if (!text) return html`<p class="found quiet">Find a process, or those with labels such as team=blog, and the picture shows where they run.</p>`;
  const { fleet } = store, wanted = matcher(text), found = [...fleet.processes.values()].filter(p => wanted(p.process_guid));
  if (found.length === 0) return html`<p class="found" role="status">No process has “${plain(text)}” in its name, or such labels.</p>`;
  const on = new Set(), zones = new Set();
  let running = 0, desired = 0;
  for (const p of found) {
    desired += p.instances;
    running += summaryOf(p).running;
    for (const r of p.records.values()) {
      if (r.cell_id) { on.add(r.cell_id); zones.add(fleet.cells.get(r.cell_id)?.zone); }
    }
  }
  return html`<p class="found">${found.length === 1 ? html`<a href=${link('process', found[0].process_guid)}>${found[0].process_guid}</a>` : plural(found.length, 'process', 'processes')}:
    ${' '}${number(running)} of ${number(desired)} running, on ${plural(on.size, 'cell')} in ${plural(zones.size, 'zone')}.</p>`;
}

function Recent() {
  useFleet();
  const { recent } = store.fleet;
  return html`<section class="recent" aria-label="What happened last"><h2>Just now</h2>
    <ol>${recent.slice(0, 14).map(e => {
      const [name, what] = eventText(e), r = e.lrp?.after || e.lrp?.before;
      return html`<li key=${e.sequence}><${At} at=${e.at} /> ${r ? html`<a href=${link('why', r.process_guid, String(r.index))}>${name}</a>` : name} <span class="quiet">${what}</span></li>`;
    })}</ol>
    ${recent.length === 0 && html`<p class="quiet">Nothing since this page was opened.</p>`}</section>`;
}

function Cells() {
  useFleet(() => true, 1000);
  const { fleet } = store, rows = [...fleet.cells.values()].sort((a, b) => byName(a.cell_id, b.cell_id));
  return html`<${Table} id="fleet-table" label="Cells" rows=${rows} empty="No cell is present." head=${[['Cell'], ['Zone'], ['State'], ['Instances', 'n'], ['Tasks', 'n'], ['Memory reserved'], ['Memory free', 'n'], ['Disk free', 'n'], ['Containers free', 'n']]}
    row=${c => html`<tr key=${c.cell_id}><th scope="row"><a href=${link('cell', c.cell_id)}>${c.cell_id}</a></th><td>${c.zone || '–'}</td>
      <td>${cellStates(c).map(s => html`<${Tag} kind=${s}>${s}<//>`)}${cellStates(c).length === 0 && html`<span class="quiet">well</span>`}</td>
      <td class="n">${number(c.records.size)}</td><td class="n">${number(c.tasks.size)}</td><td><${Room} used=${reservedOf(fleet, c)} total=${c.total?.memory_mb} /></td>
      <td class="n">${c.total ? mib(c.total.memory_mb - reservedOf(fleet, c)) : '–'}</td><td class="n">${mib(c.remaining?.disk_mb)}</td><td class="n">${number(c.remaining?.containers)}</td></tr>`} />`;
}

export function Fleet() {
  const [text, search] = useState(''), canvas = useRef(), tip = useRef(), picture = useRef();
  useEffect(() => {
    const p = picture.current = new Picture(canvas.current, tip.current, ready);
    const off = onFrame(delta => p.changed(delta));
    return () => { off(); p.end(); };
  }, []);
  useEffect(() => {
    const wanted = matcher(text);
    picture.current.light(text.trim() ? r => wanted(r.process_guid) : null);
  }, [text]);
  const names = useMemo(() => text && [...store.fleet.processes.keys()].filter(g => g.toLowerCase().includes(text.trim().toLowerCase())).slice(0, 20), [text]);
  return html`<h1 class="hidden">Fleet</h1><${Numbers} />
    <div class="tools"><label class="search"><span class="hidden">Find a process</span><input type="search" id="search" list="names" placeholder="Find a process" value=${text} onInput=${e => search(e.target.value)} autocomplete="off" spellcheck=${false} /></label>
      <datalist id="names">${text && names.map(n => html`<option value=${n} />`)}</datalist><${Found} text=${text.trim()} /></div>
    <${Legend} />
    <div class="picture"><canvas id="fleet-canvas" ref=${canvas} tabindex="0" role="img" aria-label="The cells of the fleet by zone. Arrow keys go from cell to cell, Enter opens one; the table below says the same."></canvas><div id="tip" ref=${tip} hidden></div></div>
    <div class="below"><section aria-label="Cells in numbers"><h2>Cells</h2><${Cells} /></section><${Recent} /></div>`;
}
