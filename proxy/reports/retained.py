"""Of what time a store keeps its layers, and of what time a report is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.reports.files import ReportError

MINUTE_MS = 60_000
_UNITS_MS = {"h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000, "y": 365 * 86_400_000}
_FORM = re.compile(r"(records|facts)=([1-9][0-9]{0,5})([hdwy])")


@dataclass(frozen=True)
class Keep:
    """How long layers are kept, in milliseconds behind the newest record of the store; None: for ever."""

    records_ms: int | None = None
    facts_ms: int | None = None

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Keep":
        """Return what `records=7d` and `facts=1y` say. Raises `ReportError`."""
        told: dict[str, int] = {}
        for text in texts:
            for part in text.split(","):
                found = _FORM.fullmatch(part.strip())
                if found is None:
                    raise ReportError(f"--keep {part}: write records=7d or facts=1y (h, d, w, y)")
                told[f"{found[1]}_ms"] = int(found[2]) * _UNITS_MS[found[3]]
        return cls(**told)


@dataclass(frozen=True)
class Window:
    """From when to when a report is, in milliseconds since 1970: after the first instant, up to the second one."""

    since_ms: int | None = None
    until_ms: int | None = None

    @classmethod
    def of(cls, since_ms: int | None, until_ms: int | None) -> "Window":
        """Return the window between two instants. Raises `ReportError` if it is empty."""
        if since_ms is not None and until_ms is not None and since_ms >= until_ms:
            raise ReportError("--until must be later than --since")
        return cls(since_ms, until_ms)

    def in_minutes(self) -> "Window":
        """Return the whole minutes that it touches."""
        since = None if self.since_ms is None else self.since_ms // MINUTE_MS * MINUTE_MS
        return Window(since, None if self.until_ms is None else -(-self.until_ms // MINUTE_MS) * MINUTE_MS)
