// What texts of the control plane say in numbers, so that they can be drawn. A
// text that says nothing of the kind gives null and is shown as it is.

// Texts of cells and consumers end up in these, so no expression may try many ways
// to read one text.

// placement reads the parts of a score at the end of why a cell was chosen:
// "score 0.2580, fewest of its process: 0 against 1 on cell-2; parts against
// cell-2: of its process on the cell 0/1, memory in use 0.25/0.5". Without a
// runner-up there is one number of each. head is the text before the parts.
export function placement(text) {
  const at = (text || '').lastIndexOf('; parts'), m = at < 0 ? null : /^; parts(?: against (\S+))?: (.+)$/.exec(text.slice(at));
  if (!m) return null;
  const parts = m[2].split(', ').map(part => /^([a-z][a-z ]*) (-?[\d.e+-]+)(?:\/(-?[\d.e+-]+))?$/.exec(part)).filter(x => x);
  return { head: text.slice(0, at), other: m[1] || '', parts: parts.map(([, by, won, lost]) => ({ by, won: Number(won), lost: lost === undefined ? null : Number(lost) })) };
}

// refusal reads why nothing was found: "insufficient resources: of 12 cells 2
// evacuating, 10 short of memory; the nearest, cell-4, lacks 12 MiB of memory".
export function refusal(text) {
  const m = /of (\d+) cells? (\d+ [^,;]+(?:, \d+ [^,;]+)*)(?:; the nearest, (\S+), lacks (.+))?$/.exec(text || '');
  if (!m) return null;
  const reasons = m[2].split(', ').map(part => /^(\d+) (.+)$/.exec(part)).filter(x => x).map(x => ({ reason: x[2], cells: Number(x[1]) }));
  return { cells: Number(m[1]), reasons, nearest: m[3] ? { cell: m[3], lacks: m[4] } : null };
}

// lanes draws a timeline: what each record at an index was from when to when. A
// record that overlaps another gets a lane of its own. Times are in ms.
export function lanes(entries, lookOf, now) {
  const open = new Map(), bars = [];
  const end = (epoch, at) => {
    const bar = open.get(epoch);
    if (bar) bar.to = at;
    open.delete(epoch);
  };
  for (const { at: text, event } of entries) {
    if (!/^actual_lrp_instance_/.test(event?.kind)) continue; // a session has no event
    const at = Date.parse(text), { before, after } = event;
    if (before) end(before.modification_tag.epoch, at);
    if (!after) continue;
    const epoch = after.modification_tag.epoch, bar = { epoch, look: lookOf(after), record: after, from: at, to: now };
    open.set(epoch, bar);
    bars.push(bar);
  }
  const free = [], lane = new Map(); // per lane: until when it is taken
  for (const bar of bars) {
    if (!lane.has(bar.epoch)) {
      let i = free.findIndex(until => until <= bar.from);
      if (i < 0) i = free.length;
      lane.set(bar.epoch, i);
    }
    bar.lane = lane.get(bar.epoch);
    free[bar.lane] = bar.to;
  }
  return { bars, lanes: free.length };
}

// scale maps times to places so that short and long spans can both be seen: each
// span between two marks takes a part that grows with its logarithm.
export function scale(times, width) {
  const marks = [...new Set(times)].sort((a, b) => a - b), at = new Map();
  let sum = 0;
  marks.forEach((t, i) => {
    if (i > 0) sum += 0.6 + Math.log2(1 + (t - marks[i - 1]) / 1000);
    at.set(t, sum);
  });
  return t => sum ? at.get(t) / sum * width : 0;
}
