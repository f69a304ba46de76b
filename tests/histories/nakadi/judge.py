"""What must be so of every event: it arrives as it was, in the promised order, before its batch is committed."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from tests.histories.nakadi.plan import NakadiPlan
from tests.nakadi.reading import Key
from tests.wire.rabbit.cluster import Verdict
from tests.wire.rabbit.frames import Message

REASON = "tidegate-reason"
"""The header that a dead letter has, and nothing else."""


class Asked(NamedTuple):
    """What somebody wants of a cursor, in indexes: a skip of `[first, to)`; a rewind to `to`, or to where it stands."""

    is_skip: bool
    first: int
    to: int


class Jump(NamedTuple):
    """What a cursor did."""

    before: int
    after: int
    was_held: bool


@dataclass(slots=True)
class Line:
    """One partition: what was published to it, and what of that has arrived, by index."""

    order: str
    events: list[bytes] = field(default_factory=list)
    stored: Counter[int] = field(default_factory=Counter)
    letters: Counter[int] = field(default_factory=Counter)
    next: int = 0
    """The first index that has not arrived."""
    ahead: set[int] = field(default_factory=set)
    """Arrived before one that stands before them: allowed if that one becomes a letter, which holds nobody up."""
    passed: set[int] = field(default_factory=set)
    """Passed over, as was asked for."""
    again: int = 0
    """Events that cursors went back over."""
    asked: list[Asked] = field(default_factory=list)
    jumps: list[Jump] = field(default_factory=list)
    ranges: list[range] = field(default_factory=list)
    """What replicas have recorded as committed, in places."""

    def has(self, index: int) -> bool:
        """Return whether an event is done with."""
        return index in self.stored or index in self.letters or index in self.passed

    def go_on(self) -> None:
        """Look what has arrived without a gap."""
        while self.has(self.next):
            self.ahead.discard(self.next)
            self.next += 1


class Judge:
    """Keeps the account of one history."""

    def __init__(self, plan: NakadiPlan, clock: Callable[[], float]) -> None:
        self.violations: list[str] = []
        self.steps: list[tuple[float, str]] = []
        self.lines: dict[Key, Line] = {}
        self.interruptions: Counter[str] = Counter()
        """By event type: streams that were opened, and what else may make events come again."""
        self.unsubscribed: set[str] = set()
        """Event types of which a subscription was deleted: a replica may know an older cursor than the group had."""
        self._plan = plan
        self._clock = clock
        self._places: dict[bytes, tuple[Key, int]] = {}

    def note(self, step: str) -> None:
        """Remember what happens."""
        self.steps.append((self._clock(), step))

    def accuse(self, wrong: str) -> None:
        """Remember what must not be."""
        self.violations.append(wrong)
        self.note(f"VIOLATION: {wrong}")

    @property
    def digest(self) -> str:
        """Return what is the same for the same seed."""
        return sha256(repr(self.steps).encode()).hexdigest()

    def on_appended(self, key: Key, events: list[bytes]) -> None:
        """Learn of events."""
        line = self.lines.setdefault(key, Line(self._plan.settings.event_types[key[0]].order))
        for event in events:
            self._places[event] = key, len(line.events)
            line.events.append(event)

    def on_published(self, message: Message, verdict: Verdict | None) -> None:
        """Judge what arrives at the broker."""
        if message.body not in self._places:
            self.accuse(f"what arrives is no event: {message.body[:60]!r}")
            return
        key, index = self._places[message.body]
        if verdict is not Verdict.ACKED:
            self.note(f"{key[0]}/{key[1]} {index} from {message.process} is not taken")
            return
        line = self.lines[key]
        is_letter = REASON in message.headers
        is_first = not line.has(index)
        (line.letters if is_letter else line.stored)[index] += 1
        self.note(f"{key[0]}/{key[1]} {index} from {message.process}{' as a letter' * is_letter}")
        is_kept = line.order == "strict" or (line.order == "partition" and self._plan.has_calm_broker)
        if is_first and is_kept and not is_letter:
            if line.order == "strict" and index > line.next:
                self.accuse(f"{key[0]}/{key[1]}: {index} comes before {line.next}, although its order is strict")
            elif (before := max(line.ahead, default=index)) > index:
                self.accuse(f"{key[0]}/{key[1]}: {before} comes before {index}, although its order is {line.order}")
            elif index > line.next:
                line.ahead.add(index)
        line.go_on()

    def on_committed(self, key: Key, end: int) -> None:
        """Judge a commit."""
        self.note(f"{key[0]}/{key[1]} is committed up to {end}")
        line = self.lines.get(key)
        if line is not None and end > line.next and any(not line.has(index) for index in range(line.next, end)):
            self.accuse(f"{key[0]}/{key[1]} is committed up to {end}, but {line.next} has not arrived")

    def ask(self, key: Key, asked: Asked) -> None:
        """Learn what somebody wants."""
        if key in self.lines:
            self.lines[key].asked.append(asked)

    def on_moved(self, key: Key, before: int, after: int, was_held: bool) -> None:
        """Judge a cursor that was moved: only as was asked for, a skip never back if it was held still before."""
        self.note(f"{key[0]}/{key[1]} is moved from {before} to {after}{' while held' * was_held}")
        line = self.lines.get(key)
        if line is None or before == after:
            return
        line.jumps.append(Jump(before, after, was_held))
        aims = [one for one in line.asked if one.to == after]
        if after > before:
            if not any(one.is_skip and one.first <= before for one in aims):
                self.accuse(f"{key[0]}/{key[1]} passes over {before} to {after}, which nobody has asked for")
            line.passed.update(range(before, after))
            line.go_on()
        else:
            if not any(not one.is_skip or not was_held for one in aims):
                self.accuse(f"{key[0]}/{key[1]} goes back from {before} to {after}, which nobody has asked for")
            line.again += before - after

    def on_told(self, key: Key, done: int, to: int, jumps_before: int) -> None:
        """Judge what a command says that it has moved: exactly so, if it was held still."""
        jumps = self.lines[key].jumps[jumps_before:]
        if not jumps or (all(one.was_held for one in jumps) and all(one[:2] != (done, to) for one in jumps)):
            self.accuse(f"{key[0]}/{key[1]} is said to have gone from {done} to {to}, but {jumps}")

    def on_range(self, key: Key, committed: range) -> None:
        """Judge what a replica records as committed: no other has, unless cursors went back."""
        line = self.lines[key]
        twice = next(
            (one for one in line.ranges if max(one.start, committed.start) < min(one.stop, committed.stop)), None
        )
        if twice is not None and not line.again and key[0] not in self.unsubscribed:
            self.accuse(f"{key[0]}/{key[1]}: {committed} is recorded as committed, as {twice} is")
        line.ranges.append(committed)

    def on_told_dropped(self, key: Key, there: list[int]) -> None:
        """Judge what a replica says that the log had dropped: of that nothing is there."""
        self.note(f"{key[0]}/{key[1]} is said to have dropped something")
        if there:
            self.accuse(f"{key[0]}/{key[1]}: {there} are said to be dropped, and are there")

    def judge_end(self) -> None:
        """Judge what is left, and what came more than once."""
        for key, line in self.lines.items():
            lost = [index for index in range(len(line.events)) if not line.has(index)]
            if lost:
                self.accuse(f"{key[0]}/{key[1]}: {lost} never arrived")
            again = line.stored.total() - len(line.stored)
            most = self.interruptions[key[0]] * (
                self._plan.settings.limits.uncommitted_events + self._plan.batch_events
            )
            most += line.again
            if again > most:
                self.accuse(f"{key[0]}/{key[1]}: {again} came again, {most} may")
