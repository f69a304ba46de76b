// Tables that can be sorted, searched and opened, and that never make anybody scroll sideways.

const FIRST_ROWS = 20;
const MORE_ROWS = 200;
const SEARCHED = 12; // a table with more rows has a field to search it

const order = new Intl.Collator('en', { numeric: true });

/** Compare two values of a column; what is not known comes last either way. */
function compared(one, other, direction) {
  if (one === null || other === null) return (one === null) - (other === null);
  const sign = typeof one === 'number' && typeof other === 'number' ? one - other : order.compare(String(one), String(other));
  return sign * direction;
}

/** A table of the report. `detail(row)` gives what opens below a row; without it rows don't open. */
class SortableTable {
  constructor(told, detail = null) {
    this.columns = told.columns;
    this.told = told;
    this.rows = told.rows;
    this.detail = detail;
    this.sorted = null;
    this.shown = FIRST_ROWS;
    this.search = '';
    this.body = element('tbody');
    this.heads = this.columns.map((column, i) => this.head(column, i));
    this.table = element('table', { 'aria-label': told.title }, element('thead', {}, ...this.groups(), element('tr', { class: 'heads' }, ...(detail ? [element('th', { class: 'opener' }, element('span', { class: 'unseen' }, 'open'))] : []), ...this.heads)), this.body);
    this.more = element('button', { type: 'button', class: 'plain', onclick: () => { this.shown += MORE_ROWS; this.fill(); } });
    this.element = element('div', { class: 'holder' }, ...this.searchField(), this.table, this.more, ...this.remarks());
    this.fill();
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  /** A heading: a button that sorts. */
  head(column, i) {
    const button = element('button', { type: 'button', onclick: () => this.sort(i) }, column.title);
    const named = column.group ? { 'aria-label': `${column.group} ${column.title}` } : {};
    return element('th', { scope: 'col', class: column.kind === 'text' ? false : 'n', 'aria-sort': 'none', ...named }, button);
  }

  /** The row of common headings, if there are any. */
  groups() {
    if (!this.columns.some((column) => column.group)) return [];
    const cells = this.detail ? [element('th')] : [];
    for (let i = 0; i < this.columns.length;) {
      let end = i + 1;
      while (end < this.columns.length && this.columns[end].group === this.columns[i].group) end += 1;
      cells.push(element('th', { class: 'group', colspan: end - i, scope: 'colgroup' }, this.columns[i].group));
      i = end;
    }
    return [element('tr', { class: 'groups' }, ...cells)];
  }

  /** A field to search a long table. */
  searchField() {
    if (this.rows.length <= SEARCHED) return [];
    const field = element('input', {
      type: 'search', placeholder: `search ${count(this.rows.length)} rows`, 'aria-label': `search ${this.told.title}`,
      oninput: () => { this.search = field.value.toLowerCase(); this.shown = FIRST_ROWS; this.fill(); },
    });
    return [field];
  }

  /** What is not in the table. */
  remarks() {
    const { remark, total, rows, name } = this.told;
    const said = [remark];
    if (total > rows.length) said.push(`${count(total - rows.length)} more rows in tables/${name}.`);
    const text = said.filter(Boolean).join(' ');
    return text ? [element('p', { class: 'note' }, text)] : [];
  }

  /** Sort by a column; numbers begin with the greatest, texts with the first; once more turns it round. */
  sort(i) {
    const first = this.columns[i].kind === 'text' ? 1 : -1;
    this.sorted = { i, direction: this.sorted?.i === i ? -this.sorted.direction : first };
    this.heads.forEach((head, at) => {
      const way = this.sorted.direction > 0 ? 'ascending' : 'descending';
      head.setAttribute('aria-sort', at === i ? way : 'none');
    });
    this.fill();
  }

  /** The rows that are asked for, in their order. */
  wanted() {
    let rows = this.rows;
    if (this.search) rows = rows.filter((row) => row.some((value) => String(value ?? '').toLowerCase().includes(this.search)));
    if (!this.sorted) return rows;
    const { i, direction } = this.sorted;
    return [...rows].sort((one, other) => compared(one[i], other[i], direction));
  }

  /** Put the rows into the table. */
  fill() {
    const wanted = this.wanted();
    this.body.replaceChildren(...wanted.slice(0, this.shown).map((row) => this.row(row)));
    const hidden = wanted.length - this.shown;
    this.more.hidden = hidden <= 0;
    this.more.textContent = `show ${count(Math.min(hidden, MORE_ROWS))} more of ${count(wanted.length)}`;
    this.fit();
  }

  /** One row. */
  row(row) {
    const cells = this.columns.map((column, i) => {
      const value = row[i];
      const alarm = column.alarm && value ? '' : undefined;
      const label = column.group ? `${column.group} ${column.title}` : column.title;
      const unknown = value === null || value === '' ? 'unknown' : '';
      const classes = column.kind === 'text' ? unknown : `n ${unknown}`;
      return element('td', { class: classes || undefined, 'data-label': label, 'data-alarm': alarm }, WRITTEN[column.kind](value));
    });
    if (!this.detail) return element('tr', {}, ...cells);
    const button = element('button', { type: 'button', class: 'open', 'aria-expanded': 'false', 'aria-label': 'open', onclick: () => this.open(made, button, row) }, '\u25b8');
    const made = element('tr', {}, element('td', { class: 'opener' }, button), ...cells);
    return made;
  }

  /** Open what belongs to a row, or close it. */
  open(line, button, row) {
    const isOpen = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!isOpen));
    button.textContent = isOpen ? '\u25b8' : '\u25be';
    if (isOpen) line.nextSibling.remove();
    else line.after(element('tr', { class: 'detail' }, element('td', { colspan: this.columns.length + 1 }, ...this.detail(row))));
  }

  /** Become narrower until nothing sticks out: smaller letters, then words broken anywhere, then each row as a card. */
  fit() {
    for (const mode of ['', 'tight', 'tight broken', 'cards']) {
      this.table.className = mode;
      if (this.table.offsetWidth <= this.element.clientWidth) return;
    }
  }
}

/** A section of one table; long ones begin closed. */
function tableSection(told) {
  const table = new SortableTable(told);
  const note = told.note ? [element('p', { class: 'note' }, told.note)] : [];
  if (told.open) return section(`table-${told.name}`, told.title, told.note, table.element);
  const summary = element('summary', {}, element('h2', {}, told.title), element('span', { class: 'soft' }, ` ${count(told.total)} ${told.total === 1 ? 'row' : 'rows'}`));
  return element('section', { id: `table-${told.name}` }, element('details', {}, summary, ...note, table.element));
}
