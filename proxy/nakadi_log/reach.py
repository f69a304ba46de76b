"""Whether Nakadi can be reached, said once each time that changes."""

import asyncio

import structlog

_say = structlog.get_logger("tidegate.nakadi")


class Reach:
    """One for all that asks Nakadi."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._since: float | None = None

    def lost(self, why: str) -> None:
        """Note that something was not answered."""
        if self._since is None:
            self._since = asyncio.get_running_loop().time()
            _say.warning("log_unavailable", url=self._url, why=why, effect="waiting for it")

    def found(self) -> None:
        """Note that something was."""
        if self._since is not None:
            after = round(asyncio.get_running_loop().time() - self._since, 1)
            self._since = None
            _say.info("log_available", after_s=after)
