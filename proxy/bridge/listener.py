"""One event type's task: take from the inbox, wait for the throttle, hand on to the lane, hear how it ended."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from proxy.bridge.account import Account, Counts
from proxy.bridge.broker import Address, Batch, Lane
from proxy.bridge.dead_letters import DeadLetters
from proxy.bridge.event_log import EventLog
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inbox import Budget, Inbox
from proxy.bridge.lease import Lease
from proxy.bridge.letter_slots import HELD, HELD_BYTES, LetterSlots
from proxy.bridge.observer import Observer
from proxy.bridge.stake import Stake
from proxy.bridge.throttle import Throttle, inbox_mark
from proxy.congestion.collector import RouteStatistics, Way
from proxy.model import Event, Outcome, Partition, Reason
from proxy.settings import EventType, Limits, Route

_say = structlog.get_logger("tidegate.listener")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What every listener of the process shares."""

    log: EventLog
    lease: Lease
    stake: Stake
    budget: Budget
    limits: Limits
    classes: int
    """How many there are."""
    dead_letter_lane: Lane
    settled: asyncio.Event
    """Set whenever a flow has nothing out any more."""
    wall: Callable[[], float]
    """Seconds since 1970; for the age of events only."""
    account: Account
    observer: Observer
    letter_slots: LetterSlots = field(default_factory=LetterSlots)
    letters_held: LetterSlots = field(default_factory=lambda: LetterSlots(HELD, HELD_BYTES))


class Listener:
    """The life of one event type. A `FlowHost`."""

    def __init__(
        self,
        event_type: EventType,
        rank: int,
        route: Route,
        *,
        lane: Lane,
        throttle: Throttle,
        statistics: RouteStatistics,
        counts: Counts,
        around: Shared,
    ) -> None:
        self.event_type = event_type
        self.throttle = throttle
        self.counts = counts
        log = around.log
        self.inbox = Inbox(around.limits, around.budget, log.pause, log.resume, lambda: inbox_mark(throttle))
        around.budget.join(self.inbox, rank)
        self.is_stopped = False
        """An event could not be delivered and had nowhere to go; nothing more is sent until the next start."""
        self.stage = ""
        """What events on their way to the lane wait for: `rate`, `lease` or `lane`; "" if none is on its way."""
        self._rank = rank
        self._address = Address(
            route.exchange,
            event_type.routing_key,
            event_type.content_type,
            priority=route.priority_of(event_type.priority, below=around.classes - 1 - rank),
        )
        self._most = route.in_flight_events
        self._lane = lane
        self._statistics = statistics
        self._way = Way(route.way(event_type.name, event_type.routing_key), event_type.cost)
        statistics.open(rank, self._way)
        self._around = around
        self._sending: list[Batch] = []
        self._wake = asyncio.Event()
        self.dead_letters = DeadLetters(
            event_type,
            rank,
            around.dead_letter_lane,
            around.letter_slots,
            around.letters_held,
            on_outcome=around.observer.on_letter_outcome,
            on_done=self._on_letter_done,
            on_impossible=self._stop,
            on_refused=self._on_letter_refused,
            wake=self.wake,
        )

    # -- in -----------------------------------------------------------------------------------------------------------

    def open(self, partition: Partition) -> bool:
        """Begin an assignment epoch of a partition; return whether it must be paused from the start."""
        cap = self._around.limits.uncommitted_events
        self.inbox.open(PartitionFlow(partition, self.event_type.order, self._address, self._rank, cap, self))
        return self.inbox.is_paused

    def offer(self, partition: Partition, events: list[Event]) -> None:
        """Take in records just read; a full inbox pauses the type before this returns."""
        flow = self.inbox.flows.get(partition)
        if flow is not None and not flow.closing:
            self.counts.on_received(len(events), self.inbox.offer(partition, events))
            self._wake.set()

    def let_go(self, flows: Iterable[PartitionFlow]) -> None:
        """Send no more from these flows of the type; what is written still gets its outcome."""
        for flow in flows:
            flow.let_go()
            self.withdraw(flow)
            self.dead_letters.withdraw(flow)
        self.inbox.recount()

    # -- the task -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Send until cancelled; what was written by then stays written, the rest stays in the log."""
        async with asyncio.TaskGroup() as tasks:
            # In a task of its own: what goes well doesn't wait for what could not be delivered.
            tasks.create_task(
                self.dead_letters.run(self._admit_letters), name=f"dead letters of {self.event_type.name}"
            )
            await self._send_events()

    async def _send_events(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            self._wake.clear()
            now = clock()
            want = 0 if self.is_stopped or self.dead_letters.is_full else min(self.inbox.ready(now), self._most)
            if not want:
                await self._idle(now)
                continue
            again = self.inbox.sends_again(now)
            self.stage = "rate"
            await self._send(await self.throttle.admit(want, size=self.inbox.mean_size, again=again))

    async def _admit_letters(self, letters: int, size: int) -> None:
        await self.throttle.admit_letters(letters, size=size / letters)
        self._around.observer.on_used(self.event_type.route, letters, size)

    async def _send(self, granted: int) -> None:
        batches: list[Batch] = []
        try:
            self.stage = "lease"
            await self._around.lease.held()
            if self.is_stopped:
                return
            batches = self.inbox.take(granted, asyncio.get_running_loop().time())
            if self.event_type.max_age is not None:
                batches = self._without_expired(batches, self._around.wall() - self.event_type.max_age)
            self._sending = batches
            self.stage = "lane"
            self._statistics.trips.begin(batches, asyncio.get_running_loop().time(), self.event_type.cost)
            await self._lane.publish(batches)
        finally:
            self._sending, self.stage = [], ""
            written = [event.size for batch in batches for event in batch.events[: batch.done]]
            size = sum(written)
            self.throttle.settle(len(written), size)
            self._around.observer.on_used(self.event_type.route, len(written), size)
            self._statistics.trips.settle(batches, asyncio.get_running_loop().time())
            self.inbox.settle(batches)

    async def _idle(self, now: float) -> None:
        ready = self.inbox.next_ready(now)
        timer = None
        if ready is not None and ready > now:
            timer = asyncio.get_running_loop().call_at(ready, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _without_expired(self, batches: list[Batch], cutoff: float) -> list[Batch]:
        """Split off what is older than `cutoff` (seconds since 1970) as undeliverable; return the rest, in order."""
        oldest_ms = int(cutoff * 1000)
        fresh: list[Batch] = []
        for batch in batches:
            is_old = [event.timestamp_ms is not None and event.timestamp_ms < oldest_ms for event in batch.events]
            if not any(is_old):
                fresh.append(batch)
                continue
            start = 0
            for end in range(1, len(is_old) + 1):
                if end < len(is_old) and is_old[end] == is_old[start]:
                    continue
                if is_old[start]:
                    detail = f"older than {self.event_type.max_age:g} s"
                    batch.recipient.on_outcome(
                        batch, start, end, Outcome.UNDELIVERABLE, reason=Reason.EXPIRED, detail=detail
                    )
                else:
                    part = batch.events[start:end]
                    fresh.append(
                        Batch(
                            batch.partition,
                            part,
                            batch.first + start,
                            batch.address,
                            batch.rank,
                            batch.recipient,
                            retry=batch.retry,
                        )
                    )
                start = end
        return fresh

    # -- what its flows say (FlowHost) --------------------------------------------------------------------------------

    def on_outcome(self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome) -> None:
        """Show an outcome to whoever observes."""
        self._around.observer.on_outcome(flow, batch, start, end, outcome)
        if self._statistics.trips.is_heard:
            is_dropped = outcome in {Outcome.NACKED, Outcome.UNKNOWN}
            now = asyncio.get_running_loop().time()
            self._statistics.trips.on_outcome(batch, end - start, now, is_dropped=is_dropped)

    def on_confirmed(self, events: Sequence[Event], seconds: float | None, overtaken: int) -> None:
        """Count confirmed events."""
        self._statistics.on_confirmed(self._rank, len(events), seconds, self._way)
        self.counts.on_confirmed(events, seconds, overtaken, self._around.wall())

    def on_failed(self, outcome: Outcome, count: int, *, congestion: bool) -> float:
        """Count events to be sent again; return the time on the loop's clock."""
        if congestion:
            self._statistics.on_errors(count)
        self.counts.on_failed(outcome, count)
        return asyncio.get_running_loop().time()

    def on_resolved(self, flow: PartitionFlow, count: int) -> None:
        """Count what a crash would have delivered again."""
        self._around.stake.add(flow, count)

    def on_undeliverable(self, count: int) -> None:
        """Count events that can't be delivered."""
        self.counts.on_undeliverable(count)

    def dead_letter(
        self, flow: PartitionFlow, first: int, events: Sequence[Event], reason: Reason, detail: str
    ) -> None:
        """Send events to the dead-letter destination, unless their partition is being given away: the log has them."""
        if not flow.closing:
            self.dead_letters.add(flow, first, events, reason, detail)
            self.wake()

    def on_going_again(self, flow: PartitionFlow) -> None:
        """Take back what waits as a dead letter of a flow whose events are confirmed again."""
        self.dead_letters.on_going_again(flow)

    def withdraw(self, flow: PartitionFlow) -> None:
        """Write no more of what was handed on from the flow."""
        self._lane.withdraw([batch for batch in self._sending if batch.recipient is flow])

    def may_send(self) -> bool:
        """Return whether this replica may publish now."""
        return self._around.lease.left(asyncio.get_running_loop().time()) > 0

    def wake(self) -> None:
        """Look again for something to send."""
        self._wake.set()
        self._around.settled.set()

    def _on_letter_done(self, flow: PartitionFlow, first: int, events: Sequence[Event], reason: Reason) -> None:
        self.counts.on_dead_lettered(reason, len(events))
        self._around.account.on_dead_lettered(flow, first, events, reason)

    def _on_letter_refused(self, flow: PartitionFlow, event: Event, why: str) -> None:
        self._around.account.on_letter_refused(self.event_type.name, flow.partition, event.position, why)

    def _stop(self, flow: PartitionFlow, event: Event, reason: Reason, detail: str) -> None:
        if self.is_stopped:
            return
        self.is_stopped = True
        self.inbox.press("stopped", on=True)
        _say.error(
            "event_type_stopped",
            type=self.event_type.name,
            partition=str(flow.partition),
            position=event.position,
            reason=reason.value,
            detail=detail,
            remedy="give the type a dead_letter destination, or mend the event's cause; then restart",
        )
        why = f"{reason.value}: {detail}"
        self._around.account.on_type_stopped(self.event_type.name, flow.partition, event.position, why)
        # What waits is of no use any more, and would weigh on the budget of all others.
        self.let_go(self.inbox.flows.values())
