// Tests of the pages' pure functions. A browser that shows the console evaluates
// this text; the value is a promise of the failures, none if all is well.
(async () => {
  const load = name => import(new URL(name, document.baseURI));
  const { apply, lookOf, newFleet, putCells, putDeployment, putRecord, reservedOf, slotsOf, summaryOf } = await load('store.js');
  const { boxes, tiles } = await load('layout.js');
  const { lanes, placement, refusal, scale } = await load('explain.js');
  const { difference } = await load('difference.js');
  const { each, milliseconds, together, whileSeen } = await load('api.js');
  const { repeat } = await load('parts.js');
  const { chooser, plain, routeText } = await load('text.js');
  const failures = [];
  const same = (what, got, want) => { if (JSON.stringify(got) !== JSON.stringify(want)) failures.push(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`); };
  const changes = () => ({ cells: new Set(), processes: new Set(), tasks: new Set() });
  const record = (epoch, index, more) => ({ process_guid: 'web', definition_id: 'v1', index: 0, cell_id: '', state: 'UNCLAIMED', presence: 'ORDINARY', routable: false, crash_count: 0, placement_error: '', modification_tag: { epoch, index }, ...more });
  const event = (sequence, kind, before, after) => ({ sequence, lrp: { kind: 'actual_lrp_' + kind, before, after, cause: {} } });
  const onCells = fleet => [...fleet.cells.values()].map(c => [c.cell_id, c.records.size]);

  // A record is where its newest version says, and is counted once.
  {
    const fleet = newFleet(), c = changes();
    const waits = record('a', 0), claimed = record('a', 1, { state: 'CLAIMED', cell_id: 'c1' }), runs = record('a', 2, { state: 'RUNNING', cell_id: 'c1', routable: true });
    apply(fleet, c, event(1, 'instance_created', undefined, waits));
    same('waiting', [fleet.waiting.size, fleet.counts.waiting], [1, 1]);
    apply(fleet, c, event(2, 'instance_changed', waits, claimed));
    apply(fleet, c, event(3, 'instance_changed', claimed, runs));
    same('running', [fleet.waiting.size, fleet.counts, onCells(fleet), fleet.sequence], [0, { waiting: 0, starting: 0, running: 1 }, [['c1', 1]], 3]);
    apply(fleet, c, event(4, 'instance_changed', waits, claimed));
    same('an older version is ignored', lookOf(fleet.records.get('web/0/a')), 'running');
    // After a crash, the record goes and another comes.
    apply(fleet, c, event(5, 'instance_removed', runs, undefined));
    apply(fleet, c, event(6, 'instance_created', undefined, record('b', 0, { state: 'CRASHED', crash_count: 4 })));
    same('crashed', [fleet.counts.running, fleet.counts.crashed, onCells(fleet), fleet.records.size], [0, 1, [['c1', 0]], 1]);
    apply(fleet, c, event(7, 'instance_removed', record('gone', 3), undefined));
    same('a removal of what is unknown changes nothing', fleet.records.size, 1);
  }

  // Epochs are unique among the records of an index, and no further.
  {
    const fleet = newFleet(), c = changes(), [one, two] = [0, 1].map(index => record('a', 0, { index }));
    putRecord(fleet, c, one);
    putRecord(fleet, c, two);
    putRecord(fleet, c, record('a', 0, { process_guid: 'other' }));
    same('records of one epoch', [fleet.records.size, fleet.waiting.size, fleet.counts.waiting], [3, 3, 3]);
    apply(fleet, c, event(1, 'instance_removed', two, undefined));
    same('one of them is removed', [fleet.records.size, fleet.processes.get('web').records.size], [2, 1]);
  }

  // Events from before the lists were read lead to what the lists say.
  {
    const fleet = newFleet(), c = changes();
    putRecord(fleet, c, record('b', 5, { state: 'RUNNING', cell_id: 'c2', routable: true }));
    const old = record('a', 1, { state: 'RUNNING', cell_id: 'c1' });
    for (const e of [event(1, 'instance_created', undefined, old), event(2, 'instance_removed', old, undefined), event(3, 'instance_created', undefined, record('b', 0))]) apply(fleet, c, e);
    same('replayed', [[...fleet.records.keys()], fleet.counts.running, onCells(fleet)], [['web/0/b'], 1, [['c2', 1], ['c1', 0]]]);
  }

  for (const [want, more] of [['suspect', { presence: 'SUSPECT', state: 'RUNNING' }], ['evacuating', { presence: 'EVACUATING', state: 'RUNNING' }], ['unready', { state: 'RUNNING' }], ['stopping', { state: 'RUNNING', routable: true, stopping: '2026-01-02T03:04:05Z' }],
    ['starting', { state: 'CLAIMED' }], ['crashed', { state: 'CRASHED' }], ['unplaced', { placement_error: 'insufficient resources' }], ['waiting', {}]]) same('look', lookOf(record('a', 0, more)), want);

  // A process is well if all its instances run, and its slots are as many as desired.
  {
    const fleet = newFleet(), c = changes();
    putDeployment(fleet, c, { process_guid: 'web', instances: 2, active_definition_id: 'v1', definitions: { v1: { memory_mb: 64 } } });
    putRecord(fleet, c, record('a', 1, { state: 'RUNNING', routable: true, cell_id: 'c1' }));
    const web = fleet.processes.get('web');
    same('one of two', [summaryOf(web).running, summaryOf(web).well, slotsOf(web).map(s => s.length), fleet.desired], [1, false, [1, 0], 2]);
    putRecord(fleet, c, record('b', 1, { index: 1, state: 'RUNNING', routable: true, cell_id: 'c1' }));
    same('two of two', summaryOf(web).well, true);
    const cell = fleet.cells.get('c1');
    same('reserved by definitions', reservedOf(fleet, cell), 128);
    putCells(fleet, c, [{ cell_id: 'c1', zone: 'z1', total: { memory_mb: 1000 }, remaining: { memory_mb: 700 }, tasks: 3 }]);
    same('reserved as the cell says', [reservedOf(fleet, cell), cell.present, cell.tasks.size], [300, true, 0]);
    putCells(fleet, c, []);
    same('a missing cell with instances stays', [cell.present, fleet.cells.size], [false, 1]);
    apply(fleet, c, { sequence: 9, lrp: { kind: 'lrp_deployment_removed', deployment_before: { process_guid: 'web' } } });
    same('not desired any more', [fleet.desired, web.desired, fleet.processes.size], [0, false, 1]);
  }

  // No box leaves the picture, and no box covers another.
  for (const n of [1, 3, 10, 1250]) {
    const cells = Array.from({ length: n }, (_, i) => ({ cell_id: 'c' + i, zone: 'z' + i % 3, total: { memory_mb: 1024 << i % 4 } })), plan = boxes(cells, 1200, 800);
    same(`${n} boxes`, plan.boxes.length, n);
    const rows = new Map();
    for (const b of plan.boxes) {
      if (b.x < 0 || b.x + b.w > 1200.5 || b.y + b.h > plan.height) failures.push(`a box of ${n} is outside`);
      if ((rows.get(b.y) || 0) > b.x) failures.push(`a box of ${n} covers another`);
      rows.set(b.y, b.x + b.w);
    }
  }

  // Tiles stay in their box; in proportion they cover what they weigh.
  for (const [weights, room] of [[[512, 512, 256], 8192], [Array(60).fill(128), 7680], [Array(400).fill(64), 25600], [[100, 900], 1000], [[64], 0], [[0, 64], 1024]]) {
    const list = tiles(weights, room, 240, 160);
    same('tiles', list.length, weights.length);
    if (list.some(t => t.x < -0.5 || t.y < -0.5 || t.x + t.w > 240.5 || t.y + t.h > 160.5)) failures.push(`a tile of ${weights.length} is outside`);
    if (room === 8192) same('area', Math.round(list[0].w * list[0].h), Math.round(512 / 8192 * 240 * 160));
  }

  same('placement', placement('score 0.2580, fewest of its process: 0 against 1 on cell-2; parts against cell-2: of its process on the cell 0/1, memory in use 0.25/0.5, preference -1e+300/0'),
    { head: 'score 0.2580, fewest of its process: 0 against 1 on cell-2', other: 'cell-2', parts: [{ by: 'of its process on the cell', won: 0, lost: 1 }, { by: 'memory in use', won: 0.25, lost: 0.5 }, { by: 'preference', won: -1e300, lost: 0 }] });
  same('placement without another cell', placement('score 0.0040, no other cell can take it; parts: containers in use 0.004'), { head: 'score 0.0040, no other cell can take it', other: '', parts: [{ by: 'containers in use', won: 0.004, lost: null }] });
  same('placement that was cut', placement('score 0.2, as good as c; parts against c: disk in use 0.5/0.5, memory in u (cut)').parts.length, 1);
  same('no placement', [placement('score 0.0040, as good as cell-2'), placement(''), placement(undefined)], [null, null, null]);
  same('refusal', refusal('insufficient resources: of 12 cells 2 evacuating, 10 short of memory; the nearest, cell-4, lacks 12 MiB of memory'),
    { cells: 12, reasons: [{ reason: 'evacuating', cells: 2 }, { reason: 'short of memory', cells: 10 }], nearest: { cell: 'cell-4', lacks: '12 MiB of memory' } });
  same('no refusal', refusal('no cell answered'), null);
  same('a refusal that is hard to read', refusal('of 1 cells ' + '1 a'.repeat(300) + ';'), null);

  // A timeline has a bar for each state, and a lane for what overlaps.
  {
    const at = s => new Date(1e12 + 1000 * s).toISOString(), entry = (s, kind, before, after) => ({ at: at(s), event: { kind: 'actual_lrp_' + kind, before, after } });
    const a0 = record('a', 0), a1 = record('a', 1, { state: 'RUNNING', cell_id: 'c1' }), b0 = record('b', 0);
    const { bars, lanes: n } = lanes([entry(0, 'instance_created', undefined, a0), entry(1, 'instance_changed', a0, a1), { at: at(3), session: { kind: 'exec' } }, entry(5, 'instance_created', undefined, b0), entry(6, 'instance_removed', a1, undefined)], lookOf, 1e12 + 9000);
    same('bars', bars.map(b => [b.look, (b.from - 1e12) / 1000, (b.to - 1e12) / 1000, b.lane]), [['waiting', 0, 1, 0], ['unready', 1, 6, 0], ['waiting', 5, 9, 1]]);
    same('lanes', n, 2);
    const x = scale([0, 1000, 100000], 100);
    same('scale', [x(0), x(100000), x(1000) > 10], [0, 100, true]);
  }

  same('difference', difference({ a: 1, b: { c: [1, 2] }, d: 'x' }, { a: 1, b: { c: [1, 3, 4] }, e: null }),
    [{ path: 'b.c[1]', before: '2', after: '3' }, { path: 'b.c[2]', before: '–', after: '4' }, { path: 'd', before: '"x"', after: '–' }, { path: 'e', before: '–', after: 'null' }]);
  // Text of others stays one line, and runs the way ours does.
  same('plain', plain('a\nb\u202ec<b>\u2067'), 'a\\u000ab\\u202ec<b>\\u2067');
  same('plain text of nothing', plain(undefined), '');
  for (const [routes, want] of [[[{ hostnames: ['a', 'b'] }, { hostname: 'c' }], 'a, b; c'], [{ hostnames: 'a' }, 'a'], [[{ hostname: { toString: 1 } }], '{"hostname":{"toString":1}}'], [null, 'null'], [[1, 'x', null], '1; x; null'], [{ hostnames: [{}, 5] }, '{"hostnames":[{},5]}']])
    same('routes', routeText(routes), want);

  // What is looked for is part of a name, the key of a label, or a selector.
  for (const [text, labels, want] of [['', undefined, true], ['Blog', {}, true], ['shop', {}, false], ['team', { team: 'x' }, true], ['constructor', undefined, false], ['team=blog', { team: 'blog' }, true], ['team=blog', { team: 'shop' }, false], ['team=blog', undefined, false],
    ['team!=blog', undefined, true], ['team!=blog', { team: 'blog' }, false], ['!tier', { team: 'blog' }, true], ['!tier', { tier: '' }, false], ['team=', { team: '' }, true], [' team = blog , !tier', { team: 'blog' }, true], ['team,tier', { team: 'blog' }, false], ['a.b/c:d@e=f', { 'a.b/c:d@e': 'f' }, true]])
    same(`${text} of ${JSON.stringify(labels)}`, chooser(text)(labels, 'my-blog', undefined), want);

  same('milliseconds', ['5s', '1m30s', '200ms', '', null].map(milliseconds), [5000, 90000, 200, 0, 0]);

  // A list is whole, or it fails; and what is not read to its end is closed.
  {
    const list = async (...lines) => {
      const out = { items: [], fault: '', closed: false };
      const body = new ReadableStream({ start(to) { for (const l of lines) to.enqueue(new TextEncoder().encode(l + '\n')); if (lines.at(-1)?.includes('end')) to.close(); }, cancel() { out.closed = true; } });
      await each(new Response(body), i => { if (i === 'bad') throw new Error('bad'); out.items.push(i); }).catch(err => { out.fault = err.message; });
      return out;
    };
    same('a list', await list('{"item":1}', '{"problem":{"type":"urn:diego:problem:corrupt","status":500}}', '', '{"item":2}', '{"end":3}'), { items: [1, 2], fault: '', closed: false });
    same('a list that ended early', (await list('{"item":1}', '{"problem":{"type":"urn:diego:problem:timeout","status":504,"detail":"too slow"}}', '{"end":2}')).fault, 'too slow');
    same('a list that nobody reads on', await list('{"item":1}', '{"item":"bad"}'), { items: [1], fault: 'bad', closed: true });
  }

  // What is read together ends together.
  {
    const end = new AbortController(), seen = [];
    const waits = signal => new Promise(done => signal.addEventListener('abort', () => { seen.push('ended'); done(); }));
    same('together', [await together([waits, () => Promise.reject(new Error('first'))], end.signal).catch(err => err.message), seen], ['first', ['ended']]);
    const all = together([waits, waits], end.signal).then(() => 'all');
    end.abort();
    same('ended together', [await all, seen.length], ['all', 3]);
  }

  // What is read again while it is being read is read once more afterwards.
  {
    const answers = [], got = [], end = new AbortController();
    const again = repeat(() => new Promise(done => answers.push(done)), 0, data => got.push(data), end.signal);
    again(); again();
    for (const turn of [1, 2]) {
      answers.shift()(turn);
      await new Promise(done => setTimeout(done));
    }
    same('reads', [got, answers.length], [[1, 2], 0]);
    again();
    end.abort();
    answers.shift()(3);
    await new Promise(done => setTimeout(done));
    same('reads after the end', got, [1, 2]);
  }

  // A page that is out of sight does not follow, and goes on when it is seen again.
  {
    const hide = hidden => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    };
    const end = new AbortController(), steps = [];
    let next;
    const step = () => new Promise(done => { next = done; });
    const begun = step();
    const whole = whileSeen(signal => new Promise((_, fail) => {
      steps.push('follows');
      signal.addEventListener('abort', () => { steps.push('ends'); fail(new Error('cut')); next(); });
      next();
    }), end.signal, 0);
    await begun;
    let wait = step();
    hide(true);
    await wait;
    same('out of sight', steps, ['follows', 'ends']);
    await new Promise(done => setTimeout(done));
    wait = step();
    hide(false);
    await wait;
    same('seen again', steps, ['follows', 'ends', 'follows']);
    delete document.hidden;
    const fault = whole.catch(err => err.message);
    end.abort();
    same('ended', [await fault, steps.at(-1)], ['cut', 'ends']);
  }
  return failures;
})()
