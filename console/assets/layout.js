// Where things are drawn on the picture of the fleet. Pure functions: numbers in,
// rectangles out.

const gap = 6, zoneHead = 26, zoneGap = 10;

// heightOf is how high each cell's box is, so that a fleet of n cells fills the
// width and about one screen, with bounds that keep it readable.
function heightOf(n, width, screen) {
  const each = width * screen * 0.8 / Math.max(1, n);
  return Math.round(Math.min(190, Math.max(30, Math.sqrt(each / 1.3))));
}

const median = list => list.length ? list.slice().sort((a, b) => a - b)[list.length >> 1] : 0;
const byName = (a, b) => a < b ? -1 : a > b ? 1 : 0;

const shareOf = (c, middle) => Math.min(4, Math.max(0.4, (c.total?.memory_mb || middle) / middle));

// boxes places the cells by zone. All boxes are equally high; their widths are
// in proportion to the cells' memory, within bounds.
export function boxes(cells, width, screen) {
  const zones = new Map();
  for (const c of cells) {
    if (!zones.has(c.zone)) zones.set(c.zone, []);
    zones.get(c.zone).push(c);
  }
  const middle = median(cells.map(c => c.total?.memory_mb || 0)) || 1;
  const h = heightOf(cells.length, width, screen), head = h >= 70 ? 20 : 0;
  const out = { boxes: [], zones: [], height: 0, head, boxHeight: h, middle };
  // A few cells share the width; many keep their shape.
  const stretches = [...zones.values()].map(here => (width - gap * (here.length - 1)) / here.reduce((sum, c) => sum + h * 1.3 * shareOf(c, middle), 0));
  const stretch = Math.min(2.4, Math.max(1, Math.min(...stretches)));
  let y = 0;
  for (const zone of [...zones.keys()].sort(byName)) {
    const here = zones.get(zone).sort((a, b) => byName(a.cell_id, b.cell_id));
    out.zones.push({ zone, y, cells: here });
    y += zoneHead;
    let x = 0;
    for (const c of here) {
      const w = Math.min(width, Math.floor(h * 1.3 * shareOf(c, middle) * stretch));
      if (x > 0 && x + w > width) {
        x = 0;
        y += h + gap;
      }
      out.boxes.push({ id: c.cell_id, x, y, w, h });
      x += w + gap;
    }
    y += h + gap + zoneGap;
  }
  out.height = y;
  return out;
}

const least = 40; // px²: the area of a tile that is in proportion

// toScale reports whether a tile for the least of weights, all above 0, can be
// seen on boxes that are in proportion.
export const toScale = (plan, weight) => plan.head > 0 && weight * plan.boxHeight * plan.boxHeight * 1.3 / plan.middle >= least;

// tiles places items, each with a weight, in an area of w × h that stands for
// room. Areas are in proportion to the weights, so that what stays empty is what is
// free. Without a room, all tiles are equal.
export function tiles(weights, room, w, h) {
  if (weights.length === 0 || w < 2 || h < 2) return [];
  return room ? inProportion(weights, room, w, h) : equal(weights.length, w, h);
}

function inProportion(weights, room, w, h) {
  weights = weights.map(v => Math.max(v, room * least / (w * h)));
  const sum = weights.reduce((a, b) => a + b, 0);
  room = Math.max(room, sum); // of a cell that has more than it should
  const each = w * h / room;
  // A mean tile is wide enough for its name. Rows of one height leave some room at
  // their ends; where there is none to leave, each row is as high as it must be.
  const rows = Math.max(1, Math.round(h / Math.sqrt(sum / weights.length * each / 2.5)));
  return sameRows(weights, each, w, h, rows) || fullRows(weights, sum, each, w, h, Math.max(1, Math.round(rows * sum / room)));
}

function sameRows(weights, each, w, h, rows) {
  const high = h / rows, out = [];
  let x = 0, n = 0;
  for (const v of weights) {
    const wide = v * each / high;
    if (x > 0 && x + wide > w + 0.5) {
      x = 0;
      n++;
    }
    if (n >= rows || wide > w) return null;
    out.push({ x, y: h - (n + 1) * high, w: wide, h: high });
    x += wide;
  }
  return out;
}

function fullRows(weights, sum, each, w, h, rows) {
  const out = [];
  let y = h;
  for (let from = 0, to = 0; from < weights.length; from = to) {
    let row = 0;
    do row += weights[to++]; while (to < weights.length && row + weights[to] / 2 <= sum / rows);
    const high = row * each / w;
    y -= high;
    let x = 0;
    for (let i = from; i < to; i++) {
      const wide = weights[i] * each / high;
      out.push({ x, y, w: wide, h: high });
      x += wide;
    }
  }
  return out;
}

function equal(n, w, h) {
  let side = Math.min(9, Math.floor(Math.sqrt(w * h / n)));
  while (side > 1 && Math.floor(w / side) * Math.floor(h / side) < n) side--;
  side = Math.max(side, 1);
  const across = Math.max(1, Math.floor(w / side)), out = [];
  for (let i = 0; i < n; i++) out.push({ x: i % across * side, y: h - (Math.floor(i / across) + 1) * side, w: side, h: side });
  return out;
}
