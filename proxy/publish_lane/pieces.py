"""What a session writes: a channel's state, and messages gathered into one piece."""

from dataclasses import dataclass, field

from proxy.model import Partition
from proxy.publish_lane.frames import PIECE_BYTES, Envelope
from proxy.publish_lane.ledger import Ledger
from proxy.publish_lane.wire import Sent

_PER_MESSAGE = 512
"""Guess at what a message takes beside the event's own bytes; a longer piece is cut."""


@dataclass(slots=True)
class Channel:
    """One channel that is written to: its open tags, and what its messages share."""

    number: int
    ledger: Ledger = field(default_factory=Ledger)
    envelopes: dict[tuple[int, Partition], Envelope] = field(default_factory=dict)


@dataclass(slots=True)
class Piece:
    """Whole messages that are handed over together."""

    parts: list[bytes] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    size: int = 0

    def has_room(self, size: int) -> bool:
        """Return whether an event of `size` bytes may come along; the first always may."""
        return not self.size or self.size + size + _PER_MESSAGE <= PIECE_BYTES
