"""The token of one login: read out of what a file holds or a command prints, and made anew before it expires."""

import asyncio
import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proxy.access.commands import Run
from proxy.access.files import Read, naming, read_or_say
from proxy.errors import SecretError
from proxy.json_text import read_json
from proxy.settings import Token

LIFE_USED = 2 / 3
"""The share of its life after which a token is made anew: the rest is for an issuer that fails."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds between two runs of the command: the first pause, doubled up to the longest while it fails."""

_ALLOWED = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750, 2.1; anything else could end the message that carries it."""
_JWT_PARTS = 3


@dataclass(frozen=True, slots=True)
class Bearer:
    """One token; whoever bears it is let in."""

    text: str = field(repr=False)
    since: float
    """When it came to us, in seconds since 1970."""
    expires: float
    """When it ends, in seconds since 1970."""

    @property
    def due(self) -> float:
        """When it should be made anew, in seconds since 1970."""
        return self.since + LIFE_USED * max(0.0, self.expires - self.since)


def bearer(data: bytes, now: float) -> Bearer:
    """Return the token that a file holds or a command printed at `now`, in seconds since 1970.

    Raises `SecretError`, which quotes nothing of it, if it is none or if its expiry can't be told.
    """
    text: Any = data.decode("utf-8-sig", errors="replace").strip()
    given: Any = None
    if text.startswith("{"):
        answer = _json(text.encode())
        text, given = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(text, str) or not _ALLOWED.fullmatch(text):
        raise SecretError("holds no token: neither a JWT nor JSON with access_token")
    expires = _number(given)
    expires = _expiry(text) if expires is None else now + expires
    if expires is None:
        raise SecretError("holds a token without expiry; a JWT needs exp, another token JSON with expires_in")
    return Bearer(text, now, expires)


def _expiry(token: str) -> float | None:
    """Return what a JWT says itself; its signature is the broker's business."""
    parts = token.split(".")
    if len(parts) != _JWT_PARTS:
        return None
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    except binascii.Error:
        return None
    return _number(_json(claims).get("exp"))


def _json(data: bytes) -> dict[str, Any]:
    try:
        found = read_json(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e12 else None  # noqa: PLR2004 -- beyond it lies no date


class Tokens:
    """The current token, from its file or command. Every failure is a `SecretError`; the last token stays in use."""

    def __init__(self, settings: Token, *, read: Read, run: Run, wall: Callable[[], float]) -> None:
        self._settings = settings
        self._read = read
        self._run = run
        self._wall = wall
        self._making = asyncio.Lock()
        self._held: bytes | None = None
        self._pause = FIRST_PAUSE
        self._not_before = 0.0
        self._failure: SecretError | None = None
        self.current: Bearer | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is none, or one that has expired."""
        return self.current is None or self.current.expires <= self._wall()

    async def renew(self) -> None:
        """Take what the file holds now; run the command if the token is due. Raises `SecretError` if that fails."""
        async with self._making:
            if self._settings.file is not None:
                self._look(self._settings.file)
            elif self.current is None or self._wall() >= self.current.due:
                await self._make()

    def _look(self, file: str) -> None:
        data = read_or_say(self._read, file)
        if data != self._held:
            with naming(file):
                self.current = bearer(data, self._wall())
            self._held = data

    async def _make(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._not_before:
            if self._failure is not None:
                raise self._failure
            return
        assert self._settings.command is not None
        try:
            made = bearer(await self._run(self._settings.command, self._settings.timeout), self._wall())
        except SecretError as error:
            self._failure = error
            self._not_before = asyncio.get_running_loop().time() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            raise
        self.current = made
        self._failure, self._pause = None, FIRST_PAUSE
        self._not_before = asyncio.get_running_loop().time() + FIRST_PAUSE
