"""The judge of cursors: every commit must be what the plans of people say, once, and in their order."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from proxy.bridge.move import NEVER_MOVED, Direction, Move, serial
from proxy.model import Partition
from proxy.operations.plan import Plan
from proxy.positions.identity import Committed
from tests.histories.facts import Fact, Facts

At = tuple[str, Partition]
"""A topic's id and one of its partitions."""


class Bounds(NamedTuple):
    """What may have been done with when a move was made: what was committed, and what is by the judge's books."""

    least: int
    most: int

    def may_go_to(self, move: Move, offset: int) -> bool:
        """Return whether the move goes there from anywhere between."""
        if offset != move.to:
            return False
        if move.direction is Direction.REWIND:
            return self.most > offset
        return max(self.least, move.first) <= min(self.most, move.to - 1)

    def may_stay(self, move: Move, offset: int) -> bool:
        """Return whether the move leaves it there: a rewind found no more done than it goes back to, and it went on."""
        if not self.least <= offset <= self.most:
            return False
        has_found_less = move.direction is Direction.REWIND and self.least <= move.to
        return has_found_less or move.end(offset) == offset


@dataclass(slots=True)
class _Cursor:
    """What the log has taken of one partition."""

    committed: int = 0
    move: str = NEVER_MOVED


class Cursors:
    """Knows the plans, sees every commit that the log takes, says what became of the events."""

    def __init__(self, facts: Facts, *, in_order: bool) -> None:
        """Make one; not `in_order`, an older commit may come last, over a slow connection."""
        self._facts = facts
        self._in_order = in_order
        self._plans: dict[At, dict[str, Move]] = defaultdict(dict)
        self._cursors: dict[At, _Cursor] = defaultdict(_Cursor)
        self._made: dict[At, set[str]] = defaultdict(set)
        self.come_again: dict[Partition, int] = defaultdict(int)
        """Copies that rewinds are the reason of."""

    def on_planned(self, plan: Plan) -> None:
        """Note what people want."""
        for partition, move in plan.moves().items():
            self._plans[move.topic_id, partition][move.id] = move

    def take(self, partition: Partition, committed: Committed, log_first: int, *, is_out: bool) -> Iterator[str]:
        """Take a commit, and yield what is wrong with it.

        `log_first` is where the log begins; `is_out`: something has no outcome that might still get one in time.
        """
        at, (offset, move_id) = (committed.topic_id, partition), (committed.offset, committed.move)
        cursor = self._cursors[at]
        before, cursor.committed = cursor.committed, offset
        if move_id == cursor.move:
            if offset < before and self._in_order:
                yield f"{partition} goes back from {before} to {offset} by no move"
            return
        move, last, cursor.move = self._plans[at].get(move_id), cursor.move, move_id
        if move is None:
            yield f"{partition} is committed with move {move_id or 'none'} after {last}: nobody asked for that"
            return
        if serial(move_id) < serial(last):
            yield f"{partition} is committed with move {move_id} after {last}"
        if move_id in self._made[at]:
            yield f"{partition} makes move {move_id} once more"
        self._made[at].add(move_id)
        yield from self._judge(at, move, Bounds(before, self._done(at, log_first)), offset, is_out=is_out)

    def _judge(self, at: At, move: Move, bounds: Bounds, offset: int, *, is_out: bool) -> Iterator[str]:
        topic_id, partition = at
        may_stay = bounds.may_stay(move, offset)
        if not may_stay and not bounds.may_go_to(move, offset):
            yield f"{partition} goes to {offset} by {move.direction} {move.id} from {bounds}, the plan says {move.to}"
        if is_out and not may_stay:
            yield f"{partition} makes move {move.id} although some of it is out"
        for fact in self._of(topic_id, partition):
            if move.direction is Direction.SKIP and move.first <= fact.offset < offset == move.to:
                fact.passed_over |= not fact.is_settled
            elif move.direction is Direction.REWIND and offset <= fact.offset and not may_stay:
                self.come_again[partition] += fact.stored
                self._facts.come_again(fact)

    def _done(self, at: At, log_first: int) -> int:
        """Return up to where everything is done with; what a replica knows of may be less."""
        facts = (fact for fact in self._of(*at) if fact.offset >= log_first and not fact.is_settled)
        return next((fact.offset for fact in facts), 2**62)

    def _of(self, topic_id: str, partition: Partition) -> list[Fact]:
        track = self._facts.tracks.get(partition)
        return [] if track is None else [fact for fact in track.facts if fact.topic_id == topic_id]

    def left(self, topic_id: str, partition: Partition) -> str | None:
        """Return the id of the latest move of a partition if it is still to be made."""
        plans = self._plans.get((topic_id, partition))
        latest = max(plans, key=serial) if plans else NEVER_MOVED
        return latest if latest != self._cursors[topic_id, partition].move else None
