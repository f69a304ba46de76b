"""What `tidegate skip` and `tidegate rewind` say: their help, and their answers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from proxy.bridge.move import Direction, Moved
from proxy.config.items import printable
from proxy.cursor.carrying import Carried
from proxy.cursor.choice import Chosen

_MS = 1000

_WHICH = """
Which events: --type names an event type, --class all types of a class; each may be repeated. --partition takes one
partition of each of their topics.

Offsets are settled once, when the command runs: it tells for each partition the range and how many events it holds, and
asks. --dry-run only tells. Then every replica moves its own partitions, when what is on its way has its outcome; with
every replica stopped the command moves them itself. The same command again changes nothing while it means the same
place: 1h ago and --to-end are another one later on.

On Nakadi the command moves them itself, with replicas running or stopped; what they had read by then is sent before.
There is no --to TIME, and a rewind that was made and is asked for again once events of it were sent is another rewind:
nothing there keeps which one was made.
"""
_ENDS = """
exit codes: 0 it is done (or there was nothing to do), 1 a partition was not moved or a replica did not answer in time,
  or the log does not answer, 2 a mistake: nothing was changed
"""
SKIP = f"""
Passes over events: they are never sent, though the log keeps them. To a time means: to the first event of that time or
later. Times need not rise with offsets, so events that are older may come behind it; they are sent.
{_WHICH}
examples:
  tidegate skip -c tidegate.yaml --type brand-alert --to 1h --dry-run    what would be dropped: all older than an hour
  tidegate skip -c tidegate.yaml --class P3 --to-end --why "flood of a test, ticket 4711"
  tidegate skip -c tidegate.yaml --type brand-alert --partition 3 --to-offset 81204
{_ENDS}"""
REWIND = f"""
Sends events again, from a time or an offset on: in their order, behind what waits in class order (the catch-up tier),
with the message ids they had, so that consumers know an event that they have had. To a time means: to the first event
of that time or later; older ones that lie behind it come again, too.
{_WHICH}
A rewind that was made is made again only with --again.

examples:
  tidegate rewind -c tidegate.yaml --type order-confirmed --to 2026-11-23T14:02:00Z --dry-run
  tidegate rewind -c tidegate.yaml --type order-confirmed --to 30m --why "mail lost its queue, ticket 4711"
  tidegate rewind -c tidegate.yaml --class P1 --to-start
{_ENDS}"""


class Counted(NamedTuple):
    """What a range holds."""

    events: int
    newer: int | None
    """Of these, events of the time that was named or later; None: no time was named."""


def dry(
    direction: Direction, chosen: Sequence[Chosen], counts: Mapping[Chosen, Counted], time: int | None
) -> list[str]:
    """Return a line for each event type, and for each of its partitions."""
    found = []
    for name in sorted({one.event_type for one in chosen}):
        ours = [one for one in chosen if one.event_type == name]
        total = _sum([counts[one] for one in ours if one in counts])
        found.append(f"{name}: {_holds(direction, total, time)}")
        found += [f"  {_partition(direction, one, counts.get(one), time)}" for one in ours]
    return [printable(one) for one in found]


def _partition(direction: Direction, one: Chosen, counted: Counted | None, time: int | None) -> str:
    if counted is not None:
        first, end = one.range
        return f"{one.partition} [{first}, {end}): {_holds(direction, counted, time)}"
    if one.asked_before:
        return f"{one.partition}: asked for before, as {one.asked_before}: nothing changes"
    return f"{one.partition}: stands at {one.held}, {one.to} is not {_beyond(direction)} that: nothing changes"


def _beyond(direction: Direction) -> str:
    return "beyond" if direction is Direction.SKIP else "before"


def _holds(direction: Direction, counted: Counted, time: int | None) -> str:
    events = "1 event" if counted.events == 1 else f"{counted.events:,} events"
    words = f"{events} {'dropped' if direction is Direction.SKIP else 'again'}"
    if counted.newer is None or time is None:
        return words
    at = datetime.fromtimestamp(time / _MS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{words}, {counted.newer:,} of {at} or later"


def _sum(counts: Sequence[Counted]) -> Counted:
    newer = [one.newer for one in counts if one.newer is not None]
    return Counted(sum(one.events for one in counts), sum(newer) if newer else None)


def outcome(group: str, wanted: Sequence[Chosen], carried: Carried, answered: int, seconds: float | None) -> list[str]:
    """Return what became of it: who has answered, who has not, and what is not moved within `seconds`, if bounded."""
    within = "" if seconds is None else f" within {seconds:g} s"
    left = set(carried.left)
    made = sum(one.partition not in left for one in wanted)
    found = [f"{made} of {len(wanted)} partitions moved"]
    if carried.members:
        found.append(f"{answered} of {len(carried.members)} replicas have answered")
    else:
        none = "" if seconds is None else f"no replica is in group {group}: "
        ours = len({one.partition for one in carried.moved} - left)
        if ours:
            found.append(f"{none}this command has moved {'them' if ours == made else ours}")
        if ours < made:
            found.append(
                f"{made - ours} were moved by a replica that has gone since; the record is its own, if it was written"
            )
        firsts = {one.partition: one.first for one in wanted}
        found += [f"  {_by_then(one)}" for one in carried.moved if one.done != firsts.get(one.partition)]
    found += [f"  no answer from {one.id} at {one.host}{within}" for one in carried.silent]
    found += [f"  {at} is not moved{within}" for at in carried.left]
    return [printable(one) for one in found]


def _by_then(one: Moved) -> str:
    if one.to == one.done:
        return f"{one.partition} stood at {one.done} by then: nothing changes"
    first, end = sorted((one.done, one.to))
    what = "is dropped" if one.to > one.done else "comes again"
    return f"{one.partition} stood at {one.done} by then: [{first}, {end}) {what}"


def as_json(  # what is told of a command
    direction: Direction,
    plan_id: str | None,
    chosen: Sequence[Chosen],
    counts: Mapping[Chosen, Counted],
    carried: Carried | None,
    *,
    is_dry: bool,
) -> dict[str, Any]:
    """Return the same for programs; `id` is null where nothing was pinned."""
    left = set() if carried is None else set(carried.left)
    partitions = [
        {
            "type": one.event_type,
            "topic": one.partition.topic,
            "partition": one.partition.number,
            "first": one.range[0] if one in counts else None,
            "end": one.range[1] if one in counts else None,
            "events": counts[one].events if one in counts else 0,
            "newer": counts[one].newer if one in counts else None,
            "asked_before": one.asked_before or None,
            "is_moved": None
            if carried is None or not (one.is_moved or one.asked_before)
            else one.partition not in left,
        }
        for one in chosen
    ]
    members = [] if carried is None else carried.members
    silent = set() if carried is None else {one.id for one in carried.silent}
    replicas = [{**one._asdict(), "answered": one.id not in silent} for one in members]
    return {
        "do": direction.value,
        "id": plan_id,
        "dry_run": is_dry,
        "partitions": partitions,
        "replicas": replicas,
    }
