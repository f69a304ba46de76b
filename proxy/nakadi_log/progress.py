"""How far the group and this replica have come, and what is before them: from what Nakadi tells of subscriptions."""

import asyncio
from collections.abc import Collection, Mapping

from proxy.bridge.event_log import Extent
from proxy.errors import LogError
from proxy.model import Partition, Position
from proxy.nakadi_log.bus import Bus
from proxy.nakadi_log.counts import Count, Counts
from proxy.nakadi_log.heard import Heard
from proxy.nakadi_log.reader import Reader
from proxy.nakadi_log.session import Session, Share

_PROGRESS_SECONDS = 1.0


class Progress:
    """Of the event types in `readers`; `owned` is what their streams have. Some is asked for now, the rest is known."""

    def __init__(
        self,
        bus: Bus,
        heard: Heard,
        readers: Mapping[str, Reader],
        owned: Mapping[Partition, tuple[Session, Share]],
        *,
        within: float,
    ) -> None:
        self._readers = readers
        self._owned = owned
        self._ids: dict[str, str] = {}
        self._counts = Counts(bus, heard, self._ids, within=within)

    def forget(self, topic: str) -> None:
        """Let go of what is known of an event type that is not read any more."""
        self._ids.pop(topic, None)
        self._counts.forget(topic)

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Return what is not done with; also of what was given up, until it begins again or another replica has it."""
        waiting = [one for one in self._readers.values() if one.left]
        if not (done or waiting):
            return {}
        try:
            counts = await self._of({at.topic for at in done} | {one.event_type for one in waiting})
        except LogError:
            return {}
        for one in waiting:
            for at, stream_id in list(one.left.items()):
                if at in counts and counts[at].stream_id not in {None, stream_id}:
                    one.left.pop(at, None)
        left = {at: None for one in waiting for at in one.left}
        return {
            at: _lag(counts[at], self._owned.get(at, (None, None))[1], position)
            for at, position in (left | dict(done)).items()
            if at in counts
        }

    async def committed(self) -> dict[Partition, int]:
        """Return up to where all is committed. Raises `LogError`."""
        self._learn_ids()
        try:
            async with asyncio.timeout(_PROGRESS_SECONDS):
                counts = await self._counts.of(list(self._ids))
        except TimeoutError as error:
            raise LogError("no answer in time") from error
        return {at: count.committed for at, count in counts.items()}

    async def extents(self, topics: Collection[str]) -> dict[Partition, Extent]:
        """Return what is committed, and the ends. Raises `LogError`."""
        return {at: Extent(count.committed, count.end) for at, count in (await self._of(topics)).items()}

    async def _of(self, topics: Collection[str]) -> dict[Partition, Count]:
        self._learn_ids()
        return await self._counts.of(topics)

    def _learn_ids(self) -> None:
        for topic, reader in self._readers.items():
            if reader.subscription is not None:
                self._ids[topic] = reader.subscription


def _lag(count: Count, share: Share | None, position: Position | None) -> int:
    begun = count.committed if share is None else share.done
    return max(0, count.end - max(begun, position + 1 if isinstance(position, int) else begun))
