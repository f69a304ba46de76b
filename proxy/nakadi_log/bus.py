"""Asks Nakadi: one HTTP client for all requests and streams, with the token and the certificates of the moment."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp

from proxy.access import Access
from proxy.errors import LogError, SecretError
from proxy.json_text import read_json
from proxy.nakadi_log.words import failure, problem

OK, CREATED, NO_CONTENT = 200, 201, 204
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, UNPROCESSABLE = 401, 403, 404, 409, 422
_TROUBLE = (aiohttp.ClientError, OSError, TimeoutError, asyncio.IncompleteReadError)
ANSWER_BYTES = 64 * 1024**2
"""Of a longer answer nothing is believed: the list of some 10,000 event types with their schemas."""
_PIECE = 65_536


class RefusedError(LogError):
    """Nakadi answered, and not as was hoped; `status` says how."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Bus:
    """One Nakadi. Every question raises `LogError` if it isn't answered in time, `RefusedError` if it is refused."""

    def __init__(self, url: str, access: Access, connector: aiohttp.BaseConnector | None = None) -> None:
        """Make one; the connections are `connector`'s, by default its own."""
        self._url = url.rstrip("/")
        self._access = access
        self._connector = connector
        self._client: aiohttp.ClientSession | None = None

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        within: float,
        stream_id: str | None = None,
    ) -> tuple[int, Any]:
        """Return the status, one of success, and the answer as JSON; None if there is none."""
        headers = {} if stream_id is None else {"X-Nakadi-StreamId": stream_id}
        try:
            async with asyncio.timeout(within):
                answer = await self._answer(method, path, body, headers)
                async with answer:
                    return answer.status, await _read(answer)
        except _TROUBLE as error:
            raise LogError(self._said(path, failure(error))) from error

    @asynccontextmanager
    async def stream(self, path: str, body: object = None, *, within: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a stream, by a body if there is one, its headers read within seconds; it ends with the context."""
        method = "GET" if body is None else "POST"
        try:
            async with asyncio.timeout(within):
                response = await self._answer(method, path, body, {"Accept": "application/x-json-stream"})
        except _TROUBLE as error:
            raise LogError(self._said(path, failure(error))) from error
        try:
            yield response
        finally:
            response.close()

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _answer(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Ask, a second time with a fresh token if the first one is refused."""
        response = await self._send(method, path, body, headers)
        if response.status == UNAUTHORIZED and self._access.has_token:
            response.close()
            try:
                await self._access.fresh_token()
            except SecretError as error:
                raise LogError(f"log.nakadi.token: {error}") from error
            response = await self._send(method, path, body, headers)
        if response.status in {OK, CREATED, NO_CONTENT}:
            return response
        async with response:
            words = self._access.redacted(problem(response.status, await _read(response)))
            raise RefusedError(response.status, self._said(path, words))

    def _said(self, path: str, words: str) -> str:
        """Return what came of a question, with what was asked."""
        return f"{self._url}{path.partition('?')[0]}: {words}"

    async def _send(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        if self._client is None:
            connector = self._connector or aiohttp.TCPConnector(limit=0)
            self._client = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=True,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        if self._access.has_token:
            try:
                token = self._access.token or await self._access.fresh_token()
            except SecretError as error:
                raise LogError(f"log.nakadi.token: {error}") from error
            headers = {**headers, "Authorization": f"Bearer {token}"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers = {**headers, "Content-Type": "application/json"}
        context = self._access.context
        return await self._client.request(
            method,
            self._url + path,
            data=data,
            headers=headers,
            ssl=context if context is not None else True,
            allow_redirects=False,
        )


def quoted(name: str) -> str:
    """Return a name as a part of a path."""
    return quote(name, safe="")


async def _read(answer: aiohttp.ClientResponse) -> Any:
    """Return an answer as JSON; None if it is none. Raises `LogError` if it is too long."""
    pieces, size = list[bytes](), 0
    async for piece in answer.content.iter_chunked(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > ANSWER_BYTES:
            raise LogError("the answer is too long")
    try:
        return read_json(b"".join(pieces)) if size else None
    except ValueError:
        return None
