// The page: read what the report found, lay it out, follow light, dark and print.

/** Everything of the page in its order. */
function layOut(report) {
  const timeline = new Timeline(report);
  const body = document.getElementById('report');
  const maps = [];
  if (report.pictures.length) body.append(picturesSection(timeline));
  const heat = heatSection(timeline);
  if (heat) {
    body.append(heat[0]);
    maps.push(...heat[1]);
  }
  const spectra = spectraSection(report);
  if (spectra) body.append(spectra);
  for (const told of report.tables) body.append(told.name === 'episodes' ? episodesSection(timeline, told) : tableSection(told));
  layContents();
  const redraw = () => {
    for (const plot of [...timeline.plots, ...ALL_SPECTRA]) plot.redraw(false, false);
    for (const map of maps) map.draw();
  };
  followColours(redraw);
}

/** Links to the sections that begin open, and one to the first of the others. */
function layContents() {
  const contents = document.getElementById('contents');
  const link = (part, text) => contents.append(element('a', { href: `#${part.id}` }, text));
  let closed = null;
  for (const part of document.querySelectorAll('#report > section')) {
    if (!part.querySelector(':scope > details')) link(part, part.querySelector('h2').textContent);
    else closed ??= part;
  }
  if (closed) link(closed, 'More tables');
}

/** Draw anew when the page turns light or dark, and in light colours for a printer. */
function followColours(redraw) {
  const printing = (is) => {
    document.documentElement.toggleAttribute('data-printing', is);
    redraw();
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  addEventListener('beforeprint', () => printing(true));
  addEventListener('afterprint', () => printing(false));
}

layOut(JSON.parse(document.getElementById('data').textContent));
