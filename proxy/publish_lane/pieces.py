"""What a session writes: a channel's state, and messages gathered into one piece."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from sys import maxsize

from proxy.bridge.broker import Batch
from proxy.model import Partition
from proxy.publish_lane.envelope import Envelope
from proxy.publish_lane.frames import METHOD, PIECE_BYTES, Long, cut, each
from proxy.publish_lane.ledger import Ledger
from proxy.publish_lane.wire import Sent
from proxy.settings import Limits

UNPROVEN_EVENTS = 16
"""Events that may be open on a channel before its first confirm: what giving up a mute one costs as duplicates."""
_ENVELOPES = 4_096
"""Envelopes kept per channel; beyond it they are made anew."""
_LONG_TURN_BYTES = 4 * PIECE_BYTES
"""So much of a long message is handed over in one turn; nothing else may be begun before its end anyway."""
_PER_MESSAGE = 512
"""Guess at what a message takes beside the event's own bytes; a longer piece is cut."""


@dataclass(slots=True)
class Channel:
    """One channel that is written to: its open tags, and what its messages share."""

    number: int
    ledger: Ledger = field(default_factory=Ledger)
    envelopes: dict[tuple[int, Partition], Envelope] = field(default_factory=dict)
    is_proven: bool = False
    """Whether an ack has come on it: until then few events are risked there."""

    @property
    def room(self) -> int:
        """Events that may be written, for all that the channel knows."""
        return maxsize if self.is_proven else max(0, UNPROVEN_EVENTS - self.ledger.count)

    def envelope(self, batch: Batch, frame_max: int, limits: Limits, body_bytes: int) -> Envelope:
        """Return what the batch's messages share on this channel; `body_bytes` as of `Envelope`, the same always."""
        # By identity: hashing an address costs more than encoding an event. The envelope keeps it alive.
        key = (id(batch.address), batch.partition)
        envelope = self.envelopes.get(key)
        if envelope is None:
            envelope = Envelope(
                batch.address,
                batch.partition,
                channel=self.number,
                frame_max=frame_max,
                event_bytes=limits.event_bytes,
                headers=limits.headers,
                body_bytes=body_bytes,
            )
            if len(self.envelopes) >= _ENVELOPES:
                self.envelopes.clear()
            if not batch.address.lenient:  # a dead letter's address is its own, and never comes again
                self.envelopes[key] = envelope
        return envelope


@dataclass(slots=True)
class Piece:
    """Whole messages that are handed over together."""

    parts: list[bytes] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    size: int = 0
    long: Long | None = None
    """The last message, if its body goes on after what is in `parts`."""

    def has_room(self, size: int) -> bool:
        """Return whether an event of `size` bytes may come along; the first always may, none after a long one."""
        return not self.size or (self.long is None and self.size + size + _PER_MESSAGE <= PIECE_BYTES)


class Outbox:
    """What is gathered and waits to be written, in order; the body of a long message is made into frames as it goes."""

    def __init__(self) -> None:
        self._pieces: deque[tuple[bytes, list[Sent]]] = deque()
        """Each with the events that begin in it."""
        self._long: Long | None = None
        """Follows after all pieces; nothing may be put while it is there."""
        self._rests: list[asyncio.Future[None]] = []
        """Each done once nothing waits any more."""

    def __bool__(self) -> bool:
        """Return whether something waits."""
        return bool(self._pieces) or self._long is not None

    def has_next(self, written: int) -> bool:
        """Return whether something may be written in a turn that has written so many bytes: the first always may."""
        if self._pieces:
            return not written or written + len(self._pieces[0][0]) <= PIECE_BYTES
        return self._long is not None and written + PIECE_BYTES <= _LONG_TURN_BYTES

    def put(self, piece: Piece, handed: int) -> None:
        """Have a piece wait, one that is too long cut; nothing else waits, and `handed` bytes were written before."""
        frames, sent = b"".join(piece.parts), piece.sent
        for one in sent:
            one.events.end_byte = handed + len(frames) + (len(piece.long.rest) if piece.long is not None else 0)
        if len(frames) <= PIECE_BYTES:
            self._pieces.append((frames, sent))
        else:
            first, *rest = cut(frames, PIECE_BYTES)
            self._pieces += [(first, sent), *((part, []) for part in rest)]
        self._long = piece.long

    def take(self) -> tuple[bytes, list[Sent]]:
        """Return what is to be written next; something waits."""
        if self._pieces:
            frames, sent = self._pieces.popleft()
        else:
            assert self._long is not None
            frames, sent = self._long.next(), []
            if not self._long.rest:
                self._long = None
        if self._rests and not self:
            self._end_rests()
        return frames, sent

    def forget(self, channel: int) -> asyncio.Future[None] | None:
        """Leave out what has not begun on a channel that is closed.

        Returns what is done when a message that had begun there is taken, or nothing waits; None if none had. Between
        its frames a broker takes no answer to its close: RabbitMQ would end the connection.
        """
        is_begun_anew = is_left = False
        pieces, self._pieces = self._pieces, deque()
        for piece, sent in pieces:
            kept: list[bytes] = []
            for kind, number, frame in each(piece):
                if number == channel:
                    is_begun_anew |= kind == METHOD
                    is_left |= not is_begun_anew
                if number != channel or not is_begun_anew:
                    kept.append(frame)
            if kept:
                self._pieces.append((b"".join(kept), sent))
        if self._long is not None and self._long.channel == channel:
            if is_begun_anew:
                self._long = None
            is_left |= not is_begun_anew
        if not is_left:
            return None
        self._rests.append(rest := asyncio.get_running_loop().create_future())
        return rest

    def clear(self) -> None:
        """Leave out everything."""
        self._pieces.clear()
        self._long = None
        self._end_rests()

    def _end_rests(self) -> None:
        """Tell it: whoever waits goes on in another turn of the loop, when the last frames are handed over."""
        for rest in self._rests:
            if not rest.done():
                rest.set_result(None)
        self._rests.clear()
