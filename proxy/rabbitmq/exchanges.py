"""Which exchanges there are: passive declares, which need no right to configure."""

import asyncio
from collections.abc import Collection

from aiormq import Channel
from aiormq.exceptions import AMQPChannelError, ChannelNotFoundEntity
from pamqp import commands

from proxy.errors import BrokerError
from proxy.rabbitmq.login import Logins
from proxy.rabbitmq.words import cause, speaking

_SECONDS = 10.0
_PLACEHOLDER = "x"


async def missing_exchanges(logins: Logins, names: Collection[str], within: float) -> frozenset[str]:
    """Return which of these do not exist; the default exchange always does. A host lets us in `within` seconds.

    Raises `BrokerError`, `RefusedLoginError`.
    """
    missing: set[str] = set()
    host = logins.hosts().next(asyncio.get_running_loop().time())
    login = await logins.log_in_within(within, host, "redrive")
    try:
        with speaking(host):
            for name in sorted(set(names) - {""}):
                channel = await login.underlay.channel(publisher_confirms=False)
                assert isinstance(channel, Channel)
                frame = commands.Exchange.Declare(exchange=_PLACEHOLDER, passive=True)
                frame.exchange = name  # the client refuses names that RabbitMQ takes
                try:
                    await channel.rpc(frame, timeout=_SECONDS)
                except ChannelNotFoundEntity:
                    missing.add(name)
                except AMQPChannelError as error:
                    raise BrokerError(f"{host}: exchange {name!r}: {cause(error)}") from error
                else:
                    await channel.close()
    finally:
        await login.close(gracefully=True)
    return frozenset(missing)
