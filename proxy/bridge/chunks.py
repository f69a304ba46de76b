"""Runs of events that wait in a flow, in order of their sequence numbers: pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proxy.model import Event


@dataclass(slots=True)
class Chunk:
    """Events of contiguous sequence numbers that wait to be sent, `events[start:]`."""

    first: int
    """Sequence number of `events[0]`."""
    events: Sequence[Event]
    start: int = 0
    retry: bool = False
    """They were written before, in vain."""


def joined(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks in order, neighbours joined: events nacked one by one go again in one batch."""
    runs: list[Chunk] = []
    end, events = -1, list[Event]()
    for chunk in sorted(chunks, key=lambda chunk: chunk.first + chunk.start):
        if chunk.first + chunk.start != end or chunk.retry is not runs[-1].retry:
            events = []
            runs.append(Chunk(chunk.first + chunk.start, events, retry=chunk.retry))
        events += chunk.events[chunk.start :]
        end = chunk.first + len(chunk.events)
    return runs
