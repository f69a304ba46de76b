"""The host at which a lane belongs, and how it gets back there: else whatever spreads lanes over hosts would not last.

A lane that lost its host stays with another. When the first one takes connections again, one is opened beside the one
in use; then nothing new is written until nothing is in flight, and the lane goes on over the new one. So no event is
ever open on both, and order stays what it is.
"""

import asyncio
from collections.abc import Awaitable, Callable

from proxy.bridge.alarm import Alarm
from proxy.errors import BrokerError, RefusedLoginError
from proxy.publish_lane.session import Session
from proxy.publish_lane.wire import Wire

INTERVAL = 60.0
"""Seconds between two attempts to connect with the home host, while connected with another."""
HOLD_SECONDS = 1.0
"""... and for which nothing new is written then, until nothing is in flight; if something still is, the lane stays."""

Opened = tuple[Session, Wire]
"""A connection that may be used."""


class Home:
    """Makes the way back of one lane; `open_at` connects with a host and raises `BrokerError` or TimeoutError."""

    def __init__(self, host: str, open_at: Callable[[str], Awaitable[Opened]]) -> None:
        self.host = host
        """As `Wire.host` says it."""
        self.emptied = asyncio.Event()
        """To be set whenever nothing is in flight in a session that holds."""
        self._open_at = open_at
        self._opened: Opened | None = None

    @property
    def calls(self) -> bool:
        """Whether a connection waits to be taken, and nothing is in flight in the one in use."""
        return self._opened is not None

    def take(self) -> Opened | None:
        """Hand over the connection that waits; it is the caller's to close."""
        opened, self._opened = self._opened, None
        return opened

    async def seek(self, session: Session, wake: Alarm) -> None:
        """Wake the lane once it can be taken home from this session; until then try again and again."""
        while self._opened is None:
            await asyncio.sleep(INTERVAL)
            try:
                opened = await self._open_at(self.host)
            except (BrokerError, RefusedLoginError, TimeoutError):
                continue  # another time; the present host does as well
            try:
                async with asyncio.timeout(HOLD_SECONDS):
                    await self._hold(session)
                if not opened[0].over:
                    self._opened = opened
                    wake.ring()
            except TimeoutError:
                pass
            finally:
                if self._opened is None:
                    session.holds = False
                    await opened[1].close(gracefully=True)

    async def _hold(self, session: Session) -> None:
        """Return once nothing is in flight; until then, and afterwards, nothing new is written."""
        session.holds = True
        while not session.is_empty:
            self.emptied.clear()
            await self.emptied.wait()
