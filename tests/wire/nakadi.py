"""A scripted Nakadi in the network in memory: the face that is served on sockets elsewhere, at an address of its own.

aiohttp's server is a protocol like any other and needs no socket; nothing of HTTP is written anew here.
"""

import asyncio
from random import Random
from typing import Any

from aiohttp import web

from tests.nakadi.bus import Bus
from tests.nakadi.face import Face
from tests.nakadi.mischief import Mischief
from tests.nakadi.streaming import Manners
from tests.wire.chance import EPOCH
from tests.wire.loop import WireLoop

HOST, PORT = "10.0.0.1", 80
"""A number, or the client would look for a name's."""
AT = f"{HOST}:{PORT}"
URL = f"http://{HOST}"


class NakadiPeer:
    """Made inside a `WireLoop`; `start` it and `close` it."""

    def __init__(self, chance: Random, manners: Manners | None = None) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WireLoop)
        self.loop = loop
        self.bus = Bus(chance)
        self.mischief = Mischief(chance)
        self._face = Face(self.bus, self.wall, self.mischief, manners)
        self._runner: web.AppRunner | None = None
        self._listener: Any = None

    def wall(self) -> float:
        """Return the wall time, in seconds since 1970."""
        return EPOCH + self.loop.time()

    async def start(self) -> None:
        """Take connections; events and subscriptions that there were are there. Idempotent."""
        if self._runner is not None:
            return
        self._runner = web.AppRunner(
            self._face.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1
        )
        await self._runner.setup()
        self._listener = await self.loop.create_server(self._runner.server, HOST, PORT)

    async def close(self) -> None:
        """Take none any more, and end those that there are."""
        if self._runner is not None:
            self._listener.close()
            await self._runner.cleanup()
            self._runner = None
