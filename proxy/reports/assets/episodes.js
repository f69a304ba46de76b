// Congestion episodes: each opens the verdicts that were recorded in it.

/** What opens below an episode. */
function verdictsOf(timeline, episodes, row) {
  const field = (name) => row[episodes.columns.findIndex((column) => column.field === name)];
  const run = field('run') ?? timeline.report.runs[0].name; // of one run no table has a column
  const [from, to] = [field('from_s'), field('to_s')];
  const margin = Math.max(2 * timeline.report.width_s, (to - from) / 5);
  const show = element('button', {
    type: 'button', class: 'plain', onclick: () => {
      timeline.zoom([from - margin, to + margin]);
      document.getElementById('pictures').scrollIntoView();
    },
  }, 'Show it in the pictures');
  const wanted = timeline.report.verdicts[[run, field('route'), from].join('\n')];
  if (!wanted) return [show, element('p', { class: 'note' }, 'Its verdicts are not on this page; they are in the metric log.')];
  const which = wanted.rows.length < wanted.total ? ', the first and the last' : '';
  const note = `${count(wanted.rows.length)} of ${count(wanted.total)} verdicts${which}; times since the start of the run.`;
  return [show, element('p', { class: 'note' }, note), new SortableTable({ ...wanted, total: wanted.rows.length }).element];
}

/** The section of episodes. */
function episodesSection(timeline, told) {
  const table = new SortableTable(told, (row) => verdictsOf(timeline, told, row));
  return section('episodes', told.title, told.note, table.element);
}
