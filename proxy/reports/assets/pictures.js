// Pictures over time. Every run has a panel of its own in each picture; one crosshair and one zoom go through all.

const LONGEST_BRIDGED = 3.5; // points; a line is broken where more are missing
const PANEL_HEIGHT = 168;
const AXIS_WIDTH = 62;
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 604_800];
const LEAST_MS = 0.1; // on a logarithmic axis nothing lies lower

/** What all panels over time share: the instants, who follows the crosshair, and what is zoomed into. */
class Timeline {
  constructor(report) {
    this.report = report;
    this.instants = Array.from({ length: report.points }, (_, i) => (report.first + i + 0.5) * report.width_s);
    this.whole = [Math.min(0, report.first * report.width_s), report.end_s];
    this.plots = [];
    this.followers = [];
    this.index = null;
    this.zooming = false;
  }

  /** Move the crosshair of every panel to a point; null takes it away. */
  point(index) {
    for (const plot of this.plots) {
      const left = index === null ? -10 : plot.valToPos(this.instants[index], 'x');
      plot.setCursor({ left, top: index === null ? -10 : plot.over.clientHeight / 2 }, true, false);
    }
    this.tell(index);
  }

  /** Tell those that are no panels where the crosshair is. */
  tell(index) {
    if (index === this.index) return;
    this.index = index;
    for (const follow of this.followers) follow(index === null ? null : this.instants[index]);
  }

  /** Show a stretch in every panel; null shows the whole. */
  zoom(stretch) {
    if (this.zooming) return;
    this.zooming = true;
    const [min, max] = stretch ?? this.whole;
    for (const plot of this.plots) {
      if (plot.scales.x.min !== min || plot.scales.x.max !== max) plot.setScale('x', { min, max });
    }
    this.isWhole = min <= this.whole[0] && max >= this.whole[1];
    for (const button of document.querySelectorAll('[data-whole]')) button.hidden = this.isWhole;
    this.zooming = false;
  }

  /** Step through the points by keys. */
  onKey(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    const last = this.instants.length - 1;
    let wanted;
    if (event.key in steps) {
      const from = this.index ?? (steps[event.key] > 0 ? -1 : last + 1);
      wanted = Math.min(last, Math.max(0, from + steps[event.key] * (event.shiftKey ? 10 : 1)));
    } else if (event.key === 'Home') wanted = 0;
    else if (event.key === 'End') wanted = last;
    else if (event.key === 'Escape') wanted = null;
    else return;
    event.preventDefault();
    if (wanted === null) this.zoom(null);
    this.point(wanted);
  }

  /** An instant for people: since the start, and by the clock of the run. */
  instant(at, run) {
    return `${elapsed(at)} \u00b7 ${clock(run.start_ms + at * 1000, this.report.end_s > 86_400)} UTC`;
  }

  /** The axis: of one run round instants of the clock, of several, which began at different times, what passed. */
  axis() {
    const { runs, end_s: end } = this.report;
    const start = runs.length === 1 ? runs[0].start_ms / 1000 : 0;
    const write = (at) => (runs.length === 1 ? clock((start + at) * 1000, end > 86_400) : elapsed(at));
    const splits = (_, axis, min, max, step) => {
      const first = Math.ceil((start + min) / step) * step - start;
      return Array.from({ length: Math.floor((max - first) / step) + 1 }, (_, i) => first + i * step);
    };
    return { space: 74, incrs: STEPS_S, splits, values: (_, at) => at.map(write) };
  }
}

/** The least and the greatest value of a picture, over all runs, as its axis shows them. */
function reach(picture) {
  const values = picture.lines.flatMap((line) => line.values).filter((value) => value !== null);
  const most = Math.max(...values, 0);
  if (!picture.log) return [0, most > 0 ? most * 1.08 : 1];
  const least = Math.max(LEAST_MS, Math.min(...values));
  return [least / 1.4, Math.max(most, least) * 1.4];
}

/** Shade the stretches in which a route of the run was congested. */
function shadeEpisodes(plot, episodes) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.fillStyle = colour('shade');
  for (const [from, to] of episodes) {
    const left = Math.max(bbox.left, plot.valToPos(from, 'x', true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, 'x', true));
    if (right > left) ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
  }
  ctx.restore();
}

/** Keep those gaps of a line that are longer than a few points. */
function longGaps(plot, series, from, to, gaps) {
  const [first, second] = plot.data[0];
  const point = plot.valToPos(second ?? first + 1, 'x', true) - plot.valToPos(first, 'x', true);
  return gaps.filter(([left, right]) => right - left > LONGEST_BRIDGED * point);
}

/** The points that stand alone: a line through one point can't be seen. */
function alone(plot, series) {
  const values = plot.data[series];
  const known = (i) => values[i] !== null && values[i] !== undefined;
  return values.map((_, i) => i).filter((i) => known(i) && !known(i - 1) && !known(i + 1));
}

/** The series of a line, as uPlot wants it. */
function seriesOf(line) {
  return {
    label: line.label,
    stroke: () => colour(line.colour),
    width: line.thin ? 1 : 1.6,
    dash: line.thin ? [5, 4] : undefined,
    points: { show: true, size: 4, filter: alone, fill: () => colour(line.colour) },
    gaps: longGaps,
  };
}

/** Powers of ten within the limits of a logarithmic axis, with twice and five times as much if there are few. */
function powers([least, most]) {
  const parts = most / least > 300 ? [1] : [1, 2, 5];
  const found = [];
  for (let power = 10 ** Math.floor(Math.log10(least)); power <= most; power *= 10) {
    found.push(...parts.map((part) => part * power).filter((value) => value >= least && value <= most));
  }
  return found;
}

/** The two axes, in the colours of the page. */
function axesOf(picture, limits, xs) {
  const common = { stroke: () => colour('soft'), font: '11px system-ui, sans-serif', ticks: { show: false } };
  const grid = { stroke: () => colour('line'), width: 1 };
  const write = picture.unit === 'ms' ? tickOfMs : tickOfCount;
  return [
    { ...common, grid: { show: false }, size: 26, ...xs },
    {
      ...common,
      grid,
      size: AXIS_WIDTH,
      space: 28,
      values: (_, at) => at.map(write),
      ...(picture.log ? { splits: () => powers(limits), filter: (_, at) => at } : {}),
    },
  ];
}

/** The key of a panel: each line's name with its value at the crosshair; a click, or Enter, hides the line. */
class Key {
  constructor(lines, unit) {
    this.write = WRITTEN[unit];
    this.at = element('output', { class: 'at' });
    this.values = lines.map(() => element('span', { class: 'value' }));
    this.buttons = lines.map((line, i) => element(
      'button', { type: 'button', class: 'key', 'aria-pressed': 'true', onclick: () => this.toggle(i) },
      element('i', { class: line.thin ? 'thin' : false, style: `--swatch: var(--${line.colour})` }), `${line.label} `, this.values[i],
    ));
    this.element = element('div', { class: 'keys' }, ...this.buttons);
    this.lines = lines;
    this.show(null, '');
  }

  /** Hide a line, or show it again. */
  toggle(i) {
    const shown = this.buttons[i].getAttribute('aria-pressed') !== 'true';
    this.buttons[i].setAttribute('aria-pressed', String(shown));
    this.plot.setSeries(i + 1, { show: shown });
  }

  /** Tell the values at a point; where there is none, the most of each line. */
  show(index, instant) {
    this.at.textContent = instant;
    this.lines.forEach((line, i) => {
      if (index !== null) this.values[i].textContent = this.write(line.values[index] ?? null);
      else {
        const known = line.values.filter((value) => value !== null);
        this.values[i].textContent = known.length ? `max ${this.write(Math.max(...known))}` : UNKNOWN;
      }
    });
  }
}

/** A panel that becomes as wide as there is room. */
function fitted(plotOf, height) {
  const holder = element('div', { class: 'plot', style: `height: ${height}px` });
  let plot = null;
  new ResizeObserver(() => {
    const width = Math.floor(holder.clientWidth);
    if (!width) return;
    if (plot === null) plot = plotOf(width, holder);
    else if (plot.width !== width) plot.setSize({ width, height });
  }).observe(holder);
  return holder;
}

/** One run's panel of a picture. */
function panelOverTime(timeline, picture, run, limits) {
  const { report } = timeline;
  const lines = picture.lines.filter((line) => line.run === run);
  const name = report.runs.length > 1 ? report.runs[run].name : element('h3', {}, picture.title);
  if (!lines.length) return element('figure', {}, element('figcaption', {}, name), element('p', { class: 'empty' }, 'not recorded in this run'));
  const key = new Key(lines, picture.unit);
  const onCursor = (plot) => {
    const index = plot.cursor.left >= 0 ? plot.cursor.idx ?? null : null;
    key.show(index, index === null ? '' : timeline.instant(timeline.instants[index], report.runs[run]));
    timeline.tell(index);
  };
  const drawn = (values) => (picture.log ? values.map((value) => (value === null ? null : Math.max(value, LEAST_MS))) : values);
  const make = (width, holder) => {
    const plot = new uPlot({
      width,
      height: PANEL_HEIGHT,
      legend: { show: false },
      cursor: { y: false, sync: { key: 'time', setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
      scales: {
        x: { time: false, auto: false, min: timeline.whole[0], max: timeline.whole[1], range: (_, min, max) => [min, max] },
        y: { distr: picture.log ? 3 : 1, range: () => limits },
      },
      axes: axesOf(picture, limits, timeline.axis()),
      series: [{}, ...lines.map(seriesOf)],
      hooks: {
        drawClear: [(self) => shadeEpisodes(self, report.shaded[run])],
        setCursor: [onCursor],
        setScale: [(self, scale) => {
          if (scale === 'x' && timeline.plots.includes(self)) timeline.zoom([self.scales.x.min, self.scales.x.max]);
        }],
      },
    }, [timeline.instants, ...lines.map((line) => drawn(line.values))], holder);
    plot.over.addEventListener('dblclick', () => timeline.zoom(null));
    timeline.plots.push(plot);
    key.plot = plot;
    return plot;
  };
  return element('figure', {}, element('figcaption', {}, name, key.at), key.element, fitted(make, PANEL_HEIGHT));
}

/** The section of all pictures over time. */
function picturesSection(timeline) {
  const { report } = timeline;
  const drawn = report.pictures.map((picture) => {
    const limits = reach(picture);
    const panels = report.runs.map((_, run) => panelOverTime(timeline, picture, run, limits));
    const title = report.runs.length > 1 ? [element('h3', {}, picture.title)] : [];
    return element('article', { class: 'picture' }, ...title, element('div', { class: 'panels' }, ...panels));
  });
  const box = element('div', {
    class: 'pictures', tabindex: '0', role: 'group', id: 'pictures-box',
    'aria-label': 'Pictures over time. Left and right move the crosshair, Escape takes it away.',
    onkeydown: (event) => { if (event.target === box) timeline.onKey(event); },
  }, ...drawn);
  const whole = element('button', { type: 'button', class: 'plain', 'data-whole': true, hidden: true, onclick: () => timeline.zoom(null) }, 'Show the whole run');
  const note = `One point stands for ${report.width_s} s; shaded: a route was congested, darker: several. One crosshair goes through all: `
    + 'the pointer moves it, or \u2190 and \u2192; dragging zooms, Escape or a double click shows the whole again.';
  return section('pictures', 'Over time', note, whole, box);
}
