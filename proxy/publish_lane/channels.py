"""The channels of one connection: one for all, one for who is in quarantine.

They are opened when they are wanted and missing, and opened anew when the broker goes on refusing (see `refusals`):
then nothing is written until all that is open has its outcome, so that no order changes and nothing becomes unknown.
"""

import asyncio
from collections.abc import Callable, Iterator
from operator import attrgetter
from sys import maxsize

from proxy.publish_lane.ledger import Slice
from proxy.publish_lane.patience import Patience
from proxy.publish_lane.pieces import Channel
from proxy.publish_lane.quarantine import longest_body
from proxy.publish_lane.refusals import Refusals
from proxy.publish_lane.wire import Wire


class Channels:
    """What is open; `opened` is called when that has changed.

    `deadline` is how long closing and opening may take, in seconds.
    """

    def __init__(self, patience: Patience, refusals: Refusals, *, deadline: float, opened: Callable[[], None]) -> None:
        self.body_bytes = maxsize
        """The longest body that the broker takes, as far as it has told."""
        self._patience = patience
        self._refusals = refusals
        self._deadline = deadline
        self._opened = opened
        self._now = asyncio.get_running_loop().time
        self._main: Channel | None = None
        self._second: Channel | None = None
        self._left: list[int] = []
        """Channels with nothing open that are to be closed."""
        self._wants_second = False
        self._closed = self._closed_before = 0
        """How many channels the broker has closed, and how many of them before one was opened that is open by now."""
        self._wanted = asyncio.Event()
        self._waiting_since: float | None = None

    @property
    def main(self) -> Channel | None:
        """The channel for all; None while nothing may be written to it."""
        return self._main if self._waiting_since is None else None

    @property
    def second(self) -> Channel | None:
        """The channel for who is in quarantine; None while nothing may be written to it."""
        return self._second if self._waiting_since is None else None

    @property
    def waiting_since(self) -> float | None:
        """Since when nothing is written, so that channels can be opened anew; None if they need not."""
        return self._waiting_since

    @property
    def may_be_blamed(self) -> bool:
        """Whether the broker, if it ends the connection, may mean a channel that it has closed.

        Once it has opened another one it is through with those before.
        """
        return self._closed > self._closed_before

    def __iter__(self) -> Iterator[Channel]:
        """Yield those that are open."""
        return (channel for channel in (self._main, self._second) if channel is not None)

    @property
    def oldest(self) -> Slice | None:
        """What was written first of all that is open; None if nothing is."""
        return min([one.ledger.oldest for one in self if one.ledger.oldest], key=attrgetter("written"), default=None)

    def known(self, number: int) -> Channel | None:
        """Return the channel of that number; None if it is gone."""
        for channel in (self._main, self._second):
            if channel is not None and channel.number == number:
                return channel
        return None

    def learn(self, why: str) -> bool:
        """Learn why a channel was closed; return whether it tells how long a body may be, and that was not known.

        What is longer is found before it is written from then on.
        """
        most = longest_body(why)
        if most is None or most >= self.body_bytes:
            return False
        self.body_bytes = most
        for channel in self:
            channel.envelopes.clear()
        return True

    def drop(self, channel: Channel) -> None:
        """Do without a channel that the broker has closed; the main one is opened again."""
        if channel is self._main:
            self._main = None
        else:
            self._second = None
        self._closed += 1
        self._wanted.set()

    def want_second(self) -> None:
        """Have the channel for who is in quarantine opened; while others are waited for that comes after."""
        if self._waiting_since is None:
            self._wants_second = True
            self._wanted.set()

    async def begin(self, wire: Wire) -> None:
        """Open the main channel of a new connection. Raises `BrokerError`."""
        self._main = await self._open(wire)

    def look(self, now: float) -> float | None:
        """Have channels opened anew if it is time; return for how many seconds the broker has refused if it is now."""
        told = None
        if self._waiting_since is None and self._refusals.are_due(now):
            told = self._refusals.begin_anew()
            self._waiting_since = now
        if self._waiting_since is not None and not any(channel.ledger.count for channel in self):
            self._left += [channel.number for channel in self]
            self._wants_second |= self._second is not None
            self._main = self._second = self._waiting_since = None
            self._wanted.set()
        return told

    async def keep(self, wire: Wire) -> None:
        """Open what is missing, whenever something is. Raises `BrokerError` or `TimeoutError`."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            async with asyncio.timeout(self._deadline):
                while self._left:
                    await wire.close_channel(self._left.pop())
                if self._main is None:
                    await self.begin(wire)
                    self._patience.open(self._now())
                if self._second is None and self._wants_second:
                    self._wants_second = False
                    self._second = await self._open(wire)
            self._opened()

    async def _open(self, wire: Wire) -> Channel:
        closed = self._closed
        channel = Channel(await wire.open_channel())
        self._closed_before = closed
        return channel
