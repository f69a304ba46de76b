"""Where queues are, one question for each that is not there: the answer closes the channel, and is a line in a log."""

import asyncio
from collections.abc import Mapping, Sequence

from proxy.bridge.broker import Finding, Found
from proxy.errors import BrokerError
from proxy.rabbitmq.host_turn import HostTurn
from proxy.rabbitmq.inquiry import Inquiry, is_absent
from proxy.rabbitmq.login import Logins

DEADLINE = 1.0
"""Seconds for the first answer, connecting included."""
ENOUGH = 0.5
"""Seconds after which no further question is asked."""
AT_ONCE = 16
"""Questions on one channel: with the first that is refused the others have to be asked again."""
_AWAY = "NOT_FOUND - "
"""How RabbitMQ begins to speak of a queue that it knows and can't reach: its node is down, or it has crashed."""


class RabbitFinder:
    """See `proxy.bridge.broker.QueueFinder`."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._inquiries: dict[str, Inquiry] = {}
        """By host: nodes that don't see each other say different things of a queue."""

    async def find(self, queues: Sequence[str], host: str) -> Mapping[str, Finding]:
        """See `QueueFinder.find`; one question to a host at a time."""
        inquiry = self._inquiries.get(host)
        if inquiry is None:
            inquiry = self._inquiries[host] = Inquiry(self._logins, "finder", HostTurn([host], self._logins.doubted))
        clock = asyncio.get_running_loop().time
        until = clock() + ENOUGH
        found: dict[str, Finding] = {}
        left = list(queues)
        try:
            async with inquiry.answering(DEADLINE):
                while left and (not found or clock() < until):
                    asked, rest = left[:AT_ONCE], left[AT_ONCE:]
                    told, said = await inquiry.ask(asked)
                    found.update(dict.fromkeys(asked[: len(told)], Finding(Found.THERE)))
                    if len(told) < len(asked):
                        found[asked[len(told)]] = _finding(said)
                    left = asked[len(told) + 1 :] + rest
        except BrokerError:
            if not found:
                raise
        return found

    async def close(self) -> None:
        """See `QueueFinder.close`."""
        inquiries, self._inquiries = self._inquiries, {}
        for inquiry in inquiries.values():
            await inquiry.end(gracefully=True)


def _finding(said: str) -> Finding:
    if said.startswith(_AWAY) and not is_absent(said):
        return Finding(Found.AWAY, said)
    return Finding(Found.GONE)
