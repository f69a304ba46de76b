// Curves of the last ten minutes, on a scale on which 10 and 10,000 can both be read.

const SPAN_MS = 600_000;
const HEIGHT = 132;
const MARGIN = { left: 46, right: 8, top: 8, bottom: 20 };

/** One picture: `unit` is where the scale turns from even to logarithmic, `series(point)` gives a value per line. */
class Curves {
  constructor(title, unit, ticks, written, names, series, colours) {
    Object.assign(this, { title, unit, ticks, written, names, series, colours });
    this.canvas = element('canvas', { role: 'img' });
    this.keys = names.map((name, i) => element('span', { class: `key ${colours}-${i % 6}` }, element('i'), element('span')));
    this.width = 0; // as was told last, for asking would lay out the page anew
    new ResizeObserver(() => { this.width = this.canvas.clientWidth; if (this.drawn) this.draw(...this.drawn); }).observe(this.canvas);
    this.figure = element('figure', {}, element('figcaption', {}, element('h3', {}, title), ...this.keys), this.canvas);
  }

  /** Draw the points, of which the last was told at `now`. */
  draw(points, now) {
    this.drawn = [points, now];
    const { canvas, width } = this;
    if (!width) return;
    const dots = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dots)) {
      canvas.width = Math.round(width * dots);
      canvas.height = Math.round(HEIGHT * dots);
    }
    const lines = this.names.map(() => []);
    let most = this.ticks[1];
    for (const point of points) {
      this.series(point).forEach((value, i) => {
        lines[i]?.push([point[0], value]);
        if (value > most) most = value;
      });
    }
    const pen = canvas.getContext('2d');
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, width, HEIGHT);
    const high = this.scaled(most * 1.15);
    const x = (ms) => MARGIN.left + (width - MARGIN.left - MARGIN.right) * (1 - (now - ms) / SPAN_MS);
    const y = (value) => HEIGHT - MARGIN.bottom - ((HEIGHT - MARGIN.top - MARGIN.bottom) * this.scaled(value)) / high;
    this.axes(pen, width, x, y, now, high);
    lines.forEach((line, i) => this.line(pen, line, x, y, colour(`${this.colours}-${i % 6}`)));
    const last = this.series(points[points.length - 1] ?? [now, [], []]);
    this.keys.forEach((key, i) => write(key.lastChild, `${this.names[i]} ${this.written(last[i] ?? null)}`));
    mark(canvas, 'aria-label', `${this.title} in the last ten minutes; now ${this.keys.map((key) => key.textContent).join(', ')}`);
  }

  scaled(value) {
    return Math.log1p(value / this.unit);
  }

  axes(pen, width, x, y, now, high) {
    const [soft, thin] = [colour('soft'), colour('line')];
    pen.font = '11px system-ui, sans-serif';
    pen.fillStyle = soft;
    pen.strokeStyle = thin;
    pen.lineWidth = 1;
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    let above = Infinity;
    for (const tick of this.ticks) {
      const at = Math.round(y(tick)) + 0.5;
      if (this.scaled(tick) > high || above - at < 15) continue;
      above = at;
      pen.beginPath();
      pen.moveTo(MARGIN.left, at);
      pen.lineTo(width - MARGIN.right, at);
      pen.stroke();
      pen.fillText(this.written(tick), MARGIN.left - 6, at);
    }
    pen.textBaseline = 'alphabetic';
    for (const minutes of [10, 5, 0]) {
      pen.textAlign = { 10: 'left', 5: 'center', 0: 'right' }[minutes];
      pen.fillText(clock(now - minutes * 60_000).slice(0, 5), x(now - minutes * 60_000), HEIGHT - 4);
    }
  }

  line(pen, points, x, y, stroke) {
    pen.strokeStyle = stroke;
    pen.lineWidth = 1.8;
    pen.lineJoin = 'round';
    pen.beginPath();
    let is_down = false;
    let before = 0;
    for (const [ms, value] of points) {
      if (value === null || value === undefined) is_down = false;
      else if (is_down && ms - before < 5_000) pen.lineTo(x(ms), y(value));
      else pen.moveTo(x(ms), y(value));
      is_down ||= value !== null && value !== undefined;
      before = ms;
    }
    pen.stroke();
  }
}

const EVENT_TICKS = [0, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const SECOND_TICKS = [0, 0.1, 1, 10, 60, 600, 3_600, 36_000];

/** A number of events as short as an axis needs it. */
function shortCount(value) {
  if (value === null || value < 10_000) return count(value);
  return value < 1e6 ? `${Number((value / 1e3).toPrecision(3))}k` : `${Number((value / 1e6).toPrecision(3))}M`;
}

/** The seconds of an axis or a key. */
function shortTime(value) {
  if (value === null || value < 60) return value === 0 ? '0' : duration(value);
  return value < 3_600 ? `${Math.round(value / 60)} min` : `${Number((value / 3_600).toPrecision(2))} h`;
}

/** All pictures of a model whose classes and routes are these. */
function curvesOf(classes, routes) {
  return [
    new Curves('Lag', 1, EVENT_TICKS, shortCount, classes, (point) => point[1].map((one) => one[0]), 'class'),
    new Curves('Oldest event', 0.1, SECOND_TICKS, shortTime, classes, (point) => point[1].map((one) => one[1]), 'class'),
    new Curves('Queue delay', 0.01, SECOND_TICKS, shortTime, routes, (point) => point[2], 'route'),
  ];
}
