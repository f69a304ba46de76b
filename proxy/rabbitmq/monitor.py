"""How deep the queues are: passive declares, all at once, over a connection that publishes nothing.

The broker blocks and slows only connections that publish, so this one answers while those do not.
"""

import asyncio
import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from aiormq import Channel
from aiormq.abc import ChannelFrame
from aiormq.exceptions import AMQPChannelError
from pamqp import commands
from pamqp.constants import FRAME_END_CHAR, FRAME_METHOD

from proxy.bridge.broker import QueueState
from proxy.errors import BrokerError, RefusedLoginError
from proxy.rabbitmq.login import Login, Logins, speaking

POLL_DEADLINE = 1.0
"""Seconds for one poll, connecting included."""
MISSING_INTERVAL = 1.0
"""Seconds before a queue that did not exist is asked for again: every such question costs a channel ..."""
MISSING_PER_POLL = 4
"""... and so many channels may be spent in one poll; queues known to exist are asked for first."""
_QUEUE_DECLARE = (50, 10)
_PASSIVE = b"\x01"
_NO_ARGUMENTS = bytes(4)


class RabbitMonitor:
    """See `proxy.bridge.broker.DepthMonitor`. Connects when polled; after a failed poll the next one connects anew."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._hosts = logins.hosts
        self._login: Login | None = None
        self._channel: Channel | None = None
        self._missing: dict[str, float] = {}
        self._questions: dict[str, bytes] = {}
        """On the wire, for this channel."""

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        """Ask for every queue; see `DepthMonitor.poll`."""
        now = asyncio.get_running_loop().time()
        states: dict[str, QueueState | None] = {queue: None for queue in queues if queue in self._missing}
        asked = [queue for queue in queues if queue not in states]
        asked += [queue for queue in states if self._missing[queue] <= now]
        missing = 0
        try:
            async with asyncio.timeout(POLL_DEADLINE):
                while asked and missing < MISSING_PER_POLL:
                    login = await self._connected()
                    with speaking(login.host):
                        found = await self._ask(login, asked)
                    states.update(found)
                    for queue in found:
                        self._missing.pop(queue, None)
                    if len(found) < len(asked):
                        states[asked[len(found)]] = None
                        self._missing[asked[len(found)]] = now + MISSING_INTERVAL
                        missing += 1
                    asked = asked[len(found) + 1 :]
        except TimeoutError:
            await self._end(gracefully=False)
            raise BrokerError(f"the monitor had no answer within {POLL_DEADLINE:g} s") from None
        except RefusedLoginError as error:
            raise BrokerError(str(error)) from error
        except BaseException:
            await self._end(gracefully=False)
            raise
        return {queue: states[queue] for queue in queues if queue in states}

    async def close(self) -> None:
        """Close the connection."""
        await self._end(gracefully=True)

    async def _end(self, *, gracefully: bool) -> None:
        login, self._login, self._channel = self._login, None, None
        if login is not None:
            await login.close(gracefully=gracefully)

    async def _connected(self) -> Login:
        if self._login is None or self._login.underlay.is_closed:
            await self._end(gracefully=False)
            self._login = await self._logins.log_in(next(self._hosts), "monitor")
        return self._login

    async def _ask(self, login: Login, queues: Sequence[str]) -> dict[str, QueueState]:
        """Return the states of the queues before the first that does not exist, which closes the channel."""
        if self._channel is None or self._channel.is_closed:
            opened = await login.underlay.channel(publisher_confirms=False, frame_buffer_size=0)
            assert isinstance(opened, Channel)
            self._channel = opened
            self._questions.clear()
        channel = self._channel
        closing = channel.closing
        questions = b"".join(self._question(channel.number, queue) for queue in queues)
        await channel.write_queue.put(ChannelFrame(payload=questions, should_close=False))
        states: dict[str, QueueState] = {}
        for queue in queues:
            answer = await _first(channel.rpc_frames, closing)
            if answer is None:
                self._channel = None
                if not isinstance(closing.exception(), AMQPChannelError):
                    raise BrokerError(f"{login.host}: the monitor's connection was lost")
                break
            states[queue] = QueueState(answer.message_count or 0, answer.consumer_count or 0)
        return states

    def _question(self, channel: int, queue: str) -> bytes:
        question = self._questions.get(queue)
        if question is None:
            question = self._questions[queue] = _passive_declare(channel, queue)
        return question


def _passive_declare(channel: int, queue: str) -> bytes:
    """Return the frame; made here because the client refuses names that RabbitMQ takes, with a space for instance."""
    name = queue.encode()
    method = struct.pack(">HHHB", *_QUEUE_DECLARE, 0, len(name)) + name + _PASSIVE + _NO_ARGUMENTS
    return struct.pack(">BHI", FRAME_METHOD, channel, len(method)) + method + FRAME_END_CHAR


async def _first(
    answers: "asyncio.Queue[commands.Queue.DeclareOk]", closing: "asyncio.Future[Any]"
) -> commands.Queue.DeclareOk | None:
    """Return the next answer, None if the channel closes first."""
    if answers.empty() and not closing.done():
        waiting: asyncio.Future[Any] = asyncio.ensure_future(answers.get())
        try:
            await asyncio.wait({waiting, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not waiting.done():
                waiting.cancel()
        if not waiting.cancelled() and waiting.done():
            return cast("commands.Queue.DeclareOk", waiting.result())
    return answers.get_nowait() if not answers.empty() else None
