"""What becomes of events that can't be delivered: one event type's dead letters, confirmed like any other event.

The partition's watermark waits for the dead letter's confirm, so an event is never committed unless it is either
delivered or kept where an operator finds it.

A dead letter that is not taken (no permission, no such queue, no room) is no reason to give up: its destination can
come back as well as anything else, and so can the event's own. So the event goes back to its flow and is tried again by
its own route, unless its partition has gone on past it; then the letter waits. One letter is tried now and then in
place of all. See docs/design/0022-letters-that-cannot-go.md.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from proxy.bridge.broker import Address, Batch, Lane
from proxy.bridge.flow import LONGEST_PAUSE, PartitionFlow
from proxy.bridge.letter import Letter, count, letter_of, part, size
from proxy.bridge.letter_outage import LetterOutage
from proxy.bridge.letter_slots import LetterSlots
from proxy.model import Event, Outcome, Reason
from proxy.settings import EventType, RoutingKey

REFUSED_PAUSE = 2.0
"""Seconds between two attempts at a destination that refuses. Larger: it is found later when it is back."""


class DeadLetters:
    """Sends one event type's dead letters over the dead-letter lane."""

    def __init__(
        self,
        event_type: EventType,
        rank: int,
        lane: Lane,
        slots: LetterSlots,
        held: LetterSlots,
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
        self._held = held
        self.outage = LetterOutage(event_type)
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
        self._open_bytes = 0
        self._not_before = 0.0

    def add(self, flow: PartitionFlow, first: int, events: Sequence[Event], reason: Reason, detail: str) -> None:
        """Take over undeliverable events of contiguous sequence numbers; without a destination the type must stop."""
        destination = self._type.dead_letter
        if destination is None:
            self._on_impossible(flow, events[0], reason, detail)
            return
        self.outage.tell_of(flow, events[0], reason, detail)
        address = Address(
            destination.exchange,
            RoutingKey(constant=destination.routing_key),
            self._type.content_type,
            notes=(
                ("tidegate-type", self._type.name),
                ("tidegate-reason", reason.value),
                ("tidegate-detail", detail),
                *([("tidegate-topic-id", flow.topic_id)] if flow.topic_id else []),
            ),
            lenient=True,
        )
        letter = Letter(flow, reason, self.on_outcome)
        batch = Batch(flow.partition, events, first, address, self._rank, letter)
        self._count(1, [batch])
        self._waiting.append((flow, batch))
        self._changed.set()

    @property
    def open(self) -> int:
        """Dead letters that wait or are out, whatever their flow."""
        return self._open

    @property
    def is_full(self) -> bool:
        """Whether the type must wait for its dead letters: no more of them may lie in memory."""
        return bool(self._held.events) and min(self._held.room(self._open, self._open_bytes)) <= 0

    @property
    def is_stuck(self) -> bool:
        """Whether something waits because the destination takes nothing."""
        return self.outage.is_on and (self._open > 0 or self.outage.lasts)

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
        for batch in picked:
            letter_of(batch).flow.letters_due += len(batch.events)
        try:
            await admit(count(picked), size(picked))
        except BaseException:
            self._waiting.extendleft((letter_of(batch).flow, batch) for batch in reversed(picked))
            raise
        finally:
            for batch in picked:
                letter_of(batch).flow.letters_due -= len(batch.events)
        batches = [batch for batch in picked if not letter_of(batch).flow.closing]
        self._count(-1, [batch for batch in picked if batch not in batches])
        for batch in batches:
            letter_of(batch).flow.letters_out += len(batch.events)
        self._take(batches)
        self._sending = batches
        try:
            await self._lane.publish(batches)
        finally:
            self._sending = []
            for batch in batches:
                if batch.done < len(batch.events):
                    letter_of(batch).flow.letters_out -= len(batch.events) - batch.done
                    self._give(batch, batch.done, len(batch.events))
                    self._again(batch, batch.done, len(batch.events))

    def _forget_given_up(self) -> None:
        """Drop the letters of flows that were let go: the log has their events."""
        given_up = [batch for flow, batch in self._waiting if flow.closing]
        if given_up:
            self._count(-1, given_up)
            self._waiting = deque(one for one in self._waiting if not one[0].closing)
            self._wake()
        if not self._open and not self.outage.lasts:
            self.outage.leave()

    def _pick(self) -> list[Batch]:
        """Take from the front what the type's share of the lane has room for."""
        events, room = self._slots.room(self._out, self._out_bytes)
        if self.outage.is_on and self._waiting:
            self._not_before = asyncio.get_running_loop().time() + REFUSED_PAUSE
            events = min(events, 1)
        picked: list[Batch] = []
        alone = not self._out
        while self._waiting and events:
            flow, batch = self._waiting[0]
            end = 0
            for event in batch.events[:events]:
                if event.size > room and not alone:
                    break
                alone = False
                room -= event.size
                end += 1
            if not end:
                break
            self._waiting.popleft()
            picked.append(part(batch, 0, end))
            events -= end
            if end < len(batch.events):
                self._waiting.appendleft((flow, part(batch, end, len(batch.events))))
        return picked

    def _take(self, batches: Sequence[Batch]) -> None:
        events, octets = count(batches), size(batches)
        self._out += events
        self._out_bytes += octets
        self._slots.take(events, octets)

    def _give(self, batch: Batch, start: int, end: int) -> None:
        octets = sum(event.size for event in batch.events[start:end])
        self._out -= end - start
        self._out_bytes -= octets
        self._slots.give(end - start, octets)
        self._changed.set()
        self._wake()

    def withdraw(self, flow: PartitionFlow) -> None:
        """Write no more dead letters of the flow."""
        self.outage.on_left(flow)
        self._forget_given_up()
        self._lane.withdraw([batch for batch in self._sending if letter_of(batch).flow is flow])

    def on_going_again(self, flow: PartitionFlow) -> None:
        """Take note that events of the flow are confirmed again; the letters that still wait are tried as events."""
        self._take_back(asyncio.get_running_loop().time(), flow)
        flow.tries_anew = False
        self.outage.on_left(flow)
        if not self._open and not self.outage.lasts:
            self.outage.end("events of its partitions are delivered again, and these tried by their own route")

    def on_outcome(self, batch: Batch, start: int, end: int, outcome: Outcome, detail: str) -> None:
        """Take the outcome of some dead letters."""
        letter = letter_of(batch)
        self._see(letter.flow, batch, start, end, outcome, letter.reason)
        letter.flow.letters_out -= end - start
        self._give(batch, start, end)
        if outcome is Outcome.CONFIRMED:
            self._count(-1, [part(batch, start, end)])
            if self.outage.is_on:
                self.outage.end("a dead letter was taken")
                self._not_before = 0.0
                self._changed.set()
            first, events = batch.first + start, batch.events[start:end]
            self._on_done(letter.flow, first, events, letter.reason)
            letter.flow.park_done(first, events)
        elif outcome is Outcome.UNKNOWN:
            self._again(batch, start, end)
        else:
            why = detail or f"{outcome.value}: it has no room, or its queue is in trouble"
            if self.outage.begin(letter.flow, batch.events[start], why):
                self._on_refused(letter.flow, batch.events[start], why)
            self._again(batch, start, end, REFUSED_PAUSE)
            self._take_back(self._not_before)

    def _take_back(self, not_before: float, only: PartitionFlow | None = None) -> None:
        """Give events back to their flows, to be tried again by their own route, where that may help.

        A flow that has gone on past an event keeps its letter here: its order would be lost.
        """
        back: dict[PartitionFlow, list[Batch]] = {}
        stay: deque[tuple[PartitionFlow, Batch]] = deque()
        for flow, batch in self._waiting:
            if flow.closing or (only is not None and flow is not only) or not letter_of(batch).may_turn_back:
                stay.append((flow, batch))
            else:
                back.setdefault(flow, []).append(batch)
        self._waiting = stay
        for flow, batches in back.items():
            self._count(-1, batches)
            self.outage.on_trying(flow)
            flow.take_back([(batch.first, batch.events) for batch in batches], not_before)
        if back:
            self._wake()

    def _count(self, sign: int, batches: Sequence[Batch]) -> None:
        """Count letters that are open now, or are no longer (-1)."""
        events, octets = count(batches), size(batches)
        self._open += sign * events
        self._open_bytes += sign * octets
        (self._held.take if sign > 0 else self._held.give)(events, octets)

    def _again(self, batch: Batch, start: int, end: int, pause: float = LONGEST_PAUSE) -> None:
        self._waiting.append((letter_of(batch).flow, part(batch, start, end)))
        self._not_before = asyncio.get_running_loop().time() + pause
        self._changed.set()
