"""What a session writes: a channel's state, and messages gathered into one piece."""

from dataclasses import dataclass, field
from sys import maxsize

from proxy.bridge.broker import Batch
from proxy.model import Partition
from proxy.publish_lane.envelope import Envelope
from proxy.publish_lane.frames import PIECE_BYTES
from proxy.publish_lane.ledger import Ledger
from proxy.publish_lane.wire import Sent
from proxy.settings import Limits

UNPROVEN_EVENTS = 16
"""Events that may be open on a channel before its first confirm: what giving up a mute one costs as duplicates."""
_ENVELOPES = 4_096
"""Envelopes kept per channel; beyond it they are made anew."""
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

    def has_room(self, size: int) -> bool:
        """Return whether an event of `size` bytes may come along; the first always may."""
        return not self.size or self.size + size + _PER_MESSAGE <= PIECE_BYTES
