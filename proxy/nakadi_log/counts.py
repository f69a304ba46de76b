"""How far the group has come and what it still has before it: asked of each subscription, so many a second at most.

Nakadi tells these figures by subscription, and there is one for each event type. So every question is answered with
what is known, and the types asked longest ago are asked first.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from proxy.errors import LogError
from proxy.model import Partition
from proxy.nakadi_log.bus import Bus
from proxy.nakadi_log.heard import Heard
from proxy.nakadi_log.offsets import cursors_in

PER_SECOND = 50
"""Questions at most; as many may be saved up for two seconds."""
AT_ONCE = 8


@dataclass(slots=True)
class Count:
    """What Nakadi last said of a partition."""

    committed: int
    """Before this place all is done with."""
    end: int
    """So much further on it ends, as events are counted."""
    stream_id: str | None
    """Whose it is; None: nobody's."""


class Counts:
    """Asks for the subscriptions of `ids`, by event type, each within seconds."""

    def __init__(self, bus: Bus, heard: Heard, ids: Mapping[str, str], *, within: float) -> None:
        self._bus = bus
        self._heard = heard
        self._ids = ids
        self._within = within
        self._asked_at: dict[str, float] = {}
        self._left = 2.0 * PER_SECOND
        self._counted_at: float | None = None
        self._known: dict[str, dict[Partition, Count]] = {}

    async def of(self, topics: Collection[str]) -> dict[Partition, Count]:
        """Return what is known of the topics, some of it asked for now. Raises `LogError` if nothing was answered."""
        chosen = self._chosen([topic for topic in topics if topic in self._ids])
        failures = list[LogError]()
        for start in range(0, len(chosen), AT_ONCE):
            found = await asyncio.gather(*map(self._ask, chosen[start : start + AT_ONCE]))
            failures += [error for error in found if error is not None]
        if failures and len(failures) == len(chosen):
            raise failures[0]
        return {at: one for topic in topics for at, one in self._known.get(topic, {}).items()}

    def forget(self, topic: str) -> None:
        """Let go of what is known of a topic that is not read any more."""
        self._known.pop(topic, None)
        self._heard.forget(topic)
        self._asked_at.pop(topic, None)

    def _chosen(self, topics: list[str]) -> list[str]:
        now = asyncio.get_running_loop().time()
        if self._counted_at is not None:
            self._left = min(2.0 * PER_SECOND, self._left + (now - self._counted_at) * PER_SECOND)
        self._counted_at = now
        topics.sort(key=lambda topic: (self._asked_at.get(topic, -inf), topic))
        chosen = topics[: int(self._left / 2)]  # two questions each
        self._left -= 2 * len(chosen)
        self._asked_at.update(dict.fromkeys(chosen, now))
        return chosen

    async def _ask(self, topic: str) -> LogError | None:
        """Ask for one; return why it was not answered, if so."""
        path = f"/subscriptions/{self._ids[topic]}"
        try:
            _, cursors = await self._bus.ask("GET", f"{path}/cursors", within=self._within)
            _, stats = await self._bus.ask("GET", f"{path}/stats", within=self._within)
        except LogError as error:
            return error
        self._heard.cursors(topic, cursors)
        committed = cursors_in(cursors)
        self._known[topic] = {
            Partition(topic, number): Count(committed[number], committed[number] + unread, stream_id)
            for number, (unread, stream_id) in _unconsumed(stats).items()
            if number in committed
        }
        return None


def _unconsumed(told: Any) -> dict[int, tuple[int, str | None]]:
    """Return how many events are not committed, and of which stream a partition is; nothing of what was never read."""
    found = dict[int, tuple[int, str | None]]()
    for item in told.get("items") or [] if isinstance(told, dict) else []:
        for view in item.get("partitions") or []:
            try:
                found[int(view["partition"])] = int(view["unconsumed_events"]), view.get("stream_id")
            except (KeyError, TypeError, ValueError):
                continue
    return found
