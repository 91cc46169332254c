// The page's frame: navigation, the connection's state, and the page that the
// address names.

import { html, render, useEffect, useErrorBoundary, useRef, useState } from './vendor/preact.js';
import { Dialog } from './confirm.js';
import { Fleet } from './fleet.js';
import { measure, run, store } from './store.js';
import { number } from './text.js';
import { useFleet } from './parts.js';

// Pages by the first word of the address. Those besides Fleet are read when they
// are needed first.
const pages = {
  fleet: { title: 'Fleet', page: Fleet },
  processes: { title: 'Processes', load: () => import('./processes.js').then(m => m.Processes) },
  why: { title: 'Why', load: () => import('./why.js').then(m => m.Why) },
  tasks: { title: 'Tasks', load: () => import('./tasks.js').then(m => m.Tasks) },
  cells: { title: 'Cells', load: () => import('./cells.js').then(m => m.Cells) },
  health: { title: 'Health', load: () => import('./health.js').then(m => m.Health) },
  process: { in: 'processes', title: 'Process', load: () => import('./process.js').then(m => m.Process) },
  task: { in: 'tasks', title: 'Task', load: () => import('./tasks.js').then(m => m.Task) },
  cell: { in: 'cells', title: 'Cell', load: () => import('./cells.js').then(m => m.Cell) },
};

function place() {
  const [path] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, ...args] = path.split('/').map(part => { try { return decodeURIComponent(part); } catch { return part; } });
  return Object.hasOwn(pages, name) ? { name, args } : { name: 'fleet', args: [] };
}

const themes = ['auto', 'light', 'dark'];

// A browser that keeps nothing of a site refuses to be asked for it.
function theTheme() { try { return localStorage.getItem('theme') || 'auto'; } catch { return 'auto'; } }
function keepTheme(theme) { try { localStorage.setItem('theme', theme); } catch { /* it holds until the page is left */ } }

function Theme() {
  const [theme, set] = useState(theTheme);
  useEffect(() => {
    keepTheme(theme);
    document.documentElement.dataset.theme = theme;
    dispatchEvent(new Event('theme'));
  }, [theme]);
  return html`<button class="plain" onClick=${() => set(themes[(themes.indexOf(theme) + 1) % 3])} aria-label=${`Colours: ${theme}. Press to change.`} title=${`Colours: ${theme}`}>
    ${{ auto: '◐', light: '☀', dark: '☾' }[theme]}</button>`;
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => dispatchEvent(new Event('theme')));

function Live() {
  useFleet(() => true, 500);
  const words = { loading: 'loading', live: 'live', lost: 'not live' };
  return html`<span class="live ${store.status}" title=${store.problem || `event ${number(store.fleet.sequence)}`}><i aria-hidden="true"></i>${words[store.status]}</span>
    <span class="who" title=${store.caller.roles.join(', ')}>${store.caller.name}${store.caller.name && !store.caller.may.includes('bbs/update_deployment') ? ', may only read' : ''}</span>`;
}

function Lost() {
  useFleet(delta => delta.all);
  if (store.status !== 'lost') return store.silence && html`<p class="lost" role="status">What cells have and how they are may be out of date. ${store.silence}</p>`;
  return html`<p class="lost" role="status">${store.loaded ? 'What you see may be out of date.' : 'Nothing could be read yet.'} ${store.problem}</p>`;
}

// Shown draws a page. A fault of one leaves the others.
function Shown({ page: Page, args }) {
  const [fault] = useErrorBoundary();
  if (fault) return html`<p class="fault" role="alert"><b>This page cannot be shown:</b> ${fault.message}</p>`;
  return html`<${Page} args=${args} />`;
}

function App() {
  const [at, go] = useState(place()), [loaded, keep] = useState({}), main = useRef(), first = useRef(true);
  useEffect(() => {
    const moved = () => go(place());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  const { title, page, load, in: section = at.name } = pages[at.name], key = [at.name, ...at.args.slice(0, at.name === 'process' ? 1 : 2)].join('/');
  const Page = page || loaded[at.name];
  useEffect(() => {
    document.title = [at.args.join('/'), title, 'Diego'].filter(x => x).join(' · ');
    if (!first.current) { main.current.focus(); scrollTo(0, 0); }
    first.current = false;
    if (!Page) load().then(got => keep(old => ({ ...old, [at.name]: got })));
  }, [key]);
  return html`
    <a class="skip" href="#main" onClick=${e => { e.preventDefault(); main.current.focus(); }}>Skip to the content</a>
    <header><a class="brand" href="#/fleet"><img src="icon.svg" alt="" width="22" height="22" />Diego</a>
      <nav aria-label="Pages">${Object.entries(pages).filter(([, p]) => !p.in).map(([name, p]) =>
        html`<a href="#/${name}" aria-current=${section === name ? 'page' : undefined}>${p.title}</a>`)}</nav>
      <div class="right"><${Live} /><${Theme} /></div></header>
    <${Lost} />
    <main id="main" tabindex="-1" ref=${main} data-page=${at.name} key=${key}>${Page ? html`<${Shown} page=${Page} args=${at.args} />` : html`<p class="quiet">Loading …</p>`}</main>
    <${Dialog} />`;
}

document.documentElement.dataset.theme = theTheme();
const end = new AbortController();
addEventListener('pagehide', () => end.abort());
addEventListener('pageshow', event => { if (event.persisted) location.reload(); });
run(end.signal); // before the first picture, so that the server works meanwhile
render(html`<${App} />`, document.getElementById('app'));

// What tests and measurements ask.
window.diego = Object.freeze({
  stats: () => ({ ...store.stats, lastSequence: store.fleet.sequence, cells: store.fleet.cells.size, instances: store.fleet.records.size, status: store.status }),
  resetStats: measure,
});
