"""A wait that ends when somebody rings, or in time.

An `asyncio.Event` under `asyncio.timeout` takes a dozen calls, and an exception for each wait that ends in time;
this is for waits that end so many times a second.
"""

import asyncio


class Alarm:
    """For one who waits; whoever rings while nobody waits ends the next wait at once."""

    def __init__(self) -> None:
        self._has_rung = False
        self._waits: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """End the wait under way, or the next one."""
        self._has_rung = True
        self._end()

    async def until(self, due: float) -> None:
        """Wait until it rings, until `due` by the loop's clock at most; what rang by then is forgotten."""
        if not self._has_rung:
            loop = asyncio.get_running_loop()
            self._waits = loop.create_future()
            timer = loop.call_at(due, self._end)
            try:
                await self._waits
            finally:
                self._waits = None
                timer.cancel()
        self._has_rung = False

    def _end(self) -> None:
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)
