"""The library's connection, with a time of its own for each request, and an eye for what is lost."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason

from proxy.kafka_log.answers import Answers

_KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
"""A connection on which nothing is under way but a join is known to be dead after 8 s."""
MOST_MUTED = 30.0
"""Seconds at most that a node is believed to pass over a connection for its quota. Kafka's default windows make 11."""


class Connection(AIOKafkaConnection):  # type: ignore[misc]  # the library is untyped
    """One that gives each request its own time, and takes a closed transport for a lost connection.

    A node with a quota answers at once, tells in its answer how long it then reads nothing from the connection, and
    keeps to that: time that counts for no request.
    """

    patience: Callable[[Any], float] | None = None
    """Seconds for a request beyond those before it; None: as constructed, which bounds the login."""
    muted_until = 0.0
    """Time on the loop's clock before which the node reads nothing here, as it has told."""
    _due = 0.0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._waits: set[asyncio.Timeout] = set()

    async def connect(self) -> Any:
        """Connect and log in; the kernel notices a peer that is gone without a word."""
        connected = await super().connect()
        opened = self._writer.get_extra_info("socket") if self._writer is not None else None
        if opened is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, seconds in _KEEPALIVE.items():
                if option := getattr(socket, name, None):
                    opened.setsockopt(socket.IPPROTO_TCP, option, seconds)
        return connected

    def send(self, request: Any, expect_response: bool = True) -> Any:  # as the library has it
        """Send a request and return what its answer is awaited by. Raises `KafkaConnectionError`."""
        self._give_up_what_is_lost()
        if self.patience is not None:
            now = self._loop.time()
            self._due = max(now, self.muted_until, self._due if self._requests else now) + self.patience(request)
            self._request_timeout = None  # the library's own bound would cost a second timer for each
        answer = super().send(request, expect_response)
        if self.patience is None:
            return self._answer_or_close(answer)
        self._request_timeout = self._due - now
        return self._answer_in_time(answer, self._due)

    async def _answer_or_close(self, answer: Awaitable[Any]) -> Any:
        """Close the connection if the answer is awaited no more: the library forgets the one it starts with."""
        try:
            return await answer
        except asyncio.CancelledError:
            self.close()
            raise

    async def _answer_in_time(self, answer: Awaitable[Any], due: float) -> Any:
        """Raise `TimeoutError` if nothing has come when it is due, or later by what the node is mute meanwhile."""
        async with asyncio.timeout_at(due) as wait:
            self._waits.add(wait)
            try:
                response = await answer
            finally:
                self._waits.discard(wait)
        if (muted := min(getattr(response, "throttle_time_ms", 0) / 1000, MOST_MUTED)) > 0:
            self._mute(muted)
        return response

    def _create_reader_task(self) -> Any:
        Answers(self._reader, self._handle_frame, self._break)
        return super()._create_reader_task()  # it sees the end

    def _break(self, error: Exception) -> None:
        self.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)

    def _mute(self, seconds: float) -> None:
        self.muted_until = max(self.muted_until, self._loop.time() + seconds)
        self._due += seconds
        for wait in self._waits:
            when = wait.when()
            if when is not None and not wait.expired():
                wait.reschedule(when + seconds)

    def _send_sasl_token(self, payload: bytes, expect_response: bool = True) -> Any:
        self._give_up_what_is_lost()
        return super()._send_sasl_token(payload, expect_response)

    def _give_up_what_is_lost(self) -> None:
        if self._writer is not None and self._writer.is_closing():
            self.close(reason=CloseReason.CONNECTION_BROKEN)
