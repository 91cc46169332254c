// The list of processes.

import { html, useState } from './vendor/preact.js';
import { Bar, byName, Labels, link, Look, Table, Tag, useFleet, useReady } from './parts.js';
import { store, summaryOf } from './store.js';
import { chooser, lookText, mib, number, plural, share } from './text.js';

// Looks shows how many of the instances look like what.
export const Looks = ({ looks }) => Object.entries(looks).map(([look, n]) => html`<${Look} look=${look} label=${`${number(n)} ${lookText(look).split(':')[0]}`} /> `);

export function Processes() {
  useFleet(() => true, 1000);
  const [text, find] = useState(''), [unwell, choose] = useState(false), { fleet } = store, wanted = chooser(text);
  let rows = [...fleet.processes.values()].filter(p => wanted(p.labels, p.process_guid, p.domain));
  if (unwell) rows = rows.filter(p => !summaryOf(p).well);
  rows.sort((a, b) => byName(a.process_guid, b.process_guid));
  useReady(store.loaded);
  return html`<h1>Processes</h1><div class="tools"><label class="search"><span class="hidden">Find by name, domain or labels</span><input type="search" placeholder="name, domain or team=blog,!tier" value=${text} onInput=${e => find(e.target.value)} /></label>
      <label><input type="checkbox" checked=${unwell} onChange=${e => choose(e.target.checked)} /> only what needs attention</label><p class="quiet">${plural(rows.length, 'process', 'processes')}</p></div>
    <${Table} id="processes-table" label="Processes" rows=${rows} empty=${unwell ? 'All is well.' : 'There is no such process.'} head=${[['Process'], ['Domain'], ['Labels'], ['Running'], ['Instances'], ['Crashes', 'n'], ['Memory each', 'n']]}
      row=${p => {
        const s = summaryOf(p);
        return html`<tr key=${p.process_guid}><th scope="row"><a href=${link('process', p.process_guid)}>${p.process_guid}</a> ${p.rollout?.from && html`<${Tag} kind="warn">rollout<//>`}${!p.desired && html`<${Tag}>ends<//>`}</th><td>${p.domain || '–'}</td><td><${Labels} labels=${p.labels} /></td>
          <td><span class="room"><${Bar} value=${share(s.running, p.instances)} warn=${s.running < p.instances} label=${`${s.running} of ${p.instances} running`} /> ${number(s.running)} of ${number(p.instances)}</span></td>
          <td><${Looks} looks=${s.looks} /></td><td class="n">${number(s.crashes)}</td><td class="n">${mib(p.sizes[p.active]?.memory_mb)}</td></tr>`;
      }} />`;
}
