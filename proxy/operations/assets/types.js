// Event types by pressure: sorted, searched, and only those rows made that can be seen.

const ROW = 30; // pixels, as in page.css
const BEYOND = 6; // rows above and below what is seen
const MODES = { run: '', pause: 'paused', discard: 'discarded' };

/** What stands in each column: title, how it sorts, how it is written. */
const COLUMNS = [
  { id: 'name', title: 'Event type', sort: (one) => one.name },
  { id: 'class', title: 'Class', sort: (one) => one.rank, text: (one) => one.class },
  { id: 'route', title: 'Route', sort: (one) => one.route, text: (one) => one.route },
  { id: 'waits', title: 'Waits', sort: (one) => one.pressure, text: (one) => count(one.waits), is_number: true },
  { id: 'age', title: 'Oldest', sort: (one) => one.age ?? -1, text: (one) => duration(one.age), is_number: true },
  { id: 'awaits', title: 'Waits for', sort: (one) => one.awaits ?? '', text: (one) => one.state },
];

class Types {
  constructor(rows, search, found, detail, buttons) {
    Object.assign(this, { rows, search, found, detail, buttons });
    [this.head, this.body] = [rows.querySelector('thead tr'), rows.querySelector('tbody')];
    this.sort = { id: 'waits', is_down: true };
    this.list = [];
    this.made = [];
    this.above = element('tr', { 'aria-hidden': 'true' }, element('td'));
    this.below = element('tr', { 'aria-hidden': 'true' }, element('td'));
    this.body.append(this.above, this.below);
    this.heads = COLUMNS.map((column) => {
      const made = element('th', { scope: 'col', class: `c-${column.id}` }, element('button', { type: 'button', onclick: () => this.turn(column.id) }, column.title));
      this.head.append(made);
      return made;
    });
    search.addEventListener('input', () => this.show());
    // Remembered, for asking after a change would lay out the page anew.
    [this.top, this.height] = [0, rows.clientHeight];
    rows.addEventListener('scroll', () => { this.top = rows.scrollTop; this.draw(); }, { passive: true });
    new ResizeObserver(() => { this.height = rows.clientHeight; this.draw(); }).observe(rows);
    this.opened = null;
  }

  /** Take what is known now. */
  take(model) {
    this.model = model;
    const { place } = model;
    const ranks = Object.fromEntries(Object.keys(model.parts.classes).map((name, i) => [name, i]));
    this.all = Object.entries(model.parts.types).map(([name, row]) => {
      const inbox = row[place.inbox_events];
      const waits = Math.max(row[place.lag] ?? 0, inbox);
      const age = model.age(row[place.oldest_ms]);
      const awaits = row[place.awaits];
      const cap = row[place.cap] ?? null;
      const state = [MODES[row[place.mode]], cap === null ? '' : `capped at ${rate(cap)}`, AWAITS[awaits] ?? ''].filter(Boolean).join('; ');
      return { name, row, class: row[place.class], rank: ranks[row[place.class]], route: row[place.route], waits, age, awaits, state, pressure: waits + (age ?? 0) / 1e6 };
    });
    this.show();
  }

  /** Sort by a column; by the same one again the other way round. */
  turn(id) {
    const is_down = this.sort.id === id ? !this.sort.is_down : ['waits', 'age'].includes(id);
    this.sort = { id, is_down };
    this.show();
  }

  /** Search, sort and draw. */
  show() {
    if (!this.all) return;
    const wanted = this.search.value.trim().toLowerCase();
    const column = COLUMNS.find((one) => one.id === this.sort.id);
    const sign = this.sort.is_down ? -1 : 1;
    this.list = wanted ? this.all.filter((one) => `${one.name} ${one.class} ${one.route} ${one.state}`.toLowerCase().includes(wanted)) : this.all.slice();
    const keys = new Map(this.list.map((one) => [one, column.sort(one)]));
    this.list.sort((one, other) => {
      const [a, b] = [keys.get(one), keys.get(other)];
      if (a === b) return one.name < other.name ? -1 : 1;
      return a < b ? -sign : sign;
    });
    COLUMNS.forEach((one, i) => mark(this.heads[i], 'aria-sort', one.id === this.sort.id ? (this.sort.is_down ? 'descending' : 'ascending') : null));
    const untold = this.model.types_in_all - this.all.length;
    write(this.found, `${count(this.list.length)} of ${count(this.model.types_in_all)}${untold > 0 ? `, ${count(untold)} quiet ones left out` : ''}`);
    mark(this.rows.firstElementChild, 'aria-rowcount', this.list.length + 1);
    this.draw();
    if (this.opened !== null) this.open(this.opened);
  }

  /** Make and fill the rows that can be seen. */
  draw() {
    const first = Math.max(0, Math.min(Math.floor(this.top / ROW) - BEYOND, this.list.length - 1));
    const seen = this.list.slice(first, first + Math.ceil(this.height / ROW) + 2 * BEYOND);
    while (this.made.length < seen.length) this.made.push(this.row());
    while (this.made.length > seen.length) this.made.pop().line.remove();
    seen.forEach((one, i) => this.fill(this.made[i], one, first + i));
    this.space(this.above, first);
    this.space(this.below, Math.max(0, this.list.length - first - seen.length));
  }

  space(line, rows) {
    const height = `${rows * ROW}px`;
    if (line.firstChild.style.height !== height) line.firstChild.style.height = height;
    line.hidden = !rows;
  }

  row() {
    const name = element('button', { type: 'button', class: 'open' });
    const cells = COLUMNS.map((column) => element('td', { class: `c-${column.id}${column.is_number ? ' n' : ''}` }));
    cells[0].append(name);
    const line = element('tr', {}, ...cells);
    name.addEventListener('click', () => this.open(line.dataset.name));
    this.below.before(line);
    return { line, cells, name };
  }

  fill({ line, cells, name }, one, index) {
    if (line.dataset.name !== one.name) line.dataset.name = one.name;
    mark(line, 'aria-rowindex', index + 2);
    mark(line, 'data-mode', one.row[this.model.place.mode]);
    write(name, one.name);
    mark(name, 'title', one.name);
    mark(cells[1], 'data-rank', one.rank % 6);
    COLUMNS.forEach((column, i) => { if (i) write(cells[i], column.text(one)); });
  }

  /** Tell everything of one type below the table. */
  open(name) {
    const one = this.all.find((it) => it.name === name);
    this.opened = one ? name : null;
    this.detail.hidden = !one;
    if (!one) return;
    const { place } = this.model;
    const facts = [['Class', one.class], ['Route', one.route], ['Partitions of this replica', count(one.row[place.partitions])],
      ['Mode', one.row[place.mode]], ['Waits for', AWAITS[one.awaits] ?? 'nothing'], ['In the inbox', count(one.row[place.inbox_events])],
      ['Lag, as of its last record', count(one.row[place.lag])], ['Oldest event', duration(one.age)], ['Open dead letters', count(one.row[place.dead_letters])]];
    if (this.detail.dataset.name !== name) {
      this.detail.dataset.name = name;
      this.values = facts.map(() => element('dd'));
      this.detail.replaceChildren(element('h3', {}, element('span', { class: 'name' }, name),
        element('button', { type: 'button', onclick: () => { delete this.detail.dataset.name; this.open(null); this.rows.focus(); } }, 'Close')),
      element('dl', {}, ...facts.flatMap(([title], i) => [element('dt', {}, title), this.values[i]])), this.buttons(name));
      this.detail.scrollIntoView({ block: 'nearest' });
    }
    facts.forEach(([, text], i) => write(this.values[i], text));
  }
}
