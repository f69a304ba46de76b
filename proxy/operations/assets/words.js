// How figures are written, and what the words of the stream mean to people.

const UNKNOWN = '\u2013';
const AWAITS = {
  rate: 'its turn at the allowed rate',
  lane: 'room on the connection',
  lease: 'the group\u2019s word',
  outcomes: 'confirms',
  retry: 'the pause after a nack, or a queue whose node is down',
  commit: 'a commit',
  dead_letters: 'dead letters to be taken',
  restart: 'a restart: it has stopped',
  resume: 'a person to resume it',
};

/** A whole number, `12,345`. */
function count(value) {
  return value === null ? UNKNOWN : Math.round(value).toLocaleString('en-US');
}

/** Events a second. */
function rate(value) {
  return value === null ? UNKNOWN : `${value < 100 ? Number(value.toFixed(1)) : count(value)}/s`;
}

/** A duration of seconds, as proxy/operations/questions.py writes it. */
function duration(seconds) {
  if (seconds === null) return UNKNOWN;
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** A time of day in UTC, `14:03:22`. */
function clock(ms) {
  return new Date(ms).toISOString().slice(11, 19);
}
