// One process: its instances, its rollout and history, its definition, and what
// may be done to it.

import { html, useRef, useState } from './vendor/preact.js';
import { act, call, get, now } from './api.js';
import { Action } from './confirm.js';
import { difference } from './difference.js';
import { Logs } from './logs.js';
import { Ago, Bar, Card, Choice, Facts, Fault, Labels, link, Look, Table, Tag, useClock, useFleet, useFresh, useReady } from './parts.js';
import { Looks } from './processes.js';
import { lookOf, may, slotsOf, store, summaryOf } from './store.js';
import { beginText, day, endText, lookText, mib, nanoseconds, number, plain, plural, routeText, share, span, waitText } from './text.js';

const bbs = (name, body) => id => act('v1/bbs/' + name, body, id);

// Countdown says when a crashed instance starts again.
function Countdown({ restart }) {
  useClock();
  if (restart.never) return html`It has crashed too often and is not started again by itself.`;
  const left = Date.parse(restart.at) - now();
  return html`<span class="count" role="timer">${left > 0 ? `starts again in ${span(Math.ceil(left / 1000) * 1000)}` : 'starts again with the next pass of convergence'}</span>`;
}

const gridPage = 1000;

function Grid({ slots, at, guid }) {
  const [page, go] = useState(Math.floor(at / gridPage)), pages = Math.ceil(slots.length / gridPage), from = Math.min(page, pages - 1) * gridPage;
  return html`<div class="grid" role="group" aria-label="Instances by index">${slots.slice(from, from + gridPage).map((records, k) => {
    const i = from + k;
    const look = records?.length ? lookOf(records[0]) : 'waiting';
    return html`<a key=${i} class="index ${look}" aria-current=${i === at ? 'true' : undefined} href=${link('process', guid, String(i))} title=${`${i}: ${records?.length ? records.map(r => lookText(lookOf(r))).join('; ') : 'no record'}`}
      aria-label=${`Instance ${i}: ${lookText(look)}`}>${i}</a>`;
  })}</div>${pages > 1 && html`<nav class="pager" aria-label="Pages of instances"><button disabled=${from === 0} onClick=${() => go(page - 1)}>Previous</button> <span>indexes ${number(from)} to ${number(Math.min(from + gridPage, slots.length) - 1)}</span> <button disabled=${page >= pages - 1} onClick=${() => go(page + 1)}>Next</button></nav>`}`;
}

function Instance({ guid, index, records, restarts }) {
  const restart = restarts?.find(r => r.index === index);
  const past = useFresh(signal => call('bbs/timeline', { process_guid: guid, index }, signal), guid, [index]);
  const [chosen, choose] = useState('');
  const live = records.filter(r => r.instance_guid && r.cell_id);
  const ended = [];
  for (const e of (past.data || []).toReversed()) {
    const r = e.event?.before;
    if (r?.instance_guid && r.index === index && ![...live, ...ended.map(x => x.r)].some(x => x.instance_guid === r.instance_guid)) ended.push({ r, at: e.at });
  }
  const containers = [...live.map(r => ({ r })), ...ended.slice(0, 10)], shown = containers.find(c => c.r.instance_guid === chosen) || containers[0];
  return html`<section class="panel" aria-label="Instance ${index}"><div class="head"><h2>Instance ${index}</h2><p class="buttons"><a href=${link('why', guid, String(index))}>Why is it so?</a>
      <${Action} name="retire" needs="bbs/retire" label="Restart this instance" disabled=${records.length === 0} question=${() => ({ effect: `${guid}/${index} is stopped${live[0] ? ' on ' + live[0].cell_id : ''} and starts again, perhaps on another cell. Until it runs, the process has one instance fewer.`, done: `${guid}/${index} is being restarted.`, run: bbs('retire', { process_guid: guid, index, definition_id: records[0].definition_id }) })} /></p></div>
    ${records.map(r => html`<${Facts} key=${r.modification_tag.epoch} list=${[
      ['State', html`<${Look} look=${lookOf(r)} />`], ['Since', html`<${Ago} at=${r.since} />`], r.cell_id && ['Cell', html`<a href=${link('cell', r.cell_id)}>${r.cell_id}</a>`],
      ['Definition', r.definition_id], r.address && ['Address', (r.ports || []).map(p => `${r.address}:${p.host_port} → ${p.container_port}`).join(', ') || r.address],
      ['Crashes', number(r.crash_count)], r.crash_reason && ['Last crash', r.crash_reason], r.placement_error && ['Not placed', r.placement_error],
      r.state === 'CRASHED' && restart && ['Next restart', html`<${Countdown} restart=${restart} />`], r.instance_guid && ['Container', html`<span class="mono">${r.instance_guid}</span>`]]} />`)}
    ${records.length === 0 && html`<p class="quiet">Nothing is recorded at this index.</p>`}
    <h3>Output</h3>
    ${containers.length > 1 && html`<${Choice} label="Of" value=${shown.r.instance_guid} choose=${choose} options=${containers.map(({ r, at }) => [r.instance_guid, at ? `the one that ended ${day(at)} on ${r.cell_id}` : `the one on ${r.cell_id} now`])} />`}
    ${shown ? html`<${Logs} cell=${shown.r.cell_id} container=${shown.r.instance_guid} ended=${Boolean(shown.at)} />` : html`<p class="quiet">No container has run here as far as the log of events goes back.</p>`}</section>`;
}

function Rollout({ guid, deployment: d, process }) {
  const status = useFresh(signal => call('bbs/rollout_status', { process_guid: guid }, signal), guid, [], 2000), s = status.data, state = process.rollout || {}, policy = d?.rollout_policy || {};
  const target = process.active, going = Boolean(state.from) || s && s.pending > 0, paused = state.paused && state.paused !== 'NOBODY';
  const common = { process_guid: guid };
  return html`<section class="panel" aria-label="Rollout"><div class="head"><h2>Rollout</h2><p class="buttons">
      <${Action} name="pause" needs="bbs/pause_rollout" label="Pause" disabled=${!going || paused} question=${() => ({ effect: `The rollout of ${guid} to ${target} changes no further instance until it is resumed. What runs goes on running.`, done: 'The rollout is paused.', run: bbs('pause_rollout', common) })} />
      <${Action} name="resume" needs="bbs/resume_rollout" label="Resume" disabled=${!paused} question=${() => ({ effect: `The rollout of ${guid} to ${target} goes on.`, done: 'The rollout goes on.', run: bbs('resume_rollout', common) })} />
      <${Action} name="confirm" needs="bbs/confirm_rollout" label="Confirm the canary" disabled=${!(policy.canary && state.from && !state.confirmed)} question=${() => ({ effect: `The rollout of ${guid} to ${target} goes on beyond its ${plural(policy.canary, 'canary', 'canaries')}.`, done: 'The canary is confirmed.', run: bbs('confirm_rollout', common) })} />
      <${Action} name="abort" needs="bbs/abort_rollout" label="Abort" grave disabled=${!state.from} question=${() => ({ effect: `${guid} goes back to ${state.from}. Instances of ${target} are replaced one after the other.`, done: `${guid} goes back to ${state.from}.`, run: bbs('abort_rollout', common) })} /></p></div>
    <${Fault} what="The rollout's state cannot be read" error=${status.error} />
    ${s && html`<${Facts} list=${[
      ['Active', target], ['Healthy', process.healthy || 'none yet'], state.from && ['From', state.from],
      ['Done', html`<span class="room"><${Bar} value=${share(s.done, s.done + s.stalled + s.pending)} label="done" /> ${number(s.done)} of ${number(s.done + s.stalled + s.pending)}</span>`],
      s.proving > 0 && ['Proving', number(s.proving)], s.stopping > 0 && ['Stopping what was replaced', number(s.stopping)], s.stalled > 0 && ['Given up for now', number(s.stalled)],
      ['Waits for', s.waits_for && s.waits_for !== 'NOTHING' ? `${waitText(s.waits_for)}${s.held_by >= 0 ? ` at index ${s.held_by}` : ''}` : 'nothing'],
      s.unplaced?.placement_error && ['Without a cell', `index ${s.unplaced.index}: ${s.unplaced.placement_error}`],
      paused && ['Paused', state.paused === 'FAILURE' ? 'because it failed' : 'by an operator'],
      state.failure && ['Failure', `${state.failure.kind.toLowerCase()}${state.failure.kind === 'ABORTED' ? '' : ` at index ${state.failure.index}`}${state.failure.detail ? ': ' + state.failure.detail : ''}`],
      ['Policy', [d?.update_strategy === 'RECREATE' ? 'recreate' : 'rolling', `${number(policy.max_in_flight || 1)} at a time`, policy.canary && plural(policy.canary, 'canary', 'canaries'), policy.min_healthy_nanoseconds && `healthy for ${nanoseconds(policy.min_healthy_nanoseconds)}`,
        policy.deadline_nanoseconds && `deadline ${nanoseconds(policy.deadline_nanoseconds)}`, { PAUSE: 'pauses on failure', ROLL_BACK: 'rolls back on failure' }[policy.on_failure]].filter(x => x).join(', ')]]} />`}</section>`;
}

function History({ guid, deployment: d }) {
  const revisions = useFresh(signal => call('bbs/revisions', { process_guid: guid }, signal), guid, []), list = (revisions.data || []).toReversed();
  const [a, from] = useState(''), [b, to] = useState('');
  const definitions = new Map(Object.entries(d?.definitions || {}));
  for (const r of list) if (r.definition) definitions.set(r.definition_id, r.definition);
  const ids = [...definitions.keys()], left = a || list.find(r => r.definition_id !== d?.active_definition_id && definitions.has(r.definition_id))?.definition_id || ids[0], right = b || d?.active_definition_id || ids[0];
  const changes = left !== right && definitions.has(left) && definitions.has(right) ? difference(definitions.get(left), definitions.get(right)) : [];
  return html`<section class="panel" aria-label="Revisions"><h2>Revisions</h2><${Fault} what="The history cannot be read" error=${revisions.error} />
    <${Table} label="Revisions" rows=${list} empty="No revision is known." page=${10} head=${[['Number', 'n'], ['Definition'], ['How it began'], ['When'], ['By'], ['End'], ['Done', 'n'], ['Actions', 'unsaid']]}
      row=${r => html`<tr key=${r.number}><td class="n">${r.number}</td><td>${r.definition_id}</td><td>${beginText(r.began)}</td><td><${Ago} at=${r.began_at} /></td><td>${r.by || '–'}</td>
        <td>${r.ended_at ? endText(r.end) : html`<${Tag} kind="good">active<//>`}${r.failure ? html` <span class="quiet">(${r.failure.kind.toLowerCase()}${r.failure.detail ? ': ' + r.failure.detail : ''})</span>` : ''}</td><td class="n">${r.done} of ${r.desired}</td>
        <td>${r.ended_at && r.definition_id !== d?.active_definition_id && html`<${Action} name="rollback" needs="bbs/roll_back" label="Roll back" of=${`to revision ${r.number}`} question=${() => ({ title: `Roll back to revision ${r.number}`, effect: `${guid} begins a rollout from ${d?.active_definition_id} to ${r.definition_id}, the definition of revision ${r.number}. Its ${plural(d?.instances || 0, 'instance')} are replaced as the rollout's policy says.`, done: `${guid} is rolled back to ${r.definition_id}.`, run: bbs('roll_back', { process_guid: guid, revision: r.number }) })} />`}</td></tr>`} />
    ${ids.length > 1 && html`<h3>Difference</h3><div class="tools"><${Choice} label="From" value=${left} choose=${from} options=${ids.map(id => [id, id])} /> <${Choice} label="to" value=${right} choose=${to} options=${ids.map(id => [id, id])} /></div>
      <${Table} id="difference" label="Difference of two definitions" rows=${changes} empty=${left === right ? 'Choose two definitions.' : 'They are the same.'} head=${[['Field'], [left], [right]]}
        row=${c => html`<tr key=${c.path}><th scope="row" class="mono">${c.path}</th><td class="mono old">${c.before}</td><td class="mono new">${c.after}</td></tr>`} />`}</section>`;
}

export function Process({ args: [guid, indexText] }) {
  useFleet(delta => delta.processes.has(guid));
  const [wanted, want] = useState(null), first = useRef(-1); // first: the index to show where the address names none
  const deployment = useFresh(signal => call('bbs/deployment', { process_guid: guid }, signal), guid);
  const restarts = useFresh(signal => get('restarts?process_guid=' + encodeURIComponent(guid), signal).catch(() => []), guid);
  const process = store.fleet.processes.get(guid), d = deployment.data;
  useReady(store.loaded && (!process || d || deployment.error));
  if (!process) return html`<h1>${guid}</h1><p class="quiet">${!store.loaded ? 'Loading …' : 'There is no process of this name. Perhaps it was deleted.'}</p>`;
  const slots = slotsOf(process), summary = summaryOf(process);
  if (first.current < 0) first.current = Math.max(0, slots.findIndex(s => s?.length && lookOf(s[0]) !== 'running'));
  const at = indexText === undefined ? first.current : Number(indexText) || 0, n = wanted ?? process.instances, next = (restarts.data || []).filter(r => !r.never).sort((x, y) => Date.parse(x.at) - Date.parse(y.at))[0];
  const scale = () => ({
    title: `Scale to ${n}`, grave: n === 0,
    effect: n > process.instances ? `${guid} goes from ${process.instances} to ${plural(n, 'instance')}: ${number(n - process.instances)} more start, wherever there is room.`
      : `${guid} goes from ${process.instances} to ${plural(n, 'instance')}: those with the indexes from ${n} to ${process.instances - 1} are stopped.`,
    done: `${guid} is to have ${plural(n, 'instance')}.`,
    run: async id => { await act('v1/bbs/update_deployment', { process_guid: guid, update: { instances: n } }, id); want(null); },
  });
  const definition = d?.definitions?.[d.active_definition_id];
  return html`<div class="head"><div><h1>${guid}</h1><p class="quiet">${process.domain ? `domain ${plain(process.domain)}` : ''} <${Labels} labels=${process.labels} />${process.desired ? '' : ' · no longer desired, its instances end'} · <${Looks} looks=${summary.looks} /></p></div>
      <p class="buttons">${may('bbs/update_deployment') && html`<label>Instances <input type="number" min="0" max="100000" id="instances" value=${n} onInput=${e => want(Math.max(0, Math.floor(Number(e.target.value) || 0)))} /></label>`}
        <${Action} name="scale" needs="bbs/update_deployment" label="Scale" disabled=${n === process.instances || !process.desired} question=${scale} />
        <${Action} name="restart" needs="bbs/restart_deployment" label="Restart all" disabled=${!process.desired || process.instances === 0} question=${() => ({ effect: `All ${plural(process.instances, 'instance')} of ${guid} are replaced by a rollout to the same definition under a new id, as its policy says.`, done: `${guid} is being restarted.`, run: bbs('restart_deployment', { process_guid: guid }) })} /></p></div>
    <div class="cards"><${Card} title="Running" value=${html`${number(summary.running)} <small>of ${number(process.instances)} desired</small>`}><${Bar} value=${share(summary.running, process.instances)} warn=${summary.running < process.instances} label="running" /><//>
      <${Card} title="Each reserves" value=${mib(process.sizes[process.active]?.memory_mb)}>memory, and ${mib(process.sizes[process.active]?.disk_mb)} of disk<//>
      <${Card} title="Crashes" value=${number(summary.crashes)}>${next ? html`index ${next.index} <${Countdown} restart=${next} />` : 'none waits for a restart'}<//>
      <${Card} title="Routes" value=${number(Object.values(process.routes || {}).flat().length)}>${Object.entries(process.routes || {}).map(([key, v]) => html`<div>${plain(key)}: ${routeText(v)}</div>`)}<//></div>
    <section class="panel" aria-label="Instances"><h2>Instances</h2><${Grid} slots=${slots} at=${at} guid=${guid} /></section>
    ${slots.length > 0 && html`<${Instance} key=${at} guid=${guid} index=${at} records=${slots[at] || []} restarts=${restarts.data} />`}
    <${Rollout} guid=${guid} deployment=${d} process=${process} />
    <${History} guid=${guid} deployment=${d} />
    <section class="panel" aria-label="Definition"><h2>Definition ${d?.active_definition_id}</h2>${d?.annotation && html`<p>Annotation: <span class="mono">${d.annotation}</span></p>`}<${Fault} what="The definition cannot be read" error=${process.desired && deployment.error} />
      ${definition && html`<details><summary>All fields</summary><pre class="code" tabindex="0">${JSON.stringify(definition, null, 2)}</pre></details>`}</section>`;
}
