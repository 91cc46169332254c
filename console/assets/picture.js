// The picture of the fleet on a canvas. Only cells that changed are drawn again,
// and no turn takes much longer than its budget.

import { boxes, tiles, toScale } from './layout.js';
import { coloursOf, link } from './parts.js';
import { lookOf, memoryOf, reservedOf, shown, store } from './store.js';
import { allLooks, cellStates, lookText, mib, percent, plain, plural, share } from './text.js';

const budget = 9, mostBudget = 60, firstBudget = 250; // ms of drawing in one frame; the first picture may take more
const waitingHeight = 34, waitingTile = 10;
const inside = 3, gauge = 3;

// leastMemory is what the smallest instances reserve, in MiB.
function leastMemory(fleet) {
  let least = Infinity;
  for (const p of fleet.processes.values()) {
    const memory = p.sizes[p.active]?.memory_mb;
    if (memory > 0) least = Math.min(least, memory);
  }
  return least;
}

export class Picture {
  constructor(canvas, tip, drawn) {
    Object.assign(this, { canvas, tip, drawn, context: canvas.getContext('2d', { alpha: false }), plan: null, byID: new Map(), dirty: new Map(), lit: null, at: '', asked: 0, began: Infinity, width: 0 });
    this.colours();
    this.off = [];
    const on = (target, name, f) => { target.addEventListener(name, f); this.off.push(() => target.removeEventListener(name, f)); };
    on(window, 'theme', () => { this.colours(); this.layout(); });
    on(canvas, 'mousemove', e => this.hover(e));
    on(canvas, 'mouseleave', () => this.hideTip());
    on(canvas, 'click', e => this.click(e));
    on(canvas, 'keydown', e => this.key(e));
    on(canvas, 'blur', () => this.select(''));
    const resized = new ResizeObserver(() => { if (canvas.parentElement.clientWidth !== this.width) this.layout(); });
    resized.observe(canvas.parentElement);
    this.off.push(() => resized.disconnect());
    this.layout();
  }

  end() {
    cancelAnimationFrame(this.asked);
    for (const off of this.off) off();
  }

  // colours reads the colours of the style sheet, which depend on the theme.
  colours() {
    this.colour = coloursOf([...allLooks, 'task', 'page', 'box', 'line', 'text', 'quiet', 'accent', 'warn', 'bad']);
    this.font = getComputedStyle(document.body).fontFamily;
  }

  light(lit) {
    this.lit = lit;
    this.all();
  }

  changed(delta) {
    if (delta.all || delta.layout || !this.plan) return this.layout();
    for (const id of delta.cells) {
      if (id && !this.byID.has(id)) return this.layout(); // a cell that nobody knew
      this.soil(id, delta.at);
    }
    if (this.dirty.size && !this.asked) this.draw();
  }

  layout() {
    const { canvas } = this, cells = [...store.fleet.cells.values()];
    this.width = canvas.parentElement.clientWidth;
    if (!this.width || !store.loaded && cells.length === 0) return;
    const plan = this.plan = boxes(cells, this.width, innerHeight);
    this.scaled = toScale(plan, leastMemory(store.fleet));
    for (const box of plan.boxes) box.y += waitingHeight;
    for (const zone of plan.zones) zone.y += waitingHeight;
    this.byID = new Map(plan.boxes.map(b => [b.id, b]));
    const scale = Math.min(2, devicePixelRatio || 1), height = plan.height + waitingHeight;
    canvas.width = Math.round(this.width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = this.width + 'px';
    canvas.style.height = height + 'px';
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.fillStyle = this.colour.page;
    this.context.fillRect(0, 0, this.width, height);
    for (const zone of plan.zones) this.drawZone(zone);
    this.all();
  }

  all() {
    for (const id of ['', ...this.byID.keys()]) this.soil(id);
    this.ask();
  }

  // soil marks what has to be drawn again. at is the time of the first event since
  // it was drawn, or 0.
  soil(id, at = 0) {
    if (!this.dirty.get(id)) this.dirty.set(id, at);
  }

  ask() {
    if (!this.asked) this.asked = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.asked = 0;
    // A browser that makes few frames has to draw more in each, or falls behind.
    const began = performance.now(), until = began + (this.drawn ? firstBudget : Math.max(budget, Math.min(mostBudget, (began - this.began) / 2)));
    this.began = began;
    let oldest = 0;
    for (const [id, at] of this.dirty) {
      this.dirty.delete(id);
      if (at && (!oldest || at < oldest)) oldest = at;
      if (id === '') this.drawWaiting();
      else if (this.byID.has(id)) this.drawCell(this.byID.get(id), store.fleet.cells.get(id));
      if (performance.now() > until) break;
    }
    if (oldest) shown(oldest);
    if (this.dirty.size) return this.ask();
    this.began = Infinity; // the next frame comes of itself, however long that takes
    if (this.plan && store.loaded && this.drawn) {
      store.stats.firstPictureMs ||= Math.round(performance.now());
      this.drawn();
      this.drawn = null;
    }
  }

  drawZone({ zone, y, cells }) {
    const { context: c, colour } = this;
    c.textBaseline = 'middle';
    c.fillStyle = colour.text;
    c.font = `600 13px ${this.font}`;
    const name = zone || 'no zone';
    c.fillText(name, 0, y + 14);
    c.fillStyle = colour.quiet;
    const at = c.measureText(name).width + 10;
    c.font = `12px ${this.font}`;
    c.fillText(`${plural(cells.length, 'cell')}, ${mib(cells.reduce((sum, cell) => sum + (cell.total?.memory_mb || 0), 0))}`, at, y + 14);
  }

  // drawWaiting draws the instances that are on no cell.
  drawWaiting() {
    const { context: c, colour, width } = this, { waiting } = store.fleet;
    c.fillStyle = colour.page;
    c.fillRect(0, 0, width, waitingHeight);
    c.textBaseline = 'middle';
    c.font = `12px ${this.font}`;
    c.fillStyle = colour.quiet;
    const text = waiting.size ? `On no cell: ${waiting.size}` : 'Every instance is on a cell.';
    c.fillText(text, 0, 13);
    this.waitingAt = c.measureText(text).width + 10;
    const most = Math.floor((width - this.waitingAt - 60) / (waitingTile + 1));
    this.waitingShown = [...waiting.values()].slice(0, Math.max(0, most));
    this.waitingShown.forEach((r, i) => this.drawTile(r, { x: this.waitingAt + i * (waitingTile + 1), y: 8, w: waitingTile, h: waitingTile }));
    if (waiting.size > this.waitingShown.length) {
      c.fillStyle = colour.quiet;
      c.fillText(`+${waiting.size - this.waitingShown.length}`, width - 50, 13);
    }
  }

  // area is where the tiles of a box are.
  area(box) {
    const head = this.plan.head;
    return { x: box.x + inside, y: box.y + head + (head ? 0 : inside), w: box.w - 2 * inside, h: box.h - head - gauge - inside - (head ? 1 : inside) };
  }

  // contents lists what is on a cell, and where each is drawn.
  contents(box, cell) {
    const things = [...cell.records.values()].sort((a, b) => a.process_guid < b.process_guid ? -1 : a.process_guid > b.process_guid ? 1 : a.index - b.index);
    const weights = things.map(r => memoryOf(store.fleet, r));
    for (const t of cell.tasks.values()) {
      things.push(t);
      weights.push(t.memory_mb || 0);
    }
    const area = this.area(box);
    const places = tiles(weights, this.scaled && cell.total?.memory_mb, area.w, area.h);
    return things.map((thing, i) => ({ thing, at: places[i] && { x: area.x + places[i].x, y: area.y + places[i].y, w: places[i].w, h: places[i].h } }));
  }

  drawCell(box, cell) {
    const { context: c, colour } = this;
    if (!cell) return;
    const { x, y, w, h } = box, head = this.plan.head;
    const states = cellStates(cell), worst = !cell.present || cell.error || cell.unhealthy ? 'bad' : states.length ? 'warn' : '';
    c.fillStyle = colour.page;
    c.fillRect(x - 2, y - 2, w + 4, h + 4);
    c.fillStyle = colour.box;
    c.fillRect(x, y, w, h);
    c.save();
    c.beginPath();
    c.rect(x, y, w, h);
    c.clip();
    if (head) {
      c.font = `600 12px ${this.font}`;
      c.textBaseline = 'middle';
      c.fillStyle = colour.text;
      c.fillText(cell.cell_id, x + 6, y + 11, w - 12);
      const used = c.measureText(cell.cell_id).width;
      c.font = `11px ${this.font}`;
      c.fillStyle = worst ? colour[worst] : colour.quiet;
      const said = states.join(', ') || (cell.total ? mib(cell.total.memory_mb) : '');
      const long = c.measureText(said).width;
      if (used + long + 20 < w) c.fillText(said, x + w - 6 - long, y + 11);
    }
    for (const { thing, at } of this.contents(box, cell)) if (at) this.drawTile(thing, at);
    const full = share(reservedOf(store.fleet, cell), cell.total?.memory_mb);
    c.fillStyle = colour.line;
    c.fillRect(x, y + h - gauge, w, gauge);
    c.fillStyle = full > 0.9 ? colour.warn : colour.accent;
    c.fillRect(x, y + h - gauge, w * full, gauge);
    c.restore();
    c.lineWidth = worst || this.at === box.id ? 2 : 1;
    c.strokeStyle = this.at === box.id ? colour.accent : worst ? colour[worst] : colour.line;
    if (cell.evacuating || cell.cordoned) c.setLineDash([5, 3]);
    c.strokeRect(x + 0.5 - (c.lineWidth === 2 ? 0.5 : 0), y + 0.5 - (c.lineWidth === 2 ? 0.5 : 0), w - 1 + (c.lineWidth === 2 ? 1 : 0), h - 1 + (c.lineWidth === 2 ? 1 : 0));
    c.setLineDash([]);
  }

  // drawTile draws an instance or a task. Its shape says what the colour says.
  drawTile(thing, { x, y, w, h }) {
    const { context: c, colour } = this, task = thing.task_guid !== undefined, look = task ? 'task' : lookOf(thing);
    const edge = Math.min(w, h) >= 9 ? 2 : Math.min(w, h) > 2 ? 1 : 0;
    w -= edge; h -= edge;
    c.globalAlpha = this.lit && (task || !this.lit(thing)) ? 0.12 : 1;
    c.fillStyle = colour[look];
    if (Math.min(w, h) < 6) c.fillRect(x, y, w, h);
    else if (look === 'suspect' || look === 'starting' || look === 'stopping' || look === 'waiting' || look === 'unplaced') {
      c.strokeStyle = colour[look];
      c.lineWidth = 2;
      c.strokeRect(x + 1, y + 1, w - 2, h - 2);
      if (look === 'suspect' || look === 'unplaced') this.cross(x, y, w, h);
      else if (look === 'starting') c.fillRect(x, y + h - Math.min(5, h / 2), w, Math.min(5, h / 2));
      else if (look === 'stopping') c.fillRect(x, y, w, Math.min(5, h / 2));
    } else if (look === 'evacuating') {
      c.beginPath();
      c.moveTo(x, y); c.lineTo(x + w, y); c.lineTo(x, y + h);
      c.fill();
      c.strokeStyle = colour[look];
      c.lineWidth = 1;
      c.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    } else {
      c.fillRect(x, y, w, h);
      if (look === 'crashed') { c.strokeStyle = colour.box; this.cross(x, y, w, h); }
    }
    if (h >= 15 && w >= 46) {
      c.save();
      c.beginPath();
      c.rect(x, y, w - 3, h);
      c.clip();
      c.font = `11px ${this.font}`;
      c.textBaseline = 'middle';
      c.fillStyle = look === 'running' || look === 'task' || look === 'crashed' ? '#fff' : colour.text;
      c.fillText(task ? thing.task_guid : `${thing.process_guid}/${thing.index}`, x + 5, y + Math.min(h / 2, 12));
      c.restore();
    }
    c.globalAlpha = 1;
  }

  cross(x, y, w, h) {
    const { context: c } = this, side = Math.min(w, h, 10) / 2 - 1, mx = x + w / 2, my = y + h / 2;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(mx - side, my - side); c.lineTo(mx + side, my + side);
    c.moveTo(mx + side, my - side); c.lineTo(mx - side, my + side);
    c.stroke();
  }

  // find is what is at a point: a cell, and a thing on it.
  find(e) {
    const { left, top } = this.canvas.getBoundingClientRect(), x = e.clientX - left, y = e.clientY - top;
    const within = at => at && x >= at.x && x < at.x + at.w && y >= at.y && y < at.y + at.h;
    if (!this.plan) return {};
    if (y < waitingHeight) return { x, y, thing: this.waitingShown?.[Math.floor((x - this.waitingAt) / (waitingTile + 1))] };
    const box = this.plan.boxes.find(within);
    if (!box) return {};
    const cell = store.fleet.cells.get(box.id);
    return { x, y, box, cell, thing: cell && this.contents(box, cell).find(({ at }) => within(at))?.thing };
  }

  hover(e) {
    const { x, y, cell, thing } = this.find(e);
    this.canvas.style.cursor = cell || thing ? 'pointer' : '';
    if (!cell && !thing) return this.hideTip();
    this.showTip(x, y, [...(thing ? this.sayThing(thing) : []), ...(cell ? this.sayCell(cell) : [])]);
  }

  sayThing(t) {
    if (t.task_guid !== undefined) return [`task ${t.task_guid}`, `${t.state.toLowerCase()}, ${mib(t.memory_mb)}`];
    const size = memoryOf(store.fleet, t);
    return [`${t.process_guid}/${t.index}`, [lookText(lookOf(t)), size ? mib(size) : '', t.crash_count ? plural(t.crash_count, 'crash', 'crashes') : '', t.placement_error].filter(s => s).join(', ')];
  }

  sayCell(cell) {
    const full = reservedOf(store.fleet, cell), total = cell.total?.memory_mb;
    return [`${cell.cell_id}${cell.zone ? ' in ' + cell.zone : ''}${cellStates(cell).map(s => ', ' + s).join('')}`,
      `${plural(cell.records.size, 'instance')}, ${plural(cell.tasks.size, 'task')}; ${mib(full)} of ${mib(total)} reserved (${percent(share(full, total))})`];
  }

  // showTip tells a screen reader only what the keyboard has asked for.
  showTip(x, y, texts, aloud = false) {
    const { tip } = this;
    tip.setAttribute('aria-live', aloud ? 'polite' : 'off');
    tip.replaceChildren(...texts.map((text, i) => Object.assign(document.createElement('div'), { textContent: plain(text), className: i % 2 ? 'quiet' : '' })));
    tip.hidden = false;
    tip.style.left = Math.min(x + 14, Math.max(0, this.width - tip.offsetWidth - 8)) + 'px';
    tip.style.top = y + 16 + 'px';
  }

  hideTip() { this.tip.hidden = true; }

  click(e) {
    const { cell, thing } = this.find(e);
    if (thing?.task_guid !== undefined) location.hash = link('task', thing.task_guid);
    else if (thing) location.hash = link('process', thing.process_guid, String(thing.index));
    else if (cell) location.hash = link('cell', cell.cell_id);
  }

  // key moves from box to box: to the nearest one in the direction of the arrow.
  key(e) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (e.key === 'Enter' && this.at) location.hash = link('cell', this.at);
    if (e.key === 'Escape') this.select('');
    if (!ways[e.key] || !this.plan?.boxes.length) return;
    e.preventDefault();
    const from = this.byID.get(this.at), [dx, dy] = ways[e.key];
    if (!from) return this.select(this.plan.boxes[0].id);
    const middle = b => [b.x + b.w / 2, b.y + b.h / 2], [fx, fy] = middle(from);
    let best = null, least = Infinity;
    for (const b of this.plan.boxes) {
      const [x, y] = middle(b), ahead = (x - fx) * dx + (y - fy) * dy, aside = Math.abs((x - fx) * dy) + Math.abs((y - fy) * dx);
      if (ahead > 1 && ahead + 3 * aside < least) {
        least = ahead + 3 * aside;
        best = b;
      }
    }
    if (best) this.select(best.id);
  }

  select(id) {
    for (const touched of [this.at, id]) if (touched) this.soil(touched);
    this.at = id;
    this.ask();
    const box = this.byID.get(id), cell = store.fleet.cells.get(id);
    if (!box || !cell) return this.hideTip();
    this.showTip(box.x, box.y + box.h - 14, this.sayCell(cell), true);
  }
}
