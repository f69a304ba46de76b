"""One event type: its inbox, what goes out of it (`sending`), its dead letters, and what its flows have to say."""

import asyncio
from collections.abc import Iterable, Sequence

import structlog

from proxy.bridge.account import Counts
from proxy.bridge.addresses import Behind, address_of
from proxy.bridge.broker import Batch, Lane
from proxy.bridge.catch_up import CatchUp
from proxy.bridge.dead_letters import DeadLetters
from proxy.bridge.discarding import Discarding
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inbox import Inbox
from proxy.bridge.returned import Returned
from proxy.bridge.sending import Sending
from proxy.bridge.shared import Shared
from proxy.bridge.throttle import Throttle, inbox_mark
from proxy.bridge.ways_out import WaysOut
from proxy.congestion.collector import RouteStatistics, Way
from proxy.model import Event, Mode, Outcome, Partition, Reason, Stance
from proxy.settings import EventType, Route

_say = structlog.get_logger("tidegate.listener")


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
        catch_up: CatchUp | None = None,
    ) -> None:
        """Make one; without `catch_up` what is old goes like what is live."""
        self.event_type = event_type
        self.throttle = throttle
        self.counts = counts
        log = around.log
        self.inbox = Inbox(around.limits, around.budget, rank, log.pause, log.resume, lambda: inbox_mark(throttle))
        self.is_stopped = False
        """An event could not be delivered and had nowhere to go; nothing more is sent until the next start."""
        self.stance = Stance()
        self._rank = self._own_rank = rank
        self.address = address_of(event_type, rank, route, around)
        """Where its events go."""
        self.lane = lane
        """... and over what."""
        self._behind = Behind(event_type, route, lane)
        self._catch_up = catch_up
        self._statistics = statistics
        self._way = Way(route.way(event_type.name, event_type.routing_key), event_type.cost)
        statistics.open(rank, self._way)
        self._around = around
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
        live = Sending(self, lane, throttle, statistics.trips, around, old=False)
        discarding = Discarding(self.inbox, lambda: self.stance.mode is Mode.DISCARD, self._on_discarded)
        self._ways = WaysOut(event_type.name, live, self.dead_letters, discarding)
        self._keep_old_apart()
        self.look = self._ways.wake
        """Let every way out look again for something to send."""

    def open(self, partition: Partition) -> bool:
        """Begin an assignment epoch of a partition; return whether it must be paused from the start."""
        cap = self._around.limits.uncommitted_events
        flow = PartitionFlow(partition, self.event_type.order, self.address, self._rank, cap, self, self._old_rank)
        self.inbox.open(flow)
        return self.inbox.is_paused

    def offer(self, partition: Partition, events: list[Event]) -> None:
        """Take in records just read; a full inbox pauses the type before this returns."""
        flow = self.inbox.flows.get(partition)
        if flow is not None and not flow.closing:
            is_old = self._catch_up is not None and (
                self._catch_up.is_old(events, self._around.wall()) or self._comes_again(flow, events)
            )
            self.counts.on_received(len(events), self.inbox.offer(partition, events, is_old=is_old))
            if is_old:
                self._ways.begin_catching_up()
            self.look()

    def _comes_again(self, flow: PartitionFlow, events: Sequence[Event]) -> bool:
        """Return whether records just read begin with one that a person has sent again."""
        if flow.again_until is None:
            return False
        if self._around.log.place(events[0].position) >= flow.again_until:
            flow.again_until = None
            return False
        return True

    def take(self, stance: Stance) -> None:
        """Go on as a person has said, from now on; what is written already still gets its outcome."""
        self.stance = stance
        if stance.mode is not Mode.RUN:
            for flow in self.inbox.flows.values():
                self.withdraw(flow)
        if stance.mode is Mode.DISCARD:
            self._ways.begin_discarding()
        self.look()

    @property
    def rank(self) -> int:
        """The class as which it goes now, 0 the most important."""
        return self._rank

    @property
    def is_lifted(self) -> bool:
        """Whether it goes as another class than its own now."""
        return self._rank != self._own_rank

    def lift(self, rank: int | None) -> None:
        """Go as what is live of another class, what is old, too; None: as its own. Dead letters keep their class."""
        self._rank = self._own_rank if rank is None else rank
        self._statistics.open(self._rank, self._way)
        self.throttle.lift(rank)
        if self.old_throttle is not None:
            self.old_throttle.lift(rank)
        for flow in self.inbox.flows.values():
            flow.stand(self._rank, self._old_rank)
        self.look()

    def go_by(self, around: Shared) -> None:
        """Go by the limits that all share from now on."""
        self._around = around
        self.inbox.go_by(around.limits)
        for flow in self.inbox.flows.values():
            flow.go_by(around.limits.uncommitted_events)
        self.look()

    def steer(self, route: Route, statistics: RouteStatistics, catch_up: CatchUp | None) -> None:
        """Be held back as the route says now: what it is judged by, and what of the type stands behind."""
        kind = self.event_type
        self._way = Way(route.way(kind.name, kind.routing_key), kind.cost)
        self._behind = Behind(kind, route, self.lane)
        self._statistics = statistics
        statistics.open(self._rank, self._way)
        self._catch_up = catch_up
        self._keep_old_apart()
        for flow in self.inbox.flows.values():
            flow.stand(self._rank, self._old_rank)

    def _keep_old_apart(self) -> None:
        """Have a way out for what is old, if it goes otherwise than what is live."""
        if self._catch_up is not None and self._ways.old is None:
            trips = self._statistics.trips
            self._ways.old = Sending(self, self.lane, self._catch_up.throttle, trips, self._around, old=True)

    @property
    def old_throttle(self) -> Throttle | None:
        """What holds back what is old, or was when it was read; None: nothing ever was."""
        return self._ways.old.throttle if self._ways.old is not None else None

    @property
    def _old_rank(self) -> int | None:
        """Of what is old in the lane's window; None: as what is live."""
        return None if self._catch_up is None or self.is_lifted else self._catch_up.rank

    def let_go(self, flows: Iterable[PartitionFlow]) -> None:
        """Send no more from these flows of the type; what is written still gets its outcome."""
        for flow in flows:
            flow.let_go()
            self.withdraw(flow)
            self.dead_letters.withdraw(flow)
        self.inbox.recount()

    def leave(self) -> None:
        """Have no share in the budget of all inboxes any more; for one that has no partition left."""
        self.inbox.leave()

    async def run(self) -> None:
        """Send until cancelled; what was written by then stays written, the rest stays in the log."""
        await self._ways.run(
            self._admit_letters, catches_up=bool(self.inbox.catching_up), discards=self.stance.mode is Mode.DISCARD
        )

    @property
    def stage(self) -> str:
        """What events on their way to the lane wait for: `rate`, `lease` or `lane`; "" if none is on its way."""
        return self._ways.stage

    async def _admit_letters(self, letters: int, size: int) -> None:
        await self.throttle.admit_letters(letters, size=size / letters)
        self._around.observer.on_used(self.event_type.route, letters, letters, size)

    def on_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, seconds: float | None
    ) -> None:
        """Show an outcome to whoever observes."""
        self._around.observer.on_outcome(flow, batch, start, end, outcome, seconds)
        if self._statistics.trips.is_heard:
            is_dropped = outcome in {Outcome.NACKED, Outcome.UNKNOWN}
            now = asyncio.get_running_loop().time()
            self._statistics.trips.on_outcome(batch, end - start, now, is_dropped=is_dropped)

    def on_confirmed(self, batch: Batch, events: Sequence[Event], seconds: float | None, overtaken: int) -> None:
        """Count confirmed events."""
        self._statistics.on_confirmed(self._rank, len(events), seconds, self._way)
        self.counts.on_confirmed(events, seconds, overtaken, self._around.wall(), old=batch.is_old)

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

    def asks(self, flow: PartitionFlow, batch: Batch, start: int, end: int, seconds: float | None, why: str) -> bool:
        """Ask what has become of the queue of events that came back, unless their partition is given away."""
        now, behind = asyncio.get_running_loop().time(), self._behind
        runs, sure = behind.runs(batch.events, start, end), behind.is_direct
        told = [Returned(places, flow, batch, first, last, seconds, why, now, sure) for first, last, places in runs]
        return not flow.closing and self._around.returns.ask(told)

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
        self.lane.withdraw([batch for batch in self._ways.on_way if batch.recipient is flow])

    def may_send(self) -> bool:
        """Return whether this replica may publish now."""
        return self._around.lease.left(asyncio.get_running_loop().time()) > 0

    def wake(self) -> None:
        """Look again for something to send."""
        self.look()
        self._around.settled.set()

    def on_settled(self) -> None:
        """Tell whoever waits for flows to have nothing out."""
        self._around.settled.set()

    def _on_discarded(self, flow: PartitionFlow, batch: Batch) -> None:
        self._around.observer.on_discarded(flow, batch)
        self._around.account.on_discarded(flow, batch.first, batch.events, self.stance)

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
            remedy="give the type a dead_letter destination, or mend the event's cause and restart",
        )
        why = f"{reason.value}: {detail}"
        self._around.account.on_type_stopped(self.event_type.name, flow.partition, event.position, why)
        # What waits is of no use any more, and would weigh on the budget of all others.
        self.let_go(self.inbox.flows.values())
