// Pause, discard, resume: asked of the group by POST /interventions, after a confirmation that says what will happen.

const FOR = [['10m', 10], ['30m', 30], ['1h', 60], ['2h', 120], ['8h', 480], ['24h', 1_440]];
const ACTIONS = { pause: 'Pause', discard: 'Discard', run: 'Resume' };

class Actions {
  /** `model()` tells what is known now, `headers()` who asks. */
  constructor(dialog, model, headers) {
    Object.assign(this, { dialog, model, headers, is_there: false });
    this.parts = Object.fromEntries(['title', 'means', 'for', 'why', 'who', 'sure', 'said', 'go', 'leave'].map((name) => [name, byId(`act-${name}`)]));
    this.parts.for.append(...FOR.map(([text]) => element('option', { value: text }, text)));
    this.parts.for.addEventListener('change', () => this.explain());
    this.parts.leave.addEventListener('click', () => dialog.close());
    dialog.querySelector('form').addEventListener('submit', (event) => { event.preventDefault(); this.send(); });
  }

  /** Find out whether this Tidegate can be asked; buttons are shown only then. */
  async look() {
    try {
      const answer = await fetch('openapi.json', { headers: this.headers(), cache: 'no-store' });
      const paths = answer.ok ? (await answer.json()).paths : {};
      this.is_there = Boolean(paths['/interventions']?.post);
      this.may_end = Boolean(paths['/interventions/{id}']?.delete);
    } catch {
      this.is_there = false;
    }
    mark(document.body, 'data-acts', this.is_there ? 'yes' : null);
  }

  /** Buttons for a class or an event type. */
  buttons(kind, name) {
    return element('span', { class: 'acts' }, ...Object.entries(ACTIONS).map(([mode, title]) => element('button', {
      type: 'button', 'aria-label': `${title} ${kind} ${name}`, onclick: () => this.ask(mode, kind, name) }, title)));
  }

  /** Open the confirmation. */
  ask(mode, kind, name) {
    this.asked = { mode, kind, name };
    this.open(`${ACTIONS[mode]} ${kind} ${name}`, ACTIONS[mode]);
  }

  /** Open the confirmation that ends what holds. */
  askEnd(one) {
    this.asked = { mode: 'end', one };
    this.open(`End what ${one.by} asked for`, 'End it');
  }

  open(text, verb) {
    const { mode } = this.asked;
    const { title, said, sure, go, why } = this.parts;
    write(title, text);
    write(said, '');
    write(go, verb);
    go.disabled = false;
    [sure.checked, sure.required, sure.parentElement.hidden] = [false, mode === 'discard', mode !== 'discard'];
    this.parts.for.parentElement.hidden = mode === 'run' || mode === 'end';
    why.value = '';
    this.explain();
    this.dialog.showModal();
  }

  /** Say what will happen. */
  explain() {
    const { mode, kind, name, one } = this.asked;
    if (mode === 'end') {
      write(this.parts.means, `${of(one)} ${MODE_WORDS[one.mode] ?? one.mode} since ${clock(one.at_ms)} UTC. This ends now, on every replica of the group, unless somebody else has asked for it, too. What waits is sent, oldest first; what was discarded is not.`);
      return;
    }
    const model = this.model();
    const until = clock(model.at_ms + 60_000 * FOR.find(([text]) => text === this.parts.for.value)[1]).slice(0, 5);
    const known = kind === 'class' ? model.parts.classes[name]?.lag : model.parts.types[name]?.[model.place.lag];
    const waits = known === null || known === undefined ? '' : ` Of it ${count(known)} events wait here now.`;
    write(this.parts.means, {
      pause: `No replica of the group sends anything more of ${kind} ${name} until ${until} UTC; it waits in Kafka, and goes on by itself then.${waits}`,
      discard: `Every replica of the group drops what waits and what comes of ${kind} ${name} until ${until} UTC: committed unsent, and never sent later.${waits}`,
      run: `What pauses or discards ${kind} ${name} ends now, on every replica of the group. What waits is sent, oldest first; what was discarded is not.`,
    }[mode]);
  }

  /** Ask it of the group, and tell who has answered. */
  async send() {
    const { mode, kind, name, one } = this.asked;
    const told = {};
    for (const field of ['why', 'who']) if (this.parts[field].value.trim()) told[field] = this.parts[field].value.trim();
    let answer;
    if (mode === 'end') {
      const query = new URLSearchParams(told).toString();
      answer = await this.call('DELETE', `interventions/${encodeURIComponent(one.id)}${query && `?${query}`}`);
    } else {
      if (mode !== 'run') told.for = this.parts.for.value;
      answer = await this.call('POST', 'interventions', { mode, [kind === 'class' ? 'class' : 'type']: name, ...told });
    }
    if (answer) write(this.parts.go, 'Done');
  }

  async call(method, path, body) {
    const { said, go } = this.parts;
    go.disabled = true;
    write(said, 'Waiting for every replica to answer ...');
    try {
      const headers = { ...this.headers(), ...(body ? { 'Content-Type': 'application/json' } : {}) };
      const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      const told = await answer.json().catch(() => ({}));
      if (!answer.ok) throw new Error(told.error ?? `status ${answer.status}`);
      write(said, answered(told));
      return told;
    } catch (error) {
      go.disabled = false;
      write(said, `Not done: ${error.message}.`);
      return null;
    }
  }
}

/** What one applies to, in words. */
function of(one) {
  return [...one.classes, ...one.types, ...(one.routes ?? [])].join(', ') || 'Everything';
}

/** Which replicas have answered, in words. */
function answered(told) {
  const replicas = told.replicas ?? [];
  const silent = replicas.filter((one) => !one.answer).length;
  if (!replicas.length) return 'It is kept; no replica is in the group now, and it holds for whoever starts.';
  if (!silent) return `Done by ${replicas.length === 1 ? 'the one replica' : `all ${replicas.length} replicas`}.`;
  return `It is kept, but ${silent} of ${replicas.length} replicas have not answered yet: ${told.silent?.join(', ') ?? ''}. They do it as soon as they read it.`;
}
