"""What expires when, and saying so ahead of time."""

from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from proxy.settings.parts import duration_text

AHEAD_SECONDS = 30 * 86_400.0
"""A certificate's end is said from so long before ..."""
SAID_EVERY_SECONDS = 86_400.0
"""... so often."""
SERVERS = 256
"""Hosts whose certificates are remembered; of more the oldest is forgotten."""

_HOUR = 3_600.0
_say = structlog.get_logger("tidegate.access")


@dataclass(slots=True)
class _Known:
    ends: float
    said: float | None = None


class Expiries:
    """The certificates of one login: our own, and the one that each server showed last."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._known: dict[str, _Known] = {}

    def note(self, whose: str, ends: float) -> None:
        """Remember when a certificate ends, in seconds since 1970; `whose` is `own` or the server's host:port."""
        known = self._known.get(whose)
        if known is None or known.ends != ends:
            self._known[whose] = _Known(ends)
            if len(self._known) > SERVERS:
                del self._known[next(iter(self._known))]

    def left(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield whose certificate it is and the seconds left of it, negative once it has expired."""
        for whose, known in self._known.items():
            yield whose, known.ends - now

    def tell(self, now: float) -> None:
        """Say what expires within 30 days, at first and once a day."""
        for whose, known in self._known.items():
            left = known.ends - now
            if left > AHEAD_SECONDS or (known.said is not None and 0 <= now - known.said < SAID_EVERY_SECONDS):
                continue
            known.said = now
            facts = {"at": self._place, "whose": whose, "remedy": _remedy(whose)}
            if left > 0:
                _say.warning("certificate_expires", left=duration_text(left // _HOUR * _HOUR), **facts)
            else:
                _say.error("certificate_expired", effect="new connections are refused", **facts)


def _remedy(whose: str) -> str:
    return "replace the files; they are read again" if whose == "own" else "whoever runs the server renews it"
