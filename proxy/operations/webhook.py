"""Notices by POST to an HTTP address: signed where a key is given, over TLS where the address says so.

The signature is the header `Tidegate-Signature: t=SECONDS,v1=HEX`: HMAC-SHA256, by the key, of SECONDS (since 1970), a
full stop, and the body as it was sent. Whoever checks it also refuses what is old, so that nobody can send it again.
"""

import hashlib
import hmac
import time
from collections.abc import Callable
from http import HTTPStatus

import aiohttp
from yarl import URL

from proxy.access import Access
from proxy.errors import NoticeError, in_words
from proxy.settings import Webhook

_AGAIN = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
"""Of the answers 4xx those that may be others later."""
_FINAL = range(300, 500)


def signature(key: str, body: bytes, seconds: int) -> str:
    """Return the header's value for a body that is sent at a time, in seconds since 1970."""
    signed = hmac.new(key.encode(), b"%d." % seconds + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={signed}"


class WebhookDestination:
    """A `Destination`. Follows no redirect, reads nothing of an answer but its status."""

    def __init__(self, settings: Webhook, access: Access, wall: Callable[[], float] = time.time) -> None:
        self._url = URL(settings.url)
        self._access = access
        self._wall = wall
        self._context = access.context
        self._session: aiohttp.ClientSession | None = None

    @property
    def name(self) -> str:
        """The address without its path, which may be secret."""
        return str(self._url.origin())

    async def send(self, route: str, body: bytes) -> None:  # noqa: ARG002
        """See `Destination`."""
        self._access.look()
        headers = {"Content-Type": "application/json"}
        if (key := self._access.password) is not None:
            headers["Tidegate-Signature"] = signature(key, body, int(self._wall()))
        session = await self._connected()
        try:
            async with session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                status = response.status
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoticeError(f"{self.name}: {in_words(error)}") from error
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            is_final = status in _FINAL and status not in _AGAIN
            raise NoticeError(f"{self.name} answers with status {status}", is_final=is_final)

    async def close(self) -> None:
        """See `Destination`."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _connected(self) -> aiohttp.ClientSession:
        """Return the session, a new one if the certificates are others now."""
        if self._session is None or self._context is not self._access.context:
            await self.close()
            self._context = self._access.context
            connector = aiohttp.TCPConnector(limit=1, ssl=self._context or True)
            self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        return self._session
