"""What becomes of events that can't be delivered: one event type's dead letters, confirmed like any other event.

The partition's watermark waits for the dead letter's confirm, so an event is never committed unless it is either
delivered or kept where an operator finds it.

A dead letter that is refused (no permission, no such queue) is no reason to give up: its destination can come back as
well as anything else. It waits, one is tried now and then in place of all, and the log of the process says so once.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import structlog

from proxy.bridge.broker import Address, Batch, Lane
from proxy.bridge.flow import LONGEST_PAUSE, PartitionFlow
from proxy.bridge.letter_slots import LetterSlots
from proxy.model import Event, Outcome, Reason
from proxy.settings import EventType, RoutingKey

MOST_OPEN = 200
"""While so many dead letters of a type are unconfirmed, the type sends nothing else."""
REFUSED_PAUSE = 2.0
"""Seconds between two attempts at a destination that refuses. Larger: it is found later when it is back."""
SAY_INTERVAL = 60.0
"""Seconds between two lines in the process log about dead letters of one type for one reason; all are counted."""

_say = structlog.get_logger("tidegate.listener")


class DeadLetters:
    """Sends one event type's dead letters over the dead-letter lane."""

    def __init__(
        self,
        event_type: EventType,
        rank: int,
        lane: Lane,
        slots: LetterSlots,
        *,
        on_outcome: Callable[[PartitionFlow, Batch, int, int, Outcome, Reason], None],
        on_done: Callable[[PartitionFlow, int, Sequence[Event], Reason], None],
        on_impossible: Callable[[PartitionFlow, Event, Reason, str], None],
        on_refused: Callable[[PartitionFlow, Event, str], None],
        wake: Callable[[], None],
    ) -> None:
        self._type = event_type
        self._rank = rank
        self._lane = lane
        self._slots = slots
        self._out = 0
        self._out_bytes = 0
        """Of those handed to the lane and without an outcome."""
        self._see = on_outcome
        self._on_done = on_done
        self._on_impossible = on_impossible
        self._on_refused = on_refused
        self._wake = wake
        self._changed = asyncio.Event()
        self._waiting: deque[tuple[PartitionFlow, Batch]] = deque()
        self._sending: list[Batch] = []
        self._open = 0
        self._not_before = 0.0
        self._is_refused = False
        self._silent_until: dict[Reason, float] = {}

    def add(self, flow: PartitionFlow, first: int, events: Sequence[Event], reason: Reason, detail: str) -> None:
        """Take over undeliverable events of contiguous sequence numbers; without a destination the type must stop."""
        destination = self._type.dead_letter
        if destination is None:
            self._on_impossible(flow, events[0], reason, detail)
            return
        self._tell_of(flow, events[0], reason, detail)
        address = Address(
            destination.exchange,
            RoutingKey(constant=destination.routing_key),
            self._type.content_type,
            notes=(("tidegate-type", self._type.name), ("tidegate-reason", reason.value), ("tidegate-detail", detail)),
            lenient=True,
        )
        self._open += len(events)
        letter = _DeadLetter(self, flow, reason)
        self._waiting.append((flow, Batch(flow.partition, events, first, address, self._rank, letter)))
        self._changed.set()

    @property
    def open(self) -> int:
        """Dead letters that wait or are out, whatever their flow."""
        return self._open

    @property
    def is_full(self) -> bool:
        """Whether the type must wait for its dead letters."""
        return self._open >= MOST_OPEN

    @property
    def waiting(self) -> tuple[int, int]:
        """Dead letters waiting to be sent, and their bytes."""
        batches = [batch for _, batch in self._waiting]
        return sum(len(batch.events) for batch in batches), sum(
            event.size for batch in batches for event in batch.events
        )

    def due(self, now: float) -> float | None:
        """Return when the next one may be sent, `now` or later; None if none waits, or those under way must end."""
        if not self._waiting:
            return None
        flow, batch = self._waiting[0]
        events, size = self._slots.room(self._out, self._out_bytes)
        is_free = flow.closing or not self._out or (events > 0 and batch.events[0].size <= size)
        return max(now, self._not_before) if is_free else None

    async def run(self, admit: Callable[[int, int], Awaitable[None]]) -> None:
        """Send until cancelled; `admit` waits until so many letters of so many bytes may go."""
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            due = self.due(loop.time())
            if due is not None and due <= loop.time():
                await self._send(admit)
                continue
            timer = None if due is None else loop.call_at(due, self._changed.set)
            try:
                await self._changed.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    async def _send(self, admit: Callable[[int, int], Awaitable[None]]) -> None:
        """Write what may go now, one if the destination refuses; outcomes come later."""
        self._forget_given_up()
        picked = self._pick()
        if not picked:
            return
        try:
            await admit(_count(picked), _size(picked))
        except BaseException:
            self._waiting.extendleft((_letter_of(batch).flow, batch) for batch in reversed(picked))
            raise
        batches = [batch for batch in picked if not _letter_of(batch).flow.closing]
        self._open -= _count(picked) - _count(batches)
        for batch in batches:
            _letter_of(batch).flow.letters_out += len(batch.events)
        self._take(batches)
        self._sending = batches
        try:
            await self._lane.publish(batches)
        finally:
            self._sending = []
            for batch in batches:
                if batch.done < len(batch.events):
                    _letter_of(batch).flow.letters_out -= len(batch.events) - batch.done
                    self._give(batch, batch.done, len(batch.events))
                    self._again(batch, batch.done, len(batch.events))

    def _forget_given_up(self) -> None:
        """Drop the letters of flows that were let go: the log has their events."""
        given_up = sum(len(batch.events) for flow, batch in self._waiting if flow.closing)
        if given_up:
            self._open -= given_up
            self._waiting = deque(one for one in self._waiting if not one[0].closing)
            self._wake()

    def _pick(self) -> list[Batch]:
        """Take from the front what the type's share of the lane has room for."""
        events, size = self._slots.room(self._out, self._out_bytes)
        if self._is_refused and self._waiting:
            self._not_before = asyncio.get_running_loop().time() + REFUSED_PAUSE
            events = min(events, 1)
        picked: list[Batch] = []
        alone = not self._out
        while self._waiting and events:
            flow, batch = self._waiting[0]
            count = 0
            for event in batch.events[:events]:
                if event.size > size and not alone:
                    break
                alone = False
                size -= event.size
                count += 1
            if not count:
                break
            self._waiting.popleft()
            picked.append(_part(batch, 0, count))
            events -= count
            if count < len(batch.events):
                self._waiting.appendleft((flow, _part(batch, count, len(batch.events))))
        return picked

    def _take(self, batches: Sequence[Batch]) -> None:
        count, size = _count(batches), _size(batches)
        self._out += count
        self._out_bytes += size
        self._slots.take(count, size)

    def _give(self, batch: Batch, start: int, end: int) -> None:
        size = sum(event.size for event in batch.events[start:end])
        self._out -= end - start
        self._out_bytes -= size
        self._slots.give(end - start, size)
        self._changed.set()
        self._wake()

    def withdraw(self, flow: PartitionFlow) -> None:
        """Write no more dead letters of the flow."""
        self._lane.withdraw([batch for batch in self._sending if _letter_of(batch).flow is flow])

    def on_outcome(self, batch: Batch, start: int, end: int, outcome: Outcome, detail: str) -> None:
        """Take the outcome of some dead letters."""
        letter = _letter_of(batch)
        self._see(letter.flow, batch, start, end, outcome, letter.reason)
        letter.flow.letters_out -= end - start
        self._give(batch, start, end)
        if outcome is Outcome.CONFIRMED:
            self._open -= end - start
            if self._is_refused:
                self._is_refused, self._not_before = False, 0.0
                self._changed.set()
            first, events = batch.first + start, batch.events[start:end]
            self._on_done(letter.flow, first, events, letter.reason)
            letter.flow.park_done(first, events)
        elif outcome is Outcome.UNDELIVERABLE:
            if not self._is_refused:
                self._is_refused = True
                self._on_refused(letter.flow, batch.events[start], detail)
            self._again(batch, start, end, REFUSED_PAUSE)
        else:
            self._again(batch, start, end)

    def _tell_of(self, flow: PartitionFlow, event: Event, reason: Reason, detail: str) -> None:
        """Say it now and then: a mistyped exchange turns every event into a dead letter, and nothing else would."""
        now = asyncio.get_running_loop().time()
        if reason is Reason.EXPIRED or now < self._silent_until.get(reason, now):
            return  # to expire is what the settings ask for
        self._silent_until[reason] = now + SAY_INTERVAL
        _say.warning(
            "event_undeliverable",
            type=self._type.name,
            partition=str(flow.partition),
            position=event.position,
            reason=reason.value,
            detail=detail,
            effect=f"a dead letter; more for this reason are counted, and said every {SAY_INTERVAL:g} s",
        )

    def _again(self, batch: Batch, start: int, end: int, pause: float = LONGEST_PAUSE) -> None:
        self._waiting.append((_letter_of(batch).flow, _part(batch, start, end)))
        self._not_before = asyncio.get_running_loop().time() + pause
        self._changed.set()


class _DeadLetter:
    """The recipient of some dead letters of one flow for one reason."""

    def __init__(self, letters: DeadLetters, flow: PartitionFlow, reason: Reason) -> None:
        self.flow = flow
        self.reason = reason
        self._letters = letters

    def may_send(self) -> bool:
        """See `Recipient.may_send`."""
        return self.flow.may_send()

    def on_outcome(
        self,
        batch: Batch,
        start: int,
        end: int,
        outcome: Outcome,
        *,
        seconds: float | None = None,  # noqa: ARG002 - a dead letter is no sample of its route's latency
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        """See `Recipient.on_outcome`."""
        self._letters.on_outcome(batch, start, end, outcome, detail or str(reason or ""))


def _part(batch: Batch, start: int, end: int) -> Batch:
    events = batch.events[start:end]
    return Batch(batch.partition, events, batch.first + start, batch.address, batch.rank, batch.recipient)


def _count(batches: Sequence[Batch]) -> int:
    return sum(len(batch.events) for batch in batches)


def _size(batches: Sequence[Batch]) -> int:
    return sum(event.size for batch in batches for event in batch.events)


def _letter_of(batch: Batch) -> _DeadLetter:
    assert isinstance(batch.recipient, _DeadLetter)
    return batch.recipient
