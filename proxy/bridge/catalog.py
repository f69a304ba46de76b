"""Which topics are read: those of the settings that exist and may be read, looked at again from time to time."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping

import structlog

from proxy.bridge.event_log import EventLog
from proxy.errors import LogError
from proxy.settings import EventType

_say = structlog.get_logger("tidegate.catalog")

RETRY = 1.0
"""Seconds before a survey that failed is tried again, and between two looks while the log doubts its topics."""
ABSENT = 5.0
"""Seconds at most before a topic that was read, and is missing or refused now, is looked for again."""


class Catalog:
    """Opens a listener for every topic once it can be read."""

    def __init__(
        self,
        log: EventLog,
        wanted: Callable[[], Mapping[str, str]],
        resolve: Callable[[str], EventType | None],
        open_listener: Callable[[EventType], None],
        close_listener: Callable[[str], None],
        interval: float,
    ) -> None:
        """Make one; `wanted` gives the names of the event types by the topics that the settings name now.

        `resolve` gives the event type of a topic that has one, `close_listener` is told the topic.
        """
        self._log = log
        self._wanted = wanted
        self.has_looked = False
        """The log has answered since the start."""
        self._names = dict(wanted())
        """Event types by topic: those of the settings, and those that were ever read."""
        self._resolve = resolve
        self._open_listener = open_listener
        self._close_listener = close_listener
        self._interval = interval
        self._pause = interval
        """Seconds until the next look."""
        self._named: dict[str, str] = {}
        self._subscribed: frozenset[str] = frozenset()
        self._called = asyncio.Event()
        self._opened: set[str] = set()
        """Topics that have a listener; one that vanished keeps it for its return."""

    async def run(self) -> None:
        """Look again every interval, sooner after a failure, until cancelled."""
        while True:
            try:
                await self.look()
            except LogError:
                await asyncio.sleep(RETRY)
            else:
                await self._rest()

    def look_soon(self) -> None:
        """Look again at once: the settings may name other topics."""
        self._called.set()

    async def _rest(self) -> None:
        """Wait until the next look is due or called for; after a second at most if the log doubts its topics."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._pause
        while (left := until - clock()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(RETRY, left)):
                    await self._called.wait()
            if self._called.is_set() or self._log.doubts_topics():
                return

    @property
    def topics(self) -> frozenset[str]:
        """What is read now: neither missing nor refused, as far as the last look and the log know."""
        return self._subscribed

    @property
    def unread(self) -> list[str]:
        """Event types whose topic is not read now: missing, refused, or not looked at yet."""
        return sorted({name for topic, name in self._names.items() if topic not in self._subscribed})

    async def look(self) -> None:
        """Survey the log once and subscribe to what changed. Raises `LogError` if the log does not answer."""
        self._called.clear()
        survey = await self._log.survey(self._wanted().keys())
        self.has_looked = True
        found = {topic: kind for topic in survey.readable if (kind := self._resolve(topic)) is not None}
        gone = {topic for topic in self._opened if self._resolve(topic) is None}
        self._names = {at: self._names[at] for at in self._opened - gone} | dict(self._wanted())
        is_one_absent = not self._opened.isdisjoint(survey.missing | survey.refused)
        self._pause = min(self._interval, ABSENT) if is_one_absent else self._interval
        self._name(dict.fromkeys(survey.missing, "missing") | dict.fromkeys(survey.refused, "refused"), survey.readable)
        topics = frozenset(found)
        for topic in sorted(topics - self._opened):
            self._open_listener(found[topic])
            self._opened.add(topic)
            self._names[topic] = found[topic].name
        if topics != self._subscribed:
            _say.info("topics_subscribed", count=len(topics))
            await self._log.subscribe(topics)
            self._subscribed = topics
        for topic in sorted(gone):  # nothing of them is owned any more
            self._opened.discard(topic)
            self._close_listener(topic)

    def _name(self, trouble: dict[str, str], readable: frozenset[str]) -> None:
        for topic, _ in sorted(trouble.items() - self._named.items()):
            _say.warning(
                f"topic_{trouble[topic]}",
                topic=topic,
                remedy="create it" if trouble[topic] == "missing" else "grant this login Read and Describe on it",
                looked_at_again_in_s=self._pause,
            )
        for topic in sorted(self._named.keys() & readable):  # not what is no longer asked for
            _say.info("topic_available", topic=topic)
        self._named = trouble
