"""What becomes of events that can't be delivered: one event type's dead letters, confirmed like any other event.

The partition's watermark waits for the dead letter's confirm, so an event is never committed unless it is either
delivered or kept where an operator finds it.

A dead letter that is refused (no permission, no such queue) is no reason to give up: its destination can come back as
well as anything else. It waits, one is tried now and then in place of all, and the log of the process says so once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from proxy.bridge.broker import Address, Batch, Lane
from proxy.bridge.flow import LONGEST_PAUSE, PartitionFlow
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
        self._see = on_outcome
        self._on_done = on_done
        self._on_impossible = on_impossible
        self._on_refused = on_refused
        self._wake = wake
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
        """Return when the next one may be sent, `now` or later; None if none waits."""
        return max(now, self._not_before) if self._waiting else None

    async def send(self) -> None:
        """Write all that waits, or one if the destination refuses; outcomes come later."""
        batches = [batch for flow, batch in self._waiting if not flow.closing]
        given_up = sum(len(batch.events) for flow, batch in self._waiting if flow.closing)
        self._open -= given_up
        self._waiting.clear()
        if self._is_refused and batches:
            self._not_before = asyncio.get_running_loop().time() + REFUSED_PAUSE
            batches = self._probe(batches)
        for batch in batches:
            _letter_of(batch).flow.letters_out += len(batch.events)
        self._sending = batches
        try:
            await self._lane.publish(batches)
        finally:
            self._sending = []
            for batch in batches:
                if batch.done < len(batch.events):
                    _letter_of(batch).flow.letters_out -= len(batch.events) - batch.done
                    self._again(batch, batch.done, len(batch.events))

    def _probe(self, batches: list[Batch]) -> list[Batch]:
        """Let all but the first dead letter wait; return that one."""
        first, *others = batches
        for batch, start in (first, 1), *((other, 0) for other in others):
            if start < len(batch.events):
                self._waiting.append((_letter_of(batch).flow, _part(batch, start, len(batch.events))))
        return [_part(first, 0, 1)]

    def withdraw(self, flow: PartitionFlow) -> None:
        """Write no more dead letters of the flow."""
        self._lane.withdraw([batch for batch in self._sending if _letter_of(batch).flow is flow])

    def on_outcome(self, batch: Batch, start: int, end: int, outcome: Outcome, detail: str) -> None:
        """Take the outcome of some dead letters."""
        letter = _letter_of(batch)
        self._see(letter.flow, batch, start, end, outcome, letter.reason)
        letter.flow.letters_out -= end - start
        if outcome is Outcome.CONFIRMED:
            self._open -= end - start
            if self._is_refused:
                self._is_refused, self._not_before = False, 0.0
                self._wake()
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
        self._wake()


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


def _letter_of(batch: Batch) -> _DeadLetter:
    assert isinstance(batch.recipient, _DeadLetter)
    return batch.recipient
