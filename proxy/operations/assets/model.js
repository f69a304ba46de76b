// What is known now: the first event has everything, each one after it what has changed; null is a member that has gone.

const POINTS = 600;

class Model {
  constructor() {
    this.parts = { routes: {}, decisions: {}, classes: {}, types: {} };
    this.columns = [];
    this.points = [];
    this.changed = new Set();
  }

  /** Take an event of the stream; `changed` then names the parts that are no longer the same. */
  take(event) {
    if (event.columns) {
      this.parts = { routes: {}, decisions: {}, classes: {}, types: {} };
      this.columns = event.columns;
      this.place = Object.fromEntries(event.columns.map((name, i) => [name, i]));
      this.head = { version: event.version, instance: event.instance };
    }
    this.changed.clear();
    for (const [name, members] of Object.entries(this.parts)) {
      const news = Object.entries(event[name] ?? {});
      if (news.length || event.columns) this.changed.add(name);
      for (const [member, value] of news) {
        if (value === null) delete members[member];
        else members[member] = value;
      }
    }
    if (event.points) this.points = event.points;
    if (event.point) this.points.push(event.point);
    if (this.points.length > POINTS) this.points.splice(0, this.points.length - POINTS);
    this.at_ms = event.at_ms;
    this.held = event.held;
    this.refused = event.refused ?? [];
    this.answers = event.answers;
    this.types_in_all = event.types_in_all;
  }

  /** The seconds since an instant, by the replica's clock. */
  age(ms) {
    return ms === null ? null : Math.max(0, (this.at_ms - ms) / 1000);
  }
}
