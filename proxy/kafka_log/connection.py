"""The library's connection, with a time of its own for each request, and an eye for what is lost."""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, NamedTuple

from aiokafka import errors
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.protocol.admin import ApiVersionRequest

from proxy.kafka_log import fetch_by_id, fetch_wire
from proxy.kafka_log.answers import Answers
from proxy.kafka_log.fetch_sessions import Fetch
from proxy.kafka_log.topic_ids import TopicIds

_KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}
"""A connection on which nothing is under way but a join is known to be dead after 8 s."""
MOST_MUTED = 30.0
"""Seconds at most that a node is believed to pass over a connection for its quota. Kafka's default windows make 11."""
FLOWING = 16 * 1024
"""Bytes of an answer that must have come since it was looked at last, or since it began, to be waited for once more:
over a slow link a large one takes longer than any time that tells of a dead node. Larger: a trickle is given up."""


NEEDED = {
    1: ("Fetch", 4),
    2: ("ListOffsets", 1),
    3: ("Metadata", 8),
    8: ("OffsetCommit", 6),
    9: ("OffsetFetch", 5),
    10: ("FindCoordinator", 0),
    11: ("JoinGroup", 0),
    12: ("Heartbeat", 0),
    13: ("LeaveGroup", 0),
    14: ("SyncGroup", 0),
}
"""By their keys, requests that every node has to know, and the version that we know and older ones of Kafka don't."""
OLDEST = "2.3"
"""The first Kafka that knows them all."""


class UnderWay(NamedTuple):
    """A fetch that waits for nothing but its answer."""

    connection: "Connection"
    answer: asyncio.Future[Any]


class Connection(AIOKafkaConnection):  # type: ignore[misc]  # the library is untyped
    """One that gives each request its own time, and takes a closed transport for a lost connection.

    A node with a quota answers at once, tells in its answer how long it then reads nothing from the connection, and
    keeps to that: time that counts for no request.

    Answers come in the order of the requests, so one timer watches them all: it fires when the first of
    them is due, and looks who is first then. One that is coming in is given the time of its request once more.
    """

    patience: Callable[[Any], float] | None = None
    """Seconds for a request beyond those before it; None: as constructed, which bounds the login."""
    muted_until = 0.0
    """Time on the loop's clock before which the node reads nothing here, as it has told."""
    _due = 0.0
    _timer: asyncio.TimerHandle | None = None
    _speaks = False
    """Whether it knows fetches of our version."""
    _knows_ids = False
    """And those that name topics by their ids."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._dues: deque[float] = deque()
        """When what is under way is due, in the order of `_requests`."""
        self._answers: Answers
        self._looked_at = (-1, 0)
        """The request whose answer was coming in when it was looked at, and how many bytes had come."""

    async def connect(self) -> Any:
        """Connect and log in; the kernel notices a peer that is gone without a word."""
        connected = await super().connect()
        opened = self._writer.get_extra_info("socket") if self._writer is not None else None
        if opened is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, seconds in _KEEPALIVE.items():
                if option := getattr(socket, name, None):
                    opened.setsockopt(socket.IPPROTO_TCP, option, seconds)
        least, most = self._versions.get(Fetch.API_KEY, (0, 0))
        self._speaks = least <= fetch_wire.VERSION <= most
        self._knows_ids = self._speaks and most >= fetch_by_id.VERSION
        return connected

    def send(self, request: Any, expect_response: bool = True) -> Any:  # as the library has it
        """Send a request and return what its answer is awaited by. Raises `KafkaConnectionError`.

        Awaited, that raises `TimeoutError` if nothing has come when it is due, or later by what the node is mute
        meanwhile.
        """
        self._give_up_what_is_lost()
        if self.patience is None:
            answer = super().send(request, expect_response)
            self._dues.append(inf)
            return self._answer_or_close(answer)
        now = self._loop.time()
        due = max(now, self.muted_until, self._due if self._requests else now) + self.patience(request)
        self._request_timeout = None  # the library's own bound would cost a second timer for each
        answer = self._fetch(request) if self._speaks and isinstance(request, Fetch) else super().send(request)
        self._due = due
        self._dues.append(due)
        self._look_at(due)
        return answer

    def fetch(self, request: Fetch) -> "asyncio.Future[fetch_wire.FetchAnswer] | None":
        """Send a fetch as `send` does, at once; None: it would have to wait, or for another form of answer."""
        if not self._speaks or self.patience is None or self.muted_until > self._loop.time():
            return None
        answer: asyncio.Future[fetch_wire.FetchAnswer] = self.send(request)
        return answer

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:
        """Close; whoever waits for an answer is told."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._dues.clear()
        return super().close(reason, exc)

    def _fetch(self, request: Fetch) -> asyncio.Future[fetch_wire.FetchAnswer]:
        if self._writer is None:
            raise errors.KafkaConnectionError(f"no connection to {self._host}:{self._port}")
        number = self._next_correlation_id()
        try:
            encode = fetch_wire.encode if self._ids(request) is None else fetch_by_id.encode
            self._writer.write(encode(request, number, self._client_id))
        except OSError as error:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise errors.KafkaConnectionError(f"connection to {self._host}:{self._port} broken: {error}") from error
        answer: asyncio.Future[fetch_wire.FetchAnswer] = self._loop.create_future()
        self._requests.append((number, request, answer))
        return answer

    def _ids(self, request: Fetch) -> TopicIds | None:
        """Return the ids by which the node is told topics; None: by their names."""
        return request.ids if self._knows_ids else None

    def _handle_frame(self, frame: bytes | memoryview) -> None:
        number, request, answer = self._requests[0]
        if isinstance(request, Fetch):
            if frame[:4] != number.to_bytes(4):
                raise errors.CorrelationIdError(f"{frame[:4].hex()} came where {number:08x} was asked")
            if not answer.done():
                ids = self._ids(request)
                answer.set_result(fetch_wire.decode(frame) if ids is None else fetch_by_id.decode(frame, ids.names))
            self._last_action = time.monotonic()
            self._requests.popleft()
        else:
            super()._handle_frame(bytes(frame))  # which closes if it is the answer to something else
        if self._dues:
            self._dues.popleft()
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            muted = min(getattr(answer.result(), "throttle_time_ms", 0) / 1000, MOST_MUTED)
            if muted > 0:
                self._mute(muted)

    async def _answer_or_close(self, answer: Awaitable[Any]) -> Any:
        """Close the connection if the answer is awaited no more: the library forgets the one it starts with."""
        try:
            return await answer
        except asyncio.CancelledError:
            self.close()
            raise

    def _look_at(self, due: float) -> None:
        """Look then at the latest: a timer that was set for a more patient request is too late for this one."""
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        """Give up the first request that is awaited and due, unless an answer flows; look again when one is due."""
        self._timer = None
        now = self._loop.time()
        for due, (_, request, answer) in zip(self._dues, self._requests, strict=False):
            if answer.done():
                continue
            if due <= now and self.patience is not None and self._is_flowing():
                more = self.patience(request)
                self._put_off(now + more - due)
                self._look_at(now + more)
                return
            if due > now:
                self._look_at(due)
                return
            answer.set_exception(TimeoutError())

    def _is_flowing(self) -> bool:
        """Return whether much of the answer that is coming in has come since the last look."""
        number, come = self._requests[0][0], self._answers.coming
        looked_at, before = self._looked_at
        self._looked_at = number, come
        return come - (before if looked_at == number else 0) >= FLOWING

    async def _do_version_lookup(self) -> None:
        """Ask which requests the node knows. Raises `KafkaConnectionError` if it lacks one that is always needed.

        The library takes any answer, and then fails at each request for as long as the connection lives.
        """
        answer = await self.send(ApiVersionRequest())
        self._versions = {key: (least, most) for key, least, most in answer.api_versions if 0 <= least <= most}
        for key, (name, version) in NEEDED.items():
            if self._versions.get(key, (0, -1))[1] < version:
                raise errors.KafkaConnectionError(
                    f"what answers there does not know {name} in version {version}: Kafka {OLDEST} or newer is needed"
                )

    def _create_reader_task(self) -> Any:
        self._answers = Answers(self._reader, self._handle_frame, self._break)
        return super()._create_reader_task()  # it sees the end

    def _break(self, error: Exception) -> None:
        self.close(reason=CloseReason.CONNECTION_BROKEN, exc=error)

    def _mute(self, seconds: float) -> None:
        self.muted_until = max(self.muted_until, self._loop.time() + seconds)
        self._put_off(seconds)

    def _put_off(self, seconds: float) -> None:
        self._due += seconds
        self._dues = deque(due + seconds for due in self._dues)

    def _send_sasl_token(self, payload: bytes, expect_response: bool = True) -> Any:
        self._give_up_what_is_lost()
        sent = super()._send_sasl_token(payload, expect_response)
        self._dues.append(inf)
        return sent

    def _give_up_what_is_lost(self) -> None:
        if self._writer is not None and self._writer.is_closing():
            self.close(reason=CloseReason.CONNECTION_BROKEN)
