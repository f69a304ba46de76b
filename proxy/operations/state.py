"""What GET /state tells: every route, class and event type as it is now, and the last decisions with their reasons."""

import asyncio
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Any

from proxy import __version__
from proxy.bridge.assignment import Assignment
from proxy.bridge.awaited import awaited
from proxy.bridge.broker import Lane
from proxy.bridge.listener import Listener
from proxy.config import InForce
from proxy.operations.steps import Steps
from proxy.operations.totals import Record, Totals
from proxy.operations.verdict_words import why
from proxy.settings import Route
from proxy.steering.depths import Depths
from proxy.steering.retention_guard import RetentionGuard

TYPES = 1_000
"""Event types in one answer; `next` says after which to go on."""
LATELY_SECONDS = 10.0
"""So long the last congestion is told as what holds events back: rates that were cut grow again step by step."""


class State:
    """Reads the parts; changes nothing. `wall` gives seconds since 1970."""

    def __init__(
        self,
        in_force: InForce,
        assignment: Assignment,
        lanes: Mapping[str, Lane],
        dead_letter_lane: Lane,
        depths: Depths,
        totals: Totals,
        retention: RetentionGuard,
        *,
        wall: Callable[[], float],
        instance: str,
    ) -> None:
        self._in_force = in_force
        self._ranks = list(in_force.settings.classes)
        self._assignment = assignment
        self._lanes = lanes
        self._dead_letter_lane = dead_letter_lane
        self._depths = depths
        self._totals = totals
        self._retention = retention
        self._wall = wall
        self._instance = instance

    async def told(self, steps: Steps, *, after: str = "", types: Iterable[str] = ()) -> str:
        """Return it as JSON, with the event types that come after a name, or with those named.

        Raises `KeyError` with the name of one that is unknown.
        """
        by_name = {one.event_type.name: one for one in self._assignment.listeners.values()}
        wanted = list(dict.fromkeys(types))
        names = wanted or sorted(by_name)
        begin = 0 if wanted else bisect_right(names, after)
        page = names[begin : begin + TYPES]
        if unknown := next((name for name in page if name not in by_name), None):
            raise KeyError(unknown)
        per_class = Counter(one.event_type.priority for one in by_name.values())
        per_route = Counter(one.event_type.route for one in by_name.values())
        parts = {
            "version": json.dumps(__version__),
            "instance": json.dumps(self._instance),
            "at_ms": str(int(self._wall() * 1000)),
            "settings_refused": json.dumps(list(self._in_force.refused)),
            "routes": await _object(self.routes(per_route), steps),
            "dead_letters": json.dumps(self._lane(self._dead_letter_lane)),
            "classes": await _object(self.classes(per_class), steps),
            "types": await _object(((name, self._type(by_name[name])) for name in page), steps),
            "types_in_all": str(len(by_name)),
            "next": json.dumps(page[-1] if begin + len(page) < len(names) else None),
        }
        return "{" + ", ".join(f'"{name}": {text}' for name, text in parts.items()) + "}"

    def routes(self, types: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
        """Yield every route by name, given how many event types each has."""
        for name, route in self._in_force.settings.routes.items():
            verdict = self._totals.verdicts.get(name)
            yield (
                name,
                {
                    "policy": route.policy,
                    "shadow": route.shadow,
                    "types": types.get(name, 0),
                    "lane": self._lane(self._lanes[name]),
                    "publish_p50_s": self._totals.publish_p50(name),
                    "verdict": None if verdict is None else _verdict(verdict),
                    "congested_lately": self._congested_lately(name),
                    "decisions": [_verdict(one) for one in self._totals.decisions[name]],
                    "queues": self._queues(route, verdict),
                },
            )

    def _congested_lately(self, route: str) -> str | None:
        """Return why the route was last congested: a rate that was cut goes on holding events back for a while."""
        last = self._totals.congestions.get(route)
        if last is None or self._wall() - last["at_ms"] / 1000 >= LATELY_SECONDS:
            return None
        return why(last)

    def _lane(self, lane: Lane) -> dict[str, Any]:
        return {
            "state": lane.state.value,
            "in_flight": lane.in_flight,
            "window": lane.window,
            "oldest_s": round(lane.oldest(asyncio.get_running_loop().time()), 3),
        }

    def _queues(self, route: Route, verdict: Record | None) -> dict[str, Any]:
        delays = (verdict and verdict["queues"]) or {}
        told = {}
        for queue in route.queue_names:
            state = self._depths.of(queue)
            told[queue] = {
                "ready": None if state is None else state.ready,
                "consumers": None if state is None else state.consumers,
                "delay_s": _seconds(delays.get(queue)),
            }
        return told

    def classes(self, types: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
        """Yield every class by name, given how many event types each has; the most important first."""
        for name in self._in_force.settings.classes:
            last = self._totals.of_classes.get(name, {})
            rate = self._totals.rate(name)
            yield (
                name,
                {
                    "types": types.get(name, 0),
                    "rate": None if rate is None else round(rate, 3),
                    "confirmed": self._totals.confirmed(name),
                    "lag": last.get("lag"),
                    "lag_age_s": self._totals.lag_age(name),
                    "waiting": last.get("waiting"),
                    "catching_up": last.get("catching_up"),
                },
            )

    def _type(self, one: Listener) -> dict[str, Any]:
        oldest = one.inbox.oldest_ms() if one.inbox.events else None
        span = self._retention.spans.get(one.event_type.name)
        return {
            "class": one.event_type.priority,
            "route": one.event_type.route,
            "topic": one.event_type.topic,
            "partitions": len(one.inbox.flows),
            "mode": one.stance.mode.value,
            "cap": None if one.stance.cap is None else one.stance.cap.rate,
            "awaits": awaited(one, asyncio.get_running_loop().time()) or None,
            "inbox_events": one.inbox.events,
            "inbox_bytes": one.inbox.bytes,
            "batch_size": one.throttle.batch_size,
            "paused": one.inbox.is_paused,
            "dead_letters": one.dead_letters.open,
            "lag_age_s": None if oldest is None else round(max(0.0, self._wall() - oldest / 1000), 3),
            "retention_left_s": None if span is None else _finite(span.left),
            "retention_s": None if span is None else _finite(span.full),
            "retention_near": self._retention.near_of(one.event_type.name),
            "goes_as": self._ranks[one.rank],
        }


def _verdict(record: Record) -> dict[str, Any]:
    return {
        "at_ms": record["at_ms"],
        "congested": record["congested"],
        "cause": record["cause"],
        "why": why(record),
        "hot": record["hot"] or [],
        "queue_delay_s": _seconds(record["queue_delay_us"]),
        "ruled_by": record["ruled_by"],
        "drain_rate": record["drain_rate"],
        "rates": record["rates"],
    }


def _finite(seconds: float) -> float | None:
    return None if seconds == inf else round(seconds, 3)


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / 1e6


async def _object(members: Iterable[tuple[str, Any]], steps: Steps) -> str:
    """Return a JSON object, written member by member."""
    texts: list[str] = []
    for name, value in members:
        texts.append(f"{json.dumps(name)}: {json.dumps(value)}")
        await steps.pause()
    return "{" + ", ".join(texts) + "}"
