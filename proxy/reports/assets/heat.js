// The heat map: event types down, time across, the colour says how long the slowest in a hundred took to be confirmed.

const ROW_HEIGHT = 16;
const SHADES = 64;

/** Colours from little to much, from the stops of page.css; read anew when the page turns light or dark. */
function scaleOfColours() {
  const stops = [0, 1, 2, 3, 4].map((i) => colour(`heat-${i}`).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16)));
  return Array.from({ length: SHADES }, (_, shade) => {
    const place = (shade / (SHADES - 1)) * (stops.length - 1);
    const at = Math.min(Math.floor(place), stops.length - 2);
    return `rgb(${stops[at].map((from, i) => Math.round(from + (stops[at + 1][i] - from) * (place - at))).join(' ')})`;
  });
}

/** One run's cells. */
class HeatMap {
  constructor(timeline, run) {
    this.timeline = timeline;
    this.heat = timeline.report.heat;
    this.run = run;
    this.cells = this.heat.cells[run];
    this.canvas = element('canvas', { role: 'img', 'aria-label': `Bridge time P99 of ${this.heat.types.length} event types over time` });
    this.line = element('div', { class: 'crossline', hidden: true });
    this.holder = element('div', { class: 'cells', style: `height: ${this.heat.types.length * ROW_HEIGHT}px` }, this.canvas, this.line);
    this.said = element('output', { class: 'at' });
    const names = this.heat.types.map((one) => this.nameOf(one));
    const name = timeline.report.runs.length > 1 ? timeline.report.runs[run].name : '';
    const list = element('ol', { class: 'types', style: `--row: ${ROW_HEIGHT}px` }, ...names);
    this.element = element('figure', { class: 'heat' }, element('figcaption', {}, name, this.said), element('div', { class: 'map' }, list, this.holder));
    this.holder.addEventListener('pointermove', (event) => this.onPointer(event));
    this.holder.addEventListener('pointerleave', () => { this.said.textContent = ''; timeline.point(null); });
    new ResizeObserver(() => this.draw()).observe(this.holder);
    timeline.followers.push((at) => this.follow(at));
  }

  /** A type's name, with its class in the colour of that. */
  nameOf({ type, class: name }) {
    const number = this.timeline.report.classes.indexOf(name) % 6;
    return element('li', { title: `${type} (${name})` }, element('b', { style: `--swatch: var(--class-${number})` }, name), ` ${type}`);
  }

  /** Draw all cells as wide as there is room. */
  draw() {
    const { clientWidth: width, clientHeight: height } = this.holder;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    const context = this.canvas.getContext('2d');
    context.scale(ratio, ratio);
    const colours = scaleOfColours();
    const [least, most] = this.heat.reach.map((value) => Math.log(Math.max(value, LEAST_MS)));
    for (const [row, column, p99] of this.cells) {
      const left = this.leftOf(column, width);
      const share = most > least ? (Math.log(Math.max(p99, LEAST_MS)) - least) / (most - least) : 0;
      context.fillStyle = colours[Math.round(Math.min(1, Math.max(0, share)) * (SHADES - 1))];
      context.fillRect(left, row * ROW_HEIGHT + 1, this.leftOf(column + 1, width) - left, ROW_HEIGHT - 2);
    }
  }

  /** Where a column begins. */
  leftOf(column, width) {
    const [from, to] = this.timeline.whole;
    return Math.round(((column * this.heat.width_s - from) / (to - from)) * width);
  }

  /** Say what lies under the pointer, and move the crosshair of the pictures there. */
  onPointer(event) {
    const box = this.holder.getBoundingClientRect();
    const [from, to] = this.timeline.whole;
    const at = from + ((event.clientX - box.left) / box.width) * (to - from);
    const row = Math.floor((event.clientY - box.top) / ROW_HEIGHT);
    const column = Math.floor(at / this.heat.width_s);
    const cell = this.cells.find(([r, c]) => r === row && c === column);
    const { report } = this.timeline;
    const index = Math.min(report.points - 1, Math.max(0, Math.floor(at / report.width_s) - report.first));
    this.timeline.point(index);
    const type = this.heat.types[row];
    if (!type) return;
    const what = cell ? `P99 ${milliseconds(cell[2])}, ${count(cell[3])} events` : 'nothing confirmed';
    this.said.textContent = `${type.type} \u00b7 ${this.timeline.instant(column * this.heat.width_s, report.runs[this.run])} \u00b7 ${what}`;
  }

  /** Put the crosshair where that of the pictures is. */
  follow(at) {
    this.line.hidden = at === null;
    if (at === null) return;
    const [from, to] = this.timeline.whole;
    this.line.style.left = `${(100 * (at - from)) / (to - from)}%`;
  }
}

/** The section of the heat map; null if there is none. */
function heatSection(timeline) {
  const { heat, runs } = timeline.report;
  if (!heat) return null;
  const maps = runs.map((_, run) => new HeatMap(timeline, run));
  const more = heat.total > heat.types.length ? `The slowest of each class, ${heat.types.length} of ${count(heat.total)} event types. ` : '';
  const note = `${more}Bridge time P99 of what was confirmed in each ${seconds(heat.width_s)}; empty: nothing was.`;
  const scale = element('div', { class: 'scale' }, milliseconds(heat.reach[0]), element('i', {}), milliseconds(heat.reach[1]));
  const made = section('heat', 'Event types over time', note, scale, element('div', { class: 'panels' }, ...maps.map((map) => map.element)));
  return [made, maps];
}
