// Puts the parts together.

const MODE_WORDS = { pause: 'paused', discard: 'discarded', run: 'resumed', cap: 'capped', policy: 'under another policy' };

const model = new Model();
const actions = new Actions(byId('act'), () => model, () => link.headers());
const gates = new Gates(byId('routes'));
const types = new Types(byId('rows'), byId('search'), byId('found'), byId('type'), (name) => actions.buttons('type', name));
let curves = null;
let drawn = '';
let was_live = false;

/** A card for each class: what it does and what waits. */
function showClasses(holder) {
  const { classes } = model.parts;
  Object.entries(classes).forEach(([name, one], i) => {
    let card = holder.children[i];
    if (card?.dataset.name !== name) {
      card = element('article', { class: `class-${i % 6}`, 'data-name': name }, element('h3', {}, name),
        ...['Waits', 'Oldest', 'Confirmed', 'Types'].map((title) => element('p', {}, element('span', { class: 'soft' }, title), element('b'))),
        actions.buttons('class', name));
      holder.children[i]?.remove();
      holder.insertBefore(card, holder.children[i] ?? null);
    }
    const texts = [count(one.lag), duration(one.lag_age_s), rate(one.rate), count(one.types)];
    texts.forEach((text, at) => write(card.children[at + 1].lastChild, text));
    mark(card, 'data-late', one.lag_age_s > one.late_after_s ? 'yes' : null);
  });
  while (holder.children.length > Object.keys(classes).length) holder.lastChild.remove();
}

/** What people have asked for, and when it ends. */
function showHeld(holder) {
  byId('holds').hidden = !model.held.length;
  while (holder.children.length > model.held.length) holder.lastChild.remove();
  model.held.forEach((one, i) => {
    const line = holder.children[i] ?? holder.appendChild(element('li', {}, element('b'), element('span'),
      element('span', { class: 'acts' }, element('button', { type: 'button' }, 'End it'))));
    line.lastChild.firstChild.onclick = () => actions.askEnd(one);
    mark(line.lastChild.firstChild, 'aria-label', `End what ${one.by} asked for`);
    line.lastChild.hidden = !actions.may_end;
    write(line.firstChild, `${of(one)} ${MODE_WORDS[one.mode] ?? one.mode}`);
    write(line.children[1], ` until ${clock(one.until_ms)} (${duration(Math.max(0, (one.until_ms - model.at_ms) / 1000))} left), by ${one.by}${one.why ? `: ${one.why}` : ''}`);
  });
}

/** Why what the files say is not in force. */
function showRefusal(holder) {
  byId('refusal').hidden = !model.refused.length;
  while (holder.children.length > model.refused.length) holder.lastChild.remove();
  model.refused.forEach((why, i) => write(holder.children[i] ?? holder.appendChild(element('li')), why));
}

/** The pictures, made anew when classes or routes are others. */
function showCurves() {
  const names = [Object.keys(model.parts.classes), Object.keys(model.parts.routes)];
  if (JSON.stringify(names) !== drawn) {
    drawn = JSON.stringify(names);
    curves = curvesOf(...names);
    byId('curves').replaceChildren(...curves.map((one) => one.figure));
  }
  for (const one of curves) one.draw(model.points, model.at_ms);
}

/** Show an event of the stream. */
function onEvent(event) {
  model.take(event);
  byId('proof').hidden = true;
  byId('main').hidden = false;
  write(byId('instance'), `${model.head.instance} \u00b7 ${model.head.version} \u00b7 ${clock(model.at_ms)} UTC`);
  for (const [id, text] of Object.entries(model.answers)) write(byId(id), text);
  const states = [['late', model.answers.late.startsWith('No') ? 'good' : 'bad'], ['better', { Y: 'good', N: model.answers.better.startsWith('No:') ? 'bad' : 'none' }[model.answers.better[0]] ?? 'none']];
  for (const [id, state] of states) mark(byId(id).parentElement, 'data-state', state);
  showRefusal(byId('refused'));
  showHeld(byId('held'));
  showClasses(byId('classes'));
  gates.show(model);
  types.take(model);
  if (model.changed.has('decisions')) showVerdicts(byId('verdicts'), model);
  showCurves();
}

const link = new Link(
  onEvent,
  (state, words) => {
    mark(byId('link'), 'data-state', state);
    write(byId('link'), words);
    mark(byId('main'), 'data-old', state === 'live' ? null : 'yes');
    if (state === 'live' && !was_live) actions.look();
    was_live = state === 'live';
  },
  (words) => {
    write(byId('proof-why'), words);
    byId('proof').hidden = false;
    byId('token').focus();
  },
);
byId('proof').addEventListener('submit', (event) => {
  event.preventDefault();
  link.prove(byId('token').value);
  byId('token').value = '';
});
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  colours.clear();
  if (curves) showCurves();
});
link.open();
