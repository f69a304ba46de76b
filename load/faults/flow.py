"""Whether events flow through every partition again."""

import asyncio
import time

from load.faults.source import Source
from load.faults.streams import STREAMS

WATCH_SECONDS = 0.02
"""Between two looks."""
Key = tuple[int, int]
"""A stream's place and a partition."""


def name_of(key: Key) -> str:
    """Return a partition's name."""
    return f"{STREAMS[key[0]].name}-{key[1]}"


async def flow_back(source: Source, since: float, seconds: float) -> tuple[float | None, str]:
    """Return when every partition had delivered an event that was sent after `since`, in seconds from there.

    With the partition that was last; after `seconds` without the rest, None and those that are missing.
    Where Kafka had the event only later, because the source itself had to come back, it counts from then.
    """
    marks = {key: ledger.sent for key, ledger in source.ledgers.items() if STREAMS[key[0]].rate}
    deadline = time.monotonic() + seconds
    worst, slowest = 0.0, ""
    while marks:
        await asyncio.sleep(WATCH_SECONDS)
        now = time.monotonic()
        for key, mark in list(marks.items()):
            took = _took(source, key, mark, since, now)
            if took is not None:
                del marks[key]
                if took >= worst:
                    worst, slowest = took, name_of(key)
        if now > deadline and marks:
            return None, ", ".join(_standing(source, key, mark) for key, mark in marks.items())
    return worst, slowest


def _standing(source: Source, key: Key, mark: int) -> str:
    """Return a partition's name; and whether Kafka had no event to flow."""
    has_any = any(number >= mark for number in source.kept_at[key])
    return name_of(key) + ("" if has_any else " (of which Kafka took nothing)")


def _took(source: Source, key: Key, mark: int, since: float, now: float) -> float | None:
    """Return after how many seconds the first event kept from `mark` on was done; None if none is yet."""
    kept = source.kept_at[key]
    first = next((number for number in kept if number >= mark), None)
    if first is None or not source.ledgers[key].is_done(first):
        return None
    return max(0.0, now - max(since, kept[first]))
