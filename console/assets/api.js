// The calls of the control plane's API, and of the console's own.

// base is where the server is mounted; the page itself is at console/ below it.
const base = new URL('../', document.baseURI);

// A Problem is an answer that says what is wrong.
class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the server answered with the status ${status}`);
    this.status = status;
    this.type = body.type || '';
    this.title = body.title || '';
  }
}

// unavailable reports whether the server does not know a call.
export const unavailable = err => err instanceof Problem && (err.status === 404 && !/not_found/.test(err.type) || err.status === 405);

const unreachable = path => new Error(`The server cannot be reached (${path.split('?')[0]}). Look whether it runs; a link of diegoctl console ends with that program.`);

let skew = 0;
const skews = []; // by the last answers

// now is the server's time in ms, as far as its answers say it.
export const now = () => Date.now() + skew;

async function request(path, { method = 'GET', body, headers = {}, signal } = {}) {
  let answer;
  try {
    answer = await fetch(new URL(path, base), {
      method, signal, credentials: 'same-origin', cache: 'no-store',
      headers: { 'Diego-Console': '1', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (err) {
    if (signal?.aborted) throw err;
    throw unreachable(path);
  }
  // The header has seconds only. An answer that comes late, or to a busy page, says too little.
  skews.push(Date.parse(answer.headers.get('Date')) + 500 - Date.now());
  if (skews.length > 8) skews.shift();
  const most = Math.max(...skews);
  skew = Math.abs(most) > 2000 ? most : 0;
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

// answered is the whole answer to a request. Without a limit, one connection that
// hangs would keep a page from ever reading something again.
async function answered(path, { signal, ...options }) {
  const late = AbortSignal.timeout(limit);
  try {
    return await (await request(path, { ...options, signal: signal ? AbortSignal.any([signal, late]) : late })).json();
  } catch (err) {
    throw late.aborted && !signal?.aborted ? unreachable(path) : err;
  }
}

const limit = 60_000; // ms; a server takes at most 30 s unless it is told otherwise

export const get = (path, signal) => answered('console/api/' + path, { signal });
export const post = (path, body, signal) => answered('console/api/' + path, { method: 'POST', body, signal });
export const call = (path, body = {}, signal) => answered('v1/' + path, { method: 'POST', body, signal });

// act is a call that changes something. Repeated with the same id, it is carried
// out once.
export const act = (path, body, id) => answered(path, { method: 'POST', body, headers: { 'Diego-Request-Id': id } });

// A browser would resolve a cell named ".." in a path.
export const cellPath = (cell, name) => `cell/${name}?cell=${encodeURIComponent(cell)}`;

// lines reads a body and calls take with as many whole lines as have come, and
// waits for take. The last line end of these is left out.
async function lines(answer, take) {
  const reader = answer.body.getReader(), decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const text = decoder.decode(value, { stream: true }), to = text.lastIndexOf('\n');
      if (to >= 0) await take(rest + text.slice(0, to));
      rest = to < 0 ? rest + text : text.slice(to + 1);
    }
    if (rest) await take(rest);
  } finally {
    reader.cancel().catch(() => {}); // what is not read to its end stays open otherwise
  }
}

const channel = new MessageChannel();
const turns = [];
channel.port1.onmessage = () => turns.shift()?.();
const turn = () => new Promise(done => { turns.push(done); channel.port2.postMessage(0); });

// inTurns calls one function for each of a list. It gives the browser a turn after
// each slice of work, so that a long list does not hold up a frame.
async function inTurns(list, each) {
  for (const v of list) {
    each(v);
    if (performance.now() - since > 12) {
      await turn();
      since = performance.now();
    }
  }
}

let since = 0; // when the browser had its last turn

// each calls one function for every item of a list and fails if the list was
// cut off, or ended early. A record that cannot be decoded is left out.
export async function each(answer, item) {
  let ended = false;
  // A browser reads one list of many objects faster than many objects.
  await lines(answer, text => inTurns(JSON.parse(`[${text.trim().replace(/\n+/g, ',')}]`), v => {
    if (v.item !== undefined) item(v.item);
    else if (v.problem && !v.problem.type?.endsWith(':corrupt')) throw new Problem(v.problem.status, v.problem);
    else if (v.end !== undefined) ended = true;
  }));
  if (!ended) throw new Error('The list was cut off before its end. It is read again.');
}

export const list = async (path, filter, item, signal) => each(await request('v1/' + path, { method: 'POST', body: filter, signal }), item);
export const ownList = async (path, item, signal) => each(await request('console/api/' + path, { signal: AbortSignal.any([signal, AbortSignal.timeout(limit)]) }), item);
export const ownFeed = async (path, body, item, signal) => each(await request('console/api/' + path, { method: 'POST', body, signal }), item);

// wait ends after ms, when signal ends, or when wake is called.
export function wait(ms, signal, wake = () => {}) {
  return new Promise(done => {
    const end = () => { clearTimeout(timer); signal.removeEventListener('abort', end); done(); };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    wake(end);
  });
}

// together reads several things at the same time. If one of them fails, nobody
// waits for the others, and they end.
export async function together(reads, signal) {
  const cut = new AbortController(), both = AbortSignal.any([signal, cut.signal]);
  try {
    await Promise.all(reads.map(read => read(both)));
  } finally {
    cut.abort();
  }
}

// whileSeen follows something while the page can be seen, and again from where
// it was when the page can be seen again. Browsers open few connections to a
// server, and pages that nobody looks at would take them all. after is how long, in
// ms, a page may be out of sight.
export async function whileSeen(what, signal, after = 10_000) {
  for (;;) {
    const cut = new AbortController();
    let timer = 0, seen = () => {};
    const changed = () => {
      clearTimeout(timer);
      if (document.hidden) timer = setTimeout(() => cut.abort(), after);
      else seen();
    };
    const end = () => seen();
    document.addEventListener('visibilitychange', changed);
    signal.addEventListener('abort', end);
    try {
      if (document.hidden && !signal.aborted) await new Promise(done => { seen = done; });
      return await what(AbortSignal.any([signal, cut.signal]));
    } catch (err) {
      if (!cut.signal.aborted || signal.aborted) throw err;
    } finally {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', changed);
      signal.removeEventListener('abort', end);
    }
  }
}

// milliseconds reads a duration as Go writes it: 5s, 1m30s, 200ms.
export const milliseconds = text => [...(text || '').matchAll(/([\d.]+)(h|ms|m|s)/g)].reduce((sum, [, n, unit]) => sum + n * { h: 3_600_000, m: 60_000, s: 1000, ms: 1 }[unit], 0);

// follow reads server-sent events until the feed ends or falls silent: for
// silence, in ms, until the server says how often it sends something.
// event(id, data) gets null as data when only the position moved on. It fails with
// a Problem if the server ends the feed with one.
export async function follow(path, after, silence, event, signal) {
  const cut = new AbortController();
  const stop = () => cut.abort();
  signal.addEventListener('abort', stop);
  let timer = setTimeout(stop, silence);
  try {
    const answer = await request('v1/' + path, { headers: { 'Last-Event-ID': String(after) }, signal: cut.signal });
    const beat = milliseconds(answer.headers.get('Diego-Heartbeat'));
    if (beat) silence = Math.max(5000, 3 * beat);
    let id = after, kind = '', data = null;
    await lines(answer, text => {
      clearTimeout(timer);
      timer = setTimeout(stop, silence);
      return inTurns(text.split('\n'), take);
    });
    function take(line) {
      if (line.startsWith('id:')) id = Number(line.slice(3));
      else if (line.startsWith('event:')) kind = line.slice(6).trim();
      else if (line.startsWith('data:')) data = line.slice(5);
      else if (line === '') {
        const value = data && JSON.parse(data);
        if (kind === 'problem') throw new Problem(value.status, value);
        event(id, value);
        kind = '';
        data = null;
      }
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
