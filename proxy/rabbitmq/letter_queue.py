"""A queue of dead letters on RabbitMQ: one consumer at a time takes them, over a connection that publishes nothing.

What is out with us is bounded by the prefetch of a consumer, and only letters that will be acknowledged may fill it:
when those that stay have used up half of it, another consumer takes over and this one is cancelled. Letters that were
taken and not acknowledged come back to their place when the channel closes, whatever closes it.
"""

import asyncio
import contextlib
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiormq
from aiormq.abc import ChannelFrame, DeliveredMessage
from aiormq.exceptions import AMQPError
from pamqp import commands
from pamqp.constants import FRAME_END_CHAR, FRAME_METHOD

from proxy.bridge.letter_queue import TakenLetter
from proxy.errors import BrokerError
from proxy.publish_lane.letters import IllegibleError, read_letter
from proxy.rabbitmq.login import Login, Logins
from proxy.rabbitmq.words import cause, speaking

FIRST_PREFETCH = 64
"""Letters out with us before it is known how long they are: by default 64 MiB of the longest."""
MOST_OUT = 1_000
"""Letters out with us that may still be acknowledged: what a kill can make come twice, and twice that is never out."""
OUT_BYTES = 64 * 1024**2
"""... and about so many bytes, going by the longest seen."""
_FRAMES_WAITING = 256
_ANSWER_SECONDS = 10.0
_COMPANY_SECONDS = 2.0
_REST_SECONDS = 2.0  # for what is on its way to a consumer
_APPLY_SECONDS = 1.0
"""A quorum queue applies what is acknowledged later, and not at all if the channel has ended by then."""
_ACK = struct.Struct(">BHIHHQBc")
_ACK_BYTES = 13
_BASIC, _BASIC_ACK = 60, 80
_COUNTED = "x-delivery-count"
_PLACEHOLDER = "q"


class LetterChannel(aiormq.Channel):
    """A channel that gathers what is delivered; a task for each message would cost more than all the rest of it.

    Overrides the private `_on_deliver_frame`.
    """

    def __init__(self, connection: Any, number: int) -> None:
        super().__init__(connection, number, publisher_confirms=False, frame_buffer=_FRAMES_WAITING)
        self.delivered: list[DeliveredMessage] = []
        self.came = asyncio.Event()
        self.last_tag = 0
        """Of the last that was delivered."""
        self.is_cancelled = False
        """The broker has ended a consumer: the queue was deleted, or its leader is gone."""

    async def _on_deliver_frame(self, frame: commands.Basic.Deliver) -> None:
        header = await self._Channel__get_content_header()  # type: ignore[attr-defined]
        message = await self._read_content(frame, header)
        self.delivered.append(message)  # only now: while this waited, `delivered` may have become another list
        self.last_tag = frame.delivery_tag or self.last_tag
        self.came.set()

    async def _on_cancel_frame(self, frame: Any) -> None:
        self.is_cancelled |= isinstance(frame, commands.Basic.Cancel)
        self.came.set()
        await super()._on_cancel_frame(frame)


class RabbitLetterQueue:
    """See `proxy.bridge.letter_queue.LetterQueue`."""

    def __init__(self, logins: Logins, queue: str) -> None:
        self._logins = logins
        self._queue = queue
        self._login: Login | None = None
        self._channel: LetterChannel | None = None
        self._closing: asyncio.Future[Any] | None = None
        self._second: Any = None
        self._consumer = 0
        self._tags: dict[str, int] = {}
        self._prefetch = 0
        self._first_tag = 1
        """Of the first letter that the present consumer took."""
        self._taken_off = 0
        """Of what it took, letters that were acknowledged."""
        self._kept = 0
        """... and letters that stay."""
        self._acknowledged_at = float("-inf")
        self._at_rest = asyncio.Lock()
        """Held while a consumer is exchanged: nothing is acknowledged meanwhile."""
        self._seen = 0
        self._longest = 1

    async def open(self) -> int:
        """See `LetterQueue.open`."""
        loop = asyncio.get_running_loop()
        hosts = self._logins.hosts()
        host = hosts.next(loop.time())
        self._login = await self._logins.log_in_within(_ANSWER_SECONDS, host, f"redrive of {self._queue}")
        with speaking(self._login.host):
            underlay = self._login.underlay
            number = 1
            self._channel = channel = LetterChannel(underlay, number)
            underlay.channels[number] = channel
            await channel.open()
            self._closing = channel.closing  # asked for once: the client makes a new observer for every question
            self._closing.add_done_callback(lambda _: channel.came.set())
            waiting = await self._alone(ours=0)
            await self._consume(FIRST_PREFETCH)
            # Each of two that come at once sees the other one here, and both end: better than both going on.
            await self._alone(ours=1)
        return waiting

    async def take(self, seconds: float) -> Sequence[TakenLetter]:
        """See `LetterQueue.take`."""
        channel, login = self._living()
        wanted = max(FIRST_PREFETCH, min(MOST_OUT, OUT_BYTES // self._longest))
        is_known = self._seen >= FIRST_PREFETCH // 2
        if (is_known and self._prefetch < wanted) or self._kept * 2 >= self._prefetch:
            async with self._at_rest:
                with speaking(login.host):
                    await self._consume(wanted if is_known else FIRST_PREFETCH)
        if not channel.delivered:
            channel.came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await channel.came.wait()
            self._living()
        delivered, channel.delivered = channel.delivered, []
        taken = [self._read(message) for message in delivered]
        self._seen += len(taken)
        self._longest = max([self._longest, *(one.octets for one in taken)])
        return taken

    def keep(self, letters: Sequence[TakenLetter]) -> None:
        """See `LetterQueue.keep`."""
        self._kept += sum(letter.consumer == self._consumer for letter in letters)

    async def waiting(self) -> int:
        """See `LetterQueue.waiting`."""
        _, login = self._living()
        with speaking(login.host):
            return (await self._declared())[0]

    async def acknowledge(self, tags: Collection[int]) -> None:
        """See `LetterQueue.acknowledge`."""
        channel, login = self._living()
        if not tags:
            return
        number = channel.number
        frames = b"".join(
            _ACK.pack(FRAME_METHOD, number, _ACK_BYTES, _BASIC, _BASIC_ACK, tag, 0, FRAME_END_CHAR) for tag in tags
        )
        written = asyncio.get_running_loop().create_future()
        async with self._at_rest:
            self._taken_off += sum(tag >= self._first_tag for tag in tags)
            self._acknowledged_at = asyncio.get_running_loop().time()
            with speaking(login.host):
                await channel.write_queue.put(ChannelFrame(payload=frames, should_close=False, drain_future=written))
                await asyncio.wait({written}, timeout=_ANSWER_SECONDS)
        self._living()

    async def lay_anew(self, letters: Sequence[TakenLetter]) -> None:
        """See `LetterQueue.lay_anew`."""
        _, login = self._living()
        with speaking(login.host):
            if self._second is None:
                self._second = await login.connection.channel(publisher_confirms=True)
            under = await self._second.get_underlay_channel()
            await asyncio.gather(*(self._copy(under, letter) for letter in letters))
        await self.acknowledge([letter.tag for letter in letters])

    async def close(self) -> None:
        """See `LetterQueue.close`."""
        login, self._login = self._login, None
        if login is not None:
            try:
                await asyncio.sleep(self._acknowledged_at + _APPLY_SECONDS - asyncio.get_running_loop().time())
            finally:
                await login.close(gracefully=True)

    async def _copy(self, under: Any, letter: TakenLetter) -> None:
        message = letter.raw
        assert isinstance(message, DeliveredMessage)
        properties = message.header.properties
        headers = {name: value for name, value in (properties.headers or {}).items() if name != _COUNTED}
        properties.headers = headers
        confirmed = await under.basic_publish(
            message.body, routing_key=self._queue, properties=properties, mandatory=True, timeout=_ANSWER_SECONDS
        )
        if not isinstance(confirmed, commands.Basic.Ack):
            raise BrokerError(f"a letter could not be laid anew into {self._queue}: {type(confirmed).__name__}")

    def _living(self) -> tuple[LetterChannel, Login]:
        """Return what there is. Raises `BrokerError` if it is lost."""
        channel, login = self._channel, self._login
        if channel is None or login is None:
            raise BrokerError("the queue of letters is not open")
        if channel.is_cancelled:
            raise BrokerError(f"{login.host}: the broker has ended our consumer: is queue {self._queue} deleted?")
        if channel.is_closed or login.underlay.is_closed:
            closing = self._closing
            is_told = closing is not None and closing.done() and not closing.cancelled()
            error = closing.exception() if closing is not None and is_told else None
            raise BrokerError(f"{login.host}: the connection that takes the letters was lost: {cause(error)}")
        return channel, login

    async def _declared(self) -> tuple[int, int]:
        """Return how many letters wait, and how many consumers there are. Raises `BrokerError`."""
        channel, login = self._living()
        frame = commands.Queue.Declare(queue=_PLACEHOLDER, passive=True)
        frame.queue = self._queue  # the client refuses names that RabbitMQ takes, with a space for instance
        try:
            answer = await channel.rpc(frame, timeout=_ANSWER_SECONDS)
        except AMQPError as error:
            raise BrokerError(f"{login.host}: queue {self._queue!r}: {cause(error)}") from error
        return int(answer.message_count or 0), int(answer.consumer_count or 0)

    async def _consume(self, prefetch: int) -> None:
        """Have another consumer take over, once the one before is cancelled.

        A classic queue with a single active consumer gives nothing to one that came while the other was there.
        """
        channel, _ = self._living()
        for old in self._tags:
            await self._come_to_rest(channel)
            await channel.basic_cancel(old, timeout=_ANSWER_SECONDS)
        self._first_tag, self._taken_off = channel.last_tag + 1, 0
        await channel.basic_qos(prefetch_count=prefetch, timeout=_ANSWER_SECONDS)
        self._consumer += 1
        tag = f"redrive-{self._consumer}"
        frame = commands.Basic.Consume(queue=_PLACEHOLDER, consumer_tag=tag)
        frame.queue = self._queue
        self._tags = {tag: self._consumer}
        self._prefetch, self._kept = prefetch, 0
        await channel.rpc(frame, timeout=_ANSWER_SECONDS)

    async def _come_to_rest(self, channel: LetterChannel) -> None:
        """Wait until nothing more is on its way to the present consumer: it has all that it may, or no more is there.

        What is on its way to one that is cancelled goes back, and that counts against a quorum queue's delivery limit.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _REST_SECONDS
        while channel.last_tag + 1 - self._first_tag - self._taken_off < self._prefetch and loop.time() < deadline:
            channel.came.clear()
            if not (await self._declared())[0]:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REST_SECONDS / 20):
                    await channel.came.wait()

    async def _alone(self, ours: int) -> int:
        """Return how many letters wait once nobody else takes any. Raises `BrokerError` if somebody stays.

        A quorum queue knows a consumer for a moment longer than its connection lives: the dry run just before.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _COMPANY_SECONDS
        while True:
            waiting, consumers = await self._declared()
            if consumers <= ours:
                return waiting
            if loop.time() >= deadline:
                raise BrokerError(
                    f"queue {self._queue!r} has {consumers - ours} other consumer(s): another redrive, or somebody who "
                    "reads the letters. Both would take a part of them; end one"
                )
            await asyncio.sleep(_COMPANY_SECONDS / 20)

    def _read(self, message: DeliveredMessage) -> TakenLetter:
        properties = message.header.properties
        headers: Mapping[str, Any] = properties.headers or {}
        delivery = message.delivery
        assert isinstance(delivery, commands.Basic.Deliver)
        returned = headers.get(_COUNTED, 0)
        taken = TakenLetter(
            int(delivery.delivery_tag or 0),
            len(message.body),
            returned if isinstance(returned, int) else 0,
            None,
            consumer=self._tags.get(str(delivery.consumer_tag), 0),
            raw=message,
        )
        try:
            letter = read_letter(
                headers,
                message_id=properties.message_id,
                content_type=properties.content_type,
                body=message.body,
            )
        except IllegibleError as error:
            return replace(taken, illegible=error.kind, why=str(error))
        return replace(taken, letter=letter)
