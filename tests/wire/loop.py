"""The virtual-time loop with a network instead of sockets, and turns that take time.

**What is permuted.** asyncio promises that what is called soon is called in that order, and both asyncio's transports
and the product build on it: that order stays. Not promised is when bytes arrive and timers fire *between* the turns of
a chain of callbacks: on real machines callbacks take time. Under a plain virtual clock whole chains run in no time and
nothing ever falls in between. So here each turn takes a while, by chance, up to `turn_seconds`: arrivals and timers
fall due between any two turns of any chain, several in one turn, and timers of the same instant fire in any order.
Every order so made is one that a real machine could show.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from proxy.simulation.virtual_time import StoppableLoop
from tests.wire.network import Network

TURN_SECONDS = 2e-4
"""A turn takes so long at most; one in four takes any time at all."""
_TAKES_TIME = 0.25
_TIE = 1e-9


class WireLoop(StoppableLoop):
    """See `StoppableLoop`; all chance is drawn from `chance`."""

    def __init__(self, chance: Random, *, turn_seconds: float = TURN_SECONDS, most_turns: int | None = None) -> None:
        self._chance = chance
        self._turn_seconds = turn_seconds
        super().__init__(most_turns)
        self.network = Network(self, chance)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **more: Any) -> Any:
        """Connect over the network; without TLS."""
        if more.get("ssl"):
            raise NotImplementedError("no TLS over the network in memory")
        if more.get("sock") is not None:  # aiohttp asks for the socket first: see `chance.no_socket`
            host, port = more["sock"]
        return await self.network.connect(protocol_factory, f"{host}:{port}")

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """Listen in the network."""
        return self.network.listen(f"{host}:{port}", protocol_factory)

    def run_in_executor(self, _: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Do the work at once: threads know no virtual time, and end whenever they like."""
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 -- whoever awaits it gets it
            future.set_exception(error)
        return future

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:  # type: ignore[override]
        """See the event loop's documentation; of timers of one instant any may be the first."""
        if self._turn_seconds:
            when += self._chance.random() * _TIE
        return super().call_at(when, callback, *args, context=context)

    def _pass(self, seconds: float) -> None:
        if seconds > 0:
            self._now += seconds
        elif self._turn_seconds and self._chance.random() < _TAKES_TIME:
            self._now += self._chance.random() * self._turn_seconds
