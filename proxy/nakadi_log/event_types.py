"""What Nakadi says of its event types: which there are, how long they are kept, where their partitions begin."""

import asyncio
from collections.abc import Collection
from typing import Any

from proxy.errors import LogError
from proxy.model import Partition, Retention
from proxy.nakadi_log.bus import NOT_FOUND, Bus, RefusedError, quoted
from proxy.nakadi_log.offsets import place

AT_ONCE = 8


class EventTypes:
    """Asks for all of them in one question, answered within seconds."""

    def __init__(self, bus: Bus, *, within: float) -> None:
        self._bus = bus
        self._within = within
        self.compacted = set[str]()
        """Those that leave offsets out, as of the last answer."""
        self.created = dict[str, str]()
        """When each was made, likewise."""

    async def all(self) -> dict[str, Retention]:
        """Return how long each event type is kept, by name."""
        _, told = await self._bus.ask("GET", "/event-types", within=self._within)
        if not isinstance(told, list):
            raise LogError("the answer names no event types; is log.nakadi.url right?")
        found = dict[str, Retention]()
        for one in told:
            if not isinstance(one, dict) or not isinstance(name := one.get("name"), str):
                continue
            policy = str(one.get("cleanup_policy") or "delete")
            (self.compacted.add if "compact" in policy else self.compacted.discard)(name)
            if isinstance(created_at := one.get("created_at"), str):
                self.created[name] = created_at
            found[name] = Retention(_seconds(one) if "delete" in policy else None, None, None)
        return found

    async def firsts(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Return where partitions begin; what can't be told is left out."""
        topics = sorted({at.topic for at in partitions})
        found = dict[Partition, int]()
        for start in range(0, len(topics), AT_ONCE):
            for some in await asyncio.gather(*map(self._firsts, topics[start : start + AT_ONCE])):
                found |= some
        return {at: found[at] for at in partitions if at in found}

    async def _firsts(self, topic: str) -> dict[Partition, int]:
        try:
            _, told = await self._bus.ask("GET", f"/event-types/{quoted(topic)}/partitions", within=self._within)
        except RefusedError as error:
            if error.status == NOT_FOUND:
                return {}
            raise
        found = dict[Partition, int]()
        for one in told if isinstance(told, list) else []:
            try:
                found[Partition(topic, int(one["partition"]))] = max(0, place(one["oldest_available_offset"]))
            except (KeyError, TypeError, ValueError):
                continue
        return found


def _seconds(told: dict[str, Any]) -> float | None:
    options = told.get("options")
    kept = options.get("retention_time") if isinstance(options, dict) else None
    return kept / 1000 if isinstance(kept, int | float) and not isinstance(kept, bool) else None
