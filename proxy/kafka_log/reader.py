"""Takes records off the consumer, and sorts out what it raises instead.

The consumer raises for one partition what then stands in the way of all. A partition of which something can't be read
(a checksum, a compression it can't undo, a header's name that is no UTF-8) is read up to there and then stands still,
while all others go on (`unreadable`).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from aiokafka import TopicPartition, errors

from proxy.errors import LogError
from proxy.kafka_log.client import Reach
from proxy.kafka_log.events import events
from proxy.kafka_log.leader_epochs import NewLeaderError
from proxy.kafka_log.slices import Slices
from proxy.kafka_log.unreadable import Unreadable
from proxy.kafka_log.words import NO_GROUP, misfit
from proxy.model import Event, Partition
from proxy.positions.share import Share, Shares

_say = structlog.get_logger("tidegate.kafka")

_FAILURE_PAUSE = 0.1
"""Seconds that a read takes at least where the consumer fails: until it has joined anew it may do so without end."""

_NOBODY = TopicPartition("", 0)
_MISCONFIGURED = (
    errors.InvalidSessionTimeoutError,
    errors.InconsistentGroupProtocolError,
    errors.InvalidGroupIdError,
)


class Reader:
    """Reads the shares of the current assignment. One `read` at a time."""

    def __init__(
        self,
        slices: Slices,
        consumer: Any,
        reach: Reach,
        *,
        on_passed: Callable[[Share, int], None],
        on_unavailable: Callable[[Share, int], None],
        on_refused: Callable[[str], None],
        on_left: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._slices = slices
        """The consumer's fetcher."""
        self._unreadable = Unreadable(consumer)
        self._reach = reach
        self._on_passed = on_passed
        self._on_unavailable = on_unavailable
        self._on_refused = on_refused
        self._on_left = on_left

    async def read(self, shares: Callable[[], Shares], wait: float) -> Mapping[Partition, list[Event]]:
        """Return what was fetched for the shares, a slice of it; at most 0.1 s later than `wait`, where it fails.

        Raises `LogError` if the settings don't suit the log or the consumer has come to an end.
        """
        self._unreadable.turn(shares())
        try:
            fetched = await self._consumer.getmany(timeout_ms=round(wait * 1000))
        except errors.KafkaError as error:
            await asyncio.sleep(0)  # it may have been raised at once, and be raised again
            await self._sort_out(error, shares())
            return {}
        taken: dict[Partition, list[Event]] = {}
        held = shares()
        for at, records in fetched.items():
            share = held.get(at)
            if share is not None and share.is_placed:
                share.next = records[-1].offset + 1
                taken[share.partition] = events(records)
        for at, end in self._slices.take_passed().items():
            if at in held:
                self._on_passed(held[at], end)
        while self._slices.unreadable:
            at, why = self._slices.unreadable.popitem()
            share = held.get(at)
            if share is None or not share.is_placed:
                continue
            if isinstance(why, NewLeaderError):
                self._on_unavailable(share, share.next)
            else:
                self._unreadable.found(at, share, why)
        return taken

    async def _sort_out(self, error: errors.KafkaError, shares: Shares) -> None:
        match error:
            case errors.OffsetOutOfRangeError() if error.args:
                for at, offset in error.args[0].items():
                    if at in shares:
                        self._on_unavailable(shares[at], offset)
            case errors.TopicAuthorizationFailedError() if error.args:
                self._on_refused(error.args[0])
            case errors.NoOffsetForPartitionError():
                pass  # it was looked for between the assignment and `Placing.begin`, which answers it
            case errors.GroupAuthorizationFailedError():
                await self._rejoin(NO_GROUP, shares)
            case _ if isinstance(error, _MISCONFIGURED):
                raise LogError(misfit(error)) from error
            case _:
                await self._rejoin(str(error), shares)

    async def _rejoin(self, why: str, shares: Shares) -> None:
        """Take part in the group anew after a failure that the library doesn't know: its heartbeats may have ended."""
        for is_last in (False, True):
            # Without a turn of the loop nothing new can have failed. The library tells whoever waits, and keeps the
            # same failure for the next who asks; what it raises after that, it will raise for ever.
            try:
                await self._consumer.getmany(_NOBODY, timeout_ms=0)
            except errors.KafkaError as end:
                if is_last:
                    raise LogError(f"the log's consumer has come to an end: {end}") from end
            else:
                break
        self._reach.lost("group", why)
        if shares:
            self._on_left()
        await asyncio.sleep(_FAILURE_PAUSE)
