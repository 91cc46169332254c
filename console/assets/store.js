// The store: what the page knows of the fleet. It loads lists once, follows the
// events from there, and tells its readers once per frame what has changed.

import { call, follow, get, list, now, ownList, together, unavailable, wait, whileSeen } from './api.js';

const kinds = ['actual_lrp_instance_created', 'actual_lrp_instance_changed', 'actual_lrp_instance_removed', 'actual_lrp_crashed',
  'lrp_deployment_created', 'lrp_deployment_changed', 'lrp_deployment_removed', 'task_created', 'task_changed', 'task_removed', 'log_gap'];
const feed = 'bbs/events?' + kinds.map(k => 'kind=' + k).join('&');
const silence = 60_000; // ms until the server has answered
const cellsEvery = 5_000;
const mostRecent = 60;
const replayed = 200; // events

// newFleet is a fleet about which nothing is known.
export const newFleet = () => ({
  cells: new Map(),     // cell id -> cell, with the records and tasks on it
  records: new Map(),   // recordID -> record of an instance
  processes: new Map(), // process guid -> process, with its records
  tasks: new Map(),     // task guid -> task
  waiting: new Map(),   // the records that are on no cell
  counts: {},           // how many records look like what, by lookOf
  desired: 0,           // instances that are wanted in all
  recent: [],           // what happened last, the newest first
  sequence: 0,          // the newest event that was applied
});

const unknownCell = (id, zone) => ({ cell_id: id, zone, present: false, total: null, remaining: null, records: new Map(), tasks: new Map() });

function cellOf(fleet, id, zone = '') {
  let cell = fleet.cells.get(id);
  if (!cell) fleet.cells.set(id, cell = unknownCell(id, zone));
  return cell;
}

function processOf(fleet, guid) {
  let process = fleet.processes.get(guid);
  if (!process) fleet.processes.set(guid, process = { process_guid: guid, desired: false, instances: 0, sizes: {}, records: new Map() });
  return process;
}

// lookOf is how a record is shown: one word for its state and presence.
export function lookOf(r) {
  switch (true) {
    case r.presence === 'SUSPECT': return 'suspect';
    case r.presence === 'EVACUATING': return 'evacuating';
    case Boolean(r.stopping): return 'stopping';
    case r.state === 'RUNNING': return r.routable ? 'running' : 'unready';
    case r.state === 'CLAIMED': return 'starting';
    case r.state === 'CRASHED': return 'crashed';
    case Boolean(r.placement_error): return 'unplaced';
  }
  return 'waiting';
}

const count = (fleet, r, by) => {
  const look = lookOf(r);
  fleet.counts[look] = (fleet.counts[look] || 0) + by;
};

// holderOf is where a record is kept besides: at its cell, or among those that wait.
const holderOf = (fleet, r) => r.cell_id ? cellOf(fleet, r.cell_id, r.zone).records : fleet.waiting;

// recordID names a record of an instance for as long as it exists, whatever its
// presence. Epochs are unique at an index only.
export const recordID = r => `${r.process_guid}/${r.index}/${r.modification_tag.epoch}`;

// putRecord adds or replaces the record of an instance. One that is older than the
// known one is ignored.
export function putRecord(fleet, changed, r) {
  const id = recordID(r), old = fleet.records.get(id);
  if (old && old.modification_tag.index > r.modification_tag.index) return;
  if (old) {
    count(fleet, old, -1);
    holderOf(fleet, old).delete(id);
    changed.cells.add(old.cell_id);
  }
  count(fleet, r, 1);
  fleet.records.set(id, r);
  processOf(fleet, r.process_guid).records.set(id, r);
  changed.processes.add(r.process_guid);
  holderOf(fleet, r).set(id, r);
  changed.cells.add(r.cell_id);
}

function dropRecord(fleet, changed, r) {
  const id = recordID(r), old = fleet.records.get(id);
  if (!old) return;
  count(fleet, old, -1);
  fleet.records.delete(id);
  const process = fleet.processes.get(old.process_guid);
  process.records.delete(id);
  if (!process.desired && process.records.size === 0) fleet.processes.delete(old.process_guid);
  changed.processes.add(old.process_guid);
  holderOf(fleet, old).delete(id);
  changed.cells.add(old.cell_id);
}

// putDeployment keeps of a deployment what lists show: the sizes of its
// definitions, and not the definitions.
export function putDeployment(fleet, changed, d) {
  const process = processOf(fleet, d.process_guid);
  const sizes = {};
  for (const [id, def] of Object.entries(d.definitions || {}))
    sizes[id] = { memory_mb: def.memory_mb, disk_mb: def.disk_mb, root_fs: def.root_fs };
  fleet.desired += d.instances - process.instances;
  Object.assign(process, {
    desired: true, instances: d.instances, domain: d.domain, routes: d.routes, labels: d.labels, sizes,
    active: d.active_definition_id, healthy: d.healthy_definition_id, rollout: d.rollout_state || {},
  });
  changed.processes.add(d.process_guid);
  for (const r of process.records.values()) if (r.cell_id) changed.cells.add(r.cell_id);
}

function dropDeployment(fleet, changed, guid) {
  const process = fleet.processes.get(guid);
  if (!process) return;
  fleet.desired -= process.instances;
  process.desired = false;
  process.instances = 0;
  if (process.records.size === 0) fleet.processes.delete(guid);
  changed.processes.add(guid);
}

function putTask(fleet, changed, t) {
  const old = fleet.tasks.get(t.task_guid);
  if (old && old.modification_tag.epoch === t.modification_tag.epoch && old.modification_tag.index > t.modification_tag.index) return;
  if (old) dropTask(fleet, changed, t.task_guid);
  fleet.tasks.set(t.task_guid, t);
  changed.tasks.add(t.task_guid);
  if (t.cell_id && t.state === 'RUNNING') {
    cellOf(fleet, t.cell_id).tasks.set(t.task_guid, t);
    changed.cells.add(t.cell_id);
  }
}

function dropTask(fleet, changed, guid) {
  const old = fleet.tasks.get(guid);
  if (!old) return;
  fleet.tasks.delete(guid);
  changed.tasks.add(guid);
  if (old.cell_id) {
    fleet.cells.get(old.cell_id)?.tasks.delete(guid);
    changed.cells.add(old.cell_id);
  }
}

// putCells replaces what is known of the cells that are present; fields that a
// poorer answer lacks stay as they were.
export function putCells(fleet, changed, cells) {
  const present = new Set();
  for (const { tasks, instances, ...c } of cells) { // those two are counted here
    present.add(c.cell_id);
    const cell = cellOf(fleet, c.cell_id), before = said(cell), place = placed(cell);
    Object.assign(cell, c, { present: true, total: c.total || c.capacity || cell.total, remaining: c.remaining || (c.error ? null : cell.remaining), error: c.error });
    if (said(cell) !== before) changed.cells.add(c.cell_id);
    if (placed(cell) !== place) changed.layout = true;
  }
  for (const [id, cell] of fleet.cells) {
    if (present.has(id)) continue;
    if (cell.present) changed.cells.add(id);
    cell.present = false;
    if (cell.records.size > 0 || cell.tasks.size > 0) continue;
    fleet.cells.delete(id);
    changed.layout = true;
  }
}

const said = ({ records, tasks, ...cell }) => JSON.stringify(cell);
const placed = cell => `${cell.present}|${cell.zone}|${cell.total?.memory_mb}`;

// apply folds one event into the fleet.
export function apply(fleet, changed, e) {
  fleet.sequence = e.sequence;
  const l = e.lrp, t = e.task;
  if (l?.kind === 'actual_lrp_crashed') remember(fleet, e);
  else if (l?.kind.startsWith('actual_lrp_instance_')) {
    if (l.after) {
      putRecord(fleet, changed, l.after);
      if (l.after.state === 'RUNNING' && l.before?.state !== 'RUNNING' || l.after.placement_error && l.after.placement_error !== l.before?.placement_error) remember(fleet, e);
    } else dropRecord(fleet, changed, l.before);
  } else if (l?.deployment_after) putDeployment(fleet, changed, l.deployment_after);
  else if (l?.deployment_before) dropDeployment(fleet, changed, l.deployment_before.process_guid);
  else if (t) {
    if (t.after) putTask(fleet, changed, t.after);
    else dropTask(fleet, changed, t.before.task_guid);
    if (t.after?.state !== t.before?.state) remember(fleet, e);
  }
}

function remember(fleet, e) {
  fleet.recent.unshift(e);
  if (fleet.recent.length > mostRecent) fleet.recent.length = mostRecent;
}

// sizeOf is what the definition of an instance reserves, memoryOf its memory in MiB.
const sizeOf = (fleet, r) => fleet.processes.get(r.process_guid)?.sizes[r.definition_id] || null;
export const memoryOf = (fleet, r) => sizeOf(fleet, r)?.memory_mb || 0;

// reservedOf is the memory that a cell says is reserved, or until it answers
// what the definitions of its instances and tasks reserve.
export function reservedOf(fleet, cell) {
  if (cell.remaining && cell.total) return cell.total.memory_mb - cell.remaining.memory_mb;
  let sum = 0;
  for (const r of cell.records.values()) sum += memoryOf(fleet, r);
  for (const t of cell.tasks.values()) sum += t.memory_mb || 0;
  return sum;
}

// summaryOf counts the records of a process.
export function summaryOf(process) {
  const out = { running: 0, crashes: 0, looks: {}, well: true };
  for (const r of process.records.values()) {
    const look = lookOf(r);
    out.looks[look] = (out.looks[look] || 0) + 1;
    out.crashes += r.crash_count;
    if (look === 'running' || look === 'unready') out.running++;
    if (look !== 'running') out.well = false;
  }
  if (out.running < process.instances || process.rollout?.from || process.rollout?.failure) out.well = false;
  return out;
}

// slotsOf lists the records of a process by index.
export function slotsOf(process) {
  const slots = [];
  for (let i = 0; i < process.instances; i++) slots[i] = [];
  for (const r of process.records.values()) (slots[r.index] ||= []).push(r);
  for (const records of slots) records?.sort((a, b) => urgency.indexOf(lookOf(a)) - urgency.indexOf(lookOf(b)));
  return slots;
}

// urgency orders looks: the first of those at an index is the one to show.
const urgency = ['crashed', 'unplaced', 'waiting', 'starting', 'stopping', 'unready', 'suspect', 'evacuating', 'running'];

// at is the time of the first event that has changed something, in ms, if it is measured.
const nothing = () => ({ cells: new Set(), processes: new Set(), tasks: new Set(), layout: false, all: false, at: 0 });

// The one store of this page.
export const store = {
  fleet: newFleet(),
  caller: { name: '', roles: [], may: [] },
  status: 'loading', // loading, live, or lost
  loaded: false,     // whether the lists were read once
  problem: '',       // why it is not live
  silence: '',       // why the cells cannot be asked
  readers: new Set(),
  stats: { firstPictureMs: 0, frames: 0, longestFrameMs: 0, framesOver100: 0, longestReadMs: 0, longestShownMs: 0 },
};

export const may = path => store.caller.may.includes(path);

let changed = nothing(), asked = 0;

// touch asks for a frame.
function touch() {
  if (!asked) asked = requestAnimationFrame(frame);
}

function frame() {
  asked = 0;
  const delta = changed;
  changed = nothing();
  for (const read of store.readers) read(delta);
  document.documentElement.dataset.event = String(store.fleet.sequence);
}

// onFrame calls read with what has changed, once per frame in which something
// has, until the returned function is called.
export function onFrame(read) {
  store.readers.add(read);
  return () => store.readers.delete(read);
}

function say(status, problem = '') {
  store.status = status;
  store.problem = problem;
  changed.all = true;
  touch();
}

// load reads everything anew. Events from before the lists were read are applied
// to them afterwards, so nothing in between is missed; some older ones fill the
// list of what happened last.
async function load(signal) {
  const { oldest, newest } = await call('bbs/log', {}, signal);
  const fleet = newFleet(), delta = nothing();
  await together([
    signal => call('bbs/cells', {}, signal).then(cells => putCells(fleet, delta, cells || [])), // null if there are none
    signal => list('bbs/deployments', {}, d => putDeployment(fleet, delta, d), signal),
    signal => list('bbs/actual_lrps', {}, r => putRecord(fleet, delta, r), signal),
    signal => list('bbs/tasks', {}, t => putTask(fleet, delta, t), signal),
  ], signal);
  fleet.sequence = Math.max(0, oldest - 1, newest - replayed);
  store.fleet = fleet;
  store.loaded = true;
  changed.all = changed.layout = true;
  touch();
}

// run loads and follows until signal ends it. A feed that is cut once is followed
// again before the page says that it is not live.
export async function run(signal) {
  pollCells(signal);
  for (let failed = 0, loaded = false; !signal.aborted;) {
    let why = 'The feed of events was cut.';
    try {
      get('whoami', signal).then(caller => { store.caller = { ...caller, roles: caller.roles || [], may: caller.may || [] }; changed.all = true; touch(); }, () => {});
      if (!loaded) {
        await load(signal);
        loaded = true;
        refreshCells();
      }
      await whileSeen(cut => follow(feed, store.fleet.sequence, silence, (id, e) => {
        failed = 0;
        if (store.status !== 'live') say('live');
        if (e?.gap) { // the log no longer has what comes next
          loaded = false;
          throw new Error('The log of events has a gap. Everything is read again.');
        }
        if (e) {
          apply(store.fleet, changed, e);
          const at = measuring && arrived(e);
          changed.at ||= at;
        } else store.fleet.sequence = Math.max(id, store.fleet.sequence);
        touch();
      }, cut), signal);
    } catch (err) {
      if (signal.aborted) return;
      if (err.status === 410) loaded = false;
      why = err.name === 'AbortError' ? 'The feed of events fell silent.' : err.message;
    }
    if (failed++ > 0) say('lost', why);
    await wait(Math.min(10_000, 300 * 2 ** failed), signal);
  }
}

let wakeCells = () => {};

// pollCells asks for the cells: their presence makes no events.
async function pollCells(signal) {
  for (let own = true, failed = 0; !signal.aborted;) {
    await wait(cellsEvery, signal, wake => { wakeCells = wake; });
    if (document.hidden || !store.loaded || signal.aborted) continue;
    const fleet = store.fleet, cells = [];
    try {
      if (own) await ownList('cells', c => cells.push(c), signal).catch(err => { if (!unavailable(err)) throw err; own = false; });
      if (!own) cells.push(...await call('bbs/cells', {}, signal) || []);
    } catch (err) {
      if (++failed > 1 && !signal.aborted) doubt(err.message);
      continue;
    }
    failed = 0;
    doubt('');
    if (fleet !== store.fleet) continue;
    putCells(fleet, changed, cells);
    touch();
  }
}

// doubt says why the cells cannot be asked, or '' that they can be.
function doubt(why) {
  if (store.silence === why) return;
  store.silence = why;
  changed.all = true;
  touch();
}

// refreshCells asks for the cells now, for example after an action on one.
export const refreshCells = () => wakeCells();

// arrived notes how long after its commit an event was read. It returns the time of
// the commit in ms, and 0 for those from before the measurement began.
function arrived(e) {
  const at = Date.parse(e.at);
  if (at < measuring) return 0;
  store.stats.longestReadMs = Math.max(store.stats.longestReadMs, now() - at);
  return at;
}

// shown notes that what happened at a time, in ms, is drawn. It is on the screen
// when the next frame begins.
export function shown(at) {
  requestAnimationFrame(() => { store.stats.longestShownMs = Math.max(store.stats.longestShownMs, now() - at); });
}

// measure begins to note how long each frame takes, and how long it takes until
// each event is read, and is shown on the picture of the fleet.
export function measure() {
  Object.assign(store.stats, { frames: 0, longestFrameMs: 0, framesOver100: 0, longestReadMs: 0, longestShownMs: 0 });
  const again = measuring > 0;
  measuring = now();
  if (again) return;
  let before = 0;
  const tick = at => {
    if (before && !document.hidden) {
      store.stats.frames++;
      store.stats.longestFrameMs = Math.max(store.stats.longestFrameMs, at - before);
      if (at - before > 100) store.stats.framesOver100++;
    }
    before = document.hidden ? 0 : at;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

let measuring = 0; // since when, in ms
