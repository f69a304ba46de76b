"""Notices of episodes on their way to whoever sends too much: one after the other, never in the way of the data.

At most `WAITING` wait; of more the new ones are dropped. What can't be delivered now is tried again after a pause that
doubles, for `GIVE_UP` seconds; what is refused for good is not. Each of these is counted, and said. What was on its way
when no answer came in time may have arrived: it comes again under the same id. When the process ends each is tried once
more, for `LAST_WORD` seconds in all.
"""

import asyncio
import contextlib
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from proxy.errors import NoticeError
from proxy.steering.episodes import Episode

_say = structlog.get_logger("tidegate.notices")

VERSION = 1
"""Of a notice (docs/notice.schema.json). Fields are added only."""
WAITING = 1_000
"""Notices that wait at most."""
DEADLINE = 5.0
"""Seconds for one try, connecting included."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LAST_WORD = 5.0
"""Seconds that what waits has when the process ends."""
GIVE_UP = 600.0
"""Seconds from the first try of a notice after which no other is made."""
OUTCOMES = ("sent", "dropped", "refused", "given_up")


class Destination(Protocol):
    """Where notices go."""

    @property
    def name(self) -> str:
        """For the log; no secret is in it."""
        ...

    async def send(self, route: str, body: bytes) -> None:
        """Deliver one. Raises `NoticeError`; cancelled after `DEADLINE` seconds."""
        ...

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        ...


class Notices:
    """What waits, and the task that delivers it. `backlog` tells how many events of a class are not done with."""

    def __init__(
        self,
        destination: Destination,
        backlog: Callable[[str], int | None],
        *,
        group: str,
        instance: str,
        wall: Callable[[], float],
    ) -> None:
        self._destination = destination
        self._backlog = backlog
        self._group = group
        self._instance = instance
        self._wall = wall
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._come = asyncio.Event()
        self._through = asyncio.Event()
        """Nothing waits."""
        self._ending = asyncio.Event()
        """There is one more try for each."""
        self.counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        """Notices by what became of them."""
        self._why = ""
        """Why the last try failed, if it did."""

    def put(self, episode: Episode) -> None:
        """Let a notice wait for its delivery; never blocks, never raises."""
        if len(self._waiting) >= WAITING:
            if not self.counts["dropped"]:
                _say.warning("notices_dropped", waiting=WAITING, effect="new ones are dropped while so many wait")
            self.counts["dropped"] += 1
            return
        body = json.dumps(self._notice(episode), separators=(",", ":")).encode()
        self._waiting.append((episode.route, body))
        self._come.set()

    async def finish(self) -> None:
        """Have what waits tried once more, without pauses; for `LAST_WORD` seconds at most."""
        self._ending.set()
        if self._waiting:
            self._through.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORD):
                    await self._through.wait()
        if self._waiting:
            _say.warning("notices_untold", waiting=len(self._waiting), effect="they are lost: the process ends")

    async def run(self) -> None:
        """Deliver until cancelled."""
        try:
            while True:
                while not self._waiting:
                    self._through.set()
                    self._come.clear()
                    await self._come.wait()
                route, body = self._waiting[0]
                outcome = await self._deliver(route, body)
                self.counts[outcome] += 1
                self._waiting.popleft()
        finally:
            await self._destination.close()

    def families(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """Yield what /metrics tells."""
        counts = CounterMetricFamily("tidegate_notices", "To whoever sends too much.", labels=["outcome"])
        for outcome in OUTCOMES:
            counts.add_metric([outcome], self.counts[outcome])
        yield counts
        yield GaugeMetricFamily("tidegate_notices_waiting", "For their delivery.", value=len(self._waiting))

    async def _deliver(self, route: str, body: bytes) -> str:
        """Try until it is delivered, refused, or too late; return what became of it."""
        clock = asyncio.get_running_loop().time
        end, pause = clock() + GIVE_UP, FIRST_PAUSE
        while True:
            is_last = self._ending.is_set()
            try:
                async with asyncio.timeout(DEADLINE):
                    await self._destination.send(route, body)
            except TimeoutError:
                why, is_final = f"no answer within {DEADLINE:g} s", False
            except NoticeError as error:
                why, is_final = str(error), error.is_final
            except Exception as error:  # noqa: BLE001 - whatever is wrong with notices, data flows on
                why, is_final = repr(error), False
            else:
                if self._why:
                    _say.info("notices_go_on", to=self._destination.name)
                self._why = ""
                return "sent"
            if is_final or is_last or clock() + pause >= end:
                outcome = "refused" if is_final else "given_up"
                _say.warning("notice_lost", to=self._destination.name, outcome=outcome, why=why)
                return outcome
            if not self._why:
                effect = "they wait and are tried again; the data does not"
                _say.warning("notices_wait", to=self._destination.name, why=why, effect=effect)
            self._why = why
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._ending.wait()
            pause = min(2 * pause, LONGEST_PAUSE)

    def _notice(self, episode: Episode) -> dict[str, Any]:
        now_ms = int(self._wall() * 1000)
        return {
            "v": VERSION,
            "id": f"{self._instance}/{episode.number}/{'end' if episode.is_over else 'start'}",
            "phase": "end" if episode.is_over else "start",
            "group": self._group,
            "instance": self._instance,
            "route": episode.route,
            "class": episode.priority,
            "cause": episode.cause,
            "at_ms": now_ms,
            "since_ms": now_ms - int(episode.seconds * 1000),
            "suggested_rate": None if episode.is_over else round(episode.passed, 3),
            "backlog": self._backlog(episode.priority),
        }
