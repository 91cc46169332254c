// Tasks: what runs once.

import { html, useState } from './vendor/preact.js';
import { act, call } from './api.js';
import { Action } from './confirm.js';
import { Logs } from './logs.js';
import { Ago, byName, Choice, Facts, Fault, Labels, link, Table, Tag, useFleet, useLoad, useReady } from './parts.js';
import { store } from './store.js';
import { chooser, mib, plain, plural } from './text.js';

const State = ({ task: t }) => html`<${Tag} kind=${t.failed ? 'bad' : t.state === 'RUNNING' || t.state === 'COMPLETED' ? 'good' : 'warn'}>${t.failed ? 'failed' : t.state.toLowerCase()}<//>`;
const over = t => t.state === 'COMPLETED' || t.state === 'RESOLVING';

const Cancel = ({ task: t }) => over(t) ? null : html`<${Action} name="cancel" needs="bbs/cancel_task" label="Cancel" of=${t.task_guid} grave question=${() => ({
  title: `Cancel task ${t.task_guid}`, effect: `The task ${t.task_guid} completes as failed${t.cell_id ? `, and its container on ${t.cell_id} is stopped` : ' and is not started'}.`,
  done: `Task ${t.task_guid} is cancelled.`, button: 'Cancel the task', run: id => act('v1/bbs/cancel_task', { task_guid: t.task_guid }, id) })} />`;

export function Tasks() {
  useFleet(delta => delta.tasks.size > 0, 1000);
  const [text, find] = useState(''), [state, choose] = useState('all'), wanted = chooser(text);
  const states = { all: () => true, pending: t => t.state === 'PENDING', running: t => t.state === 'RUNNING', succeeded: t => over(t) && !t.failed, failed: t => t.failed };
  const rows = [...store.fleet.tasks.values()].filter(t => states[state](t) && wanted(t.labels, t.task_guid, t.domain));
  rows.sort((a, b) => byName(b.created_at, a.created_at) || byName(a.task_guid, b.task_guid));
  useReady(store.loaded);
  return html`<h1>Tasks</h1><div class="tools"><label class="search"><span class="hidden">Find by name, domain or labels</span><input type="search" placeholder="name, domain or team=blog,!tier" value=${text} onInput=${e => find(e.target.value)} /></label>
      <${Choice} label="Show" value=${state} choose=${choose} options=${Object.keys(states).map(s => [s, s])} /><p class="quiet">${plural(rows.length, 'task')}</p></div>
    <${Table} id="tasks-table" label="Tasks" rows=${rows} empty="There is no such task." head=${[['Task'], ['Domain'], ['Labels'], ['State'], ['Cell'], ['Made'], ['Memory', 'n'], ['Why'], ['Actions', 'unsaid']]}
      row=${t => html`<tr key=${t.task_guid}><th scope="row"><a href=${link('task', t.task_guid)}>${t.task_guid}</a></th><td>${t.domain}</td><td><${Labels} labels=${t.labels} /></td><td><${State} task=${t} /></td><td>${t.cell_id ? html`<a href=${link('cell', t.cell_id)}>${t.cell_id}</a>` : '–'}</td><td><${Ago} at=${t.created_at} /></td>
        <td class="n">${mib(t.memory_mb)}</td><td>${t.failure_reason || t.rejection_reason || ''}</td><td><${Cancel} task=${t} /></td></tr>`} />`;
}

export function Task({ args: [guid] }) {
  const [seen, mark] = useState(0);
  useFleet(delta => { if (delta.tasks.has(guid)) mark(n => n + 1); return delta.tasks.has(guid); });
  const loaded = useLoad(signal => call('bbs/task', { task_guid: guid }, signal), [guid, seen]), known = store.fleet.tasks.get(guid), t = known || loaded.data;
  useReady(t || loaded.error);
  if (!t) return html`<h1>${guid}</h1>${!loaded.error ? html`<p class="quiet">Loading …</p>` : loaded.error.status === 404 ? html`<p class="quiet">There is no task of this name. Once its end is noted, a task is deleted.</p>` : html`<${Fault} what="The task cannot be read" error=${loaded.error} />`}`;
  const { task_guid, domain, state, cell_id, instance_guid, created_at, updated_at, failed, failure_reason, result, rejection_count, rejection_reason, modification_tag, first_completed_at, ...definition } = t;
  return html`<div class="head"><div><h1>${guid}</h1><p class="quiet">task of domain ${plain(domain)}${known ? '' : ', deleted since'}</p></div><p class="buttons"><${Cancel} task=${t} /></p></div>
    <section class="panel" aria-label="State"><${Facts} list=${[['State', html`<${State} task=${t} />`], cell_id && ['Cell', html`<a href=${link('cell', cell_id)}>${cell_id}</a>`], t.labels && ['Labels', html`<${Labels} labels=${t.labels} />`], ['Made', html`<${Ago} at=${created_at} />`], ['Changed', html`<${Ago} at=${updated_at} />`],
      ['Reserves', `${mib(t.memory_mb)} of memory, ${mib(t.disk_mb)} of disk`], failure_reason && ['Failed because', failure_reason], rejection_count > 0 && ['Not placed', `${plural(rejection_count, 'time')}: ${rejection_reason}`], result && ['Result', html`<span class="mono">${result}</span>`]]} /></section>
    ${cell_id && instance_guid && html`<section class="panel" aria-label="Output"><h2>Output</h2><${Logs} cell=${cell_id} container=${instance_guid} ended=${over(t)} /></section>`}
    <section class="panel" aria-label="Definition"><h2>Definition</h2><details><summary>All fields</summary><pre class="code" tabindex="0">${JSON.stringify(definition, null, 2)}</pre></details></section>`;
}
