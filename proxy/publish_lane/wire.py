"""What a lane asks of one connection, and what it is told; `connection` answers for RabbitMQ.

The simulation answers in memory, so that the same lane runs there.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from proxy.publish_lane.ledger import Slice


class WireEvents(Protocol):
    """What comes back over a wire; plain calls from the event loop, none of which raises."""

    def on_written(self) -> None:
        """Be told that the piece handed over last has left; the next may follow."""
        ...

    def on_confirm(self, channel: int, tag: int, *, multiple: bool, acked: bool) -> None:
        """Be told that the broker took over, or refused for now, one message or all up to it."""
        ...

    def on_return(self, channel: int, message_id: bytes, why: str) -> None:
        """Be told that no queue took the message; its confirm follows."""
        ...

    def on_channel_closed(self, channel: int, why: str) -> asyncio.Future[None] | None:
        """Be told that the broker closed the channel over what was written to it; no message may be begun there.

        Returns what is done once a message that had begun there has been handed over; None if there is none. The
        broker may be answered then.
        """
        ...

    def on_lost(self, why: str, *, refused: bool, failed: bool = False) -> None:
        """Be told that the connection is gone; `refused` if the broker closed it over something written to it.

        `failed`: it closed it over an error of its own, perhaps in dealing with something written to it.
        """
        ...


@dataclass(slots=True)
class Sent:
    """Messages inside a piece, for wires that carry events instead of bytes."""

    channel: int
    events: Slice


class Wire(Protocol):
    """One open, logged-in connection."""

    @property
    def host(self) -> str:
        """Which broker it leads to, `host:port`."""
        ...

    @property
    def frame_max(self) -> int:
        """The longest frame, in bytes; 0 if the broker sets no bound."""
        ...

    @property
    def heartbeat(self) -> float:
        """Seconds within which the broker says something, whatever happens; 0 if it need not."""
        ...

    @property
    def heard(self) -> float:
        """Instant at which something last came, in seconds of the loop's clock."""
        ...

    @property
    def unsent(self) -> int:
        """Bytes handed over that the broker's host has not acknowledged, as far as that can be known."""
        ...

    def is_blocked(self) -> bool:
        """Return whether the broker takes nothing over this connection now (memory or disk alarm)."""
        ...

    async def open_channel(self) -> int:
        """Open a channel with confirms; return its number, not one used lately. Raises `BrokerError`."""
        ...

    async def close_channel(self, number: int) -> None:
        """Close a channel on which nothing is open; one that is gone is passed over. Raises `BrokerError`."""
        ...

    @property
    def writable(self) -> bool:
        """Whether a piece can be handed over now."""
        ...

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:
        """Hand over whole frames, while `writable`; return whether they have left.

        If not, `WireEvents.on_written` follows when they have.
        """
        ...

    async def close(self, *, gracefully: bool) -> None:
        """Close the connection; bounded, idempotent, raises nothing. No event comes after it is called."""
        ...


class Connector(Protocol):
    """Makes wires."""

    @property
    def home(self) -> str:
        """Which broker the lane should be connected with, as `Wire.host` names it: so lanes are spread over hosts."""
        ...

    async def connect(self, events: WireEvents, host: str | None = None) -> Wire:
        """Try that host once, or the next one: first home, then the others in turn.

        Raises `RefusedLoginError` if it refuses the credentials, `BrokerError` naming host and cause otherwise.
        """
        ...

    def silence(self, seconds: float) -> str:
        """Return what to say of whom `connect` tried last, if that gave no answer for so long."""
        ...

    def doubt(self, host: str) -> None:
        """Know that it kept a lane waiting, by silence or without a confirm: others are better for a while."""
        ...

    def trust(self, host: str) -> None:
        """Know that it confirms."""
        ...
