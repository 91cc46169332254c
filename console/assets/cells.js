// Cells: what they have, what they use, and how far a drain is.

import { html } from './vendor/preact.js';
import { act, cellPath, now, post } from './api.js';
import { Action } from './confirm.js';
import { Ago, Bar, byName, Card, Facts, Fault, link, Look, Room, Table, Tag, useFleet, useLoad, useReady } from './parts.js';
import { lookOf, may, memoryOf, recordID, refreshCells, reservedOf, store } from './store.js';
import { bytes, cellStates, mib, number, percent, plural, share, span } from './text.js';

const States = ({ cell }) => cellStates(cell).length ? cellStates(cell).map(s => html`<${Tag} kind=${s}>${s}<//>`) : html`<span class="quiet">well</span>`;

const ask = (cell, name, body = {}) => async id => { await act('console/api/' + cellPath(cell.cell_id, name), body, id); refreshCells(); };

function Actions({ cell: c, of }) {
  const n = plural(c.records.size, 'instance'), others = [...store.fleet.cells.values()].filter(o => o.present && o !== c && !o.evacuating && !o.cordoned).length;
  if (!c.present) return null;
  return html`${c.cordoned ? html`<${Action} name="uncordon" needs="cell/cordon" label="Uncordon" of=${of} question=${() => ({ title: `Uncordon ${c.cell_id}`, effect: `${c.cell_id} takes work again.`, done: `${c.cell_id} takes work again.`, run: ask(c, 'cordon', { cordoned: false }) })} />`
    : html`<${Action} name="cordon" needs="cell/cordon" label="Cordon" of=${of} question=${() => ({ title: `Cordon ${c.cell_id}`, effect: `${c.cell_id} gets no new work until it is uncordoned. Its ${n} and ${plural(c.tasks.size, 'task')} stay.`, done: `${c.cell_id} is cordoned.`, run: ask(c, 'cordon', { cordoned: true }) })} />`}
    ${c.evacuating ? html`<${Action} name="undrain" needs="cell/cancel_evacuation" label="Undrain" of=${of} question=${() => ({ title: `Undrain ${c.cell_id}`, effect: `The drain of ${c.cell_id} is given up: what is still on it stays, and it takes work again.`, done: `${c.cell_id} is no longer drained.`, run: ask(c, 'cancel_evacuation') })} />`
    : html`<${Action} name="drain" needs="cell/evacuate" label="Drain" of=${of} grave question=${() => ({ title: `Drain ${c.cell_id}`, effect: `${c.cell_id} takes no more work. Each of its ${n} runs on another cell before it stops here; tasks run to their end.${others === 0 ? ' No other cell takes work now, so its instances stay until one does, or until the drain times out.' : ''}`, done: `${c.cell_id} is being drained.`, run: ask(c, 'evacuate') })} />`}`;
}

export function Cells() {
  useFleet(() => true, 1000);
  const { fleet } = store, rows = [...fleet.cells.values()].sort((a, b) => byName(a.zone, b.zone) || byName(a.cell_id, b.cell_id));
  useReady(store.loaded);
  return html`<h1>Cells</h1><${Table} id="cells-table" label="Cells" rows=${rows} empty="No cell is present. A cell is present as soon as it has announced itself." head=${[['Cell'], ['Zone'], ['State'], ['Instances', 'n'], ['Tasks', 'n'], ['Memory reserved'], ['Disk reserved'], ['Containers', 'n'], ['Actions', 'unsaid']]}
    row=${c => html`<tr key=${c.cell_id}><th scope="row"><a href=${link('cell', c.cell_id)}>${c.cell_id}</a></th><td>${c.zone || '–'}</td><td><${States} cell=${c} /></td><td class="n">${number(c.records.size)}</td><td class="n">${number(c.tasks.size)}</td>
      <td><${Room} used=${reservedOf(fleet, c)} total=${c.total?.memory_mb} /></td><td>${c.remaining ? html`<${Room} used=${c.total.disk_mb - c.remaining.disk_mb} total=${c.total.disk_mb} />` : '–'}</td>
      <td class="n">${c.remaining ? `${number(c.total.containers - c.remaining.containers)} of ${number(c.total.containers)}` : '–'}</td><td><span class="buttons"><${Actions} cell=${c} of=${c.cell_id} /></span></td></tr>`} />`;
}

// Drain says how far a cell is on its way to being empty.
function Drain({ cell: c }) {
  const status = useLoad(signal => post(cellPath(c.cell_id, 'evacuation'), {}, signal), [c.cell_id, c.evacuating], 2000), s = status.data;
  if (!s?.evacuating) return null;
  // A cell that no longer answers has said how many are left some time ago.
  const gone = Boolean(status.error), left = gone ? c.records.size + c.tasks.size : s.containers, before = drains.get(c.cell_id);
  const most = Math.max(left, before?.began === s.began_at ? before.most : 0), done = s.done || gone && left === 0;
  drains.set(c.cell_id, { began: s.began_at, most });
  return html`<section class="panel" id="drain" aria-label="Drain"><h2>${done ? 'The drain is done: the cell is empty' : `Drain: ${plural(left, 'container')} left`}</h2>
    ${gone && html`<p class="quiet">${done ? 'It has left: ' : 'It does not answer any more: '}${status.error.message}</p>`}
    <p><${Bar} value=${share(most - left, most)} label="drained" /> began <${Ago} at=${s.began_at} />${s.deadline && !done ? `, and ends at the latest in ${span(Date.parse(s.deadline) - now())}` : ''}</p>
    <ul>${(done || gone ? [] : s.waiting || []).slice(0, 20).map(w => html`<li>${w}</li>`)}${!done && !gone && s.waiting?.length > 20 && html`<li>and ${number(s.waiting.length - 20)} more</li>`}</ul></section>`;
}

const drains = new Map(); // cell -> when its drain began, and the most containers that this had left

const rate = v => v === undefined || v < 0 ? '–' : bytes(v) + '/s';
const cores = v => v === undefined || v < 0 ? '–' : v.toFixed(2);
const used = (v, limit) => v === undefined || v < 0 ? '–' : limit > 0 ? html`<${Room} used=${v} total=${limit} unit=${bytes} />` : bytes(v);

function Used({ u }) {
  return html`<td class="n">${cores(u?.cores)}</td><td>${used(u?.memory_bytes, u?.memory_limit_bytes)}</td><td>${used(u?.disk_bytes, u?.disk_limit_bytes)}</td><td class="n">${u && u.pids >= 0 ? number(u.pids) : '–'}</td><td class="n">${rate(u?.received_bytes_per_second)}</td><td class="n">${rate(u?.sent_bytes_per_second)}</td>`;
}
const usedHead = [['Cores', 'n'], ['Memory used'], ['Disk used'], ['PIDs', 'n'], ['Received', 'n'], ['Sent', 'n']];

export function Cell({ args: [id] }) {
  useFleet(delta => delta.cells.has(id));
  const c = store.fleet.cells.get(id), measures = may('cell/usages');
  const usages = useLoad(signal => measures && c?.present ? post(cellPath(id, 'usages'), {}, signal) : Promise.resolve([]), [id, measures, c?.present], 5000);
  useReady(store.loaded);
  if (!c) return html`<h1>${id}</h1><p class="quiet">${!store.loaded ? 'Loading …' : 'There is no cell of this name now. One that is silent for its TTL is no longer present.'}</p>`;
  const byGUID = new Map((usages.data || []).map(u => [u.container_guid, u])), sum = name => [...byGUID.values()].reduce((s, u) => s + Math.max(0, u[name] || 0), 0);
  const records = [...c.records.values()].sort((a, b) => byName(a.process_guid, b.process_guid) || a.index - b.index), tasks = [...c.tasks.values()];
  const { total: t, remaining: left } = c;
  return html`<div class="head"><div><h1>${id}</h1><p><${States} cell=${c} /></p></div><p class="buttons"><${Actions} cell=${c} /></p></div>
    ${c.error && html`<p class="fault" role="alert"><b>The cell did not answer:</b> ${c.error}</p>`}
    ${may('cell/evacuation') && c.present && html`<${Drain} cell=${c} />`}
    <div class="cards"><${Card} title="Memory reserved" value=${t ? percent(share(reservedOf(store.fleet, c), t.memory_mb)) : '–'}>${t && html`<${Bar} value=${share(reservedOf(store.fleet, c), t.memory_mb)} label="reserved" /> ${mib(reservedOf(store.fleet, c))} of ${mib(t.memory_mb)}; ${bytes(sum('memory_bytes'))} used`}<//>
      <${Card} title="Disk reserved" value=${left ? percent(share(t.disk_mb - left.disk_mb, t.disk_mb)) : '–'}>${left && html`<${Bar} value=${share(t.disk_mb - left.disk_mb, t.disk_mb)} label="reserved" /> ${mib(t.disk_mb - left.disk_mb)} of ${mib(t.disk_mb)}; ${bytes(sum('disk_bytes'))} used`}<//>
      <${Card} title="Containers" value=${left ? html`${number(t.containers - left.containers)} <small>of ${number(t.containers)}</small>` : '–'}>${plural(c.records.size, 'instance')}, ${plural(c.tasks.size, 'task')}${c.starting ? `, ${number(c.starting)} starting` : ''}<//>
      <${Card} title="Self-test" value=${!c.present || c.error ? '–' : c.unhealthy ? 'fails' : 'passes'}>${c.unhealthy ? 'The cell gets no work until its self-test passes again.' : `${sum('cores').toFixed(2)} cores in use by containers`}<//></div>
    <section class="panel" aria-label="About"><${Facts} list=${[['Zone', c.zone || '–'], ['Address', html`<span class="mono">${c.address}</span>`], ['Root file systems', (c.rootfs_providers || []).join(', ') || '–'], ['Volume drivers', (c.volume_drivers || []).join(', ') || '–'],
      ['Placement tags', (c.placement_tags || []).join(', ') || '–'], ['Optional tags', (c.optional_placement_tags || []).join(', ') || '–'], ...Object.entries(t?.extra_resources || {}).map(([name, n]) => [name, left ? `${number(n - (left.extra_resources?.[name] || 0))} of ${number(n)} reserved` : number(n)])]} /></section>
    <section class="panel" aria-label="Instances"><h2>Instances</h2><${Fault} what="The usage cannot be read" error=${usages.error} />
      <${Table} id="cell-instances" label="Instances on ${id}" rows=${records} empty="No instance is on this cell." head=${[['Instance'], ['State'], ['Reserves', 'n'], ...usedHead]}
        row=${r => html`<tr key=${recordID(r)}><th scope="row"><a href=${link('process', r.process_guid, String(r.index))}>${r.process_guid}/${r.index}</a></th><td><${Look} look=${lookOf(r)} /></td><td class="n">${mib(memoryOf(store.fleet, r))}</td><${Used} u=${byGUID.get(r.instance_guid)} /></tr>`} /></section>
    ${tasks.length > 0 && html`<section class="panel" aria-label="Tasks"><h2>Tasks</h2><${Table} label="Tasks on ${id}" rows=${tasks} empty="" head=${[['Task'], ['Domain'], ['Reserves', 'n'], ...usedHead]}
        row=${k => html`<tr key=${k.task_guid}><th scope="row"><a href=${link('task', k.task_guid)}>${k.task_guid}</a></th><td>${k.domain}</td><td class="n">${mib(k.memory_mb)}</td><${Used} u=${byGUID.get(k.instance_guid)} /></tr>`} /></section>`}`;
}
