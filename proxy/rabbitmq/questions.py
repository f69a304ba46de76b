"""Passive declares over one channel, past the client: it takes 100 calls and five tasks' turns for each, 20 a second.

The frames are made here because the client refuses names that RabbitMQ takes, with a space for instance; the answers
are taken off the stream as they come (`intake`). The channel's end is the client's to see.
"""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

from aiormq import Channel
from pamqp.constants import FRAME_END_CHAR, FRAME_METHOD

from proxy.rabbitmq.login import Login

_QUEUE_DECLARE = (50, 10)
_PASSIVE = b"\x01"
_NO_ARGUMENTS = bytes(4)


class Questions:
    """Asks on a channel of its own. One `ask` at a time; one that is cancelled was the last."""

    def __init__(self, login: Login, channel: Channel) -> None:
        self._channel = channel
        self._intake = login.intake
        self._transport = login.writer.transport
        self._closing: asyncio.Future[Any] = channel.closing  # the client makes a new observer for every question
        self._closing.add_done_callback(self._on_closing)
        self._questions: dict[str, bytes] = {}
        """On the wire."""
        self._told: list[tuple[int, int]] = []
        self._wanted = 0
        self._all_told: asyncio.Future[None] | None = None
        self._intake.answer(channel.number, self._on_answer)

    @property
    def is_over(self) -> bool:
        """Whether the channel is closed."""
        return self._closing.done()

    @property
    def why(self) -> BaseException | None:
        """What the channel was closed for, as the client says; it is over."""
        return None if self._closing.cancelled() else self._closing.exception()

    async def ask(self, queues: Sequence[str]) -> list[tuple[int, int]]:
        """Return messages and consumers of each queue, in order; fewer if the channel closes, it is over then.

        Raises ConnectionError if the connection is lost, and the channel does not know yet, and if more is answered
        than was asked: which answer belongs to which question is told by their order alone.
        """
        self._check()
        told = self._told = []
        self._wanted = 0
        if queues and not self._closing.done():
            if self._transport.is_closing():
                raise ConnectionError("connection closed")
            self._wanted = len(queues)
            self._all_told = asyncio.get_running_loop().create_future()
            self._transport.write(b"".join([self._question(queue) for queue in queues]))
            await self._all_told
            self._check()
        return told

    def _check(self) -> None:
        if len(self._told) > self._wanted:
            raise ConnectionError("an answer to a question that was not asked")

    def _question(self, queue: str) -> bytes:
        question = self._questions.get(queue)
        if question is None:
            question = self._questions[queue] = passive_declare(self._channel.number, queue)
        return question

    def _on_answer(self, messages: int, consumers: int) -> None:
        self._told.append((messages, consumers))
        if len(self._told) == self._wanted:
            self._end()

    def _on_closing(self, closing: asyncio.Future[Any]) -> None:
        self._intake.end(self._channel.number)
        if not closing.cancelled():
            closing.exception()  # seen: nobody may be asking
        self._end()

    def _end(self) -> None:
        if self._all_told is not None and not self._all_told.done():
            self._all_told.set_result(None)


def passive_declare(channel: int, queue: str) -> bytes:
    """Return the frame that asks for a queue."""
    name = queue.encode()
    method = struct.pack(">HHHB", *_QUEUE_DECLARE, 0, len(name)) + name + _PASSIVE + _NO_ARGUMENTS
    return struct.pack(">BHI", FRAME_METHOD, channel, len(method)) + method + FRAME_END_CHAR
