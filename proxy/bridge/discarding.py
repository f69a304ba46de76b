"""The way out of what is dropped, while a person lets an event type's events be dropped: unsent, in order, committed.

Neither throttle nor lane is asked, so it goes on while the broker is away.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from proxy.bridge.broker import Batch
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inbox import Inbox

SLICE_EVENTS = 1_000
"""Dropped in one step of the event loop at most: some tenths of a millisecond."""


class Discarding:
    """Drops what waits in an inbox while `is_on` says so; `on_discarded` is told before it counts as done with."""

    def __init__(
        self, inbox: Inbox, is_on: Callable[[], bool], on_discarded: Callable[[PartitionFlow, Batch], None]
    ) -> None:
        self._inbox = inbox
        self._is_on = is_on
        self._on_discarded = on_discarded
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Look again for something to drop."""
        self._news.set()

    async def run(self) -> None:
        """Drop until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            self._news.clear()
            now = clock()
            if self._is_on() and self._inbox.discard(SLICE_EVENTS, now, self._discard):
                await asyncio.sleep(0)
                continue
            pauses = [self._inbox.next_ready(now, old=old) for old in (False, True)]
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min((at for at in pauses if at is not None), default=None)):
                    await self._news.wait()

    def _discard(self, flow: PartitionFlow, batch: Batch) -> None:
        self._on_discarded(flow, batch)
        flow.be_done(batch)
