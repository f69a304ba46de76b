"""The latest depth of every watched queue; a monitor that fails leaves it unknown and never stops the data."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

import structlog

from proxy.bridge.broker import DepthMonitor, QueueKind, QueueState
from proxy.errors import BrokerError
from proxy.steering.letter_queues import LetterQueues
from proxy.steering.rota import Rota

_say = structlog.get_logger("tidegate.depths")

RETRY = 1.0
"""Seconds before a monitor that failed is asked again."""
DOUBT = 1.0
"""Seconds for which a queue that had messages or consumers must be told to have neither before it is believed.

RabbitMQ answers 0 and 0 for a quorum queue whose leader is missing or does not answer in time, as if it were empty.
"""
POLLS = 1_000
"""Questions a second in all, unless told otherwise."""


_REMEDY = (
    "give up what locks it (it may be exclusive to a connection), start its node, or grant the right to look at it"
)


_EFFECT = "queue depths are unknown; routes whose own connections are open go on without them"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a queue, and how old that is."""

    state: QueueState | None
    """None: it did not exist."""
    at: float
    """When the answer came, by the loop's clock in seconds."""
    interval: float
    """Seconds between two questions for this queue as things are now; an answer older than three of them is too old."""


class Depths:
    """Polls the monitor and remembers its last answers: queues in use every `interval` seconds, idle ones in turn."""

    def __init__(
        self,
        monitor: DepthMonitor,
        queues: Collection[str],
        interval: float,
        polls: float = POLLS,
        letter_queues: Collection[str] = (),
    ) -> None:
        self._monitor = monitor
        self._queues = queues
        self._letter_queues = LetterQueues(letter_queues)
        self._queues_changed = asyncio.Event()
        """Others are to be asked for, of events or of letters."""
        self._interval = interval
        self._polls = polls
        self._rota = Rota(queues, interval, polls)
        self._seen: dict[str, tuple[QueueState | None, float]] = {}
        self._doubted: dict[str, float] = {}
        """Since when a queue is told to be empty that was not."""
        self.is_blind = False
        """Whether the last poll failed."""
        self.on_polled: Callable[[], None] = lambda: None
        """Called after every poll, also after one that failed; to be set by whoever wants to act at once."""
        self._ease = 0.0
        """Seconds between two polls at least, while nothing is sent and nothing waits; 0: at full pace."""
        self._hurried = asyncio.Event()
        self._may_ease = len(queues) <= polls * interval

    def ease(self, seconds: float) -> None:
        """Poll no oftener than every so many seconds, until `hurry`; not where some queues wait for a turn anyway."""
        if self._may_ease:
            self._ease = seconds

    def hurry(self) -> None:
        """Poll at once, and then at full pace again."""
        self._ease = 0.0
        self._hurried.set()

    def watch(self, queues: Collection[str]) -> None:
        """Ask for the depth of these queues from now on."""
        self._queues = queues
        self._rota.replace(queues)
        self._seen = {queue: seen for queue, seen in self._seen.items() if queue in queues}
        self._doubted = {queue: since for queue, since in self._doubted.items() if queue in queues}
        self._may_ease = len(queues) <= self._polls * self._interval
        self.hurry()
        self._queues_changed.set()

    def look_for(self, letter_queues: Collection[str]) -> None:
        """Look from now on whether these queues of dead letters exist."""
        self._letter_queues.replace(letter_queues)
        self._queues_changed.set()

    def of(self, queue: str) -> QueueState | None:
        """Return the queue's last known state; None if it does not exist, is a stream, or the monitor is blind."""
        state, _ = self._seen.get(queue, (None, 0.0))
        return None if self.is_blind or _is_stream(state) else state

    def steers(self, queue: str) -> bool:
        """Return whether the queue's depth says how far behind its consumers are: not that of a stream."""
        state, _ = self._seen.get(queue, (None, 0.0))
        return not _is_stream(state)

    def known(self) -> dict[str, QueueState]:
        """Return the last state of every queue that exists and is no stream; empty while the monitor is blind."""
        if self.is_blind:
            return {}
        return {q: state for q, (state, _) in self._seen.items() if state is not None and not _is_stream(state)}

    def missing(self) -> list[str]:
        """Return the queues of which the last answer was that they do not exist, or may not be read; sorted."""
        return sorted(queue for queue, (state, _) in self._seen.items() if state is None)

    def seen(self, queue: str) -> Seen | None:
        """Return the last answer however old it is, while the monitor is blind too; None if there never was one."""
        if queue not in self._seen:
            return None
        state, at = self._seen[queue]
        return Seen(state, at, max(self._ease, self._rota.interval(queue)))

    async def run(self) -> None:
        """Poll until cancelled."""
        while not self._queues and not self._letter_queues.are_any:
            self._queues_changed.clear()
            await self._queues_changed.wait()
        now = asyncio.get_running_loop().time
        try:
            while True:
                began = now()
                is_told = await self._poll(began)
                self.on_polled()
                if is_told and self._ease > self._interval:
                    await self._until_hurried(began + self._ease)
                else:
                    await asyncio.sleep(max(0.0, began + (self._interval if is_told else RETRY) - now()))
        finally:
            await self._monitor.close()

    async def _until_hurried(self, due: float) -> None:
        self._hurried.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._hurried.wait()

    async def _poll(self, began: float) -> bool:
        asked = list(self._rota.due(began))
        for_letters = self._letter_queues.due(began)
        if not asked and not for_letters:
            return True
        try:
            states = await self._monitor.poll(list(dict.fromkeys([*asked, *for_letters])))
        except BrokerError as error:
            if not self.is_blind:
                _say.warning("monitor_blind", why=str(error), effect=_EFFECT)
            self.is_blind = True
            return False
        now = asyncio.get_running_loop().time()
        for queue in asked:
            if queue in states and queue in self._queues and not self._doubts(queue, states[queue], now):
                self._see(queue, states[queue], now)
        for queue in for_letters:
            if queue in states:
                is_there = states[queue] is not None or bool(self._monitor.why(queue))
                self._letter_queues.see(queue, now, is_there=is_there)
        if self.is_blind:
            _say.info("monitor_sees_again")
        self.is_blind = False
        return True

    def _doubts(self, queue: str, state: QueueState | None, now: float) -> bool:
        """Return whether the answer is one that a quorum queue in trouble gives, and not yet old enough to be true."""
        before, _ = self._seen.get(queue, (None, 0.0))
        is_sudden = state is not None and before is not None and _is_idle(state) and not _is_idle(before)
        if not is_sudden or (state is not None and state.kind is QueueKind.CLASSIC):
            self._doubted.pop(queue, None)
            return False
        return now - self._doubted.setdefault(queue, now) < DOUBT

    def _see(self, queue: str, state: QueueState | None, now: float) -> None:
        known, (before, _) = queue in self._seen, self._seen.get(queue, (None, 0.0))
        if state is None and (not known or before is not None):
            why = self._monitor.why(queue)
            _say.warning(
                "queue_refused" if why else "queue_missing",
                queue=queue,
                effect="a route of class_budget that names it is blind: none of its rates grows",
                remedy=f"{_REMEDY if why else 'create it'}, or take it out of the route's queues",
                **({"why": why} if why else {}),
            )
        if _is_stream(state) and not _is_stream(before):
            _say.error(
                "queue_is_stream",
                queue=queue,
                effect="nothing is steered by it: a stream keeps what was read and knows no consumers",
                remedy="take it out of the route's queues; where all readers read streams, set routes.*.cap",
            )
        self._doubted.pop(queue, None)
        self._seen[queue] = state, now
        self._rota.tell(queue, now, is_deep=state is not None and state.ready > 0 and not _is_stream(state))


def _is_stream(state: QueueState | None) -> bool:
    return state is not None and state.kind is QueueKind.STREAM


def _is_idle(state: QueueState) -> bool:
    return not state.ready and not state.consumers
