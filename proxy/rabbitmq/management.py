"""RabbitMQ's management API: what a passive declare can't tell, above all what consumers hold unacknowledged.

Its figures are up to 5 s old when they come. Few queues are asked for one by one; many in one listing of the virtual
host, which costs the broker the same whether they are watched or not.
"""

import asyncio
from base64 import b64encode
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from proxy.access import Access
from proxy.bridge.broker import QueueInsight
from proxy.errors import BrokerError, SecretError, in_words
from proxy.json_text import read_json
from proxy.settings import BrokerSettings, Management

DEADLINE = 2.0
"""Seconds for one question, connecting included."""
ONE_BY_ONE = 16
"""Queues up to which each is asked for by itself, `CONNECTIONS` at a time."""
CONNECTIONS = 4
ANSWER_BYTES = 16 * 1024**2
"""A longer listing, of some 80,000 queues, is not read."""
_COLUMNS = {
    "columns": "name,messages_ready,messages_unacknowledged,message_stats.ack,message_stats.ack_details.rate,"
    "message_stats.deliver_no_ack_details.rate,message_stats.deliver_details.rate"
}


class RabbitManagement:
    """See `proxy.bridge.broker.QueueInsights`. Connects when asked."""

    def __init__(self, settings: BrokerSettings, management: Management, access: Access) -> None:
        self._root = URL(f"{management.url.rstrip('/')}/api/queues/{_quoted(settings.virtual_host)}", encoded=True)
        self._user = management.username or settings.username
        self._access = access
        self._context = access.context
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, queues: Collection[str]) -> Mapping[str, QueueInsight | None]:
        """Ask for all queues; see `QueueInsights.ask`."""
        self._access.look()
        try:
            async with asyncio.timeout(DEADLINE):
                if len(queues) <= ONE_BY_ONE:
                    found = await asyncio.gather(*(self._get(f"/{_quoted(queue)}") for queue in queues))
                    return {queue: _insight(one) for queue, one in zip(queues, found, strict=True)}
                listed = await self._get("")
                known = {one["name"]: _insight(one) for one in listed or ()}
        except TimeoutError:
            raise BrokerError(f"{self._root.origin()}: no answer within {DEADLINE:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise BrokerError(f"{self._root.origin()}: {in_words(error)}") from error
        except (ValueError, OverflowError, TypeError, KeyError, AttributeError) as error:
            raise BrokerError(f"{self._root.origin()} answers with something else than queues: {error}") from error
        return {queue: known.get(queue) for queue in queues}

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _get(self, path: str) -> Any:
        """Return the JSON answer; None if there is no such thing."""
        headers = {"Authorization": await self._authorization()}
        session = await self._connected()
        url = URL(f"{self._root}{path}", encoded=True).with_query(_COLUMNS)
        async with session.get(url, allow_redirects=False, headers=headers) as response:
            match response.status:
                case HTTPStatus.OK:
                    return read_json(await _body(response))
                case HTTPStatus.NOT_FOUND:
                    return None
                case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                    raise BrokerError(
                        f"{self._root.origin()} refuses {self._user!r}: is the password right, and does the user have "
                        "the tag `management`?"
                    )
                case status:
                    raise BrokerError(f"{self._root.origin()} answers with status {status}")

    async def _connected(self) -> aiohttp.ClientSession:
        """Return the session, a new one if the certificates are others now."""
        if self._session is None or self._context is not self._access.context:
            before = self._session
            self._context = self._access.context
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=self._context or True)
            self._session = made = aiohttp.ClientSession(connector=connector)
            if before is not None:
                await before.close()
            return made
        return self._session

    async def _authorization(self) -> str:
        if self._access.has_token:
            try:
                return f"Bearer {await self._access.fresh_token()}"
            except SecretError as error:
                raise BrokerError(f"{self._root.origin()}: broker.token: {error}") from error
        login = f"{self._user}:{self._access.password or ''}".encode()
        return f"Basic {b64encode(login).decode()}"


async def _body(response: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > ANSWER_BYTES:
            raise ValueError(f"more than {ANSWER_BYTES} bytes")
    return b"".join(chunks)


def _insight(queue: Any) -> QueueInsight | None:
    """Return what was asked for; of a queue that never had a message nothing is counted, or `[]`: Erlang's `{}`."""
    if not isinstance(queue, dict | None):
        raise TypeError(f"{type(queue).__name__} where a queue was expected")
    if queue is None or "messages_unacknowledged" not in queue:
        return None
    stats = queue.get("message_stats") or {}

    return QueueInsight(
        ready=int(queue.get("messages_ready", 0)),
        unacked=int(queue["messages_unacknowledged"]),
        acked=int(stats.get("ack", 0)),
    )


def _quoted(name: str) -> str:
    return quote(name, safe="")
