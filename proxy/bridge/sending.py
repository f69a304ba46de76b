"""The way of events out of an inbox: wait for the throttle, take, hand on to the lane, settle what was written.

An event type has one for what is live, and one for what catches up (docs/design/0027): while the one waits for its
tokens, or for slots of the window, the other goes on.
"""

import asyncio
from typing import Protocol

from proxy.bridge.broker import Batch, Lane
from proxy.bridge.dead_letters import DeadLetters
from proxy.bridge.inbox import Inbox
from proxy.bridge.shared import Shared
from proxy.bridge.throttle import Throttle
from proxy.congestion.trips import Trips
from proxy.model import Mode, Outcome, Reason, Stance
from proxy.settings import EventType


class SendingHost(Protocol):
    """The listener, as its ways out see it."""

    event_type: EventType
    inbox: Inbox
    dead_letters: DeadLetters
    is_stopped: bool
    stance: Stance

    def look(self) -> None:
        """Let every way look again for something to send."""
        ...


class Sending:
    """One way; `old`: of what catches up."""

    def __init__(
        self,
        host: SendingHost,
        lane: Lane,
        throttle: Throttle,
        trips: Trips,
        around: Shared,
        *,
        old: bool,
    ) -> None:
        self.stage = ""
        """What events on their way to the lane wait for: `rate`, `lease` or `lane`; "" if none is on its way."""
        self.batches: list[Batch] = []
        """With the lane now."""
        self._host = host
        self._lane = lane
        self.throttle = throttle
        self._trips = trips
        self._around = around
        self._old = old
        self._idles: asyncio.Future[None] | None = None
        """Done when it is called."""

    def wake(self) -> None:
        """Look again for something to send; called several times for each event."""
        idles = self._idles
        if idles is not None and not idles.done():
            idles.set_result(None)

    async def run(self) -> None:
        """Send until cancelled; what was written by then stays written, the rest stays in the log."""
        clock = asyncio.get_running_loop().time
        host, inbox, old = self._host, self._host.inbox, self._old
        while True:
            now = clock()
            if host.is_stopped or host.stance.mode is not Mode.RUN or host.dead_letters.is_full:
                want, again = 0, False
            else:
                ready, again = inbox.ready(now, old=old)
                want = min(ready, self._lane.window)
            if not want:
                await self._idle(now)
                continue
            self.stage = "rate"
            await self._send(await self.throttle.admit(want, size=inbox.mean_size, again=again))

    async def _send(self, granted: int) -> None:
        host, clock = self._host, asyncio.get_running_loop().time
        batches: list[Batch] = []
        try:
            self.stage = "lease"
            if self._around.lease.left(clock()) <= 0:
                await self._around.lease.held()
            if host.is_stopped or host.stance.mode is not Mode.RUN:
                return
            batches = host.inbox.take(granted, clock(), old=self._old)
            if host.event_type.max_age is not None:
                batches = _without_expired(batches, self._around.wall(), host.event_type.max_age)
            self.batches = batches
            self.stage = "lane"
            self._trips.begin(batches, clock(), host.event_type.cost)
            await self._lane.publish(batches)
        finally:
            self.batches, self.stage = [], ""
            written = [event.size for batch in batches for event in batch.events[: batch.done]]
            size, kind = sum(written), host.event_type
            self.throttle.settle(len(written), size)
            self._around.observer.on_used(kind.route, len(written), len(written) * kind.cost, size)
            self._trips.settle(batches, clock())
            host.inbox.settle(batches, old=self._old)
            host.look()

    async def _idle(self, now: float) -> None:
        loop = asyncio.get_running_loop()
        ready = self._host.inbox.next_ready(now, old=self._old)
        timer = loop.call_at(ready, self.wake) if ready is not None and ready > now else None
        self._idles = loop.create_future()
        try:
            await self._idles
        finally:
            self._idles = None
            if timer is not None:
                timer.cancel()


def _without_expired(batches: list[Batch], wall: float, max_age: float) -> list[Batch]:
    """Split off what is older than `max_age` seconds as undeliverable; return the rest, in order."""
    oldest_ms = int((wall - max_age) * 1000)
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
                detail = f"older than {max_age:g} s"
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
                        is_old=batch.is_old,
                    )
                )
            start = end
    return fresh
