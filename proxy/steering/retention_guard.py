"""How long the oldest event of each partition still has in the log, and what is done before it goes.

Every `LOOK` seconds: how old it is, how much stands behind it, what comes (`congestion.retention`). A type that is near
its end is said and recorded; where its class asks for it, it goes as one of the class above until it is far again.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from math import inf
from typing import NamedTuple

import structlog

from proxy.bridge.event_log import EventLog
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.listener import Listener
from proxy.congestion.retention import Span, event_bytes, span
from proxy.errors import LogError
from proxy.model import Partition, Retention
from proxy.settings import Settings
from proxy.steering.partition_age import PartitionAge, Seen

_say = structlog.get_logger("tidegate.retention")

LOOK = 5.0
"""Seconds between two looks; each asks the log once for all ends."""
ASK = 600.0
"""Seconds after which it is asked again how long topics are kept; of new ones at the next look."""
FIRSTS = 60.0
"""Seconds between two questions for where partitions begin, of those that are kept by size."""
AGAIN = 60.0
"""Seconds between two records of a partition that stays near its end, and to the next try of what was not answered."""
_FAR = (0, None)
_AT_ONCE = 64
"""Event types looked at in one step of the event loop."""


class Near(NamedTuple):
    """A partition near its end, or no longer; as it is recorded."""

    type: str
    partition: Partition
    span: Span
    lag: int
    lifted_to: str | None
    """The class as which its type goes for the time being."""
    phase: str
    """`begun`, `holds` or `ended`."""


class RetentionGuard:
    """Looks at what this replica owns. `listeners` are all event types, `wall` is in seconds since 1970."""

    def __init__(
        self,
        settings: Settings,
        log: EventLog,
        listeners: Callable[[], Iterable[Listener]],
        observer: Callable[[Near], None],
        wall: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._log = log
        self._listeners = listeners
        self._observer = observer
        self._wall = wall
        self._classes = list(settings.classes)
        self._kept: dict[str, Retention | None] = {}
        """By topic; None: this login may not know."""
        self._asked_at = self._firsts_at = -inf
        self._firsts: Mapping[Partition, int] = {}
        self._ages: dict[PartitionFlow, PartitionAge] = {}
        self._standing: Collection[Partition] = ()
        self._near: dict[PartitionFlow, tuple[Near, float]] = {}
        """Of which it was said, and when last."""
        self._said: dict[str, tuple[int, str | None]] = {}
        """Of event types near their end: how many partitions are, and as which class it goes."""
        self._is_blind = self._is_refused = False
        self.spans: dict[str, Span] = {}
        """By event type, of its partition with the least left; of those that the log does not keep without end."""
        self.unknown: frozenset[str] = frozenset()
        """Topics of which this login may not know how long they are kept."""

    @property
    def near(self) -> Mapping[str, int]:
        """How many partitions of each event type are near their end; types with none are left out."""
        return {name: count for name, (count, _) in self._said.items()}

    def near_of(self, name: str) -> int:
        """Return how many partitions of an event type are near their end."""
        return self._said.get(name, _FAR)[0]

    def go_by(self, settings: Settings) -> None:
        """Go by what these settings say of alarms and of lifting from now on."""
        self._settings = settings

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK)
            with suppress(LogError):
                await self._look()

    async def _look(self) -> None:
        every = [one for one in self._listeners() if one.inbox.flows]
        now = asyncio.get_running_loop().time()
        await self._ask({one.event_type.topic for one in every}, now)
        bounded = [one for one in every if self._is_bounded(one.event_type.topic)]
        flows = {flow.partition: flow for one in bounded for flow in one.inbox.flows.values()}
        lags = await self._log.lags({at: flow.watermark.position for at, flow in flows.items()}) if flows else {}
        sized = [at for at in flows if (kept := self._kept[at.topic]) is not None and kept.bytes is not None]
        if sized and now >= self._firsts_at + FIRSTS:
            self._firsts_at, self._firsts = now, await self._log.firsts(sized)
        self._standing = self._log.standing()
        ages, self._ages = self._ages, {}
        for flow in flows.values():
            self._ages[flow] = ages.get(flow) or PartitionAge()
        for flow in [flow for flow in self._near if flow not in self._ages]:
            del self._near[flow]  # somebody else's now
        spans = dict[str, Span]()
        for steps, one in enumerate(bounded):
            if not steps % _AT_ONCE:
                await asyncio.sleep(0)
            found = {
                flow: (self._span(one, flow, lags[at], now), lags[at])
                for at, flow in one.inbox.flows.items()
                if at in lags and flow in self._ages
            }
            if found:
                spans[one.event_type.name] = min(told for told, _ in found.values())
                self._judge(one, found, now)
        self.spans = spans
        owned = {one.event_type.name for one in bounded}
        for name in [name for name in self._said if name not in owned]:
            del self._said[name]
        for one in self._listeners():
            if one.is_lifted and one.event_type.name not in owned:
                one.lift(None)

    async def _ask(self, topics: Collection[str], now: float) -> None:
        """Learn how long topics are kept, of all at once."""
        is_due = now >= self._asked_at + ASK
        if not topics or not (is_due or (topics - self._kept.keys() and now >= self._asked_at + AGAIN)):
            return
        self._asked_at = now
        try:
            self._kept |= await self._log.retention(topics)
        except LogError as error:
            if not self._is_blind:
                effect = "how long events still have in the log is not known, or no longer whether it has changed"
                _say.warning("retention_unknown", why=str(error), effect=effect)
            self._is_blind = True
            return
        self._is_blind = False
        self.unknown = frozenset(topic for topic in topics if topic in self._kept and self._kept[topic] is None)
        if self.unknown and not self._is_refused:
            _say.info(
                "retention_refused",
                topics=len(self.unknown),
                effect="how long their events still have in the log is not known",
                remedy="grant this login DescribeConfigs on the topics",
            )
        self._is_refused = bool(self.unknown)

    def _is_bounded(self, topic: str) -> bool:
        kept = self._kept.get(topic)
        return kept is not None and (kept.seconds is not None or kept.bytes is not None)

    def _span(self, one: Listener, flow: PartitionFlow, lag: int, now: float) -> Span:
        kept = self._kept[flow.partition.topic]
        assert kept is not None
        age, position = self._ages[flow], flow.watermark.position
        mark, inbox = flow.watermark, one.inbox
        age.see(
            now,
            Seen(
                resolved=mark.resolved,
                sent=flow.sent,
                received=mark.received,
                front_ms=flow.front_ms() if flow.waiting else flow.read_ms,
                size=inbox.mean_size,
                lag=lag,
                head=None if position is None else self._log.place(position) + 1,
                is_held=inbox.pauses(flow.partition) or flow.partition in self._standing,
            ),
        )
        first = self._firsts.get(flow.partition)
        held = None if first is None or age.end is None else age.end - first
        size = event_bytes(age.size, held, kept)
        return span(age.age(now, self._wall()), lag, age.arrivals, size, kept)

    def _judge(self, one: Listener, found: Mapping[PartitionFlow, tuple[Span, int]], now: float) -> None:
        """Lift the type or let it down, then tell of its partitions that are near their end."""
        settings, kind = self._settings, one.event_type
        rank, lift_within = settings.rank(kind.priority), settings.classes[kind.priority].lift_before_loss
        if lift_within is not None and rank > 0 and settings.tells_classes_apart(kind.route):
            wants = any(told.is_near(lift_within, was=one.is_lifted) for told, _ in found.values())
            if wants is not one.is_lifted:
                one.lift(rank - 1 if wants else None)
        lifted_to = self._classes[rank - 1] if one.is_lifted else None
        within = max(settings.retention.alarm, lift_within or 0.0)
        for flow, (told, lag) in found.items():
            before, at = self._near.get(flow, (None, -inf))
            is_near = told.is_near(within, was=before is not None)
            if before is None and not is_near:
                continue
            phase = "begun" if before is None else "holds" if is_near else "ended"
            near = Near(kind.name, flow.partition, told, lag, lifted_to, phase)
            if phase == "ended":
                del self._near[flow]
            elif before is None or before.lifted_to != lifted_to or now >= at + AGAIN:
                self._near[flow] = near, now
            else:
                continue
            self._observer(near)
        self._say_of(kind.name, [self._near[flow][0] for flow in found if flow in self._near], lifted_to)

    def _say_of(self, name: str, near: list[Near], lifted_to: str | None) -> None:
        """Say that a type has come near its end, goes as another class, or is far from its end again; once each."""
        count, as_class = self._said.get(name, _FAR)
        if not near:
            if self._said.pop(name, None):
                _say.info("retention_far", type=name)
            return
        self._said[name] = len(near), lifted_to
        if count and as_class == lifted_to:
            return
        worst = min(near, key=lambda each: each.span)
        _say.warning(
            "retention_near",
            type=name,
            partitions=len(near),
            partition=str(worst.partition),
            left_s=round(worst.span.left),
            lag=worst.lag,
            lifted_to=lifted_to,
            effect="the log may drop events that were not sent, at the earliest then",
            remedy="more consumers, a longer retention, or classes.*.lift_before_loss",
        )
