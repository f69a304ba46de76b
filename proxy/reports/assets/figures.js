// How figures are written: as proxy/reports/figures.py writes them, so that page and terminal say the same.

const UNKNOWN = '\u2013';
const ROUNDS_TO_A_SECOND = 999.5;

/** Three significant digits, as in `12.0`. */
function threeDigits(value) {
  if (value === 0) return '0.00';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 6));
}

/** A whole number, `12,345`. */
function count(value) {
  return value === null ? UNKNOWN : Math.round(value).toLocaleString('en-US');
}

/** A duration in milliseconds with the unit that suits it. */
function milliseconds(value) {
  if (value === null) return UNKNOWN;
  if (Math.abs(value) < ROUNDS_TO_A_SECOND) return `${threeDigits(value)} ms`;
  if (Math.abs(value) < 100 * ROUNDS_TO_A_SECOND) return `${threeDigits(value / 1000)} s`;
  return `${count(value / 1000)} s`;
}

/** A duration or an instant in seconds. */
function seconds(value) {
  return value === null ? UNKNOWN
    : `${value.toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 })} s`;
}

/** A number of bytes with three digits and a decimal unit. */
function bytes(value) {
  if (value === null) return UNKNOWN;
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let unit = 0;
  let size = value;
  for (; size >= 999.5 && unit < units.length - 1; unit += 1) size /= 1000;
  return unit ? `${threeDigits(size)} ${units[unit]}` : `${size} B`;
}

/** Anything else. */
function plain(value) {
  if (value === null) return UNKNOWN;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return Number.isInteger(value) ? count(value) : String(value);
}

/** Events a second: whole from a hundred on. */
function rate(value) {
  return value === null ? UNKNOWN : `${Math.abs(value) < 100 ? Number(value.toFixed(1)) : count(value)}/s`;
}

/** How a value of each kind is written. */
const WRITTEN = { count, number: plain, ms: milliseconds, s: seconds, bytes, text: plain, rate };

/** A round duration on an axis: `50 ms`, `2 s`. */
function tickOfMs(value) {
  return value < ROUNDS_TO_A_SECOND ? `${Number(value.toPrecision(3))} ms` : `${Number((value / 1000).toPrecision(3))} s`;
}

/** A number on an axis: `1,200`, `35k`. */
function tickOfCount(value) {
  return value >= 10_000 ? `${Number((value / 1000).toPrecision(4)).toLocaleString('en-US')}k` : value.toLocaleString('en-US');
}

/** Seconds since the start of a run: `+34 s`, `+12:05`, `+3:12:05`. */
function elapsed(value) {
  const sign = value < 0 ? '\u2212' : '+';
  const whole = Math.abs(value);
  if (whole < 120) return `${sign}${Number(whole.toFixed(1))} s`;
  const two = (number) => String(Math.floor(number)).padStart(2, '0');
  const clock = `${two((whole % 3600) / 60)}:${two(whole % 60)}`;
  return whole < 3600 ? `${sign}${clock}` : `${sign}${Math.floor(whole / 3600)}:${clock}`;
}

/** The time of day in UTC, with its date where a run is longer than a day. */
function clock(ms, withDate) {
  const iso = new Date(ms).toISOString();
  return withDate ? iso.slice(5, 16).replace('T', ' ') : iso.slice(11, 19);
}
