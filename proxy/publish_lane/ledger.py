"""Which delivery tags of one channel are open, and what a confirm says of them.

Pure: handed `now`. The broker counts the messages of a channel from 1 and confirms them singly or "up to and
including"; the ledger turns that into ranges of the batches they came from.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from proxy.bridge.broker import Batch
from proxy.model import Event, Outcome, Reason
from proxy.publish_lane.message_ids import message_id
from proxy.publish_lane.outcomes import Resolved


@dataclass(slots=True)
class Slice:
    """Consecutive events of one batch, written together; `first_tag` is that of `batch.events[start]`."""

    batch: Batch
    start: int
    end: int
    first_tag: int
    written: float
    """Instant of the write, seconds of the loop's clock."""
    end_byte: int = 0
    """Of what is written to its connection, where it ends at the latest."""

    @property
    def events(self) -> Iterator[Event]:
        """The events, in order."""
        return iter(self.batch.events[self.start : self.end])


_first_tag = attrgetter("first_tag")


@dataclass(slots=True)
class Ledger:
    """The open tags of one channel, as slices in the order of their tags."""

    next_tag: int = 1
    """What the broker will call the next message."""
    count: int = 0
    """Open events."""
    _open: list[Slice] = field(default_factory=list)
    _returned: dict[int, str] = field(default_factory=dict)
    """Open tags whose message came back, and why."""
    _looked: int = 0
    """Up to this tag it is known whose messages came back: the broker returns in the order of publishing."""

    def __iter__(self) -> Iterator[Slice]:
        """Yield the open slices, the oldest first."""
        return iter(self._open)

    @property
    def oldest(self) -> Slice | None:
        """The slice written first of those open; None if none is."""
        return self._open[0] if self._open else None

    def add(self, batch: Batch, start: int, end: int, *, now: float) -> Slice:
        """Open the next `end - start` tags for these events, written at `now`."""
        piece = Slice(batch, start, end, self.next_tag, now)
        self._open.append(piece)
        self.next_tag += end - start
        self.count += end - start
        return piece

    def confirm(self, tag: int, *, multiple: bool, acked: bool, now: float) -> list[Resolved]:
        """Resolve `tag` by an ack or else a nack; with `multiple` every open tag up to it, all if it is 0.

        Tags that are not open are passed over.
        """
        first, last = tag, tag
        if multiple:
            first, last = 0, tag or self.next_tag - 1
        return self._resolve(self._take(first, last), acked=acked, now=now)

    def on_return(self, returned: bytes, why: str) -> bool:
        """Mark the open message of that id as come back, its confirm follows; return whether there is one.

        Of two with the same id the earlier is meant, for the broker returns in the order of publishing; unless the
        earlier one only waits for its confirm, see `_resolve`. In that order no message is looked at twice.
        """
        tag = self._find(returned, self._looked + 1) or self._find(returned, 1)
        if tag is not None:
            self._looked = max(self._looked, tag)
            self._returned[tag] = why
        return tag is not None

    def _find(self, wanted: bytes, first: int) -> int | None:
        """Return the open tag from `first` on, not known to have come back, whose message has that id."""
        begin = max(bisect_right(self._open, first, key=_first_tag) - 1, 0)
        for place in range(begin, len(self._open)):
            piece = self._open[place]
            shift = piece.start - piece.first_tag
            for tag in range(max(first, piece.first_tag), piece.end - shift):
                event = piece.batch.events[tag + shift]
                if (
                    tag not in self._returned
                    and message_id(piece.batch.address, piece.batch.partition, event) == wanted
                ):
                    return tag
        return None

    def abandon(self, outcome: Outcome, reason: Reason | None = None, detail: str = "") -> list[Resolved]:
        """Resolve everything open in one way, without a time; nothing is left open."""
        resolved = [Resolved(one.batch, one.start, one.end, outcome, None, reason, detail) for one in self._open]
        self._open.clear()
        self._returned.clear()
        self.count = 0
        return resolved

    def _take(self, first: int, last: int) -> list[Slice]:
        """Remove the open tags from `first` to `last`; return them as slices."""
        taken: list[Slice] = []
        index = max(bisect_right(self._open, first, key=_first_tag) - 1, 0)
        while index < len(self._open) and self._open[index].first_tag <= last:
            piece = self._open[index]
            shift = piece.start - piece.first_tag
            after = piece.end - shift
            low, high = max(first, piece.first_tag), min(last + 1, after)
            if low >= high:
                index += 1
                continue
            rest: list[Slice] = []
            if piece.first_tag < low:
                rest.append(
                    Slice(piece.batch, piece.start, low + shift, piece.first_tag, piece.written, piece.end_byte)
                )
            if high < after:
                rest.append(Slice(piece.batch, high + shift, piece.end, high, piece.written, piece.end_byte))
            self._open[index : index + 1] = rest
            index += len(rest)
            taken.append(Slice(piece.batch, low + shift, high + shift, low, piece.written, piece.end_byte))
            self.count -= high - low
        return taken

    def _resolve(self, taken: list[Slice], *, acked: bool, now: float) -> list[Resolved]:
        outcome = Outcome.CONFIRMED if acked else Outcome.NACKED
        resolved: list[Resolved] = []
        for piece in taken:
            begin = piece.start
            seconds = now - piece.written
            for index in range(piece.start, piece.end) if self._returned else ():
                tag = piece.first_tag + index - piece.start
                why = self._returned.pop(tag, None)
                if why is None:
                    continue
                if not acked:
                    # What came back is acked. So it was a later one of the same id, sent in another epoch.
                    later = self._find(
                        message_id(piece.batch.address, piece.batch.partition, piece.batch.events[index]), tag + 1
                    )
                    if later is not None:
                        self._returned[later] = why
                        self._looked = max(self._looked, later)
                    continue
                if begin < index:
                    resolved.append(Resolved(piece.batch, begin, index, outcome, seconds))
                unroutable = Resolved(piece.batch, index, index + 1, Outcome.UNDELIVERABLE, seconds)
                unroutable.reason, unroutable.detail = Reason.UNROUTABLE, why
                resolved.append(unroutable)
                begin = index + 1
            if begin < piece.end:
                resolved.append(Resolved(piece.batch, begin, piece.end, outcome, seconds))
        return resolved
