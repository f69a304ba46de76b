"""What a session writes: a channel's state, and messages gathered into one piece."""

from collections import deque
from dataclasses import dataclass, field
from sys import maxsize

from proxy.bridge.broker import Batch
from proxy.model import Partition
from proxy.publish_lane.envelope import Envelope
from proxy.publish_lane.frames import PIECE_BYTES, Long, cut, without_channel
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

    def envelope(self, batch: Batch, frame_max: int, limits: Limits) -> Envelope:
        """Return what the batch's messages share on this channel."""
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

    def __bool__(self) -> bool:
        """Return whether something waits."""
        return bool(self._pieces) or self._long is not None

    def has_next(self, written: int) -> bool:
        """Return whether something may be written in a turn that has written so many bytes: the first always may."""
        if self._pieces:
            return not written or written + len(self._pieces[0][0]) <= PIECE_BYTES
        return self._long is not None and written + PIECE_BYTES <= _LONG_TURN_BYTES

    def put(self, piece: Piece) -> None:
        """Have a piece wait behind what does; one that is too long is cut."""
        frames, sent = b"".join(piece.parts), piece.sent
        if len(frames) <= PIECE_BYTES:
            self._pieces.append((frames, sent))
        else:
            first, *rest = cut(frames, PIECE_BYTES)
            self._pieces += [(first, sent), *((part, []) for part in rest)]
        self._long = piece.long

    def take(self) -> tuple[bytes, list[Sent]]:
        """Return what is to be written next; something waits."""
        if self._pieces:
            return self._pieces.popleft()
        assert self._long is not None
        frames = self._long.next()
        if not self._long.rest:
            self._long = None
        return frames, []

    def forget(self, channel: int) -> None:
        """Leave out what belongs to a channel that is closed: the rest of a message there would end the connection."""
        kept = ((without_channel(piece, channel), sent) for piece, sent in self._pieces)
        self._pieces = deque((piece, sent) for piece, sent in kept if piece)
        if self._long is not None and self._long.channel == channel:
            self._long = None

    def clear(self) -> None:
        """Leave out everything."""
        self._pieces.clear()
        self._long = None
