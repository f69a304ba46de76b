"""Policies that are only watched: everything goes at once, and what they would have done is worked out beside it.

docs/design/0057-shadow.md. Of each event type what was sent passes the policy's own throttle a second time, in a task
that stands for the listener it would have held back.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from proxy.bridge.throttle import Throttle
from proxy.congestion.collector import Way
from proxy.congestion.reading import Inflow, QueueReading, Reading
from proxy.congestion.shadow_queue import QueueLook, ShadowQueue
from proxy.congestion.would_wait import WouldWait
from proxy.settings import EventType

RATIO_WINDOW = 3.5
"""Seconds over which it is seen what part of what is sent would have gone: as long as others' rates are taken over."""
_MOST = 100.0
"""Times what they send that others may be taken to have let go."""


class Watched(NamedTuple):
    """What would have become of an event type since it was asked last."""

    event_type: EventType
    sent: int
    held: int
    """Would have waited for longer than a refill."""
    passed: int
    """Would have gone, of whatever was sent when."""
    waiting: int
    """Would wait now."""
    longest: float
    """Seconds that any has waited, or waits by now."""


class ShadowThrottle:
    """Admits everything at once, and lets it pass another throttle afterwards, which holds nothing back."""

    batch_size = None

    def __init__(
        self, inner: Throttle, waiting: WouldWait, came: asyncio.Event, on_passed: Callable[[int, int], None]
    ) -> None:
        """Make one; `on_passed` is told of which class how many events would have gone."""
        self.inner = inner
        """What would hold back."""
        self.rank = 0
        """Class as which it goes now; kept by whoever makes it, and by `lift`."""
        self.own_rank = 0
        self.waiting = waiting
        self.came = came
        self._on_passed = on_passed
        self._again = False
        self._size = 1.0

    async def admit(self, want: int, *, size: float, again: bool) -> int:
        """Return `want`."""
        self._again, self._size = again, size
        return want

    def settle(self, events: int, size: int) -> None:  # noqa: ARG002
        """Note what was sent; what goes again was noted when it went first."""
        if events and not self._again:
            self.waiting.add(events, asyncio.get_running_loop().time())
            self.came.set()

    async def admit_letters(self, count: int, *, size: float) -> None:
        """Do nothing: letters are not counted."""

    def lift(self, rank: int | None) -> None:
        """See `Throttle.lift`."""
        self.rank = self.own_rank if rank is None else rank
        self.inner.lift(rank)

    async def follow(self) -> None:
        """Pass the other throttle, as a listener would, until cancelled."""
        clock, waiting = asyncio.get_running_loop().time, self.waiting
        while True:
            if not waiting.events:
                self.came.clear()
                await self.came.wait()
            granted = await self.inner.admit(waiting.events, size=self._size, again=False)
            self.inner.settle(granted, round(granted * self._size))
            waiting.take(granted, clock())
            self._on_passed(self.rank, granted)


@dataclass(slots=True)
class _Type:
    """One event type: what is live of it, or what is old."""

    event_type: EventType
    way: Way
    throttle: ShadowThrottle
    task: asyncio.Task[None] | None = None
    told: tuple[int, int, int] = (0, 0, 0)
    """Sent, held and passed by the last report."""


class RouteShadow:
    """What is watched of one route. Made inside a running loop; `part`: this replica's, of the lowest class."""

    def __init__(self, classes: int, part: Callable[[], float] = lambda: 1.0) -> None:
        self._classes = classes
        self._part = part
        self._types: dict[tuple[str, bool], _Type] = {}
        """By name, and whether it is what is old of it."""
        self._gone = Counter[str]()
        """What has waited of types that are not known any more, by class."""
        self._passed: dict[Way, list[int]] = {}
        """Since the start, by class."""
        self._queues: dict[str, ShadowQueue] = {}
        self._samples: deque[tuple[float, int, int]] = deque()
        """When, and what was confirmed and would have passed by then."""
        self._failed = 0
        self._failed_alike = 0
        """Of these, while nothing would wait."""
        self._tasks: asyncio.TaskGroup | None = None

    def around(
        self, event_type: EventType, rank: int, way: Way, throttle: Throttle, *, catches_up: bool
    ) -> ShadowThrottle:
        """Return a throttle that watches this one. One made for the type before goes on noting what it sends."""
        key = event_type.name, catches_up
        before = self._types.get(key)
        waiting, came = (
            (WouldWait(), asyncio.Event()) if before is None else (before.throttle.waiting, before.throttle.came)
        )
        counts = self._passed.setdefault(way, [0] * self._classes)

        def on_passed(rank: int, events: int) -> None:
            counts[rank] += events

        made = ShadowThrottle(throttle, waiting, came, on_passed)
        made.rank = made.own_rank = rank
        kind = self._types[key] = _Type(event_type, way, made)
        if before is not None:
            kind.told = before.told
            _end(before)
        self._begin(kind)
        return made

    def forget(self, event_type: EventType, throttle: ShadowThrottle) -> None:
        """Know no more of an event type, if this is its throttle still."""
        live = self._types.get((event_type.name, False))
        if live is not None and live.throttle is throttle:
            for catches_up in (False, True):
                if (gone := self._types.pop((event_type.name, catches_up), None)) is not None:
                    now = asyncio.get_running_loop().time()
                    self._gone[event_type.priority] += gone.throttle.waiting.held(now)
                    _end(gone)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for kind in self._types.values():
                self._begin(kind)
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None

    def watched(self) -> Iterator[Watched]:
        """Yield what became of each event type since this was asked last, if anything was sent or would wait."""
        now = asyncio.get_running_loop().time()
        for kind in self._types.values():
            waiting = kind.throttle.waiting
            totals = waiting.sent, waiting.held(now), waiting.passed
            before, kind.told = kind.told, totals
            # Slots that were joined may have made some older than they are.
            sent, held, passed = (max(0, total - was) for total, was in zip(totals, before, strict=True))
            if sent or passed or waiting.events:
                yield Watched(kind.event_type, sent, held, passed, waiting.events, waiting.take_longest(now))

    def by_class(self) -> dict[str, tuple[int, int]]:
        """Return how many events of each class have waited since the start, and would wait now."""
        now = asyncio.get_running_loop().time()
        held, waiting = Counter(self._gone), Counter[str]()
        for kind in self._types.values():
            held[kind.event_type.priority] += kind.throttle.waiting.held(now)
            waiting[kind.event_type.priority] += kind.throttle.waiting.events
        return {name: (held[name], waiting[name]) for name in held}

    def as_held(self, reading: Reading) -> Reading:
        """Return what the route would show if what would wait had not been sent."""
        ratio = self._ratio(reading)
        failed, self._failed = reading.failed - self._failed, reading.failed
        if not reading.queues or sum(reading.confirmed) <= sum(self._sums(self._passed)):
            self._failed_alike += failed  # what a queue refuses that would not be as long says nothing
        return replace(
            reading,
            queues=tuple(self._queue(place, queue, reading) for place, queue in enumerate(reading.queues)),
            inflows=tuple(self._inflow(place, inflow, reading, ratio) for place, inflow in enumerate(reading.inflows)),
            confirmed=self._sums(self._passed),
            charged=self._costs(self._passed),
            others=None if reading.others is None else reading.others * ratio,
            failed=self._failed_alike,
        )

    def _queue(self, place: int, queue: QueueReading | None, reading: Reading) -> QueueReading | None:
        if queue is None:
            return None
        name, inflow = reading.name(place), reading.inflow(place)
        own = float(sum(inflow.confirmed))
        # Not all that would wait: what was refused, or has no answer yet, is in no queue.
        held = max(0.0, own - sum(sum(counts) for way, counts in self._passed.items() if _goes(way, name)))
        if not reading.inflows and len(reading.queues) > 1:
            # Nobody knows which of them an event goes to: what is held is taken to lie as what is there does.
            share = queue.ready / reading.ready if reading.ready else 1 / len(reading.queues)
            held, own = held * share, own * share
        real = QueueLook(queue.at, queue.ready, own, inflow.others or 0.0)
        shadow = self._queues.setdefault(name, ShadowQueue())
        return replace(queue, ready=shadow.look(real, held / self._part()))

    def _inflow(self, place: int, inflow: Inflow, reading: Reading, ratio: float) -> Inflow:
        ways = {way: counts for way, counts in self._passed.items() if _goes(way, reading.name(place))}
        return replace(
            inflow,
            confirmed=self._sums(ways),
            charged=self._costs(ways),
            others=None if inflow.others is None else inflow.others * ratio,
        )

    def _ratio(self, reading: Reading) -> float:
        """Return what would have gone for each event that was confirmed of late."""
        passed = sum(sum(counts) for counts in self._passed.values())
        self._samples.append((reading.at, sum(reading.confirmed), passed))
        while reading.at - self._samples[0][0] > RATIO_WINDOW:
            self._samples.popleft()
        _, confirmed_then, passed_then = self._samples[0]
        confirmed = sum(reading.confirmed) - confirmed_then
        return min(_MOST, (passed - passed_then) / confirmed) if confirmed else 1.0

    def _sums(self, ways: dict[Way, list[int]]) -> tuple[int, ...]:
        return tuple(sum(counts[rank] for counts in ways.values()) for rank in range(self._classes))

    def _costs(self, ways: dict[Way, list[int]]) -> tuple[float, ...]:
        return tuple(sum(counts[rank] * way.cost for way, counts in ways.items()) for rank in range(self._classes))

    def _begin(self, kind: _Type) -> None:
        if self._tasks is not None:
            kind.task = self._tasks.create_task(kind.throttle.follow(), name=f"shadow of {kind.event_type.name}")


def _goes(way: Way, queue: str) -> bool:
    return not way.queues or queue in way.queues


def _end(kind: _Type) -> None:
    if kind.task is not None:
        kind.task.cancel()
