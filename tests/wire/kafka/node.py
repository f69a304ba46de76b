"""One broker's connections: requests in, answers out, one after the other on each as real brokers do."""

import asyncio
import contextlib
from collections.abc import Callable
from math import inf
from typing import Any

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
        client, login = self._name_of(writer), _Login(self._cluster)
        try:
            await self._talk(reader, writer, client, login)
        finally:
            login.end()

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: str, login: "_Login"
    ) -> None:
        mischief = self._cluster.mischief
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
            await self._say(writer, request, answer)
            if login.is_over:
                return

    async def _say(self, writer: asyncio.StreamWriter, request: Request, answer: dict[str, Any]) -> None:
        """Write an answer, perhaps late; return when the next request may be read."""
        mischief = self._cluster.mischief
        if (late := mischief.plays(Trick.LATE, request.api, self.number)) is not None:
            await asyncio.sleep(late.seconds)
        throttle = mischief.plays(Trick.THROTTLE, request.api, self.number) if "throttle_ms" in answer else None
        if throttle is not None:
            answer = {**answer, "throttle_ms": round(1000 * throttle.seconds)}
        writer.write(written_answer(request, answer))
        await writer.drain()
        if throttle is not None:
            await asyncio.sleep(throttle.seconds)


class _Login:
    """Whether a connection may ask for anything; where sessions have a bound it must log in again in time (KIP-368)."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self._cluster = cluster
        self._is_open = not cluster.is_secured
        self._ends = inf
        """When the session is over, by the loop's clock."""
        self._mechanism = ""
        """Of the exchange under way."""
        self._is_refused = False
        """It shows a token that is none, and has to hear so once more."""
        self.is_over = False
        """The connection ends with this answer."""

    def answer(self, request: Request) -> dict[str, object] | None:
        """Answer what concerns the login; None if it is for others to answer. Raises what ends the connection."""
        cluster = self._cluster
        if request.api is Api.SASL_HANDSHAKE:
            mechanism = str(request.body["mechanism"])
            self._mechanism = mechanism if mechanism in cluster.mechanisms else ""
            error = Error.NONE if self._mechanism else Error.UNSUPPORTED_SASL_MECHANISM
            return {"error": error, "mechanisms": cluster.mechanisms}
        if request.api is Api.SASL_AUTHENTICATE:
            return self._authenticate(bytes(request.body["token"]).decode())
        if self._mechanism:
            cluster.wrongs.append(f"{request.api.name} in the midst of a login")
            raise ConnectionAbortedError("in the midst of a login")
        if asyncio.get_running_loop().time() > self._ends:
            cluster.wrongs.append(f"{request.api.name} after the end of the session")
            raise ConnectionAbortedError("the session is over")
        if self._is_open or request.api is Api.API_VERSIONS:
            return None
        raise ConnectionAbortedError("not logged in")

    def end(self) -> None:
        """Forget the session."""
        self._cluster.sessions.pop(self, None)

    def _authenticate(self, shown: str) -> dict[str, object]:
        now, cluster = asyncio.get_running_loop().time(), self._cluster
        if self._mechanism == "OAUTHBEARER":
            secret = shown.strip("\x01").partition("auth=Bearer ")[2]
            ends = cluster.tokens.get(secret, -inf)
            self._is_open = ends > now
        else:
            _, user, secret = shown.split("\0")
            ends = inf
            self._is_open = cluster.logins.get(user) == secret
        if not self._is_open and self._mechanism == "OAUTHBEARER" and not self._is_refused:
            self._is_refused = True
            return {"error": 0, "message": None, "token": b'{"status":"invalid_token"}', "session_ms": 0}
        self._mechanism, self.is_over = "", not self._is_open
        self._ends = min(ends, now + cluster.session_seconds)
        if self._is_open:
            cluster.sessions[self] = secret
        error = Error.NONE if self._is_open else Error.SASL_AUTHENTICATION_FAILED
        lasts = round(1000 * (self._ends - now)) if self._is_open and self._ends < inf else 0
        return {
            "error": error,
            "message": None if self._is_open else "refused",
            "token": b"",
            "session_ms": lasts,
        }
