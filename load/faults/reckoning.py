"""What a round came to: which events have not come, and what was counted since it began."""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Sequence

from load.faults.flow import WATCH_SECONDS, Key, name_of
from load.faults.ledger import Counts, sum_of
from load.faults.replicas import IN_FLIGHT, Replicas
from load.faults.sink import Sink
from load.faults.source import Source
from load.faults.streams import FLOWING, STREAMS, Stream
from load.faults.verdicts import Round

SETTLE_SECONDS = 30.0
"""What has not come so long after the flow is back is counted as nowhere, unless it comes later."""
METRIC_SECONDS = 2.2
"""A replica's metric log tells of an event type within so many seconds."""


class Reckoning:
    """The books of all rounds, beside what the replicas' metric logs say."""

    def __init__(self, source: Source, sink: Sink, replicas: Replicas, rounds: Sequence[Round]) -> None:
        self._source, self._sink, self._replicas = source, sink, replicas
        self._rounds = rounds
        """All so far, the present one included."""
        self._before: dict[Key, Counts] = {}
        self._reported: Counter[tuple[str, str]] = Counter()
        self._foreign = 0

    def begin(self) -> None:
        """Note what there is before a round's fault."""
        self._before, self._foreign = self._counts(), self._sink.foreign
        for ledger in self._source.ledgers.values():
            ledger.reach = 0
        self._replicas.read_metrics()
        self._reported = Counter(self._replicas.counted)

    async def account(self, told: Round, mended: float) -> None:
        """Count what the round came to since `begin`; its fault had ended at `mended`."""
        missing = await self.settled()
        if not missing:
            told.caught_up = time.monotonic() - mended
        if missing and told.kind.name == "queue-deleted":
            missing = self._with_queue(told, missing)
        told.lost = {name_of(key): numbers for key, numbers in missing.items()}
        await asyncio.sleep(METRIC_SECONDS)
        self._replicas.read_metrics()
        counted = self._replicas.counted - self._reported
        after, ledgers = self._counts(), self._source.ledgers
        gained = {key: counts.plus(self._before.get(key, Counts()), -1) for key, counts in after.items()}
        told.counts = sum_of(gained.values())
        told.worst_duplicates = max(counts.duplicates for counts in gained.values())
        for at, stream in enumerate(STREAMS):
            told.late[stream.name] = sum(counts.late for key, counts in gained.items() if key[0] == at)
            told.reach[stream.name] = max(ledger.reach for key, ledger in ledgers.items() if key[0] == at)
            told.overtaken[stream.name] = counted["overtaken", stream.name]
        if told.kind.name == "log-truncated":
            told.truncated = sum(count for (name, _), count in counted.items() if name == "truncated")
        told.foreign = self._sink.foreign - self._foreign

    async def settled(
        self,
        streams: Collection[Stream] = FLOWING,
        seconds: float = SETTLE_SECONDS,
        look_seconds: float = WATCH_SECONDS,
    ) -> dict[Key, list[int]]:
        """Wait until every event sent before now has come; return what has not, after a while.

        What an earlier round has missed is left out.
        """
        ends = {key: ledger.sent for key, ledger in self._source.ledgers.items() if STREAMS[key[0]] in streams}
        deadline = time.monotonic() + seconds
        while True:
            found = {key: self._missing(key, end) for key, end in ends.items()}
            found = {key: numbers for key, numbers in found.items() if numbers}
            if not found or time.monotonic() > deadline:
                return found
            await asyncio.sleep(look_seconds)

    def so_far(self) -> Counts:
        """Return all counts until now."""
        return sum_of(self._counts().values())

    def _counts(self) -> dict[Key, Counts]:
        return {key: ledger.counts for key, ledger in self._source.ledgers.items()}

    def _missing(self, key: Key, end: int) -> list[int]:
        known = {number for told in self._rounds for number in told.lost.get(name_of(key), ())}
        return [number for number in self._source.ledgers[key].missing(end) if number not in known]

    def _with_queue(self, told: Round, missing: dict[Key, list[int]]) -> dict[Key, list[int]]:
        """Take out what RabbitMQ confirmed into the queue in the instant of its deletion: no more than in flight."""
        count = sum(map(len, missing.values()))
        if count > IN_FLIGHT or len({stream for stream, _ in missing}) > 1:
            return missing
        for key, numbers in missing.items():
            self._source.ledgers[key].excuse(numbers)
        told.with_queue = count
        return {}
