"""A lane on a broker of which one knows what a window can bring: its way, its work, its disk."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from proxy.bridge.broker import Batch
from proxy.model import Event, Partition
from proxy.publish_lane import PublishLane
from proxy.publish_lane.wire import Sent, WireEvents
from proxy.settings import Limits
from tests.support.events import ADDRESS

CONFIRMED_AT_ONCE = 16
"""Events that a broker confirms together, as it works through a piece."""


@dataclass
class Serving:
    """What a broker takes for its work, in seconds; may change at any time."""

    event: float = 50e-6
    """One after the other."""
    piece: float = 0.0
    """Likewise, for each piece before its events."""
    way: float = 0.0005
    """There and back."""
    sync: float = 0.0
    """One after the other, each for all that was worked through before it began."""
    is_blocked: bool = False
    refuses: bool = False


class ServedWire:
    """Works through what is written; a connector as well, of as many wires as are asked for."""

    frame_max = 131_072
    heartbeat = 0.0
    unsent = 0
    heard = 0.0
    host = home = "h:1"
    writable = True

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.stored = 0
        """Events confirmed."""
        self.waited: list[float] = []
        """Seconds from write to confirm, for each event."""
        self._free = 0.0
        self._unsynced: list[tuple[int, Sent, int]] = []
        self._is_syncing = False
        self._held: list[Sequence[Sent]] = []
        self._channels = 0
        self._life = 0

    def silence(self, seconds: float) -> str:
        return f"no answer within {seconds:g} s"

    def doubt(self, host: str) -> None:
        """There is no other."""

    def trust(self, host: str) -> None:
        """There is no other."""

    async def connect(self, events: WireEvents, host: str | None = None) -> "ServedWire":
        del host
        await asyncio.sleep(self.serving.way)
        self.events = events
        return self

    def is_blocked(self) -> bool:
        return self.serving.is_blocked

    async def open_channel(self) -> int:
        await asyncio.sleep(self.serving.way)
        self._channels += 1
        return self._channels

    async def close_channel(self, number: int) -> None:
        del number

    async def close(self, *, gracefully: bool) -> None:
        del gracefully

    def lose(self) -> None:
        """Break the connection, with all that is under way."""
        self._life += 1
        self._unsynced.clear()
        self._held.clear()
        self.events.on_lost("reset", refused=False)

    def unblock(self) -> None:
        """Go on with what arrived meanwhile."""
        self.serving.is_blocked = False
        held, self._held = self._held, []
        for sent in held:
            self._work(self._life, sent)

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:
        del piece
        loop = asyncio.get_running_loop()
        loop.call_soon(self.events.on_written)
        loop.call_later(self.serving.way / 2, self._work, self._life, list(sent))
        return False

    def _work(self, life: int, sent: Sequence[Sent]) -> None:
        serving, loop = self.serving, asyncio.get_running_loop()
        if serving.is_blocked:
            self._held.append(sent)
            return
        self._free = max(self._free, loop.time()) + serving.piece
        for one in sent:
            last = one.events.first_tag - 1
            left = one.events.end - one.events.start
            while left:
                count = min(left, CONFIRMED_AT_ONCE)
                left -= count
                last += count
                self._free += count * serving.event
                loop.call_at(self._free, self._store, life, one, last, count)

    def _store(self, life: int, one: Sent, last: int, count: int) -> None:
        if life != self._life:
            return
        if not self.serving.sync:
            self._confirm_later([(last, one, count)])
            return
        self._unsynced.append((last, one, count))
        if not self._is_syncing:
            self._sync()

    def _sync(self) -> None:
        self._is_syncing = bool(self._unsynced)
        if self._is_syncing:
            synced, self._unsynced = self._unsynced, []
            asyncio.get_running_loop().call_later(self.serving.sync, self._synced, synced)

    def _synced(self, synced: list[tuple[int, Sent, int]]) -> None:
        self._confirm_later(synced)
        self._sync()

    def _confirm_later(self, stored: list[tuple[int, Sent, int]]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(self.serving.way / 2, self._confirm, self._life, stored, not self.serving.refuses)

    def _confirm(self, life: int, stored: list[tuple[int, Sent, int]], acked: bool) -> None:
        now = asyncio.get_running_loop().time()
        for last, one, count in stored:
            if life == self._life:
                self.stored += count
                self.waited += [now - one.events.written] * count
                self.events.on_confirm(one.channel, last, multiple=True, acked=acked)


class _Sender:
    """Whoever always has more to send."""

    def __init__(self) -> None:
        self.ended = 0

    def may_send(self) -> bool:
        return True

    def on_outcome(self, batch: Batch, start: int, end: int, *_: Any, **__: Any) -> None:
        del batch
        self.ended += end - start


class ServedLane:
    """A lane with some types that always have more to send."""

    def __init__(self, serving: Serving, *, window: int = 4_000, adapts: bool = True) -> None:
        self.wire = ServedWire(serving)
        self.senders: dict[int, _Sender] = {}
        """By rank."""
        self.lane = PublishLane(
            "served",
            self.wire,
            window_events=window,
            window_bytes=10**9,
            limits=Limits(),
            backoff=0.2,
            backoff_limit=2.0,
            adapts=adapts,
        )

    @asynccontextmanager
    async def running(self, *ranks: int) -> AsyncIterator[None]:
        """Send events of types of these ranks; of four types of one rank if none is given."""
        tasks = [asyncio.create_task(self.lane.run())]
        tasks += [asyncio.create_task(self._send(number, rank)) for number, rank in enumerate(ranks or (0, 0, 0, 0))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

    async def rate(self, seconds: float) -> tuple[float, float]:
        """Return events a second from now on, and P99 of the seconds until they were confirmed."""
        before, seen = self.wire.stored, len(self.wire.waited)
        await asyncio.sleep(seconds)
        waited = sorted(self.wire.waited[seen:])
        return (self.wire.stored - before) / seconds, waited[int(0.99 * len(waited))]

    async def _send(self, number: int, rank: int) -> None:
        partition, event = Partition(f"t{number}", 0), Event(0, 0, None, b"x", (), 1)
        sender = self.senders.setdefault(rank, _Sender())
        while True:
            await self.lane.publish([Batch(partition, [event] * self.lane.window, 0, ADDRESS, rank, sender)])
