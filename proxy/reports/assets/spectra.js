// Latency spectra: how long the slowest of so many took, up to one in ten thousand.

const NINES = [0.5, 0.9, 0.99, 0.999, 0.9999];

/** Where a share of the events stands: each further nine is one step further. */
function nines(share) {
  return -Math.log10(1 - Math.min(share, 0.99999));
}

/** A percentile's name: `P99.9`. */
function percentileName(share) {
  return `P${Number((share * 100).toFixed(4))}`;
}

/** One panel: a line for each class, or for each run. */
function spectrumPanel(spectrum, panel, shares, limits) {
  const key = new Key(panel.lines, 'ms');
  const onCursor = (plot) => {
    const index = plot.cursor.left >= 0 ? plot.cursor.idx ?? null : null;
    key.show(index, index === null ? '' : percentileName(shares[index]));
  };
  const make = (width, holder) => {
    const plot = new uPlot({
      width,
      height: PANEL_HEIGHT,
      legend: { show: false },
      cursor: { y: false, sync: { key: 'spectrum', setSeries: false }, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time: false, range: () => [0, 4] }, y: { distr: 3, range: () => limits } },
      axes: axesOf({ unit: 'ms', log: true }, limits, {
        splits: () => NINES.map(nines), values: () => NINES.map(percentileName), grid: { stroke: () => colour('line'), width: 1 },
      }),
      series: [{}, ...panel.lines.map(seriesOf)],
      hooks: { setCursor: [onCursor] },
    }, [shares.map(nines), ...panel.lines.map((line) => line.values.map((value) => (value === null ? null : Math.max(value, LEAST_MS))))], holder);
    ALL_SPECTRA.push(plot);
    key.plot = plot;
    return plot;
  };
  return element('figure', {}, element('figcaption', {}, panel.title || element('h3', {}, spectrum.title), key.at), key.element, fitted(make, PANEL_HEIGHT));
}

const ALL_SPECTRA = [];

/** The section of all spectra; null if there are none. */
function spectraSection(report) {
  if (!report.spectra.length) return null;
  const drawn = report.spectra.map((spectrum) => {
    const limits = reach({ log: true, lines: spectrum.panels.flatMap((panel) => panel.lines) });
    const panels = spectrum.panels.map((panel) => spectrumPanel(spectrum, panel, report.shares, limits));
    const title = spectrum.panels[0].title ? [element('h3', {}, spectrum.title)] : [];
    return element('article', { class: 'picture' }, ...title, element('div', { class: 'panels' }, ...panels));
  });
  const note = 'To the right the rarer: at P99.9 one event in a thousand took longer. From merged buckets, exact within 1/128.';
  return section('spectra', 'Spectra', note, ...drawn);
}
