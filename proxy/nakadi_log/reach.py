"""Whether Nakadi can be reached, said once each time that changes."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

import structlog

from proxy.errors import LogError, RefusedLoginError
from proxy.nakadi_log.bus import FORBIDDEN, UNAUTHORIZED, RefusedError

_say = structlog.get_logger("tidegate.nakadi")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
"""Seconds until what failed is tried again: the first pause, doubled up to the longest."""
_HEARD_SECONDS = 5.0
"""One of many questions may fail: who was heard within so long is there."""


class Reach:
    """One for all that asks Nakadi."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._since: float | None = None
        self.why: str | None = None
        """Why it can't be reached; None: it can."""
        self._heard_at = -inf

    def lost(self, why: str) -> None:
        """Note that something was not answered."""
        now = asyncio.get_running_loop().time()
        if self._since is None and now - self._heard_at >= _HEARD_SECONDS:
            self._since, self.why = now, why
            _say.warning("log_unavailable", url=self._url, why=why, effect="waiting for it")

    def found(self) -> None:
        """Note that something was."""
        self._heard_at = asyncio.get_running_loop().time()
        if self._since is not None:
            after = round(self._heard_at - self._since, 1)
            self._since = self.why = None
            _say.info("log_available", after_s=after)

    async def reached(self, ask: Callable[[], Awaitable[object]]) -> None:
        """Ask until it is answered, however long that takes. Raises `RefusedLoginError` if the login is refused."""
        pause = FIRST_PAUSE
        while True:
            try:
                await ask()
            except RefusedError as error:
                if error.status in {UNAUTHORIZED, FORBIDDEN}:
                    told = f"{self._url} refuses the login; see log.nakadi.token: {error}"
                    raise RefusedLoginError(told) from error
                self.lost(str(error))
            except LogError as error:
                self.lost(str(error))
            else:
                self.found()
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
