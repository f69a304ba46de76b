"""Where queues are, asked of the nodes that lanes are connected with, and which of these are silent."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import structlog

from proxy.bridge.broker import Finding, QueueFinder
from proxy.bridge.returned import Place
from proxy.errors import BrokerError

PATIENCE = 30.0
"""Seconds of silence after which what came back has no queue, as the broker said."""
SAID_AFTER = 2.0
"""Seconds of silence after which it is said."""

_say = structlog.get_logger("tidegate.returns")


class Inquiries:
    """Asks through a `finder`, all hosts at once."""

    def __init__(self, finder: QueueFinder) -> None:
        self._finder = finder
        self._silent: dict[str, float] = {}
        """Hosts that have not answered, and since when."""
        self._said: set[str] = set()
        """... of which that was said."""

    async def ask(self, places: Collection[Place]) -> Mapping[Place, Finding]:
        """Return what is known; left out is what could not be asked, as of lanes that are not connected."""
        by_host: dict[str, list[Place]] = defaultdict(list)
        for place in places:
            if host := place.lane.host:
                by_host[host].append(place)
        found = await asyncio.gather(*[self._ask(host, some) for host, some in by_host.items()])
        return {place: finding for some in found for place, finding in some.items()}

    def is_silent(self, host: str, *, since: float, now: float) -> bool:
        """Return whether a host has not answered for so long, from an instant on, that nothing is waited for."""
        silent = self._silent.get(host)
        return silent is not None and now - max(silent, since) >= PATIENCE

    def answers(self, host: str) -> bool:
        """Return whether a host has answered the last question."""
        return host not in self._silent

    async def close(self) -> None:
        """Close the connections."""
        await self._finder.close()

    async def _ask(self, host: str, places: Sequence[Place]) -> Mapping[Place, Finding]:
        by_queue: dict[str, list[Place]] = defaultdict(list)
        for place in places:
            by_queue[place.queue].append(place)  # lanes of several routes may have the same host
        try:
            known = await self._finder.find(list(by_queue), host)
        except BrokerError as error:
            self._on_silence(host, str(error), asyncio.get_running_loop().time())
            return {}
        self._silent.pop(host, None)
        if host in self._said:
            self._said.discard(host)
            _say.info("finder_sees_again", host=host)
        return {place: finding for queue, finding in known.items() for place in by_queue[queue]}

    def _on_silence(self, host: str, why: str, now: float) -> None:
        """Say it once, and not at once: a host that has gone down is followed by another."""
        since = self._silent.setdefault(host, now)
        if now - since >= SAID_AFTER and host not in self._said:
            self._said.add(host)
            effect = f"events that came back wait to be asked for; after {PATIENCE:g} s of silence they are unroutable"
            _say.warning("finder_blind", host=host, why=why, effect=effect)
