"""From what a person wants to offsets: settled once, by the command (docs/design/0045)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from proxy import config
from proxy.bridge.move import NEVER_MOVED, Direction, Move, serial
from proxy.errors import LogError, SettingsError
from proxy.model import Note, Partition
from proxy.operations.intervention import Answer, read
from proxy.operations.plan import Plan, PlannedTopic, read_plan
from proxy.operations.scope import Scope
from proxy.positions.identity import Committed, Found
from proxy.positions.port import EARLIEST, LATEST
from proxy.settings import EventType, LogSettings, Settings


class Cursors(Protocol):
    """What is asked of the group's cursors; see `KafkaCursors` and `NakadiCursors`."""

    async def topics(self) -> Mapping[str, Found]:
        """Return every topic that may be read."""
        ...

    async def committed(self) -> Mapping[Partition, Committed | None]:
        """Return everything that the group has committed; None is what can't be told now."""
        ...

    async def offsets(self, times: Mapping[Partition, int]) -> Mapping[Partition, int]:
        """Return the first offset at or after a time, one each."""
        ...


class Wanted(NamedTuple):
    """What is asked for."""

    direction: Direction
    scope: Scope
    time: int | None
    """Milliseconds since 1970, `EARLIEST` or `LATEST`; None: `offset`."""
    offset: int | None
    number: int | None
    """The one partition that is meant; None: all."""
    again: bool = False
    """A rewind that was made is to be made once more."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One partition, and where its cursor is to go."""

    partition: Partition
    event_type: str
    topic_id: str
    first: int
    """Where the group is; see `Move.first`."""
    held: int
    """The first offset from `first` on that the log still holds."""
    to: int
    is_moved: bool
    """False: it is there, or beyond."""
    asked_before: str = NEVER_MOVED
    """The id of a plan that says the same, and is made or under way."""

    @property
    def range(self) -> tuple[int, int]:
        """Return first and end of what is passed over, or comes again."""
        return (self.held, self.to) if self.to > self.held else (self.to, self.held)


class Plans:
    """The plans on the board, and who has answered them."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}
        self._answers: dict[str, Answer] = {}

    def take(self, notes: Iterable[Note]) -> None:
        """Take what is new on the board; what is not understood is for replicas to say."""
        for note in notes:
            self._plans.pop(note.key, None)
            self._answers.pop(note.key, None)
            try:
                plan, said = read_plan(note), read(note)
            except ValueError:
                continue
            if plan is not None:
                self._plans[plan.key] = plan
            elif isinstance(said, Answer):
                self._answers[note.key] = said

    def named(self, plan_ids: Collection[str]) -> list[Plan]:
        """Return plans that stand on the board, the earliest first."""
        return sorted((one for one in self._plans.values() if one.id in plan_ids), key=lambda one: serial(one.id))

    def next_number(self, committed: Mapping[Partition, Committed | None]) -> int:
        """Return a number above all that stand on the board and in what is committed."""
        ids = [plan.id for plan in self._plans.values()] + [one.move for one in committed.values() if one is not None]
        return 1 + max((serial(one)[0] for one in ids), default=0)

    def latest(self, partition: Partition, topic_id: str) -> tuple[Plan, Move] | None:
        """Return the latest plan that names a partition of a log."""
        found = [(plan, move) for plan in self._plans.values() if (move := plan.moves().get(partition)) is not None]
        ours = [(plan, move) for plan, move in found if move.topic_id == topic_id]
        return max(ours, key=lambda one: serial(one[0].id), default=None)

    def answered(self, plan_ids: Collection[str]) -> set[str]:
        """Return the members that have answered each of these plans."""
        told = {(one.id, one.member) for one in self._answers.values()}
        members = {member for _, member in told}
        return {member for member in members if all((one, member) in told for one in plan_ids)}


async def choose(
    wanted: Wanted, settings: Settings, cursors: Cursors, plans: Plans, now_ms: int
) -> tuple[list[Chosen], Mapping[Partition, Committed | None]]:
    """Return each partition that is meant, in order, and what is committed.

    Raises `SettingsError` with every mistake that only the log can tell, `LogError`.
    """
    found, committed = await cursors.topics(), await cursors.committed()
    types = _topics(wanted, settings, found)
    ids = _partitions(wanted, types, found)
    if untold := [at for at in ids if at in committed and committed[at] is None]:
        raise LogError(f"the log can't tell now what is committed of {min(untold)}")
    known = {at: one for at, one in committed.items() if one is not None}
    if not known.keys() & {Partition(topic, at) for topic in types for at in found[topic].partitions}:
        raise SettingsError(
            [f"group {settings.log.group} has committed nothing of {_listed(types)}: there is no cursor to move"]
        )
    first = await cursors.offsets(dict.fromkeys(ids, EARLIEST))
    starts = await cursors.offsets(_start_times(settings.log, ids, known))
    end = await cursors.offsets(dict.fromkeys(ids, LATEST))
    if wanted.offset is not None:
        _check_holds(wanted.offset, first, end)
        targets: Mapping[Partition, int] = dict.fromkeys(ids, wanted.offset)
    else:
        assert wanted.time is not None
        targets = await cursors.offsets(dict.fromkeys(ids, wanted.time))
    chosen = []
    for at, told in sorted(ids.items()):
        one, topic_id = known.get(at), told
        if one is not None and one.topic_id and told and one.topic_id != told:
            one = Committed(first[at], told)  # the topic was made anew: that is where it will be read
        elif one is not None:
            topic_id = told or one.topic_id
        start = one.offset if one is not None else starts[at]
        move = NEVER_MOVED if one is None else one.move
        held = max(start, first[at])
        chosen.append(_chosen(wanted, at, types[at.topic], topic_id, start, held, targets[at], move, plans, now_ms))
    against = [one for one in chosen if wanted.offset is not None and _is_against(wanted, one, plans)]
    if against:
        raise SettingsError([_against(wanted, one) for one in against])
    return chosen, committed


def _partitions(wanted: Wanted, types: Mapping[str, str], found: Mapping[str, Found]) -> dict[Partition, str]:
    """Return the ids of their topics by the partitions that are meant. Raises `SettingsError` if there is none."""
    ids = {
        Partition(topic, number): found[topic].id
        for topic in types
        for number in found[topic].partitions
        if wanted.number in {None, number}
    }
    if not ids:
        raise SettingsError([f"{_listed(types)} has no partition {wanted.number}"])
    return ids


def _check_holds(offset: int, first: Mapping[Partition, int], end: Mapping[Partition, int]) -> None:
    """Raise `SettingsError` with a line for each partition that has no such offset."""
    beyond = [at for at in sorted(first) if not first[at] <= offset <= end[at]]
    if beyond:
        raise SettingsError([f"{at} has no offset {offset}: it holds {first[at]} to {end[at]}" for at in beyond])


def _is_against(wanted: Wanted, one: Chosen, plans: Plans) -> bool:
    """Return whether an offset lies the other way, and that is not because the move was made before."""
    latest = plans.latest(one.partition, one.topic_id)
    if latest is not None and (latest[1].direction, latest[1].to) == (wanted.direction, one.to):
        return False
    return one.to < one.held if wanted.direction is Direction.SKIP else one.to > one.held


def _against(wanted: Wanted, one: Chosen) -> str:
    other = "rewind goes back" if wanted.direction is Direction.SKIP else "skip goes forward"
    return f"{one.partition} stands at {one.held}: {wanted.direction} can't take it to {one.to}; {other}"


def _chosen(  # noqa: PLR0917  # one partition's facts
    wanted: Wanted,
    at: Partition,
    event_type: str,
    topic_id: str,
    first: int,
    held: int,
    to: int,
    made: str,
    plans: Plans,
    now_ms: int,
) -> Chosen:
    is_moved = to > held if wanted.direction is Direction.SKIP else to < held
    before, latest = NEVER_MOVED, plans.latest(at, topic_id)
    if latest is not None and is_moved:
        plan, move = latest
        is_same = (move.direction, move.to) == (wanted.direction, to)
        is_made = serial(made) >= serial(plan.id)
        if is_same and ((not is_made and now_ms < plan.until_ms) or (made == plan.id and not wanted.again)):
            before, is_moved = plan.id, False
    return Chosen(at, event_type, topic_id, first, held, to, is_moved, before)


def planned(chosen: Iterable[Chosen]) -> tuple[PlannedTopic, ...]:
    """Return the moves of a plan."""
    by_topic: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for one in chosen:
        if one.is_moved:
            name = one.partition.topic, one.topic_id
            by_topic.setdefault(name, []).append((one.partition.number, one.first, one.to))
    return tuple(PlannedTopic(topic, topic_id, tuple(parts)) for (topic, topic_id), parts in by_topic.items())


def meant_by(wanted: Wanted, settings: Settings, topic: str) -> EventType | None:
    """Return the event type of a topic if it is among those that are asked for."""
    types, classes, _ = wanted.scope
    known = config.event_type_for(settings, topic)
    return known if known is not None and (known.name in types or known.priority in classes) else None


def _topics(wanted: Wanted, settings: Settings, found: Mapping[str, Found]) -> dict[str, str]:
    """Return event types by the topics that are meant and may be read. Raises `SettingsError`."""
    types = wanted.scope[0]
    meant = {topic: one.name for topic in found if (one := meant_by(wanted, settings, topic)) is not None}
    missing = [f"no topic of event type {name} exists, or may be read" for name in types if name not in meant.values()]
    if not missing and not meant:
        missing.append("no topic of these classes exists, or may be read")
    if missing:
        raise SettingsError(missing)
    return meant


def _start_times(
    log: LogSettings, partitions: Iterable[Partition], committed: Mapping[Partition, Committed]
) -> dict[Partition, int]:
    """Return from when on a replica would read what was never committed; see `Placing`."""
    begun = {at.topic for at in committed}
    start = {"earliest": EARLIEST, "latest": LATEST}.get(log.start)
    if start is None:
        assert log.start_timestamp is not None
        start = round(log.start_timestamp.timestamp() * 1000)
    return {at: EARLIEST if at.topic in begun else start for at in partitions if at not in committed}


def _listed(topics: Iterable[str]) -> str:
    return ", ".join(sorted(topics))
