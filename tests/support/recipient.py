"""A recipient that remembers how every event ended, and that no event ends twice."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.bridge.broker import Address, Batch
from proxy.model import Event, Outcome, Partition, Reason


@dataclass(frozen=True, slots=True)
class End:
    """How one publication ended."""

    position: object
    outcome: Outcome
    reason: Reason | None
    detail: str
    seconds: float | None


class Recorder:
    """One event type's listener, for a test. `on_end` is called for every end."""

    def __init__(self, address: Address, partition: Partition, *, rank: int = 0, is_old: bool = False) -> None:
        self.address = address
        self.partition = partition
        self.rank = rank
        self.is_old = is_old
        self.ends: list[End] = []
        self.batches: list[Batch] = []
        self.is_held = False
        self.most_open = 0
        """The most events that were written without an outcome when an outcome came."""
        self.on_end: Callable[[Batch, int, int, Outcome], None] = lambda *_: None
        self._ended: set[tuple[int, int]] = set()
        self._changed = asyncio.Event()
        self._next = 0

    def batch(self, events: Sequence[Event]) -> Batch:
        batch = Batch(self.partition, events, self._next, self.address, self.rank, self, is_old=self.is_old)
        self._next += len(events)
        self.batches.append(batch)
        return batch

    def may_send(self) -> bool:
        return not self.is_held

    def on_outcome(
        self,
        batch: Batch,
        start: int,
        end: int,
        outcome: Outcome,
        *,
        seconds: float | None = None,
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        assert 0 <= start < end <= batch.done, "an outcome of what was never written"
        self.most_open = max(self.most_open, self.written - len(self.ends))
        for index in range(start, end):
            assert (id(batch), index) not in self._ended, "two outcomes of one event"
            self._ended.add((id(batch), index))
            self.ends.append(End(batch.events[index].position, outcome, reason, detail, seconds))
        self._changed.set()
        self.on_end(batch, start, end, outcome)

    @property
    def sent(self) -> list[Event]:
        """The events written, in their order."""
        return [event for batch in self.batches for event in batch.events[: batch.done]]

    @property
    def written(self) -> int:
        return sum(batch.done for batch in self.batches)

    def positions(self, outcome: Outcome) -> list[object]:
        return [end.position for end in self.ends if end.outcome is outcome]

    def count(self, outcome: Outcome) -> int:
        return len(self.positions(outcome))

    async def ended(self, count: int, *, deadline: float = 20.0) -> None:
        """Wait until so many events have ended."""
        try:
            async with asyncio.timeout(deadline):
                while len(self.ends) < count:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{len(self.ends)} of {count} ended within {deadline} s") from None

    async def all_ended(self, *, deadline: float = 20.0) -> None:
        """Wait until everything written has ended."""
        await self.ended(self.written, deadline=deadline)
