// Gates: what each class may send over each route, opening and closing; and the verdicts behind it.

const STEADY = 0.03; // a change within a few seconds that is none
const TREND_MS = 4_000;
const VERDICTS = 12;
const WATCHED = 'Nothing is held back: the policy only decides, and is watched. ';

/** Remembers what was allowed a moment ago. */
class Gates {
  constructor(holder) {
    this.holder = holder;
    this.cards = new Map();
    this.past = [];
  }

  /** Show all routes. */
  show(model) {
    const { routes, classes } = model.parts;
    const allowed = Object.fromEntries(Object.entries(routes).map(([name, route]) => [name, route.verdict?.rates ?? null]));
    this.past.push([model.at_ms, allowed]);
    while (this.past.length > 1 && this.past[1][0] <= model.at_ms - TREND_MS) this.past.shift();
    for (const name of this.cards.keys()) if (!(name in routes)) this.drop(name);
    for (const [name, route] of Object.entries(routes)) {
      if (!this.cards.has(name)) this.make(name, Object.keys(classes));
      this.fill(this.cards.get(name), name, route, closedClasses(model));
    }
  }

  drop(name) {
    this.cards.get(name).card.remove();
    this.cards.delete(name);
  }

  make(name, classes) {
    const parts = { state: element('span', { class: 'pill' }), shadow: element('span', { class: 'pill', hidden: true }, 'in shadow'), facts: element('p', { class: 'soft' }), why: element('p', { class: 'because' }), bars: {} };
    const list = parts.list = element('ul', { class: 'gates' });
    classes.forEach((priority, i) => {
      const bar = { fill: element('i', { class: 'fill' }), mark: element('i', { class: 'taken', hidden: true }), text: element('span', { class: 'n' }) };
      parts.bars[priority] = bar;
      list.append(element('li', { class: `class-${i % 6}` }, element('b', {}, priority), element('span', { class: 'bar' }, bar.fill, bar.mark), bar.text));
    });
    parts.card = element('article', {}, element('h3', {}, element('span', { class: 'name' }, name), parts.shadow, parts.state), parts.why, list, parts.facts);
    this.holder.append(parts.card);
    this.cards.set(name, parts);
  }

  fill(parts, name, route, closed) {
    const { verdict, lane } = route;
    const is_shut = lane.state !== 'open';
    const is_congested = Boolean(verdict?.congested);
    const is_watched = Boolean(route.shadow);
    parts.shadow.hidden = !is_watched;
    mark(parts.card, 'data-shadow', is_watched || null);
    mark(parts.list, 'aria-label', is_watched ? 'What each class would be allowed' : 'What each class is allowed');
    write(parts.state, is_shut ? lane.state : is_congested ? `${is_watched ? 'would be ' : ''}congested` : 'open');
    mark(parts.state, 'data-state', is_shut ? 'bad' : is_congested ? 'warn' : 'good');
    const because = verdict ? `${verdict.why[0].toUpperCase()}${verdict.why.slice(1)}.` : '';
    write(parts.why, is_shut ? 'Nothing goes out until its connection is open.' : `${is_watched ? WATCHED : ''}${because}`);
    const queues = Object.entries(route.queues).map(([queue, told]) => `${queue}: ${count(told.ready)} ready, ${count(told.consumers)} consumers`);
    write(parts.facts, [`policy ${route.policy}`, `${count(lane.in_flight)} of ${count(lane.window)} in flight`,
      `confirm P50 ${duration(route.publish_p50_s)}`, `queue delay ${duration(verdict?.queue_delay_s ?? null)}`, ...queues].join(' \u00b7 '));
    const rates = verdict?.rates ?? null;
    const drain = verdict?.drain_rate ?? null;
    const most = Math.max(drain ?? 0, ...Object.values(rates ?? {}), 1) / 100;
    for (const [priority, bar] of Object.entries(parts.bars)) {
      const value = rates?.[priority] ?? null;
      const is_closed = closed.has(priority);
      const filled = is_shut || is_closed ? 0 : value === null ? 100 : value / most;
      const width = `${Math.min(100, filled).toFixed(1)}%`;
      if (bar.fill.style.width !== width) bar.fill.style.width = width;
      bar.mark.hidden = drain === null || value === null;
      if (!bar.mark.hidden) bar.mark.style.left = `${Math.min(100, drain / most).toFixed(1)}%`;
      write(bar.text, is_shut ? 'shut' : is_closed ? closed.get(priority) : value === null ? 'no limit' : `${rate(value)} ${this.trend(name, priority, value)}`);
    }
  }

  trend(name, priority, value) {
    const before = this.past[0][1][name]?.[priority] ?? value;
    if (Math.abs(value - before) <= STEADY * before) return '\u00b7 steady';
    return value > before ? '\u25b2 opening' : '\u25bc closing';
  }
}

/** Classes that a person has closed altogether, and how. */
function closedClasses(model) {
  const closed = new Map();
  for (const one of model.held) {
    for (const name of one.classes) {
      if (one.mode === 'pause') closed.set(name, 'paused');
      else if (one.mode === 'discard') closed.set(name, 'discarded');
      else if (one.mode === 'run') closed.delete(name);
    }
  }
  return closed;
}

/** The newest verdicts of all routes that said something new. */
function showVerdicts(holder, model) {
  const all = Object.entries(model.parts.decisions).flatMap(([route, told]) => told.map((one) => ({ route, ...one })));
  all.sort((one, other) => other.at_ms - one.at_ms);
  holder.replaceChildren(...all.slice(0, VERDICTS).map((one) => element('li', {},
    element('time', {}, clock(one.at_ms)), element('b', {}, one.route),
    element('span', { class: 'pill', 'data-state': one.congested ? 'warn' : one.congested === null ? 'none' : 'good' },
      one.congested ? `${model.parts.routes[one.route]?.shadow ? 'would ' : ''}slow down` : one.congested === null ? 'nothing said' : 'go'),
    element('span', { class: 'because' }, one.why))));
  if (!all.length) holder.append(element('li', { class: 'soft' }, 'None yet.'));
}
