"""One broker's connections: requests in, answers out, one after the other on each as real brokers do."""

import asyncio
import contextlib
from collections.abc import Callable

from tests.wire.kafka.answers import Answers
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.codec import TruncatedError
from tests.wire.kafka.messages import Api, Error, Request, read_request, written_answer
from tests.wire.kafka.mischief import Trick

MOST_BYTES = 100 * 1024**2
"""Of one request, as brokers have it."""


class Node:
    """The broker with this number; `serve` is what its listener calls for each connection."""

    def __init__(
        self,
        number: int,
        cluster: ScriptedCluster,
        name_of: Callable[[asyncio.StreamWriter], str] = lambda _: "client",
    ) -> None:
        self.number = number
        self._cluster = cluster
        self._name_of = name_of
        """Tells which process is at the other end."""
        self._answers = Answers(number, cluster)
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the client goes, or the broker has had enough of it."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, TruncatedError, KeyError, ValueError):
            pass  # who speaks another language, or none any more, is hung up on
        except asyncio.CancelledError:
            pass  # by `close`; asyncio would log it as a failure of whoever serves
        finally:
            self._serving.discard(task)
            writer.close()

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._serving)

    async def close(self) -> None:
        """Hang up on everybody."""
        for task in list(self._serving):
            task.cancel()
        for task in list(self._serving):
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mischief = self._cluster.mischief
        client, login = self._name_of(writer), _Login(self._cluster.logins)
        while True:
            size = int.from_bytes(await reader.readexactly(4))
            if size > MOST_BYTES:
                return
            request = read_request(await reader.readexactly(size))
            api = request.api
            if mischief.plays(Trick.HANG_UP, api, self.number):
                return
            answer = login.answer(request)
            if answer is None:
                answer = await self._answers.answer(request, client)
            if mischief.plays(Trick.DROP, api, self.number):
                return
            if mischief.plays(Trick.MUTE, api, self.number):
                while await reader.read(2**16):
                    pass
                return
            if (late := mischief.plays(Trick.LATE, api, self.number)) is not None:
                await asyncio.sleep(late.seconds)
            writer.write(written_answer(request, answer))
            await writer.drain()
            if login.is_over:
                return


class _Login:
    """Whether a connection may ask for anything."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self._passwords = passwords
        self._is_open = not passwords
        self.is_over = False
        """The connection ends with this answer."""

    def answer(self, request: Request) -> dict[str, object] | None:
        """Answer what concerns the login, and what may not be asked yet; None if it is for others to answer."""
        if request.api is Api.SASL_HANDSHAKE:
            is_known = request.body["mechanism"] == "PLAIN"
            return {"error": 0 if is_known else Error.UNSUPPORTED_SASL_MECHANISM, "mechanisms": ["PLAIN"]}
        if request.api is Api.SASL_AUTHENTICATE:
            _, user, password = bytes(request.body["token"]).decode().split("\0")
            self._is_open = self._passwords.get(user) == password
            self.is_over = not self._is_open
            error = Error.NONE if self._is_open else Error.SASL_AUTHENTICATION_FAILED
            return {"error": error, "message": None if self._is_open else "refused", "token": b"", "session_ms": 0}
        if self._is_open or request.api is Api.API_VERSIONS:
            return None
        raise ConnectionAbortedError("not logged in")
