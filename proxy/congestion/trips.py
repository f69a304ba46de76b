"""How long batches are on their way: from being handed to the lane until the last of their events has its outcome."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

MOST = 1_000
"""Trips kept between two ticks; of more the rest is not seen."""


class Trip(NamedTuple):
    """One batch that has come back."""

    seconds: float
    in_flight: int
    """Batches on their way when it came back, itself among them."""
    is_dropped: bool = False
    """Some of it was nacked, or lost with a deadline or a connection."""
    cost: float = 1.0
    """What its events cost together."""


@dataclass(slots=True)
class _Out:
    since: float
    cost: float
    resolved: int = 0
    written: int | None = None
    """Events, once the lane is through with it."""
    is_dropped: bool = False


class Handed(Protocol):
    """A batch in the hands of the lane."""

    done: int
    """So many of its events were written or can't be."""


class Trips:
    """Of one route. `now` is in seconds."""

    def __init__(self) -> None:
        self.is_heard = False
        """Whether anyone asks for them; else none is noted."""
        self._out: dict[Handed, _Out] = {}
        self._back: list[Trip] = []

    def hear(self, *, on: bool) -> None:
        """Note them from now on, or no more."""
        self.is_heard = on
        if not on:
            self._out.clear()
            self._back.clear()

    def begin(self, batches: Iterable[Handed], now: float, cost: float) -> None:
        """Note batches that are handed on, each event of which costs so much."""
        if self.is_heard:
            self._out.update((batch, _Out(now, cost)) for batch in batches)

    def on_outcome(self, batch: Handed, events: int, now: float, *, is_dropped: bool) -> None:
        """Take in that so many of its events have their outcome; of others than those begun nothing is wanted."""
        out = self._out.get(batch)
        if out is not None:
            out.resolved += events
            out.is_dropped |= is_dropped
            self._end(batch, out, now)

    def settle(self, batches: Iterable[Handed], now: float) -> None:
        """Know that the lane is through with them."""
        for batch in batches if self._out else ():
            out = self._out.get(batch)
            if out is not None:
                out.written = batch.done
                self._end(batch, out, now)

    def take(self) -> tuple[Trip, ...]:
        """Return those that have come back since this was asked last."""
        back, self._back = self._back, []
        return tuple(back)

    def _end(self, batch: Handed, out: _Out, now: float) -> None:
        if out.written is None or out.resolved < out.written:
            return
        # What took no time was no trip: its events were found undeliverable before they were written.
        if out.written and now > out.since and len(self._back) < MOST:
            self._back.append(Trip(now - out.since, len(self._out), out.is_dropped, out.written * out.cost))
        del self._out[batch]
