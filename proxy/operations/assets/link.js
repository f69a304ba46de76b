// The connection to /stream, by fetch, so that a token can be shown; whatever ends it, it says so and tries again.

const KEY = 'tidegate-token';
const SILENT_MS = 6_000;
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [1_000, 10_000];

class Link {
  /** `onEvent(event)`, `onState(state, words)` with `live`, `waiting` or `lost`; `onRefused(words)` when a token is needed. */
  constructor(onEvent, onState, onRefused) {
    Object.assign(this, { onEvent, onState, onRefused });
    this.wait_ms = FIRST_WAIT_MS;
  }

  /** The headers of whoever has shown a token. */
  headers() {
    const token = sessionStorage.getItem(KEY);
    return token ? { Authorization: `Bearer ${token}` } : {};
  }

  /** Take a token and begin. */
  prove(token) {
    sessionStorage.setItem(KEY, token);
    this.open();
  }

  /** Listen until something ends it. */
  async open() {
    clearTimeout(this.timer);
    this.onState('waiting', 'Connecting ...');
    const ending = new AbortController();
    try {
      const answer = await fetch('stream', { headers: this.headers(), signal: ending.signal, cache: 'no-store' });
      if (answer.status === 401) {
        const was_shown = sessionStorage.getItem(KEY) !== null;
        sessionStorage.removeItem(KEY);
        this.onState('lost', 'A token is needed');
        this.onRefused(was_shown ? 'This token is wrong.' : 'This address wants a token.');
        return;
      }
      if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `status ${answer.status}`);
      await this.listen(answer.body.getReader(), ending);
      throw new Error('it has ended');
    } catch (error) {
      this.again(ending.signal.aborted ? 'nothing heard for 6 s' : error.message);
    }
  }

  async listen(reader, ending) {
    const decoder = new TextDecoder();
    let text = '';
    let silence;
    const listenOn = () => { clearTimeout(silence); silence = setTimeout(() => ending.abort(), SILENT_MS); };
    listenOn();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        listenOn();
        text += decoder.decode(value, { stream: true });
        const events = text.split('\n\n');
        text = events.pop();
        for (const event of events) this.tell(event);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  tell(event) {
    const data = event.split('\n').find((line) => line.startsWith('data: '));
    if (!data) return;
    this.wait_ms = FIRST_WAIT_MS;
    this.onState('live', 'Live');
    performance.mark('begin');
    this.onEvent(JSON.parse(data.slice(6)));
    performance.measure('update', 'begin');
  }

  again(why) {
    this.onState('lost', `Connection lost (${why}). Tried again in ${Math.round(this.wait_ms / 1000)} s; what you see is old.`);
    this.timer = setTimeout(() => this.open(), this.wait_ms);
    this.wait_ms = Math.min(LONGEST_WAIT_MS, this.wait_ms * 2);
  }
}
